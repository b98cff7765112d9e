//! The loader in C: one header, with the machine code in it. Knows C99 that is also C++11, and the runtime in the template; compiles nothing.

use std::fmt::Write;

use minijinja::context;

use super::error::BindingsError;
use super::expressions::{Code, Type};
use super::plan::{
    Action, Arg, Buffer, Function, KernelAction, Launch, MapArg, PORTABLE, Plan, Runs, Tensor, Variant, WorkspaceFill,
    type_of,
};
use super::render::{Language, Renderer, VARIABLE};
use super::text::{map_type, range, render};
use kforge_types::model::grid::{OCCUPANCY, SM_COUNT};
use kforge_types::model::kernel::ITERATION;
use kforge_types::model::{DType, Role};

const TEMPLATE: &str = include_str!("templates/header.h.j2");

/// The header of a plan: its name and its text.
///
/// # Errors
/// The template is wrong.
pub fn header(plan: &Plan) -> Result<(String, String), BindingsError> {
    let name = plan.name.clone();
    let upper = name.to_ascii_uppercase();
    let p = format!("{name}_kf_");
    let c = C { name: &name, upper: &upper, renderer: Renderer { language: Language::C, prefix: p.clone() } };
    let prototypes: String = plan.functions.iter().map(|function| c.prototypes(function)).collect();
    let functions: String = plan.functions.iter().map(|function| c.function(function)).collect();
    let images: String =
        plan.binaries.iter().enumerate().map(|(at, binary)| image(&format!("{p}cubin{at}"), &binary.bytes)).collect();
    let image_names: Vec<String> = (0..plan.binaries.len()).map(|at| format!("{p}cubin{at}")).collect();
    let entries: Vec<String> =
        plan.entries.iter().map(|entry| format!("    {{ {}, {} }},", entry.binary, string(&entry.symbol))).collect();
    let all = || plan.functions.iter().flat_map(|function| &function.variants).flat_map(|variant| &variant.launches);
    let args = || all().filter_map(|launch| kernel_of(launch)).map(|kernel| &kernel.args);
    let math = ["sqrt(", "floor(", "ceil(", "fabs(", "frem(", "ffloor_div(", "to_int("];
    let mut archs: Vec<&str> = plan.binaries.iter().map(|binary| binary.arch.as_str()).collect();
    archs.sort_unstable();
    archs.dedup();
    let text = render(
        "header.h",
        TEMPLATE,
        context! {
            name => &plan.name, p => &p, NAME => &upper, package => &plan.package, version => &plan.version,
            license => &plan.license, root => &plan.root, short => &plan.root[..plan.root.len().min(12)], archs => archs.join(", "), portable => PORTABLE,
            math => math.iter().any(|word| functions.contains(word)),
            prototypes, functions, images, image_names => image_names.join(", "), entries => entries.join("\n"),
            images_count => plan.binaries.len(), entries_count => plan.entries.len(),
            argument_bytes => args().map(|args| args.iter().map(bytes_of).sum::<u64>()).max().unwrap_or(0) + 128,
            argument_count => args().map(Vec::len).max().unwrap_or(0).max(1),
        },
    )?;
    Ok((format!("{name}.h"), text))
}

fn kernel_of(launch: &Launch) -> Option<&KernelAction> {
    if let Action::Kernel(kernel) = &launch.action { Some(kernel) } else { None }
}

/// An upper bound of the bytes of an argument with the gap before it.
fn bytes_of(arg: &Arg) -> u64 {
    match arg {
        Arg::Pointer(..) | Arg::Scalar(..) => 16,
        Arg::Struct(_, size) => size + 16,
        Arg::Map(_) => 256,
    }
}

/// Bytes as an array.
fn image(name: &str, bytes: &[u8]) -> String {
    let mut text = format!("static const unsigned char {name}[] __attribute__((aligned(64))) = {{\n");
    for line in bytes.chunks(32) {
        for byte in line {
            let _ = write!(text, "{byte},");
        }
        text.push('\n');
    }
    text + "};\n"
}

fn string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "double",
        DType::F32 => "float",
        DType::I64 => "int64_t",
        DType::U64 => "uint64_t",
        DType::I32 => "int32_t",
        DType::U32 => "uint32_t",
        DType::I16 => "int16_t",
        DType::U16 => "uint16_t",
        DType::I8 => "int8_t",
        DType::U8 => "uint8_t",
        _ => "void",
    }
}

fn value_type(of: Type) -> &'static str {
    match of {
        Type::Int => "int64_t",
        Type::Float => "double",
        Type::Bool => "int",
    }
}

struct C<'a> {
    name: &'a str,
    upper: &'a str,
    renderer: Renderer,
}

impl C<'_> {
    fn code(&self, code: &Code) -> String {
        self.renderer.code(code)
    }

    /// A condition without the parentheses around it, about which compilers warn.
    fn condition(&self, code: &Code) -> String {
        let text = self.code(code);
        let mut depth = 0;
        let closes = text.char_indices().find(|(_, c)| {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            depth == 0
        });
        match closes {
            Some((at, ')')) if at + 1 == text.len() && text.starts_with('(') => text[1..at].into(),
            _ => text,
        }
    }

    fn p(&self) -> &str {
        &self.renderer.prefix
    }

    /// Dims and params as callers pass them.
    fn values(function: &Function) -> Vec<String> {
        let dims = function.dims.iter().map(|dim| format!("int64_t {}", dim.public));
        let params = function.params.iter().map(|p| format!("{} {}", value_type(p.of_type()), p.public));
        dims.chain(params).collect()
    }

    /// All values by their names in expressions.
    fn variables(function: &Function) -> Vec<(String, Type)> {
        let dims = function.dims.iter().map(|dim| (dim.name.clone(), Type::Int));
        let derived = function.derived.iter().map(|(name, _)| (name.clone(), Type::Int));
        let params = function.params.iter().map(|param| (param.name.clone(), param.of_type()));
        dims.chain(derived).chain(params).collect()
    }

    fn declared(function: &Function) -> String {
        let all = Self::variables(function);
        all.iter().map(|(name, of)| format!(", {} {VARIABLE}{name}", value_type(*of))).collect()
    }

    fn passed(function: &Function) -> String {
        Self::variables(function).iter().map(|(name, _)| format!(", {VARIABLE}{name}")).collect()
    }

    fn unused(function: &Function) -> String {
        Self::variables(function).iter().map(|(name, _)| format!("    (void){VARIABLE}{name};\n")).collect()
    }

    fn signature(&self, function: &Function) -> String {
        let tensor = |tensor: &Tensor| {
            let constant = if tensor.role == Role::Input { "const " } else { "" };
            format!("{constant}{} *{}", c_type(tensor.dtype), tensor.public)
        };
        let mut all: Vec<String> = function.tensors.iter().map(tensor).collect();
        all.extend(Self::values(function));
        if function.has_workspace() {
            all.extend(["void *workspace".to_string(), "size_t workspace_bytes".to_string()]);
        }
        all.push("void *stream".into());
        format!("{}_API int {}_{}({})", self.upper, self.name, function.name, all.join(", "))
    }

    fn workspace_signature(&self, function: &Function) -> String {
        let mut all = Self::values(function);
        all.push("size_t *bytes".into());
        format!("{}_API int {}_{}_workspace({})", self.upper, self.name, function.name, all.join(", "))
    }

    fn prototypes(&self, function: &Function) -> String {
        let mut text = format!("\n/* {}\n", function.title);
        for tensor in &function.tensors {
            let role = match tensor.role {
                Role::Input => "input",
                Role::Inout => "read and written",
                Role::Output => "output",
            };
            let strides = if tensor.strides.is_some() { ", with strides" } else { "" };
            let _ = writeln!(
                text,
                " *   {}: {role}, {} {}{strides}, aligned to {} bytes",
                tensor.public, tensor.dtype, tensor.shape_text, tensor.align
            );
        }
        for param in &function.params {
            let default = param.default_text.as_ref().map_or_else(String::new, |text| format!(", usually {text}"));
            let _ = writeln!(text, " *   {}: {}{}", param.public, param.dtype, default);
        }
        if function.has_workspace() {
            text += " *   workspace: memory of the device, aligned to 256 bytes, that no other launch uses meanwhile\n";
        }
        if let Some(note) = function.constants_note() {
            let _ = writeln!(text, " * {note}");
        }
        let _ = write!(text, " */\n{};\n", self.signature(function));
        if function.has_workspace() {
            let _ = write!(
                text,
                "/* The bytes of the workspace of {}_{} for a shape on the device of the current context. */\n{};\n",
                self.name,
                function.name,
                self.workspace_signature(function)
            );
        }
        text
    }

    fn function(&self, function: &Function) -> String {
        let mut text = String::new();
        for (at, variant) in function.variants.iter().enumerate() {
            text += &self.layout(function, at, variant);
            text += &self.variant(function, at, variant);
            text += &self.assumptions(function, at, variant);
        }
        text += &self.choose(function);
        text += &self.public(function);
        text
    }

    /// The offsets of the parts of a variant's workspace, and its size.
    fn layout(&self, function: &Function, at: usize, variant: &Variant) -> String {
        if variant.workspaces.is_empty() {
            return String::new();
        }
        let p = self.p();
        let mut text = format!(
            "\nstatic int64_t {p}{}_{at}_layout(int64_t *offsets, int64_t *sizes, int *bad{}) {{\n    int64_t end = 0;\n{}",
            function.name,
            Self::declared(function),
            Self::unused(function)
        );
        for (part, workspace) in variant.workspaces.iter().enumerate() {
            let rank = workspace.shape.len();
            let extents: Vec<String> = workspace.shape.iter().map(|extent| self.code(extent)).collect();
            let (shape, strides) = (list(&extents), format!("strides[{}]", rank.max(1)));
            let _ = write!(
                text,
                "    {{\n        const int64_t shape[] = {{ {shape} }};\n        int64_t {strides};\n        \
                 sizes[{part}] = {p}span({rank}, shape, strides, 1, {}, bad);\n        offsets[{part}] = end;\n        \
                 if (*bad) return 0;\n        end = {p}add(end, (sizes[{part}] + 255) / 256 * 256, bad);\n    }}\n",
                workspace.dtype.bytes()
            );
        }
        text + "    return end;\n}\n"
    }

    fn variant(&self, function: &Function, at: usize, variant: &Variant) -> String {
        let (p, up) = (self.p(), self.upper);
        let mut text = format!(
            "\n/* `{}` */\nstatic int {p}{}_{at}({p}run *run, const uint64_t *b, const int64_t *sizes{}) {{\n    \
             int bad_ = 0, *bad = &bad_, error = 0;\n    {p}launch launch;\n{}    (void)bad;\n    (void)launch;\n    \
             (void)b;\n    (void)sizes;\n    run->after_kernel = 0;\n",
            variant.label,
            function.name,
            Self::declared(function),
            Self::unused(function)
        );
        for requires in &variant.requires {
            let _ = writeln!(text, "    if (!{} || bad_) return {up}_WRONG_SHAPE;", self.code(requires));
        }
        for (binary, symbol, tensor) in &variant.constants {
            let _ = writeln!(
                text,
                "    if ((error = {p}constant(run, {binary}, {}, b[{tensor}], sizes[{tensor}]))) return error;",
                string(symbol)
            );
        }
        let place = |buffer: &Buffer| match buffer {
            Buffer::Tensor(at) => *at,
            Buffer::Workspace(at) => function.tensors.len() + at,
        };
        for (part, workspace) in variant.workspaces.iter().enumerate() {
            let at = function.tensors.len() + part;
            match &workspace.fill {
                WorkspaceFill::Nothing => {}
                WorkspaceFill::Zero => {
                    let _ = writeln!(text, "    if ((error = {p}set(run, b[{at}], 0, sizes[{at}]))) return error;");
                }
                WorkspaceFill::Addresses(buffers) => {
                    for (index, buffer) in buffers.iter().enumerate() {
                        let of = place(buffer);
                        let _ = writeln!(
                            text,
                            "    if ((error = {p}set_address(run, b[{at}] + {}, b[{of}]))) return error;",
                            index * 8
                        );
                    }
                }
            }
        }
        for launch in &variant.launches {
            text += &self.launch(launch, &place);
        }
        text + "    return error;\n}\n"
    }

    fn launch(&self, launch: &Launch, place: &impl Fn(&Buffer) -> usize) -> String {
        let (p, up) = (self.p(), self.upper);
        let mut text = String::from("    {\n");
        if let Some(repeat) = &launch.repeat {
            let _ = write!(
                text,
                "        int64_t {VARIABLE}{ITERATION}, times = {};\n        \
                 if (bad_ || times < 0 || times > 100000) return {up}_WRONG_SHAPE;\n        \
                 for ({VARIABLE}{ITERATION} = 0; {VARIABLE}{ITERATION} < times; {VARIABLE}{ITERATION}++) {{\n",
                self.code(repeat)
            );
        }
        if let Some(when) = &launch.when {
            let _ = writeln!(text, "        if ({}) {{", self.condition(when));
        }
        match &launch.action {
            Action::Memset(buffer, value) => {
                let at = place(buffer);
                let _ = writeln!(
                    text,
                    "        if (bad_) return {up}_WRONG_SHAPE;\n        \
                     if ((error = {p}set(run, b[{at}], {value}, sizes[{at}]))) return error;"
                );
            }
            Action::Kernel(kernel) => text += &self.kernel(kernel, place),
        }
        let closing = usize::from(launch.repeat.is_some()) + usize::from(launch.when.is_some());
        text += &"        }\n".repeat(closing);
        let check =
            if launch.when.is_some() { format!("        if (bad_) return {up}_WRONG_SHAPE;\n") } else { String::new() };
        text + &check + "    }\n"
    }

    fn kernel(&self, kernel: &KernelAction, place: &impl Fn(&Buffer) -> usize) -> String {
        let (p, up) = (self.p(), self.upper);
        let mut text = format!(
            "        memset(&launch, 0, sizeof launch);\n        launch.entry = {};\n        \
             launch.cooperative = {};\n        launch.pdl = {};\n",
            kernel.entry,
            u8::from(kernel.cooperative),
            u8::from(kernel.pdl)
        );
        for (name, extents) in [("block", &kernel.block), ("cluster", &kernel.cluster)] {
            for (axis, extent) in extents.iter().enumerate() {
                let _ = writeln!(text, "        launch.{name}[{axis}] = {};", self.code(extent));
            }
        }
        let _ = writeln!(text, "        launch.shared = {};", self.code(&kernel.shared));
        let _ = writeln!(text, "        if (bad_) return {up}_WRONG_SHAPE;");
        let (before, after) = if kernel.open {
            let text = format!(
                "        {{\n        int64_t {VARIABLE}{SM_COUNT} = run->context->processors, {VARIABLE}{OCCUPANCY} = 0;\n        (void){VARIABLE}{SM_COUNT};\n        \
                 if ((error = {p}prepare(run, &launch, &{VARIABLE}{OCCUPANCY}))) return error;\n"
            );
            (text, "        }\n")
        } else {
            (format!("        if ((error = {p}prepare(run, &launch, NULL))) return error;\n"), "")
        };
        text += &before;
        for (axis, extent) in kernel.grid.iter().enumerate() {
            let _ = writeln!(text, "        launch.grid[{axis}] = {};", self.code(extent));
        }
        text += after;
        for arg in &kernel.args {
            text += &self.arg(arg, place);
        }
        let _ = writeln!(text, "        if (bad_) return {up}_WRONG_SHAPE;");
        let _ = writeln!(text, "        if ((error = {p}queue(run, &launch))) return error;");
        text
    }

    fn arg(&self, arg: &Arg, place: &impl Fn(&Buffer) -> usize) -> String {
        let p = self.p();
        match arg {
            Arg::Pointer(buffer, None) => format!("        {p}put_address(&launch, b[{}]);\n", place(buffer)),
            Arg::Pointer(buffer, Some((offset, bytes))) => format!(
                "        {{\n            int64_t offset = {p}mul({}, {bytes}, bad);\n            \
                 if (offset < 0) bad_ = 1;\n            \
                 {p}put_address(&launch, b[{}] + (uint64_t)offset);\n        }}\n",
                self.code(offset),
                place(buffer)
            ),
            Arg::Scalar(dtype, value) => self.scalar(*dtype, value),
            Arg::Struct(fields, size) => {
                let mut text = format!(
                    "        {{\n            unsigned char all[{size}];\n            memset(all, 0, sizeof all);\n"
                );
                for (offset, dtype, value) in fields {
                    let value = match type_of(*dtype) {
                        Type::Float if *dtype == DType::F32 => format!("{p}narrow({}, &launch)", self.code(value)),
                        Type::Float | Type::Bool => self.code(value),
                        Type::Int => self.fitted(*dtype, value),
                    };
                    let of = if *dtype == DType::Bool { "uint8_t" } else { c_type(*dtype) };
                    let _ = writeln!(
                        text,
                        "            {{ {of} field = ({of})({value}); memcpy(all + {offset}, &field, sizeof field); }}"
                    );
                }
                let _ = write!(text, "            {p}put(&launch, all, {size}, 16);\n        }}\n");
                text
            }
            Arg::Map(map) => self.map(map, place(&map.buffer)),
        }
    }

    fn fitted(&self, dtype: DType, value: &Code) -> String {
        let (low, high) = range(dtype);
        let literal = |value| self.code(&Code::Int(value));
        format!("{}fit({}, {}, {}, &launch)", self.p(), self.code(value), literal(low), literal(high))
    }

    fn scalar(&self, dtype: DType, value: &Code) -> String {
        let p = self.p();
        match dtype {
            DType::F64 => format!("        {p}put_f64(&launch, {});\n", self.code(value)),
            DType::F32 => format!("        {p}put_f32(&launch, {});\n", self.code(value)),
            DType::Bool => format!("        {p}put_integer(&launch, ({}) ? 1 : 0, 1);\n", self.code(value)),
            _ => format!("        {p}put_integer(&launch, {}, {});\n", self.fitted(dtype, value), dtype.bytes()),
        }
    }

    fn map(&self, map: &MapArg, at: usize) -> String {
        let (p, up) = (self.p(), self.upper);
        let rank = map.shape.len();
        let listed = |codes: &[Code]| list(&codes.iter().map(|code| self.code(code)).collect::<Vec<_>>());
        let strides = match &map.strides {
            Some(strides) => format!("int64_t strides[] = {{ {} }};", listed(strides)),
            None => format!("int64_t strides[{rank}];"),
        };
        format!(
            "        {{\n            const int64_t shape[] = {{ {} }}, tile[] = {{ {} }};\n            {strides}\n            \
             {p}span({rank}, shape, strides, {}, {}, bad);\n            if (bad_) return {up}_WRONG_SHAPE;\n            \
             if ((error = {p}put_map(&launch, b[{at}], {}, {}, {rank}, shape, strides, tile, {}, {}, {}))) return error;\n        }}\n",
            listed(&map.shape),
            listed(&map.tile),
            u8::from(map.strides.is_none()),
            map.dtype.bytes(),
            map_type(map.dtype),
            map.dtype.bytes(),
            self.code(&map.swizzle),
            self.code(&map.promotion),
            u8::from(map.nan)
        )
    }

    /// Whether what the machine code of a variant assumes of its launches holds.
    fn assumptions(&self, function: &Function, at: usize, variant: &Variant) -> String {
        if variant.assumptions().next().is_none() {
            return String::new();
        }
        let mut text = format!(
            "\nstatic int {}{}_{at}_assumes(int *bad{}) {{\n{}    (void)bad;\n",
            self.p(),
            function.name,
            Self::declared(function),
            Self::unused(function)
        );
        for (launch, assumes) in variant.assumptions() {
            let mut closing = 0;
            if let Some(repeat) = &launch.repeat {
                let _ = write!(
                    text,
                    "    {{\n    int64_t {VARIABLE}{ITERATION}, times = {};\n    if (*bad || times < 0 || times > 100000) {{ *bad = 1; return 0; }}\n",
                    self.code(repeat)
                );
                // What does not depend on the repetition is asked once.
                let limit = if launch.assumes_by_iteration() { "times" } else { "(times > 0)" };
                let _ = writeln!(
                    text,
                    "    for ({VARIABLE}{ITERATION} = 0; {VARIABLE}{ITERATION} < {limit}; {VARIABLE}{ITERATION}++) {{"
                );
                closing += 2;
            }
            if let Some(when) = &launch.when {
                let _ = writeln!(text, "    if ({}) {{", self.condition(when));
                closing += 1;
            }
            for assumed in assumes {
                let _ = writeln!(text, "    if (!{} || *bad) return 0;", self.code(assumed));
            }
            text += &"    }\n".repeat(closing);
        }
        text + "    return 1;\n}\n"
    }

    /// The champion for a device and a shape.
    fn choose(&self, function: &Function) -> String {
        let (p, up) = (self.p(), self.upper);
        let mut text = format!(
            "\nstatic int {p}{}_choose(const {p}known *device{}) {{\n    int bad_ = 0, *bad = &bad_, target = -1;\n\
             {}    (void)bad;\n",
            function.name,
            Self::declared(function),
            Self::unused(function)
        );
        // The last assignment counts: first those that run, then among them one whose champions were measured on this product. Of equals the first counts.
        let runs = |target: &super::plan::Target| {
            let (major, minor) = target.capability;
            match target.runs {
                Runs::Exactly => format!("device->capability == {}", major * 10 + minor),
                Runs::AtLeast => {
                    format!("device->capability >= {} && device->capability < {}", major * 10 + minor, (major + 1) * 10)
                }
            }
        };
        for (at, target) in function.targets.iter().enumerate().rev() {
            let _ = writeln!(text, "    if ({}) target = {at}; /* {} */", runs(target), target.name);
        }
        for (at, target) in function.targets.iter().enumerate().rev() {
            for product in &target.products {
                let product = string(product);
                let _ =
                    writeln!(text, "    if ({} && !strcmp(device->device, {product})) target = {at};", runs(target));
            }
        }
        text += "    switch (target) {\n";
        for (at, target) in function.targets.iter().enumerate() {
            let _ = writeln!(text, "    case {at}:");
            for seat in &target.seats {
                let when = match seat.assumes {
                    true => format!(
                        "{} && {p}{}_{}_assumes(bad{})",
                        self.code(&seat.when),
                        function.name,
                        seat.variant,
                        Self::passed(function)
                    ),
                    false => self.condition(&seat.when),
                };
                let _ = writeln!(
                    text,
                    "        if ({when}) return bad_ ? {up}_WRONG_SHAPE : {}; /* {} */",
                    seat.variant, seat.class
                );
            }
            for when in target.classes_with_assumptions() {
                let _ = writeln!(
                    text,
                    "        if ({}) return bad_ ? {up}_WRONG_SHAPE : {up}_WRONG_CLASS;",
                    self.condition(when)
                );
            }
            let _ = writeln!(text, "        return {up}_WRONG_SHAPE;");
        }
        let _ = write!(text, "    default: return {up}_WRONG_DEVICE;\n    }}\n}}\n");
        text
    }

    /// Dims and params as parameters of a function behind a public one, with their names in expressions.
    fn given(function: &Function) -> Vec<String> {
        let dims = function.dims.iter().map(|dim| format!("int64_t {VARIABLE}{}", dim.name));
        let params = function.params.iter().map(|p| format!("{} {VARIABLE}{}", value_type(p.of_type()), p.name));
        dims.chain(params).collect()
    }

    /// The same as a public function passes them.
    fn give(function: &Function) -> Vec<String> {
        let dims = function.dims.iter().map(|dim| dim.public.clone());
        let truth = |of: Type| if of == Type::Bool { "!!" } else { "" };
        let params = function.params.iter().map(|param| format!("{}{}", truth(param.of_type()), param.public));
        dims.chain(params).collect()
    }

    /// Checks of dims and params, and the values of derived dims.
    fn bound(&self, function: &Function) -> String {
        let up = self.upper;
        let mut text = String::new();
        for (name, value) in &function.derived {
            let _ = writeln!(text, "    const int64_t {VARIABLE}{name} = {};", self.code(value));
        }
        let _ = writeln!(text, "    if (bad_) return {up}_WRONG_SHAPE;");
        for dim in &function.dims {
            let _ = writeln!(text, "    if ({VARIABLE}{} < 0) return {up}_WRONG_SHAPE;", dim.name);
        }
        for param in function.params.iter().filter(|param| param.of_type() == Type::Int) {
            let (low, high) = range(param.dtype);
            let [low, high] = [low, high].map(|value| self.code(&Code::Int(value)));
            let name = &param.name;
            let _ = writeln!(
                text,
                "    if ({VARIABLE}{name} < {low} || {VARIABLE}{name} > {high}) return {up}_WRONG_VALUE;"
            );
        }
        text
    }

    fn public(&self, function: &Function) -> String {
        let (p, up) = (self.p(), self.upper);
        let name = &function.name;
        let parts = function.variants.iter().map(|variant| variant.workspaces.len()).max().unwrap_or(0);
        let buffers = function.tensors.len() + parts;
        let mut given: Vec<String> = (0..function.tensors.len()).map(|at| format!("uint64_t a{at}")).collect();
        let mut give: Vec<String> =
            function.tensors.iter().map(|tensor| format!("(uint64_t)(uintptr_t){}", tensor.public)).collect();
        given.extend(Self::given(function));
        give.extend(Self::give(function));
        if function.has_workspace() {
            given.push("void *workspace, size_t workspace_bytes".into());
            give.push("workspace, workspace_bytes".into());
        }
        given.push("void *stream".into());
        give.push("stream".into());
        let mut text = format!(
            "\nstatic int {p}{name}_call({}) {{\n    {p}run run;\n    uint64_t b[{buffers}];\n    \
             int64_t sizes[{buffers}];\n    int bad_ = 0, *bad = &bad_, variant, error;\n",
            given.join(", ")
        );
        text += &self.bound(function);
        for (at, tensor) in function.tensors.iter().enumerate() {
            let rank = tensor.shape.len();
            let listed = |codes: &[Code]| list(&codes.iter().map(|code| self.code(code)).collect::<Vec<_>>());
            let strides = match &tensor.strides {
                Some(strides) => format!("int64_t strides[] = {{ {} }};", listed(strides)),
                None => format!("int64_t strides[{}];", rank.max(1)),
            };
            let _ = write!(
                text,
                "    {{\n        const int64_t shape[] = {{ {} }};\n        {strides}\n        b[{at}] = a{at};\n        \
                 sizes[{at}] = {p}span({rank}, shape, strides, {}, {}, bad);\n        if (bad_) return {up}_WRONG_SHAPE;\n        \
                 if (sizes[{at}] > 0 && !b[{at}]) return {up}_NULL_POINTER;\n        \
                 if (b[{at}] % {} != 0) return {up}_WRONG_ALIGNMENT;\n    }}\n",
                listed(&tensor.shape),
                u8::from(tensor.strides.is_none()),
                tensor.dtype.bytes(),
                tensor.align
            );
        }
        for (a, b) in function.separate() {
            let _ = writeln!(
                text,
                "    if (sizes[{a}] > 0 && sizes[{b}] > 0 && b[{a}] < b[{b}] + (uint64_t)sizes[{b}] && b[{b}] < b[{a}] + (uint64_t)sizes[{a}]) return {up}_OVERLAP;"
            );
        }
        let passed = Self::passed(function);
        let _ = write!(
            text,
            "    if ((error = {p}start(&run, stream))) return error;\n    \
             if ((variant = {p}{name}_choose(run.context{passed})) < 0) return variant;\n"
        );
        if function.has_workspace() {
            let _ = write!(
                text,
                "    {{\n        int64_t offsets[{parts}], part, count = 0, end = 0;\n        switch (variant) {{\n"
            );
            for (at, variant) in function.variants.iter().enumerate().filter(|(_, v)| !v.workspaces.is_empty()) {
                let first = function.tensors.len();
                let _ = writeln!(
                    text,
                    "        case {at}: count = {}; end = {p}{name}_{at}_layout(offsets, sizes + {first}, bad{passed}); break;",
                    variant.workspaces.len()
                );
            }
            let _ = write!(
                text,
                "        default: break;\n        }}\n        if (bad_) return {up}_WRONG_SHAPE;\n        \
                 if ((uint64_t)end > workspace_bytes) return {up}_WRONG_WORKSPACE;\n        \
                 if (end > 0 && !workspace) return {up}_NULL_POINTER;\n        if ((uintptr_t)workspace % 256 != 0) return {up}_WRONG_ALIGNMENT;\n        \
                 for (part = 0; part < count; part++) b[{} + part] = (uint64_t)(uintptr_t)workspace + (uint64_t)offsets[part];\n    }}\n",
                function.tensors.len()
            );
        }
        text += "    for (run.live = 0; run.live < 2; run.live++) {\n        switch (variant) {\n";
        for at in 0..function.variants.len() {
            let _ = writeln!(text, "        case {at}: error = {p}{name}_{at}(&run, b, sizes{passed}); break;");
        }
        let _ = write!(
            text,
            "        default: return {up}_WRONG_SHAPE;\n        }}\n        if (error) return error;\n    }}\n    \
             return {up}_OK;\n}}\n"
        );
        let _ =
            write!(text, "\n{} {{\n    return {p}{name}_call({});\n}}\n", self.signature(function), give.join(", "));
        if function.has_workspace() {
            text += &self.workspace(function, parts, &passed);
        }
        text
    }

    fn workspace(&self, function: &Function, parts: usize, passed: &str) -> String {
        let (p, up, name) = (self.p(), self.upper, &function.name);
        let mut text = format!(
            "\nstatic int {p}{name}_bytes({}, size_t *bytes) {{\n    {p}run run;\n    \
             int64_t offsets[{parts}], sizes[{parts}], end = 0;\n    int bad_ = 0, *bad = &bad_, variant, error;\n",
            Self::given(function).join(", ")
        );
        text += &self.bound(function);
        let _ = write!(
            text,
            "    if ((error = {p}start(&run, NULL))) return error;\n    \
             if ((variant = {p}{name}_choose(run.context{passed})) < 0) return variant;\n    switch (variant) {{\n"
        );
        for (at, _) in function.variants.iter().enumerate().filter(|(_, variant)| !variant.workspaces.is_empty()) {
            let _ = writeln!(text, "    case {at}: end = {p}{name}_{at}_layout(offsets, sizes, bad{passed}); break;");
        }
        let _ = write!(
            text,
            "    default: break;\n    }}\n    if (bad_) return {up}_WRONG_SHAPE;\n    *bytes = (size_t)end;\n    \
             return {up}_OK;\n}}\n"
        );
        let give = [Self::give(function), vec!["bytes".into()]].concat().join(", ");
        let _ = write!(text, "\n{} {{\n    return {p}{name}_bytes({give});\n}}\n", self.workspace_signature(function));
        text
    }
}

/// The elements of an array that is never empty.
fn list(all: &[String]) -> String {
    if all.is_empty() { "0".into() } else { all.join(", ") }
}
