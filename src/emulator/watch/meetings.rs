//! Which lanes of a warp have met, and when: in votes, shuffles and synchronizations, which all its lanes leave only after all have come. A meeting may tell one
//! lane what another one read; it orders no accesses to memory (`shadow`). Pure: knows lanes.

/// How many groups of meetings are remembered. Meetings of the same lanes in a row are one group; most kernels have one group.
const REMEMBERED: usize = 8;

/// The last meetings of a warp.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Meetings {
    count: u32,
    /// The lanes, and the number of the last meeting of the group: the oldest group first. Zero where there is none.
    groups: [(u32, u32); REMEMBERED],
}

impl Meetings {
    /// The lanes of a mask meet.
    pub(super) fn met(&mut self, mask: u32) {
        self.count += 1;
        let last = &mut self.groups[REMEMBERED - 1];
        if last.0 == mask {
            last.1 = self.count;
        } else {
            self.groups.rotate_left(1);
            self.groups[REMEMBERED - 1] = (mask, self.count);
        }
    }

    /// The number of meetings so far.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Whether what lane `from` knew when there had been `count` meetings may be known to lane `to`, perhaps by way of others.
    pub(super) fn have_met(&self, count: u32, from: u32, to: u32) -> bool {
        let since = self.groups.iter().filter(|(_, last)| *last > count);
        let known = since.fold(1u32 << from, |known, (mask, _)| if known & mask != 0 { known | mask } else { known });
        known >> to & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_know_what_was_known_before_they_met() {
        let mut m = Meetings::default();
        assert!(m.have_met(0, 3, 3) && !m.have_met(0, 3, 4));
        m.met(0b11000);
        assert!(m.have_met(0, 3, 4) && m.have_met(0, 4, 3) && !m.have_met(0, 3, 5));
        assert!(!m.have_met(1, 3, 4), "read after they met");
        m.met(0b110000);
        assert!(m.have_met(0, 3, 5), "by way of lane 4");
        assert!(!m.have_met(0, 5, 3), "lane 4 had met lane 3 before");
        (0..100).for_each(|_| m.met(u32::MAX));
        assert!(m.have_met(101, 0, 31) && !m.have_met(102, 0, 31));
        assert!(m.have_met(0, 3, 5), "meetings of the same lanes take one room");
    }
}
