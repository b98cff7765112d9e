//! Trials that are drawn: numbers and their distributions, the stress classes, and what they catch that other distributions do not.

use std::collections::{BTreeMap, BTreeSet};

use super::{problem, read, trial, with_param, written};
use crate::reference::float::{round_to, round_values, ulp};
use crate::reference::fresh::{FRESH, classes, numbers, private, seed};
use crate::reference::generate::{DISTRIBUTIONS, inputs, tensor_values, trials};
use crate::reference::oracle::expected;
use crate::reference::values::Values;
use kforge_types::model::{DType, Init, InputsFunction, Problem, Reference, Role, Scalar, Tensor};
use kforge_types::record::params::Trial;

/// Random words that differ for each `n`.
fn random(n: u64) -> [u64; 4] {
    [1, 2, 3, 4].map(|word: u64| seed(&Problem::of(vec![], Reference::builtin("sum", &[])), Some(n << 8 | word)))
}

fn rms_norm(rows: u64, cols: u64) -> Problem {
    let tensors = vec![read("x", &[rows, cols]), read("w", &[cols]), written("y", &[rows, cols])];
    with_param(problem("rms_norm", tensors, &[]), "eps", DType::F32, Scalar::Float(1e-6))
}

fn layer_norm(rows: u64, cols: u64) -> Problem {
    let tensors = vec![read("x", &[rows, cols]), read("w", &[cols]), read("b", &[cols]), written("y", &[rows, cols])];
    problem("layer_norm", tensors, &[])
}

/// x / sqrt(sum of x^2 + eps), as a package would have it computed.
fn l2_norm(rows: u64, cols: u64) -> Problem {
    let tensors = vec![read("x", &[rows, cols]), written("y", &[rows, cols])];
    let reference = Reference::Python { file: "ref.py".into(), function: "l2_norm".into() };
    with_param(Problem::of(tensors, reference), "eps", DType::F32, Scalar::Float(1e-12))
}

fn row(values: &BTreeMap<String, Values>, name: &str, at: usize, cols: usize) -> Vec<f64> {
    values[name].take(at * cols..(at + 1) * cols).to_f64(DType::F32)
}

/// The wanted values and those of a kernel that adds the epsilon beside the root.
fn norms(problem: &Problem, trial: &Trial, rows: usize, cols: usize) -> (Vec<f64>, Vec<f64>) {
    let values = inputs(problem, trial).unwrap();
    let whole = |name: &str| row(&values, name, 0, cols);
    let (mut want, mut wrong) = (vec![], vec![]);
    for at in 0..rows {
        let x = row(&values, "x", at, cols);
        let mean = match &problem.reference {
            Reference::Builtin { name, .. } if name == "layer_norm" => x.iter().sum::<f64>() / cols as f64,
            _ => 0.0,
        };
        let square: f64 = x.iter().map(|x| (x - mean).powi(2)).sum();
        let (square, eps, w, b) = match &problem.reference {
            Reference::Builtin { name, .. } if name == "rms_norm" => {
                (square / cols as f64, f64::from(1e-6f32), whole("w"), vec![0.0; cols])
            }
            Reference::Builtin { .. } => (square / cols as f64, 1e-5, whole("w"), whole("b")),
            _ => (square, f64::from(1e-12f32), vec![1.0; cols], vec![0.0; cols]),
        };
        for (i, x) in x.iter().enumerate() {
            want.push((x - mean) / (square + eps).sqrt() * w[i] + b[i]);
            wrong.push((x - mean) / (square.sqrt() + eps) * w[i] + b[i]);
        }
    }
    if matches!(problem.reference, Reference::Builtin { .. }) {
        let reference = expected(problem, &values, false).unwrap().outputs["y"].to_f64(DType::F32);
        assert!(reference.iter().zip(&want).all(|(a, b)| (a - b).abs() <= 1e-9 * b.abs().max(1e-9)));
    }
    (want, wrong)
}

/// Whether every element is within that part of its magnitude, as much more, and two units in the last place.
fn passes(want: &[f64], got: &[f64], part: f64) -> bool {
    let rounded = |value: f64| round_to(DType::F32, value);
    let within = |(want, got): (&f64, &f64)| {
        let (want, got) = (rounded(*want), rounded(*got));
        (got - want).abs() <= part + part * want.abs() + 2.0 * ulp(DType::F32, want)
    };
    want.iter().zip(got).all(within)
}

#[test]
fn an_epsilon_beside_the_root_shows_only_near_zero() {
    let (rows, cols) = (3, 257);
    // A usual tolerance, and more than what is derived for sums of this length.
    let (stated, derived) = (1e-5, 4.0 * (cols as f64).sqrt() * f64::from(f32::EPSILON));
    for of in [rms_norm, layer_norm, l2_norm] {
        let problem = of(rows, cols);
        for tolerance in [stated, derived] {
            let right = |trial: &Trial| {
                let (want, wrong) = norms(&problem, trial, rows as usize, cols as usize);
                assert!(passes(&want, &want, tolerance));
                passes(&want, &wrong, tolerance)
            };
            // The finding: rms_norm and l2_norm pass every fixed trial under a usual tolerance.
            if !matches!(&problem.reference, Reference::Builtin { name, .. } if name == "layer_norm")
                && tolerance == stated
            {
                assert!(trials(&problem, seed(&problem, None), 4).iter().all(right));
            }
            for n in 0..100 {
                let drawn = numbers(&problem, random(n)).into_iter().map(|number| private(&problem, 4, number));
                let tiny = drawn.into_iter().find(|trial| trial.distribution == "tiny").unwrap();
                assert!(!right(&tiny), "{:?} {n}", problem.reference);
            }
        }
    }
}

#[test]
fn numbers_state_their_distributions_and_small_problems_have_every_class() {
    let small = rms_norm(3, 257);
    let (mut seen, mut all) = (BTreeSet::new(), BTreeSet::new());
    for n in 0..200 {
        let drawn = numbers(&small, random(n));
        assert!(drawn.iter().all(|number| (FRESH..1 << 63).contains(number)));
        all.extend(drawn.iter().copied());
        let of = |trial: u32| {
            let of = drawn.iter().map(|number| private(&small, trial, *number).distribution);
            of.collect::<Vec<_>>()
        };
        // The position among trials changes nothing.
        assert_eq!(of(4), of(9));
        assert_eq!(of(4)[1..], ["tiny", "ties"]);
        seen.insert(of(4)[0].clone());
    }
    assert_eq!(all.len(), 600, "no number is drawn twice");
    assert_eq!(seen, DISTRIBUTIONS.map(String::from).into());
    // A large problem has one trial, of any class.
    let large = rms_norm(512, 4096);
    let mut seen = BTreeSet::new();
    for n in 0..200 {
        let [one] = numbers(&large, random(n))[..] else { panic!("one trial") };
        seen.insert(private(&large, 2, one).distribution);
    }
    assert_eq!(seen, DISTRIBUTIONS.iter().chain(&["tiny", "ties"]).map(|name| name.to_string()).collect());
    // A number below these has the distribution of its position.
    let of = |trial| private(&small, trial, 7).distribution;
    assert_eq!([of(4), of(5)], ["uniform", "positive"]);
    // A number for a class that does not suit the problem, or that no kforge knows, is no error.
    let limits = FRESH | 8 << 56;
    assert_eq!([limits, FRESH | 63 << 56].map(|number| private(&small, 4, number).distribution), ["uniform"; 2]);
}

#[test]
fn classes_suit_problems() {
    let ints = |name: &str, role| Tensor::dense(name, role, DType::I32, &[4, 8]);
    let row = Tensor::dense("y", Role::Output, DType::I32, &[4]);
    let of = |name: &str, tensors: Vec<Tensor>| classes(&problem(name, tensors, &[]));
    assert_eq!(of("softmax", vec![read("x", &[8]), written("y", &[8])]), ["tiny", "ties"]);
    assert_eq!(of("max", vec![ints("x", Role::Input), row.clone()]), ["ties", "limits"]);
    assert_eq!(of("sum", vec![ints("x", Role::Input), row.clone()]), ["ties"], "a sum may overflow");
    let ranged = Tensor { init: Init::Range(0.0, 9.0), ..ints("x", Role::Input) };
    assert_eq!(of("max", vec![ranged, row]), [] as [&str; 0], "the operator says what its inputs are");
    let own = Problem { generate_inputs: Some(InputsFunction::Python("in.py".into(), "f".into())), ..rms_norm(3, 8) };
    assert_eq!(classes(&own), [] as [&str; 0], "a function of the package knows no such distribution");
    assert!(!private(&own, 4, numbers(&own, random(1))[0]).distribution.is_empty());
}

#[test]
fn sums_of_ties_are_exact_in_every_order() {
    for init in [Init::Auto, Init::Positive] {
        for seed in 0..20 {
            let x = Tensor { init: init.clone(), ..Tensor::dense("x", Role::Input, DType::F32, &[1 << 14]) };
            let values = tensor_values(&x, 0, None, &trial(seed, "ties")).unwrap().to_f64(DType::F32);
            let exact: f64 = values.iter().sum();
            assert_eq!(f64::from(values.iter().fold(0f32, |sum, value| sum + *value as f32)), exact, "{init:?} {seed}");
        }
    }
}

#[test]
fn stress_classes_are_what_they_are_documented_to_be() {
    for dtype in DType::ALL {
        for class in ["tiny", "ties", "limits"] {
            for init in [Init::Auto, Init::Positive] {
                let x = Tensor { init: init.clone(), ..Tensor::dense("x", Role::Input, dtype, &[40, 26]) };
                let values = tensor_values(&x, 0, None, &trial(5, class)).unwrap();
                assert_eq!(round_values(dtype, &values), values, "{dtype} {class}");
                let found = values.to_f64(dtype);
                assert!(found.iter().all(|v| v.is_finite()), "{dtype} {class}");
                if init == Init::Positive {
                    assert!(found.iter().all(|v| *v > 0.0), "{dtype} {class}");
                }
                let different: BTreeSet<u64> = found.iter().map(|v| v.to_bits()).collect();
                if class == "ties" && dtype != DType::F8e8m0 {
                    // A truth value has only two, and one is positive; a float of four bits has two that are positive and at most one.
                    let few = matches!(dtype, DType::Bool | DType::F4e2m1x2);
                    let least = if few && init == Init::Positive { 1 } else { 2 };
                    assert!((least..=3).contains(&different.len()), "{dtype} {different:?}");
                    for row in found.chunks(26).filter(|_| least == 2) {
                        assert!(row.iter().any(|v| *v != row[0]), "{dtype}: a row of equal values");
                    }
                }
            }
        }
    }
    let problem = rms_norm(64, 64);
    let values = inputs(&problem, &trial(3, "tiny")).unwrap();
    let x = values["x"].to_f64(DType::F32);
    let subnormal = x.iter().filter(|v| **v != 0.0 && v.abs() < f64::from(f32::MIN_POSITIVE)).count();
    assert!((350..700).contains(&subnormal), "one in eight of 4096: {subnormal}");
    let scales: BTreeSet<i32> =
        x.chunks(64).map(|row| (row.iter().map(|v| v * v).sum::<f64>() / 64.0).sqrt().log2().round() as i32).collect();
    assert!(
        scales.iter().any(|s| (-12..=-8).contains(s)) && scales.iter().any(|s| (-22..=-18).contains(s)),
        "{scales:?}"
    );
    assert!(scales.iter().all(|s| (-22..=-8).contains(s)), "{scales:?}");
    // Where a formula may divide by its input, and for functions of the package, none is subnormal.
    for of in [super::problem("elementwise", problem.tensors.clone(), &[("y", "1 / x".into())]), l2_norm(64, 64)] {
        let x = inputs(&of, &trial(3, "tiny")).unwrap()["x"].to_f64(DType::F32);
        assert!(x.iter().all(|v| v.abs() > 1e-30 || *v == 0.0));
    }
    let i32s =
        tensor_values(&Tensor::dense("i", Role::Input, DType::I32, &[100]), 0, None, &trial(1, "limits")).unwrap();
    let Values::Int(i32s) = i32s else { panic!("integers") };
    let near = |v: &i64, end: i32| (v - i64::from(end)).abs() < 16;
    assert!(i32s.iter().all(|v| near(v, i32::MIN) || near(v, i32::MAX)));
    assert!(i32s.iter().any(|v| near(v, i32::MIN)) && i32s.iter().any(|v| near(v, i32::MAX)));
}
