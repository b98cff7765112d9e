//! Dense products of f64 matrices through `matrixmultiply`. Knows strides; does not know tensors.
//!
//! Every kernel of that library adds 256 terms of a dot product in order with fused multiply-adds and then adds the blocks in order. So the bits do not depend
//! on the number of threads or on the vector width; only a processor without fused multiply-add gives other bits.
//!
//! A device that takes the same steps may compute a large product instead ([`ProductBackend`]). kforge uses it only if no step can
//! overflow or vanish, because the bits of the resulting NaN and the sign of the resulting zero depend on the machine. Some rows are
//! also computed on this processor and compared bit for bit: see [`sampled`].

#![expect(unsafe_code, reason = "matrixmultiply takes raw pointers; bounds are checked here")]

use std::hash::{BuildHasher, Hasher, RandomState};

use kforge_foundation::base::pieces;

use super::philox::{philox, words};

/// Products with fewer multiply-adds are not distributed, because that would take longer.
const SHARED: usize = 1 << 22;
/// Rows that are distributed together: few enough to keep many processors busy, and enough to fill a tile of the library.
const ROWS: usize = 64;

/// A matrix within a slice: element (i, j) is at `start + i * row + j * column`.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    /// The slice that contains it.
    pub values: &'a [f64],
    /// Position of its first element.
    pub start: usize,
    /// Elements between rows.
    pub row: usize,
    /// Elements between columns.
    pub column: usize,
}

/// A product to compute: `a` is `m` x `k`, `b` is `k` x `n`, and neither is empty.
#[derive(Debug, Clone, Copy)]
pub struct Product<'a> {
    /// Rows of the left matrix.
    pub m: usize,
    /// Terms of a sum.
    pub k: usize,
    /// Columns of the right matrix.
    pub n: usize,
    /// The left matrix.
    pub a: Matrix<'a>,
    /// The right matrix.
    pub b: Matrix<'a>,
}

/// Computes large products instead of this processor, with the same steps and the same bits.
pub trait ProductBackend: Sync + std::fmt::Debug {
    /// Fills `c`, row-major without gaps. Returns false if it cannot, for any reason; `c` may then hold anything.
    fn multiply(&self, product: &Product<'_>, c: &mut [f64]) -> bool;

    /// Called if a product differs from the rows computed here: the device must not be used again, and the report of where products were computed says so.
    fn disagreed(&self);

    /// Where products were computed, for messages; none if no product was requested.
    fn place(&self) -> Option<String>;
}

impl<'a> Matrix<'a> {
    /// The part of the slice that `rows` x `columns` elements of the matrix span. It begins with the matrix's first element.
    pub fn span(&self, rows: usize, columns: usize) -> &'a [f64] {
        let last = self.start + (rows - 1) * self.row + (columns - 1) * self.column;
        &self.values[self.start..=last]
    }

    /// Panics unless every element of `rows` x `columns` is within the slice: a bug of an operator.
    fn assert_within(&self, rows: usize, columns: usize) {
        let last = self.start + (rows - 1) * self.row + (columns - 1) * self.column;
        assert!(last < self.values.len(), "BUG: a matrix reaches element {last} of {}", self.values.len());
    }
}

/// The number of multiply-adds from which a product is worth handing over to a backend.
const WORTH_HANDING_OVER: f64 = 1e10;

/// Whether a product of these extents is large enough for a backend.
pub(super) fn is_large(m: usize, k: usize, n: usize) -> bool {
    (m as f64) * (k as f64) * (n as f64) >= WORTH_HANDING_OVER
}

/// The same product, computed by the backend if it is large and the backend can.
pub(super) fn multiply_anywhere(product: &Product<'_>, c: &mut [f64], elsewhere: Option<&dyn ProductBackend>) {
    let Product { m, k, n, a, b } = *product;
    let made = elsewhere.is_some_and(|elsewhere| is_large(m, k, n) && made_elsewhere(product, c, elsewhere));
    if !made {
        multiply(m, k, n, a, b, c);
    }
}

/// The product computed on this processor, whatever its size.
pub fn product(product: &Product<'_>, c: &mut [f64]) {
    multiply(product.m, product.k, product.n, product.a, product.b, c);
}

/// Rows that one block of the device's kernel computes. A sample has one row per band, so that it covers every block.
const BAND: usize = 64;
/// Columns of the sample that are computed at once.
const COLUMNS: usize = 256;

/// The rows of a product that are also computed on this processor: the first, the last, two between them, and one of every [`BAND`],
/// drawn with a salt that differs each time. They take 1/64 of the time of the whole product on this processor. Sums over the whole
/// matrix, as in Freivalds' check, round, so they could not verify the bits.
///
/// An error in all rows of one block of the device's kernel is always found, and so is a wrong column of one block. An error in r of
/// the 64 rows of b bands is found with probability 1 - (1 - r/64)^b, independently each time: an error of a single thread, whose
/// elements are in four rows, with 1/16, and of a single element with 1/64.
fn sampled(m: usize, salt: u64) -> Vec<usize> {
    let drawn = (0..m.div_ceil(BAND)).map(|band| {
        let (start, [word, ..]) = (band * BAND, philox([band as u32, (band as u64 >> 32) as u32, 0, 0], words(salt)));
        start + word as usize % BAND.min(m - start)
    });
    let mut rows: Vec<usize> = drawn.chain([0, m / 3, m / 2, m - 1]).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// Whether the backend computed a product, and the sampled rows agree with this processor.
fn made_elsewhere(product: &Product<'_>, c: &mut [f64], elsewhere: &dyn ProductBackend) -> bool {
    let Product { m, k, n, a, b } = *product;
    if !(plain(a.span(m, k)) && plain(b.span(k, n)) && elsewhere.multiply(product, c)) {
        return false;
    }
    a.assert_within(m, k);
    b.assert_within(k, n);
    let sample = sampled(m, RandomState::new().build_hasher().finish());
    let terms = |i: &usize| {
        let start = a.start + i * a.row;
        (0..k).map(move |l| a.values[start + l * a.column])
    };
    let left: Vec<f64> = sample.iter().flat_map(terms).collect();
    let left = Matrix { values: &left, start: 0, row: k, column: 1 };
    let agrees = pieces::items(n.div_ceil(COLUMNS), |at| {
        let (from, width) = (at * COLUMNS, COLUMNS.min(n - at * COLUMNS));
        let mut here = vec![0.0; sample.len() * width];
        rows(sample.len(), k, width, left, Matrix { start: b.start + from * b.column, ..b }, &mut here);
        here.chunks(width).zip(&sample).all(|(here, i)| {
            let there = &c[i * n + from..][..width];
            here.iter().zip(there).all(|(here, there)| here.to_bits() == there.to_bits())
        })
    });
    let agrees = agrees.into_iter().all(|agrees| agrees);
    if !agrees {
        elsewhere.disagreed();
    }
    agrees
}

/// Whether products of any two of these values, and sums of as many as possible, neither overflow nor lose bits at the lower end of f64's range.
fn plain(values: &[f64]) -> bool {
    let plain = |x: &f64| *x == 0.0 || (1e-140..1e140).contains(&x.abs());
    pieces::map(values.len(), |at, len| values[at..at + len].iter().all(plain)).into_iter().all(|plain| plain)
}

/// `c = a * b`, row-major without gaps: `a` is m x k, `b` is k x n. Rows of large products are distributed among the processors, which does not change a bit.
pub(super) fn multiply(m: usize, k: usize, n: usize, a: Matrix<'_>, b: Matrix<'_>, c: &mut [f64]) {
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
    pieces::chunks(c, ROWS * n, |at, c| {
        let a = Matrix { start: a.start + at * ROWS * a.row, ..a };
        rows(c.len() / n, k, n, a, b, c);
    });
}

/// The product of some rows, on this thread and those that the library adds.
fn rows(m: usize, k: usize, n: usize, a: Matrix<'_>, b: Matrix<'_>, c: &mut [f64]) {
    // SAFETY: every element that the strides reach is within its slice, as the callers asserted; `c` is a distinct mutable slice of m * n values with row
    // stride n; no stride or offset exceeds isize, because slices are smaller than that.
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

    /// A matrix with rows one after another.
    fn matrix(values: &[f64], row: usize) -> Matrix<'_> {
        Matrix { values, start: 0, row, column: 1 }
    }

    /// A backend that computes products as configured, and counts them.
    #[derive(Debug, Default)]
    struct FakeBackend {
        asked: std::sync::atomic::AtomicUsize,
        wrong: Option<usize>,
        /// A block of 64 x 64 elements, by its position: all of them are wrong.
        wrong_block: Option<(usize, usize)>,
        refuses: bool,
        told: std::sync::atomic::AtomicBool,
    }

    impl ProductBackend for FakeBackend {
        fn place(&self) -> Option<String> {
            None
        }

        fn multiply(&self, p: &Product<'_>, c: &mut [f64]) -> bool {
            self.asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            multiply(p.m, p.k, p.n, p.a, p.b, c);
            if let Some(at) = self.wrong {
                c[at] = f64::from_bits(c[at].to_bits() ^ 1);
            }
            if let Some((down, across)) = self.wrong_block {
                for i in down * 64..p.m.min(down * 64 + 64) {
                    c[i * p.n + across * 64..p.n.min(across * 64 + 64) + i * p.n].iter_mut().for_each(|x| *x += 1.0);
                }
            }
            !self.refuses
        }

        fn disagreed(&self) {
            self.told.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }

    #[test]
    fn what_is_made_elsewhere_is_taken_only_if_it_has_the_bits_it_would_have_here() {
        let (m, k, n) = (6, 300, 5);
        let (a, mut b) = (values(m * k), values(k * n));
        let taken = |other: &FakeBackend, b: &[f64]| {
            let product = Product { m, k, n, a: matrix(&a, k), b: matrix(b, n) };
            let mut c = vec![0.0; m * n];
            (made_elsewhere(&product, &mut c, other), other.asked.load(std::sync::atomic::Ordering::Relaxed))
        };
        assert_eq!(taken(&FakeBackend::default(), &b), (true, 1));
        assert_eq!(taken(&FakeBackend { refuses: true, ..FakeBackend::default() }, &b), (false, 1));
        let wrong = FakeBackend { wrong: Some(2 * n + 3), ..FakeBackend::default() };
        assert_eq!(taken(&wrong, &b), (false, 1));
        assert!(wrong.told.into_inner());
        // These are not handed over: a step might overflow, vanish or give NaN.
        for odd in [f64::NAN, f64::INFINITY, 1e200, 1e-200] {
            b[7] = odd;
            assert_eq!(taken(&FakeBackend::default(), &b), (false, 0), "{odd}");
        }
    }

    #[test]
    fn a_block_of_a_product_that_went_wrong_elsewhere_is_found_wherever_it_lies() {
        let (m, k, n) = (330, 9, 300);
        let (a, b) = (values(m * k), values(k * n));
        // The left matrix is transposed.
        let product = Product { m, k, n, a: Matrix { values: &a, start: 0, row: 1, column: m }, b: matrix(&b, n) };
        let taken = |other: FakeBackend| made_elsewhere(&product, &mut vec![0.0; m * n], &other);
        assert!(taken(FakeBackend::default()));
        for (down, across) in (0..m.div_ceil(64)).flat_map(|i| (0..n.div_ceil(64)).map(move |j| (i, j))) {
            let wrong = FakeBackend { wrong_block: Some((down, across)), ..FakeBackend::default() };
            assert!(!taken(wrong), "{down}, {across}");
        }
    }

    #[test]
    fn every_band_of_rows_has_one_in_the_sample_and_nobody_knows_which() {
        for m in [1, 5, 64, 65, 1000, 8192] {
            let rows = sampled(m, 7);
            assert!(rows.is_sorted() && rows.iter().all(|i| *i < m) && rows.len() <= m.div_ceil(BAND) + 4);
            let bands: std::collections::BTreeSet<usize> = rows.iter().map(|i| i / BAND).collect();
            assert_eq!(bands.len(), m.div_ceil(BAND), "{m}");
        }
        // Over many salts, each row of a band is drawn.
        let first: std::collections::BTreeSet<usize> =
            (0..2000).flat_map(|salt| sampled(8192, salt)).filter(|i| (128..192).contains(i)).collect();
        assert_eq!(first.len(), 64);
    }

    #[test]
    fn only_large_products_are_handed_over() {
        let (a, b) = (values(12), values(12));
        let product = Product { m: 3, k: 4, n: 3, a: matrix(&a, 4), b: matrix(&b, 3) };
        let other = FakeBackend { wrong: Some(0), ..FakeBackend::default() };
        let (mut c, mut want) = (vec![0.0; 9], vec![0.0; 9]);
        multiply_anywhere(&product, &mut c, Some(&other));
        multiply(3, 4, 3, product.a, product.b, &mut want);
        assert_eq!((c, other.asked.into_inner()), (want, 0));
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
        let (mut shared, mut alone) = (vec![0.0; m * n], vec![0.0; m * n]);
        assert!(m * k * n >= SHARED);
        multiply(m, k, n, matrix(&a, k), matrix(&b, n), &mut shared);
        rows(m, k, n, matrix(&a, k), matrix(&b, n), &mut alone);
        assert!(shared.iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
}
