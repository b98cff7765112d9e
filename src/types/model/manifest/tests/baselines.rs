//! Baselines: what each table becomes, which operators it suits, and what is refused where it stands.

use super::{error, package, show, under};
use crate::model::Operator;
use crate::model::baseline::{How, Product};
use crate::model::{Package, Reference, Role};

/// A manifest with a reference in PyTorch, a product and a sum, and these lines.
fn with(lines: &str) -> String {
    let operator = |name: &str, inputs: &str, reference: &str| {
        format!(
            "[operator.{name}]\ndims = [\"n\"]\n{inputs}outputs.y = {{ dtype = \"f32\", shape = [\"n\", \"n\"] }}\nreference = {reference}\nshapes.s = {{ n = 8 }}\n"
        )
    };
    let input = |name: &str| format!("inputs.{name} = {{ dtype = \"f32\", shape = [\"n\", \"n\"] }}\n");
    format!(
        "[package]\nname = \"t\"\n{}{}{}{lines}",
        operator("module", &input("x"), "{ torch = \"task.py::Model\" }"),
        operator(
            "product",
            &(input("u") + &input("b")),
            "{ builtin = \"matmul\", transpose_b = true, names = { a = \"u\", c = \"y\" } }"
        ),
        operator("twice", &input("x"), "{ builtin = \"elementwise\", y = \"2 * x\" }"),
    )
}

fn of(package: &Package, operator: &str) -> Vec<String> {
    let operator = package.operator(operator).unwrap();
    package.baselines.iter().filter(|baseline| baseline.is_of(operator)).map(|baseline| baseline.name.clone()).collect()
}

#[test]
fn a_baseline_is_of_each_operator_that_it_suits_or_of_the_one_that_it_names() {
    let package = package(&with(
        "[baseline.eager]\n[baseline.compile]\n[baseline.tuned]\nhow = \"compile\"\nmode = \"max-autotune\"\n[baseline.cudagraph]\n[baseline.cublas]\n\
         [baseline.own]\nsource = \"fast.py::twice\"\noperator = \"twice\"\n[baseline.own_graph]\nhow = \"cudagraph\"\nsource = \"fast.py::twice\"\noperator = \"product\"\n",
    ));
    assert_eq!(of(&package, "module"), ["eager", "compile", "tuned", "cudagraph"]);
    assert_eq!(of(&package, "product"), ["cublas", "own_graph"]);
    assert_eq!(of(&package, "twice"), ["own"]);
    let named = |name: &str| package.baselines.iter().find(|baseline| baseline.name == name).unwrap();
    assert_eq!((named("own").how, named("tuned").how), (How::Eager, How::Compile));
}

#[test]
fn a_product_names_its_operands_and_how_they_are_stored() {
    let of = |operator: &Operator| {
        let inputs = operator.tensors.iter().filter(|tensor| tensor.role == Role::Input);
        Product::of(&operator.reference, &inputs.map(|tensor| tensor.name.as_str()).collect::<Vec<_>>())
    };
    let package = package(&with(""));
    let product = of(package.operator("product").unwrap()).unwrap();
    assert_eq!(product.operands, [("a".into(), "u".into()), ("b".into(), "b".into())].into());
    assert_eq!(product.transposed, ["b"]);
    assert_eq!(of(package.operator("twice").unwrap()), None);
    let scaled = Reference::builtin("matmul", &[("alpha", 2.into())]);
    assert_eq!(Product::of(&scaled, &["a", "b"]), None, "cuBLAS alone does not compute the rest");
    assert_eq!(Product::of(&Reference::builtin("matmul", &[]), &["a", "b", "bias"]), None);
}

#[test]
fn what_cannot_run_is_refused_where_it_stands() {
    let kernel = "[kernel.k]\noperator = \"twice\"\nsource = \"k.cu\"\nlaunch = [{ entry = \"k\", grid = [1], block = [1], args = [\"x\", \"y\"] }]\n";
    let clash = format!("{kernel}[baseline.k]\nsource = \"fast.py::f\"\noperator = \"twice\"\n");
    for (lines, code, at, says) in [
        ("[baseline.mine]\n", "manifest.missing-key", "mine", "does not say what runs"),
        ("[baseline.eager]\nmode = \"default\"\n", "manifest.conflict", "\"default\"", "not compiled"),
        (
            "[baseline.cublas]\nsource = \"f.py::f\"\noperator = \"twice\"\n",
            "manifest.conflict",
            "\"f.py::f\"",
            "cuBLAS and a function",
        ),
        (
            "[baseline.own]\nsource = \"f.cpp::f\"\noperator = \"twice\"\n",
            "manifest.function",
            "\"f.cpp::f\"",
            "file.py",
        ),
        ("[baseline.own]\nsource = \"f.py::f\"\n", "manifest.baseline", "own", "does not say for which operator"),
        ("[baseline.eager]\noperator = \"twice\"\n", "manifest.baseline", "eager", "does not suit operator `twice`"),
        ("[baseline.eager]\noperator = \"twise\"\n", "manifest.unknown-operator", "\"twise\"", "did you mean `twice`"),
        ("[baseline.cublas]\noperator = \"module\"\n", "manifest.baseline", "cublas", "built-in `matmul`"),
        (
            "[baseline.declared]\nsource = \"f.py::f\"\noperator = \"twice\"\n",
            "manifest.name",
            "declared",
            "declared first",
        ),
        ("[baseline.eager]\nhow = \"fast\"\n", "manifest.value", "\"fast\"", "cudagraph"),
        ("[baseline.compile]\nmode = \"quick\"\n", "manifest.value", "\"quick\"", "max-autotune"),
        ("[baseline.eager]\nsorce = \"f.py::f\"\n", "manifest.unknown-key", "sorce", "did you mean `source`"),
        (clash.as_str(), "manifest.duplicate-name", "k", "both a kernel and a baseline"),
    ] {
        let found = error(&with(lines));
        assert_eq!((found.code, under(&found)), (code, at), "{lines}: {}", show(&found));
        assert!(show(&found).contains(says), "{lines}: {}", show(&found));
    }
}
