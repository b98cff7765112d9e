//! `kforge worker --once SPEC IN OUT`: executes one step with input and output folders. Knows files; [`super::serve`] executes the step.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::serve::perform;
use super::steps::Dispatch;
use kforge_cuda::device;
use kforge_foundation::process::family;
use kforge_harness::compilers;
use kforge_harness::confine;
use kforge_harness::elsewhere::{Difference, OnceAnswer};
use kforge_harness::hangs::HangMark;
use kforge_harness::message::{Places, Response};
use kforge_harness::task::{Task, failed, file_name};
use kforge_types::record::{Lane, Spec};

/// Limits of a step that a person runs.
#[derive(Debug, Clone, Copy)]
pub struct OnceLimits {
    /// The time limit of the step.
    pub time: Duration,
    /// The time limit of one run of candidate code.
    pub run: Duration,
    /// Bytes of memory that candidate code may use.
    pub memory: u64,
    /// Bytes of memory that compilers may use.
    pub compiler_memory: u64,
    /// Whether candidate code and compilers may run where the system cannot confine them.
    pub allow_unconfined: bool,
}

/// The tools and limits of a step on this machine.
pub struct Ready {
    /// Where the tools are.
    pub places: Places,
    /// The limits.
    pub limits: OnceLimits,
}

/// Finds the tools of a step, whose inputs are in this folder; or says in what this machine differs from the one that the spec states.
pub type Find<'f> = dyn Fn(&Spec, &Path) -> Result<Ready, Vec<Difference>> + 'f;

/// The same from a file that another machine has sent, which comes first. The second one, if it is given, has what this machine found itself.
pub type FindDescribed<'f> = dyn Fn((&Path, Option<&Path>), &Spec, &Path) -> Result<Ready, Vec<Difference>> + 'f;

/// What becomes of the answer of a step, given its spec and the folders of its inputs and outputs.
pub type Seal<'s> = dyn Fn(&Spec, &Path, &Path, OnceAnswer) -> OnceAnswer + 's;

/// Executes the step whose spec, as JSON, is in the file `spec`. The inputs are in `input` (with `-` for colons in names), and the outputs are written to
/// `output`. `seal` gets the answer of a step that was executed.
pub fn once(spec: &Path, input: &Path, output: &Path, find: &Find<'_>, seal: &Seal<'_>, steps: Dispatch) -> OnceAnswer {
    let answered = |response| OnceAnswer::Answered {
        response,
        outputs: BTreeMap::new(),
        duration_ms: 0,
        timed_out: false,
        signed: None,
    };
    let read = fs::read(spec).map_err(|e| e.to_string());
    let parsed = read.and_then(|bytes| serde_json::from_slice::<Spec>(&bytes).map_err(|e| e.to_string()));
    let spec = match parsed {
        Ok(parsed) => parsed,
        Err(e) => return answered(failed(format!("cannot read the spec `{}`: {e}", spec.display()))),
    };
    // Inputs are read before anything is confined.
    if let Some(name) = spec.inputs.keys().find(|name| !is_name(&file_name(name))) {
        return answered(failed(format!("`{}` is not a valid name for an input", name.escape_debug())));
    }
    if let Err(e) = fs::create_dir_all(output).and_then(|()| family::adopt_orphans()) {
        return answered(failed(format!("cannot prepare for the step: {e}")));
    }
    // Programs that the step starts have other working folders.
    let (input, output) = match (std::path::absolute(input), std::path::absolute(output)) {
        (Ok(input), Ok(output)) => (input, output),
        (Err(e), _) | (_, Err(e)) => return answered(failed(format!("cannot prepare for the step: {e}"))),
    };
    let Ready { places, limits } = match find(&spec, &input) {
        Ok(ready) => ready,
        Err(differences) => return OnceAnswer::Differs { differences },
    };
    let began = Instant::now();
    // Without a folder, a candidate that timed out is merely not said to have.
    let marks = tempfile::tempdir().ok();
    let mark = marks.as_ref().map(|folder| HangMark::alone(folder.path().join("timed-out")));
    let response = executed(spec.clone(), input.clone(), &output, places, limits, (mark.clone(), steps));
    let timed_out = mark.is_some_and(|mark| mark.is_set());
    match OnceAnswer::of(response, &output, began.elapsed(), timed_out) {
        Ok(answer) => seal(&spec, &input, &output, answer),
        Err(e) => answered(failed(format!("cannot read an output: {e}"))),
    }
}

/// Whether a name leads to a file in a folder, and nowhere else.
fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

fn executed(
    spec: Spec,
    input: PathBuf,
    output: &Path,
    places: Places,
    limits: OnceLimits,
    (hang, steps): (Option<HangMark>, Dispatch),
) -> Response {
    let arch = spec.params.get("arch").and_then(|arch| arch.as_str());
    let device = arch.filter(|_| spec.kind.observes_device()).and_then(|arch| device::resolve(&places, arch));
    let task = Task {
        spec,
        input,
        output: output.to_path_buf(),
        places,
        device,
        time_limit: limits.time,
        run_limit: limits.run,
        memory_limit: limits.memory,
        compiler_memory: limits.compiler_memory,
        allow_unconfined: limits.allow_unconfined,
        hang,
        planned: SystemTime::now(),
        warm_up: false,
        started: Instant::now(),
        waiting_us: std::sync::Arc::default(),
    };
    if task.spec.kind.lane() == Some(Lane::Compiler) {
        let mut keep = compilers::of_worker(&task.places, task.compiler_memory, &task.output);
        keep.read.push(task.input.clone());
        if let Err(e) = confine::confine_worker(&keep) {
            return failed(format!("cannot confine this process: {e}"));
        }
    }
    let response = perform(&task, steps);
    family::kill_descendants(std::process::id());
    response
}
