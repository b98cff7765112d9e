//! Reads facts about the entries of a compiled binary. Knows symbols; does not run anything.

use std::collections::BTreeMap;

use super::error::ImageError;
use super::image::Image;
use kforge_types::record::{FunctionFacts, Inspection};

/// Facts about the entries of a binary, in the order that they were compiled in. Static shared memory is known only if there is one entry, or if the binary
/// has none.
pub fn inspect(binary: &[u8], entries: &[String]) -> Result<Inspection, ImageError> {
    let image = Image::parse(binary, entries.len())?;
    let shared: u64 = image.shared.iter().map(|v| v.size).sum();
    let functions = entries
        .iter()
        .zip(&image.entries)
        .enumerate()
        .map(|(index, (entry, parameters))| {
            let mut end = 0u32;
            let params = parameters
                .iter()
                .map(|p| {
                    let at = end.next_multiple_of(p.align.max(1));
                    end = at + p.size;
                    (at, p.size)
                })
                .collect();
            FunctionFacts {
                entry: entry.clone(),
                symbol: format!("kf_entry_{index}"),
                shared: (entries.len() == 1 || shared == 0).then_some(shared),
                params,
                opcodes: BTreeMap::new(),
                ..FunctionFacts::default()
            }
        })
        .collect();
    Ok(Inspection { architectures: vec!["cpu".into()], functions, disassembled: false, refused: vec![] })
}
