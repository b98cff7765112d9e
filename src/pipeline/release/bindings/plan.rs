//! What the loaders of an artifact do, in no language: functions with checked arguments, the choice of a champion by device and shape, and the launches with
//! expressions as trees. Knows the documents of an artifact; writes no code.
//!
//! | decision | because |
//! |---|---|
//! | a function is a kernel with one choice of types; targets are alternatives within it | the caller's arguments are the same on every device |
//! | conditions of seats are tried in order: single shapes, values of `per`, the rest | a class of one shape takes precedence in selection too |
//! | of machine code in Triton the one that assumes most and may be launched is chosen | it is the one that was verified at the shape, where there is one |
//! | a workspace that is zero once is zeroed before every sequence | it holds for any stream and any graph, and costs one memset |
//! | an array of addresses is a part of the workspace, written by memsets | no copy from the host's memory, so graphs capture it |
//! | what a loader cannot do is an error here | no loader is ever wrong |

use std::collections::BTreeMap;

use super::error::{BindingsError, Unsupported};
use super::expressions::{Code, Names, Type};
use super::names::{Distinct, OWN, identifier, is_identifier, is_made_of, shown};
use super::variant_plan::VariantPlanner;
use crate::release::artifact::ArtifactFiles;
use crate::release::artifact::files::Index;
use crate::release::artifact::kernels::{
    KernelsDocument, PackagedClass, PackagedKernel, PackagedShape, PackagedVariant,
};
use kforge_types::model::description::Interface;
use kforge_types::model::expr::{Comparison, Logic, Value, Want};
use kforge_types::model::kernel::ITERATION;
use kforge_types::model::limits::PORTABLE_CLUSTER;
use kforge_types::model::target::capability;
use kforge_types::model::{DType, Role, TuneValue};

/// The loaders of an artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The package.
    pub package: String,
    /// The package as an identifier.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence.
    pub license: String,
    /// The root digest of the artifact, in hexadecimal digits of SHA-256.
    pub root: String,
    /// Machine code, each once.
    pub binaries: Vec<Binary>,
    /// Entries of binaries, each once.
    pub entries: Vec<Entry>,
    /// The functions.
    pub functions: Vec<Function>,
}

/// Machine code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// The name of its file in loaders that have files.
    pub file: String,
    /// The architecture.
    pub arch: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A kernel in a binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The position of the binary.
    pub binary: usize,
    /// Its symbol.
    pub symbol: String,
}

/// A kernel for one choice of types.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Its name: `rms_norm`, or `rms_norm_f16`.
    pub name: String,
    /// The kernel as an identifier.
    pub kernel: String,
    /// The kernel, its types and its operator, for people.
    pub title: String,
    /// The dims, in declared order.
    pub dims: Vec<Dim>,
    /// Derived dims, each a name and its value.
    pub derived: Vec<(String, Code)>,
    /// Inputs, then inouts, then outputs.
    pub tensors: Vec<Tensor>,
    /// Params.
    pub params: Vec<Param>,
    /// Targets in the order of the manifest.
    pub targets: Vec<Target>,
    /// The champions of all targets.
    pub variants: Vec<Variant>,
}

impl Function {
    /// The pairs of tensors, by position, that must not share memory where loaders can check it: one is written, and both are contiguous.
    pub fn separate(&self) -> Vec<(usize, usize)> {
        let all = &self.tensors;
        let is_written = |at: usize| all[at].role != Role::Input;
        let pairs = (0..all.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        let counts = |(a, b): &(usize, usize)| is_written(*a) || is_written(*b);
        let is_dense = |(a, b): &(usize, usize)| all[*a].strides.is_none() && all[*b].strides.is_none();
        pairs.filter(counts).filter(is_dense).collect()
    }

    /// What a caller must know if a variant copies a tensor into a constant of the module: a context has one such constant.
    pub fn constants_note(&self) -> Option<&'static str> {
        let has = self.variants.iter().any(|variant| !variant.constants.is_empty());
        has.then_some(
            "Each call copies an input into a constant of the machine code, and a context has one such constant. So calls of this function, and graphs that hold one, \
             must take turns: all on one stream, or ordered by events.",
        )
    }

    /// Whether any variant needs a workspace.
    pub fn has_workspace(&self) -> bool {
        self.variants.iter().any(|variant| !variant.workspaces.is_empty())
    }
}

/// A dim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dim {
    /// Its name in expressions.
    pub name: String,
    /// Its name for callers.
    pub public: String,
    /// The tensor and axis whose extent it is; none if a caller has to pass it.
    pub extent_of: Option<(usize, usize)>,
}

/// A tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Its name for callers.
    pub public: String,
    /// What the kernel does with it.
    pub role: Role,
    /// Its element type.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: Vec<Code>,
    /// The extents as the manifest states them.
    pub shape_text: String,
    /// Elements between neighbours along each axis; none if it is contiguous.
    pub strides: Option<Vec<Code>>,
    /// Its address is a multiple of this many bytes.
    pub align: u64,
}

/// A param.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    /// Its name in expressions.
    pub name: String,
    /// Its name for callers.
    pub public: String,
    /// Its type.
    pub dtype: DType,
    /// Its default value; none if the caller must pass one.
    pub default: Option<Code>,
    /// The default value as the manifest states it.
    pub default_text: Option<String>,
}

impl Param {
    /// The type of its value.
    pub fn of_type(&self) -> Type {
        type_of(self.dtype)
    }
}

/// Which devices run an architecture's machine code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// This very capability.
    Exactly,
    /// The same major version, and at least this minor version.
    AtLeast,
}

/// A target of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Its name in the manifest.
    pub name: String,
    /// The architecture.
    pub arch: String,
    /// Major and minor compute capability.
    pub capability: (u32, u32),
    /// Which devices run it.
    pub runs: Runs,
    /// The products on which the champions were measured.
    pub products: Vec<String>,
    /// Champions with their conditions. The first that holds counts.
    pub seats: Vec<Seat>,
    /// The shapes at which champions were timed: the values of dims, and the variant.
    pub timed: Vec<(Vec<i64>, usize)>,
}

impl Target {
    /// The conditions of classes whose machine code assumes something, each once. Where one holds and no champion was chosen, values are not those of any machine
    /// code.
    pub fn classes_with_assumptions(&self) -> Vec<&Code> {
        let mut all: Vec<&Code> = vec![];
        for seat in self.seats.iter().filter(|seat| seat.assumes) {
            if !all.contains(&&seat.when) {
                all.push(&seat.when);
            }
        }
        all
    }
}

/// The place of a champion.
#[derive(Debug, Clone, PartialEq)]
pub struct Seat {
    /// Whether a shape has this champion.
    pub when: Code,
    /// The position of the variant.
    pub variant: usize,
    /// The class.
    pub class: String,
    /// Whether the machine code also assumes something of the launches, which has to hold.
    pub assumes: bool,
}

/// A champion.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Its label.
    pub label: String,
    /// Its tunables.
    pub tunables: BTreeMap<String, TuneValue>,
    /// What must be true for a shape.
    pub requires: Vec<Code>,
    /// Parts of the workspace, in order. Each begins at a multiple of 256 bytes.
    pub workspaces: Vec<Workspace>,
    /// `__constant__` symbols to fill: the position of the binary, the symbol, and the tensor.
    pub constants: Vec<(usize, String, usize)>,
    /// The launches in order.
    pub launches: Vec<Launch>,
}

impl Variant {
    /// The launches whose machine code assumes something, each with what it assumes.
    pub fn assumptions(&self) -> impl Iterator<Item = (&Launch, &[Code])> {
        self.launches.iter().filter_map(|launch| match &launch.action {
            Action::Kernel(kernel) if !kernel.assumes.is_empty() => Some((launch, kernel.assumes.as_slice())),
            Action::Kernel(_) | Action::Memset(..) => None,
        })
    }
}

/// A part of the workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct Workspace {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<Code>,
    /// What is done to it before the first launch.
    pub fill: WorkspaceFill,
}

/// What is done to a part of the workspace before the first launch.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkspaceFill {
    /// Nothing.
    Nothing,
    /// It is zeroed.
    Zero,
    /// It holds the addresses of these buffers.
    Addresses(Vec<Buffer>),
}

/// A buffer of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// A tensor by its position.
    Tensor(usize),
    /// A part of the workspace by its position.
    Workspace(usize),
}

/// A launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// It is left out if this is false.
    pub when: Option<Code>,
    /// How often it runs in a row.
    pub repeat: Option<Code>,
    /// What it does.
    pub action: Action,
}

impl Launch {
    /// Whether what its machine code assumes depends on the number of the repetition.
    pub fn assumes_by_iteration(&self) -> bool {
        let assumes = match &self.action {
            Action::Kernel(kernel) => kernel.assumes.as_slice(),
            Action::Memset(..) => &[],
        };
        self.when.iter().chain(assumes).any(|code| code.uses(ITERATION))
    }
}

/// What a launch does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Fills a buffer with a byte.
    Memset(Buffer, u8),
    /// Runs a kernel.
    Kernel(Box<KernelAction>),
}

/// The launch of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelAction {
    /// The position of the entry.
    pub entry: usize,
    /// Blocks along x, y, z.
    pub grid: [Code; 3],
    /// Threads along x, y, z.
    pub block: [Code; 3],
    /// Bytes of dynamic shared memory.
    pub shared: Code,
    /// Blocks of a cluster along x, y, z.
    pub cluster: [Code; 3],
    /// Whether the grid depends on the device's multiprocessors and the occupancy.
    pub open: bool,
    /// Whether all blocks must be resident.
    pub cooperative: bool,
    /// Whether it may begin before the preceding kernel has ended.
    pub pdl: bool,
    /// Arguments.
    pub args: Vec<Arg>,
    /// What must be true wherever it is launched.
    pub assumes: Vec<Code>,
}

/// An argument.
#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    /// An address, and elements past it with their size in bytes.
    Pointer(Buffer, Option<(Code, u64)>),
    /// A scalar.
    Scalar(DType, Code),
    /// A struct: its fields with their offsets, and its size.
    Struct(Vec<(u64, DType, Code)>, u64),
    /// A tensor map.
    Map(Box<MapArg>),
}

/// A tensor map.
#[derive(Debug, Clone, PartialEq)]
pub struct MapArg {
    /// The buffer.
    pub buffer: Buffer,
    /// Its element type.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: Vec<Code>,
    /// Elements between neighbours; none if it is contiguous.
    pub strides: Option<Vec<Code>>,
    /// The box, innermost first.
    pub tile: Vec<Code>,
    /// Bytes over which rows are swizzled; 0 for none.
    pub swizzle: Code,
    /// Bytes to which fetches are widened; 0 for none.
    pub promotion: Code,
    /// Whether elements outside read as NaN.
    pub nan: bool,
}

/// The most blocks of a cluster that need no permission.
pub const PORTABLE: u64 = PORTABLE_CLUSTER;

/// The type of a scalar's value.
pub fn type_of(dtype: DType) -> Type {
    match dtype {
        DType::Bool => Type::Bool,
        dtype if dtype.is_float() => Type::Float,
        _ => Type::Int,
    }
}

/// The loaders of an artifact whose digests were compared.
///
/// # Errors
/// A kernel needs what loaders cannot do.
pub fn plan(index: &Index, files: &ArtifactFiles, document: &KernelsDocument) -> Result<Plan, BindingsError> {
    for text in [&index.package, &index.version, &index.license] {
        if !is_made_of(text, " .-_+()") {
            return Err(BindingsError::Text(text.clone()));
        }
    }
    let mut plan = Plan {
        package: index.package.clone(),
        name: identifier(&index.package).to_ascii_lowercase(),
        version: index.version.clone(),
        license: index.license.clone(),
        root: index.root.trim_start_matches("sha256:").into(),
        binaries: vec![],
        entries: vec![],
        functions: vec![],
    };
    let mut places: BTreeMap<(String, String), (usize, Interface)> = BTreeMap::new();
    let mut names = Distinct::apart_from(&OWN);
    for kernel in &document.kernels {
        let failed = |why| BindingsError::Unsupported { kernel: kernel.title(), why };
        let key = (kernel.kernel.clone(), kernel.types.clone());
        let at = match places.get(&key) {
            Some((at, interface)) if *interface == kernel.interface => *at,
            Some(_) => return Err(failed(Unsupported::Interface)),
            None => {
                let values: Vec<&str> = kernel.types.split(',').filter_map(|one| one.split('=').nth(1)).collect();
                let name = [&[kernel.kernel.as_str()][..], &values].concat().join("_");
                plan.functions.push(function(kernel, names.name(&name)).map_err(failed)?);
                places.insert(key, (plan.functions.len() - 1, kernel.interface.clone()));
                plan.functions.len() - 1
            }
        };
        add_target(&mut plan, at, kernel, files)?;
    }
    // The size of a workspace is a function of its own.
    let sizes: Vec<String> =
        plan.functions.iter().filter(|f| f.has_workspace()).map(|f| format!("{}_workspace", f.name)).collect();
    match plan.functions.iter().find(|function| sizes.contains(&function.name)) {
        Some(function) => Err(BindingsError::Unsupported {
            kernel: format!("`{}`", function.kernel),
            why: Unsupported::Name(function.name.clone()),
        }),
        None => Ok(plan),
    }
}

/// The names that expressions about arguments can use.
pub(super) fn names_of(interface: &Interface) -> Names {
    let mut names = Names::default();
    for dim in interface.dims.iter().chain(interface.derived.iter().map(|derived| &derived.name)) {
        names = names.variable(dim, Type::Int);
    }
    for param in &interface.params {
        names = names.variable(&param.name, type_of(param.dtype));
    }
    for (name, dtype) in &interface.types {
        names = names.constant(name, Value::Str(dtype.name().into()));
    }
    names
}

pub(super) fn code(names: &Names, text: &str, want: Want) -> Result<Code, Unsupported> {
    names.code(text, want).map_err(|why| Unsupported::Expression { text: text.into(), why })
}

pub(super) fn codes(names: &Names, texts: &[String], want: Want) -> Result<Vec<Code>, Unsupported> {
    texts.iter().map(|text| code(names, text, want)).collect()
}

fn function(kernel: &PackagedKernel, name: String) -> Result<Function, Unsupported> {
    let interface = &kernel.interface;
    let derived = interface.derived.iter().map(|derived| &derived.name);
    let mut all = interface.dims.iter().chain(derived).chain(interface.params.iter().map(|param| &param.name));
    if let Some(name) = all.find(|name| !is_identifier(name)) {
        return Err(Unsupported::Name(name.clone()));
    }
    let names = names_of(interface);
    let mut public = Distinct::default();
    let tensors = interface.tensors.iter().map(|tensor| {
        Ok(Tensor {
            name: tensor.name.clone(),
            public: public.name(&tensor.name),
            role: tensor.role,
            dtype: tensor.dtype,
            shape: codes(&names, &tensor.shape, Want::Int)?,
            shape_text: shown(&format!("[{}]", tensor.shape.join(", "))),
            strides: tensor.strides.as_ref().map(|strides| codes(&names, strides, Want::Int)).transpose()?,
            align: tensor.align,
        })
    });
    let tensors = tensors.collect::<Result<Vec<_>, _>>()?;
    let extent_of = |dim: &str| {
        let of = |tensor: &Tensor| tensor.shape.iter().position(|e| matches!(e, Code::Name(name, _) if name == dim));
        tensors
            .iter()
            .enumerate()
            .filter(|(_, tensor)| tensor.role != Role::Output)
            .find_map(|(at, tensor)| Some((at, of(tensor)?)))
    };
    let dims =
        interface.dims.iter().map(|dim| Dim { name: dim.clone(), public: public.name(dim), extent_of: extent_of(dim) });
    let dims = dims.collect();
    let derived = interface.derived.iter().map(|d| Ok((d.name.clone(), code(&names, &d.value, Want::Int)?)));
    let derived = derived.collect::<Result<_, _>>()?;
    let param = |param: &kforge_types::model::description::ParamDescription| {
        let want = match type_of(param.dtype) {
            Type::Bool => Want::Bool,
            Type::Int => Want::Int,
            Type::Float => Want::Float,
        };
        // Where no loader can compute the default, the caller passes the value.
        let default = param.value.as_ref().and_then(|text| names.code(text, want).ok());
        let default_text = param.value.as_deref().map(shown);
        Param { name: param.name.clone(), public: public.name(&param.name), dtype: param.dtype, default, default_text }
    };
    let params = interface.params.iter().map(param).collect();
    let types = if kernel.types.is_empty() { String::new() } else { format!(" for {}", kernel.types) };
    let title = shown(&format!("Kernel `{}`{types} of operator `{}`.", kernel.kernel, kernel.operator));
    let kernel = identifier(&kernel.kernel);
    Ok(Function { name, kernel, title, dims, derived, tensors, params, targets: vec![], variants: vec![] })
}

fn add_target(plan: &mut Plan, at: usize, kernel: &PackagedKernel, files: &ArtifactFiles) -> Result<(), BindingsError> {
    let failed = |why| BindingsError::Unsupported { kernel: kernel.title(), why };
    let (number, suffix) =
        capability(&kernel.arch).map_err(|_| failed(Unsupported::Architecture(kernel.arch.clone())))?;
    let first = plan.functions[at].variants.len();
    for variant in &kernel.variants {
        let bytes = files.required(&variant.binary)?;
        let planned =
            VariantPlanner { plan, function: at, kernel, packaged: variant }.variant(bytes).map_err(failed)?;
        plan.functions[at].variants.push(planned);
    }
    let products: Vec<String> = kernel.devices.iter().map(|device| product(device)).collect();
    if let Some(product) = products.iter().find(|product| !is_made_of(product, " .-_+()")) {
        return Err(failed(Unsupported::Name(product.clone())));
    }
    let function = &mut plan.functions[at];
    let names = names_of(&kernel.interface);
    let timed = |shape: &PackagedShape| {
        shape.time.as_ref()?;
        let dims = kernel.interface.dims.iter().map(|dim| shape.dims.get(dim).copied()).collect::<Option<_>>()?;
        let same = |variant: &PackagedVariant| {
            variant.variant == shape.variant && variant.specialization == shape.specialization
        };
        Some((dims, first + kernel.variants.iter().position(same)?))
    };
    let planned = &function.variants[first..];
    let assumed = |at: usize| planned[at].assumptions().map(|(_, assumes)| assumes.len()).sum::<usize>();
    let seats_of = |class: &PackagedClass| {
        let when = when(kernel, class, &names)?;
        let own = (0..kernel.variants.len()).filter(|at| kernel.variants[*at].variant == class.variant);
        // Machine code that assumes less comes later: it also serves values for which there is other machine code.
        let mut own: Vec<usize> = own.collect();
        own.sort_by_key(|at| std::cmp::Reverse(assumed(*at)));
        if own.is_empty() {
            return Err(Unsupported::Variant { class: class.class.clone(), variant: class.variant.clone() });
        }
        let seat = |at: usize| Seat {
            when: when.clone(),
            variant: first + at,
            class: shown(&class.class),
            assumes: assumed(at) > 0,
        };
        Ok((rank(kernel, class), own.into_iter().map(seat).collect::<Vec<_>>()))
    };
    let seats = kernel.classes.iter().map(seats_of).collect::<Result<Vec<_>, _>>();
    let mut seats = seats.map_err(failed)?;
    seats.sort_by_key(|(rank, _)| *rank);
    function.targets.push(Target {
        name: shown(&kernel.target),
        arch: kernel.arch.clone(),
        capability: (number / 10, number % 10),
        runs: if suffix == "a" { Runs::Exactly } else { Runs::AtLeast },
        products,
        seats: seats.into_iter().flat_map(|(_, seats)| seats).collect(),
        timed: kernel.shapes.iter().filter_map(timed).collect(),
    });
    Ok(())
}

/// The product in a device class: `NVIDIA H200` in `NVIDIA H200 (sm_90, driver 580)`.
fn product(class: &str) -> String {
    class.split(" (sm_").next().unwrap_or(class).to_string()
}

/// Classes of one shape come first, then classes by value, then the rest.
fn rank(kernel: &PackagedKernel, class: &PackagedClass) -> u8 {
    match is_single(kernel, class) {
        true => 0,
        false if kernel.per.is_some() => 1,
        false => 2,
    }
}

/// Whether a class consists of its listed shapes.
fn is_single(kernel: &PackagedKernel, class: &PackagedClass) -> bool {
    class.class.contains('@') || (kernel.per.is_none() && class.class != "all")
}

/// Whether a shape belongs to a class.
fn when(kernel: &PackagedKernel, class: &PackagedClass, names: &Names) -> Result<Code, Unsupported> {
    if is_single(kernel, class) {
        let shapes = kernel.shapes.iter().filter(|shape| class.shapes.contains(&shape.shape));
        let equal = |shape: &PackagedShape| {
            let one = |dim: &String| {
                let pair = [Code::Name(dim.clone(), Type::Int), Code::Int(shape.dims.get(dim).copied().unwrap_or(-1))];
                Code::Compare(Comparison::Equal, Box::new(pair))
            };
            all(kernel.interface.dims.iter().map(one), Logic::And).unwrap_or(Code::Bool(true))
        };
        return Ok(all(shapes.map(equal), Logic::Or).unwrap_or(Code::Bool(false)));
    }
    let Some(per) = &kernel.per else { return Ok(Code::Bool(true)) };
    let value = code(names, per, Want::Any)?;
    let wrong = || Unsupported::Class { class: class.class.clone(), per: per.clone() };
    let equal = |value: Code, to: Code| Code::Compare(Comparison::Equal, Box::new([value, to]));
    match value.of_type() {
        Type::Int => Ok(equal(value, Code::Int(class.class.parse().map_err(|_| wrong())?))),
        Type::Float => Ok(equal(value, Code::Float(class.class.parse().map_err(|_| wrong())?))),
        Type::Bool if class.class == "true" => Ok(value),
        Type::Bool if class.class == "false" => Ok(Code::Not(Box::new(value))),
        Type::Bool => Err(wrong()),
    }
}

fn all(codes: impl Iterator<Item = Code>, logic: Logic) -> Option<Code> {
    codes.reduce(|a, b| Code::Logic(logic, Box::new([a, b])))
}
