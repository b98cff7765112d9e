//! What the expression language promises: exact integers, strict kinds, errors with their places.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Expr, Node, Scope, Value, Want, parse};
use crate::model::Place;
use kforge_foundation::base::{Diagnostic, SourceFile};

fn scope() -> Scope {
    let values = [
        ("rows", Value::Int(7)),
        ("cols", Value::Int(256)),
        ("huge", Value::Int(i64::MAX)),
        ("least", Value::Int(i64::MIN)),
        ("eps", Value::Float(0.5)),
        ("fast", Value::Bool(true)),
        ("T", Value::Str("f16".into())),
    ];
    values.map(|(name, value)| (name.to_string(), value)).into()
}

/// The expression as the only string of a manifest.
fn expr(text: &str, want: Want) -> Result<Expr, Diagnostic> {
    let file = Arc::new(SourceFile { name: "k".into(), text: format!("grid = [\"{text}\"]\n") });
    let span = 8..8 + text.len() + 2;
    Expr::parse(text, want, Place::new(&file, span))
}

fn eval(text: &str, want: Want) -> Result<Value, Diagnostic> {
    let expr = expr(text, want)?;
    let scope = scope();
    match want {
        Want::Int => expr.int(&scope).map(Value::Int),
        Want::Float => expr.float(&scope).map(Value::Float),
        Want::Bool => expr.truth(&scope).map(Value::Bool),
        Want::Any => expr.value(&scope),
    }
}

/// The code of an error and the text under it.
fn wrong(text: &str, want: Want) -> (&'static str, String) {
    let error = eval(text, want).expect_err(text);
    let label = &error.labels[0];
    (error.code, label.file.text[label.span.clone()].to_string())
}

#[test]
fn spaces_around_a_name_are_no_part_of_it() {
    for text in [" rows", "rows ", "  rows  "] {
        assert_eq!(eval(text, Want::Any).unwrap(), Value::Int(7), "`{text}`");
        assert_eq!(expr(text, Want::Any).unwrap().as_name(), Some("rows"), "`{text}`");
    }
    assert_eq!(expr("rows + 1", Want::Any).unwrap().as_name(), None);
}

#[test]
fn integers_are_exact() {
    let int = |text: &str| eval(text, Want::Int).unwrap();
    for (text, value) in [
        ("rows", 7),
        ("1_000", 1000),
        ("cols / 2 / 4 * rows", 224),
        ("ceil_div(rows * cols, 1000)", 2),
        ("ceil_div(-7, 2)", -3),
        ("-7 // 2", -4),
        ("-7 % 4", 1),
        ("min(rows, cols, 3) + max(2, rows)", 10),
        ("2 ** 10 - 2 ** 3 / 4", 1022),
        ("cols if rows > 6 and not rows == 8 else 0", 256),
        ("sizeof(T) * sizeof('f64')", 16),
        ("abs(-3)", 3),
        ("(huge - 1) / 2", i64::MAX / 2),
        ("huge // 2 * 2 + 1", i64::MAX),
        ("1 if T == 'f16' else 2", 1),
    ] {
        assert_eq!(int(text), Value::Int(value), "{text}");
    }
}

#[test]
fn floats_and_truth_values_divide_as_numbers_do() {
    assert_eq!(eval("1 / sqrt(float(cols))", Want::Float), Ok(Value::Float(0.0625)));
    assert_eq!(eval("rows / 2", Want::Float), Ok(Value::Float(3.5)));
    assert_eq!(eval("floor(eps * 3) + ceil(0.1) + log2(cols)", Want::Float), Ok(Value::Float(10.0)));
    assert_eq!(eval("1e-6", Want::Float), Ok(Value::Float(1e-6)));
    assert_eq!(eval("3 < rows <= 7 and rows / 2 > 3", Want::Bool), Ok(Value::Bool(true)));
    assert_eq!(eval("not fast or T != 'f32'", Want::Bool), Ok(Value::Bool(true)));
}

#[test]
fn what_is_not_a_whole_number_is_refused() {
    assert_eq!(wrong("cols * rows / 3", Want::Int), ("manifest.remainder", "/".into()));
    assert_eq!(wrong("rows / 2 * 2", Want::Int), ("manifest.remainder", "/".into()));
    assert_eq!(wrong("eps", Want::Int), ("manifest.not-integer", "eps".into()));
    assert_eq!(wrong("eps * 2", Want::Int), ("manifest.not-integer", "eps * 2".into()));
    assert_eq!(wrong("rows > 2", Want::Int), ("manifest.not-integer", "rows > 2".into()));
    assert_eq!(wrong("fast", Want::Int), ("manifest.not-integer", "fast".into()));
    assert_eq!(wrong("rows", Want::Bool), ("manifest.kind", "rows".into()));
}

#[test]
fn truth_values_and_strings_are_not_numbers() {
    assert_eq!(wrong("fast + 1", Want::Int), ("manifest.kind", "fast".into()));
    assert_eq!(wrong("2 * T", Want::Int), ("manifest.kind", "T".into()));
    assert_eq!(wrong("-fast", Want::Int), ("manifest.kind", "fast".into()));
    assert_eq!(wrong("min(fast, 1)", Want::Int).0, "manifest.kind");
    assert_eq!(wrong("true + 1", Want::Int), ("manifest.expression", "true".into()));
    assert_eq!(wrong("2 * (rows == 7)", Want::Int), ("manifest.expression", "(rows == 7)".into()));
    assert_eq!(wrong("((fast)) + 1", Want::Int), ("manifest.kind", "fast".into()));
    assert_eq!(wrong("(rows if rows > 9 else fast) + 1", Want::Int), ("manifest.kind", "fast".into()));
    assert_eq!(eval("(rows if fast else cols) + 1", Want::Int), Ok(Value::Int(8)));
    // Which operand decides shows only on evaluation.
    assert_eq!(eval("max(rows and cols, 1)", Want::Int), Ok(Value::Int(256)));
    assert_eq!(eval("max(rows > 3 and rows, 1)", Want::Int), Ok(Value::Int(7)));
    assert_eq!(eval("ceil_div(rows or 1, 2)", Want::Int), Ok(Value::Int(4)));
    assert_eq!(eval("max((1 if rows > 3 else true), 2)", Want::Int), Ok(Value::Int(2)));
    assert_eq!(wrong("max(rows > 3, 1)", Want::Int).0, "manifest.expression");
}

#[test]
fn division_by_zero_is_an_error_everywhere() {
    for (text, at) in [("rows / (rows - 7)", "/"), ("rows // 0", "//"), ("rows % 0", "%")] {
        for want in [Want::Int, Want::Any] {
            assert_eq!(wrong(text, want), ("manifest.division-by-zero", at.into()), "{text}");
        }
    }
    assert_eq!(wrong("1 / 0 > 2", Want::Bool), ("manifest.division-by-zero", "/".into()));
    assert_eq!(wrong("eps / 0", Want::Float), ("manifest.division-by-zero", "/".into()));
    assert_eq!(wrong("eps % 0", Want::Float), ("manifest.division-by-zero", "%".into()));
    assert_eq!(wrong("ceil_div(1, 0)", Want::Int).0, "manifest.division-by-zero");
}

#[test]
fn overflow_is_an_error() {
    for text in [
        "huge + 1",
        "huge * huge * huge * huge",
        "-(least)",
        "least / (0 - 1)",
        "abs(least)",
        "2 ** 200",
        "ceil_div(least, -1)",
    ] {
        assert_eq!(wrong(text, Want::Int).0, "manifest.overflow", "{text}");
    }
    for text in ["exp(1000)", "sqrt(-1)", "log(0)", "1e308 * 10"] {
        assert_eq!(wrong(text, Want::Float).0, "manifest.overflow", "{text}");
    }
    assert_eq!(wrong("99999999999999999999", Want::Int).0, "manifest.expression");
}

#[test]
fn unknown_names_and_functions_are_named_where_they_stand() {
    assert_eq!(wrong("cols * rowz", Want::Int), ("manifest.unknown-name", "rowz".into()));
    assert_eq!(wrong("ceildiv(rows, 2)", Want::Int), ("manifest.expression", "ceildiv".into()));
    assert_eq!(wrong("divide__(rows, 2, 1)", Want::Int), ("manifest.expression", "divide__".into()));
    assert_eq!(wrong("rows(2)", Want::Int), ("manifest.expression", "rows".into()));
    assert_eq!(wrong("ceil_div(rows)", Want::Int), ("manifest.expression", "ceil_div".into()));
    assert_eq!(wrong("sqrt(rows)", Want::Int), ("manifest.expression", "sqrt".into()));
    // Words of the template language that once evaluated expressions.
    assert_eq!(wrong("loop", Want::Int), ("manifest.unknown-name", "loop".into()));
}

#[test]
fn syntax_errors_stand_where_they_are() {
    for (text, at) in [
        ("", "\"\""),
        ("rows +", "+"),
        ("(rows", "("),
        ("rows)", ")"),
        ("rows if fast", "rows if fast"),
        ("rows.foo", "."),
        ("rows[0]", "["),
        ("rows | abs", "|"),
        ("'a", "'a"),
        ("rows cols", "cols"),
        ("rows ~ cols", "~"),
        ("{{ rows }}", "{"),
        ("x is y", "is"),
        ("rows else cols", "else"),
        ("rows ^ 2", "^"),
        ("rows = 2", "="),
    ] {
        assert_eq!(wrong(text, Want::Int), ("manifest.expression", at.into()), "{text}");
    }
}

#[test]
fn an_expression_nested_beyond_reason_is_refused() {
    for text in ["not ".repeat(100_000), "(".repeat(100_000), "-".repeat(100_000), "1 if 1 else ".repeat(50_000)] {
        assert_eq!(expr(&format!("{text}rows"), Want::Any).unwrap_err().code, "manifest.expression");
    }
    for text in ["not ".repeat(120), "-".repeat(120), "1 if fast else ".repeat(31)] {
        let _ = eval(&format!("{text}rows"), Want::Any);
    }
    let nested = format!("{}fast{}", "(".repeat(63), ")".repeat(63));
    let _ = expr(&nested, Want::Any);
    assert_eq!(eval(&format!("rows{}", " / 1".repeat(60)), Want::Int), Ok(Value::Int(7)));
}

#[test]
fn a_missing_or_wrong_part_is_named_with_what_was_expected() {
    for (text, words) in [
        ("rows +", "expected a number, a name, a function or `(`, found the end"),
        ("rows + * 2", "expected a number, a name, a function or `(`, found `*`"),
        ("rows cols", "expected an operator or the end, found `cols`"),
        ("(rows cols)", "expected an operator or `)`, found `cols`"),
        ("min(rows cols)", "expected `,` or `)`, found `cols`"),
        ("rows if fast cols", "expected an operator or `else`, found `cols`"),
        ("min(rows)", "`min` takes at least 2 arguments, found 1"),
        ("ceil_div(rows)", "`ceil_div` takes 2 arguments, found 1"),
        ("rows ^ 2", "`^` is not an operator; write `**` for a power"),
        ("rows = 2", "`=` is not an operator; equality is `==`"),
        ("True", "write truth values as `true`"),
        ("rows $ 2", "unexpected character `$`"),
        ("gelu(rows)", "`gelu` is for floats, and this is not a float expression"),
        ("sizeof(rows + 1)", "`sizeof` takes a type, such as `T` or `'f16'`"),
    ] {
        assert_eq!(eval(text, Want::Int).unwrap_err().message, words, "{text}");
    }
}

#[test]
fn scalars_have_what_elements_have() {
    for (text, value) in [
        ("where(fast, rows, cols)", 7),
        ("where(rows - 7, 1 / 0, cols)", 256),
        ("clamp(cols, 1, 100)", 100),
        ("relu(-rows) + sign(-3)", -1),
        ("-2 ** 2", -4),
        ("2 ** 3 ** 2", 512),
        ("huge * 2 - huge", i64::MAX),
        ("min(rows, eps + 7)", 7),
    ] {
        assert_eq!(eval(text, Want::Int), Ok(Value::Int(value)), "{text}");
    }
    assert_eq!(eval("gelu(0) + round(2.5) + exp2(3)", Want::Float), Ok(Value::Float(10.0)));
    assert_eq!(eval("2 ** -1", Want::Float), Ok(Value::Float(0.5)));
    assert_eq!(eval("exp(eps)", Want::Float), Ok(Value::Float(libm::exp(0.5))));
    assert_eq!(eval(".5 + 2.", Want::Float), Ok(Value::Float(2.5)));
    assert_eq!(wrong("2 ** -1", Want::Int), ("manifest.not-integer", "**".into()));
}

#[test]
fn a_condition_is_a_truth_value_or_a_number() {
    assert_eq!(eval("1 if rows else 2", Want::Int), Ok(Value::Int(1)));
    assert_eq!(eval("rows and cols", Want::Int), Ok(Value::Int(256)));
    assert_eq!(wrong("1 if T else 2", Want::Int), ("manifest.kind", "T".into()));
    assert_eq!(wrong("T < 2", Want::Bool), ("manifest.kind", "2".into()));
    assert_eq!(eval("T == 2", Want::Bool), Ok(Value::Bool(false)));
    assert_eq!(eval("fast == 1", Want::Bool), Ok(Value::Bool(true)));
}

#[test]
fn the_longest_and_the_deepest_expressions_are_evaluated() {
    let long = format!("rows{}", " - cols // 1".repeat(249));
    assert_eq!(eval(&long, Want::Int), Ok(Value::Int(7 - 249 * 256)));
    let deep = format!("{}rows{}", "abs((-".repeat(20), "))".repeat(20));
    assert_eq!(eval(&deep, Want::Int), Ok(Value::Int(7)));
    let error = eval(&format!("{}rows{}", "(".repeat(65), ")".repeat(65)), Want::Int).unwrap_err();
    assert_eq!(error.message, "nested more than 64 deep");
}

/// Checks that the place of every part is inside the text and inside the part around it.
fn places(node: &Node, text: &str) {
    assert!(text.get(node.at.clone()).is_some_and(|part| !part.is_empty()), "{text}: {:?}", node.at);
    for part in node.parts() {
        assert!(node.at.start <= part.at.start && part.at.end <= node.at.end, "{text}: {:?} in {:?}", part.at, node.at);
        places(part, text);
    }
}

const WORDS: [&str; 38] = [
    "rows",
    "cols",
    "huge",
    "least",
    "eps",
    "fast",
    "T",
    "0",
    "1",
    "2.5",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "(",
    ")",
    ",",
    "min(",
    "ceil_div(",
    "sizeof(",
    "==",
    "<",
    "and",
    "or",
    "not",
    "if",
    "else",
    "true",
    "'f16'",
    "where(",
    "gelu(",
    "pow(",
    "ä",
    "\u{3000}",
    "1e",
];

proptest! {
    #[test]
    fn every_place_lies_in_the_text(text in "\\PC{0,32}", words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..16)) {
        for text in [text, words.join(" "), words.concat()] {
            match parse(&text) {
                Ok(tree) => places(&tree.root, &text),
                Err(error) => prop_assert!(text.get(error.at.clone()).is_some(), "{}: {:?}", text, error),
            }
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,24}") {
        for want in [Want::Int, Want::Float, Want::Bool, Want::Any] {
            let _ = eval(&text, want);
        }
    }

    #[test]
    fn no_sequence_of_words_panics(words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..10)) {
        for want in [Want::Int, Want::Float, Want::Bool, Want::Any] {
            let _ = eval(&words.join(" "), want);
        }
    }

    #[test]
    fn arithmetic_agrees_with_rust(a in -1000i64..1000, b in -1000i64..1000, c in 1i64..50) {
        let text = format!("({a}) * ({b}) - ({a}) // {c} + ({b}) % {c}");
        prop_assert_eq!(eval(&text, Want::Int), Ok(Value::Int(a * b - a.div_euclid(c) + b.rem_euclid(c))));
        let exact = eval(&format!("({a}) / {c}"), Want::Int);
        prop_assert_eq!(exact.ok(), (a % c == 0).then_some(Value::Int(a / c)));
    }
}
