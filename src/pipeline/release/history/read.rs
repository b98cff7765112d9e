//! Reads the bundles of a history, each once, newest commit first, and puts the times of champions in order. Knows the limits.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use super::super::archive;
use super::super::bundle::{self, BINARY, Question};
use super::super::comparison::Seat;
use super::super::revision::{Git, RevisionError};
use super::super::trust::Trust;
use super::walk::{Commit, Entry};
use super::{Cut, History, HistoryCommit, HistoryPoint, HistorySeries, OddBundle, PointChange};
use kforge_engine::evidence::Record;
use kforge_foundation::base::Digest;
use kforge_numerics::measure::interval::median_interval;
use kforge_numerics::measure::stats::median;
use kforge_types::record::timing::BenchObserved;
use kforge_types::record::{FORMAT_VERSION, Standing};

/// How much of a history is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Commits that changed a bundle.
    pub commits: usize,
    /// Different bundles.
    pub bundles: usize,
    /// The size of all bundles in bytes.
    pub bytes: u64,
}

impl Limits {
    /// What a page can show, and what a machine reads within seconds.
    pub const PAGE: Limits = Limits { commits: 100, bundles: 500, bytes: 256 << 20 };
}

/// Why there is no history.
#[derive(Debug, thiserror::Error)]
pub enum NoHistory {
    /// The workspace is in no repository that git can use.
    #[error("a history comes from git, and `{folder}` is in no repository that git can use: {why}")]
    NoRepository {
        /// The workspace's root.
        folder: String,
        /// git's error.
        #[source]
        why: RevisionError,
    },
    /// The repository has no commit.
    #[error("a history comes from git, and the repository has no commit")]
    NoCommit,
    /// No commit holds a bundle.
    #[error("no commit holds a bundle of evidence beside a manifest of this workspace")]
    NoBundle,
    /// The repository cannot be read.
    #[error("cannot read the history of bundles: {0}")]
    Git(#[from] RevisionError),
}

/// A time of a champion in a bundle.
#[derive(Debug, Clone)]
struct Timed {
    place: Place,
    variant: String,
    median_ns: f64,
    interval_ns: Option<(f64, f64)>,
    samples: u64,
    binary: Option<Digest>,
    record: Digest,
    measured: (jiff::Timestamp, String),
    driver: String,
    kforge: String,
}

/// What makes times comparable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    seat: Seat,
    device: String,
    hot: bool,
}

/// A bundle that was read, or why it was not.
type Content = Result<Read, String>;

/// What a history needs of a bundle.
struct Read {
    times: Vec<Timed>,
    standing: Standing,
    signer: Option<String>,
    /// Why its signature does not count.
    distrusted: Option<String>,
}

/// The history of the workspace with this root: of the commit `HEAD` and its first parents. `trust` says whose signatures count. Bundles with records from
/// after `now` are not read.
///
/// # Errors
/// [`NoHistory`].
pub fn read(
    git: &Git<'_>,
    root: &Path,
    trust: &Trust,
    limits: Limits,
    now: jiff::Timestamp,
) -> Result<History, NoHistory> {
    let no_repository = |why| NoHistory::NoRepository { folder: root.display().to_string(), why };
    let top = git.top(root).map_err(no_repository)?;
    let head = match git.commit(root, "HEAD") {
        Err(RevisionError::NotCommit { .. }) => return Err(NoHistory::NoCommit),
        found => found?,
    };
    let shallow = git.is_shallow(root)?;
    let mut found = git.changes(root, &head, limits.commits + 1)?;
    let mut cut = (found.len() > limits.commits).then_some(Cut::Commits(limits.commits as u64));
    found.truncate(limits.commits);
    let empty = git.empty_tree(root)?;
    let mut contents = Contents { git, root, trust, limits, now, bytes: 0, read: HashMap::new() };
    let mut kept: Vec<(Commit, Vec<Entry>)> = vec![];
    for commit in found {
        let entries = git.bundles(root, &commit.id, &empty)?;
        let reached = contents.take_in(&entries)?;
        // The newest commit is shown as far as it was read; an older one would lack champions that it had.
        if reached.is_none() || kept.is_empty() {
            kept.push((commit, entries));
        }
        if reached.is_some() {
            cut = reached;
            break;
        }
    }
    kept.reverse();
    // A commit may have changed only bundles that are beside no manifest.
    kept.dedup_by(|later, earlier| later.1 == earlier.1);
    if kept.first().is_some_and(|(_, entries)| entries.is_empty()) {
        kept.remove(0);
    }
    if kept.is_empty() {
        return Err(NoHistory::NoBundle);
    }
    let real = |path: &Path| path.canonicalize().ok();
    let below =
        real(root).zip(real(Path::new(&top))).and_then(|(root, top)| Some(root.strip_prefix(top).ok()?.to_owned()));
    let folder = below.filter(|below| !below.as_os_str().is_empty()).map(|below| below.display().to_string());
    let (unread, distrusted) = odd(&kept, &contents);
    Ok(History {
        format_version: FORMAT_VERSION,
        kforge: env!("CARGO_PKG_VERSION").into(),
        head,
        folder,
        shallow,
        cut,
        series: series(&kept, &contents),
        commits: kept.into_iter().map(described).collect(),
        unread,
        distrusted,
    })
}

fn described((commit, entries): (Commit, Vec<Entry>)) -> HistoryCommit {
    let at = jiff::Timestamp::from_second(commit.seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    HistoryCommit { commit: commit.id, at: at.to_string(), subject: commit.subject, bundles: entries.len() as u64 }
}

/// The bundles that were read so far, by the names of their blobs.
struct Contents<'a> {
    git: &'a Git<'a>,
    root: &'a Path,
    trust: &'a Trust,
    limits: Limits,
    now: jiff::Timestamp,
    /// The size of those that were read.
    bytes: u64,
    read: HashMap<String, Content>,
}

impl Contents<'_> {
    /// Reads the bundles of a commit that were not read before. Returns the limit, if one keeps it from reading all of them.
    fn take_in(&mut self, entries: &[Entry]) -> Result<Option<Cut>, RevisionError> {
        let fresh: BTreeSet<&str> = entries
            .iter()
            .filter(|entry| entry.is_file && !self.read.contains_key(&entry.blob))
            .map(|entry| entry.blob.as_str())
            .collect();
        let fresh: Vec<&str> = fresh.into_iter().collect();
        if fresh.is_empty() {
            return Ok(None);
        }
        let sizes = self.git.sizes(self.root, &fresh)?;
        for (blob, size) in fresh.into_iter().zip(sizes) {
            if self.read.len() >= self.limits.bundles {
                return Ok(Some(Cut::Bundles(self.limits.bundles as u64)));
            }
            let content = match size {
                None => Err("this clone does not have its contents".to_string()),
                Some(size) if size > archive::LIMITS.file => {
                    Err(format!("it has {size} bytes, more than {} MiB", archive::LIMITS.file >> 20))
                }
                Some(size) if self.bytes + size > self.limits.bytes => return Ok(Some(Cut::Bytes(self.limits.bytes))),
                Some(size) => {
                    self.bytes += size;
                    self.content(&self.git.blob(self.root, blob, size)?)
                }
            };
            self.read.insert(blob.to_string(), content);
        }
        Ok(None)
    }

    fn content(&self, bytes: &[u8]) -> Content {
        let unpacked = archive::unpack(bytes, archive::LIMITS);
        let unpacked = unpacked.and_then(|unpacked| unpacked.bundle.check_times(self.now).map(|()| unpacked));
        let archive::Unpacked { bundle, document, signature, .. } = unpacked.map_err(|why| why.to_string())?;
        let judged = signature.map(|signature| self.trust.judge(&document, &signature));
        let (signer, distrusted) = match judged {
            None => (None, None),
            Some(Ok(signer)) => (Some(signer.principals), None),
            Some(Err(why)) => (None, Some(why.to_string())),
        };
        let standing = if signer.is_some() { Standing::Signed } else { Standing::Claimed };
        let questions: HashMap<Digest, &Question> = bundle.questions.iter().map(|one| (one.key, one)).collect();
        let mut times = vec![];
        for champion in &bundle.champions {
            let Some(question) = questions.get(&champion.bench) else { continue };
            let binary = question.spec.inputs.get(BINARY).and_then(|input| input.digest);
            for record in &question.records {
                let observed = record.result.outputs.get("observation").and_then(|digest| bundle.contents.get(digest));
                let observed = observed.and_then(|bytes| serde_json::from_slice::<BenchObserved>(bytes).ok());
                let series = observed.and_then(|seen| if champion.hot { seen.hot } else { seen.cold });
                let samples = series.map(|series| series.samples_ns).unwrap_or_default();
                times.extend(timed(Seat::of(champion), champion.hot, &champion.variant, binary, record, &samples));
            }
        }
        Ok(Read { times, standing, signer, distrusted })
    }

    fn of(&self, entry: &Entry) -> Option<&Read> {
        self.read.get(&entry.blob).filter(|_| entry.is_file)?.as_ref().ok()
    }
}

/// A time of a champion; none without samples.
fn timed(
    seat: Seat,
    hot: bool,
    variant: &str,
    binary: Option<Digest>,
    record: &Record,
    samples: &[f64],
) -> Option<Timed> {
    let from = &record.provenance;
    let is_sound = !samples.is_empty() && samples.iter().all(|ns| ns.is_finite() && *ns > 0.0);
    is_sound.then(|| Timed {
        place: Place { seat, device: from.device.to_string(), hot },
        variant: variant.to_string(),
        median_ns: median(samples),
        interval_ns: median_interval(samples),
        samples: samples.len() as u64,
        binary,
        record: bundle::digest(record),
        measured: (from.measured_at.parse().unwrap_or(jiff::Timestamp::MIN), from.measured_at.clone()),
        driver: from.driver.clone(),
        kforge: from.kforge.clone(),
    })
}

/// The bundles that were not read, and those whose signature does not count, each with the oldest commit that holds it.
fn odd(kept: &[(Commit, Vec<Entry>)], contents: &Contents<'_>) -> (Vec<OddBundle>, Vec<OddBundle>) {
    let (mut unread, mut distrusted, mut seen) = (vec![], vec![], BTreeSet::new());
    for (commit, entries) in kept {
        for entry in entries.iter().filter(|entry| seen.insert((&entry.path, &entry.blob))) {
            let of = |why: String| OddBundle { commit: commit.id.clone(), path: entry.path.clone(), why };
            match contents.read.get(&entry.blob).filter(|_| entry.is_file) {
                _ if !entry.is_file => unread.push(of("it is no file".into())),
                None => unread.push(of("a limit was reached before it".into())),
                Some(Err(why)) => unread.push(of(why.clone())),
                Some(Ok(read)) => distrusted.extend(read.distrusted.clone().map(of)),
            }
        }
    }
    (unread, distrusted)
}

/// A series as far as it was followed.
struct Followed {
    series: HistorySeries,
    /// Whether the last commit had no such time.
    absent: bool,
}

/// The times of champions over commits, oldest first.
fn series(kept: &[(Commit, Vec<Entry>)], contents: &Contents<'_>) -> Vec<HistorySeries> {
    let mut all: BTreeMap<Place, Followed> = BTreeMap::new();
    for (commit, entries) in kept {
        let mut now = at(&commit.id, entries, contents);
        for (place, followed) in &mut all {
            match now.remove(place) {
                Some(point) => followed.series.points.extend(followed.next(point)),
                None if followed.absent => continue,
                None => followed.series.absent.push(commit.id.clone()),
            }
            followed.absent = followed.series.absent.last() == Some(&commit.id);
        }
        for (place, point) in now {
            let Place { seat, device, hot } = place.clone();
            let series = HistorySeries { seat, device, hot, points: vec![point], absent: vec![] };
            all.insert(place, Followed { series, absent: false });
        }
    }
    all.into_values().map(|followed| followed.series).collect()
}

impl Followed {
    /// The point as the next of the series; none if it differs in nothing.
    fn next(&self, point: HistoryPoint) -> Option<HistoryPoint> {
        let last = self.series.points.last()?;
        let change = match () {
            () if last.variant != point.variant => PointChange::Champion,
            () if last.binary != point.binary => PointChange::Code,
            () if last.record != point.record => PointChange::Time,
            () if (last.standing, &last.signer) != (point.standing, &point.signer) => PointChange::Standing,
            () if self.absent => PointChange::Back,
            () => return None,
        };
        Some(HistoryPoint { change, ..point })
    }
}

/// The champions of a commit.
fn at(commit: &str, entries: &[Entry], contents: &Contents<'_>) -> BTreeMap<Place, HistoryPoint> {
    let mut best: BTreeMap<&Place, (&Read, &Entry, &Timed)> = BTreeMap::new();
    for entry in entries {
        let Some(read) = contents.of(entry) else { continue };
        for time in &read.times {
            let order = |(read, entry, time): &(&Read, &Entry, &Timed)| {
                // Of equal records, that of the first path counts.
                (read.standing, time.measured.0, time.record, std::cmp::Reverse(entry.path.clone()))
            };
            let this = (read, entry, time);
            match best.get(&time.place) {
                Some(other) if order(other) >= order(&this) => {}
                _ => drop(best.insert(&time.place, this)),
            }
        }
    }
    let point = |(read, entry, time): (&Read, &Entry, &Timed)| HistoryPoint {
        commit: commit.to_string(),
        variant: time.variant.clone(),
        change: PointChange::First,
        median_ns: time.median_ns,
        interval_ns: time.interval_ns,
        samples: time.samples,
        binary: time.binary,
        measured_at: time.measured.1.clone(),
        driver: time.driver.clone(),
        kforge: time.kforge.clone(),
        bundle: entry.path.clone(),
        record: time.record,
        standing: read.standing,
        signer: read.signer.clone(),
    };
    best.into_iter().map(|(place, found)| (place.clone(), point(found))).collect()
}
