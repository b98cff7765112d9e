//! No text makes the reader panic.

use proptest::prelude::*;

use super::read;

const EXAMPLES: [&str; 2] = [include_str!("example.toml"), include_str!("everything.toml")];

/// A TOML value of any kind, as text, with the words the manifest uses.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(|i| i.to_string()),
        Just("true".to_string()),
        Just("1.5e300".to_string()),
        Just("nan".to_string()),
        Just("1979-05-27".to_string()),
        Just("0xffffffffffffffffff".to_string()),
        "[a-z_/*%(), 0-9'<>=.+-]{0,16}".prop_map(|s| format!("\"{s}\"")),
        prop::sample::select(vec!["f32", "T", "rows", "auto", "builtin:x", "a.py::f", "sm_90a", "rows / 0"])
            .prop_map(|s| format!("\"{s}\"")),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::btree_map(key(), inner, 0..4).prop_map(|items| {
                let pairs: Vec<String> = items.into_iter().map(|(k, v)| format!("{k} = {v}")).collect();
                format!("{{ {} }}", pairs.join(", "))
            }),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    let known = vec![
        "dims",
        "types",
        "inputs",
        "outputs",
        "shapes",
        "params",
        "dtype",
        "shape",
        "strides",
        "init",
        "value",
        "tolerance",
        "compare",
        "reference",
        "launch",
        "tune",
        "where",
        "args",
        "grid",
        "block",
        "entry",
        "methods",
        "off",
        "sass",
        "any",
        "count",
        "workspace",
        "package",
        "targets",
        "derived",
        "x",
        "T",
        "rows",
        "f32",
        "range",
        "select",
        "per",
        "memset",
    ];
    prop_oneof![4 => prop::sample::select(known).prop_map(String::from), 1 => "[a-z]{1,5}", 1 => "[a-zé \\\\.]{0,4}".prop_map(|s| format!("'{s}'"))]
}

fn table() -> impl Strategy<Value = String> {
    let header = prop::sample::select(vec![
        "[package]",
        "[workspace]",
        "[operator.a]",
        "[operator.a.shapes]",
        "[kernel.a]",
        "[kernel.a.tune]",
        "[[kernel.a.launch]]",
        "[kernel.a.methods.'memory.x']",
        "[targets.a]",
        "[dependencies]",
        "[toolchain]",
        "[operator.a.tolerance]",
    ]);
    (header, prop::collection::btree_map(key(), value(), 0..6)).prop_map(|(header, items)| {
        let lines: Vec<String> = items.into_iter().map(|(k, v)| format!("{k} = {v}\n")).collect();
        format!("{header}\n{}", lines.concat())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_tables_never_panic(tables in prop::collection::vec(table(), 0..6)) {
        read(&tables.concat());
    }

    #[test]
    fn examples_with_a_piece_replaced_never_panic(which in 0usize..2, from in 0.0..1.0f64, len in 0usize..12, text in "[\\PC\n]{0,8}") {
        let example = EXAMPLES[which];
        let floor = |i: usize| (0..=i.min(example.len())).rev().find(|i| example.is_char_boundary(*i)).unwrap();
        let from = floor((from * example.len() as f64) as usize);
        let to = floor(from + len).max(from);
        read(&format!("{}{text}{}", &example[..from], &example[to..]));
    }

    #[test]
    fn examples_with_a_value_replaced_never_panic(which in 0usize..2, pick in any::<prop::sample::Index>(), value in value()) {
        let example = EXAMPLES[which];
        let values: Vec<usize> = example.match_indices(" = ").map(|(at, _)| at + 3).collect();
        let at = values[pick.index(values.len())];
        let end = at + example[at..].find(['\n', ',', '}']).unwrap();
        read(&format!("{}{value}{}", &example[..at], &example[end..]));
    }
}
