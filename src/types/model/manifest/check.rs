//! The structural check: every key is known, every value has the right kind, and every required key is present. Knows the field tables; does not know what
//! values mean.

use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fields::{ARG, OPERATOR, TOLERANCE};
use super::spec::{Spec, Ty};
use crate::model::DType;
use crate::model::expr::list;
use kforge_foundation::base::count;
use kforge_foundation::base::diag::closest;
use kforge_foundation::base::{Diagnostic, SourceFile, Span};

/// Collects structural errors.
pub(super) struct Check<'a> {
    pub(super) file: &'a Arc<SourceFile>,
    pub(super) found: Vec<Diagnostic>,
}

/// The entries of a table in the order of the file.
pub(super) fn entries<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t str, Span, &'t Spanned<DeValue<'i>>)> {
    let mut out: Vec<_> = table.iter().map(|(k, v)| (k.get_ref().as_ref(), k.span(), v)).collect();
    out.sort_by_key(|e| (e.1.start, e.1.end));
    out
}

impl Check<'_> {
    fn error(&mut self, code: &'static str, message: String, span: Span) -> &mut Diagnostic {
        self.found.push(Diagnostic::error(code, message).at(self.file, span, ""));
        let last = self.found.len() - 1;
        &mut self.found[last]
    }

    /// Checks the table at the path `name`, such as `operator.rms_norm`. The path of the whole file is empty.
    pub(super) fn table(&mut self, spec: &'static Spec, table: &DeTable<'_>, name: &str, span: &Span) {
        for (key, at, value) in entries(table) {
            let path = if name.is_empty() { key.to_string() } else { format!("{name}.{key}") };
            match (spec.fields.iter().find(|f| f.name == key), &spec.rest) {
                (Some(field), _) => self.value(&field.ty, value, &path, &at),
                (None, Some((_, ty))) if admits(ty, value.get_ref()) => self.value(ty, value, &path, &at),
                // A free key of the wrong kind is probably a misspelt fixed key.
                (None, Some((what, ty))) => match closest(key, spec.fields.iter().map(|f| f.name)) {
                    Some(_) => self.unknown(spec, table, key, name, at, what),
                    None => self.mismatch(ty, value, &path),
                },
                (None, None) => self.unknown(spec, table, key, name, at, ""),
            }
        }
        for field in
            spec.fields.iter().filter(|f| f.required && !table.contains_key(f.name) && !misspelt(spec, table, f.name))
        {
            let error = self.error("manifest.missing-key", format!("`{name}` lacks `{}`", field.name), span.clone());
            error.expected = Some(format!("`{}`: {}", field.name, field.doc));
            error.hints.push(format!("add `{} = ...`", field.name));
        }
    }

    fn unknown(&mut self, spec: &'static Spec, table: &DeTable<'_>, key: &str, name: &str, at: Span, rest: &str) {
        // Only overlays have seeds, so do not suggest `seeds` for a table that declares an operator.
        let declares = std::ptr::eq(spec, &OPERATOR) && table.contains_key("dims");
        let known: Vec<&str> =
            spec.fields.iter().map(|f| f.name).filter(|name| !(declares && *name == "seeds")).collect();
        let place = if name.is_empty() { "the manifest".into() } else { format!("`{name}`") };
        let meant = if std::ptr::eq(spec, &TOLERANCE) { elsewhere(key).unwrap_or(key) } else { key };
        let mut error = Diagnostic::error("manifest.unknown-key", format!("unknown key `{key}` in {place}"))
            .at(self.file, at, "")
            .expected(if rest.is_empty() {
                format!("one of {}", list(&known))
            } else {
                format!("one of {}, or a {rest}", list(&known))
            })
            .suggest(meant, known);
        // Earlier versions accepted this key and did nothing with it.
        if std::ptr::eq(spec, &OPERATOR) && key == "cost" {
            error.hints = vec![COST.into()];
        }
        if std::ptr::eq(spec, &ARG) && is_texture(key) {
            error = error.expected("an argument without a texture or surface");
            error.hints = vec![TEXTURE.into()];
        }
        self.found.push(error);
    }

    /// The error for a feature of a later version.
    pub(super) fn later(&mut self, what: &str, at: Span) {
        let error = self.error("manifest.not-yet", format!("this version of kforge does not support `{what}` yet"), at);
        error.expected = Some("a value that this version supports".into());
        error.hints.push("leave it out, or build with a later version".into());
    }

    /// Checks the value of the key at `at`.
    fn value(&mut self, ty: &'static Ty, value: &Spanned<DeValue<'_>>, name: &str, at: &Span) {
        let inner = value.get_ref();
        if !admits(ty, inner) {
            return self.mismatch(ty, value, name);
        }
        match ty {
            Ty::Any(options) => {
                // Of several tables, the one whose required keys are there.
                let whole = |option: &&Ty| match (option, inner.as_table()) {
                    (Ty::Table(spec), Some(table)) => {
                        spec.fields.iter().filter(|field| field.required).all(|field| table.contains_key(field.name))
                    }
                    _ => true,
                };
                let fitting = || options.iter().filter(|option| admits(option, inner));
                if let Some(option) = fitting().find(whole).or_else(|| fitting().next()) {
                    self.value(option, value, name, at);
                }
            }
            Ty::Words(now, later) => {
                let word = inner.as_str().unwrap_or_default();
                if later.contains(&word) {
                    self.later(word, value.span());
                } else if !now.contains(&word) {
                    let error = Diagnostic::error("manifest.value", format!("`{name}` cannot be `{word}`"))
                        .at(self.file, value.span(), "")
                        .expected(format!("one of {}", list(now)))
                        .suggest(word, now.iter().copied());
                    self.found.push(error);
                }
            }
            Ty::True if inner.as_bool() != Some(true) => self.mismatch(ty, value, name),
            Ty::Int if inner.as_integer().is_some_and(|i| i64::from_str_radix(i.as_str(), i.radix()).is_err()) => {
                self.error("manifest.overflow", format!("`{name}` does not fit 64 bits"), value.span()).expected =
                    Some("a 64-bit integer".into());
            }
            Ty::List(item) => self.list(item, value, name, 0, usize::MAX),
            Ty::Some(item, least, most) => self.list(item, value, name, *least, *most),
            Ty::Table(spec) => {
                if let Some(table) = inner.as_table() {
                    self.table(spec, table, name, at);
                }
            }
            Ty::Map(_, item) => {
                for (key, at, value) in inner.as_table().map(entries).unwrap_or_default() {
                    self.value(item, value, &format!("{name}.{key}"), &at);
                }
            }
            Ty::Tolerance => {
                if let Some(table) = inner.as_table() {
                    self.tolerance(table, name, at);
                }
            }
            _ => {}
        }
    }

    /// Checks a tolerance: tolerances by dtype or tensor if [`is_by_key`] says so, otherwise terms.
    fn tolerance(&mut self, table: &DeTable<'_>, name: &str, at: &Span) {
        if is_by_key(table) {
            for (key, at, value) in entries(table) {
                match value.get_ref().as_table() {
                    Some(inner) => self.table(&TOLERANCE, inner, &format!("{name}.{key}"), &at),
                    None => {
                        let error = self.error(
                            "manifest.type",
                            format!("`{name}.{key}` is given beside tolerances by dtype or tensor"),
                            at,
                        );
                        error.expected = Some("a table of terms such as `{ atol = 1e-5, rtol = 1e-5 }`".into());
                    }
                }
            }
        } else {
            self.table(&TOLERANCE, table, name, at);
        }
    }

    fn list(&mut self, item: &'static Ty, value: &Spanned<DeValue<'_>>, name: &str, least: usize, most: usize) {
        let Some(array) = value.get_ref().as_array() else { return };
        if array.len() < least || array.len() > most {
            let expected = match (least, most) {
                (_, usize::MAX) => format!("at least {least}"),
                (a, b) if a == b => count(a, "value"),
                (a, b) => format!("{a} to {b} values"),
            };
            self.error("manifest.length", format!("`{name}` has {}", count(array.len(), "value")), value.span())
                .expected = Some(expected);
        }
        for element in array {
            self.value(item, element, name, &element.span());
        }
    }

    fn mismatch(&mut self, ty: &'static Ty, value: &Spanned<DeValue<'_>>, name: &str) {
        let kind = match value.get_ref() {
            DeValue::Boolean(_) => "a truth value",
            DeValue::Integer(_) => "an integer",
            DeValue::Array(_) => "a list",
            DeValue::Float(_) => "a float",
            DeValue::String(_) => "a string",
            DeValue::Datetime(_) => "a date",
            DeValue::Table(_) => "a table",
        };
        self.error("manifest.type", format!("`{name}` is {kind}"), value.span()).expected = Some(describe(ty));
    }
}

/// Whether a key of an argument asks for a texture or a surface.
pub(super) fn is_texture(key: &str) -> bool {
    matches!(key, "texture" | "surface" | "tex" | "surf")
}

/// The advice for an argument that asks for a texture or a surface.
const TEXTURE: &str = "textures and surfaces are not supported: pass the tensor and read it through a pointer (`__ldg` uses the same cache), or keep the \
                       host code that makes them as a launcher of your own, `host = \"launch.cu::run\"`";

/// The advice for the key `cost` of an operator.
const COST: &str = "no function states the work of an operator: write it as `flops = \"2 * M * N * K\"` and `bytes = \"...\"`, expressions of the dims";

/// The term of a tolerance that other tools call `key`.
fn elsewhere(key: &str) -> Option<&'static str> {
    match key {
        "abs" | "abs_tol" | "abstol" | "absolute" => Some("atol"),
        "rel" | "rel_tol" | "reltol" | "relative" => Some("rtol"),
        "ulps" | "max_ulp" | "max_ulps" => Some("ulp"),
        _ => None,
    }
}

/// Whether the table contains a misspelling of the missing key. The misspelling has already been reported.
pub(super) fn misspelt(spec: &Spec, table: &DeTable<'_>, missing: &str) -> bool {
    let known = |key: &str| spec.fields.iter().any(|f| f.name == key);
    let keys = table.keys().map(|k| k.get_ref().as_ref()).filter(|k| !known(k));
    keys.into_iter().any(|k| closest(k, spec.fields.iter().map(|f| f.name)) == Some(missing))
}

/// Whether a table has unknown keys. They may be misspellings of keys that it lacks.
pub(super) fn strange(spec: &Spec, table: &DeTable<'_>) -> bool {
    table.keys().any(|k| !spec.fields.iter().any(|f| f.name == k.get_ref().as_ref()))
}

/// Whether a table has unknown keys that may stand for one of `named`, whose tables declare names. Such a key holds a table or is close to one of `named`.
pub(super) fn strange_for(spec: &Spec, table: &DeTable<'_>, named: &[&str]) -> bool {
    table.iter().any(|(key, value)| {
        let key = key.get_ref().as_ref();
        let known = || spec.fields.iter().map(|f| f.name);
        !known().any(|name| name == key)
            && (value.get_ref().is_table() || closest(key, known()).is_some_and(|name| named.contains(&name)))
    })
}

/// Whether a tolerance table holds tolerances by dtype or written tensor, rather than terms.
pub(super) fn is_by_key(table: &DeTable<'_>) -> bool {
    let dtype = |k: &str| k.parse::<DType>().is_ok();
    table
        .iter()
        .any(|(k, v)| v.get_ref().is_table() && !TOLERANCE.fields.iter().any(|f| f.name == k.get_ref().as_ref()))
        || (!table.is_empty() && table.iter().all(|(k, _)| dtype(k.get_ref())))
}

/// Whether a value has the kind `ty`.
fn admits(ty: &Ty, value: &DeValue<'_>) -> bool {
    match ty {
        Ty::Str(_) | Ty::Known(..) | Ty::Words(..) => value.is_str(),
        Ty::Int => value.is_integer(),
        Ty::Number => value.is_integer() || value.is_float(),
        Ty::Bool | Ty::True => value.is_bool(),
        Ty::Expr(_) => value.is_str() || value.is_integer() || value.is_float() || value.is_bool(),
        Ty::List(_) | Ty::Some(..) => value.is_array(),
        Ty::Table(_) | Ty::Map(..) | Ty::Tolerance => value.is_table(),
        Ty::Any(options) => options.iter().any(|o| admits(o, value)),
    }
}

/// A kind in words.
pub(super) fn describe(ty: &Ty) -> String {
    match ty {
        Ty::Str(what) | Ty::Known(_, what) | Ty::Expr(what) => (*what).into(),
        Ty::Int => "an integer".into(),
        Ty::Number => "a number".into(),
        Ty::Bool => "`true` or `false`".into(),
        Ty::True => "`true`".into(),
        Ty::Words(now, _) => format!("one of {}", list(now)),
        Ty::List(item) | Ty::Some(item, ..) => format!("a list of: {}", describe(item)),
        Ty::Table(spec) => {
            let fields: Vec<&str> = spec.fields.iter().map(|f| f.name).collect();
            format!("a table of {}", list(&fields))
        }
        Ty::Map(what, _) => format!("a table by {what}"),
        Ty::Tolerance => "a table such as `{ atol = 1e-5, rtol = 1e-5 }`".into(),
        Ty::Any(options) => options.iter().map(describe).collect::<Vec<_>>().join(", or "),
    }
}
