// SPDX-License-Identifier: Apache-2.0
// Needs a GPU: batches copied by cuda/loader_copy.hpp are those of the host.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/cuda/loader_copy.hpp"
#include "support.hpp"

using namespace plumbline;

TEST_CASE("batches on the GPU are those of the host, in order, whatever the number of workers") {
    loader::options how;
    how.batch_size = 64;
    how.seed = 11;
    cuda::pinned_pool ring; // the second and the third loader find the memory of the first
    loader::data_loader host(test::numbered(1000), how);
    const test::delivered expected = test::drain(host, 0);
    for (const std::size_t workers : {0u, 1u, 4u}) {
        how.num_workers = workers;
        loader::transfer way = cuda::loader_transfer(ring);
        CHECK(way.memory.pinned);
        loader::data_loader copied(test::numbered(1000), how, way.memory, way.copy);
        for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
            test::delivered seen;
            copied.begin_epoch(epoch);
            while (auto next = copied.next()) {
                CHECK(next->host() == nullptr);
                std::vector<std::byte> bytes(next->bytes());
                cuda::check(cudaMemcpy(bytes.data(), next->device(), bytes.size(), cudaMemcpyDeviceToHost),
                            "cudaMemcpy");
                seen.indices.push_back(next->record().index);
                seen.samples.push_back(next->record().samples);
                seen.bytes.push_back(std::move(bytes));
            }
            if (epoch == 0) CHECK(seen == expected);
            CHECK(copied.statistics().samples == 1000);
            CHECK(copied.statistics().stage_ns[static_cast<std::size_t>(loader::stage::copy)] > 0);
        }
    }
}

TEST_CASE("more device memory than there is is an error that names the size") {
    cuda::pinned_pool ring;
    loader::transfer way = cuda::loader_transfer(ring);
    CHECK_THROWS_AS(way.copy.reserve(2, std::size_t{1} << 50), cuda::cuda_error);
}

int main(int argc, char** argv) {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::puts("SKIPPED: no CUDA device here");
        return 77;
    }
    return doctest::Context(argc, argv).run();
}
