//! What may stand before `::` in a source: namespaces and classes that CUDA's own headers declare, and every class and alias of the tree, wherever it stands.
//! Whether a header that is absent can declare others.

use std::collections::BTreeSet;

use super::include::includes;
use super::macros::Macros;
use super::needs::is_standard;
use super::part::is_keyword;
use super::tokens::Token;
use super::{File, SourceTree};

/// Namespaces that device code can use without a header of the package.
pub(super) const KNOWN: [&str; 10] =
    ["std", "cuda", "cooperative_groups", "nvcuda", "cub", "thrust", "nv", "cutlass", "cute", "cg"];

/// Namespaces and classes in these that a source can name without them, after `using namespace`.
const NESTED: [&str; 22] = [
    "wmma",
    "experimental",
    "precision",
    "chrono",
    "literals",
    "numbers",
    "ranges",
    "views",
    "placeholders",
    "execution",
    "ptx",
    "device",
    "mr",
    "thread_group",
    "thread_block",
    "thread_block_tile",
    "grid_group",
    "cluster_group",
    "coalesced_group",
    "numeric_limits",
    "char_traits",
    "ios_base",
];

/// How the names of headers of CUDA's toolkit begin. These declare the known namespaces only.
const TOOLKIT: [&str; 21] = [
    "cuda.h",
    "cuda_",
    "cuda/",
    "cub/",
    "thrust/",
    "nv/",
    "crt/",
    "cooperative_groups",
    "mma.h",
    "curand",
    "cublas",
    "cufft",
    "cusparse",
    "cusolver",
    "device_",
    "math_",
    "host_",
    "vector_",
    "sm_",
    "texture_",
    "surface_",
];

/// Whether CUDA's own headers declare a namespace or a class of that name.
pub(super) fn is_known(name: &str) -> bool {
    KNOWN.contains(&name) || NESTED.contains(&name)
}

/// The names of classes, enumerations, namespaces and aliases in all files and in bodies of macros, wherever they stand.
pub(super) fn declared_anywhere(files: &[File], macros: &Macros) -> BTreeSet<String> {
    let bodies = macros.all.values().flat_map(|m| &m.definitions).map(|m| &m.body[..]);
    let mut all = BTreeSet::new();
    for text in files.iter().map(|file| &file.tokens[..]).chain(bodies) {
        for (at, token) in text.iter().enumerate() {
            match token.text.as_str() {
                "struct" | "class" | "union" | "enum" | "namespace" | "typename" => all.extend(tag(text, at + 1)),
                "using" => all.extend(alias(text, at + 1)),
                "typedef" => all.extend(typedef(text, at + 1)),
                _ => {}
            }
        }
    }
    all
}

/// The words that follow `struct` and the like, before a body, bases or arguments.
fn tag(text: &[Token], from: usize) -> impl Iterator<Item = String> {
    if from > 1 && text[from - 2].is("using") {
        // `using namespace at;`
        return names(&[]);
    }
    let end = |t: &&Token| !["{", ";", ":", "=", "<", ">", ","].iter().any(|end| t.is(end));
    let count = text[from..].iter().take(24).take_while(end).count();
    let words = &text[from..from + count];
    // `struct at::A x;` declares nothing before its last word.
    let last = words.iter().rposition(|t| t.is("::")).map_or(0, |at| at + 1);
    names(&words[last..])
}

fn alias(text: &[Token], from: usize) -> impl Iterator<Item = String> {
    let count = text[from..].iter().take(64).take_while(|t| !t.is("=") && !t.is(";")).count();
    let words = &text[from..from + count];
    if words.first().is_some_and(|t| t.is("namespace")) {
        return names(&[]);
    }
    names(&words[words.iter().rposition(|t| t.is("::")).map_or(0, |at| at + 1)..])
}

/// The words of a `typedef` that stand directly before `;`, `,` or a bracket.
fn typedef(text: &[Token], from: usize) -> impl Iterator<Item = String> {
    let mut depth = 0_i32;
    let mut found = vec![];
    for pair in text[from..].windows(2) {
        match pair[0].text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            ";" if depth <= 0 => break,
            _ => {}
        }
        if depth <= 0 && pair[0].is_word() && [";", ",", "[", ")"].iter().any(|end| pair[1].is(end)) {
            found.push(pair[0].clone());
        }
    }
    names(&found)
}

fn names(words: &[Token]) -> std::vec::IntoIter<String> {
    let of = |t: &&Token| t.is_word() && !is_keyword(&t.text);
    words.iter().filter(of).map(|t| t.text.clone()).collect::<Vec<_>>().into_iter()
}

/// Whether a header that no file of the tree is may declare a namespace: it is none of C++, POSIX or CUDA's toolkit.
pub(super) fn lacks_library(files: &[File], tree: &SourceTree<'_>) -> bool {
    let may = |name: &str| !is_standard(name) && !TOOLKIT.iter().any(|start| name.starts_with(start));
    files.iter().any(|file| {
        includes(file).any(|(_, include)| include.resolve(&file.name, tree).is_none() && may(&include.name))
    })
}
