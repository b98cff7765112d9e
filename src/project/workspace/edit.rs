//! Adds entries to a manifest's text and removes entries from it, keeping its formatting. Knows where each kind of entry belongs; [`check`] decides whether the
//! result makes sense.

use std::path::Path;
use std::sync::Arc;

use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::find::MANIFEST;
use kforge_foundation::base::{Diagnostic, Severity, SourceFile};
use kforge_types::model;

/// A kind of entry in a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestEntry {
    /// `[targets.NAME]`.
    Target,
    /// `[operator.OPERATOR.shapes] NAME`.
    Shape,
    /// `[dependencies] NAME`.
    Dependency,
    /// `[kernel.NAME]`.
    Kernel,
    /// `[operator.NAME]`.
    Operator,
}

impl ManifestEntry {
    /// The word for this kind of entry in messages.
    pub fn word(self) -> &'static str {
        match self {
            ManifestEntry::Target => "target",
            ManifestEntry::Shape => "shape",
            ManifestEntry::Dependency => "dependency",
            ManifestEntry::Kernel => "kernel",
            ManifestEntry::Operator => "operator",
        }
    }

    /// The path of tables that contain the entry, and the entry's key in the last one.
    fn path(self, name: &str) -> Result<(Vec<&str>, &str), EditError> {
        Ok(match self {
            ManifestEntry::Target => (vec!["targets"], name),
            ManifestEntry::Dependency => (vec!["dependencies"], name),
            ManifestEntry::Kernel => (vec!["kernel"], name),
            ManifestEntry::Operator => (vec!["operator"], name),
            ManifestEntry::Shape => {
                let (operator, shape) = name
                    .split_once('.')
                    .filter(|(o, s)| !o.is_empty() && !s.is_empty())
                    .ok_or_else(|| EditError::NotShape(name.to_string()))?;
                (vec!["operator", operator, "shapes"], shape)
            }
        })
    }

    /// Whether the entry is one line rather than a table with a header.
    fn inline(self) -> bool {
        matches!(self, ManifestEntry::Shape | ManifestEntry::Dependency)
    }
}

/// A text that is not TOML.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what} is not TOML: {}", .error.message())]
pub struct NotToml {
    /// Which text.
    pub what: &'static str,
    /// What is wrong with it.
    pub error: toml_edit::TomlError,
}

/// Why a manifest cannot be edited.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EditError {
    /// It is not TOML.
    #[error(transparent)]
    NotToml(#[from] NotToml),
    /// A name does not have the form of a shape's.
    #[error("`{0}` does not name a shape: expected OPERATOR.SHAPE")]
    NotShape(String),
    /// The operator does not exist.
    #[error("there is no operator `{0}`")]
    NoOperator(String),
    /// The entry already exists.
    #[error("{} `{name}` already exists", .thing.word())]
    Exists {
        /// Its kind.
        thing: ManifestEntry,
        /// Its name.
        name: String,
    },
    /// The entry does not exist.
    #[error("there is no {} `{name}`", .thing.word())]
    NotThere {
        /// Its kind.
        thing: ManifestEntry,
        /// Its name.
        name: String,
        /// The entries of this kind that exist.
        there: Vec<String>,
    },
    /// A value that must be a table is not one.
    #[error("`{0}` is not a table")]
    NotTable(String),
    /// A field does not have the form `KEY=VALUE`.
    #[error("`{0}` is not a field: expected KEY=VALUE")]
    NotField(String),
    /// A key is given more than once.
    #[error("`{0}` is given twice")]
    Repeated(String),
}

/// Returns the text with an entry of that name added. Each field is `KEY=VALUE`: the key may be dotted; the value is TOML, or a string if it does not parse as
/// TOML.
///
/// # Errors
/// The text is not TOML, the entry already exists, or a field is malformed.
pub fn add(text: &str, thing: ManifestEntry, name: &str, fields: &[String]) -> Result<String, EditError> {
    let mut document = parse(text)?;
    let (path, key) = thing.path(name)?;
    if thing == ManifestEntry::Shape && lookup(document.as_table(), &path[..2]).is_none() {
        return Err(EditError::NoOperator(path[1].to_string()));
    }
    let parent = descend(document.as_table_mut(), &path)?;
    if parent.contains_key(key) {
        return Err(EditError::Exists { thing, name: name.to_string() });
    }
    if thing.inline() {
        let mut table = InlineTable::new();
        for field in fields {
            set(&mut table, field, true)?;
        }
        table.fmt();
        parent.insert(key, Item::Value(Value::InlineTable(table)));
    } else {
        let mut table = Table::new();
        for field in fields {
            set(&mut table, field, false)?;
        }
        parent.insert(key, Item::Table(table));
    }
    Ok(document.to_string())
}

/// Returns the text without the entry of that name.
///
/// # Errors
/// The text is not TOML, or the entry does not exist.
pub fn remove(text: &str, thing: ManifestEntry, name: &str) -> Result<String, EditError> {
    let mut document = parse(text)?;
    let (path, key) = thing.path(name)?;
    let there: Vec<String> = lookup(document.as_table(), &path)
        .map(|table| table.iter().map(|(name, _)| name.to_string()).collect())
        .unwrap_or_default();
    if !there.iter().any(|n| n == key) {
        let prefix = if thing == ManifestEntry::Shape { format!("{}.", path[1]) } else { String::new() };
        let there = there.iter().map(|n| format!("{prefix}{n}")).collect();
        return Err(EditError::NotThere { thing, name: name.to_string(), there });
    }
    let parent = descend(document.as_table_mut(), &path)?;
    parent.remove(key);
    let empty = parent.is_empty();
    // An empty table is removed. The empty table of an operator's shapes stays, because an operator without shapes is an error that the user should see.
    if empty && path.len() == 1 {
        document.as_table_mut().remove(path[0]);
    }
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, EditError> {
    text.parse().map_err(|error| EditError::NotToml(NotToml { what: "the manifest", error }))
}

fn lookup<'t>(root: &'t Table, path: &[&str]) -> Option<&'t dyn TableLike> {
    let mut at: &dyn TableLike = root;
    for part in path {
        at = at.get(part)?.as_table_like()?;
    }
    Some(at)
}

/// The table at a path. Missing tables are created; a created table gets no header unless it holds values.
fn descend<'t>(root: &'t mut Table, path: &[&str]) -> Result<&'t mut dyn TableLike, EditError> {
    let mut at: &mut dyn TableLike = root;
    for part in path {
        let item = at.entry(part).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        at = item.as_table_like_mut().ok_or_else(|| EditError::NotTable(part.to_string()))?;
    }
    Ok(at)
}

/// Sets one `KEY=VALUE`. Dotted keys stay dotted.
fn set(table: &mut dyn TableLike, field: &str, inline: bool) -> Result<(), EditError> {
    let wrong = || EditError::NotField(field.to_string());
    let (key, value) = field.split_once('=').ok_or_else(wrong)?;
    let (key, value) = (key.trim(), value.trim());
    let keys = toml_edit::Key::parse(key).map_err(|_| wrong())?;
    let Some((last, path)) = keys.split_last() else { return Err(wrong()) };
    // A value whose quotes the shell has removed is a string: `arch=sm_90a`.
    let value: Value = value.parse().unwrap_or_else(|_| Value::from(value));
    let mut at = table;
    for part in path {
        let item = at.entry(part.get()).or_insert_with(|| {
            if inline {
                let mut table = InlineTable::new();
                table.set_dotted(true);
                return Item::Value(Value::InlineTable(table));
            }
            let mut table = Table::new();
            table.set_dotted(true);
            Item::Table(table)
        });
        at = item.as_table_like_mut().ok_or_else(wrong)?;
    }
    if at.insert(last.get(), Item::Value(value)).is_some() {
        return Err(EditError::Repeated(key.to_string()));
    }
    Ok(())
}

/// The errors in `text` as the manifest of a package, checked together with the root manifest of its workspace.
pub fn check(manifest: &Path, root: &Path, text: String) -> Vec<Diagnostic> {
    let read = |name: String, text: String| model::parse(&Arc::new(SourceFile { name, text }));
    let (own, mut found) = read(MANIFEST.into(), text);
    let Some(own) = own.filter(|_| !is_wrong(&found)) else { return found };
    let root_manifest = root.join(MANIFEST);
    let root = if own.workspace.is_some() || root_manifest == manifest {
        Some(own.clone()).filter(|m| m.workspace.is_some())
    } else {
        std::fs::read_to_string(&root_manifest).ok().and_then(|text| read(root_manifest.display().to_string(), text).0)
    };
    found.extend(model::inherit(&own, root.as_ref()).1);
    found
}

/// Whether any of the diagnostics is an error.
pub fn is_wrong(found: &[Diagnostic]) -> bool {
    found.iter().any(|d| d.severity == Severity::Error)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# head\n[targets.cpu] # here\n\n[operator.sum.shapes]\nsmall = { n = 4 }   # tiny\n";

    fn added(thing: ManifestEntry, name: &str, fields: &[&str]) -> String {
        let fields: Vec<String> = fields.iter().map(|f| (*f).to_string()).collect();
        add(TEXT, thing, name, &fields).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn what_is_added_stands_with_its_kind_and_the_rest_stays() {
        let text = added(ManifestEntry::Target, "h200", &["arch=sm_90a", "device=\"NVIDIA H200\""]);
        assert!(text.starts_with("# head\n[targets.cpu] # here\n"), "{text}");
        assert!(text.contains("[targets.h200]\narch = \"sm_90a\"\ndevice = \"NVIDIA H200\"\n"), "{text}");
        let text = added(ManifestEntry::Shape, "sum.big", &["n=4096", "role=bench"]);
        assert!(text.ends_with("small = { n = 4 }   # tiny\nbig = { n = 4096, role = \"bench\" }\n"), "{text}");
        let text = added(ManifestEntry::Dependency, "common", &["path=../common", "include=."]);
        assert!(text.contains("[dependencies]\ncommon = { path = \"../common\", include = \".\" }"), "{text}");
        let text =
            added(ManifestEntry::Operator, "max", &["dims=[\"n\"]", "inputs.x={ dtype = \"f32\", shape = [\"n\"] }"]);
        assert!(
            text.contains("[operator.max]\ndims = [\"n\"]\ninputs.x = { dtype = \"f32\", shape = [\"n\"] }"),
            "{text}"
        );
        assert!(!text.contains("[operator]\n"), "{text}");
    }

    #[test]
    fn what_cannot_be_added_is_said() {
        let fail =
            |thing, name: &str, field: &str| add(TEXT, thing, name, &[field.to_string()]).unwrap_err().to_string();
        assert_eq!(fail(ManifestEntry::Target, "cpu", "x=1"), "target `cpu` already exists");
        assert_eq!(
            fail(ManifestEntry::Shape, "small", "n=1"),
            "`small` does not name a shape: expected OPERATOR.SHAPE"
        );
        assert_eq!(fail(ManifestEntry::Shape, "mean.s", "n=1"), "there is no operator `mean`");
        assert_eq!(fail(ManifestEntry::Target, "gpu", "arch"), "`arch` is not a field: expected KEY=VALUE");
    }

    #[test]
    fn what_is_removed_leaves_the_rest_and_what_is_not_there_is_listed() {
        let text = remove(TEXT, ManifestEntry::Target, "cpu").unwrap_or_else(|e| panic!("{e:?}"));
        assert!(!text.contains("targets") && text.contains("small = { n = 4 }   # tiny"), "{text}");
        let text = remove(TEXT, ManifestEntry::Shape, "sum.small").unwrap_or_else(|e| panic!("{e:?}"));
        assert!(text.contains("[operator.sum.shapes]") && !text.contains("small"), "{text}");
        let error = remove(TEXT, ManifestEntry::Shape, "sum.smal").unwrap_err();
        let why = error.to_string();
        let EditError::NotThere { there, .. } = error else { panic!("{why}") };
        assert_eq!((why.as_str(), there), ("there is no shape `sum.smal`", vec!["sum.small".to_string()]));
    }
}
