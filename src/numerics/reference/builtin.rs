//! The definition of a built-in operator: its names, its documentation, and its functions. Does not know a particular operator.

use std::collections::BTreeMap;

use super::bind::{Bound, Call};
use super::check::Check;
use super::error::Error;
use super::values::Values;
use kforge_types::model::Init;

/// A built-in operator.
#[derive(Debug)]
pub struct Builtin {
    /// Its name after `builtin:`.
    pub name: &'static str,
    /// The mathematics in one or a few lines.
    pub doc: &'static str,
    /// Its tensors. Empty for `elementwise`, which uses the operator's own tensors.
    pub slots: &'static [Slot],
    /// Its settings: each may be an attribute of the reference (a value, or the name of a dim or param) or a param of the operator.
    pub settings: &'static [Setting],
    /// The slots that may hold magnitudes of 128 without harm to the result's accuracy (`large` of [`super::generate`]); other slots stay normal then.
    pub large: &'static [&'static str],
    /// Checks shapes, dtypes and settings in addition to what slots and settings declare.
    pub(super) check: fn(&mut Check<'_>),
    /// Computes every written slot, and the scale if requested.
    pub(super) run: fn(&Call<'_>, bool) -> Result<Produced, Error>,
    /// Work, computed only from shapes. Called only for problems that passed the check.
    pub(super) work: fn(&Bound<'_>) -> Work,
    /// How a slot's values are drawn if its `init` is auto: labels, indices, variances.
    pub(super) hint: fn(&Bound<'_>, &str) -> Option<Init>,
}

/// What a slot is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Read: an input, or an inout's old value.
    In,
    /// Written: an output, or an inout's new value.
    Out,
    /// Read and written: an inout.
    Inout,
}

/// Which dtypes a slot takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any.
    Any,
    /// Floats.
    Float,
    /// Integers and bool.
    Int,
}

/// A tensor of a built-in.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub role: Use,
    /// Which dtypes it takes.
    pub kind: Kind,
    /// Whether it may be absent.
    pub optional: bool,
    /// Its shape and meaning.
    pub doc: &'static str,
}

/// The type of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    /// A float or integer.
    Number,
    /// An integer.
    Integer,
    /// `true` or `false`.
    Flag,
    /// One integer, or a list of them.
    Integers,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// A setting of a built-in.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: SettingKind,
    /// Whether it must be given.
    pub required: bool,
    /// Its meaning and default.
    pub doc: &'static str,
}

/// Outputs by slot.
#[derive(Debug, Default)]
pub(super) struct Produced {
    /// Values of every written slot that the operator has; others are dropped.
    pub values: BTreeMap<String, Values>,
    /// The operator on absolute values, if it was requested and is meaningful.
    pub scales: BTreeMap<String, Vec<f64>>,
}

impl Produced {
    /// One output with its scale.
    pub(super) fn one(slot: &str, values: Values, scale: Option<Vec<f64>>) -> Self {
        let mut produced = Produced::default();
        produced.put(slot, values, scale);
        produced
    }

    /// Adds an output with its scale.
    pub(super) fn put(&mut self, slot: &str, values: Values, scale: Option<Vec<f64>>) {
        self.values.insert(slot.to_owned(), values);
        if let Some(scale) = scale {
            self.scales.insert(slot.to_owned(), scale);
        }
    }
}

/// Work of an operator at a shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Work {
    /// Arithmetic operations, a transcendental function counting as one.
    pub(super) flops: f64,
    /// The longest sum.
    pub(super) reduction: u64,
}

/// The hint function of a built-in without hints.
pub(super) fn no_hint(_: &Bound<'_>, _: &str) -> Option<Init> {
    None
}

/// A required tensor that is read.
pub(super) const fn read(name: &'static str, kind: Kind, doc: &'static str) -> Slot {
    Slot { name, role: Use::In, kind, optional: false, doc }
}

/// A required tensor that is written.
pub(super) const fn written(name: &'static str, kind: Kind, doc: &'static str) -> Slot {
    Slot { name, role: Use::Out, kind, optional: false, doc }
}

/// A tensor that may be absent.
pub(super) const fn optional(name: &'static str, role: Use, kind: Kind, doc: &'static str) -> Slot {
    Slot { name, role, kind, optional: true, doc }
}

/// A setting that may be absent.
pub(super) const fn setting(name: &'static str, kind: SettingKind, doc: &'static str) -> Setting {
    Setting { name, kind, required: false, doc }
}

/// The axes of a reduction.
pub(super) const AXIS: Setting = setting(
    "axis",
    SettingKind::Integers,
    "the axis or, for reductions such as sums, a list of axes; a negative axis counts from the end; default -1",
);
