//! Writes the C++ of a whole statement: a statement expression, which may stand wherever the statement stood, also as the argument of a macro.

use super::instruction::{self, Op};
use super::operands::{Operands, label};
use super::statement::Statement;
use super::template::{Instruction, Item, Unread, parse};

/// What a statement begins with, as `asm` is a word: macros take an argument that begins with a parenthesis apart (`NV_IF_TARGET`).
const WORD: &str = "__extension__";

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
        Ok(items) => Why { what: first(&items)?, part: " with text from a macro".into() },
        Err(Unread::Construct(what)) => Why::plain(&what),
        Err(Unread::Instruction(what)) => {
            let part = if statement.literal { " with such operands" } else { " with text from a macro" };
            Why { what, part: part.into() }
        }
        Err(Unread::Text) => return None,
    };
    // Another spelling may stand before assembly of the host; only what is PTX beyond doubt is taken for it.
    let known = statement.ours || why.what.contains('.') && instruction::is_known(&why.what);
    known.then(|| Written { text: report(&why), calls: false })
}

/// What is not emulated, and what about it.
struct Why {
    what: String,
    part: String,
}

impl Why {
    fn plain(what: &str) -> Why {
        Why { what: what.to_owned(), part: String::new() }
    }
}

/// The first operation.
fn first(items: &[Item]) -> Option<String> {
    items.iter().find_map(|item| match item {
        Item::Instruction(Instruction { operation, .. }) => Some(operation.clone()),
        _ => None,
    })
}

/// A call that reports an instruction. The number keeps g++ from making one of two calls that are alike, which would have the line of one of them.
fn report(Why { what, part }: &Why) -> String {
    format!("{WORD} ({{ kf_not_emulated(\"inline PTX: `{what}`{part}\"); __asm__(\"\" : : \"i\"(__COUNTER__)); }})")
}

fn translated(statement: &Statement, items: &[Item]) -> Result<String, Why> {
    // What is not emulated in any form says more than what else does not fit.
    let odd = items.iter().find_map(|item| match item {
        Item::Instruction(i) if !instruction::is_grouped(&i.operation) => Some(&i.operation),
        _ => None,
    });
    if let Some(odd) = odd {
        return Err(Why::plain(odd));
    }
    let unfit = || Why { what: first(items).unwrap_or_else(|| "asm".into()), part: " with such operands".into() };
    let (mut operands, around) = Operands::of(&statement.operands).map_err(|_| unfit())?;
    let mut body = String::new();
    let twice = |_| Why { what: "bra".into(), part: " to one of two labels with one name".into() };
    let labels = operands.declare_labels(labels_of(items)).map_err(twice)?;
    for (at, item) in items.iter().enumerate() {
        match item {
            Item::Open => {
                operands.open();
                body.push('{');
                body += &operands.declare_labels(labels_of(&items[at + 1..])).map_err(twice)?;
            }
            Item::Close => {
                operands.close();
                body.push('}');
            }
            Item::Registers { of, names } => {
                body += &operands.declare(of, names).map_err(|_| Why::plain(&format!(".reg .{of}")))?;
            }
            Item::Instruction(instruction) => body += &one(&operands, instruction)?,
            Item::Label(name) => body += &format!("{}:;", label(name)),
        }
    }
    if first(items).is_none() {
        // A barrier for the compiler only.
        body += "__asm__(\"\" : : : \"memory\");";
    }
    // The flag is the thread's: a later statement may ask for it.
    let (carry, carried) = match body.contains("kf_carry") {
        true => ("bool kf_carry = kf_carried();", "kf_carry_on(kf_carry);"),
        false => ("", ""),
    };
    Ok(format!("{WORD} ({{ {labels}{}{carry}{body}{carried}{} }})", around.before, around.after))
}

/// The labels of the scope that begins here, without those of scopes inside it.
fn labels_of(items: &[Item]) -> Vec<String> {
    let (mut depth, mut found) = (0u32, vec![]);
    for item in items {
        match item {
            Item::Open => depth += 1,
            Item::Close if depth == 0 => break,
            Item::Close => depth -= 1,
            Item::Label(name) if depth == 0 => found.push(name.clone()),
            _ => {}
        }
    }
    found
}

fn one(operands: &Operands, instruction: &Instruction) -> Result<String, Why> {
    let what = &instruction.operation;
    let refused = |_| Why {
        what: what.clone(),
        part: operands.unknown_special(&instruction.operands).map(|name| format!(" of `{name}`")).unwrap_or_default(),
    };
    let body = instruction::translated(operands, &mut Op::of(what), &instruction.operands).map_err(refused)?;
    Ok(match &instruction.guard {
        None => format!("{{ {body} }}"),
        Some((negated, name)) => {
            let guard = operands.guard(name).map_err(refused)?;
            format!("if ({}{guard}) {{ {body} }}", if *negated { "!" } else { "" })
        }
    })
}
