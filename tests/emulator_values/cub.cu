// One kernel for each of cub's primitives of warps and blocks. Runs on the emulator (`tests/emulator/cub.rs`); the toolkit's compilers take it as it is
// (`tests/toolchain_network/cub.rs`).
#include <cub/cub.cuh>
#include <cuda_fp16.h>
struct best { float value; int at; };
struct larger {
  __device__ best operator()(const best &a, const best &b) const { return a.value > b.value || (a.value == b.value && a.at < b.at) ? a : b; }
};
struct longest { __device__ int operator()(int a, int b) const { return a > b ? a : b; } };

template <class T, int X, cub::BlockReduceAlgorithm How, int Y, int Z>
__global__ void sums(const int *x, int *out, int valid) {
  typedef cub::BlockReduce<T, X, How, Y, Z> Reduce;
  __shared__ typename Reduce::TempStorage room;
  int t = threadIdx.x + X * (threadIdx.y + Y * threadIdx.z);
  T all = Reduce(room).Sum(T(x[t]));
  __syncthreads();
  T some = Reduce(room).Sum(T(x[t]), valid);
  if (t == 0) out[0] = int(all), out[1] = int(some);
}
__global__ void arg_max(const int *x, int *out, int valid) {
  typedef cub::BlockReduce<best, 96> Reduce;
  __shared__ typename Reduce::TempStorage room;
  best b = Reduce(room).Reduce(best{float(x[threadIdx.x]), int(threadIdx.x)}, larger(), valid);
  if (threadIdx.x == 0) out[0] = int(b.value), out[1] = b.at;
}
__global__ void half_sums(const int *x, int *out, int) {
  typedef cub::WarpReduce<__half> Reduce;
  __shared__ typename Reduce::TempStorage room[4];
  int warp = threadIdx.x / 32;
  __half sum = Reduce(room[warp]).Reduce(__float2half(float(x[threadIdx.x])), [](__half a, __half b) { return __hadd(a, b); });
  if (threadIdx.x % 32 == 0) out[warp] = int(__half2float(sum));
}
template <int Width> __global__ void warp_sums(const int *x, int *out, int valid) {
  typedef cub::WarpReduce<int, Width> Reduce;
  __shared__ typename Reduce::TempStorage room[64 / Width];
  int group = threadIdx.x / Width, in = threadIdx.x % Width;
  int all = Reduce(room[group]).Sum(x[threadIdx.x]);
  __syncwarp();
  int some = Reduce(room[group]).Reduce(x[threadIdx.x], longest(), valid);
  if (in == 0) out[2 * group] = all, out[2 * group + 1] = some;
}
template <int Width> __global__ void warp_scans(const int *x, int *out, int) {
  typedef cub::WarpScan<int, Width> Scan;
  __shared__ typename Scan::TempStorage room[64 / Width];
  int group = threadIdx.x / Width, before, all;
  Scan(room[group]).ExclusiveSum(x[threadIdx.x], before, all);
  out[threadIdx.x] = before;
  if (threadIdx.x % Width == 0) out[64 + group] = all;
}
template <cub::BlockScanAlgorithm How> __global__ void scans(const int *x, int *out, int) {
  typedef cub::BlockScan<int, 96, How> Scan;
  __shared__ typename Scan::TempStorage room;
  int before[2], all, mine[2] = {x[2 * threadIdx.x], x[2 * threadIdx.x + 1]};
  Scan(room).ExclusiveSum(mine, before, all);
  __syncthreads();
  int most;
  Scan(room).InclusiveScan(x[threadIdx.x], most, longest());
  out[2 * threadIdx.x] = before[0], out[2 * threadIdx.x + 1] = before[1];
  out[192 + threadIdx.x] = most;
  if (threadIdx.x == 0) out[288] = all;
}
template <cub::BlockLoadAlgorithm L, cub::BlockStoreAlgorithm S> __global__ void copies(const int *x, int *out, int valid) {
  typedef cub::BlockLoad<int, 64, 3, L> Load;
  typedef cub::BlockStore<int, 64, 3, S> Store;
  __shared__ union { typename Load::TempStorage load; typename Store::TempStorage store; } room;
  int mine[3];
  Load(room.load).Load(x, mine, valid, -1);
  __syncthreads();
  for (int i = 0; i < 3; ++i) mine[i] = 2 * mine[i] + 1;
  Store(room.store).Store(out, mine, valid);
}
template <bool Down> __global__ void sorts(const int *x, int *out, int) {
  typedef cub::BlockRadixSort<int, 64, 3, int> Sort;
  __shared__ typename Sort::TempStorage room;
  int keys[3], values[3];
  for (int i = 0; i < 3; ++i) values[i] = 3 * threadIdx.x + i, keys[i] = x[values[i]];
  if (Down) Sort(room).SortDescending(keys, values);
  else Sort(room).Sort(keys, values);
  for (int i = 0; i < 3; ++i) out[3 * threadIdx.x + i] = keys[i], out[192 + 3 * threadIdx.x + i] = values[i];
}
__global__ void exchanges(const int *x, int *out, int) {
  typedef cub::BlockExchange<int, 64, 3> Exchange;
  __shared__ typename Exchange::TempStorage room;
  int mine[3];
  for (int i = 0; i < 3; ++i) mine[i] = x[3 * threadIdx.x + i];
  Exchange(room).BlockedToStriped(mine);
  for (int i = 0; i < 3; ++i) out[3 * threadIdx.x + i] = mine[i];
}
template <cub::BlockHistogramAlgorithm How> __global__ void histograms(const int *x, int *out, int) {
  typedef cub::BlockHistogram<unsigned char, 64, 3, 16, How> Histogram;
  __shared__ typename Histogram::TempStorage room;
  __shared__ unsigned bins[16];
  unsigned char mine[3];
  for (int i = 0; i < 3; ++i) mine[i] = static_cast<unsigned char>(x[3 * threadIdx.x + i] & 15);
  Histogram(room).Histogram(mine, bins);
  __syncthreads();
  if (threadIdx.x < 16) out[threadIdx.x] = int(bins[threadIdx.x]);
}
