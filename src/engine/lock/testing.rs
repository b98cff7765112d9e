//! Child processes for tests: runs one ignored test of this test binary in a folder of its own. That test reads its orders from the folder and does nothing
//! without them, for example when a user runs all ignored tests.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// The file with a child's orders.
const ORDERS: &str = "orders.txt";

/// Starts the ignored test `name` (its full path) in `dir`, with `orders`. [`LockingChild::hear`] reads its standard output.
pub(crate) fn spawn(name: &str, dir: &Path, orders: &str) -> LockingChild {
    std::fs::write(dir.join(ORDERS), orders).unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--ignored", "--nocapture", "--test-threads=1"])
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    LockingChild(child)
}

/// Called in the child: returns its folder and its orders.
pub(crate) fn orders() -> Option<(PathBuf, String)> {
    let dir = std::env::current_dir().unwrap();
    let orders = std::fs::read_to_string(dir.join(ORDERS)).ok()?;
    // The child must not outlive its parent, however the parent ends.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::abort();
    });
    Some((dir, orders))
}

/// Called in the child: sends `word` to the parent. Not through `println`, which the lints deny and which does not flush.
pub(crate) fn say(word: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n<{word}>\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// The child as the parent sees it. Killed when dropped.
pub(crate) struct LockingChild(Child);

impl LockingChild {
    /// Reads the child's output until it sends `word`. Fails the test if the child ends first.
    pub(crate) fn hear(&mut self, word: &str) {
        let wanted = format!("<{word}>\n");
        let out = self.0.stdout.as_mut().unwrap();
        let (mut heard, mut byte) = (Vec::new(), [0u8]);
        while !heard.ends_with(wanted.as_bytes()) {
            let n = out.read(&mut byte).unwrap();
            assert_eq!(n, 1, "the child ended having said {:?}", String::from_utf8_lossy(&heard));
            heard.push(byte[0]);
        }
    }

    /// Waits until the child has ended by itself.
    pub(crate) fn end(mut self) -> ExitStatus {
        // `wait` would close the child's input and so end the child.
        loop {
            match self.0.try_wait().unwrap() {
                Some(status) => return status,
                None => std::thread::yield_now(),
            }
        }
    }

    /// Kills the child with SIGKILL, whatever it is doing.
    pub(crate) fn kill(self) {
        drop(self);
    }
}

impl Drop for LockingChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file system of one MiB, unmounted when dropped.
pub(crate) struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts one. Returns none, and reports the reason, if this user may not mount.
    pub(crate) fn mount() -> Option<SmallDisk> {
        let dir = tempfile::tempdir().unwrap();
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m,mode=755", "tmpfs"])
            .arg(dir.path())
            .stderr(Stdio::null())
            .status();
        if done.is_ok_and(|s| s.success()) {
            return Some(SmallDisk(dir));
        }
        kforge_foundation::base::testing::skipped("a small file system can be mounted by root only");
        None
    }

    /// Makes it read-only, even for root.
    pub(crate) fn make_read_only(&self) {
        let done = Command::new("mount").args(["-o", "remount,ro"]).arg(self.0.path()).status();
        assert!(done.is_ok_and(|s| s.success()));
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}
