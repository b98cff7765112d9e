//! A buffer with its surroundings: what it held before a run, and what must be true of it afterwards regardless of its values. Knows roles, poison and canaries; does
//! not know where the bytes are, or which values are correct.

use kforge_foundation::base::count;
use kforge_types::model::bound::{Buffer, Fill};
use kforge_types::model::coordinates::{element, stored};
use kforge_types::model::{Role, Tensor};
use kforge_types::record::{Finding, FindingKind};

/// The bytes of poison, by run: NaN in every float type and -1 in every signed integer; a large number in every type.
pub const POISONS: [u8; 2] = [0xff, 0x7b];

/// What a buffer is for.
#[derive(Debug, Clone)]
pub enum Use<'a> {
    /// One of the operator's.
    Tensor(&'a Tensor),
    /// One of the kernel's own.
    Workspace(&'a Buffer),
}

/// With what a buffer was filled before a run.
#[derive(Debug, Clone)]
pub enum Filled<B> {
    /// These bytes.
    Bytes(B),
    /// One byte this many times.
    Byte(u8, usize),
}

impl<B: AsRef<[u8]>> Filled<B> {
    fn len(&self) -> usize {
        match self {
            Filled::Bytes(bytes) => bytes.as_ref().len(),
            Filled::Byte(_, count) => *count,
        }
    }

    /// Where other bytes, as many, first differ from it.
    fn differs(&self, other: &[u8]) -> Option<usize> {
        match self {
            Filled::Bytes(bytes) => bytes.as_ref().iter().zip(other).position(|(a, b)| a != b),
            Filled::Byte(byte, _) => other.iter().position(|b| b != byte),
        }
    }

    /// Whether a range of other bytes is otherwise than in it.
    fn differs_in(&self, range: std::ops::Range<usize>, other: &[u8]) -> bool {
        match self {
            Filled::Bytes(bytes) => bytes.as_ref()[range.clone()] != other[range],
            Filled::Byte(byte, _) => other[range].iter().any(|b| b != byte),
        }
    }
}

/// A buffer in a whole of bytes, canaries around it.
#[derive(Debug, Clone)]
pub struct GuardedBuffer<'a, B> {
    /// Its name.
    pub name: &'a str,
    /// Bytes of one element.
    pub element: u64,
    /// Where it begins in the whole.
    pub offset: usize,
    /// What it held.
    pub before: Filled<B>,
    /// What it is for.
    pub used: Use<'a>,
    /// The byte around it.
    pub canary: u8,
}

/// What a buffer held after the run: its own bytes, and what was wrong around and in it whatever its values.
pub struct BufferAfterRun {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What was wrong.
    pub findings: Vec<Finding>,
}

impl<'a, B: AsRef<[u8]>> GuardedBuffer<'a, B> {
    /// What the whole shows after a run.
    pub fn after(&self, mut whole: Vec<u8>) -> BufferAfterRun {
        let end = self.offset + self.before.len();
        let name = self.name;
        let mut findings = vec![];
        let spoilt = |range: std::ops::Range<usize>| range.filter(|at| whole[*at] != self.canary).collect::<Vec<_>>();
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
        // Of what may be large there is no second copy.
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
                if let Some(at) = bytes.iter().position(|byte| *byte != 0) {
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

    /// Elements between those of a strided tensor: not the kernel's to write.
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

/// Elements of an output that hold one run's poison after it and the other's after that: they were not written. `after` pairs each run's poison with its bytes.
pub fn unwritten(tensor: &Tensor, after: &[(u8, &[u8])]) -> Option<Finding> {
    // A single pattern may be a correct answer: -1 is one in many integer outputs.
    if tensor.role != Role::Output || !after.iter().any(|(poison, _)| *poison != after[0].0) {
        return None;
    }
    // The very bytes of one run cannot be poison of two kinds.
    if after.iter().any(|(poison, bytes)| *poison != after[0].0 && std::ptr::eq(*bytes, after[0].1)) {
        return None;
    }
    let width = tensor.dtype.bytes() as usize;
    let untouched = |index: &u64| {
        let at = tensor.offset_of(*index) as usize * width;
        after.iter().all(|(poison, bytes)| bytes[at..at + width].iter().all(|byte| byte == poison))
    };
    let mut untouched = (0..tensor.elements()).filter(untouched);
    let first = untouched.next()?;
    let missing = untouched.count() + 1;
    let (name, all, at) = (&tensor.name, tensor.elements(), element(first, &tensor.shape));
    let message = match missing as u64 == all {
        true => format!("the output `{name}` was not written"),
        false if missing == 1 => format!("1 of {all} elements of the output `{name}` was not written, at {at}"),
        false => format!("{missing} of {all} elements of the output `{name}` were not written, the first at {at}"),
    };
    Some(about(FindingKind::Unwritten, message, name, Some(first as i64), missing))
}
