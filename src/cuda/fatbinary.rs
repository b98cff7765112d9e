//! Packs a cubin, and PTX if there is any, into a fatbin with NVIDIA's `fatbinary`. Knows its command line; does not read the result, and does not know where
//! the tool was installed from.
//!
//! Images are not compressed. A cubin of a kernel has tens of kilobytes and an artifact holds few of them, so that its readers can compare bytes without a
//! decompressor is worth more. And compressed bytes differ between releases of the tool, while uncompressed ones are equal from 13.0 to 13.5.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kforge_foundation::process::End;
use kforge_harness::compilers::{ToolSandbox, ended};

/// The time limit for packing images of the caller's own.
const LONGEST: Duration = Duration::from_secs(60);

/// Why there is no fatbin.
#[derive(Debug, thiserror::Error)]
pub enum FatbinaryError {
    /// The architecture has another form than `sm_90a`.
    #[error("`{0}` is no architecture of a GPU")]
    Architecture(String),
    /// The tool cannot be run, or its files cannot be written or read.
    #[error("could not pack with `{}`: {source}", .program.display())]
    Io {
        /// The tool.
        program: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The tool refused the images, or was ended.
    #[error("{}", format!("{} {said}", ended("`fatbinary`", *.end)).trim_end())]
    Ended {
        /// How it ended.
        end: End,
        /// Its message.
        said: String,
    },
}

/// Packs images of the caller's own, with an unconfined tool: see [`fatbin_within`].
///
/// # Errors
/// As for [`fatbin_within`].
pub fn fatbin(arch: &str, cubin: &[u8], ptx: Option<&[u8]>, program: &Path) -> Result<Vec<u8>, FatbinaryError> {
    let cannot = |source| FatbinaryError::Io { program: program.to_owned(), source };
    let scratch = tempfile::tempdir().map_err(cannot)?;
    let within = ToolSandbox { scratch: scratch.path(), bounds: None, deadline: Instant::now() + LONGEST };
    fatbin_within(arch, cubin, ptx, program, &within)
}

/// Packs a cubin and PTX, both for this architecture (`sm_90a`), with `program`, which is NVIDIA's `fatbinary`. Equal images give equal bytes.
///
/// # Errors
/// The tool refuses the images, for example because the cubin is for another architecture, or it cannot be run.
pub fn fatbin_within(
    arch: &str,
    cubin: &[u8],
    ptx: Option<&[u8]>,
    program: &Path,
    within: &ToolSandbox<'_>,
) -> Result<Vec<u8>, FatbinaryError> {
    let cannot = |source| FatbinaryError::Io { program: program.to_owned(), source };
    let capability = arch.strip_prefix("sm_").ok_or_else(|| FatbinaryError::Architecture(arch.into()))?;
    let folder = tempfile::Builder::new().prefix(".fatbin-").tempdir_in(within.scratch).map_err(cannot)?;
    let mut images = vec![("elf", "k.cubin", cubin)];
    images.extend(ptx.map(|ptx| ("ptx", "k.ptx", ptx)));
    let mut command = within.command(program, folder.path()).map_err(cannot)?;
    command = command.args(["--create=k.fatbin", "-64", "--compress=false"]);
    for (kind, file, bytes) in images {
        std::fs::write(folder.path().join(file), bytes).map_err(cannot)?;
        command = command.args([format!("--image3=kind={kind},sm={capability},file={file}")]);
    }
    let finished = within.run(&command).map_err(cannot)?;
    if !finished.end.success() {
        let said = [finished.stderr.text(), finished.stdout.text()].join(" ");
        return Err(FatbinaryError::Ended { end: finished.end, said: said.trim().to_string() });
    }
    std::fs::read(folder.path().join("k.fatbin")).map_err(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A program that stands in for the tool.
    fn tool(folder: &Path, script: &str) -> PathBuf {
        let path = folder.join("fatbinary");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn the_tool_gets_each_image_with_its_kind_and_architecture() {
        let folder = tempfile::tempdir().unwrap();
        let program = tool(
            folder.path(),
            "for word; do echo \"$word\"; done > k.fatbin; cat k.cubin k.ptx >> k.fatbin 2>/dev/null; exit 0",
        );
        let made = fatbin("sm_90a", b"code ", Some(b"text"), &program).unwrap();
        let expected = "--create=k.fatbin\n-64\n--compress=false\n--image3=kind=elf,sm=90a,file=k.cubin\n\
                        --image3=kind=ptx,sm=90a,file=k.ptx\ncode text";
        assert_eq!(String::from_utf8(made).unwrap(), expected);
        let made = fatbin("sm_120", b"code", None, &program).unwrap();
        assert!(String::from_utf8(made).unwrap().ends_with("--image3=kind=elf,sm=120,file=k.cubin\ncode"));
    }

    #[test]
    fn a_refusal_is_quoted_and_a_missing_tool_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let program = tool(folder.path(), "echo 'elf arch does not match' >&2; exit 1");
        let error = fatbin("sm_90a", b"code", None, &program).unwrap_err().to_string();
        assert!(error.contains("`fatbinary`") && error.contains("elf arch does not match"), "{error}");
        let error = fatbin("sm_90a", b"code", None, &folder.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("none"), "{error}");
        assert!(matches!(fatbin("cpu", b"code", None, &program), Err(FatbinaryError::Architecture(_))));
        let program = tool(folder.path(), "exit 0");
        assert!(
            matches!(fatbin("sm_90a", b"code", None, &program), Err(FatbinaryError::Io { .. })),
            "it wrote nothing"
        );
    }
}
