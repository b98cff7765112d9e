//! Compiles with nvcc, as a child process. Knows its options; does not know when it is asked for.
//!
//! Two runs. The first makes PTX of the source with a table of the entries' addresses behind it, which spells the symbol of each entry exactly,
//! whatever its templates and namespaces. The second makes the cubin, with a host-side table of the same addresses that instantiates templates and
//! leaves nothing in device code. Both see the source by relative names in a folder of their own and an environment of two variables.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::compile::CudaCompileError;
use super::load::Made;
use super::stage::{self, Stage};
use crate::record::params::CompileParams;

/// Where nvcc's own tools find the host's: the compiler runs its preprocessor and nothing else.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Names of generated files; they enter no output.
const NAMES: &str = "kforge_names.cu";
const UNIT: &str = "kforge_unit.cu";

/// Compiles; the log is that of the second run, or of the first if it failed.
pub(super) fn compile(
    params: &CompileParams,
    source: &Path,
    nvcc: &Path,
    cxx: &Path,
    scratch: &Path,
) -> Result<Made, CudaCompileError> {
    let unavailable =
        |e: std::io::Error| CudaCompileError::Unavailable { why: format!("could not lay out the source: {e}") };
    stage::main_file(params, source).map_err(CudaCompileError::failed)?;
    let include = nvcc
        .parent()
        .and_then(Path::parent)
        .map(|root| root.join("include"))
        .ok_or_else(|| CudaCompileError::Unavailable { why: format!("`{}` is not in a CUDA", nvcc.display()) })?;
    let stage = Stage::new(source, &include, None, scratch).map_err(unavailable)?;
    let temporary = stage.path().join("@tmp");
    fs::create_dir(&temporary).map_err(unavailable)?;
    let (mut names, mut unit) = (format!("#include \"{}\"\n", params.main), format!("#include \"{}\"\n", params.main));
    for (i, entry) in params.entries.iter().enumerate() {
        let address = format!("&{}", entry.trim_start_matches(['&', ' ']));
        names += &format!("extern \"C\" __device__ decltype({address}) kforge_entry_{i} = {address};\n");
        unit +=
            &format!("extern \"C\" void* const kforge_keep_{i};\nvoid* const kforge_keep_{i} = (void*)({address});\n");
    }
    fs::write(stage.path().join(NAMES), names).map_err(unavailable)?;
    fs::write(stage.path().join(UNIT), unit).map_err(unavailable)?;

    let run = |args: &[&str]| -> Result<(bool, String), CudaCompileError> {
        let output = Command::new(nvcc)
            .args(args)
            .arg(format!("-arch={}", params.arch))
            .arg(format!("-std={}", params.std))
            .arg("-ccbin")
            .arg(cxx)
            .args(stage::defines(params))
            .args(Stage::own_includes(params).iter().map(|folder| format!("-I{folder}")))
            .args(stage.cuda_includes().iter().map(|folder| format!("-isystem={folder}")))
            .args(stage::flags(params).map_err(CudaCompileError::failed)?)
            .current_dir(stage.path())
            .env_clear()
            .env("PATH", PATH)
            .env("TMPDIR", &temporary)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| CudaCompileError::Unavailable { why: format!("could not run `{}`: {e}", nvcc.display()) })?;
        let text = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&text).replace(&*stage.path().to_string_lossy(), ".")))
    };
    let (named, log) = run(&["-ptx", "-o", "@names.ptx", NAMES])?;
    if !named {
        return Ok(Made { result: None, log: blame(&log, params) });
    }
    let ptx = fs::read_to_string(stage.path().join("@names.ptx")).map_err(unavailable)?;
    let symbols: Option<Vec<String>> = (0..params.entries.len()).map(|i| symbol(&ptx, i)).collect();
    let symbols = symbols.ok_or_else(|| CudaCompileError::Failed {
        message: format!("nvcc does not say the symbols of the entries of `{}`", params.main),
        log: log.clone(),
    })?;
    let (made, log) = run(&["-cubin", "-Xptxas=-v", "-o", "@unit.cubin", UNIT])?;
    let log = blame(&log, params);
    if !made {
        return Ok(Made { result: None, log });
    }
    let cubin = fs::read(stage.path().join("@unit.cubin")).map_err(unavailable)?;
    Ok(Made { result: Some((cubin, symbols)), log })
}

/// The symbol whose address PTX gives to the table's entry `i`: `.global .align 8 .u64 kforge_entry_0 = _Z2plPff;`.
fn symbol(ptx: &str, i: usize) -> Option<String> {
    let name = format!("kforge_entry_{i} = ");
    let rest = ptx.split_once(&name)?.1;
    let symbol = rest.split_once(';')?.0.trim();
    Some(symbol.strip_prefix("generic(").and_then(|s| s.strip_suffix(')')).unwrap_or(symbol).to_string())
}

/// Errors in the generated lines are about an entry: line 2 of the table is the first.
fn blame(log: &str, params: &CompileParams) -> String {
    let about = |line: &str, file: &str, per_entry: usize| {
        let rest = line.strip_prefix(file)?.strip_prefix('(')?;
        let (number, said) = rest.split_once("): ")?;
        let entry = params.entries.get(number.parse::<usize>().ok()?.checked_sub(2)? / per_entry)?;
        Some(said.replacen("error: ", &format!("error: entry `{entry}`: "), 1))
    };
    let lines = log.lines().map(|line| {
        let said = about(line, NAMES, 1).or_else(|| about(line, UNIT, 2));
        said.map_or_else(|| line.to_string(), |said| format!("{}(1): {said}", params.main))
    });
    lines.map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::params::Compiler;

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
    fn an_error_in_a_generated_line_names_its_entry() {
        let log = "kforge_names.cu(3): error: identifier \"b\" is undefined\n";
        assert_eq!(blame(log, &params()), "norms/main.cu(1): error: entry `b<4>`: identifier \"b\" is undefined\n");
        let log = "kforge_unit.cu(5): error: identifier \"b\" is undefined\n";
        assert!(blame(log, &params()).contains("entry `b<4>`"));
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
