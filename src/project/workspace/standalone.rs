//! A member's manifest as one that needs no workspace: what it inherits is written in its place, and dependencies that are folders lie below it. Knows where
//! `workspace = true` may stand; checks nothing and copies nothing.

use toml_edit::{DocumentMut, Item, TableLike, TomlError};

/// The key with which a value is inherited, and the table of the root.
const WORKSPACE: &str = "workspace";

/// The folder, beside a manifest of its own, with the folders that are dependencies.
pub const DEPENDENCIES: &str = "dependencies";

/// The text of `member` with everything that it inherits from `root`, and without a `[workspace]` of its own. A dependency that is a folder becomes
/// [`DEPENDENCIES`]`/NAME`, as if it were included whole. Formatting and comments stay.
///
/// # Errors
/// One of the texts is not TOML.
pub fn standalone(member: &str, root: &str) -> Result<String, TomlError> {
    let mut document: DocumentMut = member.parse()?;
    let root: DocumentMut = root.parse()?;
    let empty = toml_edit::Table::new();
    let shared: &dyn TableLike = root.get(WORKSPACE).and_then(Item::as_table_like).unwrap_or(&empty);
    for (table, names) in
        [("package", Some(&["version", "license", "kforge"][..])), ("targets", None), ("dependencies", None)]
    {
        let from = shared.get(table).and_then(Item::as_table_like);
        let Some(own) = document.get_mut(table).and_then(Item::as_table_like_mut) else { continue };
        let keys: Vec<String> = own.iter().map(|(key, _)| key.to_string()).collect();
        for key in keys.iter().filter(|key| names.is_none_or(|names| names.contains(&key.as_str()))) {
            if let Some(item) = own.get_mut(key) {
                fill(item, from.and_then(|from| from.get(key)));
            }
        }
    }
    if let Some(toolchain) = document.get_mut("toolchain") {
        let from = shared.get("toolchain");
        match is_inherited(toolchain) {
            true => fill(toolchain, from),
            false => {
                let from = from.and_then(Item::as_table_like).and_then(|table| table.get("cuda"));
                if let Some(cuda) = toolchain.as_table_like_mut().and_then(|table| table.get_mut("cuda")) {
                    fill(cuda, from);
                }
            }
        }
    }
    if let Some(own) = document.get_mut("dependencies").and_then(Item::as_table_like_mut) {
        for (name, dependency) in own.iter_mut() {
            let name = name.get().to_string();
            // The folder keeps its include folder: files are named in a compilation by their path from the dependency.
            if let Some(path) = dependency.as_table_like_mut().and_then(|table| table.get_mut("path")) {
                *path = toml_edit::value(format!("{DEPENDENCIES}/{name}"));
            }
        }
    }
    document.remove(WORKSPACE);
    Ok(document.to_string())
}

fn is_inherited(item: &Item) -> bool {
    item.as_table_like().is_some_and(|table| table.contains_key(WORKSPACE))
}

/// Puts the root's value in place of one that is inherited.
fn fill(item: &mut Item, from: Option<&Item>) {
    if let Some(from) = from.filter(|_| is_inherited(item)) {
        *item = from.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_member_inherits_is_written_in_its_place() {
        let root = "[workspace]\nmembers = [\"a\"]\n[workspace.package]\nversion = \"1.2.3\"\nlicense = \"MIT\"\n[workspace.targets.h]\narch = \"sm_90a\"\n\
                    [workspace.toolchain]\ncuda = \"13.0\"\n[workspace.dependencies]\ncccl = { pypi = \"x==1\", include = \"i\" }\n";
        let member = "# A package.\n[package]\nname = \"a\"\nversion.workspace = true\nlicense = { workspace = true }\n[toolchain]\nworkspace = true\n\
                      [targets.h]\nworkspace = true\n[targets.cpu]\n[dependencies]\ncccl.workspace = true\n";
        let alone = standalone(member, root).unwrap();
        let value: toml::Value = toml::from_str(&alone).unwrap();
        let expected: toml::Value = toml::from_str(
            "package = { name = \"a\", version = \"1.2.3\", license = \"MIT\" }\ntoolchain = { cuda = \"13.0\" }\n\
             targets = { h = { arch = \"sm_90a\" }, cpu = {} }\ndependencies = { cccl = { pypi = \"x==1\", include = \"i\" } }",
        )
        .unwrap();
        assert_eq!(value, expected, "{alone}");
        assert!(alone.starts_with("# A package.\n"), "{alone}");
    }

    #[test]
    fn folders_that_are_dependencies_lie_below_the_manifest() {
        let root = "[workspace.dependencies]\ncommon = { path = \"../common\", include = \"include\" }\n";
        let member = "[dependencies]\ncommon.workspace = true\nown = { path = \"own\" }\nwheel = { pypi = \"x==1\" }\n";
        let value: toml::Value = toml::from_str(&standalone(member, root).unwrap()).unwrap();
        let expected = "[dependencies]\ncommon = { path = \"dependencies/common\", include = \"include\" }\nown = { path = \"dependencies/own\" }\nwheel = { pypi = \"x==1\" }";
        assert_eq!(value, toml::from_str::<toml::Value>(expected).unwrap());
    }

    #[test]
    fn a_package_of_its_own_keeps_its_text_and_a_root_loses_its_workspace() {
        let text = "[package]\nname = \"a\" # a comment\n";
        assert_eq!(standalone(text, text).unwrap(), text);
        let root = "[workspace]\nmembers = []\n[workspace.package]\nversion = \"1.0.0\"\n[package]\nname = \"a\"\nversion.workspace = true\n";
        let value: toml::Value = toml::from_str(&standalone(root, root).unwrap()).unwrap();
        assert_eq!(value, toml::from_str::<toml::Value>("[package]\nname = \"a\"\nversion = \"1.0.0\"").unwrap());
    }
}
