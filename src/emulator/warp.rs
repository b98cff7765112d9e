//! The result of each warp operation, once every lane that it names has arrived. Pure: knows values and masks, but not which threads wait.

/// Kinds of operation, as in `kf_warp.h`.
pub(super) const SYNC: u32 = 0;
pub(super) const SHUFFLE: u32 = 1;
const ALL: u32 = 2;
const ANY: u32 = 3;
const UNIFORM: u32 = 4;
const BALLOT: u32 = 5;
const MATCH_ANY: u32 = 6;
const MATCH_ALL: u32 = 7;
const ADD: u32 = 8;
const MIN_SIGNED: u32 = 9;
const MIN_UNSIGNED: u32 = 10;
const MAX_SIGNED: u32 = 11;
const MAX_UNSIGNED: u32 = 12;
const AND: u32 = 13;
const OR: u32 = 14;
const XOR: u32 = 15;
/// Lanes hand over addresses; the last lane to arrive runs a function on all of them.
pub(super) const COLLECT: u32 = 16;

/// The result of a shuffle that reads an absent lane: undefined in CUDA, so the value is conspicuous. It depends on the byte that fills shared memory, so
/// that it differs between the runs of a trial: all bits set is no number, which a maximum or a minimum discards, so other runs give infinities of both signs,
/// which are large numbers in other types.
fn undefined(poison: u8, source: u32) -> u64 {
    match (poison, source % 2) {
        (0xff, _) => u64::MAX,
        (_, 0) => 0x7f80_0000_7f80_0000,
        _ => 0xff80_0000_ff80_0000,
    }
}

/// A lane that waits at an operation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pending {
    pub(super) kind: u32,
    pub(super) mask: u32,
    pub(super) arg: u32,
    pub(super) value: u64,
    /// The program counter of the call.
    pub(super) pc: usize,
}

/// A lane that reads another lane in a shuffle in which that one takes no part, with the other one: the first, if there are several.
pub(super) fn reads_absent(present: u32, pending: &[Pending; 32]) -> Option<(usize, usize)> {
    let mut pairs = lanes(present).map(|lane| (lane, (pending[lane].arg & 31) as usize));
    pairs.find(|(_, source)| present >> source & 1 == 0)
}

/// The lanes of a mask, ascending.
pub(super) fn lanes(mut mask: u32) -> impl Iterator<Item = usize> + Clone {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}

/// Writes each present lane's result into `results`. `present`: the lanes of the mask that have not exited the kernel. `poison`: the byte that fills shared
/// memory at the start of a block.
pub(super) fn evaluate(kind: u32, present: u32, pending: &[Pending; 32], poison: u8, results: &mut [u64; 32]) {
    let of = |p: &dyn Fn(u64, u64) -> u64| lanes(present).map(|l| pending[l].value).reduce(p).unwrap_or(0);
    let ballot = || lanes(present).filter(|l| pending[*l].value != 0).fold(0u64, |m, l| m | 1 << l);
    let signed = |v: u64| v as u32 as i32;
    let same = match kind {
        SHUFFLE => {
            for lane in lanes(present) {
                let source = pending[lane].arg & 31;
                let there = present >> source & 1 == 1;
                results[lane] = if there { pending[source as usize].value } else { undefined(poison, source) };
            }
            return;
        }
        MATCH_ANY => {
            for lane in lanes(present) {
                let alike = lanes(present).filter(|l| pending[*l].value == pending[lane].value);
                results[lane] = alike.fold(0, |m, l| m | 1 << l);
            }
            return;
        }
        ALL => u64::from(ballot() == u64::from(present)),
        ANY => u64::from(ballot() != 0),
        UNIFORM => u64::from(ballot() == 0 || ballot() == u64::from(present)),
        BALLOT => ballot(),
        MATCH_ALL => {
            let first = pending[present.trailing_zeros() as usize & 31].value;
            if lanes(present).all(|l| pending[l].value == first) { u64::from(present) } else { 0 }
        }
        ADD => of(&|a, b| u64::from((a as u32).wrapping_add(b as u32))),
        MIN_SIGNED => of(&|a, b| u64::from(signed(a).min(signed(b)) as u32)),
        MAX_SIGNED => of(&|a, b| u64::from(signed(a).max(signed(b)) as u32)),
        MIN_UNSIGNED => of(&|a, b| a.min(b)),
        MAX_UNSIGNED => of(&|a, b| a.max(b)),
        AND => of(&|a, b| a & b),
        OR => of(&|a, b| a | b),
        XOR => of(&|a, b| a ^ b),
        _ => 0,
    };
    for lane in lanes(present) {
        results[lane] = same;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kind: u32, present: u32, values: impl Fn(usize) -> u64, arg: impl Fn(usize) -> u32) -> [u64; 32] {
        let mut pending = [Pending::default(); 32];
        for (lane, p) in pending.iter_mut().enumerate() {
            *p = Pending { kind, mask: present, arg: arg(lane), value: values(lane), pc: 0 };
        }
        let mut results = [0; 32];
        evaluate(kind, present, &pending, 0xff, &mut results);
        results
    }

    #[test]
    fn shuffles_read_the_source_lane_and_poison_where_it_is_absent() {
        let got = run(SHUFFLE, 0xff, |l| l as u64 * 10, |l| l as u32 + 4);
        assert_eq!((got[0], got[3], got[4]), (40, 70, u64::MAX));
    }

    #[test]
    fn what_an_absent_lane_gives_changes_sums_maxima_and_minima_of_floats() {
        let float = |value: u64| f32::from_bits(value as u32);
        assert!(float(undefined(0xff, 0)).is_nan());
        assert_eq!((float(undefined(0x5a, 0)), float(undefined(0x5a, 1))), (f32::INFINITY, f32::NEG_INFINITY));
    }

    #[test]
    fn votes_and_reductions_count_present_lanes_only() {
        assert_eq!(run(ALL, 0xf, |l| u64::from(l < 4), |_| 0)[2], 1);
        assert_eq!(run(BALLOT, 0xff, |l| l as u64 & 1, |_| 0)[0], 0xaa);
        assert_eq!(run(UNIFORM, 0xff, |l| l as u64 & 1, |_| 0)[0], 0);
        assert_eq!(run(ADD, 0xf, |_| u64::from(u32::MAX), |_| 0)[1], u64::from(-4i32 as u32));
        assert_eq!(run(MIN_SIGNED, 0xf, |l| u64::from((l as i32 - 2) as u32), |_| 0)[0] as u32 as i32, -2);
        assert_eq!(run(MIN_UNSIGNED, 0xf, |l| u64::from((l as i32 - 2) as u32), |_| 0)[0], 0);
        assert_eq!(run(XOR, 0x7, |l| 1 << l, |_| 0)[0], 7);
    }

    #[test]
    fn matches_group_lanes_by_value() {
        assert_eq!(run(MATCH_ANY, 0xf, |l| l as u64 % 2, |_| 0)[..4], [5, 10, 5, 10]);
        assert_eq!(run(MATCH_ALL, 0xf, |_| 3, |_| 0)[0], 0xf);
        assert_eq!(run(MATCH_ALL, 0xf, |l| l as u64, |_| 0)[0], 0);
    }
}
