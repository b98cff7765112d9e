//! What a runner said, heard so that it can only worsen a result. Knows reports; does not know buffers or expectations.

use std::collections::BTreeSet;

use crate::process::{Captured, End};
use crate::record::{Finding, FindingKind};
use crate::worker::message::RunnerReport;
use crate::worker::runner::REFUSED;

/// Findings kept of one runner; the rest is counted with the last.
const MOST: usize = 64;
/// The exit status of a Rust program that panicked: a runner's own fault, or a candidate that says so.
const PANICKED: i32 = 101;

/// What was heard.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Heard {
    /// What went wrong, by its word and by how it ended.
    pub findings: Vec<Finding>,
    /// What the emulator does not do.
    pub not_emulated: Option<String>,
    /// What the kernel printed.
    pub printed: String,
    /// The runs it says have ended.
    pub ended: BTreeSet<u32>,
    /// The runs in which something went wrong by its word: what they left behind is not worth comparing.
    pub faulty: BTreeSet<u32>,
    /// Set if it took too long, with how long: the result must not be remembered.
    pub timed_out: Option<String>,
    /// Set if the runner could not do what it was asked to: the step has no result.
    pub refused: Option<String>,
}

/// Hears a runner of `runs` runs that has ended.
pub fn hear(stdout: &Captured, stderr: &Captured, end: End, runs: u32) -> Heard {
    let mut heard = Heard::default();
    let text = stdout.text();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match serde_json::from_str(line) {
            Ok(report) => heard.take(report, runs),
            // Where the middle was left out, the lines at its edges are torn.
            Err(_) if stdout.left_out() > 0 => {}
            Err(_) => heard.broken("a report that is none"),
        }
    }
    heard.end(end, stderr, runs);
    heard
}

impl Heard {
    fn take(&mut self, report: RunnerReport, runs: u32) {
        match report {
            RunnerReport::Finding { trial, .. } | RunnerReport::TrialDone { trial } if trial >= runs => {
                self.broken("a report of a run that there is not");
            }
            RunnerReport::Finding { trial, .. } if self.ended.contains(&trial) => {
                self.broken("a report of a run that had ended");
            }
            RunnerReport::Finding { trial, finding } => {
                self.faulty.insert(trial);
                self.add(finding);
            }
            RunnerReport::TrialDone { trial } => {
                if !self.ended.insert(trial) {
                    self.broken("a run that ended twice");
                }
            }
            RunnerReport::NotEmulated { what } => {
                self.not_emulated.get_or_insert(what);
            }
            RunnerReport::Printed { text } => self.printed.push_str(&text),
        }
    }

    /// Adds a finding; one that says the same as another counts with it.
    fn add(&mut self, finding: Finding) {
        let same = |other: &Finding| other.kind == finding.kind && other.message == finding.message;
        let full = self.findings.len() >= MOST;
        match self.findings.iter().position(same) {
            Some(at) => self.findings[at].count = self.findings[at].count.saturating_add(finding.count.max(1)),
            None if !full => self.findings.push(finding),
            None => {
                if let Some(last) = self.findings.last_mut() {
                    last.count = last.count.saturating_add(1);
                }
            }
        }
    }

    fn broken(&mut self, what: &str) {
        let message = format!("the runner's report was tampered with: {what}");
        self.add(Finding::new(FindingKind::Protocol, message));
    }

    fn end(&mut self, end: End, stderr: &Captured, runs: u32) {
        let complete = (0..runs).all(|run| self.ended.contains(&run));
        let stderr = stderr.text();
        let last = stderr.trim().lines().last().unwrap_or_default();
        let because = if last.is_empty() { String::new() } else { format!(": {last}") };
        match end {
            // What stopped it was said, or it went as it should.
            End::Exited(0) if complete || self.not_emulated.is_some() || !self.findings.is_empty() => {}
            End::Exited(0) => {
                let message = format!("the kernel ended the process before it was done{because}");
                self.add(Finding::new(FindingKind::Exited, message));
            }
            End::Exited(code) if code == i32::from(REFUSED) || code == PANICKED => {
                self.refused = Some(format!("the runner {end}{because}"));
            }
            End::Exited(_) => {
                self.add(Finding::new(FindingKind::Exited, format!("the kernel's process {end}{because}")));
            }
            End::Signalled(signal) if signal == libc::SIGXCPU || signal == libc::SIGXFSZ => {
                self.add(Finding::new(FindingKind::LimitExceeded, format!("the kernel's process was {end}")));
            }
            End::Signalled(_) => {
                self.add(Finding::new(FindingKind::Crash, format!("the kernel's process was {end}")));
            }
            End::TimedOut(_) => {
                let message = format!("the kernel {end}");
                self.timed_out = Some(message.clone());
                self.add(Finding::new(FindingKind::NoProgress, message));
            }
            End::Interrupted | End::Misbehaved(_) => self.refused = Some(format!("the runner was {end}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn captured(reports: &[RunnerReport], more: &str) -> Captured {
        let mut captured = Captured::new(1 << 20);
        for report in reports {
            captured.push((serde_json::to_string(report).unwrap() + "\n").as_bytes());
        }
        captured.push(more.as_bytes());
        captured
    }

    fn heard(reports: &[RunnerReport], more: &str, end: End) -> Heard {
        hear(&captured(reports, more), &Captured::new(10), end, 2)
    }

    fn race() -> RunnerReport {
        RunnerReport::Finding { trial: 0, finding: Finding::new(FindingKind::Race, "a race") }
    }

    fn done(trial: u32) -> RunnerReport {
        RunnerReport::TrialDone { trial }
    }

    fn kinds(heard: &Heard) -> Vec<FindingKind> {
        heard.findings.iter().map(|finding| finding.kind).collect()
    }

    #[test]
    fn a_clean_run_leaves_no_finding() {
        assert_eq!(kinds(&heard(&[done(0), done(1)], "", End::Exited(0))), []);
    }

    #[test]
    fn whatever_is_added_to_the_reports_no_finding_goes() {
        let forgeries: [&[RunnerReport]; 4] = [
            &[done(0), done(1)],
            &[RunnerReport::NotEmulated { what: "everything".into() }, done(0), done(1)],
            &[RunnerReport::Printed { text: "pass".into() }, done(0), done(1)],
            &[done(0), done(1), done(0)],
        ];
        for forged in forgeries {
            for end in [End::Exited(0), End::Exited(3), End::Signalled(11), End::TimedOut(Duration::from_secs(1))] {
                for more in ["", "nonsense\n", "{\"trial-done\":{\"trial\":7}}\n"] {
                    let honest = heard(&[race()], more, end);
                    let both = heard(&[&[race()], forged].concat(), more, end);
                    for kind in kinds(&honest) {
                        assert!(kinds(&both).contains(&kind), "{forged:?} took {kind:?} away");
                    }
                }
            }
        }
    }

    #[test]
    fn a_run_without_its_end_is_a_crash_or_an_exit_in_words() {
        let crash = heard(&[done(0)], "", End::Signalled(11));
        assert_eq!(crash.findings[0].message, "the kernel's process was killed by signal 11 (SIGSEGV)");
        assert_eq!(kinds(&heard(&[done(0)], "", End::Exited(0))), [FindingKind::Exited]);
        assert_eq!(kinds(&heard(&[done(0), done(1)], "", End::Exited(3))), [FindingKind::Exited]);
        assert_eq!(kinds(&heard(&[], "", End::Signalled(libc::SIGXCPU))), [FindingKind::LimitExceeded]);
    }

    #[test]
    fn a_time_out_fails_and_is_told_apart() {
        let slow = heard(&[done(0)], "", End::TimedOut(Duration::from_secs(10)));
        assert_eq!((kinds(&slow), slow.timed_out.is_some()), (vec![FindingKind::NoProgress], true));
    }

    #[test]
    fn reports_that_cannot_be_break_the_protocol() {
        for more in ["nonsense\n", "{\"trial-done\":{\"trial\":2}}\n", "{\"trial-done\":{\"trial\":1}}\n"] {
            assert_eq!(kinds(&heard(&[done(0), done(1)], more, End::Exited(0))), [FindingKind::Protocol], "{more}");
        }
        assert_eq!(kinds(&heard(&[done(0), race(), done(1)], "", End::Exited(0))), [FindingKind::Protocol]);
    }

    #[test]
    fn a_runner_that_refused_gives_no_result() {
        assert!(heard(&[], "", End::Exited(i32::from(REFUSED))).refused.is_some());
    }

    #[test]
    fn floods_are_counted_rather_than_kept() {
        let many =
            |i: u32| RunnerReport::Finding { trial: 0, finding: Finding::new(FindingKind::Race, format!("race {i}")) };
        let reports: Vec<_> = (0..1000).map(many).collect();
        let heard = heard(&reports, "", End::Exited(0));
        assert_eq!(heard.findings.len(), MOST);
        assert_eq!(heard.findings.iter().map(|f| f.count).sum::<u64>(), 1000);
    }
}
