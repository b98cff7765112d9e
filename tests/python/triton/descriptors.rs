//! Tensor descriptors that the host makes: what the compiler, the interpreter and Triton's own launcher make of them.

use std::fs;
use std::process::Command;

use super::{Lab, root};
use crate::folders::folder;

const MANIFEST: &str = r#"
[package]
name = "p"
version = "0.1.0"
license = "MIT"

[targets.cpu]
[targets.old]
arch = "sm_80"
[targets.gpu]
arch = "sm_90a"
[targets.new]
arch = "sm_100a"

[operator.transpose]
dims = ["rows", "cols"]
inputs.x = { dtype = "f32", shape = ["rows", "cols"] }
outputs.y = { dtype = "f32", shape = ["cols", "rows"] }
reference = "builtin:transpose"
shapes.ragged = { rows = 68, cols = 100, role = "bench" }
shapes.tall = { rows = 132, cols = 8 }

[kernel.transpose]
operator = "transpose"
language = "triton"
source = "transpose.py"
requires = ["rows % 4 == 0", "cols % 4 == 0"]
tune.TILE = [64]

[[kernel.transpose.launch]]
entry = "transpose"
grid = ["ceil_div(rows, TILE)", "ceil_div(cols, TILE)"]
args = [{ tensormap = "x", block_shape = ["TILE", "TILE"] }, "rows", { tensormap = "y", block_shape = ["TILE", "TILE"] }]
"#;

const SOURCE: &str = r#"
import triton
import triton.language as tl


@triton.jit
def transpose(x, rows, y, TILE: tl.constexpr):
    row, col = tl.program_id(0) * TILE, tl.program_id(1) * TILE
    y.store([col, row], x.load([row, col]).T)
"#;

/// What Triton's own launcher passes for the two descriptors: it is asked by its parts that need no device.
const LAUNCHER: &str = r#"
import json, struct, sys
sys.path.append(sys.argv[1])
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import driver
from triton.backends.driver import expand_signature
from triton.compiler import ASTSource
from triton.tools.tensor_descriptor import TensorDescriptor
import types
sys.path.append(sys.argv[2])
import transpose

class Base:
    dtype = types.SimpleNamespace(itemsize=4, is_floating_point=True)
    def __init__(self, at): self.at = at
    def data_ptr(self): return self.at

def encoded(at, swizzle, size, kind, box, shape, strides, padding):
    # As the fill function of Triton turns the axes around before it calls the driver.
    shape, strides, box = shape[::-1], [size * one for one in strides[::-1]][1:], box[::-1]
    pad = lambda values, count: values + [0] * (count - len(values))
    words = struct.pack("<2IQ5Q4Q5I3I", kind, len(shape), at, *pad(shape, 5), *pad(strides, 4), *pad(box, 5), swizzle, 2, padding)
    return words.ljust(128, b"\0")

class Utils:
    fill_tma_descriptor_tiled = staticmethod(encoded)
triton.runtime.driver.set_active(types.SimpleNamespace(utils=Utils))
out = {}
for arch in 80, 90, 100:
    signature = {"x": "tensordesc<fp32[64, 64]>", "rows": "i32", "y": "tensordesc<fp32[64, 64]>", "TILE": "constexpr"}
    source = ASTSource(transpose.transpose, signature, constexprs={"TILE": 64})
    meta = triton.compile(source, target=GPUTarget("cuda", arch, 32)).metadata
    descriptors = meta.tensordesc_meta or [None, None]
    expanded = expand_signature(signature.values(), meta.tensordesc_meta, "nvTmaDesc")
    tensors = [TensorDescriptor(Base(1 << 32), [68, 100], [100, 1], [64, 64]), TensorDescriptor(Base(2 << 32), [100, 68], [68, 1], [64, 64])]
    parts = [driver.make_tensordesc_arg(one, of, None) for one, of in zip(tensors, descriptors)]
    parts = [Base.data_ptr(one) if isinstance(one, Base) else one for one in [*parts[0], 68, *parts[1]]]
    kinds = [kind for kind in expanded if kind != "constexpr"]
    assert len(kinds) == len(parts), (kinds, parts)
    sizes = {"i32": "<i", "i64": "<q", "i1": "<?"}
    bytes_of = lambda kind, one: one if isinstance(one, bytes) else struct.pack(sizes.get(kind, "<Q"), one)
    out[arch] = [bytes_of(kind, one).hex() for kind, one in zip(kinds, parts)]
print(json.dumps(out))
"#;

const PROGRAM: &str = r#"
#define P_IMPLEMENTATION
#include "p.h"
#include <stdio.h>

int main(void) {
    float *x = (float *)(uintptr_t)0x100000000u, *y = (float *)(uintptr_t)0x200000000u;
    puts(p_message(p_transpose(x, y, 68, 100, NULL)));
    puts(p_message(p_transpose(x, y, 70, 100, NULL)));
    return 0;
}
"#;

impl Lab {
    fn of_descriptors() -> Self {
        Lab::new(&[("kernel.toml", MANIFEST), ("transpose.py", SOURCE)])
    }
}

#[test]
#[ignore = "second tier: installs Triton"]
fn descriptors_of_the_host_are_compiled_for_each_architecture_and_interpreted() {
    let Some(lab) = Lab::of_descriptors().interpreting() else { return };
    for target in ["old", "gpu", "new"] {
        // The compilation compares the parameters of the binary with those that the launch passes, and so does the inspection.
        let ran = lab.run(&["check", "--target", target]);
        assert_eq!(ran.code, Some(0), "{target}: {}", ran.said);
        assert_eq!(ran.steps("inspect").len(), 1, "{target}");
    }
    let ran = lab.run(&["build", "--target", "cpu"]);
    assert_eq!((ran.code, ran.passed()), (Some(0), 2), "{}\n{:?}", ran.said, ran.verdicts());
    // What lies outside is not read and not written: a block of a row too many would be.
    lab.edit("transpose.py", "x.load([row, col]).T", "x.load([row + 1, col]).T");
    let wrong = lab.run(&["build", "--target", "cpu"]);
    assert_eq!((wrong.code, wrong.passed()), (Some(100), 0), "{}", wrong.said);
    // Elements outside of the tensor read as zero, or as NaN.
    lab.edit(
        "transpose.py",
        "x.load([row + 1, col]).T",
        "tl.where(x.load([row + rows, col]).T != 0, 1.0, x.load([row, col]).T)",
    );
    assert_eq!(lab.run(&["build", "--target", "cpu"]).passed(), 2);
    lab.edit(
        "kernel.toml",
        "block_shape = [\"TILE\", \"TILE\"] }, \"rows\"",
        "block_shape = [\"TILE\", \"TILE\"], oob = \"nan\" }, \"rows\"",
    );
    assert_eq!(lab.run(&["build", "--target", "cpu"]).passed(), 0);
}

#[test]
#[ignore = "second tier: installs Triton"]
fn a_loader_passes_the_bytes_that_the_launcher_of_triton_passes() {
    for (target, capability) in [("old", 80), ("gpu", 90)] {
        let lab = Lab::of_descriptors().for_device(capability);
        let Some(lab) = lab.installed() else { return };
        let built = lab.run(&["build", "--target", target]);
        assert_eq!(built.code, Some(0), "{}", built.said);
        let done = lab.command(&["package", "--target", target]);
        assert_eq!(done.code, Some(0), "{}", done.said);
        let path = lab.path("target/kforge/package/p-0.1.0.tar").display().to_string();
        let verified = lab.command(&["verify-artifact", &path, "--allow-untrusted", "--rebuild"]);
        assert_eq!(verified.code, Some(0), "{}", verified.said);
        let place = folder();
        let output = place.path().join("c").display().to_string();
        let done = lab.command(&["bindings", &path, "--language", "c", "--output", &output]);
        assert_eq!(done.code, Some(0), "{}", done.said);
        let expected = lab.launcher(capability);
        fs::write(place.path().join("main.c"), PROGRAM).unwrap();
        let driver = root().join("tests/bindings/fake_cuda.c").display().to_string();
        let cc = |words: &[&str]| {
            let done = Command::new("cc").args(words).current_dir(place.path()).output().unwrap();
            assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        };
        cc(&["-shared", "-fPIC", "-O1", "-o", "libcuda.so.1", &driver]);
        let libraries = ["-ldl", "-lpthread", "-lm"];
        cc(&[&["-std=c99", "-Wall", "-Werror", "-I", "c", "main.c", "-o", "program"][..], &libraries].concat());
        let log = place.path().join("log");
        let sizes: Vec<String> = expected.iter().map(|bytes| (bytes.len() / 2).to_string()).collect();
        fs::write(place.path().join("sizes"), format!("transpose {}\n", sizes.join(" "))).unwrap();
        let mut program = Command::new(place.path().join("program"));
        program.env("LD_LIBRARY_PATH", place.path()).env("KFORGE_FAKE_LOG", &log);
        program.env("KFORGE_FAKE_CAPABILITY", capability.to_string());
        let ran = program.env("KFORGE_FAKE_SIZES", place.path().join("sizes")).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        // 70 rows of four bytes are no multiple of 16 bytes.
        assert!(said.starts_with("no error\n") && said.lines().count() == 2 && !said.ends_with("no error\n"), "{said}");
        let log = fs::read_to_string(log).unwrap();
        let [launched] = log.lines().filter(|line| line.starts_with("launch ")).collect::<Vec<_>>()[..] else {
            panic!("{log}")
        };
        assert!(
            launched.ends_with(&format!(" {}", expected.join(" "))),
            "{target}\n{launched}\n{}",
            expected.join(" ")
        );
    }
}

impl Lab {
    /// The package for one target on the virtual device of that capability.
    fn for_device(mut self, capability: u32) -> Self {
        self.edit("kernel.toml", "[targets.cpu]\n", "");
        let scenario = format!(
            "compilers = true\nseed = 1\nnoise = 0.01\n\n[[device]]\nproduct = \"Virtual H\"\narch = \"sm_{capability}\"\ndriver = \"580.1\"\n\n\
             [[rule]]\nmatches = '^transpose '\nns = 1000.0\n"
        );
        let path = self.home.path().join("scenario.toml");
        fs::write(&path, scenario).unwrap();
        self.variables.push(("KFORGE_VIRTUAL_DEVICE", path.display().to_string()));
        self
    }

    /// The bytes of each parameter of the source, in hexadecimal digits, as Triton's own launcher makes them.
    fn launcher(&self, capability: u32) -> Vec<String> {
        let folders = fs::read_dir(self.home.path().join("toolchains")).unwrap().flatten().map(|entry| entry.path());
        let wheel = folders.into_iter().find(|folder| folder.join("triton-3.9.0.dist-info").is_dir()).unwrap();
        let scratch = folder();
        let done = Command::new("python3")
            .args(["-c", LAUNCHER])
            .args([&wheel, &self.path("")])
            .env("TRITON_HOME", scratch.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let all: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        let of = all[capability.to_string()].as_array().unwrap();
        of.iter().map(|bytes| bytes.as_str().unwrap().to_string()).collect()
    }
}
