//! `new` and `init`: packages that build without changes, and no file overwritten.

use crate::place::Place;

/// A new package of a template, without what only a command that builds can check.
fn created(place: &Place, template: &str) -> String {
    let name = format!("my-{template}");
    place.run_in(".", &["new", &name, "--template", template], &[]).expect(0).says("Created package");
    assert!(place.read(&format!("{name}/kernel.toml")).contains(&format!("name = \"{name}\"")));
    assert!(!place.read(&format!("{name}/kernel.toml")).contains("{{"));
    place.at(&name).display().to_string()
}

/// Machine code needs a toolchain, which needs a network. Everything else must be correct, at every shape.
fn builds(place: &Place, folder: &str) {
    place.run(&format!("-C {folder} build --target cpu")).expect(0).says("Finished");
}

#[test]
#[ignore = "second tier: every template"]
fn a_template_builds_as_it_comes() {
    let place = Place::empty();
    builds(&place, &created(&place, "elementwise"));
    for template in ["row-reduction", "matmul"] {
        let folder = created(&place, template);
        place.run(&format!("-C {folder} build --target cpu --dry-run")).expect(0);
    }
}

#[test]
#[ignore = "second tier: every template"]
fn every_template_builds_as_it_comes() {
    let place = Place::empty();
    for template in ["row-reduction", "matmul"] {
        builds(&place, &created(&place, template));
    }
}

#[test]
fn nothing_is_overwritten() {
    let place = Place::empty().file("there/x.txt", "mine").file("README.md", "mine");
    place.run("new there").expect(101).says("exists already").says("kforge init");
    place.run("init --name fresh").expect(0).says("README.md, which already exists");
    assert_eq!(place.read("README.md"), "mine");
    let manifest = place.read("kernel.toml");
    place.run("init --name fresh").expect(101).says("already exists");
    assert_eq!(place.read("kernel.toml"), manifest);
}

#[test]
fn names_that_are_none_are_refused() {
    let place = Place::empty();
    for (path, name) in [("2fast", "2fast"), ("a.b", "a.b")] {
        place
            .run(&format!("new {path}"))
            .expect(101)
            .says(&format!("`{name}` is not a valid package name"))
            .says("--name");
        assert!(!place.at(path).exists());
    }
    place.run("new 2fast --name fast").expect(0);
    assert!(place.read("2fast/kernel.toml").contains("name = \"fast\""));
    place.run("new x --template conv").expect(2).says("elementwise");
}

#[test]
fn a_new_package_joins_the_workspace_around_it() {
    let place = Place::empty().file("kernel.toml", "[workspace]\nmembers = [\"kernels/*\"] # all of them\n");
    place.run("new kernels/a").expect(0);
    assert_eq!(place.read("kernel.toml"), "[workspace]\nmembers = [\"kernels/*\"] # all of them\n");
    place.run("new other/b").expect(0).says("Adding `other/b`");
    assert_eq!(place.read("kernel.toml"), "[workspace]\nmembers = [\"kernels/*\", \"other/b\"] # all of them\n");
    place.run("new other/c --name a").expect(101).says("has a package `a` already");
    assert!(!place.at("other/c").exists());
    let json = place.run("metadata").expect(0).json();
    assert_eq!(json["workspace_members"], serde_json::json!(["a", "b"]));
}

#[test]
fn a_new_manifest_names_the_schema_beside_it_or_in_the_root_of_its_workspace() {
    let place = Place::empty();
    place.run("new alone").expect(0);
    let schema = place.run("schema manifest").expect(0).out;
    assert!(place.read("alone/kernel.toml").starts_with("#:schema kernel.schema.json\n"));
    assert_eq!(place.read("alone/kernel.schema.json"), schema);

    let place = Place::empty().file("kernel.toml", "[workspace]\nmembers = [\"kernels/*\"]\n");
    place.run("new kernels/a").expect(0);
    assert!(place.read("kernels/a/kernel.toml").starts_with("#:schema ../../kernel.schema.json\n"));
    assert_eq!(place.read("kernel.schema.json"), schema);
    assert!(!place.at("kernels/a/kernel.schema.json").exists());
    // A schema that is there already stays.
    let place = place.file("kernel.schema.json", "{}");
    place.run("new kernels/b").expect(0);
    assert_eq!(place.read("kernel.schema.json"), "{}");
    place.run("metadata").expect(0);
}
