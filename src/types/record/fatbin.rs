//! Fatbins: containers of machine code and PTX, from which a driver takes the image for its device. Knows their layout as NVIDIA's `fatbinary` writes it, and
//! what a fatbin of one binary must hold. Runs no tool and trusts nothing, because the bytes may be anything.
//!
//! A container is a header (0xba55ed50, version, header size, payload size; 4, 2, 2 and 8 bytes) and entries. An entry is a header and a payload, which is
//! filled with zeros to a multiple of eight bytes. All numbers are little-endian. The header of an entry:
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 2 | kind: 1 for PTX, 2 for machine code |
//! | 2 | 2 | version, 0x0101 |
//! | 4 | 4 | size of the header: 64, or more with options |
//! | 8 | 8 | size of the payload |
//! | 16 | 4 | size of the payload without what fills it up, if it is compressed |
//! | 20 | 4 | offset of the options, 64, if there are any: for PTX, and for machine code from sm_100 on |
//! | 24 | 4 | version of the code's form |
//! | 28 | 4 | compute capability: 90 |
//! | 32 | 8 | offset and size of a name |
//! | 40 | 8 | flags, below |
//! | 48 | 8 | zero |
//! | 56 | 8 | size of what was compressed |
//! | 64 | 8 | offset of the text of the options, 72, and the size of the description |
//! | 72 | | the text, which is empty and ends with a zero, the description, and zeros up to a multiple of eight |
//!
//! The description is the cubin's section `.nv.compat`.
//!
//! A driver reads what the header says. So [`check`] accepts only what `fatbinary` writes for one uncompressed image of each kind, and leaves out only the
//! version of the code's form. `fatbinary` leaves comments of PTX out and shortens white space, so [`check`] compares PTX without both.

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection};

/// The first bytes of a container.
const MAGIC: u32 = 0xba55_ed50;
/// The kind of an entry with PTX.
const PTX: u16 = 1;
/// The kind of an entry with machine code.
const CODE: u16 = 2;
/// The version of entries.
const ENTRY: u16 = 0x0101;
/// The bytes of a header without options.
const HEAD: usize = 64;
/// The flags of an image for a process of 64 bits on Linux.
const PLATFORM: u64 = 0x11;
/// The flag of machine code with a description.
const DESCRIBED: u64 = 0x100_0000;
/// The section of a cubin that describes it.
const DESCRIPTION: &str = ".nv.compat";
/// The flags of an architecture with a suffix, by the suffix.
const SUFFIXES: [(char, u64); 2] = [('a', 0x10_0000), ('f', 0x20_0000)];
/// The most images that an error names.
const NAMED: usize = 8;
/// The flags of a compressed payload, by LZ4 and by Zstandard.
const COMPRESSED: u64 = 0x2000 | 0x8000;

/// An image in a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image<'a> {
    kind: u16,
    head: &'a [u8],
    payload: &'a [u8],
}

/// A difference between a fatbin and the images that it must hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FatbinFault {
    /// The bytes are no container, or it is cut short.
    #[error("it is no fatbin, or it is cut short")]
    Form,
    /// Bytes follow the container.
    #[error("bytes follow its container")]
    Trailing,
    /// The declared architecture is missing.
    #[error("it has no machine code for {declared}; it holds {}", if found.is_empty() { "nothing".into() } else { found.join(", ") })]
    Architecture {
        /// The declared architecture.
        declared: String,
        /// What it holds instead: `PTX for sm_90a`.
        found: Vec<String>,
    },
    /// The machine code is another one.
    #[error("its machine code is not the binary that is packed beside it")]
    OtherCode,
    /// The PTX is another one.
    #[error("its PTX is not what is packed beside it")]
    OtherPtx,
    /// PTX for the architecture is missing.
    #[error("it has no PTX for {0}")]
    NoPtx(String),
    /// It holds more than it must.
    #[error("it holds {0} besides what is expected")]
    Extra(String),
    /// An image is compressed.
    #[error("{0} in it is compressed")]
    Compressed(String),
    /// A header has fields that `fatbinary` does not write.
    #[error("the header of {0} in it has unknown fields")]
    Header(String),
}

impl<'a> Image<'a> {
    /// The machine code; none for other images.
    pub fn code(&self) -> Option<&'a [u8]> {
        (self.kind == CODE).then_some(self.payload)
    }

    /// Whether it is PTX.
    pub fn is_ptx(&self) -> bool {
        self.kind == PTX
    }

    fn flags(&self) -> u64 {
        long(self.head, 40).unwrap_or(0)
    }

    /// `sm_90a`.
    fn arch(&self) -> String {
        let suffix: String =
            SUFFIXES.iter().filter(|(_, flag)| self.flags() & flag != 0).map(|(suffix, _)| *suffix).collect();
        format!("sm_{}{suffix}", word(self.head, 28).unwrap_or(0))
    }

    /// `PTX for sm_90a`.
    fn title(&self) -> String {
        let arch = self.arch();
        match self.kind {
            CODE => format!("machine code for {arch}"),
            PTX => format!("PTX for {arch}"),
            other => format!("an image of the unknown kind {other} for {arch}"),
        }
    }

    /// Whether the header has only fields that `fatbinary` writes for an uncompressed image. `code` is the machine code that is expected.
    fn is_plain(&self, code: &[u8]) -> bool {
        let suffixes = SUFFIXES.iter().map(|(_, flag)| flag).sum::<u64>();
        let options = match (self.kind, self.flags() & !suffixes) {
            (PTX, PLATFORM) => Some(options(&[])),
            (CODE, PLATFORM) => Some(vec![]),
            (CODE, flags) if flags == PLATFORM | DESCRIBED => description(code).map(options),
            _ => None,
        };
        let Some((options, head)) = options.zip(self.head.get(..HEAD)) else { return false };
        let zero = |range: std::ops::Range<usize>| head[range].iter().all(|byte| *byte == 0);
        let offset = if options.is_empty() { 0 } else { HEAD as u32 };
        self.head[HEAD..] == options
            && short(head, 2) == Some(ENTRY)
            && zero(16..20)
            && word(head, 20) == Some(offset)
            && zero(32..40)
            && zero(48..64)
    }
}

/// The options in a header: no text, and a description.
fn options(description: &[u8]) -> Vec<u8> {
    let mut bytes = [(HEAD as u32 + 8).to_le_bytes(), (description.len() as u32).to_le_bytes()].concat();
    bytes.push(0);
    bytes.extend(description);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// The description in a cubin; none if it has none, or is something else.
fn description(code: &[u8]) -> Option<&[u8]> {
    let elf = ElfFile64::<Endianness>::parse(code).ok()?;
    elf.section_by_name(DESCRIPTION)?.data().ok()
}

/// The images of the container at the beginning of some bytes, and the bytes after it; none if the form is unknown or cut short.
pub fn container(data: &[u8]) -> Option<(Vec<Image<'_>>, &[u8])> {
    let (head, size) = (usize::from(short(data, 6)?), usize::try_from(long(data, 8)?).ok()?);
    // A header that is too short for its own fields would be read forever.
    if word(data, 0)? != MAGIC || head < 16 {
        return None;
    }
    let end = head.checked_add(size)?;
    let (mut rest, after) = (data.get(head..end)?, &data[end..]);
    let mut images = vec![];
    while !rest.is_empty() {
        let (kind, head) = (short(rest, 0)?, word(rest, 4)? as usize);
        if head < 16 {
            return None;
        }
        let end = head.checked_add(usize::try_from(long(rest, 8)?).ok()?)?;
        let payload = rest.get(head..end)?;
        images.push(Image { kind, head: &rest[..head], payload });
        rest = &rest[end..];
    }
    Some((images, after))
}

/// Whether the bytes are a fatbin with PTX in it.
pub fn holds_ptx(fatbin: &[u8]) -> bool {
    container(fatbin).is_some_and(|(images, _)| images.iter().any(Image::is_ptx))
}

/// Checks that a fatbin holds this machine code for the architecture (`sm_90a`), this PTX for it if there is any, and nothing else.
///
/// # Errors
/// The first difference.
pub fn check(fatbin: &[u8], arch: &str, code: &[u8], ptx: Option<&[u8]>) -> Result<(), FatbinFault> {
    let (images, after) = container(fatbin).ok_or(FatbinFault::Form)?;
    if short(fatbin, 4) != Some(1) || short(fatbin, 6) != Some(16) {
        return Err(FatbinFault::Form);
    }
    if !after.is_empty() {
        return Err(FatbinFault::Trailing);
    }
    let is_for = |image: &&Image<'_>| image.arch() == arch;
    let found_code = images.iter().filter(is_for).find(|image| image.kind == CODE);
    let found_code =
        found_code.ok_or_else(|| FatbinFault::Architecture { declared: arch.into(), found: named(&images) })?;
    let found_ptx = images.iter().filter(is_for).find(|image| image.is_ptx());
    if ptx.is_some() && found_ptx.is_none() {
        return Err(FatbinFault::NoPtx(arch.into()));
    }
    let expected = [Some(found_code), found_ptx.filter(|_| ptx.is_some())];
    let is_extra = |image: &&Image<'_>| !expected.iter().flatten().any(|known| std::ptr::eq(*known, *image));
    if let Some(extra) = images.iter().find(is_extra) {
        return Err(FatbinFault::Extra(extra.title()));
    }
    if let Some(compressed) = images.iter().find(|image| image.flags() & COMPRESSED != 0) {
        return Err(FatbinFault::Compressed(compressed.title()));
    }
    if !is_filled(found_code.payload, code) {
        return Err(FatbinFault::OtherCode);
    }
    if let Some((image, ptx)) = found_ptx.zip(ptx)
        && !is_same_ptx(image.payload, ptx)
    {
        return Err(FatbinFault::OtherPtx);
    }
    match images.iter().find(|image| !image.is_plain(code)) {
        Some(image) => Err(FatbinFault::Header(image.title())),
        None => Ok(()),
    }
}

/// The names of images, each once, and only the first of many: the bytes may be anything.
fn named(images: &[Image<'_>]) -> Vec<String> {
    let mut names: Vec<String> = vec![];
    for title in images.iter().map(Image::title) {
        if names.contains(&title) {
            continue;
        }
        if names.len() == NAMED {
            names.push("more".into());
            break;
        }
        names.push(title);
    }
    names
}

/// Whether a payload is these bytes, filled with zeros to a multiple of eight.
fn is_filled(payload: &[u8], bytes: &[u8]) -> bool {
    payload.len() == bytes.len().next_multiple_of(8)
        && payload.strip_prefix(bytes).is_some_and(|rest| rest.iter().all(|byte| *byte == 0))
}

/// Whether a payload is this PTX without its comments and but for white space, filled with zeros: one ends the text, and fewer than eight follow. A payload
/// with comments or with zeros inside is no PTX that `fatbinary` writes.
fn is_same_ptx(payload: &[u8], ptx: &[u8]) -> bool {
    let text = without_zeros(payload);
    let (packed, has_comments) = plain(text);
    let is_filled = payload.len().is_multiple_of(8) && payload.len() - text.len() <= 8;
    is_filled && !has_comments && !text.contains(&0) && packed == plain(without_zeros(ptx)).0
}

/// Text without the zeros that end it.
fn without_zeros(text: &[u8]) -> &[u8] {
    &text[..text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)]
}

/// PTX without comments, and with one space for all white space between two words; and whether it has comments. Text in quotation marks stays as it is.
fn plain(ptx: &[u8]) -> (Vec<u8>, bool) {
    let mut has_comments = false;
    let mut out = vec![];
    let mut rest = ptx;
    let mut spaced = false;
    while let Some(first) = rest.first() {
        let is_comment = |start: &[u8]| rest.starts_with(start);
        let skipped = match first {
            _ if is_comment(b"//") => rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
            _ if is_comment(b"/*") => rest[2..].windows(2).position(|end| end == b"*/").map_or(rest.len(), |at| at + 4),
            byte if byte.is_ascii_whitespace() => 1,
            _ => 0,
        };
        if skipped > 0 {
            has_comments |= *first == b'/';
            spaced = true;
            rest = &rest[skipped..];
            continue;
        }
        if std::mem::take(&mut spaced) && !out.is_empty() {
            out.push(b' ');
        }
        let taken = if *first == b'"' { quoted(rest) } else { 1 };
        out.extend(&rest[..taken]);
        rest = &rest[taken..];
    }
    (out, has_comments)
}

/// The bytes of the text in quotation marks at the beginning, with both marks. PTX has no escapes: ptxas ends a text at the next mark, also after `\`.
fn quoted(text: &[u8]) -> usize {
    text.iter().skip(1).position(|byte| *byte == b'"').map_or(text.len(), |at| at + 2)
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
#[path = "fatbin_tests.rs"]
mod tests;
