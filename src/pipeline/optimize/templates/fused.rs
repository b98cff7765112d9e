//! An elementwise operator as code: which element of each input belongs to an element of the outputs, and the expressions. Knows shapes as the manifest writes
//! them; two extents are the same if they are written the same.

use std::collections::BTreeSet;

use serde::Serialize;

use super::context::{Context, Tensor};
use super::{cpp, python};
use kforge_numerics::reference::formula;
use kforge_types::model::Language;

/// A fused operator.
#[derive(Debug, Serialize)]
pub(super) struct Fused {
    /// Every tensor that is read, with the positions of its elements.
    reads: Vec<Read>,
    /// Every tensor that is written, with its value.
    writes: Vec<Write>,
    /// The other names in the expressions: declared as `code` with C++ type `element`, and passed as `value` of `dtype`.
    scalars: Vec<Scalar>,
    /// The same for the extents in the positions of broadcast inputs.
    extents: Vec<Scalar>,
    /// An expression for the number of elements of an output.
    count: String,
    /// An expression for the extent of the last axis; empty if every input has the outputs' shape, because rows do not matter then.
    last: String,
    /// The functions of `math` that the expressions call.
    functions: Vec<String>,
}

/// A tensor that is read.
#[derive(Debug, Serialize)]
struct Read {
    #[serde(flatten)]
    tensor: Tensor,
    /// The position of the element that belongs to element `i` of the outputs, in the kernel's language.
    place: String,
    /// Whether neighboring elements of the outputs use the same element.
    single: bool,
}

/// A tensor that is written.
#[derive(Debug, Serialize)]
struct Write {
    #[serde(flatten)]
    tensor: Tensor,
    /// The expression as the manifest states it, in one line.
    text: String,
    /// The same in the kernel's language.
    value: String,
}

/// A scalar argument.
#[derive(Debug, Clone, Serialize)]
struct Scalar {
    code: String,
    element: String,
    value: String,
    /// Its dtype, if it must be declared.
    dtype: String,
}

/// The operator as code. Error: why it cannot be written as code.
pub(super) fn of(context: &Context) -> Result<Fused, String> {
    let written: Vec<&Tensor> = context.tensors.iter().filter(|t| t.role != "input").collect();
    let Some(first) = written.first() else { return Err("it writes nothing".into()) };
    let shape = &first.shape;
    if let Some(other) = written.iter().find(|t| t.shape != *shape) {
        return Err(format!("`{}` and `{}` have shapes that are written differently", first.name, other.name));
    }
    if let Some(tensor) = written.iter().find(|t| t.dtypes.iter().any(|d| !d.is_float())) {
        return Err(format!("`{}` holds integers, but the template computes floats", tensor.name));
    }
    let (mut functions, mut named, mut writes) = (BTreeSet::new(), BTreeSet::new(), vec![]);
    for tensor in &written {
        let text = context.attributes.get(&tensor.name).and_then(|v| v.as_str());
        let text = text.ok_or_else(|| format!("it states no expression for `{}`", tensor.name))?;
        let formula = formula(text).map_err(|e| e.to_string())?;
        let seen = std::cell::RefCell::new(BTreeSet::new());
        let name = |word: &str| {
            seen.borrow_mut().insert(word.to_string());
            value_of(context, word)
        };
        let value = match context.language {
            Language::Cuda => cpp::expression(&formula, &name, &mut functions),
            Language::Triton | Language::Torch => python::expression(&formula, &name, &mut functions),
        };
        named.extend(seen.take());
        writes.push(Write {
            tensor: (*tensor).clone(),
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
            value,
        });
    }
    let (mut reads, mut extents) = (vec![], vec![]);
    for tensor in context.tensors.iter().filter(|t| t.role != "output" && named.contains(&t.name)) {
        let (place, single) = place(tensor, first, context.language, &mut extents)?;
        reads.push(Read { tensor: tensor.clone(), place, single });
    }
    let params = context.params.iter().filter(|p| named.contains(&p.name)).map(|p| Scalar {
        code: p.code.clone(),
        element: p.element.clone(),
        value: p.name.clone(),
        dtype: String::new(),
    });
    let dims = context.dims.iter().filter(|d| named.contains(*d)).map(|d| long(&format!("{d}_"), d));
    let scalars = params.chain(dims).collect();
    // A scalar output has a row of one element.
    let last = shape.last().cloned().unwrap_or_else(|| "1".into());
    let flat = reads.iter().all(|read| read.place == "i");
    Ok(Fused {
        count: product(shape),
        last: if flat { String::new() } else { last },
        reads,
        writes,
        scalars,
        extents,
        functions: functions.into_iter().collect(),
    })
}

/// The value of a name: the current element of a tensor, or the argument for a param or dim.
fn value_of(context: &Context, word: &str) -> String {
    match (context.language, context.tensors.iter().find(|t| t.name == word)) {
        (_, Some(tensor)) => format!("{}_at", tensor.name),
        (Language::Cuda, None) => format!("real({word}_)"),
        (Language::Triton | Language::Torch, None) => format!("{word}_at"),
    }
}

/// A quotient or a remainder of positions.
fn divided(language: Language, function: &str, a: &str, b: &str) -> String {
    match (language, function) {
        (Language::Cuda, _) => format!("{function}({a}, {b})"),
        (Language::Triton | Language::Torch, "modulo") => format!("({a} % {b})"),
        (Language::Triton | Language::Torch, _) => format!("({a} // {b})"),
    }
}

fn long(code: &str, value: &str) -> Scalar {
    Scalar { code: code.into(), element: "long long".into(), value: value.into(), dtype: "i64".into() }
}

/// The product of extents.
fn product(shape: &[String]) -> String {
    let plain = |e: &String| e.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let factor = |e: &String| if plain(e) { e.clone() } else { format!("({e})") };
    let factors: Vec<String> = shape.iter().filter(|e| *e != "1").map(factor).collect();
    if factors.is_empty() { "1".into() } else { factors.join(" * ") }
}

/// The position of the tensor's element that belongs to element `i` of the outputs, and whether it is the same along the last axis.
fn place(
    tensor: &Tensor,
    output: &Tensor,
    language: Language,
    extents: &mut Vec<Scalar>,
) -> Result<(String, bool), String> {
    let (own, full) = (&tensor.shape, &output.shape);
    let Some(ahead) = full.len().checked_sub(own.len()) else {
        return Err(format!("`{}` has more axes than `{}`", tensor.name, output.name));
    };
    // Which axes of the output the tensor has. It is broadcast along the others.
    let mut kept = vec![false; full.len()];
    for (axis, extent) in full.iter().enumerate() {
        let Some(there) = axis.checked_sub(ahead).map(|a| &own[a]) else { continue };
        kept[axis] = there == extent && extent != "1";
        if there != extent && there != "1" {
            let (name, other) = (&tensor.name, &output.name);
            return Err(format!(
                "an axis of `{name}` is written `{there}` and that of `{other}` `{extent}`: this does not show whether it broadcasts"
            ));
        }
    }
    let axes = |of: &[bool]| full.iter().zip(of).filter(|(_, k)| **k).map(|(e, _)| e.clone()).collect::<Vec<_>>();
    // An axis of one element is neither kept nor broadcast.
    let stretched: Vec<bool> = kept.iter().zip(full).map(|(k, extent)| !k && extent != "1").collect();
    let single = kept.last().is_none_or(|last| !last);
    let mut extent = |word: &str, value: String| {
        let code = format!("{}_{word}", tensor.name);
        extents.push(long(&code, &value));
        code
    };
    let position =
        |of: &[bool], last: bool| if last { of.iter().rposition(|k| *k) } else { of.iter().position(|k| *k) };
    let place = match (position(&kept, false), position(&kept, true)) {
        (None, _) | (_, None) => "0".into(),
        _ if !stretched.contains(&true) => "i".into(),
        (Some(first), _) if position(&stretched, true).is_some_and(|s| s < first) => {
            divided(language, "modulo", "i", &extent("period", product(&axes(&kept))))
        }
        (_, Some(last)) if position(&stretched, false).is_some_and(|s| s > last) => {
            divided(language, "quotient", "i", &extent("repeat", product(&axes(&stretched))))
        }
        _ => {
            // For each kept axis: the coordinate along it, times the number of the tensor's elements below it.
            let mut terms = vec![];
            for axis in (0..full.len()).filter(|a| kept[*a]) {
                let below = product(&full[axis + 1..]);
                let own = product(&axes(&kept)[kept[..=axis].iter().filter(|k| **k).count()..]);
                let mut term = "i".to_string();
                if below != "1" {
                    term = divided(language, "quotient", &term, &extent(&format!("below{axis}"), below));
                }
                if axes(&kept[..axis]).len() + axes(&stretched[..axis]).len() > 0 {
                    term = divided(language, "modulo", &term, &extent(&format!("extent{axis}"), full[axis].clone()));
                }
                if own != "1" {
                    term = format!("{term} * {}", extent(&format!("stride{axis}"), own));
                }
                terms.push(term);
            }
            terms.join(" + ")
        }
    };
    Ok((place, single))
}
