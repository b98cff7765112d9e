//! Names of the manifest as names in C, C++, Rust and Python at once: an artifact has the same functions and arguments in every language. Knows keywords.

use std::collections::BTreeSet;

use kforge_foundation::base::is_hidden;

/// Words that are no names in one of the languages, and names that every loader uses for itself. Sorted.
const TAKEN: [&str; 160] = [
    "False",
    "NULL",
    "None",
    "Self",
    "True",
    "abstract",
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "as",
    "asm",
    "assert",
    "async",
    "atomic",
    "auto",
    "await",
    "become",
    "bitand",
    "bitor",
    "bool",
    "box",
    "break",
    "bytes",
    "case",
    "catch",
    "char",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "context",
    "continue",
    "crate",
    "decltype",
    "def",
    "default",
    "del",
    "delete",
    "device",
    "do",
    "double",
    "dyn",
    "dynamic_cast",
    "elif",
    "else",
    "enum",
    "errno",
    "except",
    "explicit",
    "export",
    "extern",
    "false",
    "final",
    "finally",
    "float",
    "fn",
    "for",
    "friend",
    "from",
    "gen",
    "global",
    "goto",
    "if",
    "impl",
    "import",
    "in",
    "inline",
    "int",
    "int64_t",
    "is",
    "kforge",
    "lambda",
    "let",
    "linux",
    "long",
    "loop",
    "macro",
    "main",
    "match",
    "mod",
    "module",
    "move",
    "mut",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "nonlocal",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "out",
    "override",
    "pass",
    "print",
    "priv",
    "private",
    "protected",
    "pub",
    "public",
    "raise",
    "ref",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "self",
    "short",
    "signed",
    "size_t",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "stream",
    "struct",
    "super",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "trait",
    "true",
    "try",
    "type",
    "typedef",
    "typeof",
    "uint64_t",
    "uintptr_t",
    "union",
    "unix",
    "unsafe",
    "unsigned",
    "unsized",
    "use",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "where",
    "while",
    "with",
    "workspace",
    "workspace_bytes",
    "xor",
    "yield",
];

/// What every loader has beside the functions of kernels.
pub const OWN: [&str; 18] = [
    "message",
    "where",
    "OK",
    "ROOT",
    "IMPLEMENTATION",
    "ops",
    "Error",
    "DriverError",
    "NeedsGrad",
    "NoDriver",
    "NullPointer",
    "Overlap",
    "WrongAlignment",
    "WrongDevice",
    "WrongDType",
    "WrongShape",
    "WrongStride",
    "WrongValue",
];

/// A text as an identifier of every language: other characters become `_`, and what is taken gets a `_` at its end.
pub fn identifier(text: &str) -> String {
    let mut name: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, 'k');
    }
    // Two underscores, and one before a capital, are reserved in C and C++; one at the beginning hides a name in Python.
    while name.contains("__") {
        name = name.replace("__", "_");
    }
    let trimmed = name.trim_start_matches('_');
    let mut name = if trimmed.is_empty() { "k".to_string() } else { trimmed.to_string() };
    if TAKEN.contains(&name.as_str()) || is_macro(&name) {
        name.push('_');
    }
    // What loaders call their own begins so.
    if name.starts_with("kf_") || name.starts_with("v_") {
        name.insert(0, 'k');
    }
    name
}

/// Whether the headers of C that programs usually include have a macro of this name.
fn is_macro(name: &str) -> bool {
    const NAMES: [&str; 22] = [
        "BUFSIZ",
        "DOMAIN",
        "EDOM",
        "EILSEQ",
        "EOF",
        "ERANGE",
        "HUGE",
        "I",
        "INFINITY",
        "NAN",
        "OVERFLOW",
        "PLOSS",
        "SIGABRT",
        "SIGFPE",
        "SIGILL",
        "SIGINT",
        "SIGSEGV",
        "SIGTERM",
        "SING",
        "TLOSS",
        "UNDERFLOW",
        "X_TLOSS",
    ];
    const BEGINNINGS: [&str; 13] =
        ["CHAR_", "CLOCKS_", "DBL_", "EXIT_", "FLT_", "FP_", "HUGE_", "INT_", "LONG_", "MATH_", "M_", "RAND_", "SIG_"];
    let is_upper = name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    NAMES.contains(&name) || is_upper && BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// Whether a text is an identifier, as the language of manifests has them.
pub fn is_identifier(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit()) && is_made_of(text, "_")
}

/// Whether a text consists of letters, digits and some other characters.
pub fn is_made_of(text: &str, others: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

/// A text that only people read, without what would end a comment or a string in any of the languages.
pub fn shown(text: &str) -> String {
    let plain = |c: char| match c {
        '"' => '\'',
        '\\' => '/',
        c if c.is_control() || is_hidden(c) => ' ',
        c => c,
    };
    let text: String = text.chars().map(plain).collect();
    text.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")
}

/// Identifiers that differ from each other.
#[derive(Debug, Default)]
pub struct Distinct(BTreeSet<String>);

impl Distinct {
    /// Identifiers that also differ from these.
    pub fn apart_from(taken: &[&str]) -> Self {
        Distinct(taken.iter().map(|name| name.to_ascii_lowercase()).collect())
    }

    /// The identifier of a text that differs from those before it.
    pub fn name(&mut self, text: &str) -> String {
        let mut name = identifier(text);
        while !self.0.insert(name.to_ascii_lowercase()) {
            name.push('_');
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_read_ends_no_comment_and_no_string() {
        assert_eq!(shown("a */ b\n\"c\\ ??/ \u{85}"), "a * / b 'c/ ? ?/  ");
        assert_eq!(shown("a\u{202e}b\u{2066}c\u{2028}d\u{200f}e"), "a b c d e");
        assert!(is_identifier("k_1") && !is_identifier("1k") && !is_identifier("a b") && !is_identifier(""));
    }

    #[test]
    fn names_are_names_in_every_language() {
        let all = ["rows", "lambda", "fn", "template", "my-kernels", "3d", "_x", "a__b", "stream", "K"];
        let expected = ["rows", "lambda_", "fn_", "template_", "my_kernels", "k3d", "x", "a_b", "stream_", "K"];
        assert_eq!(all.map(identifier), expected);
        // Macros of `math.h` and others would make another thing of an argument.
        let macros = ["NAN", "M_E", "I", "EOF", "HUGE_VAL", "INFINITY", "SIGINT"];
        assert_eq!(macros.map(identifier), macros.map(|name| format!("{name}_")));
        assert_eq!(["M", "N", "K", "INNER", "M_e", "SIGMA"].map(identifier), ["M", "N", "K", "INNER", "M_e", "SIGMA"]);
        let mut names = Distinct::default();
        assert_eq!(["x", "X", "x"].map(|name| names.name(name)), ["x", "X_", "x__"]);
    }
}
