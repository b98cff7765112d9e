//! Text fitted to a width: lines are broken at spaces and continue with an indent. Knows ANSI styles, which take no columns; knows no terminal.
//!
//! | a word longer than a line | is |
//! |---|---|
//! | with `/`: a path or the id of a step | not broken, because it is copied |
//! | another one, such as the label of a variant | broken after `,`; a part that is longer still, after `=`, `_`, `;` or `-` |

/// The text with lines of at most `width` columns, if spaces and labels of variants allow it. Continued lines are indented by `hang` more columns than their first
/// line. Without a width the text is unchanged.
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
        let mut gap = spaces;
        for part in parts(word, width - under) {
            let takes = columns(part);
            if !first && at + gap + takes > width {
                out.push('\n');
                out.push_str(&" ".repeat(under));
                at = under + takes;
            } else {
                out.push_str(&rest[..gap]);
                at += gap + takes;
            }
            out.push_str(part);
            (gap, first) = (0, false);
        }
        rest = &after[word.len()..];
    }
}

/// The parts of a word between which a line may end: the word itself, if it has room in a line.
fn parts(word: &str, room: usize) -> Vec<&str> {
    if columns(word) <= room || word.contains('/') {
        return vec![word];
    }
    let small = |part: &'_ str| columns(part) <= room;
    let tunables = word.split_inclusive(',');
    let of = |part| -> Vec<&str> {
        if small(part) { vec![part] } else { part.split_inclusive(['=', '_', ';', '-']).collect() }
    };
    tunables.flat_map(of).collect()
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
    fn a_label_that_is_longer_than_a_line_breaks_at_its_separators_and_a_path_does_not() {
        let label = "TILE_M=128,TILE_N=64,STAGES=3,VEC=4";
        let line = format!("  champion: \u{1b}[1m{label}\u{1b}[0m (declared)");
        let text = fit(&line, Some(30), 2);
        let lines: Vec<&str> = text.lines().collect();
        let expected = ["  champion: \u{1b}[1mTILE_M=128,", "    TILE_N=64,STAGES=3,VEC=4\u{1b}[0m", "    (declared)"];
        assert_eq!(lines, expected);
        // One that has room in a line of its own stays whole.
        assert_eq!(fit(&format!("a few words {label}"), Some(40), 2), format!("a few words\n  {label}"));
        let name = "a_kernel_with_a_name_of_many_words";
        assert_eq!(fit(name, Some(20), 2), "a_kernel_with_a_\n  name_of_many_words");
        let path = "target/kforge/a_long_name,of=a_folder/report.html";
        assert_eq!(fit(path, Some(20), 2), path);
    }

    #[test]
    fn styles_take_no_room_and_long_words_stay_whole() {
        assert_eq!(fit("\u{1b}[1mone\u{1b}[0m two", Some(7), 2), "\u{1b}[1mone\u{1b}[0m two");
        assert_eq!(fit("a/very/long/path is here", Some(8), 2), "a/very/long/path\n  is\n  here");
    }
}
