// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_BATCH_HPP
#define PLUMBLINE_LOADER_BATCH_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "plumbline/loader/failure.hpp"
#include "plumbline/loader/pipeline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// Nanoseconds spent in each stage.
using stage_times = std::array<double, stage_count>;

/// What a batch is made of, apart from the pixels.
struct batch_record {
    std::size_t index = 0;            ///< in the epoch
    std::vector<std::size_t> samples; ///< of the data set, in the order they lie in the batch
    std::vector<std::int64_t> labels; ///< one for each sample
    std::vector<crop_box> boxes;      ///< one for each sample; all zero where the pipeline sets none
    std::vector<failure> failures;    ///< samples that are not in the batch
    stage_times stage_ns{};
    double cpu_ns = 0;          ///< processor time of the worker that built it
    std::size_t bytes_read = 0; ///< encoded bytes
    std::size_t oriented = 0;   ///< samples whose EXIF orientation was ignored
};

/// A batch in the hands of the consumer. Its memory goes back to the ring when it is destroyed, which must happen
/// before the loader is.
class batch {
public:
    batch(batch_record record, const std::byte* host, const void* device, std::size_t bytes,
          std::function<void()> release)
        : record_(std::move(record)), host_(host), device_(device), bytes_(bytes), release_(std::move(release)) {}
    batch(batch&& other) noexcept
        : record_(std::move(other.record_)), host_(other.host_), device_(other.device_), bytes_(other.bytes_),
          release_(std::exchange(other.release_, nullptr)) {}
    batch& operator=(batch&& other) noexcept {
        if (this == &other) return *this;
        if (release_) release_();
        record_ = std::move(other.record_);
        host_ = other.host_;
        device_ = other.device_;
        bytes_ = other.bytes_;
        release_ = std::exchange(other.release_, nullptr);
        return *this;
    }
    ~batch() {
        if (release_) release_();
    }

    [[nodiscard]] std::size_t size() const noexcept { return record_.samples.size(); }
    [[nodiscard]] const batch_record& record() const noexcept { return record_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    /// Samples one after the other; null when the batch was copied to a device.
    [[nodiscard]] const std::byte* host() const noexcept { return host_; }
    /// Device address; null without a device.
    [[nodiscard]] const void* device() const noexcept { return device_; }

private:
    batch_record record_;
    const std::byte* host_;
    const void* device_;
    std::size_t bytes_;
    std::function<void()> release_;
};

/// What a loader has done since the epoch began.
struct epoch_statistics {
    std::size_t samples = 0;
    std::size_t batches = 0;
    std::size_t bytes_read = 0;  ///< encoded
    std::size_t bytes_built = 0; ///< in batches
    stage_times stage_ns{};      ///< summed over workers
    double cpu_ns = 0;           ///< processor time of the workers
    double wait_ns = 0;          ///< the consumer stood in next()
    stage_times waited_for_ns{}; ///< the same, by what the awaited batches spent their time on
    double start_ns = 0;         ///< begin_epoch: order drawn, workers started
    double first_batch_ns = 0;   ///< from begin_epoch to the first batch
    std::size_t oriented = 0;
    failure_log failures;

    /// Adds a batch that the consumer waited for; `built` are its bytes. The wait is charged to the stages of the
    /// batch it was for, in proportion.
    void add(const batch_record& record, std::size_t built, double waited_ns) {
        ++batches;
        samples += record.samples.size();
        bytes_read += record.bytes_read;
        bytes_built += built;
        cpu_ns += record.cpu_ns;
        wait_ns += waited_ns;
        oriented += record.oriented;
        for (const failure& one : record.failures) failures.add(one);
        double total = 0;
        for (const double ns : record.stage_ns) total += ns;
        for (std::size_t i = 0; i < stage_count; ++i) {
            stage_ns[i] += record.stage_ns[i];
            if (total > 0) waited_for_ns[i] += waited_ns * record.stage_ns[i] / total;
        }
    }
};

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
