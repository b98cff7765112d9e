//! Splits tokens into the declarations of namespaces: functions, types, variables, uses of macros. Knows brackets, bodies and conditional sections; does not
//! know what a declaration means. Conditions are not evaluated: each branch is read from where the first one began.

use std::collections::BTreeMap;

use super::brackets::opens_requirements;
pub(super) use super::brackets::{closing, closing_angle, head, is_attribute};
use super::branches::{End, Section, agreement};
use super::macros::Macros;
use super::order::{Positions, guard};
use super::tokens::{Kind, Token};

/// How deeply brackets may nest. What nests deeper is not split.
pub(super) const DEEPEST: usize = 2_000;

/// A declaration, by its first token and the one after its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Whether it is one, or several that a macro makes, whatever conditions and macros say. Nothing is left out of another one.
    pub(super) certain: bool,
    /// Whether it stands in a namespace of the C++ library or of CUDA's: `std`.
    pub(super) in_library: bool,
    /// The namespace that it stands in: equal for those in one.
    pub(super) scope: u64,
}

/// Where a text stands, so that macros mean what they mean there.
#[derive(Debug, Clone, Copy)]
pub(super) enum At<'a> {
    /// It is the file of that name.
    File(&'a str),
    /// All of it is at these places.
    Places(&'a Positions),
}

impl At<'_> {
    /// The places of a token.
    pub(super) fn of(&self, macros: &Macros, token: usize) -> Positions {
        match self {
            At::File(name) => macros.order.positions(name, token),
            At::Places(places) => (*places).clone(),
        }
    }
}

/// What a text ends inside of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Opening {
    /// What is open: `the brace`, `the template`.
    pub(super) what: &'static str,
    /// The line at which it begins.
    pub(super) line: u32,
}

/// What is open where a declaration has no end.
pub(super) const DECLARATION: &str = "the declaration";

/// The declarations of a text.
#[derive(Debug, Clone, Default)]
pub(super) struct Declarations {
    /// In order.
    pub(super) all: Vec<Range>,
    /// What is still open at the end.
    pub(super) opening: Option<Opening>,
    /// Whether brackets do not match, or match only under conditions, so that the ranges cannot be relied on.
    pub(super) broken: bool,
    /// A bracket that closes nothing, with its line.
    pub(super) stray: Option<(&'static str, u32)>,
    /// The positions of directives that are inside a declaration.
    pub(super) inside: Vec<usize>,
    /// The names of namespaces that are opened.
    pub(super) namespaces: Vec<String>,
}

/// A declaration that is being read.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) from: usize,
    /// The open brackets, with the positions of their tokens.
    pub(super) stack: Vec<usize>,
    /// Whether parameters came.
    parameters: bool,
    /// Whether an initializer came: `=`.
    assigned: bool,
    /// Whether a colon came after parameters: the initializers of a constructor.
    initializers: bool,
    /// Whether the open brace is the body of a function, which ends the declaration.
    body: bool,
    /// The token after a list of template parameters: tokens before it are skipped.
    skip: usize,
    /// Whether such a list has no end. Others are then not looked for.
    endless: bool,
    /// Whether it may be several declarations.
    uncertain: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// The positions of the braces of open namespaces.
    pub(super) scopes: Vec<usize>,
    pub(super) open: Option<Open>,
}

/// Splits tokens.
pub(super) fn declarations(text: &[Token], macros: &Macros, place: At<'_>) -> Declarations {
    let mut reader = Reader {
        text,
        macros,
        place,
        state: State::default(),
        sections: vec![],
        carried: None,
        uncertain: false,
        forked: (0, 0),
        unbalanced: 0,
        hashes: BTreeMap::new(),
        out: Declarations::default(),
    };
    let mut at = 0;
    while at < text.len() {
        at = reader.next(at);
    }
    reader.end()
}

pub(super) struct Reader<'a> {
    pub(super) text: &'a [Token],
    pub(super) macros: &'a Macros,
    pub(super) place: At<'a>,
    pub(super) state: State,
    pub(super) sections: Vec<Section>,
    /// Where a declaration began in an earlier branch, if none was open before the branches.
    pub(super) carried: Option<usize>,
    /// Whether the next declaration begins with a macro that may be a declaration by itself.
    pub(super) uncertain: bool,
    /// How many sections of the open declaration have branches that leave other brackets open, and how many these open, less those that they close.
    forked: (usize, i64),
    /// The namespaces that such sections open between declarations, less those that they close.
    unbalanced: i64,
    /// The namespaces by their braces.
    pub(super) hashes: BTreeMap<usize, u64>,
    pub(super) out: Declarations,
}

impl Reader<'_> {
    /// Reads from a position; returns the next one.
    fn next(&mut self, at: usize) -> usize {
        let token = &self.text[at];
        if token.kind == Kind::Directive {
            if self.state.open.is_some() {
                self.out.inside.push(at);
            }
            return self.directive(at);
        }
        let next = match self.state.open {
            None => self.begin(at),
            Some(_) => self.go_on(at),
        };
        if self.state.scopes.len() + self.state.open.as_ref().map_or(0, |open| open.stack.len()) > DEEPEST {
            self.out.broken = true;
            return self.text.len();
        }
        next
    }

    fn directive(&mut self, at: usize) -> usize {
        let (word, rest) = self.text[at].directive().unwrap_or_default();
        match word {
            "if" | "ifdef" | "ifndef" => {
                if word == "if" && rest == "0" {
                    return self.skipped(at);
                }
                self.sections.push(Section::new(at, &self.state, self.out.all.len()));
            }
            "else" | "elif" | "elifdef" | "elifndef" => {
                if let Some(section) = self.sections.last_mut() {
                    section.ends.push(End::of(&self.state));
                    section.complete |= word == "else";
                    let was = std::mem::replace(&mut self.state, section.before.clone());
                    if self.state.open.is_none() {
                        self.carried = self.carried.or(was.open.map(|open| open.from));
                    }
                }
            }
            "endif" => {
                if let Some(section) = self.sections.pop() {
                    self.close(section);
                }
            }
            _ => {}
        }
        at + 1
    }

    /// The end of a section: whether its branches agree about what is open.
    fn close(&mut self, mut section: Section) {
        section.ends.push(End::of(&self.state));
        let agreement = agreement(&section);
        // What only some branches begin goes on behind the section. It is one declaration if nothing ended in the section.
        self.out.broken |= agreement.hard || agreement.begins && self.out.all.len() > section.declared;
        if agreement.forked {
            self.forked.0 += 1;
            self.forked.1 += agreement.opens;
        } else {
            self.unbalanced += agreement.opens;
        }
    }

    /// Skips the first branch of `#if 0`. Its text may be anything.
    fn skipped(&mut self, at: usize) -> usize {
        let mut depth = 0;
        for (position, token) in self.text.iter().enumerate().skip(at + 1) {
            match token.directive().map(|(word, _)| word) {
                Some("if" | "ifdef" | "ifndef") => depth += 1,
                Some("endif") if depth == 0 => return position + 1,
                Some("endif") => depth -= 1,
                Some(word @ ("else" | "elif" | "elifdef" | "elifndef")) if depth == 0 => {
                    let complete = word == "else";
                    self.sections.push(Section { complete, ..Section::new(at, &self.state, self.out.all.len()) });
                    return position + 1;
                }
                _ => {}
            }
        }
        self.sections.push(Section::new(at, &self.state, self.out.all.len()));
        self.text.len()
    }

    pub(super) fn word(&self, at: usize) -> &str {
        self.text.get(at).map_or("", |t| &t.text)
    }

    /// Between declarations.
    fn begin(&mut self, at: usize) -> usize {
        let token = &self.text[at];
        let namespace = if token.is("inline") { at + 1 } else { at };
        if self.text.get(namespace).is_some_and(|t| t.is("namespace"))
            && let Some((brace, names)) = self.namespace(namespace)
        {
            self.out.namespaces.extend(names);
            self.state.scopes.push(brace);
            return brace + 1;
        }
        if token.is("extern")
            && self.text.get(at + 1).is_some_and(|t| t.kind == Kind::Literal)
            && self.word(at + 2) == "{"
        {
            self.state.scopes.push(at + 2);
            return at + 3;
        }
        if token.is("}") {
            if self.state.scopes.pop().is_none() {
                self.stray("brace", at);
            }
            return at + 1;
        }
        if token.is(";") {
            return at + 1;
        }
        if token.is_word()
            && let Some(next) = self.use_of_macro(at)
        {
            return next;
        }
        let from = self.carried.take().unwrap_or(at);
        self.state.open = Some(Open {
            from,
            stack: vec![],
            parameters: false,
            assigned: false,
            initializers: false,
            body: false,
            skip: at,
            endless: false,
            uncertain: std::mem::take(&mut self.uncertain),
        });
        self.go_on(at)
    }

    /// The brace that opens a namespace, and the namespace's names; none for an alias.
    fn namespace(&self, at: usize) -> Option<(usize, Vec<String>)> {
        let (mut brace, mut names) = (at + 1, vec![]);
        loop {
            let token = self.text.get(brace)?;
            match token.text.as_str() {
                "(" | "[" if token.kind == Kind::Punctuation => brace = closing(self.text, brace)?,
                "{" => return Some((brace, names)),
                "inline" | "::" => {}
                word if token.is_word() => {
                    names.push(word.to_string());
                    names.extend(self.macros.words(word));
                }
                _ => return None,
            }
            brace += 1;
        }
    }

    /// A bracket that closes nothing. Conditions may explain it.
    pub(super) fn stray(&mut self, what: &'static str, at: usize) {
        let guarded = self.sections.len() == usize::from(guard(self.text).is_some());
        if !self.out.broken && guarded && self.unbalanced == 0 && self.forked.1 == 0 {
            self.out.stray = Some((what, self.text[at].line));
        }
        self.out.broken = true;
    }

    /// Within a declaration.
    fn go_on(&mut self, at: usize) -> usize {
        let Some(open) = &mut self.state.open else { return at + 1 };
        let token = &self.text[at];
        if at < open.skip || token.kind != Kind::Punctuation {
            let list = token.is("template") && self.text.get(at + 1).is_some_and(|t| t.is("<"));
            if open.stack.is_empty() && list && !open.endless {
                let close = closing_angle(self.text, at + 1);
                open.endless = close.is_none();
                open.skip = close.map_or(at, |close| close + 1);
            }
            return at + 1;
        }
        let before = |n: usize| at.checked_sub(n).map_or("", |at| self.text[at].text.as_str());
        match token.text.as_str() {
            "(" | "[" => {
                let attribute = is_attribute(before(1));
                open.parameters |= open.stack.is_empty() && token.is("(") && !attribute && !open.assigned;
                open.stack.push(at);
            }
            "{" => {
                if open.stack.is_empty() && !opens_requirements(self.text, at) {
                    open.body = is_body(self.text, open, at);
                }
                open.stack.push(at);
            }
            ")" | "]" | "}" => {
                let opened = open.stack.pop();
                let fits = opened.is_some_and(|from| {
                    matches!((self.text[from].text.as_str(), token.text.as_str()), ("(", ")") | ("[", "]") | ("{", "}"))
                });
                let (ends, catches) = (open.stack.is_empty(), self.text.get(at + 1).is_some_and(|t| t.is("catch")));
                if ends && open.body && catches {
                    // `void f() try { } catch (...) { }`
                    open.body = false;
                    return at + 1;
                }
                let ends = ends && (open.body || !fits);
                match opened {
                    None => {
                        let what = match token.text.as_str() {
                            "}" => "brace",
                            ")" => "parenthesis",
                            _ => "bracket",
                        };
                        self.stray(what, at);
                    }
                    Some(_) if !fits => self.out.broken = true,
                    Some(_) => {}
                }
                if ends {
                    return self.finish(at);
                }
            }
            ";" if open.stack.is_empty() => return self.finish(at),
            "=" if open.stack.is_empty() && before(1) != "operator" && before(2) != "operator" => open.assigned = true,
            ":" if open.stack.is_empty() => open.initializers |= open.parameters,
            _ => {}
        }
        at + 1
    }

    fn finish(&mut self, last: usize) -> usize {
        if let Some(open) = self.state.open.take() {
            let (forked, opens) = std::mem::take(&mut self.forked);
            if forked > 0 {
                // Brackets of several branches counted: they may have swallowed other declarations.
                let text = &self.text[open.from..=last];
                self.out.broken |= opens != 0 || swallows(text);
            }
            let in_library = self.in_library();
            let scope = self.scope();
            self.out.all.push(Range { from: open.from, to: last + 1, certain: !open.uncertain, in_library, scope });
        }
        last + 1
    }

    fn end(mut self) -> Declarations {
        let line = |at: usize| self.text[at].line;
        let open = self.state.open.as_ref();
        self.out.opening = match (open, self.state.scopes.last(), self.sections.last()) {
            (Some(open), ..) => Some(match open.stack.first() {
                Some(at) if self.text[*at].is("{") => Opening { what: "the brace", line: line(*at) },
                Some(at) if self.text[*at].is("(") => Opening { what: "the parenthesis", line: line(*at) },
                Some(at) => Opening { what: "the bracket", line: line(*at) },
                None if self.text[open.from].is("template") => Opening { what: "the template", line: line(open.from) },
                None => Opening { what: DECLARATION, line: line(open.from) },
            }),
            (None, Some(at), _) => Some(Opening { what: "the namespace", line: line(*at) }),
            (None, None, Some(section)) => Some(Opening { what: "the condition", line: line(section.at) }),
            (None, None, None) => None,
        };
        // Conditions explain what seems to be open.
        let explained = self.unbalanced != 0 || self.forked.1 != 0 || self.out.broken;
        if explained && self.out.opening.as_ref().is_some_and(|opening| opening.what != "the condition") {
            self.out.broken = true;
            self.out.opening = None;
        }
        self.out.all = apart(self.out.all);
        self.out
    }
}

/// Ranges that do not overlap: those that do, because a declaration begins in several branches, become one.
fn apart(mut all: Vec<Range>) -> Vec<Range> {
    all.sort_by_key(|range| (range.from, range.to));
    let mut out: Vec<Range> = vec![];
    for range in all {
        match out.last_mut() {
            Some(last) if range.from < last.to => {
                let in_library = last.in_library || range.in_library;
                // One that only ends in several branches is one declaration.
                let certain = range.from == last.from && last.certain && range.certain;
                *last = Range { from: last.from, to: last.to.max(range.to), certain, in_library, scope: last.scope };
            }
            _ => out.push(range),
        }
    }
    out
}

/// Whether a declaration holds, inside its braces, what only stands between declarations.
fn swallows(text: &[Token]) -> bool {
    let body = text.iter().position(|t| t.is("{")).unwrap_or(text.len());
    let between = ["__global__", "__constant__", "__managed__", "namespace", "template", "extern"];
    text[body..].windows(2).any(|w| between.iter().any(|word| w[1].is(word)) || w[1].is("__device__") && !w[0].is("]"))
}

/// Whether a brace that opens at `at` is the body of a function.
fn is_body(text: &[Token], open: &Open, at: usize) -> bool {
    let before = &text[at.saturating_sub(1)];
    let head = head(&text[open.from..at]);
    if open.assigned || !open.parameters || matches!(head, Some("enum" | "typedef" | "using" | "concept")) {
        return false;
    }
    if open.initializers && (before.is_word() && !before.is("try") || before.is(">")) {
        // The initializer of a member.
        return false;
    }
    // `struct S f() {` is a function, `struct S : B<decltype(f())> {` is none.
    !matches!(head, Some("struct" | "class" | "union")) || before.is(")") || before.is("const") || before.is("noexcept")
}
