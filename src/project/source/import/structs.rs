//! The members of a struct that a kernel takes by value, as a manifest states them: `{ struct = ["x", "n:i32"] }`. Knows plain members; a struct with functions,
//! bases or other structs is not read.

use std::collections::BTreeMap;

use super::super::Sources;
use super::super::declarations::closing;
use super::super::macros::spelled;
use super::super::part::{Part, What, is_keyword};
use super::super::tokens::Token;
use super::expression::{Expression, Scope, expression, split};
use super::parameter::{dtype, followed};

/// The most members that are shown.
const MOST: i64 = 64;

/// The members of a struct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Members {
    /// As a manifest states them: `n:i32`, and a pointer by its name alone.
    pub(super) all: Vec<String>,
    /// Those that are pointers.
    pub(super) pointers: Vec<String>,
}

/// The members of a type: none inside if they cannot be read, and none at all if the type is no struct of the sources.
pub(super) fn members(
    sources: &Sources<'_>,
    spelling: &str,
    types: &BTreeMap<String, Vec<String>>,
) -> Option<Option<Members>> {
    let name = spelling.rsplit("::").next().unwrap_or(spelling).trim();
    let parts = || sources.groups.iter().flat_map(|group| &group.parts);
    let is = |part: &&Part| {
        let text = &part.tokens;
        let open = text.iter().position(|t| t.is("{")).unwrap_or(text.len());
        let head = &text[..open];
        // `struct S {`, `typedef struct {} S;`
        let named =
            head.iter().any(|t| t.is(name)) || head.iter().any(|t| t.is("typedef")) && text.iter().any(|t| t.is(name));
        let has = |word: &str| head.iter().any(|t| t.is(word));
        let is_class = (has("struct") || has("class")) && !has("enum");
        part.what == What::Type && named && open < text.len() && is_class
    };
    let part = parts().find(is)?;
    Some(declared(&sources.macros.expand(&part.tokens), types))
}

/// The members that a definition declares.
fn declared(text: &[Token], types: &BTreeMap<String, Vec<String>>) -> Option<Members> {
    let open = text.iter().position(|t| t.is("{"))?;
    let close = closing(text, open)?;
    let odd = |t: &Token| ["template", ":", "alignas", "__align__", "__attribute__"].iter().any(|word| t.is(word));
    if text[..open].iter().any(odd) {
        return None;
    }
    let mut found = Members { all: vec![], pointers: vec![] };
    for mut statement in text[open + 1..close].split(|t| t.is(";")) {
        if let [access, colon, rest @ ..] = statement
            && colon.is(":")
            && ["public", "private", "protected"].iter().any(|word| access.is(word))
        {
            statement = rest;
        }
        let first = statement.first();
        if first.is_none_or(|t| ["static", "using", "typedef"].iter().any(|word| t.is(word))) {
            continue;
        }
        let unknown = |t: &Token| ["(", "{", ":", "&", "struct", "union", "enum", "}"].iter().any(|sign| t.is(sign));
        if statement.iter().any(unknown) {
            return None;
        }
        let mut of_type = String::new();
        for (at, declarator) in split(statement).into_iter().enumerate() {
            let end = declarator.iter().position(|t| t.is("=") || t.is("[")).unwrap_or(declarator.len());
            let name = declarator[..end].iter().rposition(Token::is_word)?;
            if at == 0 {
                let of = |t: &&Token| {
                    !["const", "volatile", "*"].iter().any(|word| t.is(word)) && !t.text.contains("restrict")
                };
                of_type = spelled(&declarator[..name].iter().filter(of).cloned().collect::<Vec<_>>());
            }
            let own = &declarator[name].text;
            if is_keyword(own) {
                return None;
            }
            let count = count(&declarator[end..])?;
            if declarator[..name].iter().any(|t| t.is("*")) {
                // An array of pointers is stated as `{ pointers = [...] }`.
                Some(count).filter(|count| *count == 1)?;
                found.pointers.push(own.clone());
                found.all.push(own.clone());
                continue;
            }
            let (dtype, _) = dtype(followed(&of_type, types).0).filter(|(_, lanes)| *lanes == 1)?;
            match count {
                1 => found.all.push(format!("{own}:{dtype}")),
                _ => found.all.extend((0..count).map(|at| format!("{own}_{at}:{dtype}"))),
            }
        }
    }
    Some(found).filter(|found| !found.all.is_empty())
}

/// How many elements the brackets after a name say.
fn count(text: &[Token]) -> Option<i64> {
    let (mut all, mut at) = (1_i64, 0);
    while text.get(at).is_some_and(|t| t.is("[")) {
        let close = closing(text, at)?;
        let Expression::Int(extent) = expression(&text[at + 1..close], &Scope::default()) else { return None };
        all = all.checked_mul(extent).filter(|all| (1..=MOST).contains(all))?;
        at = close + 1;
    }
    Some(all)
}
