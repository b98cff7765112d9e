//! Selections of champions by verdicts, times and pairs.

use super::*;
use kforge_types::record::timing::Series;

fn params(candidates: u32, timed: bool) -> SelectParams {
    SelectParams {
        candidates: (0..candidates)
            .map(|o| Contender { order: o, identity: format!("v{o}"), serves: vec![0] })
            .collect(),
        shapes: vec!["all".into()],
        bench: vec![0],
        most_classes: 1,
        pinned: BTreeMap::new(),
        margin: 0.01,
        hot: false,
        timed,
        answers: false,
        shortlist: None,
        finals: None,
        challenge: false,
    }
}

fn known(verdicts: &[Verdict], times: &[f64]) -> SelectInputs {
    let bench = |t: &f64| BenchObserved {
        cold: Some(Series { samples_ns: vec![*t; 5], dropped: 0 }),
        hot: None,
        verified: true,
        peaks: None,
        few: false,
        took_s: None,
        stress: None,
    };
    SelectInputs {
        unbuilt: BTreeSet::new(),
        judgements: (0u32..).zip(verdicts).map(|(v, j)| ((v, 0), Judgement::bare(j.clone()))).collect(),
        emulated: BTreeMap::new(),
        benches: (0u32..).zip(times).map(|(v, t)| ((v, 0), bench(t))).collect(),
        few: BTreeMap::new(),
        pairs: BTreeMap::new(),
    }
}

fn unordered(blocks: Vec<Vec<f64>>) -> PairsObserved {
    PairsObserved { blocks, first: vec![] }
}

fn unknown() -> Verdict {
    Verdict::Unknown(Unknown::NoDevice("x".into()))
}

#[test]
fn without_times_the_first_right_variant_is_provisional() {
    let s = select(&params(3, false), &known(&[Verdict::Fail("x".into()), Verdict::Pass, Verdict::Pass], &[]));
    assert_eq!((s.champions[0].variant, s.champions[0].provisional), (Some(1), true));
    assert_eq!((s.frontier, s.wrong), (vec![2], vec![0]));
}

#[test]
fn what_could_not_be_built_stands_for_nothing() {
    let mut k = known(&[unknown(), unknown()], &[]);
    k.unbuilt.insert(0);
    assert_eq!(select(&params(2, false), &k).champions[0].variant, Some(1));
    k.unbuilt.insert(1);
    assert_eq!(select(&params(2, false), &k).champions[0].variant, None);
}

#[test]
fn unknown_never_beats_right_and_wrong_is_never_chosen() {
    let s = select(&params(2, false), &known(&[unknown(), Verdict::Pass], &[]));
    assert_eq!(s.champions[0].variant, Some(1));
    let s = select(&params(2, false), &known(&[Verdict::Fail("x".into()), unknown()], &[]));
    assert_eq!(s.champions[0].variant, Some(1));
    assert!(s.champions[0].because.contains("not known to be wrong"));
    let s = select(&params(1, false), &known(&[Verdict::Fail("x".into())], &[]));
    assert_eq!(s.champions[0].variant, None);
}

#[test]
fn a_variant_of_an_indecisive_operator_stands_for_nothing() {
    let indecisive = || Verdict::Unknown(Unknown::Indecisive("`y` accepts zeros".into()));
    let s = select(&params(2, false), &known(&[indecisive(), Verdict::Fail("x".into())], &[]));
    assert_eq!((s.champions[0].variant, &s.frontier[..], &s.wrong[..]), (None, &[][..], &[1][..]));
    assert!(s.champions[0].because.contains("indecisive"), "{}", s.champions[0].because);
    // Neither do its times count, nor what the emulator says instead of a device.
    let s = select(&params(1, true), &known(&[indecisive()], &[100.0]));
    assert_eq!(s.champions[0].variant, None);
    let mut k = known(&[unknown()], &[]);
    k.emulated.insert((0, 0), Judgement::bare(indecisive()));
    assert_eq!(select(&params(1, true), &k).champions[0].variant, None);
}

#[test]
fn a_shape_that_tells_nothing_says_nothing_beside_one_that_does() {
    let indecisive = || Judgement::bare(Verdict::Unknown(Unknown::Indecisive("one value".into())));
    let mut p = params(2, false);
    p.shapes = vec!["default".into(), "default".into()];
    p.candidates.iter_mut().for_each(|c| c.serves = vec![0, 1]);
    let of = |first: &[Verdict]| {
        let mut k = known(first, &[]);
        k.judgements.insert((0, 1), indecisive());
        k.judgements.insert((1, 1), indecisive());
        select(&p, &k)
    };
    let s = of(&[Verdict::Fail("x".into()), Verdict::Pass]);
    assert_eq!((s.champions[0].variant, &s.wrong[..]), (Some(1), &[0][..]), "{}", s.champions[0].because);
    assert!(s.champions[0].because.contains("correct"), "{}", s.champions[0].because);
    assert_eq!(of(&[unknown(), Verdict::Fail("x".into())]).champions[0].variant, None);
}

#[test]
fn the_emulator_counts_only_where_the_device_says_nothing() {
    let mut k = known(&[unknown(), unknown()], &[]);
    k.emulated.insert((0, 0), Judgement::bare(Verdict::Fail("x".into())));
    k.emulated.insert((1, 0), Judgement::bare(Verdict::Pass));
    let s = select(&params(2, true), &k);
    assert_eq!((s.champions[0].variant, s.champions[0].provisional, &s.wrong[..]), (Some(1), true, &[][..]));
    assert!(s.champions[0].because.contains("correct on `cpu`"), "{}", s.champions[0].because);
    k.judgements.insert((0, 0), Judgement::bare(Verdict::Pass));
    let s = select(&params(2, true), &k);
    assert_eq!(s.champions[0].variant, Some(0));
    assert!(!s.champions[0].because.contains("cpu"), "{}", s.champions[0].because);
}

#[test]
fn where_every_variant_is_wrong_the_reason_says_whether_only_the_emulator_says_so() {
    let wrong = || Verdict::Fail("x".into());
    let of = |verdicts: &[Verdict], emulated: &[u32]| {
        let mut k = known(verdicts, &[]);
        emulated.iter().for_each(|v| drop(k.emulated.insert((*v, 0), Judgement::bare(wrong()))));
        let found = select(&params(2, true), &k);
        assert_eq!(found.champions[0].variant, None);
        (found.champions[0].because.clone(), found.wrong, found.wrong_on_cpu)
    };
    let begin = "every variant that serves it is wrong";
    assert_eq!(of(&[wrong(), wrong()], &[0]), (begin.to_string(), vec![0, 1], vec![]));
    let on_cpu = format!("{begin} on `cpu`, at shapes that no device has judged");
    assert_eq!(of(&[unknown(), unknown()], &[0, 1]), (on_cpu, vec![], vec![0, 1]));
    let some = format!("{begin}, 1 of 2 only on `cpu`, at shapes that no device has judged");
    assert_eq!(of(&[wrong(), unknown()], &[1]), (some, vec![0], vec![1]));
}

#[test]
fn the_fastest_wins_by_more_than_the_margin_only() {
    let all = [Verdict::Pass, Verdict::Pass, Verdict::Pass];
    assert_eq!(select(&params(3, true), &known(&all, &[120.0, 100.0, 100.5])).champions[0].variant, Some(1));
    assert_eq!(select(&params(3, true), &known(&all, &[100.9, 100.0, 100.5])).champions[0].variant, Some(0));
}

#[test]
fn a_time_whose_outputs_were_not_right_is_none() {
    let mut k = known(&[Verdict::Pass, Verdict::Pass], &[10.0, 100.0]);
    k.benches.get_mut(&(0, 0)).unwrap().verified = false;
    assert_eq!(select(&params(2, true), &k).champions[0].variant, Some(1));
}

#[test]
fn those_near_the_best_after_few_samples_are_timed_in_full_and_who_fails_there_hides_nobody() {
    let all = [Verdict::Pass, Verdict::Pass, Verdict::Pass, Verdict::Pass, Verdict::Fail("x".into())];
    let few = known(&all, &[10.0, 100.0, 108.0, 130.0, 1.0]);
    let mut k = SelectInputs { few: few.benches.clone(), benches: BTreeMap::new(), ..few };
    let ask =
        |k: &SelectInputs| finalists(&params(5, true), &Finals { within: 0.1, correct: false }, k).classes.remove(0);
    assert_eq!((ask(&k).best, ask(&k).near), (Some(0), vec![0]), "the wrong one counts for nothing");
    let full = |verified| BenchObserved { verified, ..k.few[&(0, 0)].clone() };
    let (held, failed) = (full(true), full(false));
    k.benches.insert((0, 0), held);
    assert_eq!((ask(&k).best, ask(&k).near), (Some(0), vec![]), "nobody else is near");
    k.benches.insert((0, 0), failed);
    assert_eq!((ask(&k).best, ask(&k).near), (Some(1), vec![1, 2]));
    // One fast sample among slow ones is enough for a full timing.
    k.few.get_mut(&(3, 0)).unwrap().cold.as_mut().unwrap().samples_ns[2] = 109.0;
    assert_eq!(ask(&k).near, vec![1, 2, 3]);
    assert_eq!(finalists(&params(5, false), &Finals { within: 0.1, correct: false }, &k).classes[0].best, None);
}

#[test]
fn every_correct_contender_is_named_where_calls_are_timed_only_then() {
    let k = known(&[Verdict::Pass, Verdict::Fail("x".into()), unknown(), Verdict::Pass], &[]);
    let named = finalists(&params(4, true), &Finals { within: 0.1, correct: true }, &k).classes.remove(0);
    assert_eq!((named.best, named.near, named.shapes), (None, vec![0, 3], vec![0]));
}

#[test]
fn who_was_fast_on_few_samples_alone_hides_nobody() {
    let all = [Verdict::Pass, Verdict::Pass, Verdict::Pass];
    let few = known(&all, &[10.0, 50.0, 60.0]);
    let mut k = SelectInputs { few: few.benches.clone(), benches: BTreeMap::new(), ..few };
    let ask =
        |k: &SelectInputs| finalists(&params(3, true), &Finals { within: 0.1, correct: false }, k).classes.remove(0);
    k.benches.insert((0, 0), known(&all, &[10.9]).benches.remove(&(0, 0)).unwrap());
    assert_eq!((ask(&k).best, ask(&k).near), (Some(0), vec![]), "as fast as it said");
    k.benches.insert((0, 0), known(&all, &[100.0]).benches.remove(&(0, 0)).unwrap());
    assert_eq!((ask(&k).best, ask(&k).near), (Some(1), vec![1]));
}

#[test]
fn pairs_overrule_medians() {
    let mut k = known(&[Verdict::Pass, Verdict::Pass], &[105.0, 100.0]);
    let champion = |k: &SelectInputs| select(&params(2, true), k).champions.remove(0);
    k.pairs.insert((0, 1, 0), unordered(vec![vec![0.0, 0.001]; 8]));
    let first = champion(&k);
    assert_eq!((first.variant, first.ties), (Some(0), vec![1]));
    k.pairs.insert((0, 1, 0), unordered(vec![vec![0.03, 0.031]; 8]));
    let fastest = champion(&k);
    assert_eq!((fastest.variant, fastest.ties), (Some(1), vec![]));
}

#[test]
fn a_contender_that_pairs_show_faster_than_one_in_the_running_takes_its_place() {
    // V0 ties with the best, V1; V2 is slower than the best by medians, and was paired only with V0.
    let all = [Verdict::Pass, Verdict::Pass, Verdict::Pass];
    let mut k = known(&all, &[100.5, 100.0, 103.0]);
    k.pairs.insert((0, 1, 0), unordered(vec![vec![0.0, 0.001]; 8]));
    assert_eq!(select(&params(3, true), &k).champions[0].variant, Some(0));
    k.pairs.insert((0, 2, 0), unordered(vec![vec![0.03, 0.031]; 8]));
    assert_eq!(select(&params(3, true), &k).champions[0].variant, Some(1), "V1 is declared before V2");
    k.pairs.insert((1, 2, 0), unordered(vec![vec![0.02, 0.021]; 8]));
    assert_eq!(select(&params(3, true), &k).champions[0].variant, Some(2));
    // A pin holds among those that nobody beats.
    let mut p = params(3, true);
    p.pinned.insert("all".into(), "v0".into());
    assert_eq!(select(&p, &k).champions[0].variant, Some(2));
    // Pairs that contradict each other decide nothing.
    k.pairs.insert((2, 0, 0), unordered(vec![vec![0.03, 0.031]; 8]));
    k.pairs.remove(&(0, 2, 0));
    k.pairs.insert((0, 1, 0), unordered(vec![vec![0.03, 0.031]; 8]));
    assert!(select(&params(3, true), &k).champions[0].variant.is_some());
}

#[test]
fn a_contender_that_beats_whoever_beats_one_in_the_running_takes_its_place() {
    // V0 is the best by medians. V1 was paired with it, V2 only with V1, V3 only with V2, as after one attribution after another.
    let ratio = |centre: f64| unordered(vec![vec![centre, centre + 0.001]; 8]);
    let mut k = known(&vec![Verdict::Pass; 5], &[100.0, 103.0, 106.0, 109.0, 112.0]);
    let champion = |k: &SelectInputs| select(&params(5, true), k).champions[0].clone();
    k.pairs.insert((1, 0, 0), ratio(-0.03));
    for (faster, slower) in [(2, 1), (3, 2)] {
        k.pairs.insert((faster, slower, 0), ratio(-0.03));
        assert_eq!(champion(&k).variant, Some(faster));
        assert_eq!(champion(&k).because, "faster than every other by more than the margin");
    }
    // A contender that is slower than the last of them stays out.
    k.pairs.insert((4, 3, 0), ratio(0.03));
    assert_eq!(champion(&k).variant, Some(3));
    // Where each is slower than another, the pairs with the best decide.
    k.pairs.insert((0, 3, 0), ratio(-0.03));
    assert_eq!(champion(&k).variant, Some(1));
}

#[test]
fn a_champion_is_faster_only_than_those_that_were_timed_in_full() {
    let because = |k: &SelectInputs| select(&params(4, true), k).champions[0].because.clone();
    let mut k = known(&vec![Verdict::Pass; 4], &[100.0, 150.0, 160.0, 170.0]);
    assert_eq!(because(&k), "faster than every other by more than the margin");
    let told = |n| format!("faster by more than the margin than every other that was timed in full; {n} not");
    k.benches.remove(&(3, 0));
    assert_eq!(because(&k), told("1 was"));
    // Few samples are no full timing, and what is not verified may be correct.
    let few = k.benches.remove(&(2, 0)).unwrap();
    k.few.insert((2, 0), few);
    k.judgements.insert((3, 0), Judgement::bare(unknown()));
    assert_eq!(because(&k), told("2 were"));
    // What is wrong, or was not built, could not have been champion.
    k.judgements.insert((3, 0), Judgement::bare(Verdict::Fail("x".into())));
    k.unbuilt.insert(2);
    assert_eq!(because(&k), "faster than every other by more than the margin");
}

#[test]
fn pairs_at_one_bench_shape_of_two_and_pairs_without_samples_leave_it_to_the_medians() {
    let mut p = params(2, true);
    p.shapes = vec!["all".into(); 2];
    p.bench = vec![0, 1];
    p.candidates.iter_mut().for_each(|c| c.serves = vec![0, 1]);
    let mut k = known(&[Verdict::Pass, Verdict::Pass], &[105.0, 100.0]);
    for v in 0..2 {
        k.judgements.insert((v, 1), Judgement::bare(Verdict::Pass));
        k.benches.insert((v, 1), k.benches[&(v, 0)].clone());
    }
    k.pairs.insert((0, 1, 0), unordered(vec![vec![0.0, 0.001]; 8]));
    assert_eq!(select(&p, &k).champions[0].variant, Some(1));
    k.pairs.insert((0, 1, 1), unordered(vec![]));
    assert_eq!(select(&p, &k).champions[0].variant, Some(1));
    k.pairs.insert((0, 1, 1), unordered(vec![vec![0.0, 0.001]; 8]));
    assert_eq!(select(&p, &k).champions[0].variant, Some(0));
}

#[test]
fn whoever_pairs_show_faster_than_the_best_by_medians_is_the_one_to_beat() {
    let ratio = |centre: f64| unordered(vec![vec![centre, centre + 0.001]; 8]);
    let mut k = known(&[Verdict::Pass, Verdict::Pass, Verdict::Pass], &[100.0, 101.0, 102.0]);
    k.pairs.insert((1, 0, 0), ratio(-0.03));
    assert_eq!(select(&params(3, true), &k).champions[0].variant, Some(1));
    k.pairs.insert((2, 0, 0), ratio(-0.06));
    assert_eq!(select(&params(3, true), &k).champions[0].variant, Some(2));
    k.pairs.insert((2, 0, 0), ratio(-0.035));
    assert_eq!(select(&params(3, true), &k).champions[0].variant, Some(1), "as fast, and declared before");
}

#[test]
fn who_was_paired_with_the_best_in_other_orders_than_the_fastest_is_compared_order_by_order() {
    use kforge_types::record::timing::Side;
    // Coming first costs 6 %. V0 is 4 % slower than V1 in either order.
    let ordered = |blocks: usize, a_first: f64, b_first: f64, begins: Side| {
        let first: Vec<Side> = (0..blocks).map(|i| if i % 2 == 0 { begins } else { begins.other() }).collect();
        let of = |side: &Side| vec![if *side == Side::A { a_first } else { b_first }; 2];
        PairsObserved { blocks: first.iter().map(of).collect(), first }
    };
    let mut k = known(&[Verdict::Pass, Verdict::Pass, Verdict::Pass], &[102.0, 101.0, 100.0]);
    let champion = |k: &SelectInputs| select(&params(3, true), k).champions[0].variant;
    for (blocks, begins) in [(8, Side::A), (8, Side::B), (10, Side::B)] {
        k.pairs.insert((0, 2, 0), ordered(8, -0.04, -0.10, Side::A));
        k.pairs.insert((1, 2, 0), ordered(blocks, -0.08, -0.14, begins));
        assert_eq!(champion(&k), Some(1), "{blocks} {begins:?}");
        // Also where a step took them in the other order.
        let turned = k.pairs.remove(&(0, 2, 0)).unwrap().turned();
        k.pairs.insert((2, 0, 0), turned);
        assert_eq!(champion(&k), Some(1), "{blocks} {begins:?}");
        k.pairs.remove(&(2, 0, 0));
    }
    // Pairs of the two count for more than what each says of the best.
    k.pairs.insert((0, 2, 0), ordered(8, -0.04, -0.10, Side::A));
    k.pairs.insert((0, 1, 0), ordered(8, 0.001, -0.001, Side::B));
    assert_eq!(champion(&k), Some(0));
}

#[test]
fn those_near_the_best_are_nominated_and_nobody_else() {
    let all = vec![Verdict::Pass; 4];
    let shortlist = |most| Shortlist { within: 0.05, most, splits: false };
    let named = |p: &SelectParams, most, k: &SelectInputs| {
        let Nominees { best, near, .. } = nominate(p, &shortlist(most), k).classes.remove(0);
        (best, near)
    };
    let k = known(&all, &[104.0, 106.0, 100.0, 101.0]);
    assert_eq!(named(&params(4, true), 8, &k), (Some(2), vec![0, 3]));
    assert_eq!(named(&params(4, true), 2, &k), (Some(2), vec![0]), "the first in declaration order");
    let mut p = params(4, true);
    p.pinned.insert("all".into(), "v3".into());
    assert_eq!(named(&p, 2, &k), (Some(2), vec![3]), "the pinned one");
    let mut wrong = k.clone();
    wrong.judgements.insert((2, 0), Judgement::bare(Verdict::Fail("x".into())));
    assert_eq!(named(&params(4, true), 8, &wrong), (Some(3), vec![0, 1]));
    assert_eq!(named(&params(4, true), 8, &known(&all, &[])), (None, vec![]));
}

#[test]
fn a_pin_holds_among_equals_and_not_against_a_faster_one() {
    let mut p = params(3, true);
    p.pinned.insert("all".into(), "v2".into());
    let all = [Verdict::Pass, Verdict::Pass, Verdict::Pass];
    assert_eq!(select(&p, &known(&all, &[100.0, 100.0, 100.5])).champions[0].variant, Some(2));
    assert_eq!(select(&p, &known(&all, &[100.0, 100.0, 150.0])).champions[0].variant, Some(0));
}

#[test]
fn each_class_gets_its_champion_from_those_that_serve_it() {
    let mut p = params(2, false);
    p.shapes = vec!["a".into(), "b".into()];
    p.candidates[0].serves = vec![0];
    p.candidates[1].serves = vec![0, 1];
    let mut k = known(&[Verdict::Pass, Verdict::Pass], &[]);
    k.judgements.insert((1, 1), Judgement::bare(Verdict::Pass));
    let s = select(&p, &k);
    assert_eq!(s.champions.iter().map(|c| c.variant).collect::<Vec<_>>(), [Some(0), Some(1)]);
    let said: Vec<&str> = s.champions.iter().map(|c| c.because.as_str()).collect();
    let serves = "first correct variant in declaration order that serves every shape of the class; not timed";
    assert_eq!(said, ["first correct variant in declaration order; not timed", serves]);
    // A wrong one would not have been the champion anyway.
    k.judgements.insert((0, 0), Judgement::bare(Verdict::Fail("x".into())));
    assert_eq!(select(&p, &k).champions[1].because, "first correct variant in declaration order; not timed");
}

#[test]
fn who_is_timed_and_not_known_to_be_right_everywhere_is_not_said_to_be_untimed() {
    let s = select(&params(2, true), &known(&[unknown(), unknown()], &[100.0]));
    assert!(s.champions[0].provisional && s.champions[0].because.contains("; timed, but the times count only once"));
    let s = select(&params(2, true), &known(&[unknown(), unknown()], &[]));
    assert!(s.champions[0].because.ends_with("; not timed"), "{}", s.champions[0].because);
}
