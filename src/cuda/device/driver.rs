//! The driver's library, which is loaded on first use, and its errors by name. Knows cudarc, but not what is launched.
//!
//! cudarc looks up the library by names on the loader's path and panics if it finds none. Therefore the library is opened here first: by the path that the
//! probe found, or by those names. Once it is loaded, the loader gives cudarc the same library by its own name (`libcuda.so.1` is among the names that cudarc
//! tries; on an H200 no file with another name took precedence).
#![expect(unsafe_code, reason = "a C library is loaded and called")]

use std::ffi::CStr;
use std::path::{Path, PathBuf};

use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute, CUresult};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::fault::{During, Fault};

/// The names of the driver's library if the probe did not find it.
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// Loads the library permanently, from `place` or from the loader's path, and initializes the driver.
///
/// # Errors
/// The library does not exist, or the driver fails, with the reason.
pub(super) fn load(place: Option<&Path>) -> Result<(), String> {
    let open = |name: &Path| {
        // SAFETY: loading runs the library's initializers. The library is the driver's, from the system's path or from the path that the probe found.
        unsafe { Library::open(Some(name), RTLD_NOW | RTLD_GLOBAL) }
    };
    let opened = match place {
        Some(place) => open(place),
        None => open(Path::new(NAMES[0])).or_else(|_| open(Path::new(NAMES[1]))),
    };
    let library = opened.map_err(|e| {
        // The source of the error is the loader's message.
        let why = std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string);
        let place = place.unwrap_or(Path::new(NAMES[0])).display();
        format!("the driver's library `{place}` cannot be loaded: {why}")
    })?;
    std::mem::forget(library);
    // SAFETY: the call takes no pointers.
    check(unsafe { sys::cuInit(0) }, "while the driver was initialised").map_err(|fault| fault.to_string())
}

/// The path of the loaded library, as the system maps it.
pub(super) fn place() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let path = |line: &str| line.split_whitespace().nth(5).map(PathBuf::from);
    let is_it = |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("libcuda.so"));
    maps.lines().filter_map(path).find(is_it)
}

/// A driver result as a `Result`.
///
/// # Errors
/// Any result except success, by name.
pub(super) fn check(result: CUresult, during: impl Into<During>) -> Result<(), Fault> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        other => Err(named(other, during)),
    }
}

/// An error by name.
pub(super) fn named(result: CUresult, during: impl Into<During>) -> Fault {
    let text = |of: unsafe fn(CUresult, *mut *const std::ffi::c_char) -> CUresult| {
        let mut text = std::ptr::null();
        // SAFETY: `text` lives across the call, which points it to a static string or leaves it null.
        let found = unsafe { of(result, &mut text) };
        let found = found == CUresult::CUDA_SUCCESS && !text.is_null();
        // SAFETY: the driver's strings are static and end with a zero.
        found.then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    Fault {
        code: result as u32,
        name: text(sys::cuGetErrorName).unwrap_or_else(|| format!("{result:?}")),
        text: text(sys::cuGetErrorString).unwrap_or_default(),
        during: during.into(),
    }
}

/// The devices that are visible to this process.
pub(super) fn devices() -> Result<Vec<CUdevice>, Fault> {
    let during = "while devices were counted";
    let mut count = 0;
    // SAFETY: `count` lives across the call.
    check(unsafe { sys::cuDeviceGetCount(&mut count) }, during)?;
    (0..count)
        .map(|ordinal| {
            let mut device = 0;
            // SAFETY: `device` lives across the call.
            check(unsafe { sys::cuDeviceGet(&mut device, ordinal) }, during)?;
            Ok(device)
        })
        .collect()
}

/// An attribute of a device.
pub(super) fn attribute(device: CUdevice, attribute: CUdevice_attribute) -> Result<i32, Fault> {
    let mut value = 0;
    // SAFETY: `value` lives across the call.
    check(unsafe { sys::cuDeviceGetAttribute(&mut value, attribute, device) }, "while a device was described")?;
    Ok(value)
}

/// A device's product name.
pub(super) fn name(device: CUdevice) -> Result<String, Fault> {
    let mut text = [0; 256];
    // SAFETY: the buffer has the stated size.
    check(unsafe { sys::cuDeviceGetName(text.as_mut_ptr(), text.len() as i32, device) }, "while a device was named")?;
    // SAFETY: the driver ends the name with a zero within the buffer.
    Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
}

/// A device's UUID in the form of `CUDA_VISIBLE_DEVICES`: `GPU-...`, or `MIG-...` for a slice.
pub(super) fn uuid(device: CUdevice, mig: bool) -> Result<String, Fault> {
    let mut uuid = sys::CUuuid { bytes: [0; 16] };
    // SAFETY: `uuid` lives across the call. This version returns a separate UUID for a slice.
    check(unsafe { sys::cuDeviceGetUuid_v2(&mut uuid, device) }, "while a device was identified")?;
    Ok(spelt(if mig { "MIG" } else { "GPU" }, uuid.bytes.map(|b| b as u8)))
}

fn spelt(kind: &str, bytes: [u8; 16]) -> String {
    let hex = |part: &[u8]| part.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let [a, b, c, d, e] = [&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]].map(hex);
    format!("{kind}-{a}-{b}-{c}-{d}-{e}")
}

/// Bytes of a device's memory.
pub(super) fn memory(device: CUdevice) -> Result<u64, Fault> {
    let mut bytes = 0;
    // SAFETY: `bytes` lives across the call.
    check(unsafe { sys::cuDeviceTotalMem_v2(&mut bytes, device) }, "while a device's memory was asked for")?;
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_spelt_as_the_drivers_tools_spell_them() {
        let bytes = std::array::from_fn(|i| i as u8 * 17);
        assert_eq!(spelt("GPU", bytes), "GPU-00112233-4455-6677-8899-aabbccddeeff");
    }

    #[test]
    fn a_library_that_is_not_there_is_said_in_words() {
        let why = load(Some(Path::new("/nowhere/libcuda.so.1"))).unwrap_err();
        assert!(why.contains("cannot be loaded") && why.contains("/nowhere"), "{why}");
    }
}
