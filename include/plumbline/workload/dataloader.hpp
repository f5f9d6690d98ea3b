// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_DATALOADER_HPP
#define PLUMBLINE_WORKLOAD_DATALOADER_HPP

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "plumbline/workload/description.hpp"
#include "plumbline/workload/dtype.hpp"
#include "plumbline/workload/id.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// Loading batches of images with worker threads.
namespace workload::dataloader {

/// Where the samples come from.
enum class source {
    jpeg,   ///< JPEG files: the generated set, or the user's folder
    raw,    ///< decoded records in one file, read with pread
    memory, ///< the same records, already in memory: nothing to read
};

/// How many workers load batches. The rules are resolved on the machine that runs, from the CPUs it may use, so that
/// one id follows a machine whose quota changes; the number that ran is part of the session's state.
struct worker_count {
    enum class rule { number, half, all, best };
    rule kind = rule::number;
    std::size_t number = 1; ///< meaningful with rule::number; 0 loads in the consumer's thread, as PyTorch does

    bool operator==(const worker_count&) const = default;
};

/// Order of the elements of an image.
enum class layout { chw, hwc };

/// What is loaded and how.
struct params {
    source from = source::jpeg;
    worker_count workers;
    std::size_t prefetch = 2;       ///< batches in flight for each worker
    bool pinned = false;            ///< page-locked ring; with a device the copy to it is part of the work
    bool ordered = true;            ///< batches come in the sampler's order, not as completed
    bool cold = false;              ///< files are dropped from the page cache before each epoch
    dtype type = dtype::fp32;       ///< of the batch: fp32 or fp16
    layout order = layout::chw;     ///< of the batch
    std::size_t batch = 128;        ///< samples in a batch
    std::size_t step_ms = 0;        ///< consumer's time for a batch; 0: it takes batches as fast as they come
    bool train = false;             ///< the consumer is a training step of the backend
    std::size_t size = 224;         ///< rows and columns of an output image; fixed, not part of the id
    std::string data = "generated"; ///< identity of the data set: not in the id, but in the hash
    std::string trained;            ///< with `train`: id of the training step; not in the id, but in the hash

    bool operator==(const params&) const = default;
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

inline const char* to_text(source from) {
    switch (from) {
    case source::raw:
        return "raw";
    case source::memory:
        return "memory";
    case source::jpeg:
        break;
    }
    return "jpeg";
}

/// Reads a decimal number in [low, high].
inline bool read_count(std::string_view text, std::size_t low, std::size_t high, std::size_t& value) {
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    return status == std::errc{} && end == text.data() + text.size() && value >= low && value <= high;
}

/// "w8p2", "whalfp2"
inline bool read_workers(std::string_view part, params& into) {
    const std::size_t p = part.rfind('p');
    if (part.size() < 4 || part.front() != 'w' || p == std::string_view::npos) return false;
    if (!read_count(part.substr(p + 1), 1, 64, into.prefetch)) return false;
    const std::string_view count = part.substr(1, p - 1);
    for (const auto rule : {worker_count::rule::half, worker_count::rule::all, worker_count::rule::best}) {
        into.workers = {rule, 0};
        if (count == to_text(into.workers)) return true;
    }
    into.workers.kind = worker_count::rule::number;
    return read_count(count, 0, 1024, into.workers.number);
}

inline bool read_option(std::string_view part, params& into) {
    if (part == "pinned") return into.pinned = true;
    if (part == "unordered") return into.ordered = false, true;
    if (part == "cold") return into.cold = true;
    if (part == "fp16") return into.type = dtype::fp16, true;
    if (part == "hwc") return into.order = layout::hwc, true;
    if (part == "train") return into.train = true;
    if (part.size() > 6 && part.substr(0, 4) == "step" && part.substr(part.size() - 2) == "ms") {
        return read_count(part.substr(4, part.size() - 6), 1, 60000, into.step_ms);
    }
    return part.front() == 'b' && read_count(part.substr(1), 1, 65536, into.batch);
}

} // namespace detail

/// dataloader/SOURCE/wWORKERSpPREFETCH[/pinned][/unordered][/cold][/fp16][/hwc][/bBATCH][/stepMILLISECONDSms | /train]
/// WORKERS is a number, `half` or `all` (of the usable CPUs), or `best` (the knee of a sweep).
[[nodiscard]] inline std::string id(const params& p) {
    std::string text = std::string("dataloader/") + detail::to_text(p.from) + "/w" + detail::to_text(p.workers) + 'p' +
                       std::to_string(p.prefetch);
    if (p.pinned) text += "/pinned";
    if (!p.ordered) text += "/unordered";
    if (p.cold) text += "/cold";
    if (p.type != dtype::fp32) text += '/' + std::string(name(p.type));
    if (p.order == layout::hwc) text += "/hwc";
    if (p.batch != params{}.batch) text += "/b" + std::to_string(p.batch);
    if (p.step_ms != 0) text += "/step" + std::to_string(p.step_ms) + "ms";
    if (p.train) text += "/train";
    return text;
}

/// Reads an id; usage_error when it is not exactly what id() writes.
[[nodiscard]] inline params parse(const std::string& text) {
    id_reader reader(text, "dataloader", "dataloader/jpeg/w8p2/pinned");
    params p;
    constexpr std::pair<std::string_view, source> sources[] = {
        {"jpeg", source::jpeg}, {"raw", source::raw}, {"memory", source::memory}};
    p.from = reader.choice("a source of samples", sources);
    const std::string& workers = reader.next("a number of workers such as w8p2");
    if (!detail::read_workers(workers, p)) {
        reader.refuse("'" + workers + "' is not w, then a number, half, all or best, then p and the prefetch factor");
    }
    while (!reader.done()) {
        const std::string& part = reader.next("an option");
        if (!detail::read_option(part, p)) {
            reader.refuse("'" + part + "' is no option (pinned, unordered, cold, fp16, hwc, bN, stepNms, train)");
        }
    }
    if (p.train && p.step_ms != 0) reader.refuse("a consumer is either stepNms or train");
    reader.finish(id(p));
    return p;
}

/// What is timed: images per second, or with a consumer that takes its time, the time of one of its steps.
[[nodiscard]] inline description describe(const params& p) {
    description what;
    what.id = id(p);
    what.family = "dataloader";
    what.kind = benchmark_class::dataloader;
    what.params = {{"source", std::string(detail::to_text(p.from))},
                   {"workers", detail::to_text(p.workers)},
                   {"prefetch", static_cast<std::int64_t>(p.prefetch)},
                   {"pinned", p.pinned},
                   {"ordered", p.ordered},
                   {"cold", p.cold},
                   {"type", std::string(name(p.type))},
                   {"layout", std::string(p.order == layout::hwc ? "hwc" : "chw")},
                   {"batch", static_cast<std::int64_t>(p.batch)},
                   {"size", static_cast<std::int64_t>(p.size)},
                   {"step_ms", static_cast<std::int64_t>(p.step_ms)},
                   {"train", p.train},
                   {"data", p.data}};
    if (p.train) what.params["trained"] = p.trained;
    if (p.step_ms == 0 && !p.train) {
        what.metric = "throughput";
        what.unit = "items/s";
        what.better = direction::higher;
    }
    return what;
}

} // namespace workload::dataloader

PLUMBLINE_NAMESPACE_END

#endif
