//! Floating-point arithmetic and approximations.

use super::{Code, Op, exactly, spelled};
use crate::ptx::operands::{Operands, Refused, Type};
use crate::ptx::template::Operand;

/// The operations of this group.
pub(super) const NAMES: &[&str] = &[
    "add", "sub", "mul", "fma", "mad", "div", "min", "max", "abs", "neg", "rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin",
    "cos", "tanh", "copysign", "testp",
];

const CLASSES: &[&str] = &["finite", "infinite", "number", "notanumber", "normal", "subnormal"];

pub(super) fn translated(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    let approximate = op.flag("approx");
    let full = op.name == "div" && op.flag("full");
    let rounds = ["rn", "rz", "rm", "rp"];
    let stated = op.one(&rounds);
    let rounding = match stated {
        None | Some("rn") => "kf_rn",
        Some("rz") => "kf_rz",
        Some("rm") => "kf_rd",
        Some(_) => "kf_ru",
    };
    let (ftz, nan, clamp) = (op.flag("ftz"), op.flag("NaN"), op.clamp());
    let class = if op.name == "testp" { op.one(CLASSES) } else { None };
    let of = op.next()?;
    op.end()?;
    if !of.is_float() && !of.is_pair()
        || approximate && (full || stated.is_some())
        || nan && !matches!(op.name, "min" | "max")
    {
        return Err(Refused);
    }
    // Only f16 and f32 flush, except that bfloat16's exponential always does; only f32 and f64 round otherwise than to nearest.
    let flushes = of.is(&["f32", "f16", "f16x2"]) || op.name == "ex2" || approximate;
    if ftz && !flushes
        || of.is_narrow() && rounding != "kf_rn"
        || clamp == "kf_clamp_relu" && !(op.name == "fma" && of.is_narrow())
    {
        return Err(Refused);
    }
    let (cpp, flush) = (of.cpp(), spelled(ftz));
    let values = |operands: &[Operand]| -> Result<String, Refused> {
        Ok(operands.iter().map(|o| on.value(o, of)).collect::<Result<Vec<_>, _>>()?.join(", "))
    };
    match op.name {
        "add" | "sub" | "mul" if !approximate => {
            if clamp == "kf_clamp_sat" && of.is(&["f64", "bf16", "bf16x2"]) {
                return Err(Refused);
            }
            let [d, ..] = exactly::<3>(given)?;
            on.put(
                d,
                of,
                &format!("kf_ptx_f{}<{rounding}, {flush}, {clamp}, {cpp}>({})", op.name, values(&given[1..])?),
            )
        }
        "fma" | "mad" if !approximate => {
            if op.name == "mad" && of.is_narrow() {
                return Err(Refused);
            }
            let [d, ..] = exactly::<4>(given)?;
            on.put(d, of, &format!("kf_ptx_fma<{rounding}, {flush}, {clamp}, {cpp}>({})", values(&given[1..])?))
        }
        "div" if clamp == "kf_clamp_none" => {
            let [d, ..] = exactly::<3>(given)?;
            let name = match (approximate, full, stated) {
                (true, false, _) if of.is(&["f32"]) => format!("kf_ptx_div_approx<{flush}>"),
                (false, true, None) if of.is(&["f32"]) => format!("kf_ptx_div_full<{flush}>"),
                (false, false, Some(_)) if of.is(&["f32", "f64"]) => {
                    format!("kf_ptx_fdiv<{rounding}, {flush}, kf_clamp_none, {cpp}>")
                }
                _ => return Err(Refused),
            };
            on.put(d, of, &format!("{name}({})", values(&given[1..])?))
        }
        "min" | "max" if !approximate && stated.is_none() && clamp == "kf_clamp_none" => {
            let [d, ..] = exactly::<3>(given)?;
            on.put(d, of, &format!("kf_ptx_f{}<{flush}, {}, {cpp}>({})", op.name, spelled(nan), values(&given[1..])?))
        }
        "abs" | "neg" if !approximate && stated.is_none() && clamp == "kf_clamp_none" => {
            let [d, ..] = exactly::<2>(given)?;
            on.put(d, of, &format!("kf_ptx_f{}<{flush}, {cpp}>({})", op.name, values(&given[1..])?))
        }
        "copysign" if !approximate && stated.is_none() && !ftz && of.is(&["f32", "f64"]) => {
            let [d, ..] = exactly::<3>(given)?;
            on.put(d, of, &format!("kf_ptx_copysign<{cpp}>({})", values(&given[1..])?))
        }
        "testp" if of.is(&["f32", "f64"]) && stated.is_none() => {
            let [d, ..] = exactly::<2>(given)?;
            let class = class.ok_or(Refused)?;
            on.put(d, Type::of("pred"), &format!("kf_ptx_testp<kf_class_{class}, {cpp}>({})", values(&given[1..])?))
        }
        "rcp" | "sqrt" | "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" if clamp == "kf_clamp_none" => {
            let [d, ..] = exactly::<2>(given)?;
            let name = match (op.name, approximate) {
                ("rcp" | "sqrt", false) if stated.is_some() && of.is(&["f32", "f64"]) => {
                    format!("kf_ptx_{}<{rounding}, {flush}>", op.name)
                }
                ("tanh", true) if of.is(&["f32"]) && !ftz => "kf_ptx_tanh_approx".into(),
                ("tanh" | "ex2", true) if of.is_narrow() => format!("kf_ptx_narrow_{}<{flush}>", op.name),
                ("rcp" | "sqrt" | "rsqrt" | "ex2" | "lg2" | "sin" | "cos", true) if of.is(&["f32"]) => {
                    format!("kf_ptx_{}_approx<{flush}>", op.name)
                }
                _ => return Err(Refused),
            };
            on.put(d, of, &format!("{name}({})", values(&given[1..])?))
        }
        _ => Err(Refused),
    }
}
