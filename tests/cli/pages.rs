//! The screens in the pages: commands in ```` ```console ```` blocks are run, and must print what the page shows. Times are ignored; a line `...` matches any
//! lines, and `[..]` any part of a line. `SNAPSHOTS=overwrite` writes the blocks again. Commands are shell commands. A block that needs a network, a GPU or
//! another program is marked ```` ```text ````.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::place::Place;

/// A page of the repository.
fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// A text without its times.
fn timeless(text: &str) -> String {
    let is_time = |word: &str| word.parse::<f64>().is_ok() && word.contains('.');
    let word = |w: &str| if is_time(w) { "TIME".to_string() } else { w.to_string() };
    text.split('\n').map(|l| l.split(' ').map(word).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join("\n")
}

/// Whether the printed text matches the shown one.
fn matches(shown: &str, printed: &str) -> bool {
    fn lines(shown: &[&str], printed: &[&str]) -> bool {
        match (shown.split_first(), printed.split_first()) {
            (None, None) => true,
            (Some((&"...", rest)), _) => (0..=printed.len()).any(|skip| lines(rest, &printed[skip..])),
            (Some((shown, rest)), Some((line, left))) => part(shown, line) && lines(rest, left),
            _ => false,
        }
    }
    fn part(shown: &str, line: &str) -> bool {
        match shown.split_once("[..]") {
            None => shown == line,
            Some((head, tail)) => line.strip_prefix(head).is_some_and(|rest| {
                (0..=rest.len()).filter(|i| rest.is_char_boundary(*i)).any(|i| part(tail, &rest[i..]))
            }),
        }
    }
    let (shown, printed) = (timeless(shown), timeless(printed));
    lines(&shown.lines().collect::<Vec<_>>(), &printed.lines().collect::<Vec<_>>())
}

#[test]
fn shown_lines_may_leave_out_what_differs() {
    assert!(matches("a\n...\nd [..] f 1.0 s\n", "a\nb\nc\nd e f 2.5 s\n"));
    assert!(!matches("a\n...\nd\n", "a\nb\n") && !matches("a [..] c\n", "a b\n"));
}

/// The commands of a block, and the text below each.
fn commands(block: &str) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = vec![];
    for line in block.lines() {
        match (line.strip_prefix("$ "), out.last_mut()) {
            (Some(command), _) => out.push((command.into(), String::new())),
            (None, Some((_, shown))) => {
                let _ = writeln!(shown, "{line}");
            }
            (None, None) => panic!("a console block begins with `$ `: {block}"),
        }
    }
    out
}

/// Runs every console block of a page in order in one place, and compares the page with the output.
#[expect(
    clippy::disallowed_methods,
    reason = "a test stands where config does: whoever runs it may ask for the pages anew"
)]
fn hold(name: &str, place: &Place) {
    let text = page(name);
    let mut held = String::new();
    let mut wrong = Vec::new();
    for (i, part) in text.split("```console\n").enumerate() {
        let (block, rest) = if i == 0 { ("", part) } else { part.split_once("```").unwrap() };
        if i > 0 {
            held.push_str("```console\n");
        }
        for (command, shown) in commands(block) {
            let printed = place.shell(&command);
            let right = matches(&shown, &printed);
            if !right {
                wrong.push(format!("$ {command}\n{printed}"));
            }
            // If only the times differ, the shown text stays.
            let kept = if right { &shown } else { &printed };
            let _ = write!(held, "$ {command}\n{kept}");
        }
        if i > 0 {
            held.push_str("```");
        }
        held.push_str(rest);
    }
    if std::env::var("SNAPSHOTS").is_ok_and(|v| v == "overwrite") {
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(name), held).unwrap();
    } else {
        assert!(wrong.is_empty(), "{name} shows something else than what now comes:\n{}", wrong.join("\n"));
    }
}

#[test]
fn the_screens_of_the_guide_are_what_its_commands_print() {
    let text = page("docs/guide.md");
    let block = |fence: &str| {
        let rest = text.split(fence).nth(1).unwrap_or_else(|| panic!("{fence}"));
        rest.split("```").next().unwrap().to_string()
    };
    let place = Place::empty().alone();
    let place = place.file("kernel.toml", &block("```toml\n")).file("row_sum.cu", &block("```cuda\n"));
    hold("docs/guide.md", &place);
}

#[test]
fn the_screens_of_your_kernels_are_what_its_commands_print() {
    let text = page("docs/your-kernels.md");
    let block = |fence: &str| {
        let rest = text.split(fence).nth(1).unwrap_or_else(|| panic!("{fence}"));
        rest.split("```").next().unwrap().to_string()
    };
    let place = Place::empty().alone();
    let place = place.file("kernel.toml", &block("```toml\n")).file("scale.cu", &block("```cuda\n"));
    hold("docs/your-kernels.md", &place);
}

/// The quickstart's screen without that of its GPU target and without the error of its large shape; `.ci/quickstart` checks those.
#[test]
fn the_screen_of_the_readme_is_what_the_quickstart_ends_with() {
    let text = page("README.md");
    let screens: Vec<&str> = text.split("```text\nquickstart\n").skip(1).collect();
    let [brief, details] = screens[..] else { panic!("README.md shows two screens: the end of a build, and a report") };
    let shown = details.split("  rms_norm on h200").next().unwrap();
    let quickstart = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart");
    let mut place = Place::empty();
    for name in ["kernel.toml", "rms_norm.cu", "kforge.lock"] {
        place = place.file(name, &fs::read_to_string(quickstart.join(name)).unwrap());
    }
    // The first variant is the champion; the others would only take time.
    place.edit(
        "kernel.toml",
        "BLOCK = [128, 256]\nVEC = [4, 1]\nSHUFFLE = [true, false]",
        "BLOCK = [128]\nVEC = [4]\nSHUFFLE = [true]",
    );
    // The large shape would take time too, in a debug build.
    place.edit("kernel.toml", "llama = { rows = 512, cols = 4096", "llama = { rows = 4, cols = 4096");
    let without_error = |line: &str| match line.trim_start().starts_with("llama ") {
        true => line.split("largest error").next().unwrap_or_default().to_string(),
        false => line.to_string(),
    };
    let told = |text: &str| text.lines().map(without_error).collect::<Vec<_>>().join("\n");
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = squeezed(brief.lines().next().unwrap());
    let built = place.run("build --target cpu").expect(0);
    assert!(built.err.lines().any(|printed| squeezed(printed) == line), "README.md shows:\n{line}\nin\n{}", built.err);
    let said = place.run("report").expect(0);
    assert!(
        told(&said.out).contains(&told(&format!("quickstart\n{shown}"))),
        "README.md shows:\n{shown}\nwhat comes is:\n{}",
        said.out
    );
}

/// Every line of the README's excerpt is in the quickstart's manifest.
#[test]
fn the_manifest_in_the_readme_is_the_quickstarts() {
    let text = page("README.md");
    let there = page("examples/quickstart/kernel.toml");
    let excerpt = text.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let squeeze = |s: &str| s.split('#').next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = there.lines().map(squeeze).collect();
    for line in excerpt.lines().map(squeeze) {
        assert!(lines.contains(&line), "`{line}` is in README.md and not in the quickstart");
    }
}
