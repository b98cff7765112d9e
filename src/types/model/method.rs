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
    /// Every axis.
    pub const ALL: [Axis; 3] = [Axis::Compute, Axis::Memory, Axis::Latency];

    /// Its name: `compute`.
    pub fn name(self) -> &'static str {
        match self {
            Axis::Compute => "compute",
            Axis::Memory => "memory",
            Axis::Latency => "latency",
        }
    }

    /// The axis that a method's id starts with: `memory.vectorized_access` is of `memory`. None where it starts with none.
    pub fn of(id: &str) -> Option<Self> {
        let (axis, name) = id.split_once('.')?;
        Axis::ALL.into_iter().find(|a| a.name() == axis && is_word(name))
    }
}

/// Whether a text can be a method's name within its axis, or a whole id whose axis is stated beside it.
pub(crate) fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
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
    /// Each occurs less often than without the method.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fewer: Vec<String>,
}

/// What machine code shows a method, by architecture where it differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signature {
    /// Where no architecture says otherwise.
    pub common: Option<SassPatterns>,
    /// By architecture: `sm_90a`, or `sm_90` for it with and without its suffix.
    pub by_arch: BTreeMap<String, SassPatterns>,
}

/// What of machine code shows a method of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trace {
    /// These patterns.
    Patterns(Signature),
    /// Nothing; why, for people.
    Unseen(String),
}

impl Trace {
    /// The patterns, where there are any.
    pub fn patterns(&self) -> Option<&Signature> {
        match self {
            Trace::Patterns(signature) => Some(signature),
            Trace::Unseen(_) => None,
        }
    }

    /// Why nothing shows it, where nothing does.
    pub fn unseen(&self) -> Option<&str> {
        match self {
            Trace::Patterns(_) => None,
            Trace::Unseen(why) => Some(why),
        }
    }
}

impl Signature {
    /// Whether nothing is stated for any architecture.
    pub fn is_empty(&self) -> bool {
        self.common.is_none() && self.by_arch.is_empty()
    }

    /// Patterns for exactly that architecture, else for it without its suffix, else the common ones.
    pub fn for_arch(&self, arch: &str) -> Option<&SassPatterns> {
        let plain = arch.strip_suffix(['a', 'f']).unwrap_or(arch);
        self.by_arch.get(arch).or_else(|| self.by_arch.get(plain)).or(self.common.as_ref())
    }
}

/// What turning a method off means.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OffDecl {
    /// Tunables that change.
    pub values: Vec<(Text, TuneValue)>,
    /// Flags that are added.
    pub flags: Vec<String>,
    /// Another source.
    pub source: Option<String>,
}

/// A named optimisation of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// Its name: `memory.vectorized_access`, as the registry has it, or the kernel's own.
    pub id: String,
    /// Where it is declared.
    pub place: Place,
    /// The resource it relieves.
    pub axis: Axis,
    /// What turning it off means; none where the kernel does not say.
    pub off: Option<OffDecl>,
    /// What machine code shows it, as the manifest states it; empty where it leaves that to the registry.
    pub signature: Signature,
}

impl Method {
    /// The source without it, where turning it off takes another file.
    pub fn other_source(&self) -> Option<&str> {
        self.off.as_ref()?.source.as_deref()
    }

    /// The tunables by which it is turned off.
    pub fn tunables(&self) -> impl Iterator<Item = &str> {
        self.off.iter().flat_map(|off| &off.values).map(|(name, _)| name.value.as_str())
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
    /// The flags that it and its methods declare, before tunables are replaced.
    pub fn every_flag(&self) -> impl Iterator<Item = &str> {
        let off = self.methods.iter().filter_map(|m| m.off.as_ref()).flat_map(|off| &off.flags);
        self.flags.iter().chain(off).map(String::as_str)
    }

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
