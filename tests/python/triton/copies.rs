//! Binaries that are compiled in copies of a process that has imported Triton, against those of processes of their own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use kforge::base::Digest;
use kforge::cuda::compile;
use kforge::harness::message::{Places, Request, Response};
use kforge::harness::pool::Pool;
use kforge::model::triton::{TritonCompile, TritonConst, TritonOptions, TritonParam, TritonParamKind};
use kforge::process::Command;
use kforge::record::params::{CompileParams, Compiler};
use kforge::record::{Form, Input, Spec, StepKind};

use super::Lab;
use crate::folders::folder;

/// Each function of `examples/triton` with its parameters: types, `16` where the value is a multiple of 16, and constants.
const FUNCTIONS: [(&str, &str, &str); 12] = [
    ("softmax", "softmax", "x:*fp32:16 y:*fp32:16 rows:i32:16 cols:i32:16 BLOCK=4096"),
    ("layer_norm", "layer_norm", "x:*fp16:16 w:*fp16:16 b:*fp16:16 y:*fp16:16 cols:i32 eps:fp32 BLOCK=1024"),
    ("matmul", "matmul", "a:*fp16:16 b:*fp16:16 c:*fp16:16 m:i32 n:i32:16 k:i32:16 BLOCK_M=128 BLOCK_N=128 BLOCK_K=64"),
    (
        "matmul_pointers",
        "matmul",
        "a:*fp16:16 b:*fp16:16 c:*fp16:16 m:i32 n:i32:16 k:i32:16 BLOCK_M=64 BLOCK_N=64 BLOCK_K=32",
    ),
    ("silu_mul", "silu_mul", "gate:*bf16:16 up:*bf16:16 y:*bf16:16 n:i32 BLOCK=1024"),
    (
        "attention",
        "attention",
        "q:*fp16:16 k:*fp16:16 v:*fp16:16 o:*fp16:16 m:i32:16 scale:fp32 BLOCK_M=64 BLOCK_N=32 D=64",
    ),
    ("column_sums", "column_sums", "x:*i32:16 y:*i32:16 rows:i32 cols:i32 ROWS=64 COLS=64"),
    (
        "split_k",
        "split_k",
        "a:*fp16:16 b:*fp16:16 c:*fp32:16 parts:*fp32:16 arrived:*i32:16 m:i32 n:i32 k:i32 BLOCK=64 BLOCK_K=64 SPLITS=8",
    ),
    ("split_k_sum", "partial", "a:*fp16:16 b:*fp16:16 parts:*fp32:16 m:i32 n:i32 k:i32 BLOCK=64 BLOCK_K=64 SPLITS=8"),
    ("split_k_sum", "sum_parts", "parts:*fp32:16 c:*fp32:16 size:i32:16 SPLITS=8 WIDTH=256"),
    ("transpose", "transpose", "x:*fp32:16 y:*fp32:16 rows:i32 cols:i32 TILE=32"),
    // An argument of one.
    ("softmax", "softmax", "x:*fp16:16 y:*fp16 rows=1 cols:i32 BLOCK=256"),
];

fn param(text: &str) -> TritonParam {
    if let Some((name, value)) = text.split_once('=') {
        let kind = TritonParamKind::Constant { value: TritonConst::Int(value.parse().unwrap()) };
        return TritonParam { name: name.into(), kind };
    }
    let mut parts = text.split(':');
    let (name, ty) = (parts.next().unwrap(), parts.next().unwrap());
    let kind = TritonParamKind::Typed { ty: ty.into(), divisible: parts.next().is_some() };
    TritonParam { name: name.into(), kind }
}

fn params(file: &str, function: &str, signature: &str) -> CompileParams {
    let params = signature.split(' ').map(param).collect();
    CompileParams {
        compiler: Compiler::Triton,
        arch: "sm_90a".into(),
        main: format!("{file}.py"),
        entries: vec![function.into()],
        defines: BTreeMap::new(),
        std: String::new(),
        include: vec![],
        flags: vec![],
        candidate: false,
        lined: false,
        ptx: false,
        host: None,
        triton: vec![TritonCompile { function: function.into(), params, options: TritonOptions::default() }],
    }
}

#[test]
#[ignore = "second tier: installs Triton and compiles each function of an example twice"]
fn copies_of_a_process_compile_what_processes_of_their_own_compile() {
    let Some(lab) = Lab::of_example().installed() else { return };
    let folders = fs::read_dir(lab.home.path().join("toolchains")).unwrap().flatten().map(|entry| entry.path());
    // The test's home may hold other releases: the lockfile names this one.
    let wheel = folders.into_iter().find(|folder| folder.join("triton-3.9.0.dist-info").is_dir()).unwrap();
    let wheel = fs::canonicalize(wheel).unwrap();
    let python = ["/usr/local/bin/python3", "/usr/bin/python3"].map(PathBuf::from);
    let python = python.into_iter().find(|path| path.exists()).unwrap();
    let tools: BTreeMap<String, PathBuf> = [("python".to_string(), python), ("triton".to_string(), wheel)].into();
    let work = folder();
    let source = work.path().join("in/tree-source");
    fs::create_dir_all(&source).unwrap();
    for file in fs::read_dir(lab.folder.path()).unwrap().flatten().filter(|file| file.path().is_file()) {
        fs::copy(file.path(), source.join(file.file_name())).unwrap();
    }
    let worker = Command::new(env!("CARGO_BIN_EXE_kforge")).arg("worker");
    let pool = Pool::new(worker).within(work.path());
    for (file, function, signature) in FUNCTIONS {
        let params = params(file, function, signature);
        let own = work.path().join("own");
        fs::create_dir_all(&own).unwrap();
        let own = compile(&params, &source, Path::new("/nowhere"), &tools, &own).unwrap();
        let copied = by_copy(&pool, work.path(), &params, &tools);
        let facts = serde_json::to_value(&own.facts).unwrap();
        assert!(own.cubin == copied.0, "{file}: the binary of `{function}` differs");
        assert_eq!((&facts, &own.log), (&copied.1, &copied.2), "{file}: {function}");
        fs::remove_dir_all(work.path().join("own")).unwrap();
    }
    assert_eq!(pool.idle().len(), 1);
}

/// The binary, the facts and the log of a compilation in a worker.
fn by_copy(
    pool: &Pool,
    folder: &Path,
    params: &CompileParams,
    tools: &BTreeMap<String, PathBuf>,
) -> (Vec<u8>, serde_json::Value, String) {
    let out = folder.join("out");
    drop(fs::remove_dir_all(&out));
    fs::create_dir(&out).unwrap();
    let input = ("tree:source".to_string(), Input { digest: Some(Digest::of(b"")), form: Form::Blob });
    let request = Request {
        spec: Spec {
            kind: StepKind::Compile,
            version: 1,
            implementation: None,
            params: serde_json::to_value(params).unwrap(),
            inputs: [input].into(),
        },
        input: folder.join("in"),
        output: out.clone(),
        places: Places { tools: tools.clone(), read: vec![], scratch: None },
        device: None,
        time_limit_s: 120,
        run_limit_s: 60,
        memory_limit: 1 << 30,
        compiler_memory: 8 << 30,
        allow_unconfined: false,
        hang: None,
        planned: std::time::SystemTime::UNIX_EPOCH,
        warm_up: false,
    };
    match pool.run(&request, &AtomicBool::new(false)).unwrap() {
        Response::Done { .. } => {}
        other => panic!("{other:?}"),
    }
    let read = |name: &str| fs::read(out.join(name)).unwrap();
    let facts = serde_json::from_slice(&read("facts")).unwrap();
    (read("binary"), facts, String::from_utf8(read("log")).unwrap())
}
