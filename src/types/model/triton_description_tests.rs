//! What machine code in Triton assumes holds at the shapes of its class, and at no shape that needs other machine code.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::model::expr::{Scope, Value, Want};
use crate::model::triton::{Given, Specialised, specialise};
use crate::model::{Place, inherit, parse};
use kforge_foundation::base::SourceFile;

const MANIFEST: &str = r#"
[package]
name = "t"
[targets.gpu]
arch = "sm_90a"
[operator.o]
dims = ["n", "m"]
inputs.x = { dtype = "f16", shape = ["n", "m"] }
outputs.y = { dtype = "f16", shape = ["n", "m"] }
params.eps = { dtype = "f32", value = 0.5 }
params.count = { dtype = "i32", value = 1 }
reference = { builtin = "elementwise", y = "2 * x" }
shapes.a = { n = 64, m = 32 }
shapes.b = { n = 65, m = 32 }
shapes.c = { n = 64, m = 1 }
shapes.d = { n = 3, m = 7 }
shapes.e = { n = 1, m = 16 }
shapes.f = { n = 128, m = 65536 }
[kernel.k]
operator = "o"
language = "triton"
source = "k.py"
tune.W = [4]
[[kernel.k.launch]]
entry = "f"
grid = ["n"]
args = [{ ptr = "x", offset = "m * 3" }, "y", "n", "m", "n * m * 1024", "eps", "count"]
constexprs = { BLOCK = { next_pow2 = "m" }, EVEN = "n % 2 == 0", HALF = "eps" }
[[kernel.k.launch]]
when = "m > 8"
entry = "f"
grid = ["n"]
args = ["x", "y", "n", "iteration + 16", "n", "eps", "count"]
constexprs = { BLOCK = { next_pow2 = "m" }, EVEN = "n % 2 == 0", HALF = "eps" }
repeat = 2
"#;

fn params() -> Vec<JitParam> {
    let plain = ["x", "y", "n", "m", "size", "eps", "count"].map(|name| (name, false));
    let constants = ["BLOCK", "EVEN", "HALF", "W"].map(|name| (name, true));
    let param = |(name, constexpr): (&str, bool)| JitParam { name: name.into(), constexpr, default: false };
    plain.into_iter().chain(constants).map(param).collect()
}

/// `parts` writes a part for each of several rows, and `sum` adds them; one row needs no sum.
const TWO: &str = r#"
[[kernel.k.launch]]
entry = "f"
grid = ["n"]
args = ["x", "y", "n"]
[[kernel.k.launch]]
when = "n > 1"
entry = "g"
grid = ["m"]
args = ["y", "m"]
[[kernel.k.launch]]
when = "n > 64"
entry = "f"
grid = ["n"]
args = ["x", "y", "n"]
"#;

#[test]
fn a_launch_whose_function_is_not_compiled_is_left_out_and_that_is_assumed() {
    let head = MANIFEST.split("[[kernel.k.launch]]").next().unwrap();
    let file = Arc::new(SourceFile { name: "kernel.toml".into(), text: format!("{head}specialize = \"none\"\n{TWO}") });
    let (manifest, wrong) = parse(&file);
    let package = manifest.and_then(|manifest| inherit(&manifest, None).0).unwrap_or_else(|| panic!("{wrong:?}"));
    let (kernel, operator) = (&package.kernels[0], &package.operators[0]);
    let choice = &operator.choices()[0];
    let variant = &kernel.variants(&package.targets["gpu"], choice).unwrap()[0];
    let param = |name: &str| JitParam { name: name.into(), constexpr: false, default: false };
    let functions: BTreeMap<String, Vec<JitParam>> =
        [("f".to_string(), ["x", "y", "n"].map(param).into()), ("g".to_string(), ["y", "m"].map(param).into())].into();
    let of = |shape: &str| {
        let problem = operator.bind(choice, operator.shape(shape).unwrap()).unwrap();
        let (declared, launches): (Vec<usize>, Vec<_>) =
            kernel.declared_launches(variant, choice, &problem).unwrap().into_iter().unzip();
        let given = Given {
            functions: &functions,
            first: Some("f"),
            names: &BTreeMap::new(),
            tunables: &|_| false,
            open_options: false,
            specialize: &kernel.specialize,
            buffer: &|_| Some((DType::F16, 256)),
        };
        let specialised = specialise(&launches, &given).unwrap();
        let sequence = kernel.sequence(variant, choice, &problem).unwrap();
        let of = Described {
            kernel,
            problem: &problem,
            functions: &functions,
            specialised: &specialised,
            declared: &declared,
        };
        let sequence = of.sequence(sequence).unwrap();
        let entries = sequence.launches.iter().map(|launch| match &launch.action {
            ActionDescription::Kernel { entry, .. } => entry.clone(),
            ActionDescription::Memset { .. } => String::new(),
        });
        let entries: Vec<String> = entries.collect();
        (specialised.class, entries, sequence, problem)
    };
    // `e` has one row, `d` has three; the third launch shares the function of the first, although neither shape makes it.
    let (one, few) = (of("e"), of("d"));
    assert_eq!((one.1.join(" "), few.1.join(" ")), ("f f".into(), "f g f".into()));
    assert_ne!(one.0, few.0);
    for (sequence, at_one, at_few) in [(&one.2, true, false), (&few.2, true, true)] {
        assert_eq!((holds(sequence, &one.3), holds(sequence, &few.3)), (at_one, at_few));
    }
}

/// Whether everything that a sequence assumes holds for a problem.
fn holds(sequence: &LaunchSequence, problem: &Problem) -> bool {
    let mut scope: Scope = problem.dims.iter().map(|(name, value)| (name.clone(), Value::Int(*value))).collect();
    scope.extend(problem.params.iter().map(|p| (p.name.clone(), p.value.to_value())));
    let truth = |text: &str, scope: &Scope| {
        let file = Arc::new(SourceFile { name: "t".into(), text: text.into() });
        Expr::parse(text, Want::Bool, Place::new(&file, 0..text.len())).unwrap().truth(scope).unwrap()
    };
    sequence.launches.iter().all(|launch| {
        let ActionDescription::Kernel { assumes, .. } = &launch.action else { return true };
        (0..2).all(|iteration| {
            scope.insert(ITERATION.into(), Value::Int(iteration));
            launch.when.as_ref().is_some_and(|when| !truth(when, &scope))
                || assumes.iter().all(|one| truth(one, &scope))
        })
    })
}

#[test]
fn assumptions_hold_at_the_shapes_of_the_class_and_tell_classes_apart() {
    let file = Arc::new(SourceFile { name: "kernel.toml".into(), text: MANIFEST.into() });
    let (manifest, wrong) = parse(&file);
    let package = manifest.and_then(|manifest| inherit(&manifest, None).0);
    let package = package.unwrap_or_else(|| panic!("{wrong:?}"));
    let (kernel, operator) = (&package.kernels[0], &package.operators[0]);
    let choice = &operator.choices()[0];
    let variant = &kernel.variants(&package.targets["gpu"], choice).unwrap()[0];
    let functions: BTreeMap<String, Vec<JitParam>> = [("f".to_string(), params())].into();
    let mut found: Vec<(String, Problem, Specialised, LaunchSequence)> = vec![];
    for shape in &operator.shapes {
        let problem = operator.bind(choice, shape).unwrap();
        let (declared, launches): (Vec<usize>, Vec<_>) =
            kernel.declared_launches(variant, choice, &problem).unwrap().into_iter().unzip();
        let names: BTreeMap<String, TritonConst> = [("W".to_string(), TritonConst::Int(4))].into();
        let given = Given {
            functions: &functions,
            first: Some("f"),
            names: &names,
            tunables: &|name| name == "W",
            open_options: false,
            specialize: &kernel.specialize,
            buffer: &|_| Some((DType::F16, 256)),
        };
        let specialised = specialise(&launches, &given).unwrap();
        let sequence = kernel.sequence(variant, choice, &problem).unwrap();
        let of = Described {
            kernel,
            problem: &problem,
            functions: &functions,
            specialised: &specialised,
            declared: &declared,
        };
        let sequence = of.sequence(sequence).unwrap();
        found.push((shape.name.clone(), problem, specialised, sequence));
    }
    for (name, _, specialised, sequence) in &found {
        for (other, problem, theirs, _) in &found {
            let same = specialised.class == theirs.class;
            // All classes here differ in a constant, or in an argument that vanished or is divisible.
            assert_eq!(holds(sequence, problem), same, "{name} ({}) at {other} ({})", specialised.class, theirs.class);
        }
        // The described arguments are those of the bound launches.
        for (launch, bound) in sequence.launches.iter().zip(&specialised.launches) {
            let (ActionDescription::Kernel { args, block, .. }, Launch::Kernel(bound)) = (&launch.action, bound) else {
                unreachable!()
            };
            let dtype = |arg: &crate::model::Arg| match arg {
                crate::model::Arg::Scalar { dtype, .. } => Some(*dtype),
                _ => None,
            };
            let described = args.iter().map(|arg| match arg {
                ArgDescription::Scalar(scalar) => Some(scalar.dtype),
                _ => None,
            });
            assert_eq!(described.collect::<Vec<_>>(), bound.args.iter().map(dtype).collect::<Vec<_>>(), "{name}");
            assert_eq!(block, &["128"]);
        }
    }
    let ActionDescription::Kernel { assumes, .. } = &found[2].3.launches[0].action else { unreachable!() };
    assert!(assumes.contains(&"(m) == 1".to_string()), "{assumes:?}");
    assert!(assumes.contains(&"(eps) == 0.5".to_string()), "{assumes:?}");
}
