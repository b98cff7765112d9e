//! reference: to be written.
