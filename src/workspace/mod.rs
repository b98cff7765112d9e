//! workspace: to be written.
