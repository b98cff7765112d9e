//! From results to KernelGYM's answers. Pure.
//!
//! | decision | because |
//! |---|---|
//! | what was evaluated is `completed`, also if it does not compile or is wrong | KernelGYM's client fetches no other result, and the reason would not reach the model |
//! | only a fault of the server, or of a device that it lacks, is `failed` | the candidate is not to blame for it |
//! | an unknown time is -1, and the speed-up is then 0 | these are KernelGYM's own words; `metadata.kforge` says what is unknown |
//! | times are those of whole calls, by the clock of another process | KernelGYM times a module too; the reference is called in the same way |
//! | the counts and times of a profiler are absent where nothing was recorded | 0 would say that no kernel ran |
//! | where the kernels of calls were recorded, they decide what is a decoy; otherwise its source does | a text shows neither that a kernel runs nor that none does |

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::request::{CANDIDATE, DECOY, REFERENCE};
use crate::api::{Cause, ErrorCode, EvaluationResult, KernelResult, MessageSeverity, Task, TaskStatus, VerdictWord};
use kforge_numerics::measure::own_share::{OwnShare, Whose};
use kforge_types::record::FindingKind;

/// How far a task is, in KernelGYM's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum GymStatus {
    Pending,
    Processing,
    Completed,
    Failed,
    Timeout,
}

/// KernelGYM's codes of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(clippy::enum_variant_names, reason = "the names are KernelGYM's")]
pub(super) enum GymCode {
    ValidationError,
    CompilationError,
    RuntimeError,
    CorrectnessError,
    TimeoutError,
    SystemError,
    ResourceError,
    UnknownError,
    SyntaxError,
    ImportError,
    InstantiationError,
}

impl GymCode {
    /// The code for a module that cannot be a reference, by the word of the import.
    pub(super) fn of_reference(kind: &str) -> GymCode {
        match kind {
            "syntax" => GymCode::SyntaxError,
            "import" => GymCode::ImportError,
            // The module was made and called, and it raised.
            "error" => GymCode::InstantiationError,
            "time" => GymCode::TimeoutError,
            _ => GymCode::ValidationError,
        }
    }

    /// The code for a request that the service refuses.
    pub(super) fn of_refusal(code: ErrorCode) -> GymCode {
        match code {
            ErrorCode::QueueFull | ErrorCode::ClientLimit => GymCode::ResourceError,
            ErrorCode::Draining | ErrorCode::Storage => GymCode::SystemError,
            ErrorCode::BadRequest
            | ErrorCode::Unauthorized
            | ErrorCode::Forbidden
            | ErrorCode::NotFound
            | ErrorCode::MethodNotAllowed
            | ErrorCode::SlowBody
            | ErrorCode::Conflict
            | ErrorCode::TooLarge => GymCode::ValidationError,
        }
    }
}

/// The answer to an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct GymAnswer {
    pub(super) task_id: String,
    pub(super) status: GymStatus,
    compiled: bool,
    correctness: bool,
    decoy_kernel: bool,
    /// In milliseconds; -1 if unknown.
    reference_runtime: f64,
    /// In milliseconds; -1 if unknown.
    kernel_runtime: f64,
    speedup: f64,
    metadata: Value,
    pub(super) error_message: Option<String>,
    pub(super) error_code: Option<GymCode>,
    submitted_at: Option<String>,
    completed_at: Option<String>,
    processing_time: Option<f64>,
}

impl GymAnswer {
    /// The answer about what was not evaluated.
    pub(super) fn not_evaluated(id: &str, status: GymStatus, code: GymCode, message: String) -> GymAnswer {
        GymAnswer { error_message: Some(message), error_code: Some(code), ..GymAnswer::blank(id, status) }
    }

    fn blank(id: &str, status: GymStatus) -> GymAnswer {
        GymAnswer {
            task_id: id.into(),
            status,
            compiled: false,
            correctness: false,
            decoy_kernel: false,
            reference_runtime: -1.0,
            kernel_runtime: -1.0,
            speedup: 0.0,
            metadata: json!({}),
            error_message: None,
            error_code: None,
            submitted_at: None,
            completed_at: None,
            processing_time: None,
        }
    }

    /// The answer about a task, under the id that the client gave it.
    pub(super) fn of(id: &str, task: &Task) -> GymAnswer {
        let (status, code) = match (&task.result, task.status) {
            (Some(result), _) => standing(result),
            (None, TaskStatus::Queued) => (GymStatus::Pending, None),
            (None, TaskStatus::Running) => (GymStatus::Processing, None),
            // KernelGYM has no other word for it, and its client polls until one that it knows.
            (None, TaskStatus::Cancelled) => (GymStatus::Failed, Some(GymCode::UnknownError)),
            (None, TaskStatus::Done) => (GymStatus::Failed, Some(GymCode::SystemError)),
        };
        let mut answer = GymAnswer {
            error_code: code,
            submitted_at: Some(task.submitted_at.clone()),
            completed_at: task.finished_at.clone(),
            ..GymAnswer::blank(id, status)
        };
        match (&task.result, task.status) {
            (Some(result), _) => answer.fill(result),
            (None, TaskStatus::Cancelled) => answer.error_message = Some("the task was cancelled".into()),
            (None, TaskStatus::Done) => answer.error_message = Some("the result of the task is missing".into()),
            (None, TaskStatus::Queued | TaskStatus::Running) => {}
        }
        answer
    }

    fn fill(&mut self, result: &EvaluationResult) {
        let kernel = candidate(result);
        let reference = result.kernels.iter().find(|kernel| kernel.kernel == REFERENCE);
        let is_correct = kernel.is_some_and(|kernel| kernel.verdict == VerdictWord::Pass);
        let own = kernel.and_then(|kernel| kernel.calls.iter().find_map(|calls| calls.own.as_ref()));
        let has_none = || kernel.is_some_and(|kernel| kernel.kernel == DECOY);
        self.decoy_kernel = match own {
            Some(own) if own.at_most == 0.0 => true,
            Some(own) if own.at_least > 0.0 => false,
            _ => has_none(),
        };
        self.compiled = is_correct || result.compiled.unwrap_or(false);
        self.correctness = is_correct;
        let times = (kernel.and_then(call_ms), reference.and_then(call_ms));
        self.reference_runtime = times.1.unwrap_or(-1.0);
        let counts = is_correct && !self.decoy_kernel;
        self.kernel_runtime = times.0.filter(|_| counts).unwrap_or(-1.0);
        let speedup = times.0.zip(times.1).filter(|_| counts).map(|(own, reference)| reference / own);
        self.speedup = speedup.unwrap_or(0.0);
        self.processing_time = Some(result.seconds);
        let calls = kernel.and_then(|kernel| kernel.calls.first());
        self.metadata = json!({
            "device": kernel.and_then(|kernel| kernel.observed_on.first()),
            "kforge": {
                "version": result.kforge,
                "verdict": kernel.map_or(result.verdict, |kernel| kernel.verdict),
                "cause": result.cause,
                "speedup": speedup,
                "hand_over_ms": calls.and_then(|calls| calls.hand_over_ns).map(|ns| ns / 1e6),
                "interval_ms": calls.and_then(|calls| calls.interval).map(|(low, high)| (low / 1e6, high / 1e6)),
                "calls": calls.map(|calls| calls.calls),
                "untimed": calls.and_then(|calls| calls.untimed.clone()),
                "own_share": own.map(|own| (own.at_least, own.at_most)),
            },
        });
        if let (Some(own), Some(metadata)) = (own, self.metadata.as_object_mut()) {
            profiled(own, metadata);
        }
        if self.error_code.is_some() {
            self.error_message = Some(failure_text(result, kernel));
        }
    }
}

/// What KernelGYM's profiler would count: of the kernels of a call, in microseconds. What is known only between bounds is absent.
fn profiled(own: &OwnShare, metadata: &mut Map<String, Value>) {
    let count = |is: &dyn Fn(Whose) -> bool| own.kernels.iter().filter(|kernel| is(kernel.whose)).count();
    let total_us = own.device_ns / 1e3;
    metadata.insert("num_total_kernels".into(), count(&|_| true).into());
    metadata.insert("total_kernel_run_time_in_profiling_us".into(), total_us.into());
    if let Some(share) = own.value() {
        metadata.insert("num_custom_kernels".into(), count(&|whose| whose == Whose::Own).into());
        metadata.insert("custom_kernel_cuda_time_in_profiling_us".into(), (share * total_us).into());
    }
}

/// The candidate among the kernels of a result.
fn candidate(result: &EvaluationResult) -> Option<&KernelResult> {
    result.kernels.iter().find(|kernel| kernel.kernel == CANDIDATE || kernel.kernel == DECOY)
}

/// The median time of its calls in milliseconds.
fn call_ms(kernel: &KernelResult) -> Option<f64> {
    kernel.calls.iter().find_map(|calls| calls.call_ns).map(|ns| ns / 1e6)
}

/// Status and code of a result. What the candidate itself was found to do decides first: the cause is that of all kernels, also of the reference.
fn standing(result: &EvaluationResult) -> (GymStatus, Option<GymCode>) {
    let kernel = candidate(result);
    let verdict = kernel.map_or(result.verdict, |kernel| kernel.verdict);
    if let (VerdictWord::Fail, Some(code)) = (verdict, found(kernel)) {
        return (GymStatus::Completed, Some(code));
    }
    match (verdict, result.cause) {
        (VerdictWord::Pass, _) => (GymStatus::Completed, None),
        (VerdictWord::Fail, Some(Cause::NotCompiled)) => (GymStatus::Completed, Some(GymCode::CompilationError)),
        (VerdictWord::Fail, Some(Cause::NoProgress)) => (GymStatus::Completed, Some(GymCode::TimeoutError)),
        (VerdictWord::Fail, _) => (GymStatus::Completed, Some(GymCode::CorrectnessError)),
        (VerdictWord::Unknown, Some(Cause::TimedOut)) => (GymStatus::Timeout, Some(GymCode::TimeoutError)),
        (VerdictWord::Unknown, Some(Cause::NotAccepted)) => (GymStatus::Completed, Some(GymCode::ValidationError)),
        (VerdictWord::Unknown, Some(Cause::Unavailable)) => (GymStatus::Failed, Some(GymCode::ResourceError)),
        (VerdictWord::Unknown, Some(Cause::Internal)) => (GymStatus::Failed, Some(GymCode::SystemError)),
        (VerdictWord::Unknown, _) => (GymStatus::Failed, Some(GymCode::UnknownError)),
    }
}

/// The code of what a candidate was found to do; none without findings.
fn found(kernel: Option<&KernelResult>) -> Option<GymCode> {
    let shapes = kernel.into_iter().flat_map(|kernel| &kernel.variants).flat_map(|variant| &variant.shapes);
    let kinds: Vec<Option<FindingKind>> =
        shapes.filter_map(|shape| shape.finding.as_ref()).map(|finding| finding.kind).collect();
    let did_not_run = |kind: &FindingKind| kind.not_run().is_some() || *kind == FindingKind::Forbidden;
    match kinds.first()? {
        _ if kinds.contains(&Some(FindingKind::NoProgress)) => Some(GymCode::TimeoutError),
        _ if kinds.iter().flatten().any(did_not_run) => Some(GymCode::RuntimeError),
        _ => Some(GymCode::CorrectnessError),
    }
}

/// What is wrong: the reason, the explanation, and what else was said of it.
fn failure_text(result: &EvaluationResult, kernel: Option<&KernelResult>) -> String {
    let shapes = kernel.into_iter().flat_map(|kernel| &kernel.variants).flat_map(|variant| &variant.shapes);
    let explanations = shapes.filter_map(|shape| Some(shape.finding.as_ref()?.explanation.as_str()));
    let own = kernel.and_then(|kernel| kernel.reason.as_deref());
    let is_own = |of: &Option<String>| of.as_deref().is_none_or(|name| name != REFERENCE);
    let errors =
        result.messages.iter().filter(|message| message.severity == MessageSeverity::Error && is_own(&message.kernel));
    let all = own.or(result.reason.as_deref()).into_iter().chain(explanations);
    let mut lines: Vec<&str> = vec![];
    for text in all.chain(errors.map(|message| message.message.as_str())) {
        if !text.is_empty() && !lines.iter().any(|said| said.contains(text)) {
            lines.push(text);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn task(result: Value) -> Task {
        serde_json::from_value(json!({
            "id": "x", "status": "done", "content": "c", "measure": "build", "priority": "normal", "submitted_at": "then",
            "finished_at": "now", "result": result,
        }))
        .unwrap()
    }

    fn kernel(name: &str, verdict: &str, call_ns: Option<f64>) -> Value {
        let calls = json!([{ "shape": "own", "variant": "", "call_ns": call_ns, "interval": [1e6, 3e6], "hand_over_ns": 5e5, "calls": 40, "compared": 4 }]);
        json!({ "kernel": name, "operator": "task", "target": "device", "verdict": verdict, "variants": [], "calls": calls })
    }

    fn result(verdict: &str, cause: Option<&str>, kernels: &[Value]) -> Value {
        json!({ "verdict": verdict, "reason": "the reason", "cause": cause, "compiled": true, "kernels": kernels, "messages": [], "seconds": 1.5, "kforge": "0" })
    }

    #[test]
    fn a_correct_candidate_has_the_speed_up_of_its_calls_over_those_of_the_reference() {
        let kernels = [kernel(CANDIDATE, "pass", Some(2e6)), kernel(REFERENCE, "pass", Some(6e6))];
        let answer = GymAnswer::of("a b", &task(result("pass", None, &kernels)));
        assert_eq!((answer.task_id.as_str(), answer.status, answer.error_code), ("a b", GymStatus::Completed, None));
        assert_eq!((answer.kernel_runtime, answer.reference_runtime, answer.speedup), (2.0, 6.0, 3.0));
        assert_eq!((answer.compiled, answer.correctness, answer.decoy_kernel), (true, true, false));
        assert_eq!(answer.metadata["kforge"]["hand_over_ms"], 0.5);
        let untimed = GymAnswer::of("a", &task(result("pass", None, &[kernel(CANDIDATE, "pass", None)])));
        assert_eq!((untimed.kernel_runtime, untimed.speedup), (-1.0, 0.0));
        assert_eq!(untimed.metadata["kforge"]["speedup"], Value::Null, "unknown is not 0");
        assert!(untimed.metadata.get("num_custom_kernels").is_none(), "what is not measured is absent");
    }

    #[test]
    fn a_decoy_has_no_speed_up_although_it_is_correct() {
        let kernels = [kernel(DECOY, "pass", Some(2e6)), kernel(REFERENCE, "pass", Some(6e6))];
        let answer = GymAnswer::of("a", &task(result("pass", None, &kernels)));
        assert_eq!(
            (answer.decoy_kernel, answer.correctness, answer.kernel_runtime, answer.speedup),
            (true, true, -1.0, 0.0)
        );
    }

    #[test]
    fn the_kernels_that_were_recorded_are_counted_and_one_that_launches_none_of_its_own_is_a_decoy() {
        let with = |low: f64, high: f64, whose: Value| {
            let mut own = kernel(CANDIDATE, "pass", Some(2e6));
            own["calls"][0]["own"] = json!({ "at_least": low, "at_most": high, "device_ns": 4e3, "kernels": [
                { "name": "k", "whose": whose, "share": 0.75 }, { "name": "copy", "whose": "memory", "share": 0.25 } ] });
            GymAnswer::of("a", &task(result("pass", None, &[own, kernel(REFERENCE, "pass", Some(6e6))])))
        };
        let known = with(0.75, 0.75, json!("own"));
        assert!(!known.decoy_kernel && known.speedup == 3.0);
        let of = |answer: &GymAnswer, key: &str| answer.metadata.get(key).and_then(Value::as_f64);
        assert_eq!((of(&known, "num_custom_kernels"), of(&known, "num_total_kernels")), (Some(1.0), Some(2.0)));
        assert_eq!(of(&known, "custom_kernel_cuda_time_in_profiling_us"), Some(3.0));
        assert_eq!(of(&known, "total_kernel_run_time_in_profiling_us"), Some(4.0));
        let bounds = with(0.0, 0.75, json!("unknown"));
        assert!(!bounds.decoy_kernel && of(&bounds, "num_custom_kernels").is_none(), "unknown is not 0");
        let mut unseen = kernel(DECOY, "pass", Some(2e6));
        unseen["calls"][0]["own"] = json!({ "at_least": 0.5, "at_most": 1.0, "device_ns": 4e3, "kernels": [] });
        let unseen = GymAnswer::of("a", &task(result("pass", None, &[unseen, kernel(REFERENCE, "pass", Some(6e6))])));
        assert!(!unseen.decoy_kernel && unseen.speedup == 3.0, "records decide, and not the source");
        let none = with(0.0, 0.0, json!({ "library": "torch" }));
        assert_eq!((none.decoy_kernel, none.kernel_runtime, none.speedup), (true, -1.0, 0.0));
        assert_eq!(of(&none, "num_custom_kernels"), Some(0.0));
    }

    #[test]
    fn a_cancelled_task_has_failed_with_a_text() {
        let mut cancelled = task(result("pass", None, &[]));
        (cancelled.result, cancelled.status) = (None, TaskStatus::Cancelled);
        let answer = GymAnswer::of("a", &cancelled);
        assert_eq!((answer.status, answer.error_code), (GymStatus::Failed, Some(GymCode::UnknownError)));
        assert_eq!(answer.error_message.as_deref(), Some("the task was cancelled"));
    }

    #[test]
    fn every_cause_has_a_status_a_code_and_the_reason() {
        let raised = json!([{ "variant": "", "verdict": "fail", "shapes": [{ "shape": "own", "verdict": "fail", "finding": { "kind": "raised", "explanation": "ValueError: no" }, "emulated": true, "confirmed": false }] }]);
        let mut ends = kernel(CANDIDATE, "fail", None);
        ends["variants"] = raised;
        for (found, status, code) in [
            (
                result("fail", Some("not-compiled"), &[kernel(CANDIDATE, "fail", None)]),
                GymStatus::Completed,
                GymCode::CompilationError,
            ),
            (
                result("fail", Some("wrong"), &[kernel(CANDIDATE, "fail", None)]),
                GymStatus::Completed,
                GymCode::CorrectnessError,
            ),
            (result("fail", Some("wrong"), &[ends]), GymStatus::Completed, GymCode::RuntimeError),
            (
                result("fail", Some("no-progress"), &[kernel(CANDIDATE, "fail", None)]),
                GymStatus::Completed,
                GymCode::TimeoutError,
            ),
            (result("unknown", Some("timed-out"), &[]), GymStatus::Timeout, GymCode::TimeoutError),
            (result("unknown", Some("not-accepted"), &[]), GymStatus::Completed, GymCode::ValidationError),
            (result("unknown", Some("unavailable"), &[]), GymStatus::Failed, GymCode::ResourceError),
            (result("unknown", Some("internal"), &[]), GymStatus::Failed, GymCode::SystemError),
            (
                result("unknown", Some("undecided"), &[kernel(CANDIDATE, "unknown", None)]),
                GymStatus::Failed,
                GymCode::UnknownError,
            ),
        ] {
            let answer = GymAnswer::of("a", &task(found.clone()));
            assert_eq!((answer.status, answer.error_code), (status, Some(code)), "{found}");
            assert!(
                answer
                    .error_message
                    .as_deref()
                    .is_some_and(|text| text.contains("the reason") || text.contains("ValueError")),
                "{found}"
            );
            assert_eq!((answer.correctness, answer.speedup), (false, 0.0));
        }
        // The cause is that of all kernels, and the reference has no part in the verdict of the candidate.
        let mut wrong = kernel(CANDIDATE, "fail", None);
        let finding = json!({ "explanation": "wrong at [0]" });
        wrong["variants"] = json!([{ "variant": "", "verdict": "fail", "shapes": [{ "shape": "own", "verdict": "fail", "finding": finding, "emulated": true, "confirmed": false }] }]);
        let stuck = [wrong, kernel(REFERENCE, "fail", None)];
        let answer = GymAnswer::of("a", &task(result("fail", Some("no-progress"), &stuck)));
        assert_eq!((answer.status, answer.error_code), (GymStatus::Completed, Some(GymCode::CorrectnessError)));
        let stuck = [kernel(CANDIDATE, "unknown", None), kernel(REFERENCE, "fail", None)];
        let answer = GymAnswer::of("a", &task(result("fail", Some("no-progress"), &stuck)));
        assert_eq!((answer.status, answer.error_code), (GymStatus::Failed, Some(GymCode::UnknownError)));
        for (kind, code) in [
            ("syntax", GymCode::SyntaxError),
            ("import", GymCode::ImportError),
            ("error", GymCode::InstantiationError),
            ("random", GymCode::ValidationError),
        ] {
            assert_eq!(GymCode::of_reference(kind), code);
        }
        assert_eq!(serde_json::to_value(GymCode::ValidationError).unwrap(), "VALIDATION_ERROR");
    }
}
