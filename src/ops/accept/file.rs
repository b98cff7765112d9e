//! The files of an accepted source: the source with its provenance, and the manifest that declares it. Knows names and texts; writes nothing.

use std::path::Path;

use super::{AcceptError, AcceptRequest};
use crate::session::build::Ready;
use crate::session::standing::Stands;
use crate::{Error, Session};
use kforge_foundation::base::Digest;
use kforge_pipeline::release::provenance::{Champion, Provenance};
use kforge_project::workspace::accepted::{Accepted, Origin, accepted};
use kforge_project::workspace::changes::Change;
use kforge_project::workspace::edit;
use kforge_project::workspace::find::{MANIFEST, tidy};
use kforge_project::workspace::{Member, Workspace};
use kforge_types::model::Kernel;

/// The folder for the sources of kernels, if the package has one.
const FOLDER: &str = "kernels";

/// The files to write.
pub(super) struct Files {
    /// The source's path, relative to the package.
    pub(super) source: String,
    /// The changes. The source comes first, because nothing reads it before the manifest names it.
    pub(super) changes: Vec<Change>,
}

/// The files for champions that share one source.
pub(super) fn files(
    session: &Session,
    workspace: &Workspace,
    member: &Member,
    (kernel, ready): (&Kernel, &Ready<'_>),
    all: &[Stands],
    request: &AcceptRequest,
) -> Result<Files, Error> {
    let missing = || AcceptError::NoSource(kernel.name.clone());
    let first = all.first().ok_or_else(missing)?;
    let written = first.build.written.as_ref();
    let made = written.map_or(kernel.made(), |w| w.kernel.made()).ok_or_else(missing)?;
    let source = place(session, member, kernel, request)?;
    let recorded = ready.recorded.iter().find(|r| r.seat == first.seat);
    let answer = written.and(recorded).and_then(|recorded| {
        let same = |a: &kforge_pipeline::plan::input::Attempt| {
            a.written.as_ref().is_some_and(|k| k.source == first.build.source)
        };
        recorded.answers.get(recorded.attempts.iter().position(same)?).cloned()
    });
    let name = request.name.as_ref().unwrap_or(&kernel.name);
    let provenance = Provenance {
        language: kernel.language,
        of: (name.clone(), first.seat.target.clone(), first.seat.types.clone()),
        answer,
        template: kernel.generate.as_ref().filter(|_| written.is_none()).map(|g| g.template.value.clone()),
        champions: all.iter().map(champion).collect(),
    };
    let text = format!("{}{}", provenance.comment(), made.source);
    guard(member, kernel, &source, &text, request)?;
    let target = match (&request.name, &request.targets[..]) {
        (None, _) => None,
        (Some(name), [target]) => Some((name.as_str(), target.as_str())),
        (Some(_), _) => return Err(AcceptError::SeveralTargets.into()),
    };
    let of = Accepted {
        kernel: &kernel.name,
        anew: target,
        source: &source,
        declaration: &made.declaration,
        made: if written.is_some() { Origin::ByAgent } else { Origin::ByTemplate },
    };
    let manifest = member.folder.join(MANIFEST);
    let before = std::fs::read_to_string(&manifest).map_err(Error::read(&manifest))?;
    let after = accepted(&before, &of).map_err(|why| AcceptError::NotDeclared { manifest: manifest.clone(), why })?;
    let found = edit::check(&manifest, &workspace.root, after.clone());
    if edit::is_wrong(&found) {
        return Err(AcceptError::Wrong { manifest, found }.into());
    }
    let change = |path: &Path, text: String| -> Result<Change, Error> {
        let inside = path.strip_prefix(&workspace.root).ok().and_then(Path::to_str);
        let inside = inside.ok_or_else(|| AcceptError::OutsideWorkspace(path.to_path_buf()))?;
        Change::of(&workspace.root, inside, text).map_err(Error::read(path))
    };
    let changes = vec![change(&member.folder.join(&source), text)?, change(&manifest, after)?];
    Ok(Files { source, changes })
}

fn champion(stands: &Stands) -> Champion {
    Champion {
        target: stands.seat.target.clone(),
        class: stands.class.clone(),
        variant: stands.build.variant.label.clone(),
        shapes: stands.verified.as_ref().copied().unwrap_or(0),
        on: stands.on.clone(),
        time: stands.time.clone(),
    }
}

/// The source's path in the package.
fn place(session: &Session, member: &Member, kernel: &Kernel, request: &AcceptRequest) -> Result<String, AcceptError> {
    let name = request.name.as_ref().unwrap_or(&kernel.name);
    let Some(file) = &request.file else {
        let folder = if member.folder.join(FOLDER).is_dir() { format!("{FOLDER}/") } else { String::new() };
        return Ok(format!("{folder}{name}.{}", kernel.language.ending()));
    };
    let path = tidy(&session.cwd.join(file));
    let inside = path.strip_prefix(&member.folder).ok().and_then(Path::to_str).filter(|path| !path.is_empty());
    let inside = inside.map(String::from);
    inside.ok_or_else(|| AcceptError::OutsidePackage { path, folder: member.folder.clone() })
}

/// Refuses to overwrite a file that is not this kernel's own source.
fn guard(
    member: &Member,
    kernel: &Kernel,
    source: &str,
    text: &str,
    request: &AcceptRequest,
) -> Result<(), AcceptError> {
    let path = member.folder.join(source);
    let same = std::fs::read(&path).is_ok_and(|bytes| Digest::of(&bytes) == Digest::of(text.as_bytes()));
    let others = member.package.kernels.iter().any(|k| k.source == source && k.name != kernel.name);
    let own = kernel.source == source && request.name.is_none() && !others;
    match request.force || own || same || !path.exists() {
        true => Ok(()),
        false => Err(AcceptError::Exists { source_file: source.into(), kernel: kernel.name.clone() }),
    }
}
