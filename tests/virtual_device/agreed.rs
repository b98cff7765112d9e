//! Two variants have one comparison, whoever asks for it: selection, attribution and `compare` never contradict each other.

use std::process::Command;

use kforge::workspace::lockfile::{Lockfile, Pin, Seat};

use crate::lab::{Lab, Machine, SOURCE, champion, paired, steps};
use crate::project::ids;

const METHOD: &str = r#"
[kernel.k.methods."memory.vectorized_access"]
off = { V = 1 }
sass.any = ['LDG\.E\.128']
"#;

/// V=4 before V=1, which is V=4 without a method; the machine code of V=4 shows the method.
fn lab(machine: &Machine) -> Lab {
    Lab::with_method(machine, METHOD)
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
#[ignore = "second tier: many builds"]
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
        // The report has the same pairs as a ratio, and quantiles of the samples of both.
        let target = lab.target();
        let versus = &target["champions"][0]["versus"][0];
        let more = serde_json::json!(versus["ratio"].as_f64().unwrap() - 1.0);
        assert!(versus["variant"] == "V=1" && close(&more, &pair["slower_by"]), "{versus} {pair}");
        let seen = |time: &serde_json::Value| time["seen"]["cold"]["quantiles_ns"].as_array().map_or(0, Vec::len);
        let counts: Vec<usize> = target["times"].as_array().unwrap().iter().map(seen).collect();
        assert_eq!(counts, [21, 21], "{target}");
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
    assert!(because.starts_with("the two orders disagree: the kernel without it takes "), "{because}");
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

/// The report as text.
fn report(lab: &Lab) -> String {
    let output = lab.project.command(&["report", "--offline"]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// V=4, V=1 and V=2. V=4 has a method that V=1 lacks. V=4 ties with V=2, and is decidedly slower than V=1.
fn costly(seed: u64) -> Lab {
    let times = [(4, 1018.0), (1, 1000.0), (2, 1009.0)];
    let lab = Lab::new(&Machine { seed, noise: 0.003, drift: 0.02, ..Machine::with(&times) });
    let lab = lab.manifest("[1, 2, 4]", "[4, 1, 2]");
    let manifest = std::fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    let method = METHOD.replace("off =", "on = { V = 4 }\noff =");
    lab.project.write("kernel.toml", &format!("{manifest}{method}"));
    lab.project.write("k.cu", &format!("#pragma sass k<4> LDG.E.128 2\n{SOURCE}"));
    lab
}

#[test]
#[ignore = "second tier: many builds"]
fn no_champion_has_a_method_that_is_known_to_cost_time() {
    let mut challenged = 0;
    for seed in 0..8 {
        let lab = costly(seed);
        let built = lab.built(&[]);
        // Whichever was the best by medians: V=4 ties with V=2, but V=1 is faster than V=4, and declared before V=2.
        assert_eq!(champion(&built), ("V=1".into(), false), "seed {seed}");
        let selects = steps(&built, "select", "executed");
        if selects.contains("p/k/h/challenge-1/select") {
            challenged += 1;
            assert_ne!(lab.fastest(), "V=1", "seed {seed}: else the selection itself decides");
            // What lost its place is not confirmed, so nothing that is found only there fails the build.
            let confirms = |id: &&String| id.contains("/confirmed/");
            let confirmed = steps(&built, "judge", "executed");
            let confirmed: Vec<&str> = confirmed.iter().filter(confirms).map(String::as_str).collect();
            let at = ["big", "tiny"].map(|shape| format!("p/k/V=1/h/{shape}/confirmed/judge"));
            assert_eq!(confirmed, at, "seed {seed}");
            let fates: Vec<(String, String)> = lab.target()["methods"]
                .as_array()
                .unwrap()
                .iter()
                .map(|m| (m["variant"].to_string(), m["attribution"]["fate"].to_string()))
                .collect();
            let expected = [("\"V=1\"", "\"not-used\""), ("\"V=4\"", "\"harmful\"")];
            assert_eq!(fates, expected.map(|(variant, fate)| (variant.to_string(), fate.to_string())), "seed {seed}");
            assert_eq!(lab.target()["champions"].as_array().unwrap().len(), 1);
            let text = report(&lab);
            assert!(text.contains("champion: V=1") && text.contains("vectorized_access  not used"), "{text}");
            assert!(!text.contains("harmful") && !text.contains("warning"), "{text}");
            // The step that decided is the one that explains the champion.
            let choice = lab.project.explain("p/k/h/challenge-1/select")["choices"][0].clone();
            assert_eq!(choice["champion"], "V=1");
            // A pair is one question, also where a selection and an attribution both read it.
            paired(&built, "executed");
        }
        let again = lab.built(&[]);
        assert_eq!((again.count("executed"), champion(&again).0), (0, "V=1".into()), "seed {seed}");
        // A clean build without the device selects the same by the same records.
        let other = lab.anew("other");
        lab.give_evidence(&other);
        other.on(&Machine { device: None, ..Machine::default() });
        assert_eq!(champion(&other.built(&[])), ("V=1".into(), false), "seed {seed}");
    }
    assert!(challenged > 0, "{challenged} of 8 selections were challenged");
}

#[test]
fn a_harmful_method_stays_with_a_warning_where_the_kernel_without_it_is_no_variant() {
    // V=8 is not among the values of the tunable.
    let lab =
        lab(&Machine::with(&[(4, 1000.0), (1, 1500.0), (8, 900.0)])).manifest("off = { V = 1 }", "off = { V = 8 }");
    let built = lab.built(&[]);
    assert_eq!(champion(&built).0, "V=4");
    let (fate, because) = lab.fates()["memory.vectorized_access"].clone();
    assert_eq!(fate, "harmful");
    assert!(
        because.starts_with("without it faster, -10.") || because.starts_with("without it faster, -9."),
        "{because}"
    );
    let warning = format!("    warning: memory.vectorized_access is harmful: {because}\n");
    assert!(report(&lab).contains(&warning), "{}", report(&lab));
    let again = lab.project.command(&["build", "--offline"]).output().unwrap();
    let again = String::from_utf8_lossy(&again.stdout).into_owned() + &String::from_utf8_lossy(&again.stderr);
    assert!(again.contains(&format!("  warning k on h: memory.vectorized_access is harmful: {because}\n")), "{again}");
    assert_eq!(steps(&built, "select", "executed"), ids(&["p/k/h/nominate/select", "p/k/h/select"]));
}

#[test]
#[ignore = "second tier: many builds"]
fn a_contender_that_a_search_did_not_visit_is_verified_and_timed_before_it_takes_part() {
    let times = [(4, 1000.0), (2, 1400.0), (1, 900.0)];
    let mut challenged = 0;
    // With two visited variants, the third may have a number in declared order that is a position among these.
    for (visited, seed) in [(1, 0), (2, 0), (2, 1), (2, 2), (2, 3), (2, 4), (2, 5)] {
        let lab = Lab::new(&Machine { noise: 0.003, ..Machine::with(&times) }).manifest("[1, 2, 4]", "[4, 1, 2]");
        let search =
            format!("tune.strategy = \"random\"\ntune.seed = {seed}\ntune.budget = {{ variants = {visited} }}\ntune.V");
        let lab = lab.manifest("tune.V", &search);
        let manifest = std::fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
        lab.project.write("kernel.toml", &format!("{manifest}{METHOD}"));
        lab.project.write("k.cu", &format!("#pragma sass k<[42]> LDG.E.128 2\n{SOURCE}"));
        let built = lab.built(&[]);
        assert_eq!(champion(&built), ("V=1".into(), false), "{visited} visited, seed {seed}: {}", built.stderr());
        assert_eq!(lab.target()["shapes"].as_array().unwrap().len(), 2, "the champion's verdicts are its own");
        assert_eq!(lab.built(&[]).count("executed"), 0);
        let selects = steps(&built, "select", "executed");
        challenged += i32::from(visited == 2 && selects.contains("p/k/h/challenge-1/select"));
    }
    assert!(challenged > 0, "no search of two variants left out V=1");
}

#[test]
fn an_accepted_champion_keeps_a_harmful_method_with_a_warning() {
    let lab = lab(&machine(1, 1000.0, 900.0));
    assert_eq!(champion(&lab.built(&[])).0, "V=1");
    let mut lock = Lockfile::read(lab.project.root()).unwrap();
    let part = |text: &str| text.to_string();
    let seat =
        Seat { package: part("p"), kernel: part("k"), types: String::new(), target: part("h"), class: part("all") };
    lock.champions.insert(seat, Pin::Accepted("V=4".into()));
    lock.write(lab.project.root(), false).unwrap();
    let built = lab.built(&[]);
    assert_eq!(champion(&built), ("V=4".into(), false));
    assert!(built.finished().all(|s| !s["id"].as_str().unwrap().contains("challenge")), "nobody else takes part");
    assert!(
        report(&lab).contains("warning: memory.vectorized_access is harmful: without it faster, -"),
        "{}",
        report(&lab)
    );
}
