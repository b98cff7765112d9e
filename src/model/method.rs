//! Methods: named optimisations, what turning them off means and what machine code shows them. Knows patterns; does not match them against code.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::kernel::Kernel;
use super::variant::{TuneValue, Variant};
use super::{Place, Text};

/// The resource a method relieves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// Arithmetic units.
    Compute,
    /// Traffic.
    Memory,
    /// Waiting.
    Latency,
}

impl Axis {
    /// The axis that a method's id starts with: `memory.vectorized_access` is of `memory`.
    pub fn of(id: &str) -> Option<Self> {
        let (axis, name) = id.split_once('.')?;
        let word = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        match axis {
            "compute" if word => Some(Axis::Compute),
            "memory" if word => Some(Axis::Memory),
            "latency" if word => Some(Axis::Latency),
            _ => None,
        }
    }
}

/// Regular expressions over opcodes that show a method.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct SassPatterns {
    /// At least one occurs, unless the list is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any: Vec<String>,
    /// Each occurs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub all: Vec<String>,
    /// None occurs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forbid: Vec<String>,
    /// Each occurs at least so often.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub count: BTreeMap<String, u64>,
}

/// What turning a method off means.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct OffDecl {
    /// Tunables that change.
    pub(crate) values: Vec<(Text, TuneValue)>,
    /// Flags that are added.
    pub(crate) flags: Vec<String>,
    /// Another source.
    pub(crate) source: Option<String>,
}

/// A named optimisation of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// Its name in the registry: `memory.vectorized_access`.
    pub id: String,
    /// Where it is declared.
    pub place: Place,
    /// The resource it relieves.
    pub axis: Axis,
    /// What turning it off means; none where the kernel does not say.
    pub(crate) off: Option<OffDecl>,
    /// What machine code shows it, where no architecture says otherwise.
    pub(crate) sass: Option<SassPatterns>,
    /// What machine code shows it, by architecture.
    pub(crate) sass_by_arch: BTreeMap<String, SassPatterns>,
}

impl Method {
    /// The source without it, where turning it off takes another file.
    pub fn other_source(&self) -> Option<&str> {
        self.off.as_ref()?.source.as_deref()
    }

    /// What shows it in machine code for `arch`: patterns for exactly that architecture, else for it without its suffix, else the common ones.
    pub fn signature_for(&self, arch: &str) -> Option<&SassPatterns> {
        let plain = arch.strip_suffix(['a', 'f']).unwrap_or(arch);
        self.sass_by_arch.get(arch).or_else(|| self.sass_by_arch.get(plain)).or(self.sass.as_ref())
    }
}

/// A variant with a method turned off.
#[derive(Debug, Clone, PartialEq)]
pub struct Off {
    /// The variant's tunables without the method. Its order is that of the variant it came from.
    pub variant: Variant,
    /// Flags to add to the kernel's.
    pub flags: Vec<String>,
    /// The source in place of the kernel's, where it is another.
    pub source: Option<String>,
}

impl Kernel {
    /// The variant without a method; none where the kernel does not say how, or where turning it off changes nothing for this variant, which then does not use the method.
    pub fn without(&self, variant: &Variant, method: &Method) -> Option<Off> {
        let off = method.off.as_ref()?;
        let mut values = variant.values.clone();
        values.extend(off.values.iter().map(|(name, value)| (name.value.clone(), value.clone())));
        let source = off.source.clone().filter(|s| *s != self.source);
        if values == variant.values && off.flags.is_empty() && source.is_none() {
            return None;
        }
        Some(Off { variant: self.labelled(values, variant.order), flags: off.flags.clone(), source })
    }
}
