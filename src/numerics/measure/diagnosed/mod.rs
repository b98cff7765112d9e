//! What was diagnosed, for people: a sentence for each diagnosis, and what the trials of an output have in common. Knows observations; `measure::diagnose` makes
//! diagnoses from values.

mod agreed;
mod stated;
mod words;

pub use agreed::{Wrong, agreed};
pub use stated::{speaks_of_values, stated};
pub use words::sentence;
