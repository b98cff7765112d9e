//! Launches `k<<<grid, block, shared, stream>>>(...)` in host code, and what names stand for there. Knows definitions of variables before a launch, in order of
//! text; does not follow branches, so a variable that changes has no value.

use super::super::declarations::{closing, closing_angle};
use super::super::tokens::{Kind, Token};
use super::expression::{Expression, Formula, Scope, expression, split};

/// A launch.
#[derive(Debug, Clone)]
pub(super) struct Launch {
    pub(super) line: u32,
    /// The kernel's name without namespaces.
    pub(super) kernel: String,
    /// Arguments of the template, if any are written.
    pub(super) template: Option<Vec<Vec<Token>>>,
    /// Grid, block, bytes of shared memory and stream, as far as they are written.
    pub(super) configuration: Vec<Vec<Token>>,
    pub(super) arguments: Vec<Vec<Token>>,
    pub(super) scope: Scope,
}

fn is_chevron(text: &[Token], at: usize, sign: &str) -> bool {
    text.len() >= at + 3 && text[at..at + 3].iter().all(|t| t.is(sign)) && text[at + 1].glued && text[at + 2].glued
}

/// The launches in a function, given with its macros expanded; `global` is what names stand for outside it.
pub(super) fn launches(text: &[Token], global: &Scope) -> Vec<Launch> {
    let mut found = vec![];
    let mut at = 0;
    while at < text.len() {
        let template_ends = at > 0 && text[at - 1].is(">");
        if !is_chevron(text, at, "<") || at == 0 || !(text[at - 1].is_word() || template_ends) {
            at += 1;
            continue;
        }
        if let Some(launch) = launch(text, at, global) {
            found.push(launch);
        }
        at += 3;
    }
    found
}

fn launch(text: &[Token], open: usize, global: &Scope) -> Option<Launch> {
    let (name, template) = if text[open - 1].is(">") {
        let start = (0..open - 1).rev().find(|i| text[*i].is("<") && closing_angle(text, *i) == Some(open - 1))?;
        let arguments = split(&text[start + 1..open - 1]).into_iter().map(<[Token]>::to_vec).collect();
        (start.checked_sub(1)?, Some(arguments))
    } else {
        (open - 1, None)
    };
    let end =
        (open + 3..text.len()).find(|i| is_chevron(text, *i, ">") && text.get(i + 3).is_some_and(|t| t.is("(")))?;
    let close = closing(text, end + 3)?;
    let many = |text: &[Token]| split(text).into_iter().map(<[Token]>::to_vec).collect::<Vec<_>>();
    Some(Launch {
        line: text[open].line,
        kernel: text[name].text.clone(),
        template,
        configuration: many(&text[open + 3..end]),
        arguments: many(&text[end + 4..close]),
        scope: scope(text, name, global),
    })
}

/// What names stand for at a position of a function.
fn scope(text: &[Token], until: usize, global: &Scope) -> Scope {
    let mut scope = global.clone();
    let changed = changed(text);
    for at in 1..until {
        let token = &text[at];
        let next = text.get(at + 1);
        let assigned = next.is_some_and(|t| t.is("=")) && !text.get(at + 2).is_some_and(|t| t.is("="));
        let declared = text[at - 1].is_word() && !text[at - 1].is("return") || text[at - 1].is(",");
        if text[at - 1].is("dim3") && token.is_word() && !assigned {
            extents(text, at, &mut scope);
            continue;
        }
        if !token.is_word() || !assigned {
            continue;
        }
        let value = &text[at + 2..end(text, at + 2)];
        if text[at - 1].is("dim3")
            || value.first().is_some_and(|t| t.is("dim3"))
            || scope.extents.contains_key(&token.text)
        {
            let inside = value.iter().position(|t| t.is("(") || t.is("{"));
            let parts = match inside.and_then(|open| Some((open, closing(value, open)?))) {
                Some((open, close)) if value[0].is("dim3") => split(&value[open + 1..close]),
                _ => vec![value],
            };
            let parts = parts.into_iter().map(|part| expression(part, &scope)).collect();
            scope.extents.insert(token.text.clone(), parts);
        } else if declared && !changed.contains(&token.text.as_str()) {
            let found = expression(value, &scope);
            match found {
                Expression::Opaque(_) => drop(scope.values.remove(&token.text)),
                found if found == Expression::Name(token.text.clone()) => {}
                found => drop(scope.values.insert(token.text.clone(), found)),
            }
        }
    }
    if let Some((name, value)) = case(&text[..until]) {
        scope.values.insert(name, value);
    }
    scope
}

/// The variable of the innermost `switch` before the end of a text, with the number of the last `case`.
fn case(text: &[Token]) -> Option<(String, Expression)> {
    let at = text.iter().rposition(|t| t.is("case"))?;
    let switch = text[..at].iter().rposition(|t| t.is("switch"))?;
    let close = closing(text, switch + 1)?;
    let body = close + 1;
    // The switch must still be open.
    if !text.get(body).is_some_and(|t| t.is("{")) || closing(text, body).is_some() {
        return None;
    }
    let none = Scope::default();
    let colon = at + text[at..].iter().position(|t| t.is(":"))?;
    match (expression(&text[switch + 2..close], &none), expression(&text[at + 1..colon], &none)) {
        (Expression::Name(name), value @ Expression::Int(_)) => Some((name, value)),
        _ => None,
    }
}

/// The declarators after `dim3`.
fn extents(text: &[Token], at: usize, scope: &mut Scope) {
    let mut at = at;
    while text.get(at).is_some_and(Token::is_word) {
        let name = text[at].text.clone();
        let Some(open) = text.get(at + 1).filter(|t| t.is("(") || t.is("{")).map(|_| at + 1) else { return };
        let Some(close) = closing(text, open) else { return };
        let parts = split(&text[open + 1..close]).into_iter().map(|part| expression(part, scope)).collect();
        scope.extents.insert(name, parts);
        if !text.get(close + 1).is_some_and(|t| t.is(",")) {
            return;
        }
        at = close + 2;
    }
}

/// Where an initializer that begins at a position ends.
fn end(text: &[Token], from: usize) -> usize {
    let mut at = from;
    while at < text.len() {
        match text[at].text.as_str() {
            _ if text[at].kind != Kind::Punctuation => {}
            "(" | "[" | "{" => at = closing(text, at).unwrap_or(text.len()),
            ";" | "," | ")" | "}" => return at,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// Variables that change after their definition.
fn changed(text: &[Token]) -> Vec<&str> {
    let mut found = vec![];
    for at in 1..text.len().saturating_sub(2) {
        if !text[at].is_word() {
            continue;
        }
        let (next, after) = (&text[at + 1], &text[at + 2]);
        let compound =
            ["+", "-", "*", "/", "%", "|", "&", "<", ">"].iter().any(|s| next.is(s)) && after.is("=") && after.glued;
        let compared = (next.is("<") || next.is(">")) && after.is("=");
        let counted = (next.is("+") && after.is("+") || next.is("-") && after.is("-")) && after.glued;
        let before =
            at > 1 && (text[at - 1].is("+") && text[at - 2].is("+") || text[at - 1].is("-") && text[at - 2].is("-"));
        let anew = next.is("=") && !after.is("=") && [";", "{", "}", ")"].iter().any(|s| text[at - 1].is(s));
        if compound && !compared || counted || before || anew {
            found.push(text[at].text.as_str());
        }
    }
    found
}

/// A constant of a namespace, given as its declaration.
pub(super) fn constant(text: &[Token], global: &Scope) -> Option<(String, Expression)> {
    let fixed = text.iter().any(|t| t.is("const") || t.is("constexpr"));
    let equals = text.iter().position(|t| t.is("=")).filter(|at| fixed && *at > 0)?;
    let value = expression(&text[equals + 1..end(text, equals + 1)], global);
    let name = &text[equals - 1];
    (name.is_word() && !matches!(value, Expression::Opaque(_))).then(|| (name.text.clone(), value))
}

/// A function that only returns an expression of its parameters, given as its declaration.
pub(super) fn formula(text: &[Token], global: &Scope) -> Option<(String, Formula)> {
    let body = text.iter().position(|t| t.is("{"))?;
    let close = (0..body).rev().find(|i| text[*i].is(")"))?;
    let open = (0..close).rev().find(|i| text[*i].is("(") && closing(text, *i) == Some(close))?;
    let name = text.get(open.checked_sub(1)?).filter(|t| t.is_word())?;
    let returned = text.get(body + 1).filter(|t| t.is("return")).map(|_| body + 2)?;
    let end = end(text, returned);
    if !text.get(end).is_some_and(|t| t.is(";")) || !text.get(end + 1).is_some_and(|t| t.is("}")) {
        return None;
    }
    let parameters: Vec<String> = split(&text[open + 1..close])
        .into_iter()
        .map(|p| p.iter().rfind(|t| t.is_word()).map(|t| t.text.clone()))
        .collect::<Option<_>>()?;
    let value = expression(&text[returned..end], global);
    let known = value.names().is_some_and(|names| !names.is_empty() && names.iter().all(|n| parameters.contains(n)));
    known.then(|| (name.text.clone(), Formula { parameters, value }))
}
