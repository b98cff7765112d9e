//! Asks the device of a server's worker what a step asks, and brings the record to the evidence of this machine. Knows what a record must be;
//! [`super::remote_workers`] knows how a step gets to a worker.
//!
//! | decision | because |
//! |---|---|
//! | the record is evidence as one of an imported bundle is: `signed` if a key that the build trusts signed it, else `claimed` | this machine has observed nothing |
//! | the record is made here from what the worker answers, and must be the one that it signed | a signature over another record says nothing about this one |
//! | the server remembers no result | each execution observes again |
//! | without an answer the step is unavailable | no device of this machine can take its place |
//! | one step at a time for each device that the settings name | more would wait in the server's queue, and a long step would let them exceed their limit there |
//! | a time-out is taken from the worker and stored nowhere; the variant is launched no more in this build | it is no observation |
//! | where claims do not count, neither does a time-out | nobody signs it |
//! | where claims do not count, the first record without a trusted signature ends the questions to workers | no answer would count |
//! | a record of another device than the settings name ends them as well | each answer would be refused |
//! | the origin of a record names the server and the key that signed it | workers that contradict each other are two witnesses |
//! | an answer that has arrived is kept even if the build is interrupted | the device has done the work |
//! | a slice of a GPU is no device of the settings | its times are no times of the whole GPU |

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::remote_workers::{RemoteWorkers, meaning_of};
use kforge_engine::evidence::{IndexedRecord, Record};
use kforge_engine::{Execution, Job, RunError};
use kforge_harness::elsewhere::{OnceAnswer, SignedRecord};
use kforge_harness::hangs::HangMark;
use kforge_harness::message::Response;
use kforge_pipeline::release::signature::Signature;
use kforge_pipeline::release::signed;
use kforge_remote::Meaning;
use kforge_types::record::{Device, Standing, StepResult};

impl RemoteWorkers<'_> {
    /// What the device of a worker gives for a step.
    ///
    /// # Errors
    /// No worker observed it, or what it gave cannot be kept.
    pub(super) fn observed(&self, job: &Job<'_>) -> Result<Execution, RunError> {
        if self.holdouts.has(job.labels) && !self.execution.sends_holdout {
            let why = "what is for a holdout shape stays on this machine (setting `remote.holdout`)";
            return Err(RunError::Unavailable(why.into()));
        }
        let uuid = job.device.unwrap_or_default();
        let product = self.execution.device(uuid).map_or("such a device", |device| device.class.product.as_str());
        let hang = HangMark::new(self.local.hangs, job.labels);
        let differs = Arc::<Mutex<Option<String>>>::default();
        let turns = self.turns.at(uuid);
        // Held to the end, so that the next step knows whether this candidate timed out.
        let _turn = turns.take(job.interrupted).ok_or(RunError::Interrupted)?;
        if let Some(why) = hang.as_ref().and_then(HangMark::reason) {
            return Err(RunError::Unavailable(why));
        }
        let answer = self.asked(job, &differs)?;
        let Some(answer) = answer else {
            if job.interrupted.load(Ordering::Relaxed) {
                return Err(RunError::Interrupted);
            }
            let why = differs.lock().unwrap_or_else(PoisonError::into_inner).take();
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            return Err(RunError::Unavailable(format!("no worker of the server has answered for {product}{why}")));
        };
        let read = serde_json::from_slice(&answer);
        let Ok(OnceAnswer::Answered { response, outputs, duration_ms, timed_out, signed }) = read else {
            return Err(RunError::Unavailable("the worker of the server gave no answer".into()));
        };
        let says = |why: &str| RunError::Unavailable(format!("a worker of the server for {product} says: {why}"));
        let (verdict, notes, summary, forget) = match response {
            Response::Done { verdict, notes, summary, forget } => (verdict, notes, summary, forget),
            Response::Failed { message: why, .. } | Response::Unavailable { why } | Response::NeedsTool { why, .. } => {
                return Err(says(&why));
            }
        };
        if let (true, Some(hang)) = (timed_out, hang) {
            hang.note();
        }
        if forget && !self.takes_claims {
            return Err(says(&format!("{summary}: nobody signs that, because another run may give something else")));
        }
        let took = Some(Duration::from_millis(duration_ms));
        let result = StepResult { outputs, verdict, notes, summary, duration_ms };
        if !forget {
            self.bring(job, &result, signed)?;
        }
        let StepResult { outputs, verdict, notes, summary, .. } = result;
        Ok(Execution { outputs, verdict, notes, summary, forget, elsewhere: true, took })
    }

    /// The answer of a worker, if one answers. `differs` gets why a worker did not.
    fn asked(&self, job: &Job<'_>, differs: &Arc<Mutex<Option<String>>>) -> Result<Option<Vec<u8>>, RunError> {
        // A server that has failed was reported.
        if !self.remote.may_observe() {
            return Ok(None);
        }
        let step = self.step(job).ok_or_else(|| {
            let why = "the step names a folder or needs a tool that only this machine has, so no worker can take it";
            RunError::Unavailable(why.into())
        })?;
        let (kind, heard) = (job.spec.kind, differs.clone());
        let read = move |answer: &[u8]| {
            let meaning = meaning_of(kind, answer, true);
            if let Meaning::Differs(why) | Meaning::Refused(why) = &meaning {
                *heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.clone());
            }
            meaning
        };
        Ok(self.remote.execute(step, Box::new(read)))
    }

    /// Keeps a record, and what the worker signed, if that is this record.
    fn bring(&self, job: &Job<'_>, result: &StepResult, signed: Option<SignedRecord>) -> Result<(), RunError> {
        let failed = |what: &str, why: String| {
            RunError::Unavailable(format!("what a worker of the server observed cannot be kept: {what}{why}"))
        };
        let record = Record::of(*job.key, job.spec.kind, result.clone(), job.blobs)
            .map_err(|error| failed("", error.to_string()))?;
        let (seen, asked) = (&record.provenance.device, self.execution.device(job.device.unwrap_or_default()));
        let is_asked =
            |asked: &Device| (&asked.class.product, &asked.class.arch, &None) == (&seen.product, &seen.arch, &seen.mig);
        if let Some(asked) = asked.filter(|asked| !is_asked(asked)) {
            let (product, arch) = (&asked.class.product, &asked.class.arch);
            let why = format!("its device is {seen}, and `remote.devices` names {product} ({arch})");
            self.remote.stop_observing(format!("a worker was asked for another device: {why}"));
            return Err(failed("", why));
        }
        let (mut document, mut origin) = (None, self.execution.host.clone());
        // A signature that cannot be read is none. Whether one counts is decided where records are looked up.
        if let Some(SignedRecord { document: text, signature }) = signed
            && let Ok(signature) = Signature::parse(&signature)
        {
            let kept = signed::keep(&self.home, text.as_bytes(), &signature);
            document = Some(kept.map_err(|error| failed("its signature: ", error.to_string()))?);
            // Two workers that contradict each other are two witnesses.
            let print = signature.key().fingerprint();
            origin +=
                &format!("-{}", print.chars().filter(char::is_ascii_alphanumeric).skip(6).take(8).collect::<String>());
        }
        self.brought.store(true, Ordering::Relaxed);
        let digest = self.index.bring(&record, &origin, document.as_deref());
        let digest = digest.map_err(|error| failed("", error.to_string()))?;
        if !self.takes_claims {
            let known = self.index.records(job.key).unwrap_or_default();
            let stands = known.iter().find(|seen| seen.digest == digest).map(IndexedRecord::standing);
            if stands.is_none_or(|standing| standing < Standing::Signed) {
                let why =
                    "this build takes only records that a key signed which it trusts, and a worker gave another one";
                self.remote.stop_observing(why.into());
            }
        }
        Ok(())
    }
}
