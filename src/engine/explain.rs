//! Finds why a step runs: compares the fields that were hashed last time with those hashed now, and follows the chain to the root cause. Knows fields and their
//! order; does not know what they mean.
//!
//! A chain is built when the step gets its new key, and is stored with its row, because only then is it known which change caused which: later builds may run a
//! step at the root again for other reasons.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::{Because, Blobs, Graph, Index, Memory, NodeId, PreviousResult, Source};
use kforge_foundation::base::Digest;
use kforge_foundation::base::encode::Hasher;
use kforge_foundation::base::encode::{FieldWriter, write_value};
use kforge_types::record::event::{EvidenceSeen, Why};
use kforge_types::record::spec::Tree;
use kforge_types::record::{Form, Note, Spec, StepResult};

/// Why a step runs. The codes: `new` (it never had a result), `changed` (with the first field that differs, in canonical order), `forgotten` (its last result
/// was not one that is stored), `not-cached` (no cache has its result any more).
pub fn why(last: Option<&PreviousResult>, now: &Spec) -> Why {
    why_from(last, &now.explain())
}

/// The same as [`why`], for fields that were already written out.
pub(super) fn why_from(last: Option<&PreviousResult>, now: &[(String, String)]) -> Why {
    let Some(last) = last else { return plain("new") };
    if last.explanation.is_empty() {
        // The fields hashed last time were removed from the cache, so nothing can be compared. Nor can the result be found, in either case.
        return plain(if last.forgotten { "forgotten" } else { "not-cached" });
    }
    match first_difference(&last.explanation, now) {
        Some((field, before, after)) => Why { code: "changed".into(), field: Some(field), before, after },
        None if last.forgotten => plain("forgotten"),
        None => plain("not-cached"),
    }
}

/// A reason without a field.
pub(super) fn plain(code: &str) -> Why {
    Why { code: code.into(), field: None, before: None, after: None }
}

type Difference = (String, Option<String>, Option<String>);

/// The first field that differs, with its values before and after; none for a field that did not exist. The lengths of lists and maps count only if nothing
/// else differs, because the added or removed item says more.
fn first_difference(before: &[(String, String)], after: &[(String, String)]) -> Option<Difference> {
    let is_length = |path: &str| path.ends_with(".len");
    let items = difference(before, after, |path| !is_length(path));
    items.or_else(|| difference(before, after, is_length))
}

fn difference(
    before: &[(String, String)],
    after: &[(String, String)],
    counts: impl Fn(&str) -> bool,
) -> Option<Difference> {
    let old: HashMap<&str, &str> = before.iter().map(|(p, v)| (p.as_str(), v.as_str())).collect();
    let new: HashMap<&str, &str> = after.iter().map(|(p, v)| (p.as_str(), v.as_str())).collect();
    let mut gone = before.iter().filter(|(p, _)| counts(p));
    let mut left = gone.next();
    for (path, value) in after.iter().filter(|(p, _)| counts(p)) {
        // Fields that preceded this one and were removed come first.
        if let Some((old_path, old_value)) = left.filter(|(p, _)| !new.contains_key(p.as_str())) {
            return Some((old_path.clone(), Some(old_value.clone()), None));
        }
        match old.get(path.as_str()) {
            None => return Some((path.clone(), None, Some(value.clone()))),
            Some(was) if *was != value => return Some((path.clone(), Some((*was).to_string()), Some(value.clone()))),
            Some(_) => left = gone.next(),
        }
    }
    left.map(|(path, value)| (path.clone(), Some(value.clone()), None))
}

/// The chain that begins with `why` at node `index`: through the input that changed to the step that produced it, and so on; through a tree to the file. `now`
/// returns the chain of a step that gets another key in this build; for other steps the journal is read.
pub(super) fn chain(
    graph: &Graph,
    index: Index,
    why: &Why,
    now: impl Fn(Index) -> Option<Vec<Because>>,
    memory: &dyn Memory,
    blobs: &dyn Blobs,
) -> Vec<Because> {
    let node = graph.node(index);
    let mut chain = vec![Because { what: node.id.clone(), why: why.clone() }];
    let Some(name) = why.field.as_deref().and_then(|f| f.strip_prefix("inputs.")) else { return chain };
    let Some(input) = node.inputs.get(name) else { return chain };
    match &input.source {
        Source::Output { node: maker, .. } => {
            let here = graph.find(maker).and_then(now);
            chain.extend(here.or_else(|| memory.last(maker).map(|l| l.because)).unwrap_or_default());
        }
        Source::Blob(_) if input.form == Form::Tree => chain.extend(changed_file(name, why, blobs)),
        Source::Blob(_) => {}
    }
    chain
}

/// The first file that differs between two trees, if both are still in the store.
fn changed_file(input: &str, why: &Why, blobs: &dyn Blobs) -> Option<Because> {
    let tree = |text: &Option<String>| -> Option<BTreeMap<String, Digest>> {
        let bytes = blobs.get(&text.as_deref()?.parse().ok()?).ok()??;
        serde_json::from_slice::<Tree>(&bytes).ok().map(|t| t.files)
    };
    let (before, after) = (tree(&why.before)?, tree(&why.after)?);
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    let name = names.into_iter().find(|n| before.get(*n) != after.get(*n))?;
    let (was, is) = (before.get(name), after.get(name));
    let code = match (was, is) {
        (None, _) => "added",
        (_, None) => "removed",
        _ => "changed",
    };
    let text = |d: Option<&Digest>| d.map(ToString::to_string);
    let why = Why { code: code.into(), field: Some(name.clone()), before: text(was), after: text(is) };
    Some(Because { what: format!("inputs.{input}/{name}"), why })
}

/// The digest of a result without its duration: its outputs and its verdict.
pub fn result_digest(result: &StepResult) -> Digest {
    let mut hasher = Hasher::new("kforge 2026-11 step result v1");
    for (name, digest) in &result.outputs {
        hasher.field(name, b'd', digest.hash(), &String::new);
    }
    if let Some(verdict) = &result.verdict {
        write_value("verdict", &serde_json::to_value(verdict).unwrap_or_default(), &mut hasher);
    }
    hasher.finish()
}

/// What a build would do with a step now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prospect {
    /// It would run, or share the run of a step with the same key.
    WillRun,
    /// It runs if its inputs change.
    MayRun,
    /// Its result is known.
    Fresh,
    /// This machine cannot run it. Holds what is missing.
    Unavailable(String),
    /// A step that it needs gives nothing. Holds the first such step.
    Skipped(String),
    /// It is no step of the plan now. An earlier build had it: results that it depends on have changed since, or the manifest has.
    Gone,
}

impl fmt::Display for Prospect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Prospect::WillRun => write!(f, "would run now"),
            Prospect::MayRun => write!(f, "would run now if its inputs change"),
            Prospect::Fresh => write!(f, "is fresh"),
            Prospect::Unavailable(missing) => write!(f, "is unavailable: {missing}"),
            Prospect::Skipped(root) => write!(f, "would be skipped because of `{root}`"),
            Prospect::Gone => write!(f, "is no step of the plan now: an earlier build had it"),
        }
    }
}

/// When a step got its present key, whose result was already known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Earlier {
    /// In the last build in which its key changed.
    LastBuild,
    /// After the last build.
    Now,
}

/// What `kforge explain STEP` shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The step.
    pub id: NodeId,
    /// What a build would do with the step now.
    pub prospect: Prospect,
    /// The product whose answer counts, for a step that observes a device; see [`super::Node::product`].
    pub product: Option<String>,
    /// The provenance of the observation that answers it.
    pub evidence: Option<EvidenceSeen>,
    /// Whether its result came in a bundle, so that it did not run here.
    pub brought: bool,
    /// Why the step would run or is unavailable; otherwise why it has its present key. From the step to the root cause.
    pub because: Vec<Because>,
    /// If the step did not run for that reason because its result was already known: when the reason arose.
    pub earlier: Option<Earlier>,
    /// The messages of its result, if that is known.
    pub notes: Vec<Note>,
    /// The fields that are hashed; those of last time if not all inputs are known yet.
    pub fields: Vec<(String, String)>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "`{}` {}", self.id, self.prospect)?;
        for (depth, because) in self.because.iter().enumerate() {
            let lead = if depth == 0 { "" } else { "because " };
            writeln!(f, "{:width$}{lead}{}", "", because, width = 2 + 2 * depth)?;
        }
        writeln!(f, "hashed:")?;
        for (path, value) in &self.fields {
            writeln!(f, "  {path} = {value}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Why { code, field, before, after } = &self.why;
        let what = &self.what;
        match (code.as_str(), field) {
            ("new", _) => write!(f, "`{what}` had no result before"),
            ("not-cached", _) => write!(f, "no cache holds the result of `{what}` any more"),
            ("forgotten", _) => write!(f, "the last result of `{what}` was not stored"),
            ("remeasure", _) => write!(f, "`{what}` was requested again"),
            ("input-pending", Some(field)) => write!(f, "`{what}` reads `{field}`, which does not exist yet"),
            ("changed", Some(field)) if !what.starts_with("inputs.") => {
                write!(f, "`{field}` of `{what}` changed")?;
                let text = |v: &Option<String>| v.clone().unwrap_or_else(|| "nothing".into());
                write!(f, " from {} to {}", text(before), text(after))
            }
            (code, _) => write!(f, "`{what}` was {code}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(p, v)| (p.to_string(), v.to_string())).collect()
    }

    fn differ(before: &[(&str, &str)], after: &[(&str, &str)]) -> Option<(String, Option<String>, Option<String>)> {
        first_difference(&fields(before), &fields(after))
    }

    fn text(path: &str, before: Option<&str>, after: Option<&str>) -> Option<Difference> {
        Some((path.into(), before.map(Into::into), after.map(Into::into)))
    }

    #[test]
    fn the_first_field_that_differs_in_canonical_order_is_named() {
        let base = [("kind", "compile"), ("params.std", "17"), ("params.arch", "80"), ("inputs.len", "1")];
        assert_eq!(differ(&base, &base), None);
        let mut two = base;
        (two[1].1, two[2].1) = ("20", "90");
        assert_eq!(differ(&base, &two), text("params.std", Some("17"), Some("20")));
    }

    #[test]
    fn a_field_that_came_or_went_is_named_rather_than_a_length() {
        let short = [("inputs.len", "1"), ("inputs.a", "x")];
        let long = [("inputs.len", "2"), ("inputs.a", "x"), ("inputs.b", "y")];
        assert_eq!(differ(&short, &long), text("inputs.b", None, Some("y")));
        assert_eq!(differ(&long, &short), text("inputs.b", Some("y"), None));
        let front = [("inputs.len", "2"), ("inputs.0", "w"), ("inputs.a", "x")];
        assert_eq!(differ(&front, &short), text("inputs.0", Some("w"), None));
        assert_eq!(differ(&short, &front), text("inputs.0", None, Some("w")));
        assert_eq!(differ(&[("p.len", "0")], &[("p.len", "1")]), text("p.len", Some("0"), Some("1")));
    }

    #[test]
    fn reasons_have_their_codes() {
        let spec = Spec {
            kind: kforge_types::record::StepKind::Compile,
            version: 1,
            implementation: None,
            params: "x".into(),
            inputs: BTreeMap::new(),
        };
        let mut last = PreviousResult {
            key: spec.key(),
            explanation: spec.explain(),
            forgotten: false,
            because: vec![],
            known: false,
        };
        assert_eq!(why(None, &spec).code, "new");
        assert_eq!(why(Some(&last), &spec).code, "not-cached");
        let lost = PreviousResult { explanation: vec![], ..last.clone() };
        assert_eq!(why(Some(&lost), &spec), plain("not-cached"));
        last.forgotten = true;
        assert_eq!(why(Some(&last), &spec).code, "forgotten");
        last.explanation[3].1 = "y".into();
        let changed = why(Some(&last), &spec);
        assert_eq!((changed.code.as_str(), changed.field.as_deref()), ("changed", Some("params")));
    }
}
