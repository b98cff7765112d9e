//! The meaning of expressions for elements; it must be the same as for scalars.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Element, exact, formula, is_exact, magnitude, operations, value};
use kforge_foundation::base::SourceFile;
use kforge_types::model::Place;
use kforge_types::model::expr::functions::{FUNCTIONS, named};
use kforge_types::model::expr::{Arithmetic, Expr, LONGEST, Scope, Value, Want};

const NAMES: [(&str, i64); 3] = [("a", 7), ("b", -3), ("c", 2)];

/// The value of `text` as an element, with the names' values from `NAMES`.
fn element(text: &str) -> f64 {
    let formula = formula(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let of = |name: usize| NAMES.iter().find(|n| n.0 == formula.names[name]).unwrap().1 as f64;
    value(&formula.root, &of)
}

fn integer(text: &str) -> Option<i128> {
    let formula = formula(text).unwrap();
    let of = |name: usize| i128::from(NAMES.iter().find(|n| n.0 == formula.names[name]).unwrap().1);
    is_exact(&formula.root).then(|| exact(&formula.root, &of))
}

/// The value of `text` as a scalar; a truth value is 1 or 0.
fn scalar(text: &str, want: Want) -> Option<Value> {
    let file = Arc::new(SourceFile { name: "k".into(), text: format!("\"{text}\"") });
    let expr = Expr::parse(text, want, Place::new(&file, 0..text.len() + 2)).ok()?;
    let scope: Scope = NAMES.map(|(name, value)| (name.to_owned(), Value::Int(value))).into();
    Some(match expr.value(&scope).ok()? {
        Value::Bool(truth) => Value::Int(truth.into()),
        other => other,
    })
}

fn float(value: &Value) -> f64 {
    match value {
        Value::Int(int) => *int as f64,
        Value::Float(float) => *float,
        other => panic!("{other} is not a number"),
    }
}

#[test]
fn an_expression_keeps_its_structure_and_its_names() {
    let sum = |a, b| Element::Arithmetic(Arithmetic::Add, Box::new([Element::Name(a), Element::Name(b)]));
    let gelu = formula("gelu(x + b)").unwrap();
    assert_eq!(gelu.root, Element::Call(named("gelu").unwrap(), vec![sum(0, 1)]));
    assert_eq!(gelu.names, ["x", "b"]);
    let square = Element::Arithmetic(Arithmetic::Power, Box::new([Element::Name(0), Element::Number(2.0)]));
    assert_eq!(formula("-x ** 2").unwrap().root, Element::Negate(Box::new(square)));
    assert_eq!(formula("where(x, 1, 0)").unwrap(), formula("1 if (x) else 0").unwrap());
    assert!(formula("gelu(x").is_err());
}

#[test]
fn a_text_means_the_same_for_scalars_and_for_elements() {
    for (text, expected) in [
        ("a + b * c", 1.0),
        ("a // c", 3.0),
        ("b // c", -2.0),
        ("b % c", 1.0),
        ("a % -4", 3.0),
        ("-c ** 2", -4.0),
        ("2 ** 3 ** 2", 512.0),
        ("b < c < a", 1.0),
        ("a < c < a", 0.0),
        ("a if c > 2 else b", -3.0),
        ("not a or b < 0 and c == 2", 1.0),
        ("a and c", 2.0),
        ("0 or b", -3.0),
        ("where(a > b, a, b)", 7.0),
        ("clamp(a, -1, 5)", 5.0),
        ("ceil_div(a, c)", 4.0),
        ("ceil_div(b, c)", -1.0),
        ("min(a, b, c) + max(a, b, c)", 4.0),
        ("abs(b) + relu(b) + sign(b)", 2.0),
        ("sizeof('f16') + sizeof('f64')", 10.0),
        ("true", 1.0),
        ("1_000 + .5 * 2.", 1001.0),
    ] {
        assert_eq!(element(text), expected, "{text}");
        assert_eq!(scalar(text, Want::Any).map(|v| float(&v)), Some(expected), "{text}");
        if let Some(int) = integer(text) {
            assert_eq!(int as f64, expected, "{text}");
        }
    }
    assert_eq!(element("a / c"), 3.5);
    assert_eq!(scalar("a / c", Want::Float), Some(Value::Float(3.5)));
}

#[test]
fn every_function_gives_the_same_bits_for_scalars_and_for_elements() {
    for function in &FUNCTIONS {
        let text = match (function.name, function.arity) {
            ("sizeof", _) => "sizeof('f16')".to_owned(),
            (name, 1) => format!("{name}(a / 3)"),
            ("ceil_div", _) => "ceil_div(a, c)".to_owned(),
            (name, 2) => format!("{name}(a / 3, b / 7)"),
            (name, _) => format!("{name}(a / 3, b / 7, c / 3)"),
        };
        // Powers have a positive base, and all other functions get numbers that they are defined for.
        let found = scalar(&text, Want::Float).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(float(&found).to_bits(), element(&text).to_bits(), "{text}");
    }
}

#[test]
fn a_truth_value_is_a_number_of_elements_only() {
    assert_eq!(element("(a < b) + 2 * (a != b)"), 2.0);
    assert_eq!(scalar("(a < b) + 2 * (a != b)", Want::Any), None);
}

#[test]
fn what_makes_no_element_is_said_where_it_stands() {
    for (text, words, at) in [
        ("a + 'f16'", "`'f16'` is a string, and elements are numbers at column 5 of `a + 'f16'`", 4..9),
        ("a == 'f16'", "is a string", 5..10),
        ("sizeof(T)", "`sizeof` takes a dtype in quotes here, such as `'f16'` at column 8", 7..8),
        ("sizeof('half')", "`sizeof` takes a dtype", 7..13),
        ("a + gelo(b)", "unknown function `gelo`; did you mean `gelu`? at column 5", 4..8),
        ("a +", "found the end at column 4", 3..3),
    ] {
        let error = formula(text).unwrap_err();
        assert!(error.to_string().contains(words), "{text}: {error}");
        assert_eq!(error.at, at, "{text}");
    }
}

#[test]
fn integers_stay_exact_beyond_the_floats() {
    let big = i128::from(i64::MAX);
    let at = |text: &str| {
        let formula = formula(text).unwrap();
        assert!(is_exact(&formula.root), "{text}");
        exact(&formula.root, &|_| big)
    };
    assert_eq!(at("x // 2"), big / 2);
    assert_eq!(at("x % 10"), big % 10);
    assert_eq!(at("ceil_div(x, 2)"), big / 2 + 1);
    assert_eq!(at("x if x > 0 and not x == 1 else 0"), big);
    for text in ["x / 2", "x ** 2", "x // y", "x % 0", "float(x)", "x * 0.5", "floor(x)"] {
        assert!(!is_exact(&formula(text).unwrap().root), "{text}");
    }
}

#[test]
fn scales_and_operations_are_those_of_the_part_that_counts() {
    let of = |text: &str| formula(text).unwrap().root;
    let x = |_: usize| -3.0;
    assert_eq!(magnitude(&of("x + 1 - 2"), &x), 6.0);
    assert_eq!(magnitude(&of("(x - 1) if x < 0 else 9"), &x), 4.0);
    assert_eq!(magnitude(&of("x and x - 1"), &x), 4.0);
    assert_eq!(magnitude(&of("max(x + 1, 2, x - x)"), &x), 6.0);
    assert_eq!(magnitude(&of("float(x - 1)"), &x), 4.0);
    assert_eq!(magnitude(&of("x // 2"), &x), 2.0);
    assert_eq!(operations(&of("0 < x < 2")), 2);
    assert_eq!(operations(&of("not x or gelu(-x) + float(x)")), 5);
}

#[test]
fn the_longest_expression_is_evaluated() {
    let text = format!("a{}", " - b".repeat((LONGEST - 1) / 2));
    let terms = ((LONGEST - 1) / 2) as f64;
    assert_eq!(element(&text), 7.0 + 3.0 * terms);
    assert_eq!(scalar(&text, Want::Any).map(|v| float(&v)), Some(7.0 + 3.0 * terms));
}

/// Texts without a division, for which a scalar and an element may differ only by the errors of scalars.
fn texts() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec!["a", "b", "c", "0", "1", "5"]).prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), prop::sample::select(vec!["+", "-", "*", "//", "%"]), inner.clone())
                .prop_map(|(a, sign, b)| format!("({a} {sign} {b})")),
            (
                inner.clone(),
                prop::sample::select(vec!["<", "<=", "==", "!="]),
                inner.clone(),
                inner.clone(),
                inner.clone()
            )
                .prop_map(|(a, sign, b, c, d)| format!("({c} if {a} {sign} {b} else {d})")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("clamp({a}, min({b}, {c}), max({b}, {c}))")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("where({a}, {b}, abs(-{a}))")),
        ]
    })
}

proptest! {
    #[test]
    fn a_scalar_that_has_a_value_is_the_element(text in texts()) {
        if let Some(found) = scalar(&text, Want::Any).map(|v| float(&v)).filter(|f| f.abs() < 1e15) {
            prop_assert_eq!(element(&text), found, "{}", &text);
            if let Some(int) = integer(&text) {
                prop_assert_eq!(int as f64, found, "{}", &text);
            }
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,24}") {
        if let Ok(formula) = formula(&text) {
            value(&formula.root, &|_| 1.5);
            magnitude(&formula.root, &|_| 1.5);
            operations(&formula.root);
        }
    }
}
