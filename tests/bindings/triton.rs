//! Loaders of kernels in Triton: hidden parameters, scratch, clusters, and the choice of machine code by the values of arguments.

use std::process::Command;

use crate::c::{compiled, program};
use crate::documents::{Sample, packages, sample};
use crate::expected::address;
use crate::lab::{Lab, all_expected, compare, root, write};
use crate::python::{calls, run};
use kforge::release::bindings::plan::{Action, Entry, Launch};
use kforge::release::bindings::{Language, files};
use serde_json::json;

fn samples() -> Vec<Sample> {
    let of = |folder: &str| packages(&root().join(folder).join("kernel.toml"));
    [("examples/triton", 0), ("tests/gpu/triton", 1)].map(|(folder, at)| sample(&of(folder)[0], at).unwrap()).into()
}

/// Launches as verification and timing make them, at every shape of every kernel: with threads, shared memory, clusters, early launches and cooperative ones.
#[test]
fn loaders_launch_machine_code_of_triton_as_kforge_does() {
    for sample in samples() {
        let lab = Lab::new();
        let expected = all_expected(&sample);
        let sizes: Vec<String> = expected.iter().flat_map(|one| one.sizes.clone()).collect();
        let of = |text: &str| expected.iter().flat_map(|one| &one.lines).any(|line| line.contains(text));
        let (clusters, early) = (of(" cluster 2,1,1 "), of(" pdl 1 "));
        assert!(sample.plan.package != "triton-launches" || (early && of(" cooperative 1 ")), "nothing to compare");
        assert!(clusters || sample.plan.package != "triton-launches" || of(" cluster 4,1,1 "));
        write(lab.folder.path(), &files(&sample.plan, Language::C).unwrap());
        compiled(&lab, &["cc", "-std=c99"], "c", &program(&sample, &expected), "program");
        let (said, log) = lab.run(&mut Command::new(lab.path("program")), &sizes);
        assert_eq!(said, "", "{}", sample.plan.package);
        compare(&format!("C of {}", sample.plan.package), &sample, &expected, &log);
        write(lab.folder.path(), &files(&sample.plan, Language::Python).unwrap());
        let (said, log) = run(&lab, &calls(&sample, &expected), &sizes);
        assert_eq!(said, "", "{}", sample.plan.package);
        compare(&format!("Python of {}", sample.plan.package), &sample, &expected, &log);
    }
}

/// The artifact holds one archive for each class; a loader holds the cubins that it takes from it.
#[test]
fn each_function_of_a_kernel_comes_from_a_cubin_of_its_own() {
    let sample = sample(&packages(&root().join("examples/triton/kernel.toml"))[0], 0).unwrap();
    let function = sample.plan.functions.iter().find(|function| function.name == "split_k_sum").unwrap();
    let entry = |launch: &Launch| match &launch.action {
        Action::Kernel(kernel) => &sample.plan.entries[kernel.entry],
        Action::Memset(..) => panic!("no launch of it is a memset"),
    };
    for variant in &function.variants {
        let entries: Vec<&Entry> = variant.launches.iter().map(entry).collect();
        for (entry, name) in entries.iter().zip(["partial", "sum_parts"]) {
            let bytes = String::from_utf8_lossy(&sample.plan.binaries[entry.binary].bytes).into_owned();
            assert!(bytes.starts_with("\x7fELF") && bytes.ends_with(name), "{bytes}");
            assert!(entry.symbol.contains(name), "{}", entry.symbol);
        }
        assert_eq!(entries.len(), 2);
    }
    let whole = sample.document.kernels.iter().find(|kernel| kernel.kernel == "split_k_sum").unwrap();
    assert!(whole.variants.iter().all(|variant| variant.members == ["partial", "sum_parts"]));
}

/// Shapes of the package need blocks of 128, 512, 1024 (for one row only) and 4096 elements.
#[test]
#[ignore = "second tier: compiles programs"]
fn machine_code_serves_values_that_it_does_not_exclude_and_others_are_refused_by_name() {
    let sample = sample(&packages(&root().join("examples/triton/kernel.toml"))[0], 0).unwrap();
    let cases = [
        // Values of a class.
        (5, 257, "BLOCK=512"),
        (1, 1000, "rows=1,BLOCK=1024"),
        (64, 96, "rows%16,cols%16,BLOCK=128"),
        (4096, 4096, "rows%16,cols%16,BLOCK=4096"),
        // Machine code that assumes less than it could.
        (1, 300, "BLOCK=512"),
        (32, 512, "BLOCK=512"),
        // Machine code that assumes more, and none.
        (2, 1000, ""),
        (5, 4000, ""),
        (64, 97, ""),
        (5, 8192, ""),
    ];
    let lab = Lab::new();
    let symbol = |class: &str| {
        let name = format!("_Zsoftmax_T_f32_softmax_{}", class.replace(['=', ',', '%'], "_"));
        assert!(class.is_empty() || sample.plan.entries.iter().any(|entry| entry.symbol == name), "{name}");
        name
    };
    let mut text = String::from(
        "#define TRITON_KERNELS_IMPLEMENTATION\n#include \"triton_kernels.h\"\n#include <stdio.h>\n\nint main(void) {\n    float *x = (float *)(uintptr_t)0x100000000u, *y = (float *)(uintptr_t)0x200000000u;\n",
    );
    for (rows, cols, _) in &cases {
        text += &format!("    puts(triton_kernels_message(triton_kernels_softmax_f32(x, y, {rows}, {cols}, NULL)));\n");
    }
    text += "    return 0;\n}\n";
    write(lab.folder.path(), &files(&sample.plan, Language::C).unwrap());
    compiled(&lab, &["cc", "-std=c99"], "c", &text, "program");
    let launched = |log: &[String]| -> Vec<String> {
        let launches = log.iter().filter_map(|line| line.strip_prefix("launch "));
        launches.map(|line| line.split(' ').next().unwrap().to_string()).collect()
    };
    let expected: Vec<String> = cases.iter().filter(|(.., class)| !class.is_empty()).map(|(.., c)| symbol(c)).collect();
    let (said, log) = lab.run(&mut Command::new(lab.path("program")), &[]);
    let refused = "no machine code was compiled for these values of dims and params";
    let says = cases.map(|(.., class)| if class.is_empty() { refused } else { "no error" });
    assert_eq!(said.lines().collect::<Vec<_>>(), says);
    assert_eq!(launched(&log), expected);
    // In Python.
    write(lab.folder.path(), &files(&sample.plan, Language::Python).unwrap());
    let call = |(rows, cols, _): &(i64, i64, &str)| {
        let array = |at: usize| json!([address(at), "f32", [rows, cols], null]);
        json!({ "kernel": "softmax", "inputs": [array(0)], "outputs": [array(1)], "dims": [], "params": {} })
    };
    let (said, log) = run(&lab, &cases.iter().map(call).collect::<Vec<_>>(), &[]);
    assert_eq!(launched(&log), expected);
    let says: Vec<&str> = said.lines().collect();
    assert_eq!(says.len(), 4, "{said}");
    assert!(says.iter().all(|line| line.starts_with("WrongClass no machine code of `softmax`")), "{said}");
    assert!(says[0].contains("'rows': 2, 'cols': 1000"), "{said}");
}
