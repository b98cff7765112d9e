//! Parses the logs of CUDA's compilers. Knows the format of their messages; decides nothing except whether to try another compiler.

use std::collections::BTreeMap;

use kforge_foundation::base::Severity;
use kforge_types::record::{Note, SourcePlace, ToolMessage};

/// A message of a compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) severity: Severity,
    /// File and line from one, if the message has a place.
    pub(super) place: Option<(String, u32)>,
    /// The first line of the message, without place and severity.
    pub(super) text: String,
    /// The whole message, as the compiler prints it.
    pub(super) whole: String,
}

impl Message {
    /// Its place and first line. The file in which NVRTC looks up entries, the stand-ins and the toolchain's headers are no places in the package.
    fn apart(&self) -> ToolMessage {
        let ours = |file: &str| file == NAME_MAP || file.starts_with(['@', '/']);
        let place = self.place.as_ref().filter(|(file, _)| !ours(file));
        let place = place.map(|(file, line)| SourcePlace { file: file.clone(), line: *line, column: None });
        ToolMessage { severity: self.severity, place, message: self.text.clone() }
    }
}

/// The file in which NVRTC looks up entries.
const NAME_MAP: &str = "__nv_name_map";

/// The messages of a log, in order: `FILE(LINE): error: TEXT` or `FILE(LINE): warning #N-D: TEXT`, followed by lines that quote the source. Errors of the
/// driver and of ptxas (`ptxas fatal   : TEXT`) have no place.
pub(super) fn messages(log: &str) -> Vec<Message> {
    let mut found: Vec<Message> = vec![];
    let mut open = false;
    for line in log.lines() {
        if let Some(message) = begin(line) {
            found.push(message);
            open = true;
        } else if line.trim().is_empty() || is_report(line) {
            open = false;
        } else if open && let Some(last) = found.last_mut() {
            last.whole.push('\n');
            last.whole.push_str(line);
        }
    }
    found
}

fn begin(line: &str) -> Option<Message> {
    const KINDS: [(&str, Severity); 5] = [
        ("catastrophic error", Severity::Error),
        ("fatal error", Severity::Error),
        ("error", Severity::Error),
        ("warning", Severity::Warning),
        ("fatal", Severity::Error),
    ];
    let (place, rest) = match line.split_once("): ") {
        Some((before, rest)) => {
            let (file, number) = before.rsplit_once('(')?;
            (Some((file.to_string(), number.parse().ok()?)), rest)
        }
        None => {
            let rest = ["ptxas ", "nvcc ", "nvrtc: ", "nvlink "].into_iter().find_map(|tool| line.strip_prefix(tool));
            match rest {
                Some(rest) => (None, rest.trim_start_matches(|c: char| c == ',' || c == ':' || c.is_whitespace())),
                // The format of the host's preprocessor: FILE:LINE:COLUMN: fatal error: TEXT.
                None => {
                    let mut parts = line.splitn(4, ':');
                    let (file, number, _) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
                    (Some((file.to_string(), number)), parts.next()?.trim_start())
                }
            }
        }
    };
    // In `/tmp/x.ptx, line 9; error   : TEXT`, ptxas reports on the output of the compiler before it.
    let rest =
        rest.split_once("; ").map_or(rest, |(before, after)| if before.contains(", line ") { after } else { rest });
    let (kind, severity) = KINDS.into_iter().find(|(kind, _)| rest.starts_with(kind))?;
    // A number or spaces are between the kind and the colon.
    let (between, text) = rest[kind.len()..].split_once(':')?;
    if between.len() > 16 || !between.trim().is_empty() && !between.trim().starts_with('#') {
        return None;
    }
    Some(Message { severity, place, text: text.trim().to_string(), whole: line.to_string() })
}

/// Whether a line is ptxas's report of resources or a count of errors; either ends the previous message.
fn is_report(line: &str) -> bool {
    line.starts_with("ptxas info") || line.contains("detected in the compilation of") || line.starts_with("Remark:")
}

/// The first error in one line: `norms/main.cu:9: identifier "foo" is undefined`.
pub(super) fn first_error(messages: &[Message], entries: &[String]) -> Option<String> {
    let error = messages.iter().find(|m| m.severity == Severity::Error)?;
    // NVRTC looks up entries in a file that it generates; the pragma that it quotes names the entry.
    if let Some(entry) = entry_of(error) {
        let entry = entries.iter().find(|e| squeezed(e) == squeezed(&entry)).cloned().unwrap_or(entry);
        return Some(format!("entry `{entry}` cannot be found: {}", error.text));
    }
    Some(match &error.place {
        Some((file, line)) => format!("{file}:{line}: {}", error.text),
        None => error.text.clone(),
    })
}

/// The first linker error in one line, preferably about something missing. In these messages, the linker's name is in the position of the place.
pub(super) fn linkers_error(log: &str) -> Option<String> {
    let said = |line: &str| Some(line.split_once("ld: ")?.1.trim().to_string());
    let about = |line: &&str| line.contains("undefined reference") || line.contains("cannot find");
    let mut lines = log.lines().filter(|line| line.contains("ld: "));
    log.lines().filter(about).find_map(said).or_else(|| lines.find_map(said))
}

fn entry_of(error: &Message) -> Option<String> {
    let (file, _) = error.place.as_ref()?;
    if file != NAME_MAP {
        return None;
    }
    let pragma = error.whole.lines().find_map(|l| l.trim().strip_prefix("#pragma nv_mangled_name "))?;
    Some(pragma.trim().to_string())
}

/// The names that errors do not find, with their places in the package, in order. A message may name nothing.
pub(super) fn undeclared(log: &str) -> Vec<(Option<String>, (String, u32))> {
    let says = |text: &str| {
        text.ends_with("is undefined")
            || text.starts_with("name followed by \"::\" must be a class or namespace name")
            || text.contains("has no member")
            || text.contains("is not a template")
            || text.starts_with("no operator \"")
            || text.contains("could not be resolved")
    };
    let errors = messages(log).into_iter().filter(|m| m.severity == Severity::Error && says(&m.text));
    errors
        .filter_map(|m| {
            let place = m.place.clone().filter(|(file, _)| file != NAME_MAP && !file.starts_with(['@', '/']))?;
            let quoted: Vec<&str> = m.text.split('"').skip(1).step_by(2).collect();
            let name = match quoted[..] {
                ["::"] | [] => None,
                [symbol, ..] if m.text.starts_with("no operator") => Some(format!("operator{symbol}")),
                [space, member, ..] if m.text.contains("has no member") => Some(format!("{space}::{member}")),
                [name, ..] => Some(name.to_string()),
            };
            Some((name, place))
        })
        .collect()
}

/// Whether an error is about an entry: in the file in which NVRTC looks entries up, or in the tables for nvcc.
pub(super) fn is_about_entries(log: &str) -> bool {
    let about =
        |m: &Message| m.text.starts_with("entry `") || m.place.as_ref().is_some_and(|(file, _)| file == NAME_MAP);
    messages(log).iter().any(|m| m.severity == Severity::Error && about(m))
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Warnings as notes, except those about macros of the stand-ins, which the author of a kernel cannot fix.
pub(super) fn warnings(messages: &[Message]) -> Vec<Note> {
    let ours = |m: &Message| m.whole.contains(&format!(" of {}/", super::stage::SHIM));
    messages
        .iter()
        .filter(|m| m.severity == Severity::Warning && !ours(m))
        .map(|m| Note::new(m.severity, "compile.warning", m.whole.clone()).of_parts(vec![m.apart()]))
        .collect()
}

/// The errors and warnings of a log, in order, each once, with their places in the package.
pub fn tool_messages(log: &str) -> Vec<ToolMessage> {
    let mut found: Vec<ToolMessage> = vec![];
    for message in messages(log).iter().map(Message::apart) {
        if !found.contains(&message) {
            found.push(message);
        }
    }
    found
}

/// Bytes of spill stores and loads by symbol, from the output of `ptxas -v`.
pub(super) fn spills(log: &str) -> BTreeMap<String, (u64, u64)> {
    let mut spills = BTreeMap::new();
    let mut symbol = None;
    for line in log.lines() {
        if let Some((_, name)) = line.split_once("Function properties for ") {
            symbol = Some(name.trim().to_string());
        } else if line.contains("bytes stack frame") {
            let amount = |what: &str| {
                let part = line.split(',').find(|p| p.contains(what))?;
                part.split_whitespace().next()?.parse().ok()
            };
            if let (Some(symbol), Some(stores), Some(loads)) =
                (symbol.take(), amount("bytes spill stores"), amount("bytes spill loads"))
            {
                spills.insert(symbol, (stores, loads));
            }
        }
    }
    spills
}

/// The log without times, so that the same compilation gives the same log.
pub(super) fn timeless(log: &str) -> String {
    let kept = log.lines().filter(|line| !(line.starts_with("ptxas") && line.contains("Compile time =")));
    kept.map(|line| format!("{line}\n")).collect()
}

/// Types that glibc's `<sys/types.h>` declares and that nvcc reads before every source.
const HOST_TYPES: [&str; 13] = [
    "uint",
    "ushort",
    "ulong",
    "u_char",
    "u_short",
    "u_int",
    "u_long",
    "u_int8_t",
    "u_int16_t",
    "u_int32_t",
    "u_int64_t",
    "ssize_t",
    "off_t",
];

/// Why nvcc should be tried after NVRTC failed: NVRTC's messages say that a system header or a type of the host is missing, or that the file holds host code. If
/// a file that the package includes with quotes does not exist, nvcc cannot find it either.
pub(super) fn wants_nvcc(messages: &[Message]) -> Option<String> {
    messages.iter().filter(|m| m.severity == Severity::Error).find_map(|m| {
        let quoted = m.text.split('"').nth(1).unwrap_or_default();
        if m.text.starts_with("cannot open source file") {
            let angled = m.whole.lines().any(|l| l.contains('<') && l.contains("include"));
            return angled.then(|| format!("NVRTC has no header `{quoted}`"));
        }
        let host_name = |name: &str| {
            let after = name.strip_prefix("cuda").or_else(|| name.strip_prefix("cu"));
            after.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
                || matches!(name, "malloc" | "free" | "fprintf" | "stderr" | "stdout" | "exit" | "getenv")
        };
        if m.text.starts_with("identifier \"") && m.text.contains("is undefined") && host_name(quoted) {
            return Some(format!("the file holds host code: `{quoted}`"));
        }
        if m.text.starts_with("identifier \"") && m.text.contains("is undefined") && HOST_TYPES.contains(&quoted) {
            return Some(format!("NVRTC has no type `{quoted}`, which a header of the host's C library declares"));
        }
        if m.text.contains("device-side kernel launch could not be processed") {
            return Some("the file launches kernels from host code".to_string());
        }
        if m.text.contains("__host__ function is not allowed in JIT mode")
            || m.text.contains("execution space is not allowed in JIT mode")
        {
            return Some("the file holds host functions".to_string());
        }
        if m.text.starts_with("namespace \"std\" has no member") {
            let member = m.text.rsplit('"').nth(1).unwrap_or_default();
            return Some(format!("NVRTC has no `std::{member}`"));
        }
        None
    })
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
