//! A program that is built as for a release has no virtual device: it contains none of the words for one. `KFORGE_TEST_PROGRAM` names such a program; a debug
//! build has a virtual device.

use crate::project::released;
use kforge::base::testing::skipped;

#[test]
#[ignore = "second tier: needs a released program"]
fn a_released_program_knows_no_word_of_it() {
    let Some(program) = released() else {
        return skipped("this is a debug build, and KFORGE_TEST_PROGRAM names no released program");
    };
    let program = std::fs::read(program).unwrap();
    let words = program.split(|byte| !(byte.is_ascii_alphabetic() || b"_-".contains(byte))).filter(|w| w.len() > 10);
    let known = |text: &[u8], word: &str| text.windows(word.len()).any(|bytes| bytes == word.as_bytes());
    let mut home = false;
    for text in words {
        for word in ["KFORGE_TEST_REWORD", "KFORGE_VIRTUAL_DEVICE", "virtual-device", "virtual_device", "stand-in"] {
            assert!(!known(text, word), "`{word}` is in the program");
        }
        home |= known(text, "KFORGE_HOME");
    }
    assert!(home, "words of this kind can be found");
}
