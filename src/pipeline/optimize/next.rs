//! What comes next for a kernel's rounds: another attempt, the next round, or nothing. Pure: a function of the recorded answers and their results.

use std::fmt;

use kforge_types::record::answer::Answer;
use kforge_types::record::round::Decision;

/// The state of the variants of one round, over all its attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundState {
    /// At least one is correct on every shape that it serves.
    Correct,
    /// None is known to be correct, and at least one is undecided because evidence is missing here.
    Undecided,
    /// All are wrong, or there are none.
    Wrong,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// An agent is asked for the first attempt at a round, or for a repair.
    Ask {
        /// The round.
        round: u32,
        /// 0, or the number of the repair.
        attempt: u32,
    },
    /// Nothing, and why.
    Done(End),
}

/// Why rounds end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The allowed number of rounds is done.
    Allowed(u32),
    /// The step that decides a round gave no result.
    NotDecided {
        /// The round.
        round: u32,
    },
    /// The decision says stop.
    Stopped {
        /// Why, as text.
        why: String,
    },
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Allowed(1) => f.write_str("its one round is done"),
            End::Allowed(rounds) => write!(f, "all {rounds} rounds are done"),
            End::NotDecided { round } => {
                write!(f, "round {round} cannot be decided: the step that decides it gave no result")
            }
            End::Stopped { why } => f.write_str(why),
        }
    }
}

/// The limits of a kernel's rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    /// Rounds.
    pub rounds: u32,
    /// Repairs of a round.
    pub repairs: u32,
}

/// What comes after `answers`, given in order. `found` is the state of the last round. `decision` is that of the round after it; none if that step gave no
/// result.
pub fn next(answers: &[Answer], found: RoundState, allowed: Allowed, decision: Option<&Decision>) -> Next {
    let last = answers.last().map(|answer| (answer.question.round, answer.question.attempt));
    if let Some((round, attempt)) = last
        && found == RoundState::Wrong
        && attempt < allowed.repairs
    {
        return Next::Ask { round, attempt: attempt + 1 };
    }
    let round = last.map_or(1, |(round, _)| round + 1);
    if round > allowed.rounds {
        return Next::Done(End::Allowed(allowed.rounds));
    }
    match decision {
        None => Next::Done(End::NotDecided { round }),
        Some(Decision { stop: Some(why), .. }) => Next::Done(End::Stopped { why: why.clone() }),
        Some(_) => Next::Ask { round, attempt: 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_foundation::base::Digest;
    use kforge_types::record::answer::{ANSWER_FORMAT, Question};
    use kforge_types::record::profile::Gaps;
    use kforge_types::record::round::Slots;

    fn answer(round: u32, attempt: u32) -> Answer {
        Answer {
            format: ANSWER_FORMAT,
            question: Question {
                contract: Digest::of(b"o"),
                parent: None,
                methods: vec![],
                round,
                attempt,
                agent: "rules".into(),
            },
            answered_at: String::new(),
            advice: None,
            proposal: None,
            refused: None,
            exchanges: vec![],
        }
    }

    fn decision(stop: Option<&str>) -> Decision {
        Decision {
            round: 1,
            gaps: Gaps::default(),
            degraded: true,
            budget: Slots::default(),
            methods: vec![],
            passed: vec![],
            settled: Default::default(),
            stop: stop.map(String::from),
        }
    }

    const ALLOWED: Allowed = Allowed { rounds: 2, repairs: 1 };

    #[test]
    fn rounds_follow_each_other_until_all_are_done() {
        let go = decision(None);
        assert_eq!(next(&[], RoundState::Wrong, ALLOWED, Some(&go)), Next::Ask { round: 1, attempt: 0 });
        assert_eq!(next(&[answer(1, 0)], RoundState::Correct, ALLOWED, Some(&go)), Next::Ask { round: 2, attempt: 0 });
        let done = next(&[answer(1, 0), answer(2, 0)], RoundState::Correct, ALLOWED, None);
        assert_eq!(done, Next::Done(End::Allowed(2)));
        assert_eq!(End::Allowed(2).to_string(), "all 2 rounds are done");
    }

    #[test]
    fn a_round_without_a_right_variant_is_repaired_as_often_as_allowed() {
        let go = decision(None);
        let once = [answer(1, 0)];
        assert_eq!(next(&once, RoundState::Wrong, ALLOWED, Some(&go)), Next::Ask { round: 1, attempt: 1 });
        let twice = [answer(1, 0), answer(1, 1)];
        assert_eq!(next(&twice, RoundState::Wrong, ALLOWED, Some(&go)), Next::Ask { round: 2, attempt: 0 });
        // A variant that could not be evaluated is not repaired, because there is nothing to correct.
        assert_eq!(next(&once, RoundState::Undecided, ALLOWED, Some(&go)), Next::Ask { round: 2, attempt: 0 });
    }

    #[test]
    fn a_decision_that_says_stop_is_heard() {
        let near = decision(Some("near the peak"));
        assert_eq!(
            next(&[answer(1, 0)], RoundState::Correct, ALLOWED, Some(&near)),
            Next::Done(End::Stopped { why: "near the peak".into() })
        );
        assert!(next(&[], RoundState::Wrong, ALLOWED, None) == Next::Done(End::NotDecided { round: 1 }));
    }
}
