//! Checks that launches pass the arguments that the binary takes, and request no more resources than a block can have. Knows the offsets and sizes of
//! parameters and the limits of architectures, but not the meaning of arguments.

use std::collections::BTreeSet;

use kforge_foundation::base::count;
use kforge_types::model::bound::{Arg, KernelLaunch, Launch};
use kforge_types::model::layout::Shown;
use kforge_types::model::limits;
use kforge_types::model::target::capability;
use kforge_types::model::tensor_map;
use kforge_types::record::{Finding, FindingKind, FunctionFacts, Inspection, LaunchField, LaunchPart};

/// The faults of the launches; the same fault of an entry is reported once. Empty if every argument count and size matches the binary. A kernel that receives
/// too few arguments would read the memory behind them.
pub fn check(launches: &[Launch], inspection: &Inspection) -> Vec<Finding> {
    let (mut findings, mut told): (Vec<Finding>, BTreeSet<(&String, String)>) = Default::default();
    for launch in launches {
        let Launch::Kernel(launch) = launch else { continue };
        let Some(function) = inspection.functions.iter().find(|f| f.entry == launch.entry) else {
            continue;
        };
        if let Some(why) = mismatch(launch, function)
            .map(|(argument, why)| (LaunchField::Args, argument, why))
            .or_else(|| Some((LaunchField::Block, None, too_many(launch, function)?)))
            .or_else(|| {
                let why = too_much(launch, function, &inspection.architectures)?;
                Some((LaunchField::Request, None, why))
            })
        {
            let (field, argument, why) = why;
            if told.insert((&launch.entry, why.clone())) {
                let message = format!("entry `{}`: {why}", launch.entry);
                let part = Some(LaunchPart { entry: launch.entry.clone(), argument, field });
                findings.push(Finding { launch: part, ..Finding::new(FindingKind::LaunchRefused, message) });
            }
        }
    }
    findings
}

/// The first argument that does not fit the entry: its position from 1, if the fault is about one argument, and the reason.
fn mismatch(launch: &KernelLaunch, function: &FunctionFacts) -> Option<(Option<u32>, String)> {
    let takes: Vec<u32> = function.params.iter().map(|(_, size)| *size).collect();
    if launch.args.len() != takes.len() {
        let sizes: Vec<String> = takes.iter().map(u32::to_string).collect();
        let sizes = if sizes.is_empty() { String::new() } else { format!(" (of {} bytes)", sizes.join(", ")) };
        let (has, takes) = (count(launch.args.len(), "argument"), count(takes.len(), "argument"));
        return Some((None, format!("`args` has {has}, the kernel takes {takes}{sizes}")));
    }
    if let Some((i, (arg, takes))) =
        launch.args.iter().zip(&takes).enumerate().find(|(_, (arg, takes))| arg.bytes() != u64::from(**takes))
    {
        let (number, has) = (i + 1, count(arg.bytes(), "byte"));
        let why = format!("argument {number} ({}) has {has}, the kernel's parameter has {takes}", name_of(arg));
        return Some((u32::try_from(number).ok(), why));
    }
    None
}

/// A block that exceeds the entry's launch bounds.
fn too_many(launch: &KernelLaunch, function: &FunctionFacts) -> Option<String> {
    let threads: u64 = launch.block.iter().map(|n| u64::from(*n)).product();
    let most = function.max_threads.filter(|most| threads > u64::from(*most))?;
    Some(format!("a block has {threads} threads, the kernel's launch bounds allow {most}"))
}

/// A request of a block that no device of the architecture can satisfy. Such a launch fails, and the outputs keep their previous contents.
fn too_much(launch: &KernelLaunch, function: &FunctionFacts, architectures: &[String]) -> Option<String> {
    let name = architectures.first()?;
    let (capability, _) = capability(name).ok()?;
    let shared = function.shared.unwrap_or(0) + launch.shared;
    if let Some(most) = limits::shared_of_a_block(capability).filter(|most| shared > *most) {
        return Some(format!(
            "a block has {shared} bytes of shared memory ({} of them dynamic), {name} allows {most}",
            launch.shared
        ));
    }
    let (blocks, most) = (launch.cluster_blocks(), limits::blocks_of_a_cluster(capability));
    if launch.cluster.is_some() && blocks > most {
        return Some(format!(
            "a cluster has {blocks} blocks, {name} allows {}",
            if most == 0 { "none".into() } else { most.to_string() }
        ));
    }
    if launch.args.iter().any(|arg| matches!(arg, Arg::TensorMap(_))) && capability < tensor_map::LEAST {
        return Some(format!("tensor maps need sm_{} or newer, this is {name}", tensor_map::LEAST));
    }
    if launch.pdl && capability < limits::DEPENDENT_LAUNCH {
        return Some(format!("`pdl` needs sm_{} or newer, this is {name}", limits::DEPENDENT_LAUNCH));
    }
    let threads: u64 = launch.block.iter().map(|n| u64::from(*n)).product();
    let registers = limits::registers_taken(function.registers?, threads);
    (registers > limits::REGISTERS_OF_A_BLOCK).then(|| {
        format!(
            "a block of {threads} threads takes {registers} registers, {name} has {}: state `__launch_bounds__({threads})` in the source",
            limits::REGISTERS_OF_A_BLOCK
        )
    })
}

fn name_of(arg: &Arg) -> String {
    match arg {
        Arg::Pointer { buffer, .. } => format!("`{buffer}`"),
        Arg::Scalar { dtype, .. } => format!("{dtype}"),
        Arg::Struct(fields) => Shown(fields).to_string(),
        Arg::Pointers(_) => "an array of pointers".into(),
        Arg::Null => "a null pointer".into(),
        Arg::TensorMap(map) => format!("a tensor map of `{}`", map.buffer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::model::DType;
    use kforge_types::model::bound::{Scalar, StructField};
    use kforge_types::model::tensor_map::TensorMap;

    fn launch(args: Vec<Arg>) -> Vec<Launch> {
        let kernel =
            KernelLaunch { entry: "k".into(), grid: [1; 3], block: [64, 2, 1], args, ..KernelLaunch::default() };
        vec![Launch::Kernel(kernel.clone()), Launch::Memset { buffer: "y".into(), value: 0 }, Launch::Kernel(kernel)]
    }

    fn inspection(params: &[(u32, u32)], max_threads: Option<u32>) -> Inspection {
        let function = FunctionFacts { entry: "k".into(), params: params.to_vec(), max_threads, ..Default::default() };
        Inspection { functions: vec![function], ..Default::default() }
    }

    fn scalar(dtype: DType) -> Arg {
        Arg::Scalar { dtype, value: Scalar::Int(1) }
    }

    fn pointer() -> Arg {
        Arg::Pointer { buffer: "x".into(), offset: 0 }
    }

    #[test]
    fn arguments_as_the_binary_takes_them_are_fine() {
        let fields =
            [DType::I32, DType::I64, DType::U8].map(|dtype| StructField::Scalar { dtype, value: Scalar::Int(0) });
        let launches = launch(vec![pointer(), scalar(DType::F16), Arg::Struct(fields.to_vec())]);
        assert_eq!(check(&launches, &inspection(&[(0, 8), (8, 2), (16, 24)], Some(128))), []);
    }

    #[test]
    fn a_missing_argument_is_counted_and_said_once() {
        let findings = check(&launch(vec![pointer()]), &inspection(&[(0, 8), (8, 4)], None));
        assert_eq!(findings.len(), 1, "two launches of the same entry");
        assert!(
            findings[0].message.contains("1 argument, the kernel takes 2 arguments (of 8, 4 bytes)"),
            "{findings:?}"
        );
        assert_eq!(findings[0].kind, FindingKind::LaunchRefused);
    }

    #[test]
    fn another_size_names_the_argument() {
        let findings = check(&launch(vec![pointer(), scalar(DType::I32)]), &inspection(&[(0, 8), (8, 8)], None));
        assert!(
            findings[0].message.contains("argument 2 (i32) has 4 bytes, the kernel's parameter has 8"),
            "{findings:?}"
        );
    }

    #[test]
    fn a_struct_of_another_size_is_shown_with_its_members() {
        let fields = [DType::I32, DType::I64].map(|dtype| StructField::Scalar { dtype, value: Scalar::Int(0) });
        let findings = check(&launch(vec![Arg::Struct(fields.to_vec())]), &inspection(&[(0, 24)], None));
        let why = "argument 1 (a struct of (i32 at 0, i64 at 8)) has 16 bytes, the kernel's parameter has 24";
        assert!(findings[0].message.contains(why), "{findings:?}");
    }

    #[test]
    fn a_tensor_map_is_a_parameter_of_its_size_where_there_are_such() {
        let map = Arg::TensorMap(TensorMap {
            buffer: "x".into(),
            dtype: DType::F16,
            extents: vec![],
            strides: vec![],
            tile: vec![64, 64],
            swizzle: 128,
            nan: false,
            l2_promotion: 0,
            descriptor: false,
        });
        assert_eq!(check(&launch(vec![map.clone()]), &inspection(&[(0, 128)], None)), []);
        let findings = check(&launch(vec![map.clone()]), &inspection(&[(0, 8)], None));
        assert!(findings[0].message.contains("(a tensor map of `x`) has 128 bytes"), "{findings:?}");
        let old = Inspection { architectures: vec!["sm_89".into()], ..inspection(&[(0, 128)], None) };
        assert!(check(&launch(vec![map]), &old)[0].message.contains("tensor maps need sm_90 or newer, this is sm_89"));
    }

    #[test]
    fn launch_bounds_are_held() {
        let findings = check(&launch(vec![pointer()]), &inspection(&[(0, 8)], Some(64)));
        assert_eq!(findings[0].message, "entry `k`: a block has 128 threads, the kernel's launch bounds allow 64");
        assert_eq!(findings[0].launch.as_ref().map(|part| part.field), Some(LaunchField::Block));
    }

    #[test]
    fn a_block_asks_for_no_more_than_its_architecture_has() {
        let of = |arch: &str, facts: FunctionFacts| {
            let function = FunctionFacts { entry: "k".into(), params: vec![(0, 8)], ..facts };
            Inspection {
                functions: vec![function],
                architectures: vec![arch.into()],
                disassembled: false,
                refused: vec![],
            }
        };
        let mut launches = launch(vec![pointer()]);
        let Launch::Kernel(first) = &mut launches[0] else { unreachable!() };
        first.shared = 100_000;
        let shared = |bytes| FunctionFacts { shared: Some(bytes), ..Default::default() };
        assert_eq!(check(&launches, &of("sm_90a", shared(1000))), []);
        let refused = &check(&launches, &of("sm_90a", shared(140_000)))[0].message;
        assert!(
            refused.contains("240000 bytes of shared memory (100000 of them dynamic), sm_90a allows 232448"),
            "{refused}"
        );
        assert_eq!(check(&launches, &of("sm_89", shared(1400))).len(), 1);

        let plain = || FunctionFacts::default();
        let Launch::Kernel(first) = &mut launches[0] else { unreachable!() };
        (first.shared, first.cluster) = (0, Some([4, 4, 1]));
        assert_eq!(check(&launches, &of("sm_90a", plain())), []);
        assert!(check(&launches, &of("sm_120a", plain()))[0].message.contains("16 blocks, sm_120a allows 8"));
        assert!(check(&launches, &of("sm_89", plain()))[0].message.contains("16 blocks, sm_89 allows none"));
        let Launch::Kernel(first) = &mut launches[0] else { unreachable!() };
        (first.cluster, first.pdl) = (None, true);
        assert_eq!(check(&launches, &of("sm_90", plain())), []);
        assert!(check(&launches, &of("sm_80", plain()))[0].message.contains("`pdl` needs sm_90 or newer"));

        let registers = |a_thread| FunctionFacts { registers: Some(a_thread), ..Default::default() };
        let Launch::Kernel(first) = &mut launches[0] else { unreachable!() };
        (first.pdl, first.block) = (false, [512, 1, 1]);
        assert_eq!(check(&launches, &of("sm_90a", registers(128))), []);
        let refused = &check(&launches, &of("sm_90a", registers(129)))[0].message;
        assert!(refused.contains("takes 69632 registers, sm_90a has 65536"), "{refused}");
    }
}
