//! The header, in C and C++.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use crate::documents::Sample;
use crate::expected::{Expected, WORKSPACE, address, value};
use crate::lab::{Lab, all_expected, compare, samples, write};
use kforge::release::bindings::{Language, files};

/// A program that makes every call, each in a context and a stream that are not null.
fn program(sample: &Sample, expected: &[Expected]) -> String {
    let name = &sample.plan.name;
    let upper = name.to_uppercase();
    let mut text = format!(
        "#define {upper}_IMPLEMENTATION\n#include \"{name}.h\"\n#include <stdio.h>\n\nint main(void) {{\n    int status = 0;\n    size_t bytes = 0;\n    (void)bytes;\n"
    );
    for (case, expected) in sample.cases.iter().zip(expected) {
        let function = sample.plan.functions.iter().find(|f| f.name == case.function).unwrap();
        let mut values: Vec<String> =
            function.dims.iter().map(|dim| expected.problem.dims[&dim.name].to_string()).collect();
        values.extend(expected.problem.params.iter().map(|param| value(param.value)));
        let mut all: Vec<String> = function
            .tensors
            .iter()
            .enumerate()
            .map(|(at, tensor)| {
                let of = match tensor.dtype.name() {
                    "f64" => "double",
                    "f32" => "float",
                    "i64" => "int64_t",
                    "u64" => "uint64_t",
                    "i32" => "int32_t",
                    "u32" => "uint32_t",
                    "i16" => "int16_t",
                    "u16" => "uint16_t",
                    "i8" => "int8_t",
                    "u8" => "uint8_t",
                    _ => "void",
                };
                format!("({of} *)(uintptr_t){}u", address(at))
            })
            .collect();
        all.extend(values.iter().cloned());
        if function.has_workspace() {
            let values = [values, vec!["&bytes".into()]].concat().join(", ");
            let _ = writeln!(text, "    status |= {name}_{}_workspace({values});", function.name);
            let _ = writeln!(text, "    if (bytes != {}u) printf(\"{}: %zu bytes\\n\", bytes);", expected.workspace, function.name);
            all.push(format!("(void *)(uintptr_t){WORKSPACE}u"));
            all.push("bytes".into());
        }
        all.push("NULL".into());
        let _ = writeln!(text, "    status = {name}_{}({});", function.name, all.join(", "));
        let _ = writeln!(
            text,
            "    if (status) printf(\"{} at {}: %s\\n\", {name}_message(status));",
            function.name, case.shape.name
        );
    }
    text + "    return status;\n}\n"
}

fn compiled(lab: &Lab, compiler: &[&str], extension: &str, text: &str, name: &str) {
    let source = lab.path(&format!("main.{extension}"));
    fs::write(&source, text).unwrap();
    let strict = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-I", "."];
    let done = Command::new(compiler[0])
        .args(&compiler[1..])
        .args(strict)
        .arg(&source)
        .args(["-o", name, "-ldl", "-lpthread", "-lm"])
        .current_dir(lab.folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{compiler:?}: {}", said.chars().take(3000).collect::<String>());
}

#[test]
fn a_header_asks_the_driver_for_what_kforge_asks_for() {
    let lab = Lab::new();
    for sample in samples() {
        let expected = all_expected(&sample);
        write(lab.folder.path(), &files(&sample.plan, Language::C).unwrap());
        let sizes: Vec<String> = expected.iter().flat_map(|one| one.sizes.clone()).collect();
        compiled(&lab, &["cc", "-std=c99"], "c", &program(&sample, &expected), "program");
        let (said, log) = lab.run(&mut Command::new(lab.path("program")), &sizes);
        assert_eq!(said, "", "{}", sample.plan.package);
        compare(&format!("C of {}", sample.plan.package), &sample, &expected, &log);
    }
}
