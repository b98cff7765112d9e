//! Tests of the two handlers without a compiler: outputs, and how what cannot be done is answered.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use super::*;
use crate::base::Digest;
use crate::record::params::Compiler;
use crate::record::spec::{Form, Input};
use crate::record::{Spec, StepKind};
use crate::worker::message::Places;

fn task(dir: &Path, kind: StepKind, params: &impl serde::Serialize, inputs: &[&str]) -> Task {
    let input = |name: &&str| (name.to_string(), Input { digest: Some(Digest::of(b"")), form: Form::Blob });
    let params = serde_json::to_value(params).unwrap();
    let spec = Spec { kind, version: 1, params, inputs: inputs.iter().map(input).collect() };
    std::fs::create_dir_all(dir.join("out")).unwrap();
    std::fs::create_dir_all(dir.join("in/tree-source")).unwrap();
    std::fs::create_dir_all(dir.join("in/tree-shim")).unwrap();
    Task {
        spec,
        input: dir.join("in"),
        output: dir.join("out"),
        places: Places::default(),
        time_limit: Duration::from_secs(60),
        memory_limit: 1 << 30,
        started: Instant::now(),
    }
}

fn compile_params(compiler: Compiler, arch: &str) -> CompileParams {
    CompileParams {
        compiler,
        arch: arch.into(),
        main: "k.cu".into(),
        entries: vec!["k".into()],
        defines: BTreeMap::new(),
        std: "c++17".into(),
        include: vec![],
        flags: vec![],
    }
}

#[test]
fn an_inspection_is_an_output_with_a_line_for_people() {
    let dir = tempfile::tempdir().unwrap();
    let params = InspectParams { arch: "sm_90a".into(), entries: vec!["plain".into()], disassemble: false };
    let task = task(dir.path(), StepKind::Inspect, &params, &["binary", "facts"]);
    let facts =
        CompileFacts { symbols: vec!["plain".into()], spills: [("plain".into(), (0, 0))].into(), ..Default::default() };
    std::fs::write(dir.path().join("in/binary"), include_bytes!("fixtures/two_sm_90a.cubin")).unwrap();
    std::fs::write(dir.path().join("in/facts"), serde_json::to_vec(&facts).unwrap()).unwrap();
    let Response::Done { summary, verdict: None, .. } = inspect(&task) else { panic!("done") };
    assert_eq!(summary, "plain: 14 registers, 0 bytes spilt, 0 bytes shared");
    let seen: Inspection = serde_json::from_slice(&std::fs::read(dir.path().join("out/inspection")).unwrap()).unwrap();
    assert_eq!(seen.functions[0].registers, Some(14));
}

#[test]
fn without_a_tool_a_step_is_unavailable_not_failed() {
    let dir = tempfile::tempdir().unwrap();
    for (compiler, says) in [(Compiler::Nvrtc, "nvrtc"), (Compiler::Auto, "nvrtc"), (Compiler::Nvcc, NEEDS_NVCC)] {
        let task =
            task(dir.path(), StepKind::Compile, &compile_params(compiler, "sm_90a"), &["tree:source", "tree:shim"]);
        std::fs::write(dir.path().join("in/tree-source/k.cu"), "").unwrap();
        let answer = compile(&task);
        assert!(matches!(&answer, Response::Unavailable { why } if why.contains(says)), "{answer:?}");
    }
    let params = InspectParams { arch: "sm_90a".into(), entries: vec!["plain".into()], disassemble: true };
    let task = task(dir.path(), StepKind::Inspect, &params, &["binary", "facts"]);
    std::fs::write(dir.path().join("in/binary"), include_bytes!("fixtures/two_sm_90a.cubin")).unwrap();
    std::fs::write(dir.path().join("in/facts"), serde_json::to_vec(&CompileFacts::default()).unwrap()).unwrap();
    assert!(matches!(inspect(&task), Response::Unavailable { .. }));
}

#[test]
fn an_architecture_that_is_none_fails_with_what_was_expected() {
    let dir = tempfile::tempdir().unwrap();
    let task =
        task(dir.path(), StepKind::Compile, &compile_params(Compiler::Auto, "sm_91"), &["tree:source", "tree:shim"]);
    let answer = compile(&task);
    assert!(matches!(&answer, Response::Failed { message, .. } if message.contains("`sm_91`")), "{answer:?}");
}
