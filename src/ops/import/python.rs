//! Reads Python sources with Python's own parser, in a process that gets their texts and runs nothing of them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::ImportError;
use crate::{Error, Session};
use kforge_foundation::process::{Command, run};
use kforge_project::source::import::triton::PythonFile;
use kforge_project::toolchain;

/// `ast` of the interpreter; see its head.
const READER: &str = include_str!("reader.py");
/// The longest time that parsing may take.
const LIMIT: Duration = Duration::from_secs(60);
/// The most bytes of its answer.
const MOST: usize = 64 << 20;

/// What the sources say, by name.
///
/// # Errors
/// There is no Python, or it does not answer.
pub(super) fn read<'t>(
    session: &Session,
    texts: impl Iterator<Item = (&'t String, &'t String)>,
) -> Result<BTreeMap<String, PythonFile>, Error> {
    let texts: BTreeMap<&String, &String> = texts.collect();
    parsed(session, READER, &texts)
}

/// What a reader says of texts, by name. The reader is a program in Python.
///
/// # Errors
/// There is no Python, or it does not answer.
pub(super) fn parsed<T: DeserializeOwned>(
    session: &Session,
    reader: &str,
    texts: &BTreeMap<&String, &String>,
) -> Result<BTreeMap<String, T>, Error> {
    let (named, path) = (session.settings.path("toolchain.python"), session.environment.path());
    let python = toolchain::python::find(named.as_deref(), path).map_err(Error::Toolchain)?;
    let refused = |why: String| Error::from(ImportError::Parser { python: python.path.clone(), why });
    let texts = serde_json::to_vec(texts)?;
    // `-I` and `-S`: neither variables, nor the working folder, nor installed packages add modules.
    let command = Command::new(&python.path).args(["-I", "-S", "-B", "-c", reader]).stdin(texts).capture(MOST);
    let finished = run(&command, Some(LIMIT), &session.interrupted).map_err(|e| refused(e.to_string()))?;
    let said = finished.stderr.text();
    let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it gave no answer");
    let answer = finished.stdout.whole().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    answer.ok_or_else(|| refused(last.to_string()))
}
