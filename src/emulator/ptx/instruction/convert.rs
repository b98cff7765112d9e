//! `cvt` between all types, and `cvta` between addresses.

use super::{Code, Op, exactly, spelled};
use crate::ptx::operands::{Operands, Refused, Type};
use crate::ptx::template::Operand;

pub(super) fn translated(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    if op.name == "cvta" { address(on, op, given) } else { convert(on, op, given) }
}

fn address(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    let to = op.flag("to");
    let space = op.one(&["shared", "shared::cta", "global"]).ok_or(Refused)?;
    let of = op.next()?;
    op.end()?;
    let [d, a] = exactly(given)?;
    if !of.is(&["u64"]) {
        return Err(Refused);
    }
    let value = on.value(a, of)?;
    let address = match (space, to) {
        ("global", _) => value,
        (_, true) => format!("kf_ptx_to_shared({value})"),
        (_, false) => format!("kf_ptx_address(kf_ptx_shared({value}))"),
    };
    on.put(d, of, &address)
}

fn convert(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    let integral = op.one(&["rni", "rzi", "rmi", "rpi"]);
    let stated = op.one(&["rna", "rn", "rz", "rm", "rp"]);
    let (ftz, pack, satfinite, clamp) = (op.flag("ftz"), op.flag("pack"), op.flag("satfinite"), op.clamp());
    let (to, from) = (op.next()?, op.next()?);
    if pack {
        return packed(on, op, given, to, from, clamp);
    }
    op.end()?;
    let rounding = match (integral, stated) {
        (Some("rni"), None) | (None, Some("rn") | None) => "kf_rn",
        (Some("rzi"), None) | (None, Some("rz")) => "kf_rz",
        (Some("rmi"), None) | (None, Some("rm")) => "kf_rd",
        (Some("rpi"), None) | (None, Some("rp")) => "kf_ru",
        (None, Some("rna")) if to.is(&["tf32"]) => "rna",
        _ => return Err(Refused),
    };
    let relu = spelled(clamp == "kf_clamp_relu");
    if let Some(kind) = to.name().strip_suffix("x2").filter(|kind| ["e4m3", "e5m2"].contains(kind)) {
        if stated != Some("rn") || !satfinite || ftz || clamp == "kf_clamp_sat" {
            return Err(Refused);
        }
        let name = format!("kf_ptx_cvt_fp8<kf_t_{kind}, {relu}>");
        return match (from.name(), given) {
            ("f32", [d, a, b]) => on.put(d, to, &format!("{name}({}, {})", on.value(a, from)?, on.value(b, from)?)),
            ("f16x2", [d, a]) => on.put(d, to, &format!("{name}({})", on.value(a, from)?)),
            _ => Err(Refused),
        };
    }
    if let Some(kind) = from.name().strip_suffix("x2").filter(|kind| ["e4m3", "e5m2"].contains(kind)) {
        let [d, a] = exactly(given)?;
        if stated != Some("rn") || !to.is(&["f16x2"]) || satfinite || ftz || clamp == "kf_clamp_sat" {
            return Err(Refused);
        }
        return on.put(d, to, &format!("kf_ptx_cvt_from_fp8<kf_t_{kind}, {relu}>({})", on.value(a, Type::of("b16"))?));
    }
    if satfinite {
        return Err(Refused);
    }
    if to.is_pair() {
        let [d, a, b] = exactly(given)?;
        let fits = from.is(&["f32"]) && matches!(stated, Some("rn" | "rz")) && !ftz && clamp != "kf_clamp_sat";
        let name = format!("kf_ptx_cvt_pair<{}, {rounding}, {clamp}>", to.cpp());
        return if fits {
            on.put(d, to, &format!("{name}({}, {})", on.value(a, from)?, on.value(b, from)?))
        } else {
            Err(Refused)
        };
    }
    let [d, a] = exactly(given)?;
    if to.is(&["tf32"]) {
        let stated = stated.filter(|_| from.is(&["f32"]) && !ftz && clamp == "kf_clamp_none").ok_or(Refused)?;
        return match stated {
            "rna" | "rn" | "rz" => on.put(d, Type::of("b32"), &format!("kf_ptx_tf32_{stated}({})", on.value(a, from)?)),
            _ => Err(Refused),
        };
    }
    let number = |t: Type| t.is_integer() || t.is_float();
    let loses = to.is_float() && (from.is_integer() || from.is_float() && from.bits() > to.bits());
    let fits = match (to.is_integer(), from.is_integer()) {
        _ if !number(to) || !number(from) => false,
        (true, true) => integral.is_none() && stated.is_none() && !ftz,
        (true, false) => integral.is_some(),
        // Of two floats of one type, one that is no integer has a rounding to one only.
        (false, _) => {
            (stated.is_some() == loses || from.bits() == to.bits() && from != to)
                && (integral.is_none() || !from.is_integer() && to.bits() == from.bits())
        }
    };
    let relu_fits = clamp != "kf_clamp_relu" || from.is(&["f32"]) && to.is(&["f16", "bf16"]);
    // 16-bit formats from wider values: to nearest or to zero.
    let narrow_fits =
        !to.is(&["f16", "bf16"]) || from.is_integer() || matches!(rounding, "kf_rn" | "kf_rz") || integral.is_some();
    if !fits || !relu_fits || !narrow_fits {
        return Err(Refused);
    }
    let name = format!(
        "kf_ptx_cvt<{}, {}, {rounding}, {}, {}, {clamp}>",
        to.cpp(),
        from.cpp(),
        spelled(integral.is_some()),
        spelled(ftz)
    );
    on.extend(d, to, &format!("{name}({})", on.low(a, from)?))
}

/// `cvt.pack.sat.u8.s32.b32 d, a, b, c`
fn packed(on: &Operands, op: &mut Op<'_>, given: &[Operand], to: Type, from: Type, clamp: &str) -> Code {
    if clamp != "kf_clamp_sat" || !from.is(&["s32"]) {
        return Err(Refused);
    }
    let name = format!("kf_ptx_cvt_pack<{}>", to.cpp());
    let (s32, b32) = (Type::of("s32"), Type::of("b32"));
    match given {
        [d, a, b] if to.is(&["u16", "s16"]) => {
            op.end()?;
            on.put(d, b32, &format!("{name}({}, {}, 0)", on.value(a, s32)?, on.value(b, s32)?))
        }
        [d, a, b, c] if to.is(&["u8", "s8"]) && op.next()?.is(&["b32"]) => {
            op.end()?;
            on.put(d, b32, &format!("{name}({}, {}, {})", on.value(a, s32)?, on.value(b, s32)?, on.value(c, b32)?))
        }
        _ => Err(Refused),
    }
}
