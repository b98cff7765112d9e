//! The registry's data is complete and makes sense, and its queries are correct.

use std::collections::BTreeMap;

use super::*;
use kforge_types::model::{Axis, Language};
use kforge_types::record::metric;
use kforge_types::record::{FunctionFacts, Inspection};

#[test]
fn the_registry_holds_every_method_in_order() {
    let registry = registry();
    let count = |axis| registry.of_axis(axis).count();
    assert_eq!((count(Axis::Compute), count(Axis::Memory), count(Axis::Latency)), (22, 22, 19));
    for axis in Axis::ALL {
        let priorities: Vec<u32> = registry.of_axis(axis).map(|e| e.priority).collect();
        assert_eq!(priorities, (1..=priorities.len() as u32).collect::<Vec<_>>(), "{axis:?}");
    }
    assert!(registry.entries().iter().all(|e| e.axis == Axis::of(&e.id).unwrap()));
}

#[test]
fn facts_go_by_the_names_of_the_data_files() {
    for fact in Fact::ALL {
        let read: Fact = serde_json::from_value(fact.name().into()).unwrap();
        assert_eq!(read, fact);
    }
}

#[test]
fn triggers_name_metrics_that_exist() {
    for entry in registry().entries() {
        for name in entry.trigger.iter().flat_map(Trigger::metrics) {
            assert!(metric::metric(name).is_some(), "{}: {name}", entry.id);
        }
    }
}

#[test]
fn patterns_are_regular_expressions() {
    let signatures: Vec<_> = signatures().into_values().filter_map(|trace| trace.patterns().cloned()).collect();
    let all = signatures.iter().flat_map(|s| s.common.iter().chain(s.by_arch.values()));
    let mut looked = 0;
    for of in all {
        let lists = [&of.any, &of.all, &of.forbid, &of.fewer];
        for pattern in lists.into_iter().flatten().chain(of.count.keys()) {
            assert!(regex::Regex::new(pattern).is_ok(), "`{pattern}`");
            looked += 1;
        }
    }
    assert!(looked > signatures.len() / 2, "{looked}");
}

#[test]
fn ten_pairs_of_methods_exclude_each_other() {
    let entries = registry().entries();
    let pairs: usize = entries.iter().map(|e| e.conflicts.len()).sum();
    assert_eq!(pairs, 20);
}

#[test]
fn methods_have_a_form_in_triton_or_none() {
    let of = |language| registry().entries().iter().filter(|entry| has_form(&entry.id, language)).count();
    assert_eq!((of(Language::Cuda), of(Language::Triton)), (registry().entries().len(), 23));
    let entry = registry().get("memory.multi_stage_pipeline").unwrap();
    assert!(explain_in(entry, Language::Triton).contains("num_stages"));
    assert!(!explain_in(entry, Language::Cuda).contains("num_stages"));
    assert!(explain(entry).contains("In Triton:\nState num_stages"));
    assert_eq!(explain_in(registry().get("memory.tma_multicast").unwrap(), Language::Triton), "");
    assert!(!has_form("memory.of_a_package", Language::Cuda));
}

#[test]
fn architectures_are_held_against_least_and_features() {
    let on = |id: &str, arch: &str| registry().get(id).unwrap().on(arch);
    assert_eq!(on("memory.vectorized_access", "sm_75"), Fit::Fits);
    assert_eq!(on("memory.async_copy", "sm_75"), Fit::Not("`sm_75` is older than sm_80".into()));
    assert_eq!(on("compute.fp8_fast_accumulation_mode", "sm_90a"), Fit::Fits);
    assert_eq!(on("compute.fp8_fast_accumulation_mode", "sm_90"), Fit::Not("`sm_90` has no wgmma".into()));
    assert_eq!(on("compute.fp8_fast_accumulation_mode", "sm_100a"), Fit::Not("`sm_100a` has no wgmma".into()));
    assert_eq!(on("memory.tma_multicast", "sm_120a"), Fit::Not("`sm_120a` has no multicast".into()));
    assert!(matches!(on("memory.async_copy", "cpu"), Fit::Not(_)));
}

#[test]
fn preconditions_are_met_unmet_or_unknown() {
    let entry = registry().get("latency.intra_wg_gemm_softmax_pipeline").unwrap();
    let facts = |of: &[(Fact, bool)]| Facts(of.iter().copied().collect());
    assert_eq!(entry.under(&facts(&[(Fact::MatrixProduct, true), (Fact::Softmax, true)])), Fit::Fits);
    assert_eq!(entry.under(&facts(&[(Fact::MatrixProduct, true)])), Fit::Unknown(vec![Fact::Softmax]));
    let not = Fit::Not("it does not hold that the operator normalises exponentials".into());
    assert_eq!(entry.under(&facts(&[(Fact::Softmax, false)])), not, "one that fails settles it, whatever is unknown");
}

#[test]
fn a_method_without_a_trigger_is_of_unknown_strength() {
    let strength = registry().get("compute.strength_reduce").unwrap().strength(&BTreeMap::new());
    assert_eq!(strength, Strength::Unknown(std::collections::BTreeSet::new()));
    let wanted = registry().get("memory.tiling_smem").unwrap();
    assert_eq!(wanted.strength(&[("l2_hit".to_string(), 50.0)].into()), Strength::Known(0.5));
}

const GOOD: &str = "[[method]]\nid = \"memory.a\"\ntitle = \"a\"\npriority = 1\nleast = \"sm_80\"\nsignature.any = ['LDG']\n\
                    off = \"o\"\nadvice = \"a\"\n";

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    assert!(Registry::parse(&[GOOD]).is_ok());
    let cases = [
        ("id = \"memory.a\"", "id = \"speed.a\"", "an id is an axis and a name"),
        ("priority = 1", "priority = 0", "begin with 1"),
        ("least = \"sm_80\"", "least = \"sm_81\"", "`sm_81` is not an architecture"),
        ("least = \"sm_80\"", "least = \"sm_90a\"", "name its features"),
        ("off =", "features = [\"warp_drive\"]\noff =", "unknown variant `warp_drive`"),
        ("off =", "requires = [\"luck\"]\noff =", "unknown variant `luck`"),
        ("off =", "requires = [\"spills\"]\nunless = [\"spills\"]\noff =", "both required and excluded"),
        ("off =", "trigger = { metric = \"speed\", good = 1, bad = 2 }\noff =", "`speed` is not a metric"),
        ("off =", "trigger = { metric = \"ipc\", good = 1, bad = 1 }\noff =", "no extent"),
        ("off =", "conflicts = [\"memory.b\"]\noff =", "`memory.b`, which does not exist"),
        ("off =", "conflicts = [\"memory.a\"]\noff =", "with itself"),
        ("off =", "unseen = \"why\"\noff =", "not unseen"),
        ("any = ['LDG']", "any = []", "no pattern"),
        ("any = ['LDG']", "sm_81.any = ['LDG']", "`sm_81` is not an architecture"),
        ("signature.any = ['LDG']", "signature = \"none\"", "the reason in `unseen`"),
        ("title = \"a\"", "title = \"\"", "`title` is one paragraph"),
        ("title = \"a\"", "titel = \"a\"", "unknown field `titel`"),
    ];
    for (from, to, says) in cases {
        assert!(GOOD.contains(from), "{from}");
        let wrong = Registry::parse(&[&GOOD.replace(from, to)]).unwrap_err();
        assert!(wrong.0.iter().any(|w| w.to_string().contains(says)), "{to}: {wrong:?}");
    }
    let wrong = Registry::parse(&[GOOD, GOOD]).unwrap_err();
    assert_eq!(
        wrong.0.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["`memory.a` is defined twice", "`memory.a` has priority 1, which another method of its axis has"]
    );
    let other =
        GOOD.replace("memory.a", "memory.b").replace("priority = 1", "priority = 2\nconflicts = [\"memory.a\"]");
    assert_eq!(
        Registry::parse(&[GOOD, &other]).unwrap_err().to_string(),
        "`memory.b` conflicts with `memory.a`, which does not say so"
    );
}

#[test]
fn signatures_may_differ_by_architecture() {
    let text = GOOD.replace("signature.any = ['LDG']", "signature = { any = ['LDG'], sm_90a = { all = ['UBLKCP'] } }");
    let registry = Registry::parse(&[&text]).unwrap();
    let signature = registry.get("memory.a").unwrap().signature.patterns().cloned().unwrap();
    assert_eq!(signature.for_arch("sm_80").unwrap().any, ["LDG"]);
    assert_eq!(signature.for_arch("sm_90a").unwrap().all, ["UBLKCP"]);
    let signs: Vec<(String, Vec<String>)> =
        explain::shown_by(&signature).into_iter().map(|s| (s.words, s.patterns)).collect();
    let sign = |words: &str, pattern: &str| (words.to_string(), vec![pattern.to_string()]);
    assert_eq!(signs, [sign("more of one of", "LDG"), sign("sm_90a: more of each of", "UBLKCP")]);
}

#[test]
fn an_explanation_says_all_there_is() {
    let text = explain(registry().get("latency.warp_aggregated_atomics").unwrap());
    for said in [
        "latency.warp_aggregated_atomics: Warp-aggregated atomics\n",
        "axis  latency\n",
        "priority  8\n",
        "architectures  sm_75 and later\n",
        "trigger  stall_membar above 5, most at 20\n",
        "where  the kernel has atomic operations\n",
        "without it  Every lane does its own atomic operation.\n",
        r"shown by  more of one of VOTE\.  MATCH\.",
        r"more of each of SHFL\.",
        "not with  latency.atomic_optimize\n",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    assert!(text.lines().all(|l| l.chars().count() < 120), "{text}");
    let unseen = explain(registry().get("memory.coalesced_access").unwrap());
    assert!(unseen.contains("shown by  nothing in machine code: loads and stores are the same"), "{unseen}");
}

const MANIFEST: &str = r#"
[package]
name = "p"
[targets.h]
arch = "sm_90a"
[operator.o]
dims = ["n", "k"]
types = { T = ["f32", "bf16"] }
inputs.a = { dtype = "T", shape = ["n", "k"] }
inputs.b = { dtype = "T", shape = ["k", "n"] }
outputs.c = { dtype = "f32", shape = ["n", "n"], strides = ["n + 1", 1] }
reference = "builtin:matmul"
[operator.o.shapes]
s = { n = 4, k = 4 }
[kernel.k]
operator = "o"
language = "cuda"
source = "k.cu"
[[kernel.k.launch]]
entry = "f"
grid = [1]
block = [32]
args = ["a", "b", "c"]
"#;

#[test]
fn facts_come_from_operator_kernel_and_machine_code_and_are_else_unknown() {
    let file =
        std::sync::Arc::new(kforge_foundation::base::SourceFile { name: "kernel.toml".into(), text: MANIFEST.into() });
    let (manifest, wrong) = kforge_types::model::parse(&file);
    assert!(wrong.is_empty(), "{wrong:?}");
    let (package, wrong) = kforge_types::model::inherit(&manifest.unwrap(), None);
    let package = package.unwrap_or_else(|| panic!("{wrong:?}"));
    let (operator, kernel) = (&package.operators[0], &package.kernels[0]);
    let choices = operator.choices();
    let facts = |choice: usize, seen: Option<&Inspection>| Facts::of(operator, &choices[choice], kernel, seen).0;
    let plain = facts(0, None);
    assert_eq!((plain[&Fact::MatrixProduct], plain[&Fact::Softmax], plain[&Fact::Convolution]), (true, false, false));
    assert_eq!((plain[&Fact::LowPrecision], facts(1, None)[&Fact::LowPrecision]), (false, true));
    assert_eq!((plain[&Fact::Contiguous], plain[&Fact::SeveralLaunches]), (false, false));
    assert_eq!((plain.get(&Fact::Barriers), plain.get(&Fact::Spills)), (None, None), "not inspected");
    let opcodes = ["BAR.SYNC", "REDUX.SUM.S32", "LDS.128", "F2I.TRUNC"].map(|o| (o.to_string(), 1)).into();
    let function = FunctionFacts { opcodes, spill_stores: Some(8), ..FunctionFacts::default() };
    let mut seen = Inspection { functions: vec![function], disassembled: true, ..Inspection::default() };
    let found = facts(0, Some(&seen));
    assert_eq!((found[&Fact::Barriers], found[&Fact::SharedMemory], found[&Fact::Spills]), (true, true, true));
    assert_eq!((found[&Fact::Atomics], found[&Fact::IntegerDivision]), (false, false), "REDUX is no RED");
    seen.disassembled = false;
    seen.functions[0].spill_stores = None;
    assert_eq!(facts(0, Some(&seen)), plain);
}
