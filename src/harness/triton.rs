//! The program in Python that reads a source in Triton, for those that compile and interpret it: inert modules for PyTorch, the import of the source, the search
//! for its function.

/// The file name of [`JITTED`], beside the program that imports it.
pub const JITTED_NAME: &str = "kforge_jitted.py";
/// The program.
pub const JITTED: &str = include_str!("triton/kforge_jitted.py");
