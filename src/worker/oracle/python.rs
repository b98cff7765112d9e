//! Functions of the package in Python: references, generators of inputs, checks. Each call is a confined process. What such a function may expect is
//! written at the head of `driver.py`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::{Call, InFile, said};
use super::source::Named;
use crate::model::{Problem, Role, Scalar, Tensor};
use crate::process::{Command, run};
use crate::record::params::Trial;
use crate::reference::oracle::OracleOutput;
use crate::reference::{Values, float, generate};
use crate::toolchain::python::LEFT_OUT;
use crate::worker::message::Response;
use crate::worker::task::{Task, failed};

const DRIVER: &str = include_str!("driver.py");
/// The exit status by which the driver says that there is no numpy.
const NO_NUMPY: i32 = 3;

/// What the driver reads.
#[derive(Serialize)]
struct Described<'a> {
    task: &'static str,
    root: &'a Path,
    /// The folder that numpy is in.
    numpy: Option<&'a Path>,
    /// The folders of Python's own library.
    library: &'a [PathBuf],
    /// Folders within these that nothing may be imported from.
    left_out: [&'static str; LEFT_OUT.len()],
    module: &'a str,
    function: &'a str,
    arguments: BTreeMap<String, Value>,
    inputs: Vec<(String, InFile)>,
    outputs: Vec<(String, InFile)>,
}

/// Expected values by a function.
pub(super) fn expected(
    task: &Task,
    problem: &Problem,
    inputs: &Named,
    file: &str,
    function: &str,
    scale: bool,
) -> Result<OracleOutput, Response> {
    let call = Call::new(task)?;
    let inputs = call.give("in", problem, inputs)?;
    let outputs = places(problem, |tensor| tensor.role != Role::Input);
    let described = ("reference", file, function);
    invoke(task, &call, described, arguments(problem), inputs, outputs.clone())?;
    let mut output = OracleOutput::default();
    for (tensor, (_, place)) in problem.written().zip(&outputs) {
        output.outputs.insert(tensor.name.clone(), call.take(tensor, &place.file)?);
        if scale && let Some(scale) = call.take_scale(tensor, &format!("{}.scale", place.file))? {
            output.scales.insert(tensor.name.clone(), scale);
        }
    }
    Ok(output)
}

/// Inputs by a function; those it does not make are drawn as usual. Rounded to what each tensor's type can hold.
pub(super) fn inputs(
    task: &Task,
    problem: &Problem,
    trial: &Trial,
    file: &str,
    function: &str,
) -> Result<Named, Response> {
    let call = Call::new(task)?;
    let mut arguments = arguments(problem);
    arguments.insert("seed".into(), trial.seed.into());
    arguments.insert("distribution".into(), trial.distribution.clone().into());
    let outputs = places(problem, |tensor| tensor.role != Role::Output);
    invoke(task, &call, ("inputs", file, function), arguments, vec![], outputs.clone())?;
    let made = outputs.iter().filter(|(_, place)| call.path(&place.file).exists());
    let mut values = Named::new();
    for (name, place) in made {
        let Some(tensor) = problem.tensor(name) else { continue };
        values.insert(name.clone(), float::round_values(tensor.dtype, &call.take(tensor, &place.file)?));
    }
    let drawn = Problem { generate_inputs: None, ..problem.clone() };
    let drawn = generate::inputs(&drawn, trial).map_err(|e| failed(format!("cannot make inputs: {e}")))?;
    for (name, drawn) in drawn {
        values.entry(name).or_insert(drawn);
    }
    Ok(values)
}

/// Which elements of an output may stand, by a function of the package.
pub(in crate::worker) fn accepted(
    task: &Task,
    problem: &Problem,
    inputs: &Named,
    output: (&Tensor, &Values, &Values),
    place: (&str, &str),
) -> Result<Vec<bool>, Response> {
    let (tensor, got, want) = output;
    let call = Call::new(task)?;
    let mut given = call.give("in", problem, inputs)?;
    for (name, values) in [("got", got), ("want", want)] {
        call.write(name, &values.to_le_bytes())?;
        given.push((name.to_string(), InFile::of(tensor, name.to_string())));
    }
    let mut verdicts = InFile::of(tensor, "accepted".to_string());
    verdicts.kind = "int64";
    let outputs = vec![(tensor.name.clone(), verdicts.clone())];
    invoke(task, &call, ("check", place.0, place.1), arguments(problem), given, outputs)?;
    let bytes = std::fs::read(call.path(&verdicts.file)).unwrap_or_default();
    match super::source::from_le_bytes(&bytes, false) {
        Values::Int(flags) if flags.len() == verdicts.len() => Ok(flags.into_iter().map(|flag| flag != 0).collect()),
        _ => Err(failed(format!("the check of `{}` did not say which elements may stand", tensor.name))),
    }
}

fn places(problem: &Problem, wanted: impl Fn(&Tensor) -> bool) -> Vec<(String, InFile)> {
    let wanted = problem.tensors.iter().enumerate().filter(|(_, tensor)| wanted(tensor));
    wanted.map(|(at, tensor)| (tensor.name.clone(), InFile::of(tensor, format!("out{at}")))).collect()
}

/// Dims and params by name.
fn arguments(problem: &Problem) -> BTreeMap<String, Value> {
    let dims = problem.dims.iter().map(|(name, value)| (name.clone(), Value::from(*value)));
    let params = problem.params.iter().map(|param| {
        let value = match param.value {
            Scalar::Bool(b) => Value::from(b),
            Scalar::Int(i) => Value::from(i),
            // What the kernel gets is the value in its type.
            Scalar::Float(f) => Value::from(float::round_to(param.dtype, f)),
        };
        (param.name.clone(), value)
    });
    dims.chain(params).collect()
}

fn invoke(
    task: &Task,
    call: &Call,
    (what, module, function): (&'static str, &str, &str),
    arguments: BTreeMap<String, Value>,
    inputs: Vec<(String, InFile)>,
    outputs: Vec<(String, InFile)>,
) -> Result<(), Response> {
    let interpreter = Interpreter::of(task.tool("python")?)?;
    let root = task.required("tree:reference")?;
    let described = Described {
        task: what,
        root: &root,
        numpy: interpreter.numpy.as_deref(),
        library: &interpreter.library,
        left_out: LEFT_OUT,
        module,
        function,
        arguments,
        inputs,
        outputs,
    };
    let text = serde_json::to_vec(&described).map_err(|e| failed(format!("cannot describe the call: {e}")))?;
    call.write("call.json", &text)?;
    call.write("driver.py", DRIVER.as_bytes())?;
    let mut read: Vec<&Path> = interpreter.folders.iter().map(PathBuf::as_path).collect();
    read.push(&root);
    // Nothing of what is installed but what the driver lets in, nor bytecode beside the sources; hashes in one order; as many threads as a digest can stand: one.
    let args = ["-S", "-s", "-P", "-B", "driver.py", "call.json"];
    let env =
        [("PYTHONHASHSEED", "0"), ("OPENBLAS_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "1"), ("MKL_NUM_THREADS", "1")];
    let finished = call.run(task, &interpreter.executable, &args, &read, &env)?;
    match finished.end {
        end if end.success() => Ok(()),
        crate::process::End::Exited(NO_NUMPY) => Err(Response::Unavailable {
            why: format!("the reference needs numpy: `{} -m pip install numpy`", interpreter.executable.display()),
        }),
        end => Err(said(format!("`{module}::{function}` {end}"), &finished)),
    }
}

/// A Python as it sees itself.
#[derive(Debug, Clone, Deserialize)]
struct Interpreter {
    /// The program itself, behind links and wrappers.
    executable: PathBuf,
    /// Folders it must read.
    folders: Vec<PathBuf>,
    /// The folder that numpy is in.
    numpy: Option<PathBuf>,
    /// The folders of its own library.
    library: Vec<PathBuf>,
}

/// Interpreters by path: each is asked once in a worker's life.
static KNOWN: Mutex<BTreeMap<PathBuf, Interpreter>> = Mutex::new(BTreeMap::new());

const ASK: &str = r#"
import importlib.util, json, os, sys, sysconfig
spec = importlib.util.find_spec("numpy")
numpy = os.path.dirname(os.path.dirname(os.path.abspath(spec.origin))) if spec and spec.origin else None
paths = sysconfig.get_paths()
print(json.dumps({
    "executable": sys.executable,
    "folders": [sys.prefix, sys.base_prefix, sys.exec_prefix] + sys.path,
    "numpy": numpy,
    "library": [paths["stdlib"], paths["platstdlib"]],
}))
"#;

impl Interpreter {
    fn of(path: &Path) -> Result<Self, Response> {
        if let Some(known) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(path) {
            return Ok(known.clone());
        }
        let ask = Command::new(path).args(["-s", "-P", "-c", ASK]).env("PATH", "/usr/bin:/bin");
        let finished = run(&ask, Some(Duration::from_secs(60)), &AtomicBool::new(false))
            .map_err(|e| failed(format!("cannot ask Python where it is: {e}")))?;
        let answer: Option<Interpreter> = serde_json::from_str(&finished.stdout.text()).ok();
        let Some(mut found) = answer else {
            return Err(said(
                format!("cannot ask Python where it is: `{}` {}", path.display(), finished.end),
                &finished,
            ));
        };
        found.folders.retain(|folder| folder.is_absolute());
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_path_buf(), found.clone());
        Ok(found)
    }
}
