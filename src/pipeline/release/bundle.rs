//! The contents of a bundle, and everything that must hold before kforge trusts it. Knows values; [`super::archive`] knows the format of the file.
//!
//! A bundle holds questions to devices, each with the fields of its key, the records that answer it, and the contents that the records name. It also holds the
//! compilations of the binaries in the questions, because a compiler may produce another binary the next time. Its consistency shows
//! that it is complete, not who made it: whoever can write a bundle can claim any observation. Who vouches for it is said by the signature beside the document
//! ([`super::signature`]), and whether that counts by whoever judges ([`super::trust`]).
//!
//! | must hold | else |
//! |---|---|
//! | the version is known, and no field is unknown | a later kforge says something that this one would ignore |
//! | a key is the hash of its question's fields | a record would answer another question |
//! | a question asks a device, and each key appears once | an emulated result would count as a device's |
//! | a compilation made a binary that one of the questions is about | the bundle would contain binaries that were never observed |
//! | a record names its question, and its provenance equals the one in its outputs | the provenance that is shown would not be the recorded one |
//! | a champion was timed by one of the questions | a comparison would have no times to compare with |
//! | every content has its digest, is named by a record, and appears once | contents would be damaged or unneeded |
//! | observations have the form of their kind | later steps would fail on them |

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::{QuestionFault, Refused};
use kforge_engine::action::{asks_device, makes_binary};
pub use kforge_engine::evidence::BINARY;
use kforge_engine::evidence::{About, PROVENANCE, Record};
use kforge_foundation::base::Digest;
use kforge_types::record::event::Labels;
use kforge_types::record::{Provenance, Spec, StepKind};

/// Version of this format. Version 1 had a field `signed`, always false, and no signature beside the document; it is still read.
pub const FORMAT_VERSION: u32 = 2;

/// The document of a bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Version of this format.
    pub format_version: u32,
    /// Version of kforge that wrote it.
    pub kforge: String,
    /// In version 1, always false. Later versions do not have it: a document cannot say who signed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<bool>,
    /// Questions and answers.
    pub questions: Vec<Question>,
    /// The champion of each shape where the bundle was made.
    pub champions: Vec<Standing>,
    /// The contents that the records name, in the order in which they are stored.
    pub contents: Vec<Digest>,
}

/// A question to a device, and its answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The key: the hash of the fields of `spec`.
    pub key: Digest,
    /// The question.
    pub spec: Spec,
    /// The steps that asked it where the bundle was made; for display.
    pub steps: Vec<Step>,
    /// The answers.
    pub records: Vec<Record>,
}

/// A step under its name where the bundle was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its readable id.
    pub id: String,
    /// Its labels.
    pub labels: Labels,
}

/// A champion where the bundle was made, at a shape at which it was timed. A comparison with the bundle measures against it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// The package.
    pub package: String,
    /// The kernel.
    pub kernel: String,
    /// Types, if the operator has a choice: `T=f16`.
    pub types: String,
    /// The target.
    pub target: String,
    /// The shape.
    pub shape: String,
    /// The variant.
    pub variant: String,
    /// Whether it was selected by hot times instead of cold ones.
    pub hot: bool,
    /// The question that timed it, which is in the bundle.
    pub bench: Digest,
}

/// A consistent bundle.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bundle {
    /// Questions and answers, in the order of their steps.
    pub questions: Vec<Question>,
    /// The champion of each shape where the bundle was made.
    pub champions: Vec<Standing>,
    /// The contents that the records name.
    pub contents: BTreeMap<Digest, Vec<u8>>,
}

impl Bundle {
    /// All records.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.questions.iter().flat_map(|q| &q.records)
    }

    /// The number of observations of each binary.
    pub fn about(&self) -> About {
        let mut about = About::new();
        for question in self.questions.iter().filter(|question| asks_device(&question.spec)) {
            for (_, input) in question.spec.inputs.iter().filter(|(name, _)| is_binary(name)) {
                if let Some(binary) = input.digest {
                    *about.entry(binary).or_default() += question.records.len() as u64;
                }
            }
        }
        about
    }

    /// Its document, which does not depend on the order in which the questions were found.
    pub fn document(&self) -> Document {
        let mut questions = self.questions.clone();
        for question in &mut questions {
            question.steps.sort_by(|a, b| a.id.cmp(&b.id));
            question.steps.dedup();
            question.records.sort_by_cached_key(digest);
            question.records.dedup();
        }
        // Similar questions compress well next to each other.
        questions.sort_by(|a, b| {
            a.steps.first().map(|s| &s.id).cmp(&b.steps.first().map(|s| &s.id)).then(a.key.cmp(&b.key))
        });
        let mut known = BTreeSet::new();
        let outputs = questions.iter().flat_map(|q| &q.records).flat_map(|r| r.result.outputs.values().copied());
        let contents = outputs.filter(|output| known.insert(*output)).collect();
        let kforge = env!("CARGO_PKG_VERSION").into();
        let mut champions = self.champions.clone();
        champions.sort();
        champions.dedup();
        Document { format_version: FORMAT_VERSION, kforge, signed: None, questions, champions, contents }
    }

    /// The bundle from a document and contents, complete or not at all. `content` returns the bytes of the next content, given its size.
    ///
    /// # Errors
    /// A condition of the table above does not hold.
    pub fn of(text: &[u8], mut content: impl FnMut(u64) -> Result<Vec<u8>, Refused>) -> Result<Self, Refused> {
        let document = parse(text)?;
        let mut contents = BTreeMap::new();
        for digest in &document.contents {
            let bytes = content(digest.size())?;
            if Digest::of(&bytes) != *digest {
                return Err(Refused::Content(*digest));
            }
            if contents.insert(*digest, bytes).is_some() {
                return Err(Refused::RepeatedContent(*digest));
            }
        }
        let bundle = Bundle { questions: document.questions, champions: document.champions, contents };
        bundle.check()?;
        Ok(bundle)
    }

    /// Checks questions, records and contents.
    fn check(&self) -> Result<(), Refused> {
        let (mut keys, mut named) = (BTreeSet::new(), BTreeSet::new());
        let asking = self.questions.iter().filter(|question| asks_device(&question.spec));
        let binaries = asking.flat_map(|question| &question.spec.inputs).filter(|(name, _)| is_binary(name));
        let read = binaries.filter_map(|(_, input)| input.digest);
        let read: BTreeSet<Digest> = read.collect();
        for question in &self.questions {
            let key = question.spec.key();
            let wrong = |fault| Refused::Question { key: question.key, fault };
            if key != question.key {
                return Err(wrong(QuestionFault::Key(key)));
            }
            let binary = |record: &Record| record.result.outputs.get(BINARY).is_some_and(|made| read.contains(made));
            if makes_binary(&question.spec) {
                if !question.records.iter().all(binary) {
                    return Err(wrong(QuestionFault::Binary));
                }
            } else if !asks_device(&question.spec) {
                return Err(wrong(QuestionFault::NoDevice(question.spec.kind)));
            }
            if !keys.insert(key) {
                return Err(wrong(QuestionFault::Repeated));
            }
            if question.records.is_empty() {
                return Err(wrong(QuestionFault::NoRecord));
            }
            let mut records = BTreeSet::new();
            for record in &question.records {
                if record.question != key {
                    return Err(wrong(QuestionFault::OtherRecord(record.question)));
                }
                if !records.insert(digest(record)) {
                    return Err(wrong(QuestionFault::RepeatedRecord));
                }
                self.check_record(question.spec.kind, record).map_err(wrong)?;
                named.extend(record.result.outputs.values().copied());
            }
        }
        let timed = |key: &Digest| self.questions.iter().any(|q| q.key == *key && q.spec.kind == StepKind::Bench);
        if let Some(champion) = self.champions.iter().find(|c| !timed(&c.bench)) {
            let Standing { package, kernel, shape, .. } = champion.clone();
            return Err(Refused::NotTimed { package, kernel, shape });
        }
        match self.contents.keys().find(|held| !named.contains(held)) {
            Some(digest) => Err(Refused::UnnamedContent(*digest)),
            None => Ok(()),
        }
    }

    fn check_record(&self, kind: StepKind, record: &Record) -> Result<(), QuestionFault> {
        let outputs = &record.result.outputs;
        if let Some((name, digest)) = outputs.iter().find(|(_, digest)| !self.contents.contains_key(digest)) {
            return Err(QuestionFault::NoOutput { name: name.clone(), content: *digest });
        }
        if record.provenance.measured_at.parse::<jiff::Timestamp>().is_err() {
            return Err(QuestionFault::NotTime(record.provenance.measured_at.clone()));
        }
        // A compilation observes nothing.
        if kind == StepKind::Compile {
            return Ok(());
        }
        let bytes = |name: &str| outputs.get(name).and_then(|digest| self.contents.get(digest));
        let provenance = bytes(PROVENANCE).ok_or(QuestionFault::NoProvenance)?;
        let provenance: Provenance = serde_json::from_slice(provenance).map_err(QuestionFault::Provenance)?;
        if provenance != record.provenance {
            return Err(QuestionFault::OtherProvenance);
        }
        // A step that timed out or crashed may have no observation.
        let Some(observation) = bytes("observation") else { return Ok(()) };
        let read = match &kind.descriptor().observes {
            Some(observes) => (observes.read)(observation),
            None => serde_json::from_slice::<Value>(observation).map(drop),
        };
        read.map_err(|error| QuestionFault::Observation { kind, error })
    }
}

/// Whether an input of a question is a binary that the question is about: the only one, or one of several sides.
fn is_binary(name: &str) -> bool {
    name == BINARY || name.strip_prefix(BINARY).is_some_and(|side| side.starts_with(':'))
}

/// The digest that identifies a record.
pub fn digest(record: &Record) -> Digest {
    // A record holds texts, numbers and maps with text keys, so it always has a JSON form. The digest of an empty text would identify no record.
    Digest::of(&serde_json::to_vec(record).unwrap_or_default())
}

/// The version of a document's format.
///
/// # Errors
/// The document is not JSON, or of a version that this kforge does not know.
pub(super) fn version(text: &[u8]) -> Result<u32, Refused> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default)]
        format_version: Option<Value>,
    }
    let head: Head = serde_json::from_slice(text).map_err(Refused::NotJson)?;
    version_of(head.format_version.as_ref())
}

fn version_of(stated: Option<&Value>) -> Result<u32, Refused> {
    let version = stated.and_then(Value::as_u64);
    let known = version.and_then(|version| u32::try_from(version).ok());
    known.filter(|version| (1..=FORMAT_VERSION).contains(version)).ok_or(Refused::Format(version))
}

/// The digests of the records in a document.
///
/// # Errors
/// It is not a document of a known format.
pub(super) fn records(text: &[u8]) -> Result<BTreeSet<Digest>, Refused> {
    Ok(parse(text)?.questions.iter().flat_map(|question| &question.records).map(digest).collect())
}

/// Parses a document; a field that would be ignored is an error.
fn parse(text: &[u8]) -> Result<Document, Refused> {
    let whole: Value = serde_json::from_slice(text).map_err(Refused::NotJson)?;
    version_of(whole.get("format_version"))?;
    let document: Document = serde_json::from_slice(text).map_err(Refused::Schema)?;
    match (document.format_version, document.signed) {
        (1, Some(false)) | (2.., None) => {}
        (1, None) => return Err(Refused::Schema(serde::de::Error::missing_field("signed"))),
        (_, Some(true)) => return Err(Refused::Signed),
        (_, _) => return Err(Refused::UnknownField("signed".into())),
    }
    let ours = serde_json::to_value(&document).map_err(Refused::Encode)?;
    match unknown(&whole, &ours) {
        Some(path) => Err(Refused::UnknownField(path)),
        None => Ok(document),
    }
}

/// The path of a field of `theirs` that `ours` lacks.
fn unknown(theirs: &Value, ours: &Value) -> Option<String> {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => theirs.iter().find_map(|(name, value)| match ours.get(name) {
            // An omitted default adds no information.
            None if value.is_null() => None,
            None => Some(name.clone()),
            Some(own) => unknown(value, own).map(|rest| format!("{name}.{rest}")),
        }),
        (Value::Array(theirs), Value::Array(ours)) => {
            theirs.iter().zip(ours).enumerate().find_map(|(i, (a, b))| unknown(a, b).map(|rest| format!("{i}.{rest}")))
        }
        _ => None,
    }
}
