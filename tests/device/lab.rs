//! A home with the test's driver and its device, and a worker that executes steps on it as in a build.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as System;
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use kforge::base::Digest;
use kforge::cuda::device::facts::{DeviceFacts, Probed};
use kforge::harness::hangs::HangMark;
use kforge::harness::message::{Places, Request, Response};
use kforge::harness::pool::Pool;
use kforge::model::bound::{Arg, Buffer, Fill, KernelLaunch, Launch, Scalar};
use kforge::model::{DType, Metric, Problem, Reference, Role, Sanitizer, Tensor};
use kforge::process::Command;
use kforge::record::params::{CompileFacts, Compiler, Expected, PairsParams, Sanitized, Trial, VerifyParams};
use kforge::record::{Form, Input, Spec, StepKind, Verdict, VerifyObservation};
use kforge::reference::{generate, oracle};

fn problem(elements: u64) -> Problem {
    let tensor = |name: &str, role| Tensor::dense(name, role, DType::F32, &[elements]);
    let tensors = vec![tensor("x", Role::Input), tensor("y", Role::Output)];
    Problem::of(tensors, Reference::builtin("elementwise", &[("y", "x + x".into())]))
}

fn trials() -> Vec<Trial> {
    let of = |trial, distribution: &str| Trial { trial, seed: 7 + u64::from(trial), distribution: distribution.into() };
    vec![of(0, "normal"), of(1, "uniform")]
}

/// The first element of the input in each fixed trial of 1000 elements, as the initializer of an array in C++.
fn known() -> String {
    let first = |trial: &Trial| generate::inputs(&problem(1000), trial).unwrap()["x"].to_f64(DType::F32)[0].to_string();
    trials().iter().map(first).collect::<Vec<_>>().join(",")
}

/// The driver and the candidates, compiled once.
pub(crate) fn built() -> &'static Path {
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
                    .arg(format!("-DKNOWN={}", known()))
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

/// A home with a list of devices, and a pool with one worker.
pub(crate) struct Lab {
    pub(crate) dir: Rc<tempfile::TempDir>,
    pub(crate) pool: Pool,
    pub(crate) seconds: u64,
    pub(crate) elements: u64,
    pub(crate) shared: u64,
    pub(crate) threads: u32,
    pub(crate) sanitize: Vec<Sanitizer>,
    pub(crate) allow_unconfined: bool,
    /// Where the only candidate of this lab is remembered if it times out.
    pub(crate) hang: Option<HangMark>,
    /// When steps are planned. Long ago, so that verifications share what they draw.
    pub(crate) planned: SystemTime,
    pub(crate) isolated: bool,
    pub(crate) samples: Option<u32>,
    pub(crate) only: Option<Metric>,
    pub(crate) flops_min: Option<f64>,
    pub(crate) bytes: Option<f64>,
    /// How the only launch of a variant is changed.
    pub(crate) launches: fn(KernelLaunch) -> Vec<KernelLaunch>,
}

pub(crate) struct Seen {
    /// Kept while the outputs are read.
    _dir: Rc<tempfile::TempDir>,
    pub(crate) response: Response,
    pub(crate) out: PathBuf,
}

/// The UUID of the driver's device.
const DEVICE: &str = "GPU-07070707-0707-0707-0707-070707070707";

impl Lab {
    pub(crate) fn new() -> Self {
        Lab::listed(|_| {})
    }

    /// A lab in whose list the device is changed.
    pub(crate) fn listed(change: fn(&mut DeviceFacts)) -> Self {
        let dir = Rc::new(tempfile::tempdir().unwrap());
        // Each test has its own copy of the driver, so that its log belongs to this test.
        fs::copy(built().join("libcuda.so.1"), dir.path().join("libcuda.so.1")).unwrap();
        let mut device = DeviceFacts {
            product: "NVIDIA Test".into(),
            arch: "sm_90".into(),
            driver: "1.2".into(),
            mig: None,
            uuid: DEVICE.into(),
            memory: 1 << 30,
            processors: 4,
            clock_mhz: 1000,
            memory_clock_mhz: 1000,
            bus_bits: 512,
            l2: 1 << 20,
            reaches_host: true,
        };
        change(&mut device);
        let libcuda = Some(dir.path().join("libcuda.so.1"));
        // The driver's logs are as device files to it: a runner may write no others.
        let device_files = ["starts", "launches", "moved", "maps"].map(|log| dir.path().join(log)).to_vec();
        device_files.iter().for_each(|log| fs::write(log, "").unwrap());
        let probed = Probed { libcuda, devices: vec![device], device_files, ..Probed::default() };
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
            allow_unconfined: false,
            hang: None,
            planned: SystemTime::UNIX_EPOCH,
            isolated: false,
            samples: None,
            only: None,
            flops_min: None,
            bytes: None,
            launches: |launch| vec![launch],
        }
    }

    pub(crate) fn params(&self, entry: &str) -> VerifyParams {
        let problem = problem(self.elements);
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
        VerifyParams {
            arch: "sm_90a".into(),
            compiler: Compiler::Auto,
            problem,
            entries: vec![entry.into()],
            launches: (self.launches)(launch).into_iter().map(Launch::Kernel).collect(),
            workspaces: vec![Buffer { name: "w".into(), dtype: DType::F32, elements: 1, fill: Fill::Poison }],
            constants: vec![],
            trials: trials(),
            compare: BTreeMap::new(),
            scaled: vec![],
            count_beyond: BTreeMap::new(),
            protocol: 1,
            host: None,
            holdout: false,
            torch: None,
            isolated: self.isolated,
            sanitize: self.sanitize.iter().map(|&tool| Sanitized { tool, protocol: 1 }).collect(),
            only: self.only,
            samples: self.samples,
            flops_min: self.flops_min,
            bytes: self.bytes,
        }
    }

    pub(crate) fn run(&self, kind: StepKind, params: serde_json::Value, inputs: Vec<(String, Vec<u8>)>) -> Seen {
        let step = tempfile::tempdir_in(self.dir.path()).unwrap().keep();
        let (input, output) = (step.join("in"), step.join("out"));
        fs::create_dir(&input).unwrap();
        fs::create_dir(&output).unwrap();
        let mut named = BTreeMap::new();
        for (name, bytes) in inputs {
            let path = input.join(name.replace(':', "-"));
            fs::write(&path, &bytes).unwrap();
            named.insert(name, Input { digest: Some(Digest::of(&bytes)), form: Form::Blob });
        }
        let spec = Spec { kind, version: 1, implementation: None, params, inputs: named };
        let request = Request { input, output: output.clone(), ..self.request(spec) };
        let response = self.pool.run(&request, &AtomicBool::new(false)).unwrap();
        Seen { _dir: Rc::clone(&self.dir), response, out: output }
    }

    /// Starts the runner of the device before the first step there.
    pub(crate) fn warm_up(&self) -> Response {
        let params = serde_json::json!({ "arch": "sm_90a" });
        let spec = Spec { kind: StepKind::Verify, version: 0, implementation: None, params, inputs: BTreeMap::new() };
        let request = Request { warm_up: true, ..self.request(spec) };
        self.pool.run(&request, &AtomicBool::new(false)).unwrap()
    }

    /// The list that builds of this user would share.
    pub(crate) fn known_list(&self) -> PathBuf {
        kforge::cuda::device::known_list(self.dir.path())
    }

    /// A request without folders.
    fn request(&self, spec: Spec) -> Request {
        Request {
            spec,
            input: PathBuf::new(),
            output: PathBuf::new(),
            places: Places { tools: self.tools(), read: vec![], scratch: None },
            device: Some(DEVICE.into()),
            time_limit_s: self.seconds,
            run_limit_s: self.seconds,
            memory_limit: 1 << 30,
            compiler_memory: 1 << 30,
            allow_unconfined: self.allow_unconfined,
            hang: self.hang.clone(),
            planned: self.planned,
            warm_up: false,
        }
    }

    /// The list of devices, and the tools that were placed beside it.
    fn tools(&self) -> BTreeMap<String, PathBuf> {
        let all = [("devices", "devices.json"), ("ncu", "ncu"), ("compute-sanitizer", "compute-sanitizer")];
        let there = all.map(|(name, file)| (name.to_string(), self.dir.path().join(file)));
        there.into_iter().filter(|(_, path)| path.exists()).collect()
    }

    pub(crate) fn candidate(&self, entry: &str, suffix: &str) -> Vec<(String, Vec<u8>)> {
        let facts = CompileFacts {
            compiler: "nvrtc".into(),
            symbols: vec![entry.into()],
            spills: BTreeMap::new(),
            triton: vec![],
        };
        let binary = fs::read(built().join("kernels.so")).unwrap();
        vec![(format!("binary{suffix}"), binary), (format!("facts{suffix}"), serde_json::to_vec(&facts).unwrap())]
    }

    /// Verifies the entry in a binary of its own.
    pub(crate) fn verify_apart(&self, entry: &str) -> Seen {
        let mut inputs = self.candidate(entry, "");
        // A loader ignores what follows a library.
        inputs[0].1.extend(entry.as_bytes());
        self.verify_on(&self.params(entry), inputs)
    }

    pub(crate) fn verify(&self, entry: &str) -> Seen {
        self.verify_on(&self.params(entry), self.candidate(entry, ""))
    }

    /// Verifies a binary with these parameters.
    pub(crate) fn verify_on(&self, params: &VerifyParams, mut inputs: Vec<(String, Vec<u8>)>) -> Seen {
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

    pub(crate) fn bench(&self, entry: &str) -> Seen {
        self.run(StepKind::Bench, serde_json::to_value(self.params(entry)).unwrap(), self.candidate(entry, ""))
    }

    pub(crate) fn pairs(&self, a: &str, b: &str, hot: bool) -> Seen {
        let params = PairsParams { arch: "sm_90a".into(), hot, a: self.params(a), b: self.params(b), protocol: 1 };
        let inputs = [self.candidate(a, ":a"), self.candidate(b, ":b")].concat();
        self.run(StepKind::Pairs, serde_json::to_value(&params).unwrap(), inputs)
    }

    /// The driver's log, one line per launch of a candidate.
    pub(crate) fn asked(&self) -> Vec<String> {
        let all = fs::read_to_string(self.dir.path().join("launches")).unwrap_or_default();
        all.lines().map(String::from).collect()
    }

    /// How often a driver was initialized.
    pub(crate) fn starts(&self) -> usize {
        fs::read_to_string(self.dir.path().join("starts")).unwrap_or_default().lines().count()
    }
}

impl Seen {
    pub(crate) fn read<T: serde::de::DeserializeOwned>(&self, name: &str) -> T {
        let bytes = fs::read(self.out.join(name)).unwrap_or_else(|e| panic!("{name}: {e}: {:?}", self.response));
        serde_json::from_slice(&bytes).unwrap()
    }

    pub(crate) fn observed(&self) -> VerifyObservation {
        self.read("observation")
    }

    pub(crate) fn verdict(&self) -> Option<Verdict> {
        match &self.response {
            Response::Done { verdict, .. } => verdict.clone(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn forgotten(&self) -> bool {
        matches!(self.response, Response::Done { forget: true, .. })
    }
}

/// The number of fixed trials and of fresh ones.
pub(crate) fn counted(seen: &VerifyObservation) -> (usize, usize) {
    let fresh = seen.trials.iter().filter(|t| seen.fresh_trial(t.trial).is_some()).count();
    (seen.trials.len() - fresh, fresh)
}

/// The number of elements that differ from the expected values, over all trials and runs.
pub(crate) fn differing(seen: &VerifyObservation) -> usize {
    seen.trials.iter().flat_map(|t| &t.outputs).map(|o| o.front.len()).sum()
}
