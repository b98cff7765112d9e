//! Host code in CUDA C++ sources: what of a source its kernels need, and the source without the rest. Pure: reads texts, no files.
//!
//! A source that includes its project's world (torch, cuBLAS, helper headers) does not compile where that world is absent, although its kernels need none of it.
//! Its text is then split into the declarations of its namespaces, and those that no entry reaches are blanked. Headers that are absent are given as empty ones.
//!
//! | decision | reason |
//! |---|---|
//! | a source that compiles is never changed, except that other kernels are left out ([`without_other_kernels`]) | what it means, and what was recorded of its binary, stays |
//! | a declaration is kept if an entry reaches its name, through macros too | all declarations of a name go together, so no overload or specialization that a kernel would choose is lost |
//! | names count wherever they occur, except after `.` and `->` | too much costs nothing but an error; too little would change what a kernel means |
//! | operators, and variables of devices, are kept | they are used without their names: by expressions, by `constants` of a manifest |
//! | specializations and functions in namespaces of the library, and `begin`, `end`, `get`, are kept for the types that they name | the library and the language use them without their names |
//! | functions without annotation that can only be host code are never kept | a local variable in a kernel may have the name of one |
//! | of a name that device functions have too, functions without annotation are host overloads | so CUDA says; a launcher often has its kernel's name |
//! | what a word precedes that may be a macro of an absent header is no host overload ([`annotations`]) | the macro may stand for `__device__` |
//! | of several overloads and specializations, those are left out that are for a known class of a library whose header is absent ([`foreign`], [`classes`]) | nobody can choose them without a value of that class |
//! | one that names another type of such a namespace, or names it anywhere else, stays: in a condition of a template, a default argument, a base, a return type, a value | the name may be an alias of `float`, and the compiler then names what is missing |
//! | a type or a variable that names one is never left out for another of its name | it may hide that one |
//! | what declares the name of a macro that the compiler is given stays ([`fixed`] reports it before) | the macro would take its place |
//! | kept text stays byte for byte, and in its line | messages and `__LINE__` mean the source that the user sees |
//! | directives stay, except pragmas and includes in what is left out that act on nothing else ([`edit`]) | what they define may be used anywhere |
//! | what holds another include, or a `_Pragma` that acts on what follows, is not left out | it would act elsewhere |
//! | a use of a macro that makes a kernel and host code is split by as few levels of macros as possible, on its line ([`split`]) | the two have no text of their own; the compiler expands the rest |
//! | one that may mean several things, or whose parts would expand to other tokens by themselves, stays as it is written | a guess could pass a wrong kernel |
//! | every branch of a condition and every definition of a macro counts where a declaration is read | conditions are not evaluated |
//! | a file whose brackets match only under conditions stays whole | its declarations are not known |
//! | declarations that use `__COUNTER__` stay if one of them does | each gets a number by its place |

mod annotations;
mod brackets;
mod branches;
mod classes;
mod declarations;
mod declarators;
mod edit;
mod entry;
mod expand;
mod fixed;
mod foreign;
mod given;
mod host;
mod implied;
pub mod import;
mod include;
mod inside;
mod macros;
mod makers;
mod names;
mod needs;
mod order;
mod part;
pub mod python;
mod reach;
mod scopes;
mod siblings;
mod spaces;
mod split;
mod tokens;
mod unfinished;

use std::collections::{BTreeMap, BTreeSet};

use declarations::{At, Declarations, declarations};
use edit::{Edit, can_go, edited};
pub use entry::{addressed, with_parameters};
use fixed::declares_one;
pub use fixed::{Fixed, FixedBy, fixed};
pub use given::Given;
use host::{Known, qualified};
pub use include::headers_asked_about;
use include::{asked, included_files, includes, inner_includes, unconditional};
use macros::{Macros, spelled};
pub use needs::{Need, is_standard};
use order::Order;
use part::{Part, What};
pub use siblings::without_other_kernels;
use split::{Group, group};
use tokens::{Kind, Token, Unclosed, tokens, words};
pub use unfinished::Unfinished;

/// The folder of empty headers in a tree, which stands last in the search for includes.
pub const ABSENT: &str = "@absent";

/// The files of a staged tree, and how a compiler finds them.
#[derive(Debug, Clone, Copy)]
pub struct SourceTree<'a> {
    /// Texts by their names in the tree.
    pub files: &'a BTreeMap<String, String>,
    /// The file to compile.
    pub main: &'a str,
    /// Include folders, as the tree names them.
    pub include: &'a [String],
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, as the tree names it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A file's name may hold anything.
        let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
        write!(f, "{}:{}", self.file.chars().map(shown).collect::<String>(), self.line)
    }
}

/// A header that no file of the tree is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentHeader {
    /// Its name in `#include`.
    pub name: String,
    /// The first include of it.
    pub place: Place,
    /// Whether an empty header can stand for it. Otherwise its includes are blanked.
    pub stands: bool,
    /// Whether the file to compile includes it outside every condition, so that no compiler that lacks it compiles that file as it is written.
    pub certain: bool,
}

/// A declaration that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// What it declares, or how it begins.
    pub name: String,
    /// Where it begins.
    pub place: Place,
    /// Its last line.
    pub to: u32,
}

/// A source without what its entries do not need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reduced {
    /// The files that change, with their new texts.
    pub files: BTreeMap<String, String>,
    /// Headers that no file of the tree is, in order of name. A compiler may have them.
    pub absent: Vec<AbsentHeader>,
    /// What is left out, by place.
    pub left_out: Vec<LeftOut>,
    /// Macros that conditions ask about and that nothing here defines, with their first places. Headers that are absent may define them.
    pub asked: Vec<(String, Place)>,
    /// Uses of macros that make what an entry needs and also other declarations, and why these could not be left out.
    pub whole: Vec<(Place, String)>,
}

struct File {
    name: String,
    tokens: Vec<Token>,
    declarations: Declarations,
    unclosed: Option<Unclosed>,
    /// Whether another file includes it inside a declaration: it is no list of declarations.
    inner: bool,
    /// Whether it stays whole, because what it declares is not known.
    fragment: bool,
}

/// The sources of a kernel, read once.
pub struct Sources<'a> {
    tree: SourceTree<'a>,
    files: Vec<File>,
    macros: Macros,
    groups: Vec<Group>,
    /// Every name that a declaration or a namespace has.
    declared: BTreeSet<String>,
    /// The names of namespaces and of their aliases.
    namespaces: BTreeSet<String>,
    /// The names of classes and aliases, wherever they stand.
    spaces: BTreeSet<String>,
    /// Whether a header that is not here may declare a namespace.
    lacks_library: bool,
    /// Macros that only host code can use.
    host_macros: BTreeSet<String>,
    /// Whether functions without annotation are code of the device.
    all_device: bool,
}

impl std::fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").field("main", &self.tree.main).finish_non_exhaustive()
    }
}

impl<'a> Sources<'a> {
    /// Reads the files of a tree.
    pub fn read(tree: SourceTree<'a>) -> Self {
        Sources::read_given(tree, Given::default())
    }

    /// Reads the files of a tree for a compiler that is given these macros.
    pub fn read_given(tree: SourceTree<'a>, given: Given<'_>) -> Self {
        let (mut all, mut unclosed) = (BTreeMap::new(), BTreeMap::new());
        for name in included_files(&tree) {
            let (tokens, open) = tokens(&tree.files[&name]);
            all.insert(name.clone(), tokens);
            unclosed.insert(name, open);
        }
        let mut macros = Macros::default();
        order::read(&tree, &all, &given.definitions(), &mut macros);
        if given.includes() {
            macros.order = Order::default();
        }
        let file = |(name, tokens): (String, Vec<Token>)| {
            let mut declarations = declarations(&tokens, &macros, At::File(&name));
            // They stand for other characters, or not, depending on the language standard.
            declarations.broken |= ["??<", "??>", "??/", "??="].iter().any(|three| tree.files[&name].contains(three));
            let unclosed = unclosed.remove(&name).flatten();
            File { name, tokens, declarations, unclosed, inner: false, fragment: false }
        };
        let mut files: Vec<File> = all.into_iter().map(file).collect();
        let inner: Vec<String> = files.iter().flat_map(|file| inner_includes(file, &tree)).collect();
        for file in &mut files {
            file.inner = inner.contains(&file.name);
            file.fragment = file.declarations.broken || file.inner;
        }
        let mut groups = vec![];
        for (index, file) in files.iter().enumerate().filter(|(_, file)| !file.fragment) {
            for range in &file.declarations.all {
                let mut group = group(index, &file.name, &file.tokens, *range, &macros);
                // It would not compile with that macro, and without it the macro would silently take its place.
                group.stays |= declares_one(&file.tokens[range.from..range.to], given.names());
                group.stays |= !can_go(&file.tokens[range.from..range.to], &file.name, &tree, &macros);
                groups.push(group);
            }
        }
        let mut namespaces: BTreeSet<String> =
            files.iter().flat_map(|file| file.declarations.namespaces.clone()).collect();
        let aliases =
            groups.iter().flat_map(|g| &g.parts).filter(|p| p.tokens.first().is_some_and(|t| t.is("namespace")));
        namespaces.extend(aliases.flat_map(|part| part.names.clone()));
        let mut declared: BTreeSet<String> =
            groups.iter().flat_map(|g| &g.parts).flat_map(|p| p.names.clone()).collect();
        declared.extend(namespaces.iter().cloned());
        let all_device = given.all_device();
        let host_macros = BTreeSet::new();
        let spaces = spaces::declared_anywhere(&files, &macros);
        let lacks_library = spaces::lacks_library(&files, &tree);
        let mut sources = Sources {
            tree,
            files,
            macros,
            groups,
            declared,
            namespaces,
            spaces,
            lacks_library,
            host_macros,
            all_device,
        };
        sources.host_macros = sources.known().host_macros();
        sources
    }

    fn known(&self) -> Known<'_> {
        Known {
            macros: &self.macros,
            declared: &self.declared,
            namespaces: &self.namespaces,
            spaces: &self.spaces,
            host_macros: &self.host_macros,
            lacks_library: self.lacks_library,
        }
    }

    fn part(&self, (group, part): (usize, usize)) -> &Part {
        &self.groups[group].parts[part]
    }

    fn place(&self, file: usize, line: u32) -> Place {
        Place { file: self.files[file].name.clone(), line }
    }

    /// The source without what these entries do not reach, with the macros and flags that its compiler is given.
    pub fn without_host_code(&self, entries: &[String], given: Given<'_>) -> Reduced {
        let kept = self.reached(entries, given.texts());
        let mut out = Reduced { absent: self.absent(), ..Reduced::default() };
        if !out.absent.is_empty() {
            out.asked = self.undefined(&given.texts().collect::<Vec<_>>());
        }
        (out.files, out.left_out) = self.leaving(&kept, &out.absent);
        out.whole = self.kept_whole(&kept);
        out
    }

    /// Uses of macros that are kept although they make more than one declaration and are not split.
    fn kept_whole(&self, kept: &BTreeSet<(usize, usize)>) -> Vec<(Place, String)> {
        let known = self.known();
        let is_host = |part: &Part| known.is_host(part) || known.foreign(&part.tokens).is_some();
        let mut found = vec![];
        for (index, group) in self.groups.iter().enumerate().filter(|(index, _)| kept.contains(&(*index, 0))) {
            let Err(whole) = &group.texts else { continue };
            let text = &self.files[group.file].tokens[group.range.from..group.range.to];
            let used = text.first().is_some_and(|t| self.macros.contains(&t.text) && whole.name == t.text);
            let several = group.parts.len() > 1 && group.parts.iter().any(is_host);
            if used && (several || group.stays) && self.macros.words(&whole.name).contains("__global__") {
                let place = self.place(group.file, text.first().map_or(1, |t| t.line));
                found.push((
                    index,
                    place,
                    format!("`{}` may make host code also, and stays as it is: {}", whole.name, whole.why),
                ));
            }
        }
        found.into_iter().map(|(_, place, why)| (place, why)).collect()
    }

    /// The files that change if only these declarations are kept, with their new texts, and what is left out, by place. Includes of headers for which nothing can
    /// stand are blanked.
    fn leaving(
        &self,
        kept: &BTreeSet<(usize, usize)>,
        absent: &[AbsentHeader],
    ) -> (BTreeMap<String, String>, Vec<LeftOut>) {
        let (mut files, mut left_out) = (BTreeMap::new(), vec![]);
        let mut edits: BTreeMap<usize, Vec<Edit>> = BTreeMap::new();
        for (index, group) in self.groups.iter().enumerate() {
            let of = |part: &usize| kept.contains(&(index, *part));
            let count = (0..group.parts.len()).filter(of).count();
            // What makes no declaration stays, and so does what cannot be told apart.
            if count == group.parts.len() && count > 0 || group.stays || count > 0 && group.texts.is_err() {
                continue;
            }
            let file = &self.files[group.file];
            let text = &file.tokens[group.range.from..group.range.to];
            let (Some(first), Some(last)) = (text.first(), text.last()) else { continue };
            for part in (0..group.parts.len()).filter(|part| !of(part)) {
                let part = &group.parts[part];
                let place = self.place(group.file, first.line);
                left_out.push(LeftOut { name: shown(part, text), place, to: last.line });
            }
            let texts = group.texts.as_ref().map_or(&[][..], Vec::as_slice);
            let new: Vec<&str> = (0..group.parts.len()).filter(of).map(|part| texts[part].as_str()).collect();
            edits.entry(group.file).or_default().push(Edit {
                from: group.range.from,
                to: group.range.to,
                new: new.join(" "),
            });
        }
        for (index, file) in self.files.iter().enumerate() {
            let blanked = self.blanked_includes(file, absent);
            let edits = edits.remove(&index).unwrap_or_default();
            if !edits.is_empty() || !blanked.is_empty() {
                let text = &self.tree.files[&file.name];
                files.insert(file.name.clone(), edited((&file.name, text), &file.tokens, &edits, &blanked, &self.tree));
            }
        }
        left_out.sort_by(|a, b| (&a.place, a.to, &a.name).cmp(&(&b.place, b.to, &b.name)));
        (files, left_out)
    }

    /// Headers that no file of the tree is, in order of name.
    fn absent(&self) -> Vec<AbsentHeader> {
        let mut found: BTreeMap<String, AbsentHeader> = BTreeMap::new();
        let asked: BTreeSet<String> = self.files.iter().flat_map(asked).collect();
        for (index, file) in self.files.iter().enumerate() {
            let outside = if file.name == self.tree.main { unconditional(file) } else { BTreeSet::new() };
            for (at, include) in includes(file) {
                if include.resolve(&file.name, &self.tree).is_none() && !asked.contains(&include.name) {
                    let stands = std::path::Path::new(&include.name)
                        .components()
                        .all(|c| matches!(c, std::path::Component::Normal(_)));
                    let place = self.place(index, file.tokens[at].line);
                    let certain = outside.contains(&at);
                    let header = AbsentHeader { name: include.name.clone(), place, stands, certain };
                    let first = found.entry(include.name).or_insert_with(|| header.clone());
                    let certain = certain || first.certain;
                    if header.place < first.place {
                        *first = header;
                    }
                    first.certain = certain;
                }
            }
        }
        found.into_values().collect()
    }

    /// Macros that conditions ask about and that nothing here defines. Names that begin with an underscore are those of compilers.
    fn undefined(&self, given: &[&str]) -> Vec<(String, Place)> {
        let given: BTreeSet<String> = given.iter().flat_map(|text| words(text)).collect();
        let known = |name: &String| {
            self.macros.contains(name)
                || given.contains(name)
                || name.starts_with('_')
                || ["defined", "true", "false"].contains(&name.as_str())
        };
        let mut found: BTreeMap<String, Place> = BTreeMap::new();
        for (index, file) in self.files.iter().enumerate() {
            for token in &file.tokens {
                let Some(("if" | "ifdef" | "elif" | "elifdef", text)) = token.directive() else { continue };
                let asks = if text.contains("__has_include") { "" } else { text };
                for name in words(asks).filter(|name| !known(name)) {
                    found.entry(name).or_insert_with(|| self.place(index, token.line));
                }
            }
        }
        found.into_iter().collect()
    }

    /// The positions of includes that no header can stand for.
    fn blanked_includes(&self, file: &File, absent: &[AbsentHeader]) -> Vec<usize> {
        let gone = |name: &str| absent.iter().any(|header| header.name == name && !header.stands);
        includes(file)
            .filter(|(_, include)| gone(&include.name) && include.resolve(&file.name, &self.tree).is_none())
            .map(|(at, _)| at)
            .collect()
    }

    /// The tokens of a line, without directives.
    fn line(&self, place: &Place) -> Vec<Token> {
        let file = self.files.iter().find(|file| file.name == place.file);
        let on_line = |t: &&Token| t.line == place.line && t.kind != Kind::Directive;
        file.into_iter().flat_map(|f| f.tokens.iter().filter(on_line)).cloned().collect()
    }

    /// The first name on a line in a namespace that nothing here declares.
    fn foreign_at(&self, place: &Place) -> Option<String> {
        let line = self.line(place);
        // The line may use names that its declaration declares: parameters of a template.
        let own = |name: &String| {
            let space = name.split("::").next().unwrap_or(name);
            let at_line = |group: &&Group| {
                let text = &self.files[group.file].tokens[group.range.from..group.range.to];
                let lines = text.first().map_or(0, |t| t.line)..=text.last().map_or(0, |t| t.line);
                self.files[group.file].name == place.file && lines.contains(&place.line)
            };
            let known = self.known();
            let whole = self.groups.iter().find(at_line).map(|g| &self.files[g.file].tokens[g.range.from..g.range.to]);
            whole.is_some_and(|whole| !known.foreign_spaces(whole).contains(space))
        };
        self.known().foreign(&line).filter(|name| !own(name))
    }

    /// Where on its line a name first occurs; behind everything if it does not.
    fn position_at(&self, place: &Place, name: &str) -> usize {
        let line = self.line(place);
        line.iter().position(|t| t.is(name)).unwrap_or(usize::MAX)
    }

    /// The name of a compiler's message as that line of the source spells it, with its namespaces.
    fn spelled_at(&self, place: &Place, name: &str) -> String {
        let line = self.line(place);
        let last = name.rsplit("::").next().unwrap_or(name);
        let at = line.iter().position(|t| t.is(last));
        let Some(mut at) = at else { return name.to_string() };
        while at > 1 && line[at - 1].is("::") && line[at - 2].is_word() {
            at -= 2;
        }
        qualified(&line, at)
    }

    /// Whether a declaration or a macro of the sources has that name.
    fn declares(&self, name: &str) -> bool {
        self.declared.contains(name) || self.macros.contains(name)
    }

    /// The first of these entries that reaches a line; the first of all if none does.
    fn entry_at<'e>(&self, entries: &'e [String], place: &Place) -> Option<&'e String> {
        let reaches = |entry: &&String| {
            self.reached(std::slice::from_ref(*entry), []).iter().any(|at| {
                let group = &self.groups[at.0];
                let file = &self.files[group.file];
                let text = &file.tokens[group.range.from..group.range.to];
                let lines = text.first().map_or(0, |t| t.line)..=text.last().map_or(0, |t| t.line);
                file.name == place.file && lines.contains(&place.line)
            })
        };
        entries.iter().find(reaches).or(entries.first())
    }
}

/// How a declaration is named in a list.
fn shown(part: &Part, text: &[Token]) -> String {
    match part.what {
        What::Function | What::Type | What::Variable if !part.names.is_empty() => {
            part.names.iter().cloned().collect::<Vec<_>>().join(", ")
        }
        _ => {
            let line = spelled(&text[..text.len().min(12)]);
            match line.char_indices().nth(60) {
                Some((end, _)) => format!("{}...", &line[..end]),
                None => line,
            }
        }
    }
}

#[cfg(test)]
mod tests;
