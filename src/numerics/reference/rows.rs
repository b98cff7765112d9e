//! A tensor as rows along the axes of an operator, and compensated sums. Does not know operators.

use super::values::Values;
use kforge_foundation::base::pieces;
use kforge_types::model::bound::contiguous;

/// How a tensor splits into rows: `axes` run along each row, in their order; the other axes enumerate the rows, row-major.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    /// The number of rows.
    pub(super) count: usize,
    /// The number of values per row.
    pub(super) len: usize,
    /// Position of each row's first value; none if rows are contiguous.
    bases: Option<Vec<usize>>,
    /// Position of each value relative to its row's first.
    offsets: Vec<usize>,
}

/// How many values a row along these axes has.
pub(super) fn length(shape: &[usize], axes: &[usize]) -> usize {
    axes.iter().map(|axis| shape[*axis]).product()
}

impl Rows {
    /// Rows of a row-major tensor of this shape along these (sorted) axes.
    pub(super) fn new(shape: &[usize], axes: &[usize]) -> Self {
        let strides = contiguous(&shape.iter().map(|n| *n as u64).collect::<Vec<_>>());
        let walk = |wanted: bool| {
            let mut places = vec![0usize];
            for axis in (0..shape.len()).filter(|axis| axes.contains(axis) == wanted) {
                let (extent, stride) = (shape[axis], strides[axis] as usize);
                places = places.iter().flat_map(|p| (0..extent).map(move |i| p + i * stride)).collect();
            }
            places
        };
        let trailing = axes.iter().copied().eq(shape.len() - axes.len()..shape.len());
        let len = length(shape, axes);
        let count = (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).product();
        if trailing {
            Rows { count, len, bases: None, offsets: Vec::new() }
        } else {
            Rows { count, len, bases: Some(walk(false)), offsets: walk(true) }
        }
    }

    /// The position in the tensor of value `i` of row `row`.
    pub(super) fn place(&self, row: usize, i: usize) -> usize {
        match &self.bases {
            None => row * self.len + i,
            Some(bases) => bases[row] + self.offsets[i],
        }
    }

    /// The tensor's values row after row. Copies the tensor if rows are not contiguous already.
    pub(super) fn gather<'a, T: Copy + Default + Send + Sync>(&self, values: &'a [T]) -> std::borrow::Cow<'a, [T]> {
        if self.bases.is_none() {
            return values.into();
        }
        pieces::values(self.count * self.len, |k| values[self.place(k / self.len, k % self.len)]).into()
    }

    /// The inverse of [`Self::gather`]: values row after row back in the tensor's order.
    pub(super) fn scatter<T: Copy + Default>(&self, rows: Vec<T>) -> Vec<T> {
        if self.bases.is_none() {
            return rows;
        }
        let mut values = vec![T::default(); rows.len()];
        for (k, value) in rows.into_iter().enumerate() {
            values[self.place(k / self.len, k % self.len)] = value;
        }
        values
    }

    /// `f` of every row, in parallel, with one result per row. A row may be empty.
    pub(super) fn reduce<T, R>(&self, values: &[T], f: impl Fn(&[T]) -> R + Sync) -> Vec<R>
    where
        T: Copy + Default + Send + Sync,
        R: Copy + Default + Send,
    {
        let rows = self.gather(values);
        let together = self.together();
        let mut made = vec![R::default(); self.count];
        pieces::chunks(&mut made, together, |at, made| {
            for (i, made) in made.iter_mut().enumerate() {
                let row = at * together + i;
                *made = f(&rows[row * self.len..(row + 1) * self.len]);
            }
        });
        made
    }

    /// Every row replaced by the result of `f` (which gets the row's number), in parallel.
    pub(super) fn map<T, R>(&self, values: &[T], f: impl Fn(usize, &[T], &mut [R]) + Sync) -> Vec<R>
    where
        T: Copy + Default + Send + Sync,
        R: Copy + Default + Send + Sync,
    {
        let rows = self.gather(values);
        let mut made = vec![R::default(); rows.len()];
        if self.len > 0 {
            let together = self.together();
            pieces::chunks(&mut made, together * self.len, |at, made| {
                for (i, out) in made.chunks_mut(self.len).enumerate() {
                    let row = at * together + i;
                    f(row, &rows[row * self.len..(row + 1) * self.len], out);
                }
            });
        }
        self.scatter(made)
    }

    /// How many rows one thread processes at once.
    fn together(&self) -> usize {
        (pieces::PIECE / self.len.max(1)).max(1)
    }
}

/// A sum with Neumaier's compensation (A. Neumaier, ZAMM 54, 1974): its error is about one rounding of the result for any length, unless the terms cancel by
/// more than 1e15. Infinities and NaN give the same result as plain addition.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    total: f64,
    lost: f64,
}

impl Sum {
    /// Adds a term.
    pub(super) fn add(&mut self, x: f64) {
        let next = self.total + x;
        self.lost += if self.total.abs() >= x.abs() { (self.total - next) + x } else { (x - next) + self.total };
        self.total = next;
    }

    /// The sum so far.
    pub(super) fn value(self) -> f64 {
        if self.total.is_finite() { self.total + self.lost } else { self.total }
    }
}

/// The compensated sum of terms.
pub(super) fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let mut total = Sum::default();
    terms.for_each(|x| total.add(x));
    total.value()
}

/// A tensor's values with permuted axes: `axes[k]` is the axis of the source that becomes axis k.
pub(super) fn transposed(values: &Values, shape: &[usize], axes: &[usize]) -> Values {
    let strides = contiguous(&shape.iter().map(|n| *n as u64).collect::<Vec<_>>());
    let mut places = vec![0usize];
    for axis in axes {
        let stride = strides[*axis] as usize;
        places = places.iter().flat_map(|p| (0..shape[*axis]).map(move |i| p + i * stride)).collect();
    }
    values.take(places.into_iter())
}
