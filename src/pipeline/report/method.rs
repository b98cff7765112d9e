//! A method of the registry as a document. Knows the registry's types; the registry itself writes the text form.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::optimize::methods::{Entry, explain};
use kforge_types::model::{Axis, SassPatterns};
use kforge_types::record::FORMAT_VERSION;

/// What `kforge explain --json METHOD` prints.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MethodDocument {
    /// Version of this format.
    pub format_version: u32,
    /// Its id: `memory.vectorized_access`.
    pub method: String,
    /// Its title.
    pub title: String,
    /// The resource it relieves.
    pub axis: Axis,
    /// Its place within its axis, from 1; lower is tried first.
    pub priority: u32,
    /// The oldest architecture for which it makes sense: `sm_80`.
    pub least: String,
    /// What the hardware must have.
    pub features: Vec<&'static str>,
    /// When metrics support it; none if no metric can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// Facts about operator and kernel that must hold.
    pub requires: Vec<&'static str>,
    /// Facts that must not hold.
    pub unless: Vec<&'static str>,
    /// Methods that are not applied together with it.
    pub conflicts: Vec<String>,
    /// What machine code shows it, by architecture; `""` for architectures without an entry. Empty if no machine code can.
    pub signature: BTreeMap<String, SassPatterns>,
    /// Why machine code does not show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
    /// What turning it off means.
    pub off: String,
    /// A paragraph for the author of the kernel.
    pub advice: String,
}

/// The document of a method.
pub fn document(entry: &Entry) -> MethodDocument {
    let signature = entry.signature.patterns();
    let own = signature.into_iter().flat_map(|s| s.by_arch.clone());
    let common = signature.and_then(|s| s.common.clone()).map(|p| (String::new(), p));
    MethodDocument {
        format_version: FORMAT_VERSION,
        method: entry.id.clone(),
        title: entry.title.clone(),
        axis: entry.axis,
        priority: entry.priority,
        least: format!("sm_{}", entry.least),
        features: entry.features.iter().map(|f| f.name()).collect(),
        trigger: entry.trigger.as_ref().map(explain::trigger),
        requires: entry.requires.iter().map(|f| f.text()).collect(),
        unless: entry.unless.iter().map(|f| f.text()).collect(),
        conflicts: entry.conflicts.clone(),
        signature: own.chain(common).collect(),
        unseen: entry.signature.unseen().map(str::to_string),
        off: entry.off.clone(),
        advice: entry.advice.clone(),
    }
}
