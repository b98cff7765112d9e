//! From answered questions to a bundle, and from a bundle into the index. Knows stores by their traits; does not know how questions were found.

use std::collections::BTreeMap;
use std::io;

use super::bundle::{BINARY, Bundle, Question, Standing, Step};
use kforge_engine::Blobs;
use kforge_engine::action::of_binary;
use kforge_engine::evidence::{EvidenceCache, IndexedRecord, Record};
use kforge_foundation::base::Digest;
use kforge_types::record::{Provenance, StepKind};

/// Which of the records under a question travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordChoice {
    /// The record that answers here, so that an importing machine decides as this one does.
    Answering,
    /// Every one, those of other devices and of earlier measurements too.
    All,
}

/// What was gathered for a bundle.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GatheredBundle {
    /// The bundle.
    pub bundle: Bundle,
    /// Steps whose question has no record, or is not known.
    pub missing: Vec<String>,
}

/// Gathers the records that answer what a plan asks, the binaries that these are about, what all of them name, and the champions that were timed by them.
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
            // Steps of two targets may ask one question and be answered by two devices.
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

/// Adds the compilations whose binaries the questions are about: another compilation of the same source may give another binary, of which nothing was
/// observed. Each stands under the provenance of the first observation of what it made.
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

/// Takes what a record names.
fn take(contents: &mut BTreeMap<Digest, Vec<u8>>, record: &Record, blobs: &dyn Blobs) -> io::Result<()> {
    for digest in record.result.outputs.values().filter(|digest| !contents.contains_key(digest)).collect::<Vec<_>>() {
        let lost = || io::Error::other(format!("content {} of a record is not in the store", digest.short()));
        let bytes = blobs.get(digest)?.ok_or_else(lost)?;
        contents.insert(*digest, bytes);
    }
    Ok(())
}

/// Puts a bundle into the home: contents first, then the records that name them. Gives how many records were not held before.
///
/// # Errors
/// The home cannot be written. What has been written then is whole, record by record, and the rest comes when it is imported again.
pub fn import(
    bundle: &Bundle,
    name: &str,
    cache: &kforge_engine::evidence::Index,
    blobs: &dyn Blobs,
) -> io::Result<u64> {
    for bytes in bundle.contents.values() {
        blobs.put(bytes)?;
    }
    cache.import(bundle.records(), name, &bundle.about())
}

/// How many records of which kind a bundle holds.
pub fn counts(bundle: &Bundle) -> BTreeMap<StepKind, u64> {
    let mut counts = BTreeMap::new();
    for question in &bundle.questions {
        *counts.entry(question.spec.kind).or_default() += question.records.len() as u64;
    }
    counts
}
