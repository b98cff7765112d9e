// The next kernel may start before this one ends, and waits for it where it needs its results; or it starts after it.
__global__ void with(float* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    asm volatile("griddepcontrol.wait;" ::: "memory");
    const float v = x[i];
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    y[i] = v * v;
}
__global__ void with_wait_alone(float* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    asm volatile("griddepcontrol.wait;" ::: "memory");
    y[i] = x[i] * x[i];
}
__global__ void with_launch_alone(float* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    y[i] = x[i] * x[i];
}
__global__ void without(float* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] * x[i];
}
