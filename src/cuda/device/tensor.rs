//! Tensor maps in the driver's encoding. Knows the driver's names for dtypes and swizzles; the maps were checked when the manifest was parsed.
#![expect(unsafe_code, reason = "the driver's C interface is called")]

use cudarc::driver::sys::{
    self, CUtensorMap, CUtensorMapDataType as Type, CUtensorMapFloatOOBfill as Fill,
    CUtensorMapInterleave as Interleave, CUtensorMapL2promotion as Promotion, CUtensorMapSwizzle as Swizzle,
};

use super::driver::check;
use super::fault::{During, Fault};
use kforge_types::model::DType;
use kforge_types::model::tensor_map::TensorMap;

/// The words of the map of a buffer at the address `at`.
///
/// # Errors
/// The driver's error, as an error of the launch that `during` describes.
pub(super) fn encode(map: &TensorMap, at: u64, during: &str) -> Result<[u64; 16], Fault> {
    let mut encoded = CUtensorMap { opaque: [0; 16] };
    let rank = map.extents.len() as u32;
    // Every element of a box is copied: the step is one along each axis.
    let steps = vec![1u32; map.extents.len()];
    let fill = if map.nan {
        Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
    } else {
        Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
    };
    // SAFETY: the lists have the length of the rank, except the list of strides, which has one less. `encoded` has the alignment of its type. The address is
    // only stored.
    let result = unsafe {
        sys::cuTensorMapEncodeTiled(
            &mut encoded,
            data_type(map.dtype),
            rank,
            at as *mut std::ffi::c_void,
            map.extents.as_ptr(),
            map.strides.as_ptr(),
            map.tile.as_ptr(),
            steps.as_ptr(),
            Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle(map.swizzle),
            promotion(map.l2_promotion),
            fill,
        )
    };
    check(result, During::launching(format!("{during}: the tensor map of `{}` was encoded", map.buffer)))?;
    Ok(encoded.opaque)
}

/// Eight-bit types and packed types are copied as bytes.
fn data_type(dtype: DType) -> Type {
    match dtype {
        DType::F64 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
        DType::F32 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        DType::F16 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        DType::Bf16 => Type::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        DType::I64 => Type::CU_TENSOR_MAP_DATA_TYPE_INT64,
        DType::U64 => Type::CU_TENSOR_MAP_DATA_TYPE_UINT64,
        DType::I32 => Type::CU_TENSOR_MAP_DATA_TYPE_INT32,
        DType::U32 => Type::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        DType::I16 | DType::U16 => Type::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        DType::F8e4m3
        | DType::F8e5m2
        | DType::F8e8m0
        | DType::F4e2m1x2
        | DType::I8
        | DType::U8
        | DType::I4x2
        | DType::Bool => Type::CU_TENSOR_MAP_DATA_TYPE_UINT8,
    }
}

fn swizzle(bytes: u32) -> Swizzle {
    match bytes {
        32 => Swizzle::CU_TENSOR_MAP_SWIZZLE_32B,
        64 => Swizzle::CU_TENSOR_MAP_SWIZZLE_64B,
        128 => Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
        _ => Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
    }
}

fn promotion(bytes: u32) -> Promotion {
    match bytes {
        64 => Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
        128 => Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        256 => Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        _ => Promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
    }
}
