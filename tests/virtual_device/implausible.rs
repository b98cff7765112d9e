//! Times that are refused, and honest times that look like them: slow launches on fresh inputs, and times below a floor.

use crate::lab::{Lab, Machine, champion, steps};

/// A machine on which the second of three variants is the fastest and has these properties.
fn machine(says: &str) -> Machine {
    Machine::with(&[(1, 90_000.0), (4, 80_000.0)]).rule("^k<2>", says)
}

const FULL: &str = "p/k/V=2/h/big/bench";

#[test]
fn a_launch_that_is_slow_once_on_fresh_inputs_costs_no_honest_kernel_its_time() {
    let lab = Lab::new(&machine("ns = 71328.0\nfresh-ns = [175680.0]"));
    let built = lab.built(&[]);
    assert_eq!(built.step(FULL)["verdict"], serde_json::Value::Null, "{}", built.step(FULL));
    assert_eq!(champion(&built), ("V=2".into(), false));
}

#[test]
fn a_kernel_that_is_slow_on_all_fresh_inputs_has_no_time() {
    let slow = [175_680.0; 8];
    let lab = Lab::new(&machine(&format!("ns = 71328.0\nfresh-ns = {slow:?}")));
    let built = lab.project.build(&["--keep-going"]);
    let why = built.step(FULL)["verdict"]["unknown"]["implausible"].as_str().unwrap_or_default().to_string();
    assert!(why.starts_with("at least 175680 ns on fresh inputs, in 3 draws, but "), "{}", built.step(FULL));
    assert_eq!(champion(&built), ("V=4".into(), false));
}

/// A machine on which one of twelve variants is below the floor of cold times, and hot four times as fast as cold.
fn many(says: &str) -> Lab {
    let machine = (1..=11).fold(Machine::default(), |machine, v| machine.rule(&format!("^k<{v}>"), "ns = 90000.0"));
    let machine =
        machine.rule("^k<12>", &format!("ns = 80000.0\nhot-ns = 20000.0\nfloor-ns = [100000.0, 1000.0]\n{says}"));
    Lab::new(&machine).manifest("tune.V = [1, 2, 4]", "tune.V = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]")
}

const FEW: &str = "p/k/V=12/h/big/few/bench";

#[test]
fn the_clock_of_hot_launches_is_not_held_against_few_cold_samples() {
    let built = many("").project.build(&["--keep-going"]);
    assert!(steps(&built, "bench", "executed").contains(FEW));
    let why = built.step(FEW)["verdict"]["unknown"]["implausible"].as_str().unwrap_or_default().to_string();
    assert!(why.contains("ns cold, but the hardware needs at least 100000 ns"), "{}", built.step(FEW));
}

#[test]
fn the_clock_is_held_against_the_hot_series_of_a_full_bench() {
    let lab = Lab::new(&machine("ns = 71328.0\nfloor-ns = [0.0, 75000.0]\nclock-ns = 200000.0"));
    let built = lab.project.build(&["--keep-going"]).expect(100);
    let why = built.step(FULL)["verdict"]["fail"].as_str().unwrap_or_default().to_string();
    assert!(why.ends_with("ns hot, but the worker's clock measures 200000 ns"), "{}", built.step(FULL));
    // A clock that agrees leaves the time unknown.
    let lab = Lab::new(&machine("ns = 71328.0\nfloor-ns = [0.0, 75000.0]"));
    let built = lab.project.build(&["--keep-going"]);
    assert!(built.step(FULL)["verdict"]["unknown"]["implausible"].is_string(), "{}", built.step(FULL));
}
