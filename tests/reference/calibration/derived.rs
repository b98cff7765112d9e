//! The tolerance that `tolerance = "auto"` derives rejects an answer of the next lower precision, for every built-in and the types of typical kernels.

use kforge::measure::calibrate::derived;
use kforge::measure::compare::{Comparison, rms};
use kforge::measure::judge::judge_output;
use kforge::model::{DType, Problem, Reference, Role, Tensor};
use kforge::reference::{Values, check, cost, float, generate, names, nulls, oracle};
use serde_json::Value;

/// A problem of every built-in that computes floats, on rows of `n`.
fn problems(dtype: DType, n: u64) -> Vec<Problem> {
    let read = |name: &str, shape: &[u64]| Tensor::dense(name, Role::Input, dtype, shape);
    let written = |name: &str, shape: &[u64]| Tensor::dense(name, Role::Output, dtype, shape);
    let of = |name: &str, tensors: Vec<Tensor>, attributes: &[(&str, Value)]| {
        Problem::of(tensors, Reference::builtin(name, attributes))
    };
    let kept = |name: &str| of(name, vec![read("x", &[8, n]), written("y", &[8, n])], &[]);
    let along = |name: &str| of(name, vec![read("x", &[8, n]), written("y", &[8])], &[]);
    let ids = |name: &str, shape: &[u64]| Tensor::dense(name, Role::Input, DType::I64, shape);
    let side = (n as f64).sqrt() as u64;
    let heads = |name: &str| read(name, &[1, 2, n, 8]);
    vec![
        of("attention", vec![heads("q"), heads("k"), heads("v"), written("o", &[1, 2, n, 8])], &[]),
        of("batch_norm", vec![read("x", &[n, 8]), written("y", &[n, 8])], &[]),
        of("conv2d", vec![read("x", &[1, side, 6, 6]), read("w", &[4, side, 3, 3]), written("y", &[1, 4, 4, 4])], &[]),
        // One loss per label: a single average of all losses in bf16 has too few bits to show a difference.
        of(
            "cross_entropy",
            vec![read("x", &[8, n]), ids("labels", &[8]), written("y", &[8])],
            &[("reduction", "none".into())],
        ),
        kept("cumsum"),
        of("dropout", vec![read("x", &[8, n]), written("y", &[8, n])], &[("p", 0.5.into())]),
        of("elementwise", vec![read("x", &[8, n]), written("y", &[8, n])], &[("y", "gelu(x) + 1".into())]),
        of("embedding", vec![read("w", &[n, 4]), ids("ids", &[8]), written("y", &[8, 4])], &[]),
        of("gather", vec![read("x", &[8, n]), ids("index", &[8, 4]), written("y", &[8, 4])], &[]),
        kept("layer_norm"),
        kept("log_softmax"),
        of("matmul", vec![read("a", &[8, n]), read("b", &[n, 8]), written("c", &[8, 8])], &[]),
        along("max"),
        along("mean"),
        along("min"),
        along("sum"),
        of(
            "max_pool2d",
            vec![read("x", &[2, 2, side, side]), written("y", &[2, 2, side / 2, side / 2])],
            &[("kernel", 2.into())],
        ),
        kept("rms_norm"),
        kept("softmax"),
        of("transpose", vec![read("x", &[8, n]), written("y", &[n, 8])], &[]),
    ]
}

/// Whether the answer to inputs of the next lower precision fails somewhere; none if there is no such answer.
fn rejects_lower_precision(problem: &Problem) -> bool {
    let terms = cost::reduction_length(problem);
    let trials = generate::trials(problem, 1, 4);
    trials.iter().any(|trial| {
        let inputs = generate::inputs(problem, trial).unwrap();
        let want = oracle::expected(problem, &inputs, false).unwrap().outputs;
        let (name, rounded) = nulls::lower_precision(problem, &inputs).unwrap();
        let values = oracle::expected(problem, &rounded, false).unwrap().outputs;
        let Some((_, got)) = nulls::candidate(problem, &want, name, values) else { return false };
        got.iter().any(|(output, got)| {
            let tensor = problem.tensor(output).unwrap();
            let [got, want] = [got, &want[output]].map(|values| float::round_values(tensor.dtype, values));
            let (Values::Float(got), Values::Float(want)) = (got, want) else { return true };
            let mut comparison = Comparison::new(output, tensor.dtype, &tensor.shape, rms(&want), None);
            comparison.floats(0, &got, &want, None);
            !judge_output(&comparison.finish(), &derived(tensor.dtype, terms)).pass
        })
    })
}

#[test]
#[ignore = "second tier: every operator of the examples"]
fn a_derived_tolerance_rejects_answers_one_precision_too_low() {
    let mut passed = vec![];
    for dtype in [DType::F32, DType::F16, DType::Bf16] {
        for n in [16, 256, 4096] {
            for problem in problems(dtype, n) {
                let Reference::Builtin { name, .. } = &problem.reference else { unreachable!() };
                assert_eq!(check(&problem), Ok(()));
                // Attention over that many queries takes long and shows nothing more.
                let long = n == 4096 && name == "attention";
                if !long && !rejects_lower_precision(&problem) {
                    passed.push(format!("{name} of {dtype}, rows of {n}"));
                }
            }
        }
    }
    // An average of this many f32 loses as much in a plain accumulator as by rounding its terms to f16. The manual and calibration both say so.
    assert_eq!(passed, ["mean of f32, rows of 4096"]);
}

#[test]
fn every_builtin_that_computes_floats_is_asked() {
    let mut seen: Vec<String> = problems(DType::F32, 16)
        .iter()
        .map(|p| match &p.reference {
            Reference::Builtin { name, .. } => name.clone(),
            _ => String::new(),
        })
        .chain(["argmax".into(), "argmin".into()])
        .collect();
    seen.sort();
    assert_eq!(seen, names());
}
