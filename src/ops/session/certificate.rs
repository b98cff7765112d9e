//! Decides when a build may answer without planning: which questions get a certificate, and what goes into it. Knows the request and the outcome of a build;
//! `engine::certificate` defines what a certificate is and when it holds.
//!
//! | what could change the answer | where it goes |
//! |---|---|
//! | the request with its options and selection, the goal | the question, except `-j`, which changes no result |
//! | the working folder | the question |
//! | settings from files, variables, flags | the question, by value; also the paths of settings files that do not exist, because one may appear |
//! | the environment | the question, except variables that shells and terminals keep for themselves ([`SHELLS`]) |
//! | whether the system can confine kernels | the question |
//! | this program | the question (versions, its path) and its file |
//! | the current manifest, the workspace's root, its members | the file system queries of `workspace` and of the search from the working folder |
//! | whether claims count | the question; if they do not, the certificate is keyed with the machine's key, so that a restored one does not hold |
//! | kforge.lock | its file, or its absence |
//! | sources, headers, files that would shadow them, references and their kin | the file system queries of `sources` |
//! | the C++ compiler and Python | the files of their fingerprints, the folders that were searched in vain, the loader's configuration |
//! | CUDA from wheels | kforge.lock; what is installed does not matter |
//! | results and evidence of steps with a result | their outputs, in the store; for a step that a record answered, the folder of its records, or its absence |
//! | bundles of evidence in the repository | their files, the folders that were searched for them, or their absence |
//! | trusted keys, and whether the repository's differ from `HEAD` | the file, or its absence; the files in which git records `HEAD`; the time at which a key begins or ceases to count |
//! | signed documents of imported bundles | their files |
//! | steps that could not run here | the absence of a result and of records, or the folder of records that do not count |
//! | this workspace's memory, and the report that is shown | the files of the journal, of the report, and of its candidates in the home |
//!
//! No certificate is made if these do not determine the answer: for a program that is not its own worker; with `remeasure`, an overlay, a base revision, a
//! revision since which changes are built, timings, or a report of every step; with an installed CUDA (its headers are listed again each time) or a CUDA that
//! could not be resolved; if a tool is missing or behind a script; if a device is present; if a store or the journal had a problem; or if a result is of a kind
//! that is not stored.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::build::Ready;
use super::open::{Opened, Session, Worker, make_target};
use super::outdated::Outdated;
use super::request::LastRequest;
use crate::build::{BuildRequest, UnknownCounts};
use crate::event::RecordedMessage;
use kforge_engine::BuildOutcome;
use kforge_engine::certificate::{Certificate, Maker};
use kforge_engine::home::Home;
use kforge_engine::lock::{Lock, Mode, Wait};
use kforge_engine::machine_key::MachineKey;
use kforge_foundation::base::{Digest, Witness};
use kforge_harness::confine;
use kforge_pipeline::release::evidence_list::{Reused, reused};
use kforge_project::workspace::find::{MANIFEST, manifest_at, manifest_named};
use kforge_project::workspace::lockfile;
use kforge_types::record::event::{CacheOrigin, StepCounts, VerdictCounts};
use kforge_types::record::{Outcome, StepKind};

/// Variables that shells and terminals keep for themselves. They differ between windows without changing the command.
const SHELLS: &[&str] = &[
    "_",
    "SHLVL",
    "PWD",
    "OLDPWD",
    "TERM",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "WINDOWID",
    "TERM_PROGRAM",
    "TERM_SESSION_ID",
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "LS_COLORS",
    "TMUX",
    "TMUX_PANE",
    "STY",
    "SSH_TTY",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_AUTH_SOCK",
    "HISTFILE",
    "PS1",
];

/// The output of a build that had nothing to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Warnings and diagnostics.
    pub said: Vec<RecordedMessage>,
    /// The report, styled.
    pub report: String,
    /// The second of the Unix epoch at which a trusted key begins or ceases to count; from then on, the answer may be another.
    pub until: Option<i64>,
    /// The number of steps by outcome; none was executed.
    pub steps: StepCounts,
    /// The number of steps by verdict.
    pub verdicts: VerdictCounts,
    /// What the unknown verdicts are about.
    pub unknown: UnknownCounts,
    /// The origins of reused evidence.
    pub reused: Vec<Reused>,
    /// Records that exist for another version of the code that was built.
    pub outdated: Vec<Outdated>,
    /// What the build was asked for.
    pub request: LastRequest,
}

/// The request of a build that a certificate may answer.
#[derive(Debug, Clone)]
pub struct Question {
    digest: Digest,
    program: PathBuf,
    /// The manifest that was found from the working folder upward, or named.
    manifest: PathBuf,
    /// Whether only what this machine computed itself counts, and so only a certificate that it wrote itself.
    is_keyed: bool,
}

/// The file whose presence records that a build after the reported one was interrupted.
pub const CUT_SHORT: &str = "interrupted";

/// An answer whose certificate holds, and the locks that keep it valid.
#[derive(Debug)]
pub struct Held {
    /// The answer.
    pub answer: Answer,
    /// The home whose stores were checked.
    pub home: Home,
    /// The output folder of the workspace.
    pub target: PathBuf,
    _locks: [Lock; 2],
}

impl Session {
    /// The question of a build; none if the build must plan.
    pub fn question(&self, request: &BuildRequest) -> Option<Question> {
        let Worker::Own(program) = &self.worker else { return None };
        let runs = request.remeasure || request.evidence.recheck > 0;
        let plans = runs || request.overlay.is_some() || request.timings || request.plans;
        let plans = plans || request.base.is_some() || request.changed_since.is_some() || self.trust.is_some();
        if plans || self.options.every_step || request.jobs == Some(0) {
            return None;
        }
        let manifest = match &self.options.manifest_path {
            Some(path) => manifest_named(&self.cwd.join(path)),
            None => manifest_at(&self.cwd),
        };
        let words = BuildRequest { jobs: None, ..request.clone() };
        let environment: Vec<_> =
            self.environment.all().iter().filter(|(k, _)| !SHELLS.contains(&k.as_str())).collect();
        let settings: Vec<_> = self.settings.all().map(|(k, v)| (k.name, v)).collect();
        let versions = (env!("CARGO_PKG_VERSION"), kforge_types::record::FORMAT_VERSION);
        let unconfined = confine::missing_here().missing;
        let all = (
            versions,
            program,
            words,
            &self.options,
            &self.cwd,
            settings,
            &self.settings.home,
            environment,
            unconfined,
        );
        let digest = Digest::of(format!("{all:?}").as_bytes());
        let is_keyed = request.evidence.refuses_claims();
        Some(Question { digest, program: program.clone(), manifest: manifest.ok()?, is_keyed })
    }

    /// The answer, if a certificate has it and holds.
    pub fn certified(&self, question: &Question) -> Option<Held> {
        let targets: Vec<PathBuf> = match self.named_target() {
            Some(target) => vec![target],
            // The root is in one of these folders; each certificate states its own root.
            None => question.manifest.ancestors().skip(1).map(|folder| folder.join("target")).collect(),
        };
        targets.iter().find_map(|target| self.certified_at(question, &target.join("kforge")))
    }

    /// The key with which the certificate of a question is written, if it is keyed; none if this machine has no key and needs one.
    fn key_of(&self, question: &Question) -> Option<Option<Arc<MachineKey>>> {
        if question.is_keyed { self.machine_key(false).map(Some) } else { Some(None) }
    }

    fn certified_at(&self, question: &Question, target: &Path) -> Option<Held> {
        // A build after an interrupted one must plan, because it reports the interruption and a certificate does not.
        if target.join(CUT_SHORT).exists() {
            return None;
        }
        let key = self.key_of(question)?;
        let certificate = Certificate::read(&place(target), key.as_deref())?;
        let home = Home::open(&self.settings.home).ok()?;
        // If another process holds a lock, the build that plans reports it and waits.
        let own = Lock::acquire(&target.join(".lock"), Mode::Exclusive, Wait::No).ok()?;
        let cache = home.lock_cache(Mode::Shared, Wait::No).ok()?;
        if !certificate.holds(&question.digest, &home) {
            return None;
        }
        let answer: Answer = serde_json::from_slice(&certificate.answer).ok()?;
        let now = Timestamp::try_from(self.began).ok()?.as_second();
        if answer.until.is_some_and(|until| now >= until) {
            return None;
        }
        make_target(target).ok()?;
        home.register(&target.join("journal")).ok()?;
        Some(Held { answer, home, target: target.to_path_buf(), _locks: [own, cache] })
    }

    /// Stores a certificate that the same question has the same answer, if that can be certified. `witness` holds the file system queries of planning. The last
    /// argument is the report that is shown, the warnings, and the records of other versions.
    pub fn certify(
        &self,
        question: Question,
        opened: &Opened,
        witness: Witness,
        outcome: &BuildOutcome,
        (report, said, outdated, request): (String, Vec<RecordedMessage>, Vec<Outdated>, LastRequest),
        ready: &Ready<'_>,
    ) -> Option<()> {
        let key = self.key_of(&question)?;
        let mut maker = Maker::new(question.digest, self.began);
        let mut found = Witness::default();
        if self.options.manifest_path.is_none() {
            let above = self.cwd.ancestors().map(|folder| folder.join(MANIFEST));
            above.take_while(|m| *m != question.manifest).for_each(|m| found.saw(&m, false));
        }
        found.saw(&question.manifest, true);
        found.saw(&question.program, true);
        found.saw(&opened.workspace.root.join(lockfile::FILE_NAME), opened.workspace.locked);
        for (node, done) in outcome.graph.nodes().zip(&outcome.steps) {
            match (&done.outcome, &done.result) {
                _ if done.stopped || done.forgotten => return None,
                (Outcome::Executed | Outcome::Fresh, Some(result)) => {
                    maker.needs(result.outputs.values().copied());
                    if node.kind == StepKind::Compile && node.params.get("arch").is_none_or(|arch| arch != "cpu") {
                        // Evidence of another binary may appear, or evidence that was used may disappear. A binary compiled here is stored, so only the folder
                        // of evidence matters.
                        found.listed(&opened.home.evidence());
                    } else if done.cache == CacheOrigin::Evidence {
                        let folder = opened.home.evidence().join(done.key?.hex());
                        match folder.exists() {
                            true => found.listed(&folder),
                            // A bundle in the repository has answered.
                            false => found.saw(&folder, false),
                        }
                    }
                }
                // What this machine lacks was known to the plan. What only a worker found missing may be there next time, so it is not certified.
                (Outcome::Unavailable(_), _) if node.unavailable.is_some() => {
                    // Records of other products do not count, but a matching record may appear.
                    let records = opened.home.evidence().join(done.key?.hex());
                    match records.is_dir() {
                        true => found.listed(&records),
                        false => maker.unknown(done.key?),
                    }
                }
                (Outcome::Skipped(_), _) => {}
                _ => return None,
            }
        }
        let c = outcome.counts;
        let steps = StepCounts { executed: 0, fresh: c.fresh + c.executed, ..c };
        let reused = reused(outcome.steps.iter().filter_map(|done| done.evidence.as_ref()));
        let until = ready.trust.changes().map(Timestamp::as_second);
        ready.signed.files().iter().for_each(|path| found.saw(path, path.exists()));
        let verdicts = outcome.verdicts;
        let unknown = UnknownCounts::of(outcome);
        let answer = Answer { said, until, report, steps, verdicts, unknown, reused, outdated, request };
        for seen in [found, witness, opened.workspace.witness.clone(), self.settings.witness.clone()] {
            maker.saw(seen);
        }
        ["journal", "report.json"].iter().for_each(|name| maker.wrote(&opened.target.join(name)));
        let remembered = super::candidates::kept(opened);
        if remembered.place().exists() {
            maker.wrote(remembered.place());
        }
        let certificate = maker.done(&opened.home, serde_json::to_vec(&answer).ok()?)?;
        // If the certificate cannot be written, the next build has to plan; nothing else is lost.
        certificate.write(&place(&opened.target), key.as_deref()).ok()
    }
}

fn place(target: &Path) -> PathBuf {
    target.join("certificate")
}
