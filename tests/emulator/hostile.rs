//! Sources that try to escape the emulator's checks: attributes, flags, and variables that are not to be noticed.

use std::path::Path;
use std::time::{Duration, Instant};

use kforge::emulator::compile::{EmulatorCompile, compile};
use kforge::emulator::{Claim, Claimant, Incredible, credible, keeps_state};
use kforge::harness::compilers::ToolSandbox;
use kforge::harness::message::Unemulated;
use kforge::record::FindingKind;

use super::harness::*;

const RACY: &str = "__global__ void k(const float *x, float *y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = s[63 - threadIdx.x];
}
";

#[test]
#[ignore = "second tier: many attempts at escape"]
fn an_attribute_cannot_switch_the_checks_off() {
    for word in ["KF_RAW", "KF_UNWATCHED"] {
        let Err(log) = try_build(&format!("{word} {RACY}"), &["k"], true, &[]) else { panic!("`{word}` compiles") };
        assert!(log.contains(&format!("`k.cu` names `{word}`")), "{log}");
    }
    let words =
        ["no_sanitize(\"thread\")", "no_sanitize_thread", "__no_sanitize__(\"thread\")", "__no_sanitize_thread__"];
    for (at, word) in words.iter().enumerate() {
        let texts =
            [format!("__attribute__(({word})) {RACY}"), format!("#define OFF __attribute__(({word}))\nOFF {RACY}")];
        // Each word both ways, one of them in a check build.
        for (way, text) in texts.iter().enumerate() {
            let Err(log) = try_build(text, &["k"], (at + way) % 2 == 0, &[]) else { panic!("`{word}` compiles") };
            assert!(log.contains("`k.cu` names `"), "{log}");
            assert!(log.contains("a kernel cannot take itself out of the checks that the emulator makes"), "{log}");
        }
    }
    // A comment is no attribute, and another error is reported alone.
    build(&format!("// no_sanitize\n{RACY}"), &["k"], true);
    let wrong = format!("// no_sanitize\n{}", RACY.replace("= x[", "= missing["));
    let Err(log) = try_build(&wrong, &["k"], true, &[]) else { panic!("it compiles") };
    assert!(!log.contains("take itself out") && log.contains("missing"), "{log}");
}

#[test]
#[ignore = "second tier: compiles many sources"]
fn a_source_cannot_define_the_calls_that_watch_it() {
    let ways = [
        "extern \"C\" { static __attribute__((used)) void __tsan_read4(void*) {} }",
        "static __attribute__((used)) void quiet(void*) __asm__(\"__tsan_write4\"); static __attribute__((used)) void quiet(void*) {}",
        "extern \"C\" { static __attribute__((used)) void nothing() {} static __attribute__((used, alias(\"nothing\"))) void kf_access(); }",
    ];
    for way in ways {
        for check in [true, false] {
            match try_build(&format!("{way}\n{RACY}"), &["k"], check, &[]) {
                Err(log) => assert!(log.contains("which the emulator defines"), "{way}: {log}"),
                // The compiler refuses it as it is written, and the kernel does without.
                Ok(built) => {
                    let data = [floats("x", (0..64).map(|i| i as f32)), output("y", 64, 4)];
                    let ran = run(&built, launch("k", 1, 64, vec![ptr("x"), ptr("y")]), &data);
                    let race = ran.findings.iter().any(|found| found.kind == FindingKind::Race);
                    assert_eq!(race, check, "{way}: {ran:?}");
                }
            }
        }
    }
    let Err(log) = try_build(&format!("{}\n{RACY}", ways[0]), &["k"], true, &[]) else { panic!("it compiles") };
    assert!(log.contains("`k.cu` defines `__tsan_read4`, which the emulator defines"), "{log}");
}

#[test]
fn a_flag_cannot_switch_the_checks_off() {
    let (dir, source) = stage(RACY);
    let out = dir.path().join("out");
    let what = EmulatorCompile {
        cxx: Path::new("/usr/bin/g++"),
        source: &source,
        headers: &dir.path().join("headers"),
        main: "k.cu",
        entries: &["k".to_owned()],
        defines: &Default::default(),
        include: &[],
        flags: &["-fno-sanitize=all", "-fno-sanitize=thread", "-UKF_CHECK"].map(str::to_owned),
        std: "c++17",
        check: true,
        candidate: false,
        toolkit: None,
        within: ToolSandbox { scratch: &out, bounds: None, deadline: Instant::now() + Duration::from_secs(120) },
    };
    compile(&what, &out).unwrap();
    let read = |name: &str| std::fs::read(out.join(name)).unwrap();
    let built = Built { binary: read("binary"), lines: read("lines"), entries: vec!["k".into()], check: true };
    let data = [floats("x", (0..64).map(|i| i as f32)), output("y", 64, 4)];
    let ran = run(&built, launch("k", 1, 64, vec![ptr("x"), ptr("y")]), &data);
    assert!(ran.findings.iter().any(|found| found.kind == FindingKind::Race), "{ran:?}");
}

#[test]
#[ignore = "second tier: many sources"]
fn variables_keep_state_whatever_their_names_and_sections() {
    let with = |declared: &str, used: &str| {
        let text = format!(
            "{declared}\n__global__ void k(const float *x, float *y) {{ {used} y[threadIdx.x] = x[threadIdx.x]; }}\n"
        );
        [true, false].map(|check| keeps_state(&build(&text, &["k"], check).binary, 1))
    };
    assert_eq!(with("", ""), [false; 2]);
    assert_eq!(
        with("__constant__ const float c[2] = {1, 2};", "y[0] = c[threadIdx.x & 1];"),
        [false; 2],
        "it cannot be written"
    );
    assert_eq!(with("", "__shared__ float s[64]; s[threadIdx.x] = x[0];"), [false; 2], "it belongs to a block");
    let kept = [
        ("__device__ int kept;", "kept"),
        ("__device__ int kf_kept;", "kf_kept"),
        ("__device__ int _ZGVkept;", "_ZGVkept"),
        ("__device__ int kept __attribute__((section(\"elsewhere\"))) = 1;", "kept"),
        ("__device__ int kept __attribute__((section(\".kf_targets\"))) = 1;", "kept"),
        ("extern int kept __asm__(\"completed.7\"); int kept;", "kept"),
        ("", "kept"),
    ];
    for (declared, name) in kept {
        let used = if declared.is_empty() { "static int kept; " } else { "" };
        let used = format!("{used} if (threadIdx.x == 0) y[0] = {name}++;");
        assert_eq!(with(declared, &used), [true; 2], "{declared}");
    }
}

#[test]
#[ignore = "second tier: many sources"]
fn a_claim_must_be_possible_for_the_binary() {
    let claim = |text: &str, claim: &Unemulated| {
        let built = build(text, &["k"], false);
        credible(claim, &Claimant { binary: &built.binary, launches: &[], threads: 1, memory: 1 << 30 })
    };
    let construct = |name: &str| Unemulated::Construct(name.into());
    // A mere text is not a construct, one construct is not another, and a small frame needs no deep stack.
    let text = format!("__device__ const char *volatile other = \"mma.sync\";\n{RACY}");
    assert_eq!(claim(&text, &construct("mma.sync")), Err(Incredible::Construct));
    let other = format!("__global__ void other() {{ asm(\"wgmma.fence.sync.aligned;\"); }}\n{RACY}");
    assert_eq!(claim(&other, &construct("mma.sync")), Err(Incredible::Construct));
    assert_eq!(claim(RACY, &Unemulated::Stack), Err(Incredible::Stack));
    assert_eq!(claim(RACY, &Unemulated::Threads), Err(Incredible::Threads(0)));
    let real = RACY.replace("__shared__", "asm(\"mma.sync 0;\"); __shared__");
    assert_eq!(claim(&real, &construct("inline PTX: `mma.sync`")), Ok(Claim::Orderly));
}
