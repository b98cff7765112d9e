//! One recorded attempt at a round, as training data: the question, the answer and the result. Knows records and reports; reads no files. Of holdout shapes it
//! shows that they exist and their verdicts, never which shapes they are.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::report::rounds::{Became, CandidateReport, FateReport, RoundsReport};
use kforge_numerics::measure::score::{Form, Score, Scored, score};
use kforge_types::record::Verdict;
use kforge_types::record::answer::Answer;

/// The version of the format of [`Trajectory`].
pub const TRAJECTORY_FORMAT: u32 = 1;

/// The text that replaces the name of a holdout shape.
const HELD_BACK: &str = "holdout";

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
    /// The verdict at each shape.
    pub verdicts: Vec<Judged>,
    /// Its median time in nanoseconds at the champion's slowest shape.
    pub time_ns: Option<f64>,
    /// Its speedup over the start of the rounds; none if either was not timed.
    pub speedup: Option<f64>,
    /// The speedup as a score: 0 if the variant is wrong.
    pub score: Score,
    /// Whether it was champion after some round.
    pub champion: bool,
}

/// A verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judged {
    /// The shape; `holdout` for a holdout shape.
    pub shape: String,
    /// `pass`, `fail` or `unknown`.
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

/// What the attempts of a seat share.
#[derive(Debug, Clone, Copy)]
pub struct SeatContext<'a> {
    /// Package, kernel, types, target.
    pub seat: [&'a str; 4],
    /// The contract as text.
    pub contract: &'a str,
    /// Names of holdout shapes.
    pub held_back: &'a BTreeSet<String>,
    /// The report on the rounds.
    pub rounds: Option<&'a RoundsReport>,
    /// The judgements of the seat's variants.
    pub judged: &'a [FoundVerdict],
}

/// The trajectory of one attempt. `refused` says why nothing of the attempt could be tried.
pub fn trajectory(of: SeatContext<'_>, answer: &Answer, refused: Option<&String>) -> Trajectory {
    let question = &answer.question;
    let start = of.rounds.and_then(|r| r.rounds.first()).and_then(|r| r.time_ns);
    let mine = |c: &&CandidateReport| c.round == question.round && c.attempt == question.attempt;
    let candidates = of.rounds.into_iter().flat_map(|r| &r.candidates).filter(mine);
    let fates = of.rounds.into_iter().flat_map(|r| &r.methods).filter(|m| question.methods.contains(&m.method));
    let [package, kernel, types, target] = of.seat.map(String::from);
    Trajectory {
        format: TRAJECTORY_FORMAT,
        package,
        kernel,
        types,
        target,
        contract: of.contract.into(),
        answer: answer.clone(),
        refused: refused.cloned(),
        candidates: candidates.filter_map(|c| tried(of, c, start)).collect(),
        fates: fates.map(|f| FateReport { detail: None, ..f.clone() }).collect(),
    }
}

fn tried(of: SeatContext<'_>, candidate: &CandidateReport, start: Option<f64>) -> Option<Tried> {
    let variant = candidate.variant.clone()?;
    let judged = of.judged.iter().filter(|found| found.variant == variant).map(|found| {
        let is_held_back = of.held_back.contains(&found.shape);
        Judged {
            shape: if is_held_back { HELD_BACK.into() } else { found.shape.clone() },
            verdict: match found.verdict {
                Verdict::Pass => "pass",
                Verdict::Fail(_) => "fail",
                Verdict::Unknown(_) => "unknown",
            }
            .into(),
            explanation: if is_held_back { String::new() } else { found.explanation.clone() },
        }
    });
    let verdicts = judged.collect();
    let speedup = start.zip(candidate.time_ns).map(|(start, time)| start / time);
    let correct = match candidate.became {
        Became::Correct => Some(true),
        Became::Wrong | Became::Refused => Some(false),
        Became::Undecided => None,
    };
    let tells = |text: &String| !of.held_back.iter().any(|name| text.contains(name.as_str()));
    let refused = (candidate.became == Became::Refused).then(|| candidate.because.clone()).filter(tells);
    Some(Tried {
        variant,
        became: candidate.became,
        refused,
        verdicts,
        time_ns: candidate.time_ns,
        speedup,
        score: score(Form::Speedup, &Scored { correct, speedup, ratio: None }),
        champion: !candidate.champion_after.is_empty(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_foundation::base::Digest;
    use kforge_types::record::answer::{ANSWER_FORMAT, Question};
    use kforge_types::record::params::Fate;

    #[test]
    fn a_shape_that_is_held_back_is_neither_named_nor_explained() {
        let question = Question {
            contract: Digest::of(b"c"),
            parent: None,
            methods: vec![],
            round: 1,
            attempt: 0,
            agent: "rules".into(),
        };
        let answer = Answer {
            format: ANSWER_FORMAT,
            question,
            answered_at: String::new(),
            advice: None,
            proposal: None,
            refused: None,
            exchanges: vec![],
        };
        let candidate = CandidateReport {
            round: 1,
            attempt: 0,
            variant: Some("V=1".into()),
            parent: None,
            became: Became::Wrong,
            because: "at quiet: index 7918".into(),
            time_ns: Some(2.0),
            champion_after: vec![],
            source: None,
        };
        let rounds = RoundsReport {
            shape: None,
            rounds: vec![],
            candidates: vec![candidate],
            methods: vec![FateReport {
                method: "memory.vectorized_access".into(),
                tried: vec![1],
                fate: Some(Fate::Inconclusive),
                because: "the kernel without it is wrong".into(),
                detail: Some("at quiet: index 7918".into()),
            }],
            spent: vec![],
            over: None,
        };
        let found = |shape: &str, verdict| FoundVerdict {
            variant: "V=1".into(),
            shape: shape.into(),
            verdict,
            explanation: format!("{shape} is wrong at index 7918"),
        };
        let held_back = ["quiet".to_string()].into();
        let of = SeatContext {
            seat: ["p", "k", "", "cpu"],
            contract: "c",
            held_back: &held_back,
            rounds: Some(&rounds),
            judged: &[found("quiet", Verdict::Fail("7918".into())), found("small", Verdict::Pass)],
        };
        let made = trajectory(of, &answer, None);
        let text = serde_json::to_string(&made).unwrap();
        assert!(!text.contains("quiet") && text.matches("7918").count() == 1, "{text}");
        let shapes: Vec<(&str, &str)> =
            made.candidates[0].verdicts.iter().map(|v| (v.shape.as_str(), v.verdict.as_str())).collect();
        assert_eq!(shapes, [("holdout", "fail"), ("small", "pass")]);
        assert_eq!(made.candidates[0].score.value(), Some(0.0), "it is wrong");
    }
}
