//! `kforge compare`: the regression gate. Builds both states, has their champions timed in pairs where a device is, and says which are slower.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::build::interrupts;
use super::print_json;
use crate::cli::args::{CompareArgs, CompareFormat};
use crate::cli::exit::Exit;
use crate::cli::session::open::make_target;
use crate::cli::session::{Context, Opened};
use kforge_engine::{Blobs, Node};
use kforge_foundation::base::Digest;
use kforge_pipeline::plan::regression;
use kforge_pipeline::release::Bundle;
use kforge_pipeline::release::archive::{self, EXTENSION};
use kforge_pipeline::release::comparison::{Change, Comparison, Decision, Row, Seat};
use kforge_pipeline::release::revision::{Git, Revision};
use kforge_project::workspace::Workspace;
use kforge_project::workspace::find::MANIFEST;
use kforge_project::workspace::select::Selected;
use kforge_types::model::{Arch, Target};

mod pairs;
mod sides;

use sides::{Side, Standings, Stood};

/// What is compared with.
enum Base {
    /// A state that was built.
    Built(Standings),
    /// What a bundle says.
    Bundle(Box<Bundle>),
    /// Machine code, under the launches of whoever it is compared with.
    Binary(Digest),
}

impl Base {
    fn bundle(&self) -> Option<&Bundle> {
        match self {
            Base::Bundle(bundle) => Some(bundle),
            _ => None,
        }
    }
}

/// Runs the command.
pub fn run(context: &Context, args: &CompareArgs) -> Result<Exit, Exit> {
    let interrupted = interrupts(context)?;
    let here = context.open()?;
    let Some(word) = &args.head else {
        let (selected, timed) = selection(context, &here.workspace, args)?;
        let head = "the working tree".to_string();
        let Some(timed) = timed else { return untimed(context, here, selected, head, args, &interrupted) };
        let (base, name) = base(context, &here, (&here.workspace, &timed), args, &interrupted)?;
        let found = Comparison::new(name, head, args.margin);
        return compare(context, here, selected, (Some(&base), found), args, &interrupted);
    };
    let revision = check_out(context, &here, word, &interrupted)?;
    let head = named(word, &revision);
    let elsewhere = context.elsewhere(revision.folder.clone(), revision.outputs.clone());
    let there = elsewhere.open().map_err(|exit| of(context, &head, exit))?;
    let (selected, timed) = selection(&elsewhere, &there.workspace, args)?;
    let Some(timed) = timed else { return untimed(&elsewhere, there, selected, head, args, &interrupted) };
    // Bases are looked for from where the command stands.
    let (base, name) = base(context, &here, (&there.workspace, &timed), args, &interrupted)?;
    let found = Comparison::new(name, head, args.margin);
    compare(&elsewhere, there, selected, (Some(&base), found), args, &interrupted)
}

/// The head alone, where nothing of it is timed: whether it is right shows without a base.
fn untimed(
    context: &Context,
    opened: Opened,
    selected: Selected,
    head: String,
    args: &CompareArgs,
    interrupted: &Arc<AtomicBool>,
) -> Result<Exit, Exit> {
    let found = Comparison::new(args.base.clone(), head, args.margin);
    compare(context, opened, selected, (None, found), args, interrupted)
}

/// What is selected, and the same without targets that are not timed, if any is. The head is built for all, because who is wrong anywhere is no champion to go on with; of the
/// base only what can be compared is.
fn selection(
    context: &Context,
    workspace: &Workspace,
    args: &CompareArgs,
) -> Result<(Selected, Option<Selected>), Exit> {
    let selected = context.select(workspace, &args.select)?;
    let of_members = selected.members.iter().flat_map(|i| workspace.members[*i].package.targets.values());
    let wanted = |t: &&Target| selected.targets.is_empty() || selected.targets.contains(&t.name);
    let timed: BTreeSet<String> =
        of_members.filter(wanted).filter(|t| t.arch != Arch::Cpu).map(|t| t.name.clone()).collect();
    let timed = (!timed.is_empty()).then(|| Selected { targets: timed.into_iter().collect(), ..selected.clone() });
    Ok((selected, timed))
}

/// Says which of the two states an error is about.
fn of(context: &Context, name: &str, exit: Exit) -> Exit {
    context.console.err(&format!("help: this was said of `{name}`\n"));
    exit
}

/// A revision for people: `v1 (1a2b3c4d5e6f)`.
fn named(word: &str, revision: &Revision) -> String {
    format!("{word} ({})", revision.commit.chars().take(12).collect::<String>())
}

/// A revision in a folder below the outputs of the workspace at hand.
fn check_out(
    context: &Context,
    opened: &Opened,
    revision: &str,
    interrupted: &Arc<AtomicBool>,
) -> Result<Revision, Exit> {
    let program = context.environment.path().split(':').map(|folder| Path::new(folder).join("git"));
    let program: Option<PathBuf> = program.into_iter().find(|path| path.is_absolute() && path.is_file());
    let program = program.ok_or_else(|| {
        context.fail(&format!("`{revision}` is no file, and there is no `git` on PATH that could know a revision"))
    })?;
    make_target(&opened.target).map_err(|e| context.fail(&e.to_string()))?;
    let git = Git { program, environment: context.environment.all(), interrupted };
    let at = opened.workspace.manifest.parent().unwrap_or(&opened.workspace.root);
    let found = git.check_out(at, revision, &opened.target).map_err(|e| context.fail(&e))?;
    // Else a manifest further up would be found, which is not of that revision.
    match found.folder.join(MANIFEST).is_file() {
        true => Ok(found),
        false => Err(context.fail(&format!("`{revision}` has no `{MANIFEST}` in the folder of this one"))),
    }
}

fn compare(
    context: &Context,
    opened: Opened,
    selected: Selected,
    (base, mut found): (Option<&Base>, Comparison),
    args: &CompareArgs,
    interrupted: &Arc<AtomicBool>,
) -> Result<Exit, Exit> {
    context.console.status("Building", &found.head);
    sides::built(context, opened, selected.clone(), args, interrupted, |side| {
        if let Some(base) = base {
            rows(context, side, base, &selected, &mut found)?;
        }
        found.unbuilt.clone_from(&side.unbuilt);
        found.wrong.clone_from(&side.wrong);
        say(context, args, &found)?;
        Ok(exit(context, args, base.is_some(), &found))
    })
}

/// The base, and what it is called.
fn base(
    context: &Context,
    opened: &Opened,
    (workspace, selected): (&Workspace, &Selected),
    args: &CompareArgs,
    interrupted: &Arc<AtomicBool>,
) -> Result<(Base, String), Exit> {
    let word = args.base.as_str();
    if word.starts_with("blake3:") {
        let digest: Digest = word.parse().map_err(|_| context.fail(&format!("`{word}` is no digest")))?;
        if !opened.store.has(&digest) {
            return Err(context.fail(&format!("binary `{word}` is not in the store")));
        }
        return Ok((Base::Binary(digest), format!("binary {}", digest.short())));
    }
    let path = context.cwd.join(word);
    if path.is_file() || path.extension().is_some_and(|e| e == EXTENSION) {
        let bundle = archive::read(&path).map_err(|e| context.fail(&format!("`{word}` is refused: {e}")))?;
        return Ok((Base::Bundle(Box::new(bundle)), word.to_string()));
    }
    let revision = check_out(context, opened, word, interrupted)?;
    let name = named(word, &revision);
    context.console.status("Building", &name);
    let elsewhere = context.elsewhere(revision.folder.clone(), revision.outputs.clone());
    let of_base = |exit| of(context, &name, exit);
    let other = elsewhere.open().map_err(of_base)?;
    let standings = match sides::counterpart(workspace, selected, &other.workspace) {
        Some(chosen) => {
            let standings = |side: &Side<'_, '_>| Ok(side.standings.clone());
            sides::built(&elsewhere, other, chosen, args, interrupted, standings).map_err(of_base)?
        }
        None => Standings::new(),
    };
    Ok((Base::Built(standings), name))
}

/// Compares seat by seat.
fn rows(
    context: &Context,
    side: &Side<'_, '_>,
    base: &Base,
    selected: &Selected,
    found: &mut Comparison,
) -> Result<(), Exit> {
    let standings = match base {
        Base::Built(standings) => standings.clone(),
        Base::Bundle(bundle) => {
            let takes = |names: &[String], name: &String| names.is_empty() || names.contains(name);
            let members = selected.members.iter().map(|i| side.opened.workspace.members[*i].package.name.clone());
            let members: Vec<String> = members.collect();
            let fits = |seat: &Seat| {
                members.contains(&seat.package)
                    && takes(&selected.kernels, &seat.kernel)
                    && takes(&selected.targets, &seat.target)
                    && takes(&selected.shapes, &seat.shape)
            };
            sides::of_bundle(bundle).into_iter().filter(|(seat, _)| fits(seat)).collect()
        }
        Base::Binary(digest) => with_binary(context, &side.standings, *digest)?,
    };
    let mut nodes: Vec<Node> = vec![];
    let mut asked: Vec<(Seat, Result<usize, Decision>)> = vec![];
    for champion in &side.champions {
        let seat = Seat::of(&champion.standing);
        let Some(before) = standings.get(&seat) else { continue };
        let question = if champion.spec.key() == before.spec.key() {
            Err(Decision::identical())
        } else {
            regression::pairs(&champion.node, &champion.spec, &before.spec, champion.standing.hot)
                .map(|node| {
                    nodes.push(pairs::whole(side, node));
                    nodes.len() - 1
                })
                .map_err(|why| Decision::unknown(why.to_string()))
        };
        asked.push((seat, question));
    }
    let mut known = pairs::paired(context, side, nodes, base.bundle())?;
    for (seat, question) in asked {
        // Both are there, or it would not have been asked.
        let (Some(head), Some(before)) = (side.standings.get(&seat), standings.get(&seat)) else { continue };
        let decision = match question {
            Err(decision) => decision,
            Ok(at) => match std::mem::replace(&mut known[at], Err(String::new())) {
                Ok((seen, on)) => Decision::by_pairs(&seen.blocks, found.margin, &on),
                Err(why) => pairs::apart(side, &seat, head, before, found.margin, &why),
            },
        };
        let (base, head) = (before.variant.clone(), head.variant.clone());
        found.rows.push(Row { seat, base, head, decision });
    }
    found.added = side.standings.keys().filter(|seat| !standings.contains_key(seat)).cloned().collect();
    for (seat, before) in standings.iter().filter(|(seat, _)| !side.standings.contains_key(seat)) {
        let Seat { package, kernel, target, shape, .. } = seat.clone();
        match side.timed.contains(&[package, kernel, target, shape]) {
            true => found.rows.push(Row {
                seat: seat.clone(),
                base: before.variant.clone(),
                head: "none".into(),
                decision: Decision::unknown("no variant stands for it any more"),
            }),
            false => found.removed.push(seat.clone()),
        }
    }
    found.rows.sort_by(|a, b| a.seat.cmp(&b.seat));
    Ok(())
}

/// Everybody with another binary in the place of their own. One binary is that of one kernel on one architecture.
fn with_binary(context: &Context, standings: &Standings, digest: Digest) -> Result<Standings, Exit> {
    let mut kernels: Vec<String> =
        standings.keys().map(|s| format!("{}/{} {} {}", s.package, s.kernel, s.types, s.target)).collect();
    kernels.dedup();
    if kernels.len() > 1 {
        context.console.error(&format!(
            "a binary is compared with one kernel on one target, and {} are selected: choose with `-p`, `--kernel` and `--target`",
            kernels.len()
        ));
        return Err(Exit::Usage);
    }
    let with = |(seat, stood): (&Seat, &Stood)| {
        let mut spec = stood.spec.clone();
        if let Some(binary) = spec.inputs.get_mut("binary") {
            binary.digest = Some(digest);
        }
        let variant = format!("binary {}", digest.short());
        (seat.clone(), Stood { variant, spec, benches: vec![] })
    };
    Ok(standings.iter().map(with).collect())
}

/// Prints the comparison as it was asked for.
fn say(context: &Context, args: &CompareArgs, found: &Comparison) -> Result<(), Exit> {
    match args.message_format {
        CompareFormat::Human => context.console.out(&found.text()),
        CompareFormat::Markdown => context.console.out(&found.markdown()),
        CompareFormat::Json => drop(print_json(context, found)?),
    }
    Ok(())
}

/// How it ends, `timed` being whether anything selected is: several reasons at once give the first of 101, 100, 4, 102, 103.
fn exit(context: &Context, args: &CompareArgs, timed: bool, found: &Comparison) -> Exit {
    let text = format!("{} with {}: {}", found.head, found.base, found.conclusion());
    let is_wrong = !found.wrong.is_empty();
    for unbuilt in &found.unbuilt {
        match unbuilt.failed {
            true => context.console.error(&unbuilt.to_string()),
            false => context.console.warn(&unbuilt.to_string()),
        }
    }
    if found.unbuilt.iter().any(|unbuilt| unbuilt.failed) {
        let wrong = if is_wrong { "a kernel is wrong, and " } else { "" };
        context.console.error(&format!("{wrong}not all could be built; {text}"));
        context.console.err("help: `--target` with the targets that are to be compared leaves the others out\n");
        return Exit::NotBuilt;
    }
    if is_wrong {
        context.console.error(&format!("a kernel is wrong; {text}"));
        return Exit::Wrong;
    }
    if !timed {
        let why = "nothing can be compared: the selection has no target on a device, and `cpu` is not timed";
        context.console.error(why);
        return Exit::NothingSelected;
    }
    if found.rows.is_empty() {
        context.console.error(&format!(
            "nothing was compared: no kernel that is timed on a device target is in both {} and {}",
            found.head, found.base
        ));
        return Exit::NothingSelected;
    }
    let open = found.count(Change::Undecided) + found.count(Change::Unknown);
    if found.count(Change::Slower) > 0 {
        context.console.error(&format!("slower than allowed; {text}"));
        Exit::Slower
    } else if args.require_evidence && open > 0 {
        context.console.error(&format!("evidence was required and is missing or does not decide; {text}"));
        Exit::NoEvidence
    } else {
        context.console.status("Compared", &text);
        Exit::Done
    }
}
