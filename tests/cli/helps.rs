//! The help of every command: `-h` fits on a screen, and `--help` shows everything.

use clap::{Command, CommandFactory};
use kforge::cli::Cli;
use kforge::cli::dispatch::short;

use crate::place::Place;

/// The lines of a terminal.
const LINES: usize = 24;

/// All commands with a help of their own, by their names as they are written.
fn all() -> Vec<(String, Command)> {
    fn below(name: &str, command: &Command, out: &mut Vec<(String, Command)>) {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
            let name = format!("{name} {}", sub.get_name());
            out.push((name.clone(), sub.clone()));
            below(&name, sub, out);
        }
    }
    let mut root = Cli::command().term_width(80);
    // Options of all commands are known to each.
    root.build();
    let mut out = vec![];
    below("kforge", &root, &mut out);
    out
}

#[test]
fn the_short_help_of_every_command_fits_on_a_screen() {
    let mut long = vec![];
    for (name, mut command) in all() {
        let text = command.render_help().to_string();
        let lines = text.lines().count();
        if lines > LINES {
            long.push(format!("{name}: {lines} lines\n{text}"));
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
    let lines = short(Cli::command().term_width(80)).render_help().to_string().lines().count();
    assert!(lines <= LINES, "kforge -h: {lines} lines");
}

#[test]
fn the_whole_help_of_every_command_has_every_option() {
    for (name, mut command) in all() {
        let options: Vec<String> = command
            .get_arguments()
            .filter(|a| !a.is_hide_set())
            .filter_map(|a| Some(format!("--{}", a.get_long()?)))
            .collect();
        let text = command.render_long_help().to_string();
        for option in options {
            assert!(text.contains(&option), "{option} in {name} --help:\n{text}");
        }
        assert!(text.contains("--manifest-path") && text.contains("--offline"), "{name}");
    }
}

#[test]
fn help_is_short_or_whole_as_asked_for() {
    let place = Place::empty();
    let brief = place.run("build -h").expect(0).prints("--dry-run").prints("see more with '--help'");
    assert!(!brief.out.contains("--manifest-path"), "{}", brief.out);
    place.run("build --help").expect(0).prints("--manifest-path").prints("--recheck");
    let brief = place.run("-h").expect(0).prints("  build").prints("`kforge --help` lists all commands");
    assert!(!brief.out.contains("verify-artifact"), "{}", brief.out);
    place.run("--help").expect(0).prints("verify-artifact").prints("--offline");
}

#[test]
fn no_option_that_costs_something_is_suggested() {
    let place = Place::tiny();
    for (wrong, costs) in [
        ("build --remeasur", "--remeasure"),
        ("build --release", "--remeasure"),
        ("optimize --allow-unconfine", "--allow-unconfined"),
        ("publish --allow-untruste x", "--allow-unsigned"),
    ] {
        let said = place.run(wrong).expect(2).err;
        let words: Vec<&str> = said.split(|c: char| c.is_whitespace() || "'[]".contains(c)).collect();
        assert!(!said.contains("similar") && !words.contains(&costs), "{wrong}: {said}");
    }
    // Any other option is.
    place.run("build --keep-goin").expect(2).says("'--keep-going'");
}
