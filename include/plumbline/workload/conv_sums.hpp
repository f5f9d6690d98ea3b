// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_CONV_SUMS_HPP
#define PLUMBLINE_WORKLOAD_CONV_SUMS_HPP

#include <cstdint>

#include "plumbline/workload/conv.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace workload::conv {

enum class operand { x, w, y };

/// A pass as a matrix product: every element of the output is a sum, over a depth, of a factor that belongs to one
/// channel with a factor that belongs to one place and the channel's group (none where the place looks at padding).
///
///     pass   channel  place              depth
///     fprop  k of y   (n, o, p, q)       (c of the group, t, r, s)
///     dgrad  c of dx  (n, d, h, w)       (k of the group, t, r, s)
///     wgrad  k of dw  (c of the group,   (n, o, p, q)
///                      t, r, s)
///
/// Read by device code too.
class sums {
public:
    constexpr explicit sums(const params& p) : p_(p) {}

    [[nodiscard]] constexpr std::int64_t channels() const noexcept { return p_.variant == pass::dgrad ? p_.c : p_.k; }
    [[nodiscard]] constexpr std::int64_t places() const noexcept { return p_.output_elements() / channels(); }
    [[nodiscard]] constexpr std::int64_t groups() const noexcept { return p_.groups; }
    [[nodiscard]] constexpr std::int64_t depth() const noexcept {
        if (p_.variant == pass::wgrad) return p_.n * p_.o() * p_.p() * p_.q();
        return (p_.variant == pass::dgrad ? p_.group_k() : p_.group_c()) * taps();
    }
    [[nodiscard]] constexpr std::int64_t group(std::int64_t channel) const noexcept {
        return channel / (channels() / p_.groups);
    }

    /// The tensors that the factors are elements of.
    [[nodiscard]] constexpr operand channel_operand() const noexcept {
        return p_.variant == pass::wgrad ? operand::y : operand::w;
    }
    [[nodiscard]] constexpr operand place_operand() const noexcept {
        return p_.variant == pass::dgrad ? operand::y : operand::x;
    }

    /// Where the output's element of a channel and a place is stored.
    [[nodiscard]] constexpr std::int64_t index(std::int64_t channel, std::int64_t place) const noexcept {
        if (p_.variant == pass::wgrad) {
            const tap at = tap_of(place);
            return p_.w_index(channel, at.channel, at.t, at.r, at.s);
        }
        const bool forward = p_.variant == pass::fprop;
        const spot at = forward ? spot_of(place, p_.o(), p_.p(), p_.q()) : spot_of(place, p_.depth(), p_.h, p_.w);
        return forward ? p_.y_index(at.n, channel, at.z, at.y, at.x) : p_.x_index(at.n, channel, at.z, at.y, at.x);
    }

    /// Where the factor of a channel at one step of the depth is stored.
    [[nodiscard]] constexpr std::int64_t channel_factor(std::int64_t channel, std::int64_t at) const noexcept {
        if (p_.variant == pass::wgrad) {
            const spot of = spot_of(at, p_.o(), p_.p(), p_.q());
            return p_.y_index(of.n, channel, of.z, of.y, of.x);
        }
        const tap with = tap_of(at);
        if (p_.variant == pass::fprop) return p_.w_index(channel, with.channel, with.t, with.r, with.s);
        return p_.w_index(group(channel) * p_.group_k() + with.channel, channel % p_.group_c(), with.t, with.r, with.s);
    }

    /// Where the factor of a place, for the channels of a group, is stored; -1 where there is none.
    [[nodiscard]] constexpr std::int64_t place_factor(std::int64_t place, std::int64_t of_group,
                                                      std::int64_t at) const noexcept {
        const bool weights = p_.variant == pass::wgrad;
        const tap with = tap_of(weights ? place : at);
        if (p_.variant != pass::dgrad) {
            const spot to = spot_of(weights ? at : place, p_.o(), p_.p(), p_.q());
            return x_factor(of_group * p_.group_c() + with.channel, to, with);
        }
        // The y whose window has dx's place at this tap: it exists where the stride comes out even and inside y.
        spot from = spot_of(place, p_.depth(), p_.h, p_.w);
        if ((p_.three_d() && !step_back(from.z, with.t, p_.o())) || !step_back(from.y, with.r, p_.p()) ||
            !step_back(from.x, with.s, p_.q())) {
            return -1;
        }
        return p_.y_index(from.n, of_group * p_.group_k() + with.channel, from.z, from.y, from.x);
    }

private:
    struct spot {
        std::int64_t n, z, y, x;
    };
    struct tap {
        std::int64_t channel, t, r, s;
    };

    [[nodiscard]] constexpr std::int64_t taps() const noexcept { return p_.filter_depth() * p_.r * p_.s; }

    [[nodiscard]] static constexpr spot spot_of(std::int64_t at, std::int64_t depth, std::int64_t height,
                                                std::int64_t width) noexcept {
        return {at / (depth * height * width), at / (height * width) % depth, at / width % height, at % width};
    }
    [[nodiscard]] constexpr tap tap_of(std::int64_t at) const noexcept {
        return {at / taps(), at / (p_.r * p_.s) % p_.filter_depth(), at / p_.s % p_.r, at % p_.s};
    }

    [[nodiscard]] constexpr bool step_back(std::int64_t& at, std::int64_t offset, std::int64_t size) const noexcept {
        const std::int64_t shifted = at + p_.padding - offset * p_.dilation;
        at = shifted / p_.stride;
        return shifted >= 0 && shifted % p_.stride == 0 && at < size;
    }

    [[nodiscard]] constexpr std::int64_t reach(std::int64_t out, std::int64_t offset) const noexcept {
        return out * p_.stride - p_.padding + offset * p_.dilation;
    }
    [[nodiscard]] constexpr std::int64_t x_factor(std::int64_t channel, const spot& to,
                                                  const tap& with) const noexcept {
        const std::int64_t z = p_.three_d() ? reach(to.z, with.t) : 0;
        const std::int64_t y = reach(to.y, with.r);
        const std::int64_t x = reach(to.x, with.s);
        if (z < 0 || z >= p_.depth() || y < 0 || y >= p_.h || x < 0 || x >= p_.w) return -1;
        return p_.x_index(to.n, channel, z, y, x);
    }

    params p_;
};

} // namespace workload::conv

PLUMBLINE_NAMESPACE_END

#endif
