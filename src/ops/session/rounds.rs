//! The recorded rounds of a workspace's kernels: the answers, their questions, and the kernels that they contain. Knows the store of answers and declarations;
//! asks no agent.

use std::collections::BTreeMap;
use std::path::Path;

use super::open::{Opened, Session};
use super::sources::Sources;
pub use super::written_kernel::About;
use super::written_kernel::{attempt, strays};
use crate::Error;
use crate::event::Warning;
use kforge_engine::answers::Answers;
use kforge_foundation::base::{Digest, Witness};
use kforge_pipeline::optimize::contract;
use kforge_pipeline::plan::input::Attempt;
use kforge_project::workspace::{Member, declaration};
use kforge_types::model::agent::RULES;
use kforge_types::model::{Kernel, Language, Package};
use kforge_types::record::answer::Answer;

/// A kernel on a target for one choice of types. Each seat has its own rounds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seat {
    /// The package.
    pub package: String,
    /// The kernel.
    pub kernel: String,
    /// The choice of types.
    pub types: String,
    /// The target.
    pub target: String,
}

/// The recorded rounds of a seat.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The seat.
    pub seat: Seat,
    /// What the kernel is written in.
    pub language: Language,
    /// The contract as text.
    pub contract: String,
    /// The digest of the contract and the architecture.
    pub asked: Digest,
    /// The key under which answers are stored: a digest of the seat, the contract, the start of the rounds, and the agents.
    pub chain: Digest,
    /// The source from which the rounds start; none if they start without one.
    pub source: Option<String>,
    /// The declaration of that source.
    pub declaration: String,
    /// The answers, by round and attempt.
    pub answers: Vec<Answer>,
    /// The plan's attempt for each answer, in the same order.
    pub attempts: Vec<Attempt>,
    /// Why nothing of an answer can be tried, by the answer's position.
    pub refused: BTreeMap<usize, String>,
}

impl Session {
    /// The recorded rounds of a member's kernels. File system queries are recorded in `witness`.
    pub fn recorded(
        &self,
        opened: &Opened,
        member: &Member,
        sources: &Sources,
        witness: &mut Witness,
    ) -> Result<Vec<Recorded>, Error> {
        let store = Answers::new(&opened.home);
        let package = &member.package;
        let mut out = Vec::new();
        for kernel in package.kernels.iter().filter(|kernel| kernel.rounds.is_some()) {
            let Some(operator) = package.operator(&kernel.operator) else { continue };
            for choice in operator.choices() {
                for target in kernel.targets.iter().filter_map(|name| package.targets.get(name)) {
                    let about = About { package, kernel, operator, choice: &choice, target };
                    let mut recorded = blank(member, about, sources)
                        .map_err(|why| Error::Rounds { kernel: kernel.name.clone(), why })?;
                    let folder = store.folder(&recorded.chain);
                    match folder.is_dir() {
                        true => witness.listed(&folder),
                        false => witness.saw(&folder, false),
                    }
                    let listed = store.list(&recorded.chain).map_err(|source| Error::Read {
                        what: "the answers in ",
                        path: folder,
                        source,
                    })?;
                    listed.passed.into_iter().for_each(|why| self.reporter.warn(Warning::Answer(why)));
                    recorded.answers = listed.answers;
                    for at in 0..recorded.answers.len() {
                        let (attempt, refused) = attempt(about, &recorded.answers[at]);
                        recorded.attempts.push(attempt);
                        recorded.refused.extend(refused.map(|why| (at, why)));
                    }
                    out.push(recorded);
                }
            }
        }
        Ok(out)
    }
}

/// A seat without its answers.
fn blank(member: &Member, about: About<'_>, sources: &Sources) -> Result<Recorded, String> {
    let About { package, kernel, operator, choice, target } = about;
    let seat = Seat {
        package: package.name.clone(),
        kernel: kernel.name.clone(),
        types: choice.label.clone(),
        target: target.name.clone(),
    };
    let own = |file: &str| std::fs::read_to_string(member.folder.join(file)).ok();
    let contract = contract::text(operator, choice, &own);
    let asked = contract::digest(&contract, &target.arch);
    let source = source_of(&member.folder, kernel)?;
    let declaration = if kernel.is_unstarted() { String::new() } else { declaration::of(kernel) };
    let who = agent_of(package, kernel);
    let reach = sources.sources.get(&kernel.source).map(|reach| &reach.files);
    // The parts of the key. Two seats never share rounds, however similar they are.
    let mut own = serde_json::json!({
        "package": package.name, "kernel": kernel.name, "types": choice.label, "target": target.name, "device": target.device,
        "contract": asked, "source": source, "declaration": declaration, "agent": who, "files": reach,
    });
    // Chains of kernels in CUDA C++ are older than other languages.
    if !kernel.language.is_default() {
        own["language"] = kernel.language.to_string().into();
    }
    let chain = Digest::of(own.to_string().as_bytes());
    Ok(Recorded {
        seat,
        language: kernel.language,
        contract,
        asked,
        chain,
        source,
        declaration,
        answers: vec![],
        attempts: vec![],
        refused: BTreeMap::new(),
    })
}

/// The source from which a kernel's rounds start.
fn source_of(folder: &Path, kernel: &Kernel) -> Result<Option<String>, String> {
    match kernel.made() {
        Some(made) => Ok(Some(made.source.to_string())),
        None if kernel.is_unstarted() => Ok(None),
        None => match std::fs::read(folder.join(&kernel.source)) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            // The search for sources reports the missing file.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(format!("cannot read `{}`: {e}", kernel.source)),
        },
    }
}

/// The identity of the agents whose answers a kernel's rounds use.
pub fn agent_of(package: &Package, kernel: &Kernel) -> String {
    let name = kernel.rounds.as_ref().map_or(RULES, |rounds| rounds.agent.as_str());
    package.agent(name).map_or_else(|| name.to_string(), |agent| agent.identity())
}

/// Refuses recorded kernels whose sources cannot be compiled. This is known only after sources have been searched.
pub fn refuse(all: &mut [Recorded], found: &Sources) {
    for recorded in all {
        for (at, attempt) in recorded.attempts.iter_mut().enumerate() {
            let Some(kernel) = &attempt.written else { continue };
            let Some(why) = strays(kernel, found) else { continue };
            (attempt.written, attempt.branches) = (None, vec![]);
            recorded.refused.insert(at, why);
        }
    }
}
