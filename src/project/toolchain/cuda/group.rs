//! Selects a CUDA and the part of CUDA that a step needs. Gives both sources (wheels and an installed CUDA) one interface.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::install::{Progress, Source, folder_of, install_wheels};
use super::places::Installed;
use super::{local, wheels};
use crate::toolchain::{DigestFile, Error};
use crate::workspace::lockfile::LockedWheel;
use kforge_types::record::params::{Compiler, HOST, Toolchain};

/// The part of CUDA that one kind of work needs, installed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Group {
    /// NVRTC and the headers of runtime, crt and cccl: enough to compile device code.
    Compile,
    /// nvcc with its compiler and assembler, and the same headers.
    Nvcc,
    /// nvdisasm, and cuobjdump for people.
    Disassemble,
    /// fatbinary, which comes with nvcc.
    Fatbin,
    /// The headers of cub and of the libraries that it includes, for the emulator.
    Cub,
}

impl Group {
    /// Every group.
    pub const ALL: [Group; 5] = [Group::Compile, Group::Nvcc, Group::Disassemble, Group::Fatbin, Group::Cub];

    /// The name in messages: `cuda-compile`.
    pub fn name(self) -> &'static str {
        match self {
            Group::Compile => "cuda-compile",
            Group::Nvcc => "cuda-nvcc",
            Group::Disassemble => "cuda-disassemble",
            Group::Fatbin => "cuda-fatbin",
            Group::Cub => "cuda-cub",
        }
    }
}

/// The CUDA that a workspace requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CudaSpec {
    /// Wheels of this release: `13.0`.
    Wheels(String),
    /// A CUDA installed in this folder.
    Path(PathBuf),
    /// The installed CUDA, wherever it is.
    System,
}

/// A CUDA with known contents, installed or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cuda {
    /// Pinned wheels.
    Wheels(Vec<LockedWheel>),
    /// An installed CUDA.
    Local(PathBuf),
}

impl Cuda {
    /// The fingerprint that enters the keys of steps that use this group. For wheels, it holds their locked digests, so that keys exist before anything is
    /// installed. For an installed CUDA, it holds the contents of the files that the group runs and includes.
    ///
    /// # Errors
    /// The lockfile lacks a wheel of the group, or the installed CUDA lacks a part of the group.
    pub fn fingerprint(&self, group: Group, digest: DigestFile<'_>) -> Result<Toolchain, Error> {
        match self {
            Cuda::Wheels(locked) => wheels::fingerprint(locked, group),
            Cuda::Local(root) => local::fingerprint(root, group, digest),
        }
    }

    /// The fingerprint that enters the keys of compile steps: everything that `compiler` can use. `auto` may fall back to nvcc, so its fingerprint covers both
    /// NVRTC and nvcc. nvcc preprocesses with the host's C++ compiler, so nvcc's fingerprint covers that compiler too. With an installed CUDA without nvcc,
    /// `auto` uses only NVRTC.
    ///
    /// # Errors
    /// Same as [`Cuda::fingerprint`].
    pub fn for_compiler(
        &self,
        compiler: Compiler,
        host: Option<&Toolchain>,
        digest: DigestFile<'_>,
    ) -> Result<Toolchain, Error> {
        let mut all = Toolchain::default();
        if compiler != Compiler::Nvcc {
            all.tools.extend(self.fingerprint(Group::Compile, digest)?.tools);
        }
        if compiler != Compiler::Nvrtc {
            match self.fingerprint(Group::Nvcc, digest) {
                Ok(nvcc) => {
                    all.tools.extend(nvcc.tools);
                    let host = host.into_iter().flat_map(|h| &h.tools);
                    all.tools.extend(host.map(|(name, digest)| (format!("{HOST}{name}"), *digest)));
                }
                Err(_) if compiler == Compiler::Auto && matches!(self, Cuda::Local(_)) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(all)
    }

    /// Returns the paths of the group's tools if they are installed. Reads one or two folders and starts no process.
    ///
    /// # Errors
    /// The lockfile lacks a wheel of the group, or the installation lacks a part of the group.
    pub fn installed(&self, group: Group, toolchains: &Path) -> Result<Option<Installed>, Error> {
        match self {
            Cuda::Wheels(locked) => {
                let mut folder = folder_of(&wheels::select(locked, group)?, toolchains);
                // The wheel of fatbinary is one of nvcc's, that of cub one of NVRTC's.
                let larger = match group {
                    Group::Fatbin => Some(Group::Nvcc),
                    Group::Cub => Some(Group::Compile),
                    _ => None,
                };
                if let Some(larger) = larger.filter(|_| !folder.is_dir()) {
                    folder = wheels::select(locked, larger).map_or(folder, |all| folder_of(&all, toolchains));
                }
                if folder.is_dir() { Installed::of_wheels(&folder, group).map(Some) } else { Ok(None) }
            }
            Cuda::Local(root) => Installed::of_local(root, group).map(Some),
        }
    }

    /// Returns the paths of the group's tools, after installing them below `toolchains` if necessary. If several processes call this at once, only one
    /// installs.
    ///
    /// # Errors
    /// A wheel is not locked, cannot be downloaded, or differs from the locked one; or the group is not installed and `source` is offline.
    pub fn install(
        &self,
        group: Group,
        toolchains: &Path,
        source: Source<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Installed, Error> {
        match self {
            Cuda::Wheels(locked) => {
                if let Some(installed) = self.installed(group, toolchains)? {
                    return Ok(installed);
                }
                let folder = install_wheels(&wheels::select(locked, group)?, toolchains, source, progress)?;
                Installed::of_wheels(&folder, group)
            }
            Cuda::Local(root) => Installed::of_local(root, group),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::lockfile::WheelDigest;
    use kforge_foundation::base::Digest;
    use std::os::unix::fs::PermissionsExt;

    fn wheel(name: &str) -> LockedWheel {
        LockedWheel {
            name: name.into(),
            version: "13.0.1".into(),
            file: format!("{name}.whl"),
            digest: WheelDigest { sha256: "ab".repeat(32), size: 1 },
        }
    }

    #[test]
    fn each_compilers_key_holds_what_it_can_use_and_no_more() {
        let names = ["nvrtc", "runtime", "crt", "cccl", "nvcc"].map(|n| format!("nvidia-cuda-{n}"));
        let locked = names.iter().map(String::as_str).chain(["nvidia-nvvm"]).map(wheel).collect();
        let host = Toolchain { tools: [("c++".to_string(), Digest::of(b"g++"))].into(), ..Toolchain::default() };
        let of = |compiler| {
            let toolchain = Cuda::Wheels(Vec::clone(&locked)).for_compiler(compiler, Some(&host), &|_| unreachable!());
            toolchain.unwrap().tools.into_keys().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of(Compiler::Nvrtc), "cuda-cccl cuda-crt cuda-runtime nvrtc");
        assert_eq!(of(Compiler::Nvcc), "cuda-cccl cuda-crt cuda-runtime host:c++ nvcc nvvm");
        assert_eq!(of(Compiler::Auto), "cuda-cccl cuda-crt cuda-runtime host:c++ nvcc nvrtc nvvm");
        let fatbinary = Cuda::Wheels(Vec::clone(&locked)).fingerprint(Group::Fatbin, &|_| unreachable!()).unwrap();
        assert_eq!(fatbinary.tools.into_keys().collect::<Vec<_>>(), ["nvcc"]);
    }

    #[test]
    fn fatbinary_is_taken_from_nvcc_where_that_is_installed_and_else_installed_by_itself() {
        let home = tempfile::tempdir().unwrap();
        let names = ["nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-runtime", "nvidia-cuda-crt", "nvidia-cuda-cccl"];
        let locked: Vec<LockedWheel> = names.map(wheel).into();
        let cuda = Cuda::Wheels(locked.clone());
        let place = |group: Group| {
            let folder = folder_of(&wheels::select(&locked, group).unwrap(), home.path()).join("nvidia/cu13/bin");
            std::fs::create_dir_all(&folder).unwrap();
            let path = folder.join("fatbinary");
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let found =
            || cuda.installed(Group::Fatbin, home.path()).unwrap().map(|found| found.tools["fatbinary"].clone());
        assert_eq!(found(), None);
        let missing = cuda.install(Group::Fatbin, home.path(), Source::Offline, &mut |_| {}).unwrap_err();
        assert!(matches!(missing, Error::Offline(wheels) if wheels.len() == 1 && wheels[0].name == "nvidia-cuda-nvcc"));
        let with_nvcc = place(Group::Nvcc);
        assert_eq!(found(), Some(with_nvcc.clone()));
        let installed = cuda.install(Group::Fatbin, home.path(), Source::Offline, &mut |_| {}).unwrap();
        assert_eq!(installed.tools["fatbinary"], with_nvcc);
        let own = place(Group::Fatbin);
        assert_eq!(found(), Some(own));
    }
}
