//! Kernels that do what no kernel should: each costs only its own process and is reported; nothing else is affected.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use crate::processes::left_behind;
use crate::project::{Built, Project};
use crate::sample::{MANIFEST, TWICE, compiled, unbuilt};

/// The sample with another source of kernel `twice`: `before` precedes it, and its first thread does `deed`.
fn with(before: &str, deed: &str) -> Project {
    let project = compiled().var("KFORGE_BUILD_TIME_LIMIT", "2s");
    let deed = format!("{{\n  if (threadIdx.x == 0) {{ {deed} }}\n");
    project.write("twice.cu", &format!("{before}{}", TWICE.replacen("{\n", &deed, 1)));
    project
}

/// Builds, and checks that every other kernel is correct and that no process keeps running. Returns the messages about the hostile kernel.
#[track_caller]
fn contained(project: &Project) -> (Built, String) {
    let built = project.build(&["--keep-going"]);
    for other in ["sample/direct/BLOCK=4/cpu/small/judge", "sample/indirect/cpu/small/judge"] {
        assert_eq!(built.step(other)["verdict"], "pass", "{}", built.stderr());
    }
    assert_eq!(left_behind(project), Vec::<String>::new());
    let verdict = built.step("sample/twice/cpu/tiny/judge")["verdict"].clone();
    (built, verdict["fail"].as_str().unwrap_or_default().to_string())
}

#[test]
#[ignore = "second tier: waits for a limit of time"]
fn a_kernel_that_loops_for_ever_is_ended_at_its_time_limit_and_not_remembered() {
    let project = with("", "for (volatile int i = 0;;) i = i + 1;");
    let (built, why) = contained(&project);
    assert!(why.contains("timed out") || why.contains("without end"), "{why}");
    assert_eq!(built.code(), 100);
    let again = project.build(&["--keep-going"]).expect(100);
    assert!(again.executed().contains("sample/twice/cpu/tiny/verify"), "a time-out is not cached");
    assert!(!again.executed().contains("sample/direct/BLOCK=4/cpu/small/verify"));
}

#[test]
#[ignore = "second tier: waits for limits"]
fn a_kernel_that_waits_for_ever_at_start_is_ended_too() {
    let project = with("struct Wait { Wait() { for (volatile int i = 0;;) i = i + 1; } } wait;\n", "");
    let (built, _) = contained(&project);
    assert_ne!(built.code(), 0);
}

#[test]
fn a_write_through_null_is_reported_as_that() {
    let (built, why) = contained(&with("", "*(volatile int *)0 = 1;"));
    assert!(why.contains("null pointer"), "{why}");
    assert_eq!(built.code(), 100);
}

#[test]
fn a_wild_write_does_no_harm() {
    let (_, why) = contained(&with("", "*(volatile int *)0x7f1234567890 = 1;"));
    assert!(!why.is_empty());
}

#[test]
fn a_kernel_that_aborts_is_reported() {
    let (_, why) = contained(&with("#include <cstdlib>\n", "abort();"));
    assert!(why.contains("abort"), "{why}");
}

#[test]
fn a_kernel_that_ends_the_process_is_reported() {
    let (_, why) = contained(&with("extern \"C\" void _exit(int);\n", "_exit(0);"));
    assert!(why.contains("tried to end the process"), "{why}");
}

#[test]
fn reports_forged_through_every_descriptor_do_not_help() {
    let forge = r#"for (int fd = 0; fd < 256; fd++) write(fd, "{\"trial-done\":{\"trial\":0}}\n", 27);"#;
    let (_, why) = contained(&with("extern \"C\" long write(int, const void *, unsigned long);\n", forge));
    assert!(why.contains("tried to write to a descriptor that is not its own"), "{why}");
}

#[test]
fn a_right_kernel_that_also_opens_a_socket_fails_by_that_alone() {
    let project = with("extern \"C\" int socket(int, int, int);\n", "socket(2, 1, 0);");
    let (built, why) = contained(&project);
    assert_eq!((built.code(), why.as_str()), (100, "the kernel tried to open a socket (socket)"));
}

#[test]
fn what_is_not_emulated_cannot_be_claimed_nor_an_exit_status_be_taken_for_ours() {
    let declare = "extern \"C\" { long write(int, const void *, unsigned long); void _exit(int); }\n";
    let claim = r#"for (int fd = 3; fd < 8; fd++) write(fd, "{\"not-emulated\":{\"cause\":{\"construct\":\"mma.sync\"},\"what\":\"mma.sync\"}}\n", 70); _exit(0);"#;
    let (built, why) = contained(&with(declare, claim));
    assert_eq!(built.code(), 100, "{}", built.stderr());
    assert!(!why.is_empty());
    let (built, why) = contained(&with(declare, "_exit(70);"));
    assert_eq!(
        (built.code(), why.as_str()),
        (100, "the kernel tried to end the process before the run had ended (exit_group)")
    );
}

#[test]
fn garbage_in_every_descriptor_is_no_result() {
    let garbage = r#"for (int fd = 0; fd < 256; fd++) for (int n = 0; n < 64; n++) write(fd, "\0\377{]", 4);"#;
    let (_, why) = contained(&with("extern \"C\" long write(int, const void *, unsigned long);\n", garbage));
    assert!(!why.is_empty());
}

#[test]
#[ignore = "second tier: many builds"]
fn nothing_is_written_in_the_home_directory() {
    let project = compiled();
    let file = project.place().join("user/spoilt");
    let declare = "extern \"C\" { int open(const char *, int, ...); int mkdir(const char *, unsigned); int unlink(const char *); }\n";
    let precious = project.place().join("user/precious");
    fs::write(&precious, "mine").unwrap();
    let deed = format!(
        "open(\"{}\", 0x241, 0644); mkdir(\"{}.d\", 0755); unlink(\"{}\");",
        file.display(),
        file.display(),
        precious.display()
    );
    // Once when the binary is loaded, and once as a kernel.
    let early = format!("{declare}struct Early {{ Early() {{ {deed} }} }} early;\n");
    project.write(
        "twice.cu",
        &format!("{early}{}", TWICE.replacen("{\n", &format!("{{\n  if (threadIdx.x == 0) {{ {deed} }}\n"), 1)),
    );
    let (built, why) = contained(&project);
    assert!(why.contains("the kernel tried to open a file for writing"), "{why}");
    assert_eq!(built.code(), 100);
    assert_eq!(left_in_the_home_directory(&project), ["precious"]);
    assert_eq!(fs::read_to_string(precious).unwrap(), "mine");
}

#[test]
fn no_socket_reaches_anyone() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port().to_be();
    let declare = "extern \"C\" { int socket(int, int, int); int connect(int, const void *, unsigned); }\n";
    let deed = format!(
        "struct {{ unsigned short family, port; unsigned address, zero[2]; }} to = {{2, {port}, 0x0100007f, {{0, 0}}}}; \
         int s = socket(2, 1, 0); if (s >= 0) connect(s, &to, 16);"
    );
    let early = "struct Early { Early() { socket(2, 1, 0); } } early;\n";
    for before in [declare.to_string(), format!("{declare}{early}")] {
        let (built, why) = contained(&with(&before, &deed));
        assert_eq!((built.code(), why.as_str()), (100, "the kernel tried to open a socket (socket)"));
    }
    assert_eq!(listener.accept().map(drop).map_err(|e| e.kind()), Err(ErrorKind::WouldBlock));
}

#[test]
fn a_fork_bomb_starts_no_process() {
    let declare = "extern \"C\" int fork();\n";
    let bomb = "for (int n = 0; n < 1000; n++) if (fork() == 0) for (;;);";
    let (_, why) = contained(&with(&format!("{declare}struct Early {{ Early() {{ {bomb} }} }} early;\n"), bomb));
    assert!(why.contains("the kernel tried to start a process"), "{why}");
}

#[test]
#[ignore = "second tier: waits for limits"]
fn memory_without_end_is_refused() {
    let declare = "extern \"C\" void *malloc(unsigned long);\n";
    let project = with(
        declare,
        "for (;;) { char *p = (char *)malloc(1 << 26); for (int i = 0; i < 1 << 26; i += 4096) p[i] = 1; }",
    );
    let (built, _) = contained(&project.var("KFORGE_BUILD_MEMORY_LIMIT", "256MiB"));
    assert_ne!(built.code(), 0);
}

#[test]
fn the_first_hostile_kernel_ends_a_build_that_is_not_to_go_on() {
    let project = with("#include <cstdlib>\n", "abort();");
    let built = project.build(&["-j1"]).expect(100);
    assert_eq!(left_behind(&project), Vec::<String>::new());
    // The next build executes the skipped steps, and known results stay known.
    project.write("kernel.toml", MANIFEST);
    project.write("twice.cu", TWICE);
    let next = project.built(&[]);
    assert!(next.executed().is_disjoint(&built.executed().into_iter().filter(|s| !s.contains("twice")).collect()));
}

/// Whether any file below a folder contains a text.
fn holds(folder: &Path, word: &str) -> bool {
    let files = walkdir::WalkDir::new(folder).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    files
        .map(|entry| fs::read(entry.path()).unwrap())
        .any(|bytes| bytes.windows(word.len()).any(|w| w == word.as_bytes()))
}

/// Builds a sample whose kernel `twice` attacks its compiler, and checks that only this kernel could not be compiled. Returns the messages.
#[track_caller]
fn not_compiled(project: &Project) -> String {
    let built = project.build(&["--keep-going"]).expect(101);
    for other in ["sample/direct/BLOCK=4/cpu/small/judge", "sample/indirect/cpu/small/judge"] {
        assert_eq!(built.step(other)["verdict"], "pass", "{}", built.stderr());
    }
    assert_eq!(left_behind(project), Vec::<String>::new());
    let said = format!("{} {}", built.step("sample/twice/cpu/compile"), built.stderr());
    // The next build retries only these steps.
    let again = project.build(&["--keep-going"]).expect(101).executed();
    assert!(again.iter().all(|step| step.starts_with("sample/twice/")), "{again:?}");
    said
}

#[test]
#[ignore = "second tier: many attempts at escape"]
fn what_the_home_directory_holds_is_not_told_by_a_compiler() {
    let secret = "secret_of_the_user";
    for text in [
        "#define FILE \"PATH\"\n#include FILE\n",
        // A name that is assembled, so that no scan of the assembly finds it.
        "__asm__(\".section .rodata\\n.irp part, bin\\n.inc\\\\part \\\"PATH\\\"\\n.endr\\n.text\");\n",
    ] {
        let project = unbuilt();
        let file = project.place().join("user/secret");
        fs::write(&file, secret).unwrap();
        project.write("twice.cu", &format!("{}{TWICE}", text.replace("PATH", &file.display().to_string())));
        let said = not_compiled(&project);
        assert!(said.contains("user/secret") && !said.contains(secret), "{said}");
        assert!(!holds(&project.target(), secret) && !holds(project.home(), secret));
    }
}

#[test]
#[ignore = "second tier: many builds"]
fn programs_that_flags_have_a_compiler_run_do_no_harm() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut victim = Command::new("/bin/sleep").arg("1000").spawn().unwrap();
    let project = unbuilt();
    let user = project.place().join("user");
    fs::write(user.join("precious"), "mine").unwrap();
    let (port, pid, user) = (listener.local_addr().unwrap().port(), victim.id(), user.display());
    let deeds = format!(
        "cat {user}/precious && echo done; rm {user}/precious && echo done; echo x > {user}/spoilt && echo done; kill -KILL {pid} && echo done; \
         exec 3<>/dev/tcp/127.0.0.1/{port} && echo done; exit 3"
    );
    let script = format!("flags = [\"-wrapper\", \"/bin/bash,-c,{deeds}\"]\nsource = \"twice.cu\"");
    project.edit("kernel.toml", "source = \"twice.cu\"", &script);
    let said = not_compiled(&project);
    assert!(said.contains("Permission denied") && said.contains("Operation not permitted"), "{said}");
    assert!(!said.contains("mine"), "{said}");
    assert_eq!(left_in_the_home_directory(&project), ["precious"]);
    assert_eq!(listener.accept().map(drop).map_err(|e| e.kind()), Err(ErrorKind::WouldBlock));
    assert!(victim.try_wait().unwrap().is_none(), "the victim lives");
    victim.kill().unwrap();
    victim.wait().unwrap();
}

/// The names in the home directory of the user, without the machine key, which is kforge's own.
fn left_in_the_home_directory(project: &Project) -> Vec<String> {
    let home = project.place().join("user");
    let key = home.join(".local/state/kforge/machine-key");
    let files =
        walkdir::WalkDir::new(&home).into_iter().map(Result::unwrap).filter(|entry| entry.file_type().is_file());
    let files = files.filter(|entry| entry.path() != key);
    files.map(|entry| entry.path().strip_prefix(&home).unwrap().display().to_string()).collect()
}

#[test]
#[ignore = "second tier: many builds"]
fn the_name_of_a_source_stays_on_its_line() {
    let project = unbuilt();
    project.edit("kernel.toml", "source = \"twice.cu\"", "source = \"twice\\nerror: forged.cu\"");
    project.write("twice\nerror: forged.cu", TWICE);
    let built = project.build(&["--keep-going"]).expect(101).says("cannot compile `twice\\nerror: forged.cu`");
    assert!(!built.stderr().contains("\nerror: forged"), "{}", built.stderr());
}
