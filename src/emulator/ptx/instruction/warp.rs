//! Shuffles, votes and other operations among the lanes of a warp.

use super::{Code, Op, exactly};
use crate::ptx::operands::{Operands, Refused, Type};
use crate::ptx::template::Operand;

/// The operations of this group.
pub(super) const NAMES: &[&str] = &["shfl", "vote", "match", "activemask", "redux", "elect"];

pub(super) fn translated(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    let (b32, pred) = (Type::of("b32"), Type::of("pred"));
    if op.name == "activemask" {
        let of = op.next()?;
        op.end()?;
        let [d] = exactly(given)?;
        return if of == b32 { on.put(d, b32, "kf_converge(__COUNTER__)") } else { Err(Refused) };
    }
    // Without it, an operation names no lanes.
    if !op.flag("sync") {
        return Err(Refused);
    }
    let both = |d: &Operand, of: Type, call: &str, flag: &str| match d {
        Operand::Pair(d, p) => Ok(format!("bool {flag}; const {0} kf_given = {call};", of.cpp())
            + &on.put(d, of, "kf_given")?
            + &on.put(p, pred, flag)?),
        d => Ok(format!("bool {flag};") + &on.put(d, of, call)?),
    };
    match op.name {
        "shfl" => {
            let mode = op.one(&["up", "down", "bfly", "idx"]).ok_or(Refused)?;
            let of = op.next()?;
            op.end()?;
            let [d, a, b, c, mask] = exactly(given)?;
            if of != b32 {
                return Err(Refused);
            }
            let values = [on.value(a, b32)?, on.value(b, b32)?, on.value(c, b32)?, on.value(mask, b32)?].join(", ");
            both(d, b32, &format!("kf_ptx_shfl<kf_shfl_{mode}>({values}, kf_found)"), "kf_found")
        }
        "vote" => {
            let mode = op.one(&["all", "any", "uni", "ballot"]).ok_or(Refused)?;
            let of = op.next()?;
            op.end()?;
            let [d, p, mask] = exactly(given)?;
            let (p, mask) = (on.predicate(p)?, on.value(mask, b32)?);
            match mode {
                "ballot" if of == b32 => on.put(d, b32, &format!("kf_ptx_ballot({p}, {mask})")),
                "all" | "any" | "uni" if of == pred => {
                    on.put(d, pred, &format!("kf_ptx_vote(KF_{}, {p}, {mask})", mode.to_uppercase()))
                }
                _ => Err(Refused),
            }
        }
        "match" => {
            let mode = op.one(&["any", "all"]).ok_or(Refused)?;
            let of = op.next()?;
            op.end()?;
            let [d, a, mask] = exactly(given)?;
            if !of.is(&["b32", "b64"]) {
                return Err(Refused);
            }
            let values = [on.value(a, of)?, on.value(mask, b32)?].join(", ");
            match mode {
                "any" => on.put(d, b32, &format!("kf_ptx_match_any<{}>({values})", of.cpp())),
                _ => both(d, b32, &format!("kf_ptx_match_all<{}>({values}, kf_found)", of.cpp()), "kf_found"),
            }
        }
        "redux" => {
            let mode = op.one(&["add", "min", "max", "and", "or", "xor"]).ok_or(Refused)?;
            let of = op.next()?;
            op.end()?;
            let [d, a, mask] = exactly(given)?;
            let kind = match (mode, of.name()) {
                ("add", "u32" | "s32") => "KF_ADD",
                ("min", "u32") => "KF_MIN_U",
                ("min", "s32") => "KF_MIN_S",
                ("max", "u32") => "KF_MAX_U",
                ("max", "s32") => "KF_MAX_S",
                ("and", "b32") => "KF_AND",
                ("or", "b32") => "KF_OR",
                ("xor", "b32") => "KF_XOR",
                _ => return Err(Refused),
            };
            on.put(d, b32, &format!("kf_ptx_redux({kind}, {}, {})", on.value(a, b32)?, on.value(mask, b32)?))
        }
        "elect" => {
            op.end()?;
            let [d, mask] = exactly(given)?;
            both(d, b32, &format!("kf_ptx_elect({}, kf_leader)", on.value(mask, b32)?), "kf_leader")
        }
        _ => Err(Refused),
    }
}
