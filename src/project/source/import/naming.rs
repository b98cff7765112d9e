//! Names of parameters that a manifest can use.

use super::super::tokens::Token;
use super::parameter::Parameter;
use kforge_types::model::expr::functions::named;
use kforge_types::model::is_free_name;

/// Gives parameters whose names mean something else in a manifest other names, and returns the body with them.
pub(super) fn renamed(parameters: &mut [Parameter], body: &[Token]) -> Vec<Token> {
    let mut body = body.to_vec();
    for at in 0..parameters.len() {
        let old = parameters[at].name.clone();
        let twice = parameters[..at].iter().any(|p| p.name == old);
        if is_usable(&old) && !twice {
            continue;
        }
        let taken = |new: &String, parameters: &[Parameter], body: &[Token]| {
            !is_usable(new) || parameters.iter().any(|p| p.name == *new) || body.iter().any(|t| t.is(new))
        };
        let new = usable(&old, &|new| taken(new, parameters, &body));
        for token in body.iter_mut().filter(|t| t.is_word() && t.text == old) {
            token.text.clone_from(&new);
        }
        parameters[at].name = new;
    }
    body
}

/// Words that are keys where a manifest names tensors.
const KEYS: [&str; 4] = ["builtin", "names", "got", "want"];

/// Whether a manifest can use a name.
pub(super) fn is_usable(name: &str) -> bool {
    is_free_name(name) && !KEYS.contains(&name) && named(name).is_none()
}

/// A name that a manifest can use, and that is not taken, for one that it cannot.
pub(super) fn usable(name: &str, taken: &dyn Fn(&String) -> bool) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let plain = plain.trim_matches('_');
    let base =
        if plain.starts_with(|c: char| c.is_ascii_alphabetic()) { plain.to_string() } else { format!("p{plain}") };
    let mut all = [base.clone(), format!("{base}_")].into_iter().chain((2..).map(|n| format!("{base}_{n}")));
    all.find(|new| is_usable(new) && !taken(new)).unwrap_or(base)
}
