//! Commands that only read: explain, report, tree, metadata, run, and the display of settings and paths.

use crate::place::{MANIFEST, Place, SOURCE};

#[test]
fn explain_follows_an_edit_from_the_step_to_the_file() {
    let place = Place::tiny();
    place.run("build").expect(0);
    place.run("explain cpu/five/verify").expect(0).prints("is fresh").prints("it had no result before");
    place.edit("twice.cu", "if (i < n)", "/* guard */ if (i < n)");
    let said = place.run("explain BLOCK=32/cpu/compile").expect(0);
    let said = said.prints("would run now").prints("`tiny/twice/generate`'s file `twice.cu` changed");
    assert!(said.out.contains("before blake3:") && said.out.contains("after  blake3:"), "{}", said.out);
    let json = place.run("explain --json BLOCK=32/cpu/compile").expect(0).json();
    assert_eq!(json["standing"], "may-run");
    let root = json["because"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&root["what"], &root["why"]["field"]), (&"tiny/twice/generate".into(), &"inputs.file:twice.cu".into()));
    assert_ne!(root["why"]["before"], root["why"]["after"]);
    // The build agrees with the explanation, and remembers it.
    place.run("build").expect(0);
    let now = place.run("explain BLOCK=32/cpu/compile").expect(0);
    now.prints("is fresh").prints("it last ran because its source changed").prints("inputs.file:twice.cu");
    place.run("explain cpu/five/verify").expect(0).prints("is fresh").prints("it had no result before");
}

#[test]
fn explain_tells_of_the_result_that_counts_after_an_edit_and_a_change_back() {
    // A separate home, so that no other test has compiled the edited source.
    let place = Place::tiny().alone();
    place.run("build").expect(0);
    let first = place.run("explain --json --fields BLOCK=32/cpu/compile").expect(0).json();
    place.edit("twice.cu", "if (i < n)", "/* back and forth */ if (i < n)");
    place.run("build").expect(0);
    place.run("explain BLOCK=32/cpu/compile").expect(0).prints("it last ran because its source changed");
    let edited = place.run("explain --json BLOCK=32/cpu/compile").expect(0).json();
    assert_eq!(edited.get("earlier"), None, "{edited}");
    place.edit("twice.cu", "/* back and forth */ if (i < n)", "if (i < n)");
    // The last run was of the edited source. It no longer counts, neither before the next build nor after it.
    let swapped = |json: &serde_json::Value, when: &str| {
        assert_eq!((&json["standing"], &json["earlier"]), (&"fresh".into(), &when.into()), "{json}");
        assert_eq!(json["fields"], first["fields"], "{when}");
        let why = |json: &serde_json::Value, at: usize, side: &str| json["because"][at]["why"][side].clone();
        for at in 0..2 {
            assert_eq!(why(json, at, "before"), why(&edited, at, "after"), "{json}");
            assert_eq!(why(json, at, "after"), why(&edited, at, "before"), "{json}");
        }
        assert_eq!(json["because"][1]["what"], "tiny/twice/generate", "{json}");
    };
    let said = place.run("explain BLOCK=32/cpu/compile").expect(0).prints("is fresh");
    said.prints("it need not run: its result was found earlier").prints("since the last build its source changed");
    swapped(&place.run("explain --json BLOCK=32/cpu/compile").expect(0).json(), "now");
    let built = place.run("build").expect(0);
    assert!(built.err.contains(" 0 executed"), "{}", built.err);
    let said =
        place.run("explain BLOCK=32/cpu/compile").expect(0).prints("it was looked for because its source changed");
    assert!(said.out.contains("it did not run in the last build") && !said.out.contains("it last ran"), "{}", said.out);
    swapped(&place.run("explain --json BLOCK=32/cpu/compile").expect(0).json(), "last-build");
}

#[test]
fn explain_tells_what_a_method_is_in_any_folder_and_helps_with_its_name() {
    let place = Place::empty();
    let said = place.run("explain memory.async_copy").expect(0);
    said.prints("memory.async_copy: Asynchronous copies").prints("sm_80 and later").prints("LDGSTS");
    let json = place.run("explain --json memory.async_copy").expect(0).json();
    assert_eq!((&json["axis"], &json["signature"][""]["any"][0]), (&"memory".into(), &"LDGSTS".into()));
    Place::tiny().run("explain memory.asinc_copy").expect(4).says("did you mean `memory.async_copy`?");
}

#[test]
fn explain_shows_every_hashed_field_and_helps_to_find_steps() {
    let place = Place::tiny();
    // The tests share the home. Without this build, the test would depend on which test ran before.
    place.run("build").expect(0);
    place.run("explain --fields BLOCK=32/cpu/compile").expect(0).prints("kind = compile").prints("params.arch = cpu");
    let said = place.run("explain BLOCK=32").expect(4).says("4 steps have `BLOCK=32` in their ids");
    said.says("  tiny/twice/BLOCK=32/cpu/five/judge\n");
    place.run("explain cpu/fiv/verify").expect(4).says("did you mean `cpu/five/verify`?");
    place.run("explain zzz").expect(4).says("no step of the plan has `zzz` in its id").says("kforge tree");
}

#[test]
fn build_takes_names_of_kernels() {
    let place = Place::tiny();
    place.edit("kernel.toml", "BLOCK = [32]", "BLOCK = [32, 64]");
    let all = place.run("build -n").expect(0);
    assert_eq!(place.run("build -n twice").expect(0).out, all.out);
    place.run("build -n tw*").expect(0);
    place.run("build twise").expect(4).says("no kernel matches `twise`").says("did you mean `twice`?");
    place.run("check tiny").expect(4).says("`tiny` is a package; `-p tiny` selects it");
    for (from, to) in [
        ("[operator.twice]", "[operator.double]"),
        ("[operator.twice.shapes]", "[operator.double.shapes]"),
        ("operator = \"twice\"", "operator = \"double\""),
    ] {
        place.edit("kernel.toml", from, to);
    }
    place.run("verify double").expect(4).says("`double` is an operator; `--operator double` selects its kernels");
}

#[test]
fn report_says_what_the_last_build_found_or_that_there_was_none() {
    let place = Place::tiny();
    place.run("report").expect(101).says("there is no report").says("run `kforge build` first");
    let brief = place.run("build").expect(0).says("Finished").says("twice  cpu  pass emulated  BLOCK=32 (provisional)");
    assert!(!brief.err.contains("largest error"), "{}", brief.err);
    let built = place.run("build -v").expect(0).says("Finished");
    let text = place.run("report").expect(0);
    let (results, by) = text.out.trim_end().rsplit_once('\n').unwrap();
    assert!(built.err.contains(results), "-v prints the report:\n{}\n{}", built.err, text.out);
    assert!(by.starts_with("built just now by kforge "), "{by}");
    place.run("report --format markdown").expect(0).prints("# kforge report").prints("| twice | cpu |");
    let json = place.run("report --format json").expect(0).json();
    assert_eq!(json["packages"][0]["kernels"][0]["targets"][0]["shapes"][0]["verdict"], "pass");
    let place = place.file("target/kforge/report.json", "{");
    place.run("report").expect(101).says("is not a report");
}

#[test]
fn a_report_is_a_page_that_is_written_printed_and_opened() {
    let place = Place::tiny().file("browser.sh", "printf %s \"$2\" > seen.tmp && mv seen.tmp seen");
    place.run("report --html").expect(101).says("there is no report");
    place.run("build").expect(0);
    place.run("report --html").expect(0).says("Wrote").says("report.html");
    let page = place.read("target/kforge/report.html");
    assert!(
        page.starts_with("<!doctype html>\n") && page.contains("twice") && page.contains("passes, emulated"),
        "{page}"
    );
    assert_eq!(place.run("report --html -").expect(0).out, page, "one document gives one page");
    place.run("report --html page.html").expect(0);
    assert_eq!(place.read("page.html"), page);
    let opened = place.run_in(".", &["report", "--html", "--open"], &[("BROWSER", "sh browser.sh --new")]).expect(0);
    let began = std::time::Instant::now();
    while !place.at("seen").exists() && began.elapsed().as_secs() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(place.read("seen"), place.at("target/kforge/report.html").display().to_string(), "{}", opened.err);
    let missing = place.run_in(".", &["report", "--html", "--open"], &[("BROWSER", "no-such-browser")]);
    missing.expect(101).says("cannot start `no-such-browser`");
    place.run("report --html - --open").expect(2).says("`--open` opens a file");
    place.run("report --open").expect(2).says("--html");
    place.run("report --html --score speedup").expect(2).says("cannot be used with");
}

#[test]
#[ignore = "second tier: a build and several runs"]
fn a_page_of_a_part_of_the_report_does_not_replace_the_whole_page_and_says_what_it_is() {
    let place = Place::tiny();
    place.edit("kernel.toml", "five = { n = 5 }", "five = { n = 5 }\nsix = { n = 6 }");
    place.run("build").expect(0);
    // A selection that leaves nothing out is no part.
    place.run("report --html --kernel twice").expect(0).says("report.html");
    let whole = place.read("target/kforge/report.html");
    assert!(!whole.contains("Narrowed"), "{whole}");
    place.run("report --html --shape six").expect(0).says("report.narrowed.html");
    assert_eq!(place.read("target/kforge/report.html"), whole);
    let part = place.read("target/kforge/report.narrowed.html");
    assert!(part.contains("<b>Narrowed</b> to shape `six`.") && !part.contains("five"), "{part}");
    assert_eq!(place.run("report --html - --shape six").expect(0).out, part);
    place.run("report --html part.html --shape six").expect(0);
    assert_eq!(place.read("part.html"), part);
    let json = place.run("report --format json --shape six").expect(0).json();
    assert_eq!(
        (json["narrowed"]["shapes"][0].as_str(), &json["narrowed"]["kernels"]),
        (Some("six"), &serde_json::json!([]))
    );
    assert_eq!(place.run("report --format json").expect(0).json()["narrowed"], serde_json::Value::Null);
}

#[test]
#[ignore = "second tier: a build and several runs"]
fn an_edited_argument_has_its_name_also_where_a_launch_has_a_condition() {
    let place = Place::tiny();
    let other = "template <int BLOCK>\n__global__ void other(float *y, const float *x, int n) {}\n";
    place.edit("twice.cu", "template <int BLOCK>\n", &format!("{other}template <int BLOCK>\n"));
    let launch = "[[kernel.twice.launch]]\n";
    let large =
        "when = \"n > 100\"\nentry = \"other<BLOCK>\"\ngrid = [1]\nblock = [\"BLOCK\"]\nargs = [\"y\", \"x\", \"7\"]\n";
    place.edit("kernel.toml", launch, &format!("{launch}{large}\n{launch}"));
    place.run("build").expect(0);
    place.edit("kernel.toml", "\"y\", \"n\"]", "\"y\", \"n - 1\"]");
    place.run("report").expect(0).prints("the argument `n - 1` of launch 1 changed since this was built");
    place.run("explain cpu/five/verify").expect(0).prints("argument `n - 1` of launch 1 changed");
}

#[test]
#[ignore = "second tier: many builds"]
fn results_of_a_build_that_ended_at_a_failure_are_not_stale_and_explain_names_the_next_step() {
    let place = Place::tiny().alone();
    place.edit("kernel.toml", "BLOCK = [32]", "BLOCK = [32, 64, 128]");
    place.edit("kernel.toml", "five = { n = 5 }", "five = { n = 5 }\nsix = { n = 6 }\nseven = { n = 7 }");
    place.run("build").expect(0);
    place.edit("twice.cu", "2.0f * x[i]", "(BLOCK == 64 ? 3.0f : 2.0f) * x[i]");
    place.run("build -j 1").expect(100).says("were not tried, because the build ended at");
    let said = place.run("report").expect(0).prints("(BLOCK=64)");
    assert!(!said.out.contains("stale") && !said.out.contains("earlier version"), "{}", said.out);
    place.run("explain twice").expect(0).prints("nothing is selected yet").prints(" to run: `tiny/twice/BLOCK=64/cpu/");
    // An edit after it is one.
    place.edit("twice.cu", "if (i < n)", "/* guarded */ if (i < n)");
    place.run("report").expect(0).prints("stale: `twice.cu` was edited since this was built");
}

#[test]
fn a_report_says_at_which_commit_it_was_built_and_what_was_edited_since() {
    let place = Place::tiny();
    let commit = "git init -q . && git add . && git -c user.name=n -c user.email=n@example.com commit -qm c && git rev-parse HEAD";
    let commit = place.shell(commit).trim().to_string();
    place.run("build").expect(0);
    let built = place.run("report --format json").expect(0).json()["built"].clone();
    assert_eq!((&built["commit"], &built["dirty"]), (&commit.as_str().into(), &false.into()), "{built}");
    assert_eq!((&built["interrupted"], &built["selected"]["packages"][0]), (&false.into(), &"tiny".into()));
    // A build with nothing to do gives no new results.
    place.run("build").expect(0);
    assert_eq!(place.run("report --format json").expect(0).json()["built"], built);
    place.edit("twice.cu", "if (i < n)", "/* guarded */ if (i < n)");
    let stale = "    stale: `twice.cu` was edited since this was built\n";
    place.run("report").expect(0).prints(stale).prints("provisional: BLOCK=32");
    place.run("build").expect(0);
    let said = place.run("report").expect(0).prints(&format!("at commit {} with uncommitted changes\n", &commit[..12]));
    assert!(!said.out.contains("stale"), "{}", said.out);
    place.edit("kernel.toml", "rtol = 1e-6", "rtol = 2e-6");
    place.run("report").expect(0).prints("    stale: the tolerance of `").prints("since this was built\n");
    // A selection that the manifest no longer has cannot be planned, and the results are shown all the same.
    place.edit("kernel.toml", "name = \"tiny\"", "name = \"other\"");
    place.run("report").expect(4).says("`other` was not built");
}

#[test]
fn explain_and_run_find_the_steps_of_the_last_build_whatever_it_selected() {
    let place = Place::tiny();
    place.edit("kernel.toml", "five = { n = 5 }", "five = { n = 5 }\nseven = { n = 7 }");
    place.run("build --shape five").expect(0);
    // With both shapes the selection would read more.
    let json = place.run("explain --json cpu/select").expect(0).json();
    assert_eq!((&json["standing"], &json["choices"][0]["champion"]), (&"fresh".into(), &"BLOCK=32".into()), "{json}");
    place.run("run tiny/twice/cpu/select").expect(0).prints("fresh");
    place.run("explain cpu/seven/judge").expect(0).prints("would run now");
    place.run("explain --shape seven cpu/five/judge").expect(4).says("no step of the plan");
    place
        .run("explain twice")
        .expect(0)
        .prints("tiny/twice, a kernel of operator twice")
        .prints("provisional: BLOCK=32");
    place.run("explain --shape seven twice").expect(0).prints("nothing is selected yet");
}

#[test]
#[ignore = "second tier: three builds"]
fn a_variant_that_does_not_compile_has_one_failure_and_no_unknown_verdicts() {
    let place = Place::tiny().alone();
    place.edit("kernel.toml", "BLOCK = [32]", "BLOCK = [32, 64]");
    place.run("build").expect(0);
    place.edit("twice.cu", "if (i < n)", "static_assert(BLOCK != 64, \"no\");\n  if (i < n)");
    let said = place.run("build --keep-going").expect(101).says("fail twice on cpu: compile: twice.cu:");
    assert!(!said.err.contains("unknown twice") && !said.err.contains("gave no result"), "{}", said.err);
    let said = place.run("report").expect(0).prints("provisional: BLOCK=32").prints("(1 variant)");
    assert!(!said.out.contains("unknown") && !said.out.contains("gave no result"), "{}", said.out);
    // A failure is not stored, so a selection now would have to compile again; what the report shows is named.
    let last =
        "the last build selected: BLOCK=32  (provisional; first correct variant in declaration order; not timed)";
    let said = place.run("explain twice").expect(0).prints("nothing is selected yet").prints(last);
    said.prints("failed in the last build: compile: twice.cu:");
    let json = place.run("explain --json twice").expect(0).json();
    assert_eq!(json[0]["seats"][0]["last_build"][0]["champion"], "BLOCK=32", "{json}");
    let narrowed = place.run("explain --shape five twice").expect(0).prints("nothing is selected yet");
    assert!(!narrowed.out.contains("the last build selected"), "{}", narrowed.out);
    // What fails for an operator is the reason of every verdict that it prevents.
    place.edit("kernel.toml", "{ builtin = \"elementwise\", y = \"2 * x\" }", "\"ref.cpp::f\"");
    std::fs::write(place.at("ref.cpp"), "#error no\nextern \"C\" void f() {}\n").unwrap();
    place.edit("twice.cu", "static_assert(BLOCK != 64, \"no\");", "");
    place.run("build --keep-going").expect(101);
    place.run("report").expect(0).prints("failed oracle: cannot compile the reference `ref.cpp`");
    let json = place.run("report --format json").expect(0).json();
    let shapes = json["packages"][0]["kernels"][0]["targets"][0]["shapes"].as_array().unwrap();
    let is_named = |shape: &serde_json::Value| shape["prevented_by"].as_str().is_some_and(|id| id.ends_with("/oracle"));
    // The list of failures says it, so the text does not repeat it; the verdict stays unknown.
    assert!(!shapes.is_empty() && shapes.iter().all(is_named), "{json}");
}

#[test]
#[ignore = "second tier: two builds"]
fn where_a_variant_does_not_compile_a_difference_has_the_champion_of_the_last_build() {
    let place = Place::tiny();
    place.edit("kernel.toml", "BLOCK = [32]", "BLOCK = [32, 64, 96]");
    place.edit("twice.cu", "if (i < n)", "static_assert(BLOCK != 64, \"no\");\n  if (i < n)");
    place.run("build --keep-going").expect(101).says("champion BLOCK=32 (provisional)");
    let marked = "  A  BLOCK=32  champion (provisional; of the correct variants, in the last build)\n  B  BLOCK=64\n";
    place.run("diff twice").expect(0).prints(marked);
    let json = place.run("diff --message-format json twice BLOCK=96").expect(0).json();
    let how = serde_json::json!({ "provisional": true, "last_build": true, "of_correct": true });
    assert_eq!((&json["a"]["selected"], json["b"].get("selected")), (&how, None), "{json}");
    // What the plan knows needs no last build.
    place.edit("twice.cu", "static_assert(BLOCK != 64, \"no\");\n  ", "");
    place.run("build").expect(0);
    place.run("diff twice").expect(0).prints("  A  BLOCK=32  champion (provisional)\n");
}

/// A second kernel of the tiny package, for `[kernel.after]`.
const AFTER: &str = "\n[kernel.after]\noperator = \"twice\"\nsource = \"after.cu\"\n\
    [[kernel.after.launch]]\nentry = \"after\"\ngrid = [\"1\"]\nblock = [\"32\"]\nargs = [\"x\", \"y\", \"n\"]\n";

/// Its source.
const AFTER_SOURCE: &str = "__global__ void after(const float *x, float *y, int n) {\n\
    for (int i = threadIdx.x; i < n; i += 32) y[i] = 2 * x[i];\n}\n";

#[test]
#[ignore = "second tier: three builds"]
fn what_a_build_did_not_get_to_is_listed_with_its_last_result() {
    let place = Place::tiny().alone().file("after.cu", AFTER_SOURCE);
    let manifest = place.read("kernel.toml") + AFTER;
    let place = place.file("kernel.toml", &manifest);
    place.run("build").expect(0);
    // One kernel does not compile, and the result of the other is not known.
    place.edit("twice.cu", "2.0f * x[i]", "two * x[i]");
    place.edit("after.cu", "2 * x[i]", "7 * x[i] - 5 * x[i]");
    let said = place.run("build -j 1").expect(101);
    let stopped = "the build stopped at `tiny/";
    let last = "last known: pass emulated, the only variant (provisional)";
    said.says("  after  cpu  not built  ").says(last).says(&format!("not built after on cpu: {stopped}"));
    let said = place.run("report").expect(0).prints(&format!("  after on cpu: not built: {stopped}"));
    said.prints(&format!("    {last}, 2"));
    place.run("explain after").expect(0).prints(&format!("  no result in the last build: {stopped}"));
    let json = place.run("report --format json").expect(0).json();
    let kernels = json["packages"][0]["kernels"].as_array().unwrap();
    let after = kernels.iter().find(|kernel| kernel["name"] == "after").unwrap();
    let not_built = &after["targets"][0]["not_built"];
    assert_eq!((&not_built["stopped"], &not_built["last"]["passed"]), (&true.into(), &1.into()), "{not_built}");
    place.run("report --format markdown").expect(0).prints("* `after` on `cpu` was not built: the build stopped at");
    assert!(place.run("report --html -").expect(0).out.contains("not built: the build stopped at"));
    // Another failure keeps what is known.
    place.edit("twice.cu", "two * x[i]", "zwei * x[i]");
    place.run("build -j 1").expect(101).says(last);
}

#[test]
#[ignore = "second tier: three builds"]
fn a_kernel_for_which_nothing_is_selected_says_why() {
    let place = Place::tiny().alone();
    place.edit("kernel.toml", "BLOCK = [32]", "BLOCK = [32, 64, 96, 128, 160]");
    place.edit("twice.cu", "2.0f * x[i]", "5.0f * x[i]");
    place.run("build -j 1").expect(100);
    let said = place.run("explain twice").expect(0).prints("  nothing is selected yet: ").prints(" of 5 variants ");
    let said = said.prints(" not judged\n    BLOCK=").prints("  wrong at five: `y` is wrong at ");
    said.prints("  `kforge report -p tiny --kernel twice --target cpu` shows more\n");
    let json = place.run("explain --json twice").expect(0).json();
    let wrong = &json[0]["seats"][0]["wrong"];
    assert_eq!((&wrong["variants"], &wrong["shape"]), (&5.into(), &"five".into()), "{json}");
    place.edit("twice.cu", "5.0f * x[i]", "five * x[i]");
    place.run("build").expect(101);
    let said = place.run("explain twice").expect(0).prints("  nothing is selected yet\n");
    said.prints("  failed in the last build: compile: twice.cu:4").prints("` shows more\n");
}

#[test]
#[ignore = "second tier: two builds"]
fn after_a_reference_failed_a_report_does_not_say_that_it_changed_since() {
    let place = Place::tiny();
    place.edit("kernel.toml", "{ builtin = \"elementwise\", y = \"2 * x\" }", "\"ref.cpp::f\"");
    let source = "extern \"C\" void f(const kforge::Call &call) {\n  const double *x = call.floats(\"x\");\n  \
        double *y = call.out_floats(\"y\");\n  for (int64_t i = 0; i < call.dim(\"n\"); ++i) y[i] = 2 * x[i];\n}\n";
    let place = place.file("ref.cpp", source);
    place.run("build").expect(0);
    place.edit("ref.cpp", "2 * x[i]", "2 * z[i]");
    assert!(place.run("report").expect(0).out.contains("stale: the source of the reference changed since"));
    place.run("build").expect(101);
    let said = place.run("report").expect(0).prints("failed oracle: cannot compile the reference `ref.cpp`");
    assert!(!said.out.contains("stale"), "{}", said.out);
    // Another edit is one.
    place.edit("ref.cpp", "2 * z[i]", "2 * w[i]");
    place.run("report").expect(0).prints("stale: the source of the reference changed since");
}

#[test]
#[ignore = "second tier: two builds"]
fn a_change_with_which_one_kernel_failed_makes_another_stale() {
    let place = Place::tiny().alone().file("after.cu", AFTER_SOURCE);
    let manifest = place.read("kernel.toml") + AFTER;
    let place = place.file("kernel.toml", &manifest);
    place.run("build").expect(0);
    place.edit("kernel.toml", "source = \"twice.cu\"", "source = \"twice.cu\"\nflags = [\"-Dtwice=1+\"]");
    place.run("build --keep-going").expect(101);
    let said = place.run("report").expect(0);
    assert!(!said.out.contains("stale"), "{}", said.out);
    place.edit("kernel.toml", "source = \"after.cu\"", "source = \"after.cu\"\nflags = [\"-Dtwice=1+\"]");
    let said = place.run("report").expect(0).prints("stale: the ");
    assert_eq!(said.out.matches("stale").count(), 1, "{}", said.out);
    // A second difference beside the one that failed.
    let flags = |all: &str| format!("source = \"twice.cu\"\nflags = [{all}]\n");
    place.edit("kernel.toml", &flags("\"-Dtwice=1+\""), &flags("\"-Dtwice=1+\", \"-Utwice\""));
    let said = place.run("report").expect(0);
    assert_eq!(said.out.matches("stale").count(), 2, "{}", said.out);
}

#[test]
fn a_report_is_of_the_package_at_hand_and_says_where_that_was_not_built() {
    let package = |name: &str| MANIFEST.replace("name = \"tiny\"", &format!("name = \"{name}\""));
    let place = Place::empty().file("kernel.toml", "[workspace]\nmembers = [\"a\", \"b\"]\n");
    let place = place.file("a/kernel.toml", &package("a")).file("a/twice.cu", SOURCE);
    let place = place.file("b/kernel.toml", &package("b")).file("b/twice.cu", SOURCE);
    place.run("-C a build").expect(0);
    assert!(place.run("-C a report").expect(0).out.starts_with("a\n"));
    let said = place.run("-C b report").expect(4).says("`b` was not built: the last build was of `a`");
    assert_eq!(said.says("`--workspace` shows all").out, "");
    place.run("-C b report --format json").expect(4);
    assert!(place.run("-C b report --workspace").expect(0).out.starts_with("a\n"));
    assert!(place.run("report").expect(0).out.starts_with("a\n"));
    place.run("build").expect(0);
    let one = place.run("-C b report").expect(0).out;
    assert!(one.starts_with("b\n") && !one.contains("a\n  twice"), "{one}");
    place.run("-C b report -p b --kernel twice").expect(0);
}

#[test]
fn a_report_says_what_a_class_of_shapes_is_a_value_of() {
    let place = Place::tiny();
    place.edit("kernel.toml", "five = { n = 5 }", "five = { n = 5 }\nnine = { n = 9 }");
    place.edit("kernel.toml", "source = \"twice.cu\"", "source = \"twice.cu\"\nselect = { per = \"n\" }");
    place.run("build").expect(0).says("twice  cpu  pass emulated  BLOCK=32 (provisional)");
    let said = place.run("report").expect(0);
    let said = said.prints("provisional for n = 5: BLOCK=32").prints("for n = 9: BLOCK=32");
    assert_eq!(said.out.matches("(BLOCK=32)").count(), 0, "one variant stands for both: {}", said.out);
    place.run("report --format markdown").expect(0).prints("| provisional for n = 9 |");
    let target = &place.run("report --format json").expect(0).json()["packages"][0]["kernels"][0]["targets"][0];
    assert_eq!((&target["per"], &target["champions"][0]["class"]), (&"n".into(), &"5".into()));
    place.edit("kernel.toml", "per = \"n\"", "per = \"n * 2\"");
    place.run("build").expect(0);
    place.run("report").expect(0).prints("provisional for `n * 2` = 18: BLOCK=32");
    // `kforge accept` reports the class too.
    place.run("accept twice -n").expect(0).says("would be added").says("2 changes, not written");
    let said = place.run("accept twice").expect(0).says("for shapes of class `18` is added");
    said.says("tiny/twice/cpu for `n * 2` = 10: BLOCK=32").says("tiny/twice/cpu for `n * 2` = 18: BLOCK=32");
}

#[test]
fn candidates_of_generated_kernels_name_a_file_that_exists() {
    let manifest = MANIFEST.split("source =").next().unwrap();
    let generated = format!("{manifest}generate = {{ template = \"elementwise\" }}\ntune.BLOCK = [32]\n");
    let place = Place::empty().alone().file("kernel.toml", &generated);
    place.run("build").expect(0);
    let file = "target/kforge/generated/tiny/twice.cu";
    place.run("candidates").expect(0).prints(&format!("    source: {file}\n"));
    let source = place.read(file);
    // Cleaning removes the file, but not the memory of the candidate.
    std::fs::remove_dir_all(place.at("target/kforge/generated")).unwrap();
    place.run("candidates").expect(0).prints(&format!("    source: {file}\n"));
    assert_eq!(place.read(file), source);
}

#[test]
fn the_tree_shows_what_hangs_on_what() {
    let place = Place::tiny();
    let down = place.run("tree").expect(0).prints("tiny/twice/cpu/select\n");
    down.prints("├── tiny/twice/BLOCK=32/cpu/five/judge\n");
    let roots = place.run("tree --depth 0").expect(0);
    assert_eq!(roots.out, "tiny/twice/cpu/select\n", "judgements read the calibration");
    let up = place.run("tree --invert --stage generate").expect(0);
    assert!(up.out.starts_with("tiny/twice/generate\n└── tiny/twice/BLOCK=32/cpu/compile\n"), "{}", up.out);
    place.run("tree --stage compil").expect(2).says("did you mean `compile`?");
    place.run("tree --stage bench").expect(4).says("no bench step");
    place.run("tree --kernel thrice").expect(4).says("no kernel matches `thrice`");
}

#[test]
fn metadata_tells_of_the_workspace_and_leaves_no_trace() {
    let place = Place::tiny().alone();
    let json = place.run("metadata --format-version 1").expect(0).json();
    let package = &json["packages"][0];
    assert_eq!((&package["name"], &package["kernels"][0]["variants"]["cpu"]), (&"tiny".into(), &1.into()));
    assert_eq!(package["operators"][0]["shapes"][0]["dims"]["n"], 5);
    assert_eq!(json["lockfile"]["empty"], true);
    assert!(!place.home().exists() && !place.at("target").exists() && !place.at("kforge.lock").exists());
    assert_eq!(json["format_version"], 1);
    assert_eq!(place.run("metadata --format-version 2").expect(0).json()["format_version"], 2);
    assert_eq!(place.run("metadata").expect(0).json()["format_version"], 2);
    place.run("metadata --format-version 3").expect(2).says("expected 1 or 2");
}

#[test]
fn run_shows_what_one_variant_gave() {
    let place = Place::tiny();
    let said = place.run("run twice --shape five --variant BLOCK=32").expect(0).prints("pass (emulated)");
    said.prints("output `y`: 5 elements of f32").prints("bit for bit");
    place.run("run twice --shape five --variant BLOCK=64").expect(4).says("expected one of `BLOCK=32`");
    place.run("run twice --shape fife").expect(4).says("did you mean `five`?");
    let wrong = Place::tiny();
    wrong.edit("twice.cu", "2.0f", "2.5f");
    let said = wrong.run("run twice --shape five").expect(100).prints("fail (emulated)");
    assert!(said.out.contains("index") && said.out.contains("want"), "{}", said.out);
    let beyond = Place::tiny();
    beyond.edit("twice.cu", "i < n", "i <= n");
    beyond.run("run twice --shape five").expect(100).prints("`x`").prints("twice.cu:4");
    let broken = Place::tiny();
    broken.edit("twice.cu", "int i =", "int i");
    broken.run("run twice --shape five").expect(101).says("cannot compile `twice.cu`").says("error:");
}

#[test]
fn quiet_says_errors_only_and_verbose_says_why() {
    let place = Place::tiny().alone();
    let loud = place.run("build -v").expect(0);
    loud.says("Because").says("tiny/twice/BLOCK=32/cpu/compile: new");
    // The compiler's output is printed once, at any verbosity.
    place.edit("twice.cu", "template <int", "#pragma message \"spoken\"\ntemplate <int");
    let said = place.run("build -vv").expect(0);
    assert_eq!(said.err.matches("#pragma message: spoken").count(), 1, "{}", said.err);
    let said = place.run("build -q").expect(0);
    assert_eq!((said.out.as_str(), said.err.as_str()), ("", ""));
    place.edit("twice.cu", "2.0f", "3.0f");
    place.run("build -q").expect(100).says("error:");
}

#[test]
fn the_project_and_its_settings_are_found() {
    let place = Place::tiny().file("src/deep/x.txt", "").file(".kforge/config.toml", "[build]\njobs = 3\n");
    let manifest = place.at("kernel.toml").display().to_string();
    let said = place.run_in("src/deep", &["locate-project"], &[]).expect(0);
    assert_eq!(said.json()["root"], manifest.as_str());
    let said = place.run("locate-project --message-format plain").expect(0);
    assert_eq!(said.out, format!("{manifest}\n"));
    place.run("-C /tmp locate-project").expect(101).says("kforge init");
    place.run("config get build.jobs").expect(0).prints("build.jobs = 3  # ").prints(".kforge/config.toml\n");
    let said = place.run_in(".", &["config", "get", "build"], &[("KFORGE_BUILD_JOBS", "4")]).expect(0);
    said.prints("build.jobs = 4 ")
        .prints("# environment variable KFORGE_BUILD_JOBS")
        .prints("build.keep-going = false");
    place.run("config get jobs").expect(4).says("did you mean `build.jobs`?");
}

#[test]
fn doctor_says_what_is_there_and_what_is_missing_costs() {
    let place = Place::tiny();
    let said = place.run("doctor").expect(0).prints("found kforge home").prints("found C++ compiler");
    let said = said
        .prints("missing CUDA compiler (NVRTC)")
        .prints("kforge cannot compile for targets `sm_*` until it is installed");
    said.prints("kforge emulates and verifies kernels on the target `cpu`").prints("to fix it: ");
    let said = place.run_in(".", &["doctor"], &[("PATH", "/nowhere")]).expect(0);
    said.prints("missing C++ compiler").prints("the target `cpu` cannot be built").prints("install g++");
    let place = place.file("file", "");
    let home = place.at("file/home").display().to_string();
    place
        .run_in(".", &["doctor"], &[("KFORGE_HOME", &home)])
        .expect(0)
        .prints("missing kforge home")
        .prints("KFORGE_HOME");
}

#[test]
fn timings_show_what_ran() {
    let place = Place::tiny().alone();
    let said = place.run("build --timings").expect(0).says("Timed");
    let path = said.err.lines().find_map(|l| l.trim_start().strip_prefix("Timed ")).unwrap().to_string();
    let page = std::fs::read_to_string(path).unwrap();
    assert_eq!(page, place.read("target/kforge/timings/last.html"));
    let page = page.replace("&#x2f;", "/");
    assert!(page.contains("tiny/twice/BLOCK=32/cpu/five/verify") && page.contains("Critical path"), "{page}");
    place.run("build --timings").expect(0);
    assert!(place.read("target/kforge/timings/last.html").contains("Nothing ran"));
}

#[test]
fn a_word_that_is_no_command_is_a_plugin_an_alias_or_a_mistake() {
    let place = Place::tiny()
        .file("bin/kforge-hello", "#!/bin/sh\necho \"hello $*; $KFORGE\"\nexit 7\n")
        .file(".kforge/config.toml", "[alias]\nwhere = \"locate-project --message-format plain\"\n");
    let program = place.at("bin/kforge-hello");
    let mut permissions = std::fs::metadata(&program).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(&program, permissions).unwrap();
    let path = format!("{}:/usr/bin:/bin", place.at("bin").display());
    let said = place.run_in(".", &["hello", "--a", "b"], &[("PATH", &path)]).expect(7);
    assert!(said.out.starts_with("hello --a b; /") && said.out.trim_end().ends_with("kforge"), "{}", said.out);
    place.run_in(".", &["helo"], &[("PATH", &path)]).expect(2).says("did you mean `hello`?");
    place.run("where").expect(0).prints("/kernel.toml\n");
    std::fs::create_dir(place.at("elsewhere")).unwrap();
    place.run_in("elsewhere", &["-C", "..", "where"], &[]).expect(0).prints("/kernel.toml\n");
    place.run("buidl").expect(2).says("there is no command `buidl`").says("did you mean `build`?");
    place.run("help buidl").expect(2).says("there is no command `buidl`").says("did you mean `build`?");
    place.run("build --no-such-flag").expect(2).says("--no-such-flag");
}

#[test]
fn an_unknown_command_of_a_command_names_those_that_it_has() {
    let place = Place::empty();
    let said = place.run("config set build.jobs 4").expect(2).says("there is no command `kforge config set`");
    said.says("`.kforge/config.toml`").says("`kforge help config`");
    place.run("help config").expect(0).prints(".kforge/config.toml").prints("KFORGE_BUILD_JOBS");
    place.run("config lst").expect(2).says("there is no command `kforge config lst`").says("`kforge config list`?");
    place.run("cache frobnicate").expect(2).says("`kforge cache` has the commands ");
}

#[test]
fn what_no_toolchain_is_locked_for_is_said_by_what_compiles_and_not_by_what_looks() {
    let place = Place::tiny();
    place.run("build").expect(0);
    place.edit("kernel.toml", "[targets.cpu]\n", "[targets.cpu]\n[targets.h200]\narch = \"sm_90a\"\n");
    let says = "cannot compile machine code for package `tiny`: kforge.lock names no wheels for CUDA";
    for words in [
        "tree --offline",
        "tree",
        "explain BLOCK=32/cpu/compile",
        "evidence list",
        "explain --offline BLOCK=32/cpu/compile",
    ] {
        let said = place.run(words).expect(0);
        assert!(!said.err.contains("no machine code"), "{words}: {}", said.err);
    }
    place.run("tree").expect(0).prints("run `kforge build` with a network)");
    place.run("build --dry-run --offline").expect(0).says(says).says("run `kforge build` with a network");
    place.run("build --offline").expect(0).says(says).says("run `kforge build` with a network");
}

/// Holds whether pip is installed but no index answers, or pip is not installed.
#[test]
#[ignore = "second tier: many builds"]
fn a_toolchain_that_cannot_be_had_is_said_once_fails_the_build_and_keeps_nothing_else_from_being_built() {
    let place = Place::tiny();
    place.edit("kernel.toml", "[targets.cpu]\n", "[targets.cpu]\n[targets.h200]\narch = \"sm_90a\"\n");
    let vars = [("KFORGE_NET_OFFLINE", "false"), ("PIP_INDEX_URL", "http://127.0.0.1:9/simple"), ("PIP_RETRIES", "0")];
    let said = place.run_in(".", &["build"], &vars).expect(101).says("BLOCK=32 (provisional)");
    assert_eq!(said.err.matches("error[toolchain.refused]: ").count(), 1, "{}", said.err);
    assert!(!place.at("kforge.lock").exists());
    // The result is the same if a certificate exists. Without the network, the missing part is reported.
    place.run_in(".", &["build"], &vars).expect(101).says("error[toolchain.refused]: ");
    place.run_in(".", &["fetch"], &vars).expect(101).says("error[toolchain.refused]: ");
    place.run("build").expect(0).says("names no wheels for CUDA");
}

#[test]
fn output_that_cannot_be_written_is_an_error_and_a_closed_pipe_is_not() {
    let place = Place::tiny();
    let said = place.shell("kforge metadata >/dev/full; echo $?");
    assert!(said.contains("cannot write to standard output: ") && said.ends_with("101\n"), "{said}");
    let said = place.shell("(kforge metadata; echo $? >code) | true; cat code");
    assert_eq!(said, "0\n");
}

#[test]
fn the_last_event_agrees_with_the_exit_code() {
    let place = Place::tiny().file("target/kforge/timings", "a file where the folder belongs");
    let said = place.run("build --timings --message-format json").expect(101);
    let last = said.out.lines().last().unwrap();
    assert!(last.contains("build-finished") && last.contains("\"success\":false"), "{last}");
}

#[test]
#[ignore = "second tier: many builds"]
fn reproduce_says_which_build_runs_and_what_is_changed() {
    let said = Place::tiny().alone().run("reproduce").expect(103).says("no artifacts were compared");
    let at = |text: &str| said.err.find(text).unwrap_or_else(|| panic!("{}", said.err));
    assert!(
        at("Building the first of two builds, one step at a time")
            < at("Building the second of two builds, with another")
    );
}

#[test]
fn the_option_for_the_format_has_two_names_everywhere() {
    let place = Place::tiny();
    place.run("build --format json").expect(0).prints("\"reason\":\"build-finished\"");
    let report = |option: &str| place.run(&format!("report {option}")).expect(0).out;
    assert_eq!(report("--message-format json"), report("--format json"));
    assert_eq!(report("--message-format human"), report("--format text"));
    place.run("locate-project --format plain").expect(0).prints("kernel.toml");
    for command in ["affected", "compare", "evidence list", "package", "install"] {
        let said = place.run(&format!("{command} --help")).expect(0);
        assert!(
            said.out.contains("[alias: --format]") || said.out.contains("[alias: --message-format]"),
            "{}",
            said.out
        );
    }
}

/// A mistake in a manifest is a line of JSON where the result would be one.
#[test]
fn a_command_whose_result_is_a_line_of_json_prints_diagnostics_as_lines() {
    let place = Place::tiny();
    place.edit("kernel.toml", "dims = [\"n\"]", "dimz = [\"n\"]");
    for command in ["package", "reproduce"] {
        let said = place.run(&format!("{command} --message-format json"));
        assert_ne!(said.code, 0, "{command}");
        let lines: Vec<serde_json::Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(
            lines.iter().any(|line| line["reason"] == "diagnostic" && line["severity"] == "error"),
            "{command}: {lines:?}"
        );
        assert_eq!(place.run(command).out, "", "{command}");
    }
}
