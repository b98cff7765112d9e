//! Integer and logical instructions.

use super::{Code, Op, exactly, spelled};
use crate::ptx::operands::{Operands, Refused, Type};
use crate::ptx::template::Operand;

/// The operations of this group.
pub(super) const NAMES: &[&str] = &[
    "add", "addc", "sub", "subc", "mul", "mad", "madc", "mul24", "mad24", "sad", "div", "rem", "min", "max", "abs",
    "neg", "and", "or", "xor", "not", "cnot", "shl", "shr", "shf", "lop3", "prmt", "bfe", "bfi", "bfind", "bmsk",
    "brev", "clz", "popc", "fns", "dp4a", "dp2a",
];

pub(super) fn translated(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    let u32 = Type::of("u32");
    match op.name {
        "add" | "addc" | "sub" | "subc" => sums(on, op, given),
        "mul" | "mad" | "madc" => products(on, op, given),
        "mul24" | "mad24" => {
            let half = op.one(&["lo", "hi"]).ok_or(Refused)?;
            let of = typed(op, &["u32", "s32"])?;
            let product =
                |a, b| Ok(format!("kf_ptx_mul24_{half}<{}>({}, {})", of.cpp(), on.value(a, of)?, on.value(b, of)?));
            match (op.name, given) {
                ("mul24", [d, a, b]) => on.put(d, of, &product(a, b)?),
                ("mad24", [d, a, b, c]) => {
                    on.put(d, of, &format!("kf_ptx_iadd<{}>({}, {})", of.cpp(), product(a, b)?, on.value(c, of)?))
                }
                _ => Err(Refused),
            }
        }
        "sad" => {
            let of = typed(op, &["u16", "s16", "u32", "s32", "u64", "s64"])?;
            let [d, a, b, c] = exactly(given)?;
            let values = [on.value(a, of)?, on.value(b, of)?, on.value(c, of)?].join(", ");
            on.put(d, of, &format!("kf_ptx_sad<{}>({values})", of.cpp()))
        }
        "div" | "rem" | "min" | "max" => {
            let of = typed(op, &["u16", "s16", "u32", "s32", "u64", "s64", "u16x2", "s16x2"])?;
            let [d, a, b] = exactly(given)?;
            let (a, b) = (on.value(a, of)?, on.value(b, of)?);
            if of.is(&["u16x2", "s16x2"]) {
                let part = &of.cpp_part();
                return match op.name {
                    "min" | "max" => {
                        on.put(d, of, &format!("kf_ptx_halves<{part}>({a}, {b}, kf_ptx_i{}<{part}>)", op.name))
                    }
                    _ => Err(Refused),
                };
            }
            on.put(d, of, &format!("kf_ptx_i{}<{}>({a}, {b})", op.name, of.cpp()))
        }
        "abs" | "neg" => {
            let of = typed(op, &["s16", "s32", "s64"])?;
            let [d, a] = exactly(given)?;
            on.put(d, of, &format!("kf_ptx_i{}<{}>({})", op.name, of.cpp(), on.value(a, of)?))
        }
        "and" | "or" | "xor" => {
            let of = typed(op, &["pred", "b16", "b32", "b64"])?;
            let [d, a, b] = exactly(given)?;
            on.put(d, of, &format!("kf_ptx_{}<{}>({}, {})", op.name, of.cpp(), on.value(a, of)?, on.value(b, of)?))
        }
        "not" | "cnot" => {
            let of = typed(op, if op.name == "not" { &["pred", "b16", "b32", "b64"] } else { &["b16", "b32", "b64"] })?;
            let [d, a] = exactly(given)?;
            on.put(d, of, &format!("kf_ptx_{}<{}>({})", op.name, of.cpp(), on.value(a, of)?))
        }
        "shl" | "shr" => {
            let kinds: &[&str] = &["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"];
            let of = typed(op, if op.name == "shl" { &kinds[..3] } else { kinds })?;
            let [d, a, b] = exactly(given)?;
            on.put(d, of, &format!("kf_ptx_{}<{}>({}, {})", op.name, of.cpp(), on.value(a, of)?, on.value(b, u32)?))
        }
        "shf" => {
            let (side, wrap) = (op.one(&["l", "r"]).ok_or(Refused)?, op.one(&["wrap", "clamp"]).ok_or(Refused)?);
            let of = typed(op, &["b32"])?;
            let [d, a, b, c] = exactly(given)?;
            let values = [on.value(a, of)?, on.value(b, of)?, on.value(c, u32)?].join(", ");
            on.put(d, of, &format!("kf_ptx_shf_{side}<{}>({values})", spelled(wrap == "wrap")))
        }
        "lop3" => {
            let of = typed(op, &["b32"])?;
            let [d, a, b, c, table] = exactly(given)?;
            let values = [on.value(a, of)?, on.value(b, of)?, on.value(c, of)?, on.value(table, u32)?].join(", ");
            on.put(d, of, &format!("kf_ptx_lop3({values})"))
        }
        "prmt" => {
            let mode = op.one(&["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]).unwrap_or("any");
            let of = typed(op, &["b32"])?;
            let [d, a, b, c] = exactly(given)?;
            let values = [on.value(a, of)?, on.value(b, of)?, on.value(c, of)?].join(", ");
            on.put(d, of, &format!("kf_ptx_prmt<kf_perm_{mode}>({values})"))
        }
        "bfe" => {
            let of = typed(op, &["u32", "s32", "u64", "s64"])?;
            let [d, a, b, c] = exactly(given)?;
            let values = [on.value(a, of)?, on.value(b, u32)?, on.value(c, u32)?].join(", ");
            on.put(d, of, &format!("kf_ptx_bfe<{}>({values})", of.cpp()))
        }
        "bfi" => {
            let of = typed(op, &["b32", "b64"])?;
            let [d, a, b, c, n] = exactly(given)?;
            let values = [on.value(a, of)?, on.value(b, of)?, on.value(c, u32)?, on.value(n, u32)?].join(", ");
            on.put(d, of, &format!("kf_ptx_bfi<{}>({values})", of.cpp()))
        }
        "bfind" => {
            let shift = op.flag("shiftamt");
            let of = typed(op, &["u32", "s32", "u64", "s64"])?;
            let [d, a] = exactly(given)?;
            on.put(d, u32, &format!("kf_ptx_bfind<{}, {}>({})", of.cpp(), spelled(shift), on.value(a, of)?))
        }
        "bmsk" => {
            let clamps = spelled(op.one(&["clamp", "wrap"]).ok_or(Refused)? == "clamp");
            let b32 = typed(op, &["b32"])?;
            let [d, from, width] = exactly(given)?;
            let (from, width) = (on.value(from, u32)?, on.value(width, u32)?);
            on.put(d, b32, &format!("kf_ptx_bmsk<{clamps}>({from}, {width})"))
        }
        "brev" => {
            let of = typed(op, &["b32", "b64"])?;
            let [d, a] = exactly(given)?;
            on.put(d, of, &format!("kf_ptx_brev<{}>({})", of.cpp(), on.value(a, of)?))
        }
        "clz" | "popc" => {
            let of = typed(op, &["b32", "b64"])?;
            let [d, a] = exactly(given)?;
            on.put(d, u32, &format!("kf_ptx_{}<{}>({})", op.name, of.cpp(), on.value(a, of)?))
        }
        "fns" => {
            typed(op, &["b32"])?;
            let [d, mask, base, offset] = exactly(given)?;
            let values = [on.value(mask, u32)?, on.value(base, u32)?, on.value(offset, Type::of("s32"))?].join(", ");
            on.put(d, u32, &format!("kf_ptx_fns({values})"))
        }
        "dp4a" | "dp2a" => {
            let half = if op.name == "dp2a" { Some(op.one(&["lo", "hi"]).ok_or(Refused)?) } else { None };
            let (first, second) = (op.next()?, op.next()?);
            op.end()?;
            if !first.is(&["u32", "s32"]) || !second.is(&["u32", "s32"]) {
                return Err(Refused);
            }
            let sum = if first.is(&["s32"]) || second.is(&["s32"]) { Type::of("s32") } else { u32 };
            let part = |of: Type, bits: u32| format!("kf_t_{}{bits}", &of.name()[..1]);
            let [d, a, b, c] = exactly(given)?;
            let mut values = [on.value(a, u32)?, on.value(b, u32)?, on.value(c, sum)?].join(", ");
            if let Some(half) = half {
                values += if half == "hi" { ", 2" } else { ", 0" };
            }
            let wide = if op.name == "dp2a" { 16 } else { 8 };
            on.put(
                d,
                sum,
                &format!("kf_ptx_{}<{}, {}, {}>({values})", op.name, part(first, wide), part(second, 8), sum.cpp()),
            )
        }
        _ => Err(Refused),
    }
}

/// The only type, one of these, after which nothing remains.
fn typed(op: &mut Op<'_>, names: &[&str]) -> Result<Type, Refused> {
    let of = op.next()?;
    op.end()?;
    if of.is(names) { Ok(of) } else { Err(Refused) }
}

fn sums(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    let (sat, carries) = (op.flag("sat"), op.flag("cc"));
    let of = typed(op, &["u16", "s16", "u32", "s32", "u64", "s64", "u16x2", "s16x2"])?;
    let [d, a, b] = exactly(given)?;
    let (a, b) = (on.value(a, of)?, on.value(b, of)?);
    let name = if op.name.starts_with("add") { "add" } else { "sub" };
    let carried = op.name.ends_with('c');
    if carries || carried {
        if sat || !of.is(&["u32", "s32", "u64", "s64"]) {
            return Err(Refused);
        }
        // Without `.cc`, the carry stays what it was.
        let keep = if carries { "" } else { "bool kf_lost; " };
        let (out, carry) = (if carries { "kf_carry" } else { "kf_lost" }, if carried { "kf_carry" } else { "false" });
        return Ok(keep.to_owned()
            + &on.put(d, of, &format!("kf_ptx_carry_{name}<{}>({a}, {b}, {carry}, {out})", of.cpp()))?);
    }
    if of.is(&["u16x2", "s16x2"]) && !sat {
        let part = &of.cpp_part();
        return on.put(d, of, &format!("kf_ptx_halves<{part}>({a}, {b}, kf_ptx_i{name}<{part}>)"));
    }
    match sat {
        false if !of.is(&["u16x2", "s16x2"]) => on.put(d, of, &format!("kf_ptx_i{name}<{}>({a}, {b})", of.cpp())),
        true if of.is(&["s32"]) => on.put(d, of, &format!("kf_ptx_i{name}_sat<{}>({a}, {b})", of.cpp())),
        _ => Err(Refused),
    }
}

fn products(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    let half = op.one(&["lo", "hi", "wide"]).ok_or(Refused)?;
    let (sat, carries) = (op.flag("sat"), op.flag("cc"));
    let of = typed(op, &["u16", "s16", "u32", "s32", "u64", "s64"])?;
    let (result, product): (Type, Box<dyn Fn(String, String) -> String>) = match half {
        "wide" if of.bits() < 64 => {
            let wide = Type::of(match of.name() {
                "u16" => "u32",
                "s16" => "s32",
                "u32" => "u64",
                _ => "s64",
            });
            (wide, Box::new(move |a, b| format!("kf_ptx_mul_wide<{}>({a}, {b})", wide.cpp())))
        }
        "wide" => return Err(Refused),
        half => (of, Box::new(move |a, b| format!("kf_ptx_mul_{half}<{}>({a}, {b})", of.cpp()))),
    };
    match (op.name, given) {
        ("mul", [d, a, b]) if !sat && !carries => on.put(d, result, &product(on.value(a, of)?, on.value(b, of)?)),
        ("mad" | "madc", [d, a, b, c]) => {
            let (product, c, cpp) = (product(on.value(a, of)?, on.value(b, of)?), on.value(c, result)?, result.cpp());
            let carried = op.name == "madc";
            if carries || carried {
                if sat || half == "wide" || !of.is(&["u32", "s32", "u64", "s64"]) {
                    return Err(Refused);
                }
                let keep = if carries { "" } else { "bool kf_lost; " };
                let (out, carry) =
                    (if carries { "kf_carry" } else { "kf_lost" }, if carried { "kf_carry" } else { "false" });
                return Ok(keep.to_owned()
                    + &on.put(d, result, &format!("kf_ptx_carry_add<{cpp}>({product}, {c}, {carry}, {out})"))?);
            }
            match sat {
                false => on.put(d, result, &format!("kf_ptx_iadd<{cpp}>({product}, {c})")),
                true if half == "hi" && of.is(&["s32"]) => {
                    on.put(d, result, &format!("kf_ptx_mad_sat<{cpp}>({product}, {c})"))
                }
                true => Err(Refused),
            }
        }
        _ => Err(Refused),
    }
}
