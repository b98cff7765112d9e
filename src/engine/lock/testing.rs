//! For tests that need a second process: runs one ignored test of this very binary in a folder of its own. That test finds its orders in the folder,
//! and does nothing where there are none, as when somebody runs every ignored test.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// The file that holds a child's orders.
const ORDERS: &str = "orders.txt";

/// Starts the ignored test `name` (its whole path) in `dir`, with `orders`. Its standard output can be read from the child.
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

/// In the child: its folder and its orders.
pub(crate) fn orders() -> Option<(PathBuf, String)> {
    let dir = std::env::current_dir().unwrap();
    let orders = std::fs::read_to_string(dir.join(ORDERS)).ok()?;
    // It must not outlive its parent, however that ends.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::abort();
    });
    Some((dir, orders))
}

/// In the child: says `word` to the parent. Not through `println`, which the house forbids and which is not flushed.
pub(crate) fn say(word: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n<{word}>\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// In the parent: the child. Killed when dropped.
pub(crate) struct LockingChild(Child);

impl LockingChild {
    /// Reads what the child says until it says `word`. Fails the test if the child ends first.
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
        // Not `wait`, which would close its input and so end it.
        loop {
            match self.0.try_wait().unwrap() {
                Some(status) => return status,
                None => std::thread::yield_now(),
            }
        }
    }

    /// Ends it with SIGKILL, in the midst of whatever it does.
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
    /// Mounts one; none, with the reason said, where this user may not.
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

    /// Nobody can write to it any more, root neither.
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
