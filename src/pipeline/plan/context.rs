//! Holds the state of planning: nodes, small documents that they read, diagnostics, and what expansion needs. Knows the order of work; the work itself is in
//! `operators`, `kernels`, `variants` and `expand`.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use rayon::prelude::*;

use super::baselines::RatedBaseline;
use super::challenge::Challenge;
use super::finals::Contest;
use super::input::{Goal, PackageInput, PlanInput, Selection};
use super::kernels::{NominationContext, Selected};
use super::leaders::Fields;
use super::node_builder::MAIN;
use super::rounds::Waiting;
use super::search::SearchProgress;
use super::variants::{PlannedVariant, torn};
use kforge_engine::Node;
use kforge_foundation::base::{Diagnostic, Digest};
use kforge_types::model::{Arch, Kernel, Operator, Shape, ShapeRole, Target, TypeChoice};
use kforge_types::record::spec::Tree;

/// Scalar operations up to which a verification checks every access.
pub const CHECK_WORK: f64 = 3e6;

/// Scalar operations up to which Compute Sanitizer checks a verification, for kernels that request it: it makes a kernel a hundred times slower or more.
pub const SANITIZE_WORK: f64 = 1e6;

/// The plan while it is built, and afterwards what expansion reads.
pub struct Planner<'a> {
    /// Its inputs.
    pub input: Arc<PlanInput<'a>>,
    /// Nodes so far.
    pub nodes: Vec<Node>,
    /// Ids of the nodes so far.
    pub ids: HashSet<String>,
    /// Small documents that nodes name by digest.
    pub documents: BTreeMap<Digest, Vec<u8>>,
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// By id of a deciding select node: what expands its champions.
    pub selected: BTreeMap<String, Arc<Selected>>,
    /// By id of a nominating select node: what expands it.
    pub nominated: BTreeMap<String, NominationContext>,
    /// By id of a select node that names the variants to time in full: what expands it.
    pub contests: BTreeMap<String, Arc<Contest>>,
    /// By id of a step that rates a baseline: what expands it.
    pub(super) rated: BTreeMap<String, Arc<RatedBaseline>>,
    /// By id of a round node: what follows unless it says stop.
    pub waiting: BTreeMap<String, Waiting>,
    /// By id of a search node: what expands it.
    pub searching: BTreeMap<String, Arc<SearchProgress>>,
    /// The wave of the main-phase nodes that are being planned ([`kforge_engine::Rank::wave`]).
    pub wave: u32,
    /// How many phases later than usual the planned nodes are, because a challenge comes after the selection that it challenges.
    pub(super) later: u8,
    /// By id of a step that names harmful methods: what expands it.
    pub(super) challenges: BTreeMap<String, Arc<Challenge>>,
    /// By id of a challenged select node: the id of the one that takes its place.
    pub(super) superseded: BTreeMap<String, String>,
    /// The selections among kernels of one operator.
    pub(super) fields: Fields,
}

impl<'a> Planner<'a> {
    /// Plans everything that is known before any step has run.
    pub fn plan(input: PlanInput<'a>) -> Self {
        // No package reads another, so each core plans a share. Nodes still keep the order of packages.
        let count = input.packages.len();
        let share = count.div_ceil(rayon::current_num_threads().max(1) * 4).max(1);
        let input = Arc::new(input);
        let shares: Vec<Planner<'a>> = (0..count.div_ceil(share))
            .into_par_iter()
            .map(|nth| {
                let mut part = Planner::empty(input.clone());
                (nth * share..count.min((nth + 1) * share)).for_each(|at| part.package(at));
                part
            })
            .collect();
        let mut shares = shares.into_iter();
        let mut planner = shares.next().unwrap_or_else(|| Planner::empty(input));
        shares.for_each(|part| planner.join(part));
        planner
    }

    fn empty(input: Arc<PlanInput<'a>>) -> Self {
        Planner {
            input,
            nodes: vec![],
            ids: HashSet::new(),
            documents: BTreeMap::new(),
            diagnostics: vec![],
            selected: BTreeMap::new(),
            nominated: BTreeMap::new(),
            contests: BTreeMap::new(),
            rated: BTreeMap::new(),
            waiting: BTreeMap::new(),
            searching: BTreeMap::new(),
            wave: 0,
            later: 0,
            challenges: BTreeMap::new(),
            superseded: BTreeMap::new(),
            fields: Fields::default(),
        }
    }

    /// Adds the plan of other packages.
    fn join(&mut self, part: Planner<'a>) {
        self.nodes.extend(part.nodes);
        self.ids.extend(part.ids);
        self.documents.extend(part.documents);
        self.diagnostics.extend(part.diagnostics);
        self.selected.extend(part.selected);
        self.nominated.extend(part.nominated);
        self.contests.extend(part.contests);
        self.rated.extend(part.rated);
        self.waiting.extend(part.waiting);
        self.searching.extend(part.searching);
        self.fields.join(part.fields);
    }

    fn package(&mut self, at: usize) {
        let package = self.input.packages[at].package;
        self.keep_baselines(at);
        let mut reached: BTreeSet<&str> = BTreeSet::new();
        for kernel in &package.kernels {
            if !Selection::takes(&self.input.selection.kernels, &kernel.name)
                || !Selection::takes(&self.input.selection.operators, &kernel.operator)
            {
                continue;
            }
            // Validation guarantees that the operator and the targets of every kernel exist.
            let Some(operator) = package.operators.iter().find(|o| o.name == kernel.operator) else { continue };
            let others = kernel.methods.iter().filter_map(|m| m.other_source());
            let sources = std::iter::once(kernel.source.as_str()).chain(others);
            let mut reaches = sources.filter_map(|source| self.input.packages[at].sources.get(source));
            if let Some(wrong) = reaches.find_map(|reach| torn(kernel, reach)) {
                self.diagnostics.push(wrong);
                continue;
            }
            for choice in operator.choices() {
                let taken = kernel.targets.iter().filter(|n| Selection::takes(&self.input.selection.targets, n));
                let mut targets: Vec<_> = taken.filter_map(|name| package.targets.get(name)).collect();
                // If there is no observation of a device, the emulator's is used, so `cpu` is planned first regardless of the names of targets.
                targets.sort_by_key(|target| target.arch != Arch::Cpu);
                for target in targets {
                    reached.insert(&operator.name);
                    // An error in an operator appears on every target and for every kernel; report it once.
                    if let Err(diagnostic) = self.kernel(at, kernel, operator, &choice, target)
                        && !self.diagnostics.contains(&diagnostic)
                    {
                        self.diagnostics.push(diagnostic);
                    }
                }
            }
        }
        // A selection of kernels or targets excludes all others.
        let selection = &self.input.selection;
        if self.input.goal > Goal::Check && selection.kernels.is_empty() && selection.targets.is_empty() {
            self.left_alone(at, &reached);
        }
    }

    /// Reports operators without a kernel as unknown.
    fn left_alone(&mut self, at: usize, reached: &BTreeSet<&str>) {
        let package = self.input.packages[at].package;
        let selected = |o: &&Operator| Selection::takes(&self.input.selection.operators, &o.name);
        let left: Vec<&Operator> =
            package.operators.iter().filter(selected).filter(|o| !reached.contains(o.name.as_str())).collect();
        for operator in left {
            let why = match package.kernels.iter().any(|k| k.operator == operator.name) {
                true => "none of its kernels is for a target of the package",
                false => "no kernel implements it, so kforge computes nothing for it",
            };
            self.uncalibrated(at, operator, why);
        }
    }

    /// The package at that position.
    pub fn package_input(&self, at: usize) -> &PackageInput<'a> {
        &self.input.packages[at]
    }

    /// Adds a node unless its id exists already.
    pub fn add(&mut self, mut node: Node) -> String {
        if node.rank.phase == MAIN {
            node.rank.wave = self.wave;
        }
        node.rank.phase += self.later;
        let id = node.id.clone();
        if self.ids.insert(id.clone()) {
            self.nodes.push(node);
        }
        id
    }

    /// Stores a small document that nodes refer to by digest.
    pub fn document(&mut self, bytes: Vec<u8>) -> Digest {
        let digest = Digest::of(&bytes);
        self.documents.insert(digest, bytes);
        digest
    }

    /// Stores a tree that nodes refer to by digest.
    pub fn tree(&mut self, tree: &Tree) -> Digest {
        // A map of texts to digests always serializes.
        self.document(serde_json::to_vec(tree).expect("BUG: a tree that does not serialise"))
    }

    /// The selected shapes of an operator.
    pub fn shapes<'o>(&self, operator: &'o Operator) -> Vec<&'o Shape> {
        operator.shapes.iter().filter(|s| Selection::takes(&self.input.selection.shapes, &s.name)).collect()
    }
}

/// Whether a shape is timed.
pub fn is_benched(shape: &Shape) -> bool {
    shape.role == ShapeRole::Bench
}

/// What a plan of one kernel refers to.
#[derive(Clone, Copy)]
pub struct Scope<'s> {
    /// Position of the package.
    pub package: usize,
    /// The kernel.
    pub kernel: &'s Kernel,
    /// Its operator.
    pub operator: &'s Operator,
    /// The choice of types.
    pub choice: &'s TypeChoice,
    /// The target.
    pub target: &'s Target,
    /// The round that is planned; 0 for declared variants.
    pub round: u32,
}

impl<'s> Scope<'s> {
    /// The scope for a variant: of the written kernel if an agent wrote one.
    pub fn of<'b>(self, build: &'b PlannedVariant) -> Scope<'b>
    where
        's: 'b,
    {
        Scope { kernel: build.written.as_ref().map_or(self.kernel, |written| &written.kernel), ..self }
    }
}
