// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_DATA_LOADER_THREADS_HPP
#define PLUMBLINE_LOADER_DATA_LOADER_THREADS_HPP

// What the threads of a data_loader do: workers that build batches, and one that copies them to a device.

#include <chrono>
#include <cstddef>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "plumbline/core/error.hpp"
#include "plumbline/loader/data_loader.hpp"
#include "plumbline/loader/worker.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

inline void data_loader::start_threads() {
    threads_.reserve(how_.num_workers + 1);
    try {
        for (std::size_t i = 0; i < how_.num_workers; ++i)
            threads_.emplace_back([this] { run_thread([this] { work_loop(); }); });
        if (copy_ && how_.num_workers != 0) threads_.emplace_back([this] { run_thread([this] { copy_loop(); }); });
    } catch (const std::system_error& problem) {
        const std::size_t started = threads_.size();
        stop_threads();
        throw error("could start only " + std::to_string(started) + " of " + std::to_string(how_.num_workers) +
                    " workers: " + problem.what() + "; see ulimit -u and the pids limit of the container");
    }
}

inline void data_loader::stop_threads() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        stop_ = true;
        cancelled_ = true;
    }
    work_.notify_all();
    copyable_.notify_all();
    for (std::thread& one : threads_) one.join();
    threads_.clear();
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = false;
    fatal_ = nullptr; // a second thread may have failed after the first one's failure was taken
}

/// Ends the epoch with a thread's failure, the first one if there are several. Called with the lock held and outside
/// the handler that caught it: whoever rethrows it is then its only owner, and what() is never freed by one thread
/// while another reads it.
inline void data_loader::fail(std::exception_ptr problem) {
    if (!fatal_) fatal_ = std::move(problem);
    progress_.notify_all();
}

/// Runs a thread's body; what it throws ends the epoch.
template <class Body>
void data_loader::run_thread(Body body) {
    std::exception_ptr problem;
    try {
        body();
    } catch (...) {
        problem = std::current_exception();
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (problem) fail(std::move(problem));
}

inline void data_loader::work_loop() {
    worker mine(what_);
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        work_.wait(lock, [this] { return stop_ || issuable(); });
        if (stop_) return;
        slot* const to = issue();
        lock.unlock();
        std::exception_ptr problem;
        try {
            fill(*to, mine);
        } catch (...) {
            problem = std::current_exception();
        }
        lock.lock();
        --busy_;
        if (problem) {
            free_.push_back(to);
            return fail(std::move(problem));
        }
        if (how_.in_order)
            ready_.emplace(to->record.index, to);
        else
            completed_.push_back(to);
        progress_.notify_all();
        copyable_.notify_all();
    }
}

inline void data_loader::copy_loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        copyable_.wait(lock, [this] { return stop_ || (ready() && !free_buffers_.empty()); });
        if (stop_) return;
        finished done = take_ready();
        done.buffer = free_buffers_.back();
        free_buffers_.pop_back();
        ++busy_;
        lock.unlock();
        std::exception_ptr problem;
        try {
            copy(done);
        } catch (...) {
            problem = std::current_exception();
        }
        lock.lock();
        --busy_;
        free_.push_back(std::exchange(done.host, nullptr));
        if (problem) {
            free_buffers_.push_back(done.buffer);
            return fail(std::move(problem));
        }
        copied_.push_back(std::move(done));
        progress_.notify_all();
        work_.notify_all();
    }
}

/// Copies a batch to its device buffer and waits for the end, so that its slot can be filled again.
inline void data_loader::copy(finished& done) const {
    if (done.record.samples.empty()) return;
    const clock::time_point begin = clock::now();
    copy_.start(done.buffer, done.host->memory.data(), done.record.samples.size() * what_.sample_bytes);
    copy_.wait(done.buffer);
    done.record.stage_ns[static_cast<std::size_t>(stage::copy)] +=
        std::chrono::duration<double, std::nano>(clock::now() - begin).count();
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
