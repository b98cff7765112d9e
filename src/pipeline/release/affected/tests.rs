//! A kernel is affected if a step of it, what a step depends on, its declaration or its evidence differs, and by nothing else.

use std::sync::Arc;

use serde_json::json;

use super::*;
use kforge_engine::{InputRef, Rank, Resources, symbolic_keys};
use kforge_types::model;
use kforge_types::record::event::Labels;
use kforge_types::record::{Form, StepKind};

fn nobody() -> Implementations {
    Implementations::default()
}

fn node(id: &str, kind: StepKind, (kernel, target): (Option<&str>, Option<&str>), inputs: &[(&str, Source)]) -> Node {
    let input =
        |(name, source): &(&str, Source)| (name.to_string(), InputRef { source: source.clone(), form: Form::Blob });
    Node {
        id: id.into(),
        labels: Labels {
            package: "p".into(),
            kernel: kernel.map(String::from),
            target: target.map(String::from),
            ..Labels::default()
        },
        rank: Rank { round: 0, phase: 0, wave: 0, kind },
        kind,
        params: json!({}),
        inputs: inputs.iter().map(input).collect(),
        after: vec![],
        resources: Resources::default(),
        product: None,
        time_limit_s: 1,
        unavailable: None,
        expands: false,
        advisory: false,
    }
}

fn file(text: &str) -> Source {
    Source::Blob(Digest::of(text.as_bytes()))
}

fn output(of: &str) -> Source {
    Source::Output { node: of.into(), name: "out".into(), required: true }
}

/// A plan of the kernels with these sources, all of one operator with this reference. Each has a variant for `cpu` and one for `h`.
fn state(kernels: &[(&str, &str)], reference: &str) -> PlannedState {
    let mut nodes = vec![node("p/op/oracle", StepKind::Oracle, (None, None), &[("tree:reference", file(reference))])];
    let mut parts = BTreeMap::new();
    for (kernel, source) in kernels {
        let generate = format!("p/{kernel}/generate");
        nodes.push(node(&generate, StepKind::Generate, (Some(kernel), None), &[("file:k.cu", file(source))]));
        for target in ["cpu", "h"] {
            let of = (Some(*kernel), Some(target));
            let compile = format!("p/{kernel}/{target}/compile");
            nodes.push(node(&compile, StepKind::Compile, of, &[("source", output(&generate))]));
            let reads = [("binary", output(&compile)), ("expected", output("p/op/oracle"))];
            nodes.push(node(&format!("p/{kernel}/{target}/verify"), StepKind::Verify, of, &reads));
        }
        parts.insert(("p".into(), kernel.to_string()), [("kernel.x".to_string(), Digest::of(b"x"))].into());
    }
    let graph = Graph::new(nodes).unwrap();
    PlannedState { keys: symbolic_keys(&graph, &nobody()), graph, parts, records: BTreeMap::new() }
}

fn compare(base: &PlannedState, head: &PlannedState) -> Affected {
    let target = |_: &str, name: &str| Some(AffectedTarget { target: name.into(), arch: "sm_90".into(), device: None });
    affected(base, head, &nobody(), &target, "c0ffee")
}

/// The names of affected kernels, each with its targets, and the text of their reasons.
fn found(affected: &Affected) -> Vec<(String, Vec<String>, Vec<String>)> {
    let all = affected.affected.iter();
    let targets = |of: &AffectedKernel| of.targets.iter().map(|t| t.target.clone()).collect();
    all.map(|of| (of.kernel.clone(), targets(of), of.because.iter().map(Reason::to_string).collect())).collect()
}

#[test]
fn an_edited_source_touches_only_its_kernel_and_the_file_is_named() {
    let base = state(&[("a", "1"), ("b", "1")], "r");
    let same = compare(&base, &state(&[("a", "1"), ("b", "1")], "r"));
    assert_eq!((found(&same), same.unaffected, same.summary()), (vec![], 2, "0 of 2 kernels".into()));
    let edited = compare(&base, &state(&[("a", "1"), ("b", "2")], "r"));
    let because = "the file `k.cu` changed: `p/b/generate`".to_string();
    assert_eq!(found(&edited), [("b".into(), vec!["cpu".into(), "h".into()], vec![because])]);
    assert_eq!((edited.unaffected, edited.base.as_str()), (1, "c0ffee"));
    assert_eq!(edited.text(), "p/b on cpu, h\n  the file `k.cu` changed: `p/b/generate`\n");
}

#[test]
fn what_kernels_share_touches_all_of_them_and_what_only_the_base_has_touches_none() {
    let base = state(&[("a", "1"), ("b", "1")], "r");
    let shared = compare(&base, &state(&[("a", "1"), ("b", "1")], "other"));
    let because = "the source of the reference changed: `p/op/oracle`";
    assert_eq!(found(&shared).iter().map(|of| of.2.clone()).collect::<Vec<_>>(), [[because], [because]]);
    let gone = compare(&base, &state(&[("a", "1")], "r"));
    assert_eq!((gone.affected.len(), gone.unaffected), (0, 1));
}

#[test]
fn a_new_kernel_is_affected_by_its_first_steps() {
    let added = compare(&state(&[("a", "1")], "r"), &state(&[("a", "1"), ("b", "1")], "r"));
    assert_eq!(found(&added), [("b".into(), vec!["cpu".into(), "h".into()], vec!["`p/b/generate` is new".into()])]);
    let all = compare(&PlannedState::default(), &state(&[("a", "1"), ("b", "1")], "r"));
    assert_eq!((all.affected.len(), all.unaffected), (2, 0));
    assert!(all.affected[0].because.iter().all(|reason| reason.code == ReasonCode::New), "{all:?}");
}

#[test]
fn parameters_of_steps_that_differ_alike_are_one_reason() {
    let base = state(&[("a", "1")], "r");
    let head = state(&[("a", "1")], "r");
    let param = |node: &Node| match node.kind {
        StepKind::Compile => Node { params: json!({"std": "c++20"}), ..node.clone() },
        _ => node.clone(),
    };
    let graph = Graph::new(head.graph.nodes().map(param).collect()).unwrap();
    let head = PlannedState { keys: symbolic_keys(&graph, &nobody()), graph, ..head };
    let because = &found(&compare(&base, &head))[0].2;
    assert_eq!(because[..], ["the C++ standard changed: `p/a/cpu/compile`, and 1 step alike"]);
}

#[test]
fn declarations_and_evidence_count_although_no_step_of_the_plan_differs() {
    let base = state(&[("a", "1"), ("b", "1")], "r");
    let mut head = state(&[("a", "1"), ("b", "1")], "r");
    head.parts.get_mut(&("p".into(), "a".into())).unwrap().insert("kernel.x".into(), Digest::of(b"y"));
    let record = |of: &[u8], signed| [(Digest::of(of), signed)].into();
    head.records.insert(["p", "b", "h"].map(String::from), record(b"r", false));
    let declared = ("a".to_string(), vec!["cpu".to_string(), "h".into()], vec!["`kernel.x` changed".to_string()]);
    let evidence = "the evidence for it in the repository changed";
    let all = compare(&base, &head);
    assert_eq!(found(&all), [declared, ("b".into(), vec!["h".into()], vec![evidence.into()])]);
    // The same record, signed now.
    let mut before = state(&[("a", "1"), ("b", "1")], "r");
    before.records.insert(["p", "b", "h"].map(String::from), record(b"r", false));
    let mut after = state(&[("a", "1"), ("b", "1")], "r");
    after.records.insert(["p", "b", "h"].map(String::from), record(b"r", true));
    assert_eq!(found(&compare(&before, &after))[0].0, "b");
    assert_eq!(found(&compare(&before, &before)), []);
}

#[test]
fn comments_and_layout_are_no_part_of_a_declaration() {
    let package = |text: &str| {
        let file = Arc::new(SourceFile { name: "kernel.toml".into(), text: text.into() });
        let (manifest, wrong) = model::parse(&file);
        model::inherit(&manifest.unwrap_or_else(|| panic!("{wrong:?}")), None).0.unwrap()
    };
    let declared = |text: &str| {
        let package = package(text);
        Declarations::default().of(&package.kernels[0], package.operator(&package.kernels[0].operator))
    };
    let text = r#"
        [package]
        name = "p"
        version = "0.1.0"
        [targets.cpu]
        [operator.twice]
        dims = ["n"]
        inputs.x = { dtype = "f32", shape = ["n"] }
        outputs.y = { dtype = "f32", shape = ["n"] }
        reference = { builtin = "elementwise", y = "2 * x" }
        tolerance = { atol = 1e-6, rtol = 1e-6 }
        shapes.five = { n = 5 }
        [kernel.k]
        operator = "twice"
        source = "k.cu"
        launch = [{ entry = "k", grid = ["n"], block = ["32"], args = ["x", "y", "n"] }]
    "#;
    let base = declared(text);
    assert_eq!(base.keys().collect::<Vec<_>>(), ["kernel.k", "operator.twice"]);
    assert_eq!(declared(&text.replace("[kernel.k]", "# A comment.\n\n[kernel.k]")), base);
    let other = declared(&text.replace("[\"32\"]", "[\"64\"]"));
    assert_eq!(other["operator.twice"], base["operator.twice"]);
    assert_ne!(other["kernel.k"], base["kernel.k"]);
}
