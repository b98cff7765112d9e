//! Diagnoses as sentences for people. Knows extents; decides nothing.

use super::super::compare::show;
use kforge_types::model::DType;
use kforge_types::record::{Arrangement, Axis, Diagnosis, Function, OutputObserved, WrongPattern};

/// A diagnosis as a sentence without a full stop, about an output that was named before.
pub fn sentence(diagnosis: &Diagnosis, seen: &OutputObserved) -> String {
    let Diagnosis { pattern, wrong, explained, whole } = diagnosis;
    let each = if *whole { "every element" } else { "every wrong element" };
    let text = match pattern {
        WrongPattern::ElementType { dtype, values } => {
            let which = if *values == seen.elements { "the".into() } else { format!("the first {values}") };
            format!(
                "its bytes are {which} expected values in {dtype}: the kernel writes {dtype}, and the manifest declares {}",
                seen.dtype
            )
        }
        WrongPattern::ElementSize { bytes } => {
            let part = if bytes * 2 == seen.dtype.bytes() { "half" } else { "quarter" };
            let rounded = if (seen.elements * bytes).is_multiple_of(seen.dtype.bytes()) {
                ""
            } else {
                ", rounded up to a whole element,"
            };
            // What was written may be correct or not, so only the bytes are explained.
            return format!(
                "exactly the first {part} of its bytes{rounded} is written, as by a kernel whose elements have {} where those of {} have {}, or by one that is launched for a {part} of the elements",
                kforge_foundation::base::count(*bytes, "byte"),
                seen.dtype,
                seen.dtype.bytes()
            );
        }
        WrongPattern::Transposed { axes: (a, b) } => transposed(seen, (*a, *b), *whole),
        WrongPattern::Shifted { axis, by, rotated } => shifted(seen, axis.as_ref(), *by, *rotated, *whole),
        WrongPattern::Slices { axis, arrangement, slices, first } => moved(seen, axis, *arrangement, *slices, first),
        WrongPattern::Negated => format!("{each} has the opposite sign"),
        WrongPattern::Factor { factor, dim } => factored(each, *factor, dim.as_deref()),
        WrongPattern::Offset { by } => {
            let way = if *by > 0.0 { "above" } else { "below" };
            format!("{each} is {} {way} its expected value", show(DType::F64, by.abs()))
        }
        WrongPattern::Function { function } => {
            let of = match function {
                Function::Reciprocal => "reciprocal",
                Function::Square => "square",
                Function::SquareRoot => "square root",
                Function::Magnitude => "magnitude",
                Function::Exponential => "exponential",
                Function::Logarithm => "natural logarithm",
            };
            format!("{each} is the {of} of its expected value")
        }
        WrongPattern::RowFactors { least, most } => format!(
            "every wrong row along the last axis is its expected values times a number of its own, from {} to {}",
            show(DType::F64, *least),
            show(DType::F64, *most)
        ),
        WrongPattern::Constant { value } => format!("{each} is {value}"),
    };
    let rest = wrong - explained;
    match rest {
        0 => text,
        1 => format!("{text}; 1 of {wrong} elements that are far off, at the edge, has no such element"),
        _ => format!("{text}; {rest} of {wrong} elements that are far off, at the edge, have no such element"),
    }
}

/// A list of extents.
fn extents(shape: &[u64]) -> String {
    let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("[{}]", shape.join(", "))
}

/// An axis in words: `axis 1`, with the dim that has its extent.
fn named(axis: &Axis) -> String {
    match &axis.dim {
        Some(dim) => format!("axis {} (extent {}, as `{dim}`)", axis.axis, axis.extent),
        None => format!("axis {} (extent {})", axis.axis, axis.extent),
    }
}

fn transposed(seen: &OutputObserved, (a, b): (u32, u32), whole: bool) -> String {
    let matrix = seen.shape.len() == 2;
    match (whole, matrix) {
        (true, true) if seen.shape[0] == seen.shape[1] => "it is the transpose of the expected output".into(),
        (true, _) => {
            let mut written = seen.shape.clone();
            written.swap(a as usize, b as usize);
            let what = if matrix {
                "it is the transpose of the expected output".to_string()
            } else {
                format!("it is the expected output with axes {a} and {b} exchanged")
            };
            match written == seen.shape {
                true => what,
                false => format!("{what}: laid out as {}, not {}", extents(&written), extents(&seen.shape)),
            }
        }
        (false, true) => "every wrong element holds the expected value of the transposed place".into(),
        (false, false) => {
            format!("every wrong element holds the expected value of the place with axes {a} and {b} exchanged")
        }
    }
}

/// What the slices along an axis are called.
fn slices(seen: &OutputObserved, axis: u32) -> (&'static str, &'static str) {
    match (seen.shape.len(), axis) {
        (0 | 1, _) => ("element", "elements"),
        (2, 0) => ("row", "rows"),
        (2, _) => ("column", "columns"),
        _ => ("slice", "slices"),
    }
}

fn shifted(seen: &OutputObserved, axis: Option<&Axis>, by: i64, rotated: bool, whole: bool) -> String {
    let one = axis.map_or("element", |axis| slices(seen, axis.axis).0);
    let along = match axis {
        Some(axis) if one == "slice" => format!("along {}, ", named(axis)),
        _ => String::new(),
    };
    let which = if whole { "" } else { "wrong " };
    let values = if one == "element" { "value" } else { "values" };
    let sign = if by < 0 { '-' } else { '+' };
    let distance = by.unsigned_abs();
    let end = match (rotated, axis) {
        (true, Some(axis)) => format!(", modulo {}", axis.extent),
        _ => String::new(),
    };
    format!("{along}{which}{one} i holds the expected {values} of {one} i {sign} {distance}{end}")
}

fn moved(seen: &OutputObserved, axis: &Axis, arrangement: Arrangement, count: u64, first: &[(u64, u64)]) -> String {
    let (one, many) = slices(seen, axis.axis);
    let along = if one == "slice" { format!(" along {}", named(axis)) } else { String::new() };
    match (arrangement, first) {
        (Arrangement::Swapped, [(a, b), ..]) => format!("{many} {a} and {b}{along} are swapped"),
        (Arrangement::Reversed, _) => format!("the {many}{along} are in the opposite order"),
        (Arrangement::Repeated, [(_, from), ..]) => {
            format!("every wrong {one}{along} holds the expected values of {one} {from}")
        }
        _ => {
            let pairs: Vec<String> = first.iter().map(|(at, from)| format!("{at} those of {from}")).collect();
            let more = if first.len() as u64 == count { "" } else { ", and so on" };
            format!("every wrong {one}{along} holds the expected values of another: {one} {}{more}", pairs.join(", "))
        }
    }
}

fn factored(each: &str, factor: f64, dim: Option<&str>) -> String {
    let inverse = 1.0 / factor;
    let is_share = factor.abs() < 1.0 && inverse.fract() == 0.0;
    let (text, value) = match is_share {
        true => (format!("1/{}", show(DType::F64, inverse)), inverse.abs()),
        false => (show(DType::F64, factor), factor.abs()),
    };
    let dim = dim.map(|dim| format!("; {} is the value of `{dim}`", show(DType::F64, value))).unwrap_or_default();
    let times = if is_share { "of" } else { "times" };
    format!("{each} is {text} {times} its expected value{dim}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::compare::Comparison;

    #[test]
    fn half_of_an_odd_number_of_elements_is_said_to_be_rounded() {
        let text = |elements: u64| {
            let seen = Comparison::new("y", DType::F32, &[elements], 1.0, None).finish();
            let seen = OutputObserved { elements, ..seen };
            let pattern = WrongPattern::ElementSize { bytes: 2 };
            sentence(&Diagnosis { pattern, wrong: elements / 2, explained: elements / 2, whole: false }, &seen)
        };
        assert!(text(1028).starts_with("exactly the first half of its bytes is written"), "{}", text(1028));
        let rounded = "exactly the first half of its bytes, rounded up to a whole element, is written";
        assert!(text(1029).starts_with(rounded), "{}", text(1029));
    }
}
