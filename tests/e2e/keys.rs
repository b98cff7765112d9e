//! Inputs that caches of other tools left out of their keys, or included without need, are handled correctly. The tests of each known failure:
//!
//! | failure | test |
//! |---|---|
//! | a kernel's text is not in the key | `edits`: every edit of a source or header |
//! | the compiler's version is not | `edits::another_compiler_...`, `machine::another_nvrtc_...`; for locked wheels `toolchain::cuda` |
//! | the time of a file is used in place of its bytes | [`bytes_count_and_times_do_not`] |
//! | included headers are not | `edits::a_header_...`, `edits::a_new_header_that_shadows_...`; system ones [`a_system_header_that_comes_before_another_...`] |
//! | further parameters are not | [`whatever_is_declared_of_a_compilation_counts`] |
//! | fields run into each other | `base::encode`; the hardware is in the class of an observation: `engine::evidence` |
//! | the whole space of variants is | `edits::a_value_added_to_a_tunable_...` |
//! | the folder of the build is | `again` |
//! | absolute paths or times leak into outputs | `again`, [`bytes_count_and_times_do_not`] |
//! | a half-written result is believed | `killed`, `accidents`; `engine::blobs`, `engine::action` |

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::project::{Built, Project, id};
use crate::sample::{TWICE, sample};

/// The sample with its own compiler: the system's, with the folder `system` first in the search for headers.
fn with_system() -> (Project, PathBuf) {
    let project = sample();
    let system = project.place().join("system");
    fs::create_dir(&system).unwrap();
    let wrapper = project.place().join("own-c++");
    fs::write(&wrapper, format!("#!/bin/sh\nexec c++ -isystem {} \"$@\"\n", system.display())).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    (project.var("KFORGE_TOOLCHAIN_CXX", &wrapper), system)
}

fn compiles(built: &Built) -> BTreeSet<String> {
    built.finished().filter(|s| s["kind"] == "compile").map(id).collect()
}

#[test]
#[ignore = "second tier: many builds"]
fn a_system_header_that_comes_before_another_compiles_everything_again_and_nothing_after_it() {
    let (project, system) = with_system();
    let first = project.built(&[]);
    assert_eq!(project.built(&[]).count("executed"), 0);
    fs::write(system.join("cmath"), "#include_next <cmath>\n").unwrap();
    assert_eq!(project.built(&[]).executed(), compiles(&first));
    assert_eq!(project.built(&[]).count("executed"), 0);
    fs::write(system.join("cmath"), "// edited\n#include_next <cmath>\n").unwrap();
    assert_eq!(project.built(&[]).executed(), compiles(&first));
}

#[test]
#[ignore = "second tier: many builds"]
fn a_sub_tool_that_comes_before_another_compiles_everything_again() {
    let (project, _) = with_system();
    let first = project.built(&[]);
    // In the driver's folder, which is searched first for programs.
    let tool = project.place().join("as");
    fs::write(&tool, "#!/bin/sh\nexec /usr/bin/as \"$@\"\n").unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(project.built(&[]).executed(), compiles(&first));
    assert_eq!(project.built(&[]).count("executed"), 0);
}

#[test]
#[ignore = "second tier: many builds"]
fn a_header_of_another_library_of_the_system_is_refused_and_what_to_do_is_said() {
    let (project, system) = with_system();
    fs::write(system.join("other_library.h"), "#define MORE 1\n").unwrap();
    project.write("twice.cu", &format!("#include <other_library.h>\n{}", TWICE.replace("+ 1", "+ MORE")));
    let built = project.build(&[]).expect(101);
    let built = built.says("which kforge does not track").says("other_library.h");
    built.says("declare the folder it is in as a dependency");
    project.edit("twice.cu", "<other_library.h>", "<vector>");
    project.edit("twice.cu", "+ MORE", "+ 1");
    project.built(&[]);
}

#[test]
#[ignore = "second tier: many builds"]
fn a_header_of_the_system_that_a_source_asks_about_is_refused_and_one_of_the_compiler_is_not() {
    let (project, system) = with_system();
    let asks = |name: &str| format!("#if __has_include(<{name}>)\n#define MORE 1\n#else\n#define MORE 2\n#endif\n");
    project.write("twice.cu", &(asks("other_library.h") + &TWICE.replace("+ 1", "+ MORE - 1")));
    fs::write(system.join("other_library.h"), "#error it does not compile by itself\n").unwrap();
    let built = project.build(&[]).expect(101);
    built.says("asks by `__has_include` for").says("other_library.h").says("leave the question out");
    fs::remove_file(system.join("other_library.h")).unwrap();
    project.built(&[]);
    project.write("twice.cu", &(asks("vector") + &TWICE.replace("+ 1", "+ MORE")));
    project.built(&[]);
}

#[test]
#[ignore = "second tier: many builds"]
fn a_compiler_that_lies_nowhere_where_compilers_lie_compiles_and_counts() {
    let (project, _) = with_system();
    // The compiler searches for its parts beside itself, and only its wrapper names it.
    let folder = project.place().join("user/compilers");
    fs::create_dir_all(folder.join("bin")).unwrap();
    for name in ["lib", "libexec", "include"] {
        std::os::unix::fs::symlink(format!("/usr/{name}"), folder.join(name)).unwrap();
    }
    let real = folder.join("bin/real-c++");
    fs::copy(fs::canonicalize("/usr/bin/c++").unwrap(), &real).unwrap();
    let wrapper = project.place().join("own-c++");
    fs::write(&wrapper, format!("#!/bin/sh\nexec {} \"$@\"\n", real.display())).unwrap();
    let first = project.built(&[]);
    assert_eq!(first.step("sample/twice/cpu/tiny/judge")["verdict"], "pass");
    assert_eq!(project.built(&[]).count("executed"), 0);
    let mut bytes = fs::read(&real).unwrap();
    bytes.push(0);
    fs::write(&real, bytes).unwrap();
    assert_eq!(project.built(&[]).executed(), compiles(&first));
}

#[test]
fn bytes_count_and_times_do_not() {
    let project = sample();
    project.built(&[]);
    let file = project.root().join("twice.cu");
    let written = fs::metadata(&file).unwrap().modified().unwrap();
    // Of the same size, and with the same time as before.
    project.edit("twice.cu", "+ 1;", "+ 2;");
    fs::File::open(&file).unwrap().set_modified(written).unwrap();
    assert!(project.build(&[]).expect(100).executed().contains("sample/twice/cpu/compile"));
    project.edit("twice.cu", "+ 2;", "+ 1;");
    assert_eq!(project.built(&[]).count("executed"), 0, "another time of the same bytes");
}

#[test]
fn whatever_is_declared_of_a_compilation_counts() {
    let project = sample();
    project.built(&[]);
    let kernel = "[kernel.twice]\n";
    for line in ["flags = [\"-funroll-loops\"]", "defines = { UNUSED = \"1\" }", "std = \"c++20\""] {
        project.edit("kernel.toml", kernel, &format!("{kernel}{line}\n"));
        let ran = project.built(&[]).executed();
        assert!(ran.contains("sample/twice/cpu/compile"), "{line}: {ran:?}");
        assert!(!ran.iter().any(|step| step.contains("direct") && step.ends_with("compile")), "{line}: {ran:?}");
    }
}
