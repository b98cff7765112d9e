//! What `task.yml` says. Keys that are not read are passed over.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What stands for the submission among the files of a task.
const SUBMISSION: &str = "@SUBMISSION@";

/// A `task.yml`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct TaskYaml {
    /// The files of the evaluation.
    pub files: Option<Vec<FileEntry>>,
    /// `py` or `cu`.
    pub lang: Option<String>,
    /// How it is evaluated.
    pub config: Option<TaskConfig>,
    /// The cases that are compared.
    pub tests: Option<Vec<BTreeMap<String, Option<CaseValue>>>>,
    /// The cases that are timed.
    pub benchmarks: Option<Vec<BTreeMap<String, Option<CaseValue>>>>,
    /// How times of benchmarks become one number: `last`, `mean` or `geom`.
    #[serde(alias = "ranked_by")]
    pub ranking_by: Option<String>,
    /// Whether it needs several devices.
    pub multi_gpu: Option<bool>,
}

/// A file of the evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FileEntry {
    /// Its name where it is evaluated.
    pub name: String,
    /// Where it is, from the folder of the task.
    pub source: String,
}

/// How a task is evaluated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct TaskConfig {
    /// The program that evaluates it.
    pub main: Option<String>,
}

/// A value of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the kinds of YAML")]
pub enum CaseValue {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<CaseValue>),
}

impl TaskYaml {
    /// The files that its reference may import: those in Python, except the submission and the program that evaluates it.
    pub fn sources(&self) -> impl Iterator<Item = &FileEntry> {
        let main = self.config.as_ref().and_then(|config| config.main.as_deref());
        let is_source = move |file: &&FileEntry| {
            file.source != SUBMISSION && Some(file.name.as_str()) != main && file.name.ends_with(".py")
        };
        self.files.iter().flatten().filter(is_source)
    }

    /// The cases with their names: `test_0`, `benchmark_0`. Those that are timed come last.
    pub(super) fn cases(&self) -> impl Iterator<Item = (String, bool, &BTreeMap<String, Option<CaseValue>>)> {
        let of = |kind: &'static str, is_timed: bool| move |(at, case)| (format!("{kind}_{at}"), is_timed, case);
        let tests = self.tests.iter().flatten().enumerate().map(of("test", false));
        tests.chain(self.benchmarks.iter().flatten().enumerate().map(of("benchmark", true)))
    }
}
