//! measure: to be written.
