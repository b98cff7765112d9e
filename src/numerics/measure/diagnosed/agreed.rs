//! What several comparisons of one output have in common. Knows diagnoses of trials; does not know values.

use super::sentence;
use kforge_types::record::params::OutputDiagnosis;
use kforge_types::record::{OutputObserved, WrongPattern};

/// How far numbers of two trials may be apart, relative to the larger, to be the same number.
const SAME: f64 = 5e-3;

/// The diagnoses of outputs that were judged wrong, each with a description of its inputs: at most one for each output, and none for an output with several
/// explanations. If some of its comparisons have no explanation, the sentence names the inputs of the first that has one.
pub fn agreed(wrong: &[(String, &OutputObserved)]) -> Vec<OutputDiagnosis> {
    let mut outputs: Vec<&str> = vec![];
    for (_, seen) in wrong {
        if !outputs.contains(&seen.output.as_str()) {
            outputs.push(&seen.output);
        }
    }
    outputs.into_iter().filter_map(|output| of_output(wrong.iter().filter(|(_, seen)| seen.output == output))).collect()
}

fn of_output<'a>(seen: impl Iterator<Item = &'a (String, &'a OutputObserved)> + Clone) -> Option<OutputDiagnosis> {
    let mut explained = seen.clone().filter_map(|(inputs, seen)| Some((inputs, *seen, seen.diagnosis.as_ref()?)));
    let (inputs, first, diagnosis) = explained.next()?;
    if explained.any(|(_, _, other)| !alike(&diagnosis.pattern, &other.pattern)) {
        return None;
    }
    let text = sentence(diagnosis, first);
    let all = seen.clone().all(|(_, seen)| seen.diagnosis.is_some());
    let text = if all { text } else { format!("in {inputs}, {text}") };
    Some(OutputDiagnosis { output: first.output.clone(), text, diagnosis: diagnosis.clone() })
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
    use kforge_types::model::DType;
    use kforge_types::record::Diagnosis;

    fn seen(output: &str, pattern: Option<WrongPattern>) -> OutputObserved {
        let mut comparison = Comparison::new(output, DType::F32, &[4, 4], 1.0, None);
        comparison.floats(0, &[0.0; 16], &[1.0; 16], None);
        let diagnosis = pattern.map(|pattern| Diagnosis { pattern, wrong: 16, explained: 16, whole: true });
        OutputObserved { diagnosis, ..comparison.finish() }
    }

    fn texts(all: &[OutputObserved]) -> Vec<String> {
        let named = |(at, seen)| (format!("trial {at} (uniform)"), seen);
        let wrong: Vec<_> = all.iter().enumerate().map(named).collect();
        agreed(&wrong).into_iter().map(|found| format!("{}: {}", found.output, found.text)).collect()
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
