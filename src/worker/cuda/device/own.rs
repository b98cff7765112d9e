//! kforge's own kernels: their text, and what each computes on the host. Knows no candidates.

#![expect(unsafe_code, reason = "kernels take addresses")]

use std::rc::Rc;

use super::call::{Parameter, Shape, launch};
use super::context::{Context, Function, Memory, Module, Stream};
use super::fault::Fault;

/// `kernels.cu` as PTX, which any driver compiles for its device; version 6.3 of its language, which is what the oldest architecture needs.
const TEXT: &str = include_str!("kernels.ptx");

/// How long a gate stays shut at most: a host that died must not leave a kernel behind.
const LONGEST_NS: u64 = 10_000_000_000;

/// The kernels, loaded in a module of their own.
pub(super) struct Own {
    gate: Function,
    flush: Function,
    checksum: Function,
    blocks: u32,
    _module: Module,
}

impl Own {
    /// Loads them; `processors` as in the device's facts.
    pub(super) fn new(context: &Rc<Context>, processors: u32) -> Result<Self, Fault> {
        let mut text = TEXT.as_bytes().to_vec();
        text.push(0);
        let module = Module::new(context, &text, "while kforge's own kernels were loaded")?;
        Ok(Own {
            gate: module.function("kforge_gate")?,
            flush: module.function("kforge_flush")?,
            checksum: module.function("kforge_checksum")?,
            blocks: processors.max(1) * 4,
            _module: module,
        })
    }

    /// Holds a stream until the word at `gate` is not zero. The word after it is set if it opened by itself.
    pub(super) fn hold(&self, gate: &Memory, stream: &Stream) -> Result<(), Fault> {
        let values = [gate.at().into(), LONGEST_NS.into()];
        // SAFETY: the parameters are those in `kernels.cu`; the memory is of eight bytes and lives as long as the streams.
        unsafe { self.launch(self.gate, (1, 1), &values, stream) }
    }

    /// Reads and writes every word of an area.
    pub(super) fn flush(&self, area: &Memory, value: u32, stream: &Stream) -> Result<(), Fault> {
        let values = [area.at().into(), (area.bytes() / 4).into(), u64::from(value).into()];
        // SAFETY: the parameters are those in `kernels.cu`, and the area has as many words.
        unsafe { self.launch(self.flush, (self.blocks, 512), &values, stream) }
    }

    /// The sum of a buffer, as [`checksum`] has it.
    pub(super) fn checksum(&self, context: &Rc<Context>, area: &Memory, stream: &Stream) -> Result<u64, Fault> {
        let sum = Memory::new(context, 8)?;
        sum.write(&[0; 8])?;
        let values = [area.at().into(), (area.bytes() / 4).into(), sum.at().into()];
        // SAFETY: the parameters are those in `kernels.cu`, the area has as many words, the sum eight bytes.
        unsafe { self.launch(self.checksum, (self.blocks, 256), &values, stream) }?;
        stream.synchronize("while a buffer was summed")?;
        let mut bytes = [0; 8];
        sum.read(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
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
        // SAFETY: as the caller promises.
        unsafe { launch(function, shape, values, stream, "while kforge's own kernels were launched") }
    }
}

/// What `kforge_checksum` computes: words of four bytes, those behind the last whole one left out.
pub fn checksum(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<4>();
    let of = |(i, word): (usize, &[u8; 4])| {
        let place = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut z = u64::from(u32::from_le_bytes(*word)).wrapping_add(place);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    words.iter().enumerate().map(of).fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_every_kernel_and_asks_no_more_of_a_driver_than_it_needs() {
        for name in ["gate", "flush", "checksum", "fill", "differ"] {
            assert!(TEXT.contains(&format!(".entry kforge_{name}(")), "{name}");
        }
        assert!(TEXT.starts_with(".version 6.3\n.target sm_75"), "{}", &TEXT[..40]);
    }

    #[test]
    fn a_sum_tells_places_and_values_apart() {
        let sum = |words: &[u32]| checksum(&words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>());
        assert_ne!(sum(&[1, 2]), sum(&[2, 1]));
        assert_ne!(sum(&[0]), sum(&[0, 0]));
        assert_ne!(sum(&[1, 0]), sum(&[0, 1]));
    }
}
