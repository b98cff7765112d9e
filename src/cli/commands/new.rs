//! `kforge new` and `kforge init`: create a package from a template.

use super::CommandResult;
use crate::cli::Context;
use crate::cli::args::{Ci, InitArgs, NewArgs, Template};
use crate::cli::exit::Exit;
use kforge_ops::new::{self as operation, NewPackage, NewRequest, Surroundings};
use kforge_project::workspace::join::Joined;

/// Runs `kforge new`.
pub fn new(context: &Context, args: &NewArgs) -> CommandResult {
    let request = NewRequest { name: args.name.clone(), template: template(args.template), ci: args.ci.map(ci) };
    let made = operation::new(&context.session, &args.path, &request)?;
    Ok(say(context, &made, request.template))
}

/// Runs `kforge init`.
pub fn init(context: &Context, args: &InitArgs) -> CommandResult {
    let request = NewRequest { name: args.name.clone(), template: template(args.template), ci: args.ci.map(ci) };
    let made = operation::init(&context.session, &request)?;
    Ok(say(context, &made, request.template))
}

fn template(template: Template) -> operation::Template {
    match template {
        Template::Elementwise => operation::Template::Elementwise,
        Template::RowReduction => operation::Template::RowReduction,
        Template::Matmul => operation::Template::Matmul,
    }
}

fn ci(ci: Ci) -> operation::Ci {
    match ci {
        Ci::Github => operation::Ci::Github,
        Ci::Gitlab => operation::Ci::Gitlab,
    }
}

fn say(context: &Context, made: &NewPackage, template: operation::Template) -> Exit {
    let console = &context.console;
    if let Some(Surroundings { manifest, joined }) = &made.around {
        match joined {
            Joined::Added(path) => {
                console.status("Adding", &format!("`{path}` to the members in {}", manifest.display()));
            }
            Joined::Excluded => console.status("Excluded", &format!("by the workspace in {}", manifest.display())),
            Joined::Already => {}
        }
    }
    if made.is_new {
        console.status("Created", &format!("package `{}` from template `{}`", made.name, template.word()));
    }
    if let Some(workflow) = &made.workflow {
        let path = workflow.strip_prefix(&context.session.cwd).unwrap_or(workflow);
        console.status("Created", &format!("workflow `{}`; its head says what to set up", path.display()));
    }
    let there = made.folder.strip_prefix(&context.session.cwd).unwrap_or(&made.folder);
    let change = if there.as_os_str().is_empty() { String::new() } else { format!("cd {} && ", there.display()) };
    if made.is_new && !console.quiet() {
        console.err(&format!("help: build it with `{change}kforge build`\n"));
    }
    Exit::Done
}
