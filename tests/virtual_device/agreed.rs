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
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]);
        assert!(command.args(words).current_dir(lab.project.root()).output().unwrap().status.success(), "{words:?}");
    };
    git(&["init", "--quiet"]);
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "-m", "first"]);
    lab.built(&[]);
    let lab = lab.clone().manifest("V = [1]", "V = [4, 1]");
    let built = lab.built(&[]);
    assert_eq!(steps(&built, "pairs", "executed").len(), 1);
    let records = lab.records();
    let output = lab.project.command(&["compare", "HEAD", "--offline"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("same") && said.contains("in pairs on Virtual H"), "{said}");
    assert_eq!(lab.records(), records, "the champions V=4 and V=1 were paired before: {said}");
}
