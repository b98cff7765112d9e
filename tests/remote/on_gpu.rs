//! A build that asks the GPU of this machine through a server, as a machine without one does. It needs an NVIDIA GPU of compute capability 9.0 and a CUDA toolkit,
//! so it is built only with the feature `gpu-tests`: `cargo test --features gpu-tests --test remote on_gpu`.

use std::fs;

use kforge::base::testing::skipped;

use crate::bots::Worker;
use crate::executing::{executing, new_key, warnings};
use crate::project::{Built, Project};

const MANIFEST: &str = r#"
[package]
name = "asked"
version = "0.1.0"

[toolchain]
cuda = "system"

[targets.gpu]
arch = "sm_90a"

[operator.twice]
dims = ["n"]
inputs.x = { dtype = "f32", shape = ["n"] }
outputs.y = { dtype = "f32", shape = ["n"] }
reference = { builtin = "elementwise", y = "2 * x + 1" }
tolerance = { atol = 1e-6, rtol = 1e-6 }
shapes.small = { n = 1000 }
shapes.large = { n = 4000000, role = "bench" }

[kernel.k]
operator = "twice"
source = "k.cu"
tune.BLOCK = [128, 256, 512]
launch = [{ entry = "k<BLOCK>", grid = ["ceil_div(n, BLOCK)"], block = ["BLOCK"], args = ["x", "y", "n"] }]
"#;

const SOURCE: &str = "template <int BLOCK> __global__ void k(const float *x, float *y, int n) {\n\
    int i = blockIdx.x * BLOCK + threadIdx.x;\n    if (i < n) y[i] = 2 * x[i] + 1;\n}\n";

#[test]
fn the_gpu_of_this_machine_is_asked_through_a_server_and_its_records_are_signed() {
    let said = std::process::Command::new("nvidia-smi").args(["--query-gpu=name", "--format=csv,noheader"]).output();
    let product = said.map(|said| String::from_utf8_lossy(&said.stdout).lines().next().unwrap_or_default().to_string());
    let Some(product) = product.ok().filter(|product| !product.is_empty()) else {
        return skipped("no NVIDIA GPU");
    };
    let server = executing();
    let project = Project::new().file("kernel.toml", MANIFEST).file("k.cu", SOURCE);
    let Some(public) = new_key(&project.place().join("key")) else { return };
    fs::write(project.place().join("trusted"), format!("gpu@x {public}")).unwrap();
    server.state().options.by_bots = true;
    server.state().options.properties.push("gpu".into());
    let (url, key) = (server.url(), project.place().join("key"));
    let vars = [("KFORGE_REMOTE_WORKER_KEY", key.to_str().unwrap())];
    let worker = Worker::start(&project, &url, "gpu", &[], &vars);
    let trusted = project.place().join("trusted");
    let devices = format!("sm_90={product}");
    let project = project
        .var("KFORGE_REMOTE_URL", url)
        .var("KFORGE_REMOTE_EXECUTE", "true")
        .var("KFORGE_REMOTE_PROGRAM", "kforge")
        .var("KFORGE_REMOTE_DEVICES", devices)
        .var("KFORGE_REMOTE_PROPERTIES", "OSFamily=linux,gpu={gpu}")
        .var("KFORGE_REMOTE_TIMEOUT", "60s")
        .var("KFORGE_EVIDENCE_TRUST", trusted)
        // The machine that builds sees no GPU.
        .var("CUDA_VISIBLE_DEVICES", "");
    let build = |words: &[&str]| {
        let words = [&["build", "--message-format", "json"], words].concat();
        Built::of(&project.command(&words).output().unwrap())
    };
    let built = build(&["--require-evidence"]).expect(0);
    let seen: Vec<_> = built.finished().filter(|step| step["evidence"].is_object()).collect();
    assert!(seen.len() >= 8, "{} records {} {}", seen.len(), built.stderr(), worker.log());
    for step in &seen {
        let evidence = &step["evidence"];
        let how = (&step["cache"], &evidence["standing"], &evidence["signer"]);
        assert_eq!(how, (&"remote".into(), &"signed".into(), &"gpu@x".into()), "{step}");
        assert!(evidence["device_class"].as_str().unwrap().starts_with(&product), "{step}");
    }
    let kinds: std::collections::BTreeSet<&str> = seen.iter().map(|step| step["kind"].as_str().unwrap()).collect();
    assert!(["verify", "bench", "pairs", "profile"].iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    assert_eq!(warnings(&built), 0, "{}", built.stderr());
    assert_eq!(build(&["--require-evidence"]).expect(0).count("executed"), 0);
}
