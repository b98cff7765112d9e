//! The example of the manifest's reference binds to the values that it states.

use super::package;
use crate::model::bound::contiguous;
use crate::model::{
    Arch, Arg, CudaSpec, DType, Dependency, KernelLaunch, Launch, Reference, Role, Scalar, ShapeRole, Target,
};

const EXAMPLE: &str = include_str!("example.toml");

#[test]
fn its_package_says_what_it_states() {
    let package = package(EXAMPLE);
    assert_eq!((package.name.as_str(), package.version.as_str()), ("norms", "0.1.0"));
    assert_eq!((package.license.as_deref(), package.kforge.as_deref()), (Some("Apache-2.0"), Some("0.1")));
    assert_eq!(package.toolchain.cuda, Some(CudaSpec::Version("13.0".into())));
    assert_eq!(package.dependencies["common"], Dependency::Path { path: "../common".into(), include: ".".into() });
    let cutlass = Dependency::Pypi {
        requirement: "nvidia-cutlass==4.2.0".into(),
        include: "cutlass_library/source/include".into(),
    };
    assert_eq!(package.dependencies["cutlass"], cutlass);
    assert_eq!(package.targets["cpu"].arch, Arch::Cpu);
    let h200 = Target {
        name: "h200".into(),
        arch: Arch::Sm("sm_90a".into()),
        device: Some("NVIDIA H200".into()),
        ptx: false,
        fatbin: false,
    };
    assert_eq!(package.targets["h200"], h200);
}

#[test]
fn its_operator_binds_to_numbers() {
    let package = package(EXAMPLE);
    let operator = &package.operators[0];
    let labels: Vec<String> = operator.choices().iter().map(|c| c.label.clone()).collect();
    assert_eq!(labels, ["T=f32", "T=f16"]);
    let roles: Vec<_> = operator.shapes.iter().map(|s| (s.name.as_str(), s.role)).collect();
    assert_eq!(roles, [("ragged", ShapeRole::Verify), ("llama", ShapeRole::Bench), ("secret", ShapeRole::Holdout)]);
    let (f16, ragged) = (&operator.choices()[1], &operator.shapes[0]);
    let problem = operator.bind(f16, ragged).unwrap();
    assert_eq!(problem.dims.iter().map(|(n, v)| (n.as_str(), *v)).collect::<Vec<_>>(), [("cols", 257), ("rows", 3)]);
    let tensors: Vec<_> = problem.tensors.iter().map(|t| (t.name.as_str(), t.role, t.dtype, t.shape.clone())).collect();
    assert_eq!(
        tensors,
        [
            ("x", Role::Input, DType::F16, vec![3, 257]),
            ("w", Role::Input, DType::F16, vec![257]),
            ("y", Role::Output, DType::F16, vec![3, 257])
        ]
    );
    assert!(problem.tensors.iter().all(|t| t.strides == contiguous(&t.shape) && t.align == 256));
    assert_eq!((problem.params[0].dtype, problem.params[0].value), (DType::F32, Scalar::Float(1e-6)));
    assert!(matches!(&problem.reference, Reference::Builtin { name, .. } if name == "rms_norm"));
    assert_eq!(operator.flops(f16, ragged).unwrap(), Some(4.0 * 3.0 * 257.0));
    assert_eq!(operator.bytes(f16, ragged).unwrap(), None);
    let y = &operator.tolerances(f16, ragged).unwrap()["y"];
    assert_eq!((y.atol, y.rtol, y.ulp), (1e-3, 1e-3, 1.0));
    assert_eq!(operator.tolerances(&operator.choices()[0], ragged).unwrap()["y"].atol, 1e-5);
}

#[test]
fn its_variants_stand_in_declared_order_and_serve_what_they_say() {
    let package = package(EXAMPLE);
    let (kernel, operator) = (&package.kernels[0], &package.operators[0]);
    let choice = &operator.choices()[1];
    let variants = kernel.variants(&package.targets["h200"], choice).unwrap();
    let labels: Vec<_> = variants.iter().map(|v| (v.label.as_str(), v.order)).collect();
    assert_eq!(
        labels,
        [
            ("BLOCK=128,VEC=1", 0),
            ("BLOCK=128,VEC=4", 1),
            ("BLOCK=256,VEC=1", 2),
            ("BLOCK=256,VEC=4", 3),
            ("BLOCK=512,VEC=1", 4),
            ("BLOCK=512,VEC=4", 5)
        ]
    );
    let serves = |variant: usize, shape: &str| {
        kernel.serves(&variants[variant], operator, choice, operator.shape(shape).unwrap()).unwrap()
    };
    assert!(serves(0, "ragged") && !serves(1, "ragged") && serves(1, "llama"));
    assert_eq!(kernel.entries(&variants[3], choice), ["rms_norm<__half, 256, 4>"]);
    let defines: Vec<_> = kernel.defines(&variants[3], choice).into_iter().collect();
    assert_eq!(defines, [("BLOCK".to_string(), "256".to_string()), ("VEC".to_string(), "4".to_string())]);
    assert_eq!(kernel.class_of(operator, choice, &operator.shapes[0]).unwrap(), "all");
}

#[test]
fn its_launch_is_what_the_author_would_write() {
    let package = package(EXAMPLE);
    let (kernel, operator) = (&package.kernels[0], &package.operators[0]);
    let choice = &operator.choices()[1];
    let variant = &kernel.variants(&package.targets["cpu"], choice).unwrap()[3];
    let problem = operator.bind(choice, operator.shape("llama").unwrap()).unwrap();
    let pointer = |name: &str| Arg::Pointer { buffer: name.into(), offset: 0 };
    let i32 = |value| Arg::Scalar { dtype: DType::I32, value: Scalar::Int(value) };
    let expected = Launch::Kernel(KernelLaunch {
        entry: "rms_norm<__half, 256, 4>".into(),
        grid: [8192, 1, 1],
        block: [256, 1, 1],
        args: vec![
            pointer("x"),
            pointer("w"),
            pointer("y"),
            i32(8192),
            i32(4096),
            Arg::Scalar { dtype: DType::F32, value: Scalar::Float(1e-6) },
        ],
        ..KernelLaunch::default()
    });
    assert_eq!(kernel.launches(variant, choice, &problem).unwrap(), [expected]);
}

#[test]
fn its_method_turns_off_where_it_is_used() {
    let package = package(EXAMPLE);
    let (kernel, operator) = (&package.kernels[0], &package.operators[0]);
    let method = &kernel.methods[0];
    assert_eq!(method.id, "memory.vectorized_access");
    assert_eq!(method.signature.for_arch("sm_90a").unwrap().any, [r"LDG\.E\.128"]);
    let variants = kernel.variants(&package.targets["h200"], &operator.choices()[0]).unwrap();
    assert_eq!(kernel.without(&variants[0], method), None);
    let off = kernel.without(&variants[1], method).unwrap();
    assert_eq!((off.variant.label.as_str(), off.flags.len(), off.source), ("BLOCK=128,VEC=1", 0, None));
}
