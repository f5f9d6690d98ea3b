// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_PROGRAM_CUH
#define PLUMBLINE_CUDA_PROGRAM_CUH

// All device code of the CUDA backend. Include it in exactly one .cu of a program (plumbline_add_cuda does): its
// functions are not inline, so that a second copy is an error of the linker and not two kernels of one name.

#include "plumbline/cuda/kernels/conv_check.cuh"
#include "plumbline/cuda/kernels/norm_backward.cuh"
#include "plumbline/cuda/kernels/norm_forward.cuh"
#include "plumbline/cuda/kernels/tensor.cuh"
#include "plumbline/cuda/kernels/timing.cuh"
#include "plumbline/cuda/kernels/training_attention.cuh"
#include "plumbline/cuda/kernels/training_images.cuh"
#include "plumbline/cuda/kernels/training_norm.cuh"
#include "plumbline/cuda/kernels/training_optimizer.cuh"
#include "plumbline/cuda/kernels/training_sequence.cuh"

#endif
