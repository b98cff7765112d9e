//! What to start: program, arguments, environment, working directory, limits. Does not start it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Limits, Room};
#[cfg(any(debug_assertions, feature = "reword"))]
use crate::base::words;

/// How many bytes of standard output and of standard error are kept by default.
const CAPTURE: usize = 1 << 20;

/// What to start. The environment is empty unless variables are added.
#[derive(Debug, Clone)]
pub struct Command {
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    pub(super) env: BTreeMap<OsString, OsString>,
    pub(super) dir: Option<PathBuf>,
    pub(super) stdin: Vec<u8>,
    pub(super) limits: Option<Limits>,
    pub(super) inherited: Vec<Arc<OwnedFd>>,
    pub(super) capture: usize,
    pub(super) threads: Option<u32>,
    pub(super) room: Option<Room>,
}

impl Command {
    /// The program at an absolute path, without arguments, environment or input.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Command {
            program: program.into(),
            args: vec![],
            env: BTreeMap::new(),
            dir: None,
            stdin: vec![],
            limits: None,
            inherited: vec![],
            capture: CAPTURE,
            threads: None,
            room: None,
        }
    }

    /// The program of this process, even if its file was replaced in the meantime.
    pub fn own() -> Self {
        let command = Command::new("/proc/self/exe");
        #[cfg(any(debug_assertions, feature = "reword"))]
        if words::are_hidden() {
            return command.env(words::VARIABLE, "1");
        }
        command
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.insert(name.as_ref().to_owned(), value.as_ref().to_owned());
        self
    }

    /// Sets the working directory. The default is the working directory of this process.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Sets the contents of the program's standard input.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Sets limits. kforge then starts itself as a small process that sets the limits and becomes the program. The command line of this process must therefore
    /// pass `worker --exec` to [`super::limits::exec_main`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Passes an open file to the child under the same descriptor number. All other descriptors are closed. Do not use this while another thread starts
    /// children, because they would inherit the file too.
    #[must_use]
    pub fn inherit(mut self, fd: &Arc<OwnedFd>) -> Self {
        self.inherited.push(Arc::clone(fd));
        self
    }

    /// Keeps at most this many bytes of each output.
    #[must_use]
    pub fn capture(mut self, bytes: usize) -> Self {
        self.capture = bytes;
        self
    }

    /// Kills the child when it has more threads than this. The system has no limit on the threads of one process, and a process that takes all thread ids
    /// prevents other processes from starting threads. Only [`super::run`] checks this limit.
    #[must_use]
    pub fn threads(mut self, most: u32) -> Self {
        self.threads = Some(most);
        self
    }

    /// Kills the child and everything it started when together they exceed these limits. Only [`super::run`] checks these limits; for a child that
    /// answers lines, [`super::Talker::exchange_in`] checks those of each question.
    #[must_use]
    pub fn room(mut self, room: Room) -> Self {
        self.room = Some(room);
        self
    }

    /// The program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The command line as a user would type it, quoted where a shell needs quotes. For messages.
    pub fn line(&self) -> String {
        let words = std::iter::once(self.program.as_os_str()).chain(self.args.iter().map(OsString::as_os_str));
        words.map(quote).collect::<Vec<_>>().join(" ")
    }
}

fn quote(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.into_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_can_be_typed_again() {
        let command = Command::new("/bin/c++").arg("-DX=1").arg("it's").arg("");
        assert_eq!(command.line(), r"/bin/c++ -DX=1 'it'\''s' ''");
    }
}
