//! Places in a manifest. Knows files and spans; does not know what is written there.

use std::fmt;
use std::sync::Arc;

use kforge_foundation::base::{Diagnostic, SourceFile, Span};

/// A place in a manifest. Kept with every value that a check after parsing may reject.
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    /// The manifest.
    pub file: Arc<SourceFile>,
    /// Where in it, in bytes.
    pub span: Span,
}

impl Place {
    /// The place at `span` of `file`.
    pub fn new(file: &Arc<SourceFile>, span: Span) -> Self {
        Place { file: Arc::clone(file), span }
    }

    /// The text that stands there.
    pub fn text(&self) -> &str {
        self.file.text.get(self.span.clone()).unwrap_or_default()
    }

    /// An error about this place.
    pub fn error(&self, code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, message).at(&self.file, self.span.clone(), "")
    }

    /// The place of `value` within this one, which holds it as a TOML string: exact where the string is written without escapes, else the whole.
    pub fn within(&self, value: &str, part: Span) -> Place {
        let raw = self.text();
        let quote = raw.chars().next().filter(|c| matches!(c, '"' | '\''));
        let start = quote.and_then(|quote| {
            // Three quotes: a newline right after them is not part of the string.
            let opening = if raw.starts_with(&[quote; 3].iter().collect::<String>()) { 3 } else { 1 };
            raw.get(opening..).and_then(|rest| rest.find(value)).map(|at| at + opening)
        });
        match start {
            Some(start) if !value.is_empty() => {
                let from = (self.span.start + start + part.start).min(self.span.end);
                let to = (self.span.start + start + part.end).clamp(from, self.span.end);
                Place::new(&self.file, from..to)
            }
            _ => self.clone(),
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}..{}", self.file.name, self.span.start, self.span.end)
    }
}

/// A string of the manifest and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// What it says.
    pub value: String,
    /// Where.
    pub place: Place,
}

impl Text {
    /// What it says.
    pub fn as_str(&self) -> &str {
        &self.value
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.value)
    }
}
