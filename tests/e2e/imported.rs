//! Packages that `kforge import cuda` makes of kernels with their bindings and launchers: they build as they were written, and a wrong kernel among them is found.
//! The sources are re-creations of kinds of public code.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::project::{Built, Project};

/// A workspace with some files of a re-creation, imported.
fn imported(name: &str, only: &str, edit: impl Fn(String) -> String) -> Project {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/import").join(name);
    let mut project = Project::new();
    for entry in walkdir::WalkDir::new(&folder).into_iter().map(Result::unwrap).filter(|e| e.file_type().is_file()) {
        let name = entry.path().strip_prefix(&folder).unwrap().to_str().unwrap();
        if name.starts_with(only) {
            project = project.file(name, &edit(fs::read_to_string(entry.path()).unwrap()));
        }
    }
    let output = project.command(&["import", "cuda", "."]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    project
}

/// Whether each kernel passes at every shape.
fn passes(built: &Built) -> BTreeMap<String, bool> {
    let mut found = BTreeMap::new();
    for step in built.finished().filter(|step| step["kind"] == "judge") {
        let kernel = step["labels"]["kernel"].as_str().unwrap().to_string();
        *found.entry(kernel).or_insert(true) &= step["verdict"] == "pass";
    }
    found
}

#[test]
#[ignore = "second tier: builds an imported folder"]
fn an_imported_folder_builds_and_a_wrong_kernel_in_it_is_found() {
    let project =
        imported("collection", "relu", |text| text.replace("b.w = fmaxf(0.0f, a.w)", "b.w = fmaxf(0.0f, a.z)"));
    let kernels = ["--kernel", "relu_f32_kernel", "--kernel", "relu_f32x4_kernel"];
    let built = project.build(&[&["--target", "cpu", "--keep-going"], &kernels[..]].concat()).expect(100);
    let expected = [("relu_f32_kernel".to_string(), true), ("relu_f32x4_kernel".to_string(), false)];
    assert_eq!(passes(&built), BTreeMap::from(expected), "{}", built.stderr());
}

#[test]
#[ignore = "second tier: many compilations"]
fn every_kernel_of_an_imported_collection_passes_as_it_is() {
    let built = imported("collection", "", |text| text).build(&["--target", "cpu"]).expect(0);
    let found = passes(&built);
    assert!(found.len() == 16 && found.values().all(|pass| *pass), "{found:?}\n{}", built.stderr());
}

#[test]
#[ignore = "second tier: many compilations"]
fn a_trainer_with_launchers_and_main_passes_once_its_unknown_kernel_is_stated() {
    let project = imported("trainer", "", |text| text);
    // Without the unknown kernel, which is a comment.
    let built = project.build(&["--target", "cpu"]).expect(0);
    assert_eq!(passes(&built), BTreeMap::from([("softmax_forward_kernel1".to_string(), true)]), "{}", built.stderr());
    let text = fs::read_to_string(project.root().join("kernel.toml")).unwrap();
    let (known, unknown) = text.split_once("\n# [operator.").unwrap();
    let plain: String = unknown.lines().map(|l| format!("{}\n", l.strip_prefix("# ").unwrap_or(l))).collect();
    let text = format!("{known}\n[operator.{plain}");
    let reference = "reference = \"ref.cpp::crossbreed\"";
    project.write("kernel.toml", &text.replacen("reference = \"\"", reference, 1));
    project.write(
        "ref.cpp",
        "extern \"C\" void crossbreed(const kforge::Call& call) {
    const double* inp = call.floats(\"inp\");
    double* out = call.out_floats(\"out\");
    const int64_t n = call.dim(\"T\");
    for (int64_t i = 0; i < n; i++) out[i] = inp[i] * call.param(\"rate\") + inp[(i + 1) % n];
}
",
    );
    let built = project.build(&["--target", "cpu"]).expect(0);
    let expected = ["crossbreed_kernel", "softmax_forward_kernel1"].map(|kernel| (kernel.to_string(), true));
    assert_eq!(passes(&built), BTreeMap::from(expected), "{}", built.stderr());
}

/// A defect: its name, a text of the kernel, and what that becomes.
type Defect = (&'static str, &'static str, &'static str);

/// Kernels in the style of public code, and defects of each.
const DEFECTS: [(&str, &[Defect]); 6] = [
    (
        "vector_add",
        &[
            ("bound", "if (i + 3 < n) {", "if (i < n) {"),
            ("blocks", "dim3 grid((n + threads * 4 - 1) / (threads * 4));", "dim3 grid(n / (threads * 4));"),
        ],
    ),
    (
        "softmax",
        &[
            (
                "barrier",
                "  if (lane == 0) shared[warp] = most;\n  __syncthreads();",
                "  if (lane == 0) shared[warp] = most;",
            ),
            ("stride", "float *y = out + blockIdx.x * C;", "float *y = out + blockIdx.x * blockDim.x;"),
        ],
    ),
    (
        "layernorm",
        &[
            ("bound", "  if (row >= N) return;\n", ""),
            ("off_by_one", "if (row >= N) return;", "if (row > N) return;"),
            ("stride", "out[row * C + i]", "out[row * warps + i]"),
        ],
    ),
    (
        "sgemm",
        &[
            ("bound", "if (row < M && column < N) C", "if (row < M) C"),
            ("barrier", "bs[k][threadIdx.x];\n    __syncthreads();", "bs[k][threadIdx.x];"),
            ("rest", "k0 + threadIdx.x < K ?", "k0 < K ?"),
            ("stride", "B[(k0 + threadIdx.y) * N + column]", "B[(k0 + threadIdx.y) * K + column]"),
        ],
    ),
    (
        "transpose",
        &[
            ("bound", "if (x < rows && y + j < cols) out", "if (x < rows) out"),
            ("barrier", "  __syncthreads();\n", ""),
            ("block", "x = blockIdx.y * TILE + threadIdx.x;", "x = blockIdx.x * TILE + threadIdx.x;"),
        ],
    ),
    (
        "embedding",
        &[
            ("bound", "if (column < emb_size) output", "output"),
            ("block", "blockIdx.y * blockDim.x + threadIdx.x", "threadIdx.x"),
            ("stride", "idx[row] * emb_size", "idx[row] * n"),
        ],
    ),
];

/// Imports a kernel beside its defects, each in a file of its own, and builds them at the shapes that import wrote. `edit` completes what it asks for.
fn only_the_honest_one_passes(name: &str, edit: impl Fn(String) -> String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/import/mutants");
    let source = fs::read_to_string(folder.join(format!("{name}.cu"))).unwrap();
    let (_, defects) = DEFECTS.into_iter().find(|(of, _)| *of == name).unwrap();
    let mut project = Project::new().file("honest.cu", &source);
    for (defect, from, to) in defects {
        assert_eq!(source.matches(from).count(), 1, "`{from}` in {name}");
        project = project.file(&format!("{defect}.cu"), &source.replace(from, to));
    }
    let output = project.command(&["import", "cuda", "."]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let written = fs::read_to_string(project.root().join("kernel.toml")).unwrap();
    project.write("kernel.toml", &edit(written.clone()));
    let built = project.build(&["--target", "cpu", "--keep-going"]).expect(100);
    let found = passes(&built);
    assert_eq!(found.len(), defects.len() + 1, "{found:?}\n{}", built.stderr());
    for (kernel, pass) in &found {
        assert_eq!(*pass, kernel.starts_with("honest_"), "{kernel}\n{written}\n{}", built.stderr());
    }
}

#[test]
#[ignore = "second tier: builds an imported folder at all its shapes"]
fn defects_of_a_vectorized_sum_fail_at_the_imported_shapes() {
    only_the_honest_one_passes("vector_add", |text| text);
}

#[test]
#[ignore = "second tier: many compilations"]
fn defects_of_a_layer_norm_fail_at_the_imported_shapes() {
    only_the_honest_one_passes("layernorm", |text| text);
}

#[test]
#[ignore = "second tier: many compilations"]
fn defects_of_a_transpose_fail_at_the_imported_shapes() {
    only_the_honest_one_passes("transpose", |text| text);
}

#[test]
#[ignore = "second tier: many compilations"]
fn defects_of_a_softmax_and_a_matrix_product_fail_at_the_imported_shapes() {
    only_the_honest_one_passes("softmax", |text| text);
    only_the_honest_one_passes("sgemm", |text| text);
}

#[test]
#[ignore = "second tier: many compilations"]
fn defects_of_an_unknown_kernel_fail_at_the_imported_shapes_once_its_reference_is_stated() {
    only_the_honest_one_passes("embedding", |text| {
        let (known, unknown) = text.split_once("\n# [operator.").unwrap();
        let plain: String = unknown.lines().map(|l| format!("{}\n", l.strip_prefix("# ").unwrap_or(l))).collect();
        let reference =
            "reference = { builtin = \"embedding\", names = { ids = \"idx\", w = \"weight\", y = \"output\" } }";
        let shape = "inputs.idx = { dtype = \"i32\", shape = [\"n\"";
        format!("{known}\n[operator.{plain}")
            .replace("reference = \"\"", reference)
            .replace(&format!("{shape}, \"emb_size\"]"), &format!("{shape}]"))
    });
}
