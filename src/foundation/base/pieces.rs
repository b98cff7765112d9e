//! Parallel work on long slices, in pieces whose size does not depend on the number of processors: the result is the same on every machine. Knows slices;
//! does not know what they hold.
//!
//! Everything goes through [`each`], which is not generic: rayon's adapters are large, and the compiler would instantiate them for every closure.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// Elements of a piece: enough that the cost of handing a piece to another thread is negligible.
pub const PIECE: usize = 1 << 14;

/// Calls `f` with every number below `count`, on all processors, in any order.
pub fn each(count: usize, f: &(dyn Fn(usize) + Sync)) {
    match count {
        0 => (),
        1 => f(0),
        _ => (0..count).into_par_iter().for_each(f),
    }
}

/// Splits `values` into chunks of `size`; the last may be shorter. Calls `f` with the number and the values of each chunk, on all processors.
pub fn chunks<T: Send>(values: &mut [T], size: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    if values.len() <= size {
        if !values.is_empty() {
            f(0, values);
        }
        return;
    }
    let chunks: Vec<Mutex<&mut [T]>> = values.chunks_mut(size).map(Mutex::new).collect();
    each(chunks.len(), &|at| f(at, &mut chunks[at].lock().unwrap_or_else(PoisonError::into_inner)));
}

/// Computes `to.0` from `from.0` with `f`, piece by piece. One element is `from.1` items of `from.0` and `to.1` items of `to.0`. Every piece except the last
/// has [`PIECE`] elements.
pub fn fill<A: Sync, B: Send>(from: (&[A], usize), to: (&mut [B], usize), f: impl Fn(&[A], &mut [B]) + Sync) {
    let (from, to) = ((from.0, from.1.max(1)), (to.0, to.1.max(1)));
    if from.0.len() <= PIECE * from.1 {
        return f(from.0, to.0);
    }
    chunks(to.0, PIECE * to.1, |at, to| {
        let rest = from.0.get(at * PIECE * from.1..).unwrap_or_default();
        if !rest.is_empty() {
            f(&rest[..rest.len().min(PIECE * from.1)], to);
        }
    });
}

/// The results of `f` for each piece of `count` elements, in order. `f` gets the index of the first element of the piece and the length of the piece.
pub fn map<R: Send>(count: usize, f: impl Fn(usize, usize) -> R + Sync) -> Vec<R> {
    items(count.div_ceil(PIECE), |at| f(at * PIECE, PIECE.min(count - at * PIECE)))
}

/// The results of `f` for every number below `count`, in order. For calls that take long; [`values`] is for many short calls.
pub fn items<R: Send>(count: usize, f: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let mut made: Vec<Option<R>> = (0..count).map(|_| None).collect();
    chunks(&mut made, 1, |at, made| made[0] = Some(f(at)));
    made.into_iter().flatten().collect()
}

/// The results of `f` for every number below `count`, in order. Computes one [`PIECE`] of results at a time.
pub fn values<R: Copy + Default + Send>(count: usize, f: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let mut made = vec![R::default(); count];
    chunks(&mut made, PIECE, |at, made| made.iter_mut().enumerate().for_each(|(i, r)| *r = f(at * PIECE + i)));
    made
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

    #[test]
    fn chunks_items_and_values_come_once_and_in_order() {
        for count in [0, 1, 7, PIECE, 2 * PIECE + 5] {
            let mut seen = vec![0; count];
            chunks(&mut seen, 7, |at, chunk| chunk.iter_mut().enumerate().for_each(|(i, v)| *v += 7 * at + i));
            assert!(seen.iter().copied().eq(0..count), "{count}");
            assert!(values(count, |i| i).into_iter().eq(0..count), "{count}");
            assert!(
                items(count.min(100), |i| i.to_string()).into_iter().eq((0..count.min(100)).map(|i| i.to_string()))
            );
        }
    }
}
