//! What tests of several packages lay out on a disk. Nothing else uses it.

/// A folder with these files, which goes when it is dropped.
///
/// # Panics
/// It cannot be written.
pub fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}
