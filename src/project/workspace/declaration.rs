//! The declaration of a kernel, in the format that templates and agents use: `template.toml`. Works on text only; `model` decides whether a declaration makes
//! sense.

use toml_edit::{DocumentMut, Item, Table};

use kforge_types::model::Kernel;

/// The keys that a kernel's table and a template's declaration share.
const SHARED: [&str; 9] = ["requires", "tune", "methods", "launch", "compiler", "std", "flags", "defines", "workspace"];

/// The declaration of a kernel: the generated one if the kernel was generated, else the one from its manifest, verbatim.
pub fn of(kernel: &Kernel) -> String {
    match kernel.made() {
        Some(made) => made.declaration.to_string(),
        None => stated(&kernel.place.file.text, &kernel.name).unwrap_or_default(),
    }
}

/// The part of a manifest's text that declares a kernel, as a separate document; none if the kernel does not exist.
fn stated(manifest: &str, kernel: &str) -> Option<String> {
    let mut document: DocumentMut = manifest.parse().ok()?;
    let table = document.get_mut("kernel")?.get_mut(kernel)?.as_table_like_mut()?;
    let mut own = Table::new();
    for key in SHARED {
        if let Some(item) = table.remove(key) {
            own.insert(key, block(item));
        }
    }
    let mut out = DocumentMut::new();
    *out.as_table_mut() = own;
    Some(out.to_string().trim().to_string() + "\n")
}

/// Clears the positions of tables, so that they are printed in the order in which they are inserted.
pub(super) fn block(mut item: Item) -> Item {
    fn unplaced(item: &mut Item) {
        match item {
            Item::Table(table) => {
                table.set_position(None);
                table.iter_mut().for_each(|(_, inner)| unplaced(inner));
            }
            Item::ArrayOfTables(tables) => tables.iter_mut().for_each(|table| {
                table.set_position(None);
                table.iter_mut().for_each(|(_, inner)| unplaced(inner));
            }),
            Item::None | Item::Value(_) => {}
        }
    }
    unplaced(&mut item);
    item
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use kforge_foundation::base::SourceFile;
    use kforge_types::model::{Language, Text, parse, parse_template};

    const MANIFEST: &str = "[package]\nname = \"p\"\n\n[operator.o]\ndims = [\"n\"]\ninputs.x = { dtype = \"f32\", shape = [\"n\"] }\noutputs.y = { dtype = \"f32\", shape = [\"n\"] }\n\
        reference = { builtin = \"elementwise\", y = \"x\" }\nshapes.s = { n = 8 }\n\n[kernel.k]\noperator = \"o\"\nsource = \"k.cu\"\nrequires = [\"n % V == 0\"]\n\n[kernel.k.tune]\nV = [1, 4] # width\n\n\
        [[kernel.k.launch]]\nentry = \"k\"\ngrid = [1]\nblock = [32]\nargs = [\"x\", \"y\"]\n\n[kernel.k.methods.\"memory.vectorized_access\"]\noff = { V = 1 }\n\n[kernel.other]\noperator = \"o\"\nsource = \"o.cu\"\n";

    #[test]
    fn what_a_manifest_declares_reads_as_a_templates_declaration() {
        let text = stated(MANIFEST, "k").unwrap();
        assert!(text.contains("V = [1, 4] # width") && !text.contains("operator") && !text.contains("k.cu"), "{text}");
        let file = |name: &str, text: &str| Arc::new(SourceFile { name: name.into(), text: text.into() });
        let (manifest, _) = parse(&file("kernel.toml", MANIFEST));
        let own = &manifest.unwrap().kernels[0];
        let name = Text { value: "k".into(), place: own.place.clone() };
        let (made, wrong) = parse_template(&file("declared", &text), &name, Language::Cuda);
        assert_eq!(wrong, [], "{text}");
        let made = made.unwrap();
        let tunables = |k: &Kernel| k.tune.iter().map(|(n, v)| (n.value.clone(), v.clone())).collect::<Vec<_>>();
        assert_eq!((made.launches.len(), tunables(&made)), (1, tunables(own)));
        assert_eq!(made.methods.iter().map(|m| m.id.as_str()).collect::<Vec<_>>(), ["memory.vectorized_access"]);
        assert_eq!(stated(MANIFEST, "nothing"), None);
    }
}
