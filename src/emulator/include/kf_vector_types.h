// CUDA's vector types with CUDA's sizes and alignments, their make_* functions, and dim3. As in CUDA they have no
// operators. Knows the names, layouts and alignments only; not half types, not thread indices.
#pragma once

#ifndef __host__
#define __host__
#endif
#ifndef __device__
#define __device__
#endif
#ifndef __global__
#define __global__
#endif
#ifndef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#endif

// What every small function of these headers is declared with: internal linkage, so that two variants of one kernel
// share nothing, and inlined even in unoptimised check builds, so that reports name the user's line.
#define KF_FN static inline __attribute__((always_inline))
// The same for bodies too large to be copied into every caller.
#define KF_BIG static inline

// `alignas` is avoided because the emulator's prelude redefines it.
#define KF_ALIGNED(n) __attribute__((aligned(n)))

// One family: element type, name, and the alignments of its 2- and 4-element types (1 and 3 align as the element).
#define KF_VECTOR_FAMILY(T, N, A2, A4)                                                                                 \
  struct N##1 { T x; };                                                                                                \
  struct KF_ALIGNED(A2) N##2 { T x, y; };                                                                              \
  struct N##3 { T x, y, z; };                                                                                          \
  struct KF_ALIGNED(A4) N##4 { T x, y, z, w; };                                                                        \
  KF_FN constexpr N##1 make_##N##1(T x) { return N##1{x}; }                                                            \
  KF_FN constexpr N##2 make_##N##2(T x, T y) { return N##2{x, y}; }                                                    \
  KF_FN constexpr N##3 make_##N##3(T x, T y, T z) { return N##3{x, y, z}; }                                            \
  KF_FN constexpr N##4 make_##N##4(T x, T y, T z, T w) { return N##4{x, y, z, w}; }

KF_VECTOR_FAMILY(signed char, char, 2, 4)
KF_VECTOR_FAMILY(unsigned char, uchar, 2, 4)
KF_VECTOR_FAMILY(short, short, 4, 8)
KF_VECTOR_FAMILY(unsigned short, ushort, 4, 8)
KF_VECTOR_FAMILY(int, int, 8, 16)
KF_VECTOR_FAMILY(unsigned int, uint, 8, 16)
KF_VECTOR_FAMILY(long, long, 16, 16)
KF_VECTOR_FAMILY(unsigned long, ulong, 16, 16)
KF_VECTOR_FAMILY(long long, longlong, 16, 16)
KF_VECTOR_FAMILY(unsigned long long, ulonglong, 16, 16)
KF_VECTOR_FAMILY(float, float, 8, 16)
KF_VECTOR_FAMILY(double, double, 16, 16)
#undef KF_VECTOR_FAMILY

// CUDA 13 names the alignment of the 32-byte types; the plain names keep 16.
#define KF_VECTOR_WIDE(T, N)                                                                                           \
  struct KF_ALIGNED(16) N##4_16a { T x, y, z, w; };                                                                    \
  struct KF_ALIGNED(32) N##4_32a { T x, y, z, w; };                                                                    \
  KF_FN constexpr N##4_16a make_##N##4_16a(T x, T y, T z, T w) { return N##4_16a{x, y, z, w}; }                        \
  KF_FN constexpr N##4_32a make_##N##4_32a(T x, T y, T z, T w) { return N##4_32a{x, y, z, w}; }
KF_VECTOR_WIDE(long, long)
KF_VECTOR_WIDE(unsigned long, ulong)
KF_VECTOR_WIDE(long long, longlong)
KF_VECTOR_WIDE(unsigned long long, ulonglong)
KF_VECTOR_WIDE(double, double)
#undef KF_VECTOR_WIDE

// Extents of a grid or block; a missing extent is 1.
struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1) : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};
