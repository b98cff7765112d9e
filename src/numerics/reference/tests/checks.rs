//! Checks, costs and the expression language: what is refused, and with which message.

use std::collections::BTreeMap;

use super::{DType, Problem, Reference, Role, Scalar, Tensor, Value, problem, read, trial, with_param, written};
use crate::reference::cost::{cost, reduction_length, work};
use crate::reference::generate::inputs;
use crate::reference::oracle::expected;
use crate::reference::values::Values;
use crate::reference::{builtins, check, names, signature};

fn refused(problem: &Problem, words: &str) {
    let errors = check(problem).unwrap_err();
    assert!(errors.faults.iter().any(|error| error.contains(words)), "expected {words:?} in {errors:#?}");
}

fn expression(text: &str) -> Problem {
    problem(
        "elementwise",
        vec![read("x", &[2, 3]), read("bias", &[3]), written("y", &[2, 3])],
        &[("y", Value::from(text))],
    )
}

#[test]
fn an_accumulating_reference_adds_to_what_its_inout_held() {
    let sum = |tensors, accumulate: Value| problem("sum", tensors, &[("accumulate", accumulate)]);
    let inout = |shape: &[u64]| Tensor::dense("y", Role::Inout, DType::F32, shape);
    let whole = sum(vec![read("x", &[2, 3]), inout(&[2])], Value::from(true));
    check(&whole).unwrap();
    let given = [
        ("x".to_string(), Values::Float(vec![1.0, -2.0, 3.0, 4.0, 5.0, 6.0])),
        ("y".to_string(), Values::Float(vec![10.0, -20.0])),
    ];
    let found = expected(&whole, &given.clone().into(), true).unwrap();
    assert_eq!(found.outputs["y"], Values::Float(vec![12.0, -5.0]));
    assert_eq!(found.scales["y"], [16.0, 35.0]);
    let plain = sum(vec![read("x", &[2, 3]), inout(&[2])], Value::from(false));
    assert_eq!(expected(&plain, &given.into(), false).unwrap().outputs["y"], Values::Float(vec![2.0, 15.0]));
    assert_eq!(reduction_length(&whole), reduction_length(&plain) + 1);
    assert!(cost(&whole).flops > cost(&plain).flops);

    let count = problem(
        "sum",
        vec![Tensor::dense("x", Role::Input, DType::I32, &[2]), Tensor::dense("y", Role::Inout, DType::I32, &[1])],
        &[("accumulate", Value::from(true))],
    );
    let given = [("x".to_string(), Values::Int(vec![3, 4])), ("y".to_string(), Values::Int(vec![5]))];
    assert_eq!(expected(&count, &given.into(), false).unwrap().outputs["y"], Values::Int(vec![12]));

    refused(
        &sum(vec![read("x", &[2, 3]), written("y", &[2])], Value::from(true)),
        "declare it as an inout, `inouts.y`",
    );
    refused(&sum(vec![read("x", &[2, 3]), inout(&[2])], Value::from("yes")), "expected true or false");
    let stated = problem(
        "elementwise",
        vec![read("x", &[2]), inout(&[2])],
        &[("y", Value::from("x")), ("accumulate", Value::from(true))],
    );
    refused(&stated, "write `y = \"y + ...\"`");
}

#[test]
fn the_table_is_whole() {
    assert_eq!(names().len(), builtins().len());
    assert!(names().is_sorted());
    for name in [
        "sum",
        "mean",
        "max",
        "min",
        "argmax",
        "softmax",
        "log_softmax",
        "layer_norm",
        "rms_norm",
        "batch_norm",
        "matmul",
        "cumsum",
        "cross_entropy",
        "attention",
        "conv2d",
        "max_pool2d",
        "transpose",
        "gather",
        "embedding",
        "dropout",
        "elementwise",
    ] {
        assert_eq!(signature(name).unwrap().name, name);
    }
    for builtin in builtins() {
        assert!(!builtin.doc.is_empty() && builtin.slots.iter().all(|slot| !slot.doc.is_empty()));
        let known = |slot: &&&str| builtin.slots.iter().any(|s| s.name == **slot);
        assert!(builtin.large.iter().all(|slot| known(&slot)), "{}", builtin.name);
    }
}

#[test]
fn what_does_not_fit_is_refused_in_words_that_name_it() {
    let (x, y) = (|| read("x", &[4, 8]), || written("y", &[4, 8]));
    refused(&problem("rmsnorm", vec![x(), y()], &[]), "unknown builtin `rmsnorm`; did you mean `rms_norm`?");
    refused(&problem("zzz", vec![x(), y()], &[]), "expected one of `argmax`");
    refused(&problem("softmax", vec![x()], &[]), "needs an output `y`");
    refused(&problem("softmax", vec![y()], &[]), "needs an input `x`");
    refused(&problem("softmax", vec![x(), written("y", &[8, 4])], &[]), "`y` has shape [8, 4], expected [4, 8]");
    refused(&problem("softmax", vec![x(), y()], &[("axis", Value::from(2))]), "axis 2 is outside a tensor of rank 2");
    refused(
        &problem("softmax", vec![x(), y()], &[("axs", Value::from(0))]),
        "no attribute `axs`; did you mean `axis`?",
    );
    refused(
        &problem("softmax", vec![x(), y()], &[("axis", Value::from("last"))]),
        "`axis` is \"last\", expected an integer",
    );
    refused(&problem("softmax", vec![x(), read("w", &[8]), y()], &[]), "`w` is not one of its tensors");
    let ints = Tensor::dense("y", Role::Output, DType::I32, &[4, 8]);
    refused(&problem("softmax", vec![x(), ints], &[]), "`y` has dtype i32, expected a float dtype");
    let empty = vec![read("x", &[4, 0]), written("y", &[4, 0])];
    refused(&problem("layer_norm", empty, &[]), "`x` has no value along axis [1], expected at least one");
    let misspelt = with_param(problem("rms_norm", vec![x(), y()], &[]), "epsilon", DType::F32, Scalar::Float(1e-6));
    refused(&misspelt, "does not use param `epsilon`; did you mean `eps`?");
    let twice = problem("rms_norm", vec![x(), y()], &[("eps", Value::from(1e-5))]);
    refused(&with_param(twice, "eps", DType::F32, Scalar::Float(1e-6)), "`eps` is given both");
    refused(&problem("rms_norm", vec![x(), read("w", &[4]), y()], &[]), "`w` has shape [4], expected [8]");
    refused(&problem("rms_norm", vec![x(), read("residual", &[4, 8]), y()], &[]), "`residual` must be an inout");
    let sums = problem("sum", vec![x(), written("y", &[8])], &[]);
    refused(&sums, "`y` has shape [8], expected [4]");
    let product = |a: &[u64], b: &[u64], c: &[u64], attributes: &[(&str, Value)]| {
        problem("matmul", vec![read("a", a), read("b", b), written("c", c)], attributes)
    };
    refused(&product(&[2, 3], &[4, 5], &[2, 5], &[]), "k = 3 and `b` [4, 5] has k = 4");
    refused(&product(&[2, 3], &[3, 5], &[5, 2], &[]), "`c` has shape [5, 2], expected [2, 5]");
    refused(&product(&[2, 3], &[3, 5], &[2, 5], &[("beta", Value::from(1))]), "declare it under `inouts`");
    refused(
        &product(&[2, 3], &[3, 5], &[2, 5], &[("transpose_a", Value::from(1))]),
        "`transpose_a` is 1, expected true or false",
    );
    refused(
        &product(&[2, 3], &[3, 5], &[2, 5], &[("activation", Value::from("swish"))]),
        "expected one of `none`, `relu`",
    );
    refused(&product(&[3], &[3, 5], &[5], &[]), "`a` has rank 1, expected at least 2");
    let loss = problem("cross_entropy", vec![x(), read("labels", &[4]), written("y", &[])], &[]);
    refused(&loss, "`labels` has dtype f32, expected an integer dtype");
    let conv = |groups: i64| {
        let tensors = vec![read("x", &[1, 4, 5, 5]), read("w", &[6, 2, 3, 3]), written("y", &[1, 6, 3, 3])];
        problem("conv2d", tensors, &[("groups", Value::from(groups))])
    };
    assert_eq!(check(&conv(2)), Ok(()));
    refused(&conv(3), "`groups` is 3, expected a divisor of 4 and of 6");
    refused(&conv(1), "`w` has shape [6, 2, 3, 3], expected [6, 4, 3, 3]");
    let pool = problem("max_pool2d", vec![read("x", &[1, 1, 4, 4]), written("y", &[1, 1, 2, 2])], &[]);
    refused(&pool, "needs `kernel`");
    let attend = |h: u64| {
        vec![read("q", &[1, h, 4, 8]), read("k", &[1, 2, 4, 8]), read("v", &[1, 2, 4, 8]), written("o", &[1, h, 4, 8])]
    };
    assert_eq!(check(&problem("attention", attend(4), &[])), Ok(()));
    refused(&problem("attention", attend(3), &[]), "3 heads of queries over 2 heads of keys");
    refused(
        &problem("transpose", vec![x(), y()], &[("axes", Value::from(vec![0, 0]))]),
        "expected every axis from 0 to 1 once",
    );
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let tensors = vec![read("x", &[4, 8]), read("gamma", &[8]), written("y", &[4, 7])];
    let errors = check(&problem("rms_norm", tensors, &[("epsilon", Value::from(1))])).unwrap_err();
    assert_eq!(errors.faults.len(), 2, "{errors:#?}");
}

#[test]
fn names_of_the_operator_stand_for_those_of_the_builtin() {
    let mut product = problem("matmul", vec![read("x", &[2, 3]), read("w", &[3, 4]), written("y", &[2, 4])], &[]);
    let Reference::Builtin { names, .. } = &mut product.reference else { unreachable!() };
    names.extend([("a", "x"), ("b", "w"), ("c", "y")].map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert_eq!(check(&product), Ok(()));
    let Reference::Builtin { names, .. } = &mut product.reference else { unreachable!() };
    names.insert("bais".into(), "x".into());
    refused(&product, "has neither a tensor nor a setting `bais`; did you mean `bias`?");
    let Reference::Builtin { names, .. } = &mut product.reference else { unreachable!() };
    names.remove("bais");
    names.insert("bias".into(), "z".into());
    refused(&product, "`bias` is mapped to `z`, but the operator has neither");
}

#[test]
fn a_setting_may_be_the_name_of_a_dim_or_param() {
    let pool = |kernel: Value| {
        let tensors = vec![read("x", &[1, 1, 6, 6]), written("y", &[1, 1, 2, 3])];
        let mut pool = problem("max_pool2d", tensors, &[("kernel", kernel)]);
        pool.dims = BTreeMap::from([("KH".into(), 3), ("KW".into(), 2)]);
        pool
    };
    assert_eq!(check(&pool(Value::from(vec!["KH", "KW"]))), Ok(()));
    refused(&pool(Value::from("KW")), "`y` has shape [1, 1, 2, 3], expected [1, 1, 3, 3]");
    refused(&pool(Value::from("KX")), "`kernel` is \"KX\", expected an integer or a list of integers");
    let norm = problem("rms_norm", vec![read("x", &[2, 4]), written("y", &[2, 4])], &[("eps", Value::from("tiny"))]);
    let norm = with_param(norm, "tiny", DType::F32, Scalar::Float(0.5));
    let values = BTreeMap::from([("x".to_owned(), Values::Float(vec![1.0; 8]))]);
    let got = expected(&norm, &values, false).unwrap();
    assert_eq!(got.outputs["y"], Values::Float(vec![1.0 / 1.5f64.sqrt(); 8]));
}

#[test]
fn expressions_say_where_they_are_wrong() {
    for text in ["gelu(x + bias)", "x < bias < 1", "x // 2 if bias > 0 and not x else x % 2"] {
        assert_eq!(check(&expression(text)), Ok(()), "{text}");
    }
    for (text, words) in [
        ("gelu(x + bias", "expected `,` or `)`, found the end at column 14"),
        ("x + * bias", "expected a number, a name, a function or `(`, found `*` at column 5"),
        ("x bias", "expected an operator or the end, found `bias` at column 3"),
        ("gelo(x + bias)", "unknown function `gelo`; did you mean `gelu`? at column 1"),
        ("max(x) + bias", "`max` takes at least 2 arguments, found 1 at column 1"),
        ("pow(x) + bias", "`pow` takes 2 arguments, found 1 at column 1"),
        ("x ^ 2 + bias", "write `**` for a power"),
        ("x + biass", "unknown name `biass` in `x + biass`; did you mean `bias`?"),
        ("x + 1.2.3 * bias", "`1.2.3` is not a number at column 5"),
        ("x $ bias", "unexpected character `$` at column 3"),
        ("x", "no expression uses input `bias`"),
        ("x + y + bias", "reads `y`, an output"),
        ("x < bias <", "expected a number, a name, a function or `(`, found the end at column 11"),
        ("x + bias + 'f16'", "`'f16'` is a string, and elements are numbers at column 12"),
        ("", "found the end at column 1"),
    ] {
        refused(&expression(text), words);
    }
    refused(&expression(&format!("{}x{} + bias", "(".repeat(400), ")".repeat(400))), "nested more than 64 deep");
    refused(&expression(&format!("{}x + bias", "-".repeat(900))), "nested more than 64 deep");
    let narrow = problem("elementwise", vec![read("x", &[2]), written("y", &[2, 3])], &[("y", Value::from("x"))]);
    refused(&narrow, "`x` has shape [2], which does not broadcast to [2, 3]");
    let missing = problem("elementwise", vec![read("x", &[2]), written("y", &[2])], &[("z", Value::from("x"))]);
    refused(&missing, "needs an expression for `y`");
    refused(&missing, "`z` is not an output");
}

#[test]
fn a_sum_is_evaluated_up_to_a_stated_length() {
    let fits = expression(&format!("x{}", " + bias".repeat(499)));
    let values = inputs(&fits, &trial(1, "normal")).unwrap();
    assert!(expected(&fits, &values, true).is_ok());
    refused(&expression(&format!("x{}", " + bias".repeat(100_000))), "200001 words and signs, expected at most 1000");
}

#[test]
fn indices_out_of_range_are_named() {
    let tensors = vec![read("w", &[4, 2]), Tensor::dense("ids", Role::Input, DType::I32, &[3]), written("y", &[3, 2])];
    let embed = problem("embedding", tensors, &[]);
    let mut values: BTreeMap<_, _> = inputs(&embed, &trial(1, "normal")).unwrap();
    values.insert("ids".into(), Values::Int(vec![0, 3, 4]));
    assert_eq!(expected(&embed, &values, false).unwrap_err().to_string(), "`ids`[2] is 4, expected 0 to 3");
    values.insert("ids".into(), Values::Int(vec![0, -1, 2]));
    assert_eq!(expected(&embed, &values, false).unwrap_err().to_string(), "`ids`[1] is -1, expected 0 to 3");
    values.insert("ids".into(), Values::Int(vec![0]));
    assert_eq!(expected(&embed, &values, false).unwrap_err().to_string(), "`ids` has 1 values, expected 3");
    values.remove("ids");
    assert_eq!(expected(&embed, &values, false).unwrap_err().to_string(), "no values for `ids`");
}

#[test]
fn a_param_is_what_a_kernel_gets_not_what_was_written() {
    let tensors =
        vec![Tensor::dense("x", Role::Input, DType::F64, &[1]), Tensor::dense("y", Role::Output, DType::F64, &[1])];
    let scaled = problem("elementwise", tensors, &[("y", Value::from("x * s"))]);
    let scaled = with_param(scaled, "s", DType::F32, Scalar::Float(0.1));
    let values = BTreeMap::from([("x".to_owned(), Values::Float(vec![1.0]))]);
    let got = expected(&scaled, &values, false).unwrap();
    assert_eq!(got.outputs["y"], Values::Float(vec![f64::from(0.1f32)]));
}

#[test]
fn costs_count_work_bytes_and_the_longest_sum() {
    let product = problem("matmul", vec![read("a", &[2, 3, 7]), read("b", &[7, 5]), written("c", &[2, 3, 5])], &[]);
    let found = cost(&product);
    assert_eq!((found.flops, found.bytes), (2.0 * 2.0 * 3.0 * 5.0 * 7.0, 4.0 * (42.0 + 35.0 + 30.0)));
    assert_eq!((reduction_length(&product), work(&product)), (7, 420.0));
    let moved = problem("transpose", vec![read("x", &[6, 4]), written("y", &[4, 6])], &[]);
    assert_eq!((cost(&moved).flops, reduction_length(&moved), work(&moved)), (0.0, 1, 48.0));
    let accumulate = problem(
        "elementwise",
        vec![read("x", &[8]), Tensor::dense("acc", Role::Inout, DType::F16, &[8])],
        &[("acc", Value::from("acc + x * x"))],
    );
    assert_eq!((cost(&accumulate).flops, cost(&accumulate).bytes), (16.0, 8.0 * 4.0 + 2.0 * 8.0 * 2.0));
    let attend = |causal: bool| {
        let tensors = ["q", "k", "v"].map(|name| read(name, &[1, 1, 4, 8])).into_iter();
        problem("attention", tensors.chain([written("o", &[1, 1, 4, 8])]).collect(), &[("causal", Value::from(causal))])
    };
    assert_eq!((cost(&attend(false)).flops, cost(&attend(true)).flops), (2.0 * 16.0 * 16.0, 2.0 * 10.0 * 16.0));
    let own = Problem {
        reference: Reference::Python { file: "r.py".into(), function: "f".into() },
        ..problem("sum", vec![read("x", &[3, 9]), written("y", &[3])], &[])
    };
    assert_eq!((cost(&own).flops, reduction_length(&own), work(&own)), (0.0, 9, 30.0));
    assert_eq!(check(&own), Ok(()));
}
