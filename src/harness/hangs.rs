//! What a build remembers of candidates that timed out: such a candidate is not launched again in that build, at any shape. Knows the subject of a step and one
//! file for each candidate; does not know how a candidate is run.
//!
//! The file lies in a folder of the build, so another build tries again. The worker in which a candidate times out writes it, before it lets another step use
//! the device; every step of the candidate looks for it before it launches anything. A step that is not launched gives no observation that is stored, and its
//! verdict is unknown.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::message::Response;
use super::task::Task;
use kforge_foundation::base::Digest;
use kforge_types::record::event::Labels;
use kforge_types::record::kind::calls::documents::CallsObserved;
use kforge_types::record::profile::ProfileObserved;
use kforge_types::record::timing::{BenchObserved, PairsObserved};
use kforge_types::record::{StepKind, Unknown, Verdict, VerifyObservation};

/// Where the candidate of a step is remembered if it times out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HangMark {
    /// The file of the candidate. It holds the first shape at which it timed out.
    file: PathBuf,
    /// The shape of this step.
    shape: String,
}

impl HangMark {
    /// The mark of a step with these labels, in a folder of the build; none if the step runs no variant at a shape.
    pub fn new(folder: &Path, labels: &Labels) -> Option<Self> {
        labels.variant.as_ref()?;
        let shape = labels.shape.clone()?;
        let subject = Labels { shape: None, ..labels.clone() };
        let name = Digest::of(&serde_json::to_vec(&subject).ok()?);
        Some(HangMark { file: folder.join(name.to_string()), shape })
    }

    /// The mark of a step by itself, in a file of its own.
    pub fn alone(file: PathBuf) -> Self {
        HangMark { file, shape: String::new() }
    }

    /// Whether the candidate timed out.
    pub fn is_set(&self) -> bool {
        self.file.exists()
    }

    /// Why a step of a candidate that timed out is not launched; none if the candidate did not time out.
    pub fn reason(&self) -> Option<String> {
        let shape = std::fs::read_to_string(&self.file).ok()?;
        Some(format!("not launched, because the variant timed out at shape `{shape}`"))
    }

    /// Remembers that the candidate timed out. If that fails, it is merely launched again at other shapes.
    pub fn note(&self) {
        let _ = self.set();
    }

    fn set(&self) -> io::Result<()> {
        // The first shape stays.
        match std::fs::File::create_new(&self.file) {
            Ok(mut file) => io::Write::write_all(&mut file, self.shape.as_bytes()),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(e) => Err(e),
        }
    }
}

impl Task {
    /// Remembers that the step's candidate timed out.
    pub fn timed_out(&self) {
        if let Some(mark) = &self.hang {
            mark.note();
        }
    }

    /// The response of a step that launches nothing, because its candidate timed out before; none if it did not.
    pub fn not_launched(&self) -> Option<Response> {
        let why = self.hang.as_ref()?.reason()?;
        let unknown = Unknown::Missing(why.clone());
        let written = match self.spec.kind {
            StepKind::Verify => {
                let begun = VerifyObservation::begun(false, 0, String::new());
                self.write_document("observation", &VerifyObservation { not_launched: Some(why.clone()), ..begun })
            }
            StepKind::Bench => self.write_document("observation", &BenchObserved::default()),
            StepKind::Calls => {
                let begun = VerifyObservation::begun(false, 0, String::new());
                let compared = VerifyObservation { not_launched: Some(why.clone()), ..begun };
                self.write_document("observation", &CallsObserved::begun(compared))
            }
            StepKind::Pairs => self.write_document("observation", &PairsObserved::default()),
            StepKind::Profile => {
                let seen = ProfileObserved { absent: Some(unknown.clone()), ..ProfileObserved::default() };
                self.write_document("observation", &seen)
            }
            _ => return None,
        };
        Some(match written {
            Err(response) => response,
            Ok(()) => {
                let verdict = Some(Verdict::Unknown(unknown));
                Response::Done { verdict, notes: vec![], summary: why, forget: true }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(variant: &str, shape: &str) -> Labels {
        let labels =
            Labels { package: "p".into(), kernel: Some("k".into()), target: Some("t".into()), ..Labels::default() };
        Labels { variant: Some(variant.into()), shape: Some(shape.into()), ..labels }
    }

    #[test]
    fn a_variant_has_one_file_for_all_its_shapes_which_names_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let of = |variant: &str, shape: &str| HangMark::new(dir.path(), &labels(variant, shape)).unwrap();
        let (first, second, other) = (of("A=1", "small"), of("A=1", "large"), of("A=2", "small"));
        assert_eq!(first.file, second.file);
        assert_ne!(first.file, other.file);
        second.set().unwrap();
        first.set().unwrap();
        assert_eq!(std::fs::read_to_string(&first.file).unwrap(), "large");
        assert!(!other.file.exists());
        assert_eq!(HangMark::new(dir.path(), &Labels { variant: None, ..labels("A=1", "small") }), None);
        assert_eq!(HangMark::new(dir.path(), &Labels { shape: None, ..labels("A=1", "small") }), None);
    }
}
