//! Champions over the bundles that git holds, for the current workspace. Builds nothing, and needs no build.

use std::path::{Path, PathBuf};

use crate::event::Warning;
use crate::{Error, Session};
use kforge_foundation::base::files::write_if_changed;
use kforge_pipeline::release::comparison::Seat;
use kforge_pipeline::release::history::{self, History, Limits, NoHistory};
use kforge_project::workspace::Workspace;
use kforge_project::workspace::select::{Selected, SelectionArgs};

/// The name of the page in the output folder.
pub const PAGE: &str = "history.html";
/// The name of the document in the output folder.
pub const DOCUMENT: &str = "history.json";

/// The request for a history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryRequest {
    /// What to show; without a selection, the current package.
    pub words: SelectionArgs,
}

/// Why there is no history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// There is no git.
    #[error("a history comes from git, and there is no `git` on PATH")]
    NoGit,
    /// The repository gives none.
    #[error(transparent)]
    None(#[from] NoHistory),
    /// No bundle has a champion of the selection.
    #[error("no bundle in {0} has the time of a champion of this selection")]
    Nothing(String),
}

/// The champions of a selection over commits.
///
/// # Errors
/// [`HistoryError`], or the workspace or the trusted keys cannot be read.
pub fn history(session: &Session, request: &HistoryRequest) -> Result<History, Error> {
    let (workspace, _) = session.workspace_and_warnings()?;
    let selected = session.select(&workspace, &request.words)?;
    let git = session.git().ok_or(HistoryError::NoGit)?;
    let trust = session.trusted_here(None)?;
    let read = history::read(&git, &workspace.root, &trust, Limits::PAGE, trust.now);
    if session.interrupted.load(std::sync::atomic::Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    let mut found = read.map_err(HistoryError::from)?;
    let had = !found.series.is_empty();
    found.retain(|seat| takes(&workspace, &selected, seat));
    for text in found.notices() {
        session.reporter.warn(Warning::History { text });
    }
    // A page of bundles that cannot be read still says so.
    if found.series.is_empty() && (had || found.unread.is_empty()) {
        let commits = match found.commits.len() {
            1 => "1 commit".to_string(),
            n => format!("{n} commits"),
        };
        return Err(HistoryError::Nothing(commits).into());
    }
    Ok(found)
}

/// Whether a selection takes a seat. One of all members takes those of packages that are no longer in the workspace.
fn takes(workspace: &Workspace, selected: &Selected, seat: &Seat) -> bool {
    let among = |names: &[String], name: &str| names.is_empty() || names.iter().any(|n| n == name);
    let mut members = selected.members.iter().map(|i| &workspace.members[*i].package);
    let all = selected.members.len() == workspace.members.len();
    let package = members.find(|package| package.name == seat.package);
    let is_known = workspace.members.iter().any(|member| member.package.name == seat.package);
    // Bundles do not name the operator of a kernel.
    let operator = |name: &str| Some(&package?.kernels.iter().find(|kernel| kernel.name == name)?.operator);
    (package.is_some() || (all && !is_known))
        && among(&selected.kernels, &seat.kernel)
        && among(&selected.targets, &seat.target)
        && among(&selected.shapes, &seat.shape)
        && (selected.operators.is_empty()
            || operator(&seat.kernel).is_some_and(|name| selected.operators.contains(name)))
}

/// Writes a history: the document into the output folder, and the page to the given path, relative to the session's folder, or beside it. Returns the path of
/// the page.
///
/// # Errors
/// The workspace cannot be read, or a file cannot be written.
pub fn write(session: &Session, found: &History, path: Option<&Path>) -> Result<PathBuf, Error> {
    let target = session.target(&session.workspace_and_warnings()?.0);
    let document = target.join(DOCUMENT);
    write_if_changed(&document, &serde_json::to_vec_pretty(found)?).map_err(Error::write(&document))?;
    let path = path.map_or_else(|| target.join(PAGE), |path| session.cwd.join(path));
    write_if_changed(&path, history::page(found).as_bytes()).map_err(Error::write(&path))?;
    Ok(path)
}
