//! Properties: every file of a dataset is kept as it is, whatever it holds beside what kforge reads, and what kforge reads is what was written.

use proptest::prelude::*;

use super::*;

/// A value as it may stand under a key that kforge does not read.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |x| x.is_finite()).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9_]{0,8}"
        .prop_filter("a manifest has other uses for it", |name| crate::source::import::naming::is_usable(name))
}

/// An object as text, with its keys in the order given, in one line or over several.
fn object(entries: &[(String, String)], wide: bool) -> String {
    let (gap, end) = if wide { ("\n  ", "\n") } else { (" ", " ") };
    let parts: Vec<String> = entries.iter().map(|(key, value)| format!("{gap}{}: {value}", json!(key))).collect();
    format!("{{{}{end}}}", parts.join(","))
}

/// A definition, its workloads and a solution as texts, and what they say.
#[derive(Debug, Clone)]
struct Made {
    definition: String,
    workloads: String,
    traces: String,
    solution: String,
    axes: Vec<(String, Option<u64>)>,
    inputs: Vec<String>,
    uuids: Vec<String>,
    is_custom: bool,
}

fn made() -> impl Strategy<Value = Made> {
    let names =
        prop::collection::btree_set(name(), 3..8).prop_map(|all| all.into_iter().collect::<Vec<_>>()).prop_shuffle();
    let uuids = prop::collection::btree_set("[a-z0-9]{1,8}-[0-9]{1,4}", 1..4);
    let kinds = prop::collection::vec(prop::option::of(0u64..10_000), 8);
    let ways = (any::<bool>(), any::<bool>(), 0..3usize);
    (names, uuids, kinds, anything(), anything(), ways).prop_map(
        |(names, uuids, kinds, extra, other, (wide, is_custom, blanks))| {
            let (tensors, axes) = names.split_at(names.len() / 2);
            let axes: Vec<(String, Option<u64>)> = axes.iter().cloned().zip(kinds).collect();
            let (output, inputs) = tensors.split_last().unwrap();
            let inputs = inputs.to_vec();
            let unread = |key: &str| (key.to_string(), extra.to_string());
            let of_axis = |(name, value): &(String, Option<u64>)| {
                let kind = match value {
                    Some(value) => format!("{{\"value\": {value}, \"type\": \"const\", \"x-note\": {other}}}"),
                    None => "{\"type\": \"var\"}".to_string(),
                };
                (name.clone(), kind)
            };
            let shape: Vec<&str> = axes.iter().map(|(name, _)| name.as_str()).collect();
            let spec = format!("{{\"dtype\": \"float32\", \"shape\": {}, \"x-more\": {extra}}}", json!(shape));
            let run = format!(
                "def draw(axes, device):\n    return {{}}\n\n\ndef run({}):\n    return 1\n",
                inputs.join(", ")
            );
            let draw = json!(is_custom.then_some("draw")).to_string();
            let map = |names: &[String]| {
                object(&names.iter().map(|name| (name.clone(), spec.clone())).collect::<Vec<_>>(), wide)
            };
            let definition = object(
                &[
                    unread("x-first"),
                    ("outputs".into(), map(std::slice::from_ref(output))),
                    ("name".into(), "\"made\"".into()),
                    ("inputs".into(), map(&inputs)),
                    ("reference".into(), json!(run).to_string()),
                    ("axes".into(), object(&axes.iter().map(of_axis).collect::<Vec<_>>(), wide)),
                    ("custom_inputs_entrypoint".into(), draw),
                    unread("x-last"),
                ],
                wide,
            );
            let bound: Vec<(String, String)> = axes
                .iter()
                .filter(|(_, value)| value.is_none())
                .map(|(name, _)| (name.clone(), "7".to_string()))
                .collect();
            let kind = if is_custom { "custom" } else { "random" };
            let random: Vec<(String, String)> =
                inputs.iter().map(|name| (name.clone(), format!("{{\"type\": \"{kind}\", \"x\": {other}}}"))).collect();
            let line = |uuid: &String, rest: &str| {
                let workload = object(
                    &[
                        unread("x"),
                        ("uuid".into(), json!(uuid).to_string()),
                        ("inputs".into(), object(&random, false)),
                        ("axes".into(), object(&bound, false)),
                    ],
                    false,
                );
                let trace = [("definition".into(), "\"made\"".into()), ("workload".into(), workload)];
                let mut text = object(&trace, false);
                text.pop();
                format!("{text}, {rest}}}{}", "\n".repeat(1 + blanks))
            };
            let uuids: Vec<String> = uuids.into_iter().collect();
            let workloads = uuids.iter().map(|uuid| line(uuid, "\"solution\": null, \"evaluation\": null")).collect();
            let done = format!("\"solution\": \"s\", \"evaluation\": {{\"status\": \"PASSED\", \"x\": {other}}}");
            let traces = uuids.iter().map(|uuid| line(uuid, &done)).collect();
            let spec = format!("{{\"language\": \"cuda\", \"entry_point\": \"k.cu::f\", \"x\": {other}}}");
            let source = format!("[{{\"content\": {}, \"path\": \"k.cu\", \"x\": {extra}}}]", json!("// \u{e9}\n"));
            let solution = object(
                &[
                    ("author".into(), "\"a\"".into()),
                    ("definition".into(), "\"made\"".into()),
                    ("spec".into(), spec),
                    ("sources".into(), source),
                    unread("x"),
                    ("name".into(), "\"s\"".into()),
                ],
                wide,
            );
            Made { definition, workloads, traces, solution, axes, inputs, uuids, is_custom }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn files_are_kept_byte_by_byte_and_read_as_they_were_written(made in made(), nested in any::<bool>()) {
        let all = if nested {
            files(&[
                ("definitions/x/made.json", made.definition.clone()),
                ("workloads/x/made.jsonl", made.workloads.clone()),
                ("solutions/a/x/made/s.json", made.solution.clone()),
                ("traces/a/x/made.jsonl", made.traces.clone()),
            ])
        } else {
            files(&[
                ("made/definition.json", made.definition.clone()),
                ("made/workload.jsonl", made.workloads.clone()),
                ("made/solution_s.json", made.solution.clone()),
                ("made/trace.jsonl", made.traces.clone()),
            ])
        };
        let (sets, strays) = sets(&all);
        prop_assert_eq!((sets.len(), &strays[..]), (1, &[][..]));
        prop_assert_eq!(&sets[0].files, &all);
        let parts = sets[0].parts.as_ref().map_err(|why| TestCaseError::fail(format!("{why:?}")))?;
        let axes: Vec<(String, Option<u64>)> = parts.definition.axes.iter().map(|(name, axis)| match axis {
            Axis::Const(value) => (name.clone(), Some(*value)),
            _ => (name.clone(), None),
        }).collect();
        prop_assert_eq!(axes, made.axes);
        let inputs: Vec<String> = parts.definition.inputs.iter().map(|(name, _)| name.clone()).collect();
        prop_assert_eq!(inputs, made.inputs);
        let uuids: Vec<String> = parts.workloads.iter().map(|workload| workload.uuid.clone()).collect();
        prop_assert_eq!((parts.traces, uuids), (made.uuids.len(), made.uuids));
        prop_assert_eq!(parts.definition.makes_inputs.as_deref(), made.is_custom.then_some("draw"));
        let from = if made.is_custom { InputFrom::Custom } else { InputFrom::Random };
        prop_assert!(parts.workloads.iter().flat_map(|workload| &workload.inputs).all(|(_, own)| *own == from));
        prop_assert_eq!(&parts.solutions[0].1.sources[0].1, "// \u{e9}\n");
    }

    #[test]
    fn no_text_ends_the_program(text in ".{0,200}", at in 0..4usize) {
        let path = ["definitions/x/a.json", "workloads/x/a.jsonl", "solutions/a/x/a/s.json", "traces/a/x/a.jsonl"][at];
        let mut all = dataset(&gemm(), &line(workload("a")), &[]);
        all.insert(path.into(), text);
        let (sets, strays) = sets(&all);
        prop_assert_eq!(sets.iter().map(|set| set.files.len()).sum::<usize>() + strays.len(), all.len());
    }
}
