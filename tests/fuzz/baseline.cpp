// SPDX-License-Identifier: Apache-2.0
// The reader of baselines: any bytes end in a baseline that survives writing and reading, or in one clear error.
#include <cstddef>
#include <cstdint>

#include "fuzz.hpp"

using namespace plumbline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    result::baseline read;
    if (!tests::accepted([&] { read = json::parse_baseline(text, "fuzz"); })) return 0;
    const bool written = tests::accepted([&] {
        const std::string once = json::dump(read);
        if (json::dump(json::parse_baseline(once, "again")) != once) tests::broken("the round trip changes something");
    });
    if (!written) tests::broken("what was read cannot be written");
    tests::compare_and_report(read, read, {}, size);
    return 0;
}
