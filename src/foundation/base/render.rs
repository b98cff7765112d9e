//! Renders diagnostics as text, in rustc's layout. Does not know the terminal: the caller says whether to use colors, and how wide the terminal is.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::{Diagnostic, Severity};

/// How to render a message.
#[derive(Debug, Clone, Copy, Default)]
pub struct Look {
    /// Whether to use ANSI colors.
    pub colour: bool,
    /// Width in columns; unlimited if `None`.
    pub width: Option<usize>,
}

/// The rendered message; it ends with a newline.
pub fn render(diagnostic: &Diagnostic, look: Look) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let mut report: Vec<Group<'_>> = Vec::new();
    let title = level.primary_title(diagnostic.message.as_str());
    let title = if diagnostic.code.is_empty() { title } else { title.id(diagnostic.code) };
    let mut group = Group::with_title(title);
    let mut files: Vec<&std::sync::Arc<super::SourceFile>> = Vec::new();
    for label in &diagnostic.labels {
        if !files.iter().any(|f| std::sync::Arc::ptr_eq(f, &label.file)) {
            files.push(&label.file);
        }
    }
    for file in files {
        let mut snippet = Snippet::source(file.text.as_str()).path(file.name.as_str()).fold(true);
        for label in diagnostic.labels.iter().filter(|l| std::sync::Arc::ptr_eq(&l.file, file)) {
            let kind = if label.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
            let end = label.span.end.min(file.text.len());
            let start = label.span.start.min(end);
            let annotation = kind.span(start..end);
            snippet = snippet.annotation(if label.text.is_empty() {
                annotation
            } else {
                annotation.label(label.text.as_str())
            });
        }
        group = group.element(snippet);
    }
    if let Some(expected) = &diagnostic.expected {
        group = group.element(Level::NOTE.message(format!("expected {expected}")));
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(note.as_str()));
    }
    for hint in &diagnostic.hints {
        group = group.element(Level::HELP.message(hint.as_str()));
    }
    report.push(group);
    let renderer = if look.colour { Renderer::styled() } else { Renderer::plain() };
    let renderer = match look.width {
        Some(width) => renderer.term_width(width),
        None => renderer,
    };
    let mut text = renderer.render(&report).to_string();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::SourceFile;
    use std::sync::Arc;

    #[test]
    fn shows_place_expectation_and_hint() {
        let file = Arc::new(SourceFile { name: "kernel.toml".into(), text: "[operator.x]\nrtoll = 1\n".into() });
        let text = render(
            &Diagnostic::error("manifest.unknown-key", "unknown key `rtoll`")
                .at(&file, 13..18, "")
                .expected("a tolerance")
                .suggest("rtoll", ["rtol"]),
            Look::default(),
        );
        for part in [
            "error[manifest.unknown-key]: unknown key `rtoll`",
            "kernel.toml:2:1",
            "rtoll = 1",
            "expected a tolerance",
            "did you mean `rtol`?",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}
