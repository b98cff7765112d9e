//! The difference of two texts by lines. Knows lines; does not know what is in them.

/// A line of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// In both texts.
    Both(&'a str),
    /// Only in the first.
    Removed(&'a str),
    /// Only in the second.
    Added(&'a str),
}

/// More pairs of lines than this are not compared: the first text is then removed whole, and the second one added.
const MOST: usize = 4_000_000;

/// The difference: a longest common subsequence of lines stays.
pub(super) fn diff<'a>(before: &'a str, after: &'a str) -> Vec<Line<'a>> {
    let (a, b): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let tail = a[head..].iter().rev().zip(b[head..].iter().rev()).take_while(|(x, y)| x == y).count();
    let (x, y) = (&a[head..a.len() - tail], &b[head..b.len() - tail]);
    let mut out: Vec<Line<'a>> = a[..head].iter().map(|line| Line::Both(line)).collect();
    if x.len().saturating_mul(y.len()) > MOST {
        out.extend(x.iter().map(|line| Line::Removed(line)));
        out.extend(y.iter().map(|line| Line::Added(line)));
    } else {
        middle(x, y, &mut out);
    }
    out.extend(a[a.len() - tail..].iter().map(|line| Line::Both(line)));
    out
}

fn middle<'a>(x: &[&'a str], y: &[&'a str], out: &mut Vec<Line<'a>>) {
    // The length of the longest common subsequence of the rests from each pair of lines on.
    let wide = y.len() + 1;
    let mut longest = vec![0u32; (x.len() + 1) * wide];
    for i in (0..x.len()).rev() {
        for j in (0..y.len()).rev() {
            longest[i * wide + j] = match x[i] == y[j] {
                true => longest[(i + 1) * wide + j + 1] + 1,
                false => longest[(i + 1) * wide + j].max(longest[i * wide + j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < x.len() || j < y.len() {
        if i < x.len() && j < y.len() && x[i] == y[j] {
            out.push(Line::Both(x[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == y.len() || i < x.len() && longest[(i + 1) * wide + j] >= longest[i * wide + j + 1] {
            out.push(Line::Removed(x[i]));
            i += 1;
        } else {
            out.push(Line::Added(y[j]));
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_go_and_come() {
        use Line::{Added, Both, Removed};
        assert_eq!(
            diff("a\nb\nc\nd\n", "a\nx\nc\ny\nd\n"),
            [Both("a"), Removed("b"), Added("x"), Both("c"), Added("y"), Both("d")]
        );
        assert_eq!(diff("", "a\n"), [Added("a")]);
        assert_eq!(diff("a\n", ""), [Removed("a")]);
        assert_eq!(diff("a\na\n", "a\n"), [Both("a"), Removed("a")]);
    }

    #[test]
    fn each_text_can_be_read_back() {
        let (a, b) = ("1\n2\n3\n4\n5\n3\n", "3\n1\n2\n4\n4\n3\n5\n");
        let of = |keep: &dyn Fn(&Line<'_>) -> bool| -> Vec<String> {
            let all = diff(a, b);
            let kept = all.iter().filter(|line| keep(line));
            kept.map(|(Line::Both(t) | Line::Removed(t) | Line::Added(t))| t.to_string()).collect()
        };
        assert_eq!(of(&|line| !matches!(line, Line::Added(_))), a.lines().collect::<Vec<_>>());
        assert_eq!(of(&|line| !matches!(line, Line::Removed(_))), b.lines().collect::<Vec<_>>());
    }
}
