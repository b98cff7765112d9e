//! Decides whether a runner's claim that something is not emulated can be true of its binary. Reads the binary's bytes and the launches; does not load or run
//! anything, and does not know what the runner observed.
//!
//! "Not emulated" turns a failure into unknown, so a candidate would gain by claiming it. The claim counts only if the binary could have caused it:
//!
//! | claim | evidence |
//! |---|---|
//! | a construct | the binary calls the hook that such constructs compile to, and contains the text of the construct, which it passes to the hook |
//! | a stack beyond [`STACK_BYTES`] | all frames add up to about that, or one has a variable size, or direct calls lead from a function to itself |
//! | more waiting threads or stacks than there is room for | a launch has that many threads |
//!
//! A kernel that contains the construct can still claim falsely that it reached the construct: its verdict is then unknown, which is true. Recursion that goes
//! only through pointers is not detected; a claim of a deep stack is then treated as a forgery.

use std::collections::{BTreeMap, BTreeSet};

use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};

use super::STACK_BYTES;
use super::abi::{HOOK, PTX};
use super::hooks::operation;
use super::run::most_fibers;
use super::stack::mapping_limit;
use kforge_harness::message::Unemulated;
use kforge_types::model::bound::Launch;

/// What is known about a candidate that makes a claim.
#[derive(Debug, Clone, Copy)]
pub struct Claimant<'a> {
    /// Its binary.
    pub binary: &'a [u8],
    /// Its launches.
    pub launches: &'a [Launch],
    /// The number of OS threads that it may use.
    pub threads: u32,
    /// The memory that it may use, in bytes.
    pub memory: u64,
}

/// A claim that may be true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The launch ends there, and the run continues to its end.
    Orderly,
    /// The process cannot be trusted afterwards, and exits without reporting the end of the run.
    Abrupt,
}

/// Why a claim cannot be true.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Incredible {
    /// A stack beyond [`STACK_BYTES`].
    #[error("its functions do not need that much stack")]
    Stack,
    /// More threads at once than there is room for.
    #[error("no launch has more than {0} threads")]
    Threads(u64),
    /// A construct.
    #[error("its binary contains no such construct")]
    Construct,
}

/// Checks whether a claim may be true. Returns how a run that makes it ends.
///
/// # Errors
/// The claim cannot be true.
pub fn credible(claim: &Unemulated, of: &Claimant<'_>) -> Result<Claim, Incredible> {
    match claim {
        Unemulated::Stack => match Code::read(of.binary).is_some_and(|code| code.may_need(STACK_BYTES as u64)) {
            true => Ok(Claim::Abrupt),
            false => Err(Incredible::Stack),
        },
        Unemulated::Threads => {
            let many = threads(of.launches);
            let most = most_fibers(mapping_limit(), of.threads.max(1)) as u64;
            let crowded = many > most / 2 || many.saturating_mul(STACK_BYTES as u64) > of.memory / 4;
            if crowded { Ok(Claim::Orderly) } else { Err(Incredible::Threads(many)) }
        }
        Unemulated::Construct(name) => match has_construct(of.binary, name) {
            true => Ok(Claim::Orderly),
            false => Err(Incredible::Construct),
        },
    }
}

fn threads(launches: &[Launch]) -> u64 {
    let of = |launch: &Launch| match launch {
        Launch::Kernel(k) => k.grid.iter().chain(&k.block).map(|n| u64::from(*n)).product(),
        Launch::Memset { .. } => 0,
    };
    launches.iter().map(of).max().unwrap_or(0)
}

fn has_construct(binary: &[u8], name: &str) -> bool {
    let Ok(file) = object::File::parse(binary) else { return false };
    if !file.symbols().any(|symbol| symbol.name() == Ok(HOOK)) {
        return false;
    }
    let data = |kind| matches!(kind, SectionKind::ReadOnlyData | SectionKind::ReadOnlyString | SectionKind::Data);
    file.sections().filter(|section| data(section.kind())).filter_map(|section| section.data().ok()).any(|bytes| {
        bytes.split(|byte| *byte == 0).filter_map(|text| std::str::from_utf8(text).ok()).any(|text| {
            // The linker lets strings share their ends, and data may precede a string.
            !name.is_empty() && text.ends_with(name)
                || text.match_indices(PTX).any(|(at, _)| operation(&text[at + PTX.len()..]) == name)
        })
    })
}

/// What the machine code shows about the stack.
struct Code {
    /// Sum of the fixed frame sizes of all functions, in bytes, with an allowance for each function.
    frames: u64,
    /// Whether a function has a frame of variable size.
    variable: bool,
    /// The address of each function, with the functions that it calls directly.
    calls: BTreeMap<u64, BTreeSet<u64>>,
}

/// Bytes that a call, its saved registers and alignment need in addition to locals.
const AROUND: u64 = 80;

impl Code {
    /// Looks for patterns at every byte offset, so it may overestimate but never underestimate.
    fn read(binary: &[u8]) -> Option<Code> {
        let file = object::File::parse(binary).ok()?;
        let mut code = Code { frames: 0, variable: false, calls: BTreeMap::new() };
        for symbol in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition()) {
            code.calls.entry(symbol.address()).or_default();
            code.frames += AROUND;
        }
        for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
            let bytes = section.data().ok()?;
            for (at, window) in bytes.windows(8).enumerate() {
                let word = |from: usize| i32::from_le_bytes([0, 1, 2, 3].map(|i| window[from + i]));
                match window {
                    // sub $n, %rsp; lea -n(%rsp), %r11, before a loop that touches each page; sub %reg, %rsp.
                    [0x48, 0x81, 0xec, ..] => code.frames += u64::try_from(word(3)).unwrap_or(0),
                    [0x48, 0x83, 0xec, n, ..] => code.frames += u64::from(*n),
                    [0x4c, 0x8d, 0x9c, 0x24, ..] => code.frames += u64::try_from(-i64::from(word(4))).unwrap_or(0),
                    [0x48 | 0x4c, 0x29, to, ..] if to & 0xc7 == 0xc4 => code.variable = true,
                    [0xe8, ..] => {
                        let from = section.address() + at as u64;
                        let to = from.wrapping_add(5).wrapping_add_signed(i64::from(word(1)));
                        let caller = code.calls.range(..=from).next_back().map(|(start, _)| *start);
                        if let Some(caller) = caller.filter(|_| code.calls.contains_key(&to)) {
                            code.calls.entry(caller).or_default().insert(to);
                        }
                    }
                    _ => {}
                }
            }
        }
        Some(code)
    }

    /// Whether a thread may need more than `bytes` of stack, including the stack of the emulator's own functions.
    fn may_need(&self, bytes: u64) -> bool {
        self.variable || self.frames > bytes / 2 || self.calls.keys().any(|start| self.comes_to(*start))
    }

    fn comes_to(&self, function: u64) -> bool {
        let (mut seen, mut next) = (BTreeSet::new(), vec![function]);
        while let Some(caller) = next.pop() {
            for called in self.calls.get(&caller).into_iter().flatten() {
                if *called == function {
                    return true;
                }
                if seen.insert(*called) {
                    next.push(*called);
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_binary_supports_no_claim() {
        let of = Claimant { binary: b"\x7fELF", launches: &[], threads: 1, memory: 1 << 30 };
        let construct = |name: &str| Unemulated::Construct(name.into());
        for claim in [construct("mma.sync"), construct(""), Unemulated::Stack] {
            assert!(credible(&claim, &of).is_err(), "{claim:?}");
        }
        assert_eq!(credible(&Unemulated::Threads, &of), Err(Incredible::Threads(0)));
    }

    #[test]
    fn a_function_that_comes_to_itself_may_need_any_stack() {
        let graph = |edges: &[(u64, u64)]| {
            let mut calls: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
            for (from, to) in edges {
                calls.entry(*from).or_default().insert(*to);
            }
            Code { frames: 100, variable: false, calls }
        };
        assert!(!graph(&[(1, 2), (2, 3), (1, 3)]).may_need(1000));
        assert!(graph(&[(1, 2), (2, 3), (3, 2)]).may_need(1000));
        assert!(graph(&[(1, 2)]).may_need(150));
    }
}
