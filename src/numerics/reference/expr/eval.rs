//! The value of an expression at one element: in f64, exactly over integers, and its scale. Knows no tensors: names are looked up by a function.

use super::function::{FunctionKind, maximum, minimum};
use super::{Expr, Operator};

/// The value, `name` giving the value of each name.
pub(in crate::reference) fn value(expr: &Expr, name: &impl Fn(usize) -> f64) -> f64 {
    match expr {
        Expr::Number(number) => *number,
        Expr::Name(position) => name(*position),
        Expr::Negate(inner) => -value(inner, name),
        Expr::Binary(operator, left, right) => binary(*operator, value(left, name), value(right, name)),
        Expr::Call(function, arguments) => {
            let argument = |i: usize| value(&arguments[i], name);
            match function.kind {
                FunctionKind::One(f, _) => f(argument(0)),
                FunctionKind::Two(f) => f(argument(0), argument(1)),
                FunctionKind::Where if argument(0) != 0.0 => argument(1),
                FunctionKind::Where => argument(2),
                FunctionKind::Clamp => minimum(maximum(argument(0), argument(1)), argument(2)),
            }
        }
    }
}

fn binary(operator: Operator, a: f64, b: f64) -> f64 {
    let truth = |holds: bool| f64::from(u8::from(holds));
    match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        // Small whole powers by multiplication, as anyone would compute them: exact where the products are.
        Operator::Power if b == 2.0 => a * a,
        Operator::Power => libm::pow(a, b),
        Operator::Less => truth(a < b),
        Operator::LessEqual => truth(a <= b),
        Operator::Greater => truth(a > b),
        Operator::GreaterEqual => truth(a >= b),
        Operator::Equal => truth(a == b),
        Operator::NotEqual => truth(a != b),
    }
}

/// The expression on absolute values: sums and differences add scales, products multiply them, a quotient divides by the divisor's magnitude;
/// functions that grow no faster than their argument (`relu`, `gelu`, `abs`, ...) keep its scale, others have the magnitude of their value.
pub(in crate::reference) fn magnitude(expr: &Expr, name: &impl Fn(usize) -> f64) -> f64 {
    match expr {
        Expr::Number(_) | Expr::Name(_) => value(expr, name).abs(),
        Expr::Negate(inner) => magnitude(inner, name),
        Expr::Binary(Operator::Add | Operator::Subtract, a, b) => magnitude(a, name) + magnitude(b, name),
        Expr::Binary(Operator::Multiply, a, b) => magnitude(a, name) * magnitude(b, name),
        Expr::Binary(Operator::Divide, a, b) => magnitude(a, name) / value(b, name).abs(),
        Expr::Binary(..) => value(expr, name).abs(),
        Expr::Call(function, arguments) => match function.kind {
            FunctionKind::One(_, true) => magnitude(&arguments[0], name),
            FunctionKind::Where if value(&arguments[0], name) != 0.0 => magnitude(&arguments[1], name),
            FunctionKind::Where => magnitude(&arguments[2], name),
            FunctionKind::Two(_) if matches!(function.name, "min" | "max") => {
                magnitude(&arguments[0], name).max(magnitude(&arguments[1], name))
            }
            _ => value(expr, name).abs(),
        },
    }
}

/// Whether the expression can be evaluated over integers exactly: literals are whole, operators and functions neither divide nor round.
pub(in crate::reference) fn is_exact(expr: &Expr) -> bool {
    match expr {
        Expr::Number(number) => number.fract() == 0.0 && number.abs() < 9e15,
        Expr::Name(_) => true,
        Expr::Negate(inner) => is_exact(inner),
        Expr::Binary(Operator::Divide | Operator::Power, ..) => false,
        Expr::Binary(_, a, b) => is_exact(a) && is_exact(b),
        Expr::Call(function, arguments) => {
            matches!(function.name, "min" | "max" | "abs" | "relu" | "where" | "clamp")
                && arguments.iter().all(is_exact)
        }
    }
}

/// The value over integers, in 128 bits, wrapping beyond; only for what [`is_exact`] holds of.
pub(in crate::reference) fn exact(expr: &Expr, name: &impl Fn(usize) -> i128) -> i128 {
    match expr {
        Expr::Number(number) => *number as i128,
        Expr::Name(position) => name(*position),
        Expr::Negate(inner) => exact(inner, name).wrapping_neg(),
        Expr::Binary(operator, left, right) => {
            let (a, b) = (exact(left, name), exact(right, name));
            match operator {
                Operator::Add => a.wrapping_add(b),
                Operator::Subtract => a.wrapping_sub(b),
                Operator::Multiply => a.wrapping_mul(b),
                Operator::Less => i128::from(a < b),
                Operator::LessEqual => i128::from(a <= b),
                Operator::Greater => i128::from(a > b),
                Operator::GreaterEqual => i128::from(a >= b),
                Operator::Equal => i128::from(a == b),
                Operator::NotEqual => i128::from(a != b),
                // Not reached: `is_exact` refuses these.
                Operator::Divide | Operator::Power => 0,
            }
        }
        Expr::Call(function, arguments) => {
            let argument = |i: usize| exact(&arguments[i], name);
            match function.name {
                "min" => argument(0).min(argument(1)),
                "max" => argument(0).max(argument(1)),
                "abs" => argument(0).wrapping_abs(),
                "relu" => argument(0).max(0),
                "clamp" => argument(0).max(argument(1)).min(argument(2)),
                _ if argument(0) != 0 => argument(1),
                _ => argument(2),
            }
        }
    }
}

/// How many operations an element takes: one an operator or function.
pub(in crate::reference) fn operations(expr: &Expr) -> u64 {
    match expr {
        Expr::Number(_) | Expr::Name(_) => 0,
        Expr::Negate(inner) => 1 + operations(inner),
        Expr::Binary(_, a, b) => 1 + operations(a) + operations(b),
        Expr::Call(_, arguments) => 1 + arguments.iter().map(operations).sum::<u64>(),
    }
}
