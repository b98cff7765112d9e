//! Child processes: groups, time limits, resource limits, capped capture, and how each ended in words. Knows programs, pipes and signals; knows nothing of
//! kernels, and does not confine untrusted code (that is `worker::confine`).
//!
//! Every child leads a process group of its own, is named by an absolute path (a bare name makes the standard library fork, which is slow in a large
//! process), and gets an environment that is spelt out. Nothing is done between fork and exec, for the same reason: where a child needs resource limits
//! or has to die with its parent, [`limits::exec_main`] in a small process of ours sets them and then becomes the program.

mod capture;
mod channels;
mod child;
mod command;
mod end;
pub mod family;
pub mod limits;
mod room;
mod run;
mod talk;

pub use capture::Captured;
pub use channels::look_for;
pub use command::Command;
pub use end::{End, Rule, signal_name};
pub use limits::Limits;
pub use room::Room;
pub use run::{Finished, run};
pub use talk::{Died, Talker};
