//! The regression gate: builds both states, has their champions timed in pairs where a device is, and decides which are slower.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::event::Event;
use crate::session::open::make_target;
use crate::session::{Opened, Session};
use kforge_engine::{Blobs, Node};
use kforge_foundation::base::Digest;
use kforge_pipeline::plan::regression;
use kforge_pipeline::release::Bundle;
use kforge_pipeline::release::Refused;
use kforge_pipeline::release::archive::{self, EXTENSION};
use kforge_pipeline::release::comparison::{Comparison, Decision, Row, Seat};
use kforge_pipeline::release::revision::{Git, Revision, RevisionError};
use kforge_project::workspace::Workspace;
use kforge_project::workspace::find::MANIFEST;
use kforge_project::workspace::select::{Selected, SelectionArgs};
use kforge_types::model::{Arch, Target};

mod pairs;
mod sides;

use sides::{Side, Standings, Stood};

/// What is compared with what.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareRequest {
    /// What to compare with: a git revision, a bundle of evidence, or the digest of a stored binary.
    pub base: String,
    /// What to compare: a git revision; the working tree if none is named.
    pub head: Option<String>,
    /// What to build of both.
    pub words: SelectionArgs,
    /// The share of time within which both count as the same.
    pub margin: f64,
    /// Measure again although there are records.
    pub remeasure: bool,
    /// Steps at once; a negative number is cores less that many.
    pub jobs: Option<i64>,
}

/// What a comparison found.
#[derive(Debug)]
pub struct Compared {
    /// The comparison.
    pub comparison: Comparison,
    /// Whether anything selected is timed; where nothing is, only the head was built.
    pub timed: bool,
}

/// Why two states cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// There is no `git`, and the name is that of no file.
    #[error("`{0}` is not a file, and there is no `git` on PATH to look up a revision")]
    NoGit(String),
    /// Git does not check a revision out.
    #[error("{why}")]
    Revision {
        /// The revision.
        revision: String,
        /// What git, or the system, says.
        why: RevisionError,
    },
    /// A revision has no manifest where this workspace has one.
    #[error("`{0}` has no `{MANIFEST}` in the folder of this workspace's")]
    NoManifest(String),
    /// A digest that is none.
    #[error("`{0}` is not a digest")]
    NoDigest(String),
    /// A binary that is not in the store.
    #[error("binary `{0}` is not in the store")]
    NoBinary(String),
    /// A bundle of evidence that cannot be used.
    #[error("`{name}` is refused: {why}")]
    Bundle {
        /// Its file, as it was named.
        name: String,
        /// Why.
        why: Refused,
    },
    /// A binary is that of one kernel on one target.
    #[error(
        "a binary is compared with one kernel on one target, but {0} are selected: select one with `-p`, `--kernel` and `--target`"
    )]
    SeveralKernels(usize),
    /// A state could not be built.
    #[error("it could not be built, so nothing was compared")]
    NotBuilt,
    /// The comparison was interrupted while a state was built or pairs were timed.
    #[error("interrupted")]
    Interrupted,
    /// Something is wrong with one of the two states.
    #[error("{error}")]
    Of {
        /// The state.
        name: String,
        /// What is wrong.
        error: Box<Error>,
    },
}

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

/// Compares two states of a workspace.
///
/// # Errors
/// [`CompareError`], or one of the states cannot be opened.
pub fn compare(session: &Session, request: &CompareRequest) -> Result<Compared, Error> {
    let here = session.open()?;
    let Some(word) = &request.head else {
        let (selected, timed) = selection(session, &here.workspace, request)?;
        let head = "the working tree".to_string();
        let Some(timed) = timed else { return untimed(session, here, selected, head, request) };
        let (base, name) = base(session, &here, (&here.workspace, &timed), request)?;
        let found = Comparison::new(name, head, request.margin);
        return compared(session, here, selected, (Some(&base), found), request);
    };
    let revision = check_out(session, &here, word)?;
    let head = named(word, &revision);
    let elsewhere = session.elsewhere(revision.folder.clone(), revision.outputs.clone());
    let there = elsewhere.open().map_err(of(&head))?;
    let (selected, timed) = selection(&elsewhere, &there.workspace, request)?;
    let Some(timed) = timed else { return untimed(&elsewhere, there, selected, head, request) };
    // Bases are looked for from where the request was made.
    let (base, name) = base(session, &here, (&there.workspace, &timed), request)?;
    let found = Comparison::new(name, head, request.margin);
    compared(&elsewhere, there, selected, (Some(&base), found), request)
}

/// The head alone, where nothing of it is timed: whether it is correct shows without a base.
fn untimed(
    session: &Session,
    opened: Opened,
    selected: Selected,
    head: String,
    request: &CompareRequest,
) -> Result<Compared, Error> {
    let found = Comparison::new(request.base.clone(), head, request.margin);
    compared(session, opened, selected, (None, found), request)
}

/// What is selected, and the same without targets that are not timed, if any is. The head is built for all, because who is wrong anywhere is no champion to go on with; of the
/// base only what can be compared is.
fn selection(
    session: &Session,
    workspace: &Workspace,
    request: &CompareRequest,
) -> Result<(Selected, Option<Selected>), Error> {
    let selected = session.select(workspace, &request.words)?;
    let of_members = selected.members.iter().flat_map(|i| workspace.members[*i].package.targets.values());
    let wanted = |t: &&Target| selected.targets.is_empty() || selected.targets.contains(&t.name);
    let timed: BTreeSet<String> =
        of_members.filter(wanted).filter(|t| t.arch != Arch::Cpu).map(|t| t.name.clone()).collect();
    let timed = (!timed.is_empty()).then(|| Selected { targets: timed.into_iter().collect(), ..selected.clone() });
    Ok((selected, timed))
}

/// Makes an error one of a state.
fn of(name: &str) -> impl Fn(Error) -> Error {
    move |error| CompareError::Of { name: name.into(), error: Box::new(error) }.into()
}

/// A revision for people: `v1 (1a2b3c4d5e6f)`.
fn named(word: &str, revision: &Revision) -> String {
    format!("{word} ({})", revision.commit.chars().take(12).collect::<String>())
}

/// A revision in a folder below the outputs of the workspace at hand.
fn check_out(session: &Session, opened: &Opened, revision: &str) -> Result<Revision, Error> {
    let program = session.environment.path().split(':').map(|folder| Path::new(folder).join("git"));
    let program: Option<PathBuf> = program.into_iter().find(|path| path.is_absolute() && path.is_file());
    let program = program.ok_or_else(|| CompareError::NoGit(revision.into()))?;
    make_target(&opened.target)?;
    let git = Git { program, environment: session.environment.all(), interrupted: &session.interrupted };
    let at = opened.workspace.manifest.parent().unwrap_or(&opened.workspace.root);
    let found = git.check_out(at, revision, &opened.target);
    let found = found.map_err(|why| CompareError::Revision { revision: revision.into(), why })?;
    // Else a manifest further up would be found, which is not of that revision.
    match found.folder.join(MANIFEST).is_file() {
        true => Ok(found),
        false => Err(CompareError::NoManifest(revision.into()).into()),
    }
}

fn compared(
    session: &Session,
    opened: Opened,
    selected: Selected,
    (base, mut found): (Option<&Base>, Comparison),
    request: &CompareRequest,
) -> Result<Compared, Error> {
    session.reporter.event(&Event::Building(&found.head));
    sides::built(session, opened, selected.clone(), request, |side| {
        if let Some(base) = base {
            rows(session, side, base, &selected, &mut found)?;
        }
        found.unbuilt.clone_from(&side.unbuilt);
        found.wrong.clone_from(&side.wrong);
        Ok(Compared { comparison: found, timed: base.is_some() })
    })
}

/// The base, and what it is called.
fn base(
    session: &Session,
    opened: &Opened,
    (workspace, selected): (&Workspace, &Selected),
    request: &CompareRequest,
) -> Result<(Base, String), Error> {
    let word = request.base.as_str();
    if word.starts_with("blake3:") {
        let digest: Digest = word.parse().map_err(|_| CompareError::NoDigest(word.into()))?;
        if !opened.store.has(&digest) {
            return Err(CompareError::NoBinary(word.into()).into());
        }
        return Ok((Base::Binary(digest), format!("binary {}", digest.short())));
    }
    let path = session.cwd.join(word);
    if path.is_file() || path.extension().is_some_and(|e| e == EXTENSION) {
        let bundle = archive::read(&path).map_err(|why| CompareError::Bundle { name: word.into(), why })?;
        return Ok((Base::Bundle(Box::new(bundle)), word.to_string()));
    }
    let revision = check_out(session, opened, word)?;
    let name = named(word, &revision);
    session.reporter.event(&Event::Building(&name));
    let elsewhere = session.elsewhere(revision.folder.clone(), revision.outputs.clone());
    let of_base = |error| of(&name)(error);
    let other = elsewhere.open().map_err(of_base)?;
    let standings = match sides::counterpart(workspace, selected, &other.workspace) {
        Some(chosen) => {
            let standings = |side: &Side<'_, '_>| Ok(side.standings.clone());
            sides::built(&elsewhere, other, chosen, request, standings).map_err(of_base)?
        }
        None => Standings::new(),
    };
    Ok((Base::Built(standings), name))
}

/// Compares seat by seat.
fn rows(
    session: &Session,
    side: &Side<'_, '_>,
    base: &Base,
    selected: &Selected,
    found: &mut Comparison,
) -> Result<(), Error> {
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
        Base::Binary(digest) => with_binary(&side.standings, *digest)?,
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
    let mut known = pairs::paired(session, side, nodes, base.bundle())?;
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
                decision: Decision::unknown("no variant is its champion any more"),
            }),
            false => found.removed.push(seat.clone()),
        }
    }
    found.rows.sort_by(|a, b| a.seat.cmp(&b.seat));
    Ok(())
}

/// Everybody with another binary in the place of their own. One binary is that of one kernel on one architecture.
fn with_binary(standings: &Standings, digest: Digest) -> Result<Standings, Error> {
    let mut kernels: Vec<String> =
        standings.keys().map(|s| format!("{}/{} {} {}", s.package, s.kernel, s.types, s.target)).collect();
    kernels.dedup();
    if kernels.len() > 1 {
        return Err(CompareError::SeveralKernels(kernels.len()).into());
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
