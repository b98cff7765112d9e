//! The sources and the disassembly of what the page of a report compares: champions, declared starts and rivals. Reads the files of the plan, and runs the
//! disassembler on binaries in the store, as far as both are there; it compiles nothing and uses no network. Does not know how a page shows it.

use std::collections::{BTreeMap, BTreeSet};

use crate::Error;
use crate::diff::side::{Disassembled, NO_CODE, Plan};
use crate::diff::{DiffRequest, Seat, seats};
use crate::event::Event;
use crate::session::Session;
use crate::session::build::Ready;
use crate::session::plan::Looking;
use crate::session::request::LastRequest;
use kforge_engine::Node;
use kforge_pipeline::plan::Goal;
use kforge_pipeline::report::Report;
use kforge_pipeline::report::difference::DiffSeat;
use kforge_pipeline::report::page::listings::{Code, Listing, Place, Source, SourceFile, compared};
use kforge_project::workspace::select::SelectionArgs;

/// Why there is neither source nor disassembly after an edit.
const EDITED: &str = "its sources or the manifest have changed since the build";
/// Why there is no step to disassemble a variant.
const GONE: &str = "the plan no longer has it";
/// Why a variant has no source.
const NO_SOURCE: &str = "the plan has no source of it";

/// A variant whose machine code is wanted.
type Wanted = (Place, String);

/// What was found of a variant.
type Found = (Source, Code);

/// Sources and disassemblies for the kernels of a report that have machine code, each variant with the reason if there is none.
pub(crate) fn listings(session: &Session, report: &Report) -> BTreeMap<Place, Vec<Listing>> {
    let mut out: BTreeMap<Place, Vec<Listing>> = BTreeMap::new();
    let mut wanted: Vec<Wanted> = vec![];
    for (place, target) in Place::all(report).filter(|(_, target)| !target.machine.is_empty()) {
        for variant in compared(target) {
            match target.stale.is_some() {
                true => add(&mut out, (place.clone(), variant.into()), nothing(EDITED)),
                false => wanted.push((place.clone(), variant.into())),
            }
        }
    }
    if wanted.is_empty() {
        return out;
    }
    let all = found(&session.without_network(), &wanted);
    let all = all.unwrap_or_else(|error| wanted.iter().map(|_| nothing(&error.to_string())).collect());
    wanted.into_iter().zip(all).for_each(|(wanted, found)| add(&mut out, wanted, found));
    out
}

/// Neither source nor code, for one reason.
fn nothing(why: &str) -> Found {
    (Source::Missing(why.into()), Code::Missing(why.into()))
}

fn add(out: &mut BTreeMap<Place, Vec<Listing>>, (place, variant): Wanted, (source, code): Found) {
    out.entry(place).or_default().push(Listing { variant, source, code });
}

/// The source and the disassembly of each variant, or the reasons.
fn found(session: &Session, wanted: &[Wanted]) -> Result<Vec<Found>, Error> {
    looking(session)?.plan(session, |opened, ready| {
        let plan = Plan::of(session, opened, ready);
        let sources = wanted.iter().map(|wanted| source(&plan, wanted));
        Ok(sources.zip(disassemble(session, &plan, ready, wanted)).collect())
    })
}

/// The files of a variant's source, the one that is compiled first.
fn source(plan: &Plan<'_, '_>, (place, variant): &Wanted) -> Source {
    let seat = DiffSeat {
        package: place.package.clone(),
        kernel: place.kernel.clone(),
        target: place.target.clone(),
        types: place.types.clone(),
        hot: false,
        shapes: vec![],
    };
    let Some((main, files)) = plan.sources(&seat, variant) else { return Source::Missing(NO_SOURCE.into()) };
    let file = |(name, bytes): (String, Option<Vec<u8>>)| SourceFile {
        name,
        text: bytes.and_then(|bytes| String::from_utf8(bytes).ok()),
    };
    let mut files: Vec<SourceFile> = files.into_iter().map(file).collect();
    files.sort_by_key(|file| file.name != main);
    Source::Files(files)
}

/// The plan of the last build: champions depend on what was selected.
fn looking(session: &Session) -> Result<Looking, Error> {
    let everything = SelectionArgs { workspace: true, ..SelectionArgs::default() };
    let everything = session.look(&everything, Goal::Build)?;
    let last = LastRequest::last(&everything.opened.target);
    let last = last.and_then(|last| session.look_with(&last.words(), last.goal(), last.overlay()).ok());
    Ok(last.unwrap_or(everything))
}

fn disassemble(session: &Session, plan: &Plan<'_, '_>, ready: &Ready<'_>, wanted: &[Wanted]) -> Vec<Code> {
    let names = |name: fn(&Place) -> &String| wanted.iter().map(|(place, _)| name(place).clone()).collect();
    let (kernels, targets): (BTreeSet<String>, BTreeSet<String>) =
        (names(|place| &place.kernel), names(|place| &place.target));
    let targets: Vec<String> = targets.into_iter().collect();
    let of_kernel = |kernel| {
        let request = DiffRequest { kernel, targets: targets.clone(), ..DiffRequest::default() };
        seats(ready, &plan.known, &request)
    };
    let seats: Vec<Seat> = kernels.into_iter().flat_map(of_kernel).collect();
    let steps: Vec<Result<Node, String>> = wanted.iter().map(|wanted| step(ready, &seats, wanted)).collect();
    let nodes: Vec<Node> = steps.iter().flatten().cloned().collect();
    let number = nodes.len();
    let begun = || session.reporter.event(&Event::Disassembling(number));
    let mut found = plan.disassembled(nodes, "listing", &begun).into_iter();
    let code = |step: Result<Node, String>| match step {
        Err(why) => Code::Missing(why),
        Ok(_) => match found.next().expect("BUG: a step without an answer") {
            Disassembled::Output(bytes) => Code::Text(String::from_utf8_lossy(&bytes).into_owned()),
            Disassembled::Missing(why) => Code::Missing(why),
        },
    };
    steps.into_iter().map(code).collect()
}

/// The step that disassembles a variant.
fn step(ready: &Ready<'_>, seats: &[Seat], (place, variant): &Wanted) -> Result<Node, String> {
    let is_here = |seat: &&Seat| {
        let of = &seat.seat;
        [&of.package, &of.kernel, &of.target, &of.types] == [&place.package, &place.kernel, &place.target, &place.types]
    };
    let seat = seats.iter().find(is_here).ok_or(GONE)?;
    let build = seat.selected.builds.iter().find(|build| build.label == *variant).ok_or(GONE)?;
    ready.expander.listing(&seat.selected, build).ok_or_else(|| NO_CODE.into())
}
