//! A package that is packaged a second time.

use std::fs;

use kforge::release::signature::ARTIFACT_NAMESPACE;

use crate::lab::Lab;
use crate::packaged::{ARCHIVE, FOLDER, built, key, run};

/// Packages without a signature, in place of what may be signed.
pub(crate) fn unsigned(lab: &Lab) {
    fs::remove_dir_all(lab.project.root().join("target/kforge/package")).unwrap();
    run(lab, &["package"], 0);
}

#[test]
fn an_artifact_of_the_same_files_stays_signed_and_of_other_files_does_not() {
    let lab = built();
    let (private, trusted) = key(&lab, ARTIFACT_NAMESPACE);
    let archive = lab.project.root().join(ARCHIVE);
    let trusts = ["verify-artifact", archive.to_str().unwrap(), "--trust", trusted.to_str().unwrap()];
    run(&lab, &["package", "--sign-key", private.to_str().unwrap()], 0);
    let signed = fs::read(&archive).unwrap();
    let said = run(&lab, &["package"], 0);
    assert!(said.contains("SHA256:") && !said.contains("not signed"), "{said}");
    assert!(fs::read(&archive).unwrap() == signed, "the signature is kept");
    run(&lab, &trusts, 0);

    // What is beside the index is no signature of it, by somebody or at all.
    let place = lab.project.root().join(FOLDER).join("kforge-artifact.json.sig");
    let signature = fs::read_to_string(&place).unwrap();
    for other in ["nothing", &signature.replacen('A', "B", 40)] {
        fs::write(&place, other).unwrap();
        let said = run(&lab, &["package"], 0);
        assert!(said.contains("not signed; `--sign-key KEY` signs it") && !place.exists(), "{said}");
    }

    run(&lab, &["package", "--sign-key", private.to_str().unwrap()], 0);
    let lab = lab.manifest("license = \"MIT\"", "license = \"Apache-2.0\"");
    let said = run(&lab, &["package"], 0);
    assert!(said.contains("not signed; `--sign-key KEY` signs it") && !place.exists(), "{said}");
}

#[test]
fn a_file_that_somebody_put_beside_those_of_an_artifact_is_not_removed() {
    let lab = built();
    run(&lab, &["package"], 0);
    lab.project.write(&format!("{FOLDER}/notes.txt"), "mine");
    let said = run(&lab.manifest("license = \"MIT\"", "license = \"Apache-2.0\""), &["package"], 101);
    assert!(said.contains("`notes.txt` is not listed") && said.contains("--output"), "{said}");
}

#[test]
fn a_lockfile_of_installed_artifacts_is_a_file_of_its_folder() {
    let lab = built();
    let folder = lab.project.place().join("reader");
    fs::create_dir(&folder).unwrap();
    let lock = folder.join("kforge-install.lock");
    let words = ["-C", folder.to_str().unwrap(), "install", "nowhere"];
    std::os::unix::fs::symlink(lab.project.place().join("elsewhere"), &lock).unwrap();
    assert!(run(&lab, &words, 101).contains("is a symbolic link"));
    fs::remove_file(&lock).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &lock, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    assert!(run(&lab, &words, 101).contains("it is no regular file"));
}
