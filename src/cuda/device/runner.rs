//! `kforge worker --device-runner START`: holds a device's context and answers requests, one per line, until its input ends or the driver reports an error.
//! Knows lines; [`super::session`] does the work. Confines itself before it loads the driver.

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
use kforge_harness::confine::confine_driver;
use kforge_harness::runner::{started, take_reports};

/// The main function of a device's runner.
pub fn device_runner_main(args: &[OsString]) -> ExitCode {
    started(args, serve)
}

/// The output for the answers of a process that holds a device.
pub(super) struct Answers {
    file: File,
    /// What the system could not confine.
    missing: Vec<String>,
}

impl Answers {
    /// Prepares the process before the driver's library is loaded: confines it, or only sets limits, makes the process die with the one that started it and gives
    /// up new privileges. Opens the output for answers. Address space has no limit, because the driver reserves as much as all devices have.
    pub(super) fn open(start: &Start) -> Result<Self, String> {
        let missing = match &start.keep {
            Some(keep) => confine_driver(keep).map_err(|e| format!("cannot confine the runner: {e}"))?.missing,
            None => {
                let limits = Limits { die_with: start.parent, ..Limits::default() };
                limits.apply().map_err(|e| format!("cannot set limits: {e}"))?;
                rustix::thread::set_no_new_privs(true).map_err(|e| format!("cannot give up privileges: {e}"))?;
                vec![]
            }
        };
        let file = take_reports().map_err(|e| format!("cannot open the answers: {e}"))?;
        Ok(Answers { file, missing })
    }

    /// Writes an answer as one line.
    pub(super) fn say(&mut self, answer: &Answer) -> Result<(), String> {
        self.say_any(answer)
    }

    /// Writes an answer of another process than a runner as one line.
    pub(super) fn say_any(&mut self, answer: &impl serde::Serialize) -> Result<(), String> {
        let text = serde_json::to_string(answer).map_err(|e| e.to_string())?;
        writeln!(self.file, "{text}").map_err(|e| format!("cannot answer: {e}"))
    }
}

fn serve(start: Start) -> Result<(), String> {
    let mut answers = Answers::open(&start)?;
    let mut session = None;
    let mut lines = io::stdin().lock().lines();
    loop {
        // If a request arrives while this process polls, reading it does not have to wait.
        look_for(io::stdin().as_fd(), AWAKE);
        let Some(line) = lines.next() else { return Ok(()) };
        let line = line.map_err(|e| format!("cannot read the request: {e}"))?;
        let met = match (&mut session, line.as_str()) {
            // The first line asks whether the process has started; a context is created then.
            (None, _) => begin(&start, &mut session, &answers.missing),
            (Some(session), line) => match serde_json::from_str::<Ask>(line) {
                Ok(ask) => session.meet(ask),
                Err(e) => Err(Trouble::Refused(format!("not a request: {e}"))),
            },
        };
        match met {
            Ok(answer) => answers.say(&answer)?,
            Err(Trouble::Refused(why)) => answers.say(&Answer::Refused { why })?,
            Err(Trouble::Fault(fault)) => {
                // A refused launch ran nothing. A fault that ends the context appears in every later call.
                let goes_on = fault.is_refusal() && session.as_ref().is_some_and(Session::is_sound);
                answers.say(&Answer::Fault(fault))?;
                if goes_on {
                    continue;
                }
                // What is left of the context is not trustworthy, and freeing it would wait for its work.
                std::mem::forget(session);
                return Ok(());
            }
        }
    }
}

fn begin(start: &Start, session: &mut Option<Session>, missing: &[String]) -> Result<Answer, Trouble> {
    driver::load(start.libcuda.as_deref()).map_err(Trouble::Refused)?;
    let handed = RunnerExchange::open(&start.exchange);
    let fresh = Session::new(handed.map_err(|e| Trouble::Refused(format!("the exchange cannot be opened: {e}")))?)?;
    let answer = fresh.describe(missing.to_vec())?;
    *session = Some(fresh);
    Ok(answer)
}
