//! `kforge import gpu-mode` with the real PyTorch: tasks of our own writing are imported, built and judged with submissions.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{Lab, RELEASE, copy, findings, task, tree};

/// The lines that manifests must have, by task.
const LINES: &[(&str, &[&str])] = &[
    (
        "padded_add",
        &[
            "dims = [\"size\", \"pad\"]",
            "inputs.a = { dtype = \"f16\", shape = [\"size\", \"size + pad\"] }",
            "outputs.y = { dtype = \"f16\", shape = [\"size\", \"size + pad\"] }",
            "tolerance = { atol = 1e-8, rtol = 1e-5, ulp = 1 }",
            "benchmark_0 = { size = 512, pad = 64, role = \"bench\" }",
        ],
    ),
    (
        "row_shares",
        &["inputs.x = { dtype = \"f32\", shape = [\"rows\", \"cols\"] }", "tolerance = { atol = 1e-6, rtol = 0.0001 }"],
    ),
    (
        "byte_counts",
        &[
            "inputs.data = { dtype = \"u8\", shape = [\"size\"] }",
            "params.contention = { dtype = \"f64\" }",
            "outputs.y = { dtype = \"i64\", shape = [256] }",
            "test_1 = { size = 96, contention = 12.5 }",
        ],
    ),
    (
        "gated",
        &[
            "inputs.norm_weight = { dtype = \"f32\", shape = [\"width\"] }",
            "inputs.up_weight = { dtype = \"f32\", shape = [\"2 * width\", \"width\"] }",
            "params.gated = { dtype = \"bool\" }",
        ],
    ),
    (
        "initialised",
        &[
            "inputs.up_weight = { dtype = \"f32\", shape = [\"width\", \"width\"] }",
            "outputs.y = { dtype = \"f32\", shape = [\"rows\", \"width\"] }",
        ],
    ),
];

/// Why tasks are refused: the kind, and a part of the message.
const REFUSED: &[(&str, &str, &str)] = &[
    ("noisy", "random", "draws random numbers"),
    ("half_replaced", "random", "draws random numbers"),
    ("on_a_gpu", "device", "uses the device `cuda`"),
    ("in_place", "unsupported", "`ref_kernel` changes `data[1]`, which it reads"),
    ("of_objects", "unsupported", "is a Pair, which is neither a tensor nor a constant"),
    ("host_code", "unsupported", "is in CUDA C++"),
];

/// Verdicts of submissions: task, kernel, verdict.
const JUDGED: &[(&str, &str, &str)] = &[
    ("small_padded_add", "submission", "\"pass\""),
    ("small_padded_add", "submissions", "\"fail\""),
    ("small_row_shares", "late", "\"pass\""),
    ("small_byte_counts", "submission", "\"pass\""),
    ("small_gated", "submission", "\"pass\""),
    ("small_initialised", "submission", "\"pass\""),
];

#[test]
#[ignore = "second tier: builds with PyTorch; needs the network once"]
fn tasks_of_gpu_mode_become_packages_whose_submissions_are_judged() {
    let Some(lab) = Lab::new() else { return };
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/problem_sets/gpu_mode/tasks"), &lab.path("set"));
    let import = |output: &str| {
        let words = ["import", "gpu-mode", "set", "--candidates", "set", "--torch", RELEASE, "--output", output];
        let ran = lab.run(&[&words[..], &["--format", "json"]].concat()).expect(0);
        ran.lines().pop().unwrap_or_else(|| panic!("{}", ran.said))
    };
    let document = import("sets");
    let schema = serde_json::from_str(&lab.run(&["schema", "import-tasks"]).expect(0).out).unwrap();
    let mut plain = document.clone();
    plain.as_object_mut().unwrap().remove("reason");
    assert!(jsonschema::is_valid(&schema, &plain), "{document}");
    assert_eq!(document["strangers"], serde_json::json!(["submissions/late/nobodys.py"]));
    for (name, lines) in LINES {
        let own = task(&document, &format!("small/{name}/task.yml"));
        assert_eq!(own["status"], "imported", "{own}");
        let manifest = lab.read(&format!("sets/small/{name}/kernel.toml"));
        for line in *lines {
            assert!(manifest.lines().any(|own| own == *line), "{name}: {line}\n{manifest}");
        }
        let there = |file: &str| lab.read(&format!("sets/small/{name}/{file}"));
        assert_eq!(there("reference.py"), lab.read(&format!("set/small/{name}/reference.py")));
        assert_eq!(there("utils.py"), lab.read("set/utils.py"));
        assert!(!lab.path(&format!("sets/small/{name}/eval.py")).exists());
    }
    for (name, kind, part) in REFUSED {
        let refused = &task(&document, &format!("refused/{name}/task.yml"))["refused"];
        assert_eq!(refused["kind"], *kind, "{name}: {refused}");
        assert!(refused["message"].as_str().unwrap().contains(part), "{name}: {refused}");
        assert!(!lab.path(&format!("sets/refused/{name}")).exists());
    }
    let of = |name: &str| findings(task(&document, &format!("small/{name}/task.yml")));
    assert_eq!(of("padded_add"), ["inputs", "tolerance"]);
    assert_eq!(of("row_shares"), ["inputs", "low-floats"]);
    assert_eq!(of("byte_counts"), ["inputs"]);
    assert_eq!(of("gated"), ["tolerance", "workload"]);
    // Two imports give the same bytes.
    import("again");
    assert_eq!(tree(&lab.path("again")), tree(&lab.path("sets")));

    for (name, _) in LINES {
        let manifest = lab.read(&format!("sets/small/{name}/kernel.toml"));
        let kept = manifest.lines().filter(|line| !line.starts_with("benchmark_"));
        let kept: String = kept.map(|line| format!("{line}\n")).collect();
        fs::write(lab.path(&format!("sets/small/{name}/kernel.toml")), kept).unwrap();
    }
    fs::copy(lab.path("kforge.lock"), lab.path("sets/kforge.lock")).unwrap();
    let ran = lab.run_in("sets", &["verify", "--workspace", "--keep-going", "--message-format", "json"]).expect(100);
    for (package, kernel, verdict) in JUDGED {
        let judged =
            ran.lines().into_iter().filter(|line| line["reason"] == "step-finished" && line["kind"] == "judge");
        let of = |line: &Value| line["id"].as_str().is_some_and(|id| id.starts_with(&format!("{package}/{kernel}/")));
        let judged: Vec<String> = judged.filter(of).map(|line| line.to_string()).collect();
        assert!(!judged.is_empty(), "{package}/{kernel}\n{}", ran.said);
        assert!(judged.iter().all(|line| line.contains(verdict)), "{package}/{kernel}: {judged:#?}");
    }
    // Nothing is left to do.
    let again = lab.run_in("sets", &["verify", "--workspace", "--keep-going", "--message-format", "json"]);
    let executed = again.lines().iter().filter(|line| line["outcome"].to_string().contains("executed")).count();
    assert_eq!(executed, 0, "{}", again.said);
}
