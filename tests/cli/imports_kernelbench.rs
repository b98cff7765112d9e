//! `kforge import kernelbench` without PyTorch: what sources alone show. `tests/python/problem_sets.rs` imports tasks with the real one.

use crate::place::Place;

const TASK: &str = "import torch\n\nN = 64\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n\n\n\
                    def get_inputs():\n    return [torch.rand(N)]\n\n\ndef get_init_inputs():\n    return []\n";

#[test]
fn what_is_no_task_is_named_and_nothing_is_written() {
    let place = Place::empty().file("none/readme.md", "").file("some/helper.py", "VALUE = 1\n");
    place.run("import kernelbench none").expect(4).says("no file defines `Model`, `get_inputs` and `get_init_inputs`");
    place.run("import kernelbench some").expect(4).says("no task was imported from `some`");
    let said = place.run("import kernelbench some/helper.py").expect(4);
    said.says("defines no `Model`, no `get_inputs`, no `get_init_inputs`");
    place.run("import kernelbench nowhere").expect(101).says("cannot read `nowhere`");
    assert!(!place.at("kernelbench").exists());
}

#[test]
fn sources_that_need_other_libraries_are_refused_with_their_line_and_without_pytorch() {
    let place = Place::empty()
        .file("set/level1/1_A.py", &format!("import einops\n{TASK}"))
        .file("set/level1/2_B.py", "def f(:\n")
        .file("set/level1/3_C.py", &format!("{TASK}\n\ndef other():\n    from . import helper\n"));
    let said = place.run("import kernelbench set").expect(4);
    said.says("all 3 that were found are refused")
        .says("`level1/1_A.py` is refused: imports `einops`, which is neither of PyTorch nor of numpy nor of Python's own library (level1/1_A.py:1)")
        .says("`level1/2_B.py` is refused: is not Python: invalid syntax (level1/2_B.py:1)")
        .says("imports `.`");
    assert!(!place.at("kernelbench").exists());
}

#[test]
fn releases_and_missing_ones_are_said_in_one_sentence() {
    let place = Place::empty().file("1_A.py", TASK);
    place.run("import kernelbench 1_A.py --torch nightly").expect(2).says("`nightly` is no release of PyTorch");
    place.run("import kernelbench 1_A.py --torch 2.8").expect(101).says("kforge.lock names no wheels for PyTorch 2.8");
    assert!(!place.at("kernelbench").exists());
    let said = place.run("import kernelbench 1_A.py");
    // A Python with PyTorch imports the task.
    if said.code != 0 {
        let said =
            said.expect(101).says("PyTorch is missing for").says("-m pip install torch").says("`toolchain.torch`");
        assert_eq!(said.err.matches("error").count(), 1, "{}", said.err);
        assert!(!place.at("kernelbench").exists());
    }
}

#[test]
fn a_package_that_exists_stays_as_it_is() {
    let place = Place::empty().file("set/level1/1_A.py", TASK).file("kernelbench/level1/1_A/note.txt", "mine");
    place.run("import kernelbench set/level1/1_A.py").expect(101).says("already exists");
    let said = place.run("import kernelbench set --format json").expect(0);
    let task = &said.json()["tasks"][0];
    assert_eq!(
        (task["status"].as_str(), task["level"].as_u64(), task["number"].as_u64()),
        (Some("exists"), Some(1), Some(1))
    );
    assert_eq!(place.read("kernelbench/level1/1_A/note.txt"), "mine");
    assert!(!place.at("kernelbench/kernel.toml").exists());
}
