//! From results to values, and from values to text, markdown, JSON and formats of other tools. Pure: knows what steps returned; does not print, read files or
//! decide anything.

pub mod ablation;
pub mod baselines;
pub mod brief;
pub mod age;
pub mod arguments;
pub mod assemble;
pub mod candidates;
pub mod choice;
pub mod classes;
pub mod difference;
pub mod difference_text;
pub mod document;
pub mod earlier;
pub mod explanation;
pub mod exports;
pub mod failure;
pub mod field_words;
pub mod fit;
pub mod imported;
pub mod imported_tasks;
pub mod kernel;
pub mod step_text;
pub mod markdown;
pub mod messages;
pub mod metadata;
pub mod method;
pub mod page;
pub mod provenance;
pub mod rounds;
pub mod schemas;
pub mod savings;
pub mod score;
pub mod search;
pub mod single;
pub mod text;
pub mod timings;
mod paint;
mod quantiles;
mod reach;
mod rounds_text;
pub mod tree;
pub mod versus;
pub mod wrong;

pub use assemble::{Names, StepView, assemble};
pub use document::Report;
