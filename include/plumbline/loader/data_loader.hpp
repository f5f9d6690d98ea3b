// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_DATA_LOADER_HPP
#define PLUMBLINE_LOADER_DATA_LOADER_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/loader/batch.hpp"
#include "plumbline/loader/memory.hpp"
#include "plumbline/loader/options.hpp"
#include "plumbline/loader/pipeline.hpp"
#include "plumbline/loader/worker.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// Loads a data set in batches with worker threads.
///
/// As in PyTorch a batch is built by one worker, num_workers x prefetch_factor batches are in flight at most, and one
/// more is started for each one that is consumed. Unlike there, workers take the next batch when they are free
/// instead of in turn, and write it in place into the ring: nothing is pickled, moved through /dev/shm, or copied
/// into pinned memory. Contents and order of the batches do not depend on the number of workers.
///
/// One consumer: begin_epoch, next and the release of batches belong to one thread. A sample that cannot be loaded is
/// named and counted, and its batch is shorter. The loader must outlive its batches.
class data_loader {
public:
    data_loader(pipeline what, options how, const host_memory& memory = pageable_memory(), device_copy copy = {});
    data_loader(const data_loader&) = delete;
    data_loader& operator=(const data_loader&) = delete;
    ~data_loader() { stop_threads(); }

    /// Starts an epoch; one that is under way is given up.
    void begin_epoch(std::uint64_t epoch);

    /// The next batch, or nothing at the end of the epoch. Throws what a worker's make, assemble or copy threw, and
    /// throws it again until another epoch is begun;
    /// usage_error when the caller holds every batch of the ring; error when not one sample can be loaded.
    [[nodiscard]] std::optional<batch> next();

    [[nodiscard]] const epoch_statistics& statistics() const noexcept { return statistics_; }
    [[nodiscard]] const options& settings() const noexcept { return how_; }
    [[nodiscard]] const pipeline& data() const noexcept { return what_; }
    /// Batches in a whole epoch.
    [[nodiscard]] std::size_t batches() const noexcept { return batches_; }

private:
    using clock = std::chrono::steady_clock;
    static constexpr std::size_t no_buffer = static_cast<std::size_t>(-1);

    struct slot {
        host_buffer memory;
        batch_record record;
    };
    /// A finished batch: in a slot of the ring, or already in a device buffer.
    struct finished {
        slot* host = nullptr;
        batch_record record;
        std::size_t buffer = no_buffer;
    };

    [[nodiscard]] std::size_t limit() const noexcept {
        return how_.num_workers == 0 ? 1 : how_.num_workers * how_.prefetch_factor;
    }
    [[nodiscard]] bool issuable() const noexcept {
        return next_issue_ < batches_ && outstanding_ < limit() && !free_.empty();
    }
    [[nodiscard]] slot* issue();
    void fill(slot& to, worker& by) const;
    void work_loop();
    void copy_loop();
    void copy(finished& done) const;
    [[nodiscard]] bool ready() const noexcept;
    [[nodiscard]] finished take_ready();
    [[nodiscard]] bool stuck() const noexcept;
    [[nodiscard]] finished await(std::unique_lock<std::mutex>& lock);
    [[nodiscard]] finished load_here(std::unique_lock<std::mutex>& lock);
    [[nodiscard]] batch hand_out(finished done);
    void release(slot* host, std::size_t buffer);
    void abandon_epoch();
    void start_threads();
    void stop_threads();
    void fail(std::exception_ptr problem);
    template <class Body>
    void run_thread(Body body);
    void check_some_loaded(bool finished_epoch) const;

    pipeline what_;
    options how_;
    device_copy copy_;
    std::size_t slot_bytes_;
    std::vector<slot> slots_;
    std::optional<worker> own_worker_; // of the consumer's thread, without worker threads
    std::vector<std::thread> threads_;
    epoch_statistics statistics_; // of the consumer's thread
    clock::time_point began_{};

    // Read by workers without the lock; written only while none of them is busy.
    std::vector<std::size_t> order_;
    std::uint64_t epoch_ = 0;
    std::size_t batches_ = 0;
    std::atomic<bool> cancelled_{false};

    mutable std::mutex mutex_;         // guards everything below
    std::condition_variable work_;     // a batch can be issued, or stop
    std::condition_variable progress_; // something finished, for the consumer
    std::condition_variable copyable_; // something finished or a device buffer is free, for the copying thread
    std::vector<slot*> free_;
    std::vector<std::size_t> free_buffers_;
    std::map<std::size_t, slot*> ready_; // by index of the batch, for ordered delivery
    std::deque<slot*> completed_;        // as completed, for unordered delivery
    std::deque<finished> copied_;
    std::size_t next_issue_ = 0;
    std::size_t next_ready_ = 0; // batches taken out of ready_ or completed_
    std::size_t delivered_ = 0;
    std::size_t outstanding_ = 0; // issued, not yet delivered
    std::size_t busy_ = 0;        // threads that work on a batch
    bool stop_ = false;
    std::exception_ptr fatal_;
};

inline data_loader::data_loader(pipeline what, options how, const host_memory& memory, device_copy copy)
    : what_(std::move(what)), how_(how), copy_(std::move(copy)), slot_bytes_(how.batch_size * what_.sample_bytes) {
    if (what_.samples == 0 || what_.sample_bytes == 0) throw usage_error("the data set of the loader is empty");
    if (how_.batch_size == 0 || how_.prefetch_factor == 0) {
        throw usage_error("a loader needs a batch size and a prefetch factor of 1 at least");
    }
    // Two more than can be in flight: one in the consumer's hands, one on its way to the device.
    const std::size_t count = limit() + 2;
    slots_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) slots_.push_back({host_buffer(memory, slot_bytes_), {}});
    for (slot& one : slots_) free_.push_back(&one);
    if (!copy_) return;
    copy_.reserve(copy_.buffers, slot_bytes_);
    for (std::size_t i = 0; i < copy_.buffers; ++i) free_buffers_.push_back(i);
}

inline void data_loader::begin_epoch(std::uint64_t epoch) {
    began_ = clock::now();
    abandon_epoch();
    statistics_ = {};
    const std::size_t length = how_.epoch_samples != 0 ? how_.epoch_samples : what_.samples;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        order_ = epoch_order(what_.samples, length, how_.shuffle, how_.seed, epoch);
        epoch_ = epoch;
        batches_ = how_.drop_last ? length / how_.batch_size : (length + how_.batch_size - 1) / how_.batch_size;
        next_issue_ = next_ready_ = delivered_ = outstanding_ = 0;
        cancelled_ = false;
    }
    if (threads_.empty()) start_threads();
    work_.notify_all();
    statistics_.start_ns = std::chrono::duration<double, std::nano>(clock::now() - began_).count();
}

/// Waits until no thread works on the epoch under way, and takes back what is finished.
inline void data_loader::abandon_epoch() {
    std::unique_lock<std::mutex> lock(mutex_);
    cancelled_ = true;
    next_issue_ = batches_;
    progress_.wait(lock, [this] { return busy_ == 0; });
    for (const auto& [index, done] : ready_) free_.push_back(done);
    for (slot* const done : completed_) free_.push_back(done);
    for (const finished& done : copied_) free_buffers_.push_back(done.buffer);
    ready_.clear();
    completed_.clear();
    copied_.clear();
    const bool failed = fatal_ != nullptr;
    fatal_ = nullptr;
    lock.unlock();
    if (failed) stop_threads(); // one of them has ended
}

/// The next batch to build, in a free slot. Called with the lock held, when issuable().
inline data_loader::slot* data_loader::issue() {
    slot* const to = free_.back();
    free_.pop_back();
    to->record = {};
    to->record.index = next_issue_++;
    ++outstanding_;
    ++busy_;
    return to;
}

inline void data_loader::fill(slot& to, worker& by) const {
    const double cpu = thread_cpu_ns();
    const std::size_t begin = to.record.index * how_.batch_size;
    const std::size_t end = std::min(begin + how_.batch_size, order_.size());
    for (std::size_t at = begin; at < end && !cancelled_.load(std::memory_order_relaxed); ++at) {
        by.load(order_[at], sample_random(how_.seed, epoch_, at), to.memory.data(), to.record);
    }
    by.assemble(to.memory.data(), to.record);
    to.record.cpu_ns = thread_cpu_ns() - cpu;
}

/// Whether a batch is built whose turn it is. With the lock held.
inline bool data_loader::ready() const noexcept {
    if (!how_.in_order) return !completed_.empty();
    return !ready_.empty() && ready_.begin()->first == next_ready_;
}

inline data_loader::finished data_loader::take_ready() {
    finished done;
    if (how_.in_order) {
        done.host = ready_.begin()->second;
        ready_.erase(ready_.begin());
    } else {
        done.host = completed_.front();
        completed_.pop_front();
    }
    ++next_ready_;
    done.record = std::move(done.host->record);
    return done;
}

/// Whether nothing will ever finish, because the caller holds what the threads would need. With the lock held.
inline bool data_loader::stuck() const noexcept {
    const bool copying = copy_ && ready() && !free_buffers_.empty();
    return busy_ == 0 && !issuable() && !copying;
}

inline data_loader::finished data_loader::await(std::unique_lock<std::mutex>& lock) {
    const auto have = [this] { return copy_ ? !copied_.empty() : ready(); };
    progress_.wait(lock, [&] { return fatal_ || have() || stuck(); });
    if (fatal_) std::rethrow_exception(fatal_);
    if (!have()) {
        throw usage_error("next() was called while every batch of the ring is held; release one first (there are " +
                          std::to_string(copy_ ? copy_.buffers : slots_.size()) + ")");
    }
    if (!copy_) return take_ready();
    finished done = std::move(copied_.front());
    copied_.pop_front();
    return done;
}

/// Builds and copies the next batch in the caller's thread: num_workers = 0.
inline data_loader::finished data_loader::load_here(std::unique_lock<std::mutex>& lock) {
    // What is in the way is said there: an earlier failure, or the batches that are held.
    if (fatal_ || !issuable() || (copy_ && free_buffers_.empty())) return await(lock);
    slot* const to = issue();
    finished done{to, {}, no_buffer};
    if (copy_) {
        done.buffer = free_buffers_.back();
        free_buffers_.pop_back();
    }
    lock.unlock();
    std::exception_ptr problem;
    try {
        if (!own_worker_) own_worker_.emplace(what_);
        fill(*to, *own_worker_);
        done.record = std::move(to->record);
        if (copy_) copy(done);
    } catch (...) {
        problem = std::current_exception();
    }
    lock.lock();
    --busy_;
    if (problem || copy_) free_.push_back(std::exchange(done.host, nullptr));
    if (!problem) return done;
    if (copy_) free_buffers_.push_back(done.buffer);
    --outstanding_;
    fatal_ = problem; // the epoch is over, as with a worker's failure
    std::rethrow_exception(problem);
}

inline std::optional<batch> data_loader::next() {
    for (;;) {
        std::unique_lock<std::mutex> lock(mutex_);
        if (delivered_ == batches_) break;
        const clock::time_point begin = clock::now();
        finished done = how_.num_workers == 0 ? load_here(lock) : await(lock);
        ++delivered_;
        --outstanding_;
        lock.unlock();
        work_.notify_all();
        const double waited_ns = std::chrono::duration<double, std::nano>(clock::now() - begin).count();
        statistics_.add(done.record, done.record.samples.size() * what_.sample_bytes, waited_ns);
        if (!done.record.samples.empty()) return hand_out(std::move(done));
        release(done.host, done.buffer);
        check_some_loaded(false);
    }
    check_some_loaded(true);
    if (!how_.persistent_workers) stop_threads();
    return std::nullopt;
}

inline batch data_loader::hand_out(finished done) {
    if (statistics_.first_batch_ns == 0) {
        statistics_.first_batch_ns = std::chrono::duration<double, std::nano>(clock::now() - began_).count();
    }
    const std::size_t bytes = done.record.samples.size() * what_.sample_bytes;
    const std::byte* const host = done.host != nullptr ? done.host->memory.data() : nullptr;
    const void* const device = done.buffer != no_buffer && copy_.address ? copy_.address(done.buffer) : nullptr;
    return batch(std::move(done.record), host, device, bytes,
                 [this, from = done.host, buffer = done.buffer] { release(from, buffer); });
}

inline void data_loader::release(slot* host, std::size_t buffer) {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (host != nullptr) free_.push_back(host);
        if (buffer != no_buffer) free_buffers_.push_back(buffer);
    }
    work_.notify_all();
    copyable_.notify_all();
}

inline void data_loader::check_some_loaded(bool finished_epoch) const {
    const std::size_t failed = statistics_.failures.total();
    if (statistics_.samples != 0 || failed == 0) return;
    if (!finished_epoch && failed < what_.samples) return;
    throw error("not one sample of the data set could be loaded; " + statistics_.failures.text());
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#include "plumbline/loader/data_loader_threads.hpp" // the other half of the definitions

#endif
