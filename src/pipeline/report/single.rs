//! The result of one variant on one shape, as text. Knows observations and judgements; does not judge.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};

use super::text::{known, of_allowed};
use kforge_foundation::base::count;
use kforge_numerics::measure::compare::show;
use kforge_types::model::Problem;
use kforge_types::model::coordinates::coordinates;
use kforge_types::record::observation::witness;
use kforge_types::record::params::Judgement;
use kforge_types::record::{Determinism, OutputObserved, TrialObserved, Verdict, VerifyObservation};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const OPEN: Style = AnsiColor::Yellow.on_default().bold();

/// Rows in a table of elements.
const ROWS: usize = 8;

/// What is shown.
pub struct Single<'s> {
    /// The kernel, its variant, target and shape, for the heading.
    pub heading: String,
    /// The judgement.
    pub judgement: &'s Judgement,
    /// Other notes of the judge step, one sentence each.
    pub noted: Vec<&'s str>,
    /// The observation; none if nothing could run.
    pub observation: Option<&'s VerifyObservation>,
    /// The operator at that shape, for coordinates.
    pub problem: Option<&'s Problem>,
}

/// The text, with ANSI styles.
pub fn text(single: &Single<'_>) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{BOLD}{}{BOLD:#}", single.heading);
    let judgement = single.judgement;
    let hosted = single.observation.is_some_and(VerifyObservation::is_host_launched);
    let witness = match judgement.emulated {
        true => format!(" ({})", witness(true, judgement.interpreted, judgement.in_torch)),
        false if hosted => " (host-launched)".to_string(),
        false => String::new(),
    };
    let _ = match &judgement.verdict {
        Verdict::Pass => writeln!(out, "  {GOOD}pass{GOOD:#}{witness}"),
        Verdict::Fail(why) => writeln!(out, "  {BAD}fail{BAD:#}{witness}: {why}"),
        Verdict::Unknown(why) => writeln!(out, "  {OPEN}unknown{OPEN:#}: {why}"),
    };
    for missing in &judgement.unconfined {
        let _ = writeln!(out, "  {OPEN}unconfined{OPEN:#}: {missing}");
    }
    if let Some(why) = &judgement.no_fresh {
        let _ = writeln!(out, "  {OPEN}no fresh trial{OPEN:#}: {why}");
    }
    if !judgement.known_inputs.is_empty() {
        let _ = writeln!(out, "  {OPEN}known to candidates{OPEN:#}: {}", known(&judgement.known_inputs));
    }
    for line in judgement.explanation.lines() {
        let _ = writeln!(out, "    {line}");
    }
    for line in &single.noted {
        let _ = writeln!(out, "  {line}");
    }
    if let Some(worst) = judgement.worst {
        let _ = writeln!(out, "  largest error: {}", of_allowed(worst, 3));
    }
    let Some(observation) = single.observation else { return out };
    let _ = match &observation.determinism {
        Determinism::Stable => writeln!(out, "  repeated runs gave the same bits"),
        Determinism::Differs { output, spread } => {
            writeln!(out, "  repeated runs differ in `{output}` by up to {spread:e}")
        }
        Determinism::Unknown => Ok(()),
    };
    // A failure's explanation already shows most findings.
    for finding in observation.findings.iter().filter(|f| !judgement.explanation.contains(&f.message)) {
        let times = if finding.count > 1 { format!(" ({} times)", finding.count) } else { String::new() };
        let _ = writeln!(out, "  {BAD}found{BAD:#} {}{times}", finding.message);
    }
    // What was drawn for this verification is shown only where it explains a failure: otherwise the same kernel would look different each time.
    let known = |trial: &&TrialObserved| {
        observation.fresh_trial(trial.trial).is_none() || matches!(judgement.verdict, Verdict::Fail(_))
    };
    let trials: Vec<&TrialObserved> = observation.trials.iter().filter(known).collect();
    let names: Vec<&str> =
        observation.trials.first().map_or(vec![], |t| t.outputs.iter().map(|o| o.output.as_str()).collect());
    for name in names {
        output(&mut out, name, &trials, single.problem);
    }
    out
}

/// The trial in which an output has its largest error, and the elements of that output that decide whether a tolerance holds, largest errors first.
fn output(out: &mut String, name: &str, trials: &[&TrialObserved], problem: Option<&Problem>) {
    let of = |o: &OutputObserved| o.front.first().map_or(0.0, |p| p.error);
    let seen = trials.iter().flat_map(|t| t.outputs.iter().filter(|o| o.output == name).map(move |o| (t, o)));
    let Some((trial, observed)) = seen.max_by(|(_, a), (_, b)| {
        (a.differing + a.class_differing).cmp(&(b.differing + b.class_differing)).then(of(a).total_cmp(&of(b)))
    }) else {
        return;
    };
    let _ = writeln!(
        out,
        "  output `{name}`: {} of {}, furthest off in trial {} ({})",
        count(observed.elements, "element"),
        observed.dtype,
        trial.trial,
        trial.distribution
    );
    let shape: Vec<u64> = problem.and_then(|p| p.tensor(name)).map(|t| t.shape.clone()).unwrap_or_default();
    let at = |index: u64| coordinates(index, &shape).unwrap_or_else(|| format!("[{index}]"));
    let mut rows: Vec<[String; 4]> = Vec::new();
    for exact in [&observed.first_class_differing, &observed.first_differing].into_iter().flatten() {
        rows.push([at(exact.index), exact.got.clone(), exact.want.clone(), "differs".into()]);
    }
    for point in observed.front.iter().take(ROWS) {
        let [got, want] = [point.got, point.want].map(|v| show(observed.dtype, v));
        rows.push([at(point.index), got, want, format!("{:.3e}", point.error)]);
    }
    if rows.is_empty() {
        let _ = writeln!(out, "    every element equals its expected value, bit for bit");
        return;
    }
    let heads = ["index", "got", "want", "error"];
    let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).chain([heads[i].len()]).max().unwrap_or(0);
    let widths: Vec<usize> = (0..4).map(width).collect();
    let line = |cells: [&str; 4]| {
        let cells: Vec<String> = cells.iter().zip(&widths).map(|(c, w)| format!("{c:>w$}")).collect();
        format!("    {}", cells.join("  "))
    };
    if !observed.front.is_empty() {
        let _ = writeln!(
            out,
            "{DIM}    these elements decide every tolerance: no other element has a larger error at a value as large{DIM:#}"
        );
    }
    let _ = writeln!(out, "{DIM}{}{DIM:#}", line(heads));
    for row in &rows {
        let _ = writeln!(out, "{}", line([&row[0], &row[1], &row[2], &row[3]]));
    }
    let last = observed.front.len().saturating_sub(ROWS);
    if last > 0 {
        let _ = writeln!(out, "{DIM}    and {last} more{DIM:#}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_numerics::measure::compare::Comparison;
    use kforge_numerics::measure::testing::observed;
    use kforge_types::model::DType;

    #[test]
    fn values_have_the_digits_of_their_type_and_errors_few() {
        let (got, want) = ([f64::from(0.1f32)], [f64::from(0.7f32)]);
        let mut compared = Comparison::new("y", DType::F32, &[1], 0.7, None);
        compared.floats(0, &got, &want, None);
        let observation = observed(compared);
        let verdict = Verdict::Fail("it is wrong".into());
        let judgement = Judgement { emulated: true, worst: Some(521_774.833_17), ..Judgement::bare(verdict) };
        let shown = Single {
            heading: "k".into(),
            judgement: &judgement,
            noted: vec!["note: so it is"],
            observation: Some(&observation),
            problem: None,
        };
        let text = anstream::adapter::strip_str(&text(&shown)).to_string();
        assert!(text.contains("  note: so it is\n  largest error: 520,000 times what is allowed\n"), "{text}");
        assert!(text.contains("[0]  0.1   0.7  6.000e-1\n"), "{text}");
    }
}
