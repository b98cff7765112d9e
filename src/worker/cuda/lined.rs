//! A source compiled once more, with line tables. Knows how to keep the machine's folders out of them; does not know who reads them.
//!
//! Line tables name the folder that a compiler works in, which is another on every machine and in every step. A binary that depends on it would have another digest each
//! time, and nothing that was seen of it could be found again. So the folder is given a name that makes its path as long as any may be, and the path is then
//! overwritten by one of the same length that says nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::compile::{CudaCompileError, compile_within};
use crate::record::params::CompileParams;
use crate::worker::compilers::Within;

/// The flag of both compilers that puts line tables into machine code and leaves the code as it is.
const FLAG: &str = "-lineinfo";
/// The folder that the tables then name; sources are below it by their names in the package, with as many `./` before as fill the place.
pub const FOLDER: &str = "/kforge-source";
/// Bytes of the path of the folder that holds a compiler's.
const LENGTH: usize = 242;
/// What the name of a compiler's folder begins with, and how many letters come after.
const STAGE: (&str, usize) = ("/.compile-", 6);

/// The machine code with line tables; none where the path of `within` is too long to be made as long as any.
///
/// # Errors
/// As [`compile_within`].
pub fn compile_lined(
    params: &CompileParams,
    source: &Path,
    shim: &Path,
    tools: &BTreeMap<String, PathBuf>,
    within: &Within<'_>,
) -> Result<Option<Vec<u8>>, CudaCompileError> {
    let mut params = params.clone();
    if !params.flags.iter().any(|flag| flag == FLAG) {
        params.flags.push(FLAG.into());
    }
    let Some(scratch) = padded(within.scratch) else { return Ok(None) };
    let unavailable = |e: std::io::Error| CudaCompileError::Unavailable { why: format!("cannot make a folder: {e}") };
    fs::create_dir(&scratch).map_err(unavailable)?;
    let made = compile_within(&params, source, shim, tools, &Within { scratch: &scratch, ..*within });
    fs::remove_dir_all(&scratch).map_err(unavailable)?;
    let mut cubin = made?.cubin;
    forget(&mut cubin, scratch.as_os_str().as_encoded_bytes());
    Ok(Some(cubin))
}

/// A folder below another whose path has [`LENGTH`] bytes.
fn padded(below: &Path) -> Option<PathBuf> {
    let missing = LENGTH.checked_sub(below.as_os_str().len() + 1).filter(|missing| (1..=255).contains(missing))?;
    Some(below.join("_".repeat(missing)))
}

/// Overwrites the paths of compilers' folders below `scratch`.
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

#[cfg(test)]
mod tests {
    use super::*;

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
