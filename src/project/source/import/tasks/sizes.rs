//! The dims of a task: a name for each group of integers that can have other values, expressions for everything that follows them, and a dim of its own for
//! what follows in no plain way. Knows numbers and names; writes nothing.

use super::facts::{Atom, Constant, TaskFacts};
use super::fit::{Dim, fit};

/// A dim, with its value in each probe that counts.
#[derive(Debug, Clone)]
pub(super) struct Sizes {
    dims: Vec<Dim>,
    /// Dims that are no group: what no expression gives.
    numbers: Vec<Dim>,
    /// The probes that count. The first is the task's own.
    runs: Vec<usize>,
    /// For each group its dim; none where it is a literal.
    of_group: Vec<Option<usize>>,
}

impl Sizes {
    /// Names the groups. `claim` gives a name that is still free.
    pub(super) fn new(facts: &TaskFacts, constants: &[Constant], claim: &mut dyn FnMut(&str) -> String) -> Self {
        let plain = |at: usize| Dim {
            name: format!("g{at}"),
            values: facts.probes.iter().map(|probe| probe.values[facts.groups[at][0]].into()).collect(),
        };
        let all: Vec<Dim> = (0..facts.groups.len()).map(plain).collect();
        let frozen = frozen(facts, &all);
        let counts = |run: &usize| frozen.iter().all(|at| all[*at].values[*run] == all[*at].values[0]);
        let runs: Vec<usize> = (0..facts.probes.len()).filter(counts).collect();
        let (mut dims, mut of_group) = (vec![], vec![]);
        for (at, group) in facts.groups.iter().enumerate() {
            if frozen.contains(&at) {
                of_group.push(None);
                continue;
            }
            of_group.push(Some(dims.len()));
            let name = claim(&name(&facts.atoms[group[0]], facts, constants));
            dims.push(Dim { name, values: runs.iter().map(|run| all[at].values[*run]).collect() });
        }
        Sizes { dims, numbers: vec![], runs, of_group }
    }

    /// The expression of an integer, given for each probe. What follows in no plain way becomes a dim of its own, which `name` names.
    pub(super) fn text(&mut self, value: impl Fn(usize) -> i64, name: impl FnOnce() -> String) -> String {
        let wanted: Vec<i128> = self.runs.iter().map(|run| value(*run).into()).collect();
        if let Some(text) = fit(&wanted, &self.dims) {
            return text;
        }
        if let Some(known) = self.numbers.iter().find(|dim| dim.values == wanted) {
            return known.name.clone();
        }
        let name = name();
        self.numbers.push(Dim { name: name.clone(), values: wanted });
        name
    }

    /// The name of an atom's dim; none if it is a literal.
    pub(super) fn of_atom(&self, facts: &TaskFacts, atom: usize) -> Option<&str> {
        let group = facts.groups.iter().position(|group| group.contains(&atom))?;
        self.of_group[group].map(|dim| self.dims[dim].name.as_str())
    }

    /// The dims with their values at a probe, in order.
    pub(super) fn at(&self, probe: usize) -> Option<Vec<(&str, i64)>> {
        let run = self.runs.iter().position(|run| *run == probe)?;
        let number = |dim: &Dim| i64::try_from(dim.values[run]).unwrap_or_default();
        Some(self.dims.iter().chain(&self.numbers).map(|dim| (dim.name.as_str(), number(dim))).collect())
    }
}

/// The groups that only the constructor knows, such as an axis, if no expression gives the shapes of results while they vary.
fn frozen(facts: &TaskFacts, dims: &[Dim]) -> Vec<usize> {
    let fits = |dims: &[Dim], runs: &[usize]| {
        let within: Vec<Dim> = dims
            .iter()
            .map(|dim| Dim { name: dim.name.clone(), values: runs.iter().map(|run| dim.values[*run]).collect() })
            .collect();
        let outputs = facts.probes[0].outputs.iter().enumerate();
        outputs.into_iter().all(|(at, shape)| {
            (0..shape.len()).all(|axis| {
                let wanted: Vec<i128> = runs.iter().map(|run| facts.probes[*run].outputs[at][axis].into()).collect();
                fit(&wanted, &within).is_some()
            })
        })
    };
    let every: Vec<usize> = (0..facts.probes.len()).collect();
    if fits(dims, &every) {
        return vec![];
    }
    let base = &facts.probes[0];
    let only_inside = |at: &usize| {
        let alone = facts.probes.iter().filter(|probe| {
            dims.iter().enumerate().all(|(other, _)| {
                let first = facts.groups[other][0];
                (probe.values[first] != base.values[first]) == (other == *at)
            })
        });
        let mut alone = alone.peekable();
        alone.peek().is_some() && alone.all(|probe| probe.inputs == base.inputs && probe.state == base.state)
    };
    let frozen: Vec<usize> = (0..dims.len()).filter(only_inside).collect();
    let is_kept = |run: usize| frozen.iter().all(|at| dims[*at].values[run] == dims[*at].values[0]);
    let kept: Vec<usize> = every.into_iter().filter(|run| is_kept(*run)).collect();
    // Small sizes count more than an expression.
    let has_all = [facts.small, facts.ragged].iter().flatten().all(|run| kept.contains(run));
    if has_all { frozen } else { vec![] }
}

/// The name of an atom in the task.
fn name(atom: &Atom, facts: &TaskFacts, constants: &[Constant]) -> String {
    match atom {
        Atom::Constant { of, index, .. } => match constants.get(*of) {
            Some(constant) if constant.values.len() > 1 => format!("{}_{index}", constant.name),
            Some(constant) => constant.name.clone(),
            None => "n".into(),
        },
        Atom::Init { path, .. } => {
            let argument =
                path.first().and_then(|at| facts.init.get(*at)).map_or("", |argument| argument.name.as_str());
            let rest: String = path.iter().skip(1).map(|at| format!("_{at}")).collect();
            format!("{}{rest}", if argument.is_empty() { "size" } else { argument })
        }
        Atom::Extent { input, axis, .. } => {
            format!("{}_{axis}", facts.inputs.get(*input).map_or("x", |input| input.argument.as_str()))
        }
    }
}
