//! The ceiling of memory bandwidth for a mix of reads and writes, from measurements of single mixes. Knows rates; knows no kernel and no device.
//!
//! Memory that is alternately read and written moves less than memory that is only read: its bus has to turn around, and written cells need time to recover
//! before others of their bank are opened. So a kernel that writes half of its bytes is not compared with the rate of reading only, which it cannot reach.
//!
//! # The formula
//!
//! With the share `s` of bytes that are written, the time that a byte takes lies on straight lines between the mixes that were measured: reading alone (`s` =
//! 0, at a rate `r`), a copy (`s` = 1/2, at `c`, both directions together) and writing alone (`s` = 1, at `w`).
//!
//! | `s` | time of a byte | because |
//! |---|---|---|
//! | 0 to 1/2 | `(1 - 2 s) / r + 2 s / c` | reads take the time that they take alone, and writes what a copy takes beyond that of its reads: `(1 - s) / r + s (2 / c - 1 / r)` is the same |
//! | 1/2 to 1 | `(2 - 2 s) / c + (2 s - 1) / w` | what only writes has nothing to turn round for either |
//!
//! So the three that were measured are met, and nothing is held to more than the fastest of them. Seen on an H200 (read 4.66 TB/s, write 4.63, and copies that
//! came to 4.08 or 4.19 by how many vectors a thread had under way): two reads a write 4.36 to 4.39, where the line says 4.26 or 4.34; two writes a read 3.9 to
//! 4.1, where it says 4.25 or 4.33. The step that measures takes the faster copy, so that the line is rather too high than too low.
//!
//! What was not measured has the rate of the nearest mix that was, as where evidence is older than the measurement of writes.

use kforge_types::record::peaks::PeaksObserved;

/// What is measured, by the share of bytes that it writes.
const MIXES: [(&str, f64); 3] = [("read", 0.0), ("copy", 0.5), ("write", 1.0)];

/// Bytes a second of traffic of which a share `written` is written, and the share that this is the ceiling of: that of the nearest mix that was measured where
/// there is none on both sides. None where no peak was measured.
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
        // Two bytes read and one written: the read's time, and a third of a byte at 2.4 TB/s, which is 2/3 - 1/4 of a second a terabyte.
        is(
            ceiling(&both, 1.0 / 3.0),
            1.0 / (2.0 / 3.0 / 4.0e12 + 1.0 / 3.0 * (2.0 / 3.0e12 - 1.0 / 4.0e12)),
            1.0 / 3.0,
        );
        // Before writes were measured, a copy stood for all that writes more than it reads.
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
