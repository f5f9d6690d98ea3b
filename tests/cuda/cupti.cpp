// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/cuda/cupti.hpp"

using namespace plumbline;
namespace cupti = plumbline::cuda::cupti;

namespace {

/// A CUPTI that writes down what is asked of it and fails where it is told to.
struct fake_library {
    std::vector<std::string> calls;
    std::string fails;
    cupti::callback to = nullptr;
    void* own = nullptr;

    int did(const char* what) {
        calls.emplace_back(what);
        return fails == what ? 39 : 0;
    }
    void launch(const char* function, const char* symbol, int site = 0, int domain = 1) const {
        const cupti::call data{site, function, nullptr, nullptr, symbol};
        to(own, domain, 307, &data);
    }
};

fake_library* current = nullptr; // CUPTI is one for a process too

cupti::api fake_api() {
    cupti::api calls;
    calls.subscribe = [](void** subscriber, cupti::callback to, void* own) {
        *subscriber = current;
        current->to = to;
        current->own = own;
        return current->did("subscribe");
    };
    calls.enable_domain = [](std::uint32_t on, void* subscriber, int domain) {
        CHECK(on == 1);
        CHECK(subscriber == current);
        CHECK(domain == 1);
        return current->did("enable");
    };
    calls.unsubscribe = [](void* subscriber) {
        CHECK(subscriber == current);
        return current->did("unsubscribe");
    };
    calls.finalize = [] { return current->did("finalize"); };
    return calls;
}

} // namespace

TEST_CASE("what is enqueued while CUPTI listens is named in order, and CUPTI is gone afterwards") {
    fake_library library;
    current = &library;
    std::vector<std::string> names;
    {
        const cupti::listener ears(fake_api());
        library.launch("cuMemsetD8Async", nullptr);
        library.launch("cuLaunchKernelEx", "nvjet_tst_128x256");
        library.launch("cuLaunchKernelEx", "nvjet_tst_128x256", 1); // its end
        library.launch("cuMemcpyDtoDAsync_v2", nullptr);
        library.launch("cuLaunchCooperativeKernel_ptsz", "splitK");
        library.launch("cuLaunchKernel", "of another domain", 0, 2);
        library.launch("cuEventRecord", reinterpret_cast<const char*>(1)); // no launch: the symbol is not to be read
        library.launch("cuLaunchKernel", nullptr);
        library.launch("cuLaunchHostFunc", nullptr);
        names = ears.names();
    }
    CHECK(names == std::vector<std::string>{"memset", "nvjet_tst_128x256", "memcpy", "splitK"});
    CHECK(library.calls == std::vector<std::string>{"subscribe", "enable", "unsubscribe", "finalize"});
}

TEST_CASE("a CUPTI that refuses is left as it was found, and said") {
    fake_library library;
    current = &library;
    library.fails = "subscribe"; // CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED where a profiler is attached
    CHECK_THROWS_WITH_AS(cupti::listener{fake_api()}, doctest::Contains("cuptiSubscribe: CUPTI error 39"),
                         unsupported_error);
    CHECK(library.calls == std::vector<std::string>{"subscribe"});
    library.calls.clear();
    library.fails = "enable";
    CHECK_THROWS_WITH_AS(cupti::listener{fake_api()}, doctest::Contains("cuptiEnableDomain"), unsupported_error);
    CHECK(library.calls == std::vector<std::string>{"subscribe", "enable", "unsubscribe", "finalize"});
}

TEST_CASE("a CUPTI that is absent, or is none, is said with every place that was looked at") {
    const cupti::loaded absent = cupti::load({"libcupti.so.0", "/nowhere/libcupti.so.0"});
    CHECK_FALSE(absent.calls.has_value());
    CHECK(absent.problem.find("libcupti.so.0") != std::string::npos);
    CHECK(absent.problem.find("/nowhere/libcupti.so.0") != std::string::npos);
    const cupti::loaded other = cupti::load({"libm.so.6"});
    CHECK_FALSE(other.calls.has_value());
    CHECK(other.problem == "libm.so.6 lacks calls that are needed");
    CHECK(cupti::usual_places().size() == 3);
}

TEST_CASE("the CUPTI of this machine, where there is one, has the calls that are needed") {
    const cupti::loaded found = cupti::load(cupti::usual_places());
    if (!found.calls) {
        MESSAGE("no CUPTI here: " << found.problem);
        return;
    }
    CHECK(found.problem.empty());
    CHECK((found.calls->subscribe != nullptr && found.calls->finalize != nullptr));
}
