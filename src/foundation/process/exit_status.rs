//! How a child ended, in words. Knows exit statuses and signals; does not know what the child was for.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It exited with this status.
    Exited(i32),
    /// A signal that kforge did not send killed it.
    Signalled(i32),
    /// It exceeded this time limit and was killed.
    TimedOut(Duration),
    /// It was killed because the build was interrupted.
    Interrupted,
    /// It was killed because it broke a rule.
    Misbehaved(Rule),
}

/// A rule. kforge kills a child that breaks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Maximum number of threads of the child.
    Threads,
    /// Maximum number of processes that the child and its descendants start.
    Processes,
    /// Maximum memory of all these processes together.
    Memory,
    /// Maximum number of files that the child may create.
    Files,
    /// Maximum total size of the files that the child may create.
    FileBytes,
    /// No answer without a question.
    Unasked,
    /// Maximum length of an answer.
    Answer,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::Threads => "it started more threads than allowed",
            Rule::Processes => "it started more processes than allowed",
            Rule::Memory => "it used more memory than allowed",
            Rule::Files => "it created more files than allowed",
            Rule::FileBytes => "its files take more space than allowed",
            Rule::Unasked => "it sent an answer before it was asked",
            Rule::Answer => "its answer is longer than allowed",
        })
    }
}

impl End {
    /// The end that a status of the system means.
    pub fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => End::Exited(code),
            (None, Some(signal)) => End::Signalled(signal),
            // Without WUNTRACED, a status is either an exit or a signal. -1 at least is not a success.
            (None, None) => End::Exited(-1),
        }
    }

    /// Whether it exited with status 0.
    pub fn success(self) -> bool {
        self == End::Exited(0)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Exited(code) => write!(f, "exited with {code}"),
            End::Signalled(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "killed by signal {signal} ({name})"),
                None => write!(f, "killed by signal {signal}"),
            },
            End::TimedOut(limit) => {
                let seconds = limit.as_secs_f64();
                if seconds.fract() == 0.0 {
                    write!(f, "timed out after {seconds:.0} s")
                } else {
                    write!(f, "timed out after {seconds:.1} s")
                }
            }
            End::Interrupted => f.write_str("interrupted"),
            End::Misbehaved(rule) => write!(f, "killed: {rule}"),
        }
    }
}

/// The name of a signal, if the signal ends processes.
pub fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_said_in_words() {
        assert_eq!(End::Signalled(libc::SIGSEGV).to_string(), "killed by signal 11 (SIGSEGV)");
        assert_eq!(End::Signalled(40).to_string(), "killed by signal 40");
        assert_eq!(End::Exited(3).to_string(), "exited with 3");
        assert_eq!(End::TimedOut(Duration::from_secs(10)).to_string(), "timed out after 10 s");
        assert_eq!(End::TimedOut(Duration::from_millis(1500)).to_string(), "timed out after 1.5 s");
    }

    #[test]
    fn wait_statuses_become_ends() {
        assert_eq!(End::of(ExitStatus::from_raw(3 << 8)), End::Exited(3));
        assert_eq!(End::of(ExitStatus::from_raw(9)), End::Signalled(9));
        assert!(End::of(ExitStatus::from_raw(0)).success());
    }
}
