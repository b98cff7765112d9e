//! Kernels that are right, wrong or hostile, compiled for the emulator and judged as a build would: by a judge, in runners of their own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kforge::base::Digest;
use kforge::model::bound::{Arg, Buffer, Fill};
use kforge::model::grid::OpenGrid;
use kforge::model::tensor_map::TensorMap;
use kforge::model::{Compare, DType, KernelLaunch, Launch, Param, Problem, Reference, Role, Scalar, Tensor};
use kforge::record::params::{CompileParams, Compiler, Expected, OracleParams, Trial, VerifyParams};
use kforge::record::{Determinism, FindingKind, Form, Input, Spec, StepKind, Verdict, VerifyObservation};
use kforge::worker::Task;
use kforge::worker::emulator::headers;
use kforge::worker::message::{Places, Response};
use kforge::worker::serve::dispatch::TABLE;
use kforge::worker::serve::perform;

use crate::Test;
use crate::python::python;

pub(crate) const TESTS: &[Test] = &[
    ("a_right_kernel_leaves_an_observation_without_findings", right),
    ("a_wrong_kernel_is_compared_whole", wrong),
    ("elements_that_nobody_wrote_are_named", unwritten),
    ("a_write_beside_a_buffer_is_found_in_a_plain_build", beside),
    ("inputs_cannot_be_changed", inputs),
    ("a_kernel_that_depends_on_thread_order_is_found", ordered),
    ("a_kernel_that_hangs_times_out_and_is_forgotten", hangs),
    ("a_run_is_not_charged_for_the_judges_own_time", judges_time),
    ("a_kernel_that_ends_the_process_fails", exits),
    ("no_exit_status_is_taken_for_the_runners_own", exits_as_we_do),
    ("forged_reports_do_not_save_a_wrong_kernel", forges),
    ("what_is_said_not_to_be_emulated_must_be_in_the_binary", claims),
    ("a_stack_too_deep_is_believed_of_code_that_may_need_it", deep),
    ("a_kernel_that_starts_threads_without_end_is_ended", crowds),
    ("a_flood_of_reports_is_a_failure", floods),
    ("a_run_reaches_nothing_of_another", runs_apart),
    ("threads_that_left_before_a_barrier_stop_no_comparison", left_early),
    ("what_is_not_emulated_is_neither_pass_nor_fail", not_emulated),
    ("a_grid_of_the_devices_size_has_the_emulators", sized),
    ("only_a_cooperative_grid_can_wait_for_itself", cooperative),
    ("a_kernel_that_reaches_out_is_reported_though_its_values_are_right", reaches_out),
    ("buffers_beyond_the_memory_limit_are_unavailable", too_large),
    ("expectations_that_were_lost_are_made_again", lost_scratch),
    ("a_workspace_that_must_be_zero_again_is_checked", workspace),
    ("a_cpp_reference_and_its_scale_are_taken", cpp_reference),
    ("a_cpp_reference_that_fails_says_so", cpp_failure),
    ("a_python_reference_is_taken", python_reference),
    ("inputs_and_checks_in_python_are_taken", python_inputs),
];

const ROWS: u64 = 3;
const COLS: u64 = 70;

/// y = x * w + 1 by row, as a C++ reference would have it.
const REFERENCE: &str = r#"
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

/// A kernel with that body, launched with one block a row.
fn kernel(body: &str) -> String {
    format!(
        "__global__ void k(const float* x, const float* w, float* y, int rows, int cols, float bias) {{\n\
         int row = blockIdx.x; (void)row; {body} }}\n"
    )
}

const GOOD: &str =
    "for (int i = threadIdx.x; i < cols; i += blockDim.x) y[row * cols + i] = x[row * cols + i] * w[i] + bias;";

fn tensor(name: &str, role: Role, shape: &[u64]) -> Tensor {
    Tensor::dense(name, role, DType::F32, shape)
}

fn problem() -> Problem {
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

fn trial() -> Trial {
    Trial { trial: 0, seed: 7, distribution: "normal".into() }
}

/// An oracle step without null candidates.
fn asked(problem: &Problem, scaled: &[&str]) -> OracleParams {
    OracleParams {
        problem: problem.clone(),
        trial: trial(),
        scaled: scaled.iter().map(|output| output.to_string()).collect(),
        nulls: false,
        compare: BTreeMap::new(),
        count_beyond: BTreeMap::new(),
    }
}

/// A folder in which steps are done one after another.
struct Bench {
    dir: tempfile::TempDir,
    problem: Problem,
    check: bool,
    workspaces: Vec<Buffer>,
    compare: BTreeMap<String, Compare>,
    run: Duration,
    time: Duration,
    memory: u64,
    /// Passed behind the other arguments.
    map: Option<TensorMap>,
    /// What becomes of the launch.
    launch: fn(KernelLaunch) -> KernelLaunch,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bench = Bench {
            dir,
            problem: problem(),
            check: true,
            workspaces: vec![],
            compare: BTreeMap::new(),
            run: Duration::from_secs(60),
            time: Duration::from_secs(60),
            memory: 1 << 30,
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

    fn plain() -> Self {
        Bench { check: false, ..Bench::new() }
    }

    fn file(&self, name: &str, bytes: &[u8]) {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn step(&self, kind: StepKind, params: serde_json::Value) -> Response {
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
        // Nothing but the references is looked up by content here.
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
            product: None,
            unit: 0,
            time_limit: self.time,
            run_limit: self.run,
            memory_limit: self.memory,
            compiler_memory: 8 << 30,
            allow_unconfined: false,
            started: Instant::now(),
            waiting_us: Default::default(),
        };
        perform(&task, TABLE)
    }

    /// Does a step that has to succeed, and hands its outputs to the next.
    fn made(&self, kind: StepKind, params: serde_json::Value, outputs: &[(&str, &str)]) {
        let response = self.step(kind, params);
        assert!(matches!(response, Response::Done { .. }), "{response:?}");
        for (output, input) in outputs {
            fs::copy(self.dir.path().join("out").join(output), self.dir.path().join("in").join(input)).unwrap();
        }
    }

    fn oracle(&self) {
        let params = OracleParams { nulls: true, ..asked(&self.problem, &["y"]) };
        self.made(StepKind::Oracle, serde_json::to_value(params).unwrap(), &[("expected", "expected-0")]);
    }

    fn compiler(&self) -> Compiler {
        if self.check { Compiler::EmulatorCheck } else { Compiler::EmulatorPlain }
    }

    fn compile(&self, source: &str) {
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
            host: None,
        };
        let outputs = [("binary", "binary"), ("facts", "facts"), ("lines", "lines")];
        self.made(StepKind::Compile, serde_json::to_value(params).unwrap(), &outputs);
    }

    fn verify(&self) -> Response {
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
            sanitize: vec![],
            samples: None,
            only: None,
            flops_min: None,
            bytes: None,
        };
        self.step(StepKind::Verify, serde_json::to_value(params).unwrap())
    }

    fn observation(&self) -> VerifyObservation {
        serde_json::from_slice(&fs::read(self.dir.path().join("out/observation")).unwrap()).unwrap()
    }

    /// Compiles, verifies, and gives what was seen; the step has to end well.
    fn see(&self, body: &str) -> VerifyObservation {
        self.see_source(&kernel(body))
    }

    fn see_source(&self, source: &str) -> VerifyObservation {
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
        let survey = found.survey(include_str!("../../src/cli/session/prelude.h")).unwrap();
        serde_json::to_vec(&survey.fingerprint(&|path: &Path| Digest::of_file(path)).unwrap()).unwrap()
    })
}

fn tools() -> BTreeMap<String, PathBuf> {
    let cxx = on_path("g++").expect("these tests need g++");
    let python = python().map(|python| ("python".to_string(), python));
    [("c++".to_string(), cxx)].into_iter().chain(python).collect()
}

fn kinds(seen: &VerifyObservation) -> Vec<FindingKind> {
    seen.findings.iter().map(|finding| finding.kind).collect()
}

fn right() {
    for bench in [Bench::new(), Bench::plain()] {
        let seen = bench.see(GOOD);
        assert_eq!(kinds(&seen), [], "{:?}", seen.findings);
        assert_eq!(seen.determinism, Determinism::Stable);
        assert!(seen.emulated);
        // Every run gave the same bytes, so one comparison stands for all.
        let [trial] = &seen.trials[..] else { panic!("{seen:?}") };
        assert_eq!((trial.outputs[0].elements, trial.outputs[0].class_differing), (ROWS * COLS, 0));
        assert!(trial.outputs[0].front.iter().all(|point| point.error < 1e-5 && point.scale.is_some()));
    }
}

fn wrong() {
    let seen = Bench::new().see(&GOOD.replace("+ bias", "+ bias + (i == 69 ? 1 : 0)"));
    assert_eq!(kinds(&seen), []);
    let output = &seen.trials[0].outputs[0];
    let gross = output.gross.as_ref().unwrap();
    assert_eq!((gross.count, gross.first.index), (ROWS, COLS - 1));
    assert!((output.front[0].error - 1.0).abs() < 1e-5);
}

fn unwritten() {
    let seen = Bench::plain().see(&GOOD.replace("i < cols", "i < 64"));
    let found = &seen.findings[0];
    assert_eq!((found.kind, found.index, found.count), (FindingKind::Unwritten, Some(64), ROWS * 6));
}

fn beside() {
    // 840 bytes lie eight bytes from the end of their page, or at its start: one element too many is in reach.
    let seen = Bench::plain().see(&format!("{GOOD} if (row == 2 && threadIdx.x == 0) y[rows * cols] = 1;"));
    assert!(kinds(&seen).contains(&FindingKind::Canary), "{:?}", seen.findings);
}

fn inputs() {
    let seen = Bench::plain().see(&format!("{GOOD} if (threadIdx.x == 0) const_cast<float*>(x)[row] = 3;"));
    assert!(!seen.findings.is_empty(), "{:?}", seen.findings);
}

fn ordered() {
    // Every thread of a block writes the first element of its row; the last one stays.
    let seen = Bench::plain().see(&format!("{GOOD} y[row * cols] = 100 * threadIdx.x;"));
    assert!(!seen.findings.is_empty() && kinds(&seen).iter().all(|kind| *kind == FindingKind::OrderDependent));
    let Determinism::Differs { output, spread } = &seen.determinism else { panic!("{:?}", seen.determinism) };
    assert_eq!((output.as_str(), *spread), ("y", 6300.0));
    // Runs that differ from the first are compared too, each under its own name.
    assert!(seen.trials.iter().any(|trial| trial.distribution == "normal, threads reversed"));
}

fn hangs() {
    let mut bench = Bench::plain();
    bench.oracle();
    bench.compile(&format!("extern \"C\" int pause(void);\n{}", kernel("pause();")));
    bench.run = Duration::from_secs(3);
    match bench.verify() {
        Response::Done { verdict: Some(Verdict::Fail(why)), forget: true, .. } => {
            assert!(why.starts_with("the kernel timed out after "), "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(kinds(&bench.observation()), [FindingKind::NoProgress]);
}

fn judges_time() {
    // However much of the step's time the judge itself has taken, a run has its own.
    let mut bench = Bench::plain();
    bench.oracle();
    bench.compile(&kernel(GOOD));
    bench.time = Duration::ZERO;
    assert!(matches!(bench.verify(), Response::Done { verdict: None, .. }));
    assert_eq!(kinds(&bench.observation()), []);
}

fn exits() {
    for status in [0, 5] {
        assert_eq!(kinds(&Bench::plain().see_source(&ends_with(status))), [FindingKind::Exited]);
    }
}

fn crowds() {
    let start = "static void* wait_for_ever(void*) { for (;;) pause(); }\n";
    let declare =
        "extern \"C\" { int pause(void); int pthread_create(unsigned long*, const void*, void* (*)(void*), void*); }\n";
    // Its values are right; that others could start no thread any more is what it fails for.
    let crowd = format!(
        "{GOOD} unsigned long t; if (threadIdx.x == 0) for (int i = 0; i < 2000; ++i) pthread_create(&t, 0, wait_for_ever, 0); if (threadIdx.x == 0) pause();"
    );
    let mut bench = Bench::plain();
    bench.memory = 64 << 30;
    let seen = bench.see_source(&format!("{declare}{start}{}", kernel(&crowd)));
    assert_eq!(kinds(&seen), [FindingKind::LimitExceeded], "{:?}", seen.findings);
}

/// A kernel that ends its process.
fn ends_with(status: i32) -> String {
    format!("extern \"C\" void _exit(int);\n{}", kernel(&format!("_exit({status});")))
}

fn exits_as_we_do() {
    let bench = Bench::plain();
    bench.oracle();
    for status in [70, 101] {
        bench.compile(&ends_with(status));
        match bench.verify() {
            Response::Done { verdict: Some(Verdict::Fail(why)), forget: true, .. } => {
                assert_eq!(why, format!("the kernel's process exited with {status}"));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(kinds(&bench.observation()), [FindingKind::Exited]);
    }
}

/// A kernel that writes to its report and then does `after`. The number of the report is the first that a pipe has.
fn says(lines: &str, after: &str) -> String {
    let declare = "extern \"C\" { long write(int, const void*, unsigned long); void _exit(int); long readlink(const char*, char*, unsigned long); }";
    let body = format!(
        "if (row == 0 && threadIdx.x == 0) {{
            const char all[] = {lines:?};
            for (int fd = 3; fd < 64; ++fd) {{
                char path[] = {{'/', 'p', 'r', 'o', 'c', '/', 's', 'e', 'l', 'f', '/', 'f', 'd', '/', '0', '0', 0}}, to[8] = {{}};
                path[14] += fd / 10, path[15] += fd % 10;
                if (fd < 10) path[14] = '0' + fd, path[15] = 0;
                if (readlink(path, to, 5) > 0 && to[0] == 'p') {{ write(fd, all, sizeof all - 1); break; }}
            }}
            {after}
        }}"
    );
    format!("{declare}\n{}", kernel(&body))
}

fn claims() {
    let claim = "{\"not-emulated\":{\"what\":\"mma.sync at line 41\"}}\n";
    let done = format!("{claim}{{\"trial-done\":{{\"trial\":0}}}}\n");
    for (lines, after) in [(claim, "_exit(0);"), (&done, "_exit(0);"), (claim, "")] {
        let seen = Bench::plain().see_source(&says(lines, after));
        assert_eq!(seen.not_emulated, None);
        let said: Vec<_> = seen.findings.iter().map(|finding| finding.message.as_str()).collect();
        let expected = "the kernel's process claims that `mma.sync at line 41` is not emulated, but its binary holds no such construct";
        assert!(said.contains(&expected), "{said:?}");
    }
    // The text alone is no construct; one construct is not another; and one that is there ends the launch, not the process.
    let text = |source: &str| format!("__device__ const char* volatile other = \"mma.sync\";\n{source}");
    let seen = Bench::plain().see_source(&text(&says(claim, "_exit(0);")));
    assert_eq!((kinds(&seen), seen.not_emulated), (vec![FindingKind::Protocol], None));
    let seen = Bench::plain().see_source(&says(claim, "asm(\"bar.sync 0;\"); _exit(0);"));
    assert!(kinds(&seen).contains(&FindingKind::Protocol), "{:?}", seen.findings);
    let early = says(claim, "_exit(0); asm(\"mma.sync 0;\");").replace("_exit(0);", "if (cols) _exit(0);");
    assert_eq!(kinds(&Bench::plain().see_source(&early)), [FindingKind::Exited]);
}

fn deep() {
    let unbelieved = |what: &str| {
        let line = format!("{{\"not-emulated\":{{\"what\":\"{what}\"}}}}\n");
        kinds(&Bench::plain().see_source(&says(&line, "_exit(0);")))
    };
    assert_eq!(unbelieved("a thread that needs more than 131072 bytes of stack at x"), [FindingKind::Protocol]);
    assert_eq!(unbelieved("so many threads at once that no stack is left for one: x"), [FindingKind::Protocol]);
    let wide = "volatile float all[50000]; for (int i = 0; i < 50000; ++i) all[i] = i; y[row] = all[row];";
    let recursive = format!(
        "__device__ __attribute__((noinline)) int down(volatile int* n) {{ volatile int own[64]; own[*n & 63] = 1; \
         return *n < 0 ? 0 : down(n) + own[0]; }}\n{}",
        kernel("volatile int n = cols; y[row] = down(&n);")
    );
    for source in [kernel(wide), recursive] {
        for bench in [Bench::new(), Bench::plain()] {
            let seen = bench.see_source(&source);
            assert_eq!(kinds(&seen), [], "{:?}", seen.findings);
            assert!(seen.not_emulated.as_ref().is_some_and(|what| what.contains("bytes of stack")), "{seen:?}");
        }
    }
}

fn floods() {
    let flood = "{\"printed\":{\"text\":\"\"}}\n".repeat(40);
    let source = says(&flood, "")
        .replace("write(fd, all, sizeof all - 1);", "for (int n = 0; n < 9000; ++n) write(fd, all, sizeof all - 1);");
    let seen = Bench::plain()
        .see_source(&source.replace("int row = blockIdx.x; (void)row;", &format!("int row = blockIdx.x; {GOOD}")));
    assert!(kinds(&seen).contains(&FindingKind::Protocol), "{:?}", seen.findings);
    assert!(seen.findings[0].message.contains("more than any report has"), "{:?}", seen.findings);
}

fn runs_apart() {
    // What a run leaves in memory that outlives a launch, in its buffers or in what it was handed, the next does not find: each counts itself the first.
    let declare = "extern \"C\" { long lseek(int, long, int); int flock(int, int); int pthread_create(unsigned long*, void*, void* (*)(void*), void*); }\n\
        #include <cstdlib>\nstatic int* before; static void* spoil(void* y) { for (;;) *(volatile float*)y = 7; }\n";
    let body = format!(
        "{GOOD} if (row == 0 && threadIdx.x == 0) {{
            int seen = before ? *before : 0;
            for (int fd = 3; fd < 64; ++fd) {{
                if (lseek(fd, 0, 1) > 0) seen = 1;
                lseek(fd, 99, 0);
            }}
            if (!before) before = (int*)malloc(4);
            *before = 1;
            if (seen) y[0] = 1e9f;
        }}"
    );
    let seen = Bench::plain().see_source(&format!("{declare}{}", kernel(&body)));
    assert_eq!(kinds(&seen), [], "{:?}", seen.findings);
    assert_eq!((seen.trials.len(), seen.determinism), (1, Determinism::Stable));
    assert!(seen.trials[0].outputs[0].gross.is_none());
    // A thread that goes on writing spoils its own run at most.
    let body = format!(
        "{GOOD} if (row == 2 && threadIdx.x == 0) {{ unsigned long id; pthread_create(&id, 0, spoil, y + 5); }}"
    );
    let seen = Bench::plain().see_source(&format!("{declare}{}", kernel(&body)));
    assert!(
        seen.trials.iter().all(|trial| trial.outputs[0].gross.as_ref().is_none_or(|gross| gross.count == 1)),
        "{seen:?}"
    );
}

fn forges() {
    let source = r#"
        extern "C" long write(int, const void*, unsigned long);
        extern "C" void _exit(int);
        __global__ void k(const float* x, const float* w, float* y, int rows, int cols, float bias) {
            const char all[] = "{\"trial-done\":{\"trial\":0}}\n{\"trial-done\":{\"trial\":1}}\n{\"trial-done\":{\"trial\":2}}\n";
            for (int fd = 1; fd < 64; ++fd) write(fd, all, sizeof all - 1);
            _exit(0);
        }"#;
    let seen = Bench::plain().see_source(source);
    assert!(!kinds(&seen).is_empty(), "{:?}", seen.findings);
    // To its report alone it may write, so its run counts as ended, and is compared.
    let seen = Bench::plain().see_source(&says("{\"trial-done\":{\"trial\":0}}\n", "_exit(0);"));
    assert_eq!(kinds(&seen), [FindingKind::Unwritten], "{:?}", seen.findings);
}

fn left_early() {
    let seen = Bench::new().see(&format!("{GOOD} if (threadIdx.x > 3) return; __syncthreads();"));
    assert_eq!(kinds(&seen), [FindingKind::ExitedBeforeBarrier], "{:?}", seen.findings);
    assert_eq!((seen.asked, seen.trials.len(), seen.determinism), (1, 1, Determinism::Stable));
}

fn not_emulated() {
    let seen = Bench::new().see(&format!("asm volatile(\"bar.sync 0;\"); {GOOD}"));
    assert_eq!((kinds(&seen), seen.trials.len()), (vec![], 0), "{:?}", seen.findings);
    assert!(seen.not_emulated.as_ref().unwrap().starts_with("bar.sync at "), "{:?}", seen.not_emulated);
    // A tensor map is the driver's to make: the kernel is not run, so nothing it would do counts.
    let map = TensorMap {
        buffer: "x".into(),
        dtype: DType::F32,
        extents: vec![COLS, ROWS],
        strides: vec![COLS * 4],
        tile: vec![4, 1],
        swizzle: 0,
        nan: false,
        l2_promotion: 0,
    };
    let source = "#include <cuda.h>\n__global__ void k(const float*, const float*, float*, int, int, float, const __grid_constant__ CUtensorMap map) { __trap(); }\n";
    let mut bench = Bench::new();
    bench.map = Some(map);
    let seen = bench.see_source(source);
    assert_eq!((kinds(&seen), seen.trials.len()), (vec![], 0), "{:?}", seen.findings);
    assert_eq!(seen.not_emulated.as_deref(), Some("a tensor map, argument 7 of `k`"));
}

/// Rows by turns, whatever the grid is.
const STRIDING: &str = "for (; row < rows; row += gridDim.x) for (int i = threadIdx.x; i < cols; i += blockDim.x) y[row * cols + i] = x[row * cols + i] * w[i] + bias;";

fn open(extent: &str, launch: KernelLaunch) -> KernelLaunch {
    let open_grid = Some(OpenGrid { extents: vec![extent.into()], names: BTreeMap::new() });
    KernelLaunch { grid: [0; 3], open_grid, ..launch }
}

fn sized() {
    let grid = "if (threadIdx.x == 0 && row == 0) printf(\"%d blocks\", gridDim.x); ";
    let bench = Bench { launch: |launch| open("sm_count * occupancy", launch), ..Bench::new() };
    let seen = bench.see(&format!("{grid}{STRIDING}"));
    assert_eq!(kinds(&seen), [], "{:?}", seen.findings);
    let Response::Done { notes, .. } = bench.verify() else { panic!("done") };
    assert!(notes.iter().any(|note| note.message.contains("16 blocks")), "{notes:?}");

    let none = Bench { launch: |launch| open("sm_count // 100", launch), ..Bench::new() }.see(STRIDING);
    assert_eq!((kinds(&none), none.trials.len()), (vec![FindingKind::LaunchRefused], 0));
    assert!(none.findings[0].message.contains("with sm_count = 8 and occupancy = 2"), "{:?}", none.findings);
}

fn cooperative() {
    let source = format!(
        "#include <cooperative_groups.h>\n{}",
        kernel(&format!("{STRIDING} cooperative_groups::this_grid().sync(); if (row == 0) y[0] += 0.0f;"))
    );
    let together = Bench { launch: |launch| KernelLaunch { cooperative: true, ..launch }, ..Bench::new() };
    assert_eq!(kinds(&together.see_source(&source)), []);
    let apart = Bench::new().see_source(&source);
    assert_eq!(kinds(&apart), [FindingKind::LaunchRefused], "{:?}", apart.findings);
    assert!(apart.findings[0].message.contains("in a launch that is not cooperative"), "{:?}", apart.findings);
}

fn reaches_out() {
    let declare = "extern \"C\" { int open(const char*, int, ...); int socket(int, int, int); int fork(void); int close(int); \
        int dup2(int, int); int unlink(const char*); int raise(int); long write(int, const void*, unsigned long); int puts(const char*); }";
    let see = |deed: &str| {
        let body = format!("{GOOD} if (row == 0 && threadIdx.x == 0) {{ {deed} }}");
        Bench::plain().see_source(&format!("{declare}\n{}", kernel(&body)))
    };
    let deeds = [
        ("socket(2, 1, 0);", "open a socket (socket)"),
        ("fork();", "start a process (clone)"),
        ("open(\"/tmp/kforge-was-here\", 66, 0600);", "open a file for writing (open)"),
        ("open(\"/tmp/kforge-was-here\", 1);", "open a file for writing (open)"),
        ("unlink(\"/tmp/kforge-was-here\");", "make, rename or remove files (unlink)"),
        ("for (int fd = 0; fd < 256; ++fd) write(fd, \"\", 1);", "write to a descriptor that is not its own (write)"),
    ];
    for (deed, tried) in deeds {
        let seen = see(deed);
        assert_eq!(kinds(&seen), [FindingKind::Forbidden], "{deed}: {:?}", seen.findings);
        let said = seen.findings[0].message.replace("openat", "open");
        assert_eq!(said, format!("the kernel tried to {tried}"), "{deed}");
    }
    // What is only asked is refused and costs nothing.
    let seen = see("if (open(\"/etc/passwd\", 0) >= 0) y[0] = 1e9f; puts(\"to the standard error\");");
    assert_eq!(kinds(&seen), []);
    assert!(seen.trials[0].outputs[0].gross.is_none(), "{:?}", seen.findings);
}

fn too_large() {
    let bench = Bench { memory: 1000, ..Bench::plain() };
    bench.oracle();
    bench.compile(&kernel(GOOD));
    assert!(matches!(bench.verify(), Response::Unavailable { .. }));
}

fn lost_scratch() {
    let bench = Bench::plain();
    bench.oracle();
    bench.compile(&kernel(GOOD));
    fs::remove_dir_all(bench.dir.path().join("scratch")).unwrap();
    assert!(matches!(bench.verify(), Response::Done { .. }));
    assert_eq!(bench.observation().trials.len(), 1);
    // A reference that now says something else is not believed.
    fs::remove_dir_all(bench.dir.path().join("scratch")).unwrap();
    bench.file("in/tree-reference/ref.cpp", REFERENCE.replace("* w", "+ w").as_bytes());
    let Response::Failed { message, .. } = bench.verify() else { panic!("it was believed") };
    assert!(message.contains("other values than when they were first computed"), "{message}");
}

fn workspace() {
    let buffer = Buffer { name: "ws".into(), dtype: DType::I32, elements: 5, fill: Fill::ZeroOnce };
    let source = |value: u32| {
        let body = format!("{GOOD} if (threadIdx.x == 0) atomicExch(ws + row, {value});");
        kernel(&body).replace("float bias)", "float bias, int* ws)")
    };
    let bench = Bench { workspaces: vec![buffer], ..Bench::plain() };
    assert_eq!(kinds(&bench.see_source(&source(0))), []);
    assert_eq!(kinds(&bench.see_source(&source(1))), [FindingKind::WorkspaceDirty]);
}

fn cpp_reference() {
    let bench = Bench::plain();
    bench.oracle();
    let read = |name: &str| fs::read(bench.dir.path().join("out").join(name)).unwrap();
    let expected: Expected = serde_json::from_slice(&read("expected")).unwrap();
    assert_eq!(expected.outputs["y"].size(), ROWS * COLS * 8);
    assert_eq!(expected.scales["y"].size(), ROWS * COLS * 8);
    let nulls: kforge::record::params::NullsObserved = serde_json::from_slice(&read("nulls")).unwrap();
    let names: Vec<_> = nulls.candidates.keys().map(String::as_str).collect();
    for name in ["another seed", "constant 1", "copy of x", "inputs rounded to f16", "zeros"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert_eq!(nulls.candidates["zeros"][0].gross.as_ref().unwrap().first.got, "0");
}

fn cpp_failure() {
    let bench = Bench::plain();
    let failure = |reference: &str| {
        bench.file("in/tree-reference/ref.cpp", reference.as_bytes());
        let params = asked(&problem(), &[]);
        match bench.step(StepKind::Oracle, serde_json::to_value(params).unwrap()) {
            Response::Failed { message, notes } => {
                (message, notes.first().map(|n| n.message.clone()).unwrap_or_default())
            }
            other => panic!("{other:?}"),
        }
    };
    let (message, said) = failure(&REFERENCE.replace("\"w\"", "\"v\""));
    assert_eq!(
        (message.as_str(), said.as_str()),
        ("`ref.cpp::scale_rows` exited with 1", "there is no float input `v`")
    );
    let (message, said) = failure("not C++");
    assert!(message.starts_with("cannot compile the reference `ref.cpp`: the compiler exited with 1"), "{message}");
    assert!(said.contains("error"), "{said}");
    let other = tempfile::tempdir().unwrap();
    let header = other.path().join("other.h");
    fs::write(&header, "").unwrap();
    let (message, said) = failure(&format!("#include \"{}\"\n{REFERENCE}", header.display()));
    assert!(message.starts_with("cannot compile the reference `ref.cpp`"), "{message}");
    assert!(said.contains(&format!("{}: Permission denied", header.display())), "{said}");
    assert!(said.contains("[dependencies]"), "{said}");
    let (message, _) = failure(&format!("asm(\".incbin \\\"{}\\\"\");\n{REFERENCE}", header.display()));
    assert!(message.contains("would not know that it changed") && message.contains(".incbin"), "{message}");
    // A name that is put together, which no look at the assembly finds.
    fs::write(&header, "secret_of_the_user").unwrap();
    let hidden = format!("asm(\".irp part, bin\\n.inc\\\\part \\\"{}\\\"\\n.endr\");\n{REFERENCE}", header.display());
    let (message, said) = failure(&hidden);
    assert!(message.starts_with("cannot compile the reference `ref.cpp`"), "{message}");
    assert!(said.contains("other.h") && !said.contains("secret_of_the_user"), "{said}");
    let opens = "if (socket(2, 1, 0) < 0) std::exit(9); const int64_t rows =";
    let network = REFERENCE.replace("const int64_t rows =", opens);
    assert_eq!(failure(&format!("#include <sys/socket.h>\n{network}")).0, "`ref.cpp::scale_rows` exited with 9");
}

/// A bench whose reference is in Python; none on a machine without numpy.
fn python_bench(reference: &str) -> Option<Bench> {
    python()?;
    let mut bench = Bench::plain();
    bench.problem.reference = Reference::Python { file: "ref.py".into(), function: "scale_rows".into() };
    bench.file("in/tree-reference/ref.py", reference.as_bytes());
    bench.file("in/tree-reference/helper.py", b"def add(a, b):\n    return a + b\n");
    Some(bench)
}

fn python_reference() {
    let good = "import numpy\nimport helper\ndef scale_rows(x, w, bias):\n    return {'y': helper.add(x * w, bias), 'y.scale': numpy.abs(x * w) + 1}\n";
    let Some(bench) = python_bench(good) else { return };
    let seen = bench.see(GOOD);
    assert_eq!(kinds(&seen), []);
    assert!(seen.trials[0].outputs[0].gross.is_none(), "{:?}", seen.findings);
    let refused = |reference: &str| {
        bench.file("in/tree-reference/ref.py", reference.as_bytes());
        let params = asked(&bench.problem, &[]);
        match bench.step(StepKind::Oracle, serde_json::to_value(params).unwrap()) {
            Response::Failed { notes, .. } => notes[0].message.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        refused(&good.replace("(x, w, bias)", "(x, v)")),
        "`scale_rows` asks for `v`; there are bias, cols, rows, w, x"
    );
    assert_eq!(refused("def scale_rows(x):\n    return x[0]\n"), "`y` has the shape [70], expected [3, 70]");
    // Whether it is installed or not; numpy's neighbours are found, and named.
    let said = refused("import pip\ndef scale_rows(x):\n    return x\n");
    assert!(said.contains("No module named 'pip'") || said.contains("`pip` is neither of this package"), "{said}");
    assert!(refused("import socket\ndef scale_rows(x):\n    socket.socket()\n").contains("PermissionError"));
    assert!(refused("def scale_rows(x):\n    open('/etc/passwd')\n").contains("PermissionError"));
}

fn python_inputs() {
    let reference = "import numpy\n\
        def scale_rows(x, w, bias):\n    return {'y': x * w + bias, 'y.scale': numpy.abs(x * w) + 1}\n\
        def inputs(seed, distribution, cols):\n    return {'w': numpy.full(cols, 0.1)}\n\
        def check(got, want):\n    return numpy.abs(got - want) < 1\n";
    let Some(mut bench) = python_bench(reference) else { return };
    bench.problem.generate_inputs = Some(("ref.py".into(), "inputs".into()));
    let seen = bench.see(&GOOD.replace("w[i]", "0.1f"));
    assert!(seen.trials[0].outputs[0].gross.is_none(), "{:?}", seen.findings);
    bench.compare = [("y".to_string(), Compare::Python("ref.py".into(), "check".into()))].into();
    let seen = bench.see(&GOOD.replace("+ bias", "+ bias + (i == 3 ? 0.5f : i == 4 ? 2 : 0)"));
    let gross = seen.trials[0].outputs[0].gross.as_ref().unwrap();
    assert_eq!((gross.count, gross.first.index), (ROWS, 4), "{:?}", seen.findings);
}
