//! Plans a variant of a function: its machine code, workspaces, constants, and launches with arguments as expressions. Knows the launch description of a
//! packaged variant; which variant serves a device and a shape is the business of `plan`.

use super::error::Unsupported;
use super::expressions::{Code, Names, Type};
use super::names::{is_made_of, shown};
use super::plan::{
    Action, Arg, Binary, Buffer, Entry, KernelAction, Launch, MapArg, Plan, Variant, Workspace, WorkspaceFill, code,
    codes, names_of, type_of,
};
use crate::release::artifact::kernels::{PackagedKernel, PackagedVariant};
use kforge_types::model::bound::Fill;
use kforge_types::model::description::{
    ActionDescription, ArgDescription, FieldDescription, LaunchSequence, ScalarDescription,
};
use kforge_types::model::expr::{Value, Want};
use kforge_types::model::grid::{OCCUPANCY, SM_COUNT};
use kforge_types::model::kernel::ITERATION;
use kforge_types::model::{DType, TuneValue};
use kforge_types::record::machine_code;

/// Where a variant is planned: the plan that it enters, the index of its function there, and its documents.
pub(super) struct VariantPlanner<'a> {
    pub(super) plan: &'a mut Plan,
    pub(super) function: usize,
    pub(super) kernel: &'a PackagedKernel,
    pub(super) packaged: &'a PackagedVariant,
}

impl VariantPlanner<'_> {
    /// The variant with these bytes as its machine code. Errors: it needs what loaders cannot do.
    pub(super) fn variant(&mut self, bytes: &[u8]) -> Result<Variant, Unsupported> {
        let LaunchSequence { tunables, requires, workspaces, constants, launches } = &self.packaged.launch;
        let mut names = names_of(&self.kernel.interface);
        for (name, value) in tunables {
            let value = match value {
                TuneValue::Bool(truth) => Value::Bool(*truth),
                TuneValue::Int(int) => Value::Int(*int),
                TuneValue::Str(text) => Value::Str(text.clone()),
            };
            names = names.constant(name, value);
        }
        let workspace = |workspace: &kforge_types::model::description::WorkspaceDescription| {
            Ok(Workspace {
                name: workspace.name.clone(),
                dtype: workspace.dtype,
                shape: codes(&names, &workspace.shape, Want::Int)?,
                fill: match workspace.fill {
                    Fill::Poison => WorkspaceFill::Nothing,
                    Fill::Zero | Fill::ZeroOnce => WorkspaceFill::Zero,
                },
            })
        };
        let mut parts = workspaces.iter().map(workspace).collect::<Result<Vec<_>, _>>()?;
        let constant = |constant: &kforge_types::model::bound::Constant| {
            let tensor = self.kernel.interface.tensors.iter().position(|tensor| tensor.name == constant.buffer);
            let tensor = tensor.ok_or_else(|| Unsupported::Buffer(constant.buffer.clone()))?;
            match symbol(&constant.symbol) {
                symbol if is_made_of(&symbol, "_$.") => Ok((self.binary(bytes), symbol, tensor)),
                symbol => Err(Unsupported::Name(symbol)),
            }
        };
        let constants = constants.iter().map(constant).collect::<Result<Vec<_>, _>>()?;
        let mut planned = vec![];
        for launch in launches {
            let iterated = match launch.repeat {
                Some(_) => names.clone().variable(ITERATION, Type::Int),
                None => names.clone(),
            };
            let action = match &launch.action {
                ActionDescription::Memset { buffer, value } => Action::Memset(self.buffer(&parts, buffer)?, *value),
                ActionDescription::Kernel { .. } => {
                    Action::Kernel(Box::new(self.launched(bytes, &launch.action, &iterated, &mut parts)?))
                }
            };
            planned.push(Launch {
                when: launch.when.as_ref().map(|text| code(&iterated, text, Want::Bool)).transpose()?,
                repeat: launch.repeat.as_ref().map(|text| code(&names, text, Want::Int)).transpose()?,
                action,
            });
        }
        Ok(Variant {
            label: shown(&self.label()),
            tunables: tunables.clone(),
            requires: codes(&names, requires, Want::Bool)?,
            workspaces: parts,
            constants,
            launches: planned,
        })
    }

    /// The variant for people, in Triton with what its machine code was specialised for.
    fn label(&self) -> String {
        let PackagedVariant { variant, specialization, .. } = self.packaged;
        [variant.as_str(), specialization].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" for ")
    }

    /// The position of the binary.
    fn binary(&mut self, bytes: &[u8]) -> usize {
        let arch = &self.kernel.arch;
        let binaries = &mut self.plan.binaries;
        if let Some(at) = binaries.iter().position(|binary| binary.bytes == bytes && binary.arch == *arch) {
            return at;
        }
        let function = &self.plan.functions[self.function].name;
        let count = |stem: &str| binaries.iter().filter(|binary| binary.file.starts_with(stem)).count();
        let stem = format!("{function}-{arch}-");
        let file = format!("{stem}{}.cubin", count(&stem));
        binaries.push(Binary { file, arch: arch.clone(), bytes: bytes.to_vec() });
        binaries.len() - 1
    }

    /// The position of an entry. `bytes` is the machine code of the variant, which may be an archive with a cubin for each entry.
    fn entry(&mut self, bytes: &[u8], entry: &str) -> Result<usize, Unsupported> {
        let symbol = self
            .packaged
            .symbols
            .get(entry)
            .ok_or_else(|| Unsupported::Symbol { variant: self.packaged.variant.clone(), entry: entry.into() })?;
        if !is_made_of(symbol, "_$.") {
            return Err(Unsupported::Name(symbol.clone()));
        }
        let symbol = symbol.clone();
        let member = self.packaged.members.iter().position(|member| member == entry).unwrap_or_default();
        let own = machine_code::of_entry(bytes, member).map_err(Unsupported::MachineCode)?;
        let entry = Entry { binary: self.binary(own), symbol };
        let entries = &mut self.plan.entries;
        let at = entries.iter().position(|known| *known == entry);
        Ok(at.unwrap_or_else(|| {
            entries.push(entry);
            entries.len() - 1
        }))
    }

    fn buffer(&self, parts: &[Workspace], name: &str) -> Result<Buffer, Unsupported> {
        let tensor = self.kernel.interface.tensors.iter().position(|tensor| tensor.name == name).map(Buffer::Tensor);
        let part = || parts.iter().position(|part| part.name == name).map(Buffer::Workspace);
        tensor.or_else(part).ok_or_else(|| Unsupported::Buffer(name.into()))
    }

    fn launched(
        &mut self,
        bytes: &[u8],
        action: &ActionDescription,
        names: &Names,
        parts: &mut Vec<Workspace>,
    ) -> Result<KernelAction, Unsupported> {
        let ActionDescription::Kernel { entry, grid, block, shared, args, cooperative, cluster, pdl, assumes } = action
        else {
            return Err(Unsupported::Buffer(String::new()));
        };
        let of_device = names.clone().variable(SM_COUNT, Type::Int).variable(OCCUPANCY, Type::Int);
        let grid = three(codes(&of_device, grid, Want::Int)?);
        let open = grid.iter().any(|extent| extent.uses(SM_COUNT) || extent.uses(OCCUPANCY));
        Ok(KernelAction {
            entry: self.entry(bytes, entry)?,
            open,
            grid,
            block: three(codes(names, block, Want::Int)?),
            shared: shared.as_ref().map_or(Ok(Code::Int(0)), |text| code(names, text, Want::Int))?,
            cluster: three(codes(names, cluster, Want::Int)?),
            cooperative: *cooperative,
            pdl: *pdl,
            args: args.iter().map(|arg| self.arg(arg, names, parts)).collect::<Result<_, _>>()?,
            assumes: codes(names, assumes, Want::Bool)?,
        })
    }

    fn arg(&self, arg: &ArgDescription, names: &Names, parts: &mut Vec<Workspace>) -> Result<Arg, Unsupported> {
        Ok(match arg {
            ArgDescription::Pointer { buffer, offset } => {
                let buffer = self.buffer(parts, buffer)?;
                let bytes = self.dtype(parts, buffer).bytes();
                let offset = offset.as_ref().map(|text| code(names, text, Want::Int)).transpose()?;
                Arg::Pointer(buffer, offset.map(|offset| (offset, bytes)))
            }
            ArgDescription::Scalar(scalar) => Arg::Scalar(scalar.dtype, self.scalar(scalar, names)?),
            ArgDescription::Null => Arg::Scalar(DType::U64, Code::Int(0)),
            ArgDescription::Struct(fields) => {
                let mut planned = vec![];
                let (size, _) = self.fields(fields, names, 0, &mut planned)?;
                Arg::Struct(planned, size)
            }
            ArgDescription::Pointers(buffers) => {
                let buffers = buffers.iter().map(|name| self.buffer(parts, name)).collect::<Result<Vec<_>, _>>()?;
                parts.push(Workspace {
                    name: format!("addresses {}", parts.len()),
                    dtype: DType::U64,
                    shape: vec![Code::Int(buffers.len() as i64)],
                    fill: WorkspaceFill::Addresses(buffers),
                });
                Arg::Pointer(Buffer::Workspace(parts.len() - 1), None)
            }
            // The contract of the binary has replaced it.
            ArgDescription::Descriptor { buffer, .. } => return Err(Unsupported::Buffer(buffer.clone())),
            ArgDescription::TensorMap { buffer, tile, swizzle, nan, l2_promotion } => {
                let buffer = self.buffer(parts, buffer)?;
                let (shape, strides) = match buffer {
                    Buffer::Tensor(at) => {
                        let tensor = &self.plan.functions[self.function].tensors[at];
                        (tensor.shape.clone(), tensor.strides.clone())
                    }
                    Buffer::Workspace(at) => (parts[at].shape.clone(), None),
                };
                let bytes =
                    |text: &Option<String>| text.as_ref().map_or(Ok(Code::Int(0)), |text| code(names, text, Want::Int));
                Arg::Map(Box::new(MapArg {
                    buffer,
                    dtype: self.dtype(parts, buffer),
                    shape,
                    strides,
                    tile: codes(names, tile, Want::Int)?,
                    swizzle: bytes(swizzle)?,
                    promotion: bytes(l2_promotion)?,
                    nan: *nan,
                }))
            }
        })
    }

    /// Appends the scalars of a struct that begins at `start` and of the structs in it, with their offsets. Gives its size and alignment in C's layout.
    fn fields(
        &self,
        fields: &[FieldDescription],
        names: &Names,
        start: u64,
        planned: &mut Vec<(u64, DType, Code)>,
    ) -> Result<(u64, u64), Unsupported> {
        let (mut end, mut widest) = (0u64, 1);
        for field in fields {
            let (dtype, code) = match field {
                FieldDescription::Scalar(scalar) => (scalar.dtype, self.scalar(scalar, names)?),
                FieldDescription::Member(ArgDescription::Null) => (DType::U64, Code::Int(0)),
                FieldDescription::Member(ArgDescription::Struct(inner)) => {
                    let align = self.fields(inner, names, 0, &mut vec![])?.1;
                    let at = end.next_multiple_of(align);
                    let (size, _) = self.fields(inner, names, start + at, planned)?;
                    (end, widest) = (at + size, widest.max(align));
                    continue;
                }
                FieldDescription::Member(_) => return Err(Unsupported::AddressInStruct),
            };
            let at = end.next_multiple_of(dtype.bytes());
            planned.push((start + at, dtype, code));
            (end, widest) = (at + dtype.bytes(), widest.max(dtype.bytes()));
        }
        Ok((end.next_multiple_of(widest), widest))
    }

    fn dtype(&self, parts: &[Workspace], buffer: Buffer) -> DType {
        match buffer {
            Buffer::Tensor(at) => self.kernel.interface.tensors[at].dtype,
            Buffer::Workspace(at) => parts[at].dtype,
        }
    }

    fn scalar(&self, scalar: &ScalarDescription, names: &Names) -> Result<Code, Unsupported> {
        let is_param = self.kernel.interface.params.iter().any(|param| param.name == scalar.value.trim());
        let want = match type_of(scalar.dtype) {
            _ if !is_passed(scalar.dtype) => return Err(Unsupported::Scalar(scalar.dtype)),
            _ if is_param => Want::Any,
            Type::Bool => Want::Bool,
            Type::Int => Want::Int,
            Type::Float => Want::Float,
        };
        let value = code(names, &scalar.value, want)?;
        Ok(if type_of(scalar.dtype) == Type::Float { value.float() } else { value })
    }
}

/// Whether loaders pass scalars of a type.
fn is_passed(dtype: DType) -> bool {
    use DType::{Bool, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    matches!(dtype, F64 | F32 | I64 | U64 | I32 | U32 | I16 | U16 | I8 | U8 | Bool)
}

/// Extents along three axes; one along those that are left out.
fn three(mut extents: Vec<Code>) -> [Code; 3] {
    extents.resize(3, Code::Int(1));
    let mut extents = extents.into_iter();
    std::array::from_fn(|_| extents.next().unwrap_or(Code::Int(1)))
}

/// The symbol of a variable from its name in C++ (Itanium C++ ABI, 5.1.2 "nested names").
fn symbol(spelt: &str) -> String {
    let parts: Vec<&str> = spelt.trim_start_matches("::").split("::").collect();
    match parts[..] {
        [one] => one.to_string(),
        _ => format!("_ZN{}E", parts.iter().map(|part| format!("{}{part}", part.len())).collect::<String>()),
    }
}
