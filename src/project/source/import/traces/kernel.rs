//! The tables of a kernel that travels in a solution: from the manifest of a package to a text for the dataset, and back. Knows manifests as text; the rest of
//! kforge decides whether they are sound.

use toml_edit::{DocumentMut, Item, Table, Value};

/// The keys of a kernel that travel. A dataset must neither run a command nor name files of this machine.
const KEYS: [&str; 13] = [
    "language",
    "source",
    "launch",
    "call",
    "tune",
    "requires",
    "workspace",
    "constants",
    "specialize",
    "defines",
    "flags",
    "std",
    "compiler",
];
/// The keys of a kernel whose meaning depends on more than its files.
const BOUND: [&str; 3] = ["include", "host", "generate"];

/// The tables of a kernel of a manifest, as a text in which its operator is not named; none if it has no source of its own, or depends on more
/// than its files. `fixed` are the values that its
/// tunables have in the solution.
pub fn kernel_text(manifest: &str, kernel: &str, fixed: &[(String, String)]) -> Option<String> {
    let document: DocumentMut = manifest.parse().ok()?;
    let table = document.get("kernel")?.get(kernel)?.as_table_like()?;
    table.get("source")?.as_str()?;
    if BOUND.iter().any(|key| table.contains_key(key)) {
        return None;
    }
    let mut kept = Table::new();
    for (key, item) in table.iter().filter(|(key, _)| KEYS.contains(key)) {
        kept.insert(key, item.clone());
    }
    if let Some(tune) = kept.get_mut("tune").and_then(Item::as_table_like_mut) {
        for (name, value) in fixed {
            let parsed: Value = value.parse().unwrap_or_else(|_| Value::from(value.as_str()));
            tune.insert(name, Item::Value(Value::Array([parsed].into_iter().collect())));
        }
    }
    let mut out = DocumentMut::new();
    let mut outer = Table::new();
    outer.set_implicit(true);
    outer.insert("solution", Item::Table(kept));
    out.insert("kernel", Item::Table(outer));
    Some(out.to_string())
}

/// The tables of a kernel under a name, with its source in a folder.
pub(super) fn table(text: &str, name: &str, operator: &str, folder: &str) -> Result<String, String> {
    let document: DocumentMut = text.parse().map_err(|_| "has tables of a kernel that are no TOML".to_string())?;
    let kernel = document.get("kernel").and_then(|kernels| kernels.get("solution")).and_then(Item::as_table_like);
    let kernel = kernel.ok_or_else(|| "has no table `kernel.solution`".to_string())?;
    if let Some((other, _)) = kernel.iter().find(|(key, _)| !KEYS.contains(key)) {
        return Err(format!("has the key `{other}`, which does not travel with a kernel"));
    }
    let source = kernel.get("source").and_then(Item::as_str).ok_or_else(|| "names no source".to_string())?;
    if source.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(format!("names the source `{source}`, which is no path inside of the solution"));
    }
    let mut kept = Table::new();
    kept.insert("operator", toml_edit::value(operator));
    for (key, item) in kernel.iter() {
        kept.insert(key, item.clone());
    }
    kept.insert("source", toml_edit::value(format!("{folder}/{source}")));
    let mut out = DocumentMut::new();
    let mut outer = Table::new();
    outer.set_implicit(true);
    outer.insert(name, Item::Table(kept));
    out.insert("kernel", Item::Table(outer));
    Ok(format!("\n{}", out.to_string().trim_start()))
}
