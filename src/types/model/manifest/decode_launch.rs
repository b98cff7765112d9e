//! Reads launches and their arguments. `validate` checks the names in them.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::{is_texture, misspelt};
use super::fields::LAUNCH;
use super::read::{Reader, integer};
use crate::model::expr::{Expr, Want};
use crate::model::kernel::{ArgDecl, Attributes, Language, LaunchAction, LaunchDecl};
use crate::model::operator::TypeRef;
use crate::model::real;
use crate::model::tensor_map::MapDecl;
use crate::model::{DType, Place, Text};

impl Reader<'_> {
    pub(super) fn launches(
        &mut self,
        table: &DeTable<'_>,
        language: Language,
        uses: &mut Vec<Text>,
    ) -> Vec<LaunchDecl> {
        let list = table.get("launch").and_then(|v| v.get_ref().as_array());
        let mut out = vec![];
        for item in list.into_iter().flat_map(|a| a.iter()) {
            let Some(inner) = item.get_ref().as_table() else { continue };
            let place = self.launch_place(inner, item);
            let (when, repeat) = (self.expr_of(inner, "when", Want::Bool), self.expr_of(inner, "repeat", Want::Int));
            if let Some(action) = self.action(inner, &place, language, uses) {
                let args = inner.get("args");
                let args_place = args.map(|a| self.place(a.span()));
                let block_place = inner.get("block").map(|b| self.place(b.span()));
                let items = args.and_then(|a| a.get_ref().as_array()).into_iter().flat_map(|a| a.iter());
                let arg_places = items.map(|a| self.place(a.span())).collect();
                out.push(LaunchDecl { place, when, repeat, args_place, block_place, arg_places, action });
            }
        }
        out
    }

    /// The header of `[[launch]]`, or the entry of an inline one.
    fn launch_place(&self, table: &DeTable<'_>, item: &Spanned<DeValue<'_>>) -> Place {
        let inner = self.text(table, "entry").or_else(|| self.text(table, "memset"));
        inner.map_or_else(|| self.place(item.span()), |t| t.place)
    }

    fn action(
        &mut self,
        table: &DeTable<'_>,
        place: &Place,
        language: Language,
        uses: &mut Vec<Text>,
    ) -> Option<LaunchAction> {
        let memset = self.text(table, "memset");
        let beside = |key: &str| {
            if memset.is_some() { !matches!(key, "memset" | "value" | "when" | "repeat") } else { key == "value" }
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
        let triton = self.triton_launch(table, language, uses);
        for (key, what) in
            [("entry", "the function to launch"), ("grid", "blocks along x, y, z"), ("block", "threads along x, y, z")]
        {
            if key == "block" && language == Language::Triton {
                continue;
            }
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
        let attributes = self.attributes(table);
        Some(LaunchAction::Kernel { entry, grid, block, shared, args, attributes, triton })
    }

    fn attributes(&mut self, table: &DeTable<'_>) -> Attributes {
        let stated = |key: &str| table.get_key_value(key).filter(|(_, value)| value.get_ref().as_bool() == Some(true));
        Attributes {
            cooperative: stated("cooperative").is_some(),
            pdl: stated("pdl").map(|(key, _)| self.place(key.span())),
            cluster: self.exprs(table, "cluster", Want::Int),
        }
    }

    pub(super) fn arg(&mut self, value: &Spanned<DeValue<'_>>, uses: &mut Vec<Text>) -> Option<ArgDecl> {
        let Some(table) = value.get_ref().as_table() else {
            return self.expr(value, Want::Any).map(ArgDecl::Plain);
        };
        let forms = ["value", "ptr", "struct", "pointers", "null", "tensormap"];
        let stated: Vec<&str> = forms.into_iter().filter(|f| table.contains_key(*f)).collect();
        // Reported as a key that there is not.
        if stated.is_empty() && table.iter().any(|(key, _)| is_texture(key.get_ref())) {
            return None;
        }
        let [form] = stated.as_slice() else {
            self.wrong(
                "manifest.arg",
                format!("an argument states {} of its forms", stated.len()),
                value.span(),
                "one of `value`, `ptr`, `struct`, `pointers`, `null`, `tensormap`",
            );
            return None;
        };
        let beside = ["box", "block_shape", "swizzle", "oob", "l2_promotion"].map(|key| (key, "tensormap"));
        for (key, of) in [("dtype", "value"), ("offset", "ptr")].into_iter().chain(beside) {
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
                    return self.value_of(table, "value", Want::Any).map(ArgDecl::Plain);
                };
                let dtype = self.type_use(dtype, uses);
                self.value_of(table, "value", want_of(&dtype)).map(|value| ArgDecl::Value { value, dtype })
            }
            "ptr" => {
                let offset = self.expr_of(table, "offset", Want::Int);
                self.text(table, "ptr").map(|buffer| ArgDecl::Ptr { buffer, offset })
            }
            "tensormap" => self.tensor_map(table),
            "null" => {
                let (at, value) = table.get_key_value("null")?;
                if value.get_ref().as_bool() == Some(false) {
                    let message = "`null = false` is no argument".to_string();
                    self.wrong("manifest.value", message, at.span(), "`null = true`, a null pointer");
                    return None;
                }
                Some(ArgDecl::Null)
            }
            "pointers" => Some(ArgDecl::Pointers(self.texts(table, "pointers"))),
            _ => {
                let members = table.get("struct")?.get_ref().as_array()?;
                Some(ArgDecl::Struct(members.iter().filter_map(|member| self.member(member, uses)).collect()))
            }
        }
    }

    fn tensor_map(&mut self, table: &DeTable<'_>) -> Option<ArgDecl> {
        let buffer = self.text(table, "tensormap")?;
        let key = if table.contains_key("block_shape") { "block_shape" } else { "box" };
        let Some(tile) = table.get(key) else {
            let span = buffer.place.span.clone();
            self.wrong(
                "manifest.missing-key",
                "a tensor map lacks `box`".into(),
                span,
                "`box`: elements that one copy moves; in Triton `block_shape`: the block of the descriptor",
            );
            return None;
        };
        let descriptor = key == "block_shape";
        for of_map in ["box", "swizzle", "l2_promotion"] {
            if let Some((at, _)) = table.get_key_value(of_map).filter(|_| descriptor) {
                let message = format!("a descriptor has no `{of_map}`");
                self.wrong(
                    "manifest.conflict",
                    message,
                    at.span(),
                    "`block_shape` and `oob`: the compiler chooses the rest",
                );
            }
        }
        let mut extents = self.exprs(table, key, Want::Int);
        if descriptor {
            extents.reverse();
        }
        let nan = table.get("oob").filter(|v| v.get_ref().as_str() == Some("nan")).map(|v| self.place(v.span()));
        Some(ArgDecl::TensorMap(MapDecl {
            buffer,
            tile_place: self.place(tile.span()),
            tile: extents,
            swizzle: self.expr_of(table, "swizzle", Want::Int),
            nan,
            l2_promotion: self.expr_of(table, "l2_promotion", Want::Int),
            descriptor,
        }))
    }

    /// A member of a struct: a text such as `M:i32`, or an argument in one of its explicit forms.
    fn member(&mut self, value: &Spanned<DeValue<'_>>, uses: &mut Vec<Text>) -> Option<ArgDecl> {
        match self.string(value) {
            Some(text) => self.field(&text, uses),
            None => self.arg(value, uses),
        }
    }

    /// `M:i32`, or only `M`, which may be a tensor or workspace.
    fn field(&mut self, text: &Text, uses: &mut Vec<Text>) -> Option<ArgDecl> {
        let (value, dtype) = match text.value.rsplit_once(':') {
            Some((value, dtype)) => {
                let at = text.value.len() - dtype.len();
                let place = text.place.within(&text.value, at..text.value.len());
                (value, Some(self.type_use(Text { value: dtype.trim().into(), place }, uses)))
            }
            None => (text.as_str(), None),
        };
        let want = dtype.as_ref().map_or(Want::Any, want_of);
        // The place is the whole string. The expression is found in the string again by its text.
        let value = match real::constant(value).filter(|_| want == Want::Float) {
            Some(constant) => Expr::constant(constant, text.place.clone()),
            None => {
                let parsed = Expr::parse(value, want, text.place.clone());
                self.keep(parsed)?
            }
        };
        Some(match dtype {
            Some(dtype) => ArgDecl::Value { value, dtype },
            None => ArgDecl::Plain(value),
        })
    }
}

/// The kind of value that an expression for a scalar of this type must give. A type of the operator may be a float.
fn want_of(dtype: &TypeRef) -> Want {
    match dtype {
        TypeRef::Fixed(DType::Bool) => Want::Bool,
        TypeRef::Fixed(dtype) if !dtype.is_float() => Want::Int,
        _ => Want::Float,
    }
}
