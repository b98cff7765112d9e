//! Resolves toolchains and libraries again, and pins champions.

use std::collections::BTreeSet;

use crate::event::{Event, Resolving};
use crate::session::Opened;
use crate::session::lacking_pythons::lacking_pythons;
use crate::session::needs::{CudaRequest, lock_name, needs_cuda, needs_torch, needs_triton, wanted};
use crate::session::sources::emulates_cub;
use crate::session::tools::DEFAULT_TRITON;
use crate::{Error, Session};
use kforge_pipeline::report::Report;
use kforge_pipeline::report::document::{ChampionReport, ShapeReport, TargetReport};
use kforge_project::toolchain::{Pip, cuda, torch, triton};
use kforge_project::workspace::lockfile::{LockedDependency, Lockfile, Pin, Seat};
use kforge_types::model::{Arch, Dependency, TorchSpec};
use kforge_types::record::Verdict;
use kforge_types::record::params::split_from;

/// The request for an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpdateRequest {
    /// What to change in kforge.lock.
    pub what: What,
    /// Whether to leave kforge.lock unchanged.
    pub dry_run: bool,
}

/// What an update changes in kforge.lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Toolchains and libraries.
    Toolchains,
    /// The champions of the last build, which from then on win among equals.
    Champions,
}

/// Resolving again needs the network, which must not be used.
#[derive(Debug, thiserror::Error)]
#[error("resolving again needs a network, and --offline was given")]
pub struct Offline;

/// Updates kforge.lock and returns the number of its changes. Reports each change before writing it.
///
/// # Errors
/// [`Offline`], something cannot be resolved, there is no report to take champions from, or kforge.lock cannot be written.
pub fn update(session: &Session, request: UpdateRequest) -> Result<usize, Error> {
    let mut opened = session.open()?;
    let _lock = if request.dry_run { vec![] } else { session.lock(&mut opened)? };
    let mut lock = opened.workspace.lock.clone();
    match request.what {
        What::Champions => pin(&opened, &crate::build::report::last(session, &opened.workspace)?, &mut lock),
        What::Toolchains if session.offline() => return Err(Offline.into()),
        What::Toolchains => resolve(session, &opened, &mut lock)?,
    }
    let changes = opened.workspace.lock.changes(&lock);
    for change in &changes {
        session.reporter.event(&Event::LockfileChange { change, planned: request.dry_run });
    }
    if !changes.is_empty() && !request.dry_run {
        lock.write(&opened.workspace.root, session.options.locked)?;
    }
    Ok(changes.len())
}

/// Resolves what packages request with the indexes as they are today, and removes what no package requests any more.
fn resolve(session: &Session, opened: &Opened, lock: &mut Lockfile) -> Result<(), Error> {
    let (mut releases, mut tritons, mut torches) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut libraries = Vec::new();
    for member in &opened.workspace.members {
        let on_device = member.package.targets.values().any(|t| t.arch != Arch::Cpu);
        let wants_cuda = (on_device && needs_cuda(&member.package)) || emulates_cub(member);
        if needs_triton(&member.package) {
            tritons.insert(member.package.toolchain.triton.as_deref().unwrap_or(DEFAULT_TRITON));
        }
        if let (true, Some(TorchSpec::Release { release, cuda })) =
            (needs_torch(&member.package), &member.package.toolchain.torch)
        {
            torches.insert((release.as_str(), *cuda));
        }
        if let (true, CudaRequest::Release(release)) =
            (wants_cuda, wanted(&member.package, &member.folder, session.environment.all()))
        {
            releases.insert(release);
        }
        for (name, dependency) in &member.package.dependencies {
            if let Dependency::Pypi { requirement, .. } = dependency {
                libraries.push(((member.package.name.clone(), name.clone()), requirement.clone()));
            }
        }
    }
    let is_wanted = |name: &String| {
        releases.iter().any(|r| lock_name(r) == *name)
            || tritons.iter().any(|r| triton::lock_name(r) == *name)
            || torches.iter().any(|(r, cuda)| torch::is_lock_name(name, r, *cuda))
    };
    lock.wheels.retain(|name, _| is_wanted(name));
    let kept: BTreeSet<(String, String)> = libraries.iter().map(|(seat, _)| seat.clone()).collect();
    lock.dependencies.retain(|seat, d| matches!(d, LockedDependency::Path { .. }) || kept.contains(seat));
    if releases.is_empty() && tritons.is_empty() && torches.is_empty() && libraries.is_empty() {
        return Ok(());
    }
    let pip = Pip::find(None, session.environment.all()).map_err(Error::Toolchain)?;
    for release in releases {
        session.reporter.event(&Event::Resolving(Resolving::Cuda(&release)));
        let wheels = cuda::resolve(&release, &pip).map_err(Error::Toolchain)?;
        lock.wheels.insert(lock_name(&release), wheels);
    }
    for release in tritons {
        session.reporter.event(&Event::Resolving(Resolving::Triton(release)));
        let wheels = triton::resolve(release, &pip).map_err(Error::Toolchain)?;
        lock.wheels.insert(triton::lock_name(release), wheels);
    }
    for (release, with_cuda) in torches {
        session.reporter.event(&Event::Resolving(Resolving::Torch(&TorchSpec::described(release, with_cuda))));
        let resolved = torch::TorchWheels::resolve(release, with_cuda, &pip).map_err(Error::Toolchain)?;
        if let Some(warning) = lacking_pythons(release, &resolved.lacking) {
            session.reporter.event(&Event::Diagnostic(&warning));
        }
        resolved.wheels.lock(release, &mut lock.wheels);
    }
    for (seat, requirement) in libraries {
        session.reporter.event(&Event::Resolving(Resolving::Requirement(&requirement)));
        let failed = |why| Error::Library { requirement: requirement.clone(), why };
        let wheels = pip.resolve(std::slice::from_ref(&requirement)).map_err(failed)?;
        let wheel =
            wheels.into_iter().next().ok_or_else(|| Error::NothingResolved { requirement: requirement.clone() })?;
        lock.dependencies.insert(seat, LockedDependency::Wheel(wheel));
    }
    Ok(())
}

/// Pins the champions in the report: one seat for each kernel, choice of types, target and class of shapes.
fn pin(opened: &Opened, report: &Report, lock: &mut Lockfile) {
    let known: BTreeSet<&str> = opened.workspace.members.iter().map(|m| m.package.name.as_str()).collect();
    lock.champions.retain(|seat, _| known.contains(seat.package.as_str()));
    for package in report.packages.iter().filter(|p| known.contains(p.name.as_str())) {
        for (kernel, target) in package.kernels.iter().flat_map(|k| k.targets.iter().map(move |t| (k, t))) {
            let seat = |class: &str| Seat {
                package: package.name.clone(),
                kernel: kernel.name.clone(),
                types: target.types.clone(),
                target: target.target.clone(),
                class: class.into(),
            };
            // Where a class no longer splits, its champion has the shape again.
            let is_past = |class: &str| {
                split_from(class).is_some_and(|(_, shape)| {
                    target.champions.iter().any(|c| c.class != class && c.shapes.iter().any(|s| s == shape))
                })
            };
            lock.champions.retain(|pinned, pin| {
                *pinned != seat(&pinned.class) || !is_past(&pinned.class) || matches!(pin, Pin::Accepted(_))
            });
            for champion in &target.champions {
                let Some(label) = champion.variant.as_ref().filter(|_| !is_wrong(champion, target)) else { continue };
                let seat = seat(&champion.class);
                // An accepted champion stays until it is released.
                if matches!(lock.champions.get(&seat), Some(Pin::Accepted(_))) {
                    continue;
                }
                // A pin for every choice of types is obsolete once each choice has its own pin.
                lock.champions.remove(&Seat { types: String::new(), ..seat.clone() });
                lock.champions.insert(seat, Pin::Variant(tunables(label, &target.types).into()));
            }
        }
    }
}

/// Whether a champion is wrong at one of its shapes, which may have been seen after its selection.
fn is_wrong(champion: &ChampionReport, target: &TargetReport) -> bool {
    let is_its =
        |of: &&ShapeReport| Some(&of.variant) == champion.variant.as_ref() && champion.shapes.contains(&of.shape);
    target.shapes.iter().filter(is_its).any(|of| matches!(of.verdict, Verdict::Fail(_)))
}

/// The tunables in a variant's label in a report, without the types that precede them.
fn tunables<'l>(label: &'l str, types: &str) -> &'l str {
    label.strip_prefix(types).map_or(label, |rest| rest.trim_start_matches(','))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reports_label_gives_the_plans_identity() {
        let planned = |name: &str| kforge_pipeline::plan::kernels::identity(name);
        let pinned = |label: &str, types: &str| Pin::Variant(tunables(label, types).into()).identity();
        assert_eq!(pinned("BLOCK=1,VEC=2", ""), planned("BLOCK=1,VEC=2"));
        assert_eq!(pinned("T=f16,BLOCK=1", "T=f16"), planned("BLOCK=1"));
        assert_eq!(pinned("T=f16", "T=f16"), planned(""));
    }
}
