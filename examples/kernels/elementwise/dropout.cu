// Dropout by counter: four elements a thread, as one call of Philox gives four words.

// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): ten rounds of multiply and xor under a key that steps by constants.
__device__ uint4 philox(uint4 counter, uint2 key) {
#pragma unroll
  for (int round = 0; round < 10; round++) {
    const unsigned high0 = __umulhi(0xD2511F53u, counter.x), low0 = 0xD2511F53u * counter.x;
    const unsigned high1 = __umulhi(0xCD9E8D57u, counter.z), low1 = 0xCD9E8D57u * counter.z;
    counter = make_uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
    key.x += 0x9E3779B9u;
    key.y += 0xBB67AE85u;
  }
  return counter;
}

__device__ __forceinline__ uint2 halves(unsigned long long word) {
  return make_uint2(static_cast<unsigned>(word), static_cast<unsigned>(word >> 32));
}

template <int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    dropout(const float *__restrict__ x, float *__restrict__ y, long long n, float p, unsigned long long seed, unsigned long long offset) {
  const unsigned long long quad = static_cast<unsigned long long>(blockIdx.x) * BLOCK + threadIdx.x;
  const long long first = static_cast<long long>(4 * quad);
  if (first >= n) return;
  const uint2 place = halves(quad), stream = halves(offset);
  const uint4 r = philox(make_uint4(place.x, place.y, stream.x, stream.y), halves(seed));
  // u = r / 2^32 >= p, decided on integers: a float cannot hold all of r. Times 2^32 is exact, rounding up keeps the comparison's edge.
  const unsigned least = __float2uint_ru(p * 4294967296.0f);
  const float scale = 1.0f / (1.0f - p);
  const unsigned words[4] = {r.x, r.y, r.z, r.w};
  if (first + 3 < n) {
    const float4 v = *reinterpret_cast<const float4 *>(x + first);
    *reinterpret_cast<float4 *>(y + first) = make_float4(words[0] >= least ? v.x * scale : 0.0f, words[1] >= least ? v.y * scale : 0.0f,
                                                         words[2] >= least ? v.z * scale : 0.0f, words[3] >= least ? v.w * scale : 0.0f);
  } else {
    for (int j = 0; first + j < n; j++) y[first + j] = words[j] >= least ? x[first + j] * scale : 0.0f;
  }
}
