//! `add` and `remove`: what they write, and that they never write a manifest with errors.

use crate::place::{MANIFEST, Place};

#[test]
fn what_is_added_can_be_built_and_removed_again() {
    let place = Place::tiny();
    place.run("add shape twice.seven n=7 role=holdout").expect(0).says("Added shape `twice.seven`");
    place.run("add target h200 arch=sm_90a").expect(0).says("Added target `h200`");
    place.run("add dependency common path=../common include=.").expect(0);
    let text = place.read("kernel.toml");
    assert!(text.contains("seven = { n = 7, role = \"holdout\" }\n"), "{text}");
    assert!(text.contains("[targets.h200]\narch = \"sm_90a\"\n"), "{text}");
    let json = place.run("metadata").expect(0).json();
    assert_eq!(json["packages"][0]["operators"][0]["shapes"][1]["role"], "holdout");
    assert_eq!(json["packages"][0]["kernels"][0]["targets"], serde_json::json!(["cpu", "h200"]));
    for words in ["shape twice.seven", "target h200", "dependency common"] {
        place.run(&format!("remove {words}")).expect(0).says("Removed");
    }
    assert_eq!(place.read("kernel.toml").trim_end(), MANIFEST.trim_end());
}

#[test]
fn a_kernel_and_its_operator_come_and_go() {
    let place = Place::tiny();
    let words = [
        "add",
        "operator",
        "half",
        "dims=[\"n\"]",
        "inputs.x={ dtype = \"f32\", shape = [\"n\"] }",
        "outputs.y={ dtype = \"f32\", shape = [\"n\"] }",
        "reference={ builtin = \"elementwise\", y = \"x / 2\" }",
        "tolerance={ atol = 1e-6 }",
        "shapes.five={ n = 5 }",
    ];
    place.run_in(".", &words, &[]).expect(0);
    let launch = "launch=[{ entry = \"half\", grid = [1], block = [32], args = [\"x\", \"y\", \"n\"] }]";
    place.run_in(".", &["add", "kernel", "half", "operator=half", "source=half.cu", launch], &[]).expect(0);
    let json = place.run("metadata").expect(0).json();
    assert_eq!(json["packages"][0]["kernels"][1]["source"], "half.cu");
    place.run("remove operator half").expect(101).says("it was not changed");
    place.run("remove kernel half").expect(0);
    place.run("remove operator half").expect(0);
    assert_eq!(place.read("kernel.toml").trim_end(), MANIFEST.trim_end());
}

#[test]
fn what_would_be_wrong_is_shown_and_not_written() {
    let place = Place::tiny();
    let wrong = |words: &str, why: &str| {
        place.run(words).expect(101).says(why);
        assert_eq!(place.read("kernel.toml"), MANIFEST, "{words}");
    };
    wrong("add shape twice.bad m=7", "would have errors; it was not changed");
    wrong("add target gpu arch=sm90", "sm90");
    wrong("add target cpu arch=cpu", "target `cpu` already exists");
    wrong("add shape bad n=7", "expected OPERATOR.SHAPE");
    wrong("remove shape twice.fife", "did you mean `twice.five`?");
    wrong("remove operator twice", "it was not changed");
}

#[test]
fn a_member_may_take_what_its_workspace_has() {
    let place = Place::empty()
        .file("kernel.toml", "[workspace]\nmembers = [\"a\"]\n\n[workspace.targets.h200]\narch = \"sm_90a\"\n")
        .file("a/kernel.toml", MANIFEST);
    place.run_in("a", &["add", "target", "h200", "workspace=true"], &[]).expect(0);
    place.run_in("a", &["add", "target", "b200", "workspace=true"], &[]).expect(101).says("b200");
    assert!(place.read("a/kernel.toml").contains("[targets.h200]\nworkspace = true\n"));
}
