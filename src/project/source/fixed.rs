//! Names that a source defines or declares itself although the compiler is given macros of these names: tunables. A `#define` of the source would win over the
//! macro, and the macro would take the place of a declared name, so neither means what the manifest says. Reads the main file and what it certainly includes;
//! evaluates no conditions, so only what stands under none counts.

use std::collections::BTreeSet;

use super::brackets::{closing, closing_angle};
use super::declarations::{At, declarations};
use super::declarators::without_attributes;
use super::foreign::list;
use super::include::Include;
use super::inside::inside;
use super::macros::Macros;
use super::names::parameter_list;
use super::order::guard;
use super::part::{Part, part};
use super::tokens::{Kind, Token, tokens, words};
use super::{Place, SourceTree};

/// How a source fixes the meaning of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FixedBy {
    /// `#define NAME 256`.
    Define,
    /// `constexpr int NAME = 128;` in a namespace.
    Declaration,
    /// The parameter of a kernel, or of its template.
    Parameter {
        /// The kernel.
        kernel: String,
    },
    /// The parameter of another function that the kernels use, or of its template.
    InnerParameter {
        /// The function.
        function: String,
    },
    /// A variable in a function.
    Local {
        /// The function.
        function: String,
    },
    /// A member of a class.
    Member {
        /// The class.
        class: String,
    },
}

/// A name whose meaning a source fixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixed {
    /// The name.
    pub name: String,
    /// The place.
    pub place: Place,
    /// How.
    pub by: FixedBy,
}

/// The first of these names that the source defines or declares outside every condition. `kernels` are the functions that are launched: their parameters count, and
/// what the code that they reach declares inside itself.
pub fn fixed(tree: SourceTree<'_>, names: &[&str], kernels: &[&str]) -> Option<Fixed> {
    let mut reader = Reader { tree, names, kernels, seen: BTreeSet::new() };
    reader.file(tree.main).or_else(|| inside(tree, names, kernels))
}

struct Reader<'a> {
    tree: SourceTree<'a>,
    names: &'a [&'a str],
    kernels: &'a [&'a str],
    seen: BTreeSet<String>,
}

impl Reader<'_> {
    fn file(&mut self, name: &str) -> Option<Fixed> {
        let text = self.tree.files.get(name)?;
        if !self.seen.insert(name.to_string()) {
            return None;
        }
        let (text, _) = tokens(text);
        let certain = certain(&text, self.names);
        let found = self.declared(name, &text, &certain);
        for token in text.iter().zip(&certain).filter(|(_, certain)| **certain).map(|(token, _)| token) {
            let place = || Place { file: name.to_string(), line: token.line };
            if found.as_ref().is_some_and(|found| found.place.line <= token.line) {
                break;
            }
            match token.directive() {
                Some(("define", operand)) => {
                    let defined = words(operand).next().filter(|name| self.names.contains(&name.as_str()));
                    if let Some(name) = defined {
                        return Some(Fixed { name, place: place(), by: FixedBy::Define });
                    }
                }
                Some(("include", operand)) => {
                    let inner = Include::of(operand).and_then(|include| include.resolve(name, &self.tree));
                    if let Some(fixed) = inner.and_then(|inner| self.file(&inner)) {
                        return Some(fixed);
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// The first declaration of a name that certainly happens.
    fn declared(&self, file: &str, text: &[Token], certain: &[bool]) -> Option<Fixed> {
        let named = |t: &Token| t.is_word() && self.names.contains(&t.text.as_str());
        if !text.iter().any(named) {
            return None;
        }
        let macros = Macros::default();
        declarations(text, &macros, At::File(file)).all.into_iter().find_map(|range| {
            let at = (range.from..range.to).find(|at| certain[*at] && named(&text[*at]))?;
            let whole: Vec<Token> =
                text[range.from..range.to].iter().filter(|t| t.kind != Kind::Directive).cloned().collect();
            let part = part(&whole, &macros, &None)?;
            let place = |line| Place { file: file.to_string(), line };
            let declares = |name: &&&str| part.names.contains(**name) && declarator(&whole, name);
            if let Some(name) = self.names.iter().find(declares) {
                let line = whole.iter().find(|t| t.is(name)).map_or(text[at].line, |t| t.line);
                return Some(Fixed { name: name.to_string(), place: place(line), by: FixedBy::Declaration });
            }
            let kernel = part.names.iter().find(|name| self.kernels.contains(&name.as_str()))?;
            let parameter = parameters(&part).into_iter().find(named)?;
            let by = FixedBy::Parameter { kernel: kernel.clone() };
            Some(Fixed { name: parameter.text.clone(), place: place(parameter.line), by })
        })
    }
}

/// Which tokens of a file stand under no condition. The one that surrounds a header so that it is read once is none; `#ifndef BLOCK` around `#define BLOCK` is one.
pub(super) fn certain(text: &[Token], names: &[&str]) -> Vec<bool> {
    let once = guard(text).is_some_and(|name| !names.contains(&name));
    let mut depth = 0_usize;
    let of = |token: &Token| {
        match token.directive() {
            Some(("if" | "ifdef" | "ifndef", _)) => depth += 1,
            Some(("endif", _)) => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth <= usize::from(once)
    };
    text.iter().map(of).collect()
}

/// Whether a declaration, as it is written, declares one of these names.
pub(super) fn declares_one<'n>(written: &[Token], mut names: impl Iterator<Item = &'n str>) -> bool {
    names.any(|name| {
        declarator(written, name)
            && part(written, &Macros::default(), &None).is_some_and(|part| part.names.contains(name))
    })
}

/// Whether a name of a declaration stands where a declarator does.
fn declarator(whole: &[Token], name: &str) -> bool {
    let (before, after) = (["*", "&", ">", ",", "{", "]"], ["=", "{", ";", ",", "(", "[", "}", ":"]);
    whole.windows(3).any(|w| {
        let begins = w[0].is_word() || before.iter().any(|text| w[0].is(text));
        begins && w[1].is(name) && after.iter().any(|text| w[2].is(text))
    })
}

/// The names of a function's parameters and of its template's.
pub(super) fn parameters(part: &Part) -> Vec<Token> {
    let text = without_attributes(&part.header);
    let template =
        text.first().filter(|t| t.is("template")).and_then(|_| closing_angle(&text, 1)).map(|close| (1, close));
    let lists = template.into_iter().chain(parameter_list(&text));
    lists
        .flat_map(|(open, close)| list(&text, open, close))
        .filter_map(|(from, to)| parameter(&text[from..to]))
        .collect()
}

/// The name of a parameter: its last word outside brackets, or that of a pointer or reference in parentheses.
fn parameter(text: &[Token]) -> Option<Token> {
    let (mut at, mut name) = (0, None);
    while at < text.len() && !text[at].is("=") {
        let token = &text[at];
        match token.text.as_str() {
            "(" if text.get(at + 1).is_some_and(|t| t.is("*") || t.is("&")) => {
                return text[at + 1..].iter().find(|t| t.is_word()).cloned();
            }
            "(" | "[" | "{" if token.kind == Kind::Punctuation => at = closing(text, at)?,
            "<" if token.kind == Kind::Punctuation => at = closing_angle(text, at)?,
            _ if token.is_word() => name = (at > 0 && !text[at - 1].is("::")).then_some(token),
            _ => {}
        }
        at += 1;
    }
    name.cloned()
}
