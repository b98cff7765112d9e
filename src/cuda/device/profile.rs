//! The profile step: the candidate runs on a device in a new process that Nsight Compute (`ncu`) has started, and the output of `ncu` becomes metrics with
//! their canonical names. Knows how to call `ncu` and what missing output means, but not how far a kernel is from its device's peaks.
//!
//! # Method
//!
//! `ncu` starts the runner of [`super::runner`], which answers on the usual pipes. The runner opens the exchange by path, because a tool may not pass
//! descriptors on. The launches run twice on the inputs of the first trial: once without profiling, so that code is loaded and clocks are up, then profiled.
//! `ncu` replays each kernel as often as its counters need, with caches emptied before each pass, as in cold timing, and restores what the kernel wrote in
//! between.
//!
//! | option | reason |
//! |---|---|
//! | `--kernel-name`, `--launch-skip`, `--launch-count` | selects only the candidate's own launches of the second run, however often anything is launched |
//! | `--clock-control none` | kforge must not set the machine's clocks, and timings do not run at the clocks that `ncu` would set |
//! | `--cache-control all` | caches are empty before each pass |
//! | `--replay-mode kernel` | a pass is a kernel, not a process: it runs with its original inputs |
//! | `--print-units base` | counts in ones, bytes and nanoseconds |
//!
//! # Missing results
//!
//! | cause | result |
//! |---|---|
//! | no `ncu` | unavailable: this machine cannot profile |
//! | no permission for counters (`ERR_NVGPUCTRPERM`) | absent, with the reason; not remembered, because the machine's administrator may grant it |
//! | `ncu` crashed, hung or wrote output that cannot be parsed; the launches did not end under `ncu` | absent, with the reason; not remembered |
//! | a metric that this `ncu` does not have on this device, or whose value is not a number | missing, by name |
//!
//! None of this is a verdict: only verify decides whether a kernel is wrong.

mod combine;
mod counters;
mod log;

pub use self::counters::{CountersError, counters};
pub use self::log::ValueError;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use self::combine::combine;
use self::log::Log;
use super::client::{Client, Lost, Starter, WRITING, WrappingTool};
use super::inputs;
use super::rig::{Launchable, Rig, completed, provenance};
use kforge_engine::evidence::PROVENANCE;
use kforge_harness::layout::POISONS;
use kforge_harness::message::Response;
use kforge_harness::task::{Task, failed};
use kforge_types::model::bound::Launch;
use kforge_types::record::Unknown;
use kforge_types::record::metric::metric;
use kforge_types::record::params::VerifyParams;
use kforge_types::record::profile::{ProfileObserved, ProfileParams};

/// The name of the tool, in its command and in a task's tools.
const NCU: &str = "ncu";
const SLOT: u8 = 0;
/// The time limit for a profile. Each kernel runs about ten to twenty times; a start costs two seconds.
const LONGEST: Duration = Duration::from_secs(300);
/// The most launches of a variant that are replayed.
const MOST_LAUNCHES: usize = 64;
/// The message of a profiler without permission to read counters.
const REFUSED: &str = "ERR_NVGPUCTRPERM";

/// Executes a profile step.
pub fn profile(task: &Task) -> Response {
    profiled(task).unwrap_or_else(|response| response)
}

fn profiled(task: &Task) -> Result<Response, Response> {
    let mut params: ProfileParams = task.params()?;
    params.of = completed(task, params.of, "")?;
    let ncu = task.places.tools.get(NCU).ok_or_else(|| Response::Unavailable {
        why: format!("no `{NCU}` on this machine: `kforge doctor` shows where kforge searched for it"),
    })?;
    let (probed, facts) = Client::find(task, &params.of.arch)?;
    let capability = facts.capability();
    let provenance = provenance(&facts, params.protocol);
    let mut seen = ProfileObserved::default();
    match launches(&params.of) {
        0 => seen.absent = Some(Unknown::Missing("it launches no kernel".into())),
        many if many > MOST_LAUNCHES => {
            let why = format!("it has {many} launches, and at most {MOST_LAUNCHES} can be profiled");
            seen.absent = Some(Unknown::TooLarge(why));
        }
        count => {
            let folder = folder(task)?;
            let taking = ProfileRun { task, params: &params, count, ncu, folder: folder.path() };
            let began =
                |under: &WrappingTool| Client::begin(&probed, facts, task.left().min(LONGEST), &Starter::Under(under));
            match taking.log(capability, began)? {
                Ok(log) => {
                    let found = combine(&params.metrics, capability, &log);
                    (seen.metrics, seen.missing) = (found.metrics, found.missing);
                }
                Err(why) => {
                    seen.absent = Some(why);
                    task.write_document("observation", &seen)?;
                    task.write_document(PROVENANCE, &provenance)?;
                    return Ok(Response::Done { verdict: None, notes: vec![], summary: summary(&seen), forget: true });
                }
            }
        }
    }
    task.write_document("observation", &seen)?;
    task.write_document(PROVENANCE, &provenance)?;
    Ok(Response::Done { verdict: None, notes: vec![], summary: summary(&seen), forget: false })
}

fn summary(seen: &ProfileObserved) -> String {
    match &seen.absent {
        Some(why) => why.to_string(),
        None => format!("{} of {} metrics", seen.metrics.len(), seen.metrics.len() + seen.missing.len()),
    }
}

/// The number of kernels that one run launches.
fn launches(params: &VerifyParams) -> usize {
    params.launches.iter().filter(|launch| matches!(launch, Launch::Kernel(_))).count()
}

/// A folder next to the step's folder, for the files of a tool.
pub(super) fn folder(task: &Task) -> Result<tempfile::TempDir, Response> {
    let beside = task.output.parent().unwrap_or(&task.output);
    tempfile::tempdir_in(beside).map_err(|e| failed(format!("cannot make a folder beside that of the step: {e}")))
}

/// One profile.
struct ProfileRun<'a> {
    task: &'a Task,
    params: &'a ProfileParams,
    count: usize,
    ncu: &'a Path,
    folder: &'a Path,
}

impl ProfileRun<'_> {
    /// The log of `ncu` about the launches, or why there is none.
    fn log(
        &self,
        capability: u32,
        begin: impl FnOnce(&WrappingTool) -> Result<Client, Lost>,
    ) -> Result<Result<Log, Unknown>, Response> {
        let of = &self.params.of;
        let candidate = Launchable::new(self.task, of, "")?;
        let first = of.trials.first().ok_or_else(|| failed("there are no inputs to profile it on"))?;
        let inputs = inputs::inputs(self.task, &of.problem, first)?;
        let images = Rig::images(of, &inputs, POISONS[0]);
        let file = self.folder.join("profile.csv");
        let names = names(&self.params.metrics, capability);
        let args = args(&file, &names, &symbols(&candidate), self.count);
        let under = WrappingTool { program: self.ncu.into(), args, folder: self.folder.into() };
        let ran = begin(&under).and_then(|client| {
            let mut rig = Rig::of(self.task, client);
            rig.lock(true).and_then(|()| rig.sets(of, 1)).map_err(|response| Lost::Refused(said(response)))?;
            rig.load(SLOT, &candidate)?;
            rig.allocate(0, &images);
            for _ in 0..2 {
                rig.lay(0, &images, 0xc5)?;
                rig.constants(SLOT, &candidate, 0);
                rig.run(SLOT, 0)?;
            }
            rig.clear();
            rig.client.end(WRITING)
        });
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        Ok(judged(&text, self.count, ran.map(|end| end.to_string())))
    }
}

/// The text of a response.
fn said(response: Response) -> String {
    match response {
        Response::Failed { message, .. } => message,
        Response::Unavailable { why } | Response::NeedsTool { why, .. } => why,
        Response::Done { summary, .. } => summary,
    }
}

/// Interprets the output file of `ncu`, given how the runner under `ncu` ended.
fn judged(text: &str, wanted: usize, ran: Result<String, Lost>) -> Result<Log, Unknown> {
    let missing = |why: String| Unknown::Missing(format!("`{NCU}`: {why}"));
    // Checked first, because everything else follows from it.
    let refused = text.lines().find(|line| line.contains(REFUSED));
    if let Some(line) = refused {
        let line = line.trim_start_matches("==ERROR== ").split(". ").next().unwrap_or(line);
        return Err(Unknown::NoCounters(line.into()));
    }
    let log = Log::read(text);
    let errors = log.as_ref().map(|log| log.errors.join("; ")).unwrap_or_default();
    let ended = match ran {
        Ok(ended) => ended,
        Err(lost) => {
            let why = lost.response();
            let why = said(why);
            return Err(missing(if errors.is_empty() { why } else { format!("{why} ({errors})") }));
        }
    };
    let log = log.map_err(|why| missing(format!("its output cannot be parsed: {why}")))?;
    match log.launches.len() {
        found if found == wanted => Ok(log),
        found => {
            let errors = if errors.is_empty() { ended } else { errors };
            Err(missing(format!("it profiled {found} of {wanted} launches ({errors})")))
        }
    }
}

/// Every name that a wanted metric may have on this device; `ncu` ignores names that it does not know.
fn names(wanted: &[String], capability: u32) -> BTreeSet<&'static str> {
    let wanted = wanted.iter().filter_map(|name| metric(name));
    wanted.flat_map(|metric| metric.names(capability)).chain(["gpu__time_duration.sum"]).collect()
}

/// The symbols of the entries that are launched.
fn symbols(candidate: &Launchable<'_>) -> BTreeSet<String> {
    let launched = |entry: &str| {
        let mut kernels = candidate.params.launches.iter();
        kernels.any(|launch| matches!(launch, Launch::Kernel(kernel) if kernel.entry == entry))
    };
    let entries = candidate.entries.iter().filter(|(entry, _)| launched(entry));
    entries.map(|(_, symbol)| symbol.clone()).collect()
}

/// The arguments of `ncu` before the program that it starts.
fn args(file: &Path, metrics: &BTreeSet<&str>, symbols: &BTreeSet<String>, count: usize) -> Vec<OsString> {
    let symbols: Vec<String> = symbols.iter().map(|symbol| regex::escape(symbol)).collect();
    let metrics: Vec<&str> = metrics.iter().copied().collect();
    let count = count.to_string();
    let mut args: Vec<OsString> = [
        "--csv",
        "--page",
        "raw",
        "--print-units",
        "base",
        "--clock-control",
        "none",
        "--cache-control",
        "all",
        "--replay-mode",
        "kernel",
        "--target-processes",
        "all",
        "--kernel-name-base",
        "mangled",
        "--kernel-name",
        &format!("regex:^({})$", symbols.join("|")),
        "--launch-skip",
        &count,
        "--launch-count",
        &count,
        "--metrics",
        &metrics.join(","),
        "--log-file",
    ]
    .map(OsString::from)
    .into();
    args.push(file.into());
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERMISSION: &str = "==PROF== Connected to process 7 (/usr/bin/kforge)\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access \
        NVIDIA GPU Performance Counters on the target device 0. For instructions on enabling permissions and to get more information see \
        https://developer.nvidia.com/ERR_NVGPUCTRPERM\n==WARNING== No kernels were profiled.\n";

    fn ended() -> Result<String, Lost> {
        Ok("exited with 0".into())
    }

    #[test]
    fn refused_counters_are_no_counters_however_the_runner_ended() {
        let want = Unknown::NoCounters(
            "ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0".into(),
        );
        assert_eq!(judged(PERMISSION, 1, ended()), Err(want.clone()));
        assert_eq!(judged(PERMISSION, 1, Err(Lost::Died("exited with 1".into()))), Err(want));
    }

    #[test]
    fn every_launch_has_to_be_there() {
        assert_eq!(judged(log::tests::THREE, 3, ended()).unwrap().launches.len(), 3);
        let why = |text: &str, wanted, ran| judged(text, wanted, ran).unwrap_err().to_string();
        assert_eq!(why(log::tests::THREE, 4, ended()), "missing: `ncu`: it profiled 3 of 4 launches (exited with 0)");
        let none = include_str!("profile/fixtures/no_kernels.csv");
        assert!(why(none, 1, ended()).contains("it profiled 0 of 1 launches"));
        let fault = include_str!("profile/fixtures/fault.csv");
        let lost = || Err(Lost::Died("exited with 9".into()));
        assert_eq!(
            why(fault, 1, lost()),
            "missing: `ncu`: the device's runner exited with 9 (An error was reported by the driver:; LaunchFailed; The application returned an error code (9).)"
        );
        assert!(why("", 1, Err(Lost::TimedOut(Duration::from_secs(3)))).contains("no answer within 3s"));
        assert!(why("\"ID\",\"x\n", 1, ended()).contains("cannot be parsed"));
    }

    #[test]
    fn the_candidates_own_launches_are_chosen_by_symbol_and_bounded() {
        let symbols = ["_Z1fPf".to_string(), "a$b".to_string()].into();
        let args = args(Path::new("/x.csv"), &["a.sum", "b.pct"].into(), &symbols, 2);
        let line: Vec<String> = args.iter().map(|a| a.to_string_lossy().into_owned()).collect();
        let line = line.join(" ");
        for part in [
            "--kernel-name-base mangled --kernel-name regex:^(_Z1fPf|a\\$b)$",
            "--launch-skip 2 --launch-count 2",
            "--clock-control none",
            "--metrics a.sum,b.pct --log-file /x.csv",
        ] {
            assert!(line.contains(part), "{line}");
        }
    }

    #[test]
    fn all_names_of_a_metric_are_asked_for_and_time_always() {
        let names = names(&["pipe_fp32".into(), "pipe_tensor_integer".into()], 75);
        let want = [
            "gpu__time_duration.sum",
            "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
            "sm__pipe_fp32_cycles_active.avg.pct_of_peak_sustained_active",
        ];
        assert_eq!(names.into_iter().collect::<Vec<_>>(), want);
    }
}
