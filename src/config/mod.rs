//! config: to be written.
