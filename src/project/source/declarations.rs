//! Splits tokens into the declarations of namespaces: functions, types, variables, uses of macros. Knows brackets, bodies and conditional sections; does not
//! know what a declaration means. Conditions are not evaluated: each branch is read from where the first one began.

use super::branches::{End, Section, agreement};
use super::macros::Macros;
use super::order::{Positions, guard};
use super::tokens::{Kind, Token};

/// How deeply brackets may nest. What nests deeper is not split.
const DEEPEST: usize = 2_000;

/// How many tokens a list of template parameters or arguments may have.
const LONGEST_LIST: usize = 5_000;

/// A declaration, by its first token and the one after its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Whether it is one, or several that a macro makes, whatever conditions and macros say. Nothing is left out of another one.
    pub(super) certain: bool,
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

/// Words before a parenthesis that begins no list of parameters.
const ATTRIBUTES: [&str; 15] = [
    "__launch_bounds__",
    "__attribute__",
    "__attribute",
    "alignas",
    "__align__",
    "__builtin_align__",
    "__declspec",
    "decltype",
    "noexcept",
    "__cluster_dims__",
    "__maxnreg__",
    "__block_size__",
    "explicit",
    "requires",
    "__typeof__",
];

pub(super) fn is_attribute(word: &str) -> bool {
    ATTRIBUTES.contains(&word)
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
        forked: 0,
        unbalanced: 0,
        out: Declarations::default(),
    };
    let mut at = 0;
    while at < text.len() {
        at = reader.next(at);
    }
    reader.end()
}

struct Reader<'a> {
    text: &'a [Token],
    macros: &'a Macros,
    place: At<'a>,
    state: State,
    sections: Vec<Section>,
    /// Where a declaration began in an earlier branch, if none was open before the branches.
    carried: Option<usize>,
    /// Whether the next declaration begins with a macro that may be a declaration by itself.
    uncertain: bool,
    /// Sections whose branches leave other brackets of a declaration open, in the declaration that is open.
    forked: usize,
    /// The namespaces and brackets that such sections open, less those that they close.
    unbalanced: i64,
    out: Declarations,
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
                self.sections.push(Section::new(at, self.state.clone()));
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
        self.out.broken |= agreement.hard;
        self.unbalanced += agreement.opens;
        self.forked += usize::from(agreement.forked);
        if self.state.open.is_none() && section.before.open.is_none() {
            self.carried = None;
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
                    self.sections.push(Section { complete, ..Section::new(at, self.state.clone()) });
                    return position + 1;
                }
                _ => {}
            }
        }
        self.sections.push(Section::new(at, self.state.clone()));
        self.text.len()
    }

    fn word(&self, at: usize) -> &str {
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
    fn stray(&mut self, what: &'static str, at: usize) {
        let guarded = self.sections.len() == usize::from(guard(self.text).is_some());
        if !self.out.broken && guarded && self.unbalanced == 0 && self.forked == 0 {
            self.out.stray = Some((what, self.text[at].line));
        }
        self.out.broken = true;
    }

    /// A use of a macro that is a declaration by itself, or that opens or closes a namespace.
    fn use_of_macro(&mut self, at: usize) -> Option<usize> {
        let word = &self.text[at].text;
        let called = self.word(at + 1) == "(";
        if self.macros.contains(word) {
            let takes = called && self.macros.takes_arguments(word);
            let last = if takes { closing(self.text, at + 1)? } else { at };
            return self.use_of_known(at, last, takes);
        }
        if !called {
            if self.stands_apart(at) {
                // Of a header that is not here.
                return Some(self.whole(at, at + 1, true));
            }
            return None;
        }
        if is_attribute(word) || ["static_assert", "asm", "__asm__"].contains(&word.as_str()) {
            return None;
        }
        // Of a header that is not here: a use on lines of its own.
        let close = closing(self.text, at + 1)?;
        let next = self.text.get(close + 1);
        let apart = next.is_none_or(|t| t.line > self.text[close].line);
        let whole = apart && next.is_none_or(|t| t.kind == Kind::Directive || t.is_word() || t.is("}"));
        whole.then(|| self.whole(at, close + 1, true))
    }

    fn use_of_known(&mut self, at: usize, last: usize, takes: bool) -> Option<usize> {
        let used: Vec<Token> = self.text[at..=last].iter().filter(|t| t.kind != Kind::Directive).cloned().collect();
        let places = self.place.of(self.macros, at);
        let Some(choices) = self.macros.choices(&used, &places) else {
            self.uncertain = true;
            return None;
        };
        let made: Vec<_> = choices.iter().map(|choice| self.macros.expanded(&used, choice)).collect();
        if made.iter().any(|made| !made.complete) {
            self.uncertain = true;
            return None;
        }
        // What it may be, where it is anything.
        let made = made.iter().map(|made| &made.tokens[..]).filter(|made| !made.is_empty());
        let made: Vec<_> = made.filter(|made| !(made.len() == used.len() && made[0].text == used[0].text)).collect();
        if let Some(odd) = made.iter().find(|made| scopes(made) != (0, 0)) {
            let (pops, pushes) = scopes(odd);
            self.out.broken |= made.iter().any(|made| scopes(made) != (0, 0) && !is_space(made));
            for _ in 0..pops {
                if self.state.scopes.pop().is_none() {
                    self.stray("brace", at);
                }
            }
            (0..pushes).for_each(|_| self.state.scopes.push(at));
            self.out.namespaces.extend(made.iter().copied().flatten().filter(|t| t.is_word()).map(|t| t.text.clone()));
            return Some(last + 1);
        }
        let whole = |made: &[Token]| {
            let found = declarations(made, self.macros, At::Places(&places));
            found.opening.is_none() && !found.broken
        };
        let count = made.iter().filter(|made| whole(made)).count();
        if made.is_empty() {
            // A semicolon that follows belongs to nothing.
            return takes.then(|| self.whole(at, last + 1, true));
        }
        if count == made.len() {
            return Some(self.whole(at, last + 1, true));
        }
        self.uncertain |= count > 0;
        None
    }

    /// Adds what is a declaration by itself.
    fn whole(&mut self, at: usize, to: usize, certain: bool) -> usize {
        let from = self.carried.take().unwrap_or(at);
        let certain = certain && !std::mem::take(&mut self.uncertain);
        self.out.all.push(Range { from, to, certain });
        to
    }

    /// Whether a word is alone on its line and looks like a macro.
    fn stands_apart(&self, at: usize) -> bool {
        let token = &self.text[at];
        let capital = token.text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        let before = at.checked_sub(1).map(|at| &self.text[at]);
        let after = self.text.get(at + 1);
        let apart = before.is_none_or(|t| t.line < token.line) && after.is_none_or(|t| t.line > token.line);
        capital && apart && token.text.len() > 1 && !after.is_some_and(|t| t.is("("))
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
            if std::mem::take(&mut self.forked) > 0 {
                // Brackets of several branches counted: they may have swallowed other declarations.
                let text = &self.text[open.from..=last];
                self.out.broken |= self.unbalanced != 0 || swallows(text);
            }
            self.out.all.push(Range { from: open.from, to: last + 1, certain: !open.uncertain });
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
        let explained = self.unbalanced != 0 || self.forked > 0 || self.out.broken;
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
                *last = Range { from: last.from, to: last.to.max(range.to), certain: false };
            }
            _ => out.push(range),
        }
    }
    out
}

/// How many open braces a text closes, and how many it opens and leaves open.
fn scopes(text: &[Token]) -> (usize, usize) {
    let (mut pops, mut open) = (0, 0);
    for token in text {
        if token.is("{") {
            open += 1;
        } else if token.is("}") && open > 0 {
            open -= 1;
        } else if token.is("}") {
            pops += 1;
        }
    }
    (pops, open)
}

/// Whether a text only opens and closes namespaces and the like.
fn is_space(text: &[Token]) -> bool {
    let (_, opens) = scopes(text);
    let plain = |t: &Token| {
        t.is_word() || t.kind == Kind::Literal || ["::", "{", "}", ";", "[", "]"].iter().any(|text| t.is(text))
    };
    text.iter().all(plain) && (opens == 0 || text.iter().any(|t| t.is("namespace") || t.is("extern")))
}

/// Whether a declaration holds, inside its braces, what only stands between declarations.
fn swallows(text: &[Token]) -> bool {
    let body = text.iter().position(|t| t.is("{")).unwrap_or(text.len());
    let between = ["__global__", "__constant__", "__managed__", "namespace", "template", "extern"];
    text[body..].windows(2).any(|w| between.iter().any(|word| w[1].is(word)) || w[1].is("__device__") && !w[0].is("]"))
}

/// Whether a brace opens the list of a `requires` expression: `requires (T t) {`.
pub(super) fn opens_requirements(text: &[Token], at: usize) -> bool {
    let Some(mut before) = at.checked_sub(1) else { return false };
    if text[before].is(")") {
        let mut depth = 0;
        loop {
            match text[before].text.as_str() {
                ")" => depth += 1,
                "(" => depth -= 1,
                _ => {}
            }
            match before.checked_sub(1) {
                Some(next) => before = next,
                None => return false,
            }
            if depth == 0 {
                break;
            }
        }
    }
    // After a head, `requires (X) {` is a constraint and a body.
    let expression = |t: &Token| ["requires", "&", "|", "!", "(", "="].iter().any(|text| t.is(text));
    text[before].is("requires") && before.checked_sub(1).is_some_and(|at| expression(&text[at]))
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

/// The keyword that says what a declaration declares: the first one after template parameters, attributes and specifiers.
pub(super) fn head(text: &[Token]) -> Option<&str> {
    let mut at = 0;
    while at < text.len() {
        let token = &text[at];
        match token.text.as_str() {
            "template" if text.get(at + 1).is_some_and(|t| t.is("<")) => at = closing_angle(text, at + 1)?,
            word @ ("struct" | "class" | "union" | "enum" | "typedef" | "using" | "namespace" | "static_assert"
            | "concept") => {
                return Some(word);
            }
            word if is_attribute(word) && text.get(at + 1).is_some_and(|t| t.is("(")) => at = closing(text, at + 1)?,
            "[" if token.kind == Kind::Punctuation && text.get(at + 1).is_some_and(|t| t.is("[")) => {
                at = closing(text, at)?;
            }
            "static" | "inline" | "extern" | "constexpr" | "const" | "volatile" | "__device__" | "__constant__"
            | "__host__" | "__managed__" | "__shared__" | "template" => {}
            _ if matches!(token.kind, Kind::Literal | Kind::Directive) => {}
            _ => return None,
        }
        at += 1;
    }
    None
}

/// The position of the bracket that closes the one at `open`.
pub(super) fn closing(text: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, token) in text.iter().enumerate().skip(open).filter(|(_, t)| t.kind == Kind::Punctuation) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The position of the `>` that closes the `<` at `open`, where a list of template parameters or arguments begins.
pub(super) fn closing_angle(text: &[Token], open: usize) -> Option<usize> {
    let (mut depth, mut at) = (0, open);
    while let Some(token) = text.get(at).filter(|_| at < open + LONGEST_LIST) {
        match token.text.as_str() {
            _ if token.kind != Kind::Punctuation => {}
            "<" => depth += 1,
            ">" => depth -= 1,
            "(" | "[" | "{" => at = closing(text, at)?,
            ";" | ")" | "}" => return None,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::macros::spelled;
    use super::super::tokens::tokens;
    use super::*;

    fn macros(text: &str) -> Macros {
        let mut macros = Macros::default();
        for token in tokens(text).0 {
            if let Some(("define", rest)) = token.directive() {
                macros.define(rest);
            }
        }
        macros
    }

    fn of(text: &str) -> (Vec<String>, Declarations) {
        let all = tokens(text).0;
        let found = declarations(&all, &macros(text), At::Places(&None));
        (found.all.iter().map(|r| spelled(&all[r.from..r.to])).collect(), found)
    }

    #[test]
    fn each_declaration_is_found_whole() {
        for text in [
            "struct A { int x; void f() {} } a, b;",
            "struct __align__(16) A { float x[4]; };",
            "template <class T, int N = (3 > 2)> struct V { T x[N]; };",
            "enum E : int { X, Y };",
            "typedef struct { int x; } T;",
            "struct A f(int x) { return {}; }",
            "A::A(int x) : a{x}, b(x), c<int>{1} { f(); }",
            "const int t[] = { 1, 2 };",
            "__constant__ float c[4]{1, 2};",
            "auto f = [](int x) { return x; };",
            "template <int B> __global__ void __launch_bounds__(B) k(float *x) { x[0] = 1; }",
            "extern \"C\" __global__ void k(float *x) { }",
            "bool operator==(A a, A b) { return true; }",
            "A &operator=(A a) { return a; }",
            "auto f(int x) -> decltype(x) { return x; }",
            "using X = int;",
            "static_assert(sizeof(int) == 4, \"x\");",
            "PYBIND11_MODULE(NAME, m) { m.def(\"f\", &f); }",
            "int x = 3, *y;",
            "template <> __global__ void k<float>(float *x) { }",
            "void f() try { } ",
        ] {
            let both = format!("{text}\nint last;");
            assert_eq!(of(&both).0, [spelled(&tokens(text).0), "int last;".into()], "{text}");
        }
    }

    #[test]
    fn namespaces_are_entered() {
        let (all, found) =
            of("namespace a::b { namespace { int x; } } extern \"C\" { int y; } inline namespace v { int z; }");
        assert_eq!(all, ["int x;", "int y;", "int z;"]);
        assert_eq!(found.namespaces, ["a", "b", "v"]);
        assert!(!found.broken && found.opening.is_none());
    }

    #[test]
    fn uses_of_macros_are_declarations_where_they_are_whole() {
        let text = "#define K(n) __global__ void n() { }\n#define DECLARE(n) __global__ void n\n#define OPEN namespace q {\n#define CLOSE }\n\
                    K(a)\nK(b);\nDECLARE(c)(int *x) { }\nBIND(d, e)\nBIND(f, g)\nOPEN int h; CLOSE\nint i;";
        let expected = ["K(a)", "K(b)", "DECLARE(c)(int *x) { }", "BIND(d, e)", "BIND(f, g)", "int h;", "int i;"];
        let (all, found) = of(text);
        assert_eq!(all, expected);
        assert!(!found.broken && found.opening.is_none(), "{found:?}");
    }

    #[test]
    fn words_of_a_header_that_is_not_here_are_apart() {
        let (all, found) = of("LIBRARY_BEGIN\nint a;\nLIBRARY_API\nvoid f() { }\nLIBRARY_END\n");
        assert_eq!(all, ["LIBRARY_BEGIN", "int a;", "LIBRARY_API", "void f() { }", "LIBRARY_END"]);
        assert!(!found.broken && found.opening.is_none(), "{found:?}");
    }

    #[test]
    fn branches_of_conditions_count_once() {
        let text = "#if A\nvoid f(int x) {\n#else\nvoid f(float x) {\n#endif\n g(); }\nint a;\n#if 0\n}}} ' {\n#else\nint b;\n#endif\n\
                    #ifdef __cplusplus\nextern \"C\" {\n#endif\nint c;\n#ifdef __cplusplus\n}\n#endif\nvoid h() {\n#ifdef B\n if (x) {\n#else\n {\n#endif\n } }\nint d;";
        let (all, found) = of(text);
        assert_eq!(all.len(), 6, "{all:?}");
        assert!(all[0].ends_with("g(); }") && all[5] == "int d;", "{all:?}");
        assert!(!found.broken && found.opening.is_none(), "{found:?}");
    }

    #[test]
    fn what_is_open_at_the_end_is_named() {
        let opening = |text: &str| of(text).1.opening.map(|o| (o.what, o.line));
        assert_eq!(opening("int a;\nvoid f() {\n if (x) {\n }\nvoid g() { }\n"), Some(("the brace", 2)));
        assert_eq!(opening("int a;\ntemplate <int B>\n"), Some(("the template", 2)));
        assert_eq!(opening("namespace a {\nint b;\n"), Some(("the namespace", 1)));
        assert_eq!(opening("#if A\nint b;\n"), Some(("the condition", 1)));
        assert_eq!(opening("int a\n"), Some(("the declaration", 1)));
        assert_eq!(opening("int a(int b,\n"), Some(("the parenthesis", 1)));
        assert_eq!(opening("int a;\n"), None);
    }
}
