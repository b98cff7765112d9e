//! Diagnostics: what is wrong, where, what was expected, and what to do. Knows source text and spans; does not know how they are shown.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::worded;

/// A range of bytes in a source file; the end is exclusive.
pub type Span = Range<usize>;

/// A text that spans refer to.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The name shown to people, relative to the workspace if possible.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Worth fixing.
    Warning,
    /// The command cannot do what the user asked for.
    Error,
}

/// A place in a source file, with a text about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The file.
    pub file: Arc<SourceFile>,
    /// The range in the file, in bytes.
    pub span: Span,
    /// The text shown at that place; may be empty.
    pub text: String,
    /// Whether this is the place that the message is about, rather than one that explains it.
    pub primary: bool,
}

/// One message. Texts are lower-case fragments without a full stop, names in back quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// A stable code, `manifest.unknown-key`: room, then kind.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// The places. The first primary label is the place that the message is about.
    pub labels: Vec<Label>,
    /// What was expected there, if known.
    pub expected: Option<String>,
    /// Facts that help to understand the message.
    pub notes: Vec<String>,
    /// What to do.
    pub hints: Vec<String>,
}

impl Diagnostic {
    /// An error.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// A warning.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Self {
        Diagnostic {
            severity,
            code,
            message: worded(message),
            labels: vec![],
            expected: None,
            notes: vec![],
            hints: vec![],
        }
    }

    /// Adds the place that the message is about.
    #[must_use]
    pub fn at(self, file: &Arc<SourceFile>, span: Span, text: impl Into<String>) -> Self {
        self.label(file, span, text, true)
    }

    /// Adds a place that explains the message.
    #[must_use]
    pub fn see(self, file: &Arc<SourceFile>, span: Span, text: impl Into<String>) -> Self {
        self.label(file, span, text, false)
    }

    fn label(mut self, file: &Arc<SourceFile>, span: Span, text: impl Into<String>, primary: bool) -> Self {
        self.labels.push(Label { file: Arc::clone(file), span, text: worded(text), primary });
        self
    }

    /// Sets what was expected.
    #[must_use]
    pub fn expected(mut self, text: impl Into<String>) -> Self {
        self.expected = Some(worded(text));
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(worded(text));
        self
    }

    /// Adds advice on what to do.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        self.hints.push(worded(text));
        self
    }

    /// Adds `did you mean` if one of `known` is close to `got`.
    #[must_use]
    pub fn suggest<'a>(self, got: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        match closest(got, known) {
            Some(best) => self.hint(format!("did you mean `{best}`?")),
            None => self,
        }
    }

    /// The file, line and column of the place that the message is about. Line and column count from one. None if the message has no place.
    pub fn position(&self) -> Option<(&SourceFile, usize, usize)> {
        let label = self.labels.iter().find(|l| l.primary)?;
        let before = &label.file.text[..label.span.start.min(label.file.text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        Some((&label.file, line, column))
    }
}

/// The known name closest to `got`, if it is close enough (Jaro-Winkler above 0.8).
pub fn closest<'a>(got: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(got, name), name))
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_word() {
        assert_eq!(closest("rtoll", ["atol", "rtol", "ulp"]), Some("rtol"));
        assert_eq!(closest("grid", ["entry", "args"]), None);
    }

    #[test]
    fn positions_count_from_one() {
        let file = Arc::new(SourceFile { name: "k".into(), text: "ab\ncdé f\n".into() });
        let at =
            |start: usize| Diagnostic::error("t.t", "x").at(&file, start..start + 1, "").position().map(|p| (p.1, p.2));
        assert_eq!(at(0), Some((1, 1)));
        assert_eq!(at(3), Some((2, 1)));
        assert_eq!(at(8), Some((2, 5)));
    }
}
