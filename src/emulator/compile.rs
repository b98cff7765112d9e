//! Compiles a `.cu` source for the emulator with the host's C++ compiler: our headers come first, then a generated unit that defines
//! the macros and appends the entries.
//!
//! | what | why |
//! |---|---|
//! | a working folder with links `source` and `headers`, a cleared environment | the output does not depend on paths or on the caller |
//! | assembly first, then assembling and linking | the text shows names that are only declared (dynamic shared memory); lines in bounds checks can be blanked |
//! | `-g`, then `strip -g`; the unstripped object is the output `lines` | a comment that shifts lines changes `lines`, but not the binary |
//! | kernel launches in a source become calls of ours | a host compiler does not parse them; a source may contain host code, which is never run |
//! | launch bounds in a source become calls at the start of bodies | a macro in a declaration cannot carry a number to the run |
//! | inline PTX in a source becomes C++ (`ptx`) | a host compiler does not know it |
//! | for a source with cub, the toolkit's headers (`cccl`) | they are what the GPU's compiler reads |
//! | if the compiler rejects a name that only CUDA has, the binary's entries report it | the verdict is unknown, because CUDA would compile the source |
//! | only those parts of our headers that a source can name (`prelude`) | every compilation parses the headers in front of the source |
//! | checks of alignment, in a plain build only for some sources (`pointers`) | a device faults where x86-64 does not; checks slow loops down |
//! | thread-sanitizer hooks at compile time only | they call our runtime; no sanitizer is linked |
//!
//! `__LINE__` and `__FILE__` in a source still put line numbers into the binary. `assert` does not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::abi::{self, ADAPTED, HOOK, MAX_STATIC_SHARED, TOOLKIT};
use super::asked::headers_found;
use super::assembly::{blank_lines, declared_only, defined, watched};
use super::bounds::with_bounds;
use super::cccl;
use super::foreign::Foreign;
use super::host_code::{again, alone};
use super::image::Image;
use super::launches::without_launches;
use super::pointers::may_misalign;
use super::prelude::left_out;
use super::ptx::{Translated, with_ptx};
use kforge_foundation::process::End;
use kforge_harness::compilers::{ToolSandbox, advice, ended};
use kforge_harness::system::{assembler_reads, files_read};
use kforge_harness::trees::{self, Replaced};
use kforge_project::source::{ABSENT, addressed};
use kforge_project::toolchain::cxx::{beside, search_path};
use kforge_project::workspace::includes::scan;
use kforge_types::record::params::CompileFacts;

/// What to compile, and with which tools and options.
#[derive(Debug, Clone)]
pub struct EmulatorCompile<'a> {
    /// The absolute path of the C++ compiler (g++ 11 or later, clang++ 14 or later). The compiler and `strip` run with the `PATH` of [`search_path`].
    pub cxx: &'a Path,
    /// The package's staged tree.
    pub source: &'a Path,
    /// A folder that holds the files of [`super::headers`].
    pub headers: &'a Path,
    /// The file to compile, relative to `source`.
    pub main: &'a str,
    /// Entries as C++ spells them.
    pub entries: &'a [String],
    /// Macros.
    pub defines: &'a BTreeMap<String, String>,
    /// Include folders, relative to `source`.
    pub include: &'a [String],
    /// Further flags.
    pub flags: &'a [String],
    /// The language standard: `c++17`.
    pub std: &'a str,
    /// Whether this is a check build, which watches every access.
    pub check: bool,
    /// Whether a round tries the source: then nothing is left out of it.
    pub candidate: bool,
    /// The folder of the toolkit's headers that holds `cub/`, for a source that includes cub.
    pub toolkit: Option<&'a Path>,
    /// Where the compiler works, how it is confined, and its deadline.
    pub within: ToolSandbox<'a>,
}

/// The result of a compilation; the files `binary` and `lines` are in the output folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// Facts that only the compiler knows.
    pub facts: CompileFacts,
    /// The compiler's output: warnings.
    pub log: String,
    /// What was left out of the source because no entry needs it: other kernels, or whatever does not compile here.
    pub left_out: Option<String>,
    /// The absent headers that the compiler was given empty.
    pub(super) stand_ins: Vec<String>,
    /// Files of the system that the compiler read in addition to the sources and our headers, by absolute path.
    pub system: Vec<PathBuf>,
    /// Headers of the system whose existence the sources ask about, by absolute path.
    pub asked: Vec<PathBuf>,
}

/// The compiler rejected the source, or could not be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{log}")]
pub struct CompileFailed {
    /// The compiler's output.
    pub log: String,
    /// How the compiler ended, if something else ended it or if it printed nothing.
    pub ended: Option<End>,
    /// Whether the compiler refused the source's text, rather than the emulator what it defines or reads.
    pub(super) text: bool,
}

impl From<String> for CompileFailed {
    fn from(log: String) -> Self {
        CompileFailed { log, ended: None, text: false }
    }
}

/// Compiles into the existing folder `out`: the files `binary` and `lines`. The working folder is created in the scratch folder of [`EmulatorCompile::within`].
/// Kernels that nothing needs are left out first. A source that does not compile as it is written is compiled without its host code, or to entries that report what is not emulated ([`super::host_code`]).
pub fn compile(what: &EmulatorCompile<'_>, out: &Path) -> Result<Compiled, CompileFailed> {
    if let Some(alone) = alone(what)? {
        match as_given(what, out, &alone.replaced()) {
            Ok(compiled) => return Ok(Compiled { left_out: Some(alone.listed(what.main)), ..compiled }),
            Err(refused) if refused.text => {}
            Err(refused) => return Err(refused),
        }
    }
    match as_given(what, out, &Replaced::new()) {
        Err(refused) if refused.text => again(what, out, refused),
        compiled => compiled,
    }
}

/// Compiles with these files in place of the source's own.
pub(super) fn as_given(what: &EmulatorCompile<'_>, out: &Path, replaced: &Replaced) -> Result<Compiled, CompileFailed> {
    let with = |asm| compile_as(what, out, &Unit { asm, replaced, unknown: None });
    match with(Asm::Translated) {
        // A translation does not compile where an operand's type does not fit. And PTX that is not translated, in a statement with another spelling of `asm`,
        // reaches the host's assembler, which does not know it. These spellings also occur in headers of the system, where they are no statements, so they
        // become PTX only where the source does not compile otherwise.
        Err(refused) if refused.ended.is_none() && spells_asm(what.source) => with(Asm::Reported).map_err(|_| refused),
        compiled => compiled,
    }
}

/// What becomes of inline PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asm {
    /// It is translated where that is possible.
    Translated,
    /// Every statement in any spelling reports when it is executed.
    Reported,
}

/// How a source is compiled.
pub(super) struct Unit<'a> {
    /// What becomes of inline PTX.
    pub(super) asm: Asm,
    /// Files in place of the source's own, and further ones.
    pub(super) replaced: &'a Replaced,
    /// What every entry reports as not emulated, in place of the source.
    pub(super) unknown: Option<&'a Foreign>,
}

/// Whether a source names `asm`, `__asm__` or `__asm`.
fn spells_asm(source: &Path) -> bool {
    let spells = |text: &String| named_in(text, &["asm", "__asm__", "__asm"]).is_some();
    trees::texts(source).is_ok_and(|texts| texts.values().any(spells))
}

/// Compiles a source once, or entries in its place.
pub(super) fn compile_as(
    what: &EmulatorCompile<'_>,
    out: &Path,
    unit_of: &Unit<'_>,
) -> Result<Compiled, CompileFailed> {
    let fail = |doing: &str, e: std::io::Error| CompileFailed::from(format!("cannot {doing}: {e}"));
    let room = tempfile::Builder::new().prefix(".emulator-").tempdir_in(what.within.scratch);
    let room = room.map_err(|e| fail("make a working folder", e))?;
    let cwd = room.path().canonicalize().map_err(|e| fail("resolve the working folder", e))?;
    let mut macros = if unit_of.asm == Asm::Reported { vec!["KF_EVERY_ASM"] } else { vec![] };
    for (name, target) in [("source", what.source), ("headers", what.headers)] {
        let target = target.canonicalize().map_err(|e| fail(&format!("find `{}`", target.display()), e))?;
        if name == "source" {
            let adapted = lay_out_adapted(&target, unit_of.replaced, &cwd.join(name), unit_of.asm);
            if let Some(calls) = adapted.map_err(|e| fail("copy the sources", e))? {
                macros.extend(calls.then_some("KF_PTX"));
                continue;
            }
        }
        std::os::unix::fs::symlink(target, cwd.join(name)).map_err(|e| fail("link the sources", e))?;
    }
    if let Some(toolkit) = what.toolkit {
        let calls = cccl::lay_out(toolkit, &cwd).map_err(|e| fail("copy the headers of cub", e))?;
        macros.extend((calls && !macros.contains(&"KF_PTX")).then_some("KF_PTX"));
        macros.push("KF_CCCL");
    }
    let texts = texts(what.source).map_err(|e| fail("read the sources", e))?;
    let named = |wanted: &[&str]| {
        let (path, word) = texts.iter().find_map(|(path, text)| Some((path, named_in(text, wanted)?)))?;
        let file = path.strip_prefix(what.source).unwrap_or(path).display();
        Some(format!(
            "`{file}` names `{word}`: a kernel cannot take itself out of the checks that the emulator makes; leave the attribute out\n"
        ))
    };
    if let Some(why) = named(&OURS) {
        return Err(why.into());
    }
    // After our headers, because their templates use such names as `N` and `width` themselves.
    let mut unit = String::new();
    if what.toolkit.is_some() {
        // It names words that are poisoned below.
        let header = cccl::CONFIGURATION;
        let _ = writeln!(unit, "#if __has_include(<{header}>)\n#include <{header}>\n#endif");
    }
    unit += "#line 1 \"defines\"\n";
    if what.defines.keys().any(|name| !is_ours(name)) {
        // In front of the toolkit's own, ours would not be these.
        let beside = |name: &&str| what.toolkit.is_none() || !name.starts_with("cuda/") && !name.starts_with("nv/");
        for name in our_headers(&texts).into_iter().filter(beside) {
            let _ = writeln!(unit, "#include \"headers/{name}\"");
        }
    }
    for (name, value) in what.defines.iter().filter(|(name, _)| !is_ours(name)) {
        // The comment keeps a backslash at the end of the value from joining the next line.
        let _ = writeln!(unit, "#define {name} {} /**/", value.replace(['\n', '\r'], " "));
    }
    // Our own macros may still use these words.
    let _ = writeln!(unit, "#pragma GCC poison {}", UNWATCHED.join(" "));
    let _ = write!(unit, "#line 1 \"entries.cpp\"\n#include \"source/{}\"\n#line 1 \"entries\"\n", what.main);
    for (index, entry) in what.entries.iter().enumerate() {
        let _ = writeln!(unit, "KF_ENTRY({index}, {})", addressed(entry).trim_start_matches('&'));
    }
    let write =
        |name: &str, text: &str| fs::write(cwd.join(name), text).map_err(|e| fail(&format!("write `{name}`"), e));
    write("entries.cpp", &unit_of.unknown.map_or(unit, |missing| unknown_entries(what.entries.len(), missing)))?;

    let tool = Tool { cwd: &cwd, within: what.within, path: search_path(what.cxx) };
    let given = || what.defines.values().chain(what.entries).chain(what.flags);
    let every = || texts.iter().map(|(_, text)| text).chain(given()).map(String::as_str);
    let aligned = what.check || may_misalign(every());
    let compile_with = |left_out: &[&str]| {
        let mut args = arguments(what, &cwd, &[left_out, &macros].concat());
        if !unit_of.replaced.is_empty() {
            // Searched last.
            args.extend(["-idirafter".into(), format!("source/{ABSENT}")]);
        }
        if aligned {
            // After the kernel's own flags, because the last one of several counts.
            args.push("-fsanitize=alignment".into());
        }
        match tool.run(what.cxx, &args) {
            // g++ 11 does not know this flag.
            Err(refused) if refused.log.contains(FILL_LOCALS) => {
                tool.run(what.cxx, &args.into_iter().filter(|arg| arg != FILL_LOCALS).collect::<Vec<_>>())
            }
            ran => ran,
        }
    };
    let left_out = left_out(every(), |name| texts.iter().any(|(path, _)| path.ends_with(name)));
    let compile = || match compile_with(&left_out) {
        // If a limit or a signal ended the compiler, nothing is known about the source, and another run with more to parse would end sooner.
        Err(refused) if !left_out.is_empty() && refused.ended.is_none() => compile_with(&[]),
        ran => ran,
    };
    let mut log = match compile() {
        Ok(said) => said,
        Err(mut refused) => {
            if let Some(why) = named(&UNWATCHED).filter(|_| refused.log.contains("poisoned")) {
                refused.log += &why;
                return Err(refused);
            }
            refused.text = refused.ended.is_none();
            return Err(refused);
        }
    };
    let read = |name: &str, what: &str| fs::read_to_string(cwd.join(name)).map_err(|e| fail(what, e));
    let assembly = read("entries.s", "read the assembly")?;
    let list = read("reads", "read the list of headers")?;
    let (system, elsewhere) = reads(&list);
    let stand_in =
        |file: String| Some(file.strip_prefix("source/")?.strip_prefix(ABSENT)?.strip_prefix('/')?.to_string());
    let stand_ins = files_read(&list).into_iter().filter_map(stand_in).collect();
    if let Some(file) = elsewhere.or_else(|| assembler_reads(&assembly)) {
        let log = format!(
            "`{}` reads `{file}`, which kforge does not track: only headers of the package and of its dependencies can be read, and an include \
             that a macro computes must name one of these too",
            what.main
        );
        return Err(log.into());
    }
    let asked = headers_found(&tool, what, &texts, &search(what))?;
    let stub = abi::stub(&[], true);
    let ours = stub.lines().filter_map(|line| line.strip_prefix(".globl ")).collect();
    if let Some(name) = defined(&assembly, &ours) {
        let log = format!(
            "`{}` defines `{name}`, which the emulator defines: leave it out, or give it another name",
            what.main
        );
        return Err(log.into());
    }
    write("entries.s", &if what.check { watched(&blank_lines(&assembly)) } else { blank_lines(&assembly) })?;
    write("stub.s", &abi::stub(&declared_only(&assembly), assembly.contains(HOOK)))?;
    let link = "-shared -Wl,--build-id=none -Wl,--as-needed -Wl,-z,now -Wl,--no-undefined -o lines entries.s stub.s";
    log += &tool.run(what.cxx, &words(link))?;
    let linked = fs::read(cwd.join("lines")).map_err(|e| fail("read the binary", e))?;
    if let Some((names, bytes)) =
        Image::parse(&linked, what.entries.len()).map_err(|e| e.to_string())?.too_much_shared()
    {
        let log = format!(
            "`{}` declares {bytes} bytes of static shared memory in one function (`{}`): at most {MAX_STATIC_SHARED} are possible, and dynamic shared memory \
             (`extern __shared__`) where a target has more",
            what.main,
            names.join("`, `")
        );
        return Err(log.into());
    }
    let strip = beside(what.cxx, "strip").ok_or_else(|| "no `strip` beside the compiler".to_string())?;
    log += &tool.run(&strip, &words("-g -o binary lines"))?;
    for name in ["binary", "lines"] {
        fs::rename(cwd.join(name), out.join(name)).map_err(|e| fail(&format!("keep `{name}`"), e))?;
    }
    let symbols = (0..what.entries.len()).map(|i| format!("kf_entry_{i}")).collect();
    let facts = CompileFacts { compiler: "emulator".into(), symbols, ..CompileFacts::default() };
    Ok(Compiled { facts, log: log.replace("source/", ""), left_out: None, stand_ins, system, asked })
}

/// Copies the package's tree to `to` with these files in place of its own, and with kernel launches, launch bounds and inline PTX rewritten, if there is
/// anything of that kind. Returns whether the copy calls what is there for inline PTX; none if nothing was copied.
fn lay_out_adapted(source: &Path, replaced: &Replaced, to: &Path, asm: Asm) -> std::io::Result<Option<bool>> {
    let (mut all, mut calls) = (replaced.clone(), false);
    for (name, text) in trees::texts(source)? {
        if let Some(text) = adapted(replaced.get(&name).unwrap_or(&text), asm) {
            calls |= text.calls;
            all.insert(name, text.text);
        }
    }
    if all.is_empty() {
        return Ok(None);
    }
    trees::lay_out(source, &all, to)?;
    Ok(Some(calls))
}

/// The text with kernel launches, launch bounds and inline PTX rewritten; none if it contains none of them.
fn adapted(text: &str, asm: Asm) -> Option<Translated> {
    let launched = without_launches(text);
    let bounded = with_bounds(launched.as_deref().unwrap_or(text)).or(launched);
    let translated = (asm == Asm::Translated).then(|| with_ptx(bounded.as_deref().unwrap_or(text))).flatten();
    translated.or(bounded.map(|text| Translated { text, calls: false }))
}

/// A unit whose every entry reports that something is not emulated, at the place that uses it.
fn unknown_entries(count: usize, missing: &Foreign) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let (file, line) = &missing.place;
    let one = |index| {
        format!("#line {line} \"source/{}\"\nKF_UNKNOWN_ENTRY({index}, \"{}\")\n", quoted(file), quoted(&missing.what))
    };
    (0..count).map(one).collect()
}

/// The files of the package's tree, with their contents.
fn texts(source: &Path) -> std::io::Result<Vec<(PathBuf, String)>> {
    let mut texts = Vec::new();
    for entry in walkdir::WalkDir::new(source).follow_links(true) {
        let entry = entry.map_err(std::io::Error::from)?;
        if entry.file_type().is_file() {
            let text = String::from_utf8_lossy(&fs::read(entry.path())?).into_owned();
            texts.push((entry.into_path(), text));
        }
    }
    Ok(texts)
}

/// Our headers that the sources include and do not provide themselves, except `assert.h`, which depends on `NDEBUG` wherever it is included.
fn our_headers(texts: &[(PathBuf, String)]) -> BTreeSet<&'static str> {
    let found = texts.iter().map(|(_, text)| scan(text));
    let named: BTreeSet<String> = found.flat_map(|found| found.quoted.into_iter().chain(found.angled)).collect();
    let ours = super::headers().into_iter().map(|(name, _)| name);
    let meant = |name: &&str| named.contains(*name) && !texts.iter().any(|(path, _)| path.ends_with(name));
    ours.filter(meant).filter(|name| !["assert.h", "cassert"].contains(name)).collect()
}

/// Whether one of our headers may test a macro of that name, such as `__CUDA_NO_HALF_OPERATORS__`. No template in our headers uses such a name.
fn is_ours(name: &str) -> bool {
    ["_", "KF_", "KFORGE_"].iter().any(|start| name.starts_with(start))
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Fills uninitialized local variables with a pattern that is not a plausible value in any type, as is done for shared memory and buffers. Otherwise a register
/// often happens to hold the value that the author expected.
const FILL_LOCALS: &str = "-ftrivial-auto-var-init=pattern";

/// Words that would take a function out of the check build, so that none of its accesses were watched. They are errors after our own headers.
const UNWATCHED: [&str; 5] = [
    "no_sanitize",
    "no_sanitize_thread",
    "__no_sanitize__",
    "__no_sanitize_thread__",
    "disable_sanitizer_instrumentation",
];

/// Our own macros that do the same, which the poison leaves to our headers.
const OURS: [&str; 3] = ["KF_RAW", "KF_UNWATCHED", "KF_ENTRY_ATTRIBUTES"];

/// The first of `wanted` among the words of a text.
fn named_in<'a>(text: &str, wanted: &[&'a str]) -> Option<&'a str> {
    let mut words = text.split(|c: char| c != '_' && !c.is_alphanumeric());
    words.find_map(|word| wanted.iter().find(|wanted| **wanted == word).copied())
}

/// Arguments of the first run. Hidden visibility and no unique symbols keep variants apart. Thread-local names need no initializer calls. There is no
/// contraction, and there are no aliasing rules, because kernels reinterpret memory. `left_out`: macros of [`left_out`].
fn arguments(what: &EmulatorCompile<'_>, cwd: &Path, left_out: &[&str]) -> Vec<String> {
    let clang = is_clang(what.cxx);
    let mut args = words(
        "-x c++ -S -g1 -fPIC -fvisibility=hidden -fno-strict-aliasing -ffp-contract=off -fno-math-errno -fno-trapping-math -fwrapv -fno-semantic-interposition \
         -fno-stack-protector -fstack-clash-protection -U_FORTIFY_SOURCE -frandom-seed=kforge -Wno-unknown-pragmas -Wno-attributes -Wno-unused-value",
    );
    args.extend(words(if clang {
        "-fno-addrsig -Wno-ignored-attributes -Wno-c++20-extensions -Wno-unused-command-line-argument"
    } else {
        "-gno-record-gcc-switches -fno-gnu-unique -fno-extern-tls-init"
    }));
    args.push(FILL_LOCALS.into());
    args.push(format!("-ffile-prefix-map={}=.", cwd.display()));
    args.push("-ffile-prefix-map=source/=".into());
    args.push(if what.check { "-O1" } else { "-O3" }.into());
    args.extend(left_out.iter().map(|name| format!("-D{name}")));
    let ours = what.defines.iter().filter(|(name, _)| is_ours(name));
    args.extend(ours.map(|(name, value)| format!("-D{name}={value}")));
    args.extend(words("-include headers/kforge_cuda.h"));
    args.extend(search(what));
    // After the kernel's own flags, because the last one of several counts.
    args.extend(words(match (what.check, clang) {
        (true, false) => {
            // A vector is loaded by one access, not split into its elements: `watch` tells loads that only use a part of it. Calls of `memcpy` stay calls, because
            // the sanitizer does not see those that the compiler replaces.
            "-fsanitize=thread --param tsan-distinguish-volatile=1 --param tsan-instrument-func-entry-exit=0 -fsanitize=bounds,alignment -fno-tree-sra -fno-builtin-memcpy -fno-builtin-memmove -fno-builtin-memset -DKF_CHECK=1"
        }
        (true, true) => {
            "-fsanitize=thread -mllvm -tsan-distinguish-volatile=1 -mllvm -tsan-instrument-func-entry-exit=0 -fsanitize=array-bounds,alignment -DKF_CHECK=1"
        }
        (false, _) => "",
    }));
    args.extend(words("-MD -MF reads -o entries.s entries.cpp"));
    args
}

/// The standard, where headers are, and the kernel's own flags.
fn search(what: &EmulatorCompile<'_>) -> Vec<String> {
    let mut args = vec![format!("-std={}", what.std)];
    args.extend(what.include.iter().map(|folder| format!("-Isource/{folder}")));
    args.push("-Isource".into());
    if what.toolkit.is_some() {
        args.extend([ADAPTED, TOOLKIT].iter().flat_map(|folder| ["-isystem".into(), (*folder).into()]));
    }
    args.extend(words("-isystem headers"));
    args.extend(what.flags.iter().cloned());
    args
}

/// Whether the driver is clang++, by its own name or by the name that it links to.
fn is_clang(cxx: &Path) -> bool {
    let named = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().contains("clang"));
    named(cxx) || cxx.canonicalize().is_ok_and(|path| named(&path))
}

/// Files that the compiler read and that were not laid out here: files of the system by absolute path, and the first other file.
fn reads(list: &str) -> (Vec<PathBuf>, Option<String>) {
    let ours = |file: &str| {
        let steps = Path::new(file).components();
        let within = |folder: &&str| file.strip_prefix(*folder).is_some_and(|rest| rest.starts_with('/'));
        let known = ["source", "headers", ADAPTED, TOOLKIT].iter().any(within) || file == "entries.cpp";
        // The depth of the path below the working folder; the path never leaves `source` or `headers`.
        let depth = steps.clone().try_fold(0i32, |depth, step| match step {
            Component::Normal(_) => Some(depth + 1),
            Component::ParentDir => Some(depth - 1).filter(|depth| *depth > 0),
            _ => Some(depth),
        });
        known && depth.is_some()
    };
    let others = files_read(list).into_iter().filter(|file| !ours(file));
    let (system, elsewhere): (Vec<String>, Vec<String>) = others.partition(|file| file.starts_with('/'));
    (system.into_iter().map(PathBuf::from).collect(), elsewhere.into_iter().next())
}

pub(super) struct Tool<'a> {
    pub(super) cwd: &'a Path,
    within: ToolSandbox<'a>,
    path: String,
}

impl Tool<'_> {
    /// Runs a tool to its end and returns its output. Fails if the tool fails or its deadline passes.
    pub(super) fn run(&self, program: &Path, args: &[String]) -> Result<String, CompileFailed> {
        let name = program.display();
        let fail = |e: std::io::Error| CompileFailed::from(format!("cannot run `{name}`: {e}"));
        let command = self.within.command(program, self.cwd).map_err(fail)?.args(args);
        let command = command.env("PATH", &self.path).env("LC_ALL", "C").env("TMPDIR", self.cwd);
        let finished = self.within.run(&command).map_err(fail)?;
        let said = finished.stderr.text() + &finished.stdout.text();
        match finished.end {
            end if end.success() => Ok(said),
            End::Exited(_) if !said.is_empty() => Err((said.replace("source/", "") + advice(&said)).into()),
            end => {
                let log = ended(&format!("`{name}`"), end) + "\n" + &said.replace("source/", "");
                Err(CompileFailed { log, ended: Some(end), text: false })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_from_elsewhere_is_found() {
        let list = |files: &str| reads(&format!("entries.s: entries.cpp \\\n headers/kforge_cuda.h {files}\n"));
        assert_eq!(list("source/a.h source/inc/../b\\ c.h \\\n source/d.h"), (vec![], None));
        assert_eq!(
            list("/usr/include/math.h /tmp/a\\ b.h"),
            (["/usr/include/math.h", "/tmp/a b.h"].map(PathBuf::from).into(), None)
        );
        assert_eq!(list("source/../words").1, Some("source/../words".into()));
        assert_eq!(list("source/a/../../../b.h").1, Some("source/a/../../../b.h".into()));
    }
}
