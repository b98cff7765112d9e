//! Full disks, stores that cannot be written, files with changed bytes: a clear message or a silent repair, never a wrong result.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::killed::{State, small, state};
use crate::project::{Built, Kept, Project, known, results};
use crate::random::Random;
use kforge::base::testing::skipped;

/// [`small`] in a home that has all its results.
fn built() -> Project {
    static KNOWN: OnceLock<Kept> = OnceLock::new();
    known(&KNOWN, small, |project| drop(state(project)))
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found.sort();
    found
}

/// Changes the bytes of a file, even of a read-only one. Does not create a new file, because a bad disk does not either.
fn spoil(path: &Path, with: impl FnOnce(&mut Vec<u8>)) {
    let mode = fs::metadata(path).unwrap().permissions();
    let mut bytes = fs::read(path).unwrap();
    with(&mut bytes);
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, mode).unwrap();
}

fn flip(bytes: &mut [u8], random: &mut Random) {
    if !bytes.is_empty() {
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << random.below(8);
    }
}

/// Builds, and builds again if a step reports that one of its inputs is lost.
#[track_caller]
fn repaired(project: &Project) -> State {
    let built = project.build(&["--keep-going"]);
    if built.code() != 100 {
        let built = built.expect(101);
        for failed in built.finished().filter_map(|s| s["outcome"]["failed"].as_str()) {
            let lost =
                failed.contains("is no longer in the store; build again") || failed.contains("the store no longer has");
            assert!(lost && failed.contains("again"), "{failed}");
        }
    }
    state(project).0
}

#[test]
#[ignore = "second tier: many builds"]
fn corrupted_contents_are_made_again_and_never_believed() {
    let mut random = Random::seeded();
    let project = built();
    let (expected, _) = state(&project);
    for way in ["flipped", "cut", "removed"] {
        for path in files(&project.home().join("cas")) {
            match way {
                "flipped" => spoil(&path, |bytes| flip(bytes, &mut random)),
                "cut" => spoil(&path, |bytes| bytes.truncate(bytes.len() / 2)),
                _ => fs::remove_file(&path).unwrap(),
            }
        }
        // In a workspace that trusts its journal, and in one without a journal.
        assert_eq!(repaired(&project), expected, "{way}");
        let clone = project.cloned(way);
        assert_eq!(repaired(&clone), expected, "{way}, in a clone");
        // The repaired results are stored again.
        assert_eq!(state(&project.cloned(&format!("{way} again"))).1.count("executed"), 0, "{way}");
    }
}

#[test]
#[ignore = "second tier: many builds"]
fn corrupted_results_are_made_again_and_never_believed() {
    let mut random = Random::seeded();
    let project = built();
    let (expected, _) = state(&project);
    for way in ["flipped", "cut", "emptied"] {
        for path in files(&project.home().join("actions")) {
            spoil(&path, |bytes| match way {
                "flipped" => flip(bytes, &mut random),
                "cut" => bytes.truncate(bytes.len() / 2),
                _ => bytes.clear(),
            });
        }
        let clone = project.cloned(way);
        assert_eq!(state(&clone).0, expected, "{way}");
        assert_eq!(state(&project.cloned(&format!("{way} again"))).1.count("executed"), 0, "{way}");
    }
}

#[test]
#[ignore = "second tier: many builds"]
fn a_journal_that_is_cut_or_flipped_anywhere_is_repaired() {
    let mut random = Random::seeded();
    let project = built();
    let (expected, _) = state(&project);
    let journal = project.target().join("journal");
    let whole = fs::read(&journal).unwrap();
    for round in 0..12 {
        let mut bytes = whole.clone();
        match round % 3 {
            0 => bytes.truncate(random.below(whole.len() as u64) as usize),
            1 => flip(&mut bytes, &mut random),
            _ => bytes.extend((0..random.below(300)).map(|_| random.below(256) as u8)),
        }
        fs::write(&journal, bytes).unwrap();
        let (found, built) = state(&project);
        assert_eq!(found, expected, "round {round}");
        assert_eq!(built.count("executed"), 0, "round {round}: the shared cache still knows");
        assert!(!built.stderr().contains("BUG"), "{}", built.stderr());
    }
    // If the cache is gone too, kforge does everything again rather than trust the journal.
    fs::write(&journal, &whole[..whole.len() / 2]).unwrap();
    fs::remove_dir_all(project.home()).unwrap();
    assert_eq!(state(&project).0, expected);
}

#[test]
fn a_journal_of_another_version_starts_over_and_says_so() {
    let project = built();
    let (expected, _) = state(&project);
    fs::write(project.target().join("journal"), "another program's journal, of whatever length it is\n").unwrap();
    let (found, built) = state(&project);
    assert_eq!(found, expected);
    built.says("starting a new one");
}

#[test]
#[ignore = "second tier: many builds"]
fn outputs_and_home_that_are_gone_are_made_again() {
    let project = built();
    let (expected, _) = state(&project);
    fs::remove_dir_all(project.home()).unwrap();
    assert_eq!(state(&project).0, expected);
    fs::remove_dir_all(project.root().join("target")).unwrap();
    assert_eq!(state(&project).0, expected);
    fs::remove_dir_all(project.root().join("target")).unwrap();
    fs::remove_dir_all(project.home()).unwrap();
    assert_eq!(state(&project).0, expected);
}

#[test]
#[ignore = "second tier: many builds"]
fn a_home_that_is_removed_while_a_build_runs_is_told_and_made_again() {
    let undisturbed = small();
    let (expected, _) = state(&undisturbed);
    let project = small();
    let mut building = project.building(&["--keep-going"]).spawn().unwrap();
    // As soon as something is stored.
    while !project.target().join("journal").exists() && building.try_wait().unwrap().is_none() {}
    fs::rename(project.home(), project.place().join("away")).ok();
    let built = Built::of(&building.wait_with_output().unwrap());
    if built.code() != 100 {
        let built = built.expect(101);
        let told = ["was removed while kforge was running", "no longer in the store", "the store no longer has"];
        assert!(told.iter().any(|words| built.stderr().contains(words)), "{}", built.stderr());
    }
    assert_eq!(state(&project).0, expected);
}

#[test]
fn a_home_that_cannot_be_made_is_named_with_what_to_do() {
    let project = small().home_at("taken");
    fs::write(project.place().join("taken"), "a file").unwrap();
    project.build(&[]).expect(101).says("cannot use `").says("set KFORGE_HOME to a folder that can be written");
}

#[test]
fn an_output_folder_that_cannot_be_made_is_named() {
    let project = small().file("target", "in the way");
    project.build(&[]).expect(101).says("cannot make `");
}

/// Runs a shell script in a mount namespace of its own, where it may mount; the mounts disappear with it. None, after printing the reason, if the system does
/// not allow that.
fn in_own_mounts(project: &Project, script: &str) -> Option<Vec<Built>> {
    let can = Command::new("unshare").args(["-rm", "sh", "-c", "mount -t tmpfs -o size=64k none /tmp"]).output();
    if !can.is_ok_and(|o| o.status.success()) {
        skipped("this system lets no test mount a small file system (`unshare -rm`)");
        return None;
    }
    // Each build writes its own files, outside of the mounts.
    let told = project.place().join("told");
    fs::create_dir_all(&told).unwrap();
    let build = format!(
        "build() {{ code=0; \"{}\" build --offline --keep-going --message-format json >{told}/$1.out 2>{told}/$1.err || code=$?; echo $code >{told}/$1.code; }}\n",
        project.program().display(),
        told = told.display()
    );
    let script = format!("set -e\n{build}{script}\n");
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", &script]).current_dir(project.root());
    let like = project.command(&[]);
    command.env_clear().envs(like.get_envs().filter_map(|(k, v)| Some((k, v?))));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut builts = vec![];
    for n in 1.. {
        let read = |what: &str| fs::read(told.join(format!("{n}.{what}")));
        let Ok(code) = read("code") else { break };
        let code: i32 = String::from_utf8(code).unwrap().trim().parse().unwrap();
        let status = std::os::unix::process::ExitStatusExt::from_raw(code << 8);
        let output = std::process::Output { status, stdout: read("out").unwrap(), stderr: read("err").unwrap() };
        builts.push(Built::of(&output));
    }
    Some(builts)
}

/// Checks that the build either ended as it should, or reported that there is no space.
#[track_caller]
fn right_or_full(built: &Built) {
    if built.code() != 100 {
        assert_eq!(built.code(), 101, "{}", built.stderr());
        let told =
            built.stderr().lines().filter(|l| l.starts_with("error") && l.contains("No space left on device")).count();
        assert_eq!(told, 1, "one disk that is full is one error: {}", built.stderr());
        assert!(built.stderr().contains("free some space"), "{}", built.stderr());
    }
    let passes = built.finished().filter(|s| s["verdict"] == "pass" && s["kind"] == "judge");
    assert!(passes.into_iter().all(|s| s["id"].as_str().unwrap().contains("WRONG=0")), "{}", built.stderr());
}

#[test]
#[ignore = "second tier: hard wear"]
fn a_full_disk_is_told_and_once_there_is_space_the_build_ends_well() {
    let (expected, _) = state(&built());
    for (where_, sizes) in [("home", ["32k", "160k", "400k"]), ("work/target", ["4k", "8k", "16k"])] {
        for size in sizes {
            let project = small();
            fs::create_dir_all(project.place().join(where_)).unwrap();
            let place = project.place().join(where_);
            let place = place.display();
            let keep = project.place().join("kept.json");
            let script = format!(
                "mount -t tmpfs -o size={size} none \"{place}\"\nbuild 1\nmount -o remount,size=64m \"{place}\"\nbuild 2\nbuild 3\ncp target/kforge/report.json \"{}\"",
                keep.display()
            );
            let Some(builts) = in_own_mounts(&project, &script) else { return };
            right_or_full(&builts[0]);
            assert_eq!(builts[1].code(), 100, "{where_} {size}: {}", builts[1].stderr());
            assert_eq!(builts[2].count("executed"), 0, "{where_} {size}");
            assert_eq!(results(&fs::read_to_string(keep).unwrap()), expected.report(), "{where_} {size}");
            assert_eq!(&builts[2].keys(), expected.steps(), "{where_} {size}");
        }
    }
}

#[test]
#[ignore = "second tier: many builds"]
fn a_home_that_can_only_be_read_is_told_or_does_without() {
    let project = built();
    let (expected, _) = state(&project);
    let clone = project.cloned("clone");
    let home = project.home().display().to_string();
    let script = format!("mount --bind \"{home}\" \"{home}\"\nmount -o remount,bind,ro \"{home}\"\nbuild 1");
    let Some(builts) = in_own_mounts(&clone, &script) else { return };
    match builts[0].code() {
        100 => assert_eq!(&builts[0].keys(), expected.steps()),
        code => {
            assert_eq!(code, 101, "{}", builts[0].stderr());
            assert!(builts[0].stderr().contains("Read-only file system"), "{}", builts[0].stderr());
        }
    }
}
