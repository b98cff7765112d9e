//! Buffers on a device as the verifier lays them out: the kernel's part between canaries, poisoned or filled. Knows tensors and workspaces, but no device.

use std::sync::Arc;

use super::inputs::{Inputs, TensorBytes};
use super::wire::{BufferFill, BufferLayout, Reset};
use kforge_harness::layout::{BufferAfterRun, Filled, GuardedBuffer, Use};
use kforge_types::model::bound::{Buffer, Fill};
use kforge_types::model::{Problem, Role, Tensor};

/// Bytes of canary on either side: a row of sixteen thousand floats. A multiple of the alignment of every tensor.
const GUARD: usize = 64 << 10;
/// Canaries pad the kernel's part to a multiple of this size.
const UNIT: usize = 256;

/// The contents of the kernel's part of a buffer before a run.
#[derive(Debug, Clone)]
pub(super) enum InitialContents {
    /// These contents.
    Contents(Arc<TensorBytes>),
    /// One repeated byte.
    Byte(u8),
}

/// One buffer before a run.
#[derive(Debug, Clone)]
pub(super) struct Image<'a> {
    /// The name of the buffer.
    pub(super) name: &'a str,
    /// Bytes of an element.
    element: u64,
    /// Bytes of the kernel's part.
    pub(super) own: u64,
    used: Use<'a>,
    /// The contents of the kernel's part.
    pub(super) holds: InitialContents,
    /// How the contents are reset before each sample.
    before: Reset,
}

impl<'a> Image<'a> {
    /// The offset of the kernel's part.
    pub(super) fn offset(&self) -> u64 {
        GUARD as u64
    }

    /// Bytes of the whole buffer, including canaries.
    pub(super) fn whole(&self) -> u64 {
        whole(self.own)
    }

    /// The layout for the runner.
    pub(super) fn lay(&self) -> BufferLayout {
        let with = match &self.holds {
            InitialContents::Contents(made) => BufferFill::Contents(made.name.clone()),
            InitialContents::Byte(byte) => BufferFill::Byte(*byte),
        };
        BufferLayout { name: self.name.to_string(), with, before: self.before }
    }

    /// The tensor, if a kernel writes it.
    pub(super) fn written(&self) -> Option<&'a Tensor> {
        match self.used {
            Use::Tensor(tensor) if tensor.role != Role::Input => Some(tensor),
            _ => None,
        }
    }

    /// Whether every byte of the buffer is an element of a tensor, so that there are no gaps that a kernel must not write.
    pub(super) fn is_dense(&self) -> bool {
        !matches!(self.used, Use::Tensor(tensor) if !tensor.is_contiguous())
    }

    /// The sum of the contents after a run, if the run must not change them.
    pub(super) fn kept_sum(&self) -> Option<u64> {
        match (&self.used, &self.holds) {
            (Use::Tensor(tensor), InitialContents::Contents(made)) if tensor.role == Role::Input => Some(made.sum),
            _ => None,
        }
    }

    /// Whether its bytes must be read to check it: a workspace that must be zero again.
    pub(super) fn must_be_read(&self) -> bool {
        matches!(self.used, Use::Workspace(workspace) if workspace.fill == Fill::ZeroOnce)
    }

    /// Whether a kernel may read the buffer before writing it: inputs, inouts, and workspaces that are zero.
    pub(super) fn is_given(&self) -> bool {
        match &self.used {
            Use::Tensor(tensor) => tensor.role != Role::Output,
            Use::Workspace(workspace) => workspace.fill != Fill::Poison,
        }
    }

    /// The whole buffer after a run, with the expected `canary`.
    pub(super) fn after(&self, canary: u8, bytes: Vec<u8>) -> BufferAfterRun {
        let before = match &self.holds {
            InitialContents::Contents(made) => Filled::Bytes(&made.bytes),
            InitialContents::Byte(byte) => Filled::Byte(*byte, self.own as usize),
        };
        let used = self.used.clone();
        GuardedBuffer { name: self.name, element: self.element, offset: GUARD, before, used, canary }.after(bytes)
    }
}

fn whole(own: u64) -> u64 {
    own.next_multiple_of(UNIT as u64) + 2 * GUARD as u64
}

/// Bytes of device memory for all buffers of a set.
pub(super) fn bytes(problem: &Problem, workspaces: &[Buffer]) -> u64 {
    let tensors = problem.tensors.iter().map(|t| whole(t.bytes()));
    tensors.chain(workspaces.iter().map(|w| whole(w.elements * w.dtype.bytes()))).sum()
}

/// Bytes of the contents of one trial.
pub(super) fn contents(problem: &Problem) -> u64 {
    problem.tensors.iter().filter(|t| t.role != Role::Output).map(Tensor::bytes).sum()
}

/// A byte for canaries that is derived from a seed and is neither zero nor poison.
pub(super) fn canary(seed: u64, salt: u64) -> u8 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"canary").update(&seed.to_le_bytes()).update(&salt.to_le_bytes());
    let mut bytes = [0; 64];
    hasher.finalize_xof().fill(&mut bytes);
    bytes.into_iter().find(|byte| ![0, 0xff, 0x7b].contains(byte)).unwrap_or(0xc5)
}

/// Every buffer of a run.
pub(super) fn images<'a>(
    problem: &'a Problem,
    workspaces: &'a [Buffer],
    inputs: &Inputs,
    poison: u8,
) -> Vec<Image<'a>> {
    let tensors = problem.tensors.iter().map(|tensor| {
        let contents = inputs.get(&tensor.name).filter(|_| tensor.role != Role::Output);
        Image {
            name: &tensor.name,
            element: tensor.dtype.bytes(),
            own: tensor.bytes(),
            used: Use::Tensor(tensor),
            holds: contents.map_or(InitialContents::Byte(poison), |made| InitialContents::Contents(Arc::clone(made))),
            before: if tensor.role == Role::Input { Reset::Keep } else { Reset::Renew },
        }
    });
    let workspaces = workspaces.iter().map(|workspace| Image {
        name: &workspace.name,
        element: workspace.dtype.bytes(),
        own: workspace.elements * workspace.dtype.bytes(),
        used: Use::Workspace(workspace),
        holds: InitialContents::Byte(if workspace.fill == Fill::Poison { poison } else { 0 }),
        before: if workspace.fill == Fill::ZeroOnce { Reset::Keep } else { Reset::Renew },
    });
    tensors.chain(workspaces).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use kforge_types::model::{DType, Reference};
    use kforge_types::record::FindingKind;

    #[test]
    fn canaries_lie_hard_against_the_kernels_part_on_both_sides() {
        let tensor = Tensor::dense("y", Role::Output, DType::F32, &[3]);
        let problem = Problem::of(vec![tensor], Reference::builtin("sum", &[]));
        let images = images(&problem, &[], &BTreeMap::new(), 0xff);
        let (image, canary) = (&images[0], canary(1, 0));
        assert_eq!((image.own, image.lay().with, image.before), (12, BufferFill::Byte(0xff), Reset::Renew));
        let mut laid = vec![canary; image.whole() as usize];
        laid[GUARD..GUARD + 12].fill(0xff);
        assert!(image.after(canary, laid.clone()).findings.is_empty());
        for (at, index) in [(GUARD - 1, -1), (GUARD + 12, 3)] {
            let mut whole = laid.clone();
            whole[at] ^= 1;
            let found = image.after(canary, whole).findings;
            assert_eq!((found[0].kind, found[0].index), (FindingKind::Canary, Some(index)));
        }
        assert_eq!(bytes(&problem, &[]), image.whole());
    }

    #[test]
    fn canaries_are_neither_poison_nor_zero_and_hang_on_the_seed() {
        let bytes: Vec<u8> = (0..64).map(|seed| canary(seed, 0)).collect();
        assert!(bytes.iter().all(|b| ![0, 0xff, 0x7b].contains(b)));
        assert!(bytes.iter().any(|b| *b != bytes[0]));
    }
}
