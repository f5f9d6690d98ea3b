// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_ELF_HPP
#define PLUMBLINE_ENVIRONMENT_ELF_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <elf.h>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// What a shared library says about itself. Empty fields are not in the file.
struct elf_identity {
    std::string soname;
    std::string build_id; ///< lower-case hexadecimal, from the note NT_GNU_BUILD_ID
};

namespace detail {

/// Bounded reads from a file that may be damaged or half written: every offset in it is doubted.
class elf_reader {
public:
    explicit elf_reader(const std::filesystem::path& path) : file_(path, std::ios::binary) {}

    template <class T>
    [[nodiscard]] bool at(std::uint64_t offset, T& into) {
        return bytes(offset, sizeof(T), reinterpret_cast<char*>(&into));
    }
    [[nodiscard]] std::vector<char> block(std::uint64_t offset, std::uint64_t size) {
        std::vector<char> data(static_cast<std::size_t>(std::min<std::uint64_t>(size, 1u << 20)));
        if (!bytes(offset, data.size(), data.data())) data.clear();
        return data;
    }
    [[nodiscard]] std::string text(std::uint64_t offset) {
        std::string found;
        for (char c = 0; found.size() < 256 && at(offset + found.size(), c) && c != '\0';) found += c;
        return found;
    }

private:
    bool bytes(std::uint64_t offset, std::size_t size, char* into) {
        if (offset > std::uint64_t{1} << 40) return false;
        file_.clear();
        file_.seekg(static_cast<std::streamoff>(offset));
        file_.read(into, static_cast<std::streamsize>(size));
        return static_cast<bool>(file_);
    }
    std::ifstream file_;
};

[[nodiscard]] inline std::string build_id_note(const std::vector<char>& notes, std::uint64_t alignment) {
    static constexpr char digits[] = "0123456789abcdef";
    const std::uint64_t align = alignment == 8 ? 8 : 4;
    const auto padded = [&](std::uint64_t n) { return (n + align - 1) / align * align; };
    std::uint64_t at = 0;
    while (at + sizeof(Elf64_Nhdr) <= notes.size()) {
        Elf64_Nhdr note;
        std::memcpy(&note, notes.data() + at, sizeof note);
        const std::uint64_t name = at + sizeof note, content = name + padded(note.n_namesz);
        if (content + note.n_descsz > notes.size()) break;
        const bool gnu = note.n_namesz == 4 && std::memcmp(notes.data() + name, "GNU", 4) == 0;
        if (gnu && note.n_type == NT_GNU_BUILD_ID) {
            std::string hex;
            for (std::uint64_t i = 0; i < note.n_descsz; ++i) {
                const auto byte = static_cast<unsigned char>(notes[content + i]);
                hex += digits[byte >> 4];
                hex += digits[byte & 15];
            }
            return hex;
        }
        at = content + padded(note.n_descsz);
    }
    return {};
}

} // namespace detail

/// Reads soname and build id of a 64-bit ELF file of this machine's byte order (ELF-64 object file format, gABI
/// chapters 4 and 5). Empty where the file is none or cannot be read; a damaged file gives what could be read.
[[nodiscard]] inline std::optional<elf_identity> read_elf(const std::filesystem::path& path) {
    detail::elf_reader file(path);
    Elf64_Ehdr header;
    if (!file.at(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) {
        return std::nullopt;
    }
    std::vector<Elf64_Phdr> segments;
    for (unsigned i = 0; i < header.e_phnum && i < 256; ++i) {
        Elf64_Phdr segment;
        if (!file.at(header.e_phoff + i * sizeof segment, segment)) break;
        segments.push_back(segment);
    }
    // Dynamic entries hold addresses; the loadable segment around an address says where it lies in the file.
    const auto offset_of = [&](std::uint64_t address) -> std::optional<std::uint64_t> {
        for (const Elf64_Phdr& s : segments) {
            if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz) {
                return s.p_offset + (address - s.p_vaddr);
            }
        }
        return std::nullopt;
    };
    elf_identity found;
    for (const Elf64_Phdr& segment : segments) {
        if (segment.p_type == PT_NOTE && found.build_id.empty()) {
            found.build_id = detail::build_id_note(file.block(segment.p_offset, segment.p_filesz), segment.p_align);
        }
        if (segment.p_type != PT_DYNAMIC) continue;
        std::optional<std::uint64_t> strings, name;
        for (std::uint64_t i = 0; i < std::min<std::uint64_t>(segment.p_filesz / sizeof(Elf64_Dyn), 4096); ++i) {
            Elf64_Dyn entry;
            if (!file.at(segment.p_offset + i * sizeof entry, entry) || entry.d_tag == DT_NULL) break;
            if (entry.d_tag == DT_STRTAB) strings = offset_of(entry.d_un.d_ptr);
            if (entry.d_tag == DT_SONAME) name = entry.d_un.d_val;
        }
        if (strings && name) found.soname = file.text(*strings + *name);
    }
    return found;
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
