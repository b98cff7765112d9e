//! Recorded attempts at rounds as training data: the questions, the answers, the results, and what they are worth. Knows records and reports; reads no files.
//! Of holdout shapes it shows that they exist and their verdicts, never which shapes they are.
//!
//! | word | meaning |
//! |---|---|
//! | rollout | the attempts of a kernel's rounds, in order |
//! | turn | one attempt of a rollout |
//! | group | attempts that are compared with each other: at one problem, of one rollout, or at one round of it |

pub mod conversation;
pub mod filter;
mod normalised;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::optimize::holdout::HeldBack;
use crate::report::rounds::{Became, CandidateReport, FateReport, RoundsReport};
use kforge_foundation::base::Digest;
use kforge_numerics::measure::reward::{Distribution, RewardConstants, Rewards};
use kforge_numerics::measure::score::{Form, Score, Scored, score};
use kforge_types::model::{Language, Pattern};
use kforge_types::record::Verdict;
use kforge_types::record::answer::Answer;

/// The version of the format of [`Trajectory`].
pub const TRAJECTORY_FORMAT: u32 = 1;

/// The name of all holdout shapes together.
const HELD_BACK: &str = "holdout";

/// The text that replaces one that would reveal a holdout shape.
const HIDDEN: &str = "the reason is about a holdout shape";

/// One recorded attempt at a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Trajectory {
    /// [`TRAJECTORY_FORMAT`].
    pub format: u32,
    /// The package.
    pub package: String,
    /// The kernel.
    pub kernel: String,
    /// The choice of types; empty if the operator has none.
    pub types: String,
    /// The target.
    pub target: String,
    /// What the kernel is written in.
    pub language: Language,
    /// The operator's pattern; none if neither the manifest nor the contract shows it.
    pub pattern: Option<Pattern>,
    /// The operator's level, 0 to 5; none if neither the manifest nor the contract shows it.
    pub level: Option<u8>,
    /// The groups that the attempt belongs to.
    pub groups: Groups,
    /// The place of the attempt in its rollout, and what it is worth.
    pub turn: Turn,
    /// The operator's contract, as agents see it.
    pub contract: String,
    /// The question and the answer: round, attempt, agent, parent, methods, prompts, replies, tokens, money, advice, proposal.
    pub answer: Answer,
    /// Why nothing of the answer could be tried, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The result of each proposed variant.
    pub candidates: Vec<Tried>,
    /// The results so far of the methods that were to be tried.
    pub fates: Vec<FateReport>,
}

/// Ids of groups. Attempts with the same id are in the same group, also in several exports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Groups {
    /// Attempts at one problem: one contract on one architecture, whichever package, kernel or agent they are of.
    pub problem: String,
    /// Attempts of one rollout: the rounds of a kernel on a target, from one start, by the same agents.
    pub rollout: String,
    /// Attempts at one round of a rollout: the first answer and its repairs.
    pub round: String,
}

/// An attempt as a turn of its rollout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Turn {
    /// Its position in the rollout, from 0.
    pub index: u32,
    /// The rewards of its best candidate. What could not be tried is worth as much as a wrong candidate; what was not built yet is unknown.
    pub rewards: Rewards,
    /// Its rewards, and the discounted returns of the turn after it.
    pub returns: Rewards,
    /// The factor by which each later turn counts less.
    pub discount: f64,
    /// The constants of the rewards. All attempts of an export have the same.
    pub constants: RewardConstants,
}

/// The result of a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tried {
    /// The variant.
    pub variant: String,
    /// Its result.
    pub became: Became,
    /// The compiler's message, if the compiler rejected it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The verdict at each shape, and one at all holdout shapes together.
    pub verdicts: Vec<Judged>,
    /// Its median time in nanoseconds at the champion's slowest shape.
    pub time_ns: Option<f64>,
    /// Its speedup over the start of the rounds; none if either was not timed.
    pub speedup: Option<f64>,
    /// The profiling ratio: the share of its time that is spent in code of its own. None if it is unknown.
    #[serde(default)]
    pub ratio: Option<f64>,
    /// The speedup as a score: 0 if the variant is wrong.
    pub score: Score,
    /// Its rewards.
    pub rewards: Rewards,
    /// Whether it was champion after some round.
    pub champion: bool,
}

/// A verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judged {
    /// The shape; `holdout` for all holdout shapes together.
    pub shape: String,
    /// `pass`, `fail` or `unknown`. At holdout shapes: `fail` if it fails at one, otherwise `unknown` if it is unknown at one.
    pub verdict: String,
    /// How it is wrong; empty at holdout shapes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub explanation: String,
}

/// A judgement from the records.
#[derive(Debug, Clone)]
pub struct FoundVerdict {
    /// The variant.
    pub variant: String,
    /// The shape.
    pub shape: String,
    /// The verdict.
    pub verdict: Verdict,
    /// How it is wrong.
    pub explanation: String,
}

/// The recorded attempts of a seat: of a kernel on a target for one choice of types.
#[derive(Debug, Clone)]
pub struct Rollout {
    /// Package, kernel, types, target.
    pub seat: [String; 4],
    /// What the kernel is written in.
    pub language: Language,
    /// The operator's pattern.
    pub pattern: Option<Pattern>,
    /// The operator's level.
    pub level: Option<u8>,
    /// The contract as text.
    pub contract: String,
    /// The digest of the contract and the architecture.
    pub problem: Digest,
    /// What distinguishes the rounds from all others.
    pub chain: Digest,
    /// Names of holdout shapes.
    pub held_back: BTreeSet<String>,
    /// What texts may not contain.
    pub hidden: HeldBack,
    /// The report on the rounds.
    pub rounds: Option<RoundsReport>,
    /// The judgements of the seat's variants.
    pub judged: Vec<FoundVerdict>,
    /// The share of the time of its variants that is spent in code of their own; none if it is unknown.
    pub ratio: Option<f64>,
    /// The attempts, by round and attempt.
    pub answers: Vec<Answer>,
    /// By position of an attempt: why nothing of it can be tried.
    pub refused: BTreeMap<usize, String>,
}

/// Every attempt of these rollouts. Returns are discounted by the factor.
pub fn trajectories(rollouts: &[Rollout], discount: f64) -> Vec<Trajectory> {
    let attempted: Vec<Vec<Attempted<'_>>> = rollouts.iter().map(Rollout::attempted).collect();
    let among = Distribution::of(attempted.iter().flatten().flat_map(|attempt| &attempt.known));
    let constants = RewardConstants::among(among);
    let mut out = vec![];
    for (rollout, attempts) in rollouts.iter().zip(attempted) {
        let worth = |attempt: &Attempted<'_>| {
            let each: Vec<Rewards> = attempt.known.iter().map(|known| Rewards::of(known, &among)).collect();
            Rewards::best(&each).unwrap_or_else(|| Rewards::of(&Scored::default(), &among))
        };
        let rewards: Vec<Rewards> = attempts.iter().map(worth).collect();
        let returns = Rewards::returns(&rewards, discount);
        for (index, attempt) in attempts.into_iter().enumerate() {
            let (rewards, returns) = (rewards[index], returns[index]);
            let turn = Turn { index: index as u32, rewards, returns, discount, constants };
            out.push(rollout.trajectory(index, attempt, turn));
        }
    }
    out
}

/// The candidates of an attempt.
struct Attempted<'r> {
    /// Those with a variant, and what is known about each.
    candidates: Vec<(&'r CandidateReport, &'r str, Scored)>,
    /// What is known about each. An attempt without a candidate that could be tried counts as wrong.
    known: Vec<Scored>,
}

impl Rollout {
    /// The candidates of each attempt.
    fn attempted(&self) -> Vec<Attempted<'_>> {
        let start = self.rounds.as_ref().and_then(|r| r.rounds.first()).and_then(|r| r.time_ns);
        let attempted = |(at, answer): (usize, &Answer)| {
            let question = &answer.question;
            let mine = |c: &&CandidateReport| (c.round, c.attempt) == (question.round, question.attempt);
            let all = self.rounds.iter().flat_map(|r| &r.candidates).filter(mine);
            let candidates: Vec<_> =
                all.filter_map(|c| Some((c, c.variant.as_deref()?, self.known(c, start)))).collect();
            let mut known: Vec<Scored> = candidates.iter().map(|(.., known)| *known).collect();
            if known.is_empty() && (answer.refused.is_some() || self.refused.contains_key(&at)) {
                known.push(Scored { correct: Some(false), ..Scored::default() });
            }
            Attempted { candidates, known }
        };
        self.answers.iter().enumerate().map(attempted).collect()
    }

    /// What is known about a candidate. `start` is the time from which speedups count.
    fn known(&self, candidate: &CandidateReport, start: Option<f64>) -> Scored {
        let correct = match candidate.became {
            Became::Correct => Some(true),
            Became::Wrong | Became::Refused => Some(false),
            Became::Undecided => None,
        };
        let speedup = start.zip(candidate.time_ns).map(|(start, time)| start / time);
        Scored { correct, speedup, ratio: self.ratio }
    }

    fn trajectory(&self, at: usize, attempt: Attempted<'_>, turn: Turn) -> Trajectory {
        let answer = &self.answers[at];
        let question = &answer.question;
        let fates = self.rounds.iter().flat_map(|r| &r.methods).filter(|m| question.methods.contains(&m.method));
        let among = turn.constants.among;
        let candidates = attempt.candidates.into_iter();
        let [package, kernel, types, target] = self.seat.clone();
        Trajectory {
            format: TRAJECTORY_FORMAT,
            package,
            kernel,
            types,
            target,
            language: self.language,
            pattern: self.pattern,
            level: self.level,
            groups: Groups {
                problem: self.problem.short(),
                rollout: self.chain.short(),
                round: Digest::of(format!("{} {}", self.chain, question.round).as_bytes()).short(),
            },
            turn,
            contract: self.contract.clone(),
            answer: self.answer(answer),
            refused: self.refused.get(&at).map(|why| self.shown(why)),
            candidates: candidates.map(|(of, variant, known)| self.tried(of, variant, &known, &among)).collect(),
            fates: fates.map(|f| FateReport { detail: None, because: self.shown(&f.because), ..f.clone() }).collect(),
        }
    }

    /// A text, unless it reveals a holdout shape.
    fn shown(&self, text: &str) -> String {
        if self.hidden.is_in(text) { HIDDEN.into() } else { text.into() }
    }

    /// An answer with reasons that reveal no holdout shape. Prompts have none, and replies are what was replied.
    fn answer(&self, answer: &Answer) -> Answer {
        let mut answer = answer.clone();
        let exchanges = answer.exchanges.iter_mut().map(|exchange| &mut exchange.refused);
        for refused in exchanges.chain([&mut answer.refused]).flatten() {
            *refused = self.shown(refused);
        }
        answer
    }

    /// The verdicts of a variant: at shapes that are shown, and one at all others.
    fn verdicts(&self, variant: &str) -> Vec<Judged> {
        let mine = self.judged.iter().filter(|found| found.variant == variant);
        let (held, shown): (Vec<_>, Vec<_>) = mine.partition(|found| self.held_back.contains(&found.shape));
        let one = |found: &FoundVerdict| Judged {
            shape: found.shape.clone(),
            verdict: word(&found.verdict).into(),
            explanation: self.shown(&found.explanation),
        };
        let words: Vec<&str> = held.iter().map(|found| word(&found.verdict)).collect();
        let joined = ["fail", "unknown", "pass"].into_iter().find(|word| words.contains(word));
        let joined =
            joined.map(|word| Judged { shape: HELD_BACK.into(), verdict: word.into(), explanation: String::new() });
        shown.into_iter().map(one).chain(joined).collect()
    }

    fn tried(&self, candidate: &CandidateReport, variant: &str, known: &Scored, among: &Distribution) -> Tried {
        let refused = (candidate.became == Became::Refused).then(|| self.shown(&candidate.because));
        Tried {
            variant: variant.into(),
            became: candidate.became,
            refused,
            verdicts: self.verdicts(variant),
            time_ns: candidate.time_ns,
            speedup: known.speedup,
            ratio: known.ratio,
            score: score(Form::Speedup, known),
            rewards: Rewards::of(known, among),
            champion: !candidate.champion_after.is_empty(),
        }
    }
}

/// A verdict in a word.
fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail(_) => "fail",
        Verdict::Unknown(_) => "unknown",
    }
}

#[cfg(test)]
mod tests;
