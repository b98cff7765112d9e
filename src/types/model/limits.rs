//! What blocks and multiprocessors of an architecture can have. Knows names and limits; does not know devices.
//!
//! All numbers are from the table of technical specifications per compute capability in the CUDA C++ Programming Guide, 13.0.

use serde::{Deserialize, Serialize};

/// Most bytes of shared memory a block can have, static and dynamic together, where a kernel opts in; none where it is not known.
pub fn shared_of_a_block(capability: u32) -> Option<u64> {
    let kib = match capability {
        75 => 64,
        80 | 87 => 163,
        86 | 89 | 120 | 121 => 99,
        90 | 100 | 103 | 110 => 227,
        _ => return None,
    };
    Some(kib * 1024)
}

/// The most blocks of a cluster on any architecture.
pub const MOST_OF_A_CLUSTER: u64 = 16;

/// The most blocks of a cluster that run everywhere; a kernel has to be told where it is launched with more.
pub const PORTABLE_CLUSTER: u64 = 8;

/// The most blocks of a cluster; 0 before clusters, which came with compute capability 9.0. More than 8 are a matter of the GPU: 16 on those of data centres.
pub fn blocks_of_a_cluster(capability: u32) -> u64 {
    match capability {
        ..90 => 0,
        90 | 100 | 103 => MOST_OF_A_CLUSTER,
        _ => PORTABLE_CLUSTER,
    }
}

/// The least capability whose kernels may begin before the one before them has ended.
pub const DEPENDENT_LAUNCH: u32 = 90;

/// Registers of a block, of every architecture that can be compiled for.
pub const REGISTERS_OF_A_BLOCK: u64 = 65536;

/// What a block's threads take of the registers: a warp takes them in units of 256, so a thread's count is rounded up to a multiple of eight.
pub fn registers_taken(a_thread: u32, threads: u64) -> u64 {
    threads.div_ceil(32) * 32 * u64::from(a_thread).next_multiple_of(8)
}

/// What a multiprocessor has for its blocks, and what one block can have of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Threads of a block.
    pub block_threads: u64,
    /// Bytes of shared memory of a block.
    pub block_shared: u64,
    /// Registers of a block.
    pub block_registers: u64,
    /// Resident threads.
    pub threads: u64,
    /// Bytes of shared memory of all resident blocks.
    pub shared: u64,
    /// Bytes of it that the system keeps for itself of each block.
    pub reserved: u64,
    /// Registers.
    pub registers: u64,
    /// Resident blocks.
    pub blocks: u64,
}

/// The limits of a compute capability; none where they are not known.
pub fn limits(capability: u32) -> Option<Limits> {
    let (threads, shared_kib, blocks) = match capability {
        75 => (1024, 64, 16),
        80 => (2048, 164, 32),
        86 => (1536, 100, 16),
        87 => (1536, 164, 16),
        89 => (1536, 100, 24),
        90 | 100 | 103 => (2048, 228, 32),
        110 => (1536, 228, 24),
        120 | 121 => (1536, 100, 24),
        _ => return None,
    };
    Some(Limits {
        block_threads: 1024,
        block_shared: shared_of_a_block(capability)?,
        block_registers: REGISTERS_OF_A_BLOCK,
        threads,
        shared: shared_kib * 1024,
        reserved: if capability >= 80 { 1024 } else { 0 },
        registers: REGISTERS_OF_A_BLOCK,
        blocks,
    })
}

impl Limits {
    /// How many blocks of `threads` threads with so many registers each and `shared` bytes of shared memory a block a multiprocessor holds at once.
    pub fn resident(&self, threads: u64, registers: u32, shared: u64) -> u64 {
        let fits = |all: u64, one: u64| all.checked_div(one).unwrap_or(u64::MAX);
        let by_threads = fits(self.threads, threads.div_ceil(32) * 32);
        let by_registers = fits(self.registers, registers_taken(registers, threads));
        let by_shared = fits(self.shared, shared + self.reserved);
        by_threads.min(by_registers).min(by_shared).min(self.blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::target::CAPABILITIES;

    #[test]
    fn limits_of_a_block_are_those_of_the_table() {
        assert_eq!(shared_of_a_block(90), Some(232_448));
        assert_eq!(CAPABILITIES.into_iter().filter(|c| shared_of_a_block(*c).is_none()).collect::<Vec<_>>(), [88]);
        assert_eq!(CAPABILITIES.into_iter().filter(|c| limits(*c).is_none()).collect::<Vec<_>>(), [88]);
        assert_eq!([registers_taken(33, 32), registers_taken(40, 33)], [40 * 32, 40 * 64]);
    }

    #[test]
    fn clusters_came_with_hopper() {
        assert_eq!([89, 90, 103, 120].map(blocks_of_a_cluster), [0, 16, 16, 8]);
    }

    #[test]
    fn whatever_runs_out_first_bounds_the_resident_blocks() {
        let limits = limits(90).unwrap();
        assert_eq!(limits.resident(256, 32, 0), 8, "threads");
        assert_eq!(limits.resident(256, 64, 0), 4, "registers");
        assert_eq!(limits.resident(32, 16, 0), 32, "blocks");
        assert_eq!(limits.resident(32, 16, 100 * 1024), 2, "shared memory");
        assert_eq!(limits.resident(1024, 128, 0), 0);
        // The most that a block can have fits once.
        assert_eq!(limits.resident(32, 16, limits.block_shared), 1);
    }
}
