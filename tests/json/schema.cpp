// SPDX-License-Identifier: Apache-2.0
// The JSON Schema in baselines/schema agrees with what the writer writes and the reader refuses.
#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "mutilated.hpp"
#include "plumbline/json/file.hpp"

using namespace plumbline;

namespace {

class schema_file {
public:
    schema_file() {
        const auto text = nlohmann::json::parse(json::read_file(PLUMBLINE_SCHEMA));
        valijson::adapters::NlohmannJsonAdapter adapter(text);
        valijson::SchemaParser(valijson::SchemaParser::kDraft7).populateSchema(adapter, schema_);
    }
    [[nodiscard]] bool accepts(const std::string& text) {
        auto document = nlohmann::json::parse(text);
        // valijson reads whole numbers above 2^63 as negative ones; the seed is the only one that may be so large.
        const bool has_sessions = document.contains("sessions");
        for (auto& session : has_sessions ? document["sessions"] : document) {
            if (session.is_object() && session.contains("seed") && session["seed"].is_number_unsigned())
                session["seed"] = 1;
        }
        valijson::adapters::NlohmannJsonAdapter adapter(document);
        valijson::ValidationResults problems;
        const bool valid = valijson::Validator().validate(schema_, adapter, &problems);
        valijson::ValidationResults::Error problem;
        while (problems.popError(problem)) {
            for (const std::string& each : problem.context) problems_ += each;
            problems_ += ": " + problem.description + "; ";
        }
        return valid;
    }

    [[nodiscard]] const std::string& problems() const { return problems_; }

private:
    valijson::Schema schema_;
    std::string problems_;
};

} // namespace

TEST_CASE("the JSON Schema accepts what the writer writes") {
    schema_file schema;
    CHECK_MESSAGE(schema.accepts(json::dump(tests::sample_baseline())), schema.problems());
    result::baseline empty;
    empty.created = "2026-11-30T20:15:00Z";
    CHECK(schema.accepts(json::dump(empty)));
}

TEST_CASE("the JSON Schema refuses every spoilt document that a schema can see") {
    schema_file schema;
    for (const tests::mutilation& each : tests::mutilations()) {
        CAPTURE(each.name);
        tests::tree document = tests::sample_document();
        each.spoil(document);
        CHECK(schema.accepts(document.dump()) == !each.by_schema);
    }
}
