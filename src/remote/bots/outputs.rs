//! What a step wrote, on its way to the server: hashed once, offered as often as needed, and read again in rounds, so that large outputs are not in memory
//! together. Knows files and digests; does not know how they were made.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use kforge_foundation::process::Finished;
use prost::Message;

use super::lease::{LARGEST_FILE, LeaseError, MOST_BYTES, MOST_FILES, ROUND, in_thread};
use crate::connection::Connection;
use crate::contents;
use crate::digests::HashFunction;
use crate::entry::LARGEST;
use crate::retry::Limiter;
use crate::tree::OUTPUTS;

/// How many bytes of what a step prints to standard error are given back.
const SHOWN: usize = 16 << 10;

/// Where the bytes of a content are.
#[derive(Debug, Clone)]
enum Source {
    Bytes(Vec<u8>),
    File(PathBuf),
}

/// The outputs of a step by content, and its result.
#[derive(Debug, Clone)]
pub(crate) struct Outputs {
    contents: Vec<(reapi::Digest, Source)>,
    result: reapi::ActionResult,
}

impl Outputs {
    /// Reads the outputs in a folder. Blocks.
    pub(crate) fn read(
        folder: &Path,
        code: i32,
        ran: &Finished,
        function: HashFunction,
    ) -> Result<Outputs, LeaseError> {
        let too_large = || LeaseError::NotExecuted("its outputs are too large".into());
        let mut contents = vec![];
        let mut keep = |bytes: Vec<u8>| {
            let digest = function.of(&bytes);
            contents.push((digest.clone(), Source::Bytes(bytes)));
            digest
        };
        let entries = match fs::read_dir(folder.join(OUTPUTS)) {
            Ok(entries) => entries.take(MOST_FILES + 1).collect::<io::Result<Vec<_>>>().map_err(unread)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => vec![],
            Err(e) => return Err(unread(e)),
        };
        if entries.len() > MOST_FILES {
            return Err(too_large());
        }
        let (mut files, mut of_files, mut size) = (vec![], vec![], 0u64);
        for entry in entries {
            // What a step gives are files, and no link leads to one.
            if !entry.file_type().map_err(unread)?.is_file() {
                continue;
            }
            let Ok(name) = entry.file_name().into_string() else { continue };
            let own = entry.metadata().map_err(unread)?.len();
            size = size.saturating_add(own);
            if own > LARGEST_FILE || size > MOST_BYTES {
                return Err(too_large());
            }
            let digest = function.of(&fs::read(entry.path()).map_err(unread)?);
            of_files.push((digest.clone(), Source::File(entry.path())));
            files.push(reapi::FileNode { name, digest: Some(digest), ..Default::default() });
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let tree = reapi::Tree { root: Some(reapi::Directory { files, ..Default::default() }), children: vec![] };
        let tree_digest = Some(keep(tree.encode_to_vec()));
        let output = reapi::OutputDirectory { path: OUTPUTS.into(), tree_digest, ..Default::default() };
        let stdout = ran.stdout.whole().ok_or_else(|| LeaseError::NotExecuted("its answer is too large".into()))?;
        let stdout_digest = (!stdout.is_empty()).then(|| keep(stdout.clone()));
        let stderr = ran.stderr.text();
        let from = stderr.char_indices().map(|(at, _)| at).find(|at| stderr.len() - at <= SHOWN).unwrap_or(0);
        contents.extend(of_files);
        contents.sort_by(|a, b| a.0.hash.cmp(&b.0.hash));
        contents.dedup_by(|a, b| a.0.hash == b.0.hash);
        let result = reapi::ActionResult {
            output_directories: vec![output],
            exit_code: code,
            stdout_raw: if stdout.len() <= LARGEST { stdout } else { vec![] },
            stdout_digest,
            stderr_raw: stderr.as_bytes()[from..].to_vec(),
            ..Default::default()
        };
        Ok(Outputs { contents, result })
    }

    /// Gives the server those that it lacks. Returns the result.
    pub(crate) async fn given(
        &self,
        connection: &Connection,
        limiter: &Limiter,
    ) -> Result<reapi::ActionResult, LeaseError> {
        let digests = self.contents.iter().map(|(digest, _)| digest.clone()).collect();
        let lacking = contents::missing(limiter, connection, digests).await?;
        let lacking: HashSet<String> = lacking.into_iter().map(|digest| digest.hash).collect();
        let mut round: Vec<(reapi::Digest, Vec<u8>)> = vec![];
        let mut size = 0u64;
        for (digest, source) in self.contents.iter().filter(|(digest, _)| lacking.contains(&digest.hash)) {
            let own = digest.size_bytes.unsigned_abs();
            if !round.is_empty() && size.saturating_add(own) > ROUND {
                contents::upload(limiter, connection, std::mem::take(&mut round)).await?;
                size = 0;
            }
            size += own;
            let bytes = match source {
                Source::Bytes(bytes) => bytes.clone(),
                Source::File(path) => {
                    let path = path.clone();
                    in_thread(move || fs::read(path).map_err(unread)).await?
                }
            };
            round.push((digest.clone(), bytes));
        }
        contents::upload(limiter, connection, round).await?;
        Ok(self.result.clone())
    }
}

fn unread(e: io::Error) -> LeaseError {
    LeaseError::NotExecuted(format!("an output cannot be read: {e}"))
}
