// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_BASELINE_READER_HPP
#define PLUMBLINE_JSON_BASELINE_READER_HPP

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumbline/json/baseline_rules.hpp"
#include "plumbline/json/fingerprint.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

namespace detail {

/// Reads a baseline member by member. Results are taken one by one while the text is parsed, so that of a large file
/// only one result at a time is in memory as a tree.
class baseline_reader {
public:
    baseline_reader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

    [[nodiscard]] result::baseline read() {
        const element_stream results{
            "results", "schema",
            [this](const nlohmann::json& document, std::size_t index, const nlohmann::json& element) {
                if (!schema_checked_) check_schema(document);
                const std::string at = "/results/" + std::to_string(index);
                read_result(cursor(element, name_, at));
            }};
        const nlohmann::json document = parse_document(text_, name_, comments::refused, {}, &results);
        if (!schema_checked_) check_schema(document);
        const std::string at;
        read_top(cursor(document, name_, at));
        baseline_rules(into_, name_).check();
        return std::move(into_);
    }

private:
    void check_schema(const nlohmann::json& document) {
        const std::string at;
        const cursor top(document, name_, at);
        const cursor schema = top.at("schema");
        const cursor name = schema.at("name");
        if (name.text() != baseline_schema_name) {
            name.fail("must be \"" + std::string(baseline_schema_name) + "\", is \"" + name.text() +
                      "\"; is it the right file?");
        }
        const cursor version = schema.at("version");
        if (version.count() != baseline_schema_version) {
            version.fail("is schema version " + std::to_string(version.count()) + ", known is " +
                         std::to_string(baseline_schema_version) + "; use the plumbline that wrote it, or a newer one");
        }
        if (const auto minor = schema.find("minor")) strict_ = minor->count() <= baseline_schema_minor;
        allow(schema, {"name", "version", "minor"});
        schema_checked_ = true;
    }

    void allow(const cursor& object, std::initializer_list<std::string_view> known) const {
        if (strict_) object.allow(known);
    }

    void read_top(const cursor& top) {
        allow(top, {"schema", "created", "tool", "labels", "selection", "fingerprint", "device", "noise", "checks",
                    "history", "sessions", "results"});
        into_.created = text(top, "created");
        into_.tool = leaves(top, "tool");
        if (top.find("labels")) into_.labels = leaves(top, "labels");
        if (const auto selection = top.find("selection")) read_selection(*selection);
        const cursor fingerprint = top.at("fingerprint");
        into_.environment = read_fingerprint(fingerprint, strict_);
        const cursor device = top.at("device");
        read_device(device);
        if (const auto noise = top.find("noise")) {
            noise->members([this](const std::string& key, const cursor& entry) { read_noise(key, entry); });
        }
        if (top.find("checks")) into_.checks = leaves(top, "checks");
        if (const auto history = top.find("history")) {
            history->elements([this](std::size_t, const cursor& event) { read_event(event); });
        }
        const cursor sessions = top.at("sessions");
        sessions.elements([this](std::size_t, const cursor& session) { read_session(session); });
        // Not streamed when "schema" came after them.
        const cursor results = top.at("results");
        results.elements([this](std::size_t, const cursor& result) { read_result(result); });
    }

    void read_selection(const cursor& from) {
        allow(from, {"suite", "filter", "left_out"});
        into_.selected.suite = text(from, "suite");
        into_.selected.filter = text(from, "filter");
        into_.selected.left_out = texts(from, "left_out");
    }

    void read_device(const cursor& from) {
        allow(from, {"backend", "model", "uuid", "properties", "ceilings"});
        into_.device.backend = text(from, "backend");
        into_.device.model = text(from, "model");
        into_.device.uuid = text(from, "uuid");
        if (from.find("properties")) into_.device.properties = leaves(from, "properties");
        if (const auto ceilings = from.find("ceilings")) {
            ceilings->members([this](const std::string& name, const cursor& value) {
                into_.device.ceilings.emplace(name, value.number());
            });
        }
    }

    void read_noise(const std::string& key, const cursor& from) {
        allow(from, {"s0", "s_e", "d0", "sessions", "epochs"});
        result::noise entry;
        if (const auto value = from.find("s0")) entry.s0 = value->number();
        if (const auto value = from.find("s_e")) entry.s_e = value->number();
        if (const auto value = from.find("d0")) entry.d0 = value->number();
        if (const auto value = from.find("sessions")) entry.sessions = size(*value);
        if (const auto value = from.find("epochs")) entry.epochs = size(*value);
        into_.noise.emplace(key, entry);
    }

    void read_event(const cursor& from) {
        allow(from, {"when", "what", "who", "reason", "ids"});
        into_.history.push_back(
            {text(from, "when"), text(from, "what"), text(from, "who"), text(from, "reason"), texts(from, "ids")});
    }

    void read_session(const cursor& from) {
        allow(from, {"started", "seconds", "seed", "epoch", "failed", "reason", "control", "state", "order"});
        result::session entry;
        entry.started = text(from, "started");
        if (const auto value = from.find("seconds")) entry.seconds = value->number();
        if (const auto value = from.find("seed")) entry.seed = value->count();
        const cursor epoch = from.at("epoch");
        allow(epoch, {"boot", "day", "board"});
        entry.when = {text(epoch, "boot"), text(epoch, "day"), text(epoch, "board")};
        if (const auto value = from.find("failed")) entry.failed = value->boolean();
        if (const auto value = from.find("reason")) entry.reason = value->text();
        if (const auto value = from.find("control")) entry.control = value->text();
        if (const auto value = from.find("state")) entry.state = value->leaves();
        if (const auto value = from.find("order")) entry.order = value->texts();
        into_.sessions.push_back(std::move(entry));
    }

    void read_result(const cursor& from) {
        allow(from, {"id", "metric", "unit", "better", "status", "reason", "backend", "verified", "workload", "alarms",
                     "sessions"});
        result::result entry;
        entry.what.id = text(from, "id");
        entry.what.metric = text(from, "metric");
        entry.what.unit = text(from, "unit");
        const cursor better = from.at("better");
        entry.what.better = better.one_of<direction>({"lower", "higher"});
        const cursor status = from.at("status");
        entry.status = status.one_of<result::result_status>({"ok", "failed", "skipped"});
        if (const auto reason = from.find("reason")) entry.reason = reason->text();
        entry.backend = text(from, "backend");
        const cursor verified = from.at("verified");
        entry.verified = verified.boolean();
        const cursor workload = from.at("workload");
        read_workload(workload, entry.what);
        const cursor sessions = from.at("sessions");
        sessions.elements([&](std::size_t, const cursor& each) { entry.sessions.push_back(read_samples(each)); });
        into_.results.push_back(std::move(entry));
    }

    void read_workload(const cursor& from, workload::description& what) const {
        allow(from, {"family", "class", "params", "hash", "flop", "bytes"});
        what.family = text(from, "family");
        const cursor kind = from.at("class");
        what.kind =
            kind.one_of<benchmark_class>({"kernel", "sustained", "training_step", "dataloader", "host", "imported"});
        what.params = leaves(from, "params");
        if (const auto flop = from.find("flop")) what.flop = flop->number();
        if (const auto bytes = from.find("bytes")) what.bytes = bytes->number();
        const cursor hash = from.at("hash");
        if (hash.text() != what.hash()) {
            hash.fail("the hash does not belong to this family, metric and these params (it would be " + what.hash() +
                      "): the file was edited or damaged; restore it, or measure again");
        }
    }

    [[nodiscard]] result::session_result read_samples(const cursor& from) const {
        allow(from, {"session", "samples", "cycles", "clean", "flags", "evidence", "state"});
        result::session_result entry;
        const cursor session = from.at("session");
        entry.session = size(session);
        const cursor samples = from.at("samples");
        entry.samples = samples.numbers();
        if (const auto cycles = from.find("cycles")) entry.cycles = cycles->numbers();
        if (const auto clean = from.find("clean")) {
            clean->elements([&](std::size_t, const cursor& each) { entry.clean.push_back(each.boolean()); });
        }
        if (const auto flags = from.find("flags")) entry.flags = flags->texts();
        if (const auto evidence = from.find("evidence")) {
            allow(*evidence, {"implementation", "parts", "kernels"});
            entry.ran.implementation = text(*evidence, "implementation");
            if (const auto parts = evidence->find("parts")) entry.ran.parts = parts->leaves();
            if (const auto kernels = evidence->find("kernels")) entry.ran.kernels = kernels->texts();
        }
        if (const auto state = from.find("state")) entry.state = state->leaves();
        return entry;
    }

    // Required members of the types that occur often.
    [[nodiscard]] static std::string text(const cursor& from, std::string_view key) {
        const cursor value = from.at(key);
        return value.text();
    }
    [[nodiscard]] static std::vector<std::string> texts(const cursor& from, std::string_view key) {
        const cursor value = from.at(key);
        return value.texts();
    }
    [[nodiscard]] static scalar_map leaves(const cursor& from, std::string_view key) {
        const cursor value = from.at(key);
        return value.leaves();
    }
    [[nodiscard]] static std::size_t size(const cursor& value) {
        return static_cast<std::size_t>(value.count(std::numeric_limits<std::uint32_t>::max()));
    }

    std::string_view text_;
    const std::string& name_;
    result::baseline into_;
    bool schema_checked_ = false;
    bool strict_ = true;
};

} // namespace detail

/// Reads a document that dump has written, or that another program wrote after baselines/schema/baseline-1.json;
/// `name` (the file) goes into messages. schema_error with the JSON pointer on anything else: another schema or major
/// version, an unknown or a missing member, a wrong type, a hash that does not belong to its fields, a key or result
/// twice, limits exceeded (see json::limits), text that is not JSON or not UTF-8.
[[nodiscard]] inline result::baseline parse_baseline(std::string_view text, const std::string& name) {
    return detail::baseline_reader(text, name).read();
}

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
