//! Methods: named optimisations, what turning them off means and which machine code shows them. Knows patterns; does not match them with code.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::kernel::Kernel;
use super::variant::{TuneValue, Variant};
use super::{Place, Text};

/// The resource that a method relieves.
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

    /// The axis at the start of a method's id: `memory.vectorized_access` has the axis `memory`. None if the id does not start with an axis.
    pub fn of(id: &str) -> Option<Self> {
        let (axis, name) = id.split_once('.')?;
        Axis::ALL.into_iter().find(|a| a.name() == axis && is_word(name))
    }
}

/// Whether a text can be a method's name within its axis, or a whole id if the axis is stated separately.
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
    /// Each occurs at least this often.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub count: BTreeMap<String, u64>,
    /// Each occurs less often than without the method.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fewer: Vec<String>,
}

/// The machine code that shows a method, by architecture where it differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signature {
    /// For architectures without patterns of their own.
    pub common: Option<SassPatterns>,
    /// By architecture: `sm_90a`, or `sm_90` for the architecture with or without a suffix.
    pub by_arch: BTreeMap<String, SassPatterns>,
}

/// Whether machine code shows a method of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trace {
    /// These patterns show it.
    Patterns(Signature),
    /// Nothing shows it; the text says why, for people.
    Unseen(String),
}

impl Trace {
    /// The patterns, if there are any.
    pub fn patterns(&self) -> Option<&Signature> {
        match self {
            Trace::Patterns(signature) => Some(signature),
            Trace::Unseen(_) => None,
        }
    }

    /// Why nothing shows it, if nothing does.
    pub fn unseen(&self) -> Option<&str> {
        match self {
            Trace::Patterns(_) => None,
            Trace::Unseen(why) => Some(why),
        }
    }
}

impl Signature {
    /// Whether no patterns are stated for any architecture.
    pub fn is_empty(&self) -> bool {
        self.common.is_none() && self.by_arch.is_empty()
    }

    /// The patterns for exactly this architecture, else for the architecture without its suffix, else the common ones.
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
    /// The source that replaces the kernel's.
    pub source: Option<String>,
}

/// A named optimisation of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// Its name: `memory.vectorized_access`. The registry or the kernel defines it.
    pub id: String,
    /// Where it is declared.
    pub place: Place,
    /// The resource it relieves.
    pub axis: Axis,
    /// The values of tunables that choose it, by tunable. A variant with another value of one of them does not use it. Empty if the kernel does not say.
    pub on: Vec<(Text, Vec<TuneValue>)>,
    /// What turning it off means; none if the kernel does not say.
    pub off: Option<OffDecl>,
    /// The machine code that shows it, as the manifest states. Empty if the manifest leaves this to the registry.
    pub signature: Signature,
}

impl Method {
    /// The source without the method, if turning it off needs another file.
    pub fn other_source(&self) -> Option<&str> {
        self.off.as_ref()?.source.as_deref()
    }

    /// Whether a variant has the values that choose it.
    fn is_chosen(&self, variant: &Variant) -> bool {
        self.on.iter().all(|(name, values)| variant.values.get(&name.value).is_none_or(|value| values.contains(value)))
    }

    /// The tunables that turn it off.
    pub fn tunables(&self) -> impl Iterator<Item = &str> {
        self.off.iter().flat_map(|off| &off.values).map(|(name, _)| name.value.as_str())
    }
}

/// A variant with a method turned off.
#[derive(Debug, Clone, PartialEq)]
pub struct Off {
    /// The variant's tunables without the method. Its order is the order of the original variant.
    pub variant: Variant,
    /// Flags to add to the kernel's.
    pub flags: Vec<String>,
    /// The source that replaces the kernel's, if there is another.
    pub source: Option<String>,
}

impl Kernel {
    /// The flags that the kernel and its methods declare, before tunables are replaced.
    pub fn every_flag(&self) -> impl Iterator<Item = &str> {
        let off = self.methods.iter().filter_map(|m| m.off.as_ref()).flat_map(|off| &off.flags);
        self.flags.iter().chain(off).map(String::as_str)
    }

    /// Whether a variant is known not to use a method: it has other values than those that choose the method, or turning the method off changes nothing.
    pub fn leaves_out(&self, variant: &Variant, method: &Method) -> bool {
        !method.is_chosen(variant) || method.off.is_some() && self.without(variant, method).is_none()
    }

    /// The variant without a method. None if the kernel does not say how, or if the variant does not use the method ([`Kernel::leaves_out`]).
    pub fn without(&self, variant: &Variant, method: &Method) -> Option<Off> {
        let off = method.off.as_ref().filter(|_| method.is_chosen(variant))?;
        let mut values = variant.values.clone();
        values.extend(off.values.iter().map(|(name, value)| (name.value.clone(), value.clone())));
        let source = off.source.clone().filter(|s| *s != self.source);
        if values == variant.values && off.flags.is_empty() && source.is_none() {
            return None;
        }
        Some(Off { variant: self.labelled(values, variant.order), flags: off.flags.clone(), source })
    }
}
