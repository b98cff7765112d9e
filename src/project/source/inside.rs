//! Tunables whose names code of the device declares inside a function or a class: a local variable, a parameter, a member. The macro takes the place of the name
//! there, and the compiler's message is about the number that it stands for. Only declarations count that the kernels reach, under no condition, and whose type
//! is known to be one: what is only used next to a word is none.

use super::fixed::{Fixed, FixedBy, certain, parameters};
use super::import::dtype;
use super::part::What;
use super::tokens::Token;
use super::{Place, SourceTree, Sources, tokens};

/// The first of these names that a function or a class which the kernels reach declares inside itself.
pub(super) fn inside(tree: SourceTree<'_>, names: &[&str], kernels: &[&str]) -> Option<Fixed> {
    let may = |text: &String| {
        let (text, _) = tokens(text);
        let undefined = |t: &Token| t.directive().is_some_and(|(word, rest)| word == "undef" && has(rest, names));
        // The name may be an ordinary one behind it.
        if text.iter().any(undefined) {
            return None;
        }
        let named = |at: &usize| text[*at].is_word() && names.contains(&text[*at].text.as_str());
        Some((1..text.len()).filter(named).any(|at| may_declare(&text, at)))
    };
    let all: Option<Vec<bool>> = tree.files.values().map(may).collect();
    if !all?.contains(&true) {
        return None;
    }
    let sources = Sources::read(tree);
    let entries: Vec<String> = kernels.iter().map(|name| (*name).to_string()).collect();
    let kept = sources.reached(&entries, []);
    let groups = sources.groups.iter().enumerate().filter(|(index, _)| kept.contains(&(*index, 0)));
    let found = groups.filter_map(|(_, group)| {
        let [part] = &group.parts[..] else { return None };
        let file = &sources.files[group.file];
        let text = &file.tokens[group.range.from..group.range.to];
        let of = part.names.iter().next_back()?.clone();
        let fixed = |name: &Token, by: FixedBy| Fixed {
            name: name.text.clone(),
            place: Place { file: file.name.clone(), line: name.line },
            by,
        };
        let named = |t: &Token| t.is_word() && names.contains(&t.text.as_str());
        if !text.iter().any(named) {
            return None;
        }
        let certain = &certain(&file.tokens, names)[group.range.from..group.range.to];
        let sure = |line: u32| text.iter().zip(certain).any(|(t, certain)| t.line == line && named(t) && *certain);
        if part.what == What::Function
            && let Some(parameter) = parameters(part).into_iter().find(|t| named(t) && sure(t.line))
        {
            return Some(fixed(&parameter, FixedBy::InnerParameter { function: of }));
        }
        let spaces = |word: &str| sources.spaces.contains(word) && !sources.macros.contains(word);
        let at = (2..text.len()).find(|at| certain[*at] && named(&text[*at]) && declares(text, *at, &spaces))?;
        Some(match part.what {
            What::Function => fixed(&text[at], FixedBy::Local { function: of }),
            // Deeper is a function of the class.
            What::Type if depth(&text[..at]) > 1 => fixed(&text[at], FixedBy::Local { function: of }),
            What::Type => fixed(&text[at], FixedBy::Member { class: of }),
            _ => return None,
        })
    });
    found.min_by(|a, b| (a.place.file != tree.main, &a.place).cmp(&(b.place.file != tree.main, &b.place)))
}

/// Whether what surrounds a name allows it to be declared there, whatever the words before it are: only then is the source read.
fn may_declare(text: &[Token], at: usize) -> bool {
    const STATEMENTS: [&str; 8] = ["return", "case", "else", "goto", "sizeof", "throw", "new", "typename"];
    let before = &text[at - 1];
    let named = before.is_word() && !STATEMENTS.iter().any(|word| before.is(word));
    let begins = named || ["*", "&", ">"].iter().any(|sign| before.is(sign));
    begins && ["=", ";", "[", "{", ",", ":", ")", ">"].iter().any(|sign| text.get(at + 1).is_some_and(|t| t.is(sign)))
}

/// Whether a word is a type of numbers or of a vector of them, and never a value.
fn is_type(word: &str) -> bool {
    word == "auto" || dtype(word).is_some()
}

/// Whether a text has one of these words.
fn has(text: &str, names: &[&str]) -> bool {
    super::words(text).any(|word| names.contains(&word.as_str()))
}

/// How many braces are open at the end of a text.
fn depth(text: &[Token]) -> usize {
    text.iter().fold(0, |depth: usize, t| if t.is("{") { depth + 1 } else { depth.saturating_sub(t.is("}").into()) })
}

/// Whether a declarator stands at a position: a type before it, perhaps with `*`, and what follows a name.
fn declares(text: &[Token], at: usize, own: &dyn Fn(&str) -> bool) -> bool {
    let follows = ["=", ";", "[", "{", ",", ":"].iter().any(|sign| text.get(at + 1).is_some_and(|t| t.is(sign)));
    let equal = text.get(at + 2).is_some_and(|t| t.is("=") && t.glued) && text[at + 1].is("=");
    let scope = text.get(at + 2).is_some_and(|t| t.is(":")) && text[at + 1].is(":");
    let mut before = at - 1;
    while before > 0 && ["*", "&", "const", "__restrict__", "__restrict"].iter().any(|word| text[before].is(word)) {
        before -= 1;
    }
    let word = &text[before];
    let is = word.is_word() && (is_type(&word.text) || own(&word.text));
    // `S::BLOCK` and `x.n * BLOCK` use it.
    let alone = before == 0 || !["::", ".", "->", ")"].iter().any(|sign| text[before - 1].is(sign));
    let simple = before + 1 == at || is_type(&word.text) || text[before + 1].is("const");
    follows && !equal && !scope && is && simple && (alone || is_type(&word.text))
}
