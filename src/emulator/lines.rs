//! Places are program counters while a kernel runs, and files and lines afterwards: only the verifier has the line tables, which are
//! an output apart from the binary.
//!
//! Of a kernel in Triton, the table is a [`SourceLines`], and an offset names a line of the text that the interpreter runs.
//!
//! A runner's findings carry [`PENDING`] as the file and the offset in the image as the line; messages contain `@{1a2b}` marks.
//! [`Lines::resolve`] replaces both.

use std::path::Path;

use super::abi::{ADAPTED, TOOLKIT};
use super::source_lines::{SourceLines, plain};
use kforge_harness::message::RunnerReport;
use kforge_types::record::Finding;

/// The file of a place that is not resolved yet. Its line is the offset in the image of the instruction after.
pub const PENDING: &str = "@pc";

/// A place to be resolved.
pub(super) fn pending(offset: u32) -> (String, u32) {
    (PENDING.to_owned(), offset)
}

/// A place to be resolved, as a mark in a message.
pub(super) fn mark(offset: u32) -> String {
    format!("@{{{offset:x}}}")
}

/// Like [`mark`], for a place that is shown with the calls that led there.
pub(super) fn mark_with_callers(offset: u32) -> String {
    format!("@{{{CALLERS}{offset:x}}}")
}

/// Begins the offset of a place that is shown with its callers.
const CALLERS: char = '^';

/// Whether a text contains marks.
pub fn has_marks(text: &str) -> bool {
    text.contains("@{")
}

/// Line tables of one binary.
pub struct Lines<'a> {
    context: Option<addr2line::Context<Reader<'a>>>,
    sources: SourceLines,
}

type Reader<'a> = addr2line::gimli::EndianSlice<'a, addr2line::gimli::LittleEndian>;

impl<'a> Lines<'a> {
    /// Reads the compile step's output `lines`. If it cannot be read, no place is resolved.
    pub fn parse(bytes: &'a [u8]) -> Self {
        match SourceLines::parse(bytes) {
            Some(sources) => Lines { context: None, sources },
            None => Lines { context: context(bytes), sources: SourceLines::default() },
        }
    }

    /// File and line of an offset: the innermost frame that is not one of our own headers.
    pub fn find(&self, offset: u32) -> Option<(String, u32)> {
        self.frames(offset).into_iter().next()
    }

    /// Files and lines of an offset, the innermost first: the place, and the calls that the compiler replaced by the called functions. Without frames of our own
    /// headers, and with those of the toolkit's only if there are no others.
    fn frames(&self, offset: u32) -> Vec<(String, u32)> {
        if let Some(place) = self.sources.find(offset) {
            return vec![place];
        }
        let (mut found, mut toolkit) = (Vec::new(), Vec::new());
        let Some(context) = &self.context else { return found };
        let Ok(mut frames) = context.find_frames(u64::from(offset).saturating_sub(1)).skip_all_loads() else {
            return found;
        };
        while let Ok(Some(frame)) = frames.next() {
            let Some((file, line)) = frame.location.and_then(|l| Some((l.file?.to_owned(), l.line?))) else { continue };
            let file = file.trim_start_matches("./").trim_start_matches("source/").to_owned();
            let ours =
                file.starts_with("headers/") || file.starts_with('/') || file == "entries" || file == "entries.cpp";
            let of_toolkit = [ADAPTED, TOOLKIT].iter().find_map(|folder| file.strip_prefix(folder)?.strip_prefix('/'));
            match of_toolkit {
                Some(file) => toolkit.push((plain(file), line)),
                None if !ours && !Path::new(&file).as_os_str().is_empty() => found.push((plain(&file), line)),
                None => {}
            }
        }
        if found.is_empty() { toolkit } else { found }
    }

    /// Replaces places in a report with files and lines.
    pub fn resolve(&self, report: &mut RunnerReport) {
        match report {
            RunnerReport::Finding { finding, .. } => self.resolve_finding(finding),
            RunnerReport::NotEmulated(claim) => claim.what = self.resolve_text(&claim.what),
            _ => {}
        }
    }

    fn resolve_finding(&self, finding: &mut Finding) {
        for place in [&mut finding.line, &mut finding.other_line] {
            *place = place.take().and_then(|place| self.resolve_place(place));
        }
        finding.message = self.resolve_text(&finding.message);
    }

    /// A place with its file and line: itself, unless it is not resolved yet. None if it cannot be.
    pub fn resolve_place(&self, place: (String, u32)) -> Option<(String, u32)> {
        if place.0 == PENDING { self.find(place.1) } else { Some(place) }
    }

    /// File and line of the first mark in a text.
    pub fn first_mark(&self, text: &str) -> Option<(String, u32)> {
        text.split("@{").skip(1).find_map(|after| self.find(mark_of(after)?.0))
    }

    /// Replaces marks in a text with files and lines.
    pub fn resolve_text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("@{") {
            let after = &rest[at + 2..];
            let callers = after.starts_with(CALLERS);
            out.push_str(&rest[..at]);
            match mark_of(after) {
                Some((offset, end)) => {
                    let frames = self.frames(offset);
                    let shown = if callers { frames.len() } else { 1 };
                    let places: Vec<String> =
                        frames.iter().take(shown).map(|(file, line)| format!("{file}:{line}")).collect();
                    match places.is_empty() {
                        false => out.push_str(&places.join(", called at ")),
                        true => out.push_str("an unknown line"),
                    }
                    rest = &after[end + 1..];
                }
                None => {
                    out.push_str("@{");
                    rest = after;
                }
            }
        }
        out.push_str(rest);
        out
    }
}

/// The offset of a mark, given the text after its opening, and where it ends there.
fn mark_of(after: &str) -> Option<(u32, usize)> {
    let end = after.find('}')?;
    let digits = after.get(..end)?;
    Some((u32::from_str_radix(digits.strip_prefix(CALLERS).unwrap_or(digits), 16).ok()?, end))
}

fn context(bytes: &[u8]) -> Option<addr2line::Context<Reader<'_>>> {
    use addr2line::gimli;
    use object::{Object, ObjectSection};
    let file = object::File::parse(bytes).ok()?;
    let section = |id: gimli::SectionId| -> Result<Reader<'_>, gimli::Error> {
        let data = file.section_by_name(id.name()).and_then(|s| s.data().ok()).unwrap_or_default();
        Ok(gimli::EndianSlice::new(data, gimli::LittleEndian))
    };
    addr2line::Context::from_dwarf(gimli::Dwarf::load(section).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_source_calls_itself_controls_no_terminal_and_forges_no_line() {
        assert_eq!(plain("k.cu\u{1b}[31m\nerror: none"), "k.cu [31m error: none");
        assert_eq!(plain(&"x".repeat(5000)).len(), 300);
    }

    #[test]
    fn marks_without_a_table_become_plain_words() {
        let lines = Lines::parse(b"");
        assert_eq!(
            lines.resolve_text("race at @{1f} and @{zz}, @{^1f}"),
            "race at an unknown line and @{zz}, an unknown line"
        );
        assert_eq!(lines.first_mark("race at @{1f}"), None);
    }

    #[test]
    fn lines_of_a_text_that_the_interpreter_runs_are_those_of_its_file() {
        let table = SourceLines { triton: vec![("a.py".into(), vec![1]), ("k.py".into(), vec![3, 7])] };
        let text = table.to_text();
        assert_eq!(SourceLines::parse(text.as_bytes()), Some(table));
        let lines = Lines::parse(text.as_bytes());
        let at = SourceLines::offset(1, 2);
        assert_eq!(lines.find(at), Some(("k.py".into(), 7)));
        assert_eq!(lines.resolve_text(&format!("write at {}", mark(at))), "write at k.py:7");
        for nowhere in [0, SourceLines::offset(1, 3), SourceLines::offset(2, 1)] {
            assert_eq!(lines.find(nowhere), None);
        }
    }

    #[test]
    fn a_place_that_was_resolved_stays_and_one_without_a_table_is_unknown() {
        let lines = Lines::parse(b"");
        assert_eq!(lines.resolve_place(("k.cu".into(), 7)), Some(("k.cu".into(), 7)));
        assert_eq!(lines.resolve_place(pending(7)), None);
    }
}
