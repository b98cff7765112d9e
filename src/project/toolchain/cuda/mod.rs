//! CUDA toolchains: sets of pinned wheels, or an installed CUDA. Knows their parts, how to install them and how to fingerprint them; does not compile.

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
