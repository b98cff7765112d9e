//! Every construct of the manifest's reference, in one manifest that holds them all.

use std::collections::BTreeMap;

use super::package;
use crate::model::bound::{Fill, StructField};
use crate::model::{
    Arch, Arg, Axis, Compare, Compiler, Constant, CudaSpec, DType, Init, InputsFunction, KernelLaunch, Launch, Metric,
    Nonfinite, Package, Reference, Sanitizer, Scalar, Select, ShapeRole, TypeChoice, Variant,
};

const EVERYTHING: &str = include_str!("everything.toml");

fn variant(package: &Package, target: &str, choice: &TypeChoice, label: &str) -> Variant {
    let variants = package.kernels[0].variants(&package.targets[target], choice).unwrap();
    let labels: Vec<_> = variants.iter().map(|v| v.label.clone()).collect();
    variants.into_iter().find(|v| v.label == label).unwrap_or_else(|| panic!("{label} is not in {labels:?}"))
}

#[test]
fn a_package_takes_from_its_workspace() {
    let package = package(EVERYTHING);
    assert_eq!((package.version.as_str(), package.kforge), ("2.1.0", None));
    assert_eq!(package.toolchain.cuda, Some(CudaSpec::Version("13.0".into())));
    assert_eq!(package.targets["h100"].device.as_deref(), Some("NVIDIA H100"));
    assert_eq!(package.targets["b200"].arch, Arch::Sm("sm_100f".into()));
    assert_eq!(package.from_root.iter().collect::<Vec<_>>(), ["cutlass", "toolchain.cuda"]);
    assert_eq!(package.dependencies.keys().collect::<Vec<_>>(), ["cutlass", "local"]);
}

#[test]
fn operators_bind_derived_dims_strides_inits_and_params() {
    let package = package(EVERYTHING);
    let mix = package.operator("mix").unwrap();
    let labels: Vec<_> = mix.choices().into_iter().map(|c| c.label).collect();
    assert_eq!(labels, ["T=f16,I=i32", "T=f16,I=i64", "T=bf16,I=i32", "T=bf16,I=i64"]);
    let choice = &mix.choices()[3];
    let (small, large) = (mix.shape("small").unwrap(), mix.shape("large").unwrap());
    let problem = mix.bind(choice, small).unwrap();
    assert_eq!((problem.dims["HKV"], problem.dims["G"]), (2, 2));
    let x = problem.tensor("x").unwrap();
    assert_eq!((x.strides.clone(), x.align, x.dtype), (vec![512, 128, 2], 16, DType::Bf16));
    assert_eq!(problem.tensor("scale").unwrap().shape, [0u64; 0]);
    let inits: Vec<_> = problem.tensors.iter().map(|t| (t.name.as_str(), t.init.clone())).collect();
    assert_eq!(
        inits[..7],
        [
            ("x", Init::Normal),
            ("mask", Init::OneHot),
            ("pages", Init::Permutation(64)),
            ("offsets", Init::Offsets(128)),
            ("idx", Init::Range(0.0, 63.0)),
            ("scale", Init::Constant(0.5)),
            ("state", Init::Positive),
        ]
    );
    assert_eq!(
        problem.tensors.iter().skip(6).map(|t| t.name.as_str()).collect::<Vec<_>>(),
        ["state", "y", "best", "top"]
    );
    let values = |shape| mix.bind(choice, shape).unwrap().params.iter().map(|p| p.value).collect::<Vec<_>>();
    assert_eq!(values(small), [Scalar::Float(1e-6), Scalar::Float(0.125), Scalar::Bool(true), Scalar::Int(8)]);
    assert_eq!(values(large)[2..], [Scalar::Bool(false), Scalar::Int(8_589_934_592)]);
    assert_eq!(problem.generate_inputs, Some(InputsFunction::Python("ref.py".into(), "inputs".into())));
    assert_eq!(mix.flops(choice, small).unwrap(), Some(2.0 * 2.0 * 4.0 * 64.0 * 6.0));
    assert_eq!((mix.flops_min(choice, small).unwrap(), mix.bytes(choice, small).unwrap()), (Some(512.0), Some(1024.0)));
    assert_eq!(mix.shape("hidden").unwrap().role, ShapeRole::Holdout);
    assert_eq!((mix.pattern, mix.level), (Some(crate::model::Pattern::MatrixProduct), Some(3)));
    let origin = mix.origin.as_ref().unwrap();
    assert_eq!((origin.set.as_str(), origin.level, origin.number), ("kernelbench", Some(2), Some(37)));
    assert_eq!(origin.name.as_deref(), Some("Matmul_Swish"));
}

#[test]
fn a_shape_states_the_inputs_that_are_in_files() {
    let stored = "role = \"bench\", init = { x = { safetensors = \"blob/in.safetensors\", key = \"layer.x\" } } }";
    let example = include_str!("example.toml").replace("role = \"bench\" }", stored);
    let package = package(&example);
    let operator = package.operator("rms_norm").unwrap();
    let is_stored = |shape: &crate::model::operator::Shape| {
        let problem = operator.bind(&operator.choices()[0], shape).unwrap();
        let stored = problem.stored().map(|(t, file, key)| (t.name.clone(), file.to_string(), key.to_string()));
        (problem.has_own_inputs(), stored.collect::<Vec<_>>())
    };
    let of = ("x".to_string(), "blob/in.safetensors".to_string(), "layer.x".to_string());
    let found: Vec<_> = operator.shapes.iter().map(is_stored).collect();
    assert!(found.contains(&(true, vec![of])) && found.contains(&(false, vec![])), "{found:?}");
}

#[test]
fn references_are_builtins_with_attributes_or_functions() {
    let package = package(EVERYTHING);
    let attributes = BTreeMap::from([
        ("alpha".to_string(), serde_json::json!(0.5)),
        ("axes".to_string(), serde_json::json!([0, 1])),
        ("transpose_b".to_string(), serde_json::json!(true)),
    ]);
    let names = BTreeMap::from([("a".to_string(), "x".to_string()), ("b".to_string(), "pages".to_string())]);
    assert_eq!(package.operators[0].reference, Reference::Builtin { name: "matmul".into(), attributes, names });
    let attributes = BTreeMap::from([("y".to_string(), serde_json::json!("gelu(x + b)"))]);
    let gelu = Reference::Builtin { name: "elementwise".into(), attributes, names: BTreeMap::new() };
    assert_eq!(package.operators[1].reference, gelu);
    assert_eq!(package.operators[2].reference, Reference::Cpp { file: "ref/top.cpp".into(), function: "top".into() });
}

#[test]
fn tolerances_are_by_tensor_then_dtype_then_shape() {
    let package = package(EVERYTHING);
    let mix = package.operator("mix").unwrap();
    let of = |choice: usize, shape: &str| mix.tolerances(&mix.choices()[choice], mix.shape(shape).unwrap());
    let small = of(0, "small").unwrap();
    let y = &small["y"];
    assert_eq!((y.scaled, y.matched, y.max_error, y.nonfinite), (2.0, 0.99, Some(1e-2), Nonfinite::Any));
    assert_eq!((small["top"].atol, small["best"].atol), (1e-3, 0.0));
    assert_eq!(of(2, "small").unwrap()["top"].nonfinite, Nonfinite::Forbid);
    assert_eq!(of(0, "large").unwrap()["y"].atol, 0.5);
    assert_eq!(of(0, "hidden"), None);
    let top = package.operator("top").unwrap();
    assert_eq!(top.tolerances(&top.choices()[0], &top.shapes[0]), None);
    let compare = mix.compare();
    assert_eq!(compare["best"], Compare::ArgmaxOf("x".into()));
    assert_eq!(compare["top"], Compare::Unordered);
    assert_eq!(compare["state"], Compare::Python("ref.py".into(), "check".into()));
    assert_eq!(compare["y"], Compare::Elements);
    assert_eq!(top.compare()["y"], Compare::Unordered);
}

#[test]
fn where_and_requires_see_types_and_targets() {
    let package = package(EVERYTHING);
    let (kernel, mix) = (&package.kernels[0], &package.operators[0]);
    let count = |target: &str| kernel.variants(&package.targets[target], &mix.choices()[0]).unwrap().len();
    // `where` leaves out BLOCK=256 with VEC=8 on every target, FAST on cpu, and everything on b200.
    assert_eq!((count("h100"), count("cpu"), count("b200")), (3 * 2 * 2 * 2, 3 * 2 * 2, 0));
    let label = "BLOCK=128,VEC=8,FAST=true,SPLIT=4,REGS=64,LAYOUT=col";
    let serves = |choice: usize| {
        let choice = &mix.choices()[choice];
        kernel.serves(&variant(&package, "h100", choice, label), mix, choice, &mix.shapes[0]).unwrap()
    };
    assert!(serves(0) && !serves(2));
}

#[test]
fn launches_bind_every_form_of_argument() {
    let package = package(EVERYTHING);
    let (kernel, mix) = (&package.kernels[0], &package.operators[0]);
    let choice = &mix.choices()[0];
    let problem = mix.bind(choice, &mix.shapes[0]).unwrap();
    let variant = variant(&package, "h100", choice, "BLOCK=128,VEC=1,FAST=true,SPLIT=4,REGS=64,LAYOUT=row");
    let launches = kernel.launches(&variant, choice, &problem).unwrap();
    assert_eq!(launches[0], Launch::Memset { buffer: "part".into(), value: 255 });
    let Launch::Kernel(main) = &launches[1] else { panic!("a kernel") };
    assert_eq!(main.entry, "ns::mix<__half, 128, true, ns::T>");
    assert_eq!((main.grid, main.block, main.shared), ([1, 4, 2], [128, 1, 1], 256));
    let pointer = |name: &str, offset| Arg::Pointer { buffer: name.into(), offset };
    let int = |dtype, value| Arg::Scalar { dtype, value: Scalar::Int(value) };
    let fields = vec![
        StructField::Scalar { dtype: DType::I32, value: Scalar::Int(64) },
        StructField::Scalar { dtype: DType::I64, value: Scalar::Int(8) },
        StructField::Scalar { dtype: DType::F32, value: Scalar::Float(1e-6) },
        StructField::Scalar { dtype: DType::I32, value: Scalar::Int(2) },
    ];
    let expected = [
        pointer("x", 0),
        pointer("y", 0),
        pointer("part", 0),
        int(DType::I32, 64),
        int(DType::I32, 255),
        Arg::Scalar { dtype: DType::F32, value: Scalar::Float(1e-6) },
        Arg::Scalar { dtype: DType::Bool, value: Scalar::Bool(true) },
        int(DType::I64, 8),
        Arg::Scalar { dtype: DType::Bool, value: Scalar::Bool(true) },
        int(DType::I32, 1),
        int(DType::I64, 8),
        Arg::Scalar { dtype: DType::F16, value: Scalar::Float(2e-6) },
        pointer("x", 256),
        Arg::Struct(fields),
        Arg::Pointers(vec!["x".into(), "part".into()]),
    ];
    assert_eq!(main.args, expected);
    let iterations: Vec<_> = launches[2..]
        .iter()
        .map(|l| match l {
            Launch::Kernel(KernelLaunch { entry, args, .. }) => (entry.as_str(), args[1].clone()),
            Launch::Memset { .. } => panic!("a kernel"),
        })
        .collect();
    assert_eq!(iterations, [0, 1, 3].map(|i| ("finish<int>", int(DType::I32, i))));
    assert_eq!(kernel.entries(&variant, choice), ["ns::mix<__half, 128, true, ns::T>", "finish<int>"]);
    let buffers: Vec<_> = kernel
        .workspaces(&variant, choice, &problem)
        .unwrap()
        .into_iter()
        .map(|b| (b.name, b.elements, b.fill))
        .collect();
    assert_eq!(
        buffers,
        [("part".into(), 8, Fill::Poison), ("flag".into(), 1, Fill::ZeroOnce), ("zero".into(), 64, Fill::Zero)]
    );
    assert_eq!(kernel.constants(), [Constant { symbol: "c_scale".into(), buffer: "scale".into() }]);
}

#[test]
fn compilation_and_selection_are_as_stated() {
    let package = package(EVERYTHING);
    let (kernel, mix) = (&package.kernels[0], &package.operators[0]);
    let choice = &mix.choices()[2];
    let variant = variant(&package, "cpu", choice, "BLOCK=128,VEC=1,FAST=false,SPLIT=1,REGS=64,LAYOUT=row");
    assert_eq!(
        (kernel.compiler, kernel.std.as_deref(), kernel.select.metric, kernel.select.classes),
        (Compiler::Nvcc, Some("c++20"), Metric::Hot, 3)
    );
    assert_eq!(kernel.sanitize, [Sanitizer::Memcheck, Sanitizer::Synccheck], "in their own order");
    assert_eq!(kernel.flags(&variant, choice), ["-maxrregcount=64", "--use_fast_math"]);
    let defines = kernel.defines(&variant, choice);
    let pairs: Vec<_> = defines.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(
        pairs,
        [
            ("BLOCK", "128"),
            ("DEBUG", "0"),
            ("ELEM", "__nv_bfloat16"),
            ("FAST", "0"),
            ("LAYOUT", "row"),
            ("LEVEL", "3"),
            ("NAME", "row 128"),
            ("REGS", "64"),
            ("SPLIT", "1"),
            ("VEC", "1"),
        ]
    );
    let classes: Vec<_> = mix.shapes.iter().map(|s| kernel.class_of(mix, choice, s).unwrap()).collect();
    assert_eq!(classes, ["false", "true", "false"]);
}

#[test]
fn a_kernel_may_keep_one_champion_for_all_shapes() {
    let with =
        |select: &str| EVERYTHING.replacen("select = { per = \"N > 1000\", metric = \"hot\", classes = 3 }", select, 1);
    let of = |text: &str| package(text).kernels[0].select.clone();
    assert_eq!(of(&with("")), Select::default());
    assert_eq!(of(&with("select = \"one\"")), Select { classes: 1, ..Select::default() });
    assert_eq!(of(&with("select = { classes = 1 }")), of(&with("select = \"one\"")));
}

#[test]
fn methods_say_what_shows_them_by_architecture() {
    let package = package(EVERYTHING);
    let (kernel, mix) = (&package.kernels[0], &package.operators[0]);
    let [vectors, split, fast] = kernel.methods.as_slice() else { panic!("three methods") };
    assert_eq!((vectors.axis, split.axis, fast.axis), (Axis::Memory, Axis::Latency, Axis::Compute));
    assert_eq!(vectors.signature.for_arch("sm_90a").unwrap().any, ["UBLKCP"]);
    assert_eq!(vectors.signature.for_arch("sm_90").unwrap().count[r"LDG\.E\.128"], 2);
    assert_eq!(vectors.signature.for_arch("sm_100a").unwrap().any, [r"LDG\.E\.128"]);
    assert_eq!(split.signature.for_arch("sm_90a"), None);
    let choice = &mix.choices()[0];
    let one = variant(&package, "h100", choice, "BLOCK=128,VEC=1,FAST=true,SPLIT=1,REGS=64,LAYOUT=row");
    let off = kernel.without(&one, split).unwrap();
    assert_eq!(
        (off.flags.as_slice(), off.source.as_deref()),
        (["-DNOSPLIT".to_string()].as_slice(), Some("src/mix_nosplit.cu"))
    );
    assert_eq!((kernel.without(&one, vectors), kernel.without(&one, fast)), (None, None));
}

#[test]
fn a_method_that_other_values_choose_is_left_out() {
    let on = |text: &str| {
        package(&EVERYTHING.replacen("off = { VEC = 1", &format!("on = {{ {text} }}\noff = {{ VEC = 1"), 1))
    };
    for (text, chosen) in [("BLOCK = 128", true), ("BLOCK = [256, 128]", true), ("BLOCK = 256", false)] {
        let package = on(text);
        let (kernel, mix) = (&package.kernels[0], &package.operators[0]);
        let method = kernel.methods.iter().find(|m| !m.on.is_empty()).unwrap();
        let with = "BLOCK=128,VEC=8,FAST=true,SPLIT=1,REGS=64,LAYOUT=row";
        let variant = variant(&package, "h100", &mix.choices()[0], with);
        assert_eq!(kernel.without(&variant, method).is_some(), chosen, "{text}");
        assert_eq!(kernel.leaves_out(&variant, method), !chosen, "{text}");
    }
}

#[test]
fn a_method_of_its_own_name_states_its_axis_and_one_may_leave_its_signature_to_the_registry() {
    let with = |methods: &str| package(&format!("{}\n{methods}", include_str!("example.toml")));
    let package = with(
        "[kernel.rms_norm.methods.\"latency.reduce_sync_count\"]\noff = { VEC = 1 }\n\
         [kernel.rms_norm.methods.my_layout]\naxis = \"latency\"\nsass.fewer = ['BAR']\n\
         [kernel.rms_norm.methods.\"compute.mine\"]\naxis = \"compute\"\n",
    );
    let [_, registered, own, named] = package.kernels[0].methods.as_slice() else { panic!("four methods") };
    assert!(registered.signature.is_empty() && named.signature.is_empty());
    assert_eq!((registered.axis, own.axis, named.axis), (Axis::Latency, Axis::Latency, Axis::Compute));
    assert_eq!(own.signature.for_arch("sm_80").unwrap().fewer, ["BAR"]);
}

#[test]
fn a_workspace_table_keeps_its_globs() {
    let (manifest, ..) = super::read(EVERYTHING);
    let workspace = manifest.unwrap().workspace.unwrap();
    assert_eq!(
        (workspace.members, workspace.exclude, workspace.default_members),
        (vec!["kernels/*".into()], vec!["kernels/old".into()], vec!["kernels/norms".to_string()])
    );
}
