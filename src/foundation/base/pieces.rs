//! Long slices worked on by all processors, in pieces whose size does not hang on how many there are: what is made of a slice is the same on every machine. Knows
//! slices; does not know what they hold.

use rayon::prelude::*;

/// Elements of a piece: enough that to hand one over costs nothing beside what is done with it.
pub const PIECE: usize = 1 << 14;

/// Has `f` make `to` of `from`, piece by piece. Every element is `from.1` items of the one slice and `to.1` of the other; a piece that ends before both do is of
/// [`PIECE`] elements.
pub fn fill<A: Sync, B: Send>(from: (&[A], usize), to: (&mut [B], usize), f: impl Fn(&[A], &mut [B]) + Sync) {
    let (from, to) = ((from.0, from.1.max(1)), (to.0, to.1.max(1)));
    if from.0.len() <= PIECE * from.1 {
        return f(from.0, to.0);
    }
    let pieces = to.0.par_chunks_mut(PIECE * to.1).zip(from.0.par_chunks(PIECE * from.1));
    pieces.for_each(|(to, from)| f(from, to));
}

/// What `f` makes of each piece of `count` places: its first place and its length, in order.
pub fn map<R: Send>(count: usize, f: impl Fn(usize, usize) -> R + Sync) -> Vec<R> {
    let piece = |at: usize| f(at, PIECE.min(count - at));
    match count {
        0..=PIECE => (0..count).step_by(PIECE).map(piece).collect(),
        _ => (0..count.div_ceil(PIECE)).into_par_iter().map(|at| piece(at * PIECE)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_filled_from_its_own() {
        for count in [0, 1, PIECE, PIECE + 1, 3 * PIECE + 5] {
            let from: Vec<u32> = (0..2 * count as u32).collect();
            let mut to = vec![0; count];
            fill((&from, 2), (&mut to, 1), |from, to| {
                to.iter_mut().zip(from.chunks(2)).for_each(|(to, pair)| *to = pair[0] + pair[1]);
            });
            assert!((0..count).all(|i| to[i] == 4 * i as u32 + 1), "{count}");
        }
    }

    #[test]
    fn pieces_come_in_order_and_cover_everything_once() {
        for count in [0, 1, PIECE, PIECE + 1, 3 * PIECE + 5] {
            let pieces = map(count, |at, len| (at, len));
            let end = pieces.iter().try_fold(0, |end, (at, len)| (*at == end && *len > 0).then_some(end + len));
            assert_eq!((end, pieces.len()), (Some(count), count.div_ceil(PIECE)));
        }
    }
}
