//! Explains where the wrong elements are, if there is a simple pattern: a tail, one tile, one row in thirty-two. Knows indices; does not know values.

use kforge_types::model::coordinates::element;

/// The number of wrong elements beyond which only their extents are kept.
const KEPT: usize = 1 << 20;

/// Collects row-major indices of wrong elements of a tensor.
pub struct Places {
    shape: Vec<u64>,
    indices: Vec<u64>,
    count: u64,
}

impl Places {
    /// For a tensor of that shape.
    pub fn new(shape: &[u64]) -> Self {
        Places { shape: shape.to_vec(), indices: Vec::new(), count: 0 }
    }

    /// Adds an index. Indices come in ascending order.
    pub fn push(&mut self, index: u64) {
        self.count += 1;
        if self.indices.len() < KEPT {
            self.indices.push(index);
        }
    }

    /// Adds the indices of `other`, which follow those of this value.
    pub fn join(&mut self, other: &Places) {
        self.count += other.count;
        self.indices.extend(other.indices.iter().take(KEPT - self.indices.len()));
    }

    /// How many indices were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The pattern of the wrong elements; none if there is no simple one.
    pub fn explain(&self) -> Option<String> {
        let total: u64 = self.shape.iter().product();
        let (first, last) = (*self.indices.first()?, *self.indices.last()?);
        if self.count == total {
            return (total > 1).then(|| "every element".to_string());
        }
        if self.count as usize > self.indices.len() {
            return None;
        }
        let columns = *self.shape.last().unwrap_or(&1);
        let rows = total.checked_div(columns)?;
        if rows > 1 {
            if let Some(text) = self.columns(columns) {
                return Some(text);
            }
            if let Some(text) = self.rows(rows, columns) {
                return Some(text);
            }
        }
        if self.count == last - first + 1 && self.count > 1 {
            return Some(if last + 1 == total {
                format!("the last {} of {total} elements", self.count)
            } else {
                let [first, last] = [first, last].map(|index| element(index, &self.shape));
                format!("elements {first} to {last} without a gap")
            });
        }
        self.every(first, total)
    }

    /// Wrong columns that form one run, in every row or in some rows.
    fn columns(&self, columns: u64) -> Option<String> {
        let mut wrong = vec![false; usize::try_from(columns).ok()?];
        self.indices.iter().for_each(|i| wrong[(i % columns) as usize] = true);
        let count = wrong.iter().filter(|w| **w).count() as u64;
        let (start, end) = (wrong.iter().position(|w| *w)? as u64, wrong.iter().rposition(|w| *w)? as u64);
        if count == columns || end - start + 1 != count {
            return None;
        }
        let rows: std::collections::BTreeSet<u64> = self.indices.iter().map(|i| i / columns).collect();
        if rows.len() as u64 * count != self.count || rows.len() < 2 {
            return None;
        }
        let (top, bottom) = (*rows.first()?, *rows.last()?);
        let tile = bottom - top + 1 == rows.len() as u64;
        Some(if end + 1 == columns {
            let last = if count == 1 { "the last".into() } else { format!("the last {count}") };
            format!("{last} of {columns} columns")
        } else if tile {
            format!("one tile: rows {top} to {bottom}, columns {start} to {end}")
        } else {
            format!("columns {start} to {end} of {columns}")
        })
    }

    /// Whole wrong rows: the last ones, or one row in every n.
    fn rows(&self, rows: u64, columns: u64) -> Option<String> {
        let wrong: std::collections::BTreeSet<u64> = self.indices.iter().map(|i| i / columns).collect();
        if wrong.len() as u64 * columns != self.count || wrong.len() as u64 == rows {
            return None;
        }
        let (first, last) = (*wrong.first()?, *wrong.last()?);
        if last - first + 1 == wrong.len() as u64 {
            return Some(match wrong.len() {
                1 => format!("row {first} of {rows}"),
                n if last + 1 == rows => format!("the last {n} of {rows} rows"),
                _ => format!("rows {first} to {last} of {rows}"),
            });
        }
        [128u64, 64, 32, 16, 8, 4, 2]
            .into_iter()
            .find(|m| wrong.len() > 1 && wrong.iter().all(|r| r % m == first % m))
            .map(|m| format!("one row in {m}, from row {first}"))
    }

    /// One element in every n.
    fn every(&self, first: u64, total: u64) -> Option<String> {
        let step = [1024u64, 512, 256, 128, 64, 32, 16, 8, 4, 2]
            .into_iter()
            .find(|m| self.indices.iter().all(|i| i % m == first % m))?;
        // The pattern is reported only if nearly all elements of that residue are wrong.
        (self.count >= 4 && self.count * step * 2 > total)
            .then(|| format!("one element in {step}, from element {}", element(first, &self.shape)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explain(shape: &[u64], wrong: impl Fn(u64, u64) -> bool) -> Option<String> {
        let mut places = Places::new(shape);
        let columns = *shape.last().unwrap();
        (0..shape.iter().product()).filter(|i| wrong(i / columns, i % columns)).for_each(|i| places.push(i));
        places.explain()
    }

    #[test]
    fn plain_patterns_are_named() {
        assert_eq!(explain(&[8, 257], |_, c| c == 256).unwrap(), "the last of 257 columns");
        assert_eq!(
            explain(&[64, 64], |r, c| (16..32).contains(&r) && (32..48).contains(&c)).unwrap(),
            "one tile: rows 16 to 31, columns 32 to 47"
        );
        assert_eq!(explain(&[8, 257], |_, c| c >= 255).unwrap(), "the last 2 of 257 columns");
        assert_eq!(explain(&[128, 16], |r, _| r % 32 == 5).unwrap(), "one row in 32, from row 5");
        assert_eq!(explain(&[10, 16], |r, _| r == 9).unwrap(), "row 9 of 10");
        assert_eq!(explain(&[1000], |_, c| c >= 960).unwrap(), "the last 40 of 1000 elements");
        assert_eq!(explain(&[1024], |_, c| c % 32 == 31).unwrap(), "one element in 32, from element 31");
        assert_eq!(explain(&[4, 4], |_, _| true).unwrap(), "every element");
        let run = |r, c| (11..22).contains(&(r * 8 + c));
        assert_eq!(explain(&[8, 8], run).unwrap(), "elements [1, 3] to [2, 5] without a gap");
        let steps = |r, c| (r * 30 + c) % 4 == 2;
        assert_eq!(explain(&[8, 30], steps).unwrap(), "one element in 4, from element [0, 2]");
    }

    #[test]
    fn scattered_elements_are_not_explained() {
        assert_eq!(explain(&[100, 100], |r, c| (r * 7919 + c * 104_729) % 97 == 3), None);
    }
}
