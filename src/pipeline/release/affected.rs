//! Which kernels a change touches: two planned states of a workspace, compared step by step; the document, and its text form. Pure: runs nothing, and knows no
//! results, so the answer does not depend on what was built before.
//!
//! | a kernel is affected on a target if | because then |
//! |---|---|
//! | a step of it has no counterpart of that name in the base | there is something new to do |
//! | a step of it has another symbolic key ([`kforge_engine::symbolic`]) than in the base | its parameters, its files or its tools differ, or those of a step that it depends on |
//! | the declaration of the kernel or of its operator has another value, or its pins differ | steps that results add may differ; they are not in a plan yet |
//! | a file or tool differs that only such steps read | the same |
//! | the repository has other evidence for its steps | other observations may answer them |
//!
//! Whether a changed source makes the same machine code is known only after it was compiled. So an edited comment in a source affects the kernel; an edited
//! comment in a manifest does not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};
use toml::Table;

use crate::report::field_words;
use kforge_engine::{Graph, Index, Node, PreviousResult, Source, symbolic_spec, why};
use kforge_foundation::base::{Digest, SourceFile, count};
use kforge_types::model::{Kernel, Operator};
use kforge_types::record::{FORMAT_VERSION, Implementations, Spec};

/// A package and a kernel of it.
pub type KernelName = (String, String);

/// A state of a workspace that was planned.
#[derive(Default)]
pub struct PlannedState {
    /// Its plan, without the steps that results add.
    pub graph: Graph,
    /// The symbolic keys of the plan's steps, in their order.
    pub keys: Vec<Digest>,
    /// For each kernel, what steps that results add may read: the name of each part, such as `kernel.softmax`, and its value.
    pub parts: BTreeMap<KernelName, BTreeMap<String, Digest>>,
    /// By package, kernel and target: the records in the bundles of the repository, each with whether a trusted key signed it.
    pub records: BTreeMap<[String; 3], BTreeSet<(Digest, bool)>>,
}

/// A target of a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AffectedTarget {
    /// Its name.
    pub target: String,
    /// Its architecture: `cpu`, `sm_90a`.
    pub arch: String,
    /// The product whose evidence counts; null if it names none.
    pub device: Option<String>,
}

/// How something differs from the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReasonCode {
    /// The base has no such step.
    New,
    /// A field of the step's key differs.
    Changed,
    /// A declaration, a pin, or a file or tool differs that only steps read which results add.
    Declared,
    /// The evidence in the repository differs.
    Evidence,
}

/// A root cause for which a kernel is affected. Steps that differ in the same way are one reason.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Reason {
    /// How it differs.
    pub code: ReasonCode,
    /// The first such step; null for a declaration or evidence.
    pub step: Option<String>,
    /// The number of such steps.
    pub steps: u64,
    /// What differs: the field of the step's key, such as `inputs.file:softmax.cu`, or the declaration, such as `kernel.softmax`. Null for new steps and evidence.
    pub field: Option<String>,
}

/// A kernel that a change touches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AffectedKernel {
    /// Its package.
    pub package: String,
    /// The kernel.
    pub kernel: String,
    /// The targets on which it is affected, by name.
    pub targets: Vec<AffectedTarget>,
    /// The root causes.
    pub because: Vec<Reason>,
}

/// The kernels of a selection that a change touches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Affected {
    /// Version of this format.
    pub format_version: u32,
    /// The commit with which the working tree was compared.
    pub base: String,
    /// The affected kernels, by package and name.
    pub affected: Vec<AffectedKernel>,
    /// The number of selected kernels that are not affected.
    pub unaffected: u64,
}

impl Affected {
    /// The names of the affected kernels.
    pub fn names(&self) -> BTreeSet<KernelName> {
        self.affected.iter().map(|of| (of.package.clone(), of.kernel.clone())).collect()
    }

    /// The number of kernels in a line: `1 of 30 kernels`.
    pub fn summary(&self) -> String {
        let affected = self.affected.len() as u64;
        format!("{affected} of {}", count(affected + self.unaffected, "kernel"))
    }

    /// As text for people: each kernel with its targets, and below it the root causes.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for AffectedKernel { package, kernel, targets, because } in &self.affected {
            let targets: Vec<&str> = targets.iter().map(|target| target.target.as_str()).collect();
            let _ = writeln!(out, "{package}/{kernel} on {}", targets.join(", "));
            for reason in because {
                let _ = writeln!(out, "  {reason}");
            }
        }
        out
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = self.step.as_deref().unwrap_or_default();
        let field = self.field.as_deref().unwrap_or_default();
        match self.code {
            ReasonCode::New => write!(f, "`{step}` is new")?,
            ReasonCode::Changed => match field_words::words(field) {
                Some(words) => write!(f, "the {words} changed: `{step}`")?,
                None => write!(f, "`{field}` of `{step}` changed")?,
            },
            ReasonCode::Declared => write!(f, "`{field}` changed")?,
            ReasonCode::Evidence => f.write_str("the evidence for it in the repository changed")?,
        }
        match self.steps.saturating_sub(1) {
            0 => Ok(()),
            more => write!(f, ", and {} alike", count(more, "step")),
        }
    }
}

/// The values of the tables that declare kernels and operators, read from the text of their manifests. Comments and layout are no part of them.
#[derive(Default)]
pub struct Declarations(BTreeMap<String, Option<Table>>);

impl Declarations {
    /// The declarations of a kernel and its operator, by name: `kernel.softmax`, `operator.softmax`.
    pub fn of(&mut self, kernel: &Kernel, operator: Option<&Operator>) -> BTreeMap<String, Digest> {
        let operator = operator.map(|operator| (&*operator.place.file, "operator", &operator.name));
        let both = std::iter::once((&*kernel.place.file, "kernel", &kernel.name)).chain(operator);
        both.map(|(file, table, name)| (format!("{table}.{name}"), self.value(file, table, name))).collect()
    }

    /// The digest of a table's value. If the text cannot be read as a table, that of the whole text, which differs whenever the value does.
    fn value(&mut self, file: &SourceFile, table: &str, name: &str) -> Digest {
        let parsed = self.0.entry(file.name.clone()).or_insert_with(|| file.text.parse().ok());
        let value = parsed.as_ref().and_then(|all| all.get(table)?.get(name));
        let bytes = value.and_then(|value| serde_json::to_vec(value).ok());
        Digest::of(bytes.as_deref().unwrap_or(file.text.as_bytes()))
    }
}

/// Compares the plan of the working tree with that of a base. `target` describes a target of a package; `commit` is the base's.
pub fn affected(
    base: &PlannedState,
    head: &PlannedState,
    implementations: &Implementations,
    target: &dyn Fn(&str, &str) -> Option<AffectedTarget>,
    commit: &str,
) -> Affected {
    let states = States { base, head, implementations };
    let mut kernels: BTreeMap<KernelName, BTreeMap<String, Vec<Index>>> = BTreeMap::new();
    for (at, node) in (0..).zip(head.graph.nodes()) {
        let labels = &node.labels;
        let Some(kernel) = &labels.kernel else { continue };
        let of = kernels.entry((labels.package.clone(), kernel.clone())).or_default();
        // The source of a kernel is of no target: the compilations that read it are.
        if let Some(target) = &labels.target {
            of.entry(target.clone()).or_default().push(at);
        }
    }
    let (mut all, mut unaffected) = (vec![], 0);
    for (name, targets) in kernels {
        match states.kernel(&name, &targets, target) {
            Some(kernel) => all.push(kernel),
            None => unaffected += 1,
        }
    }
    Affected { format_version: FORMAT_VERSION, base: commit.into(), affected: all, unaffected }
}

struct States<'a> {
    base: &'a PlannedState,
    head: &'a PlannedState,
    implementations: &'a Implementations,
}

impl States<'_> {
    /// A kernel, if it is affected on any of its targets.
    fn kernel(
        &self,
        (package, kernel): &KernelName,
        targets: &BTreeMap<String, Vec<Index>>,
        target: &dyn Fn(&str, &str) -> Option<AffectedTarget>,
    ) -> Option<AffectedKernel> {
        let mut because = self.declared(&(package.clone(), kernel.clone()));
        let is_declared = !because.is_empty();
        let (mut affected, mut roots, mut seen) = (vec![], BTreeSet::new(), BTreeSet::new());
        for (name, steps) in targets {
            let differing: Vec<Index> = steps.iter().copied().filter(|at| self.differs(*at)).collect();
            let seat = [package, kernel, name].map(Clone::clone);
            let is_observed = self.head.records.get(&seat) != self.base.records.get(&seat);
            if is_observed {
                because.push(Reason { code: ReasonCode::Evidence, step: None, steps: 0, field: None });
            }
            if is_declared || is_observed || !differing.is_empty() {
                affected.extend(target(package, name));
            }
            differing.into_iter().for_each(|at| self.roots(at, &mut seen, &mut roots));
        }
        because.extend(self.reasons(roots));
        because.sort();
        because.dedup();
        let (package, kernel) = (package.clone(), kernel.clone());
        (!affected.is_empty()).then_some(AffectedKernel { package, kernel, targets: affected, because })
    }

    /// The parts of a kernel that differ, if the base has the kernel.
    fn declared(&self, name: &KernelName) -> Vec<Reason> {
        let (Some(before), Some(now)) = (self.base.parts.get(name), self.head.parts.get(name)) else { return vec![] };
        let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        let differing = names.into_iter().filter(|part| before.get(*part) != now.get(*part));
        let reason =
            |part: &String| Reason { code: ReasonCode::Declared, step: None, steps: 0, field: Some(part.clone()) };
        differing.map(reason).collect()
    }

    /// The step of the base with the name of this one.
    fn before(&self, at: Index) -> Option<Index> {
        self.base.graph.find(&self.head.graph.node(at).id)
    }

    /// Whether a step is new or has another symbolic key.
    fn differs(&self, at: Index) -> bool {
        self.before(at).map(|before| self.base.keys[before as usize]) != Some(self.head.keys[at as usize])
    }

    /// Adds the steps by which this one differs and that differ by themselves.
    fn roots(&self, at: Index, seen: &mut BTreeSet<Index>, roots: &mut BTreeSet<Index>) {
        let mut open = vec![at];
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            let differing: Vec<Index> = self.sources(at).into_iter().filter(|from| self.differs(*from)).collect();
            if differing.is_empty() || self.own(at).is_some() {
                roots.insert(at);
            }
            open.extend(differing);
        }
    }

    /// The steps whose outputs a step reads.
    fn sources(&self, at: Index) -> Vec<Index> {
        let from = |input: &kforge_engine::InputRef| match &input.source {
            Source::Output { node, .. } => self.head.graph.find(node),
            Source::Blob(_) => None,
        };
        self.head.graph.node(at).inputs.values().filter_map(from).collect()
    }

    /// The field by which a step differs, outputs of other steps aside; none if there is no such field, or if the step is new.
    fn own(&self, at: Index) -> Option<String> {
        let before = without_outputs(self.spec(self.base, self.before(at)?), self.base.graph.node(self.before(at)?));
        let now = without_outputs(self.spec(self.head, at), self.head.graph.node(at));
        field(&before, &now)
    }

    fn spec(&self, state: &PlannedState, at: Index) -> Spec {
        symbolic_spec(&state.graph, at, &state.keys, self.implementations)
    }

    /// The reasons that root causes are, with equal ones counted.
    fn reasons(&self, roots: BTreeSet<Index>) -> Vec<Reason> {
        let mut grouped: BTreeMap<(ReasonCode, &str, Option<String>), Vec<&str>> = BTreeMap::new();
        for at in roots {
            let node = self.head.graph.node(at);
            let (code, field) = match self.before(at) {
                None => (ReasonCode::New, None),
                Some(before) => {
                    let whole = || field(&self.spec(self.base, before), &self.spec(self.head, at));
                    (ReasonCode::Changed, self.own(at).or_else(whole))
                }
            };
            grouped.entry((code, node.kind.name(), field)).or_default().push(&node.id);
        }
        let reason = |((code, _, field), ids): ((ReasonCode, &str, Option<String>), Vec<&str>)| Reason {
            code,
            step: ids.iter().min().map(ToString::to_string),
            steps: ids.len() as u64,
            field,
        };
        grouped.into_iter().map(reason).collect()
    }
}

/// A spec with only those inputs that are in the store before anything runs.
fn without_outputs(spec: Spec, node: &Node) -> Spec {
    let is_stored = |name: &String| node.inputs.get(name).is_some_and(|i| matches!(i.source, Source::Blob(_)));
    Spec { inputs: spec.inputs.into_iter().filter(|(name, _)| is_stored(name)).collect(), ..spec }
}

/// The first field in which two specs differ.
fn field(before: &Spec, now: &Spec) -> Option<String> {
    let explanation = before.explain();
    let before = PreviousResult { key: before.key(), explanation, forgotten: false, because: vec![], known: false };
    why(Some(&before), now).field
}

#[cfg(test)]
mod tests;
