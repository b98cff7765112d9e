//! Steps that failed without a result, one entry for each reason: what the compiler said first, where, and of how many variants. Knows outcomes and notes of steps;
//! reads no text.

use serde::{Deserialize, Serialize};

use super::assemble::StepView;
use super::document::TargetReport;
use super::messages::in_package;
use kforge_foundation::base::{Severity, count};
use kforge_types::record::SourcePlace;

/// Steps of one kind that failed for one reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FailureReport {
    /// The kind of the steps: `compile`.
    pub kind: String,
    /// The first line of the first error of the compiler; of the reason, if the step has none.
    pub message: String,
    /// The place of that error, if it is in a file of the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<SourcePlace>,
    /// The variants, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<String>,
    /// The steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
}

impl FailureReport {
    /// As a line: `compile: k.cu:28: error: identifier "n" is undefined (8 variants)`.
    pub fn line(&self) -> String {
        let FailureReport { kind, message, place, variants, steps } = self;
        let kind = if kind.is_empty() { String::new() } else { format!("{kind}: ") };
        let place = place.as_ref().map_or_else(String::new, |place| match place.column {
            Some(column) => format!("{}:{}:{column}: error: ", place.file, place.line),
            None => format!("{}:{}: error: ", place.file, place.line),
        });
        let number = match variants.iter().filter(|label| !label.is_empty()).count() {
            0 if steps.len() > 1 => format!(" ({})", count(steps.len() as u64, "step")),
            0 => String::new(),
            several => format!(" ({})", count(several as u64, "variant")),
        };
        format!("{kind}{place}{message}{number}")
    }

    /// What the reason of its first step says after its first line.
    pub fn rest<'r>(&self, target: &'r TargetReport) -> impl Iterator<Item = &'r str> + use<'r> {
        let first = self.steps.first();
        let found = target.failed.iter().find(|(step, _)| Some(step) == first);
        found.into_iter().flat_map(|(_, why)| why.lines().skip(1))
    }

    /// The first steps, and how many more there are: `a, b, c and 9 more`.
    pub fn named(&self, most: usize) -> String {
        let more = self.steps.len().saturating_sub(most);
        let named = self.steps.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(", ");
        if more > 0 { format!("{named} and {more} more") } else { named }
    }
}

/// Adds a failed step, which gave `why` as its reason.
pub(super) fn add(all: &mut Vec<FailureReport>, step: &StepView<'_>, why: &str) {
    let mut parts = step.notes.iter().flat_map(|note| &note.parts);
    let error = parts.find(|part| part.severity == Severity::Error);
    let (text, place) = match error {
        Some(part) => (part.message.as_str(), part.place.clone().and_then(in_package)),
        None => (why, None),
    };
    let message = text.lines().next().unwrap_or_default().to_string();
    let variant = step.labels.variant.clone();
    put(
        all,
        FailureReport { kind: step.kind.name().into(), message, place, ..FailureReport::default() },
        step.id,
        variant,
    );
}

fn put(all: &mut Vec<FailureReport>, new: FailureReport, step: &str, variant: Option<String>) {
    let same =
        |known: &FailureReport| (&known.kind, &known.message, &known.place) == (&new.kind, &new.message, &new.place);
    let at = all.iter().position(same).unwrap_or_else(|| {
        all.push(new);
        all.len() - 1
    });
    let into = &mut all[at];
    into.steps.push(step.into());
    into.variants.extend(variant.filter(|label| !into.variants.contains(label)));
}

/// Sorts failures by their first steps.
pub(super) fn sort(all: &mut [FailureReport]) {
    all.iter_mut().for_each(|failure| failure.steps.sort());
    all.sort_by(|a, b| a.steps.cmp(&b.steps));
}

impl TargetReport {
    /// Its failures. A report of an earlier kforge has only the steps with their reasons.
    pub fn failures(&self) -> Vec<FailureReport> {
        if !self.failures.is_empty() {
            return self.failures.clone();
        }
        let mut all = vec![];
        for (step, why) in &self.failed {
            let message = why.lines().next().unwrap_or_default().to_string();
            put(&mut all, FailureReport { message, ..FailureReport::default() }, step, None);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::event::Labels;
    use kforge_types::record::{Note, Outcome, StepKind, ToolMessage};

    #[test]
    fn variants_with_one_message_of_the_compiler_are_one_failure_with_its_place() {
        let part = |line: u32, text: &str, severity| ToolMessage {
            severity,
            place: Some(SourcePlace { file: "k.cu".into(), line, column: None }),
            message: text.into(),
        };
        let noted = |text: &str| {
            let parts = vec![
                part(2, "unused", Severity::Warning),
                part(3, text, Severity::Error),
                part(4, "more", Severity::Error),
            ];
            [Note::new(Severity::Error, "compile.refused", "...").of_parts(parts)]
        };
        let failed = Outcome::Failed("cannot compile `k.cu`".into());
        let mut all = vec![];
        let mut fail = |id: &str, label: &str, notes: &[Note]| {
            let labels = Labels { variant: Some(label.into()), ..Labels::default() };
            let (kind, outcome) = (StepKind::Compile, &failed);
            let step = StepView { id, kind, labels: &labels, outcome, result: None, notes, evidence: None };
            add(&mut all, &step, "cannot compile `k.cu`\nand why");
        };
        let (undefined, other) = (noted("`n` is undefined\nhere"), noted("expected `;`"));
        fail("p/k/A=2/cpu/compile", "A=2", &undefined);
        fail("p/k/A=1/cpu/compile", "A=1", &undefined);
        fail("p/k/A=1/cpu/plain/compile", "A=1", &undefined);
        fail("p/k/A=3/cpu/compile", "A=3", &other);
        fail("p/k/A=0/cpu/compile", "A=0", &[]);
        sort(&mut all);
        let lines: Vec<String> = all.iter().map(FailureReport::line).collect();
        let expected = [
            "compile: cannot compile `k.cu` (1 variant)",
            "compile: k.cu:3: error: `n` is undefined (2 variants)",
            "compile: k.cu:3: error: expected `;` (1 variant)",
        ];
        assert_eq!(lines, expected);
        assert_eq!(all[1].named(2), "p/k/A=1/cpu/compile, p/k/A=1/cpu/plain/compile and 1 more");
    }

    #[test]
    fn a_report_of_an_earlier_kforge_has_its_steps_by_reason() {
        let failed =
            vec![("a".into(), "no\nat all".into()), ("b".into(), "no\nat all".into()), ("c".into(), "never".into())];
        let target = TargetReport { failed, ..TargetReport::default() };
        let all = target.failures();
        assert_eq!(all.iter().map(FailureReport::line).collect::<Vec<_>>(), ["no (2 steps)", "never"]);
        assert_eq!(all[0].rest(&target).collect::<Vec<_>>(), ["at all"]);
    }
}
