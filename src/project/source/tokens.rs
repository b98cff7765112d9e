//! The tokens of a CUDA C++ source, from its text only. Knows comments, literals and preprocessor directives; does not know what tokens mean.

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
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0, line: 1, unclosed: None };
    let mut found: Vec<Token> = vec![];
    let mut fresh = true;
    loop {
        let line = lexer.line;
        lexer.space();
        fresh |= lexer.line != line || lexer.at == 0;
        let Some(first) = lexer.peek(0) else { break };
        let (start, line) = (lexer.at, lexer.line);
        let directive = fresh && (first == b'#' || lexer.bytes[start..].starts_with(b"%:"));
        let (kind, text) = if directive { (Kind::Directive, lexer.directive()) } else { lexer.token(first) };
        let end = lexer.at;
        let glued = found.last().is_some_and(|last: &Token| last.end == start);
        found.push(Token { kind, text, start, end, line, glued });
        fresh = false;
    }
    (found, lexer.unclosed)
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    line: u32,
    unclosed: Option<Unclosed>,
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn step(&mut self) {
        self.line += u32::from(self.bytes[self.at] == b'\n');
        self.at += 1;
    }

    /// The length of a backslash that joins a line with the next one; none at another place.
    fn splice(&self) -> Option<usize> {
        let rest = self.bytes.get(self.at..)?.strip_prefix(b"\\")?;
        let blank = rest.iter().take_while(|b| **b != b'\n' && b.is_ascii_whitespace()).count();
        (rest.get(blank) == Some(&b'\n')).then_some(blank + 2)
    }

    /// Skips white space, comments and joined lines.
    fn space(&mut self) {
        while let Some(byte) = self.peek(0) {
            if byte.is_ascii_whitespace() {
                self.step();
            } else if let Some(length) = self.splice() {
                (0..length).for_each(|_| self.step());
            } else if !self.comment() {
                return;
            }
        }
    }

    /// Skips a comment, if one begins here.
    fn comment(&mut self) -> bool {
        match (self.peek(0), self.peek(1)) {
            (Some(b'/'), Some(b'/')) => {
                while let Some(byte) = self.peek(0).filter(|b| *b != b'\n') {
                    let joined = if byte == b'\\' { self.splice() } else { None };
                    (0..joined.unwrap_or(1)).for_each(|_| self.step());
                }
                true
            }
            (Some(b'/'), Some(b'*')) => {
                let line = self.line;
                self.at += 2;
                while self.peek(0).is_some() && !self.bytes[self.at..].starts_with(b"*/") {
                    self.step();
                }
                if self.peek(0).is_none() {
                    self.unclosed = Some(Unclosed::Comment(line));
                } else {
                    self.at += 2;
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
            if let Some(length) = self.splice() {
                (0..length).for_each(|_| self.step());
                out.push(' ');
            } else if self.comment() {
                out.push(' ');
            } else if byte == b'"' || byte == b'\'' {
                let start = self.at;
                self.literal(byte);
                out.push_str(&self.text[start..self.at]);
            } else {
                let start = self.at;
                self.step();
                while !self.text.is_char_boundary(self.at) {
                    self.step();
                }
                out.push_str(&self.text[start..self.at]);
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
                    self.at += 1;
                }
                let word = &self.text[start..self.at];
                let prefix = ["u8", "u", "U", "L", ""].iter().any(|p| word == format!("{p}R"));
                match self.peek(0) {
                    Some(b'"') if prefix && self.raw() => Kind::Literal,
                    Some(quote @ (b'"' | b'\'')) if ["u8", "u", "U", "L"].contains(&word) => {
                        self.literal(quote);
                        Kind::Literal
                    }
                    _ => Kind::Word,
                }
            }
            _ => {
                let two = ["::", "->", "##"].iter().any(|two| self.bytes[start..].starts_with(two.as_bytes()));
                self.at += if two { 2 } else { 1 };
                Kind::Punctuation
            }
        };
        (kind, self.text[start..self.at].to_string())
    }

    /// Skips a string or a character. One that is not closed ends with its line.
    fn literal(&mut self, quote: u8) {
        self.at += 1;
        while let Some(byte) = self.peek(0).filter(|b| *b != b'\n') {
            if byte == b'\\' && self.peek(1).is_some() {
                self.step();
                self.step();
                continue;
            }
            self.at += 1;
            if byte == quote {
                return;
            }
        }
    }

    fn number(&mut self) {
        while let Some(byte) = self.peek(0) {
            let sign = matches!(byte, b'+' | b'-') && matches!(self.bytes[self.at - 1], b'e' | b'E' | b'p' | b'P');
            let hex = self.bytes[..self.at].ends_with(b"e")
                && self.text[..self.at]
                    .rfind("0x")
                    .is_some_and(|x| self.text[x + 2..self.at].bytes().all(|b| b.is_ascii_hexdigit()));
            let separator = byte == b'\'' && self.peek(1).is_some_and(|b| b.is_ascii_alphanumeric());
            if !(in_word(byte) || byte == b'.' || separator || sign && !hex) {
                return;
            }
            self.at += 1;
        }
    }

    /// Skips a raw string that begins at its quote. Returns false, and skips nothing, if it is none.
    fn raw(&mut self) -> bool {
        let rest = &self.bytes[self.at + 1..];
        let Some(open) = rest.iter().take(17).position(|b| *b == b'(') else { return false };
        let close = [b")", &rest[..open], b"\""].concat();
        let line = self.line;
        let length = rest[open..].windows(close.len()).position(|w| w == close);
        let end = self.at + 1 + length.map_or(rest.len(), |at| open + at + close.len());
        if length.is_none() {
            self.unclosed = Some(Unclosed::RawString(line));
        }
        while self.at < end {
            self.step();
        }
        true
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
        assert_eq!(found[3].directive(), Some(("define", "F(x)    x   + 1")));
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
