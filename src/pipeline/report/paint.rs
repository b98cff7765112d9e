//! The styles of terminal text.

use anstyle::{AnsiColor, Style};

/// Names and headings.
pub(super) const BOLD: Style = Style::new().bold();
/// Details.
pub(super) const DIM: Style = Style::new().dimmed();
/// What is correct.
pub(super) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// What is wrong.
pub(super) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What is unknown or needs attention.
pub(super) const OPEN: Style = AnsiColor::Yellow.on_default();

/// A text in a style.
pub(super) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}
