//! Arithmetic on expressions: what is computed at once, and quotients that are rounded up, in the usual spellings.

use std::collections::BTreeMap;

use super::expression::Expression::{self, Binary, Call, Either, Int, Name, Opaque};

/// By how many bits a number can be shifted.
const WIDTH: std::ops::RangeInclusive<i64> = 0..=62;

/// An operation, computed where both sides are known.
pub(super) fn binary(sign: char, a: Expression, b: Expression) -> Expression {
    let known = |a: i64, b: i64| match sign {
        '+' => a.checked_add(b),
        '-' => a.checked_sub(b),
        '*' => a.checked_mul(b),
        '/' => a.checked_div(b),
        '<' if WIDTH.contains(&b) => a.checked_mul(1 << b).filter(|all| i32::try_from(*all).is_ok()),
        '>' if WIDTH.contains(&b) => Some(a >> b),
        '<' | '>' => None,
        _ => a.checked_rem(b),
    };
    match (&a, sign, &b) {
        (Int(x), _, Int(y)) => known(*x, *y).map_or_else(|| Binary(sign, Box::new(Int(*x)), Box::new(Int(*y))), Int),
        // Sizes are not negative.
        (_, '<' | '>', Int(by)) if WIDTH.contains(by) => binary(if sign == '<' { '*' } else { '/' }, a, Int(1 << by)),
        (_, '*' | '/', Int(1)) | (_, '+' | '-', Int(0)) => a,
        (Int(1), '*', _) | (Int(0), '+', _) => b,
        (_, '/', _) => quotient(a, b),
        // `(n - 1) / 256 + 1`
        (Binary('/', n, d), '+', Int(1)) => match terms(n) {
            (parts, -1) => joined(parts).map_or_else(
                || Binary('+', Box::new(a.clone()), Box::new(Int(1))),
                |whole| ceil_div(whole, (**d).clone()),
            ),
            _ => Binary('+', Box::new(a), Box::new(b)),
        },
        _ => Binary(sign, Box::new(a), Box::new(b)),
    }
}

pub(super) fn ceil_div(a: Expression, b: Expression) -> Expression {
    match (&a, &b) {
        (_, Int(1)) => a,
        (Int(x), Int(y)) if *y > 0 && *x >= 0 => Int((x + y - 1) / y),
        _ => Call("ceil_div", vec![a, b]),
    }
}

/// The terms of a sum with their signs, and the constant in it.
fn terms(of: &Expression) -> (Vec<(char, Expression)>, i64) {
    match of {
        Int(value) => (vec![], *value),
        Binary(sign @ ('+' | '-'), a, b) => {
            let (mut parts, mut constant) = terms(a);
            let (more, other) = terms(b);
            let turned = |s: char| if (s == '+') == (*sign == '+') { '+' } else { '-' };
            parts.extend(more.into_iter().map(|(s, e)| (turned(s), e)));
            constant = if *sign == '+' { constant.saturating_add(other) } else { constant.saturating_sub(other) };
            (parts, constant)
        }
        other => (vec![('+', other.clone())], 0),
    }
}

fn joined(parts: Vec<(char, Expression)>) -> Option<Expression> {
    parts.into_iter().try_fold(Int(0), |sum, (sign, part)| match sum {
        Int(0) if sign == '-' => None,
        sum => Some(binary(sign, sum, part)),
    })
}

/// A quotient, as `ceil_div` where it is rounded up.
fn quotient(a: Expression, b: Expression) -> Expression {
    let (mut parts, constant) = terms(&a);
    let up = match &b {
        Int(value) => *value > 1 && constant == value - 1,
        _ if constant == -1 => match parts.iter().rposition(|part| *part == ('+', b.clone())) {
            Some(at) => {
                parts.remove(at);
                true
            }
            None => false,
        },
        _ => false,
    };
    match joined(parts).filter(|whole| up && *whole != Int(0)) {
        Some(whole) => ceil_div(whole, b),
        None => Binary('/', Box::new(a), Box::new(b)),
    }
}

/// An expression with others in place of names.
pub(super) fn substituted(of: &Expression, given: &BTreeMap<&str, &Expression>) -> Expression {
    match of {
        Name(name) => given.get(name.as_str()).map_or_else(|| of.clone(), |e| (*e).clone()),
        Binary(sign, a, b) => binary(*sign, substituted(a, given), substituted(b, given)),
        Call("ceil_div", both) => ceil_div(substituted(&both[0], given), substituted(&both[1], given)),
        Call(name, all) => Call(name, all.iter().map(|e| substituted(e, given)).collect()),
        Int(_) | Opaque(_) | Either(..) => of.clone(),
    }
}
