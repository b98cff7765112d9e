//! Expressions of `elementwise` as a tree, for translation into another language. Knows only the language; `expr` evaluates it.

use super::error::ExpressionError;
use super::expr::{self, Expr, Operator};

/// An expression of `elementwise`.
#[derive(Debug, Clone, PartialEq)]
pub enum Formula {
    /// A literal.
    Number(f64),
    /// A tensor, param or dim by its name, or `pi`.
    Name(String),
    /// The negative.
    Negate(Box<Formula>),
    /// Two operands: one of `+ - * / ** < <= > >= == !=`. A comparison gives 1 or 0.
    Binary(&'static str, Box<Formula>, Box<Formula>),
    /// A function by its name with as many arguments as it takes.
    Call(&'static str, Vec<Formula>),
}

/// Reads an expression. Errors name the column and what was expected there.
pub fn formula(text: &str) -> Result<Formula, ExpressionError> {
    let (expr, names) = expr::parse(text)?;
    Ok(tree(&expr, &names))
}

fn tree(expr: &Expr, names: &[String]) -> Formula {
    let inner = |expr: &Expr| Box::new(tree(expr, names));
    match expr {
        Expr::Number(number) => Formula::Number(*number),
        Expr::Name(position) => Formula::Name(names[*position].clone()),
        Expr::Negate(operand) => Formula::Negate(inner(operand)),
        Expr::Binary(operator, left, right) => Formula::Binary(sign(*operator), inner(left), inner(right)),
        Expr::Call(function, arguments) => {
            Formula::Call(function.name, arguments.iter().map(|a| tree(a, names)).collect())
        }
    }
}

/// How an operator is written.
fn sign(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Subtract => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
        Operator::Power => "**",
        Operator::Less => "<",
        Operator::LessEqual => "<=",
        Operator::Greater => ">",
        Operator::GreaterEqual => ">=",
        Operator::Equal => "==",
        Operator::NotEqual => "!=",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_keeps_its_structure_and_its_names() {
        let name = |n: &str| Box::new(Formula::Name(n.into()));
        let sum = Formula::Binary("+", name("x"), name("b"));
        assert_eq!(formula("gelu(x + b)").unwrap(), Formula::Call("gelu", vec![sum]));
        assert_eq!(
            formula("-x ** 2").unwrap(),
            Formula::Negate(Box::new(Formula::Binary("**", name("x"), Box::new(Formula::Number(2.0)))))
        );
        assert!(formula("gelu(x").is_err());
    }
}
