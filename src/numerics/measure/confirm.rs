//! Confirms a champion: the judgement of a verification in a process that ran no other candidate, and of launches on inputs of a stress class among timed ones.
//! Pure: observations and tolerances are arguments. Does not know how a champion was selected.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::diagnosed::stated;
use super::judge::{describe, headline, judge_output};
use kforge_types::model::Tolerance;
use kforge_types::record::Verdict;
use kforge_types::record::params::Judgement;
use kforge_types::record::timing::{BenchObserved, StressObserved};

/// The judgement of a champion, from that of its verification in a process of its own and what was observed when it was timed. A fault of either is a failure.
/// Outputs with a `matched` below one are left out: a timing does not count the elements beyond a tolerance.
pub fn confirmed(
    mut judgement: Judgement,
    timed: Option<&BenchObserved>,
    tolerance: &BTreeMap<String, Tolerance>,
) -> Judgement {
    judgement.confirms = true;
    if let Verdict::Fail(why) = judgement.verdict {
        judgement.verdict = Verdict::Fail(format!("in a process that ran no other kernel: {why}"));
        return judgement;
    }
    let Some(stress) = timed.and_then(|timed| timed.stress.as_ref()) else { return judgement };
    let mut failed = None;
    for seen in &stress.outputs {
        let fallback = Tolerance::default();
        let tolerance = tolerance.get(&seen.output).unwrap_or(&fallback);
        let judged = judge_output(seen, tolerance);
        if tolerance.matched < 1.0 || judged.pass {
            continue;
        }
        let StressObserved { class, seed, .. } = stress;
        failed.get_or_insert_with(|| {
            format!("when it is timed on inputs of the stress class `{class}`: {}", headline(seen, &judged))
        });
        let _ = writeln!(
            judgement.explanation,
            "{}\n  these inputs were drawn for this timing only; `seeds = [{seed}]` of its operator in an overlay verifies on them",
            {
                let diagnosis = stated(seen, tolerance);
                describe(&format!("timed launches ({class})"), seen, &judged, diagnosis.as_ref())
            }
        );
    }
    if let Some(why) = failed {
        judgement.verdict = Verdict::Fail(why);
        judgement.no_fresh = None;
    }
    judgement
}

/// The judgement of a kernel in PyTorch, from that of its timed calls, which are made in a process of their own. Those beside another kernel confirm nothing.
pub fn called_again(mut judgement: Judgement, confirms: bool) -> Judgement {
    judgement.confirms = confirms;
    if let Verdict::Fail(why) = judgement.verdict {
        judgement.verdict = Verdict::Fail(format!("when its calls are timed: {why}"));
    }
    judgement
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::compare::Comparison;
    use kforge_types::model::DType;
    use kforge_types::record::{OutputObserved, Unknown};

    fn output(error: f64) -> OutputObserved {
        let mut comparison = Comparison::new("y", DType::F32, &[2], 1.0, None);
        comparison.floats(0, &[1.0 + error, 1.0], &[1.0, 1.0], None);
        comparison.finish()
    }

    fn timed(errors: &[f64]) -> BenchObserved {
        let outputs = errors.iter().map(|error| output(*error)).collect();
        let stress = StressObserved { class: "tiny".into(), seed: 7, outputs, ..StressObserved::default() };
        BenchObserved { stress: Some(stress), ..BenchObserved::default() }
    }

    fn tolerance(matched: f64) -> BTreeMap<String, Tolerance> {
        [("y".to_string(), Tolerance { atol: 0.1, matched, ..Tolerance::default() })].into()
    }

    #[test]
    fn a_fault_among_timed_launches_fails_under_the_tolerance_and_names_the_class() {
        let of = |errors: &[f64], matched| {
            confirmed(Judgement::bare(Verdict::Pass), Some(&timed(errors)), &tolerance(matched))
        };
        assert_eq!((of(&[0.05], 1.0).verdict, of(&[0.05], 1.0).confirms), (Verdict::Pass, true));
        let wrong = of(&[0.05, 0.2], 1.0);
        let Verdict::Fail(why) = &wrong.verdict else { panic!("{wrong:?}") };
        assert!(why.starts_with("when it is timed on inputs of the stress class `tiny`: `y` is wrong at "), "{why}");
        assert!(wrong.explanation.contains("seeds = [7]"), "{}", wrong.explanation);
        assert_eq!(of(&[0.2], 0.9).verdict, Verdict::Pass, "nobody counted the elements beyond it");
        assert_eq!(confirmed(Judgement::bare(Verdict::Pass), None, &tolerance(1.0)).verdict, Verdict::Pass);
    }

    #[test]
    fn a_fault_of_a_timed_call_says_so_and_a_pass_confirms() {
        let of = |verdict| called_again(Judgement::bare(verdict), true);
        let failed = Verdict::Fail("when its calls are timed: `y` is wrong".into());
        assert_eq!(of(Verdict::Fail("`y` is wrong".into())).verdict, failed);
        let passed = of(Verdict::Pass);
        assert!(passed.confirms && passed.verdict == Verdict::Pass);
    }

    #[test]
    fn what_fails_in_a_process_of_its_own_fails_and_what_is_unknown_stays_so() {
        let of = |verdict| confirmed(Judgement::bare(verdict), Some(&timed(&[0.0])), &tolerance(1.0)).verdict;
        let said = "in a process that ran no other kernel: `y` is wrong";
        assert_eq!(of(Verdict::Fail("`y` is wrong".into())), Verdict::Fail(said.into()));
        let unknown = Verdict::Unknown(Unknown::NoDevice("none".into()));
        assert_eq!(of(unknown.clone()), unknown);
    }
}
