//! Where a process with PyTorch computes: a device, and what the process may read and control there. Knows files and variables; starts nothing.

use std::path::PathBuf;

/// Where a process with PyTorch computes.
#[derive(Debug, Clone)]
pub struct Machine {
    /// `cuda`, or `cpu` in tests.
    pub device: &'static str,
    /// The device files that the process may control.
    pub devices: Vec<PathBuf>,
    /// Folders that it reads in addition.
    pub read: Vec<PathBuf>,
    /// Variables that choose the device and its libraries.
    pub env: Vec<(&'static str, String)>,
    /// Whether the process is confined.
    pub confined: bool,
}
