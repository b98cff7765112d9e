//! Stand-ins for the standard headers that NVRTC lacks, and the prelude that precedes every source. They enter a compile step as its input `tree:shim`, so that
//! a change of a header changes the key.

macro_rules! headers {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("shim/", $name)))),*] };
}

/// Each header's name in `#include`, and its text. A step writes them to a folder.
const HEADERS: &[(&str, &str)] = headers![
    "algorithm",
    "array",
    "assert.h",
    "cassert",
    "cfloat",
    "climits",
    "cmath",
    "cstddef",
    "cstdint",
    "cstdio",
    "cstdlib",
    "cstring",
    "float.h",
    "kforge_prelude.h",
    "limits",
    "limits.h",
    "math.h",
    "stddef.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "string.h",
    "type_traits",
    "utility",
];

/// The header that precedes every source.
pub(super) const PRELUDE: &str = "kforge_prelude.h";

/// Each header's name in `#include`, and its text: the contents of the input `tree:shim`.
pub fn shim_headers() -> &'static [(&'static str, &'static str)] {
    HEADERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_header_that_another_includes_is_there() {
        let names: Vec<&str> = HEADERS.iter().map(|(name, _)| *name).collect();
        for (name, text) in HEADERS {
            for line in text.lines().filter_map(|l| l.strip_prefix("#include <")) {
                assert!(names.contains(&line.trim_end_matches('>')), "{name} includes <{line}");
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_listed() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("shim");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(HEADERS.iter().any(|(listed, _)| *listed == name), "{name}");
        }
    }
}
