//! The declarations and texts that templates make from operators. `tests/toolchain_network/templates.rs` and `tests/e2e` check that the texts compile and are
//! correct.

use std::sync::Arc;

use super::{TEMPLATES, builtin, make, names};
use kforge_foundation::base::{Diagnostic, SourceFile};
use kforge_types::model::{Kernel, Language, Manifest, Strategy, TemplateText, TuneValue};

const OPERATORS: &str = r#"
[package]
name = "p"
[operator.gated]
dims = ["b", "rows", "cols"]
types = { T = ["f16", "f32"] }
inputs.x = { dtype = "T", shape = ["b", "rows", "cols"] }
inputs.bias = { dtype = "T", shape = ["cols"] }
inputs.row = { dtype = "f32", shape = ["b", "rows", 1] }
inputs.head = { dtype = "f32", shape = ["b", 1, "cols"] }
inputs.one = { dtype = "f32", shape = [] }
params.alpha = { dtype = "f32", value = 0.5 }
outputs.y = { dtype = "T", shape = ["b", "rows", "cols"] }
reference = { builtin = "elementwise", y = "alpha * gelu(x + bias) - (head - row) * one / b" }
shapes.s = { b = 2, rows = 3, cols = 4 }
[operator.softmax]
dims = ["rows", "cols"]
inputs.x = { dtype = "f32", shape = ["rows", "cols"] }
outputs.y = { dtype = "f32", shape = ["rows", "cols"] }
reference = "builtin:softmax"
shapes.s = { rows = 3, cols = 4 }
[operator.columns]
dims = ["rows", "cols"]
inputs.x = { dtype = "f32", shape = ["rows", "cols"] }
outputs.y = { dtype = "f32", shape = ["cols"] }
reference = { builtin = "sum", axis = 0 }
shapes.s = { rows = 3, cols = 4 }
[operator.cumsum]
dims = ["n"]
inputs.x = { dtype = "f32", shape = ["n"] }
outputs.y = { dtype = "f32", shape = ["n"] }
reference = "builtin:cumsum"
shapes.s = { n = 3 }
"#;

fn parse(kernel: &str) -> Manifest {
    let file = Arc::new(SourceFile { name: "kernel.toml".into(), text: format!("{OPERATORS}{kernel}") });
    let (manifest, wrong) = kforge_types::model::parse(&file);
    assert!(wrong.is_empty(), "{wrong:?}");
    manifest.unwrap()
}

fn made_by(template: &TemplateText, manifest: &Manifest) -> Result<Kernel, Vec<Diagnostic>> {
    let kernel = &manifest.kernels[0];
    make(manifest.operators.iter().find(|o| o.name == kernel.operator).unwrap(), kernel, template)
}

fn made(kernel: &str) -> Result<Kernel, Vec<Diagnostic>> {
    let manifest = parse(kernel);
    let name = manifest.kernels[0].generate.as_ref().unwrap().template.value.clone();
    made_by(&builtin(&name, manifest.kernels[0].language).unwrap(), &manifest)
}

fn kernel(operator: &str, template: &str, more: &str) -> String {
    format!("[kernel.k]\noperator = \"{operator}\"\ngenerate = {{ template = \"{template}\" }}\n{more}")
}

fn text(kernel: &Kernel) -> &str {
    &kernel.made().unwrap().source
}

fn own(declaration: &str, source: &str) -> TemplateText {
    TemplateText { name: "mine".into(), declaration: declaration.into(), source: source.into() }
}

const LAUNCH: &str = "[[launch]]\nentry = \"k\"\ngrid = [1]\nblock = [32]\nargs = [\"x\", \"y\"]\n";

#[test]
fn the_same_operator_and_template_give_the_same_kernel_and_the_same_text() {
    let manifest = kernel("softmax", "row-reduction", "");
    let (a, b) = (made(&manifest).unwrap(), made(&manifest).unwrap());
    assert_eq!(text(&a), text(&b));
    let tunables = |k: &Kernel| k.tune.iter().map(|(n, v)| (n.value.clone(), v.clone())).collect::<Vec<_>>();
    assert_eq!(tunables(&a), tunables(&b));
    assert!(!a.is_ungenerated());
    assert_eq!(a.source, "kforge-generated/k.cu");
    assert_eq!(a.launches.len(), 1);
    let methods: Vec<&str> = a.methods.iter().map(|m| m.id.as_str()).collect();
    let all = [
        "memory.vectorized_access",
        "compute.warp_shuffle",
        "compute.launch_config",
        "memory.rows_in_registers",
        "latency.online_recomputation",
    ];
    assert_eq!(methods, all);
}

#[test]
fn what_the_manifest_states_goes_before_what_the_template_says() {
    let more = "flags = [\"-lineinfo\"]\ntune.BLOCK = [64]\ntune.where = [\"VEC > 1\"]\nrequires = [\"cols > 1\"]\n\
                methods.\"memory.vectorized_access\".off = { VEC = 2 }\n";
    let kernel = made(&kernel("softmax", "row-reduction", more)).unwrap();
    let values = |name: &str| kernel.tune.iter().find(|t| t.0.value == name).unwrap().1.clone();
    assert_eq!(values("BLOCK"), [TuneValue::Int(64)]);
    assert_eq!(values("VEC").len(), 4);
    assert_eq!(kernel.conditions.last().unwrap().text(), "VEC > 1");
    assert!(kernel.conditions.len() > 1, "the template's hold too");
    assert_eq!(kernel.requires.len(), 1);
    assert_eq!(kernel.methods[0].off.as_ref().unwrap().values[0].1, TuneValue::Int(2));
    assert_eq!(kernel.methods.len(), 5);
    // A template may say how its space is searched. Here too the manifest takes precedence.
    let searched = |stated: &str| {
        let declaration = format!("tune.N = [1, 2]\ntune.strategy = \"random\"\n{LAUNCH}");
        let manifest = parse(&self::kernel("softmax", "mine", stated));
        made_by(&own(&declaration, "// k"), &manifest).unwrap().search.strategy
    };
    assert_eq!((searched(""), searched("tune.strategy = \"model\"")), (Strategy::Random, Strategy::Model));
}

#[test]
fn a_tunable_that_the_template_does_not_have_is_an_error_at_its_place() {
    let wrong = made(&kernel("softmax", "row-reduction", "tune.BLOK = [64]\n")).unwrap_err();
    assert_eq!(wrong[0].code, "manifest.unknown-tunable");
    assert_eq!(wrong[0].labels[0].file.text[wrong[0].labels[0].span.clone()], *"BLOK");
    assert!(wrong[0].hints.iter().any(|h| h.contains("BLOCK")), "{wrong:?}");
    let wrong = made(&kernel("softmax", "row-reduction", "tune.BLOCK = [\"many\"]\n")).unwrap_err();
    assert_eq!(wrong[0].code, "manifest.kind");
}

#[test]
fn an_operator_that_a_template_cannot_serve_is_an_error_that_says_why_and_which_could() {
    let said = |operator: &str, template: &str| {
        let wrong = made(&kernel(operator, template, "")).unwrap_err();
        assert_eq!(wrong.len(), 1);
        assert_eq!(wrong[0].code, "template.refused");
        let label = &wrong[0].labels[0];
        assert_eq!(label.file.text[label.span.clone()], *format!("\"{template}\""));
        (wrong[0].message.clone(), wrong[0].expected.clone().unwrap_or_default(), wrong[0].hints.concat())
    };
    let (why, expected, _) = said("softmax", "elementwise");
    assert!(why.contains("`builtin:softmax`") && why.contains("serves `elementwise`"), "{why}");
    assert!(expected.contains("`row-reduction`"), "{expected}");
    assert!(said("columns", "row-reduction").0.contains("axis [0]"));
    assert!(said("cumsum", "elementwise").2.contains("no built-in template serves it"));
}

#[test]
fn a_broadcast_input_is_read_where_its_shape_says() {
    let kernel = made(&kernel("gated", "elementwise", "")).unwrap();
    let text = text(&kernel);
    for part in [
        "*>(x_ + i);",
        "*>(bias_ + modulo(i, bias_period));",
        "row_[quotient(i, row_repeat)]",
        "*>(head_ + quotient(i, head_below0) * head_stride0 + modulo(i, head_extent2));",
        "one_[0]",
        "real(alpha_) * math::gelu<COARSE>(x_at + bias_at) - (head_at - row_at) * one_at / real(b_)",
        "template <class T, int BLOCK, int VEC, int PACKS>",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

/// The manifest of a generated kernel in Triton.
fn in_triton(operator: &str, template: &str, more: &str) -> String {
    kernel(operator, template, &format!("language = \"triton\"\n{more}"))
}

#[test]
fn a_kernel_in_triton_is_made_by_the_template_for_triton() {
    let kernel = made(&in_triton("gated", "elementwise", "")).unwrap();
    assert_eq!(kernel.source, "kforge-generated/k.py");
    let text = text(&kernel);
    for part in [
        "import triton\nimport triton.language as tl\n",
        "def gelu_of(x):\n    if x.dtype == tl.float64:\n",
        "@triton.jit\ndef elementwise(\n    x_,\n    bias_,\n    row_,\n    head_,\n    one_,\n    y_,\n    alpha_,\n    b_,\n",
        "    real: tl.constexpr = tl.float32\n",
        "x_at = tl.load(x_ + i, mask=inside, other=0).to(real)\n",
        "tl.load(bias_ + (i % bias_period), mask=inside, other=0)",
        "tl.load(row_ + (i // row_repeat), mask=inside, other=0)",
        "tl.load(head_ + (i // head_below0) * head_stride0 + (i % head_extent2), mask",
        "one_at = tl.load(one_ + 0).to(real)\n",
        "alpha_at = tl.full((), alpha_, real)\n",
        "y_out = alpha_at * gelu_of(x_at + bias_at) - divide_of((head_at - row_at) * one_at, b_at)\n",
        "tl.store(y_ + i, y_out, mask=inside)\n",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let methods: Vec<&str> = kernel.methods.iter().map(|m| m.id.as_str()).collect();
    assert_eq!(methods, ["memory.vectorized_access"]);
}

#[test]
fn rows_in_triton_are_kept_whole_or_read_in_chunks() {
    let kernel = made(&in_triton("softmax", "row-reduction", "tune.CHUNK = [64]\n")).unwrap();
    let text = text(&kernel);
    assert!(text.starts_with("# softmax of `x`, row by row.\n"), "{text}");
    assert!(text.contains("    if KEEP:\n") && text.contains("for start in range(0, length, BLOCK):"), "{text}");
    let methods: Vec<&str> = kernel.methods.iter().map(|m| m.id.as_str()).collect();
    assert_eq!(methods, ["memory.rows_in_registers"]);
    assert!(made(&in_triton("columns", "row-reduction", "")).unwrap_err()[0].message.contains("axis [0]"));
    let loss = "[operator.loss]\ndims = [\"rows\", \"cols\"]\ninputs.x = { dtype = \"f32\", shape = [\"rows\", \"cols\"] }\n\
                inputs.labels = { dtype = \"i32\", shape = [\"rows\"] }\noutputs.y = { dtype = \"f32\", shape = [] }\n\
                reference = \"builtin:cross_entropy\"\nshapes.s = { rows = 3, cols = 4 }\n";
    // The losses of rows are added by a second function.
    let kernel = made(&format!("{loss}{}", in_triton("loss", "row-reduction", ""))).unwrap();
    assert_eq!((kernel.launches.len(), kernel.workspace.len()), (2, 1));
    let mean = self::text(&kernel);
    for part in [
        "    x_,\n    labels_,\n    row_losses,\n    length,\n",
        "def total_loss(\n    row_losses,\n    labels_,\n    y_,\n",
    ] {
        assert!(mean.contains(part), "{part} is not in\n{mean}");
    }
    assert!(!mean.contains("counts ="), "{mean}");
    // Without a reduction there is nothing to add, and labels may be ignored.
    let each = loss.replace("shape = [] }", "shape = [\"rows\"] }");
    let each = each.replace(
        "\"builtin:cross_entropy\"",
        "{ builtin = \"cross_entropy\", reduction = \"none\", ignore_index = -100 }",
    );
    let kernel = made(&format!("{each}{}", in_triton("loss", "row-reduction", ""))).unwrap();
    let text = self::text(&kernel);
    assert!(
        kernel.launches.len() == 1 && text.contains("counts = label != -100\n") && !text.contains("total_loss"),
        "{text}"
    );
}

#[test]
fn a_norm_in_triton_adds_its_residual_and_stores_both() {
    let norm = "[operator.norm]\ndims = [\"rows\", \"cols\"]\ninputs.x = { dtype = \"f16\", shape = [\"rows\", \"cols\"] }\n\
                inouts.residual = { dtype = \"f16\", shape = [\"rows\", \"cols\"] }\noutputs.y = { dtype = \"f16\", shape = [\"rows\", \"cols\"] }\n\
                reference = \"builtin:rms_norm\"\nshapes.s = { rows = 3, cols = 4 }\n";
    let kernel = made(&format!("{norm}{}", in_triton("norm", "row-reduction", ""))).unwrap();
    let text = text(&kernel);
    // Once where a row is kept, and twice where it is read in chunks.
    assert_eq!(text.matches("tl.load(row_of_residual + at").count(), 3, "{text}");
    assert_eq!(text.matches("tl.store(row_of_residual + at").count(), 2, "{text}");
}

#[test]
fn a_declaration_for_triton_has_neither_blocks_nor_what_is_of_cpp() {
    let manifest = parse(&in_triton("softmax", "mine", ""));
    for (declaration, says) in
        [(LAUNCH.to_string(), "block"), (format!("std = \"c++20\"\n{}", LAUNCH.replace("block = [32]\n", "")), "std")]
    {
        let wrong = made_by(&own(&declaration, "# k"), &manifest).unwrap_err();
        assert!(wrong[0].code == "manifest.conflict" && wrong[0].message.contains(says), "{wrong:?}");
    }
    let plain = LAUNCH.replace("block = [32]\n", "options = { num_warps = 8 }\n");
    assert!(made_by(&own(&plain, "# k"), &manifest).is_ok());
    let wrong = made_by(&own(&plain, "# {{ nothing }}"), &manifest).unwrap_err();
    assert_eq!(wrong[0].labels[0].file.name, "mine/kernel.py.j2");
}

#[test]
fn several_accesses_of_a_thread_are_under_way_before_it_waits_for_one() {
    let kernel = made(&kernel("gated", "elementwise", "")).unwrap();
    let packs = &kernel.tune.iter().find(|(name, _)| name.value == "PACKS").unwrap().1;
    assert_eq!(*packs, [2, 1, 4].map(TuneValue::Int));
    let text = text(&kernel);
    let (fetch, finish) = (text.find("parts[p].fetch(").unwrap(), text.find("parts[p].finish(").unwrap());
    // Two separate loops, so that no store is between two loads.
    assert_eq!(text[fetch..finish].matches("for (int p = 0; p < PACKS; p++)").count(), 1, "{text}");
}

#[test]
fn rows_are_kept_as_they_are_stored_and_narrow_results_take_coarse_exponentials() {
    for (dtype, element) in [("f32", "float"), ("f16", "__half")] {
        let operator = OPERATORS[OPERATORS.find("[operator.softmax]").unwrap()..].replace("f32", dtype);
        let file = Arc::new(SourceFile {
            name: "kernel.toml".into(),
            text: format!("{operator}{}", kernel("softmax", "row-reduction", "")),
        });
        let manifest = kforge_types::model::parse(&file).0.unwrap();
        let kernel = made_by(&builtin("row-reduction", Language::Cuda).unwrap(), &manifest).unwrap();
        let text = text(&kernel);
        assert!(text.contains(&format!("Row<real, {element}, LANES, VEC, KEEP, decltype(read)> values")), "{text}");
        assert!(text.contains(&format!("constexpr bool COARSE = sizeof({element}) == 2;")), "{text}");
        assert_eq!(text.matches("math::exp<COARSE>(").count(), 2, "{text}");
    }
}

#[test]
fn an_extent_that_is_written_otherwise_is_no_broadcast_that_could_be_told() {
    let manifest = OPERATORS.replace(
        "inputs.bias = { dtype = \"T\", shape = [\"cols\"] }",
        "inputs.bias = { dtype = \"T\", shape = [\"cols + 0\"] }",
    );
    let file =
        Arc::new(SourceFile { name: "kernel.toml".into(), text: manifest + &kernel("gated", "elementwise", "") });
    let wrong =
        made_by(&builtin("elementwise", Language::Cuda).unwrap(), &kforge_types::model::parse(&file).0.unwrap())
            .unwrap_err();
    assert!(wrong[0].message.contains("`cols + 0`"), "{wrong:?}");
}

#[test]
fn tensors_that_wide_accesses_do_not_suit_are_refused() {
    let softmax = "inputs.x = { dtype = \"f32\", shape = [\"rows\", \"cols\"] }\noutputs.y = { dtype = \"f32\", shape = [\"rows\", \"cols\"] }";
    for (stated, why) in [("align = 4", "aligned to 4 bytes"), ("strides = [\"2 * cols\", 1]", "has strides")] {
        let other = softmax.replacen("] }", &format!("], {stated} }}"), 1);
        let text = OPERATORS.replacen(softmax, &other, 1) + &kernel("softmax", "row-reduction", "");
        let file = Arc::new(SourceFile { name: "kernel.toml".into(), text });
        let wrong =
            made_by(&builtin("row-reduction", Language::Cuda).unwrap(), &kforge_types::model::parse(&file).0.unwrap())
                .unwrap_err();
        assert!(wrong[0].message.contains(why), "{wrong:?}");
    }
}

#[test]
fn a_template_of_a_package_is_told_the_operator_and_may_refuse_it() {
    let manifest = parse(&kernel("softmax", "mine", ""));
    let source = "// {{ slots.x.name }} {{ tensors | length }} {{ rows('x').length }} {{ setting('axis', -1) }}\n";
    let kernel = made_by(&own(LAUNCH, source), &manifest).unwrap();
    assert_eq!(text(&kernel), "// x 2 cols -1\n");
    let wrong = made_by(&own("{{ refuse('not today') }}", ""), &manifest).unwrap_err();
    assert!(wrong[0].message.ends_with("not today"), "{wrong:?}");
}

#[test]
fn what_is_wrong_with_a_template_stands_at_its_place_in_the_template() {
    let manifest = parse(&kernel("softmax", "mine", ""));
    let wrong = made_by(&own(LAUNCH, "// one\n// {{ nothing }}\n"), &manifest).unwrap_err();
    let label = &wrong[0].labels[0];
    assert_eq!((wrong[0].code, label.file.name.as_str()), ("template.render", "mine/kernel.cu.j2"));
    assert!(label.file.text[label.span.clone()].contains("nothing"), "{wrong:?}");
    let wrong = made_by(&own("tuen = {}\n", ""), &manifest).unwrap_err();
    let codes: Vec<&str> = wrong.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["manifest.unknown-key", "manifest.missing-key"]);
    let other = format!("{LAUNCH}[methods.\"memory.x\"]\noff = {{ source = \"other.cu\" }}\n");
    assert_eq!(made_by(&own(&other, ""), &manifest).unwrap_err()[0].code, "manifest.conflict");
}

#[test]
#[ignore = "second tier: waits for limits"]
fn a_template_that_does_not_end_is_given_up_at_its_place() {
    let manifest = parse(&kernel("softmax", "mine", ""));
    let endless = "{% for a in range(90000) %}{% for b in range(90000) %}{% for c in range(90000) %}{% endfor %}{% endfor %}{% endfor %}\n";
    for wrong in [made_by(&own(LAUNCH, endless), &manifest), made_by(&own(endless, ""), &manifest)] {
        let wrong = wrong.unwrap_err();
        assert_eq!(wrong[0].code, "template.render");
        assert!(wrong[0].message.contains("did not finish within 20 million instructions"), "{wrong:?}");
    }
}

#[test]
fn every_built_in_template_is_listed_once_and_found() {
    for language in [Language::Cuda, Language::Triton] {
        let names = names(language);
        assert_eq!((TEMPLATES.names)(language), names);
        let mut all = names.clone();
        all.dedup();
        assert_eq!(all.len(), names.len());
        assert!(names.iter().all(|name| builtin(name, language).is_some_and(|t| t.name == *name)));
        assert!(builtin("nothing", language).is_none());
    }
}

#[test]
fn a_kernel_has_a_template_or_a_source_and_launches_of_its_own() {
    let codes = |kernel: &str| {
        let file = Arc::new(SourceFile { name: "kernel.toml".into(), text: format!("{OPERATORS}{kernel}") });
        kforge_types::model::parse(&file).1.iter().map(|d| (d.code, d.message.clone())).collect::<Vec<_>>()
    };
    let both = codes(&kernel("softmax", "row-reduction", "source = \"k.cu\"\n"));
    assert_eq!(both, [("manifest.conflict", "kernel `k` is made by a template and states `source`".to_string())]);
    let neither = codes("[kernel.k]\noperator = \"softmax\"\n");
    let missing = |key: &str| ("manifest.missing-key", format!("`kernel.k` lacks `{key}`"));
    assert_eq!(neither, [missing("launch"), missing("source")]);
    assert_eq!(codes(&kernel("softmax", "../mine", ""))[0].0, "manifest.path");
}
