//! An expression as a tree, with the place of each part in the text.

use std::ops::Range;

use super::functions::{self, Function};

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// The root of the tree, which gives the value.
    pub root: Node,
    /// The names that the expression uses, in the order of their first use.
    pub names: Vec<String>,
}

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its place in the text, in bytes.
    pub at: Range<usize>,
    /// The kind of part.
    pub kind: NodeKind,
}

/// The kinds of parts of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeKind {
    /// An integer, at most the largest unsigned 64-bit integer.
    Int(i128),
    /// A float.
    Float(f64),
    /// `true` or `false`.
    Truth(bool),
    /// A string, without its quotes.
    Str(String),
    /// A name, by its position in [`Tree::names`].
    Name(usize),
    /// A part in parentheses.
    Group(Box<Node>),
    /// The negative.
    Negate(Box<Node>),
    /// The opposite truth value.
    Not(Box<Node>),
    /// Arithmetic, with the place of its operator.
    Arithmetic(Arithmetic, Range<usize>, Box<[Node; 2]>),
    /// A chain of comparisons, at least one: `a < b <= c` compares `a` with `b` and `b` with `c`.
    Compare(Box<Node>, Vec<(Comparison, Node)>),
    /// `and` or `or`. The result is the operand that decides.
    Logic(Logic, Box<[Node; 2]>),
    /// `yes if condition else no`, in the order condition, yes, no.
    If(Box<[Node; 3]>),
    /// A call of a function with a valid number of arguments.
    Call(&'static Function, Vec<Node>),
}

/// An operator of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `//`
    FloorDivide,
    /// `%`
    Remainder,
    /// `**`
    Power,
}

impl Arithmetic {
    /// Its result on two floats. A division by zero follows IEEE 754.
    pub fn floats(self, a: f64, b: f64) -> f64 {
        match self {
            Arithmetic::Add => a + b,
            Arithmetic::Subtract => a - b,
            Arithmetic::Multiply => a * b,
            Arithmetic::Divide => a / b,
            Arithmetic::FloorDivide => functions::floor_divide(a, b),
            Arithmetic::Remainder => functions::remainder(a, b),
            Arithmetic::Power => functions::power(a, b),
        }
    }
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}

impl Comparison {
    /// The sign in this language and in C.
    pub fn sign(self) -> &'static str {
        match self {
            Comparison::Less => "<",
            Comparison::LessEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterEqual => ">=",
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
        }
    }

    /// Whether the comparison of two values holds. A NaN differs from everything and has no order.
    pub fn holds<T: PartialOrd>(self, a: &T, b: &T) -> bool {
        match self {
            Comparison::Less => a < b,
            Comparison::LessEqual => a <= b,
            Comparison::Greater => a > b,
            Comparison::GreaterEqual => a >= b,
            Comparison::Equal => a == b,
            Comparison::NotEqual => a != b,
        }
    }
}

/// A choice between two operands by the truth of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logic {
    /// The first operand if it is false or zero, else the second.
    And,
    /// The first operand unless it is false or zero, else the second.
    Or,
}

impl Node {
    /// The direct parts of this part, in the order of [`NodeKind`].
    pub fn parts(&self) -> Vec<&Node> {
        match &self.kind {
            NodeKind::Int(_) | NodeKind::Float(_) | NodeKind::Truth(_) | NodeKind::Str(_) | NodeKind::Name(_) => vec![],
            NodeKind::Group(inner) | NodeKind::Negate(inner) | NodeKind::Not(inner) => vec![inner],
            NodeKind::Arithmetic(_, _, pair) | NodeKind::Logic(_, pair) => pair.iter().collect(),
            NodeKind::Compare(first, rest) => std::iter::once(&**first).chain(rest.iter().map(|r| &r.1)).collect(),
            NodeKind::If(three) => three.iter().collect(),
            NodeKind::Call(_, arguments) => arguments.iter().collect(),
        }
    }
}
