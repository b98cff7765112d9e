//! Unpacks wheels into folders. Knows the archive format; trusts nothing in a wheel beyond the locked hash.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::toolchain::{Error, UnpackError};
use crate::workspace::lockfile::LockedWheel;

/// Checks by size and SHA-256 that the file is the locked wheel.
///
/// # Errors
/// The file differs from the locked wheel, or cannot be read.
pub(super) fn verify(file: &Path, wheel: &LockedWheel) -> Result<(), Error> {
    let cannot = |source| Error::Read { path: file.to_owned(), source };
    let differs = |what, found: &str, expected: &str| Error::Differs {
        file: wheel.file.clone(),
        what,
        found: found.to_string(),
        expected: expected.to_string(),
    };
    let mut reader = File::open(file).map_err(cannot)?;
    let size = reader.metadata().map_err(cannot)?.len();
    if size != wheel.digest.size {
        return Err(differs("size", &size.to_string(), &wheel.digest.size.to_string()));
    }
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match reader.read(&mut buffer).map_err(cannot)? {
            0 => break,
            n => hasher.update(&buffer[..n]),
        }
    }
    let got: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if got == wheel.digest.sha256 { Ok(()) } else { Err(differs("SHA-256 hash", &got, &wheel.digest.sha256)) }
}

/// Unpacks the wheel into a folder that may hold other wheels. Keeps the executable bit of files, as installers do.
///
/// # Errors
/// The file is not an archive, names a path outside the folder, holds a file that another wheel unpacked with other contents, or cannot be written.
pub(super) fn unpack(file: &Path, into: &Path) -> Result<(), Error> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let cannot = |why: UnpackError| Error::Unpack { file: name.clone(), why };
    let mut archive =
        zip::ZipArchive::new(File::open(file).map_err(|e| cannot(e.into()))?).map_err(|e| cannot(e.into()))?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|e| cannot(e.into()))?;
        let stated = entry.name().map_err(|e| cannot(e.into()))?.into_owned();
        let relative = entry.enclosed_name().ok_or_else(|| cannot(UnpackError::Outside(stated.clone())))?;
        let target = into.join(relative);
        if entry.is_dir() {
            std::fs::create_dir_all(&target).map_err(|e| cannot(e.into()))?;
            continue;
        }
        if entry.is_symlink() {
            return Err(cannot(UnpackError::IsLink(stated)));
        }
        let executable = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
        write_file(&mut entry, &target, executable).map_err(|e| cannot(e.into()))?;
    }
    Ok(())
}

fn write_file(contents: &mut dyn Read, target: &Path, executable: bool) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    if let Some(parent) = target.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let mode = if executable { 0o755 } else { 0o644 };
    match File::options().write(true).create_new(true).mode(mode).open(target) {
        Ok(mut file) => io::copy(contents, &mut file).map(drop),
        // Wheels of one release share files such as the `__init__.py` of packages. Identical bytes are no conflict.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            let mut bytes = vec![];
            contents.read_to_end(&mut bytes)?;
            if std::fs::read(target)? == bytes { Ok(()) } else { Err(e) }
        }
        Err(e) => Err(e),
    }
}
