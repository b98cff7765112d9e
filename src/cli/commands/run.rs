//! `kforge run`: one variant of a kernel on one shape, on `cpu`, and what it gave.

use std::collections::HashSet;

use super::build::{interrupts, tell};
use crate::base::Diagnostic;
use crate::cli::args::{RunArgs, Select};
use crate::cli::exit::Exit;
use crate::cli::session::build::{Asked, Ready};
use crate::cli::session::places::Places;
use crate::cli::session::{Context, Opened};
use crate::engine::{self, Blobs, Graph, Node};
use crate::model::{Arch, Package};
use crate::plan::Goal;
use crate::record::event::Event;
use crate::record::params::{Judgement, VerifyParams};
use crate::record::{Outcome, StepKind, Verdict, VerifyObservation};
use crate::report::single::{Single, text};

/// Runs the command.
pub fn run(context: &Context, args: &RunArgs) -> Result<Exit, Exit> {
    let mut opened = context.open()?;
    let words = Select {
        package: args.package.iter().cloned().collect(),
        // A kernel is looked for everywhere unless a package is named.
        workspace: args.package.is_none(),
        kernel: vec![args.kernel.clone()],
        shape: vec![args.shape.clone()],
        ..Select::default()
    };
    let mut selected = context.select(&opened.workspace, &words)?;
    let having = |i: &usize| opened.workspace.members[*i].package.kernel(&args.kernel).is_some();
    selected.members.retain(having);
    let packages: Vec<&Package> = selected.members.iter().map(|i| &opened.workspace.members[*i].package).collect();
    let package = match packages.as_slice() {
        [package] => *package,
        several => {
            let names: Vec<String> = several.iter().map(|p| format!("`{}`", p.name)).collect();
            let error = Diagnostic::error("run.package", format!("several packages have a kernel `{}`", args.kernel))
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
    let interrupted = interrupts(context)?;
    let asked = Asked {
        selected,
        goal: Goal::Verify,
        jobs: None,
        keep_going: true,
        remeasure: false,
        overlay: None,
        write: true,
    };
    let packages = context.packages(&opened, &asked)?;
    let mut ready = context.ready(&mut opened, &packages, &asked, &interrupted)?;
    let judge = choose(context, args, &ready.graph)?;
    ready.graph = alone(context, &ready.graph, &judge.id)?;
    let outcome = {
        let graph = ready.graph.clone();
        let places = Places::new(&ready.graph, &ready.journal, &*ready.leaves);
        let mut on_event = |event: Event| {
            if let Event::StepFinished(step) = &places.event(event)
                && matches!(step.outcome, Outcome::Failed(_))
            {
                tell(context, step);
            }
        };
        ready.with_services(context, &opened, |services| engine::build(graph, &ready.options, services, &mut on_event))
    };
    ready.journal.flush().map_err(|e| context.fail(&format!("cannot write the journal: {e}")))?;
    if outcome.interrupted {
        return Err(Exit::Interrupted);
    }
    show(context, &opened, &ready, &outcome, &judge)
}

/// The judge step that was asked for: of that variant, or of the first in declared order.
fn choose(context: &Context, args: &RunArgs, graph: &Graph) -> Result<Node, Exit> {
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
            Diagnostic::error(
                "run.variant",
                format!("no variant `{wanted}` of `{}` serves shape `{}`", args.kernel, args.shape),
            )
            .expected(format!("one of {}", listed.join(", ")))
            .suggest(wanted, labels.iter().copied())
        }
        None => Diagnostic::error(
            "run.variant",
            format!("kernel `{}` has nothing for shape `{}` on `cpu`", args.kernel, args.shape),
        )
        .hint("its operator has no such shape, or no variant serves it"),
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
            open.extend(graph.dependencies(at));
        }
    }
    let nodes = (0u32..).zip(graph.nodes()).filter(|(i, _)| needed.contains(i)).map(|(_, n)| n.clone()).collect();
    Graph::new(nodes).map_err(|e| {
        context.console.error(&format!("BUG: {e}"));
        Exit::Bug
    })
}

fn show(
    context: &Context,
    opened: &Opened,
    ready: &Ready<'_>,
    outcome: &engine::BuildOutcome,
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
    let single = Single {
        heading: heading.join(" "),
        judgement: &judgement,
        observation: observation.as_ref(),
        problem: params.as_ref().map(|p| &p.problem),
    };
    context.console.out(&text(&single));
    super::cache::collect_sometimes(context, &opened.home);
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
