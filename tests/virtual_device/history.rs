//! Champions over the bundles that git holds: a repository with bundles of several machines, and the page of their history.

use std::fs;
use std::path::Path;

use kforge::release::archive;
use kforge::release::signature::{NAMESPACE, SigningKey};
use serde_json::Value;

use crate::compared::{commit, git};
use crate::lab::{Lab, Machine};
use crate::packaged::run;

const BUNDLE: &str = "evidence/virtual-h.kfe";

/// The bundle of a machine that was not seen before.
fn bundle(lab: &Lab, name: &str, machine: &Machine) -> Vec<u8> {
    let other = lab.anew(name);
    other.on(machine);
    other.built(&[]);
    let path = other.project.place().join(format!("{name}.kfe"));
    run(&other, &["evidence", "export", "--output", path.to_str().unwrap()], 0);
    fs::read(path).unwrap()
}

fn put(lab: &Lab, path: &str, bytes: &[u8]) {
    let path = lab.project.root().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn history(lab: &Lab, words: &[&str]) -> (Value, String, String) {
    let said = run(lab, &[&["report", "--html", "--history"], words].concat(), 0);
    let read = |name: &str| fs::read_to_string(lab.project.target().join(name)).unwrap();
    let json: Value = serde_json::from_str(&read("history.json")).unwrap();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/history.json");
    let schema = jsonschema::validator_for(&serde_json::from_slice(&fs::read(schema).unwrap()).unwrap()).unwrap();
    assert!(schema.is_valid(&json), "{json}");
    (json, read("history.html"), said)
}

fn words<'v>(series: &'v Value, field: &str) -> Vec<&'v str> {
    series["points"].as_array().unwrap().iter().map(|point| point[field].as_str().unwrap()).collect()
}

#[test]
#[ignore = "second tier: four builds, and git many times"]
fn champions_are_shown_over_the_commits_that_changed_a_bundle() {
    let lab = Lab::new(&Machine::default());
    git(&lab, &["init", "--quiet"]);
    lab.project.write(".gitignore", "/target/\n");
    let of = |times: &[(u32, f64)], day: u32| Machine { day, seed: day.into(), ..Machine::with(times) };
    let first = bundle(&lab, "first", &of(&[(1, 1000.0), (2, 1400.0), (4, 1500.0)], 1));
    let faster = bundle(&lab, "faster", &of(&[(1, 1000.0), (2, 800.0), (4, 1500.0)], 2));
    let again = bundle(&lab, "again", &of(&[(1, 1000.0), (2, 820.0), (4, 1500.0)], 3));
    let other = Machine { device: Some(("Other H", "580.1")), ..of(&[(1, 500.0), (2, 700.0), (4, 900.0)], 3) };
    let other = bundle(&lab, "other", &other);
    put(&lab, BUNDLE, &first);
    commit(&lab, "first");
    put(&lab, BUNDLE, &faster);
    commit(&lab, "<script>alert(1)</script>");
    put(&lab, "evidence/other.kfe", &other);
    put(&lab, "evidence/bad.kfe", b"PK no bundle");
    commit(&lab, "another device");
    lab.project.write("README.md", "nothing");
    commit(&lab, "no bundle");
    // The same record, which somebody signs; and after that a new one.
    let key = SigningKey::generate().unwrap();
    let document = archive::unpack(&faster, archive::LIMITS).unwrap().document;
    put(&lab, BUNDLE, &archive::sign(&faster, &key.sign(NAMESPACE, &document).unwrap()).unwrap());
    commit(&lab, "signed");
    put(&lab, BUNDLE, &again);
    fs::remove_file(lab.project.root().join("evidence/other.kfe")).unwrap();
    commit(&lab, "measured again");
    let keys = lab.project.place().join("keys");
    fs::write(&keys, format!("ci@x {}\n", key.public().text())).unwrap();

    let (json, page, said) = history(&lab, &["--trust", keys.to_str().unwrap()]);
    let subjects = ["first", "<script>alert(1)</script>", "another device", "signed", "measured again"];
    let commits = json["commits"].as_array().unwrap();
    assert_eq!(commits.iter().map(|commit| commit["subject"].as_str().unwrap()).collect::<Vec<_>>(), subjects);
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert_eq!(
        (&json["unread"][0]["path"], &json["unread"][0]["commit"]),
        (&"evidence/bad.kfe".into(), &commits[2]["commit"])
    );
    assert!(said.contains("1 bundle was not read"), "{said}");
    let [slow, fast] = &json["series"].as_array().unwrap()[..] else { panic!("{json}") };
    // Times of different devices are never in one series.
    assert_eq!(
        (slow["device"].as_str().unwrap(), words(slow, "variant")),
        ("Other H (sm_90, driver 580)", vec!["V=1"])
    );
    assert_eq!(slow["absent"], Value::from(vec![commits[4]["commit"].clone()]));
    assert_eq!(fast["device"], "Virtual H (sm_90, driver 580)");
    assert_eq!(words(fast, "variant"), ["V=1", "V=2", "V=2", "V=2"]);
    assert_eq!(words(fast, "change"), ["first", "champion", "standing", "time"]);
    assert_eq!(words(fast, "standing"), ["claimed", "claimed", "signed", "claimed"]);
    let at = [0, 1, 3, 4].map(|at| commits[at]["commit"].as_str().unwrap());
    assert_eq!(words(fast, "commit"), at);
    let points = fast["points"].as_array().unwrap();
    for (point, near) in points.iter().zip([1000.0, 800.0, 800.0, 820.0]) {
        let ns = point["median_ns"].as_f64().unwrap();
        assert!((ns / near - 1.0).abs() < 0.03, "{point}, expected about {near}");
        let [low, high] = [0, 1].map(|end| point["interval_ns"][end].as_f64().unwrap());
        assert!(low <= ns && ns <= high, "{point}");
        let (per, unit) = if ns < 1e3 { (1.0, "ns") } else { (1e3, "us") };
        let places = 3 - (ns / per).log10().floor() as usize;
        assert!(page.contains(&format!("<td class=n>{:.places$} {unit}<td", ns / per)), "{point}");
    }
    assert!(page.contains("signed by `ci@x`<small>measured 2026-01-02, evidence/virtual-h.kfe</small>"), "{page}");
    // Without the key, the signature does not count, and the document says so.
    let (json, page, _) = history(&lab, &[]);
    assert_eq!(words(&json["series"][1], "change"), ["first", "champion", "time"]);
    assert_eq!(
        (&json["distrusted"][0]["path"], &json["distrusted"][0]["commit"]),
        (&BUNDLE.into(), &commits[3]["commit"])
    );
    assert!(page.contains("Signatures that do not count"));
    assert!(run(&lab, &["report", "--html", "--history", "--shape", "tiny"], 4).contains("of this selection"));
    let (json, ..) = history(&lab, &["--kernel", "k", "--shape", "big"]);
    assert_eq!(json["series"].as_array().unwrap().len(), 2);
    assert_eq!(history(&lab, &[]).1, page, "one repository gives one page");
}
