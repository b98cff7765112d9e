//! The functions of libdevice that Triton's interpreter lacks: what each gives at the values where implementations differ.

use std::path::Path;
use std::process::Command;

use crate::python::python;

/// Symbols without their prefix, arguments and results in Python's words. The results are those of the CUDA Math API ("Mathematical Functions", "Integer
/// Intrinsics", "Type Casting Intrinsics")
const KNOWN: &[(&str, &str, &str)] = &[
    ("tanhf", "f32(0, -0.0, inf, nan, 1)", "f32(0, -0.0, 1, nan, 0.76159416)"),
    ("erfinvf", "f32(-1, 1e-9, 0.5, 1, 2)", "f32(-inf, 8.8622692e-10, 0.47693628, inf, nan)"),
    ("erfinv", "f64(1 - 2**-53, -(1 - 2**-53), -1)", "f64(5.863584748755168, -5.863584748755168, -inf)"),
    ("tgamma", "f64(-5e-324, 5e-324)", "f64(-inf, inf)"),
    ("erfcinvf", "f32(0, 1, 2, 3)", "f32(inf, 0, -inf, nan)"),
    ("normcdfinv", "f64(0, 0.5, 1, -1)", "f64(-inf, 0, inf, nan)"),
    ("tgammaf", "f32(0, -0.0, -1, 5, 171, -inf)", "f32(inf, -inf, nan, 24, inf, nan)"),
    ("lgammaf", "f32(0, -1, 3, -inf)", "f32(inf, inf, 0.6931472, inf)"),
    ("sinpif", "f32(1, 0.5, -0.5, 100000.5, inf)", "f32(0, 1, -1, 1, nan)"),
    ("cospif", "f32(0.5, 1, 100001, inf)", "f32(0, -1, -1, nan)"),
    ("roundf", "f32(0.49999997, 0.5, -0.5, 2.5, 1e10)", "f32(0, 1, -1, 3, 1e10)"),
    ("rintf", "f32(0.5, 1.5, -2.5)", "f32(0, 2, -2)"),
    ("rsqrtf", "f32(0, -0.0, 4, -1)", "f32(inf, -inf, 0.5, nan)"),
    ("saturatef", "f32(-1, 0.5, 2, nan, 1e-40)", "f32(0, 0.5, 1, 0, 0)"),
    ("logbf", "f32(0, 6, -inf)", "f32(-inf, 2, inf)"),
    ("ilogbf", "f32(0, 6, inf, nan)", "i32(-2**31, 2, 2**31 - 1, -2**31)"),
    ("powf", "f32(1, -8, 0), f32(nan, 0.5, 0)", "f32(1, nan, 1)"),
    ("remainderf", "f32(3, 5, 1), f32(2, 3, 0)", "f32(-1, -1, nan)"),
    ("fmodf", "f32(-3, 5, 1), f32(2, 3, 0)", "f32(-1, 2, nan)"),
    ("fdimf", "f32(1, 3, nan), f32(3, 1, 1)", "f32(0, 2, nan)"),
    ("fmaf", "f32(1 + 2**-23), f32(1 + 2**-23), f32(-1)", "f32(2**-22 + 2**-46)"),
    ("fmaf", "f32(2**12 + 1), f32(2**12 + 1), f32(2**-40)", "f32(16785410)"),
    ("ldexpf", "f32(1, 1, 3), i32(200, -200, 2)", "f32(inf, 0, 12)"),
    ("nextafter", "f64(1), f64(2)", "f64(1 + 2**-52)"),
    ("copysignf", "f32(1e-40), f32(-1)", "f32(-1e-40)"),
    ("ldexpf", "f32(1), i32(-149)", "f32(2**-149)"),
    ("sqrtf", "f32(-1e-40, -1)", "f32(-0.0, nan)"),
    ("isnanf", "f32(nan, 1)", "np.array([True, False])"),
    ("signbitd", "f64(-0.0, nan, 1)", "np.array([True, False, False])"),
    ("float2int_rn", "f32(2.5, -2.5, 3e9, nan)", "i32(2, -2, 2**31 - 1, 0)"),
    ("float2uint_rz", "f32(2.9, -1, 5e9, nan)", "u32(2, 0, 2**32 - 1, 0)"),
    ("double2int_rn", "f64(nan)", "i32(-2**31)"),
    ("double2ll_rd", "f64(-2.5, 1e300, nan)", "i64(-3, 2**63 - 1, -2**63)"),
    ("llroundf", "f32(2.5, -2.5)", "i64(3, -3)"),
    ("fast_powf", "f32(2, -2, 0), f32(3, 2, 0)", "f32(8, nan, nan)"),
    ("powif", "f32(2, 0.5, 0.25), i32(-2, -149, -148)", "f32(0.25, inf, inf)"),
    ("fadd_rn", "f32(1e-40, 1), f32(1e-40, 1e-40)", "f32(0, 1)"),
    ("sinpi", "f64(0.9978182443442074)", "f64(0.006854133872132898)"),
    ("double2hiint", "f64(1)", "i32(0x3ff00000)"),
    ("double2loint", "f64(1 + 2**-52)", "i32(1)"),
    ("hiloint2double", "i32(0x3ff00000), i32(1)", "f64(1 + 2**-52)"),
    ("int_as_float", "i32(0x3f800000)", "f32(1)"),
    ("clz", "i32(0, 1, -1)", "i32(32, 31, 0)"),
    ("clzll", "i64(0, 1, -1)", "i32(64, 63, 0)"),
    ("ffs", "i32(0, 8, -2**31)", "i32(0, 4, 32)"),
    ("popcll", "i64(-1, 5)", "i32(64, 2)"),
    ("brev", "i32(1, -1)", "i32(-2**31, -1)"),
    ("mulhi", "i32(2**30, -1), i32(8, 1)", "i32(2, -1)"),
    ("umul64hi", "u64(2**63), u64(4)", "u64(2)"),
    ("mul24", "i32(0x00ffffff), i32(0x01000002)", "i32(-2)"),
    ("umul24", "u32(0x01000003), u32(5)", "u32(15)"),
    ("hadd", "i32(2**31 - 1, -3), i32(2**31 - 1, 0)", "i32(2**31 - 1, -2)"),
    ("rhadd", "i32(1, -3), i32(2, 0)", "i32(2, -1)"),
    ("sad", "i32(-5), i32(3), i32(1)", "i32(9)"),
    ("byte_perm", "i32(0x33221100), i32(0x77665544), i32(0x7410)", "i32(0x77441100)"),
    ("byte_perm", "i32(0x33228100), i32(0), i32(0x9999)", "i32(0x81818181 - 2**32)"),
];

/// Compares types, values and signs of zeros.
const CHECK: &str = r#"
import numpy as np
from numpy import inf, nan
import kforge_libdevice

def of(dtype):
    return lambda *values: np.array(values, dtype=dtype)

f32, f64, i32, i64, u32, u64 = map(of, ("f4", "f8", "i4", "i8", "u4", "u8"))
for name, given, expected in KNOWN:
    given, expected = eval(f"({given},)"), eval(expected)
    found = kforge_libdevice.FUNCTIONS["__nv_" + name](*given)
    same = found.dtype == expected.dtype and found.shape == expected.shape
    if same and found.dtype.kind == "f":
        same = np.allclose(found, expected, rtol=1e-7, atol=0, equal_nan=True)
        signs = (expected == 0) & (found == 0)
        same = same and (np.signbit(found) == np.signbit(expected))[signs & np.signbit(expected)].all()
    elif same:
        same = (found == expected).all()
    if not same:
        print(f"{name}{given} is {found!r}, expected {expected!r}")
"#;

#[test]
fn functions_of_libdevice_give_what_cuda_documents_at_their_edges() {
    let Some(python) = python() else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/worker/steps/verifier/interpreter");
    let known: Vec<String> =
        KNOWN.iter().map(|(name, given, expected)| format!("({name:?}, {given:?}, {expected:?})")).collect();
    let program = format!("import sys\nsys.path.insert(0, {folder:?})\nKNOWN = [{}]\n{CHECK}", known.join(", "));
    let output = Command::new(python).args(["-B", "-c", &program]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
