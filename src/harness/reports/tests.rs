//! How much each report of a runner counts: order, truncation, ends of the process.

use super::*;
use crate::message::Unemulated;
use std::time::Duration;

fn everything() -> NotEmulated {
    NotEmulated { cause: Unemulated::Construct("everything".into()), what: "everything".into() }
}

fn started() -> [RunnerReport; 2] {
    [RunnerReport::Confined { missing: vec![] }, RunnerReport::Loading]
}

fn captured(reports: &[RunnerReport], more: &str) -> Captured {
    let mut captured = Captured::new(1 << 20);
    for report in started().iter().chain(reports) {
        captured.push((serde_json::to_string(report).unwrap() + "\n").as_bytes());
    }
    captured.push(more.as_bytes());
    captured
}

fn heard(reports: &[RunnerReport], more: &str, end: End) -> RunSummary {
    hear(&captured(reports, more), &Captured::new(10), end, 1)
}

fn race() -> RunnerReport {
    RunnerReport::Finding { trial: 0, finding: Finding::new(FindingKind::Race, "a race") }
}

fn done() -> RunnerReport {
    RunnerReport::TrialDone { trial: 0 }
}

fn kinds(heard: &RunSummary) -> Vec<FindingKind> {
    heard.findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn a_clean_run_leaves_no_finding() {
    let clean = heard(&[done()], "", End::Exited(0));
    assert_eq!((kinds(&clean), clean.is_whole(), clean.orderly), (vec![], true, true));
}

#[test]
fn whatever_is_added_to_the_reports_no_finding_goes() {
    let forgeries: [&[RunnerReport]; 6] = [
        &[done()],
        &[RunnerReport::NotEmulated(everything()), done()],
        &[RunnerReport::Printed { text: "pass".into() }, done()],
        &[done(), done()],
        &[RunnerReport::Confined { missing: vec![] }, RunnerReport::Loading, done()],
        &[RunnerReport::Attempted { call: 1 }],
    ];
    for forged in forgeries {
        for end in [0, 3, 70, 101].map(End::Exited).into_iter().chain([
            End::Signalled(11),
            End::Signalled(libc::SIGSYS),
            End::TimedOut(Duration::from_secs(1)),
        ]) {
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

fn failing(heard: &RunSummary) -> Vec<FindingKind> {
    kinds(heard).into_iter().filter(|kind| !kind.is_allowed()).collect()
}

#[test]
fn no_flood_before_or_after_hides_a_failure() {
    let races = |i| RunnerReport::Finding { trial: 0, finding: Finding::new(FindingKind::Trap, format!("{i}")) };
    let floods: [Vec<RunnerReport>; 2] = [(0..300).map(allowed).collect(), (0..300).map(races).collect()];
    let ends = [0, 3].map(End::Exited).into_iter();
    for end in ends.chain([11, libc::SIGXCPU].map(End::Signalled)).chain([End::TimedOut(Duration::from_secs(1))]) {
        for more in ["", "nonsense\n"] {
            let honest: [&[RunnerReport]; 2] = [&[], &[done()]];
            for (honest, flood) in honest.iter().flat_map(|honest| floods.iter().map(move |flood| (honest, flood))) {
                let alone = heard(honest, more, end);
                let both = heard(&[flood.as_slice(), *honest].concat(), more, end);
                // Findings of the verifier itself stay, but a failure that was already reported explains an early end.
                let told = |kind: &&FindingKind| end != End::Exited(0) || **kind != FindingKind::Exited;
                for kind in failing(&alone).iter().filter(told) {
                    assert!(kinds(&both).contains(kind), "{end:?}: a flood took {kind:?} away");
                }
                assert!(failing(&alone).is_empty() || !failing(&both).is_empty(), "{end:?}");
            }
        }
    }
    let flooded = heard(&[floods[0].clone(), vec![race(), done()]].concat(), "", End::Exited(0));
    assert_eq!((failing(&flooded), flooded.findings.len()), (vec![FindingKind::Race], MOST_ALLOWED + 1));
}

#[test]
fn a_report_longer_than_what_is_kept_fails_whatever_is_left_of_it() {
    let mut long = Captured::new(4000);
    let printed = |text: &str| serde_json::to_string(&RunnerReport::Printed { text: text.into() }).unwrap() + "\n";
    let lines = started().map(|report| serde_json::to_string(&report).unwrap() + "\n").concat();
    long.push(lines.as_bytes());
    (0..1000).for_each(|_| long.push(printed("more talk").as_bytes()));
    long.push((serde_json::to_string(&done()).unwrap() + "\n").as_bytes());
    let heard = hear(&long, &Captured::new(10), End::Exited(0), 1);
    assert_eq!((kinds(&heard), heard.done), (vec![FindingKind::Protocol], true));
    let why = "bytes more than a report can have";
    assert!(heard.findings[0].message.ends_with(why), "{}", heard.findings[0].message);
}

#[test]
fn what_is_allowed_makes_no_run_faulty_and_excuses_no_early_end() {
    assert!(heard(&[allowed(1), done()], "", End::Exited(0)).is_whole());
    assert_eq!(failing(&heard(&[allowed(1)], "", End::Exited(0))), [FindingKind::Exited]);
    assert!(!heard(&[race(), done()], "", End::Exited(0)).is_whole());
}

#[test]
fn what_is_not_emulated_is_a_claim_of_a_run_that_has_not_ended() {
    let what = || RunnerReport::NotEmulated(everything());
    let claimed = heard(&[what(), done()], "", End::Exited(0));
    assert_eq!((claimed.is_whole(), claimed.not_emulated.len(), kinds(&claimed)), (false, 1, vec![]));
    let late = heard(&[done(), what()], "", End::Exited(0));
    assert_eq!((kinds(&late), late.not_emulated), (vec![FindingKind::Protocol], vec![]));
}

#[test]
fn a_run_without_its_end_is_a_crash_or_an_exit_in_words() {
    let crash = heard(&[], "", End::Signalled(11));
    assert_eq!(crash.findings[0].message, "the kernel's process was killed by signal 11 (SIGSEGV)");
    assert_eq!(kinds(&heard(&[], "", End::Exited(0))), [FindingKind::Exited]);
    assert_eq!(kinds(&heard(&[done()], "", End::Exited(3))), [FindingKind::Exited]);
    assert_eq!(kinds(&heard(&[], "", End::Signalled(libc::SIGXCPU))), [FindingKind::LimitExceeded]);
}

#[test]
fn a_time_out_fails_and_is_told_apart() {
    let slow = heard(&[], "", End::TimedOut(Duration::from_secs(10)));
    assert_eq!((kinds(&slow), slow.passing.is_some()), (vec![FindingKind::NoProgress], true));
}

#[test]
fn a_refused_call_fails_by_its_name_and_by_the_signal_alone() {
    let socket = RunnerReport::Attempted { call: libc::SYS_socket };
    let told = heard(&[done(), socket], "", End::Signalled(libc::SIGSYS));
    assert_eq!(told.findings[0].message, "the kernel tried to open a socket (socket)");
    assert_eq!(kinds(&told), [FindingKind::Forbidden]);
    assert_eq!(kinds(&heard(&[done()], "", End::Signalled(libc::SIGSYS))), [FindingKind::Forbidden]);
}

#[test]
fn trials_in_one_process_end_in_their_order() {
    let ends = |trials: &[u32]| {
        let reports: Vec<RunnerReport> = trials.iter().map(|&trial| RunnerReport::TrialDone { trial }).collect();
        hear(&captured(&reports, ""), &Captured::new(10), End::Exited(0), 2)
    };
    assert!(ends(&[0, 1]).is_whole() && ends(&[0, 1]).findings.is_empty());
    assert_eq!(kinds(&ends(&[0])), [FindingKind::Exited]);
    assert_eq!(kinds(&ends(&[1])), [FindingKind::Protocol]);
    assert_eq!(kinds(&ends(&[0, 0, 1])), [FindingKind::Protocol]);
}

#[test]
fn a_runner_that_lacks_memory_before_it_loads_names_the_setting_and_later_is_not_believed() {
    let mut stderr = Captured::new(1 << 10);
    stderr.push(b"memory allocation of 4096 bytes failed\n");
    let abort = End::Signalled(libc::SIGABRT);
    let early = hear(&Captured::new(10), &stderr, abort, 1);
    assert!(early.refused.is_some_and(|why| why.contains("`build.memory-limit`")));
    let late = hear(&captured(&[done()], ""), &stderr, abort, 1);
    assert_eq!((late.refused, late.findings.len()), (None, 1));
}

#[test]
fn reports_that_cannot_be_break_the_protocol() {
    let lines = ["nonsense\n", "{\"trial-done\":{\"trial\":2}}\n", "{\"trial-done\":{\"trial\":0}}\n", "\"loading\"\n"];
    for more in lines {
        assert_eq!(kinds(&heard(&[done()], more, End::Exited(0))), [FindingKind::Protocol], "{more}");
    }
    assert_eq!(kinds(&heard(&[done(), race()], "", End::Exited(0))), [FindingKind::Protocol]);
}

#[test]
fn a_runner_that_refused_before_it_loaded_anything_gives_no_result_and_later_a_failure() {
    let refused = End::Exited(i32::from(REFUSED));
    let early = hear(&Captured::new(10), &Captured::new(10), refused, 1);
    assert!(early.refused.is_some() && early.findings.is_empty());
    for status in [70, 101] {
        let late = heard(&[], "", End::Exited(status));
        assert_eq!((kinds(&late), late.refused), (vec![FindingKind::Exited], None));
        assert!(late.passing.is_some());
    }
}

#[test]
fn texts_of_a_runner_control_no_terminal_and_forge_no_line() {
    let text = "a\nb\u{1b}[2Jc".to_string();
    let finding = Finding::new(FindingKind::Race, text.clone());
    let heard =
        heard(&[RunnerReport::Finding { trial: 0, finding }, RunnerReport::Printed { text }], "", End::Exited(0));
    assert_eq!((heard.findings[0].message.as_str(), heard.printed.as_str()), ("a b [2Jc", "a\nb[2Jc"));
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

#[test]
fn only_runs_before_the_first_failure_are_compared() {
    let whole =
        |reports: &[RunnerReport], end: End| hear(&captured(reports, ""), &Captured::new(10), end, 2).whole_runs();
    let done = |trial| RunnerReport::TrialDone { trial };
    let race = RunnerReport::Finding { trial: 1, finding: Finding::new(FindingKind::Race, "a race") };
    let exited = End::Exited(0);
    assert_eq!(whole(&[done(0), done(1)], exited), 2);
    assert_eq!(whole(&[done(0), race, done(1)], exited), 1);
    assert_eq!(whole(&[done(0), RunnerReport::NotEmulated(everything())], exited), 1);
    assert_eq!(whole(&[RunnerReport::NotEmulated(everything()), done(0), done(1)], exited), 0);
    assert_eq!(whole(&[done(0)], End::TimedOut(Duration::from_secs(1))), 1);
}
