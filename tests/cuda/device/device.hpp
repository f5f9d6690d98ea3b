// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_CUDA_DEVICE_DEVICE_HPP
#define PLUMBLINE_TESTS_CUDA_DEVICE_DEVICE_HPP

#include <doctest/doctest.h>

#include "plumbline/cuda/backend.hpp"

/// The device all tests of this program share; opened by main, closed before it returns.
plumbline::cuda::backend& device();

/// Small sizes and no expectation on times: PLUMBLINE_TEST_SMALL=1, for compute-sanitizer.
bool small_tests();

#endif
