//! Variants: a kernel with every tunable fixed. Knows which variants exist, which shapes they serve, and what names become in entries and macros; does not bind
//! launches.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::bind::in_shape;
use super::expr::{Expr, Scope, Value, words};
use super::kernel::{DefineValue, Kernel, LaunchAction, Per};
use super::operator::{Operator, Shape, TypeChoice};
use super::target::Target;
use kforge_foundation::base::Diagnostic;

/// The maximum number of variants of one kernel before `where`.
const MOST_VARIANTS: usize = 1_000_000;

/// A tunable's value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum TuneValue {
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A string.
    Str(String),
}

impl TuneValue {
    /// As the value of a macro: truth values are 1 and 0, strings are unchanged.
    pub fn as_macro(&self) -> String {
        match self {
            TuneValue::Bool(b) => u8::from(*b).to_string(),
            other => other.to_string(),
        }
    }

    pub(crate) fn to_value(&self) -> Value {
        match self {
            TuneValue::Bool(b) => Value::Bool(*b),
            TuneValue::Int(i) => Value::Int(*i),
            TuneValue::Str(s) => Value::Str(s.clone()),
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self {
            TuneValue::Bool(_) => "a truth value",
            TuneValue::Int(_) => "an integer",
            TuneValue::Str(_) => "a string",
        }
    }
}

/// As in labels and entries: `256`, `true`, `row`.
impl fmt::Display for TuneValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TuneValue::Bool(b) => b.fmt(f),
            TuneValue::Int(i) => i.fmt(f),
            TuneValue::Str(s) => f.write_str(s),
        }
    }
}

/// A kernel with every tunable fixed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Variant {
    /// The tunables.
    pub values: BTreeMap<String, TuneValue>,
    /// `BLOCK=256,VEC=4` in declared order; empty for a kernel without tunables.
    pub label: String,
    /// Its number in declared order, where the last tunable varies fastest. Variants that `where` leaves out do not count.
    pub order: u32,
}

impl Variant {
    /// An error that names its variant. A kernel without tunables has one without a name.
    pub(crate) fn noted(&self, error: Diagnostic) -> Diagnostic {
        if self.label.is_empty() { error } else { error.note(format!("for variant `{}`", self.label)) }
    }
}

impl Kernel {
    /// Adds the names that every expression of a variant can use: its tunables, and types with the names of their dtypes.
    pub(crate) fn tunables(&self, variant: &Variant, choice: &TypeChoice, scope: &mut Scope) {
        scope.extend(choice.types.iter().map(|(name, dtype)| (name.clone(), Value::Str(dtype.name().into()))));
        scope.extend(variant.values.iter().map(|(name, value)| (name.clone(), value.to_value())));
    }

    pub(crate) fn labelled(&self, values: BTreeMap<String, TuneValue>, order: u32) -> Variant {
        let parts = self.tune.iter().filter_map(|(name, _)| values.get(&name.value).map(|v| format!("{name}={v}")));
        Variant { label: parts.collect::<Vec<_>>().join(","), values, order }
    }

    /// The variants for a target and a choice of types, in declared order. Fails if `where` cannot be evaluated or if the space has more than a million
    /// variants.
    pub fn variants(&self, target: &Target, choice: &TypeChoice) -> Result<Vec<Variant>, Diagnostic> {
        self.space(target, choice)?.collect()
    }

    /// Like [`Kernel::variants`], but yields one variant at a time.
    pub(crate) fn space(
        &self,
        target: &Target,
        choice: &TypeChoice,
    ) -> Result<impl Iterator<Item = Result<Variant, Diagnostic>>, Diagnostic> {
        let bounded = |n: usize, values: &Vec<_>| n.checked_mul(values.len()).filter(|n| *n <= MOST_VARIANTS);
        let Some(size) = self.tune.iter().try_fold(1usize, |n, (_, values)| bounded(n, values)) else {
            let message = format!("kernel `{}` has more than {MOST_VARIANTS} variants", self.name);
            let error = self.place.error("manifest.too-many-variants", message);
            return Err(error.expected("fewer values of its tunables"));
        };
        let mut scope = Scope::new();
        self.tunables(&Variant { values: BTreeMap::new(), label: String::new(), order: 0 }, choice, &mut scope);
        scope.insert("target".into(), Value::Str(target.name.clone()));
        scope.insert("arch".into(), Value::Str(target.arch.name().into()));
        let mut order = 0;
        Ok((0..size).filter_map(move |index| {
            let mut rest = index;
            let mut values = BTreeMap::new();
            for (name, of) in self.tune.iter().rev() {
                let value = &of[rest % of.len()];
                rest /= of.len();
                scope.insert(name.value.clone(), value.to_value());
                values.insert(name.value.clone(), value.clone());
            }
            for condition in &self.conditions {
                match condition.truth(&scope) {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(e) => {
                        return Some(Err(self.labelled(values, order).noted(e)));
                    }
                }
            }
            order += 1;
            Some(Ok(self.labelled(values, order - 1)))
        }))
    }

    /// The variant from which rounds start: the first in declared order that has the tunables in `generate.start`. None for a kernel that starts from nothing.
    /// Fails if there is no such variant.
    pub fn start(&self, target: &Target, choice: &TypeChoice) -> Result<Option<Variant>, Diagnostic> {
        let Some(rounds) = self.rounds.as_ref().filter(|_| !self.is_unstarted()) else { return Ok(None) };
        for variant in self.space(target, choice)? {
            let variant = variant?;
            if rounds.start.iter().all(|(name, (_, value))| variant.values.get(name) == Some(value)) {
                return Ok(Some(variant));
            }
        }
        let place = rounds.start.values().next().map_or(&rounds.agent.place, |(name, _)| &name.place);
        let message = format!("kernel `{}` has no such variant to start from on target `{}`", self.name, target.name);
        Err(place
            .error("manifest.no-variant", message)
            .expected("tunables that some variant has: `where` excludes these"))
    }

    /// The variant with these tunables. A tunable that is not named has its first value. None if a value is not listed or if `where` leaves the variant out.
    /// The order of the variant means nothing.
    pub fn variant(
        &self,
        target: &Target,
        choice: &TypeChoice,
        values: &BTreeMap<String, TuneValue>,
    ) -> Result<Option<Variant>, Diagnostic> {
        if values.keys().any(|name| !self.tune.iter().any(|(own, _)| own.value == *name)) {
            return Ok(None);
        }
        let mut wanted = BTreeMap::new();
        for (name, of) in &self.tune {
            let Some(value) = values.get(&name.value).or(of.first()).filter(|v| of.contains(v)) else {
                return Ok(None);
            };
            wanted.insert(name.value.clone(), value.clone());
        }
        let mut scope = Scope::new();
        let variant = self.labelled(wanted, 0);
        self.tunables(&variant, choice, &mut scope);
        scope.insert("target".into(), Value::Str(target.name.clone()));
        scope.insert("arch".into(), Value::Str(target.arch.name().into()));
        for condition in &self.conditions {
            if !condition.truth(&scope)? {
                return Ok(None);
            }
        }
        Ok(Some(variant))
    }

    /// Whether a variant serves a shape: all conditions in `requires` hold.
    pub fn serves(
        &self,
        variant: &Variant,
        operator: &Operator,
        choice: &TypeChoice,
        shape: &Shape,
    ) -> Result<bool, Diagnostic> {
        if self.requires.is_empty() {
            return Ok(true);
        }
        let mut scope = operator.scope(choice, shape)?;
        self.tunables(variant, choice, &mut scope);
        for condition in &self.requires {
            let holds = condition.truth(&scope).map_err(|e| variant.noted(in_shape(e, shape)))?;
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// For each shape of the operator: whether any variant of the kernel on the target serves it.
    ///
    /// # Errors
    /// `where` or `requires` cannot be evaluated, or the space has more than a million variants.
    pub fn served(&self, target: &Target, operator: &Operator, choice: &TypeChoice) -> Result<Vec<bool>, Diagnostic> {
        if self.requires.is_empty() {
            return Ok(vec![true; operator.shapes.len()]);
        }
        // A shape that a condition without tunables excludes is served by no variant: a large space is not walked for it.
        let is_tunable = |name: &str| self.tune.iter().any(|(own, _)| own.value == name);
        let common: Vec<&Expr> = self.requires.iter().filter(|c| !c.names().any(is_tunable)).collect();
        let none = self.labelled(BTreeMap::new(), 0);
        let mut open = vec![];
        for (at, shape) in operator.shapes.iter().enumerate() {
            let mut scope = operator.scope(choice, shape)?;
            self.tunables(&none, choice, &mut scope);
            let mut holds = true;
            for condition in &common {
                holds = holds && condition.truth(&scope).map_err(|e| in_shape(e, shape))?;
            }
            if holds {
                open.push(at);
            }
        }
        let mut served = vec![false; operator.shapes.len()];
        for variant in self.space(target, choice)? {
            let variant = variant?;
            let mut left = vec![];
            for at in open {
                served[at] = self.serves(&variant, operator, choice, &operator.shapes[at])?;
                if !served[at] {
                    left.push(at);
                }
            }
            open = left;
            if open.is_empty() {
                break;
            }
        }
        Ok(served)
    }

    /// A text of the manifest in which the values of tunables and types replace their names: `rms_norm<T, BLOCK>` becomes `rms_norm<__half, 256>`. A name after
    /// `::` or `.` is a member of something else and stays.
    pub fn substitute(&self, text: &str, variant: &Variant, choice: &TypeChoice) -> String {
        let mut out = String::with_capacity(text.len());
        let mut copied = 0;
        for at in words(text) {
            let before = text[..at.start].trim_end();
            if before.ends_with("::") || before.ends_with('.') {
                continue;
            }
            let word = &text[at.clone()];
            let value = match (variant.values.get(word), choice.types.get(word)) {
                (Some(value), _) => value.to_string(),
                (None, Some(dtype)) => dtype.cuda_name().to_string(),
                (None, None) => continue,
            };
            out.push_str(&text[copied..at.start]);
            out.push_str(&value);
            copied = at.end;
        }
        out.push_str(&text[copied..]);
        out
    }

    /// The entries that a variant launches, as C++ spells them, each once, in the order of first use.
    pub fn entries(&self, variant: &Variant, choice: &TypeChoice) -> Vec<String> {
        let mut out: Vec<String> = vec![];
        for launch in &self.launches {
            if let LaunchAction::Kernel { entry, .. } = &launch.action {
                let entry = self.substitute(&entry.value, variant, choice);
                if !out.contains(&entry) {
                    out.push(entry);
                }
            }
        }
        out
    }

    /// The macros of a variant: every tunable, and the declared macros with tunables and types replaced in their strings. Truth values are 1 and 0.
    pub fn defines(&self, variant: &Variant, choice: &TypeChoice) -> BTreeMap<String, String> {
        let declared = self.defines.iter().map(|(name, value)| {
            let value = match value {
                DefineValue::Plain(value) => value.as_macro(),
                DefineValue::Text(text) => self.substitute(text, variant, choice),
            };
            (name.clone(), value)
        });
        declared.chain(variant.values.iter().map(|(name, value)| (name.clone(), value.as_macro()))).collect()
    }

    /// The compiler flags of a variant, with tunables and types replaced.
    pub fn flags(&self, variant: &Variant, choice: &TypeChoice) -> Vec<String> {
        self.flags.iter().map(|flag| self.substitute(flag, variant, choice)).collect()
    }

    /// The class of shapes to which a shape belongs: `all`, the name of the shape, or the value of `select.per`.
    pub fn class_of(&self, operator: &Operator, choice: &TypeChoice, shape: &Shape) -> Result<String, Diagnostic> {
        match &self.select.per {
            Per::All => Ok("all".into()),
            Per::Shape => Ok(shape.name.clone()),
            Per::Value(expr) => {
                let value = expr.value(&operator.scope(choice, shape)?).map_err(|e| in_shape(e, shape))?;
                Ok(value.to_string())
            }
        }
    }
}
