//! A session: what every operation works with. Opens the workspace at hand and the home.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use crate::Error;
use crate::event::{Event, Observer, Reporter, Warning};
use kforge_engine::blobs::Store;
use kforge_engine::home::{Doing, Home, named};
use kforge_foundation::base::{Diagnostic, Digest, Severity};
use kforge_foundation::config::{Environment, Settings};
use kforge_pipeline::optimize::templates::TEMPLATES;
use kforge_project::workspace::select::{Selected, SelectionArgs, select};
use kforge_project::workspace::{self, Workspace, changes, find};

/// What every operation works with.
pub struct Session {
    /// When the operation was asked for, before anything was read.
    pub began: SystemTime,
    /// The environment that tools and agents are found in and started with.
    pub environment: Environment,
    /// The settings in force.
    pub settings: Settings,
    /// The folder that relative paths are of, and where a manifest is looked for.
    pub cwd: PathBuf,
    /// What holds for the whole session.
    pub options: Options,
    /// The program that does steps.
    pub worker: Worker,
    /// Ends an operation once it is set.
    pub interrupted: Arc<AtomicBool>,
    /// Who is told.
    pub reporter: Reporter,
}

/// What holds for a whole session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The kernel.toml to work on, or its folder; the nearest one upward of the session's folder if none is named.
    pub manifest_path: Option<PathBuf>,
    /// The folder for what builds write; `build.target-dir` of the settings, or `target` at the workspace's root, if none is named.
    pub target_dir: Option<PathBuf>,
    /// Never use the network.
    pub offline: bool,
    /// Fail if kforge.lock would have to change.
    pub locked: bool,
    /// Fail with [`Error::Busy`] where another process holds a lock.
    pub no_wait: bool,
    /// Run kernels even where the system cannot confine them.
    pub allow_unconfined: bool,
    /// Report steps whose results were known, too.
    pub every_step: bool,
}

/// The program that does steps: it is started with the argument `worker`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Worker {
    /// This very program, at this path: its `main` hands the words after `worker` to kforge.
    Own(PathBuf),
    /// An installed kforge. Before the first step it is asked whether its code is that of this program.
    Installed(PathBuf),
}

impl Worker {
    /// Its path.
    pub fn program(&self) -> &Path {
        match self {
            Worker::Own(path) | Worker::Installed(path) => path,
        }
    }
}

/// A workspace that is open.
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
    /// A session in a folder: settings and environment are as given, nothing is forbidden, and nothing interrupts it.
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
        }
    }

    /// The same for another folder, whose outputs go to `target`.
    pub fn elsewhere(&self, cwd: PathBuf, target: PathBuf) -> Session {
        Session {
            began: self.began,
            environment: self.environment.clone(),
            settings: self.settings.clone(),
            cwd,
            options: Options { manifest_path: None, target_dir: Some(target), ..self.options.clone() },
            worker: self.worker.clone(),
            interrupted: self.interrupted.clone(),
            reporter: Reporter::new(self.reporter.observer().clone()),
        }
    }

    /// Whether the network is forbidden.
    pub fn offline(&self) -> bool {
        self.options.offline || self.settings.flag("net.offline")
    }

    /// Reports diagnostics.
    ///
    /// # Errors
    /// One of them is an error: then they are in the error, and not reported.
    pub fn check(&self, diagnostics: Vec<Diagnostic>) -> Result<(), Error> {
        if diagnostics.iter().any(|d| d.severity == Severity::Error) {
            return Err(Error::Wrong(diagnostics));
        }
        diagnostics.iter().for_each(|d| self.reporter.event(&Event::Diagnostic(d)));
        Ok(())
    }

    /// Whether there is a manifest at hand, or one was named.
    pub fn has_manifest(&self) -> bool {
        self.options.manifest_path.is_some() || find::manifest_at(&self.cwd).is_ok()
    }

    /// The manifest at hand.
    pub fn manifest(&self) -> Result<PathBuf, Error> {
        let found = match &self.options.manifest_path {
            Some(path) => find::manifest_named(&self.cwd.join(path)),
            None => find::manifest_at(&self.cwd),
        };
        found.map_err(|d| Error::NoManifest(Box::new(d)))
    }

    /// Where the home keeps what is being written to a workspace.
    pub fn pending(&self, root: &Path) -> PathBuf {
        let name = format!("{}.json", Digest::of(root.as_os_str().as_encoded_bytes()).hex());
        self.settings.home.join("pending").join(name)
    }

    /// The workspace at hand. What somebody began to write and was killed over is written first.
    pub fn workspace(&self) -> Result<Workspace, Error> {
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
            Some(workspace) => self.check(diagnostics).map(|()| workspace),
            None => Err(Error::Wrong(diagnostics)),
        }
    }

    /// The home, made if it is not there.
    pub fn home(&self) -> Result<Home, Error> {
        let path = &self.settings.home;
        Home::open(path).map_err(|source| Error::Home { path: path.clone(), source })
    }

    /// The folder for outputs that an option or a setting names.
    pub(super) fn named_target(&self) -> Option<PathBuf> {
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

    /// What words select of a workspace.
    pub fn select(&self, workspace: &Workspace, words: &SelectionArgs) -> Result<Selected, Error> {
        select(workspace, words).map_err(Error::Selection)
    }
}

/// Makes the output folder with what keeps version control and backups out of it. An error says where, and what to do.
pub(crate) fn make_target(target: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(target).map_err(|e| named(e, Doing::Make, target))?;
    let tag = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is made by kforge; see https://bford.info/cachedir/\n";
    let outer = target.parent().unwrap_or(target);
    if !outer.join("CACHEDIR.TAG").exists() {
        std::fs::write(outer.join("CACHEDIR.TAG"), tag).map_err(|e| named(e, Doing::WriteIn, outer))?;
    }
    if !outer.join(".gitignore").exists() {
        std::fs::write(outer.join(".gitignore"), "*\n").map_err(|e| named(e, Doing::WriteIn, outer))?;
    }
    Ok(())
}
