//! Completion in bash, zsh and fish: each shell runs the script of `kforge completions` and completes the names of a workspace. A shell that is not here skips its
//! test.

use kforge::base::testing::skipped;

use crate::place::Place;

/// A place with two kernels in one package.
fn place() -> Place {
    let place = Place::tiny();
    let kernel = "[kernel.twice]\noperator = \"twice\"\nsource = \"twice.cu\"\n";
    let other = "[kernel.twofold]\noperator = \"twice\"\nsource = \"twice.cu\"\ntune.BLOCK = [32]\n\n[[kernel.twofold.launch]]\nentry = \"twice<BLOCK>\"\ngrid = [\"ceil_div(n, BLOCK)\"]\nblock = [\"BLOCK\"]\nargs = [\"x\", \"y\", \"n\"]\n\n";
    place.edit("kernel.toml", kernel, &format!("{other}{kernel}"));
    place
}

/// Whether a shell is here; says that the test is skipped if it is not.
fn has(place: &Place, shell: &str) -> bool {
    let here = place.shell(&format!("command -v {shell} > /dev/null && echo yes")).contains("yes");
    if !here {
        skipped(&format!("there is no {shell}"));
    }
    here
}

/// What bash completes: the replies of the function that the script registers.
fn bash(place: &Place, line: &str) -> Vec<String> {
    let file = "source <(kforge completions bash)\nread -ra COMP_WORDS <<< \"$1\"\n[[ \"$1\" == *' ' ]] && COMP_WORDS+=('')\n\
                COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\nCOMP_TYPE=9\n_clap_complete_kforge kforge \"${COMP_WORDS[COMP_CWORD]}\" ''\n\
                printf '%s\\n' \"${COMPREPLY[@]}\"\n";
    std::fs::write(place.at("complete.bash"), file).unwrap();
    place.shell(&format!("bash --norc complete.bash '{line}'")).lines().map(str::to_string).collect()
}

#[test]
fn bash_completes_the_names_of_the_workspace() {
    let place = place();
    if !has(&place, "bash") {
        return;
    }
    assert_eq!(bash(&place, "kforge build tw"), ["twice", "twofold"]);
    assert_eq!(bash(&place, "kforge report --kernel two"), ["twofold"]);
    assert_eq!(bash(&place, "kforge build --target "), ["cpu"]);
    assert_eq!(bash(&place, "kforge verify --shape f"), ["five"]);
    assert_eq!(bash(&place, "kforge build -p t"), ["tiny"]);
    assert_eq!(bash(&place, "kforge tree --operator t"), ["twice"]);
    assert_eq!(bash(&place, "kforge diff tw"), ["twice", "twofold"]);
    assert_eq!(bash(&place, "kforge diff twofold BL"), ["BLOCK=32"]);
    assert_eq!(bash(&place, "kforge explain tin"), ["tiny/"]);
    let steps = bash(&place, "kforge explain tiny/twofold/");
    assert!(steps.contains(&"tiny/twofold/BLOCK=32/cpu/five/judge".to_string()), "{steps:?}");
    assert_eq!(bash(&place, "kforge locate"), ["locate-project"]);
    assert_eq!(bash(&place, "kforge bu"), ["build"]);
    assert_eq!(bash(&place, "kforge b tw"), ["twice", "twofold"], "short names are understood");
    let commands = bash(&place, "kforge ");
    assert!(commands.contains(&"build".to_string()) && !commands.contains(&"worker".to_string()), "{commands:?}");
    // From elsewhere, `-C` says where the workspace is.
    std::fs::create_dir(place.at("sub")).unwrap();
    let elsewhere = place.shell("cd sub && bash --norc ../complete.bash 'kforge -C .. build tw'");
    assert_eq!(elsewhere.lines().collect::<Vec<_>>(), ["twice", "twofold"]);
}

/// A mistake leaves what can still be read; no workspace leaves commands and options.
#[test]
fn completion_says_nothing_of_mistakes() {
    let place = place();
    if !has(&place, "bash") {
        return;
    }
    place.edit("kernel.toml", "five = { n = 5 }", "five = { m = 5 }");
    assert_eq!(bash(&place, "kforge explain tiny/tw"), [""]);
    let nowhere = Place::empty();
    assert_eq!(bash(&nowhere, "kforge build tw"), [""]);
    assert_eq!(bash(&nowhere, "kforge build --keep"), ["--keep-going"]);
    assert!(!place.at("kforge.lock").exists() && !place.at("target").exists(), "completion writes nothing");
}

#[test]
fn fish_completes_the_names_of_the_workspace() {
    let place = place();
    if !has(&place, "fish") {
        return;
    }
    let said =
        place.shell("fish --no-config -c 'kforge completions fish | source; complete -C \"kforge build --kernel tw\"'");
    assert_eq!(said.lines().collect::<Vec<_>>(), ["twice", "twofold"]);
}

/// In a terminal of its own, as a user presses Tab.
#[test]
fn zsh_completes_the_names_of_the_workspace() {
    let place = place();
    if !has(&place, "zsh") {
        return;
    }
    let script = r#"zmodload zsh/zpty zsh/datetime
zpty -b shell zsh -f -i
until_seen() {
  local out= more= end=$((EPOCHSECONDS + 300))
  while ((EPOCHSECONDS < end)); do
    if zpty -r -t shell more; then out+=$more; else sleep 0.1; fi
    if [[ $out == *$1* ]]; then print "seen $1"; return; fi
  done
  print -r -- "not seen $1 in: $out"
}
zpty -w shell 'autoload -Uz compinit; compinit -u -D; source <(kforge completions zsh); print re""ady'
until_seen ready
zpty -w -n shell $'kforge build --kernel tw\t\t'
until_seen twofold
zpty -d shell
"#;
    std::fs::write(place.at("complete.zsh"), script).unwrap();
    assert_eq!(place.shell("TERM=xterm zsh -f complete.zsh"), "seen ready\nseen twofold\n");
}
