//! Dense products of f64 matrices through `matrixmultiply`. Knows strides, no tensors.
//!
//! Every kernel of that library adds 256 terms of a dot product in order with fused multiply-adds and then adds the blocks in order, so
//! that the bits do not depend on the number of threads or on the vector width; only a processor without fused multiply-add gives others.

#![expect(unsafe_code, reason = "matrixmultiply takes raw pointers; bounds are checked here")]

use rayon::prelude::*;

/// Products of fewer multiply-adds are not shared out: handing them over would take longer.
const SHARED: usize = 1 << 22;
/// Rows that are shared out together: few enough to keep many processors busy, enough for a tile of the library's to be full.
const ROWS: usize = 64;

/// A matrix within a slice: element (i, j) lies at `start + i * row + j * column`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix<'a> {
    /// Where it lies.
    pub(super) values: &'a [f64],
    /// Its first element.
    pub(super) start: usize,
    /// Elements between rows.
    pub(super) row: usize,
    /// Elements between columns.
    pub(super) column: usize,
}

impl Matrix<'_> {
    /// Panics unless every element of `rows` x `columns` lies within the slice: a bug of an operator.
    fn assert_within(&self, rows: usize, columns: usize) {
        let last = self.start + (rows - 1) * self.row + (columns - 1) * self.column;
        assert!(last < self.values.len(), "BUG: a matrix reaches element {last} of {}", self.values.len());
    }
}

/// Multiplications from which on the rows are shared among threads.
const WORTH_SHARING: f64 = 1e9;
/// Most threads for one product.
const MOST_THREADS: usize = 16;

/// `c = a * b`, row-major without gaps: `a` is m x k, `b` is k x n. Large products are shared among the processors, row by row, which changes no bit.
pub(super) fn multiply(m: usize, k: usize, n: usize, a: Matrix<'_>, b: Matrix<'_>, c: &mut [f64]) {
    let threads = match (m as f64) * (k as f64) * (n as f64) {
        work if work < WORTH_SHARING => 1,
        _ => std::thread::available_parallelism().map_or(1, |n| n.get()).min(MOST_THREADS).min(m),
    };
    if threads == 1 {
        return multiply_here(m, k, n, a, b, c);
    }
    let rows = m.div_ceil(threads);
    std::thread::scope(|scope| {
        for (part, c) in c.chunks_mut(rows * n).enumerate() {
            let a = Matrix { start: a.start + part * rows * a.row, ..a };
            scope.spawn(move || multiply_here(c.len() / n, k, n, a, b, c));
        }
    });
}

fn multiply_here(m: usize, k: usize, n: usize, a: Matrix<'_>, b: Matrix<'_>, c: &mut [f64]) {
    assert!(c.len() == m * n, "BUG: a product of {m} x {n} into {} values", c.len());
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 {
        return c.fill(0.0);
    }
    a.assert_within(m, k);
    b.assert_within(k, n);
    if m.saturating_mul(k).saturating_mul(n) < SHARED {
        return rows(m, k, n, a, b, c);
    }
    c.par_chunks_mut(ROWS * n).enumerate().for_each(|(at, c)| {
        let a = Matrix { start: a.start + at * ROWS * a.row, ..a };
        rows(c.len() / n, k, n, a, b, c);
    });
}

/// The product of some rows, on this thread and those that the library adds.
fn rows(m: usize, k: usize, n: usize, a: Matrix<'_>, b: Matrix<'_>, c: &mut [f64]) {
    // SAFETY: every element that the strides reach lies within its slice, as `multiply` asserted for all rows; `c` is a distinct mutable slice of m * n
    // values with row stride n; no stride or offset exceeds isize, as slices are smaller than that.
    unsafe {
        matrixmultiply::dgemm(
            m,
            k,
            n,
            1.0,
            a.values.as_ptr().add(a.start),
            a.row as isize,
            a.column as isize,
            b.values.as_ptr().add(b.start),
            b.row as isize,
            b.column as isize,
            0.0,
            c.as_mut_ptr(),
            n as isize,
            1,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fixed sequence of values that are not exact in few bits.
    fn values(count: usize) -> Vec<f64> {
        (0..count).map(|i| ((i * 7919 + 13) % 1009) as f64 / 997.0 - 0.5).collect()
    }

    #[test]
    fn a_product_adds_256_terms_in_order_with_fused_multiply_adds_and_then_the_blocks() {
        #[cfg(target_arch = "x86_64")]
        if !is_x86_feature_detected!("fma") {
            return;
        }
        for (m, k, n) in [(1, 1, 1), (3, 5, 2), (17, 600, 13), (70, 256, 33), (9, 1030, 40), (150, 300, 100)] {
            let (a, b) = (values(m * k), values(k * n + 5));
            let mut c = vec![f64::NAN; m * n];
            let left = Matrix { values: &a, start: 0, row: 1, column: m };
            let right = Matrix { values: &b, start: 5, row: n, column: 1 };
            multiply(m, k, n, left, right, &mut c);
            for i in 0..m {
                for j in 0..n {
                    let terms: Vec<usize> = (0..k).collect();
                    let want = terms.chunks(256).fold(0.0, |total, block| {
                        total + block.iter().fold(0.0f64, |sum, l| a[l * m + i].mul_add(b[5 + l * n + j], sum))
                    });
                    assert_eq!(c[i * n + j].to_bits(), want.to_bits(), "{m} x {k} x {n} at {i}, {j}");
                }
            }
        }
    }

    #[test]
    fn an_empty_sum_is_zero() {
        let mut c = vec![f64::NAN; 6];
        let empty = Matrix { values: &[], start: 0, row: 1, column: 1 };
        multiply(2, 0, 3, empty, empty, &mut c);
        assert_eq!(c, [0.0; 6]);
    }

    #[test]
    fn a_product_that_is_shared_among_threads_has_the_bits_of_one_that_is_not() {
        let (m, k, n) = (1003, 1001, 1009);
        let values = |count: usize, step: usize| -> Vec<f64> {
            (0..count).map(|i| ((i * step) % 1000) as f64 * 1e-3 - 0.4).collect()
        };
        let (a, b) = (values(m * k, 7919), values(k * n, 104_729));
        let matrix = |values, row| Matrix { values, start: 0, row, column: 1 };
        let (mut shared, mut alone) = (vec![0.0; m * n], vec![0.0; m * n]);
        assert!((m * k * n) as f64 >= WORTH_SHARING);
        multiply(m, k, n, matrix(&a, k), matrix(&b, n), &mut shared);
        multiply_here(m, k, n, matrix(&a, k), matrix(&b, n), &mut alone);
        assert!(shared.iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
}
