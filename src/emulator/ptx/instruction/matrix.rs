//! Matrices of a warp: `ldmatrix`, `stmatrix`, `movmatrix`, `mma`.

use super::{Code, Op, exactly, spelled};
use crate::ptx::operands::{Operands, Refused, Type};
use crate::ptx::template::Operand;

/// The operations of this group.
pub(super) const NAMES: &[&str] = &["ldmatrix", "stmatrix", "movmatrix", "mma"];

pub(super) fn translated(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    if !op.flag("sync") || !op.flag("aligned") {
        return Err(Refused);
    }
    match op.name {
        "ldmatrix" | "stmatrix" => tiles(on, op, given),
        "movmatrix" => {
            let (shape, turned, of) = (op.flag("m8n8"), op.flag("trans"), op.next()?);
            op.end()?;
            let [d, a] = exactly(given)?;
            let b32 = Type::of("b32");
            if !shape || !turned || !of.is(&["b16"]) {
                return Err(Refused);
            }
            on.put(d, b32, &format!("kf_ptx_movmatrix({})", on.value(a, b32)?))
        }
        "mma" => product(on, op, given),
        _ => Err(Refused),
    }
}

fn tiles(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    let b32 = Type::of("b32");
    let shape = op.flag("m8n8");
    let count = match op.one(&["x1", "x2", "x4"]).ok_or(Refused)? {
        "x1" => 1,
        "x2" => 2,
        _ => 4,
    };
    let turned = spelled(op.flag("trans"));
    let space = super::memory::space(op);
    let of = op.next()?;
    op.end()?;
    let loads = op.name == "ldmatrix";
    let [first, second] = exactly(given)?;
    let (words, address) = if loads { (first, second) } else { (second, first) };
    let (words, pointer) = (Operands::parts(words), on.address(address, space)?);
    if !shape || !of.is(&["b16"]) || words.len() != count {
        return Err(Refused);
    }
    if loads {
        let mut out = format!("kf_t_u32 kf_words[{count}]; kf_ptx_ldmatrix<{count}, {turned}>(kf_words, {pointer});");
        for (at, d) in words.iter().enumerate() {
            out += &on.put(d, b32, &format!("kf_words[{at}]"))?;
        }
        return Ok(out);
    }
    let stored = words.iter().map(|w| on.value(w, b32)).collect::<Result<Vec<_>, _>>()?.join(", ");
    Ok(format!(
        "const kf_t_u32 kf_words[{count}] = {{ {stored} }}; kf_ptx_stmatrix<{count}, {turned}>({pointer}, kf_words);"
    ))
}

fn product(on: &Operands, op: &mut Op<'_>, given: &[Operand]) -> Code {
    let shape = op.one(&["m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32", "m8n8k4", "m8n8k16"]).ok_or(Refused)?;
    let (row, column, saturates) = (op.flag("row"), op.flag("col"), op.flag("satfinite"));
    let (d, a, b, c) = (op.next()?, op.next()?, op.next()?, op.next()?);
    op.end()?;
    let (rows, depth) = shape[1..]
        .split_once("n8k")
        .and_then(|(m, k)| Some((m.parse::<u32>().ok()?, k.parse::<u32>().ok()?)))
        .ok_or(Refused)?;
    let bytes: &[&str] = &["s8", "u8"];
    let fits = match (shape, a.name()) {
        ("m16n8k8" | "m16n8k16", "f16") => b == a && d.is(&["f16", "f32"]),
        ("m16n8k8" | "m16n8k16", "bf16") | ("m16n8k4" | "m16n8k8", "tf32") => b == a && d.is(&["f32"]),
        ("m16n8k32", "e4m3" | "e5m2") => b.is(&["e4m3", "e5m2"]) && d.is(&["f32"]),
        ("m16n8k16" | "m16n8k32" | "m8n8k16", "s8" | "u8") => b.is(bytes) && d.is(&["s32"]),
        ("m8n8k4" | "m16n8k4" | "m16n8k8" | "m16n8k16", "f64") => b == a && d.is(&["f64"]),
        _ => false,
    };
    if !fits || !row || !column || c != d || saturates && !d.is(&["s32"]) {
        return Err(Refused);
    }
    let width = if a.is(&["f64"]) { 64 } else { 32 };
    let register = Type::unsigned(width);
    let held = |elements: u32, of: Type| (elements / 32 / (width / of.bits())) as usize;
    let [to, left, right, sum] = exactly(given)?;
    let matrix = |name: &str, operand: &Operand, count: usize| -> Code {
        let parts = Operands::parts(operand);
        if parts.len() != count {
            return Err(Refused);
        }
        let of = if width == 64 { Type::of("f64") } else { Type::of("b32") };
        let values = parts
            .iter()
            .map(|p| Ok(format!("kf_bits<{}>({})", register.cpp(), on.value(p, of)?)))
            .collect::<Result<Vec<_>, Refused>>()?;
        Ok(format!("const {} kf_{name}[{count}] = {{ {} }};", register.cpp(), values.join(", ")))
    };
    let outputs = Operands::parts(to);
    let out = held(rows * 8, d);
    if outputs.len() != out {
        return Err(Refused);
    }
    let mut code = matrix("left", left, held(rows * depth, a))?;
    code += &matrix("right", right, held(8 * depth, b))?;
    code += &matrix("sum", sum, out)?;
    code += &format!(
        "{} kf_out[{out}]; kf_ptx_mma<{}, {}, {}, {rows}, {depth}, {}>(kf_out, kf_left, kf_right, kf_sum);",
        register.cpp(),
        a.cpp(),
        b.cpp(),
        d.cpp(),
        spelled(saturates)
    );
    for (at, d) in outputs.iter().enumerate() {
        code += &on.put(d, register, &format!("kf_out[{at}]"))?;
    }
    Ok(code)
}
