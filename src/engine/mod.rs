//! engine: to be written.
