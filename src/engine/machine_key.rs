//! The machine key: 32 random bytes with which this machine authenticates what it observed and computed. Knows the file and keyed hashes; does not know which
//! results need a tag or who asks for one.
//!
//! The stores in `$KFORGE_HOME` and the outputs of a workspace are shared between machines, restored by CI jobs and copied by hand. Whoever can write to them
//! can write any result. A *tag* is a keyed hash of a result, stored beside it. Only this machine can make a valid tag, so a result with one was computed here,
//! and a result without one is somebody's claim.
//!
//! | decision | reason |
//! |---|---|
//! | the file lies outside `$KFORGE_HOME`, and a place inside it is refused | what shares or restores a home must not bring the key along |
//! | only variables name another place, no setting does | a settings file may lie in the repository that is judged |
//! | the file is readable only by its owner, who is this user | a key that others can read authenticates nothing |
//! | each purpose has a key of its own, derived with a context | a tag of a result must not pass as one of a record or a certificate |
//! | a tag covers neither durations nor the place of a file | neither is evidence of anything |
//! | a missing key is no error | everything can be computed again; then nothing stands `here`, and the caller warns once |
//!
//! A tag does not expire, and a lost key cannot be recovered: results without a valid tag are computed again where they are required.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::home::TEMP_PREFIX;
use kforge_foundation::base::Digest;
use kforge_types::record::StepResult;

/// The length of the key and of a tag in bytes.
pub const LENGTH: usize = 32;

/// The largest part of a sample, which is all of it: hundredths of a per cent.
pub const WHOLE: u32 = 10_000;

/// A keyed hash that authenticates a result. Comparing two tags takes a time that does not depend on their contents.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Tag(blake3::Hash);

impl Tag {
    /// A tag from its bytes.
    pub fn of_bytes(bytes: [u8; LENGTH]) -> Self {
        Tag(blake3::Hash::from_bytes(bytes))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; LENGTH] {
        self.0.as_bytes()
    }

    /// A tag from 64 hexadecimal digits; none if the text is something else.
    pub fn of_hex(text: &str) -> Option<Self> {
        blake3::Hash::from_hex(text.trim_end()).ok().map(Tag)
    }

    /// The tag as 64 hexadecimal digits.
    pub fn hex(&self) -> String {
        self.0.to_hex().to_string()
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tag({})", self.hex())
    }
}

impl Serialize for Tag {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.hex())
    }
}

impl<'de> Deserialize<'de> for Tag {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Tag::of_hex(&text).ok_or_else(|| serde::de::Error::custom("expected 64 hexadecimal digits"))
    }
}

/// Why a machine has no key.
#[derive(Debug, thiserror::Error)]
pub enum NoKey {
    /// Neither a variable nor a home directory of the user names a place.
    #[error("neither `KFORGE_MACHINE_KEY`, `XDG_STATE_HOME` nor `HOME` names a place for it")]
    NoPlace,
    /// There is no key yet, and this command writes none.
    #[error("`{}` does not exist yet", .0.display())]
    NotMade(PathBuf),
    /// The place lies inside the home, which may be shared.
    #[error("`{}` lies inside `$KFORGE_HOME`, which may be shared: name a place outside it", .0.display())]
    InHome(PathBuf),
    /// The file or its folder cannot be read or written.
    #[error("`{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is not a key.
    #[error("`{}` is not a machine key: expected a file of {LENGTH} bytes; remove it, and kforge makes another", .0.display())]
    NotAKey(PathBuf),
    /// Others can read or write the file.
    #[error("others can read or write `{}` (mode {mode:o}): run `chmod 600` on it, or remove it", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file belongs to another user.
    #[error("`{}` belongs to another user (id {owner})", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The id of its owner.
        owner: u32,
    },
}

/// The machine key, as one key for each purpose.
#[derive(Clone, PartialEq, Eq)]
pub struct MachineKey {
    records: [u8; LENGTH],
    results: [u8; LENGTH],
    certificates: [u8; LENGTH],
    samples: [u8; LENGTH],
}

impl fmt::Debug for MachineKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MachineKey(..)")
    }
}

impl MachineKey {
    /// The key from its bytes.
    pub fn of_bytes(bytes: &[u8; LENGTH]) -> Self {
        let key = |context| blake3::derive_key(context, bytes);
        MachineKey {
            records: key("kforge 2026-11 machine key: records of devices v1"),
            results: key("kforge 2026-11 machine key: results of steps v1"),
            certificates: key("kforge 2026-11 machine key: certificates v1"),
            samples: key("kforge 2026-11 machine key: samples of questions v1"),
        }
    }

    /// A new key that is written nowhere.
    pub fn random() -> io::Result<Self> {
        Ok(MachineKey::of_bytes(&drawn()?))
    }

    /// The key in the file at `place`. Writes a new key if there is none and `make` is set. `home` is the folder that may be shared.
    ///
    /// # Errors
    /// This machine has no key.
    pub fn open(place: Option<&Path>, home: &Path, make: bool) -> Result<Self, NoKey> {
        let path = place.ok_or(NoKey::NoPlace)?;
        if inside(path, home) {
            return Err(NoKey::InHome(path.into()));
        }
        match read(path) {
            Err(NoKey::NotMade(_)) if make => {}
            read => return read.map(|bytes| MachineKey::of_bytes(&bytes)),
        }
        write(path).map_err(|source| NoKey::Io { path: path.into(), source })?;
        // Another process may have been faster, so the file counts and not what was written.
        read(path).map(|bytes| MachineKey::of_bytes(&bytes))
    }

    /// The tag of a record, by the digest of its file.
    pub fn of_record(&self, record: &Digest) -> Tag {
        let mut hasher = blake3::Hasher::new_keyed(&self.records);
        put(&mut hasher, record);
        Tag(hasher.finalize())
    }

    /// The tag of the result under a key. Durations do not count.
    pub fn of_result(&self, key: &Digest, result: &StepResult) -> Tag {
        let mut hasher = blake3::Hasher::new_keyed(&self.results);
        put(&mut hasher, key);
        let counted = (&result.outputs, &result.verdict, &result.notes, &result.summary);
        // Texts, numbers and maps with text keys always have a JSON form, and only one.
        hasher.update(&serde_json::to_vec(&counted).unwrap_or_default());
        Tag(hasher.finalize())
    }

    /// The tag of the bytes of a certificate.
    pub fn of_certificate(&self, bytes: &[u8]) -> Tag {
        Tag(blake3::keyed_hash(&self.certificates, bytes))
    }

    /// Whether a question belongs to a sample of `part` hundredths of a per cent. Nobody without the key can tell which questions do.
    pub fn samples(&self, question: &Digest, part: u32) -> bool {
        let mut hasher = blake3::Hasher::new_keyed(&self.samples);
        put(&mut hasher, question);
        let drawn = hasher.finalize().as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        drawn % u64::from(WHOLE) < u64::from(part)
    }
}

fn put(hasher: &mut blake3::Hasher, digest: &Digest) {
    hasher.update(digest.hash());
    hasher.update(&digest.size().to_le_bytes());
}

/// Whether a path lies inside a folder, by its parts and, as far as the folders exist, by where links lead.
fn inside(path: &Path, folder: &Path) -> bool {
    let resolved = |path: &Path| {
        path.ancestors().find_map(|existing| {
            let real = existing.canonicalize().ok()?;
            Some(path.strip_prefix(existing).map_or(real.clone(), |rest| real.join(rest)))
        })
    };
    path.starts_with(folder)
        || resolved(path).zip(resolved(folder)).is_some_and(|(path, folder)| path.starts_with(folder))
}

fn read(path: &Path) -> Result<[u8; LENGTH], NoKey> {
    let of_path = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => NoKey::NotMade(path.into()),
        _ => NoKey::Io { path: path.into(), source },
    };
    let file = File::open(path).map_err(of_path)?;
    let metadata = file.metadata().map_err(of_path)?;
    let owner = metadata.uid();
    if owner != rustix::process::geteuid().as_raw() {
        return Err(NoKey::Foreign { path: path.into(), owner });
    }
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(NoKey::Exposed { path: path.into(), mode });
    }
    let mut bytes = vec![];
    file.take(LENGTH as u64 + 1).read_to_end(&mut bytes).map_err(of_path)?;
    bytes.try_into().map_err(|_| NoKey::NotAKey(path.into()))
}

/// Random bytes from the system.
fn drawn() -> io::Result<[u8; LENGTH]> {
    let mut key = [0; LENGTH];
    let mut filled = 0;
    while filled < LENGTH {
        filled += rustix::rand::getrandom(&mut key[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(key)
}

/// Writes a new key with mode 0600. Does nothing if a file of that name appears meanwhile.
fn write(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let key = drawn()?;
    // `tempfile` makes files with mode 0600.
    let mut temp = tempfile::Builder::new().prefix(TEMP_PREFIX).tempfile_in(folder)?;
    temp.write_all(&key)?;
    temp.as_file().sync_all()?;
    match temp.persist_noclobber(path) {
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        persisted => persisted.map(drop).map_err(|error| error.error),
    }
}

#[cfg(test)]
mod tests;
