//! `kforge worker --probe-devices`: lists the devices that the driver reports, in a separate process, because a driver's library can crash, hang or leave
//! threads in the process that loads it. Knows attributes; keeps nothing.
//!
//! The child's answer is its only line: what the driver prints goes to standard error. The answer is used at once, because the child's end takes the system as
//! long as a third of starting the driver.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use cudarc::driver::sys::{CUdevice, CUdevice_attribute as A};

use super::driver;
use super::facts::{DeviceFacts, Probed};
use super::fault::Fault;
use super::monitor;
use kforge_foundation::process::{Command, Talker};
use kforge_harness::runner::take_reports;

/// The time limit for listing devices. A machine with eight devices that it wakes from sleep takes some seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the probe in a child, `program worker`, which is killed when `interrupted` is set. `environment` holds the variables that matter to drivers:
/// `LD_LIBRARY_PATH`, `CUDA_VISIBLE_DEVICES`.
pub fn probe(program: &Path, environment: &[(&str, &str)], interrupted: &AtomicBool) -> Probed {
    let mut command = Command::new(program).args(["worker", "--probe-devices"]);
    for (name, value) in environment {
        command = command.env(name, value);
    }
    let because = |why: String| Probed { why: Some(why), ..Probed::default() };
    let asked = Talker::start(&command).and_then(|talker| talker.exchange("", PATIENCE, interrupted));
    let (child, answer) = match asked {
        Err(e) => return because(format!("the driver cannot be asked: {e}")),
        Ok(Err(died)) => return because(format!("asking the driver {}: {}", died.end, died.stderr.text().trim())),
        Ok(Ok(answered)) => answered,
    };
    // A thread waits for the child's end. If none can be started, this one does.
    drop(std::thread::Builder::new().spawn(move || drop(child)));
    match serde_json::from_str::<Probed>(&answer) {
        Err(e) => because(format!("the driver's process gave a malformed answer: {e}")),
        Ok(probed) => {
            let path = environment.iter().find(|(name, _)| *name == "LD_LIBRARY_PATH");
            Probed { library_path: path.map(|(_, value)| (*value).to_string()), ..probed }
        }
    }
}

/// The main function of the child.
#[expect(unsafe_code, reason = "ending a process at once is a system call")]
pub fn probe_main(_: &[OsString]) -> ExitCode {
    // Before the driver is loaded, which may print.
    let Ok(mut answer) = take_reports() else { return ExitCode::FAILURE };
    let probed = match driver::load(None) {
        Err(why) => Probed { why: Some(why), ..Probed::default() },
        Ok(()) => match all() {
            Ok(devices) => Probed { libcuda: driver::place(), devices, ..Probed::default() },
            Err(fault) => Probed { libcuda: driver::place(), why: Some(fault.to_string()), ..Probed::default() },
        },
    };
    let text = serde_json::to_string(&probed).unwrap_or_default();
    let code = i32::from(writeln!(answer, "{text}").is_err());
    // What a driver's library does at the end of a process takes as long as its answer.
    // SAFETY: nothing of this process is needed any more, and its answer is written.
    unsafe { libc::_exit(code) }
}

fn all() -> Result<Vec<DeviceFacts>, Fault> {
    let version = monitor::driver_version().unwrap_or_else(|| "0".into());
    driver::devices()?.into_iter().map(|device| facts(device, &version)).collect()
}

/// The facts that the driver reports about one device.
pub(super) fn facts(device: CUdevice, version: &str) -> Result<DeviceFacts, Fault> {
    let number = |a| driver::attribute(device, a).map(|n| u32::try_from(n).unwrap_or(0));
    let product = driver::name(device)?;
    // The name of a slice is `NVIDIA H200 MIG 1g.18gb`.
    let (product, mig) = match product.split_once(" MIG ") {
        Some((product, profile)) => (product.to_string(), Some(profile.to_string())),
        None => (product, None),
    };
    let capability = (
        number(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        number(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    Ok(DeviceFacts {
        arch: format!("sm_{}{}", capability.0, capability.1),
        driver: version.to_string(),
        uuid: driver::uuid(device, mig.is_some())?,
        product,
        mig,
        memory: driver::memory(device)?,
        processors: number(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        // The driver reports both clocks in kHz.
        clock_mhz: number(A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)? / 1000,
        memory_clock_mhz: number(A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)? / 1000,
        bus_bits: number(A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?,
        l2: u64::from(number(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        reaches_host: number(A::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)? != 0,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// What is found by a program that does this.
    fn found(does: &str) -> Probed {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("worker");
        std::fs::write(&program, format!("#!/bin/sh\n{does}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        probe(&program, &[("LD_LIBRARY_PATH", "/drivers")], &AtomicBool::new(false))
    }

    #[test]
    fn an_answer_counts_at_once_and_a_child_that_gives_none_is_the_reason() {
        let why = |probed: Probed| probed.why.unwrap();
        let answer = r#"{"libcuda":null,"library_path":null,"devices":[],"why":"no device"}"#;
        // It would not end within the time limit.
        let probed = found(&format!("echo a warning >&2; echo '{answer}'; exec sleep 60"));
        assert_eq!((probed.why.as_deref(), probed.library_path.as_deref()), (Some("no device"), Some("/drivers")));
        assert!(why(found("echo stuck >&2; exit 3")).ends_with("exited with 3: stuck"));
        assert!(why(found("echo no")).starts_with("the driver's process gave a malformed answer"));
    }
}
