//! `kforge import cuda`: what it writes, what it asks for, and that it overwrites nothing. The builds of imported packages are in `tests/e2e`.

use std::fs;

use crate::place::Place;

const COPY: &str = "__global__ void copy_kernel(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
void run(float *x, float *y, int n) { copy_kernel<<<(n + 127) / 128, 128>>>(x, y, n); }
";

const UNKNOWN: &str = "__global__ void frob(const float *x, float *y, int n) { y[threadIdx.x] = x[n]; }\n";

#[test]
fn a_manifest_is_written_once_and_never_overwritten() {
    let place = Place::empty().file("mine/copy.cu", COPY);
    let said = place.run("import cuda mine").expect(0);
    said.says("Imported 1 kernel of 1 operator").says("cd mine && kforge build --target cpu");
    let text = place.read("mine/kernel.toml");
    assert!(text.contains("name = \"mine\"") && text.contains("source = \"copy.cu\""), "{text}");
    place.run("metadata --manifest-path mine").expect(0);
    let unpacked = Place::empty().file("kernels-1.2.0/copy.cu", COPY);
    unpacked.run("import cuda kernels-1.2.0").expect(0);
    assert!(unpacked.read("kernels-1.2.0/kernel.toml").contains("name = \"kernels-1-2-0\""));
    place.run("import cuda mine").expect(101).says("already exists").says("--stdout");
    place.run("import cuda mine/copy.cu").expect(101).says("already exists");
    assert_eq!(place.read("mine/kernel.toml"), text);
    // Elsewhere, in no file, and for programs.
    place.run("import cuda mine --output kernel.toml --name all").expect(0);
    assert!(place.read("kernel.toml").contains("source = \"mine/copy.cu\""));
    assert_eq!(place.run("import cuda mine --stdout").expect(0).out, text);
    place.run("import cuda mine --output other/kernel.toml").expect(2).says("is not below");
    place.run("import cuda mine --output a.toml --stdout").expect(2);
    let json = place.run("import cuda mine --output mine/a.toml --format json").expect(0).json();
    assert_eq!(
        (json["kernels"][0]["entry"].as_str(), json["known_operators"].as_u64()),
        (Some("copy_kernel"), Some(1))
    );
    assert_eq!(json["kernels"][0]["launched_at"], "copy.cu:5");
    let schema = serde_json::from_str(&place.run("schema import").expect(0).out).unwrap();
    assert!(jsonschema::is_valid(&schema, &json), "{json}");
}

#[test]
fn a_kernel_with_an_unknown_operator_is_a_comment_and_the_others_are_ready() {
    let place = Place::empty().file("mine/a.cu", COPY).file("mine/b.cu", UNKNOWN);
    place
        .run("import cuda mine")
        .expect(0)
        .says("remove the `# ` in front of its lines: `frob` (b.cu:1)")
        .says("1 kernel without a launch");
    place.run("check --manifest-path mine --target cpu").expect(0);
    let text = place.read("mine/kernel.toml");
    assert!(text.contains("\n# [operator.frob]\n") && text.contains("\n# reference = \"\" # check: "), "{text}");
    // Uncommented and not completed, it is one error at the line that asks.
    let (known, unknown) = text.split_once("\n# [operator.frob]\n").unwrap();
    let plain: String = unknown.lines().map(|l| format!("{}\n", l.strip_prefix("# ").unwrap_or(l))).collect();
    fs::write(place.at("mine/kernel.toml"), format!("{known}\n[operator.frob]\n{plain}")).unwrap();
    let said = place.run("check --manifest-path mine --target cpu").expect(101);
    assert_eq!(said.err.matches("error[").count(), 1, "{}", said.err);
    said.says("reference = \"\" # check: state what it computes");
    // Alone, it leaves a package with nothing to do.
    let place = Place::empty().file("mine/b.cu", UNKNOWN);
    place.run("import cuda mine").expect(0);
    place.run("check --manifest-path mine --target cpu").expect(4).says("declare no kernel");
}

#[test]
fn what_holds_no_kernel_is_no_package() {
    let place = Place::empty().file("none/readme.md", "").file("host/main.cu", "int main() { return 0; }\n");
    place.run("import cuda none").expect(4).says("there is no `.cu` or `.cuh` file");
    place.run("import cuda host").expect(4).says("no kernel was found in `host`: one source was read");
    let deep = format!("{COPY}void f() {{ use({}1{}); }}\n", "(".repeat(3000), ")".repeat(3000));
    let reasons = Place::empty().file("deep/k.cu", &deep).file("open/k.cu", &format!("{COPY}void f() {{ if (1) {{"));
    reasons.run("import cuda deep").expect(4).says("`k.cu` was left out: its brackets nest deeper than 2000");
    reasons
        .run("import cuda open")
        .expect(4)
        .says("`k.cu` was left out: it ends inside the brace that opens at line 6");
    place.run("import cuda absent").expect(101).says("cannot read `absent`");
    assert!(!place.at("none/kernel.toml").exists() && !place.at("host/kernel.toml").exists());
    let place = Place::empty().file("2fast/a.cu", COPY);
    place.run("import cuda 2fast").expect(101).says("not a valid package name").says("--name");
}

#[test]
fn files_that_cannot_be_imported_are_named_and_the_others_are() {
    let place =
        Place::empty().file("mine/a.cu", COPY).file("mine/open.cu", "__global__ void k(float *x) {\n  if (x) {\n");
    fs::write(place.at("mine/latin.cu"), b"// \xe9\n").unwrap();
    std::os::unix::fs::symlink("a.cu", place.at("mine/link.cu")).unwrap();
    std::os::unix::fs::symlink(".", place.at("mine/loop")).unwrap();
    let said = place.run("import cuda mine").expect(0);
    said.says("`latin.cu` is not imported: it is not UTF-8")
        .says("`link.cu` is not imported: it is a symbolic link")
        .says("`open.cu` is not imported: it ends inside the brace that opens at line 1")
        .says("Imported 1 kernel");
}

#[test]
fn every_name_of_a_file_gives_a_manifest_that_loads_or_a_reason() {
    use std::os::unix::ffi::OsStrExt;
    let place =
        Place::empty().file("mine/a\nb.cu", COPY).file("mine/c\"d.cu", COPY).file("mine/e f/it's # check.cu", COPY);
    let latin = std::ffi::OsStr::from_bytes(b"h\xe9.cu");
    fs::write(place.at("mine").join(latin), COPY).unwrap();
    fs::create_dir(place.at("empty")).unwrap();
    let said = place.run("import cuda mine").expect(0).says("is not imported: its name is not UTF-8");
    said.says("`c\"d.cu` is not imported: no `#include` can name").says("2 lines to check").says("Imported 1 kernel");
    place.run("metadata --manifest-path mine").expect(0);
    place.run("check --manifest-path mine --target cpu").expect(0);
    place.run("import cuda empty").expect(4).says("there is no `.cu` or `.cuh` file");
    assert!(!place.at("empty/kernel.toml").exists());
    // Named themselves, they are one error.
    fs::remove_file(place.at("mine/kernel.toml")).unwrap();
    place.run_in(".", &["import", "cuda", "mine/a\nb.cu"], &[]).expect(101).says("no `#include` can name");
    assert!(!place.at("mine/kernel.toml").exists());
    let output = place.shell("cd mine && kforge import cuda h*.cu; test -e kernel.toml && echo written");
    assert!(output.contains("its name is not UTF-8") && !output.contains("written"), "{output}");
}

#[test]
fn the_lines_to_check_are_counted_without_the_comment_that_explains_them() {
    let place = Place::empty().file("mine/a.cu", COPY);
    place.run("import cuda mine").expect(0).says("Imported 1 kernel of 1 operator, 2 lines to check");
    let text = place.read("mine/kernel.toml");
    let marked = text.lines().filter(|line| line.contains(" # check: ") && !line.starts_with("# ")).count();
    assert_eq!(marked, 2, "{text}");
}

#[test]
fn words_that_no_command_takes_say_what_was_meant() {
    let place = Place::empty().file("mine/a.cu", COPY);
    place.run("import mine/a.cu").expect(2).says("`kforge import cuda mine/a.cu` imports");
    for command in ["report", "tree", "ci"] {
        place.run(&format!("{command} relu")).expect(2).says("select kernels with `--kernel relu`").says("`-p relu`");
    }
    place.run("build --kernal relu").expect(2).says("'--kernel'");
}

#[test]
fn an_imported_package_joins_the_workspace_around_it() {
    let place = Place::empty().file("kernel.toml", "[workspace]\nmembers = []\n").file("mine/a.cu", COPY);
    place.run("import cuda mine").expect(0).says("Adding `mine`");
    assert_eq!(place.read("kernel.toml"), "[workspace]\nmembers = [\"mine\"]\n");
}

#[test]
fn an_error_of_a_kernel_without_tunables_names_no_variant() {
    let manifest = "[package]\nname = \"mine\"\nversion = \"0.1.0\"\n[targets.cpu]\n[operator.copy]\ndims = [\"n\"]\ninputs.x = { dtype = \"f32\", shape = [\"n\"] }\n\
        outputs.y = { dtype = \"f32\", shape = [\"n\"] }\nreference = { builtin = \"elementwise\", y = \"x\" }\nshapes.one = { n = 3 }\n[kernel.copy]\n\
        operator = \"copy\"\nsource = \"copy.cu\"\nTUNE[[kernel.copy.launch]]\nentry = \"copy_kernel\"\ngrid = [\"n - 3\"]\nblock = [32]\nargs = [\"x\", \"y\", \"n\"]\n";
    for (tune, named) in [("", false), ("tune.B = [1]\n", true)] {
        let place = Place::empty().file("copy.cu", COPY).file("kernel.toml", &manifest.replace("TUNE", tune));
        let said = place.run("check --target cpu").expect(101).says("error[manifest.launch-limit]");
        assert_eq!(said.err.contains("for variant"), named, "{}", said.err);
    }
}
