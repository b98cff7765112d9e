//! The files that a confined process may access, by Landlock. Knows paths; does not know system calls.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
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
    for (path, access) in granted(keep) {
        rules = allow(rules, path, access)?;
    }
    Ok(rules.restrict_self()?)
}

/// The access rights on each path and on what is below it.
fn granted(keep: &Confinement) -> Vec<(&Path, BitFlags<AccessFs>)> {
    let read = AccessFs::from_read(WANTED);
    let programs: &[&str] = if keep.programs { PROGRAMS } else { &[] };
    let named = keep.read.iter().map(|path| path.as_path());
    let mut granted: Vec<_> =
        SYSTEM.iter().chain(programs).map(Path::new).chain(named).map(|path| (path, read)).collect();
    if keep.programs {
        granted.push((Path::new("/dev/null"), read | AccessFs::WriteFile));
    }
    if !keep.devices.is_empty() {
        granted.extend(driver::READ.iter().map(|read_by| (Path::new(read_by.what), read)));
        let written = read | AccessFs::WriteFile | AccessFs::Truncate;
        granted.extend(driver::WRITE.iter().map(|written_by| (Path::new(written_by.what), written)));
        let controlled = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::WriteFile | AccessFs::IoctlDev;
        granted.extend(keep.devices.iter().map(|device| (device.as_path(), controlled)));
    }
    if let Some(scratch) = &keep.scratch {
        granted.push((scratch, AccessFs::from_all(WANTED) & !AccessFs::MakeChar & !AccessFs::MakeBlock));
    }
    granted
}

/// The rights that a path can have: a file has none of a folder's, and the kernel refuses them for one.
fn suited(path: &Path, access: BitFlags<AccessFs>) -> BitFlags<AccessFs> {
    if path.is_dir() { access } else { access & AccessFs::from_file(WANTED) }
}

/// A path, and the rights on it and on what is below it as a number.
type Granted = (PathBuf, u64);

/// What [`restrict`] restricts, as numbers: the fields of `landlock_ruleset_attr`, and the rights on each path that exists. None if the kernel has no Landlock.
pub(super) fn portable(keep: &Confinement) -> Option<([u64; 3], Vec<Granted>)> {
    let abi = known_here()?;
    let (files, net, scopes) = (AccessFs::from_all(abi), AccessNet::from_all(abi), Scope::from_all(abi));
    let rules = granted(keep).into_iter().filter(|(path, _)| path.exists());
    let rules = rules.map(|(path, access)| (path.to_path_buf(), (suited(path, access) & files).bits()));
    Some(([files.bits(), net.bits(), scopes.bits()], rules.filter(|(_, rights)| *rights != 0).collect()))
}

fn allow(
    rules: landlock::RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<landlock::RulesetCreated, Box<dyn std::error::Error>> {
    let Ok(fd) = PathFd::new(path) else { return Ok(rules) };
    Ok(rules.add_rule(PathBeneath::new(fd, suited(path, access)))?)
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

/// What [`restrict`] would return, without restricting.
pub(super) fn missing_here() -> Report {
    match known_here() {
        Some(WANTED) => Report::default(),
        Some(abi) => partial(abi),
        None => none(),
    }
}

/// The newest version of Landlock, up to the one that we ask for, that this kernel has. A ruleset that requires every right can be created only if the kernel
/// knows all of them.
fn known_here() -> Option<ABI> {
    let known = |abi: ABI| {
        let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let rules = rules.handle_access(AccessFs::from_all(abi));
        // Version 6 added no file rights, only scopes.
        let rules = if abi < ABI::V6 { rules } else { rules.and_then(|rules| rules.scope(Scope::from_all(abi))) };
        rules.and_then(Ruleset::create).is_ok()
    };
    // Version 4 added only the network, which seccomp refuses as well.
    [ABI::V6, ABI::V5, ABI::V3, ABI::V2, ABI::V1].into_iter().find(|abi| known(*abi))
}
