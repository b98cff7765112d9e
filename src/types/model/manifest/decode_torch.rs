//! Reads references in PyTorch, and the PyTorch of a package. Kinds of values were checked before; `validate` checks what names mean.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::read::{Reader, not_finite};
use crate::model::Text;
use crate::model::bound::{InputsFunction, Reference};
use crate::model::expr::{Expr, Want};
use crate::model::package::{Inheritable, numbers};
use crate::model::target::TorchSpec;
use crate::model::torch::{Mapped, TorchCall, TorchDecl, TorchValue};

impl Reader<'_> {
    /// `{ torch = "task.py::Model", ... }`.
    pub(super) fn torch_reference(&mut self, table: &DeTable<'_>) -> Option<(Reference, TorchDecl)> {
        let (mut call, decl) = self.torch_call(table);
        call.keeps_casts = self.text(table, "casts").is_some_and(|word| word.value == "keep");
        let (file, function) = self.text(table, "torch").and_then(|text| self.function(&text, &[".py"]))?;
        Some((Reference::Torch { file, function, call: Box::new(call) }, decl))
    }

    /// `"file.py::function"`, or `{ torch = "file.py::function" }`.
    pub(super) fn inputs_function(&mut self, value: &Spanned<DeValue<'_>>) -> Option<InputsFunction> {
        match value.get_ref().as_table() {
            Some(table) => {
                let text = self.text(table, "torch")?;
                Some(InputsFunction::Torch { torch: self.function(&text, &[".py"])? })
            }
            None => {
                let text = self.string(value)?;
                let (file, function) = self.function(&text, &[".py"])?;
                Some(InputsFunction::Python(file, function))
            }
        }
    }

    /// How a module or function is called.
    pub(super) fn torch_call(&mut self, table: &DeTable<'_>) -> (TorchCall, TorchDecl) {
        let mut decl = TorchDecl::default();
        let mut call = TorchCall::default();
        match table.get("init").map(Spanned::get_ref) {
            Some(DeValue::Array(items)) => {
                decl.init = items.iter().filter_map(|item| self.torch_value(item)).collect();
            }
            Some(_) => decl.keywords = self.torch_values(table, "init"),
            None => {}
        }
        decl.constants = self.torch_values(table, "constants");
        for (name, value) in self.named(table, "state") {
            match value.get_ref() {
                DeValue::Boolean(true) => {
                    let message = format!("`state.{name}` is `true`");
                    self.wrong(
                        "manifest.value",
                        message,
                        value.span(),
                        "the name of a tensor, or `false` if no tensor gives it",
                    );
                }
                DeValue::Boolean(false) => drop(call.state.insert(name.value, None)),
                _ => {
                    let Some(tensor) = self.string(value) else { continue };
                    call.state.insert(name.value, Some(tensor.value.clone()));
                    decl.mapped.push(Mapped { name: tensor, is_state: true });
                }
            }
        }
        for (name, value) in self.named(table, "names") {
            let Some(own) = self.string(value) else { continue };
            call.names.insert(name.value, own.value.clone());
            decl.mapped.push(Mapped { name: own, is_state: false });
        }
        self.twice(&decl.mapped);
        call.train = self.text(table, "mode").is_some_and(|word| word.value == "train");
        (call, decl)
    }

    /// Refuses a tensor that is mapped twice.
    fn twice(&mut self, mapped: &[Mapped]) {
        let mut seen: BTreeMap<&str, ()> = BTreeMap::new();
        for Mapped { name, .. } in mapped.iter().filter(|mapped| mapped.is_state) {
            if seen.insert(name.as_str(), ()).is_some() {
                let message = format!("`state` names `{name}` twice");
                self.wrong("manifest.duplicate-name", message, name.place.span.clone(), "each tensor once");
            }
        }
    }

    fn torch_values(&mut self, table: &DeTable<'_>, key: &str) -> Vec<(Text, TorchValue)> {
        let named = self.named(table, key).into_iter();
        named.filter_map(|(name, value)| Some((name, self.torch_value(value)?))).collect()
    }

    fn torch_value(&mut self, value: &Spanned<DeValue<'_>>) -> Option<TorchValue> {
        if let Some(items) = value.get_ref().as_array() {
            return Some(TorchValue::List(items.iter().filter_map(|item| self.torch_value(item)).collect()));
        }
        if let Some(constant) = not_finite(value.get_ref()) {
            return Some(TorchValue::Expr(Expr::constant(constant, self.place(value.span()))));
        }
        self.expr(value, Want::Any).map(TorchValue::Expr)
    }

    /// `toolchain.torch`.
    pub(super) fn inheritable_torch(&mut self, table: &DeTable<'_>) -> Option<Inheritable<TorchSpec>> {
        if let Some((key, _)) = table.get_key_value("workspace") {
            if table.contains_key("torch") {
                let message = "`toolchain` is inherited from the workspace and also states `torch`".to_string();
                self.wrong("manifest.conflict", message, key.span(), "one of them");
            }
            return None;
        }
        let value = table.get("torch")?;
        if let Some(inherited) = self.only_inherited("toolchain.torch", value) {
            return Some(inherited);
        }
        let (text, cuda) = match value.get_ref().as_table() {
            Some(inner) => match self.text(inner, "release") {
                Some(release) => {
                    let cuda = inner.get("cuda").and_then(|value| value.get_ref().as_bool());
                    (release, cuda.unwrap_or(false))
                }
                None => {
                    self.wrong(
                        "manifest.missing-key",
                        "`toolchain.torch` lacks `release`".into(),
                        value.span(),
                        "`{ release = \"2.9\", cuda = true }`, a version, or `system`",
                    );
                    return None;
                }
            },
            None => {
                let text = self.string(value)?;
                if text.value == "system" {
                    return Some(Inheritable::Value(TorchSpec::System));
                }
                (text, false)
            }
        };
        if numbers(&text.value).is_none_or(|n| n.len() < 2 || n.len() > 3 || n[0] != 2) {
            let error = text.place.error("manifest.version", format!("`{text}` is not a version of PyTorch"));
            let error = match value.get_ref().as_table() {
                Some(_) => error.expected("a version such as `2.9` or `2.9.1`"),
                None => {
                    error.expected("a version such as `2.9` or `2.9.1`, or `system`").suggest(&text.value, ["system"])
                }
            };
            self.found.push(error);
            return None;
        }
        Some(Inheritable::Value(TorchSpec::Release { release: text.value, cuda }))
    }
}
