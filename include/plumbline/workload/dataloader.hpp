// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_DATALOADER_HPP
#define PLUMBLINE_WORKLOAD_DATALOADER_HPP

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/workload/description.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace workload {

/// Where the samples of a DataLoader benchmark come from.
enum class sample_source {
    jpeg,   ///< JPEG files: the generated set, or the user's folder
    raw,    ///< decoded records in one file, read with pread
    memory, ///< the same records, already in memory: no read, no decode
};

/// How many workers load batches. The rules are resolved on the machine that runs, from the CPUs it may use, so that
/// one id follows a machine whose quota changes; the number that ran is part of the session's state.
struct worker_count {
    enum class rule { number, half, all, best };
    rule kind = rule::number;
    std::size_t number = 1; ///< meaningful with rule::number; 0 loads in the consumer's thread, as PyTorch does

    bool operator==(const worker_count&) const = default;
};

/// Element type and order of the batch that is handed out.
enum class batch_type { fp32, fp16 };
enum class batch_layout { chw, hwc };

/// What a DataLoader benchmark loads and how. The id is made of it:
/// `dataloader/SOURCE/wWORKERSpPREFETCH[/pinned][/unordered][/cold][/fp16][/hwc][/bBATCH][/stepMILLISECONDSms]`.
/// WORKERS is a number, `half`, `all` (of the usable CPUs) or `best` (the knee of a sweep).
struct dataloader {
    sample_source source = sample_source::jpeg;
    worker_count workers;
    std::size_t prefetch = 2; ///< batches in flight for each worker
    bool pinned = false;      ///< page-locked ring, and the copy to the device is part of the work
    bool ordered = true;      ///< batches come in the sampler's order, not as completed
    bool cold = false;        ///< files are dropped from the page cache before each epoch
    batch_type type = batch_type::fp32;
    batch_layout layout = batch_layout::chw;
    std::size_t batch = 128;        ///< samples in a batch
    std::size_t step_ms = 0;        ///< consumer's time for a batch; 0: it takes batches as fast as they come
    std::size_t size = 224;         ///< rows and columns of an output image; fixed, not part of the id
    std::string data = "generated"; ///< identity of the data set: not in the id, but in the hash

    bool operator==(const dataloader&) const = default;
};

namespace detail {

inline std::string to_text(const worker_count& workers) {
    switch (workers.kind) {
    case worker_count::rule::half:
        return "half";
    case worker_count::rule::all:
        return "all";
    case worker_count::rule::best:
        return "best";
    case worker_count::rule::number:
        break;
    }
    return std::to_string(workers.number);
}

inline const char* to_text(sample_source source) {
    switch (source) {
    case sample_source::raw:
        return "raw";
    case sample_source::memory:
        return "memory";
    case sample_source::jpeg:
        break;
    }
    return "jpeg";
}

/// A decimal number without sign or leading zeros, in [low, high]; false otherwise.
inline bool read_count(std::string_view text, std::size_t low, std::size_t high, std::size_t& value) {
    if (text.empty() || (text.size() > 1 && text.front() == '0')) return false;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    return status == std::errc{} && end == text.data() + text.size() && value >= low && value <= high;
}

inline bool read_workers(std::string_view part, dataloader& into) {
    const std::size_t p = part.rfind('p');
    if (part.size() < 4 || part.front() != 'w' || p == std::string_view::npos) return false;
    if (!read_count(part.substr(p + 1), 1, 64, into.prefetch)) return false;
    const std::string_view count = part.substr(1, p - 1);
    into.workers = {};
    if (count == "half") return into.workers.kind = worker_count::rule::half, true;
    if (count == "all") return into.workers.kind = worker_count::rule::all, true;
    if (count == "best") return into.workers.kind = worker_count::rule::best, true;
    return read_count(count, 0, 1024, into.workers.number);
}

inline bool read_option(std::string_view part, dataloader& into) {
    if (part == "pinned") return into.pinned = true;
    if (part == "unordered") return into.ordered = false, true;
    if (part == "cold") return into.cold = true;
    if (part == "fp16") return into.type = batch_type::fp16, true;
    if (part == "hwc") return into.layout = batch_layout::hwc, true;
    if (part.size() > 1 && part.front() == 'b') return read_count(part.substr(1), 1, 65536, into.batch);
    if (part.size() > 6 && part.substr(0, 4) == "step" && part.substr(part.size() - 2) == "ms") {
        return read_count(part.substr(4, part.size() - 6), 1, 60000, into.step_ms);
    }
    return false;
}

} // namespace detail

/// The id of a DataLoader benchmark; parse_dataloader is its inverse.
[[nodiscard]] inline std::string id(const dataloader& p) {
    std::string text = std::string("dataloader/") + detail::to_text(p.source) + "/w" + detail::to_text(p.workers) +
                       "p" + std::to_string(p.prefetch);
    if (p.pinned) text += "/pinned";
    if (!p.ordered) text += "/unordered";
    if (p.cold) text += "/cold";
    if (p.type == batch_type::fp16) text += "/fp16";
    if (p.layout == batch_layout::hwc) text += "/hwc";
    if (p.batch != dataloader{}.batch) text += "/b" + std::to_string(p.batch);
    if (p.step_ms != 0) text += "/step" + std::to_string(p.step_ms) + "ms";
    return text;
}

/// Reads an id. Throws usage_error when it is not one that id() writes: parts unknown, repeated or out of order.
[[nodiscard]] inline dataloader parse_dataloader(const std::string& text) {
    std::vector<std::string_view> parts;
    std::string_view rest = text;
    for (std::size_t slash = 0; slash != std::string_view::npos; rest.remove_prefix(slash + 1)) {
        slash = rest.find('/');
        parts.push_back(rest.substr(0, slash));
        if (slash == std::string_view::npos) break;
    }
    dataloader p;
    bool good = parts.size() >= 3 && parts[0] == "dataloader" && detail::read_workers(parts[2], p);
    if (good && parts[1] == "raw")
        p.source = sample_source::raw;
    else if (good && parts[1] == "memory")
        p.source = sample_source::memory;
    else
        good = good && parts[1] == "jpeg";
    for (std::size_t i = 3; good && i < parts.size(); ++i) good = detail::read_option(parts[i], p);
    // One spelling for one benchmark: an id that would be written differently is refused.
    if (!good || id(p) != text) {
        throw usage_error("\"" + text +
                          "\" is no DataLoader benchmark; expected dataloader/{jpeg|raw|memory}/"
                          "w{N|half|all|best}p{N}[/pinned][/unordered][/cold][/fp16][/hwc][/bN][/stepNms], in this "
                          "order, for example dataloader/jpeg/w8p2/pinned");
    }
    return p;
}

/// What is timed: images per second, or with a consumer of fixed speed the time of one of its steps.
[[nodiscard]] inline description describe(const dataloader& p) {
    description what;
    what.id = id(p);
    what.family = "dataloader";
    what.kind = benchmark_class::dataloader;
    what.params = {{"source", std::string(detail::to_text(p.source))},
                   {"workers", detail::to_text(p.workers)},
                   {"prefetch", static_cast<std::int64_t>(p.prefetch)},
                   {"pinned", p.pinned},
                   {"ordered", p.ordered},
                   {"cold", p.cold},
                   {"type", std::string(p.type == batch_type::fp16 ? "fp16" : "fp32")},
                   {"layout", std::string(p.layout == batch_layout::hwc ? "hwc" : "chw")},
                   {"batch", static_cast<std::int64_t>(p.batch)},
                   {"size", static_cast<std::int64_t>(p.size)},
                   {"step_ms", static_cast<std::int64_t>(p.step_ms)},
                   {"data", p.data}};
    if (p.step_ms == 0) {
        what.metric = "throughput";
        what.unit = "items/s";
        what.better = direction::higher;
    }
    return what;
}

} // namespace workload

PLUMBLINE_NAMESPACE_END

#endif
