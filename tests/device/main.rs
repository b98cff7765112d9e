//! Verify, bench and pairs on a device, with a driver of the test's own in place of NVIDIA's: everything but the device is what `kforge worker` runs, cudarc
//! included. It shows that calls are made, in an order and with values that mean what is meant; what only a real driver can show `tests/gpu/run` asks.
#![expect(clippy::print_stdout, reason = "it is its own test runner")]

mod hosted;
mod profiled;
mod sanitized;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command as System, ExitCode};
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kforge::base::Digest;
use kforge::measure::stats::{Paired, decide};
use kforge::model::bound::{Arg, Buffer, Fill, KernelLaunch, Launch, Scalar};
use kforge::model::grid::{Known, OpenGrid};
use kforge::model::tensor_map::TensorMap;
use kforge::model::{DType, Metric, Problem, Reference, Role, Sanitizer, Tensor};
use kforge::process::Command;
use kforge::record::params::{CompileFacts, Compiler, Expected, PairsParams, Sanitized, Trial, VerifyParams};
use kforge::record::peaks::{PeaksObserved, PeaksParams};
use kforge::record::timing::{BenchObserved, PairsObserved};
use kforge::record::{
    Determinism, FindingKind, Form, Input, Provenance, Spec, StepKind, Unknown, Verdict, VerifyObservation,
};
use kforge::reference::{generate, oracle};
use kforge::worker::cuda::device::facts::{DeviceFacts, Probed};
use kforge::worker::message::{Places, Request, Response};
use kforge::worker::{OnceLimits, Parts, Pool, emulator, serve, worker_main};

type Test = (&'static str, fn());

const TESTS: &[Test] = &[
    ("an_honest_kernel_is_verified_and_its_record_says_where", honest),
    ("each_mistake_is_found_for_its_reason", mistakes),
    ("answers_kept_in_globals_are_wrong_ones_for_other_inputs", remembered),
    ("faults_are_findings_by_their_names_and_cost_the_runner_alone", faults),
    ("an_endless_kernel_ends_by_the_judges_clock_and_is_not_remembered", endless),
    ("a_runner_is_kept_from_step_to_step", warm),
    ("what_a_machine_lacks_is_unavailable", lacking),
    ("memory_that_others_gave_back_is_found", given_back),
    ("shared_memory_beyond_the_least_is_asked_for", shared_memory),
    ("clusters_cooperation_and_dependence_reach_the_driver", attributes),
    ("a_launch_that_a_device_cannot_hold_at_once_is_the_candidates_failure", too_large),
    ("a_grid_of_the_devices_size_is_launched_on_it", sized),
    ("a_tensor_map_is_encoded_and_passed_by_value", mapped),
    ("an_honest_kernel_is_timed_cold_and_hot", timed),
    ("what_is_short_is_timed_by_slope", short),
    ("who_gives_up_while_timed_fails", gives_up),
    ("who_finds_an_earlier_answer_gains_nothing", stale),
    ("below_a_floor_nothing_is_believed", impossible),
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
    ("stated_arithmetic_is_a_floor_too", unreckoned),
    ("few_samples_are_few", few),
    ("few_samples_take_few_launches", few_launches),
    ("outputs_that_were_seen_before_are_not_read_back_and_memory_is_kept", kept),
    ("peaks_are_those_of_the_kernels_that_ran_and_what_was_refused_is_missing", reckoned),
    ("five_per_cent_are_seen_in_pairs_and_nothing_is_not", paired),
];

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if args.first().is_some_and(|word| word == "worker") {
        let parts = Parts { table: serve::dispatch::TABLE, run: emulator::run::run_trials };
        let limits = OnceLimits {
            time: Duration::from_secs(60),
            run: Duration::from_secs(60),
            memory: 1 << 30,
            compiler_memory: 1 << 30,
            allow_unconfined: false,
        };
        return worker_main(&args[1..], &parts, Places::default, limits);
    }
    let words: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    if words.iter().any(|word| word == "--list") {
        TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let filter: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let mut failed = 0;
    for (name, test) in TESTS.iter().filter(|(name, _)| filter.is_empty() || filter.iter().any(|f| name.contains(*f))) {
        let passed = catch_unwind(AssertUnwindSafe(test)).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        failed += u8::from(!passed);
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The driver and the candidates, compiled once.
fn built() -> &'static Path {
    static BUILT: OnceLock<tempfile::TempDir> = OnceLock::new();
    BUILT
        .get_or_init(|| {
            let dir = tempfile::tempdir().unwrap();
            let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/device");
            for (source, out) in
                [("driver.cpp", "libcuda.so.1"), ("kernels.cpp", "kernels.so"), ("launchers.cpp", "launchers.so")]
            {
                let status = System::new("/usr/bin/g++")
                    .args(["-shared", "-fPIC", "-O1", "-std=c++17", "-w"])
                    .arg(format!("-Wl,-soname,{out}"))
                    .arg(here.join(source))
                    .arg("-o")
                    .arg(dir.path().join(out))
                    .arg("-ldl")
                    .status();
                assert!(status.unwrap().success(), "{source}");
            }
            dir
        })
        .path()
}

/// A home with a list of devices, and a pool of one worker.
struct Lab {
    dir: Rc<tempfile::TempDir>,
    pool: Pool,
    seconds: u64,
    elements: u64,
    shared: u64,
    threads: u32,
    sanitize: Vec<Sanitizer>,
    samples: Option<u32>,
    only: Option<Metric>,
    flops_min: Option<f64>,
    bytes: Option<f64>,
    /// What becomes of the one launch of a variant.
    launches: fn(KernelLaunch) -> Vec<KernelLaunch>,
}

struct Seen {
    /// Kept for as long as outputs are read.
    _dir: Rc<tempfile::TempDir>,
    response: Response,
    out: PathBuf,
}

impl Lab {
    fn new() -> Self {
        let dir = Rc::new(tempfile::tempdir().unwrap());
        // A driver of its own, so that what it writes down is this test's.
        fs::copy(built().join("libcuda.so.1"), dir.path().join("libcuda.so.1")).unwrap();
        let device = DeviceFacts {
            product: "NVIDIA Test".into(),
            arch: "sm_90".into(),
            driver: "1.2".into(),
            mig: None,
            uuid: "GPU-0".into(),
            memory: 1 << 30,
            processors: 4,
            clock_mhz: 1000,
            memory_clock_mhz: 1000,
            bus_bits: 512,
            l2: 1 << 20,
            reaches_host: true,
        };
        let libcuda = Some(dir.path().join("libcuda.so.1"));
        let probed = Probed { libcuda, devices: vec![device], ..Probed::default() };
        fs::write(dir.path().join("devices.json"), serde_json::to_vec(&probed).unwrap()).unwrap();
        fs::create_dir(dir.path().join("locks")).unwrap();
        Lab {
            dir,
            pool: Pool::new(Command::own().arg("worker")),
            seconds: 60,
            elements: 1000,
            shared: 0,
            threads: 128,
            sanitize: vec![],
            samples: None,
            only: None,
            flops_min: None,
            bytes: None,
            launches: |launch| vec![launch],
        }
    }

    fn params(&self, entry: &str) -> VerifyParams {
        let tensor = |name: &str, role| Tensor::dense(name, role, DType::F32, &[self.elements]);
        let tensors = vec![tensor("x", Role::Input), tensor("y", Role::Output)];
        let problem = Problem::of(tensors, Reference::builtin("elementwise", &[("y", "x + x".into())]));
        let pointer = |buffer: &str| Arg::Pointer { buffer: buffer.into(), offset: 0 };
        let count = Arg::Scalar { dtype: DType::I64, value: Scalar::Int(self.elements as i64) };
        let launch = KernelLaunch {
            entry: entry.into(),
            grid: [8, 1, 1],
            block: [self.threads, 1, 1],
            shared: self.shared,
            args: vec![pointer("x"), pointer("y"), pointer("w"), count],
            cooperative: true,
            ..KernelLaunch::default()
        };
        let trial =
            |trial, distribution: &str| Trial { trial, seed: 7 + u64::from(trial), distribution: distribution.into() };
        VerifyParams {
            arch: "sm_90a".into(),
            compiler: Compiler::Auto,
            problem,
            entries: vec![entry.into()],
            launches: (self.launches)(launch).into_iter().map(Launch::Kernel).collect(),
            workspaces: vec![Buffer { name: "w".into(), dtype: DType::F32, elements: 1, fill: Fill::Poison }],
            constants: vec![],
            trials: vec![trial(0, "normal"), trial(1, "uniform")],
            compare: BTreeMap::new(),
            scaled: vec![],
            count_beyond: BTreeMap::new(),
            protocol: 1,
            host: None,
            sanitize: self.sanitize.iter().map(|&tool| Sanitized { tool, protocol: 1 }).collect(),
            only: self.only,
            samples: self.samples,
            flops_min: self.flops_min,
            bytes: self.bytes,
        }
    }

    fn run(&self, kind: StepKind, params: serde_json::Value, inputs: Vec<(String, Vec<u8>)>) -> Seen {
        let step = tempfile::tempdir_in(self.dir.path()).unwrap().keep();
        let (input, output) = (step.join("in"), step.join("out"));
        fs::create_dir(&input).unwrap();
        fs::create_dir(&output).unwrap();
        let mut named = BTreeMap::new();
        for (name, bytes) in inputs {
            fs::write(input.join(name.replace(':', "-")), &bytes).unwrap();
            named.insert(name, Input { digest: Some(Digest::of(&bytes)), form: Form::Blob });
        }
        let request = Request {
            spec: Spec { kind, version: 1, implementation: None, params, inputs: named },
            input,
            output: output.clone(),
            places: Places { tools: self.tools(), read: vec![], scratch: None },
            product: None,
            unit: 0,
            time_limit_s: self.seconds,
            run_limit_s: self.seconds,
            memory_limit: 1 << 30,
            compiler_memory: 1 << 30,
            allow_unconfined: false,
        };
        let response = self.pool.run(&request, &AtomicBool::new(false)).unwrap();
        Seen { _dir: Rc::clone(&self.dir), response, out: output }
    }

    /// The list of devices, and the tools that were put beside it.
    fn tools(&self) -> BTreeMap<String, PathBuf> {
        let all = [("devices", "devices.json"), ("ncu", "ncu"), ("compute-sanitizer", "compute-sanitizer")];
        let there = all.map(|(name, file)| (name.to_string(), self.dir.path().join(file)));
        there.into_iter().filter(|(_, path)| path.exists()).collect()
    }

    fn candidate(&self, entry: &str, suffix: &str) -> Vec<(String, Vec<u8>)> {
        let facts = CompileFacts { compiler: "nvrtc".into(), symbols: vec![entry.into()], spills: BTreeMap::new() };
        let binary = fs::read(built().join("kernels.so")).unwrap();
        vec![(format!("binary{suffix}"), binary), (format!("facts{suffix}"), serde_json::to_vec(&facts).unwrap())]
    }

    fn verify(&self, entry: &str) -> Seen {
        self.verify_on(&self.params(entry), self.candidate(entry, ""))
    }

    /// Verifies a binary as the parameters say.
    fn verify_on(&self, params: &VerifyParams, mut inputs: Vec<(String, Vec<u8>)>) -> Seen {
        for trial in &params.trials {
            let values = generate::inputs(&params.problem, trial).unwrap();
            let expected = oracle::expected(&params.problem, &values, false).unwrap();
            let digest = |v: &kforge::reference::Values| Digest::of(&v.to_le_bytes());
            let outputs = expected.outputs.iter().map(|(name, v)| (name.clone(), digest(v))).collect();
            let expected = Expected { outputs, scales: BTreeMap::new() };
            inputs.push((format!("expected:{}", trial.trial), serde_json::to_vec(&expected).unwrap()));
        }
        self.run(StepKind::Verify, serde_json::to_value(params).unwrap(), inputs)
    }

    fn bench(&self, entry: &str) -> Seen {
        self.run(StepKind::Bench, serde_json::to_value(self.params(entry)).unwrap(), self.candidate(entry, ""))
    }

    fn pairs(&self, a: &str, b: &str, hot: bool) -> Seen {
        let params = PairsParams { arch: "sm_90a".into(), hot, a: self.params(a), b: self.params(b), protocol: 1 };
        let inputs = [self.candidate(a, ":a"), self.candidate(b, ":b")].concat();
        self.run(StepKind::Pairs, serde_json::to_value(&params).unwrap(), inputs)
    }

    /// What was asked of the driver, a line a launch of a candidate.
    fn asked(&self) -> Vec<String> {
        let all = fs::read_to_string(self.dir.path().join("launches")).unwrap_or_default();
        all.lines().map(String::from).collect()
    }

    /// How often a driver was initialised.
    fn starts(&self) -> usize {
        fs::read_to_string(self.dir.path().join("starts")).unwrap_or_default().lines().count()
    }
}

impl Seen {
    fn read<T: serde::de::DeserializeOwned>(&self, name: &str) -> T {
        let bytes = fs::read(self.out.join(name)).unwrap_or_else(|e| panic!("{name}: {e}: {:?}", self.response));
        serde_json::from_slice(&bytes).unwrap()
    }

    fn observed(&self) -> VerifyObservation {
        self.read("observation")
    }

    fn verdict(&self) -> Option<Verdict> {
        match &self.response {
            Response::Done { verdict, .. } => verdict.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn forgotten(&self) -> bool {
        matches!(self.response, Response::Done { forget: true, .. })
    }
}

/// Elements that differ from what is expected, over all trials and runs.
fn differing(seen: &VerifyObservation) -> usize {
    seen.trials.iter().flat_map(|t| &t.outputs).map(|o| o.front.len()).sum()
}

fn honest() {
    let seen = Lab::new().verify("honest");
    let observed = seen.observed();
    assert_eq!((observed.findings.len(), observed.asked, observed.trials.len()), (0, 2, 2), "{observed:?}");
    assert_eq!((differing(&observed), &observed.determinism, observed.emulated), (0, &Determinism::Stable, false));
    let provenance: Provenance = seen.read("provenance");
    assert_eq!(provenance.device.to_string(), "NVIDIA Test (sm_90, driver 1)");
    assert_eq!(observed.ran_as, provenance.device.to_string());
    assert!(provenance.measured_at.ends_with('Z') && provenance.clocks_mhz.is_none(), "{provenance:?}");
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
    // Each fault took a runner, and the honest step after it got another.
    assert_eq!(lab.starts(), 4);
}

fn endless() {
    let lab = Lab { seconds: 2, ..Lab::new() };
    let seen = lab.verify("endless");
    assert!(seen.forgotten());
    let observed = seen.observed();
    assert_eq!(observed.findings[0].kind, FindingKind::NoProgress, "{observed:?}");
    assert!(matches!(seen.verdict(), Some(Verdict::Fail(why)) if why.contains("timed out")));
}

fn warm() {
    let lab = Lab::new();
    (0..3).for_each(|_| assert!(lab.verify("honest").observed().findings.is_empty()));
    assert_eq!(lab.starts(), 1);
}

fn given_back() {
    let lab = Lab { samples: Some(5), ..Lab::new() };
    let others = lab.dir.path().join("others");
    fs::write(&others, ((1u64 << 30) - (24 << 20)).to_string()).unwrap();
    assert_eq!(lab.bench("honest").verdict(), None);
    let large = Lab { elements: 1 << 21, bytes: Some(4096.0), ..lab };
    fs::remove_file(others).unwrap();
    // By the same runner, whose device had little memory when it started.
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

fn shared_memory() {
    let large = Lab { shared: 100_000, ..Lab::new() };
    assert!(large.verify("honest").observed().findings.is_empty());
    let too_large = Lab { shared: 300_000, ..Lab::new() }.verify("honest").observed();
    assert_eq!(too_large.findings[0].kind, FindingKind::LaunchRefused, "{too_large:?}");
    let too_many = Lab { threads: 2048, ..Lab::new() }.verify("honest").observed();
    assert_eq!(too_many.findings[0].kind, FindingKind::LaunchRefused, "{too_many:?}");
    assert!(too_many.findings[0].message.contains("block 2048,1,1"), "{too_many:?}");
}

fn attributes() {
    let three = |launch: KernelLaunch| {
        let plain = KernelLaunch { cooperative: false, ..launch };
        let clusters = KernelLaunch { cluster: Some([4, 1, 1]), pdl: true, ..plain.clone() };
        let large = KernelLaunch { cluster: Some([16, 1, 1]), cooperative: true, grid: [32, 1, 1], ..plain.clone() };
        vec![plain, clusters, large]
    };
    let lab = Lab { launches: three, ..Lab::new() };
    let observed = lab.verify("honest").observed();
    assert!(observed.findings.is_empty(), "{observed:?}");
    assert_eq!(
        lab.asked()[..3],
        [
            "honest grid 8,1,1 cluster 1,1,1",
            "honest grid 8,1,1 cluster 4,1,1 dependent",
            "honest grid 32,1,1 cluster 16,1,1 cooperative",
        ]
    );
    // Graphs hold the same.
    assert_eq!(lab.bench("brief").verdict(), None);
}

fn too_large() {
    // Four multiprocessors hold sixteen blocks of 128 threads each.
    let full = Lab { launches: |launch| vec![KernelLaunch { grid: [64, 1, 1], ..launch }], ..Lab::new() };
    assert!(full.verify("honest").observed().findings.is_empty());
    let more = Lab { launches: |launch| vec![KernelLaunch { grid: [65, 1, 1], ..launch }], ..Lab::new() };
    let seen = more.verify("honest");
    let found = &seen.observed().findings[0];
    assert_eq!(found.kind, FindingKind::LaunchRefused);
    for part in ["CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "grid 65,1,1", "16 blocks of it fit a multiprocessor"] {
        assert!(found.message.contains(part), "{}", found.message);
    }
    assert!(!seen.forgotten());
    let more = Lab { samples: Some(5), only: Some(Metric::Cold), ..more };
    let seen = more.bench("honest");
    let refused = |why: &str| why.contains("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE");
    assert!(matches!(seen.verdict(), Some(Verdict::Fail(why)) if refused(&why)), "{:?}", seen.response);
    // Nothing ran, and the gate that holds the stream of a sample was opened: the runner is as good as before.
    let rest = Lab { launches: |launch| vec![launch], ..more };
    assert!(rest.verify("honest").observed().findings.is_empty());
    assert_eq!(rest.starts(), 1);
}

fn of_the_device(launch: KernelLaunch, extent: &str) -> Vec<KernelLaunch> {
    let names = [("tiles".to_string(), Known::Int(1000))].into();
    let open_grid = Some(OpenGrid { extents: vec![extent.into(), "2".into()], names });
    vec![KernelLaunch { grid: [0; 3], open_grid, cooperative: false, ..launch }]
}

fn sized() {
    // Four multiprocessors hold sixteen blocks of 128 threads each.
    let lab = Lab { launches: |launch| of_the_device(launch, "min(sm_count * occupancy, tiles)"), ..Lab::new() };
    assert!(lab.verify("honest").observed().findings.is_empty());
    assert_eq!(lab.asked()[0], "honest grid 64,2,1 cluster 1,1,1");
    let none = Lab { launches: |launch| of_the_device(launch, "sm_count // 5"), ..Lab::new() };
    let observed = none.verify("honest").observed();
    assert_eq!(observed.findings[0].kind, FindingKind::LaunchRefused, "{observed:?}");
    let said = &observed.findings[0].message;
    assert!(said.contains("`sm_count // 5` is 0 blocks along x, with sm_count = 4 and occupancy = 16"), "{said}");
    assert!(none.asked().is_empty());
}

fn mapped() {
    let with_map = |launch: KernelLaunch| {
        let map = TensorMap {
            buffer: "x".into(),
            dtype: DType::F32,
            extents: vec![20, 50],
            strides: vec![80],
            tile: vec![8, 25],
            swizzle: 32,
            nan: true,
            l2_promotion: 128,
        };
        let mut args = launch.args.clone();
        args.push(Arg::TensorMap(map));
        vec![KernelLaunch { args, ..launch }]
    };
    let lab = Lab { launches: with_map, ..Lab::new() };
    let observed = lab.verify("mapped").observed();
    assert!(observed.findings.is_empty() && differing(&observed) == 0, "{observed:?}");
    let maps = fs::read_to_string(lab.dir.path().join("maps")).unwrap();
    // CU_TENSOR_MAP_DATA_TYPE_FLOAT32, SWIZZLE_32B, L2_PROMOTION_L2_128B, FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA.
    assert_eq!(maps.lines().next(), Some("type 7 rank 2 20:8:1 50:25:1 +80 swizzle 1 promotion 2 fill 1"));
}

fn near(samples: &[f64], ns: f64) {
    let middle = kforge::measure::stats::median(samples);
    assert!((middle / ns - 1.0).abs() < 0.01, "{middle} for {ns}");
}

fn timed() {
    let seen = Lab::new().bench("honest");
    assert_eq!(seen.verdict(), None, "{:?}", seen.response);
    let observed: BenchObserved = seen.read("observation");
    assert!(observed.verified);
    for series in [observed.cold.unwrap(), observed.hot.unwrap()] {
        assert!(series.samples_ns.len() >= 30 && series.dropped == 0, "{series:?}");
        near(&series.samples_ns, 50_000.0);
    }
    assert!(observed.took_s.is_some_and(|s| s > 0.0), "{:?}", observed.took_s);
    // Double data rate over 512 bits at 1000 MHz; four processors at 1000 MHz, each 4096 a clock.
    let peaks = observed.peaks.unwrap();
    assert_eq!((peaks.dram_bytes_per_s, peaks.ops_per_s["f16"]), (128e9, 16.384e12));
}

fn few() {
    for few in [7, 25] {
        let observed: BenchObserved = Lab { samples: Some(few), ..Lab::new() }.bench("honest").read("observation");
        for series in [observed.cold.unwrap(), observed.hot.unwrap()] {
            assert_eq!(series.samples_ns.len(), few as usize);
        }
    }
}

fn few_launches() {
    let lab = |metric| Lab { samples: Some(5), only: Some(metric), ..Lab::new() };
    let launched = |lab: &Lab, step: &dyn Fn() -> Seen| {
        let before = lab.asked().len();
        let seen = step();
        assert_eq!(seen.verdict(), None, "{:?}", seen.response);
        lab.asked().len() - before
    };
    let hot = lab(Metric::Hot);
    // Two that show what to expect, five samples, and one that nobody times, where no verification has shown what is left.
    assert_eq!(launched(&hot, &|| hot.bench("honest")), 8);
    launched(&hot, &|| hot.verify("honest"));
    assert_eq!(launched(&hot, &|| hot.bench("honest")), 7);
    let observed: BenchObserved = hot.bench("slower").read("observation");
    assert!(observed.few && observed.verified && observed.cold.is_none(), "{observed:?}");
    assert_eq!(observed.hot.unwrap().samples_ns.len(), 5);
    // One that no luck can help is sampled once, after a launch that prepares it, and is as right as the others.
    launched(&hot, &|| hot.verify("hopeless"));
    assert_eq!(launched(&hot, &|| hot.bench("hopeless")), 2);
    // One whose first launch alone is slow gets all of its samples.
    launched(&hot, &|| hot.verify("slow_to_start"));
    assert_eq!(launched(&hot, &|| hot.bench("slow_to_start")), 7);
    let cold = lab(Metric::Cold);
    for kernel in ["honest", "hopeless"] {
        launched(&cold, &|| cold.verify(kernel));
    }
    assert_eq!(launched(&cold, &|| cold.bench("honest")), 7);
    assert_eq!(launched(&cold, &|| cold.bench("hopeless")), 2);
    let observed: BenchObserved = cold.bench("hopeless").read("observation");
    assert!(observed.few && observed.verified, "{observed:?}");
    assert_eq!(observed.cold.unwrap().samples_ns.len(), 1);
}

fn kept() {
    let lab = Lab::new();
    let moved = |how: &str| {
        let all = fs::read_to_string(lab.dir.path().join("moved")).unwrap_or_default();
        all.lines().filter(|line| line.starts_with(how)).count()
    };
    lab.verify("honest");
    let (read, allocated) = (moved("read"), moved("allocated"));
    assert_eq!(read, 2, "the output of each trial");
    let observed = lab.verify("slower").observed();
    assert_eq!((observed.findings.len(), observed.trials.len(), differing(&observed)), (0, 2, 0), "{observed:?}");
    assert_eq!((moved("read"), moved("allocated")), (read, allocated));
    assert!(differing(&lab.verify("wrong").observed()) > 0, "other outputs are other ones");
    assert!(moved("read") > read);
    let spent = lab.verify("honest").read::<Provenance>("provenance").spent_us;
    assert!(["whole", "wait", "device", "run", "show"].iter().all(|phase| spent.contains_key(*phase)), "{spent:?}");
}

fn short() {
    let seen = Lab::new().bench("brief");
    assert_eq!(seen.verdict(), None, "{:?}", seen.response);
    let observed: BenchObserved = seen.read("observation");
    near(&observed.hot.unwrap().samples_ns, 2000.0);
}

fn gives_up() {
    let seen = Lab::new().bench("gives_up");
    assert!(matches!(seen.verdict(), Some(Verdict::Fail(why)) if why.contains("`y`")), "{:?}", seen.response);
    assert!(!seen.read::<BenchObserved>("observation").verified);
}

fn stale() {
    let seen = Lab::new().bench("uses_stale");
    assert_eq!(seen.verdict(), None, "{:?}", seen.response);
    near(&seen.read::<BenchObserved>("observation").cold.unwrap().samples_ns, 50_000.0);
}

fn impossible() {
    // 2 x 2 MiB at 128 bytes a nanosecond, less one MiB of cache, take 24 us.
    let lab = Lab { elements: 1 << 19, ..Lab::new() };
    let seen = lab.bench("impossible");
    let verdict = seen.verdict();
    let said = matches!(&verdict, Some(Verdict::Fail(why)) if why.contains("clock"))
        || matches!(&verdict, Some(Verdict::Unknown(Unknown::Implausible(_))));
    assert!(said, "{:?}", seen.response);
    // Who need not read them all says so.
    assert_eq!(Lab { bytes: Some(4096.0), ..lab }.bench("impossible").verdict(), None);
}

fn unreckoned() {
    // At 16.384 tera-operations a second 1e12 take 61 ms, and 5e8 take 31 us.
    let of = |least| Lab { flops_min: Some(least), ..Lab::new() }.bench("honest").verdict();
    assert_eq!(of(5e8), None);
    let verdict = of(1e12);
    let said = matches!(&verdict, Some(Verdict::Fail(why)) if why.contains("clock"))
        || matches!(&verdict, Some(Verdict::Unknown(Unknown::Implausible(why))) if why.contains("least arithmetic"));
    assert!(said, "{verdict:?}");
}

fn reckoned() {
    let lab = Lab::new();
    let params = PeaksParams { arch: "sm_90a".into(), protocol: 1 };
    let seen = lab.run(StepKind::Peaks, serde_json::to_value(&params).unwrap(), vec![]);
    assert_eq!(seen.verdict(), None, "{:?}", seen.response);
    let observed: PeaksObserved = seen.read("observation");
    let close = |rate: f64, wanted: f64| assert!((rate / wanted - 1.0).abs() < 1e-3, "{rate} for {wanted}");
    close(observed.dram_bytes_per_s["read"].per_s, 100e9);
    close(observed.dram_bytes_per_s["copy"].sustained_per_s, 80e9);
    close(observed.dram_bytes_per_s["write"].per_s, 90e9);
    close(observed.ops("f32").unwrap(), 2e12);
    // Four processors, each 32 times 2 x 64 x 256 x 16 in a microsecond.
    close(observed.ops("bf16").unwrap(), 4.0 * 16_777_216.0 * 1e6);
    assert_eq!(observed.ops_per_s["bf16"].with, "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16");
    close(observed.ops("i8").unwrap(), 8.0 * 16_777_216.0 * 1e6);
    let missing: Vec<(&String, &String)> = observed.missing.iter().collect();
    let [(unit, why)] = missing[..] else { panic!("{missing:?}") };
    assert!(unit == "f8" && why.contains("CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)"), "{unit}: {why}");
    let provenance: Provenance = seen.read("provenance");
    assert_eq!((provenance.protocol, provenance.device.product.as_str()), (1, "NVIDIA Test"));
    assert!(lab.verify("honest").observed().findings.is_empty(), "the next step finds a runner");
}

fn paired() {
    let lab = Lab::new();
    let decided = |a: &str, b: &str, hot| {
        let seen = lab.pairs(a, b, hot);
        assert_eq!(seen.verdict(), None, "{:?}", seen.response);
        let observed: PairsObserved = seen.read("observation");
        assert!((8..=16).contains(&observed.blocks.len()), "{}", observed.blocks.len());
        decide(&observed.blocks, 0.01)
    };
    assert_eq!(decided("slower", "honest", false), Paired::Slower);
    assert_eq!(decided("honest", "slower", true), Paired::Faster);
    assert_eq!(decided("honest", "honest", false), Paired::Same);
    assert_eq!(decided("brief", "brief", true), Paired::Same);
}
