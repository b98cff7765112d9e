//! The document of a run in CI: what the change touches, which steps ran, how champions compare, what was left out, which artifacts were
//! made, and how it ended. Pure: builds and compares
//! nothing, and knows no exit code.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::affected::{Affected, AffectedTarget};
use super::comparison::Comparison;
use kforge_foundation::base::{count, unhidden};
use kforge_types::record::event::{Labels, VerdictCounts};
use kforge_types::record::{FORMAT_VERSION, Outcome};

/// The most lines of a section of a summary.
const MOST_LINES: usize = 25;

/// How a run ended. If several apply, the first of these counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    /// The run was interrupted.
    Interrupted,
    /// A step failed, or a toolchain is missing.
    NotBuilt,
    /// Evidence contradicts other evidence.
    Contradicted,
    /// A kernel is wrong, or an operator that must decide is indecisive.
    Wrong,
    /// A champion is slower than that of the base by more than the margin.
    Slower,
    /// Required evidence is missing, or a comparison is undecided or unknown.
    NoEvidence,
    /// Nothing is known to be wrong, but an artifact that was asked for could not be made. The exit code is that of `kforge package`.
    NotPackaged,
    /// Nothing is known to be wrong.
    Done,
}

impl Conclusion {
    /// The conclusion in words, for people.
    pub fn text(self) -> &'static str {
        match self {
            Conclusion::Interrupted => "interrupted",
            Conclusion::NotBuilt => "a step failed",
            Conclusion::Contradicted => "evidence contradicts itself",
            Conclusion::Wrong => "a kernel is wrong",
            Conclusion::Slower => "slower than allowed",
            Conclusion::NoEvidence => "evidence is missing or undecided",
            Conclusion::NotPackaged => "nothing is packaged",
            Conclusion::Done => "passed",
        }
    }
}

/// The base of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CiBase {
    /// The revision, as the user named it.
    pub revision: String,
    /// Its commit.
    pub commit: String,
}

/// The steps of a kernel, or those of an operator that belong to no kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepsOf {
    /// The package.
    pub package: String,
    /// The kernel; null for steps of an operator.
    pub kernel: Option<String>,
    /// The operator, for steps that belong to no kernel.
    pub operator: Option<String>,
    /// The ids of the steps that ran.
    pub executed: Vec<String>,
    /// The number of steps whose results were known.
    pub fresh: u64,
    /// The number of steps that this machine cannot run.
    pub unavailable: u64,
    /// The number of steps that were skipped, because a step that they need gave no result.
    pub skipped: u64,
    /// The ids of the steps that failed.
    pub failed: Vec<String>,
}

/// A target that is not compared, because nobody has observed a device of it in either state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SkippedDevice {
    /// The package.
    pub package: String,
    /// The target.
    #[serde(flatten)]
    pub target: AffectedTarget,
}

/// A step that lacks required evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MissingEvidence {
    /// The step.
    pub step: String,
    /// Why there is none, for people.
    pub why: String,
}

/// An artifact that a run made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CiArtifact {
    /// The package.
    pub package: String,
    /// Its version.
    pub version: String,
    /// The digest of its contents, which names it: `sha256:` and the digits.
    pub root: String,
    /// Its archive, relative to the folder of this document.
    pub archive: String,
    /// Its folder, relative to the folder of this document.
    pub folder: String,
    /// The size of the archive in bytes.
    pub bytes: u64,
    /// The number of kernels, each for one choice of types and one target.
    pub kernels: u64,
    /// The fingerprint of the key that signed it; null if nobody did.
    pub signed_by: Option<String>,
    /// Whether any of its evidence is only claimed.
    pub claimed: bool,
}

/// A run in CI.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CiReport {
    /// Version of this format.
    pub format_version: u32,
    /// Version of kforge.
    pub kforge: String,
    /// The base; null if everything was built and nothing compared.
    pub base: Option<CiBase>,
    /// What the change since the base touches; null without a base.
    pub affected: Option<Affected>,
    /// The steps of the working tree, by kernel. Steps of the base are not listed.
    pub steps: Vec<StepsOf>,
    /// The number of steps by verdict.
    pub verdicts: VerdictCounts,
    /// The comparison of champions; null without a base, if no affected kernel is for a device that is compared, or if a state could not be built.
    pub comparison: Option<Comparison>,
    /// Why champions that should have been compared were not, for people.
    pub not_compared: Option<String>,
    /// The targets that are not compared, because nobody has observed a device of them.
    pub skipped: Vec<SkippedDevice>,
    /// The steps that lack evidence, except those of skipped targets.
    pub missing_evidence: Vec<MissingEvidence>,
    /// Whether missing and undecided evidence ends the run with [`Conclusion::NoEvidence`].
    pub requires_evidence: bool,
    /// The artifacts; null if none were asked for, or if the run ended with something else than [`Conclusion::Done`].
    pub artifacts: Option<Vec<CiArtifact>>,
    /// Why artifacts that were asked for were not made, for people: one line for each reason.
    pub not_packaged: Vec<String>,
    /// How the run ended.
    pub conclusion: Conclusion,
    /// The exit code.
    pub exit: u8,
}

impl CiReport {
    /// The report of a run that has nothing to do.
    pub fn new(base: Option<CiBase>, affected: Option<Affected>, requires_evidence: bool) -> Self {
        CiReport {
            format_version: FORMAT_VERSION,
            kforge: env!("CARGO_PKG_VERSION").into(),
            base,
            affected,
            steps: vec![],
            verdicts: VerdictCounts::default(),
            comparison: None,
            not_compared: None,
            skipped: vec![],
            missing_evidence: vec![],
            requires_evidence,
            artifacts: None,
            not_packaged: vec![],
            conclusion: Conclusion::Done,
            exit: 0,
        }
    }

    /// Markdown for the summary of a job: how the run ended, what it lacks, the comparison, the results of its build, and the artifacts. `results` is the text
    /// of `report::exports::summary_results`.
    pub fn summary(&self, results: &str) -> String {
        let mut out = format!("## kforge ci: {}\n", self.conclusion.text());
        section(&mut out, "Steps without evidence", self.missing_by_reason());
        if let Some(comparison) = &self.comparison {
            out += "\n";
            out += &comparison.markdown();
        }
        section(&mut out, "Not compared", self.not_compared.iter().map(|why| format!("* {}", escaped(why))).collect());
        out += "\n### Results\n";
        out += results;
        out += &self.artifacts_markdown();
        unhidden(&out)
    }

    /// A line for each reason for which evidence is missing, with the number of steps and the first of them.
    fn missing_by_reason(&self) -> Vec<String> {
        let mut reasons: Vec<&str> = self.missing_evidence.iter().map(|of| of.why.as_str()).collect();
        let mut seen = BTreeSet::new();
        reasons.retain(|why| seen.insert(*why));
        let line = |why: &str| {
            let steps: Vec<&str> =
                self.missing_evidence.iter().filter(|of| of.why == why).map(|of| of.step.as_str()).collect();
            let first = match steps[..] {
                [one] => format!("`{one}`"),
                [first, ..] => format!("{}, the first `{first}`", count(steps.len() as u64, "step")),
                [] => String::new(),
            };
            format!("* {}: {first}", escaped(why))
        };
        reasons.into_iter().map(line).collect()
    }

    /// What it says about artifacts; empty if none were asked for.
    fn artifacts_markdown(&self) -> String {
        let mut lines: Vec<String> = self.artifacts.iter().flatten().map(CiArtifact::line).collect();
        if self.artifacts.as_ref().is_some_and(Vec::is_empty) {
            lines.push("There is nothing to package: no package that the run is about has a kernel for a GPU.".into());
        }
        lines.extend(self.not_packaged.iter().map(|why| format!("* {}", escaped(why))));
        match lines.is_empty() {
            true => String::new(),
            false => {
                let title = if self.not_packaged.is_empty() { "Artifacts" } else { "Not packaged" };
                format!("\n### {title}\n\n{}\n", lines.join("\n"))
            }
        }
    }
}

/// A section of a summary with the first [`MOST_LINES`] of these lines; nothing if there are none.
fn section(out: &mut String, title: &str, mut lines: Vec<String>) {
    let more = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    if more > 0 {
        lines.push(format!("* and {more} more"));
    }
    if !lines.is_empty() {
        *out += &format!("\n### {title}\n\n{}\n", lines.join("\n"));
    }
}

impl CiArtifact {
    fn line(&self) -> String {
        let signed = self.signed_by.as_ref().map_or_else(|| "not signed".into(), |key| format!("signed with `{key}`"));
        let claimed = if self.claimed { ", some of its evidence is only claimed" } else { "" };
        let CiArtifact { archive, root, .. } = self;
        format!("* `{archive}` ({}, {signed}{claimed}), root `{root}`", count(self.kernels, "kernel"))
    }
}

/// A text without the characters that Markdown reads.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('<', "&lt;").replace('*', "\\*").replace('_', "\\_");
    text.replace('[', "\\[").replace(']', "\\]")
}

/// Steps by kernel or operator, in the order of their names.
pub fn steps_by_kernel<'s>(steps: impl IntoIterator<Item = (&'s str, &'s Labels, &'s Outcome)>) -> Vec<StepsOf> {
    let mut all: BTreeMap<(&str, Option<&str>, Option<&str>), StepsOf> = BTreeMap::new();
    for (id, labels, outcome) in steps {
        let kernel = labels.kernel.as_deref();
        let operator = labels.operator.as_deref().filter(|_| kernel.is_none());
        let of = all.entry((&labels.package, kernel, operator)).or_insert_with(|| StepsOf {
            package: labels.package.clone(),
            kernel: kernel.map(String::from),
            operator: operator.map(String::from),
            ..StepsOf::default()
        });
        match outcome {
            Outcome::Executed => of.executed.push(id.into()),
            Outcome::Fresh => of.fresh += 1,
            Outcome::Unavailable(_) => of.unavailable += 1,
            Outcome::Skipped(_) => of.skipped += 1,
            Outcome::Failed(_) => of.failed.push(id.into()),
        }
    }
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_listed_by_kernel_and_those_of_no_kernel_by_operator() {
        let labels = |kernel: Option<&str>| Labels {
            package: "p".into(),
            kernel: kernel.map(String::from),
            operator: Some("op".into()),
            ..Labels::default()
        };
        let (k, op) = (labels(Some("k")), labels(None));
        let (executed, fresh) = (Outcome::Executed, Outcome::Fresh);
        let failed = Outcome::Failed("why".into());
        let all = steps_by_kernel([
            ("p/op/oracle", &op, &fresh),
            ("p/k/compile", &k, &executed),
            ("p/k/verify", &k, &failed),
            ("p/k/judge", &k, &Outcome::Skipped("p/k/verify".into())),
        ]);
        let [of_op, of_k] = &all[..] else { panic!("{all:?}") };
        assert_eq!((of_op.kernel.as_deref(), of_op.operator.as_deref(), of_op.fresh), (None, Some("op"), 1));
        assert_eq!((of_k.kernel.as_deref(), of_k.operator.as_deref(), of_k.skipped), (Some("k"), None, 1));
        assert_eq!((&of_k.executed[..], &of_k.failed[..]), (&["p/k/compile".into()][..], &["p/k/verify".into()][..]));
    }
}
