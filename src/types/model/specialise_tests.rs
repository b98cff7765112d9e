//! The rule by which arguments are specialised, and by which launches share a compilation.

use super::*;
use crate::model::tensor_map::TensorMap;
use crate::model::{Place, Text};

fn param(name: &str, constexpr: bool) -> JitParam {
    JitParam { name: name.into(), constexpr, default: false }
}

fn int(value: i64) -> Arg {
    Arg::Scalar { dtype: if i32::try_from(value).is_ok() { DType::I32 } else { DType::I64 }, value: Scalar::Int(value) }
}

fn pointer(offset: u64) -> Arg {
    Arg::Pointer { buffer: "x".into(), offset }
}

fn launch(args: Vec<Arg>) -> Launch {
    let call = TritonCall { typed: vec![false; args.len()], ..TritonCall::default() };
    Launch::Kernel(KernelLaunch {
        entry: "f".into(),
        grid: [1; 3],
        args,
        triton: Some(Box::new(call)),
        ..KernelLaunch::default()
    })
}

fn of(launches: &[Launch], params: &[JitParam], specialize: &Specialize) -> Result<Specialised, SpecialiseError> {
    let names = [("WARPS".to_string(), TritonConst::Int(8)), ("cols".to_string(), TritonConst::Int(7))].into();
    let functions = [("f".to_string(), params.to_vec())].into();
    let given = Given {
        functions: &functions,
        first: Some("f"),
        names: &names,
        tunables: &|name| name == "WARPS",
        open_options: false,
        specialize,
        buffer: &|_| Some((DType::F16, 256)),
    };
    specialise(launches, &given)
}

fn types(specialised: &Specialised) -> Vec<String> {
    let kind = |param: &TritonParam| match &param.kind {
        TritonParamKind::Typed { ty, divisible } => format!("{ty}{}", if *divisible { "D" } else { "" }),
        TritonParamKind::Constant { value } => format!("={value}"),
        TritonParamKind::Default { .. } => "default".into(),
    };
    specialised.functions[0].compile.params.iter().map(kind).collect()
}

#[test]
fn integers_are_specialised_as_the_launcher_of_triton_does() {
    let params = [param("n", false)];
    let kind = |value| {
        let found = of(&[launch(vec![int(value)])], &params, &Specialize::Jit).unwrap();
        (types(&found).remove(0), found.class)
    };
    assert_eq!(kind(1), ("=1".into(), "n=1".into()));
    assert_eq!(kind(2), ("i32".into(), String::new()));
    for divisible in [0, 16, -32, 4096] {
        assert_eq!(kind(divisible), ("i32D".into(), "n%16".into()), "{divisible}");
    }
    assert_eq!(kind((1 << 31) - 1), ("i32".into(), String::new()));
    assert_eq!(kind(1 << 31), ("i64D".into(), "n:i64%16".into()));
    assert_eq!(kind((1 << 31) + 1), ("i64".into(), "n:i64".into()));
}

#[test]
fn an_argument_of_one_leaves_the_binary_one_parameter_fewer() {
    let params = [param("x", false), param("rows", false), param("BLOCK", true)];
    let mut call = TritonCall { typed: vec![false; 2], ..TritonCall::default() };
    call.constexprs.insert("BLOCK".into(), TritonConst::Int(64));
    let Launch::Kernel(kernel) = launch(vec![pointer(0), int(1)]) else { unreachable!() };
    let launches = [Launch::Kernel(KernelLaunch { triton: Some(Box::new(call)), ..kernel })];
    let found = of(&launches, &params, &Specialize::Jit).unwrap();
    assert_eq!(types(&found), ["*fp16D", "=1", "=64"]);
    assert_eq!(found.class, "rows=1,BLOCK=64");
    let Launch::Kernel(passed) = &found.launches[0] else { unreachable!() };
    assert_eq!((passed.args.len(), passed.block, &passed.triton), (1, [128, 1, 1], &None));
}

#[test]
fn addresses_are_divisible_where_they_are_aligned() {
    let params = [param("x", false)];
    let kind = |offset| types(&of(&[launch(vec![pointer(offset)])], &params, &Specialize::Jit).unwrap()).remove(0);
    assert_eq!((kind(0).as_str(), kind(32).as_str(), kind(2).as_str()), ("*fp16D", "*fp16D", "*fp16"));
    assert_eq!(types(&of(&[launch(vec![Arg::Null])], &params, &Specialize::Jit).unwrap()), ["=None"]);
}

#[test]
fn a_sequence_is_specialised_as_far_as_all_of_its_launches_are() {
    let params = [param("n", false)];
    let kind = |values: &[i64]| {
        let launches: Vec<Launch> = values.iter().map(|value| launch(vec![int(*value)])).collect();
        let found = of(&launches, &params, &Specialize::Jit).unwrap();
        let of_last = match found.launches.last() {
            Some(Launch::Kernel(kernel)) => kernel.args.first().map(Arg::bytes),
            _ => None,
        };
        (types(&found).remove(0), of_last)
    };
    assert_eq!(kind(&[1, 1]), ("=1".into(), None));
    assert_eq!(kind(&[1, 2]), ("i32".into(), Some(4)));
    assert_eq!(kind(&[16, 32]), ("i32D".into(), Some(4)));
    assert_eq!(kind(&[1 << 31, 16]), ("i64D".into(), Some(8)));
}

#[test]
fn fewer_arguments_are_specialised_if_the_kernel_says_so() {
    let params = [param("x", false), param("n", false), param("m", false)];
    let kind = |specialize| types(&of(&[launch(vec![pointer(0), int(16), int(1)])], &params, specialize).unwrap());
    assert_eq!(kind(&Specialize::None), ["*fp16", "i32", "i32"]);
    let file = std::sync::Arc::new(kforge_foundation::base::SourceFile { name: "k".into(), text: String::new() });
    let only = Specialize::Only(vec![Text { value: "n".into(), place: Place::new(&file, 0..0) }]);
    assert_eq!(kind(&only), ["*fp16D", "i32D", "i32"]);
}

#[test]
fn constants_come_from_the_launch_and_then_from_names() {
    let params = [param("WARPS", true), param("cols", true)];
    let found = of(&[launch(vec![])], &params, &Specialize::Jit).unwrap();
    assert_eq!((types(&found), found.class.as_str()), (vec!["=8".into(), "=7".into()], "cols=7"));
    let missing = of(&[launch(vec![])], &[param("BLOCK", true)], &Specialize::Jit).unwrap_err();
    assert!(missing.to_string().contains("`BLOCK` of `f`"), "{missing}");
    let default = JitParam { default: true, ..param("BLOCK", true) };
    assert_eq!(types(&of(&[launch(vec![])], &[default], &Specialize::Jit).unwrap()), ["default"]);
}

#[test]
fn what_a_function_cannot_take_is_refused() {
    let params = [param("n", false)];
    let count = of(&[launch(vec![])], &params, &Specialize::Jit).unwrap_err();
    assert_eq!(count, SpecialiseError::Count { function: "f".into(), has: 0, takes: vec!["n".into()] });
    let structure = of(&[launch(vec![Arg::Struct(vec![])])], &params, &Specialize::Jit).unwrap_err();
    let expected = SpecialiseError::Argument { function: "f".into(), at: 1, what: "a struct" };
    assert_eq!(structure, expected);
    assert_eq!(of(&[], &params, &Specialize::Jit).unwrap_err(), SpecialiseError::NoLaunch);
}

/// A launch of a function with constants and options of its own.
fn launch_of(function: &str, args: Vec<Arg>, constant: Option<i64>, num_warps: u32) -> Launch {
    let constexprs = constant.map(|value| ("BLOCK".to_string(), TritonConst::Int(value))).into_iter().collect();
    let options = TritonOptions { num_warps, ..TritonOptions::default() };
    let call = TritonCall { typed: vec![false; args.len()], constexprs, options };
    let entry = function.into();
    Launch::Kernel(KernelLaunch { entry, grid: [1; 3], args, triton: Some(call.into()), ..KernelLaunch::default() })
}

fn of_two(launches: &[Launch], open_options: bool) -> Specialised {
    let default = JitParam { default: true, ..param("BLOCK", true) };
    let functions = [
        ("f".to_string(), vec![param("n", false), default.clone()]),
        ("g".to_string(), vec![param("x", false), param("n", false), default]),
    ]
    .into();
    let given = Given {
        functions: &functions,
        first: Some("f"),
        names: &[("BLOCK".to_string(), TritonConst::Int(32))].into(),
        tunables: &|name| name == "BLOCK",
        open_options,
        specialize: &Specialize::Jit,
        buffer: &|name| Some((if name == "x" { DType::F16 } else { DType::F32 }, 256)),
    };
    specialise(launches, &given).unwrap()
}

/// The entries of the launches, those of the functions in order, and the class.
fn grouped_as(launches: &[Launch]) -> (String, String, String) {
    let found = of_two(launches, false);
    let entries = found.launches.iter().map(|launch| match launch {
        Launch::Kernel(kernel) => kernel.entry.clone(),
        Launch::Memset { buffer, .. } => buffer.clone(),
    });
    (entries.collect::<Vec<_>>().join(" "), found.entries().join(" "), found.class)
}

#[test]
fn launches_share_a_function_only_with_one_entry_equal_constants_options_and_types() {
    let text = |a: &str, b: &str, c: &str| (a.to_string(), b.to_string(), c.to_string());
    let f = |n, constant, warps| launch_of("f", vec![int(n)], constant, warps);
    let g = |buffer: &str| launch_of("g", vec![Arg::Pointer { buffer: buffer.into(), offset: 0 }, int(3)], None, 4);
    assert_eq!(grouped_as(&[f(16, None, 4), f(32, None, 4)]), text("f f", "f", "n%16"));
    let memset = Launch::Memset { buffer: "w".into(), value: 0 };
    let split = [f(16, None, 4), memset, g("x"), f(3, None, 4)];
    assert_eq!(grouped_as(&split), text("f w g f", "f g", "f();g()"));
    // The order is that of the first launches.
    assert_eq!(grouped_as(&[g("x"), f(16, None, 4)]), text("g f", "g f", "g();f(n%16)"));
    let constants = [f(2, Some(64), 4), f(2, None, 4), f(2, Some(64), 4)];
    assert_eq!(grouped_as(&constants), text("f f#2 f", "f f#2", "f(BLOCK=64);f#2()"));
    assert_eq!(grouped_as(&[f(2, None, 4), f(2, None, 8)]), text("f f#2", "f f#2", "f();f#2()"));
    assert_eq!(grouped_as(&[g("x"), g("y"), g("x")]), text("g g#2 g", "g g#2", "g();g#2()"));
    // Without `f`, which is declared first, a sequence is not that of another shape with `f` alone.
    assert_eq!(grouped_as(&[g("x")]), text("g", "g", "g()"));
    // A constant with a tunable's name is shown where it is not the tunable.
    assert_eq!(grouped_as(&[f(2, Some(64), 4)]).2, "BLOCK=64");
}

#[test]
fn each_function_has_its_own_types_threads_and_vanished_arguments() {
    let pointer = |buffer: &str| Arg::Pointer { buffer: buffer.into(), offset: 0 };
    let launches = [launch_of("f", vec![int(1)], None, 8), launch_of("g", vec![pointer("y"), int(1 << 31)], None, 2)];
    let found = of_two(&launches, true);
    let shape = |at: usize| match &found.launches[at] {
        Launch::Kernel(kernel) => (kernel.args.len(), kernel.block[0]),
        Launch::Memset { .. } => unreachable!(),
    };
    assert_eq!((shape(0), shape(1)), ((0, 256), (2, 64)));
    let functions: Vec<&str> = found.functions.iter().map(|f| f.compile.function.as_str()).collect();
    assert_eq!(functions, ["f", "g"]);
    let expected = "f(n=1,num_warps=8,num_stages=3,num_ctas=1);g(n:i64%16,num_warps=2,num_stages=3,num_ctas=1)";
    assert_eq!(found.class, expected);
}

#[test]
fn a_descriptor_is_compiled_for_its_element_type_and_block() {
    let descriptor = |tile: &[u32]| {
        Arg::TensorMap(TensorMap {
            buffer: "x".into(),
            dtype: DType::F16,
            extents: vec![64, 100],
            strides: vec![128],
            tile: tile.to_vec(),
            swizzle: 0,
            nan: false,
            l2_promotion: 0,
            descriptor: true,
        })
    };
    let params = [param("x", false), param("n", false)];
    let found = of(&[launch(vec![descriptor(&[64, 128]), int(5)])], &params, &Specialize::Jit).unwrap();
    assert_eq!(types(&found), ["tensordesc<fp16[128, 64]>", "i32"]);
    assert_eq!(found.class, "x:128x64");
    let Launch::Kernel(kernel) = &found.launches[0] else { unreachable!() };
    assert_eq!(kernel.args, [descriptor(&[64, 128]), int(5)]);
    // Other blocks are other functions.
    let two = [launch(vec![descriptor(&[64, 128]), int(5)]), launch(vec![descriptor(&[32, 32]), int(5)])];
    assert_eq!(of(&two, &params, &Specialize::Jit).unwrap().functions.len(), 2);
    let Arg::TensorMap(map) = descriptor(&[64, 8]) else { unreachable!() };
    let boxed = launch(vec![Arg::TensorMap(TensorMap { descriptor: false, ..map }), int(5)]);
    let refused = of(&[boxed], &params, &Specialize::Jit).unwrap_err();
    assert!(refused.to_string().contains("a tensor map with a `box`"), "{refused}");
}
