//! Declarations by what they are made of: as a file spells them, or by a use of a macro. A use that makes a kernel and host code is split into texts that give one
//! declaration each.
//!
//! The texts are those of the macro's body, with parameters replaced by arguments as they are spelled; only as many levels are expanded as the split needs. The
//! compiler expands the rest by its own rules. A split counts only if each text, read again and expanded under every meaning of the macros in it, gives token by
//! token what the use gives. Otherwise the use stays as it is written, with everything that it makes.

use std::collections::BTreeSet;

use super::declarations::{At, Range, closing, declarations};
use super::expand::Choice;
use super::macros::{Macros, spelled};
use super::needs::is_reserved;
use super::order::Positions;
use super::part::{Part, is_keyword, merged, part, part_of_made};
use super::tokens::{Kind, Token, tokens};

/// How many levels of macros one split expands.
const DEEPEST: usize = 20;

/// Declarations that share a range of text: one, or those that a use of a macro makes.
pub(super) struct Group {
    pub(super) file: usize,
    pub(super) range: Range,
    pub(super) parts: Vec<Part>,
    /// The texts of the parts; why they have none, if they can only be left out together.
    pub(super) texts: Result<Vec<String>, Whole>,
    /// Whether nothing of it may be left out: what it declares is not known.
    pub(super) stays: bool,
}

/// Why a use of a macro is not split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Whole {
    /// The macro.
    pub(super) name: String,
    pub(super) why: &'static str,
}

const CONDITIONS: &str = "what it stands for depends on conditions, `#undef` or `push_macro`";
const ARGUMENTS: &str = "its parts would not expand to the same text by themselves";
const DIRECTIVES: &str = "its arguments hold directives";
const LARGE: &str = "it expands to too much";
const LINES: &str = "it asks for its line, and is on several lines";

/// The declarations of a range of a file.
pub(super) fn group(file: usize, name: &str, all: &[Token], range: Range, macros: &Macros) -> Group {
    let written = &all[range.from..range.to];
    let text: Vec<Token> = written.iter().filter(|t| t.kind != Kind::Directive).cloned().collect();
    let places = macros.order.positions(name, range.from);
    let used = text.first().map(|t| t.text.clone()).unwrap_or_default();
    let together = |why| Err(Whole { name: used.clone(), why });
    if !is_use(&text, macros) {
        let read = part(written, macros, &places);
        let stays = !range.certain || read.is_none();
        let parts = read.or_else(|| part(&text, &Macros::default(), &None)).into_iter().collect();
        return Group { file, range, parts, texts: together(CONDITIONS), stays };
    }
    let made = made(&text, macros, &places);
    let stays = !range.certain || made.is_none();
    let mut parts: Vec<Part> = match &made {
        None => part(&text, &Macros::default(), &None).into_iter().collect(),
        Some((first, others)) if others.iter().all(|other| other.len() == first.len()) => {
            let of = |index: usize| std::iter::once(first).chain(others).map(move |parts| parts[index].clone());
            (0..first.len()).filter_map(|index| merged(of(index).collect())).collect()
        }
        Some((first, others)) => {
            merged(first.iter().chain(others.iter().flatten()).cloned().collect()).into_iter().collect()
        }
    };
    for part in &mut parts {
        part.uses.insert(used.clone());
    }
    let texts = match parts.len() {
        0 | 1 => together(CONDITIONS),
        _ if written.len() != text.len() => together(DIRECTIVES),
        count => match split(&text, macros, &places, DEEPEST) {
            Ok(units) if units.len() == count => verified(&text, &units, macros, &places, &used),
            Ok(_) => together(ARGUMENTS),
            Err(whole) => Err(whole),
        },
    };
    Group { file, range, parts, texts, stays }
}

/// Whether a text is a use of a macro and nothing else.
fn is_use(text: &[Token], macros: &Macros) -> bool {
    let Some(first) = text.first().filter(|t| t.is_word() && macros.contains(&t.text)) else { return false };
    let ends = |at: usize| at == text.len() || at + 1 == text.len() && text[at].is(";");
    if macros.takes_arguments(&first.text) && text.get(1).is_some_and(|t| t.is("(")) {
        return closing(text, 1).is_some_and(|close| ends(close + 1));
    }
    ends(1)
}

/// The declarations that a use makes, by every meaning of its macros: those of the first one, and the others. None if they are not known.
fn made(text: &[Token], macros: &Macros, places: &Positions) -> Option<(Vec<Part>, Vec<Vec<Part>>)> {
    let mut all = vec![];
    for choice in macros.choices(text, places)? {
        let made = macros.expanded(text, &choice);
        let found = declarations(&made.tokens, macros, At::Places(places));
        if !made.complete || found.broken || found.opening.is_some() || found.all.iter().any(|range| !range.certain) {
            return None;
        }
        if found.namespaces.is_empty() {
            all.push(
                found
                    .all
                    .iter()
                    .map(|r| part_of_made(&made.tokens[r.from..r.to], &made.tokens[r.from..r.to]))
                    .collect(),
            );
        } else {
            // Namespaces around them stay with them.
            let all_of = found.all.iter().map(|r| part_of_made(&made.tokens[r.from..r.to], text));
            all.push(merged(all_of.collect()).into_iter().collect::<Vec<Part>>());
        }
    }
    let mut all = all.into_iter();
    Some((all.next()?, all.collect()))
}

/// The declarations that a use makes, as the bodies of as few macros as possible spell them.
fn split(text: &[Token], macros: &Macros, places: &Positions, levels: usize) -> Result<Vec<Vec<Token>>, Whole> {
    let name = text.first().map(|t| t.text.clone()).unwrap_or_default();
    let whole = |why| Whole { name: name.clone(), why };
    let definition = macros.definition_at(&name, places).ok_or_else(|| whole(CONDITIONS))?;
    if levels == 0 {
        return Err(whole(LARGE));
    }
    let body = macros.once(text, definition).ok_or_else(|| whole(ARGUMENTS))?;
    let found = declarations(&body, macros, At::Places(places));
    if found.broken || found.opening.is_some() || !found.namespaces.is_empty() || found.all.iter().any(|r| !r.certain) {
        return Err(whole(ARGUMENTS));
    }
    let mut units = vec![];
    for range in &found.all {
        let unit = &body[range.from..range.to];
        let count =
            if is_use(unit, macros) { made(unit, macros, places).map(|(first, _)| first.len()) } else { Some(1) };
        match count {
            Some(0) => {}
            Some(1) => units.push(unit.to_vec()),
            Some(_) => units.extend(split(unit, macros, places, levels - 1)?),
            None => return Err(whole(CONDITIONS)),
        }
    }
    Ok(units)
}

/// The texts of the parts of a use, if each gives what the use gives.
fn verified(
    text: &[Token],
    units: &[Vec<Token>],
    macros: &Macros,
    places: &Positions,
    name: &str,
) -> Result<Vec<String>, Whole> {
    let whole = |why| Whole { name: name.to_string(), why };
    let reached = macros.reached(text).ok_or_else(|| whole(LARGE))?;
    let lines = text.first().map(|t| t.line) != text.last().map(|t| t.line);
    if lines && ["__LINE__", "__builtin_LINE", "source_location"].iter().any(|word| reached.contains(*word)) {
        return Err(whole(LINES));
    }
    let texts: Vec<String> = units.iter().map(|unit| spelled(unit)).collect();
    let again: Vec<Vec<Token>> = texts.iter().map(|text| tokens(text).0).collect();
    let choices = macros.choices(text, places).ok_or_else(|| whole(CONDITIONS))?;
    // What a header of the system may define, it may define as anything.
    let unknown = text.iter().filter(|t| t.is_word() && !macros.contains(&t.text) && !is_keyword(&t.text));
    let unknown: BTreeSet<&str> = unknown.map(|t| t.text.as_str()).filter(|word| may_be_macro(word)).collect();
    let assumed = choices.iter().flat_map(|choice| unknown.iter().map(|word| choice.assuming(word)));
    for choice in choices.iter().cloned().chain(assumed) {
        if !gives_the_same(text, &again, macros, places, &choice) {
            return Err(whole(ARGUMENTS));
        }
    }
    Ok(texts)
}

/// Whether texts give, one behind the other, what a use of a macro gives.
fn gives_the_same(text: &[Token], units: &[Vec<Token>], macros: &Macros, places: &Positions, choice: &Choice) -> bool {
    let made = macros.expanded(text, choice);
    let found = declarations(&made.tokens, macros, At::Places(places));
    if !made.complete || found.broken || found.all.len() != units.len() {
        return false;
    }
    found.all.iter().zip(units).all(|(range, unit)| {
        let own = macros.expanded(unit, choice);
        let one = declarations(&own.tokens, macros, At::Places(places));
        let same = |range: &Range| {
            let (a, b) = (&made.tokens[range.from..range.to], &own.tokens[one.all[0].from..one.all[0].to]);
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.kind == b.kind && a.text == b.text)
        };
        own.complete && !one.broken && one.all.len() == 1 && same(range)
    })
}

/// Whether a header of C, C++, POSIX or CUDA may define a word.
fn may_be_macro(word: &str) -> bool {
    is_reserved(word) || ["_", "CUDART_", "CUDA", "cuda"].iter().any(|start| word.starts_with(start))
}
