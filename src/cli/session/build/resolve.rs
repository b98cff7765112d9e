//! Toolchains and header libraries as `kforge.lock` names them; what it lacks is resolved, where that is allowed, and written there. Says what cannot be had.

use std::collections::BTreeMap;

use super::super::libraries;
use super::super::open::{Context, Opened};
use super::super::sources::Libraries;
use super::super::tools::{self, Wanted};
use super::{Asked, Packages};
use crate::cli::exit::Exit;
use kforge_pipeline::plan::Selection;
use kforge_project::toolchain::{Cuda, Pip, cuda};
use kforge_types::model;

impl Context {
    /// The CUDA of each package with a device target; resolves what the lockfile lacks, if that is allowed. Sets `refused` where it is and fails.
    pub fn cudas(
        &self,
        opened: &mut Opened,
        packages: &Packages,
        asked: &Asked,
        refused: &mut bool,
    ) -> Result<BTreeMap<String, Result<Cuda, String>>, Exit> {
        let mut out = BTreeMap::new();
        let mut lock = opened.workspace.lock.clone();
        for member in &packages.members {
            // Nothing is resolved for targets that nobody asked for.
            let wanted = |t: &&model::Target| Selection::takes(&asked.selected.targets, &t.name);
            if member.package.targets.values().filter(wanted).all(|t| t.arch == model::Arch::Cpu) {
                continue;
            }
            let base = if member.package.from_root.contains("toolchain.cuda") {
                &opened.workspace.root
            } else {
                &member.folder
            };
            let wanted = tools::wanted(&member.package, base, self.environment.all());
            let wheels = matches!(wanted, Wanted::Release(_));
            let cuda = match wanted {
                Wanted::Local(cuda) => cuda,
                Wanted::Release(release) => match tools::locked(&lock.wheels, &release) {
                    Some(cuda) => Ok(cuda),
                    None if self.offline() || !asked.write => Err(format!(
                        "kforge.lock names no wheels for CUDA {release}: run `kforge build` with a network"
                    )),
                    None if self.locked() => {
                        self.console.error(&format!(
                            "kforge.lock must change: it names no wheels for CUDA {release}, and --locked was given"
                        ));
                        return Err(Exit::NotBuilt);
                    }
                    None => {
                        self.console.status("Resolving", &format!("CUDA {release}"));
                        let resolved =
                            Pip::find(None, self.environment.all()).and_then(|pip| cuda::resolve(&release, &pip));
                        resolved.map_err(|e| e.to_string()).map(|wheels| {
                            lock.wheels.insert(tools::lock_name(&release), wheels.clone());
                            Cuda::Wheels(wheels)
                        })
                    }
                },
            };
            let is_refused = wheels && !self.offline() && asked.write;
            if let Err(why) = &cuda
                && is_refused
            {
                self.console.diagnostic(&tools::refusal(why));
            } else if let Err(why) = &cuda
                && !asked.looks
            {
                self.console.warn(&format!("no machine code can be made for package `{}`: {why}", member.package.name));
            }
            // What a step says of it is its cause.
            let cuda = cuda.map_err(|why| why.lines().next().unwrap_or_default().to_string());
            *refused |= is_refused && cuda.is_err();
            out.insert(member.package.name.clone(), cuda);
        }
        if lock != opened.workspace.lock {
            lock.write(&opened.workspace.root, self.locked()).map_err(|e| self.fail(&e.to_string()))?;
            self.console.status("Locking", "kforge.lock");
            opened.workspace.lock = lock;
        }
        Ok(out)
    }

    /// Header libraries from wheels: locked, and installed now, because their headers are part of what is planned.
    pub fn libraries(&self, opened: &mut Opened, packages: &Packages, asked: &Asked) -> Result<Libraries, Exit> {
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
            lock.write(&opened.workspace.root, self.locked()).map_err(|e| self.fail(&e.to_string()))?;
            opened.workspace.lock = lock;
        }
        Ok(out)
    }
}
