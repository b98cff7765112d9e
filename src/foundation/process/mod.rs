//! Child processes: groups, time limits, resource limits, capped capture, and descriptions of how each child ended. Knows programs, pipes and signals; does not
//! know kernels, and does not confine untrusted code (`worker::confine` does).
//!
//! Every child leads its own process group, is started by an absolute path, and gets an explicit environment. With a bare name, the standard library forks,
//! which is slow in a large process. For the same reason nothing runs between fork and exec. If a child needs resource limits or must end with its parent,
//! kforge starts a small process of its own: [`limits::exec_main`] sets the limits there and then becomes the program.

mod busy;
mod capture;
mod channels;
mod child;
mod command;
mod exit_status;
mod interactive;
pub mod family;
pub mod limits;
mod resource_limits;
mod run;
mod line_protocol;

pub use busy::{exec_when_not_busy, when_not_busy};
pub use capture::Captured;
pub use channels::look_for;
pub use command::Command;
pub use exit_status::{End, Rule, signal_name};
pub use interactive::interactive;
pub use limits::Limits;
pub use line_protocol::{Died, Talker};
pub use resource_limits::Room;
pub use run::{Finished, run, run_heard};
