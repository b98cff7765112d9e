//! worker: to be written.
