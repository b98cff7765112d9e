//! Lays out the headers of CUDA's core libraries (cub with what it includes of libcu++ and thrust) for a source that includes cub: a host compiler reads the
//! toolkit's own files. Knows which texts have to be adapted; does not know which source needs them.
//!
//! | folder | holds |
//! |---|---|
//! | [`ADAPTED`], searched first | files with inline PTX, translated as a source's own is; files that g++ refuses as they are; [`UMBRELLA`] |
//! | [`TOOLKIT`] | a link to the toolkit's files |
//!
//! A host compiler takes libcu++ as it is, because the prelude presents itself as nvcc (`KF_CCCL`). The headers of ours below `cuda/` are not used beside it.

use std::fs;
use std::io;
use std::path::Path;

use super::abi::{ADAPTED, TOOLKIT};
use super::ptx::with_ptx;
use kforge_harness::trees;

/// The header in which libcu++ learns about the compiler.
pub(super) const CONFIGURATION: &str = "cuda/std/detail/__config";
/// The folders of a toolkit's files that a source with cub reads.
const FOLDERS: [&str; 3] = ["cub", "cuda", "thrust"];

/// `cub/cub.cuh` of ours: everything that runs on a device. The algorithms that the host launches (`cub::DeviceReduce`) need the whole of CUDA's runtime.
const UMBRELLA: (&str, &str) = ("cub/cub.cuh", include_str!("cub.cuh"));

/// Whether a header of that name is one of cub's.
pub fn is_cub(header: &str) -> bool {
    header.starts_with("cub/")
}

/// Lays out both folders in the working folder. `toolkit` is the folder that holds `cub/`. Returns whether an adapted file calls what is there for inline PTX.
pub(super) fn lay_out(toolkit: &Path, cwd: &Path) -> io::Result<bool> {
    let toolkit = toolkit.canonicalize()?;
    std::os::unix::fs::symlink(&toolkit, cwd.join(TOOLKIT))?;
    let mut calls = false;
    let write = |name: &str, text: &str| {
        let to = cwd.join(ADAPTED).join(name);
        fs::create_dir_all(to.parent().unwrap_or(cwd))?;
        fs::write(to, text)
    };
    for folder in FOLDERS.into_iter().filter(|folder| toolkit.join(folder).is_dir()) {
        for (name, text) in trees::texts(&toolkit.join(folder))? {
            if let Some((text, with_calls)) = adapted(folder, &text) {
                calls |= with_calls;
                write(&format!("{folder}/{name}"), &text)?;
            }
        }
    }
    write(UMBRELLA.0, UMBRELLA.1)?;
    Ok(calls)
}

/// The text of a file as a host compiler takes it, and whether it calls what is there for inline PTX; none if it takes the file as it is.
fn adapted(folder: &str, text: &str) -> Option<(String, bool)> {
    let named = (folder == "cub").then(|| with_qualified_names(text)).flatten();
    let translated = with_ptx(named.as_deref().unwrap_or(text));
    translated.map(|translated| (translated.text, translated.calls)).or(named.map(|text| (text, false)))
}

/// `using WarpScan = WarpScan<T>;` in a class gives a name of the namespace another meaning, which g++ refuses unless the name is qualified.
fn with_qualified_names(text: &str) -> Option<String> {
    let mut changed = false;
    let one = |line: &str| {
        let alias = line.trim_start().strip_prefix("using ").and_then(|rest| rest.split_once('='));
        let (name, rest) = alias.map_or(("", ""), |(name, rest)| (name.trim(), rest.trim_start()));
        match rest.strip_prefix(name).filter(|after| !name.is_empty() && after.trim_start().starts_with('<')) {
            Some(after) => {
                changed = true;
                let indent = &line[..line.len() - line.trim_start().len()];
                format!("{indent}using {name} = CUB_NS_QUALIFIER::{name}{after}")
            }
            None => line.to_owned(),
        }
    };
    let out = text.split('\n').map(one).collect::<Vec<_>>().join("\n");
    changed.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_changes_its_meaning_is_qualified_on_its_line() {
        let text = "struct A {\n  using WarpScan = WarpScan<T, 4>;\n  using B = Other<T>;\n  using C = CD<T>;\n};\n";
        let out = with_qualified_names(text).unwrap();
        assert_eq!(out, text.replace("= WarpScan<", "= CUB_NS_QUALIFIER::WarpScan<"));
        assert_eq!(with_qualified_names("using B = Other<T>;"), None);
    }

    #[test]
    fn the_toolkits_files_are_linked_and_those_with_inline_ptx_translated() {
        let dir = tempfile::tempdir().unwrap();
        let (toolkit, cwd) = (dir.path().join("kit"), dir.path().join("work"));
        for folder in FOLDERS {
            fs::create_dir_all(toolkit.join(folder)).unwrap();
        }
        fs::create_dir(&cwd).unwrap();
        fs::write(toolkit.join("cub/plain.cuh"), "int x;\n").unwrap();
        fs::write(toolkit.join("cuda/lane"), "asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(x));\n").unwrap();
        assert!(lay_out(&toolkit, &cwd).unwrap());
        let read = |name: &str| fs::read_to_string(cwd.join(name));
        assert!(read("cccl/cuda/lane").unwrap().contains("kf_ptx_laneid"));
        assert_eq!(read("toolkit/cub/plain.cuh").unwrap(), "int x;\n");
        assert!(read("cccl/cub/plain.cuh").is_err() && read("cccl/cub/cub.cuh").unwrap().contains("block_reduce"));
    }
}
