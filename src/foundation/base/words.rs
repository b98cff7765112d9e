//! Texts for people, at the point where they enter diagnostics and records. No decision may depend on the wording: in a build for tests, [`hide`] replaces each
//! text by its length, and every command must still decide the same.

#[cfg(any(debug_assertions, feature = "reword"))]
use std::sync::atomic::{AtomicBool, Ordering};

/// The variable that hides words. Only builds with debug assertions or with the feature `reword` read it.
#[cfg(any(debug_assertions, feature = "reword"))]
pub const VARIABLE: &str = "KFORGE_TEST_REWORD";

#[cfg(any(debug_assertions, feature = "reword"))]
static HIDDEN: AtomicBool = AtomicBool::new(false);

/// Hides the words of every text from now on.
#[cfg(any(debug_assertions, feature = "reword"))]
pub fn hide() {
    HIDDEN.store(true, Ordering::Relaxed);
}

/// Whether words are hidden.
#[cfg(any(debug_assertions, feature = "reword"))]
pub fn are_hidden() -> bool {
    HIDDEN.load(Ordering::Relaxed)
}

/// A name that may hold anything, such as that of a file, on one line: control characters are escaped.
pub fn plain(name: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    name.chars().map(shown).collect()
}

/// A text for people: unchanged, or its length if words are hidden. An empty text stays empty.
pub fn worded(text: impl Into<String>) -> String {
    let text = text.into();
    #[cfg(any(debug_assertions, feature = "reword"))]
    if are_hidden() && !text.is_empty() {
        return text.len().to_string();
    }
    text
}
