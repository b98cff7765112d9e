//! A kernel's launches bound to a variant and a problem: expressions become numbers, names become pointers and scalars. Knows CUDA's launch limits; launches nothing.

use super::bind::{count, fit, unbound};
use super::bound::{Arg, Buffer, KernelLaunch, Launch, Problem, StructField};
use super::expr::{Expr, Scope, Value};
use super::kernel::{ArgDecl, ITERATION, Kernel, LaunchAction, LaunchDecl};
use super::operator::{TypeChoice, TypeRef};
use super::variant::Variant;
use super::{DType, Place, Scalar, Text};
use crate::base::Diagnostic;
use crate::base::diag::closest;

/// Threads of a block, along x, y, z and together (CUDA C++ programming guide, compute capabilities).
pub(crate) const BLOCK_LIMITS: ([u32; 3], u64) = ([1024, 1024, 64], 1024);
/// Blocks of a grid along x, y, z (ibidem).
const GRID_LIMITS: [u32; 3] = [0x7fff_ffff, 65535, 65535];
/// The most launches one sequence may have.
const MOST_LAUNCHES: u64 = 100_000;

/// What the names of launches stand for.
struct Names<'a> {
    kernel: &'a Kernel,
    choice: &'a TypeChoice,
    problem: &'a Problem,
    buffers: &'a [Buffer],
    scope: Scope,
}

impl Kernel {
    /// Dims, params, types and tunables as expressions of launches see them.
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
                // The bound keeps sums of buffers far from overflow.
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

    /// The launches of a variant for a problem of its operator, `when` and `repeat` resolved.
    /// Fails where an expression does, where a launch exceeds what CUDA allows, and where a scalar does not fit its dtype.
    pub fn launches(
        &self,
        variant: &Variant,
        choice: &TypeChoice,
        problem: &Problem,
    ) -> Result<Vec<Launch>, Diagnostic> {
        let buffers = self.workspaces(variant, choice, problem)?;
        let scope = self.launch_scope(variant, choice, problem);
        let mut names = Names { kernel: self, choice, problem, buffers: &buffers, scope };
        let mut out = vec![];
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
                    out.push(
                        names.launch(decl, variant).map_err(|e| e.note(format!("for variant `{}`", variant.label)))?,
                    );
                }
            }
            names.scope.remove(ITERATION);
        }
        Ok(out)
    }
}

impl Names<'_> {
    fn launch(&self, decl: &LaunchDecl, variant: &Variant) -> Result<Launch, Diagnostic> {
        match &decl.action {
            LaunchAction::Memset { buffer, value } => {
                self.element_bytes(buffer)?;
                Ok(Launch::Memset { buffer: buffer.value.clone(), value: *value })
            }
            LaunchAction::Kernel { entry, grid, block, shared, args } => {
                let grid = self.extents(grid, GRID_LIMITS, "blocks")?;
                let threads = self.extents(block, BLOCK_LIMITS.0, "threads")?;
                let all: u64 = threads.iter().map(|n| u64::from(*n)).product();
                if all > BLOCK_LIMITS.1 {
                    return Err(block_too_large(block, all));
                }
                Ok(Launch::Kernel(KernelLaunch {
                    entry: self.kernel.substitute(&entry.value, variant, self.choice),
                    grid,
                    block: threads,
                    shared: shared.as_ref().map_or(Ok(0), |s| count(s, &self.scope, "shared memory"))?,
                    args: args.iter().map(|a| self.arg(a)).collect::<Result<_, _>>()?,
                    cooperative: false,
                }))
            }
        }
    }

    fn extents(&self, exprs: &[Expr], limits: [u32; 3], what: &str) -> Result<[u32; 3], Diagnostic> {
        let mut out = [1; 3];
        for (axis, expr) in exprs.iter().take(3).enumerate() {
            let value = expr.int(&self.scope)?;
            out[axis] = u32::try_from(value).ok().filter(|n| (1..=limits[axis]).contains(n)).ok_or_else(|| {
                let error = expr.place().error("manifest.launch-limit", format!("`{}` is {value} {what}", expr.text()));
                let error = error.expected(format!("1 to {} {what} along {}", limits[axis], ["x", "y", "z"][axis]));
                error.hint("leave a launch out with `when`, a variant with `where`, or a shape with `requires`")
            })?;
        }
        Ok(out)
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

    fn arg(&self, decl: &ArgDecl) -> Result<Arg, Diagnostic> {
        match decl {
            ArgDecl::Plain(expr) => {
                if let Some(name) = expr.as_name()
                    && (self.problem.tensor(name).is_some() || self.workspace(name).is_some())
                {
                    return Ok(Arg::Pointer { buffer: name.into(), offset: 0 });
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
            ArgDecl::Struct(fields) => {
                let field = |(expr, dtype): &(Expr, Option<TypeRef>)| {
                    self.scalar(expr, dtype.as_ref()).map(|(dtype, value)| StructField { dtype, value })
                };
                Ok(Arg::Struct(fields.iter().map(field).collect::<Result<_, _>>()?))
            }
            ArgDecl::Pointers(names) => {
                for name in names {
                    self.element_bytes(name)?;
                }
                Ok(Arg::Pointers(names.iter().map(|n| n.value.clone()).collect()))
            }
        }
    }

    /// A scalar's type and value: the stated dtype, else the param's own, else `bool` for truth values, else i32.
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
    let first = block.first().map(Expr::place);
    let last = block.last().map(Expr::place);
    let message = format!("a block of {all} threads");
    let error = match (first, last) {
        (Some(first), Some(last)) => {
            Place::new(&first.file, first.span.start..last.span.end).error("manifest.block-too-large", message)
        }
        _ => Diagnostic::error("manifest.block-too-large", message),
    };
    error.expected(format!("at most {} threads", BLOCK_LIMITS.1)).hint("exclude the variant with `where`")
}
