//! `kernels.json`: for each kernel of an artifact what a loader needs (the caller's arguments, the binary and the launches for each class of shapes) and what a
//! reader of its evidence needs (verdicts, tolerances, times, methods, and the standing of each record). Knows values; gathers and checks nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::files::parse;
use super::{ArtifactError, ArtifactFiles, KERNELS};
use kforge_foundation::base::Digest;
use kforge_types::model::description::{Interface, LaunchSequence};
use kforge_types::model::{Metric, ShapeRole, Tolerance};
use kforge_types::record::params::Fate;
use kforge_types::record::{Standing, StepKind};

/// The version of the document.
pub const FORMAT_VERSION: u32 = 1;

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelsDocument {
    /// Version of this format.
    pub format_version: u32,
    /// The kernels, each for one choice of types and one target, in the order of the manifest.
    pub kernels: Vec<PackagedKernel>,
}

impl KernelsDocument {
    /// The document of an artifact.
    ///
    /// # Errors
    /// There is none, or it is of another format.
    pub fn of(files: &ArtifactFiles) -> Result<KernelsDocument, ArtifactError> {
        parse(KERNELS, FORMAT_VERSION, files.required(KERNELS)?)
    }
}

/// A kernel for one choice of types and one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PackagedKernel {
    /// The kernel.
    pub kernel: String,
    /// Its operator.
    pub operator: String,
    /// The choice of types: `T=f16`; empty if the operator has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub types: String,
    /// The target.
    pub target: String,
    /// The architecture that the target compiles for: `sm_90a`.
    pub arch: String,
    /// The device class of the observations.
    pub devices: Vec<String>,
    /// The time that selected the champions.
    pub metric: Metric,
    /// The caller's arguments.
    pub interface: Interface,
    /// The expression whose value is the class of a shape; none if classes are not values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<String>,
    /// The classes of shapes. A class of one shape (`all@llama`) takes precedence over the class that it was split from.
    pub classes: Vec<PackagedClass>,
    /// The champions, each once; in Triton once for each specialization.
    pub variants: Vec<PackagedVariant>,
    /// Every shape at which a champion was verified.
    pub shapes: Vec<PackagedShape>,
    /// The methods of the champions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<PackagedMethod>,
    /// The records on which the verdicts and times rest, by question.
    pub records: BTreeMap<Digest, PackagedRecord>,
}

impl PackagedKernel {
    /// `rms_norm for T=f16 on h200`.
    pub fn title(&self) -> String {
        let types = if self.types.is_empty() { String::new() } else { format!(" for {}", self.types) };
        format!("`{}`{types} on {}", self.kernel, self.target)
    }

    /// The variants of that label: one, or in Triton one for each specialization.
    pub fn variants_of(&self, label: &str) -> impl Iterator<Item = &PackagedVariant> {
        self.variants.iter().filter(move |variant| variant.variant == label)
    }

    /// The variant that serves a shape.
    pub fn variant_at(&self, shape: &PackagedShape) -> Option<&PackagedVariant> {
        self.variants_of(&shape.variant).find(|variant| variant.specialization == shape.specialization)
    }
}

/// A class of shapes and its champion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PackagedClass {
    /// `all`, a shape's name, or the value of `per`; with `@` and a shape's name, the class of a shape that was split from it.
    pub class: String,
    /// Its shapes.
    pub shapes: Vec<String>,
    /// The champion.
    pub variant: String,
    /// Why it was selected.
    pub because: String,
}

/// A champion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PackagedVariant {
    /// Its label: `BLOCK=256,VEC=4`; empty for a kernel without tunables.
    pub variant: String,
    /// In Triton, what its machine code was specialised for: `BLOCK=1024,cols%16`. Several champions may have one label and differ in this.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub specialization: String,
    /// The file with its machine code: a cubin, or an archive of `ar` with a cubin for each function.
    pub binary: String,
    /// The BLAKE3 digest of that file, as records name it.
    pub digest: Digest,
    /// The entry of each member of the archive, in order; none if the file is a cubin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// The PTX of the same compilation, if the target asks for it. Nothing was verified with it: a driver makes other machine code of it. Loaders do not use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ptx: Option<PackagedPtx>,
    /// The fatbin with the machine code, if the target asks for it. Loaders do not use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fatbin: Option<PackagedFatbin>,
    /// The question that its compilation answers; `evidence.kfe` has it with the binary.
    pub compilation: Digest,
    /// The files from which it was compiled, by their names in the compilation, with the digest of each. `source/` has those of the package, `generated/` has a
    /// generated source. A name that begins with `@` is a file of a dependency.
    pub sources: BTreeMap<String, Digest>,
    /// The symbol of each entry in the binary, by the entry as C++ spells it.
    pub symbols: BTreeMap<String, String>,
    /// Its launches.
    pub launch: LaunchSequence,
}

/// PTX beside machine code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PackagedPtx {
    /// The file with it.
    pub file: String,
    /// The BLAKE3 digest of that file, as the record of the compilation names it.
    pub digest: Digest,
}

/// A fatbin beside machine code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PackagedFatbin {
    /// The file with it.
    pub file: String,
    /// The BLAKE3 digest of that file.
    pub digest: Digest,
    /// Whether it also holds the PTX of the variant, which no evidence is about. A driver compiles it where it cannot run the machine code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_ptx: bool,
}

/// A champion at a shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PackagedShape {
    /// The shape.
    pub shape: String,
    /// What it is for.
    pub role: ShapeRole,
    /// Its dims.
    pub dims: BTreeMap<String, i64>,
    /// The class.
    pub class: String,
    /// The champion, which passes.
    pub variant: String,
    /// In Triton, the specialization of the champion that serves the shape.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub specialization: String,
    /// The tolerance of each output.
    pub tolerance: BTreeMap<String, Tolerance>,
    /// The largest error, relative to the allowed one; none if a function of the package decided.
    pub worst: Option<f64>,
    /// The question of the verification.
    pub verification: Digest,
    /// The question of the verification in a process that ran no other candidate; none if there is no such observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Digest>,
    /// Its time; none for shapes that are not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<PackagedTime>,
}

/// The time of a champion at a bench shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PackagedTime {
    /// The question of the timing.
    pub question: Digest,
    /// The median in nanoseconds.
    pub median_ns: f64,
    /// The 95 % interval of the median, between order statistics; none with too few samples.
    pub interval_ns: Option<(f64, f64)>,
    /// The number of samples.
    pub samples: u64,
}

/// A method of a champion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PackagedMethod {
    /// Its id.
    pub method: String,
    /// The champion.
    pub variant: String,
    /// What it is worth.
    pub fate: Fate,
    /// Why.
    pub because: String,
    /// The share of time that it saves, with the ends of its 95 % interval; none if it was not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saving: Option<(f64, f64, f64)>,
}

/// The record that answers a question, as whoever packed the artifact trusted it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PackagedRecord {
    /// What kind of step asked.
    pub kind: StepKind,
    /// The digest of the record.
    pub record: Digest,
    /// How far it was trusted.
    pub standing: Standing,
    /// Who signed it, if that is why it was trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// The device.
    pub device: String,
    /// When it was observed, as RFC 3339 in UTC.
    pub measured_at: String,
}
