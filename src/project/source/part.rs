//! One declaration as the others see it: the names that it declares, the names that it uses, and whether it is host code beyond doubt. Knows CUDA's keywords
//! and how declarations are written; does not know other declarations.

use std::collections::BTreeSet;

use super::brackets::{closing, closing_angle, opens_requirements};
use super::branches::selected;
use super::expand::Choice;
use super::macros::Macros;
use super::names::{declared, enumerators};
use super::order::Positions;
use super::tokens::{Kind, Token};

/// What a declaration declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Function,
    /// A class, an enumeration, an alias of a type or of a namespace.
    Type,
    Variable,
    /// `using namespace`.
    Using,
    Assertion,
    /// An explicit instantiation of a template.
    Instantiation,
    /// Nothing that has a name: a use of a macro of a header that is not here.
    Nothing,
    /// Some of these, depending on conditions.
    Several,
}

/// A declaration.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) tokens: Vec<Token>,
    pub(super) what: What,
    /// What it declares. An operator is `operator`.
    pub(super) names: BTreeSet<String>,
    /// The names that it uses, its own included.
    pub(super) uses: BTreeSet<String>,
    /// The names that it calls.
    pub(super) calls: BTreeSet<String>,
    /// What precedes a body or an initializer, with macros expanded.
    pub(super) header: Vec<Token>,
    /// Whether it is `__global__`, under some condition at least.
    pub(super) kernel: bool,
    /// Whether it is `__global__` under every condition.
    pub(super) surely_kernel: bool,
    /// Whether it is code or data of a device: `__global__`, `__device__`, `__constant__`, `__managed__`; under some condition at least.
    pub(super) device: bool,
    /// The same, under every condition.
    pub(super) surely_device: bool,
    /// Whether it is `constexpr`, so that device code may use it.
    pub(super) constexpr: bool,
    /// The parameters of a function as text.
    pub(super) parameters: String,
    /// The headers that other branches and other meanings of macros give it, where they differ.
    pub(super) other_headers: Vec<Vec<Token>>,
}

impl Part {
    /// Whether it is a function, or a specialization of a template, so that others of its name may stand beside it in its namespace.
    pub(super) fn is_overload(&self) -> bool {
        self.what == What::Function || self.specialized().is_some()
    }

    /// The position in its header of the name that it specializes: `A` of `template <> struct std::A<int>`.
    pub(super) fn specialized(&self) -> Option<usize> {
        self.specialized_in(&self.header)
    }

    /// The same in another header of it.
    pub(super) fn specialized_in(&self, header: &[Token]) -> Option<usize> {
        let template = header.iter().position(|t| t.is("template")).filter(|at| *at < 2)?;
        let mut at = closing_angle(header, template + 1)? + 1;
        while let Some(token) = header.get(at) {
            let named = token.is_word() && self.names.contains(&token.text);
            match token.text.as_str() {
                ":" | "{" => return None,
                "(" | "[" if token.kind == Kind::Punctuation => at = closing(header, at)?,
                _ if named && header.get(at + 1).is_some_and(|t| t.is("<")) => return Some(at),
                "<" => at = closing_angle(header, at)?,
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// Takes every word for a name: the declaration has too many branches.
    fn take_for_anything(&mut self, whole: &[Token]) {
        let has = |words: &[&str]| whole.iter().any(|t| words.iter().any(|word| t.is(word)));
        self.names.extend(whole.iter().filter(|t| t.is_word() && !is_keyword(&t.text)).map(|t| t.text.clone()));
        self.kernel |= has(&["__global__"]);
        self.device |= has(&["__global__", "__device__", "__constant__", "__managed__"]);
        self.constexpr |= has(&["constexpr", "consteval"]);
        (self.surely_kernel, self.surely_device) = (false, false);
    }
}

/// Words that declare nothing.
const KEYWORDS: [&str; 62] = [
    "alignas",
    "auto",
    "bool",
    "char",
    "class",
    "const",
    "constexpr",
    "decltype",
    "double",
    "else",
    "enum",
    "explicit",
    "extern",
    "false",
    "final",
    "float",
    "for",
    "friend",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "noexcept",
    "nullptr",
    "operator",
    "override",
    "private",
    "protected",
    "public",
    "register",
    "requires",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "struct",
    "template",
    "this",
    "thread_local",
    "true",
    "typedef",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "while",
    "__device__",
    "__global__",
    "__host__",
    "__constant__",
    "__managed__",
    "__shared__",
    "__forceinline__",
    "__noinline__",
    "__restrict__",
];

pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

/// Reads a declaration, given without directives, with this meaning of macros.
/// None if its end is not known: a macro before its body holds a body of its own.
fn part_as(tokens: &[Token], macros: &Macros, choice: &Choice) -> Option<Part> {
    let written = header_length(tokens);
    let header = macros.expanded(&tokens[..written], choice);
    let ends = header_length(&header.tokens) < header.tokens.len() && tokens.get(written).is_none_or(|t| !t.is(";"));
    let ends = ends && header.tokens.iter().any(|t| t.is("{") || t.is(";"));
    (header.complete && !ends).then(|| read(tokens, header.tokens, written))
}

/// Reads a declaration whose tokens begin with `written` ones of a header, which expand to `header`.
fn read(tokens: &[Token], header: Vec<Token>, written: usize) -> Part {
    let length = header_length(&header);
    let has = |word: &str| header[..length].iter().any(|t| t.is(word)) || has_attribute(&header[..length], word);
    let (what, names, parameters) = declared(&header, tokens.get(written..).unwrap_or_default());
    let (mut uses, mut calls) = (BTreeSet::new(), BTreeSet::new());
    for text in [&header[..], &tokens[written.min(tokens.len())..]] {
        add_uses(text, &mut uses, &mut calls);
    }
    // Macros that were expanded are used also: they may have other definitions.
    add_uses(&tokens[..written], &mut uses, &mut BTreeSet::new());
    let kernel = has("__global__");
    let device = kernel || ["__device__", "__constant__", "__managed__"].iter().any(|word| has(word));
    Part {
        what,
        names,
        uses,
        calls,
        kernel,
        surely_kernel: kernel,
        device,
        surely_device: device,
        constexpr: has("constexpr") || has("consteval"),
        parameters,
        other_headers: vec![],
        tokens: tokens.to_vec(),
        header,
    }
}

/// Adds the names that a text uses and calls.
fn add_uses(text: &[Token], uses: &mut BTreeSet<String>, calls: &mut BTreeSet<String>) {
    for (at, token) in text.iter().enumerate().filter(|(_, t)| t.is_word()) {
        let before = at.checked_sub(1).map_or("", |at| text[at].text.as_str());
        let returned = before == "->" && at > 1 && text[at - 2].is(")");
        if before == "." && !(at > 1 && text[at - 2].is(".")) || before == "->" && !returned || is_keyword(&token.text)
        {
            continue;
        }
        if text.get(at + 1).is_some_and(|next| next.is("(")) {
            calls.insert(token.text.clone());
        }
        uses.insert(token.text.clone());
    }
}

/// Whether `__attribute__((device))` or the like stands for an annotation.
fn has_attribute(header: &[Token], annotation: &str) -> bool {
    let name = annotation.trim_matches('_');
    header.windows(3).enumerate().any(|(at, w)| {
        let attribute = w[0].is("__attribute__") || w[0].is("__location__");
        let close = if attribute && w[1].is("(") { closing(header, at + 1) } else { None };
        close.is_some_and(|close| header[at + 1..close].iter().any(|t| t.is(name) || t.is(annotation)))
    })
}

/// Reads a declaration as every branch of its conditions and every meaning of its macros has it. None if these are too many.
pub(super) fn part(text: &[Token], macros: &Macros, places: &Positions) -> Option<Part> {
    let mut found: Vec<Part> = vec![];
    let whole: Vec<Token> = text.iter().filter(|t| t.kind != Kind::Directive).cloned().collect();
    let selected = selected(text);
    for tokens in selected.texts {
        let choices = macros.choices(&tokens[..header_length(&tokens)], places)?;
        for choice in &choices {
            found.push(part_as(&tokens, macros, choice)?);
        }
    }
    let mut all = merged(found)?;
    add_enumerators(&whole, macros, places, &mut all.names)?;
    add_declarators_of_macros(&whole, macros, &mut all.names)?;
    if !selected.all {
        all.take_for_anything(&whole);
    }
    add_uses(&whole, &mut all.uses, &mut all.calls);
    all.tokens = whole;
    Some(all)
}

/// Adds the enumerators that macros make in the braces of an enumeration: every word that these macros reach, and every name that they give. None if that is not
/// known.
fn add_enumerators(whole: &[Token], macros: &Macros, places: &Positions, names: &mut BTreeSet<String>) -> Option<()> {
    let brace = whole.iter().position(|t| t.is("{") && t.kind == Kind::Punctuation);
    let Some(brace) = brace.filter(|brace| whole[..*brace].iter().any(|t| t.is("enum"))) else { return Some(()) };
    let body = &whole[brace..=closing(whole, brace).unwrap_or(whole.len() - 1)];
    let makers: Vec<Token> = body.iter().filter(|t| t.is_word() && macros.contains(&t.text)).cloned().collect();
    if makers.is_empty() {
        return Some(());
    }
    let words = body.iter().filter(|t| t.is_word()).map(|t| t.text.clone());
    names.extend(macros.reached(&makers)?.into_iter().chain(words).filter(|word| !is_keyword(word)));
    for choice in macros.choices(body, places)? {
        let made = macros.expanded(body, &choice);
        if !made.complete {
            return None;
        }
        names.extend(enumerators(&made.tokens));
    }
    Some(())
}

/// Adds the words of macros that may make further declarators: those outside brackets whose text holds a comma. None if these are too many.
fn add_declarators_of_macros(whole: &[Token], macros: &Macros, names: &mut BTreeSet<String>) -> Option<()> {
    if !whole.last().is_some_and(|t| t.is(";")) {
        return Some(());
    }
    let comma = |name: &String| {
        let bodies = macros.all.get(name).into_iter().flat_map(|meanings| &meanings.definitions);
        bodies.flat_map(|definition| &definition.body).any(|t| t.is(","))
    };
    let mut at = 0;
    while let Some(token) = whole.get(at) {
        if ["(", "[", "{"].iter().any(|open| token.is(open)) {
            at = closing(whole, at).unwrap_or(whole.len());
        } else if token.is_word() && macros.contains(&token.text) {
            let reached = macros.reached(std::slice::from_ref(token))?;
            if reached.iter().any(comma) {
                let given = whole.get(at + 1).filter(|t| t.is("(")).and_then(|_| closing(whole, at + 1)).unwrap_or(at);
                let given = whole[at..=given].iter().filter(|t| t.is_word()).map(|t| t.text.clone());
                names.extend(reached.into_iter().chain(given).filter(|word| !is_keyword(word)));
            }
        }
        at += 1;
    }
    Some(())
}

/// The part of a text that a macro makes, with these meanings: `made` is expanded, `spelled` is as the source has it.
pub(super) fn part_of_made(made: &[Token], spelled: &[Token]) -> Part {
    let length = header_length(made);
    let mut part = read(made, made[..length].to_vec(), length);
    add_uses(spelled, &mut part.uses, &mut BTreeSet::new());
    part
}

/// One declaration that has these meanings; none if there are none.
pub(super) fn merged(parts: Vec<Part>) -> Option<Part> {
    let mut parts = parts.into_iter();
    let mut all = parts.next()?;
    for other in parts {
        let same = |header: &Vec<Token>| header.iter().map(|t| &t.text).eq(other.header.iter().map(|t| &t.text));
        if !std::iter::once(&all.header).chain(&all.other_headers).any(same) {
            all.other_headers.push(other.header);
        }
        all.other_headers.extend(other.other_headers);
        if other.what != all.what {
            all.what = What::Several;
        }
        all.names.extend(other.names);
        all.uses.extend(other.uses);
        all.calls.extend(other.calls);
        all.kernel |= other.kernel;
        all.device |= other.device;
        all.surely_kernel &= other.surely_kernel;
        all.surely_device &= other.surely_device;
        all.constexpr |= other.constexpr;
    }
    Some(all)
}

/// How many tokens precede the body or the initializer.
fn header_length(text: &[Token]) -> usize {
    let (mut at, mut endless) = (0, false);
    while at < text.len() {
        match text[at].text.as_str() {
            "template" if !endless && text.get(at + 1).is_some_and(|t| t.is("<")) => {
                let close = closing_angle(text, at + 1);
                endless = close.is_none();
                at = close.unwrap_or(at);
            }
            "(" | "[" => at = closing(text, at).unwrap_or(text.len()),
            "{" if opens_requirements(text, at) => at = closing(text, at).unwrap_or(text.len()),
            "{" | ";" => return at,
            "=" if !text[at.saturating_sub(1)].is("operator") && !text[at.saturating_sub(2)].is("operator") => {
                return at;
            }
            _ => {}
        }
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    fn of(text: &str) -> (What, Vec<String>) {
        let part = part(&tokens(text).0, &Macros::default(), &None).unwrap();
        (part.what, part.names.into_iter().collect())
    }

    #[test]
    fn the_names_of_declarations_are_found() {
        for (text, what, names) in [
            ("__global__ void __launch_bounds__(256, 2) k(float *x, int n) { }", What::Function, &["k"][..]),
            ("template <int B, class T = V<int>> __global__ void k(T *x) { }", What::Function, &["k"]),
            ("template <> __global__ void k<float, 4>(float *x) { }", What::Function, &["k"]),
            ("void A::f(int x) const { }", What::Function, &["A", "f"]),
            ("extern \"C\" int main(int argc, char **argv) { return 0; }", What::Function, &["main"]),
            ("ATTRIBUTE(3) void f(int x) { }", What::Function, &["f"]),
            ("V operator+(V a, V b) { return a; }", What::Function, &["operator"]),
            ("void operator()(int x) { }", What::Function, &["operator"]),
            ("struct A f(int x) { return {}; }", What::Function, &["f"]),
            ("torch::Tensor f(torch::Tensor x);", What::Function, &["f"]),
            ("struct __align__(16) A { float x; };", What::Type, &["A"]),
            ("template <> struct A<float> : B { } a, *b;", What::Type, &["A", "a", "b"]),
            ("enum class E : int { X = 1, Y };", What::Type, &["E", "X", "Y"]),
            ("typedef struct S { int x; } T;", What::Type, &["S", "T"]),
            ("typedef void (*F)(int);", What::Type, &["F"]),
            ("typedef float V[4];", What::Type, &["V"]),
            ("using X = std::vector<int>;", What::Type, &["X"]),
            ("using at::Tensor;", What::Type, &["Tensor"]),
            ("namespace cg = cooperative_groups;", What::Type, &[]),
            ("std::map<int, Foo> a, b[3];", What::Variable, &["a", "b"]),
            ("static const int a = 3, b = f(c, d);", What::Variable, &["a", "b"]),
            ("__constant__ float c[4] = {1, 2};", What::Variable, &["c"]),
            ("void (*f)(int) = nullptr;", What::Variable, &["f"]),
            ("using namespace at;", What::Using, &[]),
            ("template class A<int>;", What::Instantiation, &[]),
            ("static_assert(sizeof(int) == 4);", What::Assertion, &[]),
        ] {
            let (found, named) = of(text);
            if names.is_empty() {
                assert_eq!(found, what, "{text}");
            } else {
                assert_eq!((found, named), (what, names.iter().map(|n| n.to_string()).collect()), "{text}");
            }
        }
        assert_eq!(of("namespace cg = cooperative_groups;").1, ["cg"]);
    }

    #[test]
    fn a_member_is_no_use_of_a_name() {
        let text = tokens("auto f(A x) -> B { return x.size() + y->z + C::d(); }").0;
        let part = part(&text, &Macros::default(), &None).unwrap();
        let uses: Vec<&str> = part.uses.iter().map(String::as_str).collect();
        assert_eq!(uses, ["A", "B", "C", "d", "f", "x", "y"]);
        assert!(part.calls.contains("d") && !part.calls.contains("size"));
    }
}
