//! A report as terminal text. Knows the document; the caller removes colors if there is no terminal.

use std::collections::BTreeSet;
use std::fmt::Write;

use jiff::Timestamp;

use super::document::{
    KernelReport, MachineReport, MethodReport, PackageReport, Report, RooflineReport, ShapeReport, TargetReport,
    TimeReport,
};
use super::duration::duration;
use super::paint::{BAD, BOLD, DIM, GOOD, OPEN, paint};
use super::reach::{self, too_small};
use super::wrong::{Told, UntriedReport};
use super::{baselines, calls, leaders, legend, provenance, rounds_text};
use kforge_foundation::base::count;
use kforge_types::record::observation::witness;
use kforge_types::record::params::{Fate, Shown};
use kforge_types::record::{FunctionFacts, Verdict};

/// How much of a failure is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failures {
    /// What failed, and why.
    Why,
    /// What failed; the reason was shown when it happened.
    Told,
}

/// The report with ANSI styles. With the present time, it also says how old observations are, and ends with the build that it is of.
pub fn text(report: &Report, failures: Failures, now: Option<Timestamp>) -> String {
    written(report, failures, now, false)
}

/// Like [`text`], with the reasons of failures and with details that concern most kernels, for kernels that were asked for by name.
pub fn detailed(report: &Report, now: Option<Timestamp>) -> String {
    written(report, Failures::Why, now, true)
}

fn written(report: &Report, failures: Failures, now: Option<Timestamp>, detailed: bool) -> String {
    let mut out = String::new();
    // A failure leaves the results of later steps unknown, and headings for them would look as if all were well.
    let begun = report.has_failed().then(|| report.clone().begun());
    let report = begun.as_ref().unwrap_or(report);
    for package in &report.packages {
        write_package(&mut out, package, failures, now, detailed);
    }
    if let Some(legend) = legend::line(report, legend::Figures::All) {
        let _ = writeln!(out, "{}", paint(DIM, &legend));
    }
    if let (Some(built), Some(_)) = (&report.built, now) {
        let _ = writeln!(out, "{}", paint(DIM, &provenance::built(built, now)));
    }
    let shapes = || report.packages.iter().flat_map(|p| &p.kernels).flat_map(|k| &k.targets).flat_map(|t| &t.shapes);
    if shapes().next().is_some() && shapes().all(|s| matches!(s.verdict, Verdict::Unknown(_))) {
        let _ = writeln!(out, "{}", paint(BAD, "nothing is verified: the verdict of every kernel is unknown"));
    }
    out
}

fn write_package(
    out: &mut String,
    package: &PackageReport,
    failures: Failures,
    now: Option<Timestamp>,
    detailed: bool,
) {
    let _ = writeln!(out, "{}", paint(BOLD, &package.name));
    for operator in package.operators.iter().filter(|o| o.verdict != Verdict::Pass) {
        let _ = writeln!(out, "  operator {}: {}", operator.name, verdict(&operator.verdict, failures));
    }
    for kernel in &package.kernels {
        write_kernel(out, kernel, failures, now, detailed);
    }
    for line in leaders::lines(package) {
        let _ = writeln!(out, "  {line}");
    }
}

fn write_kernel(out: &mut String, kernel: &KernelReport, failures: Failures, now: Option<Timestamp>, detailed: bool) {
    for target in &kernel.targets {
        let types = if target.types.is_empty() { String::new() } else { format!(" [{}]", target.types) };
        let _ = write!(out, "  {}{types} on {}", paint(BOLD, &kernel.name), paint(BOLD, &target.target));
        if let Some(not_built) = &target.not_built {
            let _ = write!(out, ": {}: {}", paint(OPEN, "not built"), not_built.line());
        } else if let Some(Told { who, what, why, untried }) = Told::of(target) {
            let _ = write!(out, ": {who} {}{why}{untried}", paint(BAD, what));
        } else if let Some(untried) = target.untried.and_then(UntriedReport::alone) {
            let _ = write!(out, ": {untried}");
        }
        out.push('\n');
        write_target(out, target, failures, now, detailed);
    }
}

/// The line for a kernel with an accepted champion.
pub(super) const ACCEPTED: &str = "accepted: kforge builds only the variant that kforge.lock pins";

/// The line for a kernel with its own launcher.
pub(super) fn host_launched(host: &str) -> String {
    format!(
        "host-launched by `{host}`: its times are unknown, because its host code would run in the process that measures them"
    )
}

fn write_target(out: &mut String, target: &TargetReport, failures: Failures, now: Option<Timestamp>, detailed: bool) {
    if let Some(why) = &target.stale {
        let _ = writeln!(out, "    {}: {why}", paint(BAD, "stale"));
    }
    if let Some(last) = target.not_built.as_ref().and_then(|not_built| not_built.last.as_ref()) {
        let date = last.at.as_deref().and_then(|at| at.split('T').next());
        let date = date.map_or_else(String::new, |date| format!(", {date}"));
        let _ = writeln!(out, "    {}", paint(DIM, &format!("{}{date}", last.line())));
    }
    if !target.observed_on.is_empty() {
        let _ = writeln!(out, "    {}", paint(DIM, &format!("observed on {}", observed(target, now))));
    }
    if let Some(search) = &target.search {
        let _ = writeln!(out, "    {}", paint(DIM, &search.line(target)));
    }
    if target.accepted {
        let _ = writeln!(out, "    {}", paint(DIM, ACCEPTED));
    }
    if let Some(host) = &target.host {
        let _ = writeln!(out, "    {}", paint(OPEN, &host_launched(host)));
    }
    for champion in &target.champions {
        let class = target.stands_for(&champion.class);
        let name = match &champion.variant {
            Some(v) => variant(v).to_string(),
            None => paint(BAD, "none"),
        };
        let standing = if champion.provisional && champion.variant.is_some() {
            paint(OPEN, "provisional")
        } else {
            "champion".into()
        };
        let _ = writeln!(out, "    {standing}{class}: {name}  {}", paint(DIM, &format!("({})", champion.because)));
        for line in target.not_confirmed(champion) {
            let _ = writeln!(out, "    {}", paint(OPEN, &line));
        }
        for (method, why) in target.harmful(champion) {
            let _ = writeln!(out, "    {}: {method} is harmful: {why}", paint(OPEN, "warning"));
        }
    }
    for overtaken in &target.overtaken {
        let _ = writeln!(out, "    {}", paint(OPEN, &overtaken.line()));
    }
    let width = target.shapes.iter().map(|s| s.shape.len()).max().unwrap_or(0);
    let unknown: Vec<&ShapeReport> = target
        .shapes
        .iter()
        .filter(|s| matches!(s.verdict, Verdict::Unknown(_)) && !target.has_failure_of(s))
        .collect();
    for shape in target.shapes.iter().filter(|s| !matches!(s.verdict, Verdict::Unknown(_))) {
        write_shape(out, shape, width, target, failures);
    }
    for (why, shapes) in group(&unknown) {
        let _ = writeln!(out, "    {} {}: {why}", paint(OPEN, "unknown"), shapes.join(", "));
    }
    if !target.not_served.is_empty() {
        let shapes = target.not_served.join(", ");
        let _ = writeln!(
            out,
            "    {}",
            paint(DIM, &format!("not served: {shapes} (`requires` leaves them to other kernels)"))
        );
    }
    for machine in &target.machine {
        write_machine(out, machine);
    }
    for method in target.methods_of_champions().filter(|_| target.rounds.is_none() || failures == Failures::Told) {
        write_method(out, method);
    }
    for found in &target.rooflines {
        write_roofline(out, found, target);
    }
    write_times(out, target);
    for line in calls::lines(&target.calls) {
        let _ = writeln!(out, "    {line}");
    }
    for line in baselines::lines(&target.baselines) {
        let _ = writeln!(out, "    {line}");
    }
    for (shape, line) in by_class(target) {
        let _ = writeln!(out, "    {shape}  {}", paint(OPEN, &line));
    }
    if let Some(limit) = target.index_limit.as_ref().filter(|_| detailed) {
        let _ = writeln!(out, "    {}", paint(DIM, &limit.line()));
    }
    if let Some(rounds) = &target.rounds {
        rounds_text::write(out, rounds, failures);
    }
    write_failed(out, target, failures);
    let mut reasons: Vec<&str> = target.unavailable.iter().map(|u| u.2.as_str()).collect();
    reasons.dedup();
    for why in reasons {
        let what: Vec<String> =
            target.unavailable.iter().filter(|u| u.2 == why).map(|(kind, n, _)| format!("{n} {kind}")).collect();
        let _ = writeln!(out, "    {} {}: {why}", paint(OPEN, "unavailable"), what.join(", "));
    }
}

/// The observations that were judged; only their devices if the report does not say more.
pub(super) fn observed(target: &TargetReport, now: Option<Timestamp>) -> String {
    if target.observed.is_empty() { target.observed_on.join("; ") } else { provenance::line(&target.observed, now) }
}

/// How many steps that failed for the same reason are named. The others are counted.
const NAMED: usize = 3;

/// Steps that failed without a result, each reason once.
fn write_failed(out: &mut String, target: &TargetReport, failures: Failures) {
    for failure in target.failures() {
        let word = paint(BAD, "failed");
        if failures == Failures::Told {
            let _ = writeln!(out, "    {word} {}", failure.named(NAMED));
            continue;
        }
        let _ = writeln!(out, "    {word} {}", failure.line());
        for line in failure.rest(target) {
            let _ = writeln!(out, "      {line}");
        }
        let _ = writeln!(out, "      {}", paint(DIM, &failure.named(NAMED)));
    }
}

/// An error relative to the allowed one, as text: `2 % of what is allowed`, with `decimals` decimals of the percentage; from ten times on `520,000 times what
/// is allowed`, in two digits.
pub(super) fn of_allowed(worst: f64, decimals: usize) -> String {
    if worst < 10.0 {
        return format!("{:.decimals$} % of what is allowed", worst * 100.0);
    }
    let rounded: f64 = format!("{worst:.1e}").parse().unwrap_or(worst);
    let times = match format!("{rounded:.0}") {
        _ if rounded >= 1e12 || !rounded.is_finite() => format!("{rounded:e}"),
        digits => {
            let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|g| str::from_utf8(g).ok()).collect();
            groups.join(",")
        }
    };
    format!("{times} times what is allowed")
}

/// The largest error of a pass. Where a tolerance is a few steps of a type, an error equal to it is common and no near miss, so it is not shown as a share. A
/// share that would be rounded up to the whole is shown as less.
pub(super) fn error_of_pass(worst: f64) -> String {
    match worst {
        1.0 => "largest error as large as is allowed".into(),
        _ if (0.995..1.0).contains(&worst) => "largest error just below what is allowed".into(),
        _ => format!("largest error {}", of_allowed(worst, 0)),
    }
}

/// The name of a variant for display.
pub(crate) fn variant(label: &str) -> &str {
    if label.is_empty() { "the only variant" } else { label }
}

/// Shapes with unknown verdicts, grouped by reason.
fn group<'a>(shapes: &[&'a ShapeReport]) -> Vec<(String, Vec<&'a str>)> {
    let mut out: Vec<(String, Vec<&str>)> = Vec::new();
    for shape in shapes {
        let why = match &shape.verdict {
            Verdict::Unknown(why) => why.to_string(),
            other => other.to_string(),
        };
        match out.iter_mut().find(|(w, _)| *w == why) {
            Some((_, names)) => {
                if !names.contains(&shape.shape.as_str()) {
                    names.push(&shape.shape);
                }
            }
            None => out.push((why, vec![&shape.shape])),
        }
    }
    out
}

fn verdict(verdict: &Verdict, failures: Failures) -> String {
    match verdict {
        Verdict::Pass => paint(GOOD, "pass"),
        Verdict::Fail(_) if failures == Failures::Told => paint(BAD, "fail"),
        Verdict::Fail(why) => format!("{}: {why}", paint(BAD, "fail")),
        Verdict::Unknown(why) => format!("{}: {why}", paint(OPEN, "unknown")),
    }
}

/// The names of inputs that every candidate can know.
pub(super) fn known(inputs: &[String]) -> String {
    inputs.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn write_shape(out: &mut String, shape: &ShapeReport, width: usize, target: &TargetReport, failures: Failures) {
    let _ = write!(out, "    {:width$}  {}", shape.shape, verdict(&shape.verdict, failures));
    if shape.emulated {
        let _ = write!(out, "  {}", paint(DIM, witness(shape.emulated, shape.interpreted, shape.in_torch)));
    }
    if !shape.unconfined.is_empty() {
        let _ = write!(out, "  {}", paint(OPEN, "unconfined"));
    }
    if let (Verdict::Pass, Some(worst)) = (&shape.verdict, shape.worst) {
        let _ = write!(out, "  {}", paint(DIM, &error_of_pass(worst)));
    }
    if shape.no_fresh.is_some() {
        let _ = write!(out, "  {}", paint(OPEN, "no fresh trial"));
    }
    if !shape.known_inputs.is_empty() {
        let known = format!("{} known to candidates", known(&shape.known_inputs));
        let _ = write!(out, "  {}", paint(OPEN, &known));
    }
    // With only one champion this is obvious.
    let champions: BTreeSet<&str> = target.champions.iter().filter_map(|c| c.variant.as_deref()).collect();
    if champions.len() != 1 || !champions.contains(shape.variant.as_str()) {
        let _ = write!(out, "  ({})", variant(&shape.variant));
    }
    out.push('\n');
}

fn write_machine(out: &mut String, machine: &MachineReport) {
    for function in &machine.functions {
        let _ = writeln!(
            out,
            "    {}  {}  {}",
            machine.architectures.join(", "),
            function.entry,
            paint(DIM, &facts(function))
        );
    }
}

/// Facts of a function in one line: `32 registers, 0 B spilled, 1040 B shared`.
pub fn facts(function: &FunctionFacts) -> String {
    let mut parts = Vec::new();
    if let Some(n) = function.registers {
        parts.push(count(n, "register"));
    }
    parts.push(spills(function.spill_stores, function.spill_loads));
    if let Some(n) = function.shared {
        parts.push(format!("{n} B shared"));
    }
    if let Some(n) = function.stack {
        parts.push(format!("{n} B stack"));
    }
    parts.join(", ")
}

/// Bytes of spills per thread, stored and loaded.
pub(super) fn spills(stores: Option<u64>, loads: Option<u64>) -> String {
    match (stores, loads) {
        (Some(0), Some(0)) => "no spills".into(),
        (Some(stores), Some(loads)) => format!("spills {stores} B stored, {loads} B loaded"),
        _ => "spills unknown".into(),
    }
}

/// Whether machine code shows a method, and the counts that decide it.
pub(super) fn seen(method: &MethodReport) -> (String, String) {
    let shown = match method.matched.as_ref().map(|m| &m.shown) {
        Some(Shown::Shown) => paint(GOOD, "shown"),
        Some(Shown::NotShown) => paint(BAD, "not shown"),
        Some(Shown::Unknown(why)) => format!("{} ({why})", paint(OPEN, "unknown")),
        None => paint(OPEN, "unknown"),
    };
    let counts: Vec<String> = method
        .matched
        .iter()
        .flat_map(|m| &m.counts)
        // A pattern that neither has shows nothing.
        .filter(|(_, with, without)| *with > 0 || *without > 0)
        .map(|(p, with, without)| format!("{p} {with} times, {without} without it"))
        .collect();
    (shown, counts.join("; "))
}

/// The result of a method, as one word.
pub(super) fn fate(fate: Fate) -> String {
    match fate {
        Fate::Effective => paint(GOOD, fate.name()),
        Fate::Ineffective | Fate::NotUsed => fate.name().into(),
        Fate::Harmful | Fate::ImplementationFailed => paint(BAD, fate.name()),
        Fate::Inconclusive => paint(OPEN, fate.name()),
    }
}

fn write_method(out: &mut String, method: &MethodReport) {
    if method.is_unused() {
        let _ = writeln!(out, "    {}  {}", method.method, fate(Fate::NotUsed));
        return;
    }
    let (shown, counts) = seen(method);
    let _ = write!(out, "    {}  {shown}", method.method);
    if !counts.is_empty() {
        let _ = write!(out, "  {}", paint(DIM, &counts));
    }
    if let Some(attribution) = &method.attribution {
        let _ = write!(out, "  {}: {}", fate(attribution.fate), attribution.reason());
    }
    out.push('\n');
}

/// What bounds a champion, and what it achieves at each shape: `bound by memory: used compute 8 %, memory 43 %; waiting unknown (no counters)  at big`.
fn write_roofline(out: &mut String, found: &RooflineReport, target: &TargetReport) {
    let age = of_earlier(target);
    let of = (target.rooflines.len() > 1).then(|| format!("({})", variant(&found.variant)));
    let bound = found.bound().map(|bound| if age.is_some() { paint(DIM, &bound) } else { bound });
    let at = found.shape.as_ref().map(|shape| {
        let small = found.achieved.get(shape).and_then(|reached| too_small(found, shape, reached));
        let small = small.map_or_else(String::new, |why| format!(", which is {why}"));
        paint(DIM, &format!("at {shape}{small}"))
    });
    let parts: Vec<String> = bound.into_iter().chain(at).chain(of).collect();
    if !parts.is_empty() {
        let _ = writeln!(out, "    {}", parts.join("  "));
    }
    let width = found.achieved.keys().map(String::len).max().unwrap_or(0);
    for (shape, reached) in &found.achieved {
        let small = too_small(found, shape, reached).filter(|_| found.shape.as_ref() != Some(shape));
        let small = small.map_or_else(String::new, |why| format!("; {why}"));
        let time = duration(reached.time_ns);
        let line = format!("{}{small}", reach::line(reached));
        let _ = match age {
            Some(age) => writeln!(out, "    {}", paint(DIM, &format!("{shape:width$}  {time} {age}  {line}"))),
            None => writeln!(out, "    {shape:width$}  {time}  {}", paint(DIM, &line)),
        };
    }
}

/// What is said beside a time that an edit has made one of an earlier version.
pub(super) fn of_earlier(target: &TargetReport) -> Option<&'static str> {
    target.stale.as_ref().map(|_| "of an earlier version")
}

/// The times of champions that differ by class of inputs, as a line for each shape.
pub(super) fn by_class(target: &TargetReport) -> Vec<(&str, String)> {
    let hot = target.basis.as_ref().is_some_and(|basis| basis.hot);
    let stands = |variant: &str| target.champions.iter().any(|c| c.variant.as_deref() == Some(variant));
    let line = |time: &'_ TimeReport| {
        let by = time.by_class.as_ref().filter(|by| by.differs)?;
        let class = if hot { by.hot_ns } else { by.cold_ns }?;
        let (class, usual) = (duration(class), duration(time.ns(hot)?));
        let on = format!("{class} on inputs of the class `{}`, {usual} on others", by.class);
        Some(format!("its time depends on the data: {on}"))
    };
    let champions = target.times.iter().filter(|time| stands(&time.variant));
    champions.filter_map(|time| Some((time.shape.as_str(), line(time)?))).collect()
}

/// The times of champions that no roofline shows: a champion may be provisional because a new shape was never observed, or its profile may be missing.
fn write_times(out: &mut String, target: &TargetReport) {
    let hot = target.basis.as_ref().is_some_and(|basis| basis.hot);
    let stands = |time: &TimeReport| {
        target.champion_at(&time.shape).is_some_and(|c| c.variant.as_deref() == Some(time.variant.as_str()))
    };
    let is_told = |time: &TimeReport| {
        target.rooflines.iter().any(|found| found.variant == time.variant && found.achieved.contains_key(&time.shape))
    };
    let times: Vec<(&TimeReport, f64)> = target
        .times
        .iter()
        .filter(|time| stands(time) && !is_told(time))
        .filter_map(|time| Some((time, if hot { time.hot_ns } else { time.cold_ns }?)))
        .collect();
    let width = times.iter().map(|(time, _)| time.shape.len()).max().unwrap_or(0);
    for (time, ns) in times {
        let of = if target.champions.len() > 1 { format!("  ({})", variant(&time.variant)) } else { String::new() };
        let few = if time.few { format!("  {}", paint(DIM, "from few samples")) } else { String::new() };
        let (shape, ns) = (&time.shape, duration(ns));
        let _ = match of_earlier(target) {
            Some(age) => writeln!(out, "    {}{few}{of}", paint(DIM, &format!("{shape:width$}  {ns} {age}"))),
            None => writeln!(out, "    {shape:width$}  {ns}{few}{of}"),
        };
    }
    if let Some(earlier) = &target.earlier {
        let of = format!("  ({})", variant(&earlier.variant));
        let _ = writeln!(out, "    {}", paint(DIM, &format!("{}{of}", earlier.line())));
    }
}

#[cfg(test)]
mod tests {
    use super::super::classes::OvertakenReport;
    use super::super::document::{BasisReport, ChampionReport};
    use super::super::earlier::EarlierReport;
    use super::*;
    use kforge_types::record::params::{Attribution, Matched, Stays};

    fn told(target: TargetReport) -> String {
        let kernel = KernelReport { name: "k".into(), operator: "o".into(), targets: vec![target] };
        let package = PackageReport { name: "p".into(), kernels: vec![kernel], ..PackageReport::default() };
        let report = Report { format_version: 1, packages: vec![package], ..Report::default() };
        anstream::adapter::strip_str(&text(&report, Failures::Why, None)).to_string()
    }

    fn champion(class: &str, label: &str) -> ChampionReport {
        let (class, variant) = (class.into(), Some(label.into()));
        let shapes = vec!["big".into(), "short".into()];
        ChampionReport { class, shapes, variant, provisional: false, because: "of one".into(), versus: vec![] }
    }

    fn right(label: &str) -> ShapeReport {
        ShapeReport {
            shape: "short".into(),
            variant: label.into(),
            verdict: Verdict::Pass,
            emulated: false,
            interpreted: false,
            in_torch: false,
            unconfined: vec![],
            worst: Some(0.02),
            no_fresh: None,
            known_inputs: vec![],
            confirmed: false,
            not_confirmed: None,
            explanation: String::new(),
            diagnoses: vec![],
            refused: false,
            finding: None,
            prevented_by: None,
        }
    }

    #[test]
    fn a_pass_without_a_fresh_trial_is_marked() {
        let line = |no_fresh: Option<String>| {
            let (mut out, shape) = (String::new(), ShapeReport { no_fresh, ..right("A=1") });
            let target = TargetReport { champions: vec![champion("all", "A=1")], ..TargetReport::default() };
            write_shape(&mut out, &shape, 5, &target, Failures::Why);
            anstream::adapter::strip_str(&out).to_string()
        };
        assert_eq!(line(None), "    short  pass  largest error 2 % of what is allowed\n");
        let marked = "    short  pass  largest error 2 % of what is allowed  no fresh trial\n";
        assert_eq!(line(Some("the kforge that observed it ran none".into())), marked);
    }

    #[test]
    fn a_verdict_on_inputs_of_a_file_is_marked() {
        let (mut out, shape) = (String::new(), ShapeReport { known_inputs: vec!["B".into()], ..right("A=1") });
        let target = TargetReport { champions: vec![champion("all", "A=1")], ..TargetReport::default() };
        write_shape(&mut out, &shape, 5, &target, Failures::Why);
        let told = anstream::adapter::strip_str(&out).to_string();
        assert_eq!(told, "    short  pass  largest error 2 % of what is allowed  `B` known to candidates\n");
    }

    #[test]
    fn errors_far_beyond_what_is_allowed_are_told_as_multiples_in_two_digits() {
        let told = [0.0217, 1.5, 9.999, 10.0, 12.34, 999.0, 521_774.833_17, 3.14e13].map(|worst| of_allowed(worst, 1));
        let per_cent = ["2.2 %", "150.0 %", "999.9 %"].map(|share| format!("{share} of what is allowed"));
        let times = ["10", "12", "1,000", "520,000", "3.1e13"].map(|n| format!("{n} times what is allowed"));
        assert_eq!(told.to_vec(), [per_cent.as_slice(), times.as_slice()].concat());
    }

    #[test]
    fn what_an_interrupted_build_did_not_get_to_is_not_listed() {
        let kernel = |name: &str, target: TargetReport| KernelReport {
            name: name.into(),
            targets: vec![target],
            ..KernelReport::default()
        };
        let begun = TargetReport { champions: vec![champion("all", "A=1")], ..TargetReport::default() };
        let package = |kernels| PackageReport { name: "p".into(), kernels, ..PackageReport::default() };
        let of = |packages| Report { packages, ..Report::default() }.begun();
        let report = of(vec![
            package(vec![kernel("a", TargetReport::default()), kernel("b", begun)]),
            package(vec![kernel("c", TargetReport::default())]),
        ]);
        let names: Vec<&str> = report.packages.iter().flat_map(|p| &p.kernels).map(|k| k.name.as_str()).collect();
        assert_eq!((report.packages.len(), names), (1, vec!["b"]));
    }

    #[test]
    fn a_class_is_told_with_what_it_is_a_value_of() {
        let told = |per: Option<&str>, class: &str| {
            let per = per.map(String::from);
            told(TargetReport {
                target: "cpu".into(),
                per,
                champions: vec![champion(class, "A=1")],
                ..Default::default()
            })
        };
        assert!(told(None, "all").contains("    champion: A=1"));
        assert!(told(None, "short").contains("    champion for short: A=1"));
        assert!(told(Some("r"), "2").contains("    champion for r = 2: A=1"));
        assert!(told(Some("r"), "all").contains("    champion for r = all: A=1"));
        let long = told(Some("1 if cols <= 128 else 2"), "2");
        assert!(long.contains("    champion for `1 if cols <= 128 else 2` = 2: A=1"), "{long}");
    }

    #[test]
    fn counts_of_nothing_are_left_out() {
        let counts = vec![("LDG.E.128".to_string(), 4, 0), ("ST.E".to_string(), 0, 0)];
        let matched = Some(Matched { shown: Shown::Shown, counts });
        let method =
            MethodReport { method: "m".into(), variant: "A=1".into(), matched, attribution: None, shapes: vec![] };
        assert_eq!(seen(&method).1, "LDG.E.128 4 times, 0 without it");
    }

    #[test]
    fn an_error_as_large_as_is_allowed_is_no_near_miss() {
        let told = [0.02, 0.994, 0.996, 1.0].map(error_of_pass);
        let expected = [
            "2 % of what is allowed",
            "99 % of what is allowed",
            "just below what is allowed",
            "as large as is allowed",
        ];
        assert_eq!(told, expected.map(|rest| format!("largest error {rest}")));
    }

    #[test]
    fn after_an_edit_a_time_is_one_of_an_earlier_version() {
        let time = TimeReport {
            shape: "big".into(),
            variant: "A=1".into(),
            cold_ns: Some(7900.0),
            hot_ns: None,
            few: false,
            by_class: None,
            seen: None,
        };
        let target = TargetReport {
            champions: vec![champion("all", "A=1")],
            times: vec![time],
            stale: Some("`k.cu` was edited since this was built".into()),
            ..TargetReport::default()
        };
        assert!(told(target.clone()).contains("    big  7.90 us of an earlier version\n"));
        assert!(told(TargetReport { stale: None, ..target }).contains("    big  7.90 us\n"));
        let earlier = EarlierReport { shape: "big".into(), variant: "A=2".into(), ns: 8100.0, at: None };
        let edited = TargetReport { earlier: Some(earlier), ..TargetReport::default() };
        assert!(told(edited).contains("    8.10 us at big of an earlier version  (A=2)\n"));
    }

    #[test]
    fn a_method_that_costs_time_is_told_beside_the_champion_and_one_that_is_not_used_without_more() {
        let method = |id: &str, variant: &str, fate: Fate, because: &str| MethodReport {
            method: id.into(),
            variant: variant.into(),
            matched: (fate == Fate::Harmful).then(|| Matched { shown: Shown::Shown, counts: vec![] }),
            attribution: Some(Attribution { fate, because: because.into(), detail: None, saving: None }),
            shapes: vec![],
        };
        let told = told(TargetReport {
            target: "h".into(),
            champions: vec![champion("all", "A=1")],
            methods: vec![
                method("memory.wide", "A=1", Fate::Harmful, "without it faster, -3.5 % [-4.1, -2.9]"),
                method("memory.other", "A=1", Fate::NotUsed, "the champion does not use it"),
                method("memory.wide", "A=2", Fate::Effective, "without it slower, +9.5 % [+9.0, +10.0]"),
            ],
            ..TargetReport::default()
        });
        assert!(
            told.contains(
                "champion: A=1  (of one)\n    warning: memory.wide is harmful: without it faster, -3.5 % [-4.1, -2.9]\n"
            ),
            "{told}"
        );
        assert!(
            told.contains(
                "    memory.wide  shown  harmful: without it faster, -3.5 % [-4.1, -2.9]\n    memory.other  not used\n"
            ),
            "{told}"
        );
        assert!(!told.contains("9.0 %"), "it is no champion's: {told}");
    }

    #[test]
    fn verdicts_of_several_champions_say_whose_they_are() {
        let told = |champions: Vec<ChampionReport>, shapes: Vec<ShapeReport>| {
            told(TargetReport { target: "cpu".into(), champions, shapes, ..TargetReport::default() })
        };
        let alone = told(vec![champion("1", "A=1"), champion("2", "A=1")], vec![right("A=1")]);
        assert!(alone.contains("    short  pass  largest error 2 % of what is allowed\n"), "{alone}");
        let two = told(vec![champion("1", "A=1"), champion("2", "A=2")], vec![right("A=1"), right("A=2")]);
        for label in ["A=1", "A=2"] {
            assert!(two.contains(&format!("short  pass  largest error 2 % of what is allowed  ({label})\n")), "{two}");
        }
    }

    #[test]
    fn times_are_told_of_whoever_stands_where_no_roofline_tells_them() {
        let time = |variant: &str, ns: f64| TimeReport {
            shape: "big".into(),
            variant: variant.into(),
            cold_ns: Some(ns),
            hot_ns: Some(ns / 2.0),
            few: false,
            by_class: None,
            seen: None,
        };
        let target = |hot: bool| TargetReport {
            champions: vec![champion("all", "A=1")],
            times: vec![time("A=1", 7900.0), time("A=2", 8100.0)],
            overtaken: vec![OvertakenReport {
                shape: "big".into(),
                by: "A=2".into(),
                faster_by: 0.02,
                because: Stays::Undecided,
                pairs: None,
            }],
            basis: Some(BasisReport { hot, ..BasisReport::default() }),
            ..TargetReport::default()
        };
        let cold = told(target(false));
        assert!(cold.contains("    big  7.90 us\n") && !cold.contains("8.10"), "{cold}");
        assert!(told(target(true)).contains("    big  3.95 us\n"));
        assert!(cold.contains("    at big, A=2 against the champion: median -2.0 %; in pairs: undecided"), "{cold}");
    }

    #[test]
    fn what_failed_for_one_reason_is_told_once_and_of_what_was_not_begun_only_why() {
        let failed = |n: usize| (0..n).map(|i| (format!("p/k/A={i}/cpu/compile"), "cannot compile".to_string()));
        let target = TargetReport { target: "cpu".into(), failed: failed(12).collect(), ..TargetReport::default() };
        let other = |target: &str| TargetReport { target: target.into(), ..TargetReport::default() };
        let reason = serde_json::json!({
            "step": "p/o/oracle", "stopped": false,
            "last": { "at": "2026-11-25T09:57:00Z", "champions": [""], "provisional": false, "failed": false, "passed": 1, "unknown": 0 },
        });
        let not_built = Some(serde_json::from_value(reason).unwrap());
        let targets = vec![target, other("h200"), TargetReport { not_built, ..other("h100") }];
        let kernel = KernelReport { name: "k".into(), operator: "o".into(), targets };
        let package = PackageReport { name: "p".into(), kernels: vec![kernel], ..PackageReport::default() };
        let report = Report { format_version: 1, packages: vec![package], ..Report::default() };
        let told = anstream::adapter::strip_str(&text(&report, Failures::Why, None)).to_string();
        let named = "p/k/A=0/cpu/compile, p/k/A=1/cpu/compile, p/k/A=2/cpu/compile and 9 more";
        let last = "  k on h100: not built: `p/o/oracle` failed\n    last known: pass, the only variant, 2026-11-25\n";
        assert_eq!(told, format!("p\n  k on cpu\n    failed cannot compile (12 steps)\n      {named}\n{last}"));
        let told = anstream::adapter::strip_str(&text(&report, Failures::Told, None)).to_string();
        assert_eq!(told, format!("p\n  k on cpu\n    failed {named}\n{last}"));
    }
}
