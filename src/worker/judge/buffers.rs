//! Buffers of one run: what they hold before, and what must be true of them after. Knows roles, poison and canaries; not what values are right.

use std::collections::BTreeMap;
use std::io;

use super::memory::MemoryFile;
use crate::model::bound::{Buffer, Fill};
use crate::model::{Problem, Role, Tensor};
use crate::record::{Finding, FindingKind};
use crate::reference::Values;
use crate::reference::float::encode_strided;
use crate::worker::emulator::placement;
use crate::worker::message::SharedBuffer;

/// The bytes of poison, by run: NaN in every float type and -1 in every signed integer; a large number in every type.
pub(super) const POISONS: [u8; 2] = [0xff, 0x7b];
/// What lies around buffers. Neither poison nor zero, so that a copy from within a buffer shows.
const CANARY: u8 = 0xc5;

/// What a buffer is for.
#[derive(Debug, Clone)]
enum Use<'a> {
    Tensor(&'a Tensor),
    Workspace(&'a Buffer),
}

/// One buffer in its file.
#[derive(Debug, Clone)]
pub(super) struct Placed<'a> {
    pub(super) shared: SharedBuffer,
    pub(super) file: MemoryFile,
    offset: usize,
    before: Vec<u8>,
    used: Use<'a>,
}

/// How one run's buffers are made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    /// The byte of poison.
    pub(super) poison: u8,
    /// On which side the guard page lies.
    pub(super) guard_after: bool,
}

/// Bytes of all buffers of one run.
pub(super) fn bytes(problem: &Problem, workspaces: &[Buffer]) -> u64 {
    let tensors: u64 = problem.tensors.iter().map(Tensor::bytes).sum();
    tensors + workspaces.iter().map(|w| w.elements * w.dtype.bytes()).sum::<u64>()
}

/// Makes every buffer of a run. `sealed` holds the files of inputs that earlier runs with the same guard side made: they cannot have changed.
pub(super) fn make<'a>(
    problem: &'a Problem,
    workspaces: &'a [Buffer],
    inputs: &BTreeMap<String, Values>,
    manner: Manner,
    sealed: &mut BTreeMap<(String, bool), MemoryFile>,
) -> io::Result<Vec<Placed<'a>>> {
    let mut placed = vec![];
    for tensor in &problem.tensors {
        let before = match inputs.get(&tensor.name).filter(|_| tensor.role != Role::Output) {
            Some(values) => encode_strided(tensor, values),
            None => vec![manner.poison; tensor.bytes() as usize],
        };
        let (writable, poisoned) = (tensor.role != Role::Input, tensor.role == Role::Output);
        let (place, whole) = lay(&before, manner);
        let kept = (tensor.name.clone(), manner.guard_after);
        let file = match (sealed.get(&kept), writable) {
            (Some(file), false) => file.again()?,
            (None, false) => sealed.entry(kept).or_insert(MemoryFile::sealed(&whole)?).again()?,
            (_, true) => MemoryFile::writable(&whole)?,
        };
        let shared = shared(&tensor.name, &file, before.len(), tensor.dtype.bytes(), (writable, poisoned));
        placed.push(Placed { shared, file, offset: place, before, used: Use::Tensor(tensor) });
    }
    for workspace in workspaces {
        let poisoned = workspace.fill == Fill::Poison;
        let byte = if poisoned { manner.poison } else { 0 };
        let before = vec![byte; (workspace.elements * workspace.dtype.bytes()) as usize];
        let (place, whole) = lay(&before, manner);
        let file = MemoryFile::writable(&whole)?;
        let shared = shared(&workspace.name, &file, before.len(), workspace.dtype.bytes(), (true, poisoned));
        placed.push(Placed { shared, file, offset: place, before, used: Use::Workspace(workspace) });
    }
    Ok(placed)
}

fn shared(name: &str, file: &MemoryFile, bytes: usize, element: u64, flags: (bool, bool)) -> SharedBuffer {
    let (writable, poisoned) = flags;
    SharedBuffer { name: name.to_string(), fd: file.number(), bytes: bytes as u64, element, writable, poisoned }
}

/// A whole memory file: the buffer at its place, canaries around it.
fn lay(bytes: &[u8], manner: Manner) -> (usize, Vec<u8>) {
    let place = placement(bytes.len() as u64, manner.guard_after);
    let offset = place.offset as usize;
    let mut whole = vec![CANARY; place.file as usize];
    whole[offset..offset + bytes.len()].copy_from_slice(bytes);
    (offset, whole)
}

/// What a buffer held after the run: its own bytes, and what was wrong around and in it whatever its values.
pub(super) struct After {
    pub(super) bytes: Vec<u8>,
    pub(super) findings: Vec<Finding>,
}

impl Placed<'_> {
    /// Reads the buffer back. The runner must have ended.
    pub(super) fn after(&self) -> io::Result<After> {
        let whole = self.file.read()?;
        let end = self.offset + self.before.len();
        let bytes = whole[self.offset..end].to_vec();
        let name = &self.shared.name;
        let mut findings = vec![];
        let spoilt = |range: std::ops::Range<usize>| range.filter(|at| whole[*at] != CANARY).collect::<Vec<_>>();
        for (side, spoilt) in [("before", spoilt(0..self.offset)), ("after", spoilt(end..whole.len()))] {
            let nearest = if side == "before" { spoilt.last() } else { spoilt.first() };
            if let Some(at) = nearest {
                let element = self.shared.element.max(1) as i64;
                let index = (*at as i64 - self.offset as i64).div_euclid(element);
                let message =
                    format!("{} bytes {side} `{name}` were written; the nearest is in element {index}", spoilt.len());
                findings.push(about(FindingKind::Canary, message, name, Some(index), spoilt.len()));
            }
        }
        match &self.used {
            Use::Tensor(tensor) if tensor.role == Role::Input => {
                if let Some(at) = bytes.iter().zip(&self.before).position(|(a, b)| a != b) {
                    let index = (at as u64 / self.shared.element.max(1)) as i64;
                    let message = format!("the input `{name}` was changed, first at {index}");
                    findings.push(about(FindingKind::InputModified, message, name, Some(index), 1));
                }
            }
            Use::Tensor(tensor) => findings.extend(self.gaps(tensor, &bytes)),
            Use::Workspace(workspace) if workspace.fill == Fill::ZeroOnce => {
                let dirty = bytes.iter().filter(|byte| **byte != 0).count();
                if let Some(at) = bytes.iter().position(|byte| *byte != 0) {
                    let index = (at as u64 / self.shared.element.max(1)) as i64;
                    let message =
                        format!("the workspace `{name}` is not zero again: {dirty} bytes, first in element {index}");
                    findings.push(about(FindingKind::WorkspaceDirty, message, name, Some(index), dirty));
                }
            }
            Use::Workspace(_) => {}
        }
        Ok(After { bytes, findings })
    }

    /// Elements between those of a strided tensor: not the kernel's to write.
    fn gaps(&self, tensor: &Tensor, bytes: &[u8]) -> Option<Finding> {
        if tensor.is_contiguous() {
            return None;
        }
        let width = tensor.dtype.bytes() as usize;
        let mut own = vec![false; bytes.len() / width];
        (0..tensor.elements()).for_each(|i| own[tensor.offset_of(i) as usize] = true);
        let changed = |at: &usize| !own[*at] && bytes[at * width..][..width] != self.before[at * width..][..width];
        let mut changed = (0..own.len()).filter(changed);
        let first = changed.next()?;
        let count = changed.count() + 1;
        let message = format!(
            "{count} elements between those of `{}` were written, the first {first} elements after its start",
            tensor.name
        );
        Some(about(FindingKind::Canary, message, &tensor.name, Some(first as i64), count))
    }

    /// The tensor, if a kernel writes it.
    pub(super) fn written(&self) -> Option<&Tensor> {
        match self.used {
            Use::Tensor(tensor) if tensor.role != Role::Input => Some(tensor),
            _ => None,
        }
    }
}

fn about(kind: FindingKind, message: String, buffer: &str, index: Option<i64>, count: usize) -> Finding {
    Finding { buffer: Some(buffer.to_string()), index, count: count as u64, ..Finding::new(kind, message) }
}

/// Elements of an output that hold one run's poison after it and the other's after that: nobody wrote them. `after` pairs each run's poison with its bytes.
pub(super) fn unwritten(tensor: &Tensor, after: &[(u8, &[u8])]) -> Option<Finding> {
    // One pattern alone may be a right answer: -1 is one in many an integer output.
    if tensor.role != Role::Output || !after.iter().any(|(poison, _)| *poison != after[0].0) {
        return None;
    }
    let width = tensor.dtype.bytes() as usize;
    let untouched = |index: &u64| {
        let at = tensor.offset_of(*index) as usize * width;
        after.iter().all(|(poison, bytes)| bytes[at..at + width].iter().all(|byte| byte == poison))
    };
    let mut untouched = (0..tensor.elements()).filter(untouched);
    let first = untouched.next()?;
    let count = untouched.count() + 1;
    let (name, all) = (&tensor.name, tensor.elements());
    let message = match count as u64 == all {
        true => format!("the output `{name}` was not written"),
        false => format!("{count} of {all} elements of the output `{name}` were not written, the first at {first}"),
    };
    Some(about(FindingKind::Unwritten, message, name, Some(first as i64), count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DType, Init, Reference};
    use std::os::unix::fs::FileExt;

    fn tensor(role: Role, shape: &[u64], strides: &[u64]) -> Tensor {
        Tensor {
            name: "y".into(),
            role,
            dtype: DType::I16,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            align: 256,
            init: Init::Auto,
        }
    }

    fn problem(tensor: Tensor) -> Problem {
        Problem {
            dims: BTreeMap::new(),
            tensors: vec![tensor],
            params: vec![],
            reference: Reference::Cpp { file: String::new(), function: String::new() },
            generate_inputs: None,
        }
    }

    fn placed<'a>(problem: &'a Problem, workspaces: &'a [Buffer], guard_after: bool) -> Vec<Placed<'a>> {
        let manner = Manner { poison: POISONS[0], guard_after };
        make(problem, workspaces, &BTreeMap::new(), manner, &mut BTreeMap::new()).unwrap()
    }

    fn write(placed: &Placed<'_>, at: i64, bytes: &[u8]) {
        let file = std::fs::File::from(placed.file.descriptor().try_clone().unwrap());
        file.write_all_at(bytes, (placed.offset as i64 + at) as u64).unwrap();
    }

    #[test]
    fn bytes_written_around_a_buffer_are_found_on_either_side() {
        let problem = problem(tensor(Role::Output, &[50], &[1]));
        let after = &placed(&problem, &[], true)[0];
        write(after, -3, &[1]);
        let found = after.after().unwrap().findings;
        assert_eq!((found[0].kind, found[0].index), (FindingKind::Canary, Some(-2)));
        let before = &placed(&problem, &[], false)[0];
        write(before, 100, &[1, 2]);
        let found = before.after().unwrap().findings;
        assert_eq!((found[0].kind, found[0].index, found[0].count), (FindingKind::Canary, Some(50), 2));
        assert!(placed(&problem, &[], true)[0].after().unwrap().findings.is_empty());
    }

    #[test]
    fn gaps_between_strided_elements_are_not_the_kernels() {
        let problem = problem(tensor(Role::Output, &[2, 2], &[3, 1]));
        let good = &placed(&problem, &[], true)[0];
        write(good, 0, &[1, 1, 1, 1]);
        assert!(good.after().unwrap().findings.is_empty());
        write(good, 4, &[1]);
        let found = good.after().unwrap().findings;
        assert_eq!((found[0].kind, found[0].index), (FindingKind::Canary, Some(2)));
    }

    #[test]
    fn a_zero_once_workspace_must_be_zero_again_and_others_need_not() {
        let buffer = |fill| Buffer { name: "w".into(), dtype: DType::I32, elements: 4, fill };
        let problem = problem(tensor(Role::Output, &[1], &[1]));
        for (fill, dirty) in [(Fill::ZeroOnce, 1), (Fill::Zero, 0), (Fill::Poison, 0)] {
            let workspaces = [buffer(fill)];
            let all = placed(&problem, &workspaces, true);
            write(&all[1], 9, &[1]);
            assert_eq!(all[1].after().unwrap().findings.len(), dirty, "{fill:?}");
        }
    }

    #[test]
    fn an_element_that_holds_both_poisons_was_not_written() {
        let y = tensor(Role::Output, &[3], &[1]);
        let [a, b] = POISONS;
        let (first, second) = ([a, a, a, a, 1, 0], [2, 0, b, b, 1, 0]);
        let found = unwritten(&y, &[(a, &first), (b, &second)]).unwrap();
        assert_eq!((found.index, found.count), (Some(1), 1));
        // -1 in an integer output is an answer like any other.
        assert_eq!(unwritten(&y, &[(a, &[a; 6]), (b, &[a; 6])]), None);
        assert_eq!(unwritten(&y, &[(a, &[a; 6])]), None);
        assert!(unwritten(&y, &[(a, &[a; 6]), (b, &[b; 6])]).unwrap().message.contains("was not written"));
    }
}
