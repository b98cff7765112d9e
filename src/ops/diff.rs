//! How two variants of a kernel differ, or a kernel at two revisions: sources, compilation, machine code, times. Reads plans, stores and evidence. It observes
//! no device and uses no network; what no build has found out yet is reported as missing. Only opcodes are counted here if nobody counted them: that runs the
//! disassembler on a binary in the store, if both are there.
//!
//! | sides | A | B |
//! |---|---|---|
//! | two variants | the first | the second |
//! | one variant | the champion of each class of shapes | the variant |
//! | none | the champion of each class of shapes | the variant that is declared first |
//! | a revision, and variants as above | at the revision: the first variant, or the champion | now: the second variant, the first, or the champion |
//!
//! Where steps before a selection failed, the plan knows no champion, because failures are not stored; then it is that of the last build, as its report has it.

pub(crate) mod side;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::Error;
use crate::build::report::last_of_all_shapes;
use crate::compare::{WORKING_TREE, check_out, named, of};
use crate::session::build::Ready;
use crate::session::request::LastRequest;
use crate::session::{Opened, Session};
use kforge_engine::{Blobs, Node, ReadyResult};
use kforge_pipeline::plan::Goal;
use kforge_pipeline::plan::kernels::Selected;
use kforge_pipeline::report::choice::Chosen;
use kforge_pipeline::report::difference::{DiffDocument, DiffSeat, SelectedHow, difference};
use kforge_pipeline::report::document::TargetReport;
use kforge_project::workspace::select::SelectionArgs;
use kforge_types::record::StepKind;
use kforge_types::record::params::{Champion, Selection};

use side::{Plan, Side};

/// The request for a difference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffRequest {
    /// The kernel.
    pub kernel: String,
    /// The first variant, with its tunables in any order.
    pub a: Option<String>,
    /// The second variant.
    pub b: Option<String>,
    /// A git revision: the first side is of it, and the second of the working tree.
    pub base: Option<String>,
    /// The packages to consider; all if none is named.
    pub packages: Vec<String>,
    /// The targets to consider; if none is named, those of devices, or `cpu` if the kernel has no other.
    pub targets: Vec<String>,
    /// The shapes to show; all if none is named.
    pub shapes: Vec<String>,
}

/// Why there is no difference.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// The kernel is not for such a target or package, or one state does not have it.
    #[error("{state} has no kernel `{kernel}` for this selection")]
    NotThere {
        /// The state.
        state: String,
        /// The kernel.
        kernel: String,
    },
    /// The kernel has no such variant.
    #[error("kernel `{kernel}` has no variant `{variant}` in {state}")]
    NoVariant {
        /// The state.
        state: String,
        /// The kernel.
        kernel: String,
        /// The variant.
        variant: String,
        /// The variants that it has.
        known: Vec<String>,
    },
    /// Several variants have these values.
    #[error("{} variants of kernel `{kernel}` are `{variant}`: expected all of its tunables", known.len())]
    Several {
        /// The kernel.
        kernel: String,
        /// The variant as it was named.
        variant: String,
        /// The variants.
        known: Vec<String>,
    },
    /// No champion is known.
    #[error("no champion of kernel `{kernel}` on {target} is known in {state}")]
    NoChampion {
        /// The state.
        state: String,
        /// The kernel.
        kernel: String,
        /// The target.
        target: String,
    },
    /// Both sides are the same variant of the same state.
    #[error("nothing to compare: `{variant}` is the champion of kernel `{kernel}` on {target}")]
    Same {
        /// The kernel.
        kernel: String,
        /// The target.
        target: String,
        /// The variant.
        variant: String,
        /// The variants that the kernel has.
        known: Vec<String>,
    },
}

/// A kernel on a target for one choice of types, in a plan.
pub(crate) struct Seat {
    pub(crate) seat: DiffSeat,
    pub(crate) selected: Arc<Selected>,
    /// The champion of each class.
    champions: Vec<SeatChampion>,
    on_device: bool,
}

impl Seat {
    /// The classes whose champion is a variant.
    fn champions_of<'s>(&'s self, label: &'s str) -> impl Iterator<Item = &'s SeatChampion> {
        self.champions.iter().filter(move |of| of.variant == label)
    }
}

/// The champion of a class of shapes.
#[derive(Clone)]
struct SeatChampion {
    class: String,
    variant: String,
    how: SelectedHow,
}

/// The same place in another state, with what was found there.
struct BaseSeat {
    seat: DiffSeat,
    champions: Vec<SeatChampion>,
    sides: Vec<Side>,
}

/// The differences of a kernel, one for each target, choice of types and pair of sides.
///
/// # Errors
/// [`DiffError`]; the revision cannot be checked out; or a state cannot be planned.
pub fn diff(session: &Session, request: &DiffRequest) -> Result<Vec<DiffDocument>, Error> {
    let session = &session.without_network();
    if !request.shapes.is_empty() {
        let words = SelectionArgs { shapes: request.shapes.clone(), ..selection(request) };
        session.select(&session.workspace_and_warnings()?.0, &words)?;
    }
    let base = request.base.as_ref().map(|word| at_revision(session, request, word)).transpose()?;
    let everything = session.look(&selection(request), Goal::Build)?;
    let before = LastRequest::last(&everything.opened.target);
    // Champions depend on what was selected, so the plan of the last build comes first.
    let before = before.and_then(|last| session.look_with(&last.words(), last.goal(), last.overlay()).ok());
    for looking in before.into_iter().chain([everything]) {
        let found = looking.plan(session, |opened, ready| {
            let plan = Plan::of(session, opened, ready);
            let mut seats = seats(ready, &plan.known, request);
            add_last_build(session, &mut seats);
            seats.iter().map(|seat| documents(&plan, seat, request, base.as_ref())).collect::<Result<Vec<_>, Error>>()
        })?;
        if !found.is_empty() {
            return Ok(found.into_iter().flatten().collect());
        }
    }
    Err(DiffError::NotThere { state: WORKING_TREE.into(), kernel: request.kernel.clone() }.into())
}

/// The kernel, in every package and for every target.
fn selection(request: &DiffRequest) -> SelectionArgs {
    SelectionArgs { workspace: true, kernels: vec![request.kernel.clone()], ..SelectionArgs::default() }
}

/// Adds the champions of the last build where the plan knows none: steps before the selection failed, and a failure is not stored.
fn add_last_build(session: &Session, seats: &mut [Seat]) {
    if seats.iter().all(|seat| !seat.champions.is_empty()) {
        return;
    }
    let Some(report) = last_of_all_shapes(session) else { return };
    for seat in seats.iter_mut().filter(|seat| seat.champions.is_empty()) {
        let DiffSeat { package, kernel, target, types, .. } = &seat.seat;
        let of_correct = report.at(package, kernel, target, types).any(TargetReport::has_failed_beside_champions);
        let is_planned = |label: &String| seat.selected.builds.iter().any(|build| build.label == *label);
        let champion = |chosen: Chosen| {
            let how = SelectedHow { provisional: chosen.provisional, last_build: true, of_correct };
            Some(SeatChampion { class: chosen.class, variant: chosen.champion.filter(is_planned)?, how })
        };
        let chosen = Chosen::of(&report, package, kernel, (target, types));
        seat.champions = chosen.into_iter().filter_map(champion).collect();
    }
}

/// What a revision has: its name, and each place with the sides that can be asked for.
fn at_revision(session: &Session, request: &DiffRequest, word: &str) -> Result<(String, Vec<BaseSeat>), Error> {
    let opened = session.open()?;
    let revision = check_out(session, &opened, word)?;
    let state = named(word, &revision);
    let elsewhere = session.unheard().elsewhere(revision.folder.clone(), revision.outputs.clone());
    let found = elsewhere.look(&selection(request), Goal::Build).and_then(|looking| {
        looking.plan(&elsewhere, |opened: &Opened, ready| {
            let plan = Plan::of(&elsewhere, opened, ready);
            let seats = seats(ready, &plan.known, request);
            let of_seat = |seat: &Seat| -> Result<BaseSeat, Error> {
                let labels = match &request.a {
                    Some(word) => vec![variant(seat, request, &state, word)?],
                    None => champions(seat, request, &state)?,
                };
                let sides = labels.iter().map(|label| plan.side(seat, label, &state)).collect();
                Ok(BaseSeat { seat: seat.seat.clone(), champions: seat.champions.clone(), sides })
            };
            seats.iter().map(of_seat).collect::<Result<Vec<BaseSeat>, Error>>()
        })
    });
    let found = found.map_err(of(&state))?;
    match found.is_empty() {
        true => Err(DiffError::NotThere { state, kernel: request.kernel.clone() }.into()),
        false => Ok((state, found)),
    }
}

/// The places of the kernel in a plan that the request selects.
pub(crate) fn seats(ready: &Ready<'_>, known: &ReadyResult, request: &DiffRequest) -> Vec<Seat> {
    let takes = |names: &[String], name: &str| names.is_empty() || names.iter().any(|n| n == name);
    let mine = |node: &&Node| {
        node.kind == StepKind::Select
            && node.labels.kernel.as_ref() == Some(&request.kernel)
            && takes(&request.packages, &node.labels.package)
    };
    let of = |node: &Node| -> Option<Seat> {
        // A challenge whose result is not known leaves the champions that it challenges.
        let decided = ready.expander.decided(&node.id);
        // Before anything is known, the plan has only the step that names the variants near the best.
        let selected = decided.or_else(|| ready.expander.nominated(&node.id)).filter(|s| s.stage.is_last)?;
        let about = ready.expander.about(&selected)?;
        let done = known.steps.iter().find(|(other, _)| other.id == node.id).and_then(|(_, done)| done.as_ref());
        let chosen = done.and_then(|done| done.result.as_ref()?.outputs.get("selection").copied());
        let chosen = chosen.and_then(|digest| ready.leaves.get(&digest).ok().flatten());
        let chosen = chosen.and_then(|bytes| serde_json::from_slice::<Selection>(&bytes).ok());
        let label = |order: u32| selected.builds.iter().find(|b| b.variant.order == order).map(|b| b.label.clone());
        let champions = chosen.iter().flat_map(|chosen| &chosen.champions);
        let champion = |c: &Champion| {
            let how = SelectedHow { provisional: c.provisional, ..SelectedHow::default() };
            Some(SeatChampion { class: selected.class_name(&c.class), variant: label(c.variant?)?, how })
        };
        let champions = champions.filter_map(champion).collect();
        let seat = DiffSeat {
            package: node.labels.package.clone(),
            kernel: selected.kernel.clone(),
            target: selected.target.clone(),
            types: selected.choice.label.clone(),
            hot: about.hot,
            shapes: about.shapes.into_iter().map(|(name, _)| name).filter(|s| takes(&request.shapes, s)).collect(),
        };
        Some(Seat { seat, on_device: ready.expander.is_for_device(&selected), selected, champions })
    };
    let mut all: Vec<Seat> = vec![];
    for seat in known.steps.iter().map(|(node, _)| node).filter(mine).filter_map(of) {
        // The step that decides comes after those that nominate.
        let place = |seat: &Seat| [&seat.seat.package, &seat.seat.target, &seat.seat.types].map(Clone::clone);
        match all.iter_mut().find(|known| place(known) == place(&seat)) {
            Some(known) if !known.champions.is_empty() && seat.champions.is_empty() => {}
            Some(known) => *known = seat,
            None => all.push(seat),
        }
    }
    let is_any_on_device = all.iter().any(|seat| seat.on_device);
    let wanted = |seat: &Seat| match request.targets.is_empty() {
        true => seat.on_device || !is_any_on_device,
        false => request.targets.contains(&seat.seat.target),
    };
    all.into_iter().filter(wanted).collect()
}

/// The variant that a word means.
fn variant(seat: &Seat, request: &DiffRequest, state: &str, word: &str) -> Result<String, Error> {
    let labels: Vec<String> = seat.selected.builds.iter().map(|build| build.label.clone()).collect();
    let kernel = request.kernel.clone();
    let wanted: BTreeSet<&str> = word.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    let parts = |label: &str| label.split(',').map(String::from).collect::<BTreeSet<String>>();
    let has_all = |label: &&String| wanted.iter().all(|part| parts(label).contains(*part));
    // Types are one for all variants of a place, and may be left out.
    let types = parts(&seat.seat.types);
    let is_whole = |label: &&String| parts(label).iter().all(|p| wanted.contains(p.as_str()) || types.contains(p));
    let found: Vec<&String> = labels.iter().filter(has_all).filter(|_| !wanted.is_empty()).collect();
    match (found.as_slice(), found.iter().copied().find(is_whole)) {
        ([only], _) => Ok((*only).clone()),
        (_, Some(whole)) => Ok(whole.clone()),
        ([], None) => {
            Err(DiffError::NoVariant { state: state.into(), kernel, variant: word.into(), known: labels }.into())
        }
        (several, None) => {
            let known = several.iter().map(|label| (*label).clone()).collect();
            Err(DiffError::Several { kernel, variant: word.into(), known }.into())
        }
    }
}

/// The champions of a place, each once.
fn champions(seat: &Seat, request: &DiffRequest, state: &str) -> Result<Vec<String>, Error> {
    let mut all: Vec<String> = vec![];
    for SeatChampion { variant, .. } in &seat.champions {
        if !all.contains(variant) {
            all.push(variant.clone());
        }
    }
    if all.is_empty() {
        let (kernel, target) = (request.kernel.clone(), seat.seat.target.clone());
        return Err(DiffError::NoChampion { state: state.into(), kernel, target }.into());
    }
    Ok(all)
}

/// The differences at a place.
fn documents(
    plan: &Plan<'_, '_>,
    seat: &Seat,
    request: &DiffRequest,
    base: Option<&(String, Vec<BaseSeat>)>,
) -> Result<Vec<DiffDocument>, Error> {
    let side = |label: &String| plan.side(seat, label, WORKING_TREE);
    let named = |word: &String| variant(seat, request, WORKING_TREE, word);
    let pairs: Vec<(Side, Side)> = match base {
        Some((state, seats)) => {
            let at = |other: &&BaseSeat| {
                DiffSeat { shapes: vec![], hot: false, ..other.seat.clone() }
                    == DiffSeat { shapes: vec![], hot: false, ..seat.seat.clone() }
            };
            let Some(other) = seats.iter().find(at) else {
                return Err(DiffError::NotThere { state: state.clone(), kernel: request.kernel.clone() }.into());
            };
            against(other, seat, request, &named)?.into_iter().map(|(a, b)| (a, side(&b))).collect()
        }
        None => {
            let labels = labels(seat, request, &named)?;
            labels.iter().map(|(a, b)| (side(a), side(b))).collect()
        }
    };
    let document = |(a, b): (Side, Side)| -> Result<DiffDocument, Error> {
        let paired = plan.paired(&seat.seat, &a, &b)?;
        Ok(difference(seat.seat.clone(), a.found, b.found, paired))
    };
    pairs.into_iter().map(document).collect()
}

/// The two variants of one state, or the champions with one variant.
fn labels(
    seat: &Seat,
    request: &DiffRequest,
    named: &dyn Fn(&String) -> Result<String, Error>,
) -> Result<Vec<(String, String)>, Error> {
    if let (Some(a), Some(b)) = (&request.a, &request.b) {
        return Ok(vec![(named(a)?, named(b)?)]);
    }
    let champions = champions(seat, request, WORKING_TREE)?;
    let declared = || seat.selected.builds.iter().map(|build| &build.label);
    let other = match &request.a {
        Some(word) => named(word)?,
        // The first one that is another.
        None => declared().find(|label| !champions.contains(label)).or(declared().next()).cloned().unwrap_or_default(),
    };
    let pairs: Vec<(String, String)> =
        champions.into_iter().filter(|champion| *champion != other).map(|c| (c, other.clone())).collect();
    match pairs.is_empty() {
        true => Err(DiffError::Same {
            kernel: request.kernel.clone(),
            target: seat.seat.target.clone(),
            known: seat.selected.builds.iter().map(|b| b.label.clone()).filter(|label| *label != other).collect(),
            variant: other,
        }
        .into()),
        false => Ok(pairs),
    }
}

/// The sides of a revision with the variants of the working tree that they are compared with.
fn against(
    base: &BaseSeat,
    seat: &Seat,
    request: &DiffRequest,
    named: &dyn Fn(&String) -> Result<String, Error>,
) -> Result<Vec<(Side, String)>, Error> {
    let now = match request.b.as_ref().or(request.a.as_ref()) {
        Some(word) => Some(named(word)?),
        None => None,
    };
    let mut out: Vec<(Side, String)> = vec![];
    let current = champions(seat, request, WORKING_TREE);
    for side in &base.sides {
        // Champions are compared with the champions of the same class, or with all if the classes are others.
        let classes: Vec<&String> =
            base.champions.iter().filter(|of| of.variant == side.found.variant).map(|of| &of.class).collect();
        let same: Vec<String> =
            seat.champions.iter().filter(|of| classes.contains(&&of.class)).map(|of| of.variant.clone()).collect();
        let others = match (&now, same.is_empty()) {
            (Some(label), _) => vec![label.clone()],
            (None, false) => same,
            (None, true) => current.as_ref().map(Clone::clone).unwrap_or_default(),
        };
        for label in others {
            if !out.iter().any(|(a, b)| a.found.variant == side.found.variant && *b == label) {
                out.push((side.clone(), label));
            }
        }
    }
    // Without a champion now, there is nothing to compare with.
    match out.is_empty() {
        true => current.map(|_| out),
        false => Ok(out),
    }
}
