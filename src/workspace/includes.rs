//! What one source file includes, by its text alone. A superset: conditions are not evaluated, so every include the file can reach is found. Knows the
//! preprocessor's spelling; does not know where headers lie.

use serde::{Deserialize, Serialize};

/// What a file's text says, memoised by the digest of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scan {
    /// `#include "name"`, `__has_include("name")`, `#embed "name"`, in order, each once.
    pub quoted: Vec<String>,
    /// The same with angle brackets.
    pub angled: Vec<String>,
    /// Whether an include is computed by a macro, so that any header may be meant.
    pub computed: bool,
    /// Identifiers, sorted, each once: which tunables the file can see.
    pub identifiers: Vec<String>,
    /// Whether the file pastes tokens, so that identifiers may arise that it does not spell.
    pub pastes: bool,
    /// Lines (from one) of `assert`, `__LINE__` and the like: where they are, a comment that moves lines changes the binary.
    pub bakes_lines: bool,
}

/// Scans a text.
pub fn scan(text: &str) -> Scan {
    let mut out = Scan::default();
    let spliced = text.replace("\\\r\n", "").replace("\\\n", "");
    let code = without_comments(&spliced);
    for line in code.lines() {
        let line = line.trim_start();
        if let Some(directive) = line.strip_prefix('#').map(str::trim_start) {
            for word in ["include_next", "include", "import", "embed"] {
                if let Some(rest) = directive.strip_prefix(word) {
                    if rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
                        continue;
                    }
                    add(rest.trim_start(), &mut out);
                    break;
                }
            }
            out.pastes |= directive.contains("##");
        }
        let mut rest = line;
        while let Some(at) = rest.find("__has_include") {
            rest = &rest[at + "__has_include".len()..];
            rest = rest.strip_prefix("_next").unwrap_or(rest);
            if let Some(inside) = rest.trim_start().strip_prefix('(') {
                add(inside.trim_start(), &mut out);
            }
        }
        out.pastes |= line.contains("##");
    }
    out.identifiers = identifiers(&code);
    out.bakes_lines = ["assert", "__LINE__", "__FILE__", "__builtin_LINE", "source_location"]
        .iter()
        .any(|w| out.identifiers.binary_search(&w.to_string()).is_ok());
    out
}

/// Takes the operand of an include.
fn add(operand: &str, out: &mut Scan) {
    let (close, list) = match operand.chars().next() {
        Some('"') => ('"', &mut out.quoted),
        Some('<') => ('>', &mut out.angled),
        Some(_) => {
            out.computed = true;
            return;
        }
        None => return,
    };
    if let Some(end) = operand[1..].find(close) {
        let name = operand[1..=end].to_string();
        if !list.contains(&name) {
            list.push(name);
        }
    }
}

/// The text with comments as spaces and with string contents kept (an include's name looks like one). Newlines stay.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('/', Some('/')) => {
                while chars.peek().is_some_and(|c| *c != '\n') {
                    chars.next();
                }
            }
            ('/', Some('*')) => {
                chars.next();
                let mut last = ' ';
                for c in chars.by_ref() {
                    if c == '\n' {
                        out.push('\n');
                    }
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
                out.push(' ');
            }
            ('"', _) => {
                out.push('"');
                while let Some(c) = chars.next() {
                    out.push(c);
                    match c {
                        '\\' => out.extend(chars.next()),
                        '"' | '\n' => break,
                        _ => {}
                    }
                }
            }
            _ => out.push(c),
        }
    }
    out
}

/// Identifiers of a text without comments, sorted, each once.
fn identifiers(code: &str) -> Vec<String> {
    let mut found: Vec<&str> = code
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|w| w.starts_with(|c: char| c.is_alphabetic() || c == '_'))
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_found_and_comments_are_not() {
        let text = "#include \"a.h\"\n  #  include <b/c.cuh> // \"no.h\"\n/* #include \"no.h\"\n*/ #if __has_include(<d.h>) || __has_include ( \"e.h\" )\n#inc\\\nlude \"f.h\"\n#include \"a.h\"\nconst char *s = \"// not a comment\"; int x; // #include \"no.h\"\n#include_next <g.h>\n#embed \"h.bin\"\n#includes \"no.h\"\n";
        let s = scan(text);
        assert_eq!(s.quoted, ["a.h", "e.h", "f.h", "h.bin"]);
        assert_eq!(s.angled, ["b/c.cuh", "d.h", "g.h"]);
        assert!(!s.computed && !s.pastes);
    }

    #[test]
    fn computed_includes_and_pasting_are_noticed() {
        assert!(scan("#include HEADER(x)\n").computed);
        assert!(scan("#define CAT(a, b) a##b\n").pastes);
        assert!(scan("int f() { assert(1); }").bakes_lines);
    }

    #[test]
    fn identifiers_are_those_outside_comments() {
        let s = scan("int BLOCK = VEC4; // TILE\n/* WARP */ 0xFFu;");
        assert!(s.identifiers.contains(&"BLOCK".to_string()));
        assert!(!s.identifiers.iter().any(|i| i == "TILE" || i == "WARP" || i == "VEC"));
    }
}
