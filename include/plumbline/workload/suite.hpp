// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_SUITE_HPP
#define PLUMBLINE_WORKLOAD_SUITE_HPP

#include <map>
#include <string>
#include <vector>

#include "plumbline/core/error.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace workload {

/// A named list of benchmark ids for each backend, in the order of the suite's file.
struct suite {
    std::string name;
    std::string description;
    std::map<std::string, std::vector<std::string>> ids; ///< by backend: "cuda", "cpu"; each list without repeats

    /// The ids for one backend; usage_error if the suite has no list for it.
    [[nodiscard]] const std::vector<std::string>& of(const std::string& backend) const {
        const auto at = ids.find(backend);
        if (at != ids.end()) return at->second;
        std::string known;
        for (const auto& entry : ids) known += (known.empty() ? "" : ", ") + entry.first;
        throw usage_error("suite \"" + name + "\" has no benchmarks for the backend \"" + backend +
                          "\" (it has some for: " + known + "); choose another --suite or --backend");
    }
};

} // namespace workload

PLUMBLINE_NAMESPACE_END

#endif
