//! A bundle as a file. Knows the archive's format and its limits; [`super::bundle`] checks its contents.
//!
//! A zip archive, so that any tool opens it (`unzip -p FILE evidence.json`), with exactly two members:
//!
//! | member | holds |
//! |---|---|
//! | `evidence.json` | the [`Document`](super::bundle::Document) |
//! | `contents` | the contents that the document's `contents` list, one after the other |
//!
//! A bundle contains no paths, so nothing can be written to a wrong place. All contents are in one member because they are small and similar and compress well
//! together. The bytes depend only on the bundle: there are no times, and one order and one compressor. Reading trusts no stated size: anything beyond the
//! limits is refused before it uses memory.

use std::io::{Cursor, Read, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use super::bundle::Bundle;
use super::error::{ArchiveError, CONTENTS, DOCUMENT, Refused};

/// The file extension of bundles.
pub const EXTENSION: &str = "kfe";

/// The limits of reading, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Limit of the file.
    pub file: u64,
    /// Limit of `evidence.json`, unpacked.
    pub document: u64,
    /// Limit of `contents`, unpacked.
    pub contents: u64,
}

/// Enough for tens of thousands of records, and small enough to unpack in memory.
pub const LIMITS: Limits = Limits { file: 64 << 20, document: 256 << 20, contents: 512 << 20 };

/// The bundle as the bytes of a file.
///
/// # Errors
/// The bundle is inconsistent, or reading would refuse it.
pub fn encode(bundle: &Bundle) -> Result<Vec<u8>, Refused> {
    let document = bundle.document();
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(9))
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    let mut writer = ZipWriter::new(Cursor::new(vec![]));
    writer.start_file(DOCUMENT, options).map_err(|e| Refused::Write(e.into()))?;
    writer
        .write_all(&serde_json::to_vec(&document).map_err(|e| Refused::Write(e.into()))?)
        .map_err(|e| Refused::Write(e.into()))?;
    writer.start_file(CONTENTS, options).map_err(|e| Refused::Write(e.into()))?;
    for digest in &document.contents {
        let bytes = bundle.contents.get(digest);
        let bytes = bytes.ok_or(Refused::NoContent(*digest))?;
        writer.write_all(bytes).map_err(|e| Refused::Write(e.into()))?;
    }
    let bytes = writer.finish().map_err(|e| Refused::Write(e.into()))?.into_inner();
    // The result is read back as the recipient will read it, so that no unreadable bundle is handed out.
    decode(&bytes, LIMITS)?;
    Ok(bytes)
}

/// The bundle in the bytes of a file.
///
/// # Errors
/// It is not a bundle, is damaged, is too large, or is inconsistent.
pub fn decode(bytes: &[u8], limits: Limits) -> Result<Bundle, Refused> {
    within("the file", bytes.len() as u64, limits.file)?;
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|e| Refused::Damaged(e.into()))?;
    let mut names = vec![];
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|e| Refused::Damaged(e.into()))?;
        names.push(entry.name().map_err(|e| Refused::Damaged(e.into()))?.into_owned());
    }
    if names != [DOCUMENT, CONTENTS] {
        return Err(Refused::Entries(names));
    }
    let mut text = vec![];
    let entry = archive.by_index(0).map_err(|e| Refused::Damaged(e.into()))?;
    entry.take(limits.document + 1).read_to_end(&mut text).map_err(|e| Refused::Damaged(e.into()))?;
    within(DOCUMENT, text.len() as u64, limits.document)?;
    let mut entry = archive.by_index(1).map_err(|e| Refused::Damaged(e.into()))?;
    let mut taken = 0u64;
    let bundle = Bundle::of(&text, |size| {
        taken = taken.saturating_add(size);
        within(CONTENTS, taken, limits.contents)?;
        let mut content = vec![];
        (&mut entry).take(size).read_to_end(&mut content).map_err(|e| Refused::Damaged(e.into()))?;
        match content.len() as u64 == size {
            true => Ok(content),
            false => Err(Refused::Damaged(ArchiveError::Short)),
        }
    })?;
    // Reading to the end also makes the archive verify its checksum.
    match entry.take(1).read_to_end(&mut vec![]).map_err(|e| Refused::Damaged(e.into()))? {
        0 => Ok(bundle),
        _ => Err(Refused::More),
    }
}

fn within(what: &'static str, size: u64, limit: u64) -> Result<(), Refused> {
    match size > limit {
        true => Err(Refused::TooLarge { what, limit }),
        false => Ok(()),
    }
}

/// The bundle in a file.
///
/// # Errors
/// The file cannot be read, or those of [`decode`].
pub fn read(path: &Path) -> Result<Bundle, Refused> {
    let file = std::fs::File::open(path).map_err(Refused::Read)?;
    if !file.metadata().map_err(Refused::Read)?.is_file() {
        return Err(Refused::NotFile);
    }
    let mut bytes = vec![];
    file.take(LIMITS.file + 1).read_to_end(&mut bytes).map_err(Refused::Read)?;
    decode(&bytes, LIMITS)
}
