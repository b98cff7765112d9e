//! What an expression may hold beyond its syntax: functions that exist, operands that are numbers, balanced groups. Knows words; evaluates nothing.

use std::ops::Range;

use super::eval::Want;
use super::functions::{EXACT, FLOAT};
use super::lex::{Kind, Token};

/// The functions an expression that must give `want` has.
pub(super) fn functions(want: Want) -> Vec<&'static str> {
    match want {
        Want::Float => EXACT.iter().chain(&FLOAT).copied().collect(),
        Want::Int | Want::Bool | Want::Any => EXACT.to_vec(),
    }
}

/// Functions that do not exist, or not where an integer is wanted: where, why, and the name.
pub(super) fn check_functions(words: &[Token<'_>], want: Want) -> Result<(), (Range<usize>, String, String)> {
    for word in words.iter().filter(|w| w.kind == Kind::Function) {
        if functions(want).contains(&word.text) {
            continue;
        }
        let why = if FLOAT.contains(&word.text) {
            format!("`{}` is for floats, and this is not a float expression", word.text)
        } else {
            format!("unknown function `{}`", word.text)
        };
        return Err((word.at.clone(), why, word.text.to_string()));
    }
    Ok(())
}

/// Whether the operand from word `from` to word `to` is one of arithmetic: it stands beside an operator, or it is what a group beside one gives.
pub(super) fn is_number(words: &[Token<'_>], from: usize, to: usize) -> bool {
    let before = from.checked_sub(1).and_then(|i| words.get(i));
    let after = words.get(to + 1);
    if before.into_iter().chain(after).any(|w| w.kind == Kind::Arithmetic) {
        return true;
    }
    let starts = before.is_some_and(|w| w.kind == Kind::Open || w.text == "else");
    let ends = after.is_some_and(|w| w.kind == Kind::Close || w.text == "if");
    match around(words, from, to) {
        Some((open, close)) if starts && ends => is_number(words, open, close),
        _ => false,
    }
}

/// The parentheses around an operand, unless they are a call's.
fn around(words: &[Token<'_>], from: usize, to: usize) -> Option<(usize, usize)> {
    let mut depth = 0i32;
    let closed = |w: &Token<'_>, depth: &mut i32, inner: Kind, outer: Kind| {
        *depth += i32::from(w.kind == inner) - i32::from(w.kind == outer);
        *depth < 0
    };
    let open = (0..from).rev().find(|i| closed(&words[*i], &mut depth, Kind::Close, Kind::Open))?;
    depth = 0;
    let close = (to + 1..words.len()).find(|i| closed(&words[*i], &mut depth, Kind::Open, Kind::Close))?;
    let call = open > 0 && words[open - 1].kind == Kind::Function;
    (!call).then_some((open, close))
}

/// Truth values used as numbers, unbalanced parentheses, an `if` without `else`.
pub(super) fn check_operands(words: &[Token<'_>]) -> Result<(), (Range<usize>, String)> {
    // Open groups: index, whether they are calls, whether they hold a comparison, how many `if` wait for their `else`.
    let mut open: Vec<(usize, bool, bool, u32)> = vec![(0, true, false, 0)];
    for (i, word) in words.iter().enumerate() {
        let top = open.last_mut();
        match (word.kind, top) {
            (Kind::Open, _) => open.push((i, i > 0 && words[i - 1].kind == Kind::Function, false, 0)),
            (Kind::Close, Some(_)) => {
                let Some((start, call, truth, waiting)) = open.pop().filter(|_| !open.is_empty()) else {
                    return Err((word.at.clone(), "this parenthesis was never opened".into()));
                };
                if waiting > 0 {
                    return Err((words[start].at.start..word.at.end, "an `if` without its `else`".into()));
                }
                if truth && !call && is_number(words, start, i) {
                    return Err((words[start].at.start..word.at.end, "a truth value is not a number".into()));
                }
            }
            (Kind::Truth | Kind::Str, _) if is_number(words, i, i) => {
                return Err((word.at.clone(), format!("{} is not a number", word.text)));
            }
            (Kind::Logic, Some(top)) => match word.text {
                "if" => top.3 += 1,
                "else" if top.3 == 0 => return Err((word.at.clone(), "an `else` without its `if`".into())),
                "else" => top.3 -= 1,
                // The condition of an `if` is not what the group gives.
                _ => top.2 = top.2 || top.3 == 0,
            },
            _ => {}
        }
    }
    match open.as_slice() {
        [(_, _, _, 0)] => Ok(()),
        [_] => Err((0..words.last().map_or(0, |w| w.at.end), "an `if` without its `else`".into())),
        [.., (start, ..)] => Err((words[*start].at.clone(), "this parenthesis is never closed".into())),
        [] => Ok(()),
    }
}
