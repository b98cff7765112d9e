//! What a champion reaches at a shape, as text, and whether the shape can fill the device at all. Knows times and peaks; measures nothing.

use super::document::RooflineReport;
use super::rounds_text::duration;
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

/// Why a shape cannot fill the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TooSmall {
    /// It has fewer blocks than run at the same time: the share of one wave.
    Waves(f64),
    /// It has this little work: nanoseconds at the peak.
    WorkNs(f64),
}

impl TooSmall {
    /// Why the shape cannot fill the device, if it cannot: by its waves of blocks if it was profiled, otherwise by its work.
    pub(super) fn of(roofline: &RooflineReport, shape: &str, reached: &Achieved) -> Option<TooSmall> {
        let waves = roofline.roofline.metrics.get("waves").filter(|_| roofline.shape.as_deref() == Some(shape));
        if let Some(waves) = waves {
            return (*waves < 1.0).then_some(TooSmall::Waves(*waves));
        }
        let least = reached.time_ns * reached.roofline()?.share;
        (least < FILLS_NS).then_some(TooSmall::WorkNs(least))
    }
}

/// Why a shape cannot fill the device, as text, if it cannot.
pub(super) fn too_small(roofline: &RooflineReport, shape: &str, reached: &Achieved) -> Option<String> {
    TooSmall::of(roofline, shape, reached).map(|why| match why {
        TooSmall::Waves(waves) => format!("too small to fill the device: {waves:.2} waves of blocks"),
        TooSmall::WorkNs(ns) => format!("too small to fill the device: {} of work at the peak", duration(ns)),
    })
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
    }
}
