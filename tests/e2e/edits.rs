//! An edit repeats the steps that it changes and no others. The program reports the reasons, and announces them beforehand in a dry run.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::project::{Built, Project, ids};
use crate::random::Random;
use crate::sample::{DIRECT, SUM, sample};

/// Builds after an edit, and checks the announcement of a dry run: every step that *will* run ran, and no step ran that neither *will* nor *may*, except steps
/// that a selection adds.
fn after_edit(project: &Project) -> Built {
    let before = fs::read(project.target().join("journal")).unwrap();
    let (will, may) = project.dry_run();
    assert_eq!(fs::read(project.target().join("journal")).unwrap(), before, "a dry run writes nothing");
    let built = project.built(&[]);
    let ran = built.executed();
    assert!(will.is_subset(&ran), "announced, not run: {:?}", will.difference(&ran).collect::<Vec<_>>());
    let announced: BTreeSet<String> = will.union(&may).cloned().collect();
    assert!(ran.is_subset(&announced), "run, not announced: {:?}", ran.difference(&announced).collect::<Vec<_>>());
    built
}

/// Checks that a step ran because that field changed, and that both values are reported. Returns the values.
#[track_caller]
fn because(built: &Built, id: &str, field: &str) -> (String, String) {
    let why = &built.step(id)["why"];
    assert_eq!((why["code"].as_str(), why["field"].as_str()), (Some("changed"), Some(field)), "{id}: {why}");
    let value = |name: &str| why[name].as_str().unwrap_or_default().to_string();
    assert_ne!(value("before"), value("after"));
    (value("before"), value("after"))
}

#[test]
fn a_comment_is_generated_and_compiled_and_changes_nothing_after_that() {
    let project = sample();
    let first = project.built(&[]);
    project.write("direct.cu", &format!("// One block a row.\n{DIRECT}"));
    let built = after_edit(&project);
    assert_eq!(built.executed(), ids(&["sample/direct/generate", "sample/direct/BLOCK=4/cpu/compile"]));
    because(&built, "sample/direct/generate", "inputs.file:direct.cu");
    because(&built, "sample/direct/BLOCK=4/cpu/compile", "inputs.tree:source");
    let result = |built: &Built| built.step("sample/direct/cpu/select")["result"].clone();
    assert_eq!(result(&built), result(&first));
}

#[test]
fn a_header_concerns_the_kernels_that_reach_it_directly_or_not() {
    let project = sample();
    project.built(&[]);
    project.write("inc/sum.h", &SUM.replace("part[threadIdx.x] = value;", "part[threadIdx.x] = value + 0.0f * N;"));
    let built = after_edit(&project);
    let touched: BTreeSet<&str> = built
        .finished()
        .filter(|s| s["outcome"] == "executed")
        .filter_map(|s| s["labels"]["kernel"].as_str())
        .collect();
    assert_eq!(touched, ["direct", "indirect"].into());
    let kinds = built.executed_kinds();
    assert_eq!((kinds["generate"], kinds["compile"], kinds["verify"]), (2, 2, 2), "{kinds:?}");
    assert!(!kinds.contains_key("oracle") && !kinds.contains_key("calibrate"), "{kinds:?}");
    because(&built, "sample/indirect/generate", "inputs.file:inc/sum.h");
}

#[test]
fn a_header_that_only_one_kernel_reaches_concerns_that_kernel() {
    let project = sample();
    project.built(&[]);
    project.edit("inc/row.h", "float value = 0;", "float value = 0; // a sum");
    let built = after_edit(&project);
    assert_eq!(built.executed(), ids(&["sample/indirect/generate", "sample/indirect/cpu/compile"]));
}

#[test]
fn a_tolerance_is_judged_again_and_no_candidate_runs() {
    let project = sample();
    project.built(&[]);
    project.edit("kernel.toml", "tolerance = { atol = 1e-5, rtol = 1e-5 }", "tolerance = { atol = 1e-5, rtol = 2e-5 }");
    let built = after_edit(&project);
    let mut kinds = built.executed_kinds();
    // Only one of the two judgements is executed if both kernels shared a fresh trial, because then their observations are equal.
    let judgements = kinds.remove("judge");
    assert!(matches!(judgements, Some(1 | 2)), "{judgements:?}");
    assert_eq!(kinds, [("calibrate".to_string(), 1), ("select".to_string(), 2)].into());
    let judged = built.executed().into_iter().find(|id| id.ends_with("/judge")).unwrap();
    let (before, after) = because(&built, &judged, "params.tolerance.y.rtol");
    assert_eq!((before.parse(), after.parse()), (Ok(1e-5), Ok(2e-5)));
    let (before, after) = because(&built, "sample/row_sum/calibrate", "params.cases[0].tolerance.y.rtol");
    assert_eq!((before.parse(), after.parse()), (Ok(1e-5), Ok(2e-5)));
}

#[test]
fn a_tolerance_that_tells_otherwise_goes_on_to_the_selection() {
    let project = sample();
    project.built(&[]);
    project.edit("kernel.toml", "{ atol = 1e-5, rtol = 1e-5 }", "{ atol = 0.0, rtol = 1e-12 }");
    let built = project.build(&[]).expect(100);
    let kinds = built.executed_kinds();
    assert!(
        kinds.contains_key("judge") && !kinds.contains_key("verify") && !kinds.contains_key("compile"),
        "{kinds:?}"
    );
}

#[test]
fn a_value_added_to_a_tunable_makes_the_new_variants_and_selects_again() {
    let project = sample();
    project.built(&[]);
    project.edit("kernel.toml", "tune.BLOCK = [4]", "tune.BLOCK = [4, 8]");
    let built = after_edit(&project);
    let expected = [
        "BLOCK=8/cpu/compile",
        "BLOCK=8/cpu/inspect",
        "BLOCK=8/cpu/small/verify",
        "BLOCK=8/cpu/small/judge",
        "cpu/select",
    ];
    let mut ran = built.executed();
    // If the judgement of the new variant is identical to another, it is not executed again.
    ran.insert("sample/direct/BLOCK=8/cpu/small/judge".into());
    assert_eq!(ran, expected.iter().map(|s| format!("sample/direct/{s}")).collect());
    assert_eq!(built.step("sample/direct/BLOCK=8/cpu/compile")["why"]["code"], "new");
    because(&built, "sample/direct/cpu/select", "params.candidates[1].identity");
    let champion = built.events("champion").find(|c| c["kernel"] == "direct").unwrap();
    assert_eq!(champion["variant"], "BLOCK=4", "the first in declaration order still stands");
}

#[test]
fn a_tunable_used_only_in_a_launch_compiles_nothing() {
    let project = sample();
    project.edit(
        "kernel.toml",
        "launch = [{ entry = \"twice\", grid = [\"1\"], block = [\"n\"]",
        "tune.T = [10]\nlaunch = [{ entry = \"twice\", grid = [\"1\"], block = [\"T\"]",
    );
    project.built(&[]);
    project.edit("kernel.toml", "tune.T = [10]", "tune.T = [10, 12]");
    let kinds = project.build(&[]).executed_kinds();
    assert!(!kinds.contains_key("compile"), "{kinds:?}");
    assert!(kinds.contains_key("verify"), "{kinds:?}");
}

#[test]
#[ignore = "second tier: many builds"]
fn another_compiler_compiles_everything_again_and_nothing_after_it() {
    let project = sample();
    let first = project.built(&[]);
    let wrapper = project.place().join("other-c++");
    fs::write(&wrapper, "#!/bin/sh\nexec c++ \"$@\"\n").unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let project = project.var("KFORGE_TOOLCHAIN_CXX", &wrapper);
    let built = project.built(&[]);
    let compiles: BTreeSet<String> =
        first.finished().filter(|s| s["kind"] == "compile").map(crate::project::id).collect();
    assert_eq!(built.executed(), compiles);
    because(&built, "sample/twice/cpu/compile", "inputs.toolchain");
    // A change of the wrapper repeats every compilation, even with the same path and the same compiler behind it.
    fs::write(&wrapper, "#!/bin/sh\n# another version\nexec c++ \"$@\"\n").unwrap();
    assert_eq!(project.built(&[]).executed(), compiles);
    assert_eq!(project.built(&[]).count("executed"), 0);
}

#[test]
fn a_new_header_that_shadows_an_old_one_is_noticed() {
    let project = sample();
    project.built(&[]);
    // Beside the source, in the folder that is searched before the include folders.
    project.write("sum.h", &SUM.replace("return part[0];", "return part[0] + 1;"));
    let built = project.build(&["--keep-going"]).expect(100);
    assert!(built.step("sample/direct/BLOCK=4/cpu/small/judge")["verdict"]["fail"].is_string());
    // `row.h` is in `inc`, and the files beside it come first there.
    assert_eq!(built.step("sample/indirect/cpu/small/judge")["verdict"], "pass");
    fs::remove_file(project.root().join("sum.h")).unwrap();
    assert_eq!(project.built(&[]).count("executed"), 0, "what was known before is known again");
}

#[test]
#[ignore = "second tier: many builds"]
fn a_header_that_is_asked_for_and_absent_is_noticed_when_it_comes() {
    let project = sample();
    project.edit(
        "twice.cu",
        "__global__",
        "#if __has_include(\"more.h\")\n#include \"more.h\"\n#endif\n#ifndef MORE\n#define MORE 0\n#endif\n__global__",
    );
    project.edit("twice.cu", "+ 1;", "+ 1 + MORE;");
    project.built(&[]);
    project.write("more.h", "#define MORE 1\n");
    let built = project.build(&[]).expect(100);
    assert!(built.executed().contains("sample/twice/cpu/compile"));
}

#[test]
fn a_new_shape_verifies_every_variant_on_it_and_nothing_else_again() {
    let project = sample();
    project.built(&[]);
    project.edit("kernel.toml", "shapes.tiny = { n = 10 }", "shapes.tiny = { n = 10 }\nshapes.more = { n = 12 }");
    let kinds = after_edit(&project).executed_kinds();
    assert_eq!(kinds["verify"], 1, "{kinds:?}");
    assert!(!kinds.contains_key("compile") && !kinds.contains_key("inspect"), "{kinds:?}");
}

#[test]
fn a_reverted_edit_executes_nothing() {
    let project = sample();
    project.built(&[]);
    project.edit("twice.cu", "2 * x", "x[threadIdx.x] + x");
    assert!(project.built(&[]).count("executed") > 0);
    project.edit("twice.cu", "x[threadIdx.x] + x", "2 * x");
    assert_eq!(project.built(&[]).executed(), BTreeSet::new());
}

#[test]
fn a_method_s_signature_touches_nothing_where_there_is_no_machine_code() {
    let project = sample();
    let methods = "\n[kernel.direct.methods.\"memory.coalesced\"]\noff = { BLOCK = 4 }\nsass.any = ['LDG']\n";
    let text = fs::read_to_string(project.root().join("kernel.toml")).unwrap();
    project.write("kernel.toml", &format!("{text}{}", methods.replace("BLOCK = 4", "BLOCK = 8")));
    project.edit("kernel.toml", "tune.BLOCK = [4]", "tune.BLOCK = [4, 8]");
    project.built(&[]);
    project.edit("kernel.toml", "'LDG'", "'STG'");
    assert_eq!(after_edit(&project).executed(), BTreeSet::new());
}

/// The number of executed steps that a build in the format for people reports. Such builds may answer without planning.
fn executed_for_people(project: &Project) -> u64 {
    let output = project.command(&["build", "--offline", "--keep-going"]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let count = told.split(" executed").next().and_then(|t| t.rsplit(' ').next()).and_then(|n| n.parse().ok());
    count.unwrap_or_else(|| panic!("no count in:\n{told}"))
}

#[test]
#[ignore = "second tier: every kind of edit"]
fn an_answer_without_a_plan_overlooks_no_edit() {
    let project = sample();
    let wrapper = project.place().join("other-c++");
    fs::write(&wrapper, "#!/bin/sh\nexec c++ \"$@\"\n").unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    executed_for_people(&project);
    let edits: [(&str, &dyn Fn()); 7] = [
        ("a source", &|| project.edit("twice.cu", "2 *", "2.0f *")),
        ("a header", &|| project.edit("inc/sum.h", "half = N / 2", "half = N >> 1")),
        ("a header that shadows", &|| project.write("row.h", "#include \"inc/row.h\"\n")),
        ("a header that shadows no more", &|| fs::remove_file(project.root().join("row.h")).unwrap()),
        ("a tolerance", &|| {
            project.edit("kernel.toml", "{ atol = 1e-6, rtol = 1e-6 }", "{ atol = 2e-6, rtol = 1e-6 }")
        }),
        ("a tunable", &|| project.edit("kernel.toml", "tune.BLOCK = [4]", "tune.BLOCK = [4, 8]")),
        ("the home", &|| fs::remove_dir_all(project.home()).unwrap()),
    ];
    for (what, edit) in edits {
        assert_eq!(executed_for_people(&project), 0, "before {what}");
        assert_eq!(executed_for_people(&project), 0, "before {what}, again");
        edit();
        // Once nothing shadows the header, the known results count again.
        assert_eq!(executed_for_people(&project) > 0, !what.contains("no more"), "{what}");
    }
    let other = project.clone().var("KFORGE_TOOLCHAIN_CXX", &wrapper);
    assert!(executed_for_people(&other) > 0, "another compiler");
    fs::remove_file(project.target().join("report.json")).unwrap();
    executed_for_people(&project);
    assert!(project.target().join("report.json").exists(), "outputs that are gone are written again");
}

/// The root cause at the end of an explanation: the step, and the field with its values.
fn root(explanation: &Value) -> (&str, &str, &Value, &Value) {
    let link = explanation["because"].as_array().unwrap().last().expect("a cause");
    let why = &link["why"];
    (link["what"].as_str().unwrap(), why["field"].as_str().unwrap_or_default(), &why["before"], &why["after"])
}

#[test]
#[ignore = "second tier: many builds"]
fn explain_names_the_field_with_both_values_before_a_build_and_after_it() {
    let project = sample();
    project.built(&[]);
    let direct = "sample/direct/BLOCK=4/cpu";
    let edit = |name: &'static str, from: &'static str, to: &'static str| {
        let project = project.clone();
        move || project.edit(name, from, to)
    };
    type Case<'a> = (Box<dyn Fn() + 'a>, String, &'a str, &'a str);
    let cases: [Case<'_>; 5] = [
        (
            Box::new(edit("direct.cu", "float value = 0;", "float value = 0; // a sum")),
            format!("{direct}/compile"),
            "sample/direct/generate",
            "inputs.file:direct.cu",
        ),
        (
            Box::new(edit("inc/sum.h", "N / 2", "N >> 1")),
            "sample/indirect/cpu/compile".into(),
            "sample/indirect/generate",
            "inputs.file:inc/sum.h",
        ),
        (
            Box::new(edit("kernel.toml", "{ atol = 1e-5, rtol = 1e-5 }", "{ atol = 1e-5, rtol = 2e-5 }")),
            // The judgements wait for it: they read whether the tolerance decides.
            "sample/row_sum/calibrate".into(),
            "sample/row_sum/calibrate",
            "params.cases[0].tolerance.y.rtol",
        ),
        (
            Box::new(edit("kernel.toml", "tune.BLOCK = [4]", "tune.BLOCK = [4, 8]")),
            "sample/direct/cpu/select".into(),
            "sample/direct/cpu/select",
            "params.candidates[1].identity",
        ),
        (
            Box::new(|| project.write("sum.h", SUM)),
            format!("{direct}/compile"),
            "sample/direct/generate",
            // The header that was there before is no longer read.
            "inputs.file:inc/sum.h",
        ),
    ];
    for (edit, step, cause, field) in cases {
        edit();
        let before = project.explain(&step);
        assert!(["will-run", "may-run"].contains(&before["standing"].as_str().unwrap()), "{before}");
        let built = project.built(&[]);
        assert!(built.executed().contains(cause), "{cause}");
        let after = project.explain(&step);
        assert_eq!(after["standing"], "fresh");
        for explanation in [&before, &after] {
            let (what, named, was, is) = root(explanation);
            // Before the build, a selection waits for a variant that never existed.
            if named.is_empty() {
                assert_eq!(
                    (what, step.ends_with("select")),
                    ("sample/direct/BLOCK=8/cpu/compile", true),
                    "{explanation}"
                );
                continue;
            }
            assert_eq!((what, named), (cause, field), "{explanation}");
            assert_ne!(was, is, "{explanation}");
        }
    }
    let wrapper = project.place().join("other-c++");
    fs::write(&wrapper, "#!/bin/sh\nexec c++ \"$@\"\n").unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let project = project.clone().var("KFORGE_TOOLCHAIN_CXX", &wrapper);
    let explanation = project.explain("sample/twice/cpu/compile");
    assert_eq!(root(&explanation).1, "inputs.toolchain");
}

/// `twice` with `MORE` in place of 1, which `before` defines.
fn with_more(project: &Project, before: &str) {
    project.write("twice.cu", &format!("{before}\n{}", crate::sample::TWICE.replace("+ 1", "+ MORE")));
}

#[test]
#[ignore = "second tier: many builds"]
fn a_computed_include_brings_in_every_header_of_the_package() {
    let project = sample().file("inc/more.h", "#define MORE 1\n");
    with_more(&project, "#define NAME \"inc/more.h\"\n#include NAME");
    project.built(&[]);
    project.write("inc/more.h", "#define MORE 2\n");
    project.build(&[]).expect(100);
}

#[test]
fn what_no_key_holds_cannot_be_read() {
    let project = sample();
    let outside = project.place().join("outside.h");
    fs::write(&outside, "#define MORE 1\n").unwrap();
    let (outside, text) = (outside.display(), "lies outside the package");
    with_more(&project, &format!("#include \"{outside}\""));
    project.build(&[]).expect(101).says(text);
    with_more(&project, "#include \"../outside.h\"");
    project.build(&[]).expect(101).says(text);
    // A name that only the compiler can assemble.
    with_more(&project, &format!("#define NAME \"{outside}\"\n#include NAME"));
    project
        .build(&[])
        .expect(101)
        .says("outside.h: Permission denied")
        .says("declare the folder it is in as a dependency");
    with_more(&project, &format!("#define MORE 1\n__asm__(\".section .rodata\\n.incbin \\\"{outside}\\\"\\n.text\");"));
    project.build(&[]).expect(101).says("which kforge does not track").says("outside.h");
}

#[test]
fn variables_of_compilers_change_nothing() {
    let project = sample();
    project.built(&[]);
    let folder = project.place().join("elsewhere");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("sum.h"), "#error elsewhere\n").unwrap();
    fs::write(folder.join("more.h"), "#define MORE 1\n").unwrap();
    let names = ["CPATH", "CPLUS_INCLUDE_PATH", "CXXFLAGS", "NVCC_APPEND_FLAGS"];
    let astray = names.iter().fold(project.clone(), |project, name| project.var(name, &folder));
    assert_eq!(astray.built(&[]).count("executed"), 0);
    with_more(&astray, "#include \"more.h\"");
    astray
        .build(&[])
        .expect(0)
        .says("needs `MORE` (twice.cu:4), which the missing header `more.h` (twice.cu:1) declares");
}

#[test]
fn a_header_behind_a_link_counts_by_what_it_holds() {
    let project = sample();
    let shared = project.place().join("shared.h");
    fs::write(&shared, "#define MORE 1\n").unwrap();
    std::os::unix::fs::symlink(&shared, project.root().join("more.h")).unwrap();
    with_more(&project, "#include \"more.h\"");
    project.built(&[]);
    fs::write(&shared, "#define MORE 2\n").unwrap();
    project.build(&[]).expect(100);
}

#[test]
#[ignore = "second tier: random sequences of edits"]
fn any_sequence_of_edits_ends_as_a_clean_build_does() {
    let mut random = Random::seeded();
    let project = sample();
    let values = ["[4]", "[4, 8]", "[8, 4]", "[2]"];
    let (mut tune, mut tolerance, mut header) = (0, 0, 0);
    for round in 0..6 {
        // Some rounds make several changes before the next build.
        for _ in 0..=random.below(2) {
            match random.below(5) {
                0 => tune = random.below(values.len() as u64) as usize,
                1 => tolerance = random.below(3),
                2 => header = random.below(3),
                3 => project.write("twice.cu", &format!("// {}\n{}", random.below(3), crate::sample::TWICE)),
                _ => project
                    .write("direct.cu", &DIRECT.replace("= 0;", ["= 0;", "= 0.0f;", "= 1;"][random.below(3) as usize])),
            }
        }
        let manifest = crate::sample::MANIFEST
            .replace("BLOCK = [4]", &format!("BLOCK = {}", values[tune]))
            .replace("atol = 1e-5", ["atol = 1e-5", "atol = 2e-5", "atol = 0.0"][tolerance as usize]);
        project.write("kernel.toml", &manifest);
        project.write(
            "inc/sum.h",
            &SUM.replace("return part[0]", ["return part[0]", "return 0 + part[0]", "return part[1]"][header as usize]),
        );
        let incremental = project.build(&["--keep-going"]);
        let clean = project.cloned(&format!("clean-{round}")).fresh_home(format!("home-{round}"));
        let built = clean.build(&["--keep-going"]);
        assert_eq!(incremental.code(), built.code(), "round {round}");
        assert_eq!(incremental.keys(), built.keys(), "round {round}");
        assert_eq!(project.report(), clean.report(), "round {round}");
    }
}
