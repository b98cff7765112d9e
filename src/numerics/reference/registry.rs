//! The table of built-in operators. Knows only their names.

use super::builtin::Builtin;
use super::check::quoted;
use super::ops;

/// Every built-in, by name.
pub fn builtins() -> &'static [&'static Builtin] {
    &ALL
}

const ALL: [&Builtin; 22] = [
    &ops::attention::ATTENTION,
    &ops::norm::BATCH_NORM,
    &ops::conv::CONV2D,
    &ops::loss::CROSS_ENTROPY,
    &ops::scan::CUMSUM,
    &ops::dropout::DROPOUT,
    &ops::elementwise::ELEMENTWISE,
    &ops::index::EMBEDDING,
    &ops::index::GATHER,
    &ops::norm::LAYER_NORM,
    &ops::softmax::LOG_SOFTMAX,
    &ops::matmul::MATMUL,
    &ops::reduce::ARGMAX,
    &ops::reduce::ARGMIN,
    &ops::reduce::MAX,
    &ops::reduce::MEAN,
    &ops::reduce::MIN,
    &ops::reduce::SUM,
    &ops::conv::MAX_POOL2D,
    &ops::norm::RMS_NORM,
    &ops::softmax::SOFTMAX,
    &ops::index::TRANSPOSE,
];

/// The names of every built-in, sorted.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = ALL.iter().map(|builtin| builtin.name).collect();
    names.sort_unstable();
    names
}

/// The built-in of that name.
pub fn signature(name: &str) -> Option<&'static Builtin> {
    ALL.into_iter().find(|builtin| builtin.name == name)
}

/// The message for an unknown name.
pub(super) fn unknown(name: &str) -> String {
    format!("unknown builtin `{name}`{}", suggestion(name, &names()))
}

/// `; did you mean ...` for the likeliest of these names, or a list of all of them.
pub(super) fn suggestion(name: &str, names: &[&str]) -> String {
    let hint = nearest(name, names.iter().copied());
    if hint.is_empty() { format!(", expected one of {}", quoted(names)) } else { hint }
}

/// `; did you mean ...` for the likeliest of these names, or nothing.
pub(super) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    let scored = names.map(|candidate| (strsim::jaro_winkler(name, candidate), candidate));
    match scored.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((score, candidate)) if score > 0.8 => format!("; did you mean `{candidate}`?"),
        _ => String::new(),
    }
}
