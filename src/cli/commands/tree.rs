//! `kforge tree`: the plan, including the steps that known results add.

use super::CommandResult;
use crate::cli::Context;
use crate::cli::args::TreeArgs;
use crate::cli::exit::{Exit, Failure};
use kforge_foundation::base::Diagnostic;
use kforge_ops::tree::{TreeRequest, tree};
use kforge_pipeline::report::tree::{View, text};
use kforge_types::record::StepKind;

/// Runs the command.
pub fn run(context: &Context, args: &TreeArgs) -> CommandResult {
    let stage = args.stage.as_deref().map(|word| kind(context, word)).transpose()?;
    let tree = tree(&context.session, &TreeRequest { words: args.select.words(), kind: stage })?;
    let view = View { invert: args.invert, depth: args.depth, stage };
    context.console.out(&text(&tree.graph, &tree.lacks, view));
    Ok(Exit::Done)
}

fn kind(context: &Context, word: &str) -> Result<StepKind, Failure> {
    word.parse().map_err(|()| {
        let names = StepKind::ALL.map(StepKind::name);
        let unknown = Diagnostic::error("tree.stage", format!("there is no kind of step `{word}`"))
            .expected(format!("one of {}", names.map(|n| format!("`{n}`")).join(", ")));
        context.console.diagnostic(&unknown.suggest(word, names));
        Exit::Usage.into()
    })
}
