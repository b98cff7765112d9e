//! The machine code that nvcc puts into a shared library, and what the library offers. Knows the layout of both; runs no tool and takes nothing on trust, for the
//! bytes may be anything.
//!
//! Machine code lies in the section `.nv_fatbin`, in containers one behind the other. A container is a header (0xba55ed50, version, its own size, the size of what
//! follows; 4, 2, 2 and 8 bytes) and entries; an entry is a header (kind, version, its own size, the size of what follows; 2, 2, 4 and 8 bytes) and what follows:
//! machine code where the kind is 2, PTX where it is 1. What is compressed begins with no header of ELF.

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ObjectSymbol};

/// How a container begins.
const MAGIC: u32 = 0xba55_ed50;
/// The kind of an entry that is machine code.
const CODE: u16 = 2;
/// How an ELF file begins.
const ELF: &[u8] = b"\x7fELF";

/// Why machine code cannot be found in a library.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// It is not a shared library.
    #[error("the binary is not a shared library: {0}")]
    NotShared(object::Error),
    /// The section of machine code lies outside.
    #[error("`.nv_fatbin` cannot be read: {0}")]
    Unreadable(object::Error),
    /// The machine code has a form that is not known.
    #[error("the machine code in the library has an unknown form")]
    Form,
}

type Library<'a> = ElfFile64<'a, Endianness>;

fn parse(bytes: &[u8]) -> Result<Library<'_>, LibraryError> {
    Library::parse(bytes).map_err(LibraryError::NotShared)
}

/// Whether the library offers a function of this name.
pub(super) fn exports(library: &[u8], function: &str) -> Result<bool, LibraryError> {
    Ok(parse(library)?.dynamic_symbols().any(|symbol| symbol.is_definition() && symbol.name() == Ok(function)))
}

/// Every piece of machine code in the library, in order.
///
/// # Errors
/// The library is none, or a container is cut short, or holds what is compressed.
pub(super) fn cubins(library: &[u8]) -> Result<Vec<&[u8]>, LibraryError> {
    let elf = parse(library)?;
    let Some(section) = elf.section_by_name(".nv_fatbin") else { return Ok(vec![]) };
    let data = section.data().map_err(LibraryError::Unreadable)?;
    contained(data).ok_or(LibraryError::Form)
}

/// The machine code in the containers of a section; none if its form is unknown.
fn contained(mut data: &[u8]) -> Option<Vec<&[u8]>> {
    let mut found = vec![];
    loop {
        // Containers begin at multiples of eight, with zeros between.
        while data.first() == Some(&0) {
            data = &data[1..];
        }
        if data.is_empty() {
            return Some(found);
        }
        let (head, size) = (usize::from(short(data, 6)?), usize::try_from(long(data, 8)?).ok()?);
        if word(data, 0)? != MAGIC {
            return None;
        }
        let end = head.checked_add(size)?;
        let mut rest = data.get(head..end)?;
        while !rest.is_empty() {
            let (kind, head) = (short(rest, 0)?, word(rest, 4)? as usize);
            let end = head.checked_add(usize::try_from(long(rest, 8)?).ok()?)?;
            let payload = rest.get(head..end)?;
            if kind == CODE {
                found.push(Some(payload).filter(|code| code.starts_with(ELF))?);
            }
            // What says that it takes no room would be read forever.
            rest = rest.get(end.max(1)..)?;
        }
        // As above: a header too short for its own fields takes no room either.
        data = data.get(end.max(1)..)?;
    }
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
mod tests {
    use super::*;

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
