//! A buffer with its canaries: its contents before a run, and the conditions that it must meet afterwards regardless of its values. Knows roles, poison and
//! canaries; does not know where the bytes are, or which values are correct.

use kforge_foundation::base::count;
use kforge_numerics::measure::pattern::Places;
use kforge_types::model::bound::{Buffer, Fill};
use kforge_types::model::coordinates::{element, stored};
use kforge_types::model::{Role, Tensor};
use kforge_types::record::{Finding, FindingKind};

/// The poison byte of each run. 0xff gives NaN in every float type and -1 in every signed integer; 0x7b gives a large number in every type.
pub const POISONS: [u8; 2] = [0xff, 0x7b];

/// The purpose of a buffer.
#[derive(Debug, Clone)]
pub enum Use<'a> {
    /// A tensor of the operator.
    Tensor(&'a Tensor),
    /// A workspace of the kernel.
    Workspace(&'a Buffer),
}

/// The contents of a buffer before a run.
#[derive(Debug, Clone)]
pub enum Filled<B> {
    /// These bytes.
    Bytes(B),
    /// One byte, repeated this many times.
    Byte(u8, usize),
}

impl<B: AsRef<[u8]>> Filled<B> {
    fn len(&self) -> usize {
        match self {
            Filled::Bytes(bytes) => bytes.as_ref().len(),
            Filled::Byte(_, count) => *count,
        }
    }

    /// The first position at which `other`, of the same length, differs.
    fn differs(&self, other: &[u8]) -> Option<usize> {
        match self {
            Filled::Bytes(bytes) => first_difference(bytes.as_ref(), other),
            Filled::Byte(byte, _) => first_other(other, *byte),
        }
    }

    /// Whether a range of `other` differs.
    fn differs_in(&self, range: std::ops::Range<usize>, other: &[u8]) -> bool {
        match self {
            Filled::Bytes(bytes) => bytes.as_ref()[range.clone()] != other[range],
            Filled::Byte(byte, _) => other[range].iter().any(|b| b != byte),
        }
    }
}

// The following functions read every byte of every buffer. They are not generic: a generic function is optimised as the package that calls it is.

/// The first position at which two slices of the same length differ.
fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    /// The bytes that are compared at once. Most buffers are equal.
    const PIECE: usize = 4096;
    let start = PIECE * a.chunks(PIECE).zip(b.chunks(PIECE)).position(|(a, b)| a != b)?;
    a[start..].iter().zip(&b[start..]).position(|(a, b)| a != b).map(|within| start + within)
}

/// The first byte that is not `byte`.
fn first_other(bytes: &[u8], byte: u8) -> Option<usize> {
    bytes.iter().position(|b| *b != byte)
}

/// The positions in `range` of the bytes that are not `byte`.
fn others(bytes: &[u8], range: std::ops::Range<usize>, byte: u8) -> Vec<usize> {
    range.filter(|at| bytes[*at] != byte).collect()
}

/// A buffer with canaries around it, in one block of bytes.
#[derive(Debug, Clone)]
pub struct GuardedBuffer<'a, B> {
    /// Its name.
    pub name: &'a str,
    /// The size of an element in bytes.
    pub element: u64,
    /// The position in the block at which the buffer begins.
    pub offset: usize,
    /// The contents before the run.
    pub before: Filled<B>,
    /// Its purpose.
    pub used: Use<'a>,
    /// The byte of the canaries.
    pub canary: u8,
}

/// A buffer after a run: its own bytes, and the problems found in and around it that do not depend on its values.
pub struct BufferAfterRun {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The problems found.
    pub findings: Vec<Finding>,
}

impl<'a, B: AsRef<[u8]>> GuardedBuffer<'a, B> {
    /// Checks the block after a run.
    pub fn after(&self, mut whole: Vec<u8>) -> BufferAfterRun {
        let end = self.offset + self.before.len();
        let name = self.name;
        let mut findings = vec![];
        let spoilt = |range| others(&whole, range, self.canary);
        for (side, spoilt) in [("before", spoilt(0..self.offset)), ("after", spoilt(end..whole.len()))] {
            let nearest = if side == "before" { spoilt.last() } else { spoilt.first() };
            if let Some(at) = nearest {
                let element = self.element.max(1) as i64;
                let index = (*at as i64 - self.offset as i64).div_euclid(element);
                let were = if spoilt.len() == 1 { "was" } else { "were" };
                let bytes = count(spoilt.len(), "byte");
                let message = format!("{bytes} {side} `{name}` {were} written; the nearest is in element {index}");
                findings.push(about(FindingKind::Canary, message, name, Some(index), spoilt.len()));
            }
        }
        // Truncates in place, because a second copy may be large.
        whole.truncate(end);
        whole.drain(..self.offset);
        let bytes = whole;
        match &self.used {
            Use::Tensor(tensor) if tensor.role == Role::Input => {
                if let Some(at) = self.before.differs(&bytes) {
                    let index = (at as u64 / self.element.max(1)) as i64;
                    let message = format!("the input `{name}` was changed, first at {}", stored(index, &tensor.axes()));
                    findings.push(about(FindingKind::InputModified, message, name, Some(index), 1));
                }
            }
            Use::Tensor(tensor) => findings.extend(self.gaps(tensor, &bytes)),
            Use::Workspace(workspace) if workspace.fill == Fill::ZeroOnce => {
                let dirty = bytes.iter().filter(|byte| **byte != 0).count();
                if let Some(at) = first_other(&bytes, 0) {
                    let index = (at as u64 / self.element.max(1)) as i64;
                    let bytes = count(dirty, "byte");
                    let message =
                        format!("the workspace `{name}` was not reset to zero: {bytes}, first in element {index}");
                    findings.push(about(FindingKind::WorkspaceDirty, message, name, Some(index), dirty));
                }
            }
            Use::Workspace(_) => {}
        }
        BufferAfterRun { bytes, findings }
    }

    /// Checks the elements in the gaps of a strided tensor, which the kernel may not write.
    fn gaps(&self, tensor: &Tensor, bytes: &[u8]) -> Option<Finding> {
        if tensor.is_contiguous() {
            return None;
        }
        let width = tensor.dtype.bytes() as usize;
        let mut own = vec![false; bytes.len() / width];
        (0..tensor.elements()).for_each(|i| own[tensor.offset_of(i) as usize] = true);
        let changed = |at: &usize| !own[*at] && self.before.differs_in(at * width..(at + 1) * width, bytes);
        let mut changed = (0..own.len()).filter(changed);
        let first = changed.next()?;
        let gaps = changed.count() + 1;
        let message = format!(
            "{} between those of `{}` {} written, the first {} after its start",
            count(gaps, "element"),
            tensor.name,
            if gaps == 1 { "was" } else { "were" },
            count(first, "element")
        );
        Some(about(FindingKind::Canary, message, &tensor.name, Some(first as i64), gaps))
    }

    /// The tensor, if a kernel writes it.
    pub fn written(&self) -> Option<&'a Tensor> {
        match self.used {
            Use::Tensor(tensor) if tensor.role != Role::Input => Some(tensor),
            _ => None,
        }
    }
}

fn about(kind: FindingKind, message: String, buffer: &str, index: Option<i64>, count: usize) -> Finding {
    Finding { buffer: Some(buffer.to_string()), index, count: count as u64, ..Finding::new(kind, message) }
}

/// The elements of an output that still hold each run's poison after runs with different poisons: they were not written. `after` pairs each run's poison with
/// its bytes.
pub fn unwritten(tensor: &Tensor, after: &[(u8, &[u8])]) -> Option<Finding> {
    // One poison alone may be a correct answer: -1 is one in many integer outputs.
    if tensor.role != Role::Output || !after.iter().any(|(poison, _)| *poison != after[0].0) {
        return None;
    }
    // If two runs with different poisons share the same bytes, their outputs are equal, so no element holds both poisons.
    if after.iter().any(|(poison, bytes)| *poison != after[0].0 && std::ptr::eq(*bytes, after[0].1)) {
        return None;
    }
    let width = tensor.dtype.bytes() as usize;
    let untouched = |index: &u64| {
        let at = tensor.offset_of(*index) as usize * width;
        after.iter().all(|(poison, bytes)| bytes[at..at + width].iter().all(|byte| byte == poison))
    };
    let untouched = (0..tensor.elements()).filter(untouched);
    let (mut places, mut first, mut missing) = (Places::new(&tensor.shape), None, 0usize);
    for index in untouched {
        places.push(index);
        first.get_or_insert(index);
        missing += 1;
    }
    let first = first?;
    let (name, all, at) = (&tensor.name, tensor.elements(), element(first, &tensor.shape));
    let pattern = places.explain().map(|pattern| format!("; they are {pattern}")).unwrap_or_default();
    let message = match missing as u64 == all {
        true => format!("the output `{name}` was not written"),
        false if missing == 1 => format!("1 of {all} elements of the output `{name}` was not written, at {at}"),
        false => {
            format!("{missing} of {all} elements of the output `{name}` were not written, the first at {at}{pattern}")
        }
    };
    Some(about(FindingKind::Unwritten, message, name, Some(first as i64), missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_found_in_every_piece() {
        let bytes = vec![7u8; 3 * 4096 + 5];
        assert_eq!((first_difference(&bytes, &bytes), first_difference(&[], &[])), (None, None));
        for at in [0, 1, 4095, 4096, 8191, 3 * 4096, 3 * 4096 + 4] {
            let mut other = bytes.clone();
            other[at] = 8;
            assert_eq!((first_difference(&bytes, &other), first_other(&other, 7)), (Some(at), Some(at)));
            *other.last_mut().unwrap() = 8;
            assert_eq!((first_difference(&bytes, &other), first_other(&other, 7)), (Some(at), Some(at)));
        }
        assert_eq!(others(&[7, 8, 9, 7, 8], 1..4, 7), [1, 2]);
    }
}
