//! Floors: times that no kernel can beat. A floor is the bytes that must be moved, over the peak rate of the device (docs/design.md,
//! section 7). Pure: peaks are arguments.
//!
//! | | floor |
//! |---|---|
//! | cold | (bytes that must be read or written, minus those that the L2 cache may keep from reaching memory) / peak of the memory |
//! | hot | the larger of bytes read and bytes written / peak of the L2 cache, whose two directions are independent |
//! | both, if the operator states its least arithmetic | that / rate of the fastest unit that may do it ([`super::units::fastest`]) |
//!
//! A floor must err low, or it would accuse an honest kernel: it assumes the highest clocks, counts every byte once even if it is moved more often, and counts
//! arithmetic only as far as the operator states that every implementation needs it.

use std::collections::BTreeMap;

use super::units;
use kforge_types::model::DType;

/// A device's theoretical peaks.
#[derive(Debug, Clone, PartialEq)]
pub struct Peaks {
    /// Bytes per nanosecond between memory and L2 cache, both directions together.
    pub memory_bytes_ns: f64,
    /// Bytes per nanosecond between L2 cache and multiprocessors, in each direction.
    pub l2_bytes_ns: f64,
    /// Size of the L2 cache in bytes.
    pub l2_bytes: u64,
    /// Operations per second by unit, as in [`super::units::per_second`].
    pub ops_s: BTreeMap<String, f64>,
}

/// The least arithmetic of an operator, and the dtypes that it reads.
#[derive(Debug, Clone, PartialEq)]
pub struct Arithmetic {
    /// The number of operations.
    pub least: f64,
    /// The dtypes that the operator reads.
    pub read: Vec<DType>,
}

/// A floor, and what it is derived from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floor {
    /// Least time in nanoseconds; 0 if nothing is known.
    pub ns: f64,
    /// The work that takes this long: `move the operator's bytes` or `do its least arithmetic`.
    pub what: &'static str,
}

/// Bytes that an operator must move: every input read once, every output written once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

impl Peaks {
    /// Least time of a cold run in nanoseconds; 0 if nothing is known.
    pub fn cold_ns(&self, moved: Moved) -> f64 {
        at(moved.read.saturating_add(moved.written).saturating_sub(self.l2_bytes), self.memory_bytes_ns)
    }

    /// Least time of a hot run in nanoseconds; 0 if nothing is known.
    pub fn hot_ns(&self, moved: Moved) -> f64 {
        at(moved.read.max(moved.written), self.l2_bytes_ns)
    }

    /// Least time of arithmetic on the fastest possible unit in nanoseconds; 0 if nothing is stated or known.
    pub fn arithmetic_ns(&self, arithmetic: Option<&Arithmetic>) -> f64 {
        let least = |a: &Arithmetic| Some(a.least / units::fastest(a.read.iter().copied(), &self.ops_s)? * 1e9);
        arithmetic.and_then(least).unwrap_or(0.0)
    }

    /// The floor of a cold or a hot run.
    pub fn floor(&self, cold: bool, moved: Moved, arithmetic: Option<&Arithmetic>) -> Floor {
        let moving = if cold { self.cold_ns(moved) } else { self.hot_ns(moved) };
        match self.arithmetic_ns(arithmetic) {
            reckoning if reckoning > moving => Floor { ns: reckoning, what: "do its least arithmetic" },
            _ => Floor { ns: moving, what: "move the operator's bytes" },
        }
    }
}

fn at(bytes: u64, bytes_ns: f64) -> f64 {
    if bytes_ns > 0.0 { bytes as f64 / bytes_ns } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Peaks of a device with one unit: 1e15 operations per second of `f16`.
    fn peaks() -> Peaks {
        let ops_s = [("f16".to_string(), 1e15)].into();
        Peaks { memory_bytes_ns: 4800.0, l2_bytes_ns: 16000.0, l2_bytes: 60_000_000, ops_s }
    }

    #[test]
    fn what_fits_in_the_cache_has_no_cold_floor() {
        assert_eq!(peaks().cold_ns(Moved { read: 30_000_000, written: 30_000_000 }), 0.0);
        let floor = peaks().cold_ns(Moved { read: 300_000_000, written: 240_000_000 });
        assert!((floor - 100_000.0).abs() < 1e-6, "{floor}");
    }

    #[test]
    fn the_two_directions_of_the_cache_do_not_add_up() {
        let floor = peaks().hot_ns(Moved { read: 16_000_000, written: 8_000_000 });
        assert!((floor - 1000.0).abs() < 1e-9, "{floor}");
    }

    #[test]
    fn unknown_peaks_accuse_nobody() {
        let none = Peaks { memory_bytes_ns: 0.0, l2_bytes_ns: 0.0, l2_bytes: 0, ops_s: BTreeMap::new() };
        let some = Arithmetic { least: 1e12, read: vec![DType::F16] };
        assert_eq!(none.floor(true, Moved { read: 9, written: 9 }, Some(&some)).ns, 0.0);
        assert_eq!(
            (none.cold_ns(Moved { read: 9, written: 9 }), none.hot_ns(Moved { read: 9, written: 9 })),
            (0.0, 0.0)
        );
    }

    #[test]
    fn arithmetic_counts_where_it_is_stated_and_takes_longer_than_bytes() {
        let moved = Moved { read: 160_000_000, written: 0 };
        let stated = |least, dtype| Arithmetic { least, read: vec![dtype] };
        let floor = |cold, arithmetic: Option<Arithmetic>| peaks().floor(cold, moved, arithmetic.as_ref());
        assert_eq!(floor(false, None), Floor { ns: 10_000.0, what: "move the operator's bytes" });
        assert_eq!(floor(false, Some(stated(1e9, DType::F16))).ns, 10_000.0);
        let long = floor(false, Some(stated(1e12, DType::F16)));
        assert!((long.ns - 1e6).abs() < 1e-3 && long.what == "do its least arithmetic", "{long:?}");
        assert_eq!(floor(true, Some(stated(1e12, DType::F16))).ns, long.ns);
        assert_eq!(floor(false, Some(stated(1e12, DType::F64))).ns, 10_000.0, "nothing is known of that unit");
    }
}
