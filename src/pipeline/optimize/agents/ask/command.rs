//! Asks a program: sends the prompt to its standard input and reads the answer from its standard output. Knows processes; does not interpret the answer.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::{Failure, RawReply};
use kforge_foundation::config::Environment;
use kforge_foundation::process::{self, Command, End};
use kforge_project::toolchain;
use kforge_types::record::answer::{Prompt, Question, Role};

/// The longest answer in bytes. A longer one is unusable.
const LONGEST: usize = 4 << 20;

/// The number of last lines that are shown of a failing program's output.
const LAST_LINES: usize = 12;

/// A program that can be asked.
pub(super) struct Program<'a> {
    /// The program and its arguments.
    pub(super) words: &'a [String],
    /// The folder of the package.
    pub(super) folder: &'a Path,
    /// The environment of the program, which also says where programs are found.
    pub(super) environment: &'a Environment,
    /// The time after which the program is killed.
    pub(super) limit: Duration,
}

impl Program<'_> {
    /// The program's file.
    ///
    /// # Errors
    /// The file does not exist.
    pub(super) fn file(&self) -> Result<PathBuf, String> {
        let name = self.words.first().map(String::as_str).unwrap_or_default();
        if name.contains('/') {
            let file = self.folder.join(name);
            if !toolchain::is_executable(&file) {
                return Err(format!(
                    "program `{name}` is not an executable file in the package's folder `{}`",
                    self.folder.display()
                ));
            }
            return std::path::absolute(&file).map_err(|e| format!("program `{name}`: {e}"));
        }
        toolchain::on_path(name, self.environment.path()).ok_or_else(|| format!("program `{name}` is not on PATH"))
    }

    /// Runs the program and waits for its answer.
    pub(super) fn ask(
        &self,
        role: Role,
        question: &Question,
        prompt: &Prompt,
        interrupted: &AtomicBool,
    ) -> Result<RawReply, Failure> {
        let mut command = Command::new(self.file().map_err(Failure::Never)?)
            .args(self.words.iter().skip(1))
            .dir(self.folder)
            .stdin(format!("{}\n\n{}", prompt.system.trim_end(), prompt.user))
            .capture(LONGEST);
        for (name, value) in self.environment.all() {
            command = command.env(name, value);
        }
        command = command
            .env("KFORGE_ROLE", role.name())
            .env("KFORGE_ROUND", question.round.to_string())
            .env("KFORGE_ATTEMPT", question.attempt.to_string());
        let again = |why: String| Failure::Again { why, after_s: None, busy: false };
        let done = match process::run(&command, Some(self.limit), interrupted) {
            Ok(done) => done,
            Err(e) => return Err(Failure::Never(e.to_string())),
        };
        match done.end {
            End::Interrupted => return Err(Failure::Interrupted),
            End::Exited(0) => {}
            end => {
                let said = done.stderr.text();
                let lines: Vec<&str> = said.trim_end().lines().collect();
                let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
                let colon = if last.is_empty() { "" } else { ":\n" };
                return Err(again(format!("`{}` {end}{colon}{last}", command.line())));
            }
        }
        // An answer that is too long still counts as an answer, but an unusable one.
        let reply = match done.stdout.whole() {
            Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            None => RawReply::flood(LONGEST as u64),
        };
        Ok(RawReply { reply, tokens: None, cut: false })
    }
}
