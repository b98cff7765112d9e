//! The regression gate: builds both states, times their champions in pairs if a device is present, and decides which kernels are slower.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::event::Event;
use crate::session::build::{Packages, Ready};
use crate::session::champions::Champion;
use crate::session::open::make_target;
use crate::session::{Opened, Session};
use kforge_engine::{Blobs, BuildOutcome};
use kforge_foundation::base::Digest;
use kforge_foundation::base::files::write_if_changed;
use kforge_pipeline::plan::regression::{self, ChampionPair};
use kforge_pipeline::release::Bundle;
use kforge_pipeline::release::Refused;
use kforge_pipeline::release::archive::{self, EXTENSION};
use kforge_pipeline::release::comparison::{Change, Comparison, Decision, Row, Seat};
use kforge_pipeline::release::comparison_page;
use kforge_pipeline::release::revision::{Revision, RevisionError};
use kforge_project::workspace::Workspace;
use kforge_project::workspace::find::MANIFEST;
use kforge_project::workspace::select::{Selected, SelectionArgs};
use kforge_types::model::{Arch, Target};
use kforge_types::record::Standing;

mod contenders;
mod pairs;
pub(crate) mod sides;

use contenders::lacks_evidence;
use sides::{Seated, Side, Stood};

/// The name of the page in the output folder.
const PAGE: &str = "compare.html";

/// The name of a head that is no revision.
pub(crate) const WORKING_TREE: &str = "the working tree";

/// The request for a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareRequest {
    /// The base: a git revision, a bundle of evidence, or the digest of a stored binary.
    pub base: String,
    /// The head: a git revision; the working tree if none is named.
    pub head: Option<String>,
    /// What to build of both states.
    pub words: SelectionArgs,
    /// The relative difference in time up to which both count as equal.
    pub margin: f64,
    /// Measure again, even if there are records.
    pub remeasure: bool,
    /// The least standing of evidence that is required; none if evidence need not exist.
    pub require_evidence: Option<Standing>,
    /// The number of steps to run in parallel; a negative number means all cores except that many.
    pub jobs: Option<i64>,
}

/// The result of a comparison.
#[derive(Debug)]
pub struct Compared {
    /// The comparison.
    pub comparison: Comparison,
    /// Whether any selected target is timed. If not, only the head was built.
    pub timed: bool,
}

/// Why two states cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// `git` is not on `PATH`, and the name is not that of a file.
    #[error("`{0}` is not a file, and there is no `git` on PATH to look up a revision")]
    NoGit(String),
    /// Git cannot check out a revision.
    #[error("{why}")]
    Revision {
        /// The revision.
        revision: String,
        /// The error of git or of the system.
        why: RevisionError,
    },
    /// A revision has no manifest in the folder in which this workspace has one.
    #[error("`{0}` has no `{MANIFEST}` in the folder of this workspace's")]
    NoManifest(String),
    /// A text is not a digest.
    #[error("`{0}` is not a digest")]
    NoDigest(String),
    /// A binary is not in the store.
    #[error("binary `{0}` is not in the store")]
    NoBinary(String),
    /// A bundle of evidence cannot be used.
    #[error("`{name}` is refused: {why}")]
    Bundle {
        /// Its file, as the user named it.
        name: String,
        /// The reason.
        why: Refused,
    },
    /// A base that is a binary can be compared with only one kernel on one target.
    #[error(
        "a binary is compared with one kernel on one target, but {0} are selected: select one with `-p`, `--kernel` and `--target`"
    )]
    SeveralKernels(usize),
    /// A state could not be built.
    #[error("it could not be built, so nothing was compared")]
    NotBuilt,
    /// The evidence of a state contradicts itself.
    #[error("its evidence contradicts itself, so nothing was compared")]
    Contradicted,
    /// The comparison was interrupted while a state was built or pairs were timed.
    #[error("interrupted")]
    Interrupted,
    /// One of the two states has an error.
    #[error("{error}")]
    Of {
        /// The state.
        name: String,
        /// The error.
        error: Box<Error>,
    },
}

/// Writes a comparison as an HTML page and returns its path: the given one, relative to the session's folder, or `compare.html` in the output folder.
///
/// # Errors
/// The workspace cannot be read, or the file cannot be written.
pub fn write_page(session: &Session, found: &Comparison, path: Option<&Path>) -> Result<PathBuf, Error> {
    let path = match path {
        Some(path) => session.cwd.join(path),
        None => session.target(&session.workspace_and_warnings()?.0).join(PAGE),
    };
    write_if_changed(&path, comparison_page::page(found).as_bytes()).map_err(Error::write(&path))?;
    Ok(path)
}

/// The base of a comparison.
enum Base {
    /// The champions of a state that was built.
    Built(Seated),
    /// A bundle of evidence.
    Bundle(Box<Bundle>),
    /// Machine code, with the launches of the kernel that it is compared with.
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
    let session = &trusting(session, &here, request)?;
    let Some(word) = &request.head else {
        let (selected, timed) = selection(session, &here.workspace, request)?;
        let head = WORKING_TREE.to_string();
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
    // The base is looked up from the workspace in which the user made the request.
    let (base, name) = base(session, &here, (&there.workspace, &timed), request)?;
    let found = Comparison::new(name, head, request.margin);
    compared(&elsewhere, there, selected, (Some(&base), found), request)
}

/// The session that trusts the keys of the base, if it is a revision: the head could add a key of its own. Otherwise those of the tree that the user has.
fn trusting(session: &Session, here: &Opened, request: &CompareRequest) -> Result<Session, Error> {
    let revision = (!is_binary(&request.base) && !is_file(session, &request.base)).then_some(request.base.as_str());
    // A base that is no revision is reported where it is looked up.
    let revision =
        revision.filter(|word| session.git().is_some_and(|git| git.commit(&here.workspace.root, word).is_ok()));
    let found = session.trusted(Some(&here.workspace.root), revision)?;
    Ok(session.trusting(session.told(found)?))
}

/// Whether the base is the digest of a binary.
fn is_binary(word: &str) -> bool {
    word.starts_with("blake3:")
}

/// Whether the base is a bundle.
fn is_file(session: &Session, word: &str) -> bool {
    let path = session.cwd.join(word);
    path.is_file() || path.extension().is_some_and(|e| e == EXTENSION)
}

/// Checks only the correctness of a head that has no timed target. This needs no base.
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

/// What is selected, and the part of it on targets that are timed, if there are any. The head is built for all targets, because a kernel that is wrong on any
/// target must not be accepted. The base is built only for the targets that can be compared.
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

/// Turns an error into an error of the named state.
pub(crate) fn of(name: &str) -> impl Fn(Error) -> Error {
    move |error| CompareError::Of { name: name.into(), error: Box::new(error) }.into()
}

/// A revision, for messages: `v1 (1a2b3c4d5e6f)`.
pub(crate) fn named(word: &str, revision: &Revision) -> String {
    format!("{word} ({})", revision.commit.chars().take(12).collect::<String>())
}

/// Checks out a revision in a folder below the current workspace's outputs.
pub(crate) fn check_out(session: &Session, opened: &Opened, revision: &str) -> Result<Revision, Error> {
    let git = session.git().ok_or_else(|| CompareError::NoGit(revision.into()))?;
    make_target(&opened.target)?;
    let at = opened.workspace.manifest.parent().unwrap_or(&opened.workspace.root);
    let found = git.check_out(at, revision, &opened.target);
    let found = found.map_err(|why| CompareError::Revision { revision: revision.into(), why })?;
    // Otherwise kforge would find a manifest further up, which is not of that revision.
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
        Ok(Compared { comparison: of_head(side, found), timed: base.is_some() })
    })
}

/// The comparison with what is wrong with the head, and what of it was not built.
fn of_head(side: &Side<'_, '_>, found: Comparison) -> Comparison {
    Comparison { unbuilt: side.unbuilt.clone(), wrong: side.wrong.clone(), ..found }
}

/// The base of a comparison whose head is built by somebody else.
pub(crate) struct BuiltBase {
    base: Base,
    /// The base's name, for messages.
    name: String,
}

/// Builds the part of a revision that a selection of a workspace has in common with it.
///
/// # Errors
/// The revision has errors, or it could not be built.
pub(crate) fn build_base(
    session: &Session,
    revision: &Revision,
    (workspace, selected): (&Workspace, &Selected),
    request: &CompareRequest,
) -> Result<BuiltBase, Error> {
    let (base, name) = built_revision(session, revision, (workspace, selected), request)?;
    Ok(BuiltBase { base, name })
}

/// Compares the state that a build gave with a base, and passes on what is wrong with it.
///
/// # Errors
/// A step for a timed target failed, or the comparison was interrupted.
pub(crate) fn with_outcome(
    session: &Session,
    (opened, ready, packages): (&Opened, &Ready<'_>, &Packages),
    outcome: BuildOutcome,
    BuiltBase { base, name }: &BuiltBase,
    (selected, margin): (&Selected, f64),
) -> Result<Comparison, Error> {
    let side = sides::side(session, opened, ready, packages, outcome)?;
    let mut found = Comparison::new(name.clone(), WORKING_TREE.into(), margin);
    rows(session, &side, base, selected, &mut found)?;
    Ok(of_head(&side, found))
}

/// The base, and its name.
fn base(
    session: &Session,
    opened: &Opened,
    (workspace, selected): (&Workspace, &Selected),
    request: &CompareRequest,
) -> Result<(Base, String), Error> {
    let word = request.base.as_str();
    if is_binary(word) {
        let digest: Digest = word.parse().map_err(|_| CompareError::NoDigest(word.into()))?;
        if !opened.store.has(&digest) {
            return Err(CompareError::NoBinary(word.into()).into());
        }
        return Ok((Base::Binary(digest), format!("binary {}", digest.short())));
    }
    let path = session.cwd.join(word);
    if is_file(session, word) {
        let read = archive::read(&path).and_then(|bundle| bundle.check_times(jiff::Timestamp::now()).map(|()| bundle));
        let bundle = read.map_err(|why| CompareError::Bundle { name: word.into(), why })?;
        return Ok((Base::Bundle(Box::new(bundle)), word.to_string()));
    }
    let revision = check_out(session, opened, word)?;
    built_revision(session, &revision, (workspace, selected), request)
}

/// The champions of a revision, and its name.
fn built_revision(
    session: &Session,
    revision: &Revision,
    (workspace, selected): (&Workspace, &Selected),
    request: &CompareRequest,
) -> Result<(Base, String), Error> {
    let name = named(&request.base, revision);
    session.reporter.event(&Event::Building(&name));
    let elsewhere = session.elsewhere(revision.folder.clone(), revision.outputs.clone());
    let of_base = |error| of(&name)(error);
    let other = elsewhere.open().map_err(of_base)?;
    let seated = match sides::counterpart(workspace, selected, &other.workspace) {
        Some(chosen) => {
            let seated = |side: &Side<'_, '_>| Ok(side.seated.clone());
            match sides::built(&elsewhere, other, chosen, request, seated) {
                // The base has such kernels, and none of them for the selected targets.
                Err(Error::NothingToDo { .. }) => Seated::new(),
                built => built.map_err(of_base)?,
            }
        }
        None => Seated::new(),
    };
    Ok((Base::Built(seated), name))
}

/// Compares the states seat by seat.
fn rows(
    session: &Session,
    side: &Side<'_, '_>,
    base: &Base,
    selected: &Selected,
    found: &mut Comparison,
) -> Result<(), Error> {
    let seated = match base {
        Base::Built(seated) => seated.clone(),
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
        Base::Binary(digest) => with_binary(&side.seated, *digest)?,
    };
    // A bundle as the base brings no more than claims, also about what its champions are.
    let claimed = base.bundle().is_some() && side.ready.policy.refuses_claims();
    let mut all: Vec<ChampionPair> = vec![];
    let mut asked: Vec<(&Champion, Result<usize, Decision>)> = vec![];
    for champion in &side.champions {
        let seat = Seat::of(&champion.timed);
        let Some(before) = seated.get(&seat) else { continue };
        let question = if claimed {
            Err(Decision::unknown(format!("what is known of the base is only claimed by `{}`", found.base)))
        } else if champion.spec.key() == before.spec.key() {
            Err(Decision::identical())
        } else {
            regression::pairs(&champion.node, &champion.spec, &before.spec, champion.timed.hot)
                .map(|pair| {
                    all.push(pairs::whole(side, pair));
                    all.len() - 1
                })
                .map_err(|why| Decision::unknown(why.to_string()))
        };
        asked.push((champion, question));
    }
    let mut known = pairs::paired(session, side, all, base.bundle())?;
    for (champion, question) in asked {
        let seat = Seat::of(&champion.timed);
        // Both exist, because the question was asked.
        let (Some(head), Some(before)) = (side.seated.get(&seat), seated.get(&seat)) else { continue };
        let decision = match question {
            Err(decision) => decision,
            Ok(at) => match std::mem::replace(&mut known[at], Err(String::new())) {
                Ok((seen, on)) => Decision::by_pairs(&seen, found.margin, &on),
                Err(why) => pairs::apart(side, &seat, head, before, found.margin, &why),
            },
        };
        let (base, head) = (before.variant.clone(), head.variant.clone());
        let is_open = decision.change == Change::Slower && base != head;
        let decision = match is_open && lacks_evidence(side, champion, &base) {
            true => decision.may_be_faster(&base),
            false => decision,
        };
        found.rows.push(Row { seat, base, head, decision });
    }
    found.added = side.seated.keys().filter(|seat| !seated.contains_key(seat)).cloned().collect();
    for (seat, before) in seated.iter().filter(|(seat, _)| !side.seated.contains_key(seat)) {
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

/// The champions with this binary in place of their own. A binary is that of one kernel on one architecture.
fn with_binary(seated: &Seated, digest: Digest) -> Result<Seated, Error> {
    let mut kernels: Vec<String> =
        seated.keys().map(|s| format!("{}/{} {} {}", s.package, s.kernel, s.types, s.target)).collect();
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
        (seat.clone(), Stood { variant, spec, benches: vec![], refused: None })
    };
    Ok(seated.iter().map(with).collect())
}
