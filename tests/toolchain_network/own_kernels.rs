//! kforge's own kernels: each `.ptx` below `src` must be what NVRTC makes of the `.cu` beside it, so that a source that was edited without compiling it again
//! is found without a GPU. `SNAPSHOTS=overwrite cargo test --test acquire own_kernels` compiles them again.
#![expect(unsafe_code, reason = "a C library is loaded and called")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::fs;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::ptr::null;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use crate::{RELEASE, environment, tools};

type Program = *mut c_void;
type Strings = *const *const c_char;
type Create = unsafe extern "C" fn(*mut Program, *const c_char, *const c_char, c_int, Strings, Strings) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, Strings) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Get = unsafe extern "C" fn(Program, *mut u8) -> c_int;

/// The oldest architecture that kforge supports. Multiply-adds are fused only where the source says so, so that sums have the same bits as on the host.
const OPTIONS: [&str; 3] = ["--gpu-architecture=compute_75", "-std=c++17", "--fmad=false"];
/// The PTX version for this architecture: every driver that supports the architecture accepts it.
const VERSION: &str = ".version 6.3";
/// The text before the version of NVRTC in the header of its output.
const MADE_BY: &str = "// Cuda compilation tools, ";

/// The exact output of NVRTC for a source.
fn ptx(source: &Path) -> String {
    let library = |tool: &str| {
        // SAFETY: NVIDIA's libraries, verified against the lockfile when they were installed.
        let library = unsafe { Library::open(Some(&tools()[tool]), RTLD_NOW | RTLD_GLOBAL) }.unwrap();
        // Never unloaded, because other tests of this process use the libraries too.
        ManuallyDrop::new(library)
    };
    let (_, nvrtc) = (library("nvrtc-builtins"), library("nvrtc"));
    let text = CString::new(fs::read(source).unwrap()).unwrap();
    let name = CString::new(source.file_name().unwrap().as_encoded_bytes()).unwrap();
    let options = OPTIONS.map(|option| CString::new(option).unwrap());
    let pointers = options.each_ref().map(|option| option.as_ptr());
    // SAFETY: the functions have the types of NVRTC's header. All pointers live until the end of the block, and buffers have the sizes that NVRTC requests.
    unsafe {
        let create = nvrtc.get::<Create>("nvrtcCreateProgram").unwrap();
        let compile = nvrtc.get::<Compile>("nvrtcCompileProgram").unwrap();
        let destroy = nvrtc.get::<Destroy>("nvrtcDestroyProgram").unwrap();
        let mut program: Program = std::ptr::null_mut();
        assert_eq!(create(&mut program, text.as_ptr(), name.as_ptr(), 0, null(), null()), 0);
        let compiled = compile(program, OPTIONS.len() as c_int, pointers.as_ptr());
        let told = |what: &str| {
            let size = nvrtc.get::<Size>(format!("{what}Size")).unwrap();
            let get = nvrtc.get::<Get>(what).unwrap();
            let mut bytes = 0;
            assert_eq!(size(program, &mut bytes), 0);
            let mut text = vec![0; bytes];
            assert_eq!(get(program, text.as_mut_ptr()), 0);
            String::from_utf8(text).unwrap().trim_end_matches('\0').to_string()
        };
        assert_eq!(compiled, 0, "{}: {}", source.display(), told("nvrtcGetProgramLog"));
        let text = told("nvrtcGetPTX");
        assert_eq!(destroy(&mut program), 0);
        text
    }
}

/// The line that names the NVRTC that made a text.
fn made_by(text: &str) -> &str {
    text.lines().find(|line| line.starts_with(MADE_BY)).unwrap_or_else(|| panic!("no line begins with `{MADE_BY}`"))
}

/// The stored text: with the required version first, because PTX is recognized by its first line, and with the name of the compiler from the header at the end.
fn kept(made: &str) -> String {
    let (header, rest) = made.split_once(".version ").unwrap();
    let (_, code) = rest.split_once('\n').unwrap();
    format!("{VERSION}\n{}\n\n{}\n", code.trim_end(), made_by(header))
}

/// Every PTX file of kforge.
fn files() -> Vec<PathBuf> {
    let all = walkdir::WalkDir::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).sort_by_file_name();
    let all = all.into_iter().map(|entry| entry.unwrap().into_path());
    all.filter(|path| path.extension().is_some_and(|e| e == "ptx")).collect()
}

#[test]
#[ignore = "second tier: installs a toolchain from the network"]
fn each_ptx_is_what_nvrtc_makes_of_the_source_beside_it() {
    let overwrites = environment().get("SNAPSHOTS").is_some_and(|action| action == "overwrite");
    let files = files();
    assert!(!files.is_empty());
    for file in files {
        let made = kept(&ptx(&file.with_extension("cu")));
        let held = fs::read_to_string(&file).unwrap();
        if !overwrites {
            let (own, here) = (made_by(&held), made_by(&made));
            // Otherwise it would no longer be compared once tests use another release.
            let release = format!("release {RELEASE},");
            let again = "make it anew by `SNAPSHOTS=overwrite cargo test --test acquire own_kernels`";
            assert!(own.contains(&release), "{} is not of {release} {again}", file.display());
            if own != here {
                kforge::base::testing::skipped(&format!("{} has `{own}`, and here is `{here}`", file.display()));
                continue;
            }
        }
        snapbox::Assert::new().action_env("SNAPSHOTS").eq(made, snapbox::Data::read_from(&file, None).raw());
    }
}
