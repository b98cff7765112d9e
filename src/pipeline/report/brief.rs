//! The results at the end of a build: one line for each kernel and target, then what needs attention, then what failed. Knows the document; [`super::text`]
//! has the details.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::document::{ChampionReport, KernelReport, PackageReport, Report, ShapeReport, TargetReport};
use super::duration::duration;
use super::earlier::EarlierReport;
use super::failure::FailureReport;
use super::leaders;
use super::legend;
use super::not_built::LastReport;
use super::paint::{BAD, BOLD, DIM, GOOD, OPEN, paint};
use super::rounds_text;
use super::text::variant;
use super::wrong::{Told, UntriedReport};
use kforge_foundation::base::count;
use kforge_types::record::Verdict;
use kforge_types::record::observation::witness;

/// How many champions, kernels or shapes a line names. The others are counted.
const NAMED: usize = 3;

/// The widest cell to which a column is aligned, in characters. A wider cell moves only the rest of its own line.
const WIDEST: usize = 32;

/// The least share of a peak that is printed. A smaller one says only that the shape cannot fill the device; the report has it.
const LEAST_SHARE: f64 = 0.05;

/// A kernel on a target that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// The package.
    pub package: String,
    /// The kernel.
    pub kernel: String,
    /// The target.
    pub target: String,
}

/// The results in brief, with ANSI styles.
pub fn brief(report: &Report) -> String {
    // A failure leaves the results of later steps unknown, and lines for them would look as if all were well.
    let begun = report.has_failed().then(|| report.clone().begun());
    let report = begun.as_ref().unwrap_or(report);
    let mut out = String::new();
    for package in &report.packages {
        write_package(&mut out, package, report.has_failed());
    }
    write_notes(&mut out, report);
    for (kernel, target) in report.packages.iter().flat_map(seats).filter(|(_, target)| target.has_failed()) {
        write_failed(&mut out, kernel, target);
    }
    let mut shapes = report.packages.iter().flat_map(seats).flat_map(|(_, target)| &target.shapes).peekable();
    if shapes.peek().is_some() && shapes.all(|shape| matches!(shape.verdict, Verdict::Unknown(_))) {
        let _ = writeln!(out, "{}", paint(BAD, "nothing is verified: the verdict of every kernel is unknown"));
    }
    out
}

/// The kernels on targets that failed, each once, in the order of the report.
pub fn failed(report: &Report) -> Vec<Failed> {
    let mut out: Vec<Failed> = vec![];
    for package in &report.packages {
        for (kernel, target) in seats(package).filter(|(_, target)| target.has_failed()) {
            let (package, kernel, target) = (package.name.clone(), kernel.name.clone(), target.target.clone());
            let failed = Failed { package, kernel, target };
            if !out.contains(&failed) {
                out.push(failed);
            }
        }
    }
    out
}

/// The kernels of a package on their targets.
fn seats(package: &PackageReport) -> impl Iterator<Item = (&KernelReport, &TargetReport)> {
    package.kernels.iter().flat_map(|kernel| kernel.targets.iter().map(move |target| (kernel, target)))
}

/// The name of a kernel, with its types.
fn name(kernel: &KernelReport, target: &TargetReport) -> String {
    if target.types.is_empty() { kernel.name.clone() } else { format!("{} [{}]", kernel.name, target.types) }
}

fn write_package(out: &mut String, package: &PackageReport, has_failed: bool) {
    let _ = writeln!(out, "{}", paint(BOLD, &package.name));
    for operator in package.operators.iter().filter(|operator| operator.verdict != Verdict::Pass) {
        let (style, why) = match &operator.verdict {
            Verdict::Fail(_) => (BAD, "fail".to_string()),
            other => (OPEN, other.to_string()),
        };
        let _ = writeln!(out, "  operator {}: {}", operator.name, paint(style, &why));
    }
    let rows: Vec<[(String, String); 5]> = seats(package)
        .filter(|(_, target)| !target.has_failed())
        .map(|(kernel, target)| cells(kernel, target, has_failed))
        .collect();
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].0.chars().count()).filter(|width| *width > 0);
        widths.clone().filter(|width| *width <= WIDEST).max().or(widths.min()).unwrap_or(0)
    };
    let widths = [0, 1, 2, 3, 4].map(width);
    for row in &rows {
        let mut line = String::from(" ");
        let last = (0..row.len()).rev().find(|at| !row[*at].0.is_empty()).unwrap_or(0);
        for (at, (plain, styled)) in row.iter().enumerate().take(last + 1).filter(|(at, _)| widths[*at] > 0) {
            let padding = if at == last { 0 } else { widths[at].saturating_sub(plain.chars().count()) + 1 };
            let _ = write!(line, " {styled}{:padding$}", "");
        }
        let _ = writeln!(out, "{line}");
    }
    for line in leaders::lines(package) {
        let _ = writeln!(out, "  {}", paint(DIM, &line));
    }
}

/// The cells of a line, each without and with styles: kernel, target, verdict, champion, time.
fn cells(kernel: &KernelReport, target: &TargetReport, has_failed: bool) -> [(String, String); 5] {
    let plain = |text: String, style| {
        let styled = if text.is_empty() { String::new() } else { paint(style, &text) };
        (text, styled)
    };
    let on = target.target.clone();
    let (champions, style) = match &target.not_built {
        Some(not_built) => (not_built.last.as_ref().map_or_else(String::new, LastReport::line), DIM),
        None => champions(target),
    };
    [
        plain(name(kernel, target), BOLD),
        (on.clone(), on),
        verdict(target, has_failed),
        plain(champions, style),
        plain(time(target), DIM),
    ]
}

/// The verdict on the champions: `pass`, `3 pass, 1 unknown`; and who says so if no device does. What has no verdict was only compiled. A build that ended at a
/// failure may have selected no champion; then only the variants that passed before are counted.
fn verdict(target: &TargetReport, has_failed: bool) -> (String, String) {
    let number = |is: fn(&ShapeReport) -> bool| target.shapes.iter().filter(|shape| is(shape)).count();
    let passed = number(|shape| shape.verdict == Verdict::Pass);
    let open = number(|shape| matches!(shape.verdict, Verdict::Unknown(_)));
    let (text, style) = match (passed, open) {
        _ if target.not_built.is_some() => ("not built".to_string(), OPEN),
        // The emulator decides nothing on a device.
        (0, 0) if target.is_wrong_on_cpu() => ("unknown".to_string(), OPEN),
        (0, 0) if target.machine.is_empty() => ("no result".to_string(), OPEN),
        (0, 0) => ("compiled".to_string(), DIM),
        (_, 0) if target.is_cut_short(has_failed) => {
            let passed: BTreeSet<&str> = target.shapes.iter().map(|shape| shape.variant.as_str()).collect();
            let verb = if passed.len() == 1 { "passes" } else { "pass" };
            (format!("{} {verb}, no champion", count(passed.len() as u64, "variant")), OPEN)
        }
        (_, 0) => ("pass".to_string(), GOOD),
        (0, _) => ("unknown".to_string(), OPEN),
        (passed, open) => (format!("{passed} pass, {open} unknown"), OPEN),
    };
    let said = target.shapes.iter().find(|shape| shape.verdict == Verdict::Pass);
    let by = said.map_or("", |shape| witness(shape.emulated, shape.interpreted, shape.in_torch));
    let doubt = [
        ("unconfined", target.shapes.iter().any(|shape| !shape.unconfined.is_empty())),
        ("no fresh trial", target.shapes.iter().any(|shape| shape.no_fresh.is_some())),
        ("known inputs", target.shapes.iter().any(|shape| !shape.known_inputs.is_empty())),
    ];
    let doubts: Vec<&str> = doubt.into_iter().filter(|(_, holds)| *holds).map(|(word, _)| word).collect();
    let mut plain = text.clone();
    let mut styled = paint(style, &text);
    for (word, style) in [(by, DIM)].into_iter().chain(doubts.into_iter().map(|word| (word, OPEN))) {
        if !word.is_empty() {
            let _ = write!(plain, " {word}");
            let _ = write!(styled, " {}", paint(style, word));
        }
    }
    (plain, styled)
}

/// The champions, in the order of their classes: `BLOCK=256`, `V=1, V=2 and 4 more`, `BLOCK=256 (provisional)`.
fn champions(target: &TargetReport) -> (String, anstyle::Style) {
    let mut names: Vec<&str> = vec![];
    for champion in &target.champions {
        let name = champion.variant.as_deref().map_or("no champion", |label| variant(untyped(label, target)));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut text = names.iter().take(NAMED).copied().collect::<Vec<_>>().join("; ");
    if names.len() > NAMED {
        let _ = write!(text, " and {} more", names.len() - NAMED);
    }
    let is_provisional = |champion: &ChampionReport| champion.provisional && champion.variant.is_some();
    let mut style = anstyle::Style::new();
    if target.champions.iter().any(is_provisional) {
        text += " (provisional)";
        style = OPEN;
    }
    if target.champions.iter().any(|champion| champion.variant.is_none()) {
        style = BAD;
    }
    if target.accepted {
        text += " (accepted)";
    }
    (text, style)
}

/// A variant without the types that its kernel's name has.
fn untyped<'l>(label: &'l str, target: &TargetReport) -> &'l str {
    match label.strip_prefix(target.types.as_str()) {
        Some(rest) if !target.types.is_empty() => rest.trim_start_matches(','),
        _ => label,
    }
}

/// The time of the champion at its slowest shape, and the share of the nearer peak: `4.80 us at scores, 49 % of bandwidth`. Without one, that of an earlier version.
fn time(target: &TargetReport) -> String {
    let Some((shape, variant, ns)) = target.slowest() else {
        return target.earlier.as_ref().map_or_else(String::new, EarlierReport::line);
    };
    let mine = target.rooflines.iter().filter(|found| found.variant == variant);
    let peak = mine.filter_map(|found| found.achieved.get(shape)).find_map(|reached| {
        let peak = reached.roofline().filter(|peak| peak.share >= LEAST_SHARE)?;
        let of = if reached.memory == Some(peak) { "bandwidth" } else { "arithmetic" };
        Some(format!(", {:.0} % of {of}", 100.0 * peak.share))
    });
    format!("{} at {shape}{}", duration(ns), peak.unwrap_or_default())
}

/// What needs attention, each reason once, with the kernels that it is about.
fn write_notes(out: &mut String, report: &Report) {
    let mut notes: Vec<(&str, anstyle::Style, String, Vec<String>)> = vec![];
    for (kernel, target) in report.packages.iter().flat_map(seats) {
        let place = format!("{} on {}", name(kernel, target), target.target);
        for (word, style, why) in attention(target) {
            match notes.iter_mut().find(|note| note.0 == word && note.2 == why) {
                Some(note) if note.3.contains(&place) => {}
                Some(note) => note.3.push(place.clone()),
                None => notes.push((word, style, why, vec![place.clone()])),
            }
        }
    }
    for (word, style, why, places) in notes {
        let more = places.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let places = places.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "  {} {places}{more}: {why}", paint(style, word));
    }
    if let Some(legend) = legend::line(report, legend::Figures::Warnings) {
        let _ = writeln!(out, "  {}", paint(DIM, &legend));
    }
}

/// What needs attention about a kernel on a target: a word, its style, and the reason.
fn attention(target: &TargetReport) -> Vec<(&'static str, anstyle::Style, String)> {
    let mut out = vec![];
    if let Some(why) = &target.stale {
        out.push(("stale", BAD, why.clone()));
    }
    if let Some(not_built) = &target.not_built {
        out.push(("not built", OPEN, not_built.line()));
    }
    for shape in target.shapes.iter().filter(|shape| !target.has_failure_of(shape)) {
        if let Verdict::Unknown(why) = &shape.verdict {
            out.push(("unknown", OPEN, why.to_string()));
        }
    }
    for (_, _, why) in &target.unavailable {
        out.push(("unavailable", OPEN, why.clone()));
    }
    if let Some(host) = &target.host {
        out.push(("untimed", OPEN, super::text::host_launched(host)));
    }
    if let Some(rounds) = &target.rounds {
        out.push(("optimized", DIM, rounds_text::summary(rounds)));
    }
    for champion in &target.champions {
        // What failed or is unavailable has a line of its own, which says more.
        let is_said = !target.unavailable.is_empty() && !target.is_wrong_on_cpu();
        if champion.variant.is_none() && !target.has_failed() && !is_said {
            out.push(("no champion", BAD, champion.because.clone()));
        }
        out.extend(target.not_confirmed(champion).into_iter().map(|line| ("warning", OPEN, line)));
        let harmful = target.harmful(champion).map(|(method, why)| format!("{method} is harmful: {why}"));
        out.extend(harmful.map(|why| ("warning", OPEN, why)));
    }
    out.extend(target.overtaken.iter().map(|overtaken| ("warning", OPEN, overtaken.line())));
    out
}

/// A kernel on a target that failed: the wrong variants with the shapes at which they are wrong, and the steps without a result.
fn write_failed(out: &mut String, kernel: &KernelReport, target: &TargetReport) {
    let wrong: Vec<&ShapeReport> =
        target.shapes.iter().filter(|shape| matches!(shape.verdict, Verdict::Fail(_))).collect();
    let mut what = vec![];
    if let (Some(told), false) = (Told::of(target), wrong.is_empty()) {
        let Told { who, what: is, why, untried } = told;
        what.push(format!("{who} {is} at {}{why}{untried}", shapes_of(&wrong)));
    }
    let failures = target.failures();
    what.extend(failures.iter().take(NAMED).map(FailureReport::line));
    if failures.len() > NAMED {
        what.push(count((failures.len() - NAMED) as u64, "more reason"));
    }
    if wrong.is_empty() {
        what.extend(target.untried.and_then(UntriedReport::alone));
    }
    // Of a build that goes on after a failure, other variants can be correct and have been selected.
    let passes = |champion: &ChampionReport| {
        let mut own = target.shapes.iter().filter(|shape| Some(&shape.variant) == champion.variant.as_ref()).peekable();
        own.peek().is_some() && own.all(|shape| shape.verdict == Verdict::Pass)
    };
    if !target.champions.is_empty() && target.champions.iter().all(passes) {
        let time = time(target);
        what.push(format!("champion {}{}{time}", champions(target).0, if time.is_empty() { "" } else { "  " }));
    }
    let name = paint(BOLD, &name(kernel, target));
    let _ = writeln!(out, "  {} {name} on {}: {}", paint(BAD, "fail"), target.target, what.join("; "));
}

/// The names of the shapes, each once.
fn shapes_of(wrong: &[&ShapeReport]) -> String {
    let mut names: Vec<&str> = vec![];
    for shape in wrong {
        if !names.contains(&shape.shape.as_str()) {
            names.push(&shape.shape);
        }
    }
    let more = names.len().saturating_sub(NAMED);
    let listed = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{listed} and {more} more") } else { listed }
}

#[cfg(test)]
mod tests {
    use super::super::document::RooflineReport;
    use super::super::not_built::NotBuiltReport;
    use super::*;
    use kforge_types::record::Unknown;
    use kforge_types::record::profile::{Achieved, Roofline, Share};

    fn shape(shape: &str, verdict: Verdict) -> ShapeReport {
        ShapeReport {
            shape: shape.into(),
            variant: "V=1".into(),
            verdict,
            emulated: false,
            interpreted: false,
            in_torch: false,
            unconfined: vec![],
            worst: None,
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

    fn champion(class: &str, label: &str) -> ChampionReport {
        let (class, variant) = (class.to_string(), Some(label.to_string()));
        ChampionReport {
            shapes: vec![class.clone()],
            class,
            variant,
            provisional: false,
            because: "of one".into(),
            versus: vec![],
        }
    }

    fn passed(label: &str) -> TargetReport {
        TargetReport {
            target: "cpu".into(),
            champions: vec![champion("all", label)],
            shapes: vec![shape("short", Verdict::Pass), shape("long", Verdict::Pass)],
            ..TargetReport::default()
        }
    }

    fn of(kernels: Vec<(&str, TargetReport)>) -> Report {
        let kernel = |(name, target): (&str, TargetReport)| KernelReport {
            name: name.into(),
            operator: "o".into(),
            targets: vec![target],
        };
        let kernels = kernels.into_iter().map(kernel).collect();
        let package = PackageReport { name: "p".into(), kernels, ..PackageReport::default() };
        Report { format_version: 1, packages: vec![package], ..Report::default() }
    }

    fn told(kernels: Vec<(&str, TargetReport)>) -> String {
        anstream::adapter::strip_str(&brief(&of(kernels))).to_string()
    }

    #[test]
    fn each_kernel_on_each_target_has_a_line_and_columns_align() {
        let mut timed = passed("BLOCK=256");
        let share = |share| Some(Share { share, peak_per_s: 4e12, measured: true, written: None });
        let reached = |time_ns, memory| Achieved {
            time_ns,
            bytes_per_s: 1e12,
            memory,
            ops_per_s: None,
            unit: "f32".into(),
            compute: None,
            waves: None,
        };
        let achieved =
            [("long".to_string(), reached(7970.0, share(0.494))), ("short".to_string(), reached(4000.0, share(0.9)))];
        let (variant, roofline) = ("BLOCK=256".to_string(), Roofline::default());
        timed.rooflines.push(RooflineReport { variant, shape: None, roofline, achieved: achieved.into() });
        let mut emulated = passed("");
        emulated.shapes.iter_mut().for_each(|shape| shape.emulated = true);
        emulated.types = "T=f16".into();
        assert_eq!(
            told(vec![("sum", timed), ("softmax", emulated)]),
            "p\n  sum              cpu  pass           BLOCK=256         7.97 us at long, 49 % of bandwidth\n  \
             softmax [T=f16]  cpu  pass emulated  the only variant\n"
        );
    }

    #[test]
    fn without_a_champion_a_build_that_failed_counts_variants_and_what_is_unavailable_is_said_once() {
        let mut wrong = passed("V=1");
        wrong.shapes[0].verdict = Verdict::Fail("`y` is wrong".into());
        let cut_short = TargetReport { champions: vec![], ..passed("V=1") };
        let said = told(vec![("wrong", wrong), ("short", cut_short.clone())]);
        assert!(said.contains("  short  cpu  1 variant passes, no champion\n"), "{said}");
        // Where nothing failed, `verify` selects no champion.
        assert!(told(vec![("short", cut_short)]).contains("  short  cpu  pass\n"));
        let mut open = passed("V=1");
        (open.champions[0].variant, open.shapes) = (None, vec![]);
        open.unavailable = vec![("verify".into(), 2, "Triton's interpreter needs numpy".into())];
        let said = told(vec![("open", open)]);
        assert!(said.contains("unavailable open on cpu: Triton's interpreter needs numpy"), "{said}");
        assert!(!said.contains("  no champion open"), "{said}");
    }

    #[test]
    fn what_a_build_did_not_get_to_is_not_built_and_has_its_last_result() {
        let last = LastReport {
            at: None,
            champions: vec!["V=2".into()],
            provisional: false,
            failed: false,
            passed: 2,
            unknown: 0,
            by: String::new(),
        };
        let not_built = |last| TargetReport {
            target: "h200".into(),
            not_built: Some(NotBuiltReport { step: "p/wrong/judge".into(), stopped: true, last }),
            ..TargetReport::default()
        };
        let mut wrong = passed("V=1");
        wrong.shapes[0].verdict = Verdict::Fail("`y` is wrong".into());
        let said = told(vec![("wrong", wrong), ("a", not_built(Some(last))), ("b", not_built(None))]);
        let lines = [
            "p",
            "  a  h200  not built  last known: pass, V=2",
            "  b  h200  not built",
            "  not built a on h200, b on h200: the build stopped at `p/wrong/judge`",
            "  fail wrong on cpu: 1 variant is wrong at short",
        ];
        assert_eq!(said, lines.join("\n") + "\n");
    }

    #[test]
    fn what_only_the_emulator_found_wrong_is_unknown_on_a_device_and_the_reason_is_told() {
        let mut open = passed("V=1");
        (open.champions[0].variant, open.shapes) = (None, vec![]);
        open.champions[0].because = "every variant that serves it is wrong on `cpu`".into();
        open.unavailable = vec![("verify".into(), 2, "no device".into())];
        (open.variants, open.wrong_on_cpu) = ((2, 0, 0), 2);
        let said = told(vec![("k", open.clone())]);
        assert!(said.contains("  k  cpu  unknown  no champion\n"), "{said}");
        assert!(said.contains("  no champion k on cpu: every variant that serves it is wrong on `cpu`\n"), "{said}");
        open.wrong_on_cpu = 1;
        let said = told(vec![("k", open)]);
        assert!(said.contains("  k  cpu  no result  no champion\n") && !said.contains("  no champion k"), "{said}");
    }

    #[test]
    fn one_reason_of_many_kernels_is_one_line() {
        let open = || TargetReport {
            shapes: vec![
                shape("short", Verdict::Unknown(Unknown::Undecided("noise".into()))),
                shape("long", Verdict::Unknown(Unknown::Undecided("noise".into()))),
            ],
            ..passed("V=1")
        };
        let text = told(vec![("a", open()), ("b", open()), ("c", open()), ("d", open()), ("e", passed("V=1"))]);
        assert_eq!(text.matches("a on cpu, b on cpu, c on cpu and 1 more: ").count(), 1, "{text}");
        assert!(text.contains("  a  cpu  unknown  V=1\n") && !text.contains("nothing is verified"), "{text}");
        assert!(told(vec![("a", open())]).ends_with("nothing is verified: the verdict of every kernel is unknown\n"));
    }

    #[test]
    fn what_failed_is_last_with_its_shapes_and_has_no_other_line() {
        let mut wrong = passed("V=1");
        wrong.variants = (3, 1, 2);
        wrong.shapes.push(shape("ragged", Verdict::Fail("off".into())));
        wrong.shapes.push(shape("ragged", Verdict::Fail("off again".into())));
        let ended = TargetReport { variants: (0, 0, 0), ..wrong.clone() };
        assert!(told(vec![("k", ended)]).contains("  fail k on cpu: 1 variant is wrong at ragged\n"));
        let mut broken = passed("V=1");
        broken.failed = ["a", "b", "c", "d"].map(|step| (step.to_string(), "no".to_string())).into();
        let report = of(vec![("wrong", wrong), ("good", passed("V=1")), ("broken", broken)]);
        assert_eq!(
            anstream::adapter::strip_str(&brief(&report)).to_string(),
            "p\n  good  cpu  pass  V=1\n  fail wrong on cpu: 2 of 3 variants are wrong at ragged\n  \
             fail broken on cpu: no (4 steps); champion V=1\n"
        );
        let names: Vec<String> = failed(&report).into_iter().map(|failed| failed.kernel).collect();
        assert_eq!(names, ["wrong", "broken"]);
    }

    #[test]
    fn at_eighty_columns_labels_and_names_break_only_at_their_separators() {
        let label = "TILE_M=128,TILE_N=64,STAGES=3,VECTOR_WIDTH=4,SPLIT_K=true,SWIZZLE=xor,PIPELINE=async";
        let name = "a_kernel_with_a_name_of_many_words_that_is_longer_than_a_line_of_a_terminal_is";
        let mut wrong = passed(label);
        wrong.shapes = vec![shape("ragged", Verdict::Fail("off".into()))];
        let shown = brief(&of(vec![("k", passed(label)), (name, passed(label)), ("wrong", wrong)]));
        let fitted = super::super::fit::fit(&shown, Some(80), 4);
        let plain = anstream::adapter::strip_str(&fitted).to_string();
        assert!(plain.lines().all(|line| line.chars().count() <= 80), "{plain}");
        let whole = anstream::adapter::strip_str(&shown).to_string();
        for end in plain.lines().map(str::trim) {
            let is_between_words = whole.contains(&format!("{end} ")) || whole.contains(&format!("{end}\n"));
            assert!(is_between_words || end.ends_with([',', '=', '_']), "{end:?} in\n{plain}");
        }
        // Nothing is lost.
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        assert_eq!(letters(&plain), letters(&whole));
    }

    #[test]
    fn what_failed_is_not_also_without_a_champion() {
        let none = |because: &str| {
            let champion = ChampionReport { variant: None, because: because.into(), ..champion("all", "") };
            TargetReport { champions: vec![champion], ..passed("V=1") }
        };
        let mut wrong = none("every variant that serves it is wrong");
        wrong.variants = (1, 0, 1);
        wrong.shapes = vec![shape("ragged", Verdict::Fail("off".into()))];
        let text = told(vec![("wrong", wrong), ("open", none("no variant serves it"))]);
        assert!(text.contains("  no champion open on cpu: no variant serves it\n"), "{text}");
        assert!(text.ends_with("  fail wrong on cpu: 1 of 1 variant is wrong at ragged\n"), "{text}");
        assert!(!text.contains("every variant that serves it"), "{text}");
    }

    #[test]
    fn after_an_edit_the_last_known_time_is_that_of_an_earlier_version() {
        let earlier = EarlierReport { shape: "llama".into(), variant: "V=2".into(), ns: 7970.0, at: None };
        let edited = TargetReport { earlier: Some(earlier), ..passed("V=1") };
        assert_eq!(told(vec![("k", edited)]), "p\n  k  cpu  pass  V=1  7.97 us at llama of an earlier version\n");
    }

    #[test]
    fn champions_of_several_classes_are_named_once_and_bounded() {
        let named = |labels: &[&str]| {
            let champions = labels.iter().map(|label| champion("c", label)).collect();
            champions_of(TargetReport { champions, ..TargetReport::default() })
        };
        fn champions_of(target: TargetReport) -> String {
            champions(&target).0
        }
        assert_eq!(named(&["V=1", "V=2", "V=1"]), "V=1; V=2");
        assert_eq!(named(&["V=1", "V=2", "V=3", "V=4", "V=5"]), "V=1; V=2; V=3 and 2 more");
        let provisional = ChampionReport { provisional: true, ..champion("all", "V=1") };
        let target = TargetReport { champions: vec![provisional], accepted: true, ..TargetReport::default() };
        assert_eq!(champions_of(target), "V=1 (provisional) (accepted)");
    }
}
