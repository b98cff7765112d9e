//! The emulator's value headers, tested from outside: each C++ program in `tests/emulator_values` is compiled with the host compiler as kernels are, and
//! reports errors. Knows which program proves what, but not how the headers work. `instructions.cu` beside them is for the emulator and for a GPU
//! (`tests/emulator/values.rs`).
//!
//! The programs carry their own oracles (arithmetic in wider formats, loops over bits, the processor's rounding modes, a table of values to 60 digits that
//! states its origin). When the headers were written (2026-11) they were also compared, outside this repository, with numpy 2.4 and ml_dtypes 0.6 (all
//! conversions to binary16, bfloat16, e4m3 and e5m2, at every value, midpoint and neighbor), and with the host functions of NVIDIA's own headers of CUDA 13.5
//! (237 expressions of the 16- and 8-bit types on 200,000 operands, the layouts, the constants): no bit differed. NVRTC 13 compiled `spellings.cpp` with
//! NVIDIA's headers, so its list is CUDA's.

use std::ffi::OsStr;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The absolute path of `g++`: a bare name would make each spawn search again.
fn compiler() -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "a test has no configuration to take the search path from")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join("g++"))
        .find(|file| file.is_file())
        .expect("`g++` is needed on PATH to test the emulator's headers")
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compiles one program with warnings as errors, and returns the compiler's output if it fails.
fn compile(program: &str, flags: &[&str], output: &Path) {
    let source = root().join("tests/emulator_values").join(program).with_extension("cpp");
    let result = Command::new(compiler())
        .args(["-std=c++17", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-I"])
        .arg(root().join("src/emulator/include"))
        .args(flags)
        .arg(&source)
        .args([OsStr::new("-o"), output.as_os_str()])
        .output()
        .expect("the compiler starts");
    assert!(result.status.success(), "{program}: {}", String::from_utf8_lossy(&result.stderr));
}

/// Compiles and runs one program. Its output describes the failure.
fn holds(program: &str, flags: &[&str]) {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let binary = scratch.path().join(program);
    compile(program, flags, &binary);
    let result = Command::new(&binary).output().expect("the program starts");
    assert!(result.status.success(), "{program} {flags:?}: {}", String::from_utf8_lossy(&result.stdout));
}

#[test]
#[ignore = "second tier: every format"]
fn narrow_formats_convert_and_compute_with_correct_rounding() {
    holds("formats", &["-O2"]);
}

#[test]
#[ignore = "second tier: every rounding mode"]
fn stated_rounding_modes_and_saturation_are_exact() {
    holds("rounding", &["-O2"]);
}

#[test]
#[ignore = "second tier: every value twice"]
fn stated_rounding_survives_a_compiler_that_may_fuse_and_reorder() {
    holds("rounding", &["-O3", "-march=native", "-ffp-contract=fast"]);
}

#[test]
#[ignore = "second tier: many sources"]
fn integer_intrinsics_and_layouts_are_cudas() {
    holds("integers", &["-O1"]);
}

#[test]
#[ignore = "second tier: many sources"]
fn functions_the_c_library_lacks_are_accurate() {
    holds("functions", &["-O1"]);
}

/// Like the test above, with the flags of the emulator's check build, whose hooks must find nothing to report in the headers.
#[test]
#[ignore = "second tier: every value twice"]
fn values_are_the_same_under_instrumentation() {
    holds("formats", &["-O1", "-fsanitize=thread", "--param", "tsan-distinguish-volatile=1"]);
}

#[test]
#[ignore = "second tier: every spelling"]
fn every_promised_spelling_compiles() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    compile("spellings", &["-c", "-O0"], &scratch.path().join("spellings.o"));
    // And after the emulator's prelude, whose macros turn C++ words into CUDA's.
    let prelude = ["-c", "-O0", "-Wno-unused-function", "-include", "kforge_cuda.h"];
    compile("spellings", &prelude, &scratch.path().join("behind.o"));
}

/// The parts of the prelude that are left out for a source that names none of them.
const WITHOUT: [&str; 4] = ["-DKF_WITHOUT_NARROW", "-DKF_WITHOUT_STD", "-DKF_WITHOUT_SIMD", "-DKF_WITHOUT_ATOMIC"];

#[test]
#[ignore = "second tier: many sources"]
fn what_cuda_has_without_an_include_is_there_with_every_part_left_out() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    for standard in ["-std=c++17", "-std=c++20"] {
        let prelude = ["-c", "-O0", standard, "-Wno-unused-function", "-include", "kforge_cuda.h"];
        compile("everything", &prelude, &scratch.path().join("all.o"));
        compile("everything", &[&prelude[..], &WITHOUT].concat(), &scratch.path().join("least.o"));
        // The emulator's headers include these parts themselves, wherever they are included.
        let brought = ["-include", "cuda_fp16.h", "-include", "cuda_fp8.h", "-include", "kf_simd.h"];
        compile("spellings", &[&prelude[..], &WITHOUT, &brought].concat(), &scratch.path().join("brought.o"));
    }
}

#[test]
#[ignore = "second tier: every header"]
fn each_header_compiles_alone_and_twice() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    for name in ["vector_types", "narrow", "half", "bf16", "fp8", "math", "intrinsics", "simd", "mma_values", "system"]
    {
        let source = scratch.path().join("alone.cpp");
        std::fs::write(&source, format!("#include \"kf_{name}.h\"\n#include \"kf_{name}.h\"\n"))
            .expect("the source is written");
        let result = Command::new(compiler())
            .args(["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I"])
            .arg(root().join("src/emulator/include"))
            .arg(&source)
            .output()
            .expect("the compiler starts");
        assert!(result.status.success(), "kf_{name}.h: {}", String::from_utf8_lossy(&result.stderr));
    }
}

/// Floats that decide a rounding: every pattern of both formats as a float, the midpoint to the next one, and the floats beside each of these; all exponents
/// with few bits set.
fn deciding_floats() -> Vec<f32> {
    let mut floats = Vec::new();
    let mut beside = |value: f32| {
        for by in [-1i32, 0, 1] {
            floats.push(f32::from_bits(value.to_bits().wrapping_add_signed(by)));
        }
    };
    for pattern in 0..=u16::MAX {
        let here = half::f16::from_bits(pattern).to_f32();
        beside(here);
        beside((here + half::f16::from_bits(pattern.wrapping_add(1)).to_f32()) / 2.0);
        beside(f32::from_bits(u32::from(pattern) << 16));
        beside(f32::from_bits(u32::from(pattern) << 16 | 0x8000));
    }
    for exponent in 0..=255u32 {
        for bits in 0..23 {
            beside(f32::from_bits(exponent << 23 | 1 << bits));
            beside(f32::from_bits(1 << 31 | exponent << 23 | 0x7f_ffff >> bits));
        }
    }
    floats
}

#[test]
fn narrow_formats_agree_with_the_half_crate() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let binary = scratch.path().join("exchange");
    compile("exchange", &["-O1"], &binary);

    let floats = deciding_floats();
    let mut input = tempfile::tempfile().expect("a scratch file");
    let bytes: Vec<u8> = floats.iter().flat_map(|float| float.to_ne_bytes()).collect();
    input.write_all(&bytes).expect("the floats are written");
    input.seek(SeekFrom::Start(0)).expect("the file rewinds");
    let mut output = tempfile::tempfile().expect("a scratch file");
    let status = Command::new(&binary)
        .stdin(input)
        .stdout(output.try_clone().expect("the file is shared"))
        .status()
        .expect("the program starts");
    assert!(status.success());
    output.seek(SeekFrom::Start(0)).expect("the file rewinds");
    let mut answer = Vec::new();
    output.read_to_end(&mut answer).expect("the answer is read");
    assert_eq!(answer.len(), floats.len() * 4 + 0x1_0000 * 8);

    let (narrowed, widened) = answer.split_at(floats.len() * 4);
    for (float, pair) in floats.iter().zip(narrowed.chunks_exact(4)) {
        let f16 = u16::from_ne_bytes([pair[0], pair[1]]);
        let bf16 = u16::from_ne_bytes([pair[2], pair[3]]);
        if float.is_nan() {
            assert_eq!((f16, bf16), (0x7fff, 0x7fff), "CUDA's NaN is canonical");
            continue;
        }
        assert_eq!(f16, half::f16::from_f32(*float).to_bits(), "f16 of {float:e}");
        assert_eq!(bf16, half::bf16::from_f32(*float).to_bits(), "bf16 of {float:e}");
    }
    for (pattern, pair) in (0..=u16::MAX).zip(widened.chunks_exact(8)) {
        let f16 = f32::from_ne_bytes([pair[0], pair[1], pair[2], pair[3]]);
        let bf16 = f32::from_ne_bytes([pair[4], pair[5], pair[6], pair[7]]);
        let (want, want_bf16) = (half::f16::from_bits(pattern), half::bf16::from_bits(pattern));
        assert!(f16 == want.to_f32() || (f16.is_nan() && want.is_nan()), "f16 {pattern:04x}");
        assert!(bf16 == want_bf16.to_f32() || (bf16.is_nan() && want_bf16.is_nan()), "bf16 {pattern:04x}");
    }
}
