//! The tokens of a CUDA C++ source, from its text only. Knows comments, literals and preprocessor directives; does not know what tokens mean.

use std::borrow::Cow;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An identifier or a keyword.
    Word,
    /// A number.
    Number,
    /// A string or a character.
    Literal,
    /// One character of punctuation, or `::`, `->` or `##`.
    Punctuation,
    /// A whole preprocessor directive, with its continued lines.
    Directive,
}

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// As the source spells it. A directive is without comments, and its lines are joined.
    pub(super) text: String,
    /// The bytes that it takes in the source.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Its line, from 1.
    pub(super) line: u32,
    /// Whether nothing is between it and the token before it.
    pub(super) glued: bool,
    /// Whether it is the name of a macro inside that macro's own expansion, so that it stays.
    pub(super) painted: bool,
}

impl Token {
    pub(super) fn is(&self, text: &str) -> bool {
        self.text == text && matches!(self.kind, Kind::Word | Kind::Punctuation)
    }

    pub(super) fn is_word(&self) -> bool {
        self.kind == Kind::Word
    }

    /// The name of a directive and the text after it; none for another token.
    pub(super) fn directive(&self) -> Option<(&str, &str)> {
        let text = (self.kind == Kind::Directive).then(|| self.text.trim_start())?;
        let text = text.strip_prefix('#').or_else(|| text.strip_prefix("%:"))?.trim_start();
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
        Some((&text[..end], text[end..].trim()))
    }
}

/// What a text ends inside of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unclosed {
    /// A comment that begins at this line.
    Comment(u32),
    /// A raw string that begins at this line.
    RawString(u32),
}

/// The tokens of a text, and what the text ends inside of.
pub(super) fn tokens(text: &str) -> (Vec<Token>, Option<Unclosed>) {
    let mut lexer = Lexer::new(text);
    let mut found: Vec<Token> = vec![];
    let (mut fresh, mut last_end) = (true, usize::MAX);
    loop {
        let line = lexer.line;
        lexer.space();
        fresh |= lexer.line != line || lexer.at == lexer.first;
        let Some(first) = lexer.peek(0) else { break };
        let (start, line) = (lexer.at, lexer.line);
        let directive = fresh && (first == b'#' || lexer.bytes[start..].starts_with(b"%:"));
        let (kind, text) = if directive { (Kind::Directive, lexer.directive()) } else { lexer.token(first) };
        let end = lexer.at;
        let glued = last_end == start;
        // Line breaks inside a token that a backslash joins belong to it.
        let (from, to) = (lexer.source(start), lexer.source(end - 1) + 1);
        found.push(Token { kind, text, start: from, end: to, line, glued, painted: false });
        (fresh, last_end) = (false, end);
    }
    (found, lexer.unclosed)
}

/// Reads a text whose joined lines are joined, as a compiler does before everything else.
struct Lexer<'a> {
    text: Cow<'a, str>,
    bytes: Vec<u8>,
    /// The places in the source of the bytes; none if these are the same.
    places: Option<Vec<usize>>,
    /// The places of the line breaks that joining removed, with how many come before each byte; by bytes of the joined text.
    joined: Vec<usize>,
    /// How many of them are passed.
    passed: usize,
    first: usize,
    at: usize,
    line: u32,
    unclosed: Option<Unclosed>,
}

/// The length of a backslash that joins a line with the next one; none at another place. White space may come before the line's end, as for g++.
fn splice(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(b"\\")?;
    let blank = rest.iter().take_while(|b| **b != b'\n' && is_space(**b)).count();
    (rest.get(blank) == Some(&b'\n')).then_some(blank + 2)
}

/// The position after a raw string whose quote is at `at`; none if no raw string begins there, the text's end if it is not closed.
fn raw_end(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    let rest = &bytes[at + 1..];
    let open = rest.iter().take(17).position(|b| *b == b'(')?;
    if rest[..open].iter().any(|b| is_space(*b) || matches!(b, b')' | b'\\' | b'"')) {
        return None;
    }
    let close = [b")", &rest[..open], b"\""].concat();
    let length = rest[open..].windows(close.len()).position(|w| w == close);
    Some((at + 1 + length.map_or(rest.len(), |at| open + at + close.len()), length.is_some()))
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn is_raw_prefix(word: &[u8]) -> bool {
    [&b"R"[..], b"u8R", b"uR", b"UR", b"LR"].contains(&word)
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// A text with its lines joined, the places of its bytes, and the positions at which line breaks are gone. In a raw string, and nowhere else, lines stay apart.
fn join(text: &str) -> (String, Vec<usize>, Vec<usize>) {
    let bytes = text.as_bytes();
    let (mut out, mut places, mut joined) = (Vec::with_capacity(bytes.len()), Vec::with_capacity(bytes.len()), vec![]);
    // What the next byte is inside of: a comment of a line, another comment, a string or a character by its quote.
    let mut inside = 0_u8;
    let mut at = 0;
    while at < bytes.len() {
        if let Some(length) = splice(&bytes[at..]) {
            joined.push(out.len());
            at += length;
            continue;
        }
        let byte = bytes[at];
        let before = |n: usize| out.len().checked_sub(n).map_or(0, |at: usize| out[at]);
        let mut end = at + 1;
        match inside {
            b'/' if byte == b'\n' => inside = 0,
            b'*' if byte == b'/' && before(1) == b'*' => inside = 0,
            b'"' | b'\'' => {
                let escapes = out.iter().rev().take_while(|b| **b == b'\\').count();
                if byte == b'\n' || byte == inside && escapes % 2 == 0 {
                    inside = 0;
                }
            }
            0 => match byte {
                b'/' if before(1) == b'/' => inside = b'/',
                b'*' if before(1) == b'/' => {
                    // `/*/` does not end.
                    inside = b'*';
                    out.push(b'*');
                    places.push(at);
                    at += 1;
                    if bytes.get(at) == Some(&b'/') {
                        out.push(b'/');
                        places.push(at);
                        at += 1;
                    }
                    continue;
                }
                b'"' => {
                    let word = out.iter().rev().take_while(|b| in_word(**b)).count();
                    match Some(&out[out.len() - word..]).filter(|w| is_raw_prefix(w)).and_then(|_| raw_end(bytes, at)) {
                        Some((after, _)) => end = after,
                        None => inside = b'"',
                    }
                }
                // A separator of digits is no quote.
                b'\'' if !is_separator(&out) => inside = b'\'',
                _ => {}
            },
            _ => {}
        }
        out.extend(&bytes[at..end]);
        places.extend(at..end);
        at = end;
    }
    (String::from_utf8_lossy(&out).into_owned(), places, joined)
}

/// Whether a quote after this text separates digits: what it follows is a number.
fn is_separator(before: &[u8]) -> bool {
    let word = before.iter().rev().take_while(|b| in_word(**b) || matches!(b, b'\'' | b'.')).count();
    word > 0 && before[before.len() - word].is_ascii_digit()
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Self {
        // A byte order mark says nothing.
        let first = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let (text, places, joined) = if (0..text.len()).any(|at| splice(&text.as_bytes()[at..]).is_some()) {
            let (joined_text, places, joined) = join(text);
            (Cow::Owned(joined_text), Some(places), joined)
        } else {
            (Cow::Borrowed(text), None, vec![])
        };
        let bytes = text.as_bytes().to_vec();
        Lexer { text, bytes, places, joined, passed: 0, first, at: first, line: 1, unclosed: None }
    }

    /// The place in the source of a byte.
    fn source(&self, at: usize) -> usize {
        self.places.as_ref().map_or(at, |places| places[at])
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn step(&mut self) {
        self.line += u32::from(self.bytes[self.at] == b'\n');
        self.at += 1;
        while self.joined.get(self.passed).is_some_and(|at| *at <= self.at) {
            self.line += 1;
            self.passed += 1;
        }
    }

    fn steps(&mut self, count: usize) {
        (0..count).for_each(|_| self.step());
    }

    /// Skips white space and comments.
    fn space(&mut self) {
        while let Some(byte) = self.peek(0) {
            if is_space(byte) {
                self.step();
            } else if !self.comment() {
                return;
            }
        }
    }

    /// Skips a comment, if one begins here.
    fn comment(&mut self) -> bool {
        match (self.peek(0), self.peek(1)) {
            (Some(b'/'), Some(b'/')) => {
                while self.peek(0).is_some_and(|b| b != b'\n') {
                    self.step();
                }
                true
            }
            (Some(b'/'), Some(b'*')) => {
                let line = self.line;
                self.steps(2);
                while self.peek(0).is_some() && !self.bytes[self.at..].starts_with(b"*/") {
                    self.step();
                }
                if self.peek(0).is_none() {
                    self.unclosed = Some(Unclosed::Comment(line));
                } else {
                    self.steps(2);
                }
                true
            }
            _ => false,
        }
    }

    /// A directive to the end of its last line.
    fn directive(&mut self) -> String {
        let mut out = String::new();
        while let Some(byte) = self.peek(0).filter(|b| *b != b'\n') {
            let start = self.at;
            let header = byte == b'<'
                && ["include", "include_next", "import"]
                    .contains(&out.trim_start_matches(['#', '%', ':', ' ', '\t']).trim_end());
            if header {
                // The name of a header holds no comments.
                while self.peek(0).is_some_and(|b| b != b'>' && b != b'\n') {
                    self.step();
                }
                out.push_str(&self.text[start..self.at]);
            } else if self.comment() {
                out.push(' ');
            } else if is_space(byte) || !in_word(byte) && byte != b'"' && byte != b'\'' {
                self.step();
                out.push_str(&self.text[start..self.at]);
            } else {
                out.push_str(&self.token(byte).1);
            }
        }
        out
    }

    fn token(&mut self, first: u8) -> (Kind, String) {
        let start = self.at;
        let kind = match first {
            b'"' | b'\'' => {
                self.literal(first);
                Kind::Literal
            }
            b'0'..=b'9' => {
                self.number();
                Kind::Number
            }
            b'.' if self.peek(1).is_some_and(|b| b.is_ascii_digit()) => {
                self.number();
                Kind::Number
            }
            byte if in_word(byte) => {
                while self.peek(0).is_some_and(in_word) {
                    self.step();
                }
                let word = &self.bytes[start..self.at];
                let prefix = [&b"u8"[..], b"u", b"U", b"L"].contains(&word);
                let raw = is_raw_prefix(word);
                match self.peek(0) {
                    Some(b'"') if raw && self.raw() => Kind::Literal,
                    Some(quote @ (b'"' | b'\'')) if prefix => {
                        self.literal(quote);
                        Kind::Literal
                    }
                    _ => Kind::Word,
                }
            }
            _ => {
                let rest = &self.bytes[start..];
                if let Some((length, means)) = digraph(rest) {
                    self.steps(length);
                    return (Kind::Punctuation, means.to_string());
                }
                let two = ["::", "->", "##"].iter().any(|two| rest.starts_with(two.as_bytes()));
                self.steps(if two { 2 } else { 1 });
                Kind::Punctuation
            }
        };
        (kind, self.text[start..self.at].to_string())
    }

    /// Skips a string or a character. One that is not closed ends with its line.
    fn literal(&mut self, quote: u8) {
        self.step();
        while let Some(byte) = self.peek(0).filter(|b| *b != b'\n') {
            if byte == b'\\' && self.peek(1).is_some_and(|b| b != b'\n') {
                self.steps(2);
                continue;
            }
            self.step();
            if byte == quote {
                return;
            }
        }
    }

    fn number(&mut self) {
        let start = self.at;
        while let Some(byte) = self.peek(0) {
            let last = self.bytes[start..self.at].last().copied().unwrap_or(b' ');
            let sign = matches!(byte, b'+' | b'-') && matches!(last, b'e' | b'E' | b'p' | b'P');
            let digits = &self.bytes[start..self.at];
            let hex = matches!(last, b'e' | b'E') && (digits.starts_with(b"0x") || digits.starts_with(b"0X"));
            let separator = byte == b'\'' && self.peek(1).is_some_and(|b| b.is_ascii_alphanumeric());
            if !(in_word(byte) || byte == b'.' || separator || sign && !hex) {
                return;
            }
            self.step();
        }
    }

    /// Skips a raw string that begins at its quote. Returns false, and skips nothing, if it is none.
    fn raw(&mut self) -> bool {
        let Some((end, closed)) = raw_end(&self.bytes, self.at) else { return false };
        if !closed {
            self.unclosed = Some(Unclosed::RawString(self.line));
        }
        self.steps(end - self.at);
        true
    }
}

/// What characters stand for that C++ has for keyboards without brackets, with their number: `<%` is `{`. In `<::`, `<` stands for itself, except before `:`
/// and `>`.
fn digraph(bytes: &[u8]) -> Option<(usize, &'static str)> {
    if bytes.starts_with(b"%:%:") {
        return Some((4, "##"));
    }
    match bytes.get(..2)? {
        b"<%" => Some((2, "{")),
        b"%>" => Some((2, "}")),
        b":>" => Some((2, "]")),
        b"%:" => Some((2, "#")),
        b"<:" if bytes.get(2) != Some(&b':') || matches!(bytes.get(3), Some(b':' | b'>')) => Some((2, "[")),
        _ => None,
    }
}

/// The identifiers of a text.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    tokens(text).0.into_iter().filter(Token::is_word).map(|token| token.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        tokens(text).0.into_iter().map(|t| t.text).collect()
    }

    #[test]
    fn comments_and_literals_are_read_as_a_compiler_reads_them() {
        assert_eq!(texts("a /* b */ c // d \\\n e\nf"), ["a", "c", "f"]);
        assert_eq!(
            texts("x = \"a // b\" + '\"' + 1'000'u;"),
            ["x", "=", "\"a // b\"", "+", "'\"'", "+", "1'000'u", ";"]
        );
        assert_eq!(texts("R\"x( \" )\" )x\" y"), ["R\"x( \" )\" )x\"", "y"]);
        assert_eq!(
            texts("1e-5f-2 0xe+1 .5f a->b::c"),
            ["1e-5f", "-", "2", "0xe", "+", "1", ".5f", "a", "->", "b", "::", "c"]
        );
    }

    #[test]
    fn a_directive_is_one_token_with_its_continued_lines() {
        let (found, _) = tokens("int a;\n  # define F(x) \\\n  x /* y\n*/ + 1 // z\nint b;");
        assert_eq!(found[3].directive(), Some(("define", "F(x)   x   + 1")));
        assert_eq!((found[3].line, found[4].line), (2, 5));
        assert_eq!(texts("a # b").len(), 3);
    }

    #[test]
    fn what_is_not_closed_is_named_by_its_line() {
        assert_eq!(tokens("a\n/* b\nc").1, Some(Unclosed::Comment(2)));
        assert_eq!(tokens("a\n\nR\"(b\nc").1, Some(Unclosed::RawString(3)));
        assert_eq!(tokens("a /* b */ \"c").1, None);
    }
}
