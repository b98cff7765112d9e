//! Generated kernels compiled by the device compiler: every variant that the kernels of `examples/generated` declare, for GPUs of two generations and each
//! choice of types; and each first variant with every method off, for three. `e2e` verifies the kernels' results on `cpu`; here machine code must show their
//! methods.
//!
//! Uses the network only if the toolchain is not yet installed below `target/kforge-test-home`, like `acquire`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use crate::toolchain::install;
use kforge::cuda::{compile, inspect, shim_headers};
use kforge::measure::signature::matched;
use kforge::model::target::Arch;
use kforge::model::{Kernel, Operator, Package, Target};
use kforge::optimize::methods::signatures;
use kforge::optimize::templates::TEMPLATES;
use kforge::record::params::{CompileFacts, CompileParams, Compiler, InspectParams, Shown};
use kforge::record::{FunctionFacts, Inspection};
use kforge::toolchain::cuda::Group;

/// Architectures, and whether every variant is compiled or only the first.
const ARCHITECTURES: [(&str, bool); 3] = [("sm_80", false), ("sm_90a", true), ("sm_100", false)];

/// NVRTC and the disassembler, which other tests of the toolchain may have installed.
fn tools() -> BTreeMap<String, PathBuf> {
    install(Group::Compile).into_iter().chain(install(Group::Disassemble)).collect()
}

/// The package of `examples/generated`.
fn package() -> Package {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/generated/kernel.toml");
    let (workspace, wrong) = kforge::workspace::load(&manifest, &TEMPLATES);
    let mut workspace = workspace.unwrap_or_else(|| panic!("{wrong:?}"));
    workspace.members.remove(0).package
}

fn target(arch: &str) -> Target {
    Target { name: "gpu".into(), arch: Arch::parse(arch).unwrap(), device: None, ptx: false, fatbin: false }
}

/// The folder of kforge's own headers below `dir`.
fn shim(dir: &Path) -> PathBuf {
    let shim = dir.join("shim");
    for (name, text) in shim_headers() {
        let path = shim.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    shim
}

/// The entries of every variant for each choice of types, or of the first variant; and of the first variant with each method turned off.
fn entries(kernel: &Kernel, operator: &Operator, target: &Target, every: bool) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for choice in operator.choices() {
        let variants = kernel.variants(target, &choice).unwrap();
        let some = if every { variants.len() } else { 1 };
        out.extend(variants[..some].iter().flat_map(|variant| kernel.entries(variant, &choice)));
        let off = kernel.methods.iter().filter_map(|method| kernel.without(&variants[0], method));
        out.extend(off.flat_map(|off| kernel.entries(&off.variant, &choice)));
    }
    out
}

/// Compiles these entries of a generated kernel, and returns the machine code and the facts about it.
fn compiled(
    kernel: &Kernel,
    arch: &str,
    entries: Vec<String>,
    tools: &BTreeMap<String, PathBuf>,
    dir: &Path,
) -> Result<(Vec<u8>, CompileFacts), String> {
    let folder = dir.join(&kernel.name).join(arch);
    let scratch = folder.join("scratch");
    std::fs::create_dir_all(&scratch).unwrap();
    let text = &kernel.made().expect("it is generated").source;
    std::fs::write(folder.join("kernel.cu"), text.as_bytes()).unwrap();
    let params = CompileParams {
        compiler: Compiler::Nvrtc,
        arch: arch.into(),
        main: "kernel.cu".into(),
        entries,
        defines: BTreeMap::new(),
        std: "c++17".into(),
        include: vec![],
        flags: vec![],
        candidate: false,
        lined: false,
        ptx: false,
        host: None,
        triton: vec![],
    };
    let made = compile(&params, &folder, &dir.join("shim"), tools, &scratch);
    made.map(|made| (made.cubin, made.facts)).map_err(|error| format!("{} for {arch}: {error}: {error:?}", kernel.name))
}

#[test]
#[ignore = "second tier: every generated kernel through the device compiler"]
fn every_variant_of_every_generated_kernel_compiles_for_the_gpus_it_is_declared_for() {
    let (tools, package) = (tools(), package());
    assert!(package.kernels.len() >= 10);
    let dir = tempfile::tempdir().unwrap();
    shim(dir.path());
    let failed = std::sync::Mutex::new(vec![]);
    let mut work: Vec<(&Kernel, (&str, bool))> =
        package.kernels.iter().flat_map(|kernel| ARCHITECTURES.map(|arch| (kernel, arch))).collect();
    // Slow compilations come first, and each thread takes the next one, so that both threads are busy to the end.
    work.sort_by_key(|(_, (_, every))| !every);
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((kernel, (arch, every))) = work.get(next.fetch_add(1, Relaxed)) {
                    let operator = package.operator(&kernel.operator).unwrap();
                    let entries = entries(kernel, operator, &target(arch), *every).into_iter().collect();
                    if let Err(error) = compiled(kernel, arch, entries, &tools, dir.path()) {
                        failed.lock().unwrap().push(error);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn inspection(function: &FunctionFacts) -> Inspection {
    Inspection { functions: vec![function.clone()], disassembled: true, ..Inspection::default() }
}

/// Compares the first variant that matches `like` with the same variant without each of its methods. Returns the methods that the machine code shows. Methods
/// that the variant does not have are left out.
fn shown(kernel: &str, arch: &str, like: &[&str]) -> BTreeSet<String> {
    let (tools, package) = (tools(), package());
    let dir = tempfile::tempdir().unwrap();
    shim(dir.path());
    let kernel = package.kernels.iter().find(|k| k.name == kernel).unwrap();
    let operator = package.operator(&kernel.operator).unwrap();
    let choice = &operator.choices()[0];
    let variants = kernel.variants(&target(arch), choice).unwrap();
    let on = variants.iter().find(|v| like.iter().all(|part| v.label.contains(part))).unwrap();
    let off: Vec<_> = kernel.methods.iter().filter_map(|m| Some((m, kernel.without(on, m)?.variant))).collect();
    let first = |variant| kernel.entries(variant, choice).remove(0);
    let mut entries = vec![first(on)];
    entries.extend(off.iter().map(|(_, variant)| first(variant)));
    let mut distinct = entries.clone();
    distinct.sort();
    distinct.dedup();
    let (cubin, facts) = compiled(kernel, arch, distinct.clone(), &tools, dir.path()).unwrap();
    let asked = InspectParams {
        arch: arch.into(),
        entries: distinct.clone(),
        disassemble: true,
        listing: false,
        launches: vec![],
        host: false,
    };
    let seen = inspect(&asked, &cubin, &facts, Some(&tools["nvdisasm"])).unwrap();
    let of = |entry: &String| {
        let symbol = &facts.symbols[distinct.iter().position(|e| e == entry).unwrap()];
        inspection(seen.functions.iter().find(|f| f.symbol == *symbol).unwrap())
    };
    let registry = signatures();
    let shows = |method: &kforge::model::Method, without: &String| {
        let own = (!method.signature.is_empty()).then_some(&method.signature);
        let patterns = own.or_else(|| registry[&method.id].patterns()).and_then(|s| s.for_arch(arch)).unwrap();
        matched(Ok(patterns), &of(&entries[0]), &of(without)).shown == Shown::Shown
    };
    let found = off.iter().zip(&entries[1..]).filter(|((method, _), without)| shows(method, without));
    found.map(|((method, _), _)| method.id.clone()).collect()
}

fn set(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| id.to_string()).collect()
}

#[test]
#[ignore = "second tier: every generated kernel through the device compiler"]
fn machine_code_shows_the_methods_of_products_on_every_unit() {
    let always = ["memory.vectorized_access", "memory.async_copy", "compute.tensor_core"];
    let warpgroups = shown("linear", "sm_90a", &["UNIT=wgmma"]);
    assert_eq!(warpgroups, set(&[&always[..], &["compute.warpgroup_products"]].concat()));
    for arch in ["sm_80", "sm_90a"] {
        let warps = shown("matmul", arch, &["UNIT=mma"]);
        assert!(warps.is_superset(&set(&[&always[..], &["memory.ldmatrix_stmatrix"]].concat())), "{arch}: {warps:?}");
    }
    let portable = shown("matmul", "sm_80", &["UNIT=wmma"]);
    assert!(portable.contains("compute.tensor_core"), "{portable:?}");
}

#[test]
#[ignore = "second tier: every generated kernel through the device compiler"]
fn machine_code_shows_the_methods_of_rows_and_of_elementwise_expressions() {
    let rows = shown("softmax", "sm_90a", &["WARP_ROWS=false", "KEEP=16"]);
    let all = ["memory.vectorized_access", "compute.warp_shuffle", "compute.launch_config", "memory.rows_in_registers"];
    assert_eq!(rows, set(&all));
    assert_eq!(shown("bias_gelu", "sm_80", &[]), set(&["memory.vectorized_access"]));
}
