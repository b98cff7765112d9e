//! `kforge doctor`: what is on this machine, what is missing, and what that costs. Always ends well: to say what is missing is what was asked.

use std::path::Path;

use anstyle::{AnsiColor, Style};

use crate::cli::exit::Exit;
use crate::cli::session::Context;
use crate::cli::session::devices::{ask, driver_is_there};
use crate::cli::session::tools::{DEFAULT_CUDA, Wanted, locked, wanted};
use crate::engine::home::Home;
use crate::optimize::templates::TEMPLATES;
use crate::toolchain::{Cuda, Nsight, probe};
use crate::worker::confine;
use crate::worker::cuda::device::counters;
use crate::worker::cuda::device::facts::{DeviceFacts, Probed};
use crate::workspace::{self, Workspace, find};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const OPEN: Style = AnsiColor::Yellow.on_default().bold();
const DIM: Style = Style::new().dimmed();

/// Runs the command.
pub fn run(context: &Context) -> Result<Exit, Exit> {
    let manifest = context.global.manifest_path.as_ref().map(|p| context.cwd.join(p));
    let manifest = manifest.or_else(|| find::manifest_at(&context.cwd).ok());
    let workspace = manifest.as_ref().and_then(|manifest| workspace::load(manifest, &TEMPLATES).0);
    let home = &context.settings.home;
    let mut missing = 0;
    let mut line = |what: &str, found: Result<String, (String, &str)>| {
        let text = match found {
            Ok(found) => format!("{GOOD}     found{GOOD:#} {what}: {found}\n"),
            Err((why, cost)) => {
                missing += 1;
                format!("{OPEN}   missing{OPEN:#} {what}: {why}\n           {DIM}so {cost}{DIM:#}\n")
            }
        };
        context.console.out_fitted(&text);
    };
    let written = writable(home).map(|()| format!("{} can be written", home.display()));
    line("kforge home", written.map_err(|why| (why, "nothing can be built: caches and toolchains live there")));
    match (&manifest, &workspace) {
        (None, _) => {
            context.console.out(&format!("{DIM}there is no workspace here, so no toolchain is asked for{DIM:#}\n"))
        }
        (Some(manifest), None) => {
            let why = format!("`{}` has errors; `kforge metadata` shows them", manifest.display());
            line("workspace", Err((why, "nothing in it can be built, and what toolchain it asks for is not known")));
        }
        (Some(_), Some(workspace)) => line("workspace", Ok(workspace.root.display().to_string())),
    }
    let cuda = workspace.as_ref().and_then(|w| cuda_of(context, w));
    let (cxx, python) = (context.settings.path("toolchain.cxx"), context.settings.path("toolchain.python"));
    let toolchains = home.join("toolchains");
    let nsight = |tool: Nsight| context.settings.path(tool.setting());
    let environment = context.environment.all();
    let probes = probe::probe(cxx.as_deref(), python.as_deref(), cuda.as_ref(), &toolchains, environment, &nsight);
    for probe in probes {
        let asked = cuda.is_some() || workspace.is_some() || !probe.what.starts_with("CUDA");
        let why = if asked { probe.why } else { "no workspace here asks for one".to_string() };
        line(probe.what, probe.found.ok_or((why, probe.cost)));
    }
    let probed = driver_is_there().then(|| ask(&context.environment));
    line("GPU", described(probed.as_ref(), Path::new("/proc/driver/nvidia/gpus")));
    let ncu = Nsight::Compute.find(nsight(Nsight::Compute).as_deref(), context.environment.path());
    // Without a device or a profiler there is nothing to ask, and both were said to be missing.
    if let (Some(probed), Ok(ncu)) = (probed.as_ref().filter(|p| !p.devices.is_empty()), ncu) {
        let cost = "kernels are not profiled: what bounds them is told from times alone";
        let may = counters(&ncu, probed).map(|()| "may be read".to_string());
        line("performance counters", may.map_err(|why| (why, cost)));
    }
    let gaps = confine::missing_here();
    if gaps.missing.is_empty() && gaps.weaker.is_empty() {
        line("sandbox", Ok("no network, no writes outside the scratch folder, limits on time and memory".into()));
    }
    for gap in gaps.missing {
        line(
            "sandbox",
            Err((
                gap,
                "nothing is compiled or run here unless --allow-unconfined is given: then build only what you trust",
            )),
        );
    }
    for gap in gaps.weaker {
        line("sandbox", Err((gap, "compilers and references are confined less; kernels are not")));
    }
    let text = match missing {
        0 => "nothing is missing".to_string(),
        1 => "one thing is missing; what does not need it works".into(),
        n => format!("{n} things are missing; what needs none of them works"),
    };
    context.console.out(&format!("{text}\n"));
    Ok(Exit::Done)
}

/// Whether the home can be made and written.
fn writable(home: &Path) -> Result<(), String> {
    let fail = |e: std::io::Error| {
        format!("`{}` cannot be written: {e}; set KFORGE_HOME to a folder that can", home.display())
    };
    let home = Home::open(home).map_err(fail)?;
    tempfile::tempfile_in(home.tmp()).map(drop).map_err(fail)
}

/// The CUDA that the first package with a device target asks for, if it is locked or a folder.
fn cuda_of(context: &Context, workspace: &Workspace) -> Option<Cuda> {
    let on_device =
        workspace.members.iter().find(|m| m.package.targets.values().any(|t| t.arch != crate::model::Arch::Cpu));
    let Some(member) = on_device else { return locked(&workspace.lock.wheels, DEFAULT_CUDA) };
    match wanted(&member.package, &member.folder, context.environment.all()) {
        Wanted::Release(release) => locked(&workspace.lock.wheels, &release),
        Wanted::Local(cuda) => cuda.ok(),
    }
}

/// The GPUs: as the probe describes them, or why there is none that can be used.
fn described(probed: Option<&Probed>, folder: &Path) -> Result<String, (String, &'static str)> {
    let cost = "verdicts come from the emulator, and times from evidence recorded elsewhere";
    let shown = shown(folder).join(", ");
    let Some(probed) = probed else {
        let why = if shown.is_empty() { "the driver shows none".into() } else { format!("{shown} cannot be opened") };
        return Err((why, cost));
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
            Err((if shown.is_empty() { why } else { format!("{shown} cannot be used: {why}") }, cost))
        }
        (devices, _) => Ok(devices.iter().map(one).collect::<Vec<_>>().join("; ")),
    }
}

/// The GPUs that the driver shows, one folder each.
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

    #[test]
    fn devices_are_described_as_the_probe_saw_them_or_named_as_the_driver_names_them() {
        let dir = tempfile::tempdir().unwrap();
        let why = |probed: Option<&Probed>| described(probed, dir.path()).unwrap_err().0;
        assert_eq!(why(None), "the driver shows none");
        let gpu = dir.path().join("0000:01:00.0");
        std::fs::create_dir(&gpu).unwrap();
        std::fs::write(gpu.join("information"), "Model: \t\t NVIDIA H200\nIRQ:   7\n").unwrap();
        let refused = Probed { why: Some("CUDA_ERROR_SYSTEM_NOT_READY".into()), ..Probed::default() };
        assert_eq!(why(Some(&refused)), "NVIDIA H200 cannot be used: CUDA_ERROR_SYSTEM_NOT_READY");
        let facts = DeviceFacts {
            product: "NVIDIA H200".into(),
            arch: "sm_90".into(),
            driver: "580.1".into(),
            mig: None,
            uuid: "GPU-0".into(),
            memory: 141 << 30,
            processors: 132,
            clock_mhz: 1980,
            memory_clock_mhz: 3201,
            bus_bits: 6144,
            l2: 60 << 20,
            reaches_host: false,
        };
        let probed = Probed { devices: vec![facts], ..Probed::default() };
        assert_eq!(
            described(Some(&probed), dir.path()),
            Ok("NVIDIA H200 (sm_90, driver 580) (132 processors at 1980 MHz, 141 GiB at 4.9 TB/s, 60 MiB of L2)"
                .into())
        );
    }
}
