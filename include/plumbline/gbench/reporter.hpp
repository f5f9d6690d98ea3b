// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_GBENCH_REPORTER_HPP
#define PLUMBLINE_GBENCH_REPORTER_HPP

#include <vector>

#include "plumbline/gbench/record.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace gbench {

/// Display reporter that hands everything on to another one and keeps the program's own benchmarks in a record.
/// plumbline's benchmarks are in the record already and are shown under their plain ids, without the suffixes
/// "/iterations:1/manual_time" that tell how Google Benchmark was driven. Both arguments must outlive it.
class reporter : public ::benchmark::BenchmarkReporter {
public:
    reporter(::benchmark::BenchmarkReporter& shown, record& into) : shown_(shown), into_(into) {}

    bool ReportContext(const Context& context) override { return shown_.ReportContext(context); }

    void ReportRuns(const std::vector<Run>& runs) override {
        std::vector<Run> cleaned = runs;
        for (Run& run : cleaned) {
            if (into_.is_own(run.run_name.function_name)) {
                run.run_name.iterations.clear();
                run.run_name.time_type.clear();
            } else {
                into_.add_foreign(run);
            }
        }
        shown_.ReportRuns(cleaned);
    }

    void Finalize() override { shown_.Finalize(); }

private:
    ::benchmark::BenchmarkReporter& shown_;
    record& into_;
};

} // namespace gbench

PLUMBLINE_NAMESPACE_END

#endif
