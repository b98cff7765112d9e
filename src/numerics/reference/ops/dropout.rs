//! dropout with a given mask, or with a mask from a counter-based generator.

use crate::reference::bind::Call;
use crate::reference::builtin::{Builtin, Kind, Produced, SettingKind, Use, Work, optional, read, setting, written};
use crate::reference::check::Check;
use crate::reference::error::Error;
use crate::reference::philox::{philox, words};
use crate::reference::values::Values;
use kforge_foundation::base::pieces;
use kforge_types::model::Init;

/// `y = x / (1 - p)` for kept elements, else 0.
pub(in crate::reference) static DROPOUT: Builtin = Builtin {
    name: "dropout",
    doc: "x / (1 - p) for kept elements, else 0. With `mask`, elements where it is not 0 are kept; without it, element i (row-major) is kept if u >= p, where \
          u = r / 2^32 and r is word i % 4 of Philox 4x32-10 with the key `seed` and the counter (i / 4, `offset`), low words first: \
          philox({lo(i / 4), hi(i / 4), lo(offset), hi(offset)}, {lo(seed), hi(seed)}); scale: |y|",
    slots: &[
        read("x", Kind::Float, "any shape"),
        optional("mask", Use::In, Kind::Int, "the shape of `x`"),
        written("y", Kind::Float, "the shape of `x`"),
        optional("kept", Use::Out, Kind::Int, "the shape of `x`: 1 where kept, else 0"),
    ],
    settings: &[
        crate::reference::builtin::Setting {
            name: "p",
            kind: SettingKind::Number,
            required: true,
            doc: "the share that is dropped, from 0 to 1 (below 1 with a mask)",
        },
        setting("seed", SettingKind::Integer, "the key, without a mask; default 0"),
        setting("offset", SettingKind::Integer, "the upper half of the counter, without a mask; default 0"),
    ],
    large: &["x"],
    check,
    run,
    work: |bound| Work { flops: 2.0 * bound.len("x") as f64, reduction: 1 },
    hint: |_, slot| (slot == "mask").then_some(Init::Range(0.0, 1.0)),
};

fn check(check: &mut Check<'_>) {
    let Some(shape) = check.bound.shape("x") else { return };
    for slot in ["mask", "y", "kept"] {
        check.shape(slot, &shape, "that of `x`");
    }
    match check.bound.number("p") {
        Some(p) if !(0.0..=1.0).contains(&p) => check.error(format!("`p` is {p}, expected from 0 to 1")),
        Some(1.0) if check.bound.tensor("mask").is_some() => {
            check.error("`p` is 1, expected less than 1 with a `mask`: kept values are divided by 1 - p");
        }
        _ => {}
    }
    if check.bound.tensor("mask").is_some() {
        for setting in ["seed", "offset"] {
            if check.bound.integer(setting).is_some() {
                check.error(format!("`{setting}` has no effect with a `mask`; remove one of them"));
            }
        }
    }
}

fn run(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    let x = call.float("x")?;
    let p = call.bound.number("p").unwrap_or(0.0);
    let kept: Vec<i64> = match call.slot("mask")? {
        Some(_) => call.ints("mask")?.iter().map(|m| i64::from(*m != 0)).collect(),
        None => {
            let key = words(call.bound.integer("seed").unwrap_or(0) as u64);
            let [low, high] = words(call.bound.integer("offset").unwrap_or(0) as u64);
            let keep = |i: usize| {
                let [a, b] = words(i as u64 / 4);
                let r = philox([a, b, low, high], key)[i % 4];
                i64::from(f64::from(r) / 4_294_967_296.0 >= p)
            };
            pieces::values(x.len(), keep)
        }
    };
    let y: Vec<f64> = x.iter().zip(&kept).map(|(x, k)| if *k == 1 { x / (1.0 - p) } else { 0.0 }).collect();
    let scales = scale.then(|| y.iter().map(|y| y.abs()).collect());
    let mut produced = Produced::one("y", Values::Float(y), scales);
    produced.put("kept", Values::Int(kept), None);
    Ok(produced)
}
