//! Wrong kernels are detected and reported in words that lead to the mistake. Indecisive operators are reported too.

use crate::project::{Built, Project};
use crate::sample::{ONE, SUM, one_kernel, sample};

/// Kernel `k` over `n` elements with this body; `i` is the thread's index.
fn body(text: &str) -> Project {
    one_kernel(&kernel(text))
}

fn kernel(text: &str) -> String {
    format!("__global__ void k(const float *x, float *y, int n) {{\n  int i = threadIdx.x;\n  {text}\n}}\n")
}

const JUDGE: &str = "one/k/cpu/tiny/judge";

/// A one-line description of why a step fails.
#[track_caller]
fn failure(built: &Built, id: &str) -> String {
    let verdict = &built.step(id)["verdict"];
    verdict["fail"].as_str().unwrap_or_else(|| panic!("{id}: {verdict}\n{}", built.stderr())).to_string()
}

#[test]
fn a_missing_syncthreads_is_a_race_that_is_named() {
    let project = sample();
    // The sum spans more than a warp, so that no hardware orders it by chance.
    project.edit("kernel.toml", "tune.BLOCK = [4]", "tune.BLOCK = [64]");
    project.edit("kernel.toml", "shapes.small = { rows = 2, cols = 9 }", "shapes.small = { rows = 2, cols = 70 }");
    project.write("inc/sum.h", &SUM.replacen("    __syncthreads();\n  }", "  }", 1));
    let built = project.build(&["--kernel", "direct"]).expect(100);
    let why = failure(&built, "sample/direct/BLOCK=64/cpu/small/judge");
    assert!(why.contains("of `part`") && why.contains("with no synchronisation between them"), "{why}");
    assert!(why.contains("inc/sum.h:7"), "the line of the sum: {why}");
}

#[test]
#[ignore = "second tier: many builds"]
fn a_template_argument_that_directives_ask_too_is_refused() {
    let project = sample();
    project.edit("kernel.toml", "entry = \"direct\"", "entry = \"direct<BLOCK>\"");
    project.edit("direct.cu", "__global__", "template <int BLOCK> __global__");
    project.build(&["--kernel", "direct"]).expect(0);
    project.edit("inc/sum.h", "  return part[0];", "#if BLOCK == 4\n  return part[0];\n#else\n  return 0;\n#endif");
    let built = project.build(&["--kernel", "direct"]).expect(101);
    built.says("tunable `BLOCK` is an argument of the entry's template and is also used by the preprocessor in `inc/sum.h`; rename one of them");
}

#[test]
fn an_element_that_nobody_writes_is_named() {
    let built = body("if (i < n - 1) y[i] = 2 * x[i] + 1;").build(&[]).expect(100);
    assert_eq!(failure(&built, JUDGE), "1 of 10 elements of the output `y` was not written, at 9");
    assert!(!built.stderr().contains("order of threads"), "{}", built.stderr());
}

#[test]
fn an_off_by_one_at_the_ragged_edge_names_output_index_got_and_want() {
    let built = body("if (i < n) y[i] = 2 * x[i < n - 1 ? i : i - 1] + 1;").build(&[]).expect(100);
    let why = failure(&built, JUDGE);
    assert!(why.starts_with("`y` is wrong at 9: got ") && why.contains(", want "), "{why}");
    built
        .says("1 of 10 elements is far off (by more than 1 % of ")
        .says("square), at 9: got ")
        .says(&format!("kforge run {JUDGE}\n"));
}

#[test]
#[ignore = "second tier: many builds"]
fn elements_of_two_axes_are_told_by_coordinates() {
    let matrix = |text: &str| {
        let project = body(text);
        for tensor in ["inputs.x", "outputs.y"] {
            let of = |shape: &str| format!("{tensor} = {{ dtype = \"f32\", shape = [{shape}] }}");
            project.edit("kernel.toml", &of("\"n\""), &of("\"2\", \"n / 2\""));
        }
        project.build(&[]).expect(100)
    };
    let missing = matrix("if (i < n - 1) y[i] = 2 * x[i] + 1;");
    assert_eq!(failure(&missing, JUDGE), "1 of 10 elements of the output `y` was not written, at [1, 4]");
    let wrong = matrix("if (i < n) y[i] = 2 * x[i < n - 1 ? i : i - 1] + 1;");
    assert!(failure(&wrong, JUDGE).starts_with("`y` is wrong at [1, 4]: got "), "{}", failure(&wrong, JUDGE));
    wrong.says("1 of 10 elements is far off (by more than 1 % of ").says("square), at [1, 4]: got ");
    let early = matrix("if (i == 7) y[i] = y[i] + 1; else if (i < n) y[i] = 2 * x[i] + 1;");
    let why = failure(&early, JUDGE);
    assert!(why.starts_with("element [1, 2] of `y` is read before it is written"), "{why}");
    let race = failure(&matrix("if (i < n) y[i] = 2 * x[i] + 1; if (i == 12) y[6] = 0;"), JUDGE);
    assert!(race.starts_with("race on element [1, 1] of `y`"), "{race}");
}

#[test]
#[ignore = "second tier: many builds"]
fn an_access_far_out_of_bounds_is_no_access_to_another_buffer() {
    // Two pages further, the distance between buffers if only guard pages separated them.
    for (text, buffer) in [("if (i < n) y[i] = 2 * x[i + 2048] + 1;", "x"), ("if (i < n) y[i - 2048] = x[i];", "y")] {
        let why = failure(&body(text).build(&[]).expect(100), JUDGE);
        assert!(why.contains(&format!("of `{buffer}`, which has 10")), "{text}: {why}");
    }
}

#[test]
fn an_access_out_of_bounds_is_named_with_its_buffer() {
    let built = body("if (i <= n) y[i] = 2 * x[i] + 1;").build(&[]).expect(100);
    let why = failure(&built, JUDGE);
    assert!(why.contains("element 10 of `x`, which has 10"), "{why}");
    let built = body("y[i] = 2 * x[i % n] + 1;").build(&[]).expect(100);
    let why = failure(&built, JUDGE);
    assert!(why.starts_with("write of 4 bytes at element 10 of `y`, which has 10"), "{why}");
}

#[test]
fn a_failing_verdict_is_known_and_shown_again_by_a_fresh_build() {
    let project = body("if (i < n - 1) y[i] = 2 * x[i] + 1;");
    let first = project.build(&[]).expect(100);
    let report = project.report();
    let second = project.build(&[]).expect(100).says("1 of 10 elements of the output `y` was not written, at 9");
    assert_eq!(second.count("executed"), 0);
    assert_eq!(second.keys(), first.keys());
    assert_eq!(project.report(), report);
}

#[test]
fn a_compile_error_is_told_in_the_compiler_s_words_and_not_remembered() {
    let project = body("y[i] = nonsense;");
    for _ in 0..2 {
        let built = project.build(&[]).expect(101).says("nonsense").says("cannot compile `k.cu`");
        assert!(built.step("one/k/cpu/compile")["outcome"]["failed"].is_string());
        assert!(built.step("one/k/cpu/tiny/verify")["outcome"]["skipped"].is_string());
    }
}

#[test]
#[ignore = "second tier: many builds"]
fn a_tolerance_that_lower_precision_passes_makes_the_operator_indecisive() {
    let project = body("if (i < n) y[i] = 2 * x[i] + 1;");
    project.edit("kernel.toml", "{ atol = 1e-6, rtol = 1e-6 }", "{ atol = 1e-2, rtol = 1e-2 }");
    let built = project.built(&[]).says("indecisive");
    let why = built.step("one/twice/calibrate")["verdict"]["unknown"]["indecisive"].as_str().unwrap_or_default();
    assert!(why.contains("f16"), "{why}");
}

#[test]
fn a_shape_that_requires_excludes_is_never_run() {
    let project = body("if (i < n) y[i] = 2 * x[i] + 1;");
    project.edit("kernel.toml", "shapes.tiny = { n = 10 }", "shapes.tiny = { n = 10 }\nshapes.odd = { n = 11 }");
    project.edit(
        "kernel.toml",
        "source = \"k.cu\"",
        "source = \"k.cu\"\nrequires = [\"ANY or n % 2 == 0\"]\ntune.ANY = [false, true]",
    );
    let built = project.built(&[]);
    let of = |variant: &str, shape: &str| {
        built.finished().any(|s| s["id"] == format!("one/k/ANY={variant}/cpu/{shape}/verify"))
    };
    assert_eq!(
        (of("false", "tiny"), of("false", "odd"), of("true", "tiny"), of("true", "odd")),
        (true, false, true, true)
    );
    let champion = built.events("champion").next().unwrap();
    assert_eq!(champion["variant"], "ANY=true", "the first in declaration order that serves every shape");
}

#[test]
fn a_shape_that_no_variant_serves_is_an_error() {
    let project = body("if (i < n) y[i] = 2 * x[i] + 1;");
    project.edit("kernel.toml", "source = \"k.cu\"", "source = \"k.cu\"\nrequires = [\"n % 4 == 0\"]");
    let built = project.build(&[]).expect(101);
    let error = built.events("diagnostic").find(|d| d["severity"] == "error").expect("a diagnostic");
    assert_eq!(error["code"], "manifest.unserved-shape");
    assert!(error["message"].as_str().unwrap().contains("`tiny`"), "{error}");
    assert_eq!(built.finished().count(), 0, "nothing was run");
}

#[test]
fn a_kernel_may_leave_shapes_to_another_kernel_of_its_operator() {
    let project = body("if (i < n) y[i] = 2 * x[i] + 1;");
    project.edit("kernel.toml", "shapes.tiny = { n = 10 }", "shapes.tiny = { n = 10 }\nshapes.even = { n = 12 }");
    let manifest = std::fs::read_to_string(project.root().join("kernel.toml")).unwrap();
    let table = manifest.find("[kernel.k]").expect("the kernel's table");
    let other = manifest[table..].replacen("[kernel.k]", "[kernel.tile]", 1);
    let other = other.replacen("source = \"k.cu\"", "source = \"k.cu\"\nrequires = [\"n % 4 == 0\"]", 1);
    project.write("kernel.toml", &format!("{manifest}\n{other}"));
    let built = project.built(&[]);
    let verified: Vec<&str> = built.finished().filter_map(|s| s["id"].as_str()).collect();
    assert!(!verified.iter().any(|id| id.starts_with("one/tile/cpu/tiny/")), "{verified:?}");
    let champion = built.events("champion").find(|c| c["kernel"] == "tile").unwrap();
    assert!(!champion["variant"].is_null(), "the class holds only what the kernel serves: {champion}");
    let report = project.report_value();
    let kernels = report["packages"][0]["kernels"].as_array().unwrap();
    let left: Vec<_> = kernels.iter().map(|k| (&k["name"], &k["targets"][0]["not_served"])).collect();
    let tile = left.iter().find(|(name, _)| *name == "tile").unwrap();
    assert_eq!(tile.1, &serde_json::json!(["tiny"]), "{left:?}");
    let text = String::from_utf8(project.command(&["report"]).output().unwrap().stdout).unwrap();
    assert!(text.contains("not served: tiny (`requires` leaves them to other kernels)"), "{text}");
    // A selection of nothing that the kernel serves is no error, and nothing is run.
    let built = project.built(&["--kernel", "tile", "--shape", "tiny"]);
    assert!(!built.executed_kinds().contains_key("verify"), "{:?}", built.executed_kinds());

    // Conditions that no shape meets are a mistake of the kernel, whoever else serves the shapes.
    project.edit("kernel.toml", "n % 4 == 0", "n % 4 == 3");
    let built = project.build(&[]).expect(101);
    let error = built.events("diagnostic").find(|d| d["severity"] == "error").expect("a diagnostic");
    assert_eq!(error["code"], "manifest.unserved-shape");
    assert!(error["message"].as_str().unwrap().contains("`tile`"), "{error}");
}

#[test]
#[ignore = "second tier: many builds"]
fn a_type_whose_header_is_not_included_is_a_warning() {
    let project = body("if (i < n) y[i] = 2 * x[i] + 1 + __half2float(__float2half(0));");
    let warning = "`k.cu` names `__float2half` without `#include <cuda_fp16.h>`: compilers of GPU targets need it";
    project.built(&[]).says(warning);
    project.write(
        "k.cu",
        &format!("#include <cuda_fp16.h>\n{}", std::fs::read_to_string(project.root().join("k.cu")).unwrap()),
    );
    let built = project.built(&[]);
    assert!(!built.stderr().contains("cuda_fp16.h"), "{}", built.stderr());
}

#[test]
fn a_kernel_takes_a_null_pointer_and_a_read_of_it_is_named() {
    let source = |body: &str| {
        format!(
            "__global__ void k(const float *x, const float *bias, float *y, int n) {{\n  int i = threadIdx.x;\n  {body}\n}}\n"
        )
    };
    let project = one_kernel(&source("if (i < n) y[i] = 2 * x[i] + (bias ? bias[i] : 1);"));
    project.edit("kernel.toml", "args = [\"x\", ", "args = [\"x\", { null = true }, ");
    project.built(&[]);
    project.write("k.cu", &source("if (i < n) y[i] = 2 * x[i] + 1 + bias[i];"));
    let why = failure(&project.build(&[]).expect(100), JUDGE);
    assert!(why.contains("k.cu:3"), "{why}");
    project.edit("kernel.toml", "{ null = true }", "{ value = 0, dtype = \"u64\" }");
    let built = project.build(&[]);
    built.says("a null pointer is `{ null = true }`");
    project.edit("kernel.toml", "{ value = 0, dtype = \"u64\" }", "{ null = false }");
    project.build(&[]).expect(101).says("`null = false` is no argument");
}

#[test]
fn a_kernel_that_adds_to_its_output_is_compared_with_an_accumulating_reference() {
    let source = |body: &str| {
        format!("__global__ void k(const float *x, float *y, int n) {{\n  int i = threadIdx.x;\n  {body}\n}}\n")
    };
    let project = one_kernel(&source("if (i < n) atomicAdd(y, x[i]);"));
    project.edit(
        "kernel.toml",
        "outputs.y = { dtype = \"f32\", shape = [\"n\"] }",
        "inouts.y = { dtype = \"f32\", shape = [1] }",
    );
    project.edit(
        "kernel.toml",
        "{ builtin = \"elementwise\", y = \"2 * x + 1\" }",
        "{ builtin = \"sum\", accumulate = true }",
    );
    project.edit("kernel.toml", "tolerance = { atol = 1e-6, rtol = 1e-6 }", "tolerance = \"auto\"");
    project.built(&[]);
    project.write("k.cu", &source("if (i < n) { __shared__ float s; if (i == 0) s = 0; __syncthreads(); atomicAdd(&s, x[i]); __syncthreads(); if (i == 0) *y = s; }"));
    let why = failure(&project.build(&[]).expect(100), JUDGE);
    assert!(why.starts_with("`y` is wrong at 0"), "what it held before is left out: {why}");
}

#[test]
#[ignore = "second tier: many builds"]
fn a_local_variable_that_nobody_initialised_holds_garbage() {
    for sum in ["float sum;", "float none[2], sum = none[i % 2];"] {
        let built = body(&format!("{sum} if (i < n) {{ sum += 2 * x[i] + 1; y[i] = sum; }}")).build(&[]).expect(100);
        assert!(failure(&built, JUDGE).starts_with("`y` is wrong at 0: got "), "{sum}: {}", failure(&built, JUDGE));
    }
}

#[test]
fn what_is_not_emulated_is_unknown_and_no_failure() {
    let project = body("if (i < n) { asm volatile(\"wgmma.fence.sync.aligned;\"); y[i] = 2 * x[i] + 1; }");
    let built = project.build(&[]);
    let verdict = &built.step(JUDGE)["verdict"];
    let what = verdict["unknown"]["not-emulated"].as_str().unwrap_or_else(|| panic!("{verdict}"));
    assert!(what.contains("wgmma.fence") && what.contains("k.cu:3"), "{what}");
    let built = built.expect(0);
    assert!(!built.stderr().contains("nothing is verified"), "JSON lines say it already");
    let told = project.command(&["build", "--offline"]).output().unwrap();
    assert!(
        String::from_utf8_lossy(&told.stderr).contains("nothing is verified: the verdict of every kernel is unknown")
    );
    let champion = &project.report_value()["packages"][0]["kernels"][0]["targets"][0]["champions"][0];
    assert_eq!(
        (&champion["provisional"], &champion["because"]),
        (&true.into(), &"first variant not known to be wrong in declaration order; not timed".into())
    );
}

#[test]
fn nothing_that_does_not_depend_on_a_failure_is_lost_with_keep_going() {
    let project = sample();
    project.edit("twice.cu", "+ 1;", "+ 2;");
    let built = project.build(&["--keep-going"]).expect(100);
    assert_eq!(built.count("skipped"), 0);
    let champions: Vec<&str> = built.events("champion").map(|c| c["kernel"].as_str().unwrap()).collect();
    assert_eq!(champions, ["direct", "indirect"]);
}

#[test]
fn a_typo_in_a_tolerance_never_passes() {
    let project = Project::new().file("kernel.toml", &ONE.replace("rtol", "rtoll"));
    project.write("k.cu", &kernel(""));
    project.build(&[]).expect(101).says("did you mean `rtol`");
}

#[test]
fn a_selection_that_matches_nothing_is_an_error_of_its_own() {
    let project = body("");
    project.build(&["--kernel", "other"]).expect(4);
    project.build(&["--no-such-flag"]).expect(2);
}

#[test]
fn larger_shapes_wait_for_those_whose_accesses_are_watched() {
    let project = sample();
    let large = "shapes.small = { rows = 2, cols = 9 }\nshapes.large = { rows = 4000, cols = 1000 }";
    project.edit("kernel.toml", "shapes.small = { rows = 2, cols = 9 }", large);
    let told = |words: &[&str]| {
        let output = project.command(words).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let of = |shape: &str| format!("sample/direct/BLOCK=4/cpu/{shape}/verify");
    let tree = told(&["tree", "--kernel", "direct", "--stage", "verify", "--depth", "1"]);
    let below = |shape: &str| {
        let rest = tree.split(&format!("{}\n", of(shape))).nth(1).unwrap_or_else(|| panic!("{tree}"));
        rest.lines().take_while(|line| !line.starts_with("sample/")).collect::<Vec<_>>().join("\n")
    };
    assert!(below("large").contains(&of("small")), "{tree}");
    assert!(!below("small").contains(&of("large")), "{tree}");
    // A selection of only the large shape runs only that one. Whether the tolerance decides depends on all shapes.
    let alone = told(&["tree", "--kernel", "direct", "--shape", "large"]);
    assert!(!alone.contains("cpu/small") && alone.contains("row_sum/small/0/oracle"), "{alone}");
}

#[test]
fn threads_that_never_come_to_a_barrier_are_a_warning_that_every_build_shows() {
    let project = body("if (i >= n) return;\n  y[i] = 2 * x[i] + 1;\n  __syncthreads();");
    for _ in 0..2 {
        let built =
            project.build(&[]).expect(0).says("warning: one/k/cpu/tiny/judge: 6 of 16 threads left the kernel before");
        assert_eq!(built.stderr().matches("left the kernel").count(), 1, "{}", built.stderr());
        built.says("a mistake if the threads that left had to write what the others read");
    }
}

#[test]
fn an_unknown_function_in_a_reference_is_said_once_where_it_stands() {
    let project = body("if (i < n) y[i] = 2 * x[i] + 1;");
    project.edit("kernel.toml", "y = \"2 * x + 1\"", "y = \"2 * foo(x) + 1\"");
    let manifest = std::fs::read_to_string(project.root().join("kernel.toml")).unwrap();
    let (_, kernel) = manifest.split_once("[kernel.k]").unwrap();
    project.write("kernel.toml", &format!("{manifest}\n[kernel.other]{kernel}"));
    let built =
        project.build(&[]).expect(101).says("reference = { builtin = \"elementwise\", y = \"2 * foo(x) + 1\" }");
    assert_eq!(built.stderr().matches("unknown function `foo`").count(), 1, "{}", built.stderr());
    assert!(!built.stderr().contains("no expression uses"), "{}", built.stderr());
}
