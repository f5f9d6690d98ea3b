// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_RUN_FAKE_PROGRAM_HPP
#define PLUMBLINE_TESTS_RUN_FAKE_PROGRAM_HPP

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "process_under_test.hpp"

/// A place to run the fake bench program in: its own folder of baselines, a made-up machine without NVIDIA hardware.
struct fake_place {
    test_folder folder;
    std::map<std::string, std::string> variables;

    fake_place() {
        variables["PLUMBLINE_BASELINE_DIR"] = folder / "baselines";
        variables["FAKE_ROOT"] = folder / "root";
        std::filesystem::create_directories(folder / "root");
    }

    ended bench(std::vector<std::string> arguments) const {
        return run_program(FAKE_BENCH, std::move(arguments), variables, folder.text());
    }

    /// A suite file with these ids for the CPU backend.
    std::string suite(const std::vector<std::string>& ids) const {
        const std::string file = folder / "suite.json";
        std::ofstream out(file);
        out << R"({"name": "mine", "cpu": [)";
        for (std::size_t i = 0; i < ids.size(); ++i) out << (i == 0 ? "\"" : ", \"") << ids[i] << '"';
        out << "]}";
        return "--suite=" + file;
    }

    [[nodiscard]] std::string baseline() const { return folder / "baselines/fake-device-01234567.json"; }

    /// Files in the folder of baselines, runs/ included, whose name holds `part`.
    [[nodiscard]] std::vector<std::string> files(const std::string& part) const {
        std::vector<std::string> found;
        std::error_code ignored;
        for (const auto& each : std::filesystem::recursive_directory_iterator(folder / "baselines", ignored)) {
            if (each.is_regular_file() && contains(each.path().filename().string(), part)) {
                found.push_back(each.path().string());
            }
        }
        return found;
    }
};

#endif
