//! A folder in which a worker executes the steps of one kernel: its reference, its binary, its verification.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kforge::base::Digest;
use kforge::emulator::headers;
use kforge::harness::message::{Places, Response};
use kforge::harness::task::Task;
use kforge::model::bound::{Arg, Buffer};
use kforge::model::tensor_map::TensorMap;
use kforge::model::{Compare, DType, KernelLaunch, Launch, Param, Problem, Reference, Role, Scalar, Tensor};
use kforge::record::params::{CompileParams, Compiler, OracleParams, Trial, VerifyParams};
use kforge::record::{FindingKind, Form, Input, Spec, StepKind, VerifyObservation};
use kforge::worker::serve::perform;
use kforge::worker::steps::handler;

use crate::python::python;

pub(crate) const ROWS: u64 = 3;
pub(crate) const COLS: u64 = 70;

/// y = x * w + 1 by row, as a C++ reference.
pub(crate) const REFERENCE: &str = r#"
extern "C" void scale_rows(const kforge::Call& call) {
    const double *x = call.floats("x"), *w = call.floats("w");
    double *y = call.out_floats("y"), *s = call.scale("y");
    const int64_t rows = call.dim("rows"), cols = call.dim("cols");
    for (int64_t i = 0; i < rows * cols; ++i) {
        y[i] = x[i] * w[i % cols] + call.param("bias");
        s[i] = std::abs(x[i] * w[i % cols]) + 1;
    }
}
"#;

/// A kernel with this body, launched with one block per row.
pub(crate) fn kernel(body: &str) -> String {
    format!(
        "__global__ void k(const float* x, const float* w, float* y, int rows, int cols, float bias) {{\n\
         int row = blockIdx.x; (void)row; {body} }}\n"
    )
}

pub(crate) const GOOD: &str =
    "for (int i = threadIdx.x; i < cols; i += blockDim.x) y[row * cols + i] = x[row * cols + i] * w[i] + bias;";

fn tensor(name: &str, role: Role, shape: &[u64]) -> Tensor {
    Tensor::dense(name, role, DType::F32, shape)
}

pub(crate) fn problem() -> Problem {
    Problem {
        dims: [("rows".to_string(), ROWS as i64), ("cols".to_string(), COLS as i64)].into(),
        tensors: vec![
            tensor("x", Role::Input, &[ROWS, COLS]),
            tensor("w", Role::Input, &[COLS]),
            tensor("y", Role::Output, &[ROWS, COLS]),
        ],
        params: vec![Param { name: "bias".into(), dtype: DType::F32, value: Scalar::Float(1.0) }],
        reference: Reference::Cpp { file: "ref.cpp".into(), function: "scale_rows".into() },
        generate_inputs: None,
    }
}

pub(crate) fn trial() -> Trial {
    Trial { trial: 0, seed: 7, distribution: "normal".into() }
}

/// An oracle step without null candidates.
pub(crate) fn asked(problem: &Problem, scaled: &[&str]) -> OracleParams {
    OracleParams {
        problem: problem.clone(),
        trial: trial(),
        scaled: scaled.iter().map(|output| output.to_string()).collect(),
        nulls: false,
        compare: BTreeMap::new(),
        count_beyond: BTreeMap::new(),
        holdout: false,
    }
}

/// A folder in which steps are executed one after another.
pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) problem: Problem,
    pub(crate) check: bool,
    pub(crate) workspaces: Vec<Buffer>,
    pub(crate) compare: BTreeMap<String, Compare>,
    pub(crate) run: Duration,
    pub(crate) time: Duration,
    pub(crate) memory: u64,
    /// Whether the shape is a holdout shape.
    pub(crate) holdout: bool,
    /// When steps are planned. Long ago, so that verifications share what they draw.
    pub(crate) planned: std::time::SystemTime,
    /// Passed after the other arguments.
    pub(crate) map: Option<TensorMap>,
    /// How the launch is changed.
    pub(crate) launch: fn(KernelLaunch) -> KernelLaunch,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bench = Bench {
            dir,
            problem: problem(),
            check: true,
            workspaces: vec![],
            compare: BTreeMap::new(),
            run: Duration::from_secs(600),
            time: Duration::from_secs(600),
            memory: 1 << 30,
            holdout: false,
            planned: std::time::SystemTime::UNIX_EPOCH,
            map: None,
            launch: |launch| launch,
        };
        bench.file("in/tree-reference/ref.cpp", REFERENCE.as_bytes());
        bench.file("in/toolchain", toolchain());
        bench.file("in/toolchain-c++", toolchain());
        for (name, bytes) in headers() {
            bench.file(&format!("in/tree-emulator/{name}"), bytes);
        }
        fs::create_dir_all(bench.dir.path().join("out")).unwrap();
        bench
    }

    pub(crate) fn plain() -> Self {
        Bench { check: false, ..Bench::new() }
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn step(&self, kind: StepKind, params: serde_json::Value) -> Response {
        let all = [
            "toolchain",
            "toolchain:c++",
            "tree:reference",
            "tree:source",
            "tree:emulator",
            "binary",
            "facts",
            "lines",
            "expected:0",
        ];
        let there = |name: &&str| self.dir.path().join("in").join(name.replace(':', "-")).exists();
        // Only references are looked up by content here.
        let reference = fs::read(self.dir.path().join("in/tree-reference/ref.cpp")).unwrap_or_default();
        let digest = Some(Digest::of(&reference));
        let input = |name: &str| (name.to_string(), Input { digest, form: Form::Blob });
        let task = Task {
            spec: Spec {
                kind,
                version: 1,
                implementation: None,
                params,
                inputs: all.into_iter().filter(there).map(input).collect(),
            },
            input: self.dir.path().join("in"),
            output: self.dir.path().join("out"),
            places: Places { tools: tools(), read: vec![], scratch: Some((self.dir.path().join("scratch"), 1 << 20)) },
            device: None,
            time_limit: self.time,
            run_limit: self.run,
            memory_limit: self.memory,
            compiler_memory: 8 << 30,
            allow_unconfined: false,
            hang: None,
            planned: self.planned,
            warm_up: false,
            started: Instant::now(),
            waiting_us: Default::default(),
        };
        perform(&task, handler)
    }

    /// Executes a step that must succeed, and passes its outputs to the next one.
    fn made(&self, kind: StepKind, params: serde_json::Value, outputs: &[(&str, &str)]) {
        let response = self.step(kind, params);
        assert!(matches!(response, Response::Done { .. }), "{response:?}");
        for (output, input) in outputs {
            fs::copy(self.dir.path().join("out").join(output), self.dir.path().join("in").join(input)).unwrap();
        }
    }

    pub(crate) fn oracle(&self) {
        let params = OracleParams { nulls: true, ..asked(&self.problem, &["y"]) };
        self.made(StepKind::Oracle, serde_json::to_value(params).unwrap(), &[("expected", "expected-0")]);
    }

    fn compiler(&self) -> Compiler {
        if self.check { Compiler::EmulatorCheck } else { Compiler::EmulatorPlain }
    }

    pub(crate) fn compile(&self, source: &str) {
        self.file("in/tree-source/k.cu", source.as_bytes());
        let params = CompileParams {
            compiler: self.compiler(),
            arch: "cpu".into(),
            main: "k.cu".into(),
            entries: vec!["k".into()],
            defines: BTreeMap::new(),
            std: "c++17".into(),
            include: vec![],
            flags: vec![],
            candidate: false,
            lined: false,
            ptx: false,
            host: None,
            triton: vec![],
        };
        let outputs = [("binary", "binary"), ("facts", "facts"), ("lines", "lines")];
        self.made(StepKind::Compile, serde_json::to_value(params).unwrap(), &outputs);
    }

    pub(crate) fn verify(&self) -> Response {
        let scalar = |dtype, value| Arg::Scalar { dtype, value };
        let pointer = |name: &str| Arg::Pointer { buffer: name.into(), offset: 0 };
        let mut args = vec![pointer("x"), pointer("w"), pointer("y")];
        args.extend([ROWS, COLS].map(|dim| scalar(DType::I32, Scalar::Int(dim as i64))));
        args.push(scalar(DType::F32, Scalar::Float(1.0)));
        args.extend(self.workspaces.iter().map(|workspace| pointer(&workspace.name)));
        args.extend(self.map.clone().map(Arg::TensorMap));
        let launch = KernelLaunch {
            entry: "k".into(),
            grid: [ROWS as u32, 1, 1],
            block: [64, 1, 1],
            args,
            ..KernelLaunch::default()
        };
        let launch = (self.launch)(launch);
        let params = VerifyParams {
            arch: "cpu".into(),
            compiler: self.compiler(),
            problem: self.problem.clone(),
            entries: vec!["k".into()],
            launches: vec![Launch::Kernel(launch)],
            workspaces: self.workspaces.clone(),
            constants: vec![],
            host: None,
            trials: vec![trial()],
            compare: self.compare.clone(),
            scaled: vec!["y".into()],
            count_beyond: BTreeMap::new(),
            protocol: 1,
            holdout: self.holdout,
            torch: None,
            isolated: false,
            sanitize: vec![],
            samples: None,
            only: None,
            flops_min: None,
            bytes: None,
        };
        self.step(StepKind::Verify, serde_json::to_value(params).unwrap())
    }

    pub(crate) fn observation(&self) -> VerifyObservation {
        serde_json::from_slice(&fs::read(self.dir.path().join("out/observation")).unwrap()).unwrap()
    }

    /// Compiles and verifies, and returns the observation. The step must succeed.
    pub(crate) fn see(&self, body: &str) -> VerifyObservation {
        self.see_source(&kernel(body))
    }

    pub(crate) fn see_source(&self, source: &str) -> VerifyObservation {
        self.oracle();
        self.compile(source);
        match self.verify() {
            Response::Done { verdict: None, forget: false, .. } => self.observation(),
            other => panic!("{other:?}"),
        }
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    ["/usr/local/bin", "/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name)).into_iter().find(|p| p.exists())
}

/// The fingerprint of the C++ compiler.
pub(crate) fn toolchain() -> &'static [u8] {
    static KNOWN: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    KNOWN.get_or_init(|| {
        let found = kforge::toolchain::cxx::find(on_path("g++").as_deref(), "").unwrap();
        let survey = found.survey(include_str!("../../src/ops/session/prelude.h")).unwrap();
        serde_json::to_vec(&survey.fingerprint(&|path: &Path| Digest::of_file(path)).unwrap()).unwrap()
    })
}

fn tools() -> BTreeMap<String, PathBuf> {
    let cxx = on_path("g++").expect("these tests need g++");
    let python = python().map(|python| ("python".to_string(), python));
    [("c++".to_string(), cxx)].into_iter().chain(python).collect()
}

pub(crate) fn kinds(seen: &VerifyObservation) -> Vec<FindingKind> {
    seen.findings.iter().map(|finding| finding.kind).collect()
}
