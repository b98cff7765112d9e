//! The machine code that nvcc puts into a shared library, and the functions that the library exports. Knows where both are; [`fatbin`] knows the layout of
//! containers. Runs no tool and trusts nothing, because the bytes may be anything.
//!
//! Machine code is in the section `.nv_fatbin`, in consecutive containers. A compressed image does not begin with an ELF header.

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ObjectSymbol};

use kforge_types::record::fatbin::{self, Image};

/// The first bytes of an ELF file.
const ELF: &[u8] = b"\x7fELF";

/// Why machine code cannot be found in a library.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// The bytes are not a shared library.
    #[error("the binary is not a shared library: {0}")]
    NotShared(object::Error),
    /// The section of machine code is outside the file.
    #[error("`.nv_fatbin` cannot be read: {0}")]
    Unreadable(object::Error),
    /// The machine code has an unknown format.
    #[error("the machine code in the library has an unknown form")]
    Form,
}

type Library<'a> = ElfFile64<'a, Endianness>;

fn parse(bytes: &[u8]) -> Result<Library<'_>, LibraryError> {
    Library::parse(bytes).map_err(LibraryError::NotShared)
}

/// Whether the library exports a function with this name.
pub(super) fn exports(library: &[u8], function: &str) -> Result<bool, LibraryError> {
    Ok(parse(library)?.dynamic_symbols().any(|symbol| symbol.is_definition() && symbol.name() == Ok(function)))
}

/// Every piece of machine code in the library, in order.
///
/// # Errors
/// The bytes are not a library, a container is truncated, or a payload is compressed.
pub(super) fn cubins(library: &[u8]) -> Result<Vec<&[u8]>, LibraryError> {
    let elf = parse(library)?;
    let Some(section) = elf.section_by_name(".nv_fatbin") else { return Ok(vec![]) };
    let data = section.data().map_err(LibraryError::Unreadable)?;
    contained(data).ok_or(LibraryError::Form)
}

/// The machine code in the containers of a section; none if the format is unknown.
fn contained(mut data: &[u8]) -> Option<Vec<&[u8]>> {
    let mut found = vec![];
    loop {
        // Containers begin at multiples of eight, with zeros in between.
        while data.first() == Some(&0) {
            data = &data[1..];
        }
        if data.is_empty() {
            return Some(found);
        }
        let (images, after) = fatbin::container(data)?;
        for code in images.iter().filter_map(Image::code) {
            found.push(Some(code).filter(|code| code.starts_with(ELF))?);
        }
        data = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first bytes of a container.
    const MAGIC: u32 = 0xba55_ed50;

    fn entry(kind: u16, payload: &[u8]) -> Vec<u8> {
        let head = [&kind.to_le_bytes()[..], &[1, 1], &16u32.to_le_bytes(), &(payload.len() as u64).to_le_bytes()];
        [&head.concat()[..], payload].concat()
    }

    fn container(entries: &[Vec<u8>]) -> Vec<u8> {
        let all = entries.concat();
        let head = [&MAGIC.to_le_bytes()[..], &[1, 0, 16, 0], &(all.len() as u64).to_le_bytes()];
        [&head.concat()[..], &all].concat()
    }

    #[test]
    fn machine_code_of_every_container_is_found_and_ptx_is_not() {
        let (one, two) = (b"\x7fELF one".as_slice(), b"\x7fELF two".as_slice());
        let first = container(&[entry(1, b".version 9.0"), entry(2, one)]);
        let section = [&first[..], &[0; 5], &container(&[entry(2, two)]), &[0; 3]].concat();
        assert_eq!(contained(&section), Some(vec![one, two]));
        assert_eq!(contained(&[]), Some(vec![]));
    }

    #[test]
    fn what_is_cut_short_or_compressed_has_no_known_form() {
        let whole = container(&[entry(2, b"\x7fELF")]);
        for length in 1..whole.len() {
            assert_eq!(contained(&whole[..length]), None, "{length}");
        }
        assert_eq!(contained(&container(&[entry(2, b"\x28\xb5\x2f\xfd")])), None);
        assert_eq!(contained(b"nothing of the kind"), None);
        let endless = container(&[[&[2u8, 0, 1, 1][..], &[0; 4], &[0; 8]].concat()]);
        assert_eq!(contained(&endless), None);
        let headless = [&MAGIC.to_le_bytes()[..], &[1, 0, 0, 0], &[0; 8]].concat();
        assert_eq!(contained(&headless), None);
    }

    #[test]
    fn what_a_library_offers_is_read_off_it() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(exports(&own, "no_such_function"), Ok(false));
        assert_eq!(cubins(&own), Ok(vec![]));
        assert!(exports(b"text", "f").unwrap_err().to_string().contains("not a shared library"));
    }
}
