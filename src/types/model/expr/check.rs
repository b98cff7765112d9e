//! Checks of scalars beyond the grammar: functions fit the wanted kind, and operands of arithmetic can be numbers. Does not evaluate.

use std::ops::Range;

use super::fault::{SyntaxError, SyntaxFault};
use super::functions::FunctionKind;
use super::tree::{Node, NodeKind, Tree};

/// A use of a name: its place in the text, and whether it is an operand of arithmetic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Used {
    /// Its place in the text.
    pub(super) at: Range<usize>,
    /// Whether a number is needed there.
    pub(super) number: bool,
}

/// The uses of names in the order of the text. `real` says whether the expression may give a float. Fails on functions that are only for floats if it may not,
/// and on truth values and strings where a number is needed.
pub(super) fn check(tree: &Tree, text: &str, real: bool) -> Result<Vec<Used>, SyntaxError> {
    let mut check = Check { text, real, used: vec![] };
    check.functions(&tree.root)?;
    check.node(&tree.root, false)?;
    check.used.sort_by_key(|used| used.at.start);
    Ok(check.used)
}

struct Check<'a> {
    text: &'a str,
    real: bool,
    used: Vec<Used>,
}

impl Check<'_> {
    fn functions(&self, node: &Node) -> Result<(), SyntaxError> {
        if let NodeKind::Call(function, _) = node.kind
            && !function.exact
            && !self.real
        {
            let at = node.at.start..node.at.start + function.name.len();
            return Err(SyntaxError::new(SyntaxFault::FloatFunction(function.name), at));
        }
        node.parts().into_iter().try_for_each(|part| self.functions(part))
    }

    /// `number` says whether a number is needed here.
    fn node(&mut self, node: &Node, number: bool) -> Result<(), SyntaxError> {
        let wrong = |fault| Err(SyntaxError::new(fault, node.at.clone()));
        match &node.kind {
            NodeKind::Name(_) => self.used.push(Used { at: node.at.clone(), number }),
            NodeKind::Truth(_) | NodeKind::Str(_) if number => {
                return wrong(SyntaxFault::Literal(self.text[node.at.clone()].into()));
            }
            NodeKind::Int(_) | NodeKind::Float(_) | NodeKind::Truth(_) | NodeKind::Str(_) => {}
            NodeKind::Not(_) | NodeKind::Compare(..) | NodeKind::Logic(..) if number => {
                return wrong(SyntaxFault::Truth);
            }
            NodeKind::Group(inner) if number && is_truth(inner) => return wrong(SyntaxFault::Truth),
            NodeKind::Group(inner) => self.node(inner, number)?,
            NodeKind::Not(_) | NodeKind::Compare(..) | NodeKind::Logic(..) => self.all(&node.parts(), false)?,
            NodeKind::Negate(_) | NodeKind::Arithmetic(..) => self.all(&node.parts(), true)?,
            NodeKind::If(three) => {
                self.node(&three[0], false)?;
                self.all(&[&three[1], &three[2]], number)?;
            }
            NodeKind::Call(function, arguments) => match function.kind {
                FunctionKind::Where => {
                    self.node(&arguments[0], false)?;
                    self.all(&[&arguments[1], &arguments[2]], number)?;
                }
                FunctionKind::Sizeof => match arguments[0].kind {
                    NodeKind::Name(_) | NodeKind::Str(_) => self.node(&arguments[0], false)?,
                    _ => return Err(SyntaxError::new(SyntaxFault::NoType, arguments[0].at.clone())),
                },
                _ => arguments.iter().try_for_each(|argument| self.node(argument, !is_choice(argument)))?,
            },
        }
        Ok(())
    }

    fn all(&mut self, nodes: &[&Node], number: bool) -> Result<(), SyntaxError> {
        nodes.iter().try_for_each(|node| self.node(node, number))
    }
}

fn is_truth(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Not(_) | NodeKind::Compare(..) | NodeKind::Logic(..) => true,
        NodeKind::Group(inner) => is_truth(inner),
        _ => false,
    }
}

/// Whether the value is one of several operands: of `and` and `or` the operand that decides, of `if` a branch. Which one it is shows only on evaluation, so an
/// argument of a function may have a truth value among them.
fn is_choice(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Logic(..) | NodeKind::If(_) => true,
        NodeKind::Group(inner) => is_choice(inner),
        _ => false,
    }
}
