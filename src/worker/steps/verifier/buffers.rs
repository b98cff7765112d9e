//! The buffers of one run: their contents before the run, and what must hold after it. Knows roles, poison and canaries, but not which values are correct.

use std::collections::BTreeMap;
use std::io;

use kforge_emulator::placement;
use kforge_harness::layout::{BufferAfterRun, Filled, GuardedBuffer, Use};
use kforge_harness::memory_file::MemoryFile;
use kforge_harness::message::SharedBuffer;
use kforge_numerics::reference::Values;
use kforge_numerics::reference::float::encode_strided;
use kforge_types::model::bound::{Buffer, Fill};
use kforge_types::model::{Problem, Role, Tensor};

/// The fill around buffers. It is neither poison nor zero, so that a copy from within a buffer is noticed.
const CANARY: u8 = 0xc5;

/// One buffer in its file.
#[derive(Debug, Clone)]
pub(super) struct BufferFile<'a> {
    pub(super) shared: SharedBuffer,
    pub(super) file: MemoryFile,
    laid: GuardedBuffer<'a, Vec<u8>>,
}

/// How the buffers of one run are laid out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    /// The byte of the poison pattern.
    pub(super) poison: u8,
    /// Whether the guard page is after the buffer, not before it.
    pub(super) guard_after: bool,
}

/// Bytes of all buffers of one run.
pub(super) fn bytes(problem: &Problem, workspaces: &[Buffer]) -> u64 {
    let tensors: u64 = problem.tensors.iter().map(Tensor::bytes).sum();
    tensors + workspaces.iter().map(|w| w.elements * w.dtype.bytes()).sum::<u64>()
}

/// Creates every buffer of a run. `sealed` holds the files of inputs from earlier runs with the same guard side; they are sealed and cannot have changed.
pub(super) fn make<'a>(
    problem: &'a Problem,
    workspaces: &'a [Buffer],
    inputs: &BTreeMap<String, Values>,
    manner: Manner,
    sealed: &mut BTreeMap<(String, bool), MemoryFile>,
) -> io::Result<Vec<BufferFile<'a>>> {
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
        let shared = SharedBuffer {
            axes: tensor.axes(),
            ..shared(&tensor.name, &file, before.len(), tensor.dtype.bytes(), (writable, poisoned))
        };
        let laid = laid(&tensor.name, tensor.dtype.bytes(), place, before, Use::Tensor(tensor));
        placed.push(BufferFile { shared, file, laid });
    }
    for workspace in workspaces {
        let poisoned = workspace.fill == Fill::Poison;
        let byte = if poisoned { manner.poison } else { 0 };
        let before = vec![byte; (workspace.elements * workspace.dtype.bytes()) as usize];
        let (place, whole) = lay(&before, manner);
        let file = MemoryFile::writable(&whole)?;
        let shared = shared(&workspace.name, &file, before.len(), workspace.dtype.bytes(), (true, poisoned));
        let laid = laid(&workspace.name, workspace.dtype.bytes(), place, before, Use::Workspace(workspace));
        placed.push(BufferFile { shared, file, laid });
    }
    Ok(placed)
}

fn laid<'a>(name: &'a str, element: u64, offset: usize, before: Vec<u8>, used: Use<'a>) -> GuardedBuffer<'a, Vec<u8>> {
    GuardedBuffer { name, element, offset, before: Filled::Bytes(before), used, canary: CANARY }
}

fn shared(name: &str, file: &MemoryFile, bytes: usize, element: u64, flags: (bool, bool)) -> SharedBuffer {
    let (writable, poisoned) = flags;
    let (name, fd, bytes) = (name.to_string(), file.number(), bytes as u64);
    SharedBuffer { name, fd, bytes, element, axes: vec![], writable, poisoned }
}

/// The contents of a whole memory file: the buffer at its offset, with canaries around it.
fn lay(bytes: &[u8], manner: Manner) -> (usize, Vec<u8>) {
    let place = placement(bytes.len() as u64, manner.guard_after);
    let offset = place.offset as usize;
    let mut whole = vec![CANARY; place.file as usize];
    whole[offset..offset + bytes.len()].copy_from_slice(bytes);
    (offset, whole)
}

impl<'a> BufferFile<'a> {
    /// Reads the buffer back. The runner must have ended.
    pub(super) fn after(&self) -> io::Result<BufferAfterRun> {
        Ok(self.laid.after(self.file.read()?))
    }

    /// The tensor, if a kernel writes it.
    pub(super) fn written(&self) -> Option<&'a Tensor> {
        self.laid.written()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_harness::layout::{POISONS, unwritten};
    use kforge_types::model::{DType, Reference};
    use kforge_types::record::FindingKind;
    use std::os::unix::fs::FileExt;

    fn tensor(role: Role, shape: &[u64], strides: &[u64]) -> Tensor {
        Tensor { strides: strides.to_vec(), ..Tensor::dense("y", role, DType::I16, shape) }
    }

    fn problem(tensor: Tensor) -> Problem {
        Problem::of(vec![tensor], Reference::builtin("sum", &[]))
    }

    fn placed<'a>(problem: &'a Problem, workspaces: &'a [Buffer], guard_after: bool) -> Vec<BufferFile<'a>> {
        let manner = Manner { poison: POISONS[0], guard_after };
        make(problem, workspaces, &BTreeMap::new(), manner, &mut BTreeMap::new()).unwrap()
    }

    fn write(placed: &BufferFile<'_>, at: i64, bytes: &[u8]) {
        let file = std::fs::File::from(placed.file.descriptor().try_clone().unwrap());
        file.write_all_at(bytes, (placed.laid.offset as i64 + at) as u64).unwrap();
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
    fn elements_are_told_by_coordinates_and_what_is_one_is_told_as_one() {
        let [a, b] = POISONS;
        let y = tensor(Role::Output, &[2, 3], &[4, 1]);
        let written = |poison: u8| {
            let mut all = [1; 14];
            all[12..].fill(poison);
            all
        };
        let found = unwritten(&y, &[(a, &written(a)), (b, &written(b))]).unwrap();
        assert_eq!(found.message, "1 of 6 elements of the output `y` was not written, at [1, 2]");
        assert_eq!(found.index, Some(5), "its number in the record");
        let one = |role, at, strides: [u64; 2]| {
            let problem = problem(tensor(role, &[2, 3], &strides));
            let placed = &placed(&problem, &[], false)[0];
            // The file of an input is sealed, so the test changes a copy of its contents.
            let mut whole = placed.file.read().unwrap();
            whole[at] ^= 1;
            placed.laid.after(whole).findings.into_iter().map(|f| (f.message, f.index)).collect::<Vec<_>>()
        };
        assert_eq!(one(Role::Input, 10, [4, 1]), [("the input `y` was changed, first at [1, 1]".into(), Some(5))]);
        let gap = "1 element between those of `y` was written, the first 3 elements after its start";
        assert_eq!(one(Role::Output, 6, [4, 1]), [(gap.into(), Some(3))]);
        let beyond = "1 byte after `y` was written; the nearest is in element 6";
        assert_eq!(one(Role::Output, 12, [3, 1]), [(beyond.into(), Some(6))]);
    }

    #[test]
    fn an_element_that_holds_both_poisons_was_not_written() {
        let y = tensor(Role::Output, &[3], &[1]);
        let [a, b] = POISONS;
        let (first, second) = ([a, a, a, a, 1, 0], [2, 0, b, b, 1, 0]);
        let found = unwritten(&y, &[(a, &first), (b, &second)]).unwrap();
        assert_eq!((found.index, found.count), (Some(1), 1));
        // -1 in an integer output is a valid value.
        assert_eq!(unwritten(&y, &[(a, &[a; 6]), (b, &[a; 6])]), None);
        assert_eq!(unwritten(&y, &[(a, &[a; 6])]), None);
        assert!(unwritten(&y, &[(a, &[a; 6]), (b, &[b; 6])]).unwrap().message.contains("was not written"));
    }
}
