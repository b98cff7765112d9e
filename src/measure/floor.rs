//! Times that no kernel can go below: what has to be moved, over what the device can move at most (design, section 7). Pure: peaks come in as numbers.
//!
//! | | floor |
//! |---|---|
//! | cold | (bytes that have to be read or written, less those that the L2 cache may keep from reaching memory) / peak of the memory |
//! | hot | the larger of bytes read and bytes written / peak of the L2 cache, whose two directions do not share |
//!
//! A floor errs low, or an honest kernel is accused: clocks are the highest there are, every byte counts once however often it is moved, and arithmetic counts not at
//! all.

/// A device's theoretical peaks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peaks {
    /// Bytes a nanosecond between memory and L2 cache, both directions together.
    pub memory_bytes_ns: f64,
    /// Bytes a nanosecond between L2 cache and multiprocessors, each direction.
    pub l2_bytes_ns: f64,
    /// Bytes of the L2 cache.
    pub l2_bytes: u64,
}

/// Bytes that an operator has to move: every input read once, every output written once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

impl Peaks {
    /// Least nanoseconds of a cold run; 0 where nothing is known.
    pub fn cold_ns(&self, moved: Moved) -> f64 {
        at(moved.read.saturating_add(moved.written).saturating_sub(self.l2_bytes), self.memory_bytes_ns)
    }

    /// Least nanoseconds of a hot run; 0 where nothing is known.
    pub fn hot_ns(&self, moved: Moved) -> f64 {
        at(moved.read.max(moved.written), self.l2_bytes_ns)
    }
}

fn at(bytes: u64, bytes_ns: f64) -> f64 {
    if bytes_ns > 0.0 { bytes as f64 / bytes_ns } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEAKS: Peaks = Peaks { memory_bytes_ns: 4800.0, l2_bytes_ns: 16000.0, l2_bytes: 60_000_000 };

    #[test]
    fn what_fits_in_the_cache_has_no_cold_floor() {
        assert_eq!(PEAKS.cold_ns(Moved { read: 30_000_000, written: 30_000_000 }), 0.0);
        let floor = PEAKS.cold_ns(Moved { read: 300_000_000, written: 240_000_000 });
        assert!((floor - 100_000.0).abs() < 1e-6, "{floor}");
    }

    #[test]
    fn the_two_directions_of_the_cache_do_not_add_up() {
        let floor = PEAKS.hot_ns(Moved { read: 16_000_000, written: 8_000_000 });
        assert!((floor - 1000.0).abs() < 1e-9, "{floor}");
    }

    #[test]
    fn unknown_peaks_accuse_nobody() {
        let none = Peaks { memory_bytes_ns: 0.0, l2_bytes_ns: 0.0, l2_bytes: 0 };
        assert_eq!(
            (none.cold_ns(Moved { read: 9, written: 9 }), none.hot_ns(Moved { read: 9, written: 9 })),
            (0.0, 0.0)
        );
    }
}
