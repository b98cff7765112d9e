//! What figures of pairs mean, as one line below all that a text shows. Knows the document; compares nothing.

use super::classes::OvertakenReport;
use super::document::{Report, TargetReport};
use crate::plan::expand::ATTRIBUTE;
use kforge_numerics::measure::paired::{legend, percent};
use kforge_types::record::params::{Attribution, Fate, Stays, split_from};

/// Which figures a text shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figures {
    /// Those of warnings: methods that cost their champion time, and variants that may be faster than it.
    Warnings,
    /// Also those in the reasons of champions.
    Champions,
    /// Also those of every method of a champion.
    All,
}

/// The line for a report; none if its texts show no figures.
pub(super) fn line(report: &Report, figures: Figures) -> Option<String> {
    let targets: Vec<&TargetReport> =
        report.packages.iter().flat_map(|package| &package.kernels).flat_map(|kernel| &kernel.targets).collect();
    let has_leaders =
        report.packages.iter().flat_map(|p| &p.leaders).flat_map(|l| &l.others).any(|other| other.pairs.is_some());
    of_all(&targets, figures, has_leaders)
}

/// The same for these kernels on targets.
pub(super) fn of_targets(targets: &[&TargetReport], figures: Figures) -> Option<String> {
    of_all(targets, figures, false)
}

/// The same, with figures of champions of other kernels if there are any: each of them is a variant, and the one that leads a champion.
fn of_all(targets: &[&TargetReport], figures: Figures, has_leaders: bool) -> Option<String> {
    let has_variants = has_leaders
        || targets.iter().any(|target| {
            // The reason of a split has brackets.
            let is_split = target.champions.iter().any(|champion| split_from(&champion.class).is_some());
            figures != Figures::Warnings && is_split || target.overtaken.iter().any(has_figures)
        });
    let has_methods = targets.iter().any(|target| match figures {
        Figures::Warnings | Figures::Champions => {
            target.champions.iter().any(|champion| target.harmful(champion).next().is_some())
        }
        Figures::All => has_methods(target),
    });
    said(has_variants, has_methods)
}

/// The line for figures of other variants, of kernels without a method, or of both.
fn said(variants: bool, methods: bool) -> Option<String> {
    let other = match (variants, methods) {
        (false, false) => return None,
        (true, false) => "the other variant",
        (false, true) => "the kernel without the method",
        (true, true) => "the other variant, or the kernel without the method,",
    };
    let effective = if methods {
        format!("; a method that saves more than {} is effective", percent(ATTRIBUTE.threshold))
    } else {
        String::new()
    };
    Some(legend(other, "the champion", ATTRIBUTE.margin) + &effective)
}

/// The line for methods alone.
pub(super) fn of_methods() -> Option<String> {
    said(false, true)
}

/// Whether the line of an overtaken champion has figures with signs.
pub(super) fn has_figures(overtaken: &OvertakenReport) -> bool {
    overtaken.because != Stays::Classes
}

/// Whether pairs decide a result, so that its reason has their figures.
fn is_of_pairs(fate: Fate) -> bool {
    matches!(fate, Fate::Effective | Fate::Ineffective | Fate::Harmful)
}

/// Whether the reason of an attribution may have figures: also where the two orders of its pairs disagree.
pub(super) fn is_attributed_by_pairs(found: &Attribution) -> bool {
    is_of_pairs(found.fate) || found.fate == Fate::Inconclusive && found.saving.is_some()
}

/// Whether the text of a method, or of the rounds that tried it, has figures.
fn has_methods(target: &TargetReport) -> bool {
    let mut of_champions = target.methods_of_champions().filter_map(|method| method.attribution.as_ref());
    let mut of_rounds = target.rounds.iter().flat_map(|rounds| &rounds.methods).filter_map(|method| method.fate);
    of_champions.any(is_attributed_by_pairs) || of_rounds.any(is_of_pairs)
}

#[cfg(test)]
mod tests {
    use super::super::document::{ChampionReport, MethodReport};
    use super::*;

    fn target(fate: Option<Fate>, stays: Option<Stays>) -> TargetReport {
        let champion = ChampionReport {
            class: "all".into(),
            shapes: vec!["big".into()],
            variant: Some("A=1".into()),
            provisional: false,
            because: "of two".into(),
            versus: vec![],
        };
        let method = |fate| MethodReport {
            method: "memory.wide".into(),
            variant: "A=1".into(),
            matched: None,
            attribution: Some(Attribution { fate, because: "x".into(), detail: None, saving: None }),
            shapes: vec![],
        };
        let overtaken =
            |because| OvertakenReport { shape: "big".into(), by: "A=2".into(), faster_by: 0.02, because, pairs: None };
        TargetReport {
            champions: vec![champion],
            methods: fate.map(method).into_iter().collect(),
            overtaken: stays.map(overtaken).into_iter().collect(),
            ..TargetReport::default()
        }
    }

    #[test]
    fn a_text_says_once_what_its_figures_mean_and_nothing_without_figures() {
        let of = |fate, stays, figures| of_targets(&[&target(fate, stays)], figures);
        let line = of(Some(Fate::Effective), None, Figures::All).unwrap();
        assert_eq!(
            line,
            "signs: + means that the kernel without the method is slower than the champion, - that it is faster; \
             brackets hold the interval of 95 %; the margin is 1 %; a method that saves more than 2 % is effective"
        );
        let line = of(None, Some(Stays::Undecided), Figures::All).unwrap();
        assert!(
            line.starts_with("signs: + means that the other variant is slower") && line.ends_with("margin is 1 %"),
            "{line}"
        );
        let both = of(Some(Fate::Harmful), Some(Stays::Unpaired), Figures::Warnings).unwrap();
        assert!(both.contains("the other variant, or the kernel without the method, is slower"), "{both}");
        assert_eq!(of(Some(Fate::Effective), None, Figures::Warnings), None, "a brief text does not show it");
        assert_eq!(of(Some(Fate::NotUsed), Some(Stays::Classes), Figures::All), None, "neither has signs");
        assert_eq!(of_targets(&[], Figures::All), None);
        let mut split = target(None, None);
        split.champions[0].class = "all@big".into();
        assert!(of_targets(&[&split], Figures::Champions).is_some());
        assert_eq!(of_targets(&[&split], Figures::Warnings), None, "a brief text does not show the reason");
    }
}
