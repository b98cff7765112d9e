//! How launches reach the driver: shared memory, clusters, cooperation, grids of the device's size, tensor maps; and launches that exceed the device.

use std::fs;

use kforge::model::bound::{Arg, KernelLaunch};
use kforge::model::grid::{NameValue, OpenGrid};
use kforge::model::tensor_map::TensorMap;
use kforge::model::{DType, Metric};
use kforge::record::{FindingKind, Verdict};

use crate::lab::{Lab, differing};

pub(crate) fn shared_memory() {
    let large = Lab { shared: 100_000, ..Lab::new() };
    assert!(large.verify("honest").observed().findings.is_empty());
    let too_large = Lab { shared: 300_000, ..Lab::new() }.verify("honest").observed();
    assert_eq!(too_large.findings[0].kind, FindingKind::LaunchRefused, "{too_large:?}");
    let too_many = Lab { threads: 2048, ..Lab::new() }.verify("honest").observed();
    assert_eq!(too_many.findings[0].kind, FindingKind::LaunchRefused, "{too_many:?}");
    assert!(too_many.findings[0].message.contains("block 2048,1,1"), "{too_many:?}");
}

pub(crate) fn attributes() {
    let three = |launch: KernelLaunch| {
        let plain = KernelLaunch { cooperative: false, ..launch };
        let clusters = KernelLaunch { cluster: Some([4, 1, 1]), pdl: true, ..plain.clone() };
        let large = KernelLaunch { cluster: Some([16, 1, 1]), cooperative: true, grid: [32, 1, 1], ..plain.clone() };
        vec![plain, clusters, large]
    };
    let lab = Lab { launches: three, ..Lab::new() };
    let observed = lab.verify("honest").observed();
    assert!(observed.findings.is_empty(), "{observed:?}");
    assert_eq!(
        lab.asked()[..3],
        [
            "honest grid 8,1,1 cluster 1,1,1",
            "honest grid 8,1,1 cluster 4,1,1 dependent",
            "honest grid 32,1,1 cluster 16,1,1 cooperative",
        ]
    );
    // Graphs give the same result.
    assert_eq!(lab.bench("brief").verdict(), None);
}

pub(crate) fn too_large() {
    // Four multiprocessors hold sixteen blocks of 128 threads each.
    let full = Lab { launches: |launch| vec![KernelLaunch { grid: [64, 1, 1], ..launch }], ..Lab::new() };
    assert!(full.verify("honest").observed().findings.is_empty());
    let more = Lab { launches: |launch| vec![KernelLaunch { grid: [65, 1, 1], ..launch }], ..Lab::new() };
    let seen = more.verify("honest");
    let found = &seen.observed().findings[0];
    assert_eq!(found.kind, FindingKind::LaunchRefused);
    for part in ["CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "grid 65,1,1", "16 blocks of it fit a multiprocessor"] {
        assert!(found.message.contains(part), "{}", found.message);
    }
    assert!(!seen.forgotten());
    let more = Lab { samples: Some(5), only: Some(Metric::Cold), ..more };
    let seen = more.bench("honest");
    let refused = |why: &str| why.contains("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE");
    assert!(matches!(seen.verdict(), Some(Verdict::Fail(why)) if refused(&why)), "{:?}", seen.response);
    // Nothing ran, and the gate that holds the stream of a sample was opened, so the runner still works.
    let rest = Lab { launches: |launch| vec![launch], ..more };
    assert!(rest.verify("honest").observed().findings.is_empty());
    assert_eq!(rest.starts(), 1);
}

fn of_the_device(launch: KernelLaunch, extent: &str) -> Vec<KernelLaunch> {
    let names = [("tiles".to_string(), NameValue::Int(1000))].into();
    let open_grid = Some(OpenGrid { extents: vec![extent.into(), "2".into()], names });
    vec![KernelLaunch { grid: [0; 3], open_grid, cooperative: false, ..launch }]
}

pub(crate) fn sized() {
    // Four multiprocessors hold sixteen blocks of 128 threads each.
    let lab = Lab { launches: |launch| of_the_device(launch, "min(sm_count * occupancy, tiles)"), ..Lab::new() };
    assert!(lab.verify("honest").observed().findings.is_empty());
    assert_eq!(lab.asked()[0], "honest grid 64,2,1 cluster 1,1,1");
    let none = Lab { launches: |launch| of_the_device(launch, "sm_count // 5"), ..Lab::new() };
    let observed = none.verify("honest").observed();
    assert_eq!(observed.findings[0].kind, FindingKind::LaunchRefused, "{observed:?}");
    let said = &observed.findings[0].message;
    assert!(said.contains("`sm_count // 5` is 0 blocks along x, with sm_count = 4 and occupancy = 16"), "{said}");
    assert!(none.asked().is_empty());
}

pub(crate) fn mapped() {
    let with_map = |launch: KernelLaunch| {
        let map = TensorMap {
            buffer: "x".into(),
            dtype: DType::F32,
            extents: vec![20, 50],
            strides: vec![80],
            tile: vec![8, 25],
            swizzle: 32,
            nan: true,
            l2_promotion: 128,
            descriptor: false,
        };
        let mut args = launch.args.clone();
        args.push(Arg::TensorMap(map));
        vec![KernelLaunch { args, ..launch }]
    };
    let lab = Lab { launches: with_map, ..Lab::new() };
    let observed = lab.verify("mapped").observed();
    assert!(observed.findings.is_empty() && differing(&observed) == 0, "{observed:?}");
    let maps = fs::read_to_string(lab.dir.path().join("maps")).unwrap();
    // CU_TENSOR_MAP_DATA_TYPE_FLOAT32, SWIZZLE_32B, L2_PROMOTION_L2_128B, FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA.
    assert_eq!(maps.lines().next(), Some("type 7 rank 2 20:8:1 50:25:1 +80 swizzle 1 promotion 2 fill 1"));
}
