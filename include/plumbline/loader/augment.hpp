// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_AUGMENT_HPP
#define PLUMBLINE_LOADER_AUGMENT_HPP

#include <array>
#include <cmath>
#include <cstddef>

#include "plumbline/loader/image.hpp"
#include "plumbline/loader/random.hpp"
#include "plumbline/workload/dataloader.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// RandomResizedCrop, horizontal flip and normalisation with torchvision's defaults for ImageNet.
struct augmentation {
    std::size_t size = 224;                ///< rows and columns of the output
    std::array<double, 2> area{0.08, 1.0}; ///< share of the image's area that is kept
    std::array<double, 2> aspect{3.0 / 4.0, 4.0 / 3.0};
    double flip = 0.5; ///< probability
    std::array<float, 3> mean{0.485F, 0.456F, 0.406F};
    std::array<float, 3> deviation{0.229F, 0.224F, 0.225F};
    workload::dtype type = workload::dtype::fp32; ///< fp32 or fp16
    workload::dataloader::layout layout = workload::dataloader::layout::chw;

    [[nodiscard]] std::size_t element_bytes() const noexcept { return workload::input_bytes(type); }
    [[nodiscard]] std::size_t sample_bytes() const noexcept { return 3 * size * size * element_bytes(); }
};

namespace detail {

/// Rounds half to even, as Python does.
inline double round_half_even(double value) noexcept {
    const double down = std::floor(value);
    const double rest = value - down;
    if (rest != 0.5) return rest < 0.5 ? down : down + 1;
    return std::fmod(down, 2.0) == 0 ? down : down + 1;
}

inline std::size_t rounded(double value) noexcept {
    return static_cast<std::size_t>(round_half_even(value));
}

/// The largest box in the middle whose aspect ratio is allowed.
inline crop_box centre_crop(std::size_t width, std::size_t height, const augmentation& how) noexcept {
    const double w = static_cast<double>(width);
    const double h = static_cast<double>(height);
    crop_box box{0, 0, width, height};
    if (w / h < how.aspect[0])
        box.height = rounded(w / how.aspect[0]);
    else if (w / h > how.aspect[1])
        box.width = rounded(h * how.aspect[1]);
    box.x = (width - box.width) / 2;
    box.y = (height - box.height) / 2;
    return box;
}

} // namespace detail

/// The box of torchvision's RandomResizedCrop.get_params (ten attempts, then the middle) for an image of
/// width x height pixels, both at least 1. Draws four numbers for each attempt that fits, two for one that does not.
[[nodiscard]] inline crop_box random_resized_crop(std::size_t width, std::size_t height, const augmentation& how,
                                                  sample_random& random) noexcept {
    const double area = static_cast<double>(width) * static_cast<double>(height);
    for (int attempt = 0; attempt < 10; ++attempt) {
        const double target = area * random.uniform(how.area[0], how.area[1]);
        const double ratio = std::exp(random.uniform(std::log(how.aspect[0]), std::log(how.aspect[1])));
        const std::size_t w = detail::rounded(std::sqrt(target * ratio));
        const std::size_t h = detail::rounded(std::sqrt(target / ratio));
        if (w == 0 || h == 0 || w > width || h > height) continue;
        const std::size_t y = random.below(height - h + 1);
        const std::size_t x = random.below(width - w + 1);
        return {x, y, w, h};
    }
    return detail::centre_crop(width, height, how);
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
