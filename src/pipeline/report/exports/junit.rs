//! JUnit's XML: one suite for each package and target, one test for each kernel, types, variant and shape that has a verdict. Knows that format.
//!
//! | in the report | test |
//! |---|---|
//! | pass, fail, unknown | success, failure with the explanation, skipped with the reason |
//! | a kernel that did not run to its end, such as one that raises an exception | error with the explanation |
//! | a step that failed without a result, an error of a manifest | error with the compiler's messages |
//! | steps that cannot run here | skipped with the reason |
//! | an operator whose tolerance decides nothing, or is wrong | skipped, failure |
//!
//! The time of a test is the median time of the kernel at that shape, in seconds, by the metric that selects champions. An unknown time is left out.

use std::fmt::Write;

use quick_junit::{NonSuccessKind, Property, Report as Xml, TestCase, TestCaseStatus, TestSuite};

use super::ExportError;
use crate::report::Report;
use crate::report::document::{KernelReport, PackageReport, ShapeReport, TargetReport};
use crate::report::messages::finding_code;
use crate::report::text::of_allowed;
use kforge_foundation::base::{Diagnostic, Severity, count, unhidden};
use kforge_types::record::observation::witness;
use kforge_types::record::{FindingKind, Unknown, Verdict};

/// The most lines of a compiler's messages in one test.
const MOST_LINES: usize = 20;

/// The verdicts of a report as tests.
pub(super) fn junit(report: &Report, diagnostics: &[Diagnostic]) -> Result<String, ExportError> {
    let mut all = Xml::new("kforge");
    all.add_test_suites(of_diagnostics(diagnostics));
    for package in &report.packages {
        all.add_test_suites(of_operators(package));
        let mut names: Vec<&str> = vec![];
        for target in package.kernels.iter().flat_map(|kernel| &kernel.targets) {
            if !names.contains(&target.target.as_str()) {
                names.push(&target.target);
            }
        }
        all.add_test_suites(names.into_iter().map(|name| of_target(report, package, name)));
    }
    // Two characters that XML has no form for, and that the library lets through.
    Ok(unhidden(&all.to_string()?.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")))
}

/// The errors of manifests; none if there are none.
fn of_diagnostics(diagnostics: &[Diagnostic]) -> Option<TestSuite> {
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let case = |error: &Diagnostic| {
        let place = error.position().map(|(file, line, column)| format!("{}:{line}:{column}", file.name));
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_type(error.code).set_message(error.message.as_str());
        let mut text = place.iter().map(|place| format!("{place}\n")).collect::<String>();
        text.extend(error.expected.iter().map(|expected| format!("expected {expected}\n")));
        text.extend(error.notes.iter().map(|note| format!("{note}\n")));
        text.extend(error.hints.iter().map(|hint| format!("help: {hint}\n")));
        status.set_description(text);
        let mut case =
            TestCase::new(place.map_or(error.code.to_string(), |at| format!("{} at {at}", error.code)), status);
        case.set_classname("manifest");
        case
    };
    let cases: Vec<TestCase> = errors.map(case).collect();
    let mut suite = TestSuite::new("manifest");
    suite.add_test_cases(cases.iter().cloned());
    (!cases.is_empty()).then_some(suite)
}

/// The operators of a package whose calibration reports something; none if there is none.
fn of_operators(package: &PackageReport) -> Option<TestSuite> {
    let mut suite = TestSuite::new(format!("{}/operators", package.name));
    for operator in &package.operators {
        let mut case = TestCase::new("tolerance", status(&operator.verdict, &operator.notes.join("\n"), None));
        case.set_classname(format!("{}.{}", package.name, operator.name));
        suite.add_test_case(case);
    }
    (!package.operators.is_empty()).then_some(suite)
}

fn of_target(report: &Report, package: &PackageReport, name: &str) -> TestSuite {
    let mut suite = TestSuite::new(format!("{}/{name}", package.name));
    if let Some(built) = &report.built {
        suite.add_property(Property::new("kforge", built.kforge.as_str()));
        suite.add_properties(built.commit.iter().map(|commit| Property::new("commit", commit.as_str())));
        if built.interrupted {
            suite.add_property(Property::new("interrupted", "a later build was interrupted"));
        }
        if !built.at.is_empty() {
            suite.extra.insert("timestamp".into(), built.at.as_str().into());
        }
    }
    let targets = || {
        let all = package.kernels.iter().flat_map(|kernel| kernel.targets.iter().map(move |target| (kernel, target)));
        all.filter(|(_, target)| target.target == name)
    };
    let mut devices: Vec<&str> = targets().flat_map(|(_, target)| &target.observed_on).map(String::as_str).collect();
    devices.sort_unstable();
    devices.dedup();
    suite.add_properties(devices.into_iter().map(|device| Property::new("device", device)));
    for (kernel, target) in targets() {
        if let Some(why) = &target.stale {
            suite.add_property(Property::new(format!("stale {}", kernel.name), why.as_str()));
        }
        let class = class(package, kernel, target);
        for shape in &target.shapes {
            suite.add_test_case(of_shape(target, shape, &class));
        }
        for (step, why) in &target.failed {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_type("step.failed").set_message(why.lines().next().unwrap_or_default());
            status.set_description(said(package, kernel, target, why));
            let mut case = TestCase::new(step.as_str(), status);
            case.set_classname(class.as_str());
            suite.add_test_case(case);
        }
        if let Some(not_built) = &target.not_built {
            let mut status = TestCaseStatus::skipped();
            status.set_type("not-built").set_message(not_built.line());
            let mut case = TestCase::new("build", status);
            case.set_classname(class.as_str());
            suite.add_test_case(case);
        }
        for (kind, number, why) in &target.unavailable {
            let mut status = TestCaseStatus::skipped();
            status.set_type("unavailable").set_message(format!("{}: {why}", count(*number, &format!("{kind} step"))));
            let mut case = TestCase::new(format!("{kind} steps"), status);
            case.set_classname(class.as_str());
            suite.add_test_case(case);
        }
    }
    suite
}

/// The class of a kernel's tests: package, target and kernel, with types.
fn class(package: &PackageReport, kernel: &KernelReport, target: &TargetReport) -> String {
    let types = if target.types.is_empty() { String::new() } else { format!("[{}]", target.types) };
    format!("{}.{}.{}{types}", package.name, target.target, kernel.name)
}

/// A failure in full: the reason, and the errors of compilers for the kernel on that target.
fn said(package: &PackageReport, kernel: &KernelReport, target: &TargetReport, why: &str) -> String {
    let mine = package.messages.iter().filter(|message| {
        message.severity == Severity::Error
            && message.kernel.as_ref() == Some(&kernel.name)
            && message.target.as_ref().is_none_or(|name| *name == target.target)
    });
    let mut text = format!("{why}\n");
    for message in mine.take(MOST_LINES) {
        let at = message.place.as_ref().map(|place| format!("{}:{}: ", place.file, place.line)).unwrap_or_default();
        let _ = writeln!(text, "{at}{}", message.message.lines().next().unwrap_or_default());
    }
    text
}

/// The finding of a kernel that did not run to its end; none if it ran.
fn not_run(shape: &ShapeReport) -> Option<FindingKind> {
    shape.not_run().map(|_| shape.finding.unwrap_or(FindingKind::LaunchRefused))
}

fn status(verdict: &Verdict, explanation: &str, not_run: Option<FindingKind>) -> TestCaseStatus {
    match verdict {
        Verdict::Pass => TestCaseStatus::success(),
        Verdict::Fail(why) => {
            let (kind, code) = match not_run {
                Some(finding) => (NonSuccessKind::Error, finding_code(finding)),
                None => (NonSuccessKind::Failure, "wrong".into()),
            };
            let mut status = TestCaseStatus::non_success(kind);
            status.set_type(code).set_message(why.as_str());
            if !explanation.is_empty() {
                status.set_description(explanation);
            }
            status
        }
        Verdict::Unknown(why) => {
            let mut status = TestCaseStatus::skipped();
            status.set_type(unknown(why)).set_message(why.to_string());
            status
        }
    }
}

/// The name of a reason, as in JSON.
fn unknown(why: &Unknown) -> &'static str {
    match why {
        Unknown::NoDevice(_) => "no-device",
        Unknown::NoCounters(_) => "no-counters",
        Unknown::Undecided(_) => "undecided",
        Unknown::NotEmulated(_) => "not-emulated",
        Unknown::TooLarge(_) => "too-large",
        Unknown::Missing(_) => "missing",
        Unknown::Implausible(_) => "implausible",
        Unknown::Indecisive(_) => "indecisive",
    }
}

fn of_shape(target: &TargetReport, shape: &ShapeReport, class: &str) -> TestCase {
    let name = match shape.variant.as_str() {
        "" => shape.shape.clone(),
        variant => format!("{} {variant}", shape.shape),
    };
    let mut case = TestCase::new(name, status(&shape.verdict, &shape.explanation, not_run(shape)));
    case.set_classname(class);
    let time = target.times.iter().find(|time| time.shape == shape.shape && time.variant == shape.variant);
    let hot = target.basis.as_ref().is_some_and(|basis| basis.hot);
    if let Some(ns) = time.and_then(|time| if hot { time.hot_ns } else { time.cold_ns }) {
        // The library rounds to milliseconds, in which most kernels would take no time.
        case.extra.insert("time".into(), format!("{:.9}", ns / 1e9).into());
    }
    let mut facts = vec![];
    facts.extend(shape.emulated.then(|| witness(shape.emulated, shape.interpreted, shape.in_torch).to_string()));
    facts.extend(shape.unconfined.iter().map(|why| format!("unconfined: {why}")));
    facts.extend(shape.worst.map(|worst| format!("largest error {}", of_allowed(worst, 1))));
    facts.extend(shape.no_fresh.iter().map(|why| format!("no fresh trial: {why}")));
    facts.extend(shape.known_inputs.iter().map(|input| format!("known to candidates: {input}")));
    facts.extend(shape.not_confirmed.iter().map(|why| format!("not confirmed: {why}")));
    if let Some(time) = time {
        let one = |name: &str, ns: Option<f64>| ns.map(|ns| format!("{name} median {ns:.1} ns"));
        facts.extend(one("cold", time.cold_ns));
        facts.extend(one("hot", time.hot_ns));
        facts.extend(time.seen.iter().map(|seen| format!("timed on {}", seen.device)));
    }
    if !facts.is_empty() {
        case.set_system_out(facts.join("\n"));
    }
    case
}
