//! Reads the bundles of evidence in the repository.

use std::path::PathBuf;

use super::super::open::{Opened, Session};
use super::Packages;
use crate::event::Warning;
use kforge_foundation::base::Witness;
use kforge_pipeline::release::committed;
use kforge_pipeline::release::trust::Trust;
use kforge_project::workspace::Member;
use kforge_types::model;

impl Session {
    /// The bundles of evidence in the repository, for packages with a device target. Reports bundles that are refused, and signatures that do not
    /// count.
    pub(super) fn committed(
        &self,
        opened: &Opened,
        packages: &Packages,
        trust: &Trust,
        witness: &mut Witness,
    ) -> committed::Committed {
        let on_device = |m: &&Member| m.package.targets.values().any(|t| t.arch != model::Arch::Cpu);
        let folders: Vec<PathBuf> = packages.members.iter().filter(on_device).map(|m| m.folder.clone()).collect();
        if folders.is_empty() {
            return committed::Committed::default();
        }
        let mut found = committed::read(&opened.workspace.root, folders, trust);
        witness.add(std::mem::take(&mut found.witness));
        for (name, why) in &found.refused {
            self.reporter.warn(Warning::Bundle { name: name.clone(), why: why.to_string() });
        }
        for (name, why) in &found.distrusted {
            self.reporter.warn(Warning::Distrusted { name: format!("`{name}`"), why: why.clone() });
        }
        found
    }
}
