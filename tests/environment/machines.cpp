// SPDX-License-Identifier: Apache-2.0
// Whole fingerprints of made-up machines.
#include <clocale>
#include <locale>
#include <set>

#include <doctest/doctest.h>

#include "fake_machine.hpp"
#include "plumbline/environment/diff.hpp"
#include "plumbline/environment/epoch.hpp"
#include "plumbline/environment/storage.hpp"

using namespace plumbline_tests;
using plumbline::scalar;
using plumbline::result::attribute_class;
using plumbline::result::reading_status;

namespace {

scalar value(const plumbline::result::fingerprint& of, const std::string& name) {
    const auto* entry = of.find(name);
    REQUIRE_MESSAGE(entry != nullptr, name);
    REQUIRE_MESSAGE(entry->read.known(), name << ": " << entry->read.reason);
    return entry->read.value;
}

std::string text(const plumbline::result::fingerprint& of, const std::string& name) {
    return plumbline::to_string(value(of, name));
}

struct decimal_comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
};

reading_status status(const plumbline::result::fingerprint& of, const std::string& name) {
    const auto* entry = of.find(name);
    REQUIRE_MESSAGE(entry != nullptr, name);
    return entry->read.status;
}

} // namespace

TEST_CASE("a bare-metal server with eight GPUs is read whole") {
    fake_machine m;
    make_server(m);
    const auto f = m.fingerprint();
    CHECK(text(f, "backend") == "cuda");
    CHECK(text(f, "gpu.pci_device_id") == "10de:2335");
    CHECK(text(f, "gpu.pci_subsystem_id") == "10de:18be");
    CHECK(value(f, "gpu.sm_count") == scalar{std::int64_t{132}});
    CHECK(value(f, "gpu.memory_gib") == scalar{std::int64_t{140}});
    CHECK(text(f, "gpu.mig_profile") == "none");
    CHECK(value(f, "gpu.count") == scalar{std::int64_t{8}});
    CHECK(value(f, "gpu.numa_node") == scalar{std::int64_t{0}});
    CHECK(text(f, "gpu.near_cpus") == "0-3");
    CHECK(value(f, "gpu.power_limit_w") == scalar{700.0});
    CHECK(text(f, "gpu.clock_reasons") == "idle");
    CHECK(text(f, "gpu.compute_mode") == "default");
    CHECK(text(f, "gpu.virtualization") == "none");
    CHECK(text(f, "driver.module_version") == "580.65.06");
    CHECK(text(f, "driver.library_version") == "580.65.06");
    CHECK(text(f, "driver.version") == "580.65.06");
    CHECK(text(f, "driver.module_kind") == "open");
    CHECK(text(f, "driver.gpu_firmware") == "580.65.06");
    CHECK(text(f, "driver.parameter.EnableGpuFirmware") == "18");
    CHECK(f.find("driver.parameter.DeviceFileUID") == nullptr);
    CHECK(value(f, "driver.forward_compatibility") == scalar{false});
    CHECK(text(f, "cpu.model") == "Intel(R) Xeon(R) Platinum 8480C");
    CHECK(value(f, "cpu.sockets") == scalar{std::int64_t{2}});
    CHECK(value(f, "cpu.cores") == scalar{std::int64_t{4}});
    CHECK(value(f, "cpu.logical") == scalar{std::int64_t{8}});
    CHECK(text(f, "cpu.math_flags") == "amx_bf16 avx avx2 avx512f fma");
    CHECK(value(f, "cpu.hypervisor") == scalar{false});
    CHECK(text(f, "cpu.governor") == "performance");
    CHECK(value(f, "cpu.turbo") == scalar{true});
    CHECK(value(f, "cpu.usable") == scalar{std::int64_t{8}});
    CHECK(text(f, "numa.distances") == "10 21; 21 10");
    CHECK(value(f, "memory.total_gib") == scalar{std::int64_t{2016}});
    CHECK(text(f, "memory.thp") == "madvise");
    CHECK(text(f, "process.limit_memlock_bytes") == "unlimited");
    CHECK(value(f, "process.limit_open_files") == scalar{std::int64_t{1024}});
    CHECK(text(f, "container.runtime") == "none");
    CHECK(text(f, "os.name") == "Ubuntu 24.04 LTS");
    CHECK(text(f, "cgroup.version") == "v2");
    CHECK(text(f, "cgroup.cpu_quota") == "unlimited");
    CHECK(text(f, "kernel.parameters") == "iommu=pt isolcpus=1");
    CHECK(value(f, "nvlink.active_links") == scalar{std::int64_t{18}});
    CHECK(text(f, "gpu.peers").find("0000:43:00.0=system/p2p") != std::string::npos);
}

TEST_CASE("only what no driver, kernel or library can change is identity") {
    fake_machine m;
    make_server(m);
    std::set<std::string> identity;
    for (const auto& [name, entry] : m.fingerprint().attributes) {
        if (entry.kind == attribute_class::identity) identity.insert(name);
    }
    CHECK(identity == std::set<std::string>{"backend", "gpu.memory_gib", "gpu.mig_profile", "gpu.pci_device_id",
                                            "gpu.pci_subsystem_id", "gpu.sm_count"});
    // The CPU is the device of the CPU backend.
    m.host.backend = "cpu";
    identity.clear();
    for (const auto& [name, entry] : m.fingerprint().attributes) {
        if (entry.kind == attribute_class::identity) identity.insert(name);
        CHECK(name.rfind("gpu.", 0) != 0);
    }
    CHECK(identity == std::set<std::string>{"backend", "cpu.model"});
}

TEST_CASE("a driver upgrade keeps comparability and changes provenance; state changes neither") {
    fake_machine m;
    make_server(m);
    const auto before = m.fingerprint();
    m.nvml->gpus[0].temperature = 71;
    m.nvml->gpus[0].sm_clock = 1980;
    m.nvml->gpus[0].memory_used = 5ull << 30;
    m.file("/proc/loadavg", "7.00 3 2 9/900 1\n");
    CHECK(m.fingerprint().comparability_hash() == before.comparability_hash());
    CHECK(m.fingerprint().provenance_hash() == before.provenance_hash());
    add_gpu_files(m, 8, "590.10.01");
    m.nvml->driver = "590.10.01";
    const auto after = m.fingerprint();
    CHECK(after.comparability_hash() == before.comparability_hash());
    CHECK(after.provenance_hash() != before.provenance_hash());
    bool named = false;
    for (const auto& difference : env::diff(before, after)) {
        if (difference.name == "driver.version") {
            named = true;
            CHECK(difference.link == 1);
            CHECK(difference.changed());
            CHECK(env::describe(difference.from) == "580.65.06");
            CHECK(env::describe(difference.to) == "590.10.01");
        }
    }
    CHECK(named);
}

TEST_CASE("hashes are the same on every look, in every locale, and on a machine built in another order") {
    fake_machine first, second;
    make_server(first);
    // Another order of files and variables, and the folders made by other calls.
    second.set("OMP_NUM_THREADS", "4").set("CUDA_HOME", "/usr/local/cuda");
    add_gpu_files(second, 8);
    add_server_files(second);
    add_gpu_files(second, 8);
    second.gpus(same_gpus(8));
    second.host.gpu = "00000000:1b:00.0";
    first.set("CUDA_HOME", "/usr/local/cuda").set("OMP_NUM_THREADS", "4");
    const auto a = first.fingerprint();
    const auto b = second.fingerprint();
    CHECK(a.comparability_hash() == b.comparability_hash());
    CHECK(a.provenance_hash() == b.provenance_hash());
    // A decimal comma and grouped digits in everything that follows a locale: streams through a facet of our own,
    // the C library through whichever of these is installed.
    const std::locale before = std::locale::global(std::locale(std::locale::classic(), new decimal_comma));
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "C.UTF-8"}) {
        if (std::setlocale(LC_ALL, name) != nullptr) break;
    }
    const auto c = first.fingerprint();
    std::setlocale(LC_ALL, "C");
    std::locale::global(before);
    CHECK(c.comparability_hash() == a.comparability_hash());
    CHECK(c.provenance_hash() == a.provenance_hash());
    CHECK(a.provenance_hash().size() == 16);
}

TEST_CASE("nothing of the fingerprint gives away a UUID, a serial number or a name of the machine") {
    fake_machine m;
    make_server(m);
    m.set("NVIDIA_VISIBLE_DEVICES", m.nvml->gpus[0].uuid).set("SLURM_JOB_ID", "424242").set("SLURMD_NODENAME", "rack9");
    std::string everything;
    for (const auto& [name, entry] : m.fingerprint().attributes) {
        everything += name + "=" + plumbline::to_string(entry.read.value) + entry.read.reason + "\n";
    }
    for (const char* secret :
         {"11111111-2222", "00000000-2222", "1650123456780", "gpu-node-17", "example.com", "8c4ff2f5",
          "0123456789abcdef0123456789abcdef", "424242", "rack9", "hunter2", "root=UUID"}) {
        CAPTURE(secret);
        CHECK(everything.find(secret) == std::string::npos);
    }
    CHECK(text(m.fingerprint(), "env.NVIDIA_VISIBLE_DEVICES").rfind("GPU-#", 0) == 0);
}

TEST_CASE("a virtual machine with most files missing gives a reason for each, and no zero") {
    fake_machine m;
    make_bare_vm(m);
    const auto f = m.fingerprint();
    CHECK(text(f, "cpu.model") == "AMD EPYC");
    CHECK(value(f, "cpu.hypervisor") == scalar{true});
    for (const char* name : {"cpu.microcode", "cpu.governor", "cpu.turbo", "cpu.idle_states", "cpu.smt", "numa.nodes",
                             "machine.product", "kernel.release", "memory.total_gib", "memory.thp", "cgroup.cpu_quota",
                             "process.limit_memlock_bytes", "machine.id", "os.name"}) {
        CAPTURE(name);
        CHECK(status(f, name) != reading_status::value);
        CHECK_FALSE(f.find(name)->read.reason.empty());
    }
    CHECK(value(f, "cpu.usable") == scalar{std::int64_t{1}});
    // Unknown becoming known is no change.
    const auto before = m.fingerprint();
    m.file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    for (const auto& difference : env::diff(before, m.fingerprint())) {
        CAPTURE(difference.name);
        CHECK_FALSE(difference.changed());
    }
}

TEST_CASE("a file that may not be read is denied, not absent") {
    fake_machine m;
    make_bare_vm(m);
    m.file("/sys/class/dmi/id/bios_version", "1.0\n");
    const auto place = m.folder.path() / "sys/class/dmi/id/bios_version";
    fs::permissions(place, fs::perms::none);
    if (::access(place.c_str(), R_OK) == 0) return; // the superuser may read it anyway
    CHECK(status(m.fingerprint(), "machine.bios_version") == reading_status::denied);
}

TEST_CASE("MIG: the instance is the device, its board the whole GPU") {
    fake_machine m;
    make_server(m);
    auto list = same_gpus(2);
    list[0].mig = list[0].mig_pending = true;
    fake_gpu slice = list[0];
    slice.uuid = "MIG-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee";
    slice.slice = nvidia::mig_attributes{60, 3, 2, 0, 2, 1, 3, 3, 71680};
    slice.parent = 0;
    fake_gpu small = slice;
    small.uuid = "MIG-ffffffff-bbbb-cccc-dddd-eeeeeeeeeeee";
    small.slice = nvidia::mig_attributes{16, 1, 1, 0, 1, 0, 1, 1, 17920};
    list.push_back(slice);
    list.push_back(small);
    list[0].instances = {2, 3};
    m.gpus(list);

    m.host.gpu = slice.uuid;
    auto f = m.fingerprint();
    CHECK(text(f, "gpu.mig_profile") == "3g.70gb");
    CHECK(value(f, "gpu.sm_count") == scalar{std::int64_t{60}});
    CHECK(value(f, "gpu.memory_gib") == scalar{std::int64_t{70}});
    CHECK(text(f, "gpu.board") == env::hashed_id(list[0].uuid));
    CHECK(text(f, "gpu.unit") == env::hashed_id(slice.uuid));
    CHECK(env::current_epoch(m.host).board == env::hashed_id(list[0].uuid));
    const std::string large = f.comparability_hash();

    // By PCI id the instance is the one the process was given, else the first.
    m.host.gpu = "0000:1b:00.0";
    CHECK(m.fingerprint().comparability_hash() == large);
    m.set("CUDA_VISIBLE_DEVICES", small.uuid);
    f = m.fingerprint();
    CHECK(text(f, "gpu.mig_profile") == "1g.18gb");
    CHECK(f.comparability_hash() != large);
}

TEST_CASE("a device is found by UUID or bus id, however they are written, never by its number") {
    fake_machine m;
    make_server(m);
    for (const char* id : {"00000000:C3:00.0", "0000:c3:00.0"}) {
        m.host.gpu = id;
        CHECK(text(m.fingerprint(), "gpu.board") == env::hashed_id(m.nvml->gpus[5].uuid));
    }
    m.host.gpu = m.nvml->gpus[6].uuid;
    CHECK(text(m.fingerprint(), "gpu.board") == env::hashed_id(m.nvml->gpus[6].uuid));
    m.host.gpu = "0000:ff:00.0";
    const auto f = m.fingerprint();
    CHECK(f.find("gpu.board") == nullptr);
    CHECK(status(f, "gpu.name") == reading_status::absent);
    CHECK(f.find("gpu.name")->read.reason.find("not found") != std::string::npos);
}

TEST_CASE("without NVML the ids come from the kernel, and the rest says why it is unknown") {
    fake_machine m;
    make_server(m);
    const auto with = m.fingerprint();
    m.host.nvml = nullptr;
    m.host.nvml_problem = "libnvidia-ml.so.1: cannot open shared object file";
    const auto f = m.fingerprint();
    CHECK(text(f, "gpu.pci_device_id") == text(with, "gpu.pci_device_id"));
    CHECK(text(f, "gpu.pci_subsystem_id") == text(with, "gpu.pci_subsystem_id"));
    CHECK(status(f, "gpu.sm_count") == reading_status::absent);
    CHECK(f.find("gpu.sm_count")->read.reason.find("libnvidia-ml") != std::string::npos);
    CHECK(text(f, "driver.module_version") == "580.65.06");
}

TEST_CASE("what NVML refuses keeps its code, and N/A is unknown rather than zero") {
    fake_machine m;
    make_server(m);
    m.nvml->failing = {{"nvmlDeviceGetSerial", nvidia::code::no_permission},
                       {"nvmlDeviceGetTemperature", nvidia::code::not_supported},
                       {"nvmlDeviceGetMemoryInfo_v2", nvidia::code::not_supported},
                       {"nvmlDeviceGetPowerUsage", nvidia::code::gpu_is_lost}};
    m.nvml->gpus[0].processes.reset();
    const auto f = m.fingerprint();
    CHECK(status(f, "gpu.serial") == reading_status::denied);
    CHECK(status(f, "gpu.temperature_c") == reading_status::unsupported);
    CHECK(f.find("gpu.temperature_c")->read.reason == "nvmlDeviceGetTemperature: nvml 3 (not supported)");
    CHECK(status(f, "gpu.memory_used_bytes") == reading_status::unsupported);
    CHECK(status(f, "gpu.processes") == reading_status::unsupported);
    CHECK(f.find("gpu.power_w")->read.reason.find("GPU is lost") != std::string::npos);
    // A function that the library found does not have is no crash.
    CHECK(status(f, "gpu.fan_percent") == reading_status::unsupported);
    CHECK(f.find("gpu.fan_percent")->read.reason.find("function not found") != std::string::npos);
}

TEST_CASE("an older driver that knows the clock reasons by their old name is understood") {
    fake_machine m;
    make_server(m);
    auto table = m.nvml->table();
    table.clock_reasons = nullptr;
    table.clock_reasons_old = [](nvidia::device_handle, unsigned long long* into) {
        *into = nvidia::clock_reason::sw_power_cap | nvidia::clock_reason::hw_thermal;
        return 0;
    };
    m.host.nvml = nvidia::start_nvml(table).api;
    CHECK(text(m.fingerprint(), "gpu.clock_reasons") == "sw_power_cap hw_thermal");
}

TEST_CASE("NVML is shut down with its last user, and a refused start leaves its code") {
    auto fake = std::make_shared<fake_nvml>();
    {
        const auto loaded = fake->start();
        REQUIRE(loaded.api != nullptr);
        CHECK_FALSE(fake->shut_down);
    }
    CHECK(fake->shut_down);
    fake->init_answer = nvidia::code::version_mismatch;
    const auto refused = fake->start();
    CHECK(refused.api == nullptr);
    CHECK(refused.code == nvidia::code::version_mismatch);
    CHECK(refused.problem.find("versions differ") != std::string::npos);
    CHECK(nvidia::start_nvml({}).api == nullptr);
}

TEST_CASE("an unlicensed vGPU, a capped card and a driver mismatch are in the fingerprint") {
    fake_machine m;
    make_server(m);
    m.nvml->gpus[0].virtualization = 2;
    m.nvml->gpus[0].licensed = false;
    m.nvml->gpus[0].limit_mw = 315000;
    m.file("/proc/self/maps", "7f00-7f10 r-xp 0 08:02 2 /usr/lib/libcuda.so.590.10.01\n");
    const auto f = m.fingerprint();
    CHECK(text(f, "gpu.virtualization") == "vgpu");
    CHECK(text(f, "gpu.vgpu_license") == "unlicensed");
    CHECK(f.find("gpu.vgpu_license")->kind == attribute_class::state);
    CHECK(value(f, "gpu.power_limit_enforced_w") == scalar{315.0});
    CHECK(text(f, "driver.module_version") == "580.65.06");
    CHECK(text(f, "driver.library_version") == "590.10.01");
}

TEST_CASE("an epoch is the boot, the day in UTC and the board, all hashed but the day") {
    fake_machine m;
    make_server(m);
    const auto noon = std::chrono::system_clock::from_time_t(1'790'000'000); // 2026-09-21 13:33:20 UTC
    const auto epoch = env::current_epoch(m.host, noon);
    CHECK(epoch.day == "2026-09-21");
    CHECK(epoch.boot == env::hashed_id("8c4ff2f5-1b1c-4d3b-9c7a-6f2b1a0c9d8e"));
    CHECK(epoch.board == env::hashed_id(m.nvml->gpus[0].uuid));
    m.host.backend = "cpu";
    CHECK(env::current_epoch(m.host, noon).board == env::hashed_id("0123456789abcdef0123456789abcdef"));
    m.without("/etc/machine-id");
    CHECK(env::current_epoch(m.host, noon).board == env::hashed_id("gpu-node-17.example.com"));
    fake_machine bare;
    make_bare_vm(bare);
    CHECK(env::current_epoch(bare.host, noon).boot.empty());
    CHECK(env::current_epoch(bare.host, noon).board.empty());
}

TEST_CASE("where data lies is told by its file system and disk, and never by its path") {
    fake_machine m;
    make_server(m);
    m.file("/proc/self/mountinfo", "24 1 8:2 / / rw shared:1 - ext4 /dev/sda2 rw\n"
                                   "25 24 0:44 / /data/images rw shared:2 - nfs4 server:/export rw\n"
                                   "26 24 259:1 / /data rw shared:3 - xfs /dev/nvme0n1p1 rw\n");
    m.file("/sys/dev/block/8:2/queue/rotational", "1\n");
    m.file("/sys/dev/block/259:1/part", "1\n").file("/sys/dev/block/queue/rotational", "0\n");
    const auto read = [&](const std::string& path) {
        plumbline::result::fingerprint f;
        env::read_data_path(f, m.host, path);
        for (const auto& [name, entry] : f.attributes) {
            CHECK(plumbline::to_string(entry.read.value).find("customer") == std::string::npos);
        }
        return f;
    };
    CHECK(text(read("/home/customer/set"), "data.file_system") == "ext4");
    CHECK(value(read("/home/customer/set"), "data.rotational") == scalar{std::int64_t{1}});
    CHECK(text(read("/data/customer"), "data.file_system") == "xfs");
    CHECK(value(read("/data/customer"), "data.rotational") == scalar{std::int64_t{0}}); // of the disk of the partition
    CHECK(text(read("/data/images/customer"), "data.file_system") == "nfs4");
    CHECK(status(read("/data/images/customer"), "data.rotational") == reading_status::absent);
    CHECK(text(read("/data/images2"), "data.file_system") == "xfs"); // a longer name is another folder
    m.without("/proc/self/mountinfo");
    CHECK(status(read("/data"), "data.file_system") == reading_status::absent);
}

TEST_CASE("settings of NCCL that lie in files change the provenance without being told") {
    fake_machine m;
    make_server(m);
    const auto before = m.fingerprint();
    m.file("/root/.nccl.conf", "NCCL_P2P_DISABLE=1\n");
    const auto after = m.fingerprint();
    CHECK(before.provenance_hash() != after.provenance_hash());
    CHECK(text(after, "nccl.user_config_file") == env::hashed_id("NCCL_P2P_DISABLE=1"));
}

TEST_CASE("facts of the build are those of the program, and absent where it does not say them") {
    fake_machine m;
    make_server(m);
    CHECK(status(m.fingerprint(), "build.compiler") == reading_status::absent);
    m.host.build = PLUMBLINE_BUILD_FACTS;
    const auto f = m.fingerprint();
    CHECK(text(f, "build.compiler").find(' ') != std::string::npos);
#if defined(NDEBUG)
    CHECK(value(f, "build.assertions") == scalar{false});
#else
    CHECK(value(f, "build.assertions") == scalar{true});
#endif
}

TEST_CASE("whatever /proc and /sys say, the fingerprint is read: damaged files cost their own attributes") {
    const std::string huge = "9223372036854775807";
    std::string lists = "0-1048576";
    for (int i = 0; i < 1000; ++i) lists += ",0-1048576";
    for (const std::string& text : {std::string(), huge, "-" + huge, std::string("1e308"), std::string("x\xff\0y", 4),
                                    std::string(70000, '9'), lists, std::string("a:b:c - : ::\n\n=\n[\n]")}) {
        fake_machine m;
        make_server(m);
        m.file("/proc/meminfo", "MemTotal: " + huge + " kB\nSwapTotal: 0 kB\nSwapFree: " + text + " kB\n");
        m.file("/proc/self/numa_maps", "7f00 default N0=" + huge + " N0=" + huge + " N" + huge + "=1 N=" + text + "\n");
        m.file("/proc/self/status", "Cpus_allowed_list:\t" + lists + "\nName:\t" + text + "\n");
        m.file("/proc/self/cgroup", "0::relative\n");
        m.file("/proc/self/mountinfo", "1 2 0:1 / point rw - cgroup2 cgroup2 rw\n" + text + "\n");
        m.file("/proc/self/limits", "Max locked memory " + text + "\n");
        m.file("/proc/cpuinfo", "processor: " + text + "\nmodel name: " + text + "\ncpu MHz: " + text + "\n");
        m.file("/proc/loadavg", text).file("/proc/cmdline", text).file("/etc/os-release", text);
        m.file("/proc/pressure/cpu", "some avg10=" + text + "\n").file("/proc/self/maps", text);
        m.file("/sys/devices/system/cpu/smt/active", text).file("/proc/sys/vm/nr_hugepages", text);
        const auto f = m.fingerprint();
        CHECK_FALSE(f.find("memory.total_gib")->read.known());
        CHECK_FALSE(f.find("cpu.usable")->read.known());
        CHECK_FALSE(f.comparability_hash().empty());
    }
    // A quota beyond all numbers is as good as none.
    fake_machine m;
    m.file("/proc/self/status", "Cpus_allowed_list:\t0-3\n").file("/proc/self/cgroup", "0::/\n");
    m.file("/proc/self/mountinfo", "1 2 0:1 / /cg rw - cgroup2 cgroup2 rw\n");
    m.file("/cg/cpu.max", "1e300 1\n");
    CHECK(env::describe(m.fingerprint().find("cpu.usable")->read) == "4");
}
