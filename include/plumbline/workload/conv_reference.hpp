// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_CONV_REFERENCE_HPP
#define PLUMBLINE_WORKLOAD_CONV_REFERENCE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/workload/conv_sums.hpp"
#include "plumbline/workload/inputs.hpp"
#include "plumbline/workload/projection.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace workload::conv {

/// Seeds of x, w and y where they are inputs. Element i as stored is element i of the stream of its seed.
inline constexpr std::uint64_t seed_x = 0x7831;
inline constexpr std::uint64_t seed_w = 0x7732;
inline constexpr std::uint64_t seed_y = 0x7933;

/// Seed of the tensor a factor of the sums comes from.
[[nodiscard]] constexpr std::uint64_t seed_of(operand which) noexcept {
    return which == operand::x ? seed_x : which == operand::w ? seed_w : seed_y;
}

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
    const auto value = [&p](operand which, std::int64_t index) {
        return static_cast<float>(input_value(p.type, seed_of(which), static_cast<std::uint64_t>(index)));
    };
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
                        const std::int64_t from =
                            of.place_factor(where.places[at], group, static_cast<std::int64_t>(i));
                        factors[(at - first) * depth + i] = from < 0 ? 0 : value(of.place_operand(), from);
                    }
                }
            }
            for (std::size_t i = 0; i < depth; ++i) {
                channel[i] =
                    value(of.channel_operand(), of.channel_factor(where.channels[c], static_cast<std::int64_t>(i)));
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

/// Throws verification_error unless the channels of each place, added up with random_signs, are those expected: it sees
/// every element of the output. `found` and `expected` have one value for each place; places to which nothing
/// contributes, as strided gradients have, must be 0 and say no more.
inline void require_channel_sums(const std::string& what, const params& p, const std::vector<double>& found,
                                 const std::vector<double>& expected) {
    std::vector<double> of_output;
    std::vector<double> of_inputs;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (expected[i] == 0 && found[i] == 0) continue;
        of_output.push_back(found[i]);
        of_inputs.push_back(expected[i]);
    }
    const sums of(p);
    // Places of a strided gradient sum over different numbers of taps, so their roundings are no one distribution.
    const bool alike = p.variant != pass::dgrad || p.stride == 1;
    require_projection(what, of_output, of_inputs, tolerance(p.type, static_cast<double>(of.depth())),
                       alike ? of.channels() : 0, of.depth());
}

} // namespace workload::conv

PLUMBLINE_NAMESPACE_END

#endif
