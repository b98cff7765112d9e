//! `kforge run`: one variant of a kernel on one shape, on `cpu`, or any one step, and what it gave.

use std::collections::HashSet;

use super::build::interrupts;
use super::failures::{self, Teller};
use crate::cli::args::{RunArgs, Select};
use crate::cli::exit::Exit;
use crate::cli::session::build::{Asked, Packages, Ready};
use crate::cli::session::places::Places;
use crate::cli::session::{Context, Opened};
use kforge_engine::{Blobs, Graph, Node};
use kforge_foundation::base::Diagnostic;
use kforge_pipeline::plan::Goal;
use kforge_pipeline::report::single::{Single, text};
use kforge_pipeline::report::step_text::{compiled, inspected};
use kforge_pipeline::step::judge::TOLERATED;
use kforge_project::workspace::select::Selected;
use kforge_types::model::{Arch, Package};
use kforge_types::record::event::Event;
use kforge_types::record::params::{Judgement, VerifyParams};
use kforge_types::record::{Outcome, StepKind, StepResult, Verdict, VerifyObservation};

/// Runs the command.
pub fn run(context: &Context, args: &RunArgs) -> Result<Exit, Exit> {
    if args.what.contains('/') { step(context, args) } else { kernel(context, args) }
}

/// One variant of a kernel on one shape.
fn kernel(context: &Context, args: &RunArgs) -> Result<Exit, Exit> {
    let opened = context.open()?;
    let words = Select {
        package: args.package.iter().cloned().collect(),
        // A kernel is looked for everywhere unless a package is named.
        workspace: args.package.is_none(),
        kernel: vec![args.what.clone()],
        ..Select::default()
    };
    let mut selected = context.select(&opened.workspace, &words)?;
    let having = |i: &usize| opened.workspace.members[*i].package.kernel(&args.what).is_some();
    selected.members.retain(having);
    let packages: Vec<&Package> = selected.members.iter().map(|i| &opened.workspace.members[*i].package).collect();
    let package = match packages.as_slice() {
        [package] => *package,
        [] => {
            let error = Diagnostic::error("run.kernel", format!("no kernel is called `{}`", args.what));
            context.console.diagnostic(&error.expected("the name of one kernel, or the id of a step"));
            return Err(Exit::NothingSelected);
        }
        several => {
            let names: Vec<String> = several.iter().map(|p| format!("`{}`", p.name)).collect();
            let error = Diagnostic::error("run.package", format!("several packages have a kernel `{}`", args.what))
                .expected(format!("`-p` with one of {}", names.join(", ")));
            context.console.diagnostic(&error);
            return Err(Exit::NothingSelected);
        }
    };
    let Some(cpu) = package.targets.values().find(|t| t.arch == Arch::Cpu).map(|t| t.name.clone()) else {
        return Err(context
            .fail(&format!("package `{}` has no `cpu` target, and this version runs on nothing else", package.name)));
    };
    selected.targets = vec![cpu];
    let asked = asked(selected, args, Goal::Verify);
    let packages = context.packages(&opened, &asked)?;
    let shape = shape(context, args, &packages)?;
    let asked = Asked { selected: Selected { shapes: vec![shape.clone()], ..asked.selected }, ..asked };
    build(context, opened, &packages, &asked, |_, ready| {
        let judge = choose(context, args, &shape, &ready.graph)?;
        Ok((ready.graph.clone(), judge))
    })
}

/// The shape that was named, or the only one there is.
fn shape(context: &Context, args: &RunArgs, packages: &Packages) -> Result<String, Exit> {
    let operators = || packages.all().filter_map(|p| p.operator(&p.kernel(&args.what)?.operator));
    let known: Vec<&str> = operators().flat_map(|o| &o.shapes).map(|s| s.name.as_str()).collect();
    let listed = known.iter().take(12).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    let error = match (&args.shape, known.as_slice()) {
        (Some(named), _) if known.contains(&named.as_str()) => return Ok(named.clone()),
        (None, [only]) => return Ok((*only).to_string()),
        (Some(named), _) => Diagnostic::error("run.shape", format!("`{}` has no shape `{named}`", args.what))
            .suggest(named, known.iter().copied()),
        (None, _) => {
            Diagnostic::error("run.shape", format!("`{}` has {} shapes, and none was named", args.what, known.len()))
        }
    };
    context.console.diagnostic(&error.expected(format!("`--shape` with one of {listed}")));
    Err(if args.shape.is_some() { Exit::NothingSelected } else { Exit::Usage })
}

/// One step, whatever its kind and target, with what it needs.
fn step(context: &Context, args: &RunArgs) -> Result<Exit, Exit> {
    let opened = context.open()?;
    let first = args.what.split('/').next().unwrap_or_default();
    let named = opened.workspace.members.iter().any(|m| m.package.name == first);
    let words = Select {
        package: args.package.clone().or(named.then(|| first.to_string())).into_iter().collect(),
        workspace: !named && args.package.is_none(),
        ..Select::default()
    };
    let selected = context.select(&opened.workspace, &words)?;
    let asked = asked(selected, args, Goal::Build);
    let packages = context.packages(&opened, &asked)?;
    build(context, opened, &packages, &asked, |opened, ready| {
        let graph = ready.with_services(context, opened, |services| {
            kforge_engine::expanded(ready.graph.clone(), &ready.options, services)
        });
        let id = super::explain::find(context, &args.what, graph.nodes().map(|n| n.id.as_str()))?;
        // What a verification saw is shown with what was judged of it.
        let judge = id.strip_suffix("/verify").map(|owner| format!("{owner}/{}", StepKind::Judge));
        let id = judge.filter(|judge| graph.find(judge).is_some()).unwrap_or(id);
        let node = graph.find(&id).map(|i| graph.node(i).clone());
        node.map(|node| (graph, node)).ok_or(Exit::NothingSelected)
    })
}

fn asked(selected: Selected, args: &RunArgs, goal: Goal) -> Asked {
    let overlay = args.overlay.clone();
    Asked { selected, goal, jobs: None, keep_going: true, remeasure: false, overlay, write: true, looks: false }
}

/// Builds the step that `choose` finds, with what it needs and nothing else, and shows what it gave.
fn build(
    context: &Context,
    mut opened: Opened,
    packages: &Packages,
    asked: &Asked,
    choose: impl FnOnce(&Opened, &Ready<'_>) -> Result<(Graph, Node), Exit>,
) -> Result<Exit, Exit> {
    let interrupted = interrupts(context)?;
    let mut ready = context.ready(&mut opened, packages, asked, &interrupted)?;
    let (graph, wanted) = choose(&opened, &ready)?;
    ready.graph = alone(context, &graph, &wanted.id)?;
    let outcome = {
        let graph = ready.graph.clone();
        let places = Places::new(&ready.graph, &ready.journal, &*ready.leaves);
        let mut teller = Teller::new(context, packages.all());
        let mut on_event = |event: Event| {
            if let Event::StepFinished(step) = &places.event(event)
                && matches!(step.outcome, Outcome::Failed(_))
            {
                teller.tell(step);
            }
        };
        ready.with_services(context, &opened, |services| {
            kforge_engine::build(graph, &ready.options, services, &mut on_event)
        })
    };
    ready.journal.flush().map_err(|e| context.fail(&e.to_string()))?;
    if outcome.interrupted {
        return Err(Exit::Interrupted);
    }
    let exit = match wanted.kind {
        StepKind::Judge | StepKind::Verify => show(context, &ready, &outcome, &wanted),
        _ => Ok(ended(context, &ready, &outcome, &wanted)),
    }?;
    super::cache::collect_sometimes(context, &opened.home);
    Ok(exit)
}

/// What became of a step that gives no elements to show, in a line, with what it noted.
fn ended(context: &Context, ready: &Ready<'_>, outcome: &kforge_engine::BuildOutcome, wanted: &Node) -> Exit {
    let Some(done) = outcome.step(&wanted.id) else { return Exit::NothingSelected };
    let places = Places::new(&outcome.graph, &ready.journal, &*ready.leaves);
    let text = match &done.outcome {
        Outcome::Executed => "executed".into(),
        Outcome::Fresh => "fresh: its result was known".into(),
        Outcome::Unavailable(why) => format!("unavailable: {why}"),
        Outcome::Skipped(root) => format!("skipped: `{root}` gave nothing"),
        Outcome::Failed(why) => format!("failed: {why}"),
    };
    context.console.out(&format!("{} {text}\n", wanted.id));
    let result = done.result.as_ref();
    if let Some(text) = result.and_then(|result| made(ready, result, wanted)) {
        context.console.out_fitted(&text);
    }
    for note in result.iter().flat_map(|r| &r.notes) {
        context.console.out(&failures::indented(&places.text(&wanted.id, &note.message)));
    }
    match result.and_then(|r| r.verdict.as_ref()) {
        Some(Verdict::Fail(why)) => {
            context.console.out(&format!("  fail: {}\n", places.text(&wanted.id, why)));
            Exit::Wrong
        }
        _ if outcome.counts.failed > 0 => Exit::NotBuilt,
        _ => Exit::Done,
    }
}

/// What a compile or an inspect step made, as text; none of other steps, and where it made nothing.
fn made(ready: &Ready<'_>, result: &StepResult, wanted: &Node) -> Option<String> {
    let name = match wanted.kind {
        StepKind::Compile => "facts",
        StepKind::Inspect => "inspection",
        _ => return None,
    };
    let digest = result.outputs.get(name)?;
    let Some(bytes) = ready.leaves.get(digest).ok().flatten() else {
        return Some("  its result is gone from the store\n".into());
    };
    match wanted.kind {
        StepKind::Compile => {
            let params = serde_json::from_value(wanted.params.clone()).ok()?;
            Some(compiled(&serde_json::from_slice(&bytes).ok()?, &params))
        }
        _ => Some(inspected(&serde_json::from_slice(&bytes).ok()?)),
    }
}

/// The judge step that was asked for: of that variant, or of the first in declared order.
fn choose(context: &Context, args: &RunArgs, shape: &str, graph: &Graph) -> Result<Node, Exit> {
    let judges: Vec<&Node> = graph.nodes().filter(|n| n.kind == StepKind::Judge).collect();
    let labels: Vec<&str> = judges.iter().filter_map(|n| n.labels.variant.as_deref()).collect();
    let found = match &args.variant {
        None => judges.first(),
        // As people write it: in any order, and types may be left out where only one choice is left.
        Some(wanted) => judges
            .iter()
            .find(|n| n.labels.variant.as_deref() == Some(wanted))
            .or_else(|| judges.iter().find(|n| n.labels.variant.as_deref().is_some_and(|l| means(wanted, l)))),
    };
    if let Some(judge) = found {
        return Ok((*judge).clone());
    }
    let error = match &args.variant {
        Some(wanted) => {
            let listed: Vec<String> = labels.iter().take(12).map(|l| format!("`{l}`")).collect();
            Diagnostic::error("run.variant", format!("no variant `{wanted}` of `{}` serves shape `{shape}`", args.what))
                .expected(format!("one of {}", listed.join(", ")))
                .suggest(wanted, labels.iter().copied())
        }
        None => {
            Diagnostic::error("run.variant", format!("kernel `{}` has nothing for shape `{shape}` on `cpu`", args.what))
                .hint("its operator has no such shape, or no variant serves it")
        }
    };
    context.console.diagnostic(&error);
    Err(Exit::NothingSelected)
}

/// Whether every `NAME=VALUE` of `wanted` is in the label.
fn means(wanted: &str, label: &str) -> bool {
    let parts: HashSet<&str> = label.split(',').collect();
    !wanted.is_empty() && wanted.split(',').all(|p| parts.contains(p.trim()))
}

/// The graph of one node and what it needs.
fn alone(context: &Context, graph: &Graph, id: &str) -> Result<Graph, Exit> {
    let mut open: Vec<u32> = graph.find(id).into_iter().collect();
    let mut needed: HashSet<u32> = HashSet::new();
    while let Some(at) = open.pop() {
        if needed.insert(at) {
            // No verification reads another: it only waits for those that tell more.
            let verifies = graph.node(at).kind == StepKind::Verify;
            open.extend(graph.dependencies(at).filter(|d| !(verifies && graph.node(*d).kind == StepKind::Verify)));
        }
    }
    let is_needed = |id: &String| graph.find(id).is_some_and(|i| needed.contains(&i));
    // What its result would add was not asked for.
    let bare = |n: &Node| {
        let after = n.after.iter().filter(|id| is_needed(id)).cloned().collect();
        Node { expands: false, after, ..n.clone() }
    };
    let nodes = (0u32..).zip(graph.nodes()).filter(|(i, _)| needed.contains(i)).map(|(_, n)| bare(n)).collect();
    Graph::new(nodes).map_err(|e| {
        context.console.error(&format!("BUG: {e}"));
        Exit::Bug
    })
}

fn show(
    context: &Context,
    ready: &Ready<'_>,
    outcome: &kforge_engine::BuildOutcome,
    judge: &Node,
) -> Result<Exit, Exit> {
    let output = |id: &str, name: &str| -> Option<Vec<u8>> {
        ready.leaves.get(outcome.step(id)?.result.as_ref()?.outputs.get(name)?).ok()?
    };
    if outcome.counts.failed > 0 {
        return Err(Exit::NotBuilt);
    }
    let judgement = output(&judge.id, "judgement").and_then(|b| serde_json::from_slice::<Judgement>(&b).ok());
    let Some(mut judgement) = judgement else {
        let why = match outcome.step(&judge.id).map(|s| &s.outcome) {
            Some(Outcome::Unavailable(why)) => why.clone(),
            Some(Outcome::Skipped(root)) => format!("`{root}` gave nothing"),
            _ => "its result is gone from the store".into(),
        };
        return Err(context.fail(&format!("`{}` gave nothing: {why}", judge.id)));
    };
    let verify = format!("{}/{}", judge.id.rsplit_once('/').map_or("", |(owner, _)| owner), StepKind::Verify);
    let mut observation =
        output(&verify, "observation").and_then(|b| serde_json::from_slice::<VerifyObservation>(&b).ok());
    // What was seen names places of the binary; people want lines.
    let places = Places::new(&outcome.graph, &ready.journal, &*ready.leaves);
    judgement.explanation = places.text(&verify, &judgement.explanation);
    judgement.verdict = places.verdict(&verify, judgement.verdict);
    for finding in observation.iter_mut().flat_map(|o| &mut o.findings) {
        finding.message = places.text(&verify, &finding.message);
    }
    let params = outcome.graph.find(&verify).map(|i| outcome.graph.node(i).params.clone());
    let params = params.and_then(|p| serde_json::from_value::<VerifyParams>(p).ok());
    let labels = &judge.labels;
    let mut heading = vec![format!("{}/{}", labels.package, labels.kernel.as_deref().unwrap_or_default())];
    heading.extend(labels.variant.iter().filter(|v| !v.is_empty()).cloned());
    heading.push(format!("on {}", labels.target.as_deref().unwrap_or_default()));
    heading.push(format!("at {}", labels.shape.as_deref().unwrap_or_default()));
    let notes = outcome.step(&judge.id).and_then(|done| done.result.as_ref()).map_or(&[][..], |r| &r.notes);
    let single = Single {
        heading: heading.join(" "),
        judgement: &judgement,
        noted: notes.iter().filter(|n| n.code == TOLERATED).map(|n| n.message.as_str()).collect(),
        observation: observation.as_ref(),
        problem: params.as_ref().map(|p| &p.problem),
    };
    context.console.out_fitted(&text(&single));
    Ok(if matches!(judgement.verdict, Verdict::Fail(_)) { Exit::Wrong } else { Exit::Done })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_may_be_written_in_any_order_and_without_types() {
        let label = "T=f16,BLOCK=256,VEC=4";
        assert!(means("VEC=4,BLOCK=256", label) && means("T=f16, VEC=4", label) && means("BLOCK=256", label));
        assert!(!means("BLOCK=25", label) && !means("", label) && !means("BLOCK=256,VEC=1", label));
    }
}
