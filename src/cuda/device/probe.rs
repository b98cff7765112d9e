//! `kforge worker --probe-devices`: lists the devices that the driver reports, in a separate process, because a driver's library can crash, hang or leave
//! threads in the process that loads it. Knows attributes; keeps nothing.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use cudarc::driver::sys::{CUdevice, CUdevice_attribute as A};

use super::driver;
use super::facts::{DeviceFacts, Probed};
use super::fault::Fault;
use super::monitor;
use kforge_foundation::process::{Command, End, run};

/// The time limit for listing devices. A machine with eight devices that it wakes from sleep takes some seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// The prefix of the child's answer, because a driver may print, too.
const MARK: &str = "kforge-devices:";

/// Runs the probe in a child, `program worker`, which is killed when `interrupted` is set. `environment` holds the variables that matter to drivers:
/// `LD_LIBRARY_PATH`, `CUDA_VISIBLE_DEVICES`.
pub fn probe(program: &Path, environment: &[(&str, &str)], interrupted: &AtomicBool) -> Probed {
    let mut command = Command::new(program).args(["worker", "--probe-devices"]);
    for (name, value) in environment {
        command = command.env(name, value);
    }
    let finished = run(&command, Some(PATIENCE), interrupted);
    let because = |why: String| Probed { why: Some(why), ..Probed::default() };
    match finished {
        Err(e) => because(format!("the driver cannot be asked: {e}")),
        Ok(finished) => match (heard(&finished.stdout.text()), finished.end) {
            (Some(probed), End::Exited(0)) => {
                let path = environment.iter().find(|(name, _)| *name == "LD_LIBRARY_PATH");
                Probed { library_path: path.map(|(_, value)| (*value).to_string()), ..probed }
            }
            (_, end) => because(format!("asking the driver {end}: {}", finished.stderr.text().trim())),
        },
    }
}

fn heard(text: &str) -> Option<Probed> {
    text.lines().find_map(|line| serde_json::from_str(line.strip_prefix(MARK)?).ok())
}

/// The main function of the child.
#[expect(unsafe_code, reason = "ending a process at once is a system call")]
pub fn probe_main(_: &[OsString]) -> ExitCode {
    let probed = match driver::load(None) {
        Err(why) => Probed { why: Some(why), ..Probed::default() },
        Ok(()) => match all() {
            Ok(devices) => Probed { libcuda: driver::place(), devices, ..Probed::default() },
            Err(fault) => Probed { libcuda: driver::place(), why: Some(fault.to_string()), ..Probed::default() },
        },
    };
    let text = serde_json::to_string(&probed).unwrap_or_default();
    let code = i32::from(writeln!(io::stdout(), "{MARK}{text}").and_then(|()| io::stdout().flush()).is_err());
    // What a driver's library does at the end of a process takes as long as its answer, and the parent waits for the end.
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
    use super::*;

    #[test]
    fn the_answer_is_found_among_what_a_driver_prints() {
        let probed = Probed { why: Some("none".into()), ..Probed::default() };
        let text = format!("a warning\n{MARK}{}\n", serde_json::to_string(&probed).unwrap());
        assert_eq!(heard(&text), Some(probed));
        assert_eq!(heard("a warning\n"), None);
    }
}
