//! Places in a manifest. Knows files and spans; does not know what the text at a place means.

use std::fmt;
use std::sync::Arc;

use kforge_foundation::base::{Diagnostic, SourceFile, Span};

/// A place in a manifest. Every value that a later check may reject keeps its place.
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    /// The manifest.
    pub file: Arc<SourceFile>,
    /// The span in the manifest, in bytes.
    pub span: Span,
}

impl Place {
    /// The place at `span` of `file`.
    pub fn new(file: &Arc<SourceFile>, span: Span) -> Self {
        Place { file: Arc::clone(file), span }
    }

    /// The text at this place.
    pub fn text(&self) -> &str {
        self.file.text.get(self.span.clone()).unwrap_or_default()
    }

    /// An error about this place.
    pub fn error(&self, code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, message).at(&self.file, self.span.clone(), "")
    }

    /// The place of `part` of `value` within this place, which holds `value` as a TOML string. If the string contains escapes, the whole place.
    pub fn within(&self, value: &str, part: Span) -> Place {
        let raw = self.text();
        let quote = raw.chars().next().filter(|c| matches!(c, '"' | '\''));
        let start = quote.and_then(|quote| {
            // A newline right after three opening quotes is not part of the string.
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

/// A string of the manifest, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The string.
    pub value: String,
    /// Its place.
    pub place: Place,
}

impl Text {
    /// The string.
    pub fn as_str(&self) -> &str {
        &self.value
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.value)
    }
}
