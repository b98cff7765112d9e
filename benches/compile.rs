//! A cold compile of 36 variants of a tiled matrix product: `kforge check`, beside plain NVRTC with the same options in one process per core, and beside ninja
//! with `nvcc -cubin`. Prints wall-clock and processor time in milliseconds (medians of interleaved runs), and ratios. The source is `benches/matmul/mm.cu`, or
//! the file that `MM_CU` names. The argument is the number of runs (5).
//!
//! The first run fetches CUDA (see `kforge fetch`) into a separate home below the target folder. Later runs find CUDA there, and the survey of the C++
//! compiler. They find no compiled code. The first build on a machine is timed too: it queries the C++ compiler. nvcc is taken from that home or from `PATH`,
//! and left out if it is in neither.
#![expect(unsafe_code, reason = "NVRTC alone is called without anything of kforge's")]
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a bench prints its result, and stops where it cannot be set up"
)]
#![expect(clippy::disallowed_methods, reason = "a bench is told by its environment what to time")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::ptr;
use std::time::Instant;

const ARCH: &str = "sm_90a";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, library, part, parts] = &words[..]
        && word == "alone"
    {
        let (part, parts): (usize, usize) = (part.parse().expect("a number"), parts.parse().expect("a number"));
        let text = std::fs::read_to_string("mm.cu").expect("the source");
        let mine: Vec<Vec<String>> = variants().into_iter().skip(part).step_by(parts).collect();
        alone(library, &text, &mine);
        return;
    }
    let times = words.iter().find_map(|word| word.parse::<usize>().ok()).unwrap_or(5).max(1);
    let dir = tempfile::tempdir().expect("a temporary folder");
    let given = std::env::var_os("MM_CU").map(PathBuf::from);
    let source = given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/matmul/mm.cu"));
    let work = dir.path().join("work");
    std::fs::create_dir(&work).expect("a folder");
    std::fs::copy(&source, work.join("mm.cu")).expect("the source");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/matmul/kernel.toml");
    std::fs::copy(manifest, work.join("kernel.toml")).expect("the manifest");
    let home = std::env::var_os("KFORGE_BENCH_HOME")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-home"), PathBuf::from);
    // Fetches missing wheels and fills the lockfile.
    check(&work, &home);
    let library = find(&home, |name| name.starts_with("libnvrtc.so")).expect("NVRTC was fetched");
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let nvcc = find(&home, |name| name == "nvcc")
        .or_else(|| Command::new("nvcc").arg("--version").output().ok().map(|_| "nvcc".into()));
    let stage = stage(dir.path(), &source, &library);
    let forget = || {
        for folder in ["actions", "cas", "scratch", "locks", "workspaces", "tmp"] {
            drop(std::fs::remove_dir_all(home.join(folder)));
        }
        drop(std::fs::remove_dir_all(work.join("target")));
    };
    let (mut first, mut ours, mut bare, mut peer) = (vec![], vec![], vec![], vec![]);
    for _ in 0..times {
        forget();
        drop(std::fs::remove_file(home.join("machine")));
        first.push(time(|| check(&work, &home)));
        forget();
        ours.push(time(|| check(&work, &home)));
        bare.push(time(|| in_processes(&library, &stage, cores)));
        if let Some(nvcc) = &nvcc {
            let folder = tempfile::tempdir().expect("a temporary folder");
            if !ninja(folder.path(), nvcc, &source) {
                break;
            }
            peer.push(time(|| {
                let run = Command::new("ninja").current_dir(folder.path()).stdout(Stdio::null()).status();
                assert!(run.is_ok_and(|s| s.success()), "nvcc compiles it");
            }));
        }
    }
    let (first, ours, bare) = (median(first), median(ours), median(bare));
    println!("load {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    println!("{} variants on {cores} cores", variants().len());
    let line = |what: &str, taken: (f64, f64)| {
        let (wall, cpu) = (taken.0 / bare.0, taken.1 / bare.1);
        println!("{what:<34}{:8.0} ms, {wall:.2} times; processor time {:8.0} ms, {cpu:.2} times", taken.0, taken.1);
    };
    line("NVRTC alone, in as many processes", bare);
    line("kforge check, cold", ours);
    line("the same, first on the machine", first);
    if peer.is_empty() {
        println!("ninja with nvcc: not compared, nvcc or ninja is not installed");
    } else {
        let peer = median(peer);
        line("ninja with nvcc -cubin", peer);
    }
}

fn check(work: &Path, home: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kforge"));
    let done = command.arg("check").current_dir(work).env("KFORGE_HOME", home).output().expect("kforge runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && !said.contains("unavailable"), "every variant is compiled: {said}");
}

/// The macros of each variant, as in the manifest.
fn variants() -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for tx in [8, 16, 32] {
        for ty in [8, 16] {
            for rx in [1, 2, 4] {
                for ry in [2, 4] {
                    all.push(
                        [("TX", tx), ("TY", ty), ("RX", rx), ("RY", ry), ("TK", 16)]
                            .map(|(n, v)| format!("-D{n}={v}"))
                            .to_vec(),
                    );
                }
            }
        }
    }
    all
}

fn find(folder: &Path, is: impl Fn(&str) -> bool) -> Option<PathBuf> {
    // Folders of interrupted installations are hidden.
    let shown = |e: &walkdir::DirEntry| !e.file_name().as_encoded_bytes().starts_with(b".");
    let files = walkdir::WalkDir::new(folder.join("toolchains")).into_iter().filter_entry(shown).flatten();
    files
        .filter(|e| e.file_type().is_file())
        .find(|e| e.file_name().to_str().is_some_and(&is))
        .map(|e| e.path().to_path_buf())
}

/// The wall-clock time, and the processor time of child processes that ended meanwhile, in milliseconds.
fn time(run: impl FnOnce()) -> (f64, f64) {
    let (start, before) = (Instant::now(), children_ms());
    run();
    (start.elapsed().as_secs_f64() * 1e3, children_ms() - before)
}

/// User and system time of all child processes that were waited for, and of their own children.
fn children_ms() -> f64 {
    // SAFETY: all bytes of the structure may be zero, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let ms = |t: libc::timeval| t.tv_sec as f64 * 1e3 + t.tv_usec as f64 / 1e3;
    ms(usage.ru_utime) + ms(usage.ru_stime)
}

/// The median of each of the two times.
fn median(all: Vec<(f64, f64)>) -> (f64, f64) {
    let middle = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let (walls, cpus) = all.into_iter().unzip();
    (middle(walls), middle(cpus))
}

/// A folder laid out as kforge does for NVRTC: the source, CUDA's headers, the replacements for standard headers.
fn stage(dir: &Path, source: &Path, library: &Path) -> PathBuf {
    let stage = dir.join("stage");
    std::fs::create_dir_all(stage.join("@shim")).expect("a folder");
    std::fs::copy(source, stage.join("mm.cu")).expect("the source");
    let include = library.parent().and_then(Path::parent).expect("a folder of CUDA").join("include");
    std::os::unix::fs::symlink(include, stage.join("@cuda")).expect("a link");
    for (name, text) in kforge::cuda::shim_headers() {
        let path = stage.join("@shim").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a header");
    }
    stage
}

/// The options that kforge passes to NVRTC in addition to a variant's macros.
const OPTIONS: [&str; 10] = [
    "--gpu-architecture=sm_90a",
    "-std=c++17",
    "-default-device",
    "--ptxas-options=-v",
    "--pre-include=@shim/kforge_prelude.h",
    "-frandom-seed=kforge",
    "-I.",
    "-I@cuda",
    "-I@cuda/cccl",
    "-I@shim",
];

/// Compiles with NVRTC in this many processes, each with its share of the variants.
fn in_processes(library: &Path, stage: &Path, processes: usize) {
    let program = std::env::current_exe().expect("this program");
    let start = |part: usize| {
        let mut command = Command::new(&program);
        command.current_dir(stage).arg("alone").arg(library).args([part.to_string(), processes.to_string()]);
        // NVRTC finds its built-in functions with the loader's search path.
        command.env("LD_LIBRARY_PATH", library.parent().unwrap_or(library)).spawn().expect("this program runs")
    };
    let children: Vec<_> = (0..processes).map(start).collect();
    for mut child in children {
        assert!(child.wait().is_ok_and(|s| s.success()), "NVRTC compiles it");
    }
}

fn ninja(folder: &Path, nvcc: &Path, source: &Path) -> bool {
    let mut text = format!("rule cubin\n  command = {} -cubin -arch={ARCH} $flags $in -o $out\n", nvcc.display());
    for (i, flags) in variants().iter().enumerate() {
        text.push_str(&format!("build {i}.cubin: cubin {}\n  flags = {}\n", source.display(), flags.join(" ")));
    }
    std::fs::write(folder.join("build.ninja"), text).expect("a file");
    Command::new("ninja").arg("--version").stdout(Stdio::null()).status().is_ok()
}

type Program = *mut c_void;

/// Compiles each variant to a cubin with plain NVRTC.
fn alone(library: &str, text: &str, variants: &[Vec<String>]) {
    // SAFETY: NVRTC's initialisers need nothing; each function is called as nvrtc.h declares it, with pointers that live through the call.
    unsafe {
        let nvrtc = libloading::Library::new(library).expect("NVRTC loads");
        let create: libloading::Symbol<
            '_,
            unsafe extern "C" fn(
                *mut Program,
                *const c_char,
                *const c_char,
                c_int,
                *const *const c_char,
                *const *const c_char,
            ) -> c_int,
        > = nvrtc.get(b"nvrtcCreateProgram").expect("a function of NVRTC");
        let compile: libloading::Symbol<'_, unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int> =
            nvrtc.get(b"nvrtcCompileProgram").expect("a function of NVRTC");
        let name: libloading::Symbol<'_, unsafe extern "C" fn(Program, *const c_char) -> c_int> =
            nvrtc.get(b"nvrtcAddNameExpression").expect("a function of NVRTC");
        let size: libloading::Symbol<'_, unsafe extern "C" fn(Program, *mut usize) -> c_int> =
            nvrtc.get(b"nvrtcGetCUBINSize").expect("a function of NVRTC");
        let cubin: libloading::Symbol<'_, unsafe extern "C" fn(Program, *mut c_char) -> c_int> =
            nvrtc.get(b"nvrtcGetCUBIN").expect("a function of NVRTC");
        let destroy: libloading::Symbol<'_, unsafe extern "C" fn(*mut Program) -> c_int> =
            nvrtc.get(b"nvrtcDestroyProgram").expect("a function of NVRTC");
        let text = CString::new(text).expect("a text without zeros");
        for macros in variants {
            let options: Vec<CString> = OPTIONS
                .into_iter()
                .chain(macros.iter().map(String::as_str))
                .map(|o| CString::new(o).expect("a text without zeros"))
                .collect();
            let pointers: Vec<*const c_char> = options.iter().map(|o| CStr::as_ptr(o)).collect();
            let mut program = ptr::null_mut();
            assert_eq!(
                create(&mut program, text.as_ptr(), c"mm.cu".as_ptr(), 0, ptr::null(), ptr::null()),
                0,
                "NVRTC takes it"
            );
            assert_eq!(name(program, c"mm".as_ptr()), 0, "NVRTC takes the entry");
            assert_eq!(compile(program, pointers.len() as c_int, pointers.as_ptr()), 0, "NVRTC compiles it");
            let mut bytes = 0;
            assert_eq!(size(program, &mut bytes), 0, "NVRTC says how large it is");
            let mut made = vec![0u8; bytes];
            assert_eq!(cubin(program, made.as_mut_ptr().cast()), 0, "NVRTC gives it");
            assert!(std::hint::black_box(made).starts_with(b"\x7fELF"), "it is machine code");
            destroy(&mut program);
        }
    }
}
