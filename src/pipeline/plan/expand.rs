//! Steps that are known only after earlier results. Once benches show which variants are near the best: their pairs. Once these show the champions of whole
//! classes, and classes may split: pairs of the champions with those that may be faster at one shape. Then the decision, which reads all pairs. Once a step
//! names variants to time in full: their full timings. Once a champion is known: its machine code and its fatbin; for each of its methods the variant without
//! it, verified, timed in pairs and compared; and what bounds it. Pure.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::calls::{is_called, sound};
use super::challenge::Without;
use super::context::{Planner, Scope, is_benched};
use super::index_width::{IndexLimit, index_limit};
use super::input::Tool;
use super::kernels::{MARGIN, NominationContext, Selected};
use super::leaders::Leading;
use super::node_builder::{ABLATION, NodeBuilder, PAIRING, PHASES, SPLIT_PAIRING};
use super::operators::Case;
use super::search::SearchProgress;
use super::timing_steps::{PairStep, is_timed};
use super::variants::PlannedVariant;
use kforge_engine::{Expand, ExpandError, InputRef, Node, Source};
use kforge_foundation::base::{Diagnostic, Digest};
use kforge_types::model::kernel::{LaunchAction, LaunchDecl};
use kforge_types::model::{Arch, Kernel, Language, Method, Metric, Operator, Per, Problem, Target, Trace, TypeChoice};
use kforge_types::record::event::Labels;
use kforge_types::record::kind::baseline::documents::Rating;
use kforge_types::record::kind::fatbin::documents::FatbinParams;
use kforge_types::record::params::{
    AttributeParams, Champion, Compiler, InspectParams, MatchParams, Nomination, PTX, Selection, TURNED,
};
use kforge_types::record::round::Decision;
use kforge_types::record::search::Searched;
use kforge_types::record::{Form, StepKind, StepResult};

/// When a method is effective, and when it is harmful: the lower bound of its saving exceeds two per cent, or the kernel without it would take its place by the
/// margin of the selection (docs/design.md, section 9.5).
pub(crate) const ATTRIBUTE: AttributeParams = AttributeParams { threshold: 0.02, margin: MARGIN, unused: false };

/// What a step takes from the disassembly of machine code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disassembly {
    /// How often each opcode occurs.
    Counts,
    /// The text.
    Listing,
}

/// Adds the nodes that follow from results.
pub struct Expander<'a> {
    planner: Mutex<Planner<'a>>,
}

impl<'a> Expander<'a> {
    /// Takes a finished plan whose nodes have been taken out.
    pub fn new(planner: Planner<'a>) -> Self {
        Expander { planner: Mutex::new(planner) }
    }

    /// The search of a search node.
    pub fn searching(&self, id: &str) -> Option<Arc<SearchProgress>> {
        self.planner.lock().ok()?.searching.get(id).cloned()
    }

    /// The selection of a deciding select node; none for a nominating one, and for one whose place another one took.
    pub fn selected(&self, id: &str) -> Option<Arc<Selected>> {
        let planner = self.planner.lock().ok()?;
        planner.selected.get(id).filter(|_| !planner.superseded.contains_key(id)).cloned()
    }

    /// The selection of a deciding select node, also of one whose place a challenge takes; none for a nominating one.
    pub fn decided(&self, id: &str) -> Option<Arc<Selected>> {
        self.planner.lock().ok()?.selected.get(id).cloned()
    }

    /// The selection of a deciding select node among kernels of one operator, and the names of its shapes by position; none for other nodes.
    pub fn leading(&self, id: &str) -> Option<(Arc<Leading>, Vec<String>)> {
        let planner = self.planner.lock().ok()?;
        let leading = planner.leading(id)?;
        let shapes = planner.shapes_of(&leading);
        Some((leading, shapes))
    }

    /// The selection that a nominating select node prepares, with all contenders; none for a deciding one.
    pub fn nominated(&self, id: &str) -> Option<Arc<Selected>> {
        let planner = self.planner.lock().ok()?;
        planner.nominated.get(id).map(|nominated| Arc::new(nominated.selected.clone()))
    }

    /// The id of the select node that took the place of this one, after a challenge; its own if none did.
    pub fn decisive(&self, id: &str) -> String {
        let Ok(planner) = self.planner.lock() else { return id.to_string() };
        let mut last = id;
        while let Some(next) = planner.superseded.get(last) {
            last = next;
        }
        last.to_string()
    }

    /// Every file that the kernels and the references of a package can reach, by its name in a compilation, and every file with inputs.
    pub fn reached(&self, package: &str) -> BTreeMap<String, Digest> {
        let Ok(planner) = self.planner.lock() else { return BTreeMap::new() };
        let Some(input) = planner.input.packages.iter().find(|input| input.package.name == package) else {
            return BTreeMap::new();
        };
        let sources = input.sources.values().flat_map(|reach| &reach.files);
        let references = input.references.values().flat_map(|tree| &tree.files);
        sources.chain(references).chain(&input.stored).map(|(name, digest)| (name.clone(), *digest)).collect()
    }

    /// What steps that results add may read and no step of the plan so far does, by name: the sources that replace the kernel's where a method is off; for a
    /// kernel with a device target, the disassembler and, if the target asks for fatbins, what packs them; the files of baselines, and what runs them.
    pub fn read_later(&self, package: &str, kernel: &str) -> BTreeMap<String, Digest> {
        let Ok(planner) = self.planner.lock() else { return BTreeMap::new() };
        let Some(input) = planner.input.packages.iter().find(|input| input.package.name == package) else {
            return BTreeMap::new();
        };
        let Some(kernel) = input.package.kernel(kernel) else { return BTreeMap::new() };
        let others = kernel.methods.iter().filter_map(Method::other_source).filter_map(|s| input.sources.get(s));
        let mut all: BTreeMap<String, Digest> = others.flat_map(|reach| reach.files.clone()).collect();
        let targets: Vec<&Target> = kernel.targets.iter().filter_map(|name| input.package.targets.get(name)).collect();
        let mut read = |name: &str, tool: &Tool| {
            all.insert(name.into(), Digest::of(format!("{tool:?}").as_bytes()));
        };
        if targets.iter().any(|target| target.arch != Arch::Cpu) {
            read("disassembler", &input.toolchains.disassembler);
            read("triton_disassembler", &input.toolchains.triton_disassembler);
        }
        if targets.iter().any(|target| target.fatbin) {
            read("fatbinary", &input.toolchains.fatbinary);
        }
        let operator = input.package.operator(&kernel.operator);
        let mut baselines =
            input.package.baselines.iter().filter(|baseline| operator.is_some_and(|o| baseline.is_of(o))).peekable();
        if baselines.peek().is_some() {
            read("python", &input.toolchains.python);
            read("torch", &input.toolchains.torch);
            read("torch-cuda", &input.toolchains.torch_cuda);
        }
        let files = baselines.filter_map(|baseline| input.references.get(&baseline.source.as_ref()?.0));
        all.extend(files.flat_map(|tree| tree.files.clone()));
        all
    }

    /// Whether the target of a selection is a device.
    pub fn is_for_device(&self, selected: &Selected) -> bool {
        let found = self.planner.lock().ok().and_then(|planner| planner.found(selected));
        found.is_some_and(|found| found.target.arch != Arch::Cpu)
    }

    /// The step that would count the opcodes of a contender's machine code, whether or not the plan has it; none on `cpu`, and for a kernel in PyTorch, which
    /// has no machine code of its own.
    pub fn disassembly(&self, selected: &Selected, build: &PlannedVariant) -> Option<Node> {
        self.disassembling(selected, build, Disassembly::Counts)
    }

    /// The step that would write the disassembly of a contender's machine code; none where [`Self::disassembly`] is.
    pub fn listing(&self, selected: &Selected, build: &PlannedVariant) -> Option<Node> {
        self.disassembling(selected, build, Disassembly::Listing)
    }

    fn disassembling(&self, selected: &Selected, build: &PlannedVariant, what: Disassembly) -> Option<Node> {
        let mut planner = self.planner.lock().ok()?;
        let found = planner.found(selected)?;
        let scope = found.scope(&selected.choice, selected.stage.round);
        if scope.target.arch == Arch::Cpu || scope.kernel.language == Language::Torch {
            return None;
        }
        let scope = scope.of(build);
        let problem = selected.cases.first().map(|case| &case.problem);
        planner.disassembly(scope, build, problem, what).ok()
    }

    /// The parts of a kernel's declaration that say how its results are read.
    pub fn about(&self, selected: &Selected) -> Option<ResultContext> {
        let planner = self.planner.lock().ok()?;
        let found = planner.found(selected)?;
        let class = |at: usize| selected.class_name(&selected.shapes[at]);
        let shape = |(at, case): (usize, &Case)| (found.operator.shapes[case.at].name.clone(), class(at));
        let own = |launch: &LaunchDecl| matches!(launch.action, LaunchAction::Kernel { .. });
        Some(ResultContext {
            shapes: selected.cases.iter().enumerate().map(shape).collect(),
            not_served: planner.not_served(found.scope(&selected.choice, 0), selected),
            timed: is_timed(found.scope(&selected.choice, 0)) || is_called(found.scope(&selected.choice, 0)),
            called: is_called(found.scope(&selected.choice, 0)),
            per: match &found.kernel.select.per {
                Per::Value(expr) => Some(expr.text().to_string()),
                Per::All | Per::Shape => None,
            },
            host: found.kernel.host.as_ref().map(|host| format!("{}::{}", found.kernel.source, host.function)),
            hot: found.kernel.select.metric == Metric::Hot,
            whole: found.kernel.language != Language::Torch && found.kernel.launches.iter().all(own),
            baselines: {
                let all = &planner.package_input(selected.package).package.baselines;
                all.iter().filter(|b| b.is_of(found.operator)).map(|b| b.name.clone()).collect()
            },
            index_limit: index_limit(found.scope(&selected.choice, 0), selected),
        })
    }
}

/// The parts of a kernel's declaration that say how its results are read.
pub struct ResultContext {
    /// Name and class of each shape, by position.
    pub shapes: Vec<(String, String)>,
    /// The names of the selected shapes that no variant serves.
    pub not_served: Vec<String>,
    /// The expression whose values are the classes, if declared.
    pub per: Option<String>,
    /// Whether kernels are timed on its target.
    pub timed: bool,
    /// Whether its calls are timed, in place of its launches.
    pub called: bool,
    /// Its own launcher, if it has one: `launch.cu::run`.
    pub host: Option<String>,
    /// Whether hot times count instead of cold ones.
    pub hot: bool,
    /// Whether it launches only its own code.
    pub whole: bool,
    /// The baselines of its operator.
    pub baselines: Vec<String>,
    /// The index type that none of its shapes comes near, if its arguments show one.
    pub index_limit: Option<IndexLimit>,
}

impl Expand for Expander<'_> {
    fn expand(
        &self,
        node: &Node,
        _: &StepResult,
        read: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Vec<Node>, ExpandError> {
        let mut planner = self.planner.lock().map_err(|_| ExpandError::Panicked)?;
        // An expansion that failed may have left its own.
        planner.later = 0;
        if let Some(searching) = planner.searching.get(&node.id).cloned() {
            let bytes = read("search").ok_or(ExpandError::NotStored("what the search decided"))?;
            let searched: Searched = serde_json::from_slice(&bytes)?;
            planner.searched(&searching, &searched)?;
        } else if let Some(contest) = planner.contests.get(&node.id).cloned() {
            let bytes = read("nomination").ok_or(ExpandError::NotStored("the nomination"))?;
            let nomination: Nomination = serde_json::from_slice(&bytes)?;
            planner.named(&contest, &nomination)?;
        } else if let Some(nominated) = planner.nominated.get(&node.id).cloned() {
            let bytes = read("nomination").ok_or(ExpandError::NotStored("the nomination"))?;
            let nomination: Nomination = serde_json::from_slice(&bytes)?;
            planner.nominees(nominated, &nomination)?;
        } else if let Some(selected) = planner.selected.get(&node.id).cloned() {
            let bytes = read("selection").ok_or(ExpandError::NotStored("the selection"))?;
            let selection: Selection = serde_json::from_slice(&bytes)?;
            planner.later = PHASES * selected.challenge;
            let mut without = vec![];
            for (variant, of) in &by_variant(&selection.champions) {
                without.extend(planner.champion(&selected, *variant, of)?);
            }
            if !planner.challenge(&node.id, &selected, &selection.champions, without)? {
                planner.later = PHASES * selected.challenge;
                planner.settled(&selected, &selection.champions)?;
            }
            planner.later = 0;
        } else if let Some(challenge) = planner.challenges.get(&node.id).cloned() {
            let bytes = read("nomination").ok_or(ExpandError::NotStored("the nomination"))?;
            let nomination: Nomination = serde_json::from_slice(&bytes)?;
            planner.challenged(&challenge, &nomination)?;
        } else if let Some(leading) = planner.nominating_leaders(&node.id) {
            let bytes = read("nomination").ok_or(ExpandError::NotStored("the nomination"))?;
            let nomination: Nomination = serde_json::from_slice(&bytes)?;
            planner.nominated_leaders(&leading, &nomination)?;
        } else if let Some(rated) = planner.rated.get(&node.id).cloned() {
            let bytes = read("rating").ok_or(ExpandError::NotStored("the rating"))?;
            let rating: Rating = serde_json::from_slice(&bytes)?;
            planner.after_rating(&node.id, &rated, &rating)?;
        } else if let Some(waiting) = planner.waiting.get(&node.id).cloned() {
            let bytes = read("decision").ok_or(ExpandError::NotStored("the decision"))?;
            let decision: Decision = serde_json::from_slice(&bytes)?;
            planner.decided(waiting, &decision);
        }
        Ok(std::mem::take(&mut planner.nodes))
    }
}

/// The champions by variant: one may serve several classes.
fn by_variant(champions: &[Champion]) -> BTreeMap<u32, Vec<&Champion>> {
    let mut all: BTreeMap<u32, Vec<&Champion>> = BTreeMap::new();
    for champion in champions {
        if let Some(variant) = champion.variant {
            all.entry(variant).or_default().push(champion);
        }
    }
    all
}

/// The contender of that number.
pub(super) fn by_number(selected: &Selected, champion: u32) -> Option<&PlannedVariant> {
    selected.builds.iter().find(|build| build.variant.order == champion)
}

/// A declared kernel on a target, found again by name.
pub(super) struct DeclaredKernel<'a> {
    package: usize,
    kernel: &'a Kernel,
    operator: &'a Operator,
    target: &'a Target,
}

impl<'a> DeclaredKernel<'a> {
    pub(super) fn scope<'s>(&self, choice: &'s TypeChoice, round: u32) -> Scope<'s>
    where
        'a: 's,
    {
        let DeclaredKernel { package, kernel, operator, target } = *self;
        Scope { package, kernel, operator, choice, target, round }
    }
}

impl<'a> Planner<'a> {
    /// The kernel of a selection. All names were valid when the select node was made.
    pub(super) fn found(&self, selected: &Selected) -> Option<DeclaredKernel<'a>> {
        self.find(selected.package, &selected.kernel, &selected.target)
    }

    /// A kernel on a target by their names.
    pub(super) fn find(&self, package: usize, kernel: &str, target: &str) -> Option<DeclaredKernel<'a>> {
        let declared = self.package_input(package).package;
        let kernel = declared.kernels.iter().find(|k| k.name == kernel)?;
        let operator = declared.operators.iter().find(|o| o.name == kernel.operator)?;
        let target = declared.targets.get(target)?;
        Some(DeclaredKernel { package, kernel, operator, target })
    }

    /// Pairs of the variants near the best with the best, and what reads them: the decision, or before it a step that names variants for single shapes.
    fn nominees(&mut self, nominated: NominationContext, nomination: &Nomination) -> Result<(), Diagnostic> {
        let NominationContext { mut decision, of_classes, splits, mut selected } = nominated;
        let Some(found) = self.found(&selected) else { return Ok(()) };
        let scope = found.scope(&selected.choice, selected.stage.round);
        let mut pairs = BTreeMap::new();
        let build = |order: u32| selected.builds.iter().find(|b| b.variant.order == order);
        let phase = if of_classes { PAIRING } else { SPLIT_PAIRING };
        for class in &nomination.classes {
            let Some((best, against)) = class.best.and_then(|o| Some((o, build(o)?))) else { continue };
            for (order, near) in class.near.iter().filter_map(|o| Some((o, build(*o)?))) {
                for (at, case) in selected.benched(found.operator, &class.shapes) {
                    let pair = self.pairs(scope, near, against, case, phase)?;
                    let (a, b) = if pair.turned { (best, *order) } else { (*order, best) };
                    let source = Source::Output { node: pair.id.clone(), name: "observation".into(), required: false };
                    pairs.insert(format!("pairs:{a}:{b}:{at}"), InputRef { source, form: Form::Blob });
                    if is_called(scope) {
                        let judged = self.judged_pairs((scope, near), (scope, against), case, (&pair, phase));
                        pairs.extend(sound((*order, best), at as u32, judged));
                    }
                }
            }
        }
        decision.inputs.extend(pairs.clone());
        selected.pairs.extend(pairs);
        if splits {
            let id = self.splitting(scope, &selected.stage, &decision);
            self.nominated.insert(id, NominationContext { decision, of_classes: false, splits: false, selected });
            return Ok(());
        }
        let id = self.add(decision);
        self.selected.insert(id, Arc::new(selected));
        Ok(())
    }

    /// Plans a champion's machine code and each of its methods. `of` are the classes that it serves, at least one. Returns the kernels without a method that are
    /// timed against it at all of its bench shapes.
    fn champion(&mut self, selected: &Selected, champion: u32, of: &[&Champion]) -> Result<Vec<Without>, Diagnostic> {
        let Some(found) = self.found(selected) else { return Ok(vec![]) };
        let Some(build) = selected.builds.iter().find(|b| b.variant.order == champion) else { return Ok(vec![]) };
        let scope = found.scope(&selected.choice, selected.stage.round);
        // PyTorch makes no machine code of a kernel.
        if scope.target.arch == Arch::Cpu || scope.kernel.language == Language::Torch {
            return Ok(vec![]);
        }
        let mut without = vec![];
        let scope = scope.of(build);
        // A provisional champion is not timed, so nothing could show the value of a method.
        let timed = of.iter().filter(|c| !c.provisional);
        let benched = timed.flat_map(|c| selected.benched(scope.operator, &c.shapes)).collect::<Vec<_>>();
        // A binary for each class of shapes that is timed; one in languages whose binaries serve all shapes.
        let problems = self.shown_at(scope, build, selected, &benched)?;
        let on = problems.iter().map(|problem| self.disassemble(scope, build, problem.as_ref()));
        let on: Vec<String> = on.collect::<Result<_, _>>()?;
        let on: Vec<(Option<Problem>, String)> = problems.into_iter().zip(on).collect();
        for method in &scope.kernel.methods {
            if let Some(off) = self.without(scope, build, method) {
                let (attribute, pairs) = self.method(selected, scope, build, method, &on, &off, &benched)?;
                if !pairs.is_empty() && pairs.len() == benched.len() {
                    without.push(Without { build: off, champion, attribute, pairs });
                }
            } else if scope.kernel.leaves_out(&build.variant, method) {
                let params = AttributeParams { unused: true, ..ATTRIBUTE };
                let attribute = self.attribute(scope, build, method, &params).done();
                self.add(attribute);
            }
        }
        self.roofline(scope, build, &benched)?;
        Ok(without)
    }

    /// Plans what follows a selection that no challenge changes any more: confirmations, baselines and fatbins of its champions, the selection among kernels of one
    /// operator, and the next round.
    pub(super) fn settled(&mut self, selected: &Selected, champions: &[Champion]) -> Result<(), Diagnostic> {
        for (variant, of) in &by_variant(champions) {
            self.confirmations(selected, *variant, of)?;
            self.baselines(selected, *variant, of)?;
            self.fatbin(selected, *variant)?;
        }
        self.lead(selected, champions)?;
        self.next_round(selected, champions.iter().find_map(|champion| champion.variant));
        Ok(())
    }

    /// The confirmations of a champion at every shape of its classes. A kernel's own launcher has a process of its own for each run, and a kernel in PyTorch for
    /// each verification: its timed calls confirm it, at bench shapes. What was neither observed nor can be observed here is not confirmed.
    fn confirmations(&mut self, selected: &Selected, champion: u32, of: &[&Champion]) -> Result<(), Diagnostic> {
        let Some(found) = self.found(selected) else { return Ok(()) };
        let Some(build) = selected.builds.iter().find(|b| b.variant.order == champion) else { return Ok(()) };
        let scope = found.scope(&selected.choice, selected.stage.round);
        if scope.target.arch == Arch::Cpu {
            return Ok(());
        }
        let scope = scope.of(build);
        // Its timed calls confirm a kernel in PyTorch, and every contender has them.
        if scope.kernel.language == Language::Torch {
            return Ok(());
        }
        let observed = of.iter().any(|champion| !champion.provisional) || self.no_device(scope).is_none();
        if scope.kernel.host.is_some() || !observed {
            return Ok(());
        }
        for (at, case) in selected.cases.iter().enumerate() {
            let Some(champion) = of.iter().find(|champion| champion.shapes.contains(&(at as u32))) else { continue };
            let timed = if champion.provisional { None } else { self.bench(scope, build, case)? };
            self.confirm(scope, build, case, timed)?;
        }
        Ok(())
    }

    /// The fatbin of a champion, if its target asks for it. A kernel with its own launcher is a library, and is not packaged.
    fn fatbin(&mut self, selected: &Selected, champion: u32) -> Result<(), Diagnostic> {
        let Some(found) = self.found(selected) else { return Ok(()) };
        let Some(build) = selected.builds.iter().find(|b| b.variant.order == champion) else { return Ok(()) };
        let scope = found.scope(&selected.choice, selected.stage.round);
        // What Triton makes is not packaged so, and PyTorch makes nothing.
        if !scope.target.fatbin || scope.kernel.host.is_some() || scope.kernel.language != Language::Cuda {
            return Ok(());
        }
        let scope = scope.of(build);
        let (compile, _) = self.compile(scope, build, Self::machine_compiler(scope), ABLATION, None)?;
        let params = FatbinParams { arch: scope.target.arch.name().into() };
        let parts = self.parts(scope, build);
        let tools = &self.package_input(scope.package).toolchains;
        let mut node = NodeBuilder::new(StepKind::Fatbin, &parts, self.labels(scope, build, None), &params)
            .phase(ABLATION)
            .round(scope.round)
            .output("binary", &compile, "binary")
            .tool("toolchain", &tools.fatbinary);
        if scope.target.ptx {
            node = node.output(PTX, &compile, PTX);
        }
        self.add(node.done());
        Ok(())
    }

    /// The champion without a method: another variant of the space under its own name, or one that is built only for this comparison.
    fn without(&self, scope: Scope<'_>, build: &PlannedVariant, method: &Method) -> Option<PlannedVariant> {
        let off = scope.kernel.without(&build.variant, method)?;
        let mut other = PlannedVariant { method: Some(method.id.clone()), ..self.another(scope, build, &off.variant) };
        if let Some(source) = off.source {
            other.source = source;
            other.without = method.id.clone();
        }
        if !off.flags.is_empty() {
            other.flags = off.flags;
            other.without = method.id.clone();
        }
        Some(other)
    }

    /// Plans the inspect step that counts opcodes of a variant's machine code; returns its id.
    fn disassemble(
        &mut self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        problem: Option<&Problem>,
    ) -> Result<String, Diagnostic> {
        let node = self.disassembly(scope, build, problem, Disassembly::Counts)?;
        Ok(self.add(node))
    }

    /// The inspect step that disassembles a variant's machine code.
    fn disassembly(
        &mut self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        problem: Option<&Problem>,
        what: Disassembly,
    ) -> Result<Node, Diagnostic> {
        let compiler = Self::machine_compiler(scope);
        let (compile, _) = self.compile(scope, build, compiler, ABLATION, problem)?;
        let class = match compiler {
            Compiler::Triton => self.specialised_for(scope, build, problem)?.class,
            _ => String::new(),
        };
        let params = InspectParams {
            arch: scope.target.arch.name().into(),
            entries: self.entries(scope, build, problem)?,
            disassemble: what == Disassembly::Counts,
            listing: what == Disassembly::Listing,
            launches: vec![],
            host: scope.kernel.host.is_some(),
        };
        let mut parts = self.parts(scope, build);
        parts.extend([class.as_str(), if what == Disassembly::Counts { "sass" } else { "listing" }]);
        let tools = &self.package_input(scope.package).toolchains;
        let disassembler = match compiler {
            Compiler::Triton => &tools.triton_disassembler,
            _ => &tools.disassembler,
        };
        let node = NodeBuilder::new(StepKind::Inspect, &parts, self.labels(scope, build, None), &params)
            .phase(ABLATION)
            .round(scope.round)
            .output("binary", &compile, "binary")
            .output("facts", &compile, "facts")
            .tool("toolchain", disassembler);
        Ok(node.done())
    }

    /// The signature of a method: from the manifest, or else from the registry.
    fn signature(&self, method: &Method, arch: &Arch) -> MatchParams {
        if !method.signature.is_empty() {
            return MatchParams { signature: method.signature.for_arch(arch.name()).cloned(), absent: None };
        }
        match self.input.methods.get(&method.id) {
            Some(Trace::Patterns(known)) => {
                MatchParams { signature: known.for_arch(arch.name()).cloned(), absent: None }
            }
            Some(Trace::Unseen(why)) => MatchParams { signature: None, absent: Some(why.clone()) },
            None => MatchParams { signature: None, absent: None },
        }
    }

    /// The step that concludes what a method is worth to a champion, without its inputs.
    fn attribute(
        &self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        method: &Method,
        params: &AttributeParams,
    ) -> NodeBuilder {
        let labels = Labels { method: Some(method.id.clone()), ..self.labels(scope, build, None) };
        let mut parts = self.parts(scope, build);
        parts.push(&method.id);
        NodeBuilder::new(StepKind::Attribute, &parts, labels, params).phase(ABLATION).round(scope.round)
    }

    #[expect(clippy::too_many_arguments, reason = "a champion, a method of it, and the shapes at which both count")]
    fn method(
        &mut self,
        selected: &Selected,
        scope: Scope<'_>,
        build: &PlannedVariant,
        method: &Method,
        on: &[(Option<Problem>, String)],
        off: &PlannedVariant,
        benched: &[(usize, &Case)],
    ) -> Result<(String, Vec<(usize, PairStep)>), Diagnostic> {
        let mut labels = self.labels(scope, build, None);
        labels.method = Some(method.id.clone());
        let mut parts = self.parts(scope, build);
        parts.push(&method.id);
        let matching =
            NodeBuilder::new(StepKind::Match, &parts, labels.clone(), &self.signature(method, &scope.target.arch))
                .phase(ABLATION)
                .round(scope.round);
        let mut matching = matching;
        for (at, (problem, on)) in on.iter().enumerate() {
            let without = self.disassemble(scope, off, problem.as_ref())?;
            let [with, without_it] = MatchParams::inputs(at);
            matching = matching.output(&with, on, "inspection").output(&without_it, &without, "inspection");
        }
        let matching = matching.done();
        let mut attribute = self.attribute(scope, build, method, &ATTRIBUTE);
        let matching = self.add(matching);
        attribute = attribute.optional("match", &matching, "match");
        let serves = |case: &Case| {
            let shape = &scope.operator.shapes[case.at];
            scope.kernel.serves(&off.variant, scope.operator, scope.choice, shape)
        };
        let (mut judged, mut paired) = (Vec::new(), Vec::new());
        for (at, case) in benched {
            if serves(case)? {
                let pair = self.pairs(scope, off, build, case, ABLATION)?;
                let name = format!("pairs:{at}{}", if pair.turned { TURNED } else { "" });
                attribute = attribute.optional(&name, &pair.id, "observation");
                paired.push((*at, pair));
                judged.push((*at, *case));
            }
        }
        // The kernel without the method must be correct at every shape at which it is timed. If it is timed at none, the first bench shape that it serves is
        // verified, or else the first shape that it serves.
        if judged.is_empty() {
            let mut served = Vec::new();
            for (at, case) in selected.cases.iter().enumerate() {
                if serves(case)? {
                    served.push((at, case));
                }
            }
            let bench = served.iter().find(|(_, case)| is_benched(&scope.operator.shapes[case.at]));
            judged.extend(bench.or(served.first()).copied());
        }
        for (at, case) in judged {
            let judge = self.verify(scope, off, case, ABLATION)?;
            attribute = attribute.optional(&format!("judgement:{at}"), &judge, "judgement");
        }
        Ok((self.add(attribute.done()), paired))
    }
}
