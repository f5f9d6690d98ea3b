// SPDX-License-Identifier: Apache-2.0
#include "plumbline/cuda/kernels/norm_forward.cuh"
