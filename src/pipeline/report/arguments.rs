//! The names of the arguments of a kernel's launches, as its manifest declares them. Knows declarations and the launches of a step; does not know which
//! field of a key is meant.
//!
//! A step's launches need not be the declared ones. So an argument has a name only if every declared launch that can be meant gives it that name.
//!
//! | what differs | which declared launches can be meant |
//! |---|---|
//! | a launch with `when` is left out, one with `repeat` is repeated | those that can stand at the position, and call the same kernel, if the step is known |
//! | Triton leaves out integers that are 1, and null pointers | one that no integer was left out of, which the number of arguments of the step shows |

use serde_json::Value;

use kforge_types::model::kernel::{ArgDecl, LaunchAction, LaunchDecl};
use kforge_types::model::{Kernel, Language, Launch};

/// The arguments of a kernel by launch and position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    declared: Vec<Declared>,
    /// The launches of a step: the kernel that each calls, and how many arguments it has; none for a fill. Empty if no step is known.
    launched: Vec<Option<(String, usize)>>,
    /// Whether arguments may be left out.
    leaves_out: bool,
}

/// A declared launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Declared {
    /// How often it is launched at least.
    least: usize,
    /// How often it is launched at most; none if that is not known.
    most: Option<usize>,
    /// The kernel that it calls; empty for a fill.
    entry: String,
    /// Its arguments: none for one without a name of its own. Nulls are not among those of a kernel that leaves out arguments.
    names: Vec<Option<String>>,
}

impl Arguments {
    /// The names of a kernel whose launches are not known.
    pub fn of(kernel: &Kernel) -> Self {
        let leaves_out = kernel.language == Language::Triton;
        let declared = kernel.launches.iter().map(|launch| Declared::of(launch, leaves_out)).collect();
        Arguments { declared, launched: vec![], leaves_out }
    }

    /// The names for a step of a kernel, given the step's parameters.
    pub fn of_step(kernel: &Kernel, params: &Value) -> Self {
        let launches = params.get("launches").cloned().map(serde_json::from_value::<Vec<Launch>>);
        let launches = launches.and_then(Result::ok).unwrap_or_default();
        let launched = |launch: &Launch| match launch {
            Launch::Kernel(kernel) => Some((bare(&kernel.entry).to_string(), kernel.args.len())),
            Launch::Memset { .. } => None,
        };
        Arguments { launched: launches.iter().map(launched).collect(), ..Arguments::of(kernel) }
    }

    /// The name of an argument, both counted from 0.
    pub fn name(&self, launch: usize, at: usize) -> Option<&str> {
        let called = match self.launched.get(launch) {
            Some(Some((entry, arguments))) => Some((entry.as_str(), *arguments)),
            Some(None) => return None,
            None if self.leaves_out || !self.launched.is_empty() => return None,
            None => None,
        };
        let fits = |declared: &&Declared| match called {
            Some((entry, arguments)) => {
                declared.names.len() == arguments && (self.leaves_out || bare(&declared.entry) == entry)
            }
            None => declared.names.len() > at,
        };
        let mut names = self.at(launch).filter(fits).map(|declared| declared.names.get(at)?.as_deref());
        let first = names.next()??;
        names.all(|name| name == Some(first)).then_some(first)
    }

    /// The declared launches of kernels that can stand at a position.
    fn at(&self, position: usize) -> impl Iterator<Item = &Declared> {
        let mut before = (0usize, Some(0usize));
        self.declared.iter().filter(move |declared| {
            let (least, most) = before;
            let end = most.zip(declared.most).map(|(most, own)| most + own);
            before = (least + declared.least, end);
            !declared.entry.is_empty() && position >= least && end.is_none_or(|end| position < end)
        })
    }
}

impl Declared {
    fn of(launch: &LaunchDecl, leaves_out: bool) -> Self {
        let is_certain = launch.when.is_none() && launch.repeat.is_none();
        let (least, most) = (usize::from(is_certain), launch.repeat.is_none().then_some(1));
        let LaunchAction::Kernel { entry, args, .. } = &launch.action else {
            return Declared { least, most, ..Declared::default() };
        };
        let names = args.iter().filter(|arg| !(leaves_out && matches!(arg, ArgDecl::Null))).map(name).collect();
        Declared { least, most, entry: entry.value.clone(), names }
    }
}

fn name(arg: &ArgDecl) -> Option<String> {
    match arg {
        ArgDecl::Plain(expr) | ArgDecl::Value { value: expr, .. } => Some(expr.text().to_string()),
        ArgDecl::Ptr { buffer, .. } => Some(buffer.as_str().to_string()),
        _ => None,
    }
}

/// The name of a kernel without the arguments of its template, which tunables change.
fn bare(entry: &str) -> &str {
    entry.split('<').next().unwrap_or(entry).trim()
}

#[cfg(test)]
impl Arguments {
    /// The names of the arguments of one launch.
    pub(crate) fn named(names: &[&str]) -> Self {
        let names = names.iter().map(|name| Some(name.to_string())).collect();
        let declared = Declared { least: 1, most: Some(1), entry: "k".into(), names };
        Arguments { declared: vec![declared], ..Arguments::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A launch that runs from `least` to `most` times.
    fn launch(entry: &str, names: &[&str], least: usize, most: Option<usize>) -> Declared {
        let names = names.iter().map(|name| (!name.is_empty()).then(|| name.to_string())).collect();
        Declared { least, most, entry: entry.into(), names }
    }

    #[test]
    fn an_argument_has_the_name_on_which_all_launches_agree_that_can_be_meant() {
        let fill = launch("", &[], 1, Some(1));
        let partial = launch("partial<VEC>", &["x", "part", "rows"], 0, None);
        let last = launch("last", &["part", "y", "rows"], 1, Some(1));
        let of = |declared: &[Declared]| Arguments { declared: declared.to_vec(), ..Arguments::default() };
        // The first one is certain. After it, either may stand.
        let declared = of(&[launch("first", &["x"], 1, Some(1)), fill, partial.clone(), last.clone()]);
        assert_eq!([declared.name(0, 0), declared.name(1, 0)], [Some("x"), None]);
        assert_eq!([declared.name(2, 0), declared.name(2, 2), declared.name(7, 2)], [None, Some("rows"), Some("rows")]);
        // A step says which of them it is.
        let called = |entry: &str| Some((entry.to_string(), 3));
        let step =
            Arguments { launched: vec![called("partial"), called("partial"), called("last")], ..of(&[partial, last]) };
        assert_eq!(
            [step.name(1, 0), step.name(2, 0), step.name(2, 3), step.name(3, 0)],
            [Some("x"), Some("part"), None, None]
        );
        let unnamed = of(&[launch("k", &["", "n"], 1, Some(1))]);
        assert_eq!([unnamed.name(0, 0), unnamed.name(0, 1)], [None, Some("n")]);
    }

    #[test]
    fn a_kernel_that_leaves_out_arguments_has_names_where_the_step_left_out_none() {
        let declared = vec![launch("k", &["x", "y", "rows", "stride"], 1, Some(1))];
        let of = |arguments: usize| Arguments {
            declared: declared.clone(),
            launched: vec![Some(("k_0".into(), arguments))],
            leaves_out: true,
        };
        assert_eq!([of(4).name(0, 2), of(3).name(0, 2)], [Some("rows"), None]);
        let unknown = Arguments { launched: vec![], ..of(4) };
        assert_eq!(unknown.name(0, 2), None, "no step is known");
    }
}
