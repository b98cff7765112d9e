//! Sources and flags that attack NVRTC and nvcc, in workers as in a build.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use kforge::base::{Digest, Severity};
use kforge::cuda::shim_headers;
use kforge::harness::message::{Places, Request, Response};
use kforge::harness::pool::Pool;
use kforge::process::Command;
use kforge::record::fatbin::check;
use kforge::record::kind::fatbin::documents::FatbinParams;
use kforge::record::params::{CompileParams, Compiler, InspectParams};
use kforge::record::{Form, Input, Inspection, Note, Spec, StepKind};

use kforge::toolchain::cuda::Group;

use crate::toolchain::install;
use crate::{lay_out, params, tools, with_nvcc};

/// The contents of a user's file and of the worker's environment.
const SECRET: &str = "secret_of_the_user";
const PLAIN: &str = "__global__ void plain(int* p) { p[0] = 1; }\n";

/// A step's folders, and a home with files.
struct Steps {
    dir: tempfile::TempDir,
    tools: BTreeMap<String, PathBuf>,
    time_s: u64,
}

impl Steps {
    fn new(tools: BTreeMap<String, PathBuf>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        lay_out(&dir.path().join("in/tree-shim"), shim_headers());
        lay_out(&dir.path().join("home"), &[("secret", SECRET)]);
        Steps { dir, tools, time_s: 120 }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn run(&self, kind: StepKind, params: serde_json::Value, inputs: &[&str]) -> Response {
        let input = |name: &&str| (name.to_string(), Input { digest: Some(Digest::of(b"")), form: Form::Blob });
        let inputs = inputs.iter().map(input).collect();
        drop(std::fs::remove_dir_all(self.path("out")));
        std::fs::create_dir(self.path("out")).unwrap();
        let request = Request {
            spec: Spec { kind, version: 1, implementation: None, params, inputs },
            input: self.path("in"),
            output: self.path("out"),
            places: Places { tools: self.tools.clone(), ..Places::default() },
            device: None,
            time_limit_s: self.time_s,
            run_limit_s: 60,
            memory_limit: 1 << 30,
            compiler_memory: 8 << 30,
            allow_unconfined: false,
            hang: None,
            planned: std::time::SystemTime::UNIX_EPOCH,
            warm_up: false,
        };
        let worker = Command::new(env!("CARGO_BIN_EXE_kforge")).arg("worker").env("KEY", SECRET);
        // NVRTC aborts if it cannot write some files, which ends its worker.
        Pool::new(worker).within(self.dir.path()).run(&request, &AtomicBool::new(false)).unwrap_or_else(|died| {
            Response::Failed { message: died.to_string(), notes: vec![Note::new(Severity::Error, "died", died.stderr)] }
        })
    }

    fn compile(&self, compiler: Compiler, text: &str, flags: &[&str]) -> Response {
        lay_out(&self.path("in/tree-source"), &[("norms/main.cu", text)]);
        let flags = flags.iter().map(|flag| flag.to_string()).collect();
        let params = CompileParams { compiler, flags, ..params(&["plain"]) };
        self.run(StepKind::Compile, serde_json::to_value(params).unwrap(), &["tree:source", "tree:shim"])
    }

    /// Checks that nothing in the home has changed, and that neither the home's contents nor the worker's environment are in the output.
    #[track_caller]
    fn untouched(&self, response: &Response) {
        let said = serde_json::to_string(response).unwrap();
        assert!(!said.contains(SECRET), "{said}");
        let names: Vec<_> =
            std::fs::read_dir(self.path("home")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["secret"], "{said}");
        assert_eq!(std::fs::read_to_string(self.path("home/secret")).unwrap(), SECRET, "{said}");
        let log = std::fs::read_to_string(self.path("out/log")).unwrap_or_default();
        assert!(!log.contains(SECRET), "{log}");
    }
}

fn with(text: &str, path: &Path) -> String {
    text.replace("PATH", &path.display().to_string())
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn what_is_compiled_confined_can_be_inspected_and_packed() {
    let steps = Steps::new(with_nvcc().into_iter().chain(install(Group::Fatbin)).collect());
    for compiler in [Compiler::Nvrtc, Compiler::Nvcc] {
        let response = steps.compile(compiler, PLAIN, &[]);
        assert!(matches!(response, Response::Done { .. }), "{response:?}");
        for name in ["binary", "facts"] {
            std::fs::copy(steps.path("out").join(name), steps.path("in").join(name)).unwrap();
        }
        let asked = InspectParams {
            arch: "sm_90a".into(),
            entries: vec!["plain".into()],
            disassemble: true,
            listing: false,
            launches: vec![],
            host: false,
        };
        let response = steps.run(StepKind::Inspect, serde_json::to_value(asked).unwrap(), &["binary", "facts"]);
        assert!(matches!(response, Response::Done { .. }), "{response:?}");
        let seen: Inspection = serde_json::from_slice(&std::fs::read(steps.path("out/inspection")).unwrap()).unwrap();
        assert!(seen.functions[0].opcodes.contains_key("EXIT"), "{seen:?}");
        let asked = FatbinParams { arch: "sm_90a".into() };
        let response = steps.run(StepKind::Fatbin, serde_json::to_value(asked).unwrap(), &["binary"]);
        assert!(matches!(response, Response::Done { .. }), "{response:?}");
        let [fatbin, binary] = ["out/fatbin", "in/binary"].map(|file| std::fs::read(steps.path(file)).unwrap());
        assert_eq!(check(&fatbin, "sm_90a", &binary, None), Ok(()));
        assert_eq!(std::fs::read_dir(steps.path("out")).unwrap().count(), 1, "nothing else is left");
    }
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn nvrtc_reads_and_writes_nothing_of_the_users() {
    let steps = Steps::new(tools().clone());
    let (secret, spoilt) = (steps.path("home/secret"), steps.path("home/spoilt"));
    for file in [secret.as_path(), Path::new("/proc/self/environ"), Path::new("/proc/thread-self/environ")] {
        let text = with("#define FILE \"PATH\"\n#include FILE\n", file) + PLAIN;
        let response = steps.compile(Compiler::Nvrtc, &text, &[]);
        assert!(matches!(response, Response::Failed { .. }), "{response:?}");
        steps.untouched(&response);
    }
    let asked = with("#if __has_include(\"PATH\")\n#error it is there\n#endif\n", &secret) + PLAIN;
    let response = steps.compile(Compiler::Nvrtc, &asked, &[]);
    assert!(matches!(response, Response::Done { .. }), "{response:?}");
    for file in [&secret, &spoilt] {
        for flag in ["--time=PATH", "--fdevice-time-trace=PATH", "--create-pch=PATH", "--options-file=PATH"] {
            steps.untouched(&steps.compile(Compiler::Nvrtc, PLAIN, &[&with(flag, file)]));
        }
    }
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn nvrtc_that_does_not_end_is_ended_at_the_time_limit() {
    let steps = Steps { time_s: 3, ..Steps::new(tools().clone()) };
    // A hundred billion tokens.
    let mut text = String::from("#define A0 0,0,0,0,0,0,0,0,0,0\n");
    for n in 1..10 {
        text += &format!("#define A{n} {}\n", vec![format!("A{}", n - 1); 10].join(","));
    }
    let response = steps.compile(Compiler::Nvrtc, &format!("{text}__device__ int all[] = {{ A9 }};\n{PLAIN}"), &[]);
    let said = serde_json::to_string(&response).unwrap();
    // The worker says so, and is not ended itself.
    assert!(said.contains("NVRTC did not end within the time limit") && !said.contains("died"), "{said}");
    let response = Steps { time_s: 120, ..steps }.compile(Compiler::Nvrtc, PLAIN, &[]);
    assert!(matches!(response, Response::Done { .. }), "{response:?}");
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn nvcc_and_what_it_starts_reach_nothing_of_the_users() {
    let steps = Steps::new(with_nvcc());
    let (home, secret) = (steps.path("home"), steps.path("home/secret"));
    let text = with("#define FILE \"PATH\"\n#include FILE\n", &secret) + PLAIN;
    let response = steps.compile(Compiler::Nvcc, &text, &[]);
    assert!(serde_json::to_string(&response).unwrap().contains("Permission denied"), "{response:?}");
    steps.untouched(&response);
    let keep = with("--keep-dir=PATH", &home);
    for flags in
        [&["--keep", &keep][..], &["--time", &with("PATH/spoilt", &home)], &["--options-file", &with("PATH", &secret)]]
    {
        steps.untouched(&steps.compile(Compiler::Nvcc, PLAIN, flags));
    }
    // A program of the package in place of one of the host compiler's programs.
    let deed =
        "for f in PATH/secret PATH/spoilt; do cat $f >&2 && echo done >&2; echo x > $f && echo done >&2; done; exit 3";
    let deed = format!("#!/bin/bash\n{}\n", with(deed, &home));
    lay_out(&steps.path("in/tree-source"), &[("norms/cc1plus", &deed)]);
    let program = steps.path("in/tree-source/norms/cc1plus");
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let response = steps.compile(Compiler::Nvcc, PLAIN, &["-Xcompiler=-Bnorms/"]);
    let said = serde_json::to_string(&response).unwrap();
    assert!(said.contains("Permission denied") && !said.contains("done"), "{said}");
    steps.untouched(&response);
}
