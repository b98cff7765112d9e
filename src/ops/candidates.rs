//! Searches the candidates that the workspace remembers, and shows the source of one. Plans nothing, runs nothing and asks no agent.

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

/// Selects candidates. Lists hold names and globs; an empty list selects everything.
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
    /// Only correct candidates.
    pub correct: bool,
}

/// The result of a search.
#[derive(Debug)]
pub struct CandidateMatches {
    /// The candidates, in the order in which they were tried.
    pub candidates: Vec<Remembered>,
    /// The number of all remembered candidates.
    pub all: usize,
}

/// Why no candidate is shown.
#[derive(Debug, thiserror::Error)]
pub enum CandidatesError {
    /// No candidate is remembered.
    #[error("no candidate is recorded in this workspace")]
    None,
    /// A pattern of the filter matches nothing.
    #[error("no {what} of a recorded candidate matches `{word}`")]
    NoMatch {
        /// The kind of name that the pattern should match: `kernel`.
        what: &'static str,
        /// The pattern.
        word: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// Each pattern matches something, but no candidate matches all of them.
    #[error(
        "none of the {} recorded candidates match",
        kforge_foundation::base::count(*.all as u64, "candidate")
    )]
    NoneSuch {
        /// The number of remembered candidates.
        all: usize,
    },
    /// No id starts with this text.
    #[error("there is no candidate `{0}`: expected an id that `kforge candidates` lists")]
    NoId(String),
    /// Several ids start with this text.
    #[error("{count} candidates have ids that begin with `{id}`: expected more characters of one id")]
    SeveralIds {
        /// The text.
        id: String,
        /// The number of ids.
        count: usize,
    },
    /// The agent's answer contained no source.
    #[error("candidate `{0}` has no source: the answer contained none")]
    NoSource(String),
    /// The source has changed since the candidate was tried.
    #[error("the source of candidate `{0}` is gone: it was edited since")]
    SourceGone(String),
}

/// Searches the remembered candidates.
///
/// # Errors
/// [`CandidatesError`], or the workspace cannot be opened.
pub fn search(session: &Session, filter: &Filter) -> Result<CandidateMatches, Error> {
    let opened = session.open()?;
    let all = remembered(session, &opened)?;
    let found = filtered(filter, &all)?;
    let candidates = found.into_iter().map(|c| shown(&opened, c)).collect();
    Ok(CandidateMatches { candidates, all: all.len() })
}

/// The source of the candidate whose id starts with `id`.
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

/// The candidates that match the whole filter, in the order in which they were tried.
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
    found.retain(|c| !correct || c.became == Became::Correct);
    if found.is_empty() { Err(CandidatesError::NoneSuch { all: all.len() }) } else { Ok(found) }
}

/// Whether a pattern, a name or a glob, matches a name.
fn takes(word: &str, name: &str) -> bool {
    word == name || Glob::new(word).is_ok_and(|glob| glob.compile_matcher().is_match(name))
}
