// SPDX-License-Identifier: Apache-2.0
// The reader of policies, and a comparison under each policy it accepts.
#include <cstddef>
#include <cstdint>

#include "../json/sample.hpp"
#include "fuzz.hpp"

using namespace plumbline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    compare::policy read;
    if (!tests::accepted([&] { read = json::parse_policy(text, "fuzz"); })) return 0;
    if (!(json::parse_policy(json::dump(read), "again") == read)) tests::broken("the round trip changes something");
    static const result::baseline base = tests::sample_baseline();
    static const result::baseline candidate = [] {
        result::baseline slower = base;
        slower.results[0] = tests::gemm_result(base.results[0].what.id, {190'000, 191'000});
        return slower;
    }();
    tests::compare_and_report(base, candidate, read, size);
    return 0;
}
