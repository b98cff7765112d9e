//! Reads the output of the host's C++ compiler: `FILE:LINE:COLUMN: error: TEXT`, as g++ and clang++ print it. Knows that format; decides nothing.

use kforge_foundation::base::Severity;
use kforge_types::record::{SourcePlace, ToolMessage};

/// What a message begins with, after its place.
const KINDS: [(&str, Severity); 3] =
    [("fatal error: ", Severity::Error), ("error: ", Severity::Error), ("warning: ", Severity::Warning)];

/// The errors and warnings of an output, in order, each once. Notes and quoted sources belong to the message before them and are left out; so are messages of
/// the linker, which name no line. A place in our own headers or in the unit that we generate is no place in the package.
pub fn messages(log: &str) -> Vec<ToolMessage> {
    let mut found: Vec<ToolMessage> = vec![];
    for message in log.lines().filter_map(message) {
        if !found.contains(&message) {
            found.push(message);
        }
    }
    found
}

fn message(line: &str) -> Option<ToolMessage> {
    let mut parts = line.splitn(4, ':');
    let (file, at, column, rest) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let (at, column) = (at.parse().ok()?, column.parse().ok()?);
    let rest = rest.trim_start();
    let (severity, text) = KINDS.iter().find_map(|(kind, severity)| Some((*severity, rest.strip_prefix(kind)?)))?;
    let file = file.trim_start_matches("./");
    let ours = file.starts_with('/') || file.starts_with("headers/") || file == "entries.cpp" || file.is_empty();
    let place = (!ours).then(|| SourcePlace { file: file.to_string(), line: at, column: Some(column) });
    Some(ToolMessage { severity, place, message: text.trim().to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Severity; file, line and column; text.
    type Told = (Severity, Option<(String, u32, Option<u32>)>, String);

    fn told(log: &str) -> Vec<Told> {
        let place = |place: SourcePlace| (place.file, place.line, place.column);
        messages(log).into_iter().map(|m| (m.severity, m.place.map(place), m.message)).collect()
    }

    #[test]
    fn messages_of_both_compilers_have_file_line_and_column() {
        let gcc = "k.cu: In function 'void k(float*)':\n\
                   k.cu:3:19: error: 'foo' was not declared in this scope\n    3 |     y[0] = foo;\n      |            ^~~\n\
                   sub/a.h:12:5: warning: unused variable 'i' [-Wunused-variable]\n\
                   sub/a.h:12:5: note: declared here\n";
        let expected = [
            (Severity::Error, Some(("k.cu".into(), 3, Some(19))), "'foo' was not declared in this scope".into()),
            (
                Severity::Warning,
                Some(("sub/a.h".into(), 12, Some(5))),
                "unused variable 'i' [-Wunused-variable]".to_string(),
            ),
        ];
        assert_eq!(told(gcc), expected);
        let clang =
            "k.cu:3:12: error: use of undeclared identifier 'foo'\n    y[0] = foo;\n           ^\n1 error generated.\n";
        let expected =
            (Severity::Error, Some(("k.cu".into(), 3, Some(12))), "use of undeclared identifier 'foo'".into());
        assert_eq!(told(clang), [expected]);
        let missing = "k.cu:1:10: fatal error: nosuch.h: No such file or directory\ncompilation terminated.\n";
        assert_eq!(told(missing)[0].2, "nosuch.h: No such file or directory");
    }

    #[test]
    fn what_our_own_files_say_has_no_place_in_the_package() {
        let log = "headers/kf_math.h:7:2: error: no\nentries.cpp:4:1: error: 'z' was not declared\n/usr/include/math.h:1:1: warning: old\n";
        assert!(told(log).iter().all(|(_, place, _)| place.is_none()) && told(log).len() == 3, "{:?}", told(log));
    }

    #[test]
    fn what_is_repeated_is_told_once_and_what_is_no_message_never() {
        let log = "a.cu:1:1: error: x\na.cu:1:1: error: x\nIn file included from a.cu:2:\nld: cannot find -lz\n:::: error: y\n";
        assert_eq!(told(log).len(), 1);
    }
}
