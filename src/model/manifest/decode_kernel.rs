//! Kernels as the manifest states them: tunables, launches, methods, selection, compilation. Names of other tables are checked by `validate`.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::{misspelt, strange};
use super::fields::{KERNEL, LAUNCH};
use super::read::{Reader, integer, sub};
use crate::base::diag::closest;
use crate::model::bound::Fill;
use crate::model::expr::Want;
use crate::model::kernel::{
    ArgDecl, BufferDecl, Compiler, DefineValue, Kernel, Language, LaunchAction, LaunchDecl, Metric, Per, Select,
};
use crate::model::method::{Axis, Method, OffDecl, SassPatterns};
use crate::model::operator::TypeRef;
use crate::model::target::Arch;
use crate::model::variant::TuneValue;
use crate::model::{DType, Place, Text};

impl Reader<'_> {
    pub(super) fn kernel(&mut self, name: Text, table: &DeTable<'_>) -> Kernel {
        let touched =
            self.touched(table) || self.found.iter().flat_map(|d| &d.labels).any(|l| l.span == name.place.span);
        let errors = self.errors();
        let mut uses = vec![];
        let stated = |text: Option<Text>| text.unwrap_or(Text { value: String::new(), place: name.place.clone() });
        let (operator, source) = (stated(self.text(table, "operator")), stated(self.text(table, "source")));
        let targets = self.texts(table, "targets");
        let workspace = self.buffers(table, &mut uses);
        let launches = self.launches(table, &mut uses);
        let tune = self.tune(table);
        let mut kernel = Kernel {
            requires: self.exprs(table, "requires", Want::Bool),
            conditions: sub(table, "tune").map(|t| self.exprs(t, "where", Want::Bool)).unwrap_or_default(),
            methods: self.methods(table),
            select: self.select(table),
            defines: self.defines_of(table),
            language: Language::Cuda,
            operator: operator.value,
            operator_place: operator.place,
            source_place: source.place.clone(),
            target_places: targets.iter().map(|t| t.place.clone()).collect(),
            targets: targets.into_iter().map(|t| t.value).collect(),
            compiler: match self.text(table, "compiler").as_ref().map(Text::as_str) {
                Some("nvrtc") => Compiler::Nvrtc,
                Some("nvcc") => Compiler::Nvcc,
                _ => Compiler::Auto,
            },
            std: self.text(table, "std").map(|t| t.value),
            include: self.strings(table, "include"),
            flags: self.strings(table, "flags"),
            constants: self
                .named(table, "constants")
                .into_iter()
                .filter_map(|(k, v)| Some((k, self.string(v)?)))
                .collect(),
            source: source.value.clone(),
            name: name.value,
            place: name.place,
            tune,
            launches,
            workspace,
            type_uses: uses,
            partial: strange(&KERNEL, table)
                || ["tune", "workspace"].iter().any(|k| table.contains_key(*k) && sub(table, k).is_none()),
            broken: false,
        };
        if table.contains_key("source") {
            self.inside(&source);
        }
        for include in self.texts(table, "include") {
            self.inside(&include);
        }
        if table.contains_key("targets") && kernel.targets.is_empty() {
            self.wrong(
                "manifest.length",
                format!("kernel `{}` is for no target", kernel.name),
                kernel.place.span.clone(),
                "at least one target, or no `targets` for all",
            );
        }
        kernel.broken = touched || self.errors() > errors;
        kernel
    }

    fn tune(&mut self, table: &DeTable<'_>) -> Vec<(Text, Vec<TuneValue>)> {
        let mut out = vec![];
        for (name, value) in self.named(table, "tune") {
            if name.as_str() == "where" {
                continue;
            }
            let items: Vec<_> = value.get_ref().as_array().into_iter().flat_map(|a| a.iter()).collect();
            // A condition under a misspelt `where` would pass for a tunable of one string.
            if items.iter().all(|v| v.get_ref().is_str()) && closest(name.as_str(), ["where"]).is_some() {
                let error = name.place.error("manifest.unknown-key", format!("`{name}` is not a tunable"));
                self.found
                    .push(error.expected("`where`, or a tunable of another name").suggest(&name.value, ["where"]));
                continue;
            }
            let mut values: Vec<TuneValue> = vec![];
            for item in items {
                let Some(read) = tune_value(item.get_ref()) else { continue };
                if values.first().is_some_and(|first| first.kind() != read.kind()) {
                    self.wrong(
                        "manifest.kind",
                        format!("`{name}` mixes kinds: `{read}` is {}", read.kind()),
                        item.span(),
                        "values of one kind",
                    );
                } else if values.contains(&read) {
                    self.wrong(
                        "manifest.duplicate-name",
                        format!("`{name}` lists `{read}` twice"),
                        item.span(),
                        "each value once",
                    );
                } else if matches!(&read, TuneValue::Str(s) if s.is_empty() || s.contains([',', '=', '/'])) {
                    self.wrong(
                        "manifest.value",
                        format!("`{read}` cannot be part of a variant's name"),
                        item.span(),
                        "a string without `,`, `=` and `/`",
                    );
                } else {
                    values.push(read);
                }
            }
            if matches!(name.as_str(), "flags" | "source") {
                self.wrong(
                    "manifest.name",
                    format!("`{name}` is reserved"),
                    name.place.span.clone(),
                    "a name that means nothing else in `off`",
                );
            }
            out.push((name, values));
        }
        out
    }

    /// A dtype, or the name of a type of an operator that is not known here.
    fn type_use(&mut self, text: Text, uses: &mut Vec<Text>) -> TypeRef {
        match text.value.parse::<DType>() {
            Ok(dtype) => TypeRef::Fixed(dtype),
            Err(()) => {
                let named = TypeRef::Named(text.value.clone());
                uses.push(text);
                named
            }
        }
    }

    fn buffers(&mut self, table: &DeTable<'_>, uses: &mut Vec<Text>) -> Vec<BufferDecl> {
        let mut out = vec![];
        for (name, value) in self.named(table, "workspace") {
            let Some(inner) = value.get_ref().as_table() else { continue };
            self.identifier(&name);
            let dtype = self.text(inner, "dtype").map_or(TypeRef::Fixed(DType::F32), |t| self.type_use(t, uses));
            let fill = match self.text(inner, "init").as_ref().map(Text::as_str) {
                Some("zero") => Fill::Zero,
                Some("zero-once") => Fill::ZeroOnce,
                _ => Fill::Poison,
            };
            let shape = self.exprs(inner, "shape", Want::Int);
            out.push(BufferDecl { name, dtype, shape, fill });
        }
        out
    }

    fn launches(&mut self, table: &DeTable<'_>, uses: &mut Vec<Text>) -> Vec<LaunchDecl> {
        let list = table.get("launch").and_then(|v| v.get_ref().as_array());
        let mut out = vec![];
        for item in list.into_iter().flat_map(|a| a.iter()) {
            let Some(inner) = item.get_ref().as_table() else { continue };
            let place = self.launch_place(inner, item);
            let (when, repeat) = (self.expr_of(inner, "when", Want::Bool), self.expr_of(inner, "repeat", Want::Int));
            if let Some(action) = self.action(inner, &place, uses) {
                out.push(LaunchDecl { place, when, repeat, action });
            }
        }
        out
    }

    /// The header of `[[launch]]`, or the entry of an inline one.
    fn launch_place(&self, table: &DeTable<'_>, item: &Spanned<DeValue<'_>>) -> Place {
        let inner = self.text(table, "entry").or_else(|| self.text(table, "memset"));
        inner.map_or_else(|| self.place(item.span()), |t| t.place)
    }

    fn action(&mut self, table: &DeTable<'_>, place: &Place, uses: &mut Vec<Text>) -> Option<LaunchAction> {
        let memset = self.text(table, "memset");
        let beside = |key: &str| {
            if memset.is_some() {
                matches!(key, "entry" | "grid" | "block" | "shared" | "args")
            } else {
                key == "value"
            }
        };
        for (key, _) in self.keys(table).into_iter().filter(|(k, _)| beside(k.as_str())) {
            let (kind, expected) = if memset.is_some() {
                ("a memset", "`memset`, `value`, `when`, `repeat`")
            } else {
                ("a launch of an entry", "`args` for arguments; `value` is a memset's")
            };
            self.wrong("manifest.conflict", format!("{kind} has no `{key}`"), key.place.span.clone(), expected);
        }
        if let Some(buffer) = memset {
            let value = match table.get("value") {
                None => Some(0),
                Some(value) => {
                    let byte = integer(value.get_ref()).and_then(|v| u8::try_from(v).ok());
                    if byte.is_none() && value.get_ref().is_integer() {
                        self.wrong("manifest.value", "this is not a byte".into(), value.span(), "0 to 255");
                    }
                    byte
                }
            };
            return Some(LaunchAction::Memset { buffer, value: value? });
        }
        for (key, what) in
            [("entry", "the function to launch"), ("grid", "blocks along x, y, z"), ("block", "threads along x, y, z")]
        {
            if !table.contains_key(key) && !misspelt(&LAUNCH, table, key) {
                self.wrong(
                    "manifest.missing-key",
                    format!("a launch lacks `{key}`"),
                    place.span.clone(),
                    &format!("`{key}`: {what}"),
                );
            }
        }
        let entry = self.text(table, "entry")?;
        if entry.value.trim().is_empty() {
            self.wrong(
                "manifest.value",
                "the entry is empty".into(),
                entry.place.span.clone(),
                "a function or a template instance",
            );
        }
        let (grid, block) = (self.exprs(table, "grid", Want::Int), self.exprs(table, "block", Want::Int));
        let shared = self.expr_of(table, "shared", Want::Int);
        let args = table.get("args").and_then(|v| v.get_ref().as_array());
        let args = args.into_iter().flat_map(|a| a.iter()).filter_map(|v| self.arg(v, uses)).collect();
        Some(LaunchAction::Kernel { entry, grid, block, shared, args })
    }

    fn arg(&mut self, value: &Spanned<DeValue<'_>>, uses: &mut Vec<Text>) -> Option<ArgDecl> {
        let Some(table) = value.get_ref().as_table() else {
            return self.expr(value, Want::Any).map(ArgDecl::Plain);
        };
        let forms = ["value", "ptr", "struct", "pointers"];
        let stated: Vec<&str> = forms.into_iter().filter(|f| table.contains_key(*f)).collect();
        let [form] = stated.as_slice() else {
            let later = ["tensormap", "box", "swizzle", "oob"].iter().any(|k| table.contains_key(*k));
            if !later {
                self.wrong(
                    "manifest.arg",
                    format!("an argument states {} of its forms", stated.len()),
                    value.span(),
                    "one of `value`, `ptr`, `struct`, `pointers`",
                );
            }
            return None;
        };
        for (key, of) in [("dtype", "value"), ("offset", "ptr")] {
            if let Some((at, _)) = table.get_key_value(key)
                && *form != of
            {
                self.wrong(
                    "manifest.conflict",
                    format!("`{key}` goes with `{of}`, not with `{form}`"),
                    at.span(),
                    "keys of one form of argument",
                );
            }
        }
        match *form {
            "value" => {
                let Some(dtype) = self.text(table, "dtype") else {
                    return self.expr_of(table, "value", Want::Any).map(ArgDecl::Plain);
                };
                let dtype = self.type_use(dtype, uses);
                self.expr_of(table, "value", want_of(&dtype)).map(|value| ArgDecl::Value { value, dtype })
            }
            "ptr" => {
                let offset = self.expr_of(table, "offset", Want::Int);
                self.text(table, "ptr").map(|buffer| ArgDecl::Ptr { buffer, offset })
            }
            "pointers" => Some(ArgDecl::Pointers(self.texts(table, "pointers"))),
            _ => {
                let fields = self.texts(table, "struct");
                Some(ArgDecl::Struct(fields.into_iter().filter_map(|f| self.field(&f, uses)).collect()))
            }
        }
    }

    /// `M:i32`, or `M` alone.
    fn field(&mut self, text: &Text, uses: &mut Vec<Text>) -> Option<(crate::model::expr::Expr, Option<TypeRef>)> {
        let (value, dtype) = match text.value.rsplit_once(':') {
            Some((value, dtype)) => {
                let at = text.value.len() - dtype.len();
                let place = text.place.within(&text.value, at..text.value.len());
                (value, Some(self.type_use(Text { value: dtype.trim().into(), place }, uses)))
            }
            None => (text.as_str(), None),
        };
        // The place is that of the whole string, in which the expression is found again by its text.
        let parsed =
            crate::model::expr::Expr::parse(value, dtype.as_ref().map_or(Want::Any, want_of), text.place.clone());
        self.keep(parsed).map(|expr| (expr, dtype))
    }

    fn methods(&mut self, table: &DeTable<'_>) -> Vec<Method> {
        let mut out = vec![];
        for (name, value) in self.named(table, "methods") {
            let Some(inner) = value.get_ref().as_table() else { continue };
            let Some(axis) = Axis::of(&name.value) else {
                let error = name.place.error("manifest.method", format!("`{name}` is not the name of a method"));
                let error = error.expected(
                    "an axis and a name, as `\"memory.vectorized_access\"`; axes are `compute`, `memory`, `latency`",
                );
                self.found.push(error.hint("quote the name, as it holds a dot").suggest(
                    name.value.split('.').next().unwrap_or_default(),
                    ["compute", "memory", "latency"].into_iter().filter(|a| !name.value.starts_with(a)),
                ));
                continue;
            };
            let (mut sass, mut sass_by_arch) = (None, BTreeMap::new());
            if let Some(patterns) = sub(inner, "sass") {
                sass = self.patterns(patterns);
                for (arch, value) in self
                    .keys(patterns)
                    .into_iter()
                    .filter(|(k, _)| !matches!(k.as_str(), "any" | "all" | "forbid" | "count"))
                {
                    if !matches!(Arch::parse(&arch.value), Some(Arch::Sm(_))) {
                        let error = arch.place.error("manifest.unknown-key", format!("unknown key `{arch}` in `sass`"));
                        self.found.push(
                            error
                                .expected("one of `all`, `any`, `count`, `forbid`, or an architecture such as `sm_90a`")
                                .suggest(&arch.value, ["any", "all", "forbid", "count"]),
                        );
                    } else if let Some(found) = value.get_ref().as_table().and_then(|t| self.patterns(t)) {
                        sass_by_arch.insert(arch.value, found);
                    }
                }
            }
            let off = sub(inner, "off").map(|t| self.off(t));
            out.push(Method { id: name.value, place: name.place, axis, off, sass, sass_by_arch });
        }
        out
    }

    fn off(&mut self, table: &DeTable<'_>) -> OffDecl {
        let mut off = OffDecl { flags: self.strings(table, "flags"), ..OffDecl::default() };
        if let Some(source) = self.text(table, "source") {
            self.inside(&source);
            off.source = Some(source.value);
        }
        for (key, value) in self.keys(table).into_iter().filter(|(k, _)| !matches!(k.as_str(), "flags" | "source")) {
            if let Some(read) = tune_value(value.get_ref()) {
                off.values.push((key, read));
            }
        }
        off
    }

    fn patterns(&mut self, table: &DeTable<'_>) -> Option<SassPatterns> {
        let lists = ["any", "all", "forbid"].map(|key| {
            let texts = self.texts(table, key);
            for text in &texts {
                self.pattern(text);
            }
            texts.into_iter().map(|t| t.value).collect::<Vec<_>>()
        });
        let mut count = BTreeMap::new();
        for (pattern, value) in self.named(table, "count") {
            self.pattern(&pattern);
            match integer(value.get_ref()).and_then(|n| u64::try_from(n).ok()) {
                Some(n) => {
                    count.insert(pattern.value, n);
                }
                None => self.wrong(
                    "manifest.value",
                    format!("`{pattern}` cannot occur so often"),
                    value.span(),
                    "a count, 0 or more",
                ),
            }
        }
        let [any, all, forbid] = lists;
        let patterns = SassPatterns { any, all, forbid, count };
        (patterns != SassPatterns::default()).then_some(patterns)
    }

    fn pattern(&mut self, text: &Text) {
        if let Err(error) = regex::Regex::new(&text.value) {
            let why = error.to_string();
            let last = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_string();
            self.wrong(
                "manifest.regex",
                format!("`{text}` is not a regular expression: {last}"),
                text.place.span.clone(),
                "a regular expression over opcodes, as `LDG\\.E\\.128`",
            );
        }
    }

    fn select(&mut self, table: &DeTable<'_>) -> Select {
        let Some(inner) = sub(table, "select") else { return Select::default() };
        let metric = match self.text(inner, "metric").as_ref().map(Text::as_str) {
            Some("hot") => Metric::Hot,
            _ => Metric::Cold,
        };
        let per = match self.text(inner, "per").as_ref().map(Text::as_str) {
            None | Some("all") => Per::All,
            Some("shape") => Per::Shape,
            Some(_) => self.expr_of(inner, "per", Want::Any).map_or(Per::All, Per::Value),
        };
        Select { per, metric }
    }

    fn defines_of(&mut self, table: &DeTable<'_>) -> Vec<(String, DefineValue)> {
        let mut out = vec![];
        for (name, value) in self.named(table, "defines") {
            self.identifier(&name);
            match tune_value(value.get_ref()) {
                Some(TuneValue::Str(text)) => out.push((name.value, DefineValue::Text(text))),
                Some(plain) => out.push((name.value, DefineValue::Plain(plain))),
                None => {}
            }
        }
        out
    }
}

fn tune_value(value: &DeValue<'_>) -> Option<TuneValue> {
    match value {
        DeValue::Boolean(b) => Some(TuneValue::Bool(*b)),
        DeValue::String(s) => Some(TuneValue::Str(s.to_string())),
        DeValue::Integer(_) => integer(value).map(TuneValue::Int),
        _ => None,
    }
}

/// What an expression for a scalar of this type must give. A type that stands for several may be a float.
fn want_of(dtype: &TypeRef) -> Want {
    match dtype {
        TypeRef::Fixed(DType::Bool) => Want::Bool,
        TypeRef::Fixed(dtype) if !dtype.is_float() => Want::Int,
        _ => Want::Float,
    }
}
