//! Texts that no person writes: import reads them without overflowing its stack and in linear time. A reader of exponential time would not end.

use super::*;

const KERNEL: &str = "__global__ void copy(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i]; }\n";

fn launched(grid: &str) -> ImportedManifest {
    of(&[("a.cu", &format!("{KERNEL}void go(float *x, float *y, int n) {{ copy<<<{grid}, 256>>>(x, y, n); }}"))])
}

#[test]
fn long_runs_of_operators_are_not_read() {
    for count in [500, 2_000, 8_000, 15_000, 40_000] {
        for (grid, shown) in [
            (format!("{}n", "- ".repeat(count)), "state it; the source has `- - - - - - "),
            (format!("{}n", "-".repeat(count)), "state it; the source has `---"),
            (format!("{}n", "(int)".repeat(count)), "state it; the source has `(int)(int)"),
            (format!("{}n", "n + ".repeat(count)), "state it; the source has `n + n +"),
            (format!("{}n", "n / ".repeat(count)), "state it; the source has `n / n /"),
        ] {
            let found = launched(&grid);
            let line = found.text.lines().find(|line| line.starts_with("grid = ")).unwrap_or_default();
            assert!(line.contains(shown) && line.len() < 300, "{count}: {}", &line[..line.len().min(300)]);
        }
    }
}

#[test]
fn the_longest_expressions_that_are_read_end() {
    for grid in [
        format!("{}n", "- ".repeat(499)),
        format!("{}n", "n + ".repeat(249)),
        format!("{}n", "n / ".repeat(249)),
        format!("{}n{}", "-(".repeat(166), ")".repeat(166)),
        format!("{}n{}", "(n - 1 + ".repeat(90), ")".repeat(90)),
        format!("{}n{}", "min(n, ".repeat(99), ")".repeat(99)),
    ] {
        launched(&grid);
    }
}

#[test]
fn signs_and_casts_before_an_operand_are_read() {
    for (grid, expected) in [
        ("(n - -255) / 256", "ceil_div(n, 256)"),
        ("(n + - - 255) / 256", "ceil_div(n, 256)"),
        ("(int)(unsigned)ceilf(n / 256.f)", "ceil_div(n, 256)"),
        ("(n - (int)-255) / 256", "ceil_div(n, 256)"),
    ] {
        says(&launched(grid), &[&format!("grid = [\"{expected}\"]")]);
    }
    // `--n` has another value than `n`.
    assert!(launched("--n").text.contains("state it; the source has `--n`"));
}
