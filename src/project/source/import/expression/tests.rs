//! Tests of expressions: the forms of a quotient that is rounded up, and what keeps its meaning.

use super::super::super::tokens::tokens;
use super::*;

fn text(of: &str) -> String {
    let mut scope = Scope::default();
    let formula = expression(&tokens("(a + b - 1) / b").0, &scope);
    let up = Formula { parameters: vec!["a".into(), "b".into()], value: formula };
    scope.functions.insert("blocks_for".into(), up);
    scope.values.insert("BLOCK".into(), Int(256));
    scope.extents.insert("block".into(), vec![Int(32), Int(8)]);
    expression(&tokens(of).0, &scope).resolved(&scope).text()
}

#[test]
fn quotients_that_are_rounded_up_are_found_in_every_form() {
    for up in [
        "(n + 255) / 256",
        "(n + 256 - 1) / 256",
        "((n) + (256) - 1) / (256)",
        "(n - 1) / 256 + 1",
        "(n + BLOCK - 1) / BLOCK",
        "CEIL_DIV(n, 256)",
        "cdiv(n, BLOCK)",
        "blocks_for(n, 256)",
        "ceil((float)n / 256.0)",
        "ceilf(n / 256.0f)",
        "static_cast<int>((n + 255u) / 256)",
        "(unsigned int)ceil_div(n, 0x100)",
    ] {
        assert_eq!(text(up), "ceil_div(n, 256)", "{up}");
    }
    assert_eq!(text("(n + m - 1) / m"), "ceil_div(n, m)");
    assert_eq!(text("(m + n + block.x - 1) / block.x"), "ceil_div(m + n, 32)");
}

#[test]
fn the_rest_keeps_its_meaning() {
    for (of, expected) in [
        ("n / 256", "n // 256"),
        ("(n + 254) / 256", "(n + 254) // 256"),
        ("a * (b + c) - (d - 1)", "a * (b + c) - (d - 1)"),
        ("2 * 3 + 4 % 3", "7"),
        ("1 << 4", "16"),
        ("(BLOCK << 1) + 1", "513"),
        ("BLOCK << 1 + 1", "1024"),
        ("4096 >> 2 >> 1", "512"),
        ("n << 3", "n * 8"),
        ("n * 4 >> 1", "n * 4 // 2"),
        ("(n + 255) >> 8", "ceil_div(n, 256)"),
        ("1 << (BLOCK / 64)", "16"),
        ("1 << n + 1", "1 << (n + 1)"),
        ("1 << 31", "1 << 31"),
        ("1 << 64", "1 << 64"),
        ("BLOCK / (4)", "64"),
        ("std::min(n, 1024)", "min(n, 1024)"),
        ("block.x * block.y * block.z", "256"),
        ("n / (a * b)", "n // (a * b)"),
        ("x.size(0) / 2", "x.size(0) // 2"),
        ("f(n) + 1", "f(n) + 1"),
        ("1'024 * sizeof(float) + sizeof(half)", "4098"),
    ] {
        assert_eq!(text(of), expected, "{of}");
    }
    for unknown in ["x.size(0)", "1 << n", "n << -1", "n <<= 1", "n < < 1", "n <<< 1", "n >>= 1"] {
        assert_eq!(expression(&tokens(unknown).0, &Scope::default()).names(), None, "{unknown}");
    }
    assert_eq!(expression(&tokens("n > 1 ? 2 : 3").0, &Scope::default()).names(), None);
}
