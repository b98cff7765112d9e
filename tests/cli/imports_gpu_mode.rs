//! `kforge import gpu-mode` without PyTorch: what `task.yml` and sources alone show. `tests/python/problem_sets.rs` imports tasks with the real one.

use crate::place::Place;

const TASK: &str = "files:\n  - {\"name\": \"submission.py\", \"source\": \"@SUBMISSION@\"}\n  - {\"name\": \"reference.py\", \"source\": \"reference.py\"}\n\
                    lang: \"py\"\ntests:\n  - {\"size\": 4, \"seed\": 1}\n";
const REFERENCE: &str = "import torch\n\n\ndef generate_input(size, seed):\n    return torch.zeros(size)\n\n\ndef ref_kernel(data):\n    return data\n";

#[test]
fn what_is_no_task_is_named_and_nothing_is_written() {
    let place = Place::empty().file("none/readme.md", "");
    place.run("import gpu-mode none").expect(4).says("no task was imported from `none`: there is no `task.yml`");
    place.run("import gpu-mode nowhere").expect(101).says("cannot read `nowhere`");
    assert!(!place.at("gpu-mode").exists());
}

#[test]
fn tasks_that_cannot_be_imported_are_refused_for_their_reasons_without_pytorch() {
    let place = Place::empty()
        .file("set/host/task.yml", &TASK.replace("\"py\"", "\"cu\""))
        .file("set/many/task.yml", &format!("{TASK}multi_gpu: true\n"))
        .file("set/many/reference.py", REFERENCE)
        .file("set/torn/task.yml", "tests: [\n")
        .file("set/bare/task.yml", TASK)
        .file("set/away/task.yml", &TASK.replace("\"source\": \"reference.py\"", "\"source\": \"../../../secret.py\""))
        .file("set/none/task.yml", &TASK.replace("{\"size\": 4, \"seed\": 1}", "").replace("  - \n", ""))
        .file("set/none/reference.py", REFERENCE)
        .file("set/other/task.yml", TASK)
        .file("set/other/reference.py", "def ref_kernel(data):\n    return data\n")
        .file("set/text/task.yml", TASK)
        .file("set/text/reference.py", "import torch\ndef (:\n");
    let said = place.run("import gpu-mode set").expect(4);
    said.says("all 8 that were found are refused")
        .says("`host/task.yml` is refused: is in CUDA C++: its reference and its inputs are host code")
        .says("`many/task.yml` is refused: needs several devices")
        .says("`torn/task.yml` is refused: `task.yml` is malformed: ")
        .says("`bare/task.yml` is refused: names `reference.py`, which is no file")
        .says("names the file `../../../secret.py`, which is neither below the folder nor beside that of the task")
        .says("`none/task.yml` is refused: `task.yml` has neither `tests` nor `benchmarks`")
        .says("`other/task.yml` is refused: `reference.py` defines no function `generate_input`")
        .says("`text/task.yml` is refused: is not Python: invalid syntax (reference.py:2)");
    assert!(!place.at("gpu-mode").exists());
}

#[test]
fn a_task_whose_folder_exists_is_left_as_it_is_and_submissions_of_no_task_are_listed() {
    let place = Place::empty()
        .file("set/scale/task.yml", TASK)
        .file("set/scale/reference.py", REFERENCE)
        .file("set/scale/submission.py", "def custom_kernel(data):\n    return data\n")
        .file("mine/sort.py", "def custom_kernel(data):\n    return data\n")
        .file("gpu-mode/scale/note.txt", "mine");
    let said = place.run("import gpu-mode set --candidates mine").expect(0);
    said.says("`scale/task.yml` is left as it is").says("`sort.py` is left out: it is for none of the tasks");
    let document = place.run("import gpu-mode set/scale/task.yml --format json").expect(0).json();
    let task = &document["tasks"][0];
    assert_eq!((document["set"].as_str(), task["status"].as_str()), (Some("gpu-mode"), Some("exists")));
    assert_eq!((task["name"].as_str(), task["package"].as_str()), (Some("scale"), Some("scale")));
    assert_eq!(place.read("gpu-mode/scale/note.txt"), "mine");
}
