//! Splits tokens into the declarations of namespaces: functions, types, variables, uses of macros. Knows brackets, bodies and conditional sections; does not
//! know what a declaration means. Conditions are not evaluated: each branch is read from where the first one began.

use super::macros::Macros;
use super::tokens::{Kind, Token};

/// A declaration, by its first token and the one after its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) from: usize,
    pub(super) to: usize,
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
    /// Whether brackets do not match, so that the ranges cannot be relied on.
    pub(super) broken: bool,
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
struct Open {
    from: usize,
    /// The open brackets, with the positions of their tokens.
    stack: Vec<usize>,
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
}

#[derive(Debug, Clone, Default)]
struct State {
    /// The positions of the braces of open namespaces.
    scopes: Vec<usize>,
    open: Option<Open>,
}

/// Splits tokens.
pub(super) fn declarations(text: &[Token], macros: &Macros) -> Declarations {
    let mut reader =
        Reader { text, macros, state: State::default(), sections: vec![], carried: None, out: Declarations::default() };
    let mut at = 0;
    while at < text.len() {
        at = reader.next(at);
    }
    reader.end()
}

/// A conditional section.
struct Section {
    /// The position of its `#if`.
    at: usize,
    /// The state there.
    before: State,
}

struct Reader<'a> {
    text: &'a [Token],
    macros: &'a Macros,
    state: State,
    sections: Vec<Section>,
    /// Where a declaration began in an earlier branch, if none was open before the branches.
    carried: Option<usize>,
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
        match self.state.open {
            None => self.begin(at),
            Some(_) => self.go_on(at),
        }
    }

    fn directive(&mut self, at: usize) -> usize {
        let (word, rest) = self.text[at].directive().unwrap_or_default();
        match word {
            "if" | "ifdef" | "ifndef" => {
                if word == "if" && rest == "0" {
                    return self.skipped(at);
                }
                self.sections.push(Section { at, before: self.state.clone() });
            }
            "else" | "elif" | "elifdef" | "elifndef" => {
                if let Some(section) = self.sections.last() {
                    let was = std::mem::replace(&mut self.state, section.before.clone());
                    if self.state.open.is_none() {
                        self.carried = self.carried.or(was.open.map(|open| open.from));
                    }
                }
            }
            "endif" => {
                self.sections.pop();
            }
            _ => {}
        }
        at + 1
    }

    /// Skips the first branch of `#if 0`. Its text may be anything.
    fn skipped(&mut self, at: usize) -> usize {
        let mut depth = 0;
        for (position, token) in self.text.iter().enumerate().skip(at + 1) {
            match token.directive().map(|(word, _)| word) {
                Some("if" | "ifdef" | "ifndef") => depth += 1,
                Some("endif") if depth == 0 => return position + 1,
                Some("endif") => depth -= 1,
                Some("else" | "elif") if depth == 0 => {
                    self.sections.push(Section { at, before: self.state.clone() });
                    return position + 1;
                }
                _ => {}
            }
        }
        self.sections.push(Section { at, before: self.state.clone() });
        self.text.len()
    }

    fn word(&self, at: usize) -> &str {
        self.text.get(at).map_or("", |t| &t.text)
    }

    /// Between declarations.
    fn begin(&mut self, at: usize) -> usize {
        let token = &self.text[at];
        let namespace = if token.is("inline") { at + 1 } else { at };
        if self.text.get(namespace).is_some_and(|t| t.is("namespace")) {
            let mut brace = namespace + 1;
            while self.text.get(brace).is_some_and(|t| t.is_word() || t.is("::") || t.is("[") || t.is("]")) {
                brace += 1;
            }
            if self.word(brace) == "{" {
                let names = self.text[namespace + 1..brace].iter().filter(|t| t.is_word()).map(|t| t.text.clone());
                self.out.namespaces.extend(names);
                self.state.scopes.push(brace);
                return brace + 1;
            }
        }
        if token.is("extern")
            && self.text.get(at + 1).is_some_and(|t| t.kind == Kind::Literal)
            && self.word(at + 2) == "{"
        {
            self.state.scopes.push(at + 2);
            return at + 3;
        }
        if token.is("}") {
            self.out.broken |= self.state.scopes.pop().is_none();
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
        });
        self.go_on(at)
    }

    /// A use of a macro that is a declaration by itself, or that opens or closes a namespace.
    fn use_of_macro(&mut self, at: usize) -> Option<usize> {
        let word = &self.text[at].text;
        let called = self.word(at + 1) == "(";
        if !called || (self.macros.contains(word) && !self.macros.takes_arguments(word)) {
            if !self.macros.contains(word) && !called && self.stands_apart(at) {
                // Of a header that is not here.
                self.out.all.push(Range { from: self.carried.take().unwrap_or(at), to: at + 1 });
                return Some(at + 1);
            }
            if !self.macros.contains(word) || self.macros.takes_arguments(word) {
                return None;
            }
            let made = self.macros.expand(&self.text[at..=at]);
            let count = |c: &str| made.iter().filter(|t| t.is(c)).count();
            let (opens, closes) = (count("{"), count("}"));
            if opens == closes {
                return None;
            }
            (closes..opens).for_each(|_| self.state.scopes.push(at));
            for _ in opens..closes {
                self.out.broken |= self.state.scopes.pop().is_none();
            }
            self.out.namespaces.extend(made.into_iter().filter(Token::is_word).map(|t| t.text));
            return Some(at + 1);
        }
        if is_attribute(word) || ["static_assert", "asm", "__asm__"].contains(&word.as_str()) {
            return None;
        }
        let close = closing(self.text, at + 1)?;
        let whole = match self.macros.contains(word) {
            true => {
                let made = self.macros.expand(&self.text[at..=close]);
                made.last().is_none_or(|t| t.is("}") || t.is(";"))
            }
            // Of a header that is not here: a use on lines of its own.
            false => {
                let next = self.text.get(close + 1);
                let apart = next.is_none_or(|t| t.line > self.text[close].line);
                apart && next.is_none_or(|t| t.kind == Kind::Directive || t.is_word() || t.is("}"))
            }
        };
        if !whole {
            return None;
        }
        // A semicolon that follows belongs to nothing.
        let from = self.carried.take().unwrap_or(at);
        self.out.all.push(Range { from, to: close + 1 });
        Some(close + 1)
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
            if open.stack.is_empty() && token.is("template") && self.text.get(at + 1).is_some_and(|t| t.is("<")) {
                open.skip = closing_angle(self.text, at + 1).map_or(at, |close| close + 1);
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
                if open.stack.is_empty() {
                    open.body = is_body(self.text, open, at);
                }
                open.stack.push(at);
            }
            ")" | "]" | "}" => {
                let fits = open.stack.pop().is_some_and(|from| {
                    matches!((self.text[from].text.as_str(), token.text.as_str()), ("(", ")") | ("[", "]") | ("{", "}"))
                });
                if !fits {
                    self.out.broken = true;
                }
                if open.stack.is_empty() && (open.body || !fits) {
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
            self.out.all.push(Range { from: open.from, to: last + 1 });
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
        self.out
    }
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
    while let Some(token) = text.get(at) {
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
        let found = declarations(&all, &macros(text));
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
