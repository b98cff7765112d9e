//! What a runner reports about its one run, evaluated so that it can only worsen a result. Knows reports; does not know buffers, expectations or binaries.
//!
//! Up to [`RunnerReport::Loading`] a runner's report is its own. Everything after may come from the candidate, which shares its process. What each claim could gain it:
//!
//! | claim | why it gains nothing |
//! |---|---|
//! | the run ended (`trial-done`) | its outputs are then compared whole; without it, or twice, it is a failure |
//! | a finding that fails | it fails |
//! | a finding of what hardware allows | it fails nothing, excuses no early end, keeps no output from being compared, and takes no failure's place |
//! | not emulated | a claim that is not credible (`kforge_emulator::credible`) is a failure; a credible one makes the verdict unknown, unless another run or the verifier itself found something |
//! | printed text | shown as a note, without control characters |
//! | an attempt at a refused call | it fails |
//! | confined, or loading, once more | breaks the protocol, which fails |
//! | what is not a report, or of another run, or after its end | breaks the protocol |
//! | more than is kept | leaving something out is itself a failure, no matter what it was |
//! | an exit status | any but 0 fails, ours too; 0 before the end of the run fails unless a failure said why |
//! | a status by which kforge's own code says that it could not continue | fails, and is not remembered |
//! | nothing | no end of the run is a failure |

use crate::confine;
use std::fmt::Display;

use crate::message::{NotEmulated, RunnerReport};
use crate::runner::REFUSED;
use kforge_foundation::base::worded;
use kforge_foundation::process::{Captured, End};
use kforge_types::record::{Finding, FindingKind};

/// Failures kept of one runner by its word; the rest is counted with the last.
const MOST: usize = 64;
/// Findings kept apart from them that fail nothing, so that however many there are they take no failure's place.
const MOST_ALLOWED: usize = 8;
/// Characters kept of a text that a runner gave.
const LONGEST: usize = 2000;
/// The exit status of a Rust program that panicked: a runner's own fault, or a candidate that pretends to have panicked.
const PANICKED: i32 = 101;
/// What the runner's own allocator says when memory is refused to it.
const OURS_FAILED: &str = "memory allocation of ";
/// What to do where memory ran out.
const RAISE: &str = "setting `build.memory-limit` limits its memory";

/// What was heard.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunSummary {
    /// What went wrong, by its word and by how it ended.
    pub findings: Vec<Finding>,
    /// What it says the emulator does not do: claims.
    pub not_emulated: Vec<NotEmulated>,
    /// What the kernel printed.
    pub printed: String,
    /// Whether it says that the run has ended.
    pub done: bool,
    /// Whether something failed by its word: what the run left behind is not worth comparing.
    pub faulty: bool,
    /// Whether the process is as it should be at its end: another run is worth trying.
    pub orderly: bool,
    /// What the system could not do to confine it.
    pub unconfined: Vec<String>,
    /// Set if the failure may pass, with what it is (a time-out): the result must not be remembered.
    pub passing: Option<String>,
    /// Set if the runner could not do what it was asked to, before any code of the candidate's ran: the step has no result.
    pub refused: Option<String>,
    confined: bool,
    loading: bool,
    /// How many trials there are, and how many it says have ended.
    trials: u32,
    ended: u32,
}

/// Hears a runner that has ended, which was to run `trials` trials, one after the other.
pub fn hear(stdout: &Captured, stderr: &Captured, end: End, trials: u32) -> RunSummary {
    let mut heard = RunSummary { trials, ..RunSummary::default() };
    let text = stdout.text();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match serde_json::from_str(line) {
            Ok(report) => heard.take(report),
            // Where the middle was left out, the lines at its edges are torn.
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
    /// Whether the run got to its end, as far as it says: its outputs are to be compared.
    pub fn is_whole(&self) -> bool {
        self.done && !self.faulty && self.not_emulated.is_empty()
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

    /// Adds a finding by the runner's word, if there is room for its like; else it counts with the last of them.
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

    /// Adds a finding whatever the runner said before; one that says the same as another counts with it.
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

    /// Its claims that something is not emulated, if they are not credible.
    pub fn forged(&mut self, what: &str, why: &dyn Display) {
        let message = format!("the kernel's process claims that `{what}` is not emulated, but {why}");
        self.conclude(Finding::new(FindingKind::Protocol, message));
    }

    /// That it ended before its run did, by itself.
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
            // Nothing of the candidate's had run.
            let memory = if stderr.contains(OURS_FAILED) { format!("; {RAISE}") } else { String::new() };
            self.refused = Some(format!("the runner {end}{because}{memory}"));
            return;
        }
        match end {
            // It reported what stopped it, or it ended normally. Whether what is not emulated excuses an early end, the verifier decides.
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
                self.conclude(Finding::new(FindingKind::NoProgress, message));
            }
            End::Misbehaved(_) => {
                self.conclude(Finding::new(FindingKind::LimitExceeded, format!("the kernel's process was {end}")));
            }
            End::Interrupted => self.refused = Some(format!("the runner was {end}")),
        }
    }
}

/// A text of a runner's in one line, as much of it as is shown.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST).collect()
}

#[cfg(test)]
mod tests;
