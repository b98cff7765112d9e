//! The order in which a compiler reads the files of a tree, and what a macro means at a place of it. Knows directives that define, and whether a condition
//! surrounds them; evaluates no conditions.

use std::collections::BTreeMap;

use super::SourceTree;
use super::include::Include;
use super::macros::Macros;
use super::tokens::{Token, tokens};

/// The most files that are read, each as often as it is included.
const MOST_VISITS: usize = 3_000;

/// The most tokens of these files.
const MOST_TOKENS: usize = 20_000_000;

/// How deeply files may include each other.
const DEEPEST: usize = 100;

/// Every place in the order of reading at which a token is read: a file may be included several times. None if the order is not known.
pub(super) type Positions = Option<Vec<usize>>;

/// What happens to a name.
#[derive(Debug, Clone, Copy)]
enum Happens {
    /// It gets the definition of that index.
    Defined(usize),
    Undefined,
    /// It gets back a meaning that it had (`pop_macro`), or may get any.
    Restored,
}

#[derive(Debug, Clone)]
struct Event {
    at: usize,
    what: Happens,
    /// Whether no condition surrounds it or an include of its file, so that it happens.
    certain: bool,
}

/// A reading of a file: from these tokens on, at these places.
#[derive(Debug, Clone, Default)]
struct Visit {
    marks: Vec<(usize, usize)>,
}

impl Visit {
    fn position(&self, token: usize) -> usize {
        let mark = self.marks.partition_point(|(from, _)| *from <= token).saturating_sub(1);
        self.marks.get(mark).map_or(0, |(from, at)| at + token.saturating_sub(*from))
    }
}

/// The order of reading.
#[derive(Debug, Clone, Default)]
pub(super) struct Order {
    /// What happens to each name, in order.
    events: BTreeMap<String, Vec<Event>>,
    visits: BTreeMap<String, Vec<Visit>>,
    /// Whether the order is known.
    known: bool,
}

impl Order {
    /// The places at which a token of a file is read.
    pub(super) fn positions(&self, file: &str, token: usize) -> Positions {
        let visits = self.visits.get(file).filter(|_| self.known)?;
        Some(visits.iter().map(|visit| visit.position(token)).collect())
    }

    /// What a name with so many definitions means at these places: the index of one, or their number if it means itself. None if that is not certain.
    pub(super) fn meaning(&self, name: &str, at: &Positions, definitions: usize) -> Option<usize> {
        let at = at.as_ref().filter(|at| self.known && !at.is_empty())?;
        let events = self.events.get(name).map_or(&[][..], Vec::as_slice);
        let mut found = None;
        for place in at {
            let before = &events[..events.partition_point(|event| event.at < *place)];
            let meaning = meaning_after(name, before, definitions)?;
            if *found.get_or_insert(meaning) != meaning {
                return None;
            }
        }
        found
    }

    /// Whether some place takes back or restores a meaning of a name.
    pub(super) fn changes(&self, name: &str) -> bool {
        self.events.get(name).into_iter().flatten().any(|event| !matches!(event.what, Happens::Defined(_)))
    }
}

fn meaning_after(name: &str, events: &[Event], definitions: usize) -> Option<usize> {
    let Some(last) = events.last() else { return Some(definitions) };
    match last.what {
        Happens::Defined(index) if last.certain => return Some(index),
        Happens::Undefined if last.certain => return Some(definitions),
        _ => {}
    }
    if has_own_meaning(name) {
        return None;
    }
    // Where the only definition so far is not read, the source does not compile.
    let Happens::Defined(first) = events[0].what else { return None };
    events.iter().all(|event| matches!(event.what, Happens::Defined(index) if index == first)).then_some(first)
}

/// Whether a name means something although no source defines it: compilers define it, as `__global__`.
fn has_own_meaning(name: &str) -> bool {
    name.starts_with("__")
}

/// Reads the files of a tree in a compiler's order, and gives every definition to `macros`. `given` are definitions that come before all (`NAME VALUE`).
pub(super) fn read(tree: &SourceTree<'_>, files: &BTreeMap<String, Vec<Token>>, given: &[String], macros: &mut Macros) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let named = |text: &str| tokens(text).0.first().map(|t| t.text.clone());
    let all = files.values().flatten().filter_map(Token::directive);
    let changes = all.filter(|(word, _)| matches!(*word, "define" | "undef")).map(|(_, text)| text);
    for name in changes.chain(given.iter().map(String::as_str)).filter_map(named) {
        *counts.entry(name).or_default() += 1;
    }
    let (order, once) = (Order::default(), BTreeMap::new());
    let mut reader = Reader { tree, files, macros, order, at: 0, visits: 0, known: true, once, counts };
    for text in given {
        reader.define(text, true);
    }
    reader.file(tree.main, &mut vec![], true);
    // Files that no include names come last: a macro may compute one.
    let unread: Vec<&String> = files.keys().filter(|name| !reader.order.visits.contains_key(*name)).collect();
    for name in unread {
        reader.known = false;
        reader.file(name, &mut vec![], false);
    }
    let Reader { mut order, known, .. } = reader;
    order.known = known;
    let changes = |name: &&String| order.changes(name) || has_own_meaning(name);
    let changed: Vec<String> = order.events.keys().filter(changes).cloned().collect();
    changed.iter().for_each(|name| macros.undefine(name));
    macros.order = order;
}

struct Reader<'a, 't> {
    tree: &'a SourceTree<'t>,
    files: &'a BTreeMap<String, Vec<Token>>,
    macros: &'a mut Macros,
    order: Order,
    at: usize,
    visits: usize,
    known: bool,
    /// Files that are read once, with whether that has certainly happened.
    once: BTreeMap<String, bool>,
    /// How often each name is defined or taken back, in all files and by what is given.
    counts: BTreeMap<String, usize>,
}

impl Reader<'_, '_> {
    /// Whether the name of a guard has another use.
    fn is_odd(&self, guard: &str) -> bool {
        self.counts.get(guard).is_some_and(|count| *count > 1)
    }

    fn event(&mut self, name: &str, what: Happens, certain: bool) {
        self.order.events.entry(name.to_string()).or_default().push(Event { at: self.at, what, certain });
    }

    fn define(&mut self, text: &str, certain: bool) {
        if let Some((name, index)) = self.macros.define(text) {
            self.event(&name, Happens::Defined(index), certain);
        }
        self.at += 1;
    }

    /// Reads a file. `certain`: whether no condition surrounds its include.
    fn file(&mut self, name: &str, open: &mut Vec<String>, certain: bool) {
        let Some(text) = self.files.get(name) else { return };
        // A file that is read once happens where it is first read; later, if it may not have been.
        let once = guard(text).filter(|guard| !self.is_odd(guard));
        let pragma = text.iter().any(|t| matches!(t.directive(), Some(("pragma", "once"))));
        let first = self.once.get(name).copied();
        if first == Some(true) {
            return;
        }
        let certain = certain && first.is_none();
        if once.is_some() || pragma {
            self.once.insert(name.to_string(), certain);
        }
        self.visits += 1;
        if self.visits > MOST_VISITS || self.at > MOST_TOKENS || open.len() > DEEPEST {
            self.known = false;
            return;
        }
        open.push(name.to_string());
        let mut depth = 0_usize;
        let mut visit = Visit { marks: vec![(0, self.at)] };
        for (at, token) in text.iter().enumerate() {
            let certain = certain && depth <= usize::from(once.is_some());
            self.at = visit.position(at);
            match token.directive() {
                Some(("define", text)) => {
                    if let Some((name, index)) = self.macros.define(text) {
                        self.event(&name, Happens::Defined(index), certain);
                    }
                }
                Some(("undef", text)) => {
                    if let Some(name) = tokens(text).0.first() {
                        self.event(&name.text, Happens::Undefined, certain);
                    }
                }
                Some(("if" | "ifdef" | "ifndef", _)) => depth += 1,
                Some(("endif", _)) => depth = depth.saturating_sub(1),
                Some(("include", operand)) => {
                    match Include::of(operand).map(|include| include.resolve(name, self.tree)) {
                        Some(Some(inner)) if !open.contains(&inner) => {
                            self.at += 1;
                            self.file(&inner, open, certain);
                            visit.marks.push((at + 1, self.at + 1));
                        }
                        Some(_) => {}
                        None => self.known = false,
                    }
                }
                Some(("include_next" | "import" | "embed", _)) => self.known = false,
                Some(("pragma", text)) => self.restored(text),
                _ if token.text.contains("_macro") => self.restored(&token.text),
                _ => {}
            }
        }
        self.at = visit.position(text.len());
        self.order.visits.entry(name.to_string()).or_default().push(visit);
        open.pop();
    }

    /// Notes the names of `push_macro("NAME")` and `pop_macro("NAME")`, as a pragma or as the text of `_Pragma`.
    fn restored(&mut self, text: &str) {
        if text.contains("push_macro") || text.contains("pop_macro") {
            let names = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
            for name in names.map(str::to_string).collect::<Vec<_>>() {
                self.event(&name, Happens::Restored, false);
            }
        }
    }
}

/// The name of the guard that surrounds a file, so that it is read once: `#ifndef NAME`, `#define NAME`, and `#endif` at its end.
pub(super) fn guard(text: &[Token]) -> Option<&str> {
    let mut directives = text.iter().map(Token::directive);
    let (Some(Some(("ifndef", name))), Some(Some(("define", defined)))) = (directives.next(), directives.next()) else {
        return None;
    };
    let mut depth = 0_usize;
    for (at, token) in text.iter().enumerate() {
        match token.directive() {
            Some(("if" | "ifdef" | "ifndef", _)) => depth += 1,
            Some(("else" | "elif" | "elifdef" | "elifndef", _)) if depth == 1 => return None,
            Some(("endif", _)) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && at + 1 < text.len() {
            return None;
        }
    }
    let name = name.split_whitespace().next()?;
    (depth == 0 && defined.split_whitespace().next() == Some(name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::super::include::included_files;
    use super::*;

    /// What a name means where `HERE` stands in the main file.
    fn meaning(files: &[(&str, &str)], name: &str) -> Option<String> {
        let texts: BTreeMap<String, String> = files.iter().map(|(n, t)| (n.to_string(), t.to_string())).collect();
        let tree = SourceTree { files: &texts, main: files[0].0, include: &[] };
        let read: BTreeMap<String, Vec<Token>> =
            included_files(&tree).into_iter().map(|n| (n.clone(), tokens(&texts[&n]).0)).collect();
        let mut macros = Macros::default();
        super::read(&tree, &read, &[], &mut macros);
        let here = read[files[0].0].iter().position(|t| t.is("HERE")).unwrap();
        let at = macros.order.positions(files[0].0, here);
        let meaning = macros.at(name, &at)?;
        let body = macros.all[name].definitions.get(meaning).map(|m| super::super::macros::spelled(&m.body));
        Some(body.unwrap_or("itself".into()))
    }

    #[test]
    fn the_meaning_of_a_macro_is_that_of_the_last_definition_that_happens() {
        for (text, expected) in [
            ("#define A 1\nHERE", Some("1")),
            ("#define A 1\n#define A 2\nHERE", Some("2")),
            ("HERE\n#define A 1", Some("itself")),
            ("#define A 1\n#undef A\nHERE", Some("itself")),
            ("#define A 1\nHERE\n#undef A\n#define A 2", Some("1")),
            ("#ifdef X\n#define A 1\n#endif\nHERE", Some("1")),
            ("#ifdef X\n#define A 1\n#else\n#define A 2\n#endif\nHERE", None),
            ("#ifdef X\n#define A 1\n#else\n#define A 1\n#endif\nHERE", Some("1")),
            ("#define A 1\n#ifdef X\n#undef A\n#endif\nHERE", None),
            ("#define A 1\n#pragma push_macro(\"A\")\n#pragma pop_macro(\"A\")\nHERE", None),
            ("#define A 1\n_Pragma(\"pop_macro(\\\"A\\\")\")\nHERE", None),
            ("#include \"a.h\"\nHERE", Some("3")),
            ("#include \"a.h\"\n#define A 1\n#include \"a.h\"\nHERE", Some("1")),
            ("#ifdef X\n#include \"a.h\"\n#endif\n#define B\nHERE", Some("3")),
            ("#define A 1\n#ifdef X\n#include \"a.h\"\n#endif\nHERE", None),
        ] {
            let guarded = "#ifndef H\n#define H\n#define A 3\n#endif\n";
            let found = meaning(&[("k.cu", text), ("a.h", guarded)], "A");
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
