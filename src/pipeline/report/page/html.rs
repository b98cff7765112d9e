//! HTML and SVG as text: elements, attributes and text, with escaping in this place only. Knows the syntax; knows no reports.
//!
//! A page is for people who did not write the names in it: names of kernels, messages of compilers and answers of agents come from anywhere. So text and values
//! of attributes enter a page only through [`Html::text`] and the attributes of [`Html::open`], which escape them. The names of elements and attributes are
//! constants.
//!
//! | in a text | becomes | because |
//! |---|---|---|
//! | `&`, `<`, `>`, `"`, `'` | a reference | they are syntax |
//! | a control character, except line feed and tab | U+FFFD | HTML has no such characters |
//! | another hidden character ([`is_hidden`]) | `\u{202e}` | it would turn what follows it around, or hide |

use std::fmt::{Display, Write};

use kforge_foundation::base::is_hidden;

/// Elements whose end tags HTML lets a writer leave out where another such element, or the end of the parent, follows. A table has thousands.
const NO_END: [&str; 8] = ["td", "th", "tr", "li", "dt", "dd", "thead", "tbody"];

/// Elements without contents, in HTML.
const VOID: [&str; 3] = ["br", "meta", "col"];

/// Attributes of an element: names, and values that are escaped.
pub(crate) type Attributes<'a> = &'a [(&'static str, &'a dyn Display)];

/// A page, or a part of one, as it is written.
#[derive(Debug, Default)]
pub(crate) struct Html {
    out: String,
    sections: Vec<(&'static str, &'static str)>,
}

impl Html {
    /// The text.
    pub(crate) fn finish(self) -> String {
        self.out
    }

    /// The number of bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// Puts a part here that was written before.
    pub(crate) fn part(&mut self, part: Html) {
        self.out.push_str(&part.out);
        self.sections.extend(part.sections);
    }

    /// Notes a section, for the links at the top.
    pub(crate) fn section(&mut self, id: &'static str, title: &'static str) {
        self.sections.push((id, title));
    }

    /// The sections so far.
    pub(crate) fn sections(&self) -> &[(&'static str, &'static str)] {
        &self.sections
    }

    /// Constant text of the page: markup, style or script that is part of the program.
    pub(crate) fn constant(&mut self, text: &'static str) {
        self.out.push_str(text);
    }

    /// The label of a variant, whose lines may break after commas: within a tunable only where it fits no line.
    pub(crate) fn label(&mut self, label: &str) -> &mut Self {
        for (at, part) in label.split_inclusive(',').enumerate() {
            if at > 0 {
                self.out.push_str("<wbr>");
            }
            escape(&mut self.out, part);
        }
        self
    }

    /// The name of a kernel, whose lines may break after `/` and `_`: elsewhere within a word only where it fits no line.
    pub(crate) fn name(&mut self, name: &str) -> &mut Self {
        for (at, part) in name.split_inclusive(['/', '_']).enumerate() {
            if at > 0 {
                self.out.push_str("<wbr>");
            }
            escape(&mut self.out, part);
        }
        self
    }

    /// Text, escaped.
    pub(crate) fn text(&mut self, text: impl Display) -> &mut Self {
        escape(&mut self.out, &text.to_string());
        self
    }

    /// The start of an element.
    fn start(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes {
            let value = value.to_string();
            // A flag, such as `hidden`, has no value.
            if value.is_empty() {
                let _ = write!(self.out, " {name}");
                continue;
            }
            let plain = value.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._%#:,;+()".contains(&b));
            if plain {
                let _ = write!(self.out, " {name}={value}");
            } else {
                let _ = write!(self.out, " {name}=\"");
                escape(&mut self.out, &value);
                self.out.push('"');
            }
        }
    }

    /// An element with contents.
    pub(crate) fn open(&mut self, tag: &'static str, attributes: Attributes<'_>, contents: impl FnOnce(&mut Self)) {
        self.start(tag, attributes);
        self.out.push('>');
        contents(self);
        if !NO_END.contains(&tag) {
            let _ = write!(self.out, "</{tag}>");
        }
    }

    /// An element that holds only text.
    pub(crate) fn leaf(&mut self, tag: &'static str, attributes: Attributes<'_>, text: impl Display) {
        self.open(tag, attributes, |h| {
            h.text(text);
        });
    }

    /// An element without contents.
    pub(crate) fn empty(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.start(tag, attributes);
        // An attribute without quotes would take the slash.
        self.out.push_str(if VOID.contains(&tag) { ">" } else { " />" });
    }
}

/// Appends a text, escaped.
fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            _ if c.is_control() => out.push('\u{fffd}'),
            _ if is_hidden(c) => out.extend(c.escape_unicode()),
            _ => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_attributes_cannot_become_markup() {
        let hostile = "<script>alert('x')</script>\"&\u{0}\u{202e}\n";
        let mut html = Html::default();
        html.leaf("p", &[("title", &hostile)], hostile);
        let text = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp;\u{fffd}\\u{202e}\n";
        assert_eq!(html.finish(), format!("<p title=\"{text}\">{text}</p>"));
    }

    #[test]
    fn labels_break_after_commas_and_are_escaped() {
        let mut html = Html::default();
        html.label("VEC=4,<b>=1,").label("A=1");
        assert_eq!(html.finish(), "VEC=4,<wbr>&lt;b&gt;=1,A=1");
        let mut html = Html::default();
        html.name("norms/rms_<b>norm on h200");
        assert_eq!(html.finish(), "norms/<wbr>rms_<wbr>&lt;b&gt;norm on h200");
    }

    #[test]
    fn end_tags_and_quotes_are_left_out_only_where_they_may_be() {
        let mut html = Html::default();
        html.open("tr", &[], |h| {
            h.leaf("td", &[("class", &"n")], "1");
            h.leaf("td", &[("class", &"n m"), ("hidden", &"")], "2");
        });
        html.empty("br", &[]);
        html.empty("line", &[("x1", &"5%"), ("y1", &2.5)]);
        assert_eq!(html.finish(), "<tr><td class=n>1<td class=\"n m\" hidden>2<br><line x1=5% y1=2.5 />");
    }
}
