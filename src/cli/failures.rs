//! Reports what went wrong with a step: once, in full, with the place to fix it and the command that runs only this step again. A failure that recurs for the
//! same reason in another variant or at another shape is counted, but not reported again. Knows steps and their manifests; decides no verdict.

mod deferred;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use self::deferred::{Held, ordered};
use super::args::Global;
use super::console::Console;
use super::context::command;
use super::words::reason;
use kforge_foundation::base::{Diagnostic, Severity, count};
use kforge_ops::build::is_doubt;
use kforge_pipeline::report::arguments::Arguments;
use kforge_types::model::{Kernel, Package, TuneValue, Variant};
use kforge_types::record::event::{Labels, StepFinished};
use kforge_types::record::{LaunchField, Note, Outcome, StepKind, Verdict};

/// The most lines of a note that are shown for a failure.
const MOST_LINES: usize = 12;

/// What was reported for one group of failures. A group is one kind of step of one kernel on one target.
#[derive(Default)]
struct Group {
    /// Each reason, without the parts that differ between variants, and how often it recurred.
    reasons: Vec<(String, u64)>,
}

/// What compilers warned about in the variants of a kernel.
#[derive(Default)]
struct Warned {
    /// Each warning: its place and its text, without the parts that differ between variants.
    said: BTreeSet<String>,
    /// The variants.
    variants: BTreeSet<String>,
    /// Whether a warning was not printed again.
    is_repeated: bool,
}

/// Reports steps as they end.
pub(super) struct Teller<'a> {
    console: &'a Console,
    global: &'a Global,
    packages: HashMap<&'a str, &'a Package>,
    /// The names of the arguments of steps that have launches, by what the steps are about. Empty unless they are shown.
    launched: HashMap<Launched, Arguments>,
    groups: BTreeMap<(String, &'static str), Group>,
    /// Warnings about kernels that passed: package, kernel with target, and the text of the warning.
    doubted: BTreeSet<(String, String, String)>,
    /// Warnings of compilers, by package and kernel.
    warned: BTreeMap<(String, String), Warned>,
    /// Whether the build is one of several, so that more is tried after it.
    goes_on: bool,
    /// Judgements that are not reported yet.
    held: Held,
}

impl<'a> Teller<'a> {
    /// Creates the reporter for a build of these packages.
    pub(super) fn new(console: &'a Console, global: &'a Global, packages: impl Iterator<Item = &'a Package>) -> Self {
        let packages = packages.map(|p| (p.name.as_str(), p)).collect();
        Teller {
            console,
            global,
            packages,
            launched: HashMap::new(),
            groups: BTreeMap::new(),
            doubted: BTreeSet::new(),
            warned: BTreeMap::new(),
            goes_on: false,
            held: Held::default(),
        }
    }

    /// The same, for a build after which more is tried.
    pub(super) fn going_on(self, goes_on: bool) -> Self {
        Teller { goes_on, ..self }
    }

    /// The same, for a build of these steps. If a variant fails at several shapes, the most informative failure is reported first.
    pub(super) fn awaiting<'n>(self, steps: impl Iterator<Item = (StepKind, &'n Labels)>) -> Self {
        Teller { held: Held::awaiting(steps), ..self }
    }

    /// The same, for a build of these steps, each with its parameters. With `-v`, reasons name the arguments of launches; a language that leaves arguments out has
    /// other positions in each step.
    pub(super) fn naming<'n>(mut self, steps: impl Iterator<Item = (&'n Labels, &'n Value)>) -> Self {
        if self.console.verbose() {
            self.launched = launched(&self.packages, steps);
        }
        self
    }

    /// Reports what went wrong with a step, if anything did: at once, or when the other shapes of its variant are judged. With `-v`, also reports why the step
    /// ran.
    pub(super) fn tell(&mut self, step: &StepFinished) {
        let due = self.held.ended(step);
        self.tell_all(due);
    }

    fn tell_all(&mut self, steps: Vec<StepFinished>) {
        ordered(steps, &self.packages).iter().for_each(|step| self.tell_of(step));
    }

    /// The names of the arguments of a step's launches; those of its kernel if the plan began without the step.
    fn arguments(&self, labels: &Labels) -> Arguments {
        let of_step = about(labels).and_then(|about| self.launched.get(&about)).cloned();
        of_step.or_else(|| kernel_of(&self.packages, labels).map(Arguments::of)).unwrap_or_default()
    }

    fn tell_of(&mut self, step: &StepFinished) {
        let console = self.console;
        if console.verbose()
            && let Some(why) = &step.why
        {
            console.status("Because", &format!("{}: {}", step.id, reason(why, &self.arguments(&step.labels))));
        }
        // A kernel that exists only for comparison may be wrong, and code need not show a method; the report covers both.
        let compared = step.kind == StepKind::Match || step.labels.method.is_some();
        // A candidate of a round may be wrong, too.
        if step.labels.round.is_some() && !matches!(step.outcome, Outcome::Failed(_)) && !console.verbose() {
            return;
        }
        // A kernel with rounds to come may have no champion yet, and earlier turns have reported fresh results.
        if self.goes_on && (step.kind == StepKind::Select || step.outcome == Outcome::Fresh) {
            return;
        }
        match (&step.outcome, &step.verdict) {
            (Outcome::Failed(message), _) => self.failure(step, &format!("{} failed: {message}", step.id), message),
            (Outcome::Skipped(_), _) if step.interrupted => {}
            (_, Some(Verdict::Fail(why))) if !compared => self.failure(step, &format!("{}: {why}", step.id), why),
            _ => {
                let loud = |severity: Severity| {
                    (severity == Severity::Error && !compared)
                        || (severity == Severity::Warning && step.outcome == Outcome::Executed)
                        || console.verbose()
                };
                // Like a compiler's warning, what makes an operator indecisive, and a reference in low precision, is repeated until the manifest changes.
                let of_operator = matches!(step.kind, StepKind::Calibrate | StepKind::Oracle);
                let warns = |note: &Note| of_operator && note.severity == Severity::Warning;
                for note in step.notes.iter().filter(|n| warns(n)) {
                    console.warn(&format!("{}: {}", step.id, note.message.replace('\n', "\n  ")));
                }
                if step.kind == StepKind::Judge && !compared {
                    self.doubts(step);
                }
                // The report says why there is no champion.
                let shown = step.kind != StepKind::Select || console.verbose();
                for note in step.notes.iter().filter(|n| shown && loud(n.severity) && !is_doubt(n) && !warns(n)) {
                    if !self.is_repeated(step, note) {
                        console.err(&indented(&note.message));
                    }
                }
            }
        }
    }

    /// Warns about a likely mistake of a kernel that passed, once per kernel and target. Like a compiler's warning, it is repeated if an earlier build found
    /// it.
    fn doubts(&mut self, step: &StepFinished) {
        let labels = &step.labels;
        let seat = [&labels.kernel, &labels.target].map(|part| part.clone().unwrap_or_default()).join("/");
        for note in step.notes.iter().filter(|note| is_doubt(note)) {
            let first = note.message.lines().next().unwrap_or_default();
            let text = NUMBER.replace_all(first, "0").into_owned();
            if self.doubted.insert((labels.package.clone(), seat.clone(), text)) || self.console.verbose() {
                self.console.warn(&format!("{}: {}", step.id, note.message.replace('\n', "\n  ")));
            }
        }
    }

    /// Whether a compiler said the same about another variant of the kernel, so that it is only counted.
    fn is_repeated(&mut self, step: &StepFinished, note: &Note) -> bool {
        if step.kind != StepKind::Compile || self.console.verbose() {
            return false;
        }
        let [kernel, variant] =
            [&step.labels.kernel, &step.labels.variant].map(|part| part.clone().unwrap_or_default());
        let warned = self.warned.entry((step.labels.package.clone(), kernel)).or_default();
        warned.variants.insert(variant);
        let before = warned.said.len();
        warned.said.extend(warnings(note));
        let is_repeated = warned.said.len() == before;
        warned.is_repeated |= is_repeated;
        is_repeated
    }

    /// Reports the judgements that are still held, and how many more steps failed for reasons that were already reported.
    pub(super) fn rest(&mut self) {
        let left = self.held.left();
        self.tell_all(left);
        let more: u64 = self.groups.values().flat_map(|g| &g.reasons).map(|r| r.1).sum();
        let steps = if more == 1 { "step" } else { "steps" };
        if more > 0 {
            self.console.fitted(&format!("{more} more {steps} failed for the same reasons; -v prints each\n"));
        }
        for ((package, kernel), warned) in self.warned.iter().filter(|(_, warned)| warned.is_repeated) {
            let variants = count(warned.variants.len() as u64, "variant");
            self.console.fitted(&format!(
                "the compiler warned about {variants} of {package}/{kernel}; a log that adds no warning is left out, -v prints all\n"
            ));
        }
    }

    fn failure(&mut self, step: &StepFinished, headline: &str, why: &str) {
        let console = self.console;
        let labels = &step.labels;
        let owner = labels.kernel.as_ref().or(labels.operator.as_ref()).cloned().unwrap_or_default();
        let target = labels.target.clone().unwrap_or_default();
        // A problem of the disk affects all steps alike and belongs to no kernel.
        let seat = match step.trouble {
            Some(_) => (String::new(), ""),
            None => (format!("{}/{owner}/{target}", labels.package), step.kind.name()),
        };
        let group = self.groups.entry(seat).or_default();
        let reason = step.trouble.map_or_else(|| general(step, why), |trouble| trouble.help().to_string());
        if let Some(known) = group.reasons.iter_mut().find(|r| r.0 == reason).filter(|_| !console.verbose()) {
            known.1 += 1;
            return;
        }
        group.reasons.push((reason, 0));
        let first = group.reasons.len() == 1 || console.verbose();
        let place = self.packages.get(labels.package.as_str()).and_then(|package| located(package, step, why));
        match place {
            Some(diagnostic) => console.diagnostic(&Diagnostic { message: headline.to_string(), ..diagnostic }),
            None => console.error(headline),
        }
        // The first failure of a kernel is reported in full; later ones likely have the same cause.
        if first {
            for note in &step.notes {
                let text = unsaid(note, why);
                let bounded = step.kind != StepKind::Compile && !console.verbose();
                let text = indented(&if bounded { short(&text) } else { text });
                // A compiler formats its own output.
                if step.kind == StepKind::Compile { console.err(&text) } else { console.fitted(&text) }
            }
        }
        console.err(&format!("  to run only this step again: {}\n", command(self.global, &["run", &step.id])));
    }
}

/// The warnings of a note, each without the parts that differ between variants.
fn warnings(note: &Note) -> Vec<String> {
    let of = |text: &str| NUMBER.replace_all(text, "0").into_owned();
    match note.parts.as_slice() {
        // Without places, only the same text is the same warning.
        [] => vec![note.message.clone()],
        parts => parts.iter().map(|part| format!("{:?} {}", part.place, of(&part.message))).collect(),
    }
}

/// What a step with launches is about: package, kernel, target, variant, shape, and the method that is turned off. All steps about it have the same launches.
type Launched = [String; 6];

fn about(labels: &Labels) -> Option<Launched> {
    let Labels { package, kernel, target, variant, shape, method, .. } = labels;
    let method = method.clone().unwrap_or_default();
    Some([package.clone(), kernel.clone()?, target.clone()?, variant.clone()?, shape.clone()?, method])
}

/// The kernel that a step is about.
fn kernel_of<'a>(packages: &HashMap<&'a str, &'a Package>, labels: &Labels) -> Option<&'a Kernel> {
    packages.get(labels.package.as_str())?.kernel(labels.kernel.as_deref()?)
}

/// The names of the arguments of steps that have launches.
fn launched<'n>(
    packages: &HashMap<&str, &Package>,
    steps: impl Iterator<Item = (&'n Labels, &'n Value)>,
) -> HashMap<Launched, Arguments> {
    let mut all = HashMap::new();
    for (labels, params) in steps.filter(|(_, params)| params.get("launches").is_some()) {
        let Some((about, kernel)) = about(labels).zip(kernel_of(packages, labels)) else { continue };
        all.entry(about).or_insert_with(|| Arguments::of_step(kernel, params));
    }
    all
}

/// The first lines of a note; the rest is counted.
fn short(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= MOST_LINES {
        return text.to_string();
    }
    let rest = lines.len() - (MOST_LINES - 1);
    format!("{}\nand {rest} lines more, which -v shows", lines[..MOST_LINES - 1].join("\n"))
}

/// A reason without the values in which variants and shapes differ, so that the same mistake gives the same text.
fn general(step: &StepFinished, why: &str) -> String {
    let notes: Vec<&str> = step.notes.iter().map(|n| n.message.as_str()).collect();
    // The notes of a wrong result hold its values, which say no more about the mistake.
    let text = if matches!(step.outcome, Outcome::Failed(_)) {
        format!("{why}\n{}", notes.join("\n"))
    } else {
        why.to_string()
    };
    NUMBER.replace_all(&text, "0").into_owned()
}

/// A number as it is written in verdicts and messages.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"-?\b[0-9]+(\.[0-9]+)?(e-?[0-9]+)?\b|-?\binf\b").expect("BUG: an expression that is always the same")
});

/// A note without its first line if that repeats the verdict.
fn unsaid(note: &Note, why: &str) -> String {
    match note.message.split_once('\n') {
        Some((first, rest)) if first.starts_with(why) => rest.to_string(),
        None if note.message.starts_with(why) => String::new(),
        _ => note.message.clone(),
    }
}

/// Indents the lines of a text below their heading.
pub(super) fn indented(text: &str) -> String {
    text.lines().map(|l| format!("  {l}\n")).collect()
}

/// The place in the manifest that a failure is about: the argument or arguments of the launch that the binary does not accept.
fn located(package: &Package, step: &StepFinished, why: &str) -> Option<Diagnostic> {
    let part = step.notes.iter().find_map(|note| note.launch.as_ref())?;
    let kernel = package.kernel(step.labels.kernel.as_deref()?)?;
    let operator = package.operator(&kernel.operator)?;
    let label = step.labels.variant.as_deref().unwrap_or_default();
    let choice = operator.choices().into_iter().find(|c| c.label.is_empty() || label.starts_with(&c.label))?;
    let variant = labelled(kernel, label);
    let entry = &part.entry;
    let launch = kernel.launch_of(entry, &variant, &choice)?;
    let argument = part.argument.and_then(|n| launch.arg_places.get((n as usize).checked_sub(1)?));
    let declared = match part.field {
        LaunchField::Args => argument.or(launch.args_place.as_ref()),
        LaunchField::Block => launch.block_place.as_ref(),
        LaunchField::Request => None,
    };
    let place = declared.unwrap_or(&launch.place);
    let note = format!("`{entry}` is launched here");
    if part.field != LaunchField::Args {
        let error = place.error("launch.refused", why);
        return Some(error.see(&launch.place.file, launch.place.span.clone(), note));
    }
    let takes = match argument {
        Some(_) => {
            "an argument of the size and kind of that parameter; `{ value = \"...\", dtype = \"...\" }` states a scalar's"
        }
        None => "one argument for each parameter, in order",
    };
    let error = place.error("launch.arguments", why).expected(takes);
    Some(error.see(&launch.place.file, launch.place.span.clone(), note))
}

/// The variant with that label, with the fields that texts of the manifest need.
fn labelled(kernel: &Kernel, label: &str) -> Variant {
    let parts: Vec<&str> = label.split(',').collect();
    let value = |name: &str, values: &[TuneValue]| {
        values.iter().find(|v| parts.contains(&format!("{name}={v}").as_str())).map(|v| (name.to_string(), v.clone()))
    };
    let values = kernel.tune.iter().filter_map(|(name, values)| value(&name.value, values)).collect();
    Variant { values, label: label.into(), order: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::{SourcePlace, ToolMessage};

    pub(super) fn step(why: &str) -> StepFinished {
        StepFinished {
            product: None,
            id: "p/k/cpu/s/judge".into(),
            kind: StepKind::Judge,
            labels: Labels::default(),
            outcome: Outcome::Executed,
            verdict: Some(Verdict::Fail(why.into())),
            cache: kforge_types::record::event::CacheOrigin::None,
            key: None,
            result: None,
            why: None,
            evidence: None,
            summary: String::new(),
            notes: vec![],
            trouble: None,
            interrupted: false,
            duration_ms: 0,
            started_ms: None,
            waits: vec![],
        }
    }

    #[test]
    fn arguments_of_a_triton_kernel_have_the_names_of_the_step() {
        let text = "[package]\nname = \"p\"\n[targets.cpu]\n\
            [operator.o]\ndims = [\"n\"]\ninputs.x = { dtype = \"f32\", shape = [\"n\"] }\n\
            outputs.y = { dtype = \"f32\", shape = [\"n\"] }\n\
            reference = { builtin = \"elementwise\", y = \"x\" }\ntolerance = { atol = 1e-6, rtol = 1e-6 }\n\
            [operator.o.shapes]\none = { n = 1 }\nfive = { n = 5 }\n\
            [kernel.k]\noperator = \"o\"\nsource = \"k.py\"\nlanguage = \"triton\"\n\
            [[kernel.k.launch]]\nentry = \"k\"\ngrid = [\"1\"]\nargs = [\"x\", \"y\", \"n\"]\n";
        let file =
            std::sync::Arc::new(kforge_foundation::base::SourceFile { name: "kernel.toml".into(), text: text.into() });
        let (manifest, said) = kforge_types::model::parse(&file);
        assert!(said.is_empty(), "{said:?}");
        let package = kforge_types::model::inherit(&manifest.unwrap(), None).0.unwrap();
        let packages = HashMap::from([("p", &package)]);
        let labels = |shape: &str| Labels {
            package: "p".into(),
            kernel: Some("k".into()),
            target: Some("cpu".into()),
            variant: Some(String::new()),
            shape: Some(shape.into()),
            ..Labels::default()
        };
        let params = |arguments: usize| {
            let kernel = kforge_types::model::KernelLaunch {
                entry: "k_0".into(),
                grid: [1, 1, 1],
                open_grid: None,
                block: [32, 1, 1],
                shared: 0,
                args: vec![kforge_types::model::Arg::Null; arguments],
                cooperative: false,
                cluster: None,
                pdl: false,
                triton: None,
            };
            serde_json::json!({ "launches": [kforge_types::model::Launch::Kernel(kernel)] })
        };
        let steps = [(labels("five"), params(3)), (labels("one"), params(2)), (labels("six"), Value::Null)];
        let named = launched(&packages, steps.iter().map(|(labels, params)| (labels, params)));
        let name = |shape: &str, at: usize| named.get(&about(&labels(shape)).unwrap())?.name(0, at);
        assert_eq!((name("five", 1), name("five", 2)), (Some("y"), Some("n")));
        // Triton leaves out an integer that is 1, so positions say nothing.
        assert_eq!((name("one", 1), named.len()), (None, 2));
    }

    #[test]
    fn one_mistake_in_two_variants_is_one_reason() {
        let (a, b) =
            ("`k<32>` takes 3 parameters, the launch passes 2", "`k<256>` takes 3 parameters, the launch passes 2");
        assert_eq!(general(&step(a), a), general(&step(b), b));
        assert_ne!(general(&step(a), a), general(&step("race on `s`"), "race on `s`"));
    }

    #[test]
    fn a_warning_in_two_variants_is_one_warning() {
        let note = |text: &str, line: u32| {
            let place = SourcePlace { file: "k.cu".into(), line, column: Some(4) };
            let part = ToolMessage { severity: Severity::Warning, message: text.into(), place: Some(place) };
            Note { parts: vec![part], ..Note::new(Severity::Warning, "compile.log", format!("log of {text}")) }
        };
        assert_eq!(warnings(&note("unused in k<32>", 3)), warnings(&note("unused in k<256>", 3)));
        assert_ne!(warnings(&note("unused in k<32>", 3)), warnings(&note("unused in k<32>", 4)));
        assert_ne!(warnings(&note("unused", 3)), warnings(&note("narrowed", 3)));
        assert_eq!(warnings(&Note::new(Severity::Warning, "compile.log", "3 warnings")), ["3 warnings"]);
    }

    #[test]
    fn what_a_note_says_is_bounded() {
        let lines = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>().join("\n");
        assert_eq!(short(&lines(MOST_LINES)), lines(MOST_LINES));
        let long = short(&lines(MOST_LINES + 5));
        assert_eq!(long, format!("{}\nand 6 lines more, which -v shows", lines(MOST_LINES - 1)));
    }

    #[test]
    fn what_was_said_is_not_said_again() {
        let note = |message: &str| Note::new(Severity::Error, "verify.judged", message);
        assert_eq!(unsaid(&note("wrong (3 times)"), "wrong"), "");
        assert_eq!(unsaid(&note("wrong\n  more"), "wrong"), "  more");
        assert_eq!(unsaid(&note("another\n  more"), "wrong"), "another\n  more");
    }
}
