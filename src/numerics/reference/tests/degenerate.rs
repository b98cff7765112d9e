//! Every built-in at the edges of its domain: axes of extent 0 and 1, rows of one element and of a million, values that are not finite. The expected results
//! are what PyTorch documents or does for the same call, unless stated otherwise.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{problem, read, trial, written};
use crate::reference::generate::inputs;
use crate::reference::oracle::{OracleOutput, expected, has_scale};
use crate::reference::values::{Values, logical_len};
use crate::reference::{check, names};
use kforge_types::model::{DType, Problem, Role, Tensor};

fn ints(name: &str, role: Role, shape: &[u64]) -> Tensor {
    Tensor::dense(name, role, DType::I64, shape)
}

/// Expected values of a problem on these inputs. Checks that each written tensor has as many values as its shape needs, and each float tensor a scale.
#[track_caller]
fn made(problem: &Problem, values: &[(&str, Values)]) -> OracleOutput {
    let values: BTreeMap<String, Values> = values.iter().map(|(name, v)| ((*name).to_owned(), v.clone())).collect();
    let found = expected(problem, &values, true).unwrap();
    for written in problem.written() {
        assert_eq!(found.outputs[&written.name].len(), logical_len(written), "{}", written.name);
        assert_eq!(
            found.scales.get(&written.name).map(Vec::len),
            has_scale(problem, &written.name).then(|| logical_len(written))
        );
    }
    found
}

#[track_caller]
fn floats(problem: &Problem, output: &str, values: &[(&str, Values)]) -> Vec<f64> {
    match &made(problem, values).outputs[output] {
        Values::Float(found) => found.clone(),
        Values::Int(_) => panic!("`{output}` is of integers"),
    }
}

fn of(values: &[f64]) -> Values {
    Values::Float(values.to_vec())
}

/// Asserts that the values are equal; NaN equals NaN.
#[track_caller]
fn same(found: &[f64], want: &[f64]) {
    let equal = found.iter().zip(want).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()));
    assert!(found.len() == want.len() && equal, "{found:?}, expected {want:?}");
}

/// A problem of each built-in whose batch, or equivalent, has that extent, and whose rows have `n` values.
fn each(batch: u64, n: u64) -> Vec<Problem> {
    let along = |name: &str| problem(name, vec![read("x", &[batch, n]), written("y", &[batch])], &[]);
    let kept = |name: &str| problem(name, vec![read("x", &[batch, n]), written("y", &[batch, n])], &[]);
    let index = |name: &str| problem(name, vec![read("x", &[batch, n]), ints("y", Role::Output, &[batch])], &[]);
    let image = |name: &str| read(name, &[batch, 1, n, n]);
    let heads = |name: &str| read(name, &[batch, 2, n, 3]);
    vec![
        problem("attention", vec![heads("q"), heads("k"), heads("v"), written("o", &[batch, 2, n, 3])], &[]),
        problem("batch_norm", vec![read("x", &[n, batch]), written("y", &[n, batch])], &[]),
        problem("conv2d", vec![image("x"), read("w", &[1, 1, 1, 1]), written("y", &[batch, 1, n, n])], &[]),
        problem(
            "cross_entropy",
            vec![read("x", &[batch, n]), ints("labels", Role::Input, &[batch]), written("y", &[])],
            &[],
        ),
        kept("cumsum"),
        problem("dropout", vec![read("x", &[batch, n]), written("y", &[batch, n])], &[("p", Value::from(0.5))]),
        problem("elementwise", vec![read("x", &[batch, n]), written("y", &[batch, n])], &[("y", Value::from("2 * x"))]),
        problem(
            "embedding",
            vec![read("w", &[n, 3]), ints("ids", Role::Input, &[batch]), written("y", &[batch, 3])],
            &[],
        ),
        problem(
            "gather",
            vec![read("x", &[batch, n]), ints("index", Role::Input, &[batch, 2]), written("y", &[batch, 2])],
            &[],
        ),
        kept("layer_norm"),
        kept("log_softmax"),
        problem("matmul", vec![read("a", &[batch, n]), read("b", &[n, 4]), written("c", &[batch, 4])], &[]),
        index("argmax"),
        index("argmin"),
        along("max"),
        along("mean"),
        along("min"),
        along("sum"),
        problem(
            "max_pool2d",
            vec![image("x"), written("y", &[batch, 1, n, n])],
            &[("kernel", Value::from(1)), ("stride", Value::from(1))],
        ),
        kept("rms_norm"),
        kept("softmax"),
        problem("transpose", vec![read("x", &[batch, n]), written("y", &[n, batch])], &[]),
    ]
}

#[test]
fn every_builtin_gives_finite_values_for_batches_and_rows_of_any_extent() {
    let mut seen: Vec<String> = each(2, 3).iter().map(name_of).collect();
    seen.sort();
    assert_eq!(seen, names());
    for (batch, n) in [(0, 3), (1, 1), (1, 3), (2, 1), (3, 2)] {
        for problem in each(batch, n) {
            assert_eq!(check(&problem), Ok(()), "[{batch}, {n}]");
            for distribution in ["normal", "large"] {
                let values = inputs(&problem, &trial(1, distribution)).unwrap();
                let values: Vec<(&str, Values)> = values.iter().map(|(k, v)| (k.as_str(), v.clone())).collect();
                let found = made(&problem, &values);
                // Only the mean of no losses is NaN.
                let none = batch == 0 && name_of(&problem) == "cross_entropy";
                let finite = found.outputs.values().all(|v| v.to_f64(DType::I64).iter().all(|x| x.is_finite()));
                assert_eq!(finite, !none, "{} of [{batch}, {n}]", name_of(&problem));
            }
        }
    }
}

fn name_of(problem: &Problem) -> String {
    match &problem.reference {
        kforge_types::model::Reference::Builtin { name, .. } => name.clone(),
        _ => String::new(),
    }
}

#[test]
fn rows_of_no_values_are_what_is_made_of_nothing_or_refused() {
    let refused = [
        "argmax",
        "argmin",
        "batch_norm",
        "conv2d",
        "cross_entropy",
        "layer_norm",
        "max",
        "max_pool2d",
        "min",
        "rms_norm",
    ];
    for problem in each(2, 0) {
        let name = name_of(&problem);
        // A gather or lookup has nothing to index.
        if ["embedding", "gather"].contains(&name.as_str()) {
            continue;
        }
        let errors = check(&problem).err().map(|misfits| misfits.faults).unwrap_or_default();
        assert_eq!(!errors.is_empty(), refused.contains(&name.as_str()), "{name}: {errors:?}");
        if let Some(error) = errors.first() {
            assert!(error.contains("has no value along axis"), "{error}");
            continue;
        }
        let values: Vec<(&str, Values)> =
            problem.read().map(|t| (t.name.as_str(), of(&vec![1.0; logical_len(t)]))).collect();
        let found = made(&problem, &values);
        let (_, values) = found.outputs.first_key_value().unwrap();
        match name.as_str() {
            "sum" => same(&values.to_f64(DType::F32), &[0.0; 2]),
            "mean" => same(&values.to_f64(DType::F32), &[f64::NAN; 2]),
            "matmul" => same(&values.to_f64(DType::F32), &[0.0; 8]),
            _ => assert!(values.is_empty(), "{name}"),
        }
    }
}

#[test]
fn a_row_of_one_value_is_its_own_extreme_sum_and_normal_form() {
    let x = || ("x", of(&[-3.0, 5.0]));
    let one = |name: &str| each(2, 1).into_iter().find(|p| name_of(p) == name).unwrap();
    for name in ["sum", "mean", "max", "min", "cumsum"] {
        same(&floats(&one(name), "y", &[x()]), &[-3.0, 5.0]);
    }
    same(&floats(&one("softmax"), "y", &[x()]), &[1.0; 2]);
    same(&floats(&one("log_softmax"), "y", &[x()]), &[0.0; 2]);
    same(&floats(&one("layer_norm"), "y", &[x()]), &[0.0; 2]);
    assert_eq!(made(&one("argmax"), &[x()]).outputs["y"], Values::Int(vec![0, 0]));
    let rms = floats(&one("rms_norm"), "y", &[x()]);
    assert!((rms[0] + 1.0).abs() < 1e-6 && (rms[1] - 1.0).abs() < 1e-6, "{rms:?}");
    same(&floats(&one("cross_entropy"), "y", &[x(), ("labels", Values::Int(vec![0, 0]))]), &[0.0]);
    // With one key, the result is its value for any query.
    let attention = one("attention");
    let twelve: Vec<f64> = (0..12).map(f64::from).collect();
    same(&floats(&attention, "o", &[("q", of(&[1e3; 12])), ("k", of(&[-1e3; 12])), ("v", of(&twelve))]), &twelve);
}

#[test]
fn rows_of_a_million_values_lose_nothing() {
    let n = 1 << 20;
    let row = |name: &str| problem(name, vec![read("x", &[1, n]), written("y", &[1])], &[]);
    // A plain running sum in f64 would be off by 1e-6 here.
    let (sum, mean) = (floats(&row("sum"), "y", &[("x", of(&vec![0.1; n as usize]))]), 0.1);
    assert!((sum[0] - 104_857.6).abs() < 1e-10, "{sum:?}");
    let found = floats(&row("mean"), "y", &[("x", of(&vec![mean; n as usize]))]);
    assert!((found[0] - 0.1).abs() < 1e-16, "{found:?}");
    // The squared mean exceeds the variance by a factor of 1e12: this needs two passes, not E[x^2] - E[x]^2.
    let values: Vec<f64> = (0..n).map(|i| 1e6 + if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let norm = problem(
        "layer_norm",
        vec![read("x", &[1, n]), written("y", &[1, n]), written("rstd", &[1])],
        &[("eps", Value::from(0.0))],
    );
    same(&floats(&norm, "rstd", &[("x", of(&values))]), &[1.0]);
    let long = problem("softmax", vec![read("x", &[1, n]), written("y", &[1, n])], &[]);
    same(&floats(&long, "y", &[("x", of(&vec![700.0; n as usize]))])[..2], &[1.0 / n as f64; 2]);
}

#[test]
fn values_that_are_not_finite_go_where_pytorch_sends_them() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let row = |name: &str, x: &[f64]| {
        let shape = [x.len() as u64];
        let whole = ["softmax", "log_softmax", "cumsum"].contains(&name);
        let y = if whole { written("y", &shape) } else { written("y", &[]) };
        floats(&problem(name, vec![read("x", &shape), y], &[]), "y", &[("x", of(x))])
    };
    for name in ["softmax", "log_softmax"] {
        same(&row(name, &[-inf, -inf]), &[nan; 2]);
        same(&row(name, &[inf, 0.0]), &[nan; 2]);
        same(&row(name, &[nan, 0.0]), &[nan; 2]);
    }
    same(&row("softmax", &[-inf, 0.0]), &[0.0, 1.0]);
    same(&row("log_softmax", &[-inf, 0.0]), &[-inf, 0.0]);
    same(&row("max", &[1.0, nan, inf]), &[nan]);
    same(&row("min", &[1.0, nan, -inf]), &[nan]);
    same(&row("max", &[-inf, -inf]), &[-inf]);
    same(&row("sum", &[inf, -inf]), &[nan]);
    same(&row("sum", &[1e308, 1e308]), &[inf]);
    same(&row("cumsum", &[1.0, inf, 1.0, nan]), &[1.0, inf, inf, nan]);
    let index = |name: &str, x: &[f64]| {
        let indexes = problem(name, vec![read("x", &[x.len() as u64]), ints("y", Role::Output, &[])], &[]);
        made(&indexes, &[("x", of(x))]).outputs["y"].clone()
    };
    for name in ["argmax", "argmin"] {
        assert_eq!(index(name, &[1.0, inf, nan, -inf, nan]), Values::Int(vec![2]), "{name}: the first NaN");
        assert_eq!(index(name, &[-0.0, 0.0]), Values::Int(vec![0]), "{name}: zeros of either sign are equal");
    }
    let loss = |x: &[f64], label: i64| {
        let tensors =
            vec![read("x", &[1, 2]), ints("labels", Role::Input, &[1]), written("y", &[]), written("lse", &[1])];
        let loss = problem("cross_entropy", tensors, &[("ignore_index", Value::from(-100))]);
        let values = [("x", of(x)), ("labels", Values::Int(vec![label]))];
        [floats(&loss, "y", &values)[0], floats(&loss, "lse", &values)[0]]
    };
    same(&loss(&[0.0, 0.0], -100), &[nan, 2f64.ln()]);
    same(&loss(&[-inf, 0.0], 0), &[inf, 0.0]);
    same(&loss(&[-inf, -inf], 0), &[nan, -inf]);
    same(&loss(&[inf, 0.0], 1), &[nan, inf]);
    same(&loss(&[nan, -inf], 1), &[nan, nan]);
    let pool = problem(
        "max_pool2d",
        vec![read("x", &[1, 1, 1, 3]), written("y", &[1, 1, 1, 2])],
        &[("kernel", Value::from(vec![1, 2])), ("stride", Value::from(1))],
    );
    same(&floats(&pool, "y", &[("x", of(&[nan, 1.0, -inf]))]), &[nan, 1.0]);
}

#[test]
fn all_is_dropped_where_the_share_is_one() {
    let drop = |tensors, p: f64| problem("dropout", tensors, &[("p", Value::from(p))]);
    let plain = drop(vec![read("x", &[3]), written("y", &[3])], 1.0);
    same(&floats(&plain, "y", &[("x", of(&[1.0, -2.0, f64::INFINITY]))]), &[0.0; 3]);
    let masked = drop(vec![read("x", &[3]), ints("mask", Role::Input, &[3]), written("y", &[3])], 1.0);
    assert!(check(&masked).unwrap_err().faults[0].contains("expected less than 1 with a `mask`"));
}

#[test]
fn floats_made_of_integers_have_a_scale() {
    let x = || ints("x", Role::Input, &[2, 2]);
    let values = [("x", Values::Int(vec![3, -4, 5, -6]))];
    let scale =
        |name: &str, y: &[u64]| made(&problem(name, vec![x(), written("y", y)], &[]), &values).scales["y"].clone();
    assert_eq!((scale("sum", &[2]), scale("mean", &[2])), (vec![7.0, 11.0], vec![3.5, 5.5]));
    assert_eq!((scale("max", &[2]), scale("min", &[2])), (vec![3.0, 5.0], vec![4.0, 6.0]));
    assert_eq!(scale("cumsum", &[2, 2]), [3.0, 7.0, 5.0, 11.0]);
    let product = problem(
        "matmul",
        vec![ints("a", Role::Input, &[1, 2]), ints("b", Role::Input, &[2, 1]), written("c", &[1, 1])],
        &[],
    );
    let factors = [("a", Values::Int(vec![3, -4])), ("b", Values::Int(vec![-5, 6]))];
    assert_eq!(made(&product, &factors).scales["c"], [39.0]);
}
