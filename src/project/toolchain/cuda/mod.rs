//! CUDA toolchains: sets of pinned wheels, or a CUDA that is installed. Knows what they consist of, how they are installed and what they are by
//! content; does not compile.

mod group;
mod install;
mod local;
mod places;
mod unpack;
mod wheels;

pub use group::{Cuda, CudaSpec, Group};
pub use install::{Progress, Source, folder_of, install_wheels};
pub use local::find_root;
pub use places::Installed;
pub use wheels::{fingerprint, resolve, select};
