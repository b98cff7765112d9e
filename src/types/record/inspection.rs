//! The facts about a binary that an inspect step reports.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Facts of one entry function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FunctionFacts {
    /// The entry as C++ spells it: `rms_norm<float, 256, 4>`.
    pub entry: String,
    /// The symbol in the binary.
    pub symbol: String,
    /// Registers per thread; none on `cpu`.
    pub registers: Option<u32>,
    /// Bytes of spill stores per thread, if the compiler's log reports them.
    pub spill_stores: Option<u64>,
    /// Bytes of spill loads per thread, if the compiler's log reports them.
    pub spill_loads: Option<u64>,
    /// Bytes of stack per thread.
    pub stack: Option<u64>,
    /// Bytes of static shared memory per block, without the bytes that the system reserves.
    pub shared: Option<u64>,
    /// Parameters as (offset, size) in bytes, in order.
    pub params: Vec<(u32, u32)>,
    /// Maximum threads of a block, if launch bounds state it.
    pub max_threads: Option<u32>,
    /// How often each opcode occurs in the machine code, with its modifiers: `LDG.E.128`. Empty if it was not disassembled.
    pub opcodes: BTreeMap<String, u64>,
}

/// Facts of a binary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Inspection {
    /// Architectures for which it holds machine code; `cpu` for an emulated binary.
    pub architectures: Vec<String>,
    /// Its entries, in the order of the compile step's list.
    pub functions: Vec<FunctionFacts>,
    /// Whether opcodes were counted.
    pub disassembled: bool,
    /// Why launches in the parameters are impossible with it: arguments that it does not take, blocks that it cannot have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
}
