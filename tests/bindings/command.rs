//! `kforge bindings`: what it writes, and what it refuses.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use kforge::release::bindings::{BindingsError, plan};

use crate::lab::{exotic, write};

fn artifact(folder: &Path) -> PathBuf {
    let path = folder.join("artifact");
    write(&path, exotic().files.all());
    path
}

/// Runs the command in a folder: its exit code and what it printed.
fn run(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_kforge"))
        .arg("bindings")
        .args(words)
        .current_dir(folder)
        .env("KFORGE_HOME", folder.join("home"))
        .output()
        .unwrap();
    (output.status.code(), [output.stdout, output.stderr].map(|b| String::from_utf8_lossy(&b).into_owned()).concat())
}

fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap).filter(|e| e.file_type().is_file());
    files.map(|e| (e.path().strip_prefix(folder).unwrap().to_path_buf(), fs::read(e.path()).unwrap())).collect()
}

#[test]
fn equal_artifacts_give_equal_bytes_and_an_earlier_folder_is_replaced() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    artifact(folder);
    for (language, file) in [("c", "exotic.h"), ("rust", "src/lib.rs"), ("python", "build/torch-cuda/__init__.py")] {
        let (code, said) = run(folder, &["artifact", "--language", language]);
        assert_eq!(code, Some(0), "{said}");
        let written = folder.join(format!("exotic-{language}"));
        let first = contents(&written);
        assert!(first.contains_key(Path::new(file)), "{language}: {:?}", first.keys());
        // A file of an earlier loader goes.
        let marker = written.join("kforge-bindings.json");
        fs::write(written.join("stale"), "").unwrap();
        let empty = kforge::release::artifact::files::sha256(b"");
        let listed = fs::read_to_string(&marker)
            .unwrap()
            .replace("\"files\": {", &format!("\"files\": {{\"stale\": \"{empty}\","));
        fs::write(&marker, listed).unwrap();
        fs::create_dir_all(written.join("a/__pycache__")).unwrap();
        fs::write(written.join("a/__pycache__/x.pyc"), "x").unwrap();
        assert_eq!(run(folder, &["artifact", "--language", language]).0, Some(0));
        assert_eq!(contents(&written), first, "{language}");
    }
    let named = run(folder, &["artifact", "--language", "c", "--output", "a/b", "--message-format", "json"]);
    assert!(named.1.contains("\"mixed_f32_i64\""), "{named:?}");
    assert_eq!(contents(&folder.join("a/b")), contents(&folder.join("exotic-c")));
}

#[test]
fn what_kforge_did_not_write_is_not_overwritten() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    artifact(folder);
    fs::create_dir(folder.join("mine")).unwrap();
    fs::write(folder.join("mine/notes"), "mine").unwrap();
    let (code, said) = run(folder, &["artifact", "--language", "c", "--output", "mine"]);
    assert_eq!(code, Some(101));
    assert!(said.contains("`kforge bindings`") && said.contains("--output"), "{said}");
    assert_eq!(contents(&folder.join("mine")).len(), 1);
    // Nor what the user put beside a loader, or changed in it.
    assert_eq!(run(folder, &["artifact", "--language", "c"]).0, Some(0));
    for (file, is_own) in [("mine.c", true), ("exotic.h", false)] {
        let at = folder.join("exotic-c").join(file);
        fs::write(&at, "mine").unwrap();
        let (code, said) = run(folder, &["artifact", "--language", "c"]);
        assert!(
            code == Some(101) && said.contains("is not replaced") && said.contains(&format!("`{file}` in it")),
            "{said}"
        );
        assert_eq!(fs::read_to_string(&at).unwrap(), "mine");
        if is_own {
            fs::remove_file(at).unwrap();
        }
    }
    let (code, said) = run(folder, &["artifact", "--language", "c", "--wheel"]);
    assert!(code == Some(101) && said.contains("`--wheel` is for `--language python`"), "{said}");
}

#[test]
fn a_changed_artifact_is_refused_by_the_name_of_the_file() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let path = artifact(folder);
    let binary = contents(&path).into_keys().find(|name| name.extension().is_some_and(|e| e == "cubin")).unwrap();
    fs::write(path.join(&binary), "other machine code").unwrap();
    let (code, said) = run(folder, &["artifact", "--language", "python"]);
    assert_eq!(code, Some(101));
    assert!(said.contains(&binary.display().to_string()), "{said}");
    assert!(!folder.join("exotic-python").exists());
}

#[test]
fn a_wheel_holds_the_package_and_a_record_of_it() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    artifact(folder);
    let (code, said) = run(folder, &["artifact", "--language", "python", "--wheel"]);
    assert_eq!(code, Some(0), "{said}");
    let path = folder.join("exotic-python/dist/exotic-2.1.0-py3-none-any.whl");
    let mut wheel = zip::ZipArchive::new(Cursor::new(fs::read(path).unwrap())).unwrap();
    let members = wheel.len();
    let mut record = String::new();
    wheel.by_name("exotic-2.1.0.dist-info/RECORD").unwrap().read_to_string(&mut record).unwrap();
    assert_eq!(record.lines().count(), members);
    for (name, bytes) in contents(&folder.join("exotic-python/build/torch-cuda")) {
        let mut held = vec![];
        wheel.by_name(&format!("exotic/{}", name.display())).unwrap().read_to_end(&mut held).unwrap();
        assert_eq!(held, bytes, "{}", name.display());
    }
}

/// Everything in an artifact may be written by somebody who wants to run code where a loader is compiled.
#[test]
fn names_that_would_be_code_are_refused() {
    let sample = exotic();
    let index = sample.files.index().unwrap();
    let refused = |change: &dyn Fn(&mut kforge::release::artifact::kernels::PackagedKernel)| {
        let mut document = sample.document.clone();
        change(&mut document.kernels[0]);
        plan(&index, &sample.files, &document).unwrap_err().to_string()
    };
    let code = "rows; system(\"id\")";
    assert!(refused(&|kernel| kernel.interface.dims[1] = code.into()).contains("is not a name"));
    assert!(refused(&|kernel| kernel.interface.params[0].name = "eps\n".into()).contains("is not a name"));
    assert!(refused(&|kernel| kernel.devices[0] = "H200\"); system(\"id".into()).contains("is not a name"));
    assert!(
        refused(&|kernel| kernel.variants[0].symbols.values_mut().for_each(|s| s.push('"'))).contains("is not a name")
    );
    assert!(refused(&|kernel| kernel.interface.tensors[0].shape[0] = code.into()).contains("cannot be evaluated"));
    let mut other = index.clone();
    other.license = "MIT */ int evil(void);".into();
    let error = plan(&other, &sample.files, &sample.document).unwrap_err();
    assert!(matches!(error, BindingsError::Text(_)), "{error}");
    // What only people read is kept, without what would end a comment.
    let mut shown = sample.document.clone();
    shown.kernels[0].operator = "sum */ int evil(void);\n/*".into();
    let planned = plan(&index, &sample.files, &shown).unwrap();
    assert!(!planned.functions[0].title.contains("*/") && !planned.functions[0].title.contains('\n'));
}
