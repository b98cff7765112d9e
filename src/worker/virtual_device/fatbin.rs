//! Stands in for NVIDIA's `fatbinary`, which refuses machine code of the stand-in compiler. Writes the same containers. Knows its own pragma: `#pragma fatbin
//! ARCH` packs for another architecture than the one that was asked for. Each line end in the file that stands for the tool raises the version of the code's
//! form by one, as a later release of the tool may.

use kforge_harness::message::Response;
use kforge_harness::task::{Task, done, failed};
use kforge_types::record::kind::fatbin::documents::{FATBIN, FatbinParams};
use kforge_types::record::params::PTX;

use super::compiler::Binary;

const PRAGMA: &str = "#pragma fatbin ";

/// Executes a fatbin step.
pub(crate) fn fatbin(task: &Task) -> Response {
    let run = || {
        let params: FatbinParams = task.params()?;
        let binary: Binary = task.document("binary")?;
        let other = binary.code.values().flat_map(|text| text.lines()).find_map(|line| line.strip_prefix(PRAGMA));
        let arch = other.unwrap_or(&params.arch);
        let number = arch.trim_start_matches("sm_");
        let capability = number.trim_end_matches(['a', 'f']).parse().map_err(|_| failed(format!("no `{arch}`")))?;
        let flags = match number.chars().last() {
            Some('a') => 0x10_0011u64,
            Some('f') => 0x20_0011,
            _ => 0x11,
        };
        let tool = std::fs::read(task.tool("fatbinary")?).map_err(|e| failed(e.to_string()))?;
        let form = 8 + tool.iter().filter(|byte| **byte == b'\n').count() as u8;
        let mut images = entry(2, (form, capability), flags, &task.read("binary")?);
        if task.path(PTX).is_some() {
            images.extend(entry(1, (form, capability), flags, &[without_comments(&task.read(PTX)?), vec![0]].concat()));
        }
        let mut bytes = [&0xba55_ed50u32.to_le_bytes()[..], &[1, 0, 16, 0]].concat();
        bytes.extend((images.len() as u64).to_le_bytes());
        bytes.extend(images);
        task.write(FATBIN, &bytes)?;
        Ok(done("by the stand-in", vec![]))
    };
    run().unwrap_or_else(|response: Response| response)
}

/// An image with its header: see [`kforge_types::record::fatbin`].
fn entry(kind: u16, (form, capability): (u8, u32), flags: u64, payload: &[u8]) -> Vec<u8> {
    let (size, options) = if kind == 1 { (80u32, 64u32) } else { (64, 0) };
    let filled = payload.len().next_multiple_of(8);
    let mut bytes = [&kind.to_le_bytes()[..], &[1, 1], &size.to_le_bytes()].concat();
    bytes.extend((filled as u64).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(options.to_le_bytes());
    bytes.extend([form, 0, 1, 0]);
    bytes.extend(capability.to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(flags.to_le_bytes());
    bytes.extend([0; 16]);
    if kind == 1 {
        bytes.extend(72u32.to_le_bytes());
        bytes.extend([0; 12]);
    }
    bytes.extend(payload);
    bytes.resize(size as usize + filled, 0);
    bytes
}

/// The lines that are no comments: `fatbinary` writes none.
fn without_comments(ptx: &[u8]) -> Vec<u8> {
    ptx.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"//")).collect::<Vec<_>>().concat()
}
