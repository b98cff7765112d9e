//! The peaks step: the highest rates that a device reaches, measured with kforge's own kernels.

mod ptx;
mod step;

pub use step::peaks;
