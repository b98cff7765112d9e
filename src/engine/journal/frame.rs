//! The outer format of the journal's file: a header, then frames. Knows bytes; does not know what a frame's payload means.
//!
//! ```text
//! header   "kforge-journal\n" and one byte, the version
//! frame    length of the payload u32 | kind u8 | payload | check u64      all little endian
//! ```
//!
//! The check is [`mix`] over kind, length and payload. It must detect partially written records and disk faults, not forgeries. Computing blake3 instead would
//! take half of the time that a journal of 100,000 records takes to load.

use std::num::NonZeroUsize;

/// The first bytes of every journal of this version.
pub(super) const HEADER: &[u8; 16] = b"kforge-journal\n\x01";

const BEFORE: usize = 5;
const AFTER: usize = 8;

/// What a file begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// The header of this version.
    Ours,
    /// Nothing: the file is empty.
    Empty,
    /// Anything else.
    Foreign,
}

/// Classifies the first bytes of a file.
pub(super) fn start(bytes: &[u8]) -> Start {
    match bytes {
        [] => Start::Empty,
        _ if bytes.starts_with(HEADER) => Start::Ours,
        _ => Start::Foreign,
    }
}

/// A 64-bit checksum of `bytes`, from a seed. Every step maps states one to one, so a change within one eight-byte word always changes the result. Any other
/// change goes undetected with a probability of about 2^-64.
pub(super) fn mix(seed: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    // Not zero for empty input, so that a tail of zeros does not pass as a frame.
    let state = step(seed ^ FACTOR, bytes.len() as u64);
    let state = words.iter().fold(state, |state, word| step(state, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    step(step(state, u64::from_le_bytes(last)), 0)
}

/// Odd, hence invertible modulo 2^64; the bits of the golden ratio, which are well spread.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// One step of [`mix`].
pub(super) fn step(state: u64, word: u64) -> u64 {
    let product = (state ^ word).wrapping_mul(FACTOR);
    product ^ product >> 32
}

/// A frame in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    /// Where the frame begins. Never 0, which is where the header is.
    start: NonZeroUsize,
    /// The length of the payload in bytes.
    len: u32,
    /// The kind of the record.
    pub(super) kind: u8,
}

impl Frame {
    /// The frame at a position, if there is an undamaged one.
    pub(super) fn at(bytes: &[u8], at: usize) -> Option<Frame> {
        let head = bytes.get(at..at + BEFORE)?;
        let len = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let frame = Frame { start: NonZeroUsize::new(at)?, len, kind: head[4] };
        let check = bytes.get(frame.end() - AFTER..frame.end())?;
        (check == frame.check(bytes)).then_some(frame)
    }

    /// Appends a frame whose payload is written by `write`. Returns none, and appends nothing, if the payload is too long for a frame.
    pub(super) fn append(bytes: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) -> Option<Frame> {
        let at = bytes.len();
        bytes.extend([0, 0, 0, 0, kind]);
        write(bytes);
        let Ok(len) = u32::try_from(bytes.len() - at - BEFORE) else {
            bytes.truncate(at);
            return None;
        };
        bytes[at..at + 4].copy_from_slice(&len.to_le_bytes());
        let frame = Frame { start: NonZeroUsize::new(at)?, len, kind };
        let check = frame.check(bytes);
        bytes.extend(check);
        Some(frame)
    }

    /// The position at which the frame begins.
    pub(super) fn start(self) -> usize {
        self.start.get()
    }

    /// The first position after the frame.
    pub(super) fn end(self) -> usize {
        self.start() + self.size()
    }

    /// The total size of the frame in bytes.
    pub(super) fn size(self) -> usize {
        BEFORE + self.len as usize + AFTER
    }

    /// The payload.
    pub(super) fn payload(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start() + BEFORE..self.end() - AFTER]
    }

    fn check(self, bytes: &[u8]) -> [u8; AFTER] {
        // `mix` also mixes in the length.
        mix(self.kind.into(), self.payload(bytes)).to_le_bytes()
    }
}
