//! Steps of one variant on one target: generate, compile, inspect, verify, judge. Knows the variant; does not know what is timed.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::context::{CHECK_WORK, Planner, SANITIZE_WORK, Scope};
use super::input::{SourceReach, Tool};
use super::memory;
use super::node_builder::{self, ABLATION, MAIN, NodeBuilder};
use super::operators::{Case, count_beyond, scaled};
use super::triton;
use kforge_foundation::base::Diagnostic;
use kforge_types::model::kernel::{Compiler as Choice, LaunchAction};
use kforge_types::model::tensor_map::TensorMap;
use kforge_types::model::triton::Specialised;
use kforge_types::model::{
    Arch, Arg, Kernel, KernelLaunch, Language, Launch, Problem, Sanitizer, Scalar, Shape, ShapeRole, StructField,
    Tolerance, TypeChoice, Variant,
};
use kforge_types::record::device::{Resolved, is_remote};
use kforge_types::record::event::Labels;
use kforge_types::record::params::{
    CompileParams, Compiler, GenerateParams, HostLaunch, InspectParams, JudgeParams, Sanitized, Trial, VerifyParams,
};
use kforge_types::record::{StepKind, Unknown, Uuids};

/// Version of the verification protocol. Raise it when what is run or compared changes.
pub const VERIFY_PROTOCOL: u32 = 2;

/// Version of how a kernel's own launcher is run. Raise it when what the launcher receives or how it is verified changes.
pub const HOST_PROTOCOL: u32 = 1;

/// Version of how the tools of Compute Sanitizer are run and read. Raise it when other reports of theirs count. 2: racecheck's warnings count.
pub const SANITIZE_PROTOCOL: u32 = 2;

/// Version of how a kernel in PyTorch is run on a device. Raise it when what its process is asked or what is read there changes.
pub const TORCH_PROTOCOL: u32 = 1;

/// A variant with everything that its compilation needs, and its names.
#[derive(Clone)]
pub struct PlannedVariant {
    /// The variant.
    pub variant: Variant,
    /// Its label with types: `T=f16,BLOCK=256`.
    pub label: String,
    /// The source to compile.
    pub source: String,
    /// Flags in addition to the kernel's.
    pub flags: Vec<String>,
    /// An additional id part that distinguishes a variant which its tunables do not: the method left out; otherwise empty.
    pub without: String,
    /// The method that is left out, if the variant exists to be compared with the one that has it.
    pub method: Option<String>,
    /// The kernel that the variant belongs to if an agent wrote it; none for the declared kernel.
    pub written: Option<Arc<WrittenKernel>>,
    /// The round that tried it first; 0 for declared variants.
    pub round: u32,
}

impl PlannedVariant {
    /// Its name without types: `BLOCK=256,VEC=4`, `r1,BLOCK=256`.
    pub fn name(&self) -> String {
        label_of(&[self.written.as_ref().map_or("", |w| &w.written_in), &self.variant.label])
    }
}

/// A kernel that an agent wrote.
#[derive(Debug, PartialEq)]
pub struct WrittenKernel {
    /// The round, and the number of the repair if it is one: `r2`, `r2.1`. Part of the names of its variants.
    pub written_in: String,
    /// The kernel.
    pub kernel: Kernel,
}

/// Joins the parts of a variant's name.
pub(super) fn label_of(parts: &[&str]) -> String {
    parts.iter().filter(|p| !p.is_empty()).copied().collect::<Vec<_>>().join(",")
}

impl Planner<'_> {
    /// The variant as declared.
    pub fn build_of(&self, scope: Scope<'_>, variant: &Variant) -> PlannedVariant {
        PlannedVariant {
            variant: variant.clone(),
            label: label_of(&[&scope.choice.label, &variant.label]),
            source: scope.kernel.source.clone(),
            flags: vec![],
            without: String::new(),
            method: None,
            written: None,
            round: 0,
        }
    }

    /// Another variant of the kernel that `build` belongs to.
    pub fn another(&self, scope: Scope<'_>, build: &PlannedVariant, variant: &Variant) -> PlannedVariant {
        let Some(written) = &build.written else {
            return PlannedVariant { round: build.round, ..self.build_of(scope, variant) };
        };
        let label = label_of(&[&scope.choice.label, &written.written_in, &variant.label]);
        let source = written.kernel.source.clone();
        let base = self.build_of(scope, variant);
        PlannedVariant { label, source, written: Some(written.clone()), round: build.round, ..base }
    }

    /// Labels of a step of that variant.
    pub fn labels(&self, scope: Scope<'_>, build: &PlannedVariant, shape: Option<&str>) -> Labels {
        Labels {
            package: self.package_input(scope.package).package.name.clone(),
            kernel: Some(scope.kernel.name.clone()),
            operator: Some(scope.operator.name.clone()),
            variant: Some(build.label.clone()),
            types: None,
            round: (build.round > 0).then_some(build.round),
            target: Some(scope.target.name.clone()),
            shape: shape.map(String::from),
            method: build.method.clone(),
            baseline: None,
            confirms: false,
        }
    }

    /// The id parts of a step of that variant: package, kernel, variant, target, method left out.
    pub fn parts<'p>(&'p self, scope: Scope<'p>, build: &'p PlannedVariant) -> Vec<&'p str> {
        vec![
            &self.package_input(scope.package).package.name,
            &scope.kernel.name,
            &build.label,
            &scope.target.name,
            &build.without,
        ]
    }

    /// The generate step of a source. A source that replaces the kernel's where a method is off is known only with the champion, so its step has the phase of the
    /// compilation that asks for it first.
    pub fn generate(&mut self, scope: Scope<'_>, source: &str, phase: u8) -> String {
        let input = self.package_input(scope.package);
        let name = input.package.name.clone();
        let round = (scope.round > 0).then_some(scope.round);
        let labels =
            Labels { package: name.clone(), kernel: Some(scope.kernel.name.clone()), round, ..Labels::default() };
        let declared = input.package.kernel(&scope.kernel.name).is_some_and(|kernel| kernel.source == source);
        let other = if declared { "" } else { source };
        let mut node = NodeBuilder::new(
            StepKind::Generate,
            &[&name, &scope.kernel.name, other],
            labels,
            &GenerateParams { main: source.into() },
        )
        .phase(if declared { MAIN } else { phase })
        .round(scope.round);
        for (file, digest) in input.sources.get(source).map(|r| &r.files).into_iter().flatten() {
            node = node.blob(&format!("file:{file}"), *digest);
        }
        self.add(node.done())
    }

    /// Plans the compile and inspect steps of a variant; returns their ids.
    pub fn compile(
        &mut self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        compiler: Compiler,
        phase: u8,
        problem: Option<&Problem>,
    ) -> Result<(String, String), Diagnostic> {
        let plain = if compiler == Compiler::EmulatorPlain { "plain" } else { "" };
        let specialised = match compiler {
            Compiler::Triton | Compiler::TritonInterpreter => Some(self.specialised_for(scope, build, problem)?),
            _ => None,
        };
        let class = specialised.as_ref().map_or("", |s| &s.class);
        let known = |planner: &Self, kind: StepKind| {
            let parts = planner.parts(scope, build).into_iter().chain([plain, class, kind.name()]);
            let id = parts.filter(|p| !p.is_empty()).collect::<Vec<_>>().join("/");
            planner.ids.contains(&id).then_some(id)
        };
        // Every shape of a variant calls this; the first call plans the steps.
        if let (Some(compile), Some(inspect)) = (known(self, StepKind::Compile), known(self, StepKind::Inspect)) {
            return Ok((compile, inspect));
        }
        let scope = scope.of(build);
        let source = self.generate(scope, &build.source, phase);
        let kernel = scope.kernel;
        let input = self.package_input(scope.package);
        let params = self.compile_params(scope, build, compiler, problem)?;
        let (arch, entries) = (params.arch.clone(), params.entries.clone());
        let mut parts = self.parts(scope, build);
        parts.extend([plain, class]);
        let mut node = NodeBuilder::new(StepKind::Compile, &parts, self.labels(scope, build, None), &params)
            .phase(phase)
            .round(scope.round)
            .memory(memory::compile(compiler))
            .output_tree("tree:source", &source, "source");
        let tools = &input.toolchains;
        node = match compiler {
            Compiler::EmulatorCheck | Compiler::EmulatorPlain => {
                // Without the headers of cub, the emulator reports what needs them.
                let with_cub = input.sources.get(&build.source).is_some_and(|reach| reach.cub);
                let tool = if with_cub && matches!(tools.cub, Tool::Known(_)) { &tools.cub } else { &tools.cxx };
                node.tool("toolchain", tool).tree("tree:emulator", tools.emulator)
            }
            Compiler::Nvcc => node.tool("toolchain", &tools.nvcc),
            Compiler::Triton => node.tool("toolchain", &tools.triton),
            Compiler::TritonInterpreter => node.tool("toolchain", &tools.triton_interpreter),
            Compiler::Torch => node.tool("toolchain", &tools.python),
            Compiler::Auto => node.tool("toolchain", &tools.auto).tree("tree:shim", tools.shim),
            Compiler::Nvrtc => node.tool("toolchain", &tools.nvrtc).tree("tree:shim", tools.shim),
        };
        let inspect = NodeBuilder::new(
            StepKind::Inspect,
            &parts,
            self.labels(scope, build, None),
            &InspectParams {
                arch,
                entries,
                disassemble: false,
                listing: false,
                launches: self.checked(scope, build, specialised.as_ref()),
                host: kernel.host.is_some(),
            },
        )
        .phase(phase)
        .round(scope.round);
        let compile = self.add(node.done());
        let inspect = self.add(inspect.output("binary", &compile, "binary").output("facts", &compile, "facts").done());
        Ok((compile, inspect))
    }

    /// The parameters of the compilation of a variant.
    pub(super) fn compile_params(
        &self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        compiler: Compiler,
        problem: Option<&Problem>,
    ) -> Result<CompileParams, Diagnostic> {
        let scope = scope.of(build);
        if matches!(compiler, Compiler::Triton | Compiler::TritonInterpreter) {
            return self.triton_params(scope, build, problem);
        }
        let kernel = scope.kernel;
        if compiler == Compiler::Torch {
            return Ok(in_torch(scope, build));
        }
        let input = self.package_input(scope.package);
        let reach = input.sources.get(&build.source).cloned().unwrap_or_default();
        Ok(CompileParams {
            compiler,
            arch: scope.target.arch.name().to_string(),
            main: build.source.clone(),
            entries: entries(kernel, &build.variant, scope.choice),
            defines: visible(kernel.defines(&build.variant, scope.choice), kernel, &reach),
            std: kernel.std.clone().unwrap_or_else(|| "c++17".into()),
            include: input.include.iter().chain(&kernel.include).cloned().collect(),
            flags: kernel.flags(&build.variant, scope.choice).into_iter().chain(build.flags.iter().cloned()).collect(),
            candidate: build.round > 0,
            lined: scope.target.arch != Arch::Cpu && !kernel.sanitize.is_empty(),
            // A library with a launcher of its own holds no PTX, and is not packaged.
            ptx: scope.target.ptx && kernel.host.is_none(),
            host: kernel.host.as_ref().map(|host| host.function.clone()),
            triton: vec![],
        })
    }

    /// The launches that an inspection checks. For a variant that a search asks for, only the arguments are checked: the search itself finds blocks that exceed
    /// the limits and drops the variant, which is no failure.
    fn checked(&self, scope: Scope<'_>, build: &PlannedVariant, specialised: Option<&Specialised>) -> Vec<Launch> {
        let mut launches = match specialised {
            Some(specialised) => without_values(specialised.launches.clone()),
            None => Self::arguments(scope, build),
        };
        for launch in launches.iter_mut().filter(|_| self.wave > 0) {
            if let Launch::Kernel(kernel) = launch {
                kernel.block = [1; 3];
            }
        }
        launches
    }

    /// The launches of a variant at the first shape that it serves: arguments and blocks, without values that differ between shapes. A shape whose launches
    /// cannot be bound is reported where it is verified.
    fn arguments(scope: Scope<'_>, build: &PlannedVariant) -> Vec<Launch> {
        let scope = scope.of(build);
        let serves = |s: &&Shape| scope.kernel.serves(&build.variant, scope.operator, scope.choice, s).unwrap_or(false);
        let bind = |s: &Shape| scope.operator.bind(scope.choice, s).ok();
        let problem = scope.operator.shapes.iter().find(serves).and_then(bind);
        let launches =
            problem.and_then(|p| scope.kernel.launches(&build.variant, scope.choice, &p).ok()).unwrap_or_default();
        without_values(launches)
    }

    /// The compiler of a variant on a target, for work of that size.
    pub fn compiler(scope: Scope<'_>, work: f64) -> Compiler {
        match (&scope.target.arch, scope.kernel.compiler) {
            (arch, _) if scope.kernel.language == Language::Triton => triton::compiler(arch),
            (_, _) if scope.kernel.language == Language::Torch => Compiler::Torch,
            (Arch::Cpu, _) if work <= CHECK_WORK => Compiler::EmulatorCheck,
            (Arch::Cpu, _) => Compiler::EmulatorPlain,
            // NVRTC compiles no host code.
            (Arch::Sm(_), _) if scope.kernel.host.is_some() => Compiler::Nvcc,
            (Arch::Sm(_), Choice::Auto) => Compiler::Auto,
            (Arch::Sm(_), Choice::Nvrtc) => Compiler::Nvrtc,
            (Arch::Sm(_), Choice::Nvcc) => Compiler::Nvcc,
        }
    }

    /// Plans the verify and judge steps of a variant on a shape; returns the judge step's id.
    pub fn verify(
        &mut self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        case: &Case,
        phase: u8,
    ) -> Result<String, Diagnostic> {
        self.verify_after(scope, build, case, phase, &[])
    }

    /// The verifications on `cpu` of the cases in which every access is checked. A checked run names the mistake, but a run at a larger shape only shows that
    /// there is one, so the larger runs wait for these. This is an order, not a priority: either of the two binaries may be compiled first. If there are more
    /// steps than processors, the longest path still starts first, and it now includes the checked runs.
    pub(super) fn watched<'c>(
        &self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        cases: impl Iterator<Item = &'c Case>,
    ) -> Vec<String> {
        let runs = |case: &&Case| {
            Self::compiler(scope, case.work) == Compiler::EmulatorCheck && case.work <= self.input.emulator_limit
        };
        cases.filter(runs).filter_map(|case| self.verification(scope, build, case)).collect()
    }

    /// Like [`Planner::verify`], but the verification waits for those steps without reading their results.
    pub(super) fn verify_after(
        &mut self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        case: &Case,
        phase: u8,
        after: &[String],
    ) -> Result<String, Diagnostic> {
        self.verified(scope, build, case, phase, (after, None))
    }

    /// Plans the steps that confirm a champion at a shape: its verification in a process that runs no other candidate, and the judgement of that and of what was
    /// observed when it was timed. A failure counts in every round, because nothing of it was known when the champion was selected.
    pub(super) fn confirm(
        &mut self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        case: &Case,
        timed: Option<String>,
    ) -> Result<(), Diagnostic> {
        self.verified(scope, build, case, ABLATION, (&[], Some(Confirmation { timed }))).map(drop)
    }

    fn verified(
        &mut self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        case: &Case,
        phase: u8,
        (after, confirmation): (&[String], Option<Confirmation>),
    ) -> Result<String, Diagnostic> {
        let shape = &scope.operator.shapes[case.at];
        let emulated = scope.target.arch == Arch::Cpu;
        let compiler = Self::compiler(scope, case.work);
        let (compile, inspect) = self.compile(scope, build, compiler, phase, Some(&case.problem))?;
        let too_large = self.too_large(scope, build, case)?;
        let within = too_large.is_none();
        let absent = too_large.or_else(|| self.absence(scope, case));
        let mut parts = self.parts(scope, build);
        parts.push(&shape.name);
        let mut labels = self.labels(scope, build, Some(&shape.name));
        labels.confirms = confirmation.is_some();
        parts.extend(confirmation.is_some().then_some(CONFIRMED));
        let judge_params = JudgeParams {
            tolerance: case.tolerance.clone(),
            absent,
            confirms: confirmation.is_some(),
            policy: None,
            known_inputs: case.problem.stored().map(|(tensor, ..)| tensor.name.clone()).collect(),
        };
        let calibration = self.calibration_id(scope.package, scope.operator, scope.choice);
        let mut judge = NodeBuilder::new(StepKind::Judge, &parts, labels.clone(), &judge_params)
            .phase(phase)
            .round(scope.round)
            .optional("calibration", &calibration, &case.indecision());
        if let Some(Confirmation { timed }) = &confirmation {
            judge = judge.binding();
            if let Some(bench) = timed {
                judge = judge.optional("timed", bench, "observation");
            }
        }
        // A shape that is too large for the emulator has no verification on `cpu`. On a device, evidence may answer the verification.
        if let Some(oracles) = case.oracles.as_ref().filter(|_| within) {
            let mut params = self.verify_params(scope, build, case, compiler, &case.tolerance)?;
            // A sanitizer runs a candidate in a process of its own anyway.
            params.sanitize = match &confirmation {
                None => sanitized(&scope.kernel.sanitize, emulated, case.work),
                Some(_) => vec![],
            };
            params.isolated = confirmation.is_some();
            params.holdout = emulated && shape.role == ShapeRole::Holdout;
            let products = if emulated { 0 } else { self.products(&case.problem) };
            let needs = memory::verify(&params).saturating_add(products);
            let mut verify = NodeBuilder::new(StepKind::Verify, &parts, labels, &params)
                .phase(phase)
                .round(scope.round)
                .limit(self.verify_limit(&params))
                .memory(needs)
                .after(after.iter().cloned());
            for (trial, oracle) in case.trials.iter().zip(oracles) {
                verify = verify.output(&format!("expected:{}", trial.trial), oracle, "expected");
            }
            verify = verify.build("", &compile, &inspect);
            if !params.sanitize.is_empty() {
                verify = verify.optional("lined", &compile, "lined");
            }
            verify = match emulated {
                true => {
                    let tools = &self.package_input(scope.package).toolchains;
                    match compiler {
                        Compiler::TritonInterpreter => verify.tool("toolchain", &tools.triton_interpreter),
                        Compiler::Torch => {
                            let verify = verify.tool("toolchain:python", &tools.python);
                            verify.tool("toolchain:torch", &tools.torch).blob("processor", tools.processor)
                        }
                        _ => verify.tool("runtime", &tools.runtime),
                    }
                }
                false => {
                    let verify = verify.device(self.observed(scope), false).unless(self.no_device(scope));
                    let tools = &self.package_input(scope.package).toolchains;
                    let in_torch = [
                        ("toolchain:python", &tools.python),
                        ("toolchain:torch", &tools.torch),
                        ("toolchain:torch-cuda", &tools.torch_cuda),
                    ];
                    let needed = in_torch.into_iter().filter(|_| compiler == Compiler::Torch);
                    needed.fold(verify, |verify, (name, tool)| verify.tool(name, tool))
                }
            };
            let own = self.own_functions(scope.package, &case.problem, &params.compare);
            let verify = own.read_by(verify).done();
            let verify = self.add(verify);
            judge = judge.optional("observation", &verify, "observation");
        }
        let judge = judge.done();
        Ok(self.add(judge))
    }

    /// The id of the verification that [`Planner::verify`] plans, if it plans one; none on `cpu` if the shape is too large.
    pub(super) fn verification(&self, scope: Scope<'_>, build: &PlannedVariant, case: &Case) -> Option<String> {
        let mut parts = self.parts(scope, build);
        parts.push(&scope.operator.shapes[case.at].name);
        case.oracles.as_ref().map(|_| NodeBuilder::id(StepKind::Verify, &parts))
    }

    /// The time limit of a verification in seconds: the limits of all runs of the candidate together, and the default limit of a step for everything else that
    /// the verifier does.
    fn verify_limit(&self, params: &VerifyParams) -> u64 {
        let runs = (params.trials.len() * Trial::MOST_RUNS + Trial::MOST_FRESH + params.sanitize.len()) as u64;
        self.input.time_limit_s.saturating_mul(runs).saturating_add(node_builder::TIME_LIMIT_S)
    }

    pub(super) fn verify_params(
        &self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        case: &Case,
        compiler: Compiler,
        tolerance: &BTreeMap<String, Tolerance>,
    ) -> Result<VerifyParams, Diagnostic> {
        let scope = scope.of(build);
        let kernel = scope.kernel;
        Ok(VerifyParams {
            arch: scope.target.arch.name().into(),
            compiler,
            problem: case.problem.clone(),
            entries: self.entries(scope, build, Some(&case.problem))?,
            launches: self.launched(scope, build, &case.problem)?,
            workspaces: kernel.workspaces(&build.variant, scope.choice, &case.problem)?,
            constants: kernel.constants(),
            trials: case.trials.clone(),
            compare: scope.operator.compare(),
            scaled: scaled(tolerance),
            count_beyond: count_beyond(tolerance),
            protocol: match compiler == Compiler::Torch && scope.target.arch != Arch::Cpu {
                true => TORCH_PROTOCOL,
                false => VERIFY_PROTOCOL,
            },
            host: kernel
                .host
                .as_ref()
                .map(|host| HostLaunch { function: host.function.clone(), protocol: HOST_PROTOCOL }),
            torch: kernel.torch_launch(&build.variant, scope.choice, &case.problem)?.map(Box::new),
            holdout: false,
            isolated: false,
            sanitize: vec![],
            samples: None,
            only: None,
            flops_min: None,
            bytes: None,
        })
    }

    /// Why an observation may be missing.
    pub(super) fn absence(&self, scope: Scope<'_>, case: &Case) -> Option<Unknown> {
        match &scope.target.arch {
            Arch::Cpu => None,
            Arch::Sm(_) if case.oracles.is_none() => Some(Unknown::TooLarge(format!(
                "{:.1e} scalar operations, but the limit for expected values is {:.1e} (setting `oracle.max-work`)",
                case.work, self.input.oracle_limit
            ))),
            // The same text on every machine: a judgement must not depend on which devices the judging machine has.
            Arch::Sm(_) => Some(Unknown::NoDevice(format!("nothing observed on {} that counts here", wanted(scope)))),
        }
    }

    /// The devices of this machine, or else of workers of a server, that match a target.
    pub(super) fn devices(&self, scope: Scope<'_>) -> Option<Resolved<'_>> {
        self.input.devices.resolve(scope.target.arch.name(), scope.target.device.as_deref())
    }

    /// The devices on which a target can be observed, and the product whose observations count: that of the devices, or else the one that the target names.
    /// With none of them, evidence counts if it is of only one product.
    pub(super) fn observed(&self, scope: Scope<'_>) -> (Uuids, Option<String>) {
        match self.devices(scope) {
            Some(Resolved { class, uuids }) => (uuids, Some(class.product.clone())),
            None => (Uuids::default(), scope.target.device.clone()),
        }
    }

    /// What is missing for running on a target here; none if there is a device for it.
    pub(super) fn no_device(&self, scope: Scope<'_>) -> Option<String> {
        if self.devices(scope).is_some() {
            return None;
        }
        let wanted = wanted(scope);
        let of_machine = self.input.devices.0.iter().filter(|device| !is_remote(&device.uuid));
        let here: Vec<&str> = of_machine.map(|device| device.class.product.as_str()).collect();
        if here.is_empty() {
            return Some(format!("no {wanted} here"));
        }
        Some(format!("no {wanted} here, only {}", here.join(", ")))
    }
}

/// The part of the ids of the steps that confirm a champion.
pub(super) const CONFIRMED: &str = "confirmed";

/// The id of the judge step that confirms a champion at a shape, from that of the judge step that it confirms. Whether such a step exists, results say.
pub fn confirmation_of(judge: &str) -> Option<String> {
    let of = judge.strip_suffix(StepKind::Judge.name())?.strip_suffix('/')?;
    Some(NodeBuilder::id(StepKind::Judge, &[of, CONFIRMED]))
}

/// What confirms a champion besides its verification.
struct Confirmation {
    /// The step that timed it at that shape, if it is timed there.
    timed: Option<String>,
}

/// The device that a target needs, as text.
fn wanted(scope: Scope<'_>) -> String {
    let device = || format!("device of architecture {}", scope.target.arch.name());
    scope.target.device.clone().unwrap_or_else(device)
}

/// What a variant launches, or what is called of a kernel in PyTorch.
fn entries(kernel: &Kernel, variant: &Variant, choice: &TypeChoice) -> Vec<String> {
    match &kernel.torch {
        Some(torch) => vec![torch.function.clone()],
        None => kernel.entries(variant, choice),
    }
}

/// The parameters by which the sources of a kernel in PyTorch are read. They are the same for all its variants, and on every target.
fn in_torch(scope: Scope<'_>, build: &PlannedVariant) -> CompileParams {
    CompileParams {
        compiler: Compiler::Torch,
        arch: Arch::Cpu.name().to_string(),
        main: build.source.clone(),
        entries: entries(scope.kernel, &build.variant, scope.choice),
        defines: BTreeMap::new(),
        std: String::new(),
        include: vec![],
        flags: vec![],
        candidate: build.round > 0,
        lined: false,
        ptx: false,
        host: None,
        triton: vec![],
    }
}

/// The words of a kernel's entries. Tunables among them are template arguments.
fn entry_words(kernel: &Kernel) -> Vec<&str> {
    kernel
        .launches
        .iter()
        .filter_map(|l| match &l.action {
            LaunchAction::Kernel { entry, .. } => Some(entry.value.as_str()),
            LaunchAction::Memset { .. } => None,
        })
        .flat_map(|e| e.split(|c: char| !(c.is_alphanumeric() || c == '_')))
        .collect()
}

/// The macros that can change the compilation: declared ones, and tunables whose names the source can see. A tunable that an entry names reaches the source as
/// a template argument and not also as a macro, which would break `template <int BLOCK>`.
fn visible(defines: BTreeMap<String, String>, kernel: &Kernel, reach: &SourceReach) -> BTreeMap<String, String> {
    let entries = entry_words(kernel);
    let tunable = |name: &str| kernel.tune.iter().any(|(t, _)| t.value == name);
    let needed = |name: &str| !tunable(name) || (reach.seen.contains(name) && !entries.contains(&name));
    defines.into_iter().filter(|(name, _)| needed(name)).collect()
}

/// Reports a tunable that is both a template argument of an entry and tested by preprocessor directives of a source: without its macro, `#if VEC == 3` is
/// silently false.
pub fn torn(kernel: &Kernel, reach: &SourceReach) -> Option<Diagnostic> {
    let entries = entry_words(kernel);
    let name = kernel
        .tune
        .iter()
        .map(|(name, _)| &name.value)
        .find(|name| entries.contains(&name.as_str()) && reach.in_directives.contains_key(*name))?;
    let file = &reach.in_directives[name];
    Some(kernel.place.error(
        "kernel.tunable-in-directive",
        format!(
            "tunable `{name}` is an argument of the entry's template and is also used by the preprocessor in `{file}`; rename one of them"
        ),
    ))
}

/// The sanitizer runs of a verification, from those that the kernel requests. The emulator checks every access itself.
fn sanitized(asked: &[Sanitizer], emulated: bool, work: f64) -> Vec<Sanitized> {
    if emulated || work > SANITIZE_WORK {
        return vec![];
    }
    asked.iter().map(|&tool| Sanitized { tool, protocol: SANITIZE_PROTOCOL }).collect()
}

/// Launches without memsets, and without values that differ between shapes.
fn without_values(launches: Vec<Launch>) -> Vec<Launch> {
    let mut out: Vec<Launch> = launches
        .into_iter()
        .filter_map(|l| match l {
            Launch::Kernel(k) => Some(Launch::Kernel(KernelLaunch {
                grid: [1; 3],
                open_grid: None,
                shared: 0,
                args: k.args.into_iter().map(plain).collect(),
                ..k
            })),
            Launch::Memset { .. } => None,
        })
        .collect();
    out.dedup();
    out
}

/// An argument without values that differ between shapes.
fn plain(arg: Arg) -> Arg {
    match arg {
        Arg::Pointer { buffer, .. } => Arg::Pointer { buffer, offset: 0 },
        Arg::Scalar { dtype, .. } => Arg::Scalar { dtype, value: Scalar::Int(0) },
        Arg::Struct(fields) => Arg::Struct(
            fields
                .into_iter()
                .map(|field| match field {
                    StructField::Scalar { dtype, .. } => StructField::Scalar { dtype, value: Scalar::Int(0) },
                    StructField::Member(arg) => StructField::Member(plain(arg)),
                })
                .collect(),
        ),
        Arg::Pointers(_) | Arg::Null => arg,
        // The number of axes is that of the parameters.
        Arg::TensorMap(map) if map.descriptor => {
            let (extents, strides) = (vec![0; map.extents.len()], vec![0; map.strides.len()]);
            Arg::TensorMap(TensorMap { extents, strides, ..map })
        }
        Arg::TensorMap(map) => Arg::TensorMap(TensorMap { extents: vec![], strides: vec![], ..map }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_shapes_on_a_device_are_sanitized() {
        let asked = [Sanitizer::Memcheck, Sanitizer::Synccheck];
        let of = |tool| Sanitized { tool, protocol: SANITIZE_PROTOCOL };
        assert_eq!(sanitized(&asked, false, SANITIZE_WORK), asked.map(of));
        assert_eq!(sanitized(&asked, false, SANITIZE_WORK * 1.01), []);
        assert_eq!(sanitized(&asked, true, 1.0), []);
    }
}
