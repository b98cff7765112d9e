//! Attributions of a champion's methods: the champion without each method, verified, timed in pairs, and compared by machine code.

use crate::lab::{Lab, Machine, champion, paired};
use crate::project::{Built, ids};

const METHOD: &str = r#"
[kernel.k.methods."memory.vectorized_access"]
off = { V = 8 }
sass.any = ['LDG\.E\.128']
"#;

/// Two variants, V=4 before V=1, with a method that V=8 lacks: V=8 is not in the space. The machine code of V=4 shows the method.
fn lab(machine: &Machine) -> Lab {
    Lab::with_method(machine, METHOD)
}

/// V=4 takes 1000, V=1 far more, and the variant without the method this long.
fn machine(without: f64) -> Machine {
    Machine { noise: 0.004, drift: 0.02, ..Machine::with(&[(4, 1000.0), (1, 1500.0), (8, without)]) }
}

fn fate(lab: &Lab) -> (String, String) {
    lab.fates()["memory.vectorized_access"].clone()
}

#[test]
fn a_method_that_saves_more_than_noise_is_effective() {
    let lab = lab(&machine(1300.0));
    let built = lab.built(&[]);
    assert_eq!(champion(&built), ("V=4".into(), false));
    let (fate, because) = fate(&lab);
    assert_eq!(fate, "effective");
    assert!(because.starts_with("without it slower, +"), "{because}");
    let least: f64 = because.split(['[', ',']).nth(2).unwrap().parse().unwrap();
    assert!((29.0..30.2).contains(&least), "{because}");
    let method = &lab.target()["methods"][0];
    assert_eq!(method["matched"]["counts"], serde_json::json!([["LDG\\.E\\.128", 2, 0]]));
    let output = lab.project.command(&["report", "--offline"]).output().unwrap();
    let report = String::from_utf8(output.stdout).unwrap();
    let legend = "+ means that the kernel without the method is slower than the champion, - that it is faster; brackets hold \
                  the interval of 95 %; the margin is 1 %; a method that saves more than 2 % is effective";
    assert_eq!(report.matches(legend).count(), 1, "{report}");
}

#[test]
fn one_that_another_source_turns_off_is_compared_with_that_source() {
    let lab = lab(&machine(1300.0)).manifest("off = { V = 8 }", "off = { source = \"other.cu\" }");
    let text = std::fs::read_to_string(lab.project.root().join("k.cu")).unwrap();
    lab.project.write("other.cu", &text.replace("LDG.E.128", "LDG.E.64"));
    let built = lab.built(&[]);
    assert_eq!((built.count("failed"), built.count("skipped")), (0, 0));
    // The device of this test takes as long for either.
    assert_eq!(fate(&lab).0, "ineffective", "{:?}", fate(&lab));
    let method = &lab.target()["methods"][0];
    assert_eq!(method["matched"]["counts"], serde_json::json!([["LDG\\.E\\.128", 2, 0]]));
}

#[test]
fn one_that_does_not_is_ineffective() {
    let lab = lab(&machine(1015.0));
    lab.built(&[]);
    assert_eq!(fate(&lab).0, "ineffective", "{:?}", fate(&lab));
}

#[test]
fn one_that_machine_code_does_not_show_failed_whatever_the_time() {
    let lab = lab(&machine(1300.0));
    lab.project.edit("k.cu", "k<4> LDG.E.128", "k<4> LDG.E.64");
    assert_eq!(lab.built(&[]).count("skipped"), 0, "it ends no build");
    assert_eq!(fate(&lab).0, "implementation-failed");
}

#[test]
#[ignore = "second tier: many builds"]
fn a_method_of_the_registry_is_known_by_the_registry_s_signature() {
    let lab = lab(&machine(1300.0)).manifest("sass.any = ['LDG\\.E\\.128']", "");
    lab.built(&[]);
    assert_eq!(fate(&lab).0, "effective");
    let counts = lab.target()["methods"][0]["matched"]["counts"].as_array().unwrap().clone();
    assert!(counts.len() > 1 && counts.contains(&serde_json::json!([r"LDG\.E\.(\w+\.)*128", 2, 0])), "{counts:?}");
    // The manifest's signature replaces the registry's.
    let lab = lab.manifest("off = { V = 8 }", "off = { V = 8 }\nsass.any = ['STS']");
    assert_eq!(lab.built(&[]).executed_kinds().into_keys().collect::<Vec<_>>(), ["attribute", "match"]);
    assert_eq!(fate(&lab).0, "implementation-failed");
}

#[test]
#[ignore = "second tier: many builds"]
fn a_method_that_machine_code_does_not_show_is_inconclusive_and_says_why() {
    let lab = lab(&machine(1300.0)).manifest("sass.any = ['LDG\\.E\\.128']", "");
    let lab = lab.manifest("memory.vectorized_access", "memory.coalesced_access");
    lab.built(&[]);
    let (fate, because) = lab.fates()["memory.coalesced_access"].clone();
    assert_eq!(
        (fate.as_str(), because.as_str()),
        ("inconclusive", "loads and stores are the same, with other addresses")
    );
    let lab = lab.manifest("memory.coalesced_access", "memory.my_own");
    lab.built(&[]);
    let (fate, because) = lab.fates()["memory.my_own"].clone();
    assert_eq!(fate, "inconclusive");
    assert!(because.starts_with("neither the manifest nor the registry"), "{because}");
}

#[test]
fn one_whose_pairs_have_no_samples_is_inconclusive() {
    let lab = lab(&machine(1300.0).first("^k<8>", "ns = 1300.0\nthrottled = 1.0"));
    lab.built(&[]);
    assert_eq!(fate(&lab), ("inconclusive".into(), "not timed in pairs".into()));
}

#[test]
fn one_without_which_the_kernel_is_wrong_is_inconclusive() {
    let lab = lab(&machine(1300.0).first("^k<8>", "ns = 1300.0\nerror = 1.0"));
    let built = lab.built(&[]);
    assert_eq!((champion(&built).0, built.count("skipped")), ("V=4".into(), 0), "it ends no build: {}", built.stderr());
    assert_eq!(lab.target()["shapes"].as_array().unwrap().len(), 2, "and is not reported as a variant");
    let (fate, because) = fate(&lab);
    assert_eq!(fate, "inconclusive");
    assert!(because.starts_with("the kernel without it is wrong"), "{because}");
}

#[test]
fn bench_shapes_count_together() {
    let slower = |ns: f64| format!("ns = {ns:.1}");
    let machine = machine(0.0).first("^k<8> grid 100,", &slower(1300.0)).first("^k<8> grid 200,", &slower(900.0));
    let lab = lab(&machine)
        .manifest("role = \"bench\" }", "role = \"bench\" }\nshapes.large = { n = 200, role = \"bench\" }");
    let built = lab.built(&[]);
    let (fate, because) = fate(&lab);
    // The root of 1.3 times 0.9 is 1.082.
    assert_eq!(fate, "effective", "{because}");
    assert!(because.contains(" [+8.") || because.contains(" [+7."), "{because}");
    assert_eq!(paired(&built, "executed"), ids(&["big: V=4, V=8", "large: V=4, V=8"]));
    // The report says what each shape contributes: it gains where the other loses.
    let shapes = lab.target()["methods"][0]["shapes"].as_array().unwrap().clone();
    let savings: Vec<(&str, f64)> =
        shapes.iter().map(|one| (one["shape"].as_str().unwrap(), one["saving"][0].as_f64().unwrap())).collect();
    let [("big", big), ("large", large)] = savings[..] else { panic!("{savings:?}") };
    assert!((big - 0.3).abs() < 0.02 && (large + 0.1).abs() < 0.02, "{savings:?}");
    for one in &shapes {
        let [median, low, high] = [0, 1, 2].map(|at| one["saving"][at].as_f64().unwrap());
        assert!(low <= median && median <= high, "{one}");
    }
}

fn ablation(built: &Built) -> Vec<String> {
    built.finished().map(crate::project::id).filter(|id| id.starts_with("p/k/V=8/")).collect()
}

#[test]
fn only_what_ablation_needs_is_added_and_nothing_again() {
    let lab = lab(&machine(1300.0));
    let built = lab.built(&[]);
    assert_eq!(paired(&built, "executed"), ids(&["big: V=4, V=8"]));
    let mut added = ablation(&built);
    added.retain(|id| !id.ends_with("/pairs"));
    added.sort();
    let wanted = [
        "p/k/V=8/h/big/judge",
        "p/k/V=8/h/big/verify",
        "p/k/V=8/h/compile",
        "p/k/V=8/h/inspect",
        "p/k/V=8/h/sass/inspect",
    ];
    assert_eq!(added, wanted);
    let records = lab.records();
    let again = lab.built(&[]);
    assert_eq!((again.count("executed"), lab.records()), (0, records));
    // Another signature is searched for in existing code.
    let lab = lab.manifest(r"LDG\.E\.128", r"LDG\.E\.12[8]");
    let kinds = lab.built(&[]).executed_kinds();
    assert_eq!(kinds.into_keys().collect::<Vec<_>>(), ["attribute", "match"]);
}

#[test]
fn what_is_provisional_is_looked_at_but_not_timed() {
    let lab = lab(&Machine { device: None, ..machine(1300.0) });
    let built = lab.built(&[]);
    assert_eq!(champion(&built), ("V=4".into(), true));
    assert!(built.finished().all(|s| s["kind"] != "pairs"));
    let (fate, because) = fate(&lab);
    assert_eq!((&*fate, &*because), ("inconclusive", "it is unknown whether the kernel without it is correct"));
    let detail = lab.target()["methods"][0]["attribution"]["detail"].as_str().unwrap().to_string();
    assert!(detail.starts_with("no device: nothing observed on "), "{detail}");
    assert_eq!(lab.target()["methods"][0]["matched"]["shown"], "shown");
}
