// Running sums of rows: one block a row, which it takes in tiles of BLOCK * ITEMS and carries the sum from tile to tile. Within a tile each thread sums ITEMS
// neighbours, a warp scans those sums by shuffles, and the warps' totals are scanned once more.

// Sum of the values of this lane and those below it.
template <class T> __device__ __forceinline__ T warp_scan(T value) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const T below = __shfl_up_sync(0xffffffffu, value, step);
    if (lane >= step) value += below;
  }
  return value;
}

template <class T, int BLOCK, int ITEMS> __global__ void __launch_bounds__(BLOCK) cumsum(const T *__restrict__ x, T *__restrict__ y, int cols) {
  constexpr int WARPS = BLOCK / 32, TILE = BLOCK * ITEMS;
  // Untyped: instances of one template for several types would else declare the same array differently.
  extern __shared__ __align__(16) unsigned char raw[];
  T *tile = reinterpret_cast<T *>(raw);
  __shared__ T totals[WARPS];
  const T *in = x + static_cast<size_t>(blockIdx.x) * cols;
  T *out = y + static_cast<size_t>(blockIdx.x) * cols;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // Neighbours of one thread lie ITEMS apart from those of the next; one word of padding a thread keeps lanes on different banks.
  const auto place = [](int i) { return i + i / ITEMS; };

  T carry = T(0);
  for (int start = 0; start < cols; start += TILE) {
    // Through shared memory, so that global accesses are of neighbouring lanes to neighbouring words.
    for (int i = threadIdx.x; i < TILE; i += BLOCK) tile[place(i)] = start + i < cols ? in[start + i] : T(0);
    __syncthreads();
    T items[ITEMS], sum = T(0);
#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
      sum += tile[place(threadIdx.x * ITEMS + j)];
      items[j] = sum;
    }
    const T scanned = warp_scan(sum);
    if (lane == 31) totals[warp] = scanned;
    __syncthreads();
    // Every warp scans the totals for itself, which saves a barrier.
    const T all = warp_scan(lane < WARPS ? totals[lane] : T(0));
    const T warps_below = __shfl_sync(0xffffffffu, all, warp > 0 ? warp - 1 : 0);
    const T before = carry + (warp > 0 ? warps_below : T(0)) + (scanned - sum);
    carry += __shfl_sync(0xffffffffu, all, WARPS - 1);
#pragma unroll
    for (int j = 0; j < ITEMS; j++) tile[place(threadIdx.x * ITEMS + j)] = before + items[j];
    __syncthreads();
    for (int i = threadIdx.x; i < TILE && start + i < cols; i += BLOCK) out[start + i] = tile[place(i)];
    __syncthreads(); // before the next tile overwrites this one
  }
}
