//! `mbarrier`, and the bulk copies that it or a group completes. A copy is done at once by the thread that requests it; what it hands over, it hands over with
//! the bytes that it reports to the barrier. Without clusters and tensor maps.

use super::{Code, Op, exactly, spelled};
use crate::ptx::operands::{Operands, Refused, Space, Type};
use crate::ptx::template::Operand;

pub(super) fn translated(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    if op.name == "cp" { copy(on, op, given) } else { barrier(on, op, given) }
}

/// The space of a barrier: of this block.
fn space(op: &mut Op<'_>) -> Space {
    if op.one(&["shared", "shared::cta"]).is_some() { Space::Shared } else { Space::Generic }
}

fn barrier(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    let (u32, u64, b64) = (Type::of("u32"), Type::of("u64"), Type::of("b64"));
    let what = op
        .one(&[
            "init",
            "inval",
            "arrive",
            "arrive_drop",
            "expect_tx",
            "complete_tx",
            "test_wait",
            "try_wait",
            "pending_count",
        ])
        .ok_or(Refused)?;
    // These are names and also further words of `arrive`.
    let expects = what.starts_with("arrive") && op.flag("expect_tx");
    let incomplete = what.starts_with("arrive") && op.flag("noComplete");
    let parity = what.ends_with("_wait") && op.flag("parity");
    let order = op.one(&["acquire", "release", "relaxed"]);
    if order.is_some() {
        op.one(&["cta", "cluster"]).ok_or(Refused)?;
    }
    let space = space(op);
    if op.next()? != b64 {
        return Err(Refused);
    }
    op.end()?;
    let relaxed = spelled(order == Some("relaxed"));
    match what {
        "init" => {
            let [at, count] = exactly(given)?;
            Ok(format!("kf_ptx_mbar_init({}, {});", on.address(at, space)?, on.value(count, u32)?))
        }
        "inval" => {
            let [at] = exactly(given)?;
            Ok(format!("kf_ptx_mbar_inval({});", on.address(at, space)?))
        }
        "arrive" | "arrive_drop" => {
            let (state, at, count) = match given {
                [state, at] if !expects && !incomplete => (state, at, None),
                [state, at, count] => (state, at, Some(count)),
                _ => return Err(Refused),
            };
            let count = count.map(|count| on.value(count, u32)).transpose()?;
            let (arrivals, bytes) = match (expects, count) {
                (true, Some(bytes)) => ("1".into(), bytes),
                (_, Some(count)) => (count, "0".into()),
                (_, None) => ("1".into(), "0".into()),
            };
            let drops = spelled(what == "arrive_drop");
            let call =
                format!("kf_ptx_mbar_arrive<{drops}, {relaxed}>({}, {arrivals}, {bytes})", on.address(at, space)?);
            on.put(state, b64, &call)
        }
        "expect_tx" | "complete_tx" => {
            let [at, bytes] = exactly(given)?;
            let sign = if what == "expect_tx" { "" } else { "-" };
            let bytes = on.value(bytes, u32)?;
            Ok(format!("kf_mbar_tx({}, {sign}static_cast<int64_t>({bytes}));", word(&on.address(at, space)?)))
        }
        "pending_count" => {
            let [count, state] = exactly(given)?;
            on.put(count, u32, &format!("static_cast<kf_t_u32>(kf_mbar_pending({}))", on.value(state, u64)?))
        }
        _ => {
            let (over, at, state) = match given {
                [over, at, state] => (over, at, state),
                // How long it may sleep.
                [over, at, state, hint] if what == "try_wait" => {
                    on.value(hint, u32)?;
                    (over, at, state)
                }
                _ => return Err(Refused),
            };
            let (kind, state) = match parity {
                true => ("parity", on.value(state, u32)?),
                false => ("state", on.value(state, u64)?),
            };
            let at = on.address(at, space)?;
            on.put(over, Type::of("pred"), &format!("kf_ptx_mbar_wait_{kind}<{relaxed}>({at}, {state})"))
        }
    }
}

fn word(pointer: &str) -> String {
    format!("reinterpret_cast<uint64_t *>({pointer})")
}

/// `cp.async.bulk` of bytes, and `cp.async.mbarrier.arrive`.
fn copy(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    let (u32, u64) = (Type::of("u32"), Type::of("u64"));
    if !op.flag("async") {
        return Err(Refused);
    }
    if op.flag("mbarrier") {
        op.one(&["arrive"]).ok_or(Refused)?;
        let counted = op.flag("noinc");
        let space = space(op);
        if op.next()? != Type::of("b64") {
            return Err(Refused);
        }
        op.end()?;
        let [at] = exactly(given)?;
        return Ok(format!("kf_mbar_copied({}, {});", word(&on.address(at, space)?), spelled(counted)));
    }
    if !op.flag("bulk") {
        return Err(Refused);
    }
    match op.one(&["commit_group", "wait_group", "prefetch"]) {
        Some("commit_group") => {
            op.end()?;
            let [] = exactly(given)?;
            return Ok(";".into());
        }
        Some("wait_group") => {
            op.flag("read");
            op.end()?;
            let [left] = exactly(given)?;
            return Ok(format!("static_cast<void>({});", on.value(left, u64)?));
        }
        // Nothing that a kernel could see.
        Some(_) => {
            op.drop(|m| matches!(m, "L2" | "global" | "L2::cache_hint"));
            op.end()?;
            on.address(given.first().ok_or(Refused)?, Space::Generic)?;
            return Ok(";".into());
        }
        None => {}
    }
    let policy = op.flag("L2::cache_hint");
    let (given, policies) = given.split_at(given.len().saturating_sub(usize::from(policy)));
    if policies.len() != usize::from(policy) || !op.flag("global") {
        return Err(Refused);
    }
    if op.flag("bulk_group") {
        op.one(&["shared::cta"]).ok_or(Refused)?;
        op.end()?;
        let [to, from, size] = exactly(given)?;
        let (to, from) = (on.address(to, Space::Generic)?, on.address(from, Space::Shared)?);
        return Ok(format!("kf_ptx_bulk({to}, {from}, {});", on.value(size, u32)?));
    }
    // A block is a cluster by itself.
    op.one(&["shared::cluster", "shared::cta"]).ok_or(Refused)?;
    op.one(&["mbarrier::complete_tx::bytes"]).ok_or(Refused)?;
    op.end()?;
    let [to, from, size, at] = exactly(given)?;
    let (to, from, at) =
        (on.address(to, Space::Shared)?, on.address(from, Space::Generic)?, on.address(at, Space::Shared)?);
    Ok(format!(
        "const kf_t_u32 kf_size = {}; kf_ptx_bulk({to}, {from}, kf_size); kf_mbar_tx({}, -static_cast<int64_t>(kf_size));",
        on.value(size, u32)?,
        word(&at)
    ))
}
