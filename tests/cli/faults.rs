//! Error messages: each error is reported once, at the line of the manifest to fix, with a command that repeats only that step.

use crate::place::{MANIFEST, Place};

/// The command that a build suggests to repeat only that step.
fn again(err: &str) -> Vec<String> {
    let line = err.lines().find_map(|l| l.trim().strip_prefix("to run only this step again: kforge "));
    line.unwrap_or_else(|| panic!("{err}")).split_whitespace().map(String::from).collect()
}

#[test]
fn an_entry_that_no_source_declares_is_said_at_its_line_with_those_that_are() {
    let place = Place::tiny();
    place.edit("kernel.toml", "entry = \"twice<", "entry = \"twcie<");
    let said = place.run("build").expect(101).says("`twice.cu` has no kernel `twcie`").says("kernel.toml:25:10");
    said.says("expected one of `twice`").says("did you mean `twice`?");
}

#[test]
fn a_name_in_an_entry_that_nothing_declares_is_said_at_its_place() {
    let place = Place::tiny();
    place.edit("kernel.toml", "twice<BLOCK>", "twice<BLOKC>");
    let said = place.run("check").expect(101).says("unknown name `BLOKC` in an entry").says("kernel.toml:25:16");
    said.says("did you mean `BLOCK`?");
    // A name that the source declares is allowed there.
    let place = Place::tiny();
    place.edit("kernel.toml", "twice<BLOCK>", "twice<WIDTH>");
    place.edit("twice.cu", "template <int BLOCK>", "constexpr int WIDTH = 32;\ntemplate <int N>");
    place.edit("twice.cu", "blockIdx.x * BLOCK", "blockIdx.x * N");
    place.run("check").expect(0);
}

#[test]
fn a_dim_in_an_entry_is_refused_with_the_way_out() {
    let place = Place::tiny();
    place.edit("kernel.toml", "twice<BLOCK>", "twice<n>");
    place.edit("twice.cu", "int n)", "int count)");
    place.edit("twice.cu", "i < n", "i < count");
    let said = place.run("check").expect(101).says("unknown name `n` in an entry").says("dims differ between shapes");
    said.says("`tune.N = [64, 128]`").says("`requires = [\"n == N\"]`");
}

#[test]
fn a_misspelt_function_in_a_launch_is_said_at_its_place() {
    let place = Place::tiny();
    place.edit("kernel.toml", "ceil_div(n", "ceil_dvi(n");
    let said = place.run("build").expect(101).says("unknown function `ceil_dvi`").says("kernel.toml:26:10");
    said.says("did you mean `ceil_div`?");
}

#[test]
fn arguments_that_the_binary_does_not_take_are_said_at_theirs() {
    let place = Place::tiny();
    place.edit("kernel.toml", "args = [\"x\", \"y\", \"n\"]", "args = [\"x\", \"y\"]");
    let said = place.run("build").expect(100).says("takes 3 parameters, the launch passes 2").says("kernel.toml:28:8");
    said.says("`twice<32>` is launched here");
    place.edit("kernel.toml", "[\"x\", \"y\"]", "[\"x\", \"y\", { value = \"n\", dtype = \"i64\" }]");
    place.run("build").expect(100).says("argument 3 of `twice<32>`").says("kernel.toml:28:19");
}

#[test]
fn a_block_beyond_the_launch_bounds_is_said_at_the_block_and_no_argument_is_blamed() {
    let place = Place::tiny();
    place.edit("twice.cu", "__global__ void", "__global__ void __launch_bounds__(BLOCK / 2)");
    let said = place.run("build").expect(100);
    let said = said.says("entry `twice<32>`: a block has 32 threads, the kernel's launch bounds allow 16");
    let said = said.says("kernel.toml:27:9").says("`twice<32>` is launched here");
    assert!(!said.err.contains("one argument for each parameter"), "{}", said.err);
    said.says("does not run at five: the launch is refused");
}

#[test]
#[ignore = "second tier: many builds"]
fn a_warning_of_a_compiler_is_printed_once_for_all_variants() {
    let place = Place::tiny();
    place.edit("kernel.toml", "BLOCK = [32]", "BLOCK = [32, 64, 128]");
    place.edit("twice.cu", "int i =", "if (n < 0) y[0] = 5 / 0;\n    int i =");
    let said = place.run("build").expect(0).says("warning: division by zero");
    assert_eq!(said.err.matches("warning: division by zero").count(), 1, "{}", said.err);
    said.says(
        "the compiler warned about 3 variants of tiny/twice; a log that adds no warning is left out, -v prints all",
    );
    place.run("clean").expect(0);
    let told = place.run("build -v").expect(0);
    assert_eq!(told.err.matches("warning: division by zero").count(), 3, "{}", told.err);
}

#[test]
fn a_kernel_that_stores_through_no_address_does_not_run() {
    let place = Place::tiny();
    place.edit("twice.cu", "int i =", "y = nullptr;\n    int i =");
    let said = place.run("build").expect(100).says("write of 4 bytes through a null pointer");
    said.says("fail twice on cpu: 1 of 1 variant does not run at five: the kernel crashes");
}

#[test]
#[ignore = "second tier: many builds"]
fn one_mistake_is_told_once_with_a_command_that_does_just_that_again() {
    let place = Place::tiny();
    place.edit("kernel.toml", "BLOCK = [32]", "BLOCK = [32, 64]");
    place.edit("kernel.toml", "five = { n = 5 }", "nine = { n = 9 }\nfive = { n = 5 }");
    place.edit("twice.cu", "2.0f", "2.5f");
    let said = place.run("build --keep-going").expect(100);
    assert_eq!(said.err.matches("`y` is wrong at 0").count(), 1, "{}", said.err);
    assert_eq!(said.err.matches("to run only this step again").count(), 1, "{}", said.err);
    let said = said.says("3 more steps failed for the same reasons");
    let said = said.says("fail twice on cpu: 2 of 2 variants are wrong at five, nine");
    let said = said.says("details: kforge report -p tiny --kernel twice --target cpu");
    place.run("report -p tiny --kernel twice --target cpu").expect(0).prints("nine  fail: `y` is wrong at 0");
    let words = again(&said.err);
    assert_eq!(words[0], "run");
    assert!(words[1].contains("/five/"), "the smallest shape stands for all: {words:?}");
    let ran = place.run(&words.join(" ")).expect(100).prints("fail (emulated): `y` is wrong at 0");
    assert!(ran.out.starts_with("tiny/twice BLOCK="), "{}", ran.out);
    let told = place.run("build --keep-going -v").expect(100);
    assert_eq!(told.err.matches("to run only this step again").count(), 4, "{}", told.err);
    place.run("report").expect(0).prints("nine  fail: `y` is wrong at 0");
    // The same for a source that does not compile, and from another folder.
    place.edit("twice.cu", "int i =", "int i");
    let folder = place.at("").display().to_string();
    let said =
        Place::empty().run(&format!("-C {folder} build --keep-going")).expect(101).says("cannot compile `twice.cu`");
    assert_eq!(said.err.matches("cannot compile `twice.cu`").count(), 1, "{}", said.err);
    let words = again(&said.err);
    assert_eq!(words[0], "-C");
    let ran = Place::empty().run(&words.join(" ")).expect(101);
    ran.says("cannot compile `twice.cu`").prints("/cpu/compile failed");
}

#[test]
fn a_step_is_run_alone_by_its_id() {
    let place = Place::tiny().alone();
    place.run("run tiny/twice/BLOCK=32/cpu/compile").expect(0).prints("tiny/twice/BLOCK=32/cpu/compile executed\n");
    place.run("run tiny/twice/BLOCK=32/cpu/compile").expect(0).prints("compile fresh");
    let json = place.run("build -n --message-format json").expect(0).out;
    assert!(json.contains("cpu/five/verify") && !json.contains("/compile"), "only the compile was done:\n{json}");
    place.run("run tiny/twice/BLOCK=32/cpu/five/verify").expect(0).prints("pass (emulated)");
    place.run("run tiny/twice/BLOCK=64/cpu/compile").expect(4).says("no step of the plan");
    place.run("run twice").expect(0).prints("at five");
    place.edit("kernel.toml", "five = { n = 5 }", "five = { n = 5 }\nnine = { n = 9 }");
    place.run("run twice").expect(2).says("`--shape` with one of `five`, `nine`");
}

#[test]
fn what_was_compiled_and_inspected_is_shown() {
    let place = Place::tiny();
    place.edit("twice.cu", "    int i", "#warning not tuned yet\n    int i");
    for told in ["executed", "fresh: its result was known"] {
        let ran = place.run("run tiny/twice/BLOCK=32/cpu/compile").expect(0);
        let by = "the host's C++ compiler, for the emulator";
        ran.prints(&format!("/compile {told}\n  for cpu by {by}"))
            .prints("\n  twice<32>: symbol ")
            .prints("not tuned yet");
    }
    let ran = place.run("run tiny/twice/BLOCK=32/cpu/inspect").expect(0);
    ran.prints("  holds code for cpu\n  twice<32>: symbol ").prints("    3 parameters of 20 B (8, 8, 4)\n");
    // A kernel that cannot be compiled has nothing to show.
    place.edit("twice.cu", "int i =", "int i");
    let ran = place.run("run tiny/twice/BLOCK=32/cpu/compile").expect(101);
    assert!(!ran.out.contains("symbol"), "{}", ran.out);
}

#[test]
#[ignore = "second tier: many builds"]
fn the_tolerance_that_would_do_is_told_where_nothing_else_is_wrong_and_does() {
    let place = Place::tiny();
    place.edit("twice.cu", "2.0f", "2.00002f");
    let hint = "note: `y` would pass at this shape with ";
    let built = place.run("build").expect(100).says(hint);
    let told = built.err.lines().find_map(|line| line.trim().strip_prefix(hint)).unwrap();
    let rtol = told.split("rtol = ").nth(1).unwrap().split(',').next().unwrap();
    assert!(rtol.parse::<f64>().is_ok_and(|rtol| (9e-6..1.3e-5).contains(&rtol)), "{told}");
    place.run("run twice").expect(100).prints(&format!("  {hint}{told}\n"));
    place.edit("kernel.toml", "rtol = 1e-6", &format!("rtol = {rtol}"));
    assert!(!place.run("build").expect(0).err.contains("would pass"), "it passes");
    // No tolerance would accept an output that is far off or not written.
    for (from, to) in [("2.00002f", "2.5f"), ("if (i < n)", "if (i < n - 1)")] {
        place.edit("twice.cu", from, to);
        let built = place.run("build").expect(100);
        assert!(!built.err.contains("would pass"), "{}", built.err);
    }
}

#[test]
#[ignore = "second tier: many builds"]
fn steps_that_a_failure_kept_from_being_tried_are_counted_at_the_end() {
    let said_of = |err: &str| -> Option<String> {
        err.lines()
            .find_map(|line| line.strip_prefix("warning: "))
            .filter(|l| l.contains("not tried"))
            .map(String::from)
    };
    // The first reported error is the one at which the build ended.
    let first = |err: &str| -> String {
        let line = err.lines().find_map(|line| line.strip_prefix("error: ")).unwrap_or_else(|| panic!("{err}"));
        line.split(' ').next().unwrap_or_default().trim_end_matches(':').to_string()
    };
    // The number of all skipped steps, according to the last line.
    let skipped = |err: &str| -> String {
        let last = err.lines().last().unwrap_or_default();
        let at = last.find(" skipped").unwrap_or_else(|| panic!("{err}"));
        format!("{} steps were not tried, because ", last[..at].rsplit(' ').next().unwrap_or_default())
    };
    let hint = "; `--keep-going` continues with steps that do not depend on it";
    let place = Place::tiny();
    place.edit("kernel.toml", "BLOCK = [32]", "BLOCK = [32, 64, 96, 128]");
    assert_eq!(said_of(&place.run("build -j1").expect(0).err), None);
    place.edit("twice.cu", "2.0f", "2.25f");
    let err = place.run("build -j1").expect(100).err;
    let ended = format!("{}the build ended at `{}`{hint}", skipped(&err), first(&err));
    assert_eq!(said_of(&err), Some(ended), "{err}");
    assert_eq!(said_of(&place.run("build -j1 --keep-going").expect(100).err), None, "nothing needs a right kernel");
    place.edit("twice.cu", "int i =", "int i");
    assert_eq!(said_of(&place.run("build -j1 -q").expect(101).err), None);
    let err = place.run("build -j1").expect(101).err;
    let ended = format!("{}the build ended at `{}`{hint}", skipped(&err), first(&err));
    assert_eq!(said_of(&err), Some(ended), "{err}");
    let err = place.run("build -j1 --keep-going").expect(101).err;
    assert_eq!(said_of(&err), Some(skipped(&err) + "a step that they depend on failed"), "{err}");
    // On a machine that cannot compile, no step has failed.
    let vars = [("KFORGE_TOOLCHAIN_CXX", "/nowhere/c++")];
    let said = place.run_in(".", &["build"], &vars).expect(0);
    assert!(said.err.contains("skipped") && said_of(&said.err).is_none(), "{}", said.err);
}

#[test]
fn a_compiler_that_is_too_old_is_one_error_with_its_version_and_the_least_one() {
    use std::os::unix::fs::PermissionsExt;
    let fake =
        "#!/bin/sh\ncase $1 in --version) echo 'g++ (Debian 10.2.1-6) 10.2.1';; *) echo '__clang_major__ 10';; esac\n";
    let place = Place::tiny().file("fake/g++", fake);
    let path = place.at("fake/g++");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = path.display().to_string();
    let vars = [("KFORGE_TOOLCHAIN_CXX", path.as_str())];
    let said = place.run_in(".", &["build"], &vars).expect(101);
    let told = format!(
        "error: `{path}` is g++ 10 (g++ (Debian 10.2.1-6) 10.2.1), which is too old: expected g++ 11 or later, or clang++ 14 or later\n"
    );
    assert!(said.err.contains(&told) && said.err.matches("error").count() == 1, "{}", said.err);
    assert!(said.err.contains("`toolchain.cxx`") && !said.err.contains("skipped"), "{}", said.err);
    let said = place.run_in(".", &["doctor"], &vars).expect(0);
    said.prints("missing C++ compiler: ").prints("is g++ 10").prints("install g++ 11 or later");
}

#[test]
fn run_takes_an_overlay() {
    let place = Place::tiny().file("private.toml", "[operator.twice.shapes]\nsecret = { n = 77 }\n");
    place.run("run twice --shape secret").expect(4).says("no shape `secret`");
    place.run("run twice --shape secret --overlay private.toml").expect(0).prints("77 elements");
}

#[test]
fn shapes_of_an_overlay_can_be_selected() {
    let place = Place::tiny().file("private.toml", "[operator.twice.shapes]\nsecret = { n = 79 }\n");
    place.run("build -n --shape secret").expect(4).says("no shape matches `secret`");
    let planned = place.run("build -n --shape secret --overlay private.toml --message-format json").expect(0).out;
    assert!(planned.contains("/secret/verify") && !planned.contains("/five/verify"), "{planned}");
    place.run("build -n --shape secret --overlay gone.toml").expect(101).says("cannot read the overlay");
}

#[test]
fn a_bracket_that_is_never_closed_is_one_error_where_it_opens() {
    for (from, to, at) in [
        ("BLOCK = [32]", "BLOCK = [32", "kernel.toml:22:9"),
        ("shape = [\"n\"] }\noutputs", "shape = [\"n\" }\noutputs", "kernel.toml:9:37"),
    ] {
        let place = Place::empty().file("kernel.toml", &MANIFEST.replacen(from, to, 1));
        let said = place.run("build").expect(101).says("this `[` is never closed").says(at);
        assert_eq!(said.err.matches("error").count(), 1, "{}", said.err);
    }
}

#[test]
fn a_manifest_of_nothing_is_wrong_and_says_what_it_must_hold() {
    for text in ["", "[targets.cpu]\n"] {
        let said = Place::empty().file("kernel.toml", text).run("build").expect(101).says("kernel.toml:1:1");
        let said = said.says("error[manifest.no-package]: ").says("a [package] table with a name");
        assert_eq!(said.err.matches("error").count(), 1, "{}", said.err);
    }
}

#[test]
fn a_misspelt_method_is_warned_of_with_the_one_that_is_meant() {
    let place = Place::tiny();
    let method = |body: &str| {
        let text = format!(
            "{MANIFEST}\n[kernel.twice.methods.\"compute.warp_shufle\"]\noff = {{ flags = [\"-DPLAIN\"] }}\n{body}"
        );
        place.edit("kernel.toml", &place.read("kernel.toml"), &text);
    };
    method("");
    for _ in 0..2 {
        let said = place
            .run("build")
            .expect(0)
            .says("warning[manifest.unknown-method]: `compute.warp_shufle` is not a method");
        let said = said.says("did you mean `compute.warp_shuffle`?").says("kernel.toml:30:");
        assert_eq!(said.err.matches("did you mean").count(), 1, "{}", said.err);
    }
    // A package's own method states which machine code shows it.
    method("sass.any = ['MUFU']\n");
    let said = place.run("build").expect(0);
    assert!(!said.err.contains("unknown-method"), "{}", said.err);
}

#[test]
fn a_dry_run_explains_itself_and_speaks_json() {
    let place = Place::tiny().alone();
    let said =
        place.run("build -n").expect(0).prints("will tiny/twice/generate\n").prints("may  tiny/twice/cpu/select +\n");
    said.says("may: runs only if its inputs change").says("+: its result may add further steps");
    let said = place.run("build -n --message-format json").expect(0);
    let lines: Vec<serde_json::Value> = said.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let of = |id: &str| lines.iter().find(|l| l["id"] == id).unwrap_or_else(|| panic!("{id} in {}", said.out));
    assert_eq!(of("tiny/twice/generate")["certain"], true);
    assert_eq!(of("tiny/twice/generate")["kind"], "generate");
    assert_eq!(
        (&of("tiny/twice/cpu/select")["certain"], &of("tiny/twice/cpu/select")["adds"]),
        (&false.into(), &true.into())
    );
    let last = lines.last().unwrap();
    assert_eq!((&last["reason"], &last["fresh"]), (&"plan-finished".into(), &0.into()));
    assert_eq!(last["will"].as_u64().unwrap() + last["may"].as_u64().unwrap(), lines.len() as u64 - 1);
}

#[test]
fn ablate_says_what_each_method_buys_or_why_that_cannot_be_told() {
    let place = Place::tiny();
    place.run("ablate").expect(0).says("no selected kernel declares a method");
    let methods = "[kernel.twice.methods.\"compute.half\"]\noff = { BLOCK = 32 }\n\n[[kernel.twice.launch]]";
    place.edit("kernel.toml", "[[kernel.twice.launch]]", methods);
    place.edit("kernel.toml", "BLOCK = [32]", "BLOCK = [64, 32]");
    let said =
        place.run("ablate").expect(0).says("twice on cpu").says("unknown compute.half: the emulator measures no times");
    assert!(!said.err.contains("pass emulated"), "{}", said.err);
    // The certificate of one does not answer the other.
    place.run("build").expect(0);
    place.run("ablate").expect(0).says("unknown compute.half");
    place.run("build").expect(0).says("pass emulated");
}

#[test]
fn the_version_is_printed() {
    let place = Place::tiny();
    place.run("version").expect(0).prints(concat!("kforge ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn settings_are_listed_and_schemas_are_in_the_help() {
    let place = Place::tiny();
    place.run("config list").expect(0).prints("build.jobs = (not set)").prints("# default");
    place.run("schema --help").expect(0).prints("[possible values: affected, artifact, artifact-kernels, bundle,");
    assert!(place.run("--help").expect(0).out.contains("  schema  "));
}

#[test]
fn the_help_of_trust_is_about_artifacts_where_artifacts_are_read() {
    let place = Place::empty();
    let help = |command: &str| {
        let out = place.run(&format!("{command} --help")).expect(0).out.clone();
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for command in ["verify-artifact", "install"] {
        let said = help(command);
        assert!(said.contains("may sign artifacts") && said.contains("a repository's list never counts"), "{said}");
        assert!(!said.contains("may sign evidence") && said.matches("--trust <FILE>").count() == 1, "{said}");
    }
    assert!(help("build").contains("may sign evidence"));
    assert!(help("install").contains("--update Accept an older version"));
}

#[test]
fn doctor_works_outside_a_workspace_and_beside_a_broken_manifest() {
    let said = Place::empty().run("doctor").expect(0).prints("no workspace is open").prints("found C++ compiler");
    let said = said.prints("not needed CUDA compiler (NVRTC): no workspace is open here\n");
    assert!(!said.out.contains("missing CUDA"), "{}", said.out);
    let place = Place::empty().file("kernel.toml", "[package\n");
    let broken = place.run("doctor").expect(0).prints("missing workspace").prints("`kforge metadata` shows them");
    broken.prints("missing CUDA compiler (NVRTC)");
}

#[test]
fn every_command_and_flag_says_what_it_does() {
    let place = Place::empty();
    let commands = |help: &str| -> Vec<String> {
        let listed =
            help.lines().skip_while(|l| !l.starts_with("Commands:")).skip(1).take_while(|l| l.starts_with("  "));
        listed.filter(|l| !l.starts_with("   ")).filter_map(|l| l.split_whitespace().next().map(String::from)).collect()
    };
    // `help` itself comes from the parser, and accepts no `--help`.
    let told = |help: &str| commands(help).into_iter().filter(|c| c != "help").collect::<Vec<_>>();
    let mut open: Vec<String> = told(&place.run("--help").expect(0).out);
    assert!(open.len() > 25, "{open:?}");
    while let Some(command) = open.pop() {
        let help = place.run(&format!("{command} --help")).expect(0).out;
        let first = help.lines().next().unwrap();
        assert!(first.len() > 10 && first.starts_with(char::is_uppercase), "`kforge {command}` says `{first}`");
        let under = help.lines().zip(help.lines().skip(1).chain([""]));
        // A possible value of a flag is a bullet, which says what it means itself.
        let flag = |l: &str| l.trim_start().starts_with('-') && !l.trim_start().starts_with("- ");
        for (line, next) in under.filter(|(l, _)| flag(l)) {
            let said = line.trim().split("  ").filter(|p| !p.is_empty()).count() > 1;
            assert!(
                said || next.starts_with("          "),
                "`kforge {command}` does not say what `{}` does",
                line.trim()
            );
        }
        open.extend(told(&help).into_iter().map(|c| format!("{command} {c}")));
    }
}

#[test]
#[ignore = "second tier: two builds"]
fn a_finding_has_its_line_in_explain_and_diff_and_a_failed_compilation_is_told_of_its_side() {
    let place = Place::tiny();
    place.edit("kernel.toml", "BLOCK = [32]", "BLOCK = [32, 64]");
    place.edit("twice.cu", "if (i < n)", "if (i < n || BLOCK == 64)");
    place.run("build --keep-going").expect(100).says("1 of 2 variants is wrong at five");
    let said = place.run("explain tiny/twice/cpu/select").expect(0);
    assert!(said.out.contains("BLOCK=64  wrong at five: ") && said.out.contains("twice.cu:"), "{}", said.out);
    let said = place.run("diff twice BLOCK=32 BLOCK=64").expect(0);
    assert!(said.out.contains("Verdicts:\n  A  pass at five\n  B  wrong at five: "), "{}", said.out);
    assert!(said.out.contains("twice.cu:") && !said.out.contains("@{"), "{}", said.out);
    // A compilation that fails leaves no result; the report of the last build says why.
    place.edit("twice.cu", "int i =", "static_assert(BLOCK == 32, \"one size\");\n    int i =");
    place.run("build --keep-going").expect(101);
    let said = place.run("diff twice BLOCK=32 BLOCK=64").expect(0);
    let failed = "  A  pass at five\n  B  failed in the last build: `tiny/twice/BLOCK=64/cpu/compile`: ";
    assert!(said.out.contains(failed), "{}", said.out);
}
