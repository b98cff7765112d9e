//! How the process of a kernel in PyTorch is started: its program, its call, its confinement and its environment. Knows files and variables; asks nothing.
//!
//! The kernel's files and the program lie where the process cannot write. It writes in a folder that is removed with it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::TorchKernel;
use super::memory::{Area, bytes, offset, size};
use crate::compilers::permitted;
use crate::confine::{self, Confinement};
use crate::message::Response;
use crate::oracle::python::{Interpreter, arguments};
use crate::task::{Task, failed};
use kforge_foundation::process::{Command, Limits, Room};
use kforge_project::toolchain::python::{LEFT_OUT, TORCH};
use kforge_types::model::baseline::How;
use kforge_types::model::{DType, Problem, Reference, Role, Tensor};

pub(super) const DRIVER: &str = concat!(
    include_str!("../oracle/known.py"),
    "\n\n",
    include_str!("../oracle/torch_module.py"),
    "\n\n",
    include_str!("watch.py"),
    "\n\n",
    include_str!("devices.py"),
    "\n\n",
    include_str!("samples.py"),
    "\n\n",
    include_str!("driver.py")
);

/// Memory that Python and PyTorch take, beyond what the kernel may take: without a device, and with its driver and libraries.
const OWN: [u64; 2] = [1 << 30, 8 << 30];
/// Address space that they take.
const ADDRESSES: u64 = 8 << 30;
/// The most processes: a kernel may compile something before its first call.
const PROCESSES: usize = 64;
/// The most bytes and files that it may leave in its folder.
const FILES: (u64, usize) = (256 << 20, 5000);

/// The call, as the driver reads it.
#[derive(Serialize)]
struct Described<'a> {
    device: &'static str,
    /// Whether tensors lie in memory of the device, apart from the caller's.
    apart: bool,
    /// The descriptor of the page for hand-overs, if calls are timed; the tensors are then in memory of another process.
    page: Option<i32>,
    /// The filter that seals the process, as hexadecimal digits, if calls are timed and the kernel has filters.
    seal: Option<String>,
    root: &'a Path,
    /// The names of the kernel's files.
    sources: Vec<&'a str>,
    /// The modules that it must not import.
    hidden: Vec<String>,
    /// The folder that contains PyTorch, and the packages in it that may be imported.
    torch: &'a Path,
    packages: [&'static str; TORCH.len()],
    stubs: Vec<&'a Path>,
    numpy: Option<&'a Path>,
    library: &'a [PathBuf],
    left_out: [&'static str; LEFT_OUT.len()],
    module: &'a str,
    function: &'a str,
    init: &'a [Value],
    keywords: &'a BTreeMap<String, Value>,
    constants: &'a BTreeMap<String, Value>,
    of_reference: &'a BTreeMap<String, Value>,
    state: &'a BTreeMap<String, Option<String>>,
    names: &'a BTreeMap<String, String>,
    stated: bool,
    /// Whether `torch.compile` is allowed.
    compiles: bool,
    /// How it runs, if it is a baseline, and the mode of `torch.compile`.
    how: Option<How>,
    mode: Option<&'a str>,
    arguments: BTreeMap<String, Value>,
    tensors: Vec<PlacedTensor<'a>>,
    inouts: Vec<&'a str>,
    /// Each written tensor, in declared order. The second part is unused: the driver's helpers take pairs.
    outputs: Vec<(&'a str, &'static str)>,
}

/// A tensor in its memory file.
#[derive(Serialize)]
struct PlacedTensor<'a> {
    name: &'a str,
    dtype: DType,
    shape: &'a [u64],
    /// Elements between neighbours along each axis.
    strides: &'a [u64],
    /// Bytes from the first to the last element.
    bytes: u64,
    fd: i32,
    /// The size of the file, and where the tensor begins in it.
    file: usize,
    offset: usize,
    /// Whether the kernel gets it.
    given: bool,
}

/// The command that starts the process in a folder of its own.
pub(super) fn command(
    task: &Task,
    problem: &Problem,
    kernel: &TorchKernel<'_>,
    memory: &[Area<'_>],
    folder: &Path,
) -> Result<Command, Response> {
    permitted(task, "kernels")?;
    let io = |e: io::Error| failed(format!("cannot prepare the kernel's process: {e}"));
    let interpreter = Interpreter::of(task.tool("python")?)?;
    let torch = task.tool("torch")?;
    let stubs: Vec<&Path> = task
        .places
        .tools
        .iter()
        .filter(|(name, _)| name.starts_with("torch-stub:"))
        .map(|(_, path)| path.as_path())
        .collect();
    let folder = folder.canonicalize().map_err(io)?;
    let [program, root, scratch] = ["program", "source", "work"].map(|name| folder.join(name));
    for made in [&program, &root, &scratch] {
        fs::create_dir(made).map_err(io)?;
    }
    for (name, text) in kernel.files {
        let path = root.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(io)?;
        }
        fs::write(path, text).map_err(io)?;
    }
    let seal = if kernel.shared.is_some() { confine::seal().map_err(io)? } else { None };
    let described = Described { seal, ..described(problem, kernel, memory, (&interpreter, torch, stubs, &root)) };
    let text = serde_json::to_vec(&described).map_err(|e| failed(format!("cannot describe the kernel: {e}")))?;
    let (driver, call) = (program.join("driver.py"), program.join("call.json"));
    fs::write(&driver, DRIVER).map_err(io)?;
    fs::write(&call, text).map_err(io)?;
    let mut read = interpreter.folders.clone();
    read.extend([root.clone(), program, torch.to_path_buf()]);
    read.extend(task.places.tools.iter().filter(|(name, _)| name.starts_with("torch")).map(|(_, path)| path.clone()));
    read.extend(kernel.on.iter().flat_map(|machine| machine.read.clone()));
    let inherited: Vec<&Arc<OwnedFd>> = match kernel.shared {
        Some(shared) => shared.descriptors().collect(),
        None => memory.iter().map(|area| area.file.descriptor()).collect(),
    };
    let buffers = bytes(problem).saturating_mul(8);
    let most = task.memory_limit.saturating_add(ADDRESSES).saturating_add(buffers);
    let keep = Confinement {
        scratch: Some(scratch.clone()),
        read,
        devices: kernel.on.map_or_else(Vec::new, |machine| machine.devices.clone()),
        programs: true,
        keep: inherited.iter().map(|descriptor| descriptor.as_raw_fd()).collect(),
        limits: Limits {
            // A driver reserves as many addresses as all devices have memory.
            address_space: kernel.on.is_none().then_some(most),
            open_files: Some(1024),
            die_with: Some(std::process::id()),
            ..Limits::default()
        },
    };
    let mut command = if kernel.on.is_none_or(|machine| machine.confined) {
        let keep = serde_json::to_string(&keep).map_err(|e| failed(format!("cannot confine the kernel: {e}")))?;
        Command::own().args(["worker", "--confined", &keep]).arg(&interpreter.executable)
    } else {
        Command::new(&interpreter.executable).limits(keep.limits)
    };
    let room = Room {
        processes: PROCESSES,
        memory: task.memory_limit.saturating_add(OWN[usize::from(kernel.on.is_some())]).saturating_add(buffers),
        folder: scratch.clone(),
        bytes: FILES.0,
        files: FILES.1,
    };
    command = command.args(["-S", "-s", "-P", "-B"]).arg(driver).arg(call).dir(&scratch).room(room);
    let of_machine = kernel.on.iter().flat_map(|machine| machine.env.clone());
    for (name, value) in environment(&scratch).into_iter().chain(of_machine) {
        command = command.env(name, value);
    }
    Ok(inherited.into_iter().fold(command, Command::inherit))
}

fn described<'a>(
    problem: &'a Problem,
    kernel: &TorchKernel<'a>,
    memory: &'a [Area<'a>],
    (interpreter, torch, stubs, root): (&'a Interpreter, &'a Path, Vec<&'a Path>, &'a Path),
) -> Described<'a> {
    let call = &kernel.launch.call;
    let both = problem.tensors.iter().filter(|tensor| tensor.role == Role::Inout);
    let placed = |tensor: &'a Tensor, fd, file, offset| PlacedTensor {
        name: &tensor.name,
        dtype: tensor.dtype,
        shape: &tensor.shape,
        strides: &tensor.strides,
        bytes: tensor.bytes(),
        fd,
        file,
        offset,
        given: tensor.role != Role::Output,
    };
    let tensors = match kernel.shared {
        Some(shared) => {
            let both = problem.tensors.iter().zip(&shared.tensors);
            both.map(|(tensor, at)| placed(tensor, at.descriptor.as_raw_fd(), at.bytes as usize, 0)).collect()
        }
        None => {
            let areas = memory.iter();
            areas.map(|area| placed(area.tensor, area.file.number(), size(area.tensor), offset())).collect()
        }
    };
    Described {
        device: kernel.on.map_or("cpu", |machine| machine.device),
        apart: kernel.on.is_some() && kernel.shared.is_none(),
        page: kernel.shared.map(|shared| shared.page.number()),
        seal: None,
        root,
        sources: kernel.files.keys().map(String::as_str).collect(),
        // A baseline is the reference.
        hidden: if kernel.how.is_some() { vec![] } else { hidden(&problem.reference) },
        torch,
        packages: TORCH,
        stubs,
        numpy: interpreter.numpy.as_deref(),
        library: &interpreter.library,
        left_out: LEFT_OUT,
        module: kernel.main,
        function: &kernel.launch.function,
        init: &call.init,
        keywords: &call.keywords,
        constants: &call.constants,
        of_reference: &kernel.launch.of_reference,
        state: &call.state,
        names: &call.names,
        stated: kernel.launch.stated,
        compiles: kernel.launch.compiles || kernel.how.is_some_and(|of| of.how == How::Compile),
        how: kernel.how.map(|of| of.how),
        mode: kernel.how.and_then(|of| of.mode),
        arguments: arguments(problem),
        tensors,
        inouts: both.map(|tensor| tensor.name.as_str()).collect(),
        outputs: problem.written().map(|tensor| (tensor.name.as_str(), "")).collect(),
    }
}

/// The module of the file that gives expected values, which the kernel must not import.
fn hidden(reference: &Reference) -> Vec<String> {
    match reference {
        Reference::Python { file, .. } | Reference::Torch { file, .. } => {
            let stem = Path::new(file).file_stem();
            stem.map(|stem| stem.to_string_lossy().into_owned()).into_iter().collect()
        }
        Reference::Builtin { .. } | Reference::Cpp { .. } => vec![],
    }
}

/// The whole environment: caches and temporary files in the scratch folder, one thread, and no variable by which PyTorch chooses code.
fn environment(scratch: &Path) -> Vec<(&'static str, String)> {
    let own = |name: &str| scratch.join(name).display().to_string();
    let folders = [
        ("TORCHINDUCTOR_CACHE_DIR", "inductor"),
        ("TRITON_CACHE_DIR", "triton"),
        ("TORCH_EXTENSIONS_DIR", "extensions"),
        ("XDG_CACHE_HOME", "cache"),
    ];
    let plain = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("LC_ALL", "C.UTF-8"),
        ("USER", "kforge"),
        ("PYTHONHASHSEED", "0"),
        ("OPENBLAS_NUM_THREADS", "1"),
        ("OMP_NUM_THREADS", "1"),
        ("MKL_NUM_THREADS", "1"),
        ("TORCHINDUCTOR_COMPILE_THREADS", "1"),
    ];
    let mut all: Vec<(&'static str, String)> = folders.into_iter().map(|(name, folder)| (name, own(folder))).collect();
    all.extend(["HOME", "TMPDIR"].map(|name| (name, scratch.display().to_string())));
    all.extend(plain.into_iter().map(|(name, value)| (name, value.to_string())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::model::torch::TorchLaunch;

    #[test]
    fn the_driver_reads_only_what_it_is_told() {
        let problem = Problem::of(vec![], Reference::builtin("sum", &[]));
        let (files, launch) = (BTreeMap::new(), TorchLaunch::default());
        let kernel = TorchKernel { files: &files, main: "", launch: &launch, on: None, shared: None, how: None };
        let interpreter = Interpreter { executable: PathBuf::new(), folders: vec![], numpy: None, library: vec![] };
        let described = described(&problem, &kernel, &[], (&interpreter, Path::new(""), vec![], Path::new("")));
        let described = serde_json::to_value(described).unwrap();
        let own = [include_str!("driver.py"), include_str!("devices.py"), include_str!("watch.py")];
        let texts = [&own[..], &[include_str!("../oracle/torch_module.py")]].concat();
        let all: Vec<&str> = texts.iter().flat_map(|text| text.split("call[\"").skip(1)).collect();
        let names: Vec<&str> = all.iter().filter_map(|rest| Some(rest.split_once("\"]")?.0)).collect();
        assert!(
            names.contains(&"of_reference")
                && names.contains(&"left_out")
                && names.contains(&"apart")
                && names.contains(&"seal"),
            "{names:?}"
        );
        for name in names {
            assert!(described.get(name).is_some(), "`{name}` is not described");
        }
    }

    #[test]
    fn the_file_of_the_reference_is_hidden() {
        let torch = Reference::Torch { file: "a/task.py".into(), function: "M".into(), call: Box::default() };
        assert_eq!(hidden(&torch), ["task"]);
        assert!(hidden(&Reference::builtin("sum", &[])).is_empty());
    }
}
