//! Staged trees of sources as texts, and trees laid out with some of their files replaced. Knows files; does not know what replaces them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Texts by their names in a tree: they take the place of its files, or are added to them.
pub type Replaced = BTreeMap<String, String>;

/// The texts of the files of a tree by their names, with `/` between folders.
///
/// # Errors
/// A file or folder cannot be read.
pub fn texts(tree: &Path) -> io::Result<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    files(tree, "", &mut |name| {
        texts.insert(name.to_string(), String::from_utf8_lossy(&fs::read(tree.join(name))?).into_owned());
        Ok(())
    })?;
    Ok(texts)
}

/// Lays a tree out in the folder `to`, which need not exist: the replaced files with their new texts, all others as links.
///
/// # Errors
/// A file cannot be read, or something cannot be written.
pub fn lay_out(tree: &Path, replaced: &Replaced, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    let above = |path: &Path| path.parent().map_or(Ok(()), fs::create_dir_all);
    files(tree, "", &mut |name| {
        let there = to.join(name);
        above(&there)?;
        if replaced.contains_key(name) { Ok(()) } else { symlink(tree.join(name).canonicalize()?, there) }
    })?;
    for (name, text) in replaced {
        let there = to.join(name);
        above(&there)?;
        fs::write(there, text)?;
    }
    Ok(())
}

/// Calls `of` for the name of each file below the folder `name` of a tree, in order.
fn files(tree: &Path, name: &str, of: &mut dyn FnMut(&str) -> io::Result<()>) -> io::Result<()> {
    let mut names: Vec<String> = vec![];
    for entry in fs::read_dir(tree.join(name))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    for entry in names {
        let path = if name.is_empty() { entry } else { format!("{name}/{entry}") };
        match fs::metadata(tree.join(&path))?.is_dir() {
            true => files(tree, &path, of)?,
            false => of(&path)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_laid_out_with_the_replaced_files_written_and_the_others_linked() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, to) = (dir.path().join("tree"), dir.path().join("to"));
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::write(tree.join("a/b/x.h"), "x").unwrap();
        fs::write(tree.join("k.cu"), "k").unwrap();
        let replaced = [("k.cu", "new"), ("@absent/torch/t.h", "")].map(|(n, t)| (n.to_string(), t.to_string()));
        lay_out(&tree, &replaced.into(), &to).unwrap();
        let found = texts(&to).unwrap();
        let expected = [("@absent/torch/t.h", ""), ("a/b/x.h", "x"), ("k.cu", "new")];
        assert_eq!(found.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect::<Vec<_>>(), expected);
        assert!(to.join("a/b/x.h").is_symlink() && !to.join("k.cu").is_symlink());
        assert_eq!(fs::read_to_string(tree.join("k.cu")).unwrap(), "k");
    }
}
