//! Which methods get the slots (docs/design.md, section 9.3). Knows the registry, what is known of the kernel, and the results of methods; does not know how
//! methods are written.
//!
//! # Which methods may be chosen, by these questions in this order
//!
//! | question | passed over if |
//! |---|---|
//! | does the champion have it? | yes, unless machine code does not show it |
//! | can an agent of this run add it? | no |
//! | does the architecture have it? | no; on `cpu`, which is no architecture, if it needs a hardware feature |
//! | do its preconditions hold? | one is known not to hold; an unknown one is noted |
//! | is it settled? | effective or ineffective; if its implementation failed, it may be tried again once |
//! | was it tried without a champion that has it? | twice already; after one try it may be tried again, but only one such method at a time |
//! | do metrics support it? | they are known and do not; unknown ones are noted |
//! | does it exclude another? | one that the champion has, unless that one gains nothing, or one chosen before it |
//!
//! # Which methods are chosen
//!
//! With one slot, the first method by priority is chosen; with two slots, the two methods with the strongest triggers. In both cases methods that metrics
//! support come before methods with unknown metrics. Methods that were tried before come last, one at a time: every variant of a round has all its methods on,
//! so a method that spoils the kernel would keep the others from ever being tried without it. Methods that are not in the registry come after those that are. A
//! slot whose axis has no method goes to the axis with the next largest gap that has one, still at most two per axis.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::budget::{MOST, SLOTS, TIES};
use crate::optimize::methods::explain::trigger;
use crate::optimize::methods::{Entry, Fact, Facts, Fit, Registry, Strength};
use kforge_types::model::Axis;
use kforge_types::record::params::Fate;
use kforge_types::record::profile::Gaps;
use kforge_types::record::round::{ChosenMethod, OpenMethod, PassedMethod, RoundParams, SettledMethod, Slots};

/// The architecture of the emulator.
const EMULATED: &str = "cpu";

/// The inputs of the choice.
pub struct ChoiceInputs<'f> {
    /// The registry.
    pub registry: &'f Registry,
    /// The round's parameters.
    pub params: &'f RoundParams,
    /// The champion's metrics.
    pub metrics: &'f BTreeMap<String, f64>,
    /// The results of methods so far.
    pub settled: &'f BTreeMap<String, SettledMethod>,
}

/// A method that may be chosen.
struct MethodOption<'f> {
    id: &'f str,
    axis: Axis,
    /// Its place in the order of priorities.
    place: usize,
    /// Whether it was tried before.
    again: bool,
    strength: Option<f64>,
    because: String,
    conflicts: &'f [String],
}

impl MethodOption<'_> {
    /// The sort key for filling one slot: methods that metrics support come first.
    fn one(&self) -> (bool, usize) {
        (self.strength.is_none(), self.place)
    }

    /// The sort key for filling two slots.
    fn two(&self) -> (bool, Reverse<u64>, usize) {
        // Strengths are not negative, so their bits sort as their values do.
        (self.strength.is_none(), Reverse(self.strength.unwrap_or(0.0).to_bits()), self.place)
    }

    fn chosen(&self) -> ChosenMethod {
        ChosenMethod { id: self.id.into(), axis: self.axis, strength: self.strength, because: self.because.clone() }
    }
}

/// The methods to try, in the order of axes and priorities, and the methods that were passed over. `gaps` decide where slots go that their axis cannot use.
pub fn choose(from: &ChoiceInputs<'_>, slots: &Slots, gaps: &Gaps) -> (Vec<ChosenMethod>, Vec<PassedMethod>) {
    let (mut candidates, mut passed) = (vec![], vec![]);
    for (place, open) in ordered(from).into_iter().enumerate() {
        match from.candidate(open, place) {
            Ok(candidate) => candidates.push(candidate),
            Err(because) => passed.push((place, PassedMethod { id: open.id.clone(), axis: open.axis, because })),
        }
    }
    let is_fresh = candidates.iter().any(|c: &MethodOption<'_>| !c.again);
    let most = if is_fresh { SLOTS as usize } else { 1 };
    let mut taken: Vec<&MethodOption<'_>> = vec![];
    let mut excluded: BTreeMap<&str, String> = BTreeMap::new();
    let mut fill = |axis: Axis, wanted: usize, strongest: bool, taken: &mut Vec<_>| {
        let mut of_axis: Vec<&MethodOption<'_>> =
            candidates.iter().filter(|c| c.axis == axis && c.again != is_fresh).collect();
        match strongest {
            true => of_axis.sort_by_key(|c| c.two()),
            false => of_axis.sort_by_key(|c| c.one()),
        }
        let mut filled = 0;
        for candidate in of_axis {
            if filled == wanted || taken.len() == most || taken.iter().any(|t: &&MethodOption<'_>| t.id == candidate.id)
            {
                continue;
            }
            match taken.iter().find(|t| candidate.conflicts.iter().any(|c| c == t.id)) {
                Some(other) => drop(excluded.insert(candidate.id, format!("not together with `{}`", other.id))),
                None => {
                    taken.push(candidate);
                    filled += 1;
                }
            }
        }
        filled
    };
    for axis in by_gap(gaps) {
        let wanted = slots.of(axis) as usize;
        fill(axis, wanted, wanted > 1, &mut taken);
    }
    // Slots that an axis could not use go, one at a time, to the largest gap whose axis has a method left and room for it.
    while taken.len() < most {
        let room =
            |axis: Axis, taken: &[&MethodOption<'_>]| taken.iter().filter(|t| t.axis == axis).count() < MOST as usize;
        let mut axes = by_gap(gaps).into_iter();
        if !axes.any(|axis| room(axis, &taken) && fill(axis, 1, false, &mut taken) == 1) {
            break;
        }
    }
    taken.sort_by_key(|c| (c.axis, c.place));
    let is_taken = |id: &str| taken.iter().any(|t| t.id == id);
    for candidate in candidates.iter().filter(|c| !is_taken(c.id)) {
        let because = excluded.remove(candidate.id).unwrap_or_else(|| weaker(candidate, is_fresh));
        passed.push((candidate.place, PassedMethod { id: candidate.id.into(), axis: candidate.axis, because }));
    }
    // On an axis with chosen methods, only the methods before the last chosen one are reported as passed over.
    let last = |axis: Axis| taken.iter().filter(|t| t.axis == axis).map(|t| t.place).max();
    let asked = |axis: Axis| slots.of(axis) > 0 || taken.is_empty();
    passed.retain(|(place, p)| last(p.axis).map_or(asked(p.axis), |last| *place < last));
    passed.sort_by_key(|(place, p)| (p.axis, *place));
    (taken.into_iter().map(MethodOption::chosen).collect(), passed.into_iter().map(|(_, p)| p).collect())
}

/// Why a method that could have been chosen was not.
fn weaker(candidate: &MethodOption<'_>, is_fresh: bool) -> String {
    match (candidate.again, candidate.strength) {
        (true, _) if is_fresh => "it was tried before, and other methods were not".into(),
        (true, _) => "it was tried before, and methods are tried again one at a time".into(),
        (false, Some(strength)) => format!("the metrics ask for other methods of its axis instead ({strength:.2})"),
        (false, None) => "the metrics ask for other methods of its axis, and say nothing about it".into(),
    }
}

/// Axes by their gaps, the largest first, unknown ones last; ties as in the budget.
fn by_gap(gaps: &Gaps) -> Vec<Axis> {
    let mut axes = TIES.to_vec();
    axes.sort_by(|a, b| gaps.of(*b).unwrap_or(-1.0).total_cmp(&gaps.of(*a).unwrap_or(-1.0)));
    axes
}

/// The methods by priority, then those that are not in the registry, by id.
fn ordered<'f>(from: &ChoiceInputs<'f>) -> Vec<&'f OpenMethod> {
    let mut all: Vec<&OpenMethod> = from.params.methods.iter().collect();
    let priority = |open: &OpenMethod| from.registry.get(&open.id).map_or(u32::MAX, |entry| entry.priority);
    all.sort_by(|a, b| (priority(a), &a.id).cmp(&(priority(b), &b.id)));
    all
}

impl<'f> ChoiceInputs<'f> {
    /// The method as an option, or why it may not be chosen.
    fn candidate(&self, open: &'f OpenMethod, place: usize) -> Result<MethodOption<'f>, String> {
        let settled = self.settled.get(&open.id);
        let failed = settled.filter(|s| s.fate == Fate::ImplementationFailed);
        if open.on && failed.is_none() {
            return Err(match settled {
                Some(settled) => format!("the champion has it: {}", settled.attribution.because),
                None => "the champion has it".into(),
            });
        }
        if !open.possible {
            return Err("no agent of this run can add it".into());
        }
        let entry = self.registry.get(&open.id);
        let mut notes = vec![];
        if let Some(entry) = entry {
            self.fits(entry, &mut notes)?;
        }
        let again = self.again(&open.id, settled, &mut notes)?;
        let strength = match entry.map(|e| (e, e.strength(self.metrics))) {
            Some((entry, Strength::Known(strength))) => {
                let when = entry.trigger.as_ref().map(trigger).unwrap_or_default();
                if strength <= 0.0 {
                    return Err(format!("the metrics do not ask for it: {when}"));
                }
                notes.insert(0, format!("the metrics ask for it: {when}"));
                Some(strength)
            }
            Some((_, Strength::Unknown(missing))) if !missing.is_empty() => {
                let missing: Vec<String> = missing.into_iter().map(|m| format!("`{m}`")).collect();
                notes.insert(0, format!("whether the metrics ask for it is unknown: no {}", missing.join(", ")));
                None
            }
            Some(_) => {
                notes.insert(0, "no metric supports or opposes it".into());
                None
            }
            None => {
                notes.insert(0, "a method that the kernel declares itself; no metric supports or opposes it".into());
                None
            }
        };
        let conflicts = entry.map_or(&[][..], |e| &e.conflicts);
        for had in self.params.methods.iter().filter(|m| m.on && m.id != open.id && conflicts.contains(&m.id)) {
            match self.settled.get(&had.id).map(|s| s.fate) {
                // A method that gains nothing does not exclude others.
                Some(Fate::Ineffective | Fate::Harmful | Fate::ImplementationFailed) => {
                    notes.push(format!("in place of `{}`, which gained the champion nothing", had.id));
                }
                _ => return Err(format!("not together with `{}`, which the champion has", had.id)),
            }
        }
        Ok(MethodOption { id: &open.id, axis: open.axis, place, again, strength, because: notes.join("; "), conflicts })
    }

    /// Whether architecture and preconditions allow it.
    fn fits(&self, entry: &Entry, notes: &mut Vec<String>) -> Result<(), String> {
        if self.params.arch == EMULATED {
            if let Some(feature) = entry.features.first() {
                return Err(format!("the emulator has no {}", feature.name()));
            }
        } else if let Fit::Not(why) = entry.on(&self.params.arch) {
            return Err(why);
        }
        let known = Fact::ALL.into_iter().filter_map(|f| Some((f, *self.params.facts.get(f.name())?))).collect();
        match entry.under(&Facts(known)) {
            Fit::Fits => Ok(()),
            Fit::Not(why) => Err(why),
            Fit::Unknown(facts) => {
                let facts: Vec<&str> = facts.into_iter().map(Fact::text).collect();
                notes.push(format!("it is unknown whether {}", facts.join(", nor whether ")));
                Ok(())
            }
        }
    }

    /// Whether it is tried again, with the reason; an error if it is not.
    fn again(&self, id: &str, settled: Option<&SettledMethod>, notes: &mut Vec<String>) -> Result<bool, String> {
        let tried = &self.params.tried;
        let rounds: Vec<String> =
            (1..).zip(tried).filter(|(_, t)| t.iter().any(|m| m == id)).map(|(n, _)| format!("{n}")).collect();
        let when = match &rounds[..] {
            [] => String::new(),
            [one] => format!(" in round {one}"),
            several => format!(" in rounds {}", several.join(" and ")),
        };
        let (what, tries) = match settled.map(|s| (s.fate, s)) {
            Some((Fate::Effective, s)) => return Err(format!("settled: effective, {}", s.attribution.because)),
            Some((Fate::Ineffective, s)) => return Err(format!("settled: ineffective, {}", s.attribution.because)),
            Some((Fate::Harmful, s)) => return Err(format!("settled: harmful, {}", s.attribution.because)),
            Some((Fate::ImplementationFailed, s)) => {
                (format!("its implementation failed{when}: {}", s.attribution.because), rounds.len())
            }
            Some((Fate::Inconclusive, s)) if !rounds.is_empty() => {
                (format!("tried{when} without a decision: {}", s.attribution.because), rounds.len())
            }
            Some((Fate::Inconclusive | Fate::NotUsed, _)) => return Ok(false),
            None if rounds.is_empty() => return Ok(false),
            None => (format!("tried{when}, and no champion has it"), rounds.len()),
        };
        if tries > 1 {
            return Err(format!("{what}; it was tried again once already"));
        }
        notes.push(format!("{what}; it is tried again once"));
        Ok(true)
    }
}
