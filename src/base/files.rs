//! Files that are whole or not there. Knows paths and bytes; does not know what is kept in them.

use std::io::{self, Write};
use std::path::Path;

/// Writes `bytes` to `path` so that a reader, and a crash at any moment, sees the old contents or the new, never a part.
/// Makes missing parent directories. `durable` also survives a power cut, at the price of a sync.
pub fn write_atomically(path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent)?;
    let mut temp = tempfile::Builder::new().prefix(".tmp-").tempfile_in(parent)?;
    temp.write_all(bytes)?;
    if durable {
        temp.as_file().sync_data()?;
    }
    temp.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// As [`write_atomically`], but leaves the file, and its times, alone if it holds these bytes already. Says whether it wrote.
pub fn write_if_changed(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    match std::fs::read(path) {
        Ok(old) if old == bytes => Ok(false),
        _ => write_atomically(path, bytes, false).map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_whole_files_and_makes_parents() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c");
        write_atomically(&path, b"one", true).unwrap();
        assert!(write_if_changed(&path, b"two").unwrap());
        assert!(!write_if_changed(&path, b"two").unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("x"), b"kept").unwrap();
        assert!(write_atomically(&path, b"new", false).is_err());
        assert_eq!(std::fs::read(path.join("x")).unwrap(), b"kept");
    }
}
