//! Where in a request a place of its manifest comes from. The manifest of a candidate of an operator was written by the server, so its lines say nothing to the
//! client. Pure.

use toml_edit::{Document, Item, TableLike, Value};

use super::files::{CANDIDATE, OPERATOR};
use crate::api::MessageResult;

/// A part of the path of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Key(String),
    At(usize),
}

/// The fields of a request by the places of the manifest that was made from it.
pub(super) struct Fields {
    manifest: Document<String>,
}

impl Fields {
    /// Of a manifest; none if it is no TOML.
    pub(super) fn of(manifest: String) -> Option<Fields> {
        Document::parse(manifest).ok().map(|manifest| Fields { manifest })
    }

    /// Puts the field in the place of line and column of the manifest.
    pub(super) fn name(&self, message: &mut MessageResult, manifest: &str) {
        if message.file.as_deref() != Some(manifest) {
            return;
        }
        let (line, column) = (message.line.take().unwrap_or(1), message.column.take());
        message.field = Some(self.at(line, column.unwrap_or(1)));
        message.file = None;
    }

    /// The field of a line and a column, which count from one.
    fn at(&self, line: u32, column: u32) -> String {
        let text = self.manifest.raw();
        let lines = text.split_inclusive('\n');
        let (before, own) = lines.enumerate().fold((0, ""), |(before, own), (at, text)| match at + 1 {
            n if n < line as usize => (before + text.len(), own),
            n if n == line as usize => (before, text),
            _ => (before, own),
        });
        let within: usize = own.chars().take(column.saturating_sub(1) as usize).map(char::len_utf8).sum();
        let mut path = vec![];
        walk(self.manifest.as_table(), before + within, &mut path);
        of_request(&path)
    }
}

/// Follows the keys whose text or value is at a place.
fn walk(table: &dyn TableLike, at: usize, path: &mut Vec<Part>) {
    let has = |span: Option<std::ops::Range<usize>>| span.is_some_and(|span| span.contains(&at));
    for (name, item) in table.iter() {
        let key = table.key(name).and_then(toml_edit::Key::span);
        if !has(key) && !has(item.span()) {
            continue;
        }
        path.push(Part::Key(name.to_string()));
        match item {
            Item::Value(value) => walk_value(value, at, path),
            Item::Table(table) => walk(table, at, path),
            _ => {}
        }
        return;
    }
}

fn walk_value(value: &Value, at: usize, path: &mut Vec<Part>) {
    match value {
        Value::InlineTable(table) => walk(table, at, path),
        Value::Array(list) => {
            let is_at = |value: &&Value| value.span().is_some_and(|span| span.contains(&at));
            if let Some((number, value)) = list.iter().enumerate().find(|(_, value)| is_at(value)) {
                path.push(Part::At(number));
                walk_value(value, at, path);
            }
        }
        _ => {}
    }
}

/// The path of a request's field for that of a manifest's value.
fn of_request(path: &[Part]) -> String {
    let keys: Vec<&str> = path
        .iter()
        .map_while(|part| match part {
            Part::Key(key) => Some(key.as_str()),
            Part::At(_) => None,
        })
        .collect();
    let (place, rest) = match keys.as_slice() {
        ["operator", OPERATOR, ..] => ("candidate.operator.operator", 2),
        ["operator"] => ("candidate.operator.operator", 1),
        ["kernel", CANDIDATE, "launch" | "source" | "language", ..] => ("candidate.operator", 2),
        ["kernel", CANDIDATE, _, ..] => ("candidate.operator.kernel", 2),
        ["toolchain", ..] => ("candidate.operator", 0),
        ["targets", _, "device", ..] => return "device".into(),
        ["targets", ..] => return "target".into(),
        _ => return "candidate.operator".into(),
    };
    let mut out = place.to_string();
    for part in &path[rest..] {
        match part {
            Part::Key(key) => out.push_str(&format!(".{key}")),
            Part::At(number) => out.push_str(&format!("[{number}]")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::EvaluationRequest;
    use crate::service::files::Files;
    use serde_json::json;

    #[test]
    fn each_place_of_a_manifest_has_the_field_that_it_was_made_from() {
        let request: EvaluationRequest = serde_json::from_value(json!({
            "candidate": { "operator": {
                "operator": { "dims": ["n"], "inputs": { "x": { "dtype": "f33", "shape": ["é", "n"] } }, "tolerance": { "atol": 7 } },
                "source": "text", "entry": "k", "launch": [{ "memset": "x" }, { "grid": ["gg"], "args": ["x"] }],
                "kernel": { "std": "c++99" }, "toolchain": { "cuda": "0.1" },
            } },
            "target": "sm_1", "device": "Odd",
        }))
        .unwrap();
        let manifest = Files::of(&request).unwrap().manifest().to_string();
        let fields = Fields::of(manifest.clone()).unwrap();
        for (text, field) in [
            ("\"f33\"", "candidate.operator.operator.inputs.x.dtype"),
            ("\"n\"] }", "candidate.operator.operator.inputs.x.shape[1]"),
            ("\"tolerance\"", "candidate.operator.operator.tolerance"),
            ("\"gg\"", "candidate.operator.launch[1].grid[0]"),
            ("\"c++99\"", "candidate.operator.kernel.std"),
            ("\"0.1\"", "candidate.operator.toolchain.cuda"),
            ("\"sm_1\"", "target"),
            ("\"Odd\"", "device"),
            ("\"kernel\"", "candidate.operator"),
            ("\"package\"", "candidate.operator"),
        ] {
            let before = &manifest[..manifest.find(text).unwrap_or_else(|| panic!("{text}: {manifest}"))];
            let line = before.matches('\n').count() as u32 + 1;
            let column = before.rsplit('\n').next().unwrap().chars().count() as u32 + 1;
            assert_eq!(fields.at(line, column), field, "{text}: {manifest}");
        }
        assert_eq!(fields.at(99, 1), "candidate.operator", "beyond its end");
    }
}
