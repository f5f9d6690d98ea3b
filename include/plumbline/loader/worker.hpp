// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_WORKER_HPP
#define PLUMBLINE_LOADER_WORKER_HPP

#include <time.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>

#include "plumbline/loader/batch.hpp"
#include "plumbline/loader/failure.hpp"
#include "plumbline/loader/pipeline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// Processor time of the calling thread in nanoseconds.
[[nodiscard]] inline double thread_cpu_ns() noexcept {
    timespec now{};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Builds batches with one set of stages. Belongs to one thread.
class worker {
public:
    explicit worker(const pipeline& what) : what_(&what), own_(what.make()) {}

    /// Loads one sample behind those that are in the batch already. A sample that fails is noted in the record.
    void load(std::size_t sample, const sample_random& random, std::byte* batch, batch_record& record) {
        unit_.sample = sample;
        unit_.random = random;
        unit_.box = {};
        unit_.flipped = false;
        unit_.oriented = 0;
        unit_.label = 0;
        unit_.encoded.clear();
        try {
            run_stages(batch + record.samples.size() * what_->sample_bytes, record);
        } catch (const sample_error& problem) {
            note(record, problem.kind(), problem.what());
            return;
        } catch (const std::exception& problem) {
            note(record, failure_kind::other, problem.what());
            return;
        }
        record.samples.push_back(sample);
        record.labels.push_back(unit_.label);
        record.boxes.push_back(unit_.box);
        record.oriented += unit_.oriented != 0 ? 1 : 0;
    }

    /// Finishes a batch.
    void assemble(std::byte* batch, batch_record& record) {
        if (!own_.assemble || record.samples.empty()) return;
        const clock::time_point begin = clock::now();
        own_.assemble(batch, record.samples.size());
        add(record, stage::assemble, begin, clock::now());
    }

private:
    using clock = std::chrono::steady_clock;

    void run_stages(std::byte* out, batch_record& record) {
        clock::time_point begin = clock::now();
        const auto timed = [&](stage which, const auto& function) {
            // A stage that throws has used its time all the same.
            struct charge {
                stage which;
                clock::time_point& begin;
                batch_record& record;
                ~charge() {
                    const clock::time_point end = clock::now();
                    add(record, which, begin, end);
                    begin = end;
                }
            } const at_end{which, begin, record};
            function();
        };
        if (own_.read) timed(stage::read, [&] { own_.read(unit_); });
        record.bytes_read += unit_.encoded.size();
        if (own_.decode) timed(stage::decode, [&] { own_.decode(unit_); });
        timed(stage::transform, [&] { own_.transform(unit_, out); });
    }

    static void add(batch_record& record, stage which, clock::time_point begin, clock::time_point end) noexcept {
        record.stage_ns[static_cast<std::size_t>(which)] +=
            std::chrono::duration<double, std::nano>(end - begin).count();
    }

    void note(batch_record& record, failure_kind kind, const char* message) const {
        const std::string name = what_->name ? what_->name(unit_.sample) : "sample " + std::to_string(unit_.sample);
        record.failures.push_back({unit_.sample, name, kind, message});
    }

    const pipeline* what_;
    stages own_;
    work unit_;
};

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
