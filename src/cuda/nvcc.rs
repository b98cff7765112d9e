//! Compiles with nvcc, as a child process. Knows its options, but not when it is used.
//!
//! nvcc runs twice on one unit. The unit is the source followed by a host-side table of the entries' addresses, which instantiates templates and adds nothing
//! to device code. The first run makes PTX from the unit with the same table on the device side, which gives the exact symbol of each entry, regardless of
//! templates and namespaces. The second run makes the cubin. Both runs see the source by relative names in a folder of their own and an environment of two
//! variables.
//!
//! A kernel with its own launcher is compiled to a shared library, including its host code, in one run: no entry needs to be looked up by name.
//!
//! Symbols of kernels in anonymous namespaces contain a hash of the folder's absolute path, even if nvcc is given a seed. The hash is overwritten with zeros,
//! which is what NVRTC writes.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use super::compile::CudaCompileError;
use super::load::Compilation;
use super::stage::{self, Given, Stage};
use kforge_foundation::process::End;
use kforge_harness::compilers::{ToolSandbox, advice, ended};
use kforge_project::source::{ABSENT, addressed};
use kforge_project::toolchain::cxx::search_path;
use kforge_types::record::params::CompileParams;

/// The unit, whose name enters symbols of anonymous namespaces, in a folder in which no include finds a file.
const FOLDER: &str = "@unit";
const UNIT: &str = "./@unit/kforge.cu";

/// The folder of the header for launchers.
const OWN: &str = "@kforge";

/// The header that a kernel's own launcher includes, for C and C++: its name and its text.
pub const HOST_HEADER: (&str, &str) = ("kforge_host.h", include_str!("kforge_host.h"));

/// The file name of the tables' lines in messages.
const ENTRIES: &str = "@entries";

/// A unit laid out for nvcc, and the settings for running nvcc on it.
pub(super) struct Unit<'a> {
    params: &'a CompileParams,
    nvcc: &'a Path,
    cxx: &'a Path,
    within: &'a ToolSandbox<'a>,
    stage: Stage,
    /// The source, with each line under its original file name and number.
    text: Vec<u8>,
    /// Whether files were replaced, so that empty headers are searched last.
    replaced: bool,
    path: String,
    temporary: PathBuf,
    /// Whether nvcc accepts a seed: only since 12.9.
    seeded: Cell<bool>,
}

impl<'a> Unit<'a> {
    /// Lays the source out for one compilation.
    pub(super) fn new(
        params: &'a CompileParams,
        source: Given<'_>,
        nvcc: &'a Path,
        cxx: &'a Path,
        within: &'a ToolSandbox<'a>,
    ) -> Result<Self, CudaCompileError> {
        let (_, text) = stage::main_file(params, source).map_err(CudaCompileError::failed)?;
        let stage = Stage::new(source, &root(nvcc)?.join("include"), None, within.scratch).map_err(unavailable)?;
        let temporary = stage.path().join("@tmp");
        fs::create_dir(&temporary).map_err(unavailable)?;
        fs::create_dir(stage.path().join(FOLDER)).map_err(unavailable)?;
        let name = params.main.replace('\\', "\\\\").replace('"', "\\\"");
        let text = [format!("#line 1 \"{name}\"\n").as_bytes(), &text].concat();
        let (path, seeded) = (search_path(cxx), Cell::new(true));
        let replaced = !source.replaced.is_empty();
        Ok(Unit { params, nvcc, cxx, within, stage, text, replaced, path, temporary, seeded })
    }

    /// Lays out the source followed by more text.
    fn lay_out(&self, tail: &str) -> Result<(), CudaCompileError> {
        fs::write(self.stage.path().join(UNIT), [&self.text, tail.as_bytes()].concat()).map_err(unavailable)
    }

    /// Runs nvcc with these arguments and the common ones. Returns whether it succeeded, and its output.
    fn run(&self, args: &[&str]) -> Result<(bool, String), CudaCompileError> {
        let (succeeded, log) = self.once(args)?;
        if !succeeded && self.seeded.get() && log.contains("nknown option") && log.contains("-frandom-seed") {
            self.seeded.set(false);
            return self.once(args);
        }
        Ok((succeeded, log))
    }

    fn once(&self, args: &[&str]) -> Result<(bool, String), CudaCompileError> {
        let cannot = |e: std::io::Error| CudaCompileError::Unavailable {
            why: format!("could not run `{}`: {e}", self.nvcc.display()),
        };
        let (params, stage) = (self.params, &self.stage);
        let command = self
            .within
            .command(self.nvcc, stage.path())
            .map_err(cannot)?
            .args(args)
            .args(self.seeded.get().then_some("-frandom-seed=kforge"))
            .arg(UNIT)
            .arg(format!("-std={}", params.std))
            .arg("-ccbin")
            .arg(self.cxx)
            .args(stage::defines(params))
            .args(Stage::own_includes(params).iter().map(|folder| format!("-I{folder}")))
            .args(stage.cuda_includes().iter().map(|folder| format!("-isystem={folder}")))
            .args(stage::flags(params).map_err(CudaCompileError::failed)?)
            .args(self.replaced.then(|| format!("-Xcompiler=-idirafter,{ABSENT}")))
            .env("PATH", &self.path)
            .env("TMPDIR", &self.temporary);
        let finished = self.within.run(&command).map_err(cannot)?;
        let text = finished.stdout.text() + &finished.stderr.text();
        let log = text.replace(&*stage.path().to_string_lossy(), ".");
        match finished.end {
            End::Exited(0) => Ok((true, log)),
            End::Exited(_) => Ok((false, log.clone() + advice(&log))),
            end => Err(CudaCompileError::Failed { message: ended("`nvcc`", end), log, ended: Some(end) }),
        }
    }

    /// Compiles the unit. The log is that of the second run, or of the first if the first failed.
    pub(super) fn compile(&self) -> Result<Compilation, CudaCompileError> {
        let arch = format!("-arch={}", self.params.arch);
        let (host, device) = tables(&self.params.entries);
        self.lay_out(&(host.clone() + &device))?;
        let (named, log) = self.run(&["-ptx", "-o", "@names.ptx", &arch])?;
        if !named {
            return Ok(Compilation { result: None, ptx: None, log: blame(&log, self.params) });
        }
        let ptx = String::from_utf8_lossy(&self.made("@names.ptx")?).into_owned();
        let symbols: Option<Vec<String>> = (0..self.params.entries.len()).map(|i| symbol(&ptx, i)).collect();
        let symbols = symbols.ok_or_else(|| CudaCompileError::Failed {
            message: format!("nvcc does not report the symbols of the entries of `{}`", self.params.main),
            log: log.clone(),
            ended: None,
        })?;
        self.lay_out(&host)?;
        let symbols = symbols.into_iter().map(forgotten).collect();
        let made = self.make("@unit.cubin", symbols, &["-cubin", "-Xptxas=-v", &arch])?;
        // The run that gives the cubin makes the same PTX in between, and keeps it nowhere.
        let ptx = match &made.result {
            Some(_) if self.params.ptx => self.make("@unit.ptx", vec![], &["-ptx", &arch])?.result.map(|(ptx, _)| ptx),
            _ => None,
        };
        Ok(Compilation { log: blame(&made.log, self.params), ptx, ..made })
    }

    /// Compiles a kernel's own launcher, with the kernels, to a shared library; no symbol of the library is an entry. The library contains uncompressed machine
    /// code for one architecture and no PTX, so that the code that runs is the code that was inspected. CUDA's runtime is linked statically and its symbols are
    /// hidden, so that no runtime is needed on the machine that runs the library.
    pub(super) fn compile_library(&self) -> Result<Compilation, CudaCompileError> {
        let folder = self.stage.path().join(OWN);
        fs::create_dir(&folder).map_err(unavailable)?;
        fs::write(folder.join(HOST_HEADER.0), HOST_HEADER.1).map_err(unavailable)?;
        self.lay_out("")?;
        let virtual_arch = self.params.arch.replacen("sm_", "compute_", 1);
        let (arch, own) =
            (format!("-gencode=arch={virtual_arch},code={}", self.params.arch), format!("-isystem={OWN}"));
        // Wheels have a folder of libraries that their nvcc does not search.
        let libraries = format!("-L{}", root(self.nvcc)?.join("lib").display());
        let args = ["-shared", &arch, "--no-compress", "-Xptxas=-v", "-cudart=static", &own, &libraries];
        let args = [&args[..], &["-Xcompiler=-fPIC", "-Xlinker=-s,--build-id=none,--exclude-libs=ALL"]].concat();
        self.make("@unit.so", vec![], &args)
    }

    /// Runs nvcc to make a file from the laid-out unit. Neither the file nor the log contains the folder.
    fn make(&self, name: &str, symbols: Vec<String>, args: &[&str]) -> Result<Compilation, CudaCompileError> {
        let (succeeded, log) = self.run(&[&["-o", name], args].concat())?;
        if !succeeded {
            return Ok(Compilation { result: None, ptx: None, log });
        }
        let mut bytes = self.made(name)?;
        forget_folder(&mut bytes);
        Ok(Compilation { result: Some((bytes, symbols)), ptx: None, log: forgotten(log) })
    }

    fn made(&self, name: &str) -> Result<Vec<u8>, CudaCompileError> {
        fs::read(self.stage.path().join(name)).map_err(unavailable)
    }
}

fn unavailable(e: std::io::Error) -> CudaCompileError {
    CudaCompileError::Unavailable { why: format!("could not lay out the source: {e}") }
}

/// The root folder of the CUDA installation of an nvcc.
fn root(nvcc: &Path) -> Result<&Path, CudaCompileError> {
    let root = nvcc.parent().and_then(Path::parent);
    root.ok_or_else(|| CudaCompileError::Unavailable {
        why: format!("`{}` is not in a CUDA installation", nvcc.display()),
    })
}

fn forgotten(text: String) -> String {
    let mut bytes = text.into_bytes();
    forget_folder(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The tables of the entries' addresses, one line per entry: host-side and device-side.
fn tables(entries: &[String]) -> (String, String) {
    let line = format!("\n#line 1 \"{ENTRIES}\"\n");
    let (mut host, mut device) = (line.clone(), line);
    for (i, entry) in entries.iter().enumerate() {
        let address = addressed(entry);
        host +=
            &format!("extern \"C\" void* const kforge_keep_{i}; void* const kforge_keep_{i} = (void*)({address});\n");
        device += &format!("extern \"C\" __device__ decltype({address}) kforge_entry_{i} = {address};\n");
    }
    (host, device)
}

/// Overwrites the hash of the folder in symbols of anonymous namespaces and of static variables: eight hexadecimal digits after a marker.
fn forget_folder(bytes: &mut [u8]) {
    for marker in [&b"_GLOBAL__N__"[..], b"_INTERNAL_"] {
        let mut from = 0;
        while let Some(at) = bytes[from..].windows(marker.len()).position(|w| w == marker) {
            from += at + marker.len();
            if let Some([digits @ .., b'_']) = bytes.get_mut(from..from + 9)
                && digits.iter().all(u8::is_ascii_hexdigit)
            {
                digits.fill(b'0');
            }
        }
    }
}

/// The symbol whose address PTX gives to entry `i` of the table: `.global .align 8 .u64 kforge_entry_0 = _Z2plPff;`.
fn symbol(ptx: &str, i: usize) -> Option<String> {
    let name = format!("kforge_entry_{i} = ");
    let rest = ptx.split_once(&name)?.1;
    let symbol = rest.split_once(';')?.0.trim();
    Some(symbol.strip_prefix("generic(").and_then(|s| s.strip_suffix(')')).unwrap_or(symbol).to_string())
}

/// Assigns errors in the tables to entries: line 1 is the first entry.
fn blame(log: &str, params: &CompileParams) -> String {
    let about = |line: &str| {
        let rest = line.strip_prefix(ENTRIES)?.strip_prefix('(')?;
        let (number, said) = rest.split_once("): ")?;
        let entry = params.entries.get(number.parse::<usize>().ok()?.checked_sub(1)?)?;
        Some(format!("{}(1): {}", params.main, said.replacen("error: ", &format!("error: entry `{entry}`: "), 1)))
    };
    log.lines().map(|line| about(line).unwrap_or_else(|| line.to_string()) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::params::Compiler;

    fn params() -> CompileParams {
        CompileParams {
            compiler: Compiler::Nvcc,
            arch: "sm_90a".into(),
            main: "norms/main.cu".into(),
            entries: vec!["a".into(), "b<4>".into()],
            defines: Default::default(),
            std: "c++17".into(),
            include: vec![],
            flags: vec![],
            candidate: false,
            lined: false,
            ptx: false,
            host: None,
            triton: vec![],
        }
    }

    #[test]
    fn symbols_are_read_from_the_table() {
        let ptx = ".global .align 8 .u64 kforge_entry_0 = _ZN3ops3rowIfLi4EEEvPT_i;\n.global .align 8 .u64 kforge_entry_1 = generic(ec);\n";
        assert_eq!(symbol(ptx, 0).as_deref(), Some("_ZN3ops3rowIfLi4EEEvPT_i"));
        assert_eq!(symbol(ptx, 1).as_deref(), Some("ec"));
        assert_eq!(symbol(ptx, 2), None);
    }

    #[test]
    fn an_error_in_a_table_names_its_entry() {
        let log = "@entries(2): error: identifier \"b\" is undefined\n  extern\n";
        let expected = "norms/main.cu(1): error: entry `b<4>`: identifier \"b\" is undefined\n  extern\n";
        assert_eq!(blame(log, &params()), expected);
    }

    #[test]
    fn the_folders_hash_is_forgotten_and_nothing_else() {
        let mut bytes = *b"\0_ZN33_GLOBAL__N__6d405ee7_7_unit_cu_ek1qEPi\0_ZN31_INTERNAL_00f60a86_5_an_cu_q1xE\0_INTERNAL_notahash_\0_GLOBAL__N__6d";
        forget_folder(&mut bytes);
        let expected = b"\0_ZN33_GLOBAL__N__00000000_7_unit_cu_ek1qEPi\0_ZN31_INTERNAL_00000000_5_an_cu_q1xE\0_INTERNAL_notahash_\0_GLOBAL__N__6d";
        assert_eq!(&bytes, expected);
    }

    #[test]
    fn flags_that_have_a_place_of_their_own_are_refused() {
        for flag in ["-I/usr/include", "-arch=sm_80", "--std=c++20", "-o", "-ccbin=/bin/g++"] {
            let error =
                stage::flags(&CompileParams { flags: vec![flag.into()], ..params() }).map(<[String]>::len).unwrap_err();
            assert!(error.contains(flag), "{error}");
        }
        let fine =
            CompileParams { flags: vec!["--use_fast_math".into(), "-lineinfo".into(), "-DX=1".into()], ..params() };
        assert_eq!(stage::flags(&fine).unwrap().len(), 3);
    }
}
