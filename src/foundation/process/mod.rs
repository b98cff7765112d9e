//! Child processes: groups, time limits, resource limits, capped capture, and descriptions of how each ended. Knows programs, pipes and signals; knows nothing
//! of kernels, and does not confine untrusted code (`worker::confine` does).
//!
//! Every child leads a process group of its own, is started by an absolute path (with a bare name the standard library forks, which is slow in a large
//! process), and gets an explicit environment. For the same reason nothing is done between fork and exec: if a child needs resource limits
//! or must end with its parent, [`limits::exec_main`] in a small process of kforge's own sets that up and then becomes the program.

mod capture;
mod channels;
mod child;
mod command;
mod exit_status;
pub mod family;
pub mod limits;
mod resource_limits;
mod run;
mod line_protocol;

pub use capture::Captured;
pub use channels::look_for;
pub use command::Command;
pub use exit_status::{End, Rule, signal_name};
pub use limits::Limits;
pub use line_protocol::{Died, Talker};
pub use resource_limits::Room;
pub use run::{Finished, run};
