//! slime's `remote_rm` below `/slime`: a reward for a reply. Calls [`crate::service`] only.
//!
//! `POST /slime/reward` answers with the reward as a number, and `POST /slime/scores` with an object, for `--reward-key score`. The label is the task, as for
//! `compute_score` of `clients/python`: `candidate` or `package` and `file`, `target`, `device`, `measure`, `baseline_ns`, `kernel`. A result that the server is
//! the cause of has no reward: the answer is 429, and slime asks again.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use kforge_numerics::measure::score::{Form, Scored, score};
use kforge_numerics::measure::stats::geometric_mean;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::failure::Failure;
use super::{App, Caller, body, json_of};
use crate::api::{
    Candidate, Cause, ErrorCode, EvaluationRequest, EvaluationResult, KernelResult, Measure, PackageCandidate, Table,
    VariantResult, VerdictWord,
};
use crate::service::Client;

/// How long a request waits. slime gives up after 120 seconds, and then asks again: the evaluation goes on meanwhile.
const PATIENCE: Duration = Duration::from_secs(110);

/// The routes.
pub(super) fn router() -> Router<App> {
    Router::new().route("/slime/reward", post(reward)).route("/slime/scores", post(scores))
}

/// What slime sends. Its prompt is not used.
#[derive(Debug, Deserialize)]
struct SlimeRequest {
    response: String,
    /// As it was sent, because the order of keys counts.
    label: Box<RawValue>,
}

/// A task.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Label {
    /// A candidate of an operator without its source.
    #[serde(default)]
    candidate: Option<Table>,
    /// A package, and the file in it that the source becomes.
    #[serde(default)]
    package: Option<PackageCandidate>,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    target: Option<String>,
    #[serde(default)]
    device: Option<String>,
    #[serde(default)]
    measure: Measure,
    #[serde(default)]
    timeout_s: Option<u32>,
    /// Times by bench shape. The reward is then the logistic one of the speed-up over them.
    #[serde(default)]
    baseline_ns: Option<BTreeMap<String, f64>>,
    /// The kernel whose times count, of a package with several.
    #[serde(default)]
    kernel: Option<String>,
}

/// A reward, and what it is from.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Scores {
    /// The least that the reward can be.
    score: f64,
    /// Whether it can be more: something is unknown.
    known: bool,
    correct: Option<bool>,
    speedup: Option<f64>,
    reason: Option<String>,
}

impl Label {
    /// A label as JSON, or as text with JSON.
    fn of(label: &str) -> Result<Label, Failure> {
        let found = match serde_json::from_str::<String>(label) {
            Ok(text) => serde_json::from_str(&text),
            Err(_) => serde_json::from_str(label),
        };
        found.map_err(|error| Failure::new(ErrorCode::BadRequest, format!("the label is not a task: {error}")))
    }

    /// The evaluation of a source for the task.
    fn evaluation(&self, source: &str) -> Result<EvaluationRequest, Failure> {
        let wrong = |why: &str| Failure::new(ErrorCode::BadRequest, format!("the label is not a task: {why}"));
        let candidate = match (&self.candidate, &self.package, &self.file) {
            (Some(candidate), None, None) => {
                let mut candidate = candidate.clone();
                candidate.set("source", source);
                // By text, which keeps the order of keys.
                let candidate = serde_json::to_string(&candidate).and_then(|text| serde_json::from_str(&text));
                let candidate = candidate.map_err(|error| wrong(&error.to_string()))?;
                Candidate::Operator(candidate)
            }
            (None, Some(package), Some(file)) => {
                let mut package = package.clone();
                package.files.insert(file.clone(), source.into());
                Candidate::Package(package)
            }
            _ => return Err(wrong("expected `candidate`, or `package` and `file`")),
        };
        let Label { target, device, measure, timeout_s, .. } = self;
        Ok(EvaluationRequest {
            id: None,
            candidate,
            target: target.clone(),
            device: device.clone(),
            measure: *measure,
            priority: crate::api::Priority::default(),
            timeout_s: *timeout_s,
        })
    }

    /// The scores of a result.
    ///
    /// # Errors
    /// The server is the cause of the result, or the times of several kernels could count.
    fn scores(&self, result: &EvaluationResult) -> Result<Scores, Failure> {
        if result.verdict == VerdictWord::Unknown
            && matches!(result.cause, Some(Cause::Unavailable | Cause::Internal | Cause::TimedOut))
        {
            let mut failure = Failure::new(ErrorCode::QueueFull, result.reason.clone().unwrap_or_default());
            failure.0.retry_after_s = Some(5);
            return Err(failure);
        }
        let correct = match result.verdict {
            VerdictWord::Pass => Some(true),
            VerdictWord::Fail => Some(false),
            VerdictWord::Unknown => None,
        };
        let speedup = match &self.baseline_ns {
            None => None,
            Some(baseline) => speedup(self.timed(result)?, baseline),
        };
        let (least, most) = match (&self.baseline_ns, correct) {
            (None, Some(correct)) => (f64::from(u8::from(correct)), Some(f64::from(u8::from(correct)))),
            (None, None) => (0.0, Some(1.0)),
            (Some(_), _) => {
                let found = score(Form::Logistic, &Scored { correct, speedup, ratio: None });
                (found.at_least, found.at_most)
            }
        };
        Ok(Scores { score: least, known: most == Some(least), correct, speedup, reason: result.reason.clone() })
    }

    /// The variants of the kernel whose times count.
    fn timed<'r>(&self, result: &'r EvaluationResult) -> Result<&'r [VariantResult], Failure> {
        let is_meant = |of: &&KernelResult| self.kernel.as_ref().is_none_or(|name| of.kernel == *name);
        let mut meant = result.kernels.iter().filter(is_meant);
        match (meant.next(), meant.next()) {
            (found, None) => Ok(found.map_or(&[], |kernel| &kernel.variants)),
            _ => Err(Failure::new(
                ErrorCode::BadRequest,
                "the package has several kernels: name one as `kernel` of the label",
            )),
        }
    }
}

/// The geometric mean of the baseline's times over the least cold times of variants that pass. None unless every shape of the baseline has both times.
fn speedup(variants: &[VariantResult], baseline_ns: &BTreeMap<String, f64>) -> Option<f64> {
    let is_time = |ns: &f64| ns.is_finite() && *ns > 0.0;
    let mut times: BTreeMap<&str, f64> = BTreeMap::new();
    let passing = variants.iter().filter(|variant| variant.verdict == VerdictWord::Pass);
    for shape in passing.flat_map(|variant| &variant.shapes) {
        if let Some(ns) = shape.time.as_ref().and_then(|time| time.cold_ns).filter(is_time) {
            let least = times.entry(&shape.shape).or_insert(ns);
            *least = least.min(ns);
        }
    }
    let ratio = |(shape, of_baseline): (&String, &f64)| {
        Some(of_baseline).filter(|ns| is_time(ns)).and_then(|ns| Some(ns / times.get(shape.as_str())?))
    };
    let ratios: Vec<f64> = baseline_ns.iter().map(ratio).collect::<Option<_>>()?;
    (!ratios.is_empty()).then(|| geometric_mean(&ratios))
}

/// The last block of code of a reply; the whole reply if it has none.
fn source_of(reply: &str) -> String {
    let (mut last, mut open): (Option<String>, Option<String>) = (None, None);
    for line in reply.split_inclusive('\n') {
        let is_fence = line.starts_with("```");
        match open.take() {
            Some(block) if is_fence && line.trim_end() == "```" => last = Some(block),
            Some(block) => open = Some(block + line),
            None if is_fence => open = Some(String::new()),
            None => {}
        }
    }
    last.unwrap_or_else(|| reply.to_string())
}

async fn scored(app: &App, client: &Client, request: Request) -> Result<Scores, Failure> {
    let (parts, body) = request.into_parts();
    let (request, values) = body::counted::<SlimeRequest>(&parts.headers, body, &app.limits, client).await?;
    let label = Label::of(request.label.get())?;
    let task = app.service.submit(client, label.evaluation(&source_of(&request.response))?).await?;
    drop(values);
    let task = app.service.wait(client, &task.id, PATIENCE).await?;
    match &task.result {
        Some(result) => label.scores(result),
        None => {
            let why = "the evaluation has not ended yet: the same request finds its result later";
            let mut failure = Failure::new(ErrorCode::QueueFull, why);
            failure.0.retry_after_s = Some(1);
            Err(failure)
        }
    }
}

async fn reward(State(app): State<App>, Caller(client): Caller, request: Request) -> Result<Response, Failure> {
    Ok(json_of(StatusCode::OK, &scored(&app, &client, request).await?.score))
}

async fn scores(State(app): State<App>, Caller(client): Caller, request: Request) -> Result<Response, Failure> {
    Ok(json_of(StatusCode::OK, &scored(&app, &client, request).await?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_source_is_the_last_block_of_a_reply() {
        assert_eq!(source_of("a\n```cuda\nfirst\n```\nb\n```\nsecond\n  x\n```\n"), "second\n  x\n");
        assert_eq!(source_of("int a;"), "int a;");
        assert_eq!(source_of("```cuda\nopen"), "```cuda\nopen");
    }

    #[test]
    fn the_reward_is_that_of_the_speed_up_and_unknown_is_between_bounds() {
        let text = json!({ "candidate": {}, "baseline_ns": { "big": 30.0 } }).to_string();
        let label = Label::of(&Value::from(text).to_string()).unwrap();
        let result = |verdict: &str, ns: Option<f64>| -> EvaluationResult {
            let shape = json!({ "shape": "big", "verdict": verdict, "emulated": false, "confirmed": false, "time": { "cold_ns": ns } });
            let variant = json!({ "variant": "", "verdict": verdict, "shapes": [shape] });
            let kernel =
                json!({ "kernel": "k", "operator": "o", "target": "t", "verdict": verdict, "variants": [variant] });
            serde_json::from_value(
                json!({ "verdict": verdict, "kernels": [kernel], "messages": [], "seconds": 1.0, "kforge": "0" }),
            )
            .unwrap()
        };
        let scores = |verdict: &str, ns| {
            let found = label.scores(&result(verdict, ns)).ok().unwrap();
            ((found.score * 1e6).round() / 1e6, found.known)
        };
        assert_eq!(scores("pass", Some(10.0)), (0.75, true));
        assert_eq!(scores("fail", Some(1.0)), (0.0, true), "a wrong kernel is not fast");
        assert_eq!(scores("pass", None), (0.0, false));
        assert_eq!(scores("unknown", None), (0.0, false));
        let plain = Label::of(&json!({ "candidate": {} }).to_string()).unwrap();
        let of = |verdict| plain.scores(&result(verdict, None)).ok().map(|found| (found.score, found.known));
        assert_eq!((of("pass"), of("fail"), of("unknown")), (Some((1.0, true)), Some((0.0, true)), Some((0.0, false))));
        let two = json!({ "candidate": {}, "baseline_ns": { "big": 30.0, "other": 1.0 } });
        let untimed = Label::of(&two.to_string()).unwrap().scores(&result("pass", Some(10.0))).ok().unwrap();
        assert_eq!((untimed.speedup, untimed.known), (None, false), "a shape without a time is not left out");
        let mut several = result("pass", Some(10.0));
        several.kernels.push(KernelResult { kernel: "other".into(), ..several.kernels[0].clone() });
        assert!(label.scores(&several).is_err(), "the time could be that of another kernel");
        let named = json!({ "candidate": {}, "baseline_ns": { "big": 30.0 }, "kernel": "k" });
        let speedup = Label::of(&named.to_string()).unwrap().scores(&several).ok().unwrap().speedup.unwrap();
        assert!((speedup - 3.0).abs() < 1e-9, "{speedup}");
        let fault = EvaluationResult { cause: Some(Cause::Unavailable), ..result("unknown", None) };
        assert_eq!(plain.scores(&fault).err().map(|failure| failure.0.code), Some(ErrorCode::QueueFull));
    }

    #[test]
    fn a_label_is_a_task() {
        assert!(Label::of("no JSON").is_err() && Label::of(&json!({ "canditate": {} }).to_string()).is_err());
        assert!(Label::of("{}").unwrap().evaluation("s").is_err());
        let package = json!({ "package": { "manifest": "m", "files": { "a": "1" } }, "file": "k.cu" });
        let request = Label::of(&package.to_string()).unwrap().evaluation("s").unwrap();
        let Candidate::Package(package) = request.candidate else { panic!() };
        assert_eq!(package.files["k.cu"], "s");
    }
}
