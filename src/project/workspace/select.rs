//! Resolves what the command line selects: packages, kernels, operators, shapes and targets, by name or glob. A pattern that matches nothing is an error.

use std::collections::BTreeSet;

use globset::{Glob, GlobMatcher};

use super::load::Workspace;
use kforge_foundation::base::Diagnostic;

/// The patterns of the command line. An empty list selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SelectionArgs {
    /// `-p`.
    pub packages: Vec<String>,
    /// `--workspace`.
    pub workspace: bool,
    /// `--exclude`.
    pub exclude: Vec<String>,
    /// `--kernel`.
    pub kernels: Vec<String>,
    /// `--operator`.
    pub operators: Vec<String>,
    /// `--shape`.
    pub shapes: Vec<String>,
    /// `--target`.
    pub targets: Vec<String>,
}

/// The selection: positions of members, and names. An empty list of names selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selected {
    /// Positions of the members.
    pub members: Vec<usize>,
    /// Kernels.
    pub kernels: Vec<String>,
    /// Operators.
    pub operators: Vec<String>,
    /// Shapes.
    pub shapes: Vec<String>,
    /// Targets.
    pub targets: Vec<String>,
    /// The only kernels to build, by package and name, where names alone do not say it; none if every kernel that the lists select is built.
    pub only: Option<BTreeSet<(String, String)>>,
}

impl Selected {
    /// The part of a selection that these kernels are, by package and name; none if there are none of them.
    pub fn narrowed(&self, workspace: &Workspace, only: BTreeSet<(String, String)>) -> Option<Selected> {
        let has = |at: &usize| only.iter().any(|(package, _)| workspace.members[*at].package.name == *package);
        let members: Vec<usize> = self.members.iter().copied().filter(has).collect();
        let kernels: BTreeSet<&String> = only.iter().map(|(_, kernel)| kernel).collect();
        let kernels = kernels.into_iter().cloned().collect();
        (!members.is_empty()).then(|| Selected { members, kernels, only: Some(only), ..self.clone() })
    }

    /// Whether a kernel of a package is among the only ones.
    pub fn keeps(&self, package: &str, kernel: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&(package.to_string(), kernel.to_string())))
    }
}

/// Resolves the patterns against a workspace.
pub fn select(workspace: &Workspace, words: &SelectionArgs) -> Result<Selected, Vec<Diagnostic>> {
    let mut wrong = Vec::new();
    let names: Vec<&str> = workspace.members.iter().map(|m| m.package.name.as_str()).collect();
    let at_hand = workspace.members.iter().position(|m| Some(m.folder.as_path()) == workspace.manifest.parent());
    let mut members: Vec<usize> = if !words.packages.is_empty() {
        let chosen = matching(&words.packages, &names, "package", &mut wrong);
        (0..names.len()).filter(|i| chosen.contains(names[*i])).collect()
    } else if words.workspace {
        (0..names.len()).collect()
    } else {
        at_hand.map_or_else(|| workspace.default.clone(), |i| vec![i])
    };
    let excluded = matching(&words.exclude, &names, "package", &mut wrong);
    members.retain(|i| !excluded.contains(names[*i]));
    let packages = || members.iter().map(|i| &workspace.members[*i].package);
    let pick = |patterns: &[String], known: BTreeSet<&str>, what: &str, wrong: &mut Vec<Diagnostic>| -> Vec<String> {
        let known: Vec<&str> = known.into_iter().collect();
        matching(patterns, &known, what, wrong).into_iter().map(String::from).collect()
    };
    let wrong_before = wrong.len();
    let kernels = pick(
        &words.kernels,
        packages().flat_map(|p| &p.kernels).map(|k| k.name.as_str()).collect(),
        "kernel",
        &mut wrong,
    );
    if wrong.len() > wrong_before {
        // A name of something else is likely meant as that.
        let is_operator = |name: &str| packages().flat_map(|p| &p.operators).any(|o| o.name == name);
        let meant = words.kernels.iter().find_map(|name| match (names.contains(&name.as_str()), is_operator(name)) {
            (true, _) => Some(format!("`{name}` is a package; `-p {name}` selects it")),
            (false, true) => Some(format!("`{name}` is an operator; `--operator {name}` selects its kernels")),
            (false, false) => None,
        });
        wrong = match (wrong.pop(), meant) {
            (Some(last), Some(meant)) => wrong.into_iter().chain([last.hint(meant)]).collect(),
            (last, _) => wrong.into_iter().chain(last).collect(),
        };
    }
    let operators = pick(
        &words.operators,
        packages().flat_map(|p| &p.operators).map(|o| o.name.as_str()).collect(),
        "operator",
        &mut wrong,
    );
    let shapes = packages().flat_map(|p| &p.operators).flat_map(|o| &o.shapes).map(|s| s.name.as_str()).collect();
    let shapes = pick(&words.shapes, shapes, "shape", &mut wrong);
    let targets = pick(
        &words.targets,
        packages().flat_map(|p| p.targets.keys()).map(String::as_str).collect(),
        "target",
        &mut wrong,
    );
    if wrong.is_empty() && members.is_empty() {
        wrong.push(Diagnostic::error("select.nothing", "the selection matches no package").hint(if names.is_empty() {
            "add a member to `workspace.members`"
        } else {
            "leave out `--exclude`, or name a package with `-p`"
        }));
    }
    if wrong.is_empty() {
        Ok(Selected { members, kernels, operators, shapes, targets, only: None })
    } else {
        Err(wrong)
    }
}

/// The known names that match any pattern. A pattern that matches nothing is an error with a suggestion.
fn matching<'k>(patterns: &[String], known: &[&'k str], what: &str, wrong: &mut Vec<Diagnostic>) -> BTreeSet<&'k str> {
    let mut out = BTreeSet::new();
    for pattern in patterns {
        let matcher: Option<GlobMatcher> = Glob::new(pattern).ok().map(|g| g.compile_matcher());
        let before = out.len();
        out.extend(known.iter().filter(|n| **n == pattern || matcher.as_ref().is_some_and(|m| m.is_match(n))));
        if out.len() == before
            && !known
                .iter()
                .any(|n| out.contains(n) && (*n == pattern || matcher.as_ref().is_some_and(|m| m.is_match(n))))
        {
            let listed = known.iter().take(12).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
            wrong.push(
                Diagnostic::error("select.nothing", format!("no {what} matches `{pattern}`"))
                    .expected(if known.is_empty() {
                        format!("a {what}, but there is none")
                    } else {
                        format!("one of {listed}")
                    })
                    .suggest(pattern, known.iter().copied()),
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_and_globs_and_misses_are_named() {
        let mut wrong = vec![];
        let known = ["rms_norm", "layer_norm", "softmax"];
        assert_eq!(matching(&["*_norm".into(), "softmax".into()], &known, "kernel", &mut wrong).len(), 3);
        assert!(wrong.is_empty());
        matching(&["sofmax".into()], &known, "kernel", &mut wrong);
        assert_eq!(wrong[0].message, "no kernel matches `sofmax`");
        assert_eq!(wrong[0].hints, ["did you mean `softmax`?"]);
    }

    #[test]
    fn two_patterns_may_match_the_same_name() {
        let mut wrong = vec![];
        assert_eq!(matching(&["a*".into(), "abc".into()], &["abc"], "kernel", &mut wrong).len(), 1);
        assert!(wrong.is_empty());
    }
}
