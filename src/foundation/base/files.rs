//! Atomic files: a file is complete or absent. Knows paths and bytes; does not know what the files hold.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes `bytes` to `path`. A reader sees the old contents or the new contents, never a partial file, even after a crash at any moment. Creates missing parent
/// directories. With `durable`, the file also survives a power cut, at the cost of a sync.
pub fn write_atomically(path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent)?;
    // The file is as readable as any file that the user creates: the umask of the process applies.
    let mode = std::fs::Permissions::from_mode(0o666);
    let mut temp = tempfile::Builder::new().prefix(".tmp-").permissions(mode).tempfile_in(parent)?;
    temp.write_all(bytes)?;
    if durable {
        temp.as_file().sync_data()?;
    }
    temp.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// Like [`write_atomically`], but does not touch the file or its times if it already holds these bytes. Returns whether it wrote.
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
    fn files_have_the_mode_that_others_of_the_user_have() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("plain"), b"").unwrap();
        write_atomically(&dir.path().join("ours"), b"", false).unwrap();
        let mode = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode("ours"), mode("plain"));
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
