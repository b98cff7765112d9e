//! A kernel's launches bound to a variant and a problem: expressions become numbers, names become pointers and scalars. Knows CUDA's launch limits; does not
//! launch.

use std::collections::BTreeMap;

use super::bind::{count, fit, unbound};
use super::bound::{Arg, Buffer, KernelLaunch, Launch, Problem, Reference, StructField, contiguous};
use super::expr::{Expr, Scope, Value};
use super::grid::{GRID_LIMITS, OpenGrid, TRIED};
use super::kernel::{ArgDecl, Attributes, ITERATION, Kernel, LaunchAction, LaunchDecl};
use super::limits::{self, MOST_OF_A_CLUSTER};
use super::operator::{TypeChoice, TypeRef};
use super::target::{Target, capability};
use super::tensor_map::{self, MapDecl, Mapped};
use super::torch::{self, TorchCall, TorchLaunch};
use super::triton::{ConstDecl, TritonCall, TritonConst, TritonDecl, TritonOptions};
use super::variant::Variant;
use super::{Arch, DType, Library, Place, Scalar, Text};
use kforge_foundation::base::Diagnostic;
use kforge_foundation::base::diag::closest;

/// Maximum threads of a block, along x, y, z and in total (CUDA C++ programming guide, compute capabilities).
pub(crate) const BLOCK_LIMITS: ([u32; 3], u64) = ([1024, 1024, 64], 1024);
/// The alignment of workspaces in bytes.
const WORKSPACE_ALIGN: u64 = 256;
/// The most launches one sequence may have.
const MOST_LAUNCHES: u64 = 100_000;

/// What the names in launches refer to.
struct Names<'a> {
    kernel: &'a Kernel,
    choice: &'a TypeChoice,
    problem: &'a Problem,
    buffers: &'a [Buffer],
    scope: Scope,
}

impl Kernel {
    /// The names that expressions of launches can use: dims, params, types and tunables.
    fn launch_scope(&self, variant: &Variant, choice: &TypeChoice, problem: &Problem) -> Scope {
        let mut scope: Scope = problem.dims.iter().map(|(name, value)| (name.clone(), Value::Int(*value))).collect();
        scope.extend(problem.params.iter().map(|p| (p.name.clone(), p.value.to_value())));
        self.tunables(variant, choice, &mut scope);
        scope
    }

    /// The workspace buffers of a variant for a problem.
    pub fn workspaces(
        &self,
        variant: &Variant,
        choice: &TypeChoice,
        problem: &Problem,
    ) -> Result<Vec<Buffer>, Diagnostic> {
        let scope = self.launch_scope(variant, choice, problem);
        let bind = |decl: &super::kernel::BufferDecl| {
            let dtype = decl.dtype.under(choice).ok_or_else(|| unbound(&decl.name.place))?;
            let mut elements = 1u64;
            for extent in &decl.shape {
                let extent = count(extent, &scope, "extent")?;
                // The limit keeps sums of buffers far from overflow.
                elements = elements.checked_mul(extent).filter(|n| *n <= 1 << 46).ok_or_else(|| {
                    decl.name
                        .place
                        .error("manifest.too-large", format!("workspace `{}` is too large", decl.name))
                        .expected("at most 2^46 elements")
                })?;
            }
            Ok(Buffer { name: decl.name.value.clone(), dtype, elements, fill: decl.fill })
        };
        self.workspace.iter().map(bind).collect()
    }

    /// What is called of a kernel in PyTorch for a problem of its operator; none in other languages. If the kernel does not say how, it is called as the
    /// operator's reference in PyTorch is.
    ///
    /// # Errors
    /// An expression fails.
    pub fn torch_launch(
        &self,
        variant: &Variant,
        choice: &TypeChoice,
        problem: &Problem,
    ) -> Result<Option<TorchLaunch>, Diagnostic> {
        let Some(kernel) = &self.torch else { return Ok(None) };
        let (mut call, of_reference) = match (&kernel.call, &problem.reference) {
            (Some((call, decl)), _) => {
                (decl.bind(call, &self.launch_scope(variant, choice, problem))?, BTreeMap::new())
            }
            (None, Reference::Torch { call, .. }) => {
                let mut call = (**call).clone();
                call.keeps_casts = false;
                let constants = std::mem::take(&mut call.constants);
                (call, constants)
            }
            (None, _) => (TorchCall::default(), BTreeMap::new()),
        };
        call.constants.extend(variant.values.iter().map(|(name, value)| (name.clone(), torch::constant(value))));
        let stated = kernel.call.is_some();
        let uncompiled = kernel.policy.as_ref().is_some_and(|policy| !policy.allows(Library::Inductor));
        Ok(Some(TorchLaunch { function: kernel.function.clone(), call, stated, of_reference, uncompiled, recorded: false }))
    }

    /// The launches of a variant for a problem of its operator, with `when` and `repeat` resolved. Fails if an expression fails, if a launch exceeds what CUDA
    /// allows, or if a scalar does not fit its dtype.
    pub fn launches(
        &self,
        variant: &Variant,
        choice: &TypeChoice,
        problem: &Problem,
    ) -> Result<Vec<Launch>, Diagnostic> {
        Ok(self.launched(variant, choice, problem)?.into_iter().map(|(_, launch)| launch).collect())
    }

    /// Like [`Kernel::launches`], each with the position of its declaration.
    ///
    /// # Errors
    /// Those of [`Kernel::launches`].
    pub fn declared_launches(
        &self,
        variant: &Variant,
        choice: &TypeChoice,
        problem: &Problem,
    ) -> Result<Vec<(usize, Launch)>, Diagnostic> {
        let at = |decl: &LaunchDecl| self.launches.iter().position(|own| std::ptr::eq(own, decl)).unwrap_or_default();
        let launched = self.launched(variant, choice, problem)?;
        Ok(launched.into_iter().map(|(decl, launch)| (at(decl), launch)).collect())
    }

    /// Like [`Kernel::launches`], but also fails if a launch asks for something that the target's architecture does not have.
    pub(crate) fn launches_on(
        &self,
        target: &Target,
        variant: &Variant,
        choice: &TypeChoice,
        problem: &Problem,
    ) -> Result<(), Diagnostic> {
        let Arch::Sm(arch) = &target.arch else { return self.launched(variant, choice, problem).map(drop) };
        let Ok((capability, _)) = capability(arch) else { return Ok(()) };
        for (decl, launch) in self.launched(variant, choice, problem)? {
            let (Launch::Kernel(launch), LaunchAction::Kernel { attributes, args, .. }) = (launch, &decl.action) else {
                continue;
            };
            let map = args.iter().find_map(|arg| if let ArgDecl::TensorMap(map) = arg { Some(map) } else { None });
            // Triton passes descriptors in another way to older ones.
            if let Some(map) = map.filter(|map| capability < tensor_map::LEAST && !map.descriptor) {
                let message = format!("a tensor map on target `{}`", target.name);
                let error = map.buffer.place.error("manifest.tensor-map", message);
                let error = error.expected(format!("sm_{} or newer, not {arch}", tensor_map::LEAST));
                return Err(error.hint("name other `targets`"));
            }
            let most = limits::blocks_of_a_cluster(capability);
            if launch.cluster.is_some() && launch.cluster_blocks() > most {
                let place = whole(&attributes.cluster).unwrap_or_else(|| decl.place.clone());
                let (blocks, target) = (launch.cluster_blocks(), &target.name);
                let error =
                    place.error("manifest.launch-limit", format!("a cluster of {blocks} blocks on target `{target}`"));
                let error = error.expected(match most {
                    0 => format!("no clusters: {arch} has none, they came with sm_90"),
                    most => format!("at most {most} blocks on {arch}"),
                });
                return Err(error.hint("leave the variant out on this target with `where`, or name other `targets`"));
            }
            if let Some(place) = attributes.pdl.as_ref().filter(|_| capability < limits::DEPENDENT_LAUNCH) {
                let error = place.error("manifest.launch-limit", format!("`pdl` on target `{}`", target.name));
                let error = error.expected(format!("sm_{} or newer, not {arch}", limits::DEPENDENT_LAUNCH));
                return Err(error.hint("name other `targets`"));
            }
        }
        Ok(())
    }

    /// The launches, each with its declaration.
    fn launched(
        &self,
        variant: &Variant,
        choice: &TypeChoice,
        problem: &Problem,
    ) -> Result<Vec<(&LaunchDecl, Launch)>, Diagnostic> {
        let buffers = self.workspaces(variant, choice, problem)?;
        let scope = self.launch_scope(variant, choice, problem);
        let mut names = Names { kernel: self, choice, problem, buffers: &buffers, scope };
        let mut out: Vec<(&LaunchDecl, Launch)> = vec![];
        for decl in &self.launches {
            let times = match &decl.repeat {
                Some(repeat) => count(repeat, &names.scope, "repeat")?,
                None => 1,
            };
            if times > MOST_LAUNCHES - (out.len() as u64).min(MOST_LAUNCHES) {
                let error = decl.place.error("manifest.too-many-launches", format!("{times} launches of this"));
                return Err(error.expected(format!("at most {MOST_LAUNCHES} launches in all")));
            }
            for iteration in 0..times {
                if decl.repeat.is_some() {
                    names.scope.insert(ITERATION.into(), Value::Int(iteration.cast_signed()));
                }
                if decl.when.as_ref().map_or(Ok(true), |when| when.truth(&names.scope))? {
                    let after_kernel = matches!(out.last(), Some((_, Launch::Kernel(_))));
                    let launch = names.launch(decl, variant, after_kernel);
                    out.push((decl, launch.map_err(|e| variant.noted(e))?));
                }
            }
            names.scope.remove(ITERATION);
        }
        Ok(out)
    }
}

impl Names<'_> {
    /// The bound launch. `after_kernel` says whether a kernel is launched right before it.
    fn launch(&self, decl: &LaunchDecl, variant: &Variant, after_kernel: bool) -> Result<Launch, Diagnostic> {
        match &decl.action {
            LaunchAction::Memset { buffer, value } => {
                self.element_bytes(buffer)?;
                Ok(Launch::Memset { buffer: buffer.value.clone(), value: *value })
            }
            LaunchAction::Kernel { entry, grid, block, shared, args, attributes, triton } => {
                let triton = triton.as_ref().map(|triton| self.triton(triton, args)).transpose()?;
                let open_grid = OpenGrid::of(grid, &self.scope);
                let blocks = match &open_grid {
                    None => extents(grid, &self.scope, GRID_LIMITS, "blocks")?,
                    Some(_) => {
                        // The device is not known here. Trying the grid with assumed numbers is the best possible check.
                        let scope = self.scope.clone().into_iter().chain(TRIED.names()).collect();
                        extents(grid, &scope, GRID_LIMITS, "blocks")?;
                        [0; 3]
                    }
                };
                let cluster = self.cluster(attributes, grid, blocks)?;
                let threads = extents(block, &self.scope, BLOCK_LIMITS.0, "threads")?;
                let all: u64 = threads.iter().map(|n| u64::from(*n)).product();
                if all > BLOCK_LIMITS.1 {
                    return Err(block_too_large(block, all));
                }
                Ok(Launch::Kernel(KernelLaunch {
                    entry: self.kernel.substitute(&entry.value, variant, self.choice),
                    grid: blocks,
                    open_grid,
                    block: threads,
                    shared: shared.as_ref().map_or(Ok(0), |s| count(s, &self.scope, "shared memory"))?,
                    args: args.iter().map(|a| self.arg(a, triton.is_some())).collect::<Result<_, _>>()?,
                    cooperative: attributes.cooperative,
                    cluster,
                    // A launch that does not follow a kernel of the sequence waits for everything before it.
                    pdl: attributes.pdl.is_some() && after_kernel,
                    triton: triton.map(Box::new),
                }))
            }
        }
    }

    /// The blocks of a cluster, which must divide the blocks of the grid. None for a cluster of one block, because every block is one.
    fn cluster(
        &self,
        attributes: &Attributes,
        grid: &[Expr],
        blocks: [u32; 3],
    ) -> Result<Option<[u32; 3]>, Diagnostic> {
        let most = [MOST_OF_A_CLUSTER as u32; 3];
        let cluster = extents(&attributes.cluster, &self.scope, most, "blocks of a cluster")?;
        let all: u64 = cluster.iter().map(|n| u64::from(*n)).product();
        if let Some(place) = whole(&attributes.cluster).filter(|_| all > MOST_OF_A_CLUSTER) {
            let error = place.error("manifest.launch-limit", format!("a cluster of {all} blocks"));
            return Err(error.expected(format!("at most {MOST_OF_A_CLUSTER} blocks, on any architecture")));
        }
        for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
            if blocks[axis].is_multiple_of(cluster[axis]) {
                continue;
            }
            // An axis that the grid does not state has one block.
            let place = grid.get(axis).or(attributes.cluster.get(axis)).map(|e| e.place().clone());
            let message =
                format!("{} blocks along {name} are not a multiple of the cluster's {}", blocks[axis], cluster[axis]);
            let error = place.map_or_else(
                || Diagnostic::error("manifest.launch-limit", message.clone()),
                |place| place.error("manifest.launch-limit", message.clone()),
            );
            let hint =
                format!("round up, as `ceil_div(n, {0}) * {0}`, and let blocks without work return", cluster[axis]);
            return Err(error.expected("a grid of whole clusters").hint(hint));
        }
        Ok((all > 1).then_some(cluster))
    }

    fn element_bytes(&self, name: &Text) -> Result<u64, Diagnostic> {
        let tensor = self.problem.tensor(&name.value).map(|t| t.dtype.bytes());
        tensor.or_else(|| self.workspace(&name.value).map(|b| b.dtype.bytes())).ok_or_else(|| self.no_buffer(name))
    }

    fn workspace(&self, name: &str) -> Option<&Buffer> {
        self.buffers.iter().find(|b| b.name == name)
    }

    fn no_buffer(&self, name: &Text) -> Diagnostic {
        let known =
            self.problem.tensors.iter().map(|t| t.name.as_str()).chain(self.buffers.iter().map(|b| b.name.as_str()));
        let error = name.place.error("manifest.unknown-tensor", format!("no tensor or workspace is called `{name}`"));
        match closest(&name.value, known) {
            Some(best) => error.hint(format!("did you mean `{best}`?")),
            None => error,
        }
    }

    /// The argument. In Triton, an integer without a stated type is an i64 if it does not fit an i32.
    fn arg(&self, decl: &ArgDecl, triton: bool) -> Result<Arg, Diagnostic> {
        match decl {
            ArgDecl::Plain(expr) => {
                if let Some(name) = expr.as_name()
                    && (self.problem.tensor(name).is_some() || self.workspace(name).is_some())
                {
                    return Ok(Arg::Pointer { buffer: name.into(), offset: 0 });
                }
                if triton
                    && self.is_open(decl)
                    && let Value::Int(value) = expr.value(&self.scope)?
                    && i32::try_from(value).is_err()
                {
                    return Ok(Arg::Scalar { dtype: DType::I64, value: Scalar::Int(value) });
                }
                self.scalar(expr, None).map(|(dtype, value)| Arg::Scalar { dtype, value })
            }
            ArgDecl::Value { value, dtype } => {
                self.scalar(value, Some(dtype)).map(|(dtype, value)| Arg::Scalar { dtype, value })
            }
            ArgDecl::Ptr { buffer, offset } => {
                let bytes = self.element_bytes(buffer)?;
                let elements = offset.as_ref().map_or(Ok(0), |o| count(o, &self.scope, "offset"))?;
                let offset = elements.checked_mul(bytes).ok_or_else(|| {
                    buffer
                        .place
                        .error("manifest.overflow", "the offset does not fit 64 bits")
                        .expected("an offset within the buffer")
                })?;
                Ok(Arg::Pointer { buffer: buffer.value.clone(), offset })
            }
            ArgDecl::Struct(members) => {
                let member = |decl: &ArgDecl| {
                    self.arg(decl, triton).map(|arg| match arg {
                        Arg::Scalar { dtype, value } => StructField::Scalar { dtype, value },
                        other => StructField::Member(other),
                    })
                };
                Ok(Arg::Struct(members.iter().map(member).collect::<Result<_, _>>()?))
            }
            ArgDecl::Null => Ok(Arg::Null),
            ArgDecl::TensorMap(map) => Ok(Arg::TensorMap(map.bind(&self.mapped(map)?, &self.scope)?)),
            ArgDecl::Pointers(names) => {
                for name in names {
                    self.element_bytes(name)?;
                }
                Ok(Arg::Pointers(names.iter().map(|n| n.value.clone()).collect()))
            }
        }
    }

    /// Whether the type of an argument is not stated.
    fn is_open(&self, decl: &ArgDecl) -> bool {
        let ArgDecl::Plain(expr) = decl else { return false };
        expr.as_name().is_none_or(|name| self.problem.param(name).is_none())
    }

    /// What a launch in Triton states, bound.
    fn triton(&self, decl: &TritonDecl, args: &[ArgDecl]) -> Result<TritonCall, Diagnostic> {
        let mut constexprs = BTreeMap::new();
        for (name, value) in &decl.constexprs {
            let value = match value {
                ConstDecl::Value(expr) => match expr.value(&self.scope)? {
                    Value::Int(value) => TritonConst::Int(value),
                    Value::Bool(value) => TritonConst::Bool(value),
                    Value::Float(value) => TritonConst::float(value),
                    Value::Str(value) => TritonConst::Str(value),
                },
                ConstDecl::NextPow2(expr) => {
                    let value = expr.int(&self.scope)?;
                    let power = u64::try_from(value.max(1)).ok().and_then(u64::checked_next_power_of_two);
                    let power = power.and_then(|power| i64::try_from(power).ok()).ok_or_else(|| {
                        let error = expr.place().error("manifest.overflow", format!("no power of two for {value}"));
                        error.expected("at most 2^62")
                    })?;
                    TritonConst::Int(power)
                }
                ConstDecl::Dtype(dtype, place) => {
                    TritonConst::dtype(dtype.under(self.choice).ok_or_else(|| unbound(place))?)
                }
            };
            constexprs.insert(name.value.clone(), value);
        }
        let number = |expr: &Option<Expr>, default: u32, most: u32, power: bool| -> Result<u32, Diagnostic> {
            let Some(expr) = expr else { return Ok(default) };
            let value = expr.int(&self.scope)?;
            let fits = |n: &u32| (1..=most).contains(n) && (!power || n.is_power_of_two());
            u32::try_from(value).ok().filter(fits).ok_or_else(|| {
                let error = expr.place().error("manifest.launch-limit", format!("`{}` is {value}", expr.text()));
                let what = if power { "a power of two" } else { "a number" };
                error.expected(format!("{what} from 1 to {most}")).hint("exclude the variant with `where`")
            })
        };
        let default = TritonOptions::default();
        let of = &decl.options;
        let options = TritonOptions {
            num_warps: number(&of.num_warps, default.num_warps, 32, true)?,
            num_stages: number(&of.num_stages, default.num_stages, 64, false)?,
            num_ctas: number(&of.num_ctas, default.num_ctas, MOST_OF_A_CLUSTER as u32, true)?,
            maxnreg: match &of.maxnreg {
                Some(_) => Some(number(&of.maxnreg, 0, 255, false)?),
                None => None,
            },
            enable_fp_fusion: match &of.enable_fp_fusion {
                Some(expr) => expr.truth(&self.scope)?,
                None => default.enable_fp_fusion,
            },
        };
        Ok(TritonCall { constexprs, options, typed: args.iter().map(|arg| !self.is_open(arg)).collect() })
    }

    /// The tensor or workspace of a tensor map.
    fn mapped(&self, map: &MapDecl) -> Result<Mapped, Diagnostic> {
        if let Some(tensor) = self.problem.tensor(&map.buffer.value) {
            let (shape, strides) = (tensor.shape.clone(), tensor.strides.clone());
            return Ok(Mapped { dtype: tensor.dtype, shape, strides, align: tensor.align });
        }
        let decl = self.kernel.workspace.iter().find(|b| b.name.value == map.buffer.value);
        let (decl, dtype) = decl
            .zip(self.workspace(&map.buffer.value))
            .map(|(decl, bound)| (decl, bound.dtype))
            .ok_or_else(|| self.no_buffer(&map.buffer))?;
        let shape = decl.shape.iter().map(|e| count(e, &self.scope, "extent")).collect::<Result<Vec<_>, _>>()?;
        Ok(Mapped { dtype, strides: contiguous(&shape), shape, align: WORKSPACE_ALIGN })
    }

    /// The type and value of a scalar. The type is the stated dtype, else that of the param, else `bool` for truth values, else i32.
    fn scalar(&self, expr: &Expr, dtype: Option<&TypeRef>) -> Result<(DType, Scalar), Diagnostic> {
        let param = expr.as_name().and_then(|name| self.problem.param(name));
        let value = expr.value(&self.scope)?;
        let dtype = match (dtype, param) {
            (Some(stated), _) => stated.under(self.choice).ok_or_else(|| unbound(expr.place()))?,
            (None, Some(param)) => param.dtype,
            (None, None) if matches!(value, Value::Bool(_)) => DType::Bool,
            (None, None) => DType::I32,
        };
        fit(&value, dtype, &self.part(expr)).map(|value| (dtype, value))
    }

    fn part(&self, expr: &Expr) -> Place {
        expr.place().within(expr.text(), 0..expr.text().len())
    }
}

/// The error for a block of `all` threads.
pub(crate) fn block_too_large(block: &[Expr], all: u64) -> Diagnostic {
    let message = format!("a block of {all} threads");
    let error = match whole(block) {
        Some(place) => place.error("manifest.block-too-large", message),
        None => Diagnostic::error("manifest.block-too-large", message),
    };
    error.expected(format!("at most {} threads", BLOCK_LIMITS.1)).hint("exclude the variant with `where`")
}

/// One to three extents, each from 1 to its limit. An axis that is left out has extent 1.
fn extents(exprs: &[Expr], scope: &Scope, limits: [u32; 3], what: &str) -> Result<[u32; 3], Diagnostic> {
    let mut out = [1; 3];
    for (axis, expr) in exprs.iter().take(3).enumerate() {
        let value = expr.int(scope)?;
        out[axis] = u32::try_from(value).ok().filter(|n| (1..=limits[axis]).contains(n)).ok_or_else(|| {
            let error = expr.place().error("manifest.launch-limit", format!("`{}` is {value} {what}", expr.text()));
            let error = error.expected(format!("1 to {} {what} along {}", limits[axis], ["x", "y", "z"][axis]));
            error.hint("leave a launch out with `when`, a variant with `where`, or a shape with `requires`")
        })?;
    }
    Ok(out)
}

/// The place from the first expression of a list to the last; none for an empty list.
fn whole(list: &[Expr]) -> Option<Place> {
    let (first, last) = (list.first()?.place(), list.last()?.place());
    Some(Place::new(&first.file, first.span.start..last.span.end))
}
