//! Commands that remove, collect and lock: clean, cache, evidence, toolchain, fetch, update.

use std::fs;

use crate::place::Place;

#[test]
fn clean_removes_what_builds_wrote_and_nothing_else() {
    let place = Place::tiny().file("target/mine.txt", "kept");
    place.run("clean").expect(0).says("nothing");
    place.run("build").expect(0);
    place.run("clean -n").expect(0).says("files").says("would be removed");
    assert!(place.at("target/kforge/journal").exists());
    place.run("clean").expect(0).says("Removed ").says(" files");
    assert!(!place.at("target/kforge").exists() && place.at("target/mine.txt").exists());
    // The shared cache still has all results.
    let said = place.run("build").expect(0);
    assert!(said.err.contains(" 0 executed"), "{}", said.err);
}

#[test]
fn clean_leaves_a_folder_that_no_build_has_used() {
    let place = Place::tiny().file("other/kforge/precious", "kept");
    place.run("clean --target-dir other").expect(101).says("is not the output folder of a build");
    place.run("clean -n --target-dir other").expect(101);
    assert_eq!(place.read("other/kforge/precious"), "kept");
}

#[test]
fn an_output_folder_inside_an_existing_folder_hides_only_itself() {
    let place = Place::tiny();
    place.run("build --target-dir .").expect(0);
    assert!(!place.at(".gitignore").exists() && !place.at("CACHEDIR.TAG").exists());
    assert_eq!(place.read("kforge/.gitignore"), "*\n");
    place.run("build").expect(0);
    assert!(place.at("target/.gitignore").exists() && !place.at("target/kforge/.gitignore").exists());
}

#[test]
fn update_keeps_what_the_process_it_waited_for_wrote() {
    let place = Place::tiny();
    place.run("build").expect(0);
    let held = fs::File::open(place.at("target/kforge/.lock")).unwrap();
    #[expect(clippy::disallowed_methods, reason = "this test stands for another kforge")]
    held.lock().unwrap();
    let wheels = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/quickstart/kforge.lock")).unwrap();
    std::thread::scope(|scope| {
        let update = scope.spawn(|| place.run("update --champions"));
        // Long enough to have opened the workspace. If it has not, it reads the new file at once, and the test only proves less.
        std::thread::sleep(std::time::Duration::from_millis(500));
        fs::write(place.at("kforge.lock"), &wheels).unwrap();
        drop(held);
        update.join().unwrap().expect(0);
    });
    let lock = place.read("kforge.lock");
    assert!(lock.contains("nvidia-nvvm") && lock.contains("champion"), "{lock}");
}

#[test]
fn clean_waits_for_nobody_if_told_so() {
    let place = Place::tiny();
    fs::create_dir_all(place.at("target/kforge")).unwrap();
    let held = fs::File::create(place.at("target/kforge/.lock")).unwrap();
    #[expect(clippy::disallowed_methods, reason = "this test stands for another kforge")]
    held.lock().unwrap();
    place.run("clean --no-wait").expect(75).says("another kforge");
    place.run("build --no-wait").expect(75);
    drop(held);
    place.run("clean --no-wait").expect(0);
}

#[test]
fn the_cache_is_measured_collected_and_mended() {
    let place = Place::tiny().alone();
    place.run("build").expect(0);
    place.run("cache du").expect(0).prints("contents").prints("answers").prints("total");
    place.run("cache gc").expect(0).says("Removed 0 results");
    place.run("cache verify").expect(0).says("Checked");
    let blob = walkdir::WalkDir::new(place.home().join("cas"))
        .into_iter()
        .flatten()
        .find(|e| e.file_type().is_file())
        .unwrap()
        .into_path();
    let mut permissions = fs::metadata(&blob).unwrap().permissions();
    #[expect(clippy::permissions_set_readonly_false, reason = "a file of this test alone")]
    permissions.set_readonly(false);
    fs::set_permissions(&blob, permissions).unwrap();
    fs::write(&blob, "rot").unwrap();
    place.run("cache verify").expect(0).says("its content does not match its digest");
    assert!(!blob.exists());
    place.run("build").expect(0);
}

#[test]
#[ignore = "second tier: many builds"]
fn builds_collect_once_a_day_where_that_is_allowed() {
    let place = Place::tiny().alone();
    let online = [("KFORGE_NET_OFFLINE", "false")];
    place.run("build").expect(0);
    assert!(!place.home().join("collected").exists(), "offline, what goes may not come back");
    // A build with nothing to do does not even check the cache.
    place.edit("twice.cu", "2.0f", "(2.0f)");
    place.run_in(".", &["build", "--config", "cache.auto-gc=false"], &online).expect(0);
    assert!(!place.home().join("collected").exists());
    place.edit("twice.cu", "(2.0f)", "((2.0f))");
    place.run_in(".", &["build"], &online).expect(0);
    let first = fs::metadata(place.home().join("collected")).unwrap().modified().unwrap();
    place.edit("twice.cu", "((2.0f))", "2.0f");
    place.run_in(".", &["build"], &online).expect(0);
    assert_eq!(fs::metadata(place.home().join("collected")).unwrap().modified().unwrap(), first);
}

#[test]
fn an_empty_home_has_no_evidence_and_no_toolchains() {
    let place = Place::tiny().alone();
    place.run("evidence list").expect(0).says("Found 0 records of evidence");
    place.run("toolchain list").expect(0).says("Found 0 toolchains installed");
    place.run("fetch").expect(0).says("nothing to fetch: no package has a GPU target");
}

#[test]
fn evidence_is_listed_and_taken_in_without_a_workspace() {
    let place = Place::empty();
    place.run("evidence list").expect(0).says("Found 0 records of evidence");
    place.run("evidence list --kernel k").expect(101).says("no `kernel.toml`");
    place.run("evidence list nothing.kfe").expect(101).says("cannot read `nothing.kfe`: No such file");
    place.run("evidence import nothing.kfe").expect(101).says("cannot read `nothing.kfe`: No such file");
    place.run("evidence export").expect(101).says("no `kernel.toml`");
    let tiny = Place::tiny();
    tiny.run("build").expect(0);
    tiny.run("evidence export").expect(103).says("there is no evidence to export");
    tiny.run("compare HEAD").expect(4).says("`cpu` is not timed");
}

#[test]
fn update_pins_champions_and_tells_before_it_writes() {
    let place = Place::tiny();
    place.run("update --champions").expect(101).says("there is no report");
    place.run("update").expect(101).says("--offline");
    place.run("build").expect(0);
    place.run("update --champions -n").expect(0).says("would be added").says("1 change, not written");
    assert!(!place.at("kforge.lock").exists());
    place.run("update --champions --locked").expect(101).says("--locked");
    place
        .run("update --champions")
        .expect(0)
        .says("champion of `twice` in `tiny` on `cpu` is added: `BLOCK=32`")
        .says("1 change");
    assert!(place.read("kforge.lock").contains("[[champion]]"));
    place.run("update --champions").expect(0).says("kforge.lock is up to date");
    place.run("update --champions -n").expect(0).says("kforge.lock is up to date");
    let json = place.run("metadata").expect(0).json();
    assert_eq!(json["lockfile"]["champions"]["tiny/twice/cpu/all"], "BLOCK=32");
    // A pinned champion is reported as pinned.
    place.run("build").expect(0);
}

#[test]
fn what_needs_a_network_says_so() {
    let place = Place::tiny();
    place.edit("kernel.toml", "[targets.cpu]\n", "[targets.cpu]\n[targets.h200]\narch = \"sm_90a\"\n");
    place.run("fetch").expect(101).says("run `kforge build` with a network");
}

#[test]
fn a_pin_holds_for_its_own_choice_of_types() {
    let place = Place::tiny();
    place.edit("kernel.toml", "dims = [\"n\"]", "dims = [\"n\"]\ntypes = { T = [\"f32\", \"f16\"] }");
    place.edit("kernel.toml", "inputs.x = { dtype = \"f32\"", "inputs.x = { dtype = \"T\"");
    place.edit("kernel.toml", "outputs.y = { dtype = \"f32\"", "outputs.y = { dtype = \"T\"");
    place.edit("kernel.toml", "BLOCK = [32]", "BLOCK = [32, 64]");
    place.edit("kernel.toml", "twice<BLOCK>", "twice<T, BLOCK>");
    place.edit("twice.cu", "template <int BLOCK>", "template <typename T, int BLOCK>");
    place.edit("twice.cu", "const float *x, float *y", "const T *x, T *y");
    place.edit("twice.cu", "2.0f * x[i]", "x[i] + x[i]");
    place.run("build").expect(0);
    place
        .run("update --champions")
        .expect(0)
        .says("champion of `twice` with T=f16 in `tiny` on `cpu` is added: `BLOCK=32`");
    let lock = place.read("kforge.lock");
    let (before, after) = lock.split_once("types = \"T=f16\"").unwrap();
    let after = after.replacen("variant = \"BLOCK=32\"", "variant = \"BLOCK=64\"", 1);
    fs::write(place.at("kforge.lock"), format!("{before}types = \"T=f16\"{after}")).unwrap();
    place.run("build").expect(0);
    place.run("report").expect(0).prints("provisional: T=f16,BLOCK=64  (pinned in kforge.lock");
    let report = place.run("report --format json").expect(0).json();
    let targets = report["packages"][0]["kernels"][0]["targets"].as_array().unwrap().clone();
    let champions: Vec<&str> = targets.iter().map(|t| t["champions"][0]["variant"].as_str().unwrap()).collect();
    assert_eq!(champions, ["T=f32,BLOCK=32", "T=f16,BLOCK=64"]);
}
