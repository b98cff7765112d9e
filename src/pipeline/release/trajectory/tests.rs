//! Exported attempts against answers, verdicts and reports that the tests write. Knows the form of an export; no command, and nothing of how a build records
//! attempts.

use super::conversation::conversation;
use super::filter::{Balance, Band, Filter};
use super::*;
use crate::report::rounds::RoundReport;
use kforge_foundation::base::SourceFile;
use kforge_types::record::answer::{ANSWER_FORMAT, Exchange, Prompt, Proposal, Question, Role};
use kforge_types::record::params::Fate;

/// An answer to this attempt at this round, with this source.
fn answer(round: u32, attempt: u32, source: Option<&str>) -> Answer {
    let methods = vec!["memory.vectorized_access".to_string()];
    let question = Question { contract: Digest::of(b"c"), parent: None, methods, round, attempt, agent: "a".into() };
    let proposal = source.map(|text| Proposal { source: Some(text.into()), ..Proposal::default() });
    let refused = proposal.is_none().then(|| "no JSON".to_string());
    Answer {
        format: ANSWER_FORMAT,
        question,
        answered_at: String::new(),
        advice: None,
        proposal,
        refused,
        exchanges: vec![],
    }
}

/// A candidate of this attempt at this round, with this fate and time.
fn candidate(round: u32, attempt: u32, variant: &str, became: Became, time_ns: Option<f64>) -> CandidateReport {
    CandidateReport {
        round,
        attempt,
        variant: Some(variant.into()),
        parent: None,
        became,
        because: "at quiet: index 7918".into(),
        time_ns,
        champion_after: vec![],
        source: None,
    }
}

/// An operator with holdout shapes.
fn held_back() -> kforge_types::model::Operator {
    let text = "[package]\nname = \"p\"\n[targets.cpu]\n[operator.o]\ndims = [\"n\"]\n\
        inputs.x = { dtype = \"f32\", shape = [\"n\"] }\noutputs.y = { dtype = \"f32\", shape = [\"n\"] }\n\
        reference = { builtin = \"elementwise\", y = \"2 * x\" }\ntolerance = { atol = 1e-6, rtol = 1e-6 }\n\
        shapes.small = { n = 300 }\nshapes.quiet = { n = 7919, role = \"holdout\" }\nshapes.silent = { n = 5000, role = \"holdout\" }\n";
    let file = std::sync::Arc::new(SourceFile { name: "kernel.toml".into(), text: text.into() });
    kforge_types::model::parse(&file).0.unwrap().operators.remove(0)
}

/// A rollout whose start takes 4 ns.
fn rollout(answers: Vec<Answer>, candidates: Vec<CandidateReport>) -> Rollout {
    let methods = vec![FateReport {
        method: "memory.vectorized_access".into(),
        tried: vec![1],
        fate: Some(Fate::Inconclusive),
        because: "the kernel without it is wrong".into(),
        detail: Some("at quiet: index 7918".into()),
    }];
    let start = RoundReport { time_ns: Some(4.0), ..RoundReport::default() };
    Rollout {
        seat: ["p".into(), "k".into(), String::new(), "cpu".into()],
        language: Language::Cuda,
        pattern: None,
        level: Some(1),
        contract: "c".into(),
        problem: Digest::of(b"problem"),
        chain: Digest::of(b"chain"),
        held_back: ["quiet", "silent"].map(String::from).into(),
        hidden: HeldBack::of([&held_back()]),
        rounds: Some(RoundsReport { shape: None, rounds: vec![start], candidates, methods, spent: vec![], over: None }),
        judged: vec![],
        ratio: Some(1.0),
        answers,
        refused: BTreeMap::new(),
    }
}

/// A rollout of one correct turn for each source.
fn of_sources(problem: &str, level: Option<u8>, sources: &[&str]) -> Rollout {
    let rounds = || (1u32..).zip(sources);
    let answers = rounds().map(|(round, source)| answer(round, 0, Some(source))).collect();
    let candidates = rounds().map(|(round, _)| candidate(round, 0, "V=1", Became::Correct, Some(2.0))).collect();
    Rollout { problem: Digest::of(problem.as_bytes()), level, ..rollout(answers, candidates) }
}

/// The problem, round and attempt of each.
fn shown(all: &[Trajectory]) -> Vec<(String, u32, u32)> {
    let of = |t: &Trajectory| (t.groups.problem.clone(), t.answer.question.round, t.answer.question.attempt);
    all.iter().map(of).collect()
}

#[test]
fn a_shape_that_is_held_back_is_neither_named_nor_explained() {
    let found = |shape: &str, verdict| FoundVerdict {
        variant: "V=1".into(),
        shape: shape.into(),
        verdict,
        explanation: format!("{shape} is wrong at index 7918"),
    };
    let mut asked = answer(1, 0, Some("s"));
    let exchange = |why: &str| Exchange {
        role: Role::Coder,
        agent: "a".into(),
        prompt: Prompt::default(),
        reply: "r".into(),
        refused: Some(why.into()),
        tokens: None,
        money: None,
        took_ms: 1,
    };
    asked.exchanges = vec![exchange("at `quiet`: 5 / 2 leaves a remainder"), exchange("no JSON")];
    let mut broken = answer(2, 0, None);
    broken.refused = Some("7919 / 256 leaves a remainder".into());
    let of = Rollout {
        judged: vec![
            found("quiet", Verdict::Fail("7918".into())),
            found("silent", Verdict::Pass),
            found("small", Verdict::Pass),
        ],
        refused: [(1, "silent: 5000 / 256 leaves a remainder".to_string())].into(),
        ..rollout(
            vec![asked, broken],
            vec![
                candidate(1, 0, "V=1", Became::Wrong, Some(2.0)),
                CandidateReport {
                    because: "error: `n` is not 7919u".into(),
                    ..candidate(1, 0, "V=2", Became::Refused, None)
                },
            ],
        )
    };
    let all = trajectories(&[of], 0.4);
    let text = serde_json::to_string(&all).unwrap();
    for told in ["quiet", "silent", "7919", "5000"] {
        assert!(!text.contains(told), "{told}: {text}");
    }
    assert_eq!(text.matches("7918").count(), 1, "{text}");
    assert_eq!(text.matches(HIDDEN).count(), 4, "{text}");
    assert_eq!(all[0].answer.exchanges[1].refused.as_deref(), Some("no JSON"));
    let shapes: Vec<(&str, &str)> =
        all[0].candidates[0].verdicts.iter().map(|v| (v.shape.as_str(), v.verdict.as_str())).collect();
    assert_eq!(shapes, [("small", "pass"), ("holdout", "fail")], "one verdict at all holdout shapes");
    assert_eq!(all[0].candidates[0].score.value(), Some(0.0), "it is wrong");
    assert_eq!(all[0].fates.len(), 1);
}

#[test]
fn a_name_is_a_word_and_hides_no_other_text() {
    let operator = held_back();
    let mut short = operator.clone();
    short.shapes.iter_mut().find(|shape| shape.name == "quiet").unwrap().name = "n".into();
    let because = "error: expected a semicolon in an unnamed function".to_string();
    let candidate = CandidateReport { because: because.clone(), ..candidate(1, 0, "V=1", Became::Refused, None) };
    let of = Rollout {
        held_back: ["n".to_string()].into(),
        hidden: HeldBack::of([&short]),
        ..rollout(vec![answer(1, 0, Some("s"))], vec![candidate])
    };
    assert_eq!(trajectories(&[of], 0.4)[0].candidates[0].refused, Some(because));
}

#[test]
fn a_turn_is_worth_its_best_candidate_and_a_share_of_later_turns() {
    let answers = vec![answer(1, 0, None), answer(1, 1, Some("a")), answer(2, 0, Some("b")), answer(3, 0, Some("c"))];
    let candidates = vec![
        candidate(1, 1, "V=1", Became::Correct, Some(4.0)),
        candidate(1, 1, "V=2", Became::Wrong, Some(1.0)),
        candidate(2, 0, "V=4", Became::Correct, Some(2.0)),
    ];
    let all = trajectories(&[rollout(answers, candidates)], 0.5);
    let logistic = |of: fn(&Turn) -> &Rewards| -> Vec<(f64, Option<f64>)> {
        all.iter().map(|t| of(&t.turn).logistic).map(|score| (score.at_least, score.at_most)).collect()
    };
    let rounded = |x: f64| (x * 1e6).round() / 1e6;
    // The first answer was refused, and the last one is not built.
    let rewards: Vec<_> = logistic(|t| &t.rewards).iter().map(|(a, b)| (rounded(*a), rounded(b.unwrap()))).collect();
    assert_eq!(rewards, [(0.0, 0.0), (0.5, 0.5), (0.666667, 0.666667), (0.0, 1.0)]);
    let returns: Vec<f64> = logistic(|t| &t.returns).iter().map(|(a, _)| rounded(*a)).collect();
    assert_eq!(returns, [0.416667, 0.833333, 0.666667, 0.0]);
    assert_eq!(all.iter().map(|t| t.turn.index).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(all.iter().all(|t| t.turn.discount == 0.5));
    // The refused answer, the wrong candidate, and speedups of 1 and 2.
    let among = all[0].turn.constants.among;
    assert_eq!((among.known, among.mean), (4, 0.75));
    assert_eq!(all[1].candidates[0].rewards.weighted.value(), Some(0.75), "as fast as the start, its own code");
}

#[test]
fn groups_are_of_a_problem_a_rollout_and_a_round() {
    let one = rollout(vec![answer(1, 0, Some("a")), answer(1, 1, Some("b")), answer(2, 0, Some("c"))], vec![]);
    let other = Rollout { chain: Digest::of(b"other"), ..one.clone() };
    let all = trajectories(&[one, other], 0.4);
    let groups = |of: fn(&Groups) -> &String| -> BTreeSet<&String> { all.iter().map(|t| of(&t.groups)).collect() };
    let counts = [groups(|g| &g.problem).len(), groups(|g| &g.rollout).len(), groups(|g| &g.round).len()];
    assert_eq!(counts, [1, 2, 4]);
    assert!(all[0].groups.round == all[1].groups.round && all[0].groups.round != all[3].groups.round);
}

#[test]
fn only_correct_candidates_and_times_within_a_band_pass() {
    let answers = vec![answer(1, 0, Some("a")), answer(2, 0, Some("b")), answer(3, 0, Some("c"))];
    let candidates = vec![
        candidate(1, 0, "V=1", Became::Wrong, Some(3.0)),
        candidate(2, 0, "V=2", Became::Wrong, Some(3.0)),
        candidate(2, 0, "V=4", Became::Correct, Some(2.0)),
        candidate(3, 0, "V=8", Became::Undecided, None),
    ];
    let all = trajectories(&[rollout(answers, candidates)], 0.4);
    let variants = |filter: Filter| -> Vec<String> {
        let passed = filter.applied(all.clone());
        passed.iter().flat_map(|t| t.candidates.iter().map(|c| c.variant.clone())).collect()
    };
    assert_eq!(variants(Filter::default()), ["V=1", "V=2", "V=4", "V=8"]);
    assert_eq!(variants(Filter { correct: true, ..Filter::default() }), ["V=4"]);
    let within = |from_ns, to_ns| Filter { runtime: Some(Band { from_ns, to_ns }), ..Filter::default() };
    assert_eq!(variants(within(2.0, 2.5)), ["V=4"]);
    assert_eq!(variants(within(2.5, f64::INFINITY)), ["V=1", "V=2"]);
    let passed = Filter { correct: true, ..Filter::default() }.applied(all.clone());
    assert_eq!(passed[0].turn, all[1].turn, "a filter changes no figure");
}

#[test]
fn a_source_of_a_problem_passes_once_whatever_its_comments() {
    let sources = ["int a;", "int  a; // the same", "int b;"];
    let of = [of_sources("one", None, &sources), of_sources("two", None, &sources[1..2])];
    let passed = Filter { dedup: true, ..Filter::default() }.applied(trajectories(&of, 0.4));
    let rounds: Vec<u32> = passed.iter().map(|t| t.answer.question.round).collect();
    assert_eq!(rounds, [1, 3, 1], "the other problem has that source as well");
    let without = rollout(vec![answer(1, 0, None), answer(1, 1, None)], vec![]);
    assert_eq!(Filter { dedup: true, ..Filter::default() }.applied(trajectories(&[without], 0.4)).len(), 2);
}

#[test]
fn levels_are_balanced_by_problems_in_turn() {
    let of = [
        of_sources("easy", Some(1), &["a", "b", "c"]),
        of_sources("easier", Some(1), &["d"]),
        of_sources("hard", Some(4), &["e", "f"]),
        of_sources("odd", None, &["g", "h"]),
    ];
    let all = trajectories(&of, 0.4);
    let counts = |balance| {
        let passed = Filter { balance: Some(balance), ..Filter::default() }.applied(all.clone());
        let mut counts: BTreeMap<Option<u8>, usize> = BTreeMap::new();
        passed.iter().for_each(|t| *counts.entry(t.level).or_default() += 1);
        (counts.into_values().collect::<Vec<_>>(), shown(&passed))
    };
    let (fewest, passed) = counts(Balance::Fewest);
    assert_eq!(fewest, [2, 2, 2]);
    let problems: BTreeSet<&String> = passed.iter().map(|(problem, ..)| problem).collect();
    assert_eq!(problems.len(), 4, "each problem of the level has one: {passed:?}");
    assert_eq!(counts(Balance::AtMost(1)).0, [1, 1, 1]);
    assert_eq!(counts(Balance::AtMost(9)).0, [2, 4, 2]);
}

#[test]
fn a_conversation_is_the_coders_prompt_and_the_reply_that_was_used() {
    let exchange = |role, reply: &str, refused: Option<&str>| Exchange {
        role,
        agent: "a".into(),
        prompt: Prompt { system: "you write kernels".into(), user: format!("prompt of {reply}") },
        reply: reply.into(),
        refused: refused.map(String::from),
        tokens: None,
        money: None,
        took_ms: 1,
    };
    let mut asked = answer(1, 0, Some("a"));
    asked.exchanges = vec![
        exchange(Role::Advisor, "advice", None),
        exchange(Role::Coder, "prose", Some("no JSON")),
        exchange(Role::Coder, "{}", None),
    ];
    let mut failed = answer(1, 1, None);
    failed.exchanges = vec![exchange(Role::Coder, "prose", Some("no JSON"))];
    let all = trajectories(&[rollout(vec![asked, failed, answer(2, 0, Some("rules"))], vec![])], 0.4);
    let found: Vec<_> = all.iter().map(conversation).collect();
    let json = serde_json::to_value(&found[0]).unwrap();
    assert_eq!(
        json,
        serde_json::json!({ "messages": [
            { "role": "system", "content": "you write kernels" },
            { "role": "user", "content": "prompt of {}" },
            { "role": "assistant", "content": "{}" },
        ] })
    );
    assert_eq!((found[1].is_none(), found[2].is_none()), (true, true));
}
