//! What is wrong with the brackets of a source: it ends inside something, or closes what nothing opens. Knows what the other modules found; reads no text.

use super::tokens::Unclosed;
use super::{Place, Sources, declarations};

/// A bracket, a comment or the like without its other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// What it is: `the brace`, `the comment`.
    pub what: &'static str,
    /// Where it is.
    pub place: Place,
    /// Whether it closes what nothing opens. Otherwise the file ends inside it.
    pub closes: bool,
}

impl std::fmt::Display for Unfinished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Unfinished { what, place, closes } = self;
        let file: String = place
            .file
            .chars()
            .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
            .collect();
        match closes {
            true => write!(f, "`{file}` has a {what} at line {} that closes nothing", place.line),
            false => write!(f, "`{file}` ends inside {what} that opens at line {}", place.line),
        }
    }
}

impl Unfinished {
    /// As a C++ compiler words an error: `k.cu:3:1: error: TEXT`.
    pub fn as_error(&self) -> String {
        format!("{}:1: error: {self}\n", self.place)
    }
}

impl Sources<'_> {
    /// The first file, the main one before the others, with a bracket, a comment or the like that has no other end.
    pub fn unfinished(&self) -> Option<Unfinished> {
        let mut order: Vec<usize> = (0..self.files.len()).collect();
        order.sort_by_key(|index| self.files[*index].name != self.tree.main);
        order.into_iter().find_map(|index| {
            let file = &self.files[index];
            // A macro may hold the other end.
            let reads = !file.inner && self.macros.balance();
            let opening = file.declarations.opening.as_ref().filter(|_| !file.fragment && reads);
            // A declaration that only lacks its end may be a macro of a header that is not here.
            let opening = opening.filter(|opening| opening.what != declarations::DECLARATION);
            let stray = file.declarations.stray.filter(|_| reads);
            let (what, line, closes) = match (file.unclosed, stray, opening) {
                (Some(Unclosed::Comment(line)), ..) => ("the comment", line, false),
                (Some(Unclosed::RawString(line)), ..) => ("the string", line, false),
                (None, Some((what, line)), _) => (what, line, true),
                (None, None, Some(opening)) => (opening.what, opening.line, false),
                _ => return None,
            };
            Some(Unfinished { what, place: self.place(index, line), closes })
        })
    }
}
