// SPDX-License-Identifier: Apache-2.0
// Readings through the CUDA libraries. Without a driver they say why they know nothing; with one they know something.
#include <doctest/doctest.h>

#include "fake_machine.hpp"
#include "plumbline/cuda/probe/collect.hpp"
#include "plumbline/cuda/probe/link.hpp"
#include "plumbline/cuda/probe/nccl.hpp"

using namespace plumbline_tests;
namespace probe = plumbline::cuda::probe;

TEST_CASE("versions of the libraries need no GPU") {
    plumbline::result::fingerprint f;
    probe::collect_without_context(f, 0);
    for (const char* name :
         {"cuda.runtime_version", "cuda.compiled_version", "cublaslt.version", "cublaslt.cudart_version",
          "cudnn.version", "cudnn.cudart_version", "cudnn.sublibraries", "cudnn.max_device_version"}) {
        CAPTURE(name);
        REQUIRE(f.find(name) != nullptr);
        CHECK(f.find(name)->read.known());
        CHECK(f.find(name)->link == 2);
    }
    CHECK(std::get<std::int64_t>(f.find("cuda.compiled_version")->read.value) == CUDART_VERSION);
    CHECK(plumbline::to_string(f.find("cudnn.sublibraries")->read.value) == "agree");
}

TEST_CASE("where CUDA cannot start, every reading that needs it says so by name, and none is zero") {
    const probe::start begun = probe::try_start();
    if (begun.code == 0) {
        MESSAGE("a device is there: nothing to say about its absence");
        return;
    }
    CHECK_FALSE(begun.name.empty());
    CHECK(begun.devices == 0);
    fake_machine m;
    make_server(m);
    plumbline::result::fingerprint f;
    probe::collect(f, m.host, 0, nullptr);
    int unknown = 0;
    for (const auto& [name, entry] : f.attributes) {
        if (entry.read.known()) continue;
        CAPTURE(name);
        CHECK_FALSE(entry.read.reason.empty());
        ++unknown;
    }
    CHECK(unknown > 10);
    CHECK(f.find("gpu.sm_count")->read.reason.find(begun.name) != std::string::npos);
    CHECK_FALSE(f.find("cublas.tf32_effective")->read.known());
    CHECK_FALSE(f.find("cuda.module_loading")->read.known());
    CHECK_FALSE(probe::device_json(0).known());
    CHECK_FALSE(probe::pci_bus_id(0).known());
    CHECK_FALSE(probe::link_under_load(m.host, 0));
    CHECK_FALSE(probe::nccl_all_reduce(2).empty());
}

TEST_CASE("NVML's word on what the device is stays, so that looking without CUDA gives the same hash") {
    fake_machine m;
    make_server(m);
    const auto without = m.fingerprint();
    auto with = without;
    probe::collect(with, m.host, 0, nullptr);
    CHECK(with.comparability_hash() == without.comparability_hash());
    CHECK(with.find("gpu.sm_count")->source == "nvml");
}

TEST_CASE("the origin of device code is told by its versions") {
    CHECK(probe::describe_code(90, 90, 90) == "machine code sm_90");
    CHECK(probe::describe_code(80, 80, 86) == "machine code sm_80");
    CHECK(probe::describe_code(90, 80, 90) == "compiled from PTX compute_80 by the driver");
}

TEST_CASE("the witness of TF32 survives fp32 and not ten bits of mantissa") {
    CHECK_FALSE(probe::went_through_tf32(probe::tf32_witness * 1.0f));
    // Rounding to TF32 as the hardware does: the lower 13 of 23 bits of the mantissa are lost.
    std::uint32_t bits = 0;
    const float witness = probe::tf32_witness;
    std::memcpy(&bits, &witness, sizeof bits);
    bits = (bits + 0x1000) & ~0x1fffu;
    float rounded = 0;
    std::memcpy(&rounded, &bits, sizeof rounded);
    CHECK(rounded == 1.0f);
    CHECK(probe::went_through_tf32(rounded));
}

TEST_CASE("the link of a GPU is read from NVML, else from the kernel") {
    fake_machine m;
    make_server(m);
    auto link = nvidia::read_link(m.host);
    REQUIRE(link);
    CHECK(link->generation == 5);
    CHECK(link->max_width == 16);
    m.nvml->failing = {{"nvmlDeviceGetCurrPcieLinkGeneration", nvidia::code::not_supported}};
    link = nvidia::read_link(m.host);
    REQUIRE(link);
    CHECK(link->generation == 1); // 2.5 GT/s: the idle link of the fake kernel
    CHECK(link->max_generation == 5);
    m.without("/sys/bus/pci/devices");
    CHECK_FALSE(nvidia::read_link(m.host));
}
