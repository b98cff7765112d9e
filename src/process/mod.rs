//! process: to be written.
