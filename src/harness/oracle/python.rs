//! Functions of the package in Python: references, generators of inputs, checks. Each call is a confined copy of a process that has imported numpy. The head of
//! `driver.py` documents what such a function may rely on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::{Call, InFile, ended, said, said_below};
use super::source::Named;
use crate::compare::{Accepted, CheckResult};
use crate::message::Response;
use crate::python_server::PythonServer;
use crate::task::{Task, failed};
use kforge_foundation::base::Digest;
use kforge_foundation::process::{Command, run};
use kforge_numerics::reference::oracle::OracleOutput;
use kforge_numerics::reference::{Values, float, logical_len};
use kforge_project::toolchain::python::LEFT_OUT;
use kforge_types::model::{Problem, Role, Scalar, Tensor, real};
use kforge_types::record::params::Trial;

/// What may be imported, then the driver: one program.
const DRIVER: &str = concat!(
    include_str!("known.py"),
    "\n\n",
    include_str!("read_call.py"),
    "\n\n",
    include_str!("numpy_imports.py"),
    "\n\n",
    include_str!("driver.py")
);
/// The maximum number of characters of a check's message.
const MOST_WORDS: usize = 2000;
/// The exit status by which the driver reports that numpy is missing.
const NO_NUMPY: i32 = 3;
/// In place of the folder of a package: a file that no module is below.
pub(super) const NOWHERE: &str = "/dev/null";
/// Isolates Python: no installed packages except those that a driver admits, and no bytecode beside the sources.
pub(super) const PYTHON_OPTIONS: [&str; 4] = ["-S", "-s", "-P", "-B"];
/// The whole environment of Python. Hashes are fixed, and one thread keeps sums reproducible.
pub(super) const PYTHON_VARIABLES: [(&str, &str); 5] = [
    ("PYTHONHASHSEED", "0"),
    ("OPENBLAS_NUM_THREADS", "1"),
    ("OMP_NUM_THREADS", "1"),
    ("MKL_NUM_THREADS", "1"),
    // Otherwise PyTorch loads what other installed packages offer it.
    ("TORCH_DEVICE_BACKEND_AUTOLOAD", "0"),
];

/// Where numpy is, as `numpy_imports.py` reads it.
#[derive(Serialize)]
struct Libraries<'a> {
    /// The folder of the package, from which any module may be imported.
    root: &'a Path,
    /// The folder that contains numpy.
    numpy: Option<&'a Path>,
    /// The folders of Python's own library.
    library: &'a [PathBuf],
    /// Folders in the library from which nothing may be imported.
    left_out: [&'static str; LEFT_OUT.len()],
}

/// The call, as the driver reads it.
#[derive(Serialize)]
struct Described<'a> {
    task: &'static str,
    #[serde(flatten)]
    libraries: Libraries<'a>,
    module: &'a str,
    function: &'a str,
    arguments: BTreeMap<String, Value>,
    inputs: Vec<(String, InFile)>,
    outputs: Vec<(String, InFile)>,
    checks: Vec<CheckedOutput>,
}

impl<'a> Described<'a> {
    /// A call of a function, given as the task, the function's file and its name.
    fn new(
        (task, module, function): (&'static str, &'a str, &'a str),
        problem: &Problem,
        inputs: Vec<(String, InFile)>,
        outputs: Vec<(String, InFile)>,
    ) -> Self {
        let arguments = arguments(problem);
        Described {
            task,
            libraries: Libraries { root: Path::new(""), numpy: None, library: &[], left_out: LEFT_OUT },
            module,
            function,
            arguments,
            inputs,
            outputs,
            checks: vec![],
        }
    }
}

/// Computes expected values with a function.
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
    invoke(task, &call, Described::new(("reference", file, function), problem, inputs, outputs.clone()))?;
    let mut output = OracleOutput::default();
    for (tensor, (_, place)) in problem.written().zip(&outputs) {
        output.outputs.insert(tensor.name.clone(), call.take(tensor, &place.file)?);
        if scale && let Some(scale) = call.take_scale(tensor, &format!("{}.scale", place.file))? {
            output.scales.insert(tensor.name.clone(), scale);
        }
    }
    Ok(output)
}

/// Makes inputs with a function: those that it returns, each rounded to the type of its tensor.
pub(super) fn inputs(
    task: &Task,
    problem: &Problem,
    trial: &Trial,
    file: &str,
    function: &str,
) -> Result<Named, Response> {
    let call = Call::new(task)?;
    let outputs = places(problem, |tensor| tensor.role != Role::Output);
    let mut described = Described::new(("inputs", file, function), problem, vec![], outputs.clone());
    described.arguments.insert("seed".into(), trial.seed.into());
    described.arguments.insert("distribution".into(), trial.distribution.clone().into());
    invoke(task, &call, described)?;
    made(&call, problem, &outputs)
}

/// The inputs that a function wrote, each rounded to the type of its tensor.
pub(super) fn made(call: &Call, problem: &Problem, places: &[(String, InFile)]) -> Result<Named, Response> {
    let mut values = Named::new();
    for (name, place) in places.iter().filter(|(_, place)| call.path(&place.file).exists()) {
        let Some(tensor) = problem.tensor(name) else { continue };
        values.insert(name.clone(), float::round_values(tensor.dtype, &call.take(tensor, &place.file)?));
    }
    Ok(values)
}

/// One answer to check.
#[derive(Serialize)]
struct CheckedOutput {
    /// The origin of the answer, for messages: the kernel, or a null candidate.
    whose: String,
    got: InFile,
    /// The file for one truth value per element, a byte each, if the function judges elements.
    accepted: String,
}

/// The driver's reply about one answer.
#[derive(Deserialize)]
struct DriverReply {
    /// None if the function judges elements.
    whole: Option<bool>,
    message: Option<String>,
}

/// Asks a function of the package about answers for one output, each given with its origin. One process checks them all.
pub fn checked(
    task: &Task,
    problem: &Problem,
    inputs: &Named,
    (tensor, want): (&Tensor, &Values),
    answers: &[(String, &Values)],
    (file, function): (&str, &str),
) -> Result<Vec<CheckResult>, Response> {
    let call = Call::new(task)?;
    let mut given = call.give("in", problem, inputs)?;
    call.write("want", &float::round_values(tensor.dtype, want).to_le_bytes())?;
    given.push(("want".to_string(), InFile::of(tensor, "want".to_string())));
    let mut asked = vec![];
    for (at, (whose, got)) in answers.iter().enumerate() {
        let name = format!("got{at}");
        call.write(&name, &float::round_values(tensor.dtype, got).to_le_bytes())?;
        let (got, accepted) = (InFile::of(tensor, name), format!("accepted{at}"));
        asked.push(CheckedOutput { whose: whose.clone(), got, accepted });
    }
    let outputs = vec![(tensor.name.clone(), InFile::of(tensor, String::new()))];
    let described = Described { checks: asked, ..Described::new(("check", file, function), problem, given, outputs) };
    invoke(task, &call, described)?;
    let nothing = || {
        failed(format!("the check `{file}::{function}` did not say which elements of `{}` are acceptable", tensor.name))
    };
    let said = std::fs::read(call.path("said.json")).map_err(|_| nothing())?;
    let said: Vec<DriverReply> = serde_json::from_slice(&said).map_err(|_| nothing())?;
    if said.len() != answers.len() {
        return Err(nothing());
    }
    let hear = |(at, answered): (usize, DriverReply)| {
        let accepted = match answered.whole {
            Some(all) => Accepted::Whole(all),
            None => {
                let bytes = std::fs::read(call.path(&format!("accepted{at}"))).map_err(|_| nothing())?;
                if bytes.len() != logical_len(tensor) {
                    return Err(nothing());
                }
                Accepted::Elements(bytes.into_iter().map(|byte| byte != 0).collect())
            }
        };
        Ok(CheckResult { accepted, message: answered.message.map(|text| words(&text)) })
    };
    said.into_iter().enumerate().map(hear).collect()
}

/// A check's message in a form that can be shown anywhere: limited in length and without control characters.
fn words(text: &str) -> String {
    let plain = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
    let mut text: String = text.trim().chars().map(plain).take(MOST_WORDS + 1).collect();
    if text.chars().count() > MOST_WORDS {
        text.pop();
        text.push('…');
    }
    text
}

pub(super) fn places(problem: &Problem, wanted: impl Fn(&Tensor) -> bool) -> Vec<(String, InFile)> {
    let wanted = problem.tensors.iter().enumerate().filter(|(_, tensor)| wanted(tensor));
    wanted.map(|(at, tensor)| (tensor.name.clone(), InFile::of(tensor, format!("out{at}")))).collect()
}

/// The values of dims and params by name.
pub(crate) fn arguments(problem: &Problem) -> BTreeMap<String, Value> {
    let dims = problem.dims.iter().map(|(name, value)| (name.clone(), Value::from(*value)));
    let params = problem.params.iter().map(|param| {
        let value = match param.value {
            Scalar::Bool(b) => Value::from(b),
            Scalar::Int(i) => Value::from(i),
            // The kernel, too, gets the value rounded to its type.
            // JSON has no infinities and NaNs: the driver reads their words.
            Scalar::Float(f) => match float::round_to(param.dtype, f) {
                value if value.is_finite() => Value::from(value),
                value => real::word(value).map_or(Value::Null, Value::from),
            },
        };
        (param.name.clone(), value)
    });
    dims.chain(params).collect()
}

fn invoke(task: &Task, call: &Call, described: Described<'_>) -> Result<(), Response> {
    let interpreter = Interpreter::of(task.tool("python")?)?;
    let root = task.required("tree:reference")?;
    let libraries = |root| Libraries {
        root,
        numpy: interpreter.numpy.as_deref(),
        library: &interpreter.library,
        left_out: LEFT_OUT,
    };
    let cannot = |e: serde_json::Error| failed(format!("cannot describe the call: {e}"));
    let described = Described { libraries: libraries(&root), ..described };
    let text = serde_json::to_vec(&described).map_err(cannot)?;
    call.write("call.json", &text)?;
    call.write("driver.py", DRIVER.as_bytes())?;
    let mut read: Vec<&Path> = interpreter.folders.iter().map(PathBuf::as_path).collect();
    read.push(&root);
    // Nothing of the package is imported before the call.
    let imports = serde_json::to_value(libraries(Path::new(NOWHERE))).map_err(cannot)?;
    let server = PythonServer::new(&interpreter.executable, &PYTHON_OPTIONS, &PYTHON_VARIABLES).with_imports(
        include_str!("numpy_imports.py"),
        imports,
        digests(task),
    );
    let finished = call.run_by(task, &server, ("driver.py", &["call.json"]), &read)?;
    match finished.end {
        end if end.success() => Ok(()),
        kforge_foundation::process::End::Exited(NO_NUMPY) => {
            Err(Response::Unavailable { why: no_numpy(&interpreter.executable) })
        }
        end => {
            let Described { task: what, module, function, .. } = described;
            let the = if what == "check" { "the check " } else { "" };
            Err(said_below(&root, format!("{the}`{module}::{function}` {}", ended(task, end)), &finished))
        }
    }
}

/// The digests of the interpreter and of the libraries of a task.
pub(super) fn digests(task: &Task) -> Vec<Option<Digest>> {
    ["toolchain:python", "toolchain:torch"].map(|name| task.spec.inputs.get(name).and_then(|input| input.digest)).into()
}

/// What is said where numpy is missing: for which Python, and how to get it.
fn no_numpy(python: &Path) -> String {
    let python = python.display();
    format!(
        "numpy is missing for `{python}`: install it with `{python} -m pip install numpy`, or set another Python with the setting `toolchain.python`; \
         references in Python need it"
    )
}

/// A Python interpreter's description of itself.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Interpreter {
    /// The program itself, with links and wrappers resolved.
    pub(crate) executable: PathBuf,
    /// Folders that it must read.
    pub(crate) folders: Vec<PathBuf>,
    /// The folder that contains numpy.
    pub(crate) numpy: Option<PathBuf>,
    /// The folders of its own library.
    pub(crate) library: Vec<PathBuf>,
}

/// Known interpreters by path. A worker asks each only once.
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
    pub(crate) fn of(path: &Path) -> Result<Self, Response> {
        if let Some(known) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(path) {
            return Ok(known.clone());
        }
        let ask = Command::new(path).args(["-s", "-P", "-c", ASK]).env("PATH", "/usr/bin:/bin");
        let finished = run(&ask, Some(Duration::from_secs(60)), &AtomicBool::new(false))
            .map_err(|e| failed(format!("cannot ask Python for its paths: {e}")))?;
        let answer: Option<Interpreter> = serde_json::from_str(&finished.stdout.text()).ok();
        let Some(mut found) = answer else {
            return Err(said(
                format!("cannot ask Python for its paths: `{}` {}", path.display(), finished.end),
                &finished,
            ));
        };
        found.folders.retain(|folder| folder.is_absolute());
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_path_buf(), found.clone());
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_numpy_is_said_first_with_its_python_and_the_remedy() {
        let said = no_numpy(Path::new("/opt/bin/python3"));
        let start = "numpy is missing for `/opt/bin/python3`: install it with `/opt/bin/python3 -m pip install numpy`";
        assert!(said.starts_with(start), "{said}");
    }
}
