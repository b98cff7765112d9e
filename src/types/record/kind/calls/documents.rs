//! What a calls step saw.

use serde::{Deserialize, Serialize};

use crate::record::VerifyObservation;

/// What a calls step saw: call times of a kernel in PyTorch by the clock of a process that runs no code of it, and how outputs of timed calls compare with the
/// expected values.
///
/// A call time begins before the inputs exist in memory that the kernel's process reaches, and ends when the outputs lie in memory that it does not reach. It
/// contains what PyTorch does on the host, and the hand-over of inputs and outputs. It compares with no device time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CallsObserved {
    /// How the outputs of the timed calls that were chosen for it compare with the expected values.
    pub compared: VerifyObservation,
    /// Nanoseconds of each call on inputs of an ordinary distribution, in the order of measurement. The hand-over is not subtracted.
    pub call_ns: Vec<f64>,
    /// Nanoseconds of hand-overs without a call, on the same buffers, taken before code of the kernel was in the process.
    pub hand_over_ns: Vec<f64>,
    /// Nanoseconds of calls on inputs of a stress class, made among the others. They are in no series, because a kernel may depend on its data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stress_ns: Vec<f64>,
    /// How many of all timed calls were compared.
    pub checked: u32,
    /// Calls that were left out, because the device was under hardware slowdown or thermal limits.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u32,
    /// Why calls were not timed; none if they were, or if the kernel failed before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untimed: Option<String>,
    /// The kernels that further calls launched, if the kernel has a policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launched: Option<LaunchedKernels>,
}

/// The kernels of a device that calls of a kernel in PyTorch launched, as the driver's records say. A process that ran no timed call made these calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LaunchedKernels {
    /// How many calls they are of.
    pub calls: u32,
    /// The kernels by name, with the copies and fills of memory.
    pub kernels: Vec<LaunchedKernel>,
    /// Why nothing is known of them, or why they say nothing of timed calls; none if they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

/// A kernel of a device that calls of a kernel in PyTorch launched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LaunchedKernel {
    /// Its name, with template arguments where it has some.
    pub name: String,
    /// How often it ran in all calls.
    pub launches: u64,
    /// How long it ran in all calls, in nanoseconds.
    pub ns: f64,
    /// Whether it is a copy or a fill of memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copies: bool,
    /// Whether the kernel's own files define a function of its name, for a device.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub declared: bool,
}

/// The name of a kernel with its namespaces, without its type, template arguments and parameters. Namespaces in arguments are no part of it.
pub fn qualified_name(name: &str) -> String {
    const UNNAMED: &str = "(anonymous namespace)";
    let (mut found, mut open, mut rest, mut before) = (String::new(), vec![], name.trim(), ' ');
    while let Some(c) = rest.chars().next() {
        let mut step = c.len_utf8();
        match (open.last(), c) {
            (None, '(') if rest.starts_with(UNNAMED) => {
                found += UNNAMED;
                step = UNNAMED.len();
            }
            (None, '(') if found != "decltype" => break,
            // In parentheses, `<` and `>` may compare.
            (_, '(') | (None | Some('<'), '<') => open.push(c),
            (Some('('), ')') => drop(open.pop()),
            (Some('<'), '>') if before != '-' => drop(open.pop()),
            // A type ends.
            (None, ' ' | '*' | '&') => found.clear(),
            (None, c) => found.push(c),
            (Some(_), _) => {}
        }
        before = c;
        rest = &rest[step..];
    }
    found
}

/// The name of a kernel without its type, namespaces, template arguments and parameters.
pub fn base_name(name: &str) -> String {
    let qualified = qualified_name(name);
    qualified.rsplit("::").next().unwrap_or_default().to_string()
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl CallsObserved {
    /// Nothing was timed yet.
    pub fn begun(compared: VerifyObservation) -> Self {
        CallsObserved {
            compared,
            call_ns: vec![],
            hand_over_ns: vec![],
            stress_ns: vec![],
            checked: 0,
            dropped: 0,
            untimed: None,
            launched: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_before_its_arguments_and_begins_after_its_type() {
        for (name, qualified, base) in [
            ("add_one", "add_one", "add_one"),
            ("a::b(int)", "a::b", "b"),
            ("void fused<c10::Half>(c10::Half const*)", "fused", "fused"),
            ("void (anonymous namespace)::fused<float, 4>(float*)", "(anonymous namespace)::fused", "fused"),
            ("void at::native::unrolled<at::native::add(int)::{lambda()#1}>(int)", "at::native::unrolled", "unrolled"),
            (
                "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, (bool)0, (3)>(2)>(int)",
                "internal::gemvx::kernel",
                "kernel",
            ),
            ("void outer<int>::inner<float>(int)", "outer::inner", "inner"),
            ("(further kernels)", "", ""),
        ] {
            assert_eq!((qualified_name(name).as_str(), base_name(name).as_str()), (qualified, base), "{name}");
        }
    }
}
