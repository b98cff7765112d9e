//! The header, in C and C++.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use crate::documents::Sample;
use crate::expected::{Expected, WORKSPACE, address, value};
use crate::lab::{Lab, all_expected, compare, exotic, samples, write};
use kforge::release::bindings::{Language, files};

/// A program that makes every call, each in a context and a stream that are not null.
pub(crate) fn program(sample: &Sample, expected: &[Expected]) -> String {
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
            let _ = writeln!(
                text,
                "    if (bytes != {}u) printf(\"{}: %zu bytes\\n\", bytes);",
                expected.workspace, function.name
            );
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

pub(crate) fn compiled(lab: &Lab, compiler: &[&str], extension: &str, text: &str, name: &str) {
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
#[ignore = "second tier: many sources"]
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

#[test]
#[ignore = "second tier: every compiler"]
fn a_header_is_strict_c_and_cpp_for_every_compiler() {
    let (lab, sample) = (Lab::new(), exotic());
    let text = program(&sample, &all_expected(&sample));
    write(lab.folder.path(), &files(&sample.plan, Language::C).unwrap());
    compiled(&lab, &["cc", "-std=c11", "-O2"], "c", &text, "program");
    compiled(&lab, &["c++", "-std=c++11", "-O2"], "cpp", &text, "program");
    if Command::new("clang++").arg("--version").output().is_ok() {
        compiled(&lab, &["clang", "-std=c99"], "c", &text, "program");
        compiled(&lab, &["clang++", "-std=c++17"], "cpp", &text, "program");
    }
}

/// A program of a header that prints the messages of some calls.
fn said(lab: &Lab, calls: &str, vars: &[(&str, &str)], driver: bool) -> String {
    let sample = exotic();
    write(lab.folder.path(), &files(&sample.plan, Language::C).unwrap());
    let text = format!(
        "#define EXOTIC_IMPLEMENTATION\n#include \"exotic.h\"\n#include <stdio.h>\n\n\
         static int call(uint64_t x, int64_t b, int64_t rows, int64_t cols, int64_t offset, size_t bytes) {{\n\
         void *at = (void *)(uintptr_t)0x40000000u;\n    \
         return exotic_mixed_f32_i64((float *)(uintptr_t)x, (int64_t *)at, (float *)at, (char *)at + (1 << 28), (float *)((char *)at + (2 << 28)), (int32_t *)((char *)at + (3 << 28)), b, rows, cols, 1, 1.0, offset, 0, at, bytes, NULL);\n}}\n\n\
         int main(void) {{\n{calls}    return 0;\n}}\n"
    );
    compiled(lab, &["cc", "-std=c99"], "c", &text, "program");
    let mut program = Command::new(lab.path("program"));
    program.envs(vars.iter().copied());
    if !driver {
        let output = program.env_remove("LD_LIBRARY_PATH").output().unwrap();
        return String::from_utf8_lossy(&output.stdout).into_owned();
    }
    let (said, log) = lab.run(&mut program, &[]);
    assert!(log.iter().all(|line| line.starts_with("attribute") || line.starts_with("global")), "{log:?}");
    said
}

#[test]
fn tensors_that_share_memory_and_floats_that_would_be_infinite_are_refused() {
    let (lab, sample) = (Lab::new(), {
        let packages = crate::documents::packages(&crate::lab::root().join("examples/quickstart/kernel.toml"));
        crate::documents::sample(&packages[0], 0).unwrap()
    });
    let name = &sample.plan.name;
    let function = &sample.plan.functions.iter().find(|function| function.kernel == "rms_norm").unwrap().name;
    write(lab.folder.path(), &files(&sample.plan, Language::C).unwrap());
    let mut text = format!(
        "#define {0}_IMPLEMENTATION\n#include \"{name}.h\"\n#include <float.h>\n#include <math.h>\n#include <stdio.h>\n\n\
         static void call(unsigned x, unsigned w, unsigned y, int64_t rows, double eps) {{\n    \
         puts({name}_message({name}_{function}((float *)(uintptr_t)x, (float *)(uintptr_t)w, (float *)(uintptr_t)y, rows, 64, eps, NULL)));\n}}\n\n\
         int main(void) {{\n",
        name.to_uppercase()
    );
    let (overlap, value, fine) =
        ("an output shares memory with another tensor", "a value does not fit its type", "no error");
    let cases = [
        ("0x10000, 0x20000, 0x10000, 2, 0.5", overlap),
        ("0x10000, 0x20000, 0x10100, 2, 0.5", overlap),
        ("0x10000, 0x20000, 0x1ff00, 2, 0.5", overlap),
        ("0x10000, 0x20000, 0x10200, 2, 0.5", fine),
        ("0x10000, 0x10000, 0x30000, 2, 0.5", fine),
        ("0x10000, 0x20000, 0x30000, 2, 1e300", value),
        ("0x10000, 0x20000, 0x30000, 2, -3.4028235677973366e38", value),
        ("0x10000, 0x20000, 0x30000, 2, FLT_MAX", fine),
        ("0x10000, 0x20000, 0x30000, 2, INFINITY", fine),
    ];
    cases.iter().for_each(|(arguments, _)| writeln!(text, "    call({arguments});").unwrap());
    text += "    return 0;\n}\n";
    compiled(&lab, &["cc", "-std=c99"], "c", &text, "program");
    let (said, _) = lab.run(&mut Command::new(lab.path("program")), &[]);
    assert_eq!(said.lines().collect::<Vec<_>>(), cases.map(|(_, says)| says));
}

/// Numbers that do not fit are found by checks, before anything is computed from them.
#[test]
#[ignore = "second tier: compiles programs"]
fn the_workspace_of_a_shape_that_no_machine_holds_has_no_undefined_behaviour() {
    let (lab, sample) = (Lab::new(), exotic());
    write(lab.folder.path(), &files(&sample.plan, Language::C).unwrap());
    let sizes = ["288230376151711743", "INT64_MAX / 64", "INT64_MAX", "4611686018427387903", "-1"];
    let calls: String = sizes
        .iter()
        .map(|size| {
            format!("    puts(exotic_message(exotic_mixed_f32_i64_workspace(1, {size}, 16, 1, 1.0, 0, 0, &bytes)));\n")
        })
        .collect();
    let text = format!(
        "#define EXOTIC_IMPLEMENTATION\n#include \"exotic.h\"\n#include <stdio.h>\n\nint main(void) {{\n    size_t bytes = 0;\n{calls}    return 0;\n}}\n"
    );
    compiled(&lab, &["cc", "-std=c99", "-fsanitize=undefined", "-fno-sanitize-recover=all"], "c", &text, "program");
    let (said, _) = lab.run(&mut Command::new(lab.path("program")), &[]);
    assert_eq!(said.lines().collect::<Vec<_>>(), ["no champion serves this shape"; 5]);
}

/// Two libraries of a process each have a version of a package.
#[test]
#[ignore = "second tier: compiles programs"]
fn versions_of_a_header_in_one_process_do_not_meet() {
    let (lab, sample) = (Lab::new(), exotic());
    // The kernel fills a constant, and a context has one such constant.
    for language in [Language::C, Language::Python, Language::Rust] {
        let all = files(&sample.plan, language).unwrap();
        let says = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).contains("must take turns: all on one stream");
        assert!(all.values().any(says), "{language:?}");
    }
    let header = String::from_utf8(files(&sample.plan, Language::C).unwrap().remove("exotic.h").unwrap()).unwrap();
    let root = &sample.plan.root;
    let other = header.replace(&root[..12], "0123456789ab").replace("no error", "another version");
    let build = |words: &[&str]| {
        let done = Command::new("cc").args(words).current_dir(lab.folder.path()).output().unwrap();
        (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    for (library, header) in [("one", &header), ("two", &other)] {
        fs::write(lab.path(&format!("{library}.h")), header).unwrap();
        let text = format!(
            "#define EXOTIC_IMPLEMENTATION\n#include \"{library}.h\"\nconst char *{library}(void) {{ return exotic_message(0); }}\n"
        );
        fs::write(lab.path(&format!("{library}.c")), text).unwrap();
        let built = build(&[
            "-shared",
            "-fPIC",
            &format!("{library}.c"),
            "-o",
            &format!("lib{library}.so"),
            "-ldl",
            "-lpthread",
            "-lm",
        ]);
        assert!(built.0, "{}", built.1);
    }
    let main = "#include <stdio.h>\nconst char *one(void), *two(void);\nint main(void) { puts(one()); puts(two()); return 0; }\n";
    fs::write(lab.path("main.c"), main).unwrap();
    let built = build(&["main.c", "-L.", "-lone", "-ltwo", "-Wl,-rpath,.", "-o", "main"]);
    assert!(built.0, "{}", built.1);
    let output = Command::new("./main").current_dir(lab.folder.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "no error\nanother version\n");
    // In one file, the second would vanish behind the guard of the first.
    fs::write(lab.path("both.c"), "#include \"one.h\"\n#include \"two.h\"\n").unwrap();
    let both = build(&["-c", "both.c"]);
    assert!(!both.0 && both.1.contains("two versions of exotic.h in one file"), "{}", both.1);
    fs::write(lab.path("both.c"), "#include \"one.h\"\n#include \"one.h\"\n").unwrap();
    assert!(build(&["-c", "both.c"]).0);
}

#[test]
fn what_cannot_be_launched_is_named_and_nothing_is_launched() {
    let lab = Lab::new();
    let at = "0x40000000u";
    let calls = [
        // A remainder in a derived dim, a negative dim, a condition in `requires`, a size that does not fit.
        format!("call({at}, 1, 3, 17, 0, 1 << 24)"),
        format!("call({at}, 1, -3, 16, 0, 1 << 24)"),
        format!("call({at}, 1, 3, 20, 0, 1 << 24)"),
        format!("call({at}, INT64_MAX, 3, 16, 0, 1 << 24)"),
        format!("call({at} + 64, 1, 3, 16, 0, 1 << 24)"),
        "call(0, 1, 3, 16, 0, 1 << 24)".into(),
        format!("call({at}, 1, 3, 16, INT64_C(1) << 40, 1 << 24)"),
        format!("call({at}, 1, 3, 16, 0, 100)"),
    ];
    let printed: String = calls.iter().map(|call| format!("    puts(exotic_message({call}));\n")).collect();
    let expected = [
        "no champion serves this shape",
        "no champion serves this shape",
        "no champion serves this shape",
        "no champion serves this shape",
        "an address is not aligned as the kernel needs it",
        "a tensor that is not empty has no address",
        "a value does not fit its type",
        "the workspace is too small",
    ];
    assert_eq!(said(&lab, &printed, &[], true).lines().collect::<Vec<_>>(), expected);
    let one = format!("    puts(exotic_message(call({at}, 1, 3, 16, 0, 1 << 24)));\n");
    let other = [("KFORGE_FAKE_CAPABILITY", "100")];
    assert_eq!(said(&lab, &one, &other, true), "no machine code for this device: the artifact has sm_90a\n");
    let without = [("KFORGE_FAKE_NO_CONTEXT", "1")];
    assert_eq!(said(&lab, &one, &without, true), "the calling thread has no current CUDA context\n");
    // A machine with a driver would find no context.
    let none = said(&lab, &one, &[], false);
    assert!(none.starts_with("no CUDA driver") || none.starts_with("the calling thread"), "{none}");
}
