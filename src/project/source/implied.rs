//! Declarations that are used without their names: the C++ library and the language look them up for a type. Specializations of the library's templates
//! (`std::tuple_size<Pair>`, by a structured binding), functions in its namespaces, and `begin`, `end` and `get`.

use std::collections::{BTreeMap, BTreeSet};

use super::Sources;
use super::brackets::{closing, closing_angle};
use super::part::{Part, What, is_keyword};
use super::reach::is_annotation;
use super::spaces::KNOWN;
use super::tokens::{Kind, Token};

/// Functions that the language calls: for a loop over a range, for a structured binding.
const CALLED: [&str; 3] = ["begin", "end", "get"];

/// Templates that only host code looks up.
const HOST_ONLY: [&str; 2] = ["hash", "formatter"];

/// Declarations that are used without their names.
#[derive(Debug, Default)]
pub(super) struct Implied {
    /// By the names that must be used.
    pub(super) by_name: BTreeMap<String, Vec<(usize, usize)>>,
    /// Whatever is used.
    pub(super) always: BTreeSet<(usize, usize)>,
}

impl Sources<'_> {
    /// The declarations that the library or the language may use for a type that an entry uses.
    pub(super) fn implied(&self) -> Implied {
        let known = self.known();
        let mut out = Implied::default();
        let parts = || self.groups.iter().flat_map(|group| &group.parts);
        let primary: BTreeSet<&String> = parts().filter(|p| p.specialized().is_none()).flat_map(|p| &p.names).collect();
        let unknown = self.files.iter().any(|file| file.fragment) || !self.lacks_library;
        for (group, all) in self.groups.iter().enumerate() {
            for (index, part) in all.parts.iter().enumerate() {
                let usable = part.device || part.constexpr || self.all_device || part.header.iter().any(is_annotation);
                let usable = usable || known.may_be_annotated(part);
                let called = part.what == What::Function && CALLED.iter().any(|name| part.names.contains(*name));
                if called && usable {
                    out.always.insert((group, index));
                }
                let about = match part.specialized() {
                    Some(at) => {
                        let declared = part.names.iter().all(|name| primary.contains(name));
                        let host_only = HOST_ONLY.iter().any(|name| part.header[at].is(name));
                        let library = all.range.in_library || is_qualified(part, at);
                        (!host_only && (library || unknown && !declared)).then_some(at)
                    }
                    None => (all.range.in_library && part.what == What::Function && usable).then_some(0),
                };
                let Some(about) = about else { continue };
                let names = types(part, about);
                if names.is_empty() {
                    out.always.insert((group, index));
                }
                names.into_iter().for_each(|name| out.by_name.entry(name).or_default().push((group, index)));
            }
        }
        out
    }
}

/// Whether a namespace of the library stands before a name.
fn is_qualified(part: &Part, at: usize) -> bool {
    let mut at = at;
    let named = |t: &Token| t.is_word() && !is_keyword(&t.text);
    while at > 1 && part.header[at - 1].is("::") && named(&part.header[at - 2]) {
        at -= 2;
    }
    KNOWN.iter().any(|name| part.header[at].is(name)) && part.header.get(at + 1).is_some_and(|t| t.is("::"))
}

/// The types that a header names from a position on, up to the bases of a class. Parameters of templates are none, nor are the names of parameters.
fn types(part: &Part, from: usize) -> BTreeSet<String> {
    let header = &part.header;
    let start = header.iter().position(|t| t.is("template")).filter(|at| *at < 2);
    let list = start.and_then(|at| Some((at + 1, closing_angle(header, at + 1)?)));
    let own: BTreeSet<&str> =
        list.into_iter().flat_map(|(open, close)| &header[open..close]).map(|t| t.text.as_str()).collect();
    let mut names = BTreeSet::new();
    let mut at = from.max(list.map_or(0, |(_, close)| close + 1));
    let mut open: Vec<usize> = vec![];
    while let Some(token) = header.get(at) {
        let next = |what: &[&str]| header.get(at + 1).is_some_and(|t| what.iter().any(|text| t.is(text)));
        match token.text.as_str() {
            ":" if open.is_empty() => break,
            "(" if token.kind == Kind::Punctuation => open.extend(closing(header, at)),
            ")" => drop(open.pop()),
            word if token.is_word() => {
                let before = at.checked_sub(1).map(|at| &header[at]);
                let of_type = |t: &Token| {
                    t.is_word()
                        && !["const", "volatile", "typename", "struct", "class", "enum"].contains(&t.text.as_str())
                        || ["*", "&", ">"].iter().any(|end| t.is(end))
                };
                let parameter = !open.is_empty() && before.is_some_and(of_type) && next(&[",", ")", "=", "["]);
                let declared = part.names.contains(word) || KNOWN.contains(&word) || own.contains(word);
                if !parameter && !declared && !is_keyword(word) {
                    names.insert(word.to_string());
                }
            }
            _ => {}
        }
        at += 1;
    }
    names
}
