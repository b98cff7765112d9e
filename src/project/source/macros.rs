//! Macros of a source and their expansion, as far as finding declarations needs it. Knows definitions, parameters, `#` and `##`; evaluates no conditions, so
//! a name may have several definitions, and the first one counts.

use std::collections::{BTreeMap, BTreeSet};

use super::tokens::{Kind, Token, tokens};

/// The most tokens that one expansion gives. A macro that gives more is not expanded.
const MOST: usize = 200_000;

/// A definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Macro {
    /// The parameters of a function-like macro; `...` is `__VA_ARGS__`.
    parameters: Option<Vec<String>>,
    variadic: bool,
    body: Vec<Token>,
}

/// The macros of all files by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Macros {
    all: BTreeMap<String, Vec<Macro>>,
}

impl Macros {
    /// Adds the definition of a directive `#define`, whose text after the word is given.
    pub(super) fn define(&mut self, text: &str) {
        let (all, _) = tokens(text);
        let Some(name) = all.first().filter(|t| t.is_word()) else { return };
        let called = all.get(1).is_some_and(|t| t.is("(") && t.glued);
        let close = if called { all.iter().position(|t| t.is(")")) } else { Some(0) };
        let Some(close) = close else { return };
        let mut parameters: Vec<String> =
            all[1..close.max(1)].iter().filter(|t| t.is_word()).map(|t| t.text.clone()).collect();
        let variadic = called && all[..close].windows(3).any(|w| w.iter().all(|t| t.is(".")));
        // Named variadic parameters (`args...`) keep their name.
        let named = variadic && close >= 4 && all[close - 4].is_word();
        if variadic && !named {
            parameters.push("__VA_ARGS__".into());
        }
        let body = all[close + 1..].to_vec();
        let parameters = called.then_some(parameters);
        self.all.entry(name.text.clone()).or_default().push(Macro { parameters, variadic, body });
    }

    /// Removes the definitions of a name.
    pub(super) fn forget(&mut self, name: &str) {
        self.all.remove(name);
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.all.contains_key(name)
    }

    /// Whether the braces of every body match, so that those of a source can be counted without expanding it.
    pub(super) fn balance(&self) -> bool {
        let count = |m: &Macro, c: &str| m.body.iter().filter(|t| t.is(c)).count();
        self.all.values().flatten().all(|m| count(m, "{") == count(m, "}"))
    }

    /// Whether a macro takes arguments.
    pub(super) fn takes_arguments(&self, name: &str) -> bool {
        self.all.get(name).is_some_and(|all| all[0].parameters.is_some())
    }

    /// The identifiers in all definitions of a name, parameters aside.
    pub(super) fn words(&self, name: &str) -> BTreeSet<String> {
        let bodies = self.all.get(name).into_iter().flatten();
        bodies
            .flat_map(|m| {
                let own = |t: &&Token| !m.parameters.iter().flatten().any(|p| *p == t.text);
                m.body.iter().filter(|t| t.is_word()).filter(own)
            })
            .map(|t| t.text.clone())
            .collect()
    }

    /// The tokens of all definitions of a name.
    pub(super) fn bodies(&self, name: &str) -> impl Iterator<Item = &[Token]> {
        self.all.get(name).into_iter().flatten().map(|m| &m.body[..])
    }

    /// The tokens with every macro expanded. All of a macro's tokens have the line of its use.
    pub(super) fn expand(&self, text: &[Token]) -> Vec<Token> {
        self.expand_without(text, &mut vec![])
    }

    fn expand_without(&self, text: &[Token], hidden: &mut Vec<String>) -> Vec<Token> {
        let mut out = vec![];
        let mut at = 0;
        while at < text.len() && out.len() < MOST {
            let token = &text[at];
            at += 1;
            let found = self.all.get(&token.text).filter(|_| token.is_word() && !hidden.contains(&token.text));
            let Some(definition) = found.and_then(|all| all.first()) else {
                out.push(token.clone());
                continue;
            };
            let Some(parameters) = &definition.parameters else {
                self.append(&definition.body, token, hidden, &mut out);
                continue;
            };
            let Some((arguments, end)) = arguments(text, at) else {
                out.push(token.clone());
                continue;
            };
            at = end;
            let given = matched(parameters, definition.variadic, arguments);
            let body = self.substitute(definition, &given, hidden);
            self.append(&body, token, hidden, &mut out);
        }
        out
    }

    /// Appends a body in place of the use of its macro.
    fn append(&self, body: &[Token], used: &Token, hidden: &mut Vec<String>, out: &mut Vec<Token>) {
        hidden.push(used.text.clone());
        let mut body = self.expand_without(body, hidden);
        hidden.pop();
        if let Some(first) = body.first_mut() {
            first.glued = used.glued;
        }
        out.extend(body.into_iter().map(|token| Token { line: used.line, ..token }));
    }

    /// A body with arguments for parameters: expanded, except beside `#` and `##`.
    fn substitute(&self, of: &Macro, given: &BTreeMap<&str, Vec<Token>>, hidden: &mut Vec<String>) -> Vec<Token> {
        let body = &of.body;
        let mut out: Vec<Token> = vec![];
        let mut at = 0;
        while at < body.len() {
            let token = &body[at];
            let pasted = out.last().is_some_and(|t| t.is("##")) || body.get(at + 1).is_some_and(|t| t.is("##"));
            if token.is("#")
                && let Some(argument) = body.get(at + 1).and_then(|t| given.get(t.text.as_str()))
            {
                let text = format!("{:?}", spelled(argument).trim());
                out.push(Token { kind: Kind::Literal, text, ..token.clone() });
                at += 2;
                continue;
            }
            match given.get(token.text.as_str()).filter(|_| token.is_word()) {
                Some(argument) => {
                    let argument = if pasted { argument.clone() } else { self.expand_without(argument, hidden) };
                    let first = out.len();
                    out.extend(argument);
                    if let Some(first) = out.get_mut(first) {
                        first.glued = false;
                    } else if pasted {
                        out.push(Token { kind: Kind::Word, text: String::new(), ..token.clone() });
                    }
                }
                None => out.push(token.clone()),
            }
            at += 1;
        }
        paste(out)
    }
}

/// Joins the tokens beside each `##`.
fn paste(text: Vec<Token>) -> Vec<Token> {
    let mut out: Vec<Token> = vec![];
    let mut join = false;
    for token in text {
        match out.last_mut() {
            Some(last) if join => {
                let kind = if last.text.is_empty() { token.kind } else { last.kind };
                last.text += &token.text;
                last.kind = kind;
                join = false;
            }
            Some(_) if token.is("##") => join = true,
            _ => out.push(token),
        }
    }
    out.retain(|token| !token.text.is_empty());
    out
}

/// The arguments in the parentheses at `at`, and the position after them.
fn arguments(text: &[Token], at: usize) -> Option<(Vec<Vec<Token>>, usize)> {
    if !text.get(at)?.is("(") {
        return None;
    }
    let (mut all, mut depth) = (vec![vec![]], 0);
    for (position, token) in text.iter().enumerate().skip(at) {
        match token.text.as_str() {
            _ if token.kind != Kind::Punctuation => {}
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            "," if depth == 1 => {
                all.push(vec![]);
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            return Some((all, position + 1));
        }
        if position > at && token.kind != Kind::Directive {
            all.last_mut()?.push(token.clone());
        }
    }
    None
}

/// Arguments by parameter; the last parameter of a variadic macro takes the rest.
fn matched(parameters: &[String], variadic: bool, arguments: Vec<Vec<Token>>) -> BTreeMap<&str, Vec<Token>> {
    let mut given: BTreeMap<&str, Vec<Token>> = BTreeMap::new();
    let mut arguments = arguments.into_iter();
    for (index, name) in parameters.iter().enumerate() {
        let mut argument = arguments.next().unwrap_or_default();
        if variadic && index + 1 == parameters.len() {
            for more in arguments.by_ref() {
                let comma = |t: &Token| Token { kind: Kind::Punctuation, text: ",".into(), glued: true, ..t.clone() };
                argument.extend(more.first().map(comma));
                argument.extend(more);
            }
        }
        given.insert(name, argument);
    }
    given
}

/// Tokens as text on one line.
pub(super) fn spelled(text: &[Token]) -> String {
    let mut out = String::new();
    for token in text.iter().filter(|token| token.kind != Kind::Directive) {
        if !token.glued && !out.is_empty() {
            out.push(' ');
        }
        out += &token.text;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(defines: &[&str], text: &str) -> String {
        let mut macros = Macros::default();
        defines.iter().for_each(|text| macros.define(text));
        spelled(&macros.expand(&tokens(text).0))
    }

    #[test]
    fn parameters_are_replaced_pasted_and_quoted() {
        assert_eq!(expanded(&["K(n, t) void n##_k(t *x)"], "K(add, float) { }"), "void add_k( float *x) { }");
        assert_eq!(expanded(&["S(x) #x", "A 1"], "S(A b) A"), "\"A b\" 1");
        assert_eq!(expanded(&["V(f, ...) f(__VA_ARGS__)"], "V(g, 1, (2, 3))"), "g( 1, (2, 3))");
        assert_eq!(expanded(&["V(args...) f(args)"], "V(1, 2)"), "f( 1, 2)");
    }

    #[test]
    fn a_macro_does_not_expand_in_itself_and_needs_its_parentheses() {
        assert_eq!(expanded(&["f(x) f(x + 1)"], "f(f(2)) f"), "f( f( 2 + 1) + 1) f");
        assert_eq!(expanded(&["A B", "B A"], "A B"), "A B");
        assert_eq!(expanded(&["A(x) x", "B A"], "B (3)"), "A (3)");
    }
}
