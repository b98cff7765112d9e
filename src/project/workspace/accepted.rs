//! Edits a manifest so that a kernel that a template or an agent generated becomes one of the package's own kernels: `source` and a declaration replace
//! `generate`. Works on text only; `edit::check` decides whether the result makes sense.

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

use super::declaration::block;
use super::edit::NotToml;

/// The keys that a declaration sets, in place of everything that the manifest states for them.
const DECLARED: [&str; 7] = ["requires", "tune", "methods", "launch", "flags", "defines", "workspace"];

/// The settings of a search, which are among the tunables.
const SEARCH: [&str; 3] = ["strategy", "budget", "seed"];

/// How a kernel was generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// By an agent: its declaration replaces what the manifest states.
    ByAgent,
    /// By a template: what the manifest states takes precedence over the template's declaration.
    ByTemplate,
}

/// How to change a kernel's table.
#[derive(Debug, Clone, Copy)]
pub struct Accepted<'a> {
    /// The kernel.
    pub kernel: &'a str,
    /// The name of a new kernel and its only target. If given, the new kernel gets the source and the declaration, and the old kernel stays as it is.
    pub anew: Option<(&'a str, &'a str)>,
    /// Path of the source, relative to the package.
    pub source: &'a str,
    /// The kernel's declaration, in the format of a template's `template.toml`.
    pub declaration: &'a str,
    /// How the kernel was generated.
    pub made: Origin,
}

/// Why a kernel cannot become one of the package's own kernels.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AcceptError {
    /// The manifest or the declaration is not TOML.
    #[error(transparent)]
    NotToml(#[from] NotToml),
    /// The kernel does not exist.
    #[error("there is no kernel `{0}`")]
    NoKernel(String),
    /// The kernel's entry is not a table.
    #[error("kernel `{0}` is not a table")]
    NotTable(String),
    /// A kernel with the new name already exists.
    #[error("kernel `{0}` already exists")]
    Exists(String),
    /// The declaration does not have the form of a template's.
    #[error("the declaration is not that of a template")]
    NotTemplate,
}

/// Returns the manifest's text with the kernel's source and declaration in place. Everything else keeps its formatting.
///
/// # Errors
/// One of the texts is not TOML, the kernel does not exist, or the new kernel already exists.
pub fn accepted(manifest: &str, of: &Accepted<'_>) -> Result<String, AcceptError> {
    let parse = |text: &str, what: &'static str| -> Result<DocumentMut, NotToml> {
        text.parse().map_err(|error| NotToml { what, error })
    };
    let mut document = parse(manifest, "the manifest")?;
    let declared = parse(of.declaration, "the declaration")?;
    let missing = || AcceptError::NoKernel(of.kernel.to_string());
    let kernels = document.get_mut("kernel").and_then(Item::as_table_like_mut).ok_or_else(missing)?;
    let own = kernels.get(of.kernel).cloned().ok_or_else(missing)?;
    let table = own.into_table().map_err(|_| AcceptError::NotTable(of.kernel.to_string()))?;
    let table = match of.anew {
        None => rewritten(table, declared, of)?,
        Some((name, target)) => {
            if kernels.contains_key(name) {
                return Err(AcceptError::Exists(name.to_string()));
            }
            let mut table = rewritten(unplaced(table), declared, of)?;
            table.insert("targets", Item::Value(Value::Array(Array::from_iter([target]))));
            table.decor_mut().set_prefix("\n");
            kernels.insert(name, Item::Table(table));
            return Ok(document.to_string());
        }
    };
    if let Some(there) = kernels.get_mut(of.kernel) {
        *there = Item::Table(table);
    }
    Ok(document.to_string())
}

fn rewritten(mut table: Table, mut declared: DocumentMut, of: &Accepted<'_>) -> Result<Table, AcceptError> {
    if of.made == Origin::ByTemplate {
        stated_first(&table, declared.as_table_mut()).ok_or(AcceptError::NotTemplate)?;
    }
    // The settings for generating the kernel give way to the generated source and declaration.
    for key in DECLARED {
        table.remove(key);
    }
    table.remove("generate");
    set(&mut table, "source", Item::Value(Value::from(of.source)));
    for key in DECLARED.into_iter().chain(["std"]) {
        if let Some(item) = declared.remove(key) {
            set(&mut table, key, block(item));
        }
    }
    if of.made == Origin::ByTemplate
        && !table.contains_key("compiler")
        && let Some(item) = declared.remove("compiler")
    {
        table.insert("compiler", item);
    }
    table.set_implicit(false);
    Ok(table)
}

/// Sets a value, which may already exist, and keeps the comments around it.
fn set(table: &mut Table, key: &str, item: Item) {
    match table.get_mut(key) {
        Some(Item::Value(old)) if item.is_value() => {
            let decor = old.decor().clone();
            if let Ok(mut new) = item.into_value() {
                *new.decor_mut() = decor;
                *old = new;
            }
        }
        _ => {
            table.remove(key);
            table.insert(key, item);
        }
    }
}

/// Merges what a manifest states for a kernel into its template's declaration, as `Kernel::generated` does. The manifest takes precedence.
fn stated_first(stated: &Table, declared: &mut Table) -> Option<()> {
    for key in ["requires", "flags"] {
        joined(declared.entry(key), stated.get(key))?;
    }
    for key in ["methods", "defines"] {
        over(declared, stated, key)?;
    }
    if let Some(std) = stated.get("std") {
        declared.insert("std", std.clone());
    }
    let Some(own) = stated.get("tune").and_then(Item::as_table_like) else { return Some(()) };
    let searched = SEARCH.iter().any(|key| own.contains_key(key));
    let tune = declared.entry("tune").or_insert_with(|| Item::Table(Table::new())).as_table_like_mut()?;
    if searched {
        SEARCH.iter().for_each(|key| drop(tune.remove(key)));
    }
    for (name, item) in own.iter() {
        match (name, tune.get_mut(name)) {
            ("where", Some(there)) => append(there, item)?,
            (_, Some(there)) => *there = item.clone(),
            (_, None) => drop(tune.insert(name, item.clone())),
        }
    }
    Some(())
}

/// Appends the stated list to the declared one.
fn joined(declared: toml_edit::Entry<'_>, stated: Option<&Item>) -> Option<()> {
    let Some(stated) = stated else { return Some(()) };
    match declared {
        toml_edit::Entry::Occupied(mut there) => append(there.get_mut(), stated),
        toml_edit::Entry::Vacant(there) => {
            there.insert(stated.clone());
            Some(())
        }
    }
}

fn append(list: &mut Item, more: &Item) -> Option<()> {
    let (list, more) = (list.as_array_mut()?, more.as_array()?);
    more.iter().for_each(|value| list.push(value.clone()));
    Some(())
}

/// Merges the stated table into the declared one. The manifest's entries replace entries of the same name.
fn over(declared: &mut Table, stated: &Table, key: &str) -> Option<()> {
    let Some(own) = stated.get(key).and_then(Item::as_table_like) else { return Some(()) };
    let there: &mut dyn TableLike =
        declared.entry(key).or_insert_with(|| Item::Table(Table::new())).as_table_like_mut()?;
    for (name, item) in own.iter() {
        there.insert(name, item.clone());
    }
    Some(())
}

/// A copy of a table without its position in the document, so that it is printed where it is inserted.
fn unplaced(table: Table) -> Table {
    block(Item::Table(table)).into_table().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use kforge_foundation::base::SourceFile;
    use kforge_types::model::{Manifest, parse};

    const MANIFEST: &str = "# head\n[package]\nname = \"p\" # mine\n\n[targets.cpu]\n[targets.h]\narch = \"sm_90a\"\n\n[agents.a]\ncommand = [\"./a\"]\n\n\
        [operator.o]\ndims = [\"n\"]\ninputs.x = { dtype = \"f32\", shape = [\"n\"] }\noutputs.y = { dtype = \"f32\", shape = [\"n\"] }\n\
        reference = { builtin = \"elementwise\", y = \"x\" }\nshapes.s = { n = 8 }\n\n\
        # of agents\n[kernel.k]\noperator = \"o\" # what\ngenerate = { agent = \"a\" }\nselect.metric = \"hot\"\n\n# the other\n[kernel.other]\noperator = \"o\"\nsource = \"o.cu\" # hand-written\n\
        launch = [{ entry = \"o\", grid = [1], block = [1], args = [] }]\n";

    const DECLARATION: &str = "requires = [\"n % 2 == 0\"]\ntune.BLOCK = [32, 64] # wide\n[[launch]]\nentry = \"k<BLOCK>\"\ngrid = [1]\nblock = [\"BLOCK\"]\nargs = [\"x\", \"y\"]\n\n\
        [methods.\"memory.vectorized_access\"]\noff = { BLOCK = 32 }\n";

    fn read(text: &str) -> Manifest {
        let (manifest, wrong) = parse(&Arc::new(SourceFile { name: "kernel.toml".into(), text: text.into() }));
        assert_eq!(wrong, [], "{text}");
        manifest.unwrap()
    }

    fn of(made: Origin) -> Accepted<'static> {
        Accepted { kernel: "k", anew: None, source: "k.cu", declaration: DECLARATION, made }
    }

    #[test]
    fn what_an_agent_declared_takes_the_place_of_the_agent_and_all_else_stays() {
        let text = accepted(MANIFEST, &of(Origin::ByAgent)).unwrap();
        let manifest = read(&text);
        let kernel = &manifest.kernels[0];
        assert_eq!((kernel.source.as_str(), kernel.rounds.is_none(), kernel.launches.len()), ("k.cu", true, 1));
        assert_eq!((kernel.tune[0].1.len(), kernel.methods.len(), kernel.requires.len()), (2, 1, 1));
        for kept in [
            "# head\n",
            "name = \"p\" # mine",
            "# of agents\n[kernel.k]\noperator = \"o\" # what\n",
            "select.metric = \"hot\"",
        ] {
            assert!(text.contains(kept), "{kept} in {text}");
        }
        assert!(
            text.contains("\n# the other\n[kernel.other]\noperator = \"o\"\nsource = \"o.cu\" # hand-written\n"),
            "{text}"
        );
        assert!(!text.contains("generate") && text.contains("tune.BLOCK = [32, 64] # wide"), "{text}");
        assert!(text.find("[[kernel.k.launch]]").unwrap() < text.find("# the other").unwrap(), "{text}");
        assert_eq!(accepted(&text, &of(Origin::ByAgent)).unwrap(), text, "it is so already");
    }

    #[test]
    fn a_kernel_of_its_own_leaves_the_first_as_it_is() {
        let own = Accepted { anew: Some(("fast", "h")), source: "fast.cu", ..of(Origin::ByAgent) };
        let text = accepted(MANIFEST, &own).unwrap();
        let manifest = read(&text);
        let [k, fast] = ["k", "fast"].map(|name| manifest.kernels.iter().find(|k| k.name == name).unwrap());
        assert!(k.rounds.is_some() && fast.rounds.is_none() && text.contains("generate = { agent = \"a\" }"), "{text}");
        assert_eq!((fast.targets.as_slice(), fast.source.as_str()), (&["h".to_string()][..], "fast.cu"));
        let twice = accepted(&text, &own).unwrap_err().to_string();
        assert_eq!(twice, "kernel `fast` already exists");
    }

    #[test]
    fn what_the_manifest_states_goes_before_what_a_template_declares() {
        let stated = "generate = { template = \"t\" }\nrequires = [\"n > 2\"]\nmethods.\"memory.vectorized_access\" = { off = { BLOCK = 64 } }\ntune = { BLOCK = [64], where = [\"BLOCK > 1\"] }";
        let manifest = MANIFEST.replace("generate = { agent = \"a\" }", stated);
        let declaration = DECLARATION.replace(
            "tune.BLOCK = [32, 64] # wide",
            "tune.BLOCK = [32, 64]\ntune.V = [1]\ntune.where = [\"BLOCK < 99\"]",
        );
        let text = accepted(&manifest, &Accepted { declaration: &declaration, ..of(Origin::ByTemplate) }).unwrap();
        let kernel = read(&text).kernels[0].clone();
        assert_eq!(
            kernel.tune.iter().map(|(name, of)| (name.as_str(), of.len())).collect::<Vec<_>>(),
            [("BLOCK", 1), ("V", 1)]
        );
        assert_eq!((kernel.requires.len(), kernel.conditions.len(), kernel.methods.len()), (2, 2, 1), "{text}");
        assert!(text.contains("off = { BLOCK = 64 }"), "{text}");
    }

    #[test]
    fn what_cannot_be_is_said() {
        let error =
            |text: &str, kernel| accepted(text, &Accepted { kernel, ..of(Origin::ByAgent) }).unwrap_err().to_string();
        assert_eq!(error(MANIFEST, "none"), "there is no kernel `none`");
        assert!(error("[", "k").starts_with("the manifest is not TOML"));
    }
}
