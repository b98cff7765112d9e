//! Names of usual libraries that are classes, or aliases of classes of the same library, in every version of it. Every other name of a namespace that is not here
//! may be an alias of a type that the source can name without it: `using real = float;`.

/// Classes of c10, which `at` and `torch` take over by using directives.
const C10: [&str; 11] = [
    "BFloat16",
    "Float8_e4m3fn",
    "Float8_e4m3fnuz",
    "Float8_e5m2",
    "Float8_e5m2fnuz",
    "Half",
    "Scalar",
    "complex",
    "qint32",
    "qint8",
    "quint8",
];

/// Classes of ATen, which `torch` takes over.
const ATEN: [&str; 9] = [
    "PackedTensorAccessor",
    "PackedTensorAccessor32",
    "PackedTensorAccessor64",
    "PhiloxCudaState",
    "Tensor",
    "TensorAccessor",
    "TensorIterator",
    "TensorIteratorBase",
    "TensorOptions",
];

/// Classes of other libraries.
const OTHERS: [&str; 3] = ["Eigen::bfloat16", "Eigen::half", "half_float::half"];

/// Whether a qualified name without template arguments is known to be a class.
pub(super) fn is_class(name: &str) -> bool {
    let of_torch = || match name.split_once("::")? {
        ("c10", last) => Some(C10.contains(&last)),
        ("at" | "torch", last) => Some(C10.contains(&last) || ATEN.contains(&last)),
        _ => None,
    };
    OTHERS.contains(&name) || of_torch().unwrap_or(false)
}
