//! What a runner said, heard so that it can only worsen a result. Knows reports; does not know buffers or expectations.

use std::collections::BTreeSet;

use crate::process::{Captured, End};
use crate::record::{Finding, FindingKind};
use crate::worker::message::RunnerReport;
use crate::worker::runner::REFUSED;

/// Failures kept of one runner by its word; the rest is counted with the last.
const MOST: usize = 64;
/// Findings kept apart from them that fail nothing, so that however many there are they take no failure's place.
const MOST_ALLOWED: usize = 8;
/// The exit status of a Rust program that panicked: a runner's own fault, or a candidate that says so.
const PANICKED: i32 = 101;
/// What the runner's own allocator says when memory is refused to it.
const OURS_FAILED: &str = "memory allocation of ";
/// What to do where memory ran out.
const RAISE: &str = "setting `build.memory-limit` says how much it may take";

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
    /// The runs in which something failed by its word: what they left behind is not worth comparing.
    pub faulty: BTreeSet<u32>,
    /// The runs that were under way when something was not emulated: they stopped half way.
    pub halfway: BTreeSet<u32>,
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
    /// Whether a run got to its end, as far as it says: its outputs are to be compared.
    pub fn is_whole(&self, run: u32) -> bool {
        self.ended.contains(&run) && !self.faulty.contains(&run) && !self.halfway.contains(&run)
    }

    fn take(&mut self, report: RunnerReport, runs: u32) {
        match report {
            RunnerReport::Finding { trial, .. } | RunnerReport::TrialDone { trial } if trial >= runs => {
                self.broken("a report of a run that there is not");
            }
            RunnerReport::Finding { trial, .. } if self.ended.contains(&trial) => {
                self.broken("a report of a run that had ended");
            }
            RunnerReport::Finding { trial, finding } => {
                if !finding.kind.is_allowed() {
                    self.faulty.insert(trial);
                }
                self.add(finding);
            }
            RunnerReport::TrialDone { trial } => {
                if !self.ended.insert(trial) {
                    self.broken("a run that ended twice");
                }
            }
            // Runs follow each other, so it speaks of the first that has not ended. It excuses no other.
            RunnerReport::NotEmulated { what } => match (0..runs).find(|run| !self.ended.contains(run)) {
                Some(run) => {
                    self.halfway.insert(run);
                    self.not_emulated.get_or_insert(what);
                }
                None => self.broken("a report after the last run had ended"),
            },
            RunnerReport::Printed { text } => self.printed.push_str(&text),
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

    fn end(&mut self, end: End, stderr: &Captured, runs: u32) {
        let complete = (0..runs).all(|run| self.ended.contains(&run));
        let failed = self.findings.iter().any(|finding| !finding.kind.is_allowed());
        let stderr = stderr.text();
        let last = stderr.trim().lines().last().unwrap_or_default();
        let because = if last.is_empty() { String::new() } else { format!(": {last}") };
        if end != End::Exited(0) && stderr.contains(OURS_FAILED) {
            // The runner's own memory: no fault of the kernel's that could be told from ours.
            self.refused = Some(format!("the runner had too little memory{because}; {RAISE}"));
            return;
        }
        match end {
            // What stopped it was said, or it went as it should.
            End::Exited(0) if complete || self.not_emulated.is_some() || failed => {}
            End::Exited(0) => {
                let message = format!("the kernel ended the process before it was done{because}");
                self.conclude(Finding::new(FindingKind::Exited, message));
            }
            End::Exited(code) if code == i32::from(REFUSED) || code == PANICKED => {
                self.refused = Some(format!("the runner {end}{because}"));
            }
            End::Exited(_) => {
                self.conclude(Finding::new(FindingKind::Exited, format!("the kernel's process {end}{because}")));
            }
            End::Signalled(signal) if signal == libc::SIGXCPU || signal == libc::SIGXFSZ => {
                self.conclude(Finding::new(FindingKind::LimitExceeded, format!("the kernel's process was {end}")));
            }
            End::Signalled(_) => {
                self.conclude(Finding::new(FindingKind::Crash, format!("the kernel's process was {end}")));
            }
            End::TimedOut(_) => {
                let message = format!("the kernel {end}");
                self.timed_out = Some(message.clone());
                self.conclude(Finding::new(FindingKind::NoProgress, message));
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

    fn allowed(i: u32) -> RunnerReport {
        let finding = Finding::new(FindingKind::ExitedBeforeBarrier, format!("{i} threads left"));
        RunnerReport::Finding { trial: 0, finding }
    }

    fn failing(heard: &Heard) -> Vec<FindingKind> {
        kinds(heard).into_iter().filter(|kind| !kind.is_allowed()).collect()
    }

    #[test]
    fn no_flood_before_or_after_hides_a_failure() {
        let races = |i| RunnerReport::Finding { trial: 0, finding: Finding::new(FindingKind::Trap, format!("{i}")) };
        let floods: [Vec<RunnerReport>; 2] = [(0..300).map(allowed).collect(), (0..300).map(races).collect()];
        let ends = [0, 3].map(End::Exited).into_iter();
        for end in ends.chain([11, libc::SIGXCPU].map(End::Signalled)).chain([End::TimedOut(Duration::from_secs(1))]) {
            for more in ["", "nonsense\n"] {
                let honest: [&[RunnerReport]; 3] = [&[], &[done(0)], &[done(0), done(1)]];
                for (honest, flood) in honest.iter().flat_map(|honest| floods.iter().map(move |flood| (honest, flood)))
                {
                    let alone = heard(honest, more, end);
                    let both = heard(&[flood.as_slice(), *honest].concat(), more, end);
                    // What the judge itself saw stays, but that a process ended early is no news where a failure said why.
                    let told = |kind: &&FindingKind| end != End::Exited(0) || **kind != FindingKind::Exited;
                    for kind in failing(&alone).iter().filter(told) {
                        assert!(kinds(&both).contains(kind), "{end:?}: a flood took {kind:?} away");
                    }
                    assert!(failing(&alone).is_empty() || !failing(&both).is_empty(), "{end:?}");
                }
            }
        }
        let flooded = heard(&[floods[0].clone(), vec![race(), done(0), done(1)]].concat(), "", End::Exited(0));
        assert_eq!((failing(&flooded), flooded.findings.len()), (vec![FindingKind::Race], MOST_ALLOWED + 1));
    }

    #[test]
    fn what_is_allowed_makes_no_run_faulty_and_excuses_no_early_end() {
        let whole = heard(&[allowed(1), done(0), done(1)], "", End::Exited(0));
        assert!(whole.is_whole(0) && whole.is_whole(1));
        let early = heard(&[allowed(1), done(0)], "", End::Exited(0));
        assert_eq!(failing(&early), [FindingKind::Exited]);
        assert!(!heard(&[race(), done(0), done(1)], "", End::Exited(0)).is_whole(0));
    }

    #[test]
    fn what_is_not_emulated_excuses_only_the_run_that_was_under_way() {
        let what = || RunnerReport::NotEmulated { what: "everything".into() };
        let whole = |reports: &[RunnerReport]| {
            let heard = heard(reports, "", End::Exited(0));
            [0, 1].map(|run| heard.is_whole(run))
        };
        assert_eq!(whole(&[what(), done(0), done(1)]), [false, true]);
        assert_eq!(whole(&[done(0), what(), done(1)]), [true, false]);
        assert_eq!(whole(&[what(), done(0), what(), done(1)]), [false, false]);
        let late = heard(&[done(0), done(1), what()], "", End::Exited(0));
        assert_eq!((kinds(&late), late.not_emulated), (vec![FindingKind::Protocol], None));
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
    fn memory_that_ran_out_is_told_from_a_crash_and_not_kept() {
        let heard = |said: &str| {
            let mut stderr = Captured::new(1 << 10);
            stderr.push(said.as_bytes());
            hear(&captured(&[done(0)], ""), &stderr, End::Signalled(libc::SIGABRT), 2)
        };
        let ours = heard("memory allocation of 4096 bytes failed\n");
        assert!(ours.refused.is_some_and(|why| why.contains("`build.memory-limit`")));
        assert!(heard("abort").refused.is_none());
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
