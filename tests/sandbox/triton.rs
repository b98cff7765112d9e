//! Sources in Triton that attack their compiler, in workers as in a build. A stand-in for Triton is imported in its place: the deeds are done when the source is
//! read, before Triton compiles anything. Each source ends with an exception that says what it reached.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use kforge::base::Digest;
use kforge::harness::message::{Places, Request, Response};
use kforge::harness::pool::Pool;
use kforge::model::triton::{TritonCompile, TritonOptions};
use kforge::process::{Command, family};
use kforge::record::params::{CompileParams, Compiler};
use kforge::record::{Form, Input, Spec, StepKind};

use crate::Test;

pub(crate) const TESTS: &[Test] = &[
    ("a_source_in_triton_reaches_nothing_of_the_users", reaches),
    ("a_source_in_triton_changes_no_other_compilation", changes),
    ("a_process_that_imported_triton_and_was_killed_is_started_again", killed),
    ("a_source_in_triton_gives_no_answer_by_what_it_prints", prints),
    ("a_source_in_triton_that_crashes_ends_only_its_own_compilation", crashes),
    ("a_source_in_triton_that_uses_too_much_is_ended", greedy),
    ("a_source_in_triton_that_never_ends_is_ended_with_all_it_started", endless),
    ("what_a_source_in_triton_leaves_behind_leads_its_worker_nowhere", links),
];

static GOING_ON: AtomicBool = AtomicBool::new(false);

const SECRET: &str = "secret_of_the_user";

/// What the driver needs of Triton before it compiles.
const STAND_IN: [(&str, &str); 9] = [
    (
        "triton/__init__.py",
        "import os\n__version__ = '3.9.0'\nfrom . import compiler, knobs, language\nimported_by = os.getpid()\n",
    ),
    ("triton/knobs.py", "class nvidia:\n    pass\n"),
    (
        "triton/compiler/__init__.py",
        "class ASTSource:\n    pass\ndef make_backend(target):\n    return ASTSource()\nfrom . import compiler\n",
    ),
    ("triton/compiler/compiler.py", "def triton_key():\n    return 'x'\n"),
    ("triton/backends/__init__.py", ""),
    ("triton/backends/compiler.py", "def GPUTarget(*words):\n    return words\n"),
    ("triton/runtime/__init__.py", ""),
    ("triton/runtime/jit.py", "class JITFunction:\n    pass\n"),
    ("triton/language/__init__.py", ""),
];

/// A worker, a package, the stand-in, and a home with files.
struct Attack {
    dir: tempfile::TempDir,
    pool: Pool,
    python: PathBuf,
    time_s: u64,
    memory: u64,
}

impl Attack {
    fn new() -> Option<Self> {
        let known = ["/usr/local/bin/python3", "/usr/bin/python3"].map(PathBuf::from);
        let Some(python) = known.into_iter().find(|path| path.exists()) else {
            kforge::base::testing::skipped("there is no python3");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let pool = Pool::new(Command::own().arg("worker").env("OF_THE_USER", SECRET)).within(dir.path());
        let attack = Attack { dir, pool, python, time_s: 60, memory: 4 << 30 };
        for (name, text) in STAND_IN {
            attack.file(&format!("wheel/{name}"), text);
        }
        attack.file("wheel/triton/language/extra/__init__.py", "");
        attack.file("wheel/triton/language/extra/libdevice.py", "");
        attack.file("home/secret", SECRET);
        Some(attack)
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The error of the compilation of a source, which must fail.
    #[track_caller]
    fn refused(&self, source: &str) -> String {
        self.file("in/tree-source/k.py", source);
        drop(fs::remove_dir_all(self.path("out")));
        fs::create_dir(self.path("out")).unwrap();
        let params = CompileParams {
            compiler: Compiler::Triton,
            arch: "sm_90a".into(),
            main: "k.py".into(),
            entries: vec!["k".into()],
            defines: BTreeMap::new(),
            std: String::new(),
            include: vec![],
            flags: vec![],
            candidate: false,
            lined: false,
            ptx: false,
            host: None,
            triton: vec![TritonCompile { function: "k".into(), params: vec![], options: TritonOptions::default() }],
        };
        let input = ("tree:source".to_string(), Input { digest: Some(Digest::of(b"")), form: Form::Blob });
        let tools = [("python".to_string(), self.python.clone()), ("triton".to_string(), self.path("wheel"))];
        let request = Request {
            spec: Spec {
                kind: StepKind::Compile,
                version: 1,
                implementation: None,
                params: serde_json::to_value(params).unwrap(),
                inputs: [input].into(),
            },
            input: self.path("in"),
            output: self.path("out"),
            places: Places { tools: tools.into(), read: vec![], scratch: None },
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
        match self.pool.run(&request, &GOING_ON).unwrap() {
            Response::Failed { message, notes } => {
                let notes: Vec<_> = notes.into_iter().map(|note| note.message).collect();
                format!("{message}\n{}", notes.join("\n"))
            }
            other => panic!("{source}: {other:?}"),
        }
    }

    /// What a source says: the text of the exception with which these lines end, of which `said` is the last one.
    #[track_caller]
    fn says(&self, lines: &str, said: &str) -> String {
        let told = self.refused(&format!("import os, sys, subprocess, triton\n{lines}\nraise RuntimeError({said})\n"));
        let (_, text) = told.split_once("RuntimeError: ").unwrap_or_else(|| panic!("{told}"));
        text.lines().next().unwrap_or_default().to_string()
    }

    /// The process from which the copies are made.
    fn server(&self) -> u32 {
        self.says("", "os.getppid()").parse().unwrap()
    }
}

fn reaches() {
    let Some(attack) = Attack::new() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut victim = std::process::Command::new("/bin/sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
    let deeds = r#"
import fcntl, resource, socket
reached = []
def tries(what, deed):
    try:
        deed()
        reached.append(what)
    except (OSError, MemoryError):
        pass
def opens(path, mode):
    return lambda: open(path, mode).read() if mode == "r" else open(path, mode).close()
for mode in "r", "w", "a", "r+":
    tries("secret, " + mode, opens(HOME + "/secret", mode))
tries("a link", lambda: os.link(HOME + "/secret", "here"))
tries("a removal", lambda: os.unlink(HOME + "/secret"))
tries("a move", lambda: os.rename(HOME + "/secret", "here"))
tries("a list", lambda: os.listdir(HOME))
tries("a new file", opens(HOME + "/spoilt", "w"))
tries("a new folder", lambda: os.mkdir(HOME + "/spoilt"))
tries("a symbolic link", lambda: os.symlink("/", HOME + "/spoilt"))
for path in __file__, triton.__file__, sys.executable, HOME + "/../out/binary", "/tmp/kforge-was-here", "/dev/shm/kforge-was-here":
    tries("writing " + path, opens(path, "a"))
for path in "/etc/passwd", HOME + "/../in/other":
    tries("reading " + path, opens(path, "r"))
os.chmod(HOME + "/secret", 0o777)
tries("TCP", lambda: socket.create_connection(("127.0.0.1", PORT), 1))
for kind in (socket.AF_INET, socket.SOCK_DGRAM), (socket.AF_UNIX, socket.SOCK_STREAM), (socket.AF_NETLINK, socket.SOCK_RAW):
    tries("a socket %s %s" % kind, lambda: socket.socket(*kind))
parent = os.getppid()
for pid in VICTIM, parent:
    tries("a signal to %d" % pid, lambda: os.kill(pid, 9))
    tries("limits of %d" % pid, lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (0, 0)))
    for name in "environ", "mem", "maps", "fd/0", "fd/1", "cwd/x":
        tries("%s of %d" % (name, pid), opens("/proc/%d/%s" % (pid, name), "r"))
    tries("answers of %d" % pid, opens("/proc/%d/fd/1" % pid, "w"))
tries("a group", lambda: os.setpgid(0, 0))
tries("a session", os.setsid)
tries("a higher priority", lambda: os.setpriority(os.PRIO_PROCESS, VICTIM, 19))
reached += ["descriptor " + name for name in os.listdir("/proc/self/fd") if int(name) > 3]
reached += [name for name in ("OF_THE_USER", "KFORGE_HOME", "USER") if name in os.environ]
reached += [name for name in ("HOME", "TRITON_CACHE_DIR", "TRITON_HOME", "TMPDIR") if not os.environ[name].startswith(os.getcwd() + "/")]
tries("its own folder", opens("own", "w"))
tries("a program", lambda: subprocess.run(["/bin/true"], check=True))
"#;
    let values = format!(
        "HOME, PORT, VICTIM = {:?}, {}, {}\n",
        attack.path("home"),
        listener.local_addr().unwrap().port(),
        victim.id()
    );
    attack.file("in/other", SECRET);
    // It may read its inputs, all of which are sources.
    let said = attack.says(&(values + deeds), "'; '.join(reached)");
    let input = format!("reading {}/../in/other", attack.path("home").display());
    assert_eq!(said, format!("{input}; its own folder; a program"));
    assert!(family::is_alive(victim.id()));
    victim.kill().unwrap();
    victim.wait().unwrap();
    let home: Vec<_> = fs::read_dir(attack.path("home")).unwrap().map(|entry| entry.unwrap()).collect();
    assert!(home.len() == 1 && home[0].metadata().unwrap().permissions().mode() & 0o777 != 0o777);
    assert_eq!(fs::read_to_string(attack.path("home/secret")).unwrap(), SECRET);
    // The process that is copied lives on, and has the priority of compilers.
    let nice = rustix::process::getpriority_process(None).unwrap();
    assert_eq!(attack.says("", "os.getpriority(os.PRIO_PROCESS, 0)"), (nice + 10).min(19).to_string());
}

fn changes() {
    let Some(attack) = Attack::new() else { return };
    let server = attack.server();
    attack.says(
        "triton.planted = triton.compiler.compiler.planted = os.planted = 1\nos.environ['PLANTED'] = '1'\n\
         sys.path.append('/planted')\nsys.modules['planted'] = sys\nopen('planted', 'w')",
        "'done'",
    );
    let finds = "[hasattr(triton, 'planted'), hasattr(triton.compiler.compiler, 'planted'), hasattr(os, 'planted'), \
         'PLANTED' in os.environ, '/planted' in sys.path, 'planted' in sys.modules, os.path.exists('planted'), \
         os.getppid(), triton.imported_by]";
    let found = format!("[False, False, False, False, False, False, False, {server}, {server}]");
    assert_eq!(attack.says("", finds), found);
}

fn killed() {
    let Some(attack) = Attack::new() else { return };
    let server = attack.server();
    assert_eq!(attack.server(), server, "the process is kept");
    let [worker] = attack.pool.idle()[..] else { panic!("one worker") };
    assert!(family::descendants(worker).contains(&server));
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(server.cast_signed()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    let start = Instant::now();
    while family::is_alive(server) {
        assert!(start.elapsed().as_secs() < 20);
        std::thread::yield_now();
    }
    assert_ne!(attack.server(), server);
    assert_eq!(attack.pool.idle(), [worker]);
}

fn prints() {
    let Some(attack) = Attack::new() else { return };
    let forges = "for stream in sys.stdout, sys.stderr:\n    for at in range(40000):\n        print('{\"exited\": 0}', file=stream)\n\
         os.write(1, b'{\"signalled\": 9}\\n' * 100)";
    assert_eq!(attack.says(forges, "'printed'"), "printed");
    assert_eq!(attack.says("", "'next'"), "next");
}

fn crashes() {
    let Some(attack) = Attack::new() else { return };
    let server = attack.server();
    let crashed = attack.refused("import os\nos.kill(os.getpid(), 11)\n");
    assert!(crashed.starts_with("Triton killed by signal 11 (SIGSEGV)"), "{crashed}");
    // It left files that are no answer: no cubin, or one that is not what the launch says.
    for leaves in ["", "open('out/cubin', 'w').write('x')\nopen('out/launch.json', 'w').write('{')\n"] {
        let left = attack.refused(&format!("import os\n{leaves}os._exit(0)\n"));
        assert!(left.starts_with("Triton could not compile `k.py`: it gave no answer"), "{left}");
    }
    assert_eq!(attack.server(), server);
}

fn greedy() {
    let Some(attack) = Attack::new() else { return };
    let attack = Attack { memory: 600 << 20, ..attack };
    assert_eq!(attack.says("try:\n    x = bytearray(1 << 30)\nexcept MemoryError:\n    x = 'refused'", "x"), "refused");
    let large = "try:\n    os.truncate(os.open('big', os.O_CREAT | os.O_WRONLY), 1500000000)\nexcept OSError as error:\n    x = error.errno";
    assert_eq!(attack.says(large, "x"), libc::EFBIG.to_string());
    let holds = "import time\nfor _ in range(6):\n    if os.fork() == 0:\n        x = b'x' * 150000000\n        time.sleep(1000)\ntime.sleep(1000)\n";
    let said = attack.refused(&format!("import os\n{holds}"));
    assert!(said.contains("it used more memory than allowed (setting `build.compiler-memory-limit`"), "{said}");
    let orphans = "import time\nfor _ in range(400):\n    if os.fork() == 0:\n        if os.fork() == 0:\n            time.sleep(1000)\n        os._exit(0)\ntime.sleep(1000)\n";
    // Processes that share memory count with all of it.
    let attack = Attack { memory: 16 << 30, ..attack };
    let said = attack.refused(&format!("import os\n{orphans}"));
    assert!(said.contains("it started more processes than allowed"), "{said}");
    none_left(attack.dir.path());
    assert_eq!(attack.says("", "'next'"), "next");
}

fn endless() {
    let Some(attack) = Attack::new() else { return };
    let attack = Attack { time_s: 2, ..attack };
    let starts = "import subprocess, time\nfor words in ['sleep', '1000'], ['setsid', 'sleep', '1000']:\n    subprocess.Popen(words)\n";
    let said = attack.refused(&format!("{starts}time.sleep(1000)\n"));
    assert!(said.contains("Triton did not end within the time limit"), "{said}");
    none_left(attack.dir.path());
    // What a source started ends with its compilation, too.
    let attack = Attack { time_s: 60, ..attack };
    assert_eq!(attack.says(starts, "'next'"), "next");
    none_left(attack.dir.path());
}

fn links() {
    let Some(attack) = Attack::new() else { return };
    let secret = attack.path("home/secret");
    for name in ["cubin", "error.json"] {
        let lines =
            format!("os.symlink({secret:?}, 'out/{name}')\nopen('out/launch.json', 'w').write('{{}}')\nos._exit(0)");
        let said = attack.refused(&format!("import os\n{lines}\n"));
        assert!(said.starts_with("Triton could not compile `k.py`") && !said.contains(SECRET), "{said}");
    }
    // In place of the folder of answers.
    let lines = format!("os.rmdir('out')\nos.symlink({:?}, 'out')", attack.path("home"));
    let said = attack.refused(&format!("import os\n{lines}\n"));
    assert!(said.starts_with("Triton could not compile `k.py`") && !said.contains(SECRET), "{said}");
    assert_eq!(fs::read_dir(attack.path("home")).unwrap().count(), 1);
}

/// Checks that no process runs in the folder of an attack any more, except the one that is copied, which works elsewhere.
#[track_caller]
fn none_left(place: &Path) {
    let start = Instant::now();
    loop {
        let there = fs::read_dir("/proc").unwrap().flatten().filter_map(|e| fs::read_link(e.path().join("cwd")).ok());
        let left: Vec<_> = there.filter(|cwd| cwd.starts_with(place)).collect();
        if left.is_empty() {
            return;
        }
        assert!(start.elapsed().as_secs() < 20, "{left:?}");
        std::thread::yield_now();
    }
}
