//! What was diagnosed, for people: a sentence for each diagnosis, and what the trials of an output have in common. Knows observations; `measure::diagnose` makes
//! diagnoses from values.

mod agreed;
mod words;

pub use agreed::agreed;
pub use words::sentence;
