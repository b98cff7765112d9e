//! Tables and folded parts of the page. Knows their markup; does not know what is in them.

use super::html::{Attributes, Html};

/// A column: its name, and whether it holds numbers.
pub(crate) type Column<'a> = (&'a str, bool);

/// A table with a head. Wide tables scroll within a part of their own, which the keyboard reaches.
pub(crate) fn table(
    h: &mut Html,
    class: &'static str,
    label: &str,
    columns: &[Column<'_>],
    rows: impl FnOnce(&mut Html),
) {
    whole(h, &[("class", &class)], label, columns, rows);
}

/// A table with plots in its last column, and the style that they share.
pub(crate) fn forest(h: &mut Html, style: &str, label: &str, columns: &[Column<'_>], rows: impl FnOnce(&mut Html)) {
    match style.is_empty() {
        true => whole(h, &[("class", &"f")], label, columns, rows),
        false => whole(h, &[("class", &"f"), ("style", &style)], label, columns, rows),
    }
}

fn whole(h: &mut Html, attributes: Attributes<'_>, label: &str, columns: &[Column<'_>], rows: impl FnOnce(&mut Html)) {
    h.open("div", &[("class", &"t"), ("tabindex", &0), ("role", &"group"), ("aria-label", &label)], |h| {
        h.open("table", attributes, |h| {
            h.open("thead", &[], |h| {
                h.open("tr", &[], |h| columns.iter().for_each(|(name, numeric)| th(h, name, *numeric)));
            });
            h.open("tbody", &[], rows);
        });
    });
}

fn th(h: &mut Html, name: &str, numeric: bool) {
    match numeric {
        true => h.leaf("th", &[("class", &"n")], name),
        false => h.leaf("th", &[], name),
    }
}

/// A cell with a number.
pub(crate) fn number(h: &mut Html, text: impl std::fmt::Display) {
    h.leaf("td", &[("class", &"n")], text);
}

/// A cell with a number by which rows are sorted: the number as it is shown may have another unit than the one above it.
pub(crate) fn sorted(h: &mut Html, value: f64, text: impl std::fmt::Display) {
    h.leaf("td", &[("class", &"n"), ("data-v", &super::units::digits(value, 6))], text);
}

/// A folded part.
pub(crate) fn folded(h: &mut Html, summary: impl std::fmt::Display, contents: impl FnOnce(&mut Html)) {
    h.open("details", &[], |h| {
        h.leaf("summary", &[], summary);
        contents(h);
    });
}

/// A section with a title and a line that says what it shows.
pub(crate) fn section(
    h: &mut Html,
    id: &'static str,
    title: &'static str,
    about: &'static str,
    contents: impl FnOnce(&mut Html),
) {
    h.section(id, title);
    h.open("section", &[("id", &id)], |h| {
        h.leaf("h2", &[], title);
        h.leaf("p", &[("class", &"s")], about);
        contents(h);
    });
}
