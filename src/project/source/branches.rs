//! Branches of conditional sections: whether they agree about the brackets that they leave open, and the texts that they select. Evaluates no conditions.

use super::declarations::State;
use super::tokens::{Kind, Token};

/// The most branches of one section that are told apart.
const MOST: usize = 6;

/// A conditional section that is being read.
#[derive(Debug, Clone)]
pub(super) struct Section {
    /// The position of its `#if`.
    pub(super) at: usize,
    /// The state there.
    pub(super) before: State,
    /// What the branches that are read leave open.
    pub(super) ends: Vec<End>,
    /// Whether one of its branches is certain to be taken: it has an `#else`.
    pub(super) complete: bool,
    /// How many declarations ended before it.
    pub(super) declared: usize,
}

impl Section {
    pub(super) fn new(at: usize, before: &State, declared: usize) -> Self {
        Section { at, before: before.clone(), ends: vec![], complete: false, declared }
    }
}

/// What a branch leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    scopes: usize,
    /// Where the open declaration begins, and how many of its brackets are open.
    open: Option<(usize, usize)>,
}

impl End {
    pub(super) fn of(state: &State) -> Self {
        End { scopes: state.scopes.len(), open: state.open.as_ref().map(|open| (open.from, open.stack.len())) }
    }

    fn depth(&self) -> usize {
        self.open.map_or(0, |(_, depth)| depth)
    }
}

/// What the branches of a section have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Agreement {
    /// Where declarations begin and end depends on the condition.
    pub(super) hard: bool,
    /// Some branches begin a declaration that goes on, others do not.
    pub(super) begins: bool,
    /// Within the declaration that is open, the open brackets depend on the condition.
    pub(super) forked: bool,
    /// How many brackets the last branch opens that another one does not open.
    pub(super) opens: i64,
}

/// Compares the branches of a section at its end.
pub(super) fn agreement(section: &Section) -> Agreement {
    let before = End::of(&section.before);
    let mut ends = section.ends.clone();
    if !section.complete {
        ends.push(before);
    }
    let all = |same: &dyn Fn(&End) -> bool| ends.iter().all(same);
    let first = ends[0];
    let last = *section.ends.last().unwrap_or(&before);
    let depth = |end: &End| i64::try_from(end.scopes + end.depth()).unwrap_or(i64::MAX);
    let opens = if all(&|end| depth(end) == depth(&first)) { 0 } else { depth(&last) - depth(&before) };
    let scopes = all(&|end| end.scopes == first.scopes);
    let hard = match before.open {
        // A branch may begin a declaration that goes on behind the section, but none may be inside brackets that others do not open.
        None => !all(&|end| end.depth() == first.depth()) || !scopes && !all(&|end| end.open.is_none()),
        Some((from, _)) => {
            let goes_on = |end: &End| end.open.is_some_and(|(other, _)| other == from);
            !scopes || !all(&goes_on) && !all(&|end| end.open.is_none())
        }
    };
    let forked = !hard && before.open.is_some() && !all(&|end| end.depth() == first.depth());
    let begins = before.open.is_none() && !all(&|end| end.open.is_some() == first.open.is_some());
    Agreement { hard, begins, forked, opens }
}

/// What a directive does to sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Opens,
    /// Another branch, which is taken if no other one is.
    Else,
    Branch,
    Closes,
}

fn step(token: &Token) -> Option<Step> {
    match token.directive()?.0 {
        "if" | "ifdef" | "ifndef" => Some(Step::Opens),
        "else" => Some(Step::Else),
        "elif" | "elifdef" | "elifndef" => Some(Step::Branch),
        "endif" => Some(Step::Closes),
        _ => None,
    }
}

/// The texts that branches of the conditions in a text select, without directives: the first branch of every section, the second one and so on. The text may begin
/// in a branch. One text if there are no conditions.
pub(super) fn selected(text: &[Token]) -> Vec<Vec<Token>> {
    // The branches of each section, in order of their beginnings, and whether one of them is an `#else`. The first one is that in which the text begins.
    let (mut sections, mut open, mut inside) = (vec![(1_usize, false)], vec![0_usize], false);
    for step in text.iter().filter_map(step) {
        let Some(at) = open.last().copied() else { break };
        match step {
            Step::Opens => {
                open.push(sections.len());
                sections.push((1, false));
            }
            Step::Else => sections[at] = (sections[at].0 + 1, true),
            Step::Branch => sections[at].0 += 1,
            Step::Closes => inside |= open.pop() == Some(0),
        }
    }
    inside |= sections[0].0 > 1;
    let most = sections.iter().map(|(count, _)| *count).max().unwrap_or(1).min(MOST);
    let branched = sections.len() > 1 || inside;
    let select = |choice: usize| {
        let of = |(count, complete): (usize, bool)| if choice >= count && complete { count - 1 } else { choice };
        let (mut read, mut open, mut out) = (1, vec![(0, of(sections[0]))], vec![]);
        // All that is outside sections counts.
        if !inside {
            open[0].1 = 0;
        }
        for token in text {
            match step(token) {
                Some(Step::Opens) => {
                    open.push((0, of(sections.get(read).copied().unwrap_or((1, false)))));
                    read += 1;
                }
                Some(Step::Else | Step::Branch) => open.iter_mut().last().into_iter().for_each(|last| last.0 += 1),
                Some(Step::Closes) => drop(open.pop()),
                None if token.kind == Kind::Directive => {}
                None if open.iter().all(|(branch, selected)| branch == selected) => out.push(token.clone()),
                None => {}
            }
        }
        out
    };
    (0..if branched { most + 1 } else { 1 }).map(select).collect()
}

#[cfg(test)]
mod tests {
    use super::super::macros::spelled;
    use super::super::tokens::tokens;
    use super::*;

    #[test]
    fn every_branch_is_selected_once() {
        let of = |text: &str| selected(&tokens(text).0).iter().map(|text| spelled(text)).collect::<Vec<_>>();
        assert_eq!(of("a\n#pragma x\nb"), ["a b"]);
        assert_eq!(of("a\n#if A\nb\n#elif B\nc\n#else\nd\n#endif\ne"), ["a b e", "a c e", "a d e", "a d e"]);
        assert_eq!(of("a\n#if A\nb\n#endif\nc"), ["a b c", "a c"]);
        assert_eq!(of("a\n#else\nb\n#endif\nc"), ["a c", "b c", "b c"], "it begins in a branch");
        assert_eq!(of("a\n#endif\nb"), ["a b", "b"], "it begins in the last branch");
    }
}
