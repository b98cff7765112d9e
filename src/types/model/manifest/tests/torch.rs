//! References in PyTorch: what they become at a shape, and what is refused where it stands.

use super::{error, package, read, show, under};
use crate::model::{Reference, TorchSpec};
use serde_json::json;

/// A manifest with this reference, and these lines before the operator.
fn with(reference: &str, lines: &str) -> String {
    format!(
        "[package]\nname = \"t\"\n{lines}\n[operator.o]\ndims = [\"n\"]\nderived = {{ half = \"n / 2\" }}\n\
         inputs.x = {{ dtype = \"f32\", shape = [\"n\"] }}\ninputs.w = {{ dtype = \"f32\", shape = [\"n\"] }}\n\
         outputs.y = {{ dtype = \"f32\", shape = [\"n\"] }}\nparams.eps = {{ dtype = \"f32\", value = 0.5 }}\n\
         reference = {{ torch = \"task.py::Model\"{reference} }}\nshapes.s = {{ n = 100 }}\nshapes.t = {{ n = 8, eps = 0.25 }}\n"
    )
}

#[test]
fn the_values_of_a_call_are_those_of_the_shape() {
    let text = with(
        ", init = [\"n\", 2.5, true, [\"half\", 3], \"'relu'\", inf], constants = { N = \"2 * n\", \"sub.helpers.K\" = 3, shape = [\"n\"] }, \
         state = { \"fc.weight\" = \"w\", \"fc.count\" = false }, names = { hidden = \"x\", scale = \"eps\" }, mode = \"train\", casts = \"keep\"",
        "",
    );
    let package = package(&text);
    let operator = &package.operators[0];
    let bound = |shape: &str| {
        let problem = operator.bind(&operator.choices()[0], operator.shape(shape).unwrap()).unwrap();
        let Reference::Torch { file, function, call } = problem.reference else { panic!("no reference in PyTorch") };
        assert_eq!((file.as_str(), function.as_str()), ("task.py", "Model"));
        call
    };
    let call = bound("s");
    assert_eq!(
        call.init,
        [json!(100), json!(2.5), json!(true), json!([50, 3]), json!({ "text": "relu" }), json!({ "float": "inf" })]
    );
    assert_eq!(
        call.constants,
        [("N".into(), json!(200)), ("shape".into(), json!([100])), ("sub.helpers.K".into(), json!(3))].into()
    );
    assert_eq!(call.state, [("fc.weight".into(), Some("w".into())), ("fc.count".into(), None)].into());
    assert_eq!(call.names, [("hidden".into(), "x".into()), ("scale".into(), "eps".into())].into());
    assert!(call.train && call.keeps_casts);
    assert_eq!(bound("t").constants["N"], json!(16));
    let by_name = with(", init = { features = \"n\", p = 0 }", "");
    let package = super::package(&by_name);
    let operator = &package.operators[0];
    let problem = operator.bind(&operator.choices()[0], operator.shape("t").unwrap()).unwrap();
    let Reference::Torch { call, .. } = problem.reference else { panic!("no reference in PyTorch") };
    assert_eq!(call.keywords, [("features".into(), json!(8)), ("p".into(), json!(0))].into());
    assert!(!call.train && !call.keeps_casts);
}

#[test]
fn names_that_the_operator_lacks_are_refused_where_they_stand() {
    for (reference, code, at, says) in [
        (", init = [\"m\"]", "manifest.unknown-name", "m", "unknown name `m`"),
        (", constants = { N = \"m\" }", "manifest.unknown-name", "m", "unknown name `m`"),
        (", state = { weight = \"v\" }", "manifest.unknown-tensor", "\"v\"", "not a tensor of the operator"),
        (", state = { weight = \"eps\" }", "manifest.unknown-tensor", "\"eps\"", "not a tensor of the operator"),
        (", state = { a = \"w\", b = \"w\" }", "manifest.duplicate-name", "\"w\"", "each tensor once"),
        (", state = { a = true }", "manifest.value", "true", "`false` if no tensor gives it"),
        (", names = { a = \"z\" }", "manifest.unknown-tensor", "\"z\"", "a tensor, param or dim"),
        (", mode = \"test\"", "manifest.value", "\"test\"", "eval"),
        (", inti = [1]", "manifest.unknown-key", "inti", "did you mean `init`"),
    ] {
        let text = with(reference, "");
        let (_, _, found) = read(&text);
        let shown: Vec<String> = found.iter().map(show).collect();
        let error = found.iter().find(|d| d.code == code).unwrap_or_else(|| panic!("{says}: {shown:?}"));
        assert_eq!(under(error).trim_matches('"'), at.trim_matches('"'), "{says}: {shown:?}");
        assert!(shown.iter().any(|text| text.contains(says)), "{says}: {shown:?}");
    }
    let wrong = with("", "").replace("task.py::Model", "task.cpp::Model");
    assert_eq!(error(&wrong).code, "manifest.function");
}

#[test]
fn a_package_states_its_torch() {
    let of = |lines: &str| package(&with("", lines)).toolchain.torch;
    assert_eq!(of(""), None);
    assert_eq!(of("[toolchain]\ntorch = \"system\""), Some(TorchSpec::System));
    let release = |cuda| Some(TorchSpec::Release { release: "2.9.1".into(), cuda });
    assert_eq!(of("[toolchain]\ntorch = \"2.9.1\""), release(false));
    assert_eq!(of("[toolchain]\ntorch = { release = \"2.9.1\" }"), release(false));
    assert_eq!(of("[toolchain]\ntorch = { release = \"2.9.1\", cuda = false }"), release(false));
    assert_eq!(of("[toolchain.torch]\nrelease = \"2.9.1\"\ncuda = true"), release(true));
    for wrong in ["1.13", "2", "latest", "2.9.1.0"] {
        for form in [format!("\"{wrong}\""), format!("{{ release = \"{wrong}\" }}")] {
            let found = error(&with("", &format!("[toolchain]\ntorch = {form}")));
            assert_eq!(
                (found.code, under(&found)),
                ("manifest.version", format!("\"{wrong}\"").as_str()),
                "{}",
                show(&found)
            );
        }
    }
    let of_table = |table: &str| error(&with("", &format!("[toolchain]\ntorch = {table}")));
    let system = of_table("{ release = \"system\", cuda = true }");
    assert_eq!((system.code, under(&system)), ("manifest.version", "\"system\""), "{}", show(&system));
    for (table, code, says) in [
        ("{ cuda = true }", "manifest.missing-key", "lacks `release`"),
        ("{ release = \"2.9\", cuda = \"12.8\" }", "manifest.type", "cuda"),
        ("{ release = \"2.9\", cudda = true }", "manifest.unknown-key", "did you mean `cuda`"),
    ] {
        let found = of_table(table);
        assert_eq!(found.code, code, "{}", show(&found));
        assert!(show(&found).contains(says), "{}", show(&found));
    }
}
