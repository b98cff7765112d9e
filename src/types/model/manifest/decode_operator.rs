//! Reads operators: dims, types, tensors, params, reference, comparison. Shapes and tolerances are in `decode_shape`. `validate` checks what the names mean
//! together.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::strange;
use super::decode_shape::unknown_tolerance_key;
use super::fields::OPERATOR;
use super::read::{Reader, sub};
use crate::model::bind::no_such_value;
use crate::model::expr::{Want, list};
use crate::model::operator::{InitDecl, Operator, ParamDecl, PrecisionDecl, TensorDecl, TypeRef};
use crate::model::pattern::{HIGHEST_LEVEL, Pattern};
use crate::model::torch::TorchDecl;
use crate::model::{Compare, DType, Init, Origin, Reference, Role, Scalar, Text, dtype};

impl Reader<'_> {
    pub(super) fn operator(&mut self, name: Text, table: &DeTable<'_>) -> Operator {
        let touched =
            self.touched(table) || self.found.iter().flat_map(|d| &d.labels).any(|l| l.span == name.place.span);
        let errors = self.errors();
        let mut operator = Operator {
            name: name.value,
            reference_place: table.get("reference").map_or_else(|| name.place.clone(), |v| self.place(v.span())),
            tolerance_place: table
                .get_key_value("tolerance")
                .map_or_else(|| name.place.clone(), |(k, _)| self.place(k.span())),
            place: name.place,
            dims: self.texts(table, "dims"),
            derived: vec![],
            types: vec![],
            tensors: vec![],
            params: vec![],
            reference: Reference::Builtin { name: String::new(), attributes: BTreeMap::new(), names: BTreeMap::new() },
            torch: None,
            generate_inputs: None,
            tolerance: None,
            precision: PrecisionDecl::default(),
            must_decide: false,
            undecidable: vec![],
            compare: BTreeMap::new(),
            pattern: self.text(table, "pattern").and_then(|text| Pattern::named(&text.value)),
            level: self.count(table, "level", 0..=i64::from(HIGHEST_LEVEL)).and_then(|n| u8::try_from(n).ok()),
            origin: self.origin(table),
            flops: self.expr_of(table, "flops", Want::Float),
            flops_min: self.expr_of(table, "flops_min", Want::Float),
            bytes: self.expr_of(table, "bytes", Want::Float),
            shapes: vec![],
            seeds: self.seeds(table),
            partial: incomplete(table),
            broken: false,
        };
        for (name, value) in self.named(table, "derived") {
            match self.expr(value, Want::Int) {
                Some(expr) => operator.derived.push((name, expr)),
                None => operator.partial = true,
            }
        }
        for (name, value) in self.named(table, "types") {
            let mut dtypes: Vec<DType> = vec![];
            for item in value
                .get_ref()
                .as_array()
                .into_iter()
                .flat_map(|a| a.iter())
                .filter_map(|v| self.string(v))
                .collect::<Vec<_>>()
            {
                match self.dtype(&item) {
                    Some(dtype) if dtypes.contains(&dtype) => self.wrong(
                        "manifest.duplicate-name",
                        format!("type `{name}` lists `{dtype}` twice"),
                        item.place.span,
                        "each dtype once",
                    ),
                    Some(dtype) => dtypes.push(dtype),
                    None => {}
                }
            }
            operator.types.push((name, dtypes));
        }
        for (key, role) in [("inputs", Role::Input), ("inouts", Role::Inout), ("outputs", Role::Output)] {
            for (name, value) in self.named(table, key) {
                if let Some(inner) = value.get_ref().as_table() {
                    let decl = self.tensor(name, inner, role, &operator);
                    operator.tensors.push(decl);
                }
            }
        }
        for (name, value) in self.named(table, "params") {
            let Some(inner) = value.get_ref().as_table() else { continue };
            let dtype = self.type_ref(inner, &operator);
            let want = match dtype {
                TypeRef::Fixed(DType::Bool) => Want::Bool,
                TypeRef::Fixed(d) if !d.is_float() => Want::Int,
                _ => Want::Float,
            };
            let value = self.value_of(inner, "value", want);
            operator.params.push(ParamDecl { name, dtype, value });
        }
        if let Some(value) = table.get("reference")
            && let Some((reference, torch)) = self.reference(value)
        {
            operator.reference = reference;
            operator.torch = torch.map(Box::new);
        }
        operator.generate_inputs = table.get("generate_inputs").and_then(|value| self.inputs_function(value));
        if let Some(value) = table.get("tolerance") {
            let (tolerance, keys) = self.tolerance(value);
            operator.tolerance = tolerance;
            for key in keys {
                self.found.extend(unknown_tolerance_key(&key, operator.written().map(|t| t.name.as_str())));
            }
        }
        if let Some((key, value)) = table.get_key_value("precision") {
            operator.precision = self.precision(value, &operator);
            if operator.tolerance.is_some() {
                let message = "`precision` has no effect beside a stated tolerance".to_string();
                self.wrong(
                    "manifest.conflict",
                    message,
                    key.span(),
                    "`precision`, or a `tolerance` that is not `auto`",
                );
            }
        }
        operator.compare = self.compare(table, &operator);
        if let Some(verify) = sub(table, "verify") {
            operator.must_decide = self.text(verify, "decisive").is_some_and(|word| word.value == "require");
            operator.undecidable = self.undecidable(verify, &operator);
        }
        for raw in self.raw_shapes(table) {
            let (shape, found) = raw.resolve(&operator);
            self.found.extend(found);
            operator.shapes.push(shape);
        }
        operator.broken = touched || self.errors() > errors;
        operator
    }

    fn origin(&mut self, table: &DeTable<'_>) -> Option<Origin> {
        let inner = sub(table, "origin")?;
        let mut number =
            |key: &str| self.count(inner, key, 0..=i64::from(u32::MAX)).and_then(|n| u32::try_from(n).ok());
        let (level, number) = (number("level"), number("number"));
        let name = self.text(inner, "name").map(|text| text.value);
        Some(Origin { set: self.text(inner, "set")?.value, level, number, name })
    }

    /// How precisely kernels may compute. A type that is no float type is an error.
    fn precision(&mut self, value: &Spanned<DeValue<'_>>, operator: &Operator) -> PrecisionDecl {
        let Some(table) = value.get_ref().as_table() else { return PrecisionDecl::default() };
        let types: Vec<&str> = operator.types.iter().map(|t| t.0.as_str()).collect();
        let float = |reader: &mut Self, text: &Text| {
            let of = reader.type_named(text, &types);
            if let TypeRef::Fixed(dtype) = of
                && !dtype.is_float()
            {
                let message = format!("`{dtype}` is not a float type");
                reader.wrong("manifest.dtype", message, text.place.span.clone(), "a float dtype");
            }
            of
        };
        PrecisionDecl {
            accumulate: self.text(table, "accumulate").map(|text| float(self, &text)),
            intermediates: self.texts(table, "intermediates").iter().map(|text| float(self, text)).collect(),
        }
    }

    /// The `dtype` of a table: a type of the operator, or a dtype. A wrong one is reported and replaced by f32.
    fn type_ref(&mut self, table: &DeTable<'_>, operator: &Operator) -> TypeRef {
        let Some(text) = self.text(table, "dtype") else { return TypeRef::Fixed(DType::F32) };
        let types: Vec<&str> = operator.types.iter().map(|t| t.0.as_str()).collect();
        self.type_named(&text, &types)
    }

    pub(super) fn type_named(&mut self, text: &Text, types: &[&str]) -> TypeRef {
        if types.contains(&text.as_str()) {
            return TypeRef::Named(text.value.clone());
        }
        if let Ok(dtype) = text.value.parse() {
            return TypeRef::Fixed(dtype);
        }
        let known: Vec<&str> = types.iter().copied().chain(DType::ALL.iter().map(|d| d.name())).collect();
        let error = text.place.error("manifest.dtype", format!("unknown dtype `{text}`"));
        self.found.push(dtype::suggest(error.expected(format!("one of {}", list(&known))), &text.value, known));
        TypeRef::Fixed(DType::F32)
    }

    fn tensor(&mut self, name: Text, table: &DeTable<'_>, role: Role, operator: &Operator) -> TensorDecl {
        let dtype = self.type_ref(table, operator);
        let shape = self.exprs(table, "shape", Want::Int);
        let strides = table.get("strides").map(|_| self.exprs(table, "strides", Want::Int));
        if let (Some(strides), Some(value)) = (&strides, table.get("strides"))
            && strides.len() != shape.len()
        {
            self.wrong(
                "manifest.length",
                format!("`{name}` has {} axes and {} strides", shape.len(), strides.len()),
                value.span(),
                "one stride for each axis",
            );
        }
        let mut align = 256;
        if let Some(value) = table.get("align") {
            match super::read::integer(value.get_ref()).and_then(|a| u64::try_from(a).ok()) {
                Some(bytes) if bytes.is_power_of_two() && bytes <= 4096 => align = bytes,
                _ => self.wrong(
                    "manifest.value",
                    format!("`{}` is not an alignment", self.place(value.span()).text()),
                    value.span(),
                    "a power of two up to 4096, in bytes",
                ),
            }
        }
        let init = table.get("init").and_then(|v| self.init(v)).unwrap_or(InitDecl::Fixed(Init::Auto));
        if let (TypeRef::Fixed(dtype), InitDecl::Fixed(Init::Constant(value)), Some(at)) =
            (&dtype, &init, table.get("init"))
            && !dtype.has_value_of_class(*value)
        {
            self.found.push(no_such_value(*value, *dtype, &self.place(at.span())));
        }
        TensorDecl { name, role, dtype, shape, strides, align, init }
    }

    fn init(&mut self, value: &Spanned<DeValue<'_>>) -> Option<InitDecl> {
        let Some(table) = value.get_ref().as_table() else {
            return Some(InitDecl::Fixed(match value.get_ref().as_str()? {
                "uniform" => Init::Uniform,
                "normal" => Init::Normal,
                "positive" => Init::Positive,
                "one_hot" => Init::OneHot,
                _ => Init::Auto,
            }));
        };
        if table.len() != 1 {
            self.wrong(
                "manifest.length",
                "`init` must state exactly one way to draw values".into(),
                value.span(),
                "one of `range`, `permutation`, `offsets`, `constant`",
            );
            return None;
        }
        if table.contains_key("range") {
            let bounds = self.exprs(table, "range", Want::Float);
            return <[_; 2]>::try_from(bounds).ok().map(|[a, b]| InitDecl::Range(a, b));
        }
        if let Some(n) = self.expr_of(table, "permutation", Want::Int) {
            return Some(InitDecl::Permutation(n));
        }
        if let Some(total) = self.expr_of(table, "offsets", Want::Int) {
            return Some(InitDecl::Offsets(total));
        }
        match self.scalar_or_constant(table.get("constant")?)? {
            Scalar::Bool(_) => None,
            number => Some(InitDecl::Fixed(Init::Constant(number.as_f64()))),
        }
    }

    fn reference(&mut self, value: &Spanned<DeValue<'_>>) -> Option<(Reference, Option<TorchDecl>)> {
        let table = value.get_ref().as_table().filter(|table| table.contains_key("torch"));
        match table {
            Some(table) => self.torch_reference(table).map(|(reference, decl)| (reference, Some(decl))),
            None => self.plain_reference(value).map(|reference| (reference, None)),
        }
    }

    fn plain_reference(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Reference> {
        if let Some(table) = value.get_ref().as_table() {
            let names =
                self.named(table, "names").into_iter().filter_map(|(k, v)| Some((k.value, self.string(v)?.value)));
            let names = names.collect();
            let rest = self.keys(table).into_iter().filter(|(k, _)| !matches!(k.as_str(), "builtin" | "names"));
            let attributes = rest.filter_map(|(k, v)| Some((k.value, json(v.get_ref())?))).collect();
            return Some(Reference::Builtin { name: self.text(table, "builtin")?.value, attributes, names });
        }
        let text = self.string(value)?;
        if let Some(name) = text.value.strip_prefix("builtin:") {
            if name.is_empty() {
                self.wrong("manifest.reference", "`builtin:` names nothing".into(), text.place.span, "`builtin:name`");
                return None;
            }
            return Some(Reference::Builtin { name: name.into(), attributes: BTreeMap::new(), names: BTreeMap::new() });
        }
        if !text.value.contains("::") {
            let error = text.place.error("manifest.reference", format!("`{text}` is not a reference"));
            let is_name = text.value.chars().all(|c| c.is_alphanumeric() || c == '_');
            let hint = match is_name {
                true => format!("for a built-in operator write `builtin:{text}`"),
                false => "a formula is `{ builtin = \"elementwise\", OUTPUT = \"FORMULA\" }`".into(),
            };
            let expected = "`builtin:name`, `file.py::function` or `file.cpp::function`";
            self.found.push(error.expected(expected).hint(hint));
            return None;
        }
        let (file, function) = self.function(&text, &[".py", ".cpp", ".cc"])?;
        Some(if file.ends_with(".py") {
            Reference::Python { file, function }
        } else {
            Reference::Cpp { file, function }
        })
    }

    fn compare(&mut self, table: &DeTable<'_>, operator: &Operator) -> BTreeMap<String, Compare> {
        let Some(value) = table.get("compare") else { return BTreeMap::new() };
        let written: Vec<&str> = operator.written().map(|t| t.name.as_str()).collect();
        let by_tensor = value.get_ref().as_table().filter(|t| !t.contains_key("argmax_of"));
        let mut out = BTreeMap::new();
        let Some(by_tensor) = by_tensor else {
            if let Some(compare) = self.comparison(value, operator) {
                out.extend(written.iter().map(|name| (name.to_string(), compare.clone())));
            }
            return out;
        };
        for (name, value) in self.keys(by_tensor) {
            if !written.contains(&name.as_str()) {
                let error = name.place.error("manifest.unknown-tensor", format!("`{name}` is not a written tensor"));
                self.found.push(
                    error
                        .expected(format!("one of {}", list(&written)))
                        .suggest(&name.value, written.iter().copied().chain(["argmax_of"])),
                );
            } else if let Some(compare) = self.comparison(value, operator) {
                out.insert(name.value, compare);
            }
        }
        out
    }

    /// The written tensors that are declared undecidable, each once.
    fn undecidable(&mut self, verify: &DeTable<'_>, operator: &Operator) -> Vec<Text> {
        let written: Vec<&str> = operator.written().map(|t| t.name.as_str()).collect();
        let mut out: Vec<Text> = vec![];
        for name in self.texts(verify, "undecidable") {
            if !written.contains(&name.as_str()) {
                let error = name.place.error("manifest.unknown-tensor", format!("`{name}` is not a written tensor"));
                let error = error.expected(format!("one of {}", list(&written)));
                self.found.push(error.suggest(&name.value, written.iter().copied()));
            } else if out.iter().any(|other| other.value == name.value) {
                let message = format!("`undecidable` lists `{name}` twice");
                self.wrong("manifest.duplicate-name", message, name.place.span.clone(), "each tensor once");
            } else {
                out.push(name);
            }
        }
        out
    }

    fn comparison(&mut self, value: &Spanned<DeValue<'_>>, operator: &Operator) -> Option<Compare> {
        if let Some(table) = value.get_ref().as_table() {
            let of = self.text(table, "argmax_of")?;
            let read: Vec<&str> =
                operator.tensors.iter().filter(|t| t.role != Role::Output).map(|t| t.name.as_str()).collect();
            if !read.contains(&of.as_str()) {
                let error = of.place.error("manifest.unknown-tensor", format!("no input is called `{of}`"));
                self.found.push(error.expected(format!("one of {}", list(&read))).suggest(&of.value, read));
            }
            return Some(Compare::ArgmaxOf(of.value));
        }
        let text = self.string(value)?;
        match text.as_str() {
            "elements" => Some(Compare::Elements),
            "unordered" => Some(Compare::Unordered),
            other if other.contains("::") => {
                self.function(&text, &[".py"]).map(|(file, function)| Compare::Python(file, function))
            }
            other => {
                let error = text.place.error("manifest.value", format!("`{other}` is not a comparison"));
                self.found.push(
                    error
                        .expected("`elements`, `unordered`, `{ argmax_of = \"x\" }` or `file.py::function`")
                        .suggest(other, ["elements", "unordered"]),
                );
                None
            }
        }
    }
}

/// Whether a mistake that was already reported hides names that the operator declares.
fn incomplete(table: &DeTable<'_>) -> bool {
    let dims = table
        .get("dims")
        .is_some_and(|v| v.get_ref().as_array().is_none_or(|a| a.iter().any(|d| !d.get_ref().is_str())));
    let tables = ["derived", "types", "inputs", "inouts", "outputs", "params"];
    let not_tables = tables.iter().any(|key| table.contains_key(*key) && sub(table, key).is_none());
    let entries = tables[2..].iter().filter_map(|key| sub(table, key)).flat_map(|t| t.values());
    dims || not_tables || strange(&OPERATOR, table) || entries.into_iter().any(|v| !v.get_ref().is_table())
}

/// An attribute as JSON. None for a value that cannot be an attribute; the structural check has refused it.
fn json(value: &DeValue<'_>) -> Option<serde_json::Value> {
    Some(match value {
        DeValue::String(s) => s.as_ref().into(),
        DeValue::Integer(_) => super::read::integer(value)?.into(),
        DeValue::Float(f) => f.as_str().parse::<f64>().ok().filter(|f| f.is_finite())?.into(),
        DeValue::Boolean(b) => (*b).into(),
        DeValue::Array(items) => items.iter().filter_map(|v| json(v.get_ref())).collect(),
        DeValue::Datetime(_) | DeValue::Table(_) => return None,
    })
}
