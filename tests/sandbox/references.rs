//! References, inputs and comparisons in C++ and Python: their values are used, and forbidden operations are named.

use std::fs;
use std::process::Command;
use std::time::Duration;

use kforge::harness::message::Response;
use kforge::model::{Compare, InputsFunction, Reference};
use kforge::record::StepKind;
use kforge::record::params::Expected;

use crate::Test;
use crate::python::python;
use crate::steps::{Bench, COLS, GOOD, REFERENCE, ROWS, asked, kinds, problem};

pub(crate) const TESTS: &[Test] = &[
    ("a_cpp_reference_and_its_scale_are_taken", cpp_reference),
    ("a_cpp_reference_that_fails_says_so", cpp_failure),
    ("a_reference_that_does_not_end_is_told_with_the_setting_that_ended_it", endless),
    ("a_python_reference_is_taken", python_reference),
    ("inputs_and_checks_in_python_are_taken", python_inputs),
];

fn cpp_reference() {
    let bench = Bench::plain();
    bench.oracle();
    let read = |name: &str| fs::read(bench.dir.path().join("out").join(name)).unwrap();
    let expected: Expected = serde_json::from_slice(&read("expected")).unwrap();
    assert_eq!(expected.outputs["y"].size(), ROWS * COLS * 8);
    assert_eq!(expected.scales["y"].size(), ROWS * COLS * 8);
    let nulls: kforge::record::params::NullsObserved = serde_json::from_slice(&read("nulls")).unwrap();
    let names: Vec<_> = nulls.candidates.keys().map(String::as_str).collect();
    for name in ["another seed", "constant 1", "copy of x", "inputs rounded to f16", "zeros"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert_eq!(nulls.candidates["zeros"][0].gross.as_ref().unwrap().first.got, "0");
}

fn cpp_failure() {
    let bench = Bench::plain();
    let failure = |reference: &str| {
        bench.file("in/tree-reference/ref.cpp", reference.as_bytes());
        let params = asked(&problem(), &[]);
        match bench.step(StepKind::Oracle, serde_json::to_value(params).unwrap()) {
            Response::Failed { message, notes } => {
                (message, notes.first().map(|n| n.message.clone()).unwrap_or_default())
            }
            other => panic!("{other:?}"),
        }
    };
    let (message, said) = failure(&REFERENCE.replace("\"w\"", "\"v\""));
    assert_eq!(
        (message.as_str(), said.as_str()),
        ("`ref.cpp::scale_rows` exited with 1", "there is no float input `v`")
    );
    for (edit, says) in [
        (REFERENCE.replace("i = 0;", "i = 1;"), "`y` is not written: 1 of 210 elements, the first at 0"),
        (
            REFERENCE.replace("y[i] =", "y[i] +="),
            "`y` is added to before it is set (it does not begin with zeros): 210 of 210 elements, the first at 0",
        ),
        (
            REFERENCE.replace("s[i] = ", "if (i % 2) s[i] = "),
            "`scale of y` is not written: 105 of 210 elements, the first at 0",
        ),
    ] {
        assert_eq!(failure(&edit), ("`ref.cpp::scale_rows` exited with 1".into(), says.into()));
    }
    let (message, said) = failure("not C++");
    assert!(message.starts_with("cannot compile the reference `ref.cpp`: the compiler exited with 1"), "{message}");
    assert!(said.starts_with("ref.cpp:1:") && said.contains("error"), "{said}");
    let (message, said) =
        failure(&format!("#include <cassert>\n{REFERENCE}").replace("    for", "    assert(rows > 9);\n    for"));
    assert!(message.starts_with("`ref.cpp::scale_rows` killed by signal 6"), "{message}");
    assert!(said.contains(" ref.cpp:7: ") && said.contains("rows > 9"), "{said}");
    let other = tempfile::tempdir().unwrap();
    let header = other.path().join("other.h");
    fs::write(&header, "").unwrap();
    let (message, said) = failure(&format!("#include \"{}\"\n{REFERENCE}", header.display()));
    assert!(message.starts_with("cannot compile the reference `ref.cpp`"), "{message}");
    assert!(said.contains(&format!("{}: Permission denied", header.display())), "{said}");
    assert!(said.contains("[dependencies]"), "{said}");
    let (message, _) = failure(&format!("asm(\".incbin \\\"{}\\\"\");\n{REFERENCE}", header.display()));
    assert!(message.contains("kforge does not track") && message.contains(".incbin"), "{message}");
    // An assembled name that no scan of the assembly finds.
    fs::write(&header, "secret_of_the_user").unwrap();
    let hidden = format!("asm(\".irp part, bin\\n.inc\\\\part \\\"{}\\\"\\n.endr\");\n{REFERENCE}", header.display());
    let (message, said) = failure(&hidden);
    assert!(message.starts_with("cannot compile the reference `ref.cpp`"), "{message}");
    assert!(said.contains("other.h") && !said.contains("secret_of_the_user"), "{said}");
    let opens = "if (socket(2, 1, 0) < 0) std::exit(9); const int64_t rows =";
    let network = REFERENCE.replace("const int64_t rows =", opens);
    assert_eq!(failure(&format!("#include <sys/socket.h>\n{network}")).0, "`ref.cpp::scale_rows` exited with 9");
}

fn endless() {
    let second = |bench: Bench, function: &str| {
        let bench = Bench { run: Duration::from_secs(1), ..bench };
        match bench.step(StepKind::Oracle, serde_json::to_value(asked(&bench.problem, &[])).unwrap()) {
            Response::Failed { message, .. } => {
                assert_eq!(message, format!("`{function}` timed out after 1 s (setting `build.time-limit`)"));
            }
            other => panic!("{other:?}"),
        }
    };
    let bench = Bench::plain();
    bench.file("in/tree-reference/ref.cpp", REFERENCE.replace("++i", "i = 0").as_bytes());
    second(bench, "ref.cpp::scale_rows");
    if let Some(bench) = python_bench("def scale_rows(x):\n    while True:\n        pass\n") {
        second(bench, "ref.py::scale_rows");
    }
}

/// A bench with a reference in Python; none on a machine without numpy.
fn python_bench(reference: &str) -> Option<Bench> {
    python()?;
    let mut bench = Bench::plain();
    bench.problem.reference = Reference::Python { file: "ref.py".into(), function: "scale_rows".into() };
    bench.file("in/tree-reference/ref.py", reference.as_bytes());
    bench.file("in/tree-reference/helper.py", b"def add(a, b):\n    return a + b\n");
    Some(bench)
}

fn python_reference() {
    let good = "import numpy\nimport helper\ndef scale_rows(x, w, bias):\n    return {'y': helper.add(x * w, bias), 'y.scale': numpy.abs(x * w) + 1}\n";
    let Some(bench) = python_bench(good) else { return };
    let seen = bench.see(GOOD);
    assert_eq!(kinds(&seen), []);
    assert!(seen.trials[0].outputs[0].gross.is_none(), "{:?}", seen.findings);
    let refused = |reference: &str| {
        bench.file("in/tree-reference/ref.py", reference.as_bytes());
        let params = asked(&bench.problem, &[]);
        match bench.step(StepKind::Oracle, serde_json::to_value(params).unwrap()) {
            Response::Failed { notes, .. } => notes[0].message.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        refused(&good.replace("(x, w, bias)", "(x, v)")),
        "`scale_rows` asks for `v`; there are bias, cols, rows, w, x"
    );
    assert_eq!(refused("def scale_rows(x):\n    return x[0]\n"), "`y` has the shape [70], expected [3, 70]");
    // Holds whether pip is installed or not. Modules beside numpy are found, and named in the message.
    let said = refused("import pip\ndef scale_rows(x):\n    return x\n");
    assert!(said.contains("No module named 'pip'") || said.contains("`pip` is neither of this package"), "{said}");
    // Machine code and compiled modules enter no key. `python3 -m py_compile` leaves them.
    let place = bench.dir.path().join("in/tree-reference");
    let compiles = "import py_compile; py_compile.compile('helper.py', cfile='compiled.pyc', doraise=True)";
    let made = Command::new(python().unwrap()).args(["-c", compiles]).current_dir(&place).status().unwrap();
    assert!(made.success() && place.join("compiled.pyc").exists());
    let said = refused("import compiled\ndef scale_rows(x):\n    return x\n");
    assert!(said.contains("`compiled` is compiled code of this package (compiled.pyc)"), "{said}");
    assert!(refused("import socket\ndef scale_rows(x):\n    socket.socket()\n").contains("PermissionError"));
    assert!(refused("def scale_rows(x):\n    open('/etc/passwd')\n").contains("PermissionError"));
    // Other files of a package go before installed ones of the same name; numpy is imported before any of them.
    bench.file("in/tree-reference/ref.py", good.replace("import helper", "import colorsys as helper").as_bytes());
    bench.file("in/tree-reference/colorsys.py", b"def add(a, b):\n    return a + b\n");
    bench.file("in/tree-reference/numpy.py", b"raise ValueError('another numpy')\n");
    let seen = bench.see(GOOD);
    assert!(seen.trials[0].outputs[0].gross.is_none(), "{:?}", seen.findings);
}

fn python_inputs() {
    let reference = "import numpy\n\
        def scale_rows(x, w, bias):\n    return {'y': x * w + bias, 'y.scale': numpy.abs(x * w) + 1}\n\
        def inputs(seed, distribution, cols):\n    return {'w': numpy.full(cols, 0.1)}\n\
        def check(got, want):\n    return numpy.abs(got - want) < 1\n";
    let Some(mut bench) = python_bench(reference) else { return };
    bench.problem.generate_inputs = Some(InputsFunction::Python("ref.py".into(), "inputs".into()));
    let seen = bench.see(&GOOD.replace("w[i]", "0.1f"));
    assert!(seen.trials[0].outputs[0].gross.is_none(), "{:?}", seen.findings);
    bench.compare = [("y".to_string(), Compare::Python("ref.py".into(), "check".into()))].into();
    let seen = bench.see(&GOOD.replace("+ bias", "+ bias + (i == 3 ? 0.5f : i == 4 ? 2 : 0)"));
    let gross = seen.trials[0].outputs[0].gross.as_ref().unwrap();
    assert_eq!((gross.count, gross.first.index), (ROWS, 4), "{:?}", seen.findings);
}
