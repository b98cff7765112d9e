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
