// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_CANARY_CANARY_HPP
#define PLUMBLINE_CUDA_CANARY_CANARY_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/core/hash.hpp"
#include "plumbline/cuda/backend.hpp"
#include "plumbline/cuda/canary/frozen.hpp"
#include "plumbline/cuda/driver.hpp"
#include "plumbline/cuda/inspect.hpp"
#include "plumbline/workload/probe.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// Benchmarks of the hardware alone: their machine code is part of plumbline and not made by any compiler, library or
/// (on the architectures it holds code for) driver of the machine. A slower canary is a slower machine.
namespace canary {

/// How much work one launch is. Changing any of it is a new revision, as changing the code is.
inline constexpr int revision = 1;
static_assert(revision == workload::probe::params{}.revision, "ids say which canaries they mean");
inline constexpr int mma_rounds = 2048;
inline constexpr int fma_rounds = 4096;
inline constexpr unsigned mma_blocks_per_sm = 2;
inline constexpr unsigned fma_blocks_per_sm = 8;
inline constexpr unsigned threads = 256;

/// What the 32 threads of any warp write, added up; computed from the definition in canary.cu by tests/cuda.
inline constexpr std::uint32_t mma_warp_sum = 0x0227c800;
inline constexpr std::uint32_t fma_warp_sum = 0x7b3f05a9;

/// Bytes of a base64 text without line breaks.
[[nodiscard]] inline std::vector<unsigned char> decode_base64(std::string_view text) {
    std::vector<unsigned char> bytes;
    bytes.reserve(text.size() / 4 * 3);
    std::uint32_t bits = 0;
    int held = 0;
    for (char c : text) {
        const int digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                          : c >= 'a' && c <= 'z' ? c - 'a' + 26
                          : c >= '0' && c <= '9' ? c - '0' + 52
                          : c == '+'             ? 62
                          : c == '/'             ? 63
                                                 : -1;
        if (digit < 0) break; // '=': the end
        bits = bits << 6 | static_cast<std::uint32_t>(digit);
        held += 6;
        if (held < 8) continue;
        held -= 8;
        bytes.push_back(static_cast<unsigned char>(bits >> held & 0xff));
    }
    return bytes;
}

/// Whether the frozen code holds machine code for a compute capability (80 for 8.0): the same major version, at
/// least its minor one. On others the driver compiles its PTX, and the driver's version is part of the code.
[[nodiscard]] constexpr bool has_machine_code(int capability) noexcept {
    for (int made : {80, 90, 100, 120}) {
        if (capability / 10 == made / 10 && capability >= made) return true;
    }
    return false;
}

/// The loaded canaries of a backend (backend::shared).
class code {
public:
    explicit code(backend& on)
        : calls(on.shared<driver>()), image_(decode_base64(frozen_code)), module_(calls, image_.data(), "the canaries"),
          mma(module_.function("plumbline_canary_mma")), fma(module_.function("plumbline_canary_fma")),
          copy(module_.function("plumbline_canary_copy")) {}

    const driver& calls;

private:
    std::vector<unsigned char> image_;
    code_module module_;

public:
    CUfunction mma;
    CUfunction fma;
    CUfunction copy;
};

/// Evidence of a canary: which machine code ran.
[[nodiscard]] inline result::evidence describe_code(backend& on, CUfunction kernel) {
    const bool frozen = has_machine_code(on.device().capability());
    int driver_version = 0;
    check(cudaDriverGetVersion(&driver_version), "cudaDriverGetVersion");
    // Code compiled from the PTX is only as constant as the driver.
    const std::string made_by = frozen ? std::string("frozen") : "driver" + std::to_string(driver_version);
    result::evidence ran;
    ran.implementation = "canary/r" + std::to_string(revision) + "/sm" + std::to_string(on.device().capability()) +
                         '/' + made_by + '/' + std::string(frozen_sha256).substr(0, 8);
    const driver& calls = on.shared<driver>();
    ran.parts["code_hash"] = short_hash(ran.implementation + frozen_sha256);
    ran.parts["code"] = std::string(frozen ? "machine code" : "ptx");
    ran.parts["code_sha256"] = std::string(frozen_sha256);
    ran.parts["registers"] = std::int64_t{calls.attribute(kernel, CU_FUNC_ATTRIBUTE_NUM_REGS)};
    ran.parts["binary_version"] = std::int64_t{calls.attribute(kernel, CU_FUNC_ATTRIBUTE_BINARY_VERSION)};
    return ran;
}

/// canary_mma and canary_fma: everything in registers; each thread writes one number at the end.
class compute {
public:
    using params = workload::probe::params;

    compute(backend& on, const params& p, std::size_t)
        : params_(p), loaded_(&on.shared<code>()), tensor_(p.what != workload::probe::kind::canary_fma),
          blocks_(static_cast<unsigned>(on.device().sm_count) * (tensor_ ? mma_blocks_per_sm : fma_blocks_per_sm)),
          out_(std::size_t{blocks_} * threads * sizeof(std::uint32_t)) {}

    void run(backend& on, std::size_t) {
        void* out = out_.data();
        int rounds = tensor_ ? mma_rounds : fma_rounds;
        void* arguments[] = {&out, &rounds};
        loaded_->calls.launch(kernel(), blocks_, threads, on.stream(), arguments);
    }

    /// Every warp of the device must have computed exactly what the definition gives.
    void verify(backend& on) {
        check(cudaMemsetAsync(out_.data(), 0xff, out_.size(), on.stream()), "cudaMemsetAsync");
        run(on, 0);
        std::vector<std::uint32_t> sums(out_.size() / sizeof(std::uint32_t));
        check(cudaMemcpyAsync(sums.data(), out_.data(), out_.size(), cudaMemcpyDeviceToHost, on.stream()),
              "cudaMemcpyAsync", "canary sums");
        on.synchronize();
        require_warp_sums(sums);
    }

    /// Throws verification_error unless each 32 of `sums` add up to the constant. Public for tests.
    void require_warp_sums(const std::vector<std::uint32_t>& sums) const {
        const std::uint32_t expected = tensor_ ? mma_warp_sum : fma_warp_sum;
        for (std::size_t warp = 0; warp * 32 < sums.size(); ++warp) {
            std::uint32_t sum = 0;
            for (std::size_t lane = 0; lane < 32; ++lane) sum += sums[warp * 32 + lane];
            if (sum == expected) continue;
            const double off = static_cast<double>(sum) - static_cast<double>(expected);
            throw verification_error(workload::probe::id(params_) + ": warp " + std::to_string(warp) + " of " +
                                         std::to_string(sums.size() / 32) +
                                         " computed a wrong result: this GPU is faulty, take it out of service",
                                     off < 0 ? -off : off, 1, warp);
        }
    }

    [[nodiscard]] result::evidence evidence(backend& on) const {
        result::evidence ran = describe_code(on, kernel());
        ran.parts["tensor_cores"] = tensor_;
        return ran;
    }

private:
    [[nodiscard]] CUfunction kernel() const noexcept { return tensor_ ? loaded_->mma : loaded_->fma; }

    params params_;
    code* loaded_; ///< owned by the backend
    bool tensor_;
    unsigned blocks_;
    device_memory out_;
};

} // namespace canary

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
