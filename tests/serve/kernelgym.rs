//! KernelGYM's interface, as its documented client uses it: submit, poll the status, fetch the result only if it is completed.
//!
//! The second tier evaluates with PyTorch, which it installs below `target/kforge-test-home` when it is missing (1.7 GB).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::project::Project;
use crate::server::{Server, endless, project, until};

/// A task in KernelBench's form: `2 * relu(x)`.
const REFERENCE: &str = "import torch
from torch import nn

rows = 6
cols = 10

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.relu(x) * 2.0

def get_inputs():
    return [torch.randn(rows, cols)]

def get_init_inputs():
    return []
";

/// A candidate whose `forward` does this.
fn candidate(forward: &str) -> String {
    format!(
        "import torch\nfrom torch import nn\n\n\nclass ModelNew(nn.Module):\n    def forward(self, x):\n        {forward}\n"
    )
}

fn request(id: &str, kernel: &str) -> Value {
    json!({
        "task_id": id, "reference_code": REFERENCE, "kernel_code": kernel, "backend": "triton", "num_correct_trials": 5,
        "num_perf_trials": 100, "timeout": 600, "detect_decoy_kernel": true, "enable_profiling": true, "uuid": "u",
    })
}

/// What KernelGYM's client does: it ignores the answer to the submission, polls, and fetches the result of a completed task only.
fn fetched(server: &Server, request: &Value) -> Option<Value> {
    let id = request["task_id"].as_str().unwrap();
    server.post("/kernelgym/workflow/submit", &json!({ "workflow": "kernelbench", "payload": request })).expect(200);
    let mut status = Value::Null;
    until("it ends", || {
        status = server.get(&format!("/kernelgym/status/{id}")).expect(200).json()["status"].clone();
        status != "pending" && status != "processing"
    });
    (status == "completed").then(|| server.get(&format!("/kernelgym/results/{id}")).expect(200).json())
}

/// The field that a refusal names.
#[track_caller]
fn field(server: &Server, path: &str, body: &Value) -> String {
    let answer = server.post(path, body).expect(422).json();
    assert_eq!(answer["error_code"], "VALIDATION_ERROR");
    answer["detail"][0]["loc"][1].as_str().unwrap().to_string()
}

#[test]
fn requests_are_checked_as_kernelgym_does_and_unknown_ids_are_not_found() {
    let project = project();
    let server = Server::start(&project, &[]);
    let changed = |key: &str, value: Value| {
        let mut request = request("a", &candidate("return x"));
        request[key] = value;
        request
    };
    for (key, value) in [
        ("task_id", json!("")),
        ("task_id", json!("x".repeat(101))),
        ("kernel_code", json!("short")),
        ("kernel_code", json!("x".repeat(100_001))),
        ("num_correct_trials", json!(21)),
        ("num_perf_trials", json!(0)),
        ("timeout", json!(9)),
        ("toolkit", json!("other")),
        ("reference_code", Value::Null),
        ("entry_point", json!("a b")),
    ] {
        assert_eq!(field(&server, "/kernelgym/evaluate", &changed(key, value)), key);
    }
    assert_eq!(field(&server, "/kernelgym/evaluate", &changed("backend", json!("hip"))), "body");
    let submitted = json!({ "workflow": "other", "payload": request("a", &candidate("return x")) });
    assert_eq!(field(&server, "/kernelgym/workflow/submit", &submitted), "workflow");
    for tasks in [vec![], vec![json!({}); 101]] {
        assert_eq!(field(&server, "/kernelgym/evaluate/batch", &json!({ "tasks": tasks })), "tasks");
    }
    for path in ["status/none", "results/none", "workflow/results/none"] {
        let answer = server.get(&format!("/kernelgym/{path}")).expect(404).json();
        assert!(answer["detail"].as_str().unwrap().contains("`none`"), "{answer}");
    }
    server.delete("/kernelgym/tasks/none").expect(404);
    let broken = server.connect().ask("POST", "/kernelgym/evaluate", Some(b"{")).unwrap().expect(400).json();
    assert!(broken["detail"].is_string() && broken["error_code"] == "VALIDATION_ERROR", "{broken}");
    assert_eq!(server.get("/kernelgym/health").expect(200).json()["status"], "healthy");
    assert_eq!(server.get("/kernelgym/queue/status").expect(200).json()["total"], 0);
    assert!(server.get("/kernelgym/workers/status").expect(200).json()["workers"].is_array());
    assert_eq!(server.get("/kernelgym/metrics").expect(200).json()["pending_tasks"], 0);
}

#[test]
fn a_module_that_cannot_be_a_reference_has_its_code_and_its_text() {
    let project = project();
    let server = Server::start(&project, &[]);
    for (reference, code, text) in
        [("def f(:\n", "SYNTAX_ERROR", "line 1"), ("class Model: pass\n", "VALIDATION_ERROR", "get_inputs")]
    {
        let mut request = request(code, &candidate("return x"));
        request["reference_code"] = reference.into();
        let result = fetched(&server, &request).expect("the client fetches it");
        assert_eq!((&result["error_code"], &result["correctness"]), (&json!(code), &json!(false)), "{result}");
        assert!(result["error_message"].as_str().unwrap().contains(text), "{result}");
        assert_eq!(server.post("/kernelgym/evaluate", &request).expect(200).json(), result);
        assert_eq!(server.delete(&format!("/kernelgym/tasks/{code}")).expect(200).json()["status"], "completed");
    }
    let batch = json!({ "batch_id": "b", "tasks": [{ "task_id": "odd" }, request("SYNTAX_ERROR", "too short?")] });
    let answer = server.post("/kernelgym/evaluate/batch", &batch).expect(200).json();
    let found = |at: usize, key: &str| answer["results"][at][key].clone();
    assert_eq!((found(0, "task_id"), found(0, "error_code")), (json!("odd"), json!("VALIDATION_ERROR")), "{answer}");
    assert_eq!((found(1, "task_id"), &answer["total_tasks"]), (json!("SYNTAX_ERROR"), &json!(2)), "{answer}");
    assert!(found(1, "error_message").as_str().unwrap().contains("another content"), "{answer}");
    // An id has one content, also if that could not be evaluated.
    let mut other = request("SYNTAX_ERROR", &candidate("return x"));
    other["reference_code"] = "def g(:\n".into();
    server.post("/kernelgym/evaluate", &other).expect(409);
    assert_eq!(server.get("/kernelgym/status/SYNTAX_ERROR").expect(200).json()["error_code"], "SYNTAX_ERROR");
}

#[test]
fn a_client_with_all_its_tasks_is_refused_before_its_sources_are_read_and_a_batch_waits() {
    let project = project();
    let server = Server::start(&project, &["--evaluations", "1", "--client-limit", "1"]);
    let blocker = server.post("/v1/evaluations", &endless("blocks")).expect(202).json();
    let figure = |path: &str, key: &str| server.get(&format!("/kernelgym/{path}")).expect(200).json()[key].clone();
    until("it runs", || figure("queue/status", "processing") == 1);
    assert_eq!((figure("health", "processing"), figure("metrics", "processing_tasks")), (json!(1), json!(1)));
    let mut broken = request("a", &candidate("return x"));
    broken["reference_code"] = "def f(:\n".into();
    let refused = server.post("/kernelgym/evaluate", &broken);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.expect(429).json()["error_code"], "RESOURCE_ERROR");
    let mut batch = server.connect();
    batch.send("POST", "/kernelgym/evaluate/batch", Some(json!({ "tasks": [broken] }).to_string().as_bytes())).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(100));
    server.delete(&format!("/v1/tasks/{}", blocker["id"].as_str().unwrap())).expect(200);
    let answer = batch.answer().unwrap().expect(200).json();
    assert_eq!(answer["results"][0]["error_code"], "SYNTAX_ERROR", "{answer}");
}

#[test]
fn clients_without_a_token_are_refused_in_kernelgyms_form() {
    let project = project();
    let tokens = project.root().join("tokens");
    fs::write(&tokens, "gym 0123456789abcdef\n").unwrap();
    fs::set_permissions(&tokens, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let server = Server::start(&project, &["--tokens", "tokens"]);
    let refused = server.get("/kernelgym/status/a").expect(401).json();
    assert!(refused["detail"].is_string(), "{refused}");
    server.get("/kernelgym/health").expect(200);
    server.connect_as("0123456789abcdef").ask("GET", "/kernelgym/status/a", None).unwrap().expect(404);
}

/// A project with PyTorch; none, with a message, if it cannot be installed.
pub(crate) fn with_torch() -> Option<Project> {
    let project = project();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("kforge-test-home/toolchains");
    fs::create_dir_all(&kept).unwrap();
    std::os::unix::fs::symlink(&kept, project.home().join("toolchains")).unwrap();
    fs::copy(root.join("examples/torch/kforge.lock"), project.root().join("kforge.lock")).unwrap();
    project.write("kernel.toml", "[package]\nname = \"p\"\n[toolchain]\ntorch = \"2.15\"\n[targets.cpu]\n[operator.o]\ndims = [\"n\"]\ninputs.x = { dtype = \"f32\", shape = [\"n\"] }\noutputs.y = { dtype = \"f32\", shape = [\"n\"] }\nreference.torch = \"r.py::f\"\nshapes.s = { n = 4 }\n");
    project.write("r.py", "def f(x):\n    return x\n");
    let fetched = project.command(&["fetch"]).output().unwrap();
    if !fetched.status.success() {
        kforge::base::testing::skipped(&format!("PyTorch: {}", String::from_utf8_lossy(&fetched.stderr)));
        return None;
    }
    Some(project)
}

#[test]
#[ignore = "second tier: evaluates with PyTorch"]
fn candidates_are_evaluated_and_every_failure_has_its_code_and_its_text() {
    let Some(project) = with_torch() else { return };
    let server = Server::start(&project, &[]);
    let correct = fetched(&server, &request("right", &candidate("return x.clamp(min=0) * 2"))).unwrap();
    assert_eq!((&correct["compiled"], &correct["correctness"]), (&json!(true), &json!(true)), "{correct}");
    assert_eq!((&correct["kernel_runtime"], &correct["speedup"]), (&json!(-1.0), &json!(0.0)), "nothing was timed");
    assert_eq!((&correct["decoy_kernel"], &correct["error_message"]), (&json!(true), &Value::Null), "it has no Triton");
    for (id, kernel, code, text) in [
        ("wrong", candidate("return x * 2"), "CORRECTNESS_ERROR", "wrong at"),
        ("raises", candidate("raise ValueError('no such thing')"), "RUNTIME_ERROR", "no such thing"),
        ("shape", candidate("return x[:3]"), "CORRECTNESS_ERROR", "shape"),
        ("broken", "class ModelNew(:\n    pass\n".to_string(), "SYNTAX_ERROR", "line 1"),
    ] {
        let result = fetched(&server, &request(id, &kernel)).unwrap_or_else(|| panic!("{id} is not completed"));
        assert_eq!((&result["correctness"], &result["error_code"]), (&json!(false), &json!(code)), "{result}");
        assert!(result["error_message"].as_str().unwrap().contains(text), "{result}");
    }
    let mut import = request("import", &candidate("return x"));
    import["reference_code"] = format!("import no_such_library\n{REFERENCE}").into();
    let import = fetched(&server, &import).unwrap();
    assert_eq!(import["error_code"], "IMPORT_ERROR", "{import}");

    // The same id with other code is never the old result.
    let other = request("right", &candidate("return x * 3"));
    let refused = server.post("/kernelgym/evaluate", &other).expect(409).json();
    assert!(refused["detail"].as_str().unwrap().contains("another content"), "{refused}");
    assert_eq!(server.get("/kernelgym/results/right").expect(200).json()["correctness"], true);
    // Nor is it one that a source without a task takes the place of.
    server.post("/kernelgym/evaluate", &request("right", "class ModelNew(:\n    pass\n")).expect(409);
    assert_eq!(server.get("/kernelgym/status/right").expect(200).json()["error_code"], Value::Null);
    // The class has any name.
    let mut net = request("net", &candidate("return torch.relu(x) * 2").replace("ModelNew", "NetNew"));
    net["reference_code"] = REFERENCE.replace("Model", "Net").into();
    net["entry_point"] = "Net".into();
    let net = fetched(&server, &net).unwrap();
    assert_eq!((&net["correctness"], &net["error_message"]), (&json!(true), &Value::Null), "{net}");
    // The same id with the same code is the same task, and another id has the same result.
    let again =
        server.post("/kernelgym/evaluate", &request("right", &candidate("return x.clamp(min=0) * 2"))).expect(200);
    assert_eq!(again.json(), correct);
    let before = server.metric("kforge_evaluation_seconds_count");
    let odd = server
        .post("/kernelgym/evaluate", &request("an id: ü/?", &candidate("return x.clamp(min=0) * 2")))
        .expect(200)
        .json();
    assert_eq!((&odd["task_id"], &odd["correctness"]), (&json!("an id: ü/?"), &json!(true)));
    assert_eq!(server.metric("kforge_evaluation_seconds_count"), before);
}

#[test]
#[ignore = "second tier: evaluates with PyTorch"]
fn a_batch_of_a_hundred_is_evaluated_by_content_and_answered_in_order() {
    let Some(project) = with_torch() else { return };
    let server = Server::start(&project, &[]);
    let kernel = |n: usize| match n % 2 {
        0 => candidate(&format!("return torch.relu(x) * 2  # {}", n / 2)),
        _ => candidate(&format!("return torch.relu(x) * {}", 3 + n / 2)),
    };
    let tasks: Vec<Value> = (0..100).map(|n| request(&format!("task {n}"), &kernel(n % 8))).collect();
    let answer =
        server.post("/kernelgym/evaluate/batch", &json!({ "batch_id": "b", "tasks": tasks })).expect(200).json();
    let results = answer["results"].as_array().unwrap();
    assert_eq!((results.len(), &answer["completed_tasks"]), (100, &json!(100)), "{answer}");
    for (n, result) in results.iter().enumerate() {
        assert_eq!(
            (&result["task_id"], &result["correctness"]),
            (&json!(format!("task {n}")), &json!(n % 2 == 0)),
            "{result}"
        );
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    results.iter().for_each(|result| *counts.entry(result["error_code"].to_string()).or_default() += 1);
    assert_eq!(counts, [("\"CORRECTNESS_ERROR\"".to_string(), 50), ("null".to_string(), 50)].into());
    assert_eq!(server.metric("kforge_evaluation_seconds_count"), 8, "one evaluation of each content");
}

/// Links the files of a folder into another one.
#[cfg(debug_assertions)]
fn link(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => link(&entry.path(), &to),
            false => fs::hard_link(entry.path(), to).unwrap(),
        }
    }
}

/// A project on a machine with a device, for which the processor stands in, and whose Python has PyTorch. The second part is removed with that Python.
#[cfg(debug_assertions)]
#[expect(clippy::disallowed_methods, reason = "a test stands where a shell does, and hands PATH on")]
fn on_a_device() -> Option<(Project, tempfile::TempDir)> {
    let project = with_torch()?;
    // A named program may be a released one, which has no virtual device.
    fs::remove_file(project.program()).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_kforge"), project.program()).unwrap();
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let venv = place.path().join("venv");
    let mut command = std::process::Command::new("python3");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let made = command.args(["-m", "venv", "--without-pip"]).arg(&venv).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let site = fs::read_dir(venv.join("lib")).unwrap().next().unwrap().unwrap().path().join("site-packages");
    let kept = fs::read_dir(project.home().join("toolchains")).unwrap().map(|entry| entry.unwrap().path());
    let torch = kept.into_iter().find(|folder| folder.join("torch/__init__.py").exists()).unwrap();
    link(&torch, &site);
    // Beside the libraries that need them, they are found without being asked for.
    link(&torch.join("kforge-stubs"), &site.join("torch/lib"));
    let scenario = place.path().join("scenario.toml");
    fs::write(&scenario, "torch = true\n[[device]]\nproduct = \"Virtual H\"\narch = \"sm_90\"\ndriver = \"580.1\"\n")
        .unwrap();
    // It is the PyTorch of the system that counts.
    fs::remove_file(project.root().join("kforge.lock")).unwrap();
    let project =
        project.var("KFORGE_TOOLCHAIN_PYTHON", venv.join("bin/python3")).var("KFORGE_VIRTUAL_DEVICE", scenario);
    Some((project, place))
}

#[test]
#[cfg(debug_assertions)]
#[ignore = "second tier: evaluates with PyTorch"]
fn on_a_device_the_candidate_and_the_reference_are_timed_in_the_same_way() {
    let Some((project, _place)) = on_a_device() else { return };
    let server = Server::start(&project, &[]);
    assert_eq!(server.get("/kernelgym/workers/status").expect(200).json()["total_workers"], 1);
    // The kernel of the source is not used, which only a device with records of its kernels shows.
    let kernel = format!(
        "CUDA = '''__global__ void k() {{}}'''  # for load_inline\nload_inline = None\n{}",
        candidate("return x.clamp(min=0) * 2")
    );
    let of = |id: &str, kernel: &str, times: bool| {
        let mut request = request(id, kernel);
        request["backend"] = "cuda".into();
        request["measure_performance"] = times.into();
        fetched(&server, &request).unwrap()
    };
    let timed = of("timed", &kernel, true);
    assert_eq!((&timed["correctness"], &timed["decoy_kernel"]), (&json!(true), &json!(false)), "{timed}");
    let number = |key: &str| timed[key].as_f64().unwrap();
    assert!(number("kernel_runtime") > 0.0 && number("reference_runtime") > 0.0, "{timed}");
    assert!((number("speedup") - number("reference_runtime") / number("kernel_runtime")).abs() < 1e-9, "{timed}");
    assert!(timed["metadata"]["kforge"]["hand_over_ms"].as_f64().unwrap() > 0.0, "{timed}");
    assert!(timed["metadata"]["device"].as_str().unwrap().contains("Virtual H"), "{timed}");
    let untimed = of("untimed", &kernel, false);
    assert_eq!((&untimed["correctness"], &untimed["kernel_runtime"]), (&json!(true), &json!(-1.0)), "{untimed}");
    let decoy = of("decoy", &candidate("return x.clamp(min=0) * 2"), true);
    assert_eq!(
        (&decoy["decoy_kernel"], &decoy["correctness"], &decoy["speedup"]),
        (&json!(true), &json!(true), &json!(0.0)),
        "{decoy}"
    );
    let wrong = of("wrong", &candidate("return x * 2"), true);
    assert_eq!((&wrong["error_code"], &wrong["speedup"]), (&json!("CORRECTNESS_ERROR"), &json!(0.0)), "{wrong}");
}
