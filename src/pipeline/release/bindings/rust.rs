//! The loader in Rust: a crate with cudarc and the machine code in it, without a build script. Knows Rust and cudarc's interface; compiles nothing.

use std::collections::BTreeMap;
use std::fmt::Write;

use minijinja::context;

use super::error::BindingsError;
use super::expressions::{Code, Type};
use super::plan::{
    Action, Arg, Buffer, Function, KernelAction, Launch, MapArg, PORTABLE, Plan, Runs, Target, Tensor, Variant,
    WorkspaceFill, type_of,
};
use super::render::{Language, Renderer, VARIABLE};
use super::text::{map_type, range, render};
use kforge_types::model::grid::{OCCUPANCY, SM_COUNT};
use kforge_types::model::kernel::ITERATION;
use kforge_types::model::{DType, Role};

/// The files of the crate.
///
/// # Errors
/// A template is wrong.
pub fn krate(plan: &Plan) -> Result<BTreeMap<String, Vec<u8>>, BindingsError> {
    let rust = Rust { renderer: Renderer { language: Language::Rust, prefix: String::new() } };
    let functions: String = plan.functions.iter().map(|function| rust.function(function)).collect();
    let image = |file: &str| {
        let path = format!("../binaries/{file}");
        let read = format!("*include_bytes!({})", string(&path));
        format!("    {{\n        static IMAGE: &Aligned<[u8]> = &Aligned({read});\n        &IMAGE.0\n    }},\n")
    };
    let images: String = plan.binaries.iter().map(|binary| image(&binary.file)).collect();
    let entries: String =
        plan.entries.iter().map(|entry| format!("    ({}, {}),\n", entry.binary, string(&entry.symbol))).collect();
    let context = context! {
        package => &plan.package, name => &plan.name, version => &plan.version, license => &plan.license,
        root => &plan.root, portable => PORTABLE, half => functions.contains("half::"), functions, images, entries,
    };
    let mut files = BTreeMap::new();
    for (name, template) in [
        ("Cargo.toml", include_str!("templates/Cargo.toml.j2")),
        ("src/lib.rs", include_str!("templates/lib.rs.j2")),
        ("src/kf.rs", include_str!("templates/kf.rs.j2")),
    ] {
        files.insert(name.to_string(), render(name, template, context.clone())?.into_bytes());
    }
    files.extend(plan.binaries.iter().map(|b| (format!("binaries/{}", b.file), b.bytes.clone())));
    Ok(files)
}

fn string(text: &str) -> String {
    format!("{text:?}")
}

fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "f64",
        DType::F32 => "f32",
        DType::F16 => "half::f16",
        DType::Bf16 => "half::bf16",
        DType::I64 => "i64",
        DType::U64 => "u64",
        DType::I32 => "i32",
        DType::U32 => "u32",
        DType::I16 => "i16",
        DType::U16 => "u16",
        DType::I8 => "i8",
        DType::Bool => "bool",
        _ => "u8",
    }
}

fn value_type(of: Type) -> &'static str {
    match of {
        Type::Int => "i64",
        Type::Float => "f64",
        Type::Bool => "bool",
    }
}

/// Values by their names in expressions, with their types.
fn variables(function: &Function) -> Vec<(String, Type)> {
    let dims = function.dims.iter().map(|dim| &dim.name).chain(function.derived.iter().map(|(name, _)| name));
    let dims = dims.map(|name| (format!("{VARIABLE}{name}"), Type::Int));
    dims.chain(function.params.iter().map(|param| (format!("{VARIABLE}{}", param.name), param.of_type()))).collect()
}

fn declared(function: &Function) -> String {
    variables(function).iter().map(|(name, of)| format!(", {name}: {}", value_type(*of))).collect()
}

fn passed(function: &Function) -> String {
    variables(function).iter().map(|(name, _)| format!(", {name}")).collect()
}

/// Dims and params as callers pass them.
fn values(function: &Function) -> Vec<String> {
    let dims = function.dims.iter().map(|dim| format!("{}: i64", dim.public));
    dims.chain(function.params.iter().map(|p| format!("{}: {}", p.public, value_type(p.of_type())))).collect()
}

struct Rust {
    renderer: Renderer,
}

impl Rust {
    fn code(&self, code: &Code) -> String {
        self.renderer.code(code)
    }

    fn codes(&self, codes: &[Code]) -> String {
        format!("[{}]", codes.iter().map(|code| self.code(code)).collect::<Vec<_>>().join(", "))
    }

    fn function(&self, function: &Function) -> String {
        let mut text = String::new();
        for (at, variant) in function.variants.iter().enumerate() {
            text += &self.variant(function, at, variant);
            text += &self.assumptions(function, at, variant);
        }
        text + &self.choose(function) + &self.layout(function) + &self.public(function)
    }

    fn variant(&self, function: &Function, at: usize, variant: &Variant) -> String {
        let mut text = format!(
            "\n/// `{}`.\nfn {}__{at}(s: &mut kf::Sequence<'_>, b: &[u64], sizes: &[i64]{}) -> Result<(), Error> {{\n",
            variant.label,
            function.name,
            declared(function)
        );
        for requires in &variant.requires {
            let _ =
                writeln!(text, "    if !{} {{\n        return Err(Error::WrongShape);\n    }}", self.code(requires));
        }
        let place = |buffer: &Buffer| match buffer {
            Buffer::Tensor(at) => *at,
            Buffer::Workspace(at) => function.tensors.len() + at,
        };
        for (binary, symbol, tensor) in &variant.constants {
            let symbol = string(symbol);
            let _ = writeln!(text, "    s.constant({binary}, {symbol}, b[{tensor}], sizes[{tensor}])?;");
        }
        for (part, workspace) in variant.workspaces.iter().enumerate() {
            let at = function.tensors.len() + part;
            match &workspace.fill {
                WorkspaceFill::Nothing => {}
                WorkspaceFill::Zero => {
                    let _ = writeln!(text, "    s.set(b[{at}], 0, sizes[{at}]);");
                }
                WorkspaceFill::Addresses(buffers) => {
                    let all: Vec<String> = buffers.iter().map(|buffer| format!("b[{}]", place(buffer))).collect();
                    let _ = writeln!(text, "    s.addresses(b[{at}], &[{}]);", all.join(", "));
                }
            }
        }
        text += "    s.begin();\n";
        for launch in &variant.launches {
            text += &self.launch(launch, &place);
        }
        text + "    Ok(())\n}\n"
    }

    fn launch(&self, launch: &Launch, place: &impl Fn(&Buffer) -> usize) -> String {
        let mut text = String::new();
        if let Some(repeat) = &launch.repeat {
            let _ = writeln!(text, "    for {VARIABLE}{ITERATION} in kf::times({})? {{", self.code(repeat));
        }
        if let Some(when) = &launch.when {
            let _ = writeln!(text, "    if {} {{", self.code(when));
        }
        match &launch.action {
            Action::Memset(buffer, value) => {
                let at = place(buffer);
                let _ = writeln!(text, "    s.set(b[{at}], {value}, sizes[{at}]);");
            }
            Action::Kernel(kernel) => text += &self.kernel(kernel, place),
        }
        text + &"    }\n".repeat(usize::from(launch.repeat.is_some()) + usize::from(launch.when.is_some()))
    }

    fn kernel(&self, kernel: &KernelAction, place: &impl Fn(&Buffer) -> usize) -> String {
        let mut text = format!(
            "    {{\n        let mut l = kf::Launch::new({});\n        l.block = {};\n        l.cluster = {};\n        \
             l.shared = {};\n        l.cooperative = {};\n        l.pdl = {};\n        s.prepare(&mut l)?;\n",
            kernel.entry,
            self.codes(&kernel.block),
            self.codes(&kernel.cluster),
            self.code(&kernel.shared),
            kernel.cooperative,
            kernel.pdl
        );
        if kernel.open {
            let _ = writeln!(
                text,
                "        let ({VARIABLE}{SM_COUNT}, {VARIABLE}{OCCUPANCY}) = (s.processors()?, s.occupancy(&l)?);"
            );
        }
        let _ = writeln!(text, "        l.grid = {};", self.codes(&kernel.grid));
        for arg in &kernel.args {
            text += &self.arg(arg, place);
        }
        text + "        s.launch(l)?;\n    }\n"
    }

    fn arg(&self, arg: &Arg, place: &impl Fn(&Buffer) -> usize) -> String {
        match arg {
            Arg::Pointer(buffer, None) => format!("        l.pointer(b[{}]);\n", place(buffer)),
            Arg::Pointer(buffer, Some((offset, bytes))) => {
                format!("        l.past(b[{}], {}, {bytes})?;\n", place(buffer), self.code(offset))
            }
            Arg::Scalar(dtype, value) => format!("        l.bytes(&{});\n", self.scalar(*dtype, value)),
            Arg::Struct(fields, size) => {
                let mut text = format!("        let mut all = [0; {size}];\n");
                for (at, dtype, value) in fields {
                    let end = at + dtype.bytes();
                    let _ =
                        writeln!(text, "        all[{at}..{end}].copy_from_slice(&{});", self.scalar(*dtype, value));
                }
                text + "        l.bytes(&all);\n"
            }
            Arg::Map(map) => self.map(map, place(&map.buffer)),
        }
    }

    /// The bytes of a scalar.
    fn scalar(&self, dtype: DType, value: &Code) -> String {
        match type_of(dtype) {
            Type::Bool => format!("[u8::from({})]", self.code(value)),
            Type::Float if dtype == DType::F32 => format!("kf::narrow({})?.to_le_bytes()", self.code(value)),
            Type::Float => format!("({} as {}).to_le_bytes()", self.code(value), element(dtype)),
            Type::Int => {
                let (low, high) = range(dtype);
                let literal = |value| self.code(&Code::Int(value));
                let fitted = format!("kf::fit({}, {}, {})?", self.code(value), literal(low), literal(high));
                format!("({fitted} as {}).to_le_bytes()", element(dtype))
            }
        }
    }

    fn map(&self, map: &MapArg, at: usize) -> String {
        let strides = map.strides.as_ref().map_or("None".into(), |s| format!("Some(&{})", self.codes(s)));
        format!(
            "        l.map(b[{at}], &kf::Map {{ kind: {}, bytes: {}, shape: &{}, strides: {strides}, tile: &{}, swizzle: {}, promotion: {}, nan: {} }})?;\n",
            map_type(map.dtype),
            map.dtype.bytes(),
            self.codes(&map.shape),
            self.codes(&map.tile),
            self.code(&map.swizzle),
            self.code(&map.promotion),
            map.nan
        )
    }

    /// Whether what the machine code of a variant assumes of its launches holds.
    fn assumptions(&self, function: &Function, at: usize, variant: &Variant) -> String {
        if variant.assumptions().next().is_none() {
            return String::new();
        }
        let declared: Vec<String> =
            variables(function).iter().map(|(name, of)| format!("{name}: {}", value_type(*of))).collect();
        let mut text =
            format!("\nfn {}__{at}_assumes({}) -> Result<bool, Error> {{\n", function.name, declared.join(", "));
        for (launch, assumes) in variant.assumptions() {
            let mut closing = 0;
            if let Some(repeat) = &launch.repeat {
                // What does not depend on the repetition is asked once.
                let limit = if launch.assumes_by_iteration() { "" } else { ".take(1)" };
                let _ = writeln!(text, "    for {VARIABLE}{ITERATION} in kf::times({})?{limit} {{", self.code(repeat));
                closing += 1;
            }
            if let Some(when) = &launch.when {
                let _ = writeln!(text, "    if {} {{", self.code(when));
                closing += 1;
            }
            for assumed in assumes {
                let _ = writeln!(text, "    if !{} {{\n        return Ok(false);\n    }}", self.code(assumed));
            }
            text += &"    }\n".repeat(closing);
        }
        text + "    Ok(true)\n}\n"
    }

    /// The champion for a device and a shape.
    fn choose(&self, function: &Function) -> String {
        let runs = |target: &Target| {
            let low = target.capability.0 * 10 + target.capability.1;
            match target.runs {
                Runs::Exactly => format!("device.capability == {low}"),
                Runs::AtLeast => format!("({low}..{}).contains(&device.capability)", (target.capability.0 + 1) * 10),
            }
        };
        let mut text = format!(
            "\nfn {}__choose(device: &kf::Device{}) -> Result<usize, Error> {{\n    let target = match () {{\n",
            function.name,
            declared(function)
        );
        for (at, target) in function.targets.iter().enumerate() {
            let products: Vec<String> = target.products.iter().map(|product| string(product)).collect();
            let _ = writeln!(
                text,
                "        () if {} && [{}].contains(&device.name.as_str()) => {at},",
                runs(target),
                products.join(", ")
            );
        }
        for (at, target) in function.targets.iter().enumerate() {
            let _ = writeln!(text, "        () if {} => {at},", runs(target));
        }
        text += "        () => return Err(Error::WrongDevice),\n    };\n    match target {\n";
        for (at, target) in function.targets.iter().enumerate() {
            let _ = writeln!(text, "        {at} => {{");
            for seat in &target.seats {
                let mut when = self.code(&seat.when);
                if seat.assumes {
                    let all: Vec<String> = variables(function).into_iter().map(|(name, _)| name).collect();
                    let _ = write!(when, " && {}__{}_assumes({})?", function.name, seat.variant, all.join(", "));
                }
                let _ = writeln!(
                    text,
                    "            if {when} {{\n                return Ok({});\n            }}",
                    seat.variant
                );
            }
            for when in target.classes_with_assumptions() {
                let when = self.code(when);
                let _ = writeln!(
                    text,
                    "            if {when} {{\n                return Err(Error::WrongClass);\n            }}"
                );
            }
            text += "        }\n";
        }
        text + "        _ => {}\n    }\n    Err(Error::WrongShape)\n}\n"
    }

    /// Sizes and offsets of the parts of the workspace.
    fn layout(&self, function: &Function) -> String {
        if !function.has_workspace() {
            return String::new();
        }
        let mut text = format!(
            "\nfn {}__layout(variant: usize{}) -> Result<(Vec<i64>, Vec<i64>, i64), Error> {{\n    \
             let (mut sizes, mut offsets, mut end) = (vec![], vec![], 0);\n    match variant {{\n",
            function.name,
            declared(function)
        );
        for (at, variant) in function.variants.iter().enumerate() {
            let _ = writeln!(text, "        {at} => {{");
            for part in &variant.workspaces {
                let _ = writeln!(
                    text,
                    "            sizes.push(kf::span(&{}, None, {})?);",
                    self.codes(&part.shape),
                    part.dtype.bytes()
                );
            }
            text += "        }\n";
        }
        text + "        _ => {}\n    }\n    for size in &sizes {\n        offsets.push(end);\n        \
        end = kf::add(end, (size + 255) / 256 * 256)?;\n    }\n    Ok((sizes, offsets, end))\n}\n"
    }

    /// Checks of dims and params, and values by their names in expressions.
    fn bound(&self, function: &Function) -> String {
        let mut text = String::new();
        for dim in &function.dims {
            let _ = writeln!(text, "    let {VARIABLE}{} = {};", dim.name, dim.public);
            let _ = writeln!(text, "    if {} < 0 {{\n        return Err(Error::WrongShape);\n    }}", dim.public);
        }
        for (name, value) in &function.derived {
            let _ = writeln!(text, "    let {VARIABLE}{name} = {};", self.code(value));
        }
        for param in &function.params {
            let (low, high) = range(param.dtype);
            let literal = |value| self.code(&Code::Int(value));
            let value = match param.of_type() {
                Type::Int => format!("kf::fit({}, {}, {})?", param.public, literal(low), literal(high)),
                _ => param.public.clone(),
            };
            let _ = writeln!(text, "    let {VARIABLE}{} = {value};", param.name);
        }
        text
    }

    fn public(&self, function: &Function) -> String {
        let name = &function.name;
        let mut text = format!("\n/// {}\n///\n", function.title);
        for tensor in &function.tensors {
            let role = match tensor.role {
                Role::Input => "input",
                Role::Inout => "read and written",
                Role::Output => "output",
            };
            let strides = if tensor.strides.is_some() { ", with strides" } else { "" };
            let _ = writeln!(
                text,
                "/// * `{}`: {role}, {} `{}`{strides}, aligned to {} bytes",
                tensor.public, tensor.dtype, tensor.shape_text, tensor.align
            );
        }
        for param in &function.params {
            let usual = param.default_text.as_ref().map_or_else(String::new, |text| format!(", usually `{text}`"));
            let _ = writeln!(text, "/// * `{}`: {}{usual}", param.public, param.dtype);
        }
        if function.has_workspace() {
            let _ = writeln!(
                text,
                "/// * `workspace`: at least [`{name}_workspace`] bytes that no other launch uses meanwhile"
            );
        }
        if let Some(note) = function.constants_note() {
            let _ = writeln!(text, "///\n/// {note}");
        }
        text += "///\n/// # Errors\n/// [`Error`]; then nothing was launched, unless it is the driver's.\n///\n/// # Safety\n\
        /// The values of tensors must be those that the operator allows, such as indices in range. No written tensor may share memory with another argument,\n\
        /// as slices that were made from addresses could.\n";
        let argument = |tensor: &Tensor| {
            let of = element(tensor.dtype);
            match tensor.role {
                Role::Input => format!("{}: &impl DevicePtr<{of}>", tensor.public),
                _ => format!("{}: &mut impl DevicePtrMut<{of}>", tensor.public),
            }
        };
        let mut arguments = vec!["stream: &Arc<CudaStream>".to_string()];
        arguments.extend(function.tensors.iter().map(argument));
        arguments.extend(values(function));
        if function.has_workspace() {
            arguments.push("workspace: &mut impl DevicePtrMut<u8>".into());
        }
        let _ = writeln!(text, "pub unsafe fn {name}(\n    {},\n) -> Result<(), Error> {{", arguments.join(",\n    "));
        text += &self.bound(function);
        text += "    let mut kf_b: Vec<u64> = vec![];\n    let mut kf_sizes: Vec<i64> = vec![];\n    \
        let mut kf_s = kf::Sequence::new(stream)?;\n";
        for tensor in &function.tensors {
            let strides = tensor.strides.as_ref().map_or("None".into(), |s| format!("Some(&{})", self.codes(s)));
            let _ = writeln!(
                text,
                "    kf_sizes.push(kf::span(&{}, {strides}, {})?);",
                self.codes(&tensor.shape),
                tensor.dtype.bytes()
            );
        }
        // The guards record the use of each slice when they are dropped, after the launches were queued.
        for (at, tensor) in function.tensors.iter().enumerate() {
            let method = if tensor.role == Role::Input { "device_ptr" } else { "device_ptr_mut" };
            let public = &tensor.public;
            let _ = write!(
                text,
                "    let kf_has_{at} = ({public}.stream().context() == stream.context(), {public}.len() * {});\n    \
                 let (kf_at_{at}, _kf_guard_{at}) = {public}.{method}(stream);\n    \
                 kf_b.push(kf::checked({}, kf_has_{at}.0, kf_at_{at}, kf_has_{at}.1, kf_sizes[{at}], {})?);\n",
                tensor.dtype.bytes(),
                string(public),
                tensor.align
            );
        }
        let passed = passed(function);
        let _ = writeln!(text, "    let kf_variant = {name}__choose(kf_s.device()?{passed})?;");
        if function.has_workspace() {
            let _ = write!(
                text,
                "    let (kf_parts, kf_offsets, kf_end) = {name}__layout(kf_variant{passed})?;\n    \
                 let kf_has = (workspace.stream().context() == stream.context(), workspace.len());\n    \
                 let (kf_at, _kf_guard) = workspace.device_ptr_mut(stream);\n    if (kf_has.1 as i64) < kf_end {{\n        return Err(Error::WrongWorkspace);\n    }}\n    \
                 kf::checked(\"workspace\", kf_has.0, kf_at, kf_has.1, kf_end, 256)?;\n    kf_sizes.extend(kf_parts);\n    \
                 kf_b.extend(kf_offsets.iter().map(|offset| kf_at + *offset as u64));\n"
            );
        }
        text += "    match kf_variant {\n";
        for at in 0..function.variants.len() {
            let _ = writeln!(text, "        {at} => {name}__{at}(&mut kf_s, &kf_b, &kf_sizes{passed})?,");
        }
        text += "        _ => return Err(Error::WrongShape),\n    }\n    \
        // SAFETY: the guards of the slices live until here, and the caller guarantees their values.\n    unsafe { kf_s.queue() }\n}\n";
        if function.has_workspace() {
            let arguments = [vec!["stream: &Arc<CudaStream>".to_string()], values(function)].concat();
            let _ = write!(
                text,
                "\n/// The bytes of the workspace of [`{name}`] for a shape on the stream's device.\n///\n/// # Errors\n\
                 /// No champion serves the shape on this device.\npub fn {name}_workspace({}) -> Result<usize, Error> {{\n{}    \
                 let kf_variant = {name}__choose(kf::Sequence::new(stream)?.device()?{passed})?;\n    \
                 Ok({name}__layout(kf_variant{passed})?.2 as usize)\n}}\n",
                arguments.join(", "),
                self.bound(function)
            );
        }
        text
    }
}
