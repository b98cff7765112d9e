//! elementwise: an expression for each written tensor, over tensors that broadcast, params and dims.

use std::borrow::Cow;

use super::matmul::broadcast_places;
use crate::reference::bind::{Bound, Call, floats, input};
use crate::reference::builtin::{Builtin, Produced, Work, no_hint};
use crate::reference::check::Check;
use crate::reference::error::Error;
use crate::reference::float::round_to;
use crate::reference::formula::{Formula, exact, formula, is_exact, magnitude, operations, value};
use crate::reference::registry::nearest;
use crate::reference::values::{Values, logical_len, logical_shape};
use kforge_foundation::base::pieces;
use kforge_types::model::{DType, Role};

/// An attribute for each written tensor: `{ builtin = "elementwise", y = "gelu(x + b)" }`.
pub(in crate::reference) static ELEMENTWISE: Builtin = Builtin {
    name: "elementwise",
    doc: "an expression for each written tensor, under its name, over tensors that are read (trailing axes are aligned, and an extent of 1 broadcasts), \
          params and dims, in the expression language of the manifest; a truth value is 1 or 0. Integers stay exact unless an expression divides \
          other than by a literal with `//`, `%` or `ceil_div`; scale: sums and differences add magnitudes",
    slots: &[],
    settings: &[],
    large: &[],
    check,
    run,
    work: |bound| Work {
        flops: sources(bound)
            .filter_map(|(tensor, text)| {
                let formula = formula(text).ok()?;
                Some(operations(&formula.root) as f64 * bound.problem.tensor(tensor).map_or(0, logical_len) as f64)
            })
            .sum(),
        reduction: 1,
    },
    hint: no_hint,
};

/// Each written tensor with its expression.
fn sources<'a>(bound: &Bound<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
    bound.attributes.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
}

fn check(check: &mut Check<'_>) {
    let problem = check.bound.problem;
    let written: Vec<&str> = problem.written().map(|t| t.name.as_str()).collect();
    for (name, value) in check.bound.attributes {
        if !written.contains(&name.as_str()) {
            let hint = nearest(name, written.iter().copied());
            check.error(format!("`{name}` is not an output of the operator{hint}"));
        } else if !value.is_string() {
            check.error(format!("`{name}` is {value}, expected an expression in quotes"));
        }
    }
    let mut used: Vec<String> = Vec::new();
    // It is unknown what an expression uses that cannot be read.
    let mut is_read = true;
    for tensor in problem.written() {
        let Some(text) = check.bound.attributes.get(&tensor.name).map(|v| v.as_str().unwrap_or("0")) else {
            check.error(format!("needs an expression for `{}`: {} = \"...\"", tensor.name, tensor.name));
            continue;
        };
        let names = match formula(text) {
            Ok(formula) => formula.names,
            Err(error) => {
                check.error(format!("`{}`: {error}", tensor.name));
                is_read = false;
                continue;
            }
        };
        let shape = logical_shape(tensor);
        for name in &names {
            match problem.tensor(name) {
                Some(read) if read.role == Role::Output => check.error(format!(
                    "`{}` reads `{name}`, an output; expressions read inputs, or declare it under `inouts`",
                    tensor.name
                )),
                Some(read) => {
                    let own = logical_shape(read);
                    if super::matmul::broadcast(&own, &shape).as_ref() != Some(&shape) {
                        check.error(format!(
                            "`{name}` has shape {own:?}, which does not broadcast to {shape:?} of `{}`",
                            tensor.name
                        ));
                    }
                }
                None if problem.param(name).is_some() || problem.dims.contains_key(name) || name == "pi" => {}
                None => {
                    let known = problem.read().map(|t| t.name.as_str());
                    let known = known.chain(problem.params.iter().map(|p| p.name.as_str()));
                    let hint = nearest(name, known.chain(problem.dims.keys().map(String::as_str)));
                    check.error(format!("`{}`: unknown name `{name}` in `{text}`{hint}", tensor.name));
                }
            }
        }
        used.extend(names);
    }
    let inputs = problem.tensors.iter().filter(|t| t.role == Role::Input).map(|t| ("input", &t.name));
    for (what, name) in inputs.chain(problem.params.iter().map(|p| ("param", &p.name))) {
        if is_read && !used.contains(name) {
            check.error(format!("no expression uses {what} `{name}`"));
        }
    }
}

/// The values of a name over the elements of an output.
struct Operand<'a, T: Copy> {
    values: Cow<'a, [T]>,
    places: Places,
}

/// The position of the value that belongs to each element.
pub(super) enum Places {
    /// The same position, wrapping: the shape is a suffix of the output's, or one value.
    Wrap,
    /// The listed positions.
    Table(Vec<usize>),
}

impl Places {
    /// For a tensor of the shape `own` that broadcasts to `shape`.
    pub(super) fn new(own: &[usize], shape: &[usize]) -> Self {
        let leading = own.iter().take_while(|extent| **extent == 1).count();
        if shape.ends_with(&own[leading..]) { Places::Wrap } else { Places::Table(broadcast_places(shape, own)) }
    }

    /// The position, among the tensor's `count` values, of the value for element `i`.
    pub(super) fn of(&self, i: usize, count: usize) -> usize {
        match self {
            Places::Wrap => i % count,
            Places::Table(table) => table[i],
        }
    }
}

impl<T: Copy> Operand<'_, T> {
    fn at(&self, i: usize) -> T {
        self.values[self.places.of(i, self.values.len())]
    }
}

fn run(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    let bound = &call.bound;
    let mut produced = Produced::default();
    for (name, text) in sources(bound) {
        let tensor = bound.problem.tensor(name).ok_or_else(|| Error::NoTensor(name.to_owned()))?;
        let Formula { root, names } = formula(text)?;
        let shape = logical_shape(tensor);
        let len = logical_len(tensor);
        if !tensor.dtype.is_float() && is_exact(&root) {
            let operands: Option<Vec<_>> = names.iter().map(|n| exact_operand(call, n, &shape)).collect();
            if let Some(operands) = operands {
                let at = |i: usize| exact(&root, &|n| operands[n].at(i)) as i64;
                produced.put(name, Values::Int(pieces::values(len, at)), None);
                continue;
            }
        }
        let operands: Vec<_> = names.iter().map(|n| operand(call, n, &shape)).collect::<Result<_, _>>()?;
        let values = per_element(&operands, len, |name| value(&root, &|n| name.at(n)));
        let scales = scale.then(|| per_element(&operands, len, |name| magnitude(&root, &|n| name.at(n))));
        produced.put(name, Values::Float(values), scales);
    }
    Ok(produced)
}

/// The values of names at one element.
struct Lookup<'a> {
    operands: &'a [Operand<'a, f64>],
    element: usize,
}

impl Lookup<'_> {
    fn at(&self, name: usize) -> f64 {
        self.operands[name].at(self.element)
    }
}

fn per_element(operands: &[Operand<'_, f64>], len: usize, f: impl Fn(Lookup<'_>) -> f64 + Sync) -> Vec<f64> {
    pieces::values(len, |element| f(Lookup { operands, element }))
}

fn operand<'a>(call: &Call<'a>, name: &str, shape: &[usize]) -> Result<Operand<'a, f64>, Error> {
    let problem = call.bound.problem;
    if let Some(tensor) = problem.tensor(name) {
        let values = floats(input(call.inputs, tensor)?, tensor.dtype);
        return Ok(Operand { values, places: Places::new(&logical_shape(tensor), shape) });
    }
    let value = match (problem.param(name), problem.dims.get(name)) {
        (Some(param), _) => round_to(param.dtype, param.value.as_f64()),
        (None, Some(dim)) => *dim as f64,
        (None, None) if name == "pi" => std::f64::consts::PI,
        (None, None) => return Err(Error::UnknownName(name.to_owned())),
    };
    Ok(Operand { values: Cow::Owned(vec![value]), places: Places::Wrap })
}

/// An operand of integers; none if the name refers to floats.
fn exact_operand(call: &Call<'_>, name: &str, shape: &[usize]) -> Option<Operand<'static, i128>> {
    let problem = call.bound.problem;
    if let Some(tensor) = problem.tensor(name) {
        let Values::Int(values) = input(call.inputs, tensor).ok()? else { return None };
        let wide = |v: &i64| if tensor.dtype == DType::U64 { i128::from(*v as u64) } else { i128::from(*v) };
        let values = Cow::Owned(values.iter().map(wide).collect());
        return Some(Operand { values, places: Places::new(&logical_shape(tensor), shape) });
    }
    let value = match problem.param(name) {
        Some(param) => param.value.as_i64()?,
        None => *problem.dims.get(name)?,
    };
    Some(Operand { values: Cow::Owned(vec![i128::from(value)]), places: Places::Wrap })
}
