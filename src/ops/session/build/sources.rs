//! The sources of a build: every file that kernels and references reach, and the recorded rounds with the kernels that they wrote.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::super::generated::{show_generated, show_written};
use super::super::open::{Opened, Session};
use super::super::rounds::{self, Recorded};
use super::super::sources::{self, Leaf, Libraries, Sources};
use super::Packages;
use crate::Error;
use kforge_engine::journal::Journal;
use kforge_engine::stat::StatCache;
use kforge_foundation::base::{Digest, Witness};
use kforge_types::model;

/// The files of all members, one entry per member.
pub(super) struct Gathered {
    pub(super) sources: Vec<Sources>,
    pub(super) recorded: Vec<Vec<Recorded>>,
    pub(super) files: HashMap<Digest, PathBuf>,
    /// Generated sources.
    pub(super) texts: BTreeMap<Digest, Vec<u8>>,
    /// The file system queries.
    pub(super) witness: Witness,
}

impl Session {
    pub(super) fn gathered(
        &self,
        opened: &Opened,
        packages: &Packages,
        journal: &Journal,
        libraries: &Libraries,
    ) -> Result<Gathered, Error> {
        let root = &opened.workspace.root;
        let stats = StatCache::new(journal, root, true);
        let mut leaf = Leaf::new(&stats, root, journal);
        let (mut found, mut wrong, mut recorded) = (vec![], vec![], vec![]);
        for member in &packages.members {
            match sources::find(&opened.workspace, member, libraries, &mut leaf) {
                Ok(mut sources) => {
                    let mut rounds = self.recorded(opened, member, &sources, &mut leaf.witness)?;
                    let written: Vec<&model::Kernel> =
                        rounds.iter().flat_map(|r| &r.attempts).filter_map(|a| a.written.as_ref()).collect();
                    sources::add(member, &written, &mut leaf, &mut sources);
                    rounds::refuse(&mut rounds, &sources);
                    found.push(sources);
                    recorded.push(rounds);
                }
                Err(diagnostics) => wrong.extend(diagnostics),
            }
        }
        self.check(wrong)?;
        let Leaf { files, texts, witness, .. } = leaf;
        Ok(Gathered { sources: found, recorded, files, texts, witness })
    }
}

impl Gathered {
    /// The packages with a kernel for `cpu` that includes cub.
    pub(super) fn emulate_cub(&self, packages: &Packages) -> BTreeSet<String> {
        let members = packages.members.iter().zip(&self.sources);
        members.filter(|(member, found)| found.emulate_cub(member)).map(|(m, _)| m.package.name.clone()).collect()
    }

    /// Writes the sources that are not files of the packages to a place where people can read them.
    pub(super) fn show(&self, target: &Path, packages: &Packages) -> Result<(), Error> {
        let written = self.recorded.iter().try_for_each(|of| show_written(target, of));
        written.and_then(|()| show_generated(target, packages)).map_err(|source| Error::Write {
            what: "the generated sources to ",
            path: target.to_path_buf(),
            source,
        })
    }
}
