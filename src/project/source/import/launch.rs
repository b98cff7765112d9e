//! Launches in host code: `k<<<grid, block, shared, stream>>>(...)`, and calls of CUDA's runtime that launch. Does not know what names stand for.

use super::super::declarations::{closing, closing_angle};
use super::super::tokens::Token;
use super::checked::checked;
use super::expression::{Expression, Formula, Scope, expression, split};
use super::scope::{end, scope};

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
    /// What host code checks before: what is divided, and by what.
    pub(super) checked: Vec<(Expression, i64)>,
}

fn is_chevron(text: &[Token], at: usize, sign: &str) -> bool {
    text.len() >= at + 3 && text[at..at + 3].iter().all(|t| t.is(sign)) && text[at + 1].glued && text[at + 2].glued
}

/// The launches in a function, given with its macros expanded; `global` is what names stand for outside it.
pub(super) fn launches(text: &[Token], global: &Scope) -> Vec<Launch> {
    let mut found = vec![];
    let mut at = 0;
    while at < text.len() {
        if let Some(launch) = call(text, at, global) {
            found.push(launch);
        }
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

/// A kernel by its name without namespaces, and the arguments of its template.
type Named = (String, Option<Vec<Vec<Token>>>);

fn many(text: &[Token]) -> Vec<Vec<Token>> {
    split(text).into_iter().map(<[Token]>::to_vec).collect()
}

fn launch(text: &[Token], open: usize, global: &Scope) -> Option<Launch> {
    let ((kernel, template), at) = named_before(text, open)?;
    let end =
        (open + 3..text.len()).find(|i| is_chevron(text, *i, ">") && text.get(i + 3).is_some_and(|t| t.is("(")))?;
    let close = closing(text, end + 3)?;
    let (kernel, template) = match &template {
        None => pointed(text, at, &kernel).unwrap_or((kernel, template)),
        Some(_) => (kernel, template),
    };
    let scope = scope(text, at, global);
    Some(Launch {
        line: text[open].line,
        kernel,
        template,
        configuration: many(&text[open + 3..end]),
        arguments: many(&text[end + 4..close]),
        checked: checked(text, at, &scope),
        scope,
    })
}

/// The name that ends before a position, with the arguments of a template and its own position.
fn named_before(text: &[Token], end: usize) -> Option<(Named, usize)> {
    let last = end.checked_sub(1)?;
    let (name, template) = if text[last].is(">") {
        let start = (0..last).rev().find(|i| text[*i].is("<") && closing_angle(text, *i) == Some(last))?;
        (start.checked_sub(1)?, Some(many(&text[start + 1..last])))
    } else {
        (last, None)
    };
    text[name].is_word().then(|| ((text[name].text.clone(), template), name))
}

/// The kernel that a variable points to: `auto f = &k<128>;`.
fn pointed(text: &[Token], until: usize, variable: &str) -> Option<Named> {
    let at = (1..until).rev().find(|at| {
        let assigned = text[at + 1].is("=") || text[at + 1].is(")") && text[*at - 1].is("*");
        text[*at].is(variable) && assigned && !text.get(at + 2).is_some_and(|t| t.is("="))
    })?;
    let equals = (at..until).find(|i| text[*i].is("="))?;
    let value = &text[equals + 1..end(text, equals + 1).min(until)];
    value
        .iter()
        .all(|t| !t.is("?") && !t.is("("))
        .then(|| named_before(value, value.len()))
        .flatten()
        .map(|(named, _)| named)
}

/// A kernel that is given as a value: `(void *)k<128>`, `&k`, `reinterpret_cast<const void *>(&k)`.
fn valued(text: &[Token], whole: &[Token], until: usize) -> Option<Named> {
    let end = text.iter().rposition(|t| !t.is(")"))? + 1;
    let ((kernel, template), _) = named_before(text, end)?;
    match template {
        None => Some(pointed(whole, until, &kernel).unwrap_or((kernel, None))),
        Some(_) => Some((kernel, template)),
    }
}

/// A call of CUDA's runtime that launches a kernel.
fn call(text: &[Token], at: usize, global: &Scope) -> Option<Launch> {
    let open = at + 1;
    let name = text[at].is_word().then(|| text[at].text.as_str())?;
    let by_array = ["cudaLaunchKernel", "cudaLaunchCooperativeKernel"].contains(&name);
    if !(by_array || name == "cudaLaunchKernelEx") || !text.get(open)?.is("(") {
        return None;
    }
    let given = many(&text[open + 1..closing(text, open)?]);
    let (kernel, configuration, arguments) = if by_array {
        let [kernel, grid, block, array, rest @ ..] = &given[..] else { return None };
        let mut configuration = vec![grid.clone(), block.clone()];
        configuration.extend(rest.first().cloned());
        (kernel, configuration, elements(text, at, array)?)
    } else {
        let [config, kernel, arguments @ ..] = &given[..] else { return None };
        (kernel, configured(text, at, &config.last()?.text)?, arguments.to_vec())
    };
    let (kernel, template) = valued(kernel, text, at)?;
    let scope = scope(text, at, global);
    let checked = checked(text, at, &scope);
    Some(Launch { line: text[at].line, kernel, template, configuration, arguments, scope, checked })
}

/// The elements of an array of addresses: `void *args[] = { &x, (void *)&n };`, without `&`.
fn elements(text: &[Token], until: usize, array: &[Token]) -> Option<Vec<Vec<Token>>> {
    let inside = match array {
        [name] => {
            let at = (0..until).rev().find(|at| text[*at].is(&name.text) && text[at + 1].is("["))?;
            let open = (at..until).find(|i| text[*i].is("{"))?;
            &text[open + 1..closing(text, open)?]
        }
        _ => {
            let open = array.iter().rposition(|t| t.is("{"))?;
            &array[open + 1..closing(array, open)?]
        }
    };
    let element = |text: &[Token]| text.iter().rposition(|t| t.is("&")).map(|at| text[at + 1..].to_vec());
    split(inside).into_iter().map(element).collect()
}

/// Grid, block and shared memory in a `cudaLaunchConfig_t`.
fn configured(text: &[Token], until: usize, config: &str) -> Option<Vec<Vec<Token>>> {
    let member = |name: &str| {
        let is =
            |at: &usize| text[*at].is(config) && text[at + 1].is(".") && text[at + 2].is(name) && text[at + 3].is("=");
        let at = (0..until.saturating_sub(3)).rev().find(is)?;
        Some(text[at + 4..end(text, at + 4)].to_vec())
    };
    let all = [member("gridDim")?, member("blockDim")?];
    Some(all.into_iter().chain(member("dynamicSmemBytes")).collect())
}

/// The constants that a declaration of a namespace declares: `a` and `b` of `constexpr int a = 1, b{2};`.
pub(super) fn constants(text: &[Token], global: &Scope) -> Vec<(String, Expression)> {
    let fixed = text.iter().any(|t| t.is("const") || t.is("constexpr"));
    // The value of a template depends on its arguments.
    if !fixed || text.first().is_some_and(|t| t.is("template")) {
        return vec![];
    }
    split(text).into_iter().filter_map(|declarator| constant(declarator, global)).collect()
}

/// The constant that a declarator declares, the first one with the type before it.
fn constant(text: &[Token], global: &Scope) -> Option<(String, Expression)> {
    let at = text.iter().position(|t| t.is("=") || t.is("{")).filter(|at| *at > 0)?;
    let close = if text[at].is("{") { closing(text, at)? } else { end(text, at + 1) };
    let value = expression(&text[at + 1..close], global);
    let name = &text[at - 1];
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
