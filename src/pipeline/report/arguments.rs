//! The names of the arguments of a kernel's launches, as its manifest declares them. Knows declarations; does not know which field of a key is meant.

use kforge_types::model::kernel::{ArgDecl, LaunchAction, LaunchDecl};
use kforge_types::model::{Kernel, Language};

/// The names by launch and position; none for an argument that has no name of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments(Vec<Vec<Option<String>>>);

impl Arguments {
    /// The names of a kernel. There are none if the launches of a variant need not be those that are declared: some depend on a condition or are repeated, or
    /// Triton leaves out arguments.
    pub fn of(kernel: &Kernel) -> Self {
        let is_as_declared = |launch: &LaunchDecl| launch.when.is_none() && launch.repeat.is_none();
        match kernel.language == Language::Cuda && kernel.launches.iter().all(is_as_declared) {
            true => Arguments(kernel.launches.iter().map(names).collect()),
            false => Arguments::default(),
        }
    }

    /// The name of an argument, both counted from 0.
    pub fn name(&self, launch: usize, at: usize) -> Option<&str> {
        self.0.get(launch)?.get(at)?.as_deref()
    }
}

fn names(launch: &LaunchDecl) -> Vec<Option<String>> {
    let LaunchAction::Kernel { args, .. } = &launch.action else { return vec![] };
    let name = |arg: &ArgDecl| match arg {
        ArgDecl::Plain(expr) | ArgDecl::Value { value: expr, .. } => Some(expr.text().to_string()),
        ArgDecl::Ptr { buffer, .. } => Some(buffer.as_str().to_string()),
        _ => None,
    };
    args.iter().map(name).collect()
}

#[cfg(test)]
impl Arguments {
    /// The names of the arguments of one launch.
    pub(crate) fn named(names: &[&str]) -> Self {
        Arguments(vec![names.iter().map(|name| Some(name.to_string())).collect()])
    }
}
