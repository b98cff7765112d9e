//! Failed judgements of a variant, held until all of its shapes are judged, so that the most informative one is reported in full. Knows steps and shapes;
//! prints nothing.

use std::collections::{BTreeMap, HashMap};
use std::mem::take;

use kforge_ops::build::is_about_values;
use kforge_types::model::Package;
use kforge_types::record::event::{Labels, StepFinished};
use kforge_types::record::{Outcome, StepKind, Verdict};

/// A variant of a kernel on a target: package, kernel, target, variant.
type Seat = [String; 4];

/// What is held for one variant.
#[derive(Default)]
struct Awaited {
    /// How many shapes of the variant are not judged yet.
    judges: usize,
    failed: Vec<StepFinished>,
}

/// What is held, by variant.
#[derive(Default)]
pub(super) struct Held(BTreeMap<Seat, Awaited>);

impl Held {
    /// Creates the state for a build of these steps.
    pub(super) fn awaiting<'n>(steps: impl Iterator<Item = (StepKind, &'n Labels)>) -> Self {
        let mut all = BTreeMap::<Seat, Awaited>::new();
        for (_, labels) in steps.filter(|(kind, labels)| judges(*kind, labels)) {
            all.entry(seat(labels)).or_default().judges += 1;
        }
        Held(all)
    }

    /// Takes a step that ended, and returns the steps to report now, in the order in which they ended.
    pub(super) fn ended(&mut self, step: &StepFinished) -> Vec<StepFinished> {
        let mut due = vec![];
        if step.kind == StepKind::Select {
            // A selection reads all judgements of its kernel, including known ones, for which there is no event.
            let of_select = |seat: &Seat| seat[..3] == self::seat(&step.labels)[..3];
            due.extend(
                self.0.iter_mut().filter(|(seat, _)| of_select(seat)).flat_map(|(_, all)| take(&mut all.failed)),
            );
        }
        let awaited = self.0.get_mut(&seat(&step.labels)).filter(|all| all.judges > 0);
        let Some(awaited) = awaited.filter(|_| judges(step.kind, &step.labels)) else {
            due.push(step.clone());
            return due;
        };
        awaited.judges -= 1;
        match (&step.outcome, &step.verdict) {
            (Outcome::Executed | Outcome::Fresh, Some(Verdict::Fail(_))) => awaited.failed.push(step.clone()),
            _ => due.push(step.clone()),
        }
        if awaited.judges == 0 {
            due.append(&mut awaited.failed);
        }
        due
    }

    /// The judgements that are still held.
    pub(super) fn left(&mut self) -> Vec<StepFinished> {
        self.0.values_mut().flat_map(|all| take(&mut all.failed)).collect()
    }
}

/// Sorts failed judgements: faults of a kernel before the wrong values that they cause, and within each the smallest shape first, which makes the mistake
/// easiest to find. Other steps come first, in the order in which they ended.
pub(super) fn ordered(mut steps: Vec<StepFinished>, packages: &HashMap<&str, &Package>) -> Vec<StepFinished> {
    steps.sort_by_cached_key(|step| match (&step.verdict, judges(step.kind, &step.labels)) {
        (Some(Verdict::Fail(_)), true) => (1, step.notes.iter().any(is_about_values), extent(step, packages)),
        _ => (0, false, 0),
    });
    steps
}

/// The size of a step's shape: the product of its dims.
fn extent(step: &StepFinished, packages: &HashMap<&str, &Package>) -> u128 {
    let labels = &step.labels;
    let find = || {
        let package = packages.get(labels.package.as_str())?;
        let operator = package.operator(&package.kernel(labels.kernel.as_deref()?)?.operator)?;
        operator.shapes.iter().find(|shape| Some(shape.name.as_str()) == labels.shape.as_deref())
    };
    let product = |all: u128, dim: &i64| all.saturating_mul(dim.unsigned_abs().into());
    find().map_or(u128::MAX, |shape| shape.dims.values().fold(1, product))
}

/// Whether a step judges a variant itself, and not the kernel with one of its methods turned off.
fn judges(kind: StepKind, labels: &Labels) -> bool {
    kind == StepKind::Judge && labels.method.is_none()
}

fn seat(labels: &Labels) -> Seat {
    let of = |part: &Option<String>| part.clone().unwrap_or_default();
    [labels.package.clone(), of(&labels.kernel), of(&labels.target), of(&labels.variant)]
}

#[cfg(test)]
mod tests {
    use super::super::tests::step;
    use super::*;
    use kforge_foundation::base::Severity;
    use kforge_pipeline::step::judge::{JUDGED, VALUES};
    use kforge_types::model;
    use kforge_types::record::Note;

    const MANIFEST: &str = "[package]\nname = \"p\"\n[targets.cpu]\n\
        [operator.o]\ndims = [\"n\"]\ninputs.x = { dtype = \"f32\", shape = [\"n\"] }\noutputs.y = { dtype = \"f32\", shape = [\"n\"] }\n\
        reference = { builtin = \"elementwise\", y = \"x\" }\ntolerance = { atol = 1e-6, rtol = 1e-6 }\n\
        [operator.o.shapes]\nlarge = { n = 4096 }\nsmall = { n = 5 }\n\
        [kernel.k]\noperator = \"o\"\nsource = \"k.cu\"\n\
        [[kernel.k.launch]]\nentry = \"k\"\ngrid = [\"1\"]\nblock = [\"32\"]\nargs = [\"x\", \"y\", \"n\"]\n";

    fn package() -> Package {
        let file = std::sync::Arc::new(kforge_foundation::base::SourceFile {
            name: "kernel.toml".into(),
            text: MANIFEST.into(),
        });
        let (manifest, said) = model::parse(&file);
        assert!(said.is_empty(), "{said:?}");
        model::inherit(&manifest.unwrap(), None).0.unwrap()
    }

    fn judged(variant: &str, shape: &str, why: Option<&str>) -> StepFinished {
        let labels = Labels {
            package: "p".into(),
            kernel: Some("k".into()),
            target: Some("cpu".into()),
            variant: Some(variant.into()),
            shape: Some(shape.into()),
            ..Labels::default()
        };
        let verdict = Some(why.map_or(Verdict::Pass, |why| Verdict::Fail(why.into())));
        // Only a finding makes this verdict.
        let code = if why.is_some_and(|why| why.starts_with("race")) { JUDGED } else { VALUES };
        let notes = why.map(|why| Note::new(Severity::Error, code, why)).into_iter().collect();
        StepFinished { labels, verdict, notes, ..step("") }
    }

    fn names(steps: &[StepFinished]) -> Vec<String> {
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        steps.iter().map(|step| format!("{} {}", part(&step.labels.variant), part(&step.labels.shape))).collect()
    }

    #[test]
    fn a_variant_is_told_of_once_its_shapes_are_judged() {
        let wrong = Some("`y` is wrong at 0");
        let all = [
            judged("a", "large", wrong),
            judged("a", "small", None),
            judged("b", "large", wrong),
            judged("b", "small", wrong),
        ];
        let awaiting = || Held::awaiting(all.iter().map(|step| (step.kind, &step.labels)));
        let mut held = awaiting();
        assert_eq!(names(&held.ended(&all[0])), [""; 0]);
        assert_eq!(names(&held.ended(&all[2])), [""; 0]);
        assert_eq!(names(&held.ended(&all[1])), ["a small", "a large"]);
        // A failure is reported at the end, and only once, if other shapes of its variant were never judged.
        assert_eq!(names(&held.left()), ["b large"]);
        assert_eq!(names(&held.left()), [""; 0]);
        // Known judgements have no events. When the selection that reads them ends, all of them have ended.
        let mut held = awaiting();
        held.ended(&all[2]);
        let mut select = StepFinished { kind: StepKind::Select, ..judged("", "", None) };
        assert_eq!(names(&held.ended(&select)), ["b large", " "]);
        select.labels.kernel = Some("other".into());
        held.ended(&all[0]);
        assert_eq!(names(&held.ended(&select)), [" "]);
        // A judgement that is not awaited is reported at once.
        assert_eq!(names(&Held::default().ended(&all[0])), ["a large"]);
    }

    #[test]
    fn what_a_kernel_did_comes_before_wrong_values_and_small_shapes_before_large_ones() {
        let package = package();
        let packages = HashMap::from([("p", &package)]);
        let race = Some("race on element 3 of `s`: thread 1 reads");
        let wrong = Some("`y` is wrong at 0: got 1, want 2");
        let told = |steps: &[StepFinished]| names(&ordered(steps.to_vec(), &packages));
        assert_eq!(told(&[judged("a", "large", wrong), judged("a", "small", wrong)]), ["a small", "a large"]);
        assert_eq!(told(&[judged("a", "small", wrong), judged("a", "large", race)]), ["a large", "a small"]);
        let rejected = Some("`y`: `checks.py::check` rejects it as a whole");
        assert_eq!(told(&[judged("a", "small", rejected), judged("a", "large", race)]), ["a large", "a small"]);
        assert_eq!(told(&[judged("a", "large", wrong), judged("b", "small", None)]), ["b small", "a large"]);
    }
}
