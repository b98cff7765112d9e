//! Whether a declaration is host code beyond doubt: no device code can use it. Knows names of CUDA's runtime, of the C and C++ libraries and of their
//! namespaces; a name that is not here is no evidence.

use std::collections::{BTreeMap, BTreeSet};

use super::classes::is_class;
use super::declarators::without_attributes;
use super::macros::Macros;
use super::names::after_template;
use super::part::{Part, What, is_keyword};
use super::spaces::{KNOWN, is_known};
use super::tokens::Token;

/// Functions and objects of the C library that device code does not have.
const C: [&str; 22] = [
    "fprintf",
    "fputs",
    "stderr",
    "stdout",
    "stdin",
    "exit",
    "abort",
    "getenv",
    "fopen",
    "fclose",
    "fread",
    "fwrite",
    "fseek",
    "ftell",
    "srand",
    "rand",
    "atoi",
    "atof",
    "strcmp",
    "gettimeofday",
    "clock_gettime",
    "main",
];

/// Members of `std` that device code does not have.
const STD: [&str; 26] = [
    "vector",
    "string",
    "map",
    "unordered_map",
    "set",
    "cout",
    "cerr",
    "endl",
    "ostream",
    "istream",
    "ifstream",
    "ofstream",
    "stringstream",
    "ostringstream",
    "runtime_error",
    "invalid_argument",
    "exception",
    "unique_ptr",
    "shared_ptr",
    "make_unique",
    "make_shared",
    "mt19937",
    "random_device",
    "thread",
    "mutex",
    "to_string",
];

/// Prefixes of the names of host libraries.
const LIBRARIES: [&str; 11] =
    ["cublas", "CUBLAS", "cudnn", "CUDNN", "nccl", "cusolver", "cusparse", "cufft", "MPI_", "nvml", "PYBIND11_"];

/// What a look at tokens needs to know of the other declarations.
pub(super) struct Known<'a> {
    pub(super) macros: &'a Macros,
    /// Every name that the sources declare, namespaces included.
    pub(super) declared: &'a BTreeSet<String>,
    /// The names of namespaces and of their aliases.
    pub(super) namespaces: &'a BTreeSet<String>,
    /// The names of classes and aliases, wherever they stand.
    pub(super) spaces: &'a BTreeSet<String>,
    /// Macros that only host code can use.
    pub(super) host_macros: &'a BTreeSet<String>,
    /// Whether a header that is not here may declare a namespace.
    pub(super) lacks_library: bool,
}

impl Known<'_> {
    /// Whether the sources or CUDA have a namespace or a class of that name.
    pub(super) fn has_space(&self, name: &str) -> bool {
        is_known(name) || self.declared.contains(name) || self.spaces.contains(name) || self.macros.contains(name)
    }

    /// Whether the sources or CUDA have the namespace that a path names: `::a::b`.
    pub(super) fn has_namespace(&self, path: &[Token]) -> bool {
        let mut words = path.iter().take_while(|t| t.is_word() || t.is("::")).filter(|t| t.is_word());
        let Some(first) = words.next() else { return false };
        let has = |t: &Token| self.namespaces.contains(&t.text) || self.macros.contains(&t.text);
        KNOWN.contains(&first.text.as_str()) || has(first) && words.all(has)
    }

    /// The positions at which a name in a namespace begins that nothing here declares.
    pub(super) fn foreign_at(&self, text: &[Token]) -> impl Iterator<Item = usize> {
        let own = own(text);
        text.windows(3).enumerate().filter_map(move |(at, w)| {
            let first = w[0].is_word() && !is_keyword(&w[0].text) && w[1].is("::") && w[2].is_word();
            // `::at::Half` begins with `at`.
            let scope = |t: &Token| t.is_word() && !is_keyword(&t.text) || t.is(">");
            let inner = at > 1 && text[at - 1].is("::") && scope(&text[at - 2]);
            let known = || self.has_space(&w[0].text) || own.contains(w[0].text.as_str());
            (first && !inner && !known()).then_some(at)
        })
    }

    /// The first name in a namespace that nothing here declares: `at::Half`.
    pub(super) fn foreign(&self, text: &[Token]) -> Option<String> {
        self.foreign_at(text).next().map(|at| qualified(text, at))
    }

    /// The namespaces of such names.
    pub(super) fn foreign_spaces(&self, text: &[Token]) -> BTreeSet<String> {
        self.foreign_at(text).map(|at| text[at].text.clone()).collect()
    }

    /// Whether a declaration is host code beyond doubt.
    pub(super) fn is_host(&self, part: &Part) -> bool {
        // A constant expression may name what only host code has where it is not evaluated: `throw std::invalid_argument("n")`.
        if part.device || part.constexpr || !matches!(part.what, What::Function | What::Variable) {
            return false;
        }
        // Such a constant hides an outer one of its name, whatever its value needs.
        let numbers =
            ["bool", "char", "short", "int", "long", "float", "double", "unsigned", "signed", "size_t", "auto"];
        let is = |t: &Token| numbers.iter().any(|word| t.is(word));
        let number = || part.header.iter().any(is) || self.may_be_number(&part.header);
        let constant = part.header.iter().any(|t| t.is("const")) && !part.header.iter().any(|t| t.is("*"));
        if part.what == What::Variable && constant && number() {
            return false;
        }
        let host_only = part.header.iter().any(|t| t.is("__host__"));
        if host_only || part.names.contains("main") {
            return true;
        }
        match self.may_be_annotated(part) {
            // Code of the device may name what only a header that is not here declares.
            true => self.in_host_words(&part.tokens, &BTreeSet::new()),
            false => self.names_foreign_or_host(&part.tokens, self.host_macros),
        }
    }

    /// Whether a foreign name that may be an alias of a number is the type of a variable.
    fn may_be_number(&self, header: &[Token]) -> bool {
        let header = without_attributes(header);
        let header = after_template(&header);
        let specifier = |t: &&Token| !t.is_word() || is_keyword(&t.text);
        let at = header.iter().take_while(specifier).count();
        self.foreign_at(header).any(|foreign| foreign == at) && !is_class(&qualified(header, at))
    }

    /// Macros that only host code can use: each of their definitions names what device code does not have.
    pub(super) fn host_macros(&self) -> BTreeSet<String> {
        let mut found: BTreeSet<String> = BTreeSet::new();
        let mut users: BTreeMap<String, Vec<&String>> = BTreeMap::new();
        for name in self.macros.all.keys() {
            for word in self.macros.words(name).into_iter().filter(|word| self.macros.contains(word)) {
                users.entry(word).or_default().push(name);
            }
        }
        let mut open: Vec<&String> = self.macros.all.keys().collect();
        while let Some(name) = open.pop() {
            let mut all = self.macros.all[name].definitions.iter();
            if !found.contains(name) && all.all(|m| self.names_foreign_or_host(&m.body, &found)) {
                found.insert(name.clone());
                open.extend(users.get(name).into_iter().flatten());
            }
        }
        found
    }

    fn names_foreign_or_host(&self, text: &[Token], host_macros: &BTreeSet<String>) -> bool {
        self.foreign(text).is_some() || self.in_host_words(text, host_macros)
    }

    fn in_host_words(&self, text: &[Token], host_macros: &BTreeSet<String>) -> bool {
        (0..text.len()).any(|at| {
            let token = &text[at];
            if text[at..].len() > 2 && text[at..at + 3].iter().all(|t| t.is("<")) {
                return true;
            }
            if !token.is_word() {
                return false;
            }
            let word = token.text.as_str();
            let next = text.get(at + 1);
            let runtime =
                word.strip_prefix("cuda").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
            let launches = runtime && next.is_some_and(|t| t.is("(")) && !word.starts_with("cudaGridDependency");
            let library = LIBRARIES.iter().any(|start| word.starts_with(start));
            let standard = word == "std"
                && next.is_some_and(|t| t.is("::"))
                && text.get(at + 2).is_some_and(|t| STD.contains(&t.text.as_str()));
            launches || library || standard || C.contains(&word) || host_macros.contains(word)
        })
    }
}

/// The names that a declaration declares within itself: parameters of templates, aliases, classes, namespaces.
fn own(text: &[Token]) -> BTreeSet<&str> {
    const BEFORE: [&str; 6] = ["typename", "class", "struct", "using", "namespace", "enum"];
    let named = |w: &&[Token]| BEFORE.iter().any(|word| w[0].is(word)) && w[1].is_word();
    let variadic =
        text.windows(5).filter(|w| BEFORE.iter().any(|word| w[0].is(word)) && w[1].is(".") && w[4].is_word());
    // `typedef X Y;`
    let aliases = text.windows(2).filter(|w| w[0].is_word() && w[1].is(";")).map(|w| w[0].text.as_str());
    text.windows(2)
        .filter(named)
        .map(|w| w[1].text.as_str())
        .chain(variadic.map(|w| w[4].text.as_str()))
        .chain(aliases)
        .collect()
}

/// The qualified name that begins at a token.
pub(super) fn qualified(text: &[Token], at: usize) -> String {
    let mut name = text[at].text.clone();
    for pair in text[at + 1..].chunks(2) {
        match pair {
            [colons, word] if colons.is("::") && word.is_word() => name = format!("{name}::{}", word.text),
            _ => break,
        }
    }
    name
}
