//! `kforge update`: resolves toolchains and libraries anew, and pins champions.

use std::collections::BTreeSet;

use super::Ran;
use crate::cli::Context;
use crate::cli::args::UpdateArgs;
use crate::cli::exit::{Exit, Failure};
use kforge_foundation::base::count;
use kforge_ops::session::Opened;
use kforge_ops::session::tools::{Wanted, lock_name, wanted};
use kforge_pipeline::report::Report;
use kforge_project::toolchain::{Pip, cuda};
use kforge_project::workspace::lockfile::{LockedDependency, Lockfile, Pin, Seat, happens};
use kforge_types::model::{Arch, Dependency};

/// Runs the command.
pub fn run(context: &Context, args: &UpdateArgs) -> Ran {
    let opened = context.session.open()?;
    let _lock = if args.dry_run { vec![] } else { context.session.lock(&opened)? };
    let mut lock = opened.workspace.lock.clone();
    if args.champions {
        let report = kforge_ops::build::report::last(&context.session, &opened.workspace)?;
        pin(&opened, &report, &mut lock);
    } else {
        if context.session.offline() {
            return Err(context.fail("to resolve anew takes a network, and --offline was given").into());
        }
        resolve(context, &opened, &mut lock)?;
    }
    let changes = opened.workspace.lock.changes(&lock);
    for change in &changes {
        let text = if args.dry_run { change.clone() } else { happens(change) };
        context.console.err(&format!("  {text}\n"));
    }
    if changes.is_empty() {
        context.console.status("Unchanged", "kforge.lock is up to date");
        return Ok(Exit::Done);
    }
    let changes = count(changes.len() as u64, "change");
    if args.dry_run {
        context.console.status("Summary", &format!("kforge.lock: {changes}, not written"));
        return Ok(Exit::Done);
    }
    lock.write(&opened.workspace.root, context.session.options.locked).map_err(|e| context.fail(&e.to_string()))?;
    context.console.status("Updated", &format!("kforge.lock: {changes}"));
    Ok(Exit::Done)
}

/// What packages ask for, as the indexes have it today; what none asks for any more goes.
fn resolve(context: &Context, opened: &Opened, lock: &mut Lockfile) -> Result<(), Failure> {
    let mut releases = BTreeSet::new();
    let mut libraries = Vec::new();
    for member in &opened.workspace.members {
        let on_device = member.package.targets.values().any(|t| t.arch != Arch::Cpu);
        if let (true, Wanted::Release(release)) =
            (on_device, wanted(&member.package, &member.folder, context.session.environment.all()))
        {
            releases.insert(release);
        }
        for (name, dependency) in &member.package.dependencies {
            if let Dependency::Pypi { requirement, .. } = dependency {
                libraries.push(((member.package.name.clone(), name.clone()), requirement.clone()));
            }
        }
    }
    lock.wheels.retain(|name, _| releases.iter().any(|r| lock_name(r) == *name));
    let kept: BTreeSet<(String, String)> = libraries.iter().map(|(seat, _)| seat.clone()).collect();
    lock.dependencies.retain(|seat, d| matches!(d, LockedDependency::Path { .. }) || kept.contains(seat));
    if releases.is_empty() && libraries.is_empty() {
        return Ok(());
    }
    let pip = Pip::find(None, context.session.environment.all()).map_err(|e| context.fail(&e))?;
    for release in releases {
        context.console.status("Resolving", &format!("CUDA {release}"));
        let wheels = cuda::resolve(&release, &pip).map_err(|e| context.fail(&e))?;
        lock.wheels.insert(lock_name(&release), wheels);
    }
    for (seat, requirement) in libraries {
        context.console.status("Resolving", &requirement);
        let wheels = pip.resolve(std::slice::from_ref(&requirement)).map_err(|e| context.fail(&e))?;
        let wheel = wheels.into_iter().next();
        let wheel = wheel.ok_or_else(|| context.fail(&format!("pip resolved nothing for `{requirement}`")))?;
        lock.dependencies.insert(seat, LockedDependency::Wheel(wheel));
    }
    Ok(())
}

/// Pins the champions that the report names: a seat for each kernel, choice of types, target and class of shapes.
fn pin(opened: &Opened, report: &Report, lock: &mut Lockfile) {
    let known: BTreeSet<&str> = opened.workspace.members.iter().map(|m| m.package.name.as_str()).collect();
    lock.champions.retain(|seat, _| known.contains(seat.package.as_str()));
    for package in report.packages.iter().filter(|p| known.contains(p.name.as_str())) {
        for (kernel, target) in package.kernels.iter().flat_map(|k| k.targets.iter().map(move |t| (k, t))) {
            for champion in &target.champions {
                let Some(label) = &champion.variant else { continue };
                let seat = Seat {
                    package: package.name.clone(),
                    kernel: kernel.name.clone(),
                    types: target.types.clone(),
                    target: target.target.clone(),
                    class: champion.class.clone(),
                };
                // What was accepted stays until it is freed.
                if matches!(lock.champions.get(&seat), Some(Pin::Accepted(_))) {
                    continue;
                }
                // A pin for every choice of types has done its service once each has its own.
                lock.champions.remove(&Seat { types: String::new(), ..seat.clone() });
                lock.champions.insert(seat, Pin::Variant(tunables(label, &target.types).into()));
            }
        }
    }
}

/// The part of a variant's label in a report that tells it from others of the same types, which stand in front.
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
