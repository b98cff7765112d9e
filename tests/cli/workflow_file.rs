//! A workflow of GitHub's as its runner reads it: conditions, variables, and the commands of each step, which are executed as the runner would. Knows
//! expressions as far as kforge's own files use them. Does not know what an action does that a step uses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// What names in expressions stand for, as texts. An empty text is false.
pub(crate) type Values = BTreeMap<String, String>;

/// Values from pairs.
pub(crate) fn values(pairs: &[(&str, &str)]) -> Values {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// A text in YAML.
#[track_caller]
pub(crate) fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|e| panic!("{e}:\n{text}"))
}

/// Whether an `if` holds.
pub(crate) fn holds(condition: &str, values: &Values) -> bool {
    let inner = condition.trim().strip_prefix("${{").and_then(|c| c.strip_suffix("}}")).unwrap_or(condition);
    let mut reader = Reader { rest: inner, values };
    let value = reader.either();
    assert!(reader.rest.trim().is_empty(), "`{}` is left of `{condition}`", reader.rest);
    !value.is_empty()
}

/// A text with the values of its expressions.
pub(crate) fn filled(text: &str, values: &Values) -> String {
    let Some((before, rest)) = text.split_once("${{") else { return text.into() };
    let (expression, after) = rest.split_once("}}").expect("an expression ends");
    let value = Reader { rest: expression, values }.either();
    format!("{before}{value}{}", filled(after, values))
}

/// Reads an expression from its start.
struct Reader<'a> {
    rest: &'a str,
    values: &'a Values,
}

impl Reader<'_> {
    fn takes(&mut self, sign: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn either(&mut self) -> String {
        let mut value = self.both();
        while self.takes("||") {
            let other = self.both();
            value = if value.is_empty() { other } else { value };
        }
        value
    }

    fn both(&mut self) -> String {
        let mut value = self.comparison();
        while self.takes("&&") {
            let other = self.comparison();
            value = if value.is_empty() { value } else { other };
        }
        value
    }

    fn comparison(&mut self) -> String {
        let value = self.single();
        let text = |holds: bool| if holds { "true".to_string() } else { String::new() };
        if self.takes("==") {
            text(value == self.single())
        } else if self.takes("!=") {
            text(value != self.single())
        } else {
            value
        }
    }

    fn single(&mut self) -> String {
        if self.takes("!") {
            return if self.single().is_empty() { "true".into() } else { String::new() };
        }
        if self.takes("(") {
            let value = self.either();
            assert!(self.takes(")"), "`)` is missing before `{}`", self.rest);
            return value;
        }
        if self.takes("'") {
            let (text, rest) = self.rest.split_once('\'').expect("a text ends");
            self.rest = rest;
            return text.into();
        }
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"_-.".contains(c)).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        self.rest = rest;
        if self.takes("()") {
            assert_eq!(name, "cancelled", "a function that this test does not know");
            return String::new();
        }
        self.values.get(name).unwrap_or_else(|| panic!("no value for `{name}`")).clone()
    }
}

/// Where steps run, and the variables that all of them have.
#[derive(Debug, Clone)]
pub(crate) struct Runner {
    /// The folder of the checkout.
    pub(crate) checkout: PathBuf,
    /// The variables of the machine, such as `PATH` and `HOME`.
    pub(crate) machine: Vec<(String, String)>,
    /// What names in expressions stand for.
    pub(crate) values: Values,
}

impl Runner {
    /// Executes the commands of a step, with the `env` of these tables in addition to its own. None if the step has no commands or its `if` does not hold.
    pub(crate) fn run(&self, step: &Value, tables: &[&Value], folder: &str) -> Option<Output> {
        let commands = step["run"].as_str()?;
        if step["if"].as_str().is_some_and(|condition| !holds(condition, &self.values)) {
            return None;
        }
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &filled(commands, &self.values)]);
        command.current_dir(self.checkout.join(folder)).env_clear().stdin(Stdio::null());
        command.envs(self.machine.iter().map(|(name, value)| (name, value)));
        for table in tables.iter().copied().chain([step]) {
            for (name, value) in table["env"].as_object().into_iter().flatten() {
                command.env(name, filled(value.as_str().unwrap(), &self.values));
            }
        }
        Some(command.output().unwrap())
    }
}

/// Executes git in a folder and returns what it printed.
#[track_caller]
pub(crate) fn git(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]);
    let output = command.args(words).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().into()
}

/// What a process printed.
pub(crate) fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
