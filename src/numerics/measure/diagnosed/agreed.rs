//! What several comparisons of one output have in common. Knows diagnoses of trials; does not know values.

use super::sentence;
use kforge_types::record::params::OutputDiagnosis;
use kforge_types::record::{Diagnosis, OutputObserved, WrongPattern};

/// How far numbers of two trials may be apart, relative to the larger, to be the same number.
const SAME: f64 = 5e-3;

/// An output that was judged wrong.
#[derive(Debug)]
pub struct Wrong<'a> {
    /// A description of its inputs.
    pub inputs: String,
    /// What was seen.
    pub seen: &'a OutputObserved,
    /// Its diagnosis, as far as it may be stated.
    pub diagnosis: Option<Diagnosis>,
}

/// The diagnoses of outputs that were judged wrong, each with a description of its inputs: at most one for each output, and none for an output with several
/// explanations. If some of its comparisons have no explanation, the sentence names the inputs of the first that has one. It speaks of the output as a whole only if
/// every diagnosis does.
pub fn agreed(wrong: &[Wrong<'_>]) -> Vec<OutputDiagnosis> {
    let mut outputs: Vec<&str> = vec![];
    for Wrong { seen, .. } in wrong {
        if !outputs.contains(&seen.output.as_str()) {
            outputs.push(&seen.output);
        }
    }
    outputs
        .into_iter()
        .filter_map(|output| of_output(wrong.iter().filter(|wrong| wrong.seen.output == output)))
        .collect()
}

fn of_output<'a>(wrong: impl Iterator<Item = &'a Wrong<'a>> + Clone) -> Option<OutputDiagnosis> {
    let mut explained = wrong.clone().filter_map(|w| Some((&w.inputs, w.seen, w.diagnosis.as_ref()?)));
    let (inputs, first, diagnosis) = explained.next()?;
    let mut whole = diagnosis.whole;
    for (_, _, other) in explained {
        if !alike(&diagnosis.pattern, &other.pattern) {
            return None;
        }
        whole &= other.whole;
    }
    let diagnosis = Diagnosis { whole, ..diagnosis.clone() };
    let text = sentence(&diagnosis, first);
    let all = wrong.clone().all(|wrong| wrong.diagnosis.is_some());
    let text = if all { text } else { format!("in {inputs}, {text}") };
    Some(OutputDiagnosis { output: first.output.clone(), text, diagnosis })
}

/// Whether two patterns are the same, up to the rounding of numbers that were derived from values.
fn alike(a: &WrongPattern, b: &WrongPattern) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= SAME * a.abs().max(b.abs());
    match (a, b) {
        (WrongPattern::Factor { factor: a, .. }, WrongPattern::Factor { factor: b, .. })
        | (WrongPattern::Offset { by: a }, WrongPattern::Offset { by: b }) => near(*a, *b),
        // The numbers follow from the rows of each trial.
        (WrongPattern::RowFactors { .. }, WrongPattern::RowFactors { .. }) => true,
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::compare::Comparison;
    use crate::measure::diagnosed::stated;
    use kforge_types::model::{DType, Tolerance};
    use kforge_types::record::Fit;

    fn seen(output: &str, pattern: Option<WrongPattern>) -> OutputObserved {
        seen_in(output, pattern, true)
    }

    fn seen_in(output: &str, pattern: Option<WrongPattern>, whole: bool) -> OutputObserved {
        let mut comparison = Comparison::new(output, DType::F32, &[4, 4], 1.0, None);
        comparison.floats(0, &[0.0; 16], &[1.0; 16], None);
        let diagnosis = pattern.map(|pattern| Diagnosis { pattern, wrong: 16, explained: 16, whole });
        OutputObserved { diagnosis, fit: Some(Fit::default()), ..comparison.finish() }
    }

    fn texts(all: &[OutputObserved]) -> Vec<String> {
        let diagnosis = |seen| stated(seen, &Tolerance::default());
        let wrong: Vec<Wrong<'_>> = all
            .iter()
            .enumerate()
            .map(|(at, seen)| Wrong { inputs: format!("trial {at} (uniform)"), seen, diagnosis: diagnosis(seen) })
            .collect();
        agreed(&wrong).into_iter().map(|found| format!("{}: {}", found.output, found.text)).collect()
    }

    #[test]
    fn an_explanation_speaks_of_every_element_only_if_it_holds_for_every_element_of_all_inputs() {
        let negated = |whole| seen_in("y", Some(WrongPattern::Negated), whole);
        assert_eq!(texts(&[negated(true), negated(true)]), ["y: every element has the opposite sign"]);
        let some = ["y: every wrong element has the opposite sign"];
        assert_eq!(texts(&[negated(true), negated(false)]), some);
        assert_eq!(texts(&[negated(false), negated(true)]), some);
    }

    #[test]
    fn each_output_has_at_most_one_explanation() {
        let factor = |factor: f64| Some(WrongPattern::Factor { factor, dim: None });
        let same = [seen("y", factor(2.0)), seen("z", Some(WrongPattern::Negated)), seen("y", factor(2.002))];
        assert_eq!(
            texts(&same),
            ["y: every element is 2 times its expected value", "z: every element has the opposite sign"]
        );
        assert_eq!(texts(&[seen("y", factor(2.0)), seen("y", factor(3.0))]), [""; 0]);
        assert_eq!(texts(&[seen("y", factor(2.0)), seen("y", Some(WrongPattern::Negated))]), [""; 0]);
        assert_eq!(
            texts(&[seen("y", None), seen("y", factor(2.0))]),
            ["y: in trial 1 (uniform), every element is 2 times its expected value"]
        );
        assert_eq!(texts(&[seen("y", None)]), [""; 0]);
    }
}
