//! Sentences about what a source lacks: a name that a header which is not here declares, and what was left out. Knows prefixes of well-known libraries' headers;
//! decides nothing.

use std::fmt::Write;

use kforge_types::model::entry::function;

use super::declarations::closing;
use super::part::is_keyword;
use super::tokens::{Kind, Token};
use super::{AbsentHeader, Place, Reduced, Sources};

/// Namespaces of libraries, and how the names of the headers that declare them begin.
const LIBRARIES: [(&str, &[&str]); 10] = [
    ("at", &["ATen/", "torch/"]),
    ("c10", &["c10/", "ATen/", "torch/"]),
    ("torch", &["torch/"]),
    ("pybind11", &["pybind11/", "torch/"]),
    ("cub", &["cub/"]),
    ("thrust", &["thrust/"]),
    ("cutlass", &["cutlass/"]),
    ("cute", &["cute/", "cutlass/"]),
    ("cg", &["cooperative_groups"]),
    ("cooperative_groups", &["cooperative_groups"]),
];

/// A name that a kernel needs and that nothing here declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The entry.
    pub entry: String,
    /// The name, with its namespaces.
    pub name: String,
    /// Where it is used.
    pub place: Place,
    /// The headers that may declare it: one of them must.
    pub headers: Vec<AbsentHeader>,
}

impl std::fmt::Display for Need {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Need { entry, name, place, headers } = self;
        write!(f, "kernel `{entry}` needs `{name}` ({place}), which ")?;
        let listed: Vec<String> = headers.iter().map(|h| format!("`{}` ({})", h.name, h.place)).collect();
        match &listed[..] {
            [one] => write!(f, "the missing header {one} declares"),
            [first @ .., last] => {
                write!(f, "one of the missing headers {} and {last} declares", first.join(", "))
            }
            [] => write!(f, "no header here declares"),
        }
    }
}

impl Sources<'_> {
    /// The first name that a compiler did not find, if a header that is absent can declare it. `errors` are the places of messages about undeclared names, in
    /// order, with the name if the message has one. An entry that nothing declares needs the unknown macro whose arguments have its name.
    pub fn need(
        &self,
        entries: &[String],
        errors: &[(Option<String>, Place)],
        absent: &[AbsentHeader],
    ) -> Option<Need> {
        errors
            .iter()
            .find_map(|(_, place)| {
                let names = errors.iter().filter(|(_, other)| other == place).filter_map(|(name, _)| name.as_deref());
                self.need_at(entries, place, names, absent)
            })
            .or_else(|| entries.iter().find_map(|entry| self.maker(entry, absent)))
    }

    /// The macro of an absent header that makes an entry: a name that nothing here declares, with the entry's name among its arguments.
    fn maker(&self, entry: &str, absent: &[AbsentHeader]) -> Option<Need> {
        let name = function(entry);
        if absent.is_empty() || self.declares(name) {
            return None;
        }
        self.groups.iter().find_map(|group| {
            let file = &self.files[group.file];
            let text = file.tokens[group.range.from..group.range.to].iter().filter(|t| t.kind != Kind::Directive);
            let text: Vec<Token> = text.cloned().collect();
            let made = used(&text).find(|(_, arguments)| arguments.iter().any(|t| t.is(name)));
            let (maker, _) = made.filter(|(maker, _)| !self.macros.contains(&maker.text))?;
            let place = Place { file: file.name.clone(), line: maker.line };
            Some(Need { entry: entry.to_string(), name: maker.text.clone(), place, headers: absent.to_vec() })
        })
    }

    fn need_at<'n>(
        &self,
        entries: &[String],
        place: &Place,
        names: impl Iterator<Item = &'n str>,
        absent: &[AbsentHeader],
    ) -> Option<Need> {
        let name = match self.foreign_at(place) {
            Some(foreign) => foreign,
            // The first name of the line: others may be arguments of what it would have been.
            None => self.spelled_at(place, names.min_by_key(|name| self.position_at(place, name))?),
        };
        if absent.is_empty() || self.declares(&name) {
            return None;
        }
        let space = name.split("::").next().unwrap_or(&name);
        let starts = LIBRARIES.iter().find(|(library, _)| *library == space).map_or(&[][..], |(_, starts)| *starts);
        let of = |header: &&AbsentHeader| starts.iter().any(|start| header.name.starts_with(start));
        let mut headers: Vec<AbsentHeader> = absent.iter().filter(of).cloned().collect();
        if headers.is_empty() {
            headers = absent.to_vec();
        }
        let entry = self.entry_at(entries, place)?.clone();
        Some(Need { entry, name, place: place.clone(), headers })
    }
}

/// The uses of macros that a declaration begins with, as `NAME(arguments)`: those that stand one behind the other look like one declaration.
fn used(text: &[Token]) -> impl Iterator<Item = (&Token, &[Token])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += text[at..].iter().take_while(|t| t.is(";")).count();
        let maker = text.get(at).filter(|t| t.is_word() && !is_keyword(&t.text))?;
        let open = text.get(at + 1).filter(|t| t.is("(")).map(|_| at + 1)?;
        let close = closing(text, open)?;
        at = close + 1;
        Some((maker, &text[open + 1..close]))
    })
}

impl Reduced {
    /// What was left out, one line for each header and declaration.
    pub fn listed(&self, main: &str) -> String {
        let mut out = format!("no entry needs these parts of `{main}`, which were left out:");
        for header in &self.absent {
            let _ = write!(out, "\n{}: the header `{}`, which is not here", header.place, header.name);
        }
        for (name, place) in &self.asked {
            let _ = write!(out, "\n{place}: a condition asks about `{name}`, which nothing here defines");
        }
        for (place, why) in &self.whole {
            let _ = write!(out, "\n{place}: {why}");
        }
        for part in &self.left_out {
            let lines = if part.to > part.place.line { format!("-{}", part.to) } else { String::new() };
            let _ = write!(out, "\n{}{lines}: `{}`", part.place, part.name);
        }
        out
    }

    /// Whether a condition asks about a macro that a header of C, C++ or POSIX may define. An empty header in its place could then change what a kernel means.
    pub fn asks_standard(&self) -> bool {
        self.asked.iter().any(|(name, _)| is_reserved(name))
    }

    /// Why macros that may make host code stay as they are, one line for each; empty if there are none.
    pub fn why_whole(&self) -> String {
        self.whole.iter().map(|(place, why)| format!("{place}: {why}\n")).collect()
    }

    /// Keeps only the absent headers that a compiler lacks too.
    pub fn retain_absent(&mut self, lacks: impl FnMut(&AbsentHeader) -> bool) {
        self.absent.retain(lacks);
        if self.absent.is_empty() {
            self.asked.clear();
        }
    }

    /// The texts that take the place of files, and the empty headers that are added.
    pub fn replaced(&self) -> std::collections::BTreeMap<String, String> {
        let mut all = self.files.clone();
        for header in self.absent.iter().filter(|header| header.stands) {
            let name = format!("{}/{}", super::ABSENT, header.name);
            let inside =
                |known: &String| known.starts_with(&format!("{name}/")) || name.starts_with(&format!("{known}/"));
            if !all.keys().any(inside) {
                all.insert(name, String::new());
            }
        }
        all
    }
}

/// Headers of C and POSIX that every compiler of host code has.
const C: [&str; 36] = [
    "assert.h",
    "complex.h",
    "ctype.h",
    "dirent.h",
    "dlfcn.h",
    "errno.h",
    "fcntl.h",
    "fenv.h",
    "float.h",
    "getopt.h",
    "inttypes.h",
    "limits.h",
    "locale.h",
    "malloc.h",
    "math.h",
    "memory.h",
    "omp.h",
    "pthread.h",
    "sched.h",
    "semaphore.h",
    "setjmp.h",
    "signal.h",
    "stdalign.h",
    "stdarg.h",
    "stdbool.h",
    "stddef.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "string.h",
    "strings.h",
    "time.h",
    "uchar.h",
    "unistd.h",
    "wchar.h",
    "wctype.h",
];

/// Whether a header belongs to C, C++ or POSIX.
pub fn is_standard(name: &str) -> bool {
    C.contains(&name)
        || ["sys/", "bits/", "arpa/", "netinet/"].iter().any(|start| name.starts_with(start))
        || !name.contains(['.', '/'])
}

/// Whether a header of C, C++ or POSIX may define a macro of that name: these standards reserve such names for their headers.
pub(super) fn is_reserved(name: &str) -> bool {
    const WHOLE: [&str; 20] = [
        "NULL",
        "EOF",
        "BUFSIZ",
        "NAN",
        "INFINITY",
        "HUGE_VAL",
        "HUGE_VALF",
        "RAND_MAX",
        "I",
        "assert",
        "errno",
        "stdin",
        "stdout",
        "stderr",
        "isnan",
        "isinf",
        "signbit",
        "bool",
        "offsetof",
        "TIME_UTC",
    ];
    const STARTS: [&str; 17] = [
        "M_", "FP_", "FE_", "MATH_", "LC_", "PRI", "SCN", "SIG", "CLOCK", "SEEK_", "EXIT_", "O_", "S_", "PTHREAD_",
        "FLT_", "DBL_", "ATOMIC_",
    ];
    const ENDS: [&str; 8] = ["_MAX", "_MIN", "_BIT", "_BITS", "_C", "_WIDTH", "_DIG", "_NAME_MAX"];
    // EINVAL and the like.
    let is_error =
        name.len() > 2 && name.starts_with('E') && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    WHOLE.contains(&name)
        || is_error
        || STARTS.iter().any(|start| name.starts_with(start))
        || ENDS.iter().any(|end| name.ends_with(end))
}
