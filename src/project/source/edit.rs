//! The text of a file without some of its declarations. Knows which directives act where they stand, so that they go with what surrounds them; decides nothing
//! about declarations.

use std::collections::{BTreeMap, BTreeSet};

use super::SourceTree;
use super::expand::Choice;
use super::include::Include;
use super::macros::Macros;
use super::tokens::{Kind, Token, tokens};

/// A range of tokens and the text that takes its place.
pub(super) struct Edit {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) new: String,
}

/// What a directive inside a text does when the text is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It acts on what follows, and stays.
    Stays,
    /// It acts on the text only, and goes with it.
    Goes,
    /// It is part of the text and acts on what follows.
    Holds,
}

/// Whether a text can be left out: no include in it and no `_Pragma` acts on what follows.
pub(super) fn can_go(text: &[Token], file: &str, tree: &SourceTree<'_>, macros: &Macros) -> bool {
    text.iter().all(|token| fate(token, file, tree) != Fate::Holds) && !acts(text, macros)
}

fn fate(token: &Token, file: &str, tree: &SourceTree<'_>) -> Fate {
    match token.directive() {
        Some(("pragma", text)) if acts_on_next(text) => Fate::Goes,
        Some(("include", operand)) => match Include::of(operand).and_then(|include| include.resolve(file, tree)) {
            Some(inner) if is_silent(&inner, tree, &mut BTreeSet::new()) => Fate::Goes,
            _ => Fate::Holds,
        },
        Some(("include_next" | "import" | "embed", _)) => Fate::Holds,
        _ => Fate::Stays,
    }
}

/// Whether a pragma acts on the next statement or to the end of its block only. Others act to the end of the file.
fn acts_on_next(text: &str) -> bool {
    let (all, _) = tokens(text);
    let word = |at: usize| all.get(at).map_or("", |t| t.text.as_str());
    const NEXT: [&str; 14] = [
        "unroll",
        "nounroll",
        "unroll_and_jam",
        "nounroll_and_jam",
        "ivdep",
        "loop",
        "vector",
        "novector",
        "simd",
        "acc",
        "STDC",
        "fp_contract",
        "nv_exec_check_disable",
        "hd_warning_disable",
    ];
    match word(0) {
        "omp" => !["declare", "requires", "begin", "end", "threadprivate", "assumes"].contains(&word(1)),
        "GCC" => ["unroll", "ivdep", "novector"].contains(&word(1)),
        "clang" => ["loop", "fp"].contains(&word(1)),
        word => NEXT.contains(&word),
    }
}

/// Whether a pragma changes what messages a compiler prints, and nothing else.
fn is_about_messages(text: &str) -> bool {
    let (all, _) = tokens(text);
    let word = |at: usize| all.get(at).map_or("", |t| t.text.as_str());
    match word(0) {
        "GCC" | "clang" => ["diagnostic", "warning", "error"].contains(&word(1)),
        word => ["warning", "message"].contains(&word) || word.starts_with("diag_") || word.starts_with("nv_diag"),
    }
}

/// Whether `_Pragma`, spelled in a text or by its macros, acts on what follows the text.
fn acts(text: &[Token], macros: &Macros) -> bool {
    let spelled = |t: &Token| t.is("_Pragma") || macros.contains(&t.text);
    let Some(reached) = text.iter().any(spelled).then(|| macros.reached(text)) else { return false };
    match reached {
        Some(reached) if !reached.contains("_Pragma") => return false,
        Some(_) => {}
        None => return true,
    }
    let plain: Vec<Token> = text.iter().filter(|t| t.kind != Kind::Directive).cloned().collect();
    let made = macros.expanded(&plain, &Choice::default());
    let acting = |w: &[Token]| {
        let quoted = w[2].text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let pragma = quoted.map(|text| text.replace("\\\"", "\"").replace("\\\\", "\\"));
        w[0].is("_Pragma") && !pragma.is_some_and(|text| acts_on_next(&text) || is_about_messages(&text))
    };
    !made.complete || made.tokens.windows(3).any(acting)
}

/// Whether a file, with what it includes, does nothing to what follows its include.
fn is_silent(name: &str, tree: &SourceTree<'_>, seen: &mut BTreeSet<String>) -> bool {
    let Some(text) = tree.files.get(name) else { return false };
    if !seen.insert(name.to_string()) {
        return true;
    }
    if seen.len() > 100 {
        return false;
    }
    let (all, unclosed) = tokens(text);
    let mut depth = 0_i64;
    let silent = |token: &Token| match token.directive() {
        Some(("if" | "ifdef" | "ifndef", _)) => {
            depth += 1;
            true
        }
        Some(("endif", _)) => {
            depth -= 1;
            depth >= 0
        }
        Some(("else" | "elif" | "elifdef" | "elifndef" | "error" | "warning" | "line" | "", _)) => true,
        Some(("pragma", text)) => acts_on_next(text),
        Some(("include", operand)) => Include::of(operand)
            .and_then(|include| include.resolve(name, tree))
            .is_some_and(|inner| is_silent(&inner, tree, seen)),
        Some(_) => false,
        None => !token.is("_Pragma"),
    };
    unclosed.is_none() && all.iter().all(silent) && depth == 0
}

/// A text with ranges of tokens replaced, and with directives blanked. Lines stay.
pub(super) fn edited(
    (name, text): (&str, &str),
    tokens: &[Token],
    edits: &[Edit],
    blanked: &[usize],
    tree: &SourceTree<'_>,
) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let blank = |bytes: &mut Vec<u8>, from: usize, to: usize| {
        bytes[from..to].iter_mut().filter(|b| !matches!(**b, b'\n' | b'\r')).for_each(|b| *b = b' ');
    };
    let mut inserted: BTreeMap<usize, &str> = BTreeMap::new();
    for Edit { from, to, new } in edits {
        let Some(first) = tokens.get(*from) else { continue };
        let mut at = first.start;
        for token in &tokens[*from..*to] {
            if token.kind == Kind::Directive && fate(token, name, tree) != Fate::Goes {
                // Comments before a directive on its line are none of it.
                blank(&mut bytes, at, token.start);
            } else {
                blank(&mut bytes, at, token.end);
            }
            at = token.end;
        }
        inserted.insert(first.start, new);
    }
    for at in blanked {
        blank(&mut bytes, tokens[*at].start, tokens[*at].end);
    }
    let mut out = String::with_capacity(bytes.len());
    let (blanked, mut from) = (String::from_utf8_lossy(&bytes).into_owned(), 0);
    for (at, new) in inserted {
        out += &blanked[from..at];
        out += new;
        from = at;
    }
    out + &blanked[from..]
}
