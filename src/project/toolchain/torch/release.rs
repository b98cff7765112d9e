//! Releases of PyTorch: what pip resolves them to, what the lockfile holds of them, and what a Python needs of that. Knows names of wheels; installs nothing.
//!
//! | part of a release | wheels in the lockfile |
//! |---|---|
//! | for processors | `torch 2.9.1`: PyTorch's for every kind of Python, and the three others that it imports on the processor |
//! | with CUDA | `torch-cuda 2.9.1`: what every kind of Python needs. `torch-cuda 2.9.1 python 3.13`: what that kind needs in addition |

use std::collections::{BTreeMap, BTreeSet};

use crate::toolchain::pip::Pip;
use crate::toolchain::triton::serves;
use crate::toolchain::{Error, Python, digest_of_sequence};
use crate::workspace::lockfile::LockedWheel;
use kforge_foundation::base::Digest;
use kforge_types::record::params::Toolchain;

use super::of_tools;

/// The minor versions of Python 3 for which wheels are locked.
const PYTHONS: [u32; 5] = [10, 11, 12, 13, 14];

/// The wheel of PyTorch itself.
const TORCH: &str = "torch";

/// Other wheels that PyTorch imports on the processor.
const BESIDE: [&str; 3] = ["typing-extensions", "sympy", "mpmath"];

/// The wheels of a release for every kind of Python.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TorchWheels {
    /// The part for processors.
    Processor(Vec<LockedWheel>),
    /// All of it, by the minor version of Python 3.
    WithCuda(BTreeMap<u32, Vec<LockedWheel>>),
}

/// The wheels that one Python imports.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TorchSet {
    /// The wheels, sorted.
    pub wheels: Vec<LockedWheel>,
    /// Whether they include the libraries of CUDA and the Triton that PyTorch requires.
    pub cuda: bool,
}

/// The name of a release in the lockfile: of all wheels of its part for processors, or of those that every kind of Python needs.
fn lock_name(release: &str, cuda: bool) -> String {
    if cuda { format!("torch-cuda {release}") } else { format!("torch {release}") }
}

/// The name of what one kind of Python needs in addition.
fn lock_name_for(release: &str, minor: u32) -> String {
    format!("torch-cuda {release} python 3.{minor}")
}

/// Whether a name in the lockfile is of this release.
pub fn is_lock_name(name: &str, release: &str, cuda: bool) -> bool {
    name == lock_name(release, cuda) || cuda && PYTHONS.iter().any(|minor| name == lock_name_for(release, *minor))
}

/// The wheels of a release, and what a lockfile will lack.
#[derive(Debug)]
pub struct ResolvedTorch {
    /// The wheels.
    pub wheels: TorchWheels,
    /// The versions of Python (`3.10`) for which pip resolves none, and why. It may be that there are none, or that an index gave no answer.
    pub lacking: Vec<(String, Error)>,
}

impl TorchWheels {
    /// The wheels of a release (`2.9`, `2.9.1`) for every kind of Python, with the user's indexes as they are today. Installs nothing.
    ///
    /// # Errors
    /// pip cannot resolve the release for any Python.
    pub fn resolve(release: &str, cuda: bool, pip: &Pip) -> Result<ResolvedTorch, Error> {
        let exact = release.split('.').count() > 2;
        let requirement = if exact { format!("torch=={release}") } else { format!("torch=={release}.*") };
        let mut found: BTreeMap<u32, Vec<LockedWheel>> = BTreeMap::new();
        let mut lacking = vec![];
        for minor in PYTHONS {
            let python = format!("3.{minor}");
            let wheels = match cuda {
                true => pip.resolve_closure_for(&requirement, &python),
                false => pip.resolve_for(&requirement, &python),
            };
            match wheels {
                Ok(mut wheels) => {
                    wheels.sort();
                    found.insert(minor, wheels);
                }
                Err(why) => lacking.push((python, why)),
            }
        }
        if found.is_empty() && !lacking.is_empty() {
            return Err(lacking.swap_remove(0).1);
        }
        if cuda {
            return Ok(ResolvedTorch { wheels: TorchWheels::WithCuda(found), lacking });
        }
        let mut wheels: Vec<LockedWheel> = found.into_values().flatten().collect();
        wheels.extend(pip.resolve(&BESIDE.map(String::from))?);
        wheels.sort();
        wheels.dedup();
        Ok(ResolvedTorch { wheels: TorchWheels::Processor(wheels), lacking })
    }

    /// The wheels of a release in a lockfile, if it names them.
    pub fn locked(lock: &BTreeMap<String, Vec<LockedWheel>>, release: &str, cuda: bool) -> Option<Self> {
        let common = lock.get(&lock_name(release, cuda));
        if !cuda {
            return common.cloned().map(TorchWheels::Processor);
        }
        let own = PYTHONS.iter().filter_map(|minor| {
            let mut wheels = lock.get(&lock_name_for(release, *minor))?.clone();
            wheels.extend(common.into_iter().flatten().cloned());
            wheels.sort();
            Some((*minor, wheels))
        });
        let own: BTreeMap<u32, Vec<LockedWheel>> = own.collect();
        (!own.is_empty()).then_some(TorchWheels::WithCuda(own))
    }

    /// Puts the wheels of a release into a lockfile, in place of those that it names.
    pub fn lock(&self, release: &str, lock: &mut BTreeMap<String, Vec<LockedWheel>>) {
        match self {
            TorchWheels::Processor(wheels) => {
                lock.insert(lock_name(release, false), wheels.clone());
            }
            TorchWheels::WithCuda(found) => {
                lock.retain(|name, _| !is_lock_name(name, release, true));
                let sets: Vec<BTreeSet<&LockedWheel>> = found.values().map(|wheels| wheels.iter().collect()).collect();
                // Every kind of Python has a table of its own, which holds its PyTorch.
                let of_all = |wheel: &&LockedWheel| {
                    sets.len() > 1 && wheel.name != TORCH && sets.iter().all(|set| set.contains(wheel))
                };
                let common: BTreeSet<&LockedWheel> =
                    sets.first().into_iter().flatten().copied().filter(of_all).collect();
                for (minor, wheels) in found {
                    let own = wheels.iter().filter(|wheel| !common.contains(wheel)).cloned().collect();
                    lock.insert(lock_name_for(release, *minor), own);
                }
                if !common.is_empty() {
                    lock.insert(lock_name(release, true), common.into_iter().cloned().collect());
                }
            }
        }
    }

    /// What a Python imports. Of the part for processors, that is the PyTorch for it, and all wheels that are for any Python.
    ///
    /// # Errors
    /// The lockfile names no PyTorch for it.
    pub fn for_python(&self, python: &Python) -> Result<TorchSet, Error> {
        let minor = python.version.strip_prefix("3.").and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
        let minor = minor.filter(|_| !python.version_text.contains("free-threading"));
        let wheels = minor.and_then(|minor| match self {
            TorchWheels::Processor(wheels) => {
                let of = |wheel: &&LockedWheel| wheel.name != TORCH || serves(&wheel.file, minor);
                Some(wheels.iter().filter(of).cloned().collect::<Vec<_>>())
            }
            TorchWheels::WithCuda(found) => found.get(&minor).cloned(),
        });
        match wheels.filter(|wheels| wheels.iter().any(|wheel| wheel.name == TORCH)) {
            Some(wheels) => Ok(TorchSet { wheels, cuda: matches!(self, TorchWheels::WithCuda(_)) }),
            None => Err(Error::TorchPython { python: python.path.clone(), version: python.version.clone() }),
        }
    }
}

impl TorchSet {
    /// The version of PyTorch.
    pub(super) fn version(&self) -> &str {
        self.wheels.iter().find(|wheel| wheel.name == TORCH).map_or("", |wheel| &wheel.version)
    }

    /// The fingerprint for keys.
    pub fn fingerprint(&self) -> Toolchain {
        of_tools(of_wheels(self.wheels.iter()))
    }

    /// The fingerprint of what PyTorch uses on a GPU; none for the part for processors.
    pub fn with_cuda(&self) -> Option<Toolchain> {
        let on_processor = |name: &str| name == TORCH || BESIDE.contains(&name);
        let others = self.wheels.iter().filter(|wheel| !on_processor(&wheel.name));
        let tools = [("torch-cuda".to_string(), of_wheels(others))];
        self.cuda.then(|| Toolchain { tools: tools.into(), ..Toolchain::default() })
    }
}

fn of_wheels<'w>(wheels: impl Iterator<Item = &'w LockedWheel>) -> Digest {
    let texts = wheels.flat_map(|wheel| [wheel.file.clone(), wheel.digest.to_string()]);
    let parts: Vec<Digest> = texts.map(|text| Digest::of(text.as_bytes())).collect();
    digest_of_sequence(&parts)
}

#[cfg(test)]
#[path = "release_tests.rs"]
mod tests;
