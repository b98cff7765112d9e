//! The launches in the host code of a source, each with what names stand for there: macros as they are defined at that place, constants of the namespaces around
//! it, functions of one expression.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::super::declarations::closing;
use super::super::macros::{Macros, spelled};
use super::super::part::{Part, What};
use super::super::tokens::{Token, tokens};
use super::super::{File, Sources};
use super::expression::{Expression, Formula, Scope, expression};
use super::kernel::namespaces;
use super::launch::{Launch, constants, formula, launches};

/// A launch that was found.
#[derive(Debug, Clone)]
pub(super) struct Launched {
    /// The file that it is in.
    pub(super) file: String,
    pub(super) launch: Launch,
    /// The namespaces around it.
    pub(super) spaces: Vec<String>,
    /// Whether the sources of that file define a kernel of this name, and in which file.
    pub(super) defined: BTreeSet<String>,
}

/// The longest declaration that is read for a constant or a function of one expression.
const LONGEST: usize = 400;

/// A definition outside functions.
struct Definition {
    spaces: Vec<String>,
    name: String,
    value: Expression,
}

/// The launches in the main file of a source.
pub(super) fn launched(sources: &Sources<'_>) -> Vec<Launched> {
    let places = Places::of(sources);
    let mut definitions: Vec<Definition> = vec![];
    let mut functions: BTreeMap<String, Option<Formula>> = BTreeMap::new();
    let none = Scope::default();
    let parts = || sources.groups.iter().flat_map(|group| group.parts.iter().map(move |part| (group, part)));
    for (group, part) in parts().filter(|(_, part)| !part.kernel) {
        let file = &sources.files[group.file];
        let spaces = || namespaces(&file.tokens[..group.range.from]);
        if part.what == What::Type {
            let found = members(&part.tokens, sources);
            let spaces = if found.is_empty() { vec![] } else { spaces() };
            definitions.extend(found.into_iter().map(|(name, value)| Definition {
                spaces: spaces.clone(),
                name,
                value,
            }));
        }
        if !matches!(part.what, What::Variable | What::Function) || part.tokens.len() > LONGEST {
            continue;
        }
        let text = places.macros_at(sources, group.file, group.range.from).0.expand(&part.tokens);
        match part.what {
            What::Variable => {
                let found = constants(&text, &none);
                let spaces = if found.is_empty() { vec![] } else { spaces() };
                definitions.extend(found.into_iter().map(|(name, value)| Definition {
                    spaces: spaces.clone(),
                    name,
                    value,
                }));
            }
            _ => {
                if let Some((name, formula)) = formula(&text, &none) {
                    let same = |other: &Formula| other.parameters == formula.parameters && other.value == formula.value;
                    let known = functions.get(&name).is_none_or(|other| other.as_ref().is_some_and(same));
                    functions.insert(name, known.then_some(formula));
                }
            }
        }
    }
    let functions: BTreeMap<String, Formula> = functions.into_iter().filter_map(|(n, f)| Some((n, f?))).collect();
    let mut found = vec![];
    for (group, part) in parts().filter(|(_, part)| matches!(part.what, What::Function | What::Type) && !part.kernel) {
        let file = &sources.files[group.file];
        if file.name != sources.tree.main || !may_launch(part, sources) {
            continue;
        }
        let spaces = namespaces(&file.tokens[..group.range.from]);
        let at = places.macros_at(sources, group.file, group.range.from);
        let (macros, several) = &*at;
        let mut global =
            Scope { values: visible(&definitions, &spaces), functions: functions.clone(), ..Scope::default() };
        global.values.extend(several.clone());
        let text = macros.expand(&part.tokens);
        found.extend(launches(&text, &global).into_iter().map(|launch| Launched {
            file: file.name.clone(),
            defined: defined(sources, &launch.kernel),
            spaces: spaces.clone(),
            launch,
        }));
    }
    found
}

/// The files of a source that define a kernel of this name.
fn defined(sources: &Sources<'_>, kernel: &str) -> BTreeSet<String> {
    let own = |part: &Part| part.kernel && part.names.iter().any(|name| name == kernel);
    let groups = sources.groups.iter().filter(|group| group.parts.iter().any(own));
    groups.map(|group| sources.files[group.file].name.clone()).collect()
}

/// Whether a declaration may launch something: by itself, or by a macro that it uses.
fn may_launch(part: &Part, sources: &Sources<'_>) -> bool {
    part.tokens
        .iter()
        .any(|t| t.is("<") || t.is_word() && (t.text.starts_with("cudaLaunch") || sources.macros.contains(&t.text)))
}

/// The constants that are members of a class or of an enumeration: `S::name`, or `name` for an enumeration without one.
fn members(text: &[Token], sources: &Sources<'_>) -> Vec<(String, Expression)> {
    let Some(open) = text.iter().position(|t| t.is("{")) else { return vec![] };
    if text.first().is_some_and(|t| t.is("template")) {
        return vec![];
    }
    let header = &text[..open];
    let kind = header.iter().position(|t| ["struct", "class", "enum", "union"].iter().any(|word| t.is(word)));
    let Some(kind) = kind else { return vec![] };
    let is_enum = header[kind].is("enum");
    let scoped = header.get(kind + 1).is_some_and(|t| t.is("class") || t.is("struct"));
    let own = header[kind + 1 + usize::from(scoped)..].iter().find(|t| t.is_word()).map(|t| t.text.clone());
    let mut scope = Scope::default();
    let mut found = vec![];
    for at in open + 1..text.len().saturating_sub(1) {
        let constant = || declaration(text, at).iter().any(|t| t.is("constexpr") || t.is("const"));
        let braced = text[at + 1].is("{") && !is_enum;
        if !text[at].is_word() || !(text[at + 1].is("=") || braced) || !(is_enum || constant()) {
            continue;
        }
        let end = if braced { closing(text, at + 1) } else { Some(super::scope::end(text, at + 2)) };
        let Some(value) = end.and_then(|end| text.get(at + 2..end)) else { continue };
        let value = expression(&sources.macros.expand(value), &scope).resolved(&scope);
        if let Expression::Int(_) = value {
            scope.values.insert(text[at].text.clone(), value.clone());
            if let Some(own) = &own {
                found.push((format!("{own}::{}", text[at].text), value.clone()));
            }
            if is_enum && !scoped {
                found.push((text[at].text.clone(), value));
            }
        }
    }
    found
}

/// What precedes a declarator of a member in its declaration.
fn declaration(text: &[Token], at: usize) -> &[Token] {
    let mut from = at;
    while let Some(before) = from.checked_sub(1).map(|i| &text[i]) {
        // A brace that ends the declarator before this one: `int a{1}, b{2}`.
        let value = before.is("}") && text[from].is(",");
        if before.is(";") || before.is("{") || before.is("}") && !value {
            break;
        }
        let open = if value { text[..from].iter().rposition(|t| t.is("{")) } else { None };
        from = open.unwrap_or(from - 1);
    }
    &text[from..at]
}

/// What constants stand for in namespaces: those of the innermost one first. Qualified names are those that lead to them from here.
fn visible(definitions: &[Definition], spaces: &[String]) -> BTreeMap<String, Expression> {
    let mut found: BTreeMap<String, (usize, Vec<Expression>)> = BTreeMap::new();
    let mut add = |name: String, rank: usize, value: &Expression| {
        let entry = found.entry(name).or_insert((rank, vec![]));
        if rank > entry.0 {
            *entry = (rank, vec![]);
        }
        if rank == entry.0 && !entry.1.contains(value) {
            entry.1.push(value.clone());
        }
    };
    for one in definitions {
        if spaces.starts_with(&one.spaces) {
            add(one.name.clone(), one.spaces.len(), &one.value);
        }
        for from in 0..one.spaces.len() {
            let name = [&one.spaces[from..], std::slice::from_ref(&one.name)].concat().join("::");
            let rank = if spaces.starts_with(&one.spaces[..from]) { from } else { continue };
            add(name, rank, &one.value);
        }
        if one.spaces.is_empty() {
            add(format!("::{}", one.name), 0, &one.value);
        }
    }
    let value = |name: &String, all: &[Expression]| match all {
        [one] => one.clone(),
        _ => Expression::Either(name.clone(), all.to_vec()),
    };
    found.into_iter().map(|(name, (_, all))| (name.clone(), value(&name, &all))).collect()
}

/// A branch of a condition of the preprocessor: the number of the condition, and of the branch.
type Branch = (usize, usize);

/// A directive that defines a macro, or ends it.
struct Change {
    file: usize,
    at: usize,
    name: String,
    /// The text after `#define`.
    text: Option<String>,
    branches: Vec<Branch>,
}

/// The places at which macros with several definitions are defined, in order of text. Files that are included count before the file that includes them.
struct Places {
    changes: Vec<Change>,
    /// What was found, by file and by the number of its changes before a place.
    known: RefCell<BTreeMap<(usize, usize), Rc<Macro>>>,
}

/// The macros at a place, and those names that have one of several values there.
type Macro = (Macros, BTreeMap<String, Expression>);

impl Places {
    fn of(sources: &Sources<'_>) -> Self {
        let mut changes = vec![];
        let mut conditions = 0;
        for (index, file) in sources.files.iter().enumerate() {
            changes.extend(changes_of(index, file, &mut conditions));
        }
        let mut count: BTreeMap<String, usize> = BTreeMap::new();
        for change in &changes {
            *count.entry(change.name.clone()).or_default() += 1;
        }
        changes.retain(|change| count[&change.name] > 1);
        Places { changes, known: RefCell::default() }
    }

    fn macros_at(&self, sources: &Sources<'_>, file: usize, at: usize) -> Rc<Macro> {
        let count = self.changes.iter().filter(|change| change.file == file && change.at < at).count();
        let known = self.known.borrow().get(&(file, count)).cloned();
        known.unwrap_or_else(|| {
            let found = Rc::new(self.find(sources, file, at));
            self.known.borrow_mut().insert((file, count), Rc::clone(&found));
            found
        })
    }

    fn find(&self, sources: &Sources<'_>, file: usize, at: usize) -> Macro {
        // Headers come before what includes them.
        let before = |change: &&Change| change.file != file || change.at < at;
        let mut order: Vec<&Change> = self.changes.iter().filter(before).collect();
        order.sort_by_key(|change| (change.file == file, change.file, change.at));
        let mut now: BTreeMap<&str, Vec<&Change>> = BTreeMap::new();
        for change in order {
            let all = now.entry(&change.name).or_default();
            // Another branch of a condition, or one that may not be taken, leaves what is there.
            let replaces = |old: &&Change| {
                change.branches.iter().all(|(condition, branch)| old.branches.contains(&(*condition, *branch)))
            };
            all.retain(|old| !replaces(old));
            if change.text.is_some() {
                all.push(change);
            }
        }
        let mut macros = sources.macros.clone();
        let mut several = BTreeMap::new();
        for name in self.changes.iter().map(|change| change.name.as_str()).collect::<BTreeSet<_>>() {
            let all = now.get(name).cloned().unwrap_or_default();
            macros.forget(name);
            all.iter().filter_map(|change| change.text.as_ref()).for_each(|text| drop(macros.define(text)));
            let none = Scope::default();
            let value = |change: &&Change| {
                let text = change.text.as_ref()?;
                let all = tokens(text).0;
                let called = all.get(1).is_some_and(|t| t.is("(") && t.glued);
                let value = expression(all.get(1..).filter(|body| !called && !body.is_empty())?, &none);
                (!matches!(value, Expression::Opaque(_))).then_some(value)
            };
            let mut values: Vec<Expression> = vec![];
            for value in all.iter().map(value) {
                match value {
                    Some(value) if !values.contains(&value) => values.push(value),
                    Some(_) => {}
                    None => {
                        values.clear();
                        break;
                    }
                }
            }
            if values.len() > 1 {
                macros.forget(name);
                several.insert(name.to_string(), Expression::Either(name.to_string(), values));
            }
        }
        (macros, several)
    }
}

/// The definitions and `#undef` of a file.
fn changes_of(index: usize, file: &File, conditions: &mut usize) -> Vec<Change> {
    let mut open: Vec<Branch> = vec![];
    let mut found = vec![];
    for (at, token) in file.tokens.iter().enumerate() {
        let Some((word, text)) = token.directive() else { continue };
        match word {
            "if" | "ifdef" | "ifndef" => {
                *conditions += 1;
                open.push((*conditions, 0));
            }
            "elif" | "else" | "elifdef" | "elifndef" => {
                if let Some(last) = open.last_mut() {
                    last.1 += 1;
                }
            }
            "endif" => drop(open.pop()),
            "define" | "undef" => {
                if let Some(name) = tokens(text).0.first().filter(|t| t.is_word()) {
                    let branches = open.clone();
                    let text = (word == "define").then(|| text.to_string());
                    found.push(Change { file: index, at, name: name.text.clone(), text, branches });
                }
            }
            _ => {}
        }
    }
    found
}

/// What names of types stand for: each with all that it may be.
pub(super) fn aliases(sources: &Sources<'_>) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for part in sources.groups.iter().flat_map(|g| &g.parts).filter(|part| part.what == What::Type) {
        let text = &part.tokens;
        let body = |from: usize, to: usize| spelled(&text[from..to]);
        let (name, value) = if text.first().is_some_and(|t| t.is("typedef")) && text.len() > 3 {
            let name = text.len() - 2;
            (name, body(1, name))
        } else if text.first().is_some_and(|t| t.is("using")) && text.get(2).is_some_and(|t| t.is("=")) {
            (1, body(3, text.len() - 1))
        } else {
            continue;
        };
        // A type that is defined here has the name alone.
        if value.contains('{') {
            continue;
        }
        let all = found.entry(text[name].text.clone()).or_default();
        if !all.contains(&value) {
            all.push(value);
        }
    }
    found
}
