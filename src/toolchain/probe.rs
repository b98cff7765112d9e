//! What this machine has, for `kforge doctor`. Knows what each missing tool costs; prints nothing and installs nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Cuda, Group, Nsight, Pip, cxx, python};

/// One thing that was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// What: `C++ compiler`.
    pub what: &'static str,
    /// What was found, with version and place.
    pub found: Option<String>,
    /// Why it was not found, or what is wrong with it; empty where nothing more is to be said.
    pub why: String,
    /// What its absence costs.
    pub cost: &'static str,
}

/// Looks for every tool that kforge can use. `cuda` is the toolchain of the workspace, if it has one that is locked or installed; `toolchains` is where
/// wheels are installed; `nsight_named` says which of NVIDIA's tools the user names.
pub fn probe(
    cxx_named: Option<&Path>,
    python_named: Option<&Path>,
    cuda: Option<&Cuda>,
    toolchains: &Path,
    environment: &BTreeMap<String, String>,
    nsight_named: &dyn Fn(Nsight) -> Option<PathBuf>,
) -> Vec<Probe> {
    let path_var = environment.get("PATH").map_or("", String::as_str);
    let python = python::find(python_named, path_var);
    let interpreter = python.as_ref().ok().map(|p| p.path.clone());
    let (cxx_cost, python_cost) = (
        "the `cpu` target cannot be built, so nothing can be verified without a GPU",
        "references in Python cannot run",
    );
    let numpy = python.as_ref().map_err(Clone::clone).and_then(|p| {
        let numpy = p.numpy.as_ref().ok_or_else(|| format!("`{}` cannot import it", p.path.display()))?;
        Ok(format!("{} for {}", numpy.version, p.path.display()))
    });
    let mut probes = vec![
        answer(
            "C++ compiler",
            cxx::find(cxx_named, path_var).map(|c| format!("{} at {}", c.version, c.path.display())),
            cxx_cost,
        ),
        answer("Python", python.map(|p| format!("{} at {}", p.version, p.path.display())), python_cost),
        answer("numpy", numpy, python_cost),
        answer(
            "pip or uv",
            Pip::find(interpreter.as_deref(), environment).map(|p| format!("pip {}", p.version)),
            "pinned toolchains cannot be resolved or installed",
        ),
    ];
    for (group, what, cost) in [
        (Group::Compile, "CUDA compiler (NVRTC)", "targets `sm_*` cannot be compiled until it is fetched"),
        (Group::Nvcc, "CUDA compiler (nvcc)", "kernels that need host headers cannot be compiled until it is fetched"),
        (
            Group::Disassemble,
            "CUDA disassembler (nvdisasm)",
            "methods cannot be seen in machine code until it is fetched",
        ),
    ] {
        let found = match cuda.map(|c| c.installed(group, toolchains)) {
            None => Err("the workspace names no CUDA that is locked or installed".to_string()),
            Some(Ok(None)) => {
                Err("not installed yet: `kforge fetch` installs it, as does the first step that needs it".into())
            }
            Some(Ok(Some(installed))) => {
                let tools: Vec<String> = installed.tools.values().map(|p| p.display().to_string()).collect();
                Ok(tools.join(", "))
            }
            Some(Err(why)) => Err(why),
        };
        probes.push(answer(what, found, cost));
    }
    let driver =
        std::fs::read_to_string("/proc/driver/nvidia/version").map_err(|_| "no NVIDIA driver is loaded".to_string());
    probes.push(answer(
        "NVIDIA driver",
        driver
            .map(|text| text.lines().next().unwrap_or_default().trim_start_matches("NVRM version:").trim().to_string()),
        "nothing can be verified, timed or profiled on a GPU here; evidence recorded elsewhere is used",
    ));
    for (tool, cost) in [
        (Nsight::Compute, "kernels are not profiled: what bounds them is told from times alone"),
        (Nsight::Sanitizer, "kernels that declare `verify.sanitize` cannot be verified on a GPU here"),
    ] {
        let found = tool.find(nsight_named(tool).as_deref(), path_var).map(|path| {
            let version = tool.version(&path, path_var).unwrap_or_else(|why| why);
            format!("{version} at {}", path.display())
        });
        probes.push(answer(tool.name(), found, cost));
    }
    probes
}

fn answer(what: &'static str, found: Result<String, String>, cost: &'static str) -> Probe {
    match found {
        Ok(found) => Probe { what, found: Some(found), why: String::new(), cost },
        Err(why) => Probe { what, found: None, why, cost },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_machine_lacks_everything_and_says_what_that_costs() {
        let environment = [("PATH".to_string(), "/nowhere".to_string())].into();
        let probes = probe(None, None, None, Path::new("/nowhere"), &environment, &|_| None);
        let lacking: Vec<&str> = probes.iter().filter(|p| p.found.is_none()).map(|p| p.what).collect();
        for what in ["C++ compiler", "Python", "numpy", "pip or uv", "CUDA compiler (NVRTC)"] {
            assert!(lacking.contains(&what), "{what} in {lacking:?}");
        }
        assert!(probes.iter().all(|p| !p.cost.is_empty() && (p.found.is_some() || !p.why.is_empty())));
    }

    #[test]
    fn a_compiler_on_path_is_found_with_its_version() {
        let environment = [("PATH".to_string(), "/usr/local/bin:/usr/bin:/bin".to_string())].into();
        let probes = probe(None, None, None, Path::new("/nowhere"), &environment, &|_| None);
        let compiler = probes.iter().find(|p| p.what == "C++ compiler").unwrap();
        assert!(compiler.found.as_ref().is_some_and(|f| f.contains(" at /")), "{compiler:?}");
    }
}
