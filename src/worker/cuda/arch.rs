//! The architectures that CUDA compiles for. Knows names; does not know devices.

/// Compute capabilities that CUDA 13.0 makes machine code for. A compiler that does not know one says so itself.
pub const CAPABILITIES: [u32; 12] = [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121];

/// The capability and suffix of `sm_90a`: 90 and `a`. The suffix is empty, `a` (this architecture's own instructions; runs nowhere else) or `f` (its
/// family's).
///
/// # Errors
/// It is not such a name, or not one that can be compiled for; says what was expected.
pub fn parse(name: &str) -> Result<(u32, &'static str), String> {
    let known = || {
        let names: Vec<String> = CAPABILITIES.iter().map(|c| format!("sm_{c}")).collect();
        format!(
            "`{name}` is not an architecture: expected one of {}, with `a` from sm_90 and `f` from sm_100",
            names.join(", ")
        )
    };
    let rest = name.strip_prefix("sm_").ok_or_else(known)?;
    let digits = rest.trim_end_matches(['a', 'f']);
    let suffix = match &rest[digits.len()..] {
        "" => "",
        "a" => "a",
        "f" => "f",
        _ => return Err(known()),
    };
    let capability = CAPABILITIES.into_iter().find(|c| c.to_string() == digits).ok_or_else(known)?;
    let least = match suffix {
        "a" => 90,
        "f" => 100,
        _ => 0,
    };
    if capability < least { Err(known()) } else { Ok((capability, suffix)) }
}

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

/// Registers of a block, of every architecture in [`CAPABILITIES`] (the same table).
pub const REGISTERS_OF_A_BLOCK: u64 = 65536;

/// What a block's threads take of the registers: a warp takes them in units of 256, so a thread's count is rounded up to a multiple of eight.
pub fn registers_taken(a_thread: u32, threads: u64) -> u64 {
    threads.div_ceil(32) * 32 * u64::from(a_thread).next_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_suffixes_are_read() {
        assert_eq!(parse("sm_80"), Ok((80, "")));
        assert_eq!(parse("sm_90a"), Ok((90, "a")));
        assert_eq!(parse("sm_100f"), Ok((100, "f")));
    }

    #[test]
    fn others_are_refused_with_what_was_expected() {
        for name in ["sm_77", "compute_90", "sm_80a", "sm_90f", "sm_90aa", "sm_", "sm_090"] {
            let error = parse(name).unwrap_err();
            assert!(error.contains(name) && error.contains("sm_121"), "{error}");
        }
    }
}
