//! What a binary made by Triton asks of its launches: threads, shared memory, clusters, and parameters that no source declares. Knows the contract of each
//! release; a release that it does not know is refused where it compiles. Pure.
//!
//! | the binary states | the launch has |
//! |---|---|
//! | `num_warps` | a block of 32 threads for each, also those that the compiler added |
//! | `shared` | that much dynamic shared memory |
//! | `num_ctas` above 1 | clusters of that many blocks along x, and as many times the blocks |
//! | `global_scratch_size` | a buffer of that size for each block, as the last parameter but one; without it a null pointer |
//! | `tensordesc_meta`, from sm_90 on | for each tensor descriptor a tensor map with the box and the swizzle that it states, then the extents as 32 and the strides as 64 bits |
//! | no `tensordesc_meta` | for each the address, extents and strides as 64 bits, how it pads, from 3.7 on whether it rounds, then extents as 32 and strides as 64 bits |
//! | `profile_scratch_size` | refused: only instrumented code has it; the last parameter is a null pointer |
//!
//! The buffer is a workspace like any other: poisoned, and between canaries. Launches in sequence share it; if any of them may begin before the preceding one
//! has ended, each has its own.

use serde::{Deserialize, Serialize};

use super::params::CompileFacts;
use crate::model::bound::{Arg, Buffer, Fill, KernelLaunch, Launch, Scalar};
use crate::model::dtype::DType;
use crate::model::tensor_map::TensorMap;

/// Threads of a warp.
const WARP: u32 = 32;
/// Most threads of a block.
const MOST_THREADS: u32 = 1024;
/// The alignment of workspaces in bytes.
const WORKSPACE_ALIGN: u64 = 256;
/// The most bytes of scratch of a launch.
const MOST_SCRATCH: u64 = 1 << 40;

/// What the compiler says about a binary that it made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TritonFacts {
    /// The release, as `[3, 9]`.
    pub version: [u32; 2],
    /// The symbol of the kernel.
    pub name: String,
    /// Warps of a block.
    pub num_warps: u32,
    /// Blocks of a cluster.
    pub num_ctas: u32,
    /// Bytes of dynamic shared memory.
    pub shared: u64,
    /// Bytes of scratch for each block.
    pub global_scratch_size: u64,
    /// Their alignment.
    pub global_scratch_align: u64,
    /// Bytes of scratch of instrumented code for each block.
    pub profile_scratch_size: u64,
    /// Their alignment.
    pub profile_scratch_align: u64,
    /// Whether all blocks must be resident.
    pub cooperative: bool,
    /// Whether it may begin before the preceding kernel has ended.
    pub pdl: bool,
    /// The number of tensor descriptors among its parameters that it takes as tensor maps.
    pub descriptors: u32,
    /// How it takes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<MapFacts>,
}

/// How a binary takes a tensor descriptor that it takes as a tensor map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapFacts {
    /// Elements that one copy moves along each axis, the outermost first. The block of the descriptor may be larger.
    #[serde(rename = "box")]
    pub tile: Vec<u32>,
    /// Bytes over which rows are swizzled in shared memory; 0 for no swizzle.
    pub swizzle: u32,
}

/// Bytes to which Triton widens fetches of tensor maps.
pub(super) const PROMOTION: u32 = 128;

impl TritonFacts {
    /// How the binary takes its tensor descriptors, of which a launch has `passed`; none if it takes their parts.
    ///
    /// # Errors
    /// It takes another number of them.
    pub(super) fn maps_of(&self, passed: usize) -> Result<Option<&[MapFacts]>, ContractError> {
        let known = self.maps.len();
        if u32::try_from(known) != Ok(self.descriptors) || (known > 0 && known != passed) {
            return Err(ContractError::Descriptors { takes: self.descriptors, passed });
        }
        Ok((known > 0).then_some(&self.maps))
    }

    /// Whether a descriptor that is passed in parts says whether it rounds to TF32.
    pub fn passes_rounding(&self) -> bool {
        self.version >= [3, 7]
    }
}

/// Why a binary cannot be launched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContractError {
    /// It has more threads than a block can have.
    #[error("its blocks have {0} threads, and a block has at most {MOST_THREADS}")]
    Threads(u64),
    /// It is instrumented.
    #[error("it writes {0} bytes of profile scratch for each block, which kforge does not read")]
    Profile(u64),
    /// It takes other descriptors than the launch passes.
    #[error("it takes {takes} tensor descriptors as tensor maps, and the launch passes {passed} descriptors")]
    Descriptors {
        /// How many it takes.
        takes: u32,
        /// How many the launch has.
        passed: usize,
    },
    /// The box of a descriptor has other axes than its tensor.
    #[error("the box of a descriptor of `{0}` has other axes than the tensor")]
    Axes(String),
    /// Its scratch needs an alignment that buffers do not have.
    #[error("its global scratch is aligned to {0} bytes, and buffers are aligned to {WORKSPACE_ALIGN}")]
    Alignment(u64),
    /// Its scratch is too large.
    #[error("its global scratch has {0} bytes, and at most {MOST_SCRATCH} are possible")]
    Scratch(u64),
    /// The number of its blocks is known only on the device.
    #[error("it needs global scratch, and its grid depends on the device")]
    OpenGrid,
    /// A launch names a function that the binary does not have.
    #[error("the compiler says nothing about `{0}`")]
    NoFunction(String),
    /// Its grid has too many blocks.
    #[error("{0} blocks along x, in clusters of {1}, exceed the limit of a grid")]
    Grid(u32, u32),
}

/// What the compiler says about the function that a launch names. `entries` are the names of the functions, in order.
///
/// # Errors
/// It says nothing.
pub fn facts_of<'a>(
    entry: &str,
    entries: &[String],
    facts: &'a [TritonFacts],
) -> Result<&'a TritonFacts, ContractError> {
    let at = entries.iter().position(|name| name == entry);
    at.and_then(|at| facts.get(at)).ok_or_else(|| ContractError::NoFunction(entry.into()))
}

/// Completes launches and workspaces as the binary with these entries asks. Launches of a binary that another compiler made stay as they are.
///
/// # Errors
/// The binary asks for something that kforge does not give.
pub fn complete(
    launches: &mut [Launch],
    workspaces: &mut Vec<Buffer>,
    entries: &[String],
    facts: &CompileFacts,
) -> Result<(), ContractError> {
    if facts.triton.is_empty() {
        return Ok(());
    }
    let apart = launches.iter().any(|launch| matches!(launch, Launch::Kernel(kernel) if kernel.pdl));
    for (at, launch) in launches.iter_mut().enumerate() {
        let Launch::Kernel(kernel) = launch else { continue };
        let facts = facts_of(&kernel.entry, entries, &facts.triton)?;
        kernel.block = [threads(facts)?, 1, 1];
        kernel.shared = facts.shared;
        kernel.cooperative |= facts.cooperative;
        clusters(kernel, facts.num_ctas)?;
        descriptors(kernel, facts)?;
        let scratch = scratch(kernel, facts, if apart { at } else { 0 })?;
        kernel.args.push(match &scratch {
            Some(buffer) => Arg::Pointer { buffer: buffer.name.clone(), offset: 0 },
            None => Arg::Null,
        });
        // The profile scratch.
        kernel.args.push(Arg::Null);
        let Some(buffer) = scratch else { continue };
        match workspaces.iter_mut().find(|known| known.name == buffer.name) {
            Some(known) => known.elements = known.elements.max(buffer.elements),
            None => workspaces.push(buffer),
        }
    }
    Ok(())
}

/// The threads of a block, if the binary can be launched.
fn threads(facts: &TritonFacts) -> Result<u32, ContractError> {
    if facts.profile_scratch_size > 0 {
        return Err(ContractError::Profile(facts.profile_scratch_size));
    }
    let threads = u64::from(facts.num_warps) * u64::from(WARP);
    u32::try_from(threads).ok().filter(|n| (1..=MOST_THREADS).contains(n)).ok_or(ContractError::Threads(threads))
}

/// Puts what the binary takes in the place of each tensor descriptor.
fn descriptors(kernel: &mut KernelLaunch, facts: &TritonFacts) -> Result<(), ContractError> {
    let is_descriptor = |arg: &&Arg| matches!(arg, Arg::TensorMap(map) if map.descriptor);
    let passed = kernel.args.iter().filter(is_descriptor).count();
    let mut maps = facts.maps_of(passed)?.map(<[MapFacts]>::iter);
    let mut args = vec![];
    for arg in std::mem::take(&mut kernel.args) {
        match arg {
            Arg::TensorMap(map) if map.descriptor => {
                let axes: Vec<(i64, i64)> =
                    map.shape().zip(map.element_strides()).map(|(n, by)| (n as i64, by as i64)).collect();
                match &mut maps {
                    Some(maps) => args.push(Arg::TensorMap(encoded(map, maps.next())?)),
                    None => {
                        args.push(Arg::Pointer { buffer: map.buffer.clone(), offset: 0 });
                        let (extents, strides) = (axes.iter().map(|axis| axis.0), axes.iter().map(|axis| axis.1));
                        args.extend(extents.chain(strides).map(|value| int(DType::I64, value)));
                        args.push(truth(map.nan));
                        args.extend(facts.passes_rounding().then(|| truth(false)));
                    }
                }
                args.extend(axes.iter().map(|axis| int(DType::I32, axis.0)));
                args.extend(axes.iter().map(|axis| int(DType::I64, axis.1)));
            }
            other => args.push(other),
        }
    }
    kernel.args = args;
    Ok(())
}

/// The map of a descriptor with the box of the binary.
fn encoded(map: TensorMap, facts: Option<&MapFacts>) -> Result<TensorMap, ContractError> {
    let facts = facts.filter(|facts| facts.tile.len() == map.extents.len());
    let facts = facts.ok_or_else(|| ContractError::Axes(map.buffer.clone()))?;
    let tile = facts.tile.iter().rev().copied().collect();
    Ok(TensorMap { tile, swizzle: facts.swizzle, l2_promotion: PROMOTION, descriptor: false, ..map })
}

fn int(dtype: DType, value: i64) -> Arg {
    Arg::Scalar { dtype, value: Scalar::Int(value) }
}

fn truth(value: bool) -> Arg {
    Arg::Scalar { dtype: DType::Bool, value: Scalar::Bool(value) }
}

fn clusters(kernel: &mut KernelLaunch, ctas: u32) -> Result<(), ContractError> {
    if ctas <= 1 {
        return Ok(());
    }
    kernel.cluster = Some([ctas, 1, 1]);
    match &mut kernel.open_grid {
        Some(open) => {
            if let Some(first) = open.extents.first_mut() {
                *first = format!("({first}) * {ctas}");
            }
        }
        None => {
            let blocks = kernel.grid[0].checked_mul(ctas).filter(|n| *n <= i32::MAX.cast_unsigned());
            kernel.grid[0] = blocks.ok_or(ContractError::Grid(kernel.grid[0], ctas))?;
        }
    }
    Ok(())
}

fn scratch(kernel: &KernelLaunch, facts: &TritonFacts, at: usize) -> Result<Option<Buffer>, ContractError> {
    if facts.global_scratch_size == 0 {
        return Ok(None);
    }
    if facts.global_scratch_align == 0 || !WORKSPACE_ALIGN.is_multiple_of(facts.global_scratch_align) {
        return Err(ContractError::Alignment(facts.global_scratch_align));
    }
    if kernel.open_grid.is_some() {
        return Err(ContractError::OpenGrid);
    }
    // The blocks of clusters are in the grid already.
    let blocks: u128 = kernel.grid.iter().map(|n| u128::from(*n)).product();
    let bytes = blocks.saturating_mul(u128::from(facts.global_scratch_size));
    let elements = u64::try_from(bytes).unwrap_or(u64::MAX);
    if elements > MOST_SCRATCH {
        return Err(ContractError::Scratch(elements));
    }
    // No workspace of a manifest can have this name.
    let name = format!("global scratch {at}");
    Ok(Some(Buffer { name, dtype: DType::U8, elements, fill: Fill::Poison }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> TritonFacts {
        TritonFacts {
            version: [3, 9],
            name: "k".into(),
            num_warps: 4,
            num_ctas: 1,
            shared: 1024,
            global_scratch_size: 0,
            global_scratch_align: 1,
            profile_scratch_size: 0,
            profile_scratch_align: 1,
            cooperative: false,
            pdl: false,
            descriptors: 0,
            maps: vec![],
        }
    }

    fn launch() -> Launch {
        Launch::Kernel(KernelLaunch { entry: "k".into(), grid: [5, 3, 1], ..KernelLaunch::default() })
    }

    fn completed(facts: TritonFacts) -> Result<(KernelLaunch, Vec<Buffer>), ContractError> {
        let (mut launches, mut workspaces) = (vec![launch(), launch()], vec![]);
        let facts = CompileFacts { triton: vec![facts], ..CompileFacts::default() };
        complete(&mut launches, &mut workspaces, &["k".to_string()], &facts)?;
        assert_eq!(launches[0], launches[1]);
        let Launch::Kernel(kernel) = launches.remove(0) else { unreachable!() };
        Ok((kernel, workspaces))
    }

    #[test]
    fn a_launch_gets_threads_shared_memory_and_two_hidden_pointers() {
        let (kernel, workspaces) = completed(facts()).unwrap();
        assert_eq!((kernel.block, kernel.shared, kernel.grid), ([128, 1, 1], 1024, [5, 3, 1]));
        assert_eq!((kernel.args, workspaces), (vec![Arg::Null, Arg::Null], vec![]));
    }

    #[test]
    fn scratch_is_a_buffer_for_all_blocks() {
        let with = TritonFacts { global_scratch_size: 384, global_scratch_align: 128, ..facts() };
        let (kernel, workspaces) = completed(with.clone()).unwrap();
        assert_eq!(workspaces.len(), 1);
        assert_eq!((workspaces[0].elements, workspaces[0].fill), (15 * 384, Fill::Poison));
        assert_eq!(kernel.args, [Arg::Pointer { buffer: workspaces[0].name.clone(), offset: 0 }, Arg::Null]);
        let (kernel, workspaces) = completed(TritonFacts { num_ctas: 2, ..with }).unwrap();
        assert_eq!((kernel.grid, kernel.cluster, workspaces[0].elements), ([10, 3, 1], Some([2, 1, 1]), 30 * 384));
    }

    #[test]
    fn what_is_not_given_is_refused() {
        let refused = |facts| completed(facts).unwrap_err();
        assert_eq!(refused(TritonFacts { profile_scratch_size: 8, ..facts() }), ContractError::Profile(8));
        let maps = vec![MapFacts { tile: vec![8], swizzle: 0 }];
        let takes = |passed| ContractError::Descriptors { takes: 1, passed };
        assert_eq!(refused(TritonFacts { descriptors: 1, ..facts() }), takes(0));
        assert_eq!(refused(TritonFacts { descriptors: 1, maps, ..facts() }), takes(0));
        assert_eq!(refused(TritonFacts { num_warps: 64, ..facts() }), ContractError::Threads(2048));
        let scratch = |align| TritonFacts { global_scratch_size: 1, global_scratch_align: align, ..facts() };
        assert_eq!(refused(scratch(512)), ContractError::Alignment(512));
        assert_eq!(refused(TritonFacts { num_ctas: 1 << 30, ..facts() }), ContractError::Grid(5, 1 << 30));
    }

    #[test]
    fn each_launch_has_what_its_function_asks_and_scratch_is_as_large_as_the_largest() {
        let Launch::Kernel(kernel) = launch() else { unreachable!() };
        let of = |entry: &str| Launch::Kernel(KernelLaunch { entry: entry.into(), ..kernel.clone() });
        let mut launches = vec![of("k"), of("k#2"), of("g")];
        let scratch = |size| TritonFacts { global_scratch_size: size, global_scratch_align: 128, ..facts() };
        let triton = vec![scratch(128), TritonFacts { num_warps: 8, shared: 64, ..scratch(0) }, scratch(256)];
        let facts = CompileFacts { triton, ..CompileFacts::default() };
        let entries = ["k", "k#2", "g"].map(String::from);
        let mut workspaces = vec![];
        complete(&mut launches, &mut workspaces, &entries, &facts).unwrap();
        let asked = launches.iter().map(|launch| match launch {
            Launch::Kernel(kernel) => (kernel.block[0], kernel.shared, kernel.args[0] == Arg::Null),
            Launch::Memset { .. } => unreachable!(),
        });
        assert_eq!(asked.collect::<Vec<_>>(), [(128, 1024, false), (256, 64, true), (128, 1024, false)]);
        assert_eq!(workspaces.iter().map(|w| w.elements).collect::<Vec<_>>(), [15 * 256]);
        let refused = complete(&mut [of("h")], &mut vec![], &entries, &facts).unwrap_err();
        assert_eq!(refused, ContractError::NoFunction("h".into()));
    }

    /// A descriptor of a matrix of f16 with 30 rows of 24 elements, which lie 32 elements apart.
    fn descriptor() -> Arg {
        Arg::TensorMap(TensorMap {
            buffer: "x".into(),
            dtype: DType::F16,
            extents: vec![24, 30],
            strides: vec![64],
            tile: vec![128, 64],
            swizzle: 0,
            nan: true,
            l2_promotion: 0,
            descriptor: true,
        })
    }

    fn args_of(facts: TritonFacts) -> Result<Vec<Arg>, ContractError> {
        let Launch::Kernel(mut kernel) = launch() else { unreachable!() };
        kernel.args = vec![int(DType::I32, 7), descriptor(), Arg::Pointer { buffer: "y".into(), offset: 0 }];
        let facts = CompileFacts { triton: vec![facts], ..CompileFacts::default() };
        let mut launches = vec![Launch::Kernel(kernel)];
        complete(&mut launches, &mut vec![], &["k".to_string()], &facts)?;
        let Launch::Kernel(kernel) = launches.remove(0) else { unreachable!() };
        Ok(kernel.args)
    }

    #[test]
    fn a_descriptor_becomes_the_map_of_the_binary_or_its_parts() {
        let y = || Arg::Pointer { buffer: "y".into(), offset: 0 };
        let last = [int(DType::I32, 30), int(DType::I32, 24), int(DType::I64, 32), int(DType::I64, 1)];
        let whole = |parts: Vec<Arg>| {
            let behind = [y(), Arg::Null, Arg::Null];
            [vec![int(DType::I32, 7)], parts, last.to_vec(), behind.to_vec()].concat()
        };
        // The box is that of the binary, not the block.
        let maps = vec![MapFacts { tile: vec![64, 32], swizzle: 64 }];
        let Arg::TensorMap(map) = descriptor() else { unreachable!() };
        let map = TensorMap { tile: vec![32, 64], swizzle: 64, l2_promotion: 128, descriptor: false, ..map };
        let with = TritonFacts { descriptors: 1, maps, ..facts() };
        assert_eq!(args_of(with.clone()).unwrap(), whole(vec![Arg::TensorMap(map)]));
        let other = TritonFacts { maps: vec![MapFacts { tile: vec![64], swizzle: 0 }], ..with.clone() };
        assert_eq!(args_of(other).unwrap_err(), ContractError::Axes("x".into()));
        let two = TritonFacts { descriptors: 2, maps: [with.maps.clone(), with.maps].concat(), ..facts() };
        assert_eq!(args_of(two).unwrap_err(), ContractError::Descriptors { takes: 2, passed: 1 });
        // An older architecture has no tensor maps.
        let wide = [30, 24, 32, 1].map(|value| int(DType::I64, value)).to_vec();
        let parts = |rest: &[Arg]| {
            [vec![Arg::Pointer { buffer: "x".into(), offset: 0 }], wide.clone(), vec![truth(true)], rest.to_vec()]
                .concat()
        };
        for (version, rest) in
            [([3, 5], vec![]), ([3, 6], vec![]), ([3, 7], vec![truth(false)]), ([3, 9], vec![truth(false)])]
        {
            assert_eq!(args_of(TritonFacts { version, ..facts() }).unwrap(), whole(parts(&rest)), "{version:?}");
        }
    }

    #[test]
    fn launches_of_other_compilers_stay() {
        let mut launches = vec![launch()];
        complete(&mut launches, &mut vec![], &[], &CompileFacts::default()).unwrap();
        assert_eq!(launches, [launch()]);
    }

    #[test]
    fn launches_that_may_overlap_have_scratch_of_their_own() {
        let of = |pdl| {
            let Launch::Kernel(kernel) = launch() else { unreachable!() };
            let (mut launches, mut workspaces) =
                (vec![launch(), Launch::Kernel(KernelLaunch { pdl, ..kernel })], vec![]);
            let facts = TritonFacts { global_scratch_size: 128, global_scratch_align: 128, ..facts() };
            let facts = CompileFacts { triton: vec![facts], ..CompileFacts::default() };
            complete(&mut launches, &mut workspaces, &["k".to_string()], &facts).unwrap();
            workspaces.len()
        };
        assert_eq!((of(false), of(true)), (1, 2));
    }
}
