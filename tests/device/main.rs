//! Verify, bench and pairs on a device, with a mock driver in place of NVIDIA's. Everything except the device is what `kforge worker` runs, including cudarc.
//! The tests show that calls are made in the intended order and with the intended values. `tests/gpu/run` tests what only a real driver can show.
#![expect(clippy::print_stdout, reason = "it is its own test runner")]

mod confined;
mod hosted;
mod lab;
mod launched;
#[path = "../shared/own_runner.rs"]
mod own_runner;
mod profiled;
mod sanitized;
mod timed;

use std::ffi::OsString;
use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use kforge::emulator;
use kforge::harness::hangs::HangMark;
use kforge::harness::message::{Places, Response};
use kforge::record::event::Labels;
use kforge::record::{Determinism, FindingKind, Provenance, Unknown, Verdict};
use kforge::worker::{Finders, OnceLimits, Parts, worker_main};

use lab::{Lab, counted, differing};
use own_runner::{Test, made, shares, side_by_side};

/// Tests that wait for limits of time, or time hundreds of launches.
const SECOND_TIER: &[&str] = &[
    "a_profiler_that_hangs_is_ended",
    "a_sanitizer_that_fails_or_hangs_gives_no_verdict",
    "below_a_floor_nothing_is_believed",
];

const TESTS: &[Test] = &[
    ("an_honest_kernel_is_verified_and_its_record_says_where", honest),
    ("a_kernel_that_is_wrong_only_on_drawn_inputs_fails_by_them", drawn),
    ("a_verification_shares_a_draw_only_if_it_was_planned_before_it", shared_draws),
    ("each_mistake_is_found_for_its_reason", mistakes),
    ("answers_kept_in_globals_are_wrong_ones_for_other_inputs", remembered),
    ("faults_are_findings_by_their_names_and_cost_the_runner_alone", faults),
    ("an_endless_kernel_ends_by_the_verifiers_clock_and_is_not_remembered", endless),
    ("a_runner_is_kept_from_step_to_step", warm),
    ("a_runner_that_was_started_before_the_first_step_is_the_one_of_that_step", started_before),
    ("a_runner_that_does_not_start_keeps_the_first_step_from_nothing_but_a_result", starts_never),
    ("a_device_that_is_not_the_listed_one_runs_nothing", changed),
    ("what_a_machine_lacks_is_unavailable", lacking),
    ("memory_that_others_gave_back_is_found", given_back),
    ("shared_memory_beyond_the_least_is_asked_for", launched::shared_memory),
    ("clusters_cooperation_and_dependence_reach_the_driver", launched::attributes),
    ("a_launch_that_a_device_cannot_hold_at_once_is_the_candidates_failure", launched::too_large),
    ("a_grid_of_the_devices_size_is_launched_on_it", launched::sized),
    ("a_tensor_map_is_encoded_and_passed_by_value", launched::mapped),
    ("an_honest_kernel_is_timed_cold_and_hot", timed::timed),
    ("some_timed_launches_have_inputs_of_a_stress_class", timed::stressed),
    ("who_is_careful_only_until_it_is_timed_fails", timed::careless),
    ("a_time_that_depends_on_the_class_enters_no_series", timed::data_dependent),
    ("a_kernel_that_knows_the_fixed_trials_gains_no_time_by_it", timed::knows_fixed_trials),
    ("a_cache_that_is_used_from_the_third_launch_on_is_found", timed::caches_late),
    ("what_another_candidate_left_serves_nobody_who_is_confirmed", timed::planted),
    ("what_is_short_is_timed_by_slope", timed::short),
    ("who_gives_up_while_timed_fails", timed::gives_up),
    ("who_finds_an_earlier_answer_gains_nothing", timed::stale),
    ("below_a_floor_nothing_is_believed", timed::impossible),
    ("a_runner_reaches_nothing_but_its_device", confined::imprisoned),
    ("a_driver_that_does_not_start_confined_is_named_with_what_it_lacks", confined::lacking),
    ("a_driver_that_listens_on_a_socket_of_this_machine_starts_confined", confined::listening),
    ("a_driver_that_does_not_start_confined_runs_unconfined_only_with_permission", confined::permitted),
    ("a_driver_that_does_not_start_at_all_is_no_matter_of_confinement", confined::broken),
    ("an_examination_shows_what_a_driver_uses_and_that_every_escape_is_refused", confined::examined),
    ("a_candidate_that_timed_out_is_not_launched_at_another_shape", not_again),
    ("a_pair_has_a_runner_that_ran_nothing_else", pair_apart),
    ("a_profile_is_taken_in_a_fresh_process_of_the_candidates_launches_alone", profiled::taken),
    ("what_a_profiler_does_not_see_is_absent_with_its_reason_and_not_remembered", profiled::unseen),
    ("a_profiler_that_hangs_is_ended", profiled::hung),
    ("without_a_profiler_a_profile_is_unavailable", profiled::without),
    ("what_a_sanitizer_lists_is_a_finding_with_its_lines", sanitized::found),
    ("without_a_sanitizer_that_is_asked_for_verification_is_unavailable", sanitized::without),
    ("a_sanitizer_that_fails_or_hangs_gives_no_verdict", sanitized::failing),
    ("a_launcher_of_a_kernels_own_is_right_and_labelled", hosted::right),
    ("what_a_launcher_must_not_do_is_named", hosted::wrong),
    ("a_launcher_that_hangs_times_out_and_is_not_remembered", hosted::endless),
    ("a_launcher_reaches_no_file_of_the_users", hosted::files),
    ("stated_arithmetic_is_a_floor_too", timed::unreckoned),
    ("few_samples_are_few", timed::few),
    ("few_samples_take_few_launches", timed::few_launches),
    ("outputs_that_were_seen_before_are_not_read_back_and_memory_is_kept", kept),
    ("peaks_are_those_of_the_kernels_that_ran_and_what_was_refused_is_missing", timed::reckoned),
    ("five_per_cent_are_seen_in_pairs_and_nothing_is_not", timed::paired),
];

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if args.first().is_some_and(|word| word == "worker") {
        let parts = Parts { steps: kforge::worker::steps::handler, run: emulator::run::run_trials };
        let limits = OnceLimits {
            time: Duration::from_secs(60),
            run: Duration::from_secs(60),
            memory: 1 << 30,
            compiler_memory: 1 << 30,
            allow_unconfined: false,
        };
        // The list of devices is in the working folder, if there is one.
        let places = || Places { tools: [("devices".into(), "devices.json".into())].into(), ..Places::default() };
        let finders =
            Finders { search: &places, limits, described: &|_, _, _| Err(vec![]), seal: &|_, _, _, answer| answer };
        return worker_main(&args[1..], &parts, &finders);
    }
    let words: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    // Most of their time is spent in waiting.
    let halves = shares(2);
    let passed = if words.iter().any(|word| word == "--list" || halves.contains(word)) {
        made(TESTS, SECOND_TIER, &words)
    } else {
        side_by_side(&words, &[&halves[..1], &halves[1..]])
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn honest() {
    let seen = Lab::new().verify("honest");
    let observed = seen.observed();
    assert_eq!((observed.findings.len(), observed.asked, counted(&observed)), (0, 5, (2, 3)), "{observed:?}");
    assert_eq!((differing(&observed), &observed.determinism, observed.emulated), (0, &Determinism::Stable, false));
    let provenance: Provenance = seen.read("provenance");
    assert_eq!(provenance.device.to_string(), "NVIDIA Test (sm_90, driver 1)");
    assert_eq!(observed.ran_as, provenance.device.to_string());
    assert!(provenance.measured_at.ends_with('Z') && provenance.clocks_mhz.is_none(), "{provenance:?}");
}

fn started_before() {
    let lab = Lab::new();
    assert!(matches!(lab.warm_up(), Response::Done { .. }));
    // What a step leaves behind is killed, but not the runner that is being started.
    assert_eq!(lab.verify("honest").observed().findings, []);
    // A runner that is warm already stays.
    assert!(matches!(lab.warm_up(), Response::Done { .. }));
    assert_eq!(lab.verify("honest").observed().findings, []);
    assert_eq!(lab.starts(), 1);
}

fn starts_never() {
    let lab = Lab::listed(|device| device.l2 += 1);
    assert!(matches!(lab.warm_up(), Response::Done { .. }));
    let why = |seen: lab::Seen| match seen.response {
        Response::Unavailable { why } => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why(lab.verify("honest")), why(lab.verify("honest")));
}

fn changed() {
    let halved = Lab::listed(|device| device.memory /= 2);
    let other = Lab::listed(|device| device.uuid = "GPU-1".into());
    for (lab, said) in [(&halved, "changed since"), (&other, "is no longer on this machine")] {
        let response = lab.verify("honest").response;
        assert!(matches!(&response, Response::Unavailable { why } if why.contains(said)), "{response:?}");
        assert_eq!(lab.asked(), Vec::<String>::new());
    }
    // The next build asks the driver again.
    for (lab, keeps) in [(&halved, false), (&Lab::new(), true)] {
        let known = lab.known_list();
        fs::create_dir_all(known.parent().unwrap()).unwrap();
        fs::write(&known, "{}").unwrap();
        lab.verify("honest");
        assert_eq!(known.exists(), keeps);
    }
}

fn drawn() {
    let observed = Lab::new().verify("far_from_zero").observed();
    let wrong = |t: &&kforge::record::TrialObserved| !t.outputs[0].front.is_empty();
    let wrong: Vec<u32> = observed.trials.iter().filter(wrong).map(|t| t.trial).collect();
    assert!(!wrong.is_empty(), "{observed:?}");
    for trial in wrong {
        assert_eq!(observed.fresh_trial(trial).map(|fresh| fresh.distribution.as_str()), Some("tiny"), "{observed:?}");
    }
}

fn shared_draws() {
    let lab = Lab::new();
    let seeds = |lab: &Lab| lab.verify("honest").observed().fresh;
    let first = seeds(&lab);
    assert!(matches!(&first, Some(kforge::record::Fresh::Drawn(trials)) if !trials.is_empty()), "{first:?}");
    assert_eq!(seeds(&lab), first);
    let later = Lab { planned: std::time::SystemTime::now(), ..lab };
    let second = seeds(&later);
    assert_ne!(second, first);
    assert_eq!(seeds(&later), second, "planned before the second draw");
}

fn mistakes() {
    let lab = Lab::new();
    for (entry, kind) in [
        ("past_end", FindingKind::Canary),
        ("before_start", FindingKind::Canary),
        ("writes_input", FindingKind::InputModified),
        ("unwritten", FindingKind::Unwritten),
    ] {
        let observed = lab.verify(entry).observed();
        assert!(observed.findings.iter().any(|f| f.kind == kind), "{entry}: {:?}", observed.findings);
    }
    assert!(differing(&lab.verify("wrong").observed()) > 0);
    let turns = lab.verify("by_turns").observed();
    assert!(matches!(turns.determinism, Determinism::Differs { .. }), "{:?}", turns.determinism);
}

fn remembered() {
    let observed = Lab::new().verify("remembers").observed();
    assert!(differing(&observed) > 0);
    let right = |t: &&kforge::record::TrialObserved| t.trial == 1;
    assert!(observed.trials.iter().filter(right).any(|t| !t.outputs[0].front.is_empty()), "{:?}", observed.trials);
}

fn faults() {
    let lab = Lab::new();
    for (entry, kind, name) in [
        ("illegal", FindingKind::OutOfBounds, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"),
        ("misaligned", FindingKind::Misaligned, "CUDA_ERROR_MISALIGNED_ADDRESS (716)"),
        ("traps", FindingKind::Crash, "CUDA_ERROR_LAUNCH_FAILED (719)"),
    ] {
        let seen = lab.verify(entry);
        let observed = seen.observed();
        let found = observed.findings.iter().find(|f| f.kind == kind);
        assert!(found.is_some_and(|f| f.message.contains(name)), "{entry}: {:?}", observed.findings);
        assert!(!seen.forgotten() && observed.trials.is_empty(), "{observed:?}");
        assert!(lab.verify("honest").observed().findings.is_empty());
    }
    // Each fault ended a runner, and the correct step after it got another.
    assert_eq!(lab.starts(), 4);
}

fn endless() {
    // The work of this shape takes microseconds, so a run that takes a second never ends.
    let lab = Lab { seconds: 60, ..Lab::new() };
    let began = Instant::now();
    let seen = lab.verify("endless");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(seen.forgotten());
    let observed = seen.observed();
    assert_eq!(observed.findings[0].kind, FindingKind::NoProgress, "{observed:?}");
    assert!(matches!(seen.verdict(), Some(Verdict::Fail(why)) if why.contains("timed out")));
}

fn not_again() {
    let labels = |shape: &str| Labels { variant: Some("A=1".into()), shape: Some(shape.into()), ..Labels::default() };
    let lab = Lab::new();
    let at = |shape: &str| HangMark::new(lab.dir.path(), &labels(shape));
    let lab = Lab { hang: at("small"), ..lab };
    assert!(lab.verify("endless").forgotten());
    let launched = lab.asked().len();
    let lab = Lab { hang: HangMark::new(lab.dir.path(), &labels("large")), ..lab };
    let seen = lab.verify("endless");
    let why = "not launched, because the variant timed out at shape `small`";
    assert_eq!(seen.verdict(), Some(Verdict::Unknown(Unknown::Missing(why.into()))));
    assert!(seen.forgotten());
    assert_eq!(seen.observed().not_launched.as_deref(), Some(why));
    assert!(lab.bench("endless").forgotten());
    assert_eq!(lab.asked().len(), launched, "{:?}", lab.asked());
    // Another variant is launched.
    let other = Labels { variant: Some("A=2".into()), ..labels("large") };
    let lab = Lab { hang: HangMark::new(lab.dir.path(), &other), ..lab };
    assert!(lab.verify("honest").observed().findings.is_empty());
}

fn warm() {
    let lab = Lab::new();
    (0..3).for_each(|_| assert!(lab.verify("honest").observed().findings.is_empty()));
    assert_eq!(lab.starts(), 1);
}

fn pair_apart() {
    let lab = Lab::new();
    lab.verify("honest");
    lab.verify("slower");
    assert_eq!(lab.starts(), 1);
    for pair in 0..2 {
        lab.pairs("honest", "slower", false);
        assert_eq!(lab.starts(), 2 + pair, "each pair starts a runner");
    }
}

fn given_back() {
    let lab = Lab { samples: Some(5), ..Lab::new() };
    let others = lab.dir.path().join("others");
    fs::write(&others, ((1u64 << 30) - (24 << 20)).to_string()).unwrap();
    assert_eq!(lab.bench("honest").verdict(), None);
    let large = Lab { elements: 1 << 21, bytes: Some(4096.0), ..lab };
    fs::remove_file(others).unwrap();
    // In the same runner, whose device had little memory when it started.
    let seen = large.bench("honest");
    assert_eq!(seen.verdict(), None, "{:?}", seen.response);
    assert_eq!(large.starts(), 1);
}

fn lacking() {
    let lab = Lab { elements: 1 << 28, ..Lab::new() };
    let seen = lab.bench("honest");
    assert!(matches!(&seen.response, Response::Unavailable { why } if why.contains("memory")), "{:?}", seen.response);
    let lab = Lab::new();
    fs::remove_file(lab.dir.path().join("libcuda.so.1")).unwrap();
    let seen = lab.verify("honest");
    let named = matches!(&seen.response, Response::Unavailable { why } if why.contains("libcuda.so.1"));
    assert!(named, "{:?}", seen.response);
}

fn kept() {
    let lab = Lab::new();
    let moved = |how: &str| {
        let all = fs::read_to_string(lab.dir.path().join("moved")).unwrap_or_default();
        all.lines().filter(|line| line.starts_with(how)).count()
    };
    lab.verify("honest");
    let (read, allocated) = (moved("read"), moved("allocated"));
    assert_eq!(read, 5, "the output of each trial, fixed and fresh");
    let observed = lab.verify("slower").observed();
    assert_eq!((observed.findings.len(), counted(&observed), differing(&observed)), (0, (2, 3), 0), "{observed:?}");
    assert_eq!((moved("read"), moved("allocated")), (read, allocated));
    assert!(differing(&lab.verify("wrong").observed()) > 0, "other outputs are other ones");
    assert!(moved("read") > read);
    let spent = lab.verify("honest").read::<Provenance>("provenance").spent_us;
    assert!(["whole", "wait", "device", "run", "show"].iter().all(|phase| spent.contains_key(*phase)), "{spent:?}");
}
