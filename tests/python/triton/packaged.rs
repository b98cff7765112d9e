//! Artifacts of what Triton itself compiles. They are built on the virtual device, which measures nothing and has the real compilers, and their loader in C is
//! compiled and run with a driver that writes down what it is asked for.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use kforge::release::artifact::{KERNELS, tar};
use serde_json::Value;

use super::{Lab, root};
use crate::folders::folder;

const SCENARIO: &str = r#"
compilers = true
seed = 1
noise = 0.01

[[device]]
product = "Virtual H"
arch = "sm_90"
driver = "580.1"

[[rule]]
matches = '^softmax .* block 64,'
ns = 2000.0

[[rule]]
matches = '^softmax '
ns = 1000.0
"#;

const PROGRAM: &str = r#"
#define P_IMPLEMENTATION
#include "p.h"
#include <stdio.h>

int main(void) {
    float *x = (float *)(uintptr_t)0x100000000u, *y = (float *)(uintptr_t)0x200000000u;
    puts(p_message(p_softmax(x, y, 3, 64, NULL)));
    puts(p_message(p_softmax(x, y, 1, 64, NULL)));
    puts(p_message(p_softmax(x, y, 3, 63, NULL)));
    puts(p_message(p_softmax(x, y, 3, 65, NULL)));
    return 0;
}
"#;

impl Lab {
    /// The package of softmax with a licence and one timed shape, for a GPU only, on the virtual device.
    fn for_package(mut self) -> Self {
        self.edit("kernel.toml", "name = \"p\"\n", "name = \"p\"\nversion = \"0.1.0\"\nlicense = \"MIT\"\n");
        self.edit("kernel.toml", "[targets.cpu]\n", "");
        self.edit(
            "kernel.toml",
            "shapes.odd = { rows = 3, cols = 63",
            "shapes.odd = { rows = 3, cols = 63, role = \"bench\"",
        );
        let scenario = self.home.path().join("scenario.toml");
        fs::write(&scenario, SCENARIO).unwrap();
        self.variables.push(("KFORGE_VIRTUAL_DEVICE", scenario.display().to_string()));
        self
    }
}

/// Compiles a source with the C compiler of this machine.
fn cc(words: &[&str], within: &std::path::Path) {
    let done = Command::new("cc").args(words).current_dir(within).output().unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
#[ignore = "second tier: installs Triton"]
fn machine_code_of_triton_is_packaged_and_its_loader_in_c_asks_for_what_triton_stated() {
    let Some(lab) = Lab::of_softmax().for_package().installed() else { return };
    let built = lab.run(&["build", "--target", "gpu"]);
    assert_eq!(built.code, Some(0), "{}", built.said);
    let done = lab.command(&["package"]);
    assert_eq!(done.code, Some(0), "{}", done.said);
    let archive = lab.path("target/kforge/package/p-0.1.0.tar");
    let path = archive.display().to_string();
    let files = tar::unpack(&fs::read(&archive).unwrap()).unwrap().all().clone();
    let document: Value = serde_json::from_slice(&files[KERNELS]).unwrap();
    let variants = document["kernels"][0]["variants"].as_array().unwrap();
    // What Triton states of each class: threads and shared memory.
    let mut stated = BTreeMap::new();
    for variant in variants {
        let class = variant["specialization"].as_str().unwrap().to_string();
        let binary = &files[variant["binary"].as_str().unwrap()];
        let symbol = variant["symbols"]["softmax"].as_str().unwrap();
        assert!(binary.starts_with(b"\x7fELF") && binary.windows(symbol.len()).any(|part| part == symbol.as_bytes()));
        let action = &variant["launch"]["launches"][0]["action"]["kernel"];
        // Without `one` row the arguments are two addresses, two integers and two hidden addresses.
        let few = usize::from(class.contains("rows=1"));
        assert_eq!(action["args"].as_array().unwrap().len(), 6 - few, "{action}");
        let shared = action["shared"].as_str().unwrap_or("0");
        let text = format!("block {},1,1 shared {shared} cluster 1,1,1", action["block"][0].as_str().unwrap());
        stated.insert(class, (symbol.to_string(), text));
    }
    assert_eq!(stated.keys().collect::<Vec<_>>(), ["BLOCK=64", "cols%16,BLOCK=64", "rows=1,cols%16,BLOCK=64"]);
    // The sources give the same bytes again.
    let verified = lab.command(&["verify-artifact", &path, "--allow-untrusted", "--rebuild"]);
    assert_eq!(verified.code, Some(0), "{}", verified.said);
    let place = folder();
    let output = place.path().join("c").display().to_string();
    let done = lab.command(&["bindings", &path, "--language", "c", "--output", &output]);
    assert_eq!(done.code, Some(0), "{}", done.said);
    fs::write(place.path().join("main.c"), PROGRAM).unwrap();
    let driver = root().join("tests/bindings/fake_cuda.c").display().to_string();
    cc(&["-shared", "-fPIC", "-O1", "-o", "libcuda.so.1", &driver], place.path());
    let strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-I", "c", "main.c", "-o", "program"];
    cc(&[&strict[..], &["-ldl", "-lpthread", "-lm"]].concat(), place.path());
    let log = place.path().join("log");
    let mut program = Command::new(place.path().join("program"));
    let ran = program.env("LD_LIBRARY_PATH", place.path()).env("KFORGE_FAKE_LOG", &log).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let refused = "no machine code was compiled for these values of dims and params";
    assert_eq!(said.lines().collect::<Vec<_>>(), ["no error", "no error", "no error", refused]);
    let log = fs::read_to_string(log).unwrap();
    let launched: Vec<&str> = log.lines().filter(|line| line.starts_with("launch ")).collect();
    let expected = [("cols%16,BLOCK=64", 3), ("rows=1,cols%16,BLOCK=64", 1), ("BLOCK=64", 3)].map(|(class, rows)| {
        let (symbol, text) = &stated[class];
        format!("launch {symbol} grid {rows},1,1 {text} cooperative 0 pdl 0")
    });
    assert_eq!(launched, expected);
}

#[test]
#[ignore = "second tier: installs Triton"]
fn machine_code_of_triton_is_disassembled_by_the_wheel_where_cuda_has_a_disassembler_that_does_not_know_it() {
    let lab = Lab::of_softmax().for_package();
    lab.edit("kernel.toml", "[targets.gpu]", "[toolchain]\ncuda = { path = \"cuda\" }\n\n[targets.gpu]");
    lab.edit("kernel.toml", "source = \"softmax.py\"\n", "source = \"softmax.py\"\ntune.WARPS = [2, 4]\n");
    let method = "options = { num_warps = \"WARPS\" }\n\n[kernel.softmax.methods.\"memory.vectorized_access\"]\noff = { WARPS = 2 }\n\
                  sass.any = ['MUFU\\.EX2']\n";
    let text = fs::read_to_string(lab.path("kernel.toml")).unwrap();
    lab.write("kernel.toml", &format!("{text}{method}"));
    for file in [
        "lib64/libnvrtc.so.13",
        "lib64/libnvrtc-builtins.so.13.0",
        "include/cuda_runtime.h",
        "bin/nvdisasm",
        "bin/fatbinary",
    ] {
        lab.write(&format!("cuda/{file}"), "#!/bin/sh\nexit 1\n");
        fs::set_permissions(lab.path("cuda").join(file), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let Some(lab) = lab.installed() else { return };
    let built = lab.run(&["build", "--target", "gpu"]);
    assert_eq!(built.code, Some(0), "{}", built.said);
    let matched = built.lines.iter().filter(|line| line["reason"] == "step-finished" && line["kind"] == "match");
    let matched: Vec<String> = matched.map(Value::to_string).collect();
    assert!(!matched.is_empty() && matched.iter().all(|line| line.contains("MUFU")), "{matched:?}\n{}", built.said);
}
