//! Every prompt renders, says what it should and nothing else.

use std::collections::BTreeMap;

use super::*;
use crate::optimize::agents::briefing::{Branch, Exemplar, FailedAttempt, Hardware, MethodToTry, Parent, PastRound};
use kforge_types::model::{Language, TuneValue};
use kforge_types::record::profile::Roofline;
use kforge_types::record::round::ChosenMethod;

fn full() -> Briefing {
    let chosen = ChosenMethod {
        id: "memory.vectorized_access".into(),
        axis: Axis::Memory,
        strength: Some(0.8),
        because: "loads are narrow".into(),
    };
    let tunables =
        BTreeMap::from([("BLOCK".to_string(), TuneValue::Int(256)), ("FAST".to_string(), TuneValue::Bool(true))]);
    let roofline = Roofline {
        gaps: Gaps { compute: Some(0.5), memory: Some(0.731), latency: None },
        bound: Some(Axis::Compute),
        metrics: BTreeMap::from([("dram_throughput".to_string(), 26.9)]),
        ..Roofline::default()
    };
    Briefing {
        kernel: "row_sum".into(),
        contract: "y[r] is the sum of row r of x".into(),
        tolerance: "|got - want| <= 1e-5 + 1e-5 |want|".into(),
        target: Hardware {
            arch: "sm_90a".into(),
            product: Some("NVIDIA H200".into()),
            limits: vec![("shared memory of a block".into(), "227 KiB".into())],
        },
        round: 2,
        attempt: 0,
        branches: 4,
        methods: vec![MethodToTry::of(&chosen, Language::Cuda)],
        parent: Some(Parent {
            source: "__global__ void parent() {}\n```\n{{ b.kernel }}".into(),
            declaration: "tune.BLOCK = [256]".into(),
            tunables: tunables.clone(),
            time_ns: Some(12_345.0),
            verified: true,
        }),
        failed: Some(FailedAttempt {
            source: Some("__global__ void failed() {}".into()),
            declaration: Some("tune.VEC = [4]".into()),
            branches: vec![Branch::new(tunables, "y[3]: got 1, want 2")],
        }),
        history: vec![PastRound {
            round: 1,
            methods: vec!["compute.loop_unroll".into()],
            became: vec!["no faster".into()],
        }],
        exemplars: vec![Exemplar {
            source: "__global__ void other() {}".into(),
            declaration: None,
            score: Some(2.5),
            note: "softmax".into(),
        }],
        ..Briefing::default()
    }
    .measured(&roofline)
}

fn has(text: &str, wanted: &[&str]) {
    for part in wanted {
        assert!(text.contains(part), "`{part}` in:\n{text}");
    }
}

#[test]
fn a_coder_is_told_what_there_is_and_how_to_answer() {
    let advice = Advice::Diagnosis { bottleneck: "narrow loads".into(), method: "m".into(), plan: "float4".into() };
    let Prompt { system, user } = prompt(Expected::Proposal, &full(), Some(&advice), Some("no JSON"));
    assert!(system.lines().count() == 1 && !system.contains("----"), "{system}");
    has(
        &user,
        &[
            "with 4 variants",
            "y[r] is the sum of row r of x",
            "1e-5 |want|",
            "sm_90a, NVIDIA H200",
            "shared memory of a block: 227 KiB",
            "BLOCK = 256, FAST = true",
            "12.35 us",
            "compute 0.50, memory 0.73. It is bound by compute.",
            "* dram_throughput = 26.9 %: ",
            "## memory.vectorized_access\n\nChosen: loads are narrow",
            "bottleneck: narrow loads",
            "* Round 1, compute.loop_unroll:\n  * no faster",
            "2.5 times as fast",
            "\"declaration\"",
            "Your last reply could not be used:\n\n```text\nno JSON\n```",
        ],
    );
    assert!(!user.contains("void failed"), "a first attempt has no failure");
    assert!(
        user.contains("````cuda\n__global__ void parent() {}\n```\n{{ b.kernel }}\n````"),
        "sources stand as they are"
    );
    assert!(!user.contains("\n\n\n"));
}

#[test]
fn a_repair_shows_what_failed_and_an_advisor_has_a_prompt_of_its_own() {
    let briefing = Briefing { attempt: 1, ..full() };
    let coder = prompt(Expected::Proposal, &briefing, None, None);
    has(&coder.user, &["This is repair 1.", "void failed()", "y[3]: got 1, want 2", "tune.VEC = [4]"]);
    let advisor = prompt(Expected::Correction, &briefing, None, None);
    has(&advisor.user, &["void failed()", "y[3]: got 1, want 2", "critical_issue"]);
    assert_ne!(advisor.system, coder.system);
    let advisor = prompt(Expected::Diagnosis, &full(), None, None);
    has(&advisor.user, &["void parent()", "dram_throughput = 26.9 %", "bottleneck", "memory.vectorized_access"]);
    assert!(!advisor.user.contains("Your last reply"));
}

#[test]
fn a_briefing_with_almost_nothing_in_it_makes_prompts() {
    let bare = Briefing { kernel: "k".into(), contract: "c".into(), branches: 1, ..Briefing::default() };
    for expected in Expected::ALL {
        for attempt in [0, 1] {
            let said = prompt(expected, &Briefing { attempt, ..bare.clone() }, None, None);
            assert!(!said.system.is_empty() && said.user.contains("JSON Schema"), "{expected:?}");
        }
    }
    assert!(prompt(Expected::Proposal, &bare, None, None).user.starts_with("Write the kernel `k`."));
}

/// What a coder and its advisors are told of a kernel in Triton is Triton's.
#[test]
fn a_kernel_in_triton_is_asked_for_in_triton() {
    let chosen = |id: &str| ChosenMethod { id: id.into(), axis: Axis::Memory, strength: None, because: "why".into() };
    let method = |id: &str| MethodToTry::of(&chosen(id), Language::Triton);
    let methods = vec![method("memory.multi_stage_pipeline"), method("memory.tma_multicast")];
    let briefing = Briefing { language: Language::Triton, methods, ..full() };
    let Prompt { system, user } = prompt(Expected::Proposal, &briefing, None, None);
    assert!(system.starts_with("You write Triton kernels"), "{system}");
    has(
        &user,
        &[
            "(tile sizes, `num_warps`, `num_stages`)",
            "one file of Python with functions that have `@triton.jit`",
            "`constexprs` holds the values",
            "an integer that is 1 is a constant",
            "State num_stages in the launch's options",
            "````python\n__global__ void parent()",
            "def row_sum(x, y, cols, BLOCK: tl.constexpr, CHUNK: tl.constexpr):",
        ],
    );
    for other in ["CUDA C++", "`__global__`", "cuda_fp16.h", "Keep three or more tiles of shared memory"] {
        assert!(!user.contains(other), "`{other}` in:\n{user}");
    }
    // A method without a form in Triton is named, and nothing is said of how to write it in another language.
    assert_eq!(method("memory.tma_multicast").about, "");
    let repair = prompt(Expected::Proposal, &Briefing { attempt: 1, ..briefing.clone() }, None, None);
    has(&repair.user, &["```python\n__global__ void failed()", "An error of the compiler"]);
    has(&repair.system, &["You repair Triton kernels"]);
    let advisor = prompt(Expected::Correction, &Briefing { attempt: 1, ..briefing.clone() }, None, None);
    has(&advisor.user, &["`@triton.jit`"]);
    let cpu = Hardware { arch: "cpu".into(), ..Hardware::default() };
    let emulated = prompt(Expected::Proposal, &Briefing { target: cpu, ..briefing }, None, None);
    has(&emulated.user, &["run by Triton's interpreter"]);
    assert!(!emulated.user.contains("C++ compiler"));
}

#[test]
fn the_example_of_a_declaration_in_triton_is_one_and_has_what_is_asked_for() {
    let (_, rest) =
        PARTS.iter().find(|(name, _)| *name == "example-triton").unwrap().1.split_once("```toml\n").unwrap();
    let (declaration, _) = rest.split_once("```").unwrap();
    let source = "import triton\n\n\n@triton.jit\ndef row_sum(x, y, cols, BLOCK, CHUNK):\n    pass\n";
    let branches = [serde_json::json!({ "CHUNK": 2048, "WARPS": 8, "STAGES": 3 })];
    let reply = serde_json::json!({ "declaration": declaration, "source": source, "branches": branches });
    let briefing = Briefing { methods: vec![], language: Language::Triton, ..full() };
    super::super::parse_reply(Expected::Proposal, &reply.to_string(), &briefing).unwrap();
    // The same is no declaration of a kernel in CUDA C++, nor the other way round.
    let cuda = Briefing { language: Language::Cuda, ..briefing.clone() };
    let refused = super::super::parse_reply(Expected::Proposal, &reply.to_string(), &cuda).unwrap_err();
    assert!(refused.to_string().contains("`constexprs`") || refused.to_string().contains("block"), "{refused}");
    let other = declaration.replace("grid = [\"rows\"]", "grid = [\"rows\"]\nblock = [128]");
    let reply = serde_json::json!({ "declaration": other, "source": source, "branches": branches });
    let refused = super::super::parse_reply(Expected::Proposal, &reply.to_string(), &briefing).unwrap_err();
    assert!(refused.to_string().contains("block"), "{refused}");
}

#[test]
fn the_example_of_a_declaration_is_one_and_has_what_is_asked_for() {
    let (_, rest) = PARTS.iter().find(|(name, _)| *name == "example").unwrap().1.split_once("```toml\n").unwrap();
    let (declaration, _) = rest.split_once("```").unwrap();
    let source =
        "template <class T, int BLOCK, int VEC> __global__ void row_sum(const T *x, T *y, int rows, int cols) {}";
    let reply =
        serde_json::json!({ "declaration": declaration, "source": source, "branches": [{ "BLOCK": 256, "VEC": 4 }] });
    super::super::parse_reply(Expected::Proposal, &reply.to_string(), &full()).unwrap();
}
