//! What a home remembers of the machine's own tools, for all its workspaces: what the C++ compiler and Python consist of, and the stats of their files. So the
//! first build of a workspace need not ask a compiler that another workspace has asked (0.3 s). Knows the journal's form and its lock; does not know tools.
//!
//! It is a journal of its own, `$KFORGE_HOME/machine`, because a workspace's journal has one writer at a time and this one has many readers: who does not get the
//! lock at once reads what is there and keeps nothing.

use kforge_engine::home::Home;
use kforge_engine::journal::Journal;
use kforge_engine::lock::{Lock, Mode, Wait};

/// The machine's tools as a home remembers them.
pub struct Machine {
    journal: Journal,
    /// Held while something may be written.
    _lock: Option<Lock>,
}

impl Machine {
    /// Opens it, to write where `write` says so and nobody else does; none where it cannot be read.
    pub fn open(home: &Home, write: bool) -> Option<Machine> {
        let path = home.root().join("machine");
        // Never waited for, so that the order of locks does not matter.
        let take = || Lock::acquire(&home.locks().join("machine"), Mode::Exclusive, Wait::No).ok();
        let lock = if write { take() } else { None };
        // What a torn file lost is asked again.
        let opened = match &lock {
            Some(_) => Journal::open(&path).map(|(journal, _)| journal),
            None => Journal::view(&path),
        };
        Some(Machine { journal: opened.ok()?, _lock: lock })
    }

    /// Its journal.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Writes what is new and lets go. What cannot be written is asked again by the next build.
    pub fn close(self) {
        let _ = self.journal.flush();
    }
}
