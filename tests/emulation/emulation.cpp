// SPDX-License-Identifier: Apache-2.0
#include "emulation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <link.h>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#else
// Without the address sanitizer nobody needs to be told about stacks.
static void __sanitizer_start_switch_fiber(void**, const void*, std::size_t) {}
static void __sanitizer_finish_switch_fiber(void*, const void**, std::size_t*) {}
#endif

namespace emulation {

namespace {

constexpr std::size_t stack_bytes = 128 * 1024;
constexpr unsigned lanes_per_warp = 32;

/// Where a thread of the grid waits.
enum class waiting { nowhere, block, warp };

struct pending_copy {
    void* to;
    const void* from;
    std::size_t bytes;
    std::size_t zero_filled;
};

/// Ends the kernel function of a thread whose block has failed.
struct abandoned {};

/// One thread of a block: a fiber that runs the kernel function once for each block of the grid.
struct device_thread {
    unsigned index = 0; ///< in the block
    uint3 position{};
    bool inside = false; ///< suspended somewhere in the kernel function
    bool done = false;
    waiting at = waiting::nowhere;
    const char* file = "";
    int line = 0;

    // What it waits with.
    block_operation block_what{};
    warp_operation what{};
    unsigned mask = 0;
    std::uint64_t bits = 0;
    int operand = 0;
    int width = 0;
    bool is_signed = false;
    std::uint64_t answer = 0;

    std::vector<std::vector<pending_copy>> committed;
    std::vector<pending_copy> uncommitted;

    boost::context::stack_context stack{};
    boost::context::fiber fiber;
    boost::context::fiber scheduler;
    void* scheduler_shadow = nullptr;
    const void* scheduler_bottom = nullptr;
    std::size_t scheduler_bytes = 0;
};

std::string here(const device_thread& thread) {
    const std::string path = thread.file;
    return path.substr(path.rfind('/') + 1) + ':' + std::to_string(thread.line);
}

/// Fills the thread-local variables of the program, which hold the static shared memory of kernels, with NaN bytes.
/// Only the thread that runs a grid does so to its own.
void poison_static_shared() {
#if !defined(__clang__) // whose sanitizer keeps its own state there
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void*) {
            for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
                if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_tls_data != nullptr) {
                    std::memset(info->dlpi_tls_data, 0xff, info->dlpi_phdr[i].p_memsz);
                }
            }
            return 1; // the first entry is the program itself
        },
        nullptr);
#endif
}

/// The grid that is running.
class grid_run {
public:
    grid_run(const char* name, dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel,
             const schedule& how)
        : name_(name), grid_(grid), block_(block), shared_bytes_(shared_bytes), kernel_(kernel), how_(how),
          random_(how.seed), threads_(std::size_t{block.x} * block.y * block.z) {
        if (threads_.empty() || threads_.size() > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0) {
            throw fault(std::string(name) + ": launched with " + std::to_string(threads_.size()) +
                        " threads a block in " + std::to_string(grid.x) + " x " + std::to_string(grid.y) + " x " +
                        std::to_string(grid.z) + " blocks; a block has 1 to 1024 threads, a grid at least one block");
        }
        for (unsigned i = 0; i < threads_.size(); ++i) start(threads_[i], i);
    }

    ~grid_run() {
        ending_ = true;
        for (device_thread& thread : threads_) {
            resume(thread);
            boost::context::protected_fixedsize_stack(stack_bytes).deallocate(thread.stack);
        }
    }

    grid_run(const grid_run&) = delete;
    grid_run& operator=(const grid_run&) = delete;

    void run() {
        std::vector<std::size_t> blocks(std::size_t{grid_.x} * grid_.y * grid_.z);
        order(blocks);
        for (std::size_t block : blocks) run_block(block);
    }

    [[nodiscard]] device_thread& current() { return *current_; }
    [[nodiscard]] unsigned char* shared() { return shared_.get(); }
    [[nodiscard]] bool late_copies() const { return how_.late_copies; }

    /// Lets the others run until somebody makes this thread ready again.
    void wait(device_thread& thread, waiting at) {
        thread.at = at;
        while (thread.at != waiting::nowhere) leave(thread);
    }

    [[noreturn]] void fail(const device_thread& thread, const std::string& what) {
        throw fault(describe(thread) + " at " + here(thread) + ": " + what);
    }

    [[nodiscard]] std::vector<device_thread>& threads() { return threads_; }

private:
    void start(device_thread& thread, unsigned index) {
        thread.index = index;
        thread.position = {index % block_.x, index / block_.x % block_.y, index / (block_.x * block_.y)};
        boost::context::protected_fixedsize_stack allocator(stack_bytes);
        thread.stack = allocator.allocate();
        // The fiber does not own its stack: a fiber that ended could not tell the sanitizer about it any more.
        struct keep {
            boost::context::stack_context allocate() { return {}; }
            void deallocate(boost::context::stack_context&) {}
        };
        thread.fiber = boost::context::fiber(
            std::allocator_arg, boost::context::preallocated(thread.stack.sp, thread.stack.size, thread.stack), keep{},
            [this, &thread](boost::context::fiber&& scheduler) {
                thread.scheduler = std::move(scheduler);
                __sanitizer_finish_switch_fiber(nullptr, &thread.scheduler_bottom, &thread.scheduler_bytes);
                while (!ending_) {
                    run_kernel(thread);
                    leave(thread);
                }
                __sanitizer_start_switch_fiber(nullptr, thread.scheduler_bottom, thread.scheduler_bytes);
                return std::move(thread.scheduler);
            });
        thread.done = true; // nothing to run yet
    }

    void run_kernel(device_thread& thread) {
        thread.inside = true;
        try {
            kernel_();
        } catch (const abandoned&) {
        } catch (...) {
            if (!failure_) failure_ = std::current_exception();
        }
        thread.at = waiting::nowhere;
        thread.inside = false;
        thread.done = true;
    }

    void resume(device_thread& thread) {
        current_ = &thread;
        threadIdx = thread.position;
        void* shadow = nullptr;
        __sanitizer_start_switch_fiber(&shadow, static_cast<char*>(thread.stack.sp) - thread.stack.size,
                                       thread.stack.size);
        thread.fiber = std::move(thread.fiber).resume();
        __sanitizer_finish_switch_fiber(shadow, nullptr, nullptr);
    }

    void leave(device_thread& thread) {
        __sanitizer_start_switch_fiber(&thread.scheduler_shadow, thread.scheduler_bottom, thread.scheduler_bytes);
        thread.scheduler = std::move(thread.scheduler).resume();
        __sanitizer_finish_switch_fiber(thread.scheduler_shadow, &thread.scheduler_bottom, &thread.scheduler_bytes);
        if (failure_ && thread.inside) throw abandoned{};
    }

    void order(std::vector<std::size_t>& places) {
        std::iota(places.begin(), places.end(), std::size_t{0});
        if (how_.threads == schedule::order::descending) std::reverse(places.begin(), places.end());
        if (how_.threads == schedule::order::shuffled) std::shuffle(places.begin(), places.end(), random_);
    }

    void run_block(std::size_t block) {
        blockIdx = {static_cast<unsigned>(block % grid_.x), static_cast<unsigned>(block / grid_.x % grid_.y),
                    static_cast<unsigned>(block / grid_.x / grid_.y)};
        blockDim = block_;
        gridDim = grid_;
        poison_static_shared();
        // Exactly as long as asked for, so that the sanitizer sees an access beyond it.
        void* memory = nullptr;
        if (posix_memalign(&memory, 16, shared_bytes_) != 0) throw std::bad_alloc();
        shared_.reset(static_cast<unsigned char*>(memory));
        std::memset(shared_.get(), 0xff, shared_bytes_);
        for (device_thread& thread : threads_) {
            thread.done = false;
            thread.committed.clear();
            thread.uncommitted.clear();
        }
        std::vector<std::size_t> places(threads_.size());
        order(places);
        const std::size_t together = how_.far_warps ? lanes_per_warp : places.size();
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t first = 0; first < places.size(); first += together) {
                while (run_once(places, first, std::min(first + together, places.size()))) moved = true;
            }
        }
        const auto stuck = std::find_if(threads_.begin(), threads_.end(), [](const auto& t) { return !t.done; });
        if (stuck == threads_.end()) return;
        failure_ = std::make_exception_ptr(fault(describe_stuck(*stuck)));
        give_up();
    }

    /// Runs each of some threads to its next wait; false when all of them wait already.
    bool run_once(const std::vector<std::size_t>& places, std::size_t first, std::size_t end) {
        bool moved = false;
        for (std::size_t i = first; i < end; ++i) {
            device_thread& thread = threads_[places[i]];
            if (thread.done || thread.at != waiting::nowhere) continue;
            resume(thread);
            moved = true;
            if (failure_) give_up();
        }
        return moved;
    }

    /// Unwinds the threads of a block that failed, and tells why it did.
    [[noreturn]] void give_up() {
        for (device_thread& thread : threads_) {
            if (thread.inside) resume(thread);
            thread.done = true;
        }
        std::rethrow_exception(std::exchange(failure_, nullptr));
    }

    [[nodiscard]] std::string describe(const device_thread& thread) const {
        const auto text = [](const uint3& p) {
            return '(' + std::to_string(p.x) + ", " + std::to_string(p.y) + ", " + std::to_string(p.z) + ')';
        };
        return std::string(name_) + ": block " + text(blockIdx) + ", thread " + text(thread.position);
    }

    [[nodiscard]] std::string describe_stuck(const device_thread& thread) const {
        const auto left = std::count_if(threads_.begin(), threads_.end(), [](const auto& t) { return t.done; });
        std::string text = describe(thread) + " at " + here(thread) + ": waits for ever for " +
                           (thread.at == waiting::block ? "the other threads of its block" : "lanes of its warp") +
                           "; ";
        text += std::to_string(left) + " of " + std::to_string(threads_.size()) + " threads have left the kernel";
        for (const device_thread& other : threads_) {
            const bool elsewhere = other.at != thread.at || other.line != thread.line || other.mask != thread.mask;
            if (!other.done && elsewhere) return text + ", " + describe(other) + " waits at " + here(other);
        }
        return text;
    }

    struct release {
        void operator()(unsigned char* at) const noexcept { std::free(at); }
    };

    const char* name_;
    dim3 grid_;
    dim3 block_;
    std::size_t shared_bytes_;
    const std::function<void()>& kernel_;
    schedule how_;
    std::mt19937_64 random_;
    std::vector<device_thread> threads_;
    device_thread* current_ = nullptr;
    std::unique_ptr<unsigned char, release> shared_;
    std::exception_ptr failure_;
    bool ending_ = false;
};

grid_run* running = nullptr; // one grid at a time
schedule chosen;

grid_run& grid() {
    if (running == nullptr) throw fault("a device function was called outside a kernel");
    return *running;
}

void copy_now(const pending_copy& copy) {
    const std::size_t read = copy.bytes - copy.zero_filled;
    std::memcpy(copy.to, copy.from, read);
    std::memset(static_cast<char*>(copy.to) + read, 0, copy.zero_filled);
}

/// What a lane of a complete warp operation is told.
std::uint64_t answer_for(grid_run& on, const device_thread& lane,
                         const std::array<const device_thread*, lanes_per_warp>& warp) {
    const int own = static_cast<int>(lane.index % lanes_per_warp);
    const auto over_all = [&](auto combine, std::uint64_t start) {
        for (unsigned i = 0; i < lanes_per_warp; ++i) {
            if ((lane.mask >> i & 1u) != 0) start = combine(start, warp[i]->bits, i);
        }
        return start;
    };
    const auto smaller = [&](std::uint64_t a, std::uint64_t b) {
        if (!lane.is_signed) return std::min(a, b);
        return static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b) ? a : b;
    };
    const int first = own / lane.width * lane.width;
    int source = own;
    switch (lane.what) {
    case warp_operation::sync:
        return 0;
    case warp_operation::ballot:
        return over_all([](auto sum, auto bits, unsigned i) { return sum | bits << i; }, 0);
    case warp_operation::all:
        return over_all([](auto sum, auto bits, unsigned) { return sum & bits; }, 1);
    case warp_operation::any:
        return over_all([](auto sum, auto bits, unsigned) { return sum | bits; }, 0);
    case warp_operation::add:
        return over_all([](auto sum, auto bits, unsigned) { return sum + bits; }, 0);
    case warp_operation::min:
        return over_all([&](auto best, auto bits, unsigned) { return smaller(best, bits); }, lane.bits);
    case warp_operation::max:
        return over_all([&](auto best, auto bits, unsigned) { return smaller(best, bits) == best ? bits : best; },
                        lane.bits);
    case warp_operation::shuffle:
        source = first + (lane.operand & (lane.width - 1));
        break;
    case warp_operation::shuffle_up:
        source = own - lane.operand < first ? own : own - lane.operand;
        break;
    case warp_operation::shuffle_down:
        source = own + lane.operand >= first + lane.width ? own : own + lane.operand;
        break;
    case warp_operation::shuffle_xor:
        source = (own ^ lane.operand) >= first + lane.width ? own : own ^ lane.operand;
        break;
    }
    if (source < 0 || source > 31 || (lane.mask >> source & 1u) == 0) {
        on.fail(lane, "a shuffle reads lane " + std::to_string(source) + ", which is not in its mask");
    }
    return warp[static_cast<std::size_t>(source)]->bits;
}

} // namespace

const std::vector<schedule>& schedules() {
    static const std::vector<schedule> all{{schedule::order::ascending, true, 1, "ascending, late copies"},
                                           {schedule::order::descending, false, 1, "descending, early copies"},
                                           {schedule::order::shuffled, true, 7, "shuffled, late copies"}};
    return all;
}

const schedule& far_warps() {
    static const schedule one{schedule::order::ascending, false, 1, "warps far apart, early copies", true};
    return one;
}

void use(const schedule& how) {
    chosen = how;
}

void run(const char* name, dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel) {
    if (running != nullptr) throw fault(std::string(name) + ": launched from a kernel");
    std::exception_ptr failure;
    // A thread of its own, whose thread-local memory nobody else uses.
    std::thread([&] {
        try {
            grid_run one(name, grid, block, shared_bytes, kernel, chosen);
            running = &one;
            one.run();
        } catch (...) {
            failure = std::current_exception();
        }
        running = nullptr;
    }).join();
    if (failure) std::rethrow_exception(failure);
}

unsigned char* dynamic_shared() {
    return grid().shared();
}

void copy_async(void* shared, const void* global, std::size_t bytes, std::size_t zero_filled) {
    device_thread& self = grid().current();
    self.file = "cuda_pipeline_primitives.h";
    self.line = 0;
    const bool aligned =
        reinterpret_cast<std::uintptr_t>(shared) % bytes == 0 && reinterpret_cast<std::uintptr_t>(global) % bytes == 0;
    if ((bytes != 4 && bytes != 8 && bytes != 16) || zero_filled > bytes || !aligned) {
        grid().fail(self, "an asynchronous copy of " + std::to_string(bytes) +
                              " bytes is misaligned, or not of 4, 8 or 16 bytes");
    }
    const pending_copy copy{shared, global, bytes, zero_filled};
    if (grid().late_copies())
        self.uncommitted.push_back(copy);
    else
        copy_now(copy);
}

void commit_copies() {
    device_thread& self = grid().current();
    self.committed.push_back(std::exchange(self.uncommitted, {}));
}

void wait_for_copies(std::size_t pending) {
    std::vector<std::vector<pending_copy>>& groups = grid().current().committed;
    while (groups.size() > pending) {
        for (const pending_copy& copy : groups.front()) copy_now(copy);
        groups.erase(groups.begin());
    }
}

int meet_block(block_operation what, int predicate, const char* file, int line) {
    grid_run& on = grid();
    device_thread& self = on.current();
    self.file = file;
    self.line = line;
    self.block_what = what;
    self.bits = predicate != 0;
    self.at = waiting::block;
    std::vector<device_thread>& all = on.threads();
    const bool complete = std::all_of(all.begin(), all.end(), [](const auto& t) { return t.at == waiting::block; });
    if (complete) {
        std::uint64_t count = 0;
        for (const device_thread& other : all) {
            count += other.bits;
            if (other.line != line || std::strcmp(other.file, file) != 0 || other.block_what != what) {
                on.fail(self, "threads of one block wait at different barriers, one of them at " + here(other));
            }
        }
        for (device_thread& other : all) {
            other.answer = count;
            other.at = waiting::nowhere;
        }
    }
    on.wait(self, self.at);
    return static_cast<int>(self.answer);
}

std::uint64_t meet_warp(warp_operation what, unsigned mask, std::uint64_t bits, int operand, int width, bool is_signed,
                        const char* file, int line) {
    grid_run& on = grid();
    device_thread& self = on.current();
    self.file = file;
    self.line = line;
    self.what = what;
    self.mask = mask;
    self.bits = bits;
    self.operand = operand;
    self.width = width;
    self.is_signed = is_signed;
    self.at = waiting::warp;
    const unsigned lane = self.index % lanes_per_warp;
    if ((mask >> lane & 1u) == 0) on.fail(self, "lane " + std::to_string(lane) + " is not in the mask it passes");
    std::vector<device_thread>& all = on.threads();
    std::array<const device_thread*, lanes_per_warp> warp{};
    if (const auto last = static_cast<unsigned>(std::bit_width(mask)) - 1; self.index - lane + last >= all.size()) {
        on.fail(self, "the mask names lane " + std::to_string(last) + ", and the block ends before it");
    }
    bool complete = true;
    for (unsigned i = 0; i < lanes_per_warp && complete; ++i) {
        if ((mask >> i & 1u) == 0) continue;
        const device_thread& other = all[self.index - lane + i];
        warp[i] = &other;
        complete = other.at == waiting::warp && other.what == what && other.mask == mask && other.line == line;
    }
    if (complete) {
        for (unsigned i = 0; i < lanes_per_warp; ++i) {
            if (warp[i] != nullptr) all[self.index - lane + i].answer = answer_for(on, *warp[i], warp);
        }
        for (unsigned i = 0; i < lanes_per_warp; ++i) {
            if (warp[i] != nullptr) all[self.index - lane + i].at = waiting::nowhere;
        }
    }
    on.wait(self, self.at);
    return self.answer;
}

} // namespace emulation
