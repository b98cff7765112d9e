//! Toolchains and header libraries from `kforge.lock`. Those that it lacks are resolved and added, if that is allowed. Reports what cannot be resolved.

use crate::session::tools::{NoCuda, NoTorch, NoTriton, TorchRequest};
use std::collections::{BTreeMap, BTreeSet};

use super::super::lacking_pythons::lacking_pythons;
use super::super::libraries;
use super::super::needs::{self, CudaRequest};
use super::super::open::{Opened, Session};
use super::super::sources::Libraries;
use super::super::tools;
use super::{Packages, PlanRequest};
use crate::Error;
use crate::error::Locked;
use crate::event::{Event, Resolving, Warning};
use kforge_pipeline::plan::Selection;
use kforge_project::toolchain::torch::{ResolvedTorch, TorchWheels};
use kforge_project::toolchain::{Cuda, Pip, cuda, triton};
use kforge_project::workspace::lockfile::LockedWheel;
use kforge_types::model;

impl Session {
    /// The CUDA of each package with a device target, or with a kernel for `cpu` that includes cub: `cub` names these. Resolves a CUDA that the lockfile lacks,
    /// if that is allowed, and sets `refused` if resolving fails for a device target.
    pub fn cudas(
        &self,
        opened: &mut Opened,
        packages: &Packages,
        asked: &PlanRequest,
        cub: &BTreeSet<String>,
        refused: &mut bool,
    ) -> Result<BTreeMap<String, Result<Cuda, NoCuda>>, Error> {
        let mut out = BTreeMap::new();
        let mut lock = opened.workspace.lock.clone();
        for member in &packages.members {
            // Nothing is resolved for targets that are not selected.
            let wanted = |t: &&model::Target| Selection::takes(&asked.selected.targets, &t.name);
            let only_cpu = member.package.targets.values().filter(wanted).all(|t| t.arch == model::Arch::Cpu);
            let none = only_cpu || !needs::needs_cuda(&member.package);
            if none && !cub.contains(&member.package.name) {
                continue;
            }
            let base = if member.package.from_root.contains("toolchain.cuda") {
                &opened.workspace.root
            } else {
                &member.folder
            };
            let wanted = needs::wanted(&member.package, base, self.environment.all());
            let wheels = matches!(wanted, CudaRequest::Release(_));
            let cuda = match wanted {
                CudaRequest::Local(cuda) => cuda,
                CudaRequest::Release(release) => match needs::locked(&lock.wheels, &release) {
                    Some(cuda) => Ok(cuda),
                    None if self.offline() || !asked.write => Err(NoCuda::NotLocked(release)),
                    None if self.options.locked => return Err(Error::LockfileLacks(Locked::Cuda(release))),
                    None => {
                        self.reporter.event(&Event::Resolving(Resolving::Cuda(&release)));
                        let resolved =
                            Pip::find(None, self.environment.all()).and_then(|pip| cuda::resolve(&release, &pip));
                        resolved.map_err(NoCuda::from).map(|wheels| {
                            lock.wheels.insert(needs::lock_name(&release), wheels.clone());
                            Cuda::Wheels(wheels)
                        })
                    }
                },
            };
            // Without cub, the emulator says what it lacks.
            let is_refused = wheels && !self.offline() && asked.write && !only_cpu;
            if let Err(why) = &cuda
                && is_refused
            {
                self.reporter.event(&Event::Diagnostic(&tools::refusal(&why.to_string())));
            } else if let Err(why) = &cuda
                && !asked.looks
            {
                let package = member.package.name.clone();
                let why = why.clone();
                self.reporter.warn(match only_cpu {
                    true => Warning::NoCub { package, why },
                    false => Warning::NoCuda { package, why },
                });
            }
            *refused |= is_refused && cuda.is_err();
            out.insert(member.package.name.clone(), cuda);
        }
        if lock != opened.workspace.lock {
            lock.write(&opened.workspace.root, self.options.locked)?;
            self.reporter.event(&Event::LockfileWritten);
            opened.workspace.lock = lock;
        }
        Ok(out)
    }

    /// The wheels of the Triton of each package with a kernel in Triton for a selected target. Resolves those that the lockfile lacks, if that is allowed,
    /// and sets `refused` if resolving fails.
    pub fn tritons(
        &self,
        opened: &mut Opened,
        packages: &Packages,
        asked: &PlanRequest,
        refused: &mut bool,
    ) -> Result<BTreeMap<String, Result<Vec<LockedWheel>, NoTriton>>, Error> {
        let mut out = BTreeMap::new();
        let mut lock = opened.workspace.lock.clone();
        for member in packages.members.iter().filter(|member| needs::needs_triton(&member.package)) {
            let wanted = |t: &&model::Target| Selection::takes(&asked.selected.targets, &t.name);
            if !member.package.targets.values().any(|target| wanted(&target)) {
                continue;
            }
            let release = member.package.toolchain.triton.as_deref().unwrap_or(tools::DEFAULT_TRITON);
            let name = triton::lock_name(release);
            let found = match lock.wheels.get(&name) {
                Some(wheels) => Ok(wheels.clone()),
                None if self.offline() || !asked.write => Err(NoTriton::NotLocked(release.into())),
                None if self.options.locked => return Err(Error::LockfileLacks(Locked::Triton(release.into()))),
                None => {
                    self.reporter.event(&Event::Resolving(Resolving::Triton(release)));
                    let pip = Pip::find(None, self.environment.all());
                    let resolved = pip.and_then(|pip| triton::resolve(release, &pip));
                    match &resolved {
                        Ok(wheels) => drop(lock.wheels.insert(name, wheels.clone())),
                        Err(why) => {
                            self.reporter.event(&Event::Diagnostic(&tools::refusal(&why.to_string())));
                            *refused = true;
                        }
                    }
                    resolved.map_err(NoTriton::from)
                }
            };
            out.insert(member.package.name.clone(), found);
        }
        if lock != opened.workspace.lock {
            lock.write(&opened.workspace.root, self.options.locked)?;
            self.reporter.event(&Event::LockfileWritten);
            opened.workspace.lock = lock;
        }
        Ok(out)
    }

    /// The PyTorch of each package with a reference or kernel in it. Resolves the wheels that the lockfile lacks, if that is allowed, and sets `refused` if resolving fails.
    pub fn torches(
        &self,
        opened: &mut Opened,
        packages: &Packages,
        asked: &PlanRequest,
        refused: &mut bool,
    ) -> Result<BTreeMap<String, Result<TorchRequest, NoTorch>>, Error> {
        let mut out = BTreeMap::new();
        let mut lock = opened.workspace.lock.clone();
        for member in packages.members.iter().filter(|member| needs::needs_torch(&member.package)) {
            let (release, with_cuda) = match &member.package.toolchain.torch {
                None | Some(model::TorchSpec::System) => {
                    out.insert(member.package.name.clone(), Ok(TorchRequest::System));
                    continue;
                }
                Some(model::TorchSpec::Release { release, cuda }) => (release, *cuda),
            };
            let named = model::TorchSpec::described(release, with_cuda);
            let found = match TorchWheels::locked(&lock.wheels, release, with_cuda) {
                Some(wheels) => Ok(wheels),
                None if self.offline() || !asked.write => Err(NoTorch::NotLocked(named)),
                None if self.options.locked => return Err(Error::LockfileLacks(Locked::Torch(named))),
                None => {
                    self.reporter.event(&Event::Resolving(Resolving::Torch(&named)));
                    let pip = Pip::find(None, self.environment.all());
                    let resolved = pip.and_then(|pip| TorchWheels::resolve(release, with_cuda, &pip));
                    let resolved = resolved.map(|ResolvedTorch { wheels, lacking }| {
                        if let Some(warning) = lacking_pythons(release, &lacking) {
                            self.reporter.event(&Event::Diagnostic(&warning));
                        }
                        wheels
                    });
                    match &resolved {
                        Ok(wheels) => wheels.lock(release, &mut lock.wheels),
                        Err(why) => {
                            self.reporter.event(&Event::Diagnostic(&tools::refusal(&why.to_string())));
                            *refused = true;
                        }
                    }
                    resolved.map_err(NoTorch::from)
                }
            };
            let found = found.map(|wheels| TorchRequest::Release(release.clone(), wheels));
            out.insert(member.package.name.clone(), found);
        }
        if lock != opened.workspace.lock {
            lock.write(&opened.workspace.root, self.options.locked)?;
            self.reporter.event(&Event::LockfileWritten);
            opened.workspace.lock = lock;
        }
        Ok(out)
    }

    /// The header libraries from wheels: locked, and installed now, because the plan includes their headers.
    pub fn libraries(&self, opened: &mut Opened, packages: &Packages, asked: &PlanRequest) -> Result<Libraries, Error> {
        let mut lock = opened.workspace.lock.clone();
        let mut out = Libraries::new();
        for member in &packages.members {
            for (name, dependency) in &member.package.dependencies {
                let model::Dependency::Pypi { requirement, .. } = dependency else { continue };
                let seat = (member.package.name.clone(), name.clone());
                let folder = libraries::install(self, opened, &mut lock, &seat, requirement, asked.write)?;
                out.insert(seat, folder);
            }
        }
        if lock != opened.workspace.lock {
            lock.write(&opened.workspace.root, self.options.locked)?;
            opened.workspace.lock = lock;
        }
        Ok(out)
    }
}
