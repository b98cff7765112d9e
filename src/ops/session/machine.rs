//! The memory of a home for this machine's tools, shared by all workspaces: the parts of the C++ compiler and of Python, and the stats of their files. The
//! first build of a workspace need not query a compiler that another workspace has queried (0.3 s). Knows the journal's format and its lock; does not know
//! tools.
//!
//! It is a separate journal, `$KFORGE_HOME/machine`, because a workspace's journal has one writer at a time and this one has many readers. A process that does
//! not get the lock at once reads the journal and stores nothing.

use kforge_engine::home::Home;
use kforge_engine::journal::Journal;
use kforge_engine::lock::{Lock, Mode, Wait};

/// A home's memory of the machine's tools.
pub struct Machine {
    journal: Journal,
    /// Held while the journal may be written.
    _lock: Option<Lock>,
}

impl Machine {
    /// Opens the memory; none if it cannot be read. It is writable if `write` is set and no other process has the lock.
    pub fn open(home: &Home, write: bool) -> Option<Machine> {
        let path = home.root().join("machine");
        // The lock is never waited for, so its place in the order of locks does not matter.
        let take = || Lock::acquire(&home.locks().join("machine"), Mode::Exclusive, Wait::No).ok();
        let lock = if write { take() } else { None };
        // What a truncated file has lost is queried again.
        let opened = match &lock {
            Some(_) => Journal::open(&path).map(|(journal, _)| journal),
            None => Journal::view(&path),
        };
        Some(Machine { journal: opened.ok()?, _lock: lock })
    }

    /// The journal.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Writes new entries and releases the lock. The next build queries again what cannot be written.
    pub fn close(self) {
        let _ = self.journal.flush();
    }
}
