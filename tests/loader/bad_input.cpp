// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "broken_images.hpp"
#include "plumbline/loader/jpeg/encoder.hpp"
#include "plumbline/loader/jpeg/pipeline.hpp"
#include "support.hpp"

using namespace plumbline;

namespace {

using test::encoded;
using test::with_size;

loader::options with(std::size_t workers) {
    loader::options how;
    how.num_workers = workers;
    how.batch_size = 4;
    return how;
}

/// Loads a folder once and returns the failures by file name.
std::map<std::string, loader::failure> failures_of(const std::filesystem::path& folder, std::size_t workers,
                                                   std::size_t& loaded) {
    loader::data_loader all(loader::jpeg_pipeline(loader::image_folder(folder), {}), with(workers));
    (void)test::drain(all, 0);
    loaded = all.statistics().samples;
    std::map<std::string, loader::failure> found;
    for (const loader::failure& one : all.statistics().failures.named) {
        found[std::filesystem::path(one.name).filename().string()] = one;
    }
    CHECK(found.size() == all.statistics().failures.total());
    return found;
}

} // namespace

TEST_CASE("a folder that is missing, no folder, or without images is an error that says what was expected") {
    const test::temporary_folder folder;
    CHECK_THROWS_WITH_AS((void)loader::image_folder(folder.path() / "none"), doctest::Contains("no such folder"),
                         file_error);
    CHECK_THROWS_WITH_AS((void)loader::image_folder(folder.path()), doctest::Contains(".jpg, .jpeg"), file_error);
    const auto file = folder.write("notes.txt", "x");
    CHECK_THROWS_AS((void)loader::image_folder(file), file_error);
    CHECK_THROWS_AS((void)loader::image_folder(folder.path()), file_error);
    std::filesystem::create_directory(folder.path() / "folder.jpg");
    CHECK_THROWS_AS((void)loader::image_folder(folder.path()), file_error);
}

TEST_CASE("classes are the first sub-folders in the order of their names, and the order of files is fixed") {
    const test::temporary_folder folder;
    for (const char* name : {"dog/2.jpg", "cat/x/9.JPEG", "cat/1.jpg", "dog/1.jpg", "dog/readme.txt"}) {
        folder.write(name, encoded(8, 8));
    }
    const loader::source found = loader::image_folder(folder.path());
    REQUIRE(found.samples == 4);
    loader::work w;
    const char* names[] = {"cat/1.jpg", "cat/x/9.JPEG", "dog/1.jpg", "dog/2.jpg"};
    for (w.sample = 0; w.sample < 4; ++w.sample) {
        CHECK(found.name(w.sample) == (folder.path() / names[w.sample]).string());
        found.read(w);
        CHECK(w.label == (w.sample < 2 ? 0 : 1));
    }
    const std::string before = found.identity;
    CHECK(loader::image_folder(folder.path()).identity == before);
    folder.write("dog/2.jpg", encoded(9, 9));
    CHECK(loader::image_folder(folder.path()).identity != before);
}

TEST_CASE("every kind of broken file is named and counted, what is merely odd is loaded, and the run goes on") {
    const test::temporary_folder folder;
    const auto good = encoded(100, 80);
    const auto part = [&](double share) {
        return std::vector<std::byte>(
            good.begin(), good.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(good.size())));
    };
    auto cut_with_end = part(0.5); // the end marker is there, half of the pixels are not
    cut_with_end.insert(cut_with_end.end(), {std::byte{0xff}, std::byte{0xd9}});
    test::write_odd_images(folder.path());
    const auto expected = test::write_broken_images(folder.path());
    folder.write("cut_with_end.jpg", cut_with_end);
    folder.write("no_size.jpg", with_size(good, 0, 0));

    using kind = loader::failure_kind;
    for (const std::size_t workers : {0u, 2u}) {
        std::size_t loaded = 0;
        auto found = failures_of(folder.path(), workers, loaded);
        // Whether the cut-off part is met depends on the crop; when it is, it must be noticed.
        if (found.count("cut_with_end.jpg") != 0) {
            CHECK(found["cut_with_end.jpg"].kind == kind::corrupt);
            CHECK(loaded == 6);
            found.erase("cut_with_end.jpg");
        } else {
            CHECK(loaded == 7);
        }
        REQUIRE(found.count("no_size.jpg") == 1);
        found.erase("no_size.jpg");
        CHECK(found.size() == expected.size());
        for (const auto& [name, why] : expected) {
            CAPTURE(name);
            REQUIRE(found.count(name) == 1);
            CAPTURE(found[name].message);
            CHECK(found[name].kind == why);
            CHECK(!found[name].message.empty());
        }
    }
}

TEST_CASE("pixels that end too early are never passed off as an image") {
    const auto good = encoded(100, 80);
    auto cut = std::vector<std::byte>(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(good.size() / 2));
    cut.insert(cut.end(), {std::byte{0xff}, std::byte{0xd9}});
    loader::jpeg_decoder decoder;
    loader::image into;
    (void)decoder.open(cut);
    CHECK_THROWS_AS(decoder.read({0, 0, 100, 80}, 1, into), loader::sample_error);
    (void)decoder.open(good); // and the decoder goes on
    decoder.read({0, 0, 100, 80}, 1, into);
    CHECK(into.width == 100);
}

TEST_CASE("a file of random bytes, or with a random byte changed, never crashes the decoder") {
    const auto good = encoded(64, 48);
    loader::jpeg_decoder decoder;
    loader::image into;
    std::size_t refused = 0;
    for (std::uint64_t i = 0; i < 3000; ++i) {
        loader::sample_random random(1, 9, i);
        auto file = good;
        for (std::size_t k = 0; k < 1 + i % 4; ++k) {
            file[2 + random.below(file.size() - 4)] = static_cast<std::byte>(random.below(256));
        }
        try {
            const loader::jpeg_header header = decoder.open(file);
            const loader::crop_box box =
                loader::random_resized_crop(header.width, header.height, loader::augmentation{}, random);
            // A changed header may claim a large image; decoding it is allowed, only slow.
            if (header.width * header.height <= 1000000) decoder.read(box, 1, into);
        } catch (const loader::sample_error&) {
            ++refused;
        }
    }
    CHECK(refused > 100);
    CHECK(refused < 3000);
}

TEST_CASE("a progressive file with too many scans is refused") {
    loader::jpeg_encoding progressive;
    progressive.progressive = true;
    const auto good = encoded(64, 48, progressive);
    std::size_t scan = good.size(); // the last scan, with its header, up to the end marker
    while (!(good[scan - 2] == std::byte{0xff} && good[scan - 1] == std::byte{0xda})) --scan;
    scan -= 2;
    std::vector<std::byte> bomb(good.begin(), good.end() - 2);
    for (int i = 0; i < 600; ++i) {
        bomb.insert(bomb.end(), good.begin() + static_cast<std::ptrdiff_t>(scan), good.end() - 2);
    }
    bomb.insert(bomb.end(), good.end() - 2, good.end());
    loader::jpeg_decoder decoder;
    loader::image into;
    (void)decoder.open(bomb);
    CHECK_THROWS_WITH_AS(decoder.read({0, 0, 64, 48}, 1, into), doctest::Contains("scans"), loader::sample_error);
}

TEST_CASE("a file that disappears, and one that shrinks, while the loader runs is named and counted") {
    const test::temporary_folder folder;
    const auto good = encoded(100, 80);
    for (int i = 0; i < 20; ++i) folder.write(std::to_string(10 + i) + ".jpg", good);
    loader::options how = with(2);
    how.shuffle = false;
    loader::data_loader running(loader::jpeg_pipeline(loader::image_folder(folder.path()), {}), how);
    running.begin_epoch(0);
    CHECK(running.next()->size() == 4);
    std::filesystem::remove(folder.path() / "29.jpg");
    std::filesystem::resize_file(folder.path() / "28.jpg", good.size() / 2);
    std::size_t loaded = 4;
    while (auto next = running.next()) loaded += next->size();
    const loader::failure_log& log = running.statistics().failures;
    // Batches already in flight may have been read before; the next epoch is certain.
    CHECK(loaded + log.total() == 20);
    running.begin_epoch(1);
    while (running.next()) {
    }
    CHECK(running.statistics().samples == 18);
    CHECK(running.statistics().failures.count(loader::failure_kind::missing) == 1);
    CHECK(running.statistics().failures.count(loader::failure_kind::truncated) == 1);
}

TEST_CASE("a file without read permission is named, unless permissions do not bind this user") {
    const test::temporary_folder folder;
    folder.write("good.jpg", encoded(10, 10));
    const auto closed = folder.write("closed.jpg", encoded(10, 10));
    std::filesystem::permissions(closed, std::filesystem::perms::none);
    std::size_t loaded = 0;
    const auto found = failures_of(folder.path(), 1, loaded);
    if (geteuid() == 0) {
        CHECK(loaded == 2);
    } else {
        REQUIRE(found.count("closed.jpg") == 1);
        CHECK(found.at("closed.jpg").kind == loader::failure_kind::unreadable);
    }
}

TEST_CASE("images turned by EXIF are loaded as they lie, and counted") {
    const test::temporary_folder folder;
    const auto good = encoded(16, 16);
    folder.write("turned.jpg", test::turned(good));
    folder.write("upright.jpg", good);
    loader::data_loader all(loader::jpeg_pipeline(loader::image_folder(folder.path()), {}), with(1));
    (void)test::drain(all, 0);
    CHECK(all.statistics().samples == 2);
    CHECK(all.statistics().failures.total() == 0);
    CHECK(all.statistics().oriented == 1);
}
