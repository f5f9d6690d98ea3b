// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_GEMM_HPP
#define PLUMBLINE_WORKLOAD_GEMM_HPP

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "plumbline/workload/description.hpp"
#include "plumbline/workload/dtype.hpp"
#include "plumbline/workload/id.hpp"
#include "plumbline/workload/matrix_view.hpp"
#include "plumbline/workload/modes.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// D = epilogue(op(A) * op(B)) with op(A) m x k, op(B) k x n, D m x n. Everything is stored column by column, as BLAS
/// has it, and without gaps unless `pad` puts some there; transposition names op(A) first: "tn" means A is stored k x m
/// and B k x n, the layout of a forward layer with m = outputs, n = tokens, k = inputs. A batch is a run of such
/// products, one after the other.
namespace workload::gemm {

enum class transposition { tn, nn, nt, tt };

/// What follows the product: nothing, adding a bias of m elements to each column, or that and then GELU (tanh form).
enum class epilogue { none, bias, gelu };

/// What frameworks offer cublasLt on Hopper.
inline constexpr std::int64_t default_workspace_mib = 32;

struct params {
    dtype type = dtype::bf16;
    transposition trans = transposition::tn;
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
    std::int64_t batch = 1;
    epilogue after = epilogue::none;
    std::int64_t pad = 0;    ///< elements between the stored columns of A and of B: 1 puts most of them off alignment
    std::int64_t offset = 0; ///< elements by which A, B and D begin after an aligned address
    std::int64_t workspace_mib = default_workspace_mib; ///< what the library may use beside the operands
    bool precise = false; ///< fp8: sums in full fp32 instead of Hopper's fast accumulation
    modes mode;

    bool operator==(const params&) const = default;

    [[nodiscard]] bool a_transposed() const noexcept {
        return trans == transposition::tn || trans == transposition::tt;
    }
    [[nodiscard]] bool b_transposed() const noexcept {
        return trans == transposition::nt || trans == transposition::tt;
    }

    /// Elements of A, B and D over the whole batch, gaps not counted, and of the bias (0 without one).
    [[nodiscard]] std::int64_t a_elements() const noexcept { return batch * m * k; }
    [[nodiscard]] std::int64_t b_elements() const noexcept { return batch * k * n; }
    [[nodiscard]] std::int64_t d_elements() const noexcept { return batch * m * n; }
    [[nodiscard]] std::int64_t bias_elements() const noexcept { return after == epilogue::none ? 0 : m; }

    /// Leading dimensions of the stored A, B and D.
    [[nodiscard]] std::int64_t lda() const noexcept { return (a_transposed() ? k : m) + pad; }
    [[nodiscard]] std::int64_t ldb() const noexcept { return (b_transposed() ? n : k) + pad; }
    [[nodiscard]] std::int64_t ldd() const noexcept { return m; }

    /// op(A), op(B) and D as they are stored; their elements, gaps counted, are rows and columns of all of the batch.
    [[nodiscard]] matrix_view a_view() const noexcept {
        return a_transposed() ? matrix_view{m, k, lda(), 1, batch, lda() * m}
                              : matrix_view{m, k, 1, lda(), batch, lda() * k};
    }
    [[nodiscard]] matrix_view b_view() const noexcept {
        return b_transposed() ? matrix_view{k, n, ldb(), 1, batch, ldb() * k}
                              : matrix_view{k, n, 1, ldb(), batch, ldb() * n};
    }
    [[nodiscard]] matrix_view d_view() const noexcept { return {m, n, 1, ldd(), batch, ldd() * n}; }
};

inline constexpr std::pair<std::string_view, transposition> transposition_names[] = {
    {"tn", transposition::tn}, {"nn", transposition::nn}, {"nt", transposition::nt}, {"tt", transposition::tt}};

[[nodiscard]] constexpr std::string_view name(transposition trans) noexcept {
    for (const auto& [word, value] : transposition_names) {
        if (value == trans) return word;
    }
    return "?";
}

[[nodiscard]] constexpr std::string_view name(epilogue after) noexcept {
    switch (after) {
    case epilogue::none:
        return "none";
    case epilogue::bias:
        return "bias";
    case epilogue::gelu:
        return "gelu";
    }
    return "?";
}

/// gemm/DTYPE/TRANS/mMnNkK[bBATCH][/bias|/gelu][/padN][/offsetN][/wsMIB][/precise][/mode...]
[[nodiscard]] inline std::string id(const params& p) {
    std::string text = "gemm/" + std::string(workload::name(p.type)) + '/' + std::string(name(p.trans)) + "/m" +
                       std::to_string(p.m) + 'n' + std::to_string(p.n) + 'k' + std::to_string(p.k);
    if (p.batch != 1) text += 'b' + std::to_string(p.batch);
    if (p.after != epilogue::none) text += '/' + std::string(name(p.after));
    if (p.pad != 0) text += "/pad" + std::to_string(p.pad);
    if (p.offset != 0) text += "/offset" + std::to_string(p.offset);
    if (p.workspace_mib != default_workspace_mib) text += "/ws" + std::to_string(p.workspace_mib);
    if (p.precise) text += "/precise";
    return text + suffix(p.mode);
}

/// FLOP of one launch: 2 m n k for each product of the batch; the epilogue is not counted.
[[nodiscard]] inline double flop(const params& p) {
    return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
           static_cast<double>(p.batch);
}

/// Fewest bytes one launch moves: each of A, B and the bias read once, D written once.
[[nodiscard]] inline double bytes(const params& p) {
    const auto in = static_cast<double>(input_bytes(p.type));
    const auto out = static_cast<double>(output_bytes(p.type));
    return in * static_cast<double>(p.a_elements() + p.b_elements()) +
           out * static_cast<double>(p.d_elements() + p.bias_elements());
}

[[nodiscard]] inline description describe(const params& p) {
    description what;
    what.id = id(p);
    what.family = "gemm";
    what.params = {{"dtype", std::string(workload::name(p.type))},
                   {"trans", std::string(name(p.trans))},
                   {"m", p.m},
                   {"n", p.n},
                   {"k", p.k},
                   {"batch", p.batch},
                   {"epilogue", std::string(name(p.after))}};
    // Only where they differ: baselines from before they existed keep their hash.
    if (p.pad != 0) what.params["pad"] = p.pad;
    if (p.offset != 0) what.params["offset"] = p.offset;
    if (p.workspace_mib != default_workspace_mib) what.params["workspace_mib"] = p.workspace_mib;
    if (p.precise) what.params["accumulation"] = std::string("precise");
    add_modes(what.params, p.mode);
    what.kind = p.mode.sustained ? benchmark_class::sustained : benchmark_class::kernel;
    what.flop = flop(p);
    what.bytes = bytes(p);
    return what;
}

/// The parameters of an id; throws usage_error when it is not one of this family.
[[nodiscard]] inline params parse(const std::string& id_text) {
    id_reader reader(id_text, "gemm", "gemm/bf16/tn/m8192n8192k8192");
    params p;
    p.type = reader.type();
    p.trans = reader.choice("a transposition", transposition_names);
    const auto sizes = reader.sizes("mnk", {{'b', 1}});
    p.m = sizes.at('m');
    p.n = sizes.at('n');
    p.k = sizes.at('k');
    p.batch = sizes.at('b');
    // 2^20 a side keeps every element count and byte count below 2^63 and far above any memory.
    for (const auto& [key, value] : sizes) {
        if (value < 1 || value > (std::int64_t{1} << 20)) {
            reader.refuse(std::string(1, key) + " must be between 1 and 1048576");
        }
    }
    if (reader.take_if("bias"))
        p.after = epilogue::bias;
    else if (reader.take_if("gelu"))
        p.after = epilogue::gelu;
    p.pad = reader.take_number("pad").value_or(p.pad);
    p.offset = reader.take_number("offset").value_or(p.offset);
    p.workspace_mib = reader.take_number("ws").value_or(p.workspace_mib);
    p.precise = reader.take_if("precise");
    if (p.pad > 4096 || p.offset > 4096) reader.refuse("pad and offset are at most 4096 elements");
    if (p.workspace_mib > 1024) reader.refuse("ws is at most 1024 MiB");
    if (p.precise && p.type != dtype::fp8) reader.refuse("only fp8 has a fast accumulation that precise turns off");
    p.mode = reader.rest_as_modes();
    reader.finish(id(p));
    return p;
}

} // namespace workload::gemm

PLUMBLINE_NAMESPACE_END

#endif
