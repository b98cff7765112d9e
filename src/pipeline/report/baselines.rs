//! Baselines beside champions, as values and lines. Knows ratings; measures nothing. Host time of calls and device time are two columns, and only device times
//! are compared.

use anstyle::{AnsiColor, Style};
use serde::{Deserialize, Serialize};

use super::duration::duration;
use kforge_numerics::measure::second_device::UNNAMED;
use kforge_types::record::kind::baseline::documents::{Confirmation, Rating};
use kforge_types::record::{Standing, Verdict};

const DIM: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Red.on_default();
const OPEN: Style = AnsiColor::Yellow.on_default();

/// The columns of [`BaselineReport::cells`].
pub(super) const COLUMNS: &str = "shape | baseline | time of a call | device time | the champion's | ratio | what runs";

/// A baseline beside a champion at a shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BaselineReport {
    /// The shape.
    pub shape: String,
    /// The baseline.
    pub baseline: String,
    /// The champion.
    pub variant: String,
    /// Whether it is correct, and how it compares.
    pub rating: Rating,
    /// What a second device says of the ratio; none for a ratio that needs no confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
    /// How far the build trusts the observation of the second device; none without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_standing: Option<Standing>,
}

impl BaselineReport {
    /// The report of a first measurement, before a second device is heard.
    pub fn new(shape: String, baseline: String, variant: String, rating: Rating) -> Self {
        let unnamed = rating.device.is_empty();
        let why = if unnamed { UNNAMED.to_string() } else { "no second device has measured it".into() };
        let confirmation = rating.is_unusual.then_some(Confirmation::Unconfirmed { why, ratio: None });
        BaselineReport { shape, baseline, variant, rating, confirmation, second_standing: None }
    }

    /// Takes over what the measurement of a second device says, if it is of the same baseline, champion and shape.
    pub fn hear(&mut self, second: &BaselineReport) {
        if self.order() == second.order()
            && let Some(confirmation) = &second.rating.confirmation
        {
            self.confirmation = Some(confirmation.clone());
            self.second_standing = second.second_standing;
        }
    }

    /// Why the speed-up stands as unconfirmed, if it does.
    pub fn unconfirmed(&self) -> Option<&str> {
        match &self.confirmation {
            Some(Confirmation::Unconfirmed { why, .. }) => Some(why),
            Some(Confirmation::Confirmed { .. }) | None => None,
        }
    }

    /// What orders baselines.
    pub(super) fn order(&self) -> (&str, &str, &str) {
        (&self.shape, &self.baseline, &self.variant)
    }

    /// What runs, with the release of PyTorch.
    fn runs(&self) -> String {
        let release = self.rating.versions.get("torch").map_or(String::new(), |torch| format!(", torch {torch}"));
        format!("{}{release}", self.rating.runs)
    }

    /// The ratio, or why there is none.
    fn ratio(&self) -> String {
        match (&self.rating.verdict, self.rating.ratio) {
            (Verdict::Fail(why), _) => format!("wrong: {why}"),
            (_, Some(ratio)) => {
                let disputed = if ratio.disputed { "; the two orders disagree" } else { "" };
                let of = if self.rating.of_calls { ", of calls" } else { "" };
                let second = match &self.confirmation {
                    Some(Confirmation::Confirmed { ratio }) => {
                        // A confirmation counts for no more than what it rests on.
                        let claimed =
                            if self.second_standing == Some(Standing::Claimed) { ", only claimed" } else { "" };
                        format!("; {:.3} on a second device{claimed}", ratio.median)
                    }
                    _ => String::new(),
                };
                format!("{:.3} ({:.3} to {:.3}{disputed}{of}{second})", ratio.median, ratio.low, ratio.high)
            }
            (_, None) => match &self.rating.champion_wrong {
                Some(why) => format!("unknown: the champion is wrong beside it: {why}"),
                None => "unknown: too few pairs".into(),
            },
        }
    }

    /// What its times and its correctness leave open.
    fn doubts(&self) -> Vec<String> {
        let mut all = vec![];
        if let Verdict::Unknown(why) = &self.rating.verdict {
            all.push(format!("not compared with expected values: {why}"));
        }
        all.extend(self.unconfirmed().map(|why| format!("unconfirmed: {why}")));
        if self.rating.waited {
            all.push("its device time includes time of the host, because it waits for the device".into());
        }
        for (output, dtype) in &self.rating.converted {
            all.push(format!("gives `{output}` as {dtype}"));
        }
        all
    }

    /// The cells of a table with [`COLUMNS`].
    pub(super) fn cells(&self) -> [String; 7] {
        let time = |ns: Option<f64>| ns.map_or("unknown".into(), duration);
        let doubts = self.doubts().into_iter().map(|doubt| format!("; {doubt}"));
        [
            self.shape.clone(),
            self.baseline.clone(),
            time(self.rating.call_ns),
            time(self.rating.device_ns),
            time(self.rating.champion_ns),
            self.ratio(),
            self.runs() + &doubts.collect::<String>(),
        ]
    }
}

/// Baselines as lines with ANSI styles, in columns.
pub(super) fn lines(all: &[BaselineReport]) -> Vec<String> {
    let width = |of: fn(&BaselineReport) -> &str| all.iter().map(|one| of(one).len()).max().unwrap_or(0);
    let (shape, name) = (width(|one| &one.shape), width(|one| &one.baseline));
    let line = |one: &BaselineReport| {
        let [_, _, call, device, champion, ratio, _] = one.cells();
        let compared = match &one.rating.verdict {
            Verdict::Fail(_) => format!("{BAD}{ratio}{BAD:#}"),
            _ if one.rating.ratio.is_some() => format!("{ratio} of the champion's {champion}"),
            _ => format!("{OPEN}{ratio}{OPEN:#}"),
        };
        let times = match one.rating.device_ns {
            Some(_) => format!("call {call:>9}, device {device:>9}  "),
            None if one.rating.of_calls && one.rating.call_ns.is_some() => format!("call {call:>9}  "),
            None => String::new(),
        };
        let mut text = format!("{:shape$}  {:name$}  {times}{compared}", one.shape, one.baseline);
        for doubt in one.doubts() {
            text += &format!("  {OPEN}{doubt}{OPEN:#}");
        }
        if !one.rating.runs.is_empty() {
            text += &format!("  {DIM}{}{DIM:#}", one.runs());
        }
        text
    };
    all.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::Unknown;
    use kforge_types::record::kind::baseline::documents::Ratio;

    fn rated(verdict: Verdict, ratio: Option<f64>) -> BaselineReport {
        let ratio = ratio.map(|r| Ratio { median: r, low: r - 0.01, high: r + 0.01, disputed: false });
        let rating = Rating {
            verdict,
            explanation: String::new(),
            runs: "PyTorch of f.py::g".into(),
            versions: [("torch".to_string(), "2.11.0".to_string())].into(),
            call_ns: Some(31_200.0),
            device_ns: Some(12_400.0),
            champion_ns: Some(8000.0),
            ratio,
            waited: false,
            of_calls: false,
            converted: [].into(),
            device: "a".into(),
            is_unusual: false,
            confirmation: None,
            champion_wrong: None,
        };
        BaselineReport::new("big".into(), "eager".into(), "A=1".into(), rating)
    }

    fn told(one: BaselineReport) -> String {
        anstream::adapter::strip_str(&lines(&[one]).join("\n")).to_string()
    }

    #[test]
    fn a_baseline_is_told_by_two_times_and_one_ratio() {
        assert_eq!(
            told(rated(Verdict::Pass, Some(1.55))),
            "big  eager  call  31.20 us, device  12.40 us  1.550 (1.540 to 1.560) of the champion's 8.00 us  PyTorch of f.py::g, torch 2.11.0"
        );
        let cells = rated(Verdict::Pass, Some(1.55)).cells();
        assert_eq!(cells.len(), COLUMNS.split(" | ").count());
        assert_eq!(cells[2..6], ["31.20 us", "12.40 us", "8.00 us", "1.550 (1.540 to 1.560)"]);
    }

    #[test]
    fn what_is_wrong_or_open_is_told() {
        let wrong = told(rated(Verdict::Fail("`y` is wrong at [0]".into()), None));
        assert!(wrong.contains("wrong: `y` is wrong at [0]") && !wrong.contains("champion's"), "{wrong}");
        let open = told(rated(Verdict::Unknown(Unknown::TooLarge("1e15 operations".into())), Some(2.0)));
        assert!(open.contains("2.000 (") && open.contains("not compared with expected values: too large"), "{open}");
        let mut waits = rated(Verdict::Pass, Some(2.0));
        waits.rating.waited = true;
        waits.rating.converted = [("y".to_string(), "int64".to_string())].into();
        let waits = told(waits);
        assert!(waits.contains("includes time of the host") && waits.contains("gives `y` as int64"), "{waits}");
        assert!(told(rated(Verdict::Pass, None)).contains("too few pairs"));
        let mut beside = rated(Verdict::Pass, None);
        beside.rating.champion_wrong = Some("`y` differs".into());
        assert!(told(beside).contains("unknown: the champion is wrong beside it: `y` differs"));
    }

    #[test]
    fn a_speed_up_that_needs_a_second_device_says_what_it_found() {
        let mut unusual = rated(Verdict::Pass, Some(5.0));
        unusual.rating.is_unusual = true;
        let BaselineReport { shape, baseline, variant, rating, .. } = unusual;
        let mut alone = BaselineReport::new(shape, baseline, variant, rating);
        assert!(told(alone.clone()).contains("unconfirmed: no second device has measured it"), "{}", told(alone));
        let ratio = Ratio { median: 5.1, low: 5.0, high: 5.2, disputed: false };
        alone.confirmation = Some(Confirmation::Confirmed { ratio });
        assert_eq!(alone.unconfirmed(), None);
        let said = told(alone.clone());
        assert!(said.contains("5.000 (4.990 to 5.010; 5.100 on a second device)"), "{said}");
        alone.second_standing = Some(Standing::Signed);
        assert_eq!(told(alone.clone()), said);
        alone.second_standing = Some(Standing::Claimed);
        assert!(told(alone).contains("5.100 on a second device, only claimed)"));
    }
}
