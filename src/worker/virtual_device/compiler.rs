//! A stand-in for compilers and the disassembler. Its machine code is the source without comments, together with the parameters of the compilation, so that it
//! changes when a real binary would change, but not when only a comment changes. Knows its own pragmas:
//!
//! `#pragma sass ENTRY OPCODE COUNT` says how many instructions with an opcode are in the entries that the regular expression `ENTRY` matches. `#pragma fact
//! ENTRY NAME NUMBER` gives their number of `registers`, the bytes of spills that a thread loads (`spills`), or the bytes of shared memory of a block
//! (`shared`). Of kernels in Triton, `scratch` is the number of bytes of global scratch of a block.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use kforge_harness::message::Response;
use kforge_harness::task::{Task, done, failed};
use kforge_types::model::triton::TritonCompile;
use kforge_types::record::contract::TritonFacts;
use kforge_types::record::params::{CompileFacts, CompileParams, InspectParams, PTX};
use kforge_types::record::{FunctionFacts, Inspection};

use super::patterns::compiled;

/// The output of the stand-in compiler.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Binary {
    arch: String,
    entries: Vec<String>,
    defines: BTreeMap<String, String>,
    flags: Vec<String>,
    std: String,
    /// What a kernel in Triton is specialised for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    triton: Vec<TritonCompile>,
    /// Files by name, without comments.
    pub(super) code: BTreeMap<String, String>,
}

/// A line that makes every compilation of a source give a different output.
const UNLIKE: &str = "#pragma unlike";
/// A line that makes every compilation of a source fail.
const REFUSE: &str = "#pragma refuse";

/// Executes a compile step.
pub(crate) fn compile(task: &Task) -> Response {
    let run = || {
        let p: CompileParams = task.params()?;
        let root = task.required("tree:source")?;
        let mut code = BTreeMap::new();
        read(&root, &root, &mut code).map_err(|e| failed(format!("cannot read the source: {e}")))?;
        if code.values().any(|text| text.lines().any(|line| line == REFUSE)) {
            return Err(failed(format!("cannot compile: `{REFUSE}`")));
        }
        if code.values().any(|text| text.lines().any(|line| line == UNLIKE)) {
            // Like a compiler whose output depends on addresses.
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            code.insert("unlike".into(), now.as_nanos().to_string());
        }
        if p.ptx {
            // Comments do not show in machine code, but the sources' names and texts without them do.
            let entries: String = p.entries.iter().map(|entry| format!(".visible .entry {entry}(\n)\n")).collect();
            let code = serde_json::to_string(&code).map_err(|e| failed(e.to_string()))?;
            let text = format!("// {code}\n.version 9.0\n.target {}\n.address_size 64\n{entries}", p.arch);
            task.write(PTX, text.as_bytes())?;
        }
        let CompileParams { arch, entries, defines, flags, std, triton, .. } = p;
        let binary = Binary { arch, entries, defines, flags, std, triton, code };
        let facts = CompileFacts {
            compiler: "stand-in".into(),
            symbols: binary.entries.clone(),
            spills: binary.entries.iter().map(|e| (e.clone(), (0, 0))).collect(),
            triton: binary
                .entries
                .iter()
                .zip(&binary.triton)
                .map(|of| asked(&binary, of))
                .collect::<Result<_, _>>()
                .map_err(failed)?,
        };
        task.write_document("binary", &binary)?;
        task.write_document("facts", &facts)?;
        task.write("log", b"")?;
        Ok(done("by the stand-in compiler", vec![]))
    };
    run().unwrap_or_else(|response: Response| response)
}

/// What machine code in Triton asks of its launches.
fn asked(binary: &Binary, (entry, triton): (&String, &TritonCompile)) -> Result<TritonFacts, String> {
    let name = entry.clone();
    let facts = numbers(binary, "#pragma fact ", &name)?;
    let number = |name: &str| facts.get(name).copied().unwrap_or(0);
    Ok(TritonFacts {
        version: [3, 9],
        name,
        num_warps: triton.options.num_warps,
        num_ctas: triton.options.num_ctas,
        shared: number("shared"),
        global_scratch_size: number("scratch"),
        global_scratch_align: if number("scratch") > 0 { 128 } else { 1 },
        profile_scratch_size: 0,
        profile_scratch_align: 1,
        cooperative: false,
        pdl: false,
        descriptors: 0,
        maps: vec![],
    })
}

/// Reads every file below a folder, without comments and empty lines.
fn read(root: &Path, folder: &Path, code: &mut BTreeMap<String, String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read(root, &path, code)?;
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        let lines = text.lines().map(|l| l.split("//").next().unwrap_or_default().trim()).filter(|l| !l.is_empty());
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        code.insert(name, lines.collect::<Vec<_>>().join("\n"));
    }
    Ok(())
}

/// Executes an inspect step.
pub(crate) fn inspect(task: &Task) -> Response {
    let run = || {
        let params: InspectParams = task.params()?;
        let binary: Binary = task.document("binary")?;
        let mut functions = vec![];
        if params.listing {
            let mut lines = vec![];
            for entry in &params.entries {
                lines.push(format!(".text.{entry}:\n"));
                let opcodes = numbers(&binary, "#pragma sass ", entry).map_err(failed)?;
                lines.extend(opcodes.iter().map(|(name, n)| format!("        {name} R0 ;\n").repeat(*n as usize)));
            }
            task.write("listing", lines.concat().as_bytes())?;
        }
        for entry in &params.entries {
            let facts = numbers(&binary, "#pragma fact ", entry).map_err(failed)?;
            functions.push(FunctionFacts {
                entry: entry.clone(),
                symbol: entry.clone(),
                registers: Some(facts.get("registers").map_or(32, |n| *n as u32)),
                spill_stores: Some(0),
                spill_loads: Some(facts.get("spills").copied().unwrap_or(0)),
                shared: facts.get("shared").copied(),
                opcodes: if params.disassemble {
                    numbers(&binary, "#pragma sass ", entry).map_err(failed)?
                } else {
                    BTreeMap::new()
                },
                ..FunctionFacts::default()
            });
        }
        let found = Inspection {
            architectures: vec![binary.arch],
            functions,
            disassembled: params.disassemble,
            refused: vec![],
        };
        task.write_document("inspection", &found)?;
        Ok(done("32 registers", vec![]))
    };
    run().unwrap_or_else(|response: Response| response)
}

/// The numbers that pragmas of one kind give for an entry, by name.
fn numbers(binary: &Binary, pragma: &str, entry: &str) -> Result<BTreeMap<String, u64>, String> {
    let mut found = BTreeMap::new();
    for line in binary.code.values().flat_map(|text| text.lines()) {
        let Some(words) = line.strip_prefix(pragma) else { continue };
        let [pattern, name, count] = words.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(format!("`{line}` is not `{pragma}ENTRY NAME NUMBER`"));
        };
        let regex = compiled(pattern).map_err(|e| e.to_string())?;
        if regex.is_match(entry) {
            *found.entry(name.to_string()).or_default() += count.parse::<u64>().map_err(|e| e.to_string())?;
        }
    }
    Ok(found)
}
