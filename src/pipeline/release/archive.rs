//! A bundle as a file. Knows the archive's format and its limits; [`super::bundle`] checks its contents.
//!
//! A zip archive, so that any tool opens it (`unzip -p FILE evidence.json`), with these members in this order and no other:
//!
//! | member | holds |
//! |---|---|
//! | `evidence.json` | the [`Document`](super::bundle::Document) |
//! | `contents` | the contents that the document's `contents` list, one after the other |
//! | `signature` | an SSH signature of the bytes of `evidence.json`; optional ([`super::signature`]) |
//!
//! The document names the contents by their digests, so its signature covers them, too. Signing adds or replaces the last member and copies the others.
//!
//! A bundle contains no paths, so nothing can be written to a wrong place. All contents are in one member because they are small and similar and compress well
//! together. They are deflated, or packed with xz where the file is to be small ([`encode_small`]): xz takes several times as long and finds what contents that
//! lie further apart have in common. The document is always deflated, so that any tool shows it. The bytes depend only on the bundle and on which of both
//! was asked for: there are no times, and one order and one compressor. Reading trusts no stated size: anything beyond the
//! limits is refused before it uses memory.

use std::io::{Cursor, Read, Write};
use std::path::Path;

use lzma_rust2::XzReader;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use super::bundle::{self, Bundle};
use super::error::{ArchiveError, CONTENTS, DOCUMENT, Refused, SIGNATURE};
use super::signature::Signature;

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
    /// Limit of `signature`, unpacked.
    pub signature: u64,
}

/// Enough for tens of thousands of records, and small enough to unpack in memory.
pub const LIMITS: Limits = Limits { file: 64 << 20, document: 256 << 20, contents: 512 << 20, signature: 64 << 10 };

/// The memory that unpacking with xz may take, in KiB: that of its highest level and a little more.
const XZ_MEMORY_KIB: u32 = 68 << 10;

/// A bundle with what its signature is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Unpacked {
    /// The bundle.
    pub bundle: Bundle,
    /// The bytes of its document.
    pub document: Vec<u8>,
    /// The version of its document's format.
    pub version: u32,
    /// Its signature, which may be by anybody.
    pub signature: Option<Signature>,
}

/// The bundle as the bytes of an unsigned file.
///
/// # Errors
/// The bundle is inconsistent, or reading would refuse it.
pub fn encode(bundle: &Bundle) -> Result<Vec<u8>, Refused> {
    packed(bundle, options())
}

/// The largest size of contents, in bytes, that xz compresses at level 6. Larger contents are compressed at level 3: the contents of the examples' evidence then
/// take 4 % to 16 % more bytes and a third of the time.
const THOROUGH_LIMIT: usize = 256 << 10;

/// The same in fewer bytes, for a file that is read far more often than it is made.
///
/// # Errors
/// Those of [`encode`].
pub fn encode_small(bundle: &Bundle) -> Result<Vec<u8>, Refused> {
    let bytes: usize = bundle.contents.values().map(Vec::len).sum();
    let level = if bytes <= THOROUGH_LIMIT { 6 } else { 3 };
    packed(bundle, options().compression_method(CompressionMethod::Xz).compression_level(Some(level)))
}

/// The bundle with its contents compressed as `of_contents` says.
fn packed(bundle: &Bundle, of_contents: SimpleFileOptions) -> Result<Vec<u8>, Refused> {
    let document = bundle.document();
    let mut writer = ZipWriter::new(Cursor::new(vec![]));
    writer.start_file(DOCUMENT, options()).map_err(|e| Refused::Write(e.into()))?;
    writer
        .write_all(&serde_json::to_vec(&document).map_err(|e| Refused::Write(e.into()))?)
        .map_err(|e| Refused::Write(e.into()))?;
    writer.start_file(CONTENTS, of_contents).map_err(|e| Refused::Write(e.into()))?;
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

fn options() -> SimpleFileOptions {
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(9))
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644)
}

/// The file of a bundle with this signature in place of the one that it may have. The other members keep their bytes.
///
/// # Errors
/// The file is not a bundle of the format that can be signed, or the signature is not one of its document.
pub fn sign(file: &[u8], signature: &Signature) -> Result<Vec<u8>, Refused> {
    let mut archive = ZipArchive::new(Cursor::new(file)).map_err(|e| Refused::Damaged(e.into()))?;
    let mut writer = ZipWriter::new(Cursor::new(vec![]));
    for index in 0..archive.len().min(2) {
        let member = archive.by_index_raw(index).map_err(|e| Refused::Damaged(e.into()))?;
        writer.raw_copy_file(member).map_err(|e| Refused::Write(e.into()))?;
    }
    writer.start_file(SIGNATURE, options()).map_err(|e| Refused::Write(e.into()))?;
    writer.write_all(signature.text().as_bytes()).map_err(|e| Refused::Write(e.into()))?;
    let signed = writer.finish().map_err(|e| Refused::Write(e.into()))?.into_inner();
    let read = unpack(&signed, LIMITS)?;
    match signature.verifies(&read.document) {
        true => Ok(signed),
        false => Err(Refused::OtherSignature),
    }
}

/// A signed document without its contents, as a file.
///
/// # Errors
/// It cannot be packed.
pub fn detach(document: &[u8], signature: &Signature) -> Result<Vec<u8>, ArchiveError> {
    let mut writer = ZipWriter::new(Cursor::new(vec![]));
    for (name, bytes) in [(DOCUMENT, document), (SIGNATURE, signature.text().as_bytes())] {
        writer.start_file(name, options())?;
        writer.write_all(bytes)?;
    }
    Ok(writer.finish()?.into_inner())
}

/// The document and the signature in a file that [`detach`] made.
///
/// # Errors
/// It is another file.
pub fn detached(file: &[u8], limits: Limits) -> Result<(Vec<u8>, Signature), Refused> {
    let mut archive = ZipArchive::new(Cursor::new(file)).map_err(|e| Refused::Damaged(e.into()))?;
    let names = names(&mut archive)?;
    if names != [DOCUMENT, SIGNATURE] {
        return Err(Refused::Entries(names));
    }
    let document = member(&mut archive, 0, DOCUMENT, limits.document)?;
    Ok((document, read_signature(&mut archive, 1, limits)?))
}

type Archive<'f> = ZipArchive<Cursor<&'f [u8]>>;

/// The names of an archive's members, in order.
fn names(archive: &mut Archive<'_>) -> Result<Vec<String>, Refused> {
    let mut names = vec![];
    for index in 0..archive.len() {
        let entry = archive.by_index_raw(index).map_err(|e| Refused::Damaged(e.into()))?;
        names.push(entry.name().map_err(|e| Refused::Damaged(e.into()))?.into_owned());
    }
    Ok(names)
}

/// The bytes of a member.
fn member(archive: &mut Archive<'_>, index: usize, name: &'static str, limit: u64) -> Result<Vec<u8>, Refused> {
    let mut bytes = vec![];
    let entry = archive.by_index(index).map_err(|e| Refused::Damaged(e.into()))?;
    entry.take(limit + 1).read_to_end(&mut bytes).map_err(|e| Refused::Damaged(e.into()))?;
    within(name, bytes.len() as u64, limit)?;
    Ok(bytes)
}

fn read_signature(archive: &mut Archive<'_>, index: usize, limits: Limits) -> Result<Signature, Refused> {
    let bytes = member(archive, index, SIGNATURE, limits.signature)?;
    Signature::parse(&String::from_utf8_lossy(&bytes)).map_err(Refused::Signature)
}

/// The contents, unpacked as they are read.
fn contents<'a>(archive: &'a mut Archive<'_>) -> Result<Box<dyn Read + 'a>, Refused> {
    let damaged = |e: ZipError| Refused::Damaged(e.into());
    if archive.by_index_raw(1).map_err(damaged)?.compression() != CompressionMethod::Xz {
        return Ok(Box::new(archive.by_index(1).map_err(damaged)?));
    }
    // The archive's own reader would take as much memory as the file asks for.
    Ok(Box::new(XzReader::new_mem_limit(archive.by_index_raw(1).map_err(damaged)?, false, XZ_MEMORY_KIB)))
}

/// The bundle in the bytes of a file. Its signature is not looked at beyond its form.
///
/// # Errors
/// It is not a bundle, is damaged, is too large, or is inconsistent.
pub fn decode(bytes: &[u8], limits: Limits) -> Result<Bundle, Refused> {
    unpack(bytes, limits).map(|unpacked| unpacked.bundle)
}

/// The bundle in the bytes of a file, with its document and its signature.
///
/// # Errors
/// Those of [`decode`].
pub fn unpack(bytes: &[u8], limits: Limits) -> Result<Unpacked, Refused> {
    within("the file", bytes.len() as u64, limits.file)?;
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|e| Refused::Damaged(e.into()))?;
    let names = names(&mut archive)?;
    let is_signed = names == [DOCUMENT, CONTENTS, SIGNATURE];
    if !is_signed && names != [DOCUMENT, CONTENTS] {
        return Err(Refused::Entries(names));
    }
    let document = member(&mut archive, 0, DOCUMENT, limits.document)?;
    let version = bundle::version(&document)?;
    let signature = match is_signed {
        true if version < bundle::FORMAT_VERSION => return Err(Refused::SignedEarlier(version)),
        true => Some(read_signature(&mut archive, 2, limits)?),
        false => None,
    };
    let mut entry = contents(&mut archive)?;
    let mut taken = 0u64;
    let bundle = Bundle::of(&document, |size| {
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
        0 => Ok(Unpacked { bundle, document, version, signature }),
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
    unpack(&bytes(path)?, LIMITS).map(|unpacked| unpacked.bundle)
}

/// The bytes of a bundle's file.
///
/// # Errors
/// The file cannot be read.
pub fn bytes(path: &Path) -> Result<Vec<u8>, Refused> {
    let file = std::fs::File::open(path).map_err(Refused::Read)?;
    if !file.metadata().map_err(Refused::Read)?.is_file() {
        return Err(Refused::NotFile);
    }
    let mut bytes = vec![];
    file.take(LIMITS.file + 1).read_to_end(&mut bytes).map_err(Refused::Read)?;
    Ok(bytes)
}
