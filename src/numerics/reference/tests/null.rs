//! Null candidates: which exist, which values they have, and which are left out.

use std::collections::BTreeMap;

use super::{DType, Problem, Role, Tensor, Value, problem, read, trial, written};
use crate::reference::generate::inputs;
use crate::reference::nulls::{candidates, lower_precision};
use crate::reference::oracle::expected;
use crate::reference::values::Values;

fn of(problem: &Problem) -> (BTreeMap<String, BTreeMap<String, Values>>, BTreeMap<String, Values>) {
    let values = inputs(problem, &trial(1, "normal")).unwrap();
    let want = expected(problem, &values, false).unwrap().outputs;
    let other = expected(problem, &inputs(problem, &trial(2, "normal")).unwrap(), false).unwrap().outputs;
    (candidates(problem, &values, &want, &other).unwrap().into_iter().collect(), values)
}

#[test]
fn an_f32_operator_is_tried_with_every_kind_of_candidate() {
    let bias = problem(
        "elementwise",
        vec![read("x", &[4, 6]), read("b", &[6]), read("s", &[]), written("y", &[4, 6])],
        &[("y", Value::from("x * s + b"))],
    );
    let (found, values) = of(&bias);
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "another seed",
            "constant 1",
            "constant mean",
            "copy of b",
            "copy of s",
            "copy of x",
            "inputs rounded to f16",
            "zeros"
        ]
    );
    assert_eq!(found["copy of x"]["y"], values["x"]);
    assert_eq!(found["copy of b"]["y"], values["b"].take((0..24).map(|i| i % 6)));
    assert_eq!(found["zeros"]["y"], Values::Float(vec![0.0; 24]));
}

#[test]
fn a_candidate_lists_only_outputs_that_differ_from_the_expectation() {
    // An identity in f32: a copy is correct, and only the other output can show that a copy is wrong.
    let tensors = vec![read("x", &[5]), written("same", &[5]), written("twice", &[5])];
    let both = problem("elementwise", tensors, &[("same", Value::from("x")), ("twice", Value::from("2 * x"))]);
    let (found, _) = of(&both);
    assert!(found["copy of x"].keys().eq(["twice"]));
    assert!(found["zeros"].keys().eq(["same", "twice"]));

    let x = Tensor::dense("x", Role::Input, DType::I32, &[2, 3]);
    let moved = problem("transpose", vec![x, Tensor::dense("y", Role::Output, DType::I32, &[3, 2])], &[]);
    let (found, _) = of(&moved);
    assert!(found.contains_key("copy of x") && !found.keys().any(|name| name.contains("rounded")));
}

#[test]
fn an_expectation_that_is_constant_leaves_no_constant_out() {
    // The expectation is zero everywhere: the operator cannot distinguish zeros from work, so `zeros` is not a null candidate, and it must not hide any other.
    let zero = problem("elementwise", vec![read("x", &[4]), written("y", &[4])], &[("y", Value::from("0 * x"))]);
    let (found, _) = of(&zero);
    assert!(!found.contains_key("zeros") && !found.contains_key("constant mean") && found.contains_key("constant 1"));
}

#[test]
fn the_mean_of_one_value_is_that_value() {
    // Seven times a seventh of 0.1 is not 0.1 in f64, and an infinity is in no mean.
    for constant in [0.1, f64::INFINITY, f64::NAN] {
        let tensors = ["x", "y"].map(|name| Tensor::dense(name, Role::Input, DType::F64, &[7]));
        let [x, y] = tensors;
        let y = Tensor { role: Role::Output, ..y };
        let fill = problem("elementwise", vec![x, y], &[("y", Value::from("x"))]);
        let want = BTreeMap::from([("y".to_string(), Values::Float(vec![constant; 7]))]);
        let values = BTreeMap::from([("x".to_string(), Values::Float(vec![1.0; 7]))]);
        let found: BTreeMap<_, _> = candidates(&fill, &values, &want, &want).unwrap().into_iter().collect();
        assert!(found.contains_key("zeros") && !found.contains_key("constant mean"), "{constant}: {:?}", found.keys());
    }
}

#[test]
fn inputs_are_rounded_to_the_next_narrower_format() {
    for (dtype, lower) in [
        (DType::F64, Some("inputs rounded to f32")),
        (DType::F32, Some("inputs rounded to f16")),
        (DType::F16, Some("inputs rounded to f8e4m3")),
        (DType::Bf16, Some("inputs rounded to f8e4m3")),
        (DType::F8e4m3, None),
    ] {
        let tensors = vec![Tensor::dense("x", Role::Input, dtype, &[64]), written("y", &[64])];
        let softmax = problem("softmax", tensors, &[]);
        let values = inputs(&softmax, &trial(1, "normal")).unwrap();
        let rounded = lower_precision(&softmax, &values);
        assert_eq!(rounded.as_ref().map(|(name, _)| name.as_str()), lower);
        assert!(rounded.is_none_or(|(_, rounded)| rounded["x"] != values["x"]));
    }
    // Only inputs of the widest dtype are rounded: an f16 weight next to f32 data stays.
    let tensors = vec![read("x", &[4, 8]), Tensor::dense("w", Role::Input, DType::F16, &[8]), written("y", &[4, 8])];
    let norm = problem("rms_norm", tensors, &[]);
    let values = inputs(&norm, &trial(1, "normal")).unwrap();
    let (_, rounded) = lower_precision(&norm, &values).unwrap();
    assert!(rounded["w"] == values["w"] && rounded["x"] != values["x"]);
}
