//! Text fitted to a width: lines are broken at spaces and continue with an indent, or the middle of a text is left out. Knows ANSI styles, which take no
//! columns; knows no terminal.
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

/// What stands for the characters that are left out of a line.
const LEFT_OUT: char = '…';

/// At most `most` characters of a line without styles. What does not fit is left out of its middle, because the end often says which one it is: the trial of a
/// finding, the shape of a step. `head` of six characters that stay are from the beginning, the others from the end.
pub fn shortened(line: &str, most: usize, head: usize) -> String {
    let all = line.chars().count();
    if all <= most {
        return line.into();
    }
    let kept = most.saturating_sub(1);
    let head = kept * head.min(6) / 6;
    let beginning = line.chars().take(head);
    let end = line.chars().skip(all - (kept - head));
    // A width of nothing has no room for the mark either.
    beginning.chain((most > 0).then_some(LEFT_OUT)).chain(end).collect()
}

/// At most about `most` characters of a text of several lines, and whether it is all of it. Whole lines are left out of its middle. Where not even the first
/// line has room, its own middle is left out.
pub fn shortened_lines(text: &str, most: usize) -> (String, bool) {
    if text.chars().count() <= most {
        return (text.into(), true);
    }
    let lines: Vec<&str> = text.lines().collect();
    let size = |line: &&str| line.chars().count() + 1;
    let fitting = |lines: &mut dyn Iterator<Item = &&str>, mut room: usize| {
        let has_room = |line: &&&str| match room.checked_sub(size(line)) {
            Some(rest) => {
                room = rest;
                true
            }
            None => false,
        };
        lines.take_while(has_room).count()
    };
    // A third is for the end, or half if the last line needs it.
    let last = lines[1.min(lines.len())..].last().map_or(0, size);
    let tail = fitting(&mut lines[1.min(lines.len())..].iter().rev(), (most / 3).max(last.min(most / 2)));
    let end = &lines[lines.len() - tail..];
    let room = most.saturating_sub(end.iter().map(size).sum());
    let head = fitting(&mut lines[..lines.len() - tail].iter(), room);
    let mut out: Vec<String> = lines[..head].iter().map(|line| line.to_string()).collect();
    if let (0, Some(first)) = (head, lines.first()) {
        out.push(shortened(first, room, 4));
    }
    if head.max(1) + tail < lines.len() {
        out.push("...".into());
    }
    out.extend(end.iter().map(|line| line.to_string()));
    (out.join("\n"), false)
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

    #[test]
    fn what_does_not_fit_is_left_out_of_the_middle() {
        assert_eq!(shortened("quickstart/rms_norm/cpu/even", 40, 2), "quickstart/rms_norm/cpu/even");
        assert_eq!(shortened("quickstart/rms_norm/cpu/even", 16, 2), "quick…m/cpu/even");
        assert_eq!(shortened("a finding (fresh trial: seed 7)", 16, 4), "a finding …ed 7)");
        assert_eq!(
            (shortened("äöü", 2, 2), shortened("äöü", 1, 2), shortened("äöü", 0, 2)),
            ("…ü".into(), "…".into(), "".into())
        );
    }

    #[test]
    fn whole_lines_are_left_out_of_the_middle_of_a_text() {
        let text = "first\nsecond\nthird\nfourth\nlast, trial 7";
        assert_eq!(shortened_lines(text, 100), (text.into(), true));
        assert_eq!(shortened_lines(text, 30), ("first\nsecond\n...\nlast, trial 7".into(), false));
        let long = "one line that has no room, on inputs of a fresh trial: seed 7";
        assert_eq!(shortened_lines(long, 25), ("one line that ha…: seed 7".into(), false));
        let two = shortened_lines(&format!("{long}\nat the end"), 36);
        assert_eq!(two, ("one line that ha…: seed 7\nat the end".into(), false));
    }
}
