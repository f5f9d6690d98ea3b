// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CPU_PROBE_HPP
#define PLUMBLINE_CPU_PROBE_HPP

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plumbline/cpu/backend.hpp"
#include "plumbline/cpu/canary.hpp"
#include "plumbline/cpu/memory.hpp"
#include "plumbline/cpu/onednn.hpp"
#include "plumbline/measure/benchmark.hpp"
#include "plumbline/workload/digest.hpp"
#include "plumbline/workload/probe.hpp"
#include "plumbline/workload/random.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// The probes that make sense on a host: see workload::probe.
namespace cpu::probe {

using params = workload::probe::params;

/// Multiply-adds in registers of one core: follows the core's clock and nothing else.
class canary_fma {
public:
    using params = probe::params;

    canary_fma(backend&, const params&, std::size_t) {}

    void run(backend&, std::size_t) noexcept {
        values_.fill(2.0f);
        canary::fma_chains(values_.data(), a, b, canary::fma_rounds);
    }

    /// Every value must have come as far from 2 towards the fixed point 1 as the rounds take it.
    void verify(backend& on) {
        values_.fill(0.0f);
        run(on, 0);
        const double expected = 1 + std::pow(static_cast<double>(a), static_cast<double>(canary::fma_rounds));
        for (std::size_t i = 0; i < values_.size(); ++i) {
            const double off = std::abs(static_cast<double>(values_[i]) - expected);
            // Each of the last 1/(1-a) rounds adds at most half a unit in the last place of a number below 2.
            if (!(off <= 16384 * 1.2e-7)) {
                throw verification_error("probe/canary_fma: value " + std::to_string(i) + " is " +
                                             std::to_string(values_[i]) + ", expected " + std::to_string(expected) +
                                             ": this processor computes wrongly",
                                         off, off / expected, i);
            }
        }
    }

    [[nodiscard]] std::string output_hash(backend& on) {
        run(on, 0);
        return workload::digest(values_.data(), sizeof values_);
    }

    [[nodiscard]] result::evidence evidence(backend&) const {
        return {std::string("plumbline/fma/") + canary::code_kind, {{"code_hash", canary::fma_code_hash()}}, {}};
    }

private:
    static constexpr float a = 1.0f - 0x1p-14f;
    static constexpr float b = 0x1p-14f;
    std::array<float, canary::fma_values> values_{};
};

/// Copies one buffer to another: with our own frozen loop, or with the C library's memcpy.
template <bool Canary>
class copy {
public:
    using params = probe::params;

    [[nodiscard]] static std::size_t slots(backend&, const params& p) { return cold_slots(bytes_of(p) * 2); }

    copy(backend&, const params& p, std::size_t slots) : p_(p) {
        const std::size_t bytes = bytes_of(p);
        if (Canary && bytes % 64 != 0) throw unsupported_error(name() + ": copies whole lines of 64 bytes only");
        // Two buffers for each slot, and room for the rest of the system.
        if (bytes > free_memory_bytes() / 3) {
            throw unsupported_error(name() + ": needs twice its size, " + std::to_string(free_memory_bytes()) +
                                    " bytes are free: use a smaller size");
        }
        for (std::size_t i = 0; i < slots; ++i) {
            slots_.emplace_back(buffer(bytes), buffer(bytes));
            fill(slots_.back().first);
            std::memset(slots_.back().second.data(), 0, bytes); // pages are there before the first launch
        }
    }

    void run(backend&, std::size_t slot) noexcept {
        const auto& [from, to] = slots_[slot];
        if constexpr (Canary)
            canary::copy_lines(from.data(), to.data(), from.size() / 64);
        else
            std::memcpy(to.data(), from.data(), from.size());
    }

    void verify(backend& on) {
        const auto& [from, to] = slots_.front();
        std::memset(to.data(), 0xff, to.size());
        run(on, 0);
        for (std::size_t i = 0; i < to.size(); ++i) {
            if (from.data()[i] != to.data()[i]) {
                throw verification_error(name() + ": byte " + std::to_string(i) + " was not copied: faulty memory?", 0,
                                         0, i);
            }
        }
    }

    [[nodiscard]] result::evidence evidence(backend&) const {
        result::evidence found;
        if constexpr (Canary) {
            found.implementation = std::string("plumbline/copy/") + canary::code_kind;
            found.parts["code_hash"] = canary::copy_code_hash();
        } else {
            found.implementation = "libc/memcpy";
        }
        found.parts["slots"] = static_cast<std::int64_t>(slots_.size());
        return found;
    }

private:
    [[nodiscard]] static std::size_t bytes_of(const params& p) { return static_cast<std::size_t>(p.bytes); }
    [[nodiscard]] std::string name() const { return workload::probe::id(p_); }

    /// Random bytes, one mebibyte again and again: memory does not look further back.
    static void fill(const buffer& whole) {
        std::vector<std::uint32_t> tile(std::size_t{1} << 18);
        for (std::size_t i = 0; i < tile.size(); i += 4) {
            const workload::random::block bits = workload::random::philox(0x636f7079, i);
            for (std::size_t j = 0; j < 4; ++j) tile[i + j] = bits.word[j];
        }
        for (std::size_t at = 0; at < whole.size(); at += tile.size() * 4) {
            std::memcpy(whole.data() + at, tile.data(), std::min(tile.size() * 4, whole.size() - at));
        }
    }

    params p_;
    std::vector<std::pair<buffer, buffer>> slots_;
};

using canary_copy = copy<true>;
using device_copy = copy<false>;

namespace detail {

/// A square fp32 matmul of side `n`, its operands, and the means to run it: the smallest real piece of library work.
class small_matmul {
public:
    explicit small_matmul(std::int64_t n)
        : side_(n), shape_({n, n}, dnnl::memory::data_type::f32, dnnl::memory::dims{n, 1}),
          data_(3 * shape_.get_size()) {
        for (std::size_t i = 0; i < data_.size() / sizeof(float); ++i) at(i) = 1.5f;
        for (int i = 0; i < 3; ++i) {
            arguments_.emplace(roles[i], dnnl::memory(shape_, on_.engine,
                                                      data_.data() + static_cast<std::size_t>(i) * shape_.get_size()));
        }
    }

    [[nodiscard]] onednn::built build() const {
        return onednn::matmul(on_, shape_, shape_, std::nullopt, shape_, false);
    }

    /// Throws verification_error unless the last product is that of matrices of 1.5: every value exact in fp32.
    void verify(const onednn::built& with, const char* name) {
        const std::size_t count = shape_.get_size() / sizeof(float);
        for (std::size_t i = 0; i < count; ++i) at(2 * count + i) = -1;
        execute(with);
        const double expected = 2.25 * static_cast<double>(side_);
        for (std::size_t i = 0; i < count; ++i) {
            const double found = static_cast<double>(at(2 * count + i));
            if (!(found == expected)) {
                throw verification_error(std::string(name) + ": element " + std::to_string(i) + " is " +
                                             std::to_string(found) + ", expected " + std::to_string(expected),
                                         std::abs(found - expected), std::abs(found / expected - 1), i);
            }
        }
    }

    void execute(const onednn::built& with) {
        onednn::checked("matmul", [&] {
            with.primitive.execute(on_.stream, arguments_);
            on_.stream.wait();
        });
    }

private:
    static constexpr int roles[3] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    [[nodiscard]] float& at(std::size_t i) const noexcept { return reinterpret_cast<float*>(data_.data())[i]; }

    onednn::context on_;
    std::int64_t side_;
    onednn::memory_desc shape_;
    buffer data_; ///< source, weights, destination
    std::unordered_map<int, dnnl::memory> arguments_;
};

} // namespace detail

/// What calling the library costs: a matmul of one element.
class launch {
public:
    using params = probe::params;

    launch(backend&, const params&, std::size_t) : work_(1), built_(work_.build()) {}

    void run(backend&, std::size_t) { work_.execute(built_); }

    void verify(backend&) { work_.verify(built_, "probe/launch"); }

    [[nodiscard]] result::evidence evidence(backend&) const {
        return {built_.implementation, {{"library", "onednn " + onednn::version()}}, {}};
    }

private:
    detail::small_matmul work_;
    onednn::built built_;
};

/// The first use of an operator: oneDNN chooses, compiles and runs a matmul it has not in its cache. Up to 30 times,
/// at least 5 times whatever the budget.
[[nodiscard]] inline measure::procedure_result cold_first_launch(backend&, const measure::budget& time) {
    const onednn::no_primitive_cache compile_again;
    detail::small_matmul work(256);
    measure::metric cold{"time", "ns", direction::lower, {}, {}, {}};
    measure::procedure_result found;
    work.verify(work.build(), "probe/cold_first_launch");
    found.verified = true;
    const auto start = backend::clock::now();
    while (cold.samples.size() < 5 || (cold.samples.size() < 30 && backend::clock::now() - start < time.total)) {
        const auto begin = backend::clock::now();
        const onednn::built built = work.build();
        work.execute(built);
        const double elapsed_ns = std::chrono::duration<double, std::nano>(backend::clock::now() - begin).count();
        cold.samples.push_back(elapsed_ns);
        cold.raw.push_back({elapsed_ns, {}, {}});
        found.ran.implementation = built.implementation;
    }
    found.ran.parts["library"] = "onednn " + onednn::version();
    found.metrics.push_back(std::move(cold));
    return found;
}

} // namespace cpu::probe

PLUMBLINE_NAMESPACE_END

#endif
