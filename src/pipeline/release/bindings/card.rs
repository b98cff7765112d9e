//! The page of a repository of kernels, `README.md`: the front matter by which the Hub knows it, and what the functions are. Knows Markdown; reads nothing.
//!
//! The last line holds a digest of what is before it. So a page that somebody edited is known as theirs, without a record elsewhere.

use std::fmt::Write;

use super::plan::{Function, Plan};
use super::python::{archs, named, version};
use kforge_types::model::Role;
use sha2::{Digest, Sha256};

/// The name of the page.
pub const FILE: &str = "README.md";

/// The beginning of the last line.
const MARK: &str = "<!-- Written by kforge, which keeps this page once you edit it. sha256 of the lines above: ";
const MARK_END: &str = " -->\n";

/// The licences that the Hub knows, among those that are identifiers of SPDX too. Others have a name instead.
const LICENSES: [&str; 15] = [
    "agpl-3.0",
    "apache-2.0",
    "bsd-2-clause",
    "bsd-3-clause",
    "bsl-1.0",
    "cc0-1.0",
    "epl-2.0",
    "gpl-2.0",
    "gpl-3.0",
    "isc",
    "lgpl-2.1",
    "lgpl-3.0",
    "mit",
    "mpl-2.0",
    "unlicense",
];

/// The page.
pub fn card(plan: &Plan) -> String {
    let Plan { package, version: release, root, .. } = plan;
    let mut text = format!("---\nlibrary_name: kernels\n{}---\n\n# {package}\n\n", license(&plan.license));
    let _ = writeln!(
        text,
        "CUDA kernels that [`kernels`](https://pypi.org/project/kernels/) loads, from version {release} of the kforge artifact `{package}`. Its root is\n\
         `sha256:{root}`.\n\n\
         ```python\nfrom kernels import get_kernel\n\n\
         {name} = get_kernel(\"OWNER/REPOSITORY\", version={version})  # or get_local_kernel(Path(\"FOLDER\"))\n```\n",
        name = plan.name,
        version = version(plan),
    );
    let _ = writeln!(text, "| function | takes | gives |\n|---|---|---|");
    for (name, choices) in named(plan) {
        let of = |wanted: &dyn Fn(Role) -> bool| tensors(choices[0], wanted);
        let takes = of(&|role| role != Role::Output);
        let gives = of(&|role| role != Role::Input);
        let _ = writeln!(text, "| `{name}` | {takes} | {gives} |");
    }
    let _ = writeln!(text, "\nThe machine code is for capability {}.\n", archs(plan).join(", "));
    let digest = hex(&text);
    text + MARK + &digest + MARK_END
}

/// Whether a text is a page of [`card()`] that nobody edited.
pub fn is_unedited(text: &str) -> bool {
    let Some((before, rest)) = text.rsplit_once(MARK) else { return false };
    rest.strip_suffix(MARK_END).is_some_and(|digest| digest == hex(before))
}

fn tensors(function: &Function, wanted: &dyn Fn(Role) -> bool) -> String {
    let names = function.tensors.iter().filter(|tensor| wanted(tensor.role)).map(|tensor| format!("`{}`", tensor.name));
    names.collect::<Vec<_>>().join(", ")
}

/// The lines of the front matter about a licence, which is an expression of SPDX.
fn license(expression: &str) -> String {
    let known = expression.to_lowercase();
    let known = known.trim_end_matches("-only").trim_end_matches("-or-later");
    match LICENSES.contains(&known) {
        true => format!("license: {known}\n"),
        false => format!("license: other\nlicense_name: \"{}\"\n", expression.replace(['"', '\\', '\n'], " ")),
    }
}

fn hex(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(license: &str) -> Plan {
        Plan {
            package: "norms".into(),
            name: "norms".into(),
            version: "0.2.0".into(),
            license: license.into(),
            root: "12".into(),
            binaries: vec![],
            entries: vec![],
            functions: vec![],
        }
    }

    #[test]
    fn an_edited_page_is_not_taken_for_an_own_one() {
        let text = card(&plan("MIT"));
        assert!(is_unedited(&text) && text.contains("version=1"));
        for edited in [text.replace("norms", "forms"), format!("{text}\nmore\n"), text.replace(MARK, ""), String::new()]
        {
            assert!(!is_unedited(&edited), "{edited}");
        }
    }

    #[test]
    fn licences_have_the_names_that_the_hub_knows() {
        let front = |license: &str| card(&plan(license)).split("---").nth(1).unwrap().to_string();
        assert_eq!(front("Apache-2.0"), "\nlibrary_name: kernels\nlicense: apache-2.0\n");
        assert_eq!(front("GPL-3.0-or-later"), "\nlibrary_name: kernels\nlicense: gpl-3.0\n");
        let other = "\nlibrary_name: kernels\nlicense: other\nlicense_name: \"MIT OR Apache-2.0\"\n";
        assert_eq!(front("MIT OR Apache-2.0"), other);
    }
}
