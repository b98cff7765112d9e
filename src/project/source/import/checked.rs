//! Numbers that host code checks to divide something before it launches: `TORCH_CHECK(n % 4 == 0)`, `if (n % 4 != 0) return;`, `if (n % 4 == 0) k<<<...>>>`. Knows
//! conditions of one function; does not know what the names are for the kernel.

use super::super::declarations::closing;
use super::super::part::is_keyword;
use super::super::tokens::Token;
use super::expression::{Expression, Scope, expression};

/// What is divided, and by what, for a launch at a position of a function.
pub(super) fn checked(text: &[Token], launch: usize, scope: &Scope) -> Vec<(Expression, i64)> {
    (1..launch).filter(|at| text[*at].is("%")).filter_map(|at| demanded(text, at, launch, scope)).collect()
}

fn demanded(text: &[Token], at: usize, launch: usize, scope: &Scope) -> Option<(Expression, i64)> {
    let is = |at: usize, sign: &str| text.get(at).is_some_and(|t| t.is(sign));
    let Expression::Int(by) = expression(text.get(at + 1..at + 2)?, scope).resolved(scope) else { return None };
    let start = operand(text, at)?;
    let before = start.checked_sub(1)?;
    let zero = |at: usize| text.get(at).is_some_and(|t| t.text == "0");
    let (mut equal, after) = match () {
        () if is(at + 2, "=") && is(at + 3, "=") && zero(at + 4) => (true, at + 5),
        () if is(at + 2, "!") && is(at + 3, "=") && zero(at + 4) => (false, at + 5),
        () => (false, at + 2),
    };
    let joined = |sign: &str| is(before, sign) || is(after, sign);
    let ends = [")", ",", "&", "|"].iter().any(|sign| is(after, sign));
    let begins = ["(", ",", "&", "|"].iter().any(|sign| is(before, sign));
    // Of several conditions, each must be demanded by itself.
    if !(ends && begins) || joined(if equal { "|" } else { "&" }) {
        return None;
    }
    let mut open = enclosing(text, at, "(", ")")?;
    if open >= 2 && is(open - 1, "!") && is(open - 2, "(") {
        equal = !equal;
        open -= 2;
    }
    let close = closing(text, open)?;
    let head = text.get(open.checked_sub(1)?).filter(|t| t.is_word())?;
    let same_block = || match enclosing(text, at, "{", "}") {
        Some(block) => closing(text, block).is_none_or(|end| end > launch),
        None => true,
    };
    let name = head.text.to_ascii_lowercase();
    let demanded = if head.is("if") {
        let body = close + 1;
        let end = if is(body, "{") { closing(text, body)? } else { super::scope::end(text, body) };
        let leaves = || text[body..end].iter().any(|t| ["return", "throw", "exit", "abort"].iter().any(|w| t.is(w)));
        if equal { body <= launch && launch < end } else { end <= launch && same_block() && leaves() }
    } else {
        equal && same_block() && ["check", "assert", "require", "ensure"].iter().any(|word| name.contains(word))
    };
    (demanded && by > 1).then(|| (expression(&text[start..at], scope), by))
}

/// Where the operand begins that ends before a position: `n`, `x.size(1)`, `(n + 1)`.
fn operand(text: &[Token], end: usize) -> Option<usize> {
    let mut at = end.checked_sub(1)?;
    loop {
        if text[at].is(")") {
            at = (0..at).rev().find(|open| text[*open].is("(") && closing(text, *open) == Some(at))?;
            let called = at.checked_sub(1).filter(|name| text[*name].is_word() && !is_keyword(&text[*name].text));
            // The condition of a call is no operand of it.
            at = called.unwrap_or(at);
        } else if !text[at].is_word() {
            return None;
        }
        match at.checked_sub(1) {
            Some(dot) if dot > 0 && [".", "->", "::"].iter().any(|sign| text[dot].is(sign)) => at = dot - 1,
            _ => return Some(at),
        }
    }
}

/// The bracket of this kind that is open at a position.
fn enclosing(text: &[Token], at: usize, open: &str, close: &str) -> Option<usize> {
    let mut depth = 0;
    (0..at).rev().find(|i| {
        if text[*i].is(close) {
            depth += 1;
        } else if text[*i].is(open) {
            depth -= 1;
        }
        depth < 0
    })
}
