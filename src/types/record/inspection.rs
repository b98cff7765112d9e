//! The facts about a binary that an inspect step gives.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Facts of one entry function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FunctionFacts {
    /// The entry as C++ spells it: `rms_norm<float, 256, 4>`.
    pub entry: String,
    /// The symbol in the binary.
    pub symbol: String,
    /// Registers a thread; none on `cpu`.
    pub registers: Option<u32>,
    /// Bytes of spill stores a thread, where the compiler's log says.
    pub spill_stores: Option<u64>,
    /// Bytes of spill loads a thread, where the compiler's log says.
    pub spill_loads: Option<u64>,
    /// Bytes of stack a thread.
    pub stack: Option<u64>,
    /// Bytes of static shared memory of a block, without what the system reserves.
    pub shared: Option<u64>,
    /// Parameters as (offset, size) in bytes, in order.
    pub params: Vec<(u32, u32)>,
    /// Most threads of a block, where launch bounds say.
    pub max_threads: Option<u32>,
    /// How often each opcode stands in the machine code, with its modifiers: `LDG.E.128`. Empty where it was not disassembled.
    pub opcodes: BTreeMap<String, u64>,
}

/// Facts of a binary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Inspection {
    /// Architectures it holds machine code for; `cpu` for an emulated one.
    pub architectures: Vec<String>,
    /// Its entries, in the order of the compile step's list.
    pub functions: Vec<FunctionFacts>,
    /// Whether opcodes were counted.
    pub disassembled: bool,
    /// Why launches that were asked about cannot be made of it: arguments that it does not take, blocks that it cannot have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
}
