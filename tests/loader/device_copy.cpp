// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "support.hpp"

using namespace plumbline;
using namespace std::chrono_literals;

namespace {

/// A device that is a few vectors, and a copy that is done when it is waited for. Fails when it is used wrongly.
struct fake_device {
    struct buffer {
        std::vector<std::byte> bytes;
        const std::byte* from = nullptr; // of a copy that was started
        std::size_t size = 0;
    };
    std::vector<buffer> buffers;
    std::size_t copies = 0;
    std::size_t fail_at = static_cast<std::size_t>(-1);

    loader::device_copy functions() {
        loader::device_copy copy;
        copy.buffers = 2;
        copy.reserve = [this](std::size_t count, std::size_t bytes) {
            buffers.resize(count);
            for (buffer& one : buffers) one.bytes.resize(bytes);
        };
        copy.start = [this](std::size_t at, const std::byte* from, std::size_t bytes) {
            if (copies++ == fail_at) throw std::runtime_error("the device is gone");
            if (buffers.at(at).from != nullptr) throw std::logic_error("buffer still being copied to");
            buffers[at].from = from;
            buffers[at].size = bytes;
        };
        copy.wait = [this](std::size_t at) {
            // The host slot must not change before this: what is read here is what the consumer gets.
            std::this_thread::sleep_for(500us);
            std::memcpy(buffers[at].bytes.data(), buffers[at].from, buffers[at].size);
            buffers[at].from = nullptr;
        };
        copy.address = [this](std::size_t at) -> const void* { return buffers[at].bytes.data(); };
        return copy;
    }
};

loader::options with(std::size_t workers) {
    loader::options how;
    how.num_workers = workers;
    how.batch_size = 4;
    how.seed = 11;
    return how;
}

test::delivered drain_device(loader::data_loader& from, std::uint64_t epoch) {
    test::delivered all;
    from.begin_epoch(epoch);
    while (auto next = from.next()) {
        const auto* const device = static_cast<const std::byte*>(next->device());
        REQUIRE(device != nullptr);
        CHECK(next->host() == nullptr);
        all.indices.push_back(next->record().index);
        all.samples.push_back(next->record().samples);
        all.bytes.emplace_back(device, device + next->bytes());
    }
    return all;
}

} // namespace

TEST_CASE("batches on the device are those of the host, in order, whatever the number of workers") {
    loader::data_loader host(test::numbered(103), with(0));
    const test::delivered expected = test::drain(host, 0);
    for (const std::size_t workers : {0u, 1u, 4u}) {
        fake_device device;
        loader::data_loader copied(test::numbered(103), with(workers), loader::pageable_memory(), device.functions());
        CHECK(drain_device(copied, 0) == expected);
        CHECK(drain_device(copied, 0) == expected);
        CHECK(device.copies == 52);
        CHECK(copied.statistics().stage_ns[static_cast<std::size_t>(loader::stage::copy)] >= 26 * 0.5e6);
    }
}

TEST_CASE("a device buffer is not overwritten while the consumer holds it") {
    fake_device device;
    loader::data_loader copied(test::numbered(103), with(2), loader::pageable_memory(), device.functions());
    copied.begin_epoch(0);
    auto first = copied.next();
    auto second = copied.next();
    const auto* const bytes = static_cast<const std::byte*>(first->device());
    const std::vector<std::byte> before(bytes, bytes + first->bytes());
    CHECK_THROWS_AS((void)copied.next(), usage_error); // both buffers are held
    CHECK(std::equal(before.begin(), before.end(), bytes));
    second.reset();
    CHECK(copied.next()->size() == 4);
}

TEST_CASE("a copy that fails is thrown by next(), and the loader ends cleanly") {
    for (const std::size_t workers : {0u, 2u}) {
        fake_device device;
        device.fail_at = 3;
        loader::data_loader copied(test::numbered(103), with(workers), loader::pageable_memory(), device.functions());
        CHECK_THROWS_WITH_AS(drain_device(copied, 0), "the device is gone", std::runtime_error);
        CHECK(drain_device(copied, 1).samples.size() == 26);
    }
}

TEST_CASE("an epoch given up while copies are under way leaves every buffer usable") {
    fake_device device;
    loader::data_loader copied(test::numbered(103), with(2), loader::pageable_memory(), device.functions());
    for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
        copied.begin_epoch(epoch);
        for (std::uint64_t i = 0; i < epoch; ++i) (void)copied.next();
    }
    CHECK(drain_device(copied, 9).samples.size() == 26);
}
