//! How a baseline's process is started: its program, its call, its confinement and its environment. Knows files and variables; asks nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::tensors::{PlacedTensor, inouts};
use super::{BaselineCall, output_file};
use crate::confine::Confinement;
use crate::machine::Machine;
use crate::message::Response;
use crate::oracle::call::Call;
use crate::oracle::python::{Interpreter, arguments};
use crate::task::{Task, failed};
use kforge_foundation::process::{Command, Limits};
use kforge_project::toolchain::python::{LEFT_OUT, TORCH};
use kforge_types::model::Problem;
use kforge_types::model::baseline::{How, Product};
use kforge_types::model::torch::TorchCall;
use kforge_types::record::kind::baseline::documents::Callee;

pub(super) const DRIVER: &str = concat!(
    include_str!("../oracle/known.py"),
    "\n\n",
    include_str!("../oracle/torch_module.py"),
    "\n\n",
    include_str!("../candidate/samples.py"),
    "\n\n",
    include_str!("driver.py")
);

/// The call, as the driver reads it.
#[derive(Serialize)]
struct Described<'a> {
    /// The baseline, for messages.
    label: String,
    device: &'static str,
    how: How,
    mode: Option<&'a str>,
    cold: bool,
    root: &'a Path,
    /// The folder that contains PyTorch, and the packages in it that the package may import.
    torch: &'a Path,
    packages: [&'static str; TORCH.len()],
    stubs: Vec<&'a Path>,
    numpy: Option<&'a Path>,
    /// Where else PyTorch finds what it imports.
    path: &'a [PathBuf],
    library: &'a [PathBuf],
    left_out: [&'static str; LEFT_OUT.len()],
    module: &'a str,
    function: &'a str,
    #[serde(flatten)]
    torch_call: Flat<'a>,
    product: Option<&'a Product>,
    arguments: BTreeMap<String, Value>,
    tensors: Vec<PlacedTensor>,
    inouts: Vec<&'a str>,
    /// The file for each written tensor, in declared order.
    outputs: Vec<(&'a str, String)>,
}

/// A [`TorchCall`] whose fields are all written.
#[derive(Serialize)]
struct Flat<'a> {
    init: &'a [Value],
    keywords: &'a BTreeMap<String, Value>,
    constants: &'a BTreeMap<String, Value>,
    state: &'a BTreeMap<String, Option<String>>,
    names: &'a BTreeMap<String, String>,
    train: bool,
}

impl<'a> Flat<'a> {
    fn of(call: &'a TorchCall) -> Self {
        Flat {
            init: &call.init,
            keywords: &call.keywords,
            constants: &call.constants,
            state: &call.state,
            names: &call.names,
            train: call.train,
        }
    }
}

/// What a baseline is called in messages.
fn label(calls: &Callee) -> String {
    match calls {
        Callee::Function { file, function, .. } => format!("{file}::{function}"),
        Callee::Product(_) => "torch.matmul".into(),
    }
}

/// The command that starts the process.
pub(super) fn command(
    task: &Task,
    call: &Call,
    problem: &Problem,
    baseline: &BaselineCall<'_>,
    machine: &Machine,
) -> Result<Command, Response> {
    let interpreter = Interpreter::of(task.tool("python")?)?;
    let torch = task.tool("torch")?;
    let stubs =
        task.places.tools.iter().filter(|(name, _)| name.starts_with("torch-stub:")).map(|(_, path)| path.as_path());
    // A product needs no file, and an empty folder holds none.
    let root = match baseline.calls {
        Callee::Function { .. } => task.required("tree:baseline")?,
        Callee::Product(_) => call.path("none"),
    };
    let none = TorchCall::default();
    let (module, function, how, product) = match baseline.calls {
        Callee::Function { file, function, call } => (file.as_str(), function.as_str(), &**call, None),
        Callee::Product(product) => ("torch", "matmul", &none, Some(product)),
    };
    let described = Described {
        label: label(baseline.calls),
        device: machine.device,
        how: baseline.how,
        mode: baseline.mode,
        cold: baseline.cold,
        root: &root,
        torch,
        packages: TORCH,
        stubs: stubs.collect(),
        numpy: interpreter.numpy.as_deref(),
        path: &interpreter.folders,
        library: &interpreter.library,
        left_out: LEFT_OUT,
        module,
        function,
        torch_call: Flat::of(how),
        product,
        arguments: arguments(problem),
        tensors: problem.tensors.iter().map(PlacedTensor::of).collect(),
        inouts: inouts(problem),
        outputs: problem.written().enumerate().map(|(at, tensor)| (tensor.name.as_str(), output_file(at))).collect(),
    };
    let text = serde_json::to_vec(&described).map_err(|e| failed(format!("cannot describe the baseline: {e}")))?;
    call.write("call.json", &text)?;
    call.write("driver.py", DRIVER.as_bytes())?;
    let scratch = call.dir.path();
    let args = ["-S", "-s", "-P", "-B", "driver.py", "call.json"];
    let command = if machine.confined {
        let mut read = machine.read.clone();
        read.extend(interpreter.folders.iter().cloned());
        read.extend([root, torch.to_path_buf()]);
        let keep = Confinement {
            devices: machine.devices.clone(),
            scratch: Some(scratch.to_path_buf()),
            read,
            programs: true,
            keep: vec![],
            // Address space has no limit, because the driver reserves as much as all devices have.
            limits: Limits { die_with: Some(std::process::id()), ..Limits::default() },
        };
        let keep = serde_json::to_string(&keep).map_err(|e| failed(format!("cannot confine the baseline: {e}")))?;
        Command::own().args(["worker", "--confined", &keep]).arg(&interpreter.executable)
    } else {
        let limits = Limits { die_with: Some(std::process::id()), ..Limits::default() };
        Command::new(&interpreter.executable).limits(limits)
    };
    let mut command = command.args(args).dir(scratch);
    for (name, value) in environment(scratch) {
        command = command.env(name, value);
    }
    for (name, value) in &machine.env {
        command = command.env(name, value);
    }
    Ok(command)
}

/// The environment: caches and temporary files in the scratch folder, one process that compiles, and no variable by which PyTorch chooses code.
fn environment(scratch: &Path) -> Vec<(&'static str, String)> {
    let own = |name: &str| scratch.join(name).display().to_string();
    let folders = [
        ("TORCHINDUCTOR_CACHE_DIR", "inductor"),
        ("TRITON_CACHE_DIR", "triton"),
        ("TRITON_HOME", "triton-home"),
        ("TORCH_EXTENSIONS_DIR", "extensions"),
        ("PYTORCH_KERNEL_CACHE_PATH", "kernels"),
        ("XDG_CACHE_HOME", "cache"),
        ("HOME", "home"),
    ];
    let plain = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("LC_ALL", "C.UTF-8"),
        ("USER", "kforge"),
        ("PYTHONHASHSEED", "0"),
        // Processes of a pool would be children without a device.
        ("TORCHINDUCTOR_COMPILE_THREADS", "1"),
    ];
    let mut all: Vec<(&'static str, String)> = folders.into_iter().map(|(name, folder)| (name, own(folder))).collect();
    all.push(("TMPDIR", scratch.display().to_string()));
    all.extend(plain.into_iter().map(|(name, value)| (name, value.to_string())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_reads_only_what_it_is_told() {
        let own = include_str!("driver.py");
        let shared = include_str!("../oracle/torch_module.py");
        let torch_call = TorchCall::default();
        let described = Described {
            label: String::new(),
            device: "cpu",
            how: How::Eager,
            mode: None,
            cold: true,
            root: Path::new(""),
            torch: Path::new(""),
            packages: TORCH,
            stubs: vec![],
            numpy: None,
            path: &[],
            library: &[],
            left_out: LEFT_OUT,
            module: "",
            function: "",
            torch_call: Flat::of(&torch_call),
            product: None,
            arguments: BTreeMap::new(),
            tensors: vec![],
            inouts: vec![],
            outputs: vec![],
        };
        let described = serde_json::to_value(described).unwrap();
        let all = [own, shared].map(|text| text.split("call[\"").skip(1).collect::<Vec<_>>()).concat();
        let names: Vec<&str> = all.iter().filter_map(|rest| Some(rest.split_once("\"]")?.0)).collect();
        assert!(names.contains(&"inouts") && names.contains(&"names"), "{names:?}");
        for name in names {
            assert!(described.get(name).is_some(), "`{name}` is not described");
        }
    }

    #[test]
    fn caches_lie_in_the_scratch_folder_and_nothing_of_the_user_is_passed_on() {
        let all = environment(Path::new("/scratch"));
        let of = |name: &str| all.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
        for name in ["TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "HOME", "TMPDIR"] {
            assert!(of(name).is_some_and(|value| value.starts_with("/scratch")), "{name}");
        }
        assert_eq!(of("TORCHINDUCTOR_COMPILE_THREADS"), Some("1"));
    }
}
