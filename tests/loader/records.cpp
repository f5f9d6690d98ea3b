// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/loader/data_set.hpp"
#include "plumbline/loader/reference.hpp"
#include "support.hpp"

using namespace plumbline;

namespace {

std::string npy(const std::string& header, std::size_t bytes, int version = 1, int padding = 0) {
    const std::string text = header + std::string(static_cast<std::size_t>(padding), ' ') + '\n';
    std::string file = "\x93NUMPY";
    file += static_cast<char>(version);
    file += '\0';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(text.size() >> (8 * i) & 0xff);
    file += text;
    for (std::size_t i = 0; i < bytes; ++i) file += static_cast<char>(i % 251);
    return file;
}

std::string header_of(const std::string& descr, const std::string& order, const std::string& shape) {
    return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

std::uint8_t byte_at(std::size_t i) {
    return static_cast<std::uint8_t>(i % 251);
}

} // namespace

TEST_CASE("a .npy file of images is read in both layouts and all three versions of the format") {
    const test::temporary_folder folder;
    for (const int version : {1, 2, 3}) {
        const auto pixels = folder.write("a.npy", npy(header_of("|u1", "False", "(5, 4, 6, 3)"), 360, version));
        const loader::record_layout by_pixel = loader::npy_layout(pixels);
        CHECK(by_pixel.samples == 5);
        CHECK(by_pixel.height == 4);
        CHECK(by_pixel.width == 6);
        CHECK(!by_pixel.planes);
        loader::work w;
        w.sample = 3;
        const loader::source from = loader::record_files({{pixels, by_pixel}});
        from.read(w);
        loader::unpack_record(by_pixel, w);
        CHECK(w.pixels.row(2)[5 * 4 + 1] == byte_at(3 * 72 + (2 * 6 + 5) * 3 + 1));

        const auto planes = folder.write("b.npy", npy(header_of("|u1", "False", "(5, 3, 4, 6)"), 360, version));
        const loader::record_layout by_plane = loader::npy_layout(planes);
        CHECK(by_plane.planes);
        CHECK(by_plane.height == 4);
        loader::record_files({{planes, by_plane}}).read(w);
        loader::unpack_record(by_plane, w);
        CHECK(w.pixels.row(2)[5 * 4 + 1] == byte_at(3 * 72 + 24 + 2 * 6 + 5));
    }
}

TEST_CASE("a .npy file of anything else is refused by name") {
    const test::temporary_folder folder;
    const std::string good = header_of("|u1", "False", "(5, 4, 6, 3)");
    const auto refused = [&](const std::string& content) {
        CHECK_THROWS_WITH_AS((void)loader::npy_layout(folder.write("bad.npy", content)), doctest::Contains("bad.npy"),
                             file_error);
    };
    refused(npy(header_of("<f4", "False", "(5, 4, 6, 3)"), 1440));
    refused(npy(header_of("|u1", "True", "(5, 4, 6, 3)"), 360));
    refused(npy(header_of("|u1", "False", "(5, 4, 6)"), 360));
    refused(npy(header_of("|u1", "False", "(5, 4, 6, 4)"), 480));
    refused(npy(header_of("|u1", "False", "(0, 4, 6, 3)"), 0));
    refused(npy(header_of("|u1", "False", "(5, 0, 6, 3)"), 0));
    refused(npy(header_of("|u1", "False", "(99999999999999999999, 4, 6, 3)"), 360));
    refused(npy(header_of("|u1", "False", "(1, 4294967296, 4294967296, 3)"), 360));
    refused(npy(header_of("|u1", "False", "(18446744073709551615, 4, 6, 3)"), 360));
    refused(npy(good, 359)); // one byte short
    refused(npy(good, 360, 4));
    refused(npy("{}", 360));
    refused(npy(good, 0).substr(0, 40));
    refused("short");
    refused("");
    CHECK_THROWS_AS((void)loader::npy_layout(folder.path() / "none.npy"), file_error);
    CHECK_THROWS_AS((void)loader::npy_layout(folder.path()), file_error);
}

TEST_CASE("CIFAR-10's binary files are a label and three planes of 32 x 32") {
    const test::temporary_folder folder;
    std::string content;
    for (std::size_t record = 0; record < 4; ++record) {
        content += static_cast<char>(record + 6);
        for (std::size_t i = 0; i < 3072; ++i) content += static_cast<char>((record + i) % 251);
    }
    const auto path = folder.write("data_batch_1.bin", content);
    const loader::record_layout layout = loader::cifar10_layout(path);
    CHECK(layout.samples == 4);
    loader::work w;
    w.sample = 2;
    loader::record_files({{path, layout}}).read(w);
    loader::unpack_record(layout, w);
    CHECK(w.label == 8);
    CHECK(w.pixels.width == 32);
    CHECK(w.pixels.row(31)[31 * 4 + 2] == (2 + 3071) % 251);
    CHECK_THROWS_AS((void)loader::cifar10_layout(folder.write("odd.bin", content.substr(1))), file_error);
    CHECK_THROWS_AS((void)loader::cifar10_layout(folder.write("empty.bin", std::string())), file_error);
    CHECK_THROWS_AS((void)loader::cifar10_layout(folder.path() / "none.bin"), file_error);
}

TEST_CASE("a file that has become shorter costs the samples that were in it, not the run") {
    const test::temporary_folder folder;
    const auto path = folder.write("a.npy", npy(header_of("|u1", "False", "(8, 4, 6, 3)"), 576));
    loader::augmentation how;
    how.size = 4;
    const loader::record_layout layout = loader::npy_layout(path);
    loader::options options;
    options.batch_size = 3;
    loader::data_loader all(loader::record_pipeline(loader::record_files({{path, layout}}), layout, how), options);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 100);
    (void)test::drain(all, 0);
    CHECK(all.statistics().samples == 6);
    CHECK(all.statistics().failures.count(loader::failure_kind::truncated) == 2);
}

TEST_CASE("generated records are a .npy file that is made once, and the same as those in memory") {
    const test::temporary_folder cache;
    loader::augmentation how;
    how.size = 32;
    const loader::data_provider on_disk = loader::generated_records(cache.path(), 2, 6);
    const loader::data_set first = on_disk.open(how);
    REQUIRE(first.files.size() == 1);
    const auto made = std::filesystem::last_write_time(first.files[0]);
    const loader::data_set second = on_disk.open(how);
    CHECK(std::filesystem::last_write_time(second.files[0]) == made);
    CHECK(first.bytes == 128 + 6 * 3 * 256 * 256);
    const loader::data_set in_memory = loader::memory_data(2, 6).open(how);
    CHECK(in_memory.files.empty());
    loader::options options;
    options.batch_size = 4;
    loader::data_loader a(first.all, options);
    loader::data_loader b(in_memory.all, options);
    CHECK(test::drain(a, 0) == test::drain(b, 0));
    CHECK(on_disk.identity() != loader::memory_data(2, 6).identity());
    CHECK(on_disk.identity() != loader::generated_records(cache.path(), 2, 7).identity());
}

TEST_CASE("records of the user's own file are named by it") {
    const test::temporary_folder folder;
    const auto path = folder.write("own.npy", npy(header_of("|u1", "False", "(8, 4, 6, 3)"), 576));
    const loader::data_provider own = loader::record_data(path);
    CHECK(own.identity().rfind("records:", 0) == 0);
    loader::augmentation how;
    how.size = 4;
    CHECK(own.open(how).all.samples == 8);
    CHECK(own.open(how).all.name(3) == path.string() + " record 3");
    CHECK_THROWS_AS((void)loader::record_data(folder.path() / "none.npy").identity(), file_error);
}
