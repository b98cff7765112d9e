//! What packaging costs: `kforge package` of `examples/kernels` after a build, and the size of an artifact with one kernel. Needs the compilers of the examples'
//! lockfiles; the first run fetches them into a home below the target folder. Builds from the signed evidence of the examples, so it needs no GPU.
//!
//! Compared with limits: two seconds, and 100 KB.
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a bench prints its result, and stops where it cannot be set up"
)]
#![expect(clippy::disallowed_methods, reason = "a bench is told by its environment where its home is")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

/// The longest time in seconds, and the largest archive in bytes.
const LIMITS: (f64, u64) = (2.0, 100_000);

fn main() {
    let home = std::env::var_os("KFORGE_BENCH_HOME")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-home"), PathBuf::from);
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let kforge = |example: &str, words: &[&str]| -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kforge"));
        command.arg("-C").arg(examples.join(example)).args(words).args(["--target", "h200", "--trust"]);
        command.arg(examples.join("allowed_signers")).env("KFORGE_HOME", &home).env("CUDA_VISIBLE_DEVICES", "");
        command.arg("--target-dir").arg(dir.path().join(example)).output().expect("kforge runs")
    };
    for example in ["quickstart", "kernels"] {
        let built = kforge(example, &["build", "--require-evidence"]);
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }
    let out = dir.path().join("artifacts");
    let out = out.to_str().expect("a UTF-8 path");
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let began = Instant::now();
            let packed = kforge("kernels", &["package", "--output", out]);
            assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
            began.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let packed = kforge("quickstart", &["package", "--output", out]);
    assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
    let archive = std::fs::read_dir(out).expect("artifacts").filter_map(Result::ok).map(|entry| entry.path());
    let sizes: Vec<(String, u64)> = archive
        .filter(|path| path.extension().is_some_and(|extension| extension == "tar"))
        .map(|path| {
            let bytes = path.metadata().map_or(0, |data| data.len());
            (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), bytes)
        })
        .collect();
    println!(
        "package of examples/kernels: {:.2} s, median of {}, limit {:.0} s",
        times[times.len() / 2],
        times.len(),
        LIMITS.0
    );
    for (name, bytes) in sizes {
        let limit =
            if name.starts_with("quickstart") { format!(", limit {} KB", LIMITS.1 / 1000) } else { String::new() };
        println!("{name}: {:.1} KB{limit}", bytes as f64 / 1000.0);
    }
}
