//! kforge's own kernels: their text, and the same computation on the host. Knows no candidates.

#![expect(unsafe_code, reason = "kernels take addresses")]

use std::rc::Rc;

use super::call::{Parameter, Shape, launch};
use super::context::{Context, Function, Memory, Module, Stream};
use super::fault::Fault;
use kforge_foundation::base::pieces;

/// `kernels.cu` as PTX, which any driver compiles for its device. The PTX version is 6.3, which the oldest architecture needs.
const TEXT: &str = include_str!("kernels.ptx");

/// The longest time that a gate stays closed, so that no kernel keeps running after the host process has died.
const LONGEST_NS: u64 = 10_000_000_000;

/// The kernels, in a separate module.
pub(super) struct OwnKernels {
    gate: Function,
    flush: Function,
    show: Function,
    blocks: u32,
    _module: Module,
}

impl OwnKernels {
    /// Loads the kernels; `processors` is as in the device's facts.
    pub(super) fn new(context: &Rc<Context>, processors: u32) -> Result<Self, Fault> {
        let mut text = TEXT.as_bytes().to_vec();
        text.push(0);
        let module = Module::new(context, &text, "while kforge's own kernels were loaded")?;
        Ok(OwnKernels {
            gate: module.function("kforge_gate")?,
            flush: module.function("kforge_flush")?,
            show: module.function("kforge_show")?,
            blocks: processors.max(1) * 4,
            _module: module,
        })
    }

    /// Blocks a stream until the word at `gate` is not zero. If the gate opens by itself after the time limit, the next word is set.
    pub(super) fn hold(&self, gate: &Memory, stream: &Stream) -> Result<(), Fault> {
        let values = [gate.at().into(), LONGEST_NS.into()];
        // SAFETY: the parameters are those in `kernels.cu`. The memory has eight bytes and lives as long as the streams.
        unsafe { self.launch(self.gate, (1, 1), &values, stream) }
    }

    /// Reads and writes every word of an area, then reads all words again: modified lines leave the L2 cache only when others replace them, and the next kernel
    /// would otherwise wait for that. `value` is not zero.
    pub(super) fn flush(&self, area: &Memory, value: u32, stream: &Stream) -> Result<(), Fault> {
        [value, 0].into_iter().try_for_each(|value| {
            let values = [area.at().into(), (area.bytes() / 4).into(), u64::from(value).into()];
            // SAFETY: the parameters are those in `kernels.cu`, and the area has that many words.
            unsafe { self.launch(self.flush, (self.blocks, 512), &values, stream) }
        })
    }

    /// Checks a buffer whose `own` bytes from `offset` on are the kernel's part. Adds the sum of the kernel's part, as [`checksum`] computes it, to the eight
    /// bytes at `found`, and the number of bytes around it that are not `canary` to the next eight bytes.
    ///
    /// # Safety
    /// The buffer and sixteen bytes at `found` must be allocated. The kernel's part must begin at a word boundary and end within the buffer.
    pub(super) unsafe fn show(
        &self,
        (buffer, bytes): (u64, u64),
        (offset, own): (u64, u64),
        (canary, salt): (u8, u64),
        found: u64,
        stream: &Stream,
    ) -> Result<(), Fault> {
        let values = [buffer, bytes, offset, own, u64::from(canary), salt, found].map(Parameter::from);
        // SAFETY: the parameters are those in `kernels.cu`; the caller guarantees the ranges.
        unsafe { self.launch(self.show, (self.blocks, 256), &values, stream) }
    }

    /// # Safety
    /// As for [`launch`].
    unsafe fn launch(
        &self,
        function: Function,
        (blocks, threads): (u32, u32),
        values: &[Parameter],
        stream: &Stream,
    ) -> Result<(), Fault> {
        let shape = Shape { grid: [blocks, 1, 1], block: [threads, 1, 1], ..Shape::default() };
        // SAFETY: the caller guarantees the requirements.
        unsafe { launch(function, shape, values, stream, "while kforge's own kernels were launched") }
    }
}

/// The sum that `kforge_show` computes of a kernel's part of a buffer.
pub fn checksum(bytes: &[u8], salt: u64) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mixed = |place: usize, word: u64| {
        let place = (place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut z = word.wrapping_add(place).wrapping_add(salt);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let last = if rest.is_empty() { 0 } else { mixed(words.len(), last) };
    let sums = pieces::map(words.len(), |at, len| {
        let of = |(place, word): (usize, &[u8; 4])| mixed(at + place, u64::from(u32::from_le_bytes(*word)));
        words[at..at + len].iter().enumerate().map(of).fold(0, u64::wrapping_add)
    });
    sums.into_iter().fold(last, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_every_kernel_and_asks_no_more_of_a_driver_than_it_needs() {
        for name in ["gate", "flush", "show"] {
            assert!(TEXT.contains(&format!(".entry kforge_{name}(")), "{name}");
        }
        assert!(TEXT.starts_with(".version 6.3\n.target sm_75"), "{}", &TEXT[..40]);
    }

    #[test]
    fn a_sum_tells_places_and_values_apart() {
        let sum = |words: &[u32]| checksum(&words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>(), 7);
        assert_ne!(sum(&[1, 2]), sum(&[2, 1]));
        assert_ne!(sum(&[0]), sum(&[0, 0]));
        assert_ne!(sum(&[1, 0]), sum(&[0, 1]));
        assert_ne!(checksum(&[1, 2, 3, 4, 5], 7), checksum(&[1, 2, 3, 4, 6], 7));
        assert_ne!(checksum(&[1, 2, 3, 4], 7), checksum(&[1, 2, 3, 4], 8));
    }
}
