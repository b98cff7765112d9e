//! Tests of the reader of fatbins, with containers that are put together byte by byte. The tests of the toolchain read what NVIDIA's `fatbinary` writes.

use super::*;

const BINARY: &[u8] = b"\x7fELF machine code";
const TEXT: &[u8] = b"// Made.\n.version 9.0\n.target sm_90a\n\t.visible .entry  k()\n";
/// The same as `fatbinary` writes it.
const STORED: &[u8] = b"\n.version 9.0\n.target sm_90a\n.visible .entry k()\n";
const SM_90A: u64 = 0x11 | 0x10_0000;

/// An entry as `fatbinary` writes it.
fn entry(kind: u16, capability: u32, flags: u64, payload: &[u8]) -> Vec<u8> {
    let (size, options) = if kind == PTX { (80u32, 64u32) } else { (64, 0) };
    let mut filled = payload.to_vec();
    filled.resize((payload.len() + usize::from(kind == PTX)).next_multiple_of(8), 0);
    let mut bytes = [&kind.to_le_bytes()[..], &[1, 1], &size.to_le_bytes()].concat();
    bytes.extend((filled.len() as u64).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(options.to_le_bytes());
    bytes.extend([8, 0, 1, 0]);
    bytes.extend(capability.to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(flags.to_le_bytes());
    bytes.extend([0; 16]);
    if kind == PTX {
        bytes.extend(72u32.to_le_bytes());
        bytes.extend([0; 12]);
    }
    [bytes, filled].concat()
}

fn container_of(entries: &[Vec<u8>]) -> Vec<u8> {
    let all = entries.concat();
    let head = [&MAGIC.to_le_bytes()[..], &[1, 0, 16, 0], &(all.len() as u64).to_le_bytes()];
    [&head.concat()[..], &all].concat()
}

fn code() -> Vec<u8> {
    entry(CODE, 90, SM_90A, BINARY)
}

fn ptx() -> Vec<u8> {
    entry(PTX, 90, SM_90A, STORED)
}

/// The entry with other bytes at an offset.
fn edited(mut entry: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    entry[at..at + bytes.len()].copy_from_slice(bytes);
    entry
}

fn checked(entries: &[Vec<u8>], ptx: Option<&[u8]>) -> Result<(), FatbinFault> {
    check(&container_of(entries), "sm_90a", BINARY, ptx)
}

#[test]
fn a_fatbin_of_the_binary_and_its_ptx_passes() {
    assert_eq!(checked(&[code()], None), Ok(()));
    assert_eq!(checked(&[code(), ptx()], Some(TEXT)), Ok(()));
    assert!(holds_ptx(&container_of(&[code(), ptx()])) && !holds_ptx(&container_of(&[code()])));
    let plain = entry(CODE, 120, 0x11, BINARY);
    assert_eq!(check(&container_of(&[plain]), "sm_120", BINARY, None), Ok(()));
    let family = entry(CODE, 100, 0x11 | 0x20_0000, BINARY);
    assert_eq!(check(&container_of(&[family]), "sm_100f", BINARY, None), Ok(()));
}

#[test]
fn a_missing_architecture_is_named_with_what_is_there() {
    let other = |capability, flags| checked(&[entry(CODE, capability, flags, BINARY)], None).unwrap_err();
    let found = |text: &str| FatbinFault::Architecture { declared: "sm_90a".into(), found: vec![text.into()] };
    assert_eq!(other(80, 0x11), found("machine code for sm_80"));
    assert_eq!(other(90, 0x11), found("machine code for sm_90"));
    assert_eq!(other(90, 0x11 | 0x20_0000), found("machine code for sm_90f"));
    assert_eq!(checked(&[ptx()], Some(TEXT)), Err(found("PTX for sm_90a")));
    assert!(checked(&[], None).unwrap_err().to_string().contains("no machine code for sm_90a; it holds nothing"));
    let many: Vec<_> = (20..40).flat_map(|capability| [entry(CODE, capability, 0x11, BINARY), ptx()]).collect();
    let said = checked(&many, None).unwrap_err().to_string();
    assert!(said.ends_with("PTX for sm_90a, machine code for sm_21, machine code for sm_22, machine code for sm_23, machine code for sm_24, machine code for sm_25, machine code for sm_26, more"), "{said}");
}

#[test]
fn another_image_and_a_further_one_are_refused() {
    let other = entry(CODE, 90, SM_90A, b"\x7fELF another code");
    assert_eq!(checked(std::slice::from_ref(&other), None), Err(FatbinFault::OtherCode));
    assert_eq!(checked(&[entry(CODE, 90, SM_90A, &BINARY[..8])], None), Err(FatbinFault::OtherCode));
    let longer = entry(CODE, 90, SM_90A, &[BINARY, b"12345678"].concat());
    assert_eq!(checked(&[longer], None), Err(FatbinFault::OtherCode));
    // What fills it up could hide something.
    let end = code().len() - 1;
    assert_eq!(checked(&[edited(code(), end, b"x")], None), Err(FatbinFault::OtherCode));
    let extra = |text: &str| Err(FatbinFault::Extra(text.into()));
    assert_eq!(checked(&[code(), other], None), extra("machine code for sm_90a"));
    assert_eq!(checked(&[code(), code()], None), extra("machine code for sm_90a"));
    assert_eq!(checked(&[code(), entry(CODE, 80, 0x11, BINARY)], None), extra("machine code for sm_80"));
    assert_eq!(checked(&[code(), ptx()], None), extra("PTX for sm_90a"));
    assert_eq!(checked(&[code(), ptx(), ptx()], Some(TEXT)), extra("PTX for sm_90a"));
    assert_eq!(
        checked(&[code(), entry(16, 90, SM_90A, b"")], None),
        extra("an image of the unknown kind 16 for sm_90a")
    );
}

#[test]
fn ptx_is_compared_but_for_comments_and_white_space() {
    let with = |stored: &[u8]| checked(&[code(), entry(PTX, 90, SM_90A, stored)], Some(TEXT));
    assert_eq!(with(STORED), Ok(()));
    assert_eq!(with(b".version 9.0 .target   sm_90a\n.visible .entry k()"), Ok(()));
    // `fatbinary` writes no comments. What is one may differ between readers, so a payload with one is refused.
    for other in [
        &b".version 9.0 .target /* a */ sm_90a .visible .entry k()"[..],
        b".version 9.0 .target sm_90a .visible .entry k()// end",
    ] {
        assert_eq!(with(other), Err(FatbinFault::OtherPtx));
    }
    for other in [&b".version 9.0\n.target sm_90a\n.visible .entry m()\n"[..], b".version 9.0", b""] {
        assert_eq!(with(other), Err(FatbinFault::OtherPtx));
    }
    assert_eq!(checked(&[code()], Some(TEXT)), Err(FatbinFault::NoPtx("sm_90a".into())));
    let other = entry(PTX, 80, 0x11, STORED);
    assert_eq!(checked(&[code(), other], Some(TEXT)), Err(FatbinFault::NoPtx("sm_90a".into())));
    // Text in quotation marks is no comment, and its white space counts.
    assert_eq!(plain(b".file 1 \"a//b  c\"\t;/* x"), (b".file 1 \"a//b  c\" ;".to_vec(), true));
    // A backslash is no escape: what follows the text is code, and differs.
    let hiding = |value: u8| [&b".pragma \"a\\\";\n.pragma \"//\"; mov.u32 %r, "[..], &[value], b";"].concat();
    assert_ne!(plain(&hiding(b'7')), plain(&hiding(b'9')));
    // A reader may stop at a zero.
    assert!(!is_same_ptx(b"a\0b\0\0\0\0\0", b"a\0b") && is_same_ptx(b"a b\0\0\0\0\0", b"a b"));
    assert_ne!(plain(b"\"a  b\""), plain(b"\"a b\""));
    assert_ne!(plain(b"a b"), plain(b"ab"));
    let hidden = entry(PTX, 90, SM_90A, &[STORED, &[0; 16]].concat());
    assert_eq!(checked(&[code(), hidden], Some(TEXT)), Err(FatbinFault::OtherPtx));
}

#[test]
fn compressed_images_and_other_fields_of_headers_are_refused() {
    for flag in [0x2000, 0x8000] {
        let fault = checked(&[entry(CODE, 90, SM_90A | flag, BINARY)], None);
        assert_eq!(fault, Err(FatbinFault::Compressed("machine code for sm_90a".into())));
    }
    let fault = Err(FatbinFault::Header("machine code for sm_90a".into()));
    // Version, compressed size, options, name, flags of debugging and of another platform, the last fields.
    for (at, bytes) in [(2, 2), (16, 1), (20, 64), (32, 1), (36, 1), (40, 0x13), (40, 0x21), (43, 1), (48, 1), (56, 1)]
    {
        assert_eq!(checked(&[edited(code(), at, &[bytes])], None), fault, "{at}");
    }
    for (at, bytes) in [(20, 0), (64, 0), (68, 1), (72, 1), (79, 1)] {
        let fault = Err(FatbinFault::Header("PTX for sm_90a".into()));
        assert_eq!(checked(&[code(), edited(ptx(), at, &[bytes])], Some(TEXT)), fault, "{at}");
    }
    // A longer header could hide something.
    let mut longer = code();
    longer[4] = 72;
    longer.splice(64..64, [0; 8]);
    assert_eq!(checked(&[longer], None), fault);
    // The version of the code's form is the compiler's.
    assert_eq!(checked(&[edited(code(), 24, &[7])], None), Ok(()));
}

#[test]
fn what_is_cut_short_goes_on_or_is_something_else_is_refused() {
    let whole = container_of(&[code(), ptx()]);
    for length in 0..whole.len() {
        assert_eq!(check(&whole[..length], "sm_90a", BINARY, Some(TEXT)), Err(FatbinFault::Form), "{length}");
    }
    for more in [&[0][..], &whole] {
        let longer = [&whole, more].concat();
        assert_eq!(check(&longer, "sm_90a", BINARY, Some(TEXT)), Err(FatbinFault::Trailing));
    }
    // A container that claims to be larger takes in what follows.
    let grown = edited([&whole[..], &[0; 8]].concat(), 8, &(whole.len() as u64 - 16 + 8).to_le_bytes());
    assert_eq!(check(&grown, "sm_90a", BINARY, Some(TEXT)), Err(FatbinFault::Form));
    for (at, byte) in [(0, 0), (4, 2), (6, 15), (6, 17)] {
        assert_eq!(check(&edited(whole.clone(), at, &[byte]), "sm_90a", BINARY, Some(TEXT)), Err(FatbinFault::Form));
    }
    for endless in [[&[2u8, 0, 1, 1][..], &[0; 12]].concat(), [&[2u8, 0, 1, 1, 15][..], &[0; 11]].concat()] {
        assert_eq!(container(&container_of(&[endless])), None);
    }
    let overflowing = edited(code(), 8, &u64::MAX.to_le_bytes());
    assert_eq!(container(&container_of(&[overflowing])), None);
}

/// An ELF file of 64 bits with this section, as far as a reader of sections needs it.
fn elf_with(name: &str, section: &[u8]) -> Vec<u8> {
    let names = ["", ".shstrtab", name].join("\0") + "\0";
    let data = 64 + names.len();
    let table = data + section.len();
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(64, 0);
    bytes[16..20].copy_from_slice(&[2, 0, 190, 0]);
    bytes[20] = 1;
    bytes[40..48].copy_from_slice(&(table as u64).to_le_bytes());
    bytes[52] = 64;
    bytes[58..64].copy_from_slice(&[64, 0, 3, 0, 1, 0]);
    bytes.extend(names.as_bytes());
    bytes.extend(section);
    bytes.extend([0; 64]);
    for (name, kind, at, size) in [(1u32, 3u32, 64, names.len()), (11, 1, data, section.len())] {
        let mut header = [name.to_le_bytes(), kind.to_le_bytes()].concat();
        header.extend([0; 16]);
        header.extend((at as u64).to_le_bytes());
        header.extend((size as u64).to_le_bytes());
        header.resize(64, 0);
        bytes.extend(header);
    }
    bytes
}

#[test]
fn machine_code_that_describes_itself_has_its_own_description_in_the_header() {
    let section = b"what it needs";
    let cubin = elf_with(".nv.compat", section);
    let flags = 0x11 | 0x100_0000;
    let described = |description: &[u8]| {
        let mut entry = edited(entry(CODE, 100, flags, &cubin), 20, &[64]);
        let mut options = [72u32.to_le_bytes(), (description.len() as u32).to_le_bytes()].concat();
        options.push(0);
        options.extend(description);
        options.resize(options.len().next_multiple_of(8), 0);
        entry[4] += options.len() as u8;
        entry.splice(64..64, options);
        container_of(&[entry])
    };
    let of = |fatbin: &[u8]| check(fatbin, "sm_100", &cubin, None);
    let fault = Err(FatbinFault::Header("machine code for sm_100".into()));
    assert_eq!(of(&described(section)), Ok(()));
    assert_eq!(of(&described(b"what it lacks")), fault);
    assert_eq!(of(&described(b"")), fault);
    let whole = described(section);
    for at in [20, 64, 68, 72, 73, 64 + 8 + section.len() + 1] {
        let edited = edited(whole.clone(), 16 + at, &[whole[16 + at] ^ 1]);
        assert_eq!(of(&edited), fault, "{at}");
    }
    // Without its flag, without its options, and of machine code that has none.
    assert_eq!(of(&edited(whole.clone(), 16 + 43, &[0])), fault);
    assert_eq!(of(&container_of(&[entry(CODE, 100, flags, &cubin)])), fault);
    let other = elf_with(".nv.other", section);
    assert_eq!(check(&container_of(&[entry(CODE, 100, flags, &other)]), "sm_100", &other, None), fault);
}
