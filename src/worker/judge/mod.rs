//! The judge on `cpu`: makes inputs, holds expectations, runs the candidate in a confined runner, and compares once that has ended. Knows operators, trials
//! and memory files; never loads candidate code, and believes nothing of a runner that would improve a result.
//!
//! | what | how |
//! |---|---|
//! | inputs | in memory files sealed against writing: nobody can change them |
//! | outputs, workspaces | in memory files of fixed size, poisoned; one set for each run, in two patterns, so that an element that nobody wrote holds both |
//! | around a buffer | the rest of its file is canaries; on one side, in turn, lies a page that cannot be touched |
//! | runs of a trial | threads forward, reversed, shuffled; every output of every run is compared whole |
//! | the runner | confined, a process of its own for each trial; ended with its group before anything is read back |
//! | reports | add findings and text; a missing end of a run is a crash, a report that is none breaks the protocol |
//! | time | the judge's own clock; a time-out fails and is not remembered |

mod buffers;
mod memory;
mod reports;
mod runs;
mod step;

pub use memory::MemoryFile;
pub use reports::{Heard, hear};
pub use runs::{Candidate, Ran, run_candidate};
pub use step::run;
