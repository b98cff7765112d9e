//! Steps of one kernel on one target: its variants, and the selection of one for each class of shapes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::calls::{CalledSteps, is_called};
use super::compile_order::by_turns;
use super::context::{Planner, Scope, is_benched};
use super::input::{Goal, Selection};
use super::node_builder::{DECISION, MAIN, NodeBuilder, SPLITTING};
use super::operators::Case;
use super::timing_steps::is_timed;
use super::variants::PlannedVariant;
use kforge_engine::{InputRef, Node};
use kforge_foundation::base::{Diagnostic, Digest};
use kforge_types::model::{Arch, Kernel, Language, Metric, Operator, Shape, Target, TypeChoice, Variant};
use kforge_types::record::StepKind;
use kforge_types::record::event::Labels;
use kforge_types::record::params::{Compiler, Contender, SelectParams, Shortlist, split_class};

/// By how much a paired comparison must show a variant to be slower before the variant loses its place, as a share (docs/design.md, section 4.7).
pub const MARGIN: f64 = 0.01;

/// Which variants are paired with the best. Medians of separate runs of the same binary differ by a few percent as clocks and temperatures change. Five percent
/// covers every variant that could be the best; pairs of the others would take device time and change nothing. Eight limits that time.
pub(super) const SHORTLIST: Shortlist = Shortlist { within: 0.05, most: 8, splits: false };

/// The variants of a kernel on a target for one choice of types that take part in a selection.
#[derive(Clone, Default)]
pub struct Field {
    /// The contenders. The order of each is its position.
    pub builds: Vec<PlannedVariant>,
    /// For each contender: the cases that it serves, by position.
    pub serves: Vec<Vec<u32>>,
    /// Judge steps: contender, case, id.
    pub judged: Vec<(u32, usize, String)>,
    /// Bench steps.
    pub benched: Vec<(u32, usize, String)>,
    /// Steps that time calls of kernels in PyTorch.
    pub called: Vec<(u32, usize, CalledSteps)>,
}

/// Which selection of a kernel this is, if there is one after each round.
#[derive(Debug, Clone, Default)]
pub struct Stage {
    /// The round before the selection.
    pub round: u32,
    /// Whether this is the last selection, whose champions are the kernel's.
    pub is_last: bool,
    /// The first select node of the previous stage. The first one of this stage comes after it.
    pub after: Option<String>,
    /// The deciding select node of the previous stage. The deciding one of this stage comes after it, when the nodes that the earlier one adds exist.
    pub decided: Option<String>,
}

impl Stage {
    /// The stage's part of ids; empty for the last stage.
    pub fn name(&self) -> String {
        if self.is_last { String::new() } else { format!("r{}", self.round) }
    }
}

/// What expands a nominating select node.
#[derive(Clone)]
pub struct NominationContext {
    /// The deciding select node, with the pairs that are known so far.
    pub decision: Node,
    /// Whether the variants are nominated for whole classes, not for single shapes.
    pub of_classes: bool,
    /// Whether variants are to be nominated for single shapes next, because classes may split.
    pub splits: bool,
    /// What expands the deciding node.
    pub selected: Selected,
}

/// What expands a select node's champions.
#[derive(Clone)]
pub struct Selected {
    /// Position of the package.
    pub package: usize,
    /// The kernel's name.
    pub kernel: String,
    /// The target's name.
    pub target: String,
    /// The choice of types.
    pub choice: TypeChoice,
    /// The contenders in declared order.
    pub builds: Vec<PlannedVariant>,
    /// The cases, for verifying ablated variants.
    pub cases: Vec<Case>,
    /// For each class in [`SelectParams::shapes`], and for each that may be split from one: its display name.
    pub classes: BTreeMap<String, String>,
    /// [`SelectParams::shapes`]: the class of each case.
    pub shapes: Vec<String>,
    /// Which selection it is.
    pub stage: Stage,
    /// Whether only the lockfile's variants take part.
    pub accepted: bool,
    /// The contenders with their judgements and times.
    pub field: Field,
    /// The pairs that it reads, by the name of the input.
    pub pairs: BTreeMap<String, InputRef>,
    /// How many challenges came before it.
    pub challenge: u8,
}

impl Selected {
    /// The timed cases among these shapes, with their positions.
    pub fn benched<'c>(&'c self, operator: &Operator, shapes: &[u32]) -> Vec<(usize, &'c Case)> {
        let timed =
            |(at, case): &(usize, &Case)| shapes.contains(&(*at as u32)) && is_benched(&operator.shapes[case.at]);
        self.cases.iter().enumerate().filter(timed).collect()
    }

    /// The display name of a class.
    pub fn class_name(&self, class: &str) -> String {
        self.classes.get(class).cloned().unwrap_or_else(|| class.into())
    }
}

/// The name of a variant in the lockfile: a digest of its name without types. That name consists of its tunables, so reordering a manifest keeps the pin.
pub fn identity(name: &str) -> String {
    Digest::of(name.as_bytes()).short()
}

/// Whether a class of a selection may split: it has several bench shapes, and the manifest allows more classes than there are.
fn may_split(params: &SelectParams) -> bool {
    let of_bench = |at: &u32| &params.shapes[*at as usize];
    let several = |class: &&String| params.bench.iter().filter(|at| of_bench(at) == *class).count() > 1;
    let classes: BTreeSet<&String> = params.shapes.iter().collect();
    classes.len() < params.most_classes as usize && classes.iter().any(several)
}

/// The display name of each class, and the class of each shape. A class is identified by the position of its first shape, so that names of shapes stay out of
/// keys.
pub(super) fn classes<'s>(
    scope: Scope<'_>,
    of: impl Iterator<Item = &'s Shape>,
) -> Result<(BTreeMap<String, String>, Vec<String>), Diagnostic> {
    let mut names: Vec<String> = Vec::new();
    let mut shapes = Vec::new();
    for shape in of {
        let class = scope.kernel.class_of(scope.operator, scope.choice, shape)?;
        let at = names.iter().position(|n| *n == class).unwrap_or_else(|| {
            names.push(class);
            names.len() - 1
        });
        shapes.push(at.to_string());
    }
    Ok((names.into_iter().enumerate().map(|(i, name)| (i.to_string(), name)).collect(), shapes))
}

/// The cases that any variant of the kernel serves. A kernel that agents write has to serve all of them.
fn served(scope: Scope<'_>, cases: Vec<Case>) -> Result<Vec<Case>, Diagnostic> {
    if scope.kernel.rounds.is_some() {
        return Ok(cases);
    }
    let served = scope.kernel.served(scope.target, scope.operator, scope.choice)?;
    Ok(cases.into_iter().filter(|case| served[case.at]).collect())
}

impl Planner<'_> {
    /// Plans a kernel on a target for one choice of types.
    pub fn kernel(
        &mut self,
        package: usize,
        kernel: &Kernel,
        operator: &Operator,
        choice: &TypeChoice,
        target: &Target,
    ) -> Result<(), Diagnostic> {
        let scope = Scope { package, kernel, operator, choice, target, round: 0 };
        self.awaits(scope);
        let accepted = self.is_accepted(scope);
        let variants = match &kernel.rounds {
            _ if accepted => Some(self.accepted(scope)?),
            None => self.unsearched(scope, kernel.variants(target, choice)?)?,
            Some(_) => Some(kernel.start(target, choice)?.into_iter().collect()),
        };
        let Some(variants) = variants else { return Ok(()) };
        let builds: Vec<PlannedVariant> = variants.iter().map(|v| self.build_of(scope, v)).collect();
        let rounds = if accepted { vec![] } else { self.tried(scope, &builds)? };
        if self.input.goal == Goal::Check && builds.is_empty() && rounds.iter().all(|round| round.builds.is_empty()) {
            self.unwritten(scope);
        }
        if self.input.goal == Goal::Check {
            let tried = rounds.iter().flat_map(|round| &round.builds);
            return self.compile_all(scope, builds.iter().chain(tried).collect());
        }
        if target.arch != Arch::Cpu {
            // On `cpu` the shape decides which compiler is used.
            self.compile_all(scope, builds.iter().collect())?;
        }
        let cases = self.cases(package, operator, choice)?;
        self.calibrate(package, operator, choice, &cases);
        let cases = served(scope, cases)?;
        if cases.is_empty() {
            self.awaits_no_longer(scope);
            return Ok(());
        }
        let mut field = Field::default();
        let few = self.few(scope, builds.len());
        for build in builds {
            self.enter(scope, build, &cases, &mut field, few)?;
        }
        match &kernel.rounds {
            Some(_) if !accepted => self.rounds(scope, field, &cases, rounds),
            _ if few.is_some() => self.finals(scope, field, cases),
            // Which variants are correct is known before any is called.
            _ if is_called(scope) && self.input.goal == Goal::Build => self.finals(scope, field, cases),
            _ if self.input.goal == Goal::Build => {
                let only = Stage { is_last: true, ..Stage::default() };
                self.select(scope, field, &cases, only).map(|_| ())
            }
            _ => Ok(()),
        }
    }

    /// The names of the shapes of a selection that the kernel leaves to other kernels.
    pub(super) fn not_served(&self, scope: Scope<'_>, selected: &Selected) -> Vec<String> {
        let shapes = scope.operator.shapes.iter().enumerate();
        let left = shapes.filter(|(at, shape)| {
            Selection::takes(&self.input.selection.shapes, &shape.name)
                && !selected.cases.iter().any(|case| case.at == *at)
        });
        left.map(|(_, shape)| shape.name.clone()).collect()
    }

    /// Plans the compilations of variants in the order in which they start.
    fn compile_all(&mut self, scope: Scope<'_>, builds: Vec<&PlannedVariant>) -> Result<(), Diagnostic> {
        for at in by_turns(&builds.iter().map(|build| &build.variant).collect::<Vec<_>>()) {
            let scope = Scope { round: builds[at].round, ..scope };
            let compiler = Self::compiler(scope.of(builds[at]), 0.0);
            for problem in self.compiled_for(scope, builds[at])? {
                self.compile(scope, builds[at], compiler, MAIN, problem.as_ref())?;
            }
        }
        Ok(())
    }

    /// Whether only the lockfile's variants are built for a kernel on a target.
    pub(super) fn is_accepted(&self, scope: Scope<'_>) -> bool {
        let seat = (scope.kernel.name.clone(), scope.choice.label.clone(), scope.target.name.clone());
        self.package_input(scope.package).accepted.contains(&seat)
    }

    /// The accepted variants, in declared order.
    fn accepted(&self, scope: Scope<'_>) -> Result<Vec<Variant>, Diagnostic> {
        let kernel = scope.kernel;
        // A kernel that no agent has written yet has no variants.
        let all = if kernel.is_unstarted() { vec![] } else { kernel.variants(scope.target, scope.choice)? };
        let pinned = self.pinned(scope, &all);
        if pinned.is_empty() {
            let message = format!(
                "kforge.lock holds an accepted variant of kernel `{}` on target `{}` that the kernel does not have",
                kernel.name, scope.target.name
            );
            let error = kernel.place.error("kernel.accepted", message);
            return Err(error.hint(format!("`kforge accept {} --undo` frees the kernel", kernel.name)));
        }
        Ok(pinned.into_iter().filter_map(|at| all.get(at as usize).cloned()).collect())
    }

    /// Plans what makes a variant a contender: its compilation, and, on each shape that it serves, its verification and its timing, with `few` samples or with
    /// the full number.
    pub fn enter(
        &mut self,
        scope: Scope<'_>,
        mut build: PlannedVariant,
        cases: &[Case],
        field: &mut Field,
        few: Option<u32>,
    ) -> Result<(), Diagnostic> {
        if scope.kernel.rounds.is_some() {
            // Variants may belong to several kernels, so each gets its position among all of them.
            build.variant.order = field.builds.len() as u32;
        }
        let order = build.variant.order;
        let mut served = Vec::new();
        for (at, case) in cases.iter().enumerate() {
            let shape = &scope.operator.shapes[case.at];
            if scope.of(&build).kernel.serves(&build.variant, scope.operator, scope.choice, shape)? {
                served.push(at as u32);
            }
        }
        let watched = self.watched(scope, &build, served.iter().map(|at| &cases[*at as usize]));
        for at in served.iter().map(|at| *at as usize) {
            let case = &cases[at];
            let is_watched = Self::compiler(scope, case.work) == Compiler::EmulatorCheck;
            let after = if is_watched { &[][..] } else { &watched };
            field.judged.push((order, at, self.verify_after(scope, &build, case, MAIN, after)?));
            let verified = self.verification(scope, &build, case);
            if let Some(bench) = self.timing(scope, &build, case, few, verified)? {
                field.benched.push((order, at, bench));
            }
        }
        if served.is_empty() && scope.target.arch != Arch::Cpu && scope.kernel.language == Language::Cuda {
            self.compile(scope, &build, Self::compiler(scope.of(&build), 0.0), MAIN, None)?;
        }
        field.serves.push(served);
        field.builds.push(build);
        Ok(())
    }

    /// Plans a selection. If variants are to be compared in pairs, it has two nodes, and the second is known once the first has ended; otherwise it has one.
    /// Returns the id of the first.
    pub fn select(
        &mut self,
        scope: Scope<'_>,
        field: Field,
        cases: &[Case],
        stage: Stage,
    ) -> Result<String, Diagnostic> {
        // With one contender or no timed case, the decision needs no pairs.
        let nominates = field.builds.len() > 1 && !(field.benched.is_empty() && field.called.is_empty());
        let (decision, selected) = self.deciding(scope, field, cases, stage.clone(), &stage.name())?;
        // With two nodes, the first one's result adds the second, and by then the previous stage has added its own.
        let after = if nominates { stage.decided.clone() } else { stage.after.clone() };
        let decision = Node { after: after.into_iter().collect(), ..decision };
        if !nominates {
            let id = self.add(decision);
            self.selected.insert(id.clone(), Arc::new(selected));
            return Ok(id);
        }
        let (_, params) = self.selection(scope, &selected.field, cases, stage.is_last)?;
        let splits = may_split(&params);
        let params = SelectParams { shortlist: Some(SHORTLIST), ..params };
        let package = decision.labels.package.clone();
        // The last selection's id has no stage part.
        let name = stage.name();
        let parts = [package.as_str(), &scope.kernel.name, &scope.choice.label, &scope.target.name, &name, "nominate"];
        let mut like = NodeBuilder::new(StepKind::Select, &parts, decision.labels.clone(), &params)
            .round(stage.round)
            .after(stage.after.clone())
            .expands();
        if stage.is_last {
            like = like.binding();
        }
        let id = self.add(Node { inputs: decision.inputs.clone(), ..like.done() });
        self.nominated.insert(id.clone(), NominationContext { decision, of_classes: true, splits, selected });
        Ok(id)
    }

    /// The select node that decides among contenders, without pairs, and what expands it. `part` tells it from the kernel's other selections.
    pub(super) fn deciding(
        &mut self,
        scope: Scope<'_>,
        field: Field,
        cases: &[Case],
        stage: Stage,
        part: &str,
    ) -> Result<(Node, Selected), Diagnostic> {
        let (classes, params) = self.selection(scope, &field, cases, stage.is_last)?;
        let (kernel, operator, choice, target) = (scope.kernel, scope.operator, scope.choice, scope.target);
        let shapes = params.shapes.clone();
        let package = self.package_input(scope.package).package.name.clone();
        let labels = Labels {
            package: package.clone(),
            kernel: Some(kernel.name.clone()),
            operator: Some(operator.name.clone()),
            target: Some(target.name.clone()),
            ..Labels::default()
        };
        let parts = [package.as_str(), &kernel.name, &choice.label, &target.name, part];
        let phase = if target.arch == Arch::Cpu { MAIN } else { DECISION };
        let mut node =
            NodeBuilder::new(StepKind::Select, &parts, labels, &params).phase(phase).round(stage.round).expands();
        if stage.is_last {
            node = node.binding();
        }
        node = self.judged_by(scope, node, &field, cases)?;
        for (variant, shape, bench) in &field.benched {
            node = node.optional(&format!("bench:{variant}:{shape}"), bench, "observation");
        }
        for (variant, shape, called) in &field.called {
            node = called.read_by(node, (*variant, *shape));
        }
        let selected = Selected {
            package: scope.package,
            kernel: kernel.name.clone(),
            target: target.name.clone(),
            choice: choice.clone(),
            builds: field.builds.clone(),
            cases: cases.to_vec(),
            classes,
            shapes,
            stage,
            accepted: self.is_accepted(scope),
            field,
            pairs: BTreeMap::new(),
            challenge: 0,
        };
        Ok((node.done(), selected))
    }

    /// Plans the nomination of variants for single shapes, which reads what the decision reads so far. Returns its id.
    pub(super) fn splitting(&mut self, scope: Scope<'_>, stage: &Stage, decision: &Node) -> String {
        let package = self.package_input(scope.package).package.name.clone();
        let name = stage.name();
        let parts = [package.as_str(), &scope.kernel.name, &scope.choice.label, &scope.target.name, &name, "split"];
        let shortlist = Shortlist { splits: true, ..SHORTLIST };
        // Parameters of a selection always serialize.
        let shortlist = serde_json::to_value(shortlist).expect("BUG: a shortlist that does not serialise");
        let mut params = decision.params.clone();
        params["shortlist"] = shortlist;
        let mut like = NodeBuilder::new(StepKind::Select, &parts, decision.labels.clone(), &params)
            .phase(SPLITTING)
            .round(stage.round)
            .expands();
        if stage.is_last {
            like = like.binding();
        }
        self.add(Node { inputs: decision.inputs.clone(), ..like.done() })
    }

    /// The parameters of a selection, and the names of its classes.
    pub(super) fn selection(
        &self,
        scope: Scope<'_>,
        field: &Field,
        cases: &[Case],
        is_last: bool,
    ) -> Result<(BTreeMap<String, String>, SelectParams), Diagnostic> {
        let (kernel, operator, choice, target) = (scope.kernel, scope.operator, scope.choice, scope.target);
        let (mut classes, shapes) = classes(scope, cases.iter().map(|c| &operator.shapes[c.at]))?;
        let of_cases = cases.iter().map(|c| &operator.shapes[c.at]);
        for (at, (class, shape)) in shapes.iter().zip(of_cases).enumerate().filter(|(_, (_, s))| is_benched(s)) {
            classes.insert(split_class(class, at), split_class(&classes[class], &shape.name));
        }
        let input = self.package_input(scope.package);
        let pin_of = |types: &str, class: &str| {
            input.pins.get(&(kernel.name.clone(), types.into(), target.name.clone(), class.into())).cloned()
        };
        let pin = |class: &str| pin_of(&choice.label, class).or_else(|| pin_of("", class));
        let candidates = field.builds.iter().zip(&field.serves);
        let candidate = |(b, s): (&PlannedVariant, &Vec<u32>)| Contender {
            order: b.variant.order,
            identity: identity(&b.name()),
            serves: s.clone(),
        };
        let params = SelectParams {
            candidates: candidates.map(candidate).collect(),
            shapes,
            bench: (0u32..).zip(cases).filter(|(_, c)| is_benched(&operator.shapes[c.at])).map(|(i, _)| i).collect(),
            most_classes: kernel.select.classes,
            pinned: classes.iter().filter_map(|(key, name)| Some((key.clone(), pin(name)?))).collect(),
            margin: MARGIN,
            hot: kernel.select.metric == Metric::Hot && !is_called(scope),
            timed: is_timed(scope) || is_called(scope),
            answers: kernel.rounds.is_some() && is_last,
            shortlist: None,
            finals: None,
            challenge: false,
        };
        Ok((classes, params))
    }

    /// Adds to a select node the inputs that say which contenders could be built and which are correct.
    pub(super) fn judged_by(
        &mut self,
        scope: Scope<'_>,
        mut node: NodeBuilder,
        field: &Field,
        cases: &[Case],
    ) -> Result<NodeBuilder, Diagnostic> {
        for (build, served) in field.builds.iter().zip(&field.serves) {
            let scope = Scope { round: build.round, ..scope };
            if let Some(first) = served.first() {
                let compiler = Self::compiler(scope.of(build), cases[*first as usize].work);
                let problem = &cases[*first as usize].problem;
                let (_, inspect) = self.compile(scope, build, compiler, MAIN, Some(problem))?;
                node = node.optional(&format!("built:{}", build.variant.order), &inspect, "inspection");
            }
        }
        for (variant, shape, judge) in &field.judged {
            node = node.optional(&format!("judgement:{variant}:{shape}"), judge, "judgement");
            // If the device has no judgement, the emulator's counts: for the same variant and shape, if the kernel is built for `cpu` too.
            if let Some(emulated) = self.emulated(scope, &field.builds, *variant, *shape, cases) {
                node = node.optional(&format!("emulated:{variant}:{shape}"), &emulated, "judgement");
            }
        }
        Ok(node)
    }

    /// The id of the judge step of the same variant and shape on `cpu`, if it is already planned.
    fn emulated(
        &self,
        scope: Scope<'_>,
        builds: &[PlannedVariant],
        variant: u32,
        shape: usize,
        cases: &[Case],
    ) -> Option<String> {
        if scope.target.arch == Arch::Cpu {
            return None;
        }
        let package = self.package_input(scope.package).package;
        let cpu = package.targets.values().find(|t| t.arch == Arch::Cpu && scope.kernel.targets.contains(&t.name))?;
        let build = builds.iter().find(|b| b.variant.order == variant)?;
        let shape = &scope.operator.shapes[cases[shape].at].name;
        let id = [package.name.as_str(), &scope.kernel.name, &build.label, &cpu.name, shape, StepKind::Judge.name()];
        let id = id.iter().filter(|p| !p.is_empty()).copied().collect::<Vec<_>>().join("/");
        self.ids.contains(&id).then_some(id)
    }

    /// The compiler that makes machine code for a target, for the inspection of champions.
    pub fn machine_compiler(scope: Scope<'_>) -> Compiler {
        Self::compiler(scope, f64::INFINITY)
    }
}
