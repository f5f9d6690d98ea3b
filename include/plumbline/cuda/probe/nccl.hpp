// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_PROBE_NCCL_HPP
#define PLUMBLINE_CUDA_PROBE_NCCL_HPP

#include <cmath>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "plumbline/cuda/handle.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::probe {

namespace detail {

/// The few functions of NCCL that are needed, by dlopen: plumbline does not depend on it.
struct nccl_api {
    using communicator = void*;
    int (*version)(int*) = nullptr;
    int (*init_all)(communicator*, int, const int*) = nullptr;
    int (*all_reduce)(const void*, void*, std::size_t, int, int, communicator, cudaStream_t) = nullptr;
    int (*group_start)() = nullptr;
    int (*group_end)() = nullptr;
    int (*destroy)(communicator) = nullptr;
    const char* (*error_text)(int) = nullptr;

    static constexpr int float32 = 7, sum = 0; // ncclDataType_t, ncclRedOp_t

    /// Empty where libnccl.so.2 cannot be opened. It stays mapped: its threads may outlive a communicator.
    [[nodiscard]] static std::optional<nccl_api> open() {
        void* library = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) return std::nullopt;
        nccl_api api;
        const auto find = [&](auto& into, const char* symbol) {
            into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(::dlsym(library, symbol));
            return into != nullptr;
        };
        if (find(api.version, "ncclGetVersion") && find(api.init_all, "ncclCommInitAll") &&
            find(api.all_reduce, "ncclAllReduce") && find(api.group_start, "ncclGroupStart") &&
            find(api.group_end, "ncclGroupEnd") && find(api.destroy, "ncclCommDestroy") &&
            find(api.error_text, "ncclGetErrorString")) {
            return api;
        }
        return std::nullopt;
    }

    [[nodiscard]] std::string failed(int status, const char* call) const {
        return std::string(call) + ": " + error_text(status);
    }
};

/// What one GPU brings to the sum.
struct nccl_member {
    std::unique_ptr<device_memory> in, out;
    stream queue;
};

inline constexpr std::size_t nccl_elements = std::size_t{1} << 20;

[[nodiscard]] inline std::vector<nccl_member> nccl_members(int devices) {
    std::vector<nccl_member> members(static_cast<std::size_t>(devices));
    for (int i = 0; i < devices; ++i) {
        nccl_member& member = members[static_cast<std::size_t>(i)];
        check(cudaSetDevice(i), "cudaSetDevice", "device " + std::to_string(i));
        member.in = std::make_unique<device_memory>(nccl_elements * sizeof(float));
        member.out = std::make_unique<device_memory>(nccl_elements * sizeof(float));
        member.queue = make_stream();
        const std::vector<float> values(nccl_elements, static_cast<float>(i + 1));
        check(cudaMemcpy(member.in->data(), values.data(), member.in->size(), cudaMemcpyHostToDevice), "cudaMemcpy",
              "input of NCCL");
    }
    return members;
}

[[nodiscard]] inline std::string reduce_and_compare(const nccl_api& api, std::vector<nccl_member>& members,
                                                    const std::vector<nccl_api::communicator>& talkers) {
    (void)api.group_start();
    int status = 0;
    for (std::size_t i = 0; i < members.size() && status == 0; ++i) {
        status = api.all_reduce(members[i].in->data(), members[i].out->data(), nccl_elements, nccl_api::float32,
                                nccl_api::sum, talkers[i], members[i].queue.get());
    }
    const int ended = api.group_end();
    if (status != 0) return api.failed(status, "ncclAllReduce");
    if (ended != 0) return api.failed(ended, "ncclGroupEnd");
    const auto n = static_cast<float>(members.size());
    const float expected = n * (n + 1) / 2;
    std::vector<float> values(nccl_elements);
    for (std::size_t i = 0; i < members.size(); ++i) {
        check(cudaSetDevice(static_cast<int>(i)), "cudaSetDevice");
        check(cudaStreamSynchronize(members[i].queue.get()), "cudaStreamSynchronize", "all-reduce of NCCL");
        check(cudaMemcpy(values.data(), members[i].out->data(), members[i].out->size(), cudaMemcpyDeviceToHost),
              "cudaMemcpy", "output of NCCL");
        for (const float value : values) {
            if (value != expected) return "wrong sum on device " + std::to_string(i);
        }
    }
    return {};
}

} // namespace detail

/// Whether NCCL can be opened here.
[[nodiscard]] inline bool has_nccl() {
    return detail::nccl_api::open().has_value();
}

/// One all-reduce of 4 MiB over devices 0 .. devices-1 in this process; "" when every sum is right, else what went
/// wrong. A broken peer connection makes NCCL hang rather than fail: call it in a child process under a watchdog.
[[nodiscard]] inline std::string nccl_all_reduce(int devices) {
    try {
        const auto api = detail::nccl_api::open();
        if (!api) return "libnccl.so.2 cannot be opened";
        std::vector<detail::nccl_member> members = detail::nccl_members(devices);
        std::vector<detail::nccl_api::communicator> talkers(members.size(), nullptr);
        const int status = api->init_all(talkers.data(), devices, nullptr);
        if (status != 0) return api->failed(status, "ncclCommInitAll");
        std::string problem;
        try {
            problem = detail::reduce_and_compare(*api, members, talkers);
        } catch (const std::exception& thrown) {
            problem = thrown.what();
        }
        for (const auto talker : talkers) (void)api->destroy(talker);
        return problem;
    } catch (const std::exception& thrown) {
        return thrown.what();
    }
}

} // namespace cuda::probe

PLUMBLINE_NAMESPACE_END

#endif
