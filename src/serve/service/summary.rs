//! From the report of a build to the result of an evaluation. Pure. Holdout shapes become one verdict; a text that reveals one of them is held back.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::progress::word;
use crate::api::{
    Cause, EvaluationResult, FindingReport, HoldoutReport, KernelResult, Measure, MessageResult, MessageSeverity,
    ShapeResult, TimeResult, VariantResult, VerdictWord,
};
use kforge_foundation::base::{Diagnostic, Severity};
use kforge_pipeline::optimize::holdout::HeldBack;
use kforge_pipeline::report::Report;
use kforge_pipeline::report::document::{KernelReport, ShapeReport, TargetReport, TimeReport};
use kforge_pipeline::report::failure::FailureReport;
use kforge_pipeline::report::messages::{COMPILE_ERROR, COMPILE_REFUSED, MessageReport};
use kforge_types::model::{Arch, Package, ShapeRole};
use kforge_types::record::{FindingKind, StepKind, Unknown, Verdict};

/// The most bytes of one text. A compiler can print without end.
const LONGEST: usize = 16 << 10;

/// The most messages of a result.
const MOST_MESSAGES: usize = 200;

/// In place of a text that would reveal a holdout shape.
const WITHHELD: &str = "(held back: it names a holdout shape)";

/// The reason of a failure at holdout shapes only.
const AT_HOLDOUT: &str = "wrong at a holdout shape";

/// The result of an evaluation, and whether it answers later requests with the same content.
pub(super) struct Summary {
    pub(super) result: EvaluationResult,
    pub(super) keeps: bool,
}

impl Summary {
    /// The same, without folders of the server, each with what is written in its place. Every text of the result is searched.
    pub(super) fn without_folders(&mut self, folders: &[(&str, &str)]) {
        let Ok(text) = serde_json::to_string(&self.result) else { return };
        let is_in =
            |folder: &str| serde_json::to_string(folder).is_ok_and(|quoted| text.contains(quoted.trim_matches('"')));
        if !folders.iter().any(|(folder, _)| is_in(folder)) {
            return;
        }
        fn walk(value: &mut Value, folders: &[(&str, &str)]) {
            match value {
                Value::String(text) => {
                    for (folder, place) in
                        folders.iter().filter(|(folder, _)| text.contains(folder)).collect::<Vec<_>>()
                    {
                        let below = if *place == "." { String::new() } else { format!("{place}/") };
                        *text = text.replace(&format!("{folder}/"), &below).replace(folder, place);
                    }
                }
                Value::Array(all) => all.iter_mut().for_each(|value| walk(value, folders)),
                Value::Object(all) => all.values_mut().for_each(|value| walk(value, folders)),
                _ => {}
            }
        }
        let Ok(mut value) = serde_json::from_str(&text) else { return };
        walk(&mut value, folders);
        if let Ok(result) = serde_json::from_value(value) {
            self.result = result;
        }
    }

    /// Changes where messages are. The reason of a candidate that is not accepted then says it as well.
    pub(super) fn name_fields(&mut self, name: impl Fn(&mut MessageResult)) {
        let EvaluationResult { messages, reason, cause, .. } = &mut self.result;
        messages.iter_mut().for_each(name);
        if *cause == Some(Cause::NotAccepted) && messages.iter().any(|message| message.field.is_some()) {
            let first = |message: &MessageResult| {
                let text = message.message.lines().next().unwrap_or_default().to_string();
                message.field.as_ref().map_or(text.clone(), |field| format!("{field}: {text}"))
            };
            *reason = Some(shortened(messages.iter().map(first).collect::<Vec<_>>().join("; ")));
        }
    }

    /// A result without a report.
    pub(super) fn without_report(cause: Cause, reason: String, messages: Vec<MessageResult>) -> Summary {
        let compiled = None;
        let result = result(VerdictWord::Unknown, Some((cause, shortened(reason))), compiled, vec![], messages);
        Summary { result, keeps: cause == Cause::NotAccepted }
    }

    /// The result of diagnostics that kept the build from starting.
    pub(super) fn refused(diagnostics: &[Diagnostic]) -> Summary {
        let errors = || diagnostics.iter().filter(|found| found.severity == Severity::Error);
        let reason = errors().map(|found| found.message.as_str()).collect::<Vec<_>>().join("; ");
        Summary::without_report(Cause::NotAccepted, reason, errors().map(of_diagnostic).collect())
    }

    /// The result of a build that ended.
    pub(super) fn of(report: &Report, packages: &[Package], measure: Measure) -> Summary {
        let view = View::of(packages);
        let mut kernels = vec![];
        let mut keeps = true;
        let mut worst: Option<(u8, Cause, String)> = None;
        let mut note = |rank: u8, cause: Cause, reason: &str| {
            if worst.as_ref().is_none_or(|(known, ..)| rank > *known) {
                worst = Some((rank, cause, reason.to_string()));
            }
        };
        let has_kernels =
            report.packages.iter().flat_map(|package| &package.kernels).any(|kernel| !kernel.targets.is_empty());
        // Nothing was compiled if there is nothing to compile.
        let mut compiled = has_kernels.then_some(true);
        for package in &report.packages {
            for kernel in &package.kernels {
                for target in &kernel.targets {
                    let of_kernel = package.messages.iter().filter(|m| m.kernel.as_ref() == Some(&kernel.name));
                    let is_refusal = |m: &MessageReport| m.code == COMPILE_ERROR || m.code == COMPILE_REFUSED;
                    let is_refused = of_kernel.into_iter().any(is_refusal);
                    let (of, found) = view.kernel(kernel, target, measure, is_refused);
                    let (cause, reason) = found.unzip();
                    match cause {
                        None => {}
                        Some(cause @ (Cause::NotCompiled | Cause::Wrong | Cause::NoProgress)) => {
                            note(2, cause, reason.as_deref().unwrap_or_default());
                        }
                        Some(cause) => note(1, cause, reason.as_deref().unwrap_or_default()),
                    }
                    if !not_compiled(target).is_empty() {
                        // What ended the compiler otherwise, such as a limit, says nothing of the source and may not do so again.
                        compiled = if is_refused { Some(false) } else { compiled.filter(|all| !all) };
                        keeps &= is_refused;
                    }
                    match cause {
                        Some(Cause::NotCompiled | Cause::Wrong) => {}
                        // A run that took too long may end in time another time.
                        Some(Cause::NoProgress) => keeps = false,
                        Some(_) => keeps = keeps && is_lasting(target),
                        None => keeps = keeps && is_timed(target, measure),
                    }
                    if cause == Some(Cause::Unavailable)
                        && target.unavailable.iter().any(|(kind, ..)| kind == StepKind::Compile.name())
                    {
                        compiled = compiled.filter(|all| !all);
                    }
                    kernels.push(of);
                }
            }
        }
        if kernels.is_empty() {
            note(
                1,
                Cause::NotAccepted,
                "the candidate has no kernel that is evaluated: its operator needs at least one shape",
            );
        }
        let messages = report.packages.iter().flat_map(|package| &package.messages);
        let messages: Vec<MessageResult> = messages.filter_map(|m| view.message(m)).take(MOST_MESSAGES).collect();
        let verdict = match &worst {
            None => VerdictWord::Pass,
            Some((2, ..)) => VerdictWord::Fail,
            Some(_) => VerdictWord::Unknown,
        };
        let why = worst.map(|(_, cause, reason)| (cause, reason));
        Summary { result: result(verdict, why, compiled, kernels, messages), keeps }
    }
}

fn result(
    verdict: VerdictWord,
    why: Option<(Cause, String)>,
    compiled: Option<bool>,
    kernels: Vec<KernelResult>,
    messages: Vec<MessageResult>,
) -> EvaluationResult {
    let (cause, reason) = why.unzip();
    let kforge = env!("CARGO_PKG_VERSION").to_string();
    EvaluationResult { verdict, reason, cause, compiled, kernels, messages, seconds: 0.0, kforge }
}

/// Whether an unknown verdict would be the same again.
fn is_lasting(target: &TargetReport) -> bool {
    let lasts = |shape: &ShapeReport| match &shape.verdict {
        Verdict::Pass | Verdict::Fail(_) => true,
        Verdict::Unknown(why) => {
            matches!(why, Unknown::NotEmulated(_) | Unknown::TooLarge(_) | Unknown::Indecisive(_))
        }
    };
    target.unavailable.is_empty() && target.failed.is_empty() && target.shapes.iter().all(lasts)
}

/// Whether everything that was to be timed was.
fn is_timed(target: &TargetReport, measure: Measure) -> bool {
    measure == Measure::Verify || target.unavailable.is_empty() && target.failed.is_empty()
}

/// A text of a bounded length.
fn shortened(mut text: String) -> String {
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("\n...");
    }
    text
}

fn severity(severity: Severity) -> MessageSeverity {
    match severity {
        Severity::Note => MessageSeverity::Note,
        Severity::Warning => MessageSeverity::Warning,
        Severity::Error => MessageSeverity::Error,
    }
}

fn of_diagnostic(found: &Diagnostic) -> MessageResult {
    let place = found.position();
    let expected = found.expected.as_ref().map(|text| format!("expected {text}"));
    let lines =
        [found.message.clone()].into_iter().chain(expected).chain(found.notes.clone()).chain(found.hints.clone());
    MessageResult {
        code: found.code.to_string(),
        severity: severity(found.severity),
        message: shortened(lines.collect::<Vec<_>>().join("\n")),
        field: None,
        file: place.map(|(file, ..)| base_name(&file.name)),
        line: place.and_then(|(_, line, _)| u32::try_from(line).ok()),
        column: place.and_then(|(.., column)| u32::try_from(column).ok()),
        kernel: None,
        shape: None,
    }
}

/// The name of a file without the folders of the server.
fn base_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_string()
}

/// How results are shown: it follows from the shapes of packages.
struct View {
    /// The operators with a bench shape.
    timed: BTreeSet<String>,
    /// The targets that are the processor.
    processors: BTreeSet<String>,
    /// The kernels in PyTorch, of which calls are timed.
    called: BTreeSet<String>,
    /// The holdout shapes of each operator.
    holdout: BTreeMap<String, BTreeSet<String>>,
    held_back: HeldBack,
}

impl View {
    fn of(packages: &[Package]) -> View {
        let operators = || packages.iter().flat_map(|package| &package.operators);
        let names = |operator: &kforge_types::model::Operator| -> BTreeSet<String> {
            let held = operator.shapes.iter().filter(|shape| shape.role == ShapeRole::Holdout);
            held.map(|shape| shape.name.clone()).collect()
        };
        let holdout = operators().map(|operator| (operator.name.clone(), names(operator))).collect();
        let is_timed = |operator: &&kforge_types::model::Operator| {
            operator.shapes.iter().any(|shape| shape.role == ShapeRole::Bench)
        };
        let timed = operators().filter(is_timed).map(|operator| operator.name.clone()).collect();
        let targets = packages.iter().flat_map(|package| &package.targets);
        let processors = targets.filter(|(_, target)| target.arch == Arch::Cpu).map(|(name, _)| name.clone()).collect();
        let kernels = packages.iter().flat_map(|package| &package.kernels);
        let called = kernels.filter(|kernel| kernel.torch.is_some()).map(|kernel| kernel.name.clone()).collect();
        View { timed, processors, called, holdout, held_back: HeldBack::of(operators()) }
    }

    /// A text without what holdout shapes are.
    fn text(&self, text: &str) -> String {
        if self.held_back.is_in(text) { WITHHELD.into() } else { shortened(text.to_string()) }
    }

    /// A kernel on a target, and why it is no pass.
    fn kernel(
        &self,
        kernel: &KernelReport,
        target: &TargetReport,
        measure: Measure,
        is_refused: bool,
    ) -> (KernelResult, Option<(Cause, String)>) {
        let not_compiled = if is_refused { not_compiled(target) } else { vec![] };
        let none = BTreeSet::new();
        let holdout = self.holdout.get(&kernel.operator).unwrap_or(&none);
        let mut variants: BTreeMap<&str, Vec<&ShapeReport>> = BTreeMap::new();
        for shape in &target.shapes {
            variants.entry(&shape.variant).or_default().push(shape);
        }
        let of: Vec<(VariantResult, Option<(Cause, String)>)> = variants
            .into_iter()
            .map(|(name, shapes)| self.variant(name, &shapes, holdout, (target, &not_compiled)))
            .collect();
        let not_compiled = not_compiled.first();
        let decided = |wanted: VerdictWord| of.iter().find(|(variant, _)| variant.verdict == wanted);
        let unavailable = target.unavailable.iter().find(|(kind, ..)| decides(kind));
        let failed = target.failed.iter().find(|(step, _)| !self.held_back.is_in(step)).map(|(_, why)| why.as_str());
        let found = match (decided(VerdictWord::Pass), decided(VerdictWord::Unknown)) {
            (Some(_), _) => None,
            (None, Some((_, why))) => {
                Some((VerdictWord::Unknown, why.clone().unwrap_or((Cause::Undecided, String::new()))))
            }
            // What does not compile fails; a variant that was not tried because another one failed is none.
            (None, None) if not_compiled.is_some() => {
                let text = not_compiled.map(|failure| self.failure(failure, target)).unwrap_or_default();
                Some((VerdictWord::Fail, (Cause::NotCompiled, text)))
            }
            (None, None) => match (decided(VerdictWord::Fail), unavailable, failed) {
                (Some((_, why)), ..) => Some((VerdictWord::Fail, why.clone().unwrap_or((Cause::Wrong, String::new())))),
                (None, Some((_, _, why)), _) => Some((VerdictWord::Unknown, (Cause::Unavailable, self.text(why)))),
                (None, None, Some(why)) => Some((VerdictWord::Unknown, (Cause::Undecided, self.text(why)))),
                (None, None, None) => Some((VerdictWord::Unknown, (Cause::Undecided, "nothing was verified".into()))),
            },
        };
        let champions = target.champions.iter().filter_map(|champion| {
            let shapes = champion.shapes.iter().filter(|shape| !holdout.contains(*shape)).cloned().collect();
            Some((champion.variant.clone()?, shapes))
        });
        let is_built = measure == Measure::Build;
        let verdict = found.as_ref().map_or(VerdictWord::Pass, |(verdict, _)| *verdict);
        let result = KernelResult {
            kernel: kernel.name.clone(),
            operator: kernel.operator.clone(),
            target: target.target.clone(),
            types: target.types.clone(),
            verdict,
            reason: found.as_ref().map(|(_, (_, reason))| reason.clone()),
            variants: of.into_iter().map(|(variant, _)| variant).collect(),
            champions: champions.filter(|_| is_built).collect(),
            observed_on: target.observed_on.clone(),
            baselines: target.baselines.clone(),
            calls: target.calls.clone(),
            unavailable: target.unavailable.iter().map(|(kind, n, why)| (kind.clone(), *n, self.text(why))).collect(),
            untimed: self.untimed(kernel, target, measure, verdict),
        };
        (result, found.map(|(_, why)| why))
    }

    /// Why a kernel that was to be timed has no times; none if it has some.
    fn untimed(
        &self,
        kernel: &KernelReport,
        target: &TargetReport,
        measure: Measure,
        verdict: VerdictWord,
    ) -> Option<String> {
        if measure == Measure::Verify || !target.times.is_empty() || !target.calls.is_empty() {
            return None;
        }
        let times = |kind: &str| [StepKind::Bench, StepKind::Calls].iter().any(|timing| timing.name() == kind);
        let unavailable = target.unavailable.iter().find(|(kind, ..)| times(kind));
        let is_of = |of: &BTreeSet<String>, name: &String| of.contains(name);
        Some(match (verdict, unavailable) {
            (VerdictWord::Fail, _) => "only variants that pass are timed".into(),
            _ if is_of(&self.processors, &target.target) => {
                "only a device is timed, and this target is the processor: name one of a GPU, such as `sm_90a`".into()
            }
            _ if target.host.is_some() => "a kernel with a launcher of its own is not timed".into(),
            _ if !is_of(&self.timed, &kernel.operator) => "the operator has no shape with the role `bench`".into(),
            _ if measure == Measure::Bench && is_of(&self.called, &kernel.name) => {
                "of a kernel in PyTorch, only the measure `build` times calls".into()
            }
            (_, Some((_, _, why))) => self.text(why),
            (VerdictWord::Unknown, None) => "only variants that pass are timed".into(),
            (VerdictWord::Pass, None) => match target.failures().iter().find(|failure| times(&failure.kind)) {
                Some(failure) => self.failure(failure, target),
                None => "no time was measured".into(),
            },
        })
    }

    /// The compiler's words: the first error with its place, then the rest.
    fn failure(&self, failure: &FailureReport, target: &TargetReport) -> String {
        let rest: String = failure.rest(target).map(|line| format!("\n{line}")).collect();
        self.text(&format!("{}{rest}", failure.line()))
    }

    fn variant(
        &self,
        name: &str,
        shapes: &[&ShapeReport],
        holdout: &BTreeSet<String>,
        (target, not_compiled): (&TargetReport, &[FailureReport]),
    ) -> (VariantResult, Option<(Cause, String)>) {
        let (held, shown): (Vec<&&ShapeReport>, Vec<&&ShapeReport>) =
            shapes.iter().partition(|shape| holdout.contains(&shape.shape));
        let failure = not_compiled.iter().find(|failure| failure.variants.iter().any(|label| label == name));
        let held = together(held.iter().map(|shape| word(&shape.verdict)));
        let results: Vec<ShapeResult> = shown.iter().map(|shape| self.shape(shape, target)).collect();
        let verdict = together(results.iter().map(|shape| shape.verdict).chain(held)).unwrap_or(VerdictWord::Unknown);
        let first = |wanted: VerdictWord| shown.iter().zip(&results).find(|(_, result)| result.verdict == wanted);
        let why = match verdict {
            VerdictWord::Pass => None,
            VerdictWord::Fail => {
                Some(first(VerdictWord::Fail).map_or((Cause::Wrong, AT_HOLDOUT.into()), |(_, result)| {
                    let hangs =
                        result.finding.as_ref().is_some_and(|found| found.kind == Some(FindingKind::NoProgress));
                    let cause = if hangs { Cause::NoProgress } else { Cause::Wrong };
                    (cause, format!("wrong at {}: {}", result.shape, result.reason.as_deref().unwrap_or_default()))
                }))
            }
            VerdictWord::Unknown => Some(
                first(VerdictWord::Unknown)
                    .map_or((Cause::Undecided, "unknown at a holdout shape".into()), |(shape, result)| {
                        (cause_of(shape), result.reason.clone().unwrap_or_default())
                    }),
            ),
        };
        let holdout = held.map(|verdict| HoldoutReport { verdict });
        if let Some(failure) = failure {
            let why = (Cause::NotCompiled, self.failure(failure, target));
            return (
                VariantResult { variant: name.into(), verdict: VerdictWord::Fail, shapes: results, holdout },
                Some(why),
            );
        }
        (VariantResult { variant: name.into(), verdict, shapes: results, holdout }, why)
    }

    fn shape(&self, shape: &ShapeReport, target: &TargetReport) -> ShapeResult {
        // The step that prevents a verdict knows why.
        let prevented =
            shape.prevented_by.as_ref().and_then(|step| target.failed.iter().find(|(failed, _)| failed == step));
        let reason = match &shape.verdict {
            Verdict::Pass => None,
            Verdict::Fail(why) => Some(self.text(why)),
            Verdict::Unknown(why) => Some(self.text(&prevented.map_or(why.to_string(), |(_, why)| why.clone()))),
        };
        let explains = !shape.explanation.is_empty() && !matches!(shape.verdict, Verdict::Pass);
        let time = target.times.iter().find(|time| time.shape == shape.shape && time.variant == shape.variant);
        ShapeResult {
            shape: shape.shape.clone(),
            verdict: word(&shape.verdict),
            reason,
            finding: explains
                .then(|| FindingReport { kind: shape.finding, explanation: self.text(&shape.explanation) }),
            worst: shape.worst.filter(|worst| worst.is_finite()),
            emulated: shape.emulated,
            confirmed: shape.confirmed,
            time: time.map(time_of),
        }
    }

    /// A message; none if it is about a holdout shape.
    fn message(&self, message: &MessageReport) -> Option<MessageResult> {
        let operator = message.operator.as_ref().and_then(|name| self.holdout.get(name));
        let is_held = |shape: &String| match operator {
            Some(held) => held.contains(shape),
            None => self.holdout.values().any(|held| held.contains(shape)),
        };
        if message.shape.as_ref().is_some_and(is_held) || self.held_back.is_in(&message.message) {
            return None;
        }
        Some(MessageResult {
            code: message.code.clone(),
            severity: severity(message.severity),
            message: shortened(message.message.clone()),
            field: None,
            file: message.place.as_ref().map(|place| place.file.clone()),
            line: message.place.as_ref().map(|place| place.line),
            column: message.place.as_ref().and_then(|place| place.column),
            kernel: message.kernel.clone(),
            shape: message.shape.clone(),
        })
    }
}

/// Whether the verdict of a kernel needs steps of this kind.
fn decides(kind: &str) -> bool {
    [StepKind::Generate, StepKind::Compile, StepKind::Oracle, StepKind::Verify]
        .iter()
        .any(|needed| needed.name() == kind)
}

fn cause_of(shape: &ShapeReport) -> Cause {
    match &shape.verdict {
        Verdict::Unknown(Unknown::NoDevice(_)) => Cause::Unavailable,
        Verdict::Unknown(Unknown::Missing(_)) if shape.prevented_by.is_none() => Cause::Unavailable,
        _ => Cause::Undecided,
    }
}

/// Why compilations of variants failed.
fn not_compiled(target: &TargetReport) -> Vec<FailureReport> {
    let compile = StepKind::Compile.name();
    target.failures().into_iter().filter(|failure| failure.kind == compile).collect()
}

/// Fail if one fails, otherwise unknown if one is unknown, otherwise pass; none of no verdicts.
fn together(all: impl Iterator<Item = VerdictWord>) -> Option<VerdictWord> {
    all.max_by_key(|verdict| match verdict {
        VerdictWord::Pass => 0,
        VerdictWord::Unknown => 1,
        VerdictWord::Fail => 2,
    })
}

fn time_of(time: &TimeReport) -> TimeResult {
    let interval = |hot| time.spread(hot).and_then(|spread| spread.interval_ns);
    TimeResult {
        cold_ns: time.cold_ns,
        cold_interval_ns: interval(false),
        hot_ns: time.hot_ns,
        hot_interval_ns: interval(true),
        device: time.seen.as_ref().map(|seen| seen.device.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_foundation::base::SourceFile;
    use kforge_types::model::{inherit, parse};

    /// Why the kernel `k` of a package has no times on a target, which reports this.
    fn untimed(kernel: &str, target: Value, measure: Measure) -> Option<String> {
        let text = format!(
            "[package]\nname = \"p\"\n[targets.here]\narch = \"cpu\"\n[targets.h]\narch = \"sm_90a\"\n[operator.o]\ndims = [\"n\"]\n\
             inputs.x = {{ dtype = \"f32\", shape = [\"n\"] }}\noutputs.y = {{ dtype = \"f32\", shape = [\"n\"] }}\n\
             reference = {{ builtin = \"elementwise\", y = \"2 * x\" }}\ntolerance = {{ atol = 1e-6, rtol = 1e-6 }}\n\
             shapes.s = {{ n = 70, role = \"bench\" }}\n[kernel.k]\noperator = \"o\"\n{kernel}\n"
        );
        let file = SourceFile { name: "kernel.toml".into(), text: text.as_str().into() };
        let (manifest, found) = parse(&std::sync::Arc::new(file));
        assert!(found.is_empty(), "{found:?}");
        let (package, found) = inherit(&manifest.unwrap(), None);
        assert!(found.is_empty(), "{found:?}");
        let package = package.unwrap();
        let shape = serde_json::json!({ "shape": "s", "variant": "", "verdict": "pass", "emulated": false, "worst": null,
            "explanation": "" });
        let mut report = serde_json::json!({ "target": "h", "types": "", "champions": [], "shapes": [shape], "variants": [1, 1, 0],
            "machine": [], "methods": [], "unavailable": [], "failed": [] });
        report.as_object_mut().unwrap().extend(target.as_object().unwrap().clone());
        let mut of = kforge_pipeline::report::document::PackageReport { name: "p".into(), ..Default::default() };
        let target = serde_json::from_value(report).unwrap();
        of.kernels = vec![KernelReport { name: "k".into(), operator: "o".into(), targets: vec![target] }];
        let report = Report { packages: vec![of], ..Report::default() };
        let result = Summary::of(&report, &[package], measure).result;
        assert_eq!(result.verdict, VerdictWord::Pass);
        result.kernels[0].untimed.clone()
    }

    #[test]
    fn why_nothing_was_timed_follows_from_the_target_the_language_and_what_steps_said() {
        let cuda = "source = \"k.cu\"\nlaunch = [{ entry = \"k\", grid = [\"1\"], block = [\"64\"], args = [\"x\", \"y\", \"n\"] }]";
        let torch = "language = \"torch\"\nsource = \"k.py::k\"";
        let of = |kernel, target, measure| untimed(kernel, target, measure).unwrap_or_default();
        let (bench, build) = (Measure::Bench, Measure::Build);
        let nothing = || serde_json::json!({});
        // The shapes need not be emulated on the processor.
        for kernel in [cuda, torch] {
            let here = of(kernel, serde_json::json!({ "target": "here" }), bench);
            assert!(here.starts_with("only a device is timed, and this target is the processor"), "{here}");
        }
        assert_eq!(of(torch, nothing(), bench), "of a kernel in PyTorch, only the measure `build` times calls");
        for kind in ["bench", "calls"] {
            let none = serde_json::json!({ "unavailable": [[kind, 1, "no device"]] });
            assert_eq!(of(if kind == "calls" { torch } else { cuda }, none, build), "no device");
            let failure = serde_json::json!({ "kind": kind, "message": "the worker was killed", "steps": ["a"] });
            let failed = serde_json::json!({ "failed": [["a", "the worker was killed"]], "failures": [failure] });
            assert_eq!(of(cuda, failed, bench), format!("{kind}: the worker was killed"));
        }
        // What failed is no timing.
        let other = serde_json::json!({ "kind": "pairs", "message": "no", "steps": ["a"] });
        let other = serde_json::json!({ "failed": [["a", "no"]], "failures": [other] });
        assert_eq!(of(cuda, other, bench), "no time was measured");
        assert_eq!(
            of(cuda, serde_json::json!({ "host": "launch.cu::run" }), bench),
            "a kernel with a launcher of its own is not timed"
        );
        assert_eq!(untimed(cuda, nothing(), Measure::Verify), None);
    }

    #[test]
    fn no_text_of_a_result_names_folders_of_the_server() {
        let text = |what: &str| {
            format!("{what} in /srv/home/serve/work/3/src/k.cu and /srv/home/serve/work/3, by /srv/home/tools")
        };
        let shape = serde_json::json!({ "shape": "a", "verdict": "fail", "emulated": true, "confirmed": false,
            "reason": text("reason"), "finding": { "explanation": text("finding") } });
        let kernel = serde_json::json!({ "kernel": "k", "operator": "o", "target": "cpu", "verdict": "fail", "reason": text("kernel"),
            "unavailable": [["bench", 1, text("unavailable")]],
            "variants": [{ "variant": "", "verdict": "fail", "shapes": [shape] }] });
        let result = serde_json::json!({ "verdict": "fail", "reason": text("all"), "kernels": [kernel], "seconds": 0.1, "kforge": "0",
            "messages": [{ "code": "c", "severity": "error", "message": text("message") }] });
        let mut summary = Summary { result: serde_json::from_value(result).unwrap(), keeps: true };
        summary.without_folders(&[("/srv/home/serve/work/3", "."), ("/srv/home", "$KFORGE_HOME")]);
        let after = serde_json::to_string(&summary.result).unwrap();
        assert!(!after.contains("/srv"), "{after}");
        assert_eq!(after.matches(" in src/k.cu and ., by $KFORGE_HOME/tools").count(), 6, "{after}");
    }
}
