//! Texts that several commands use.

use std::collections::HashMap;
use std::time::Instant;

use super::console::Console;
use kforge_foundation::base::count;
use kforge_ops::accept::AcceptedChampion;
use kforge_ops::build::{Champion, Lacking, UnknownCounts};
use kforge_pipeline::release::trust::Distrusted;
use kforge_pipeline::report::arguments::Arguments;
use kforge_pipeline::report::{explanation, field_words};
use kforge_types::record::event::{Event, StepCounts, VerdictCounts, Why};

/// Why a step runs, in one line. Arguments of launches go by the names of the step's kernel.
pub(super) fn reason(why: &Why, arguments: &Arguments) -> String {
    let shown = |value: &Option<String>| value.as_ref().map(|v| explanation::shown(v, false));
    let field =
        why.field.as_ref().map(|field| field_words::words_of(field, arguments).unwrap_or_else(|| field.clone()));
    match (field, shown(&why.before), shown(&why.after)) {
        (Some(field), Some(before), Some(after)) => format!("{}: {field} was {before}, is {after}", why.code),
        (Some(field), None, Some(after)) => format!("{}: {field} is now {after}", why.code),
        (Some(field), Some(before), None) => format!("{}: {field} was {before}, is gone", why.code),
        (Some(field), None, None) => format!("{}: {field}", why.code),
        (None, ..) => why.code.clone(),
    }
}

/// The most steps that are named for one reason for which evidence is missing.
const NAMED: usize = 3;

/// The most reasons for which evidence is missing that are listed.
const REASONS: usize = 10;

/// Prints which required evidence is missing, after a summary of the steps.
pub(super) fn say_lacking(console: &Console, lacking: &[Lacking], summary: &str) {
    console.error(&format!("evidence from a device was required and is missing; {summary}"));
    say_missing(console, lacking.iter().map(|step| (step.id.as_str(), step.why.as_str())));
}

/// Prints steps that lack evidence with their reasons; with `-v`, every step.
pub(super) fn say_missing<'s>(console: &Console, steps: impl Iterator<Item = (&'s str, &'s str)>) {
    let lines = match console.verbose() {
        true => steps.map(|(step, why)| format!("{step}: {why}")).collect(),
        false => by_reason(steps),
    };
    lines.iter().for_each(|line| console.err(&format!("  {line}\n")));
}

/// Steps by reason, with the number of steps and the first of them. A step that is the only one with its reason is a line of its own.
fn by_reason<'s>(steps: impl Iterator<Item = (&'s str, &'s str)>) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<String>)> = vec![];
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (step, why) in steps {
        let at = *places.entry(why).or_insert(reasons.len());
        if at == reasons.len() {
            reasons.push((why, vec![]));
        }
        reasons[at].1.push(format!("`{step}`"));
    }
    let mut lines = vec![];
    let mut is_all = reasons.len() <= REASONS;
    for (why, steps) in reasons.iter().take(REASONS) {
        is_all &= steps.len() <= NAMED;
        lines.push(match steps.as_slice() {
            [one] => format!("{}: {why}", one.trim_matches('`')),
            steps => format!("{}: {why}: {}", count(steps.len() as u64, "step"), listed(steps, NAMED).join(", ")),
        });
    }
    let more = &reasons[REASONS.min(reasons.len())..];
    if !more.is_empty() {
        let steps = more.iter().map(|(_, steps)| steps.len() as u64).sum::<u64>();
        lines.push(format!("and {} for {}", count(steps, "more step"), count(more.len() as u64, "more reason")));
    }
    if !is_all {
        lines.push("-v lists every step".into());
    }
    lines
}

/// How many steps had each outcome, and how many of them have each verdict, in one line.
pub(super) fn summary(c: &StepCounts, (v, unknown): (&VerdictCounts, &UnknownCounts), began: Instant) -> String {
    let mut parts = vec![format!("{}: {} executed, {} fresh", count(c.total, "step"), c.executed, c.fresh)];
    for (n, what) in [(c.unavailable, "unavailable"), (c.skipped, "skipped"), (c.failed, "failed")] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    format!(
        "{}; their verdicts: {} pass, {} fail, {} unknown{}; {:.1} s",
        parts.join(", "),
        v.pass,
        v.fail,
        v.unknown,
        unknown.text(),
        began.elapsed().as_secs_f64()
    )
}

/// Who signed an artifact, or that nobody did whose signature counts.
pub(super) fn signed_by(signer: Option<&str>, distrusted: Option<&Distrusted>) -> String {
    match (signer, distrusted) {
        (Some(signer), _) => format!("signed by {signer}"),
        (None, Some(Distrusted { fingerprint, why, .. })) => {
            format!("with a signature by {fingerprint} that does not count ({})", why.name())
        }
        (None, None) => "not signed".into(),
    }
}

/// A commit, shortened.
pub(super) fn short(commit: &str) -> String {
    commit.chars().take(12).collect()
}

/// The first of many names, and the number of the others.
pub(super) fn listed(names: &[String], most: usize) -> Vec<String> {
    let more = names.len().saturating_sub(most);
    names.iter().take(most).cloned().chain((more > 0).then(|| format!("and {more} more"))).collect()
}

/// `p/k/cpu for rows = 2: r1,BLOCK=64, verified and not timed, in ...`.
pub(super) fn champion(accepted: &AcceptedChampion, place: &str) -> String {
    let standing = if accepted.provisional { ", verified and not timed," } else { "" };
    format!("{}{}: {}{standing} {place}", accepted.seat.name(), accepted.stands_for, accepted.label())
}

/// Sends the events of champions.
pub(super) fn say_champions(console: &Console, champions: &[Champion]) {
    for champion in champions.iter().filter(|_| console.json()) {
        let Champion { package, kernel, target, class, shapes, variant, provisional } = champion.clone();
        console.event(&Event::Champion { package, kernel, target, class, shapes, variant, provisional });
    }
}

/// A number of bytes as text: `4.5 MiB`.
pub(super) fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{n} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_without_evidence_are_grouped_by_reason_with_the_first_of_each() {
        let steps = |n: usize, why: &'static str| (0..n).map(move |at| (format!("k/{why}/{at}"), why));
        let said = |all: Vec<(String, &'static str)>| by_reason(all.iter().map(|(step, why)| (step.as_str(), *why)));
        assert_eq!(said(steps(1, "dark").collect()), ["k/dark/0: dark"]);
        let two = said(steps(2, "dark").chain(steps(1, "claimed")).collect());
        assert_eq!(two, ["2 steps: dark: `k/dark/0`, `k/dark/1`", "k/claimed/0: claimed"]);
        let many = said(steps(400, "dark").collect());
        let first = "400 steps: dark: `k/dark/0`, `k/dark/1`, `k/dark/2`, and 397 more";
        assert_eq!(many, [first, "-v lists every step"]);
        let whys = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
        let many = said(whys.into_iter().flat_map(|why| steps(2, why)).collect());
        assert_eq!(many[10..], ["and 4 more steps for 2 more reasons", "-v lists every step"]);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!((bytes(0), bytes(1023), bytes(1536)), ("0 B".into(), "1023 B".into(), "1.5 KiB".into()));
        assert_eq!(bytes(5 << 40), "5.0 TiB");
    }
}
