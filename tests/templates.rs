//! Generated kernels against the device compiler: every kernel of `examples/generated` is compiled for GPUs of three generations, for each choice of types and
//! with every method on and off. What they compute is verified on `cpu` in `e2e`.
//!
//! Touches the network where the toolchain is not yet installed below `target/kforge-test-home`, as `acquire` does, and in no other way.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[path = "installed/toolchain.rs"]
mod toolchain;

use kforge::model::{Kernel, Operator, Target};
use kforge::optimize::templates::TEMPLATES;
use kforge::record::params::{CompileParams, Compiler};
use kforge::toolchain::cuda::Group;
use kforge::worker::cuda::{compile, shim_headers};
use toolchain::install;

const ARCHITECTURES: [&str; 3] = ["sm_80", "sm_90a", "sm_100"];

/// NVRTC, which other tests of the toolchain may have installed.
fn tools() -> BTreeMap<String, PathBuf> {
    install(Group::Compile)
}

/// The entries of the first variant for each choice of types, and of those that its methods turned off leave.
fn entries(kernel: &Kernel, operator: &Operator, target: &Target) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for choice in operator.choices() {
        let first = kernel.variants(target, &choice).unwrap().remove(0);
        out.extend(kernel.entries(&first, &choice));
        for method in &kernel.methods {
            let without = kernel.without(&first, method);
            out.extend(without.into_iter().flat_map(|off| kernel.entries(&off.variant, &choice)));
        }
    }
    out
}

#[test]
fn every_generated_kernel_compiles_for_every_generation_of_gpus() {
    let tools = tools();
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/generated/kernel.toml");
    let (workspace, wrong) = kforge::workspace::load(&manifest, &TEMPLATES);
    let workspace = workspace.unwrap_or_else(|| panic!("{wrong:?}"));
    let package = &workspace.members[0].package;
    assert!(package.kernels.len() >= 10);
    let dir = tempfile::tempdir().unwrap();
    let shim = dir.path().join("shim");
    for (name, text) in shim_headers() {
        let path = shim.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let failed = std::sync::Mutex::new(vec![]);
    std::thread::scope(|scope| {
        for half in 0..2 {
            let (tools, shim, failed, dir) = (&tools, &shim, &failed, dir.path());
            scope.spawn(move || {
                for kernel in package.kernels.iter().skip(half).step_by(2) {
                    let folder = dir.join(&kernel.name);
                    let scratch = folder.join("scratch");
                    std::fs::create_dir_all(&scratch).unwrap();
                    let text = &kernel.made().expect("it is generated").source;
                    std::fs::write(folder.join("kernel.cu"), text.as_bytes()).unwrap();
                    let operator = package.operator(&kernel.operator).unwrap();
                    for arch in ARCHITECTURES {
                        let params = CompileParams {
                            compiler: Compiler::Nvrtc,
                            arch: arch.into(),
                            main: "kernel.cu".into(),
                            entries: entries(kernel, operator, &package.targets["cpu"]).into_iter().collect(),
                            defines: BTreeMap::new(),
                            std: "c++17".into(),
                            include: vec![],
                            flags: vec![],
                            candidate: false,
                            lined: false,
                        };
                        if let Err(error) = compile(&params, &folder, shim, tools, &scratch) {
                            failed.lock().unwrap().push(format!("{} for {arch}: {error}: {error:?}", kernel.name));
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
