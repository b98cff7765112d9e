//! Every emulated instruction of inline PTX, compared with what a GPU gave: `tests/emulator_values/instructions.cu` and the record `instructions.txt` beside
//! it, which `tests/gpu/run KFORGE --only ptx` compares with another GPU.
//!
//! | kind | compared |
//! |---|---|
//! | `INT`, `F32`, `F64`, `F16`, `BF16`, `TILE`, `ATOMF`, `MMA` | to the bit |
//! | `NEAR_REL`, `NEAR_F16`, `NEAR_BF16` | within 2^-n of the value |
//! | `NEAR_ABS` | within 2^-n |
//! | `NEAR_LOG` | within 2^-n, absolute near one and of the value elsewhere |
//! | `MMA_F32` | within 2^-22 of K + 1, which no sum of magnitudes exceeds; of products of e4m3 of four times that |
//! | `MMA_F16` | within a unit in the last place of a result of at most K + 1 |
//! | `MMA_F64` | within 2^-50 of K + 1 |

use std::collections::BTreeMap;

use kforge::record::{Finding, FindingKind};

use super::harness::*;

const SOURCE: &str = include_str!("../emulator_values/instructions.cu");

/// The sources that one compilation takes: what stands before the instructions, and some of them.
fn sources(cases: &[Case]) -> String {
    let own = |line: &&str| {
        !line.ends_with(" END")
            || cases.iter().any(|case| [')', ','].iter().any(|end| line.contains(&format!("({}{end}", case.name))))
    };
    SOURCE.lines().filter(own).map(|line| format!("{line}\n")).collect()
}

struct Case {
    kind: String,
    name: String,
    first: i32,
    blocks: u32,
    words: usize,
}

fn cases() -> Vec<Case> {
    let mut found = Vec::new();
    for line in SOURCE.lines().filter(|line| line.ends_with(" END")) {
        let (kind, rest) = line.split_once('(').unwrap();
        let (inside, _) = rest.split_once(')').unwrap();
        let parts: Vec<&str> = inside.split(", ").collect();
        let number = |at: usize| parts.get(at).and_then(|n| n.parse::<i32>().ok());
        let blocks = if kind.starts_with("NEAR") { 8 } else { 128 };
        let blocks = if kind.starts_with("MMA_") { 1 } else { blocks };
        let words = blocks as usize * 32 * number(2).unwrap_or(1) as usize;
        found.push(Case { kind: kind.into(), name: parts[0].into(), first: number(1).unwrap_or(0), blocks, words });
    }
    assert!(found.len() > 1000);
    found
}

fn digest(words: &[u64]) -> String {
    let h = words.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, w| (h ^ w).wrapping_mul(0x100_0000_01b3));
    format!("{h:016x}")
}

/// The numbers in a word.
fn numbers(kind: &str, word: u64) -> Vec<f64> {
    let half = |at: u32| f64::from(half::f16::from_bits((word >> (16 * at)) as u16).to_f32());
    match kind {
        "MMA_F64" => vec![f64::from_bits(word)],
        "MMA_F16" => vec![half(0), half(1)],
        _ => vec![f64::from(f32::from_bits(word as u32))],
    }
}

/// How far apart the two are, in terms of what is allowed.
fn apart(case: &Case, got: u64, want: u64) -> f64 {
    let pairs = numbers(&case.kind, got).into_iter().zip(numbers(&case.kind, want));
    pairs.map(|(got, want)| apart_by(case, got, want)).fold(0.0, f64::max)
}

fn apart_by(case: &Case, got: f64, want: f64) -> f64 {
    if !got.is_finite() || !want.is_finite() {
        return if got.is_nan() && want.is_nan() || got == want { 0.0 } else { f64::INFINITY };
    }
    let bound = (-f64::from(case.first)).exp2();
    let far = (got - want).abs();
    match case.kind.as_str() {
        "NEAR_ABS" => far / bound,
        "NEAR_LOG" => far / (bound * want.abs().max(1.0)),
        "MMA_F32" if case.name.contains("e4m3") => far / ((-20f64).exp2() * f64::from(case.first + 1)),
        "MMA_F32" => far / ((-22f64).exp2() * f64::from(case.first + 1)),
        "MMA_F64" => far / ((-50f64).exp2() * f64::from(case.first + 1)),
        // Up to 17: eleven bits.
        "MMA_F16" => far / (-6f64).exp2(),
        "NEAR_F16" => far / (bound * want.abs()).max((-24f64).exp2()),
        _ => far / (bound * want.abs()).max((-149f64).exp2()),
    }
}

#[test]
#[ignore = "second tier: a thousand kernels"]
#[expect(clippy::print_stderr, reason = "how close approximations are")]
fn every_instruction_gives_what_a_gpu_gave() {
    let record = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/emulator_values/instructions.txt");
    let record = std::fs::read_to_string(record).unwrap();
    let recorded: BTreeMap<&str, &str> =
        record.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' ')).collect();
    let cases = cases();
    let (mut wrong, mut worst) = (Vec::new(), BTreeMap::<&str, f64>::new());
    // In a check build, nothing of it is accused either.
    let parts = [false, true].into_iter().flat_map(|check| cases.chunks(200).map(move |part| (check, part)));
    let parts = parts.map(|(check, part)| {
        let entries: Vec<&str> = part.iter().map(|case| case.name.as_str()).collect();
        (build(&sources(part), &entries, check), part)
    });
    for (built, case) in parts.flat_map(|(built, part)| {
        let built = std::rc::Rc::new(built);
        part.iter().map(move |case| (built.clone(), case))
    }) {
        let out = output("out", case.words, 8);
        let ran = run(&built, launch(&case.name, case.blocks, 32, vec![ptr("out")]), &[out]);
        // These kernels write themselves what they then read, also through the read-only cache.
        let stale = |f: &&Finding| f.kind == FindingKind::StaleRead && case.name.contains("_nc_");
        let found = ran.findings.iter().find(|f| !stale(f));
        if found.is_some() || !ran.not_emulated.is_empty() {
            wrong.push(format!("{}: {:?} {:?}", case.name, ran.not_emulated, found.map(|f| &f.message)));
            continue;
        }
        let words: Vec<u64> = ran.buffers["out"].chunks(8).map(|w| u64::from_le_bytes(w.try_into().unwrap())).collect();
        let Some(want) = recorded.get(case.name.as_str()) else {
            wrong.push(format!("{}: not recorded", case.name));
            continue;
        };
        if !case.kind.starts_with("NEAR") && !case.kind.starts_with("MMA_") {
            if digest(&words) != *want {
                wrong.push(format!("{}: differs", case.name));
            }
            continue;
        }
        let want: Vec<u64> = want.split(' ').map(|word| u64::from_str_radix(word, 16).unwrap()).collect();
        assert_eq!(want.len(), words.len(), "{}", case.name);
        for (at, (got, want)) in words.iter().zip(&want).enumerate() {
            let far = apart(case, *got, *want);
            let worst = worst.entry(&case.name).or_default();
            *worst = worst.max(far);
            if far > 1.0 {
                wrong.push(format!(
                    "{} at {at}: {got:x} where the GPU gave {want:x}: {far:.3} of what is allowed",
                    case.name
                ));
                break;
            }
        }
    }
    eprintln!("{} instructions, of what is allowed: {worst:#.3?}", cases.len());
    assert!(wrong.is_empty(), "{} wrong: {wrong:#?}", wrong.len());
}
