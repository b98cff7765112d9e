//! Buffers on a device as a judge lays them out: the kernel's part between canaries, poisoned or filled. Knows tensors and workspaces; asks no device.

use crate::model::bound::{Buffer, Fill};
use crate::model::{Problem, Role, Tensor};
use crate::reference::Values;
use crate::reference::float::encode_strided;
use crate::worker::judge::laid::{Laid, Use};

use super::wire::Before;

/// Bytes of canary on either side: a row of sixteen thousand floats. Also a multiple of what any tensor is aligned to.
const GUARD: usize = 64 << 10;
/// To what the kernel's part is filled up, with canaries.
const UNIT: usize = 256;

/// One buffer before a run.
pub(super) struct Image<'a> {
    /// What is checked after.
    pub(super) laid: Laid<'a>,
    /// Its bytes, canaries included.
    pub(super) whole: Vec<u8>,
    /// What happens to it before each sample.
    pub(super) before: Before,
}

impl Image<'_> {
    /// Where the kernel's part begins.
    pub(super) fn offset(&self) -> u64 {
        GUARD as u64
    }

    /// Bytes of the kernel's part.
    pub(super) fn own(&self) -> u64 {
        self.laid.before.len() as u64
    }
}

/// Bytes that all buffers of a set take on a device, what is restored counted twice.
pub(super) fn bytes(problem: &Problem, workspaces: &[Buffer]) -> u64 {
    let of = |own: u64| own.next_multiple_of(UNIT as u64) + 2 * GUARD as u64;
    let tensors = problem.tensors.iter().map(|t| of(t.bytes()) * if t.role == Role::Inout { 2 } else { 1 });
    tensors.chain(workspaces.iter().map(|w| of(w.elements * w.dtype.bytes()))).sum()
}

/// A byte for canaries that follows from a seed and is neither zero nor a poison.
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
    inputs: &std::collections::BTreeMap<String, Values>,
    poison: u8,
    canary: u8,
) -> Vec<Image<'a>> {
    let tensors = problem.tensors.iter().map(|tensor| {
        let before = match inputs.get(&tensor.name).filter(|_| tensor.role != Role::Output) {
            Some(values) => encode_strided(tensor, values),
            None => vec![poison; tensor.bytes() as usize],
        };
        image(&tensor.name, tensor.dtype.bytes(), before, Use::Tensor(tensor), canary, of_tensor(tensor, poison))
    });
    let workspaces = workspaces.iter().map(|workspace| {
        let byte = if workspace.fill == Fill::Poison { poison } else { 0 };
        let count = workspace.elements * workspace.dtype.bytes();
        let before = match workspace.fill {
            Fill::ZeroOnce => Before::Keep,
            Fill::Poison | Fill::Zero => Before::Set { byte, count },
        };
        let used = Use::Workspace(workspace);
        image(&workspace.name, workspace.dtype.bytes(), vec![byte; count as usize], used, canary, before)
    });
    tensors.chain(workspaces).collect()
}

fn of_tensor(tensor: &Tensor, poison: u8) -> Before {
    match tensor.role {
        Role::Input => Before::Keep,
        Role::Inout => Before::Restore,
        Role::Output => Before::Set { byte: poison, count: tensor.bytes() },
    }
}

fn image<'a>(name: &'a str, element: u64, before: Vec<u8>, used: Use<'a>, canary: u8, each: Before) -> Image<'a> {
    let mut whole = vec![canary; 2 * GUARD + before.len().next_multiple_of(UNIT)];
    whole[GUARD..GUARD + before.len()].copy_from_slice(&before);
    Image { laid: Laid { name, element, offset: GUARD, before, used, canary }, whole, before: each }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::{DType, Init, Reference};
    use crate::record::FindingKind;

    #[test]
    fn canaries_lie_hard_against_the_kernels_part_on_both_sides() {
        let tensor = Tensor {
            name: "y".into(),
            role: Role::Output,
            dtype: DType::F32,
            shape: vec![3],
            strides: vec![1],
            align: 256,
            init: Init::Auto,
        };
        let problem = Problem {
            dims: BTreeMap::new(),
            tensors: vec![tensor],
            params: vec![],
            reference: Reference::Cpp { file: String::new(), function: String::new() },
            generate_inputs: None,
        };
        let images = images(&problem, &[], &BTreeMap::new(), 0xff, canary(1, 0));
        let image = &images[0];
        assert_eq!((image.own(), image.before), (12, Before::Set { byte: 0xff, count: 12 }));
        assert!(image.laid.after(&image.whole).findings.is_empty());
        for (at, index) in [(GUARD - 1, -1), (GUARD + 12, 3)] {
            let mut whole = image.whole.clone();
            whole[at] ^= 1;
            let found = image.laid.after(&whole).findings;
            assert_eq!((found[0].kind, found[0].index), (FindingKind::Canary, Some(index)));
        }
        assert_eq!(bytes(&problem, &[]), image.whole.len() as u64);
    }

    #[test]
    fn canaries_are_neither_poison_nor_zero_and_hang_on_the_seed() {
        let bytes: Vec<u8> = (0..64).map(|seed| canary(seed, 0)).collect();
        assert!(bytes.iter().all(|b| ![0, 0xff, 0x7b].contains(b)));
        assert!(bytes.iter().any(|b| *b != bytes[0]));
    }
}
