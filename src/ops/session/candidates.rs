//! The workspace's memory of candidates: stores the results of a build's candidates, and returns stored candidates with the sources that still exist. Knows
//! builds, the workspace and the answers; ranks nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::build::{Packages, Ready};
use super::generated::show;
use super::open::{Opened, Session};
use super::rounds::{Recorded, Seat};
use crate::Error;
use crate::event::Warning;
use kforge_engine::answers::Answers;
use kforge_engine::candidates::Candidates;
use kforge_foundation::base::Digest;
use kforge_foundation::base::files::write_if_changed;
use kforge_numerics::measure::stats::geometric_mean;
use kforge_pipeline::optimize::kind::Kind;
use kforge_pipeline::optimize::{contract, memory};
use kforge_pipeline::plan::variants::PlannedVariant;
use kforge_pipeline::report::Report;
use kforge_pipeline::report::document::TargetReport;
use kforge_pipeline::report::rounds::RoundsReport;
use kforge_project::workspace::Member;
use kforge_project::workspace::find::MANIFEST;
use kforge_types::model::{Kernel, Operator};
use kforge_types::record::candidate::{Became, Candidate};
use kforge_types::record::{StepKind, Verdict};

/// The file among the outputs with the workspace's folder at the time when its candidates were last stored.
const ROOT: &str = "root";

/// A source that still exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// The source.
    pub text: String,
    /// The file that holds the source: a file of the package, the copy of a generated source, or the record of the answer.
    pub place: PathBuf,
}

impl Session {
    /// Stores the results of a whole build. An error is only a warning, because the build itself has succeeded.
    pub fn remember(&self, opened: &Opened, packages: &Packages, ready: &Ready<'_>, report: &Report) {
        let found = found(packages, ready, report);
        if found.is_empty() {
            return;
        }
        let changed = kept(opened).change(|before| memory::merged(before, found));
        // Record the workspace's folder, to recognize a later move.
        let place = opened.workspace.root.as_os_str().as_encoded_bytes();
        let changed = changed.and_then(|passed| write_if_changed(&opened.target.join(ROOT), place).map(|_| passed));
        match changed {
            Ok(None) => {}
            Ok(Some(passed)) => self.reporter.warn(Warning::Candidates(passed)),
            Err(e) => self.reporter.warn(Warning::NotRemembered(e)),
        }
    }

    /// The stored candidates, with what their operators reveal today.
    pub fn remembered(&self, opened: &Opened) -> Result<Vec<Candidate>, Error> {
        let held = kept(opened).read().map_err(Error::Remembered)?;
        if let Some(passed) = held.passed {
            self.reporter.warn(Warning::Candidates(passed));
        }
        let mut candidates = held.candidates;
        for candidate in &mut candidates {
            let operator = member(opened, &candidate.package).and_then(|m| m.package.operator(&candidate.operator));
            if let Some(operator) = operator {
                let kind = Kind::of(operator);
                (candidate.pattern, candidate.level) = (kind.pattern, kind.level);
            }
        }
        Ok(candidates)
    }
}

/// The candidates stored for a workspace. If the workspace has moved, that is, its outputs name another folder that no longer has a manifest, the candidates of
/// that folder are included.
pub(crate) fn kept(opened: &Opened) -> Candidates {
    let root = &opened.workspace.root;
    let kept = Candidates::new(&opened.home, root);
    let Ok(before) = std::fs::read(opened.target.join(ROOT)) else { return kept };
    let before = PathBuf::from(OsString::from_vec(before));
    match before != *root && !before.join(MANIFEST).exists() {
        true => kept.moved_from(&opened.home, &before),
        false => kept,
    }
}

/// The source of a candidate, if it still exists and is unchanged.
pub(crate) fn source(opened: &Opened, candidate: &Candidate) -> Option<Source> {
    let wanted = candidate.source?;
    let found = match answered(opened, candidate) {
        Some(found) => found,
        // The candidate is a variant of the declared kernel.
        None => {
            let member = member(opened, &candidate.package)?;
            let kernel = member.package.kernel(&candidate.kernel)?;
            let mut found = Source { text: declared(member, kernel)?, place: member.folder.join(&kernel.source) };
            // No file of the package holds a template's output. The copy in the output folder may have been removed by `kforge clean`.
            if kernel.made().is_some() && Digest::of(found.text.as_bytes()) == wanted {
                found.place = show(&opened.target, &member.package.name, kernel, &found.text).ok()?;
            }
            found
        }
    };
    (Digest::of(found.text.as_bytes()) == wanted).then_some(found)
}

/// The source in a recorded answer.
fn answered(opened: &Opened, candidate: &Candidate) -> Option<Source> {
    let chain = candidate.chain?;
    let store = Answers::new(&opened.home);
    let answers = store.list(&chain).ok()?.answers;
    let at = (candidate.round, candidate.attempt);
    let answer = answers.into_iter().find(|answer| (answer.question.round, answer.question.attempt) == at)?;
    let place = store.folder(&chain).join(format!("{}-{}.json", at.0, at.1));
    Some(Source { text: answer.proposal?.source?, place })
}

fn member<'o>(opened: &'o Opened, package: &str) -> Option<&'o Member> {
    opened.workspace.members.iter().find(|m| m.package.name == package)
}

/// The source of a declared kernel.
fn declared(member: &Member, kernel: &Kernel) -> Option<String> {
    match kernel.made() {
        Some(made) => Some(made.source.to_string()),
        None if kernel.is_unstarted() => None,
        None => {
            let bytes = std::fs::read(member.folder.join(&kernel.source)).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        }
    }
}

/// The results of the candidates of rounds, and of the champions of kernels without rounds.
fn found(packages: &Packages, ready: &Ready<'_>, report: &Report) -> Vec<Candidate> {
    let seats: BTreeMap<&Seat, &Recorded> = ready.recorded.iter().map(|r| (&r.seat, r)).collect();
    let mut out = vec![];
    for package in &report.packages {
        let Some(member) = packages.member(&package.name) else { continue };
        for (of, target) in package.kernels.iter().flat_map(|k| k.targets.iter().map(move |t| (k, t))) {
            let seat = Seat {
                package: package.name.clone(),
                kernel: of.name.clone(),
                types: target.types.clone(),
                target: target.target.clone(),
            };
            let recorded = seats.get(&seat).copied();
            out.extend(of_seat(member, ready, &seat, target, recorded).unwrap_or_default());
        }
    }
    out
}

/// The common fields of a seat's candidates, and the data for the others.
struct SeatCandidates<'a> {
    common: Candidate,
    kernel: &'a Kernel,
    declared: Option<Digest>,
    builds: BTreeMap<&'a str, &'a PlannedVariant>,
    target: &'a TargetReport,
}

fn of_seat(
    member: &Member,
    ready: &Ready<'_>,
    seat: &Seat,
    target: &TargetReport,
    recorded: Option<&Recorded>,
) -> Option<Vec<Candidate>> {
    let package = &member.package;
    let kernel = package.kernel(&seat.kernel)?;
    let operator = package.operator(&kernel.operator)?;
    let arch = &package.targets.get(&seat.target)?.arch;
    let parts = [seat.package.as_str(), &seat.kernel, &seat.types, &seat.target, StepKind::Select.name()];
    let id: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let selected = ready.expander.selected(&ready.expander.decisive(&id.join("/")))?;
    let kind = Kind::of(operator);
    let common = Candidate {
        package: seat.package.clone(),
        kernel: seat.kernel.clone(),
        operator: operator.name.clone(),
        types: seat.types.clone(),
        language: kernel.language,
        target: seat.target.clone(),
        arch: arch.name().into(),
        contract: match recorded {
            Some(recorded) => Digest::of(recorded.contract.as_bytes()),
            None => Digest::of(contract_of(member, operator, &seat.types)?.as_bytes()),
        },
        pattern: kind.pattern,
        level: kind.level,
        chain: None,
        round: 0,
        attempt: 0,
        variant: None,
        methods: vec![],
        became: Became::Undecided,
        time_ns: None,
        speedup: None,
        champion: true,
        source: None,
    };
    let seen = SeatCandidates {
        common,
        kernel,
        declared: declared(member, kernel).map(|text| Digest::of(text.as_bytes())),
        builds: selected.builds.iter().map(|build| (build.label.as_str(), build)).collect(),
        target,
    };
    Some(match (&target.rounds, recorded) {
        (Some(rounds), Some(recorded)) => seen.tried(rounds, recorded),
        _ => seen.champions(),
    })
}

fn contract_of(member: &Member, operator: &Operator, types: &str) -> Option<String> {
    let own = |file: &str| std::fs::read_to_string(member.folder.join(file)).ok();
    let choice = operator.choices().into_iter().find(|choice| choice.label == types)?;
    Some(contract::text(operator, &choice, &own))
}

impl SeatCandidates<'_> {
    /// The candidates of rounds. Of the declared variants, only those that were champion.
    fn tried(&self, rounds: &RoundsReport, recorded: &Recorded) -> Vec<Candidate> {
        let first = self.target.basis.as_ref().map(|basis| basis.declared.as_str());
        let start = rounds.candidates.iter().find(|c| c.variant.is_some() && c.variant.as_deref() == first);
        // A wrong variant is not a baseline.
        let start = start.filter(|c| c.became != Became::Wrong).and_then(|c| c.time_ns);
        let mut out = vec![];
        for c in rounds.candidates.iter().filter(|c| c.round > 0 || !c.champion_after.is_empty()) {
            let answer = recorded
                .answers
                .iter()
                .find(|answer| (answer.question.round, answer.question.attempt) == (c.round, c.attempt));
            let build = c.variant.as_deref().and_then(|label| self.builds.get(label).copied());
            out.push(Candidate {
                chain: (c.round > 0).then_some(recorded.chain),
                round: c.round,
                attempt: c.attempt,
                variant: c.variant.clone(),
                methods: match build {
                    Some(build) => self.methods(build),
                    None => answer.map(|answer| answer.question.methods.clone()).unwrap_or_default(),
                },
                became: c.became,
                time_ns: c.time_ns,
                speedup: start.zip(c.time_ns).map(|(start, time)| start / time),
                champion: !c.champion_after.is_empty(),
                source: match build {
                    Some(build) => self.source(build),
                    None => answer
                        .and_then(|answer| answer.proposal.as_ref()?.source.as_ref())
                        .map(|text| Digest::of(text.as_bytes())),
                },
                ..self.common.clone()
            });
        }
        out
    }

    /// The champions of a kernel without rounds.
    fn champions(&self) -> Vec<Candidate> {
        let mut out: Vec<Candidate> = vec![];
        for label in self.target.champions.iter().filter_map(|c| c.variant.as_ref()) {
            let Some(build) = self.builds.get(label.as_str()) else { continue };
            if out.iter().any(|c| c.variant.as_ref() == Some(label)) {
                continue;
            }
            let times = self.times(label);
            let slowest = times.values().copied().max_by(f64::total_cmp);
            let base = self.target.basis.as_ref().map(|basis| self.times(&basis.declared)).unwrap_or_default();
            let speedups: Vec<f64> = times.iter().filter_map(|(shape, time)| Some(base.get(shape)? / time)).collect();
            let sound = self.target.basis.as_ref().is_some_and(|basis| self.became(&basis.declared) != Became::Wrong);
            out.push(Candidate {
                variant: Some(label.clone()),
                methods: self.methods(build),
                became: self.became(label),
                time_ns: slowest,
                speedup: (sound && !speedups.is_empty()).then(|| geometric_mean(&speedups)),
                source: self.source(build),
                ..self.common.clone()
            });
        }
        out
    }

    /// The median times of a variant at the shapes at which it was timed, hot or cold as the selection uses them.
    fn times(&self, label: &str) -> BTreeMap<&str, f64> {
        let hot = self.target.basis.as_ref().is_some_and(|basis| basis.hot);
        let mine = self.target.times.iter().filter(|time| time.variant == label);
        mine.filter_map(|time| Some((time.shape.as_str(), if hot { time.hot_ns } else { time.cold_ns }?))).collect()
    }

    /// The state of a variant at the shapes that may be shown.
    fn became(&self, label: &str) -> Became {
        let verdicts: Vec<&Verdict> =
            self.target.shapes.iter().filter(|s| s.variant == label).map(|s| &s.verdict).collect();
        match () {
            () if verdicts.iter().any(|v| matches!(v, Verdict::Fail(_))) => Became::Wrong,
            () if Verdict::all_pass(verdicts) => Became::Correct,
            () => Became::Undecided,
        }
    }

    /// The methods that are on in a variant.
    fn methods(&self, build: &PlannedVariant) -> Vec<String> {
        let kernel = build.written.as_ref().map_or(self.kernel, |written| &written.kernel);
        let on = kernel.methods.iter().filter(|method| kernel.without(&build.variant, method).is_some());
        on.map(|method| method.id.clone()).collect()
    }

    fn source(&self, build: &PlannedVariant) -> Option<Digest> {
        match build.written.as_ref().and_then(|written| written.kernel.made()) {
            Some(made) => Some(Digest::of(made.source.as_bytes())),
            None => self.declared,
        }
    }
}
