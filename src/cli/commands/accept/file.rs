//! The files of an accepted source: the source with its provenance, and the manifest that declares it. Knows names and texts; writes nothing.

use std::path::Path;

use crate::cli::args::AcceptArgs;
use crate::cli::exit::Exit;
use crate::cli::session::Context;
use crate::cli::session::build::Ready;
use crate::cli::session::standing::Stands;
use kforge_foundation::base::Digest;
use kforge_pipeline::release::provenance::{Champion, Provenance};
use kforge_project::workspace::accepted::{Accepted, Origin, accepted};
use kforge_project::workspace::changes::Change;
use kforge_project::workspace::edit;
use kforge_project::workspace::find::{MANIFEST, tidy};
use kforge_project::workspace::{Member, Workspace};
use kforge_types::model::Kernel;

/// The folder for sources of kernels, where a package has one.
const FOLDER: &str = "kernels";

/// What has to be written.
pub(super) struct Files {
    /// The source's name, relative to the package.
    pub(super) source: String,
    /// The source first: nothing reads it before the manifest says so.
    pub(super) changes: Vec<Change>,
}

/// The files for champions of one source.
pub(super) fn files(
    context: &Context,
    workspace: &Workspace,
    member: &Member,
    (kernel, ready): (&Kernel, &Ready<'_>),
    all: &[Stands],
    args: &AcceptArgs,
) -> Result<Files, Exit> {
    let Some(first) = all.first() else { return Err(Exit::Bug) };
    let written = first.build.written.as_ref();
    let Some(made) = written.map_or(kernel.made(), |w| w.kernel.made()) else { return Err(Exit::Bug) };
    let source = place(context, member, kernel, args)?;
    let recorded = ready.recorded.iter().find(|r| r.seat == first.seat);
    let answer = written.and(recorded).and_then(|recorded| {
        let same = |a: &kforge_pipeline::plan::input::Attempt| {
            a.written.as_ref().is_some_and(|k| k.source == first.build.source)
        };
        recorded.answers.get(recorded.attempts.iter().position(same)?).cloned()
    });
    let name = args.name.as_ref().unwrap_or(&kernel.name);
    let provenance = Provenance {
        of: (name.clone(), first.seat.target.clone(), first.seat.types.clone()),
        answer,
        template: kernel.generate.as_ref().filter(|_| written.is_none()).map(|g| g.template.value.clone()),
        champions: all.iter().map(champion).collect(),
    };
    let text = format!("{}{}", provenance.comment(), made.source);
    guard(context, member, kernel, &source, &text, args)?;
    let target = match (&args.name, &args.target[..]) {
        (None, _) => None,
        (Some(name), [target]) => Some((name.as_str(), target.as_str())),
        (Some(_), _) => {
            context.console.error("`--name` makes a kernel for one target: expected `--target` once beside it");
            return Err(Exit::Usage);
        }
    };
    let of = Accepted {
        kernel: &kernel.name,
        anew: target,
        source: &source,
        declaration: &made.declaration,
        made: if written.is_some() { Origin::ByAgent } else { Origin::ByTemplate },
    };
    let manifest = member.folder.join(MANIFEST);
    let before = std::fs::read_to_string(&manifest)
        .map_err(|e| context.fail(&format!("cannot read `{}`: {e}", manifest.display())))?;
    let after = accepted(&before, &of).map_err(|why| context.fail(&format!("`{}`: {why}", manifest.display())))?;
    let found = edit::check(&manifest, &workspace.root, after.clone());
    if edit::is_wrong(&found) {
        found.iter().for_each(|d| context.console.diagnostic(d));
        return Err(context.fail(&format!("`{}` would be wrong; nothing is written", manifest.display())));
    }
    let change = |path: &Path, text: String| {
        let inside = path.strip_prefix(&workspace.root).ok().and_then(Path::to_str);
        let inside = inside.ok_or_else(|| {
            context.fail(&format!("`{}` has no name in the workspace's folder, and is not written", path.display()))
        })?;
        Change::of(&workspace.root, inside, text)
            .map_err(|e| context.fail(&format!("cannot read `{}`: {e}", path.display())))
    };
    let changes = vec![change(&member.folder.join(&source), text)?, change(&manifest, after)?];
    Ok(Files { source, changes })
}

fn champion(stands: &Stands) -> Champion {
    Champion {
        target: stands.seat.target.clone(),
        class: stands.class.clone(),
        variant: stands.build.variant.label.clone(),
        shapes: *stands.verified.as_ref().unwrap_or(&0),
        on: stands.on.clone(),
        time: stands.time.clone(),
    }
}

/// The name of the source in the package.
fn place(context: &Context, member: &Member, kernel: &Kernel, args: &AcceptArgs) -> Result<String, Exit> {
    let name = args.name.as_ref().unwrap_or(&kernel.name);
    let Some(file) = &args.file else {
        let folder = if member.folder.join(FOLDER).is_dir() { format!("{FOLDER}/") } else { String::new() };
        return Ok(format!("{folder}{name}.cu"));
    };
    let path = tidy(&context.cwd.join(file));
    let inside = path.strip_prefix(&member.folder).ok().and_then(Path::to_str).filter(|path| !path.is_empty());
    inside.map(String::from).ok_or_else(|| {
        let folder = member.folder.display();
        context.fail(&format!("`{}` is not in the package's folder `{folder}`", path.display()))
    })
}

/// Refuses to write over what is not the kernel's own.
fn guard(
    context: &Context,
    member: &Member,
    kernel: &Kernel,
    source: &str,
    text: &str,
    args: &AcceptArgs,
) -> Result<(), Exit> {
    let path = member.folder.join(source);
    let same = std::fs::read(&path).is_ok_and(|bytes| Digest::of(&bytes) == Digest::of(text.as_bytes()));
    let others = member.package.kernels.iter().any(|k| k.source == source && k.name != kernel.name);
    let own = kernel.source == source && args.name.is_none() && !others;
    if args.force || own || same || !path.exists() {
        return Ok(());
    }
    let exit = context.fail(&format!("`{source}` is there already and is not the source of `{}` alone", kernel.name));
    context.console.err("help: name another file with `--as`, or write over it with `--force`\n");
    Err(exit)
}
