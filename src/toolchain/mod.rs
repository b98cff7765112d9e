//! toolchain: to be written.
