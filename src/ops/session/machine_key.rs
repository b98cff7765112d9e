//! The key of this machine, as a session needs it. Knows the settings that name its file; `engine::machine_key` knows what it is for.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::open::Session;
use crate::event::Warning;
use kforge_engine::machine_key::{MachineKey, NoKey};

impl Session {
    /// The key of this machine; none if it has none. Makes one if `make` is set. Why there is none is reported once in a session: without a key nothing stands
    /// `here`. A key that merely was not made yet is not reported.
    pub fn machine_key(&self, make: bool) -> Option<Arc<MachineKey>> {
        match MachineKey::open(self.settings.machine_key.as_deref(), &self.settings.home, make) {
            Ok(key) => Some(Arc::new(key)),
            Err(NoKey::NotMade(_)) if !make => None,
            Err(why) => {
                if !self.has_warned_of_key.swap(true, Ordering::Relaxed) {
                    self.reporter.warn(Warning::NoMachineKey(why));
                }
                None
            }
        }
    }
}
