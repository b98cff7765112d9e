//! Parses the output of `compute-sanitizer --xml --save` into findings. Knows the format of version 2025.3.1; starts nothing.
//!
//! | record | finding |
//! |---|---|
//! | `<error>misaligned</error>` | misaligned |
//! | any other access of memcheck | out of bounds, in the memory that `<space>` names |
//! | `<exception>` with `trap` | trap |
//! | any other exception | crash |
//! | racecheck's analysis | race, in shared memory, which is the only place that racecheck checks |
//! | initcheck | uninitialized |
//! | synccheck | divergent barrier |
//!
//! Records of level `Error`, records without a level, and racecheck's warnings count. Racecheck warns of hazards between the threads of one warp, which are
//! unordered since compute capability 7.0, as on `cpu`; it does not warn if the threads synchronize with `__syncwarp`. Warnings of other tools do not count.
//! Records that differ only in thread and address are one finding, with the first thread and their number. The tool lists at most a hundred records.

use crate::line_tables::FOLDER;
use kforge_types::model::Sanitizer;
use kforge_types::record::{Finding, FindingKind, Space};

/// An element: no attributes, and either text or other elements.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Element {
    name: String,
    text: String,
    inner: Vec<Element>,
}

impl Element {
    fn child(&self, name: &str) -> Option<&Element> {
        self.inner.iter().find(|e| e.name == name)
    }

    fn text(&self, path: &[&str]) -> Option<&str> {
        let found = path.iter().try_fold(self, |at, name| at.child(name))?;
        Some(found.text.as_str()).filter(|text| !text.is_empty())
    }

    fn triple(&self, path: &[&str]) -> Option<[u32; 3]> {
        let found = path.iter().try_fold(self, |at, name| at.child(name))?;
        let of = |axis: &str| found.text(&[axis])?.parse().ok();
        Some([of("x")?, of("y")?, of("z")?])
    }
}

/// The findings of one tool's file.
///
/// # Errors
/// The file is truncated or has another format.
pub(super) fn findings(tool: Sanitizer, text: &str) -> Result<Vec<Finding>, String> {
    let root = root(text)?;
    let mut found: Vec<Finding> = vec![];
    let counts = |level: &str| level == "Error" || (tool == Sanitizer::Racecheck && level == "Warning");
    let errors = root.inner.iter().filter(|r| r.name == "record" && r.text(&["level"]).is_none_or(counts));
    for record in errors {
        let finding = finding(tool, record);
        let same = |f: &&mut Finding| f.kind == finding.kind && f.message == finding.message;
        match found.iter_mut().find(same) {
            Some(known) => known.count += finding.count,
            None => found.push(finding),
        }
    }
    Ok(found)
}

fn finding(tool: Sanitizer, record: &Element) -> Finding {
    let what = record.text(&["what", "text"]).or_else(|| record.text(&["what", "exception"]));
    let what = what.unwrap_or("an error without text");
    let told = match record.text(&["what", "type"]) {
        Some(more) => format!("{what}: {more}"),
        None => what.to_string(),
    };
    let source = record.child("what").and_then(|w| w.child("source"));
    let destination = record.child("what").and_then(|w| w.child("destination"));
    let place = |at: Option<&Element>| at.and_then(|at| line(at.child("where")?));
    let side = |at: Option<&Element>| {
        let at = at?;
        Some(format!("{} {}", at.text(&["direction"])?.to_lowercase(), named(at.child("where")?)))
    };
    let mut message = match (side(source), side(destination)) {
        (Some(one), Some(other)) => format!("{told}: {one}, {other}"),
        _ => match record.child("where") {
            Some(place) => format!("{told} {}", named(place)),
            None => told.clone(),
        },
    };
    message = format!("{} ({})", message, tool.name());
    let mut finding = Finding::new(kind(tool, record), message);
    finding.space = match (tool, record.text(&["what", "space"])) {
        (Sanitizer::Racecheck, _) | (_, Some("__shared__")) => Some(Space::Shared),
        (_, Some("__local__")) => Some(Space::Local),
        (Sanitizer::Initcheck, _) | (_, Some("__global__")) => Some(Space::Global),
        _ => None,
    };
    finding.line = place(source).or_else(|| line(record.child("where")?));
    finding.other_line = place(destination);
    finding.block = record.triple(&["who", "blockIdx"]);
    finding.thread = record.triple(&["who", "threadIdx"]);
    let hazards = destination.and_then(|d| d.text(&["count"])?.parse().ok());
    finding.count = hazards.unwrap_or(1);
    finding
}

fn kind(tool: Sanitizer, record: &Element) -> FindingKind {
    match tool {
        Sanitizer::Racecheck => FindingKind::Race,
        Sanitizer::Initcheck => FindingKind::Uninitialised,
        Sanitizer::Synccheck => FindingKind::DivergentBarrier,
        Sanitizer::Memcheck => match record.text(&["what", "error"]) {
            Some("misaligned") => FindingKind::Misaligned,
            Some(_) => FindingKind::OutOfBounds,
            None if record.text(&["what", "text"]).is_some_and(|t| t.starts_with("Invalid")) => {
                FindingKind::OutOfBounds
            }
            None if record.text(&["what", "exception"]).is_some_and(|e| e.contains("trap")) => FindingKind::Trap,
            None => FindingKind::Crash,
        },
    }
}

/// A place as text: the line if it is known, otherwise the offset in the function.
fn named(place: &Element) -> String {
    let function = place.text(&["func"]).unwrap_or("a function without a name");
    match (line(place), place.text(&["pc"])) {
        (Some((file, line)), _) => format!("at {file}:{line} in `{function}`"),
        (None, Some(offset)) => format!("at {offset} in `{function}`"),
        (None, None) => format!("in `{function}`"),
    }
}

fn line(place: &Element) -> Option<(String, u32)> {
    let line = place.text(&["line"])?.parse().ok()?;
    Some((relative(place.text(&["path"])?), line))
}

/// The path within the package.
fn relative(path: &str) -> String {
    let inner = path.strip_prefix(FOLDER).map_or(path, |inner| inner.trim_start_matches('/'));
    inner.trim_start_matches("./").to_string()
}

/// The root element of a document.
fn root(text: &str) -> Result<Element, String> {
    let mut open: Vec<Element> = vec![];
    let mut rest = text.trim_start();
    while let Some(at) = rest.find('<') {
        if let Some(element) = open.last_mut().filter(|e| e.inner.is_empty()) {
            element.text.push_str(plain(rest[..at].trim()).as_str());
        }
        let end = rest.find('>').ok_or("it ends within a tag")?;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        let closed = match (tag.strip_prefix('/'), tag.strip_suffix('/')) {
            _ if tag.starts_with('?') || tag.starts_with('!') => None,
            (Some(name), _) => {
                let element = open.pop().filter(|e| e.name == name);
                Some(element.ok_or_else(|| format!("`</{name}>` closes nothing"))?)
            }
            (None, Some(name)) => Some(Element { name: name.trim().into(), text: String::new(), inner: vec![] }),
            (None, None) => {
                open.push(Element { name: tag.into(), text: String::new(), inner: vec![] });
                None
            }
        };
        match (closed, open.last_mut()) {
            (None, _) => {}
            (Some(element), Some(outer)) => {
                outer.text.clear();
                outer.inner.push(element);
            }
            (Some(element), None) => return Ok(element),
        }
    }
    Err("it ends within an element".into())
}

/// Text with its escaped characters decoded.
fn plain(text: &str) -> String {
    let marks = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    marks.into_iter().fold(text.to_string(), |text, (mark, char)| text.replace(mark, char))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(tool: Sanitizer, text: &str) -> Vec<Finding> {
        findings(tool, text).unwrap()
    }

    #[test]
    fn accesses_out_of_bounds_have_their_memory_line_thread_and_number() {
        let all = found(Sanitizer::Memcheck, include_str!("fixtures/memcheck.xml"));
        let [one] = &all[..] else { panic!("{all:?}") };
        assert_eq!((one.kind, one.space, one.count), (FindingKind::OutOfBounds, Some(Space::Global), 3));
        assert_eq!(one.line, Some(("k.cu".into(), 10)));
        assert_eq!((one.block, one.thread), (Some([0, 0, 0]), Some([128, 0, 0])));
        let said = "Invalid __global__ write of size 4 bytes is out of bounds at k.cu:10 in `beyond` (memcheck)";
        assert_eq!(one.message, said);
        let all = found(Sanitizer::Memcheck, include_str!("fixtures/memcheck_shared.xml"));
        assert_eq!((all.len(), all[0].space, all[0].count), (1, Some(Space::Shared), 2));
    }

    #[test]
    fn races_have_both_lines_or_offsets_where_there_are_none() {
        let all = found(Sanitizer::Racecheck, include_str!("fixtures/racecheck.xml"));
        let [one] = &all[..] else { panic!("{all:?}") };
        assert_eq!((one.kind, one.space, one.count), (FindingKind::Race, Some(Space::Shared), 1024));
        assert_eq!((one.line.clone(), one.other_line.clone()), (Some(("k.cu".into(), 12)), Some(("k.cu".into(), 13))));
        let said = "Race condition: write at k.cu:12 in `racy`, read at k.cu:13 in `racy` (racecheck)";
        assert_eq!(one.message, said);
        let all = found(Sanitizer::Racecheck, include_str!("fixtures/racecheck_plain.xml"));
        assert_eq!((all[0].line.clone(), all.len()), (None, 1));
        assert_eq!(all[0].message, "Race condition: write at 0xe0 in `racy`, read at 0xf0 in `racy` (racecheck)");
    }

    #[test]
    fn what_nothing_wrote_and_barriers_that_diverge_are_findings() {
        let all = found(Sanitizer::Initcheck, include_str!("fixtures/initcheck.xml"));
        assert_eq!((all.len(), all[0].kind, all[0].count), (1, FindingKind::Uninitialised, 2));
        assert_eq!((all[0].space, all[0].line.clone()), (Some(Space::Global), Some(("k.cu".into(), 15))));
        let all = found(Sanitizer::Synccheck, include_str!("fixtures/synccheck.xml"));
        assert_eq!((all.len(), all[0].kind, all[0].count), (1, FindingKind::DivergentBarrier, 4));
        let said = "Barrier error: Divergent thread(s) in warp at k.cu:19 in `partial` (synccheck)";
        assert_eq!(all[0].message, said);
    }

    #[test]
    fn nothing_is_nothing_and_what_is_cut_off_is_refused() {
        let nothing = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<ComputeSanitizerOutput/>\n";
        assert_eq!(findings(Sanitizer::Memcheck, nothing), Ok(vec![]));
        let whole = include_str!("fixtures/memcheck.xml");
        for cut in [0, 10, 60, 700, whole.len() - 5] {
            assert!(findings(Sanitizer::Memcheck, &whole[..cut]).is_err(), "{cut}");
        }
        assert!(findings(Sanitizer::Memcheck, "<a><b></a>").unwrap_err().contains("closes nothing"));
    }

    #[test]
    fn threads_of_a_warp_that_do_not_wait_for_each_other_race() {
        // From `tests/exploits/cheats/warp_in_step.cu`, one record of five.
        let all = found(Sanitizer::Racecheck, include_str!("fixtures/racecheck_warp.xml"));
        let [one] = &all[..] else { panic!("{all:?}") };
        assert_eq!(
            (one.kind, one.line.clone(), one.count),
            (FindingKind::Race, Some(("warp_in_step.cu".into(), 9)), 496)
        );
        let info = include_str!("fixtures/racecheck_warp.xml").replace("Warning", "Info");
        assert_eq!(found(Sanitizer::Racecheck, &info), []);
    }

    #[test]
    fn warnings_are_no_findings_and_templates_are_spelt_as_they_are() {
        let of = |level: &str, error: &str| {
            format!(
                "<o><record><level>{level}</level><what><text>Invalid read</text><error>{error}</error></what>\
                 <where><func>f&lt;1, 2&gt;(int &amp;)</func></where></record></o>"
            )
        };
        assert_eq!(found(Sanitizer::Memcheck, &of("Warning", "misaligned")), []);
        let all = found(Sanitizer::Memcheck, &of("Error", "misaligned"));
        assert_eq!(
            (all[0].kind, all[0].message.as_str()),
            (FindingKind::Misaligned, "Invalid read in `f<1, 2>(int &)` (memcheck)")
        );
    }

    #[test]
    fn traps_are_told_from_other_exceptions() {
        let all = found(Sanitizer::Memcheck, include_str!("fixtures/memcheck_trap.xml"));
        assert_eq!((all.len(), all[0].kind, all[0].thread), (1, FindingKind::Trap, Some([3, 0, 0])));
        assert_eq!(all[0].message, "Trace/breakpoint trap at k.cu:11 in `traps` (memcheck)");
        let all =
            found(Sanitizer::Memcheck, "<o><record><what><exception>Warp timeout</exception></what></record></o>");
        assert_eq!((all[0].kind, all[0].message.as_str()), (FindingKind::Crash, "Warp timeout (memcheck)"));
    }

    #[test]
    fn paths_are_those_of_the_package() {
        for (path, want) in [
            ("/kforge-source/././src/k.cu", "src/k.cu"),
            ("/kforge-source/src/source/k.cu", "src/source/k.cu"),
            ("/usr/include/k.cuh", "/usr/include/k.cuh"),
            ("./k.cu", "k.cu"),
        ] {
            assert_eq!(relative(path), want);
        }
    }
}
