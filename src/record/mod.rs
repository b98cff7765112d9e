//! record: to be written.
