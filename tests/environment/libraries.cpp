// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include <doctest/doctest.h>
#include <elf.h>

#include "fake_machine.hpp"
#include "plumbline/environment/diff.hpp"

using namespace plumbline_tests;

namespace {

/// A 64-bit shared library with one loadable segment, a dynamic section and a build id, as small as it gets.
std::string make_library(const std::string& soname, const std::string& build_id) {
    struct image {
        Elf64_Ehdr header;
        Elf64_Phdr load, dynamic, note;
        Elf64_Dyn entries[3];
        Elf64_Nhdr note_header;
        char note_name[4];
    } start{};
    const std::string strings = std::string("\0", 1) + soname + std::string("\0", 1);
    const std::size_t note_at = offsetof(image, note_header), strings_at = sizeof start + build_id.size();
    const std::size_t total = strings_at + strings.size();
    std::memcpy(start.header.e_ident, ELFMAG, SELFMAG);
    start.header.e_ident[EI_CLASS] = ELFCLASS64;
    start.header.e_phoff = offsetof(image, load);
    start.header.e_phentsize = sizeof(Elf64_Phdr);
    start.header.e_phnum = 3;
    constexpr std::uint64_t address = 0x10000;
    start.load.p_type = PT_LOAD;
    start.load.p_vaddr = address;
    start.load.p_filesz = start.load.p_memsz = total;
    start.dynamic.p_type = PT_DYNAMIC;
    start.dynamic.p_offset = offsetof(image, entries);
    start.dynamic.p_filesz = sizeof start.entries;
    start.note.p_type = PT_NOTE;
    start.note.p_offset = note_at;
    start.note.p_filesz = sizeof(Elf64_Nhdr) + 4 + build_id.size();
    start.note.p_align = 4;
    start.entries[0] = {DT_SONAME, {1}};
    start.entries[1] = {DT_STRTAB, {address + strings_at}};
    start.entries[2] = {DT_NULL, {0}};
    start.note_header = {4, static_cast<Elf64_Word>(build_id.size()), NT_GNU_BUILD_ID};
    std::memcpy(start.note_name, "GNU", 4);
    return std::string(reinterpret_cast<const char*>(&start), sizeof start) + build_id + strings;
}

std::string map_line(const std::string& path) {
    return "7f00-7f10 r-xp 00000000 08:02 9 " + path + "\n";
}

std::string text(const plumbline::result::fingerprint& of, const std::string& name) {
    const auto* entry = of.find(name);
    REQUIRE_MESSAGE(entry != nullptr, name);
    return env::describe(entry->read);
}

} // namespace

TEST_CASE("soname and build id come from the file that is mapped") {
    fake_machine m;
    m.file("/opt/cuda/lib/libcudnn.so.9.19.0", make_library("libcudnn.so.9", "\xde\xad\xbe\xef"));
    m.file("/proc/self/maps", map_line("/opt/cuda/lib/libcudnn.so.9.19.0") +
                                  map_line("/opt/cuda/lib/libcudnn.so.9.19.0") + map_line("/usr/lib/libm.so.6") +
                                  map_line("/usr/bin/bench") + "7f00-7f10 rw-p 0 0:0 0 [heap]\n");
    const auto f = m.fingerprint();
    CHECK(text(f, "lib.libcudnn.path") == "/opt/cuda/lib/libcudnn.so.9.19.0");
    CHECK(text(f, "lib.libcudnn.soname") == "libcudnn.so.9");
    CHECK(text(f, "lib.libcudnn.build_id") == "deadbeef");
    CHECK(f.find("lib.libcudnn.path")->link == 2);
    CHECK(f.find("lib.libcudnn#2.path") == nullptr);
    CHECK(f.find("lib.libm.path") == nullptr);
    CHECK(text(f, "process.library_conflicts") == "none");
}

TEST_CASE("a damaged library file is read as far as it goes, never beyond") {
    const std::string whole = make_library("libcudnn.so.9", "\xde\xad\xbe\xef");
    temporary_folder folder;
    const auto place = folder.path() / "lib.so";
    for (std::size_t size = 0; size < whole.size(); ++size) {
        std::ofstream(place, std::ios::binary | std::ios::trunc) << whole.substr(0, size);
        const auto found = env::read_elf(place);
        if (found) CHECK((found->soname.empty() || std::string("libcudnn.so.9").rfind(found->soname, 0) == 0));
    }
    // Every byte in turn set to all ones: sizes and offsets that lead anywhere.
    for (std::size_t at = 0; at < whole.size(); ++at) {
        std::string bad = whole;
        bad[at] = '\xff';
        std::ofstream(place, std::ios::binary | std::ios::trunc) << bad;
        const auto found = env::read_elf(place);
        if (found) CHECK(found->soname.size() <= 256);
    }
    std::ofstream(place, std::ios::binary | std::ios::trunc) << "#!/bin/sh\n";
    CHECK_FALSE(env::read_elf(place));
    CHECK_FALSE(env::read_elf(folder.path() / "nothing"));
}

TEST_CASE("this very process has libraries with a soname and a build id") {
    // Against the loader's own word for it: the C library is always there.
    env::host real;
    bool seen = false;
    for (const std::string& line : env::detail::split(env::read_file(real, "/proc/self/maps").text, '\n')) {
        const auto slash = line.find('/');
        if (slash == std::string::npos || line.find("/libc.so.6") == std::string::npos) continue;
        const auto found = env::read_elf(line.substr(slash));
        REQUIRE(found);
        CHECK(found->soname == "libc.so.6");
        CHECK(found->build_id.size() == 40);
        seen = true;
        break;
    }
    if (!seen) MESSAGE("statically linked, or another C library: nothing to compare with");
}

TEST_CASE("two cuDNNs, two copies and a replaced file are conflicts") {
    fake_machine m;
    m.file("/proc/self/maps", map_line("/opt/a/libcudnn.so.9.19.0") + map_line("/venv/b/libcudnn_ops.so.9.10.2") +
                                  map_line("/opt/a/libcublas.so.13") + map_line("/venv/b/libcublas.so.12") +
                                  map_line("/opt/a/libnvrtc.so.13 (deleted)"));
    const auto libraries = env::mapped_libraries(m.host);
    const auto conflicts = env::library_conflicts(libraries);
    REQUIRE(conflicts.size() == 3);
    const std::string all = text(m.fingerprint(), "process.library_conflicts");
    CHECK(all.find("/opt/a/libnvrtc.so.13 was replaced") != std::string::npos);
    CHECK(all.find("two copies of libcublas: /opt/a/libcublas.so.13, /venv/b/libcublas.so.12") != std::string::npos);
    CHECK(all.find("cuDNN from different folders: /opt/a (libcudnn), /venv/b (libcudnn_ops)") != std::string::npos);
    CHECK(text(m.fingerprint(), "lib.libcublas#2.path") == "/venv/b/libcublas.so.12");
}

TEST_CASE("a libcuda of the compatibility package is seen") {
    fake_machine m;
    m.file("/proc/self/maps", map_line("/usr/local/cuda/compat/libcuda.so.590.10.01"));
    CHECK(text(m.fingerprint(), "driver.forward_compatibility") == "true");
    CHECK_FALSE(nvidia::library_version(m.host).known());
}

TEST_CASE("a library that is loaded in one environment only is a change, because the list of loaded ones is complete") {
    fake_machine m;
    m.file("/proc/self/maps", map_line("/opt/a/libcudnn.so.9"));
    const auto before = m.fingerprint();
    m.file("/proc/self/maps", map_line("/opt/a/libcudnn.so.9") + map_line("/opt/a/libtcmalloc.so.4"));
    const auto found = env::diff(before, m.fingerprint());
    bool named = false;
    for (const auto& d : found) {
        if (d.name != "lib.libtcmalloc.path") continue;
        named = true;
        CHECK(d.changed());
        CHECK(env::describe(d.from) == "not loaded");
        CHECK(d.link == 4);
    }
    CHECK(named);
}
