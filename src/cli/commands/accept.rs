//! `kforge accept`: a champion becomes the package's own. What an agent or a template wrote goes into the repository with where it comes from; the variant is pinned,
//! alone. Afterwards a build needs neither agent nor search. Asks nobody and measures nothing: it goes by what is known.

mod file;

use super::Ran;
use crate::cli::Context;
use crate::cli::args::{AcceptArgs, Select};
use crate::cli::exit::{Exit, Failure};
use kforge_foundation::base::count;
use kforge_ops::session::Opened;
use kforge_ops::session::build::{Packages, Ready};
use kforge_ops::session::open::make_target;
use kforge_ops::session::rounds::Seat;
use kforge_ops::session::standing::Stands;
use kforge_pipeline::plan::Goal;
use kforge_project::workspace::changes::{self, Change};
use kforge_project::workspace::lockfile::{self, FILE_NAME, Lockfile, LockfileError, Pin};
use kforge_project::workspace::{Member, Workspace};
use kforge_types::model::{Arch, Kernel, TypeChoice};

/// What is to be done.
struct Plan {
    /// Files but the lockfile.
    files: Vec<Change>,
    lock: Lockfile,
    /// What is said when it is done, a line a seat.
    told: Vec<String>,
    /// What was done, as status lines name it.
    verb: &'static str,
}

/// What is said of a champion that was accepted.
const ACCEPTED: &str = "Accepted";

/// Runs the command.
pub fn run(context: &Context, args: &AcceptArgs) -> Ran {
    let words = Select {
        package: args.package.clone(),
        kernel: vec![args.kernel.clone()],
        target: args.target.clone(),
        ..Select::default()
    };
    // Nobody builds meanwhile, and two do not accept at once: what is read must be what is written over, so it is read under the lock.
    let _lock = match args.dry_run {
        true => vec![],
        false => {
            let opened = context.session.open()?;
            let target = &opened.target;
            make_target(target).map_err(|e| context.fail(&e.to_string()))?;
            context.session.lock(&opened)?
        }
    };
    let looking = context.session.look(&words.words(), Goal::Build)?;
    if args.undo {
        let plan = undone(context, &looking.opened.workspace, args)?;
        return write(context, &looking.opened.workspace, plan, args.dry_run);
    }
    let (plan, workspace) = looking.plan_of(&context.session, |opened, packages, ready| {
        let plan = accepted(context, opened, packages, ready, args)?;
        Ok::<_, Failure>((plan, opened.workspace.clone()))
    })?;
    write(context, &workspace, plan, args.dry_run)
}

/// Finds the champions and what has to be written for them.
fn accepted(
    context: &Context,
    opened: &Opened,
    packages: &Packages,
    ready: &Ready<'_>,
    args: &AcceptArgs,
) -> Result<Plan, Failure> {
    let (member, kernel) = named(context, packages, args)?;
    let known = ready.with_services(&context.session, opened, |services| {
        kforge_engine::known(ready.graph.clone(), &ready.options, services)
    });
    let standing = ready.standing(&known);
    let of_types = |types: &str| args.types.is_empty() || args.types.iter().any(|t| t == types);
    let mut all: Vec<Stands> = vec![];
    for seat in seats(member, kernel, args).into_iter().filter(|seat| of_types(&seat.types)) {
        let before = all.len();
        for found in &standing {
            match found {
                Ok(stands) if stands.seat == seat => all.push(stands.clone()),
                Err((of, why)) if *of == seat => {
                    return Err(context.fail(&format!("nothing of {} can be accepted: {why}", name(&seat))).into());
                }
                _ => {}
            }
        }
        if all.len() == before {
            let first = known.open.first().map(|id| format!(": `{id}` would have to run")).unwrap_or_default();
            let exit = context.fail(&format!("who is champion of {} is not known{first}", name(&seat)));
            let optimize = kernel.rounds.as_ref().map(|_| format!(", or `kforge optimize {}`", kernel.name));
            context.console.err(&format!("help: run `kforge build`{} first\n", optimize.unwrap_or_default()));
            return Err(exit.into());
        }
    }
    if all.is_empty() {
        let known = member.package.operator(&kernel.operator).map(|o| o.choices()).unwrap_or_default();
        let known: Vec<String> = known.iter().map(|c| format!("`{}`", c.label)).collect();
        context.console.error(&format!("kernel `{}` has no such types: expected {}", kernel.name, known.join(", ")));
        return Err(Exit::NothingSelected.into());
    }
    for stands in &all {
        sound(context, member, stands)?;
    }
    let mut lock = opened.workspace.lock.clone();
    let mut told = vec![];
    let written = all.iter().filter(|s| s.build.written.is_some()).count();
    let as_file = args.file.is_some() || args.name.is_some();
    let made = kernel.generate.is_some();
    if written == 0 && !(as_file && made) {
        if as_file {
            let exit = context.fail(&format!(
                "the champion of `{}` is a variant of the package's own source `{}`: there is nothing to write",
                kernel.name, kernel.source
            ));
            context.console.err("help: without `--as` and `--name` it is pinned\n");
            return Err(exit.into());
        }
        for stands in &all {
            told.push(line(stands, "in kforge.lock"));
            lock.champions
                .insert(pinned(&stands.seat, &stands.class), Pin::Accepted(stands.build.variant.label.clone()));
        }
        return Ok(Plan { files: vec![], lock, told, verb: ACCEPTED });
    }
    let Some(first) = all.first().filter(|first| all.iter().all(|s| s.build.source == first.build.source)) else {
        let exit = context.fail(&format!("the champions of `{}` are of different sources:", kernel.name));
        for stands in &all {
            context.console.err(&format!("  {}\n", line(stands, &format!("of round {}", stands.build.round))));
        }
        context.console.err(
            "help: `--target` (or `--types`) takes that of one for all; with `--name NEW` besides, it becomes a kernel of its own for that target\n",
        );
        return Err(exit.into());
    };
    let files = file::files(context, &opened.workspace, member, (kernel, ready), &all, args)?;
    let source = files.source.clone();
    let of = args.name.as_ref().unwrap_or(&kernel.name);
    if args.name.is_none() {
        // What was pinned by the names of rounds has no such names any more.
        lock.champions.retain(|seat, _| seat.package != member.package.name || seat.kernel != kernel.name);
    }
    let accepted = first.build.written.as_ref().map_or(kernel, |w| &w.kernel);
    for stands in &all {
        told.push(line(stands, &format!("in `{source}`")));
        let seat = Seat { kernel: of.clone(), ..stands.seat.clone() };
        lock.champions.insert(pinned(&seat, &stands.class), Pin::Accepted(stands.build.variant.label.clone()));
    }
    if args.name.is_none() {
        others(member, kernel, accepted, &all, &mut lock);
    }
    Ok(Plan { files: files.changes, lock, told, verb: ACCEPTED })
}

/// The variant of the first target that was chosen, for targets that were not: the source is theirs too now.
fn others(member: &Member, kernel: &Kernel, accepted: &Kernel, all: &[Stands], lock: &mut Lockfile) {
    let Some(first) = all.first().map(|s| s.seat.target.clone()) else { return };
    let choices = member.package.operator(&kernel.operator).map(|o| o.choices()).unwrap_or_default();
    for target in kernel.targets.iter().filter(|name| !all.iter().any(|s| s.seat.target == **name)) {
        for stands in all.iter().filter(|s| s.seat.target == first) {
            let choice = choices.iter().find(|c| c.label == stands.seat.types);
            let there = choice.zip(member.package.targets.get(target)).is_some_and(|(choice, target)| {
                accepted.variant(target, choice, &stands.build.variant.values).is_ok_and(|v| v.is_some())
            });
            if there {
                let seat = Seat { target: target.clone(), ..stands.seat.clone() };
                let pin = Pin::Accepted(stands.build.variant.label.clone());
                lock.champions.insert(pinned(&seat, &stands.class), pin);
            }
        }
    }
}

/// Refuses what stands without having been verified, or timed where times are taken.
fn sound(context: &Context, member: &Member, stands: &Stands) -> Result<(), Failure> {
    let who = format!("{}, champion of {}{},", variant(&stands.build.label), name(&stands.seat), stands.stands_for);
    if let Err(why) = &stands.verified {
        return Err(context.fail(&format!("{who} is not verified: {why}")).into());
    }
    let arch = member.package.targets.get(&stands.seat.target).map(|t| &t.arch);
    if stands.provisional && arch != Some(&Arch::Cpu) {
        let exit = context.fail(&format!("{who} is provisional: no device has timed it"));
        context.console.err("help: build where there is such a device, or import evidence of one\n");
        return Err(exit.into());
    }
    Ok(())
}

/// The kernel that the command names.
fn named<'p>(
    context: &Context,
    packages: &'p Packages,
    args: &AcceptArgs,
) -> Result<(&'p Member, &'p Kernel), Failure> {
    let members = packages.all().filter_map(|p| packages.member(&p.name));
    let mut found = members.filter_map(|m| Some((m, m.package.kernel(&args.kernel)?)));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => {
            context.console.error(&format!("several packages have a kernel `{}`: choose with `-p`", args.kernel));
            Err(Exit::Usage.into())
        }
        (None, _) => {
            context.console.error(&format!("`{}` is no kernel's name: expected the name of one kernel", args.kernel));
            Err(Exit::NothingSelected.into())
        }
    }
}

/// The seats that are selected.
fn seats(member: &Member, kernel: &Kernel, args: &AcceptArgs) -> Vec<Seat> {
    let choices = member.package.operator(&kernel.operator).map(|o| o.choices()).unwrap_or_default();
    let targets = kernel.targets.iter().filter(|t| args.target.is_empty() || args.target.contains(t));
    let both = targets.flat_map(|target| choices.iter().map(move |choice| (target, choice)));
    let of = |(target, choice): (&String, &TypeChoice)| Seat {
        package: member.package.name.clone(),
        kernel: kernel.name.clone(),
        types: choice.label.clone(),
        target: target.clone(),
    };
    both.map(of).collect()
}

/// The lockfile without what was accepted for a kernel.
fn undone(context: &Context, workspace: &Workspace, args: &AcceptArgs) -> Result<Plan, Failure> {
    let mut lock = workspace.lock.clone();
    let takes = |list: &[String], name: &String| list.is_empty() || list.contains(name);
    let frees = |seat: &lockfile::Seat, pin: &Pin| {
        matches!(pin, Pin::Accepted(_))
            && seat.kernel == args.kernel
            && takes(&args.package, &seat.package)
            && takes(&args.target, &seat.target)
            && takes(&args.types, &seat.types)
    };
    lock.champions.retain(|seat, pin| !frees(seat, pin));
    if lock == workspace.lock {
        return Err(context.fail(&format!("nothing of kernel `{}` was accepted", args.kernel)).into());
    }
    Ok(Plan {
        files: vec![],
        lock,
        verb: "Freed",
        told: vec![format!(
            "`{}`: all its variants are built again; a source that was accepted stays, and for rounds kernel.toml has to name an agent again",
            args.kernel
        )],
    })
}

/// Writes all of it, or says what would be written.
fn write(context: &Context, workspace: &Workspace, plan: Plan, dry_run: bool) -> Ran {
    let Plan { mut files, lock, told, verb } = plan;
    let pins = workspace.lock.changes(&lock);
    if context.session.options.locked && !pins.is_empty() {
        return Err(context.fail(&LockfileError::Locked(pins).to_string()).into());
    }
    files.retain(Change::changes);
    for file in &files {
        let verb = if file.before.is_some() { "changes" } else { "is new" };
        context.console.err(&format!("  `{}` {verb}\n", file.path));
    }
    for change in &pins {
        let text = if dry_run { change.clone() } else { lockfile::happens(change) };
        context.console.err(&format!("  {text}\n"));
    }
    let all = files.len() + pins.len();
    if dry_run {
        context.console.status("Summary", &format!("{}, not written", count(all as u64, "change")));
        return Ok(Exit::Done);
    }
    if !pins.is_empty() {
        let text = Change::of(&workspace.root, FILE_NAME, lock.to_text());
        files.push(text.map_err(|e| context.fail(&format!("cannot read `{FILE_NAME}`: {e}")))?);
    }
    changes::write(&workspace.root, &context.session.pending(&workspace.root), &files)
        .map_err(|e| context.fail(&format!("cannot write: {e}")))?;
    told.iter().for_each(|line| context.console.status(verb, line));
    if all == 0 {
        context.console.status("", "nothing changes: it was accepted before");
    }
    Ok(Exit::Done)
}

fn pinned(seat: &Seat, class: &str) -> lockfile::Seat {
    let Seat { package, kernel, types, target } = seat.clone();
    lockfile::Seat { package, kernel, types, target, class: class.into() }
}

/// `p/k/cpu for rows = 2: r1,BLOCK=64, verified and not timed, in ...`.
fn line(stands: &Stands, place: &str) -> String {
    let standing = if stands.provisional { ", verified and not timed," } else { "" };
    format!("{}{}: {}{standing} {place}", name(&stands.seat), stands.stands_for, variant(&stands.build.label))
}

fn variant(label: &str) -> &str {
    if label.is_empty() { "the only variant" } else { label }
}

fn name(seat: &Seat) -> String {
    let parts = [seat.package.as_str(), &seat.kernel, &seat.types, &seat.target];
    parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join("/")
}
