//! Whether a function may be annotated by a macro of a header that is not here: `MYLIB_FN float act(float x)`. Such a macro may stand for `__device__`, so the
//! function is not taken for host code. A word before the name of a function can only be a macro if it has arguments, or if another word is the return type.

use super::brackets::{closing, closing_angle};
use super::declarators::without_attributes;
use super::host::Known;
use super::names::{after_template, opening_angle, parameter_list};
use super::part::{Part, What, is_keyword};
use super::tokens::{Kind, Token};

/// Types that are keywords.
const TYPES: [&str; 13] = [
    "auto", "bool", "char", "decltype", "double", "float", "int", "long", "short", "signed", "unsigned", "void",
    "__int128",
];

/// Specifiers of compilers that are no annotations of CUDA, and no keywords here.
const SPECIFIERS: [&str; 5] = ["__extension__", "__forceinline", "__inline", "__inline__", "__cdecl"];

impl Known<'_> {
    /// Whether a macro that an absent header may define stands before a function.
    pub(super) fn may_be_annotated(&self, part: &Part) -> bool {
        let headers = || std::iter::once(&part.header).chain(&part.other_headers);
        self.lacks_library && part.what == What::Function && headers().any(|header| self.has_unknown_macro(header))
    }

    fn has_unknown_macro(&self, header: &[Token]) -> bool {
        let text = without_attributes(header);
        let text = after_template(&text);
        let Some(end) = name(text) else { return false };
        let (mut typed, mut others, mut unknown, mut at) = (false, 0, false, 0);
        while at < end {
            let token = &text[at];
            let next = |what: &str| text.get(at + 1).is_some_and(|t| t.kind == Kind::Punctuation && t.is(what));
            match token.text.as_str() {
                "<" if token.kind == Kind::Punctuation => at = closing_angle(text, at).unwrap_or(at),
                "(" | "[" if token.kind == Kind::Punctuation => at = closing(text, at).unwrap_or(at),
                word if TYPES.contains(&word) => typed = true,
                word if !token.is_word() || is_keyword(word) || SPECIFIERS.contains(&word) => {}
                word => {
                    let own = self.has_space(word);
                    if next("(") && !own {
                        return true;
                    }
                    // `a::b::c` is one type.
                    let inner = at > 0 && text[at - 1].is("::");
                    others += usize::from(!inner);
                    unknown |= !own && !inner && !next("::");
                }
            }
            at += 1;
        }
        unknown && others + usize::from(typed) > 1
    }
}

/// Where the name of a function begins, with its namespaces.
fn name(text: &[Token]) -> Option<usize> {
    let (open, _) = parameter_list(text)?;
    if let Some(operator) = text[..open].iter().position(|t| t.is("operator")) {
        return Some(operator);
    }
    let mut at = open.checked_sub(1)?;
    loop {
        if text[at].is(">") {
            at = opening_angle(text, at)?.checked_sub(1)?;
        }
        match at.checked_sub(2) {
            Some(before) if text[at - 1].is("::") && (text[before].is_word() || text[before].is(">")) => at = before,
            _ => return Some(at),
        }
    }
}
