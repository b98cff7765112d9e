//! Reports what this machine has and what that makes possible; what is missing, what that costs, and what to do about it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::session::devices::{ask, driver_is_there, folder};
use crate::session::known_devices;
use crate::session::needs::{CudaRequest, DEFAULT_CUDA, locked, needs_torch, wanted};
use crate::session::remote::RemoteState;
use crate::{Session, Worker};
use kforge_cuda::device::counters;
use kforge_cuda::device::facts::{DeviceFacts, Probed};
use kforge_engine::home::Home;
use kforge_harness::confine;
use kforge_pipeline::optimize::templates::TEMPLATES;
use kforge_project::toolchain::probe::{self, Probe};
use kforge_project::toolchain::torch::{TorchWheels, installed};
use kforge_project::toolchain::{Cuda, Nsight, python};
use kforge_project::workspace::{self, Workspace, find};
use kforge_types::model::TorchSpec;

/// Whether something is present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// It is present: a description for people.
    Found(String),
    /// It is missing: the reason, for people.
    Missing(String),
    /// It is absent, and nothing here needs it: the reason, for people.
    NotNeeded(String),
}

impl Presence {
    /// Whether it is missing.
    pub fn is_missing(&self) -> bool {
        matches!(self, Presence::Missing(_))
    }
}

impl<E: std::fmt::Display> From<Result<String, E>> for Presence {
    fn from(found: Result<String, E>) -> Self {
        found.map_or_else(|why| Presence::Missing(why.to_string()), Presence::Found)
    }
}

/// The result of looking for one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was looked for.
    pub what: &'static str,
    /// Whether it is present.
    pub found: Presence,
    /// What it makes possible.
    pub gives: &'static str,
    /// What is impossible without it.
    pub cost: &'static str,
    /// What to do if it is missing.
    pub mend: String,
}

impl From<Probe> for Finding {
    fn from(probe: Probe) -> Finding {
        let Probe { what, found, why, gives, cost, mend, of_cuda: _ } = probe;
        Finding { what, found: found.ok_or(why).into(), gives, cost, mend }
    }
}

/// The state of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// The findings, in order; the home comes first.
    pub findings: Vec<Finding>,
    /// Whether there is a current manifest, which decides the required toolchains.
    pub has_workspace: bool,
}

/// Examines this machine. A missing tool is not an error: reporting it is the purpose of this operation.
pub fn diagnose(session: &Session) -> Diagnosis {
    let mut findings = vec![];
    let manifest = session.options.manifest_path.as_ref().map(|p| session.cwd.join(p));
    let manifest = manifest.or_else(|| find::manifest_at(&session.cwd).ok());
    let workspace = manifest.as_ref().and_then(|manifest| workspace::load(manifest, &TEMPLATES).0);
    let home = &session.settings.home;
    let mut say = |finding: Finding| findings.push(finding);
    say(Finding {
        what: "kforge home",
        found: writable(home).map(|()| format!("{} can be written", home.display())).into(),
        gives: "results, toolchains and evidence of all workspaces are stored there",
        cost: "nothing can be built: caches and toolchains are stored there",
        mend: "make it writable, or set `KFORGE_HOME` to a writable folder".into(),
    });
    if let Some(state) = session.remote_state() {
        say(Finding {
            what: "remote cache",
            found: match state {
                RemoteState::Answers(what) => Presence::Found(what),
                RemoteState::Fails(why) => Presence::Missing(why),
            },
            gives: "results that other machines have stored are not computed again here",
            cost: "results that other machines have stored are computed again here",
            mend: "check `remote.url` and its credentials; `remote.mode = \"off\"` does not use it".into(),
        });
    }
    match (&manifest, &workspace) {
        (None, _) => {}
        (Some(manifest), None) => say(Finding {
            what: "workspace",
            found: Presence::Missing(format!("`{}` has errors", manifest.display())),
            gives: "",
            cost: "nothing in it can be built, and its toolchain is unknown",
            mend: "`kforge metadata` shows them".into(),
        }),
        (Some(_), Some(workspace)) => say(Finding {
            what: "workspace",
            found: Presence::Found(workspace.root.display().to_string()),
            gives: "",
            cost: "",
            mend: String::new(),
        }),
    }
    let cuda = workspace.as_ref().and_then(|w| cuda_of(session, w));
    let (cxx, python) = (session.settings.path("toolchain.cxx"), session.settings.path("toolchain.python"));
    let environment = session.environment.all();
    let probes = probe::probe(cxx.as_deref(), python.as_deref(), cuda.as_ref(), &home.join("toolchains"), environment);
    for probe in probes {
        // A workspace with errors may need them.
        let asked = manifest.is_some() || !probe.of_cuda;
        let mut line = Finding::from(probe);
        if line.found.is_missing() && !asked {
            line.found = Presence::NotNeeded("no workspace is open here".into());
        }
        say(line);
    }
    if let Some(workspace) = &workspace {
        torches(session, workspace, &home.join("toolchains")).into_iter().for_each(&mut say);
    }
    let probed =
        driver_is_there().then(|| ask(&session.environment, session.worker.program(), &AtomicBool::new(false)));
    // The next build asks the driver as well, so that it does not disagree.
    known_devices::forget(&folder(home));
    let gpu = described(probed.as_ref(), probe::driver(), Path::new("/proc/driver/nvidia/gpus"));
    let has_gpu = gpu.is_ok();
    say(Finding {
        what: "GPU",
        found: gpu.into(),
        gives: "kernels for its architecture are verified and timed on this machine",
        cost: "nothing is verified, timed or profiled on a GPU here: verdicts come from the emulator, and times from evidence recorded elsewhere",
        mend: "build on a machine with a GPU, `kforge evidence export` there, and put the bundle into `evidence/` beside kernel.toml".into(),
    });
    let nsight = |tool: Nsight| session.settings.path(tool.setting());
    if has_gpu {
        probe::beside_a_gpu(session.environment.path(), &nsight).into_iter().map(Finding::from).for_each(&mut say);
    }
    let ncu = Nsight::Compute.find(nsight(Nsight::Compute).as_deref(), session.environment.path());
    // Without a device or a profiler there is nothing to query, and both were already reported as missing. The profiler runs this program as a worker, so the
    // query needs a program that is its own worker.
    let asks = matches!(session.worker, Worker::Own(_));
    if let (true, Some(probed), Ok(ncu)) = (asks, probed.as_ref().filter(|p| !p.devices.is_empty()), ncu) {
        say(Finding {
            what: "performance counters",
            found: counters(&ncu, probed).map(|()| "may be read".to_string()).into(),
            gives: "kforge reports what bounds a kernel",
            cost: "kernels are not profiled: kforge reports what bounds them from times only",
            mend: "an administrator must allow it: NVIDIA's driver option `NVreg_RestrictProfilingToAdminUsers=0`"
                .into(),
        });
    }
    let gaps = confine::missing_here();
    let sandbox = |found, cost, mend: &str| Finding {
        what: "sandbox",
        found,
        gives: "compilers, references and kernels run without network, and write nothing outside their scratch folders",
        cost,
        mend: mend.into(),
    };
    if gaps.missing.is_empty() && gaps.weaker.is_empty() {
        say(sandbox(Presence::Found("Landlock, seccomp, limits on time and memory".into()), "", ""));
    }
    let trust = "build on a system that has it, or pass --allow-unconfined and build only what you trust";
    for gap in gaps.missing {
        say(sandbox(Presence::Missing(gap), "nothing is compiled or run here without --allow-unconfined", trust));
    }
    for gap in gaps.weaker {
        say(sandbox(
            Presence::Missing(gap),
            "compilers and references are less confined; kernels are fully confined",
            "",
        ));
    }
    Diagnosis { findings, has_workspace: manifest.is_some() }
}

/// Whether the home can be created and written.
fn writable(home: &Path) -> Result<(), String> {
    let fail = |e: std::io::Error| format!("`{}` cannot be written: {e}", home.display());
    let home = Home::open(home).map_err(fail)?;
    tempfile::tempfile_in(home.tmp()).map(drop).map_err(fail)
}

/// The CUDA of the first package with a device target, if it is locked or installed.
fn cuda_of(session: &Session, workspace: &Workspace) -> Option<Cuda> {
    let on_device =
        workspace.members.iter().find(|m| m.package.targets.values().any(|t| t.arch != kforge_types::model::Arch::Cpu));
    let Some(member) = on_device else { return locked(&workspace.lock.wheels, DEFAULT_CUDA) };
    match wanted(&member.package, &member.folder, session.environment.all()) {
        CudaRequest::Release(release) => locked(&workspace.lock.wheels, &release),
        CudaRequest::Local(cuda) => cuda.ok(),
    }
}

/// The releases of PyTorch that packages ask for. The PyTorch of this machine is not imported here, because that takes seconds.
fn torches(session: &Session, workspace: &Workspace, toolchains: &Path) -> Vec<Finding> {
    let members = workspace.members.iter().filter(|member| needs_torch(&member.package));
    let releases: BTreeSet<(&str, bool)> = members
        .filter_map(|member| match &member.package.toolchain.torch {
            Some(TorchSpec::Release { release, cuda }) => Some((release.as_str(), *cuda)),
            Some(TorchSpec::System) | None => None,
        })
        .collect();
    let (named, path) = (session.settings.path("toolchain.python"), session.environment.path());
    let one = |(release, cuda): (&str, bool)| {
        let called = TorchSpec::described(release, cuda);
        let found = match TorchWheels::locked(&workspace.lock.wheels, release, cuda) {
            None => Err((
                format!("kforge.lock names no wheels for PyTorch {called}"),
                "run `kforge fetch`: it locks and installs them",
            )),
            Some(wheels) => match python::find(named.as_deref(), path).and_then(|python| wheels.for_python(&python)) {
                Err(why) => Err((why.to_string(), "set another Python with the setting `toolchain.python`")),
                Ok(set) => installed(&set, toolchains).ok_or_else(|| {
                    let size = bytes(set.wheels.iter().map(|wheel| wheel.digest.size).sum());
                    let mend = "run `kforge fetch` to install it; the first step that needs it also installs it";
                    (format!("PyTorch {called} is not installed yet ({size} to download)"), mend)
                }),
            },
        };
        let (found, mend) = match found {
            Ok(folder) => (Presence::Found(format!("{called} in {}", folder.display())), ""),
            Err((why, mend)) => (Presence::Missing(why), mend),
        };
        Finding {
            what: "PyTorch",
            found,
            gives: if cuda {
                "references in PyTorch give expected values, and kernels in PyTorch and baselines run on a GPU"
            } else {
                "references in PyTorch give expected values"
            },
            cost: "what is written in PyTorch is unknown",
            mend: mend.into(),
        }
    };
    releases.into_iter().map(one).collect()
}

/// A size in decimal units, as package indexes state it.
fn bytes(size: u64) -> String {
    if size < 1_000_000_000 { format!("{} MB", size / 1_000_000) } else { format!("{:.1} GB", size as f64 / 1e9) }
}

/// The GPUs as the probe describes them, or why none can be used. `driver` is the driver's name for itself, if one is loaded.
fn described(probed: Option<&Probed>, driver: Option<String>, folder: &Path) -> Result<String, String> {
    let shown = shown(folder).join(", ");
    let Some(probed) = probed else {
        return Err(match (driver, shown.is_empty()) {
            (None, _) => "no NVIDIA driver is loaded".into(),
            (Some(driver), true) => format!("the driver shows none ({driver})"),
            (Some(_), false) => format!("{shown} cannot be opened"),
        });
    };
    let one = |d: &DeviceFacts| {
        let peaks = d.peaks();
        format!(
            "{} ({} processors at {} MHz, {} GiB at {:.1} TB/s, {} MiB of L2)",
            d.class(),
            d.processors,
            d.clock_mhz,
            d.memory >> 30,
            peaks.memory_bytes_ns / 1e3,
            d.l2 >> 20
        )
    };
    match (&probed.devices[..], &probed.why) {
        ([], why) => {
            let why = why.clone().unwrap_or_else(|| "the driver shows none".into());
            Err(if shown.is_empty() { why } else { format!("{shown} cannot be used: {why}") })
        }
        (devices, _) => Ok(devices.iter().map(one).collect::<Vec<_>>().join("; ")),
    }
}

/// The GPUs that the driver lists, one folder each.
fn shown(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|e| std::fs::read_to_string(e.path().join("information")).ok())
        .filter_map(|text| text.lines().find_map(|l| l.strip_prefix("Model:")).map(|m| m.trim().to_string()))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_cuda::device::testing::h200;

    #[test]
    fn devices_are_described_as_the_probe_saw_them_or_named_as_the_driver_names_them() {
        let dir = tempfile::tempdir().unwrap();
        let driver = || Some("a driver".to_string());
        let why = |probed: Option<&Probed>| described(probed, driver(), dir.path()).unwrap_err();
        assert_eq!(why(None), "the driver shows none (a driver)");
        assert_eq!(described(None, None, dir.path()).unwrap_err(), "no NVIDIA driver is loaded");
        let gpu = dir.path().join("0000:01:00.0");
        std::fs::create_dir(&gpu).unwrap();
        std::fs::write(gpu.join("information"), "Model: \t\t NVIDIA H200\nIRQ:   7\n").unwrap();
        let refused = Probed { why: Some("CUDA_ERROR_SYSTEM_NOT_READY".into()), ..Probed::default() };
        assert_eq!(why(Some(&refused)), "NVIDIA H200 cannot be used: CUDA_ERROR_SYSTEM_NOT_READY");
        let probed = Probed { devices: vec![h200()], ..Probed::default() };
        assert_eq!(
            described(Some(&probed), driver(), dir.path()),
            Ok("NVIDIA H200 (sm_90, driver 580) (132 processors at 1980 MHz, 141 GiB at 4.9 TB/s, 60 MiB of L2)"
                .into())
        );
    }
}
