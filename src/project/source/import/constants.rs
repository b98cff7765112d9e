//! The `__constant__` variables that a kernel reads and that host code fills before a launch. Knows their declarations and copies to symbols; does not know what
//! is copied.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Sources;
use super::super::declarations::closing;
use super::super::macros::spelled;
use super::super::part::{Part, What};
use super::super::tokens::Token;
use super::expression::{Expression, Scope, expression};
use super::launch;
use super::parameter::{dtype, followed};

/// A variable in constant memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Constant {
    pub(super) name: String,
    /// Its elements and extents, if a manifest can state them.
    pub(super) tensor: Option<(&'static str, Vec<String>)>,
}

/// The longest declaration that is read for a number.
const LONGEST: usize = 400;

/// The constants that a body reads, by itself or by the functions that it uses, in order of name.
pub(super) fn constants(
    sources: &Sources<'_>,
    body: &[Token],
    aliases: &BTreeMap<String, Vec<String>>,
) -> Vec<Constant> {
    let parts = || sources.groups.iter().flat_map(|group| group.parts.iter().map(move |part| (group, part)));
    let is_constant = |part: &Part| part.what == What::Variable && part.tokens.iter().any(|t| t.is("__constant__"));
    if !parts().any(|(_, part)| is_constant(part)) {
        return vec![];
    }
    let mut reached: BTreeSet<&str> = body.iter().filter(|t| t.is_word()).map(|t| t.text.as_str()).collect();
    loop {
        let before = reached.len();
        for (_, part) in parts().filter(|(_, part)| part.what == What::Function && !part.kernel && part.device) {
            if part.names.iter().any(|name| reached.contains(name.as_str())) {
                reached.extend(part.uses.iter().map(String::as_str));
            }
        }
        if reached.len() == before {
            break;
        }
    }
    let mut scope = Scope::default();
    for (_, part) in parts().filter(|(_, part)| part.what == What::Variable && part.tokens.len() < LONGEST) {
        scope.values.extend(launch::constants(&sources.macros.expand(&part.tokens), &Scope::default()));
    }
    let mut found = vec![];
    for (group, part) in parts().filter(|(_, part)| is_constant(part)) {
        let text = sources.macros.expand(&part.tokens);
        // A symbol in a namespace has another name for the driver.
        let outside = super::kernel::namespaces(&sources.files[group.file].tokens[..group.range.from]).is_empty();
        for name in part.names.iter().filter(|name| reached.contains(name.as_str())) {
            let filled = || parts().any(|(_, part)| part.what == What::Function && fills(&part.tokens, name));
            let Some(at) = text.iter().position(|t| t.is(name)) else { continue };
            let declarator = text[at..].iter().take_while(|t| !t.is(",") && !t.is(";"));
            if declarator.clone().any(|t| t.is("=") || t.is("{")) && !filled() {
                continue;
            }
            // Several declarators share the type before the first.
            let first = text.iter().position(|t| part.names.iter().any(|name| t.is(name))).unwrap_or(at);
            let tensor = tensor(&text[..first], &text[at + 1..], &scope, aliases).filter(|_| outside);
            found.push(Constant { name: name.clone(), tensor });
        }
    }
    found.sort_by(|a: &Constant, b| a.name.cmp(&b.name));
    found.dedup();
    found
}

/// Whether a text copies to a symbol of this name.
fn fills(text: &[Token], name: &str) -> bool {
    (0..text.len()).any(|at| {
        let copies = text[at].is_word() && text[at].text.contains("ToSymbol") || text[at].is("cudaGetSymbolAddress");
        let close = || closing(text, at + 1).filter(|_| text[at + 1].is("("));
        copies && at + 1 < text.len() && close().is_some_and(|close| text[at..close].iter().any(|t| t.is(name)))
    })
}

/// The elements and extents of a variable, by what is before the first one of its declaration, and by what follows it.
fn tensor(
    before: &[Token],
    after: &[Token],
    scope: &Scope,
    aliases: &BTreeMap<String, Vec<String>>,
) -> Option<(&'static str, Vec<String>)> {
    const NOT: [&str; 8] =
        ["__constant__", "__device__", "static", "extern", "const", "volatile", "inline", "constexpr"];
    let of_type = before.iter().filter(|t| !NOT.iter().any(|word| t.is(word))).cloned().collect::<Vec<_>>();
    let (dtype, lanes) = dtype(followed(&spelled(&of_type), aliases).0)?;
    let mut shape = vec![];
    let mut open = 0;
    while after.get(open).is_some_and(|t| t.is("[")) {
        let close = closing(after, open)?;
        let Expression::Int(extent) = expression(&after[open + 1..close], scope).resolved(scope) else { return None };
        shape.push(Some(extent).filter(|extent| *extent > 0)?.to_string());
        open = close + 1;
    }
    if lanes > 1 || shape.is_empty() {
        shape.push(lanes.to_string());
    }
    Some((dtype, shape))
}
