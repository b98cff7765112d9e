//! Text fitted to a width: lines are broken at spaces and continue with an indent. Knows ANSI styles, which take no columns; knows no terminal.

/// The text with lines of at most `width` columns, if spaces allow it. Continued lines are indented by `hang` more columns than their first line. Without a
/// width the text is unchanged. A word that is too long is not broken, because ids and paths are copied.
pub fn fit(styled: &str, width: Option<usize>, hang: usize) -> String {
    let Some(width) = width else { return styled.to_string() };
    let mut out = String::with_capacity(styled.len());
    for line in styled.split_inclusive('\n') {
        let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
        fit_line(&mut out, text, width, hang);
        out.push_str(end);
    }
    out
}

fn fit_line(out: &mut String, line: &str, width: usize, hang: usize) {
    if columns(line) <= width {
        return out.push_str(line);
    }
    let body = line.trim_start_matches(' ');
    let indent = line.len() - body.len();
    let under = (indent + hang).min(width / 2);
    out.push_str(&line[..indent]);
    let (mut at, mut first) = (indent, true);
    let mut rest = body;
    while !rest.is_empty() {
        let spaces = rest.len() - rest.trim_start_matches(' ').len();
        let after = &rest[spaces..];
        let word = &after[..after.find(' ').unwrap_or(after.len())];
        let takes = columns(word);
        if !first && at + spaces + takes > width {
            out.push('\n');
            out.push_str(&" ".repeat(under));
            at = under + takes;
        } else {
            out.push_str(&rest[..spaces]);
            at += spaces + takes;
        }
        out.push_str(word);
        rest = &after[word.len()..];
        first = false;
    }
}

/// Columns of a text without its styles. A character takes one column.
fn columns(styled: &str) -> usize {
    let mut n = 0;
    let mut chars = styled.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            chars.by_ref().find(char::is_ascii_alphabetic);
        } else {
            n += 1;
        }
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_go_on_under_their_indent() {
        assert_eq!(fit("  one two three\nfour\n", Some(10), 2), "  one two\n    three\nfour\n");
        assert_eq!(fit("  one  two three", Some(12), 2), "  one  two\n    three");
        assert_eq!(fit("one two", None, 2), "one two");
    }

    #[test]
    fn styles_take_no_room_and_long_words_stay_whole() {
        assert_eq!(fit("\u{1b}[1mone\u{1b}[0m two", Some(7), 2), "\u{1b}[1mone\u{1b}[0m two");
        assert_eq!(fit("a/very/long/path is here", Some(8), 2), "a/very/long/path\n  is\n  here");
    }
}
