//! The context of every command: the session that operations use, and the console that prints what they report.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::args::Global;
use super::console::Console;
use super::errors;
use super::exit::{Exit, Failure};
use kforge_ops::{Error, Session};

/// The context of every command.
pub struct Context {
    /// The session that operations use.
    pub session: Session,
    /// The global options.
    pub global: Global,
    /// The console, which also receives the session's events.
    pub console: Arc<Console>,
}

impl Context {
    /// The context of another operation of the same command.
    pub fn again(&self) -> Context {
        Context { session: self.session.again(), global: self.global.clone(), console: self.console.clone() }
    }

    /// Prints an error in one line.
    pub fn fail<T: std::fmt::Display + ?Sized>(&self, text: &T) -> Exit {
        self.console.error(&text.to_string());
        Exit::NotBuilt
    }

    /// Prints why an operation failed, and help.
    pub fn failed(&self, error: &Error) -> Exit {
        errors::say(&self.console, error);
        Exit::from(error)
    }

    /// Prints why a command ends early, unless that has been printed.
    pub fn ended(&self, failure: Failure) -> Exit {
        match failure {
            Failure::Said(exit) => exit,
            Failure::Operation(error) => self.failed(&error),
        }
    }

    /// Sets [`Session::interrupted`] on the first Ctrl-C. The second ends this process, and with it every child.
    pub fn interrupts(&self) -> Result<Arc<AtomicBool>, Failure> {
        let flag = &self.session.interrupted;
        let second = || -> std::io::Result<()> {
            for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
                signal_hook::flag::register_conditional_shutdown(signal, Exit::Interrupted as i32, Arc::clone(flag))?;
                signal_hook::flag::register(signal, Arc::clone(flag))?;
            }
            Ok(())
        };
        second().map_err(|e| self.fail(&format!("cannot listen for signals: {e}")))?;
        Ok(Arc::clone(flag))
    }

    /// A kforge command that can be pasted into the user's shell.
    pub fn command(&self, words: &[&str]) -> String {
        command(&self.global, words)
    }
}

/// A kforge command that can be pasted into a shell, with the global options of this invocation.
pub(super) fn command(global: &Global, words: &[&str]) -> String {
    let mut out = vec!["kforge".to_string()];
    let mut push = |flag: &str, path: &Option<PathBuf>| {
        if let Some(path) = path {
            out.extend([flag.to_string(), quoted(&path.display().to_string())]);
        }
    };
    push("-C", &global.directory);
    push("--manifest-path", &global.manifest_path);
    push("--target-dir", &global.target_dir);
    push("--trust", &global.trust);
    for setting in &global.config {
        out.extend(["--config".to_string(), quoted(setting)]);
    }
    out.extend(words.iter().map(|w| quoted(w)));
    out.join(" ")
}

/// Quotes a word for a shell if needed.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', "'\\''")) }
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

    #[test]
    fn a_pasted_command_finds_the_same_workspace_with_the_same_settings() {
        let words = ["kforge", "-C", "a b", "--trust", "keys", "--config", "toolchain.python=\"x\"", "build"];
        let cli = <crate::cli::args::Cli as clap::Parser>::try_parse_from(words).unwrap();
        let pasted = "kforge -C 'a b' --trust keys --config 'toolchain.python=\"x\"' run s";
        assert_eq!(command(&cli.global, &["run", "s"]), pasted);
    }
}
