//! Everything that an agent may see, as plain data. Knows formats and limits of length; does not know where the data comes from, and asks no agent.
//!
//! A briefing has no field for a seed or an expected value, and a shape enters only as [`Visible`], which a holdout shape cannot become. Texts of compilers and
//! advisors come from elsewhere: [`Briefing::reveals`] finds names in them that must not be shown.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::metrics::{BriefingMetric, telling};
use crate::optimize::methods::{explain_in, registry};
use kforge_types::model::bound::Scalar;
use kforge_types::model::operator::{Shape, ShapeRole};
use kforge_types::model::{Axis, Language, TuneValue};
use kforge_types::record::profile::{Gaps, Roofline};
use kforge_types::record::round::ChosenMethod;

/// The most characters of a compiler's log or an advisor's explanation that are shown for each variant. The beginning and the end are kept, because compilers
/// report the cause first and crashing programs report it last.
pub const LONGEST_FAILURE: usize = 4000;

/// The most earlier rounds that are shown; the latest are kept.
pub const LONGEST_HISTORY: usize = 12;

/// The most characters of an exemplar's source. A longer exemplar is left out, because half a kernel teaches nothing.
pub const LONGEST_EXEMPLAR: usize = 24_000;

/// The most characters of the sources of all exemplars together.
pub const LONGEST_EXEMPLARS: usize = 48_000;

/// What an agent gets to see.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Briefing {
    /// The name of the kernel.
    pub kernel: String,
    /// What it is written in.
    pub language: Language,
    /// The operator's contract: dims, types, tensors, params, and what is computed.
    pub contract: String,
    /// How exact the kernel must be.
    pub tolerance: String,
    /// The shapes that may be shown.
    pub shapes: Vec<Visible>,
    /// The hardware that the kernel is written for.
    pub target: Hardware,
    /// The round, from 1.
    pub round: u32,
    /// 0, or the number of the repair.
    pub attempt: u32,
    /// The number of variants that are requested.
    pub branches: u32,
    /// The methods to try.
    pub methods: Vec<MethodToTry>,
    /// How far the parent is from what the device can do.
    pub gaps: Gaps,
    /// The axis that bounds the parent, if known.
    pub bound: Option<Axis>,
    /// The metrics that matter, most informative first.
    pub metrics: Vec<BriefingMetric>,
    /// The kernel that the candidates descend from; none if there is no kernel yet.
    pub parent: Option<Parent>,
    /// The result of the previous attempt, if this is a repair.
    pub failed: Option<FailedAttempt>,
    /// Earlier rounds, in order.
    pub history: Vec<PastRound>,
    /// Kernels that did well on similar problems.
    pub exemplars: Vec<Exemplar>,
}

/// A shape that may be shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Visible(String);

impl Visible {
    /// The shape as a line; none for a holdout shape.
    pub fn of(shape: &Shape) -> Option<Self> {
        let what = match shape.role {
            ShapeRole::Verify => "verified",
            ShapeRole::Bench => "verified and timed",
            ShapeRole::Holdout => return None,
        };
        let dims = shape.dims.iter().map(|(name, value)| format!("{name} = {value}"));
        let params = shape.params.iter().map(|(name, value)| match value {
            Scalar::Int(n) => format!("{name} = {n}"),
            Scalar::Float(x) => format!("{name} = {x}"),
            Scalar::Bool(b) => format!("{name} = {b}"),
        });
        let all: Vec<String> = dims.chain(params).collect();
        Some(Visible(format!("{}: {} ({what})", shape.name, all.join(", "))))
    }

    /// The line.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// The hardware that a kernel is written for.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Hardware {
    /// The architecture: `sm_90a`, or `cpu`.
    pub arch: String,
    /// The product's name, if known.
    pub product: Option<String>,
    /// Its limits, by name, in words: `shared memory of a block` is `227 KiB`.
    pub limits: Vec<(String, String)>,
}

/// A method to try.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MethodToTry {
    /// Its id.
    pub id: String,
    /// The resource it relieves.
    pub axis: Axis,
    /// What the method is, how to write it, what turning it off means and what shows it. Empty for a method that only the kernel declares.
    pub about: String,
    /// Why it was chosen.
    pub because: String,
    /// How strongly metrics support the method, 0 to 1, if they are known.
    pub strength: Option<f64>,
}

impl MethodToTry {
    /// A chosen method, with its text from the registry for that language.
    pub fn of(chosen: &ChosenMethod, language: Language) -> Self {
        let about = registry().get(&chosen.id).map(|entry| explain_in(entry, language)).unwrap_or_default();
        MethodToTry {
            id: chosen.id.clone(),
            axis: chosen.axis,
            about,
            because: chosen.because.clone(),
            strength: chosen.strength,
        }
    }
}

/// The kernel that candidates descend from.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Parent {
    /// Its complete source.
    pub source: String,
    /// Its declaration, in the form of a `template.toml`.
    pub declaration: String,
    /// The champion's tunables.
    pub tunables: BTreeMap<String, TuneValue>,
    /// Its time in nanoseconds at the slowest shape; none if nothing was timed.
    pub time_ns: Option<f64>,
    /// Whether it was verified as correct.
    pub verified: bool,
}

/// An attempt without a correct variant.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FailedAttempt {
    /// The proposed source; none if the reply was unusable.
    pub source: Option<String>,
    /// The proposed declaration.
    pub declaration: Option<String>,
    /// The result of each variant.
    pub branches: Vec<Branch>,
}

/// A variant that is not correct.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Branch {
    /// Its tunables.
    pub tunables: BTreeMap<String, TuneValue>,
    /// What is wrong.
    what: String,
}

impl Branch {
    /// With a compiler's log or an advisor's explanation; at most [`LONGEST_FAILURE`] characters of it are shown.
    pub fn new(tunables: BTreeMap<String, TuneValue>, what: &str) -> Self {
        Branch { tunables, what: shortened(what.trim(), LONGEST_FAILURE) }
    }

    /// A variant that is wrong only at shapes that are not shown. Saying where it is wrong, and by how much, would reveal those shapes.
    pub fn hidden(tunables: BTreeMap<String, TuneValue>) -> Self {
        let what = "correct at those of the shapes above that it accepts, but not correct at every shape: it must accept all shapes, including those that are not shown, and be correct there";
        Branch { tunables, what: what.into() }
    }

    /// What is wrong with it.
    pub fn what(&self) -> &str {
        &self.what
    }
}

/// An earlier round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PastRound {
    /// Its number.
    pub round: u32,
    /// The methods it tried.
    pub methods: Vec<String>,
    /// The result of the round and of each candidate, one line each.
    pub became: Vec<String>,
}

/// A kernel that did well on a similar problem.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exemplar {
    /// Its source.
    pub source: String,
    /// Its declaration.
    pub declaration: Option<String>,
    /// Its speedup over what it was compared with; none if it was not timed.
    pub score: Option<f64>,
    /// A description in one line.
    pub note: String,
}

impl Briefing {
    /// Adds the gaps and the bound of the parent's roofline, and the few metrics that matter.
    #[must_use]
    pub fn measured(mut self, roofline: &Roofline) -> Self {
        let methods: Vec<&str> = self.methods.iter().map(|m| m.id.as_str()).collect();
        self.metrics = telling(&roofline.metrics, &roofline.gaps, &methods);
        self.gaps = roofline.gaps;
        self.bound = roofline.bound;
        self
    }

    /// A shortened copy: only the latest rounds and the exemplars that fit are kept.
    #[must_use]
    pub(super) fn bounded(&self) -> Self {
        let mut bounded = self.clone();
        bounded.history.drain(..self.history.len().saturating_sub(LONGEST_HISTORY));
        let mut left = LONGEST_EXEMPLARS;
        bounded.exemplars.retain(|e| {
            let long = e.source.chars().count();
            let fits = long <= LONGEST_EXEMPLAR.min(left);
            left -= if fits { long } else { 0 };
            fits
        });
        bounded
    }

    /// Which of these words occur anywhere in the briefing as whole words. Used for names of shapes that are not shown, in texts that came from elsewhere.
    pub fn reveals<'w>(&self, secret: impl IntoIterator<Item = &'w str>) -> Vec<&'w str> {
        let mut all = String::new();
        // All texts of the briefing, in every field. Values that are not texts cannot be names.
        collect(&serde_json::to_value(self).unwrap_or_default(), &mut all);
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        secret
            .into_iter()
            .filter(|word| !word.is_empty())
            .filter(|word| {
                all.match_indices(*word).any(|(at, _)| {
                    let before = all[..at].chars().next_back().is_some_and(is_word);
                    let after = all[at + word.len()..].chars().next().is_some_and(is_word);
                    !before && !after
                })
            })
            .collect()
    }
}

fn collect(value: &serde_json::Value, into: &mut String) {
    match value {
        serde_json::Value::String(text) => {
            let _ = writeln!(into, "{text}");
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
        serde_json::Value::Object(map) => map.iter().for_each(|(key, item)| {
            let _ = writeln!(into, "{key}");
            collect(item, into);
        }),
        _ => {}
    }
}

/// At most this many characters of a text: two thirds from its beginning, the rest from its end, with a line between them that says how many are missing.
pub fn shortened(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.into();
    }
    let (head, tail) = (most - most / 3, most / 3);
    let first: String = text.chars().take(head).collect();
    let last: String = text.chars().skip(count - tail).collect();
    format!("{first}\n[{} characters left out]\n{last}", count - head - tail)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use kforge_foundation::base::SourceFile;
    use kforge_types::model::Place;

    fn shape(name: &str, role: ShapeRole) -> Shape {
        let dims = BTreeMap::from([("cols".to_string(), 257), ("rows".to_string(), 3)]);
        let place = Place::new(&Arc::new(SourceFile { name: String::new(), text: String::new() }), 0..0);
        Shape {
            name: name.into(),
            place,
            role,
            dims,
            params: BTreeMap::from([("causal".to_string(), Scalar::Bool(false))]),
            tolerance: None,
            stored: BTreeMap::new(),
        }
    }

    #[test]
    fn a_holdout_shape_cannot_be_shown() {
        assert_eq!(Visible::of(&shape("secret", ShapeRole::Holdout)), None);
        let shown = Visible::of(&shape("llama", ShapeRole::Bench)).unwrap();
        assert_eq!(shown.text(), "llama: cols = 257, rows = 3, causal = false (verified and timed)");
    }

    #[test]
    fn words_that_must_not_be_told_are_found_wherever_they_stand() {
        let branch = Branch::new(BTreeMap::new(), "y[3] at shape `secret` is wrong");
        let failed = FailedAttempt { branches: vec![branch], ..FailedAttempt::default() };
        let briefing = Briefing { failed: Some(failed), kernel: "secretary".into(), ..Briefing::default() };
        assert_eq!(briefing.reveals(["secret", "llama", ""]), ["secret"]);
        let hidden = FailedAttempt { branches: vec![Branch::hidden(BTreeMap::new())], ..FailedAttempt::default() };
        assert!(Briefing { failed: Some(hidden), ..briefing }.reveals(["secret"]).is_empty());
    }

    #[test]
    fn long_texts_keep_their_beginning_and_their_end() {
        let text: String = ('a'..='z').collect();
        assert_eq!(shortened(&text, 26), text);
        assert_eq!(shortened(&text, 9), "abcdef\n[17 characters left out]\nxyz");
        assert_eq!(shortened("\u{e9}\u{e9}\u{e9}\u{e9}", 3), "\u{e9}\u{e9}\n[1 characters left out]\n\u{e9}");
    }

    #[test]
    fn only_the_latest_rounds_and_whole_exemplars_are_told() {
        let past = |round| PastRound { round, methods: vec![], became: vec![] };
        let exemplar =
            |n: usize| Exemplar { source: "x".repeat(n), declaration: None, score: None, note: String::new() };
        let briefing = Briefing {
            history: (1..=20).map(past).collect(),
            exemplars: vec![
                exemplar(LONGEST_EXEMPLAR + 1),
                exemplar(LONGEST_EXEMPLAR),
                exemplar(LONGEST_EXEMPLARS - LONGEST_EXEMPLAR),
                exemplar(1),
            ],
            ..Briefing::default()
        };
        let bounded = briefing.bounded();
        assert_eq!(bounded.history.iter().map(|p| p.round).collect::<Vec<_>>(), (9..=20).collect::<Vec<_>>());
        let told: Vec<usize> = bounded.exemplars.iter().map(|e| e.source.len()).collect();
        assert_eq!(
            told,
            [LONGEST_EXEMPLAR, LONGEST_EXEMPLARS - LONGEST_EXEMPLAR],
            "no half ones, and no more than all may have"
        );
    }
}
