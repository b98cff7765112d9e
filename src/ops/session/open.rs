//! A session: the context of every operation. Opens the current workspace and the home.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use super::shared::Shared;
use crate::Error;
use crate::event::{Event, Observer, Reporter, Warning};
use kforge_engine::blobs::Store;
use kforge_engine::home::{Doing, Home, named};
use kforge_foundation::base::{Diagnostic, Digest, Severity};
use kforge_foundation::config::{Environment, Settings};
use kforge_pipeline::optimize::templates::TEMPLATES;
use kforge_pipeline::release::trust::Trust;
use kforge_project::workspace::select::{Selected, SelectionArgs, select};
use kforge_project::workspace::{self, Workspace, changes, find};

/// The context of every operation.
pub struct Session {
    /// When the operation was requested, before anything was read.
    pub began: SystemTime,
    /// The environment in which tools and agents are found and started.
    pub environment: Environment,
    /// The settings in force.
    pub settings: Settings,
    /// The folder to which relative paths are relative, and in which the search for a manifest begins.
    pub cwd: PathBuf,
    /// The options of the session.
    pub options: Options,
    /// The program that executes steps.
    pub worker: Worker,
    /// Ends an operation once it is set.
    pub interrupted: Arc<AtomicBool>,
    /// The reporter of events.
    pub reporter: Reporter,
    /// Whether it was reported that this machine has no key.
    pub has_warned_of_key: Arc<AtomicBool>,
    /// Whom the session trusts to sign evidence; if none, its options, its settings and the repository say.
    pub trust: Option<Arc<Trust>>,
    /// What the session's builds share with other builds of this process; if none, each opens its own.
    pub shared: Option<Arc<Shared>>,
}

/// The options of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The kernel.toml to use, or its folder; if none is named, the nearest one in the session's folder or above it.
    pub manifest_path: Option<PathBuf>,
    /// The folder for the outputs of builds; if none is named, the setting `build.target-dir`, else `target` in the workspace's root.
    pub target_dir: Option<PathBuf>,
    /// Never use the network.
    pub offline: bool,
    /// Fail if kforge.lock would have to change.
    pub locked: bool,
    /// Fail with [`Error::Busy`] if another process holds a lock.
    pub no_wait: bool,
    /// Run kernels even if the system cannot confine them.
    pub allow_unconfined: bool,
    /// Also report steps whose results were already stored.
    pub every_step: bool,
    /// The file of the keys that may sign evidence; if none is named, the setting `evidence.trust`, else the repository's.
    pub trust: Option<PathBuf>,
}

/// The program that executes steps. It is started with the argument `worker`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Worker {
    /// This program, at this path: its `main` passes the arguments after `worker` to kforge.
    Own(PathBuf),
    /// An installed kforge. Before the first step, kforge checks that its code is that of this program.
    Installed(PathBuf),
}

impl Worker {
    /// The program's path.
    pub fn program(&self) -> &Path {
        match self {
            Worker::Own(path) | Worker::Installed(path) => path,
        }
    }
}

/// Hears nothing.
struct Unheard;

impl Observer for Unheard {
    fn event(&self, _: &Event<'_>) {}
}

/// An open workspace.
pub struct Opened {
    /// The workspace.
    pub workspace: Workspace,
    /// Its output folder: `target/kforge`.
    pub target: PathBuf,
    /// The home.
    pub home: Home,
    /// Its store.
    pub store: Arc<Store>,
}

impl Session {
    /// A session in a folder with the given settings and environment, no restrictions, and nothing that interrupts it.
    pub fn new(
        cwd: impl Into<PathBuf>,
        worker: Worker,
        environment: Environment,
        settings: Settings,
        observer: Arc<dyn Observer>,
    ) -> Session {
        Session {
            began: SystemTime::now(),
            environment,
            settings,
            cwd: cwd.into(),
            options: Options::default(),
            worker,
            interrupted: Arc::default(),
            reporter: Reporter::new(observer),
            has_warned_of_key: Arc::default(),
            trust: None,
            shared: None,
        }
    }

    /// The same session, which reports to `reporter`.
    fn reporting_to(&self, reporter: Reporter) -> Session {
        Session {
            began: self.began,
            environment: self.environment.clone(),
            settings: self.settings.clone(),
            cwd: self.cwd.clone(),
            options: self.options.clone(),
            worker: self.worker.clone(),
            interrupted: self.interrupted.clone(),
            reporter,
            has_warned_of_key: self.has_warned_of_key.clone(),
            trust: self.trust.clone(),
            shared: self.shared.clone(),
        }
    }

    /// The same session, with a reporter of its own for the same observer.
    pub(super) fn same(&self) -> Session {
        self.reporting_to(Reporter::new(self.reporter.observer().clone()))
    }

    /// The same session for another folder, with outputs in `target`. Files that its options name are those of the folder that it is in now.
    pub fn elsewhere(&self, cwd: PathBuf, target: PathBuf) -> Session {
        let trust = self.options.trust.as_ref().map(|path| self.cwd.join(path));
        let options = Options { manifest_path: None, target_dir: Some(target), trust, ..self.options.clone() };
        Session { cwd, options, ..self.same() }
    }

    /// The same session without an observer: for plans that are only compared with others.
    pub(crate) fn unheard(&self) -> Session {
        Session { has_warned_of_key: Arc::default(), ..self.reporting_to(Reporter::new(Arc::new(Unheard))) }
    }

    /// The same session for another operation, which is requested now.
    pub fn again(&self) -> Session {
        Session { began: SystemTime::now(), ..self.same() }
    }

    /// The same session, without the use of the network.
    pub(crate) fn without_network(&self) -> Session {
        Session { options: Options { offline: true, ..self.options.clone() }, ..self.same() }
    }

    /// Whether the network is forbidden.
    pub fn offline(&self) -> bool {
        self.options.offline || self.settings.flag("net.offline")
    }

    /// Reports diagnostics.
    ///
    /// # Errors
    /// One of them is an error. Then all of them are in the error, and none is reported.
    pub fn check(&self, diagnostics: Vec<Diagnostic>) -> Result<(), Error> {
        if diagnostics.iter().any(|d| d.severity == Severity::Error) {
            return Err(Error::Wrong(diagnostics));
        }
        diagnostics.iter().for_each(|d| self.reporter.event(&Event::Diagnostic(d)));
        Ok(())
    }

    /// Whether a manifest was named or exists in the current folder or above it.
    pub fn has_manifest(&self) -> bool {
        self.options.manifest_path.is_some() || find::manifest_at(&self.cwd).is_ok()
    }

    /// The current manifest.
    pub fn manifest(&self) -> Result<PathBuf, Error> {
        let found = match &self.options.manifest_path {
            Some(path) => find::manifest_named(&self.cwd.join(path)),
            None => find::manifest_at(&self.cwd),
        };
        found.map_err(|d| Error::NoManifest(Box::new(d)))
    }

    /// The pending file in the home for changes to a workspace.
    pub fn pending(&self, root: &Path) -> PathBuf {
        let name = format!("{}.json", Digest::of(root.as_os_str().as_encoded_bytes()).hex());
        self.settings.home.join("pending").join(name)
    }

    /// The current workspace. Changes that an interrupted command began to write are completed first.
    pub fn workspace(&self) -> Result<Workspace, Error> {
        self.workspace_and_warnings().map(|(workspace, _)| workspace)
    }

    /// The same, with the diagnostics of its manifests, which are reported too.
    pub fn workspace_and_warnings(&self) -> Result<(Workspace, Vec<Diagnostic>), Error> {
        let manifest = self.manifest()?;
        let (mut workspace, mut diagnostics) = workspace::load(&manifest, &TEMPLATES);
        if let Some(root) =
            workspace.as_ref().map(|w| w.root.clone()).filter(|root| changes::is_pending(&self.pending(root)))
        {
            let given_up = changes::finish(&root, &self.pending(&root))
                .map_err(|source| Error::Pending { root: root.clone(), source })?;
            given_up.into_iter().for_each(|path| self.reporter.warn(Warning::NotFinished(path)));
            (workspace, diagnostics) = workspace::load(&manifest, &TEMPLATES);
        }
        let members = workspace.iter().flat_map(|workspace| &workspace.members);
        diagnostics.extend(members.flat_map(|member| super::methods::check(&member.package)));
        match workspace {
            Some(workspace) => self.check(diagnostics.clone()).map(|()| (workspace, diagnostics)),
            None => Err(Error::Wrong(diagnostics)),
        }
    }

    /// The home, created if it does not exist.
    pub fn home(&self) -> Result<Home, Error> {
        let path = &self.settings.home;
        Home::open(path).map_err(|source| Error::Home { path: path.clone(), source })
    }

    /// The folder for outputs from an option or a setting.
    pub(crate) fn named_target(&self) -> Option<PathBuf> {
        let option = self.options.target_dir.as_ref().map(|d| self.cwd.join(d));
        option.or_else(|| self.settings.path("build.target-dir"))
    }

    /// The output folder of a workspace.
    pub fn target(&self, workspace: &Workspace) -> PathBuf {
        self.named_target().unwrap_or_else(|| workspace.root.join("target")).join("kforge")
    }

    /// The workspace, its outputs and the home.
    pub fn open(&self) -> Result<Opened, Error> {
        let workspace = self.workspace()?;
        let target = self.target(&workspace);
        let home = self.home()?;
        let store = Arc::new(Store::new(&home));
        Ok(Opened { workspace, target, home, store })
    }

    /// Resolves a selection in a workspace.
    pub fn select(&self, workspace: &Workspace, words: &SelectionArgs) -> Result<Selected, Error> {
        select(workspace, words).map_err(Error::Selection)
    }
}

/// Creates the output folder, with files that keep version control and backups out of it. The error names the path and suggests what to do.
///
/// The files are in the folder around it, such as `target`, unless that folder existed before and holds other things.
pub(crate) fn make_target(target: &Path) -> std::io::Result<()> {
    let around = target.parent().unwrap_or(target);
    let is_foreign = around.exists() && !around.join("CACHEDIR.TAG").exists();
    std::fs::create_dir_all(target).map_err(|e| named(e, Doing::Make, target))?;
    let tag = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is made by kforge; see https://bford.info/cachedir/\n";
    let outer = if is_foreign { target } else { around };
    if !outer.join("CACHEDIR.TAG").exists() {
        std::fs::write(outer.join("CACHEDIR.TAG"), tag).map_err(|e| named(e, Doing::WriteIn, outer))?;
    }
    if !outer.join(".gitignore").exists() {
        std::fs::write(outer.join(".gitignore"), "*\n").map_err(|e| named(e, Doing::WriteIn, outer))?;
    }
    Ok(())
}
