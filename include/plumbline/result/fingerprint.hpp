// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RESULT_FINGERPRINT_HPP
#define PLUMBLINE_RESULT_FINGERPRINT_HPP

#include <map>
#include <string>

#include "plumbline/core/hash.hpp"
#include "plumbline/result/reading.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace result {

/// What an attribute means to a comparison.
enum class attribute_class {
    identity, ///< comparability hash: other hardware, nothing to compare
    config,   ///< provenance hash: may differ and may explain a change
    state,    ///< never hashed: clocks, temperature, free memory, other processes
};

/// One attribute of an environment.
struct attribute {
    attribute_class kind = attribute_class::config;
    int link = 1;       ///< the link of the chain it belongs to: 1 driver and hardware, 2 acceleration libraries,
                        ///< 3 framework, 4 data pipeline, 5 training strategy, 6 inference
    std::string source; ///< where it was read: "nvml", "proc", "sys", "env", "cudart", "build", ...
    reading read;

    bool operator==(const attribute&) const = default;
};

/// The environment a number was taken in: attributes by dotted name ("gpu.sm_count", "env.NVIDIA_TF32_OVERRIDE").
struct fingerprint {
    std::map<std::string, attribute> attributes;

    /// Hash over the known attributes of one class; unknown ones do not take part, so that unknown becoming known
    /// is visible in the attributes but is never a change of hash by a value nobody read.
    [[nodiscard]] std::string hash(attribute_class kind) const {
        scalar_map values;
        for (const auto& [name, entry] : attributes) {
            if (entry.kind == kind && entry.read.known()) values[name] = entry.read.value;
        }
        return short_hash(values);
    }
    [[nodiscard]] std::string comparability_hash() const { return hash(attribute_class::identity); }
    [[nodiscard]] std::string provenance_hash() const { return hash(attribute_class::config); }

    [[nodiscard]] const attribute* find(const std::string& name) const {
        const auto at = attributes.find(name);
        return at == attributes.end() ? nullptr : &at->second;
    }
};

} // namespace result

PLUMBLINE_NAMESPACE_END

#endif
