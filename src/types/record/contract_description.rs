//! [`super::contract`] for launches that are described without a shape: what a binary made by Triton asks of its launches, as texts that a loader evaluates.
//! Knows the contract and the description of launches. Pure.
//!
//! The scratch of launches in sequence is one part of the workspace, as large as the largest of them needs. If any of them may begin before the preceding one has
//! ended, each has a part of its own, and a repeated launch has one for each repetition.

use super::contract::{ContractError, MapFacts, PROMOTION, TritonFacts, facts_of};
use crate::model::bound::Fill;
use crate::model::description::{
    ActionDescription, ArgDescription, LaunchDescription, LaunchSequence, ScalarDescription, TensorDescription,
    WorkspaceDescription,
};
use crate::model::dtype::DType;
use crate::model::expr::parse;
use crate::model::grid::{OCCUPANCY, SM_COUNT};
use crate::model::kernel::ITERATION;

/// Threads of a warp.
const WARP: u32 = 32;
/// Most threads of a block.
const MOST_THREADS: u64 = 1024;
/// What the strides of the tensor of a descriptor are multiples of, in bytes.
const UNIT: u64 = 16;
/// The alignment of parts of the workspace in bytes.
const WORKSPACE_ALIGN: u64 = 256;

/// Why launches of a binary cannot be described.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// It cannot be launched.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// The scratch of a repeated launch differs between repetitions.
    #[error("it needs global scratch, and its grid depends on `{ITERATION}`")]
    Iteration,
}

/// Completes the description of launches as the binary asks. `tensors` are those of the operator, `entries` the names of the binary's functions, in the order of
/// `facts`.
///
/// # Errors
/// The binary asks for something that loaders do not give.
pub fn complete(
    sequence: &mut LaunchSequence,
    tensors: &[TensorDescription],
    entries: &[String],
    facts: &[TritonFacts],
) -> Result<(), DescriptionError> {
    let apart = sequence.launches.iter().any(|l| matches!(l.action, ActionDescription::Kernel { pdl: true, .. }));
    let mut shared: Vec<String> = vec![];
    let workspaces = sequence.workspaces.clone();
    let buffers = Buffers { tensors, workspaces: &workspaces };
    for (at, launch) in sequence.launches.iter_mut().enumerate() {
        let LaunchDescription { when, repeat, action: ActionDescription::Kernel { .. } } = launch else { continue };
        let (when, repeat) = (when.clone(), repeat.clone());
        let ActionDescription::Kernel {
            entry, grid, block, shared: bytes, args, cooperative, cluster, assumes, ..
        } = &mut launch.action
        else {
            continue;
        };
        let facts = facts_of(entry, entries, facts)?;
        *block = vec![threads(facts)?.to_string()];
        *bytes = (facts.shared > 0).then(|| facts.shared.to_string());
        *cooperative |= facts.cooperative;
        if facts.num_ctas > 1 {
            *cluster = vec![facts.num_ctas.to_string()];
            if let Some(first) = grid.first_mut() {
                *first = format!("({first}) * {}", facts.num_ctas);
            }
        }
        assumes.extend(descriptors(args, facts, &buffers)?);
        if facts.global_scratch_size == 0 {
            args.extend([ArgDescription::Null, ArgDescription::Null]);
            continue;
        }
        let needs = scratch(grid, facts.global_scratch_size)?;
        let name = if apart { format!("global scratch {at}") } else { "global scratch 0".into() };
        let mut offset = None;
        if apart {
            // Repetitions may overlap, too.
            let part = format!("ceil_div({needs}, {WORKSPACE_ALIGN}) * {WORKSPACE_ALIGN}");
            offset = repeat.as_ref().map(|_| format!("{ITERATION} * ({part})"));
            let all = repeat.as_ref().map_or_else(|| needs.clone(), |times| format!("({times}) * ({part})"));
            sequence.workspaces.push(part_of(&name, only_if(when.as_deref(), &all)));
        } else {
            shared.push(only_if(when.as_deref(), &needs));
        }
        // The profile scratch comes last.
        args.extend([ArgDescription::Pointer { buffer: name, offset }, ArgDescription::Null]);
    }
    shared.dedup();
    let largest = match shared.as_slice() {
        [] => return Ok(()),
        [one] => one.clone(),
        all => format!("max({})", all.join(", ")),
    };
    sequence.workspaces.push(part_of("global scratch 0", largest));
    Ok(())
}

/// Where the tensors and workspaces of descriptors are found.
struct Buffers<'a> {
    tensors: &'a [TensorDescription],
    workspaces: &'a [WorkspaceDescription],
}

impl Buffers<'_> {
    /// The extents and the strides of a tensor or workspace in elements, the outermost first, and its type.
    fn axes(&self, name: &str) -> Option<(Vec<String>, Vec<String>, DType)> {
        let tensor = self.tensors.iter().find(|tensor| tensor.name == name);
        let workspace = self.workspaces.iter().find(|workspace| workspace.name == name);
        let (shape, strides, dtype) = match (tensor, workspace) {
            (Some(tensor), _) => (&tensor.shape, tensor.strides.clone(), tensor.dtype),
            (None, Some(workspace)) => (&workspace.shape, None, workspace.dtype),
            (None, None) => return None,
        };
        let behind = |axis: usize| shape[axis + 1..].iter().map(|extent| format!("({extent})")).collect::<Vec<_>>();
        let contiguous = (0..shape.len()).map(|axis| match behind(axis).join(" * ") {
            one if one.is_empty() => "1".to_string(),
            product => product,
        });
        Some((shape.clone(), strides.unwrap_or_else(|| contiguous.collect()), dtype))
    }
}

/// Puts what the binary takes in the place of each tensor descriptor. Returns what the tensors must be like.
fn descriptors(
    args: &mut Vec<ArgDescription>,
    facts: &TritonFacts,
    buffers: &Buffers<'_>,
) -> Result<Vec<String>, ContractError> {
    let passed = args.iter().filter(|arg| matches!(arg, ArgDescription::Descriptor { .. })).count();
    let mut maps = facts.maps_of(passed)?.map(<[MapFacts]>::iter);
    let (mut out, mut assumed) = (vec![], vec![]);
    for arg in std::mem::take(args) {
        let ArgDescription::Descriptor { buffer, nan } = arg else {
            out.push(arg);
            continue;
        };
        let (shape, strides, dtype) = buffers.axes(&buffer).ok_or_else(|| ContractError::Axes(buffer.clone()))?;
        for stride in strides.iter().take(shape.len().saturating_sub(1)) {
            assumed.push(format!("({stride}) * {} % {UNIT} == 0", dtype.bytes()));
        }
        let all = |dtype, values: &[String]| {
            let scalar = |value: &String| ArgDescription::Scalar(ScalarDescription { dtype, value: value.clone() });
            values.iter().map(scalar).collect::<Vec<_>>()
        };
        let truth =
            |value: bool| ArgDescription::Scalar(ScalarDescription { dtype: DType::Bool, value: value.to_string() });
        match &mut maps {
            Some(maps) => {
                let of = maps.next().filter(|of| of.tile.len() == shape.len());
                let of = of.ok_or_else(|| ContractError::Axes(buffer.clone()))?;
                out.push(ArgDescription::TensorMap {
                    buffer,
                    tile: of.tile.iter().rev().map(u32::to_string).collect(),
                    swizzle: (of.swizzle > 0).then(|| of.swizzle.to_string()),
                    nan,
                    l2_promotion: Some(PROMOTION.to_string()),
                });
            }
            None => {
                out.push(ArgDescription::Pointer { buffer, offset: None });
                out.extend([all(DType::I64, &shape), all(DType::I64, &strides)].concat());
                out.push(truth(nan));
                out.extend(facts.passes_rounding().then(|| truth(false)));
            }
        }
        out.extend([all(DType::I32, &shape), all(DType::I64, &strides)].concat());
    }
    *args = out;
    Ok(assumed)
}

/// The threads of a block, if loaders can launch the function.
fn threads(facts: &TritonFacts) -> Result<u64, ContractError> {
    if facts.profile_scratch_size > 0 {
        return Err(ContractError::Profile(facts.profile_scratch_size));
    }
    let align = facts.global_scratch_align;
    if facts.global_scratch_size > 0 && (align == 0 || !WORKSPACE_ALIGN.is_multiple_of(align)) {
        return Err(ContractError::Alignment(align));
    }
    let threads = u64::from(facts.num_warps) * u64::from(WARP);
    if (1..=MOST_THREADS).contains(&threads) { Ok(threads) } else { Err(ContractError::Threads(threads)) }
}

fn part_of(name: &str, bytes: String) -> WorkspaceDescription {
    WorkspaceDescription { name: name.into(), dtype: DType::U8, shape: vec![bytes], fill: Fill::Poison }
}

/// The bytes of a launch that is left out at some shapes.
fn only_if(when: Option<&str>, bytes: &str) -> String {
    // A condition that depends on the repetition holds for one of them.
    match when.filter(|when| !uses(when, ITERATION)) {
        Some(when) => format!("where({when}, {bytes}, 0)"),
        None => bytes.into(),
    }
}

/// The bytes of scratch of a launch. The blocks of clusters are in the grid already.
fn scratch(grid: &[String], size: u64) -> Result<String, DescriptionError> {
    if grid.iter().any(|extent| uses(extent, SM_COUNT) || uses(extent, OCCUPANCY)) {
        return Err(ContractError::OpenGrid.into());
    }
    if grid.iter().any(|extent| uses(extent, ITERATION)) {
        return Err(DescriptionError::Iteration);
    }
    let blocks: String = grid.iter().map(|extent| format!("({extent}) * ")).collect();
    Ok(format!("{blocks}{size}"))
}

/// Whether an expression uses a name. A text that is no expression, which no manifest has, uses none.
fn uses(text: &str, name: &str) -> bool {
    parse(text).is_ok_and(|tree| tree.names.iter().any(|own| own == name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::bound::{Arg, KernelLaunch, Launch};
    use crate::model::expr::{Expr, Value, Want};
    use crate::model::tensor_map::TensorMap;
    use crate::model::{Place, Role};
    use crate::record::contract;
    use crate::record::params::CompileFacts;
    use kforge_foundation::base::SourceFile;
    use std::sync::Arc;

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

    fn launch(when: Option<&str>, repeat: Option<&str>, grid: &[&str], pdl: bool) -> LaunchDescription {
        LaunchDescription {
            when: when.map(Into::into),
            repeat: repeat.map(Into::into),
            action: ActionDescription::Kernel {
                entry: "k".into(),
                grid: grid.iter().map(|extent| (*extent).to_string()).collect(),
                block: vec![],
                shared: None,
                args: vec![],
                cooperative: false,
                cluster: vec![],
                pdl,
                assumes: vec![],
            },
        }
    }

    fn completed(launches: Vec<LaunchDescription>, facts: &TritonFacts) -> Result<LaunchSequence, DescriptionError> {
        let mut sequence =
            LaunchSequence { tunables: [].into(), requires: vec![], workspaces: vec![], constants: vec![], launches };
        complete(&mut sequence, &[], &["k".to_string()], std::slice::from_ref(facts))?;
        Ok(sequence)
    }

    fn shapes(sequence: &LaunchSequence) -> Vec<(&str, &str)> {
        sequence.workspaces.iter().map(|part| (part.name.as_str(), part.shape[0].as_str())).collect()
    }

    #[test]
    fn a_launch_has_the_threads_the_memory_and_the_null_pointers_of_its_binary() {
        let found = completed(vec![launch(None, None, &["ceil_div(n, 4)"], false)], &facts()).unwrap();
        let ActionDescription::Kernel { grid, block, shared, args, cluster, .. } = &found.launches[0].action else {
            unreachable!()
        };
        assert_eq!(
            (grid.join(","), block.join(","), shared.as_deref()),
            ("ceil_div(n, 4)".into(), "128".into(), Some("1024"))
        );
        assert_eq!((args.as_slice(), cluster.len()), (&[ArgDescription::Null, ArgDescription::Null][..], 0));
        assert!(found.workspaces.is_empty());
    }

    #[test]
    fn each_launch_has_what_its_own_function_asks() {
        let mut second = launch(None, None, &["m"], false);
        if let ActionDescription::Kernel { entry, .. } = &mut second.action {
            *entry = "k#2".into();
        }
        let launches = vec![launch(None, None, &["n"], false), second];
        let mut sequence =
            LaunchSequence { tunables: [].into(), requires: vec![], workspaces: vec![], constants: vec![], launches };
        let scratch = TritonFacts { num_warps: 8, global_scratch_size: 128, global_scratch_align: 128, ..facts() };
        complete(&mut sequence, &[], &["k", "k#2"].map(String::from), &[facts(), scratch]).unwrap();
        let blocks = sequence.launches.iter().map(|launch| match &launch.action {
            ActionDescription::Kernel { block, args, .. } => (block.join(","), args[0] == ArgDescription::Null),
            ActionDescription::Memset { .. } => unreachable!(),
        });
        assert_eq!(blocks.collect::<Vec<_>>(), [("128".to_string(), true), ("256".to_string(), false)]);
        assert_eq!(shapes(&sequence), [("global scratch 0", "(m) * 128")]);
        let unknown = complete(&mut sequence, &[], &["k".to_string()], &[facts()]).unwrap_err();
        assert_eq!(unknown, ContractError::NoFunction("k#2".into()).into());
    }

    #[test]
    fn clusters_multiply_the_grid_and_scratch_has_room_for_every_block() {
        let of = TritonFacts {
            num_ctas: 2,
            global_scratch_size: 384,
            global_scratch_align: 128,
            cooperative: true,
            ..facts()
        };
        let found = completed(vec![launch(None, None, &["a + 1", "b"], false)], &of).unwrap();
        let ActionDescription::Kernel { grid, args, cluster, cooperative, .. } = &found.launches[0].action else {
            unreachable!()
        };
        assert_eq!((grid.join(","), cluster.join(","), *cooperative), ("(a + 1) * 2,b".into(), "2".into(), true));
        assert_eq!(args[0], ArgDescription::Pointer { buffer: "global scratch 0".into(), offset: None });
        assert_eq!(shapes(&found), [("global scratch 0", "((a + 1) * 2) * (b) * 384")]);
    }

    #[test]
    fn launches_share_scratch_unless_they_may_overlap() {
        let of = TritonFacts { global_scratch_size: 128, global_scratch_align: 128, ..facts() };
        let launches = |pdl| vec![launch(Some("n > 1"), None, &["n"], false), launch(None, Some("t"), &["m"], pdl)];
        let found = completed(launches(false), &of).unwrap();
        assert_eq!(shapes(&found), [("global scratch 0", "max(where(n > 1, (n) * 128, 0), (m) * 128)")]);
        let found = completed(launches(true), &of).unwrap();
        let part = "ceil_div((m) * 128, 256) * 256";
        assert_eq!(
            shapes(&found),
            [("global scratch 0", "where(n > 1, (n) * 128, 0)"), ("global scratch 1", &format!("(t) * ({part})"))]
        );
        let ActionDescription::Kernel { args, .. } = &found.launches[1].action else { unreachable!() };
        let offset = Some(format!("iteration * ({part})"));
        assert_eq!(args[0], ArgDescription::Pointer { buffer: "global scratch 1".into(), offset });
    }

    /// The value of a text at a shape.
    fn value(text: &str, names: &[(&str, i64)]) -> i64 {
        let scope = names.iter().map(|(name, value)| ((*name).to_string(), Value::Int(*value))).collect();
        let file = Arc::new(SourceFile { name: "k.toml".into(), text: text.into() });
        let expr = Expr::parse(text, Want::Any, Place::new(&file, 0..text.len())).unwrap();
        match expr.value(&scope).unwrap() {
            Value::Int(value) => value,
            Value::Bool(value) => i64::from(value),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_described_descriptor_is_that_of_the_launch() {
        let tensor = |strides: Option<Vec<String>>| TensorDescription {
            name: "x".into(),
            role: Role::Input,
            dtype: DType::F16,
            shape: vec!["n".into(), "m + 2".into(), "8 * k".into()],
            strides,
            align: 256,
        };
        let maps = vec![MapFacts { tile: vec![1, 16, 64], swizzle: 128 }];
        let with = TritonFacts { descriptors: 1, maps, ..facts() };
        let names = [("n", 3), ("m", 5), ("k", 4)];
        for strides in [None, Some(["400", "40", "1"].map(String::from).to_vec())] {
            for facts in [with.clone(), facts(), TritonFacts { version: [3, 6], ..facts() }] {
                let mut described = launch(None, None, &["1"], false);
                let ActionDescription::Kernel { args, .. } = &mut described.action else { unreachable!() };
                args.push(ArgDescription::Descriptor { buffer: "x".into(), nan: true });
                let launches = vec![described];
                let mut sequence = LaunchSequence {
                    tunables: [].into(),
                    requires: vec![],
                    workspaces: vec![],
                    constants: vec![],
                    launches,
                };
                let entries = ["k".to_string()];
                complete(&mut sequence, &[tensor(strides.clone())], &entries, std::slice::from_ref(&facts)).unwrap();
                let ActionDescription::Kernel { args, assumes, .. } = &sequence.launches[0].action else {
                    unreachable!()
                };
                let map = TensorMap {
                    buffer: "x".into(),
                    dtype: DType::F16,
                    extents: vec![32, 7, 3],
                    strides: if strides.is_some() { vec![80, 800] } else { vec![64, 448] },
                    tile: vec![64, 32, 1],
                    swizzle: 0,
                    nan: true,
                    l2_promotion: 0,
                    descriptor: true,
                };
                let bound =
                    KernelLaunch { entry: "k".into(), args: vec![Arg::TensorMap(map)], ..KernelLaunch::default() };
                let mut bound = [Launch::Kernel(bound)];
                let facts = CompileFacts { triton: vec![facts.clone()], ..CompileFacts::default() };
                contract::complete(&mut bound, &mut vec![], &entries, &facts).unwrap();
                let [Launch::Kernel(bound)] = &bound else { unreachable!() };
                assert_eq!(bound.args.len(), args.len());
                for (bound, described) in bound.args.iter().zip(args) {
                    match (bound, described) {
                        (Arg::Scalar { dtype, value }, ArgDescription::Scalar(scalar)) => {
                            let known = value.as_i64().unwrap_or_else(|| i64::from(value.as_f64() != 0.0));
                            assert_eq!((*dtype, known), (scalar.dtype, value_of(scalar, &names)));
                        }
                        (Arg::TensorMap(map), ArgDescription::TensorMap { tile, swizzle, nan, l2_promotion, .. }) => {
                            let tile: Vec<u32> = tile.iter().map(|extent| extent.parse().unwrap()).collect();
                            assert_eq!((&map.tile, map.nan), (&tile, *nan));
                            assert_eq!(
                                (map.swizzle.to_string(), map.l2_promotion.to_string()),
                                (swizzle.clone().unwrap(), l2_promotion.clone().unwrap())
                            );
                        }
                        (Arg::Pointer { .. }, ArgDescription::Pointer { .. }) | (Arg::Null, ArgDescription::Null) => {}
                        (bound, described) => panic!("{bound:?} {described:?}"),
                    }
                }
                assert_eq!(assumes.len(), 2);
                assert!(assumes.iter().all(|assumed| value(assumed, &names) == 1), "{assumes:?}");
            }
        }
    }

    fn value_of(scalar: &ScalarDescription, names: &[(&str, i64)]) -> i64 {
        value(&scalar.value, names)
    }

    #[test]
    fn what_loaders_do_not_give_is_refused_as_launches_are() {
        let of = |facts: &TritonFacts, grid: &str| {
            completed(vec![launch(None, Some("3"), &[grid], false)], facts).unwrap_err()
        };
        let with = TritonFacts { global_scratch_size: 1, ..facts() };
        assert_eq!(of(&with, "iteration + 1"), DescriptionError::Iteration);
        assert_eq!(of(&with, "sm_count"), ContractError::OpenGrid.into());
        assert_eq!(
            of(&TritonFacts { global_scratch_align: 512, ..with.clone() }, "n"),
            ContractError::Alignment(512).into()
        );
        for wrong in [
            TritonFacts { profile_scratch_size: 8, ..facts() },
            TritonFacts { descriptors: 1, ..facts() },
            TritonFacts { num_warps: 64, ..facts() },
        ] {
            let bound = CompileFacts { triton: vec![wrong.clone()], ..CompileFacts::default() };
            let mut launched = [Launch::Kernel(KernelLaunch { entry: "k".into(), ..KernelLaunch::default() })];
            let why = contract::complete(&mut launched, &mut vec![], &["k".to_string()], &bound).unwrap_err();
            assert_eq!(of(&wrong, "n"), why.into());
        }
    }
}
