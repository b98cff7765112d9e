//! Sources and flags that attack a compiler, compiled by g++ in workers as in a build. Flags of g++ run programs (`-wrapper`), so most deeds are a shell
//! command in place of the compiler. Each prints to its standard error whether it succeeded.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use kforge::base::Digest;
use kforge::emulator::headers;
use kforge::harness::message::{Places, Request, Response};
use kforge::harness::pool::Pool;
use kforge::harness::task::{Task, done};
use kforge::process::{Command, End, Room, Rule, family, run};
use kforge::record::params::{CompileParams, Compiler};
use kforge::record::{Form, Input, Spec, StepKind};

use crate::Test;
use crate::steps::toolchain;

pub(crate) const TESTS: &[Test] = &[
    ("a_compiler_that_does_no_harm_compiles", harmless),
    ("a_compiler_lets_others_go_first", polite),
    ("a_source_reads_no_file_of_the_users_through_a_compiler", reads),
    ("flags_write_nothing_outside_the_scratch_folder", writes),
    ("a_program_in_a_compilers_place_reaches_no_file_of_the_users", files),
    ("a_program_in_a_compilers_place_opens_no_socket", sockets),
    ("a_program_in_a_compilers_place_reaches_no_other_process", processes),
    ("a_program_in_a_compilers_place_answers_nothing_for_its_worker", answers),
    ("what_a_program_in_a_compilers_place_leaves_behind_leads_its_worker_nowhere", links),
    ("a_compiler_that_starts_processes_without_end_is_ended", bomb),
    ("a_compiler_that_takes_memory_without_end_is_ended", memory),
    ("a_compiler_that_fills_the_disk_is_ended", disk),
    ("a_compiler_that_never_ends_is_ended_with_all_it_started", time),
    ("a_worker_that_compiles_is_confined_as_a_whole", worker),
    ("processes_and_files_are_counted_together", room),
];

static GOING_ON: AtomicBool = AtomicBool::new(false);

/// The contents of a user's file.
const SECRET: &str = "secret_of_the_user";

/// A compilation, and a home with files.
struct Attack {
    dir: tempfile::TempDir,
    time_s: u64,
    memory: u64,
}

impl Attack {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let attack = Attack { dir, time_s: 60, memory: 4 << 30 };
        for (name, bytes) in headers() {
            attack.file(&format!("in/tree-emulator/{name}"), bytes);
        }
        attack.file("in/toolchain", toolchain());
        attack.file("home/secret", SECRET.as_bytes());
        attack
    }

    fn file(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Compiles a kernel after some text, in a worker.
    fn compile(&self, before: &str, flags: &[&str]) -> Response {
        self.file("in/tree-source/k.cu", format!("{before}\n__global__ void k(float* y) {{ *y = 1; }}\n").as_bytes());
        drop(fs::remove_dir_all(self.path("out")));
        fs::create_dir(self.path("out")).unwrap();
        let params = CompileParams {
            compiler: Compiler::EmulatorPlain,
            arch: "cpu".into(),
            main: "k.cu".into(),
            entries: vec!["k".into()],
            defines: BTreeMap::new(),
            std: "c++17".into(),
            include: vec![],
            flags: flags.iter().map(|flag| flag.to_string()).collect(),
            candidate: false,
            lined: false,
            ptx: false,
            host: None,
            triton: vec![],
        };
        self.ask(self.dir.path(), StepKind::Compile, serde_json::to_value(params).unwrap())
    }

    /// Has a worker execute a step, with the folders of all steps in `steps`.
    fn ask(&self, steps: &Path, kind: StepKind, params: serde_json::Value) -> Response {
        let input = |name: &str| (name.to_string(), Input { digest: Some(Digest::of(b"")), form: Form::Blob });
        let inputs = ["tree:source", "tree:emulator", "toolchain"].map(input).into();
        let request = Request {
            spec: Spec { kind, version: 1, implementation: None, params, inputs },
            input: self.path("in"),
            output: self.path("out"),
            places: Places { tools: [("c++".to_string(), "/usr/bin/g++".into())].into(), read: vec![], scratch: None },
            device: None,
            time_limit_s: self.time_s,
            run_limit_s: 60,
            memory_limit: 1 << 30,
            compiler_memory: self.memory,
            allow_unconfined: false,
            hang: None,
            planned: std::time::SystemTime::UNIX_EPOCH,
            warm_up: false,
        };
        Pool::new(Command::own().arg("worker")).within(steps).run(&request, &GOING_ON).unwrap()
    }

    /// The error of a compilation that must fail.
    #[track_caller]
    fn refused(&self, before: &str, flags: &[&str]) -> String {
        match self.compile(before, flags) {
            Response::Failed { message, notes } => {
                let notes: Vec<_> = notes.into_iter().map(|note| note.message).collect();
                format!("{message}\n{}", notes.join("\n"))
            }
            other => panic!("{before} {flags:?}: {other:?}"),
        }
    }

    /// Runs a deed in a shell in place of the compiler, and checks that it fails. Returns its output.
    #[track_caller]
    fn cannot(&self, deed: &str) -> String {
        assert!(!deed.contains(','), "g++ splits its flag there");
        let script = format!("( {deed} ) >&2 && echo was done >&2 || echo was refused >&2; exit 3");
        let said = self.refused("", &["-wrapper", &format!("/bin/bash,-c,{script}")]);
        assert!(said.contains("was refused") && !said.contains("was done"), "{deed}: {said}");
        assert!(!said.contains(SECRET), "{deed}: {said}");
        said
    }

    /// The contents of the home: names and modes.
    fn home(&self) -> Vec<(String, u32)> {
        let of = |entry: fs::DirEntry| {
            (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().permissions().mode())
        };
        let mut found: Vec<_> = fs::read_dir(self.path("home")).unwrap().map(|entry| of(entry.unwrap())).collect();
        found.sort();
        found
    }
}

/// The text with `PATH` replaced by this path.
fn with(text: &str, path: &Path) -> String {
    text.replace("PATH", &path.display().to_string())
}

fn harmless() {
    let attack = Attack::new();
    for flags in [&[][..], &["-wrapper", "/bin/bash,-c,exec \"$0\" \"$@\""]] {
        let response = attack.compile("", flags);
        assert!(matches!(response, Response::Done { .. }), "{response:?}");
        let mut made: Vec<_> =
            fs::read_dir(attack.path("out")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        made.sort();
        assert_eq!(made, ["binary", "facts", "lines", "log"]);
    }
}

fn polite() {
    let nice = rustix::process::getpriority_process(None).unwrap();
    let said = Attack::new().refused("", &["-wrapper", "/bin/bash,-c,echo nice $(nice) >&2; exit 3"]);
    assert!(said.contains(&format!("nice {}", (nice + 10).min(19))), "{said}");
}

fn reads() {
    let attack = Attack::new();
    let secret = attack.path("home/secret");
    let include = attack.refused(&with("#define FILE \"PATH\"\n#include FILE", &secret), &[]);
    assert!(include.contains("Permission denied") && include.contains("[dependencies]"), "{include}");
    // Neither by name, nor by an assembled name that no scan of the assembly finds.
    let hidden = with("__asm__(\".irp part, bin\\n.inc\\\\part \\\"PATH\\\"\\n.endr\");", &secret);
    let all = [
        include,
        attack.refused(&hidden, &[]),
        attack.refused("", &["-include", &with("PATH", &secret)]),
        attack.refused("", &["-imacros", &with("PATH", &secret)]),
        attack.refused("", &[&with("@PATH", &secret)]),
        attack.refused("", &[&with("-specs=PATH", &secret)]),
        attack.refused("", &[&with("-fplugin=PATH", &secret)]),
        attack.refused(&with("#if !__has_include(\"PATH\")\n#error it is not there\n#endif", &secret), &[]),
    ];
    for said in all {
        assert!(!said.contains(SECRET), "{said}");
    }
}

fn writes() {
    let attack = Attack::new();
    let before = attack.home();
    for flag in ["-fdump-tree-original=PATH", "-fdump-rtl-expand=PATH", "-fcallgraph-info=PATH", "-fopt-info-all=PATH"]
    {
        // Some of these flags are errors, others are ignored. Nothing is written in either case.
        drop(attack.compile("", &[&with(flag, &attack.path("home/spoilt"))]));
        drop(attack.compile("", &[&with(flag, &attack.path("home/secret"))]));
    }
    let home = with("PATH/", &attack.path("home"));
    for flags in [&["-save-temps", "-dumpdir", &home][..], &["-fprofile-arcs", "-ftest-coverage", "-dumpdir", &home]] {
        drop(attack.compile("", flags));
    }
    assert_eq!(attack.home(), before);
    assert_eq!(fs::read_to_string(attack.path("home/secret")).unwrap(), SECRET);
}

fn files() {
    let attack = Attack::new();
    let before = attack.home();
    let (secret, home) = (attack.path("home/secret"), attack.path("home"));
    for deed in
        ["cat PATH", "cp PATH here", "ln PATH here", "echo x > PATH", "echo x >> PATH", "rm PATH", "mv PATH here"]
    {
        attack.cannot(&with(deed, &secret));
    }
    for deed in ["ls PATH", ": > PATH/spoilt", "mkdir PATH/spoilt", "ln -s / PATH/spoilt", "cp -r PATH here"] {
        attack.cannot(&with(deed, &home));
    }
    // These commands report success, but nothing happens.
    let script = with("/bin/bash,-c,chmod 777 PATH; touch -d 1999-01-01 PATH; exit 3", &secret);
    attack.refused("", &["-wrapper", &script]);
    assert_eq!(attack.home(), before);
    assert_eq!(fs::read_to_string(&secret).unwrap(), SECRET);
    let modified = fs::metadata(&secret).unwrap().modified().unwrap();
    assert!(modified.elapsed().unwrap_or_default() < Duration::from_secs(24 * 3600));
    // The step's own inputs can be read but not written, and other steps' folders cannot even be read.
    attack.cannot(&with("echo x > PATH", &attack.path("in/tree-source/k.cu")));
    attack.cannot(&with("echo x > PATH", &attack.path("out/binary")));
    attack.cannot("ls / || ls ~ || cat /etc/passwd");
    attack.cannot(
        "echo x > /dev/shm/kforge-was-here || echo x > /tmp/kforge-was-here || echo x > /var/tmp/kforge-was-here",
    );
}

fn sockets() {
    let attack = Attack::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    attack.cannot(&format!("exec 3<>/dev/tcp/127.0.0.1/{port}"));
    attack.cannot(&format!("echo x > /dev/udp/127.0.0.1/{port}"));
    assert_eq!(listener.accept().map(drop).map_err(|e| e.kind()), Err(ErrorKind::WouldBlock));
}

fn processes() {
    let attack = Attack::new();
    let mut victim = std::process::Command::new("/bin/sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
    let pid = victim.id();
    attack.cannot(&format!("kill -KILL {pid}"));
    attack.cannot(&format!("kill -STOP {pid}"));
    attack.cannot(&format!("renice -n 19 -p {pid}"));
    attack.cannot(&format!("prlimit --pid {pid} --cpu=0"));
    attack.cannot(&format!("cat /proc/{pid}/environ || cat /proc/{pid}/cmdline || ls /proc/{pid}/fd"));
    attack.cannot("setsid --wait true");
    assert!(family::is_alive(pid));
    victim.kill().unwrap();
    victim.wait().unwrap();
}

/// A worker's answer, in a form that `printf` accepts and without commas.
const FORGED: &str = r#"printf '{"unavailable":{"why":"forged"}}\n'"#;

fn answers() {
    let attack = Attack::new();
    // The open descriptors, and the pipes of the grandparents: of g++ and of the worker.
    attack.cannot(&format!("for n in 3 4 5 6 7 8 9 10 11 12; do {FORGED} >&$n && exit 0; done; exit 1"));
    let worker = "w=$(cut -d' ' -f4 /proc/$PPID/stat) || exit 1";
    attack.cannot(&format!("{worker}; for n in {{1..30}}; do {FORGED} > /proc/$w/fd/$n && exit 0; done; exit 1"));
    attack.cannot(&format!("{worker}; for f in /proc/$w/fd/*; do [ -p $f ] && {FORGED} > $f && exit 0; done; exit 1"));
}

fn links() {
    let attack = Attack::new();
    let before = attack.home();
    // The files that the worker reads and writes after the compiler has ended.
    let script = with(
        "/bin/bash,-c,for f in entries.s reads stub.s lines binary; do ln -sf PATH $f; done",
        &attack.path("home/secret"),
    );
    let said = attack.refused("", &["-wrapper", &script]);
    assert!(!said.contains(SECRET), "{said}");
    assert!(said.contains("Permission denied"), "{said}");
    // Files that are correct before the assembler runs, and links afterwards.
    let stub = with("/bin/bash,-c,ln -sf PATH stub.s; exec \"$0\" \"$@\"", &attack.path("home/secret"));
    attack.refused("", &["-wrapper", &stub]);
    assert_eq!(attack.home(), before);
    assert_eq!(fs::read_to_string(attack.path("home/secret")).unwrap(), SECRET);
}

fn bomb() {
    let attack = Attack::new();
    // Each process starts two, ten levels deep, and waits.
    let script =
        "/bin/bash,-c,f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & wait; else exec sleep 1000; fi; }; f 10";
    let said = attack.refused("", &["-wrapper", script]);
    assert!(said.contains("it started more processes than allowed"), "{said}");
    let orphans = "/bin/bash,-c,for n in $(seq 600); do (sleep 1000 & ); done; sleep 1000";
    let said = attack.refused("", &["-wrapper", orphans]);
    assert!(said.contains("it started more processes than allowed"), "{said}");
    none_left(&attack);
}

/// Checks that no process runs in the folder of an attack any more.
#[track_caller]
fn none_left(attack: &Attack) {
    let start = Instant::now();
    let place = attack.dir.path();
    loop {
        let there = fs::read_dir("/proc").unwrap().flatten().filter_map(|e| fs::read_link(e.path().join("cwd")).ok());
        let left: Vec<_> = there.filter(|cwd| cwd.starts_with(place)).collect();
        if left.is_empty() {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{left:?}");
        std::thread::yield_now();
    }
}

fn memory() {
    let attack = Attack { memory: 300 << 20, time_s: 30, ..Attack::new() };
    // A hundred billion tokens.
    let mut source = String::from("#define A0 0,0,0,0,0,0,0,0,0,0\n");
    for n in 1..10 {
        source += &format!("#define A{n} {}\n", vec![format!("A{}", n - 1); 10].join(","));
    }
    let said = attack.refused(&format!("{source}__device__ int all[] = {{ A9 }};"), &[]);
    assert!(said.contains("memory"), "{said}");
    // Each process stays within the limit, but all together do not.
    let many = "/bin/bash,-c,for n in 1 2 3 4; do head -c 150000000 /dev/zero | tail -n 1 & done; wait";
    let said = attack.refused("", &["-wrapper", many]);
    assert!(said.contains("it used more memory than allowed (setting `build.compiler-memory-limit`"), "{said}");
    none_left(&attack);
}

fn disk() {
    // Creating that many files takes long on a busy disk.
    let attack = Attack { time_s: 600, ..Attack::new() };
    let said = attack.cannot("truncate -s 1500000000 big");
    assert!(said.contains("File too large") || said.contains("File size limit"), "{said}");
    // Without commas, at which g++ would split the argument.
    let many = "/bin/bash,-c,mkdir d; cd d; seq 120000 | xargs touch; sleep 1000";
    let said = attack.refused("", &["-wrapper", many]);
    assert!(said.contains("it created more files than allowed"), "{said}");
}

fn time() {
    let attack = Attack { time_s: 2, ..Attack::new() };
    let said =
        attack.refused("", &["-wrapper", "/bin/bash,-c,sleep 1000 & (sleep 1000 &) ; setsid sleep 1000; sleep 1000"]);
    assert!(said.contains("did not end within the time limit"), "{said}");
    none_left(&attack);
}

/// What a worker can access itself, independent of its task: NVRTC could do as much in another thread if a source made it do so.
pub(crate) fn reach(task: &Task) -> Response {
    let path = |name: &str| PathBuf::from(task.spec.params[name].as_str().unwrap());
    let elsewhere = std::thread::spawn({
        let (read, write) = (path("read"), path("write"));
        move || (fs::read(read).is_ok(), fs::write(write, "x").is_ok())
    });
    let own = fs::write(task.output.join("x"), "x").is_ok();
    done(format!("{own} {:?}", elsewhere.join().unwrap()), vec![])
}

fn worker() {
    let attack = Attack::new();
    let before = attack.home();
    fs::create_dir(attack.path("out")).unwrap();
    let params = serde_json::json!({
        "arch": "cpu", "read": attack.path("home/secret"), "write": attack.path("home/spoilt"),
    });
    match attack.ask(&attack.path("out"), StepKind::Inspect, params) {
        Response::Done { summary, .. } => assert_eq!(summary, "true (false, false)"),
        other => panic!("{other:?}"),
    }
    assert_eq!(attack.home(), before);
}

fn room() {
    let dir = tempfile::tempdir().unwrap();
    let room = Room { processes: 20, memory: 1 << 30, folder: dir.path().into(), bytes: 1 << 20, files: 50 };
    let end = |script: &str| {
        let command = Command::new("/bin/bash").args(["-c", script]).env("PATH", "/usr/bin:/bin");
        let finished =
            run(&command.dir(dir.path()).room(room.clone()), Some(Duration::from_secs(60)), &GOING_ON).unwrap();
        fs::read_dir(dir.path()).unwrap().for_each(|entry| fs::remove_file(entry.unwrap().path()).unwrap());
        finished.end
    };
    assert_eq!(end("sleep 0.2"), End::Exited(0));
    assert_eq!(end("head -c 2000000 /dev/zero > big; sleep 1000"), End::Misbehaved(Rule::FileBytes));
    assert_eq!(end("touch {1..60}; sleep 1000"), End::Misbehaved(Rule::Files));
    let many = "for n in {1..30}; do sleep 1000 & done; wait";
    assert_eq!(end(many), End::Misbehaved(Rule::Processes));
}
