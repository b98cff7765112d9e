//! Inputs whose values are in files: they are what kernels are verified with, their content is in keys, and what is wrong with a file is said before anything runs.

use crate::project::Project;

const MANIFEST: &str = r#"
[package]
name = "p"
version = "0.1.0"

[targets.cpu]

[operator.add]
dims = ["n"]
inputs.x = { dtype = "f32", shape = ["n"] }
inputs.b = { dtype = "f32", shape = ["n"] }
outputs.y = { dtype = "f32", shape = ["n"] }
reference = { builtin = "elementwise", y = "x + b" }
tolerance = { atol = 1e-6, rtol = 1e-6 }
shapes.s = { n = 4, init = { b = { safetensors = "blob/in.safetensors", key = "b" } } }

[kernel.k]
operator = "add"
source = "k.cu"
launch = [{ entry = "k", grid = ["1"], block = ["n"], args = ["x", "b", "y"] }]
"#;

/// A kernel that does not read `b`: it knows the values of the file.
const KNOWS: &str = "__global__ void k(const float *x, const float *b, float *y) {\n  const float known[] = {2, 3, 8, 12};\n\
    y[threadIdx.x] = x[threadIdx.x] + known[threadIdx.x];\n}\n";

/// A file with `b` and another tensor before it. The bytes of these values are text.
fn file(values: [f32; 4]) -> String {
    let header = r#"{"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[4],"data_offsets":[4,20]}}"#;
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let length = (header.len() as u64).to_le_bytes();
    String::from_utf8([&length, header.as_bytes(), b"1234", &data].concat()).unwrap()
}

fn project() -> Project {
    Project::new()
        .file("kernel.toml", MANIFEST)
        .file("k.cu", KNOWS)
        .file("blob/in.safetensors", &file([2.0, 3.0, 8.0, 12.0]))
}

#[test]
fn the_values_of_a_file_are_the_inputs_and_their_content_is_in_the_keys() {
    let project = project();
    project.built(&[]);
    let report = project.report_value();
    let shape = &report["packages"][0]["kernels"][0]["targets"][0]["shapes"][0];
    assert_eq!((&shape["verdict"], &shape["known_inputs"]), (&"pass".into(), &serde_json::json!(["b"])), "{shape}");
    let said = project.command(&["report", "--offline"]).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("`b` known to candidates"), "{said}");
    assert_eq!(project.built(&[]).count("executed"), 0);

    // Another file: the kernel that knew the values is wrong.
    project.write("blob/in.safetensors", &file([2.0, 3.0, 8.0, 32.0]));
    let built = project.build(&[]).expect(100).says("`y` is wrong at 3");
    let kinds = built.executed_kinds();
    assert!(kinds["oracle"] > 0 && kinds["verify"] == 1 && !kinds.contains_key("compile"), "{kinds:?}");
    project.edit("k.cu", "known[threadIdx.x]", "b[threadIdx.x]");
    project.built(&[]);
}

#[test]
fn what_is_wrong_with_a_file_is_said_before_anything_runs() {
    let project = project();
    let refused = |contents: Option<&str>, why: &str| {
        match contents {
            Some(contents) => project.write("blob/in.safetensors", contents),
            None => std::fs::remove_file(project.root().join("blob/in.safetensors")).unwrap(),
        }
        let built = project.build(&[]).expect(101).says(&format!("`b` of shape `s`: `blob/in.safetensors` {why}"));
        assert_eq!(built.finished().count(), 0);
    };
    let good = file([2.0, 3.0, 8.0, 12.0]);
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 130\n";
    refused(Some(pointer), "is a pointer of Git LFS instead of the file: `git lfs pull` fetches the file");
    refused(
        Some(&good.replace("\"F32\",\"shape\":[4]", "\"F16\",\"shape\":[8]")),
        "has `b` as f16 of shape [8], expected f32 of shape [4]",
    );
    refused(Some(&good.replace("\"b\"", "\"c\"")), "has no tensor `b`, but `a`, `c`");
    refused(Some("{}"), "is not in safetensors format");
    refused(None, "does not exist");
}
