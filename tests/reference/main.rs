//! Built-in operators compared with independent implementations in float64: `reference/make.py` generated the cases in `reference/data`.

mod calibration;

use std::collections::BTreeMap;

use kforge::model::{DType, Problem, Role, Tensor};
use kforge::record::params::Trial;
use kforge::reference::oracle::expected;
use kforge::reference::{Values, check, cost, float, generate, names};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct File {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    title: String,
    problem: Problem,
    inputs: BTreeMap<String, Vec<Value>>,
    outputs: BTreeMap<String, Vec<Value>>,
    scales: BTreeMap<String, Vec<Value>>,
}

fn number(value: &Value) -> f64 {
    match value {
        Value::String(text) => text.parse().unwrap(),
        other => other.as_f64().unwrap(),
    }
}

fn values(dtype: DType, list: &[Value]) -> Values {
    if dtype.is_float() {
        Values::Float(list.iter().map(number).collect())
    } else {
        Values::Int(list.iter().map(|v| v.as_i64().unwrap()).collect())
    }
}

/// Both sides are float64 sums in different orders: they differ by a few hundred roundings of the largest term at most.
fn assert_close(title: &str, output: &str, got: &[f64], want: &[f64], scale: f64) {
    assert_eq!(got.len(), want.len(), "{title}: {output}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let same = got == want || (got.is_nan() && want.is_nan());
        let close = (got - want).abs() <= 1e-13 * (scale + want.abs());
        assert!(same || close, "{title}: {output}[{i}] is {got}, expected {want}");
    }
}

fn run(file: &str) {
    let text = match file {
        "attentions" => include_str!("data/attentions.json"),
        "convolutions" => include_str!("data/convolutions.json"),
        "elementwise" => include_str!("data/elementwise.json"),
        "matmuls" => include_str!("data/matmuls.json"),
        "moves" => include_str!("data/moves.json"),
        "norms" => include_str!("data/norms.json"),
        "reductions" => include_str!("data/reductions.json"),
        "scans_and_losses" => include_str!("data/scans_and_losses.json"),
        _ => include_str!("data/softmaxes.json"),
    };
    let file: File = serde_json::from_str(text).unwrap();
    for case in &file.cases {
        let (title, problem) = (&case.title, &case.problem);
        assert_eq!(check(problem), Ok(()), "{title}");
        let dtype = |name: &str| problem.tensor(name).unwrap().dtype;
        let inputs: BTreeMap<_, _> =
            case.inputs.iter().map(|(name, list)| (name.clone(), values(dtype(name), list))).collect();
        let got = expected(problem, &inputs, true).unwrap_or_else(|error| panic!("{title}: {error}"));
        assert!(got.outputs.keys().eq(case.outputs.keys()), "{title}");
        for (name, want) in &case.outputs {
            match (&got.outputs[name], values(dtype(name), want)) {
                (Values::Int(got), Values::Int(want)) => assert_eq!(*got, want, "{title}: {name}"),
                (Values::Float(got), Values::Float(want)) => {
                    let largest = want.iter().filter(|x| x.is_finite()).fold(1.0f64, |a, x| a.max(x.abs()));
                    assert_close(title, name, got, &want, largest);
                }
                _ => panic!("{title}: {name} is of the wrong kind"),
            }
            // Every float output has a scale, which is never smaller than plain rounding requires.
            if dtype(name).is_float() {
                let scales = &got.scales[name];
                let Values::Float(values) = &got.outputs[name] else { unreachable!() };
                assert_eq!(scales.len(), values.len(), "{title}: scale of {name}");
                assert!(scales.iter().all(|s| *s >= 0.0), "{title}: scale of {name}");
            } else {
                assert!(!got.scales.contains_key(name), "{title}: scale of {name}");
            }
        }
        for (name, want) in &case.scales {
            let want: Vec<f64> = want.iter().map(number).collect();
            assert_close(title, &format!("scale of {name}"), &got.scales[name], &want, 1.0);
        }
        assert!(cost::cost(problem).bytes > 0.0 && cost::reduction_length(problem) > 0, "{title}");
    }
}

#[test]
fn attention_agrees_with_pytorch_grouped_causal_and_paged() {
    run("attentions");
}

#[test]
fn convolution_and_pooling_agree_with_pytorch() {
    run("convolutions");
}

#[test]
fn elementwise_expressions_agree_with_numpy_scipy_and_pytorch() {
    run("elementwise");
}

#[test]
fn matmul_agrees_with_numpy() {
    run("matmuls");
}

#[test]
fn moved_values_and_dropout_agree_with_numpy_pytorch_and_randomgen() {
    run("moves");
}

#[test]
fn norms_agree_with_pytorch() {
    run("norms");
}

#[test]
fn reductions_agree_with_numpy() {
    run("reductions");
}

#[test]
fn scans_and_losses_agree_with_numpy_and_pytorch() {
    run("scans_and_losses");
}

#[test]
fn softmax_agrees_with_scipy() {
    run("softmaxes");
}

#[test]
fn narrow_formats_decode_as_ml_dtypes_does() {
    let file: Value = serde_json::from_str(include_str!("data/formats.json")).unwrap();
    let table = |name: &str| file["tables"][name].as_array().unwrap().iter().map(number).collect::<Vec<_>>();
    let bytes: Vec<u8> = (0..=255).collect();
    for dtype in [DType::F8e4m3, DType::F8e5m2, DType::F8e8m0] {
        let want = table(dtype.name());
        let Values::Float(got) = float::decode(dtype, &bytes) else { panic!("{dtype} holds floats") };
        for (code, (got, want)) in got.iter().zip(&want).enumerate() {
            assert!(got == want || (got.is_nan() && want.is_nan()), "{dtype} {code:#x}: {got}, expected {want}");
        }
    }
    let nibbles: Vec<u8> = (0..8).map(|i| (2 * i) | ((2 * i + 1) << 4)).collect();
    assert_eq!(float::decode(DType::F4e2m1x2, &nibbles), Values::Float(table("f4e2m1")));
}

#[test]
fn every_builtin_is_tested_here() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/data");
    let all: String = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    for name in names() {
        assert!(all.contains(&format!(r#""builtin":{{"name":"{name}""#)), "no case of {name}");
    }
}

#[derive(Deserialize)]
struct Draws {
    cases: Vec<DrawCase>,
}

#[derive(Deserialize)]
struct DrawCase {
    distribution: String,
    dtype: DType,
    seed: u64,
    ordinal: u32,
    values: Vec<Value>,
}

#[test]
fn generated_inputs_are_the_documented_function_of_seed_tensor_and_index() {
    let file: Draws = serde_json::from_str(include_str!("data/draws.json")).unwrap();
    for case in file.cases {
        let tensor = Tensor::dense("x", Role::Input, case.dtype, &[case.values.len() as u64]);
        let trial = Trial { trial: 0, seed: case.seed, distribution: case.distribution.clone() };
        let got = generate::tensor_values(&tensor, case.ordinal, None, &trial).unwrap();
        assert_eq!(got, values(case.dtype, &case.values), "{} {}", case.distribution, case.dtype);
    }
}
