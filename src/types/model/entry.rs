//! The names in entries: the function, and its template arguments. Knows the words of the manifest and of C++; does not know what a source declares.

use super::expr::words;
use super::kernel::{Kernel, LaunchAction, LaunchDecl};
use super::operator::{Operator, TypeChoice};
use super::variant::Variant;
use super::{DType, Text};

/// Words of C++ that template arguments may consist of.
const WORDS: [&str; 24] = [
    "auto",
    "bool",
    "char",
    "const",
    "constexpr",
    "decltype",
    "double",
    "false",
    "float",
    "half",
    "half2",
    "int",
    "long",
    "nullptr",
    "short",
    "signed",
    "sizeof",
    "static_cast",
    "struct",
    "true",
    "typename",
    "unsigned",
    "void",
    "volatile",
];

/// The name of the function that an entry launches, without namespaces, template arguments and types of parameters: `rms_norm` of `ns::rms_norm<T, BLOCK>` and
/// of `ns::rms_norm(const ns::half *, int)`.
pub fn function(entry: &str) -> &str {
    let name = entry.split(['<', '(']).next().unwrap_or(entry).trim();
    name.rsplit("::").next().unwrap_or(name).trim()
}

/// Whether a word belongs to C++ or is a type of CUDA, so that neither the manifest nor a source of the package needs to declare it.
fn is_language(word: &str) -> bool {
    let vector = || {
        let base = word.trim_end_matches(['1', '2', '3', '4']);
        let base = base.strip_prefix('u').unwrap_or(base);
        base.len() < word.len() && ["char", "short", "int", "long", "longlong", "float", "double"].contains(&base)
    };
    WORDS.contains(&word)
        || word.starts_with("__")
        || word.starts_with("nv_")
        || word.ends_with("_t")
        || DType::ALL.iter().any(|d| d.cuda_name() == word)
        || vector()
}

impl Kernel {
    /// The names between the angle brackets of entries that are not a tunable, type or macro of the manifest and not a word of the language, with their places.
    /// A source may declare them; otherwise they are mistakes. Names qualified by a namespace are left out.
    pub fn strangers(&self, operator: &Operator) -> Vec<Text> {
        let known = self.template_names(operator);
        let defined = |word: &str| {
            self.defines.iter().any(|d| d.0 == word) || self.flags.iter().any(|f| words(f).any_is(f, word))
        };
        let mut out: Vec<Text> = vec![];
        for launch in &self.launches {
            let LaunchAction::Kernel { entry, .. } = &launch.action else { continue };
            let text = entry.value.as_str();
            let Some(open) = text.find('<') else { continue };
            for at in words(text).into_iter().filter(|w| w.start > open) {
                let word = &text[at.clone()];
                let qualified =
                    text[..at.start].trim_end().ends_with("::") || text[at.end..].trim_start().starts_with("::");
                if !qualified && !known.contains(&word) && !is_language(word) && !defined(word) {
                    out.push(Text { value: word.into(), place: entry.place.within(text, at) });
                }
            }
        }
        out
    }

    /// The names that template arguments of entries may use: tunables and types.
    pub fn template_names<'k>(&'k self, operator: &'k Operator) -> Vec<&'k str> {
        let types = operator.types.iter().map(|t| t.0.as_str());
        self.tune.iter().map(|t| t.0.as_str()).chain(types).collect()
    }

    /// The launch whose entry becomes `entry` when the tunables and types of a variant are filled in.
    pub fn launch_of(&self, entry: &str, variant: &Variant, choice: &TypeChoice) -> Option<&LaunchDecl> {
        self.launches.iter().find(|launch| match &launch.action {
            LaunchAction::Kernel { entry: declared, .. } => self.substitute(&declared.value, variant, choice) == entry,
            LaunchAction::Memset { .. } => false,
        })
    }
}

/// Whether the text at one of the places is `word`.
trait AnyIs {
    fn any_is(self, text: &str, word: &str) -> bool;
}

impl AnyIs for Vec<std::ops::Range<usize>> {
    fn any_is(self, text: &str, word: &str) -> bool {
        self.into_iter().any(|at| &text[at] == word)
    }
}
