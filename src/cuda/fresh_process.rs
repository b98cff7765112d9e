//! Passes a step that this worker cannot execute to a new worker: a process can load only one NVRTC, and packages of one workspace may pin two. Knows how to
//! send a request to a worker, but not what the step is.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kforge_foundation::process::{Command, Talker};
use kforge_harness::message::{Request, Response};
use kforge_harness::task::{Task, failed};

/// Starts a new worker for one step. A new worker has loaded no NVRTC, so it does not start another one in turn. `why` is part of the message if the new worker
/// fails.
pub fn in_fresh_process(task: &Task, why: &str) -> Response {
    let request = Request {
        spec: task.spec.clone(),
        input: task.input.clone(),
        output: task.output.clone(),
        places: task.places.clone(),
        device: task.device.clone(),
        time_limit_s: task.left().as_secs(),
        run_limit_s: task.run_limit.as_secs(),
        memory_limit: task.memory_limit,
        compiler_memory: task.compiler_memory,
        allow_unconfined: task.allow_unconfined,
        hang: None,
        planned: task.planned,
    };
    ask(&request, task.left())
        .unwrap_or_else(|e| failed(format!("{why}, and no fresh worker could execute the step: {e}")))
}

fn ask(request: &Request, limit: Duration) -> Result<Response, String> {
    let line = serde_json::to_string(request).map_err(|e| e.to_string())?;
    let talker = Talker::start(&Command::own().arg("worker")).map_err(|e| e.to_string())?;
    match talker.exchange(&line, limit, &AtomicBool::new(false)) {
        Ok(Ok((talker, answer))) => {
            // The worker ends when its input does, and is killed otherwise. It has answered in both cases.
            drop(talker.dismiss(Duration::from_secs(1)));
            serde_json::from_str(&answer).map_err(|e| e.to_string())
        }
        Ok(Err(died)) => Err(died.end.to_string()),
        Err(e) => Err(e.to_string()),
    }
}
