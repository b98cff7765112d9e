//! Declarations that name a namespace which only an absent header can declare, and of these the overloads and specializations that nobody can choose without it.
//!
//! | a declaration that names one | is left out if |
//! |---|---|
//! | a specialization | an argument for a type is such a type, spelled directly: `Vec<at::Half, N>` |
//! | a function | a parameter without a default argument has such a type, spelled directly: `const at::Half &x`; and what follows holds |
//! | ... that takes a value or a constant reference | no other of its name takes `...` there, or an own class that an argument may be converted to |
//! | ... that takes a pointer | no call of that name passes a null pointer |
//! | ... whose name others have | one of these stands in its namespace, where it hides the same declarations |
//! | another one | nothing uses it without its name |
//!
//! Return types, bases, conditions of templates and values may name it without needing it: `enable_if_t<!c10::is_complex<T>::value>` may hold for every type here.
//! Such a type is one of the classes that [`super::classes`] lists. Any other foreign name, with arguments or without, may be an alias of `float`.

use std::collections::{BTreeMap, BTreeSet};

use super::Sources;
use super::brackets::{closing, closing_angle};
use super::classes::is_class;
use super::declarators::without_attributes;
use super::host::{Known, qualified};
use super::names::{opening_angle, parameter_list};
use super::part::{Part, What, is_keyword};
use super::tokens::{Kind, Token};

type At = (usize, usize);

/// How many tokens before its arguments the name of a call is looked for.
const LONGEST_CALL: usize = 200;

/// How a parameter or an argument of a foreign type is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direct {
    /// `at::Half x`, `const at::Half &x`, `at::Half &&x`: other types may be converted to it.
    Value,
    /// `at::Half &x`.
    Reference,
    /// `at::Half *x`.
    Pointer,
}

/// The names that are called with a literal null pointer.
#[derive(Debug, Default)]
struct Nulls {
    names: BTreeSet<String>,
    /// Whether a name that is not known may be.
    any: bool,
}

/// A function or a specialization as one of its meanings spells it.
struct Header<'h> {
    text: &'h [Token],
    /// Where foreign names begin.
    foreign: BTreeSet<usize>,
}

impl Sources<'_> {
    /// The declarations that an absent header's namespace keeps from being used without their names; and those that are not chosen without it, if they are
    /// overloads or specializations.
    pub(super) fn foreign(&self, by_name: &BTreeMap<&str, Vec<At>>, host: &BTreeSet<At>) -> BTreeSet<At> {
        let known = self.known();
        let of = |(g, group): (usize, &super::Group)| (0..group.parts.len()).map(move |p| (g, p)).collect::<Vec<_>>();
        let every = self.groups.iter().enumerate().flat_map(of);
        let named: BTreeSet<At> = every.filter(|at| known.foreign(&self.part(*at).header).is_some()).collect();
        let nulls = if named.is_empty() { Nulls::default() } else { self.nulls() };
        let left_out = |at: &At| {
            let part = self.part(*at);
            if !part.is_overload() {
                return true;
            }
            let others: Vec<At> =
                part.names.iter().flat_map(|name| by_name.get(name.as_str()).into_iter().flatten()).copied().collect();
            let others: BTreeSet<At> =
                others.into_iter().filter(|other| other != at && !host.contains(other)).collect();
            std::iter::once(&part.header).chain(&part.other_headers).all(|header| {
                let text = without_attributes(header);
                let foreign: BTreeSet<usize> = known.foreign_at(&text).collect();
                let header = Header { text: &text, foreign };
                self.specializes(&known, part, &header, &others)
                    || part.what == What::Function && self.takes(*at, &known, &header, &others, &named, &nulls)
            })
        };
        named.iter().copied().filter(left_out).collect()
    }

    /// Whether a specialization is for a foreign type.
    fn specializes(&self, known: &Known<'_>, part: &Part, header: &Header<'_>, others: &BTreeSet<At>) -> bool {
        let Some(at) = part.specialized_in(header.text) else { return false };
        let Some(close) = closing_angle(header.text, at + 1) else { return false };
        let arguments = list(header.text, at + 1, close);
        let mut direct = (0..arguments.len()).filter(|index| {
            let (from, to) = arguments[*index];
            direct(header, known, from, to).is_some_and(|(_, name)| name.is_none())
        });
        direct.any(|index| self.takes_type(&header.text[at].text, index, others))
    }

    /// Whether the template that is specialized takes a type at that place. One that is not here belongs to a library.
    fn takes_type(&self, name: &str, index: usize, others: &BTreeSet<At>) -> bool {
        let is_primary = |part: &&Part| {
            part.names.contains(name)
                && part.specialized().is_none()
                && part.header.first().is_some_and(|t| t.is("template"))
        };
        let mut primary = others.iter().map(|at| self.part(*at)).filter(is_primary).peekable();
        if primary.peek().is_none() {
            return !self.files.iter().any(|file| file.fragment);
        }
        primary.all(|part| {
            let Some(close) = closing_angle(&part.header, 1) else { return false };
            let parameters = list(&part.header, 1, close);
            let of = |(from, to): (usize, usize)| &part.header[from..to];
            let pack = parameters.last().is_some_and(|last| of(*last).iter().any(|t| t.is(".")));
            let found = parameters.get(index).or(parameters.last().filter(|_| pack)).map(|range| of(*range));
            // `typename T::type N` is a value.
            found.is_some_and(|text| {
                let first = ["typename", "class", "template"].iter().any(|word| text[0].is(word));
                first && !text.get(2).is_some_and(|t| t.is("::") || t.is("<") && text[0].is("typename"))
            })
        })
    }

    /// Whether a function needs an argument that only a foreign type can be.
    fn takes(
        &self,
        at: At,
        known: &Known<'_>,
        header: &Header<'_>,
        others: &BTreeSet<At>,
        named: &BTreeSet<At>,
        nulls: &Nulls,
    ) -> bool {
        let part = self.part(at);
        let Some((open, close)) = parameter_list(header.text) else { return false };
        let parameters = list(header.text, open, close);
        let symbol = symbol(header.text);
        // Other operators are no overloads of it.
        let same = |other: &&At| {
            let other = &self.part(**other).header;
            symbol.is_none() || self::symbol(&without_attributes(other)) == symbol
        };
        let others: Vec<&At> = others.iter().filter(same).collect();
        let scope = |at: &At| self.groups[at.0].range.scope;
        let beside = |other: &&At| {
            let plain = !named.contains(*other) && self.part(**other).what == What::Function;
            plain && scope(other) == scope(&at)
        };
        if !others.is_empty() && !others.iter().copied().any(|other| beside(&other)) {
            return false;
        }
        let body = |part: &Part| part.tokens.last().is_some_and(|t| t.is("}"));
        // `int a(at::N);` is a variable.
        let is_function = body(part)
            || others.iter().any(|other| self.part(**other).what == What::Function && body(self.part(**other)));
        let texts: Vec<Vec<&str>> = parameters.iter().map(|range| words_of_type(header.text, *range)).collect();
        let null = || symbol.is_some() || nulls.any || part.names.iter().any(|name| nulls.names.contains(name));
        (0..parameters.len()).any(|index| {
            let (from, to) = parameters[index];
            let Some((direct, name)) = direct(header, known, from, to) else { return false };
            let chosen = match direct {
                Direct::Reference => true,
                Direct::Pointer => !null(),
                Direct::Value => !others.iter().any(|other| self.converts(self.part(**other), index, &texts)),
            };
            chosen && (name.is_some() || is_function)
        })
    }

    /// Whether an overload may take there what is converted to it as to a foreign type, so that another argument decides.
    fn converts(&self, other: &Part, index: usize, texts: &[Vec<&str>]) -> bool {
        std::iter::once(&other.header).chain(&other.other_headers).any(|header| {
            let text = without_attributes(header);
            let Some((open, close)) = parameter_list(&text) else { return other.what == What::Function };
            let dots = text[open + 1..close].iter().rev().take_while(|t| t.is(".")).count() == 3;
            let parameters = list(&text, open, close);
            let own = text
                .first()
                .filter(|t| t.is("template"))
                .and_then(|_| closing_angle(&text, 1))
                .map_or(&[][..], |close| &text[..close]);
            let class = |word: &&str| self.spaces.contains(*word) && !own.iter().any(|t| t.is(word));
            let class = parameters.get(index).is_some_and(|range| words_of_type(&text, *range).iter().any(class));
            let differs = |at: usize| {
                at != index && parameters.get(at).is_none_or(|range| words_of_type(&text, *range) != texts[at])
            };
            dots || class && (0..texts.len()).any(differs)
        })
    }

    /// The names that are called with a literal null pointer, or with a macro that may be one.
    fn nulls(&self) -> Nulls {
        let mut out = Nulls::default();
        let bodies = self.macros.all.values().flat_map(|m| &m.definitions).map(|m| &m.body[..]);
        for text in self.files.iter().map(|file| &file.tokens[..]).chain(bodies) {
            let mut open: Vec<usize> = vec![];
            for (at, token) in text.iter().enumerate() {
                let before = at.checked_sub(1).map(|at| &text[at]);
                let ends = |at: usize| text.get(at).is_some_and(|t| t.is(",") || t.is(")"));
                let begins = before.is_some_and(|t| t.is("(") || t.is(","));
                let braces = token.is("{") && text.get(at + 1).is_some_and(|t| t.is("}")) && ends(at + 2);
                if begins && (braces || ends(at + 1) && self.is_null(token)) {
                    match open.last().map_or(Called::Unknown, |open| called(&text[..*open])) {
                        Called::Name(name) if !self.macros.contains(name) => drop(out.names.insert(name.to_string())),
                        Called::Launch => {}
                        _ => out.any = true,
                    }
                }
                // `auto p = nullptr;`
                out.any |= token.is("nullptr_t")
                    || token.is("nullptr") && at > 2 && text[at - 1].is("=") && text[at - 3].is("auto");
                match token.text.as_str() {
                    "(" if token.kind == Kind::Punctuation => open.push(at),
                    ")" if token.kind == Kind::Punctuation => drop(open.pop()),
                    _ => {}
                }
            }
        }
        out
    }

    fn is_null(&self, token: &Token) -> bool {
        let zero = || {
            let digits = token.text.trim_end_matches(['u', 'U', 'l', 'L', 'z', 'Z']);
            digits.starts_with('0') && digits.chars().all(|c| matches!(c, '0' | 'x' | 'X' | 'b' | 'B' | '\''))
        };
        match token.kind {
            Kind::Number => zero(),
            Kind::Word => {
                token.is("nullptr") || token.is("NULL") || token.is("__null") || self.macros.contains(&token.text)
            }
            _ => false,
        }
    }
}

/// What stands before the arguments of a call.
enum Called<'t> {
    Name(&'t str),
    /// The launch of a kernel, which is no call of an overload by device code.
    Launch,
    Unknown,
}

/// What is called by the arguments behind a text.
fn called(text: &[Token]) -> Called<'_> {
    let text = &text[text.len().saturating_sub(LONGEST_CALL)..];
    if text.len() > 2 && text[text.len() - 3..].iter().all(|t| t.is(">")) {
        return Called::Launch;
    }
    let name = match text.last() {
        Some(last) if last.is(">") => opening_angle(text, text.len() - 1).and_then(|open| open.checked_sub(1)),
        _ => text.len().checked_sub(1),
    };
    match name.map(|name| &text[name]).filter(|name| name.is_word()) {
        Some(name) => Called::Name(&name.text),
        None => Called::Unknown,
    }
}

/// The symbol of an operator.
fn symbol(header: &[Token]) -> Option<String> {
    let at = header.iter().position(|t| t.is("operator"))?;
    let (open, _) = parameter_list(header)?;
    Some(header.get(at + 1..open)?.iter().map(|t| t.text.as_str()).collect())
}

/// The parts between commas of a list of parameters or arguments, whose brackets are at `open` and `close`.
pub(super) fn list(text: &[Token], open: usize, close: usize) -> Vec<(usize, usize)> {
    let (mut out, mut from, mut at) = (vec![], open + 1, open + 1);
    while at < close {
        match text[at].text.as_str() {
            "(" | "[" | "{" if text[at].kind == Kind::Punctuation => at = closing(text, at).unwrap_or(close),
            "<" if text[at].kind == Kind::Punctuation && text[at - 1].is_word() => {
                at = closing_angle(text, at).unwrap_or(at);
            }
            "," if text[at].kind == Kind::Punctuation => {
                out.push((from, at));
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    out.push((from, close));
    out.retain(|(from, to)| from < to);
    out
}

/// The words of a parameter's type, without a name and a default argument.
fn words_of_type(text: &[Token], (from, to): (usize, usize)) -> Vec<&str> {
    let end = text[from..to].iter().position(|t| t.is("=")).map_or(to, |at| from + at);
    let mut words: Vec<&str> = text[from..end].iter().map(|t| t.text.as_str()).collect();
    let name = text[from..end].last().is_some_and(|t| t.is_word() && !is_keyword(&t.text));
    let before = text[from..end].iter().rev().nth(1);
    if name && before.is_some_and(|t| t.is_word() && !t.is("const") || ["*", "&", ">"].iter().any(|end| t.is(end))) {
        words.pop();
    }
    words
}

/// How a parameter or an argument spells a foreign class, with its name; none if it does not, or may be another type.
fn direct<'h>(header: &Header<'h>, known: &Known<'_>, from: usize, to: usize) -> Option<(Direct, Option<&'h str>)> {
    let text = header.text;
    let is = |at: usize, what: &[&str]| at < to && what.iter().any(|word| text[at].is(word));
    let qualifiers = ["const", "volatile", "__restrict__", "__restrict", "restrict"];
    let mut constant = false;
    let mut at = from;
    while is(at, &["const", "volatile", "struct", "class", "::"]) {
        constant |= text[at].is("const");
        at += 1;
    }
    if !header.foreign.contains(&at) || known.macros.contains(&text[at].text) {
        return None;
    }
    if !is_class(&qualified(text, at)) {
        return None;
    }
    while is(at + 1, &["::"]) && at + 2 < to && text[at + 2].is_word() {
        at += 2;
    }
    at += 1;
    if is(at, &["<"]) {
        at = closing_angle(text, at).filter(|close| *close < to)? + 1;
    }
    let (mut pointer, mut references, mut name) = (false, 0, None);
    while at < to {
        match text[at].text.as_str() {
            "*" => pointer = true,
            "&" => references += 1,
            "[" => {
                pointer = true;
                at = closing(text, at).filter(|close| *close < to)?;
            }
            word if qualifiers.contains(&word) => constant |= word == "const" && !pointer,
            word if text[at].is_word() && !is_keyword(word) && name.is_none() => name = Some(word),
            _ => return None,
        }
        at += 1;
    }
    let direct = match (pointer, references) {
        (true, _) => Direct::Pointer,
        (false, 1) if !constant => Direct::Reference,
        _ => Direct::Value,
    };
    Some((direct, name))
}
