//! Translates inline PTX in a source to C++ that calls the functions of `kf_ptx.h`: `asm volatile("..." : outputs : inputs : clobbers)`, also in macros and
//! templates. Pure; line numbers do not change.
//!
//! | what | where |
//! |---|---|
//! | statements in C++ text, with their operands | [`statement`] |
//! | the text of a template: registers, predicates, instructions | [`template`] |
//! | which C++ a register, a constant, an address is | [`operands`] |
//! | one file for each group of instructions | [`instruction`] |
//! | a whole statement | [`translate`] |
//!
//! A statement with anything that is not emulated is replaced as a whole by a call that reports its instruction, at the line of the statement; behind a macro,
//! at the line that uses the macro. A statement that cannot be read at all stays as it is, and the macros of `kforge_cuda.h` report it.
//!
//! What is translated may still not compile, because types of operands are known to the C++ compiler only. `compile` then compiles the source untranslated.

mod instruction;
mod operands;
mod statement;
mod template;
mod translate;

/// A source with its inline PTX translated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Translated {
    /// The text.
    pub(super) text: String,
    /// Whether the text calls functions of `kf_ptx.h`.
    pub(super) calls: bool,
}

/// The text with its statements of inline PTX translated or replaced by reports; none if there is no such statement.
pub(super) fn with_ptx(text: &str) -> Option<Translated> {
    if !text.contains("asm") {
        return None;
    }
    let (mut out, mut from, mut calls) = (String::with_capacity(text.len() * 2), 0, false);
    for found in statement::statements(text) {
        let Some(written) = translate::written(&found) else { continue };
        calls |= written.calls;
        out += &text[from..found.range.start];
        out += &written.text;
        out += &found.line_breaks(text);
        from = found.range.end;
    }
    (from > 0).then(|| Translated { text: out + &text[from..], calls })
}

#[cfg(test)]
mod tests;
