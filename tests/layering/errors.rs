//! Errors have types: no public signature has a text as its error, and no error type only wraps a text. Only the command line uses exit codes and prints. Files
//! are read as tokens; attributes are also read as lines.

use std::fs;

use super::packages::{sources, src};
use super::paths::tokens;

/// The words of a file with their lines.
type Tokens = [(String, usize)];

/// The beginning of the unit tests of a file: at its end, by the style of the project.
const TESTS: &str = "#[cfg(test)]\nmod tests {";

/// The faults in the code of a file, one per line.
fn faults(text: &str) -> Vec<(usize, String)> {
    let code = text.find(TESTS).map_or(text, |at| &text[..at]);
    let tokens = tokens(code);
    let mut found = vec![];
    for (at, (word, line)) in tokens.iter().enumerate() {
        if word == "pub" && is_public(&tokens[at..]) {
            found.extend(texts(&tokens[at..end(&tokens, at)]));
        }
        // Implementations of foreign traits state their error type like this.
        let (name, is, what) = (word_at(&tokens, at + 1), word_at(&tokens, at + 2), word_at(&tokens, at + 3));
        if word == "type" && ["Err", "Error"].contains(&name) && is == "=" && what == "String" {
            found.push((*line, "a text as the error of a trait".to_string()));
        }
    }
    found.extend(wrapped(code));
    found.sort();
    found.dedup();
    found
}

fn word_at(tokens: &Tokens, at: usize) -> &str {
    tokens.get(at).map_or("", |(word, _)| word)
}

/// Whether an item that begins with `pub` is visible beyond its module.
fn is_public(tokens: &Tokens) -> bool {
    word_at(tokens, 1) != "(" || word_at(tokens, 2) == "crate"
}

/// The end of the item that begins with `pub`: of its signature, or of a whole trait or enumeration, whose parts are as public as the item.
fn end(tokens: &Tokens, from: usize) -> usize {
    let whole =
        tokens[from..].iter().take(6).map(|(word, _)| word.as_str()).find(|w| ["trait", "enum", "fn"].contains(w));
    let whole = matches!(whole, Some("trait" | "enum"));
    let mut depth = 0i32;
    for (at, (word, _)) in tokens.iter().enumerate().skip(from) {
        let arrow = at > 0 && word == ">" && ["-", "="].contains(&word_at(tokens, at - 1));
        match word.as_str() {
            "{" if depth == 0 && !whole => return at,
            "(" | "[" | "<" | "{" => depth += 1,
            ">" if arrow => {}
            ")" | "]" | ">" | "}" => {
                depth -= 1;
                if depth < 0 || (whole && depth == 0 && word == "}") {
                    return at;
                }
            }
            // A field ends with a comma, every other item with a semicolon.
            "," | ";" if depth == 0 => return at,
            _ => {}
        }
    }
    tokens.len()
}

/// The results in a signature whose error is a text or any error.
fn texts(signature: &Tokens) -> Vec<(usize, String)> {
    let mut found = vec![];
    for (at, (word, line)) in signature.iter().enumerate() {
        if word != "Result" || word_at(signature, at + 1) != "<" {
            continue;
        }
        let error = error(&signature[at + 2..]);
        let is_text = error.contains(&"String");
        let is_anything = error.contains(&"dyn") && error.contains(&"Error");
        if is_text || is_anything {
            found.push((*line, format!("a result whose error is `{}`", error.join(""))));
        }
    }
    found
}

/// The words of the second type of a result, starting after its `<`.
fn error(tokens: &Tokens) -> Vec<&str> {
    let (mut depth, mut second, mut out) = (1, false, vec![]);
    for (at, (word, _)) in tokens.iter().enumerate() {
        let arrow = at > 0 && word == ">" && ["-", "="].contains(&word_at(tokens, at - 1));
        match word.as_str() {
            "(" | "[" | "<" => depth += 1,
            ")" | "]" | ">" if !arrow => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if word == "," && depth == 1 {
            second = true;
        } else if second {
            out.push(word.as_str());
        }
    }
    out
}

/// Error types that are only a text.
fn wrapped(code: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = code.lines().map(str::trim).collect();
    let only_text = |line: &&str| {
        let line = line.trim_end_matches([',', ';']);
        line.ends_with("(String)") || line.ends_with("(pub String)")
    };
    let pairs = lines.windows(2).enumerate().filter(|(_, pair)| pair[0] == "#[error(\"{0}\")]" && only_text(&pair[1]));
    pairs.map(|(at, pair)| (at + 2, format!("an error that only wraps a text: `{}`", pair[1]))).collect()
}

/// Every file of the project's code except tests and build scripts, by its path in `src`.
fn code(within: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let name = |file: &std::path::PathBuf| file.strip_prefix(src()).unwrap().to_string_lossy().into_owned();
    let is_test = |name: &str| {
        let file = name.rsplit('/').next().unwrap_or_default();
        name.contains("/tests/") || file == "tests.rs" || file.ends_with("_tests.rs") || file == "testing.rs"
    };
    let files = sources(&src()).into_iter().map(|file| (name(&file), file));
    let files = files.filter(|(name, _)| within(name) && !is_test(name) && !name.ends_with("/build.rs"));
    files.map(|(name, file)| (name, fs::read_to_string(file).unwrap())).collect()
}

#[test]
fn no_public_signature_gives_a_text_for_an_error() {
    let mut wrong = vec![];
    // The code of commands is part of the command line.
    for (name, text) in code(|name| !name.starts_with("cli/")) {
        wrong.extend(faults(&text).into_iter().map(|(line, what)| format!("{name}:{line}: {what}")));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn exit_codes_and_printing_are_the_command_line_s_alone() {
    let mut wrong = vec![];
    for (name, text) in code(|name| !name.starts_with("cli/") && name.contains('/')) {
        let tokens = tokens(&text);
        for (at, (word, line)) in tokens.iter().enumerate() {
            let prints = ["print", "println", "eprint", "eprintln"].contains(&word.as_str());
            if word == "Exit" || (prints && word_at(&tokens, at + 1) == "!") {
                wrong.push(format!("{name}:{line}: `{word}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn planted_texts_are_found() {
    let wrong = [
        "pub fn f() -> Result<u8, String> { todo() }",
        "pub(crate) fn f(\n    a: u8,\n) -> Result<[u8; 3], String> {}",
        "pub fn f() -> Result<Vec<u8>, Vec<String>> {}",
        "pub fn f() -> Result<(), (String, Vec<u8>)> {}",
        "pub fn f() -> std::result::Result<BTreeMap<u8, fn(u8) -> u8>, String>;",
        "pub fn f() -> Result<(), Box<dyn std::error::Error>> {}",
        "pub fn f(g: impl FnOnce(u8) -> Result<(), String>) {}",
        "pub type T = Result<u8, String>;",
        "pub const fn f() -> Result<u8, String> {}",
        "pub struct S {\n    a: u8,\n    pub b: BTreeMap<u8, Result<u8, String>>,\n}",
        "pub struct S(pub Result<u8, String>);",
        "pub enum E {\n    A,\n    B(Result<u8, String>),\n}",
        "pub trait T {\n    fn a(&self) {}\n    fn f(&self) -> Result<u8, String>;\n}",
        "impl FromStr for S {\n    type Err = String;\n}",
        "/// Why.\n#[error(\"{0}\")]\npub struct Refused(pub String);",
        "enum E {\n    #[error(\"{0}\")]\n    Refused(String),\n}",
    ];
    for text in wrong {
        assert_eq!(faults(text).len(), 1, "{text}: {:?}", faults(text));
    }
}

#[test]
fn what_is_no_text_is_not_accused() {
    let right = [
        "fn f() -> Result<u8, String> {}",
        "pub(super) fn f() -> Result<u8, String> {}",
        "pub(in crate::a) fn f() -> Result<u8, String> {}",
        "pub fn f() -> Result<String, Error> { g::<Result<u8, String>>() }",
        "pub fn f() -> io::Result<Vec<String>> {}",
        "pub struct S {\n    a: Result<u8, String>,\n    pub b: u8,\n}",
        "pub trait T {}\nfn f() -> Result<u8, String> {}",
        "// pub fn f() -> Result<u8, String>",
        "#[error(\"`{0}` is no digest\")]\npub struct NotADigest(pub String);",
        "pub fn f() {}\n#[cfg(test)]\nmod tests {\n    pub fn f() -> Result<u8, String> {}\n}",
    ];
    for text in right {
        assert_eq!(faults(text), [], "{text}");
    }
}
