//! Baselines on the processor, by the PyTorch that `cargo test --test python torch -- --ignored` installs: what they are called with, what they give, and what
//! must not do. Their samples on a GPU are tested by `tests/gpu`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kforge::base::Digest;
use kforge::base::testing::skipped;
use kforge::harness::baseline::{BaselineCall, BaselineProcess, NoBaseline};
use kforge::harness::machine::Machine;
use kforge::harness::message::Places;
use kforge::harness::task::Task;
use kforge::model::baseline::{How, Product};
use kforge::model::torch::TorchCall;
use kforge::model::{DType, Param, Problem, Reference, Role, Scalar, Tensor};
use kforge::record::kind::baseline::documents::Callee;
use kforge::record::{FindingKind, Form, Input, Spec, StepKind};

use crate::Test;
use crate::python::python;

pub(crate) const TESTS: &[Test] = &[
    ("a_baseline_is_called_with_the_tensors_of_the_operator", called),
    ("a_baseline_that_fails_says_so_and_stays_confined", failing),
    ("a_baseline_begins_each_call_with_the_same_inouts", inouts),
    ("a_product_is_that_of_the_operands_as_they_are_stored", product),
];

const LIMIT: Duration = Duration::from_secs(600);

/// A module with a parameter that a tensor gives, a buffer that none does, and an output in another type.
const MODULE: &str = "import torch
from torch import nn
from helper import shift


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(cols))
        self.register_buffer(\"offset\", torch.zeros((), dtype=torch.int64))

    def forward(self, x, bias):
        y = shift(x * self.scale, bias) + self.offset
        return y, y.argmax(1)
";

/// A folder for one task, with the files of a package.
struct Lab {
    dir: tempfile::TempDir,
    torch: PathBuf,
    python: PathBuf,
}

impl Lab {
    /// None, with a message, if there is no PyTorch here.
    fn new(files: &[(&str, &str)]) -> Option<Self> {
        let python = python()?;
        let all = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("kforge-test-home/toolchains");
        let folders = fs::read_dir(all).into_iter().flatten().flatten().map(|entry| entry.path());
        let Some(torch) = folders.into_iter().find(|folder| folder.join("torch/__init__.py").exists()) else {
            skipped("PyTorch is not installed; `cargo test --test python torch -- --ignored` installs it");
            return None;
        };
        let lab = Lab { dir: tempfile::tempdir().unwrap(), torch, python };
        for (name, text) in files {
            let path = lab.dir.path().join("in/tree-baseline").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(lab.dir.path().join("out")).unwrap();
        Some(lab)
    }

    fn task(&self) -> Task {
        let mut tools = kforge::toolchain::torch::places(&self.torch);
        tools.insert("python".into(), self.python.clone());
        let tree = Input { digest: Some(Digest::of(b"")), form: Form::Tree };
        Task {
            spec: Spec {
                kind: StepKind::Baseline,
                version: 1,
                implementation: None,
                params: serde_json::Value::Null,
                inputs: [("tree:baseline".to_string(), tree)].into(),
            },
            input: self.dir.path().join("in"),
            output: self.dir.path().join("out"),
            places: Places { tools, read: vec![], scratch: None },
            device: None,
            time_limit: LIMIT,
            run_limit: LIMIT,
            memory_limit: 1 << 30,
            compiler_memory: 8 << 30,
            allow_unconfined: false,
            hang: None,
            planned: std::time::SystemTime::UNIX_EPOCH,
            warm_up: false,
            started: Instant::now(),
            waiting_us: Default::default(),
        }
    }

    /// A confined process that has begun, with what a process with a driver has.
    fn begun<'p>(&self, problem: &'p Problem, how: How, calls: &Callee) -> Result<BaselineProcess<'p>, NoBaseline> {
        let machine = Machine {
            device: "cpu",
            devices: vec!["/dev/nvidiactl".into()],
            read: vec![],
            env: vec![("CUDA_VISIBLE_DEVICES", String::new())],
            confined: true,
        };
        let call = BaselineCall { how, mode: None, calls, cold: true };
        let mut process = BaselineProcess::start(&self.task(), problem, &call, &machine)?;
        process.begin(LIMIT)?;
        Ok(process)
    }
}

fn function(name: &str) -> Callee {
    Callee::Function { file: "task.py".into(), function: name.into(), call: Box::default() }
}

/// Rows of x lie four elements apart.
fn problem() -> Problem {
    let x = Tensor { strides: vec![4, 1], ..Tensor::dense("x", Role::Input, DType::F32, &[2, 3]) };
    Problem {
        dims: [("cols".to_string(), 3)].into(),
        params: vec![Param { name: "bias".into(), dtype: DType::F32, value: Scalar::Float(1.5) }],
        ..Problem::of(
            vec![
                x,
                Tensor::dense("w", Role::Input, DType::F32, &[3]),
                Tensor::dense("y", Role::Output, DType::F32, &[2, 3]),
                Tensor::dense("n", Role::Output, DType::I32, &[2]),
            ],
            Reference::builtin("sum", &[]),
        )
    }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
}

fn lay(process: &mut BaselineProcess<'_>, inputs: &[(&str, Vec<u8>)]) {
    process.lay(inputs.iter().map(|(name, bytes)| (*name, bytes.as_slice())), LIMIT).unwrap();
}

fn called() {
    let helper = "def shift(x, by):\n    return x + by\n";
    let Some(lab) = Lab::new(&[("task.py", MODULE), ("helper.py", helper)]) else { return };
    let call = TorchCall {
        init: vec![3.into()],
        state: [("scale".to_string(), Some("w".to_string()))].into(),
        ..TorchCall::default()
    };
    let calls = Callee::Function { file: "task.py".into(), function: "Model".into(), call: Box::new(call) };
    let problem = problem();
    let mut process = lab.begun(&problem, How::Eager, &calls).unwrap();
    let w = bytes(&[1.0, 10.0, 100.0]);
    lay(&mut process, &[("x", bytes(&[1.0, 2.0, 3.0, 99.0, 4.0, 5.0, 6.0])), ("w", w.clone())]);
    let versions = process.prepare(LIMIT).unwrap();
    assert!(versions["torch"].starts_with("2."), "{versions:?}");
    let ran = process.run(LIMIT).unwrap();
    let [(y, y_bytes), (n, n_bytes)] = &ran.outputs[..] else { panic!("{:?}", ran.outputs) };
    assert_eq!((y.as_str(), floats(y_bytes)), ("y", vec![2.5, 21.5, 301.5, 5.5, 51.5, 601.5]));
    assert_eq!((n.as_str(), n_bytes.as_slice()), ("n", &[2, 0, 0, 0, 2, 0, 0, 0][..]));
    assert_eq!(ran.converted, BTreeMap::from([("n".to_string(), "int64".to_string())]));
    assert_eq!(ran.changed, [""; 0]);
    // Other inputs come to the same addresses.
    lay(&mut process, &[("x", bytes(&[0.0; 7])), ("w", w)]);
    assert_eq!(floats(&process.run(LIMIT).unwrap().outputs[0].1), [1.5; 6]);
    let (device, call) = (process.device_times(3, LIMIT).unwrap(), process.call_times(2, LIMIT).unwrap());
    assert_eq!((device.ns.len(), call.ns.len(), device.waited), (3, 2, 0));
    assert!(device.ns.iter().chain(&call.ns).all(|ns| *ns > 0.0), "{device:?} {call:?}");
}

fn failing() {
    let text = "import torch\n\n\ndef no(x, w, bias):\n    raise ValueError('no', 'more')\n\n\n\
        def opens(x, w, bias):\n    open('/etc/passwd')\n\n\n\
        def connects(x, w, bias):\n    import socket\n    socket.socket(socket.AF_INET)\n\n\n\
        def imports(x, w, bias):\n    import pip\n\n\n\
        def one(x, w, bias):\n    return x\n\n\n\
        def flat(x, w, bias):\n    return x.reshape(-1), x.argmax(1)\n\n\n\
        def changes(x, w, bias):\n    return x.add_(1), x.argmax(1)\n\n\n\
        def asks(x, v):\n    return x\n\n\n\
        def prints(x, w, bias):\n    print('not an answer')\n    return x + 1, x.argmax(1)\n";
    let Some(lab) = Lab::new(&[("task.py", text)]) else { return };
    let problem = problem();
    let of = |name: &str| {
        let mut process = lab.begun(&problem, How::Eager, &function(name))?;
        lay(&mut process, &[("x", bytes(&[1.0; 7])), ("w", bytes(&[1.0; 3]))]);
        process.prepare(LIMIT)?;
        process.run(LIMIT)
    };
    let failed = |name: &str| match of(name) {
        Err(NoBaseline::Failed { finding, log }) => {
            let kind = if name == "flat" { FindingKind::WrongShape } else { FindingKind::Exited };
            assert_eq!(finding.kind, kind, "{name}");
            (finding.message, log)
        }
        other => panic!("{name}: {other:?}"),
    };
    let (message, log) = failed("no");
    assert_eq!(message, "`task.py::no` raised ValueError: ('no', 'more')");
    assert!(log.contains("task.py\", line 5, in no") && !log.contains("driver.py"), "{log}");
    assert!(failed("opens").0.contains("PermissionError"));
    assert!(failed("connects").0.contains("PermissionError"));
    let (message, _) = failed("imports");
    assert!(message.contains("No module named 'pip'") || message.contains("neither of this package"), "{message}");
    assert!(failed("one").0.starts_with("`task.py::one` returned 1 results, expected 2: y, n"));
    assert_eq!(failed("flat").0, "`task.py::flat` returned the shape [6] for `y`, expected [2, 3]");
    assert!(failed("asks").0.contains("asks for `v`"));
    assert!(failed("absent").0.contains("`task.py` has no `absent`"));
    assert_eq!(of("changes").unwrap().changed, ["x"]);
    assert_eq!(floats(&of("prints").unwrap().outputs[0].1), [2.0; 6], "what it prints is no answer");
    let missing = |how: How| match lab.begun(&problem, how, &function("prints")) {
        Ok(mut process) => {
            lay(&mut process, &[("x", bytes(&[1.0; 7])), ("w", bytes(&[1.0; 3]))]);
            process.prepare(LIMIT).unwrap_err()
        }
        Err(why) => why,
    };
    assert!(matches!(missing(How::Cudagraph), NoBaseline::Missing(why) if why.contains("need a GPU")));
    let lab = Lab { torch: lab.dir.path().join("out"), ..lab };
    let none = lab.begun(&problem, How::Eager, &function("prints")).map(drop).unwrap_err();
    assert!(matches!(none, NoBaseline::Missing(why) if why.contains("cannot import PyTorch")));
}

fn inouts() {
    let text = "import torch\nfrom torch import nn\n\n\ndef adds(x, s):\n    s.add_(x)\n\n\n\
        class Counts(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.register_buffer('s', torch.zeros(2))\n\n\
        \x20   def forward(self, x):\n        self.s = self.s + x\n";
    let Some(lab) = Lab::new(&[("task.py", text)]) else { return };
    let tensor = |name: &str, role| Tensor::dense(name, role, DType::F32, &[2]);
    let problem = Problem::of(vec![tensor("x", Role::Input), tensor("s", Role::Inout)], Reference::builtin("sum", &[]));
    for name in ["adds", "Counts"] {
        let mut process = lab.begun(&problem, How::Eager, &function(name)).unwrap();
        lay(&mut process, &[("x", bytes(&[1.0, 2.0])), ("s", bytes(&[10.0, 20.0]))]);
        process.prepare(LIMIT).unwrap();
        for _ in 0..2 {
            let ran = process.run(LIMIT).unwrap();
            assert_eq!((ran.outputs.len(), floats(&ran.outputs[0].1)), (1, vec![11.0, 22.0]), "{name}");
        }
    }
}

fn product() {
    let Some(lab) = Lab::new(&[]) else { return };
    let tensor = |name: &str, role, shape: &[u64]| Tensor::dense(name, role, DType::F32, shape);
    let problem = Problem::of(
        vec![tensor("u", Role::Input, &[2, 2]), tensor("v", Role::Input, &[2, 2]), tensor("c", Role::Output, &[2, 2])],
        Reference::builtin("matmul", &[]),
    );
    let operands = [("a".to_string(), "u".to_string()), ("b".to_string(), "v".to_string())].into();
    let calls = Callee::Product(Product { operands, transposed: vec!["b".into()] });
    let mut process = lab.begun(&problem, How::Cublas, &calls).unwrap();
    lay(&mut process, &[("u", bytes(&[1.0, 2.0, 3.0, 4.0])), ("v", bytes(&[5.0, 6.0, 7.0, 8.0]))]);
    process.prepare(LIMIT).unwrap();
    assert_eq!(floats(&process.run(LIMIT).unwrap().outputs[0].1), [17.0, 23.0, 39.0, 53.0]);
}
