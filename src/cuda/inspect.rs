//! The facts that a cubin states about itself. Knows how to derive facts from ELF sections, the compiler's log and the disassembler; does not verify them.
//!
//! ELF facts cost under a millisecond and are read for every binary. Disassembly costs a process (0.23 s) and is requested only if methods are judged.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::elf::{self, ElfError};
use super::fatbin::{self, LibraryError};
use kforge_foundation::process::End;
use kforge_harness::compilers::{ToolSandbox, ended};
use kforge_types::record::machine_code::{self, DamagedArchive};
use kforge_types::record::params::{CompileFacts, InspectParams};
use kforge_types::record::{FunctionFacts, Inspection};

/// The most bytes of a disassembly.
const LISTING: usize = 1 << 30;
/// The time limit for disassembling a binary of the caller's own.
const LONGEST: Duration = Duration::from_secs(600);

/// Why machine code cannot be inspected.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The working folder cannot be created.
    #[error("could not make a working folder: {0}")]
    Folder(io::Error),
    /// The binary is not a cubin.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// The binary is not a library with machine code.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The machine code is a damaged archive.
    #[error(transparent)]
    Archive(#[from] DamagedArchive),
    /// The recorded facts of the compile step are not about these entries.
    #[error("{symbols} symbols are recorded for {entries} entries")]
    Symbols {
        /// Number of recorded symbols.
        symbols: usize,
        /// Number of requested entries.
        entries: usize,
    },
    /// An entry has no code.
    #[error("the binary has no function `{symbol}`, which is entry `{entry}`")]
    NoFunction {
        /// The symbol.
        symbol: String,
        /// The entry.
        entry: String,
    },
    /// No disassembler is available.
    #[error("the toolchain has no nvdisasm here")]
    NoDisassembler,
    /// The disassembler fails.
    #[error("could not disassemble with `{}`: {why}", .program.display())]
    Disassemble {
        /// The disassembler.
        program: PathBuf,
        /// The reason.
        #[source]
        why: DisassemblyError,
    },
}

/// Why the disassembler fails.
#[derive(Debug, thiserror::Error)]
pub enum DisassemblyError {
    /// The disassembler cannot be run, or its files cannot be written.
    #[error(transparent)]
    Io(io::Error),
    /// The disassembler ended without success.
    #[error("{}", format!("{} {said}", ended("it", *.end)).trim_end())]
    Ended {
        /// How it ended.
        end: End,
        /// Its message.
        said: String,
    },
    /// The output is too long.
    #[error("its output is too long")]
    TooLong,
    /// The output has an unknown format.
    #[error("its output has an unknown form: {0}")]
    Form(serde_json::Error),
}

/// Inspects a cubin of the caller's own, with an unconfined disassembler: see [`inspect_within`].
///
/// # Errors
/// As for [`inspect_within`].
pub fn inspect(
    params: &InspectParams,
    cubin: &[u8],
    facts: &CompileFacts,
    nvdisasm: Option<&Path>,
) -> Result<Inspection, InspectError> {
    let scratch = tempfile::tempdir().map_err(InspectError::Folder)?;
    let within = ToolSandbox { scratch: scratch.path(), bounds: None, deadline: Instant::now() + LONGEST };
    inspect_within(params, cubin, facts, nvdisasm, &within)
}

/// Inspects a cubin that a compile step made with these facts. `nvdisasm` is used if `params` request opcodes.
///
/// `shared` is the shared memory that the kernel declares. From sm_90 on, the system reserves 1024 bytes in every block, which are part of a function's section
/// and are subtracted here. `opcodes` are those of the entry's section, including functions that the entry calls and that were not inlined.
///
/// # Errors
/// The binary is not a cubin, lacks an entry, or cannot be disassembled.
pub fn inspect_within(
    params: &InspectParams,
    cubin: &[u8],
    facts: &CompileFacts,
    nvdisasm: Option<&Path>,
    within: &ToolSandbox<'_>,
) -> Result<Inspection, InspectError> {
    if params.host {
        return inspect_library(params, cubin, facts, nvdisasm, within);
    }
    if facts.symbols.len() != params.entries.len() {
        let (symbols, entries) = (facts.symbols.len(), params.entries.len());
        return Err(InspectError::Symbols { symbols, entries });
    }
    let mut found = Inspection { disassembled: params.disassemble, ..Inspection::default() };
    // Entries that were compiled together share a cubin; of those that were compiled each by itself, each has one.
    let together: Vec<(&String, &String)> = params.entries.iter().zip(&facts.symbols).collect();
    let parts = machine_code::cubins(cubin)?;
    if machine_code::is_archive(cubin) && parts.len() != together.len() {
        return Err(InspectError::Symbols { symbols: parts.len(), entries: together.len() });
    }
    for (at, part) in parts.iter().enumerate() {
        let named = if machine_code::is_archive(cubin) { &together[at..=at] } else { &together[..] };
        let read = elf::read(part)?;
        let mut opcodes = match (params.disassemble, nvdisasm) {
            (false, _) => BTreeMap::new(),
            (true, Some(nvdisasm)) => disassemble(nvdisasm, part, within)?,
            (true, None) => return Err(InspectError::NoDisassembler),
        };
        for (entry, symbol) in named {
            let opcodes = opcodes.remove(*symbol).unwrap_or_default();
            let function = function(&read, symbol, facts, opcodes);
            let mut function = function
                .ok_or_else(|| InspectError::NoFunction { symbol: (*symbol).clone(), entry: (*entry).clone() })?;
            if let Some((stores, loads)) = facts.spills.get(*entry) {
                (function.spill_stores, function.spill_loads) = (Some(*stores), Some(*loads));
            }
            function.entry.clone_from(entry);
            found.functions.push(function);
        }
        if !found.architectures.contains(&read.architecture) {
            found.architectures.push(read.architecture);
        }
    }
    Ok(found)
}

/// The disassembly of a binary, as `nvdisasm` writes it: of one cubin after the other, where it has several.
///
/// # Errors
/// The binary is damaged, or cannot be disassembled.
pub fn listing_within(
    params: &InspectParams,
    binary: &[u8],
    nvdisasm: &Path,
    within: &ToolSandbox<'_>,
) -> Result<Vec<u8>, InspectError> {
    let cubins = if params.host { fatbin::cubins(binary)? } else { machine_code::cubins(binary)? };
    let mut out = vec![];
    for cubin in cubins {
        out.extend(disassembled(nvdisasm, "-c", cubin, within)?);
    }
    Ok(out)
}

/// Inspects the machine code of every kernel in a library with its own launcher, each by its symbol. If the library has no kernels, nothing is disassembled:
/// the launcher runs kernels from elsewhere.
fn inspect_library(
    params: &InspectParams,
    library: &[u8],
    facts: &CompileFacts,
    nvdisasm: Option<&Path>,
    within: &ToolSandbox<'_>,
) -> Result<Inspection, InspectError> {
    let mut found = Inspection::default();
    for cubin in fatbin::cubins(library)? {
        let (read, kernels) = (elf::read(cubin)?, elf::kernels(cubin)?);
        if kernels.is_empty() {
            continue;
        }
        let mut opcodes = match (params.disassemble, nvdisasm) {
            (false, _) => BTreeMap::new(),
            (true, Some(nvdisasm)) => disassemble(nvdisasm, cubin, within)?,
            (true, None) => return Err(InspectError::NoDisassembler),
        };
        found.disassembled = params.disassemble;
        if !found.architectures.contains(&read.architecture) {
            found.architectures.push(read.architecture.clone());
        }
        let of = |symbol: &String| function(&read, symbol, facts, opcodes.remove(symbol).unwrap_or_default());
        found.functions.extend(kernels.iter().filter_map(of));
    }
    Ok(found)
}

/// The facts of one function of a cubin, by its symbol; none if it has no code.
fn function(
    read: &elf::Cubin,
    symbol: &str,
    facts: &CompileFacts,
    opcodes: BTreeMap<String, u64>,
) -> Option<FunctionFacts> {
    let function = read.functions.get(symbol)?;
    let spills = facts.spills.get(symbol);
    let (from, reserved) = elf::RESERVED_SHARED;
    let reserved = if read.capability >= from { reserved } else { 0 };
    Some(FunctionFacts {
        entry: symbol.to_string(),
        symbol: symbol.to_string(),
        registers: function.registers,
        spill_stores: spills.map(|s| s.0),
        spill_loads: spills.map(|s| s.1),
        stack: function.stack,
        shared: Some(function.shared.saturating_sub(reserved)),
        params: function.params.clone(),
        max_threads: function.max_threads,
        opcodes,
    })
}

/// The number of each opcode with its modifiers, by function.
fn disassemble(
    nvdisasm: &Path,
    cubin: &[u8],
    within: &ToolSandbox<'_>,
) -> Result<BTreeMap<String, BTreeMap<String, u64>>, InspectError> {
    let json = disassembled(nvdisasm, "-json", cubin, within)?;
    let why = |e| InspectError::Disassemble { program: nvdisasm.to_owned(), why: DisassemblyError::Form(e) };
    opcodes(&json).map_err(why)
}

/// What the disassembler prints about a cubin.
fn disassembled(nvdisasm: &Path, form: &str, cubin: &[u8], within: &ToolSandbox<'_>) -> Result<Vec<u8>, InspectError> {
    let cannot = |why| InspectError::Disassemble { program: nvdisasm.to_owned(), why };
    let folder = tempfile::Builder::new()
        .prefix(".inspect-")
        .tempdir_in(within.scratch)
        .map_err(|e| cannot(DisassemblyError::Io(e)))?;
    std::fs::write(folder.path().join("binary"), cubin).map_err(|e| cannot(DisassemblyError::Io(e)))?;
    let command = within.command(nvdisasm, folder.path()).map_err(|e| cannot(DisassemblyError::Io(e)))?;
    let command = command.args([form, "binary"]).capture(LISTING);
    let finished = within.run(&command).map_err(|e| cannot(DisassemblyError::Io(e)))?;
    if !finished.end.success() {
        let said = finished.stderr.text();
        let said = said.trim().to_string();
        return Err(cannot(DisassemblyError::Ended { end: finished.end, said }));
    }
    finished.stdout.whole().ok_or_else(|| cannot(DisassemblyError::TooLong))
}

/// Parses the output of `nvdisasm -json`: a header, then a list of functions with their instructions.
fn opcodes(json: &[u8]) -> Result<BTreeMap<String, BTreeMap<String, u64>>, serde_json::Error> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "kebab-case")]
    struct Function {
        function_name: String,
        sass_instructions: Vec<Instruction>,
    }
    #[derive(serde::Deserialize)]
    struct Instruction {
        opcode: String,
    }
    let (_, functions): (serde_json::Value, Vec<Function>) = serde_json::from_slice(json)?;
    let mut all: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for function in functions {
        let counts = all.entry(function.function_name).or_default();
        for instruction in function.sass_instructions {
            *counts.entry(instruction.opcode).or_default() += 1;
        }
    }
    Ok(all)
}

#[cfg(test)]
#[path = "inspect_tests.rs"]
mod tests;
