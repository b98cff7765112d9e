//! The kinds of step, each with its [`Descriptor`] in its own file. Knows names and types; the code that executes a step is registered in `pipeline/step` and
//! in `worker/steps`, and the compiler checks there that no kind is missing.
//!
//! A new kind is a file in `kind/` and a line in each of two lists below: the kinds, and the code of the process that runs it. `docs/adding-a-step-kind.md`
//! shows all the steps.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

mod attribute;
pub mod baseline;
mod bench;
mod calibrate;
pub mod calls;
mod compile;
pub mod descriptor;
pub mod fatbin;
mod generate;
mod inspect;
mod judge;
mod matching;
mod oracle;
mod pairs;
mod peaks;
mod profile;
mod rate;
mod roofline;
mod round;
mod search;
mod select;
mod verify;

pub use descriptor::{Descriptor, Lane, Observation, Runs, Validity, Work};

/// The kinds and their descriptors. Within a phase, a kind may only read results of kinds before it.
macro_rules! kinds {
    ($($kind:ident => $descriptor:path,)*) => {
        /// A kind of step: see its [`Descriptor`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[expect(missing_docs, reason = "documented in its own file")]
        pub enum StepKind {
            $($kind,)*
        }

        impl StepKind {
            /// Every kind. Within a phase, a kind may only read results of kinds before it.
            pub const ALL: [StepKind; [$(StepKind::$kind),*].len()] = [$(StepKind::$kind),*];

            /// Everything that kforge knows of the kind.
            pub const fn descriptor(self) -> &'static Descriptor {
                match self {
                    $(StepKind::$kind => &$descriptor,)*
                }
            }
        }
    };
}

kinds! {
    Generate => generate::KIND,
    Compile => compile::KIND,
    Inspect => inspect::KIND,
    Fatbin => fatbin::KIND,
    Oracle => oracle::KIND,
    Calibrate => calibrate::KIND,
    Verify => verify::KIND,
    Bench => bench::KIND,
    Calls => calls::KIND,
    Peaks => peaks::KIND,
    Judge => judge::KIND,
    Match => matching::KIND,
    Search => search::KIND,
    Select => select::KIND,
    Pairs => pairs::KIND,
    Baseline => baseline::KIND,
    Rate => rate::KIND,
    Attribute => attribute::KIND,
    Profile => profile::KIND,
    Roofline => roofline::KIND,
    Round => round::KIND,
}

/// Code that executes a step in the engine's process. Registered in `pipeline/step`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "named for the kind that it does")]
pub enum EngineCode {
    Generate,
    Calibrate,
    Judge,
    Match,
    Search,
    Select,
    Attribute,
    Rate,
    Roofline,
    Round,
}

/// Code that executes a step in a worker. Registered in `worker/steps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "named for the kind that it does")]
pub enum WorkerCode {
    Oracle,
    EmulatedCompile,
    EmulatedInspect,
    EmulatedVerify,
    Compile,
    Inspect,
    Fatbin,
    Verify,
    Bench,
    Calls,
    Peaks,
    Pairs,
    Baseline,
    Profile,
}

/// The platform of a step, from its parameter `arch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Platform {
    /// Steps without an architecture.
    Any,
    /// `arch` is `cpu`.
    Cpu,
    /// `arch` is anything else.
    Device,
}

impl Platform {
    /// The platform of a step with these parameters.
    pub fn of(params: &serde_json::Value) -> Platform {
        match params.get("arch").and_then(serde_json::Value::as_str) {
            None => Platform::Any,
            Some("cpu") => Platform::Cpu,
            Some(_) => Platform::Device,
        }
    }
}

impl StepKind {
    /// See [`Descriptor::name`].
    pub const fn name(self) -> &'static str {
        self.descriptor().name
    }

    /// See [`Descriptor::version`].
    pub const fn version(self) -> u32 {
        self.descriptor().version
    }

    /// See [`Descriptor::verb`].
    pub const fn verb(self) -> &'static str {
        self.descriptor().verb
    }

    /// Whether steps of this kind measure a device, so that their results are observations valid for a device class.
    pub const fn observes_device(self) -> bool {
        self.descriptor().observes.is_some()
    }

    /// Whether a step of this kind is a pure function of its inputs that runs in the engine's process.
    pub const fn is_pure(self) -> bool {
        matches!(self.descriptor().runs, Runs::Engine { is_pure: true, .. })
    }

    /// The workers that execute steps of this kind; none for kinds that run in the engine's process.
    pub const fn lane(self) -> Option<Lane> {
        match self.descriptor().runs {
            Runs::Engine { .. } => None,
            Runs::Worker { lane, .. } => Some(lane),
        }
    }

    /// The code of a worker that executes steps of this kind on a platform.
    pub fn worker_code(self, on: Platform) -> Option<WorkerCode> {
        match self.descriptor().runs {
            Runs::Engine { .. } => None,
            Runs::Worker { work, .. } => work.iter().find(|work| work.on == on).map(|work| work.code),
        }
    }
}

/// Schemas do not list the kinds, because a document of a later version may name further kinds.
impl JsonSchema for StepKind {
    fn schema_name() -> Cow<'static, str> {
        "StepKind".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The name of a kind of step, such as `compile` or `verify`. Later versions may add kinds.",
            "type": "string",
            "pattern": "^[a-z]+(-[a-z]+)*$",
        })
    }
}

impl fmt::Display for StepKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for StepKind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        StepKind::ALL.into_iter().find(|k| k.name() == text).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn descriptors_do_not_repeat_each_other() {
        let all = || StepKind::ALL.into_iter();
        let distinct = |of: fn(StepKind) -> &'static str| all().map(of).collect::<BTreeSet<_>>().len();
        assert_eq!(distinct(StepKind::name), StepKind::ALL.len(), "names");
        assert_eq!(distinct(StepKind::verb), StepKind::ALL.len(), "verbs");
        assert_eq!(distinct(|kind| kind.descriptor().color), StepKind::ALL.len(), "colours");
        // If a platform were listed twice or several kinds claimed the same code, one would shadow the other.
        let work = all().flat_map(|kind| match kind.descriptor().runs {
            Runs::Engine { code, .. } => vec![(format!("engine {code:?}"), format!("{kind}"))],
            Runs::Worker { work, .. } => {
                work.iter().map(|w| (format!("worker {:?}", w.code), format!("{kind} {:?}", w.on))).collect()
            }
        });
        let work: Vec<(String, String)> = work.collect();
        let of = |part: fn(&(String, String)) -> &String| work.iter().map(part).collect::<BTreeSet<_>>().len();
        assert_eq!((of(|w| &w.0), of(|w| &w.1)), (work.len(), work.len()));
    }

    #[test]
    fn the_name_of_a_kind_is_its_name_in_documents_and_fits_the_schema() {
        let schema = serde_json::to_value(schemars::schema_for!(StepKind)).unwrap();
        for kind in StepKind::ALL {
            let written = serde_json::to_value(kind).unwrap();
            assert_eq!(written, kind.name());
            assert!(jsonschema::is_valid(&schema, &written), "{kind}");
            assert_eq!(kind.name().parse(), Ok(kind));
        }
    }
}
