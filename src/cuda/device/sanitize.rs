//! `verify.sanitize`: runs the candidate's launches again, on the inputs of the first trial, under each requested tool of Compute Sanitizer. Knows how to call
//! the tool and how to place buffers for it; [`report`] parses its output.
//!
//! | what | reason |
//! |---|---|
//! | each buffer is an allocation of exactly its bytes, without canaries | the tool knows only allocations: an access to a canary would be within bounds |
//! | outputs and poisoned workspaces are not written before the run | the tool then reports a read of them as a read of uninitialized memory |
//! | the binary is the one with line tables and the same code | findings have lines; if only lines move, only kernels with sanitizers are verified again |
//! | one process per tool | a tool performs one kind of check |
//!
//! Everything that the tool lists is a finding like any other. If a launch faults under the tool, the tool's list is used as it is; if the list is empty, the
//! driver's error is the finding. If the tool is missing, the step is unavailable, because the requested verification is impossible. If the tool crashed, hung
//! or wrote output that cannot be parsed, the step ends without a result.

mod report;

use std::ffi::OsString;
use std::path::Path;

use super::client::{Client, Lost, Starter, WRITING, WrappingTool};
use super::fault::Meaning;
use super::inputs::{self, Inputs};
use super::profile::folder;
use super::rig::{Launchable, Rig};
use kforge_harness::layout::POISONS;
use kforge_harness::message::Response;
use kforge_harness::task::{Task, failed};
use kforge_types::model::Sanitizer;
use kforge_types::record::Finding;
use kforge_types::record::params::VerifyParams;

/// The name of the tool, in its command and in a task's tools.
const TOOL: &str = "compute-sanitizer";
const SLOT: u8 = 0;
/// The name of the input with the binary with line tables.
const LINED: &str = "lined";

/// Checks that the tool exists if it is requested.
pub(super) fn possible(task: &Task, params: &VerifyParams) -> Result<(), Response> {
    if params.sanitize.is_empty() || task.places.tools.contains_key(TOOL) {
        return Ok(());
    }
    let why = format!(
        "no `{TOOL}` on this machine, which `verify.sanitize` asks for: `kforge doctor` shows where kforge searched for it"
    );
    Err(Response::Unavailable { why })
}

/// The findings of each requested tool, in order.
pub(super) fn sanitize(task: &Task, params: &VerifyParams) -> Result<Vec<Finding>, Response> {
    let mut found = vec![];
    if let Some(first) = params.trials.first().filter(|_| !params.sanitize.is_empty()) {
        let inputs = inputs::inputs(task, &params.problem, first)?;
        for asked in &params.sanitize {
            found.extend(under(task, params, &inputs, asked.tool)?);
        }
    }
    Ok(found)
}

fn under(task: &Task, params: &VerifyParams, inputs: &Inputs, tool: Sanitizer) -> Result<Vec<Finding>, Response> {
    let mut candidate = Launchable::new(task, params, "")?;
    if task.path(LINED).is_some() {
        candidate.binary = task.read(LINED)?;
    }
    let (probed, facts) = Client::find(task, &params.arch)?;
    let folder = folder(task)?;
    let (file, log) = (folder.path().join("findings.xml"), folder.path().join("log"));
    let under =
        WrappingTool { program: task.tool(TOOL)?.into(), args: args(tool, &file, &log), folder: folder.path().into() };
    let images = Rig::images(params, inputs, POISONS[0]);
    let ran = Client::begin(&probed, facts, task.left(), &Starter::Under(&under)).and_then(|client| {
        let mut rig = Rig::of(task, client);
        rig.load(SLOT, &candidate)?;
        rig.bare(0, &images)?;
        rig.constants(SLOT, &candidate, 0);
        rig.run(SLOT, 0)?;
        rig.clear();
        rig.client.end(WRITING)
    });
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    judged(tool, &text, &said(), ran.map(drop))
}

/// Interprets the output file of a tool, given how the runner under the tool ended.
fn judged(tool: Sanitizer, text: &str, log: &str, ran: Result<(), Lost>) -> Result<Vec<Finding>, Response> {
    let found = report::findings(tool, text);
    match (found, ran) {
        (Ok(found), Ok(())) => Ok(found),
        (Ok(found), Err(_)) if !found.is_empty() => Ok(found),
        (_, Err(Lost::Fault(fault))) if matches!(fault.meaning(), Meaning::Candidate(_)) => {
            Ok(fault.finding().into_iter().collect())
        }
        (_, Err(lost)) => Err(match lost.response() {
            Response::Failed { message, .. } => failed(format!("{}: {message}{}", tool.name(), last(log))),
            other => other,
        }),
        (Err(why), Ok(())) => {
            Err(failed(format!("the output of `{TOOL} --tool {}` cannot be parsed: {why}{}", tool.name(), last(log))))
        }
    }
}

/// The last line of a log that is not empty, in parentheses.
fn last(log: &str) -> String {
    let mut lines = log.lines().map(|line| line.trim_start_matches('=').trim());
    lines.rfind(|line| !line.is_empty()).map_or(String::new(), |line| format!(" ({line})"))
}

/// The arguments of the tool before the program that it starts.
fn args(tool: Sanitizer, file: &Path, log: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> =
        ["--tool", tool.name(), "--target-processes", "all", "--report-api-errors", "no", "--xml"]
            .map(OsString::from)
            .into();
    if tool == Sanitizer::Memcheck {
        // Otherwise the memory after one allocation may belong to the next one.
        args.extend(["--padding", "65536"].map(OsString::from));
    }
    // The tool's output must not mix with the runner's answers.
    args.extend(["--save".into(), file.into(), "--log-file".into(), log.into()]);
    args
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::fault::Fault;
    use super::*;
    use kforge_types::record::FindingKind;

    const NOTHING: &str = "<?xml version=\"1.0\"?><ComputeSanitizerOutput/>";

    fn fault(name: &str) -> Lost {
        Lost::Fault(Fault {
            code: 719,
            name: name.into(),
            text: String::new(),
            during: "while the launches ran".into(),
        })
    }

    #[test]
    fn what_is_listed_counts_before_the_fault_that_it_led_to() {
        let listed = include_str!("sanitize/fixtures/memcheck.xml");
        let found = judged(Sanitizer::Memcheck, listed, "", Err(fault("CUDA_ERROR_LAUNCH_FAILED"))).unwrap();
        assert_eq!((found.len(), found[0].kind), (1, FindingKind::OutOfBounds));
        let found = judged(Sanitizer::Memcheck, NOTHING, "", Err(fault("CUDA_ERROR_LAUNCH_FAILED"))).unwrap();
        assert_eq!((found.len(), found[0].kind), (1, FindingKind::Crash));
        assert_eq!(judged(Sanitizer::Memcheck, NOTHING, "", Ok(())).unwrap(), []);
    }

    #[test]
    fn a_tool_that_fails_gives_no_verdict() {
        let log = "========= COMPUTE-SANITIZER\n========= Error: Target application terminated before first instrumented API call\n=========\n";
        let why = |text: &str, ran| match judged(Sanitizer::Racecheck, text, log, ran) {
            Err(Response::Failed { message, .. }) => message,
            other => panic!("{other:?}"),
        };
        let told = why("", Err(Lost::Died("exited with 1".into())));
        assert_eq!(
            told,
            "racecheck: the device's runner exited with 1 (Error: Target application terminated before first instrumented API call)"
        );
        assert!(why("", Ok(())).starts_with("the output of `compute-sanitizer --tool racecheck` cannot be parsed"));
        assert!(why("<a>", Err(Lost::TimedOut(Duration::from_secs(2)))).contains("no answer within 2s"));
    }

    #[test]
    fn nothing_that_the_tool_prints_is_an_answer() {
        let args = args(Sanitizer::Initcheck, Path::new("/a.xml"), Path::new("/b"));
        let line: Vec<String> = args.iter().map(|a| a.to_string_lossy().into_owned()).collect();
        assert!(line.join(" ").starts_with("--tool initcheck "));
        assert!(line.join(" ").ends_with("--xml --save /a.xml --log-file /b"));
        let args = super::args(Sanitizer::Memcheck, Path::new("/a.xml"), Path::new("/b"));
        let line: Vec<String> = args.iter().map(|a| a.to_string_lossy().into_owned()).collect();
        assert!(line.join(" ").ends_with("--xml --padding 65536 --save /a.xml --log-file /b"), "{line:?}");
    }
}
