//! Writes the C++ of a whole statement: a statement expression, which may stand wherever the statement stood, also as the argument of a macro.

use super::instruction::{self, Op};
use super::operands::Operands;
use super::statement::Statement;
use super::template::{Instruction, Item, Unread, parse};

/// What takes the place of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    /// The C++, on one line.
    pub(super) text: String,
    /// Whether it calls functions of `kf_ptx.h`.
    pub(super) calls: bool,
}

/// The C++ for a statement: its translation, or a report of its instruction; none if it is left as it is.
pub(super) fn written(statement: &Statement) -> Option<Written> {
    let why = match parse(&statement.template) {
        Ok(items) if statement.literal => match translated(statement, &items) {
            Ok(text) => return Some(Written { text, calls: true }),
            Err(why) => why,
        },
        // The text of a macro would go on here.
        Ok(items) => {
            let named = items.into_iter().find_map(|item| match item {
                Item::Instruction(Instruction { operation, .. }) => Some(operation),
                _ => None,
            });
            Why { what: named?, part: " with text from a macro" }
        }
        Err(Unread::Construct(what)) => Why { what, part: "" },
        Err(Unread::Instruction(what)) => {
            Why { what, part: if statement.literal { " with such operands" } else { " with text from a macro" } }
        }
        Err(Unread::Text) => return None,
    };
    // Another spelling may stand before assembly of the host; only what is PTX beyond doubt is taken for it.
    let known = statement.ours || instruction::is_known(&why.what);
    known.then(|| Written { text: report(&why.what, why.part), calls: false })
}

struct Why {
    what: String,
    part: &'static str,
}

/// A call that reports an instruction. The number keeps g++ from making one of two calls that are alike, which would have the line of one of them.
fn report(what: &str, part: &str) -> String {
    format!("({{ kf_not_emulated(\"inline PTX: `{what}`{part}\"); __asm__(\"\" : : \"i\"(__COUNTER__)); }})")
}

fn translated(statement: &Statement, items: &[Item]) -> Result<String, Why> {
    let first = || {
        items.iter().find_map(|item| match item {
            Item::Instruction(Instruction { operation, .. }) => Some(operation.clone()),
            _ => None,
        })
    };
    let unfit = || Why { what: first().unwrap_or_else(|| "asm".into()), part: " with such operands" };
    let (mut operands, around) = Operands::of(&statement.operands).map_err(|_| unfit())?;
    let mut body = String::new();
    for item in items {
        match item {
            Item::Open => {
                operands.open();
                body.push('{');
            }
            Item::Close => {
                operands.close();
                body.push('}');
            }
            Item::Registers { of, names } => {
                body += &operands.declare(of, names).map_err(|_| Why { what: format!(".reg .{of}"), part: "" })?;
            }
            Item::Instruction(instruction) => body += &one(&operands, instruction)?,
        }
    }
    if first().is_none() {
        // A barrier for the compiler only.
        body += "__asm__(\"\" : : : \"memory\");";
    }
    let carry = if body.contains("kf_carry") { "bool kf_carry = false;" } else { "" };
    Ok(format!("({{ {}{carry}{body}{} }})", around.before, around.after))
}

fn one(operands: &Operands, instruction: &Instruction) -> Result<String, Why> {
    let what = &instruction.operation;
    let known = instruction::is_known(what);
    // An instruction whose modifiers are emulated does not have these operands.
    let refused = |_| Why { what: what.clone(), part: "" };
    if !known {
        return Err(Why { what: what.clone(), part: "" });
    }
    let body = instruction::translated(operands, &mut Op::of(what), &instruction.operands).map_err(refused)?;
    Ok(match &instruction.guard {
        None => format!("{{ {body} }}"),
        Some((negated, name)) => {
            let guard = operands.guard(name).map_err(refused)?;
            format!("if ({}{guard}) {{ {body} }}", if *negated { "!" } else { "" })
        }
    })
}
