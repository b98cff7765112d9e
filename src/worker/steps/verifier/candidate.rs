//! What runs a candidate: the emulator, or Triton's interpreter. Knows how each is called; does not know what is run.

use std::time::Duration;

use super::interpreter::Interpreted;
use super::runs::{EndedRunner, Launchable, NotRun, run_candidate};
use kforge_harness::memory_file::MemoryFile;
use kforge_harness::message::RunnerTrial;

/// What runs the candidate.
pub(super) enum Candidate<'a> {
    /// The emulator.
    Emulated(Launchable<'a>),
    /// Triton's interpreter.
    Interpreted(Interpreted<'a>),
}

impl Candidate<'_> {
    /// What [`ThreadOrder`] is an order of.
    pub(super) fn ordered(&self) -> &'static str {
        if matches!(self, Candidate::Emulated(_)) { "thread" } else { "program" }
    }

    /// Runs it on each set of buffers, which are in `files`.
    pub(super) fn run(
        &self,
        trials: Vec<RunnerTrial>,
        files: &[MemoryFile],
        time: Duration,
    ) -> Result<EndedRunner, NotRun> {
        match self {
            Candidate::Emulated(candidate) => run_candidate(candidate, trials, files, time),
            Candidate::Interpreted(candidate) => candidate.run(&trials, files, time),
        }
    }
}
