//! The files that a confined process may access, by Landlock. Knows paths; does not know system calls.

use std::io;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};

use super::{Confinement, Report, driver};

/// The places of system libraries and of the files that loading them reads. Missing ones are skipped.
const SYSTEM: &[&str] = &[
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ld.so.cache",
    "/nix/store",
    "/gnu/store",
    "/dev/null",
    "/dev/zero",
    "/dev/urandom",
];
/// What programs need in addition.
const PROGRAMS: &[&str] = &[
    "/usr/bin",
    "/bin",
    "/usr/include",
    "/usr/local/bin",
    "/usr/local/include",
    "/usr/share/zoneinfo",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/sys/devices/system/cpu",
];

/// The access rights that we ask for. Older kernels enforce those that they know.
const WANTED: ABI = ABI::V6;

/// Restricts this thread and the threads that it starts later. Returns what the kernel could not do.
pub(super) fn restrict(keep: &Confinement) -> io::Result<Report> {
    match enforce(keep) {
        Ok(status) => Ok(missing(&status)),
        Err(e) => Err(io::Error::other(format!("landlock: {e}"))),
    }
}

fn enforce(keep: &Confinement) -> Result<RestrictionStatus, Box<dyn std::error::Error>> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .handle_access(AccessNet::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()?;
    let programs: &[&str] = if keep.programs { PROGRAMS } else { &[] };
    let named = keep.read.iter().map(|path| path.as_path());
    for path in SYSTEM.iter().chain(programs).map(Path::new).chain(named) {
        rules = allow(rules, path, AccessFs::from_read(WANTED))?;
    }
    if keep.programs {
        rules = allow(rules, Path::new("/dev/null"), AccessFs::from_read(WANTED) | AccessFs::WriteFile)?;
    }
    if !keep.devices.is_empty() {
        for read in driver::READ {
            rules = allow(rules, Path::new(read.what), AccessFs::from_read(WANTED))?;
        }
        let written = AccessFs::from_read(WANTED) | AccessFs::WriteFile | AccessFs::Truncate;
        for write in driver::WRITE {
            rules = allow(rules, Path::new(write.what), written)?;
        }
        let controlled = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::WriteFile | AccessFs::IoctlDev;
        for device in &keep.devices {
            rules = allow(rules, device, controlled)?;
        }
    }
    if let Some(scratch) = &keep.scratch {
        rules = allow(rules, scratch, AccessFs::from_all(WANTED) & !AccessFs::MakeChar & !AccessFs::MakeBlock)?;
    }
    Ok(rules.restrict_self()?)
}

fn allow(
    rules: landlock::RulesetCreated,
    path: &Path,
    access: landlock::BitFlags<AccessFs>,
) -> Result<landlock::RulesetCreated, Box<dyn std::error::Error>> {
    let Ok(fd) = PathFd::new(path) else { return Ok(rules) };
    // A file has no folder rights, and the kernel refuses them for one.
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(WANTED) };
    Ok(rules.add_rule(PathBeneath::new(fd, access))?)
}

fn missing(status: &RestrictionStatus) -> Report {
    match (&status.ruleset, &status.landlock) {
        (RulesetStatus::FullyEnforced, _) => Report::default(),
        (_, LandlockStatus::Available { effective_abi, .. }) => partial(*effective_abi),
        _ => none(),
    }
}

const NONE: &str = "the kernel has no Landlock (Linux 5.13, with `landlock` among its security modules): candidate code and compilers could read and write your files";

fn none() -> Report {
    Report { missing: vec![NONE.to_string()], ..Report::default() }
}

fn partial(abi: ABI) -> Report {
    let (here, wanted) = (abi as i32, WANTED as i32);
    let weaker = format!(
        "the kernel has version {here} of Landlock, but full confinement needs version {wanted}: references and compilers are confined less"
    );
    Report { weaker: vec![weaker], ..Report::default() }
}

/// What [`restrict`] would return, without restricting. A ruleset that requires every right can be created only if the kernel knows all of them.
pub(super) fn missing_here() -> Report {
    let known = |abi: ABI| {
        let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let rules = rules.handle_access(AccessFs::from_all(abi));
        // Version 6 added no file rights, only scopes.
        let rules = if abi < ABI::V6 { rules } else { rules.and_then(|rules| rules.scope(Scope::from_all(abi))) };
        rules.and_then(Ruleset::create).is_ok()
    };
    let versions = [ABI::V6, ABI::V5, ABI::V3, ABI::V2, ABI::V1];
    match versions.into_iter().find(|abi| known(*abi)) {
        Some(WANTED) => Report::default(),
        Some(abi) => partial(abi),
        None => none(),
    }
}
