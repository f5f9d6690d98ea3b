// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CPU_PRODUCTS_HPP
#define PLUMBLINE_CPU_PRODUCTS_HPP

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "plumbline/cpu/onednn.hpp"
#include "plumbline/training/products.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cpu {

/// The products of a training step by oneDNN's matmul, one primitive for each shape, built on first use.
class onednn_products {
public:
    template <class A, class B, class C>
    void multiply(const training::product& p, const A* a, const B* b, C* c) {
        const built_product& with = primitive<A, B, C>(p);
        onednn::checked("matmul", [&] {
            // oneDNN takes no pointer to const; a matmul only reads its sources.
            dnnl::memory left(with.a, on_.engine, const_cast<A*>(a));
            dnnl::memory right(with.b, on_.engine, const_cast<B*>(b));
            dnnl::memory out(with.c, on_.engine, c);
            with.built.primitive.execute(on_.stream,
                                         {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, out}});
            on_.stream.wait();
        });
    }

    /// The names of oneDNN's implementations that ran, in alphabetical order, joined by '+'.
    [[nodiscard]] std::string implementation() const {
        std::set<std::string> names;
        for (const auto& [shape, with] : built_) names.insert(with.built.implementation);
        std::string text;
        for (const std::string& each : names) text += (text.empty() ? "" : "+") + each;
        return text;
    }

private:
    struct built_product {
        onednn::memory_desc a, b, c;
        onednn::built built;
    };
    using key = std::tuple<training::product, onednn::data_type, onednn::data_type, onednn::data_type>;

    template <class T>
    [[nodiscard]] static constexpr onednn::data_type type_of() noexcept {
        return training::dtype_of_value<T>() == workload::dtype::bf16 ? onednn::data_type::bf16
                                                                      : onednn::data_type::f32;
    }

    [[nodiscard]] static onednn::memory_desc matrix(const training::product& p, std::int64_t rows, std::int64_t columns,
                                                    onednn::data_type type, std::int64_t batch_step,
                                                    std::int64_t row_step, std::int64_t column_step) {
        if (p.batch == 1) return {{rows, columns}, type, dnnl::memory::dims{row_step, column_step}};
        return {{p.batch, rows, columns}, type, dnnl::memory::dims{batch_step, row_step, column_step}};
    }

    template <class A, class B, class C>
    [[nodiscard]] const built_product& primitive(const training::product& p) {
        const key wanted{p, type_of<A>(), type_of<B>(), type_of<C>()};
        const auto found = built_.find(wanted);
        if (found != built_.end()) return found->second;
        built_product made{matrix(p, p.m, p.k, type_of<A>(), p.a_batch, p.a_row, p.a_column),
                           matrix(p, p.k, p.n, type_of<B>(), p.b_batch, p.b_row, p.b_column),
                           matrix(p, p.m, p.n, type_of<C>(), p.c_batch, p.c_row, 1),
                           {}};
        made.built = onednn::matmul(on_, made.a, made.b, std::nullopt, made.c, false, p.add);
        return built_.emplace(wanted, std::move(made)).first->second;
    }

    onednn::context on_;
    std::map<key, built_product> built_;
};

} // namespace cpu

PLUMBLINE_NAMESPACE_END

#endif
