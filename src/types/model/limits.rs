//! The limits of blocks and multiprocessors of an architecture. Knows names and limits; does not know devices.
//!
//! All numbers are from the table of technical specifications per compute capability in the CUDA C++ Programming Guide, 13.0.

use serde::{Deserialize, Serialize};

/// Maximum bytes of shared memory of a block, static and dynamic together, if a kernel opts in. None if it is not known.
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

/// The largest number of blocks of a cluster on any architecture.
pub const MOST_OF_A_CLUSTER: u64 = 16;

/// The largest number of blocks of a cluster that every architecture with clusters supports. A kernel must opt in to larger clusters.
pub const PORTABLE_CLUSTER: u64 = 8;

/// The largest number of blocks of a cluster; 0 before compute capability 9.0, which introduced clusters. Only data center GPUs support more than 8 blocks: 16.
pub fn blocks_of_a_cluster(capability: u32) -> u64 {
    match capability {
        ..90 => 0,
        90 | 100 | 103 => MOST_OF_A_CLUSTER,
        _ => PORTABLE_CLUSTER,
    }
}

/// The lowest capability on which a kernel may begin before the preceding kernel has ended.
pub const DEPENDENT_LAUNCH: u32 = 90;

/// Registers of a block, on every architecture that can be compiled for.
pub const REGISTERS_OF_A_BLOCK: u64 = 65536;

/// The registers that a block's threads take. A warp takes registers in units of 256, so the count of a thread is rounded up to a multiple of eight.
pub fn registers_taken(a_thread: u32, threads: u64) -> u64 {
    threads.div_ceil(32) * 32 * u64::from(a_thread).next_multiple_of(8)
}

/// The resources of a multiprocessor, and the share that one block can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Maximum threads of a block.
    pub block_threads: u64,
    /// Maximum bytes of shared memory of a block.
    pub block_shared: u64,
    /// Maximum registers of a block.
    pub block_registers: u64,
    /// Maximum resident threads.
    pub threads: u64,
    /// Maximum bytes of shared memory of all resident blocks.
    pub shared: u64,
    /// Bytes of shared memory that the system reserves for each block.
    pub reserved: u64,
    /// Registers of a multiprocessor.
    pub registers: u64,
    /// Maximum resident blocks.
    pub blocks: u64,
}

/// The limits of a compute capability; none if they are not known.
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
    /// How many blocks a multiprocessor holds at once. A block has `threads` threads with `registers` registers each, and `shared` bytes of shared memory.
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
        // A block with the most shared memory fits once.
        assert_eq!(limits.resident(32, 16, limits.block_shared), 1);
    }
}
