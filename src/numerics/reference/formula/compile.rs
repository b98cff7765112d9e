//! Compiles the tree of an expression to what is computed for each element.

use std::ops::Range;

use super::{Element, Formula};
use crate::reference::error::{ExpressionError, ExpressionFault};
use kforge_types::model::DType;
use kforge_types::model::expr::functions::FunctionKind;
use kforge_types::model::expr::{Node, NodeKind, parse};

/// Reads an expression of `elementwise`. Fails on syntax errors and on strings.
pub fn formula(text: &str) -> Result<Formula, ExpressionError> {
    let wrong = |fault, at| ExpressionError { fault, at, text: text.to_owned() };
    let tree = parse(text).map_err(|error| wrong(ExpressionFault::Syntax { fault: error.fault }, error.at))?;
    let root = element(&tree.root).map_err(|(fault, at)| wrong(fault, at))?;
    Ok(Formula { root, names: tree.names })
}

type Compiled<T> = Result<T, (ExpressionFault, Range<usize>)>;

fn element(node: &Node) -> Compiled<Element> {
    Ok(match &node.kind {
        NodeKind::Int(int) => Element::Number(*int as f64),
        NodeKind::Float(float) => Element::Number(*float),
        NodeKind::Truth(truth) => Element::Number(f64::from(u8::from(*truth))),
        NodeKind::Str(text) => return Err((ExpressionFault::Text(text.clone()), node.at.clone())),
        NodeKind::Name(name) => Element::Name(*name),
        NodeKind::Group(inner) => element(inner)?,
        NodeKind::Negate(inner) => Element::Negate(Box::new(element(inner)?)),
        NodeKind::Not(inner) => Element::Not(Box::new(element(inner)?)),
        NodeKind::Arithmetic(operator, _, pair) => Element::Arithmetic(*operator, all(pair)?),
        NodeKind::Logic(logic, pair) => Element::Logic(*logic, all(pair)?),
        NodeKind::Compare(first, rest) => {
            let first = Box::new(element(first)?);
            let rest = rest.iter().map(|(comparison, node)| Ok((*comparison, element(node)?)));
            Element::Compare(first, rest.collect::<Compiled<_>>()?)
        }
        NodeKind::If(three) => Element::If(all(three)?),
        NodeKind::Call(function, arguments) => match (function.kind, arguments.as_slice()) {
            (FunctionKind::Where, [condition, yes, no]) => {
                Element::If(Box::new([element(condition)?, element(yes)?, element(no)?]))
            }
            (FunctionKind::Sizeof, [dtype]) => Element::Number(size(dtype)?),
            _ => Element::Call(function, arguments.iter().map(element).collect::<Compiled<_>>()?),
        },
    })
}

fn all<const N: usize>(nodes: &[Node; N]) -> Compiled<Box<[Element; N]>> {
    let elements = nodes.iter().map(element).collect::<Compiled<Vec<_>>>()?;
    let elements = elements.try_into().unwrap_or_else(|_| unreachable!("BUG: as many elements as nodes"));
    Ok(Box::new(elements))
}

/// The bytes of a dtype that is stated in quotes. The operator's type names are not known here.
fn size(node: &Node) -> Compiled<f64> {
    let dtype = match &node.kind {
        NodeKind::Str(name) => name.parse::<DType>().ok(),
        _ => None,
    };
    dtype.map(|d| d.bytes() as f64).ok_or_else(|| (ExpressionFault::NoDType, node.at.clone()))
}
