//! calibrate: can this operator's tolerance tell correct from wrong?

use kforge_engine::{Execution, Job, RunError};
use kforge_foundation::base::{Severity, count};
use kforge_numerics::measure::calibrate::calibrate;
use kforge_numerics::measure::deciding::{Proposal, proposal};
use kforge_types::model::Tolerance;
use kforge_types::record::params::{CalibrateParams, Calibration, Indecision, NullsObserved};
use kforge_types::record::{Unknown, Verdict};

use super::io;

/// The code of the warning that names the shapes at which all results are one value.
pub const CONSTANT: &str = "calibrate.constant";

/// Why a pass at such a shape would mean nothing.
const CONSTANT_HERE: &str = "at this shape all results are one value, whatever the inputs are";

/// The tolerances that were derived for `tolerance = "auto"`, one line for each length of sums.
fn derived(params: &CalibrateParams) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for (terms, tolerance) in params.cases.iter().filter_map(|case| Some((case.derived?, &case.tolerance))) {
        let stated = tolerance.iter().filter(|(_, t)| **t != Tolerance::default());
        let parts: Vec<String> = stated.map(|(output, t)| terms_of(output, t)).collect();
        let line = format!("tolerance derived for sums of up to {terms} terms: {}", parts.join("; "));
        if !parts.is_empty() && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// The terms of an output's derived tolerance.
fn terms_of(output: &str, t: &Tolerance) -> String {
    let near = if t.atol == t.rtol {
        format!("atol = rtol = {:.2e}", t.atol)
    } else {
        format!("atol = {:.2e}, rtol = {:.2e}", t.atol, t.rtol)
    };
    let scaled = if t.scaled > 0.0 { format!(", scaled = {:.2e} in {}", t.scaled, t.acc) } else { String::new() };
    format!("`{output}` {near}, ulp = {}{scaled}", t.ulp)
}

/// Why a pass would mean nothing: for each undecided output, the first null candidate that it accepts. None if the operator decides.
fn why(calibration: &Calibration) -> Option<String> {
    let of = |(output, candidates): (&String, &Vec<String>)| {
        let more =
            if candidates.len() > 1 { format!(" and {} more answers", candidates.len() - 1) } else { String::new() };
        Some(format!("`{output}` accepts {}{more} at every shape", candidates.first()?))
    };
    let parts: Vec<String> = calibration.indecisive.iter().filter_map(of).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What to change so that the operator decides: lines to paste.
fn advice(params: &CalibrateParams, proposal: &Proposal) -> String {
    let of_shapes = params.cases.iter().all(|case| case.own);
    let list = |outputs: &[String]| outputs.iter().map(|output| format!("\"{output}\"")).collect::<Vec<_>>().join(", ");
    // The line replaces the declared list.
    let declare = |more: Vec<String>| {
        let all: Vec<String> = params.undecidable.iter().cloned().chain(more).collect();
        format!("`verify.undecidable = [{}]`", list(&all))
    };
    let mut lines = vec![];
    if let Some(line) = &proposal.tolerance {
        let place = match (of_shapes, params.typed) {
            (true, _) => " for its shapes; each states a tolerance of its own",
            (false, true) => " in `tolerance`",
            (false, false) => "",
        };
        lines.push(format!(
            "help: paste `{line}`{place}: it rejects these answers, and results that are off by a few roundings meet it"
        ));
    }
    if proposal.undecidable.is_empty() {
        let outputs = proposal.decided.clone();
        lines.push(format!(
            "help: if results may be less accurate than that, nothing decides: paste {}",
            declare(outputs)
        ));
    } else {
        lines.push(format!(
            "help: no tolerance that correct results can meet decides {}: declare shapes or inputs with other results, or paste {}",
            proposal.undecidable.iter().map(|output| format!("`{output}`")).collect::<Vec<_>>().join(", "),
            declare(proposal.undecidable.clone())
        ));
    }
    lines.join("\n")
}

/// Runs the step.
pub fn run(job: &Job<'_>) -> Result<Execution, RunError> {
    let params: CalibrateParams = io::params(job)?;
    let nulls: Vec<NullsObserved> =
        (0..params.cases.len()).map(|i| io::required(job, &format!("nulls:{i}"))).collect::<Result<_, _>>()?;
    let calibration = calibrate(&params, &nulls);
    let mut notes = Vec::new();
    for (candidate, cases) in &calibration.weak {
        let which: Vec<&str> =
            cases.iter().filter_map(|c| params.cases.get(*c)).map(|c| c.distribution.as_str()).collect();
        let text = format!(
            "a kernel that gives {candidate} would pass {} of {} ({})",
            cases.len(),
            count(params.cases.len(), "trial"),
            which.join(", ")
        );
        notes.push(io::note(Severity::Note, "calibrate.weak", text));
    }
    let severity = if params.require { Severity::Error } else { Severity::Warning };
    if !calibration.indecisive.is_empty() {
        let of = |(output, candidates): (&String, &Vec<String>)| -> Vec<String> {
            let line = |candidate: &String| {
                format!(
                    "indecisive: a kernel that gives {candidate} as {output} would pass every shape and distribution"
                )
            };
            candidates.iter().map(line).collect()
        };
        let mut lines: Vec<String> = calibration.indecisive.iter().flat_map(of).collect();
        lines.push(advice(&params, &proposal(&params, &nulls, &calibration)));
        notes.push(io::note(severity, "calibrate.indecisive", lines.join("\n")));
    }
    for output in &params.undecidable {
        let text = match calibration.undecidable.get(output) {
            Some(candidates) => format!(
                "`{output}` is declared undecidable: a kernel that gives {} as it would pass every shape and distribution",
                candidates.join(" or ")
            ),
            // Without a null candidate nothing is known.
            None if params.cases.is_empty() => continue,
            None => format!(
                "`{output}` is declared undecidable, but its tolerance decides: leave it out of `verify.undecidable`"
            ),
        };
        notes.push(io::note(Severity::Note, "calibrate.undecidable", text));
    }
    for text in derived(&params) {
        notes.push(io::note(Severity::Note, "calibrate.derived", text));
    }
    if !calibration.constant.is_empty() {
        let shapes: std::collections::BTreeSet<&String> = params.cases.iter().map(|case| &case.shape).collect();
        let text = format!(
            "indecisive at {} of {}: all results are one value there, whatever the inputs are, so a kernel that reads nothing would pass\nhelp: declare shapes or inputs with other results; the verdicts at the other shapes stand",
            calibration.constant.len(),
            count(shapes.len() as u64, "shape")
        );
        notes.push(io::note(Severity::Warning, CONSTANT, text));
    }
    let why = why(&calibration);
    let verdict = match (&why, params.absent) {
        (Some(why), _) if params.require => Verdict::Fail(format!("indecisive: {why}")),
        (Some(why), _) => Verdict::Unknown(Unknown::Indecisive(why.clone())),
        // Nothing was compared, so it is unknown whether the tolerance can tell correct from wrong.
        (None, Some(why)) => Verdict::Unknown(why),
        (None, None) => Verdict::Pass,
    };
    let candidates: std::collections::BTreeSet<&String> = nulls.iter().flat_map(|n| n.candidates.keys()).collect();
    let mut ran = io::one(
        job,
        "calibration",
        &calibration,
        format!("{} over {}", count(candidates.len(), "null candidate"), count(params.cases.len(), "trial")),
    )?;
    for shape in params.cases.iter().map(|case| &case.shape).collect::<std::collections::BTreeSet<_>>() {
        let constant = || calibration.constant.contains(shape).then(|| CONSTANT_HERE.to_string());
        let of_shape = Indecision { why: why.clone().or_else(constant) };
        ran.outputs.insert(format!("indecision:{shape}"), io::keep(job, &of_shape)?);
    }
    ran.outputs.insert("indecision".into(), io::keep(job, &Indecision { why })?);
    ran.notes = notes;
    Ok(io::judged(ran, verdict))
}
