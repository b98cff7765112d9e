//! report: to be written.
