//! Regular expressions of scenarios, each compiled once: a scenario asks the same few for every launch and every product.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use regex::Regex;

static COMPILED: Mutex<Option<HashMap<String, Regex>>> = Mutex::new(None);

/// The compiled pattern.
///
/// # Errors
/// The pattern is not a regular expression.
pub(super) fn compiled(pattern: &str) -> Result<Regex, regex::Error> {
    let mut known = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(regex) = known.get(pattern) {
        return Ok(regex.clone());
    }
    let regex = Regex::new(pattern)?;
    known.insert(pattern.to_owned(), regex.clone());
    Ok(regex)
}
