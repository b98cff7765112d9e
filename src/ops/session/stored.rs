//! The files that hold values of inputs: whether each has what the operator declares, and their contents. Knows operators and files; reads the headers of files only.

use std::collections::BTreeMap;
use std::path::Path;

use kforge_foundation::base::{Diagnostic, Digest};
use kforge_harness::oracle::stored;
use kforge_types::model::Operator;

use super::sources::Leaf;

/// Adds the files of an operator's shapes. A file is an error if it is missing, or if it does not have what a shape declares under any choice of types.
pub(super) fn add(
    folder: &Path,
    operator: &Operator,
    leaf: &mut Leaf<'_>,
    found: &mut BTreeMap<String, Digest>,
    wrong: &mut Vec<Diagnostic>,
) {
    for shape in operator.shapes.iter().filter(|shape| !shape.stored.is_empty()) {
        for (name, of) in &shape.stored {
            let file = of.file.as_str();
            let error = |message: String| {
                let message = format!("`{name}` of shape `{}`: `{file}` {message}", shape.name);
                of.file.place.error("package.stored", message)
            };
            match leaf.digest(&folder.join(file)) {
                Ok(Some(digest)) => drop(found.insert(file.to_string(), digest)),
                Ok(None) => {
                    wrong.push(error("does not exist".into()).expected("a file of the package"));
                    continue;
                }
                Err(e) => {
                    wrong.push(error(format!("cannot be read: {e}")));
                    continue;
                }
            }
            // What cannot be bound is an error where the shape is selected.
            let problems = operator.choices().into_iter().filter_map(|choice| operator.bind(&choice, shape).ok());
            let checked = problems.filter_map(|problem| {
                let tensor = problem.tensor(name)?;
                stored::check(&folder.join(file), &of.key, tensor).err()
            });
            wrong.extend(checked.take(1).map(|why| error(why.to_string())));
        }
    }
}
