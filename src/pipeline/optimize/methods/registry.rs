//! The registry as a whole: typed and checked, with queries for what fits where. Knows the data files; does not choose methods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::row::{File, Row, SignatureRow};
use super::{Fact, Facts, Feature, Strength, Trigger};
use kforge_foundation::base::diag;
use kforge_types::model::target::capability;
use kforge_types::model::{Axis, Language, SassPatterns, Signature, Trace};
use kforge_types::record::metric;

/// A method of the registry.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its id: `memory.vectorized_access`.
    pub id: String,
    /// The resource it relieves.
    pub axis: Axis,
    /// Its title.
    pub title: String,
    /// Its place within its axis, from 1; lower is tried first.
    pub priority: u32,
    /// The lowest capability for which it makes sense: 80.
    pub least: u32,
    /// What the hardware must have.
    pub features: Vec<Feature>,
    /// When metrics support it; none if no metric can.
    pub trigger: Option<Trigger>,
    /// Facts that must hold.
    pub requires: Vec<Fact>,
    /// Facts that must not hold.
    pub unless: Vec<Fact>,
    /// Methods that are not applied together with it.
    pub conflicts: Vec<String>,
    /// What machine code shows it, or why none can.
    pub signature: Trace,
    /// What turning it off means.
    pub off: String,
    /// A paragraph for the author of the kernel.
    pub advice: String,
    /// The same for the author of a kernel in Triton; none if the method has no form there.
    pub triton: Option<String>,
}

/// Whether a method makes sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// It makes sense.
    Fits,
    /// It does not make sense, and why.
    Not(String),
    /// These facts are unknown, and all other facts support it.
    Unknown(Vec<Fact>),
}

impl Entry {
    /// Whether an architecture (`sm_90a`) supports it.
    pub fn on(&self, arch: &str) -> Fit {
        let (capability, suffix) = match capability(arch) {
            Ok(known) => known,
            Err(unknown) => return Fit::Not(unknown.to_string()),
        };
        if capability < self.least {
            return Fit::Not(format!("`{arch}` is older than sm_{}", self.least));
        }
        match self.features.iter().find(|f| !f.is_in(capability, suffix)) {
            Some(feature) => Fit::Not(format!("`{arch}` has no {}", feature.name())),
            None => Fit::Fits,
        }
    }

    /// Whether its preconditions hold.
    pub fn under(&self, facts: &Facts) -> Fit {
        let wanted = self.requires.iter().map(|f| (*f, true)).chain(self.unless.iter().map(|f| (*f, false)));
        let mut unknown = vec![];
        for (fact, want) in wanted {
            match facts.0.get(&fact) {
                Some(holds) if *holds == want => {}
                Some(_) if want => return Fit::Not(format!("it does not hold that {}", fact.text())),
                Some(_) => return Fit::Not(fact.text().into()),
                None => unknown.push(fact),
            }
        }
        if unknown.is_empty() { Fit::Fits } else { Fit::Unknown(unknown) }
    }

    /// The paragraph for the author of a kernel in that language; none if the method has no form in it.
    pub fn advice_in(&self, language: Language) -> Option<&str> {
        match language {
            Language::Cuda => Some(&self.advice),
            Language::Triton => self.triton.as_deref(),
            Language::Torch => None,
        }
    }

    /// How strongly metrics support it. If no metric ever supports it, the strength is unknown and no metrics are missing.
    pub fn strength(&self, metrics: &BTreeMap<String, f64>) -> Strength {
        self.trigger.as_ref().map_or_else(|| Strength::Unknown(BTreeSet::new()), |t| t.strength(metrics))
    }
}

/// Every method, by axis and priority.
#[derive(Debug, Clone, PartialEq)]
pub struct Registry {
    entries: Vec<Entry>,
}

/// An error in the data files of methods.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Fault {
    /// A file does not have the form of a data file.
    #[error("{0}")]
    Form(toml::de::Error),
    /// A row is invalid in itself.
    #[error("`{id}`: {what}")]
    Row {
        /// The method.
        id: String,
        /// What is wrong and what was expected, as text.
        what: String,
    },
    /// A method is defined more than once.
    #[error("`{0}` is defined twice")]
    Repeated(String),
    /// Two methods of an axis have the same priority.
    #[error("`{id}` has priority {priority}, which another method of its axis has")]
    Priority {
        /// The method.
        id: String,
        /// The priority.
        priority: u32,
    },
    /// A method conflicts with itself.
    #[error("`{0}` conflicts with itself")]
    ConflictsWithItself(String),
    /// A method conflicts with one that does not declare the conflict.
    #[error("`{id}` conflicts with `{other}`, which does not say so")]
    OneSided {
        /// The method.
        id: String,
        /// The other one.
        other: String,
    },
    /// A method conflicts with one that does not exist.
    #[error("`{id}` conflicts with `{other}`, which does not exist")]
    NoConflict {
        /// The method.
        id: String,
        /// The other one.
        other: String,
    },
}

/// All errors in the data files of methods. Never empty.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct RegistryFaults(pub Vec<Fault>);

impl Registry {
    /// Reads data files and checks them together.
    ///
    /// # Errors
    /// All errors, each with the method and what was expected.
    pub fn parse(texts: &[&str]) -> Result<Self, RegistryFaults> {
        let (mut entries, mut wrong) = (Vec::new(), Vec::<Fault>::new());
        for text in texts {
            match toml::from_str::<File>(text) {
                Ok(file) => {
                    for row in file.method {
                        let id = row.id.clone();
                        match entry(row) {
                            Ok(entry) => entries.push(entry),
                            Err(why) => wrong.extend(why.into_iter().map(|what| Fault::Row { id: id.clone(), what })),
                        }
                    }
                }
                Err(error) => wrong.push(Fault::Form(error)),
            }
        }
        entries.sort_by(|a: &Entry, b: &Entry| (a.axis, a.priority, &a.id).cmp(&(b.axis, b.priority, &b.id)));
        let registry = Registry { entries };
        wrong.extend(registry.clashes());
        if wrong.is_empty() { Ok(registry) } else { Err(RegistryFaults(wrong)) }
    }

    /// Errors between methods.
    fn clashes(&self) -> Vec<Fault> {
        let mut wrong = Vec::new();
        let mut ids = BTreeSet::new();
        let mut places = BTreeSet::new();
        for entry in &self.entries {
            let id = &entry.id;
            if !ids.insert(id) {
                wrong.push(Fault::Repeated(id.clone()));
            }
            if !places.insert((entry.axis, entry.priority)) {
                wrong.push(Fault::Priority { id: id.clone(), priority: entry.priority });
            }
            for other in &entry.conflicts {
                match self.get(other) {
                    Some(there) if there.id == *id => wrong.push(Fault::ConflictsWithItself(id.clone())),
                    Some(there) if !there.conflicts.contains(id) => {
                        wrong.push(Fault::OneSided { id: id.clone(), other: other.clone() });
                    }
                    Some(_) => {}
                    None => wrong.push(Fault::NoConflict { id: id.clone(), other: other.clone() }),
                }
            }
        }
        wrong
    }

    /// The method with that id.
    pub fn get(&self, id: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.id == id)
    }

    /// Every method, by axis and priority.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The methods of an axis in the order in which they are tried.
    pub fn of_axis(&self, axis: Axis) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |e| e.axis == axis)
    }

    /// The id that a misspelled text probably means.
    pub fn closest(&self, text: &str) -> Option<&str> {
        diag::closest(text, self.entries.iter().map(|e| e.id.as_str()))
    }
}

/// The registry of this program.
pub fn registry() -> &'static Registry {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
        let texts = [include_str!("compute.toml"), include_str!("memory.toml"), include_str!("latency.toml")];
        Registry::parse(&texts).expect("BUG: the data files are part of the program, and a test reads them")
    });
    &REGISTRY
}

/// The signature of each method of the registry, or why it has none, by id. Match steps use it for kernels that declare no signature.
pub fn signatures() -> BTreeMap<String, Trace> {
    registry().entries.iter().map(|e| (e.id.clone(), e.signature.clone())).collect()
}

/// Whether a method of the registry has a form in a language.
pub fn has_form(id: &str, language: Language) -> bool {
    registry().get(id).is_some_and(|entry| entry.advice_in(language).is_some())
}

/// Reads a row; returns all errors in the row itself.
fn entry(row: Row) -> Result<Entry, Vec<String>> {
    let mut wrong = Vec::new();
    let axis = Axis::of(&row.id);
    if axis.is_none() {
        wrong.push("an id is an axis and a name of lower-case letters, digits and `_`".to_string());
    }
    if row.priority == 0 {
        wrong.push("priorities begin with 1".into());
    }
    let least = match capability(&row.least) {
        Ok((capability, "")) => capability,
        Ok(_) => {
            wrong.push(format!("`{}` is only one architecture: name its features instead", row.least));
            0
        }
        Err(unknown) => {
            wrong.push(unknown.to_string());
            0
        }
    };
    for ramp in row.trigger.iter().flat_map(Trigger::ramps) {
        if metric::metric(&ramp.metric).is_none() {
            wrong.push(format!("`{}` is not a metric", ramp.metric));
        }
        if !(ramp.good.is_finite() && ramp.bad.is_finite() && ramp.good != ramp.bad) {
            wrong.push(format!("the ramp over `{}` has no extent", ramp.metric));
        }
    }
    if let Some(fact) = row.requires.iter().find(|f| row.unless.contains(f)) {
        wrong.push(format!("it is both required and excluded that {}", fact.text()));
    }
    let triton = row.triton.as_ref().map(|text| ("triton", text));
    for (name, text) in [("title", &row.title), ("off", &row.off), ("advice", &row.advice)].into_iter().chain(triton) {
        if text.trim().is_empty() || text.contains('\n') {
            wrong.push(format!("`{name}` is one paragraph"));
        }
    }
    let signature = signature(row.signature, row.unseen, &mut wrong);
    match (axis, wrong.is_empty()) {
        (Some(axis), true) => Ok(Entry {
            id: row.id,
            axis,
            title: row.title,
            priority: row.priority,
            least,
            features: row.features,
            trigger: row.trigger,
            requires: row.requires,
            unless: row.unless,
            conflicts: row.conflicts,
            signature,
            off: row.off,
            advice: row.advice,
            triton: row.triton,
        }),
        _ => Err(wrong),
    }
}

fn signature(row: SignatureRow, unseen: Option<String>, wrong: &mut Vec<String>) -> Trace {
    match (row, unseen) {
        (SignatureRow::Word(word), Some(why)) if word == "none" && !why.trim().is_empty() => Trace::Unseen(why),
        (SignatureRow::Word(_), _) => {
            wrong.push("a signature is patterns, or `\"none\"` with the reason in `unseen`".into());
            Trace::Unseen(String::new())
        }
        (SignatureRow::Patterns { common, by_arch }, unseen) => {
            if unseen.is_some() {
                wrong.push("what has a signature is not unseen".into());
            }
            for name in by_arch.keys() {
                wrong.extend(capability(name).err().map(|unknown| unknown.to_string()));
            }
            let common = (common != SassPatterns::default()).then_some(common);
            let signature = Signature { common, by_arch };
            if signature.is_empty() {
                wrong.push("the signature has no pattern".into());
            }
            // Only a test checks that the patterns are regular expressions: compiling them all takes as long as planning a small build.
            Trace::Patterns(signature)
        }
    }
}
