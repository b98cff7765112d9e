//! Zeros, a constant and a copy of an input fail on every operator of the examples, through calibration: planned, computed and judged as in a build.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use kforge::base::Digest;
use kforge::engine::{Node, Source};
use kforge::harness::message::{Places, Response};
use kforge::harness::task::Task;
use kforge::measure::calibrate::calibrate;
use kforge::model::{Operator, Package, TypeChoice};
use kforge::optimize::templates::TEMPLATES;
use kforge::plan::{Goal, PackageInput, PlanInput, Planner, Selection, Tool, Toolchains};
use kforge::record::params::{CalibrateParams, Calibration, NullsObserved};
use kforge::record::{Spec, StepKind};
use kforge::worker::serve::perform;
use kforge::worker::steps::handler;
use kforge::workspace::{Workspace, load};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

/// Shapes with more work are left out here. Every operator has a smaller shape, and the results at that shape suffice.
const SMALL: f64 = 4e6;

fn workspace(example: &str) -> Workspace {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(example).join("kernel.toml");
    let (workspace, found) = load(&manifest, &TEMPLATES);
    workspace.unwrap_or_else(|| panic!("{example}: {found:?}"))
}

/// The nodes of a build on `cpu`.
fn planned(workspace: &Workspace) -> Vec<Node> {
    let some = || Digest::of(b"no tool is run");
    let toolchains = Toolchains {
        cxx: Tool::Known(some()),
        cub: Tool::Known(some()),
        auto: Tool::Known(some()),
        nvrtc: Tool::Known(some()),
        nvcc: Tool::Known(some()),
        triton: Tool::Known(some()),
        triton_interpreter: Tool::Known(some()),
        disassembler: Tool::Known(some()),
        triton_disassembler: Tool::Known(some()),
        fatbinary: Tool::Known(some()),
        python: Tool::Known(some()),
        torch: Tool::Known(some()),
        torch_cuda: Tool::Known(some()),
        runtime: Tool::Known(some()),
        processor: some(),
        emulator: some(),
        shim: some(),
    };
    let packages = workspace.members.iter().map(|member| PackageInput {
        stored: Default::default(),
        package: &member.package,
        sources: BTreeMap::new(),
        references: BTreeMap::new(),
        include: vec![],
        toolchains: toolchains.clone(),
        tried: BTreeMap::new(),
        pins: BTreeMap::new(),
        accepted: BTreeSet::new(),
    });
    let planner = Planner::plan(PlanInput {
        packages: packages.collect(),
        selection: Selection { targets: vec!["cpu".into()], ..Selection::default() },
        goal: Goal::Build,
        emulator_limit: SMALL,
        oracle_limit: SMALL,
        time_limit_s: 60,
        devices: kforge::record::Devices::default(),
        methods: kforge::optimize::methods::signatures(),
        has_form: kforge::optimize::methods::has_form,
        facts: |_, _, _| BTreeMap::new(),
    });
    assert!(planner.diagnostics.is_empty(), "{:?}", planner.diagnostics);
    planner.nodes
}

/// Executes an oracle step in this process. The references of the examples are built in.
fn nulls(node: &Node) -> NullsObserved {
    let dir = tempfile::tempdir().unwrap();
    let (kind, params) = (StepKind::Oracle, node.params.clone());
    let spec = Spec { kind, version: 1, implementation: None, params, inputs: BTreeMap::new() };
    let task = Task {
        spec,
        input: dir.path().join("in"),
        output: dir.path().to_path_buf(),
        places: Places::default(),
        time_limit: Duration::from_secs(600),
        run_limit: Duration::from_secs(600),
        memory_limit: 1 << 32,
        compiler_memory: 8 << 30,
        allow_unconfined: false,
        hang: None,
        planned: std::time::SystemTime::UNIX_EPOCH,
        warm_up: false,
        started: Instant::now(),
        device: None,
        waiting_us: Default::default(),
    };
    let response = perform(&task, handler);
    assert!(matches!(response, Response::Done { .. }), "{}: {response:?}", node.id);
    serde_json::from_slice(&std::fs::read(dir.path().join("nulls")).unwrap()).unwrap()
}

/// The decision of a node's calibrate step, and the null candidates that it examined.
fn calibrated(node: &Node, nodes: &BTreeMap<&str, &Node>) -> (Calibration, BTreeSet<String>) {
    let params: CalibrateParams = serde_json::from_value(node.params.clone()).unwrap();
    assert!(params.absent.is_none() && !params.cases.is_empty(), "{} asks about nothing: {params:?}", node.id);
    let observed: Vec<NullsObserved> = (0..params.cases.len())
        .map(|case| match &node.inputs[&format!("nulls:{case}")].source {
            Source::Output { node, name, .. } if name == "nulls" => nulls(nodes[node.as_str()]),
            other => panic!("{}: {other:?}", node.id),
        })
        .collect();
    let asked = observed.iter().flat_map(|n| n.candidates.keys().cloned()).collect();
    (calibrate(&params, &observed), asked)
}

/// Checks that one operator of the examples, for one choice of types, rejects the null candidates.
fn examine(package: &Package, operator: &Operator, choice: &TypeChoice, nodes: &BTreeMap<&str, &Node>) {
    let parts = [&package.name, &operator.name, &choice.label].map(String::as_str);
    let parts: Vec<&str> = parts.into_iter().filter(|p| !p.is_empty()).collect();
    let id = format!("{}/calibrate", parts.join("/"));
    let node = nodes.get(id.as_str()).unwrap_or_else(|| panic!("`{id}` is not planned"));
    let (calibration, asked) = calibrated(node, nodes);
    assert!(calibration.indecisive.is_empty(), "{id}: {:?}", calibration.indecisive);
    for candidate in ["zeros", "constant 1", "another seed"] {
        assert!(asked.contains(candidate), "{id} was not asked about `{candidate}` but {asked:?}");
    }
    // An input with as many values as some output can be copied to that output.
    let shape = operator.shapes.iter().min_by_key(|s| s.dims.values().product::<i64>()).unwrap();
    let problem = operator.bind(choice, shape).unwrap();
    for input in problem.read() {
        let fits = problem.written().any(|t| t.elements() == input.elements() && t.name != input.name);
        let copy = format!("copy of {}", input.name);
        assert!(!fits || asked.contains(&copy), "{id} was not asked about `{copy}` but {asked:?}");
    }
}

#[test]
#[ignore = "second tier: every operator of the examples"]
fn zeros_a_constant_and_a_copy_of_an_input_fail_on_every_example_operator() {
    let mut seen = 0;
    for example in ["quickstart", "kernels"] {
        let workspace = workspace(example);
        let nodes = planned(&workspace);
        let by_id: BTreeMap<&str, &Node> = nodes.iter().map(|n| (n.id.as_str(), n)).collect();
        let packages = workspace.members.iter().map(|m| &m.package);
        let operators: Vec<(&Package, &Operator)> =
            packages.flat_map(|package| package.operators.iter().map(move |operator| (package, operator))).collect();
        seen += operators.len();
        let each = operators.par_iter().flat_map_iter(|(package, operator)| {
            operator.choices().into_iter().map(move |choice| (*package, *operator, choice))
        });
        each.for_each(|(package, operator, choice)| examine(package, operator, &choice, &by_id));
    }
    assert!(seen >= 25, "{seen} operators");
}
