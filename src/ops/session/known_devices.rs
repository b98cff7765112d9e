//! The devices that an earlier build listed, for as long as the system states the same of them. Starting a driver to list its devices takes a sixth of a second,
//! which is a tenth of the time of a small build. Only builds reuse a list: servers and workers ask the driver once, when they start.
//!
//! The driver's kernel module states which GPUs there are, and its version, without the driver's library. A list is kept only if the module states as many GPUs,
//! and if none of them is divided into slices. A runner compares its device with the list when it starts. If it differs or does not start, the runner's worker
//! removes the list, and the next build asks the driver.
//!
//! A list names the library that a runner loads. Therefore only a file that nobody else may write is read.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, Metadata, read_to_string};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use kforge_cuda::device::facts::Probed;
use kforge_cuda::device::known_list;
use kforge_foundation::base::Digest;
use kforge_foundation::base::files::write_if_changed;

/// The lines of what the kernel module states about a GPU that do not depend on whether the GPU is awake. The UUID does; a runner is started by it.
const LASTING: [&str; 4] = ["Model:", "Bus Location:", "Device Minor:", "GPU Excluded:"];

/// What the system states about its devices without their driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stated {
    /// Of all that is stated.
    digest: Digest,
    /// How many GPUs there are.
    gpus: usize,
}

impl Stated {
    /// What the system below `root` states now, and the `variables` that determine which devices a process sees. None if it does not state enough.
    fn now(root: &Path, variables: &[(&str, &str)]) -> Option<Self> {
        let module = root.join("proc/driver/nvidia");
        // The version of the kernel module, which may be replaced without a restart.
        let mut facts = vec![read_to_string(module.join("version")).ok()?];
        let gpus = below(&module.join("gpus"))?;
        for gpu in &gpus {
            let text = read_to_string(gpu.join("information")).ok()?;
            let is_lasting = |line: &&str| LASTING.iter().any(|name| line.starts_with(name));
            facts.extend(text.lines().filter(is_lasting).map(String::from));
        }
        // Which slices exist is stated, but not what they are. A container may not see the folder; then the list itself shows slices.
        let has_slices = |of: &PathBuf| below(&of.join("mig")).is_some_and(|mig| !mig.is_empty());
        if below(&module.join("capabilities")).is_some_and(|all| all.iter().any(has_slices)) {
            return None;
        }
        // Another container, or another job of a scheduler, may use other devices.
        for path in ["proc/sys/kernel/random/boot_id", "proc/self/cgroup"] {
            facts.push(read_to_string(root.join(path)).ok()?);
        }
        for node in below(&root.join("dev"))? {
            let name = node.file_name()?.to_str().filter(|name| name.starts_with("nvidia"));
            if let Some((name, node)) = name.zip(node.metadata().ok()) {
                facts.push(format!("{name} {:o} {} {}", node.mode(), node.uid(), node.gid()));
            }
        }
        let groups = rustix::process::getgroups().ok()?.into_iter().map(|group| group.as_raw()).collect::<Vec<_>>();
        let user = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw(), groups);
        let variables: BTreeMap<_, _> = variables.iter().copied().collect();
        // Another version of kforge may describe devices otherwise.
        let bytes = serde_json::to_vec(&(facts, user, variables, kforge_cuda::IMPLEMENTATION)).ok()?;
        Some(Stated { digest: Digest::of(&bytes), gpus: gpus.len() })
    }
}

/// The entries of a folder in the order of their names; none if it cannot be read.
fn below(folder: &Path) -> Option<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).ok()?.map(|entry| Some(entry.ok()?.path()));
    let mut entries = entries.collect::<Option<Vec<_>>>()?;
    entries.sort();
    Some(entries)
}

/// The size, time of modification (seconds and nanoseconds) and inode of the driver's library.
type Library = (u64, i64, i64, u64);

/// A list, and when it is valid.
#[derive(Serialize, Deserialize)]
struct Known {
    stated: Stated,
    library: Library,
    probed: Probed,
}

/// The valid list in `folder`, or else the answer of `ask`, which is then kept there. `root` is the root of the file system.
pub(super) fn known_or(root: &Path, folder: &Path, variables: &[(&str, &str)], ask: impl FnOnce() -> Probed) -> Probed {
    let before = Stated::now(root, variables);
    if let Some(known) = before.as_ref().and_then(|stated| read(folder, stated)) {
        return known;
    }
    let probed = ask();
    // What changed meanwhile may not be in the answer.
    if let Some(stated) = before.filter(|before| Stated::now(root, variables).as_ref() == Some(before)) {
        keep(folder, stated, &probed);
    }
    probed
}

/// The list in this folder, if the system states what it stated then, and the driver's library is the same file.
fn read(folder: &Path, stated: &Stated) -> Option<Probed> {
    let file = known_list(folder);
    // Nobody else can write a file in such a folder, whatever its own mode is.
    if !is_own(&file.parent()?.symlink_metadata().ok()?) {
        return None;
    }
    let known: Known = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    let is_valid = known.stated == *stated && library(&known.probed) == Some(known.library);
    is_valid.then_some(known.probed)
}

/// Whether nobody but this user and the superuser may write it.
fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

/// Keeps a list that has as many devices as the system. A list that cannot be kept is made again by the next build.
fn keep(folder: &Path, stated: Stated, probed: &Probed) {
    let is_whole = probed.why.is_none()
        && !probed.devices.is_empty()
        && probed.devices.len() == stated.gpus
        && probed.devices.iter().all(|device| device.mig.is_none());
    if let Some(library) = library(probed).filter(|_| is_whole)
        && let Ok(text) = serde_json::to_vec_pretty(&Known { stated, library, probed: probed.clone() })
    {
        let file = known_list(folder);
        // A home may be shared with others, who may write in its folders.
        let _ = file.parent().map(|own| DirBuilder::new().recursive(true).mode(0o700).create(own));
        let _ = write_if_changed(&file, &text);
    }
}

/// Forgets the list, so that the next build asks the driver.
pub(crate) fn forget(folder: &Path) {
    let _ = std::fs::remove_file(known_list(folder));
}

fn library(probed: &Probed) -> Option<Library> {
    let file = probed.libcuda.as_ref()?.metadata().ok()?;
    Some((file.len(), file.mtime(), file.mtime_nsec(), file.ino()))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use kforge_cuda::device::facts::DeviceFacts;

    /// A system with one GPU, and a home.
    struct Lab {
        root: tempfile::TempDir,
        home: tempfile::TempDir,
        asked: Cell<u32>,
    }

    impl Lab {
        fn new() -> Self {
            let lab =
                Lab { root: tempfile::tempdir().unwrap(), home: tempfile::tempdir().unwrap(), asked: Cell::new(0) };
            for (path, text) in [
                ("proc/driver/nvidia/version", "NVRM version: 580.159.04"),
                (
                    "proc/driver/nvidia/gpus/0000:00:06.0/information",
                    "Model: \t\t H200\nIRQ: \t\t 41\nGPU UUID: \t GPU-1\n",
                ),
                ("proc/driver/nvidia/capabilities/fabric-imex-mgmt", ""),
                ("proc/sys/kernel/random/boot_id", "1"),
                ("proc/self/cgroup", "0::/"),
                ("dev/nvidia0", ""),
                ("dev/null", ""),
                ("lib/libcuda.so.1", "driver"),
            ] {
                lab.write(path, text);
            }
            lab
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn probed(&self) -> Probed {
            let device = DeviceFacts {
                product: "NVIDIA H200".into(),
                arch: "sm_90".into(),
                driver: "580.159.04".into(),
                mig: None,
                uuid: "GPU-1".into(),
                memory: 1,
                processors: 1,
                clock_mhz: 1,
                memory_clock_mhz: 1,
                bus_bits: 1,
                l2: 1,
                reaches_host: false,
            };
            let libcuda = Some(self.root.path().join("lib/libcuda.so.1"));
            Probed { libcuda, devices: vec![device], ..Probed::default() }
        }

        /// Lists the devices by a driver that gives this answer, and returns how often it was asked so far.
        fn list(&self, variables: &[(&str, &str)], answer: &Probed) -> u32 {
            let ask = || {
                self.asked.set(self.asked.get() + 1);
                answer.clone()
            };
            assert_eq!(known_or(self.root.path(), self.home.path(), variables, ask), *answer);
            self.asked.get()
        }

        /// The same for the whole list, without variables.
        fn again(&self) -> u32 {
            self.list(&[], &self.probed())
        }
    }

    #[test]
    fn the_driver_is_asked_once_until_the_system_states_something_else() {
        for (path, text) in [
            ("proc/driver/nvidia/version", "NVRM version: 590.10"),
            ("proc/driver/nvidia/gpus/0000:00:06.0/information", "Model: \t\t B200\n"),
            ("proc/sys/kernel/random/boot_id", "2"),
            ("proc/self/cgroup", "0::/job_2"),
            ("dev/nvidia1", ""),
            ("lib/libcuda.so.1", "another driver"),
        ] {
            let lab = Lab::new();
            assert_eq!((lab.again(), lab.again()), (1, 1));
            lab.write(path, text);
            assert_eq!((lab.again(), lab.again()), (2, 2), "{path}");
        }
        let lab = Lab::new();
        assert_eq!(lab.again(), 1);
        // A GPU that was asleep, and a device of another kind.
        lab.write(
            "proc/driver/nvidia/gpus/0000:00:06.0/information",
            "Model: \t\t H200\nIRQ: \t\t 7\nGPU UUID: \t ??\n",
        );
        lab.write("dev/sda", "");
        assert_eq!(lab.again(), 1);
        assert_eq!(lab.list(&[("CUDA_VISIBLE_DEVICES", "0")], &lab.probed()), 2);
        forget(lab.home.path());
        assert_eq!(lab.again(), 3);
    }

    #[test]
    fn what_changes_while_the_driver_is_asked_is_not_known() {
        let lab = Lab::new();
        let ask = || {
            lab.write("dev/nvidia1", "");
            lab.probed()
        };
        known_or(lab.root.path(), lab.home.path(), &[], ask);
        assert_eq!(lab.again(), 1);
    }

    #[test]
    fn what_the_system_does_not_vouch_for_is_asked_each_time() {
        let lab = Lab::new();
        lab.write("proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "");
        assert_eq!((lab.again(), lab.again()), (1, 2), "slices");
        let lab = Lab::new();
        std::fs::remove_dir_all(lab.root.path().join("proc/driver")).unwrap();
        assert_eq!((lab.again(), lab.again()), (1, 2), "no kernel module states anything");
        let lab = Lab::new();
        lab.write("proc/driver/nvidia/gpus/0000:00:07.0/information", "Model: H200");
        assert_eq!((lab.again(), lab.again()), (1, 2), "the driver lists one of two");
        let lab = Lab::new();
        let mut sliced = lab.probed();
        sliced.devices[0].mig = Some("1g.18gb".into());
        let why = Probed { why: Some("busy".into()), ..lab.probed() };
        for (nth, answer) in [sliced, why, Probed { devices: vec![], ..lab.probed() }].iter().enumerate() {
            assert_eq!(lab.list(&[], answer), nth as u32 + 1);
        }
    }

    #[test]
    fn a_list_that_others_may_write_is_not_read() {
        let lab = Lab::new();
        let permit = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        permit(lab.home.path(), 0o777);
        assert_eq!((lab.again(), lab.again()), (1, 1), "a shared home has a folder for each user");
        // As with a umask of 002.
        let file = known_list(lab.home.path());
        permit(&file, 0o664);
        assert_eq!(lab.again(), 1);
        permit(file.parent().unwrap(), 0o770);
        assert_eq!(lab.again(), 2);
    }
}
