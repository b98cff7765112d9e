//! Tests of inspection on two small cubins and one recorded disassembly: see `fixtures/two.cu`.

use std::os::unix::fs::PermissionsExt;

use super::*;

const SM_80: &[u8] = include_bytes!("fixtures/two_sm_80.cubin");
const SM_90A: &[u8] = include_bytes!("fixtures/two_sm_90a.cubin");
const JSON: &str = include_str!("fixtures/two_sm_90a.json");

fn params(disassemble: bool) -> InspectParams {
    InspectParams {
        arch: "sm_90a".into(),
        entries: vec!["plain".into(), "row<float, 64>".into()],
        disassemble,
        listing: false,
        launches: vec![],
        host: false,
    }
}

fn facts() -> CompileFacts {
    let symbols = vec!["plain".to_string(), "_Z3rowIfLi64EEvPT_PKS0_i".to_string()];
    let spills = [("plain".to_string(), (8, 16))].into();
    CompileFacts { compiler: "nvrtc".into(), symbols, spills, triton: vec![] }
}

#[test]
fn elf_facts_are_those_the_source_declares() {
    let seen = inspect(&params(false), SM_90A, &facts(), None).unwrap();
    assert_eq!(seen.architectures, ["sm_90a"]);
    let [plain, row] = &seen.functions[..] else { panic!("{seen:?}") };
    assert_eq!(plain.params, [(0, 8), (8, 16), (24, 1)], "a pointer, a struct of 16 bytes, a char");
    assert_eq!(row.params, [(0, 8), (8, 8), (16, 4)]);
    assert_eq!((plain.shared, row.shared), (Some(0), Some(256)), "64 floats, without what sm_90 reserves");
    assert_eq!((plain.max_threads, row.max_threads), (None, Some(128)));
    assert_eq!((plain.registers, row.registers), (Some(14), Some(12)));
    assert_eq!((plain.stack, row.stack), (Some(0), Some(0)));
    assert_eq!((plain.spill_stores, plain.spill_loads, row.spill_stores), (Some(8), Some(16), None));
    assert!(!seen.disassembled && plain.opcodes.is_empty());
}

#[test]
fn before_sm_90_nothing_is_taken_off_shared_memory() {
    let seen = inspect(&params(false), SM_80, &facts(), None).unwrap();
    assert_eq!(seen.architectures, ["sm_80"]);
    assert_eq!((seen.functions[0].shared, seen.functions[1].shared), (Some(0), Some(256)));
}

#[test]
fn opcodes_are_counted_by_entry_with_their_modifiers() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("answer"), JSON).unwrap();
    let stand_in = dir.path().join("nvdisasm");
    let script =
        format!("#!/bin/sh\ntest \"$1\" = -json && test -s \"$2\" && exec /bin/cat {}/answer\n", dir.path().display());
    std::fs::write(&stand_in, script).unwrap();
    std::fs::set_permissions(&stand_in, std::fs::Permissions::from_mode(0o755)).unwrap();
    let seen = inspect(&params(true), SM_90A, &facts(), Some(&stand_in)).unwrap();
    let [plain, row] = &seen.functions[..] else { panic!("{seen:?}") };
    assert!(seen.disassembled);
    assert_eq!(plain.opcodes["LDG.E.128"], 1);
    assert_eq!((row.opcodes.get("LDG.E.128"), row.opcodes["LDG.E"], row.opcodes["ULDC.64"]), (None, 1, 3));
}

#[test]
fn a_listing_is_what_the_disassembler_writes_of_each_cubin() {
    let dir = tempfile::tempdir().unwrap();
    let stand_in = dir.path().join("nvdisasm");
    std::fs::write(&stand_in, "#!/bin/sh\ntest \"$1\" = -c && wc -c < \"$2\"\n").unwrap();
    std::fs::set_permissions(&stand_in, std::fs::Permissions::from_mode(0o755)).unwrap();
    let within = ToolSandbox { scratch: dir.path(), bounds: None, deadline: Instant::now() + LONGEST };
    let listing = |binary: &[u8]| listing_within(&params(false), binary, &stand_in, &within);
    let text = String::from_utf8(listing(SM_90A).unwrap()).unwrap();
    assert_eq!(text.trim(), SM_90A.len().to_string());
    let both = machine_code::joined(vec![SM_80.to_vec(), SM_90A.to_vec()]);
    let text = String::from_utf8(listing(&both).unwrap()).unwrap();
    let sizes: Vec<String> = text.split_whitespace().map(String::from).collect();
    assert_eq!(sizes, [SM_80.len().to_string(), SM_90A.len().to_string()]);
    assert!(listing_within(&params(false), SM_90A, Path::new("/bin/false"), &within).is_err());
}

#[test]
fn what_cannot_be_inspected_says_why() {
    let error = inspect(&params(true), SM_90A, &facts(), None).unwrap_err().to_string();
    assert!(error.contains("no nvdisasm"), "{error}");
    let mut other = facts();
    other.symbols[0] = "gone".into();
    let error = inspect(&params(false), SM_90A, &other, None).unwrap_err().to_string();
    assert!(error.contains("`gone`") && error.contains("entry `plain`"), "{error}");
    assert!(
        inspect(&params(true), SM_90A, &facts(), Some(Path::new("/bin/false")))
            .unwrap_err()
            .to_string()
            .contains("/bin/false")
    );
    assert!(DisassemblyError::Form(opcodes(b"[]").unwrap_err()).to_string().contains("unknown form"));
}

#[test]
fn a_damaged_cubin_never_panics_and_a_cut_one_is_an_error() {
    let mut refused = 0;
    for at in (0..SM_90A.len()).step_by(7) {
        let mut damaged = SM_90A.to_vec();
        damaged[at] ^= 0xff;
        refused += usize::from(inspect(&params(false), &damaged, &facts(), None).is_err());
        assert!(inspect(&params(false), &SM_90A[..at], &facts(), None).is_err(), "cut at {at}");
    }
    assert!(refused > 0, "no damage was found");
}
