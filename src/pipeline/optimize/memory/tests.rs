//! Which earlier candidates come first, and what is recorded about them.

use super::*;
use kforge_types::model::{Language, Pattern};

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

/// A correct candidate of kernel `kernel`, with an operator and a chain of rounds of its own.
fn candidate(kernel: &str, pattern: Pattern, level: u8, arch: &str, speedup: f64) -> Candidate {
    Candidate {
        language: Language::Cuda,
        package: "p".into(),
        kernel: kernel.into(),
        operator: format!("op-{kernel}"),
        types: String::new(),
        target: arch.into(),
        arch: arch.into(),
        contract: digest(&format!("contract {kernel}")),
        pattern: Some(pattern),
        level: Some(level),
        chain: Some(digest(&format!("chain {kernel} {arch}"))),
        round: 1,
        attempt: 0,
        variant: Some(format!("r1,S={speedup}")),
        methods: vec![],
        became: Became::Correct,
        time_ns: None,
        speedup: Some(speedup),
        champion: false,
        source: Some(digest(&format!("{kernel} {arch} {speedup}"))),
    }
}

fn wanted() -> ExemplarQuery<'static> {
    ExemplarQuery {
        package: "p",
        kernel: "softmax",
        types: "",
        target: "gpu",
        arch: "sm_90a",
        language: Language::Cuda,
        operator: "op-softmax",
        contract: digest("contract softmax"),
        kind: Kind { pattern: Some(Pattern::Reduction), level: Some(4) },
        chain: digest("chain that goes on"),
        scope: Scope::Workspace,
    }
}

fn kernels<'c>(found: &[(Likeness, &'c Candidate)]) -> Vec<(&'c str, f64)> {
    found.iter().map(|(_, c)| (c.kernel.as_str(), c.speedup.unwrap_or(0.0))).collect()
}

#[test]
fn the_same_contract_comes_first_then_operator_pattern_level_target_and_speed() {
    use Pattern::{Elementwise, Reduction};
    let other_types = Candidate {
        operator: "op-softmax".into(),
        contract: digest("softmax of halves"),
        ..candidate("half", Elementwise, 1, "sm_90a", 0.5)
    };
    let untimed = Candidate { speedup: None, ..candidate("untimed", Reduction, 4, "sm_90a", 1.0) };
    let in_order = [
        candidate("softmax", Reduction, 4, "sm_90a", 2.0),
        candidate("softmax", Reduction, 4, "sm_80", 9.0),
        other_types,
        candidate("norm", Reduction, 4, "sm_90a", 1.5),
        candidate("norm", Reduction, 4, "sm_90a", 1.2),
        untimed,
        candidate("norm", Reduction, 4, "sm_80", 8.0),
        candidate("sum", Reduction, 2, "sm_90a", 5.0),
    ];
    let mut all = in_order.to_vec();
    all.push(candidate("add", Elementwise, 1, "sm_90a", 30.0));
    let wrong = Candidate { became: Became::Wrong, ..candidate("softmax", Reduction, 4, "sm_90a", 99.0) };
    let refused = Candidate { became: Became::Refused, ..candidate("softmax", Reduction, 4, "sm_90a", 99.0) };
    let undecided = Candidate { became: Became::Undecided, ..candidate("softmax", Reduction, 4, "sm_90a", 99.0) };
    let lost = Candidate { source: None, ..candidate("softmax", Reduction, 4, "sm_90a", 99.0) };
    all.extend([wrong, refused, undecided, lost]);
    let expected: Vec<(&str, f64)> = in_order.iter().map(|c| (c.kernel.as_str(), c.speedup.unwrap_or(0.0))).collect();
    assert_eq!(kernels(&wanted().ranked(&all)), expected);
    all.reverse();
    assert_eq!(kernels(&wanted().ranked(&all)), expected, "whatever order they are remembered in");
}

#[test]
fn an_operator_of_which_no_pattern_is_known_is_like_nothing_but_itself() {
    let unknown = Candidate { pattern: None, level: None, ..candidate("a", Pattern::Reduction, 4, "sm_90a", 9.0) };
    assert_eq!(wanted().likeness(&unknown), None);
    let wanted = ExemplarQuery { kind: Kind::default(), ..wanted() };
    assert_eq!(wanted.likeness(&unknown), None, "two unknowns are not the same");
    let own = candidate("softmax", Pattern::Reduction, 4, "sm_80", 1.0);
    assert_eq!(wanted.likeness(&own), Some(Likeness::Contract));
    let other = Candidate { language: Language::Triton, ..own };
    assert_eq!(wanted.likeness(&other), None, "a kernel in another language");
    assert_eq!(ExemplarQuery { language: Language::Triton, ..wanted }.likeness(&other), Some(Likeness::Contract));
}

#[test]
fn what_goes_on_now_and_what_is_out_of_scope_is_not_drawn_from_memory() {
    let own = Candidate { target: "gpu".into(), ..candidate("softmax", Pattern::Reduction, 4, "sm_90a", 2.0) };
    let going_on = Candidate { chain: Some(wanted().chain), ..own.clone() };
    let start = Candidate { chain: None, round: 0, ..own.clone() };
    let elsewhere = Candidate { package: "q".into(), ..candidate("norm", Pattern::Reduction, 4, "sm_90a", 2.0) };
    let beside = candidate("sum", Pattern::Reduction, 2, "sm_90a", 2.0);
    let all = [own, going_on, start, elsewhere, beside];
    let of =
        |scope| ExemplarQuery { scope, ..wanted() }.ranked(&all).iter().map(|r| r.1.kernel.clone()).collect::<Vec<_>>();
    assert_eq!(of(Scope::Workspace), ["softmax", "norm", "sum"]);
    assert_eq!(of(Scope::Package), ["softmax", "sum"]);
    assert_eq!(of(Scope::Kernel), ["softmax"]);
}

#[test]
fn no_source_and_no_kernel_is_drawn_twice_and_what_does_not_fit_makes_place() {
    let reduction = |kernel: &str, speedup| candidate(kernel, Pattern::Reduction, 4, "sm_90a", speedup);
    let copy = Candidate { source: reduction("a", 9.0).source, ..reduction("b", 8.0) };
    let all = [reduction("a", 9.0), reduction("a", 8.5), copy, reduction("c", 7.0), reduction("d", 6.0)];
    let drawn = |most, room, shown: &[Digest], gone: &str| {
        let mut text =
            |c: &Candidate| (c.kernel != gone).then(|| c.kernel.repeat(if c.kernel == "c" { 50 } else { 10 }));
        let shown = shown.iter().copied().collect();
        let found = wanted().draw(&all, (most, room), &shown, &mut text);
        found.iter().map(|(_, c, _)| (c.kernel.clone(), c.speedup.unwrap())).collect::<Vec<_>>()
    };
    let of = |found: &[(&str, f64)]| found.iter().map(|(k, s)| (k.to_string(), *s)).collect::<Vec<_>>();
    assert_eq!(drawn(9, 1000, &[], ""), of(&[("a", 9.0), ("c", 7.0), ("d", 6.0)]));
    assert_eq!(drawn(2, 1000, &[], ""), of(&[("a", 9.0), ("c", 7.0)]));
    assert_eq!(drawn(2, 59, &[], ""), of(&[("a", 9.0), ("d", 6.0)]));
    assert_eq!(drawn(2, 9, &[], ""), of(&[]));
    let first = reduction("a", 9.0).source.unwrap();
    assert_eq!(drawn(1, 1000, &[first], ""), of(&[("a", 8.5)]), "what is shown anyway is not shown twice");
    assert_eq!(drawn(2, 1000, &[], "a"), of(&[("b", 8.0), ("c", 7.0)]), "what is gone takes nobody's place");
}

#[test]
fn what_was_found_takes_the_place_of_what_was_known_unless_it_says_less() {
    let tried = |became, speedup: Option<f64>| Candidate {
        became,
        speedup,
        time_ns: speedup.map(|s| 100.0 / s),
        ..candidate("k", Pattern::Reduction, 4, "sm_90a", 1.0)
    };
    let after = |old: &Candidate, new: Candidate| {
        let all = merged(vec![old.clone()], vec![new]);
        assert_eq!(all.len(), 1);
        (all[0].became, all[0].speedup)
    };
    let right = tried(Became::Correct, Some(2.0));
    assert_eq!(after(&right, tried(Became::Correct, Some(3.0))), (Became::Correct, Some(3.0)));
    assert_eq!(after(&right, tried(Became::Wrong, None)), (Became::Wrong, None), "a stricter tolerance");
    assert_eq!(after(&right, tried(Became::Undecided, None)), (Became::Correct, Some(2.0)), "no device at hand");
    assert_eq!(after(&right, tried(Became::Correct, None)), (Became::Correct, Some(2.0)), "no times at hand");
    let open = tried(Became::Undecided, None);
    assert_eq!(after(&open, tried(Became::Correct, Some(1.0))), (Became::Correct, Some(1.0)));
}

#[test]
fn declared_candidates_are_those_of_now_and_rounds_of_edited_kernels_stay() {
    let declared = |variant: &str| Candidate {
        chain: None,
        round: 0,
        variant: Some(variant.into()),
        ..candidate("k", Pattern::Reduction, 4, "sm_90a", 1.0)
    };
    let old = candidate("k", Pattern::Reduction, 4, "sm_90a", 2.0);
    let new = Candidate { chain: Some(digest("another")), ..old.clone() };
    let other = candidate("a", Pattern::Reduction, 4, "sm_90a", 1.0);
    let all = merged(vec![old.clone(), declared("B=1"), other.clone()], vec![new.clone(), declared("B=2")]);
    assert_eq!(all.len(), 4);
    assert_eq!((&all[0], &all[1]), (&other, &declared("B=2")), "in order");
    assert!(all.contains(&old) && all.contains(&new));
    let ids: BTreeSet<String> = all.iter().map(Candidate::id).collect();
    assert_eq!(ids.len(), 4);
}
