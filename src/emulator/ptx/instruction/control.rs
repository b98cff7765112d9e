//! Branches, barriers, fences, pauses and traps.

use super::{Code, Op, exactly};
use crate::ptx::operands::{Operands, Refused, Type};
use crate::ptx::template::Operand;

/// The operations of this group.
pub(super) const NAMES: &[&str] =
    &["bar", "barrier", "bra", "membar", "fence", "nanosleep", "trap", "brkpt", "griddepcontrol", "pmevent"];

pub(super) fn translated(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    let u32 = Type::of("u32");
    match op.name {
        "bar" | "barrier" => barrier(on, op, given),
        "bra" => {
            op.flag("uni");
            op.end()?;
            let [to] = exactly(given)?;
            Ok(format!("goto {};", on.target(to)?))
        }
        "membar" => {
            let scope = op.one(&["cta", "gl", "sys"]).ok_or(Refused)?;
            op.end()?;
            let [] = exactly(given)?;
            Ok(fence(scope).into())
        }
        "fence" => {
            let [] = exactly(given)?;
            // Barriers that were initialised are there for whoever learns of it.
            if op.flag("mbarrier_init") {
                op.one(&["release"]).and(op.one(&["cluster"])).ok_or(Refused)?;
                op.end()?;
                return Ok(fence("cta").into());
            }
            // All accesses go one way.
            if op.flag("proxy") {
                op.one(&["alias", "async", "async::generic"]).ok_or(Refused)?;
                op.drop(|m| {
                    matches!(m, "global" | "shared::cta" | "shared::cluster" | "shared" | "shared::{cta, cluster}")
                });
                op.end()?;
                return Ok(";".into());
            }
            op.one(&["sc", "acq_rel", "acquire", "release"]);
            let scope = op.one(&["cta", "cluster", "gpu", "sys"]).ok_or(Refused)?;
            op.end()?;
            Ok(fence(scope).into())
        }
        "nanosleep" => {
            let of = op.next()?;
            op.end()?;
            let [time] = exactly(given)?;
            if of != u32 {
                return Err(Refused);
            }
            Ok(format!("static_cast<void>({}); kf_poll(0);", on.value(time, u32)?))
        }
        "trap" | "brkpt" => {
            op.end()?;
            let [] = exactly(given)?;
            Ok(if op.name == "trap" { "kf_trap();" } else { ";" }.into())
        }
        // A launch begins when the one before it has ended.
        "griddepcontrol" => {
            op.one(&["wait", "launch_dependents"]).ok_or(Refused)?;
            op.end()?;
            let [] = exactly(given)?;
            Ok(";".into())
        }
        _ => Err(Refused),
    }
}

fn fence(scope: &str) -> &'static str {
    match scope {
        "cta" => "kf_fence(0);",
        "sys" => "kf_fence(2);",
        _ => "kf_fence(1);",
    }
}

/// A barrier of all threads of a block, or of a warp's lanes; one of some threads is not emulated.
fn barrier(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    let (u32, pred) = (Type::of("u32"), Type::of("pred"));
    let named = format!("inline PTX: `{}` for some threads of a block", op.name);
    let warp = op.flag("warp");
    op.flag("cta");
    let what = op.one(&["sync", "red"]).ok_or(Refused)?;
    op.flag("aligned");
    if warp {
        op.end()?;
        let [mask] = exactly(given)?;
        return Ok(format!("kf_warp(KF_SYNC, {}, 0, 0);", on.value(mask, u32)?));
    }
    let all = |count: Option<&Operand>, then: String| match count {
        None => Ok(then),
        Some(count) => {
            // Warps count whole.
            let count = on.value(count, u32)?;
            Ok(format!(
                "if ((({count}) + 31) / 32 == (KF_CTX(count) + 31) / 32) {{ {then} }} else {{ kf_not_emulated(\"{named}\"); }}"
            ))
        }
    };
    if what == "sync" {
        op.end()?;
        let (id, count) = match given {
            [id] => (id, None),
            [id, count] => (id, Some(count)),
            _ => return Err(Refused),
        };
        on.value(id, u32)?;
        return all(count, "static_cast<void>(kf_barrier(0, __COUNTER__, 0));".into());
    }
    let kind = op.one(&["popc", "and", "or"]).ok_or(Refused)?;
    let of = op.next()?;
    op.end()?;
    let (d, id, count, p) = match given {
        [d, id, p] => (d, id, None, p),
        [d, id, count, p] => (d, id, Some(count), p),
        _ => return Err(Refused),
    };
    on.value(id, u32)?;
    let p = on.predicate(p)?;
    let met = |number: u32| format!("kf_barrier({number}, __COUNTER__, {p})");
    let then = match (kind, of.name()) {
        ("popc", "u32") => on.put(d, u32, &format!("static_cast<kf_t_u32>({})", met(1)))?,
        ("and", "pred") => on.put(d, pred, &format!("{} != 0", met(2)))?,
        ("or", "pred") => on.put(d, pred, &format!("{} != 0", met(3)))?,
        _ => return Err(Refused),
    };
    all(count, then)
}
