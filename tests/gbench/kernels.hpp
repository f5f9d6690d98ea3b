// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_GBENCH_KERNELS_HPP
#define PLUMBLINE_TESTS_GBENCH_KERNELS_HPP

#include <cstddef>
#include <string>

#include "../measure/fake_backend.hpp"

/// Kernels on the scripted device: one that works, one that fails, one that the device cannot do.
namespace kernels {

struct params {
    std::string name = "user/steady";
    double work_ns = 1000;
    std::string trouble; ///< "", "fails", "unsupported"
};

inline plumbline::workload::description describe(const params& p) {
    plumbline::workload::description what;
    what.id = p.name;
    what.family = "user";
    what.params = {{"work_ns", p.work_ns}};
    what.flop = 2000;
    what.bytes = 4000;
    return what;
}

class steady {
public:
    using params = kernels::params;

    steady(fake::backend& on, const params& p, std::size_t) : work_ns_(p.work_ns) {
        if (p.trouble == "fails") throw plumbline::error("the planted failure of " + p.name);
        if (p.trouble == "unsupported") throw plumbline::unsupported_error("this device has no " + p.name);
        static_cast<void>(on);
    }
    void run(fake::backend& on, std::size_t) { on.enqueue(work_ns_); }

private:
    double work_ns_;
};

} // namespace kernels

#endif
