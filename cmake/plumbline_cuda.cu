// SPDX-License-Identifier: Apache-2.0
// The one file of a program that nvcc compiles: all device code of the CUDA backend and its catalogue.
// plumbline_add_cuda(target) adds it.
#include "plumbline/cuda/program.cuh"
