//! `kforge report --html --history` where there is little to show: what it says, and that it needs no build.

use std::fs;

use crate::place::Place;

/// A place under version control.
fn repository() -> Place {
    let place = Place::tiny();
    place.shell("git init --quiet");
    place
}

fn commit(place: &Place, message: &str) -> String {
    place.shell("git add kernel.toml evidence 2>/dev/null || git add kernel.toml");
    place.shell(&format!(
        "git -c user.name=t -c user.email=t@example.org -c commit.gpgsign=false commit --quiet --allow-empty -m '{message}'"
    ));
    place.shell("git rev-parse HEAD").trim().to_string()
}

#[test]
fn a_history_needs_a_page_a_repository_a_commit_and_a_bundle_and_says_which_is_missing() {
    let place = Place::tiny();
    place.run("report --history").expect(2).says("--html");
    place.run("report --html --history").expect(101).says("a history comes from git").says("is in no repository");
    let place = repository();
    place.run("report --html --history").expect(4).says("the repository has no commit");
    commit(&place, "first");
    place
        .run("report --html --history")
        .expect(4)
        .says("no commit holds a bundle of evidence")
        .says("`kforge evidence export` writes a bundle");
}

#[test]
fn a_bundle_that_cannot_be_read_is_named_with_its_commit_and_fails_no_page() {
    let place = repository();
    fs::create_dir(place.at("evidence")).unwrap();
    fs::write(place.at("evidence/bad.kfe"), "no bundle").unwrap();
    let commit = commit(&place, "a <b>bad</b> bundle");
    place.run("report --html --history").expect(0).says("1 bundle was not read").says("history.html");
    let page = place.read("target/kforge/history.html");
    assert!(page.contains("evidence/bad.kfe") && page.contains(&commit[..12]), "{page}");
    assert!(page.contains("a &lt;b&gt;bad&lt;/b&gt; bundle") && !page.contains("<b>bad"), "{page}");
    let json: serde_json::Value = serde_json::from_str(&place.read("target/kforge/history.json")).unwrap();
    assert_eq!((&json["unread"][0]["commit"], &json["series"]), (&commit.into(), &serde_json::json!([])));
    let printed = place.run("report --html - --history").expect(0).out;
    assert_eq!(printed.trim_end(), page.trim_end(), "`-` prints the page");
    place.run("report --html here.html --history").expect(0);
    assert_eq!(place.read("here.html"), page);
}
