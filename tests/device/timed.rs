//! Times: cold and hot samples, few samples, pairs, peaks; and times that are not believed.

use kforge::measure::stats::{Paired, decide};
use kforge::model::Metric;
use kforge::record::peaks::{PeaksObserved, PeaksParams};
use kforge::record::timing::{BenchObserved, PairsObserved};
use kforge::record::{Provenance, StepKind, Unknown, Verdict};

use crate::lab::{Lab, Seen, differing};

fn near(samples: &[f64], ns: f64) {
    let middle = kforge::measure::stats::median(samples);
    assert!((middle / ns - 1.0).abs() < 0.01, "{middle} for {ns}");
}

pub(crate) fn timed() {
    let seen = Lab::new().bench("honest");
    assert_eq!(seen.verdict(), None, "{:?}", seen.response);
    let observed: BenchObserved = seen.read("observation");
    assert!(observed.verified);
    for series in [observed.cold.unwrap(), observed.hot.unwrap()] {
        assert!(series.samples_ns.len() >= 30 && series.dropped == 0, "{series:?}");
        near(&series.samples_ns, 50_000.0);
    }
    assert!(observed.took_s.is_some_and(|s| s > 0.0), "{:?}", observed.took_s);
    // Double data rate over 512 bits at 1000 MHz; four processors at 1000 MHz with 4096 operations per clock each.
    let peaks = observed.peaks.unwrap();
    assert_eq!((peaks.dram_bytes_per_s, peaks.ops_per_s["f16"]), (128e9, 16.384e12));
}

pub(crate) fn few() {
    for few in [7, 25] {
        let observed: BenchObserved = Lab { samples: Some(few), ..Lab::new() }.bench("honest").read("observation");
        for series in [observed.cold.unwrap(), observed.hot.unwrap()] {
            assert_eq!(series.samples_ns.len(), few as usize);
        }
    }
}

pub(crate) fn few_launches() {
    let lab = |metric| Lab { samples: Some(5), only: Some(metric), ..Lab::new() };
    let launched = |lab: &Lab, step: &dyn Fn() -> Seen| {
        let before = lab.asked().len();
        let seen = step();
        assert_eq!(seen.verdict(), None, "{:?}", seen.response);
        lab.asked().len() - before
    };
    let hot = lab(Metric::Hot);
    // Two launches that show what to expect, five samples, and one untimed launch, because no verification has shown its output.
    assert_eq!(launched(&hot, &|| hot.bench("honest")), 8);
    launched(&hot, &|| hot.verify("honest"));
    assert_eq!(launched(&hot, &|| hot.bench("honest")), 7);
    let observed: BenchObserved = hot.bench("slower").read("observation");
    assert!(observed.few && observed.verified && observed.cold.is_none(), "{observed:?}");
    assert_eq!(observed.hot.unwrap().samples_ns.len(), 5);
    // Of a long launch one sample is enough, after a launch that prepares it; its output is verified like that of others.
    launched(&hot, &|| hot.verify("lengthy"));
    assert_eq!(launched(&hot, &|| hot.bench("lengthy")), 2);
    // How many samples a variant gets does not depend on a wrong one that was faster.
    launched(&hot, &|| hot.verify("wrong_and_fast"));
    launched(&hot, &|| hot.bench("wrong_and_fast"));
    assert_eq!(launched(&hot, &|| hot.bench("slower")), 7);
    // A variant whose first launch only is slow gets all its samples.
    launched(&hot, &|| hot.verify("slow_to_start"));
    assert_eq!(launched(&hot, &|| hot.bench("slow_to_start")), 7);
    let cold = lab(Metric::Cold);
    for kernel in ["honest", "lengthy"] {
        launched(&cold, &|| cold.verify(kernel));
    }
    assert_eq!(launched(&cold, &|| cold.bench("honest")), 7);
    assert_eq!(launched(&cold, &|| cold.bench("lengthy")), 2);
    let observed: BenchObserved = cold.bench("lengthy").read("observation");
    assert!(observed.few && observed.verified, "{observed:?}");
    assert_eq!(observed.cold.unwrap().samples_ns.len(), 1);
}

pub(crate) fn stressed() {
    let seen = Lab::new().bench("honest");
    let observed: BenchObserved = seen.read("observation");
    let stress = observed.stress.unwrap();
    assert!(["tiny", "ties"].contains(&stress.class.as_str()), "{stress:?}");
    assert!((5..=20).contains(&stress.cold_ns.len()) && (5..=20).contains(&stress.hot_ns.len()), "{stress:?}");
    near(&stress.cold_ns, 50_000.0);
    assert_eq!(stress.outputs.len(), 1, "{stress:?}");
    assert!(stress.outputs[0].elements == 1000 && stress.outputs[0].gross.is_none(), "{stress:?}");
    // A bench with few samples has none.
    let observed: BenchObserved = Lab { samples: Some(5), ..Lab::new() }.bench("honest").read("observation");
    assert_eq!(observed.stress, None);
}

/// A stress class is drawn for each bench, so a kernel that is careless with one of two is caught in half of them.
fn until<T>(lab: impl Fn() -> Option<T>) -> T {
    (0..40).find_map(|_| lab()).expect("a class that has equal chances is drawn in forty attempts")
}

pub(crate) fn careless() {
    assert!(Lab::new().verify("careless_when_timed").observed().findings.is_empty());
    let why = until(|| match Lab::new().bench("careless_when_timed").verdict() {
        Some(Verdict::Fail(why)) => Some(why),
        other => {
            assert_eq!(other, None);
            None
        }
    });
    let said =
        "`y` of a timed launch differs from that of an untimed launch, on inputs of the stress class `tiny` (seed ";
    assert!(why.starts_with(said), "{why}");
}

pub(crate) fn data_dependent() {
    let observed = until(|| {
        let seen = Lab::new().bench("slow_on_small");
        assert_eq!(seen.verdict(), None, "{:?}", seen.response);
        let observed: BenchObserved = seen.read("observation");
        (observed.stress.as_ref().unwrap().class == "tiny").then_some(observed)
    });
    // The times of the class are in no series.
    near(&observed.stress.unwrap().cold_ns, 90_000.0);
    let cold = observed.cold.unwrap().samples_ns;
    assert!(cold.iter().all(|ns| *ns < 60_000.0), "{cold:?}");
}

pub(crate) fn knows_fixed_trials() {
    // Few samples are taken on a fixed trial: the kernel does know it.
    let few: BenchObserved = Lab { samples: Some(5), ..Lab::new() }.bench("knows_fixed_trials").read("observation");
    near(&few.cold.unwrap().samples_ns, 10_000.0);
    let seen = Lab::new().bench("knows_fixed_trials");
    assert_eq!(seen.verdict(), None, "{:?}", seen.response);
    let observed: BenchObserved = seen.read("observation");
    near(&observed.cold.unwrap().samples_ns, 50_000.0);
    near(&observed.hot.unwrap().samples_ns, 50_000.0);
}

pub(crate) fn caches_late() {
    let seen = Lab::new().bench("caches_late");
    let said = |why: &str| why.contains("ns on fresh inputs, in 3 draws, but ");
    let verdict = seen.verdict();
    assert!(matches!(&verdict, Some(Verdict::Unknown(Unknown::Implausible(why))) if said(why)), "{:?}", seen.response);
    // A kernel that is always slow on some inputs keeps no answers.
    assert_eq!(Lab::new().bench("slow_on_small").verdict(), None);
}

pub(crate) fn planted() {
    let lab = Lab::new();
    assert!(lab.verify_apart("plants").observed().findings.is_empty());
    assert_eq!(differing(&lab.verify_apart("gathers").observed()), 0, "it finds what another candidate left");
    assert_eq!(lab.starts(), 1);
    // Confirmed in a runner of its own, it is wrong. The same runner serves it at every shape.
    let lab = Lab { isolated: true, ..lab };
    let lab = (0..2).fold(lab, |lab, _| {
        assert!(differing(&lab.verify_apart("gathers").observed()) > 0);
        lab
    });
    assert_eq!(lab.starts(), 2);
    // Another candidate has another runner, even if the last one planted nothing.
    assert!(lab.verify_apart("plants").observed().findings.is_empty());
    assert_eq!(lab.starts(), 3);
}

pub(crate) fn short() {
    let seen = Lab::new().bench("brief");
    assert_eq!(seen.verdict(), None, "{:?}", seen.response);
    let observed: BenchObserved = seen.read("observation");
    near(&observed.hot.unwrap().samples_ns, 2000.0);
}

pub(crate) fn gives_up() {
    let seen = Lab::new().bench("gives_up");
    assert!(matches!(seen.verdict(), Some(Verdict::Fail(why)) if why.contains("`y`")), "{:?}", seen.response);
    assert!(!seen.read::<BenchObserved>("observation").verified);
}

pub(crate) fn stale() {
    let seen = Lab::new().bench("uses_stale");
    assert_eq!(seen.verdict(), None, "{:?}", seen.response);
    near(&seen.read::<BenchObserved>("observation").cold.unwrap().samples_ns, 50_000.0);
}

pub(crate) fn impossible() {
    // 2 x 2 MiB at 128 bytes per nanosecond, less one MiB of cache, take 24 us.
    let lab = Lab { elements: 1 << 19, ..Lab::new() };
    let seen = lab.bench("impossible");
    let verdict = seen.verdict();
    let said = matches!(&verdict, Some(Verdict::Fail(why)) if why.contains("clock"))
        || matches!(&verdict, Some(Verdict::Unknown(Unknown::Implausible(_))));
    assert!(said, "{:?}", seen.response);
    // A kernel that need not read all the bytes declares that.
    assert_eq!(Lab { bytes: Some(4096.0), ..lab }.bench("impossible").verdict(), None);
}

pub(crate) fn unreckoned() {
    // At 16.384 tera-operations per second, 1e12 operations take 61 ms, and 5e8 take 31 us.
    let of = |least| Lab { flops_min: Some(least), ..Lab::new() }.bench("honest").verdict();
    assert_eq!(of(5e8), None);
    let verdict = of(1e12);
    let said = matches!(&verdict, Some(Verdict::Fail(why)) if why.contains("clock"))
        || matches!(&verdict, Some(Verdict::Unknown(Unknown::Implausible(why))) if why.contains("least arithmetic"));
    assert!(said, "{verdict:?}");
}

pub(crate) fn reckoned() {
    let lab = Lab::new();
    let params = PeaksParams { arch: "sm_90a".into(), protocol: 1 };
    let seen = lab.run(StepKind::Peaks, serde_json::to_value(&params).unwrap(), vec![]);
    assert_eq!(seen.verdict(), None, "{:?}", seen.response);
    let observed: PeaksObserved = seen.read("observation");
    let close = |rate: f64, wanted: f64| assert!((rate / wanted - 1.0).abs() < 1e-3, "{rate} for {wanted}");
    close(observed.dram_bytes_per_s["read"].per_s, 100e9);
    close(observed.dram_bytes_per_s["copy"].sustained_per_s, 80e9);
    close(observed.dram_bytes_per_s["write"].per_s, 90e9);
    close(observed.ops("f32").unwrap(), 2e12);
    // Four processors, each with 32 times 2 x 64 x 256 x 16 operations per microsecond.
    close(observed.ops("bf16").unwrap(), 4.0 * 16_777_216.0 * 1e6);
    assert_eq!(observed.ops_per_s["bf16"].with, "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16");
    close(observed.ops("i8").unwrap(), 8.0 * 16_777_216.0 * 1e6);
    let missing: Vec<(&String, &String)> = observed.missing.iter().collect();
    let [(unit, why)] = missing[..] else { panic!("{missing:?}") };
    assert!(unit == "f8" && why.contains("CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)"), "{unit}: {why}");
    let provenance: Provenance = seen.read("provenance");
    assert_eq!((provenance.protocol, provenance.device.product.as_str()), (1, "NVIDIA Test"));
    assert!(lab.verify("honest").observed().findings.is_empty(), "the next step finds a runner");
}

pub(crate) fn paired() {
    let lab = Lab::new();
    let decided = |a: &str, b: &str, hot| {
        let seen = lab.pairs(a, b, hot);
        assert_eq!(seen.verdict(), None, "{:?}", seen.response);
        let observed: PairsObserved = seen.read("observation");
        assert!((8..=16).contains(&observed.blocks.len()), "{}", observed.blocks.len());
        decide(&observed.blocks, 0.01)
    };
    assert_eq!(decided("slower", "honest", false), Paired::Slower);
    assert_eq!(decided("honest", "slower", true), Paired::Faster);
    assert_eq!(decided("honest", "honest", false), Paired::Same);
    assert_eq!(decided("brief", "brief", true), Paired::Same);
}
