// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_CUPTI_HPP
#define PLUMBLINE_CUDA_CUPTI_HPP

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "plumbline/core/error.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// Kernel names through CUPTI, where a captured graph does not tell them. Only its callback interface is used, and only
/// around one untimed launch: callbacks run on the calling thread when work is enqueued, so there are no buffers to
/// flush, and detaching leaves nothing behind that could slow a later launch. Prototypes are our own, since headers are
/// often absent; the part of CUpti_CallbackData that is read has been the same since CUPTI 4.
namespace cuda::cupti {

/// CUpti_CallbackData as far as it is read.
struct call {
    int site;             ///< 0: the call begins
    const char* function; ///< "cuLaunchKernel"
    const void* parameters;
    void* outcome;
    const char* symbol; ///< of the kernel; only valid for launches
};

using callback = void (*)(void* own, int domain, std::uint32_t number, const void* data);

/// The calls that are made; each returns 0 for success.
struct api {
    int (*subscribe)(void** subscriber, callback to, void* own) = nullptr;
    int (*enable_domain)(std::uint32_t enable, void* subscriber, int domain) = nullptr;
    int (*unsubscribe)(void* subscriber) = nullptr;
    int (*finalize)() = nullptr; ///< detaches from the process
};

/// CUPTI of this CUDA major version, or what was tried and why it did not load. A loaded one stays: it cannot be
/// unloaded safely.
struct loaded {
    std::optional<api> calls;
    std::string problem;
};

[[nodiscard]] inline loaded load(const std::vector<std::string>& names) {
    loaded found;
    for (const std::string& name : names) {
        void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            const char* why = dlerror();
            found.problem += (found.problem.empty() ? "" : "; ") + std::string(why != nullptr ? why : name.c_str());
            continue;
        }
        api calls;
        const auto find = [library](auto& entry, const char* symbol) {
            entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(dlsym(library, symbol));
            return entry != nullptr;
        };
        if (find(calls.subscribe, "cuptiSubscribe") && find(calls.enable_domain, "cuptiEnableDomain") &&
            find(calls.unsubscribe, "cuptiUnsubscribe") && find(calls.finalize, "cuptiFinalize")) {
            return {calls, {}};
        }
        found.problem += (found.problem.empty() ? "" : "; ") + name + " lacks calls that are needed";
    }
    return found;
}

/// Where CUPTI lies: by its name, and in the toolkit's folders, which are not on every search path.
[[nodiscard]] inline std::vector<std::string> usual_places() {
    const std::string name = "libcupti.so." + std::to_string(CUDART_VERSION / 1000);
    return {name, "/usr/local/cuda/extras/CUPTI/lib64/" + name, "/usr/local/cuda/lib64/" + name};
}

/// What a call of the driver enqueues, as evidence names it: the kernel's name, "memcpy", "memset"; nothing for the end
/// of a call and for calls that enqueue nothing.
[[nodiscard]] inline std::optional<std::string> enqueued_by(const call& seen) {
    if (seen.site != 0 || seen.function == nullptr) return std::nullopt;
    const std::string_view function = seen.function;
    const auto is = [function](std::string_view lead) { return function.substr(0, lead.size()) == lead; };
    if (is("cuMemcpy")) return "memcpy";
    if (is("cuMemset")) return "memset";
    const bool kernel = is("cuLaunchKernel") || is("cuLaunchCooperativeKernel");
    if (!kernel || seen.symbol == nullptr) return std::nullopt;
    return seen.symbol;
}

/// Listens to the driver's calls of this process while it lives, and is gone from the process afterwards.
class listener {
public:
    /// Throws unsupported_error when CUPTI refuses: a profiler is there already, or it does not fit the driver.
    explicit listener(const api& calls) : calls_(calls) {
        require(calls_.subscribe(&subscriber_, hear, this), "cuptiSubscribe");
        const int status = calls_.enable_domain(1, subscriber_, driver_calls);
        if (status == 0) return;
        leave();
        require(status, "cuptiEnableDomain");
    }
    listener(const listener&) = delete; // CUPTI holds its address
    listener& operator=(const listener&) = delete;
    ~listener() { leave(); }

    [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

private:
    static constexpr int driver_calls = 1; // CUPTI_CB_DOMAIN_DRIVER_API

    static void require(int status, const char* name) {
        if (status == 0) return;
        throw unsupported_error(std::string(name) + ": CUPTI error " + std::to_string(status) +
                                "; another profiler may be attached, or CUPTI does not fit the driver");
    }

    static void hear(void* own, int domain, std::uint32_t, const void* data) noexcept {
        if (domain != driver_calls) return;
        try {
            auto name = enqueued_by(*static_cast<const call*>(data));
            if (name) static_cast<listener*>(own)->names_.push_back(std::move(*name));
        } catch (const std::exception&) {
            // Out of memory, in a callback of a C library: a name is lost, which is evidence and no reason to end.
        }
    }

    void leave() noexcept {
        calls_.unsubscribe(subscriber_);
        calls_.finalize();
    }

    api calls_;
    void* subscriber_ = nullptr;
    std::vector<std::string> names_;
};

} // namespace cuda::cupti

PLUMBLINE_NAMESPACE_END

#endif
