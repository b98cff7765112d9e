//! Opens what a command works on: settings, the workspace at hand, the home. Says what is wrong and ends with the right exit code.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::cli::args::{Global, Select};
use crate::cli::console::Console;
use crate::cli::exit::Exit;
use kforge_engine::blobs::Store;
use kforge_engine::home::{Doing, Home, named};
use kforge_foundation::base::{Diagnostic, Digest, Severity};
use kforge_foundation::config::{Environment, Settings};
use kforge_pipeline::optimize::templates::TEMPLATES;
use kforge_project::workspace::select::{Selected, SelectionArgs, select};
use kforge_project::workspace::{self, Workspace, changes, find};

/// What every command has.
pub struct Context {
    /// When the command began, before it read anything.
    pub began: SystemTime,
    /// The environment.
    pub environment: Environment,
    /// The settings in force.
    pub settings: Settings,
    /// Where the command works.
    pub cwd: PathBuf,
    /// The global options.
    pub global: Global,
    /// The printer.
    pub console: Console,
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

impl Context {
    /// The same for another folder, whose outputs go to `target`.
    pub fn elsewhere(&self, cwd: PathBuf, target: PathBuf) -> Context {
        let global = Global { directory: None, manifest_path: None, target_dir: Some(target), ..self.global.clone() };
        Context {
            began: self.began,
            environment: self.environment.clone(),
            settings: self.settings.clone(),
            cwd,
            global,
            console: self.console.another(),
        }
    }

    /// Whether the network is forbidden.
    pub fn offline(&self) -> bool {
        self.global.offline || self.global.frozen || self.settings.flag("net.offline")
    }

    /// Whether the lockfile may not change.
    pub fn locked(&self) -> bool {
        self.global.locked || self.global.frozen
    }

    /// Prints diagnostics; an exit code if any is an error.
    pub fn say(&self, diagnostics: &[Diagnostic]) -> Result<(), Exit> {
        for diagnostic in diagnostics {
            self.console.diagnostic(diagnostic);
        }
        let wrong = diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
        match wrong {
            0 => Ok(()),
            1 => Err(Exit::NotBuilt),
            n => {
                self.console.error(&format!("{n} errors; nothing was done"));
                Err(Exit::NotBuilt)
            }
        }
    }

    /// A command of this program as it can be pasted into the shell that started this one.
    pub fn command(&self, words: &[&str]) -> String {
        let mut out = vec!["kforge".to_string()];
        let mut push = |flag: &str, path: &Option<PathBuf>| {
            if let Some(path) = path {
                out.extend([flag.to_string(), quoted(&path.display().to_string())]);
            }
        };
        push("-C", &self.global.directory);
        push("--manifest-path", &self.global.manifest_path);
        push("--target-dir", &self.global.target_dir);
        out.extend(words.iter().map(|w| quoted(w)));
        out.join(" ")
    }

    /// Prints an error in one line.
    pub fn fail<T: std::fmt::Display + ?Sized>(&self, text: &T) -> Exit {
        self.console.error(&text.to_string());
        Exit::NotBuilt
    }

    /// Whether there is a manifest at hand, or one was named.
    pub fn has_manifest(&self) -> bool {
        self.global.manifest_path.is_some() || find::manifest_at(&self.cwd).is_ok()
    }

    /// The manifest at hand.
    pub fn manifest(&self) -> Result<PathBuf, Exit> {
        let found = match &self.global.manifest_path {
            Some(path) => find::manifest_named(&self.cwd.join(path)),
            None => find::manifest_at(&self.cwd),
        };
        found.map_err(|d| {
            self.console.diagnostic(&d);
            Exit::NotBuilt
        })
    }

    /// Where the home keeps what is being written to a workspace.
    pub fn pending(&self, root: &Path) -> PathBuf {
        let name = format!("{}.json", Digest::of(root.as_os_str().as_encoded_bytes()).hex());
        self.settings.home.join("pending").join(name)
    }

    /// The workspace at hand. What somebody began to write and was killed over is written first.
    pub fn workspace(&self) -> Result<Workspace, Exit> {
        let manifest = self.manifest()?;
        let (mut workspace, mut diagnostics) = workspace::load(&manifest, &TEMPLATES);
        if let Some(root) =
            workspace.as_ref().map(|w| w.root.clone()).filter(|root| changes::is_pending(&self.pending(root)))
        {
            let given_up = changes::finish(&root, &self.pending(&root)).map_err(|e| {
                self.fail(&format!("cannot end what an interrupted command began in `{}`: {e}", root.display()))
            })?;
            for path in given_up {
                let message = "was changed since a command was interrupted that would have written it: the rest of that command is not done";
                self.console.warn(&format!("`{path}` {message}"));
            }
            (workspace, diagnostics) = workspace::load(&manifest, &TEMPLATES);
        }
        let members = workspace.iter().flat_map(|workspace| &workspace.members);
        diagnostics.extend(members.flat_map(|member| super::methods::check(&member.package)));
        self.say(&diagnostics)?;
        workspace.ok_or(Exit::NotBuilt)
    }

    /// The home, made if it is not there.
    pub fn home(&self) -> Result<Home, Exit> {
        Home::open(&self.settings.home).map_err(|e| {
            self.console.error(&format!("cannot use `{}`: {e}", self.settings.home.display()));
            self.console.err("help: set KFORGE_HOME to a folder that can be written\n");
            Exit::NotBuilt
        })
    }

    /// The folder for outputs that a flag or a setting names.
    pub(super) fn named_target(&self) -> Option<PathBuf> {
        let flag = self.global.target_dir.as_ref().map(|d| self.cwd.join(d));
        flag.or_else(|| self.settings.path("build.target-dir"))
    }

    /// The output folder of a workspace.
    pub fn target(&self, workspace: &Workspace) -> PathBuf {
        self.named_target().unwrap_or_else(|| workspace.root.join("target")).join("kforge")
    }

    /// The workspace, its outputs and the home.
    pub fn open(&self) -> Result<Opened, Exit> {
        let workspace = self.workspace()?;
        let target = self.target(&workspace);
        let home = self.home()?;
        let store = Arc::new(Store::new(&home));
        Ok(Opened { workspace, target, home, store })
    }

    /// What the words of the command line select.
    pub fn select(&self, workspace: &Workspace, words: &Select) -> Result<Selected, Exit> {
        let words = SelectionArgs {
            packages: words.package.clone(),
            workspace: words.workspace,
            exclude: words.exclude.clone(),
            kernels: words.kernel.clone(),
            operators: words.operator.clone(),
            shapes: words.shape.clone(),
            targets: words.target.clone(),
        };
        select(workspace, &words).map_err(|diagnostics| {
            diagnostics.iter().for_each(|d| self.console.diagnostic(d));
            Exit::NothingSelected
        })
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Makes the output folder with what keeps version control and backups out of it. An error says where, and what to do.
pub fn make_target(target: &Path) -> std::io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_break_them() {
        assert_eq!(quoted("p/k/BLOCK=32,T=f16/cpu/judge"), "p/k/BLOCK=32,T=f16/cpu/judge");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
