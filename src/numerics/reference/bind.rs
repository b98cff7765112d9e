//! Binds a problem to its built-in: which tensor fills which slot, and which value each setting has. Does not know arithmetic.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::builtin::{Builtin, Use};
use super::error::Error;
use super::float::round_to;
use super::gemm::ProductBackend;
use super::registry;
use super::rows::length;
use super::values::{Values, logical_len, logical_shape};
use kforge_types::model::{DType, Init, Param, Problem, Reference, Role, Scalar, Tensor};

/// A problem and its built-in.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    /// The built-in.
    pub builtin: &'static Builtin,
    /// The problem.
    pub problem: &'a Problem,
    /// Attributes as stated.
    pub attributes: &'a BTreeMap<String, Value>,
    /// The operator's own names for slots and settings, if they differ.
    pub names: &'a BTreeMap<String, String>,
}

impl<'a> Bound<'a> {
    /// Finds the built-in. Errors: the reference is the package's own, or no built-in has that name (with the nearest).
    pub fn new(problem: &'a Problem) -> Result<Self, Error> {
        let Reference::Builtin { name, attributes, names } = &problem.reference else {
            return Err(Error::NotBuiltin);
        };
        let builtin = registry::signature(name).ok_or_else(|| Error::UnknownBuiltin(name.clone()))?;
        Ok(Bound { builtin, problem, attributes, names })
    }

    /// The operator's name for a slot or setting.
    pub(super) fn own_name<'b>(&'b self, name: &'b str) -> &'b str {
        self.names.get(name).map_or(name, String::as_str)
    }

    /// The tensor that fills a slot.
    pub(super) fn tensor(&self, slot: &str) -> Option<&'a Tensor> {
        self.problem.tensor(self.own_name(slot))
    }

    /// The logical shape of a slot's tensor.
    pub(super) fn shape(&self, slot: &str) -> Option<Vec<usize>> {
        self.tensor(slot).map(logical_shape)
    }

    /// The logical shape of a slot's tensor; empty if there is no such tensor.
    pub(super) fn dims(&self, slot: &str) -> Vec<usize> {
        self.shape(slot).unwrap_or_default()
    }

    /// How many values a slot's tensor has; 0 if there is no such tensor.
    pub(super) fn len(&self, slot: &str) -> usize {
        self.tensor(slot).map_or(0, logical_len)
    }

    /// The param that provides a setting: the param that the setting's attribute names, or that has the setting's name.
    pub(super) fn param(&self, setting: &str) -> Option<&'a Param> {
        match self.attributes.get(setting) {
            Some(Value::String(name)) if !self.problem.dims.contains_key(name) => self.problem.param(name),
            Some(_) => None,
            None => self.problem.param(self.own_name(setting)),
        }
    }

    /// The value of a setting: its attribute (if that names a dim or param, its value), else the param of that name. A param's value is rounded to its dtype,
    /// because a kernel gets it in that dtype.
    fn value(&self, setting: &str) -> Option<Value> {
        let dim = |value: &Value| match value {
            Value::String(name) => self.problem.dims.get(name).map_or_else(|| value.clone(), |dim| Value::from(*dim)),
            other => other.clone(),
        };
        match (self.param(setting), self.attributes.get(setting)) {
            (Some(param), _) => Some(match param.value {
                Scalar::Bool(b) => Value::from(b),
                Scalar::Int(i) if !param.dtype.is_float() => Value::from(i),
                other => Value::from(round_to(param.dtype, other.as_f64())),
            }),
            (None, Some(Value::Array(list))) => Some(list.iter().map(dim).collect()),
            (None, Some(value)) => Some(dim(value)),
            (None, None) => None,
        }
    }

    /// A number, as f64. That of a param may be infinite or NaN.
    pub(super) fn number(&self, setting: &str) -> Option<f64> {
        match self.param(setting) {
            Some(Param { value: Scalar::Float(value), dtype, .. }) => Some(round_to(*dtype, *value)),
            _ => self.value(setting)?.as_f64(),
        }
    }

    /// An integer; a float without a fraction counts as one.
    pub(super) fn integer(&self, setting: &str) -> Option<i64> {
        as_integer(&self.value(setting)?)
    }

    /// A truth value; an integer counts as true unless it is zero. False if absent.
    pub(super) fn flag(&self, setting: &str) -> bool {
        self.value(setting).is_some_and(|v| v.as_bool().unwrap_or_else(|| as_integer(&v).is_some_and(|i| i != 0)))
    }

    /// A list of integers; a single integer is a list of one.
    pub(super) fn integers(&self, setting: &str) -> Option<Vec<i64>> {
        match self.value(setting)? {
            Value::Array(list) => list.iter().map(as_integer).collect(),
            one => Some(vec![as_integer(&one)?]),
        }
    }

    /// Two integers, or one integer for both; `default` if absent or of another length.
    pub(super) fn pair(&self, setting: &str, default: [usize; 2]) -> [usize; 2] {
        match self.integers(setting).as_deref() {
            Some([both]) => [*both as usize; 2],
            Some([a, b]) => [*a as usize, *b as usize],
            _ => default,
        }
    }

    /// A word, or the default.
    pub(super) fn word(&self, setting: &str, default: &'static str) -> String {
        self.attributes.get(setting).and_then(Value::as_str).unwrap_or(default).to_owned()
    }

    /// Axes of a shape of `rank`, sorted and without repeats; the last axis by default. Errors: an axis out of range.
    pub(super) fn axes(&self, rank: usize) -> Result<Vec<usize>, Error> {
        let stated = self.integers("axis").unwrap_or_else(|| vec![-1]);
        let mut axes = Vec::new();
        for axis in stated {
            let counted = if axis < 0 { axis + rank as i64 } else { axis };
            match usize::try_from(counted) {
                Ok(counted) if counted < rank && !axes.contains(&counted) => axes.push(counted),
                Ok(counted) if counted < rank => return Err(Error::RepeatedAxis(axis)),
                _ => return Err(Error::NoAxis { axis, rank }),
            }
        }
        axes.sort_unstable();
        Ok(axes)
    }

    /// How many values of the tensor in a slot are along the setting `axis`; 1 if that is out of range.
    pub(super) fn row_length(&self, slot: &str) -> u64 {
        let shape = self.dims(slot);
        self.axes(shape.len()).map_or(1, |axes| length(&shape, &axes) as u64)
    }

    /// Whether the tensor of that name may be drawn from `large`.
    pub(super) fn takes_large(&self, tensor: &str) -> bool {
        self.builtin.large.iter().any(|slot| self.own_name(slot) == tensor)
    }

    /// The hint of the built-in for the tensor of that name.
    pub(super) fn hint(&self, tensor: &str) -> Option<Init> {
        let slots = self.builtin.slots;
        let slot = slots.iter().find(|s| s.role != Use::Out && self.own_name(s.name) == tensor)?;
        (self.builtin.hint)(self, slot.name)
    }
}

fn as_integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9e15).map(|f| f as i64))
}

/// A bound problem with the values of its inputs.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// The problem and its built-in.
    pub bound: Bound<'a>,
    /// Values of every tensor that the operator reads.
    pub inputs: &'a BTreeMap<String, Values>,
    /// The backend for large matrix products, if there is one.
    pub elsewhere: Option<&'a dyn ProductBackend>,
}

impl<'a> Call<'a> {
    /// The values and tensor of a slot; none if the operator has no such tensor. Errors: values are missing or their number is wrong.
    pub(super) fn slot(&self, slot: &str) -> Result<Option<(&'a Values, &'a Tensor)>, Error> {
        let Some(tensor) = self.bound.tensor(slot) else { return Ok(None) };
        if tensor.role == Role::Output {
            return Ok(None);
        }
        let values = input(self.inputs, tensor)?;
        Ok(Some((values, tensor)))
    }

    /// The values of a required slot.
    pub(super) fn values(&self, slot: &str) -> Result<&'a Values, Error> {
        self.slot(slot)?.map(|(values, _)| values).ok_or_else(|| self.absent(slot))
    }

    /// A slot's values as f64, without a copy if they are floats.
    pub(super) fn float(&self, slot: &str) -> Result<Cow<'a, [f64]>, Error> {
        self.float_if(slot)?.ok_or_else(|| self.absent(slot))
    }

    /// A slot's values as f64; none if the operator has no such tensor.
    pub(super) fn float_if(&self, slot: &str) -> Result<Option<Cow<'a, [f64]>>, Error> {
        Ok(self.slot(slot)?.map(|(values, tensor)| floats(values, tensor.dtype)))
    }

    /// A slot's values as integers. Errors: they are floats.
    pub(super) fn ints(&self, slot: &str) -> Result<&'a [i64], Error> {
        match self.values(slot)? {
            Values::Int(values) => Ok(values),
            Values::Float(_) => Err(Error::Floats(self.bound.own_name(slot).to_owned())),
        }
    }

    fn absent(&self, slot: &str) -> Error {
        Error::Absent { builtin: self.bound.builtin.name, tensor: self.bound.own_name(slot).to_owned() }
    }
}

/// The values of a tensor among the inputs, checked for their number.
pub(super) fn input<'a>(inputs: &'a BTreeMap<String, Values>, tensor: &Tensor) -> Result<&'a Values, Error> {
    let values = inputs.get(&tensor.name).ok_or_else(|| Error::NoValues(tensor.name.clone()))?;
    if values.len() != logical_len(tensor) {
        return Err(Error::Length { tensor: tensor.name.clone(), found: values.len(), expected: logical_len(tensor) });
    }
    Ok(values)
}

/// Values as f64, without a copy if they are floats.
pub(super) fn floats(values: &Values, dtype: DType) -> Cow<'_, [f64]> {
    values.as_f64(dtype)
}
