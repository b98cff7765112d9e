//! The includes of one source file, from its text only. The result is a superset: conditions are not evaluated, so every include that the file can reach is
//! found. Knows the preprocessor's syntax, but not where headers are.

use serde::{Deserialize, Serialize};

/// The scan of a file's text, memoized by the digest of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scan {
    /// `#include "name"`, `__has_include("name")`, `#embed "name"`, in order, each once.
    pub quoted: Vec<String>,
    /// The same directives with angle brackets.
    pub angled: Vec<String>,
    /// Whether a macro computes an include, so that it may include any header.
    pub computed: bool,
    /// Identifiers, sorted, each once. They show which tunables the file can use.
    pub identifiers: Vec<String>,
    /// The identifiers in preprocessor directives, sorted, each once. A name in a condition, in a macro's definition or in a computed include must be a macro
    /// there. Pragmas and parameters of macros do not count. Required when a scan is read: a memo without this field is discarded.
    pub directives: Vec<String>,
    /// Whether the file pastes tokens, so that it may use identifiers that it does not spell out.
    pub pastes: bool,
    /// Whether the file uses `assert`, `__LINE__` and the like, so that a comment that moves lines changes the binary.
    pub bakes_lines: bool,
}

/// Directives that name a file.
const INCLUDES: [&str; 4] = ["include_next", "include", "import", "embed"];

/// Scans a text.
pub fn scan(text: &str) -> Scan {
    let mut out = Scan::default();
    let code = Text::of(text).code();
    let mut asked = Vec::new();
    for line in code.lines() {
        let line = line.trim_start();
        if let Some(directive) = line.strip_prefix('#').map(str::trim_start) {
            asked.extend(asks(directive));
            for word in INCLUDES {
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
    asked.sort_unstable();
    asked.dedup();
    out.directives = asked;
    out.identifiers = identifiers(&code);
    out.bakes_lines = ["assert", "__LINE__", "__FILE__", "__builtin_LINE", "source_location"]
        .iter()
        .any(|w| out.identifiers.binary_search(&w.to_string()).is_ok());
    out
}

/// A text without its comments. Line numbers do not change.
pub(super) fn without_comments(text: &str) -> String {
    Text::of(text).code()
}

/// Adds the operand of an include.
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

/// The identifiers that a directive depends on. `directive` is the text after its `#`.
fn asks(directive: &str) -> Vec<String> {
    let (word, operand) = split_word(directive);
    let rest = without_strings(operand);
    match word {
        "pragma" | "error" | "warning" => vec![],
        word if INCLUDES.contains(&word) && operand.trim_start().starts_with(['"', '<']) => vec![],
        "define" => {
            let (_, after) = split_word(rest.trim_start());
            let list = after.strip_prefix('(').and_then(|list| list.split_once(')')).map_or("", |(list, _)| list);
            let parameters = identifiers(list);
            identifiers(&rest).into_iter().filter(|name| !parameters.contains(name)).collect()
        }
        _ => identifiers(&rest),
    }
}

/// Splits a text into its first word and the rest.
fn split_word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c| !in_word(c)).unwrap_or(text.len()))
}

/// A line without the contents of its string literals.
fn without_strings(line: &str) -> String {
    let mut out = String::new();
    let (mut inside, mut chars) = (false, line.chars());
    while let Some(c) = chars.next() {
        match c {
            '"' => inside = !inside,
            // An escaped character does not end the string.
            '\\' if inside => drop(chars.next()),
            _ if inside => {}
            _ => out.push(c),
        }
    }
    out
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What comes before a character on its line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinePrefix {
    /// Only white space.
    Nothing,
    /// White space and the `#` of a directive.
    Hash,
    /// Anything else.
    More,
}

/// A text, read as a compiler reads it: spliced lines, comments, literals.
struct Text {
    chars: Vec<char>,
    at: usize,
}

impl Text {
    fn of(text: &str) -> Self {
        Text { chars: text.chars().collect(), at: 0 }
    }

    /// The next character. A backslash at a line's end, optionally followed by white space as g++ allows, joins the line with the next.
    fn peek(&mut self) -> Option<char> {
        while self.chars.get(self.at) == Some(&'\\') {
            let space = |c: &&char| c.is_whitespace() && **c != '\n';
            let end = self.at + 1 + self.chars[self.at + 1..].iter().take_while(space).count();
            if self.chars.get(end) != Some(&'\n') {
                break;
            }
            self.at = end + 1;
        }
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn take(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        self.at += usize::from(there);
        there
    }

    /// The text with spliced lines joined. Comments and character literals become spaces, and raw strings become empty. Strings stay, because an include's name
    /// looks like one.
    fn code(mut self) -> String {
        let mut out = String::with_capacity(self.chars.len());
        let mut before = LinePrefix::Nothing;
        // Whether a header's name may come next; nothing in it is a comment or a literal.
        let mut names = false;
        while let Some(c) = self.next() {
            let was = before;
            if !c.is_whitespace() {
                before = LinePrefix::More;
            }
            match c {
                '\n' => {
                    out.push('\n');
                    (before, names) = (LinePrefix::Nothing, false);
                }
                '/' if self.take('/') => while self.peek().is_some_and(|c| c != '\n') && self.next().is_some() {},
                '/' if self.take('*') => {
                    self.comment();
                    out.push(' ');
                    before = was;
                }
                '"' | '<' if names && self.header(c, &mut out) => names = false,
                '"' => {
                    out.push('"');
                    self.quoted('"', &mut out);
                }
                '\'' => {
                    self.quoted('\'', &mut String::new());
                    out.push(' ');
                }
                '#' => {
                    out.push('#');
                    before = if was == LinePrefix::Nothing { LinePrefix::Hash } else { LinePrefix::More };
                }
                // The alternative spelling of `#`.
                '%' if self.take(':') => {
                    out.push('#');
                    before = if was == LinePrefix::Nothing { LinePrefix::Hash } else { LinePrefix::More };
                }
                c if c.is_ascii_digit() => self.number(c, &mut out),
                c if in_word(c) => {
                    let word = self.word(c);
                    out.push_str(&word);
                    names =
                        word.starts_with("__has_include") || (was == LinePrefix::Hash && INCLUDES.contains(&&*word));
                    if ["R", "LR", "uR", "UR", "u8R"].contains(&&*word) && self.peek() == Some('"') && self.raw() {
                        out.push_str("\"\"");
                    }
                }
                c => {
                    out.push(c);
                    names &= c.is_whitespace() || c == '(';
                }
            }
        }
        out
    }

    /// Skips the rest of a comment.
    fn comment(&mut self) {
        while let Some(c) = self.next() {
            if c == '*' && self.take('/') {
                return;
            }
        }
    }

    /// Copies the rest of a literal. An unclosed literal ends with its line.
    fn quoted(&mut self, close: char, out: &mut String) {
        while let Some(c) = self.peek().filter(|c| *c != '\n') {
            self.at += 1;
            out.push(c);
            if c == close {
                return;
            }
            if c == '\\' && self.peek().is_some_and(|c| c != '\n') {
                out.extend(self.next());
            }
        }
    }

    /// Copies a header's name if it is closed on the same line.
    fn header(&mut self, open: char, out: &mut String) -> bool {
        let close = if open == '<' { '>' } else { open };
        let start = self.at;
        let mut name = String::from(open);
        while let Some(c) = self.next().filter(|c| *c != '\n') {
            name.push(c);
            if c == close {
                out.push_str(&name);
                return true;
            }
        }
        self.at = start;
        false
    }

    /// Copies a number without its digit separators.
    fn number(&mut self, first: char, out: &mut String) {
        out.push(first);
        while let Some(c) = self.peek() {
            let start = self.at;
            if in_word(c) || c == '.' {
                out.push(c);
                self.at += 1;
            } else if !(self.take('\'') && self.peek().is_some_and(in_word)) {
                self.at = start;
                return;
            }
        }
    }

    fn word(&mut self, first: char) -> String {
        let mut word = String::from(first);
        while let Some(c) = self.peek().filter(|c| in_word(*c)) {
            self.at += 1;
            word.push(c);
        }
        word
    }

    /// Skips a raw string, starting at its quote. Lines are not spliced in raw strings. Returns false, and skips nothing, if the text is not a raw string.
    fn raw(&mut self) -> bool {
        let rest = &self.chars[self.at + 1..];
        let Some(open) = rest.iter().take(17).position(|c| *c == '(') else { return false };
        let mark = &rest[..open];
        if mark.iter().any(|c| c.is_whitespace() || matches!(c, ')' | '\\' | '"')) {
            return false;
        }
        let close: Vec<char> = [&[')'], mark, &['"']].concat();
        let body = &rest[open + 1..];
        let length = body.windows(close.len()).position(|w| w == close).map_or(body.len(), |at| at + close.len());
        self.at += 1 + open + 1 + length;
        true
    }
}

/// Identifiers of a text without comments, sorted, each once.
fn identifiers(code: &str) -> Vec<String> {
    let mut found: Vec<&str> =
        code.split(|c| !in_word(c)).filter(|w| w.starts_with(|c: char| c.is_alphabetic() || c == '_')).collect();
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

    #[test]
    fn literals_hide_nothing_and_spell_nothing() {
        let found = |text: &str| {
            let s = scan(&format!("{text}\n#include \"a.h\"\nint SEEN;\n"));
            s.quoted == ["a.h"] && s.identifiers.contains(&"SEEN".to_string())
        };
        for text in [
            "char c = '\"'; const char *s = \"/*\";",
            "char c = '\\''; const char *s = \"/*\";",
            "char c = '\\\\'; char d = L'\"';",
            "int n = 1'000; const char *s = \"/*\"; int m = 0x1'F'A;",
            "const char *s = R\"(\" /* )\";",
            "const char *s = u8R\"x(\n)\" /* \\\n)y\" )x\";",
            "#error don't /* here",
            "const char *s = R\"(a\\\n)\";",
            "const char *s = \"a\\\"/*\";",
            "#include <b//c.h>",
            "#include <b/*c.h>",
        ] {
            assert!(found(text), "{text}");
        }
        assert!(!found("// a comment goes on \\ "));
        assert_eq!(scan("#include <b//c.h>\n").angled, ["b//c.h"]);
        assert_eq!(scan("%:include \"a.h\"\n# /*\n*/ include /*\n*/ \"b.h\"\n").quoted, ["a.h", "b.h"]);
        let s = scan("char c = 'N'; const char *s = R\"(\n#include \"no.h\"\nM)\"; int n = 1'0K;");
        assert!(s.quoted.is_empty() && !s.identifiers.iter().any(|i| ["N", "M", "K"].contains(&i.as_str())), "{s:?}");
    }

    #[test]
    fn directives_ask_what_they_expand() {
        let s = scan(
            "#if A == 3 // NO\n#elif defined(B)\n#endif\n#ifdef C\n#endif\n#define D(NO) (NO + E)\n#define F \\\n  G /*\n*/ H\n#include I(x)\n#include <NO.h>\n\
             #include \"NO.h\"\n#pragma unroll NO\n#error NO\n#define J \"NO \\\" NO\" K\nint NO;\n",
        );
        let asked: Vec<&str> = s.directives.iter().map(String::as_str).filter(|n| n.len() == 1 || *n == "NO").collect();
        assert_eq!(asked, ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "x"]);
    }

    #[test]
    fn a_memo_without_directives_is_no_scan() {
        let mut memo = serde_json::to_value(scan("#if A\n#endif\n")).unwrap();
        assert!(serde_json::from_value::<Scan>(memo.clone()).is_ok());
        memo.as_object_mut().unwrap().remove("directives");
        assert!(serde_json::from_value::<Scan>(memo).is_err());
    }
}
