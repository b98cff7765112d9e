//! A compiled binary as bytes: entries, parameters, shared variables, globals. Knows ELF and the names of `KF_ENTRY`; does not load anything.

use std::collections::BTreeMap;

use super::abi::{MAX_DYNAMIC_SHARED, MAX_STATIC_SHARED};
use super::error::ImageError;
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind, elf};

/// The flags of a section that say whether it is loaded writable, and is not thread-local.
const WRITTEN: u64 = elf::SHF_ALLOC.0 | elf::SHF_WRITE.0 | elf::SHF_TLS.0;
const WRITTEN_NOW: u64 = elf::SHF_ALLOC.0 | elf::SHF_WRITE.0;

/// Sections that only the loader writes: they are read-only before code of the binary runs.
const LOADERS: [&str; 8] =
    [".init_array", ".fini_array", ".preinit_array", ".data.rel.ro", ".dynamic", ".got", ".got.plt", ".tm_clone_table"];
/// The section of the table of calls, which is read-only once it is filled.
const TABLE: &str = ".kf_targets";
/// The mark of a binary with atomic operations that decide by themselves (`kf_settles<1>::mark` of `kf_atomic.h`).
const SETTLES: &str = "_ZN10kf_settlesILi1EE4markE";

/// One parameter of an entry, as `kf_param` lays it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) size: u32,
    pub(super) align: u32,
    pub(super) kind: ParameterKind,
}

/// The kind of a parameter's C++ type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterKind {
    Struct,
    Pointer,
    Integer,
    Float,
    Bool,
}

/// A named range: of the TLS segment for a shared variable, of the image for a global.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    /// The linker symbol.
    pub(super) symbol: String,
    /// The name as C++ spells it, if the symbol shows it.
    pub(super) name: String,
    pub(super) start: u64,
    pub(super) size: u64,
}

/// What the binary's symbol table and sections contain.
#[derive(Debug, Clone, Default)]
pub(super) struct Image {
    /// Parameters by entry; empty for an entry whose parameters are unknown.
    pub(super) entries: Vec<Vec<Parameter>>,
    /// Whether the source did not compile here, so that its entries only report what is not emulated.
    pub(super) unknown: bool,
    /// Static shared variables by offset in the TLS segment.
    pub(super) shared: Vec<Variable>,
    /// Where the dynamic area begins in the TLS segment, and whether any name refers to it.
    pub(super) dynamic: (u64, bool),
    /// A name of the dynamic area.
    pub(super) dynamic_name: String,
    /// Thread-local bytes that the compiler added, by offset in the TLS segment.
    exempt: Vec<(u64, u64)>,
    /// Whether volatile accesses to shared memory step the lanes of a warp together.
    pub(super) warp_synchronous: bool,
    /// Whether it has an atomic operation that decides by itself, such as a compare-and-swap ([`super::watch`]).
    pub(super) settles: bool,
    /// `__device__` and `__constant__` variables by address in the image.
    pub(super) globals: Vec<Variable>,
    /// Writable ranges to be reset before each trial: address and size.
    pub(super) writable: Vec<(u64, u64)>,
    /// Whether a launch can leave anything in the binary itself, because it has writable variables of its own, whatever their names and sections.
    keeps_state: bool,
    /// Address of the table of calls.
    pub(super) targets: u64,
    /// First address after the image.
    pub(super) end: u64,
}

impl Image {
    /// Reads a binary that was compiled with `entries` entries.
    pub(super) fn parse(binary: &[u8], entries: usize) -> Result<Image, ImageError> {
        let file = object::File::parse(binary).map_err(ImageError::NotShared)?;
        let mut image = Image { entries: vec![Vec::new(); entries], ..Image::default() };
        let mut found = vec![false; entries];
        let mut dynamic_names = 0;
        let (mut own, mut runtime, mut kept) = (Vec::new(), false, Vec::new());
        for symbol in file.symbols() {
            let name = symbol.name().unwrap_or_default();
            if symbol.is_undefined() || name.is_empty() {
                continue;
            }
            if name == "kf_dynamic_shared" {
                image.dynamic.0 = symbol.address();
            } else if name == "kf_targets" {
                image.targets = symbol.address();
            } else if name == "kf_warp_synchronous" {
                image.warp_synchronous = true;
            } else if name == SETTLES {
                image.settles = true;
            } else if let Some(index) = name.strip_prefix("kf_params_").and_then(|n| n.parse::<usize>().ok()) {
                if let Some(slot) = image.entries.get_mut(index) {
                    let read =
                        parameters(&file, symbol.address()).ok_or_else(|| ImageError::NoSection(name.to_owned()))?;
                    image.unknown |= read.is_none();
                    *slot = read.unwrap_or_default();
                    found[index] = true;
                }
            } else if symbol.kind() == SymbolKind::Tls {
                let variable = variable(name, &symbol);
                // g++ guards arrays of class types with thread-local bytes that it adds.
                if name.starts_with("_ZGV") || name.starts_with("__tls_guard") {
                    image.exempt.push((variable.start, variable.size));
                } else {
                    image.shared.push(variable);
                }
            } else if symbol.kind() == SymbolKind::Data && symbol.size() > 0 {
                // One byte belongs to the C library's code in every shared library; a second one of that name is the kernel's.
                match name.starts_with("completed.") && symbol.size() == 1 && !runtime {
                    true => runtime = true,
                    false => own.push(symbol.address()),
                }
                if !name.starts_with("_ZGV") {
                    image.globals.push(variable(name, &symbol));
                }
            }
        }
        if let Some(missing) = found.iter().position(|f| !f) {
            return Err(ImageError::NoEntry(missing));
        }
        image.shared.retain(|v| {
            let dynamic = v.start == image.dynamic.0;
            if dynamic {
                dynamic_names += 1;
                image.dynamic_name.clone_from(&v.name);
            }
            !dynamic
        });
        image.dynamic.1 = dynamic_names > 0;
        image.shared.sort_by_key(|v| v.start);
        image.globals.sort_by_key(|v| v.start);
        for section in file.sections() {
            let (name, start, size) = (section.name().unwrap_or_default(), section.address(), section.size());
            image.end = image.end.max(start + size);
            let written =
                matches!(section.flags(), SectionFlags::Elf { sh_flags, .. } if sh_flags.0 & WRITTEN == WRITTEN_NOW);
            if written && size > 0 && !LOADERS.contains(&name) {
                kept.push((start, size));
                if name != TABLE {
                    image.writable.push((start, size));
                }
            }
        }
        let written = |at: &u64| kept.iter().any(|(start, size)| (*start..start + size).contains(at));
        image.keeps_state = own.iter().any(written);
        Ok(image)
    }

    /// Size of the part of the TLS segment that is shared memory, in bytes, whether or not the launch requests all of it.
    pub(super) fn shared_window(&self) -> usize {
        (self.dynamic.0 + if self.dynamic.1 { MAX_DYNAMIC_SHARED } else { 0 }) as usize
    }

    /// The static shared variable at an offset of the TLS segment.
    pub(super) fn shared_at(&self, offset: u64) -> Option<&Variable> {
        at(&self.shared, offset)
    }

    /// The static shared variables of one function that exceed what a block may have, and their size in bytes. The sizes of functions
    /// that call each other are not added up.
    pub(super) fn too_much_shared(&self) -> Option<(Vec<&str>, u64)> {
        let mut by_function: BTreeMap<&str, (Vec<&str>, u64)> = BTreeMap::new();
        for variable in &self.shared {
            let (names, size) = by_function.entry(function_of(&variable.symbol)).or_default();
            names.push(&variable.name);
            *size += variable.size;
        }
        by_function.into_values().find(|(_, size)| *size > MAX_STATIC_SHARED)
    }

    /// Whether an offset of the TLS segment belongs to the compiler.
    pub(super) fn is_exempt(&self, offset: u64) -> bool {
        self.exempt.iter().any(|(start, size)| (*start..start + size).contains(&offset))
    }

    /// The global at an address of the image.
    pub(super) fn global_at(&self, address: u64) -> Option<&Variable> {
        at(&self.globals, address)
    }
}

/// Whether a launch of a binary with `entries` entries can leave anything in the binary for the next launch. False for a binary that
/// cannot be read, which fails elsewhere.
pub fn keeps_state(binary: &[u8], entries: usize) -> bool {
    Image::parse(binary, entries).is_ok_and(|image| image.keeps_state)
}

fn at(sorted: &[Variable], place: u64) -> Option<&Variable> {
    let after = sorted.partition_point(|v| v.start <= place);
    sorted[..after].iter().rev().take(4).find(|v| place < v.start + v.size)
}

fn variable<'a>(name: &str, symbol: &impl ObjectSymbol<'a>) -> Variable {
    Variable { symbol: name.to_owned(), name: spelled(name), start: symbol.address(), size: symbol.size() }
}

/// The parameters at an address, or `Some(None)` if they are unknown. None if the address is in no section.
fn parameters(file: &object::File<'_>, address: u64) -> Option<Option<Vec<Parameter>>> {
    let word = |n: u64| -> Option<u32> {
        file.sections().find_map(|s| {
            let data = s.data_range(address + 4 * n, 4).ok()??;
            Some(u32::from_le_bytes(data.try_into().ok()?))
        })
    };
    let count = word(0)?;
    if count == u32::MAX {
        return Some(None);
    }
    (0..u64::from(count))
        .map(|p| {
            let kind = match word(3 + 3 * p)? {
                1 => ParameterKind::Pointer,
                2 => ParameterKind::Integer,
                3 => ParameterKind::Float,
                4 => ParameterKind::Bool,
                _ => ParameterKind::Struct,
            };
            Some(Parameter { size: word(1 + 3 * p)?, align: word(2 + 3 * p)?, kind })
        })
        .collect::<Option<_>>()
        .map(Some)
}

/// The name of a variable as C++ spells it: a nested name of the Itanium ABI without template arguments, only the variable's own name if it is local to a
/// function, or the symbol itself in all other cases.
pub(super) fn spelled(symbol: &str) -> String {
    let Some(rest) = symbol.strip_prefix("_Z") else { return symbol.to_owned() };
    if rest.starts_with('Z') {
        // `_ZZ <function> E <name>`: local to a function; the variable's own name comes last, perhaps with a number.
        let tail = rest.rfind('E').map_or("", |e| &rest[e + 1..]);
        return source_name(tail.trim_start_matches('L'))
            .map_or_else(|| symbol.to_owned(), |(name, _)| name.to_owned());
    }
    let nested = rest.starts_with('N');
    let mut rest = rest.trim_start_matches('N').trim_start_matches('L');
    let mut parts = Vec::new();
    while let Some((name, after)) = source_name(rest) {
        if !name.starts_with("_GLOBAL__N") {
            parts.push(name);
        }
        rest = after.trim_start_matches('L');
        if !nested {
            break;
        }
    }
    if parts.is_empty() { symbol.to_owned() } else { parts.join("::") }
}

/// The part of a local variable's symbol that names its function: `_ZZ6kernelPf` in `_ZZ6kernelPfE4tile`. Empty for variables outside functions.
fn function_of(symbol: &str) -> &str {
    if !symbol.starts_with("_ZZ") {
        return "";
    }
    let local = |at: &usize| {
        source_name(symbol[at + 1..].trim_start_matches('L'))
            .is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with('_'))
    };
    symbol.match_indices('E').map(|(at, _)| at).rfind(local).map_or("", |at| &symbol[..at])
}

fn source_name(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let length: usize = text[..digits].parse().ok()?;
    let rest = &text[digits..];
    (rest.len() >= length && rest.is_char_boundary(length)).then(|| rest.split_at(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_variables_are_counted_by_function() {
        assert_eq!(function_of("_ZZ6kernelPfE4tile"), "_ZZ6kernelPf");
        assert_eq!(function_of("_ZZ6kernelPfE5TABLE"), "_ZZ6kernelPf");
        assert_eq!(function_of("_ZZN3ops3addIfLi4EEEvPT_E4tile_0"), "_ZZN3ops3addIfLi4EEEvPT_");
        assert_eq!(function_of("tile"), "");
        let of = |symbol: &str, size| Variable { symbol: symbol.into(), name: spelled(symbol), start: 0, size };
        let image = |sizes: [u64; 2]| Image {
            shared: vec![of("_ZZ1kPfE1a", sizes[0]), of("_ZZ1kPfE1b", sizes[1]), of("_ZZ1jPfE1c", 40_000)],
            ..Image::default()
        };
        assert_eq!(image([40_000, 9_152]).too_much_shared(), None);
        assert_eq!(image([40_000, 9_153]).too_much_shared(), Some((vec!["a", "b"], 49_153)));
    }

    #[test]
    fn variables_are_named_as_their_source_spells_them() {
        assert_eq!(spelled("table"), "table");
        assert_eq!(spelled("_ZL7weights"), "weights");
        assert_eq!(spelled("_ZN3ops7weightsE"), "ops::weights");
        assert_eq!(spelled("_ZN12_GLOBAL__N_17weightsE"), "weights");
        assert_eq!(spelled("_ZZ6kernelPfE4tile"), "tile");
        assert_eq!(spelled("_ZZN3ops3addIfLi4EEEvPT_E4tile_0"), "tile");
    }
}
