//! The signed documents of imported bundles: they stay in the home, so that each build derives the signer of a record again. Knows the home's folder and
//! signatures; the index knows which document a record came in.
//!
//! Who signed a record is never stored: a home may be a restored cache, and trust may be withdrawn. What is stored is the document with its signature. A record
//! counts as signed only if its document is intact, the signature over it counts now, and the document holds that very record. A document is read, checked and
//! parsed at most once in a process, when the first of its records is looked up.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::archive;
use super::bundle;
use super::signature::Signature;
use super::trust::{Distrusted, Trust};
use kforge_engine::evidence::{HERE, HOME, Signers};
use kforge_engine::home::Home;
use kforge_foundation::base::Digest;

/// Keeps a signed document in the home. Returns its name there.
///
/// # Errors
/// The home cannot be written.
pub fn keep(home: &Home, document: &[u8], signature: &Signature) -> io::Result<String> {
    let file = archive::detach(document, signature).map_err(io::Error::other)?;
    let name = Digest::of(&file).hex();
    home.keep_signed(&name, &file)?;
    Ok(name)
}

/// The signed documents of a home, judged for a build.
pub struct SignedDocuments {
    home: Home,
    trust: Arc<Trust>,
    read: Mutex<BTreeMap<String, Read>>,
}

/// A document that was read, and the bundles that records of it came in.
struct Read {
    judged: Arc<Judged>,
    bundles: BTreeSet<String>,
}

/// A document that was read.
struct Judged {
    /// Who signed it; none if it is lost or damaged.
    signer: Option<Result<String, Distrusted>>,
    /// The records in it.
    records: BTreeSet<Digest>,
}

impl SignedDocuments {
    /// The documents of a home, judged by `trust`.
    pub fn new(home: &Home, trust: Arc<Trust>) -> SignedDocuments {
        SignedDocuments { home: home.clone(), trust, read: Mutex::default() }
    }

    fn judged(&self, name: &str, origin: &str) -> Arc<Judged> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = read
            .entry(name.to_string())
            .or_insert_with(|| Read { judged: Arc::new(self.judge(name)), bundles: BTreeSet::new() });
        // A record may also have been observed here; then the name of the bundle stands at its other file.
        if ![HERE, HOME].contains(&origin) {
            entry.bundles.insert(origin.to_string());
        }
        entry.judged.clone()
    }

    fn judge(&self, name: &str) -> Judged {
        let file = std::fs::read(self.home.signed(name)).ok().filter(|file| Digest::of(file).hex() == name);
        let detached = file.and_then(|file| archive::detached(&file, archive::LIMITS).ok());
        let Some((document, signature)) = detached else { return Judged { signer: None, records: BTreeSet::new() } };
        match self.trust.judge(&document, &signature) {
            Ok(signer) => {
                Judged { signer: Some(Ok(signer.principals)), records: bundle::records(&document).unwrap_or_default() }
            }
            Err(why) => Judged { signer: Some(Err(why)), records: BTreeSet::new() },
        }
    }

    /// The bundles whose documents were read and whose signature does not count, with the reason. Bundles with one reason are together.
    pub fn distrusted(&self) -> Vec<(BTreeSet<String>, Distrusted)> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<(BTreeSet<String>, Distrusted)> = vec![];
        for Read { judged, bundles } in read.values() {
            let Some(Err(why)) = &judged.signer else { continue };
            match all.iter_mut().find(|(_, known)| known == why) {
                Some((known, _)) => known.extend(bundles.iter().cloned()),
                None => all.push((bundles.clone(), why.clone())),
            }
        }
        all
    }

    /// The files of the documents that were read.
    pub fn files(&self) -> Vec<PathBuf> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.keys().map(|name| self.home.signed(name)).collect()
    }
}

impl Signers for SignedDocuments {
    fn signer(&self, document: &str, origin: &str, record: &Digest) -> Option<String> {
        let judged = self.judged(document, origin);
        let signer = judged.signer.as_ref()?.as_ref().ok()?;
        judged.records.contains(record).then(|| signer.clone())
    }
}
