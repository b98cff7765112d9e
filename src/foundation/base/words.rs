//! Texts for people, where they enter diagnostics and records. Nothing decides by them: in a build for tests, [`hide`] replaces each text by its length, and
//! whatever a command decides must stay the same.

#[cfg(any(debug_assertions, feature = "reword"))]
use std::sync::atomic::{AtomicBool, Ordering};

/// The variable that hides words, in builds with debug assertions and in those with the feature `reword`.
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

/// A text for people: unchanged, or its length if words are hidden. An empty text stays empty.
pub fn worded(text: impl Into<String>) -> String {
    let text = text.into();
    #[cfg(any(debug_assertions, feature = "reword"))]
    if are_hidden() && !text.is_empty() {
        return text.len().to_string();
    }
    text
}
