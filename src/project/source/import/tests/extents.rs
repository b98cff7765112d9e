//! Extents of outputs, by the index of their stores.

use super::*;

#[test]
fn an_output_has_the_extent_of_the_index_that_is_stored() {
    let kernel = |name: &str, body: &str| {
        format!("__global__ void {name}(const float *x, float *y, int rows, int cols) {{ {body} }}\n")
    };
    let columns = "float s = 0; for (int r = 0; r < rows; ++r) s += x[r * cols + c]; y[c] = s / rows;";
    let in_row = "float s = 0; for (int c = 0; c < cols; ++c) s += x[r * cols + c]; y[r] = s / cols;";
    let index = "blockIdx.x * blockDim.x + threadIdx.x";
    let by_rows = "\"builtin:mean\"";
    let by_columns = "{ builtin = \"mean\", axis = 0 }";
    for (body, grid, shape, reference) in [
        (format!("int c = {index}; if (c >= cols) return; {columns}"), "(n + 127) / 128", "cols", by_columns),
        (format!("int c = {index}; if (c < cols) {{ {columns} }}"), "(n + 127) / 128", "cols", by_columns),
        (format!("int c = {index}; if (cols <= c) return; {columns}"), "(n + 127) / 128", "cols", by_columns),
        (
            format!("for (int c = {index}; c < cols; c += gridDim.x * blockDim.x) {{ {columns} }}"),
            "8",
            "cols",
            by_columns,
        ),
        (format!("int r = {index}; if (r >= rows) return; {in_row}"), "(m + 127) / 128", "rows", by_rows),
        (format!("const int r = blockIdx.x; if (threadIdx.x) return; {in_row}"), "m", "rows", by_rows),
        (in_row.replace("y[r]", "y[blockIdx.x]").replace("r * cols", "blockIdx.x * cols"), "m", "rows", by_rows),
    ] {
        let source = format!(
            "{}void go(float *a, float *c, int m, int n) {{ mean_of<<<{grid}, 128>>>(a, c, m, n); }}",
            kernel("mean_of", &body)
        );
        let found = of(&[("a.cu", &source)]);
        assert_eq!(found.known, 1, "{}", found.text);
        says(
            &found,
            &["inputs.x = { dtype = \"f32\", shape = [\"rows\", \"cols\"] }", &format!("reference = {reference}")],
        );
        let line = format!("outputs.y = {{ dtype = \"f32\", shape = [\"{shape}\"] }}");
        assert!(found.text.lines().any(|l| l == line), "{line}\n{}", found.text);
    }
    // An index that is not plain is asked for.
    let source = format!(
        "{}void go(float *a, float *c, int m, int n) {{ mean_of<<<m, 128>>>(a, c, m, n); }}",
        kernel("mean_of", &format!("int r = {index} / 2; {}", in_row.replace("y[r]", "y[r + 0]")))
    );
    says(
        &of(&[("a.cu", &source)]),
        &[
            "outputs.y = { dtype = \"f32\", shape = [\"rows\"] } # check: that it has an element for each of `rows` is a guess",
        ],
    );
}
