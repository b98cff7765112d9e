//! A program built as it is released has no virtual device: neither the words by which one is had, nor steps on one.

use std::process::Command;

#[test]
fn a_released_program_knows_no_word_of_it() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_kforge")).unwrap();
    let words = program.split(|byte| !(byte.is_ascii_alphabetic() || b"_-".contains(byte))).filter(|w| w.len() > 10);
    let known = |text: &[u8], word: &str| text.windows(word.len()).any(|bytes| bytes == word.as_bytes());
    let mut home = false;
    for text in words {
        for word in ["KFORGE_VIRTUAL_DEVICE", "virtual-device", "virtual_device", "stand-in"] {
            assert!(!known(text, word), "`{word}` is in the program");
        }
        home |= known(text, "KFORGE_HOME");
    }
    assert!(home, "words of this kind can be found");
}

#[test]
fn no_worker_of_a_released_program_does_steps_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let spec = dir.path().join("spec.json");
    for kind in ["verify", "bench", "pairs"] {
        let text = format!(r#"{{"kind":"{kind}","version":1,"params":{{"arch":"sm_90a"}},"inputs":{{}}}}"#);
        std::fs::write(&spec, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_kforge"));
        command.args(["worker", "--once"]).arg(&spec).arg(dir.path()).arg(dir.path().join("out"));
        command.env("KFORGE_VIRTUAL_DEVICE", dir.path().join("scenario.toml"));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(101), "{said}");
        assert!(said.contains(&format!("no worker of this version does `{kind}` steps for `sm_90a`")), "{said}");
    }
}
