//! The ceiling of memory bandwidth for a mix of reads and writes, from measurements of single mixes. Knows rates; does not know kernels or devices.
//!
//! Memory that is alternately read and written transfers less than memory that is only read: its bus has to turn around, and written cells need time to recover
//! before others of their bank are opened. So a kernel that writes half of its bytes is not compared with the rate of pure reading, which it cannot reach.
//!
//! # The formula
//!
//! Let `s` be the share of bytes that are written. The time per byte is interpolated linearly between the measured mixes: only reading (`s` = 0, at a rate
//! `r`), a copy (`s` = 1/2, at `c`, both directions together) and only writing (`s` = 1, at `w`).
//!
//! | `s` | time per byte | because |
//! |---|---|---|
//! | 0 to 1/2 | `(1 - 2 s) / r + 2 s / c` | reads take their time in pure reading, and writes the rest of a copy's time; see below |
//! | 1/2 to 1 | `(2 - 2 s) / c + (2 s - 1) / w` | bytes that are only written need no turnaround either |
//!
//! The first row is the same as `(1 - s) / r + s (2 / c - 1 / r)`.
//!
//! So the formula gives the three measured rates at their mixes, and no ceiling exceeds the fastest of them. Seen on an H200 (read
//! 4.66 TB/s, write 4.63, and copies of 4.08 or 4.19, depending on how many vectors a thread had in flight): two reads per write
//! reach 4.36 to 4.39, where the formula gives 4.26 or 4.34; two writes per read reach 3.9 to 4.1, where it gives 4.25 or 4.33. The
//! measuring step takes the faster copy, so that the ceiling is too high rather than too low.
//!
//! A mix beyond the measured ones gets the rate of the nearest measured mix, for example if evidence is older than the measurement of writes.

use kforge_types::record::peaks::PeaksObserved;

/// The measured mixes, with the share of bytes that each writes.
const MIXES: [(&str, f64); 3] = [("read", 0.0), ("copy", 0.5), ("write", 1.0)];

/// The ceiling in bytes per second for traffic whose share `written` is written, and the share that the ceiling applies to: that of the nearest measured
/// mix, if there are no measured mixes on both sides. None if no peak was measured.
pub fn ceiling(peaks: &PeaksObserved, written: f64) -> Option<(f64, f64)> {
    let rate = |name: &str| peaks.dram_bytes_per_s.get(name).map(|r| r.per_s).filter(|r| *r > 0.0 && r.is_finite());
    let known: Vec<(f64, f64)> = MIXES.iter().filter_map(|(name, share)| Some((*share, rate(name)?))).collect();
    let (first, last) = (known.first()?, known.last()?);
    let written = if written.is_finite() { written.clamp(first.0, last.0) } else { first.0 };
    let on = |pair: &[(f64, f64)]| match pair {
        [(low, at_low), (high, at_high)] if (*low..=*high).contains(&written) => {
            let way = (written - low) / (high - low);
            Some(1.0 / ((1.0 - way) / at_low + way / at_high))
        }
        _ => None,
    };
    Some((known.windows(2).find_map(on).unwrap_or(first.1), written))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::peaks::Rate;

    fn peaks(rates: &[(&str, f64)]) -> PeaksObserved {
        let rate = |per_s| Rate { per_s, sustained_per_s: per_s, with: "x".into() };
        let dram_bytes_per_s = rates.iter().map(|(name, per_s)| (name.to_string(), rate(*per_s))).collect();
        PeaksObserved { dram_bytes_per_s, ..PeaksObserved::default() }
    }

    #[track_caller]
    fn is(found: Option<(f64, f64)>, rate: f64, written: f64) {
        let (got, of) = found.unwrap();
        assert!((got / rate - 1.0).abs() < 1e-9 && (of - written).abs() < 1e-9, "{got} at {of}");
    }

    #[test]
    fn reads_alone_have_the_rate_of_reading_and_half_and_half_that_of_a_copy() {
        let both = peaks(&[("read", 4.0e12), ("copy", 3.0e12)]);
        is(ceiling(&both, 0.0), 4.0e12, 0.0);
        is(ceiling(&both, 0.5), 3.0e12, 0.5);
        // Two bytes read and one written: the read's time, and a third of a byte at 2.4 TB/s, which is 2/3 - 1/4 of a second per terabyte.
        is(
            ceiling(&both, 1.0 / 3.0),
            1.0 / (2.0 / 3.0 / 4.0e12 + 1.0 / 3.0 * (2.0 / 3.0e12 - 1.0 / 4.0e12)),
            1.0 / 3.0,
        );
        // Before writes were measured, a copy was used for every mix that writes more than it reads.
        is(ceiling(&both, 0.9), 3.0e12, 0.5);
        is(ceiling(&both, f64::NAN), 4.0e12, 0.0);
        let all = peaks(&[("read", 4.0e12), ("copy", 3.0e12), ("write", 3.5e12)]);
        for (written, rate) in
            [(0.0, 4.0e12), (0.5, 3.0e12), (1.0, 3.5e12), (1.5, 3.5e12), (0.75, 2.0 / (1.0 / 3.0e12 + 1.0 / 3.5e12))]
        {
            is(ceiling(&all, written), rate, f64::min(written, 1.0));
        }
    }

    #[test]
    fn what_was_measured_alone_stands_for_every_mix() {
        is(ceiling(&peaks(&[("read", 4.0e12)]), 0.5), 4.0e12, 0.0);
        is(ceiling(&peaks(&[("copy", 3.0e12)]), 0.0), 3.0e12, 0.5);
        is(ceiling(&peaks(&[("copy", 0.0), ("read", 4.0e12)]), 0.5), 4.0e12, 0.0);
        assert_eq!(ceiling(&peaks(&[]), 0.5), None);
        // A copy may be measured a little faster than a read.
        is(ceiling(&peaks(&[("read", 3.0e12), ("copy", 3.1e12)]), 0.5), 3.1e12, 0.5);
    }
}
