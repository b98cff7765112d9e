//! The packages of a build: the selected members, with an overlay applied. Knows manifests; plans nothing.

use std::path::Path;
use std::sync::Arc;

use super::super::open::{Opened, Session};
use super::PlanRequest;
use crate::Error;
use kforge_foundation::base::{Diagnostic, SourceFile};
use kforge_project::workspace::select::{Selected, SelectionArgs};
use kforge_project::workspace::{Member, Workspace};
use kforge_types::model::{self, Kernel, Package};
use kforge_types::record::event::Labels;

/// The packages of a build, owned here while the plan borrows them.
pub struct Packages {
    pub(super) members: Vec<Member>,
}

impl Packages {
    /// The packages, in order.
    pub fn all(&self) -> impl Iterator<Item = &Package> {
        self.members.iter().map(|m| &m.package)
    }

    /// The packages by value, in order.
    pub(crate) fn into_packages(self) -> Vec<Package> {
        self.members.into_iter().map(|m| m.package).collect()
    }

    /// The member of that name.
    pub fn member(&self, package: &str) -> Option<&Member> {
        self.members.iter().find(|m| m.package.name == package)
    }

    /// The kernel that a step is about, if it is about one.
    pub fn kernel(&self, labels: &Labels) -> Option<&Kernel> {
        let name = labels.kernel.as_ref()?;
        self.member(&labels.package)?.package.kernels.iter().find(|kernel| kernel.name == *name)
    }

    /// Sets the number of rounds of every kernel that has rounds; none keeps the numbers of the manifests.
    pub fn with_rounds(&mut self, rounds: Option<u32>) {
        let all = self.members.iter_mut().flat_map(|m| &mut m.package.kernels).filter_map(|k| k.rounds.as_mut());
        if let Some(rounds) = rounds {
            all.for_each(|of| of.rounds = rounds);
        }
    }
}

impl Session {
    /// The selected members, with the overlay applied.
    pub fn packages(&self, opened: &Opened, asked: &PlanRequest) -> Result<Packages, Error> {
        let mut members: Vec<_> = asked.selected.members.iter().map(|i| opened.workspace.members[*i].clone()).collect();
        for Member { package, .. } in &mut members {
            package.kernels.retain(|kernel| asked.selected.keeps(&package.name, &kernel.name));
        }
        if let Some(path) = &asked.overlay {
            let (manifest, diagnostics) = self.overlay(path)?;
            self.check(diagnostics)?;
            for member in &mut members {
                let diagnostics = model::overlay(&mut member.package, &manifest);
                self.check(diagnostics)?;
            }
        }
        Ok(Packages { members })
    }

    /// Resolves the selection, in which operators and shapes of the overlay can be named too. Errors in the overlay are reported when it is applied for a
    /// build.
    pub fn select_over(
        &self,
        workspace: &Workspace,
        words: &SelectionArgs,
        overlay: Option<&Path>,
    ) -> Result<Selected, Error> {
        let Some(path) = overlay else { return self.select(workspace, words) };
        let (manifest, _) = self.overlay(path)?;
        let mut laid = workspace.clone();
        for member in &mut laid.members {
            drop(model::overlay(&mut member.package, &manifest));
        }
        self.select(&laid, words)
    }

    /// Reads an overlay.
    fn overlay(&self, path: &Path) -> Result<(model::Manifest, Vec<Diagnostic>), Error> {
        let path = self.cwd.join(path);
        let text = std::fs::read_to_string(&path).map_err(|source| Error::Read {
            what: "the overlay ",
            path: path.clone(),
            source,
        })?;
        let file = Arc::new(SourceFile { name: path.display().to_string(), text });
        match model::parse(&file) {
            (Some(manifest), diagnostics) => Ok((manifest, diagnostics)),
            (None, diagnostics) => Err(Error::Wrong(diagnostics)),
        }
    }
}
