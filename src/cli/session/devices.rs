//! The devices of this machine, and what a worker needs to be told of them. Knows where they are found; does not ask them anything.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::config::Environment;
use crate::record::DeviceClass;

/// The devices of this machine.
#[derive(Debug, Clone, Default)]
pub struct Devices {
    /// What they are.
    pub classes: Vec<DeviceClass>,
    /// What workers are told beside their tools, by name.
    pub tools: BTreeMap<String, PathBuf>,
}

impl Devices {
    /// The devices that this version of kforge can use.
    ///
    /// # Errors
    /// In a build for tests: the scenario cannot be read.
    pub fn find(environment: &Environment) -> Result<Self, String> {
        #[cfg(feature = "virtual-device")]
        if let Some(path) = environment.virtual_device() {
            use crate::worker::virtual_device::{Scenario, TOOL};
            let classes = Scenario::read(&path)?.devices.iter().map(|d| d.class()).collect();
            return Ok(Devices { classes, tools: [(TOOL.to_string(), path)].into() });
        }
        let _ = environment;
        Ok(Devices::default())
    }

    /// The one that runs code for an architecture, and is the product that is asked for, if any is.
    pub fn for_arch(&self, arch: &str, product: Option<&str>) -> Option<&DeviceClass> {
        self.classes.iter().find(|d| d.runs(arch) && product.is_none_or(|p| p == d.product))
    }
}
