//! The wheels that make up a CUDA release. Knows the names of projects and the form of their versions; does not download.

use std::collections::BTreeMap;

use super::Group;
use crate::toolchain::Error;
use crate::toolchain::pip::Pip;
use crate::workspace::lockfile::LockedWheel;
use kforge_foundation::base::Digest;
use kforge_types::record::params::Toolchain;

/// Each project, the name of its tool in fingerprints, and whether its version must match the release. The disassemblers are versioned independently (their
/// first wheels are of 13.2) and read the output of earlier releases.
const PROJECTS: [(&str, &str, bool); 8] = [
    ("nvidia-cuda-nvrtc", "nvrtc", true),
    ("nvidia-cuda-runtime", "cuda-runtime", true),
    ("nvidia-cuda-crt", "cuda-crt", true),
    ("nvidia-cuda-cccl", "cuda-cccl", true),
    ("nvidia-cuda-nvcc", "nvcc", true),
    ("nvidia-nvvm", "nvvm", true),
    ("nvidia-cuda-nvdisasm", "nvdisasm", false),
    ("nvidia-cuda-cuobjdump", "cuobjdump", false),
];

/// The projects of a group.
fn projects(group: Group) -> &'static [&'static str] {
    match group {
        Group::Compile => &["nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cuda-crt", "nvidia-cuda-cccl"],
        Group::Nvcc => {
            &["nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-runtime", "nvidia-cuda-crt", "nvidia-cuda-cccl"]
        }
        Group::Disassemble => &["nvidia-cuda-nvdisasm", "nvidia-cuda-cuobjdump"],
        Group::Fatbin => &["nvidia-cuda-nvcc"],
        Group::Cub => &["nvidia-cuda-cccl"],
    }
}

/// Resolves the wheels of every group for a CUDA release (`13.0`) with the user's indexes as they are today. Installs nothing.
///
/// # Errors
/// The release does not have the form `13.0`, is before 13 (its wheels hold no nvcc), or pip cannot resolve it.
pub fn resolve(release: &str, pip: &Pip) -> Result<Vec<LockedWheel>, Error> {
    let requirements = requirements(release)?;
    let mut wheels = pip.resolve(&requirements)?;
    wheels.sort();
    for (project, _, _) in PROJECTS {
        if !wheels.iter().any(|w| w.name == project) {
            return Err(Error::NotResolved { project, release: release.to_string() });
        }
    }
    Ok(wheels)
}

fn requirements(release: &str) -> Result<Vec<String>, Error> {
    let parts: Option<Vec<u32>> = release.split('.').map(|p| p.parse().ok()).collect();
    let (major, minor) = match parts.as_deref() {
        Some([major, minor]) => (*major, *minor),
        _ => return Err(Error::NotRelease(release.to_string())),
    };
    if major < 13 {
        return Err(Error::OldRelease(release.to_string()));
    }
    let requirement = |(project, _, exact): &(&str, &str, bool)| match exact {
        true => format!("{project}=={major}.{minor}.*"),
        false => format!("{project}>={major}.{minor},<{}", major + 1),
    };
    Ok(PROJECTS.iter().map(requirement).collect())
}

/// The locked wheels of a group, in a fixed order.
///
/// # Errors
/// A wheel of the group is not locked.
pub fn select(locked: &[LockedWheel], group: Group) -> Result<Vec<LockedWheel>, Error> {
    let find = |project: &&'static str| {
        let found = locked.iter().find(|w| w.name == *project).cloned();
        found.ok_or(Error::NotLocked { project, group })
    };
    projects(group).iter().map(find).collect()
}

/// The fingerprint of a group: the locked digests of its wheels, so nothing needs to be installed. Leaves out cuobjdump, which no step runs.
///
/// # Errors
/// A wheel of the group is not locked.
pub fn fingerprint(locked: &[LockedWheel], group: Group) -> Result<Toolchain, Error> {
    let mut tools = BTreeMap::new();
    for wheel in select(locked, group)? {
        let tool = PROJECTS.iter().find(|(project, _, _)| *project == wheel.name).map_or("", |(_, tool, _)| tool);
        if tool != "cuobjdump" {
            tools.insert(tool.to_string(), Digest::of(wheel.digest.to_string().as_bytes()));
        }
    }
    Ok(Toolchain { tools, ..Toolchain::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::lockfile::WheelDigest;

    fn locked() -> Vec<LockedWheel> {
        PROJECTS
            .iter()
            .map(|(name, _, _)| LockedWheel {
                name: (*name).into(),
                version: "13.0.1".into(),
                file: format!("{}-13.0.1-py3-none-any.whl", name.replace('-', "_")),
                digest: WheelDigest { sha256: blake3::hash(name.as_bytes()).to_hex().to_string(), size: 1 },
            })
            .collect()
    }

    #[test]
    fn a_release_names_its_wheels() {
        let all = requirements("13.0").unwrap();
        assert!(all.contains(&"nvidia-cuda-nvrtc==13.0.*".to_string()));
        assert!(all.contains(&"nvidia-cuda-nvdisasm>=13.0,<14".to_string()));
    }

    #[test]
    fn other_forms_are_refused_with_what_was_expected() {
        for (release, says) in
            [("13", "form `13.0`"), ("13.0.2", "form `13.0`"), ("latest", "form"), ("12.8", "13.0 or later")]
        {
            assert!(requirements(release).unwrap_err().to_string().contains(says), "{release}");
        }
    }

    #[test]
    fn only_wheels_of_the_group_change_its_fingerprint() {
        let before = locked();
        let mut after = before.clone();
        after.iter_mut().find(|w| w.name == "nvidia-cuda-nvcc").unwrap().digest.sha256 = "00".repeat(32);
        let of = |locked: &[LockedWheel], group| fingerprint(locked, group).unwrap();
        assert_eq!(of(&before, Group::Compile), of(&after, Group::Compile));
        assert_ne!(of(&before, Group::Nvcc), of(&after, Group::Nvcc));
        assert_eq!(of(&before, Group::Disassemble).tools.keys().collect::<Vec<_>>(), ["nvdisasm"]);
    }

    #[test]
    fn a_wheel_that_is_not_locked_is_named() {
        let mut locked = locked();
        locked.retain(|w| w.name != "nvidia-cuda-crt");
        let error = select(&locked, Group::Compile).unwrap_err().to_string();
        assert!(error.contains("`nvidia-cuda-crt`") && error.contains("kforge update"), "{error}");
    }
}
