//! Branches of conditional sections: whether they agree about the brackets that they leave open, and the texts that they select. Evaluates no conditions.

use super::declarations::State;
use super::tokens::{Kind, Token};

/// The most texts that the branches of one text select.
const MOST: usize = 64;

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

/// A section of a text, and where it stands.
#[derive(Debug, Clone, Default)]
struct Nested {
    branches: usize,
    /// Whether one of its branches is an `#else`.
    complete: bool,
    /// The section and the branch that surround it.
    parent: Option<(usize, usize)>,
}

/// The texts that branches of the conditions in a text select.
#[derive(Debug, Clone)]
pub(super) struct Selected {
    /// Without directives. One text if there are no conditions.
    pub(super) texts: Vec<Vec<Token>>,
    /// Whether every token outside directives is in one of them. Otherwise these would be too many.
    pub(super) all: bool,
}

/// The texts that branches of the conditions in a text select: the first branch of every section, the second one and so on; then each branch that these do not
/// select, with those that surround it. The text may begin in a branch.
pub(super) fn selected(text: &[Token]) -> Selected {
    let (sections, inside) = sections(text);
    if sections.len() == 1 && !inside {
        return Selected {
            texts: vec![text.iter().filter(|t| t.kind != Kind::Directive).cloned().collect()],
            all: true,
        };
    }
    let most = sections.iter().map(|section| section.branches).max().unwrap_or(1);
    let mut choices: Vec<Vec<usize>> = vec![];
    for choice in 0..(most + 1).min(MOST) {
        let of = |section: &Nested| if section.complete { choice.min(section.branches - 1) } else { choice };
        choices.push(sections.iter().map(of).collect());
    }
    if !inside {
        // All that is outside sections counts.
        choices.iter_mut().for_each(|choice| choice[0] = 0);
    }
    let takes = |choice: &[usize], mut at: Option<(usize, usize)>| {
        while let Some((section, branch)) = at {
            if choice[section] != branch {
                return false;
            }
            at = sections[section].parent;
        }
        true
    };
    let mut all = true;
    for (index, section) in sections.iter().enumerate().filter(|(index, _)| *index > 0 || inside) {
        for branch in (0..section.branches).rev() {
            let wanted = Some((index, branch));
            if choices.iter().any(|choice| takes(choice, wanted)) {
                continue;
            }
            if choices.len() >= MOST {
                all = false;
                break;
            }
            let (mut choice, mut at) = (choices[0].clone(), wanted);
            while let Some((section, branch)) = at {
                choice[section] = branch;
                at = sections[section].parent;
            }
            choices.push(choice);
        }
    }
    Selected { texts: choices.iter().map(|choice| taken(text, choice)).collect(), all }
}

/// The sections of a text in order of their beginnings, behind the one in which the text begins, and whether it begins in one.
fn sections(text: &[Token]) -> (Vec<Nested>, bool) {
    let mut all = vec![Nested { branches: 1, ..Nested::default() }];
    let (mut open, mut inside) = (vec![0_usize], false);
    for step in text.iter().filter_map(step) {
        let Some(at) = open.last().copied() else { break };
        match step {
            Step::Opens => {
                open.push(all.len());
                all.push(Nested { branches: 1, complete: false, parent: Some((at, all[at].branches - 1)) });
            }
            Step::Else => (all[at].branches, all[at].complete) = (all[at].branches + 1, true),
            Step::Branch => all[at].branches += 1,
            Step::Closes => inside |= open.pop() == Some(0),
        }
    }
    inside |= all[0].branches > 1;
    (all, inside)
}

/// The tokens that these branches select, by section.
fn taken(text: &[Token], choice: &[usize]) -> Vec<Token> {
    let (mut read, mut open, mut out) = (1, vec![(0, choice[0])], vec![]);
    for token in text {
        match step(token) {
            Some(Step::Opens) => {
                open.push((0, choice.get(read).copied().unwrap_or(0)));
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
}

#[cfg(test)]
mod tests {
    use super::super::macros::spelled;
    use super::super::tokens::tokens;
    use super::*;

    #[test]
    fn every_branch_is_selected_once() {
        let of = |text: &str| selected(&tokens(text).0).texts.iter().map(|text| spelled(text)).collect::<Vec<_>>();
        assert_eq!(of("a\n#pragma x\nb"), ["a b"]);
        assert_eq!(of("a\n#if A\nb\n#elif B\nc\n#else\nd\n#endif\ne"), ["a b e", "a c e", "a d e", "a d e"]);
        assert_eq!(of("a\n#if A\nb\n#endif\nc"), ["a b c", "a c"]);
        assert_eq!(of("a\n#else\nb\n#endif\nc"), ["a c", "b c", "b c"], "it begins in a branch");
        assert_eq!(of("a\n#endif\nb"), ["a b", "b"], "it begins in the last branch");
        assert_eq!(of("#if A\na\n#else\n#if B\nb\n#else\nc\n#endif\n#endif"), ["a", "c", "c", "b"]);
    }

    #[test]
    fn every_token_is_selected_or_some_are_said_to_be_missing() {
        let many = |count: usize| {
            let branches: String = (1..count).map(|n| format!("#elif V == {n}\nv{n}\n")).collect();
            format!("#if V == 0\nv0\n{branches}#endif\n")
        };
        let deep = |count: usize| format!("{}{}", "#if A\na\n#else\n".repeat(count), "b\n#endif\n".repeat(count));
        for (text, all) in [(many(60), true), (many(80), false), (deep(20), true), (deep(90), false)] {
            let text = tokens(&text).0;
            let found = selected(&text);
            assert_eq!(found.all, all);
            let has =
                |token: &Token| found.texts.iter().flatten().any(|t| t.text == token.text && t.line == token.line);
            assert!(!all || text.iter().filter(|t| t.kind != Kind::Directive).all(has));
        }
    }
}
