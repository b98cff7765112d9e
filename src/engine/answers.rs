//! What agents answered: every reply as soon as it arrives, and the recorded answers of each chain of rounds. Knows records and files; does not ask agents and
//! does not interpret answers.
//!
//! | file | holds |
//! |---|---|
//! | `answers/replies/xx/HEX.json` | a reply, under the digest of its request ([`ReplyKey`]) |
//! | `answers/HEX/ROUND-ATTEMPT.json` | a recorded answer, under the digest of its chain of rounds |
//!
//! An answer costs money and cannot be reproduced. So files are synced before they get their names, the first writer of a name wins, collection does not touch
//! them, and a file that cannot be read is skipped and kept. Each document states its version and the digest of its contents, so that damage is detected.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::evidence::folders;
use super::home::{Doing, Home, TEMP_PREFIX, files_in, hash_of, named, shard};
use kforge_foundation::base::Digest;
use kforge_foundation::base::encode::{Hasher, write_value};
use kforge_types::record::answer::{ANSWER_FORMAT, Answer, Exchange, Question, Role};

/// Separates the digests that name replies from all other digests.
const CONTEXT: &str = "kforge reply of an agent 1";

/// The folder of replies, beside those of the chains.
const REPLIES: &str = "replies";

/// The request that a reply answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplyKey {
    /// The question of the round.
    pub question: Question,
    /// The role.
    pub role: Role,
    /// The agent that replied, as in [`Question::agent`]. The advisor may be another agent than the coder.
    pub agent: String,
    /// 0, or the number of the repetition after unusable replies.
    pub number: u32,
}

impl ReplyKey {
    fn digest(&self) -> io::Result<Digest> {
        let mut hasher = Hasher::new(CONTEXT);
        write_value("", &serde_json::to_value(self)?, &mut hasher);
        Ok(hasher.finish())
    }
}

/// A reply as it arrived.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// When it arrived, as RFC 3339 in UTC.
    pub answered_at: String,
    /// Prompt and reply.
    pub exchange: Exchange,
    /// Whether the agent stopped before the end, so that the reply is incomplete.
    pub cut: bool,
}

/// The answers found, and the files that were skipped.
#[derive(Debug, Default)]
pub struct AnswerList {
    /// The answers.
    pub answers: Vec<Answer>,
    /// The files that were skipped: a line each, with the file and the reason.
    pub passed: Vec<String>,
}

/// Why a file cannot be used.
enum Unusable {
    Damaged(String),
    Foreign(u64),
}

impl Unusable {
    fn told(&self, path: &Path) -> String {
        match self {
            Unusable::Damaged(why) => format!("`{}` is damaged: {why}", path.display()),
            Unusable::Foreign(format) => {
                format!("`{}` has format {format}; this kforge reads format {ANSWER_FORMAT}", path.display())
            }
        }
    }
}

/// The envelope of every file.
#[derive(Serialize)]
struct Document<'a, T> {
    format: u32,
    digest: Digest,
    holds: &'a T,
}

/// The answers in a [`Home`].
#[derive(Debug, Clone)]
pub struct Answers {
    root: PathBuf,
    tmp: PathBuf,
}

impl Answers {
    /// The answers of `home`.
    pub fn new(home: &Home) -> Self {
        Answers { root: home.answers(), tmp: home.tmp() }
    }

    /// The stored reply to a request, if there is one and it is undamaged.
    pub fn reply(&self, asked: &ReplyKey) -> io::Result<Option<Reply>> {
        let path = self.place_of_reply(asked)?;
        Ok(read::<Reply>(&path)?.and_then(Result::ok).filter(|r| r.exchange.role == asked.role))
    }

    /// Stores a reply and returns the stored one: this reply, or an earlier reply to the same request. The reply is on disk when this returns.
    pub fn keep(&self, asked: &ReplyKey, reply: Reply) -> io::Result<Reply> {
        self.write(&self.place_of_reply(asked)?, &reply)?;
        Ok(self.reply(asked)?.unwrap_or(reply))
    }

    /// The folder of the answers of a chain of rounds; it may not exist.
    pub fn folder(&self, chain: &Digest) -> PathBuf {
        self.root.join(chain.hex())
    }

    /// The recorded answers of a chain of rounds, by round and attempt.
    pub fn list(&self, chain: &Digest) -> io::Result<AnswerList> {
        self.under(&self.root.join(chain.hex()))
    }

    /// The recorded answers of all chains: chain by chain, each by round and attempt.
    pub fn all(&self) -> io::Result<AnswerList> {
        let mut all = AnswerList::default();
        for folder in folders(&self.root)? {
            if folder.file_name().and_then(hash_of).is_some() {
                let listed = self.under(&folder)?;
                all.answers.extend(listed.answers);
                all.passed.extend(listed.passed);
            }
        }
        Ok(all)
    }

    /// Records an answer under a chain of rounds and returns the recorded one: this answer, or one that was recorded earlier for the same round and attempt.
    /// The answer is on disk when this returns.
    ///
    /// # Errors
    /// An error of the file system, or an existing file that another version of kforge wrote.
    pub fn put(&self, chain: &Digest, answer: &Answer) -> io::Result<Answer> {
        let name = format!("{}-{}.json", answer.question.round, answer.question.attempt);
        let path = self.root.join(chain.hex()).join(name);
        self.write(&path, answer)?;
        match read::<Answer>(&path)? {
            Some(Ok(stands)) => Ok(stands),
            Some(Err(unusable)) => Err(io::Error::new(io::ErrorKind::InvalidData, unusable.told(&path))),
            None => Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("`{}` was removed while it was being written", path.display()),
            )),
        }
    }

    fn place_of_reply(&self, asked: &ReplyKey) -> io::Result<PathBuf> {
        let mut path = self.root.join(REPLIES).join(shard(&asked.digest()?));
        path.add_extension("json");
        Ok(path)
    }

    fn under(&self, folder: &Path) -> io::Result<AnswerList> {
        let mut listed = AnswerList::default();
        for path in files_in(folder)? {
            let Some(place) = path.file_name().and_then(|n| n.to_str()).and_then(round_and_attempt) else { continue };
            match read::<Answer>(&path)? {
                Some(Ok(answer)) if (answer.question.round, answer.question.attempt) == place => {
                    listed.answers.push(answer);
                }
                Some(Ok(_)) => listed.passed.push(
                    Unusable::Damaged("it holds the answer of a round other than the one in its name".into())
                        .told(&path),
                ),
                Some(Err(unusable)) => listed.passed.push(unusable.told(&path)),
                None => {}
            }
        }
        listed.answers.sort_by_key(|a| (a.question.round, a.question.attempt));
        Ok(listed)
    }

    /// Writes a document unless it exists already. Moves a damaged document aside, for inspection.
    fn write<T: Serialize + DeserializeOwned>(&self, path: &Path, holds: &T) -> io::Result<()> {
        let digest = Digest::of(&serde_json::to_vec(holds)?);
        let bytes = serde_json::to_vec_pretty(&Document { format: ANSWER_FORMAT, digest, holds })?;
        if let Some(Err(Unusable::Damaged(_))) = read::<T>(path)? {
            std::fs::rename(path, path.with_extension("damaged")).map_err(|e| named(e, Doing::Move, path))?;
        }
        let folder = path.parent().unwrap_or(&self.root);
        std::fs::create_dir_all(folder).map_err(|e| named(e, Doing::Make, folder))?;
        let mut temp = tempfile::Builder::new()
            .prefix(TEMP_PREFIX)
            .tempfile_in(&self.tmp)
            .map_err(|e| named(e, Doing::WriteIn, &self.tmp))?;
        io::Write::write_all(&mut temp, &bytes)
            .and_then(|()| temp.as_file().sync_data())
            .map_err(|e| named(e, Doing::Write, path))?;
        match temp.persist_noclobber(path) {
            Ok(_) => {}
            Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            Err(e) => return Err(named(e.error, Doing::Write, path)),
        }
        // The folders above the file may be new too.
        for folder in path.ancestors().skip(1).take_while(|f| f.starts_with(&self.root)) {
            File::open(folder).and_then(|f| f.sync_all()).map_err(|e| named(e, Doing::Sync, folder))?;
        }
        Ok(())
    }
}

/// Parses `ROUND-ATTEMPT.json`.
fn round_and_attempt(name: &str) -> Option<(u32, u32)> {
    let (round, attempt) = name.strip_suffix(".json")?.split_once('-')?;
    Some((round.parse().ok()?, attempt.parse().ok()?))
}

/// The contents of a file; none if there is no file.
fn read<T: DeserializeOwned + Serialize>(path: &Path) -> io::Result<Option<Result<T, Unusable>>> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(None),
        Err(e) => return Err(named(e, Doing::Read, path)),
    };
    Ok(Some(decode(&bytes)))
}

fn decode<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> Result<T, Unusable> {
    let damaged = |e: serde_json::Error| Unusable::Damaged(e.to_string());
    let mut value: serde_json::Value = serde_json::from_slice(bytes).map_err(damaged)?;
    match value["format"].as_u64() {
        Some(format) if format == u64::from(ANSWER_FORMAT) => {}
        Some(format) => return Err(Unusable::Foreign(format)),
        None => return Err(Unusable::Damaged("it does not state its format".into())),
    }
    let stated: Digest = serde_json::from_value(value["digest"].take()).map_err(damaged)?;
    let holds: T = serde_json::from_value(value["holds"].take()).map_err(damaged)?;
    if Digest::of(&serde_json::to_vec(&holds).map_err(damaged)?) != stated {
        return Err(Unusable::Damaged("its contents do not match its digest".into()));
    }
    Ok(holds)
}

#[cfg(test)]
mod tests;
