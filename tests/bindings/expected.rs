//! What a driver would be asked for if kforge itself launched a case: from the bound launches that verification and timing use, not from the description that
//! loaders are generated from.

use std::fmt::Write;

use crate::documents::{Case, symbol};
use kforge::harness::arguments;
use kforge::model::bound::{Arg, Fill, KernelLaunch, Launch, Tensor};
use kforge::model::grid::Room;
use kforge::model::tensor_map::TensorMap;
use kforge::model::{DType, Problem, Scalar};

/// The device of the tests.
pub(crate) const ROOM: Room = Room { processors: 132, occupancy: 2 };

/// Where the workspace lies.
pub(crate) const WORKSPACE: u64 = 0x7000_0000_0000;

/// The address of a tensor by its position.
pub(crate) fn address(at: usize) -> u64 {
    (at as u64 + 1) << 32
}

/// A case with all numbers.
pub(crate) struct Expected {
    pub(crate) problem: Problem,
    /// A line for each call.
    pub(crate) lines: Vec<String>,
    /// The sizes of parameters of each entry: `SYMBOL size size ...`.
    pub(crate) sizes: Vec<String>,
    /// Bytes of the workspace.
    pub(crate) workspace: u64,
}

/// What is expected of a case.
pub(crate) fn expected(case: &Case) -> Expected {
    let problem = case.operator.bind(&case.choice, &case.shape).unwrap();
    let mut buffers = case.kernel.workspaces(&case.variant, &case.choice, &problem).unwrap();
    let launches = match &case.specialised {
        Some(specialised) => specialised.launches(&mut buffers),
        None => case.kernel.launches(&case.variant, &case.choice, &problem).unwrap(),
    };
    // Name, address, bytes; workspaces lie one after another at multiples of 256, then the arrays of addresses.
    let mut places: Vec<(String, u64, u64)> =
        problem.tensors.iter().enumerate().map(|(at, t)| (t.name.clone(), address(at), Tensor::bytes(t))).collect();
    let mut end = 0;
    for buffer in &buffers {
        let bytes = buffer.elements * buffer.dtype.bytes();
        places.push((buffer.name.clone(), WORKSPACE + end, bytes));
        end += bytes.div_ceil(256) * 256;
    }
    let find = |name: &str| places.iter().find(|(own, ..)| own == name).map(|(_, at, bytes)| (*at, *bytes)).unwrap();
    let mut lines = vec![];
    for constant in case.kernel.constants() {
        let (at, bytes) = find(&constant.buffer);
        lines.push(format!("copy c0000000 {at:x} {bytes}"));
    }
    let set = |at: u64, byte: u8, bytes: u64| (bytes > 0).then(|| format!("set8 {at:x} {byte} {bytes}"));
    for buffer in buffers.iter().filter(|buffer| buffer.fill != Fill::Poison) {
        let (at, bytes) = find(&buffer.name);
        lines.extend(set(at, 0, bytes));
    }
    // Every declared argument that is an array of addresses has one place, whichever launches run.
    let mut arrays: Vec<(Vec<String>, u64)> = vec![];
    for decl in &case.kernel.launches {
        for names in pointers(decl) {
            for (index, name) in names.iter().enumerate() {
                let (at, to) = (WORKSPACE + end + index as u64 * 8, find(name).0);
                lines.push(format!("set32 {at:x} {:x} 1", to as u32));
                lines.push(format!("set32 {:x} {:x} 1", at + 4, to >> 32));
            }
            let bytes = names.len() as u64 * 8;
            arrays.push((names, WORKSPACE + end));
            end += bytes.div_ceil(256) * 256;
        }
    }
    let mut sizes = vec![];
    for launch in &launches {
        match launch {
            Launch::Memset { buffer, value } => {
                let (at, bytes) = find(buffer);
                lines.extend(set(at, *value, bytes));
            }
            Launch::Kernel(kernel) => {
                let args: Vec<Vec<u8>> = kernel
                    .args
                    .iter()
                    .map(|arg| match arg {
                        Arg::Pointer { buffer, offset } => (find(buffer).0 + offset).to_le_bytes().to_vec(),
                        Arg::Pointers(names) => {
                            arrays.iter().find(|(own, _)| own == names).unwrap().1.to_le_bytes().to_vec()
                        }
                        Arg::TensorMap(map) => encoded(map, find(&map.buffer).0),
                        by_value => arguments::bytes(by_value, &mut |_| Err("an address in a struct")).unwrap(),
                    })
                    .collect();
                let symbol = symbol(&case.kernel, &case.choice, &kernel.entry, case.specialised.as_ref());
                lines.push(line(&symbol, kernel, &args));
                let all: Vec<String> = args.iter().map(|arg| arg.len().to_string()).collect();
                sizes.push(format!("{symbol} {}", all.join(" ")));
            }
        }
    }
    Expected { problem, lines, sizes, workspace: end }
}

fn pointers(decl: &kforge::model::kernel::LaunchDecl) -> Vec<Vec<String>> {
    use kforge::model::kernel::{ArgDecl, LaunchAction};
    let LaunchAction::Kernel { args, .. } = &decl.action else { return vec![] };
    let of = |arg: &ArgDecl| match arg {
        ArgDecl::Pointers(names) => Some(names.iter().map(|name| name.value.clone()).collect()),
        _ => None,
    };
    args.iter().filter_map(of).collect()
}

fn line(symbol: &str, kernel: &KernelLaunch, args: &[Vec<u8>]) -> String {
    let three = |of: [u32; 3]| of.map(|n| n.to_string()).join(",");
    let mut text = format!(
        "launch {symbol} grid {} block {} shared {} cluster {} cooperative {} pdl {}",
        three(kernel.grid_in(ROOM).unwrap()),
        three(kernel.block),
        kernel.shared,
        three(kernel.cluster.unwrap_or([1; 3])),
        u8::from(kernel.cooperative),
        u8::from(kernel.pdl)
    );
    for arg in args {
        text.push(' ');
        arg.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
    }
    text
}

/// A tensor map as the driver of the tests encodes it.
fn encoded(map: &TensorMap, at: u64) -> Vec<u8> {
    let mut all = vec![];
    let kind = match map.dtype {
        DType::I16 | DType::U16 => 1u32,
        DType::U32 => 2,
        DType::I32 => 3,
        DType::U64 => 4,
        DType::I64 => 5,
        DType::F16 => 6,
        DType::F32 => 7,
        DType::F64 => 8,
        DType::Bf16 => 9,
        _ => 0,
    };
    all.extend(kind.to_le_bytes());
    all.extend((map.extents.len() as u32).to_le_bytes());
    all.extend(at.to_le_bytes());
    let longs = |of: &[u64], count: usize| {
        (0..count).flat_map(|i| of.get(i).copied().unwrap_or(0).to_le_bytes()).collect::<Vec<u8>>()
    };
    all.extend(longs(&map.extents, 5));
    all.extend(longs(&map.strides, 4));
    (0..5).for_each(|i| all.extend(map.tile.get(i).copied().unwrap_or(0).to_le_bytes()));
    let swizzle = [0, 32, 64, 128].iter().position(|bytes| *bytes == map.swizzle).unwrap() as u32;
    let promotion = [0, 64, 128, 256].iter().position(|bytes| *bytes == map.l2_promotion).unwrap() as u32;
    [swizzle, promotion, map.nan.into()].iter().for_each(|word: &u32| all.extend(word.to_le_bytes()));
    all.resize(128, 0);
    all
}

/// A param as a text of C or Rust, whose type is that of the loader's argument.
pub(crate) fn value(scalar: Scalar) -> String {
    match scalar {
        Scalar::Int(int) => int.to_string(),
        Scalar::Float(float) => format!("{float:?}"),
        Scalar::Bool(truth) => u8::from(truth).to_string(),
    }
}
