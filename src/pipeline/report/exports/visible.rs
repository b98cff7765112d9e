//! JSON for other tools, in which hidden characters of texts are named: those tools show the texts to people. Knows JSON's syntax; does not know what is
//! written.

use std::io::{self, Write};

use kforge_foundation::base::{is_hidden, unhidden};
use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, PrettyFormatter, Serializer};

use super::ExportError;

/// A value as indented JSON with a newline at its end. A hidden character in a text or a name becomes `\u{202e}`, in the words of [`unhidden`].
pub(super) fn json(value: &impl Serialize) -> Result<String, ExportError> {
    let mut out = vec![];
    value.serialize(&mut Serializer::with_formatter(&mut out, Visible(PrettyFormatter::new())))?;
    Ok(String::from_utf8_lossy(&out).into_owned() + "\n")
}

/// The library's indentation, with another way to write texts.
struct Visible(PrettyFormatter<'static>);

impl Formatter for Visible {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, to: &mut W, fragment: &str) -> io::Result<()> {
        match fragment.contains(is_hidden) {
            // The name of a character begins with a backslash, which JSON escapes.
            true => to.write_all(unhidden(fragment).replace('\\', "\\\\").as_bytes()),
            false => to.write_all(fragment.as_bytes()),
        }
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, to: &mut W, escape: CharEscape) -> io::Result<()> {
        let control = match escape {
            CharEscape::AsciiControl(byte) => byte,
            CharEscape::Backspace => 8,
            CharEscape::FormFeed => 12,
            CharEscape::CarriageReturn => 13,
            CharEscape::Quote => return to.write_all(b"\\\""),
            CharEscape::ReverseSolidus => return to.write_all(b"\\\\"),
            CharEscape::Solidus => return to.write_all(b"\\/"),
            CharEscape::LineFeed => return to.write_all(b"\\n"),
            CharEscape::Tab => return to.write_all(b"\\t"),
        };
        write!(to, "\\\\u{{{control:x}}}")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_array(to)
    }

    fn end_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_array(to)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(to, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_array_value(to)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_object(to)
    }

    fn end_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object(to)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(to, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_object_value(to)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object_value(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json as value};

    #[test]
    fn json_is_that_of_the_library_where_nothing_is_hidden() {
        let plain = value!({ "a": [1, 2.5, null], "b \"\\ é": { "c": "line\n\ttab/" }, "d": [], "e": {} });
        assert_eq!(json(&plain).unwrap(), serde_json::to_string_pretty(&plain).unwrap() + "\n");
    }

    #[test]
    fn hidden_characters_are_named_in_texts_and_names_and_the_rest_can_be_read_again() {
        let text = json(&value!({ "k\u{202e}": ["a\\b\u{1b}[31m\u{2066}\u{9b}\r\u{8}\u{c}"] })).unwrap();
        assert!(!text.contains(is_hidden), "{text:?}");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, value!({ "k\\u{202e}": ["a\\b\\u{1b}[31m\\u{2066}\\u{9b}\\u{d}\\u{8}\\u{c}"] }));
    }
}
