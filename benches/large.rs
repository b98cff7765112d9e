//! The cost of checking a large shape on the host: each stage of a verification, a timing or an oracle, in nanoseconds of wall-clock time per element, the best
//! of three; and for 8192 x 8192 elements of f32 in bytes per second, beside plain copies of the same bytes. The argument is the number of elements: `cargo
//! bench --bench large -- 16777216`. The products of an oracle are reported in multiply-adds.
#![expect(clippy::print_stdout, reason = "a bench's result is what it prints")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use rayon::prelude::*;

use kforge::base::Digest;
use kforge::cuda::device::checksum;
use kforge::harness::compare::{Compared, Leniency, observe, spread};
use kforge::model::{DType, Init, Problem, Reference, Role, Tensor};
use kforge::record::params::Trial;
use kforge::reference::float::{encode_strided, gather_strided, round_values};
use kforge::reference::{Values, generate, oracle};

fn tensor(name: &str, role: Role, dtype: DType, shape: &[u64]) -> Tensor {
    let strides = kforge::model::bound::contiguous(shape);
    Tensor { name: name.into(), role, dtype, shape: shape.to_vec(), strides, align: 256, init: Init::Auto }
}

/// The best of three, in seconds.
fn best<T>(mut of: impl FnMut() -> T) -> f64 {
    let once = |_| {
        let began = Instant::now();
        black_box(of());
        began.elapsed().as_secs_f64()
    };
    (0..3).map(once).fold(f64::INFINITY, f64::min)
}

fn stages(dtype: DType, elements: u64) {
    let tensor = tensor("x", Role::Input, dtype, &[elements]);
    let say = |stage: &str, seconds: f64| {
        println!("{dtype:>6}  {stage:<34} {:8.2} ns an element", seconds * 1e9 / elements as f64);
    };
    for distribution in ["normal", "wide"] {
        let trial = Trial { trial: 0, seed: 7, distribution: distribution.into() };
        say(&format!("made, {distribution}"), best(|| generate::tensor_values(&tensor, 0, None, &trial)));
    }
    let trial = Trial { trial: 0, seed: 7, distribution: "normal".into() };
    let Ok(want) = generate::tensor_values(&tensor, 0, None, &trial) else { return };
    let bytes = encode_strided(&tensor, &want);
    say("encoded", best(|| encode_strided(&tensor, &want)));
    say("decoded", best(|| gather_strided(&tensor, &bytes)));
    say("digested", best(|| Digest::of(&bytes)));
    say("summed", best(|| checksum(&bytes, 7)));
    say("as expected values in bytes", best(|| want.to_le_bytes()));
    let kept = want.to_le_bytes();
    say("from expected values in bytes", best(|| Values::from_le_bytes(dtype, &kept)));
    say("expected values digested", best(|| Digest::of(&kept)));
    say("rounded", best(|| round_values(dtype, &want)));
    let got = match round_values(dtype, &want) {
        Values::Float(values) => {
            let nudged = values.iter().enumerate().map(|(i, x)| if i % 3 == 0 { *x } else { x * (1.0 + 1e-3) });
            Values::Float(nudged.collect())
        }
        ints => ints,
    };
    let got = round_values(dtype, &got);
    let compared = |got| Compared { tensor: &tensor, got, want: &want, scale: None, beyond: None };
    say("compared, all equal", best(|| observe(&compared(&want), &Leniency::Elements)));
    say("compared, two in three differ", best(|| observe(&compared(&got), &Leniency::Elements)));
    say("spread", best(|| spread(dtype, &want, &got)));
}

/// The rates of the host's work on the inputs and outputs of a trial, beside copies of as many bytes, in bytes of the tensor per second. A device is useful
/// only if it is faster.
fn beside_copies(elements: u64) {
    let tensor = tensor("x", Role::Input, DType::F32, &[elements]);
    let trial = Trial { trial: 0, seed: 7, distribution: "normal".into() };
    let Ok(want) = generate::tensor_values(&tensor, 0, None, &trial) else { return };
    let bytes = encode_strided(&tensor, &want);
    let say = |stage: &str, seconds: f64| {
        println!(
            "   f32  {stage:<34} {:8.2} GB/s of {} MB",
            bytes.len() as f64 * 1e-9 / seconds,
            bytes.len() / 1_000_000
        );
    };
    let mut copy = vec![0u8; bytes.len()];
    say("copied by one processor", best(|| copy.copy_from_slice(&bytes)));
    const PIECE: usize = 1 << 20;
    let all = |copy: &mut [u8]| {
        copy.par_chunks_mut(PIECE).zip(bytes.par_chunks(PIECE)).for_each(|(to, from)| to.copy_from_slice(from));
    };
    say("copied by all", best(|| all(&mut copy)));
    say("made, normal", best(|| generate::tensor_values(&tensor, 0, None, &trial)));
    say("encoded", best(|| encode_strided(&tensor, &want)));
    let made = || generate::tensor_values(&tensor, 0, None, &trial).map(|values| encode_strided(&tensor, &values));
    say("made and encoded", best(made));
    say("decoded", best(|| gather_strided(&tensor, &bytes)));
    let scales = match &want {
        Values::Float(values) => values.iter().map(|x| x.abs() + 1.0).collect::<Vec<f64>>(),
        Values::Int(_) => return,
    };
    for (what, scale) in [("compared", None), ("compared with scales", Some(&scales[..]))] {
        let compared = Compared { tensor: &tensor, got: &want, want: &want, scale, beyond: None };
        say(what, best(|| observe(&compared, &Leniency::Elements)));
    }
}

fn product(extent: u64) {
    let problem = Problem {
        dims: BTreeMap::new(),
        tensors: vec![
            tensor("a", Role::Input, DType::F32, &[extent, extent]),
            tensor("b", Role::Input, DType::F32, &[extent, extent]),
            tensor("c", Role::Output, DType::F32, &[extent, extent]),
        ],
        params: vec![],
        reference: Reference::Builtin { name: "matmul".into(), attributes: BTreeMap::new(), names: BTreeMap::new() },
        generate_inputs: None,
    };
    let trial = Trial { trial: 0, seed: 7, distribution: "normal".into() };
    let Ok(inputs) = generate::inputs(&problem, &trial) else { return };
    let seconds = best(|| oracle::expected(&problem, &inputs, false));
    let rate = (extent as f64).powi(3) / seconds * 1e-9;
    println!("   f64  a product of {extent}^3 {seconds:8.2} s, {rate:.1} G multiply-adds a second");
}

fn main() {
    let sizes: Vec<u64> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let elements = sizes.first().copied().unwrap_or(1 << 24);
    println!("{} processors", std::thread::available_parallelism().map_or(1, |n| n.get()));
    for dtype in [DType::F16, DType::F32, DType::F8e4m3, DType::I32] {
        stages(dtype, elements);
    }
    beside_copies(sizes.first().copied().unwrap_or(8192 * 8192));
    product(1024);
}
