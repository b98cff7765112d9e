//! Sources in a form in which two are equal if only comments and white space differ. Knows the comments and strings of CUDA C++ and Python; parses neither.

use kforge_types::model::Language;

/// The source without comments, and with as little white space as its language permits.
pub(super) fn normalised(source: &str, language: Language) -> String {
    match language {
        Language::Cuda => cuda(source),
        Language::Triton | Language::Torch => python(source),
    }
}

/// A part of a source.
enum Piece<'a> {
    /// A comment, with the line break that ends it left out.
    Comment,
    /// A string or a character with its quotes.
    Literal(&'a str),
    /// Any other character.
    Other(char),
}

/// CUDA C++: a space only between two words, or between two signs that would be another one together. Directives keep lines of their own.
fn cuda(source: &str) -> String {
    let source = source.replace("\r\n", "\n").replace("\\\n", "");
    let mut out = String::new();
    let (mut space, mut directive) = (false, false);
    each(&source, cuda_piece, |piece| {
        let mut one = [0; 4];
        let text = match piece {
            Piece::Other('\n') if std::mem::take(&mut directive) => {
                out.push('\n');
                return;
            }
            Piece::Comment => {
                space = true;
                return;
            }
            Piece::Other(c) if c.is_whitespace() => {
                space = true;
                return;
            }
            Piece::Literal(text) => text,
            Piece::Other(c) => &*c.encode_utf8(&mut one),
        };
        // A directive begins with `#`; another `#` is in a directive.
        if text == "#" && !directive {
            directive = true;
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
        } else if space && separates(out.chars().next_back(), text.chars().next()) {
            out.push(' ');
        }
        out.push_str(text);
        space = false;
    });
    out.trim_end().to_string()
}

/// Whether white space between two characters matters.
fn separates(before: Option<char>, after: Option<char>) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '"' || c == '\'';
    let joins = |c: char| "+-<>&|=:/*#".contains(c);
    before.zip(after).is_some_and(|(a, b)| is_word(a) && is_word(b) || joins(a) && joins(b))
}

/// The piece at the start of a text, and its length.
fn cuda_piece(text: &str, before: Option<char>) -> (Piece<'_>, usize) {
    let end = |marker: &str, from: usize| text[from..].find(marker).map_or(text.len(), |at| from + at);
    if text.starts_with("//") {
        return (Piece::Comment, end("\n", 0));
    }
    if text.starts_with("/*") {
        return (Piece::Comment, (end("*/", 2) + 2).min(text.len()));
    }
    let is_raw = before == Some('R') && text.starts_with('"');
    if let Some(open) = text.find('(').filter(|_| is_raw) {
        let close = format!("){}\"", &text[1..open]);
        let length = (end(&close, open) + close.len()).min(text.len());
        return (Piece::Literal(&text[..length]), length);
    }
    // A quote after a digit or a letter separates digits.
    let is_quote =
        text.starts_with('"') || text.starts_with('\'') && !before.is_some_and(|c| c.is_ascii_alphanumeric());
    if is_quote { literal(text, 1) } else { other(text) }
}

/// Python: comments, trailing white space and empty lines are left out. Indentation stays.
fn python(source: &str) -> String {
    let mut out = String::new();
    each(&source.replace("\r\n", "\n"), python_piece, |piece| match piece {
        Piece::Comment => {}
        Piece::Literal(text) => out.push_str(text),
        Piece::Other('\n') => {
            out.truncate(out.trim_end_matches([' ', '\t']).len());
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
        }
        Piece::Other(c) => out.push(c),
    });
    out.trim_end().to_string()
}

fn python_piece(text: &str, _before: Option<char>) -> (Piece<'_>, usize) {
    match text.as_bytes() {
        [b'#', ..] => (Piece::Comment, text.find('\n').unwrap_or(text.len())),
        [b'"', b'"', b'"', ..] | [b'\'', b'\'', b'\'', ..] => literal(text, 3),
        [b'"' | b'\'', ..] => literal(text, 1),
        _ => other(text),
    }
}

/// A literal whose quote has this length. One with a quote of one character ends at its line.
fn literal(text: &str, quote: usize) -> (Piece<'_>, usize) {
    let (bytes, mut at) = (text.as_bytes(), quote);
    let mark = &bytes[..quote];
    while at < bytes.len() && !bytes[at..].starts_with(mark) && (quote > 1 || bytes[at] != b'\n') {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    if bytes.get(at..).is_some_and(|rest| rest.starts_with(mark)) {
        at += quote;
    }
    let mut length = at.min(text.len());
    while !text.is_char_boundary(length) {
        length += 1;
    }
    (Piece::Literal(&text[..length]), length)
}

fn other(text: &str) -> (Piece<'_>, usize) {
    let c = text.chars().next().unwrap_or('\n');
    (Piece::Other(c), c.len_utf8())
}

/// Calls `take` with each piece of a text.
fn each(text: &str, next: fn(&str, Option<char>) -> (Piece<'_>, usize), mut take: impl FnMut(Piece<'_>)) {
    let mut at = 0;
    while at < text.len() {
        let (piece, length) = next(&text[at..], text[..at].chars().next_back());
        take(piece);
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn same(language: Language, a: &str, b: &str) -> bool {
        normalised(a, language) == normalised(b, language)
    }

    #[test]
    fn sources_in_cuda_that_differ_in_comments_and_white_space_are_equal() {
        let a = "#include <a.h>\n// what it does\n__global__ void k(int *x) {\n  x[0] = 1'000 + 2; /* two */\n}\n";
        let b = "#include <a.h>\r\n__global__ void k( int* x )\n{ x[0]=1'000\n+2; }";
        assert!(same(Language::Cuda, a, b), "{}\n{}", normalised(a, Language::Cuda), normalised(b, Language::Cuda));
        assert_eq!(normalised(a, Language::Cuda), "#include<a.h>\n__global__ void k(int*x){x[0]=1'000+2;}");
    }

    #[test]
    fn what_means_something_else_is_not_equal() {
        for (a, b) in [
            ("a + +b", "a ++b"),
            ("int a;", "inta;"),
            ("s = \"a b\";", "s = \"ab\";"),
            ("s = \"// a\";", "s = \""),
            ("c = ' ';", "c = '';"),
            ("s = R\"x(a  b)x\";", "s = R\"x(a b)x\";"),
            ("#define A 1\nB", "#define A 1 B"),
            ("a / b", "a // b"),
            ("A\n#undef A", "A"),
        ] {
            assert!(!same(Language::Cuda, a, b), "{a} and {b}: {}", normalised(a, Language::Cuda));
        }
        for (a, b) in
            [("if x:\n  a\n  b", "if x:\n  a\nb"), ("s = 'a # b'", "s = 'a"), ("s = '''a\n\n b'''", "s = '''a\n b'''")]
        {
            assert!(!same(Language::Triton, a, b), "{a} and {b}");
        }
    }

    #[test]
    fn sources_in_python_that_differ_in_comments_and_empty_lines_are_equal() {
        let a = "import triton\n\n# a comment\ndef k(x):  # of x\n    return '#' + x   \n\n\n";
        let b = "import triton\r\ndef k(x):\n    # it returns\n\n    return '#' + x";
        assert!(
            same(Language::Triton, a, b),
            "{}\n{}",
            normalised(a, Language::Triton),
            normalised(b, Language::Triton)
        );
    }

    proptest! {
        #[test]
        fn any_text_is_normalised(text in r#"[a-zR#/*"'\\ \n()é0-9+-]{0,40}"#) {
            for language in [Language::Cuda, Language::Triton] {
                // A directive may need a line break of its own.
                prop_assert!(normalised(&text, language).len() <= text.len() + text.matches('#').count());
            }
        }
    }
}
