//! What a cubin says of itself. Knows how facts are put together from ELF sections, the compiler's log and the disassembler; does not judge them.
//!
//! ELF facts cost under a millisecond and are read for every binary. Disassembly costs a process (0.23 s) and is asked for only where methods are judged.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{elf, fatbin};
use kforge_harness::compilers::{Within, ended};
use kforge_types::record::params::{CompileFacts, InspectParams};
use kforge_types::record::{FunctionFacts, Inspection};

/// Most bytes of a disassembly.
const LISTING: usize = 1 << 30;
/// How long disassembling a binary of the caller's own may take.
const LONGEST: Duration = Duration::from_secs(600);

/// Inspects a cubin of the caller's own, with an unconfined disassembler: see [`inspect_within`].
///
/// # Errors
/// As there.
pub fn inspect(
    params: &InspectParams,
    cubin: &[u8],
    facts: &CompileFacts,
    nvdisasm: Option<&Path>,
) -> Result<Inspection, String> {
    let scratch = tempfile::tempdir().map_err(|e| format!("could not make a working folder: {e}"))?;
    let within = Within { scratch: scratch.path(), bounds: None, deadline: Instant::now() + LONGEST };
    inspect_within(params, cubin, facts, nvdisasm, &within)
}

/// Inspects a cubin that a compile step made with these facts. `nvdisasm` is used if `params` ask for opcodes.
///
/// Shared memory is what the kernel declares: from sm_90 on the system keeps 1024 bytes of every block, which are part of the section where a function has
/// one, and are taken off. Opcodes are those of the entry's section, with the functions it calls that were not inlined.
///
/// # Errors
/// The binary is no cubin, lacks an entry, or cannot be disassembled.
pub fn inspect_within(
    params: &InspectParams,
    cubin: &[u8],
    facts: &CompileFacts,
    nvdisasm: Option<&Path>,
    within: &Within<'_>,
) -> Result<Inspection, String> {
    if params.host {
        return inspect_library(params, cubin, facts, nvdisasm, within);
    }
    let read = elf::read(cubin)?;
    if facts.symbols.len() != params.entries.len() {
        return Err(format!("{} symbols are recorded for {} entries", facts.symbols.len(), params.entries.len()));
    }
    let mut opcodes = match (params.disassemble, nvdisasm) {
        (false, _) => BTreeMap::new(),
        (true, Some(nvdisasm)) => disassemble(nvdisasm, cubin, within)?,
        (true, None) => return Err("the toolchain has no nvdisasm here".into()),
    };
    let mut functions = vec![];
    for (entry, symbol) in params.entries.iter().zip(&facts.symbols) {
        let opcodes = opcodes.remove(symbol).unwrap_or_default();
        let function = function(&read, symbol, facts, opcodes);
        let mut function =
            function.ok_or_else(|| format!("the binary has no function `{symbol}`, which is entry `{entry}`"))?;
        function.entry.clone_from(entry);
        functions.push(function);
    }
    Ok(Inspection {
        architectures: vec![read.architecture],
        functions,
        disassembled: params.disassemble,
        refused: vec![],
    })
}

/// Inspects the machine code of every kernel in a library with a launcher of its own, each by its symbol. Where there is none, nothing was disassembled: what such a
/// launcher runs comes from elsewhere.
fn inspect_library(
    params: &InspectParams,
    library: &[u8],
    facts: &CompileFacts,
    nvdisasm: Option<&Path>,
    within: &Within<'_>,
) -> Result<Inspection, String> {
    let mut found = Inspection::default();
    for cubin in fatbin::cubins(library)? {
        let (read, kernels) = (elf::read(cubin)?, elf::kernels(cubin)?);
        if kernels.is_empty() {
            continue;
        }
        let mut opcodes = match (params.disassemble, nvdisasm) {
            (false, _) => BTreeMap::new(),
            (true, Some(nvdisasm)) => disassemble(nvdisasm, cubin, within)?,
            (true, None) => return Err("the toolchain has no nvdisasm here".into()),
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

/// The facts of one function of a cubin, called by its symbol; none where it has no code.
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

/// Opcodes with their modifiers, counted, by function.
fn disassemble(
    nvdisasm: &Path,
    cubin: &[u8],
    within: &Within<'_>,
) -> Result<BTreeMap<String, BTreeMap<String, u64>>, String> {
    let cannot = |e: &dyn std::fmt::Display| format!("could not disassemble with `{}`: {e}", nvdisasm.display());
    let folder = tempfile::Builder::new().prefix(".inspect-").tempdir_in(within.scratch).map_err(|e| cannot(&e))?;
    std::fs::write(folder.path().join("binary"), cubin).map_err(|e| cannot(&e))?;
    let command = within.command(nvdisasm, folder.path()).map_err(|e| cannot(&e))?;
    let command = command.args(["-json", "binary"]).capture(LISTING);
    let finished = within.run(&command).map_err(|e| cannot(&e))?;
    if !finished.end.success() {
        let said = finished.stderr.text();
        return Err(cannot(&format!("{} {}", ended("it", finished.end), said.trim()).trim_end()));
    }
    let json = finished.stdout.whole().ok_or_else(|| cannot(&"its output is longer than any may be"))?;
    opcodes(&json).map_err(|e| cannot(&e))
}

/// Reads what `nvdisasm -json` prints: a header, then a list of functions with their instructions.
fn opcodes(json: &[u8]) -> Result<BTreeMap<String, BTreeMap<String, u64>>, String> {
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
    let (_, functions): (serde_json::Value, Vec<Function>) =
        serde_json::from_slice(json).map_err(|e| format!("its output has an unknown form: {e}"))?;
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
