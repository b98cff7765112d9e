//! Compiles a source a second time, with line tables. Knows how to keep the machine's folders out of the tables, but not who reads them.
//!
//! Line tables contain the compiler's working folder, which differs on every machine and in every step, and the modification time of each file. A binary that
//! depends on these would have a different digest each time, and no earlier observation of it could be found again. Therefore the working folder gets a name
//! that makes its path as long as the longest allowed path. Afterwards the path is overwritten with a neutral path of the same length, and the times are
//! overwritten, too.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection};

use super::compile::{CudaCompileError, compile_within};
use kforge_harness::compilers::ToolSandbox;
use kforge_types::record::params::CompileParams;

/// The flag of both compilers that adds line tables to machine code and does not change the code.
const FLAG: &str = "-lineinfo";
/// The folder that the tables then contain. Sources are below it by their names in the package, with as many `./` before the name as are needed to fill the
/// space.
pub const FOLDER: &str = "/kforge-source";
/// Length in bytes of the path of the folder in which a compiler's working folder is created.
const LENGTH: usize = 242;
/// The sections that hold line tables.
const SECTIONS: [&str; 2] = [".debug_line", ".nv_debug_line_sass"];
/// The prefix of a compiler's working folder, and the number of letters after it.
const STAGE: (&str, usize) = ("/.compile-", 6);

/// The machine code with line tables; none if the path of `within` is too long to be padded.
///
/// # Errors
/// As [`compile_within`].
pub fn compile_lined(
    params: &CompileParams,
    source: &Path,
    shim: &Path,
    tools: &BTreeMap<String, PathBuf>,
    within: &ToolSandbox<'_>,
) -> Result<Option<Vec<u8>>, CudaCompileError> {
    let mut params = CompileParams { ptx: false, ..params.clone() };
    if !params.flags.iter().any(|flag| flag == FLAG) {
        params.flags.push(FLAG.into());
    }
    let Some(scratch) = padded(within.scratch) else { return Ok(None) };
    let unavailable = |e: std::io::Error| CudaCompileError::Unavailable { why: format!("cannot make a folder: {e}") };
    fs::create_dir(&scratch).map_err(unavailable)?;
    let made = compile_within(&params, source, shim, tools, &ToolSandbox { scratch: &scratch, ..*within });
    fs::remove_dir_all(&scratch).map_err(unavailable)?;
    let mut cubin = made?.cubin;
    forget(&mut cubin, scratch.as_os_str().as_encoded_bytes());
    for table in tables(&cubin) {
        timeless(&mut cubin[table]);
    }
    Ok(Some(cubin))
}

/// A folder below another folder, with a path of [`LENGTH`] bytes.
fn padded(below: &Path) -> Option<PathBuf> {
    let missing = LENGTH.checked_sub(below.as_os_str().len() + 1).filter(|missing| (1..=255).contains(missing))?;
    Some(below.join("_".repeat(missing)))
}

/// Overwrites the paths of the compilers' working folders below `scratch`.
fn forget(bytes: &mut [u8], scratch: &[u8]) {
    let (prefix, letters) = STAGE;
    let whole = scratch.len() + prefix.len() + letters;
    let begin = [scratch, prefix.as_bytes()].concat();
    let mut filler = FOLDER.as_bytes().to_vec();
    while filler.len() < whole {
        filler.extend(if whole - filler.len() >= 2 { &b"/."[..] } else { b"/" });
    }
    let mut from = 0;
    while let Some(at) = bytes[from..].windows(begin.len()).position(|w| w == begin) {
        from += at;
        if let Some(place) = bytes.get_mut(from..from + whole) {
            place.copy_from_slice(&filler);
        }
        from += begin.len();
    }
}

/// The byte ranges of the sections that hold line tables.
fn tables(cubin: &[u8]) -> Vec<Range<usize>> {
    let Ok(file) = object::File::parse(cubin) else { return vec![] };
    let named = |section: &object::Section<'_, '_>| section.name().is_ok_and(|n| SECTIONS.contains(&n));
    let ranges = file.sections().filter(named).filter_map(|section| section.file_range());
    let ranges = ranges.filter_map(|(at, size)| Some(usize::try_from(at).ok()?..usize::try_from(at + size).ok()?));
    ranges.filter(|range| range.end <= cubin.len()).collect()
}

/// Overwrites the modification times of files in line tables of DWARF 2 (section 6.2.4 of its standard), which both compilers write. Tables of other versions
/// are not changed.
fn timeless(mut tables: &mut [u8]) {
    while let Some((length, _)) = tables.split_first_chunk::<4>() {
        let end = u32::from_le_bytes(*length) as usize + 4;
        let Some((table, rest)) = tables.split_at_mut_checked(end) else { return };
        if table.get(4..6) == Some(&[2, 0]) {
            let _ = times(table);
        }
        tables = rest;
    }
}

/// The same for one table; none if the table is truncated.
fn times(table: &mut [u8]) -> Option<()> {
    // Lengths and version, four one-byte numbers, then the number of opcodes plus one, and one byte per opcode.
    let mut at = 15 + usize::from(*table.get(14)?).checked_sub(1)?;
    let text = |table: &[u8], at: usize| table.get(at..)?.iter().position(|byte| *byte == 0);
    let number = |table: &[u8], at: usize| Some(table.get(at..)?.iter().position(|byte| byte & 0x80 == 0)? + 1);
    loop {
        let folder = text(table, at)?;
        at += folder + 1;
        if folder == 0 {
            break;
        }
    }
    loop {
        let name = text(table, at)?;
        at += name + 1;
        if name == 0 {
            return Some(());
        }
        at += number(table, at)?;
        let time = number(table, at)?;
        let (last, others) = table.get_mut(at..at + time)?.split_last_mut()?;
        others.fill(0x80);
        *last = 0;
        at += time;
        at += number(table, at)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_files_are_overwritten_and_nothing_else() {
        let table = |time: [u8; 3], version: u8| {
            let mut all = vec![0, 0, 0, 0, version, 0, 9, 0, 0, 0, 1, 1, 0xfb, 0x0e, 3, 0, 1];
            all.extend(b"dir\0\0k.cu\0\x01");
            all.extend(time);
            all.extend(b"\xa7\x01h.cuh\0\x00");
            all.extend(time);
            all.extend(b"\x05\0program");
            all[0] = all.len() as u8 - 4;
            all
        };
        let of = |time, version| {
            let mut two = [table(time, version), table(time, version)].concat();
            timeless(&mut two);
            two
        };
        assert_eq!(of([0xaf, 0xd0, 0x06], 2), [table([0x80, 0x80, 0], 2), table([0x80, 0x80, 0], 2)].concat());
        let newer = [table([0xaf, 0xd0, 0x06], 5), table([0xaf, 0xd0, 0x06], 5)].concat();
        assert_eq!(of([0xaf, 0xd0, 0x06], 5), newer);
        let whole = table([0xaf, 0xd0, 0x06], 2);
        (0..whole.len()).for_each(|cut| timeless(&mut whole[..cut].to_vec()));
    }

    #[test]
    fn paths_are_as_long_wherever_a_step_lies_and_say_nothing() {
        let of = |below: &str, letters: &str| {
            let scratch = padded(Path::new(below)).unwrap();
            let scratch = scratch.to_str().unwrap();
            let mut bytes =
                format!("a\0{scratch}/.compile-{letters}/k.cu\0{scratch}/.compile-{letters}\0").into_bytes();
            forget(&mut bytes, scratch.as_bytes());
            String::from_utf8(bytes).unwrap()
        };
        let one = of("/home/me/.kforge/tmp/steps/step-abc/out", "Abc123");
        assert_eq!(one, of("/s", "zzzzzz"));
        let names: Vec<&str> = one.split('\0').collect();
        assert!(names[1].starts_with("/kforge-source/./././") && names[1].ends_with("/./k.cu"), "{one}");
        assert_eq!(padded(Path::new(&"/x".repeat(121))), None);
    }
}
