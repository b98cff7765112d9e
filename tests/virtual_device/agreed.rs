//! Two variants have one comparison, whoever asks for it: selection, attribution and `compare` never contradict each other.

use std::process::Command;

use crate::lab::{Lab, Machine, SOURCE, champion, paired, steps};
use crate::project::ids;

const METHOD: &str = r#"
[kernel.k.methods."memory.vectorized_access"]
off = { V = 1 }
sass.any = ['LDG\.E\.128']
"#;

/// V=4 before V=1, which is V=4 without a method; the machine code of V=4 shows the method.
fn lab(machine: &Machine) -> Lab {
    let lab = Lab::new(machine).manifest("[1, 2, 4]", "[4, 1]");
    let manifest = std::fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    lab.project.write("kernel.toml", &format!("{manifest}{METHOD}"));
    lab.project.write("k.cu", &format!("#pragma sass k<4> LDG.E.128 2\n{SOURCE}"));
    lab
}

fn machine(seed: u64, with: f64, without: f64) -> Machine {
    Machine { seed, noise: 0.02, drift: 0.01, ..Machine::with(&[(4, with), (1, without)]) }
}

/// Commits the workspace as it is.
fn commit(lab: &Lab) {
    for words in [&["init", "--quiet"][..], &["add", "--all"], &["commit", "--quiet", "-m", "first"]] {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]);
        assert!(command.args(words).current_dir(lab.project.root()).output().unwrap().status.success(), "{words:?}");
    }
}

/// What a comparison with the commit says.
fn compared(lab: &Lab) -> String {
    let output = lab.project.command(&["compare", "HEAD", "--offline"]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn selection_and_attribution_read_the_same_pairs() {
    for seed in 0..6 {
        let lab = lab(&machine(seed, 1004.0, 1000.0));
        let built = lab.built(&[]);
        assert_eq!(champion(&built), ("V=4".into(), false), "seed {seed}");
        assert_eq!(paired(&built, "executed"), ids(&["big: V=1, V=4"]), "seed {seed}");
        // `explain` shows what selection read: time without over time with, minus one. That is the saving.
        let choice = lab.project.explain("p/k/h/select")["choices"][0].clone();
        let pair = &choice["rivals"][0]["pairs"][0];
        let saving = &lab.target()["methods"][0]["attribution"]["saving"];
        let close =
            |a: &serde_json::Value, b: &serde_json::Value| (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-12;
        assert!(close(&pair["slower_by"], &saving[0]), "seed {seed}: {pair} {saving}");
        assert!(close(&pair["interval"][0], &saving[1]) && close(&pair["interval"][1], &saving[2]), "{pair} {saving}");
        assert_eq!(lab.built(&[]).count("executed"), 0);
    }
}

#[test]
fn a_comparison_of_two_states_asks_the_question_that_a_plan_asked() {
    let machine = Machine { noise: 0.004, drift: 0.01, ..Machine::with(&[(4, 1002.0), (1, 1000.0)]) };
    let lab = lab(&machine).manifest("[4, 1]", "[1]");
    commit(&lab);
    lab.built(&[]);
    let lab = lab.clone().manifest("V = [1]", "V = [4, 1]");
    let built = lab.built(&[]);
    assert_eq!(steps(&built, "pairs", "executed").len(), 1);
    let records = lab.records();
    let said = compared(&lab);
    assert!(said.contains("same") && said.contains("in pairs on Virtual H"), "{said}");
    assert_eq!(lab.records(), records, "the champions V=4 and V=1 were paired before: {said}");
}

/// Scenarios in which whoever comes first in a block is faster or slower by this factor.
fn biased(factor: f64) -> Machine {
    let rule = |v: u32, ns: f64| (format!("^k<{v}>"), format!("ns = {ns:.1}\nwhen-first = {factor}"));
    let machine = Machine { noise: 0.004, drift: 0.01, ..Machine::default() };
    [(4, 1000.0), (1, 1001.0)].iter().fold(machine, |machine, (v, ns)| {
        let (matches, says) = rule(*v, *ns);
        machine.rule(&matches, &says)
    })
}

#[test]
fn orders_that_disagree_are_undecided_and_selection_and_attribution_say_so() {
    let lab = lab(&biased(0.96));
    let built = lab.built(&[]);
    assert_eq!(champion(&built), ("V=4".into(), false));
    let because = lab.target()["champions"][0]["because"].as_str().unwrap().to_string();
    assert_eq!(
        because,
        "first declared of 2 variants that tie for fastest; undecided: the two orders disagree about 1 of them"
    );
    let (fate, because) = lab.fates()["memory.vectorized_access"].clone();
    assert_eq!(fate, "inconclusive");
    assert!(because.starts_with("the two orders disagree: it saves "), "{because}");
    let pair = lab.project.explain("p/k/h/select")["choices"][0]["rivals"][0]["pairs"][0].clone();
    let orders = pair["orders_disagree"].as_array().unwrap().clone();
    assert!(orders[0].as_f64().unwrap() < -0.03 && orders[1].as_f64().unwrap() > 0.03, "{pair}");
    // Twice as many blocks were taken.
    let step = built.finished().find(|s| s["kind"] == "pairs").unwrap();
    assert_eq!(step["summary"], "32 blocks", "{step}");
    assert_eq!(lab.built(&[]).count("executed"), 0);
}

#[test]
fn an_effect_of_the_order_that_changes_no_answer_decides_with_the_usual_blocks_or_more() {
    // Whoever comes first is a little faster: the orders agree about what follows.
    let lab = lab(&biased(0.9995));
    let built = lab.built(&[]);
    let step = built.finished().find(|s| s["kind"] == "pairs").unwrap();
    assert_eq!(step["summary"], "16 blocks", "{step}");
    assert_eq!(lab.fates()["memory.vectorized_access"].0, "ineffective");
    assert!(!lab.target()["champions"][0]["because"].as_str().unwrap().contains("undecided"));
}

#[test]
fn a_comparison_whose_orders_disagree_is_undecided() {
    let lab = lab(&biased(0.96)).manifest("[4, 1]", "[1]");
    commit(&lab);
    let lab = lab.clone().manifest("V = [1]", "V = [4, 1]");
    let said = compared(&lab);
    assert!(said.contains("undecided") && said.contains("the two orders disagree: "), "{said}");
}

#[test]
fn a_method_that_the_champion_does_not_use_is_told_as_such_and_fails_at_nothing() {
    // V=2 is a way of its own: without the method, V=1 stands in for V=4 only.
    let lab = Lab::new(&Machine::with(&[(1, 1500.0), (2, 1000.0), (4, 1200.0)]));
    let manifest = std::fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    lab.project.write("kernel.toml", &format!("{manifest}{METHOD}"));
    lab.project.write("k.cu", &format!("#pragma sass k<4> LDG.E.128 2\n{SOURCE}"));
    lab.built(&[]);
    assert_eq!(lab.fates()["memory.vectorized_access"].0, "implementation-failed", "nothing says that V=2 lacks it");
    let lab = lab.manifest("off = { V = 1 }", "on = { V = 4 }\noff = { V = 1 }");
    let built = lab.built(&[]);
    assert_eq!(
        built.executed_kinds().into_keys().collect::<Vec<_>>(),
        ["attribute"],
        "and nothing is asked of a device"
    );
    let fate = lab.fates()["memory.vectorized_access"].clone();
    assert_eq!(fate, ("not-used".into(), "the champion does not use it".into()));
    let report = lab.project.command(&["report", "--offline"]).output().unwrap();
    let report = String::from_utf8_lossy(&report.stdout).into_owned() + &String::from_utf8_lossy(&report.stderr);
    assert!(report.contains("memory.vectorized_access  not used\n") && !report.contains("not shown"), "{report}");
    let explained = lab.project.command(&["explain", "--offline", "memory.vectorized_access"]).output().unwrap();
    let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(explained.contains("not used by the champion: V=2"), "{explained}");
}
