//! Call times of champions in PyTorch, as values and lines. Knows what was observed; measures nothing. A call time compares with no device time.

use anstyle::Style;
use serde::{Deserialize, Serialize};

use super::duration::duration;
use kforge_numerics::measure::interval::median_interval;
use kforge_numerics::measure::own_share::{OwnShare, own_share};
use kforge_numerics::measure::stats::median;
use kforge_types::record::kind::calls::documents::CallsObserved;

const DIM: Style = Style::new().dimmed();

/// The columns of [`CallsReport::cells`].
pub(super) const COLUMNS: &str = "shape | call time | 95 % interval | hand-over in it | calls | compared";

/// The call times of a variant at a bench shape, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CallsReport {
    /// The shape.
    pub shape: String,
    /// The variant.
    pub variant: String,
    /// The median call time: from before the inputs are in memory that the kernel's process reaches until the outputs are in memory that it does not reach. None
    /// if calls were not timed.
    pub call_ns: Option<f64>,
    /// The interval of 95 % of the median; none for fewer than six calls.
    pub interval: Option<(f64, f64)>,
    /// The median time of a hand-over without a call, which every call time contains.
    pub hand_over_ns: Option<f64>,
    /// The median time of calls on inputs of a stress class, if there were any. These calls are not among the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stress_ns: Option<f64>,
    /// The number of calls whose times count.
    pub calls: u64,
    /// How many of them have outputs that were compared with the expected values. Those on inputs of a stress class are compared, and not counted here.
    pub compared: u64,
    /// Why calls were not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untimed: Option<String>,
    /// Where calls spend time of the device, if the kernel has a policy and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnShare>,
}

impl CallsReport {
    /// The report of what a step saw of a variant at a shape; none if the kernel failed in it, which its verdict says.
    pub fn of(shape: &str, variant: &str, seen: &CallsObserved) -> Option<Self> {
        let typical = |ns: &[f64]| Some(median(ns)).filter(|ns| ns.is_finite() && *ns > 0.0);
        let lacks = seen.compared.not_launched.clone();
        let untimed = seen.untimed.clone().or(lacks);
        let failed = seen.compared.findings.iter().any(|finding| !finding.kind.is_allowed());
        (!failed).then(|| CallsReport {
            shape: shape.into(),
            variant: variant.into(),
            call_ns: typical(&seen.call_ns).filter(|_| untimed.is_none()),
            interval: median_interval(&seen.call_ns).filter(|_| untimed.is_none()),
            hand_over_ns: typical(&seen.hand_over_ns),
            stress_ns: typical(&seen.stress_ns),
            calls: seen.call_ns.len() as u64,
            compared: u64::from(seen.checked).saturating_sub(seen.stress_ns.len() as u64),
            untimed,
            own: seen.launched.as_ref().and_then(own_share),
        })
    }

    /// What orders them.
    pub(super) fn order(&self) -> (&str, &str) {
        (&self.shape, &self.variant)
    }

    fn time(&self) -> String {
        self.call_ns.map_or_else(|| "unknown".into(), duration)
    }

    fn hand_over(&self) -> String {
        self.hand_over_ns.map_or_else(|| "unknown".into(), duration)
    }

    /// The time with its interval: `call 145.00 us (141.00 us to 149.00 us)`.
    fn told(&self) -> String {
        let interval = self.interval.map(|(low, high)| format!(" ({} to {})", duration(low), duration(high)));
        format!("call {:>9}{}", self.time(), interval.unwrap_or_default())
    }

    /// What the time contains and rests on.
    fn about(&self) -> String {
        format!("hand-over {} of it; {} calls, {} compared", self.hand_over(), self.calls, self.compared)
    }

    /// All of it in one line, if calls were timed.
    pub(super) fn line(&self) -> Option<String> {
        self.call_ns.map(|_| format!("{}: {}; {}", self.shape, self.told(), self.about()))
    }

    /// Where calls spend time of the device, in one line.
    pub(super) fn own_line(&self) -> Option<String> {
        self.own.as_ref().map(|own| {
            let time = duration(own.device_ns);
            format!("{}: its own kernels take {} of {time} of the device a call: {}", self.shape, own.said(), own.named(false))
        })
    }

    /// The cells of a table with [`COLUMNS`].
    pub(super) fn cells(&self) -> [String; 6] {
        let interval = match (&self.untimed, self.interval) {
            (Some(why), _) => format!("not timed: {why}"),
            (None, Some((low, high))) => format!("{} to {}", duration(low), duration(high)),
            (None, None) => "unknown: too few calls".into(),
        };
        [self.shape.clone(), self.time(), interval, self.hand_over(), self.calls.to_string(), self.compared.to_string()]
    }
}

/// Call times as lines with ANSI styles, in columns. Why others are missing is said where champions are not confirmed.
pub(super) fn lines(all: &[CallsReport]) -> Vec<String> {
    let timed = || all.iter().filter(|one| one.call_ns.is_some());
    let width = timed().map(|one| one.shape.len()).max().unwrap_or(0);
    let line = |one: &CallsReport| format!("{:width$}  {}  {DIM}{}{DIM:#}", one.shape, one.told(), one.about());
    let own = all.iter().filter_map(CallsReport::own_line).map(|line| format!("{DIM}{line}{DIM:#}"));
    timed().map(line).chain(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::kind::calls::documents::{LaunchedKernel, LaunchedKernels};
    use kforge_types::record::{Finding, FindingKind, VerifyObservation};

    fn seen() -> CallsObserved {
        let begun = CallsObserved::begun(VerifyObservation::begun(false, 7, "device".into()));
        CallsObserved {
            call_ns: (0..11).map(|at| 140_000.0 + 1000.0 * f64::from(at)).collect(),
            hand_over_ns: vec![61_200.0, 60_000.0, 90_000.0],
            checked: 7,
            ..begun
        }
    }

    fn told(seen: &CallsObserved) -> String {
        let found = CallsReport::of("big", "", seen).unwrap();
        anstream::adapter::strip_str(&lines(&[found]).join("\n")).to_string()
    }

    #[test]
    fn a_call_time_is_told_with_its_interval_and_the_hand_over_in_it() {
        assert_eq!(
            told(&seen()),
            "big  call 145.00 us (141.00 us to 149.00 us)  hand-over 61.20 us of it; 11 calls, 7 compared"
        );
        let found = CallsReport::of("big", "", &seen()).unwrap();
        let line = "big: call 145.00 us (141.00 us to 149.00 us); hand-over 61.20 us of it; 11 calls, 7 compared";
        assert_eq!(found.line().as_deref(), Some(line));
        let cells = found.cells();
        assert_eq!(cells.len(), COLUMNS.split(" | ").count());
        assert_eq!(cells[1..4], ["145.00 us", "141.00 us to 149.00 us", "61.20 us"]);
    }

    #[test]
    fn the_share_of_own_kernels_is_told_after_the_times() {
        let kernel = |name: &str, ns, declared| LaunchedKernel { name: name.into(), launches: 3, ns, copies: false, declared };
        let kernels = vec![kernel("fused", 90_000.0, true), kernel("nvjet_x", 210_000.0, false)];
        let launched = LaunchedKernels { calls: 3, kernels, absent: None };
        let said = told(&CallsObserved { launched: Some(launched), ..seen() });
        let line = "big: its own kernels take 30.0 % of 100.00 us of the device a call: `nvjet_x` (cublas) 70.0 %, `fused` (its own) 30.0 %";
        assert_eq!(said.lines().nth(1), Some(line), "{said}");
    }

    #[test]
    fn what_was_not_timed_has_no_time_and_a_kernel_that_failed_no_line() {
        let untimed = CallsObserved { untimed: Some("memory suffices for 3 calls".into()), ..seen() };
        assert_eq!(told(&untimed), "");
        let cells = CallsReport::of("big", "", &untimed).unwrap().cells();
        assert_eq!(cells[1..3], ["unknown", "not timed: memory suffices for 3 calls"]);
        let mut failed = seen();
        failed.compared.findings.push(Finding::new(FindingKind::InputModified, "the input `x` was changed"));
        assert_eq!(CallsReport::of("big", "", &failed), None);
    }
}
