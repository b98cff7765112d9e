//! Reads typed values from checked tables. Kinds were checked before, so a value of the wrong kind is skipped silently. The meaning of values is checked here.

use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::entries;
use crate::model::expr::{Expr, Value, Want};
use crate::model::real;
use crate::model::validate::identifier;
use crate::model::{DType, Place, Scalar, Text};
use kforge_foundation::base::{Diagnostic, SourceFile, Span};

/// Reads values of one file and collects their errors.
pub(super) struct Reader<'a> {
    pub(super) file: &'a Arc<SourceFile>,
    pub(super) found: Vec<Diagnostic>,
}

/// The float that is not finite that a literal or a text states.
pub(super) fn not_finite(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(float) => real::constant(float.as_str()),
        other => other.as_str().and_then(real::constant),
    }
}

/// An integer that fits 64 bits.
pub(super) fn integer(value: &DeValue<'_>) -> Option<i64> {
    value.as_integer().and_then(|i| i64::from_str_radix(i.as_str(), i.radix()).ok())
}

/// The table under a key, if there is one.
pub(super) fn sub<'t, 'i>(table: &'t DeTable<'i>, key: &str) -> Option<&'t DeTable<'i>> {
    table.get(key).and_then(|v| v.get_ref().as_table())
}

impl Reader<'_> {
    pub(super) fn place(&self, span: Span) -> Place {
        Place::new(self.file, span)
    }

    pub(super) fn wrong(&mut self, code: &'static str, message: String, span: Span, expected: &str) {
        self.found.push(Diagnostic::error(code, message).at(self.file, span, "").expected(expected));
    }

    /// Returns the value of a result, or records its error.
    pub(super) fn keep<T>(&mut self, result: Result<T, Diagnostic>) -> Option<T> {
        result.map_err(|e| self.found.push(e)).ok()
    }

    /// Named values of a table in the order of the file.
    pub(super) fn named<'t, 'i>(&self, table: &'t DeTable<'i>, key: &str) -> Vec<(Text, &'t Spanned<DeValue<'i>>)> {
        sub(table, key).map(|t| self.keys(t)).unwrap_or_default()
    }

    /// The entries of a table in the order of the file.
    pub(super) fn keys<'t, 'i>(&self, table: &'t DeTable<'i>) -> Vec<(Text, &'t Spanned<DeValue<'i>>)> {
        entries(table).into_iter().map(|(k, at, v)| (Text { value: k.into(), place: self.place(at) }, v)).collect()
    }

    pub(super) fn string(&self, value: &Spanned<DeValue<'_>>) -> Option<Text> {
        value.get_ref().as_str().map(|s| Text { value: s.into(), place: self.place(value.span()) })
    }

    pub(super) fn text(&self, table: &DeTable<'_>, key: &str) -> Option<Text> {
        table.get(key).and_then(|v| self.string(v))
    }

    pub(super) fn texts(&self, table: &DeTable<'_>, key: &str) -> Vec<Text> {
        let list = table.get(key).and_then(|v| v.get_ref().as_array());
        list.into_iter().flat_map(|a| a.iter()).filter_map(|v| self.string(v)).collect()
    }

    pub(super) fn strings(&self, table: &DeTable<'_>, key: &str) -> Vec<String> {
        self.texts(table, key).into_iter().map(|t| t.value).collect()
    }

    /// The `seeds` of an operator: integers that are not negative.
    pub(super) fn seeds(&mut self, table: &DeTable<'_>) -> Vec<u64> {
        let list = table.get("seeds").and_then(|v| v.get_ref().as_array());
        let mut seeds = vec![];
        for value in list.into_iter().flat_map(|a| a.iter()) {
            match integer(value.get_ref()).and_then(|number| u64::try_from(number).ok()) {
                Some(seed) if seeds.contains(&seed) => {
                    self.wrong(
                        "manifest.duplicate-name",
                        format!("seed {seed} is listed twice"),
                        value.span(),
                        "each seed once",
                    );
                }
                Some(seed) => seeds.push(seed),
                None => self.wrong(
                    "manifest.value",
                    "this is not a seed".into(),
                    value.span(),
                    "an integer from 0 to 2^63 - 1",
                ),
            }
        }
        seeds
    }

    /// A finite number, integer or truth value.
    pub(super) fn scalar(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Scalar> {
        match value.get_ref() {
            DeValue::Boolean(b) => Some(Scalar::Bool(*b)),
            DeValue::Integer(_) => {
                let number = integer(value.get_ref());
                if number.is_none() {
                    self.wrong(
                        "manifest.overflow",
                        "this does not fit 64 bits".into(),
                        value.span(),
                        "a 64-bit integer",
                    );
                }
                number.map(Scalar::Int)
            }
            DeValue::Float(f) => match f.as_str().parse::<f64>() {
                Ok(number) if number.is_finite() => Some(Scalar::Float(number)),
                _ => {
                    self.wrong(
                        "manifest.value",
                        format!("`{}` is not a finite number", f.as_str()),
                        value.span(),
                        "a finite number",
                    );
                    None
                }
            },
            _ => None,
        }
    }

    /// A number, integer or truth value; a float may be infinite or NaN.
    pub(super) fn scalar_or_constant(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Scalar> {
        match not_finite(value.get_ref()) {
            Some(constant) if value.get_ref().is_float() => Some(Scalar::Float(constant)),
            _ => self.scalar(value),
        }
    }

    /// An expression under a key. Where a float is wanted, it may be `inf`, `-inf` or `nan`, as a literal of TOML or as text.
    pub(super) fn value_of(&mut self, table: &DeTable<'_>, key: &str, want: Want) -> Option<Expr> {
        let value = table.get(key)?;
        let Some(constant) = not_finite(value.get_ref()) else { return self.expr(value, want) };
        match want {
            Want::Float => Some(Expr::constant(constant, self.place(value.span()))),
            // A name.
            _ if !value.get_ref().is_float() => self.expr(value, want),
            Want::Any => {
                let message = "only a float can be infinite or NaN".to_string();
                self.wrong("manifest.kind", message, value.span(), "`dtype`, a float type, beside `value`");
                None
            }
            Want::Int | Want::Bool => {
                let (message, expected) = match want {
                    Want::Bool => ("a truth value", "`true` or `false`"),
                    _ => ("an integer", "an integer: only floats can be infinite or NaN"),
                };
                let message = format!("`{}` is not {message}", self.place(value.span()).text());
                self.wrong("manifest.kind", message, value.span(), expected);
                None
            }
        }
    }

    /// A finite number under a key.
    pub(super) fn number(&mut self, table: &DeTable<'_>, key: &str) -> Option<(f64, Span)> {
        let value = table.get(key)?;
        match self.scalar(value)? {
            Scalar::Bool(_) => None,
            other => Some((other.as_f64(), value.span())),
        }
    }

    /// An expression: a string, or a literal of its kind.
    pub(super) fn expr(&mut self, value: &Spanned<DeValue<'_>>, want: Want) -> Option<Expr> {
        let place = self.place(value.span());
        if let Some(text) = value.get_ref().as_str() {
            let parsed = Expr::parse(text, want, place);
            return self.keep(parsed);
        }
        let literal = match (self.scalar(value)?, want) {
            (Scalar::Bool(b), Want::Bool | Want::Any) => Value::Bool(b),
            (Scalar::Int(i), Want::Int | Want::Float | Want::Any) => Value::Int(i),
            (Scalar::Float(f), Want::Float | Want::Any) => Value::Float(f),
            (_, want) => {
                let expected = match want {
                    Want::Int => "an integer expression",
                    Want::Float => "a number or a float expression",
                    Want::Bool => "an expression that is true or false",
                    Want::Any => "an expression",
                };
                self.wrong("manifest.type", format!("`{}` has the wrong type", place.text()), value.span(), expected);
                return None;
            }
        };
        Some(Expr::literal(literal, want, place))
    }

    pub(super) fn expr_of(&mut self, table: &DeTable<'_>, key: &str, want: Want) -> Option<Expr> {
        table.get(key).and_then(|v| self.expr(v, want))
    }

    pub(super) fn exprs(&mut self, table: &DeTable<'_>, key: &str, want: Want) -> Vec<Expr> {
        let Some(list) = table.get(key).and_then(|v| v.get_ref().as_array()) else { return vec![] };
        list.iter().filter_map(|v| self.expr(v, want)).collect()
    }

    /// Refuses a name that expressions cannot use.
    pub(super) fn identifier(&mut self, name: &Text) {
        self.found.extend(identifier(name));
    }

    /// Refuses a name that cannot be part of a step's id or of a file name.
    pub(super) fn plain_name(&mut self, name: &Text) {
        let good = name.value.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && name.value.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
        if !good {
            self.wrong(
                "manifest.name",
                format!("`{name}` is not a name"),
                name.place.span.clone(),
                "letters, digits, `_`, `-` and `.`, starting with a letter or digit",
            );
        }
    }

    /// Refuses a path outside the package. A path must be relative and must not lead above the package.
    pub(super) fn inside(&mut self, path: &Text) {
        let outside =
            path.value.is_empty() || path.value.starts_with('/') || path.value.split('/').any(|part| part == "..");
        if outside {
            self.wrong(
                "manifest.path",
                format!("`{path}` is not a path in the package"),
                path.place.span.clone(),
                "a path relative to the package, without `..`",
            );
        }
    }

    /// `file.py::function` with one of `endings`.
    pub(super) fn function(&mut self, text: &Text, endings: &[&str]) -> Option<(String, String)> {
        let split = text.value.split_once("::").filter(|(file, function)| {
            let word = !function.is_empty() && function.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            word && endings.iter().any(|e| file.len() > e.len() && file.ends_with(e))
        });
        let Some((file, function)) = split else {
            let forms: Vec<String> = endings.iter().map(|e| format!("`file{e}::function`")).collect();
            self.wrong(
                "manifest.function",
                format!("`{text}` does not name a function"),
                text.place.span.clone(),
                &forms.join(" or "),
            );
            return None;
        };
        self.inside(&Text { value: file.into(), place: text.place.clone() });
        Some((file.into(), function.into()))
    }

    /// A dtype by name, or a diagnostic.
    pub(super) fn dtype(&mut self, text: &Text) -> Option<DType> {
        let found = text.value.parse().ok();
        if found.is_none() {
            let names: Vec<&str> = DType::ALL.iter().map(|d| d.name()).collect();
            let error = text.place.error("manifest.dtype", format!("unknown dtype `{text}`"));
            let error = error.expected(format!("one of {}", crate::model::expr::list(&names)));
            self.found.push(crate::model::dtype::suggest(error, &text.value, names));
        }
        found
    }
}
