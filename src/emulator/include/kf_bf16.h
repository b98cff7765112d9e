// CUDA's __nv_bfloat16 and __nv_bfloat162 as cuda_bf16.h spells them. Includes binary16, to and from which it
// converts, as CUDA's header does. Knows this format's names and widths; what it shares with binary16 is in
// kf_narrow_types.h and kf_narrow_ops.h.
#pragma once
#define __CUDA_BF16_H__  // CUDA's guard: sources that declare these types themselves ask for it.
#include "kf_half.h"
#include "kf_narrow.h"

struct __nv_bfloat16_raw { unsigned short x; };
struct KF_ALIGNED(4) __nv_bfloat162_raw { unsigned short x, y; };

#define KF_T __nv_bfloat16
#define KF_T2 __nv_bfloat162
#define KF_OTHER __half
#define KF_RAW1 __nv_bfloat16_raw
#define KF_RAW2 __nv_bfloat162_raw
#define KF_NAME bfloat16
#define KF_NAME2 bfloat162
#define KF_FROM kf_bf16_from
#define KF_TO kf_bf16_to
#define KF_INFINITY 0x7f80
#define KF_ONE 0x3f80
#ifdef __CUDA_NO_BFLOAT16_CONVERSIONS__
#define KF_NO_CONVERSIONS 1
#else
#define KF_NO_CONVERSIONS 0
#endif
#if defined(__CUDA_NO_BFLOAT16_OPERATORS__)
#define KF_NO_OPERATORS 1
#else
#define KF_NO_OPERATORS 0
#endif
#if defined(__CUDA_NO_BFLOAT162_OPERATORS__)
#define KF_NO_OPERATORS2 1
#else
#define KF_NO_OPERATORS2 0
#endif

#include "kf_narrow_types.h"
#include "kf_narrow_ops.h"
#include "kf_narrow_undef.h"

// Between the two formats: exact to float, rounded once from it.
#ifndef __CUDA_NO_HALF_CONVERSIONS__
inline __half::__half(const __nv_bfloat16& v) : __x(kf_f16_from(kf_bf16_to(v.__x))) {}
#endif
#ifndef __CUDA_NO_BFLOAT16_CONVERSIONS__
inline __nv_bfloat16::__nv_bfloat16(const __half& v) : __x(kf_bf16_from(kf_f16_to(v.__x))) {}
#endif

#define __CUDA_BF16_TYPES_EXIST__
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

#define CUDART_INF_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7f80u))
#define CUDART_NAN_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7fffu))
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x0001u))
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7f7fu))
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x8000u))
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x0000u))
#define CUDART_ONE_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x3f80u))
