//! References of the package in PyTorch. One confined process computes several sets of inputs, and it is a copy of one that has imported PyTorch, because that
//! takes longer than most references. The head of `torch_driver.py` documents what such a reference may rely on; `torch_call.py` and `torch_module.py` are what other programs for PyTorch
//! also use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::{Call, InFile, ended, heard, said_below};
use super::python::{Interpreter, NOWHERE, PYTHON_OPTIONS, PYTHON_VARIABLES, arguments, digests, places};
use super::source::Named;
use crate::message::Response;
use crate::python_server::PythonServer;
use crate::task::{Task, failed};
use kforge_foundation::process::End;
use kforge_numerics::reference::oracle::OracleOutput;
use kforge_project::toolchain::python::{LEFT_OUT, TORCH};
use kforge_types::model::torch::TorchCall;
use kforge_types::model::{DType, Problem, Role};

const DRIVER: &str = concat!(
    include_str!("known.py"),
    "\n\n",
    include_str!("read_call.py"),
    "\n\n",
    include_str!("torch_imports.py"),
    "\n\n",
    include_str!("torch_call.py"),
    "\n\n",
    include_str!("torch_module.py"),
    "\n\n",
    include_str!("torch_driver.py")
);
/// The exit status by which the driver reports that PyTorch cannot be imported.
pub(crate) const NO_TORCH: i32 = 4;

/// Where PyTorch is, as `torch_imports.py` reads it.
#[derive(Clone, Serialize)]
struct Libraries<'a> {
    /// The folder of the package, from which any module may be imported.
    root: &'a Path,
    /// The folder that contains PyTorch, the packages in it that may be imported, and stand-ins for libraries of CUDA.
    torch: &'a Path,
    packages: [&'static str; TORCH.len()],
    stubs: Vec<&'a Path>,
    numpy: Option<&'a Path>,
    library: &'a [PathBuf],
    left_out: [&'static str; LEFT_OUT.len()],
}

/// What is called, and what is called with.
#[derive(Serialize)]
struct Described<'a, R> {
    #[serde(flatten)]
    libraries: Libraries<'a>,
    module: &'a str,
    function: &'a str,
    #[serde(flatten)]
    rest: &'a R,
}

/// The call of a reference, as its driver reads it.
#[derive(Serialize)]
struct ReferenceCall<'a> {
    init: &'a [Value],
    keywords: &'a BTreeMap<String, Value>,
    constants: &'a BTreeMap<String, Value>,
    state: &'a BTreeMap<String, Option<String>>,
    names: &'a BTreeMap<String, String>,
    train: bool,
    casts: &'static str,
    /// The tensors that hold truth values.
    truths: Vec<&'a str>,
    arguments: BTreeMap<String, Value>,
    sets: Vec<Set>,
}

/// A set of inputs, and where its outputs go.
#[derive(Serialize)]
struct Set {
    inputs: Vec<(String, InFile)>,
    outputs: Vec<(String, InFile)>,
}

/// The floats in which a set was computed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Precision {
    /// The least precise floats that a reference asks for: `float64`, `float32`.
    floats: String,
    /// The first operation that gives them.
    operation: Option<String>,
    /// The line of the package that asks for it.
    place: Option<String>,
    /// Whether float64 was taken in their place.
    mapped: bool,
}

impl Precision {
    /// What people must know about it.
    pub fn said(&self) -> String {
        let Precision { floats, operation, place, mapped } = self;
        let Some(operation) = operation else {
            return "the reference was computed in float64: no operation gave a lower float".into();
        };
        let at = place.as_ref().map_or(String::new(), |place| format!(" at {place}"));
        match mapped {
            true => format!(
                "the reference casts to {floats} (`{operation}`{at}); it was computed in float64, casts included. If the casts are part of what is computed, \
                 state `casts = \"keep\"` in `reference`"
            ),
            false => format!(
                "the reference computes in {floats} (`{operation}`{at}), not in float64: expected values carry its rounding errors, and the tolerance must \
                 allow them"
            ),
        }
    }

    /// The floats in which the values were computed.
    pub fn floats(&self) -> &str {
        if self.mapped { "float64" } else { &self.floats }
    }

    /// Whether values were computed in floats below float64.
    pub fn is_low(&self) -> bool {
        self.floats() != "float64"
    }
}

/// Computes the expected values of several sets of inputs, and says in which precision.
pub(super) fn expected(
    task: &Task,
    problem: &Problem,
    sets: &[&Named],
    (file, function, torch): (&str, &str, &TorchCall),
    scale: bool,
) -> Result<Vec<(OracleOutput, Precision)>, Response> {
    let call = Call::new(task)?;
    let mut described = vec![];
    for (at, inputs) in sets.iter().enumerate() {
        let inputs = call.give(&format!("set{at}-in"), problem, inputs)?;
        let mut outputs = places(problem, |tensor| tensor.role != Role::Input);
        outputs.iter_mut().for_each(|(_, place)| place.file = format!("set{at}-{}", place.file));
        described.push(Set { inputs, outputs });
    }
    let outputs: Vec<Vec<(String, InFile)>> = described.iter().map(|set| set.outputs.clone()).collect();
    let truths = problem.tensors.iter().filter(|tensor| tensor.dtype == DType::Bool).map(|tensor| tensor.name.as_str());
    let described = ReferenceCall {
        init: &torch.init,
        keywords: &torch.keywords,
        constants: &torch.constants,
        state: &torch.state,
        names: &torch.names,
        train: torch.train,
        casts: if torch.keeps_casts { "keep" } else { "double" },
        truths: truths.collect(),
        arguments: arguments(problem),
        sets: described,
    };
    invoke(task, &call, (DRIVER, file, function), &described)?;
    let nothing = || failed(format!("`{file}::{function}` did not say in which precision it computed"));
    let said = std::fs::read(call.path("precision.json")).map_err(|_| nothing())?;
    let said: Vec<Precision> = serde_json::from_slice(&said).map_err(|_| nothing())?;
    if said.len() != sets.len() {
        return Err(nothing());
    }
    let mut all = vec![];
    for (places, precision) in outputs.iter().zip(said) {
        let mut output = OracleOutput::default();
        for (tensor, (_, place)) in problem.written().zip(places) {
            output.outputs.insert(tensor.name.clone(), call.take(tensor, &place.file)?);
            if scale && let Some(scale) = call.take_scale(tensor, &format!("{}.scale", place.file))? {
                output.scales.insert(tensor.name.clone(), scale);
            }
        }
        all.push((output, precision));
    }
    Ok(all)
}

/// Runs a program for PyTorch in the folder of a call. It reads what is called, and what is called with.
pub(super) fn invoke(
    task: &Task,
    call: &Call,
    (driver, file, function): (&str, &str, &str),
    rest: &impl Serialize,
) -> Result<(), Response> {
    let interpreter = Interpreter::of(task.tool("python")?)?;
    let (root, folder) = (task.required("tree:reference")?, task.tool("torch")?);
    let stubs =
        task.places.tools.iter().filter(|(name, _)| name.starts_with("torch-stub:")).map(|(_, path)| path.as_path());
    let libraries = Libraries {
        root: &root,
        torch: folder,
        packages: TORCH,
        stubs: stubs.collect(),
        numpy: interpreter.numpy.as_deref(),
        library: &interpreter.library,
        left_out: LEFT_OUT,
    };
    let cannot = |e: serde_json::Error| failed(format!("cannot describe the call: {e}"));
    // Nothing of the package is imported before the call.
    let imports = serde_json::to_value(Libraries { root: Path::new(NOWHERE), ..libraries.clone() }).map_err(cannot)?;
    let described = Described { libraries, module: file, function, rest };
    let text = serde_json::to_vec(&described).map_err(cannot)?;
    call.write("call.json", &text)?;
    call.write("driver.py", driver.as_bytes())?;
    let mut read: Vec<&Path> = interpreter.folders.iter().map(PathBuf::as_path).collect();
    read.extend([root.as_path(), folder]);
    // Isolates Python as for other references. No variable by which PyTorch or its libraries choose code, such as ATEN_CPU_CAPABILITY, is passed on: what the
    // processor decides is in the key.
    let server = PythonServer::new(&interpreter.executable, &PYTHON_OPTIONS, &PYTHON_VARIABLES).with_imports(
        include_str!("torch_imports.py"),
        imports,
        digests(task),
    );
    let finished = call.run_by(task, &server, ("driver.py", &["call.json"]), &read)?;
    match finished.end {
        end if end.success() => Ok(()),
        End::Exited(NO_TORCH) => {
            let why = heard(&finished);
            let python = interpreter.executable.display();
            Err(Response::Unavailable { why: format!("`{python}` cannot import PyTorch: {}", why.trim()) })
        }
        end => Err(said_below(&root, format!("`{file}::{function}` {}", ended(task, end)), &finished)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_foundation::process::{Command, run};
    use std::sync::atomic::AtomicBool;

    /// What `load` makes of `task.py` with these constants, in a package with these files: what the expression gives, or the message. None, with a message, if
    /// there is no Python.
    fn loaded(files: &[(&str, &str)], constants: &str, shown: &str) -> Option<String> {
        let module = include_str!("torch_module.py");
        let load = format!("module = load(root, \"task.py\", {constants})\nprint({shown})\n");
        ran(files, &format!("import os, sys\n{module}\n{load}"))
    }

    /// What a program prints whose `root` is a folder with these files. None, with a message, if there is no Python.
    fn ran(files: &[(&str, &str)], program: &str) -> Option<String> {
        let Some(python) = ["/usr/bin/python3", "/usr/local/bin/python3"].iter().map(Path::new).find(|p| p.exists())
        else {
            kforge_foundation::base::testing::skipped("there is no Python");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let script = format!("root = \"{}\"\n{program}", folder.path().display());
        let command = Command::new(python).args(["-I", "-S", "-B", "-c", &script]);
        let finished = run(&command, None, &AtomicBool::new(false)).unwrap();
        Some(heard(&finished).trim().to_string())
    }

    #[test]
    fn what_enters_no_key_is_refused_to_the_package_and_missing_for_libraries() {
        let known = include_str!("known.py");
        let look = "import importlib.util\n\
            found = importlib.util.find_spec('outside')\n\
            try:\n    import outside\nexcept ModuleNotFoundError as error:\n    why = error.name\n";
        let files = [
            ("package/own.py", "import inside\nimport outside\n"),
            ("libraries/inside/__init__.py", look),
            ("libraries/outside/__init__.py", ""),
            ("libraries/outside-1.0.dist-info/METADATA", "Name: outside\nVersion: 1.0\n"),
        ];
        let program = format!(
            "{known}\n\
             import sysconfig\n\
             folders = [sysconfig.get_path('stdlib'), sysconfig.get_path('platstdlib'), root + '/libraries/inside']\n\
             sys.path += [root + '/package', root + '/libraries']\n\
             OnlyKnown(root + '/package', folders, [], 'the library').stand_in()\n\
             try:\n    import own\nexcept ImportError as error:\n    print(error)\n\
             import inside, importlib.metadata\n\
             print(inside.found, inside.why, list(importlib.metadata.distributions()))\n"
        );
        let Some(said) = ran(&files, &program) else { return };
        assert!(said.starts_with("`outside` is neither of this package nor of the library nor of Python"), "{said}");
        assert!(said.ends_with("\nNone outside []"), "{said}");
    }

    const TASK: &str = "from helpers import DOUBLE, WIDTH\nimport sub.deep as deep\n\nROWS = 4\nTWICE = 2 * ROWS\n";
    const FILES: [(&str, &str); 5] = [
        ("task.py", TASK),
        ("helpers.py", "from other import FAR\n\nWIDTH = HEIGHT = 8\nDOUBLE = 2 * WIDTH\n"),
        ("other.py", "FAR = 1\n"),
        ("sub/__init__.py", ""),
        ("sub/deep.py", "HEIGHT = 3\nDEPTH = 5\n"),
    ];

    #[test]
    fn constants_reach_the_file_and_the_modules_that_it_imports() {
        let of = |constants: &str, shown: &str| loaded(&FILES, constants, shown);
        let Some(found) = of("{'ROWS': 7}", "module.TWICE, module.DOUBLE") else { return };
        assert_eq!(found, "14 16");
        // A name that only one of the imported modules sets, and one that names its module. What follows from a constant follows.
        assert_eq!(of("{'WIDTH': 5, 'DEPTH': 6}", "module.WIDTH, module.DOUBLE, module.deep.DEPTH").unwrap(), "5 10 6");
        assert_eq!(of("{'sub.deep.HEIGHT': 9, 'task.ROWS': 1}", "module.deep.HEIGHT, module.TWICE").unwrap(), "9 2");
        // A module that a helper imports is reached by its name only.
        assert_eq!(of("{'other.FAR': 2}", "sys.modules['helpers'].FAR").unwrap(), "2");
    }

    #[test]
    fn a_constant_that_no_module_or_more_than_one_sets_is_named() {
        let said = |constants: &str| loaded(&FILES, constants, "0");
        let Some(twice) = said("{'HEIGHT': 1}") else { return };
        assert_eq!(
            twice,
            "`constants` names `HEIGHT`, which `helpers`, `sub.deep` set: state one of them, as in `helpers.HEIGHT`"
        );
        let none = said("{'FAR': 1}").unwrap();
        assert!(none.starts_with("`constants` names `FAR`, but `task.py` sets no such constant at its top"), "{none}");
        let missing = said("{'helpers.NONE': 1}").unwrap();
        assert_eq!(missing, "`constants` names `helpers.NONE`, but `helpers.py` sets no such constant at its top");
        let elsewhere = said("{'json.decoder': 1}").unwrap();
        assert_eq!(
            elsewhere,
            "`constants` names `json.decoder`, but `task.py` imports no module `json` of the package"
        );
    }

    #[test]
    fn what_is_not_computed_as_stated_in_float64_is_said_with_its_place() {
        let plain = Precision { floats: "float64".into(), operation: None, place: None, mapped: false };
        assert!(plain.said().contains("in float64: no operation") && !plain.is_low());
        assert_eq!(plain.floats(), "float64");
        let low = Precision {
            floats: "float32".into(),
            operation: Some("aten._to_copy.default".into()),
            place: Some("task.py:3".into()),
            mapped: false,
        };
        let said = low.said();
        assert!(said.starts_with("the reference computes in float32 (`aten._to_copy.default` at task.py:3)"), "{said}");
        assert_eq!((low.floats(), low.is_low()), ("float32", true));
        let mapped = Precision { mapped: true, ..low };
        assert!(mapped.said().contains("computed in float64") && !mapped.is_low());
    }
}
