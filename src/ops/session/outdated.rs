//! Records of another version: what devices said of the steps that now lack an answer, when those asked something else. Knows what became of the steps of a
//! build, the names that bundles give to questions and the keys that the journal remembers; does not know why a step asks something else, which `explain` says.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::build::Ready;
use super::open::Opened;
use kforge_engine::evidence::{HERE, Index};
use kforge_engine::{BuildOutcome, Done, Node};
use kforge_foundation::base::{Digest, Witness};
use kforge_types::record::Outcome;

/// Records in one place that answer an earlier version of what was built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outdated {
    /// A bundle's name or path, or `here`.
    pub origin: String,
    /// How many.
    pub count: u64,
}

impl Outdated {
    /// It in a line.
    pub fn text(&self) -> String {
        let holder = if self.origin == HERE { "the home".to_string() } else { format!("`{}`", self.origin) };
        let noun = if self.count == 1 { "record" } else { "records" };
        let (count, they) = (self.count, if self.count == 1 { "it answers" } else { "they answer" });
        format!(
            "{holder} holds {count} {noun} of other versions of these kernels: {they} no question of this plan (`kforge explain STEP` shows what changed)"
        )
    }
}

impl Ready<'_> {
    /// Where there are records that answer what unavailable steps asked before, and what was asked of the file system to know that. Records in bundles of the
    /// repository are known by the names of steps that the bundle gives, those in the home by what this workspace remembers of the step.
    pub fn outdated(&self, opened: &Opened, outcome: &BuildOutcome) -> (Vec<Outdated>, Witness) {
        let mut witness = Witness::default();
        let open: HashMap<&str, Digest> =
            outcome.graph.nodes().zip(&outcome.steps).filter_map(|(node, done)| lacks(node, done)).collect();
        if open.is_empty() {
            return (vec![], witness);
        }
        let asked: HashSet<Digest> = outcome.steps.iter().filter_map(|done| done.key).collect();
        let mut found: BTreeMap<Digest, String> = BTreeMap::new();
        for (key, (_, steps)) in self.known_as.iter().filter(|(key, _)| !asked.contains(*key)) {
            if steps.iter().any(|step| open.contains_key(step.id.as_str())) {
                let records = self.committed.get(key).into_iter().flatten();
                found.extend(records.map(|seen| (seen.digest, seen.origin.clone())));
            }
        }
        let index = Index::new(&opened.home, self.leaves.clone());
        let before: HashSet<Digest> = open.keys().filter_map(|id| self.journal.last_key(id)).collect();
        for key in before.difference(&asked) {
            let folder = opened.home.evidence().join(key.hex());
            match folder.is_dir() {
                true => witness.listed(&folder),
                false => witness.saw(&folder, false),
            }
            // What cannot be read says nothing here; a build that asks for it complains.
            for seen in index.records(key).unwrap_or_default() {
                found.entry(seen.digest).or_insert(seen.origin);
            }
        }
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        found.into_values().for_each(|origin| *counts.entry(origin).or_default() += 1);
        (counts.into_iter().map(|(origin, count)| Outdated { origin, count }).collect(), witness)
    }
}

/// A step that asks a device and got no answer, and its question.
fn lacks<'n>(node: &'n Node, done: &Done) -> Option<(&'n str, Digest)> {
    let asks = node.kind.observes_device() && node.resources.device.is_some();
    let open = asks && matches!(done.outcome, Outcome::Unavailable(_));
    Some((node.id.as_str(), done.key.filter(|_| open)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_who_holds_how_many() {
        let of = |origin: &str, count| Outdated { origin: origin.into(), count }.text();
        assert_eq!(
            of("evidence/h200.kfe", 44),
            "`evidence/h200.kfe` holds 44 records of other versions of these kernels: they answer no question of this plan (`kforge explain STEP` shows what changed)"
        );
        assert_eq!(
            of(HERE, 1),
            "the home holds 1 record of other versions of these kernels: it answers no question of this plan (`kforge explain STEP` shows what changed)"
        );
    }
}
