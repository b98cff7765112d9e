//! Programs in Python that run in copies of one process.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kforge::harness::confine::Confinement;
use kforge::harness::python_server::{PythonServer, kept_processes};
use kforge::process::{Command, End, Finished, Limits, Room, Rule, family, run};

use super::{GOING_ON, dies, finish, words};

const MINUTE: Duration = Duration::from_secs(60);

/// Tests of this file take turns, because they share the process that is kept.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

struct Lab {
    python: PathBuf,
    read: Vec<PathBuf>,
    folder: tempfile::TempDir,
    _turn: std::sync::MutexGuard<'static, ()>,
}

impl Lab {
    fn new() -> Option<Lab> {
        let known = ["/usr/local/bin/python3", "/usr/bin/python3"].map(PathBuf::from);
        let Some(python) = known.into_iter().find(|path| path.exists()) else {
            kforge::base::testing::skipped("there is no python3");
            return None;
        };
        let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let ask = "import sys\nprint(*{sys.base_prefix, sys.prefix, sys.exec_prefix}, sep='\\n')";
        let said = run(&Command::new(&python).args(["-c", ask]), Some(MINUTE), &GOING_ON).unwrap();
        let read = said.stdout.text().lines().map(PathBuf::from).collect();
        Some(Lab { python, read, folder: tempfile::tempdir().unwrap(), _turn: turn })
    }

    fn server(&self) -> PythonServer {
        PythonServer::new(&self.python, &["-S", "-s", "-B"], &[("PYTHONHASHSEED", "0")])
    }

    /// The confinement of a call in that folder.
    fn keep(&self, folder: &Path, limits: Limits) -> Confinement {
        let (scratch, read) = (Some(folder.to_path_buf()), self.read.clone());
        Confinement { scratch, read, programs: true, limits, ..Confinement::default() }
    }

    /// Runs a program in a folder of that name.
    fn run_in(&self, server: &PythonServer, name: &str, text: &str, limit: Duration) -> Finished {
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("driver.py"), text).unwrap();
        let limits = Limits { open_files: Some(99), ..Limits::default() };
        let keep = self.keep(&folder, limits);
        server.run((&folder, "driver.py", &["call.json"]), &keep, limit).unwrap().expect("this Python can serve")
    }

    fn run(&self, server: &PythonServer, text: &str) -> Finished {
        self.run_in(server, "call", text, MINUTE)
    }
}

#[test]
fn copies_share_the_imports_and_nothing_else() {
    let Some(lab) = Lab::new() else { return };
    let imports =
        "import colorsys, random\ncolorsys.began = call['began']\nsys.path.append('/nowhere')\nsys.meta_path.clear()";
    let server = lab.server().with_imports(imports, serde_json::json!({ "began": 7 }), vec![]);
    let text = "import sys, os, random, colorsys\nprint(sys.argv, __name__, os.getcwd()[-4:], colorsys.began, '/nowhere' in sys.path, len(sys.meta_path) > 0)\n\
        colorsys.began += 1\nprint(random.random(), file=open('drawn', 'w'))";
    let drawn = lab.folder.path().join("call/drawn");
    let first = lab.run(&server, text);
    let said = "['driver.py', 'call.json'] __main__ call 7 False True\n";
    assert_eq!((first.end, first.stderr.text().as_str()), (End::Exited(0), said));
    let (process, one) = (kept_processes().pop().unwrap(), fs::read_to_string(&drawn).unwrap());
    let second = lab.run(&server, text);
    assert_eq!((second.end, second.stderr.text().as_str()), (End::Exited(0), said));
    assert_eq!(kept_processes().pop(), Some(process), "the second call started another process");
    assert_ne!(one, fs::read_to_string(&drawn).unwrap(), "copies draw the same random numbers");
    // Other servers have processes of their own. Two are kept, and the one that was used least recently ends.
    let others = ["import bisect", "import bisect, calendar"];
    for (at, imports) in others.into_iter().enumerate() {
        let other = lab.server().with_imports(imports, serde_json::Value::Null, vec![]);
        assert_eq!(lab.run(&other, "").end, End::Exited(0));
        assert_eq!(kept_processes().contains(&process), at == 0, "{:?}", kept_processes());
    }
    assert!(dies(process));
}

#[test]
fn imports_find_the_filters_of_modules() {
    let Some(lab) = Lab::new() else { return };
    let imports = "OnlyKnown(call, [], []), Known(call, [], [])\nimport colorsys\ncolorsys.began = 7";
    let server = lab.server().with_imports(imports, serde_json::json!("/nowhere"), vec![]);
    let said =
        lab.run(&server, "import sys\nprint(sys.modules['colorsys'].began if 'colorsys' in sys.modules else None)");
    assert_eq!((said.end, said.stderr.text().as_str()), (End::Exited(0), "7\n"));
}

#[test]
fn a_program_ends_as_one_of_its_own_process_would() {
    let Some(lab) = Lab::new() else { return };
    let server = lab.server();
    let ends = |text: &str| {
        let finished = lab.run(&server, text);
        (finished.end, finished.stderr.text())
    };
    assert_eq!(ends("import sys\nsys.exit(3)"), (End::Exited(3), String::new()));
    assert_eq!(ends("import sys\nprint('out')\nsys.exit('why')"), (End::Exited(1), "out\nwhy\n".into()));
    assert_eq!(ends("import sys\nsys.exit()"), (End::Exited(0), String::new()));
    let (end, said) = ends("def f():\n    return 1 / 0\nf()");
    assert!(end == End::Exited(1) && said.contains("driver.py\", line 2, in f"), "{said}");
    assert!(said.ends_with("ZeroDivisionError: division by zero\n"), "{said}");
    assert_eq!(ends("import os\nos.kill(os.getpid(), 11)").0, End::Signalled(11));
    assert_eq!(ends("import os\nos._exit(5)").0, End::Exited(5));
    // Answers of the process are not the copy's to give.
    let (end, said) = ends("print('{\"exited\": 9}', flush=True)\nimport sys\nsys.stdin.read()");
    assert_eq!((end, said.as_str()), (End::Exited(0), "{\"exited\": 9}\n"));
}

#[test]
fn a_copy_is_confined_like_any_other_program() {
    let Some(lab) = Lab::new() else { return };
    let secret = lab.folder.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    let text = format!(
        "import os, socket, resource\n\
         def tried(what, f):\n    try:\n        f()\n        print(what, 'worked')\n    except OSError as e:\n        print(what, e.errno)\n\
         tried('read', lambda: open({secret:?}).read())\n\
         tried('write', lambda: open({secret:?} + '2', 'w'))\n\
         tried('remove', lambda: os.unlink({secret:?}))\n\
         tried('own', lambda: open('own', 'w'))\n\
         tried('socket', lambda: socket.socket())\n\
         tried('group', lambda: os.setpgid(0, 0))\n\
         tried('server', lambda: os.kill(os.getppid(), 9))\n\
         tried('program', lambda: os.waitpid(os.posix_spawn('/bin/true', ['true'], {{}}), 0))\n\
         print(resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_CORE), sorted(os.listdir('/proc/self/fd')) < ['4'])"
    );
    if !kforge::harness::confine::missing_here().missing.is_empty() {
        return kforge::base::testing::skipped("this system cannot confine");
    }
    let finished = lab.run(&lab.server(), &text);
    let said = finished.stderr.text();
    let want =
        "read 13\nwrite 13\nremove 13\nown worked\nsocket 1\ngroup 1\nserver 1\nprogram worked\n(99, 99) (0, 0) True\n";
    assert_eq!((finished.end, said.as_str()), (End::Exited(0), want));
    assert!(secret.exists());
}

#[test]
fn nothing_outlives_a_call_its_time_limit_or_its_worker() {
    let Some(lab) = Lab::new() else { return };
    let server = lab.server();
    let leaves = "import subprocess\nprint(subprocess.Popen(['/bin/sleep', '1000']).pid)";
    let finished = lab.run(&server, leaves);
    let [left] = words(&finished.stderr)[..] else { panic!("{}", finished.stderr.text()) };
    assert!(dies(left), "what a call started outlived it");
    let process = kept_processes().pop().unwrap();
    // Not even a child that it makes the process's own. What is left is the copy for the next call.
    #[cfg(target_arch = "x86_64")]
    {
        let gives = "import ctypes, time\nfor _ in range(3):\n    \
            if ctypes.CDLL(None).syscall(56, 0x8000 | 17, 0, 0, 0, 0) == 0: time.sleep(1000)";
        assert_eq!(lab.run(&server, gives).end, End::Exited(0));
        assert_eq!(lab.run(&server, "").end, End::Exited(0));
        assert_eq!(kept_processes().pop(), Some(process));
        assert!(family::descendants(process).len() <= 1, "{:?}", family::descendants(process));
    }
    let stays =
        format!("{leaves}\nimport sys, os, time\nprint(os.getpid(), flush=True)\nsys.stdout.flush()\ntime.sleep(1000)");
    let (began, limit) = (Instant::now(), Duration::from_millis(1500));
    let finished = lab.run_in(&server, "slow", &stays, limit);
    assert!(finished.end == End::TimedOut(limit) && began.elapsed() < MINUTE, "{}", finished.end);
    let all = [&words(&finished.stderr)[..], &[process]].concat();
    assert_eq!(all.len(), 3, "{}", finished.stderr.text());
    all.into_iter().for_each(|pid| assert!(dies(pid), "{pid} outlived the time limit"));
    // The next call gets a process again.
    assert_eq!(lab.run(&server, "print(1)").stderr.text(), "1\n");
}

#[test]
fn what_a_call_uses_with_all_it_starts_is_limited() {
    let Some(lab) = Lab::new() else { return };
    let folder = lab.folder.path().join("call");
    let run = |text: &str| {
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("driver.py"), text).unwrap();
        let room = Room { processes: 9, memory: 300 << 20, folder: folder.clone(), bytes: 1 << 20, files: 50 };
        let keep = lab.keep(&folder, Limits::default());
        let finished = lab.server().run_in(Some(&room), (&folder, "driver.py", &[]), &keep, MINUTE);
        finished.unwrap().expect("this Python can serve").end
    };
    let waits = "import os, time\n";
    assert_eq!(run("print(1)"), End::Exited(0));
    for (deed, rule) in [
        ("for at in range(60): open(str(at), 'w')", Rule::Files),
        ("open('big', 'wb').write(bytes(2 << 20))", Rule::FileBytes),
        (
            "for _ in range(20):\n    if os.fork() == 0:\n        if os.fork() == 0: time.sleep(1000)\n        os._exit(0)",
            Rule::Processes,
        ),
        (
            "for _ in range(3):\n    if os.fork() == 0:\n        x = b'x' * (120 << 20)\n        time.sleep(1000)",
            Rule::Memory,
        ),
    ] {
        assert_eq!(run(&format!("{waits}{deed}\ntime.sleep(1000)")), End::Misbehaved(rule));
        let process = kept_processes();
        assert_eq!(run("print(1)"), End::Exited(0), "{process:?}");
    }
}

#[test]
fn a_copy_that_is_killed_before_its_call_answers_none() {
    let Some(lab) = Lab::new() else { return };
    let server = lab.server();
    let said = |text: &str| lab.run(&server, text).stderr.text();
    assert_eq!(said("print(0)"), "0\n");
    let process = kept_processes().pop().unwrap();
    let mut before = 0;
    let mut kill_copy = || {
        let start = Instant::now();
        let copy = loop {
            match family::descendants(process)[..] {
                [copy] if copy != before => break copy,
                _ => assert!(start.elapsed() < MINUTE, "no copy waits for a call"),
            }
        };
        before = copy;
        assert_eq!(finish(&format!("kill -9 {copy}")).end, End::Exited(0));
        assert!(dies(copy));
    };
    kill_copy();
    assert_eq!((said("print(1)"), said("print(2)")), ("1\n".into(), "2\n".into()));
    assert_eq!(kept_processes().pop(), Some(process));
    // One that never gets to a call ends, and another process serves.
    (0..3).for_each(|_| kill_copy());
    assert!(dies(process));
    assert_eq!(said("print(3)"), "3\n");
}

#[test]
fn what_a_kept_process_starts_is_no_process_of_another_step() {
    let Some(lab) = Lab::new() else { return };
    assert_eq!(lab.run(&lab.server(), "").end, End::Exited(0));
    let (own, kept) = (std::process::id(), kept_processes());
    let (process, start) = (*kept.last().unwrap(), Instant::now());
    let copy = loop {
        match family::descendants(process)[..] {
            [copy, ..] => break copy,
            [] => assert!(start.elapsed() < MINUTE, "no copy waits for a call"),
        }
    };
    let all = family::descendants(own);
    assert!(all.contains(&process) && all.contains(&copy), "{all:?}");
    let others = family::descendants_but(own, &kept);
    assert!(!others.contains(&process) && !others.contains(&copy), "{others:?}");
}

#[test]
fn no_call_changes_what_another_finds() {
    let Some(lab) = Lab::new() else { return };
    let server = lab.server().with_imports("import json", serde_json::Value::Null, vec![]);
    // The order of a set is that of addresses. A sum in that order may not differ, so the addresses are printed.
    let text = "import fcntl, os, sys\n\
        class Point: pass\n\
        all = {Point(): 1.0 / (at + 1) for at in range(3000)}\n\
        total = 0.0\n\
        for point in set(all): total += all[point]\n\
        print(total.hex(), hash(tuple(map(id, all))), fcntl.fcntl(2, fcntl.F_GETFL) & os.O_NONBLOCK)\n\
        fcntl.fcntl(2, fcntl.F_SETFL, fcntl.fcntl(2, fcntl.F_GETFL) | os.O_NONBLOCK)";
    let first = lab.run(&server, text).stderr.text();
    assert!(first.ends_with(" 0\n"), "{first}");
    lab.run(&server, "import os, time\nif os.fork() == 0: time.sleep(1000)\nos.kill(os.getpid(), 9)");
    assert_eq!(lab.run(&server, text).stderr.text(), first);
    lab.run(&server, "import json\nx = [json.loads('[1, 2, 3]') for _ in range(10000)]\nprint('x' * 100000)");
    assert_eq!(lab.run(&server, text).stderr.text(), first);
    let other = lab.server().with_imports("import bisect", serde_json::Value::Null, vec![]);
    (0..3).for_each(|_| drop(lab.run(&other, "")));
    // The process was started again.
    assert_eq!(lab.run(&server, text).stderr.text(), first);
}

#[test]
fn a_package_s_own_modules_come_before_those_that_only_the_process_uses() {
    let Some(lab) = Lab::new() else { return };
    let folder = lab.folder.path().join("call");
    fs::create_dir_all(&folder).unwrap();
    for name in ["signal", "ctypes"] {
        fs::write(folder.join(format!("{name}.py")), "OWN = True").unwrap();
    }
    let text = "import sys\nsys.path.insert(0, '.')\nimport signal, ctypes\nprint(signal.OWN, ctypes.OWN)";
    assert_eq!(lab.run(&lab.server(), text).stderr.text(), "True True\n");
}

#[test]
fn threads_end_and_exit_functions_run_before_a_program_ends() {
    let Some(lab) = Lab::new() else { return };
    let text = "import atexit, threading, time\natexit.register(print, 'bye')\n\
        threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()";
    assert_eq!(lab.run(&lab.server(), text).stderr.text(), "thread\nbye\n");
}

#[test]
fn a_python_without_ctypes_cannot_serve() {
    let Some(lab) = Lab::new() else { return };
    let modules = lab.folder.path().join("modules");
    fs::create_dir(&modules).unwrap();
    fs::write(modules.join("ctypes.py"), "raise ImportError('no _ctypes')").unwrap();
    let server = PythonServer::new(&lab.python, &["-S", "-s", "-B"], &[("PYTHONPATH", modules.to_str().unwrap())]);
    let keep = lab.keep(lab.folder.path(), Limits::default());
    assert!(server.run((lab.folder.path(), "driver.py", &[]), &keep, MINUTE).unwrap().is_none());
}

#[test]
fn imports_that_fail_or_leave_a_thread_are_left_to_the_copies() {
    let Some(lab) = Lab::new() else { return };
    let fails = lab.server().with_imports(
        "print('noise')\nimport colorsys, there_is_no_such_module",
        serde_json::Value::Null,
        vec![],
    );
    let text = "import sys\nprint('colorsys' in sys.modules)";
    assert_eq!(lab.run(&fails, text).stderr.text(), "False\n");
    let exits = lab.server().with_imports("import colorsys\nsys.exit(4)", serde_json::Value::Null, vec![]);
    assert_eq!(lab.run(&exits, text).stderr.text(), "False\n");
    let threads =
        "import colorsys, threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()";
    let threads = lab.server().with_imports(threads, serde_json::Value::Null, vec![]);
    assert_eq!(lab.run(&threads, text).stderr.text(), "False\n");
    let works = lab.server().with_imports("print('noise')\nimport colorsys", serde_json::Value::Null, vec![]);
    assert_eq!(lab.run(&works, text).stderr.text(), "True\n");
    // A process that dies while it imports says nothing of the program.
    let dies = lab.server().with_imports("os.kill(os.getpid(), 9)", serde_json::Value::Null, vec![]);
    let keep = lab.keep(lab.folder.path(), Limits::default());
    let why = dies.run((lab.folder.path(), "driver.py", &[]), &keep, MINUTE).unwrap_err().to_string();
    assert!(why.contains("killed by signal 9"), "{why}");
}
