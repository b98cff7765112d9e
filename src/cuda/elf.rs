//! Reads a cubin's ELF sections: functions and the attributes in `.nv.info`. Knows the layout; runs no tool and trusts nothing, because the bytes may be
//! anything.
//!
//! An attribute is a format byte, an attribute byte, and two bytes of value (formats 1 to 3) or a length and that many bytes (format 4). These attributes are
//! read:
//!
//! | attribute | where | what |
//! |---|---|---|
//! | 0x2f | `.nv.info` | symbol, registers per thread |
//! | 0x11 | `.nv.info` | symbol, bytes of its own stack frame |
//! | 0x12 | `.nv.info` | symbol, bytes of stack including everything that it calls |
//! | 0x17 | `.nv.info.F` | index, ordinal, offset, size << 18 of a parameter |
//! | 0x45 | `.nv.info.F` | the same with a separate field for the size, for large parameters |
//! | 0x19 | `.nv.info.F` | bytes of all parameters |
//! | 0x05 | `.nv.info.F` | launch bounds: most threads along x, y, z |

use std::collections::{BTreeMap, BTreeSet};

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SymbolIndex};

/// The contents of the sections for one function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) registers: Option<u32>,
    pub(super) stack: Option<u64>,
    /// Static shared memory as in the section, including what the system reserves.
    pub(super) shared: u64,
    /// (offset, size), in order.
    pub(super) params: Vec<(u32, u32)>,
    pub(super) max_threads: Option<u32>,
}

/// Why bytes cannot be read as a cubin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    /// The bytes are not an ELF file.
    #[error("the binary is not a cubin: {0}")]
    NotElf(object::Error),
    /// The machine is not a GPU.
    #[error("the binary is not a cubin: it is for machine {0}")]
    Machine(u16),
    /// A section has no name.
    #[error("a section has no name: {0}")]
    Unnamed(object::Error),
    /// A section is outside the file.
    #[error("`{section}` cannot be read: {error}")]
    Unreadable {
        /// The section.
        section: String,
        /// The error.
        error: object::Error,
    },
    /// A section's attributes are damaged.
    #[error("`{section}`: {fault}")]
    Section {
        /// The section.
        section: String,
        /// The fault.
        fault: SectionFault,
    },
}

/// What is wrong with the attributes of a section.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SectionFault {
    /// A parameter is truncated.
    #[error("a parameter is cut short")]
    ParameterCut,
    /// An attribute is truncated.
    #[error("an attribute is cut short")]
    AttributeCut,
    /// The section ends within an attribute.
    #[error("it ends within an attribute")]
    Ends,
    /// An attribute has an unknown format.
    #[error("attribute {attribute:#04x} has the unknown format {format}")]
    Format {
        /// The attribute.
        attribute: u8,
        /// Its format.
        format: u8,
    },
    /// The parameters exceed the declared size.
    #[error("parameters end at {end}, beyond their {bytes} bytes")]
    Parameters {
        /// The end of the last parameter.
        end: u64,
        /// The declared size of all parameters.
        bytes: u32,
    },
}

/// A cubin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cubin {
    /// The compute capability: 90.
    pub(super) capability: u32,
    /// `sm_90a`: with the suffix if the assembler's note states it.
    pub(super) architecture: String,
    /// Functions with code, by symbol.
    pub(super) functions: BTreeMap<String, Function>,
}

/// Bytes of shared memory that the system reserves in every block, from this capability on. They are part of a function's section if it has one.
pub(super) const RESERVED_SHARED: (u32, u64) = (90, 1024);

type Elf<'a> = ElfFile64<'a, Endianness>;

fn parse(bytes: &[u8]) -> Result<Elf<'_>, ElfError> {
    let elf = Elf::parse(bytes).map_err(ElfError::NotElf)?;
    let machine = elf.elf_header().e_machine.get(elf.endian());
    if machine == object::elf::EM_CUDA { Ok(elf) } else { Err(ElfError::Machine(machine.0)) }
}

/// The symbols of functions that have code.
pub(super) fn functions(bytes: &[u8]) -> Result<BTreeSet<String>, ElfError> {
    let elf = parse(bytes)?;
    let names = elf
        .sections()
        .filter(|s| s.size() > 0)
        .filter_map(|s| Some(s.name().ok()?.strip_prefix(".text.")?.to_string()));
    Ok(names.collect())
}

/// The bits of a symbol's `st_other` that mark a kernel, as opposed to a function that kernels call (`STO_CUDA_ENTRY`).
const ENTRY: u8 = 0x10;

/// The symbols of kernels that have code, in order.
pub(super) fn kernels(bytes: &[u8]) -> Result<BTreeSet<String>, ElfError> {
    let elf = parse(bytes)?;
    let coded = functions(bytes)?;
    let kernels = elf.symbols().filter(|symbol| symbol.elf_symbol().st_other.0 & ENTRY != 0);
    Ok(kernels.filter_map(|symbol| Some(symbol.name().ok()?.to_string())).filter(|name| coded.contains(name)).collect())
}

/// The sizes of the parameters of a kernel, in order; none if the cubin has no such kernel.
pub(super) fn parameters(bytes: &[u8], kernel: &str) -> Result<Option<Vec<u32>>, ElfError> {
    let cubin = read(bytes)?;
    Ok(cubin.functions.get(kernel).map(|function| function.params.iter().map(|(_, size)| *size).collect()))
}

/// Reads the whole cubin.
pub(super) fn read(bytes: &[u8]) -> Result<Cubin, ElfError> {
    let elf = parse(bytes)?;
    let mut found: BTreeMap<String, Function> =
        functions(bytes)?.into_iter().map(|name| (name, Function::default())).collect();
    let mut note = None;
    for section in elf.sections() {
        let name = section.name().map_err(ElfError::Unnamed)?;
        let data = || section.data().map_err(|error| ElfError::Unreadable { section: name.to_string(), error });
        if name == ".nv.info" {
            for (attribute, value) in
                attributes(data()?).map_err(|fault| ElfError::Section { section: name.to_string(), fault })?
            {
                let (Some(symbol), Some(number)) = (word(value, 0), word(value, 4)) else { continue };
                let Some(symbol) = symbol_name(&elf, symbol) else { continue };
                let Some(function) = found.get_mut(&symbol) else { continue };
                match attribute {
                    0x2f => function.registers = Some(number),
                    // All ones means that the assembler cannot determine the size, for example because of recursion.
                    0x11 | 0x12 if number != u32::MAX => {
                        function.stack = Some(function.stack.unwrap_or(0).max(u64::from(number)));
                    }
                    _ => {}
                }
            }
        } else if let Some(function) = name.strip_prefix(".nv.info.").and_then(|symbol| found.get_mut(symbol)) {
            entry_attributes(data()?, function)
                .map_err(|fault| ElfError::Section { section: name.to_string(), fault })?;
        } else if let Some(function) = name.strip_prefix(".nv.shared.").and_then(|symbol| found.get_mut(symbol)) {
            function.shared = section.size();
        } else if name == ".note.nv.tkinfo" {
            note = stated_architecture(data()?);
        }
    }
    let header = elf.elf_header();
    let (capability, architecture) = architecture(header.e_ident.abi_version, header.e_flags.get(elf.endian()).0, note);
    Ok(Cubin { capability, architecture, functions: found })
}

/// The compute capability and the architecture that the header of a cubin states: the version of its ABI, its flags, and what the assembler's note states.
///
/// Until version 7 of the ABI (CUDA 12, except for Blackwell) there is no note: the capability is in the first byte, and a flag marks code that needs the
/// features of `sm_90a`. Since version 8 the capability is in the second byte, and only the note separates `sm_90a` from `sm_90`. (Read from cubins of ptxas
/// 12.8 and 13.0 for six and eight architectures.)
fn architecture(abi: u8, flags: u32, stated: Option<String>) -> (u32, String) {
    /// Marks features of one architecture alone, in version 7.
    const SPECIFIC: u32 = 0x800;
    let capability = if abi >= 8 { (flags >> 8) & 0xff } else { flags & 0xff };
    let plain = format!("sm_{capability}");
    let marked = if abi < 8 && flags & SPECIFIC != 0 { format!("{plain}a") } else { plain.clone() };
    (capability, stated.filter(|stated| stated.trim_end_matches(['a', 'f']) == plain).unwrap_or(marked))
}

fn symbol_name(elf: &Elf<'_>, index: u32) -> Option<String> {
    let symbol = elf.symbol_by_index(SymbolIndex(index as usize)).ok()?;
    Some(symbol.name().ok()?.to_string())
}

fn entry_attributes(data: &[u8], function: &mut Function) -> Result<(), SectionFault> {
    let mut params: BTreeMap<u16, (u32, u32)> = BTreeMap::new();
    let mut bytes = None;
    for (attribute, value) in attributes(data)? {
        match attribute {
            0x17 | 0x45 => {
                let (Some(place), Some(size)) = (word(value, 4), word(value, 8)) else {
                    return Err(SectionFault::ParameterCut);
                };
                let size = if attribute == 0x17 { size >> 18 } else { size };
                params.insert(place as u16, (place >> 16, size));
            }
            0x19 => bytes = value.get(..2).map(|b| u32::from(u16::from_le_bytes([b[0], b[1]]))),
            0x05 => {
                let product = (0..3).map(|i| word(value, 4 * i)).try_fold(1u32, |all, n| all.checked_mul(n?));
                function.max_threads = product.filter(|n| *n > 0);
            }
            _ => {}
        }
    }
    function.params = params.into_values().collect();
    // In 64 bits, so that arbitrary bytes cannot cause an overflow.
    let end = function.params.last().map_or(0, |(offset, size)| u64::from(*offset) + u64::from(*size));
    match bytes {
        Some(bytes) if end > u64::from(bytes) => Err(SectionFault::Parameters { end, bytes }),
        _ => Ok(()),
    }
}

/// Each attribute and its value.
fn attributes(data: &[u8]) -> Result<Vec<(u8, &[u8])>, SectionFault> {
    let mut found = vec![];
    let mut rest = data;
    while let [format, attribute, low, high, after @ ..] = rest {
        let value = u16::from_le_bytes([*low, *high]);
        match format {
            1..=3 => {
                found.push((*attribute, &rest[2..4]));
                rest = after;
            }
            4 => {
                let (value, after) = after.split_at_checked(usize::from(value)).ok_or(SectionFault::AttributeCut)?;
                found.push((*attribute, value));
                rest = after;
            }
            other => return Err(SectionFault::Format { attribute: *attribute, format: *other }),
        }
    }
    if rest.is_empty() { Ok(found) } else { Err(SectionFault::Ends) }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_le_bytes(bytes))
}

/// The architecture in the assembler's options, which its note quotes: `-v -arch sm_90a`.
fn stated_architecture(note: &[u8]) -> Option<String> {
    let text: String = note.iter().map(|b| if b.is_ascii_graphic() { char::from(*b) } else { ' ' }).collect();
    let (_, after) = text.split_once("-arch")?;
    let name = after.trim_start_matches(['=', ' ']).split(' ').next()?;
    name.starts_with("sm_").then(|| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_architecture_is_read_from_headers_of_both_versions() {
        let stated = |name: &str| Some(name.to_string());
        for (abi, flags, note, capability, expected) in [
            (7, 0x0050_0550, None, 80, "sm_80"),
            (7, 0x005a_055a, None, 90, "sm_90"),
            (7, 0x005a_0d5a, None, 90, "sm_90a"),
            (8, 0x0600_5a04, stated("sm_90"), 90, "sm_90"),
            (8, 0x0600_5a04, stated("sm_90a"), 90, "sm_90a"),
            (8, 0x0600_6402, stated("sm_100f"), 100, "sm_100f"),
            (8, 0x0600_640a, stated("sm_100a"), 100, "sm_100a"),
            // A note about other code is no statement about this code.
            (8, 0x0600_7802, stated("sm_90a"), 120, "sm_120"),
        ] {
            assert_eq!(architecture(abi, flags, note), (capability, expected.to_string()), "{abi} {flags:#x}");
        }
    }

    #[test]
    fn attributes_of_every_format_are_walked() {
        let data = [1, 0x36, 0, 0, 3, 0x19, 0x14, 0, 4, 0x2f, 8, 0, 12, 0, 0, 0, 14, 0, 0, 0];
        let found = attributes(&data).unwrap();
        assert_eq!(found.iter().map(|(a, v)| (*a, v.len())).collect::<Vec<_>>(), [(0x36, 2), (0x19, 2), (0x2f, 8)]);
    }

    #[test]
    fn damaged_attributes_are_errors_not_panics() {
        for data in [&[4, 0x2f, 9, 0, 1][..], &[9, 0, 0, 0], &[1, 2, 3]] {
            assert!(attributes(data).is_err(), "{data:?}");
        }
    }

    #[test]
    fn the_suffix_comes_from_the_assemblers_options() {
        assert_eq!(stated_architecture(b"ptxas\0-v  -arch sm_90a \0").as_deref(), Some("sm_90a"));
        assert_eq!(stated_architecture(b"-arch=sm_100f -m 64").as_deref(), Some("sm_100f"));
        assert_eq!(stated_architecture(b"nothing"), None);
    }

    #[test]
    fn anything_else_is_refused() {
        assert!(read(b"not an ELF").unwrap_err().to_string().contains("not a cubin"));
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(read(&own).unwrap_err().to_string().contains("not a cubin"));
    }
}
