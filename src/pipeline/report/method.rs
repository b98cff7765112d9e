//! A method as a document: what the registry says of it, and how the champions of a workspace use it, which is also text. Knows the registry's types; the registry
//! itself writes the text of its entries.

use std::collections::BTreeMap;

use std::fmt::Write;

use anstyle::Style;
use serde::Serialize;

use super::legend::{self, is_attributed_by_pairs};
use super::text::{fate, variant};
use crate::optimize::methods::{Entry, explain};
use kforge_types::model::{Axis, SassPatterns};
use kforge_types::record::FORMAT_VERSION;
use kforge_types::record::params::Attribution;

const DIM: Style = Style::new().dimmed();

/// What `kforge explain --json METHOD` prints.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MethodDocument {
    /// Version of this format.
    pub format_version: u32,
    /// Its id: `memory.vectorized_access`.
    pub method: String,
    /// What the registry says of it; nothing if only kernels of the workspace define it.
    #[serde(flatten)]
    pub registry: Option<RegistryEntry>,
    /// How champions of the workspace use it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<MethodUse>,
}

/// How the champion of a kernel on a target uses a method.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MethodUse {
    /// The package.
    pub package: String,
    /// The kernel.
    pub kernel: String,
    /// The target.
    pub target: String,
    /// The choice of types; empty without types.
    pub types: String,
    /// The shapes for which the champion is selected, as a part of a line: empty for all shapes.
    #[serde(skip)]
    pub stands_for: String,
    /// The champion; none if there is none yet.
    pub champion: Option<String>,
    /// Whether it uses the method.
    pub used: Used,
    /// The steps that found out.
    pub steps: Vec<String>,
}

/// Whether a champion uses a method.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Used {
    /// Turning the method off changes nothing of the champion.
    No,
    /// It does, and what the method is worth is not known.
    Yes,
    /// It does, and the method is worth this.
    Worth(Box<Attribution>),
    /// There is no champion yet.
    Open,
}

/// What the registry says of a method.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RegistryEntry {
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
    /// The same for the author of a kernel in Triton; nothing if the method has no form there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triton: Option<String>,
}

/// The document of a method.
pub fn document(id: &str, entry: Option<&Entry>, uses: &[MethodUse]) -> MethodDocument {
    MethodDocument {
        format_version: FORMAT_VERSION,
        method: id.into(),
        registry: entry.map(registered),
        uses: uses.to_vec(),
    }
}

fn registered(entry: &Entry) -> RegistryEntry {
    let signature = entry.signature.patterns();
    let own = signature.into_iter().flat_map(|s| s.by_arch.clone());
    let common = signature.and_then(|s| s.common.clone()).map(|p| (String::new(), p));
    RegistryEntry {
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
        triton: entry.triton.clone(),
    }
}

/// The uses of a method as text, one line for each champion, with the steps that found out.
pub fn uses(id: &str, uses: &[MethodUse]) -> String {
    let mut out = String::new();
    for one in uses {
        let types = if one.types.is_empty() { String::new() } else { format!(" [{}]", one.types) };
        let champion = one.champion.as_deref().map_or("none", variant);
        let said = match &one.used {
            Used::No => format!("not used by the champion{}: {champion}", one.stands_for),
            Used::Yes => {
                format!("used by the champion{}: {champion}; what it is worth is not known yet", one.stands_for)
            }
            Used::Worth(found) => {
                format!("used by the champion{}: {champion}; {}: {}", one.stands_for, fate(found.fate), found.reason())
            }
            Used::Open => "no champion is known yet".into(),
        };
        let _ = writeln!(out, "{id} in {}/{}{types} on {}: {said}", one.package, one.kernel, one.target);
        for step in &one.steps {
            let _ = writeln!(out, "  {DIM}{step}{DIM:#}");
        }
    }
    let is_of_pairs = |one: &MethodUse| matches!(&one.used, Used::Worth(found) if is_attributed_by_pairs(found));
    if let Some(legend) = legend::of_methods().filter(|_| uses.iter().any(is_of_pairs)) {
        let _ = writeln!(out, "{DIM}{legend}{DIM:#}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimize::methods::registry;
    use kforge_types::record::params::Fate;

    fn one(used: Used, champion: Option<&str>) -> MethodUse {
        MethodUse {
            package: "p".into(),
            kernel: "k".into(),
            target: "h200".into(),
            types: String::new(),
            stands_for: String::new(),
            champion: champion.map(String::from),
            used,
            steps: vec![],
        }
    }

    #[test]
    fn whether_a_champion_uses_a_method_is_told_in_one_line() {
        let told = |used, champion| anstream::adapter::strip_str(&uses("memory.m", &[one(used, champion)])).to_string();
        assert_eq!(told(Used::No, Some("A=1")), "memory.m in p/k on h200: not used by the champion: A=1\n");
        assert!(told(Used::Yes, Some("A=1")).contains("used by the champion: A=1; what it is worth is not known"));
        let found = Attribution {
            fate: Fate::Effective,
            because: "without it slower, +9.5 % [+9.0, +10.0]".into(),
            detail: None,
            saving: Some((0.095, 0.09, 0.1)),
        };
        let worth = told(Used::Worth(Box::new(found)), Some("A=1"));
        assert!(
            worth.contains("\nsigns: + means that the kernel without the method is slower than the champion"),
            "{worth}"
        );
        assert!(told(Used::Open, None).contains("no champion is known yet"));
    }

    #[test]
    fn a_method_of_a_kernel_s_own_has_no_entry_and_others_have_theirs_beside_their_uses() {
        let own = serde_json::to_value(document("memory.own", None, &[one(Used::No, Some("A=1"))])).unwrap();
        assert_eq!((own.get("title"), &own["uses"][0]["used"]), (None, &"no".into()));
        let entry = registry().get("memory.async_copy").unwrap();
        let known = serde_json::to_value(document("memory.async_copy", Some(entry), &[])).unwrap();
        assert_eq!((&known["title"], known.get("uses")), (&entry.title.clone().into(), None));
    }
}
