//! Evaluates a runner's reports about its run so that they can only worsen a result. Knows reports; does not know buffers, expected values or binaries.
//!
//! Until [`RunnerReport::Loading`], the reports are the runner's own. Later ones are still the runner's where the system refuses the report to the candidate's
//! threads (`confine`), but nothing here depends on that: the candidate shares the process. What each claim could gain the candidate:
//!
//! | claim | why it gains nothing |
//! |---|---|
//! | the run ended (`trial-done`) | its outputs are then compared whole; without this report, or with two, the run fails |
//! | a finding that fails | the run fails |
//! | a finding that hardware allows | fails nothing, excuses no early end, prevents no comparison, and takes no failure's place |
//! | not emulated | fails if not credible (`kforge_emulator::credible`); if credible, unknown unless another run or the verifier has a finding |
//! | printed text | shown as a note, without control characters |
//! | an attempt at a refused call | the run fails |
//! | confined, or loading, a second time | breaks the protocol, which fails |
//! | not a report, or of another run, or after its end | breaks the protocol |
//! | more than is stored | omitting a report is itself a failure, whatever it contained |
//! | an exit status | any except 0 fails, even our own; 0 before the end of the run fails unless a failure explains it |
//! | a status by which kforge's own code reports that it could not continue | fails, and is not stored |
//! | no claim at all | a missing end of the run is a failure |
//!
//! One forgery would gain something: an end of the run that is reported before the watch has reported a race. That is why the candidate's threads cannot report.

use crate::confine;
use std::fmt::Display;

use crate::message::{NotEmulated, RunnerReport};
use crate::runner::{PANICKED, REFUSED};
use kforge_foundation::base::worded;
use kforge_foundation::process::{Captured, End};
use kforge_types::record::{Finding, FindingKind};

/// The maximum number of failures stored from one runner's reports; further ones are counted with the last.
const MOST: usize = 64;
/// The maximum number of findings that fail nothing. They are limited separately, so that they cannot take a failure's place.
const MOST_ALLOWED: usize = 8;
/// The maximum number of characters stored of a runner's text.
const LONGEST: usize = 2000;
/// The runner's own allocator prints this when the system refuses memory.
const OURS_FAILED: &str = "memory allocation of ";
/// The hint for a runner that ran out of memory.
const RAISE: &str = "setting `build.memory-limit` limits its memory";

/// The summary of a runner's reports and end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunSummary {
    /// The findings: those that the runner reported, and those that follow from its end.
    pub findings: Vec<Finding>,
    /// Features that the runner claims the emulator does not support.
    pub not_emulated: Vec<NotEmulated>,
    /// What the kernel printed.
    pub printed: String,
    /// Whether the runner reported the end of the run.
    pub done: bool,
    /// Whether the runner reported a failure: its outputs are not worth comparing.
    pub faulty: bool,
    /// Whether the process ended normally, so that another run is worth trying.
    pub orderly: bool,
    /// What the system could not do to confine it.
    pub unconfined: Vec<String>,
    /// The failure, if another run may not have it (a time-out): the result must not be stored.
    pub passing: Option<String>,
    /// Whether the run was ended for its time.
    pub timed_out: bool,
    /// Why the runner could not run the candidate's code at all: the step has no result.
    pub refused: Option<String>,
    confined: bool,
    loading: bool,
    /// The number of trials, and how many of them the runner reported as ended.
    trials: u32,
    ended: u32,
    /// How many runs ended before anything was reported that makes outputs not worth comparing.
    clean: u32,
}

/// Summarizes the reports and the end of a runner that was to run `trials` trials, one after the other.
pub fn hear(stdout: &Captured, stderr: &Captured, end: End, trials: u32) -> RunSummary {
    let mut heard = RunSummary { trials, ..RunSummary::default() };
    let text = stdout.text();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match serde_json::from_str(line) {
            Ok(report) => heard.take(report),
            // Where the middle was omitted, the lines beside it are cut.
            Err(_) if stdout.left_out() > 0 => {}
            Err(_) => heard.broken("a malformed report"),
        }
    }
    if stdout.left_out() > 0 {
        heard.broken(&format!("{} bytes more than a report can have", stdout.left_out()));
    }
    heard.end(end, stderr);
    heard
}

impl RunSummary {
    /// Whether the run ended normally by its reports, so that its outputs are to be compared.
    pub fn is_whole(&self) -> bool {
        self.done && !self.faulty && self.not_emulated.is_empty()
    }

    /// How many of the runs, from the first on, have outputs that are to be compared: all if the process ended normally, otherwise those that ended before the
    /// first failure.
    pub fn whole_runs(&self) -> usize {
        (if self.is_whole() { self.trials } else { self.clean }) as usize
    }

    fn take(&mut self, report: RunnerReport) {
        match report {
            RunnerReport::Confined { missing } if !self.confined => {
                (self.confined, self.unconfined) = (true, missing);
            }
            RunnerReport::Confined { .. } => self.broken("a report from another confinement"),
            RunnerReport::Loading if self.confined && !self.loading => self.loading = true,
            RunnerReport::Loading => self.broken("a report from another start"),
            RunnerReport::Attempted { call } => {
                let message = format!("the kernel tried to {}", confine::attempt(call));
                self.conclude(Finding::new(FindingKind::Forbidden, message));
            }
            RunnerReport::Finding { trial, .. } | RunnerReport::TrialDone { trial } if trial >= self.trials => {
                self.broken("a report of a run that does not exist");
            }
            RunnerReport::Finding { trial, .. } if trial < self.ended => {
                self.broken("a report of a run that had ended")
            }
            RunnerReport::Finding { trial, .. } if trial > self.ended => {
                self.broken("a report of a run that had not begun");
            }
            RunnerReport::Finding { finding, .. } => {
                self.faulty |= !finding.kind.is_allowed();
                self.add(Finding { message: plain(&finding.message), ..finding });
            }
            RunnerReport::TrialDone { trial } if trial < self.ended => self.broken("a run that ended twice"),
            RunnerReport::TrialDone { trial } if trial > self.ended => self.broken("a run that ended before it began"),
            RunnerReport::TrialDone { .. } => {
                self.ended += 1;
                if !self.faulty && self.not_emulated.is_empty() {
                    self.clean = self.ended;
                }
                self.done = self.ended == self.trials;
            }
            RunnerReport::NotEmulated(_) if self.done => self.broken("a report after the last run had ended"),
            RunnerReport::NotEmulated(claim) => {
                if self.not_emulated.len() < MOST {
                    self.not_emulated.push(NotEmulated { what: worded(plain(&claim.what)), ..claim });
                }
            }
            RunnerReport::Printed { text } => {
                self.printed.extend(text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()));
            }
        }
    }

    /// Adds a finding that the runner reported. If there is no room, counts it with the last finding that also fails, or also does not.
    fn add(&mut self, finding: Finding) {
        let allowed = finding.kind.is_allowed();
        let most = if allowed { MOST_ALLOWED } else { MOST };
        let same = |other: &Finding| other.kind == finding.kind && other.message == finding.message;
        let like = |other: &&mut Finding| other.kind.is_allowed() == allowed;
        let full = self.findings.iter_mut().filter(like).count() >= most && !self.findings.iter().any(same);
        match self.findings.iter_mut().rev().find(like) {
            Some(last) if full => last.count = last.count.saturating_add(1),
            _ => self.conclude(finding),
        }
    }

    /// Adds a finding regardless of the limits. An identical one is counted with the earlier one.
    fn conclude(&mut self, finding: Finding) {
        let same = |other: &&mut Finding| other.kind == finding.kind && other.message == finding.message;
        match self.findings.iter_mut().find(same) {
            Some(other) => other.count = other.count.saturating_add(finding.count.max(1)),
            None => self.findings.push(finding),
        }
    }

    fn broken(&mut self, what: &str) {
        let message = format!("the runner's report was tampered with: {what}");
        self.conclude(Finding::new(FindingKind::Protocol, message));
    }

    /// Adds that a claim of a feature that is not emulated is not credible.
    pub fn forged(&mut self, what: &str, why: &dyn Display) {
        let message = format!("the kernel's process claims that `{what}` is not emulated, but {why}");
        self.conclude(Finding::new(FindingKind::Protocol, message));
    }

    /// Adds that the candidate ended the process before the run had ended.
    pub fn ended_early(&mut self, because: &str) {
        let message = format!("the kernel ended the process before it finished{because}");
        self.conclude(Finding::new(FindingKind::Exited, message));
    }

    fn end(&mut self, end: End, stderr: &Captured) {
        let failed = self.findings.iter().any(|finding| !finding.kind.is_allowed());
        let stderr = stderr.text();
        let last = plain(stderr.trim().lines().last().unwrap_or_default());
        let because = if last.is_empty() { String::new() } else { format!(": {last}") };
        if !self.loading {
            // The candidate's code had not run.
            let memory = if stderr.contains(OURS_FAILED) { format!("; {RAISE}") } else { String::new() };
            self.refused = Some(format!("the runner {end}{because}{memory}"));
            return;
        }
        match end {
            // The process ended normally, or it reported what stopped it. The verifier decides whether a feature that is not emulated excuses an early end.
            End::Exited(0) => {
                self.orderly = self.done;
                if !self.done && !failed && self.not_emulated.is_empty() {
                    self.ended_early(&because);
                }
            }
            End::Exited(code) => {
                let message = format!("the kernel's process {end}{because}");
                if code == i32::from(REFUSED) || code == PANICKED {
                    self.passing = Some(message.clone());
                }
                self.conclude(Finding::new(FindingKind::Exited, message));
            }
            End::Signalled(libc::SIGSYS) => {
                if !self.findings.iter().any(|finding| finding.kind == FindingKind::Forbidden) {
                    let message =
                        "the kernel tried to make a system call that is refused, with signals blocked".to_string();
                    self.conclude(Finding::new(FindingKind::Forbidden, message));
                }
            }
            End::Signalled(signal) if signal == libc::SIGXCPU || signal == libc::SIGXFSZ => {
                self.conclude(Finding::new(FindingKind::LimitExceeded, format!("the kernel's process was {end}")));
            }
            End::Signalled(_) => {
                self.conclude(Finding::new(FindingKind::Crash, format!("the kernel's process was {end}")));
            }
            End::TimedOut(_) => {
                let message = format!("the kernel {end} (setting `build.time-limit`)");
                self.passing = Some(message.clone());
                self.timed_out = true;
                self.conclude(Finding::new(FindingKind::NoProgress, message));
            }
            End::Misbehaved(_) => {
                self.conclude(Finding::new(FindingKind::LimitExceeded, format!("the kernel's process was {end}")));
            }
            End::Interrupted => self.refused = Some(format!("the runner was {end}")),
        }
    }
}

/// A runner's text in one line, limited in length.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST).collect()
}

#[cfg(test)]
mod tests;
