//! Statuses, and that what is written has what the form asks of each status: the rules of its published validator, restated.

use super::*;
use kforge_numerics::measure::compare::{Comparison, rms};
use kforge_types::model::DType;
use kforge_types::record::{TrialObserved, Unknown};
use proptest::prelude::*;
use serde_json::Value;

fn seen() -> EvidenceSeen {
    EvidenceSeen {
        origin: "here".into(),
        measured_at: "2026-01-02T03:04:05Z".into(),
        device_class: "H200 (sm_90, driver 580)".into(),
        driver: "580.1".into(),
        kforge: "0.1.0".into(),
        standing: Default::default(),
        signer: None,
        clocks_mhz: None,
        temperature_c: None,
        throttle: vec![],
    }
}

/// An observation of an output that should be `want` and is `got`, with these findings.
fn observed(want: &[f64], got: &[f64], findings: &[FindingKind]) -> VerifyObservation {
    let mut compared = Comparison::new("y", DType::F32, &[want.len() as u64], rms(want), None);
    compared.floats(0, got, want, None);
    let trial = TrialObserved { trial: 0, distribution: "normal".into(), outputs: vec![compared.finish()] };
    let finding = |kind: &FindingKind| Finding::new(*kind, "what happened".to_string());
    VerifyObservation {
        findings: findings.iter().map(finding).collect(),
        trials: vec![trial],
        ..VerifyObservation::begun(false, 1, "device".into())
    }
}

/// What the published models ask of an evaluation.
fn valid(evaluation: &Evaluation) -> Result<(), String> {
    let value = serde_json::to_value(evaluation).map_err(|e| e.to_string())?;
    let status = value["status"].as_str().ok_or("no status")?;
    let known = [
        "PASSED",
        "INCORRECT_SHAPE",
        "INCORRECT_NUMERICAL",
        "INCORRECT_DTYPE",
        "RUNTIME_ERROR",
        "COMPILE_ERROR",
        "TIMEOUT",
        "REWARD_HACK",
        "INVALID_REFERENCE",
    ];
    let (has_errors, has_times) = (!value["correctness"].is_null(), !value["performance"].is_null());
    let wanted = match status {
        "PASSED" => (true, true),
        "INCORRECT_NUMERICAL" => (true, false),
        _ => (false, false),
    };
    let is_error = |value: &Value| value.as_f64().is_some_and(|x| x >= 0.0) || value == "NaN" || value == "Infinity";
    let sound = known.contains(&status)
        && (has_errors, has_times) == wanted
        && (!has_errors || value["correctness"].as_object().is_some_and(|all| all.values().all(is_error)))
        && (!has_times || value["performance"]["latency_ms"].as_f64().is_some_and(|ms| ms >= 0.0))
        && !value["timestamp"].as_str().unwrap_or_default().is_empty()
        && !value["environment"]["hardware"].as_str().unwrap_or_default().is_empty();
    if sound { Ok(()) } else { Err(format!("{value}")) }
}

fn of(verdict: &Verdict, observation: &VerifyObservation, wrong: bool, extended: bool) -> Result<Evaluation, LeftOut> {
    let seen = seen();
    evaluation(&Known {
        verdict,
        explanation: "",
        observation: Some(observation),
        wrong_values: wrong,
        time_ns: Some(2e6),
        reference: None,
        doubt: None,
        seen: Some(&seen),
        extended,
    })
}

#[test]
fn each_verdict_has_its_status() {
    let fail = Verdict::Fail("why".into());
    let right = observed(&[1.0, 2.0], &[1.0, 2.0], &[]);
    let status = |verdict: &Verdict, observation: &VerifyObservation, wrong, extended| {
        of(verdict, observation, wrong, extended).map(|done| done.status)
    };
    assert_eq!(status(&Verdict::Pass, &right, false, false), Ok(Status::Passed));
    let wrong = observed(&[1.0, 2.0], &[1.5, 2.0], &[]);
    assert_eq!(status(&fail, &wrong, true, false), Ok(Status::IncorrectNumerical));
    for (kind, plain, extended) in [
        (FindingKind::OutOfBounds, Status::RuntimeError, Status::RuntimeError),
        (FindingKind::LaunchRefused, Status::RuntimeError, Status::RuntimeError),
        (FindingKind::NoProgress, Status::Timeout, Status::Timeout),
        (FindingKind::WrongForm, Status::RuntimeError, Status::RuntimeError),
        (FindingKind::WrongShape, Status::IncorrectShape, Status::IncorrectShape),
        (FindingKind::WrongType, Status::IncorrectDtype, Status::IncorrectDtype),
        (FindingKind::KeepsState, Status::RuntimeError, Status::RewardHack),
        (FindingKind::Unwritten, Status::IncorrectNumerical, Status::IncorrectNumerical),
    ] {
        let observation = observed(&[1.0], &[3.0], &[kind]);
        assert_eq!(status(&fail, &observation, true, false), Ok(plain), "{kind:?}");
        assert_eq!(status(&fail, &observation, true, true), Ok(extended), "{kind:?}");
    }
    // What says less of the outputs is said first.
    let both = observed(&[1.0], &[1.0], &[FindingKind::WrongType, FindingKind::WrongShape]);
    assert_eq!(status(&fail, &both, false, false), Ok(Status::IncorrectShape));
    // Its outputs were right until it was timed.
    assert_eq!(status(&fail, &right, false, true), Ok(Status::RewardHack));
    assert_eq!(status(&fail, &right, false, false), Ok(Status::RuntimeError));
}

#[test]
fn what_the_form_has_no_place_for_is_left_out_with_the_reason() {
    let right = observed(&[1.0], &[1.0], &[]);
    let unknown = Verdict::Unknown(Unknown::NoDevice("none".into()));
    assert_eq!(of(&unknown, &right, false, false), Err(LeftOut::Unknown("no device: none".into())));
    let emulated = VerifyObservation { emulated: true, ..right.clone() };
    assert_eq!(of(&Verdict::Pass, &emulated, false, false), Err(LeftOut::Emulated));
    let seen = seen();
    let known = Known {
        verdict: &Verdict::Pass,
        explanation: "",
        observation: Some(&right),
        wrong_values: false,
        time_ns: None,
        reference: None,
        doubt: None,
        seen: Some(&seen),
        extended: false,
    };
    assert_eq!(evaluation(&known), Err(LeftOut::Untimed));
    let timed = evaluation(&Known { time_ns: Some(1.5e6), reference: Some((3e6, 2.0)), ..known }).unwrap();
    let value = serde_json::to_value(&timed).unwrap();
    assert_eq!(value["performance"], json!({ "latency_ms": 1.5, "reference_latency_ms": 3.0, "speedup_factor": 2.0 }));
    assert_eq!(value["environment"]["libs"], json!({ "driver": "580.1", "kforge": "0.1.0" }));
}

#[test]
fn a_speed_up_that_is_unconfirmed_or_only_claimed_says_so_in_the_log_and_stays_valid() {
    let (seen, right) = (seen(), observed(&[1.0], &[1.0], &[]));
    let unconfirmed = SpeedUpDoubt::Unconfirmed("no second H200 here".into());
    let known = Known {
        verdict: &Verdict::Pass,
        explanation: "",
        observation: Some(&right),
        wrong_values: false,
        time_ns: Some(1e6),
        reference: Some((5e6, 5.0)),
        doubt: Some(&unconfirmed),
        seen: Some(&seen),
        extended: false,
    };
    let open = evaluation(&known).unwrap();
    assert_eq!(open.log, "unconfirmed: the speed-up of 5.000: no second H200 here");
    valid(&open).unwrap();
    let claimed = evaluation(&Known { doubt: Some(&SpeedUpDoubt::Claimed), ..known }).unwrap();
    assert_eq!(claimed.log, "confirmed by a claim only: the speed-up of 5.000");
    valid(&claimed).unwrap();
    assert_eq!(evaluation(&Known { doubt: None, ..known }).unwrap().log, "");
    assert_eq!(evaluation(&Known { reference: None, ..known }).unwrap().log, "", "no speed-up is stated");
}

#[test]
fn errors_are_the_largest_and_those_that_are_not_known_are_no_number() {
    let done = of(&Verdict::Fail("x".into()), &observed(&[1.0, 100.0], &[1.5, 101.0], &[]), true, false).unwrap();
    let errors = done.correctness.unwrap();
    assert_eq!((errors.max_absolute_error, errors.max_relative_error), (1.0, 0.5));
    let done = of(&Verdict::Fail("x".into()), &observed(&[0.0], &[1.0], &[]), true, false).unwrap();
    assert_eq!(serde_json::to_value(&done).unwrap()["correctness"]["max_relative_error"], "Infinity");
    let done = of(&Verdict::Fail("x".into()), &observed(&[1.0], &[f64::NAN], &[]), true, false).unwrap();
    assert_eq!(serde_json::to_value(&done).unwrap()["correctness"]["max_absolute_error"], "NaN");
}

#[test]
fn a_kernel_is_a_solution_that_names_one_of_its_sources() {
    let own = OwnSolution {
        name: "kforge_k_1".into(),
        definition: "gemm".into(),
        language: Language::Cuda,
        entry: ("k.cu".into(), "ours::k<BLOCK>".into()),
        sources: [("k.cu".to_string(), "// k\n".to_string())].into(),
        variant: "BLOCK=64".into(),
        kernel: "[kernel.solution]\n".into(),
    };
    let value: Value = serde_json::from_str(&own.text()).unwrap();
    assert_eq!(value["spec"]["entry_point"], "k.cu::k");
    assert_eq!(value["kforge"], json!({ "kernel": "[kernel.solution]\n", "variant": "BLOCK=64" }));
    assert_eq!((&value["spec"]["language"], &value["spec"]["dependencies"]), (&json!("cuda"), &json!([])));
    let called = OwnSolution { language: Language::Torch, entry: ("k.py".into(), "ModelNew".into()), ..own };
    let value: Value = serde_json::from_str(&called.text()).unwrap();
    let spec = json!({
        "language": "python", "target_hardware": ["cuda"], "entry_point": "k.py::ModelNew", "dependencies": ["torch"],
        "destination_passing_style": false,
    });
    assert_eq!(value["spec"], spec);
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        Just(Verdict::Pass),
        ".{0,20}".prop_map(Verdict::Fail),
        ".{0,20}".prop_map(|why| Verdict::Unknown(Unknown::Missing(why))),
    ]
}

fn kind() -> impl Strategy<Value = FindingKind> {
    prop_oneof![
        Just(FindingKind::OutOfBounds),
        Just(FindingKind::Race),
        Just(FindingKind::Unwritten),
        Just(FindingKind::OrderDependent),
        Just(FindingKind::KeepsState),
        Just(FindingKind::NoProgress),
        Just(FindingKind::WrongShape),
        Just(FindingKind::WrongType),
        Just(FindingKind::LaunchRefused),
        Just(FindingKind::ExitedBeforeBarrier),
    ]
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![-1e3..1e3, Just(0.0), Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(1e300)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn every_trace_has_what_its_status_asks_for(
        verdict in verdict(),
        pairs in prop::collection::vec((value(), value()), 1..6),
        kinds in prop::collection::vec(kind(), 0..3),
        extended in any::<bool>(),
        emulated in any::<bool>(),
        time in prop::option::of(0.0..1e12f64),
    ) {
        let (want, got): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let observation = VerifyObservation { emulated, ..observed(&want, &got, &kinds) };
        let seen = seen();
        let known = Known {
            verdict: &verdict, explanation: "why", observation: Some(&observation), wrong_values: want != got,
            time_ns: time, reference: None, doubt: None, seen: Some(&seen), extended,
        };
        match evaluation(&known) {
            Ok(done) => {
                prop_assert_eq!(valid(&done), Ok(()));
                prop_assert!(extended || done.status != Status::RewardHack);
                prop_assert_eq!(done.status == Status::Passed, verdict == Verdict::Pass);
                let workload = json!({ "uuid": "u", "axes": {}, "inputs": {}, "more": [1.5, null] });
                let line = trace_line("d", &workload, "s", &done).unwrap();
                let read: Value = serde_json::from_str(&line).unwrap();
                prop_assert_eq!(&read["workload"], &workload);
                prop_assert!(!line.contains('\n'));
            }
            Err(LeftOut::Unknown(_)) => prop_assert!(matches!(verdict, Verdict::Unknown(_))),
            Err(LeftOut::Emulated) => prop_assert!(emulated),
            Err(LeftOut::Untimed) => prop_assert!(time.is_none() && verdict == Verdict::Pass),
        }
    }
}
