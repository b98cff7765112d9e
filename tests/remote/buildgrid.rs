//! A real server that schedules: BuildGrid with PostgreSQL, and `kforge worker --bots` behind it. BuildGrid is installed from PyPI by hash, below the target folder;
//! PostgreSQL is the machine's.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use kforge::base::testing::skipped;
use kforge::harness::elsewhere::OnceAnswer;

use crate::bots::{Worker, until};
#[cfg(any(debug_assertions, feature = "virtual-device"))]
use crate::bots::{of_tests, peaks};
use crate::casd::home;
#[cfg(any(debug_assertions, feature = "virtual-device"))]
use crate::executing::new_key;
use crate::executing::{
    ONE, alone, cxx_that_counts, cxx_that_waits, elsewhere, executed, online, project_at, warnings,
};
use crate::plain::Plain;
use crate::project::Project;

const REQUIREMENTS: &str = include_str!("buildgrid.txt");
const CONFIGURATION: &str = include_str!("buildgrid.yml");
const INSTANCE: &str = "main";

/// PostgreSQL does not run as the superuser: the user `nobody`, which has no files.
const NOBODY: u32 = 65534;

/// A BuildGrid with an empty database. It ends when it is dropped, and so does PostgreSQL.
struct BuildGrid {
    server: Child,
    database: Child,
    url: String,
    _folder: tempfile::TempDir,
}

impl BuildGrid {
    /// Starts one and waits until it answers. None, after reporting that the test is skipped, if this machine lacks what it needs.
    fn start() -> Option<BuildGrid> {
        let (python, postgresql) = (installed()?, postgresql()?);
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let [port, of_database] =
            [0; 2].map(|_| TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
        let database = database(&postgresql, folder.path(), of_database);
        let address = format!("postgresql+psycopg2://bgd@127.0.0.1:{of_database}/postgres");
        let (log, path) = (fs::File::create(folder.path().join("log")).unwrap(), folder.path().join("bgd.yml"));
        let text = CONFIGURATION.replace("PORT", &port.to_string()).replace("DATABASE", &address);
        fs::write(&path, text.replace("FOLDER", folder.path().to_str().unwrap())).unwrap();
        let bgd = |words: &[&str]| {
            let mut command = Command::new(python.join("bin/bgd"));
            command.args(words).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log.try_clone().unwrap());
            command
        };
        let said = || fs::read_to_string(folder.path().join("log")).unwrap();
        // PostgreSQL takes a moment.
        let began = Instant::now();
        while !bgd(&["migrate", "apply", &address]).status().unwrap().success() {
            assert!(began.elapsed() < Duration::from_secs(60), "the database cannot be used: {}", said());
        }
        let server = bgd(&["server", "start", path.to_str().unwrap()]).spawn().unwrap();
        let url = format!("grpc://127.0.0.1:{port}");
        let mut grid = BuildGrid { server, database, url, _folder: folder };
        let mut client = Plain::new(&grid.url);
        client.instance = INSTANCE.into();
        let began = Instant::now();
        while client.capabilities().is_err() {
            let ended = grid.server.try_wait().unwrap();
            let said = fs::read_to_string(grid._folder.path().join("log")).unwrap();
            assert!(ended.is_none() && began.elapsed() < Duration::from_secs(60), "BuildGrid does not answer: {said}");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(grid)
    }

    fn kill(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Drop for BuildGrid {
    fn drop(&mut self) {
        self.kill();
        // Its processes end with it.
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.database.id()).unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        let _ = self.database.wait();
    }
}

/// Starts PostgreSQL with an empty database.
fn database(programs: &Path, folder: &Path, port: u16) -> Child {
    let data = folder.join("database");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
    let is_root = rustix::process::getuid().is_root();
    if is_root {
        chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let log = folder.join("database.log");
    let started = |program: &str, words: &[&str]| {
        let mut command = Command::new(programs.join(program));
        let log = fs::File::options().create(true).append(true).open(&log).unwrap();
        command.arg("-D").arg(&data).args(words).current_dir("/").stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.spawn().unwrap()
    };
    let made = started("initdb", &["-U", "bgd", "-A", "trust", "--no-sync"]).wait().unwrap();
    assert!(made.success(), "initdb: {}", fs::read_to_string(&log).unwrap());
    let (port, socket) = (port.to_string(), data.to_str().unwrap());
    started("postgres", &["-p", &port, "-c", "listen_addresses=127.0.0.1", "-k", socket, "-F"])
}

/// The folder of PostgreSQL's programs. None, after reporting that the test is skipped, if this machine has none.
fn postgresql() -> Option<PathBuf> {
    let all = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|entry| entry.path().join("bin"));
    let found = all.chain(["/usr/local/bin".into(), "/usr/bin".into()]).find(|folder| folder.join("initdb").exists());
    if found.is_none() {
        skipped("PostgreSQL is not installed");
    }
    found
}

/// The folder of a Python with BuildGrid. None, after reporting that the test is skipped, if it cannot be installed.
fn installed() -> Option<PathBuf> {
    static INSTALLED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let made = INSTALLED.get_or_init(|| {
        let place = home().join("buildgrid-0.4.4");
        if place.join("installed").exists() {
            return Ok(place);
        }
        fs::create_dir_all(home()).unwrap();
        let _ = fs::remove_dir_all(&place);
        let list = tempfile::NamedTempFile::new().unwrap();
        fs::write(list.path(), REQUIREMENTS).unwrap();
        let ran = |command: &mut Command| {
            let output = command.output().map_err(|e| e.to_string())?;
            let said = || String::from_utf8_lossy(&output.stderr).into_owned();
            output.status.success().then_some(()).ok_or_else(said)
        };
        ran(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
        let words = "-m pip install --quiet --no-input --only-binary=:all: --require-hashes --requirement".split(' ');
        ran(Command::new(place.join("bin/python")).args(words).arg(list.path()))?;
        fs::write(place.join("installed"), "").unwrap();
        Ok(place)
    });
    match made {
        Ok(place) => Some(place.clone()),
        Err(why) => {
            skipped(&format!("BuildGrid cannot be installed: {why}"));
            None
        }
    }
}

/// A worker of a pool.
fn worker(project: &Project, grid: &BuildGrid, name: &str, pool: &str) -> Worker {
    let properties = format!("pool={pool}");
    let vars = [("KFORGE_REMOTE_PROPERTIES", properties.as_str())];
    Worker::start(project, &grid.url, name, &["--instance", INSTANCE, "--no-device"], &vars)
}

/// The project, whose steps need a worker of a pool.
fn of_pool(project: &Project, name: &str, pool: &str) -> Project {
    let project = project.cloned(name).fresh_home(format!("home of {name}"));
    project.var("KFORGE_REMOTE_PROPERTIES", format!("OSFamily=linux,ISA=x86-64{pool}"))
}

/// A worker in a mount namespace of its own, where this file has the contents of another one.
fn elsewhere_mounted(worker: Command, file: &Path, other: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "/bin/sh", "-c", "mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"", "sh"]);
    command.arg(other).arg(file).arg(worker.get_program()).args(worker.get_args()).env_clear();
    command.envs(worker.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(worker.get_current_dir().unwrap());
    command
}

#[test]
#[ignore = "second tier: runs BuildGrid with PostgreSQL"]
fn buildgrid_schedules_the_steps_of_builds_on_workers_of_kforge() {
    let Some(mut grid) = BuildGrid::start() else { return };
    let project = project_at(&grid.url, ONE).var("KFORGE_REMOTE_INSTANCE_NAME", INSTANCE);
    let project = project.var("KFORGE_REMOTE_PROGRAM", "kforge").var("KFORGE_REMOTE_QUEUE_LIMIT", "60s");
    // On a busy machine the server is slow, which must not end remote execution here.
    let project = project.var("KFORGE_REMOTE_TIMEOUT", "60s");
    // A compiler that is held makes the middle of a step as long as needed.
    let (cxx, hold) = cxx_that_waits(&project);
    fs::remove_file(&hold).unwrap();
    let project = project.var("KFORGE_TOOLCHAIN_CXX", cxx);
    let reference = alone(&project);
    let (mut a, mut b) = (worker(&project, &grid, "a", "a"), worker(&project, &grid, "b", "b"));

    // Each step goes to the worker with its properties.
    let of_a = of_pool(&project, "of a", ",pool=a");
    let built = online(&of_a, &[]).expect(0);
    assert_eq!((warnings(&built), of_a.report()), (0, reference.clone()), "{}\n{}", built.stderr(), a.log());
    assert!(executed(&built) >= 4 && elsewhere(&built) == executed(&built), "{:?}", built.executed());
    assert_eq!((a.executed(), b.executed()), (executed(&built), 0), "{}\n{}", a.log(), b.log());

    // No worker has these, or the server does not know them: the steps run here, with one warning.
    for (name, pool, says) in
        [("of none", ",pool=z", "no worker took a step"), ("of strangers", ",x=y", "no worker with")]
    {
        let lonely = of_pool(&project, name, pool).var("KFORGE_REMOTE_QUEUE_LIMIT", "1s");
        let built = online(&lonely, &[]).expect(0).says(says);
        assert_eq!((warnings(&built), elsewhere(&built)), (1, 0), "{}", built.stderr());
        assert_eq!(lonely.report(), reference);
    }

    // A worker is killed in the middle of a step: the other one gets it. The kernel is another one, so that no result is remembered.
    let shared = of_pool(&project, "shared", "");
    shared.edit("k.cu", "2 * x[i] + 1", "1 + 2 * x[i]");
    fs::write(&hold, "").unwrap();
    let child = shared.command(&["build", "--message-format", "json", "-j", "1"]).spawn().unwrap();
    until("a worker has a step", || a.compiler_waits() || b.compiler_waits());
    let (killed, left) = if a.compiler_waits() { (&mut a, &mut b) } else { (&mut b, &mut a) };
    killed.kill();
    fs::remove_file(&hold).unwrap();
    let begun = killed.log().matches("Executing lease").count();
    assert_ne!(begun, killed.executed(), "in the middle: {}", killed.log());
    let built = crate::project::Built::of(&child.wait_with_output().unwrap()).expect(0);
    assert_eq!((warnings(&built), elsewhere(&built)), (0, executed(&built)), "{}\n{}", built.stderr(), left.log());
    assert!(left.executed() >= executed(&built), "{}", left.log());
    assert_eq!(left.terminate(), Some(0));

    // The server is killed in the middle: the steps run here.
    let c = worker(&project, &grid, "c", "c");
    let last = of_pool(&project, "last", ",pool=c");
    last.edit("k.cu", "2 * x[i] + 1", "(2 * x[i]) + 1");
    fs::write(&hold, "").unwrap();
    let child = last.command(&["build", "--message-format", "json"]).spawn().unwrap();
    until("the worker has a step", || c.compiler_waits());
    grid.kill();
    fs::remove_file(&hold).unwrap();
    let built = crate::project::Built::of(&child.wait_with_output().unwrap()).expect(0);
    assert!(warnings(&built) == 1 && elsewhere(&built) < executed(&built), "{}", built.stderr());
}

#[test]
#[ignore = "second tier: runs BuildGrid with PostgreSQL"]
fn workers_behind_buildgrid_that_are_another_machine_refuse() {
    let Some(grid) = BuildGrid::start() else { return };
    let can_mount = Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|status| status.success());
    if !can_mount {
        return skipped("this user may not make a mount namespace");
    }
    let project = project_at(&grid.url, ONE).var("KFORGE_REMOTE_INSTANCE_NAME", INSTANCE);
    let project = project.var("KFORGE_REMOTE_PROGRAM", "kforge").var("KFORGE_REMOTE_TIMEOUT", "60s");
    let (cxx, _) = cxx_that_counts(&project);
    let project = project.var("KFORGE_TOOLCHAIN_CXX", &cxx);
    let reference = alone(&project);
    let libm = fs::canonicalize("/lib/x86_64-linux-gnu/libm.so.6").unwrap();
    let files: BTreeMap<&str, (&Path, &str)> =
        [("g++", (cxx.as_path(), "`toolchain` has other parts")), ("libm", (libm.as_path(), "libm.so.6`"))].into();
    for (name, (file, says)) in files {
        // The same, with a line or a few bytes more.
        let other = project.place().join(format!("another {name}"));
        fs::write(&other, [fs::read(file).unwrap(), b"\n# another\n".to_vec()].concat()).unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
        let words = ["worker", "--bots", &grid.url, "--name", name, "--instance", INSTANCE, "--no-device"];
        let command = elsewhere_mounted(project.command(&words), file, &other);
        let home = project.place().join(format!("home of {name}"));
        let worker = Worker::of(command, &home, &[("KFORGE_REMOTE_PROPERTIES", &format!("pool={name}"))]);
        let asks = of_pool(&project, &format!("asks {name}"), &format!(",pool={name}"));
        let built = online(&asks, &[]).expect(0).says(says);
        assert_eq!(asks.report(), reference, "{name}");
        assert!(worker.executed() > 0 && elsewhere(&built) < executed(&built), "{name}: {}", worker.log());
    }
}

#[cfg(any(debug_assertions, feature = "virtual-device"))]
#[test]
#[ignore = "second tier: runs BuildGrid with PostgreSQL"]
fn buildgrid_routes_what_observes_a_device_to_the_worker_that_has_it() {
    use crate::lab::{Lab, Machine};
    let Some(grid) = BuildGrid::start() else { return };
    let machine = || Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1500.0)]);
    let lab = Lab::new(&Machine { device: None, ..machine() });
    let (place, key) = (lab.project.place().to_path_buf(), lab.project.place().join("key"));
    let Some(public) = new_key(&key) else { return };
    fs::write(place.join("trusted"), format!("gpu@x {public}")).unwrap();
    let there = Lab { scenario: place.join("scenario of the worker.toml"), ..lab.clone() };
    there.on(&machine());
    let start = |name: &str, words: &[&str]| {
        let words = [&["worker", "--bots", &grid.url, "--name", name, "--instance", INSTANCE], words].concat();
        let mut command = of_tests(&lab.project, &words);
        command.env("KFORGE_VIRTUAL_DEVICE", &there.scenario);
        let vars = [("KFORGE_REMOTE_WORKER_KEY", key.to_str().unwrap()), ("KFORGE_TOOLCHAIN_CXX", "/nowhere/g++")];
        Worker::of(command, &place.join(format!("home of {name}")), &vars)
    };
    let (gpu, plain) = (start("gpu", &[]), start("plain", &["--no-device"]));
    let asked = [("OSFamily", "linux"), ("gpu", "virtual-h")];
    let answer = peaks(&grid.url, INSTANCE, &asked);
    let is_done = matches!(&answer, Ok(OnceAnswer::Answered { outputs, .. }) if outputs.contains_key("observation"));
    assert!(is_done, "{answer:?} {}", gpu.log());
    assert!(gpu.executed() == 1 && plain.executed() == 0, "{}\n{}", gpu.log(), plain.log());
    // A build on a machine without the device, which takes nothing else from the server.
    let vars = [
        ("KFORGE_REMOTE_URL", grid.url.as_str()),
        ("KFORGE_REMOTE_INSTANCE_NAME", INSTANCE),
        ("KFORGE_REMOTE_EXECUTE", "true"),
        ("KFORGE_REMOTE_PROGRAM", "kforge"),
        ("KFORGE_REMOTE_DEVICES", "sm_90=Virtual H"),
        ("KFORGE_REMOTE_PROPERTIES", "OSFamily=linux,gpu={gpu}"),
        ("KFORGE_REMOTE_TIMEOUT", "60s"),
    ];
    let project = vars.into_iter().fold(lab.project.clone(), |project, (name, value)| project.var(name, value));
    let project = project.var("KFORGE_EVIDENCE_TRUST", place.join("trusted"));
    let words = ["build", "--message-format", "json", "--require-evidence"];
    let built = crate::project::Built::of(&of_tests(&project, &words).output().unwrap()).expect(0);
    let signed = built.finished().filter(|step| step["evidence"]["signer"] == "gpu@x" && step["cache"] == "remote");
    let signed = signed.count();
    assert!(signed > 10 && gpu.executed() == 1 + signed && plain.executed() == 0, "{signed} {}", gpu.log());
    assert_eq!(warnings(&built), 0, "{}", built.stderr());
}
