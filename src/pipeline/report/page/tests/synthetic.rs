//! A report of many kernels, as a workspace of ordinary ones gives it, with everything that the page shows: failures, emulated and unknown verdicts, rivals,
//! baselines, methods, searches and rounds.

use crate::report::Report;
use serde_json::{Value, json};

/// Variants of each kernel.
const VARIANTS: [&str; 6] =
    ["BLOCK=128,VEC=1", "BLOCK=128,VEC=4", "BLOCK=256,VEC=1", "BLOCK=256,VEC=4", "BLOCK=512,VEC=1", "BLOCK=512,VEC=4"];
pub(super) const CHAMPION: &str = VARIANTS[3];
const RIVAL: &str = VARIANTS[1];
const SHAPES: [&str; 4] = ["large", "llama", "small", "tails"];
const DEVICE: &str = "NVIDIA H200 (sm_90, driver 580)";

/// A number without a short form, so that the page has to round it.
fn odd(kernel: usize, of: usize) -> f64 {
    let mixed = (kernel as u64 * 7919 + of as u64 * 104_729 + 17).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
    mixed as f64 / (1u64 << 53) as f64
}

/// The time of a variant at a bench shape.
fn ns(kernel: usize, shape: usize, variant: usize) -> f64 {
    let slower =
        [1.31, 1.03, 1.17, 1.0, 1.42, 1.09][variant] + 0.05 * odd(kernel, variant) * f64::from(u8::from(variant != 3));
    (3_000.0 + 90_000.0 * odd(kernel, 50 + shape)) * slower
}

fn spread(ns: f64, seed: usize, quantiles: bool) -> Value {
    let all: Vec<f64> =
        (0..=20).map(|step| ns * (0.985 + 0.0015 * f64::from(step) + 0.0004 * odd(seed, step as usize))).collect();
    let mut spread = json!({ "samples": 240 + seed % 40, "interval_ns": [ns * 0.996, ns * 1.004] });
    if quantiles {
        spread["quantiles_ns"] = json!(all);
    }
    spread
}

fn times(kernel: usize) -> Value {
    let mut all = vec![];
    for (s, shape) in SHAPES.iter().take(2).enumerate() {
        for (v, variant) in VARIANTS.iter().enumerate() {
            let cold = ns(kernel, s, v);
            let kept = [CHAMPION, RIVAL, VARIANTS[0]].contains(variant);
            all.push(json!({
                "shape": shape, "variant": variant, "cold_ns": cold, "hot_ns": cold * 0.6,
                "seen": {
                    "device": DEVICE, "at": "2026-11-25T08:54:36Z", "standing": "signed",
                    "clocks_mhz": [1980, 3201], "temperature_c": 41,
                    "cold": spread(cold, kernel + v, kept), "hot": spread(cold * 0.6, kernel + v + 7, kept),
                },
            }));
        }
    }
    // A third tunable, which only some variants have.
    if kernel % 10 == 2 {
        for (v, variant) in ["BLOCK=256,VEC=4,STAGES=3", "BLOCK=256,VEC=4,STAGES=4"].iter().enumerate() {
            for (s, shape) in SHAPES.iter().take(2).enumerate() {
                let cold = ns(kernel, s, 3) * (1.07 + v as f64 * 0.11);
                all.push(
                    json!({ "shape": shape, "variant": variant, "cold_ns": cold, "hot_ns": cold * 0.6, "few": true }),
                );
            }
        }
    }
    json!(all)
}

fn shapes(kernel: usize) -> Value {
    let of = |shape: &&str| {
        let verdict = match (kernel % 10, *shape) {
            (3, "tails") => json!({ "fail": "`y` is wrong at [0, 7]" }),
            (6, "large") => json!({ "unknown": { "no-device": "an sm_90 device" } }),
            _ => json!("pass"),
        };
        let explanation = if kernel % 10 == 3 { "`y`[0, 7] is 3.5, expected 4.25\nand 11 more" } else { "" };
        json!({
            "shape": shape, "variant": CHAMPION, "verdict": verdict, "emulated": kernel % 10 == 8, "worst": 0.02,
            "explanation": explanation,
        })
    };
    json!(SHAPES.iter().map(of).collect::<Vec<_>>())
}

fn versus(kernel: usize) -> Value {
    let of = |(s, shape): (usize, &&str)| {
        let ratio = ns(kernel, s, 1) / ns(kernel, s, 3) + 0.003;
        json!({ "shape": shape, "variant": RIVAL, "ratio": ratio, "interval": [ratio - 0.0061, ratio + 0.0073] })
    };
    json!(SHAPES.iter().take(2).enumerate().map(of).collect::<Vec<_>>())
}

fn roofline(kernel: usize) -> Value {
    let of = |(s, shape): (usize, &&str)| {
        let share = 0.02 + 0.93 * odd(kernel, 70 + s);
        let peak = 4.389e12;
        let achieved = json!({
            "time_ns": ns(kernel, s, 3), "bytes_per_s": share * peak,
            "memory": { "share": share, "peak_per_s": peak, "measured": true },
            "ops_per_s": share * 1.1e12, "unit": "f32",
            "compute": { "share": share * 1.1 / 65.7, "peak_per_s": 65.7e12, "measured": true },
        });
        ((*shape).to_string(), achieved)
    };
    let metrics = json!({
        "dram_throughput": 71.25, "sm_throughput": 20.5, "warps_active": 63.1, "registers": 32.0, "waves": 0.4 + odd(kernel, 90),
        "l2_hit": 51.8, "ipc": 0.52, "stall_long_scoreboard": 62.2, "stall_barrier": 3.4, "dram_rate": 3.1e12,
    });
    json!([{
        "variant": CHAMPION, "shape": "large",
        "roofline": {
            "shape": 0, "time_ns": 5280.0, "gaps": { "compute": 0.95, "memory": 0.2, "latency": 0.4 },
            "bound": "memory", "near_peak": false, "metrics": metrics,
        },
        "achieved": SHAPES.iter().take(2).enumerate().map(of).collect::<serde_json::Map<_, _>>(),
    }])
}

fn machine() -> Value {
    let opcodes: serde_json::Map<String, Value> = [
        ("FFMA", 128),
        ("LDG.E.128", 8),
        ("STG.E.128", 4),
        ("IMAD", 33),
        ("MOV", 21),
        ("ISETP.GE.AND", 9),
        ("BRA", 6),
        ("SHFL.BFLY", 10),
        ("BAR.SYNC", 2),
        ("LDS.128", 4),
        ("STS", 2),
        ("EXIT", 1),
    ]
    .map(|(name, count)| (name.to_string(), json!(count)))
    .into_iter()
    .collect();
    json!([{
        "variant": CHAMPION, "architectures": ["sm_90a"],
        "functions": [{
            "entry": "kernel<float, 256, 4>", "symbol": "_Z6kernel", "registers": 32, "spill_stores": 0, "spill_loads": 0,
            "stack": 0, "shared": 1040, "params": [[0, 8], [8, 8], [16, 4]], "max_threads": 256, "opcodes": opcodes,
        }],
    }])
}

fn methods(kernel: usize) -> Value {
    let method = ["compute.warp_shuffle", "memory.wide_accesses"][kernel % 2];
    let saving = 0.02 + 0.2 * odd(kernel, 80);
    json!([{
        "method": method, "variant": CHAMPION,
        "matched": { "shown": "shown", "counts": [["LDG.E.128", 8, 0]] },
        "attribution": {
            "fate": "effective", "because": "saves at least 1.0 %", "saving": [saving, saving - 0.011, saving + 0.013],
        },
        "shapes": [
            { "shape": "large", "saving": [saving + 0.031, saving + 0.022, saving + 0.047] },
            { "shape": "small", "saving": [saving - 0.024, saving - 0.037, saving - 0.018], "orders_disagree": [saving, 0.0] },
        ],
    }])
}

fn search(kernel: usize) -> Value {
    let visits: Vec<Value> = (0..24)
        .map(|at: usize| match at % 4 {
            3 => json!({ "variant": VARIANTS[at % 6], "fate": "discarded", "because": "it spills 64 B" }),
            2 => json!({ "variant": VARIANTS[at % 6], "fate": "slow", "ns": 9_000.0 + 800.0 * odd(kernel, at) }),
            _ => json!({ "variant": VARIANTS[at % 6], "fate": "timed", "ns": 7_000.0 + 900.0 * odd(kernel, at) }),
        })
        .collect();
    json!({
        "strategy": "random", "visited": 24, "of": 864, "on_facts": 6, "on_samples": 6, "took_s": 12.5,
        "best": [{ "class": "all", "variant": CHAMPION, "visit": 9 }], "over": "variants", "visits": visits,
    })
}

fn rounds() -> Value {
    let source = "__global__ void k(float *y) {\n  int i = threadIdx.x;\n  y[i] = 1;\n}\n";
    let candidate = |round: u32, variant: &str, parent: Value, became: &str, source: Value| {
        json!({
            "round": round, "attempt": 0, "variant": variant, "parent": parent, "became": became, "because": "",
            "time_ns": 7_870.5, "champion_after": [round], "source": source,
        })
    };
    json!({
        "shape": "large",
        "rounds": [
            { "round": 0, "methods": [], "champion": "start", "time_ns": 9_100.5, "counts": [1, 0, 0], "repairs": 0 },
            {
                "round": 1, "methods": ["memory.wide_accesses"], "bound": "memory", "champion": "r1,V=4",
                "time_ns": 7_870.5, "gain": 1.156, "counts": [1, 1, 0], "repairs": 1,
            },
        ],
        "candidates": [
            candidate(0, "start", Value::Null, "right", Value::Null),
            candidate(1, "r1,V=4", json!("start"), "right", json!(source)),
            candidate(2, "r2,V=4", json!("r1,V=4"), "wrong", json!(source.replace("= 1;", "= 2;"))),
        ],
        "methods": [], "spent": [{ "agent": "rules", "requests": 2, "tokens": [900, 120], "money": 0.01, "seconds": 3.5 }],
        "over": "no method is left",
    })
}

fn target(kernel: usize) -> Value {
    let classes: serde_json::Map<String, Value> =
        SHAPES.iter().map(|shape| ((*shape).to_string(), json!("all"))).collect();
    let mut target = json!({
        "target": "h200", "types": "", "observed_on": [DEVICE],
        "observed": [{
            "device": DEVICE, "driver": "580.159.04", "origin": "evidence/h200.kfe",
            "standing": if kernel % 9 == 4 { "claimed" } else { "signed" }, "signer": "examples@kforge", "records": 16,
            "oldest": "2026-11-25T08:54:36Z", "newest": "2026-11-25T08:56:06Z",
        }],
        "champions": [{
            "class": "all", "shapes": SHAPES, "variant": CHAMPION, "provisional": false,
            "because": "first declared of 2 variants that tie for fastest", "versus": versus(kernel),
        }],
        "basis": { "hot": false, "declared": VARIANTS[0], "whole": true, "classes": classes },
        "times": times(kernel), "shapes": shapes(kernel), "variants": [6, 6, 0], "machine": machine(),
        "methods": methods(kernel), "rooflines": roofline(kernel), "unavailable": [], "failed": [],
    });
    if kernel % 4 == 1 {
        let ratio = 1.4 + odd(kernel, 60);
        target["baselines"] = json!([{
            "shape": "large", "baseline": "eager", "variant": CHAMPION,
            "rating": {
                "verdict": "pass", "call_ns": 31_200.0, "device_ns": 12_400.0, "champion_ns": 8_000.0,
                "ratio": { "median": ratio, "low": ratio - 0.02, "high": ratio + 0.03 },
            },
        }]);
    }
    if kernel % 12 == 5 {
        target["search"] = search(kernel);
    }
    if kernel % 25 == 7 {
        target["rounds"] = rounds();
    }
    if kernel % 11 == 9 {
        target["stale"] = json!("`kernel.cu` was edited since this was built");
    }
    target
}

/// A report of some kernels.
pub(in crate::report::page) fn synthetic(kernels: usize) -> Report {
    let kernel = |at: usize| json!({ "name": format!("kernel_{at:02}"), "operator": format!("operator_{at:02}"), "targets": [target(at)] });
    let report = json!({
        "format_version": 1,
        "built": {
            "kforge": "0.1.0", "at": "2026-11-27T16:55:30Z", "commit": "126d4d5980ea33e4fb702d42a1501522cbe094b6", "dirty": false,
            "folder": "examples/kernels", "interrupted": false,
            "toolchains": { "cuda 13.0": ["nvidia-cuda-nvrtc 13.0.88", "nvidia-cuda-nvdisasm 13.5.37"] },
        },
        "packages": [{ "name": "synthetic", "operators": [], "kernels": (0..kernels).map(kernel).collect::<Vec<_>>() }],
    });
    serde_json::from_value(report).unwrap()
}
