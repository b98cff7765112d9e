//! The page beside that of a report: sources, and the disassembly of what the page compares, from binaries that builds left in the store.

use std::fs;

use crate::lab::{Lab, Machine, SOURCE};
use crate::packaged::run;

/// V=2 is the fastest of three, V=1 is declared first, and V=4 is near.
fn lab() -> Lab {
    let lab = Lab::new(&Machine { noise: 0.004, ..Machine::with(&[(1, 1400.0), (2, 1000.0), (4, 1030.0)]) });
    lab.project.write("k.cu", &format!("#pragma sass k<4> LDG.E.128 2\n#pragma sass k<2> LDG.E.64 4\n{SOURCE}"));
    lab
}

/// `kforge report --html WORDS`: what it printed, the page, and the page beside it.
fn report(lab: &Lab, words: &[&str]) -> (String, String, Option<String>) {
    let said = run(lab, &[&["report", "--html"], words].concat(), 0);
    let read = |name: &str| fs::read_to_string(lab.project.target().join(name));
    (said, read("report.html").unwrap(), read("report.sass.html").ok())
}

#[test]
fn a_page_finds_the_disassembly_of_the_champion_and_of_what_it_is_compared_with_beside_it() {
    let lab = lab();
    lab.built(&[]);
    // The machine has lost its device.
    lab.on(&Machine { device: None, ..Machine::default() });
    let (said, page, beside) = report(&lab, &[]);
    assert!(said.contains("Disassembling 3 variants"), "{said}");
    assert!(page.contains("href=\"report.sass.html#k") || page.contains("href=report.sass.html#k"), "{page}");
    let beside = beside.unwrap();
    let at = |text: &str| beside.find(text).unwrap_or_else(|| panic!("{text:?} in {beside}"));
    assert!(
        at("champion <code>V=2") < at("declared start <code>V=1")
            && at("declared start <code>V=1") < at("rival <code>V=4")
    );
    assert!(at("LDG.E.64 R0") < at("LDG.E.128 R0"), "{beside}");
    // One source for all variants, beside what it was compiled to.
    let source = "champion <code>V=2</code>, declared start <code>V=1</code>";
    assert!(at(source) < at("#pragma sass k&lt;2&gt; LDG.E.64 4") && at("#pragma sass k&lt;2&gt;") < at("LDG.E.64 R0"));
    assert_eq!(beside.matches("#pragma sass k&lt;2&gt;").count(), 1, "{beside}");
    // What was disassembled once is known.
    let (said, again, _) = report(&lab, &[]);
    assert!(!said.contains("Disassembling") && again == page, "{said}");
    // A page elsewhere has its own.
    run(&lab, &["report", "--html", "a b.html"], 0);
    assert!(fs::read_to_string(lab.project.root().join("a b.html")).unwrap().contains("a%20b.sass.html#k"));
    assert_eq!(fs::read_to_string(lab.project.root().join("a b.sass.html")).unwrap(), beside);
    // It replaces no file of somebody else, and puts nothing beside a device.
    lab.project.write("mine.sass.html", "mine");
    let said = run(&lab, &["report", "--html", "mine.html"], 101);
    assert!(said.contains("mine.sass.html` is no page of kforge") && !lab.project.root().join("mine.html").exists());
    assert_eq!(fs::read_to_string(lab.project.root().join("mine.sass.html")).unwrap(), "mine");
    // A page that only mentions kforge is no page of it, and neither is a folder.
    let theirs = "<!doctype html>\n<title>Notes</title>\n<p>: kforge report";
    lab.project.write("mine.sass.html", theirs);
    run(&lab, &["report", "--html", "mine.html"], 101);
    assert_eq!(fs::read_to_string(lab.project.root().join("mine.sass.html")).unwrap(), theirs);
    fs::remove_file(lab.project.root().join("mine.sass.html")).unwrap();
    fs::create_dir(lab.project.root().join("mine.sass.html")).unwrap();
    run(&lab, &["report", "--html", "mine.html"], 101);
    fs::remove_dir(lab.project.root().join("mine.sass.html")).unwrap();
    run(&lab, &["report", "--html", "/dev/null"], 0);
    assert!(!std::path::Path::new("/dev/null.sass.html").exists());
    assert!(!run(&lab, &["report", "--html", "-"], 0).contains("sass.html"), "what is printed has nothing beside it");
}

#[test]
fn a_page_says_why_there_is_no_disassembly_and_leaves_no_old_one() {
    let lab = lab();
    lab.built(&[]);
    assert!(report(&lab, &[]).2.is_some());
    lab.project.write("k.cu", &format!("#pragma edited\n{SOURCE}"));
    let (_, page, beside) = report(&lab, &[]);
    assert!(page.contains(": its sources or the manifest have changed since the build.") && beside.is_none(), "{page}");
    // Without the disassembler. The binaries are there.
    lab.built(&[]);
    fs::remove_file(lab.project.root().join("cuda/bin/nvdisasm")).unwrap();
    let (_, page, beside) = report(&lab, &[]);
    let beside = beside.unwrap();
    assert!(page.contains("No disassembly of champion ") && page.contains("Source of k on h"), "{page}");
    assert!(beside.contains("#pragma edited") && !beside.contains("LDG.E.64 R0"), "{beside}");
}

#[test]
#[ignore = "second tier: a build and several runs"]
fn a_run_in_ci_writes_the_page_beside_its_report_and_removes_an_old_one() {
    let lab = lab();
    run(&lab, &["ci"], 0);
    let folder = lab.project.target().join("ci");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(read("report.html").contains("report.sass.html#k"), "{}", read("report.html"));
    let beside = read("report.sass.html");
    assert!(beside.contains("LDG.E.64 R0") && beside.contains("#pragma sass k&lt;2&gt;"), "{beside}");
    // A run that cannot start leaves no documents of an earlier one.
    lab.project.write("kernel.toml", "[package");
    run(&lab, &["ci"], 101);
    assert!(!folder.join("report.html").exists() && !folder.join("report.sass.html").exists());
}
