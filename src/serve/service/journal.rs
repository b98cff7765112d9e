//! The journal: one append-only file with everything that the service must not forget. Knows lines; does not know what rows mean.
//!
//! | decision | because |
//! |---|---|
//! | a line is a checksum and JSON | a line that was cut off is seen, and people can read the file |
//! | a row is written before the state changes, under the lock of the state | the order of rows is the order of changes, so replaying them gives the same state |
//! | rows are written at once, and synced by a thread, many at a time | a killed process loses nothing that was written; a machine without power loses nothing that was synced |
//! | requests and results stay in the file, and memory holds where | a queue of a thousand large requests needs no memory |
//! | the folder is synced after a file was created or replaced in it, and if that fails nothing is written any more | rows in a file that is lost are lost |
//! | a write that fails is undone, and if that fails too nothing is written any more | a row after half a row would be lost with it |
//! | what is not needed any more is removed by writing the file again: what is needed at its start without the lock, and under it only what was added since | nobody waits for a large copy |
//! | a row that is whole and that this kforge does not know keeps the journal from being opened | a later kforge wrote it, and leaving it out would lose a task |

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use kforge_foundation::base::Digest;

/// The hexadecimal digits of the checksum of a line.
const CHECKSUM: usize = 16;

/// Where a row is.
#[derive(Debug, Clone)]
pub(super) struct Place {
    file: Arc<File>,
    at: u64,
    length: usize,
}

impl Place {
    /// How many bytes its line has.
    pub(super) fn bytes(&self) -> u64 {
        self.length as u64
    }

    /// Reads the row.
    pub(super) fn read<T: DeserializeOwned>(&self) -> io::Result<T> {
        let mut line = vec![0; self.length];
        self.file.read_exact_at(&mut line, self.at)?;
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "a row of the journal is damaged");
        serde_json::from_slice(text(&line).ok_or_else(damaged)?).map_err(|_| damaged())
    }
}

/// The text of a line with its end; none if the line is damaged.
fn text(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\n")?;
    let (sum, text) = line.split_at_checked(CHECKSUM)?;
    let text = text.strip_prefix(b" ")?;
    (checksum(text).as_bytes() == sum).then_some(text)
}

/// Why a journal cannot be opened.
#[derive(Debug)]
pub(super) enum OpenError {
    Io(io::Error),
    /// A row is whole, and none that this kforge knows: a later kforge wrote it.
    Unknown,
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        OpenError::Io(error)
    }
}

fn checksum(text: &[u8]) -> String {
    let mut hex = Digest::of(text).hex();
    hex.truncate(CHECKSUM);
    hex
}

/// The folder of a file.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A row as it is written. Making one takes time, so it is made before the lock is taken.
pub(super) struct Line(Vec<u8>);

impl Line {
    pub(super) fn of(row: &impl Serialize) -> io::Result<Line> {
        let text = serde_json::to_vec(row)?;
        let mut line = checksum(&text).into_bytes();
        line.reserve_exact(text.len() + 2);
        line.push(b' ');
        line.extend(text);
        line.push(b'\n');
        Ok(Line(line))
    }

    /// How many bytes it has.
    pub(super) fn bytes(&self) -> u64 {
        self.0.len() as u64
    }
}

/// What the thread that syncs shares with the others.
struct Sync {
    wanted: Mutex<Wanted>,
    woken: Condvar,
    /// How many rows are known to be on disk; none once syncing failed.
    done: watch::Sender<Option<u64>>,
}

struct Wanted {
    file: Arc<File>,
    /// How many rows are to be on disk.
    rows: u64,
    over: bool,
}

/// The journal. Its methods need `&mut`: the lock of the state orders rows.
pub(super) struct Journal {
    path: PathBuf,
    file: Arc<File>,
    length: u64,
    /// How many rows were written by this process.
    rows: u64,
    /// Whether the last row could not be written.
    failed: bool,
    broken: bool,
    /// Syncs the folder of the file.
    sync_folder: fn(&File) -> io::Result<()>,
    sync: Arc<Sync>,
    thread: Option<JoinHandle<()>>,
}

/// How far the journal is on disk.
#[derive(Clone)]
pub(super) struct Synced(watch::Receiver<Option<u64>>);

impl Synced {
    /// Whether rows could be synced so far.
    pub(super) fn works(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits until so many rows are on disk. Returns false if they cannot be stored.
    pub(super) async fn reaches(&mut self, rows: u64) -> bool {
        match self.0.wait_for(|done| done.is_none_or(|done| done >= rows)).await {
            Ok(done) => done.is_some(),
            Err(_) => false,
        }
    }
}

impl Journal {
    /// Opens the journal, and passes each row to `each` with its place, which returns whether it knows the row. A line at the end that was cut off is removed; a
    /// damaged line in between is left out, and counted in the answer. A journal with an unknown row stays as it is.
    pub(super) fn open<T: DeserializeOwned>(
        path: &Path,
        mut each: impl FnMut(T, Place) -> bool,
    ) -> Result<(Journal, u64), OpenError> {
        let file = Arc::new(OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?);
        let (mut at, mut damaged) = (0, 0);
        let mut reader = BufReader::new(&*file);
        let mut line = vec![];
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line)?;
            if length == 0 {
                break;
            }
            if line.last() != Some(&b'\n') {
                file.set_len(at)?;
                break;
            }
            match text(&line) {
                Some(text) => {
                    let row = serde_json::from_slice(text).map_err(|_| OpenError::Unknown)?;
                    if !each(row, Place { file: file.clone(), at, length }) {
                        return Err(OpenError::Unknown);
                    }
                }
                None => damaged += 1,
            }
            at += length as u64;
        }
        // A file that was just created, or was created and not synced.
        File::open(folder(path))?.sync_all()?;
        Ok((Journal::of(path, file, at)?, damaged))
    }

    fn of(path: &Path, file: Arc<File>, length: u64) -> io::Result<Journal> {
        let sync = Arc::new(Sync {
            wanted: Mutex::new(Wanted { file: file.clone(), rows: 0, over: false }),
            woken: Condvar::new(),
            done: watch::Sender::new(Some(0)),
        });
        let syncing = sync.clone();
        let thread = std::thread::Builder::new().name("journal".into()).spawn(move || syncing.run())?;
        Ok(Journal {
            path: path.into(),
            file,
            length,
            rows: 0,
            failed: false,
            broken: false,
            sync_folder: File::sync_all,
            sync,
            thread: Some(thread),
        })
    }

    /// The bytes of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.length
    }

    /// Sees how far the journal is on disk.
    pub(super) fn synced(&self) -> Synced {
        Synced(self.sync.done.subscribe())
    }

    /// Whether rows can be stored, as far as is known: the last one was.
    pub(super) fn works(&self) -> bool {
        !self.failed && self.is_whole()
    }

    /// Whether it makes sense to write a row.
    fn is_whole(&self) -> bool {
        !self.broken && self.sync.done.borrow().is_some()
    }

    /// Writes a row. Returns its place, and how many rows there are with it.
    pub(super) fn append(&mut self, row: &impl Serialize) -> io::Result<(Place, u64)> {
        self.write(&Line::of(row)?)
    }

    /// The same with a row that was made before.
    pub(super) fn write(&mut self, line: &Line) -> io::Result<(Place, u64)> {
        if !self.is_whole() {
            return Err(io::Error::other("an earlier write failed"));
        }
        if let Err(error) = (&*self.file).write_all(&line.0) {
            self.failed = true;
            self.broken = self.file.set_len(self.length).is_err();
            return Err(error);
        }
        self.failed = false;
        let place = Place { file: self.file.clone(), at: self.length, length: line.0.len() };
        self.length += line.bytes();
        self.rows += 1;
        Ok((place, self.rows))
    }

    /// Asks that everything written so far be synced.
    pub(super) fn sync(&self) {
        let mut wanted = self.sync.lock();
        wanted.rows = self.rows;
        drop(wanted);
        self.sync.woken.notify_one();
    }

    /// Where the file ends now, for a file that is to replace it.
    pub(super) fn end(&self) -> End {
        End { path: self.path.clone(), file: self.file.clone(), length: self.length }
    }

    /// Replaces the file, after copying what was added since. If it fails, the file is as it was, or no rows are written any more.
    pub(super) fn replace(&mut self, mut new: Replacement) -> io::Result<Moved> {
        if !self.is_whole() {
            return Err(io::Error::other("an earlier write failed"));
        }
        new.catch_up(&self.end())?;
        let Replacement { temp, parent, moved, old, tail, until, length } = new;
        assert_eq!(until, self.length, "BUG: something was appended beside the replacement");
        temp.as_file().sync_all()?;
        // Nothing but the sync of the folder can fail after the file was replaced.
        let file = Arc::new(temp.persist(&self.path).map_err(|e| e.error)?);
        (self.file, self.length) = (file.clone(), length);
        if let Err(error) = (self.sync_folder)(&parent) {
            self.broken = true;
            return Err(error);
        }
        let mut wanted = self.sync.lock();
        (wanted.file, wanted.rows) = (file.clone(), self.rows);
        drop(wanted);
        self.sync.woken.notify_one();
        Ok(Moved { old, file, moved, tail })
    }
}

/// Where a file ended at a time.
pub(super) struct End {
    path: PathBuf,
    file: Arc<File>,
    length: u64,
}

/// A file that is to replace that of the journal.
pub(super) struct Replacement {
    temp: tempfile::NamedTempFile,
    parent: File,
    /// The positions of copied rows: old and new.
    moved: HashMap<u64, u64>,
    old: Arc<File>,
    /// Where what was added since begins: in the old file and in the new one.
    tail: (u64, u64),
    /// How far the old file was copied.
    until: u64,
    length: u64,
}

impl Replacement {
    /// Writes what is needed of the journal up to an end: rows that are copied, and new ones.
    pub(super) fn write<'r, R: Serialize + 'r>(
        end: End,
        rows: impl IntoIterator<Item = Kept<'r, R>>,
    ) -> io::Result<Replacement> {
        let parent = File::open(folder(&end.path))?;
        let temp = tempfile::Builder::new().prefix(".journal-").append(true).tempfile_in(folder(&end.path))?;
        let (mut moved, mut at) = (HashMap::new(), 0);
        let mut out = io::BufWriter::new(temp.as_file());
        for kept in rows {
            let line = match kept {
                Kept::Copy(place) => {
                    let mut line = vec![0; place.length];
                    place.file.read_exact_at(&mut line, place.at)?;
                    moved.insert(place.at, at);
                    line
                }
                Kept::New(row) => Line::of(row)?.0,
            };
            out.write_all(&line)?;
            at += line.len() as u64;
        }
        out.flush()?;
        drop(out);
        temp.as_file().sync_all()?;
        let tail = (end.length, at);
        Ok(Replacement { temp, parent, moved, old: end.file, tail, until: end.length, length: at })
    }

    /// Copies what was added to the old file up to a later end. Returns how many bytes that was.
    pub(super) fn catch_up(&mut self, end: &End) -> io::Result<u64> {
        if !Arc::ptr_eq(&end.file, &self.old) {
            return Err(io::Error::other("the journal was replaced meanwhile"));
        }
        let mut part = vec![0; 1 << 20];
        let before = self.until;
        while self.until < end.length {
            let length = usize::try_from(end.length - self.until).map_or(part.len(), |left| left.min(part.len()));
            self.old.read_exact_at(&mut part[..length], self.until)?;
            self.temp.as_file().write_all(&part[..length])?;
            self.until += length as u64;
            self.length += length as u64;
        }
        Ok(self.until - before)
    }
}

/// Where rows lie after the file was replaced.
pub(super) struct Moved {
    old: Arc<File>,
    file: Arc<File>,
    moved: HashMap<u64, u64>,
    tail: (u64, u64),
}

impl Moved {
    /// The new place of a row. A row that was not copied keeps its place in the old file, which is read as long as somebody holds it.
    pub(super) fn place(&self, place: &Place) -> Place {
        let is_in_tail = place.at >= self.tail.0;
        let at =
            self.moved.get(&place.at).copied().or_else(|| is_in_tail.then(|| place.at - self.tail.0 + self.tail.1));
        match at.filter(|_| Arc::ptr_eq(&place.file, &self.old)) {
            Some(at) => Place { file: self.file.clone(), at, length: place.length },
            None => place.clone(),
        }
    }
}

/// A row of a file that is written again.
pub(super) enum Kept<'r, R> {
    /// As it is.
    Copy(&'r Place),
    /// A new one.
    New(&'r R),
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.sync();
        self.sync.lock().over = true;
        self.sync.woken.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic there is a bug that has been printed.
            drop(thread.join());
        }
    }
}

impl Sync {
    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs until it is over.
    fn run(&self) {
        let mut done = 0;
        loop {
            let mut wanted = self.lock();
            while wanted.rows <= done && !wanted.over {
                wanted = self.woken.wait(wanted).unwrap_or_else(PoisonError::into_inner);
            }
            if wanted.rows <= done {
                return;
            }
            let (file, rows) = (wanted.file.clone(), wanted.rows);
            drop(wanted);
            if file.sync_data().is_err() {
                // What the system still holds is not known: nothing is accepted any more.
                self.done.send_replace(None);
                return;
            }
            done = rows;
            self.done.send_replace(Some(done));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Seek;

    use super::*;

    fn open(path: &Path) -> (Journal, Vec<(String, Place)>, u64) {
        let mut rows = vec![];
        let (journal, damaged) = Journal::open(path, |row: String, place| {
            rows.push((row, place));
            true
        })
        .unwrap();
        (journal, rows, damaged)
    }

    fn texts(rows: &[(String, Place)]) -> Vec<&str> {
        rows.iter().map(|(row, _)| row.as_str()).collect()
    }

    #[test]
    fn rows_come_back_and_half_a_row_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let (mut journal, rows, _) = open(&path);
        assert!(rows.is_empty());
        for text in ["one", "two\nlines", "three"] {
            let (place, _) = journal.append(&text).unwrap();
            assert_eq!(place.read::<String>().unwrap(), text);
        }
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        for cut in 1..20 {
            std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            let (mut journal, rows, damaged) = open(&path);
            assert_eq!((texts(&rows), damaged), (vec!["one", "two\nlines"], 0), "{cut}");
            journal.append(&"four").unwrap();
            drop(journal);
            assert_eq!(texts(&open(&path).1), ["one", "two\nlines", "four"]);
        }
    }

    #[test]
    fn a_damaged_row_is_left_out_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let (mut journal, ..) = open(&path);
        ["one", "two", "three"].iter().for_each(|text| drop(journal.append(text).unwrap()));
        drop(journal);
        let text = std::fs::read_to_string(&path).unwrap().replace("two", "tvo");
        std::fs::write(&path, text).unwrap();
        let (_, rows, damaged) = open(&path);
        assert_eq!((texts(&rows), damaged), (vec!["one", "three"], 1));
    }

    #[test]
    fn a_journal_with_a_row_of_a_later_kforge_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let (mut journal, ..) = open(&path);
        journal.append(&"one").unwrap();
        journal.append(&2).unwrap();
        drop(journal);
        let mut whole = std::fs::read(&path).unwrap();
        whole.extend(b"half a row");
        std::fs::write(&path, &whole).unwrap();
        let opened = Journal::open(&path, |_: String, _| true);
        assert!(matches!(opened.err(), Some(OpenError::Unknown)));
        assert!(matches!(Journal::open(&path, |_: u32, _| false).err(), Some(OpenError::Unknown)));
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }

    #[test]
    fn a_file_that_is_written_again_has_the_rows_that_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let (mut journal, ..) = open(&path);
        let places: Vec<Place> = ["one", "two", "three"].iter().map(|text| journal.append(text).unwrap().0).collect();
        let kept = [Kept::Copy(&places[2]), Kept::New(&"new"), Kept::Copy(&places[0])];
        let mut new = Replacement::write(journal.end(), kept).unwrap();
        // Rows that are added meanwhile are copied, some before the end and some at it.
        let meanwhile = ["four", "five"].map(|text| {
            let (place, _) = journal.append(&text).unwrap();
            if text == "four" {
                assert!(new.catch_up(&journal.end()).unwrap() > 0);
            }
            place
        });
        let moved = journal.replace(new).unwrap();
        let read = |place: &Place| moved.place(place).read::<String>().unwrap();
        assert_eq!([&places[2], &places[0], &meanwhile[0], &meanwhile[1]].map(read), ["three", "one", "four", "five"]);
        for place in [&places[0], &meanwhile[1]] {
            assert!(Arc::ptr_eq(&moved.place(place).file, &journal.file));
        }
        // Whoever holds a place of the old file can still read it, also of what was not kept.
        assert_eq!([&places[1], &places[0]].map(|place| place.read::<String>().unwrap()), ["two", "one"]);
        assert_eq!(read(&places[1]), "two");
        journal.append(&"six").unwrap();
        assert_eq!(journal.bytes(), std::fs::metadata(&path).unwrap().len());
        drop(journal);
        assert_eq!(texts(&open(&path).1), ["three", "new", "one", "four", "five", "six"]);
    }

    #[test]
    fn a_file_that_replaced_the_other_takes_no_rows_if_its_folder_was_not_synced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let (mut journal, ..) = open(&path);
        let (place, _) = journal.append(&"one").unwrap();
        journal.sync_folder = |_| Err(io::Error::other("the folder cannot be synced"));
        let kept: [Kept<'_, &str>; 1] = [Kept::Copy(&place)];
        let new = Replacement::write(journal.end(), kept).unwrap();
        assert!(journal.replace(new).is_err() && !journal.works());
        journal.append(&"two").unwrap_err();
        assert_eq!(place.read::<String>().unwrap(), "one");
        drop(journal);
        assert_eq!(texts(&open(&path).1), ["one"]);
    }

    #[test]
    fn a_row_after_a_file_that_could_not_be_replaced_is_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        let (path, moved) = (dir.path().join("folder/journal"), dir.path().join("moved"));
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        let (mut journal, ..) = open(&path);
        let (place, _) = journal.append(&"one").unwrap();
        let kept = || -> [Kept<'_, &str>; 1] { [Kept::Copy(&place)] };
        let new = Replacement::write(journal.end(), kept()).unwrap();
        std::fs::rename(dir.path().join("folder"), &moved).unwrap();
        assert!(journal.replace(new).is_err());
        assert!(Replacement::write(journal.end(), kept()).is_err());
        assert!(journal.works());
        journal.append(&"two").unwrap();
        drop(journal);
        assert_eq!(texts(&open(&moved.join("journal")).1), ["one", "two"]);
    }

    #[test]
    fn a_full_disk_is_known_until_a_row_can_be_written() {
        use rustix::fs::{MemfdFlags, SealFlags};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let (mut journal, ..) = open(&path);
        journal.append(&"one").unwrap();
        // A file that cannot grow, of the same length.
        let full = File::from(rustix::fs::memfd_create("full", MemfdFlags::ALLOW_SEALING).unwrap());
        full.set_len(journal.bytes()).unwrap();
        (&full).seek(io::SeekFrom::End(0)).unwrap();
        rustix::fs::fcntl_add_seals(&full, SealFlags::GROW).unwrap();
        let file = std::mem::replace(&mut journal.file, Arc::new(full));
        journal.append(&"two").unwrap_err();
        assert!(!journal.works());
        journal.append(&"two").unwrap_err();
        journal.file = file;
        assert!(!journal.works());
        journal.append(&"three").unwrap();
        assert!(journal.works());
        drop(journal);
        assert_eq!(texts(&open(&path).1), ["one", "three"]);
    }

    #[test]
    fn what_is_to_be_synced_is_and_whoever_waits_sees_it() {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, ..) = open(&dir.path().join("journal"));
        let mut synced = journal.synced();
        let (_, rows) = journal.append(&"one").unwrap();
        journal.sync();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert!(runtime.block_on(synced.reaches(rows)));
        drop(journal);
        assert!(!runtime.block_on(synced.reaches(rows + 1)), "the journal is closed");
    }
}
