//! One launch in the form that the driver takes: the values of parameters, and the launch configuration. Knows the driver's call, but not where values come
//! from.
#![expect(unsafe_code, reason = "the driver's C interface is called")]

use std::ffi::c_void;

use cudarc::driver::sys;

use super::context::{Function, Stream};
use super::driver::check;
use super::fault::{During, Fault};

/// A part of a parameter's value.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
struct Line([u64; 16]);

/// The value of a parameter. The driver copies the bytes of the parameter from memory that is aligned for the parameter type with the largest alignment, a
/// tensor map.
pub(super) struct Parameter(Vec<Line>);

impl Parameter {
    /// A value with these bytes, padded with zeros.
    pub(super) fn new(bytes: &[u8]) -> Self {
        let mut lines = vec![Line([0; 16]); bytes.len().div_ceil(128).max(1)];
        for (at, chunk) in bytes.chunks(8).enumerate() {
            let word = chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            lines[at / 16].0[at % 16] = word;
        }
        Parameter(lines)
    }

    /// A value with these words.
    pub(super) fn words(words: [u64; 16]) -> Self {
        Parameter(vec![Line(words)])
    }
}

impl From<u64> for Parameter {
    fn from(word: u64) -> Self {
        Parameter::new(&word.to_le_bytes())
    }
}

/// The configuration of a launch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// Blocks along x, y, z.
    pub(super) grid: [u32; 3],
    /// Threads of a block along x, y, z.
    pub(super) block: [u32; 3],
    /// Bytes of dynamic shared memory of a block.
    pub(super) shared: u32,
    /// Whether all blocks must be resident.
    pub(super) cooperative: bool,
    /// Blocks of a cluster along x, y, z.
    pub(super) cluster: Option<[u32; 3]>,
    /// Whether the kernel may begin before the previous kernel has ended.
    pub(super) pdl: bool,
}

impl Shape {
    fn attributes(&self) -> Vec<sys::CUlaunchAttribute> {
        use sys::CUlaunchAttributeID as Id;
        type Value = sys::CUlaunchAttributeValue;
        let [x, y, z] = self.cluster.unwrap_or_default();
        let cluster = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
        let all = [
            (self.cooperative, Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, Value { cooperative: 1 }),
            (self.cluster.is_some(), Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, Value { clusterDim: cluster }),
            (
                self.pdl,
                Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                Value { programmaticStreamSerializationAllowed: 1 },
            ),
        ];
        let stated = all.into_iter().filter(|(stated, ..)| *stated);
        stated.map(|(_, id, value)| sys::CUlaunchAttribute { id, pad: [0; 4], value }).collect()
    }
}

/// Queues a kernel with the values of its parameters.
///
/// # Safety
/// `values` must be the parameters of the kernel, in order and with the sizes that the kernel declares. Addresses among them must be of memory that lives until
/// the kernel has run.
pub(super) unsafe fn launch(
    function: Function,
    shape: Shape,
    values: &[Parameter],
    stream: &Stream,
    during: &str,
) -> Result<(), Fault> {
    let Shape { grid, block, shared, .. } = shape;
    let mut addresses: Vec<*mut c_void> = values.iter().map(|v| v.0.as_ptr().cast_mut().cast()).collect();
    let mut attributes = shape.attributes();
    let config = sys::CUlaunchConfig {
        gridDimX: grid[0],
        gridDimY: grid[1],
        gridDimZ: grid[2],
        blockDimX: block[0],
        blockDimY: block[1],
        blockDimZ: block[2],
        sharedMemBytes: shared,
        hStream: stream.0,
        attrs: attributes.as_mut_ptr(),
        numAttrs: attributes.len() as u32,
    };
    // SAFETY: the caller guarantees the parameters. The driver copies them and the configuration before it returns.
    check(
        unsafe { sys::cuLaunchKernelEx(&config, function.0, addresses.as_mut_ptr(), std::ptr::null_mut()) },
        During::launching(during),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_lowest_byte_first_and_aligned_for_any() {
        assert_eq!(Parameter::new(&[1, 2]).0[0].0[..2], [0x0201, 0]);
        assert_eq!(Parameter::new(&[1, 0, 0, 0, 0, 0, 0, 0, 7]).0[0].0[..2], [1, 7]);
        assert_eq!(Parameter::new(&[]).0.len(), 1);
        let long = Parameter::new(&[3; 130]);
        assert_eq!((long.0.len(), long.0[1].0[0]), (2, 0x0303));
        assert_eq!(long.0.as_ptr().addr() % 128, 0);
    }
}
