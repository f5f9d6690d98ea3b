// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_CONV_REFERENCE_HPP
#define PLUMBLINE_WORKLOAD_CONV_REFERENCE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plumbline/workload/conv.hpp"
#include "plumbline/workload/inputs.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace workload::conv {

/// Seeds of x, w and y where they are inputs. Element i as stored is element i of the stream of its seed.
inline constexpr std::uint64_t seed_x = 0x7831;
inline constexpr std::uint64_t seed_w = 0x7732;
inline constexpr std::uint64_t seed_y = 0x7933;

/// A pass as a matrix product: every element of the output is a sum, over a depth, of a factor that belongs to one
/// channel with a factor that belongs to one place and the channel's group (0 where the place looks at padding).
///
///     pass   channel  place              depth
///     fprop  k of y   (n, o, p, q)       (c of the group, t, r, s)
///     dgrad  c of dx  (n, d, h, w)       (k of the group, t, r, s)
///     wgrad  k of dw  (c of the group,   (n, o, p, q)
///                      t, r, s)
class sums {
public:
    explicit sums(const params& p) : p_(p) {}

    [[nodiscard]] std::int64_t channels() const noexcept { return p_.variant == pass::dgrad ? p_.c : p_.k; }
    [[nodiscard]] std::int64_t places() const noexcept { return p_.output_elements() / channels(); }
    [[nodiscard]] std::int64_t depth() const noexcept {
        if (p_.variant == pass::wgrad) return p_.n * p_.o() * p_.p() * p_.q();
        return (p_.variant == pass::dgrad ? p_.group_k() : p_.group_c()) * taps();
    }
    [[nodiscard]] std::int64_t group(std::int64_t channel) const noexcept { return channel / (channels() / p_.groups); }

    /// Where the output's element of a channel and a place is stored.
    [[nodiscard]] std::int64_t index(std::int64_t channel, std::int64_t place) const noexcept {
        if (p_.variant == pass::wgrad) {
            const tap at = tap_of(place);
            return p_.w_index(channel, at.channel, at.t, at.r, at.s);
        }
        const bool forward = p_.variant == pass::fprop;
        const spot at = forward ? spot_of(place, p_.o(), p_.p(), p_.q()) : spot_of(place, p_.depth(), p_.h, p_.w);
        return forward ? p_.y_index(at.n, channel, at.z, at.y, at.x) : p_.x_index(at.n, channel, at.z, at.y, at.x);
    }

    [[nodiscard]] double channel_factor(std::int64_t channel, std::int64_t at) const noexcept {
        if (p_.variant == pass::wgrad) return y_value(channel, spot_of(at, p_.o(), p_.p(), p_.q()));
        const tap with = tap_of(at);
        if (p_.variant == pass::fprop) return w_value(channel, with.channel, with);
        return w_value(group(channel) * p_.group_k() + with.channel, channel % p_.group_c(), with);
    }

    [[nodiscard]] double place_factor(std::int64_t place, std::int64_t of_group, std::int64_t at) const noexcept {
        const bool weights = p_.variant == pass::wgrad;
        const tap with = tap_of(weights ? place : at);
        if (p_.variant != pass::dgrad) {
            const spot to = spot_of(weights ? at : place, p_.o(), p_.p(), p_.q());
            return x_value(of_group * p_.group_c() + with.channel, to, with);
        }
        // The y whose window has dx's place at this tap: it exists where the stride comes out even and inside y.
        spot from = spot_of(place, p_.depth(), p_.h, p_.w);
        if ((p_.three_d() && !step_back(from.z, with.t, p_.o())) || !step_back(from.y, with.r, p_.p()) ||
            !step_back(from.x, with.s, p_.q())) {
            return 0;
        }
        return y_value(of_group * p_.group_k() + with.channel, from);
    }

private:
    struct spot {
        std::int64_t n, z, y, x;
    };
    struct tap {
        std::int64_t channel, t, r, s;
    };

    [[nodiscard]] std::int64_t taps() const noexcept { return p_.filter_depth() * p_.r * p_.s; }

    [[nodiscard]] static spot spot_of(std::int64_t at, std::int64_t depth, std::int64_t height,
                                      std::int64_t width) noexcept {
        return {at / (depth * height * width), at / (height * width) % depth, at / width % height, at % width};
    }
    [[nodiscard]] tap tap_of(std::int64_t at) const noexcept {
        return {at / taps(), at / (p_.r * p_.s) % p_.filter_depth(), at / p_.s % p_.r, at % p_.s};
    }

    [[nodiscard]] bool step_back(std::int64_t& at, std::int64_t offset, std::int64_t size) const noexcept {
        const std::int64_t shifted = at + p_.padding - offset * p_.dilation;
        at = shifted / p_.stride;
        return shifted >= 0 && shifted % p_.stride == 0 && at < size;
    }

    [[nodiscard]] double x_value(std::int64_t channel, const spot& to, const tap& with) const noexcept {
        const auto reach = [&](std::int64_t out, std::int64_t offset) {
            return out * p_.stride - p_.padding + offset * p_.dilation;
        };
        const std::int64_t z = p_.three_d() ? reach(to.z, with.t) : 0;
        const std::int64_t y = reach(to.y, with.r);
        const std::int64_t x = reach(to.x, with.s);
        if (z < 0 || z >= p_.depth() || y < 0 || y >= p_.h || x < 0 || x >= p_.w) return 0;
        return value(seed_x, p_.x_index(to.n, channel, z, y, x));
    }
    [[nodiscard]] double w_value(std::int64_t k, std::int64_t c, const tap& with) const noexcept {
        return value(seed_w, p_.w_index(k, c, with.t, with.r, with.s));
    }
    [[nodiscard]] double y_value(std::int64_t channel, const spot& at) const noexcept {
        return value(seed_y, p_.y_index(at.n, channel, at.z, at.y, at.x));
    }
    [[nodiscard]] double value(std::uint64_t seed, std::int64_t index) const noexcept {
        return input_value(p_.type, seed, static_cast<std::uint64_t>(index));
    }

    params p_;
};

/// The elements of the output that are compared with the reference: all combinations of these.
struct grid {
    std::vector<std::int64_t> channels;
    std::vector<std::int64_t> places;

    [[nodiscard]] std::size_t size() const noexcept { return channels.size() * places.size(); }

    /// The `at`-th combination as an index into the stored output: channels outermost.
    [[nodiscard]] std::int64_t index(const params& p, std::size_t at) const noexcept {
        return sums(p).index(channels[at / places.size()], places[at % places.size()]);
    }
};

/// The elements to compare: all of them up to 65,536 outputs and 2^26 products; else the first and last and random
/// ones of up to 64 channels and 64 places, fewer (but 4 at least) where the sums are so long that there would be more
/// than 2^27 products. A gradient of the weights sums over the whole batch, so few of its elements are affordable; but
/// every one of them depends on every image. `salt` chooses other random ones.
[[nodiscard]] inline grid check_grid(const params& p, std::uint64_t salt = 0) {
    const sums of(p);
    const bool all = p.output_elements() <= 65536 && p.output_elements() <= (std::int64_t{1} << 26) / of.depth();
    const double affordable = std::sqrt(static_cast<double>(std::int64_t{1} << 27) / static_cast<double>(of.depth()));
    const auto side = static_cast<std::int64_t>(std::clamp(affordable, 4.0, 64.0));
    grid chosen;
    chosen.channels = pick(of.channels(), all ? of.channels() : side, 3 * salt);
    chosen.places = pick(of.places(), all ? of.places() : side, 3 * salt + 1);
    return chosen;
}

/// The output at the elements of `where`, in float64 from the quantised inputs, in the order of grid::index. The inputs
/// are made here, element by element, so no copy of the device's is needed. Memory: `factors_at_once` floats, or the
/// factors of one sum.
[[nodiscard]] inline std::vector<double> reference(const params& p, const grid& where,
                                                   std::size_t factors_at_once = std::size_t{32} << 20) {
    const sums of(p);
    const auto depth = static_cast<std::size_t>(of.depth());
    const std::size_t block = std::max<std::size_t>(1, factors_at_once / depth);
    std::vector<double> result(where.size());
    // Every dtype's quantised values are floats.
    std::vector<float> factors(std::min(block, where.places.size()) * depth);
    std::vector<float> channel(depth);
    for (std::size_t first = 0; first < where.places.size(); first += block) {
        const std::size_t last = std::min(first + block, where.places.size());
        std::int64_t group = -1;
        for (std::size_t c = 0; c < where.channels.size(); ++c) {
            if (of.group(where.channels[c]) != group) {
                group = of.group(where.channels[c]);
                for (std::size_t at = first; at < last; ++at) {
                    for (std::size_t i = 0; i < depth; ++i) {
                        factors[(at - first) * depth + i] =
                            static_cast<float>(of.place_factor(where.places[at], group, static_cast<std::int64_t>(i)));
                    }
                }
            }
            for (std::size_t i = 0; i < depth; ++i) {
                channel[i] = static_cast<float>(of.channel_factor(where.channels[c], static_cast<std::int64_t>(i)));
            }
            for (std::size_t at = first; at < last; ++at) {
                const float* const with = factors.data() + (at - first) * depth;
                double sum = 0;
                for (std::size_t i = 0; i < depth; ++i)
                    sum += static_cast<double>(channel[i]) * static_cast<double>(with[i]);
                result[c * where.places.size() + at] = sum;
            }
        }
    }
    return result;
}

} // namespace workload::conv

PLUMBLINE_NAMESPACE_END

#endif
