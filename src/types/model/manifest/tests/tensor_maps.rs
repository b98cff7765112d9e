//! Tensor maps: what they bind to, and that anything the driver would refuse is reported at its place.

use super::{error, launched, package, under};
use crate::model::tensor_map::TensorMap;
use crate::model::{Arg, DType, Launch};

/// A kernel of f16 matrices with a map among its arguments.
fn with(map: &str) -> String {
    format!(
        "[package]\nname = \"maps\"\n[targets.h200]\narch = \"sm_90a\"\n[targets.old]\narch = \"sm_89\"\n\
         [operator.copy]\ndims = [\"m\", \"n\"]\n\
         inputs.x = {{ dtype = \"f16\", shape = [2, \"m\", \"n\"] }}\n\
         inputs.odd = {{ dtype = \"f16\", shape = [\"m\", \"n + 1\"] }}\n\
         inputs.loose = {{ dtype = \"f16\", shape = [\"m\", \"n\"], align = 8 }}\n\
         inputs.gaps = {{ dtype = \"f32\", shape = [\"m\"], strides = [2] }}\n\
         inputs.ids = {{ dtype = \"i32\", shape = [\"m\"] }}\n\
         inputs.one = {{ dtype = \"f32\", shape = [] }}\n\
         inputs.many = {{ dtype = \"f32\", shape = [1, 1, 1, 1, 1, 4] }}\n\
         outputs.y = {{ dtype = \"f16\", shape = [2, \"m\", \"n\"] }}\n\
         reference = \"ref.py::copy\"\ntolerance = {{ atol = 1e-3 }}\n\
         shapes.small = {{ m = 8, n = 64 }}\n\
         [kernel.copy]\noperator = \"copy\"\nsource = \"copy.cu\"\ntargets = [\"h200\"]\n\
         tune.BN = [64, 32]\n\
         workspace.part = {{ dtype = \"f32\", shape = [\"m\", \"n\"] }}\n\
         [[kernel.copy.launch]]\nentry = \"copy<BN>\"\ngrid = [\"m\"]\nblock = [128]\nargs = [{map}]\n"
    )
}

fn bound(map: &str) -> TensorMap {
    let (launches, _) = launched(&package(&with(map)), "small");
    let Launch::Kernel(launch) = &launches[0] else { panic!("a kernel") };
    let [Arg::TensorMap(map)] = &launch.args[..] else { panic!("a tensor map") };
    map.clone()
}

#[test]
fn a_map_counts_axes_from_the_innermost_and_strides_in_bytes() {
    let map =
        bound("{ tensormap = \"x\", box = [\"BN\", 8, 1], swizzle = \"2 * BN\", oob = \"nan\", l2_promotion = 256 }");
    let expected = TensorMap {
        buffer: "x".into(),
        dtype: DType::F16,
        extents: vec![64, 8, 2],
        strides: vec![128, 1024],
        tile: vec![64, 8, 1],
        swizzle: 128,
        nan: true,
        l2_promotion: 256,
        descriptor: false,
    };
    assert_eq!(map, expected);
    let text = serde_json::to_string(&bound("{ tensormap = \"part\", box = [4, 4] }")).unwrap();
    let plain = "{\"buffer\":\"part\",\"dtype\":\"f32\",\"extents\":[64,8],\"strides\":[256],\"box\":[4,4]}";
    assert_eq!(text, plain, "what is not stated is not in keys");
    assert_eq!(bound("{ tensormap = \"ids\", box = [4], oob = \"zero\" }").strides, [0u64; 0]);
}

#[test]
fn what_the_driver_would_refuse_is_said_at_its_place() {
    for (map, place, message, expected) in [
        ("tensormap = \"one\", box = [4]", "\"one\"", "`one` has 0 axes", "1 to 5 axes"),
        ("tensormap = \"many\", box = [4]", "\"many\"", "`many` has 6 axes", "1 to 5 axes"),
        ("tensormap = \"gaps\", box = [4]", "\"gaps\"", "lie 2 apart along its last axis", "neighbours"),
        ("tensormap = \"loose\", box = [8, 8]", "\"loose\"", "aligned to 8 bytes", "an `align` of 16"),
        (
            "tensormap = \"odd\", box = [8, 8]",
            "\"odd\"",
            "along axis 0 of `odd` lie 130 bytes apart",
            "a multiple of 16",
        ),
        ("tensormap = \"x\", box = [8, 8]", "[8, 8]", "a box of 2 axes for `x`, which has 3", "innermost first"),
        ("tensormap = \"x\", box = [8, 257, 1]", "257", "`257` is 257", "1 to 256"),
        ("tensormap = \"x\", box = [8, \"BN - 64\", 1]", "\"BN - 64\"", "`BN - 64` is 0", "1 to 256"),
        ("tensormap = \"x\", box = [12, 8, 1]", "12", "a row of the box has 24 bytes", "a multiple of 16"),
        ("tensormap = \"x\", box = [64, 8, 1], swizzle = 64", "64", "a row of the box has 128 bytes", "at most the 64"),
        ("tensormap = \"x\", box = [8, 8, 1], swizzle = 48", "48", "`swizzle` is 48", "0, 32, 64, 128"),
        ("tensormap = \"x\", box = [8, 8, 1], l2_promotion = 32", "32", "`l2_promotion` is 32", "0, 64, 128, 256"),
        (
            "tensormap = \"ids\", box = [4], oob = \"nan\"",
            "\"nan\"",
            "of dtype i32, which has no NaN",
            "`oob = \"zero\"`",
        ),
    ] {
        let error = error(&with(&format!("{{ {map} }}")));
        assert_eq!((error.code, under(&error)), ("manifest.tensor-map", place), "{map}");
        assert!(error.message.contains(message), "{map}: {}", error.message);
        assert!(error.expected.as_deref().unwrap_or_default().contains(expected), "{map}: {:?}", error.expected);
    }
}

#[test]
fn a_map_is_spelt_with_its_own_keys_and_names_that_are() {
    let code = |map: &str| {
        let error = error(&with(&format!("{{ {map} }}")));
        (error.code, under(&error).to_string())
    };
    let of = |code: &'static str, place: &str| (code, place.to_string());
    assert_eq!(code("tensormap = \"x\""), of("manifest.missing-key", "\"x\""));
    assert_eq!(code("tensormap = \"z\", box = [8, 8, 1]"), of("manifest.unknown-tensor", "\"z\""));
    assert_eq!(code("tensormap = \"x\", box = [\"BM\", 8, 1]"), of("manifest.unknown-name", "BM"));
    assert_eq!(code("tensormap = \"x\", box = [8, 8, 1], oob = \"one\""), of("manifest.value", "\"one\""));
    assert_eq!(code("ptr = \"x\", swizzle = 128"), of("manifest.conflict", "swizzle"));
    assert_eq!(code("tensormap = \"x\", box = [8, 8, 1], dtype = \"f16\""), of("manifest.conflict", "dtype"));
}

#[test]
fn maps_need_an_architecture_that_copies_by_them() {
    let text = with("{ tensormap = \"x\", box = [8, 8, 1] }").replace("targets = [\"h200\"]", "targets = [\"old\"]");
    let error = error(&text);
    assert_eq!((error.code, under(&error)), ("manifest.tensor-map", "\"x\""));
    assert_eq!(error.expected.as_deref(), Some("sm_90 or newer, not sm_89"));
}
