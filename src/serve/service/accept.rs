//! How tasks are accepted: requests are checked and made rows, then limits decide, and the rows are written.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kforge_foundation::base::Digest;
use serde_json::value::RawValue;

use super::clock::Moment;
use super::files::Files;
use super::invalid::{Invalid, LONGEST_ID};
use super::journal::{Journal, Line};
use super::state::{Accepted, Row, State, TaskKey, TaskPhase};
use super::tidy::YOUNG;
use super::{Client, Inner, LARGE, Refusal, Service};
use crate::api::{Candidate, EvaluationRequest, Measure, Priority, Task};

/// A request that can be evaluated, and what it asks for as the text of a row.
struct Checked {
    id: Option<String>,
    measure: Measure,
    priority: Priority,
    timeout_s: Option<u32>,
    /// The digest of the text.
    content: Digest,
    text: Box<RawValue>,
}

impl Checked {
    fn row(&self) -> std::io::Result<Line> {
        Line::of(&Row::Request { content: self.content, request: self.text.clone() })
    }
}

/// What a submission gave.
struct Submitted {
    key: TaskKey,
    /// The number of rows that must be on disk before the answer; none if the result was known.
    rows: Option<u64>,
}

/// What became of a task.
enum Taken {
    Again,
    Known,
    Joined,
    New,
}

impl Service {
    /// Submits an evaluation. Its task is on disk when this returns, unless its result was known.
    ///
    /// # Errors
    /// The request is refused.
    pub async fn submit(self: &Arc<Self>, client: &Client, request: EvaluationRequest) -> Result<Task, Refusal> {
        let mut submitted = self.take(client, vec![request]).await?;
        match submitted.pop() {
            Some(submitted) => self.stored(submitted?).await,
            None => Err(Refusal::Draining),
        }
    }

    /// Submits several evaluations. Each is accepted or refused by itself.
    pub async fn submit_all(
        self: &Arc<Self>,
        client: &Client,
        requests: Vec<EvaluationRequest>,
    ) -> Vec<Result<Task, Refusal>> {
        let count = requests.len();
        let Ok(accepted) = self.take(client, requests).await else {
            return std::iter::repeat_with(|| Err(Refusal::Draining)).take(count).collect();
        };
        let mut answers = vec![];
        for submitted in accepted {
            answers.push(match submitted {
                Ok(submitted) => self.stored(submitted).await,
                Err(refusal) => Err(refusal),
            });
        }
        answers
    }

    /// Accepts requests: large ones on a thread of their own, because checking, hashing and writing them takes time. Fails if the server has ended.
    async fn take(
        self: &Arc<Self>,
        client: &Client,
        requests: Vec<EvaluationRequest>,
    ) -> Result<Vec<Result<Submitted, Refusal>>, Refusal> {
        let take = |service: &Service, client: &Client, requests: Vec<EvaluationRequest>| -> Vec<_> {
            let take = |request| check(request).and_then(|checked| service.accept(client, checked));
            requests.into_iter().map(take).collect()
        };
        if requests.iter().map(weight).sum::<u64>() <= LARGE {
            return Ok(take(self, client, requests));
        }
        let (service, client) = (self.clone(), client.clone());
        // A panic there is a bug that has been printed.
        tokio::task::spawn_blocking(move || take(&service, &client, requests)).await.map_err(|_| Refusal::Draining)
    }

    fn accept(&self, client: &Client, checked: Checked) -> Result<Submitted, Refusal> {
        let id: Arc<str> = match &checked.id {
            Some(id) => id.as_str().into(),
            None => random_id()?.into(),
        };
        let key = TaskKey { client: client.0.clone(), id };
        let failed = |error: std::io::Error| Refusal::Storage(error.to_string());
        let is_needed = |state: &State| {
            let is_known = state.task(&key).is_some() || state.known(&checked.content).is_some();
            !is_known && state.needs_request(&checked.content)
        };
        // A row that turns out to be needed later is made under the lock, which is rare.
        let is_probably_needed = is_needed(&self.lock().state);
        let row = is_probably_needed.then(|| checked.row()).transpose().map_err(failed)?;
        let accepted = self.change(|Inner { state, journal }| {
            let row = match (is_needed(state), row) {
                (true, None) => Some(checked.row().map_err(failed)?),
                (true, row) => row,
                (false, _) => None,
            };
            self.accept_locked((state, journal), &key, &checked, row)
        });
        let (taken, rows) = accepted.inspect_err(|refusal| {
            if refusal.is_limit() {
                self.metrics.refused.add();
            }
        })?;
        match taken {
            Taken::Again => return Ok(Submitted { key, rows }),
            Taken::Known => self.metrics.known.add(),
            Taken::Joined => self.metrics.joined.add(),
            Taken::New => self.work.notify_one(),
        }
        self.metrics.accepted.add();
        Ok(Submitted { key, rows })
    }

    fn accept_locked(
        &self,
        (state, journal): (&mut State, &mut Journal),
        key: &TaskKey,
        checked: &Checked,
        row: Option<Line>,
    ) -> Result<(Taken, Option<u64>), Refusal> {
        let failed = |error: std::io::Error| Refusal::Storage(error.to_string());
        let content = checked.content;
        if let Some(task) = state.task(key) {
            // The same request again, for example after an answer that was lost.
            return match task.accepted.content == content {
                true => Ok((Taken::Again, (task.phase == TaskPhase::Waiting).then_some(task.rows))),
                false => Err(Refusal::Conflict(key.id.to_string())),
            };
        }
        if self.draining.load(Ordering::SeqCst) {
            return Err(Refusal::Draining);
        }
        let most = u32::try_from(self.config.timeout.as_secs()).unwrap_or(u32::MAX).max(1);
        let (known, at) = (state.known(&content), Moment::now());
        let accepted = Accepted {
            client: key.client.clone(),
            id: key.id.clone(),
            number: state.next_task(),
            content,
            measure: checked.measure,
            priority: checked.priority,
            timeout_s: checked.timeout_s.unwrap_or(most).min(most),
            at: at.wall,
            known,
            shared: false,
        };
        if known.is_some() {
            let (_, rows) = journal.append(&Row::Accepted(accepted.clone())).map_err(failed)?;
            state.accept(accepted, at, rows);
            // A client that has more than may be kept pushes out its own.
            state.forget_of(&key.client, self.config.keep, at.steady.saturating_sub(YOUNG));
            return Ok((Taken::Known, None));
        }
        self.within_limits(state, &key.client, row.as_ref().map_or(0, Line::bytes))?;
        let taken = match row {
            Some(row) => {
                let (place, _) = journal.write(&row).map_err(failed)?;
                state.add_request(content, place);
                Taken::New
            }
            None => Taken::Joined,
        };
        let (_, rows) = journal.append(&Row::Accepted(accepted.clone())).map_err(failed)?;
        state.accept(accepted, at, rows);
        journal.sync();
        Ok((taken, Some(rows)))
    }

    pub(super) fn within_limits(&self, state: &State, client: &str, bytes: u64) -> Result<(), Refusal> {
        let (waiting, own) = (state.unfinished(), state.unfinished_of(client));
        if waiting >= self.config.queue {
            return Err(Refusal::QueueFull { waiting, retry_after_s: self.retry_after(waiting) });
        }
        if own >= self.config.client_limit {
            let (limit, retry_after_s) = (self.config.client_limit, self.retry_after(own));
            return Err(Refusal::ClientLimit { limit, retry_after_s });
        }
        // A request that is larger than the limit is accepted if it is the only one.
        let is_beyond = |held: u64, limit: u64| bytes > 0 && held > 0 && held.saturating_add(bytes) > limit;
        let limit = self.config.queue_bytes;
        if is_beyond(state.requests(), limit) {
            return Err(Refusal::QueueBytes { limit, retry_after_s: self.retry_after(waiting) });
        }
        if is_beyond(state.requests_of(client), limit / 2) {
            return Err(Refusal::ClientBytes { limit: limit / 2, retry_after_s: self.retry_after(own) });
        }
        Ok(())
    }

    /// The seconds in which about a tenth of so many tasks may end: 1 to 30.
    fn retry_after(&self, tasks: usize) -> u64 {
        let per_task = self.metrics.seconds.mean().unwrap_or(1.0);
        ((tasks as f64 / 10.0 * per_task).ceil() as u64).clamp(1, 30)
    }

    async fn stored(&self, submitted: Submitted) -> Result<Task, Refusal> {
        if let Some(rows) = submitted.rows
            && !self.synced.clone().reaches(rows).await
        {
            return Err(Refusal::Storage("its journal cannot be written to disk".into()));
        }
        self.seen(&submitted.key).await
    }
}

/// Checks a request, before anything is locked.
fn check(request: EvaluationRequest) -> Result<Checked, Refusal> {
    if let Some(id) = &request.id {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
        if id.is_empty() || id.len() > LONGEST_ID || !id.chars().all(plain) {
            let shown = id.chars().take(LONGEST_ID).collect::<String>();
            return Err(Invalid::Id(shown.escape_debug().to_string()).into());
        }
    }
    if request.timeout_s == Some(0) {
        return Err(Invalid::NoTime.into());
    }
    Files::of(&request)?;
    let EvaluationRequest { measure, priority, timeout_s, .. } = request;
    // What is asked for: not who asks, when, and how urgently.
    let (mut request, id) = (request, None);
    let id = std::mem::replace(&mut request.id, id);
    (request.priority, request.timeout_s) = (Priority::default(), None);
    let text = serde_json::to_string(&request).map_err(Invalid::Json)?;
    let content = Digest::of(text.as_bytes());
    let text = RawValue::from_string(text).map_err(Invalid::Json)?;
    Ok(Checked { id, measure, priority, timeout_s, content, text })
}

/// About how many bytes a request has.
fn weight(request: &EvaluationRequest) -> u64 {
    let files = |files: &std::collections::BTreeMap<String, String>| files.values().map(String::len).sum::<usize>();
    let bytes = match &request.candidate {
        Candidate::Operator(of) => {
            let tables = [&of.operator, &of.kernel, &of.toolchain].into_iter().chain(&of.launch);
            of.source.len() + files(&of.files) + 32 * tables.map(crate::api::Table::values).sum::<usize>()
        }
        Candidate::Package(of) => of.manifest.len() + files(&of.files),
    };
    bytes as u64
}

/// An id that nobody can guess.
fn random_id() -> Result<String, Refusal> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| Refusal::Storage(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> Digest {
        check(serde_json::from_str(text).unwrap()).unwrap().content
    }

    #[test]
    fn a_content_has_the_order_of_tables_and_nothing_of_who_asks() {
        let of = |inputs: &str, more: &str| {
            content(&format!(
                r#"{{ {more} "candidate": {{ "operator": {{ "operator": {{ "inputs": {{ {inputs} }} }}, "source": "" }} }} }}"#
            ))
        };
        let (one, other) = (r#""x": {}, "a": {}"#, r#""a": {}, "x": {}"#);
        assert_ne!(of(one, ""), of(other, ""), "the order of inputs is that of arguments");
        let urgent = r#""id": "mine", "priority": "high", "timeout_s": 7,"#;
        assert_eq!(of(one, urgent), of(one, ""));
        assert_ne!(of(one, r#""measure": "bench","#), of(one, ""));
        assert_ne!(of(one, r#""target": "sm_90a","#), of(one, ""));
    }

    #[test]
    fn what_a_row_holds_is_the_request_that_is_evaluated() {
        let text = r#"{ "id": "mine", "target": "sm_90a", "candidate": { "package": { "manifest": "" } } }"#;
        let request: EvaluationRequest = serde_json::from_str(text).unwrap();
        let checked = check(request.clone()).unwrap();
        assert_eq!((checked.id.as_deref(), Digest::of(checked.text.get().as_bytes())), (Some("mine"), checked.content));
        let stored: EvaluationRequest = serde_json::from_str(checked.text.get()).unwrap();
        assert_eq!(stored, EvaluationRequest { id: None, ..request });
    }
}
