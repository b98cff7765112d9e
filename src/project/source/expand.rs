//! The expansion of macros, as C++ defines it: arguments, `#`, `##`, variable arguments, and names that do not expand in themselves. Knows one meaning of each
//! name, that of a [`Choice`]; its work is bounded.

use std::collections::BTreeMap;

use super::macros::{Macro, Macros};
use super::tokens::{Kind, Token};

/// The most tokens that one expansion looks at.
const MOST: usize = 200_000;

/// The most tokens that all expansions of the macros of a source look at.
const MOST_OF_ALL: usize = 20_000_000;

/// How deeply uses may stand in each other's arguments and bodies.
const DEEPEST: usize = 200;

/// Which of its definitions a name has, where that is not the first one. The number of definitions means that it has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Choice {
    of: BTreeMap<String, usize>,
    /// A name that is taken for a macro which gives a comma.
    assumed: Option<String>,
}

impl Choice {
    pub(super) fn with(&self, name: &str, meaning: usize) -> Self {
        let mut choice = self.clone();
        choice.of.insert(name.to_string(), meaning);
        choice
    }

    pub(super) fn assuming(&self, name: &str) -> Self {
        Choice { assumed: Some(name.to_string()), ..self.clone() }
    }
}

/// An expanded text.
#[derive(Debug, Clone)]
pub(super) struct Expansion {
    pub(super) tokens: Vec<Token>,
    /// Whether that is all. Otherwise the expansion is too large, or uses what is not known here.
    pub(super) complete: bool,
}

impl Macros {
    /// The tokens with every macro expanded. All of a macro's tokens have the line of its use. A text that expands to too much stays.
    pub(super) fn expanded(&self, text: &[Token], choice: &Choice) -> Expansion {
        let most = MOST.min(MOST_OF_ALL.saturating_sub(self.spent.get()));
        let mut expander = Expander { macros: self, choice, hidden: vec![], most, spent: 0, complete: true };
        let tokens = expander.text(text);
        self.spent.set(self.spent.get() + expander.spent);
        if expander.complete {
            Expansion { tokens, complete: true }
        } else {
            Expansion { tokens: text.to_vec(), complete: false }
        }
    }

    /// A use of a macro that takes the whole text, replaced by the body of this definition: arguments stay as they are spelled.
    pub(super) fn once(&self, text: &[Token], definition: &Macro) -> Option<Vec<Token>> {
        let choice = Choice::default();
        let mut expander =
            Expander { macros: self, choice: &choice, hidden: vec![], most: MOST, spent: 0, complete: true };
        let given = match &definition.parameters {
            None => BTreeMap::new(),
            Some(parameters) => {
                let (all, _) = arguments(text, 1)?;
                matched(parameters, definition.variadic, all)
            }
        };
        let body = expander.substitute(definition, &given, false);
        let line = text.first()?.line;
        expander.complete.then(|| body.into_iter().map(|token| Token { line, ..token }).collect())
    }
}

struct Expander<'a> {
    macros: &'a Macros,
    choice: &'a Choice,
    hidden: Vec<String>,
    most: usize,
    spent: usize,
    complete: bool,
}

impl<'a> Expander<'a> {
    fn spend(&mut self, count: usize) -> bool {
        self.spent += count;
        self.complete &= self.spent <= self.most && self.hidden.len() < DEEPEST;
        self.complete
    }

    fn definition(&self, name: &str) -> Option<&'a Macro> {
        let meanings = self.macros.all.get(name)?;
        meanings.definitions.get(self.choice.of.get(name).copied().unwrap_or(0))
    }

    fn text(&mut self, text: &[Token]) -> Vec<Token> {
        let mut out = vec![];
        let mut at = 0;
        while at < text.len() && self.spend(1) {
            let token = &text[at];
            at += 1;
            let hidden = !token.is_word() || token.painted || self.hidden.contains(&token.text);
            if !hidden && self.choice.assumed.as_ref() == Some(&token.text) {
                let of = |text: &str| Token { kind: Kind::Punctuation, text: text.into(), ..token.clone() };
                out.extend([of("0"), of(","), of("1")]);
                continue;
            }
            let Some(definition) = self.definition(&token.text).filter(|_| token.is_word()) else {
                out.push(token.clone());
                continue;
            };
            if hidden {
                // It never expands again, wherever it goes.
                out.push(Token { painted: true, ..token.clone() });
                continue;
            }
            let given = match &definition.parameters {
                None => BTreeMap::new(),
                Some(parameters) => {
                    let Some((arguments, end)) = arguments(text, at) else {
                        out.push(token.clone());
                        continue;
                    };
                    self.spend(end - at);
                    at = end;
                    matched(parameters, definition.variadic, arguments)
                }
            };
            let body = self.substitute(definition, &given, true);
            self.append(body, token, &text[at..], &mut at, &mut out);
        }
        out
    }

    /// Appends a body in place of the use of its macro. A name of a macro at its end takes its arguments from the text that follows.
    fn append(&mut self, body: Vec<Token>, used: &Token, rest: &[Token], at: &mut usize, out: &mut Vec<Token>) {
        self.hidden.push(used.text.clone());
        let mut body = self.text(&body);
        self.hidden.pop();
        if let Some(first) = body.first_mut() {
            first.glued = used.glued;
        }
        let mut body: Vec<Token> = body.into_iter().map(|token| Token { line: used.line, ..token }).collect();
        let takes = |t: &Token| {
            let hidden = !t.is_word() || t.painted || self.hidden.contains(&t.text) || t.text == used.text;
            !hidden && self.definition(&t.text).is_some_and(|m| m.parameters.is_some())
        };
        if body.last().is_some_and(takes)
            && let Some((_, end)) = arguments(rest, 0)
            && let Some(last) = body.pop()
        {
            out.extend(body);
            let mut call = vec![last];
            call.extend_from_slice(&rest[..end]);
            *at += end;
            let made = self.nested(&call);
            out.extend(made);
            return;
        }
        out.extend(body);
    }

    /// A text inside another one, one level deeper.
    fn nested(&mut self, text: &[Token]) -> Vec<Token> {
        // No macro has an empty name.
        self.hidden.push(String::new());
        let made = self.text(text);
        self.hidden.pop();
        made
    }

    /// A body with arguments for parameters: expanded, except beside `#` and `##`.
    fn substitute(&mut self, of: &Macro, given: &BTreeMap<&str, Vec<Token>>, expanding: bool) -> Vec<Token> {
        let body = &of.body;
        let called = of.parameters.is_some();
        let (mut out, mut seams): (Vec<Token>, Vec<usize>) = (vec![], vec![]);
        let mut at = 0;
        while at < body.len() && self.spend(1) {
            let token = &body[at];
            let after_paste = at > 0 && body[at - 1].is("##");
            let pasted = after_paste || body.get(at + 1).is_some_and(|t| t.is("##"));
            if token.is("__VA_OPT__") {
                self.complete = false;
            }
            if called
                && token.is("#")
                && let Some(argument) = body.get(at + 1).and_then(|t| given.get(t.text.as_str()))
            {
                let text = quoted(argument);
                out.push(Token { kind: Kind::Literal, text, ..token.clone() });
                at += 2;
                continue;
            }
            match given.get(token.text.as_str()).filter(|_| token.is_word()) {
                Some(argument) => {
                    self.spend(argument.len());
                    // Operators that an argument spells do nothing, which is not known here.
                    self.complete &= !argument.iter().any(|t| t.is("##"));
                    // `, ## __VA_ARGS__` gives the arguments, and no comma if there are none.
                    let comma = after_paste && at > 1 && body[at - 2].is(",") && of.variadic;
                    let last = of.parameters.iter().flatten().next_back() == Some(&token.text);
                    let raw = pasted && !(comma && last && !body.get(at + 1).is_some_and(|t| t.is("##")));
                    let argument = if raw || !expanding { argument.clone() } else { self.nested(argument) };
                    if comma && last {
                        out.pop();
                        if argument.is_empty() {
                            out.pop();
                        }
                    }
                    let first = out.len();
                    out.extend(argument);
                    seams.extend([first, out.len()]);
                    if let Some(first) = out.get_mut(first) {
                        first.glued = token.glued;
                    } else if pasted && !(comma && last) {
                        out.push(Token { kind: Kind::Word, text: String::new(), ..token.clone() });
                    }
                }
                None => out.push(token.clone()),
            }
            at += 1;
        }
        for seam in seams {
            if let Some([before, after]) = seam.checked_sub(1).and_then(|from| out.get_mut(from..from + 2)) {
                after.glued &= !merge(before, after);
            }
        }
        paste(out)
    }
}

/// Whether two tokens without space between them may be read as one.
fn merge(a: &Token, b: &Token) -> bool {
    let apart = |t: &Token| ["(", ")", "[", "]", "{", "}", ",", ";"].iter().any(|text| t.is(text));
    match (a.kind, b.kind) {
        (Kind::Punctuation, Kind::Punctuation) => !apart(a) && !apart(b),
        (Kind::Punctuation, Kind::Number) => a.is("."),
        (Kind::Number, Kind::Punctuation) => !apart(b),
        (Kind::Punctuation, _) | (_, Kind::Punctuation) => false,
        _ => true,
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

/// An argument as `#` spells it.
fn quoted(argument: &[Token]) -> String {
    let mut out = String::from("\"");
    for (at, token) in argument.iter().enumerate() {
        if at > 0 && !token.glued {
            out.push(' ');
        }
        if token.kind == Kind::Literal {
            out += &token.text.replace('\\', "\\\\").replace('"', "\\\"");
        } else {
            out += &token.text;
        }
    }
    out + "\""
}

/// The arguments in the parentheses at `at`, and the position after them. Only parentheses keep commas together.
fn arguments(text: &[Token], at: usize) -> Option<(Vec<Vec<Token>>, usize)> {
    if !text.get(at)?.is("(") {
        return None;
    }
    let (mut all, mut depth) = (vec![vec![]], 0);
    for (position, token) in text.iter().enumerate().skip(at) {
        match token.text.as_str() {
            _ if token.kind != Kind::Punctuation => {}
            "(" => depth += 1,
            ")" => depth -= 1,
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
                match more.first().or(argument.last()) {
                    Some(beside) => argument.push(comma(beside)),
                    None => continue,
                }
                argument.extend(more);
            }
        }
        given.insert(name, argument);
    }
    given
}

#[cfg(test)]
mod tests {
    use super::super::macros::spelled;
    use super::super::tokens::tokens;
    use super::*;

    fn macros(defines: &[&str]) -> Macros {
        let mut macros = Macros::default();
        defines.iter().for_each(|text| drop(macros.define(text)));
        macros
    }

    fn expanded(defines: &[&str], text: &str) -> String {
        spelled(&macros(defines).expand(&tokens(text).0))
    }

    #[test]
    fn parameters_are_replaced_pasted_and_quoted() {
        assert_eq!(expanded(&["K(n, t) void n##_k(t *x)"], "K(add, float) { }"), "void add_k(float *x) { }");
        assert_eq!(expanded(&["S(x) #x", "A 1"], "S(A b) A"), "\"A b\" 1");
        assert_eq!(expanded(&["S(x) #x"], "S( a+\"b\\n\" )"), "\"a+\\\"b\\\\n\\\"\"");
        assert_eq!(expanded(&["V(f, ...) f(__VA_ARGS__)"], "V(g, 1, (2, 3))"), "g(1, (2, 3))");
        assert_eq!(expanded(&["V(args...) f(args)"], "V(1, 2)"), "f(1, 2)");
        assert_eq!(expanded(&["V(f, ...) f(0, ##__VA_ARGS__)"], "V(g) V(g, 1, 2)"), "g(0) g(0,1, 2)");
        assert_eq!(expanded(&["V(a, b) a+b"], "V({1, 2})"), "{1 +2}", "only parentheses keep commas together");
        assert_eq!(expanded(&["N(x) -x"], "N(-1)"), "- -1", "two tokens stay two");
    }

    #[test]
    fn a_macro_does_not_expand_in_itself_and_needs_its_parentheses() {
        assert_eq!(expanded(&["f(x) f(x + 1)"], "f(f(2)) f"), "f(f(2 + 1) + 1) f");
        assert_eq!(expanded(&["A B", "B A"], "A B"), "A B");
        assert_eq!(expanded(&["A(x) x", "B A"], "B (3)"), "3", "the arguments follow");
        assert_eq!(expanded(&["C(x, y) D(x, y)", "D(x, y) x##y", "A q"], "C(A, r)"), "qr");
    }

    #[test]
    fn work_is_bounded() {
        let doubling: Vec<String> = (1..=40).map(|n| format!("M{n} M{} M{}", n - 1, n - 1)).collect();
        let doubling: Vec<&str> = doubling.iter().map(String::as_str).chain(["M0 x"]).collect();
        let deep: Vec<String> = (1..=50_000).map(|n| format!("M{n} M{}", n - 1)).collect();
        let deep: Vec<&str> = deep.iter().map(String::as_str).collect();
        let nested = format!("{}1{}", "F(".repeat(50_000), ")".repeat(50_000));
        for (defines, text) in [(&doubling[..], "M40"), (&deep, "M50000"), (&["F(x) x"], &nested)] {
            let text = tokens(text).0;
            let made = macros(defines).expanded(&text, &Choice::default());
            assert!(!made.complete && made.tokens == text);
        }
    }
}
