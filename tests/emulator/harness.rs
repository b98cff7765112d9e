//! Compiles `.cu` text with the host's g++ and runs it through the runner's entry point. The tests play the verifier's part with the buffers.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kforge::emulator::compile::{EmulatorCompile, compile};
use kforge::emulator::lines::Lines;
use kforge::emulator::run::run_trials;
use kforge::emulator::{headers, placement};
use kforge::harness::compilers::ToolSandbox;
use kforge::harness::message::{RunnerReport, RunnerRequest, RunnerTrial, SharedBuffer, ThreadOrder};
use kforge::model::DType;
use kforge::model::bound::{Arg, Constant, KernelLaunch, Launch, Scalar};
use kforge::record::{Finding, FindingKind};
use kforge::toolchain::cuda::Group;

#[path = "../installed/toolchain.rs"]
mod toolchain;

/// A compiled file.
pub(crate) struct Built {
    pub(crate) binary: Vec<u8>,
    pub(crate) lines: Vec<u8>,
    pub(crate) entries: Vec<String>,
    pub(crate) check: bool,
}

/// The folder of a source and of kforge's headers for one compilation.
pub(crate) fn stage(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("package");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("k.cu"), text).unwrap();
    for (name, bytes) in headers() {
        let to = dir.path().join("headers").join(name);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::write(to, bytes).unwrap();
    }
    std::fs::create_dir(dir.path().join("out")).unwrap();
    (dir, source)
}

pub(crate) fn try_build(text: &str, entries: &[&str], check: bool, defines: &[(&str, &str)]) -> Result<Built, String> {
    try_build_by(Path::new("/usr/bin/g++"), text, entries, check, defines)
}

/// Builds with the compiler at this path.
pub(crate) fn try_build_by(
    cxx: &Path,
    text: &str,
    entries: &[&str],
    check: bool,
    defines: &[(&str, &str)],
) -> Result<Built, String> {
    let (dir, source) = stage(text);
    let entries: Vec<String> = entries.iter().map(|e| (*e).to_owned()).collect();
    let out = dir.path().join("out");
    let toolkit = text.contains("<cub/").then(toolkit);
    let what = EmulatorCompile {
        cxx,
        source: &source,
        headers: &dir.path().join("headers"),
        main: "k.cu",
        entries: &entries,
        defines: &defines.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
        include: &[],
        flags: &[],
        std: "c++17",
        check,
        candidate: false,
        toolkit: toolkit.as_deref(),
        within: ToolSandbox { scratch: &out, bounds: None, deadline: Instant::now() + Duration::from_secs(120) },
    };
    compile(&what, &out).map_err(|e| e.log)?;
    let read = |name: &str| std::fs::read(out.join(name)).unwrap();
    Ok(Built { binary: read("binary"), lines: read("lines"), entries, check })
}

pub(crate) fn build(text: &str, entries: &[&str], check: bool) -> Built {
    build_with(text, entries, check, &[])
}

pub(crate) fn build_with(text: &str, entries: &[&str], check: bool, defines: &[(&str, &str)]) -> Built {
    try_build(text, entries, check, defines).unwrap_or_else(|log| panic!("{log}"))
}

/// A buffer and its contents.
#[derive(Clone)]
pub(crate) struct Data {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) element: u64,
    pub(crate) writable: bool,
    pub(crate) poisoned: bool,
}

pub(crate) fn floats(name: &'static str, values: impl IntoIterator<Item = f32>) -> Data {
    let bytes = values.into_iter().flat_map(f32::to_le_bytes).collect();
    Data { name, bytes, element: 4, writable: false, poisoned: false }
}

pub(crate) fn ints(name: &'static str, values: impl IntoIterator<Item = i32>) -> Data {
    let bytes = values.into_iter().flat_map(i32::to_le_bytes).collect();
    Data { name, bytes, element: 4, writable: false, poisoned: false }
}

/// A poisoned output of `count` elements of `element` bytes.
pub(crate) fn output(name: &'static str, count: usize, element: u64) -> Data {
    Data { name, bytes: vec![0xff; count * element as usize], element, writable: true, poisoned: true }
}

impl Data {
    pub(crate) fn writable(mut self) -> Self {
        self.writable = true;
        self
    }
}

pub(crate) fn ptr(buffer: &str) -> Arg {
    Arg::Pointer { buffer: buffer.into(), offset: 0 }
}

pub(crate) fn int(value: i64) -> Arg {
    Arg::Scalar { dtype: DType::I32, value: Scalar::Int(value) }
}

pub(crate) fn float(value: f64) -> Arg {
    Arg::Scalar { dtype: DType::F32, value: Scalar::Float(value) }
}

pub(crate) fn launch(entry: &str, grid: u32, block: u32, args: Vec<Arg>) -> KernelLaunch {
    KernelLaunch { entry: entry.into(), grid: [grid, 1, 1], block: [block, 1, 1], args, ..KernelLaunch::default() }
}

/// How to run.
#[derive(Clone)]
pub(crate) struct How {
    pub(crate) order: ThreadOrder,
    pub(crate) guard_after: bool,
    pub(crate) threads: u32,
    pub(crate) constants: Vec<Constant>,
    pub(crate) trials: usize,
}

impl Default for How {
    fn default() -> Self {
        How { order: ThreadOrder::Forward, guard_after: true, threads: 2, constants: vec![], trials: 1 }
    }
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) findings: Vec<Finding>,
    pub(crate) not_emulated: Vec<String>,
    pub(crate) printed: String,
    pub(crate) done: u32,
    pub(crate) buffers: BTreeMap<&'static str, Vec<u8>>,
}

impl Ran {
    pub(crate) fn ints(&self, name: &str) -> Vec<i32> {
        self.buffers[name].chunks(4).map(|c| i32::from_le_bytes(c.try_into().unwrap())).collect()
    }

    pub(crate) fn floats(&self, name: &str) -> Vec<f32> {
        self.buffers[name].chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
    }

    /// The only finding; checks its kind.
    #[track_caller]
    pub(crate) fn only(&self, kind: FindingKind) -> &Finding {
        assert_eq!(self.findings.len(), 1, "{:#?} {:?}", self.findings, self.not_emulated);
        assert_eq!(self.findings[0].kind, kind, "{:#?} {:?}", self.findings, self.not_emulated);
        &self.findings[0]
    }

    /// Checks that the run was clean: without a finding that would be shown of a kernel with correct results.
    #[track_caller]
    pub(crate) fn clean(self) -> Self {
        assert!(
            self.findings.iter().all(|finding| finding.kind.only_explains())
                && self.not_emulated.is_empty()
                && self.done == 1,
            "{:#?} {:?}",
            self.findings,
            self.not_emulated
        );
        self
    }
}

pub(crate) fn run_with(built: &Built, launches: Vec<KernelLaunch>, data: &[Data], how: &How) -> Ran {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    let file = |bytes: &[u8], at: u64, length: u64| {
        let fd = memfd_create("test", MemfdFlags::empty()).unwrap();
        ftruncate(&fd, length).unwrap();
        rustix::io::pwrite(&fd, bytes, at).unwrap();
        fd
    };
    let binary = file(&built.binary, 0, built.binary.len() as u64);
    let fds: Vec<_> = data
        .iter()
        .map(|d| {
            let place = placement(d.bytes.len() as u64, how.guard_after);
            (file(&d.bytes, place.offset, place.file), place)
        })
        .collect();
    let buffers: Vec<_> = data
        .iter()
        .zip(&fds)
        .map(|(d, (fd, _))| SharedBuffer {
            name: d.name.into(),
            fd: fd.as_raw_fd(),
            bytes: d.bytes.len() as u64,
            element: d.element,
            axes: vec![],
            writable: d.writable,
            poisoned: d.poisoned,
        })
        .collect();
    let request = RunnerRequest {
        binary_fd: binary.as_raw_fd(),
        entries: built.entries.clone(),
        check: built.check,
        launches: launches.into_iter().map(Launch::Kernel).collect(),
        constants: how.constants.clone(),
        trials: (0..how.trials)
            .map(|number| RunnerTrial {
                buffers: buffers.clone(),
                goes_on: false,
                order: how.order,
                guard_after: how.guard_after,
                poison: [0xff, 0x5a][number % 2],
            })
            .collect(),
        threads: how.threads,
    };
    let lines = Lines::parse(&built.lines);
    let mut ran =
        Ran { findings: vec![], not_emulated: vec![], printed: String::new(), done: 0, buffers: BTreeMap::new() };
    run_trials(&request, &mut |mut report| {
        lines.resolve(&mut report);
        match report {
            RunnerReport::Finding { finding, .. } => ran.findings.push(finding),
            RunnerReport::NotEmulated(claim) => ran.not_emulated.push(claim.what),
            RunnerReport::Printed { text } => ran.printed += &text,
            RunnerReport::TrialDone { .. } => ran.done += 1,
            RunnerReport::Loading => {}
            other => panic!("{other:?}"),
        }
    })
    .unwrap();
    for (d, (fd, place)) in data.iter().zip(&fds) {
        let mut bytes = vec![0; d.bytes.len()];
        rustix::io::pread(fd, &mut bytes[..], place.offset).unwrap();
        ran.buffers.insert(d.name, bytes);
    }
    ran
}

pub(crate) fn run(built: &Built, launch: KernelLaunch, data: &[Data]) -> Ran {
    run_with(built, vec![launch], data, &How::default())
}

/// The folder of a toolkit that holds `cub/`: of the tests' toolchain, which is installed if it is not there. Tests with cub are second tier.
fn toolkit() -> PathBuf {
    toolchain::install(Group::Cub)["cub-include"].clone()
}

/// The line of the text that contains `mark`, counted from one.
pub(crate) fn line_of(text: &str, mark: &str) -> u32 {
    text.lines().position(|l| l.contains(mark)).unwrap_or_else(|| panic!("no line with {mark}")) as u32 + 1
}

pub(crate) fn long(value: i64) -> Arg {
    Arg::Scalar { dtype: DType::I64, value: Scalar::Int(value) }
}
