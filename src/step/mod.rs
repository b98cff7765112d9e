//! step: to be written.
