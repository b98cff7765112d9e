//! Every number in a table of the page, read back and compared with the JSON of the document, by another way than the page takes.

use serde_json::Value;

use super::super::page;
use super::read::{Cell, Page, Table};
use super::synthetic::synthetic;
use crate::report::score::{self, DECLARED};
use kforge_numerics::measure::score::Form;

/// The value of a text in its base unit (nanoseconds, shares, units per second), and half of its last place.
fn parsed(text: &str) -> (f64, f64) {
    let mut words = text.split_whitespace();
    let digits = words.next().unwrap_or_else(|| panic!("no number in `{text}`"));
    let unit = match words.next() {
        None => 1.0,
        Some("ns") => 1.0,
        Some("us") => 1e3,
        Some("ms") => 1e6,
        Some("%") => 0.01,
        Some("T") => 1e12,
        Some("G") => 1e9,
        Some("M") => 1e6,
        Some(other) => panic!("`{other}` of `{text}`"),
    };
    let value: f64 = digits.parse().unwrap_or_else(|_| panic!("`{digits}` of `{text}`"));
    let places = digits.split_once('.').map_or(0, |(_, after)| after.len());
    (value * unit, 0.5001 * unit * 10f64.powi(-(places as i32)))
}

/// How many numbers of a page were compared.
#[derive(Default)]
struct Compared(usize);

impl Compared {
    #[track_caller]
    fn number(&mut self, cell: &Cell, expected: f64) {
        assert!(cell.numeric, "{cell:?}");
        self.within(&cell.text, expected, cell);
        if let Some(value) = &cell.value {
            let exact: f64 = value.parse().unwrap();
            assert!((exact - expected).abs() <= expected.abs() * 1e-5, "data-v of {cell:?}, expected {expected}");
        }
        self.0 += 1;
    }

    #[track_caller]
    fn within(&self, text: &str, expected: f64, cell: &Cell) {
        let (shown, half) = parsed(text);
        assert!((shown - expected).abs() <= half, "{cell:?}: {shown} is shown, expected {expected}");
    }

    /// `1.02 to 1.05`, with a unit after one or both.
    #[track_caller]
    fn ends(&mut self, cell: &Cell, (low, high): (f64, f64)) {
        assert!(cell.numeric, "{cell:?}");
        let (first, second) = cell.text.split_once(" to ").unwrap_or_else(|| panic!("{cell:?}"));
        let unit = second.split_once(' ').map_or(String::new(), |(_, unit)| format!(" {unit}"));
        self.within(&format!("{first}{unit}"), low, cell);
        self.within(second, high, cell);
        self.0 += 1;
    }
}

fn f(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn pair(value: &Value) -> (f64, f64) {
    (f(&value[0]), f(&value[1]))
}

/// The target of a kernel by its name, with or without ` on h200`.
fn target<'v>(report: &'v Value, name: &str) -> &'v Value {
    let name = name.split(" on ").next().unwrap().trim_start_matches(['✕', '?', '◐', '●', ' ']);
    let kernels = report["packages"][0]["kernels"].as_array().unwrap();
    &kernels.iter().find(|kernel| kernel["name"] == name).unwrap_or_else(|| panic!("`{name}`"))["targets"][0]
}

fn time<'v>(target: &'v Value, shape: &str, variant: &str) -> &'v Value {
    let mut all = target["times"].as_array().unwrap().iter();
    all.find(|time| time["shape"] == shape && time["variant"] == variant).unwrap_or_else(|| panic!("{shape} {variant}"))
}

fn champion(target: &Value) -> &str {
    target["champions"][0]["variant"].as_str().unwrap()
}

/// The ratio of two medians and its interval, by the formula of the documents.
fn by_medians(over: &Value, under: &Value) -> (f64, (f64, f64)) {
    let part = |time: &Value| (f(&time["cold_ns"]).ln(), pair(&time["seen"]["cold"]["interval_ns"]));
    let ((a, (a_low, a_high)), (b, (b_low, b_high))) = (part(over), part(under));
    let low = ((a - a_low.ln()).powi(2) + (b_high.ln() - b).powi(2)).sqrt();
    let high = ((a_high.ln() - a).powi(2) + (b - b_low.ln()).powi(2)).sqrt();
    ((a - b).exp(), ((a - b - low).exp(), (a - b + high).exp()))
}

fn slowest(target: &Value) -> (&str, f64) {
    let mine = target["times"].as_array().unwrap().iter().filter(|time| time["variant"] == champion(target));
    let of = mine.map(|time| (time["shape"].as_str().unwrap(), f(&time["cold_ns"])));
    of.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
}

fn ladder(report: &Value, table: &Table, compared: &mut Compared) {
    for row in &table.rows {
        let name = row[0].text.split("of an earlier version").next().unwrap();
        let target = target(report, name.trim());
        let (shape, ns) = slowest(target);
        assert_eq!(row[3].small[0], format!("at {shape}"));
        compared.number(&row[3], ns);
        let reached = &target["rooflines"][0]["achieved"][shape];
        compared.number(&row[4], f(&reached["memory"]["share"]).max(f(&reached["compute"]["share"])));
    }
}

fn speedups(report: &Value, table: &Table, compared: &mut Compared) {
    let mut name = String::new();
    for row in &table.rows {
        if row[0].group {
            name.clone_from(&row[0].text);
            continue;
        }
        if row.len() < 6 {
            continue;
        }
        let (target, shape) = (target(report, &name), row[1].text.as_str());
        let (ratio, ends) = match row[0].text.split_once(' ').unwrap() {
            ("declared", start) => {
                let start = start.strip_prefix("start ").unwrap();
                by_medians(time(target, shape, start), time(target, shape, champion(target)))
            }
            ("rival", rival) => {
                let all = target["champions"][0]["versus"].as_array().unwrap();
                let one = all.iter().find(|one| one["shape"] == shape && one["variant"] == rival).unwrap();
                (f(&one["ratio"]), pair(&one["interval"]))
            }
            ("baseline", baseline) => {
                let all = target["baselines"].as_array().unwrap();
                let one = all.iter().find(|one| one["shape"] == shape && one["baseline"] == baseline).unwrap();
                let ratio = &one["rating"]["ratio"];
                (f(&ratio["median"]), (f(&ratio["low"]), f(&ratio["high"])))
            }
            (other, _) => panic!("{other}"),
        };
        compared.number(&row[2], ratio);
        compared.ends(&row[3], ends);
    }
}

/// The geometric mean over the bench shapes, with its interval.
fn score(target: &Value) -> (f64, (f64, f64)) {
    let start = target["basis"]["declared"].as_str().unwrap();
    let shapes: Vec<&Value> = target["times"].as_array().unwrap().iter().filter(|t| t["variant"] == start).collect();
    let of = |over: &&Value| by_medians(over, time(target, over["shape"].as_str().unwrap(), champion(target)));
    let all: Vec<(f64, (f64, f64))> = shapes.iter().map(of).collect();
    let n = all.len() as f64;
    let mean = all.iter().map(|(ratio, _)| ratio.ln()).sum::<f64>() / n;
    let root = |distances: Vec<f64>| distances.iter().map(|one| one.powi(2)).sum::<f64>().sqrt() / n;
    let low = root(all.iter().map(|(ratio, (low, _))| ratio.ln() - low.ln()).collect());
    let high = root(all.iter().map(|(ratio, (_, high))| high.ln() - ratio.ln()).collect());
    (mean.exp(), ((mean - low).exp(), (mean + high).exp()))
}

fn is_right(target: &Value) -> Option<bool> {
    let verdicts: Vec<&Value> = target["shapes"].as_array().unwrap().iter().map(|shape| &shape["verdict"]).collect();
    match () {
        () if verdicts.iter().any(|verdict| verdict.get("fail").is_some()) => Some(false),
        () if verdicts.iter().all(|verdict| *verdict == "pass") => Some(true),
        () => None,
    }
}

fn scores(report: &Value, table: &Table, compared: &mut Compared) {
    let mut before = f64::NEG_INFINITY;
    for row in table.rows.iter().filter(|row| row.len() == 5) {
        let target = target(report, &row[0].text);
        let (ratio, ends) = score(target);
        compared.number(&row[2], ratio);
        compared.ends(&row[3], ends);
        let right = is_right(target);
        assert_eq!(
            row[1].text,
            match right {
                Some(true) => "correct",
                Some(false) => "wrong",
                None => "unknown",
            }
        );
        if right == Some(true) {
            assert!(ratio >= before, "sorted by speed-up");
            before = ratio;
        }
    }
}

fn fast_p(report: &Value, table: &Table, compared: &mut Compared) {
    let kernels = report["packages"][0]["kernels"].as_array().unwrap();
    for row in &table.rows {
        let p: f64 = row[0].text.parse().unwrap();
        compared.number(&row[0], p);
        let share = |least: bool| {
            let counts = |kernel: &&Value| {
                let target = &kernel["targets"][0];
                is_right(target).unwrap_or(!least) && score(target).0 > p
            };
            kernels.iter().filter(counts).count() as f64 / kernels.len() as f64
        };
        match row[1].text.contains(" to ") {
            true => compared.ends(&row[1], (share(true), share(false))),
            false => {
                assert!((share(true) - share(false)).abs() < 1e-12);
                compared.number(&row[1], share(true));
            }
        }
    }
}

fn roofline(report: &Value, table: &Table, compared: &mut Compared) {
    for row in &table.rows {
        let reached = &target(report, &row[0].text)["rooflines"][0]["achieved"][row[1].text.as_str()];
        compared.number(&row[2], f(&reached["time_ns"]));
        compared.number(&row[3], f(&reached["bytes_per_s"]));
        compared.number(&row[4], f(&reached["memory"]["share"]));
        compared.number(&row[5], f(&reached["ops_per_s"]));
        assert_eq!(row[6].text, reached["unit"].as_str().unwrap());
        compared.number(&row[7], f(&reached["compute"]["share"]));
    }
}

fn methods(report: &Value, table: &Table, compared: &mut Compared) {
    let mut method = &Value::Null;
    for row in &table.rows {
        let saving = match row.len() {
            6 => {
                method = &target(report, &row[0].text)["methods"][0];
                &method["attribution"]["saving"]
            }
            // A shape of the method above.
            5 => {
                let mut shapes = method["shapes"].as_array().unwrap().iter();
                &shapes.find(|one| row[0].text == format!("at {}", one["shape"].as_str().unwrap())).unwrap()["saving"]
            }
            _ => continue,
        };
        compared.number(&row[1], f(&saving[0]));
        compared.ends(&row[2], (f(&saving[1]), f(&saving[2])));
    }
}

fn variants(report: &Value, table: &Table, compared: &mut Compared) {
    let target = target(report, &table.about);
    let (shape, _) = slowest(target);
    let fails = |variant: &Value| {
        let mut all = target["shapes"].as_array().unwrap().iter();
        all.any(|shape| shape["variant"] == *variant && shape["verdict"].get("fail").is_some())
    };
    let all = target["times"].as_array().unwrap().iter().filter(|time| time["shape"] == shape);
    let best =
        all.filter(|time| !fails(&time["variant"])).map(|time| f(&time["cold_ns"])).fold(f64::INFINITY, f64::min);
    let mut before = 0.0;
    for row in &table.rows {
        let axes = table.head.len() - 3;
        let values = table.head.iter().zip(row).take(axes).filter(|(_, cell)| !cell.text.is_empty());
        let label: Vec<String> = values.map(|(name, cell)| format!("{name}={}", cell.text)).collect();
        // The variant of that label is looked up, so the values are those of the document.
        let time = time(target, shape, &label.join(","));
        compared.0 += label.len();
        if fails(&time["variant"]) {
            assert_eq!((row[axes].text.as_str(), row[axes + 1].text.as_str()), ("", ""));
            continue;
        }
        let ns = f(&time["cold_ns"]);
        let unit = table.head[axes].strip_prefix("time, ").unwrap();
        compared.number(&Cell { text: format!("{} {unit}", row[axes].text), ..row[axes].clone() }, ns);
        compared.number(&row[axes + 1], ns / best);
        assert!(ns >= before, "fastest first");
        before = ns;
    }
}

fn strips(report: &Value, table: &Table, compared: &mut Compared) {
    let target = target(report, &table.about);
    let (shape, _) = slowest(target);
    let all = || target["times"].as_array().unwrap().iter().filter(|time| time["shape"] == shape);
    let least = |of: &mut dyn Iterator<Item = &Value>| of.map(|time| f(&time["cold_ns"])).fold(f64::INFINITY, f64::min);
    for row in table.rows.iter().filter(|row| row.len() == 4) {
        let part = format!("{}={}", row[0].text, row[1].text);
        let mut mine = all().filter(|time| time["variant"].as_str().unwrap().split(',').any(|known| known == part));
        compared.number(&row[2], least(&mut mine) / least(&mut all()));
    }
}

fn visits(report: &Value, table: &Table, compared: &mut Compared) {
    let all = target(report, &table.about)["search"]["visits"].as_array().unwrap();
    for (at, row) in table.rows.iter().enumerate() {
        compared.number(&row[0], at as f64 + 1.0);
        assert_eq!(row[1].text, all[at]["variant"].as_str().unwrap());
        match all[at].get("ns") {
            Some(ns) => compared.number(&row[3], f(ns)),
            None => assert_eq!(row[3].text, ""),
        }
    }
}

fn samples(report: &Value, table: &Table, compared: &mut Compared) {
    let target = target(report, &table.about);
    let (mut series, mut shape, mut unit) = ("", "", "");
    for row in &table.rows {
        if row[0].group {
            let words: Vec<&str> = row[0].text.split(' ').collect();
            let [of, "at", at, "in", unit_of] = words.as_slice() else { panic!("{}", row[0].text) };
            (series, shape, unit) = (of, at.trim_end_matches(','), unit_of);
            continue;
        }
        let variant = row[0].text.rsplit(' ').next().unwrap();
        let spread = &time(target, shape, variant)["seen"][series];
        assert_eq!(row[0].small[0], format!("{} samples", spread["samples"]));
        for (cell, at) in row[1..6].iter().zip([1, 5, 10, 15, 19]) {
            let cell = Cell { text: format!("{} {unit}", cell.text), ..cell.clone() };
            compared.number(&cell, f(&spread["quantiles_ns"][at]));
        }
    }
}

fn observations(report: &Value, table: &Table, compared: &mut Compared) {
    let kernels = report["packages"][0]["kernels"].as_array().unwrap();
    for row in &table.rows {
        let standing = if row[3].text == "claimed" { "claimed" } else { "signed" };
        let mine = kernels.iter().map(|kernel| &kernel["targets"][0]["observed"][0]);
        let mine: Vec<&Value> = mine.filter(|one| one["standing"] == standing).collect();
        compared.number(&row[4], mine.len() as f64);
        compared.number(&row[5], mine.iter().map(|one| f(&one["records"])).sum());
    }
}

#[test]
fn every_number_in_a_table_is_that_of_the_document() {
    for kernels in [8, 30, 100] {
        let report = synthetic(kernels);
        let read = Page::read(&page(&report));
        let json = serde_json::to_value(&report).unwrap();
        let mut compared = Compared::default();
        for table in &read.tables {
            let check = match table.label.as_str() {
                "kernels on targets" => ladder,
                "speed-ups of champions" => speedups,
                "scores of kernels" => scores,
                "fast_p" => fast_p,
                "what champions reach" => roofline,
                "methods of champions" => methods,
                "variants" => variants,
                "times by the value of each tunable, over the best time" => strips,
                "visits of the search" => visits,
                "observations" => observations,
                "samples" => samples,
                other => panic!("no check knows the table `{other}`"),
            };
            check(&json, table, &mut compared);
        }
        let cells = read.tables.iter().flat_map(|table| table.rows.iter().flatten());
        let numeric = cells.filter(|cell| cell.numeric && !cell.text.is_empty()).count();
        assert_eq!(compared.0, numeric, "every number was compared");
        assert!(numeric > 15 * kernels, "{numeric} numbers");
    }
}

/// The texts of the descriptions with a title, in the order of the page.
fn described<'t>(text: &'t str, title: &str) -> Vec<&'t str> {
    let start = format!("<dt>{title}<dd>");
    let after = text.split(start.as_str()).skip(1);
    after.map(|rest| rest.split('<').next().unwrap_or_default()).collect()
}

#[test]
fn cards_counts_and_opcodes_are_those_of_the_document() {
    let report = synthetic(12);
    let (json, text) = (serde_json::to_value(&report).unwrap(), page(&report));
    let scores = score::scores(&report, Form::Speedup, DECLARED, &[]).unwrap();
    let suite = serde_json::to_value(&scores).unwrap()["suite"].clone();
    for (title, field) in
        [("geometric mean", "geometric_mean"), ("median", "median"), ("75th percentile", "percentile_75")]
    {
        let (shown, half) = parsed(described(&text, title)[0]);
        assert!((shown - f(&suite[field])).abs() <= half, "{title}: {shown}");
    }
    for (title, field) in
        [("scored", "candidates"), ("correct", "correct"), ("wrong", "wrong"), ("unknown", "unverified")]
    {
        assert_eq!(described(&text, title)[0], suite[field].to_string(), "{title}");
    }
    let kernels = json["packages"][0]["kernels"].as_array().unwrap();
    let counts = |name: &str| -> Vec<String> {
        let of = |kernel: &Value| kernel["targets"][0]["machine"][0]["functions"][0]["opcodes"][name].to_string();
        kernels.iter().map(of).collect()
    };
    for name in ["FFMA", "LDG.E.128"] {
        assert_eq!(described(&text, name), counts(name), "{name}");
    }
    let rows = Page::read(&text).tables.into_iter().find(|table| table.label == "kernels on targets").unwrap().rows;
    for (sign, name) in [('✕', "failed"), ('?', "unknown"), ('◐', "passes, emulated"), ('●', "passes on the device")]
    {
        let count = rows.iter().filter(|row| row[0].text.trim().starts_with(sign)).count();
        assert!(text.contains(&format!("<b>{sign}</b> {count} {name}</span>")), "{count} {name}");
    }
}
