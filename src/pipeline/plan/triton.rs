//! Kernels in Triton: the compilation that a variant needs at a shape. Knows which functions sources declare; the rule itself is in
//! [`kforge_types::model::triton`].
//!
//! A variant in Triton has one binary for each class of its shapes: shapes at which the same functions are launched, and the same constants, the same arguments
//! of one and the same multiples of 16 hold. Steps of a shape read the binary of its class. A binary of several functions holds the machine code of each: see
//! [`kforge_types::record::machine_code`].
//!
//! Triton's interpreter, which runs on `cpu`, specialises nothing and knows no options. There a class is a set of constants, and variants that differ only in
//! options have equal keys.

use std::collections::BTreeMap;

use super::context::{Planner, Scope, is_benched};
use super::kernels::Selected;
use super::operators::Case;
use super::variants::PlannedVariant;
use kforge_foundation::base::{Diagnostic, count};
use kforge_types::model::description::LaunchSequence;
use kforge_types::model::grid;
use kforge_types::model::kernel::{LaunchAction, LaunchDecl};
use kforge_types::model::triton::{
    Given, JitParam, SpecialiseError, Specialised, Specialize, TritonConst, TritonOptions, specialise,
};
use kforge_types::model::triton_description::Described;
use kforge_types::model::{Arch, Kernel, KernelLaunch, Language, Launch, Problem, TuneValue, TypeChoice, Variant};
use kforge_types::record::Unknown;
use kforge_types::record::params::{CompileParams, Compiler};

/// The alignment of workspaces in bytes.
const WORKSPACE_ALIGN: u64 = 256;

/// What the interpreter specialises: nothing of the values of arguments.
const UNSPECIALISED: Specialize = Specialize::Only(Vec::new());

/// How many scalar operations a program of the interpreter is worth: it executes a program's statements one by one, at milliseconds each.
const PROGRAM: f64 = 3e4;
/// The share of the emulator's limit that the interpreter has: it takes that much longer for an operation.
const SHARE: f64 = 1e-3;

/// The limit of work on `cpu` for an operator whose kernels are all in Triton, from that of the emulator.
pub(super) fn limit(emulator: f64) -> f64 {
    emulator * SHARE
}

/// What turns a kernel in Triton into what a target runs.
pub(super) fn compiler(target: &Arch) -> Compiler {
    match target {
        Arch::Cpu => Compiler::TritonInterpreter,
        Arch::Sm(_) => Compiler::Triton,
    }
}

impl Planner<'_> {
    /// The launches of a variant for a problem, with the arguments that its binary takes.
    pub(super) fn launched(
        &self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        problem: &Problem,
    ) -> Result<Vec<Launch>, Diagnostic> {
        let scope = scope.of(build);
        match scope.kernel.language {
            Language::Cuda => scope.kernel.launches(&build.variant, scope.choice, problem),
            Language::Triton => self.specialised(scope, build, problem).map(|found| found.launches),
            // Its process is called as a whole.
            Language::Torch => Ok(vec![]),
        }
    }

    /// Why a shape is too large for `cpu`; none if it is not, or on a device.
    pub(super) fn too_large(
        &self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        case: &Case,
    ) -> Result<Option<Unknown>, Diagnostic> {
        let emulator = self.input.emulator_limit;
        let kernel = scope.of(build).kernel;
        let (work, limit) = match (&scope.target.arch, kernel.language) {
            (Arch::Sm(_), _) => return Ok(None),
            (Arch::Cpu, Language::Cuda) => (case.work, emulator),
            // PyTorch computes as fast as the reference does.
            (Arch::Cpu, Language::Torch) => {
                let said = || {
                    let work = case.work;
                    format!(
                        "{work:.1e} scalar operations, but the limit for expected values is {emulator:.1e} (setting `emulator.max-work`)"
                    )
                };
                return Ok(case.oracles.is_none().then(|| Unknown::TooLarge(said())));
            }
            (Arch::Cpu, Language::Triton) => {
                let launches = self.launched(scope, build, &case.problem)?;
                let launches = grid::emulated(&launches).unwrap_or(launches);
                let programs: f64 = launches.iter().map(programs).sum();
                (case.work + PROGRAM * programs, limit(emulator))
            }
        };
        let said = match kernel.language {
            Language::Cuda | Language::Torch => {
                format!(
                    "{work:.1e} scalar operations, but the emulator's limit is {limit:.1e} (setting `emulator.max-work`)"
                )
            }
            Language::Triton => format!(
                "{work:.1e} scalar operations, but the limit of Triton's interpreter is {limit:.1e}, a thousandth of the setting `emulator.max-work`: verify \
                 this shape on a GPU, or raise the setting"
            ),
        };
        Ok((work > limit).then_some(Unknown::TooLarge(said)))
    }

    /// The compilation of a variant for a problem; if there is none, for the first shape that it serves.
    pub(super) fn specialised_for(
        &self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        problem: Option<&Problem>,
    ) -> Result<Specialised, Diagnostic> {
        if let Some(problem) = problem {
            return self.specialised(scope, build, problem);
        }
        match self.problems(scope, build)?.first() {
            Some(first) => self.specialised(scope, build, first),
            None => Err(scope.kernel.place.error("kernel.triton", "the variant serves no shape".to_string())),
        }
    }

    /// The problems of all shapes that a variant serves.
    fn problems(&self, scope: Scope<'_>, build: &PlannedVariant) -> Result<Vec<Problem>, Diagnostic> {
        let scope = scope.of(build);
        let mut out = vec![];
        for shape in &scope.operator.shapes {
            if scope.kernel.serves(&build.variant, scope.operator, scope.choice, shape)? {
                out.push(scope.operator.bind(scope.choice, shape)?);
            }
        }
        Ok(out)
    }

    /// What a variant is compiled for: one problem of each class. None stands for all problems, in languages without classes.
    pub(super) fn compiled_for(
        &self,
        scope: Scope<'_>,
        build: &PlannedVariant,
    ) -> Result<Vec<Option<Problem>>, Diagnostic> {
        if scope.of(build).kernel.language != Language::Triton {
            return Ok(vec![None]);
        }
        let problems = self.problems(scope, build)?;
        self.of_each_class(scope, build, problems)
    }

    /// For which problems the machine code of a champion is shown: one of each class among the timed shapes, or of the first shape if none is timed.
    pub(super) fn shown_at(
        &self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        selected: &Selected,
        benched: &[(usize, &Case)],
    ) -> Result<Vec<Option<Problem>>, Diagnostic> {
        if scope.of(build).kernel.language != Language::Triton {
            return Ok(vec![None]);
        }
        let mut problems: Vec<Problem> = benched.iter().map(|(_, case)| case.problem.clone()).collect();
        if problems.is_empty() {
            let scope = scope.of(build);
            let serves = |case: &&Case| {
                let shape = &scope.operator.shapes[case.at];
                scope.kernel.serves(&build.variant, scope.operator, scope.choice, shape).unwrap_or(false)
            };
            let bench = selected.cases.iter().filter(serves).find(|case| is_benched(&scope.operator.shapes[case.at]));
            let first = bench.or_else(|| selected.cases.iter().find(serves));
            problems.extend(first.map(|case| case.problem.clone()));
        }
        self.of_each_class(scope, build, problems)
    }

    fn of_each_class(
        &self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        problems: Vec<Problem>,
    ) -> Result<Vec<Option<Problem>>, Diagnostic> {
        let mut classes = BTreeMap::new();
        for (at, problem) in problems.iter().enumerate() {
            classes.entry(self.specialised(scope, build, problem)?.class).or_insert(at);
        }
        let mut firsts: Vec<usize> = classes.into_values().collect();
        firsts.sort_unstable();
        Ok(firsts.into_iter().map(|at| problems.get(at).cloned()).collect())
    }

    /// The parameters of the compilation of a variant for a problem.
    pub(super) fn triton_params(
        &self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        problem: Option<&Problem>,
    ) -> Result<CompileParams, Diagnostic> {
        let specialised = self.specialised_for(scope, build, problem)?;
        let scope = scope.of(build);
        Ok(CompileParams {
            compiler: compiler(&scope.target.arch),
            arch: scope.target.arch.name().to_string(),
            main: build.source.clone(),
            entries: specialised.entries(),
            defines: BTreeMap::new(),
            std: String::new(),
            include: vec![],
            flags: vec![],
            candidate: build.round > 0,
            lined: false,
            ptx: false,
            host: None,
            triton: specialised.compiles(),
        })
    }

    fn specialised(
        &self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        problem: &Problem,
    ) -> Result<Specialised, Diagnostic> {
        let scope = scope.of(build);
        let reach = self.package_input(scope.package).sources.get(&build.source);
        let none = BTreeMap::new();
        let functions = reach.map_or(&none, |reach| &reach.functions);
        let of = Compiled { kernel: scope.kernel, variant: &build.variant, choice: scope.choice, functions };
        match scope.target.arch {
            Arch::Sm(_) => of.at(problem),
            Arch::Cpu => of.unspecialised(problem),
        }
    }

    /// The entries of a variant's binary for a problem: in Triton the functions that the problem's launches need.
    pub(super) fn entries(
        &self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        problem: Option<&Problem>,
    ) -> Result<Vec<String>, Diagnostic> {
        let scope = scope.of(build);
        match scope.kernel.language {
            Language::Cuda => Ok(scope.kernel.entries(&build.variant, scope.choice)),
            Language::Triton => Ok(self.specialised_for(scope, build, problem)?.entries()),
            Language::Torch => Ok(scope.kernel.torch.iter().map(|torch| torch.function.clone()).collect()),
        }
    }
}

/// A variant of a kernel in Triton, and the functions that its source declares.
pub struct Compiled<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The variant.
    pub variant: &'a Variant,
    /// The choice of types.
    pub choice: &'a TypeChoice,
    /// The functions of its source with their parameters, by name.
    pub functions: &'a BTreeMap<String, Vec<JitParam>>,
}

impl Compiled<'_> {
    /// The compilations that serve a problem, and its launches.
    ///
    /// # Errors
    /// The launches do not fit the functions.
    pub fn at(&self, problem: &Problem) -> Result<Specialised, Diagnostic> {
        let launches = self.kernel.launches(self.variant, self.choice, problem)?;
        self.specialised(problem, &launches, &self.kernel.specialize)
    }

    /// What the interpreter runs for a problem. It reads no options, so launches that differ in nothing else share a function.
    fn unspecialised(&self, problem: &Problem) -> Result<Specialised, Diagnostic> {
        let mut launches = self.kernel.launches(self.variant, self.choice, problem)?;
        for launch in &mut launches {
            if let Launch::Kernel(KernelLaunch { triton: Some(call), .. }) = launch {
                call.options = TritonOptions::default();
            }
        }
        let mut found = self.specialised(problem, &launches, &UNSPECIALISED)?;
        for launch in &mut found.launches {
            if let Launch::Kernel(kernel) = launch {
                (kernel.block, kernel.cluster) = ([1; 3], None);
            }
        }
        Ok(found)
    }

    fn specialised(
        &self,
        problem: &Problem,
        launches: &[Launch],
        specialize: &Specialize,
    ) -> Result<Specialised, Diagnostic> {
        let (kernel, choice) = (self.kernel, self.choice);
        let workspaces = kernel.workspaces(self.variant, choice, problem)?;
        let first = kernel.entries(self.variant, choice).into_iter().next();
        let mut names: BTreeMap<String, TritonConst> = BTreeMap::new();
        names.extend(problem.dims.iter().map(|(name, value)| (name.clone(), TritonConst::Int(*value))));
        names.extend(problem.params.iter().map(|param| (param.name.clone(), TritonConst::of(param.value))));
        names.extend(choice.types.iter().map(|(name, dtype)| (name.clone(), TritonConst::dtype(*dtype))));
        names.extend(self.variant.values.iter().map(|(name, value)| (name.clone(), constant(value))));
        let buffer = |name: &str| {
            let tensor = problem.tensor(name).map(|tensor| (tensor.dtype, tensor.align));
            tensor.or_else(|| workspaces.iter().find(|w| w.name == name).map(|w| (w.dtype, WORKSPACE_ALIGN)))
        };
        let given = Given {
            functions: self.functions,
            first: first.as_deref(),
            names: &names,
            tunables: &|name| self.variant.values.contains_key(name),
            open_options: self.has_open_options(),
            specialize,
            buffer: &buffer,
        };
        specialise(launches, &given).map_err(|why| refused(kernel, &why))
    }

    /// Whether the options of a launch depend on more than tunables.
    fn has_open_options(&self) -> bool {
        let names = |launch: &LaunchDecl| match &launch.action {
            LaunchAction::Kernel { triton: Some(decl), .. } => decl.options.names().any(|name| !self.is_fixed(name)),
            _ => false,
        };
        self.kernel.launches.iter().any(names)
    }

    /// Whether a name has one value for all shapes that the variant serves.
    fn is_fixed(&self, name: &str) -> bool {
        self.variant.values.contains_key(name)
    }

    /// The launches of the machine code that serves a problem, without a shape, as far as they do not depend on what the compiler made.
    ///
    /// # Errors
    /// Those of [`Compiled::at`].
    pub fn described(&self, problem: &Problem) -> Result<LaunchSequence, Diagnostic> {
        let (kernel, functions) = (self.kernel, self.functions);
        let launches = kernel.declared_launches(self.variant, self.choice, problem)?;
        let (declared, launches): (Vec<usize>, Vec<Launch>) = launches.into_iter().unzip();
        let specialised = self.specialised(problem, &launches, &kernel.specialize)?;
        let sequence = kernel.sequence(self.variant, self.choice, problem)?;
        let of = Described { kernel, problem, functions, specialised: &specialised, declared: &declared };
        of.sequence(sequence).map_err(|why| kernel.place.error("kernel.triton", why.to_string()))
    }
}

/// The programs of a launch.
fn programs(launch: &Launch) -> f64 {
    match launch {
        Launch::Kernel(kernel) => kernel.grid.iter().map(|extent| f64::from(*extent)).product(),
        Launch::Memset { .. } => 0.0,
    }
}

fn constant(value: &TuneValue) -> TritonConst {
    match value {
        TuneValue::Int(value) => TritonConst::Int(*value),
        TuneValue::Bool(value) => TritonConst::Bool(*value),
        TuneValue::Str(value) => TritonConst::Str(value.clone()),
    }
}

/// The error at the place of what is wrong.
fn refused(kernel: &Kernel, why: &SpecialiseError) -> Diagnostic {
    let named = |launch: &&LaunchDecl| match &launch.action {
        LaunchAction::Kernel { entry, .. } => Some(entry.value.as_str()) == why.function(),
        LaunchAction::Memset { .. } => false,
    };
    let launch = kernel.launches.iter().find(named);
    let place = match (why, launch) {
        (SpecialiseError::Count { .. }, Some(launch)) => launch.args_place.as_ref().unwrap_or(&launch.place),
        (SpecialiseError::Argument { at, .. }, Some(launch)) => launch.arg_places.get(at - 1).unwrap_or(&launch.place),
        (_, Some(launch)) => &launch.place,
        (_, None) => &kernel.place,
    };
    let message = match why {
        SpecialiseError::Count { function, has, takes } => {
            let (has, takes) = (count(*has, "argument"), takes.join(", "));
            let takes = if takes.is_empty() { "none".into() } else { format!("`{takes}`") };
            format!("`args` has {has}; parameters of `{function}` that are not `tl.constexpr`: {takes}")
        }
        other => other.to_string(),
    };
    place.error("kernel.triton", message)
}
