//! The worker's loop: one request per line in, one response per line out. Knows messages; [`steps`](super::steps) knows which code executes which step.
//!
//! A worker ends with its coordinator. A separate thread watches standard input. If the input ends while a step is being executed, that thread kills everything
//! that the step started, and then the worker. After every step, the worker kills what the step left running, except the runner of a device and the processes
//! of NVRTC and of Python, which wait for the next step. Libraries may print to standard output, so descriptor 1 is redirected to standard error and only responses reach the coordinator.
#![expect(unsafe_code, reason = "dup2 onto descriptor 1 is only a system call")]

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use rustix::process::{Signal, getpid, kill_process};

use super::steps::Dispatch;
use kforge_cuda::device;
use kforge_foundation::process::family;
use kforge_harness::message::{Request, Response};
use kforge_harness::python_server;
use kforge_harness::task::{Task, failed};

/// `kforge worker`: serves requests until its input ends.
pub fn serve_main(steps: Dispatch) -> ExitCode {
    match serve_standard(steps) {
        Ok(()) => ExitCode::SUCCESS,
        // The coordinator sees that the worker has ended; only the exit status can still report an error.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve_standard(steps: Dispatch) -> io::Result<()> {
    family::adopt_orphans()?;
    let answers = File::from(take_stdout()?);
    let busy = Arc::new(AtomicBool::new(false));
    let lines = watch_stdin(Arc::clone(&busy));
    let sweep = || {
        let kept = device::warm().into_iter().chain(kforge_cuda::kept_process()).chain(python_server::kept_processes());
        let kept: Vec<u32> = kept.collect();
        family::kill_descendants_but(std::process::id(), &kept);
        if !device::is_starting() {
            family::reap();
        }
    };
    serve(lines.into_iter(), answers, &busy, steps, &sweep)
}

/// Moves standard output to another descriptor, and redirects descriptor 1 to standard error.
fn take_stdout() -> io::Result<OwnedFd> {
    let answers = io::stdout().as_fd().try_clone_to_owned()?;
    // SAFETY: both numbers are those of the standard streams. From now on, our code writes to standard output only through the copy.
    match unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(answers),
    }
}

/// Reads lines on a separate thread, so that the worker notices the end of the coordinator while a step is being executed.
fn watch_stdin(busy: Arc<AtomicBool>) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            // Set here rather than where the line is received, because the input may end between the two.
            busy.store(true, Ordering::SeqCst);
            if send.send(line).is_err() {
                return;
            }
        }
        if busy.load(Ordering::SeqCst) {
            let own = std::process::id();
            family::kill_descendants(own);
            let _ = kill_process(getpid(), Signal::KILL);
        }
    });
    receive
}

/// Answers each line. Before each answer, calls `sweep` and then clears `busy`.
fn serve(
    lines: impl Iterator<Item = String>,
    mut answers: impl Write,
    busy: &AtomicBool,
    steps: Dispatch,
    sweep: &dyn Fn(),
) -> io::Result<()> {
    for line in lines {
        let response = match serde_json::from_str::<Request>(&line) {
            Ok(request) => perform(&request.into(), steps).worded(),
            Err(e) => failed(format!("not a request to a worker: {e}")),
        };
        sweep();
        let mut text = serde_json::to_string(&response).map_err(io::Error::other)?;
        text.push('\n');
        busy.store(false, Ordering::SeqCst);
        answers.write_all(text.as_bytes())?;
        answers.flush()?;
    }
    Ok(())
}

/// Executes one step. A panic fails the step but does not end the worker.
pub fn perform(task: &Task, steps: Dispatch) -> Response {
    let found: Option<fn(&Task) -> Response> = if task.warm_up { Some(device::warm_up) } else { steps(task) };
    let Some(run) = found else {
        let on =
            task.spec.params.get("arch").and_then(|a| a.as_str()).map(|a| format!(" for `{a}`")).unwrap_or_default();
        return Response::Unavailable {
            why: format!("no worker of this version executes `{}` steps{on}", task.spec.kind),
        };
    };
    if let Some(response) = task.not_launched() {
        return response;
    }
    catch_unwind(AssertUnwindSafe(|| run(task))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("of unknown cause");
        failed(format!("internal error in a `{}` step: {text}", task.spec.kind))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_harness::message::Places;
    use kforge_types::record::{Spec, StepKind};

    fn broken(_: &Task) -> Response {
        panic!("as the test wants")
    }

    #[test]
    fn a_panic_and_an_unknown_line_are_answered() {
        let spec = Spec {
            kind: StepKind::Oracle,
            version: 1,
            implementation: None,
            params: serde_json::json!({}),
            inputs: std::collections::BTreeMap::new(),
        };
        let request = Request {
            spec,
            input: "in".into(),
            output: "out".into(),
            places: Places::default(),
            device: None,
            time_limit_s: 1,
            run_limit_s: 1,
            memory_limit: 1,
            compiler_memory: 1,
            allow_unconfined: false,
            hang: None,
            planned: std::time::SystemTime::UNIX_EPOCH,
            warm_up: false,
        };
        let lines = ["nonsense".to_string(), serde_json::to_string(&request).unwrap()];
        let mut answers = Vec::new();
        serve(lines.into_iter(), &mut answers, &AtomicBool::new(true), |_| Some(broken), &|| {}).unwrap();
        let answers: Vec<Response> =
            answers.split(|b| *b == b'\n').filter_map(|l| serde_json::from_slice(l).ok()).collect();
        let [Response::Failed { message: first, .. }, Response::Failed { message: second, .. }] = &answers[..] else {
            panic!("{answers:?}")
        };
        assert!(first.starts_with("not a request"), "{first}");
        assert_eq!(second, "internal error in a `oracle` step: as the test wants");
    }
}
