//! Records of another version: observations for steps that now have no evidence, from when those steps asked other questions. Knows the outcomes of a build,
//! the steps that bundles name for questions, and the keys in the journal. Does not know why a question changed; `explain` shows that.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::build::Ready;
use super::open::Opened;
use kforge_engine::evidence::{HERE, HOME, Index};
use kforge_engine::{BuildOutcome, Done, Node};
use kforge_foundation::base::{Digest, Witness};
use kforge_types::record::{Outcome, StepKind};

/// Records in one place that answer an earlier version of what was built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outdated {
    /// A bundle's name or path, or `here`.
    pub origin: String,
    /// The number of records.
    pub count: u64,
}

impl Outdated {
    /// A one-line description.
    pub fn text(&self) -> String {
        let is_home = [HERE, HOME].contains(&self.origin.as_str());
        let holder = if is_home { "the home".to_string() } else { format!("`{}`", self.origin) };
        let noun = if self.count == 1 { "record" } else { "records" };
        let (count, they) = (self.count, if self.count == 1 { "it answers" } else { "they answer" });
        format!(
            "{holder} holds {count} {noun} of other versions of these kernels: {they} no question of this plan (`kforge explain STEP` shows what changed)"
        )
    }
}

impl Ready<'_> {
    /// The records that answer earlier questions of steps that are now unavailable, and the file system queries that found them. Records in bundles of the
    /// repository are found by the steps that the bundle names; records in the home, by the step's last key in this workspace's journal.
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
        let index = Index::new(&opened.home, self.leaves.clone()).keyed(self.machine_key.clone());
        let index = index.signed_by(self.signed.clone());
        let before: HashSet<Digest> = open.keys().filter_map(|id| self.journal.last_key(id)).collect();
        for key in before.difference(&asked) {
            let folder = opened.home.evidence().join(key.hex());
            match folder.is_dir() {
                true => witness.listed(&folder),
                false => witness.saw(&folder, false),
            }
            // Records that cannot be read are ignored here; a build that needs them reports the error.
            for seen in index.records(key).unwrap_or_default() {
                found.entry(seen.digest).or_insert(seen.origin);
            }
        }
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        found.into_values().for_each(|origin| *counts.entry(origin).or_default() += 1);
        (counts.into_iter().map(|(origin, count)| Outdated { origin, count }).collect(), witness)
    }
}

impl Ready<'_> {
    /// The packages, kernels and targets with a step that should have timed a variant and has no result, because its question is not the one that was last
    /// answered here. A question is not known if the binary is not. What the build did not reach is left out.
    pub(crate) fn untimed(&self, outcome: &BuildOutcome) -> HashSet<[String; 3]> {
        let is_edited = |(node, done): &(&Node, &Done)| {
            let lacks = node.kind == StepKind::Bench && done.result.is_none() && !done.stopped && !done.interrupted;
            lacks && done.key.is_none_or(|key| self.journal.last_key(&node.id) != Some(key))
        };
        let edited = outcome.graph.nodes().zip(&outcome.steps).filter(is_edited);
        let seat = |(node, _): (&Node, &Done)| {
            let labels = &node.labels;
            Some([labels.package.clone(), labels.kernel.clone()?, labels.target.clone()?])
        };
        edited.filter_map(seat).collect()
    }
}

/// A step that asks a device and got no answer, with its question.
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
