//! What steps reported about kernels and operators, message by message and with places: compilers' errors and warnings, findings of verifications, what
//! calibration says of a tolerance, steps that failed. Knows results, notes and observations of steps; decides no verdict and reads no text.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::assemble::{Reader, StepView};
use super::document::KernelReport;
use kforge_foundation::base::Severity;
use kforge_types::model::generate::GENERATED;
use kforge_types::record::event::Labels;
use kforge_types::record::params::Judgement;
use kforge_types::record::{
    Finding, FindingKind, Outcome, SourcePlace, StepKind, ToolMessage, Unknown, Verdict, VerifyObservation,
};

/// The code of a compiler's error.
pub const COMPILE_ERROR: &str = "compile.error";

/// The code of a source that a compiler refused in words that are no messages with places.
pub const COMPILE_REFUSED: &str = "compile.refused";

/// The code of a compiler's warning.
pub const COMPILE_WARNING: &str = "compile.warning";

/// The code of wrong values that no finding explains.
pub const WRONG_VALUES: &str = "verify.values";

/// The code of a construct that the emulator does not support.
pub const NOT_EMULATED: &str = "verify.not-emulated";

/// The code of an operator whose reference or tolerance is wrong or decides nothing, if no note says more.
pub const INDECISIVE: &str = "calibrate.indecisive";

/// A message about a kernel or an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MessageReport {
    /// Its stable code: what reported it, then what it is about, such as `verify.race`.
    pub code: String,
    /// Its severity.
    pub severity: Severity,
    /// The message; the first line says what is wrong.
    pub message: String,
    /// The place that it is about: a line of a source or, if it is about none, the table of the kernel or the operator in the manifest. None if it is about
    /// neither, or if an earlier kforge wrote the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<SourcePlace>,
    /// The other place of a race or of a divergent barrier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_place: Option<SourcePlace>,
    /// The kernel; none if it is about an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// The target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The variant of the first step that reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The shape of that step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
    /// How many steps reported it.
    pub steps: u64,
}

impl MessageReport {
    /// Whether it is about one of these kernels, on one of their targets if it is about a target, or about an operator of theirs.
    pub(super) fn is_of(&self, kernels: &[KernelReport]) -> bool {
        let on = |kernel: &KernelReport| match &self.target {
            Some(name) => kernel.targets.iter().any(|target| target.target == *name),
            None => true,
        };
        let mine = |kernel: &KernelReport| match &self.kernel {
            Some(name) => kernel.name == *name && on(kernel),
            None => self.operator.as_ref().is_none_or(|name| kernel.operator == *name),
        };
        kernels.iter().any(mine)
    }
}

/// The code of a finding: `verify.out-of-bounds`.
pub fn finding_code(kind: FindingKind) -> String {
    // The names that documents use.
    let name = serde_json::to_value(kind).ok().and_then(|name| name.as_str().map(String::from));
    format!("verify.{}", name.unwrap_or_default())
}

/// What identifies a step's subject: package, kernel, operator, target, variant and shape, and whether it confirms a champion.
type Subject<'a> = (&'a str, [Option<&'a str>; 5], bool);

fn subject(labels: &Labels) -> Subject<'_> {
    let Labels { package, kernel, operator, target, variant, shape, confirms, .. } = labels;
    (package, [kernel, operator, target, variant, shape].map(|part| part.as_deref()), *confirms)
}

/// The messages of all steps by package, in the order of their places. A message that several variants or shapes have in common is listed once.
pub(super) fn all(steps: &[StepView<'_>], reader: &Reader<'_>) -> BTreeMap<String, Vec<MessageReport>> {
    let verified = steps.iter().filter(|step| step.kind == StepKind::Verify);
    let verified: HashMap<Subject<'_>, &StepView<'_>> = verified.map(|step| (subject(step.labels), step)).collect();
    let mut found: BTreeMap<String, Messages> = BTreeMap::new();
    for step in steps {
        let failed = matches!(step.outcome, Outcome::Failed(_));
        // What exists only for comparison may be wrong, and so may a candidate of a round.
        if !failed && (step.labels.method.is_some() || step.labels.round.is_some()) {
            continue;
        }
        let said = match (step.outcome, step.kind) {
            (Outcome::Failed(why), _) => of_failure(step, &(reader.places)(step.id, why)),
            (_, StepKind::Compile) => of_compilers(step),
            (_, StepKind::Calibrate) => of_calibration(step),
            (_, StepKind::Inspect | StepKind::Oracle) => of_notes(step),
            (_, StepKind::Judge) => of_judgement(step, verified.get(&subject(step.labels)).copied(), reader),
            _ => vec![],
        };
        if !said.is_empty() {
            let messages = found.entry(step.labels.package.clone()).or_default();
            said.into_iter().for_each(|message| messages.add(message));
        }
    }
    found.into_iter().map(|(package, messages)| (package, messages.sorted())).collect()
}

/// The messages of a package.
#[derive(Default)]
struct Messages {
    all: Vec<MessageReport>,
    /// The positions of messages by what makes them the same.
    at: HashMap<[String; 4], usize>,
}

impl Messages {
    fn add(&mut self, message: MessageReport) {
        // Findings at one place differ in elements and threads by shape, which say no more about the mistake.
        let about = match &message.place {
            Some(place) => format!("{place:?} {:?}", message.other_place),
            // So do wrong values of one kernel.
            None if message.code == WRONG_VALUES => String::new(),
            None => message.message.clone(),
        };
        let about = match message.code.as_str() {
            COMPILE_ERROR | COMPILE_WARNING => format!("{about} {}", message.message),
            _ => about,
        };
        let part = |label: &Option<String>| label.clone().unwrap_or_default();
        let owner = format!("{} {}", part(&message.kernel), part(&message.operator));
        match self.at.entry([message.code.clone(), about, owner, part(&message.target)]) {
            std::collections::hash_map::Entry::Occupied(known) => self.all[*known.get()].steps += 1,
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(self.all.len());
                self.all.push(message);
            }
        }
    }

    fn sorted(self) -> Vec<MessageReport> {
        let mut all = self.all;
        all.sort_by(|a, b| {
            let order = |m: &MessageReport| (m.place.is_none(), m.place.clone(), m.code.clone(), m.kernel.clone());
            (order(a), &a.target, &a.message).cmp(&(order(b), &b.target, &b.message))
        });
        all
    }
}

/// A message of a step.
fn message(step: &StepView<'_>, code: impl Into<String>, severity: Severity, text: impl Into<String>) -> MessageReport {
    let Labels { kernel, operator, target, variant, shape, .. } = step.labels.clone();
    let (code, message) = (code.into(), text.into());
    MessageReport {
        code,
        severity,
        message,
        place: None,
        other_place: None,
        kernel,
        operator,
        target,
        variant,
        shape,
        steps: 1,
    }
}

/// A place, unless it is in a generated source, which is no file of the package.
pub(super) fn in_package(place: SourcePlace) -> Option<SourcePlace> {
    let generated = place.file.strip_prefix(GENERATED).is_some_and(|rest| rest.starts_with('/'));
    (!generated).then_some(place)
}

/// The messages of a compiler.
fn parts<'m>(step: &StepView<'_>, all: impl Iterator<Item = &'m ToolMessage>) -> Vec<MessageReport> {
    let of = |part: &ToolMessage| {
        let code = if part.severity == Severity::Error { COMPILE_ERROR } else { COMPILE_WARNING };
        MessageReport {
            place: part.place.clone().and_then(in_package),
            ..message(step, code, part.severity, part.message.as_str())
        }
    };
    all.map(of).collect()
}

fn of_failure(step: &StepView<'_>, why: &str) -> Vec<MessageReport> {
    let errors = step.notes.iter().flat_map(|note| &note.parts).filter(|part| part.severity == Severity::Error);
    match parts(step, errors) {
        none if none.is_empty() => {
            let text = step.notes.iter().fold(why.to_string(), |text, note| format!("{text}\n{}", note.message));
            // What a compiler refused differs from a compiler that was ended, by a limit or with its process.
            let code = match step.notes.iter().any(|note| note.code == COMPILE_REFUSED) {
                true => COMPILE_REFUSED.to_string(),
                false => format!("{}.failed", step.kind.name()),
            };
            vec![message(step, code, Severity::Error, text)]
        }
        errors => errors,
    }
}

fn of_compilers(step: &StepView<'_>) -> Vec<MessageReport> {
    parts(step, step.notes.iter().flat_map(|note| &note.parts).filter(|part| part.severity != Severity::Note))
}

fn of_notes(step: &StepView<'_>) -> Vec<MessageReport> {
    let loud = step.notes.iter().filter(|note| note.severity != Severity::Note);
    loud.map(|note| message(step, note.code.as_str(), note.severity, note.message.as_str())).collect()
}

fn of_calibration(step: &StepView<'_>) -> Vec<MessageReport> {
    let noted = of_notes(step);
    let verdict = step.result.and_then(|result| result.verdict.as_ref());
    match verdict {
        Some(Verdict::Fail(why)) if noted.is_empty() => {
            vec![message(step, INDECISIVE, Severity::Error, why.as_str())]
        }
        Some(Verdict::Unknown(Unknown::Indecisive(why))) if noted.is_empty() => {
            vec![message(step, INDECISIVE, Severity::Warning, why.as_str())]
        }
        _ => noted,
    }
}

fn of_judgement(step: &StepView<'_>, verify: Option<&StepView<'_>>, reader: &Reader<'_>) -> Vec<MessageReport> {
    let Some(judgement) = reader.document::<Judgement>(step.result, "judgement") else { return vec![] };
    let seen = || {
        let seen = reader.document::<VerifyObservation>(verify?.result, "observation");
        seen.map(|seen| seen.findings)
    };
    match &judgement.verdict {
        Verdict::Fail(why) => {
            let findings = seen().unwrap_or_default();
            let said = |output: &str| {
                let of = judgement.diagnoses.iter().find(|found| found.output == output)?;
                Some(format!("`{output}`: {}", of.text))
            };
            let mut wrong: Vec<MessageReport> = findings
                .iter()
                .filter(|finding| !finding.kind.is_allowed())
                .map(|finding| of_finding(step, finding, Severity::Error, reader))
                .collect();
            // Other findings explain wrong values themselves.
            let unwritten = findings.iter().filter(|finding| !finding.kind.is_allowed()).zip(&mut wrong);
            for (finding, message) in unwritten.filter(|(finding, _)| finding.kind == FindingKind::Unwritten) {
                let said = finding.buffer.as_deref().and_then(said);
                message.message.extend(said.map(|said| format!("\n{said}")));
            }
            if wrong.is_empty() {
                let mut text = (reader.places)(step.id, why);
                let said = judgement.diagnoses.iter().filter_map(|found| said(&found.output));
                text.extend(said.map(|said| format!("\n{said}")));
                let explaining = findings.iter().filter(|finding| finding.kind.only_explains());
                text.extend(explaining.map(|finding| format!("\n{}", (reader.places)(step.id, &finding.message))));
                wrong.push(message(step, WRONG_VALUES, Severity::Error, text));
            }
            wrong
        }
        // Only a judgement that warns has findings that hardware allows.
        Verdict::Pass if step.notes.iter().any(|note| note.severity == Severity::Warning) => {
            let findings = seen().unwrap_or_default();
            let allowed = findings.iter().filter(|f| f.kind.is_allowed() && !f.kind.only_explains());
            allowed.map(|finding| of_finding(step, finding, Severity::Warning, reader)).collect()
        }
        Verdict::Unknown(Unknown::NotEmulated(what)) => {
            let place = (reader.first_place)(step.id, what).and_then(placed);
            let text = format!("not emulated: {}", (reader.places)(step.id, what));
            vec![MessageReport { place, ..message(step, NOT_EMULATED, Severity::Note, text) }]
        }
        _ => vec![],
    }
}

fn of_finding(step: &StepView<'_>, finding: &Finding, severity: Severity, reader: &Reader<'_>) -> MessageReport {
    let place = |line: &Option<(String, u32)>| (reader.place)(step.id, line.as_ref()?).and_then(placed);
    let text = (reader.places)(step.id, &finding.message);
    MessageReport {
        place: place(&finding.line),
        other_place: place(&finding.other_line),
        ..message(step, finding_code(finding.kind), severity, text)
    }
}

fn placed((file, line): (String, u32)) -> Option<SourcePlace> {
    in_package(SourcePlace { file, line, column: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_foundation::base::Digest;
    use kforge_types::record::params::OutputDiagnosis;
    use kforge_types::record::{Diagnosis, Note, StepResult, WrongPattern};

    fn labels(variant: &str) -> Labels {
        let part = |text: &str| Some(text.to_string());
        let (kernel, operator, target) = (part("k"), part("o"), part("cpu"));
        let (variant, shape) = (part(variant), part("big"));
        Labels { package: "p".into(), kernel, operator, target, variant, shape, ..Labels::default() }
    }

    fn result(output: &str, document: &impl Serialize, blobs: &mut HashMap<Digest, Vec<u8>>) -> StepResult {
        let bytes = serde_json::to_vec(document).unwrap();
        let digest = Digest::of(&bytes);
        blobs.insert(digest, bytes);
        StepResult {
            outputs: [(output.to_string(), digest)].into(),
            verdict: None,
            notes: vec![],
            summary: String::new(),
            duration_ms: 1,
        }
    }

    fn view<'a>(
        kind: StepKind,
        labels: &'a Labels,
        outcome: &'a Outcome,
        result: Option<&'a StepResult>,
    ) -> StepView<'a> {
        let notes = result.map_or(&[][..], |result| &result.notes);
        StepView { id: "p/k", kind, labels, outcome, result, notes, evidence: None }
    }

    /// The messages of these steps, where offsets are lines of `k.cu`.
    fn read(steps: &[StepView<'_>], blobs: &HashMap<Digest, Vec<u8>>) -> Vec<MessageReport> {
        let place = |_: &str, (file, line): &(String, u32)| match file.as_str() {
            "@pc" => Some(("k.cu".to_string(), *line)),
            _ => Some((file.clone(), *line)),
        };
        let reader = Reader {
            read: &|digest| blobs.get(digest).cloned(),
            places: &|_, text| text.replace("@{7}", "k.cu:7"),
            place: &place,
            first_place: &|_, text| text.contains("@{7}").then(|| ("k.cu".to_string(), 7)),
        };
        all(steps, &reader).remove("p").unwrap_or_default()
    }

    /// Code, file and line, text, number of steps.
    type Told<'m> = (&'m str, Option<(&'m str, u32)>, &'m str, u64);

    fn told(messages: &[MessageReport]) -> Vec<Told<'_>> {
        let mut all = vec![];
        for m in messages {
            let place = m.place.as_ref().map(|place| (place.file.as_str(), place.line));
            all.push((m.code.as_str(), place, m.message.as_str(), m.steps));
        }
        all
    }

    #[test]
    fn findings_of_a_failed_judgement_are_told_once_at_their_lines() {
        let mut blobs = HashMap::new();
        let race = |index: u32| Finding {
            line: Some(("@pc".into(), 12)),
            other_line: Some(("@pc".into(), 14)),
            ..Finding::new(FindingKind::Race, format!("race on `s`[{index}] at @{{7}}"))
        };
        let mut steps = vec![];
        let labels = [labels("A=1"), labels("A=2")];
        for (i, labels) in labels.iter().enumerate() {
            let seen = VerifyObservation {
                findings: vec![race(i as u32)],
                ..VerifyObservation::begun(true, 1, "check".into())
            };
            let judgement = Judgement::bare(Verdict::Fail("race".into()));
            let (seen, judged) =
                (result("observation", &seen, &mut blobs), result("judgement", &judgement, &mut blobs));
            steps.push((StepKind::Verify, labels, seen));
            steps.push((StepKind::Judge, labels, judged));
        }
        let views: Vec<_> =
            steps.iter().map(|(kind, labels, result)| view(*kind, labels, &Outcome::Fresh, Some(result))).collect();
        let messages = read(&views, &blobs);
        assert_eq!(told(&messages), [("verify.race", Some(("k.cu", 12)), "race on `s`[0] at k.cu:7", 2)]);
        assert_eq!(messages[0].other_place, Some(SourcePlace { file: "k.cu".into(), line: 14, column: None }));
        assert_eq!((messages[0].severity, messages[0].variant.as_deref()), (Severity::Error, Some("A=1")));
    }

    #[test]
    fn wrong_values_and_what_is_not_emulated_are_told_and_a_missing_device_is_not() {
        let mut blobs = HashMap::new();
        let labels = labels("");
        let seen = result("observation", &VerifyObservation::begun(true, 1, "check".into()), &mut blobs);
        let mut of = |verdict: Verdict| {
            let judged = result("judgement", &Judgement::bare(verdict), &mut blobs);
            let views = [
                view(StepKind::Verify, &labels, &Outcome::Fresh, Some(&seen)),
                view(StepKind::Judge, &labels, &Outcome::Fresh, Some(&judged)),
            ];
            read(&views, &blobs)
        };
        let wrong = of(Verdict::Fail("3 of 9 elements differ".into()));
        assert_eq!(told(&wrong), [("verify.values", None, "3 of 9 elements differ", 1)]);
        let unknown = of(Verdict::Unknown(Unknown::NotEmulated("a texture at @{7}".into())));
        let expected = ("verify.not-emulated", Some(("k.cu", 7)), "not emulated: a texture at k.cu:7", 1);
        assert_eq!((told(&unknown), unknown[0].severity), (vec![expected], Severity::Note));
        assert_eq!(of(Verdict::Unknown(Unknown::NoDevice("an H200".into()))), []);
        assert_eq!(of(Verdict::Pass), []);
    }

    #[test]
    fn wrong_values_of_one_kernel_are_told_once_though_they_differ_by_shape() {
        let mut blobs = HashMap::new();
        let labels = [labels("A=1"), labels("A=2")];
        let mut steps = vec![];
        for (got, labels) in ["1", "2"].into_iter().zip(&labels) {
            let seen = result("observation", &VerifyObservation::begun(true, 1, "check".into()), &mut blobs);
            let verdict = Verdict::Fail(format!("`y` is wrong: got {got}"));
            steps.push((StepKind::Verify, labels, seen));
            steps.push((StepKind::Judge, labels, result("judgement", &Judgement::bare(verdict), &mut blobs)));
        }
        let views: Vec<_> =
            steps.iter().map(|(kind, labels, result)| view(*kind, labels, &Outcome::Fresh, Some(result))).collect();
        let messages = read(&views, &blobs);
        assert_eq!(told(&messages), [("verify.values", None, "`y` is wrong: got 1", 2)]);
    }

    #[test]
    fn what_explains_wrong_values_follows_the_message_about_them() {
        let mut blobs = HashMap::new();
        let labels = labels("");
        let diagnosis = Diagnosis { pattern: WrongPattern::Negated, wrong: 9, explained: 9, whole: true };
        let diagnoses = vec![OutputDiagnosis { output: "y".into(), text: "all are odd".into(), diagnosis }];
        let mut of = |findings: Vec<Finding>| {
            let seen = VerifyObservation { findings, ..VerifyObservation::begun(true, 1, "check".into()) };
            let judgement =
                Judgement { diagnoses: diagnoses.clone(), ..Judgement::bare(Verdict::Fail("`y` is wrong".into())) };
            let (seen, judged) =
                (result("observation", &seen, &mut blobs), result("judgement", &judgement, &mut blobs));
            let views = [
                view(StepKind::Verify, &labels, &Outcome::Fresh, Some(&seen)),
                view(StepKind::Judge, &labels, &Outcome::Fresh, Some(&judged)),
            ];
            read(&views, &blobs).into_iter().map(|m| m.message).collect::<Vec<_>>()
        };
        assert_eq!(of(vec![]), ["`y` is wrong\n`y`: all are odd"]);
        let about = |kind, buffer: &str| Finding { buffer: Some(buffer.into()), ..Finding::new(kind, "found") };
        assert_eq!(of(vec![about(FindingKind::Unwritten, "y")]), ["found\n`y`: all are odd"]);
        assert_eq!(of(vec![about(FindingKind::Unwritten, "z")]), ["found"]);
        // A race explains wrong values itself.
        assert_eq!(of(vec![about(FindingKind::Race, "y")]), ["found"]);
    }

    #[test]
    fn a_compilers_errors_stand_for_the_failed_step_and_generated_sources_have_no_place() {
        let part = |file: &str, text: &str| ToolMessage {
            severity: Severity::Error,
            place: Some(SourcePlace { file: file.into(), line: 3, column: Some(5) }),
            message: text.into(),
        };
        let note = Note::new(Severity::Error, "compile.refused", "k.cu:3:5: error: no\n...");
        let outcome = Outcome::Failed("cannot compile `k.cu`".into());
        let labels = labels("A=1");
        let of = |parts: Vec<ToolMessage>| {
            let notes = [note.clone().of_parts(parts)];
            let step = StepView { notes: &notes, ..view(StepKind::Compile, &labels, &outcome, None) };
            read(&[step], &HashMap::new())
        };
        assert_eq!(told(&of(vec![part("k.cu", "no")])), [("compile.error", Some(("k.cu", 3)), "no", 1)]);
        assert_eq!(told(&of(vec![part("kforge-generated/k.cu", "no")])), [("compile.error", None, "no", 1)]);
        let bare = of(vec![]);
        let text = "cannot compile `k.cu`\nk.cu:3:5: error: no\n...";
        assert_eq!(told(&bare), [("compile.refused", None, text, 1)]);
        let step = StepView { notes: &[], ..view(StepKind::Compile, &labels, &outcome, None) };
        assert_eq!(told(&read(&[step], &HashMap::new())), [("compile.failed", None, "cannot compile `k.cu`", 1)]);
    }

    #[test]
    fn candidates_of_rounds_and_variants_for_comparison_say_nothing() {
        let mut blobs = HashMap::new();
        let judged = result("judgement", &Judgement::bare(Verdict::Fail("wrong".into())), &mut blobs);
        for other in
            [Labels { round: Some(1), ..labels("A=1") }, Labels { method: Some("memory.wide".into()), ..labels("A=1") }]
        {
            assert_eq!(read(&[view(StepKind::Judge, &other, &Outcome::Fresh, Some(&judged))], &blobs), []);
        }
    }

    #[test]
    fn codes_of_findings_are_the_names_in_documents() {
        assert_eq!(finding_code(FindingKind::OutOfBounds), "verify.out-of-bounds");
        assert_eq!(finding_code(FindingKind::Race), "verify.race");
    }
}
