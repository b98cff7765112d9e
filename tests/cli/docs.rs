//! The pages in `docs/` are complete and describe nothing that does not exist. `SNAPSHOTS=overwrite` writes `references.md` again.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use kforge::model::Trace;
use kforge::model::expr::functions::FUNCTIONS;
use kforge::reference::{Kind, SettingKind, Use, builtins};
use serde_json::Value;

use crate::place::Place;

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)).unwrap()
}

const INTRODUCTION: &str = r#"# Built-in references

An operator's `reference` says where its expected values come from. The references on this page are built in. Each is computed in 64-bit floats (integers
exactly), so that a kernel is compared with the mathematics and not with another kernel.

```toml
reference = "builtin:softmax"                                        # without settings
reference = { builtin = "matmul", transpose_b = true }               # with settings
reference = { builtin = "matmul", names = { a = "x", c = "y" } }     # where the operator uses other names
reference = { builtin = "matmul", accumulate = true }                # added to what the output held before
```

A *tensor* below is an input, inout or output of the operator, under the name in the table or the one that `names` gives it. A *setting* is a value in the
reference's table, the name of a dim or param there, or a param of the operator that has the setting's name. *Scale* is what the `scaled` part of a tolerance
is relative to. [manifest.md](manifest.md#references) describes references of your own; [adding-an-operator.md](adding-an-operator.md) says how to add a built-in.

With `accumulate = true`, the result of a built-in is added to what its outputs held before, as kernels do that use `+=` or `atomicAdd`. The outputs are
then inouts, drawn like inputs, and their magnitudes are added to the scale. `elementwise` adds where its expression says so: `y = "y + 2 * x"`.

This page is generated from the program, and a test compares the two.
"#;

/// The page of references, generated from the program's own table.
fn references() -> String {
    let mut out = INTRODUCTION.to_string();
    let mut all = builtins().to_vec();
    all.sort_by_key(|b| b.name);
    let links: Vec<String> = all.iter().map(|b| format!("[`{0}`](#{0})", b.name)).collect();
    let _ = writeln!(out, "\n{}", links.join(" "));
    for builtin in all {
        let _ = writeln!(out, "\n## {}\n\n{}", builtin.name, sentence(builtin.doc));
        if builtin.slots.is_empty() {
            let _ = writeln!(out, "\nIts tensors are the operator's own.");
        } else {
            let _ = writeln!(out, "\n| tensor | | dtypes | shape and meaning |\n|---|---|---|---|");
        }
        for slot in builtin.slots {
            let role = match slot.role {
                Use::In => "input",
                Use::Out => "output",
                Use::Inout => "inout",
            };
            let kind = match slot.kind {
                Kind::Any => "any",
                Kind::Float => "floats",
                Kind::Int => "integers",
            };
            let optional = if slot.optional { ", optional" } else { "" };
            let _ = writeln!(out, "| `{}` | {role}{optional} | {kind} | {} |", slot.name, slot.doc);
        }
        if !builtin.settings.is_empty() {
            let _ = writeln!(out, "\n| setting | value | meaning |\n|---|---|---|");
        }
        for setting in builtin.settings {
            let kind = match setting.kind {
                SettingKind::Number => "a number".to_string(),
                SettingKind::Integer => "an integer".into(),
                SettingKind::Flag => "`true` or `false`".into(),
                SettingKind::Integers => "an integer or a list".into(),
                SettingKind::Word(words) => words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", "),
            };
            let required = if setting.required { ", required" } else { "" };
            let _ = writeln!(out, "| `{}` | {kind}{required} | {} |", setting.name, setting.doc);
        }
    }
    out
}

/// Capitalizes a text unless it begins with a formula.
fn sentence(text: &str) -> String {
    let word: String = text.chars().take_while(char::is_ascii_alphabetic).collect();
    let formula = word.len() < 2 && !text.starts_with("a ") || text[word.len()..].starts_with(['(', '[']);
    let mut letters = text.chars();
    let first = letters.next().map(|c| if formula { c } else { c.to_ascii_uppercase() });
    first.into_iter().chain(letters).chain(['.']).collect()
}

#[test]
fn the_page_of_references_is_what_the_program_has() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/references.md");
    snapbox::Assert::new().action_env("SNAPSHOTS").eq(references(), snapbox::Data::read_from(&file, None).raw());
}

const METHODS: &str = r#"# Methods

A method is a named optimisation with a switch. This registry says when each method makes sense and what machine code shows it. A kernel declares the methods
that it has ([manifest.md](manifest.md#methods)); `kforge explain METHOD` prints one with advice on how to write it. [adding-a-method.md](adding-a-method.md)
says how to add one.

* *Priority* orders the methods of an axis; lower is tried first.
* The *trigger* is a ramp over a metric: its strength is 0 on the good side of the first value, and full beyond the second. If a metric was not measured,
  the strength is unknown.
* The *signature* compares the kernel with the method and the kernel without it: opcodes that must occur more often, less often, or at least a number of times.
  Each signature was taken from disassembly and is tested on every architecture that the toolchain compiles for. `WGMMA`, `CP.ASYNC` and `SETMAXREG` are names
  of PTX, which machine code does not have.

The methods, their axes, priorities and most bounds of triggers are those of KernelFlow's registry. Signatures, the bounds over *derived* metrics, and the
descriptions are kforge's own.

This page is generated from the program, and a test compares the two.
"#;

/// The page of methods, generated from the registry.
fn methods() -> String {
    use kforge::optimize::methods::{explain, registry};
    let mut out = METHODS.to_string();
    for axis in kforge::model::Axis::ALL {
        let _ = writeln!(out, "\n## {}", axis.name());
        for entry in registry().of_axis(axis) {
            let _ = writeln!(out, "\n### {}\n\n{}. {}\n", entry.id, entry.title, entry.advice);
            let _ = writeln!(out, "* Priority {}; {}.", entry.priority, explain::architectures(entry));
            let trigger = entry.trigger.as_ref().map_or_else(|| "no metric supports it".into(), explain::trigger);
            let _ = writeln!(out, "* Trigger: {trigger}. Where: {}.", explain::preconditions(entry));
            let _ = writeln!(out, "* Without it: {}", entry.off);
            if let Some(triton) = &entry.triton {
                let _ = writeln!(out, "* In Triton: {triton}");
            }
            let _ = match &entry.signature {
                Trace::Patterns(signature) => {
                    let sign = |s: explain::Sign| format!("{} `{}`", s.words, s.patterns.join("`, `"));
                    let signs: Vec<String> = explain::shown_by(signature).into_iter().map(sign).collect();
                    writeln!(out, "* Shown by {}.", signs.join("; "))
                }
                Trace::Unseen(why) => writeln!(out, "* Shown by nothing in machine code: {why}."),
            };
            if !entry.conflicts.is_empty() {
                let links: Vec<String> =
                    entry.conflicts.iter().map(|c| format!("[`{c}`](#{})", c.replace('.', ""))).collect();
                let _ = writeln!(out, "* Not together with {}.", links.join(", "));
            }
        }
    }
    let _ = writeln!(out, "\n## Metrics\n\n| metric | unit | what it is | `ncu` |\n|---|---|---|---|");
    for metric in kforge::record::metric::METRICS {
        let names: Vec<String> = metric.ncu.iter().map(|(_, n)| format!("`{n}`")).collect();
        let names = if names.is_empty() { "derived".into() } else { names.join(", else ") };
        let _ = writeln!(out, "| `{}` | {} | {} | {names} |", metric.name, metric.unit.symbol(), metric.meaning);
    }
    out
}

#[test]
fn the_page_of_methods_is_the_registry() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/methods.md");
    snapbox::Assert::new().action_env("SNAPSHOTS").eq(methods(), snapbox::Data::read_from(&file, None).raw());
}

/// Every key below a schema, in any table.
fn keys(schema: &Value, out: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get("properties") {
                out.extend(properties.keys().cloned());
            }
            object.values().for_each(|v| keys(v, out));
        }
        Value::Array(items) => items.iter().for_each(|v| keys(v, out)),
        _ => {}
    }
}

#[test]
fn the_page_of_the_manifest_tells_of_every_key() {
    let text = page("manifest.md");
    let mut all = BTreeSet::new();
    keys(&kforge::model::schema(&kforge::reference::names()), &mut all);
    assert!(all.len() > 70, "{all:?}");
    let missing: Vec<&String> = all.iter().filter(|key| !text.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "docs/manifest.md lacks {missing:?}");
}

#[test]
fn the_page_of_the_manifest_lists_every_function_of_expressions() {
    let text = page("manifest.md");
    for function in &FUNCTIONS {
        let numbers = if function.exact { "integers and floats" } else { "floats" };
        let row = format!("| `{}` | {} | {numbers} |", function.name, function.doc);
        assert!(text.contains(&row), "docs/manifest.md lacks {row:?}");
    }
    let rows = text.lines().filter(|line| line.ends_with("floats |")).count();
    assert_eq!(rows, FUNCTIONS.len(), "docs/manifest.md lists functions that do not exist");
}

/// The fenced TOML blocks of a page that are whole manifests.
fn manifests(text: &str) -> Vec<&str> {
    text.split("```toml\n").skip(1).filter_map(|b| b.split("```").next()).filter(|b| b.contains("[package]")).collect()
}

#[test]
fn manifests_on_the_pages_are_right() {
    for (name, least) in [("manifest.md", 1), ("guide.md", 1)] {
        let text = page(name);
        let found = manifests(&text);
        assert!(found.len() >= least, "{name}");
        for manifest in found {
            let place = Place::empty().file("kernel.toml", manifest);
            place.run("metadata").expect(0);
        }
    }
}

#[test]
fn the_guide_names_every_command_setting_and_exit_code() {
    let text = page("guide.md");
    let place = Place::empty();
    let help = place.run("--help").expect(0).out;
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|l| !l.starts_with("Commands:"))
        .skip(1)
        .take_while(|l| l.starts_with("  "))
        .filter(|l| !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next())
        .filter(|w| *w != "help")
        .collect();
    assert!(commands.len() > 20, "{commands:?}");
    let missing: Vec<&&str> = commands.iter().filter(|c| !text.contains(&format!("`kforge {c}"))).collect();
    assert!(missing.is_empty(), "docs/guide.md lacks {missing:?}");
    for key in kforge::config::keys::KEYS {
        assert!(text.contains(&format!("`{}`", key.name)), "docs/guide.md lacks {}", key.name);
        assert!(
            key.default.is_empty() || text.contains(&format!("`{}` | `{}`", key.name, key.default)),
            "{}",
            key.name
        );
    }
    for code in [0, 2, 4, 70, 75, 100, 101, 103, 130] {
        assert!(text.contains(&format!("\n| {code} |")), "docs/guide.md lacks exit code {code}");
    }
}

/// The introductory pages are also read in terminals and in diffs. Tables and screens may be wider.
#[test]
fn prose_is_no_wider_than_a_screen() {
    let pages = [
        "../README.md",
        "../CONTRIBUTING.md",
        "../CHANGELOG.md",
        "design.md",
        "adding-a-language.md",
        "adding-a-method.md",
        "adding-a-step-kind.md",
        "adding-a-template.md",
        "adding-an-operator.md",
        "agents.md",
        "guide.md",
        "manifest.md",
        "stability.md",
    ];
    for name in pages {
        let text = page(name);
        let mut in_block = false;
        for (at, line) in (1..).zip(text.lines()) {
            in_block ^= line.trim_start().starts_with("```");
            let is_prose = !in_block && !line.trim_start().starts_with('|');
            assert!(!is_prose || line.chars().count() <= 160, "docs/{name}:{at} is wider than 160 characters");
        }
    }
}

#[test]
fn the_readme_lists_every_page() {
    let text = page("../README.md");
    let folder = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let missing: Vec<String> = names.filter(|name| !text.contains(&format!("(docs/{name})"))).collect();
    assert!(missing.is_empty(), "README.md lacks {missing:?}");
}

#[test]
fn the_guides_worked_example_goes_as_it_says() {
    let text = page("guide.md");
    let block = |after: &str| {
        let rest = text.split(after).nth(1).unwrap_or_else(|| panic!("{after}"));
        rest.split_once('\n').and_then(|(_, r)| r.split("```").next()).unwrap().to_string()
    };
    let place = Place::empty().file("kernel.toml", &block("```toml")).file("row_sum.cu", &block("```cuda"));
    place.run("build").expect(0).says("row_sum  cpu  pass emulated");
    place.edit("row_sum.cu", "= sum;\n    __syncthreads();\n", "= sum;\n");
    let said = place.run("build").expect(100);
    said.says("of `part`: ")
        .says("at row_sum.cu:6 by thread ")
        .says("at row_sum.cu:8 by thread ")
        .says("with no synchronisation between them");
}

#[test]
fn the_page_of_agents_tells_of_every_key_of_an_answer() {
    let text = page("agents.md");
    for name in ["correction", "diagnosis", "proposal"] {
        let schema = Place::empty().run(&format!("schema {name}")).expect(0).json();
        let keys: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert!(keys.len() > 2 && text.contains(&format!("*{name}*")), "{name}");
        let missing: Vec<_> = keys.into_iter().filter(|key| !text.contains(&format!("`{key}`"))).collect();
        assert!(missing.is_empty(), "docs/agents.md lacks {missing:?} of {name}");
    }
}

#[test]
fn the_page_on_adding_a_kind_of_step_names_files_that_are_there() {
    let page = page("adding-a-step-kind.md");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let quoted =
        page.split('`').skip(1).step_by(2).filter(|text| text.starts_with("src/") || text.starts_with("tests/"));
    // Files of the example are in no branch, and a text with `*` is not a file.
    let named: BTreeSet<&str> = quoted.filter(|text| !text.contains("audit") && !text.contains('*')).collect();
    assert!(named.len() > 5, "{named:?}");
    let missing: Vec<&&str> = named.iter().filter(|file| !root.join(file).exists()).collect();
    assert!(missing.is_empty(), "docs/adding-a-step-kind.md names {missing:?}");
}
