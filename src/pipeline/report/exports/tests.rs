//! Every format on one small report: a pass, a failure with a finding, an unknown verdict, a compiler's error, and times of two devices.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::measurement::{Metric, measurements};
use super::message::messages;
use super::*;
use crate::report::document::{
    BasisReport, ChampionReport, KernelReport, OperatorReport, PackageReport, ShapeReport, SpreadReport, TargetReport,
    TimeReport, TimeSeenReport,
};
use crate::report::messages::MessageReport;
use crate::report::provenance::{BuiltReport, ObservedReport};
use kforge_foundation::base::{Severity, SourceFile};
use kforge_types::record::{SourcePlace, Standing, Unknown, Verdict};

const H200: &str = "NVIDIA H200 (sm_90, driver 580)";
const H100: &str = "NVIDIA H100 (sm_90, driver 570)";

fn shape(name: &str, variant: &str, verdict: Verdict) -> ShapeReport {
    ShapeReport {
        shape: name.into(),
        variant: variant.into(),
        explanation: if matches!(verdict, Verdict::Fail(_)) {
            "race <here> & \u{1}there\n  more".into()
        } else {
            String::new()
        },
        verdict,
        emulated: false,
        interpreted: false,
        in_torch: false,
        unconfined: vec![],
        worst: None,
        no_fresh: None,
        known_inputs: vec![],
        confirmed: false,
        not_confirmed: None,
        diagnoses: vec![],
        refused: false,
        finding: None,
        prevented_by: None,
    }
}

fn time(name: &str, variant: &str, device: Option<&str>, cold: Option<f64>, hot: Option<f64>) -> TimeReport {
    let spread = |ns: f64| SpreadReport {
        samples: 100,
        interval_ns: Some((ns - 20.0, ns + 30.0)),
        dropped: 0,
        quantiles_ns: vec![],
    };
    TimeReport {
        shape: name.into(),
        variant: variant.into(),
        cold_ns: cold,
        hot_ns: hot,
        few: false,
        by_class: None,
        seen: device.map(|device| TimeSeenReport {
            device: device.into(),
            at: None,
            standing: None,
            clocks_mhz: None,
            temperature_c: None,
            throttle: vec![],
            cold: cold.map(spread),
            hot: hot.map(spread),
        }),
    }
}

fn message(code: &str, severity: Severity, text: &str, line: Option<u32>) -> MessageReport {
    MessageReport {
        code: code.into(),
        severity,
        message: text.into(),
        place: line.map(|line| SourcePlace { file: "src/k 1.cu".into(), line, column: Some(5) }),
        other_place: None,
        kernel: Some("k".into()),
        operator: Some("o".into()),
        target: Some("cpu".into()),
        variant: Some("A=1".into()),
        shape: None,
        steps: 1,
    }
}

fn champion(variant: &str, shapes: &[&str]) -> ChampionReport {
    ChampionReport {
        class: "all".into(),
        shapes: shapes.iter().map(|shape| shape.to_string()).collect(),
        variant: Some(variant.into()),
        provisional: false,
        because: "fastest".into(),
        versus: vec![],
    }
}

/// The report of a package in `pkg` of a workspace in `ws` of its repository.
fn report() -> Report {
    let basis = |hot| {
        Some(BasisReport {
            hot,
            declared: "A=1".into(),
            whole: true,
            called: false,
            classes: BTreeMap::new(),
            baselines: vec![],
        })
    };
    let no_device = Verdict::Unknown(Unknown::NoDevice("needs an H200".into()));
    let cpu = TargetReport {
        target: "cpu".into(),
        shapes: vec![
            ShapeReport { emulated: true, worst: Some(0.02), ..shape("big", "A=2", Verdict::Pass) },
            shape("big", "A=1", Verdict::Fail("race on `s`[0]".into())),
        ],
        failed: vec![("p/k/A=4/cpu/compile".into(), "cannot compile `src/k 1.cu`".into())],
        champions: vec![ChampionReport { provisional: true, ..champion("A=2", &["big"]) }],
        ..TargetReport::default()
    };
    let observed = |device: &str, standing| ObservedReport {
        device: device.into(),
        driver: "580.95".into(),
        origin: "h.kfe".into(),
        standing,
        signer: None,
        records: 1,
        oldest: "2026-11-20T10:00:00Z".into(),
        newest: "2026-11-20T10:00:00Z".into(),
    };
    let h = TargetReport {
        target: "h".into(),
        types: "T=f16".into(),
        observed_on: vec![H100.into(), H200.into()],
        observed: vec![observed(H100, Standing::Claimed), observed(H200, Standing::Signed)],
        basis: basis(false),
        champions: vec![champion("T=f16,A=2", &["big", "odd", "new"])],
        shapes: vec![shape("big", "T=f16,A=2", Verdict::Pass), shape("new", "T=f16,A=2", no_device)],
        times: vec![
            time("big", "T=f16,A=2", Some(H200), Some(1000.0), Some(800.0)),
            time("big", "T=f16,A=1", Some(H200), Some(1250.0), Some(900.0)),
            time("odd", "T=f16,A=2", Some(H100), Some(400.5), None),
            time("new", "T=f16,A=2", None, Some(1.0), Some(1.0)),
        ],
        unavailable: vec![("bench".into(), 3, "no such device".into())],
        ..TargetReport::default()
    };
    let h = TargetReport {
        basis: Some(BasisReport { declared: "T=f16,A=1".into(), ..h.basis.clone().unwrap_or_default() }),
        ..h
    };
    let other = SourcePlace { file: "src/k 1.cu".into(), line: 14, column: None };
    let package = PackageReport {
        verdicts: kforge_types::record::event::VerdictCounts::default(),
        name: "p".into(),
        folder: Some("pkg".into()),
        operators: vec![OperatorReport {
            name: "o".into(),
            verdict: Verdict::Unknown(Unknown::Indecisive("zeros pass".into())),
            notes: vec!["zeros pass".into()],
        }],
        kernels: vec![KernelReport { name: "k".into(), operator: "o".into(), targets: vec![cpu, h] }],
        leaders: vec![],
        messages: vec![
            message("compile.warning", Severity::Warning, "unused variable `i`", Some(3)),
            MessageReport {
                other_place: Some(other),
                steps: 3,
                ..message("verify.race", Severity::Error, "race on `s`[0] at src/k 1.cu:12", Some(12))
            },
            message("compile.error", Severity::Error, "identifier \"foo\" is undefined", Some(9)),
            message("verify.values", Severity::Error, "3 of 9 elements differ, 100 % off", None),
        ],
    };
    let built = BuiltReport {
        kforge: "0.1.0".into(),
        at: "2026-11-25T09:57:00Z".into(),
        commit: Some("1a2b3c4d5e6f708090a0b0c0d0e0f00011223344".into()),
        dirty: Some(true),
        folder: Some("ws".into()),
        ..BuiltReport::default()
    };
    Report { format_version: 2, built: Some(built), packages: vec![package], ..Report::default() }
}

/// An error and a warning of a manifest.
fn diagnostics() -> Vec<Diagnostic> {
    let file = Arc::new(SourceFile { name: "pkg/kernel.toml".into(), text: "[operator.é]\nrtoll = 1\n".into() });
    vec![
        Diagnostic::warning("manifest.unused", "unused operator").at(&file, 1..9, ""),
        Diagnostic::error("manifest.unknown-key", "unknown key `rtoll`")
            .at(&file, 14..19, "")
            .see(&file, 0..13, "in this table")
            .expected("a tolerance")
            .hint("did you mean `rtol`?"),
    ]
}

fn exported(format: ExportFormat) -> String {
    export(&report(), &diagnostics(), format).unwrap()
}

fn parsed(format: ExportFormat) -> Value {
    serde_json::from_str(&exported(format)).unwrap()
}

#[track_caller]
fn valid(schema: &str, value: &Value) {
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(value).map(|e| format!("{e} at {}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{}\n{value:#}", errors.join("\n"));
}

#[test]
fn files_have_names_of_their_own() {
    let names: std::collections::BTreeSet<&str> = ExportFormat::ALL.iter().map(|format| format.file_name()).collect();
    assert_eq!(names.len(), ExportFormat::ALL.len());
}

#[test]
fn every_format_can_be_written_of_nothing() {
    let nothing = |format| export(&Report::default(), &[], format).unwrap();
    assert_eq!(nothing(ExportFormat::Annotations), "");
    assert_eq!(nothing(ExportFormat::CodeQuality), "[]\n");
    assert_eq!(nothing(ExportFormat::Bmf), "{}\n");
    for format in [ExportFormat::GithubBenchmark, ExportFormat::PytorchBenchmark] {
        assert_eq!(nothing(format), "[]\n");
    }
    valid(include_str!("schemas/lnt.json"), &serde_json::from_str(&nothing(ExportFormat::Lnt)).unwrap());
    valid(include_str!("schemas/sarif-2.1.0.json"), &serde_json::from_str(&nothing(ExportFormat::Sarif)).unwrap());
    assert_eq!(
        nothing(ExportFormat::Summary),
        "## kforge: nothing is known\n\n0 verdicts of steps: 0 pass, 0 fail, 0 unknown\n"
    );
    let xml = quick_junit::Report::deserialize_from_str(&nothing(ExportFormat::Junit)).unwrap();
    assert_eq!((xml.tests, xml.test_suites.len()), (0, 0));
}

#[test]
fn champions_are_measured_once_for_each_shape_and_metric_and_unknown_times_are_left_out() {
    let report = report();
    let all = measurements(&report);
    let names: Vec<String> = all.iter().map(|one| one.name()).collect();
    assert_eq!(
        names,
        [
            "p/k[T=f16] big cold on h, NVIDIA H200 (sm_90, driver 580)",
            "p/k[T=f16] big hot on h, NVIDIA H200 (sm_90, driver 580)",
            "p/k[T=f16] odd cold on h, NVIDIA H100 (sm_90, driver 570)",
        ],
        "not of another variant, of a time without a device, or of a metric that was not measured"
    );
    assert_eq!((all[0].metric, all[0].selects, all[1].selects), (Metric::Cold, true, false));
    assert_eq!((all[0].standing, all[2].standing), (Some(Standing::Signed), Some(Standing::Claimed)));
    assert_eq!((all[0].median_ns, all[0].samples, all[0].interval_ns), (1000.0, Some(100), Some((980.0, 1030.0))));
}

#[test]
fn a_time_of_an_older_report_has_the_only_device_and_a_wrong_champion_has_no_time() {
    let mut report = report();
    let target = &mut report.packages[0].kernels[0].targets[1];
    target.observed_on = vec![H200.into()];
    let new = "p/k[T=f16] new cold on h, NVIDIA H200 (sm_90, driver 580)".to_string();
    assert!(measurements(&report).iter().any(|one| one.name() == new));
    let target = &mut report.packages[0].kernels[0].targets[1];
    target.shapes.push(shape("tiny", "T=f16,A=2", Verdict::Fail("wrong".into())));
    assert_eq!(measurements(&report), []);
}

#[test]
fn bmf_has_medians_in_nanoseconds_with_their_bounds() {
    let value = parsed(ExportFormat::Bmf);
    valid(include_str!("schemas/bmf.json"), &value);
    let one = &value["p/k[T=f16] big cold on h, NVIDIA H200 (sm_90, driver 580)"];
    assert_eq!(*one, json!({ "latency": { "value": 1000.0, "lower_value": 980.0, "upper_value": 1030.0 } }));
    assert_eq!(value.as_object().unwrap().len(), 3);
}

#[test]
fn github_action_benchmark_gets_one_number_for_the_interval() {
    let value = parsed(ExportFormat::GithubBenchmark);
    valid(include_str!("schemas/github-benchmark.json"), &value);
    assert_eq!(
        (&value[0]["value"], &value[0]["unit"], &value[0]["range"]),
        (&json!(1000.0), &json!("ns"), &json!("± 30.0"))
    );
    let extra = value[0]["extra"].as_str().unwrap();
    assert!(extra.starts_with(&format!("device: {H200}\nvariant: T=f16,A=2\nsamples: 100\n")), "{extra}");
}

#[test]
fn pytorch_gets_the_device_as_runner_and_only_texts_in_maps_of_texts() {
    let value = parsed(ExportFormat::PytorchBenchmark);
    valid(include_str!("schemas/pytorch-benchmark.json"), &value);
    let one = &value[2];
    assert_eq!(
        (&one["metric"]["name"], &one["metric"]["benchmark_values"]),
        (&json!("cold_latency_ns"), &json!([400.5]))
    );
    assert_eq!(
        (&one["runners"][0]["gpu_info"], &one["benchmark"]["extra_info"]["device"]),
        (&json!(H100), &json!(H100))
    );
    assert_eq!((&one["benchmark"]["dtype"], &one["model"]["backend"]), (&json!("f16"), &json!("h")));
}

#[test]
fn lnt_gets_seconds_and_the_device_in_the_name_of_each_test() {
    let value = parsed(ExportFormat::Lnt);
    valid(include_str!("schemas/lnt.json"), &value);
    assert_eq!(value["machine"]["name"], format!("{H100} + {H200}"));
    assert_eq!(value["run"]["llvm_project_revision"], "1a2b3c4d5e6f708090a0b0c0d0e0f00011223344");
    assert_eq!(
        (&value["run"]["start_time"], &value["run"]["uncommitted_changes"]),
        (&json!("2026-11-25T09:57:00"), &json!("yes"))
    );
    assert_eq!(value["tests"][0]["execution_time"], 1e-6);
    assert!(value["tests"].as_array().unwrap().iter().all(|test| test["name"].as_str().unwrap().contains("NVIDIA H")));
}

#[test]
fn messages_come_by_severity_with_paths_from_the_root_of_the_repository() {
    let (report, diagnostics) = (report(), diagnostics());
    let all = messages(&report, &diagnostics);
    let told: Vec<(&str, String)> = all
        .iter()
        .map(|message| {
            let place = message.place.as_ref().unwrap();
            let region = place.region.map(|r| format!(":{}:{:?}", r.line, r.column.unwrap_or_default()));
            (message.code.as_str(), format!("{}{}", place.path, region.unwrap_or_default()))
        })
        .collect();
    let expected = [
        ("manifest.unknown-key", "ws/pkg/kernel.toml:2:1"),
        ("verify.race", "ws/pkg/src/k 1.cu:12:5"),
        ("compile.error", "ws/pkg/src/k 1.cu:9:5"),
        ("verify.values", "ws/pkg/kernel.toml"),
        ("manifest.unused", "ws/pkg/kernel.toml:1:2"),
        ("compile.warning", "ws/pkg/src/k 1.cu:3:5"),
    ];
    assert_eq!(told, expected.map(|(code, at)| (code, at.to_string())));
    let region = all[0].place.as_ref().unwrap().region.unwrap();
    assert_eq!(region.end, Some((2, 6)));
    // Columns count characters: the table's name has a letter of two bytes.
    assert_eq!(all[0].others[0].0.region.unwrap().end, Some((1, 13)));
}

#[test]
fn a_package_at_the_root_has_no_folder_in_its_paths() {
    let path = |root: Option<&str>, folder: Option<&str>| {
        let mut report = report();
        report.packages[0].folder = folder.map(String::from);
        report.built.as_mut().unwrap().folder = root.map(String::from);
        messages(&report, &[])[0].place.as_ref().map(|place| place.path.clone())
    };
    assert_eq!(path(None, Some("")).as_deref(), Some("src/k 1.cu"));
    assert_eq!(path(Some("ws"), Some("")).as_deref(), Some("ws/src/k 1.cu"));
    assert_eq!(path(None, Some("pkg")).as_deref(), Some("pkg/src/k 1.cu"));
    assert_eq!(path(Some("ws"), None), None, "an earlier kforge did not say where the package is");
}

#[test]
fn sarif_is_valid_and_has_rules_regions_and_related_places() {
    let value = parsed(ExportFormat::Sarif);
    valid(include_str!("schemas/sarif-2.1.0.json"), &value);
    let run = &value["runs"][0];
    let results = run["results"].as_array().unwrap();
    for result in results {
        let at = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(run["tool"]["driver"]["rules"][at]["id"], result["ruleId"]);
    }
    let race = &results[1];
    assert_eq!(
        (&race["ruleId"], &race["level"], &race["occurrenceCount"]),
        (&json!("verify.race"), &json!("error"), &json!(3))
    );
    let place = &race["locations"][0]["physicalLocation"];
    let artifact = json!({ "uri": "ws/pkg/src/k%201.cu", "uriBaseId": "%SRCROOT%" });
    assert_eq!(place["artifactLocation"], artifact);
    assert_eq!(place["region"], json!({ "startLine": 12, "startColumn": 5 }));
    assert_eq!(race["relatedLocations"][0]["physicalLocation"]["region"], json!({ "startLine": 14 }));
    assert_eq!(
        race["properties"],
        json!({ "package": "p", "kernel": "k", "operator": "o", "target": "cpu", "variant": "A=1" })
    );
    assert_eq!(results[3]["locations"][0]["physicalLocation"].get("region"), None, "it has no line");
    let prints: std::collections::BTreeSet<&str> =
        results.iter().map(|r| r["partialFingerprints"]["kforge/v1"].as_str().unwrap()).collect();
    assert_eq!(prints.len(), results.len());
}

#[test]
fn a_fingerprint_stays_the_same_when_lines_move() {
    let prints = |report: &Report| message::fingerprints(&messages(report, &[]));
    let mut moved = report();
    for message in &mut moved.packages[0].messages {
        message.place.iter_mut().for_each(|place| place.line += 100);
    }
    assert_eq!(prints(&report()), prints(&moved));
}

#[test]
fn annotations_are_one_line_each_and_escaped() {
    let text = exported(ExportFormat::Annotations);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "::error file=ws/pkg/kernel.toml,line=2,endLine=2,col=1,endColumn=6,title=manifest.unknown-key::unknown key `rtoll`%0Aexpected a tolerance%0Ahelp: did you mean `rtol`?"
    );
    assert_eq!(
        lines[1],
        "::error file=ws/pkg/src/k 1.cu,line=12,col=5,title=k on cpu%3A verify.race::race on `s`[0] at src/k 1.cu:12%0A(in A=1; 2 steps more reported the same)"
    );
    assert_eq!(
        lines[3],
        "::error file=ws/pkg/kernel.toml,title=k on cpu%3A verify.values::3 of 9 elements differ, 100 %25 off%0A(in A=1)"
    );
    assert!(lines[5].starts_with("::warning file="), "{}", lines[5]);
    assert_eq!(lines.len(), 6);
}

#[test]
fn code_quality_has_a_line_for_each_message() {
    let value = parsed(ExportFormat::CodeQuality);
    valid(include_str!("schemas/code-quality.json"), &value);
    assert_eq!(value[1]["location"], json!({ "path": "ws/pkg/src/k 1.cu", "lines": { "begin": 12 } }));
    assert_eq!((&value[3]["location"]["lines"]["begin"], &value[5]["severity"]), (&json!(1), &json!("minor")));
}

#[test]
fn junit_has_a_test_for_each_verdict_and_can_be_read_again() {
    let text = exported(ExportFormat::Junit);
    let xml = quick_junit::Report::deserialize_from_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let names: Vec<&str> = xml.test_suites.iter().map(|suite| suite.name.as_str()).collect();
    assert_eq!(names, ["manifest", "p/operators", "p/cpu", "p/h"]);
    assert_eq!((xml.tests, xml.failures, xml.errors, xml.skipped), (8, 1, 2, 3), "{text}");
    let cases: Vec<(&str, &str)> = xml.test_suites[2..]
        .iter()
        .flat_map(|suite| &suite.test_cases)
        .map(|case| (case.classname.as_ref().unwrap().as_str(), case.name.as_str()))
        .collect();
    assert_eq!(
        cases,
        [
            ("p.cpu.k", "big A=2"),
            ("p.cpu.k", "big A=1"),
            ("p.cpu.k", "p/k/A=4/cpu/compile"),
            ("p.h.k[T=f16]", "big T=f16,A=2"),
            ("p.h.k[T=f16]", "new T=f16,A=2"),
            ("p.h.k[T=f16]", "bench steps"),
        ]
    );
    assert!(text.contains("name=\"big T=f16,A=2\" classname=\"p.h.k[T=f16]\" time=\"0.000001000\""), "{text}");
    assert!(
        text.contains(
            "<failure message=\"race on `s`[0]\" type=\"wrong\">race &lt;here&gt; &amp; there\n  more</failure>"
        ),
        "{text}"
    );
    assert!(text.contains("src/k 1.cu:9: identifier &quot;foo&quot; is undefined"), "the compiler's words: {text}");
    assert!(text.contains("<skipped message=\"no device: needs an H200\" type=\"no-device\"/>"), "{text}");
    assert!(text.contains("timestamp=\"2026-11-25T09:57:00"), "{text}");
}

#[test]
fn what_xml_has_no_form_for_is_replaced() {
    let mut report = report();
    report.packages[0].messages = vec![message("compile.error", Severity::Error, "A\u{fffe}B\u{ffff}", None)];
    report.packages[0].kernels[0].targets[0].shapes[1].verdict = Verdict::Fail("A\u{fffe}B\u{ffff}".into());
    let text = export(&report, &[], ExportFormat::Junit).unwrap();
    assert!(text.contains("A\u{fffd}B\u{fffd}") && !text.contains(['\u{fffe}', '\u{ffff}']), "{text}");
}

#[test]
fn a_message_in_the_summary_is_no_link_no_image_and_turns_no_text() {
    let mut report = report();
    let hostile = "[a](https://example.org) ![b](https://example.org/x.png) \u{1b}[31m \u{202e}c\nd";
    report.packages[0].messages = vec![message("compile.error", Severity::Error, hostile, None)];
    let text = summary::summary(&report, &[]);
    let shown = "\\[a\\](https://example.org) !\\[b\\](https://example.org/x.png) \\u{1b}\\[31m \\u{202e}c |";
    assert!(text.contains(shown), "{text}");
}

#[test]
fn the_summary_says_failures_first_and_bounds_its_tables() {
    let mut report = report();
    let text = summary::summary(&report, &[]);
    let head =
        "## kforge: not built\n\n1 step failed; 4 verdicts of champions and failures: 2 pass, 1 fail, 1 unknown\n";
    assert!(text.starts_with(head), "{text}");
    let at = |heading: &str| text.find(heading).unwrap_or_else(|| panic!("no {heading} in\n{text}"));
    assert!(at("### Failures") < at("### Champions") && at("### Champions") < at("### Unknown"));
    assert!(text.contains("| k on cpu: verify.race | ws/pkg/src/k 1.cu:12 | race on \\`s\\`\\[0\\] at src/k 1.cu:12 (and in 2 more steps) |\n"), "{text}");
    assert!(
        text.contains(&format!("| k \\[T=f16\\] on h | big | T=f16,A=2 | 1.00 us | -20.0 % | {H200} |\n")),
        "{text}"
    );
    assert!(text.contains("| k on cpu | all | A=2 (provisional) | not timed |"), "{text}");
    assert!(
        text.contains(
            "| k \\[T=f16\\] on h | new | no device: needs an H200 |\n| k \\[T=f16\\] on h | 3 bench steps | no such device |\n"
        ),
        "{text}"
    );
    let many = (0..60).map(|i| message("verify.values", Severity::Error, &format!("wrong {i} <b>"), None));
    report.packages[0].messages = many.collect();
    let text = summary::summary(&report, &[]);
    assert!(
        text.contains("\nand 35 more, which `kforge report` lists\n") && text.contains("wrong 0 &lt;b&gt;"),
        "{text}"
    );
    let wrong = summary::summary(&Report::default(), &diagnostics());
    assert!(wrong.starts_with("## kforge: the manifest has errors\n\n1 manifest error; "), "{wrong}");
    assert!(wrong.contains("| manifest.unknown-key | pkg/kernel.toml:2 | unknown key \\`rtoll\\` |\n"), "{wrong}");
}

#[test]
fn no_format_has_a_hidden_character_of_a_name_or_a_message() {
    let hostile = "a\u{202e}b\u{2066}c\u{feff}d\u{9b}e";
    let mut report = report();
    let package = &mut report.packages[0];
    package.name = hostile.into();
    package.messages = vec![message("compile.error", Severity::Error, hostile, None)];
    let kernel = &mut package.kernels[0];
    kernel.name = hostile.into();
    for target in &mut kernel.targets {
        target.target = hostile.into();
        target.times.iter_mut().for_each(|time| time.shape = hostile.into());
        target.shapes.iter_mut().for_each(|shape| {
            shape.shape = hostile.into();
            shape.explanation = hostile.into();
        });
        for champion in &mut target.champions {
            champion.shapes = vec![hostile.into()];
        }
    }
    for format in ExportFormat::ALL {
        let text = export(&report, &diagnostics(), format).unwrap();
        assert!(!text.contains(kforge_foundation::base::is_hidden), "{format:?}: {text:?}");
        assert!(text.contains("u{202e}b"), "{format:?}: {text}");
    }
}

#[test]
fn a_kernel_that_does_not_run_is_an_error_of_its_test_and_no_wrong_result() {
    let mut report = report();
    let shape = &mut report.packages[0].kernels[0].targets[0].shapes[1];
    shape.verdict = Verdict::Fail("ValueError: no, at k.py:3".into());
    shape.finding = Some(kforge_types::record::FindingKind::Raised);
    let text = export(&report, &[], ExportFormat::Junit).unwrap();
    assert!(text.contains("<error message=\"ValueError: no, at k.py:3\" type=\"verify.raised\">"), "{text}");
    report.packages[0].kernels[0].targets[0].failed.clear();
    assert!(
        summary::summary(&report, &[]).starts_with("## kforge: does not run\n"),
        "{}",
        summary::summary(&report, &[])
    );
}
