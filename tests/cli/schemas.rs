//! The schemas in `schemas/` are what the program prints, and match what it reads and writes. `SNAPSHOTS=overwrite` writes them again.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::place::Place;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn schema(name: &str) -> jsonschema::Validator {
    let text = fs::read_to_string(root().join(format!("schemas/{name}.json"))).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

#[track_caller]
fn valid(validator: &jsonschema::Validator, value: &Value, what: &str) {
    let errors: Vec<String> = validator.iter_errors(value).map(|e| format!("{} at {}", e, e.instance_path())).collect();
    assert!(errors.is_empty(), "{what}:\n{}", errors.join("\n"));
}

#[test]
fn the_schemas_are_those_of_the_program() {
    let place = Place::empty();
    let names = [
        "affected",
        "artifact",
        "artifact-kernels",
        "bundle",
        "candidate",
        "ci",
        "comparison",
        "conversation",
        "correction",
        "diagnosis",
        "difference",
        "events",
        "evidence",
        "explanation",
        "history",
        "holdings",
        "import",
        "import-tasks",
        "install-lock",
        "kernel",
        "kernelbench",
        "lockfile",
        "manifest",
        "metadata",
        "method",
        "proposal",
        "report",
        "samples",
        "scores",
        "signature",
        "trajectory",
        "trusted",
    ];
    for name in names {
        let printed = place.run(&format!("schema {name}")).expect(0).out;
        let file = root().join(format!("schemas/{name}.json"));
        snapbox::Assert::new().action_env("SNAPSHOTS").eq(printed, snapbox::Data::read_from(&file, None).raw());
    }
    let there = fs::read_dir(root().join("schemas")).unwrap().count();
    assert_eq!(there, names.len(), "a schema that the program does not know");
    place.run("schema manifst").expect(2).says("'manifest'");
}

#[test]
fn a_difference_is_as_its_schema_says() {
    let place = Place::tiny();
    place.edit("kernel.toml", "BLOCK = [32]", "BLOCK = [32, 64]");
    place.run("build").expect(0);
    let json = place.run("diff twice BLOCK=64 --message-format json").expect(0).json();
    valid(&schema("difference"), &json, "difference");
    assert_eq!((&json["a"]["variant"], &json["b"]["variant"]), (&"BLOCK=32".into(), &"BLOCK=64".into()));
    let said = place
        .run("diff twice BLOCK=64")
        .expect(0)
        .prints("A  BLOCK=32  champion")
        .prints("the same in both (twice.cu)");
    said.prints("launch 1 at five  grid 1 x 1 x 1, block 32 x 1 x 1 -> grid 1 x 1 x 1, block 64 x 1 x 1");
    // The champion is the first variant in declared order.
    place.run("diff twice").expect(0).prints("A  BLOCK=32  champion").prints("B  BLOCK=64");
    place
        .run("diff twice BLOCK=32")
        .expect(4)
        .says("nothing to compare: `BLOCK=32` is the champion of kernel `twice` on cpu")
        .says("one of `BLOCK=64`");
}

/// Every manifest of the repository that should have no errors.
fn manifests() -> Vec<PathBuf> {
    let walk = |folder: &str| walkdir::WalkDir::new(root().join(folder)).into_iter().flatten();
    let found = walk("examples").chain(walk("src/ops/templates/new")).map(walkdir::DirEntry::into_path);
    let mut all: Vec<PathBuf> = found.filter(|p| p.ends_with("kernel.toml")).collect();
    all.push(root().join("src/types/model/manifest/tests/everything.toml"));
    all.push(root().join("src/types/model/manifest/tests/example.toml"));
    all
}

#[test]
fn manifests_are_as_their_schema_says() {
    let validator = schema("manifest");
    assert!(manifests().len() >= 6);
    for path in manifests() {
        let table: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
        valid(&validator, &serde_json::to_value(table).unwrap(), &path.display().to_string());
    }
    let wrong: toml::Table = "[operator.x.tolerance]\nrtoll = 1e-3\n".parse().unwrap();
    assert!(!validator.is_valid(&serde_json::to_value(wrong).unwrap()), "a typo in `rtol` must never pass");
}

#[test]
fn what_a_build_writes_is_as_its_schemas_say() {
    let place = Place::tiny();
    let events = schema("events");
    let said = place.run("build --message-format json").expect(0);
    let lines: Vec<Value> = said.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.first().unwrap()["reason"], "build-started");
    assert_eq!(lines.last().unwrap()["reason"], "build-finished");
    lines.iter().for_each(|line| valid(&events, line, &line.to_string()));
    place.edit("twice.cu", "2.0f", "2.1f");
    let said = place.run("build --message-format json").expect(100);
    said.out.lines().for_each(|l| valid(&events, &serde_json::from_str(l).unwrap(), l));
    valid(&schema("report"), &place.run("report --format json").expect(0).json(), "report");
    valid(&schema("metadata"), &place.run("metadata").expect(0).json(), "metadata");
    valid(&schema("explanation"), &place.run("explain --json cpu/select").expect(0).json(), "explanation");
    valid(&schema("kernel"), &place.run("explain --json twice").expect(0).json(), "kernel");
    for id in ["compute.fp8_fast_accumulation_mode", "memory.data_layout"] {
        valid(&schema("method"), &place.run(&format!("explain --json {id}")).expect(0).json(), id);
    }
    place.edit("twice.cu", "2.1f", "2.0f");
    place.run("build").expect(0);
    place.run("update --champions").expect(0);
    let lock = place.read("kforge.lock").parse::<toml::Table>().map(|t| serde_json::to_value(t).unwrap());
    valid(&schema("lockfile"), &lock.unwrap(), "lockfile");
    let quickstart: toml::Table =
        fs::read_to_string(root().join("examples/quickstart/kforge.lock")).unwrap().parse().unwrap();
    valid(&schema("lockfile"), &serde_json::to_value(quickstart).unwrap(), "the lockfile of the quickstart");
}
