// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_DATASHEET_HPP
#define PLUMBLINE_CUDA_DATASHEET_HPP

#include <string_view>

#include "plumbline/cuda/device.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// What the vendor's datasheet promises for a model: dense rates, FLOP/s or integer operations/s, and bytes/s.
/// Reports show it beside what was measured; nothing is ever judged by it.
struct datasheet {
    std::string_view model; ///< as the driver names it
    double fp32 = 0;
    double tf32 = 0;
    double bf16 = 0; ///< and fp16
    double fp8 = 0;  ///< 0: the chip has none
    double int8 = 0;
    double memory = 0;
};

/// NVIDIA H100 and H200 Tensor Core GPU and A100 datasheets; rates with sparsity are halved.
inline constexpr datasheet datasheets[] = {
    {"NVIDIA H200", 66.9e12, 494.7e12, 989.4e12, 1978.9e12, 1978.9e12, 4.8e12},
    {"NVIDIA H100 80GB HBM3", 66.9e12, 494.7e12, 989.4e12, 1978.9e12, 1978.9e12, 3.35e12},
    {"NVIDIA H100 PCIe", 51.2e12, 378.0e12, 756.5e12, 1513.0e12, 1513.0e12, 2.0e12},
    {"NVIDIA A100-SXM4-80GB", 19.5e12, 156.0e12, 312.0e12, 0, 624.0e12, 2.039e12},
    {"NVIDIA A100-SXM4-40GB", 19.5e12, 156.0e12, 312.0e12, 0, 624.0e12, 1.555e12},
    {"NVIDIA A100 80GB PCIe", 19.5e12, 156.0e12, 312.0e12, 0, 624.0e12, 1.935e12},
};

/// Adds the datasheet's figures to the properties of a device: "datasheet.bf16_flop_per_s", ...,
/// "datasheet.copy_bytes_per_s". Nothing for a model that is not listed.
inline void add_datasheet(result::device& to) {
    for (const datasheet& sheet : datasheets) {
        if (sheet.model != to.model) continue;
        to.properties["datasheet.fp32_flop_per_s"] = sheet.fp32;
        to.properties["datasheet.tf32_flop_per_s"] = sheet.tf32;
        to.properties["datasheet.bf16_flop_per_s"] = sheet.bf16;
        to.properties["datasheet.fp16_flop_per_s"] = sheet.bf16;
        if (sheet.fp8 > 0) to.properties["datasheet.fp8_flop_per_s"] = sheet.fp8;
        to.properties["datasheet.int8_flop_per_s"] = sheet.int8;
        to.properties["datasheet.copy_bytes_per_s"] = sheet.memory;
    }
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
