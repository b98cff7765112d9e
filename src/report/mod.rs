//! Results to values, and values to text, markdown and JSON. Pure: knows what steps gave; does not print, read files or decide anything.

pub mod assemble;
pub mod document;
pub mod markdown;
pub mod text;

pub use assemble::{Names, StepView, assemble};
pub use document::Report;
