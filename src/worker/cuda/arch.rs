//! What blocks of an architecture can have. Knows names and limits; does not know devices.

/// Most bytes of shared memory a block can have, static and dynamic together, where a kernel opts in; none where it is not known. From the table of technical
/// specifications per compute capability in the CUDA C++ Programming Guide.
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

/// Registers of a block, of every architecture that can be compiled for (the same table).
pub const REGISTERS_OF_A_BLOCK: u64 = 65536;

/// What a block's threads take of the registers: a warp takes them in units of 256, so a thread's count is rounded up to a multiple of eight.
pub fn registers_taken(a_thread: u32, threads: u64) -> u64 {
    threads.div_ceil(32) * 32 * u64::from(a_thread).next_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::target::CAPABILITIES;

    #[test]
    fn limits_of_a_block_are_those_of_the_table() {
        assert_eq!(shared_of_a_block(90), Some(232_448));
        assert_eq!(CAPABILITIES.into_iter().filter(|c| shared_of_a_block(*c).is_none()).collect::<Vec<_>>(), [88]);
        assert_eq!([registers_taken(33, 32), registers_taken(40, 33)], [40 * 32, 40 * 64]);
    }
}
