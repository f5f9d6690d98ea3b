// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TRAINING_PARAMETERS_HPP
#define PLUMBLINE_TRAINING_PARAMETERS_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace training {

/// One trained tensor: where it lies in the flat buffers, and how it starts.
struct parameter {
    std::string name;
    std::int64_t offset = 0;
    std::int64_t count = 0;
    std::uint64_t seed = 0;
    float deviation = 0; ///< element i starts as normal(seed, i) x deviation + mean
    float mean = 0;
};

/// All trained numbers of a network, one after the other in one buffer each for master weights, gradients and the
/// optimizer's state, so that norm, clipping and optimizer are one kernel each. Tensors start at multiples of 256
/// bytes of the narrowest type; the gaps are zero and stay zero.
///
/// In a 16-bit leg `copy` holds the weights as the products read them, rounded once a step by the optimizer; else it is
/// the master itself.
template <class Ops>
class parameters {
public:
    using value = typename Ops::value;
    using real = typename Ops::real;
    static constexpr bool own_copy = !std::is_same_v<value, real>;

    /// Adds a tensor; returns its index. Seeds count up from `first_seed` in the order of the calls.
    std::size_t add(std::string name, std::int64_t count, double deviation, float mean = 0) {
        list_.push_back(
            {std::move(name), size_, count, first_seed + list_.size(), static_cast<float>(deviation), mean});
        constexpr std::int64_t step = 128;
        size_ += (count + step - 1) / step * step;
        return list_.size() - 1;
    }

    /// Allocates and fills everything; `moments` is the number of buffers the optimizer keeps (AdamW 2, SGD 1).
    void allocate(Ops& on, int moments) {
        const auto size = static_cast<std::size_t>(size_);
        master_ = on.template make<real>(size);
        gradients_ = on.template make<real>(size);
        for (int i = 0; i < moments; ++i) moments_.push_back(on.template make<real>(size));
        if constexpr (own_copy) copy_ = on.template make<value>(size);
        reset(on);
    }

    /// Back to the start: weights as drawn, everything else zero.
    void reset(Ops& on) {
        const auto size = static_cast<std::size_t>(size_);
        on.zero(master_.data(), size);
        on.zero(gradients_.data(), size);
        for (auto& each : moments_) on.zero(each.data(), size);
        for (const parameter& each : list_) {
            on.draw(master_.data() + each.offset, each.count, each.seed, each.deviation, each.mean);
        }
        if constexpr (own_copy) on.convert(master_.data(), copy_.data(), size);
    }

    [[nodiscard]] const std::vector<parameter>& list() const noexcept { return list_; }
    [[nodiscard]] std::int64_t size() const noexcept { return size_; } ///< elements of each buffer, gaps included

    [[nodiscard]] real* master() noexcept { return master_.data(); }
    [[nodiscard]] real* gradients() noexcept { return gradients_.data(); }
    [[nodiscard]] real* moment(std::size_t which) noexcept { return moments_[which].data(); }
    [[nodiscard]] value* copy() noexcept {
        if constexpr (own_copy)
            return copy_.data();
        else
            return master_.data();
    }

    /// One tensor: as the products read it, in full precision, and its gradient.
    [[nodiscard]] value* weight(std::size_t index) noexcept { return copy() + list_[index].offset; }
    [[nodiscard]] real* exact(std::size_t index) noexcept { return master_.data() + list_[index].offset; }
    [[nodiscard]] real* gradient(std::size_t index) noexcept { return gradients_.data() + list_[index].offset; }

    static constexpr std::uint64_t first_seed = 0x70617261;

private:
    template <class T>
    using buffer = typename Ops::template buffer<T>;

    std::vector<parameter> list_;
    std::int64_t size_ = 0;
    buffer<real> master_;
    buffer<real> gradients_;
    std::vector<buffer<real>> moments_;
    buffer<value> copy_;
};

} // namespace training

PLUMBLINE_NAMESPACE_END

#endif
