//! Reasons against a variant that follow from its machine code only. Knows functions, launches and limits of an architecture; does not know measurements.
//!
//! | a variant is dropped if | because |
//! |---|---|
//! | a block has more threads, registers or shared memory than it may have | the launch would be refused |
//! | no block of it fits on a multiprocessor | the launch would be refused: occupancy would be zero |
//! | a thread spills more than [`SPILLS`] bytes, and more than [`TIMES`] times what the best variant so far spills | every thread moves each byte twice |

use kforge_types::model::limits::{Limits, registers_taken};
use kforge_types::record::search::Block;
use kforge_types::record::{FunctionFacts, Inspection};

/// The number of spilled bytes per thread, stores and loads together, below which a variant is never dropped.
const SPILLS: u64 = 256;
/// The factor by which a variant may spill more than the best.
const TIMES: u64 = 4;

/// Bytes that a thread of the worst entry spills, stores and loads together; none if the compiler's log does not say.
pub(super) fn spills(inspection: &Inspection) -> Option<u64> {
    let of = |f: &FunctionFacts| Some(f.spill_stores? + f.spill_loads?);
    inspection.functions.iter().filter_map(of).max()
}

/// Why a variant cannot run, or is not worth running; none if there is no such reason. `best` is the number of bytes that the best variant so far spills.
pub(super) fn against(
    inspection: &Inspection,
    launches: &[Block],
    limits: Option<&Limits>,
    best: Option<u64>,
) -> Option<String> {
    let impossible = limits.and_then(|limits| {
        launches.iter().find_map(|block| {
            let function = inspection.functions.iter().find(|f| f.entry == block.entry)?;
            refused(block, function, limits)
        })
    });
    impossible.or_else(|| {
        let (own, best) = (spills(inspection)?, best?);
        (own > SPILLS && own > TIMES * best)
            .then(|| format!("a thread spills {own} bytes, but the best so far spills {best}"))
    })
}

fn refused(block: &Block, function: &FunctionFacts, limits: &Limits) -> Option<String> {
    let Block { entry, threads, .. } = block;
    let most = function.max_threads.map_or(limits.block_threads, u64::from).min(limits.block_threads);
    if *threads > most {
        return Some(format!("`{entry}`: a block has {threads} threads, but {most} are allowed"));
    }
    let shared = function.shared.unwrap_or(0) + block.shared;
    if shared > limits.block_shared {
        let most = limits.block_shared;
        return Some(format!("`{entry}`: a block has {shared} bytes of shared memory, but {most} are allowed"));
    }
    let registers = function.registers.unwrap_or(0);
    let taken = registers_taken(registers, *threads);
    if taken > limits.block_registers {
        let most = limits.block_registers;
        return Some(format!("`{entry}`: a block of {threads} threads needs {taken} registers, but there are {most}"));
    }
    (limits.resident(*threads, registers, shared) == 0)
        .then(|| format!("`{entry}`: no block of it fits on a multiprocessor"))
}
