//! From answered questions to a bundle, and from a bundle into the index. Knows stores by their traits; does not know how questions were found.

use std::collections::BTreeMap;
use std::io;

use super::archive::Unpacked;
use super::bundle::{BINARY, Bundle, Question, Standing, Step};
use super::signed;
use kforge_engine::Blobs;
use kforge_engine::action::of_binary;
use kforge_engine::evidence::{EvidenceCache, IndexedRecord, Record};
use kforge_engine::home::Home;
use kforge_foundation::base::Digest;
use kforge_types::record::{Provenance, StepKind};

/// Which records of a question are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordChoice {
    /// The record that answers here, so that an importing machine decides as this one does.
    Answering,
    /// Every record, including those of other devices and earlier measurements.
    All,
}

/// A bundle that was gathered from a plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GatheredBundle {
    /// The bundle.
    pub bundle: Bundle,
    /// Steps whose question has no record or is unknown.
    pub missing: Vec<String>,
}

/// Gathers the records that answer the questions of a plan, the binaries that they are about, the contents that all of them name, and the champions that they
/// timed.
///
/// # Errors
/// The index or the store cannot be read.
pub fn gather(
    asked: &kforge_engine::Questions,
    champions: Vec<Standing>,
    cache: &EvidenceCache,
    blobs: &dyn Blobs,
    which: RecordChoice,
) -> io::Result<GatheredBundle> {
    let mut found: BTreeMap<Digest, Question> = BTreeMap::new();
    let mut out = GatheredBundle::default();
    for kforge_engine::Question { node, spec, .. } in &asked.asked {
        let step = Step { id: node.id.clone(), labels: node.labels.clone() };
        let Some(spec) = spec else {
            out.missing.push(step.id);
            continue;
        };
        let key = spec.key();
        let seen: Vec<IndexedRecord> = match which {
            RecordChoice::Answering => cache.seen(&key, spec, node.product.as_deref())?.into_iter().collect(),
            RecordChoice::All => cache.index().records(&key)?,
        };
        if seen.is_empty() {
            out.missing.push(step.id);
            continue;
        }
        let new = || Question { key, spec: spec.clone(), steps: vec![], records: vec![] };
        let question = found.entry(key).or_insert_with(new);
        question.steps.push(step);
        for IndexedRecord { record, .. } in seen {
            take(&mut out.bundle.contents, &record, blobs)?;
            // Steps of two targets may ask the same question, and two devices may have answered.
            if !question.records.contains(&record) {
                question.records.push(record);
            }
        }
    }
    binaries(&asked.made, &mut found, &mut out.bundle.contents, blobs)?;
    out.bundle.champions = champions.into_iter().filter(|c| found.contains_key(&c.bench)).collect();
    out.bundle.questions = found.into_values().collect();
    Ok(out)
}

/// Adds the compilations of the binaries in the questions: another compilation of the same source may give another binary, which was never observed. Each
/// compilation gets the provenance of the first observation of its binary.
fn binaries(
    made: &[kforge_engine::Compiled],
    found: &mut BTreeMap<Digest, Question>,
    contents: &mut BTreeMap<Digest, Vec<u8>>,
    blobs: &dyn Blobs,
) -> io::Result<()> {
    let mut observed: BTreeMap<Digest, &Provenance> = BTreeMap::new();
    let mut seen: Vec<(&Digest, &Provenance)> = vec![];
    for question in found.values() {
        let read = question.spec.inputs.values().filter_map(|input| input.digest.as_ref());
        seen.extend(read.flat_map(|input| question.records.iter().map(move |record| (input, &record.provenance))));
    }
    seen.sort_by(|a, b| (&a.1.measured_at, &a.1.driver).cmp(&(&b.1.measured_at, &b.1.driver)));
    for (input, provenance) in seen {
        observed.entry(*input).or_insert(provenance);
    }
    let mut compiled: BTreeMap<Digest, Question> = BTreeMap::new();
    for kforge_engine::Compiled { node, spec, result } in made {
        let binary = result.outputs.get(BINARY).and_then(|binary| observed.get(binary));
        let Some(provenance) = binary.map(|p| Provenance::clone(p)) else { continue };
        let Some(spec) = of_binary(spec, blobs)? else { continue };
        let key = spec.key();
        let record = Record { question: key, provenance, result: result.clone() };
        take(contents, &record, blobs)?;
        let new = || Question { key, spec, steps: vec![], records: vec![record] };
        compiled.entry(key).or_insert_with(new).steps.push(Step { id: node.id.clone(), labels: node.labels.clone() });
    }
    found.extend(compiled);
    Ok(())
}

/// Adds the contents that a record names.
fn take(contents: &mut BTreeMap<Digest, Vec<u8>>, record: &Record, blobs: &dyn Blobs) -> io::Result<()> {
    for digest in record.result.outputs.values().filter(|digest| !contents.contains_key(digest)).collect::<Vec<_>>() {
        let lost = || io::Error::other(format!("content {} of a record is not in the store", digest.short()));
        let bytes = blobs.get(digest)?.ok_or_else(lost)?;
        contents.insert(*digest, bytes);
    }
    Ok(())
}

/// Puts a bundle into the home: contents first, then the records that name them. Returns the number of records that were new. If the bundle is signed, its
/// document and its signature are kept, too: whether the signature counts is decided by each build that uses a record.
///
/// # Errors
/// The home cannot be written. Every record that was written is complete; importing again adds the rest.
pub fn import(
    unpacked: &Unpacked,
    name: &str,
    home: &Home,
    cache: &kforge_engine::evidence::Index,
    blobs: &dyn Blobs,
) -> io::Result<u64> {
    let Unpacked { bundle, document, signature, .. } = unpacked;
    for bytes in bundle.contents.values() {
        blobs.put(bytes)?;
    }
    let signed = signature.as_ref().map(|signature| signed::keep(home, document, signature)).transpose()?;
    cache.import(bundle.records(), name, &bundle.about(), signed.as_deref())
}

/// The number of records of each kind in a bundle.
pub fn counts(bundle: &Bundle) -> BTreeMap<StepKind, u64> {
    let mut counts = BTreeMap::new();
    for question in &bundle.questions {
        *counts.entry(question.spec.kind).or_default() += question.records.len() as u64;
    }
    counts
}
