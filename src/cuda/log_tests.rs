//! Tests of parsing logs, on logs of NVRTC 13.0, nvcc 13.0 and g++.

use super::*;

const UNDEFINED: &str = "norms/main.cu(9): error: identifier \"foo\" is undefined\n  \
    __global__ void z(int*p){ foo(p);}\n                            ^\n\n1 error detected in the compilation of \"norms/main.cu\".\n";

const VERBOSE: &str = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1hPfPKf' for 'sm_90a'
ptxas info    : Function properties for _Z1hPfPKf
ptxas         .     6328 bytes stack frame, 17820 bytes spill stores, 17824 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 6328 bytes cumulative stack size
ptxas info    : Compile time = 1428.080 ms
ptxas info    : Function properties for plain
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
";

#[test]
fn an_error_says_file_line_and_the_compilers_words() {
    let found = messages(UNDEFINED);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].whole.ends_with('^'), "the quoted source belongs to it: {:?}", found[0].whole);
    assert_eq!(first_error(&found, &[]).unwrap(), "norms/main.cu:9: identifier \"foo\" is undefined");
}

#[test]
fn a_missing_entry_is_named_as_it_was_declared() {
    let log = "__nv_name_map(3): error: identifier \"zz\" is undefined\n  #pragma nv_mangled_name zz<4>\n     ^\n";
    let error = first_error(&messages(log), &["zz< 4 >".to_string()]).unwrap();
    assert_eq!(error, "entry `zz< 4 >` cannot be found: identifier \"zz\" is undefined");
}

#[test]
fn every_tool_of_the_chain_is_understood() {
    for (log, text) in [
        (
            "main.cu(1): catastrophic error: cannot open source file \"vector\"\n",
            "main.cu:1: cannot open source file \"vector\"",
        ),
        (
            "main.cu:3:10: fatal error: nosuch.h: No such file or directory\n",
            "main.cu:3: nosuch.h: No such file or directory",
        ),
        ("ptxas fatal   : Unresolved extern function 'f'\n", "Unresolved extern function 'f'"),
        (
            "ptxas error   : Entry function 'k' uses too much shared data\n",
            "Entry function 'k' uses too much shared data",
        ),
        (
            "ptxas a.ptx, line 21; error   : Not a name of any known instruction: 'foo'\n",
            "Not a name of any known instruction: 'foo'",
        ),
        (
            "nvrtc: error: invalid value for --gpu-architecture (-arch)\n",
            "invalid value for --gpu-architecture (-arch)",
        ),
        ("nvcc fatal   : Unknown option '-x9'\n", "Unknown option '-x9'"),
    ] {
        assert_eq!(first_error(&messages(log), &[]).as_deref(), Some(text), "{log}");
    }
}

#[test]
fn spills_are_by_symbol_and_times_are_left_out() {
    let spills = spills(VERBOSE);
    assert_eq!(spills["_Z1hPfPKf"], (17820, 17824));
    assert_eq!(spills["plain"], (0, 0));
    let kept = timeless(VERBOSE);
    assert!(!kept.contains("Compile time") && kept.contains("Used 32 registers"), "{kept}");
}

#[test]
fn warnings_are_notes_but_not_about_the_stand_ins() {
    let log = "a.cu(2): warning #177-D: variable \"x\" was declared but never referenced\n  int x;\n\nRemark: more\n\n\
        @cuda/cccl/cmath(356): warning #47-D: incompatible redefinition of macro \"NAN\" (declared at line 8 of @shim/math.h)\n  #define\n";
    let notes = warnings(&messages(log));
    assert_eq!(notes.len(), 1, "{notes:?}");
    let place = SourcePlace { file: "a.cu".into(), line: 2, column: None };
    assert_eq!(notes[0].parts[0].place, Some(place), "{notes:?}");
    assert!(notes[0].message.contains("#177-D") && notes[0].message.ends_with("int x;"), "{notes:?}");
}

#[test]
fn nvcc_is_wanted_for_missing_headers_and_host_code_only() {
    let wants = |log: &str| wants_nvcc(&messages(log));
    assert!(
        wants("m.cu(1): catastrophic error: cannot open source file \"vector\"\n  #include <vector>\n   ^\n")
            .unwrap()
            .contains("`vector`")
    );
    assert_eq!(
        wants("m.cu(1): catastrophic error: cannot open source file \"mine.cuh\"\n  #include \"mine.cuh\"\n   ^\n"),
        None
    );
    assert!(wants("m.cu(9): error: identifier \"cudaMalloc\" is undefined\n").unwrap().contains("cudaMalloc"));
    assert!(wants("m.cu(9): error: namespace \"std\" has no member \"sort\"\n").unwrap().contains("std::sort"));
    assert!(
        wants("t.h(61): error: A function explicitly marked as a __host__ function is not allowed in JIT mode\n")
            .is_some()
    );
    for name in ["uint", "ushort", "ulong", "u_int32_t", "ssize_t"] {
        let why = wants(&format!("m.cu(9): error: identifier \"{name}\" is undefined\n")).unwrap();
        assert!(why.contains(&format!("`{name}`")), "{why}");
    }
    let launch = "m.cu(6): error: device-side kernel launch could not be processed as the required runtime APIs are not declared\n";
    assert_eq!(wants(launch).unwrap(), "the file launches kernels from host code");
    assert_eq!(wants(UNDEFINED), None);
    assert_eq!(wants("m.cu(9): error: identifier \"custom\" is undefined\n"), None);
}

#[test]
fn messages_have_the_places_that_are_in_the_package() {
    let log = format!(
        "{UNDEFINED}__nv_name_map(3): error: identifier \"zz\" is undefined\n  #pragma nv_mangled_name zz<4>\n\n{UNDEFINED}ptxas fatal   : Unresolved extern function 'f'\n"
    );
    let found = tool_messages(&log);
    let places: Vec<Option<(&str, u32)>> =
        found.iter().map(|m| m.place.as_ref().map(|place| (place.file.as_str(), place.line))).collect();
    assert_eq!(places, [Some(("norms/main.cu", 9)), None, None], "{found:?}");
    assert_eq!(found[0].message, "identifier \"foo\" is undefined");
}
