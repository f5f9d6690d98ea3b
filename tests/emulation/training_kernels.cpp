// SPDX-License-Identifier: Apache-2.0
// The kernels of a training step, compiled by the host compiler apart from the tests that run them.
#include "emulation.hpp"
#include "plumbline/cuda/kernels/training_attention.cuh"
#include "plumbline/cuda/kernels/training_images.cuh"
#include "plumbline/cuda/kernels/training_norm.cuh"
#include "plumbline/cuda/kernels/training_optimizer.cuh"
#include "plumbline/cuda/kernels/training_sequence.cuh"
