//! What a declaration declares, by its tokens: names of functions, types and variables. Knows how C++ writes declarations; does not know macros or other
//! declarations.

use std::collections::BTreeSet;

use super::brackets::{closing, closing_angle, head, is_attribute};
use super::declarators::{before_attribute, enclosed, further, without_attributes};
use super::macros::spelled;
use super::part::{What, is_keyword};
use super::tokens::{Kind, Token};

/// What a declaration declares, by its header and by what follows it; for a function, its parameters too.
pub(super) fn declared(header: &[Token], rest: &[Token]) -> (What, BTreeSet<String>, String) {
    let (header, rest) = (&without_attributes(header)[..], &without_attributes(rest)[..]);
    let (what, mut names, parameters) = first_declared(header, rest);
    let ends = rest.last().or(header.last()).is_some_and(|t| t.is(";"));
    let using = head(header) == Some("using");
    if !ends || using || !matches!(what, What::Function | What::Type | What::Variable | What::Nothing) {
        return (what, names, parameters);
    }
    // The body of a class or an enumeration stands before its declarators, and what precedes it are its bases.
    let class = matches!(head(header), Some("struct" | "class" | "union" | "enum" | "typedef"));
    let body =
        Some(0).filter(|_| class && rest.first().is_some_and(|t| t.is("{"))).and_then(|open| closing(rest, open));
    let list: Vec<Token> = match body {
        Some(close) => rest[close + 1..].to_vec(),
        None => after_template(header).iter().chain(rest).cloned().collect(),
    };
    if head(header) == Some("union") && tag(header).is_none() {
        // The members of a union without a name belong to what surrounds it.
        let members = rest.iter().filter(|t| t.is_word() && !is_keyword(&t.text));
        names.extend(members.map(|t| t.text.clone()));
    }
    let (more, several) = further(&list);
    names.extend(more);
    names.extend(enclosed(&list));
    names.extend(before_attribute(&list));
    // `int a(2), b(3);`
    let inside = header.iter().skip_while(|t| !t.is("(")).nth(1);
    let values = inside.is_some_and(|t| matches!(t.kind, Kind::Literal | Kind::Number) || t.is("-"));
    match what {
        What::Function if several || values => (What::Variable, names, parameters),
        What::Nothing if !names.is_empty() => (What::Variable, names, parameters),
        _ => (what, names, parameters),
    }
}

/// A header behind its lists of template parameters.
pub(super) fn after_template(header: &[Token]) -> &[Token] {
    let mut text = header;
    while text.first().is_some_and(|t| t.is("template"))
        && text.get(1).is_some_and(|t| t.is("<"))
        && let Some(close) = closing_angle(text, 1)
    {
        text = &text[close + 1..];
    }
    text
}

/// What the first declarator declares.
fn first_declared(header: &[Token], rest: &[Token]) -> (What, BTreeSet<String>, String) {
    let one = |name: &str| BTreeSet::from([name.to_string()]);
    let none = String::new;
    let template = header.first().is_some_and(|t| t.is("template"));
    let extern_template =
        header.first().is_some_and(|t| t.is("extern")) && header.get(1).is_some_and(|t| t.is("template"));
    if extern_template || template && !header.get(1).is_some_and(|t| t.is("<")) {
        return (What::Instantiation, BTreeSet::new(), none());
    }
    let keyword = head(header);
    let plain = |tokens: &[Token]| tokens.iter().rfind(|t| t.is_word() && !is_keyword(&t.text)).map(|t| t.text.clone());
    match keyword {
        Some("static_assert") => return (What::Assertion, BTreeSet::new(), none()),
        Some("namespace") => return (What::Type, plain(header).into_iter().collect(), none()),
        Some("using") => {
            let after = header.iter().position(|t| t.is("using")).unwrap_or(0) + 1;
            if header.get(after).is_some_and(|t| t.is("namespace") || t.is("enum")) {
                return (What::Using, BTreeSet::new(), none());
            }
            if rest.first().is_some_and(|t| t.is("=")) {
                let name = header.get(after).filter(|t| t.is_word()).map(|t| t.text.clone());
                return (What::Type, name.into_iter().collect(), none());
            }
            // `using a::f, b::g;`
            let each = header[after..].split(|t| t.is(",")).filter_map(plain);
            return (What::Type, each.collect(), none());
        }
        Some("concept") => return (What::Type, plain(header).into_iter().collect(), none()),
        Some("typedef") => {
            let whole: Vec<Token> = header.iter().chain(rest).cloned().collect();
            let pointer = whole.windows(3).find(|w| w[0].is("(") && w[1].is("*") && w[2].is_word());
            // `typedef T A, B;`: the last one here, and the first one by the tokens before the comma.
            let first = declarators(&outside(&whole)).into_iter();
            let name = pointer.map(|w| w[2].text.clone()).or_else(|| plain(&outside(&whole)));
            let tag = tag(header).into_iter();
            let members = if whole.iter().any(|t| t.is("enum")) { enumerators(rest) } else { vec![] };
            return (What::Type, name.into_iter().chain(first).chain(tag).chain(members).collect(), none());
        }
        // `struct S f() {` is a function.
        Some("struct" | "class" | "union" | "enum")
            if !called(header)
                || rest.first().is_some_and(|t| t.is("{")) && !header.last().is_some_and(|t| t.is(")")) =>
        {
            let mut names: BTreeSet<String> = tag(header).into_iter().collect();
            if keyword == Some("enum") {
                names.extend(enumerators(rest));
            }
            if rest.first().is_some_and(|t| t.is("{"))
                && let Some(close) = closing(rest, 0)
            {
                names.extend(declarators(&rest[close + 1..]));
            }
            return (What::Type, names, none());
        }
        _ => {}
    }
    if let Some((name, qualifier, parameters)) = function(header) {
        let mut names = one(&name);
        // A member that is defined outside its class belongs to the class.
        names.extend(qualifier);
        return (What::Function, names, parameters);
    }
    let mut names: BTreeSet<String> = declarators(header).into_iter().collect();
    // A member that is defined outside its class belongs to the class.
    names.extend(
        header
            .windows(3)
            .filter(|w| w[0].is_word() && w[1].is("::") && names.contains(&w[2].text))
            .map(|w| w[0].text.clone())
            .collect::<Vec<_>>(),
    );
    // `auto [a, b] = f();`
    if let Some(open) = header.windows(2).position(|w| (w[0].is("auto") || w[0].is("&")) && w[1].is("[")) {
        let close = closing(header, open + 1).unwrap_or(header.len());
        names.extend(header[open + 1..close].iter().filter(|t| t.is_word()).map(|t| t.text.clone()));
    }
    // A pointer to a function: `void (*f)(int)`.
    names.extend(header.windows(3).find(|w| w[0].is("(") && w[1].is("*") && w[2].is_word()).map(|w| w[2].text.clone()));
    match names.is_empty() {
        true => (What::Nothing, names, none()),
        false => (What::Variable, names, none()),
    }
}

/// Whether a header has parameters.
fn called(header: &[Token]) -> bool {
    function(header).is_some()
}

/// The name of a class or enumeration.
fn tag(header: &[Token]) -> Option<String> {
    let mut at = header.iter().position(|t| ["struct", "class", "union", "enum"].iter().any(|word| t.is(word)))? + 1;
    let mut name = None;
    while let Some(token) = header.get(at) {
        if is_attribute(&token.text) && header.get(at + 1).is_some_and(|t| t.is("(")) || token.is("[") {
            at = closing(header, if token.is("[") { at } else { at + 1 })?;
        } else if token.is_word() && !is_keyword(&token.text) {
            name = Some(token.text.clone());
        } else if token.is("<") || token.is(":") {
            break;
        }
        at += 1;
    }
    name
}

/// The names in the braces of an enumeration.
pub(super) fn enumerators(rest: &[Token]) -> Vec<String> {
    let Some(open) = rest.iter().position(|t| t.is("{")) else { return vec![] };
    let inside = &rest[open..closing(rest, open).unwrap_or(rest.len())];
    let named = |w: &[Token]| (w[0].is("{") || w[0].is(",")) && w[1].is_word();
    inside.windows(2).filter(|w| named(w)).map(|w| w[1].text.clone()).collect()
}

/// Tokens outside brackets.
fn outside(text: &[Token]) -> Vec<Token> {
    let mut depth = 0;
    let mut out = vec![];
    for token in text {
        match token.text.as_str() {
            "(" | "[" | "{" if token.kind == Kind::Punctuation => depth += 1,
            ")" | "]" | "}" if token.kind == Kind::Punctuation => depth -= 1,
            _ if depth == 0 => out.push(token.clone()),
            _ => {}
        }
    }
    out
}

/// The names of variables: the last word of each part between commas. Template arguments do not count.
fn declarators(text: &[Token]) -> Vec<String> {
    let mut names: Vec<String> = vec![];
    let (mut last, mut at) = (None, 0);
    while at < text.len() {
        let token = &text[at];
        match token.text.as_str() {
            "<" if at > 0 && (text[at - 1].is_word()) => match closing_angle(text, at) {
                Some(close) => at = close,
                None => break,
            },
            "(" | "[" | "{" if token.kind == Kind::Punctuation => at = closing(text, at).unwrap_or(text.len()),
            "," => names.extend(last.take()),
            ";" | "=" if token.kind == Kind::Punctuation => break,
            word if token.is_word() && !is_keyword(word) => last = Some(word.to_string()),
            _ => {}
        }
        at += 1;
    }
    names.extend(last);
    names
}

/// The name of the function that a header declares, the class before its name, and its parameters.
fn function(header: &[Token]) -> Option<(String, Option<String>, String)> {
    let (name, qualifier, (open, close)) = located(header)?;
    Some((name, qualifier, spelled(&header[open + 1..close])))
}

/// The parentheses around the parameters of the function that a header without attributes declares.
pub(super) fn parameter_list(header: &[Token]) -> Option<(usize, usize)> {
    located(header).map(|(.., list)| list)
}

/// The name of the function that a header declares, the class before its name, and the parentheses around its parameters.
fn located(header: &[Token]) -> Option<(String, Option<String>, (usize, usize))> {
    let mut at = 0;
    while at < header.len() {
        let token = &header[at];
        if token.is("template") && header.get(at + 1).is_some_and(|t| t.is("<")) {
            at = closing_angle(header, at + 1)?;
        } else if token.is("operator") {
            let open = (at + 1..header.len()).find(|i| header[*i].is("(") && !header[*i - 1].is("operator"))?;
            let close = closing(header, open)?;
            return Some(("operator".into(), None, (open, close)));
        } else if token.is("[") {
            at = closing(header, at)?;
        } else if token.is("{") {
            // Of a `requires` expression.
            at = closing(header, at)?;
        } else if token.is("(") {
            let close = closing(header, at)?;
            let mut name = at.checked_sub(1)?;
            if header[name].is(">") {
                name = opening_angle(header, name)?.checked_sub(1)?;
            }
            let word = &header[name];
            if word.is_word() && !is_attribute(&word.text) {
                let pointer = header.get(at + 1).is_some_and(|t| t.is("*") || t.is("&"));
                if is_keyword(&word.text) {
                    // A pointer to a function: `void (*f)(int)`.
                    return None;
                }
                let after = header.get(close + 1);
                let trailing = ["const", "noexcept", "override", "final", "requires", "try", "volatile"];
                let attribute = after.is_some_and(|t| t.is_word() && !trailing.contains(&t.text.as_str()));
                let returned = pointer && after.is_some_and(|t| t.is("("));
                if !(attribute || returned) {
                    let qualifier =
                        name.checked_sub(2).filter(|_| header[name - 1].is("::")).map(|q| match header[q].is(">") {
                            true => opening_angle(header, q).and_then(|open| open.checked_sub(1)).unwrap_or(q),
                            false => q,
                        });
                    let qualifier = qualifier.map(|q| &header[q]).filter(|t| t.is_word()).map(|t| t.text.clone());
                    return Some((word.text.clone(), qualifier, (at, close)));
                }
            }
            at = close;
        }
        at += 1;
    }
    None
}

/// The position of the `<` that `close` closes.
pub(super) fn opening_angle(text: &[Token], close: usize) -> Option<usize> {
    let mut depth = 0;
    for at in (0..=close).rev() {
        match text[at].text.as_str() {
            ">" | ")" => depth += 1,
            "<" | "(" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}
