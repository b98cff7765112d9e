//! Finds the place of an opening bracket that is never closed. Knows TOML's strings, comments and lines; does not parse.
//!
//! A parser notices such a bracket only at something that cannot be in a list. It reports that place and misreads everything after it, but people look for the
//! bracket. A line inside an open bracket that starts a table (`[a]`, `[[a]]`) or a key (`a = `) shows that a list should have ended earlier. Within `{ }` a
//! key is valid, and within a list of lists a bracket is valid.

use std::sync::Arc;

use kforge_foundation::base::{Diagnostic, SourceFile};

/// The error about the first bracket that is not closed before the next table or key begins; none if every bracket is closed.
pub(super) fn first(file: &Arc<SourceFile>) -> Option<Diagnostic> {
    let text = file.text.as_str();
    let mut open: Vec<(char, usize)> = vec![];
    let mut at = 0;
    let mut fresh = true;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if fresh && !open.is_empty() && begins(rest, open.last().is_some_and(|o| o.0 == '{')) {
            return open.last().map(|o| error(file, *o));
        }
        // A table's header ends with its line. The parser's message about a header is good enough.
        if fresh && open.is_empty() && c == '[' {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        fresh = c == '\n' || (fresh && c.is_whitespace());
        at += match c {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' | '\'' => string(rest, c)?,
            '[' | '{' => {
                open.push((c, at));
                1
            }
            ']' | '}' => {
                let mate = if c == ']' { '[' } else { '{' };
                match open.pop() {
                    Some(last) if last.0 != mate => return Some(error(file, last)),
                    _ => 1,
                }
            }
            other => other.len_utf8(),
        };
    }
    open.last().map(|o| error(file, *o))
}

fn error(file: &Arc<SourceFile>, (bracket, at): (char, usize)) -> Diagnostic {
    let close = if bracket == '[' { ']' } else { '}' };
    Diagnostic::error("manifest.syntax", format!("this `{bracket}` is never closed"))
        .at(file, at..at + 1, "")
        .expected(format!("`{close}` before what comes after the value"))
}

/// Whether a line starts a table or a key although a bracket is open.
fn begins(line: &str, in_table: bool) -> bool {
    let line = line.lines().next().unwrap_or_default();
    let bare = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || "-_.\"'".contains(c));
    let head = line.split('#').next().unwrap_or_default().trim();
    let header = head
        .strip_prefix('[')
        .and_then(|h| h.strip_suffix(']'))
        .map(|h| h.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(h));
    if header.is_some_and(|h| bare(h) && h.starts_with(|c: char| c.is_ascii_alphabetic())) {
        return true;
    }
    let key = line.split_once('=').is_some_and(|(key, _)| bare(key.trim()) && !key.trim().starts_with(['"', '\'']));
    key && !in_table
}

/// The length in bytes of the string at the start of `rest`. None if the string does not end; the parser's message about that is better.
fn string(rest: &str, quote: char) -> Option<usize> {
    let three = [quote; 3].iter().collect::<String>();
    let end = if rest.starts_with(&three) { three.as_str() } else { &three[..1] };
    let mut at = end.len();
    loop {
        let left = rest.get(at..)?;
        if left.starts_with(end) {
            return Some(at + end.len());
        }
        let c = left.chars().next()?;
        if c == '\n' && end.len() == 1 {
            return None;
        }
        at += c.len_utf8();
        if c == '\\' && quote == '"' {
            at += rest.get(at..)?.chars().next()?.len_utf8();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<usize> {
        let file = Arc::new(SourceFile { name: "k".into(), text: text.into() });
        first(&file).map(|d| d.labels[0].span.start)
    }

    #[test]
    fn the_bracket_is_found_that_lacks_its_mate() {
        assert_eq!(at("a = [1, 2\n[b]\nc = 1\n"), Some(4));
        assert_eq!(at("a = [1,\n  2\n\n[[b.c]]\n"), Some(4));
        assert_eq!(at("a = [1, 2\nb = [1]\n"), Some(4));
        assert_eq!(at("x = { a = [1, { b = 2 }\n[t]\n"), Some(10));
        assert_eq!(at("x = { a = 1\n"), Some(4));
        assert_eq!(at("x = { a = 1,\n b = 2\n[t]\n"), Some(4));
        assert_eq!(at("x = { d = \"f32\", s = [\"n\" }\ny = 1\n"), Some(21));
    }

    #[test]
    fn closed_ones_are_left_alone_whatever_stands_in_them() {
        assert_eq!(at("a = [\n [1, 2],\n [3],\n]\n[b]\nc = \"[\"\n"), None);
        assert_eq!(at("a = [ # [\n '[',\n \"\\\"[\",\n]\n"), None);
        assert_eq!(at("x = { a = 1,\n b = [2] }\n"), None);
        assert_eq!(at("s = \"\"\"\n[x\n\"\"\"\n[t]\n"), None);
        assert_eq!(at("a = [\n \"x == 1\",\n \"y = 2\",\n]\n"), None);
    }
}
