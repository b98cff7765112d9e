//! From known results to what an artifact says of its kernels: champions, launches, verdicts, times, and the evidence for them. Knows how steps name their
//! inputs; runs nothing. What cannot be packed is a [`Refusal`], and all of them are returned together.

mod records;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::de::DeserializeOwned;

use super::{Ground, PackageError, Refusal, RefusalReason, is_gpu, is_within};
use crate::Error;
use crate::build::steps::ended;
use crate::session::Opened;
use crate::session::Session;
use crate::session::build::Ready;
use kforge_engine::evidence::{BINARY, EvidenceCache};
use kforge_engine::{
    Blobs, BuildOptions, BuildOutcome, ClaimsOption, Done, Node, Question, Questions, ReadyResult, Source,
};
use kforge_foundation::base::Digest;
use kforge_pipeline::plan::kernels::Selected as PlanSelected;
use kforge_pipeline::plan::operators::tolerance_of;
use kforge_pipeline::plan::triton::Compiled;
use kforge_pipeline::plan::variants::{PlannedVariant, confirmation_of};
use kforge_pipeline::release::Bundle;
use kforge_pipeline::release::artifact::kernels::{
    PackagedClass, PackagedFatbin, PackagedKernel, PackagedPtx, PackagedRecord, PackagedShape, PackagedVariant,
};
use kforge_pipeline::release::artifact::{BINARIES, FATBIN_ENDING, PTX_ENDING};
use kforge_pipeline::report::classes::stands_for;
use kforge_project::source::python;
use kforge_project::workspace::Member;
use kforge_project::workspace::select::Selected;
use kforge_types::model::triton::JitParam;
use kforge_types::model::{CudaSpec, Kernel, Language, Operator, ShapeRole, Target, TypeChoice};
use kforge_types::record::contract_description::complete;
use kforge_types::record::event::Labels;
use kforge_types::record::fatbin;
use kforge_types::record::kind::fatbin::documents::FATBIN;
use kforge_types::record::machine_code;
use kforge_types::record::params::{Champion, CompileFacts, CompileParams, HOST, Judgement, PTX, Selection, Toolchain};
use kforge_types::record::spec::Tree;
use kforge_types::record::{Inspection, Outcome, Standing, StepKind, Unknown, Verdict};

/// What is known of a plan.
pub(super) struct Known {
    result: ReadyResult,
    asked: Questions,
    /// The option that takes claimed evidence, for reasons.
    claims: ClaimsOption,
}

impl Known {
    pub(super) fn of(
        session: &Session,
        opened: &Opened,
        ready: &Ready<'_>,
        outcome: BuildOutcome,
    ) -> Result<Known, Error> {
        let nodes = outcome.graph.nodes().cloned().zip(outcome.steps.iter().cloned());
        let steps: Vec<(Node, Option<Done>)> = nodes.map(|(node, done)| (node, Some(done))).collect();
        let gave_none = |(node, done): &(Node, Option<Done>)| {
            done.as_ref().is_some_and(|done| done.result.is_none()).then(|| node.id.clone())
        };
        let open = steps.iter().filter_map(gave_none).collect();
        // What was measured just now need not be measured again.
        let options = BuildOptions { remeasure: None, ..ready.options.clone() };
        let graph = ended(outcome)?;
        let asked =
            ready.with_services(session, opened, |services| kforge_engine::questions(graph, &options, services));
        Ok(Known { result: ReadyResult { steps, open }, asked, claims: ClaimsOption::default() })
    }

    /// What is known before anything is built.
    pub(super) fn without_building(session: &Session, opened: &Opened, ready: &Ready<'_>) -> Known {
        let (result, asked) = ready.with_services(session, opened, |services| {
            kforge_engine::known_and_asked(ready.graph.clone(), &ready.options, services)
        });
        Known { result, asked, claims: ClaimsOption::default() }
    }

    /// Whether building could do away with a reason: steps of its kernel have yet to run, and the reason is something that is not known yet.
    pub(super) fn may_change(&self, refusal: &Refusal) -> bool {
        let is_open = |node: &Node| self.result.open.contains(&node.id);
        // The place may also name a choice of types, and the ids of steps name variants.
        let is_its = |labels: &Labels| {
            labels.kernel.as_ref().zip(labels.target.as_ref()).is_some_and(|(kernel, target)| {
                refusal.place.starts_with(&format!("{}/{kernel}/", labels.package))
                    && refusal.place.ends_with(&format!("/{target}"))
            })
        };
        match &refusal.why {
            RefusalReason::NotBuilt(_) => !self.result.open.is_empty(),
            why if why.ground() != Ground::Unknown => false,
            _ => self.result.steps.iter().any(|(node, _)| is_its(&node.labels) && is_open(node)),
        }
    }

    /// The same, with reasons for users of a command with this option.
    pub(super) fn for_users_of(self, claims: ClaimsOption) -> Known {
        Known { claims, ..self }
    }
}

/// What an artifact says of the kernels of a package, and its evidence.
pub(super) struct Gathered {
    pub(super) kernels: Vec<PackagedKernel>,
    /// The machine code, the PTX and the fatbins of the champions by their names in the artifact.
    pub(super) binaries: BTreeMap<String, Vec<u8>>,
    /// The device compilers with which the champions were compiled, by content.
    pub(super) tools: BTreeMap<String, Digest>,
    pub(super) evidence: Bundle,
}

impl Gathered {
    /// The targets, each once.
    pub(super) fn targets(&self) -> Vec<&str> {
        let targets: BTreeSet<&str> = self.kernels.iter().map(|kernel| kernel.target.as_str()).collect();
        targets.into_iter().collect()
    }

    /// Whether any record is only claimed.
    pub(super) fn is_claimed(&self) -> bool {
        let records = self.kernels.iter().flat_map(|kernel| kernel.records.values());
        records.into_iter().any(|record| record.standing == Standing::Claimed)
    }
}

/// A kernel for one choice of types and one target.
struct Seat<'a> {
    kernel: &'a Kernel,
    operator: &'a Operator,
    choice: TypeChoice,
    target: &'a Target,
}

impl<'a> Seat<'a> {
    /// A variant in Triton with the functions of its source.
    fn compiled<'v>(&'v self, build: &'v PlannedVariant, functions: &'v BTreeMap<String, Vec<JitParam>>) -> Compiled<'v>
    where
        'a: 'v,
    {
        Compiled { kernel: self.kernel, variant: &build.variant, choice: &self.choice, functions }
    }

    /// `p/k/T=f16/h200`.
    fn name(&self, package: &str) -> String {
        let parts = [package, &self.kernel.name, &self.choice.label, &self.target.name];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
    }
}

/// Gathers the champions of a package on the selected GPU targets.
pub(super) fn gather(
    opened: &Opened,
    ready: &Ready<'_>,
    known: &Known,
    member: &Member,
    selected: &Selected,
) -> Result<Gathered, Error> {
    let package = &member.package;
    let mut seats = vec![];
    for kernel in &package.kernels {
        let Some(operator) = package.operator(&kernel.operator) else { continue };
        let takes = |target: &&String| {
            is_gpu(member, target) && (selected.targets.is_empty() || selected.targets.contains(target))
        };
        for target in kernel.targets.iter().filter(takes).filter_map(|target| package.targets.get(target)) {
            seats.extend(operator.choices().into_iter().map(|choice| Seat { kernel, operator, choice, target }));
        }
    }
    if seats.is_empty() {
        return Err(PackageError::Nothing(package.name.clone()).into());
    }
    let mut refused: Vec<Refusal> = vec![];
    let cache = ready.evidence(opened);
    let mut steps = Steps::new(ready, known, &cache, member);
    let (mut kernels, mut binaries) = (vec![], BTreeMap::new());
    for seat in &seats {
        match steps.kernel(seat)? {
            Ok((kernel, own)) => {
                kernels.push(kernel);
                binaries.extend(own);
            }
            Err(reasons) => {
                let place = seat.name(&package.name);
                refused.extend(reasons.into_iter().map(|why| Refusal { place: place.clone(), why }));
            }
        }
    }
    if !refused.is_empty() {
        return Err(
            PackageError::Refused { package: package.name.clone(), reasons: refused, claims: known.claims }.into()
        );
    }
    let evidence = steps.evidence()?;
    Ok(Gathered { kernels, binaries, tools: steps.tools, evidence })
}

/// What keeps a whole package from being packed, whatever is built.
pub(super) fn of_package(member: &Member) -> Vec<Refusal> {
    let package = &member.package;
    let mut refused = vec![];
    let mut refuse = |why| refused.push(Refusal { place: package.name.clone(), why });
    if package.license.as_ref().is_none_or(|license| license.trim().is_empty()) {
        refuse(RefusalReason::NoLicense);
    }
    if is_within(package.toolchain.cuda.as_ref()) {
        refuse(RefusalReason::OwnCompiler);
    }
    for kernel in package.kernels.iter().filter(|kernel| kernel.language == Language::Triton) {
        for target in kernel.targets.iter().filter_map(|name| package.targets.get(name)) {
            let forms = [(target.ptx, "PTX"), (target.fatbin, "a fatbin")];
            for (_, form) in forms.into_iter().filter(|(is_asked, _)| *is_asked) {
                let (kernel, target) = (kernel.name.clone(), target.name.clone());
                refuse(RefusalReason::TritonForm { kernel, target, form });
            }
        }
    }
    refused
}

/// The steps of a plan by id, and the questions that an artifact needs.
struct Steps<'a, 'p> {
    ready: &'a Ready<'p>,
    known: &'a Known,
    cache: &'a EvidenceCache,
    package: &'a str,
    /// Whether the package's CUDA toolkit is a release that kforge installs.
    is_fetched: bool,
    done: HashMap<&'a str, &'a Done>,
    nodes: HashMap<&'a str, &'a Node>,
    asked: HashMap<&'a str, &'a Question>,
    /// The ids of the steps whose observations and binaries are packed.
    wanted: BTreeSet<String>,
    /// Their records, by question.
    records: BTreeMap<Digest, PackagedRecord>,
    /// The device compilers of the binaries, by content.
    tools: BTreeMap<String, Digest>,
}

/// A kernel with the machine code of its champions, or why it cannot be packed.
type Packed = Result<(PackagedKernel, BTreeMap<String, Vec<u8>>), Vec<RefusalReason>>;

/// The machine code of a champion, its PTX and its fatbin under their names in the artifact, unless they were packed before; or why they cannot be packed. In
/// Triton a champion has machine code for each specialization.
type PackedChampion = Result<Vec<(String, Vec<u8>)>, Vec<RefusalReason>>;

/// A champion, with its machine code, PTX and fatbin under their names in the artifact.
type PackedVariant = (PackagedVariant, Vec<(String, Vec<u8>)>);

/// A champion at a shape, the step that compiled it, and the device; or why it cannot be packed.
type PackedShape = Result<(PackagedShape, String, Option<String>), RefusalReason>;

impl<'a, 'p> Steps<'a, 'p> {
    fn new(ready: &'a Ready<'p>, known: &'a Known, cache: &'a EvidenceCache, member: &'a Member) -> Self {
        let steps = &known.result.steps;
        Steps {
            ready,
            known,
            cache,
            package: &member.package.name,
            is_fetched: matches!(member.package.toolchain.cuda, None | Some(CudaSpec::Version(_))),
            done: steps.iter().filter_map(|(node, done)| Some((node.id.as_str(), done.as_ref()?))).collect(),
            nodes: steps.iter().map(|(node, _)| (node.id.as_str(), node)).collect(),
            asked: known.asked.asked.iter().map(|question| (question.node.id.as_str(), question)).collect(),
            wanted: BTreeSet::new(),
            records: BTreeMap::new(),
            tools: BTreeMap::new(),
        }
    }

    /// A document that a step gave.
    fn output<T: DeserializeOwned>(&self, id: &str, output: &str) -> Option<T> {
        let digest = self.done.get(id)?.result.as_ref()?.outputs.get(output).copied()?;
        serde_json::from_slice(&self.ready.leaves.get(&digest).ok()??).ok()
    }

    /// The id of the step whose output is this input of a node.
    fn from(node: &Node, input: &str) -> Option<String> {
        match &node.inputs.get(input)?.source {
            Source::Output { node, .. } => Some(node.clone()),
            Source::Blob(_) => None,
        }
    }

    /// The last selection of a seat, with its node.
    fn selection(&self, seat: &Seat<'_>) -> Option<(&'a Node, std::sync::Arc<PlanSelected>, Selection)> {
        let selects = self.known.result.steps.iter().map(|(node, _)| node);
        selects.filter(|node| node.kind == StepKind::Select && node.labels.package == self.package).find_map(|node| {
            let selected = self.ready.expander.selected(&node.id).filter(|selected| selected.stage.is_last)?;
            let mine = selected.kernel == seat.kernel.name
                && selected.target == seat.target.name
                && selected.choice.label == seat.choice.label;
            let selection = self.output::<Selection>(&node.id, "selection").filter(|_| mine)?;
            Some((node, selected, selection))
        })
    }

    /// Why evidence for a seat exists and does not count, if that is so.
    fn refused(&self, seat: &Seat<'_>) -> Option<String> {
        self.known.result.steps.iter().find_map(|(node, done)| {
            let labels = &node.labels;
            let mine = labels.package == self.package
                && labels.kernel.as_ref() == Some(&seat.kernel.name)
                && labels.target.as_ref() == Some(&seat.target.name);
            let unanswered = done.as_ref().filter(|_| mine)?.unanswered.as_ref()?;
            unanswered.is_refused().then(|| unanswered.for_users_of(self.known.claims))
        })
    }

    fn kernel(&mut self, seat: &Seat<'_>) -> Result<Packed, Error> {
        if seat.kernel.host.is_some() {
            return Ok(Err(vec![RefusalReason::Host]));
        }
        if seat.kernel.language == Language::Torch {
            return Ok(Err(vec![RefusalReason::Torch]));
        }
        let Some((node, selected, selection)) = self.selection(seat) else {
            if let Some(why) = self.refused(seat) {
                return Ok(Err(vec![RefusalReason::Evidence(why)]));
            }
            let of = seat.name(self.package);
            let open = self.known.result.open.iter().find(|id| id.starts_with(&format!("{of}/")));
            let open = open.or(self.known.result.open.first());
            return Ok(Err(vec![RefusalReason::NotBuilt(open.cloned())]));
        };
        let about = self.ready.expander.about(&selected);
        let per = about.as_ref().and_then(|about| about.per.clone());
        let shapes: Vec<String> = about.into_iter().flat_map(|about| about.shapes).map(|(name, _)| name).collect();
        let (mut refused, mut binaries) = (vec![], BTreeMap::new());
        let mut packaged = PackagedKernel {
            kernel: seat.kernel.name.clone(),
            operator: seat.operator.name.clone(),
            types: seat.choice.label.clone(),
            target: seat.target.name.clone(),
            arch: seat.target.arch.name().into(),
            devices: vec![],
            metric: seat.kernel.select.metric,
            interface: seat.operator.interface(&seat.choice).map_err(|error| Error::Wrong(vec![error]))?,
            per: per.clone(),
            classes: vec![],
            variants: vec![],
            shapes: vec![],
            methods: vec![],
            records: BTreeMap::new(),
        };
        for champion in &selection.champions {
            let class = selected.class_name(&champion.class);
            let of_class: Vec<(u32, &String)> =
                champion.shapes.iter().filter_map(|at| Some((*at, shapes.get(*at as usize)?))).collect();
            let class = PackagedClass {
                shapes: of_class.iter().map(|(_, shape)| (*shape).clone()).collect(),
                variant: String::new(),
                because: champion.because.clone(),
                class,
            };
            let found =
                self.champion(seat, (node, &selected), champion, class, &of_class, per.as_deref(), &mut packaged);
            match found? {
                Ok(own) => binaries.extend(own),
                Err(reasons) => refused.extend(reasons),
            }
        }
        // The shapes of classes that were split from others come in the order of the operator, too.
        let order = |shape: &PackagedShape| seat.operator.shapes.iter().position(|s| s.name == shape.shape);
        packaged.shapes.sort_by_key(order);
        packaged.devices.sort();
        packaged.devices.dedup();
        Ok(if refused.is_empty() { Ok((packaged, binaries)) } else { Err(refused) })
    }

    /// Adds a champion. Returns its binary, its PTX and its fatbin, unless they were added before.
    #[expect(clippy::too_many_arguments, reason = "a champion, its class, and where both are added")]
    fn champion(
        &mut self,
        seat: &Seat<'_>,
        (node, selected): (&Node, &PlanSelected),
        champion: &Champion,
        mut class: PackagedClass,
        shapes: &[(u32, &String)],
        per: Option<&str>,
        packaged: &mut PackagedKernel,
    ) -> Result<PackedChampion, Error> {
        let stands_for = stands_for(per, &class.class);
        let build = champion.variant.and_then(|order| selected.builds.iter().find(|b| b.variant.order == order));
        let Some(build) = build else {
            let ground = self.vacant((node, selected), shapes);
            return Ok(Err(vec![RefusalReason::Vacant { stands_for, because: champion.because.clone(), ground }]));
        };
        if build.written.is_some() {
            return Ok(Err(vec![RefusalReason::Written(seat.kernel.name.clone())]));
        }
        // A class without a bench shape has nothing to time: its champion is as good as it can be.
        let role = |name: &str| seat.operator.shape(name).map(|shape| shape.role);
        let is_timed = shapes.iter().any(|(_, shape)| role(shape) == Some(ShapeRole::Bench));
        if champion.provisional && is_timed {
            let unanswered = shapes.iter().find_map(|(at, _)| {
                let judge = Self::from(node, &format!("judgement:{}:{at}", build.variant.order))?;
                let verify = self.nodes.get(judge.as_str()).and_then(|judge| Self::from(judge, "observation"))?;
                let unanswered = self.done.get(verify.as_str())?.unanswered.as_ref()?;
                Some(unanswered.for_users_of(self.known.claims))
            });
            return Ok(Err(vec![RefusalReason::Provisional { stands_for, unanswered }]));
        }
        class.variant = build.variant.label.clone();
        let mut refused = vec![];
        // The step that compiled each specialization.
        let mut compiled: BTreeMap<String, String> = BTreeMap::new();
        for (at, shape) in shapes {
            let judge = Self::from(node, &format!("judgement:{}:{at}", build.variant.order));
            match self.shape(
                seat,
                build,
                judge.as_deref(),
                Self::from(node, &format!("bench:{}:{at}", build.variant.order)),
                shape,
                &class,
            )? {
                Ok((found, compile, device)) => {
                    compiled.insert(found.specialization.clone(), compile);
                    packaged.devices.extend(device);
                    packaged.records.extend(self.keys_of(&found));
                    packaged.shapes.push(found);
                }
                Err(reason) => refused.push(reason),
            }
        }
        if !refused.is_empty() || compiled.is_empty() {
            return Ok(Err(refused));
        }
        self.rivals(node, build, packaged)?;
        packaged.classes.push(class);
        let mut all = vec![];
        for (specialization, compile) in compiled {
            if packaged.variants_of(&build.variant.label).any(|known| known.specialization == specialization) {
                continue;
            }
            match self.variant(seat, build, (&specialization, &compile), &packaged.shapes)? {
                Ok((variant, own)) => {
                    packaged.variants.push(variant);
                    all.extend(own);
                }
                Err(reason) => refused.push(reason),
            }
        }
        Ok(if refused.is_empty() { Ok(all) } else { Err(refused) })
    }

    /// What it rests on that a class of these shapes has no champion: every variant that serves it is wrong, or none serves it, or it is not known.
    fn vacant(&self, (node, selected): (&Node, &PlanSelected), shapes: &[(u32, &String)]) -> Ground {
        let judged = selected.builds.iter().filter_map(|build| {
            let judge = |at: &u32| Self::from(node, &format!("judgement:{}:{at}", build.variant.order));
            let judges: Vec<String> = shapes.iter().filter_map(|(at, _)| judge(at)).collect();
            (!judges.is_empty()).then_some(judges)
        });
        let verdict = |id: &str| self.output::<Judgement>(id, "judgement").map(|judgement| judgement.verdict);
        let fails = |id: &String| {
            let confirmed = confirmation_of(id).and_then(|id| verdict(&id));
            [verdict(id), confirmed].into_iter().flatten().any(|verdict| matches!(verdict, Verdict::Fail(_)))
        };
        let wrong: Vec<bool> = judged.map(|judges| judges.iter().any(fails)).collect();
        match (wrong.is_empty(), wrong.iter().all(|is_wrong| *is_wrong)) {
            (true, _) => Ground::Package,
            (false, true) => Ground::Wrong,
            (false, false) => Ground::Unknown,
        }
    }

    /// Why another judgement fails what this one judges, wherever that was seen: where it is confirmed, or beside a baseline.
    fn refuted(&self, judge: &str) -> Option<String> {
        let of = &self.nodes.get(judge)?.labels;
        let is_other = |(node, _): &&(Node, Option<Done>)| {
            let Labels { package, kernel, target, variant, shape, types, round, method, .. } = &node.labels;
            let same = (package, kernel, target, variant) == (&of.package, &of.kernel, &of.target, &of.variant)
                && (shape, types, round, method) == (&of.shape, &of.types, &of.round, &of.method);
            same && node.kind == StepKind::Judge && node.labels.confirms && !node.advisory
        };
        self.known.result.steps.iter().filter(is_other).find_map(|(node, _)| {
            match self.output::<Judgement>(&node.id, "judgement")?.verdict {
                Verdict::Fail(why) => Some(why),
                Verdict::Pass | Verdict::Unknown(_) => None,
            }
        })
    }

    /// A champion at a shape: its verdicts and its time, with the step that compiled it and the device.
    fn shape(
        &mut self,
        seat: &Seat<'_>,
        build: &PlannedVariant,
        judge: Option<&str>,
        bench: Option<String>,
        name: &str,
        class: &PackagedClass,
    ) -> Result<PackedShape, Error> {
        let not = |why: String| Ok(Err(RefusalReason::NotVerified(format!("shape `{name}`{why}"))));
        let Some(shape) = seat.operator.shape(name) else { return not(" is not declared".into()) };
        let Some(judge) = judge else { return not(" has no verdict".into()) };
        let Some(judgement) = self.output::<Judgement>(judge, "judgement") else {
            return not(" has no verdict".into());
        };
        let wrong = |why: &str| Ok(Err(RefusalReason::Wrong(format!("shape `{name}`: {why}"))));
        match &judgement.verdict {
            _ if judgement.emulated => return not(": only the emulator ran it".into()),
            // A champion passes at other shapes of its class; what was observed here is what was expected.
            Verdict::Pass | Verdict::Unknown(Unknown::Indecisive(_)) => {}
            Verdict::Fail(why) => return wrong(why),
            Verdict::Unknown(why) => return not(format!(": {why}")),
        }
        if let Some(why) = self.refuted(judge) {
            return wrong(&why);
        }
        let verify = self.nodes.get(judge).and_then(|node| Self::from(node, "observation"));
        let Some((verify, compile)) = verify.and_then(|id| {
            let compile = self.nodes.get(id.as_str()).and_then(|node| Self::from(node, BINARY))?;
            Some((id, compile))
        }) else {
            return not(" has no observation".into());
        };
        let Some((verification, record)) = self.record(&verify)? else { return not(" has no record".into()) };
        let confirmation = match confirmation_of(judge) {
            Some(id) => match self.output::<Judgement>(&id, "judgement").map(|judgement| judgement.verdict) {
                Some(Verdict::Pass | Verdict::Unknown(Unknown::Indecisive(_))) => {
                    self.nodes.get(id.as_str()).and_then(|node| Self::from(node, "observation"))
                }
                Some(Verdict::Fail(why)) => return wrong(&why),
                _ => None,
            },
            None => None,
        };
        let confirmation = match confirmation {
            Some(step) => self.record(&step)?.map(|(question, _)| question),
            None => None,
        };
        // A champion that was selected without timings is confirmed only where its device is.
        let roles = class.shapes.iter().filter_map(|shape| seat.operator.shape(shape)).map(|shape| shape.role);
        if confirmation.is_none() && roles.into_iter().any(|role| role == ShapeRole::Bench) {
            return Ok(Err(RefusalReason::NotConfirmed(name.into())));
        }
        let problem = seat.operator.bind(&seat.choice, shape).map_err(|error| Error::Wrong(vec![error]))?;
        let specialization = match seat.kernel.language {
            Language::Cuda | Language::Torch => String::new(),
            Language::Triton => match self.functions(&compile)? {
                Some(functions) => {
                    seat.compiled(build, &functions).at(&problem).map_err(|e| Error::Wrong(vec![e]))?.class
                }
                None => return Ok(Err(RefusalReason::NotBuilt(Some(compile)))),
            },
        };
        let time = match bench {
            Some(bench) => self.time(&bench, seat.kernel.select.metric)?,
            None => None,
        };
        let found = PackagedShape {
            shape: name.into(),
            role: shape.role,
            dims: shape.dims.clone(),
            class: class.class.clone(),
            variant: build.variant.label.clone(),
            specialization,
            tolerance: tolerance_of(seat.operator, &seat.choice, shape, &problem),
            worst: judgement.worst,
            verification,
            confirmation,
            time,
        };
        Ok(Ok((found, compile, Some(record.record.provenance.device.to_string()))))
    }

    /// The functions that the source in Triton of a compilation declares.
    fn functions(&self, compile: &str) -> Result<Option<BTreeMap<String, Vec<JitParam>>>, Error> {
        let Some(compiled) = self.known.asked.made.iter().find(|made| made.node.id == compile) else { return Ok(None) };
        let read = |digest: Option<Digest>| -> Result<Option<Vec<u8>>, Error> {
            Ok(digest.map(|digest| self.ready.leaves.get(&digest)).transpose()?.flatten())
        };
        let Some(tree) = read(compiled.spec.inputs.get("tree:source").and_then(|input| input.digest))? else {
            return Ok(None);
        };
        let (tree, params): (Tree, CompileParams) =
            (serde_json::from_slice(&tree)?, serde_json::from_value(compiled.spec.params.clone())?);
        let source = read(tree.files.get(&params.main).copied())?;
        Ok(source.map(|source| python::functions(&String::from_utf8_lossy(&source))))
    }

    /// Adds the device tools of a toolchain.
    fn used(&mut self, toolchain: Option<Digest>) -> Result<(), Error> {
        let bytes = toolchain.map(|digest| self.ready.leaves.get(&digest)).transpose()?.flatten();
        if let Some(bytes) = bytes {
            let Toolchain { tools, .. } = serde_json::from_slice(&bytes)?;
            self.tools.extend(tools.into_iter().filter(|(name, _)| !name.starts_with(HOST)));
        }
        Ok(())
    }

    /// The fatbin of the champion that a step compiled.
    fn fatbin(&mut self, compile: &str) -> Result<Result<Vec<u8>, RefusalReason>, Error> {
        let is_its = |(node, _): &&(Node, Option<Done>)| {
            node.kind == StepKind::Fatbin && Self::from(node, BINARY).as_deref() == Some(compile)
        };
        let Some((node, done)) = self.known.result.steps.iter().find(is_its) else {
            return Ok(Err(RefusalReason::NotBuilt(None)));
        };
        let made = done.as_ref().and_then(|done| done.result.as_ref()?.outputs.get(FATBIN));
        let bytes = made.map(|digest| self.ready.leaves.get(digest)).transpose()?.flatten();
        let Some(bytes) = bytes else {
            return Ok(Err(match done.as_ref().map(|done| &done.outcome) {
                Some(Outcome::Unavailable(why)) => {
                    let (step, why, is_fetched) = (node.id.clone(), why.clone(), self.is_fetched);
                    RefusalReason::NoFatbin { step, why, is_fetched }
                }
                _ => RefusalReason::NotBuilt(Some(node.id.clone())),
            }));
        };
        let toolchain = match node.inputs.get("toolchain").map(|input| &input.source) {
            Some(Source::Blob(digest)) => Some(*digest),
            _ => None,
        };
        self.used(toolchain)?;
        Ok(Ok(bytes))
    }

    fn variant(
        &mut self,
        seat: &Seat<'_>,
        build: &PlannedVariant,
        (specialization, compile): (&str, &str),
        shapes: &[PackagedShape],
    ) -> Result<Result<PackedVariant, RefusalReason>, Error> {
        let lost = || Ok(Err(RefusalReason::NotBuilt(Some(compile.to_string()))));
        let Some(compiled) = self.known.asked.made.iter().find(|made| made.node.id == compile) else { return lost() };
        let question = kforge_engine::action::of_binary(&compiled.spec, &*self.ready.leaves)?;
        let (Some(question), Some(digest)) = (question, compiled.result.outputs.get(BINARY).copied()) else {
            return lost();
        };
        let leaves = &self.ready.leaves;
        let read = |digest: &Digest| leaves.get(digest);
        let Some(bytes) = read(&digest)? else { return lost() };
        let inspect = self
            .known
            .result
            .steps
            .iter()
            .map(|(node, _)| node)
            .find(|node| node.kind == StepKind::Inspect && Self::from(node, BINARY).as_deref() == Some(compile));
        let inspection = inspect.and_then(|node| self.output::<Inspection>(&node.id, "inspection"));
        let Some(Inspection { architectures, .. }) = inspection else { return lost() };
        let declared = seat.target.arch.name();
        if !architectures.iter().any(|arch| arch == declared) {
            let found = architectures.join(", ");
            return Ok(Err(RefusalReason::Architecture { declared: declared.into(), found }));
        }
        let Some(facts) = self.output::<CompileFacts>(compile, "facts") else { return lost() };
        let params: CompileParams = serde_json::from_value(compiled.spec.params.clone())?;
        let tree = compiled.spec.inputs.get("tree:source").and_then(|input| input.digest);
        let Some(tree) = tree.map(|tree| read(&tree)).transpose()?.flatten() else { return lost() };
        let tree: Tree = serde_json::from_slice(&tree)?;
        let serves =
            |shape: &&PackagedShape| shape.variant == build.variant.label && shape.specialization == specialization;
        let example = shapes.iter().find(serves);
        let Some(example) = example.and_then(|shape| seat.operator.shape(&shape.shape)) else { return lost() };
        let problem = seat.operator.bind(&seat.choice, example).map_err(|error| Error::Wrong(vec![error]))?;
        let launch = match seat.kernel.language {
            Language::Cuda => seat.kernel.sequence(&build.variant, &seat.choice, &problem),
            Language::Triton => match self.functions(compile)? {
                Some(functions) => seat.compiled(build, &functions).described(&problem),
                None => return lost(),
            },
            Language::Torch => return lost(),
        };
        let mut launch = launch.map_err(|error| Error::Wrong(vec![error]))?;
        if seat.kernel.language == Language::Triton {
            let interface = seat.operator.interface(&seat.choice).map_err(|error| Error::Wrong(vec![error]))?;
            if let Err(why) = complete(&mut launch, &interface.tensors, &params.entries, &facts.triton) {
                return Ok(Err(RefusalReason::Contract(why)));
            }
        }
        self.wanted.insert(compile.to_string());
        let toolchain = compiled.spec.inputs.get("toolchain").and_then(|input| input.digest);
        self.used(toolchain)?;
        let text = match seat.target.ptx {
            true => {
                let Some(digest) = compiled.result.outputs.get(PTX).copied() else { return lost() };
                let Some(text) = read(&digest)? else { return lost() };
                let file = format!("{BINARIES}/{}{PTX_ENDING}", digest.hex());
                Some((PackagedPtx { file, digest }, text))
            }
            false => None,
        };
        let fatbin = match seat.target.fatbin {
            true => {
                let made = match self.fatbin(compile)? {
                    Ok(made) => made,
                    Err(reason) => return Ok(Err(reason)),
                };
                let ptx = text.as_ref().map(|(_, text)| text.as_slice());
                if let Err(fault) = fatbin::check(&made, declared, &bytes, ptx) {
                    return Ok(Err(RefusalReason::Fatbin(fault)));
                }
                let digest = Digest::of(&made);
                let file = format!("{BINARIES}/{}{FATBIN_ENDING}", digest.hex());
                Some((PackagedFatbin { file, digest, with_ptx: ptx.is_some() }, made))
            }
            false => None,
        };
        let ending = if machine_code::is_archive(&bytes) { "a" } else { "cubin" };
        let binary = format!("{BINARIES}/{}.{ending}", digest.hex());
        let members = if machine_code::is_archive(&bytes) { params.entries.clone() } else { vec![] };
        let (ptx, text) = text.unzip();
        let (fatbin, made) = fatbin.unzip();
        let further =
            [ptx.as_ref().map(|ptx| &ptx.file).zip(text), fatbin.as_ref().map(|fatbin| &fatbin.file).zip(made)];
        let further = further.into_iter().flatten().map(|(file, bytes)| (file.clone(), bytes));
        let own = [(binary.clone(), bytes)].into_iter().chain(further).collect();
        let variant = PackagedVariant {
            variant: build.variant.label.clone(),
            specialization: specialization.into(),
            binary,
            digest,
            ptx,
            fatbin,
            members,
            compilation: question.key(),
            sources: tree.files,
            symbols: params.entries.into_iter().zip(facts.symbols).collect(),
            launch,
        };
        Ok(Ok((variant, own)))
    }
}
