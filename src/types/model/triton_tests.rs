//! The rule by which arguments are specialised.

use super::*;

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
    let given = Given {
        params,
        names: &names,
        tunables: &|name| name == "WARPS",
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
    specialised.compile.params.iter().map(kind).collect()
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
fn what_one_binary_cannot_serve_is_refused() {
    let params = [param("n", false)];
    let count = of(&[launch(vec![])], &params, &Specialize::Jit).unwrap_err();
    assert_eq!(count, SpecialiseError::Count { function: "f".into(), has: 0, takes: vec!["n".into()] });
    let Launch::Kernel(kernel) = launch(vec![int(2)]) else { unreachable!() };
    let other = Launch::Kernel(KernelLaunch { entry: "g".into(), ..kernel });
    let differ = of(&[launch(vec![int(2)]), other], &params, &Specialize::Jit).unwrap_err();
    assert_eq!(differ, SpecialiseError::Differ("entries"));
    let structure = of(&[launch(vec![Arg::Struct(vec![])])], &params, &Specialize::Jit).unwrap_err();
    assert_eq!(structure, SpecialiseError::Argument(1, "a struct"));
    assert_eq!(of(&[], &params, &Specialize::Jit).unwrap_err(), SpecialiseError::NoLaunch);
}
