//! The source and the disassembly of what a page compares: links on the page, and the page beside it that holds both with opcodes and metrics. Knows the
//! document, texts of files and of a disassembler; reads and runs nothing.
//!
//! | decision | reason |
//! |---|---|
//! | a page of its own beside the report's | machine code is megabytes, and few read it |
//! | of equal sources, one is shown | tunables are macros, so most variants have one source |
//! | one file for all kernels | a report and what it links to move as two files, and nothing old is left |
//! | links are relative | both open as files, wherever they lie |

use std::collections::BTreeMap;

use super::html::Html;
use super::seat::{Seat, seats};
use super::{code, frame};
use crate::report::document::{Report, TargetReport};

/// The most variants of a kernel on a target that are disassembled. Each costs a process.
const MOST: usize = 4;

/// The longest disassembly of a variant that is shown, and its longest source, in bytes. A kernel of this length has about sixty thousand instructions.
const LONGEST: usize = 3 << 20;

/// A kernel on a target for one choice of types.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The package.
    pub package: String,
    /// The kernel.
    pub kernel: String,
    /// The target.
    pub target: String,
    /// The choice of types; empty without types.
    pub types: String,
}

/// The source and the disassembly of a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The variant.
    pub variant: String,
    /// Its source.
    pub source: Source,
    /// Its code.
    pub code: Code,
}

/// The source of a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Its files, the one that is compiled first.
    Files(Vec<SourceFile>),
    /// There is none, for this reason.
    Missing(String),
}

/// A file of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path, relative to the package.
    pub name: String,
    /// Its text; none if it is no text or no longer stored.
    pub text: Option<String>,
}

/// The code of a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Code {
    /// The text of the disassembler.
    Text(String),
    /// There is none, for this reason.
    Missing(String),
}

/// What is beside a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listings {
    /// The name of the file beside the page.
    pub file: String,
    /// The variants of each place in the order in which they are shown.
    pub of: BTreeMap<Place, Vec<Listing>>,
}

impl Place {
    /// The places of a report with what it says of each, in its order.
    pub fn all(report: &Report) -> impl Iterator<Item = (Place, &TargetReport)> {
        seats(report).into_iter().map(|seat| (Place::of(&seat), seat.target))
    }

    fn of(seat: &Seat<'_>) -> Place {
        let text = String::from;
        Place {
            package: text(&seat.package.name),
            kernel: text(&seat.kernel.name),
            target: text(&seat.target.target),
            types: text(&seat.target.types),
        }
    }
}

/// The variants that a page compares, each once: champions, the declared start, and the nearest rivals by pairs.
pub fn compared(target: &TargetReport) -> Vec<&str> {
    let champions = target.champions.iter().filter_map(|champion| champion.variant.as_deref());
    let declared = target.basis.iter().map(|basis| basis.declared.as_str());
    let mut versus: Vec<_> = target.champions.iter().flat_map(|champion| &champion.versus).collect();
    versus.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let rivals = versus.into_iter().map(|one| one.variant.as_str());
    let mut all: Vec<&str> = vec![];
    // Without a champion, nothing is compared.
    for variant in champions.clone().chain(declared.chain(rivals).filter(|_| champions.clone().next().is_some())) {
        if !all.contains(&variant) {
            all.push(variant);
        }
    }
    all.truncate(MOST);
    all
}

/// What a variant is that is neither champion nor declared start.
const RIVAL: &str = "rival";

/// What a variant is on the page.
fn role(target: &TargetReport, variant: &str) -> &'static str {
    let is_champion = target.champions.iter().any(|champion| champion.variant.as_deref() == Some(variant));
    match is_champion {
        true => "champion",
        false if target.basis.as_ref().is_some_and(|basis| basis.declared == variant) => "declared start",
        false => RIVAL,
    }
}

/// The label of a variant with its role.
fn named(h: &mut Html, seat: &Seat<'_>, listing: &Listing) {
    h.text(format!("{} ", role(seat.target, &listing.variant)));
    h.open("code", &[], |h| {
        h.label(crate::report::text::variant(&listing.variant));
    });
}

/// Links from a kernel's details to its source and its disassembly, and why variants have none.
pub(super) fn links(h: &mut Html, seat: &Seat<'_>, listings: &Listings) {
    let Some(all) = listings.of.get(&Place::of(seat)) else { return };
    let names = |h: &mut Html, of: &[&Listing]| {
        for (at, listing) in of.iter().enumerate() {
            h.text(if at == 0 { "" } else { ", " });
            named(h, seat, listing);
        }
    };
    let with = |has: &dyn Fn(&Listing) -> bool| all.iter().filter(|listing| has(listing)).collect::<Vec<_>>();
    let (sources, codes) = (with(&|of| has_source(seat, of)), with(&|of| matches!(of.code, Code::Text(_))));
    let (what, of) = match (sources.as_slice(), codes.as_slice()) {
        ([], []) => ("", &codes),
        ([], _) => ("Disassembly", &codes),
        (_, []) => ("Source", &sources),
        _ => ("Source and disassembly", &codes),
    };
    if !of.is_empty() {
        h.open("p", &[], |h| {
            let link = format!("{}#{}", encoded(&listings.file), seat.anchor());
            h.leaf("a", &[("href", &link)], format!("{what} of {}", seat.full()));
            h.text(": ");
            names(h, of);
        });
    }
    let mut reasons: Vec<(&str, &str, Vec<&Listing>)> = vec![];
    for listing in all {
        let source = match &listing.source {
            Source::Missing(why) if is_shown(seat, listing) => Some(("source", why.as_str())),
            _ => None,
        };
        let code = match &listing.code {
            Code::Missing(why) => Some(("disassembly", why.as_str())),
            Code::Text(_) => None,
        };
        for (what, why) in [source, code].into_iter().flatten() {
            match reasons.iter_mut().find(|(known, because, _)| (*known, *because) == (what, why)) {
                Some((.., of)) => of.push(listing),
                None => reasons.push((what, why, vec![listing])),
            }
        }
    }
    for (what, why, of) in reasons {
        h.open("p", &[("class", &"s")], |h| {
            h.text(format!("No {what} of "));
            names(h, &of);
            h.text(format!(": {why}."));
        });
    }
}

/// Whether the source of a variant is shown: that of champions and of the declared start.
fn is_shown(seat: &Seat<'_>, listing: &Listing) -> bool {
    role(seat.target, &listing.variant) != RIVAL
}

fn has_source(seat: &Seat<'_>, listing: &Listing) -> bool {
    is_shown(seat, listing) && matches!(listing.source, Source::Files(_))
}

/// The page with the source and the disassembly of everything that was found, as a file beside the page of the report; none if nothing was.
pub fn sidecar(report: &Report, listings: &Listings) -> Option<String> {
    let seats = seats(report);
    let found = |seat: &Seat<'_>| -> Vec<&Listing> {
        let all = listings.of.get(&Place::of(seat)).into_iter().flatten();
        all.filter(|listing| has_source(seat, listing) || matches!(listing.code, Code::Text(_))).collect()
    };
    let all: Vec<(&Seat<'_>, Vec<&Listing>)> =
        seats.iter().map(|seat| (seat, found(seat))).filter(|(_, found)| !found.is_empty()).collect();
    if all.is_empty() {
        return None;
    }
    let title = format!("Sources and machine code: {}", super::title(report));
    Some(frame(&title, |h| {
        h.open("header", &[], |h| {
            h.leaf("h1", &[], &title);
            let about = "The sources of champions, and of declared starts where they differ, beside opcodes and metrics; and the machine code of what the \
                         report compares, as nvdisasm writes it.";
            h.leaf("p", &[("class", &"s")], about);
        });
        h.open("main", &[], |h| all.iter().for_each(|(seat, found)| kernel(h, seat, found, all.len() == 1)));
    }))
}

/// A kernel on a target: its sources beside opcodes and metrics, and the disassembly of its variants side by side.
fn kernel(h: &mut Html, seat: &Seat<'_>, all: &[&Listing], open: bool) {
    let contents = |h: &mut Html| {
        h.open("summary", &[], |h| {
            h.open("h2", &[("id", &seat.anchor()), ("class", &"i")], |h| {
                h.text(seat.full());
            });
        });
        h.open("div", &[("class", &"b")], |h| {
            sources(h, seat, all);
            h.open("section", &[], |h| {
                h.open("div", &[("class", &"b")], |h| {
                    part(h, |h| h.leaf("h3", &[], "Machine code"), |h| code::opcodes(h, seat, usize::MAX));
                    part(h, |h| h.leaf("h3", &[], "Profile"), |h| code::metrics(h, seat, usize::MAX));
                });
            });
        });
        h.open("div", &[("class", &"b")], |h| all.iter().for_each(|listing| disassembly(h, seat, listing)));
    };
    match open {
        true => h.open("details", &[("class", &"k"), ("open", &"")], contents),
        false => h.open("details", &[("class", &"k")], contents),
    }
}

/// A part with a heading; nothing if it has no contents.
fn part(h: &mut Html, heading: impl FnOnce(&mut Html), contents: impl FnOnce(&mut Html)) {
    let mut inner = Html::default();
    contents(&mut inner);
    if inner.len() > 0 {
        h.open("section", &[], |h| {
            heading(h);
            h.part(inner);
        });
    }
}

/// The sources of champions and of the declared start, each once.
fn sources(h: &mut Html, seat: &Seat<'_>, all: &[&Listing]) {
    let mut groups: Vec<(&[SourceFile], Vec<&Listing>)> = vec![];
    for listing in all.iter().filter(|listing| has_source(seat, listing)) {
        let Source::Files(files) = &listing.source else { continue };
        match groups.iter_mut().find(|(known, _)| known == files) {
            Some((_, of)) => of.push(listing),
            None => groups.push((files, vec![listing])),
        }
    }
    for (files, of) in groups {
        let heading = |h: &mut Html| {
            h.open("h3", &[], |h| {
                h.text("Source of ");
                for (at, listing) in of.iter().enumerate() {
                    h.text(if at == 0 { "" } else { ", " });
                    named(h, seat, listing);
                }
            });
        };
        part(h, heading, |h| {
            let mut room = LONGEST;
            for (at, file) in files.iter().enumerate() {
                source_file(h, file, at == 0, &mut room);
            }
        });
    }
}

/// A file, folded unless it is the one that is compiled, as far as `room` bytes suffice.
fn source_file(h: &mut Html, file: &SourceFile, open: bool, room: &mut usize) {
    let contents = |h: &mut Html| {
        h.open("summary", &[], |h| h.leaf("code", &[], &file.name));
        let Some(text) = &file.text else {
            return h.leaf("p", &[("class", &"s")], "It is no text, or it is no longer stored.");
        };
        let (shown, left_out) = beginning(text, *room);
        *room -= shown.len();
        pre(h, &format!("source {}", file.name), shown, left_out);
    };
    match open {
        true => h.open("details", &[("open", &"")], contents),
        false => h.open("details", &[], contents),
    }
}

/// The lines of a text that have room in so many bytes, and the number of those that have not.
fn beginning(text: &str, room: usize) -> (&str, usize) {
    let ends = text.split_inclusive('\n').scan(0, |end, line| {
        *end += line.len();
        Some(*end)
    });
    let end = ends.take_while(|end| *end <= room).last().unwrap_or_default();
    (text[..end].trim_end(), text[end..].lines().count())
}

/// The disassembly of a variant.
fn disassembly(h: &mut Html, seat: &Seat<'_>, listing: &Listing) {
    let Code::Text(text) = &listing.code else { return };
    h.open("section", &[], |h| {
        h.open("h3", &[], |h| {
            h.text("Disassembly of ");
            named(h, seat, listing);
        });
        let (shown, left_out) = shown(text);
        pre(h, &format!("disassembly of {}", crate::report::text::variant(&listing.variant)), &shown, left_out);
    });
}

/// Text with its own lines, which the keyboard can scroll, and how many of them are missing.
fn pre(h: &mut Html, label: &str, text: &str, left_out: usize) {
    h.leaf("pre", &[("class", &"m"), ("tabindex", &0), ("role", &"group"), ("aria-label", &label)], text);
    if left_out > 0 {
        h.leaf("p", &[("class", &"s")], format!("{left_out} more lines are not shown."));
    }
}

/// The code with narrow margins, as far as it is shown, and the number of lines that are not.
fn shown(text: &str) -> (String, usize) {
    let mut out = String::new();
    let mut left_out = 0;
    for line in text.lines() {
        let line = line.trim();
        match out.len() + line.len() < LONGEST && left_out == 0 {
            true => push(&mut out, line),
            false => left_out += 1,
        }
    }
    (out.trim_matches('\n').to_string(), left_out)
}

/// Adds a line: an instruction with its address, anything else as it is, and no second empty line.
fn push(out: &mut String, line: &str) {
    let instruction = line.strip_prefix("/*").and_then(|rest| rest.split_once("*/"));
    match instruction {
        Some((address, code)) => *out += &format!("  /*{address}*/  {}\n", code.trim_start()),
        None if line.is_empty() && out.ends_with("\n\n") => {}
        None => {
            out.push_str(line);
            out.push('\n');
        }
    }
}

/// The name of a file as a relative address.
fn encoded(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::super::page_beside;
    use super::super::tests::read::Page;
    use super::super::tests::synthetic::synthetic;
    use super::*;

    /// The listings of a report; each is `code`.
    fn listings(report: &Report, code: &Code) -> Listings {
        let of = Place::all(report).map(|(place, target)| {
            let source = Source::Files(vec![file("k.cu", "int k;\n")]);
            let of = |variant: &str| Listing { variant: variant.into(), source: source.clone(), code: code.clone() };
            (place, compared(target).into_iter().map(of).collect())
        });
        Listings { file: "my report #1.sass.html".into(), of: of.collect() }
    }

    fn file(name: &str, text: &str) -> SourceFile {
        SourceFile { name: name.into(), text: Some(text.into()) }
    }

    const CODE: &str = "\t.section\t.text.k\n\n\n\n.text.k:\n        /*0000*/                   LDC R1, c[0x0][0x28] ;\n        /*0010*/              @!P0 BRA `(.L_x_0) ;\n";

    #[test]
    fn a_page_links_to_the_code_beside_it_and_each_link_leads_to_its_kernel() {
        let report = synthetic(3);
        let listings = listings(&report, &Code::Text(CODE.into()));
        let page = Page::read(&page_beside(&report, &listings));
        let beside = Page::read(&sidecar(&report, &listings).unwrap());
        let links: Vec<&str> =
            page.links.iter().filter_map(|link| link.strip_prefix("my%20report%20%231.sass.html#")).collect();
        assert!(!links.is_empty(), "{:?}", page.links);
        for anchor in &links {
            assert_eq!(beside.ids.iter().filter(|id| id == anchor).count(), 1, "{anchor}");
        }
        assert!(
            beside.text.contains("  /*0000*/  LDC R1, c[0x0][0x28] ;\n  /*0010*/  @!P0 BRA `(.L_x_0) ;"),
            "{}",
            beside.text
        );
        assert!(beside.text.contains(".section\t.text.k\n\n.text.k:\n"), "one empty line stays");
    }

    #[test]
    fn without_code_a_page_says_why_once_and_nothing_is_beside_it() {
        let report = synthetic(1);
        let mut listings = listings(&report, &Code::Missing("the disassembler is not installed here".into()));
        let page = Page::read(&page_beside(&report, &listings));
        assert_eq!(page.text.matches(": the disassembler is not installed here.").count(), 1, "{}", page.text);
        assert!(page.text.contains("No disassembly of champion ") && !page.text.contains("No source of"));
        assert!(page.text.contains("Source of kernel_00 on h200: champion "), "{}", page.text);
        assert!(sidecar(&report, &listings).is_some());
        for listing in listings.of.values_mut().flatten() {
            listing.source = Source::Missing("it was edited".into());
        }
        assert_eq!(sidecar(&report, &listings), None);
        let page = Page::read(&page_beside(&report, &listings));
        assert!(page.links.iter().all(|link| link.starts_with('#')));
        assert!(
            page.text.contains("No source of champion ") && page.text.contains(": it was edited."),
            "{}",
            page.text
        );
    }

    #[test]
    fn the_source_of_a_champion_lies_beside_its_opcodes_and_metrics_and_equal_sources_once() {
        let report = synthetic(1);
        let mut listings = listings(&report, &Code::Text(CODE.into()));
        let text = |listings: &Listings| Page::read(&sidecar(&report, listings).unwrap()).text;
        let once = text(&listings);
        assert_eq!(once.matches("int k;").count(), 1, "{once}");
        let at = |text: &str, part: &str| text.find(part).unwrap_or_else(|| panic!("{part:?} in {text}"));
        let order = [
            "Source of champion ",
            "k.cu",
            "int k;",
            "Machine code",
            "LDG.E.128",
            "Profile",
            "dram_throughput",
            "LDC R1",
        ];
        assert!(order.is_sorted_by_key(|part| at(&once, part)), "{once}");
        // An own source of the declared start, with a second file; that of a rival is not shown.
        let all = listings.of.values_mut().next().unwrap();
        all[1].source = Source::Files(vec![file("k.cu", "int start;\n  // indented\n"), file("h.cuh", "int h;\n")]);
        all[2].source = Source::Files(vec![file("k.cu", "int rival;\n")]);
        let both = text(&listings);
        assert!(at(&both, "int k;") < at(&both, "Source of declared start ") && !both.contains("int rival;"), "{both}");
        assert!(
            both.contains("int start;\n  // indented") && both.contains("h.cuh") && both.contains("int h;"),
            "{both}"
        );
    }

    #[test]
    fn code_and_names_cannot_become_markup_and_request_nothing() {
        let mut report = synthetic(1);
        let hostile = "</pre><script>alert(1)</script><img src=x>\u{202e}";
        report.packages[0].kernels[0].name = hostile.into();
        let mut listings =
            Listings { file: "javascript:alert(1).sass.html".into(), ..listings(&report, &Code::Text(hostile.into())) };
        for listing in listings.of.values_mut().flatten() {
            listing.source = Source::Files(vec![file(&hostile.repeat(5), hostile)]);
        }
        let text = sidecar(&report, &listings).unwrap();
        let read = Page::read(&text);
        assert_eq!(read.elements.iter().filter(|name| *name == "script").count(), 1, "its own");
        assert!(!text.contains("<img") && !text.contains('\u{202e}') && text.contains("&lt;img src=x&gt;"));
        assert!(text.contains("default-src &#39;none&#39;"), "the policy forbids requests");
        let page = Page::read(&page_beside(&report, &listings));
        assert!(
            page.links.iter().any(|link| link.starts_with("javascript%3Aalert%281%29.sass.html#")),
            "{:?}",
            page.links
        );
    }

    #[test]
    fn champions_come_first_then_the_declared_start_then_near_rivals_and_each_once() {
        let mut report = synthetic(1);
        let target = &mut report.packages[0].kernels[0].targets[0];
        let mut champion = target.champions[0].clone();
        let versus = |variant: &str, ratio| {
            let (variant, shape) = (variant.to_string(), "s".to_string());
            crate::report::document::VersusReport {
                shape,
                variant,
                ratio,
                interval: (ratio, ratio),
                orders_disagree: None,
            }
        };
        champion.variant = Some("V=1".into());
        champion.versus = vec![versus("V=9", 1.9), versus("V=3", 1.3), versus("V=2", 1.2), versus("V=1", 1.1)];
        target.champions = vec![champion.clone(), champion];
        target.basis.as_mut().unwrap().declared = "V=2".into();
        assert_eq!(compared(target), ["V=1", "V=2", "V=3", "V=9"]);
        assert_eq!(["V=1", "V=2", "V=3"].map(|label| role(target, label)), ["champion", "declared start", "rival"]);
        target.champions.iter_mut().for_each(|champion| champion.variant = None);
        assert!(compared(target).is_empty());
    }

    #[test]
    fn a_disassembly_that_is_too_long_says_how_much_is_missing() {
        let line = "        /*0000*/                   NOP ;\n";
        let (text, left_out) = shown(&line.repeat(LONGEST / 10));
        assert!(text.len() < LONGEST && left_out > 0);
        assert_eq!(text.lines().count() + left_out, LONGEST / 10);
        assert_eq!(beginning("a\n  b\nc\n", 6), ("a\n  b", 1));
        assert_eq!((beginning("a\nb", 3), beginning("ab\nc\n", 2)), (("a\nb", 0), ("", 2)));
    }
}
