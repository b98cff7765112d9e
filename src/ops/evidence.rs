//! Exports, imports, lists and signs evidence: observations of devices.

pub mod sign;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::event::{Blocked, Event, Warning};
use crate::{Error, Session};
use kforge_engine::action::of_binary;
use kforge_engine::blobs::Store;
use kforge_engine::evidence::{Index, IndexedRecord};
use kforge_engine::lock::Mode;
use kforge_foundation::base::Digest;
use kforge_foundation::base::files::write_if_changed;
use kforge_pipeline::plan::Goal;
use kforge_pipeline::release::Refused;
use kforge_pipeline::release::archive::{self, EXTENSION, Unpacked};
use kforge_pipeline::release::bundle::Step;
use kforge_pipeline::release::committed::FOLDER;
use kforge_pipeline::release::evidence_list::Holding;
use kforge_pipeline::release::signed::SignedDocuments;
use kforge_pipeline::release::transfer::{self, RecordChoice};
use kforge_pipeline::release::trust::Trust;
use kforge_pipeline::release::{Bundle, bundle};
use kforge_project::workspace::select::SelectionArgs;
use kforge_types::record::StepKind;
use kforge_types::record::event::Labels;

/// Why evidence cannot be exported, imported or listed.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// Steps must run before all questions are known.
    #[error(
        "the observations that the plan needs are not known yet: {} would run first, such as `{}`",
        kforge_foundation::base::count(open.len() as u64, "step"),
        open.first().map_or("", String::as_str)
    )]
    Open {
        /// These steps.
        open: Vec<String>,
    },
    /// Nothing was observed.
    #[error("there is no evidence to export: no device has been observed for the selection")]
    Nothing,
    /// A bundle that was just created cannot be read: a bug.
    #[error("BUG: the bundle is wrong: {0}")]
    Unreadable(Refused),
    /// A bundle cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// Its file, as the user named it.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A bundle is refused.
    #[error("`{}` is refused: {why}", path.display())]
    Refused {
        /// Its file, as the user named it.
        path: PathBuf,
        /// The reason.
        why: Refused,
    },
    /// The contents of a bundle cannot be stored.
    #[error("cannot import `{}`: {source}", path.display())]
    NotKept {
        /// Its file, as the user named it.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// The request for an export.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportRequest {
    /// The selection.
    pub words: SelectionArgs,
    /// The bundle to write; `evidence/PRODUCT.kfe` beside the root manifest if none is named.
    pub output: Option<PathBuf>,
    /// Export every record of a question, not only the one that answers it here.
    pub all: bool,
}

/// The result of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The bundle.
    pub path: PathBuf,
    /// The number of records in the bundle, by kind of step.
    pub records: BTreeMap<StepKind, u64>,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Writes the evidence for the current plan into a bundle.
///
/// # Errors
/// [`EvidenceError`], or the plan cannot be made.
pub fn export(session: &Session, request: &ExportRequest) -> Result<Exported, Error> {
    let which = if request.all { RecordChoice::All } else { RecordChoice::Answering };
    let (gathered, root) = session.look(&request.words, Goal::Build)?.plan(session, |opened, ready| {
        let asked = ready.with_services(session, opened, |services| {
            kforge_engine::questions(ready.graph.clone(), &ready.options, services)
        });
        if !asked.open.is_empty() {
            return Err(Error::from(EvidenceError::Open { open: asked.open }));
        }
        let standings = ready.champions(&asked).into_iter().map(|c| c.standing).collect();
        let gathered = transfer::gather(&asked, standings, &ready.evidence(opened), &*ready.leaves, which)?;
        Ok((gathered, opened.workspace.root.clone()))
    })?;
    if gathered.bundle.records().count() == 0 {
        return Err(EvidenceError::Nothing.into());
    }
    if !gathered.missing.is_empty() {
        session.reporter.warn(Warning::NotBrought { steps: gathered.missing });
    }
    let path = match &request.output {
        Some(path) => session.cwd.join(path),
        None => root.join(FOLDER).join(format!("{}.{EXTENSION}", name_of(&gathered.bundle))),
    };
    let file = archive::encode(&gathered.bundle).map_err(EvidenceError::Unreadable)?;
    write_if_changed(&path, &file).map_err(Error::write(&path))?;
    Ok(Exported { path, records: transfer::counts(&gathered.bundle), bytes: file.len() as u64 })
}

/// The default name of a bundle: the name of its only product, in lower case.
fn name_of(bundle: &Bundle) -> String {
    let products: BTreeSet<&str> = bundle.records().map(|r| r.provenance.device.product.as_str()).collect();
    let mut products = products.into_iter();
    match (products.next(), products.next()) {
        (Some(product), None) => {
            let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
            product.chars().map(plain).collect()
        }
        _ => "devices".into(),
    }
}

/// Opens the bundle in a file.
fn open(session: &Session, path: &Path) -> Result<Unpacked, EvidenceError> {
    let place = session.cwd.join(path);
    std::fs::File::open(&place).map_err(|source| EvidenceError::Read { path: path.into(), source })?;
    let unpacked = archive::bytes(&place).and_then(|bytes| archive::unpack(&bytes, archive::LIMITS));
    unpacked.map_err(|why| EvidenceError::Refused { path: path.into(), why })
}

/// The result of importing a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Its file, as the user named it.
    pub path: PathBuf,
    /// The number of new records.
    pub added: u64,
    /// The number of records that were already stored.
    pub held: u64,
    /// The devices of all these records.
    pub devices: Vec<String>,
    /// Who signed the bundle, by a key that counts here now.
    pub signer: Option<String>,
}

/// Imports bundles into the home, where builds of every workspace use them. Reports each bundle after its import.
///
/// # Errors
/// [`EvidenceError`], or the home cannot be used. If any bundle is refused, nothing is imported.
pub fn import(session: &Session, files: &[PathBuf]) -> Result<Vec<Imported>, Error> {
    // Check all bundles before storing the contents of any.
    let bundles: Vec<(&PathBuf, Unpacked)> =
        files.iter().map(|path| Ok((path, open(session, path)?))).collect::<Result<_, EvidenceError>>()?;
    let trust = session.trusted_here(None)?;
    let home = session.home()?;
    let mut blocked = || session.reporter.event(&Event::Blocked(Blocked::Cache));
    // A collection of the cache must not remove contents before their records are stored.
    let lock = home.lock_cache(Mode::Shared, session.wait(&mut blocked));
    let _lock = lock.map_err(Error::lock(Blocked::Cache))?;
    let store = Arc::new(Store::new(&home));
    let index = Index::new(&home, store.clone());
    let mut all = vec![];
    for (path, unpacked) in bundles {
        let signer = unpacked.signature.as_ref().map(|signature| trust.judge(&unpacked.document, signature));
        if let Some(Err(why)) = &signer {
            let name = format!("`{}`", path.display());
            session.reporter.warn(Warning::Distrusted { name, why: why.clone() });
        }
        let signer = signer.and_then(Result::ok).map(|signer| signer.principals);
        let name = path.file_name().map_or_else(|| "bundle".into(), |name| name.to_string_lossy().into_owned());
        let added = transfer::import(&unpacked, &name, &home, &index, &*store)
            .map_err(|source| EvidenceError::NotKept { path: path.clone(), source })?;
        let bundle = &unpacked.bundle;
        let held = bundle.records().count() as u64 - added;
        let devices: BTreeSet<String> = bundle.records().map(|r| r.provenance.device.to_string()).collect();
        let devices = devices.into_iter().collect();
        let imported = Imported { path: path.clone(), added, held, devices, signer };
        session.reporter.event(&Event::Imported(&imported));
        all.push(imported);
    }
    Ok(all)
}

/// The request for a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// The selection, if there is a current workspace.
    pub words: SelectionArgs,
    /// The bundle to list; if none is named, the records of the home and the workspace.
    pub file: Option<PathBuf>,
    /// List all stored records, not only those that answer the current plan.
    pub all: bool,
}

/// A list of records.
#[derive(Debug)]
pub struct Listed {
    /// The records, by step and time.
    pub held: Vec<Holding>,
    /// The number of further records, which belong to no step that is known here.
    pub more: usize,
    /// Whether steps must run before all questions are known.
    pub open: bool,
}

/// Lists observations with their device and time.
///
/// # Errors
/// [`EvidenceError`], or the plan cannot be made.
pub fn list(session: &Session, request: &ListRequest) -> Result<Listed, Error> {
    let Held { seen, askers, named, open } = match &request.file {
        Some(path) => of_bundle(open(session, path)?, path, &*session.trusted_here(None)?),
        None if session.has_manifest() || request.words != SelectionArgs::default() => {
            of_workspace(session, &request.words)?
        }
        None => {
            let home = session.home()?;
            let signed = Arc::new(SignedDocuments::new(&home, session.trusted_here(None)?));
            let index = Index::new(&home, Arc::new(Store::new(&home))).signed_by(signed);
            Held { seen: index.all()?, ..Held::default() }
        }
    };
    let all = seen.len();
    let asked = |seen: &IndexedRecord| askers.contains_key(&seen.record.question);
    let shown = seen.into_iter().filter(|seen| request.all || !named || asked(seen));
    let mut held: Vec<Holding> = shown
        .map(|seen| {
            let asked = askers.get(&seen.record.question).cloned();
            Holding::new(seen, asked)
        })
        .collect();
    held.sort_by(|a, b| {
        let of = |h: &Holding| (h.steps.first().map(|s| s.id.clone()), h.provenance.measured_at.clone(), h.record);
        of(a).cmp(&of(b))
    });
    Ok(Listed { more: all - held.len(), held, open })
}

/// The steps that ask each question, by its key.
type Askers = BTreeMap<Digest, (StepKind, Vec<Step>)>;

/// Records, and the steps that ask their questions.
#[derive(Default)]
struct Held {
    seen: Vec<IndexedRecord>,
    askers: Askers,
    /// Whether to show only records whose question a known step asks.
    named: bool,
    /// Whether steps must run before all questions are known. If so, `askers` also holds steps that bundles name.
    open: bool,
}

/// The records of a bundle, with the steps of the workspace in which it was created.
fn of_bundle(unpacked: Unpacked, path: &Path, trust: &Trust) -> Held {
    let Unpacked { bundle, document, signature, .. } = unpacked;
    let signer = signature.and_then(|signature| trust.judge(&document, &signature).ok()).map(|s| s.principals);
    let origin = path.display().to_string();
    let (mut seen, mut askers) = (vec![], Askers::new());
    for question in bundle.questions {
        askers.insert(question.key, (question.spec.kind, question.steps));
        for record in question.records {
            let (digest, origin, signer) = (bundle::digest(&record), origin.clone(), signer.clone());
            seen.push(IndexedRecord { digest, record, origin, signer });
        }
    }
    Held { seen, askers, named: true, open: false }
}

/// The records of the home and of the bundles in the repository, with the steps of the current plan.
fn of_workspace(session: &Session, words: &SelectionArgs) -> Result<Held, Error> {
    session.look(words, Goal::Build)?.plan(session, |opened, ready| {
        let asked = ready.with_services(session, opened, |services| {
            kforge_engine::questions(ready.graph.clone(), &ready.options, services)
        });
        let mut askers = Askers::new();
        for kforge_engine::Question { node, spec, .. } in asked.asked {
            let Some(spec) = spec else { continue };
            let (_, steps) = askers.entry(spec.key()).or_insert_with(|| (node.kind, vec![]));
            steps.push(Step { id: node.id, labels: node.labels });
        }
        for kforge_engine::Compiled { node, spec, .. } in asked.made {
            let question = of_binary(&spec, &*ready.leaves)?;
            let Some(question) = question else { continue };
            let (_, steps) = askers.entry(question.key()).or_insert_with(|| (node.kind, vec![]));
            steps.push(Step { id: node.id, labels: node.labels });
        }
        let open = !asked.open.is_empty();
        if open {
            // The plan may ask further questions that are not known yet. For these, use the steps that bundles name, if they belong to the selection.
            let nodes = || ready.graph.nodes().map(|node| &node.labels);
            let kernels: BTreeSet<_> = nodes().map(|l| (&l.package, &l.target, &l.kernel)).collect();
            let targets: BTreeSet<_> = nodes().map(|l| (&l.package, &l.target)).collect();
            let planned = |l: &Labels| match &l.kernel {
                Some(_) => kernels.contains(&(&l.package, &l.target, &l.kernel)),
                // A question about only a device belongs to no kernel.
                None => targets.contains(&(&l.package, &l.target)),
            };
            for (key, (kind, steps)) in &ready.known_as {
                let steps: Vec<Step> = steps.iter().filter(|step| planned(&step.labels)).cloned().collect();
                if !steps.is_empty() {
                    askers.entry(*key).or_insert((*kind, steps));
                }
            }
        }
        let cache = ready.evidence(opened);
        let mut seen = cache.index().all()?;
        let mut held: BTreeMap<Digest, usize> = seen.iter().enumerate().map(|(at, s)| (s.digest, at)).collect();
        for beside in cache.index().beside() {
            match held.get(&beside.digest) {
                // Who signed one copy of a record signed the record.
                Some(at) => seen[*at].signer = seen[*at].signer.take().or(beside.signer),
                None => {
                    held.insert(beside.digest, seen.len());
                    seen.push(beside);
                }
            }
        }
        Ok(Held { seen, askers, named: true, open })
    })
}
