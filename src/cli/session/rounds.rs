//! The recorded rounds of a workspace's kernels: which answers there are, what they are answers to, and the kernels that they wrote. Knows the store of answers
//! and declarations; asks nobody.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::open::{Context, Opened};
use super::sources::Sources;
use crate::base::{Diagnostic, Digest, Severity, SourceFile, Witness};
use crate::cli::exit::Exit;
use crate::engine::answers::Answers;
use crate::model::TuneValue;
use crate::model::agent::RULES;
use crate::model::generate::GENERATED;
use crate::model::{
    Kernel, Made, Operator, Package, ShapeRole, Target, Text, TypeChoice, check_written, parse_template,
};
use crate::optimize::contract;
use crate::plan::input::Attempt;
use crate::plan::variants::torn;
use crate::record::answer::{Answer, Proposal};
use crate::workspace::{Member, declaration};

/// A kernel on a target for one choice of types: what has rounds of its own.
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

/// The rounds of a seat as far as they are on record.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Whose they are.
    pub seat: Seat,
    /// The contract as text.
    pub contract: String,
    /// The digest of contract and architecture.
    pub asked: Digest,
    /// What the answers are kept under: the contract, what the rounds start from, and who is asked.
    pub chain: Digest,
    /// The source that the rounds start from; none where they start from nothing.
    pub source: Option<String>,
    /// Its declaration.
    pub declaration: String,
    /// What was answered, by round and attempt.
    pub answers: Vec<Answer>,
    /// What the plan makes of each, in the same order.
    pub attempts: Vec<Attempt>,
    /// By position of an answer: why nothing of it can be tried.
    pub refused: BTreeMap<usize, String>,
}

impl Context {
    /// The recorded rounds of a member's kernels. What was asked of the file system goes to `witness`.
    pub fn recorded(&self, opened: &Opened, member: &Member, witness: &mut Witness) -> Result<Vec<Recorded>, Exit> {
        let store = Answers::new(&opened.home);
        let package = &member.package;
        let mut out = Vec::new();
        for kernel in package.kernels.iter().filter(|kernel| kernel.rounds.is_some()) {
            let Some(operator) = package.operator(&kernel.operator) else { continue };
            for choice in operator.choices() {
                for target in kernel.targets.iter().filter_map(|name| package.targets.get(name)) {
                    let mut recorded = blank(member, kernel, operator, &choice, target)
                        .map_err(|why| self.fail(&format!("kernel `{}`: {why}", kernel.name)))?;
                    let folder = store.folder(&recorded.chain);
                    match folder.is_dir() {
                        true => witness.listed(&folder),
                        false => witness.saw(&folder, false),
                    }
                    let listed = store
                        .list(&recorded.chain)
                        .map_err(|e| self.fail(&format!("cannot read the answers in `{}`: {e}", folder.display())))?;
                    listed
                        .passed
                        .iter()
                        .for_each(|why| self.console.warn(&format!("a recorded answer is passed over: {why}")));
                    recorded.answers = listed.answers;
                    for at in 0..recorded.answers.len() {
                        let about = About { package, kernel, operator, choice: &choice, target };
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
fn blank(
    member: &Member,
    kernel: &Kernel,
    operator: &Operator,
    choice: &TypeChoice,
    target: &Target,
) -> Result<Recorded, String> {
    let package = &member.package;
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
    // Each part by its own digest, so that no two sets of parts read the same.
    let parts = [
        asked,
        Digest::of(source.as_deref().unwrap_or("").as_bytes()),
        Digest::of(declaration.as_bytes()),
        Digest::of(who.as_bytes()),
    ];
    let chain = Digest::of(parts.map(|part| part.to_string()).join("\n").as_bytes());
    Ok(Recorded {
        seat,
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

/// The text that a kernel's rounds start from.
fn source_of(folder: &Path, kernel: &Kernel) -> Result<Option<String>, String> {
    match kernel.made() {
        Some(made) => Ok(Some(made.source.to_string())),
        None if kernel.is_unstarted() => Ok(None),
        None => match std::fs::read(folder.join(&kernel.source)) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            // That it is not there is said where sources are looked for.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(format!("cannot read `{}`: {e}", kernel.source)),
        },
    }
}

/// Whose answers a kernel's rounds are.
pub fn agent_of(package: &Package, kernel: &Kernel) -> String {
    let name = kernel.rounds.as_ref().map_or(RULES, |rounds| rounds.agent.as_str());
    package.agent(name).map_or_else(|| name.to_string(), |agent| agent.identity())
}

/// What an answer is about.
#[derive(Clone, Copy)]
struct About<'a> {
    package: &'a Package,
    kernel: &'a Kernel,
    operator: &'a Operator,
    choice: &'a TypeChoice,
    target: &'a Target,
}

/// What the plan makes of an answer, and why it can make nothing of it.
fn attempt(about: About<'_>, answer: &Answer) -> (Attempt, Option<String>) {
    let question = &answer.question;
    let empty = Attempt {
        round: question.round,
        attempt: question.attempt,
        methods: question.methods.clone(),
        written: None,
        branches: vec![],
    };
    let Some(proposal) = &answer.proposal else {
        return (empty, Some(answer.refused.clone().unwrap_or_else(|| "no answer was of use".into())));
    };
    let written = match written(about, proposal) {
        Ok(written) => written,
        Err(why) => return (empty, Some(why)),
    };
    // An answer without branches is one variant: the first values.
    let branches = if proposal.branches.is_empty() { vec![BTreeMap::new()] } else { proposal.branches.clone() };
    let (mut good, mut refused) = (vec![], None);
    for values in branches {
        match launched(about, written.as_ref().unwrap_or(about.kernel), &values) {
            Ok(()) => good.push(values),
            Err(why) => drop(refused.get_or_insert(why)),
        }
    }
    // What some variants cannot do is told only where none can be tried.
    let refused = refused.filter(|_| good.is_empty());
    (Attempt { written: written.filter(|_| !good.is_empty()), branches: good, ..empty }, refused)
}

/// Whether a variant can be launched at every shape that it serves: a plan takes no launch that cannot be bound.
///
/// # Errors
/// Why it cannot, as it is told to whoever wrote it.
fn launched(about: About<'_>, kernel: &Kernel, values: &BTreeMap<String, TuneValue>) -> Result<(), String> {
    let variant = kernel.variant(about.target, about.choice, values).map_err(|d| told(&[d]))?;
    let Some(variant) = variant else { return Err("`tune` has no such variant, or `where` leaves it out".into()) };
    for shape in &about.operator.shapes {
        let bound = || {
            if kernel.serves(&variant, about.operator, about.choice, shape)? {
                kernel.launches(&variant, about.choice, &about.operator.bind(about.choice, shape)?)?;
            }
            Ok(())
        };
        match bound() {
            Ok(()) => {}
            Err(_) if shape.role == ShapeRole::Holdout => {
                return Err("its launches cannot be bound at a shape that is not shown: it must serve every shape that `requires` lets through".into());
            }
            Err(wrong) => return Err(told(&[wrong])),
        }
    }
    Ok(())
}

/// The kernel that a proposal wrote; none where it proposes variants of the kernel's own.
///
/// # Errors
/// What is wrong with its declaration, as it is told to whoever wrote it: shapes that are held back are not named.
fn written(about: About<'_>, proposal: &Proposal) -> Result<Option<Kernel>, String> {
    let About { package, kernel, operator, target, .. } = about;
    let (Some(source), Some(declaration)) = (&proposal.source, &proposal.declaration) else {
        return match (&proposal.source, &proposal.declaration) {
            (None, None) if !kernel.is_unstarted() => Ok(None),
            _ => Err("a source and its declaration come together".into()),
        };
    };
    let file = Arc::new(SourceFile {
        name: format!("the declaration of kernel `{}`", kernel.name),
        text: declaration.clone(),
    });
    let name = Text { value: kernel.name.clone(), place: kernel.place.clone() };
    let (made, mut wrong) = parse_template(&file, &name);
    let Some(made) = made.filter(|_| !is_wrong(&wrong)) else { return Err(told(&wrong)) };
    let texts = Made { source: source.as_str().into(), declaration: declaration.as_str().into() };
    let digest = Digest::of([source.as_bytes(), b"\0", declaration.as_bytes()].concat().as_slice());
    let written = kernel.written(made, texts, format!("{GENERATED}/{}-{}.cu", kernel.name, digest.short()));
    let shown = Operator {
        shapes: operator.shapes.iter().filter(|shape| shape.role != ShapeRole::Holdout).cloned().collect(),
        ..operator.clone()
    };
    let alone = Kernel { targets: vec![target.name.clone()], ..written.clone() };
    wrong = check_written(package, &shown, &alone);
    if is_wrong(&wrong) { Err(told(&wrong)) } else { Ok(Some(written)) }
}

fn is_wrong(found: &[Diagnostic]) -> bool {
    found.iter().any(|d| d.severity == Severity::Error)
}

/// What is wrong, as text.
fn told(found: &[Diagnostic]) -> String {
    let look = crate::base::render::Look::default();
    found.iter().map(|d| crate::base::render::render(d, look)).collect::<Vec<_>>().join("\n")
}

/// Takes out of recorded rounds the kernels whose sources cannot be compiled as they are, which is known once sources were looked at.
pub fn refuse(all: &mut [Recorded], found: &Sources) {
    for recorded in all {
        for (at, attempt) in recorded.attempts.iter_mut().enumerate() {
            let Some(kernel) = &attempt.written else { continue };
            let why = match found.refused.get(&kernel.source) {
                Some(wrong) => told(wrong),
                None => match found.sources.get(&kernel.source).and_then(|reach| torn(kernel, reach)) {
                    Some(wrong) => told(&[wrong]),
                    None => continue,
                },
            };
            (attempt.written, attempt.branches) = (None, vec![]);
            recorded.refused.insert(at, why);
        }
    }
}
