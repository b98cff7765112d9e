//! Stand-ins for the libraries of CUDA with which a PyTorch is linked: they define the wanted symbols, and every function returns that there is no device. With
//! them, the part of PyTorch that runs on the processor is imported without the 2.5 GB of those libraries. Knows ELF; runs nothing.
//!
//! | decision | reason |
//! |---|---|
//! | the symbols are those that the libraries of the wheel want | a release needs no list of its own |
//! | kforge writes the files itself | a machine without a linker can use references in PyTorch |
//! | every function returns 100 (`cudaErrorNoDevice`) | PyTorch then finds no device, and says nothing |
//! | unversioned symbols that nobody defines go to the first library of those that want them | the loader looks for them everywhere |

use std::collections::{BTreeMap, BTreeSet};

use object::elf;
use object::read::elf::{Dyn, ElfFile64, Sym};
use object::{Endianness, ReadRef};

/// What one library wants and has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wants {
    /// The libraries of CUDA that it is linked with, in order.
    libraries: Vec<String>,
    /// Symbols with a version: library, symbol, version.
    versioned: BTreeSet<(String, String, String)>,
    /// Symbols without one.
    plain: BTreeSet<String>,
    /// The symbols that it defines.
    defines: BTreeSet<String>,
}

/// Whether a library is one of CUDA's, by its name.
fn is_of_cuda(name: &str) -> bool {
    ["libcu", "libnv", "libnccl"].iter().any(|start| name.starts_with(start))
}

/// What a library wants and has.
///
/// # Errors
/// The bytes are not a library for 64-bit machines.
pub(super) fn wants<'d, R: ReadRef<'d>>(bytes: R) -> object::read::Result<Wants> {
    let file: ElfFile64<'d, Endianness, R> = ElfFile64::parse(bytes)?;
    let endian = file.endian();
    let sections = file.elf_section_table();
    let mut out = Wants::default();
    if let Some((entries, link)) = sections.dynamic(endian, bytes)? {
        let strings = sections.strings(endian, bytes, link)?;
        for entry in entries.iter().filter(|entry| entry.tag(endian) == elf::DT_NEEDED) {
            let name = String::from_utf8_lossy(entry.string(endian, strings)?).into_owned();
            if is_of_cuda(&name) {
                out.libraries.push(name);
            }
        }
    }
    // The versions that it wants, by index, with their libraries.
    let mut versions: BTreeMap<u16, (String, String)> = BTreeMap::new();
    if let Some((mut needs, link)) = sections.gnu_verneed(endian, bytes)? {
        let strings = sections.strings(endian, bytes, link)?;
        while let Some((need, mut parts)) = needs.next()? {
            let library = String::from_utf8_lossy(need.file(endian, strings)?).into_owned();
            while let Some(part) = parts.next()? {
                let version = String::from_utf8_lossy(part.name(endian, strings)?).into_owned();
                versions.insert(part.vna_other.get(endian).0, (library.clone(), version));
            }
        }
    }
    let indices = sections.gnu_versym(endian, bytes)?.map(|(indices, _)| indices);
    let symbols = sections.symbols(endian, bytes, elf::SHT_DYNSYM)?;
    for (at, symbol) in symbols.enumerate() {
        let name = String::from_utf8_lossy(symbol.name(endian, symbols.strings())?).into_owned();
        if name.is_empty() {
            continue;
        }
        if !symbol.is_undefined(endian) {
            out.defines.insert(name);
            continue;
        }
        let index = indices.and_then(|all| all.get(at.0)).map_or(0, |index| index.0.get(endian).0 & 0x7fff);
        match versions.get(&index) {
            Some((library, version)) if is_of_cuda(library) => {
                out.versioned.insert((library.clone(), name, version.clone()));
            }
            Some(_) => {}
            None if symbol.st_bind() != elf::STB_WEAK => {
                out.plain.insert(name);
            }
            None => {}
        }
    }
    Ok(out)
}

/// The stand-ins for everything that these libraries want, by file name.
pub(super) fn stubs(all: &[Wants]) -> BTreeMap<String, Vec<u8>> {
    let mut symbols: BTreeMap<&str, BTreeSet<(&str, &str)>> = BTreeMap::new();
    let defined = |name: &str| all.iter().any(|wants| wants.defines.contains(name));
    for wants in all {
        for library in &wants.libraries {
            symbols.entry(library).or_default();
        }
        for (library, name, version) in &wants.versioned {
            symbols.entry(library).or_default().insert((name, version));
        }
        let Some(first) = wants.libraries.first() else { continue };
        // The interpreter itself defines Python's.
        let of_python = |name: &str| name.trim_start_matches('_').starts_with("Py");
        for name in wants.plain.iter().filter(|name| !of_python(name) && !defined(name)) {
            symbols.entry(first).or_default().insert((name, ""));
        }
    }
    symbols.into_iter().map(|(library, symbols)| (library.to_string(), stub(library, &symbols))).collect()
}

/// `mov eax, 100; ret`.
const CODE: [u8; 6] = [0xb8, 100, 0, 0, 0, 0xc3];
const PAGE: usize = 4096;
/// Kinds of segments, and what may be done with them.
const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const EXECUTE: u32 = 1;
const WRITE: u32 = 2;
const READ: u32 = 4;

/// Names in a table of strings.
#[derive(Default)]
struct Strings(Vec<u8>, BTreeMap<String, u32>);

impl Strings {
    fn at(&mut self, text: &str) -> u32 {
        if self.0.is_empty() {
            self.0.push(0);
        }
        if let Some(at) = self.1.get(text) {
            return *at;
        }
        let at = self.0.len() as u32;
        self.0.extend(text.as_bytes());
        self.0.push(0);
        self.1.insert(text.to_string(), at);
        at
    }
}

/// The image of a file that is being laid out.
struct Image(Vec<u8>);

impl Image {
    /// Appends bytes at the next multiple of eight. Returns their place.
    fn put(&mut self, bytes: &[u8]) -> u64 {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let at = self.0.len() as u64;
        self.0.extend(bytes);
        at
    }
}

fn words<const N: usize>(values: [u64; N]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A shared library that defines these symbols, each with its version.
fn stub(name: &str, symbols: &BTreeSet<(&str, &str)>) -> Vec<u8> {
    let mut strings = Strings::default();
    let soname = strings.at(name);
    let versions: BTreeSet<&str> = symbols.iter().map(|(_, version)| *version).filter(|v| !v.is_empty()).collect();
    // Index 1 is the library itself, without a version.
    let index: BTreeMap<&str, u16> = versions.iter().copied().zip(2..).collect();
    let headers = 64 + 56 * 3;
    let mut image = Image(vec![0; headers]);
    let code = image.put(&CODE);
    let mut table = vec![0; 24];
    let mut indices = 0_u16.to_le_bytes().to_vec();
    for (name, version) in symbols {
        table.extend(strings.at(name).to_le_bytes());
        // A global function in a section that exists.
        table.extend([0x12, 0, 1, 0]);
        table.extend(words([code, CODE.len() as u64]));
        indices.extend(index.get(version).copied().unwrap_or(1).to_le_bytes());
    }
    let mut definitions = vec![];
    let all: Vec<(&str, u16)> = [(name, 1)].into_iter().chain(index.iter().map(|(v, i)| (*v, *i))).collect();
    for (at, (version, number)) in all.iter().enumerate() {
        let (flags, next) = (u16::from(at == 0), if at + 1 == all.len() { 0 } else { 28_u32 });
        [1_u16, flags, *number, 1].iter().for_each(|half| definitions.extend(half.to_le_bytes()));
        [elf::hash(version.as_bytes()), 20, next, strings.at(version), 0]
            .iter()
            .for_each(|word: &u32| definitions.extend(word.to_le_bytes()));
    }
    let hashes = hash_table(symbols);
    let (table, indices) = (image.put(&table), image.put(&indices));
    let (definitions, hashes, size) = (image.put(&definitions), image.put(&hashes), strings.0.len() as u64);
    let texts = image.put(&strings.0);
    let end = image.0.len();
    // The loader writes into the dynamic section.
    image.0.resize(end.next_multiple_of(PAGE), 0);
    // The tags are those of the System V ABI and of GNU's versions: name, hash table, strings, symbols, sizes of both, versions of symbols, definitions, their
    // number.
    let dynamic: [(u32, u64); 10] = [
        (14, u64::from(soname)),
        (4, hashes),
        (5, texts),
        (6, table),
        (10, size),
        (11, 24),
        (0x6fff_fff0, indices),
        (0x6fff_fffc, definitions),
        (0x6fff_fffd, all.len() as u64),
        (0, 0),
    ];
    let dynamic: Vec<u8> = dynamic.iter().flat_map(|(tag, value)| words([u64::from(*tag), *value])).collect();
    let at = image.put(&dynamic);
    let mut head = b"\x7fELF\x02\x01\x01".to_vec();
    head.resize(16, 0);
    // A shared library for x86-64.
    [3_u16, 62, 1, 0].iter().for_each(|half| head.extend(half.to_le_bytes()));
    head.extend(words([0, 64, 0]));
    head.extend(0_u32.to_le_bytes());
    [64_u16, 56, 3, 64, 0, 0].iter().for_each(|half| head.extend(half.to_le_bytes()));
    let (end, length) = (end as u64, dynamic.len() as u64);
    for (kind, flags, place, length, align) in [
        (LOAD, READ | EXECUTE, 0, end, PAGE as u64),
        (LOAD, READ | WRITE, at, length, PAGE as u64),
        (DYNAMIC, READ | WRITE, at, length, 8),
    ] {
        [kind, flags].iter().for_each(|word| head.extend(word.to_le_bytes()));
        head.extend(words([place, place, place, length, length, align]));
    }
    image.0[..headers].copy_from_slice(&head);
    image.0
}

/// The hash table by which the loader finds symbols.
fn hash_table(symbols: &BTreeSet<(&str, &str)>) -> Vec<u8> {
    let count = symbols.len() + 1;
    let mut buckets = vec![0_u32; (count / 2).max(1)];
    let mut chain = vec![0_u32; count];
    for (at, (name, _)) in symbols.iter().enumerate() {
        let bucket = elf::hash(name.as_bytes()) as usize % buckets.len();
        chain[at + 1] = buckets[bucket];
        buckets[bucket] = at as u32 + 1;
    }
    let sizes = [buckets.len() as u32, count as u32];
    sizes.iter().chain(&buckets).chain(&chain).flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stand_in_defines_what_is_wanted_under_its_versions() {
        let wanted = Wants {
            libraries: vec!["libcudart.so.13".into(), "libnccl.so.2".into()],
            versioned: [("libcublas.so.13".into(), "cublasCreate".into(), "libcublas.so.13".into())].into(),
            plain: ["ncclSend", "PyList_New", "_Py_Dealloc", "own"].map(String::from).into(),
            defines: BTreeSet::new(),
        };
        let own = Wants { defines: ["own".to_string()].into(), ..Wants::default() };
        let made = stubs(&[wanted, own]);
        assert_eq!(made.keys().collect::<Vec<_>>(), ["libcublas.so.13", "libcudart.so.13", "libnccl.so.2"]);
        // The loader itself says whether the files are libraries.
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in &made {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        let ask = "import ctypes, sys\n\
            of = lambda name: ctypes.CDLL(sys.argv[1] + '/' + name, mode=ctypes.RTLD_GLOBAL)\n\
            print(of('libcublas.so.13').cublasCreate(), of('libcudart.so.13').ncclSend(), hasattr(of('libcudart.so.13'), 'own'))\n\
            print(hasattr(of('libcudart.so.13'), 'PyList_New') and ctypes.pythonapi is None)";
        let Ok(said) = std::process::Command::new("python3").args(["-c", ask]).arg(dir.path()).output() else { return };
        let said =
            (String::from_utf8_lossy(&said.stdout).into_owned(), String::from_utf8_lossy(&said.stderr).into_owned());
        assert_eq!(said.0, "100 100 False\nFalse\n", "{}", said.1);
    }

    #[test]
    fn what_is_no_library_is_an_error() {
        assert!(wants(&b"text"[..]).is_err());
    }
}
