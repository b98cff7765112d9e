//! The value of an expression at one element: in f64, exactly over integers, and its scale. Knows no tensors: names are looked up by a function.

use kforge_types::model::expr::functions::{self, Function, FunctionKind};
use kforge_types::model::expr::{Arithmetic, Comparison, Logic};

use super::Element;

/// The value of an expression; `name` returns the value of each name.
pub(in crate::reference) fn value(element: &Element, name: &impl Fn(usize) -> f64) -> f64 {
    match element {
        Element::Number(number) => *number,
        Element::Name(position) => name(*position),
        Element::Negate(inner) => -value(inner, name),
        Element::Not(inner) => truth(value(inner, name) == 0.0),
        Element::Arithmetic(operator, pair) => operator.floats(value(&pair[0], name), value(&pair[1], name)),
        Element::Compare(first, rest) => truth(holds(first, rest, |e| value(e, name))),
        Element::Logic(logic, pair) => match value(&pair[0], name) {
            first if decides(*logic, first != 0.0) => first,
            _ => value(&pair[1], name),
        },
        Element::If(three) => value(&three[chosen(value(&three[0], name) != 0.0)], name),
        Element::Call(function, arguments) => call(function, arguments, |e| value(e, name)),
    }
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// Whether the truth of the first operand decides.
fn decides(logic: Logic, first: bool) -> bool {
    first == (logic == Logic::Or)
}

/// Which part of an [`Element::If`] is its value.
fn chosen(condition: bool) -> usize {
    if condition { 1 } else { 2 }
}

fn holds<T: PartialOrd>(first: &Element, rest: &[(Comparison, Element)], value: impl Fn(&Element) -> T) -> bool {
    let mut left = value(first);
    rest.iter().all(|(comparison, right)| {
        let right = value(right);
        let holds = comparison.holds(&left, &right);
        left = right;
        holds
    })
}

fn call(function: &Function, arguments: &[Element], value: impl Fn(&Element) -> f64) -> f64 {
    let at = |i: usize| value(&arguments[i]);
    let rest = || arguments[1..].iter().map(&value);
    match function.kind {
        FunctionKind::One(f) | FunctionKind::Round(f) => f(at(0)),
        FunctionKind::Two(f) => f(at(0), at(1)),
        FunctionKind::Float => at(0),
        FunctionKind::Abs => at(0).abs(),
        FunctionKind::Sign => functions::sign(at(0)),
        FunctionKind::Relu => functions::relu(at(0)),
        FunctionKind::Min => rest().fold(at(0), functions::minimum),
        FunctionKind::Max => rest().fold(at(0), functions::maximum),
        FunctionKind::Clamp => functions::clamp(at(0), at(1), at(2)),
        FunctionKind::CeilDiv => functions::ceil_div(at(0), at(1)),
        FunctionKind::Where | FunctionKind::Sizeof => unreachable!("BUG: `{}` is compiled away", function.name),
    }
}

/// Functions that grow no faster than their argument, so that the argument's scale bounds their own.
const FOLLOWING: [&str; 6] = ["abs", "relu", "gelu", "gelu_tanh", "silu", "softplus"];

/// The expression on absolute values: sums and differences add scales, products multiply them, a quotient divides by the divisor's magnitude;
/// functions that grow no faster than their argument (`relu`, `gelu`, `abs`, ...) keep its scale, others have the magnitude of their value.
pub(in crate::reference) fn magnitude(element: &Element, name: &impl Fn(usize) -> f64) -> f64 {
    let scale = |element: &Element| magnitude(element, name);
    match element {
        Element::Negate(inner) => scale(inner),
        Element::Arithmetic(Arithmetic::Add | Arithmetic::Subtract, pair) => scale(&pair[0]) + scale(&pair[1]),
        Element::Arithmetic(Arithmetic::Multiply, pair) => scale(&pair[0]) * scale(&pair[1]),
        Element::Arithmetic(Arithmetic::Divide, pair) => scale(&pair[0]) / value(&pair[1], name).abs(),
        Element::Logic(logic, pair) => {
            let first = decides(*logic, value(&pair[0], name) != 0.0);
            scale(&pair[usize::from(!first)])
        }
        Element::If(three) => scale(&three[chosen(value(&three[0], name) != 0.0)]),
        Element::Call(function, arguments) if FOLLOWING.contains(&function.name) || is_float(function) => {
            scale(&arguments[0])
        }
        Element::Call(Function { kind: FunctionKind::Min | FunctionKind::Max, .. }, arguments) => {
            arguments.iter().map(scale).fold(0.0, f64::max)
        }
        _ => value(element, name).abs(),
    }
}

fn is_float(function: &Function) -> bool {
    matches!(function.kind, FunctionKind::Float)
}

/// Whether the expression can be evaluated exactly over integers: literals are whole, and operators and functions neither round nor
/// divide, except by a nonzero whole literal.
pub(in crate::reference) fn is_exact(element: &Element) -> bool {
    match element {
        Element::Number(number) => number.fract() == 0.0 && number.abs() < 9e15,
        Element::Name(_) => true,
        Element::Negate(inner) | Element::Not(inner) => is_exact(inner),
        Element::Arithmetic(Arithmetic::Divide | Arithmetic::Power, _) => false,
        Element::Arithmetic(Arithmetic::FloorDivide | Arithmetic::Remainder, pair) => {
            divides_exactly(&pair[0], &pair[1])
        }
        Element::Arithmetic(_, pair) | Element::Logic(_, pair) => pair.iter().all(is_exact),
        Element::Compare(first, rest) => is_exact(first) && rest.iter().all(|r| is_exact(&r.1)),
        Element::If(three) => three.iter().all(is_exact),
        Element::Call(function, arguments) => match function.kind {
            FunctionKind::Abs | FunctionKind::Relu | FunctionKind::Min | FunctionKind::Max | FunctionKind::Clamp => {
                arguments.iter().all(is_exact)
            }
            FunctionKind::CeilDiv => divides_exactly(&arguments[0], &arguments[1]),
            _ => false,
        },
    }
}

fn divides_exactly(a: &Element, b: &Element) -> bool {
    is_exact(a) && is_exact(b) && matches!(b, Element::Number(number) if *number != 0.0)
}

/// The value over integers, in 128 bits, wrapping beyond; only for expressions that satisfy [`is_exact`].
pub(in crate::reference) fn exact(element: &Element, name: &impl Fn(usize) -> i128) -> i128 {
    let int = |element: &Element| exact(element, name);
    match element {
        Element::Number(number) => *number as i128,
        Element::Name(position) => name(*position),
        Element::Negate(inner) => int(inner).wrapping_neg(),
        Element::Not(inner) => i128::from(int(inner) == 0),
        Element::Arithmetic(operator, pair) => {
            let (a, b) = (int(&pair[0]), int(&pair[1]));
            match operator {
                Arithmetic::Add => a.wrapping_add(b),
                Arithmetic::Subtract => a.wrapping_sub(b),
                Arithmetic::Multiply => a.wrapping_mul(b),
                Arithmetic::FloorDivide => functions::floor_divide_exact(a, b).unwrap_or(a),
                Arithmetic::Remainder => a.checked_rem_euclid(b).unwrap_or(0),
                Arithmetic::Divide | Arithmetic::Power => unreachable!("BUG: these are not exact"),
            }
        }
        Element::Compare(first, rest) => i128::from(holds(first, rest, int)),
        Element::Logic(logic, pair) => match int(&pair[0]) {
            first if decides(*logic, first != 0) => first,
            _ => int(&pair[1]),
        },
        Element::If(three) => int(&three[chosen(int(&three[0]) != 0)]),
        Element::Call(function, arguments) => exact_call(function, arguments, int),
    }
}

fn exact_call(function: &Function, arguments: &[Element], int: impl Fn(&Element) -> i128) -> i128 {
    let at = |i: usize| int(&arguments[i]);
    let rest = || arguments[1..].iter().map(&int);
    match function.kind {
        FunctionKind::Abs => at(0).wrapping_abs(),
        FunctionKind::Relu => at(0).max(0),
        FunctionKind::Min => rest().fold(at(0), i128::min),
        FunctionKind::Max => rest().fold(at(0), i128::max),
        FunctionKind::Clamp => at(0).max(at(1)).min(at(2)),
        FunctionKind::CeilDiv => functions::ceil_div_exact(at(0), at(1)).unwrap_or_else(|| at(0)),
        _ => unreachable!("BUG: `{}` is not exact", function.name),
    }
}

/// How many operations an element takes: one per operator or function, and one for each comparison of a chain.
pub(in crate::reference) fn operations(element: &Element) -> u64 {
    let all = |elements: &[Element]| elements.iter().map(operations).sum::<u64>();
    match element {
        Element::Number(_) | Element::Name(_) => 0,
        Element::Negate(inner) | Element::Not(inner) => 1 + operations(inner),
        Element::Arithmetic(_, pair) | Element::Logic(_, pair) => 1 + all(&pair[..]),
        Element::Compare(first, rest) => operations(first) + rest.iter().map(|r| 1 + operations(&r.1)).sum::<u64>(),
        Element::If(three) => 1 + all(&three[..]),
        Element::Call(function, arguments) if is_float(function) => all(arguments),
        Element::Call(_, arguments) => 1 + all(arguments),
    }
}
