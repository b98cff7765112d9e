//! Generators: determinism, independence of elements, shapes of distributions, structured inputs, hints of built-ins.

use super::{DType, Role, Tensor, problem, read, trial, written};
use crate::reference::float::round_values;
use crate::reference::generate::{DISTRIBUTIONS, Draw, distributions, inputs, tensor_values, trials};
use crate::reference::values::Values;
use kforge_types::model::Init;

fn floats(values: &Values) -> &[f64] {
    match values {
        Values::Float(values) => values,
        Values::Int(_) => panic!("expected floats"),
    }
}

fn ints(values: &Values) -> &[i64] {
    match values {
        Values::Int(values) => values,
        Values::Float(_) => panic!("expected integers"),
    }
}

fn with_init(mut tensor: Tensor, init: Init) -> Tensor {
    tensor.init = init;
    tensor
}

fn drawn(tensor: &Tensor, distribution: &str) -> Values {
    tensor_values(tensor, 0, None, &trial(11, distribution)).unwrap()
}

#[test]
fn an_element_does_not_depend_on_how_many_there_are() {
    for dtype in DType::ALL {
        for distribution in DISTRIBUTIONS {
            let long = Tensor::dense("x", Role::Input, dtype, &[64, 2]);
            let short = Tensor::dense("x", Role::Input, dtype, &[3]);
            let (long_values, short_values) = (drawn(&long, distribution), drawn(&short, distribution));
            assert_eq!(long_values.take(0..short_values.len()), short_values, "{dtype} {distribution}");
            let alone = Draw::new(&long, 0, None, &trial(11, distribution)).unwrap();
            match &long_values {
                Values::Float(v) => assert_eq!(alone.float(97).to_bits(), v[97].to_bits()),
                Values::Int(v) => assert_eq!(alone.int(97), v[97]),
            }
        }
    }
}

#[test]
fn values_are_finite_representable_and_not_constant() {
    for dtype in DType::ALL {
        for distribution in DISTRIBUTIONS {
            let x = Tensor::dense("x", Role::Input, dtype, &[512]);
            let values = drawn(&x, distribution);
            assert_eq!(round_values(dtype, &values), values, "{dtype} {distribution}");
            let floats = values.to_f64(dtype);
            assert!(floats.iter().all(|v| v.is_finite()), "{dtype} {distribution}");
            // A positive truth value can only be true.
            if (dtype, distribution) != (DType::Bool, "positive") {
                assert!(floats.iter().any(|v| *v != floats[0]), "{dtype} {distribution}");
            }
        }
    }
}

#[test]
fn seeds_tensors_and_trials_give_different_values() {
    let x = read("x", &[8]);
    let of = |seed, ordinal| tensor_values(&x, ordinal, None, &trial(seed, "normal")).unwrap();
    assert_ne!(of(1, 0), of(2, 0));
    assert_ne!(of(1, 0), of(1, 1));
    assert_eq!(of(1, 0), of(1, 0));
    let softmax = problem("softmax", vec![x, written("y", &[8])], &[]);
    let planned = trials(&softmax, 5, 4);
    let seeds: std::collections::BTreeSet<u64> = planned.iter().map(|t| t.seed).collect();
    assert_eq!(seeds.len(), 4);
    let names: Vec<&str> = planned.iter().map(|t| t.distribution.as_str()).collect();
    assert_eq!(names, ["normal", "wide", "sparse", "large"]);
    assert_eq!(planned, trials(&softmax, 5, 4));
}

#[test]
fn distributions_have_the_shape_they_are_documented_to_have() {
    let x = read("x", &[20_000]);
    let moments = |distribution: &str| {
        let values = drawn(&x, distribution);
        let v = floats(&values).to_vec();
        let mean = v.iter().sum::<f64>() / v.len() as f64;
        let variance = v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / v.len() as f64;
        (v, mean, variance)
    };
    let (v, mean, variance) = moments("normal");
    assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.03 && v.iter().all(|x| x.abs() < 4.9), "{mean} {variance}");
    // Values use all bits of f32: most are not exact in f16.
    assert!(v.iter().filter(|x| crate::reference::float::round_to(DType::F16, **x) != **x).count() > 19_000);
    let (v, mean, variance) = moments("uniform");
    assert!(mean.abs() < 0.02 && (variance - 1.0 / 3.0).abs() < 0.01 && v.iter().all(|x| (-1.0..1.0).contains(x)));
    let (v, mean, _) = moments("positive");
    assert!((mean - 0.5).abs() < 0.02 && v.iter().all(|x| *x > 0.0 && *x <= 1.0));
    let (v, _, _) = moments("sparse");
    let zeros = v.iter().filter(|x| **x == 0.0).count();
    assert!((14_000..16_000).contains(&zeros), "{zeros}");
    let (v, _, _) = moments("wide");
    let binades: std::collections::BTreeSet<i32> = v.iter().map(|x| x.abs().log2().floor() as i32).collect();
    assert!(binades.contains(&-30) && binades.contains(&0) && binades.len() >= 31, "{binades:?}");
    assert!(v.iter().any(|x| *x < 0.0) && v.iter().all(|x| *x != 0.0 && x.abs() <= 2.0));
    let (v, _, _) = moments("large");
    // Beyond the largest argument of an f32 exponential.
    assert!(v.iter().any(|x| *x > 100.0) && v.iter().any(|x| *x < -100.0) && v.iter().all(|x| x.abs() <= 128.0));
}

#[test]
fn structured_inputs_are_what_their_init_says() {
    let i32s = |shape: &[u64]| Tensor::dense("i", Role::Input, DType::I32, shape);
    let values = drawn(&with_init(i32s(&[2, 6]), Init::Permutation(6)), "normal");
    let (first, second) = ints(&values).split_at(6);
    assert_eq!(first, second);
    let mut sorted = first.to_vec();
    sorted.sort_unstable();
    assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);

    let values = drawn(&with_init(i32s(&[9]), Init::Offsets(100)), "normal");
    let offsets = ints(&values);
    assert!(offsets[0] == 0 && offsets[8] == 100 && offsets.is_sorted(), "{offsets:?}");
    assert!(offsets.windows(2).any(|w| w[1] - w[0] != offsets[1] - offsets[0]), "ragged: {offsets:?}");

    let values = drawn(&with_init(Tensor::dense("x", Role::Input, DType::F16, &[40, 5]), Init::OneHot), "normal");
    let rows: Vec<usize> = floats(&values)
        .chunks(5)
        .map(|row| {
            assert_eq!(row.iter().sum::<f64>(), 1.0);
            row.iter().position(|x| *x == 1.0).unwrap()
        })
        .collect();
    assert!((0..5).all(|place| rows.contains(&place)));

    let values = drawn(&with_init(i32s(&[200]), Init::Range(-2.0, 1.0)), "normal");
    let mut seen = ints(&values).to_vec();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [-2, -1, 0, 1]);
    // In such a narrow format, many values round up to the end, which is not part of the range.
    let narrow = Tensor::dense("x", Role::Input, DType::F8e4m3, &[500]);
    let values = drawn(&with_init(narrow, Init::Range(2.0, 3.0)), "normal");
    assert!(floats(&values).iter().all(|x| (2.0..3.0).contains(x)));
    let values = drawn(&with_init(read("x", &[3]), Init::Constant(0.1)), "normal");
    assert_eq!(floats(&values), [f64::from(0.1f32); 3]);
}

#[test]
fn inits_that_cannot_be_are_refused_with_their_tensor() {
    let small = |init| with_init(Tensor::dense("labels", Role::Input, DType::I8, &[4]), init);
    for (init, words) in [
        (Init::Range(0.0, 200.0), "values from 0 to 200 do not fit in i8"),
        (Init::Range(3.0, 1.0), "finite bounds in ascending order"),
        (Init::Permutation(0), "expected at least 1"),
        (Init::Permutation(300), "do not fit in i8"),
        (Init::Offsets(-1), "at least 0"),
        (Init::Constant(1000.0), "do not fit in i8"),
    ] {
        let error = tensor_values(&small(init), 0, None, &trial(1, "normal")).unwrap_err().to_string();
        assert!(error.contains("`labels`") && error.contains(words), "{error}");
    }
    for (dtype, init) in [(DType::F16, Init::Range(0.0, 1e6)), (DType::F8e8m0, Init::Constant(-1.0))] {
        let x = with_init(Tensor::dense("x", Role::Input, dtype, &[4]), init);
        let error = tensor_values(&x, 0, None, &trial(1, "normal")).unwrap_err().to_string();
        assert!(error.contains("`x`") && error.contains("do not fit"), "{error}");
    }
    let error = tensor_values(&read("x", &[1]), 0, None, &trial(1, "gauss")).unwrap_err().to_string();
    assert!(error.contains("`gauss`") && error.contains("`normal`"), "{error}");
}

#[test]
fn builtins_say_how_their_indices_and_variances_are_drawn() {
    let i64s = |name: &str, shape: &[u64]| Tensor::dense(name, Role::Input, DType::I64, shape);
    let loss = problem("cross_entropy", vec![read("x", &[50, 7]), i64s("labels", &[50]), written("y", &[])], &[]);
    let values = inputs(&loss, &trial(3, "wide")).unwrap();
    let labels = ints(&values["labels"]);
    assert!(labels.iter().all(|l| (0..7).contains(l)) && labels.contains(&6) && labels.contains(&0));

    let paged = vec![
        read("q", &[2, 4, 8]),
        read("k", &[6, 4, 2, 8]),
        read("v", &[6, 4, 2, 8]),
        i64s("page_table", &[2, 3]),
        i64s("lengths", &[2]),
        written("o", &[2, 4, 8]),
    ];
    let paged = problem("attention", paged, &[]);
    for seed in 0..20 {
        let values = inputs(&paged, &trial(seed, "normal")).unwrap();
        let mut pages = ints(&values["page_table"]).to_vec();
        pages.sort_unstable();
        assert_eq!(pages, [0, 1, 2, 3, 4, 5]);
        assert!(ints(&values["lengths"]).iter().all(|l| (1..=12).contains(l)));
        crate::reference::oracle::expected(&paged, &values, true).unwrap();
    }

    let statistics = Tensor::dense("running_var", Role::Inout, DType::F32, &[300]);
    let norm = problem("batch_norm", vec![read("x", &[4, 300]), statistics, written("y", &[4, 300])], &[]);
    let values = inputs(&norm, &trial(3, "normal")).unwrap();
    assert!(floats(&values["running_var"]).iter().all(|v| *v > 0.0));
}

#[test]
fn only_tensors_whose_magnitude_is_taken_away_are_large() {
    let norm = problem("layer_norm", vec![read("x", &[4, 64]), read("w", &[64]), written("y", &[4, 64])], &[]);
    let values = inputs(&norm, &trial(3, "large")).unwrap();
    let largest = |name: &str| floats(&values[name]).iter().fold(0.0f64, |a, x| a.max(x.abs()));
    assert!(largest("x") > 64.0 && largest("w") < 5.0);
    let product = problem("matmul", vec![read("a", &[2, 3]), read("b", &[3, 2]), written("c", &[2, 2])], &[]);
    assert!(!distributions(&product).contains(&"large") && distributions(&norm).contains(&"large"));
}
