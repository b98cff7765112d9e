//! `kforge tree`: the plan, with what known results add to it.

use super::Ran;
use crate::cli::Context;
use crate::cli::args::TreeArgs;
use crate::cli::exit::{Exit, Failure};
use kforge_foundation::base::Diagnostic;
use kforge_pipeline::plan::Goal;
use kforge_pipeline::report::tree::{View, text};
use kforge_types::record::StepKind;

/// Runs the command.
pub fn run(context: &Context, args: &TreeArgs) -> Ran {
    let stage = args.stage.as_deref().map(|word| kind(context, word)).transpose()?;
    let view = View { invert: args.invert, depth: args.depth, stage };
    context.session.look(&args.select.words(), Goal::Build)?.plan(&context.session, |opened, ready| {
        let (graph, lacks) = ready.with_services(&context.session, opened, |services| {
            kforge_engine::lacking(ready.graph.clone(), &ready.options, services)
        });
        let tree = text(&graph, &lacks, view);
        if let (Some(stage), true) = (stage, tree.is_empty()) {
            context.console.error(&format!("the selection has no {stage} step"));
            return Err(Exit::NothingSelected.into());
        }
        context.console.out(&tree);
        Ok(Exit::Done)
    })
}

fn kind(context: &Context, word: &str) -> Result<StepKind, Failure> {
    word.parse().map_err(|()| {
        let names = StepKind::ALL.map(StepKind::name);
        let unknown = Diagnostic::error("tree.stage", format!("no kind of step is called `{word}`"))
            .expected(format!("one of {}", names.map(|n| format!("`{n}`")).join(", ")));
        context.console.diagnostic(&unknown.suggest(word, names));
        Exit::Usage.into()
    })
}
