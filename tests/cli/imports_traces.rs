//! `kforge import flashinfer-trace` and `kforge export flashinfer-trace`: packages of definitions, what is refused, and that the files come out as they went in.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::json;

use crate::place::{MANIFEST, Place, SOURCE};

const DEFINITION: &str = "{\n  \"x-note\": 1e-3,\n  \"name\": \"scaled_add\", \"op_type\": \"elementwise\",\n  \"axes\": {\"n\": {\"type\": \"var\"}},\n\
    \"inputs\": {\"y\": {\"shape\": [\"n\"], \"dtype\": \"float32\"}, \"x\": {\"shape\": [\"n\"], \"dtype\": \"float32\"}, \"s\": {\"shape\": null, \"dtype\": \"float32\"}},\n\
    \"outputs\": {\"z\": {\"shape\": [\"n\"], \"dtype\": \"float32\"}},\n  \"reference\": \"import torch\\n\\n\\ndef run(y, x, scale):\\n    return y + scale * x\\n\"\n}\n";

fn workload(uuid: &str, y: &str) -> String {
    format!(
        "{{\"definition\": \"scaled_add\", \"solution\": null, \"workload\": {{\"uuid\": \"{uuid}\", \"axes\": {{\"n\": 33}}, \"inputs\": {{\"y\": {y}, \"x\": {{\"type\": \"random\"}}, \"s\": {{\"type\": \"scalar\", \"value\": 0.5}}}}, \"x-more\": []}}}}\n"
    )
}

const RANDOM: &str = "{\"type\": \"random\"}";
const BLOB: &str = "{\"type\": \"safetensors\", \"path\": \"./blob/y.safetensors\", \"tensor_key\": \"y\"}";

fn solution(name: &str, language: &str) -> String {
    json!({
        "name": name, "definition": "scaled_add", "author": "someone",
        "spec": { "language": language, "target_hardware": ["cuda"], "entry_point": "main.py::run", "destination_passing_style": false },
        "sources": [{ "path": "main.py", "content": "def run(y, x, s):\n    return y + s * x\n" }],
    })
    .to_string()
}

/// A dataset with a definition that can be imported and one that cannot.
fn dataset() -> Place {
    let trace = "{\"definition\": \"scaled_add\", \"workload\": {\"uuid\": \"b-2\", \"axes\": {\"n\": 33}, \"inputs\": {\"y\": {\"type\": \"random\"}, \"x\": {\"type\": \"random\"}, \"s\": {\"type\": \"scalar\", \"value\": 1}}}, \"solution\": \"fast\", \"evaluation\": {\"status\": \"TIMEOUT\", \"log\": \"\"}}\n";
    Place::empty()
        .file("set/definitions/elementwise/scaled_add.json", DEFINITION)
        .file("set/workloads/elementwise/scaled_add.jsonl", &(workload("a-1", RANDOM) + &workload("b-2", BLOB)))
        .file("set/solutions/someone/elementwise/scaled_add/fast.json", &solution("fast", "python"))
        .file("set/solutions/someone/elementwise/scaled_add/host.json", &solution("host", "tilelang"))
        .file("set/traces/someone/elementwise/scaled_add.jsonl", trace)
        .file(
            "set/definitions/elementwise/broken.json",
            &DEFINITION.replace("scaled_add", "broken").replace("\"var\"", "\"free\""),
        )
        .file("set/README.md", "unrelated\n")
}

/// The files below a folder with their texts.
fn tree(folder: &Path) -> BTreeMap<String, String> {
    let files = walkdir::WalkDir::new(folder).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    let named = |path: &Path| path.strip_prefix(folder).unwrap().display().to_string();
    files.map(|entry| (named(entry.path()), fs::read_to_string(entry.path()).unwrap())).collect()
}

#[test]
fn each_definition_becomes_a_package_and_the_rest_is_said() {
    let place = dataset();
    let dry = place.run("import flashinfer-trace set --torch 2.9 --dry-run").expect(0);
    dry.says("Importable `definitions/elementwise/scaled_add.json` as scaled_add: shapes a-1")
        .says("1 task; 1 refused; 1 without some of their workloads")
        .says("nothing was written");
    let dry = place.run("import flashinfer-trace set --torch 2.9 -n --format json").expect(0).json();
    assert_eq!((&dry["dry_run"], &dry["tasks"][1]["status"]), (&json!(true), &json!("imported")));
    assert!(!place.at("flashinfer-trace").exists());
    let said = place.run("import flashinfer-trace set --torch 2.9").expect(0);
    said.says("`definitions/elementwise/scaled_add.json` as scaled_add: shapes a-1")
        .says("the workload `b-2` is left out: `inputs.y.path` names `./blob/y.safetensors`, which is no file of the dataset")
        .says("the solution `fast` is the baseline `fast`")
        .says("the solution `host` is left out: it is in tilelang, which kforge does not run")
        .says("`definitions/elementwise/broken.json` is refused: `definitions/elementwise/broken.json`: `axes.n.type` is `free`")
        .says("1 task; 1 refused; 1 without some of their workloads");
    let manifest = place.read("flashinfer-trace/elementwise/scaled_add/kernel.toml");
    for line in [
        "reference = { torch = \"ref.py::run\", names = { \"scale\" = \"s\" } }",
        "a-1 = { n = 33, s = 0.5, role = \"bench\" }",
        "[baseline.fast]",
    ] {
        assert!(manifest.lines().any(|own| own == line), "{line}\n{manifest}");
    }
    assert!(place.read("flashinfer-trace/elementwise/scaled_add/ref.py").contains("y + scale * x"));
    assert!(!place.at("flashinfer-trace/elementwise/broken").exists());
    let again = place.run("import flashinfer-trace set --torch 2.9 --format json").expect(0).json();
    let status: Vec<&str> = again["tasks"].as_array().unwrap().iter().map(|t| t["status"].as_str().unwrap()).collect();
    assert_eq!((again["set"].as_str(), &status[..]), (Some("flashinfer-trace"), &["refused", "exists"][..]));
}

#[test]
fn the_files_of_a_dataset_come_out_as_they_went_in() {
    let place = dataset();
    place.run("import flashinfer-trace set --output sets --torch 2.9").expect(0);
    let said = place.run_in("sets", &["export", "flashinfer-trace", "../out"], &[]).expect(0);
    said.says("1 definition with 5 files of the dataset, 0 new solutions and 0 traces")
        .says("1 file with inputs of workloads stay where they are, such as `./blob/y.safetensors`");
    let wanted: BTreeMap<String, String> = tree(&place.at("set"))
        .into_iter()
        .filter(|(path, _)| !path.contains("broken") && path != "README.md")
        .collect();
    assert_eq!(tree(&place.at("out")), wanted);
    // A second export changes nothing, and one over other files writes nothing.
    place.run_in("sets", &["export", "flashinfer-trace", "../out"], &[]).expect(0);
    assert_eq!(tree(&place.at("out")), wanted);
    fs::write(place.at("out/definitions/elementwise/scaled_add.json"), "mine").unwrap();
    fs::remove_dir_all(place.at("out/solutions")).unwrap();
    place
        .run_in("sets", &["export", "flashinfer-trace", "../out"], &[])
        .expect(101)
        .says("differs from the file of the dataset");
    assert!(!place.at("out/solutions").exists());
    assert_eq!(place.read("out/definitions/elementwise/scaled_add.json"), "mine");
}

/// A file with `y`: 33 values, whose bytes are text.
fn blob(count: usize) -> String {
    let header = format!("{{\"y\":{{\"dtype\":\"F32\",\"shape\":[{count}],\"data_offsets\":[0,{}]}}}}", 4 * count);
    let data: Vec<u8> = (0..count).flat_map(|_| 2f32.to_le_bytes()).collect();
    String::from_utf8([&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()).unwrap()
}

#[test]
fn files_with_inputs_travel_with_the_definition_that_names_them() {
    let place = dataset().file("set/blob/y.safetensors", &blob(33)).file("set/blob/other.safetensors", &blob(1));
    let said = place.run("import flashinfer-trace set --output sets --torch 2.9").expect(0);
    said.says("shapes a-1, b-2").says("`y` has the values of files at some shapes: candidates can know them");
    let manifest = place.read("sets/elementwise/scaled_add/kernel.toml");
    let line = "b-2 = { n = 33, s = 0.5, init = { y = { safetensors = \"flashinfer-trace/blob/y.safetensors\", key = \"y\" } }, role = \"bench\" }";
    assert!(manifest.lines().any(|own| own == line), "{line}\n{manifest}");
    let said = place.run_in("sets", &["export", "flashinfer-trace", "../out"], &[]).expect(0);
    said.says("1 definition with 6 files of the dataset, 0 new solutions and 0 traces");
    let mut wanted = tree(&place.at("set"));
    wanted.retain(|path, _| !["broken", "README.md", "other"].iter().any(|other| path.contains(other)));
    assert_eq!(tree(&place.at("out")), wanted);
    place.run_in("sets", &["export", "flashinfer-trace", "../out"], &[]).expect(0);
    fs::write(place.at("out/blob/y.safetensors"), "mine").unwrap();
    let said = place.run_in("sets", &["export", "flashinfer-trace", "../out"], &[]).expect(101);
    said.says("differs from the file of the dataset");
    assert_eq!(place.read("out/blob/y.safetensors"), "mine");
}

#[test]
fn a_file_with_inputs_that_is_a_pointer_or_another_tensor_leaves_its_workload_out() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 200\n";
    let cases = [
        (pointer.to_string(), "is a pointer of Git LFS instead of the file: `git lfs pull` fetches the file"),
        (blob(32), "has `y` as f32 of shape [32], expected f32 of shape [33]"),
    ];
    for (text, why) in cases {
        let place = dataset().file("set/blob/y.safetensors", &text);
        let said = place.run("import flashinfer-trace set --output sets --torch 2.9").expect(0);
        said.says(&format!(
            "the workload `b-2` is left out: `inputs.y.path` names `./blob/y.safetensors`, which {why}"
        ));
        // The file is one of the dataset all the same.
        place.run_in("sets", &["export", "flashinfer-trace", "../out"], &[]).expect(0);
        assert_eq!(place.read("out/blob/y.safetensors"), text);
    }
}

#[test]
fn what_is_no_dataset_is_said_in_one_sentence() {
    let place = Place::empty().file("none/a.json", "{}").file("p/kernel.toml", MANIFEST).file("p/twice.cu", SOURCE);
    place
        .run("import flashinfer-trace none")
        .expect(4)
        .says("there is no definition: neither `definitions/` nor a `definition.json`");
    place.run("import flashinfer-trace nowhere").expect(101).says("cannot read `nowhere`");
    place.run("import flashinfer-trace none --torch nightly").expect(2).says("`nightly` is no release of PyTorch");
    place
        .run_in("p", &["export", "flashinfer-trace", "out"], &[])
        .expect(4)
        .says("no package of the selection is from a dataset");
    assert!(!place.at("flashinfer-trace").exists() && !place.at("p/out").exists());
}

#[test]
fn a_dataset_that_is_malformed_names_file_line_and_field() {
    let place = dataset();
    let lines = workload("a-1", RANDOM) + &workload("c-3", "{\"type\": \"scalar\"}");
    fs::write(place.at("set/workloads/elementwise/scaled_add.jsonl"), lines).unwrap();
    let said = place.run("import flashinfer-trace set").expect(4);
    said.says("`workloads/elementwise/scaled_add.jsonl`: line 2: `workload.inputs.y.value` is missing");
    assert!(!place.at("flashinfer-trace").exists());
}
