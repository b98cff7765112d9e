//! Inputs that a function makes with PyTorch, as SOL-ExecBench's `custom` inputs are: imported, built and exported again.

use std::fs;

use super::{Lab, RELEASE, tree};

const REFERENCE: &str = "import torch\n\n\ndef draw(axes_and_scalars: dict, device: torch.device) -> dict:\n    rows, experts = axes_and_scalars[\"rows\"], axes_and_scalars[\"experts\"]\n    \
    gen = torch.Generator(device=\"cuda\")\n    gen.manual_seed(int(torch.randint(2**31, ())))\n    order = torch.randperm(rows, device=\"cuda\", generator=gen)\n    \
    return {\"order\": order.cuda(), \"x\": torch.randn(rows, experts, device=device), \"scale\": axes_and_scalars[\"scale\"]}\n\n\n\
    def run(order, scale, x):\n    assert order.unique().numel() == x.shape[0]\n    return scale * x[order]\n";
const SOLUTION: &str = "def run(order, scale, x):\n    return scale * x[order]\n";

#[test]
#[ignore = "second tier: builds with PyTorch; needs the network once"]
fn custom_inputs_are_made_by_the_function_of_the_definition() {
    let Some(lab) = Lab::new() else { return };
    let definition = serde_json::json!({
        "name": "permuted", "op_type": null, "custom_inputs_entrypoint": "draw", "hf_id": "x/y",
        "axes": { "rows": { "type": "var" }, "experts": { "type": "const", "value": 8 } },
        "inputs": {
            "x": { "shape": ["rows", "experts"], "dtype": "float32" }, "order": { "shape": ["rows"], "dtype": "int64" },
            "scale": { "shape": null, "dtype": "float32" },
        },
        "outputs": { "y": { "shape": ["rows", "experts"], "dtype": "float32" } },
        "reference": REFERENCE,
    });
    let workload = serde_json::json!({
        "uuid": "w-1", "axes": { "rows": 33 },
        "inputs": { "x": { "type": "custom" }, "order": { "type": "custom" }, "scale": { "type": "scalar", "value": 0.5 } },
    });
    fs::create_dir_all(lab.path("set/permuted")).unwrap();
    fs::write(lab.path("set/permuted/definition.json"), definition.to_string()).unwrap();
    fs::write(lab.path("set/permuted/workload.jsonl"), workload.to_string() + "\n").unwrap();
    lab.run(&["import", "flashinfer-trace", "set", "--torch", RELEASE, "--output", "sets"]).expect(0);
    let place = "sets/permuted";
    let manifest = lab.read(&format!("{place}/kernel.toml"));
    assert!(manifest.contains("generate_inputs = { torch = \"ref.py::draw\" }"), "{manifest}");
    let kernel = "\n[kernel.own]\noperator = \"permuted\"\nlanguage = \"torch\"\ntargets = [\"cpu\"]\nsource = \"own/kernel.py::run\"\n";
    fs::write(lab.path(&format!("{place}/kernel.toml")), manifest + kernel).unwrap();
    fs::create_dir_all(lab.path(&format!("{place}/own"))).unwrap();
    fs::write(lab.path(&format!("{place}/own/kernel.py")), SOLUTION).unwrap();
    fs::copy(lab.path("kforge.lock"), lab.path("sets/kforge.lock")).unwrap();
    let verify = |code: i32| lab.run_in("sets", &["verify", "--workspace", "--message-format", "json"]).expect(code);
    let ran = verify(0);
    let executed = |ran: &super::Ran, kind: &str| {
        let lines = ran.lines();
        let of = |line: &&serde_json::Value| line["reason"] == "step-finished" && line["kind"] == kind;
        lines.iter().filter(of).filter(|line| line["outcome"].to_string().contains("executed")).count()
    };
    assert!(executed(&ran, "oracle") > 1, "{}", ran.said);
    // The same inputs give the same expected values: nothing is computed again.
    assert_eq!(executed(&verify(0), "oracle"), 0);
    // A function that returns what is no input, or another shape, is an error of the step.
    let reference = lab.read(&format!("{place}/ref.py"));
    let broken = |from: &str, to: &str, said: &str| {
        fs::write(lab.path(&format!("{place}/ref.py")), reference.replacen(from, to, 1)).unwrap();
        let ran = verify(101);
        assert!(ran.said.contains(said), "{said}: {}", ran.said);
    };
    broken("\"x\": torch", "\"z\": torch", "returned `z`, which is no input of the operator; expected `order`, `x`");
    broken("torch.randn(rows, experts", "torch.randn(experts, rows", "`x` has the shape [8, 33], expected [33, 8]");
    broken("torch.randn(rows, experts, device=device)", "rows // 0", "ZeroDivisionError");
    fs::write(lab.path(&format!("{place}/ref.py")), &reference).unwrap();
    // The files come out as they went in.
    lab.run_in("sets", &["export", "flashinfer-trace", "../out"]).expect(0);
    let out = tree(&lab.path("out"));
    for (path, text) in tree(&lab.path("set")) {
        assert_eq!(out.get(&path), Some(&text), "{path}");
    }
}
