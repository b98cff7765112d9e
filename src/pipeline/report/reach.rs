//! What a champion reaches at a shape, as text, and whether the shape can fill the device at all. Knows times and peaks; measures nothing.

use super::document::RooflineReport;
use super::duration::duration;
use kforge_types::record::profile::Achieved;

/// Work that takes less than this at the device's peak cannot fill the device: bytes on their way to memory take about as long, so to reach the peak, more must
/// be on their way at once than such a shape has (Little's law).
const FILLS_NS: f64 = 1000.0;

/// A share of a peak below this rounds to nothing and says nothing.
const LEAST_SHARE: f64 = 0.005;

/// What is reached in one line, without arithmetic whose share of its peak rounds to nothing.
pub(super) fn line(reached: &Achieved) -> String {
    let is_nothing = reached.compute.is_some_and(|compute| compute.share < LEAST_SHARE);
    match is_nothing {
        true => Achieved { ops_per_s: None, compute: None, ..reached.clone() }.line(),
        false => reached.line(),
    }
}

/// Whether a shape can fill the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fills {
    /// By the waves of its blocks: it can with at least one.
    Waves(f64),
    /// It cannot, because it has this little work: nanoseconds at the peak.
    TooLittleNs(f64),
    /// It was not profiled, so its blocks at once are unknown, and it has enough work, or no peak is known.
    Unknown,
}

impl Fills {
    /// By the waves of blocks if the shape was profiled, otherwise by its work.
    pub(super) fn of(roofline: &RooflineReport, shape: &str, reached: &Achieved) -> Fills {
        // An older report has the waves of one shape only.
        let only = roofline.roofline.metrics.get("waves").filter(|_| roofline.shape.as_deref() == Some(shape));
        if let Some(waves) = reached.waves.or(only.copied()) {
            return Fills::Waves(waves);
        }
        match reached.roofline().map(|peak| reached.time_ns * peak.share) {
            Some(least) if least < FILLS_NS => Fills::TooLittleNs(least),
            _ => Fills::Unknown,
        }
    }

    /// Whether the shape cannot fill it.
    pub(super) fn is_too_small(self) -> bool {
        matches!(self, Fills::TooLittleNs(_)) || matches!(self, Fills::Waves(waves) if waves < 1.0)
    }

    /// What decides it, in words.
    pub(super) fn because(self) -> String {
        match self {
            Fills::Waves(waves) => format!("{waves:.2} waves of blocks"),
            Fills::TooLittleNs(ns) => format!("{} of work at the peak", duration(ns)),
            Fills::Unknown => "unknown without a profile".into(),
        }
    }
}

/// Why a shape cannot fill the device, as text, if it cannot.
pub(super) fn too_small(roofline: &RooflineReport, shape: &str, reached: &Achieved) -> Option<String> {
    let fills = Fills::of(roofline, shape, reached);
    fills.is_too_small().then(|| format!("too small to fill the device: {}", fills.because()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::profile::{Roofline, Share};

    fn reached(time_ns: f64, memory: f64, compute: f64) -> Achieved {
        let share = |share| Some(Share { share, peak_per_s: 4e12, measured: true, written: None });
        Achieved {
            time_ns,
            bytes_per_s: 1e12,
            memory: share(memory),
            ops_per_s: Some(1e9),
            unit: "f32".into(),
            compute: share(compute),
            waves: None,
        }
    }

    #[test]
    fn arithmetic_whose_share_rounds_to_nothing_is_not_told() {
        assert!(line(&reached(4000.0, 0.5, 0.01)).contains("of f32, 1 % of measured"));
        let told = line(&reached(4000.0, 0.5, 0.004));
        assert_eq!(told, "1.00 TB/s, 50 % of measured 4.00 TB/s");
    }

    #[test]
    fn a_shape_that_cannot_fill_the_device_is_told_by_its_waves_or_its_work() {
        let of = |waves: Option<f64>| RooflineReport {
            variant: String::new(),
            shape: Some("big".into()),
            roofline: Roofline {
                metrics: waves.map(|waves| ("waves".to_string(), waves)).into_iter().collect(),
                ..Roofline::default()
            },
            achieved: [].into(),
        };
        let small = reached(1500.0, 0.5, 0.0);
        let by_work = Some("too small to fill the device: 750 ns of work at the peak".to_string());
        assert_eq!(too_small(&of(None), "big", &small), by_work);
        assert_eq!(too_small(&of(Some(0.5)), "odd", &small), by_work);
        let by_waves = Some("too small to fill the device: 0.50 waves of blocks".to_string());
        assert_eq!(too_small(&of(Some(0.5)), "big", &small), by_waves);
        assert_eq!(too_small(&of(Some(3.0)), "big", &small), None, "it was profiled");
        assert_eq!(too_small(&of(None), "big", &reached(4000.0, 0.5, 0.0)), None);
        // The profile of each shape counts, not only that of the slowest.
        let profiled = Achieved { waves: Some(0.25), ..small.clone() };
        let by_its_own = Some("too small to fill the device: 0.25 waves of blocks".to_string());
        assert_eq!(too_small(&of(Some(3.0)), "odd", &profiled), by_its_own);
    }

    #[test]
    fn whether_a_shape_fills_the_device_is_unknown_without_a_profile_or_little_work() {
        let bare =
            RooflineReport { variant: String::new(), shape: None, roofline: Roofline::default(), achieved: [].into() };
        let said = |reached: &Achieved| Fills::of(&bare, "big", reached).because();
        assert_eq!(said(&reached(4000.0, 0.5, 0.0)), "unknown without a profile");
        let silent = Achieved { memory: None, compute: None, ..reached(400.0, 0.5, 0.0) };
        assert_eq!(said(&silent), "unknown without a profile", "no peak is known");
        let waves = Achieved { waves: Some(2.5), ..silent };
        assert_eq!(
            (said(&waves).as_str(), Fills::of(&bare, "big", &waves).is_too_small()),
            ("2.50 waves of blocks", false)
        );
    }
}
