//! Reads task files with Python's own parser, in a process that gets their texts and runs nothing of them.

use std::collections::BTreeMap;

use super::files::TaskFile;
use crate::import::python::parsed;
use crate::{Error, Session};
use kforge_project::source::import::tasks::{Refusal, TaskSource};

/// `ast` of the interpreter; see its head.
const READER: &str = include_str!("../task_reader.py");

/// What the sources say, by path.
///
/// # Errors
/// There is no Python, or it does not answer.
pub(super) fn read(session: &Session, files: &[TaskFile]) -> Result<BTreeMap<String, TaskSource>, Error> {
    if files.is_empty() {
        return Ok(BTreeMap::new());
    }
    let texts: BTreeMap<&String, &String> = files.iter().map(|file| (&file.path, &file.text)).collect();
    parsed(session, READER, &texts)
}

/// Why a text is not Python; none if it is.
///
/// # Errors
/// There is no Python, or it does not answer.
pub(super) fn not_python(session: &Session, text: &str) -> Result<Option<Refusal>, Error> {
    let (name, text) = (String::from("source.py"), text.to_string());
    let mut found: BTreeMap<String, TaskSource> = parsed(session, READER, &BTreeMap::from([(&name, &text)]))?;
    Ok(match found.remove(&name) {
        Some(TaskSource::Refused { refused }) if refused.kind == "syntax" => Some(refused),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_foundation::process::{Command, run};
    use kforge_project::source::import::tasks::Constant;
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    const TASK: &str = r#"
import torch
from torch import nn
a = 1
b, c = 2, 3
d = e = 4
f = (5,)
g = (6, 7)
N = 1 << 10
DOUBLE = 2 * N
often = 8
often = 9
share = 0.5
named = True
for index in range(3):
    pass


class Model(nn.Module):
    def __init__(self, b, other=c):
        super().__init__()
        self.layer = nn.Linear(DOUBLE, b)

    def forward(self, x):
        d = x.shape[0]
        return self.layer(x) * d


def get_inputs():
    return [torch.rand(a, *f, *g)]


def get_init_inputs():
    return [b]
"#;

    /// What the reader says of a text; none, with a message, if there is no Python.
    fn read(text: &str) -> Option<TaskSource> {
        let Some(python) = ["/usr/bin/python3", "/usr/local/bin/python3"].iter().map(Path::new).find(|p| p.exists())
        else {
            kforge_foundation::base::testing::skipped("there is no Python");
            return None;
        };
        let texts = serde_json::to_vec(&BTreeMap::from([("task.py", text)])).unwrap();
        let command = Command::new(python).args(["-I", "-S", "-B", "-c", READER]).stdin(texts);
        let finished = run(&command, None, &AtomicBool::new(false)).unwrap();
        let mut all: BTreeMap<String, TaskSource> = serde_json::from_str(&finished.stdout.text()).unwrap();
        all.remove("task.py")
    }

    #[test]
    fn constants_in_all_spellings_are_read_and_those_that_the_module_reads_are_marked() {
        let Some(TaskSource::Task { constants }) = read(TASK) else { return };
        let shown = |one: &Constant| (one.name.clone(), one.values.clone(), one.tuple, one.used);
        let wanted: Vec<(String, Vec<i64>, bool, bool)> = [
            ("a", vec![1], false, false),
            ("b", vec![2], false, false),
            // A default is read where the class is made.
            ("c", vec![3], false, true),
            ("d", vec![4], false, false),
            ("e", vec![4], false, false),
            ("f", vec![5], true, false),
            ("g", vec![6, 7], true, false),
            // Through `DOUBLE`.
            ("N", vec![1024], false, true),
        ]
        .map(|(name, values, tuple, used)| (name.to_string(), values, tuple, used))
        .to_vec();
        assert_eq!(constants.iter().map(shown).collect::<Vec<_>>(), wanted);
        assert_eq!((constants[0].line, constants[7].line), (4, 9));
    }

    #[test]
    fn what_cannot_be_imported_is_refused_with_its_line_and_other_files_are_passed_over() {
        let refused = |text: &str| match read(text) {
            Some(TaskSource::Refused { refused }) => Some((refused.kind.clone(), refused.line)),
            Some(other) => panic!("{other:?}"),
            None => None,
        };
        let Some(found) = refused(&format!("{TASK}import einops.layers\n")) else { return };
        assert_eq!(found, ("import".to_string(), Some(35)));
        assert_eq!(refused("class (:\n"), Some(("syntax".to_string(), Some(1))));
        assert_eq!(refused(&"(".repeat(100_000)).map(|found| found.0), Some("syntax".to_string()));
        // What the file can do without.
        let guarded = format!("{TASK}try:\n    import triton\nexcept ImportError:\n    pass\n");
        assert!(matches!(read(&guarded), Some(TaskSource::Task { .. })));
        assert_eq!(
            read("x = 1\n"),
            Some(TaskSource::Other { other: ["Model", "get_inputs", "get_init_inputs"].map(String::from).to_vec() })
        );
    }
}
