//! Finds asm statements in C++ text: `asm`, `__asm__`, `__asm`, with qualifiers, string literals that stand side by side, operands and clobbers. Knows C++'s
//! tokens and lines that continue; not PTX.

use std::ops::Range;

/// A statement, without the semicolon after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    /// Its bytes in the text.
    pub(super) range: Range<usize>,
    /// Its template, with escapes resolved. What is no literal (a macro of the source, say) ends it.
    pub(super) template: String,
    /// Whether all of the template is literals.
    pub(super) literal: bool,
    /// Its outputs and inputs, in order.
    pub(super) operands: Vec<Argument>,
    /// Whether the keyword and its qualifiers are spelled so that the macros of `kforge_cuda.h` take the statement for PTX in any case.
    pub(super) ours: bool,
}

/// An output or input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Argument {
    /// The constraint: `=r`.
    pub(super) constraint: String,
    /// The C++ expression, on one line.
    pub(super) expression: String,
}

impl Statement {
    /// The ends of lines inside the statement, with the backslashes that continue a macro.
    pub(super) fn line_breaks(&self, text: &str) -> String {
        let lines = text[self.range.clone()].split('\n').collect::<Vec<_>>();
        let (_, ended) = lines.split_last().expect("BUG: a split has a last part");
        let one = |line: &&str| if line.trim_end().ends_with('\\') { " \\\n" } else { "\n" };
        ended.iter().map(one).collect()
    }
}

/// Every statement of the text, in order.
pub(super) fn statements(text: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    let mut at = Cursor { text, at: 0 };
    while at.at < text.len() {
        if at.skip_space() || at.skip_literal() {
            continue;
        }
        let start = at.at;
        let word = at.word();
        if word.is_empty() {
            at.bump();
        } else if matches!(word, "asm" | "__asm__" | "__asm") {
            let mut inside = Cursor { text, at: at.at };
            if let Some(statement) = inside.statement(start, word) {
                at.at = statement.range.end;
                found.push(statement);
            }
        }
    }
    found
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn bump(&mut self) {
        self.at += self.rest().chars().next().map_or(0, char::len_utf8);
    }

    fn take(&mut self, token: &str) -> bool {
        let there = self.rest().starts_with(token);
        if there {
            self.at += token.len();
        }
        there
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Skips spaces, comments and the ends of continued lines. Returns whether there were any.
    fn skip_space(&mut self) -> bool {
        let start = self.at;
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            self.at += if blank > 0 {
                blank
            } else if rest.starts_with("//") {
                comment_line(rest)
            } else if let Some(comment) = rest.strip_prefix("/*") {
                comment.find("*/").map_or(rest.len(), |n| n + 4)
            } else if rest.starts_with("\\\n") {
                2
            } else if rest.starts_with("\\\r\n") {
                3
            } else {
                return self.at > start;
            };
        }
    }

    /// Skips a literal: a string, a raw string, a character, a number with its separators. Returns whether there was one.
    fn skip_literal(&mut self) -> bool {
        let rest = self.rest();
        if rest.starts_with(|c: char| c.is_ascii_digit()) {
            let end =
                rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '\''))).unwrap_or(rest.len());
            self.at += end;
            return true;
        }
        let quoted = self.raw_string().is_some() || self.quoted('"').is_some() || self.quoted('\'').is_some();
        quoted
            || (rest.starts_with(['"', '\'']) && {
                self.bump();
                true
            })
    }

    /// The content of `R"x(...)x"`.
    fn raw_string(&mut self) -> Option<&'a str> {
        let after = self.rest().strip_prefix("R\"")?;
        let (delimiter, content) = after.split_once('(')?;
        if delimiter.len() > 16 || delimiter.contains([' ', '"', '\\', '\n', ')']) {
            return None;
        }
        let end = format!("){delimiter}\"");
        let length = content.find(&end)?;
        self.at += 2 + delimiter.len() + 1 + length + end.len();
        Some(&content[..length])
    }

    /// The content of a literal between such quotes, with its escapes.
    fn quoted(&mut self, quote: char) -> Option<&'a str> {
        let content = self.rest().strip_prefix(quote)?;
        let mut escaped = false;
        for (at, c) in content.char_indices() {
            match c {
                _ if escaped => escaped = c == '\r',
                '\\' => escaped = true,
                '\n' => return None,
                c if c == quote => {
                    self.at += at + 2;
                    return Some(&content[..at]);
                }
                _ => {}
            }
        }
        None
    }

    /// The literal here, with escapes resolved.
    fn literal(&mut self) -> Option<String> {
        self.skip_space();
        self.raw_string().map(str::to_owned).or_else(|| self.quoted('"').map(unescaped))
    }

    fn statement(&mut self, start: usize, keyword: &str) -> Option<Statement> {
        let mut ours = keyword == "asm";
        loop {
            self.skip_space();
            if self.take("(") {
                break;
            }
            match self.word() {
                "volatile" | "__volatile__" | "__volatile" => ours = true,
                "inline" | "__inline__" | "__inline" => {}
                _ => return None,
            }
        }
        let mut template = self.literal()?;
        while let Some(more) = self.literal() {
            template += &more;
        }
        self.skip_space();
        let mut operands = Vec::new();
        let literal = self.rest().starts_with([':', ')']);
        if literal {
            // Outputs, inputs, clobbers.
            for section in 0..3 {
                self.skip_space();
                if !self.take(":") {
                    break;
                }
                if section < 2 {
                    self.arguments(&mut operands)?;
                } else {
                    while self.literal().is_some() {
                        self.skip_space();
                        if !self.take(",") {
                            break;
                        }
                    }
                }
            }
            self.skip_space();
            if !self.take(")") {
                return None;
            }
        } else {
            self.expression()?;
        }
        let range = start..self.at;
        // A directive inside chooses between parts of the statement.
        let directive = self.text[range.clone()].lines().skip(1).any(|line| line.trim_start().starts_with('#'));
        (!directive).then_some(Statement { range, template, literal, operands, ours })
    }

    /// `"=r"(x), "=r"(y)`
    fn arguments(&mut self, into: &mut Vec<Argument>) -> Option<()> {
        loop {
            let Some(constraint) = self.literal() else { return Some(()) };
            self.skip_space();
            if !self.take("(") {
                return None;
            }
            let expression = self.expression()?;
            into.push(Argument { constraint, expression });
            self.skip_space();
            if !self.take(",") {
                return Some(());
            }
        }
    }

    /// What stands before the parenthesis that closes, and that parenthesis: without comments, on one line.
    fn expression(&mut self) -> Option<String> {
        let (mut out, mut depth) = (String::new(), 0u32);
        while self.at < self.text.len() {
            if self.skip_space() {
                out.push(' ');
                continue;
            }
            let from = self.at;
            let Some(c) = self.rest().chars().next() else { break };
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' if depth == 0 => {
                    self.bump();
                    return Some(out.trim().to_owned());
                }
                ')' | ']' | '}' => depth = depth.checked_sub(1)?,
                ';' if depth == 0 => return None,
                _ => {}
            }
            if !self.skip_literal() && self.word().is_empty() {
                self.bump();
            }
            out += &self.text[from..self.at];
        }
        None
    }
}

/// The length of a comment to the end of its line, which a backslash continues.
fn comment_line(rest: &str) -> usize {
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        at += line.len();
        if !line.trim_end().ends_with('\\') {
            return at - usize::from(line.ends_with('\n'));
        }
    }
    at
}

/// The text of a string literal.
fn unescaped(literal: &str) -> String {
    let mut out = String::with_capacity(literal.len());
    let mut rest = literal.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match rest.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('\r') => {
                rest.next_if_eq(&'\n');
            }
            // A line that continues.
            Some('\n') | None => {}
            Some(other) => out.push(other),
        }
    }
    out
}
