//! The registry of methods, tested on machine code: for each method with a signature, small kernels with and without it (`tests/methods/kernels/ID.cu`) are
//! compiled for every architecture that the toolchain supports and the method applies to. Only the kernel with the method may show the signature.
//!
//! In a file, `with` is compared with `without`, and `with_X` with `without_X` if it exists, else also with `without`. The preprocessor leaves out what an
//! architecture lacks. All files of an architecture are compiled as one source, each in its own namespace, because each disassembly starts a process.
//!
//! Uses the network only if the toolchain is not yet installed below `target/kforge-test-home`, like `acquire`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use crate::toolchain::install;
use kforge::cuda::{compile, inspect, shim_headers};
use kforge::measure::signature::matched;
use kforge::model::SassPatterns;
use kforge::model::target::CAPABILITIES;
use kforge::optimize::methods::{Entry, Fit, registry};
use kforge::record::params::{CompileFacts, CompileParams, Compiler, InspectParams, Shown};
use kforge::record::{FunctionFacts, Inspection};
use kforge::toolchain::cuda::Group;
use object::{Object, ObjectSection};

/// Headers that the kernels need, included before any namespace.
const HEADERS: &str = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <mma.h>\n#include <cooperative_groups.h>\n#include \"ptx.cuh\"\n";

fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/methods/kernels")
}

/// The methods with a signature in machine code.
fn shown() -> impl Iterator<Item = &'static Entry> {
    registry().entries().iter().filter(|e| e.signature.patterns().is_some())
}

/// NVRTC and the disassembler, which other tests of the toolchain may have installed.
fn tools() -> &'static BTreeMap<String, PathBuf> {
    static TOOLS: OnceLock<BTreeMap<String, PathBuf>> = OnceLock::new();
    TOOLS.get_or_init(|| install(Group::Compile).into_iter().chain(install(Group::Disassemble)).collect())
}

/// Every compute capability: with its suffix for specific instructions, if it has one, and in its portable form.
fn architectures() -> Vec<String> {
    let suffixes = |c: u32| if c >= 90 { vec!["a", ""] } else { vec![""] };
    CAPABILITIES.into_iter().flat_map(|c| suffixes(c).into_iter().map(move |s| format!("sm_{c}{s}"))).collect()
}

fn namespace(id: &str) -> String {
    id.replace('.', "_")
}

/// The namespace and the function name in a symbol such as `_ZN4what4withEPf`.
fn parts(symbol: &str) -> Option<(String, String)> {
    let mut rest = symbol.strip_prefix("_ZN")?;
    let mut take = || {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let length: usize = rest[..digits].parse().ok()?;
        let word = rest.get(digits..digits + length)?;
        rest = &rest[digits + length..];
        Some(word.to_string())
    };
    Some((take()?, take()?))
}

/// The functions of every file that applies to an architecture, by method and name.
fn functions(arch: &str) -> BTreeMap<String, BTreeMap<String, FunctionFacts>> {
    let ids: Vec<&str> = shown().filter(|e| e.on(arch) == Fit::Fits).map(|e| e.id.as_str()).collect();
    let mut main = HEADERS.to_string();
    for id in &ids {
        main.push_str(&format!("namespace {} {{\n#include \"{id}.cu\"\n}}\n", namespace(id)));
    }
    let dir = tempfile::tempdir().unwrap();
    let (source, shim, scratch) = (dir.path().join("source"), dir.path().join("shim"), dir.path().join("scratch"));
    for folder in [&source, &shim, &scratch] {
        std::fs::create_dir(folder).unwrap();
    }
    for file in std::fs::read_dir(kernels()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), source.join(file.file_name())).unwrap();
    }
    std::fs::write(source.join("all.cu"), main).unwrap();
    for (name, text) in shim_headers() {
        let path = shim.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let params = CompileParams {
        compiler: Compiler::Nvrtc,
        arch: arch.into(),
        main: "all.cu".into(),
        entries: vec![format!("{}::with", namespace(ids[0]))],
        defines: BTreeMap::new(),
        std: "c++17".into(),
        include: vec![".".into()],
        flags: vec![],
        // A source of an agent is compiled as it is written: with the kernels that are no entry.
        candidate: true,
        lined: false,
        ptx: false,
        host: None,
        triton: vec![],
    };
    let made = compile(&params, &source, &shim, tools(), &scratch).unwrap_or_else(|e| panic!("{arch}: {e}: {e:?}"));
    let elf = object::File::parse(made.cubin.as_slice()).unwrap();
    let sections = elf.sections().filter_map(|s| s.name().ok()?.strip_prefix(".text.").map(String::from));
    let symbols: Vec<String> = sections.filter(|s| parts(s).is_some()).collect();
    let asked = InspectParams {
        arch: arch.into(),
        entries: symbols.clone(),
        disassemble: true,
        listing: false,
        launches: vec![],
        host: false,
    };
    let facts = CompileFacts { symbols, ..made.facts };
    let seen =
        inspect(&asked, &made.cubin, &facts, Some(&tools()["nvdisasm"])).unwrap_or_else(|e| panic!("{arch}: {e}"));
    let mut found: BTreeMap<String, BTreeMap<String, FunctionFacts>> = BTreeMap::new();
    for function in seen.functions {
        let (space, name) = parts(&function.symbol).unwrap();
        let id = ids.iter().find(|id| namespace(id) == space).unwrap_or_else(|| panic!("{}", function.symbol));
        found.entry(id.to_string()).or_default().insert(name, function);
    }
    found
}

fn inspection(function: &FunctionFacts) -> Inspection {
    Inspection { functions: vec![function.clone()], disassembled: true, ..Inspection::default() }
}

/// The patterns that were seen more often with the method than without, by method.
type Seen = BTreeSet<(String, String)>;

/// Checks the signature of every pair on an architecture.
fn examine(arch: &str, seen: &Mutex<Seen>, wrong: &Mutex<Vec<String>>) {
    let found = functions(arch);
    let wrong_ = |what: String| wrong.lock().unwrap().push(what);
    for entry in shown().filter(|e| e.on(arch) == Fit::Fits) {
        let (id, signature) = (&entry.id, entry.signature.patterns().unwrap());
        let Some(patterns) = signature.for_arch(arch) else {
            wrong_(format!("{id} has no signature on {arch}"));
            continue;
        };
        let of = &found[id];
        let with: Vec<&String> = of.keys().filter(|n| n.starts_with("with") && !n.starts_with("without")).collect();
        if with.is_empty() {
            wrong_(format!("{id} has no kernel on {arch}"));
        }
        for name in with {
            let own = name.replacen("with", "without", 1);
            let (on, off) = (inspection(&of[name]), inspection(of.get(&own).unwrap_or(&of["without"])));
            let pair = matched(Ok(patterns), &on, &off);
            if pair.shown != Shown::Shown {
                wrong_(format!("{id} on {arch}: `{name}` does not show it: {:?}", pair.counts));
            }
            for (pattern, ..) in pair.counts.iter().filter(|(_, with, without)| with > without) {
                seen.lock().unwrap().insert((id.clone(), pattern.clone()));
            }
            // A kernel without the method must not show it, compared with either kernel.
            for other in [&off, &on] {
                let without = matched(Ok(patterns), &off, other);
                if without.shown != Shown::NotShown {
                    wrong_(format!("{id} on {arch}: the kernel without `{name}` shows it: {:?}", without.counts));
                }
            }
        }
    }
}

#[test]
#[ignore = "second tier: every method on every architecture"]
fn every_signature_is_shown_with_its_method_and_not_without_it_on_every_architecture() {
    tools();
    let (seen, wrong, next) = (Mutex::new(Seen::new()), Mutex::new(vec![]), Mutex::new(architectures().into_iter()));
    // Two at a time: the compiler's front end is serialized, code generation and disassembly are not.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(arch) = { next.lock().unwrap().next() } {
                    examine(&arch, &seen, &wrong);
                }
            });
        }
    });
    let (seen, mut wrong) = (seen.into_inner().unwrap(), wrong.into_inner().unwrap());
    for entry in shown() {
        let signature = entry.signature.patterns().unwrap();
        for SassPatterns { any, all, .. } in signature.common.iter().chain(signature.by_arch.values()) {
            let never = any.iter().chain(all).filter(|p| !seen.contains(&(entry.id.clone(), p.to_string())));
            wrong.extend(never.map(|p| format!("{}: no kernel shows `{p}`", entry.id)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_method_has_kernels_or_a_reason_and_every_kernel_a_method() {
    let files: BTreeSet<String> = std::fs::read_dir(kernels())
        .unwrap()
        .filter_map(|f| f.unwrap().file_name().to_str()?.strip_suffix(".cu").map(String::from))
        .collect();
    let ids: BTreeSet<String> = shown().map(|e| e.id.clone()).collect();
    assert_eq!(files, ids);
    assert!(
        registry()
            .entries()
            .iter()
            .all(|e| e.signature.patterns().is_some() || e.signature.unseen().is_some_and(|w| w.len() > 20))
    );
}
