//! The outputs of launches: by sums, and by bytes if sums are not sufficient. After bytes were read back, their sum identifies them, because variants of a
//! kernel often leave the same bytes. Knows buffers of written tensors, but not what launched them or which values are correct.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::buffers::Image;
use super::wire::BufferSum;
use kforge_foundation::base::Digest;
use kforge_harness::compare::spread;
use kforge_numerics::reference::float::gather_strided;
use kforge_types::model::Tensor;
use kforge_types::record::FindingKind;

/// Each written tensor and its bytes.
pub(super) type Outputs<'a> = Vec<(&'a Tensor, Vec<u8>)>;

/// The most bytes of outputs that a process keeps.
const KEPT: usize = 512 << 20;

/// The bytes of an output that was read back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadBack {
    /// The bytes.
    pub(super) bytes: Vec<u8>,
    /// The digest of the bytes.
    pub(super) digest: Digest,
}

impl ReadBack {
    /// Creates it from bytes.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        ReadBack { digest: Digest::of_long(&bytes), bytes }
    }
}

/// Outputs that were read back, by their sums, least recently used first.
static KNOWN: Mutex<Vec<(u64, Arc<ReadBack>)>> = Mutex::new(vec![]);

fn lock() -> MutexGuard<'static, Vec<(u64, Arc<ReadBack>)>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The bytes with that length and sum, salted with [`super::inputs::salt`], if this process has read them back.
pub(super) fn known(sum: u64, bytes: u64) -> Option<Arc<ReadBack>> {
    let mut all = lock();
    let at = all.iter().position(|(of, known)| *of == sum && known.bytes.len() as u64 == bytes)?;
    let found = all.remove(at);
    let bytes = Arc::clone(&found.1);
    all.push(found);
    Some(bytes)
}

/// Whether this process has read back, in a verification, bytes with the sums of all written tensors.
pub(super) fn all_known(images: &[Image<'_>], shown: &[BufferSum]) -> bool {
    let mut written = images.iter().zip(shown).filter(|(image, _)| image.written().is_some());
    written.all(|(image, shown)| known(shown.sum, image.own).is_some())
}

/// Keeps bytes by their sum.
pub(super) fn know(sum: u64, known: &Arc<ReadBack>) {
    let mut all = lock();
    all.retain(|(of, other)| *of != sum || other.bytes.len() != known.bytes.len());
    all.push((sum, Arc::clone(known)));
    while all.iter().map(|(_, known)| known.bytes.len()).sum::<usize>() > KEPT {
        all.remove(0);
    }
}

/// The sums of written tensors, in the order of the buffers.
pub(super) fn sums(images: &[Image<'_>], shown: &[BufferSum]) -> Vec<u64> {
    images.iter().zip(shown).filter(|(image, _)| image.written().is_some()).map(|(_, shown)| shown.sum).collect()
}

/// Damage that no launch may do, whatever it computes: a changed input, or bytes written around a buffer.
pub(super) fn damage(images: &[Image<'_>], shown: &[BufferSum]) -> Option<String> {
    damaged(images, shown).map(|(_, what)| what)
}

/// The same, with the kind of finding that it is.
pub(super) fn damaged(images: &[Image<'_>], shown: &[BufferSum]) -> Option<(FindingKind, String)> {
    images.iter().zip(shown).find_map(|(image, shown)| {
        let name = image.name;
        if image.kept_sum().is_some_and(|sum| sum != shown.sum) {
            return Some((FindingKind::InputModified, format!("timed launches changed the input `{name}`")));
        }
        let spoilt = shown.spoilt;
        (spoilt > 0).then(|| (FindingKind::Canary, format!("timed launches wrote {spoilt} bytes around `{name}`")))
    })
}

/// The outputs of untimed launches on the same inputs.
pub(super) struct UntimedOutputs<'a> {
    /// The outputs of the first launch.
    outputs: Outputs<'a>,
    /// The largest difference of the other launches from the first, by output; none if all left the same bytes.
    apart: Option<Vec<f64>>,
}

/// The factor by which a timed launch may differ more than repeated launches do, because their largest difference is itself random.
const WOBBLE: f64 = 8.0;

impl<'a> UntimedOutputs<'a> {
    /// Creates it from the outputs of several launches, at least one.
    pub(super) fn new(mut all: Vec<Outputs<'a>>) -> Option<Self> {
        let rest = all.split_off(1.min(all.len()));
        let outputs = all.pop()?;
        let same = rest.iter().all(|other| other.iter().zip(&outputs).all(|((_, a), (_, b))| a == b));
        let most = |at: usize| {
            let (tensor, first) = &outputs[at];
            rest.iter().map(|other| distance(tensor, &other[at].1, first).0).fold(0.0, f64::max)
        };
        let apart = (!same).then(|| (0..outputs.len()).map(most).collect());
        Some(UntimedOutputs { outputs, apart })
    }

    /// The first output of a launch that differs from these: in any bit if untimed launches always leave the same bytes, otherwise by more than they differ
    /// among themselves. Integers that differ among untimed launches may have any value.
    pub(super) fn differing(&self, now: &Outputs<'_>) -> Option<String> {
        self.differing_in(now, &|_| true)
    }

    /// The same for the outputs that `judged` takes.
    pub(super) fn differing_in(&self, now: &Outputs<'_>, judged: &dyn Fn(&Tensor) -> bool) -> Option<String> {
        let wrong = now.iter().enumerate().filter(|(_, (tensor, _))| judged(tensor)).find(|(at, (tensor, now))| {
            let then = &self.outputs[*at].1;
            match &self.apart {
                _ if now == then => false,
                None => true,
                Some(_) if !tensor.dtype.is_float() => false,
                Some(apart) => {
                    let (most, gross) = distance(tensor, now, then);
                    gross || most > WOBBLE * apart[*at]
                }
            }
        });
        wrong.map(|(_, (tensor, _))| tensor.name.clone())
    }
}

/// The largest difference, and whether it is larger than another order of the same additions explains.
fn distance(tensor: &Tensor, a: &[u8], b: &[u8]) -> (f64, bool) {
    match (gather_strided(tensor, a), gather_strided(tensor, b)) {
        (Ok(a), Ok(b)) => spread(tensor.dtype, &a, &b),
        _ => (f64::INFINITY, true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::model::{DType, Role};

    fn tensor(dtype: DType, role: Role) -> Tensor {
        Tensor::dense("y", role, dtype, &[2])
    }

    fn floats(values: [f32; 2]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn what_was_read_back_is_known_by_its_sum_and_size() {
        let few = Arc::new(ReadBack::new(vec![1, 2, 3, 4]));
        know(4711, &few);
        assert_eq!(known(4711, 4), Some(few));
        assert_eq!((known(4711, 8), known(4712, 4)), (None, None));
        let large = Arc::new(ReadBack { bytes: vec![0; KEPT], digest: Digest::of(&[]) });
        know(4713, &large);
        assert_eq!((known(4711, 4), known(4713, KEPT as u64)), (None, Some(large)));
    }

    #[test]
    fn who_always_leaves_the_same_may_not_leave_one_bit_otherwise() {
        let y = tensor(DType::F32, Role::Output);
        let of = |values| vec![(&y, floats(values))];
        let usual = UntimedOutputs::new(vec![of([1.0, 2.0]), of([1.0, 2.0])]).unwrap();
        assert_eq!(usual.differing(&of([1.0, 2.0])), None);
        assert_eq!(usual.differing(&of([1.0, 2.000_000_2])), Some("y".into()));
    }

    #[test]
    fn who_differs_by_an_order_of_additions_may_go_on_to_and_by_no_more() {
        let y = tensor(DType::F32, Role::Output);
        let of = |values| vec![(&y, floats(values))];
        let usual = UntimedOutputs::new(vec![of([1.0, 2.0]), of([1.0, 2.000_001])]).unwrap();
        assert_eq!(usual.differing(&of([1.000_001, 2.0])), None);
        assert_eq!(usual.differing(&of([1.0, 2.001])), Some("y".into()));
        assert_eq!(usual.differing(&of([1.0, f32::NAN])), Some("y".into()));
        let i = tensor(DType::I32, Role::Output);
        let whole = |n: i32| vec![(&i, [n, 0].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())];
        assert_eq!(UntimedOutputs::new(vec![whole(1), whole(1)]).unwrap().differing(&whole(2)), Some("y".into()));
        assert_eq!(UntimedOutputs::new(vec![whole(1), whole(2)]).unwrap().differing(&whole(3)), None);
    }
}
