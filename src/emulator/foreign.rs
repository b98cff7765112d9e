//! Finds the part of CUDA that a compiler error names and that the emulator lacks: a header of the toolkit, a function, a member of one of CUDA's namespaces.
//! nvcc compiles such a source, so its kernels are unknown here, not wrong. Pure: reads the messages of g++ and clang++, but no files.

/// What is missing, and where the source uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Foreign {
    /// The name as the source spells it.
    pub(super) what: String,
    /// The file, relative to the package, and the line.
    pub(super) place: (String, u32),
}

/// Folders and prefixes of the toolkit's headers.
const HEADERS: [&str; 13] = [
    "cuda/",
    "cub/",
    "thrust/",
    "nv/",
    "cooperative_groups/",
    "crt/",
    "cuda_",
    "curand",
    "cublas",
    "device_",
    "texture_",
    "surface_",
    "sm_",
];

/// CUDA's namespaces and prefixes of its types.
const SPACES: [&str; 6] = ["cuda", "cooperative_groups", "nvcuda", "cub", "thrust", "nv"];

/// What the first error in `log` names, if that belongs to CUDA and is not emulated. Places in `log` are relative to the package. An
/// error for any other reason is the source's own mistake.
pub(super) fn foreign(log: &str) -> Option<Foreign> {
    let lines: Vec<&str> = log.lines().collect();
    let at = lines.iter().position(|line| line.contains("error: "))?;
    let (place, message) = lines[at].split_once("error: ")?;
    let what = missing(message)?;
    // An error inside our own headers is attributed to the line that caused it.
    let asked = || {
        let near = lines[..at].iter().rev().chain(&lines[at + 1..]);
        near.filter(|line| line.contains("required from here") || line.contains("requested here"))
            .find_map(|line| place_of(line))
    };
    // An error in one of the toolkit's headers is attributed to the line that includes it.
    let included = || lines[..at].iter().rev().find_map(|line| place_of(included_from(line)?));
    Some(Foreign { what, place: place_of(place).or_else(asked).or_else(included)? })
}

/// The place of an include: `In file included from k.cu:3,` and, after it, `                 from k.cu:3:`.
fn included_from(line: &str) -> Option<&str> {
    let place = line.trim_start().trim_start_matches("In file included ").strip_prefix("from ")?;
    Some(place.trim_end_matches([',', ':']))
}

/// Whether a header belongs to CUDA's toolkit.
pub(super) fn is_toolkit(header: &str) -> bool {
    HEADERS.iter().any(|start| header.starts_with(start))
}

/// The names that errors in `log` do not find, with their places in the package, in order. A message about an operator names it `operator+`; one may name
/// nothing.
pub(super) fn undeclared(log: &str) -> Vec<(Option<String>, (String, u32))> {
    log.lines()
        .filter_map(|line| {
            let (place, message) = line.split_once("error: ")?;
            Some((name_in(message)?, place_of(place)?))
        })
        .collect()
}

/// The name in a message that something is not declared: the outer option is whether the message is one of these.
fn name_in(message: &str) -> Option<Option<String>> {
    const SAYS: [&str; 10] = [
        "was not declared",
        "does not name a type",
        "has not been declared",
        "is not a member of",
        "undeclared identifier",
        "unknown type name",
        "no member named",
        "no template named",
        "no match for 'operator",
        "to binary 'operator",
    ];
    if message.contains("invalid operands to binary expression") {
        return Some(None);
    }
    SAYS.iter().any(|says| message.contains(says)).then(|| {
        let mut quoted = message.split('\'').skip(1).step_by(2);
        let operator = quoted.clone().find(|name| name.starts_with("operator"));
        operator.or_else(|| quoted.next()).map(|name| bare(name).to_owned())
    })
}

/// The place at the start of a message, if it is in the package: not in our headers, the system's headers, or the unit around the source.
fn place_of(text: &str) -> Option<(String, u32)> {
    let mut parts = text.trim_start().splitn(3, ':');
    let (file, line) = (parts.next()?, parts.next()?.parse().ok()?);
    let apart = ["headers/", "cccl/", "toolkit/", "/", "<"].iter().any(|start| file.starts_with(start))
        || ["entries", "entries.cpp", "defines"].contains(&file);
    (!apart && !file.is_empty()).then(|| (file.to_owned(), line))
}

fn missing(message: &str) -> Option<String> {
    // The text of our own static assertion.
    if let Some(end) = message.find(" is not emulated").or_else(|| message.find(" are not emulated")) {
        let said = &message[..end];
        return Some(said.rsplit_once(": ").map_or(said, |(_, what)| what).trim_matches('"').to_owned());
    }
    let header =
        message.strip_suffix(": No such file or directory").or_else(|| message.strip_suffix(" file not found"));
    if let Some(header) = header {
        let header = header.trim_matches('\'');
        return is_toolkit(header).then(|| header.to_owned());
    }
    let quoted: Vec<&str> = message.split('\'').skip(1).step_by(2).collect();
    let says = |words: &str| message.contains(words);
    match quoted[..] {
        [name, space, ..] if says("is not a member of") && is_space(space) => Some(format!("{space}::{name}")),
        [name, space, ..] if says("no member named") && says(" in ") && is_space(space) => {
            Some(format!("{space}::{name}"))
        }
        [class, name, ..] if says("has no member named") && is_space(class) => Some(format!("{}::{name}", bare(class))),
        [name, ..] if says("was not declared") || says("does not name a type") || says("has not been declared") => {
            is_cuda(name).then(|| name.to_owned())
        }
        [name, ..] if says("undeclared identifier") || says("unknown type name") || says("no template named") => {
            is_cuda(name).then(|| name.to_owned())
        }
        _ => None,
    }
}

/// A type's name without `class`, qualifiers and template arguments.
fn bare(class: &str) -> &str {
    let name = class.trim_start_matches("const ").trim_start_matches("class ").trim_start_matches("struct ");
    name.split('<').next().unwrap_or(name)
}

fn is_space(name: &str) -> bool {
    let first = bare(name).split("::").next().unwrap_or_default();
    SPACES.contains(&first)
}

/// Whether a name is spelled like one of CUDA's: `cudaMalloc`, `cuTensorMapEncode`, `__viaddmax_s32`, `tex2DLod`, `texture`.
fn is_cuda(name: &str) -> bool {
    let name = bare(name);
    let then_upper =
        |start: &str| name.strip_prefix(start).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
    let then_digit =
        |start: &str| name.strip_prefix(start).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let intrinsic = name.strip_prefix("__").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
    then_upper("cuda")
        || then_upper("cu")
        || then_digit("tex")
        || then_digit("surf")
        || is_space(name)
        // References to textures and surfaces, which CUDA 12 no longer has.
        || ["texture", "surface"].contains(&name)
        || (intrinsic && !name.starts_with("__builtin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(log: &str) -> Option<(String, String, u32)> {
        foreign(log).map(|f| (f.what, f.place.0, f.place.1))
    }

    #[test]
    fn what_the_toolkit_has_and_the_emulator_lacks_is_named_with_its_line() {
        let at = |what: &str, line: u32| Some((what.to_owned(), "k.cu".to_owned(), line));
        assert_eq!(found("k.cu:3:10: fatal error: cub/cub.cuh: No such file or directory\n"), at("cub/cub.cuh", 3));
        assert_eq!(found("k.cu:3:10: fatal error: 'cub/cub.cuh' file not found\n"), at("cub/cub.cuh", 3));
        let member = "k.cu: In function 'void k()':\nk.cu:9:8: error: 'mdspan' is not a member of 'cuda::std'\n";
        assert_eq!(found(member), at("cuda::std::mdspan", 9));
        assert_eq!(
            found("k.cu:7:3: error: '__viaddmax_s32' was not declared in this scope\n"),
            at("__viaddmax_s32", 7)
        );
        assert_eq!(found("k.cu:7:3: error: use of undeclared identifier '__viaddmax_s32'\n"), at("__viaddmax_s32", 7));
        assert_eq!(
            found("k.cu:8:5: error: 'class cooperative_groups::thread_block' has no member named 'new_thing'\n"),
            at("cooperative_groups::thread_block::new_thing", 8)
        );
        let ours = "headers/mma.h: In instantiation of 'class f<3>':\nk.cu:12:30:   required from here\n\
                    headers/mma.h:39:40: error: static assertion failed: this shape of fragment is not emulated\n";
        assert_eq!(found(ours), at("this shape of fragment", 12));
        assert_eq!(found("k.cu:2:1: error: 'texture' does not name a type\n"), at("texture", 2));
        assert_eq!(found("k.cu:2:1: error: no template named 'texture'\n"), at("texture", 2));
        for chain in [
            "In file included from toolkit/cuda/barrier:1,\n                 from k.cu:3:\n",
            "In file included from k.cu:3,\n                 from entries.cpp:2:\n",
            "In file included from entries.cpp:2:\nIn file included from k.cu:3:\nIn file included from toolkit/cuda/barrier:1:\n",
        ] {
            let log = format!(
                "{chain}toolkit/cuda/__barrier/barrier.h:9:5: error: '__isShared' was not declared in this scope\n"
            );
            assert_eq!(found(&log), at("__isShared", 3), "{chain}");
        }
    }

    #[test]
    fn a_namespace_that_is_missing_is_named() {
        let log = "k.cu:5:1: error: 'nvcuda::wmma::experimental' has not been declared\n";
        assert_eq!(found(log), Some(("nvcuda::wmma::experimental".into(), "k.cu".into(), 5)));
    }

    #[test]
    fn names_that_are_not_declared_are_found_in_order() {
        let log = "k.cu:2:17: error: variable or field 'k' declared void\nk.cu:2:17: error: 'Half' was not declared in this scope\n\
                   k.cu:3:9: error: 'at' has not been declared\nk.cu:4:9: error: no match for 'operator+' (operand types are 'float4' and 'float4')\n\
                   headers/a.h:5:1: error: 'x' was not declared in this scope\nk.cu:6:1: error: unknown type name 'C'\n";
        let found = undeclared(log);
        let expected = [("Half", 2), ("at", 3), ("operator+", 4), ("C", 6)];
        let expected = expected.map(|(name, line)| (Some(name.to_owned()), ("k.cu".to_owned(), line)));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_mistake_of_the_source_is_none_of_it() {
        assert_eq!(found("k.cu:2:10: error: 'undeclared' was not declared in this scope\n"), None);
        assert_eq!(found("k.cu:2:10: fatal error: tile.h: No such file or directory\n"), None);
        assert_eq!(found("k.cu:2:10: error: 'foo' is not a member of 'ops'\n"), None);
        assert_eq!(found("k.cu:2:10: error: expected ';'\nk.cu:3:1: error: '__vadd' was not declared\n"), None);
        assert_eq!(found("nothing"), None);
    }
}
