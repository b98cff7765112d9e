//! Machine code of one or several functions as one output of a compilation. Knows bytes; trusts nothing, because they may be anything. Pure.
//!
//! | functions were compiled | the output is |
//! |---|---|
//! | together, or there is one | their cubin |
//! | each by itself, as Triton does it | an archive as `ar` makes it: a cubin for each entry, in the order of the entries, called `0.cubin`, `1.cubin` |
//!
//! The members of an archive have no times, owners and modes, so equal cubins give equal bytes.

use std::fmt::Write as _;

/// What an archive begins with.
const MAGIC: &[u8] = b"!<arch>\n";
/// Bytes of a member's header.
const HEADER: usize = 60;
/// Where the size of a member stands in its header.
const SIZE: std::ops::Range<usize> = 48..58;
/// The end of a header.
const END: &[u8] = b"`\n";

/// Why machine code cannot be taken apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the machine code is a damaged archive: member {0} is cut short or has no size")]
pub struct DamagedArchive(pub usize);

/// Whether machine code is an archive with a cubin for each entry.
pub fn is_archive(machine_code: &[u8]) -> bool {
    machine_code.starts_with(MAGIC)
}

/// Cubins of one function each as one output. One alone stays as it is.
pub fn joined(mut cubins: Vec<Vec<u8>>) -> Vec<u8> {
    if cubins.len() == 1 {
        return cubins.remove(0);
    }
    let mut out = MAGIC.to_vec();
    for (at, cubin) in cubins.iter().enumerate() {
        let mut header = String::new();
        let (name, size) = (format!("{at}.cubin/"), cubin.len());
        // Writing to a string cannot fail.
        let _ = writeln!(header, "{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`", 0, 0, 0, 0);
        out.extend(header.as_bytes());
        out.extend(cubin);
        // Members begin at even places.
        out.extend(std::iter::repeat_n(b'\n', size % 2));
    }
    out
}

/// The cubins of machine code, in order: those of an archive, or the whole of anything else.
///
/// # Errors
/// It is an archive that ends within a member.
pub fn cubins(machine_code: &[u8]) -> Result<Vec<&[u8]>, DamagedArchive> {
    let Some(mut rest) = machine_code.strip_prefix(MAGIC) else { return Ok(vec![machine_code]) };
    let mut all = vec![];
    while !rest.is_empty() {
        let damaged = || DamagedArchive(all.len());
        let (header, behind) =
            rest.split_at_checked(HEADER).filter(|(header, _)| header.ends_with(END)).ok_or_else(damaged)?;
        let size = std::str::from_utf8(&header[SIZE]).ok().and_then(|text| text.trim_end().parse::<usize>().ok());
        let (cubin, behind) = size.and_then(|size| behind.split_at_checked(size)).ok_or_else(damaged)?;
        all.push(cubin);
        rest = match cubin.len() % 2 {
            0 => behind,
            _ => behind.get(1..).unwrap_or_default(),
        };
    }
    Ok(all)
}

/// The machine code of the entry at that place: the cubin of its own in an archive, or else the whole.
///
/// # Errors
/// Those of [`cubins`], or the archive has fewer members.
pub fn of_entry(machine_code: &[u8], at: usize) -> Result<&[u8], DamagedArchive> {
    if !is_archive(machine_code) {
        return Ok(machine_code);
    }
    cubins(machine_code)?.get(at).copied().ok_or(DamagedArchive(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cubin_stays_as_it_is_and_several_come_back_in_order() {
        assert_eq!(joined(vec![b"\x7fELF".to_vec()]), b"\x7fELF");
        let parts: Vec<Vec<u8>> = vec![b"\x7fELF one".to_vec(), b"odd".to_vec(), vec![], b"\x7fELF four".to_vec()];
        let whole = joined(parts.clone());
        assert!(is_archive(&whole) && !is_archive(b"\x7fELF"));
        assert_eq!(cubins(&whole).unwrap(), parts);
        assert_eq!(whole, joined(parts.clone()));
        assert_eq!((of_entry(&whole, 1).unwrap(), of_entry(b"\x7fELF", 7).unwrap()), (&b"odd"[..], &b"\x7fELF"[..]));
        assert_eq!(of_entry(&whole, 4), Err(DamagedArchive(4)));
    }

    #[test]
    fn damaged_archives_are_errors_not_panics() {
        let whole = joined(vec![b"four".to_vec(), b"more".to_vec()]);
        for end in MAGIC.len() + 1..whole.len() {
            let found = cubins(&whole[..end]);
            assert!(found.is_err() || found == Ok(vec![&b"four"[..]]), "{end}: {found:?}");
        }
        let mut huge = whole.clone();
        huge[MAGIC.len() + SIZE.start..MAGIC.len() + SIZE.end].copy_from_slice(b"9999999999");
        assert_eq!(cubins(&huge), Err(DamagedArchive(0)));
        huge[MAGIC.len() + SIZE.start..MAGIC.len() + SIZE.end].copy_from_slice(b"-1        ");
        assert_eq!(cubins(&huge), Err(DamagedArchive(0)));
    }

    #[test]
    fn the_archive_has_the_form_of_ar_without_times_and_owners() {
        let expected = "!<arch>\n0.cubin/        0           0     0     0       3         `\nodd\n\
                        1.cubin/        0           0     0     0       4         `\neven";
        assert_eq!(String::from_utf8(joined(vec![b"odd".to_vec(), b"even".to_vec()])).unwrap(), expected);
    }
}
