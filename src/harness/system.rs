//! Checks that everything a compiler read is an input of its step. Knows the lists that compilers write and the files of a toolchain; does not know what is
//! compiled.
//!
//! A file outside the sources is allowed if the toolchain's fingerprint contains the digest of its content. The content decides, not the path, so a header that
//! changed after the fingerprint was taken is refused too.

use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::message::Response;
use super::task::{Task, failed};
use kforge_foundation::base::Digest;
use kforge_types::record::params::Toolchain;

/// The files that a compiler read, from its list in makefile syntax.
pub fn files_read(list: &str) -> Vec<String> {
    let list = list.split_once(':').map_or("", |(_, files)| files).replace("\\\n", " ").replace("\\ ", "\u{1f}");
    list.split_whitespace().map(|file| file.replace('\u{1f}', " ")).collect()
}

/// The first line of assembly that makes the assembler read a file, because such a file is in no list.
pub fn assembler_reads(assembly: &str) -> Option<String> {
    let text = |line: &&str| [".string", ".ascii"].iter().any(|word| line.trim_start().starts_with(word));
    let mut code = assembly.lines().filter(|line| !text(line));
    let line = code.find(|line| line.contains(".incbin") || line.contains(".include"))?;
    Some(line.trim().to_string())
}

/// Refuses a file outside the sources that `source` read and that is not in the step's toolchain, the input named `input`.
///
/// # Errors
/// A response that names the file and what to do; or the toolchain cannot be read.
pub fn only_of_toolchain(task: &Task, input: &str, source: &str, read: &[PathBuf]) -> Result<(), Response> {
    let toolchain: Toolchain = task.document(input)?;
    match read.iter().find(|file| !known(file, &toolchain.headers)) {
        None => Ok(()),
        Some(file) => Err(failed(format!(
            "`{source}` reads `{}`, which kforge does not track: it lies neither in the package nor among the C++ compiler's own headers; copy it \
             into the package, or declare the folder it is in as a dependency: `[dependencies] NAME = {{ path = \"...\", include = \".\" }}`",
            file.display()
        ))),
    }
}

/// Refuses a file outside the sources whose existence `source` asks about and that is not in the step's toolchain, the input named `input`. One that does not
/// exist is what every machine without it answers.
///
/// # Errors
/// A response that names the file and what to do; or the toolchain cannot be read.
pub fn asks_only_of_toolchain(task: &Task, input: &str, source: &str, asked: &[PathBuf]) -> Result<(), Response> {
    if asked.is_empty() {
        return Ok(());
    }
    let toolchain: Toolchain = task.document(input)?;
    match asked.iter().find(|file| !known(file, &toolchain.headers)) {
        None => Ok(()),
        Some(file) => Err(failed(format!(
            "`{source}` asks by `__has_include` for `{}`, which kforge does not track: the answer would depend on this machine; copy the header into the \
             package, or leave the question out",
            file.display()
        ))),
    }
}

/// A file's size, times and inode when it was read, and its digest.
type FileStamp = (u64, i64, i64, u64, Digest);

/// Digests of system headers that this worker has read: every compilation reads the same few hundred.
static READ: Mutex<Option<HashMap<PathBuf, FileStamp>>> = Mutex::new(None);

fn known(file: &Path, headers: &BTreeSet<Digest>) -> bool {
    let Ok(metadata) = std::fs::metadata(file) else { return false };
    let ns = |s: i64, ns: i64| s.wrapping_mul(1_000_000_000).wrapping_add(ns);
    let (size, inode) = (metadata.size(), metadata.ino());
    let (mtime, ctime) = (ns(metadata.mtime(), metadata.mtime_nsec()), ns(metadata.ctime(), metadata.ctime_nsec()));
    let mut memo = READ.lock().unwrap_or_else(PoisonError::into_inner);
    let memo = memo.get_or_insert_default();
    let digest = match memo.get(file) {
        Some((s, m, c, i, digest)) if (*s, *m, *c, *i) == (size, mtime, ctime, inode) => *digest,
        _ => {
            let Ok(digest) = Digest::of_file(file) else { return false };
            memo.insert(file.to_path_buf(), (size, mtime, ctime, inode, digest));
            digest
        }
    };
    headers.contains(&digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_with_spaces_and_continued_lines() {
        assert_eq!(files_read("a.s: b.cpp \\\n c\\ d.h\n"), ["b.cpp", "c d.h"]);
    }

    #[test]
    fn what_the_assembler_would_read_is_found() {
        assert_eq!(assembler_reads("\t.string \"x.incbin\"\n\tnop\n"), None);
        assert_eq!(assembler_reads("\tnop; .incbin \"/etc/x\"\n"), Some("nop; .incbin \"/etc/x\"".into()));
    }

    #[test]
    fn a_header_is_known_by_what_it_holds_wherever_it_lies() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.h");
        std::fs::write(&file, "int x;").unwrap();
        let headers = [Digest::of(b"int x;")].into();
        assert!(known(&file, &headers));
        std::fs::write(&file, "long x;").unwrap();
        assert!(!known(&file, &headers));
        assert!(!known(&dir.path().join("no.h"), &headers));
    }
}
