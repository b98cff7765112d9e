//! Checks whether a problem fits its built-in. Every message names the tensor or setting, what was expected and what to do. Does not know arithmetic.

use super::bind::Bound;
use super::builtin::{Kind, SettingKind, Slot, Use};
use super::error::Misfits;
use super::registry::nearest;
use kforge_types::model::bound::ACCUMULATE;
use kforge_types::model::{Problem, Reference, Role};

/// Checks shapes, dtypes, names and settings. Does not check a reference of the package. All errors are returned at once.
pub fn check(problem: &Problem) -> Result<(), Misfits> {
    let Reference::Builtin { name, .. } = &problem.reference else { return Ok(()) };
    let misfits = |faults: Vec<String>| Misfits { builtin: name.clone(), faults };
    let bound = Bound::new(problem).map_err(|error| misfits(vec![error.to_string()]))?;
    let mut check = Check { bound, errors: Vec::new() };
    // `elementwise` has no fixed names: its own check covers tensors and params.
    if !bound.builtin.slots.is_empty() {
        check.names();
        check.tensors();
        check.settings();
        check.accumulation();
    } else if bound.attributes.contains_key(ACCUMULATE) && bound.problem.tensor(ACCUMULATE).is_none() {
        check.error("adds where its expression says so: write `y = \"y + ...\"` in place of `accumulate`");
    }
    if check.errors.is_empty() {
        (bound.builtin.check)(&mut check);
    }
    if check.errors.is_empty() { Ok(()) } else { Err(misfits(check.errors)) }
}

/// A check in progress.
#[derive(Debug)]
pub(super) struct Check<'a> {
    /// The problem that is checked.
    pub(super) bound: Bound<'a>,
    /// The errors so far.
    pub(super) errors: Vec<String>,
}

impl Check<'_> {
    /// Records an error with the name of the built-in.
    pub(super) fn error(&mut self, text: impl std::fmt::Display) {
        self.errors.push(format!("builtin `{}`: {text}", self.bound.builtin.name));
    }

    /// Expects a shape of a slot, if the operator has that tensor; `why` says what determines it.
    pub(super) fn shape(&mut self, slot: &str, expected: &[usize], why: &str) {
        if let Some(shape) = self.bound.shape(slot)
            && shape != expected
        {
            let name = self.bound.own_name(slot).to_owned();
            self.error(format!("`{name}` has shape {shape:?}, expected {expected:?}: {why}"));
        }
    }

    /// Expects a rank of a slot and returns its shape.
    pub(super) fn rank(&mut self, slot: &str, rank: usize, layout: &str) -> Option<Vec<usize>> {
        let shape = self.bound.shape(slot)?;
        if shape.len() == rank {
            return Some(shape);
        }
        let name = self.bound.own_name(slot).to_owned();
        self.error(format!("`{name}` has rank {}, expected {rank}: {layout}", shape.len()));
        None
    }

    /// Expects at least one value along these axes of a slot, for operators that would otherwise compute a result from no values. Other axes may be empty,
    /// because the result is then empty too.
    pub(super) fn not_empty(&mut self, slot: &str, axes: &[usize]) {
        if self.bound.shape(slot).is_some_and(|shape| axes.iter().any(|axis| shape[*axis] == 0)) {
            let name = self.bound.own_name(slot).to_owned();
            self.error(format!("`{name}` has no value along axis {axes:?}, expected at least one"));
        }
    }

    /// Axes of a slot; records an error if they are out of range.
    pub(super) fn axes(&mut self, slot: &str) -> Option<Vec<usize>> {
        let rank = self.bound.shape(slot)?.len();
        match self.bound.axes(rank) {
            Ok(axes) => Some(axes),
            Err(error) => {
                let name = self.bound.own_name(slot).to_owned();
                self.error(format!("{error}; `axis` refers to `{name}`"));
                None
            }
        }
    }

    /// One axis of a slot.
    pub(super) fn axis(&mut self, slot: &str) -> Option<usize> {
        let axes = self.axes(slot)?;
        if let [axis] = axes.as_slice() {
            return Some(*axis);
        }
        self.error("`axis` must be one axis, not a list");
        None
    }

    /// Checks that every tensor and param of the operator means something to the built-in, and so does every given name.
    fn names(&mut self) {
        let bound = self.bound;
        let slots: Vec<&str> = bound.builtin.slots.iter().map(|s| s.name).collect();
        let settings: Vec<&str> = bound.builtin.settings.iter().map(|s| s.name).collect();
        for (name, own) in bound.names {
            if !slots.contains(&name.as_str()) && !settings.contains(&name.as_str()) {
                let all = slots.iter().chain(&settings).copied();
                self.error(format!("has neither a tensor nor a setting `{name}`{}", nearest(name, all)));
            } else if bound.problem.tensor(own).is_none() && bound.problem.param(own).is_none() {
                self.error(format!(
                    "`{name}` is mapped to `{own}`, but the operator has neither a tensor nor a param of that name"
                ));
            }
        }
        for attribute in bound.attributes.keys().filter(|name| *name != ACCUMULATE) {
            if !settings.contains(&attribute.as_str()) {
                self.error(format!("has no attribute `{attribute}`{}", nearest(attribute, settings.iter().copied())));
            }
        }
        for tensor in &bound.problem.tensors {
            if !slots.iter().any(|slot| bound.own_name(slot) == tensor.name) {
                let hint = nearest(&tensor.name, slots.iter().copied());
                self.error(format!(
                    "`{}` is not one of its tensors{hint}; rename it, or map it with `names`",
                    tensor.name
                ));
            }
        }
        for param in &bound.problem.params {
            let used = |setting: &&str| {
                bound.own_name(setting) == param.name
                    || bound.param(setting).is_some_and(|used| used.name == param.name)
            };
            if !settings.iter().any(used) {
                let hint = nearest(&param.name, settings.iter().copied());
                self.error(format!(
                    "the reference does not use param `{}`{hint}; rename it, or map it with `names`",
                    param.name
                ));
            }
        }
    }

    fn tensors(&mut self) {
        let bound = self.bound;
        for slot in bound.builtin.slots {
            let own = bound.own_name(slot.name);
            let Some(tensor) = bound.problem.tensor(own) else {
                if !slot.optional {
                    let role = if slot.role == Use::Out { "an output" } else { "an input" };
                    self.error(format!("needs {role} `{own}`: {}", slot.doc));
                }
                continue;
            };
            let (wanted, fits) = match slot.role {
                Use::In => ("an input or inout", tensor.role != Role::Output),
                Use::Out => ("an output or inout", tensor.role != Role::Input),
                Use::Inout => ("an inout", tensor.role == Role::Inout),
            };
            if !fits {
                self.error(format!("`{own}` must be {wanted}: {}", slot.doc));
            }
            match slot.kind {
                Kind::Float if !tensor.dtype.is_float() => {
                    self.error(format!("`{own}` has dtype {}, expected a float dtype", tensor.dtype));
                }
                Kind::Int if tensor.dtype.is_float() => {
                    self.error(format!("`{own}` has dtype {}, expected an integer dtype", tensor.dtype));
                }
                _ => {}
            }
        }
        for tensor in bound.problem.written() {
            let mut slots = bound.builtin.slots.iter().filter(|slot| bound.own_name(slot.name) == tensor.name);
            if slots.clone().next().is_some() && !slots.any(|slot| slot.role != Use::In) {
                self.error(format!(
                    "does not write `{}`, which is an {}",
                    tensor.name,
                    match tensor.role {
                        Role::Inout => "inout",
                        _ => "output",
                    }
                ));
            }
        }
    }

    /// What an accumulating operator writes is also read.
    fn accumulation(&mut self) {
        let bound = self.bound;
        match bound.attributes.get(ACCUMULATE) {
            None => return,
            Some(value) if !value.is_boolean() => {
                return self.error(format!("`accumulate` is {value}, expected true or false"));
            }
            Some(_) if !bound.problem.reference.accumulates() => return,
            Some(_) => {}
        }
        for tensor in bound.problem.written().filter(|tensor| tensor.role == Role::Output) {
            let name = &tensor.name;
            self.error(format!(
                "`accumulate` adds to what `{name}` held before: declare it as an inout, `inouts.{name}`"
            ));
        }
        let both = |slot: &&Slot| slot.role == Use::Inout && bound.tensor(slot.name).is_some();
        if let Some(slot) = bound.builtin.slots.iter().find(both) {
            let name = bound.own_name(slot.name).to_owned();
            self.error(format!("`accumulate` is not possible: it reads and replaces `{name}`"));
        }
    }

    fn settings(&mut self) {
        let bound = self.bound;
        for setting in bound.builtin.settings {
            let name = setting.name;
            let given = bound.attributes.contains_key(name);
            if given && bound.problem.param(bound.own_name(name)).is_some() && bound.param(name).is_none() {
                self.error(format!("`{name}` is given both as an attribute and as a param; keep one"));
            }
            if !given && bound.param(name).is_none() {
                if setting.required {
                    self.error(format!("needs `{name}`: {}", setting.doc));
                }
                continue;
            }
            let (fits, expected) = match setting.kind {
                SettingKind::Number => (bound.number(name).is_some(), "a number".to_owned()),
                SettingKind::Integer => (bound.integer(name).is_some(), "an integer".to_owned()),
                SettingKind::Flag => {
                    let stated = bound.attributes.get(name).filter(|_| bound.param(name).is_none());
                    (stated.is_none_or(serde_json::Value::is_boolean), "true or false".to_owned())
                }
                SettingKind::Integers => {
                    (bound.integers(name).is_some(), "an integer or a list of integers".to_owned())
                }
                SettingKind::Word(words) => {
                    (words.contains(&bound.word(name, "").as_str()), format!("one of {}", quoted(words)))
                }
            };
            if !fits {
                let found = match bound.attributes.get(name) {
                    Some(value) => value.to_string(),
                    None => "that param's value".to_owned(),
                };
                self.error(format!("`{name}` is {found}, expected {expected}"));
            }
        }
    }
}

/// Words in backquotes, separated by commas.
pub(super) fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
