//! Reads a page back: its tables, anchors and links. Fails where elements are not closed in order.

/// A page as a program reads it.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) tables: Vec<Table>,
    pub(crate) ids: Vec<String>,
    pub(crate) links: Vec<String>,
    /// The names of all elements, in order.
    pub(crate) elements: Vec<String>,
    /// The names of all attributes, in order.
    pub(crate) attributes: Vec<String>,
    /// All text outside of style and script.
    pub(crate) text: String,
}

/// A table.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) label: String,
    /// The heading of the third level before it.
    pub(crate) about: String,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// A cell.
#[derive(Debug, Default, Clone)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) small: Vec<String>,
    pub(crate) numeric: bool,
    pub(crate) group: bool,
    pub(crate) value: Option<String>,
}

const OMITTED: [&str; 8] = ["td", "th", "tr", "li", "dt", "dd", "thead", "tbody"];
const VOID: [&str; 4] = ["br", "meta", "col", "wbr"];

fn unescaped(text: &str) -> String {
    let known = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    known.iter().fold(text.to_string(), |text, (from, to)| text.replace(from, to))
}

/// A tag's name and attributes, and whether it closes itself.
fn tag(text: &str) -> (String, Vec<(String, String)>, bool) {
    let whole = text.ends_with('/');
    let text = text.strip_suffix('/').unwrap_or(text);
    let (name, mut rest) = text.split_once(' ').unwrap_or((text, ""));
    let mut attributes = vec![];
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return (name.to_string(), attributes, whole);
        }
        let end = rest.find([' ', '=']).unwrap_or(rest.len());
        let key = rest[..end].to_string();
        rest = &rest[end..];
        let value = match rest.strip_prefix('=') {
            None => String::new(),
            Some(after) if after.starts_with('"') => {
                let end = after[1..].find('"').expect("a quote that is closed") + 1;
                rest = &after[end + 1..];
                after[1..end].to_string()
            }
            Some(after) => {
                let end = after.find(' ').unwrap_or(after.len());
                rest = &after[end..];
                after[..end].to_string()
            }
        };
        attributes.push((key, unescaped(&value)));
    }
}

impl Page {
    pub(crate) fn read(text: &str) -> Page {
        let mut page = Page::default();
        let mut open: Vec<String> = vec![];
        let (mut label, mut heading, mut small) = (String::new(), String::new(), 0);
        let mut rest = text.strip_prefix("<!doctype html>\n").expect("a page of HTML");
        while let Some(at) = rest.find('<') {
            let words = unescaped(&rest[..at]);
            let within = |tag: &str| open.iter().any(|name| name == tag);
            if !within("style") && !within("script") {
                page.text += &words;
                if within("h3") {
                    heading += &words;
                }
                if within("table") && !within("svg") {
                    let cell = page.tables.last_mut().and_then(|table| match within("thead") {
                        true => None,
                        false => table.rows.last_mut()?.last_mut(),
                    });
                    match cell {
                        Some(cell) if small > 0 => cell.small.last_mut().unwrap().push_str(&words),
                        Some(cell) => cell.text += &words,
                        None if within("thead") && !words.is_empty() => {
                            page.tables.last_mut().unwrap().head.push(words)
                        }
                        None => {}
                    }
                }
            }
            rest = &rest[at + 1..];
            let end = rest.find('>').expect("a tag that is closed");
            let (inner, after) = (&rest[..end], &rest[end + 1..]);
            rest = after;
            if let Some(name) = inner.strip_prefix('/') {
                // Elements whose end tags are left out end with their parent.
                while open.last().is_some_and(|last| last != name && OMITTED.contains(&last.as_str())) {
                    open.pop();
                }
                assert_eq!(open.pop().as_deref(), Some(name), "closed out of order");
                if name == "small" {
                    small -= 1;
                }
                continue;
            }
            let (name, attributes, whole) = tag(inner);
            let get = |key: &str| attributes.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone());
            page.elements.push(name.clone());
            page.attributes.extend(attributes.iter().map(|(key, _)| key.clone()));
            page.ids.extend(get("id"));
            page.links.extend(get("href"));
            match name.as_str() {
                "div" => label = get("aria-label").unwrap_or_default(),
                "h3" => heading.clear(),
                "small" => {
                    small += 1;
                    if open.iter().any(|name| name == "table") {
                        let cell = page.tables.last_mut().and_then(|table| table.rows.last_mut()?.last_mut());
                        cell.unwrap().small.push(String::new());
                    }
                }
                "table" => page.tables.push(Table {
                    label: label.clone(),
                    about: heading.trim().to_string(),
                    ..Table::default()
                }),
                _ => {}
            }
            if OMITTED.contains(&name.as_str()) {
                let until = if matches!(name.as_str(), "td" | "th") { "tr" } else { "table" };
                let ends: &[&str] = match name.as_str() {
                    "td" | "th" => &["td", "th"],
                    "tr" => &["td", "th", "tr"],
                    "tbody" => &["td", "th", "tr", "thead"],
                    "dt" | "dd" => &["dt", "dd"],
                    "li" => &["li"],
                    _ => &[],
                };
                while open.last().is_some_and(|last| last != until && ends.contains(&last.as_str())) {
                    open.pop();
                }
            }
            if let (Some(table), false) = (page.tables.last_mut(), open.iter().any(|name| name == "thead")) {
                match name.as_str() {
                    "tr" => table.rows.push(vec![]),
                    "td" | "th" => table.rows.last_mut().unwrap().push(Cell {
                        numeric: get("class").is_some_and(|class| class == "n") && name == "td",
                        group: get("scope").is_some_and(|scope| scope == "rowgroup"),
                        value: get("data-v"),
                        ..Cell::default()
                    }),
                    _ => {}
                }
            }
            if name == "script" || name == "style" {
                let end = rest.find(&format!("</{name}>")).expect("closed");
                rest = &rest[end..];
            }
            if !whole && !VOID.contains(&name.as_str()) {
                open.push(name);
            }
        }
        assert!(open.iter().all(|name| OMITTED.contains(&name.as_str())), "not closed: {open:?}");
        page
    }
}
