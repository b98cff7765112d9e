//! Characters that nobody sees and that change what people see: they turn a text around, end a line, or hide in it. Whatever shows a text of others to people,
//! in a terminal, on a page or in a document for another tool, asks here which they are.
//!
//! | character | why |
//! |---|---|
//! | control characters, except line feed and tab | terminals obey them |
//! | marks, embeddings, overrides and isolates of direction | what follows is shown in another order |
//! | separators of lines and paragraphs | some readers end a line there, others do not |
//! | spaces of no width, soft hyphens, annotations and tags | two texts that differ look alike |
//!
//! Joiners (U+200C, U+200D) stay: scripts and emoji need them.

/// Whether a character is hidden, as in the table of the module.
pub fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0001}'
        | '\u{e0020}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

/// The text with hidden characters named: `\u{202e}`.
pub fn unhidden(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match is_hidden(c) {
            true => out.extend(c.escape_unicode()),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_hides_or_is_obeyed_is_named_and_letters_stay() {
        let hostile = "a\u{202e}b\u{2066}c\u{200f}\u{1b}[31m\u{9b}\u{feff}\u{200b}\u{2028}\u{e0041}\r";
        let shown = "a\\u{202e}b\\u{2066}c\\u{200f}\\u{1b}[31m\\u{9b}\\u{feff}\\u{200b}\\u{2028}\\u{e0041}\\u{d}";
        assert_eq!(unhidden(hostile), shown);
        let plain = "naïve שלום مرحبا 日本\t👩\u{200d}🔬\n";
        assert_eq!(unhidden(plain), plain);
    }
}
