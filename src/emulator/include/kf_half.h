// CUDA's __half and __half2: IEEE binary16 as cuda_fp16.h spells it.
// Knows this format's names and widths; what it shares with bfloat16 is in kf_narrow_types.h and kf_narrow_ops.h.
#pragma once
#define __CUDA_FP16_H__  // CUDA's guard: sources that declare these types themselves ask for it.
#include "kf_narrow.h"

// Of cuda_bf16.h, which one constructor names.
struct __nv_bfloat16;

struct __half_raw { unsigned short x; };
struct KF_ALIGNED(4) __half2_raw { unsigned short x, y; };

#define KF_T __half
#define KF_T2 __half2
#define KF_OTHER __nv_bfloat16
#define KF_RAW1 __half_raw
#define KF_RAW2 __half2_raw
#define KF_NAME half
#define KF_NAME2 half2
#define KF_FROM kf_f16_from
#define KF_TO kf_f16_to
#define KF_INFINITY 0x7c00
#define KF_ONE 0x3c00
#ifdef __CUDA_NO_HALF_CONVERSIONS__
#define KF_NO_CONVERSIONS 1
#else
#define KF_NO_CONVERSIONS 0
#endif
#if defined(__CUDA_NO_HALF_OPERATORS__)
#define KF_NO_OPERATORS 1
#else
#define KF_NO_OPERATORS 0
#endif
#if defined(__CUDA_NO_HALF2_OPERATORS__)
#define KF_NO_OPERATORS2 1
#else
#define KF_NO_OPERATORS2 0
#endif

#include "kf_narrow_types.h"
#include "kf_narrow_ops.h"
#include "kf_narrow_undef.h"

#define __CUDA_FP16_TYPES_EXIST__
typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;
typedef __half_raw __nv_half_raw;
typedef __half2_raw __nv_half2_raw;

#define CUDART_INF_FP16 __ushort_as_half(static_cast<unsigned short>(0x7c00u))
#define CUDART_NAN_FP16 __ushort_as_half(static_cast<unsigned short>(0x7fffu))
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(static_cast<unsigned short>(0x0001u))
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(static_cast<unsigned short>(0x7bffu))
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(static_cast<unsigned short>(0x8000u))
#define CUDART_ZERO_FP16 __ushort_as_half(static_cast<unsigned short>(0x0000u))
#define CUDART_ONE_FP16 __ushort_as_half(static_cast<unsigned short>(0x3c00u))
