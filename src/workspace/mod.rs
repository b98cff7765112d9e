//! The workspace: what is locked. Does not know plans or steps.

pub mod lockfile;
