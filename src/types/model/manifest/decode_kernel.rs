//! Reads kernels: tunables, methods, selection, compilation. Launches are in `decode_launch`. `validate` checks names of other tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::check::{Check, misspelt, strange_for};
use super::decode_search::TUNE_KEYS;
use super::fields::{KERNEL, TEMPLATE};
use super::read::{Reader, integer, sub};
use crate::model::agent::RULES;
use crate::model::bound::Fill;
use crate::model::expr::Want;
use crate::model::generate::Generate;
use crate::model::kernel::{BufferDecl, Compiler, DefineValue, Kernel, Language, Metric, Per, Sanitizer, Select};
use crate::model::method::{Axis, Method, OffDecl, SassPatterns, Signature, is_word};
use crate::model::operator::TypeRef;
use crate::model::target::Arch;
use crate::model::variant::TuneValue;
use crate::model::{DType, Text};
use kforge_foundation::base::diag::closest;
use kforge_foundation::base::{Diagnostic, SourceFile};

impl Reader<'_> {
    pub(super) fn kernel(&mut self, name: Text, table: &DeTable<'_>) -> Kernel {
        self.made_one_way(&name, table);
        self.declaration(name, table, None)
    }

    /// Reads the table of a kernel or of a template, with whichever keys it may have. A kernel states its language; that of a template is given.
    fn declaration(&mut self, name: Text, table: &DeTable<'_>, language: Option<Language>) -> Kernel {
        let touched =
            self.touched(table) || self.found.iter().flat_map(|d| &d.labels).any(|l| l.span == name.place.span);
        let errors = self.errors();
        let mut uses = vec![];
        let stated = |text: Option<Text>| text.unwrap_or(Text { value: String::new(), place: name.place.clone() });
        let (operator, own) = (stated(self.text(table, "operator")), self.text(table, "source"));
        let language = match language {
            Some(language) => {
                self.of_language(&name, table, language);
                language
            }
            None => self.language(&name, table),
        };
        let (torch, called) = match language {
            Language::Torch => self.candidate(table).unzip(),
            Language::Cuda | Language::Triton => (None, None),
        };
        let (host, hosted) = match language {
            Language::Torch => (None, None),
            Language::Cuda | Language::Triton => self.host(&name, table, own.as_ref()).unzip(),
        };
        let source = stated(called.or(own).or(hosted));
        let targets = self.texts(table, "targets");
        let workspace = self.buffers(table, &mut uses);
        let launches = self.launches(table, language, &mut uses);
        let tune = self.tune(table);
        let search = self.search(table);
        let hints = self.hints(table, &tune);
        let specialize = self.specialize(table, language);
        let mut requires = self.exprs(table, "requires", Want::Bool);
        requires.extend(self.specialized(&specialize));
        let mut kernel = Kernel {
            requires,
            conditions: sub(table, "tune").map(|t| self.exprs(t, "where", Want::Bool)).unwrap_or_default(),
            methods: self.methods(table),
            select: self.select(table),
            sanitize: self.sanitize(table),
            defines: self.defines_of(table),
            language,
            specialize,
            torch,
            operator: operator.value,
            operator_place: operator.place,
            source_place: source.place.clone(),
            generate: sub(table, "generate")
                .and_then(|t| self.text(t, "template"))
                .map(|template| Generate { template, made: None }),
            rounds: self.rounds(table),
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
            search,
            hints,
            launches,
            host,
            workspace,
            type_uses: uses,
            partial: strange_for(&KERNEL, table, &["tune", "workspace"])
                || ["tune", "workspace"].iter().any(|k| table.contains_key(*k) && sub(table, k).is_none()),
            broken: false,
        };
        // That of a kernel in PyTorch was looked at with what it names.
        if table.contains_key("source") && language != Language::Torch {
            self.inside(&source);
        }
        if let Some(generate) = &kernel.generate {
            self.inside(&generate.template);
        }
        for include in self.texts(table, "include") {
            self.inside(&include);
        }
        if table.contains_key("targets") && kernel.targets.is_empty() {
            self.wrong(
                "manifest.length",
                format!("kernel `{}` has no target", kernel.name),
                kernel.place.span.clone(),
                "at least one target, or no `targets` for all",
            );
        }
        kernel.broken = touched || self.errors() > errors;
        kernel
    }

    /// Checks that a kernel has exactly one origin: a source and launches, its own launcher, a template that generates both, or an agent that writes it from
    /// nothing.
    fn made_one_way(&mut self, name: &Text, table: &DeTable<'_>) {
        if table.contains_key("host") {
            return;
        }
        let own = ["source", "launch", "workspace", "constants"];
        let generate = sub(table, "generate");
        if generate.is_some_and(|g| g.contains_key("template")) || generate.is_some_and(|g| g.is_empty()) {
            for key in own {
                if let Some((at, _)) = table.get_key_value(key) {
                    let message = format!("kernel `{name}` is made by a template and states `{key}`");
                    self.wrong("manifest.conflict", message, at.span(), "either a template, or your own kernel");
                }
            }
        }
        if generate.is_some_and(|g| g.is_empty()) {
            let message = format!("`generate` of kernel `{name}` names neither a template nor an agent");
            self.wrong("manifest.missing-key", message, name.place.span.clone(), "`template`, `agent`, or both");
        }
        let agent = generate.and_then(|g| self.text(g, "agent"));
        let begins = own.iter().any(|key| table.contains_key(*key));
        if table.contains_key("generate") && (!begins || generate.is_none_or(|g| !g.contains_key("agent"))) {
            if let Some(agent) = agent.filter(|a| a.value == RULES)
                && generate.is_some_and(|g| !g.contains_key("template"))
            {
                let message = format!("`rules` cannot write a kernel, and `{name}` has none to start from");
                let error = agent.place.error("manifest.missing-key", message);
                self.found.push(error.expected("a `template` as well, or your own `source` and launches"));
            }
            return;
        }
        let in_torch = self.text(table, "language").is_some_and(|text| text.value == Language::Torch.to_string());
        let needed = [("source", "its source file, relative to the package"), ("launch", "launches in order")];
        for (key, what) in needed.into_iter().take(if in_torch { 1 } else { 2 }) {
            if !table.contains_key(key) && !misspelt(&KERNEL, table, key) && !misspelt(&KERNEL, table, "generate") {
                let message = format!("`kernel.{name}` lacks `{key}`");
                let error = name.place.error("manifest.missing-key", message).expected(format!("`{key}`: {what}"));
                self.found.push(error.hint(format!(
                    "add `{key} = ...`, or `generate = {{ template = \"...\" }}` for a generated kernel"
                )));
            }
        }
    }

    fn tune(&mut self, table: &DeTable<'_>) -> Vec<(Text, Vec<TuneValue>)> {
        let mut out = vec![];
        for (name, value) in self.named(table, "tune") {
            if TUNE_KEYS.contains(&name.as_str()) {
                continue;
            }
            let items: Vec<_> = value.get_ref().as_array().into_iter().flat_map(|a| a.iter()).collect();
            // A condition under a misspelt `where` would look like a tunable with one string.
            if items.iter().any(|v| v.get_ref().as_str().is_some_and(is_condition))
                && closest(name.as_str(), ["where"]).is_some()
            {
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
                } else if matches!(&read, TuneValue::Str(s) if s.is_empty() || s.contains(no_part_of_names)) {
                    self.wrong(
                        "manifest.value",
                        format!("`{}` cannot be part of a variant's name", read.to_string().escape_debug()),
                        item.span(),
                        "a string without `,`, `=`, `/` and control characters",
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

    /// A dtype, or the name of a type of an operator. The operator is not known here.
    pub(super) fn type_use(&mut self, text: Text, uses: &mut Vec<Text>) -> TypeRef {
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

    fn methods(&mut self, table: &DeTable<'_>) -> Vec<Method> {
        let mut out = vec![];
        for (name, value) in self.named(table, "methods") {
            let Some(inner) = value.get_ref().as_table() else { continue };
            let Some(axis) = self.axis(&name, inner) else { continue };
            let mut signature = Signature::default();
            if let Some(patterns) = sub(inner, "sass") {
                signature.common = self.patterns(patterns);
                for (arch, value) in self
                    .keys(patterns)
                    .into_iter()
                    .filter(|(k, _)| !matches!(k.as_str(), "any" | "all" | "forbid" | "count" | "fewer"))
                {
                    if !matches!(Arch::parse(&arch.value), Ok(Arch::Sm(_))) {
                        let error = arch.place.error("manifest.unknown-key", format!("unknown key `{arch}` in `sass`"));
                        self.found.push(
                            error
                                .expected("one of `all`, `any`, `count`, `fewer`, `forbid`, or an architecture such as `sm_90a`")
                                .suggest(&arch.value, ["any", "all", "forbid", "count", "fewer"]),
                        );
                    } else if let Some(found) = value.get_ref().as_table().and_then(|t| self.patterns(t)) {
                        signature.by_arch.insert(arch.value, found);
                    }
                }
            }
            let off = sub(inner, "off").map(|t| self.off(t));
            let on = sub(inner, "on").map(|t| self.on(t)).unwrap_or_default();
            out.push(Method { id: name.value, place: name.place, axis, on, off, signature });
        }
        out
    }

    /// The axis of a method: the first part of its name or, if its name begins with no axis, the one that its table states.
    fn axis(&mut self, name: &Text, table: &DeTable<'_>) -> Option<Axis> {
        let named = Axis::of(&name.value);
        let stated =
            self.text(table, "axis").map(|text| (Axis::ALL.into_iter().find(|a| a.name() == text.as_str()), text));
        match (named, stated) {
            // A word that is not an axis has been reported with the table's keys.
            (Some(axis), None | Some((None, _))) => Some(axis),
            (None, Some((None, _))) => None,
            (Some(axis), Some((Some(stated), _))) if axis == stated => Some(axis),
            (Some(axis), Some((Some(_), text))) => {
                self.found.push(
                    text.place
                        .error("manifest.method", format!("`{name}` cannot have the axis `{text}`"))
                        .expected(format!("the axis its name begins with, `{}`, or no `axis`", axis.name())),
                );
                None
            }
            (None, Some((axis, _))) if is_word(&name.value) => axis,
            (None, _) => {
                let error = name.place.error("manifest.method", format!("`{name}` is not the name of a method"));
                let error = error.expected(
                    "an axis and a name, as `\"memory.vectorized_access\"`, or a name and its `axis`; axes are `compute`, `memory`, `latency`",
                );
                self.found.push(error.hint("quote the name if it holds a dot").suggest(
                    name.value.split('.').next().unwrap_or_default(),
                    Axis::ALL.into_iter().map(Axis::name).filter(|a| !name.value.starts_with(a)),
                ));
                None
            }
        }
    }

    fn on(&mut self, table: &DeTable<'_>) -> Vec<(Text, Vec<TuneValue>)> {
        let values = |value: &DeValue<'_>| match value.as_array() {
            Some(list) => list.iter().filter_map(|one| tune_value(one.get_ref())).collect(),
            None => tune_value(value).into_iter().collect(),
        };
        self.keys(table).into_iter().map(|(key, value)| (key, values(value.get_ref()))).collect()
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
        let lists = ["any", "all", "forbid", "fewer"].map(|key| {
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
        let [any, all, forbid, fewer] = lists;
        let patterns = SassPatterns { any, all, forbid, count, fewer };
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
        let Some(inner) = sub(table, "select") else {
            // The only word is `one`; others have been reported with the table's keys.
            let all = Select::default();
            return if self.text(table, "select").is_some() { Select { classes: 1, ..all } } else { all };
        };
        let metric = match self.text(inner, "metric").as_ref().map(Text::as_str) {
            Some("hot") => Metric::Hot,
            _ => Metric::Cold,
        };
        let per = match self.text(inner, "per").as_ref().map(Text::as_str) {
            None | Some("all") => Per::All,
            Some("shape") => Per::Shape,
            Some(_) => self.expr_of(inner, "per", Want::Any).map_or(Per::All, Per::Value),
        };
        if let (Per::Shape, Some((at, _))) = (&per, inner.get_key_value("classes")) {
            self.wrong(
                "manifest.conflict",
                "`classes` has no effect beside `per = \"shape\"`, which gives each shape its own class".into(),
                at.span(),
                "no `classes`, or another `per`",
            );
        }
        let classes = self.count(inner, "classes", 1..=i64::MAX);
        let classes = classes.map_or(Select::default().classes, |n| u32::try_from(n).unwrap_or(u32::MAX));
        Select { per, metric, classes }
    }

    /// The named sanitizers in the order of [`Sanitizer::ALL`], each once, because the order does not change the verification.
    fn sanitize(&self, table: &DeTable<'_>) -> Vec<Sanitizer> {
        let named = sub(table, "verify").map(|verify| self.strings(verify, "sanitize")).unwrap_or_default();
        Sanitizer::ALL.into_iter().filter(|tool| named.iter().any(|name| name == tool.name())).collect()
    }

    fn defines_of(&mut self, table: &DeTable<'_>) -> Vec<(String, DefineValue)> {
        let mut out = vec![];
        let mut tunables = sub(table, "tune").map(|t| self.keys(t)).unwrap_or_default();
        tunables.retain(|(key, _)| !TUNE_KEYS.contains(&key.as_str()));
        for (name, value) in self.named(table, "defines") {
            self.identifier(&name);
            if tunables.iter().any(|(tunable, _)| tunable.value == name.value) {
                let error =
                    name.place.error("manifest.defines", format!("`{name}` is a tunable, which is a macro already"));
                self.found.push(
                    error.expected("another name, or no `defines` of it").hint("`tune` says which values it takes"),
                );
            }
            match tune_value(value.get_ref()) {
                Some(TuneValue::Str(text)) => out.push((name.value, DefineValue::Text(text))),
                Some(plain) => out.push((name.value, DefineValue::Plain(plain))),
                None => {}
            }
        }
        out
    }
}

/// Reads what a template generated for an operator: the text of a `template.toml` after rendering. `name` is the name of the kernel, with its place in the
/// manifest, and `language` is the kernel's. Reports all errors at once, each at its place in `file`.
pub fn parse_template(file: &Arc<SourceFile>, name: &Text, language: Language) -> (Option<Kernel>, Vec<Diagnostic>) {
    let root = match DeTable::parse(&file.text) {
        Ok(root) => root,
        Err(error) => return (None, vec![super::decode::syntax(file, &error)]),
    };
    let mut check = Check { file, found: vec![] };
    check.table(&TEMPLATE, root.get_ref(), "", &(0..0));
    let mut reader = Reader { file, found: check.found };
    let kernel = reader.declaration(name.clone(), root.get_ref(), Some(language));
    for method in kernel.methods.iter().filter(|m| m.other_source().is_some()) {
        let message = format!("a template's method `{}` names another source", method.id);
        let error = method.place.error("manifest.conflict", message);
        reader.found.push(error.expected("other values of tunables or `flags`: a template has one source"));
    }
    (Some(kernel), reader.found)
}

/// Whether a string looks like an expression rather than a choice.
fn is_condition(text: &str) -> bool {
    text.contains([' ', '<', '>', '=', '%', '('])
}

/// Characters that a tunable's string must not contain. The first three separate the parts of variant names, and control characters would act on the terminal
/// that shows the names.
fn no_part_of_names(c: char) -> bool {
    matches!(c, ',' | '=' | '/') || c.is_control()
}

pub(super) fn tune_value(value: &DeValue<'_>) -> Option<TuneValue> {
    match value {
        DeValue::Boolean(b) => Some(TuneValue::Bool(*b)),
        DeValue::String(s) => Some(TuneValue::Str(s.to_string())),
        DeValue::Integer(_) => integer(value).map(TuneValue::Int),
        _ => None,
    }
}
