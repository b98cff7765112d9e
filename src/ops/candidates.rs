//! What the workspace remembers of candidates, searched; the source of one. Plans nothing, runs nothing and asks nobody.

use std::collections::BTreeSet;
use std::path::Path;

use globset::Glob;

use crate::session::Opened;
use crate::session::candidates::source as source_of;
use crate::{Error, Session};
use kforge_pipeline::report::candidates::Remembered;
use kforge_types::model::Pattern;
use kforge_types::record::FORMAT_VERSION;
use kforge_types::record::candidate::{Became, Candidate};

/// Which candidates are searched for. Lists are of names and globs; empty ones take all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Packages.
    pub packages: Vec<String>,
    /// Kernels.
    pub kernels: Vec<String>,
    /// Operators.
    pub operators: Vec<String>,
    /// Targets.
    pub targets: Vec<String>,
    /// Patterns of operators.
    pub patterns: Vec<Pattern>,
    /// Levels of operators.
    pub levels: Vec<u8>,
    /// Only those that are correct.
    pub correct: bool,
}

/// Candidates that were found.
#[derive(Debug)]
pub struct Found {
    /// They, in the order in which they were tried.
    pub candidates: Vec<Remembered>,
    /// How many are remembered in all.
    pub all: usize,
}

/// Why no candidate is shown.
#[derive(Debug, thiserror::Error)]
pub enum CandidatesError {
    /// None is remembered.
    #[error("no candidate is recorded in this workspace")]
    None,
    /// A word of the filter matches nothing.
    #[error("no {what} of a recorded candidate matches `{word}`")]
    NoMatch {
        /// What it is of: `kernel`.
        what: &'static str,
        /// The word.
        word: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// All words match something, and no candidate matches all of them.
    #[error(
        "none of the {} recorded candidates match",
        kforge_foundation::base::count(*.all as u64, "candidate")
    )]
    NoneSuch {
        /// How many are remembered.
        all: usize,
    },
    /// No id begins so.
    #[error("there is no candidate `{0}`: expected an id that `kforge candidates` lists")]
    NoId(String),
    /// Several ids begin so.
    #[error("{count} candidates have ids that begin with `{id}`: expected more characters of one id")]
    SeveralIds {
        /// The beginning.
        id: String,
        /// How many.
        count: usize,
    },
    /// The answer held no source.
    #[error("candidate `{0}` has no source: the answer contained none")]
    NoSource(String),
    /// The source is no longer what it was.
    #[error("the source of candidate `{0}` is gone: it was edited since")]
    SourceGone(String),
}

/// Searches what is remembered.
///
/// # Errors
/// [`CandidatesError`], or the workspace cannot be opened.
pub fn search(session: &Session, filter: &Filter) -> Result<Found, Error> {
    let opened = session.open()?;
    let all = remembered(session, &opened)?;
    let found = filtered(filter, &all)?;
    let candidates = found.into_iter().map(|c| shown(&opened, c)).collect();
    Ok(Found { candidates, all: all.len() })
}

/// The source of the candidate whose id begins so.
///
/// # Errors
/// [`CandidatesError`], or the workspace cannot be opened.
pub fn source(session: &Session, id: &str) -> Result<String, Error> {
    let opened = session.open()?;
    let all = remembered(session, &opened)?;
    let named: Vec<&Candidate> = all.iter().filter(|c| c.id().starts_with(id)).collect();
    let candidate = match named.as_slice() {
        [one] => one,
        [] => return Err(CandidatesError::NoId(id.into()).into()),
        several => return Err(CandidatesError::SeveralIds { id: id.into(), count: several.len() }.into()),
    };
    match source_of(&opened, candidate) {
        Some(found) => Ok(found.text),
        None if candidate.source.is_none() => Err(CandidatesError::NoSource(id.into()).into()),
        None => Err(CandidatesError::SourceGone(id.into()).into()),
    }
}

fn remembered(session: &Session, opened: &Opened) -> Result<Vec<Candidate>, Error> {
    let all = session.remembered(opened)?;
    if all.is_empty() { Err(CandidatesError::None.into()) } else { Ok(all) }
}

fn shown(opened: &Opened, candidate: &Candidate) -> Remembered {
    let shown = |path: &Path| path.strip_prefix(&opened.workspace.root).unwrap_or(path).display().to_string();
    Remembered {
        format_version: FORMAT_VERSION,
        id: candidate.id(),
        candidate: candidate.clone(),
        place: source_of(opened, candidate).map(|found| shown(&found.place)),
    }
}

/// Those that the whole filter takes, in the order in which they were tried.
fn filtered<'c>(filter: &Filter, all: &'c [Candidate]) -> Result<Vec<&'c Candidate>, CandidatesError> {
    type Of = fn(&Candidate) -> &str;
    let filters: [(&'static str, &[String], Of); 4] = [
        ("package", &filter.packages, |c| &c.package),
        ("kernel", &filter.kernels, |c| &c.kernel),
        ("operator", &filter.operators, |c| &c.operator),
        ("target", &filter.targets, |c| &c.target),
    ];
    let mut found: Vec<&Candidate> = all.iter().collect();
    for (what, words, of) in filters {
        if let Some(word) = words.iter().find(|word| !all.iter().any(|c| takes(word, of(c)))) {
            let known: BTreeSet<&str> = all.iter().map(of).collect();
            let known = known.into_iter().map(str::to_string).collect();
            return Err(CandidatesError::NoMatch { what, word: word.clone(), known });
        }
        found.retain(|c| words.is_empty() || words.iter().any(|word| takes(word, of(c))));
    }
    let Filter { patterns, levels, correct, .. } = filter;
    found.retain(|c| patterns.is_empty() || c.pattern.is_some_and(|pattern| patterns.contains(&pattern)));
    found.retain(|c| levels.is_empty() || c.level.is_some_and(|level| levels.contains(&level)));
    found.retain(|c| !correct || c.became == Became::Right);
    if found.is_empty() { Err(CandidatesError::NoneSuch { all: all.len() }) } else { Ok(found) }
}

/// Whether a word, a name or a glob, takes a name.
fn takes(word: &str, name: &str) -> bool {
    word == name || Glob::new(word).is_ok_and(|glob| glob.compile_matcher().is_match(name))
}
