//! Moves, selections and comparisons of registers.

use super::{Code, Op, exactly, spelled};
use crate::ptx::operands::{Operands, Refused, Type};
use crate::ptx::template::Operand;

/// The operations of this group.
pub(super) const NAMES: &[&str] = &["mov", "selp", "slct", "setp", "set", "isspacep", "createpolicy"];

pub(super) fn translated(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    match op.name {
        "mov" => mov(on, op, given),
        "selp" => {
            let of = op.next()?;
            op.end()?;
            let [d, a, b, p] = exactly(given)?;
            if !(of.is_bits() || of.is(&["f32", "f64"])) || of.bits() < 16 {
                return Err(Refused);
            }
            let values = [on.value(a, of)?, on.value(b, of)?, on.predicate(p)?].join(", ");
            on.put(d, of, &format!("kf_ptx_select<{}>({values})", of.cpp()))
        }
        "slct" => {
            let ftz = op.flag("ftz");
            let (of, by) = (op.next()?, op.next()?);
            op.end()?;
            let [d, a, b, c] = exactly(given)?;
            if !(of.is_bits() || of.is(&["f32", "f64"]))
                || of.bits() < 16
                || !by.is(&["s32", "f32"])
                || ftz && !by.is(&["f32"])
            {
                return Err(Refused);
            }
            let first = match by.name() {
                "s32" => format!("{} >= 0", on.value(c, by)?),
                _ => format!("kf_ptx_flush<{}>({}) >= 0", spelled(ftz), on.value(c, by)?),
            };
            on.put(d, of, &format!("kf_ptx_select<{}>({}, {}, {first})", of.cpp(), on.value(a, of)?, on.value(b, of)?))
        }
        "setp" | "set" => compare(on, op, given),
        "isspacep" => {
            let space = op.one(&["shared", "shared::cta", "global"]).ok_or(Refused)?;
            op.end()?;
            let [d, a] = exactly(given)?;
            let shared = format!("kf_ptx_is_shared({})", on.value(a, Type::of("u64"))?);
            on.put(d, Type::of("pred"), &if space == "global" { format!("!{shared}") } else { shared })
        }
        // How long a line stays in a cache is not emulated.
        "createpolicy" => {
            op.drop(|m| matches!(m, "fractional" | "range" | "global") || m.starts_with("L2::"));
            let of = op.next()?;
            op.end()?;
            let d = given.first().filter(|_| of.is(&["b64"])).ok_or(Refused)?;
            on.put(d, of, "static_cast<kf_t_b64>(0)")
        }
        _ => Err(Refused),
    }
}

fn mov(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    let of = op.next()?;
    op.end()?;
    let [d, a] = exactly(given)?;
    let moved = of.is_bits() && of.bits() >= 16 || of.is(&["pred", "f32", "f64"]);
    match (d, a) {
        _ if !moved => Err(Refused),
        (Operand::Vector(_), Operand::Vector(_)) => Err(Refused),
        // The first part is the least significant one.
        (d, Operand::Vector(parts)) => {
            let part = part_of(of, parts.len())?;
            let mut sum = Vec::new();
            for (at, value) in parts.iter().enumerate() {
                sum.push(format!("static_cast<kf_t_u64>({}) << {}", on.value(value, part)?, at as u32 * part.bits()));
            }
            on.put(d, of, &format!("static_cast<{}>({})", of.cpp(), sum.join(" | ")))
        }
        (Operand::Vector(parts), a) => {
            let part = part_of(of, parts.len())?;
            let mut out = format!("const {} kf_whole = {};", of.cpp(), on.value(a, of)?);
            for (at, d) in parts.iter().enumerate().filter(|(_, d)| **d != Operand::Sink) {
                out +=
                    &on.put(d, part, &format!("static_cast<{}>(kf_whole >> {})", part.cpp(), at as u32 * part.bits()))?;
            }
            Ok(out)
        }
        (d, a) => on.put(d, of, &on.value(a, of)?),
    }
}

/// The type of one of so many parts.
fn part_of(of: Type, parts: usize) -> Result<Type, Refused> {
    let bits = of.bits() / parts.max(1) as u32;
    let fits = of.is(&["b16", "b32", "b64"])
        && matches!(parts, 2 | 4)
        && bits >= 8
        && (bits > 8 || parts == 4 || of.bits() == 16);
    if fits { Ok(Type::unsigned(bits)) } else { Err(Refused) }
}

const COMPARISONS: [&str; 18] = [
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
];

fn compare(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    let pred = Type::of("pred");
    let comparison = op.one(&COMPARISONS).ok_or(Refused)?;
    let with = op.one(&["and", "or", "xor"]);
    let ftz = op.flag("ftz");
    let result = if op.name == "set" { Some(op.next()?) } else { None };
    let of = op.next()?;
    op.end()?;
    let [d, a, b, more @ ..] = given else { return Err(Refused) };
    let float = of.is_float() || of.is_pair();
    let unordered = ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"].contains(&comparison);
    let unsigned = ["lo", "ls", "hi", "hs"].contains(&comparison);
    let fits = (float && !unsigned)
        || (of.is_bits() && of.bits() >= 16 && !unordered && (!unsigned || of.name().starts_with('u')));
    // Bits are only equal or not.
    let bits_fit = !of.name().starts_with('b') || of.is(&["bf16", "bf16x2"]) || ["eq", "ne"].contains(&comparison);
    if !fits || !bits_fit || ftz && !of.is(&["f32", "f16", "f16x2"]) {
        return Err(Refused);
    }
    let comparison = match comparison {
        "lo" => "lt",
        "ls" => "le",
        "hi" => "gt",
        "hs" => "ge",
        other => other,
    };
    let (x, y) = (on.value(a, of)?, on.value(b, of)?);
    let call = |x: &str, y: &str| match float {
        true => format!("kf_ptx_fcompare<kf_cmp_{comparison}, {}>({x}, {y})", spelled(ftz)),
        false => format!("kf_ptx_compare<kf_cmp_{comparison}, {}>({x}, {y})", of.cpp()),
    };
    // With a third predicate.
    let other = match (with, more) {
        (None, []) => None,
        (Some(with), [c]) => Some((with, on.predicate(c)?)),
        _ => return Err(Refused),
    };
    let joined = |value: String| match &other {
        None => value,
        Some((with, c)) => format!("kf_ptx_{with}<bool>({value}, {c})"),
    };
    if let Some(result) = result {
        let of_result = result.is(&["u32", "s32", "f32"]) && !of.is_pair();
        let (yes, no) = if result.is(&["f32"]) { ("1.0f", "0.0f") } else { ("~0", "0") };
        let value =
            format!("{} ? static_cast<{1}>({yes}) : static_cast<{1}>({no})", joined(call(&x, &y)), result.cpp());
        return if of_result { on.put(d, result, &value) } else { Err(Refused) };
    }
    let pair = of.is_pair();
    let (first, second) = match d {
        Operand::Pair(p, q) => (&**p, Some(&**q)),
        p => (p, None),
    };
    if pair {
        // One predicate for each half.
        let second = second.ok_or(Refused)?;
        let half = |half: &str| joined(call(&format!("kf_ptx_{half}({x})"), &format!("kf_ptx_{half}({y})")));
        let (low, high) = (half("low"), half("high"));
        return Ok(format!("const bool kf_low = {low}, kf_high = {high};")
            + &on.put(first, pred, "kf_low")?
            + &on.put(second, pred, "kf_high")?);
    }
    let mut out = format!("const bool kf_yes = {};", call(&x, &y));
    // A third predicate may be one of the results.
    let (yes, no) = (joined("kf_yes".into()), joined("!kf_yes".into()));
    out += &format!("const bool kf_first = {yes}, kf_second = {no};");
    out += &on.put(first, pred, "kf_first")?;
    out += &match second {
        Some(second) => on.put(second, pred, "kf_second")?,
        None => "static_cast<void>(kf_second);".into(),
    };
    Ok(out)
}
