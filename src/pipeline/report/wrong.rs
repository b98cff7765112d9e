//! Wrong variants in words: how many of how many, whether they gave wrong results or did not run at all, and how many were not tried because the build ended
//! before. Knows verdicts of the document; judges nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::assemble::StepView;
use super::document::{ShapeReport, TargetReport};
use kforge_foundation::base::count;
use kforge_types::record::{FindingKind, Outcome, StepKind, Verdict};

/// The variants of a kernel whose build ended at a failure before all of them were tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct UntriedReport {
    /// The number of variants.
    pub all: u64,
    /// Those without any verdict.
    pub none: u64,
    /// Those that have verdicts at some of their shapes only, none of them a failure.
    pub partly: u64,
}

/// A failure in words: `1 of 8 variants`, `is wrong`, and what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    /// The variants: `1 of 8 variants`.
    pub(super) who: String,
    /// What is said of them: `is wrong`, `does not run`, or `fails` where some are wrong and some do not run.
    pub(super) what: &'static str,
    /// Why they do not run: `: an exception is raised`; empty if there is no single reason.
    pub(super) why: String,
    /// The variants that were not tried: `; 3 were not tried, 4 not at every shape`; empty if there are none.
    pub(super) untried: String,
}

impl ShapeReport {
    /// What kept the kernel from running to its end; none if it ran.
    pub(super) fn not_run(&self) -> Option<&'static str> {
        // An earlier kforge recorded only whether the launch was refused.
        let refused = self.refused.then_some(FindingKind::LaunchRefused);
        self.finding.or(refused).and_then(FindingKind::not_run)
    }
}

/// The word for a failing verdict, given its finding.
pub(super) fn word(not_run: Option<&str>) -> &'static str {
    if not_run.is_some() { "does not run" } else { "wrong" }
}

impl Told {
    /// The wrong variants of a kernel on a target; none if none is wrong.
    pub(super) fn of(target: &TargetReport) -> Option<Told> {
        let failing = || target.shapes.iter().filter(|shape| matches!(shape.verdict, Verdict::Fail(_)));
        let found = failing().map(|shape| &shape.variant).collect::<BTreeSet<_>>().len() as u64;
        let (all, _, counted) = target.variants;
        let number = counted.max(found);
        if number == 0 {
            return None;
        }
        // A build that ended at a failure has counted no variants.
        let all = if counted == 0 { target.untried.map(|untried| untried.all) } else { Some(all) };
        let who = all.map_or_else(
            || count(number, "variant"),
            |all| format!("{number} of {}", count(all.max(number), "variant")),
        );
        let reasons: BTreeSet<Option<&str>> = failing().map(ShapeReport::not_run).collect();
        let mixed = reasons.contains(&None) && reasons.len() > 1;
        // Of a report of other shapes than those that failed, only the number is known.
        let what = match (reasons.iter().all(Option::is_none), mixed || reasons.is_empty(), number) {
            (_, true, 1) => "fails",
            (_, true, _) => "fail",
            (true, _, 1) => "is wrong",
            (true, ..) => "are wrong",
            (.., 1) => "does not run",
            _ => "do not run",
        };
        let why = match (reasons.first(), reasons.len()) {
            (Some(Some(why)), 1) => format!(": {why}"),
            _ => String::new(),
        };
        Some(Told { who, what, why, untried: target.untried.map_or_else(String::new, UntriedReport::line) })
    }
}

impl UntriedReport {
    /// As a sentence of its own; none if every variant was tried at some shape.
    pub(super) fn alone(self) -> Option<String> {
        let verb = if self.none == 1 { "was" } else { "were" };
        (self.none > 0).then(|| format!("{} of {} {verb} not tried", self.none, count(self.all, "variant")))
    }

    /// As the end of a line.
    fn line(self) -> String {
        let were = |number: u64| if number == 1 { "was" } else { "were" };
        match (self.none, self.partly) {
            (0, 0) => String::new(),
            (none, 0) => format!("; {none} {} not tried", were(none)),
            (0, partly) => format!("; {partly} {} not tried at every shape", were(partly)),
            (none, partly) => format!("; {none} {} not tried, {partly} not at every shape", were(none)),
        }
    }
}

/// What became of a variant.
#[derive(Default)]
struct Tried {
    judged: bool,
    failed: bool,
    skipped: bool,
}

/// The variants that were not tried, by package, kernel, target and types. `types` gives the types of a variant's label.
pub(super) fn untried(steps: &[StepView<'_>], types: fn(&str) -> &str) -> HashMap<[String; 4], UntriedReport> {
    let outcomes: HashMap<&str, &Outcome> = steps.iter().map(|step| (step.id, step.outcome)).collect();
    let mut all: HashMap<[String; 4], BTreeMap<&str, Tried>> = HashMap::new();
    for step in steps.iter().filter(|step| step.labels.method.is_none() && step.labels.round.is_none()) {
        let labels = step.labels;
        let (Some(kernel), Some(target), Some(variant)) = (&labels.kernel, &labels.target, &labels.variant) else {
            continue;
        };
        let place = [labels.package.clone(), kernel.clone(), target.clone(), types(variant).to_string()];
        let tried = all.entry(place).or_default().entry(variant).or_default();
        let verdict = step.result.and_then(|result| result.verdict.as_ref());
        tried.failed |= matches!(step.outcome, Outcome::Failed(_)) || matches!(verdict, Some(Verdict::Fail(_)));
        if step.kind != StepKind::Judge || labels.confirms {
            continue;
        }
        // What this machine cannot try is no part of what the build left out.
        let is_absent = |root: &str| matches!(outcomes.get(root), Some(Outcome::Unavailable(_)));
        match step.outcome {
            Outcome::Skipped(root) => tried.skipped |= !is_absent(root),
            _ => tried.judged |= step.result.is_some(),
        }
    }
    let of = |variants: &BTreeMap<&str, Tried>| {
        let number = |judged: bool| {
            let left = variants.values().filter(|one| one.skipped && !one.failed && one.judged == judged);
            left.count() as u64
        };
        UntriedReport { all: variants.len() as u64, none: number(false), partly: number(true) }
    };
    // Of a build that tried everything, the selection counts the variants.
    let ended = all.into_iter().filter(|(_, variants)| variants.values().any(|one| one.skipped));
    ended.map(|(place, variants)| (place, of(&variants))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::event::Labels;
    use kforge_types::record::{StepResult, Unknown};

    fn shape(variant: &str, finding: Option<FindingKind>) -> ShapeReport {
        let shape = serde_json::json!({
            "shape": "s", "variant": variant, "verdict": { "fail": "why" }, "emulated": true, "worst": null, "explanation": "",
        });
        ShapeReport { finding, ..serde_json::from_value(shape).unwrap() }
    }

    fn told(shapes: Vec<ShapeReport>, variants: (u64, u64, u64), untried: Option<UntriedReport>) -> String {
        let target = TargetReport { shapes, variants, untried, ..TargetReport::default() };
        Told::of(&target)
            .map_or_else(String::new, |told| format!("{} {}{}{}", told.who, told.what, told.why, told.untried))
    }

    #[test]
    fn wrong_results_and_kernels_that_do_not_run_have_other_words() {
        let (raised, crash, race) = (FindingKind::Raised, FindingKind::Crash, FindingKind::Race);
        let one = |finding| told(vec![shape("A=1", finding)], (2, 1, 1), None);
        assert_eq!(
            (one(None), one(Some(race))),
            ("1 of 2 variants is wrong".into(), "1 of 2 variants is wrong".into())
        );
        assert_eq!(one(Some(raised)), "1 of 2 variants does not run: an exception is raised");
        let two = |a, b| told(vec![shape("A=1", a), shape("A=2", b)], (2, 0, 2), None);
        assert_eq!(two(Some(raised), Some(raised)), "2 of 2 variants do not run: an exception is raised");
        assert_eq!(two(Some(raised), Some(crash)), "2 of 2 variants do not run");
        assert_eq!(two(Some(raised), None), "2 of 2 variants fail");
        assert_eq!(told(vec![], (2, 2, 0), None), "");
        // A report of other shapes than those that failed.
        assert_eq!(told(vec![], (4, 2, 2), None), "2 of 4 variants fail");
        // An earlier kforge recorded only that the launch was refused.
        let refused = ShapeReport { refused: true, ..shape("A=1", None) };
        assert_eq!(told(vec![refused], (1, 0, 1), None), "1 of 1 variant does not run: the launch is refused");
    }

    #[test]
    fn variants_that_were_not_tried_are_counted_and_not_said_to_be_correct() {
        let untried = |none, partly| Some(UntriedReport { all: 8, none, partly });
        let of = |untried| told(vec![shape("A=1", None)], (0, 0, 0), untried);
        assert_eq!(of(None), "1 variant is wrong");
        assert_eq!(of(untried(3, 4)), "1 of 8 variants is wrong; 3 were not tried, 4 not at every shape");
        assert_eq!(of(untried(1, 0)), "1 of 8 variants is wrong; 1 was not tried");
        let alone = |none| UntriedReport { all: 8, none, partly: 1 }.alone();
        assert_eq!((alone(1), alone(0)), (Some("1 of 8 variants was not tried".into()), None));
        assert_eq!(of(untried(0, 2)), "1 of 8 variants is wrong; 2 were not tried at every shape");
    }

    #[test]
    fn a_build_that_ended_at_a_failure_left_out_what_it_skipped() {
        let labels = |variant: &str| Labels {
            package: "p".into(),
            kernel: Some("k".into()),
            target: Some("cpu".into()),
            variant: Some(variant.into()),
            ..Labels::default()
        };
        let result = |verdict| StepResult {
            outputs: BTreeMap::new(),
            verdict: Some(verdict),
            notes: vec![],
            summary: String::new(),
            duration_ms: 0,
        };
        let (pass, fail) = (result(Verdict::Pass), result(Verdict::Fail("no".into())));
        let open = result(Verdict::Unknown(Unknown::NoDevice("none".into())));
        let ran = Outcome::Executed;
        let (skipped, lacking) = (Outcome::Skipped("p/k/A=1/judge".into()), Outcome::Skipped("p/k/A=5/verify".into()));
        let (absent, failed) = (Outcome::Unavailable("none".into()), Outcome::Failed("no".into()));
        let all: [(&str, &str, StepKind, &Outcome, Option<&StepResult>); 9] = [
            ("p/k/A=1/judge", "A=1", StepKind::Judge, &ran, Some(&fail)),
            ("p/k/A=1/b/judge", "A=1", StepKind::Judge, &skipped, None),
            ("p/k/A=2/judge", "A=2", StepKind::Judge, &ran, Some(&pass)),
            ("p/k/A=2/b/judge", "A=2", StepKind::Judge, &skipped, None),
            ("p/k/A=3/judge", "A=3", StepKind::Judge, &skipped, None),
            ("p/k/A=4/compile", "A=4", StepKind::Compile, &failed, None),
            ("p/k/A=4/judge", "A=4", StepKind::Judge, &skipped, None),
            ("p/k/A=5/verify", "A=5", StepKind::Verify, &absent, None),
            ("p/k/A=5/judge", "A=5", StepKind::Judge, &lacking, Some(&open)),
        ];
        let labelled: Vec<Labels> = all.iter().map(|step| labels(step.1)).collect();
        let views: Vec<StepView<'_>> = all
            .iter()
            .zip(&labelled)
            .map(|((id, _, kind, outcome, result), labels)| StepView {
                id,
                kind: *kind,
                labels,
                outcome,
                result: *result,
                notes: &[],
                evidence: None,
            })
            .collect();
        let found = untried(&views, |_| "");
        let place = ["p", "k", "cpu", ""].map(String::from);
        assert_eq!(found, [(place, UntriedReport { all: 5, none: 1, partly: 1 })].into());
        assert!(untried(&views[..1], |_| "").is_empty());
    }
}
