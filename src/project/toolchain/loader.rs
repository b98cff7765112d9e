//! Lists the shared libraries that a program loads, by asking its ELF loader (`--list`), without starting the program. Knows the ELF header and the loader's
//! output; does not know what the program is for.

use std::io::Read;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader};

use super::Error;
use super::run::{ask, compiler_environment};

/// Bytes to read of a program: enough for its header and the name of its loader.
const HEAD: u64 = 1 << 16;

/// The libraries, including the loader, that a program loads in an environment with an empty `PATH` and no `LD_*` variables. Empty for a script, for
/// a program that is not a 64-bit ELF file, and for one that needs no library. A library that the loader does not find is left out.
///
/// # Errors
/// The program cannot be read, or its loader cannot be run.
pub(super) fn libraries(program: &Path) -> Result<Vec<PathBuf>, Error> {
    libraries_with(program, &[])
}

/// Like [`libraries`] for a program that also needs libraries of these names.
///
/// # Errors
/// Like [`libraries`].
pub(super) fn libraries_with(program: &Path, names: &[String]) -> Result<Vec<PathBuf>, Error> {
    let mut head = Vec::new();
    let opened = std::fs::File::open(program).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    opened.map_err(|source| Error::Read { path: program.to_owned(), source })?;
    let Some(loader) = interpreter(&head) else { return Ok(vec![]) };
    let mut environment = compiler_environment("");
    if !names.is_empty() {
        environment.insert("LD_PRELOAD".into(), names.join(":"));
    }
    let said = ask(&loader, &["--list", &program.to_string_lossy()], &environment, "")?;
    Ok(listed(&said.out))
}

/// The loader that a program names.
fn interpreter(head: &[u8]) -> Option<PathBuf> {
    let header = FileHeader64::<Endianness>::parse(head).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, head).ok()?;
    let name = segments.iter().find_map(|s| s.interpreter(endian, head).ok().flatten())?;
    Some(PathBuf::from(String::from_utf8_lossy(name).trim_end_matches('\0').to_string()))
}

/// The files in lines such as `libm.so.6 => /lib/libm.so.6 (0x7f...)`. The vDSO has no file.
fn listed(text: &str) -> Vec<PathBuf> {
    let of_line = |line: &str| {
        let place = line.split_once(" => ").map_or(line, |(_, place)| place).trim();
        let place = place.rsplit_once(" (").map_or(place, |(place, _)| place);
        place.starts_with('/').then(|| PathBuf::from(place))
    };
    text.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_s_libraries_are_told_and_a_script_has_none() {
        let of = libraries(&std::env::current_exe().unwrap()).unwrap();
        assert!(of.iter().any(|p| p.to_string_lossy().contains("libc.so")), "{of:?}");
        assert!(of.iter().all(|p| p.is_file()), "{of:?}");
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("script"), "#!/bin/sh\n").unwrap();
        assert_eq!(libraries(&dir.path().join("script")).unwrap(), Vec::<PathBuf>::new());
    }

    #[test]
    fn the_loader_s_lines_are_read() {
        let text = "\tlinux-vdso.so.1 (0x00007ffc)\n\tlibm.so.6 => /lib/libm.so.6 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00)\n\tlibx.so => not found\n";
        assert_eq!(listed(text), ["/lib/libm.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from));
    }
}
