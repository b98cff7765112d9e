// Steps of all tiles are dealt out evenly, so that a tile's sum may come from two blocks, which add to it; or every block has whole tiles.
__global__ void with(float* c, const float* a, const float* b, int steps, int tiles) {
    const int share = steps * tiles / gridDim.x;
    int at = blockIdx.x * share;
    const int end = at + share;
    while (at < end) {
        const int tile = at / steps, stop = min(end, (tile + 1) * steps);
        float sum = 0;
        for (; at < stop; at++) sum += a[at * 128 + threadIdx.x] * b[at];
        atomicAdd(c + tile * 128 + threadIdx.x, sum);
    }
}

__global__ void with_fix_up(float* c, float* part, unsigned* ready, const float* a, const float* b, int steps, int tiles) {
    const int share = steps * tiles / gridDim.x, tile = blockIdx.x * share / steps;
    float sum = 0;
    for (int at = blockIdx.x * share; at < (blockIdx.x + 1) * share; at++) sum += a[at * 128 + threadIdx.x] * b[at];
    if (blockIdx.x % 2) {
        part[tile * 128 + threadIdx.x] = sum;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) atomicExch(ready + tile, 1u);
    } else {
        if (threadIdx.x == 0)
            while (atomicAdd(ready + tile, 0u) == 0) {}
        __syncthreads();
        c[tile * 128 + threadIdx.x] = sum + __ldcg(part + tile * 128 + threadIdx.x);
    }
}

__global__ void without(float* c, const float* a, const float* b, int steps, int tiles) {
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float sum = 0;
        for (int at = tile * steps; at < (tile + 1) * steps; at++) sum += a[at * 128 + threadIdx.x] * b[at];
        c[tile * 128 + threadIdx.x] = sum;
    }
}
