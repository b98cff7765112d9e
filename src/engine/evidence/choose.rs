//! Decides which record answers a question. Pure: knows classes and times; does not touch files.
//!
//! 1. If the local device matches the target, its class answers: with its newest record or, if there is none yet, by being observed.
//! 2. Otherwise a record of the product that the target's `device` names answers.
//! 3. Otherwise a record of the only product that there is evidence for answers.
//! 4. Otherwise the answer is unknown, and the products are listed.
//!
//! A verification is valid for a product and an architecture. A timing is also valid only for a driver major version and a MIG profile. If no local device
//! decides between these, whole devices come before slices, newer drivers before older ones, then profiles and architectures in the order of their names. That
//! order ignores times, so that one class answers the questions of a build as far as its records reach.
//!
//! Within a class, standing comes before time: what this machine observed before what somebody signed, and that before what somebody claims. So nothing that is
//! brought displaces an observation of this machine. Among records of equal standing the newest wins.
//!
//! A record of less standing than is required does not count, and neither does a record from more than five minutes ahead ([`is_ahead`]): no clock is that
//! wrong by accident, and such a record would outlast every measurement to come.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::{IndexedRecord, Record};
use kforge_types::record::{DeviceClass, Standing, Validity};

/// How far the time of a record may lie ahead of this machine's clock, in seconds.
pub const AHEAD: i64 = 300;

/// Whether an observation of one device is valid for another.
fn holds(validity: Validity, seen: &DeviceClass, on: &DeviceClass) -> bool {
    let same = (&seen.product, &seen.arch) == (&on.product, &on.arch);
    same && (validity == Validity::Product || (seen.driver_major, &seen.mig) == (on.driver_major, &on.mig))
}

/// The source whose answers count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedSource {
    /// The local device, if it can run the target's code and so could be asked.
    pub here: Option<DeviceClass>,
    /// The product named as the target's `device`.
    pub device: Option<String>,
    /// What an answer is valid for.
    pub validity: Validity,
    /// The least standing that counts.
    pub least: Standing,
}

/// The answer to a question, as far as the records give one.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// This record answers.
    Found(Box<IndexedRecord>),
    /// The answer of the local device counts, and there is no record of it: ask it.
    AskHere,
    /// No record answers, and no local device can be asked. These products have records.
    Unknown {
        /// Their names, sorted.
        products: Vec<String>,
    },
}

/// Whether a record claims to be from the future: more than [`AHEAD`] after `now`.
pub fn is_ahead(record: &Record, now: jiff::Timestamp) -> bool {
    time(record).is_some_and(|time| time.as_second() - now.as_second() > AHEAD)
}

/// Whether a record may answer at all.
fn counts(seen: &IndexedRecord, wanted: &AcceptedSource, now: jiff::Timestamp) -> bool {
    seen.standing() >= wanted.least && !is_ahead(&seen.record, now)
}

/// Chooses the record that answers a question. The order of the records does not matter.
pub fn choose(records: &[IndexedRecord], wanted: &AcceptedSource, now: jiff::Timestamp) -> Answer {
    let records = || records.iter().filter(|seen| counts(seen, wanted, now));
    // If the target names another product, the local device does not match it.
    let here = wanted.here.as_ref().filter(|here| wanted.device.as_ref().is_none_or(|device| *device == here.product));
    if let Some(here) = here {
        let valid = |seen: &&IndexedRecord| holds(wanted.validity, device(seen), here);
        return match records().filter(valid).max_by(|a, b| newer(a, b)) {
            Some(seen) => Answer::Found(Box::new(seen.clone())),
            None => Answer::AskHere,
        };
    }
    let products: BTreeSet<&str> = records().map(|seen| device(seen).product.as_str()).collect();
    let product = match &wanted.device {
        Some(device) => Some(device.as_str()),
        None if products.len() == 1 => products.first().copied(),
        None => None,
    };
    let of_product = records().filter(|seen| Some(device(seen).product.as_str()) == product);
    match of_product.max_by(|a, b| better(wanted.validity, a, b)) {
        Some(seen) => Answer::Found(Box::new(seen.clone())),
        None => Answer::Unknown { products: products.into_iter().map(str::to_string).collect() },
    }
}

fn device(seen: &IndexedRecord) -> &DeviceClass {
    &seen.record.provenance.device
}

fn better(validity: Validity, a: &IndexedRecord, b: &IndexedRecord) -> Ordering {
    let (x, y) = (device(a), device(b));
    let arch = x.arch.cmp(&y.arch).reverse();
    let class = match validity {
        Validity::Product => arch,
        Validity::Timing => (x.mig.is_none().cmp(&y.mig.is_none()))
            .then(x.driver_major.cmp(&y.driver_major))
            .then(x.mig.cmp(&y.mig).reverse())
            .then(arch),
    };
    class.then_with(|| newer(a, b))
}

/// Orders by standing, then by time; at equal times by digest, so that the answer does not depend on the order of files.
fn newer(a: &IndexedRecord, b: &IndexedRecord) -> Ordering {
    let standing = a.standing().cmp(&b.standing());
    standing.then(time(&a.record).cmp(&time(&b.record))).then(a.digest.cmp(&b.digest))
}

/// The records that could have answered instead of `answer` and observed something else: of the same class and of other origins, in the order of their origins.
/// Of each origin only the newest counts. Whoever measures again replaces what he measured before, also in his bundle; that is no contradiction.
pub fn rivals<'r>(
    records: &'r [IndexedRecord],
    answer: &IndexedRecord,
    wanted: &AcceptedSource,
    now: jiff::Timestamp,
) -> Vec<&'r IndexedRecord> {
    let same = |seen: &&IndexedRecord| holds(wanted.validity, device(seen), device(answer));
    let mut newest: BTreeMap<&str, &IndexedRecord> = BTreeMap::new();
    for seen in records.iter().filter(|seen| counts(seen, wanted, now)).filter(same) {
        let held = newest.entry(&seen.origin).or_insert(seen);
        if newer(held, seen).is_lt() {
            *held = seen;
        }
    }
    let saw = |seen: &IndexedRecord| {
        (seen.record.result.outputs.get("observation").copied(), seen.record.result.verdict.clone())
    };
    let others = newest.into_values().filter(|seen| seen.origin != answer.origin);
    others.filter(|seen| saw(seen) != saw(answer)).collect()
}

/// The time of the measurement. A record whose time cannot be parsed counts as older than any other.
fn time(record: &Record) -> Option<jiff::Timestamp> {
    record.provenance.measured_at.parse().ok()
}
