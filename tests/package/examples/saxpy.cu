// SPDX-License-Identifier: Apache-2.0
// Device code: nothing of plumbline's is needed here, and nvcc compiles it in a second.
__global__ void saxpy_kernel(float a, const float* x, float* y, long long elements) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += step) {
        y[i] = a * x[i] + y[i];
    }
}

cudaError_t saxpy(cudaStream_t stream, float a, const float* x, float* y, long long elements) {
    saxpy_kernel<<<1024, 256, 0, stream>>>(a, x, y, elements);
    return cudaGetLastError();
}
