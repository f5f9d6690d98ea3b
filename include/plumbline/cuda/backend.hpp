// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_BACKEND_HPP
#define PLUMBLINE_CUDA_BACKEND_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

#include "plumbline/cuda/clock.hpp"
#include "plumbline/cuda/device.hpp"
#include "plumbline/cuda/handle.hpp"
#include "plumbline/cuda/kernels.hpp"
#include "plumbline/cuda/recording.hpp"
#include "plumbline/measure/concepts.hpp"
#include "plumbline/result/result.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// A CUDA device as a place to measure: one non-blocking stream, events, clock marks, and the hold.
///
/// Every sample is in the queue before its first event can fire: play() holds the stream with a waiting kernel,
/// queues, and releases it from the host. The hold has a deadline in device time, so a held stream can never hang.
/// Where launches block the host (CUDA_LAUNCH_BLOCKING, compute-sanitizer, profilers) no stream can be held; the
/// constructor finds that out, play() then goes without, and can_hold() says so.
///
/// One thread at a time. Objects that hold device memory of this backend must not outlive it.
class backend {
public:
    using recording = cuda::recording;

    /// Opens device `ordinal` as CUDA counts them. Throws environment_error when CUDA cannot start.
    explicit backend(int ordinal = 0);
    ~backend();
    backend(const backend&) = delete; // samples and shared objects refer to it
    backend& operator=(const backend&) = delete;

    [[nodiscard]] std::string_view name() const noexcept { return "cuda"; }
    [[nodiscard]] const device_info& device() const noexcept { return device_; }
    [[nodiscard]] cudaStream_t stream() const noexcept { return stream_.get(); }

    /// Smallest step seen between two event times, ns.
    [[nodiscard]] double timer_resolution_ns() const noexcept { return timer_resolution_ns_; }
    [[nodiscard]] bool has_clock() const noexcept { return true; }

    /// SM clock with nothing but a short kernel running, MHz; waits for the stream's work first.
    [[nodiscard]] double read_clock_mhz();

    /// False where launches block the host, so that a stream cannot be held and samples may hold launch gaps.
    [[nodiscard]] bool can_hold() const noexcept { return can_hold_; }

    /// Launches `one` once, so that nothing is loaded lazily later, and prepares samples of `how.launches` launches.
    /// Successive launches, also across samples, rotate over the slots.
    [[nodiscard]] recording record(const measure::launch& one, const measure::recording_request& how);

    /// Takes `samples` samples. Marks, events and work of as many as the launch queue surely holds are queued behind
    /// one hold; more take several holds.
    [[nodiscard]] std::vector<measure::sample> play(recording& tape, std::size_t samples);

    /// Waits for all work of the stream; throws cuda_error if any of it failed.
    void synchronize() {
        const cudaError_t status = cudaStreamSynchronize(stream());
        if (status != cudaSuccess) check(status, "cudaStreamSynchronize", place());
    }

    /// Lets the device rest: waits for its work and sleeps.
    void idle(std::chrono::nanoseconds pause) {
        synchronize();
        std::this_thread::sleep_for(pause);
    }

    /// Enqueues a kernel that occupies one thread for `time` of device time: a planted slowdown (measure::spinner).
    void spin(std::chrono::nanoseconds time) { kernels::spin(stream(), static_cast<std::uint64_t>(time.count())); }

    /// The one T of this backend (a library handle, a workspace), made by T(backend&) or T() on first use and destroyed
    /// with the backend, last made first.
    template <class T>
    [[nodiscard]] T& shared() {
        for (const auto& [type, object] : shared_) {
            if (type == std::type_index(typeid(T))) return *static_cast<T*>(object.get());
        }
        std::shared_ptr<T> made;
        if constexpr (std::is_constructible_v<T, backend&>)
            made = std::make_shared<T>(*this);
        else
            made = std::make_shared<T>();
        shared_.emplace_back(std::type_index(typeid(T)), made);
        return *made;
    }

    /// Hands over the plan a baseline recorded for benchmark `id` (its id without "pinned"), for fixtures to replay.
    void pin(std::string id, result::evidence plan) { pinned_.insert_or_assign(std::move(id), std::move(plan)); }

    /// The recorded plan of a benchmark, or nullptr.
    [[nodiscard]] const result::evidence* pinned(const std::string& id) const {
        const auto at = pinned_.find(id);
        return at == pinned_.end() ? nullptr : &at->second;
    }

    /// "device 0 (NVIDIA H200)", for messages.
    [[nodiscard]] std::string place() const {
        return "device " + std::to_string(device_.ordinal) + " (" + device_.model + ")";
    }

private:
    /// Keeps the stream held while it lives; released early by release(). Never throws on the way out, so no failure
    /// can leave a held stream behind.
    class held_stream {
    public:
        held_stream(backend& on, std::chrono::nanoseconds deadline);
        ~held_stream() { release(); }
        held_stream(const held_stream&) = delete;
        held_stream& operator=(const held_stream&) = delete;
        void release() noexcept;
        /// Whether the deadline freed the stream; to be asked after the stream has been waited for.
        [[nodiscard]] bool expired() const noexcept;

    private:
        backend* on_;
        unsigned ticket_;
    };

    static constexpr std::chrono::nanoseconds hold_deadline = std::chrono::seconds{1};
    /// Of a hold in front of a sample that does not fit into the queue: time to fill it.
    static constexpr std::chrono::nanoseconds filling_deadline = std::chrono::milliseconds{20};
    /// Launches, marks and events to queue behind one hold; the queue has about 1024.
    static constexpr std::size_t queue_limit = 512;

    [[nodiscard]] unsigned mark_count() const noexcept { return 2 * static_cast<unsigned>(device_.sm_count); }
    void reserve_samples(std::size_t samples);
    void queue_sample(recording& tape, std::size_t at);
    [[nodiscard]] bool play_batch(recording& tape, std::size_t samples, std::vector<measure::sample>& done);
    [[nodiscard]] bool try_to_hold();
    [[nodiscard]] double measure_timer_resolution();

    device_info device_;
    cuda::stream stream_;
    pinned_memory hold_cells_; ///< two unsigned: the ticket released last, the ticket that expired last
    unsigned tickets_ = 0;
    bool can_hold_ = false;
    std::vector<event> events_; ///< begin and end of each sample of a batch
    std::vector<double> enqueue_ns_;
    device_memory marks_; ///< for each sample of a batch: marks before, marks after
    pinned_memory marks_read_;
    double timer_resolution_ns_ = 0;
    std::optional<recording> clock_reading_;
    std::map<std::string, result::evidence> pinned_;
    std::vector<std::pair<std::type_index, std::shared_ptr<void>>> shared_;
};

inline backend::backend(int ordinal) : device_(read_device(ordinal)) {
    check(cudaSetDevice(ordinal), "cudaSetDevice", place());
    stream_ = make_stream();
    hold_cells_ = pinned_memory(2 * sizeof(unsigned));
    hold_cells_.as<unsigned>()[0] = 0;
    hold_cells_.as<unsigned>()[1] = 0;
    reserve_samples(1);
    // Each of our own kernels is loaded here: loading one lazily behind a held stream would wait for that stream.
    kernels::mark_clocks(stream(), marks_.as<kernels::clock_mark>(), mark_count());
    kernels::spin(stream(), 0);
    kernels::spin_and_signal(stream(), 0, hold_cells_.on_device<unsigned>(), 0);
    kernels::nothing(stream());
    synchronize();
    can_hold_ = try_to_hold();
    timer_resolution_ns_ = measure_timer_resolution();
}

inline backend::~backend() {
    static_cast<void>(cudaStreamSynchronize(stream()));
    while (!shared_.empty()) shared_.pop_back();
}

inline backend::held_stream::held_stream(backend& on, std::chrono::nanoseconds deadline)
    : on_(&on), ticket_(on.tickets_ + 1) {
    auto* cells = on.hold_cells_.on_device<unsigned>();
    kernels::hold(on.stream(), cells, ticket_, static_cast<std::uint64_t>(deadline.count()), cells + 1);
    on.tickets_ = ticket_;
}

inline void backend::held_stream::release() noexcept {
    std::atomic_ref<unsigned>(on_->hold_cells_.as<unsigned>()[0]).store(ticket_, std::memory_order_release);
}

inline bool backend::held_stream::expired() const noexcept {
    return std::atomic_ref<unsigned>(on_->hold_cells_.as<unsigned>()[1]).load(std::memory_order_acquire) == ticket_;
}

/// Holds the stream for a moment and looks whether what is queued behind really waits.
inline bool backend::try_to_hold() {
    // Twice: the first time loads the kernel, which may take longer than the deadline.
    for (int attempt = 0; attempt < 2; ++attempt) {
        held_stream hold(*this, std::chrono::milliseconds(50));
        check(cudaEventRecord(events_[0].get(), stream()), "cudaEventRecord");
        const bool waits = cudaEventQuery(events_[0].get()) == cudaErrorNotReady;
        static_cast<void>(cudaGetLastError());
        hold.release();
        synchronize();
        if (waits && !hold.expired()) return true;
    }
    return false;
}

/// Times kernels of slightly different lengths; the smallest difference between two of the times is one step.
inline double backend::measure_timer_resolution() {
    std::vector<double> times;
    for (std::uint64_t i = 0; i < 48; ++i) {
        check(cudaEventRecord(events_[0].get(), stream()), "cudaEventRecord");
        kernels::spin(stream(), 5000 + 37 * i);
        check(cudaEventRecord(events_[1].get(), stream()), "cudaEventRecord");
        synchronize();
        times.push_back(elapsed_ns(events_[0], events_[1]));
    }
    std::sort(times.begin(), times.end());
    double step = 500; // what the CUDA documentation promises
    for (std::size_t i = 1; i < times.size(); ++i) {
        const double difference = times[i] - times[i - 1];
        if (difference >= 1) step = std::min(step, difference);
    }
    return step;
}

inline double backend::read_clock_mhz() {
    if (!clock_reading_) {
        const auto short_kernel = [this](std::size_t) { kernels::spin(stream(), 20000); };
        clock_reading_.emplace(record(short_kernel, {1, 1, false}));
    }
    const std::optional<double> mhz = play(*clock_reading_, 1).front().clock_mhz;
    if (!mhz) throw error("no multiprocessor of " + place() + " answered twice when its clock was read");
    return *mhz;
}

inline void backend::reserve_samples(std::size_t samples) {
    while (events_.size() < 2 * samples) events_.push_back(make_event());
    enqueue_ns_.resize(std::max(enqueue_ns_.size(), samples));
    const std::size_t bytes = 2 * samples * mark_count() * sizeof(kernels::clock_mark);
    if (marks_.size() < bytes) {
        marks_ = device_memory(bytes);
        marks_read_ = pinned_memory(bytes);
    }
}

inline backend::recording backend::record(const measure::launch& one, const measure::recording_request& how) {
    one(0);
    synchronize();
    return recording(stream(), one, how);
}

inline void backend::queue_sample(recording& tape, std::size_t at) {
    auto* marks = marks_.as<kernels::clock_mark>() + 2 * at * mark_count();
    kernels::mark_clocks(stream(), marks, mark_count());
    check(cudaEventRecord(events_[2 * at].get(), stream()), "cudaEventRecord");
    const auto begin = std::chrono::steady_clock::now();
    tape.enqueue(stream());
    const auto end = std::chrono::steady_clock::now();
    check(cudaEventRecord(events_[2 * at + 1].get(), stream()), "cudaEventRecord");
    kernels::mark_clocks(stream(), marks + mark_count(), mark_count());
    enqueue_ns_[at] = std::chrono::duration<double, std::nano>(end - begin).count();
}

/// One hold. False, with nothing added to `done`, when the deadline freed the stream before the host did: then work
/// may have started before all of it was queued. A sample that outgrows the queue cannot but start so: the device has
/// hundreds of kernels before it, and the host adds to them faster than it works them off.
inline bool backend::play_batch(recording& tape, std::size_t samples, std::vector<measure::sample>& done) {
    reserve_samples(samples);
    const std::size_t bytes = 2 * samples * mark_count() * sizeof(kernels::clock_mark);
    check(cudaMemsetAsync(marks_.data(), 0, bytes, stream()), "cudaMemsetAsync", "clock marks");
    bool in_time = true;
    {
        std::optional<held_stream> hold;
        if (can_hold_) hold.emplace(*this, tape.outgrows_queue() ? filling_deadline : hold_deadline);
        for (std::size_t i = 0; i < samples; ++i) queue_sample(tape, i);
        check(cudaMemcpyAsync(marks_read_.data(), marks_.data(), bytes, cudaMemcpyDeviceToHost, stream()),
              "cudaMemcpyAsync", "clock marks");
        if (hold) hold->release();
        synchronize();
        if (hold) in_time = tape.outgrows_queue() || !hold->expired();
    }
    if (!in_time) return false;
    const auto* marks = marks_read_.as<kernels::clock_mark>();
    for (std::size_t i = 0; i < samples; ++i, marks += 2 * mark_count()) {
        measure::sample taken;
        taken.elapsed_ns = elapsed_ns(events_[2 * i], events_[2 * i + 1]);
        taken.clock_mhz = mean_clock_mhz(marks, marks + mark_count(), mark_count());
        taken.enqueue_ns = enqueue_ns_[i];
        done.push_back(taken);
    }
    return true;
}

inline std::vector<measure::sample> backend::play(recording& tape, std::size_t samples) {
    std::vector<measure::sample> done;
    done.reserve(samples);
    const std::size_t cost = tape.queue_cost() + 4; // and two marks, two events
    int failures = 0;
    while (done.size() < samples) {
        const std::size_t fitting = tape.outgrows_queue() ? 1 : std::max<std::size_t>(queue_limit / cost, 1);
        const std::size_t batch = std::min({samples - done.size(), fitting, tape.most_at_once()});
        if (play_batch(tape, batch, done)) continue;
        // Either the host was away for a second, or the queue was full and a launch waited for the held stream.
        if (batch > 1) {
            tape.most_at_once(batch / 2);
        } else if (++failures == 2) {
            // A host that is not slow can do without the hold.
            tape.outgrows_queue(true);
            static_cast<void>(play_batch(tape, 1, done));
            if (*done.back().enqueue_ns < 0.5 * static_cast<double>(hold_deadline.count())) continue;
            throw error("the stream of " + place() + " was held for " +
                        std::to_string(std::chrono::duration<double>(hold_deadline).count()) + " s and a sample of " +
                        std::to_string(tape.launches()) +
                        " launches was still not in its queue; use fewer launches a sample, or a graph");
        }
    }
    return done;
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
