//! Which record answers a question. Pure: knows classes and times; does not touch files.
//!
//! 1. If the local device matches the target, its class answers: with its newest record or, if there is none yet, by being asked.
//! 2. Else the target's `device`: a record of that product.
//! 3. Else the only product there is evidence for.
//! 4. Else it is unknown, and the products are listed.
//!
//! A verification is valid for product and architecture. A timing is valid for driver major and MIG profile too; where no local device says which of them
//! counts, whole devices come before slices, newer drivers before older ones, then profiles and architectures in the order of their names. That order
//! looks at no time, so that the questions of one build are answered by one class as far as its records reach. Within a class the newest record wins.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::{IndexedRecord, Record};
use kforge_types::record::{DeviceClass, Validity};

/// Whether what was observed on one device holds on another.
fn holds(validity: Validity, seen: &DeviceClass, on: &DeviceClass) -> bool {
    let same = (&seen.product, &seen.arch) == (&on.product, &on.arch);
    same && (validity == Validity::Product || (seen.driver_major, &seen.mig) == (on.driver_major, &on.mig))
}

/// Whose answer counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedSource {
    /// The local device, if there is one that could be asked: it can run the target's code.
    pub here: Option<DeviceClass>,
    /// The product named as the target's `device`.
    pub device: Option<String>,
    /// For what an answer is valid.
    pub validity: Validity,
}

/// What is known.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// This.
    Found(Box<IndexedRecord>),
    /// Nothing for the local device, whose answer counts: ask it.
    AskHere,
    /// Nothing, and there is nobody here to ask; these other products have answered.
    Unknown {
        /// Their names, in order.
        products: Vec<String>,
    },
}

/// Which of the records under one question answers it. Their order does not matter.
pub fn choose(records: &[IndexedRecord], wanted: &AcceptedSource) -> Answer {
    // A device that is not the one the target names does not match the target.
    let here = wanted.here.as_ref().filter(|here| wanted.device.as_ref().is_none_or(|device| *device == here.product));
    if let Some(here) = here {
        let valid = |seen: &&IndexedRecord| holds(wanted.validity, device(seen), here);
        return match records.iter().filter(valid).max_by(|a, b| newer(a, b)) {
            Some(seen) => Answer::Found(Box::new(seen.clone())),
            None => Answer::AskHere,
        };
    }
    let products: BTreeSet<&str> = records.iter().map(|seen| device(seen).product.as_str()).collect();
    let product = match &wanted.device {
        Some(device) => Some(device.as_str()),
        None if products.len() == 1 => products.first().copied(),
        None => None,
    };
    let of_product = records.iter().filter(|seen| Some(device(seen).product.as_str()) == product);
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

/// By time; of two of the same time, by digest, so that the answer does not depend on the order of files.
fn newer(a: &IndexedRecord, b: &IndexedRecord) -> Ordering {
    time(&a.record).cmp(&time(&b.record)).then(a.digest.cmp(&b.digest))
}

/// When it was measured; a record that does not say so legibly is older than any other.
fn time(record: &Record) -> Option<jiff::Timestamp> {
    record.provenance.measured_at.parse().ok()
}
