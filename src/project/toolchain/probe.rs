//! Probes the tools of this machine for `kforge doctor`. Knows what each tool makes possible, what its absence costs and how to get it; prints nothing and
//! installs nothing.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use super::cxx::Family;
use super::{Cuda, Group, Nsight, Pip, cxx, python};

/// The result of looking for one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The kind of tool: `C++ compiler`.
    pub what: &'static str,
    /// Whether the tool comes from the workspace's CUDA toolkit.
    pub of_cuda: bool,
    /// The version and path of the tool, if it was found.
    pub found: Option<String>,
    /// Why the tool was not found, or what is wrong with it; empty if there is nothing more to say.
    pub why: String,
    /// What the tool makes possible.
    pub gives: &'static str,
    /// What the absence of the tool costs.
    pub cost: &'static str,
    /// What to do if the tool is missing or unusable.
    pub mend: String,
}

/// Looks for every tool that kforge can use without a GPU, including CUDA compilers. `cuda` is the CUDA of the workspace, if it is locked or installed;
/// `toolchains` is the folder in which wheels are installed.
pub fn probe(
    cxx_named: Option<&Path>,
    python_named: Option<&Path>,
    cuda: Option<&Cuda>,
    toolchains: &Path,
    environment: &BTreeMap<String, String>,
) -> Vec<Probe> {
    let path_var = environment.get("PATH").map_or("", String::as_str);
    let python = python::find(python_named, path_var);
    let interpreter = python.as_ref().ok().map(|p| p.path.clone());
    let install_numpy = match &interpreter {
        Some(path) => {
            format!(
                "`{} -m pip install numpy`, or set another Python with the setting `toolchain.python`",
                path.display()
            )
        }
        None => "install Python 3 with numpy".into(),
    };
    let numpy = python.as_ref().map_err(ToString::to_string).and_then(|p| {
        let numpy = p.numpy.as_ref().ok_or_else(|| format!("`{}` cannot import it", p.path.display()))?;
        Ok(format!("{} for {}", numpy.version, p.path.display()))
    });
    let python_gives = python_gives(numpy.is_ok());
    let mut probes = vec![
        Probe {
            gives: "kforge emulates and verifies kernels on the target `cpu`",
            cost: "the target `cpu` cannot be built, so nothing is verified without a GPU",
            mend: format!(
                "install {} {} or later (for example `apt install g++`) or {} {} or later, or set its path with the setting `toolchain.cxx`",
                Family::Gnu.name(),
                Family::Gnu.least(),
                Family::Clang.name(),
                Family::Clang.least()
            ),
            ..answer(
                "C++ compiler",
                cxx::find(cxx_named, path_var).map(|c| format!("{} at {}", c.version, c.path.display())),
            )
        },
        Probe {
            gives: python_gives,
            cost: "references and checks in Python cannot run",
            mend: "install Python 3, or set its path with the setting `toolchain.python`".into(),
            ..answer("Python", python.map(|p| format!("{} at {}", p.version, p.path.display())))
        },
        Probe {
            gives: "kforge runs references and checks in Python",
            cost: "references and checks in Python cannot run; built-in and C++ references can",
            mend: install_numpy,
            ..answer("numpy", numpy)
        },
        Probe {
            gives: "kforge locks and installs CUDA compilers and header libraries",
            cost: "CUDA compilers and header libraries that are not installed yet cannot be installed",
            mend: "install pip or uv, or set `toolchain.cuda` in kernel.toml to an installed CUDA".into(),
            ..answer("pip or uv", Pip::find(interpreter.as_deref(), environment).map(|p| format!("pip {}", p.version)))
        },
    ];
    for (group, what, gives, cost) in [
        (
            Group::Compile,
            "CUDA compiler (NVRTC)",
            "kforge compiles for targets `sm_*`, even without a GPU",
            "kforge cannot compile for targets `sm_*` until it is installed",
        ),
        (
            Group::Nvcc,
            "CUDA compiler (nvcc)",
            "kforge also compiles kernels that need host headers or contain host code",
            "kernels that need host headers or contain host code cannot be compiled for `sm_*` until it is installed",
        ),
        (
            Group::Disassemble,
            "CUDA disassembler",
            "kforge inspects machine code: spills, opcodes, and whether it shows a declared method",
            "whether machine code shows a method is unknown until it is installed",
        ),
        (
            Group::Fatbin,
            "fatbinary",
            "kforge packs fatbins for targets with `fatbin = true`",
            "targets with `fatbin = true` get no fatbins until it is installed",
        ),
    ] {
        // fatbinary comes with nvcc.
        let flag = if matches!(group, Group::Nvcc | Group::Fatbin) { " --nvcc" } else { "" };
        let (found, mend) = match cuda.map(|c| c.installed(group, toolchains)) {
            None => (
                Err("the workspace has no CUDA that is locked or installed".to_string()),
                "add a target with the `arch` of a GPU; the next build locks and installs a CUDA".into(),
            ),
            Some(Ok(None)) => (
                Err("not installed yet".into()),
                format!("run `kforge fetch{flag}` to install it; the first step that needs it also installs it"),
            ),
            Some(Ok(Some(installed))) => (Ok(place_of(installed.tools.values())), String::new()),
            Some(Err(why)) => (Err(why.to_string()), "set another CUDA with `toolchain.cuda` in kernel.toml".into()),
        };
        probes.push(Probe { of_cuda: true, gives, cost, mend, ..answer(what, found) });
    }
    probes
}

/// The driver of this machine's GPUs, as it names itself; none if no driver is loaded.
pub fn driver() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    Some(text.lines().next().unwrap_or_default().trim_start_matches("NVRM version:").trim().to_string())
}

/// NVIDIA's tools that run a program under their control, which are useful only on a machine with a GPU.
pub fn beside_a_gpu(path_var: &str, named: &dyn Fn(Nsight) -> Option<PathBuf>) -> Vec<Probe> {
    let mut probes = vec![];
    for (tool, gives, cost) in [
        (
            Nsight::Compute,
            "kforge profiles kernels and reports what bounds them from counters",
            "kforge does not profile kernels and reports what bounds them only from times",
        ),
        (
            Nsight::Sanitizer,
            "kforge runs kernels that declare `verify.sanitize` under it",
            "kernels that declare `verify.sanitize` cannot be verified on a GPU here",
        ),
    ] {
        let found = tool.find(named(tool).as_deref(), path_var).map(|path| {
            let version = tool.version(&path, path_var).unwrap_or_else(|why| why.to_string());
            format!("{version} at {}", path.display())
        });
        let mend = format!("install it (it is part of a CUDA toolkit), or set its path with `{}`", tool.setting());
        probes.push(Probe { gives, cost, mend, ..answer(tool.name(), found) });
    }
    probes
}

/// The folder that all tools share, which is shown instead of each tool's file.
fn place_of<'p>(tools: impl Iterator<Item = &'p PathBuf>) -> String {
    let mut tools = tools.map(PathBuf::as_path);
    let Some(first) = tools.next() else { return "installed".into() };
    let common = tools.fold(first, |common, tool| {
        common.ancestors().find(|folder| tool.starts_with(folder)).unwrap_or(Path::new("/"))
    });
    common.display().to_string()
}

fn answer(what: &'static str, found: Result<String, impl Display>) -> Probe {
    let (found, why) = match found {
        Ok(found) => (Some(found), String::new()),
        Err(why) => (None, why.to_string()),
    };
    Probe { what, of_cuda: false, found, why, gives: "", cost: "", mend: String::new() }
}

/// What a Python makes possible, with and without numpy.
fn python_gives(has_numpy: bool) -> &'static str {
    match has_numpy {
        true => "kforge runs references and checks in Python with it",
        false => "references and checks in Python need numpy, which it lacks",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_machine_lacks_everything_and_says_what_that_costs() {
        let environment = [("PATH".to_string(), "/nowhere".to_string())].into();
        let probes = probe(None, None, None, Path::new("/nowhere"), &environment);
        let probes = [probes, beside_a_gpu("/nowhere", &|_| Some("/nowhere".into()))].concat();
        let lacking: Vec<&str> = probes.iter().filter(|p| p.found.is_none()).map(|p| p.what).collect();
        for what in ["C++ compiler", "Python", "numpy", "pip or uv", "CUDA compiler (NVRTC)"] {
            assert!(lacking.contains(&what), "{what} in {lacking:?}");
        }
        assert!(lacking.contains(&"Nsight Compute") && lacking.contains(&"Compute Sanitizer"), "{lacking:?}");
        assert!(probes.iter().all(|p| !p.cost.is_empty() && !p.gives.is_empty()), "{probes:#?}");
        let told = |p: &Probe| p.found.is_some() || !(p.why.is_empty() || p.mend.is_empty());
        assert!(probes.iter().all(told), "what is missing says why and what to do: {probes:#?}");
    }

    #[test]
    fn tools_of_one_toolchain_are_told_by_the_folder_that_holds_them() {
        let of = |paths: &[&str]| place_of(paths.iter().map(PathBuf::from).collect::<Vec<_>>().iter());
        assert_eq!(of(&["/t/cu/include", "/t/cu/lib/a.so", "/t/cu/lib/b.so"]), "/t/cu");
        assert_eq!((of(&["/t/cu/bin/nvdisasm"]), of(&[])), ("/t/cu/bin/nvdisasm".into(), "installed".into()));
    }

    #[test]
    fn a_compiler_on_path_is_found_with_its_version() {
        let environment = [("PATH".to_string(), "/usr/local/bin:/usr/bin:/bin".to_string())].into();
        let probes = probe(None, None, None, Path::new("/nowhere"), &environment);
        let compiler = probes.iter().find(|p| p.what == "C++ compiler").unwrap();
        assert!(compiler.found.as_ref().is_some_and(|f| f.contains(" at /")), "{compiler:?}");
    }
}
