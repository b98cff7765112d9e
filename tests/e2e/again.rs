//! The same inputs give the same answer without work, in any folder, with any file times, any number of jobs and any names of packages.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::project::Built;
use crate::sample::{MANIFEST, sample, unbuilt};

/// Checks that every step was answered by that cache.
#[track_caller]
fn all_from(built: &Built, cache: &str) {
    assert_eq!((built.count("executed"), built.count("fresh")), (0, built.count("total")), "{}", built.stderr());
    let from: BTreeSet<&str> = built.finished().map(|s| s["cache"].as_str().unwrap()).collect();
    assert_eq!(from, [cache].into());
}

fn touch(folder: &Path, time: SystemTime) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|e| e.file_name() != "target") {
        match entry.file_type().unwrap().is_dir() {
            true => touch(&entry.path(), time),
            false => File::options().append(true).open(entry.path()).unwrap().set_modified(time).unwrap(),
        }
    }
}

#[test]
fn a_second_build_executes_nothing() {
    let project = unbuilt();
    let first = project.built(&[]);
    let report = project.report();
    // Two kernels that are right alike are judged once if they shared a fresh trial; a binary made after the draw has a trial of its own.
    assert!(first.count("fresh") <= 1, "{}", first.stderr());
    let second = project.built(&[]);
    all_from(&second, "journal");
    assert_eq!(second.keys(), first.keys());
    assert_eq!(project.report(), report);
}

#[test]
fn touched_files_another_j_and_another_path_execute_nothing() {
    let project = sample();
    project.built(&[]);
    touch(project.root(), SystemTime::now() + Duration::from_secs(3600));
    all_from(&project.built(&[]), "journal");
    touch(project.root(), SystemTime::UNIX_EPOCH + Duration::from_secs(1));
    all_from(&project.built(&["-j", "5"]), "journal");
    let project = project.moved("some/where else");
    all_from(&project.built(&["-j1"]), "journal");
    let by_path = project.root().join("kernel.toml").display().to_string();
    all_from(&project.built(&["-C", "/", "--manifest-path", &by_path]), "journal");
}

#[test]
fn a_second_clone_is_answered_by_the_local_cache() {
    let project = unbuilt();
    let first = project.built(&[]);
    let clone = project.cloned("clone");
    let second = clone.built(&[]);
    assert_eq!((second.count("executed"), second.count("fresh")), (0, second.count("total")), "{}", second.stderr());
    // A key that occurs twice in the plan is in the journal by the second occurrence.
    let mut seen = BTreeSet::new();
    for step in second.finished() {
        let cache = if seen.insert(step["key"].to_string()) { "local" } else { "journal" };
        assert_eq!(step["cache"], cache, "{step}");
    }
    assert_eq!(second.keys(), first.keys());
    assert_eq!(clone.report(), project.report());
}

#[test]
#[ignore = "second tier: many builds"]
fn packages_with_equal_contents_share_the_work() {
    let alone = unbuilt();
    let before = alone.built(&[]);
    let both = unbuilt().file("kernel.toml", "[workspace]\nmembers = [\"a\", \"b\"]\n");
    for (name, called) in [("a", "first"), ("b", "second")] {
        both.write(
            &format!("{name}/kernel.toml"),
            &MANIFEST.replace("name = \"sample\"", &format!("name = \"{called}\"")),
        );
        for file in ["direct.cu", "indirect.cu", "twice.cu", "inc/sum.h", "inc/row.h"] {
            both.write(&format!("{name}/{file}"), &fs::read_to_string(alone.root().join(file)).unwrap());
        }
    }
    let built = both.built(&[]);
    assert_eq!(built.count("total"), 2 * before.count("total"));
    // Each verification draws inputs of its own, so equal kernels may be judged under different keys.
    let executed =
        |built: &Built| built.finished().filter(|s| s["outcome"] == "executed" && s["kind"] != "judge").count();
    assert_eq!(executed(&built), executed(&before));
    let keys = |built: &Built| built.keys().into_values().map(|(key, _)| key.to_string()).collect::<BTreeSet<_>>();
    assert_eq!(keys(&built), keys(&before), "names are in no key");
}

#[test]
fn renamed_kernels_operators_and_shapes_execute_nothing() {
    let project = sample();
    project.built(&[]);
    let renamed = MANIFEST
        .replace("row_sum", "sum_of_rows")
        .replace("shapes.small", "shapes.little")
        .replace("[kernel.direct]", "[kernel.straight]")
        .replace("name = \"sample\"", "name = \"renamed\"");
    project.write("kernel.toml", &renamed);
    let built = project.built(&[]);
    assert_eq!(built.executed(), BTreeSet::new());
}

#[test]
#[ignore = "second tier: builds in several folders"]
fn folders_and_jobs_change_no_key_output_or_report() {
    let (one, many) = (unbuilt(), unbuilt().moved("a/longer/path/than before"));
    let (a, b) = (one.built(&["-j1"]), many.built(&["-j16"]));
    // Two kernels that give the same bytes share a judgement only if their verifications shared what they drew.
    let executed = |built: &Built| built.executed().into_iter().filter(|id| !id.ends_with("/judge")).count();
    assert_eq!(executed(&a), executed(&b));
    assert_eq!(a.keys(), b.keys());
    assert_eq!(one.report(), many.report());
}

#[test]
#[ignore = "second tier: many builds"]
fn a_compiler_is_asked_what_it_consists_of_once_for_all_workspaces_of_a_home() {
    let project = unbuilt();
    let (wrapper, asked) = (project.place().join("asked-c++"), project.place().join("asked"));
    let script = format!("#!/bin/sh\necho \"$@\" >> \"{}\"\nexec c++ \"$@\"\n", asked.display());
    fs::write(&wrapper, script).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let project = project.var("KFORGE_TOOLCHAIN_CXX", &wrapper);
    let surveys = || fs::read_to_string(&asked).unwrap().lines().filter(|l| l.contains(" -M ")).count();
    project.built(&[]);
    let once = surveys();
    assert!(once > 0);
    let clone = project.cloned("clone");
    assert_eq!(clone.built(&[]).count("executed"), 0);
    assert_eq!(surveys(), once, "another workspace of the home knows it");
    // Another compiler is queried, and the first one is still known afterwards.
    let other = project.clone().var("KFORGE_TOOLCHAIN_CXX", "");
    other.built(&[]);
    project.built(&[]);
    assert_eq!(surveys(), once);
    // A memory that cannot be read is queried again.
    fs::write(project.home().join("machine"), "torn").unwrap();
    assert_eq!(project.built(&[]).count("executed"), 0);
    assert_eq!(surveys(), 2 * once);
}
