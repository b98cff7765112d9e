//! `kforge worker --device-runner START`: holds a device's context and answers requests, a line each, until its input ends or the driver reports an
//! error. Knows lines; [`super::session`] does the work.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

use super::exchange::RunnerExchange;
use super::session::{Session, Trouble};
use super::wire::{Answer, Ask, Start};
use super::{AWAKE, driver};
use kforge_foundation::process::{Limits, look_for};
use kforge_harness::runner::{started, take_reports};

/// The whole life of a device's runner.
pub fn device_runner_main(args: &[OsString]) -> ExitCode {
    started(args, serve)
}

/// Where the answers of a process that holds a device go.
pub(super) struct Answers(File);

impl Answers {
    /// Limits the process, which dies with who started it, gives up new privileges, and opens its answers: what comes before the driver's library is loaded.
    /// Address space has no limit: the driver reserves as much as all devices have.
    pub(super) fn open(start: &Start) -> Result<Self, String> {
        let limits = Limits { die_with: start.parent, ..Limits::default() };
        limits.apply().map_err(|e| format!("cannot set limits: {e}"))?;
        rustix::thread::set_no_new_privs(true).map_err(|e| format!("cannot give up privileges: {e}"))?;
        take_reports().map(Answers).map_err(|e| format!("cannot open the answers: {e}"))
    }

    /// Answers with a line.
    pub(super) fn say(&mut self, answer: &Answer) -> Result<(), String> {
        let text = serde_json::to_string(answer).map_err(|e| e.to_string())?;
        writeln!(self.0, "{text}").map_err(|e| format!("cannot answer: {e}"))
    }
}

fn serve(start: Start) -> Result<(), String> {
    let mut answers = Answers::open(&start)?;
    let mut session = None;
    let mut lines = io::stdin().lock().lines();
    loop {
        // What comes before it is looked for is read with it: then there is nothing to wait for.
        look_for(io::stdin().as_fd(), AWAKE);
        let Some(line) = lines.next() else { return Ok(()) };
        let line = line.map_err(|e| format!("cannot read the request: {e}"))?;
        let met = match (&mut session, line.as_str()) {
            // The first line asks whether it has started; then a context is made.
            (None, _) => begin(&start, &mut session),
            (Some(session), line) => match serde_json::from_str::<Ask>(line) {
                Ok(ask) => session.meet(ask),
                Err(e) => Err(Trouble::Refused(format!("not a request: {e}"))),
            },
        };
        match met {
            Ok(answer) => answers.say(&answer)?,
            Err(Trouble::Refused(why)) => answers.say(&Answer::Refused { why })?,
            Err(Trouble::Fault(fault)) => {
                // What was refused ran nothing. A fault that ends the context shows in every call after it.
                let goes_on = fault.is_refusal() && session.as_ref().is_some_and(Session::is_sound);
                answers.say(&Answer::Fault(fault))?;
                if goes_on {
                    continue;
                }
                // What is left of the context is not to be trusted, and freeing would wait for it.
                std::mem::forget(session);
                return Ok(());
            }
        }
    }
}

fn begin(start: &Start, session: &mut Option<Session>) -> Result<Answer, Trouble> {
    driver::load(start.libcuda.as_deref()).map_err(Trouble::Refused)?;
    let handed = RunnerExchange::open(&start.exchange);
    let fresh = Session::new(handed.map_err(|e| Trouble::Refused(format!("the exchange cannot be opened: {e}")))?)?;
    let free = fresh.free_memory()?;
    *session = Some(fresh);
    Ok(Answer::Ready { free })
}
