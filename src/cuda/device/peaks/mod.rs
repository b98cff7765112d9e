//! The peaks step: what a device does at most, measured by kernels of kforge's own.

mod ptx;
mod step;

pub use step::peaks;
