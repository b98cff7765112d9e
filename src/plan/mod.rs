//! plan: to be written.
