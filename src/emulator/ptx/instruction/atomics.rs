//! `atom` and `red`.

use super::memory::{addressed, space};
use super::{Code, Op};
use crate::ptx::operands::{Operands, Refused};
use crate::ptx::template::Operand;

pub(super) fn translated(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    let gives = op.name == "atom";
    let order = op.one(&["relaxed", "acquire", "release", "acq_rel"]).unwrap_or("relaxed");
    op.one(&["cta", "cluster", "gpu", "sys"]);
    let space = space(op);
    let operation = op.one(&["add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"]).ok_or(Refused)?;
    let noftz = op.flag("noftz");
    let policy = op.flag("L2::cache_hint");
    let of = op.next()?;
    op.end()?;
    let integers: &[&str] = &["u32", "s32", "u64", "s64"];
    let fits = match operation {
        "add" => of.is(&["u32", "s32", "u64", "s64", "f32", "f64"]) || noftz && of.is_narrow(),
        "min" | "max" => of.is(integers) || noftz && of.is_narrow(),
        "inc" | "dec" => of.is(&["u32"]),
        "and" | "or" | "xor" => of.is(&["b32", "b64"]),
        "exch" => of.is(&["b32", "b64"]) && gives,
        _ => of.is(&["b16", "b32", "b64"]) && gives,
    };
    if !fits || noftz && !of.is_narrow() || !gives && matches!(order, "acquire" | "acq_rel") {
        return Err(Refused);
    }
    let mut rest = given;
    if policy {
        rest = rest.split_last().ok_or(Refused)?.1;
    }
    let target = if gives {
        let (target, after) = rest.split_first().ok_or(Refused)?;
        rest = after;
        Some(target)
    } else {
        None
    };
    let cpp = of.cpp();
    let (pointer, values) = if operation == "cas" {
        let (pointer, [expected, value]) = addressed::<2>(on, rest, space)?;
        (
            pointer,
            format!("const {cpp} kf_expected = {}, kf_value = {};", on.value(expected, of)?, on.value(value, of)?),
        )
    } else {
        let (pointer, [value]) = addressed::<1>(on, rest, space)?;
        (pointer, format!("const {cpp} kf_value = {};", on.value(value, of)?))
    };
    let new = match operation {
        // Sums of f32 in memory flush on a device, but not everywhere, so none is flushed.
        "add" if of.is_integer() => format!("kf_ptx_iadd<{cpp}>(kf_old, kf_value)"),
        "add" => format!("kf_ptx_fadd<kf_rn, false, kf_clamp_none, {cpp}>(kf_old, kf_value)"),
        "min" | "max" if of.is_integer() => format!("kf_ptx_i{operation}<{cpp}>(kf_old, kf_value)"),
        "min" | "max" => format!("kf_ptx_f{operation}<false, false, {cpp}>(kf_old, kf_value)"),
        "inc" | "dec" | "and" | "or" | "xor" => format!("kf_ptx_{operation}<{cpp}>(kf_old, kf_value)"),
        "exch" => "kf_value".into(),
        _ => "kf_old == kf_expected ? kf_value : kf_old".into(),
    };
    let (release, acquire) = (matches!(order, "release" | "acq_rel"), matches!(order, "acquire" | "acq_rel"));
    let (flag, old) = match operation {
        "exch" => ("KF_EXCHANGE", ""),
        "cas" | "min" | "max" | "and" | "or" => ("KF_SETTLES", " kf_old"),
        _ => ("0", " kf_old"),
    };
    let call = format!(
        "kf_ptx_atom<{release}, {acquire}, {flag}, {cpp}>({pointer}, [=]({cpp}{old}) -> {cpp} {{ return {new}; }})"
    );
    Ok(values
        + &match target {
            Some(target) => on.put(target, of, &call)?,
            None => format!("static_cast<void>({call});"),
        })
}
