//! Finds the array that a bounds check of the compiler refers to. Knows the compiler's description of types, and the sizes of shared variables.
#![expect(unsafe_code, reason = "the compiler hands over an address")]

use std::ffi::{CStr, c_char, c_void};

use super::super::job::Job;

/// The type of the array that a bounds check of the compiler refers to: `float [32]`.
///
/// # Safety
/// `data` is what the compiler passes to the handler: a location of sixteen bytes, then the address of the type, whose name begins after four bytes.
pub(crate) unsafe fn array_type(data: *const c_void) -> String {
    // SAFETY: as stated.
    unsafe {
        let described = *data.cast::<*const u8>().add(2);
        CStr::from_ptr(described.add(4).cast::<c_char>()).to_string_lossy().trim_matches('\'').to_owned()
    }
}

/// The shared variable that an array type must refer to, if only one has its size.
pub(crate) fn shared_of_type<'a>(job: &'a Job, array: &str) -> Option<&'a str> {
    let (element, extents) = array.split_once(" [")?;
    let size = match element {
        "char" | "signed char" | "unsigned char" | "bool" => 1,
        "short int" | "short unsigned int" | "__half" | "__nv_bfloat16" | "half" => 2,
        "int" | "unsigned int" | "float" | "__half2" | "half2" => 4,
        "double" | "long int" | "long unsigned int" | "long long int" | "long long unsigned int" | "float2" => 8,
        "float4" | "int4" | "uint4" => 16,
        _ => return None,
    };
    let bytes =
        extents.trim_end_matches(']').split("][").map(|n| n.trim().parse::<u64>().ok()).product::<Option<u64>>()?
            * size;
    let mut alike = job.loaded.image.shared.iter().filter(|v| v.size == bytes);
    let first = alike.next()?;
    alike.next().is_none().then_some(first.name.as_str())
}
