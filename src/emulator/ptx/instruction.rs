//! The instructions that are emulated, by groups. Each group takes an operation with its modifiers and operands, and gives C++ statements. What it does not
//! know, it refuses.

mod atomics;
mod control;
mod convert;
mod float;
mod integer;
mod matrix;
mod mbarrier;
mod memory;
mod moves;
mod warp;

use super::operands::{Operands, Refused, Type};
use super::template::Operand;

/// C++ statements, or a refusal.
pub(super) type Code = Result<String, Refused>;

/// An operation: its name, its modifiers that nothing has taken yet, and its types in order.
pub(super) struct Op<'a> {
    pub(super) name: &'a str,
    modifiers: Vec<&'a str>,
    types: Vec<Type>,
    taken: usize,
}

impl<'a> Op<'a> {
    /// Reads `ld.global.v2.f32`.
    pub(super) fn of(operation: &'a str) -> Self {
        let mut parts = operation.split('.');
        let name = parts.next().unwrap_or_default();
        let (types, modifiers): (Vec<_>, Vec<_>) = parts.partition(|part| Type::named(part).is_some());
        Op { name, modifiers, types: types.into_iter().filter_map(Type::named).collect(), taken: 0 }
    }

    /// Whether it has this modifier, which is then taken.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        let at = self.modifiers.iter().position(|m| *m == name);
        at.map(|at| self.modifiers.remove(at)).is_some()
    }

    /// The one of these modifiers that it has, which is then taken.
    pub(super) fn one(&mut self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.flag(name))
    }

    /// Takes all modifiers that are like this.
    pub(super) fn drop(&mut self, like: impl Fn(&str) -> bool) {
        self.modifiers.retain(|m| !like(m));
    }

    /// The next type.
    pub(super) fn next(&mut self) -> Result<Type, Refused> {
        let next = self.types.get(self.taken).copied().ok_or(Refused);
        self.taken += 1;
        next
    }

    /// Whether everything has been taken.
    pub(super) fn end(&self) -> Result<(), Refused> {
        if self.modifiers.is_empty() && self.taken == self.types.len() { Ok(()) } else { Err(Refused) }
    }

    /// What becomes of a result.
    pub(super) fn clamp(&mut self) -> &'static str {
        match self.one(&["sat", "relu"]) {
            Some("sat") => "kf_clamp_sat",
            Some(_) => "kf_clamp_relu",
            None => "kf_clamp_none",
        }
    }
}

/// `true` or `false`, as C++ spells them.
pub(super) fn spelled(yes: bool) -> &'static str {
    if yes { "true" } else { "false" }
}

/// As many operands as there have to be.
pub(super) fn exactly<const N: usize>(operands: &[Operand]) -> Result<&[Operand; N], Refused> {
    operands.try_into().map_err(|_| Refused)
}

type Group = fn(&Operands, &mut Op<'_>, &[Operand]) -> Code;

/// The operations of each group.
const GROUPS: [(Group, &[&str]); 10] = [
    (integer::translated, integer::NAMES),
    (float::translated, float::NAMES),
    (convert::translated, &["cvt", "cvta"]),
    (moves::translated, moves::NAMES),
    (memory::translated, memory::NAMES),
    (mbarrier::translated, &["mbarrier", "cp"]),
    (atomics::translated, &["atom", "red"]),
    (warp::translated, warp::NAMES),
    (matrix::translated, matrix::NAMES),
    (control::translated, control::NAMES),
];

/// Operations of PTX that are not emulated, so that a statement in any spelling is known to be PTX.
const OTHERS: [&str; 31] = [
    "alloca",
    "barrier",
    "brx",
    "call",
    "clusterlaunchcontrol",
    "cp",
    "exit",
    "fence",
    "getctarank",
    "istypep",
    "mapa",
    "multimem",
    "pmevent",
    "ret",
    "setmaxnreg",
    "st",
    "stackrestore",
    "stacksave",
    "suld",
    "suq",
    "sured",
    "sust",
    "tcgen05",
    "tensormap",
    "tex",
    "tld4",
    "txq",
    "vadd",
    "wgmma",
    "wmma",
    "createpolicy",
];

/// Whether an operation is one of PTX.
pub(super) fn is_known(operation: &str) -> bool {
    let name = operation.split('.').next().unwrap_or_default();
    OTHERS.contains(&name) || is_grouped(operation)
}

/// Whether some form of an operation may be emulated.
pub(super) fn is_grouped(operation: &str) -> bool {
    let name = operation.split('.').next().unwrap_or_default();
    GROUPS.iter().any(|(_, names)| names.contains(&name))
}

/// The C++ statements for an instruction. More than one group may know an operation: by its types.
pub(super) fn translated(operands: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    let (name, modifiers, taken) = (op.name, op.modifiers.clone(), op.taken);
    for (group, _) in GROUPS.iter().filter(|(_, names)| names.contains(&name)) {
        (op.modifiers, op.taken) = (modifiers.clone(), taken);
        if let Ok(code) = group(operands, op, given) {
            return Ok(code);
        }
    }
    Err(Refused)
}
