//! When a build may answer without planning: which questions a certificate is made for, and what goes into it. Knows what a build is asked and its
//! outcome; what a certificate is, and when it holds, is `engine::certificate`.
//!
//! | what could change the answer | where it goes |
//! |---|---|
//! | the request with its options and selection, the goal | the question, all but `-j`, which changes no result |
//! | the working folder | the question |
//! | settings from files, variables, flags | the question, by value; the files looked for, too: a new one may come |
//! | the environment | the question, all of it but what shells and terminals keep for themselves ([`SHELLS`]) |
//! | whether the system can confine kernels | the question |
//! | this program | the question (versions) and its file |
//! | the manifest at hand, the workspace's root, its members | what `workspace` and the search from the working folder asked |
//! | kforge.lock | its file, or that there is none |
//! | sources, headers, what would shadow them, references and their kin | what `sources` asked |
//! | the C++ compiler and Python | the files of their fingerprints, the folders of `PATH` and of headers and libraries passed over, what the loader finds libraries by |
//! | CUDA from wheels | kforge.lock; what is installed decides nothing |
//! | results and evidence of steps that were known | their outputs, in the store; the folder of records of one that a device's record answered, or that there is none |
//! | bundles of evidence in the repository | their files, the folders that were looked into for them, or that there are none |
//! | steps that could not run here | that there still is no result and no record, or the folder of records that do not count |
//! | what this workspace remembers, and the report that is shown | the files of journal and report, and that of its candidates in the home |
//!
//! None is made where that does not decide the answer: by a program that is not its own worker; with `remeasure`, an overlay, timings, or where every step is to be
//! reported; with
//! an installed CUDA (its headers are listed anew each time) or one that could not be had; with a tool missing, or behind a script; where a device is there;
//! where a store or the journal had to be complained of; where a result is of the kind that is not kept.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::open::{Opened, Session, Worker, make_target};
use super::outdated::Outdated;
use crate::build::BuildRequest;
use crate::event::Said;
use kforge_engine::BuildOutcome;
use kforge_engine::certificate::{Certificate, Maker};
use kforge_engine::home::Home;
use kforge_engine::lock::{Lock, Mode, Wait};
use kforge_foundation::base::{Digest, Witness};
use kforge_harness::confine;
use kforge_pipeline::release::evidence_list::{Reused, reused};
use kforge_project::workspace::find::{MANIFEST, manifest_at, manifest_named};
use kforge_project::workspace::lockfile;
use kforge_types::record::event::{CacheOrigin, StepCounts, VerdictCounts};
use kforge_types::record::{Outcome, StepKind};

/// Variables that shells and terminals keep for themselves: the same command in the next window is the same command.
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

/// What is said of a build that had nothing to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Warnings and diagnostics.
    pub said: Vec<Said>,
    /// The report, styled.
    pub report: String,
    /// How many steps: none executed.
    pub steps: StepCounts,
    /// What they said.
    pub verdicts: VerdictCounts,
    /// Where answers of devices came from.
    pub reused: Vec<Reused>,
    /// Where there are records of another version of what was built.
    pub outdated: Vec<Outdated>,
}

/// What is asked of a build, where a certificate may answer.
#[derive(Debug, Clone)]
pub struct Question {
    digest: Digest,
    program: PathBuf,
    /// From the working folder upward.
    manifest: PathBuf,
}

/// The file that says, by being there, that a build after the one that is reported was interrupted.
pub const CUT_SHORT: &str = "interrupted";

/// An answer that holds, and the locks that keep it so.
#[derive(Debug)]
pub struct Held {
    /// What to say.
    pub answer: Answer,
    /// The home whose stores were looked at.
    pub home: Home,
    /// The output folder of the workspace.
    pub target: PathBuf,
    _locks: [Lock; 2],
}

impl Session {
    /// The question that a build asks; none where it must plan.
    pub fn question(&self, request: &BuildRequest) -> Option<Question> {
        let Worker::Own(program) = &self.worker else { return None };
        let plans = request.remeasure || request.overlay.is_some() || request.timings || request.plans;
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
        let all = (versions, words, &self.options, &self.cwd, settings, &self.settings.home, environment, unconfined);
        let digest = Digest::of(format!("{all:?}").as_bytes());
        Some(Question { digest, program: program.clone(), manifest: manifest.ok()? })
    }

    /// The answer, if a certificate has it and holds.
    pub fn certified(&self, question: &Question) -> Option<Held> {
        let targets: Vec<PathBuf> = match self.named_target() {
            Some(target) => vec![target],
            // The root is one of these; a certificate says itself whether it is.
            None => question.manifest.ancestors().skip(1).map(|folder| folder.join("target")).collect(),
        };
        targets.iter().find_map(|target| self.certified_at(question, &target.join("kforge")))
    }

    fn certified_at(&self, question: &Question, target: &Path) -> Option<Held> {
        // Where a build was cut short a whole one says so, which a certificate does not.
        if target.join(CUT_SHORT).exists() {
            return None;
        }
        let certificate = Certificate::read(&place(target))?;
        let home = Home::open(&self.settings.home).ok()?;
        // Who holds a lock is to be waited for, and told of, by the build that plans.
        let own = Lock::acquire(&target.join(".lock"), Mode::Exclusive, Wait::No).ok()?;
        let cache = home.lock_cache(Mode::Shared, Wait::No).ok()?;
        if !certificate.holds(&question.digest, &home) {
            return None;
        }
        let answer: Answer = serde_json::from_slice(&certificate.answer).ok()?;
        make_target(target).ok()?;
        home.register(&target.join("journal")).ok()?;
        Some(Held { answer, home, target: target.to_path_buf(), _locks: [own, cache] })
    }

    /// Writes down that the same question has the same answer, if that can be certified. `witness` is what planning asked, then come the report that is
    /// shown, the warnings, and records of other versions.
    pub fn certify(
        &self,
        question: Question,
        opened: &Opened,
        witness: Witness,
        outcome: &BuildOutcome,
        (report, said, outdated): (String, Vec<Said>, Vec<Outdated>),
    ) -> Option<()> {
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
                        // Evidence of another binary may come, or that which came may go. What was compiled here is known, so only that counts.
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
                // What this machine lacks was known to the plan; what a worker found lacking may be there next time.
                (Outcome::Unavailable(_), _) if node.unavailable.is_some() => {
                    // Records of products that do not count: another may come.
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
        let answer = Answer { said, report, steps, verdicts: outcome.verdicts, reused, outdated };
        for seen in [found, witness, opened.workspace.witness.clone(), self.settings.witness.clone()] {
            maker.saw(seen);
        }
        ["journal", "report.json"].iter().for_each(|name| maker.wrote(&opened.target.join(name)));
        let remembered = super::candidates::kept(opened);
        if remembered.place().exists() {
            maker.wrote(remembered.place());
        }
        let certificate = maker.done(&opened.home, serde_json::to_vec(&answer).ok()?)?;
        // One that cannot be written costs the next build a plan, nothing else.
        certificate.write(&place(&opened.target)).ok()
    }
}

fn place(target: &Path) -> PathBuf {
    target.join("certificate")
}
