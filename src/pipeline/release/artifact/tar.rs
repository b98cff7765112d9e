//! An artifact as one file: a tar archive in the form of POSIX (ustar), sorted by name, with fixed headers. Knows the form; does not know what the files mean.
//!
//! Equal files give equal bytes, on every machine and at every time. Reading accepts only these bytes: an archive that was packed by another program, or that
//! has data after its end, is refused, so the digest of an archive identifies its contents.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use super::files::LIMIT;
use super::{ArtifactError, ArtifactFiles};

/// The file extension of archives.
pub const EXTENSION: &str = "tar";

/// The archive of these files.
///
/// # Errors
/// A name does not fit into a header.
pub fn pack(files: &ArtifactFiles) -> Result<Vec<u8>, ArtifactError> {
    let mut builder = tar::Builder::new(vec![]);
    for (name, bytes) in files.all() {
        let mut header = tar::Header::new_ustar();
        header.set_path(name).map_err(|_| ArtifactError::Name(name.clone()))?;
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_entry_type(tar::EntryType::Regular);
        header.set_cksum();
        builder.append(&header, bytes.as_slice()).map_err(|_| ArtifactError::NotArchive)?;
    }
    builder.into_inner().map_err(|_| ArtifactError::NotArchive)
}

/// The files of an archive.
///
/// # Errors
/// It is not an archive of the form that [`pack`] writes.
pub fn unpack(bytes: &[u8]) -> Result<ArtifactFiles, ArtifactError> {
    if bytes.len() as u64 > LIMIT {
        return Err(ArtifactError::TooLarge { limit: LIMIT });
    }
    if let Some(with) = compressed(bytes) {
        return Err(ArtifactError::Compressed { with });
    }
    if ends_early(bytes) {
        return Err(ArtifactError::EndsEarly { at: bytes.len() as u64 });
    }
    let mut archive = tar::Archive::new(Cursor::new(bytes));
    let mut files = BTreeMap::new();
    for entry in archive.entries().map_err(|_| ArtifactError::NotArchive)? {
        let mut entry = entry.map_err(|_| ArtifactError::NotArchive)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if entry.header().entry_type() != tar::EntryType::Regular {
            return Err(ArtifactError::NotFile(name));
        }
        let mut contents = vec![];
        entry.read_to_end(&mut contents).map_err(|_| ArtifactError::NotArchive)?;
        if files.insert(name.clone(), contents).is_some() {
            return Err(ArtifactError::Repeated(name));
        }
    }
    let files = ArtifactFiles::new(files)?;
    match pack(&files)? == bytes {
        true => Ok(files),
        false => Err(ArtifactError::NotCanonical),
    }
}

/// The program that compressed these bytes, by the bytes with which its form begins; none if no known one did.
fn compressed(bytes: &[u8]) -> Option<&'static str> {
    const FORMS: [(&[u8], &str); 4] = [
        (&[0x1f, 0x8b], "gzip"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
        (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"),
        (b"BZh", "bzip2"),
    ];
    FORMS.into_iter().find(|(begin, _)| bytes.starts_with(begin)).map(|(_, with)| with)
}

/// The size of a block: headers are one block, and contents whole ones.
const BLOCK: usize = 512;

/// Whether bytes are those of an archive up to a place before its end, which is two blocks of zeros.
fn ends_early(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    loop {
        let Some((header, after)) = rest.split_first_chunk::<BLOCK>() else {
            // After whole entries, anything that is not a header yet may be the beginning of one.
            return bytes.len() != rest.len() || bytes.is_empty() || begins_header(rest);
        };
        if header.iter().all(|byte| *byte == 0) {
            return after.len() < BLOCK && after.iter().all(|byte| *byte == 0);
        }
        let header = tar::Header::from_byte_slice(header);
        let is_header = header.as_ustar().is_some() && is_sound(header);
        let (true, Ok(size)) = (is_header, header.entry_size()) else { return false };
        let Some(size) = usize::try_from(size).ok().and_then(|size| size.checked_next_multiple_of(BLOCK)) else {
            return false;
        };
        match after.get(size..) {
            Some(next) => rest = next,
            None => return true,
        }
    }
}

/// Whether a header has the sum that it states, so that it is one.
fn is_sound(header: &tar::Header) -> bool {
    let mut summed = header.clone();
    summed.set_cksum();
    header.cksum().is_ok_and(|stated| summed.cksum().is_ok_and(|sum| sum == stated))
}

/// Whether bytes are the beginning of a header, as far as it has its mark.
fn begins_header(bytes: &[u8]) -> bool {
    bytes.get(257..).is_some_and(|after| after.starts_with(b"ustar\0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> ArtifactFiles {
        let files = [("b", "22"), ("a/x", "1")].map(|(name, text)| (name.to_string(), text.as_bytes().to_vec()));
        ArtifactFiles::new(files.into()).unwrap()
    }

    #[test]
    fn an_archive_is_read_back_and_is_the_same_each_time() {
        let bytes = pack(&files()).unwrap();
        assert_eq!(bytes, pack(&files()).unwrap());
        assert_eq!(unpack(&bytes).unwrap(), files());
        let mut headers = tar::Archive::new(Cursor::new(&bytes));
        let names: Vec<_> = headers.entries().unwrap().map(|e| e.unwrap().path().unwrap().into_owned()).collect();
        assert_eq!(names, [std::path::Path::new("a/x"), std::path::Path::new("b")]);
    }

    #[test]
    fn an_archive_that_was_cut_off_or_compressed_is_named_as_that() {
        let bytes = pack(&files()).unwrap();
        let cut = |at: usize| match unpack(&bytes[..at]) {
            Err(ArtifactError::EndsEarly { at: said }) => said == at as u64,
            other => panic!("{at}: {other:?}"),
        };
        // Within a header, at its end, within contents and their padding, after an entry, and before the last block.
        for at in [0, 300, 512, 513, 700, 1023, 1024, 1300, 2047, 2048, 2560, bytes.len() - 1] {
            assert!(cut(at), "{at}");
        }
        assert!(unpack(&bytes[..bytes.len() - 1]).unwrap_err().to_string().contains("at byte 3071"));
        for (begin, with) in
            [(&b"\x1f\x8b\x08"[..], "gzip -d"), (b"\x28\xb5\x2f\xfd", "zstd -d"), (b"BZh9", "bzip2 -d")]
        {
            let why = unpack(begin).unwrap_err().to_string();
            assert!(why.contains("is compressed with") && why.ends_with(&format!("`{with}`")), "{why}");
        }
        // What is something else is not said to be cut off.
        let mut other = bytes.clone();
        other[0] ^= 1;
        assert!(matches!(unpack(&other[..700]), Err(ArtifactError::NotArchive)));
        assert!(matches!(unpack(&[0; 100]), Err(ArtifactError::NotArchive)));
    }

    #[test]
    fn other_archives_are_refused() {
        let bytes = pack(&files()).unwrap();
        let more = [bytes.as_slice(), b"more"].concat();
        assert!(matches!(unpack(&more), Err(ArtifactError::NotCanonical)));
        assert!(unpack(&bytes[..700]).is_err());
        assert!(unpack(b"text").is_err());
        // An error repeats nothing of a file that is something else.
        let secret = "root:x:0:0:hidden:/root:/bin/sh\n".repeat(40);
        let why = unpack(secret.as_bytes()).unwrap_err();
        assert!(matches!(why, ArtifactError::NotArchive) && !why.to_string().contains("root"), "{why}");
        let other = |set: fn(&mut tar::Header)| {
            let mut builder = tar::Builder::new(vec![]);
            let mut header = tar::Header::new_ustar();
            header.set_path("a").unwrap();
            header.set_size(0);
            header.set_mode(0o644);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            header.set_entry_type(tar::EntryType::Regular);
            set(&mut header);
            header.set_cksum();
            builder.append(&header, &[][..]).unwrap();
            unpack(&builder.into_inner().unwrap())
        };
        assert!(other(|_| {}).is_ok());
        assert!(matches!(other(|header| header.set_mtime(1)), Err(ArtifactError::NotCanonical)));
        assert!(matches!(
            other(|header| header.set_entry_type(tar::EntryType::Symlink)),
            Err(ArtifactError::NotFile(_))
        ));
        let outside = |header: &mut tar::Header| header.as_mut_bytes()[..5].copy_from_slice(b"../ab");
        assert!(matches!(other(outside), Err(ArtifactError::Name(_))));
    }
}
